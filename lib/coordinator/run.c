/* What both kinds of task have in common: the queue, requests to the worker, the ends.
 *
 * A run lives from coordi_run_create() to COORDI_STATE_ENDED, and its memory until the
 * last callback job that was on its way has come back. dispatch() looks the event up in
 * the kind's table; an event that the state does not know comes too late and is dropped.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/line.h"
#include "codec/json.h"
#include "coordinator/reason.h"

#include <stdio.h>
#include <string.h>

static void on_request(coord_task *task, void *arg);
static void on_timer(coordi_timer *timer);

const char *coordi_state_str(coordi_state state)
{
    static const char *const NAME[COORDI_STATE_COUNT] = {
        [COORDI_STATE_NONE] = "none",
        [COORDI_STATE_QUEUED] = "queued",
        [COORDI_STATE_STARTING] = "starting",
        [COORDI_STATE_ASKING] = "asking",
        [COORDI_STATE_PAUSING] = "pausing",
        [COORDI_STATE_SENDING] = "sending",
        [COORDI_STATE_SAMPLING] = "sampling",
        [COORDI_STATE_WAITING] = "waiting",
        [COORDI_STATE_LEARNING] = "learning",
        [COORDI_STATE_JUDGING] = "judging",
        [COORDI_STATE_CLOSING] = "closing",
        [COORDI_STATE_RELEASING] = "releasing",
        [COORDI_STATE_FINISHING] = "finishing",
        [COORDI_STATE_FAILING] = "failing",
        [COORDI_STATE_RESTARTING] = "restarting",
        [COORDI_STATE_ENDED] = "ended",
        [COORDI_STATE_RECORDING] = "recording",
        [COORDI_STATE_ASSIGNING] = "assigning",
        [COORDI_STATE_SETTLING] = "settling",
        [COORDI_STATE_RESUMING] = "resuming",
        [COORDI_STATE_AWAITING] = "awaiting",
        [COORDI_STATE_SHELVING] = "shelving",
    };
    return NAME[state];
}

/* ---- life ---- */

static coord_status check_task(CommCoordinator *c, coord_text task, char **id,
                               coord_error *err)
{
    coordi_json_member got = {.key = "task_id"};
    char text[COORD_ID_SIZE];
    coord_error why;

    if (coordi_json_get_many(task, &got, 1, &why) != COORD_OK) {
        return coordi_fail_because(err, COORD_ERR_FORMAT, &why,
                                   "task: must be a well-formed JSON object");
    }
    if (coordi_json_string(got.value, text, sizeof text) != COORD_OK || text[0] == '\0') {
        return coordi_json_fail(err, COORD_ERR_ARG, "task_id",
                                "a string of 1 to 255 bytes without NUL", got.value);
    }
    if (coordi_map_get(&c->runs, text) != NULL) {
        return coordi_fail(err, COORD_ERR_EXISTS,
                           "task '%.100s': is queued or runs already", text);
    }
    if (c->queued >= (size_t)c->config.max_queued_tasks) {
        return coordi_fail(
            err, COORD_ERR_BUSY,
            "task '%.100s': %zu tasks wait already, max_queued_tasks is %lld", text,
            c->queued, (long long)c->config.max_queued_tasks);
    }
    *id = coordi_strdup(text);
    return *id == NULL ? coordi_fail_nomem(err, "task") : COORD_OK;
}

coordi_run *coordi_run_allocate(CommCoordinator *c, const coordi_run_kind *kind,
                                coord_text task, coord_status *status, coord_error *err)
{
    coordi_run *run = coordi_zalloc(sizeof *run);
    if (run == NULL) {
        *status = coordi_fail_nomem(err, "task");
        return NULL;
    }
    run->refs = 1;
    run->c = coordi_coordinator_ref(c);
    run->kind = kind;
    run->timer.fire = on_timer;
    coordi_list_init(&run->await_end);
    *status = check_task(c, task, &run->id, err);
    if (*status == COORD_OK) {
        run->task = coordi_memdup(task.ptr, task.len);
        run->task_len = task.len;
        if (run->task == NULL || !coordi_map_put(&c->runs, run->id, run)) {
            *status = coordi_fail_nomem(err, "task");
        }
    }
    if (*status != COORD_OK) {
        coordi_run_unref(run);
        return NULL;
    }
    run->since_ms = coordi_now(c->loop);
    atomic_fetch_add(&c->tasks, 1);
    return run;
}

