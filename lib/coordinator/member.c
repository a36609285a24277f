/* Workers of the membership: connected, asked for their resources, put into the pool, and
 * brought back when they are lost, for as long as the coordinator runs.
 *
 *   AWAY -> CONNECTING -> ASKING -> FREE -> WORKING -> RECOVERING -> FREE ...
 * Loss leads to AWAY, and from there the timer brings the next attempt. A worker that is
 * alive and of no use becomes QUARANTINED (recover.c). */
#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/membership.h"
#include "coordinator/reason.h"

#include <stdio.h>
#include <string.h>

enum {
    PAUSE_FIRST_MS = 100,
    PAUSE_EAGER_MS = 1000,    /* longest while start still waits, or soon after a loss */
    PAUSE_LONGEST_MS = 30000, /* later on */
    HURRY_MS = 1000           /* longest goodbye of one whose place is wanted */
};

static void on_retry(coordi_timer *timer);

const char *coordi_member_state_str(coordi_member_state state)
{
    static const char *const NAME[] = {
        [COORDI_MEMBER_AWAY] = "away",
        [COORDI_MEMBER_CONNECTING] = "connecting",
        [COORDI_MEMBER_ASKING] = "asking",
        [COORDI_MEMBER_FREE] = "free",
        [COORDI_MEMBER_WORKING] = "working",
        [COORDI_MEMBER_RECOVERING] = "recovering",
        [COORDI_MEMBER_LEAVING] = "leaving",
        [COORDI_MEMBER_GONE] = "gone",
        [COORDI_MEMBER_QUARANTINED] = "quarantined",
    };
    return NAME[state];
}

bool coordi_member_is_ready(const coordi_member *m)
{
    bool has_place = m->state == COORDI_MEMBER_FREE ||
                     m->state == COORDI_MEMBER_WORKING ||
                     m->state == COORDI_MEMBER_RECOVERING;
    return has_place && !m->connection->unproven;
}

bool coordi_member_is_connected(const coordi_member *m)
{
    return coordi_member_is_ready(m) || m->state == COORDI_MEMBER_QUARANTINED;
}

static void count(size_t *number, bool *counted, bool counts)
{
    *number += counts && !*counted;
    *number -= !counts && *counted;
    *counted = counts;
}

void coordi_member_recount(coordi_member *m)
{
    CommCoordinator *c = m->c;
    count(&c->ready[m->worker.role], &m->counted_ready,
          coordi_member_is_ready(m) && !m->leaving);
    count(&c->present[m->worker.role], &m->counted_present,
          m->state != COORDI_MEMBER_GONE);
}

void coordi_member_set_state(coordi_member *m, coordi_member_state state)
{
    m->state = state;
    m->since_ms = coordi_now(m->c->loop);
    coordi_member_recount(m);
}

void coordi_member_set_leaving(coordi_member *m, bool leaving)
{
    m->leaving = leaving;
    coordi_member_recount(m);
}

/* ---- life ---- */

coordi_member *coordi_member_create(CommCoordinator *c,
                                    const coordi_config_worker *worker,
                                    coordi_origin origin)
{
    coordi_member *m = coordi_zalloc(sizeof *m);
    if (m == NULL) {
        return NULL;
    }
    m->c = c;
    m->worker = *worker;
    m->origin = origin;
    m->retry.fire = on_retry;
    m->away_since_ms = coordi_now(c->loop);
    m->since_ms = m->away_since_ms;
    return m;
}

static void forget_connection(coordi_member *m, const coord_error *why)
{
    if (m->connection != NULL) {
        coord_connection *connection = m->connection;
        m->connection = NULL;
        connection->on_lost = NULL;
        coordi_connection_drop(connection, why);
        coordi_connection_unref(connection);
    }
}

static void free_one(coordi_member *m)
{
    coord_error why;
    if (m->connection != NULL) { /* else the pool's entry of this id is another's */
        (void)coordi_fail(&why, COORD_ERR_CLOSED, "the coordinator is closed");
        coordi_member_drop(m, &why);
    }
    coordi_member_set_state(m, COORDI_MEMBER_GONE);
    coordi_timer_stop(m->c->loop, &m->retry);
    coordi_notice_free(m->increase);
    coordi_notice_free(m->decrease);
    coordi_free(m->resource);
    coordi_free(m);
}

void coordi_member_free(coordi_member *m)
{
    while (m != NULL) {
        coordi_member *heir = m->heir;
        free_one(m);
        m = heir;
    }
}

/* Tells the ledger that the connection is over; `politely`: its slave knows. */
static void note_end(const coordi_member *m, bool politely)
{
    const coord_connection *connection = m->connection;
    if (m->c->ledger == NULL || connection == NULL || !connection->was_connected) {
        return;
    }
    if (politely) {
        coordi_ledger_parted(m->c->ledger, connection->token);
    } else {
        coordi_ledger_lost(m->c->ledger, connection->token);
    }
}

