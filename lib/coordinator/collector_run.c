/* A collector task: start, then data until the host says that it is enough, then close.
 * What may follow each state is stated here and in rules.h, and nowhere else. */
#include "codec/json.h"
#include "coordinator/rules.h"

static void send_data(coordi_run *run);
static void judge(coordi_run *run);

/* clang-format off */
static const coordi_rule RULES[COORDI_STATE_COUNT][COORDI_EVENT_COUNT] = {
    RULES_OF_BOTH,

    ON(ASKING,    SAMPLE,   SENDING,   send_data),
    ON(ASKING,    INFO,     JUDGING,   judge),
    ON(ASKING,    RETRY,    PAUSING,   coordi_run_pause),
    ON(ASKING,    BROKEN,   FAILING,   coordi_run_fail),
    ON_TROUBLE(ASKING),

    ON(SENDING,   YES,      ASKING,    coordi_run_send_ask),
    ON_TROUBLE(SENDING),
};
/* clang-format on */

/* A result with a data_id is a sample, any other tells of progress. */
static coordi_event_kind read_result(coordi_run *run, coord_text result)
{
    coord_text data_id;
    run->info = result;
    if (!coordi_run_read_text(result, "buffer_id", &run->buffer_id)) {
        return COORDI_EVENT_BROKEN;
    }
    if (coordi_json_get(result, "data_id", &data_id, NULL) != COORD_OK) {
        return COORDI_EVENT_INFO;
    }
    return coordi_run_read_text(result, "data_id", &run->data_id) ? COORDI_EVENT_SAMPLE
                                                                  : COORDI_EVENT_BROKEN;
}

/* ---- callbacks; on the lane ---- */

static coordi_event_kind call_send_data(coordi_run *run)
{
    const comm_coordinator_callbacks *cb = &run->c->callbacks;
    cb->deal_with_collector_send_data(run->c, run->id, run->buffer_id, run->data_id,
                                      run->info, cb->user);
    return COORDI_EVENT_YES;
}

static void send_data(coordi_run *run)
{
    coordi_run_call(run, call_send_data);
}

static coordi_event_kind call_judge(coordi_run *run)
{
    const comm_coordinator_callbacks *cb = &run->c->callbacks;
    bool enough =
        cb->deal_with_collector_judge_finish(run->c, run->id, run->info, cb->user);
    return enough ? COORDI_EVENT_YES : COORDI_EVENT_NO;
}

static void judge(coordi_run *run)
{
    coordi_run_call(run, call_judge);
}

const coordi_run_kind coordi_collector_run = {
    .role = COORD_COLLECTOR,
    .start_name = "collector_start_task",
    .ask_name = "collector_data_task",
    .close_name = "collector_close_task",
    .id_key = "collector_id",
    .rules = RULES,
    .read = read_result,
};
