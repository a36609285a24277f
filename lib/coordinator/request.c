/* What a run asks of its worker, and what becomes of the answer: one request at a time,
 * each under a ticket. */
#include "base/alloc.h"
#include "base/error.h"
#include "codec/json.h"
#include "coordinator/reason.h"

#include <stdio.h>
#include <string.h>

static void on_request(coord_task *task, void *arg);

/* ---- sending ---- */

/* A request that could not be sent is as broken as one that failed for good. */
static void broken(coordi_run *run, const coord_error *why)
{
    bool lost = why->status == COORD_ERR_LOST;
    coordi_run_stop(run, lost ? COORDI_EVENT_LOST : COORDI_EVENT_BROKEN, why);
}

/* What it asks for now, as the id of the request. */
static void print_ticket(const coordi_run *run, char id[COORDI_UUID_SIZE])
{
    coordi_ticket ticket = {
        .task = run->number,
        .attempt = run->attempt,
        .sequence = run->sequence + 1,
        .kind = run->state == COORDI_STATE_STARTING   ? COORDI_TICKET_START
                : run->state == COORDI_STATE_LEARNING ? COORDI_TICKET_LEARN
                : run->state == COORDI_STATE_CLOSING  ? COORDI_TICKET_CLOSE
                                                      : COORDI_TICKET_ASK,
    };
    coordi_ticket_print(&run->c->key, &ticket, id);
}

void coordi_run_listen(coordi_run *run, coord_task *request, uint64_t sequence)
{
    coord_task_unref(run->request); /* the last one: nobody reads its result any more */
    run->request = request;
    run->info = (coord_text){NULL, 0};
    run->sequence = sequence;
    request->listener = on_request;
    request->listener_arg = run;
}

static coord_status make_request(coordi_run *run, const char *id, coord_text body,
                                 int64_t timeout_ms, coord_error *err)
{
    coord_task *task = NULL;
    coord_status rc = coordi_task_create(run->member->connection, body, &task, err);
    if (rc != COORD_OK) {
        return rc;
    }
    memcpy(task->id, id, sizeof task->id);
    task->kept = run->c->ledger != NULL;
    task->maybe_sent = run->resumes;
    run->resumes = false;
    run->c->counters.requests++;
    coordi_run_listen(run, task, run->sequence + 1);
    return coordi_task_start(task, timeout_ms, err);
}

void coordi_run_request(coordi_run *run, char *body, size_t len, int64_t timeout_ms)
{
    char id[COORDI_UUID_SIZE];
    coord_error why;
    coord_status rc = COORD_ERR_NOMEM;

    print_ticket(run, id);
    if (coordi_run_take_parked(run, id)) {
        coordi_free(body);
        return;
    }
    if (body == NULL) {
        (void)coordi_fail_nomem(&why, "request");
    } else {
        rc = make_request(run, id, (coord_text){body, len}, timeout_ms, &why);
        coordi_free(body);
    }
    if (rc != COORD_OK) {
        broken(run, &why);
    }
}

/* {"name": ..., "task_info": {the host's task, and who does it}} */
static char *start_body(const coordi_run *run, coord_text resource, size_t *len)
{
    coordi_buf id = {0};
    coordi_buf body = {0};
    char attempt[16];
    int digits = snprintf(attempt, sizeof attempt, "%u", run->attempt);
    coordi_buf_add_json(&id, run->worker_id, strlen(run->worker_id));
    coordi_json_member members[] = {
        {run->kind->id_key, {id.ptr, id.len}, true},
        {"resource_info", resource.len == 0 ? coord_text_of("{}") : resource, true},
        {"attempt", {attempt, (size_t)digits}, true},
    };
    size_t count = run->attempt > 1 ? 3 : 2; /* the first is as the reference's */
    coordi_buf_addf(&body, "{\"name\": \"%s\", \"task_info\": ", run->kind->start_name);
    if (id.failed || coordi_json_splice(&body, (coord_text){run->task, run->task_len},
                                        members, count, NULL) != COORD_OK) {
        body.failed = true;
    }
    coordi_buf_adds(&body, "}");
    coordi_buf_done(&id);
    return coordi_buf_take(&body, len);
}