/* Out of the pool, off the wire; its run, if it has one, hears of it. */
static void detach(coordi_member *m, const coord_error *why)
{
    coordi_run *run = m->run;
    (void)coord_resource_manager_delete(m->c->resources, m->worker.role, m->worker.id);
    coordi_timer_stop(m->c->loop, &m->retry);
    m->run = NULL;
    m->owed = NULL; /* it may be another process when it comes back */
    m->why = *why;
    m->why_ms = coordi_now(m->c->loop);
    if (run != NULL) {
        run->member = NULL;
        if (run->state == COORDI_STATE_RELEASING) {
            coordi_run_dispatch(run, COORDI_EVENT_RELEASED);
        } else {
            coord_error told;
            (void)coordi_fail_because(&told, COORD_ERR_LOST, why,
                                      "task '%.60s' at '%.60s': lost its worker", run->id,
                                      m->worker.id);
            coordi_run_lose(run, COORDI_EVENT_LOST, &told);
        }
    }
    coordi_member_forget_requests(m);
    note_end(m, m->state == COORDI_MEMBER_GONE && m->parted);
    forget_connection(m, why);
}

void coordi_member_lose(coordi_member *m, const coord_error *why)
{
    coord_error told = *why; /* may belong to what goes now */
    int64_t now = coordi_now(m->c->loop);
    bool was_connected = coordi_member_is_connected(m);
    bool ends = m->leaving || m->c->phase == COORDI_PHASE_CLOSING;

    if (was_connected) {
        m->away_since_ms = now;
        m->pause_ms = 0;
        m->lost_why = told;
        m->lost_ms = now;
        m->c->counters.workers_lost++;
        COORDI_LOG(&m->c->log, COORD_LOG_WARN,
                   "worker lost worker=%s role=%s why=\"%s\" cause=\"%s\"", m->worker.id,
                   coord_role_str(m->worker.role), told.text, told.cause);
    }
    coordi_member_set_state(m, ends ? COORDI_MEMBER_GONE : COORDI_MEMBER_AWAY);
    detach(m, &told);
    if (ends) {
        coordi_membership_gone(m);
    } else {
        bool eager = now - m->away_since_ms < m->c->config.max_retry_ms;
        int64_t longest = eager ? PAUSE_EAGER_MS : PAUSE_LONGEST_MS;
        m->pause_ms = m->pause_ms == 0 ? PAUSE_FIRST_MS : m->pause_ms * 2;
        m->pause_ms = m->pause_ms < longest ? m->pause_ms : longest;
        coordi_timer_in(m->c->loop, &m->retry, m->pause_ms);
    }
    if (was_connected || ends) { /* else one is missing that was missing before */
        coordi_coordinator_check_stranded(m->c, m->worker.role);
        coordi_coordinator_check(m->c);
    }
}

void coordi_member_drop(coordi_member *m, const coord_error *why)
{
    if (m->state != COORDI_MEMBER_GONE) {
        coordi_member_set_state(m, COORDI_MEMBER_GONE);
        detach(m, why);
        coordi_membership_gone(m);
    }
}

/* ---- connecting ---- */

static void on_lost(coord_connection *connection, const coord_error *why, void *arg)
{
    coordi_member *m = arg;
    coord_error told;
    (void)connection;
    coordi_explain_loss(m, why, &told);
    coordi_member_lose(m, &told);
}

/* Not for an adopted one: the ledger has it already. */
static void note_connected(const coordi_member *m)
{
    const coord_connection *connection = m->connection;
    coordi_ledger_worker w = {
        .role = m->worker.role, .port = m->worker.port, .marked = connection->marked};
    if (m->c->ledger != NULL) {
        memcpy(w.id, m->worker.id, sizeof w.id);
        memcpy(w.host, m->worker.host, sizeof w.host);
        memcpy(w.token, connection->token, sizeof w.token);
        coordi_ledger_connected(m->c->ledger, &w);
    }
}

/* An adopted worker has been heard of. */
static void on_proven(coord_connection *connection, void *arg)
{
    coordi_member *m = arg;
    coord_error err;
    (void)connection;
    coordi_member_recount(m);
    if (coordi_member_is_ready(m)) {
        coord_status rc =
            coord_resource_manager_take(m->c->resources, m->worker.role, m->worker.id,
                                        coord_text_of(m->resource), &err);
        if (rc != COORD_OK) {
            coordi_member_lose(m, &err);
            return;
        }
        COORDI_LOG(&m->c->log, COORD_LOG_INFO, "worker kept worker=%s role=%s",
                   m->worker.id, coord_role_str(m->worker.role));
        coordi_membership_ready(m);
    }
    coordi_coordinator_check(m->c);
}

