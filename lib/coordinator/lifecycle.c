/* Start, close, and what everybody waits for in between. */
#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/coordinator.h"

#include <string.h>

/* How long after its start a coordinator takes unknown tokens of Python slaves for those
 * of a run before it, on the same address: a 403 would end their threads for good. They
 * use them for some 8 s after they lost their master. */
enum { STRAYS_MS = 30000 };

/* ---- start ---- */

static void release_everything(CommCoordinator *c)
{
    coord_error why;
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

static coord_status make_master(CommCoordinator *c, coord_error *err)
{
    const coordi_config *config = &c->config;
    coord_master_options options;
    coord_master_options_init(&options, sizeof options);
    options.host = config->host;
    options.port = (uint16_t)config->port;
    options.my_address = config->my_address[0] == '\0' ? NULL : config->my_address;
    options.insecure = config->insecure;
    options.channel = (int32_t)config->channel;
    options.heartbeat_tolerance_ms = config->heartbeat_tolerance_ms;
    options.heartbeat_check_ms = config->heartbeat_check_ms;
    options.request_timeout_ms = config->request_timeout_ms;
    options.request_retry_wait_ms = config->request_retry_wait_ms;
    options.request_retries = (uint32_t)config->request_retries;
    options.executor = COORD_EXECUTOR_INLINE; /* it calls nobody but us */
    options.max_body_bytes = (size_t)config->max_body_bytes;
    options.max_inflight_bytes = (size_t)config->max_inflight_bytes;
    options.log = c->log.sink;
    options.log_level = c->log.level;
    options.user = c->log.user;
    coord_status rc = COORD_ERR_IO;
    uint16_t old_port = c->ledger == NULL ? 0 : coordi_ledger_get_past(c->ledger)->port;
    if (options.port == 0 && old_port != 0) { /* where its workers still look for it */
        options.port = old_port;
        rc = coordi_master_create(c->loop, &options, &c->master, err);
        options.port = 0;
    }
    if (rc == COORD_ERR_IO) {
        rc = coordi_master_create(c->loop, &options, &c->master, err);
    }
    if (rc == COORD_OK) {
        atomic_store(&c->port, c->master->port);
        c->master->strays_until_ms = coordi_now(c->loop) + STRAYS_MS;
        c->master->keeper = (coordi_keeper){coordi_claim, coordi_keep, c};
    }
    return rc;
}

static coord_status make_parts(CommCoordinator *c, coord_error *err)
{
    uint64_t seed;
    c->loop->env->random(c->loop, &seed, sizeof seed);
    c->loop->env->random(c->loop, c->key.bytes, sizeof c->key.bytes);
    coord_status rc = coord_resource_manager_create(&c->policy, seed, &c->resources, err);
    if (rc == COORD_OK) {
        rc =
            coordi_executor_create(c->loop, c->config.executor,
                                   (size_t)c->config.executor_threads, &c->executor, err);
    }
    if (rc == COORD_OK) {
        rc = coordi_lane_open(c->executor, &c->lane, err);
    }
    if (rc == COORD_OK) {
        rc = make_master(c, err);
    }
    for (size_t i = 0; rc == COORD_OK && i < c->config.worker_count; i++) {
        rc = coordi_member_add(c, &c->config.workers[i], err);
    }
    return rc;
}

size_t coordi_coordinator_count_ready(const CommCoordinator *c, coord_role role)
{
    size_t ready = 0;
    size_t at = 0;
    for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
         m = coordi_map_next(&c->members[role], &at)) {
        ready += coordi_member_is_ready(m);
    }
    return ready;
}

/* `room` is for a reason that is made up here. */
static const char *reason_of(const coordi_member *m, char room[COORDI_DOUBT_SIZE])
{
    if (m->connection != NULL &&
        coordi_connection_doubt(m->connection, room, COORDI_DOUBT_SIZE)[0] != '\0') {
        return room;
    }
    if (m->why.status != COORD_OK) {
        return m->why.cause[0] != '\0' ? m->why.cause : m->why.text;
    }
    return m->state == COORDI_MEMBER_ASKING
               ? "connected, but has not said yet what it has"
               : "no answer yet";
}

/* "2 of 3 collectors, missing 'c2': <why>": the first few that are missing. */
static void describe_missing(const CommCoordinator *c, coordi_buf *buf)
{
    char room[COORDI_DOUBT_SIZE];
    int named = 0;
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (!coordi_member_is_ready(m) && named++ < 3) {
                bool quarantined = m->state == COORDI_MEMBER_QUARANTINED;
                coordi_buf_addf(buf, "%s%s '%s' at %s:%u (%s%s)", named > 1 ? ", " : "",
                                coord_role_str((coord_role)role), m->worker.id,
                                m->worker.host, (unsigned)m->worker.port,
                                quarantined ? "quarantined: " : "", reason_of(m, room));
            }
        }
    }
    if (named > 3) {
        coordi_buf_addf(buf, " and %d more", named - 3);
    }
}

