/* What both kinds of task have in common: the queue, the moves, the ends.
 *
 * A run lives from coordi_run_create() to COORDI_STATE_ENDED, and its memory until the
 * last callback job that was on its way has come back. dispatch() looks the event up in
 * the kind's table; an event that the state does not know comes too late and is dropped.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "base/line.h"
#include "codec/json.h"
#include "coordinator/membership.h"
#include "coordinator/reason.h"

#include <stdio.h>
#include <string.h>

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
    coordi_free(run->history);
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

/* Workers of use, but for its own. */
static size_t count_others(const coordi_run *run)
{
    size_t ready = run->c->ready[run->kind->role];
    const coordi_member *m = run->member;
    return ready - (m != NULL && coordi_member_is_ready(m) && !m->leaving ? 1 : 0);
}

/* Another attempt needs one that is left, and a worker that is not this one. */
static bool may_move(const coordi_run *run)
{
    const CommCoordinator *c = run->c;
    bool starting =
        c->phase == COORDI_PHASE_STARTING; /* who will be there is not known */
    bool runs = starting || c->phase == COORDI_PHASE_RUNNING;
    if (!runs || run->losses >= (uint64_t)c->config.max_reassign) {
        return false;
    }
    return starting || coordi_membership_may_grow(c) || count_others(run) > 0;
}

void coordi_run_lose(coordi_run *run, coordi_event_kind event, const coord_error *why)
{
    if (run->state == COORDI_STATE_RESUMING) {
        return; /* it is seen when task_resume returns */
    }
    bool moves = may_move(run);
    const bool counts = moves && run->state != COORDI_STATE_AWAITING;
    run->losses += counts;
    run->in_a_row += counts;
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

/* ---- actions ---- */

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

void coordi_run_pause(coordi_run *run)
{
    coordi_timer_in(run->c->loop, &run->timer,
                    run->c->config.request_retry_wait_ms * run->failures);
}

/* `closed`: the worker was sent the close. */
static void release(coordi_run *run, bool closed)
{
    coordi_run_record_closed(run);
    if (run->member != NULL) {
        coordi_member_release(run->member, closed);
    } else { /* after a restart: it was closed before */
        coordi_run_dispatch(run, COORDI_EVENT_RELEASED);
    }
}

void coordi_run_release(coordi_run *run)
{
    release(run, true);
}

void coordi_run_release_open(coordi_run *run)
{
    release(run, false);
}

void coordi_run_finish(coordi_run *run)
{
    run->c->counters.finished++;
    coordi_past_forget(run->c, run->id); /* an earlier one of the same id */
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
    coordi_history_note(run, &run->why);
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
    coordi_coordinator_check_stranded(c, run->kind->role);
}

void coordi_run_queue(coordi_run *run)
{
    COORDI_LOG(&run->c->log, COORD_LOG_INFO, "task queued task=%s role=%s", run->id,
               coord_role_str(run->kind->role));
    coordi_list_append(&run->c->queues[run->kind->role].runs, &run->queue);
    await_worker(run);
}

void coordi_run_queue_again(coordi_run *run)
{
    coordi_list_prepend(&run->c->queues[run->kind->role].runs, &run->queue);
    await_worker(run);
}

void coordi_run_fail(coordi_run *run)
{
    CommCoordinator *c = run->c;
    c->counters.failed++;
    run->failed = true;
    coordi_timer_stop(c->loop, &run->timer);
    coordi_run_let_go(run);
    coordi_past_keep(run);
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
    if (!coordi_run_record_failure(run)) {
        coordi_run_tell_failure(run);
    }
}

void coordi_run_tell_failure(coordi_run *run)
{
    if (run->send != NULL) {
        /* It never began: whoever sent it hears of it there, and no callback runs. */
        coordi_op_finish(&run->send->op, run->why.status, &run->why);
        run->send = NULL;
        run->told = true;
        coordi_run_dispatch(run, COORDI_EVENT_TOLD);
    } else if (run->c->executor != NULL) {
        coordi_run_call_end(run);
    } else { /* the coordinator was destroyed meanwhile */
        coordi_run_dispatch(run, COORDI_EVENT_TOLD);
    }
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
