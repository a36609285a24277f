/* A learner task: start; then get data, learn, judge, again and again; then close.
 * What may follow each state is stated here and in rules.h, and nowhere else. */
#include "base/error.h"
#include "codec/json.h"
#include "coordinator/rules.h"

enum { WAIT_FIRST_MS = 10, WAIT_LONGEST_MS = 1000 }; /* for a host without data */

static void sample(coordi_run *run);
static void wait_for_data(coordi_run *run);
static void send_learn(coordi_run *run);
static void judge(coordi_run *run);

/* clang-format off */
static const coordi_rule RULES[COORDI_STATE_COUNT][COORDI_EVENT_COUNT] = {
    RULES_OF_BOTH,

    ON(ASKING,    WANT,     SAMPLING,  sample),
    ON(ASKING,    RETRY,    PAUSING,   coordi_run_pause),
    ON(ASKING,    BROKEN,   FAILING,   coordi_run_fail),
    ON_TROUBLE(ASKING),

    ON(SAMPLING,  YES,      LEARNING,  send_learn),
    ON(SAMPLING,  AGAIN,    WAITING,   wait_for_data),
    ON(SAMPLING,  BROKEN,   FAILING,   coordi_run_fail),
    ON_TROUBLE(SAMPLING),

    ON(WAITING,   DUE,      SAMPLING,  sample),
    ON_TROUBLE(WAITING),

    ON(LEARNING,  LEARNED,  JUDGING,   judge),
    ON(LEARNING,  RETRY,    PAUSING,   coordi_run_pause),
    ON(LEARNING,  BROKEN,   FAILING,   coordi_run_fail),
    ON_TROUBLE(LEARNING),
};
/* clang-format on */

/* ---- requests ---- */

static coordi_event_kind read_want(coordi_run *run, coord_text result)
{
    coordi_json_member got[] = {{.key = "batch_size"}, {.key = "cur_learner_iter"}};
    (void)coordi_json_get_many(result, got, 2, NULL);
    run->learner_iter = 0;
    for (size_t i = 0; i < 2; i++) {
        int64_t *to = i == 0 ? &run->batch_size : &run->learner_iter;
        bool optional = i == 1 && !got[i].present;
        if (!optional && (!coordi_json_int(got[i].value, to) || *to < 0)) {
            (void)coordi_json_fail(&run->why, COORD_ERR_PROTOCOL, got[i].key,
                                   "a count from the learner that asks for data",
                                   got[i].value);
            return COORDI_EVENT_RETRY;
        }
    }
    run->pause_ms = 0;
    run->ready = false;
    return COORDI_EVENT_WANT;
}

static coordi_event_kind read_result(coordi_run *run, coord_text result)
{
    if (!coordi_run_read_text(result, "buffer_id", &run->buffer_id)) {
        return COORDI_EVENT_BROKEN;
    }
    if (run->state == COORDI_STATE_ASKING) {
        return read_want(run, result);
    }
    if (coordi_json_get(result, "info", &run->info, NULL) != COORD_OK) {
        run->info = (coord_text){NULL, 0};
    }
    return COORDI_EVENT_LEARNED;
}

static void send_learn(coordi_run *run)
{
    coordi_buf body = {0};
    size_t len = 0;
    coord_text data = coordi_out_text(&run->out);
    (void)coordi_buf_reserve(&body, data.len + 64);
    coordi_buf_adds(&body, "{\"name\": \"learner_learn_task\", \"data\": ");
    coordi_buf_addt(&body, data);
    coordi_buf_adds(&body, "}");
    char *text = coordi_buf_take(&body, &len);
    coordi_out_done(&run->out);
    coordi_run_request(run, text, len, run->c->config.task_timeout_ms[COORD_LEARNER]);
}

/* A host that has no data is asked again: soon, then less and less often; at once when it
 * says that there is some. */
static void wait_for_data(coordi_run *run)
{
    int64_t pause = run->pause_ms == 0 ? WAIT_FIRST_MS : run->pause_ms * 2;
    run->pause_ms = pause < WAIT_LONGEST_MS ? pause : WAIT_LONGEST_MS;
    coordi_timer_in(run->c->loop, &run->timer, run->ready ? 0 : run->pause_ms);
    run->ready = false;
}

/* ---- callbacks; on the lane ---- */

static coordi_event_kind call_get_data(coordi_run *run)
{
    const comm_coordinator_callbacks *cb = &run->c->callbacks;
    coord_status rc =
        cb->deal_with_learner_get_data(run->c, run->id, run->buffer_id, run->batch_size,
                                       run->learner_iter, &run->out, cb->user);
    if (rc == COORD_AGAIN) {
        return COORDI_EVENT_AGAIN;
    }
    if (rc == COORD_OK && run->out.set) {
        return COORDI_EVENT_YES;
    }
    (void)coordi_fail(&run->call_why, COORD_ERR_CALLBACK,
                      "task '%.100s': deal_with_learner_get_data answered \"%s\"%s",
                      run->id, coord_status_str(rc),
                      rc == COORD_OK ? " without any data" : "");
    return COORDI_EVENT_BROKEN;
}

static void sample(coordi_run *run)
{
    coordi_out_done(&run->out);
    coordi_run_call(run, call_get_data);
}

/* The info is delivered always, also the last one. */
static coordi_event_kind call_judge(coordi_run *run)
{
    const comm_coordinator_callbacks *cb = &run->c->callbacks;
    coord_text info = run->info.len == 0 ? coord_text_of("{}") : run->info;
    bool enough = cb->deal_with_learner_judge_finish(run->c, run->id, info, cb->user);
    if (!atomic_load(&run->c->dead)) { /* destroyed meanwhile: none begins any more */
        cb->deal_with_learner_send_info(run->c, run->id, run->buffer_id, info, cb->user);
    }
    return enough ? COORDI_EVENT_YES : COORDI_EVENT_NO;
}

static void judge(coordi_run *run)
{
    coordi_run_call(run, call_judge);
}

const coordi_run_kind coordi_learner_run = {
    .role = COORD_LEARNER,
    .start_name = "learner_start_task",
    .ask_name = "learner_get_data_task",
    .close_name = "learner_close_task",
    .id_key = "learner_id",
    .rules = RULES,
    .read = read_result,
};