void coordi_run_send_start(coordi_run *run)
{
    CommCoordinator *c = run->c;
    coord_error why;
    size_t len = 0;

    coordi_timer_stop(c->loop, &run->timer);
    COORDI_LOG(&c->log, COORD_LOG_INFO, "task assigned task=%s worker=%s attempt=%u",
               run->id, run->worker_id, run->attempt);
    if (run->lane == NULL &&
        coordi_lane_open(c->executor, &run->lane, &why) != COORD_OK) {
        broken(run, &why);
        return;
    }
    char *body = start_body(run, coord_text_of(run->member->resource), &len);
    coordi_run_request(run, body, len, c->config.start_timeout_ms);
}

static void send_named(coordi_run *run, const char *name, int64_t timeout_ms)
{
    coordi_buf body = {0};
    size_t len = 0;
    coordi_buf_addf(&body, "{\"name\": \"%s\"}", name);
    char *text = coordi_buf_take(&body, &len);
    coordi_run_request(run, text, len, timeout_ms);
}

void coordi_run_send_ask(coordi_run *run)
{
    send_named(run, run->kind->ask_name, run->c->config.task_timeout_ms[run->kind->role]);
}

void coordi_run_send_close(coordi_run *run)
{
    run->close_sent = true;
    send_named(run, run->kind->close_name, run->c->config.start_timeout_ms);
}

/* ---- what came back ---- */

coordi_ask coordi_run_ask(const coordi_run *run)
{
    bool learner = run->kind->role == COORD_LEARNER;
    coordi_ask ask = {.name = run->kind->ask_name, .limit_key = "start_timeout_s"};
    if (run->request != NULL) {
        ask.accepted = run->request->accepted;
        ask.limit_ms = run->request->timeout_ms;
    }
    if (run->state == COORDI_STATE_STARTING) {
        ask.name = run->kind->start_name;
    } else if (run->state == COORDI_STATE_CLOSING) {
        ask.name = run->kind->close_name;
    } else {
        ask.name = run->state == COORDI_STATE_LEARNING ? "learner_learn_task" : ask.name;
        ask.limit_key = learner ? "learner_task_timeout_s" : "collector_task_timeout_s";
    }
    return ask;
}

/* A worker's no to a start is final; one that said nothing, or was too busy to hear of
 * it, leaves the task to another. */
static void start_failed(coordi_run *run, const coord_error *why)
{
    coord_error told = *why;
    bool silent = why->status == COORD_ERR_TIMEOUT || why->status == COORD_ERR_BUSY;
    if (why->status == COORD_ERR_TASK) {
        told.status = COORD_ERR_REFUSED;
    }
    (void)coordi_fail_because(&told, told.status, &told,
                              "task '%.60s': '%.60s' did not start it", run->id,
                              run->worker_id);
    if (told.status == COORD_ERR_REFUSED) {
        told.reason = coordi_reason_word(COORDI_REASON_REFUSED_START);
    }
    bool maybe_sent = run->request == NULL || run->request->maybe_sent;
    if (maybe_sent && why->status != COORD_ERR_LOST) {
        coordi_run_stop(run, COORDI_EVENT_MOVED, &told); /* it may have got further */
    } else if (silent) {
        coordi_run_lose(run, COORDI_EVENT_BROKEN, &told);
    } else if (why->status == COORD_ERR_LOST) {
        coordi_run_lose(run, COORDI_EVENT_LOST, &told);
    } else {
        broken(run, &told);
    }
}