static void count_in_queue(coordi_run *run)
{
    run->c->queued += !run->counted;
    run->counted = true;
}

void coordi_run_leave_queue(coordi_run *run)
{
    coordi_list_remove(&run->queue);
    run->c->queued -= run->counted;
    run->counted = false;
}

coord_status coordi_run_create(CommCoordinator *c, const coordi_run_kind *kind,
                               coord_text task, coordi_send_op *op, coord_error *err)
{
    coord_status rc;
    coordi_run *run = coordi_run_allocate(c, kind, task, &rc, err);
    if (run == NULL) {
        return rc;
    }
    run->attempt = 1;
    run->number = ++c->last_number;
    run->state = COORDI_STATE_RECORDING;
    run->send = op->post ? NULL : op;
    run->post = op->post ? &op->op : NULL;
    count_in_queue(run);
    coordi_run_record_acceptance(run);
    return COORD_OK;
}

void coordi_run_unref(coordi_run *run)
{
    if (--run->refs > 0) {
        return;
    }
    coordi_run_drop_parked(run);
    coord_task_unref(run->request);
    coordi_out_done(&run->out);
    coordi_free(run->kept);
    coordi_free(run->result);
    coordi_free(run->buffer_id);
    coordi_free(run->data_id);
    coordi_free(run->task);
    coordi_free(run->id);
    coordi_coordinator_unref(run->c);
    coordi_free(run);
}

/* ---- events ---- */

void coordi_run_dispatch(coordi_run *run, coordi_event_kind event)
{
    const coordi_rule *rule = &run->kind->rules[run->state][event];
    if (rule->next == COORDI_STATE_NONE) {
        run->c->counters.dropped_events++;
        return;
    }
    COORDI_LOG(&run->c->log, COORD_LOG_DEBUG,
               "task %s task=%s worker=%s attempt=%u sequence=%llu",
               coordi_state_str(rule->next), run->id, run->worker_id, run->attempt,
               (unsigned long long)run->sequence);
    run->refs++; /* the action may be the last thing that happens to it */
    run->state = rule->next;
    run->since_ms = coordi_now(run->c->loop);
    rule->act(run);
    coordi_run_unref(run);
}

/* Another attempt needs one that is left, and a worker that is not this one. */
static bool may_move(const coordi_run *run)
{
    const CommCoordinator *c = run->c;
    size_t others = coordi_coordinator_count_ready(c, run->kind->role);
    if (run->member != NULL && coordi_member_is_ready(run->member)) {
        others--;
    }
    return c->phase == COORDI_PHASE_RUNNING && others > 0 &&
           run->losses < (uint64_t)c->config.max_reassign;
}

void coordi_run_lose(coordi_run *run, coordi_event_kind event, const coord_error *why)
{
    if (run->state == COORDI_STATE_RESUMING) {
        return; /* it is seen when task_resume returns */
    }
    bool moves = may_move(run);
    run->losses += moves && run->state != COORDI_STATE_AWAITING;
    coordi_run_stop(run, moves ? COORDI_EVENT_MOVED : event, why);
}

void coordi_run_stop(coordi_run *run, coordi_event_kind event, const coord_error *why)
{
    if (run->kind->rules[run->state][event].next != COORDI_STATE_NONE) {
        run->why = *why;
        coordi_reason_mark(&run->why);
    }
    coordi_run_dispatch(run, event);
}

static void on_timer(coordi_timer *timer)
{
    coordi_run *run = COORDI_ITEM(timer, coordi_run, timer);
    if (run->state == COORDI_STATE_AWAITING) {
        coordi_run_await_due(run);
        return;
    }
    if (run->state != COORDI_STATE_QUEUED) {
        coordi_run_dispatch(run, COORDI_EVENT_DUE);
        return;
    }
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_TIMEOUT,
                      "task '%.100s': no %s was free within queue_timeout_s (%g)",
                      run->id, coord_role_str(run->kind->role),
                      (double)run->c->config.queue_timeout_ms / 1000.0);
    why.reason = coordi_reason_word(COORDI_REASON_QUEUE_TIMEOUT);
    coordi_run_stop(run, COORDI_EVENT_STOP, &why);
}