static void shelve_runs(CommCoordinator *c)
{
    size_t at = 0;
    for (coordi_run *run = coordi_map_next(&c->runs, &at); run != NULL;
         run = coordi_map_next(&c->runs, &at)) {
        coordi_run_dispatch(run, COORDI_EVENT_SHELVE);
    }
}

/* From a timer, for all is released, and others may stand on the stack. */
static void on_start_failed(coordi_timer *timer)
{
    CommCoordinator *c = COORDI_ITEM(timer, CommCoordinator, start_deadline);
    coord_error err = c->start_failure;
    c->start_failure.status = COORD_OK;
    release_everything(c);
    c->phase = COORDI_PHASE_CREATED;
    coordi_op_finish_all(&c->await_start, err.status, &err);
}

/* Once the callbacks of what the ledger brought back have returned. */
static void check_failed_start(CommCoordinator *c)
{
    if (c->runs.count == 0) {
        c->start_deadline.fire = on_start_failed;
        coordi_timer_in(c->loop, &c->start_deadline, 0);
    }
}

static void finish_start(CommCoordinator *c, coord_status status)
{
    coord_error err = {0};
    coordi_buf missing = {0};
    describe_missing(c, &missing);
    coordi_timer_stop(c->loop, &c->start_deadline);
    if (missing.len > 0) { /* a remark with COORD_OK, the reason otherwise */
        char *text = coordi_buf_take(&missing, NULL);
        (void)coordi_fail(&err, status, "start: missing %s", text == NULL ? "" : text);
        coordi_free(text);
    }
    coordi_buf_done(&missing);
    if (status != COORD_OK) {
        c->start_failure = err;
        c->start_failure.status = status;
        shelve_runs(c);
        check_failed_start(c);
        return;
    }
    c->phase = COORDI_PHASE_RUNNING;
    COORDI_LOG(&c->log, COORD_LOG_INFO, "started port=%u missing=\"%s\"",
               atomic_load(&c->port), err.text);
    coordi_op_finish_all(&c->await_start, status, err.text[0] == '\0' ? NULL : &err);
    for (int role = 0; role < COORDI_ROLES; role++) { /* for what the ledger brought */
        coordi_coordinator_pump(c, (coord_role)role);
    }
}

static void on_unwanted(coordi_timer *timer)
{
    finish_start(COORDI_ITEM(timer, CommCoordinator, start_deadline), COORD_ERR_TIMEOUT);
}

/* Unless whoever called start has been told that it took too long. Then everything is
 * released, from a timer: a member may stand on the stack. */
static void succeed(CommCoordinator *c)
{
    if (!coordi_list_empty(&c->await_start) &&
        coordi_op_claim(COORDI_ITEM(c->await_start.next, coordi_op, link))) {
        finish_start(c, COORD_OK);
        return;
    }
    c->start_deadline.fire = on_unwanted;
    coordi_timer_in(c->loop, &c->start_deadline, 0);
}

static void check_start(CommCoordinator *c)
{
    if (c->start_failure.status != COORD_OK) {
        check_failed_start(c);
        return;
    }
    for (int role = 0; role < COORDI_ROLES; role++) {
        const int64_t min = c->config.min_workers[role];
        if (coordi_coordinator_count_ready(c, (coord_role)role) <
            (min < 0 ? c->members[role].count : (size_t)min)) {
            return;
        }
    }
    succeed(c);
}

static void on_start_deadline(coordi_timer *timer)
{
    CommCoordinator *c = COORDI_ITEM(timer, CommCoordinator, start_deadline);
    for (int role = 0; role < COORDI_ROLES; role++) {
        if (c->members[role].count > 0 &&
            coordi_coordinator_count_ready(c, (coord_role)role) == 0) {
            finish_start(c, COORD_ERR_TIMEOUT);
            return;
        }
    }
    succeed(c);
}

static void connect_members(CommCoordinator *c)
{
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (m->state == COORDI_MEMBER_AWAY && !coordi_timer_is_set(&m->retry)) {
                coordi_member_connect(m);
            }
        }
    }
}

static void on_ledger_idle(void *arg)
{
    coordi_coordinator_check(arg);
}