static void on_connected(coord_connection *connection, const coord_error *failure,
                         coord_text data, void *arg)
{
    coordi_member *m = arg;
    (void)connection;
    (void)data;
    if (failure != NULL) {
        coord_error told;
        coordi_explain_connect(failure, &told);
        coordi_member_lose(m, &told);
        return;
    }
    note_connected(m);
    coordi_member_ask(m);
}

void coordi_member_print_key(const coordi_member *m, char key[COORDI_KEY_SIZE])
{
    (void)snprintf(key, COORDI_KEY_SIZE, "%s/%s", coord_role_str(m->worker.role),
                   m->worker.id);
}

static coord_status make_connection(coordi_member *m, coord_error *err)
{
    coord_connection_options options;
    coord_connection_options_init(&options, sizeof options);
    options.id = m->worker.id;
    options.host = m->worker.host;
    options.port = m->worker.port;
    coord_status rc =
        coordi_connection_create(m->c->master, &options, &m->connection, err);
    if (rc == COORD_OK) {
        coordi_member_print_key(m, m->connection->key);
        m->connection->connect_retries = 0; /* our own pauses grow */
        m->connection->on_lost = on_lost;
        m->connection->on_proven = on_proven;
        m->connection->watcher = m;
    }
    return rc;
}

void coordi_member_connect(coordi_member *m)
{
    coord_error err;
    coordi_member_set_state(m, COORDI_MEMBER_CONNECTING);
    coord_status rc = make_connection(m, &err);
    if (rc == COORD_OK) {
        rc = coordi_connection_connect(m->connection, (coord_text){NULL, 0}, on_connected,
                                       m, &err);
    }
    if (rc != COORD_OK) {
        coordi_explain_connect(&err, &err);
        coordi_member_lose(m, &err);
    }
}

bool coordi_member_adopt(coordi_member *m, const coordi_ledger_worker *past,
                         coordi_run *run, const char *resource)
{
    coord_error err;
    coord_status rc = make_connection(m, &err);
    if (rc == COORD_OK) {
        rc = coordi_connection_adopt(m->connection, past->token, past->marked, &err);
    }
    char *copy = rc == COORD_OK ? coordi_strdup(resource) : NULL;
    if (copy != NULL && run != NULL) {
        rc = coordi_connection_knock(m->connection, &err);
    }
    if (copy == NULL || rc != COORD_OK) {
        coordi_free(copy);
        forget_connection(m, &err);
        return false;
    }
    coordi_free(m->resource);
    m->resource = copy;
    if (run == NULL) {
        coordi_member_ask(m);
    } else {
        coordi_member_set_state(m, COORDI_MEMBER_WORKING);
        m->run = run;
        run->member = m;
    }
    return true;
}

static void on_retry(coordi_timer *timer)
{
    coordi_member *m = COORDI_ITEM(timer, coordi_member, retry);
    if (m->state == COORDI_MEMBER_AWAY) {
        coordi_member_connect(m);
    } else if (m->state == COORDI_MEMBER_LEAVING) {
        coord_error why;
        (void)coordi_fail(&why, COORD_ERR_TIMEOUT, "its place was wanted");
        coordi_member_drop(m, &why);
    } else {
        coordi_member_recover_on_timer(m);
    }
}

/* ---- leaving ---- */

void coordi_member_let_run_finish(coordi_member *m)
{
    coordi_run *run = m->run;
    m->run = NULL;
    if (run != NULL) {
        run->member = NULL;
        coordi_run_dispatch(run, COORDI_EVENT_RELEASED);
    }
}

void coordi_member_hurry(coordi_member *m)
{
    if (m->state == COORDI_MEMBER_RECOVERING) {
        coordi_member_leave(m);
    }
    if (m->state == COORDI_MEMBER_LEAVING) {
        coordi_timer_in(m->c->loop, &m->retry, HURRY_MS);
    }
}

static void on_disconnected(coord_connection *connection, const coord_error *failure,
                            coord_text data, void *arg)
{
    coordi_member *m = arg;
    coord_error why;
    (void)connection;
    (void)failure;
    (void)data;
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "disconnected");
    m->parted = true;
    coordi_member_drop(m, &why);
    coordi_coordinator_check(m->c);
}

void coordi_member_leave(coordi_member *m)
{
    coord_error why;
    coordi_member_set_leaving(m, true);
    coordi_member_forget_requests(m);
    coordi_timer_stop(m->c->loop, &m->retry);
    (void)coord_resource_manager_delete(m->c->resources, m->worker.role, m->worker.id);
    coordi_member_let_run_finish(m);
    if (m->connection != NULL &&
        coordi_connection_disconnect(m->connection, (coord_text){NULL, 0},
                                     on_disconnected, m, &why) == COORD_OK) {
        coordi_member_set_state(m, COORDI_MEMBER_LEAVING);
        return;
    }
    (void)coordi_fail(&why, COORD_ERR_CLOSED, "it was to leave, and was not connected");
    coordi_member_drop(m, &why);
    coordi_coordinator_check(m->c);
}
