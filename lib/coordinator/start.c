/* Start: everything is made, then workers are waited for. */
#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/discovery.h"
#include "coordinator/operator_sync.h"

#include <string.h>

/* How long after its start a coordinator takes unknown tokens of Python slaves for those
 * of a run before it, on the same address: a 403 would end their threads for good. They
 * use them for some 8 s after they lost their master. */
enum { STRAYS_MS = 30000 };

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
    if (rc == COORD_OK) {
        rc = coordi_membership_begin(c, err);
    }
    return rc;
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

/* Workers that start waits for, and that nobody has named. */
static void describe_unknown(const CommCoordinator *c, coordi_buf *buf)
{
    uint64_t failures;
    int64_t since;
    bool lacking = false;
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t needed = coordi_membership_needed(c, (coord_role)role);
        size_t known = c->members[role].count;
        lacking |= known < needed;
        if (known < needed && c->operator_sync == NULL) { /* else that has told it */
            coordi_buf_addf(buf, "%s%zu %s%s that nobody has named",
                            buf->len == 0 ? "" : ", ", needed - known,
                            coord_role_str((coord_role)role),
                            needed - known == 1 ? "" : "s");
        }
    }
    const coord_error *why = coordi_discovery_trouble(c, &failures, &since);
    if (lacking && why != NULL) {
        coordi_buf_addf(buf, " (%s%s%s)", why->text, why->cause[0] == '\0' ? "" : ": ",
                        why->cause);
    }
}

/* "collector 'c2' at host:port (<why>)": the first few that are missing. */
static void describe_missing(const CommCoordinator *c, coordi_buf *buf)
{
    char room[COORDI_DOUBT_SIZE];
    int named = 0;
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (!coordi_member_is_ready(m) && !m->removed && named++ < 3) {
                bool quarantined = m->state == COORDI_MEMBER_QUARANTINED;
                coordi_buf_addf(buf, "%s%s '%s' at %s:%u (%s%s)",
                                buf->len == 0 ? ""
                                : named > 1   ? ", "
                                              : "; ",
                                coord_role_str((coord_role)role), m->worker.id,
                                m->worker.host, (unsigned)m->worker.port,
                                quarantined ? "quarantined: " : "", reason_of(m, room));
            }
        }
    }
    if (named > 3) {
        coordi_buf_addf(buf, " and %d more", named - 3);
    }
    describe_unknown(c, buf);
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
    coordi_coordinator_release(c);
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

/* Who is missing, and why: a remark with COORD_OK, the reason otherwise. */
static void explain_start(const CommCoordinator *c, coord_status status, coord_error *err)
{
    coordi_buf missing = {0};
    const coord_error *because;
    coordi_operator_sync_explain(c->operator_sync, &missing, &because);
    describe_missing(c, &missing);
    if (missing.len > 0) {
        char *text = coordi_buf_take(&missing, NULL);
        (void)coordi_fail_because(err, status, because, "start: missing %s",
                                  text == NULL ? "" : text);
        coordi_free(text);
    }
    coordi_buf_done(&missing);
}

static void finish_start(CommCoordinator *c, coord_status status)
{
    coord_error err = {0};
    explain_start(c, status, &err);
    coordi_timer_stop(c->loop, &c->start_deadline);
    if (status != COORD_OK) {
        coordi_membership_stop(c);
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
    coordi_membership_started(c);
    for (int role = 0; role < COORDI_ROLES; role++) { /* for what the ledger brought */
        coordi_coordinator_pump(c, (coord_role)role);
        coordi_coordinator_check_stranded(c, (coord_role)role);
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

void coordi_coordinator_check_start(CommCoordinator *c)
{
    if (c->start_failure.status != COORD_OK) {
        check_failed_start(c);
        return;
    }
    if (!coordi_operator_sync_has_asked(c->operator_sync)) {
        return;
    }
    for (int role = 0; role < COORDI_ROLES; role++) {
        if (c->ready[role] < coordi_membership_needed(c, (coord_role)role)) {
            return;
        }
    }
    succeed(c);
}

static void on_start_deadline(coordi_timer *timer)
{
    CommCoordinator *c = COORDI_ITEM(timer, CommCoordinator, start_deadline);
    for (int role = 0; role < COORDI_ROLES; role++) {
        bool wanted = c->members[role].count > 0 ||
                      coordi_membership_needed(c, (coord_role)role) > 0;
        if (wanted && c->ready[role] == 0) {
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
        coordi_coordinator_release(c);
        return rc;
    }
    c->phase = COORDI_PHASE_STARTING;
    c->start_deadline.fire = on_start_deadline;
    coordi_timer_in(c->loop, &c->start_deadline, c->config.max_retry_ms);
    connect_members(c);
    return COORD_OK;
}