coord_status coordi_coordinator_begin(CommCoordinator *c, coordi_ledger *ledger,
                                      coord_error *err)
{
    if (c->phase != COORDI_PHASE_CREATED) {
        coordi_ledger_close(ledger);
        return coordi_fail(err, COORD_ERR_STATE, "start: started or closed already");
    }
    c->ledger = ledger;
    coord_status rc = make_parts(c, err);
    if (rc == COORD_OK && ledger != NULL) {
        coordi_ledger_on_idle(ledger, on_ledger_idle, c);
        rc = coordi_coordinator_restore(c, err);
    }
    if (rc != COORD_OK) {
        release_everything(c);
        return rc;
    }
    c->phase = COORDI_PHASE_STARTING;
    c->start_deadline.fire = on_start_deadline;
    coordi_timer_in(c->loop, &c->start_deadline, c->config.max_retry_ms);
    connect_members(c);
    return COORD_OK;
}

/* ---- while it runs ---- */

void coordi_coordinator_check_stranded(CommCoordinator *c, coord_role role)
{
    if (c->phase != COORDI_PHASE_RUNNING || coordi_coordinator_count_ready(c, role) > 0) {
        return;
    }
    coordi_link *link = c->queues[role].next;
    while (link != &c->queues[role]) {
        coordi_run *run = COORDI_ITEM(link, coordi_run, queue);
        link = link->next;
        if (run->losses > 0) {
            coord_error why = run->moved_why;
            coordi_run_stop(run, COORDI_EVENT_LOST, &why);
        }
    }
}

void coordi_coordinator_pump(CommCoordinator *c, coord_role role)
{
    while (c->phase == COORDI_PHASE_RUNNING && !coordi_list_empty(&c->queues[role])) {
        coordi_run *run = COORDI_ITEM(c->queues[role].next, coordi_run, queue);
        const char *id;
        if (coord_resource_manager_assign(c->resources, role,
                                          (coord_text){run->task, run->task_len}, &id,
                                          NULL) != COORD_OK) {
            return;
        }
        coordi_member *m = coordi_map_get(&c->members[role], id);
        coordi_member_set_state(m, COORDI_MEMBER_WORKING);
        m->run = run;
        run->member = m;
        memcpy(run->worker_id, m->worker.id, sizeof run->worker_id);
        coordi_run_dispatch(run, COORDI_EVENT_ASSIGNED);
    }
}

static void check_close(CommCoordinator *c);

void coordi_coordinator_check(CommCoordinator *c)
{
    if (c->runs.count == 0) {
        coordi_op_finish_all(&c->await_empty, COORD_OK, NULL);
    }
    if (c->phase == COORDI_PHASE_STARTING) {
        check_start(c);
    } else if (c->phase == COORDI_PHASE_CLOSING) {
        check_close(c);
    }
}

/* ---- close ---- */

static size_t count_members(const CommCoordinator *c)
{
    size_t count = 0;
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            count += m->state != COORDI_MEMBER_GONE;
        }
    }
    return count;
}

/* The last one to go may still stand on the stack: everything is released from a timer.
 */
static void on_all_gone(coordi_timer *timer)
{
    CommCoordinator *c = COORDI_ITEM(timer, CommCoordinator, close_deadline);
    release_everything(c);
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
    if (c->runs.count == 0 && count_members(c) == 0 && written) {
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

/* Time is up: nobody on the wire is waited for any more. If runs are left then, the
 * host's own callbacks keep them. */
static void on_close_deadline(coordi_timer *timer)
{
    CommCoordinator *c = COORDI_ITEM(timer, CommCoordinator, close_deadline);
    drop_members(c);
    if (c->runs.count == 0) {
        c->close_deadline.fire = on_all_gone; /* whatever the ledger still has to write */
        coordi_timer_in(c->loop, &c->close_deadline, 0);
        return;
    }
    size_t at = 0;
    coordi_run *first = coordi_map_next(&c->runs, &at);
    coord_error err;
    (void)coordi_fail(&err, COORD_ERR_TIMEOUT,
                      "close: %s of task '%.100s' %s after close_timeout_s (%g); %zu "
                      "tasks are left",
                      first->writes > 0 ? "the ledger's record" : "a callback", first->id,
                      first->writes > 0 ? "is not written" : "still runs",
                      (double)c->config.close_timeout_ms / 1000.0, c->runs.count);
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
    stop_runs(c);
    coordi_ledger_close(c->ledger); /* who is connected stays so in it */
    c->ledger = NULL;
    drop_members(c);
    release_everything(c);
    c->phase = COORDI_PHASE_CLOSED;
    coordi_op_finish_all(&c->await_close, COORD_OK, NULL);
    coordi_op_finish_all(&c->await_empty, COORD_OK, NULL);
}
