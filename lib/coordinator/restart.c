/* What a task is when it starts anew: what it was, or what the host made of it. */
#include "base/alloc.h"
#include "base/error.h"
#include "codec/json.h"
#include "coordinator/coordinator.h"

static coord_status check_text(const coordi_run *run, coord_text text, coord_error *err)
{
    coordi_json_member id = {.key = "task_id"};
    coord_error why;
    if (coordi_json_get_many(text, &id, 1, &why) != COORD_OK) {
        return coordi_fail_because(err, COORD_ERR_CALLBACK, &why,
                                   "task '%.100s': deal_with_task_restart must put out a "
                                   "JSON object, or nothing",
                                   run->id);
    }
    if (!coordi_json_string_is(id.value, run->id)) {
        (void)coordi_json_fail(&why, COORD_ERR_CALLBACK, "task_id",
                               "that of the task that restarts", id.value);
        return coordi_fail_because(
            err, COORD_ERR_CALLBACK, &why,
            "task '%.100s': deal_with_task_restart put out another task_id", run->id);
    }
    return COORD_OK;
}

coord_status coordi_run_take_text(coordi_run *run, coord_error *err)
{
    coord_text text = coordi_out_text(&run->out);
    if (run->state != COORDI_STATE_RESTARTING || text.len == 0) {
        return COORD_OK;
    }
    coord_status rc = check_text(run, text, err);
    if (rc == COORD_OK) {
        coordi_free(run->task);
        run->task = coordi_out_take(&run->out, &run->task_len);
        coordi_run_record_text(run);
    }
    coordi_out_done(&run->out);
    return rc;
}