/* ---- requests ---- */

/* A request that could not be sent is as broken as one that failed for good. */
static void broken(coordi_run *run, const coord_error *why)
{
    bool lost = why->status == COORD_ERR_LOST;
    coordi_run_stop(run, lost ? COORDI_EVENT_LOST : COORDI_EVENT_BROKEN, why);
}

void coordi_run_print_ticket(const coordi_run *run, char id[COORDI_UUID_SIZE])
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

    coordi_run_print_ticket(run, id);
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

static coordi_ask ask_of(const coordi_run *run)
{
    bool learner = run->kind->role == COORD_LEARNER;
    const coord_task *request = run->request; /* NULL: it was sent before a restart */
    coordi_ask ask = {run->kind->ask_name, request == NULL || request->accepted,
                      request == NULL ? 0 : request->timeout_ms, "start_timeout_s"};
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
    coordi_ask ask = ask_of(run);
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

/* ---- actions ---- */

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

void coordi_run_started(coordi_run *run)
{
    run->accepted = true;
    if (run->send != NULL && !coordi_op_claim(&run->send->op)) {
        coord_error why;
        (void)coordi_fail(&why, COORD_ERR_TIMEOUT,
                          "task '%.100s': whoever sent it has given up", run->id);
        coordi_run_stop(run, COORDI_EVENT_STOP, &why);
        return;
    }
    COORDI_LOG(&run->c->log, COORD_LOG_INFO, "task started task=%s worker=%s attempt=%u",
               run->id, run->worker_id, run->attempt);
    if (run->send != NULL) {
        memcpy(run->send->worker_id, run->worker_id, sizeof run->worker_id);
        coordi_op_finish(&run->send->op, COORD_OK, NULL);
        run->send = NULL;
    }
    coordi_run_call_started(run);
    coordi_run_send_ask(run);
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

void coordi_run_pause(coordi_run *run)
{
    coordi_timer_in(run->c->loop, &run->timer,
                    run->c->config.request_retry_wait_ms * run->failures);
}

void coordi_run_send_close(coordi_run *run)
{
    run->close_sent = true;
    send_named(run, run->kind->close_name, run->c->config.start_timeout_ms);
}

void coordi_run_release(coordi_run *run)
{
    coordi_member_release(run->member, true);
}

void coordi_run_release_open(coordi_run *run)
{
    coordi_member_release(run->member, false);
}

void coordi_run_finish(coordi_run *run)
{
    run->c->counters.finished++;
    if (run->result == NULL) {
        run->result = coordi_strdup("{}");
        run->result_len = run->result == NULL ? 0 : 2;
    }
    COORDI_LOG(&run->c->log, COORD_LOG_INFO, "task finished task=%s worker=%s attempt=%u",
               run->id, run->worker_id, run->attempt);
    coordi_run_call_end(run);
}

/* Adds "attempt 1 at 'c0': <why>" to what is known of the attempts before. */
static void remember_attempt(coordi_run *run)
{
    size_t used = strlen(run->past);
    const char *why = run->why.cause[0] == '\0' ? run->why.text : run->why.cause;
    (void)snprintf(run->past + used, sizeof run->past - used,
                   "%sattempt %u at '%.60s': %.100s", used == 0 ? "" : "; ", run->attempt,
                   run->worker_id, why);
    coordi_line_clean(run->past);
}

static void begin_anew(coordi_run *run)
{
    coordi_run_drop_parked(run);
    run->resumes = false;
    run->attempt++;
    run->sequence = 0;
    run->failures = 0;
    run->accepted = false;
    run->close_sent = false;
    run->pause_ms = 0;
    run->c->counters.moved++;
    coordi_run_record_move(run);
}

/* Starts over: what is left of the attempt goes, the host is told, and then the task
 * waits for another worker in front of all others. */
void coordi_run_move(coordi_run *run)
{
    CommCoordinator *c = run->c;
    COORDI_LOG(&c->log, COORD_LOG_WARN,
               "task moved task=%s worker=%s attempt=%u why=\"%s\" cause=\"%s\"", run->id,
               run->worker_id, run->attempt, run->why.text, run->why.cause);
    coordi_timer_stop(c->loop, &run->timer);
    coordi_run_let_go(run);
    remember_attempt(run);
    run->moved_why = run->why;
    begin_anew(run);
    if (run->send != NULL) { /* no callback has run, so there is none to warn */
        coordi_run_dispatch(run, COORDI_EVENT_WARNED);
    } else {
        coordi_run_call_restart(run);
    }
}

static void await_worker(coordi_run *run)
{
    CommCoordinator *c = run->c;
    count_in_queue(run);
    if (c->config.queue_timeout_ms > 0) {
        coordi_timer_in(c->loop, &run->timer, c->config.queue_timeout_ms);
    }
    coordi_coordinator_pump(c, run->kind->role);
}

void coordi_run_queue(coordi_run *run)
{
    COORDI_LOG(&run->c->log, COORD_LOG_INFO, "task queued task=%s role=%s", run->id,
               coord_role_str(run->kind->role));
    coordi_list_append(&run->c->queues[run->kind->role], &run->queue);
    await_worker(run);
}

void coordi_run_queue_again(coordi_run *run)
{
    coordi_list_prepend(&run->c->queues[run->kind->role], &run->queue);
    await_worker(run);
    coordi_coordinator_check_stranded(run->c, run->kind->role);
}

void coordi_run_fail(coordi_run *run)
{
    CommCoordinator *c = run->c;
    c->counters.failed++;
    run->failed = true;
    coordi_timer_stop(c->loop, &run->timer);
    coordi_run_let_go(run);
    if (run->past[0] != '\0') {
        size_t used = strlen(run->why.cause);
        (void)snprintf(run->why.cause + used, sizeof run->why.cause - used, "%s%s",
                       used == 0 ? "" : "; before: ", run->past);
        coordi_line_clean(run->why.cause);
    }
    coordi_run_leave_queue(run);
    COORDI_LOG(&c->log, COORD_LOG_WARN,
               "task failed task=%s worker=%s attempt=%u why=\"%s\" cause=\"%s\"",
               run->id, run->worker_id, run->attempt, run->why.text, run->why.cause);
    if (run->send == NULL) {
        coordi_run_call_end(run);
        return;
    }
    /* It never began: whoever sent it hears of it there, and no callback runs. */
    coordi_op_finish(&run->send->op, run->why.status, &run->why);
    run->send = NULL;
    run->told = true;
    coordi_run_dispatch(run, COORDI_EVENT_TOLD);
}

/* The ledger could not be told of it: it never was. */
void coordi_run_refuse(coordi_run *run)
{
    coordi_run_leave_queue(run);
    run->c->counters.accepted--;
    if (run->send != NULL) {
        coordi_op_finish(&run->send->op, run->why.status, &run->why);
        run->send = NULL;
    }
    coordi_run_end(run);
}

/* The ledger has it, and the next life will go on with it: nobody is told of an end. */
void coordi_run_shelve(coordi_run *run)
{
    coordi_timer_stop(run->c->loop, &run->timer);
    coordi_run_leave_queue(run);
    coordi_run_let_go(run);
    if (run->send != NULL) {
        coord_error why;
        (void)coordi_fail(&why, COORD_ERR_CLOSED, "the coordinator was closed");
        coordi_op_finish(&run->send->op, why.status, &why);
        run->send = NULL;
    }
    coordi_run_call_end(run); /* behind the callback that may run */
}

void coordi_run_end(coordi_run *run)
{
    CommCoordinator *c = run->c;
    (void)coordi_map_remove(&c->runs, run->id);
    atomic_fetch_sub(&c->tasks, 1);
    coordi_lane_close(run->lane);
    run->lane = NULL;
    coordi_op_finish_all(&run->await_end, COORD_OK, NULL);
    coordi_coordinator_check(c);
    coordi_run_unref(run);
}
