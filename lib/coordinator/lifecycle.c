/* The end of a coordinator, and what everybody waits for until then. Its beginning is in
 * start.c. */
#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/membership.h"

#include <string.h>

void coordi_coordinator_release(CommCoordinator *c)
{
    coord_error why;
    coordi_membership_release(c);
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "the coordinator is closed");
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            coordi_member_free(m);
        }
        coordi_map_done(&c->members[role]);
    }
    coordi_timer_stop(c->loop, &c->start_deadline);
    coordi_timer_stop(c->loop, &c->close_deadline);
    if (c->master != NULL) {
        coordi_master_shut(c->master, &why);
        coordi_master_unref(c->master);
        c->master = NULL;
    }
    coordi_lane_close(c->lane);
    c->lane = NULL;
    coordi_executor_destroy(c->executor);
    c->executor = NULL;
    coord_resource_manager_destroy(c->resources);
    c->resources = NULL;
    atomic_store(&c->port, 0);
    coordi_ledger_close(c->ledger);
    c->ledger = NULL;
    atomic_flag_clear(&c->begun);
}

/* ---- what everybody waits for ---- */

static void check_close(CommCoordinator *c);

void coordi_coordinator_check(CommCoordinator *c)
{
    if (c->runs.count == 0) {
        coordi_op_finish_all(&c->await_empty, COORD_OK, NULL);
    }
    if (c->phase == COORDI_PHASE_STARTING) {
        coordi_coordinator_check_start(c);
    } else if (c->phase == COORDI_PHASE_CLOSING) {
        check_close(c);
    }
}

/* ---- close ---- */

static bool is_any_left(const CommCoordinator *c)
{
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (m->state != COORDI_MEMBER_GONE) {
                return true;
            }
        }
    }
    return false;
}

/* The last one to go may still stand on the stack: everything is released from a timer.
 */
static void on_all_gone(coordi_timer *timer)
{
    CommCoordinator *c = COORDI_ITEM(timer, CommCoordinator, close_deadline);
    coordi_coordinator_release(c);
    c->phase = COORDI_PHASE_CLOSED;
    COORDI_LOG(&c->log, COORD_LOG_INFO, "closed accepted=%llu finished=%llu failed=%llu",
               (unsigned long long)c->counters.accepted,
               (unsigned long long)c->counters.finished,
               (unsigned long long)c->counters.failed);
    coordi_op_finish_all(&c->await_close, COORD_OK, NULL);
    coordi_op_finish_all(&c->await_empty, COORD_OK, NULL);
}

static void check_close(CommCoordinator *c)
{
    bool written = c->ledger == NULL || coordi_ledger_is_idle(c->ledger);
    if (c->runs.count == 0 && c->host_calls == 0 && !is_any_left(c) && written) {
        c->close_deadline.fire = on_all_gone;
        coordi_timer_in(c->loop, &c->close_deadline, 0);
    }
}

static void drop_members(CommCoordinator *c)
{
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "the coordinator is closed");
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            coordi_member_drop(m, &why);
        }
    }
}

static void stop_runs(CommCoordinator *c)
{
    coord_error why;
    size_t at = 0;
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "the coordinator was closed");
    for (coordi_run *run = coordi_map_next(&c->runs, &at); run != NULL;
         run = coordi_map_next(&c->runs, &at)) {
        if (c->ledger != NULL && run->send == NULL) {
            coordi_run_dispatch(run, COORDI_EVENT_SHELVE);
        } else {
            coordi_run_stop(run, COORDI_EVENT_STOP, &why);
        }
    }
}

/* What the host's own code, or the ledger, still keeps when the time is up. */
static void explain_close(const CommCoordinator *c, coord_error *err)
{
    double limit_s = (double)c->config.close_timeout_ms / 1000.0;
    size_t at = 0;
    const coordi_run *first = coordi_map_next(&c->runs, &at);
    if (first == NULL) {
        (void)coordi_fail(err, COORD_ERR_TIMEOUT,
                          "close: a callback about the membership (deal_with_increase_*, "
                          "_decrease_* or _discovery) still runs after close_timeout_s "
                          "(%g)",
                          limit_s);
        return;
    }
    bool writes = first->writes > 0;
    (void)coordi_fail(err, COORD_ERR_TIMEOUT,
                      "close: %s of task '%.100s' %s after close_timeout_s (%g); %zu "
                      "tasks are left",
                      writes ? "the ledger's record" : "a callback", first->id,
                      writes ? "is not written" : "still runs", limit_s, c->runs.count);
}

/* Time is up: nobody on the wire is waited for any more. If runs are left then, the
 * host's own callbacks keep them. */
static void on_close_deadline(coordi_timer *timer)
{
    CommCoordinator *c = COORDI_ITEM(timer, CommCoordinator, close_deadline);
    drop_members(c);
    if (c->runs.count == 0 && c->host_calls == 0) {
        c->close_deadline.fire = on_all_gone; /* whatever the ledger still has to write */
        coordi_timer_in(c->loop, &c->close_deadline, 0);
        return;
    }
    coord_error err;
    explain_close(c, &err);
    coordi_op_finish_all(&c->await_close, COORD_ERR_TIMEOUT, &err);
}

static void leave_members(CommCoordinator *c)
{
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            m->leaving = true;
            if (m->state != COORDI_MEMBER_WORKING && m->state != COORDI_MEMBER_LEAVING &&
                m->state != COORDI_MEMBER_GONE) {
                coordi_member_leave(m);
            }
        }
    }
}

void coordi_coordinator_begin_close(CommCoordinator *c)
{
    if (c->phase == COORDI_PHASE_CLOSED) {
        coordi_op_finish_all(&c->await_close, COORD_OK, NULL);
        return;
    }
    if (c->phase == COORDI_PHASE_STARTING) {
        coord_error err;
        (void)coordi_fail(&err, COORD_ERR_CLOSED, "start: closed meanwhile");
        coordi_op_finish_all(&c->await_start, COORD_ERR_CLOSED, &err);
        coordi_timer_stop(c->loop, &c->start_deadline);
    }
    c->phase = COORDI_PHASE_CLOSING;
    c->close_deadline.fire = on_close_deadline;
    coordi_timer_in(c->loop, &c->close_deadline, c->config.close_timeout_ms * 9 / 10);
    coordi_membership_stop(c);
    leave_members(c); /* those that work for no run */
    stop_runs(c);     /* the others leave as their runs let go of them */
    check_close(c);
}

void coordi_coordinator_tear_down(CommCoordinator *c)
{
    coord_error err;
    (void)coordi_fail(&err, COORD_ERR_CLOSED, "the coordinator was destroyed");
    coordi_op_finish_all(&c->await_start, COORD_ERR_CLOSED, &err);
    c->phase = COORDI_PHASE_CLOSING; /* nobody reconnects */
    coordi_membership_stop(c);
    stop_runs(c);
    coordi_ledger_close(c->ledger); /* who is connected stays so in it */
    c->ledger = NULL;
    drop_members(c);
    coordi_coordinator_release(c);
    c->phase = COORDI_PHASE_CLOSED;
    coordi_op_finish_all(&c->await_close, COORD_OK, NULL);
    coordi_op_finish_all(&c->await_empty, COORD_OK, NULL);
}