/* The request failed. A worker that says so is asked again, for some time. */
void coordi_run_request_failed(coordi_run *run, const coord_error *error)
{
    coord_error why;
    coord_error told;
    coordi_ask ask = coordi_run_ask(run);
    coordi_explain(run->member, &ask, error, &why);
    bool may_pass = why.status == COORD_ERR_TASK || why.status == COORD_ERR_REFUSED ||
                    why.status == COORD_ERR_BUSY || why.status == COORD_ERR_PROTOCOL;
    if (run->state == COORDI_STATE_STARTING) {
        start_failed(run, &why);
        return;
    }
    if (run->state == COORDI_STATE_CLOSING && why.status != COORD_ERR_LOST) {
        coordi_run_dispatch(run, COORDI_EVENT_CLOSED); /* finished all the same */
        return;
    }
    run->failures++;
    bool again = may_pass && run->failures <= (uint64_t)run->c->config.request_retries;
    bool lost = why.status == COORD_ERR_LOST;
    if (may_pass) {
        (void)coordi_fail_because(&told, why.status, &why,
                                  "task '%.60s' at '%.60s': %s failed, %u in a row",
                                  run->id, run->worker_id, ask.name, run->failures);
    } else {
        (void)coordi_fail_because(&told, why.status, &why, "task '%.60s' at '%.60s': %s",
                                  run->id, run->worker_id,
                                  lost ? "lost its worker" : "its worker is of no use");
    }
    if (again) {
        coordi_history_note(run, &told);
        COORDI_LOG(&run->c->log, COORD_LOG_WARN,
                   "request failed task=%s worker=%s attempt=%u failures=%u why=\"%s\"",
                   run->id, run->worker_id, run->attempt, run->failures, why.text);
        coordi_run_dispatch(run, COORDI_EVENT_RETRY);
    } else {
        coordi_run_lose(run, lost ? COORDI_EVENT_LOST : COORDI_EVENT_BROKEN, &told);
    }
}

void coordi_run_completed(coordi_run *run, coord_text result)
{
    coordi_event_kind event;
    switch (run->state) {
    case COORDI_STATE_STARTING:
        event = COORDI_EVENT_ACCEPTED;
        break;
    case COORDI_STATE_CLOSING:
        run->result = coordi_memdup(result.ptr, result.len);
        run->result_len = run->result == NULL ? 0 : result.len;
        event = COORDI_EVENT_CLOSED;
        break;
    default:
        run->why.status = COORD_OK;
        event = run->kind->read(run, result);
        break;
    }
    if (event == COORDI_EVENT_RETRY) {
        coord_error why = run->why; /* it answered, but without sense */
        coordi_run_request_failed(run, &why);
        return;
    }
    if (event == COORDI_EVENT_BROKEN) {
        coord_error why;
        (void)coordi_fail_nomem(&why, "result");
        broken(run, &why);
        return;
    }
    if (event != COORDI_EVENT_WANT) { /* a learner that only asks has not got on */
        run->failures = 0;
    }
    coordi_run_dispatch(run, event);
}

static void on_request(coord_task *task, void *arg)
{
    coordi_run *run = arg;
    if (!coordi_task_is_settled(task) || run->request != task) {
        return; /* merely accepted */
    }
    if (coord_task_get_status(task) == COORD_TASK_COMPLETED) {
        coordi_run_completed(run, coord_task_result(task));
    } else {
        coord_error why = task->error;
        coordi_run_request_failed(run, &why);
    }
}

bool coordi_run_read_text(coord_text from, const char *key, char **to)
{
    coord_text raw;
    coordi_buf buf = {0};
    if (coordi_json_get(from, key, &raw, NULL) != COORD_OK ||
        coordi_json_type_of(raw) == COORDI_JSON_NULL) {
        return true;
    }
    /* What is no C string is told as it is spelled. */
    if (coordi_json_string_add(raw, &buf) == COORD_ERR_FORMAT) {
        coordi_buf_addt(&buf, raw);
    }
    char *text = coordi_buf_take(&buf, NULL);
    if (text != NULL) {
        coordi_free(*to);
        *to = text;
    }
    return text != NULL;
}
