/* Members that come and go.
 *
 * A member that is removed gets no further task, and leaves when it has none; until then
 * it keeps its id. Who is to come under the same id waits behind it as its heir. Members
 * that have left are freed from a timer, for they may still stand on the stack. */
#include "coordinator/membership.h"

#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/discovery.h"
#include "coordinator/operator_sync.h"
#include "coordinator/roster.h"

#include <string.h>

const char *coordi_origin_str(coordi_origin origin)
{
    static const char *const NAME[] = {
        [COORDI_ORIGIN_CONFIG] = "configuration",
        [COORDI_ORIGIN_HOST] = "host",
        [COORDI_ORIGIN_OPERATOR] = "operator_server",
        [COORDI_ORIGIN_DISCOVERY] = "discovery",
        [COORDI_ORIGIN_LEDGER] = "ledger",
    };
    return NAME[origin];
}

/* ---- notices ---- */

struct coordi_notice {
    coordi_job job; /* on the lane, then back on the loop */
    CommCoordinator *c;
    comm_coordinator_member_fn *call; /* NULL: the host does not want to know */
};

coordi_notice *coordi_notice_create(CommCoordinator *c, comm_coordinator_member_fn *call)
{
    coordi_notice *notice = coordi_zalloc(sizeof *notice);
    if (notice != NULL) {
        notice->c = c;
        notice->call = call;
    }
    return notice;
}

void coordi_notice_free(coordi_notice *notice)
{
    coordi_free(notice);
}

static void notice_returned(coordi_job *job)
{
    coordi_notice *notice = COORDI_ITEM(job, coordi_notice, job);
    CommCoordinator *c = notice->c;
    coordi_notice_free(notice);
    c->host_calls--;
    coordi_coordinator_check(c);
    coordi_coordinator_unref(c);
}

static void run_notice(coordi_job *job)
{
    coordi_notice *notice = COORDI_ITEM(job, coordi_notice, job);
    CommCoordinator *c = notice->c;
    coordi_frame frame;
    if (!atomic_load(&c->dead)) {
        coordi_frame_enter(&frame, c);
        notice->call(c, c->callbacks.user);
        coordi_frame_leave(&frame);
    }
    notice->job.run = notice_returned;
    coordi_post(c->loop, &notice->job);
}

/* Tells the host, and frees the notice. */
static void tell(coordi_notice **slot)
{
    coordi_notice *notice = *slot;
    *slot = NULL;
    if (notice->call == NULL) {
        coordi_notice_free(notice);
        return;
    }
    (void)coordi_coordinator_ref(notice->c);
    notice->c->host_calls++;
    notice->job.run = run_notice;
    coordi_lane_run(notice->c->member_lane, &notice->job);
}

static void forget_notices(coordi_member *m)
{
    coordi_notice_free(m->increase);
    coordi_notice_free(m->decrease);
    m->increase = NULL;
    m->decrease = NULL;
}

/* Those of the configuration are none of them: the host knows them. */
static bool prepare_notices(coordi_member *m)
{
    const comm_coordinator_callbacks *cb = &m->c->callbacks;
    bool learner = m->worker.role == COORD_LEARNER;
    m->increase = coordi_notice_create(m->c, learner ? cb->deal_with_increase_learner
                                                     : cb->deal_with_increase_collector);
    m->decrease = coordi_notice_create(m->c, learner ? cb->deal_with_decrease_learner
                                                     : cb->deal_with_decrease_collector);
    return m->increase != NULL && m->decrease != NULL;
}

void coordi_membership_ready(coordi_member *m)
{
    coordi_coordinator_check_stranded(m->c, m->worker.role);
    if (m->increase != NULL && !m->removed && m->c->phase == COORDI_PHASE_RUNNING) {
        tell(&m->increase);
    }
}

/* ---- adding ---- */

/* Only who needs it has a thread for it. */
static coord_status need_lane(CommCoordinator *c, coord_error *err)
{
    return c->member_lane != NULL ? COORD_OK
                                  : coordi_lane_open(c->executor, &c->member_lane, err);
}

static coord_status make_member(CommCoordinator *c, const coordi_config_worker *worker,
                                coordi_origin origin, coordi_member **ret,
                                coord_error *err)
{
    bool told = origin != COORDI_ORIGIN_CONFIG;
    coord_status rc = told ? need_lane(c, err) : COORD_OK;
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_member *m = coordi_member_create(c, worker, origin);
    if (m == NULL || (told && !prepare_notices(m))) {
        coordi_member_free(m);
        return coordi_fail_nomem(err, "worker");
    }
    *ret = m;
    return COORD_OK;
}

static void connect_if_started(coordi_member *m)
{
    CommCoordinator *c = m->c;
    if (c->phase == COORDI_PHASE_STARTING || c->phase == COORDI_PHASE_RUNNING) {
        coordi_member_connect(m);
    }
}

static bool is_same_address(const coordi_config_worker *a, const coordi_config_worker *b)
{
    return strcmp(a->host, b->host) == 0 && a->port == b->port;
}

