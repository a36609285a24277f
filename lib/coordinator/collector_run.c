/* A collector task: start, then data until the host says that it is enough, then close.
 * What may follow each state is stated here and nowhere else. */
#include "codec/json.h"
#include "coordinator/coordinator.h"

#define S(state) COORDI_STATE_##state

static void send_data(coordi_run *run);
static void judge(coordi_run *run);

static const coordi_rule RULES[COORDI_STATE_COUNT][COORDI_EVENT_COUNT] = {
    [S(QUEUED)] =
        {
            [COORDI_EVENT_ASSIGNED] = {S(STARTING), coordi_run_send_start},
            [COORDI_EVENT_STOP] = {S(FAILING), coordi_run_fail},
        },
    [S(STARTING)] =
        {
            [COORDI_EVENT_ACCEPTED] = {S(ASKING), coordi_run_started},
            [COORDI_EVENT_BROKEN] = {S(FAILING), coordi_run_fail},
            [COORDI_EVENT_LOST] = {S(FAILING), coordi_run_fail},
            [COORDI_EVENT_STOP] = {S(FAILING), coordi_run_fail},
        },
    [S(ASKING)] =
        {
            [COORDI_EVENT_SAMPLE] = {S(SENDING), send_data},
            [COORDI_EVENT_INFO] = {S(JUDGING), judge},
            [COORDI_EVENT_RETRY] = {S(PAUSING), coordi_run_pause},
            [COORDI_EVENT_BROKEN] = {S(FAILING), coordi_run_fail},
            [COORDI_EVENT_LOST] = {S(FAILING), coordi_run_fail},
            [COORDI_EVENT_STOP] = {S(FAILING), coordi_run_fail},
        },
    [S(PAUSING)] =
        {
            [COORDI_EVENT_DUE] = {S(ASKING), coordi_run_send_ask},
            [COORDI_EVENT_LOST] = {S(FAILING), coordi_run_fail},
            [COORDI_EVENT_STOP] = {S(FAILING), coordi_run_fail},
        },
    [S(SENDING)] =
        {
            [COORDI_EVENT_YES] = {S(ASKING), coordi_run_send_ask},
            [COORDI_EVENT_LOST] = {S(FAILING), coordi_run_fail},
            [COORDI_EVENT_STOP] = {S(FAILING), coordi_run_fail},
        },
    [S(JUDGING)] =
        {
            [COORDI_EVENT_NO] = {S(ASKING), coordi_run_send_ask},
            [COORDI_EVENT_YES] = {S(CLOSING), coordi_run_send_close},
            [COORDI_EVENT_LOST] = {S(FAILING), coordi_run_fail},
            [COORDI_EVENT_STOP] = {S(FAILING), coordi_run_fail},
        },
    [S(CLOSING)] =
        {
            [COORDI_EVENT_CLOSED] = {S(RELEASING), coordi_run_release},
            [COORDI_EVENT_BROKEN] = {S(RELEASING), coordi_run_release}, /* not even sent */
            [COORDI_EVENT_LOST] = {S(FAILING), coordi_run_fail},
            [COORDI_EVENT_STOP] = {S(FAILING), coordi_run_fail},
        },
    [S(RELEASING)] =
        {
            [COORDI_EVENT_RELEASED] = {S(FINISHING), coordi_run_finish},
        },
    [S(FINISHING)] =
        {
            [COORDI_EVENT_TOLD] = {S(ENDED), coordi_run_end},
        },
    [S(FAILING)] =
        {
            [COORDI_EVENT_TOLD] = {S(ENDED), coordi_run_end},
        },
};

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