/* It was to leave when its task has ended, and may stay. */
static coord_status take_back(coordi_member *m, coordi_origin origin, coord_error *err)
{
    coord_status rc = need_lane(m->c, err);
    forget_notices(m);
    if (rc != COORD_OK || !prepare_notices(m)) {
        forget_notices(m);
        return rc != COORD_OK ? rc : coordi_fail_nomem(err, "worker");
    }
    m->removed = false;
    coordi_member_set_leaving(m, false);
    m->origin = origin;
    coordi_membership_ready(m);
    return COORD_OK;
}

/* Under the id of one that is being removed. */
static coord_status add_again(coordi_member *old, const coordi_config_worker *worker,
                              coordi_origin origin, coord_error *err)
{
    if (old->state == COORDI_MEMBER_WORKING && is_same_address(&old->worker, worker)) {
        return take_back(old, origin, err);
    }
    coord_status rc = make_member(old->c, worker, origin, &old->heir, err);
    if (rc == COORD_OK && !is_same_address(&old->worker, worker)) {
        coordi_member_hurry(old); /* which may be out of reach, as the new one is not */
    }
    return rc;
}

static coord_status add_new(CommCoordinator *c, const coordi_config_worker *worker,
                            coordi_origin origin, coord_error *err)
{
    coordi_member *m = NULL;
    coord_status rc = make_member(c, worker, origin, &m, err);
    if (rc != COORD_OK || m == NULL) {
        return rc;
    }
    if (!coordi_map_put(&c->members[worker->role], worker->id, m)) {
        coordi_member_free(m);
        return coordi_fail_nomem(err, "worker");
    }
    connect_if_started(m);
    return COORD_OK;
}

coordi_member *coordi_membership_find(const CommCoordinator *c, coord_role role,
                                      const char *id)
{
    coordi_member *m = coordi_map_get(&c->members[role], id);
    return m != NULL && m->removed ? m->heir : m;
}

/* Is it one of an earlier life, that nobody has asked for in this one yet? */
static bool claim(coordi_member *m, const coordi_config_worker *worker,
                  coordi_origin origin)
{
    if (m->origin != COORDI_ORIGIN_LEDGER || origin == COORDI_ORIGIN_LEDGER) {
        return false;
    }
    if (is_same_address(&m->worker, worker)) {
        m->origin = origin;
        return true;
    }
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_LOST, "'%.60s' is at %.60s:%u now", worker->id,
                      worker->host, (unsigned)worker->port);
    coordi_membership_remove(m, true, &why);
    return false;
}

coord_status coordi_membership_add(CommCoordinator *c, const coordi_config_worker *worker,
                                   coordi_origin origin, coord_error *err)
{
    coordi_member *there = coordi_membership_find(c, worker->role, worker->id);
    if (there != NULL && claim(there, worker, origin)) {
        return COORD_OK;
    }
    there = coordi_membership_find(c, worker->role, worker->id);
    if (there != NULL) {
        return coordi_fail(err, COORD_ERR_EXISTS,
                           "worker: there is a %s '%.100s' already, of the %s, at "
                           "%.60s:%u",
                           coord_role_str(worker->role), worker->id,
                           coordi_origin_str(there->origin), there->worker.host,
                           (unsigned)there->worker.port);
    }
    coordi_member *old = coordi_map_get(&c->members[worker->role], worker->id);
    coord_status rc = old != NULL ? add_again(old, worker, origin, err)
                                  : add_new(c, worker, origin, err);
    if (rc == COORD_OK && origin != COORDI_ORIGIN_CONFIG) {
        COORDI_LOG(&c->log, COORD_LOG_INFO,
                   "worker added worker=%s role=%s host=%s port=%u origin=%s", worker->id,
                   coord_role_str(worker->role), worker->host, (unsigned)worker->port,
                   coordi_origin_str(origin));
    }
    return rc;
}

/* ---- removing ---- */

/* Gives its task to another worker. A task that is being closed has done its work, and
 * goes to its end in a moment. */
static void displace(coordi_member *m, const coord_error *why)
{
    coordi_run *run = m->run;
    if (run == NULL || run->state == COORDI_STATE_CLOSING) {
        return;
    }
    if (run->state == COORDI_STATE_RESUMING) { /* it sees that when task_resume returns */
        coordi_member_drop(m, why);
        return;
    }
    coord_error told;
    (void)coordi_fail_because(&told, COORD_ERR_LOST, why,
                              "task '%.60s' at '%.60s': lost its worker", run->id,
                              m->worker.id);
    told.reason = why->reason;
    coordi_run_stop(run, COORDI_EVENT_MOVED, &told);
}

static void tell_removal(coordi_member *m)
{
    bool was_told = m->increase == NULL && m->decrease != NULL;
    if (was_told && m->c->phase == COORDI_PHASE_RUNNING) {
        tell(&m->decrease);
    }
    forget_notices(m);
}

static void sweep_soon(CommCoordinator *c)
{
    if (c->phase == COORDI_PHASE_STARTING || c->phase == COORDI_PHASE_RUNNING) {
        coordi_timer_in(c->loop, &c->sweep, 0);
    }
}

void coordi_membership_remove(coordi_member *m, bool drop, const coord_error *why)
{
    CommCoordinator *c = m->c;
    coordi_member *old = coordi_map_get(&c->members[m->worker.role], m->worker.id);
    if (old != m) { /* it has yet to come */
        old->heir = NULL;
        coordi_member_free(m);
        return;
    }
    c->elastic = true;
    if (!m->removed) {
        COORDI_LOG(&c->log, COORD_LOG_INFO,
                   "worker removed worker=%s role=%s state=%s why=\"%s\"", m->worker.id,
                   coord_role_str(m->worker.role), coordi_member_state_str(m->state),
                   why->text);
        tell_removal(m);
    }
    m->removed = true;
    coordi_member_set_leaving(m, true);
    if (m->state == COORDI_MEMBER_WORKING) {
        if (drop) {
            displace(m, why);
        }
    } else if (m->state != COORDI_MEMBER_GONE && m->state != COORDI_MEMBER_LEAVING) {
        coordi_member_leave(m);
    }
    sweep_soon(c); /* also for those who now are the last that are left */
}

/* The place of one that has gone is free, or its heir's. */
static void bury(coordi_member *m)
{
    coordi_map *members = &m->c->members[m->worker.role];
    coordi_member *heir = m->heir;
    m->heir = NULL;
    if (heir != NULL) {
        (void)coordi_map_put(members, heir->worker.id, heir); /* needs no memory */
        connect_if_started(heir);
    } else {
        (void)coordi_map_remove(members, m->worker.id);
    }
    coordi_member_free(m);
}

static void on_sweep(coordi_timer *timer)
{
    CommCoordinator *c = COORDI_ITEM(timer, CommCoordinator, sweep);
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (m->removed && m->state == COORDI_MEMBER_GONE) {
                bury(m);
            }
        }
        coordi_coordinator_check_stranded(c, (coord_role)role);
    }
    coordi_coordinator_check(c);
}

void coordi_membership_gone(coordi_member *m)
{
    if (m->removed) {
        sweep_soon(m->c);
    }
}

/* ---- the life of a coordinator ---- */

coord_status coordi_membership_begin(CommCoordinator *c, coord_error *err)
{
    c->sweep.fire = on_sweep;
    c->elastic |= coordi_membership_has_sources(c);
    coord_status rc = COORD_OK;
    for (size_t i = 0; rc == COORD_OK && i < c->config.worker_count; i++) {
        const coordi_config_worker *worker = &c->config.workers[i];
        coordi_origin origin =
            worker->by_host ? COORDI_ORIGIN_HOST : COORDI_ORIGIN_CONFIG;
        rc = coordi_membership_add(c, worker, origin, err);
    }
    if (rc == COORD_OK) {
        rc = coordi_operator_sync_begin(c->operator_sync, err);
    }
    return rc == COORD_OK ? coordi_discovery_begin(c, err) : rc;
}

void coordi_membership_started(CommCoordinator *c)
{
    coordi_operator_sync_started(c->operator_sync);
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (coordi_member_is_ready(m)) {
                coordi_membership_ready(m);
            }
        }
    }
}

void coordi_membership_settle(CommCoordinator *c)
{
    coord_error why;
    for (int i = 0; i < COORDI_SOURCES; i++) {
        if (c->rosters[i] != NULL && !c->rosters[i]->settled) {
            return;
        }
    }
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (m->origin == COORDI_ORIGIN_LEDGER && !m->removed) {
                (void)coordi_fail(&why, COORD_ERR_LOST,
                                  "nobody lists '%.100s' since the restart",
                                  m->worker.id);
                coordi_membership_remove(m, true, &why);
            }
        }
    }
}

void coordi_membership_stop(CommCoordinator *c)
{
    coordi_discovery_stop(c);
    coordi_operator_sync_stop(c->operator_sync);
    coordi_timer_stop(c->loop, &c->sweep);
    for (int role = 0; role < COORDI_ROLES; role++) {
        coordi_timer_stop(c->loop, &c->queues[role].patience);
    }
}

void coordi_membership_release(CommCoordinator *c)
{
    coordi_membership_stop(c);
    coordi_discovery_release(c);
    coordi_operator_sync_release(c->operator_sync);
    coordi_lane_close(c->member_lane);
    c->member_lane = NULL;
}

size_t coordi_membership_needed(const CommCoordinator *c, coord_role role)
{
    int64_t min = c->config.min_workers[role];
    size_t known = min < 0 ? c->config.role_count[role] : (size_t)min;
    size_t target = coordi_operator_sync_target(c->operator_sync, role);
    return known > target ? known : target;
}

bool coordi_membership_has_sources(const CommCoordinator *c)
{
    return c->config.operator_server.given || c->config.discovery.given;
}

bool coordi_membership_may_grow(const CommCoordinator *c)
{
    return c->elastic;
}
