#include "interaction/master.h"

#include "base/alloc.h"
#include "base/error.h"
#include "interaction/endpoint.h"

#include <stdio.h>
#include <string.h>

static void run_lost(coordi_heartbeat *beat, int64_t silent_ms);

/* ---- life ---- */

static coord_status check_options(const coord_master_options *o, coord_error *err)
{
    if (o->host == NULL || o->host[0] == '\0' || strlen(o->host) >= COORDI_HOST_SIZE) {
        return coordi_fail(err, COORD_ERR_ARG, "master: host must have 1 to 255 bytes");
    }
    if (o->my_address != NULL && !coordi_address_is_host(o->my_address)) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "master: my_address must be a host's name or address, without "
                           "port and brackets, got \"%.100s\"",
                           o->my_address);
    }
    if (o->heartbeat_tolerance_ms < 1 || o->heartbeat_check_ms < 1 ||
        o->request_timeout_ms < 1 || o->request_retry_wait_ms < 0) {
        return coordi_fail(
            err, COORD_ERR_ARG,
            "master: heartbeat_tolerance_ms (%lld), heartbeat_check_ms "
            "(%lld) and request_timeout_ms (%lld) must be at least 1, "
            "request_retry_wait_ms (%lld) at least 0",
            (long long)o->heartbeat_tolerance_ms, (long long)o->heartbeat_check_ms,
            (long long)o->request_timeout_ms, (long long)o->request_retry_wait_ms);
    }
    if (o->max_body_bytes == 0 || o->max_inflight_bytes < o->max_body_bytes) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "master: max_body_bytes (%zu) must be at least 1 and "
                           "max_inflight_bytes (%zu) no less",
                           o->max_body_bytes, o->max_inflight_bytes);
    }
    return coordi_endpoint_check_host(o->host, o->insecure, "master", err);
}

static void init_fields(coord_master *m, coord_loop *loop, const coord_master_options *o)
{
    atomic_init(&m->refs, 1);
    m->loop = coordi_loop_ref(loop);
    m->options = *o;
    m->options.host = NULL; /* texts are in our own fields */
    m->options.my_address = NULL;
    m->options.loop = NULL;
    (void)snprintf(m->host, sizeof m->host, "%s", o->host);
    (void)snprintf(m->my_address, sizeof m->my_address, "%s",
                   o->my_address == NULL ? "" : o->my_address);
    m->log = (coordi_log){o->log, o->user, o->log_level, "master"};
    m->patience = (coordi_patience){o->request_timeout_ms, o->request_retry_wait_ms,
                                    o->request_retries};
    coordi_list_init(&m->ghosts_oldest_first);
    coordi_list_init(&m->await_close);
    coordi_heartbeats_init(&m->heartbeats, loop, o->heartbeat_tolerance_ms,
                           o->heartbeat_check_ms, run_lost);
    coordi_endpoint_new_token(loop, m->token);
}

coord_status coordi_master_create(coord_loop *loop, const coord_master_options *options,
                                  coord_master **ret, coord_error *err)
{
    coord_status rc = check_options(options, err);
    if (rc != COORD_OK) {
        return rc;
    }
    coord_master *m = coordi_zalloc(sizeof *m);
    if (m == NULL) {
        return coordi_fail_nomem(err, "master");
    }
    init_fields(m, loop, options);
    coordi_http_server_spec spec = {
        .host = m->host,
        .port = options->port,
        .max_body_bytes = options->max_body_bytes,
        .max_inflight_bytes = options->max_inflight_bytes,
        .on_call = coordi_master_on_call,
        .arg = m,
    };
    rc = coordi_executor_create(loop, options->executor, options->executor_threads,
                                &m->executor, err);
    if (rc == COORD_OK) {
        rc = loop->env->server_create(loop, &spec, &m->server, err);
    }
    if (rc != COORD_OK) {
        coordi_executor_destroy(m->executor);
        m->executor = NULL;
        coordi_master_unref(m);
        return rc;
    }
    m->port = loop->env->server_port(m->server);
    COORDI_LOG(&m->log, COORD_LOG_INFO, "listening host=%s port=%u", m->host,
               (unsigned)m->port);
    *ret = m;
    return COORD_OK;
}

coord_master *coordi_master_ref(coord_master *master)
{
    atomic_fetch_add(&master->refs, 1);
    return master;
}

static void free_ghosts(coord_master *m)
{
    for (coordi_link *link = coordi_list_pop(&m->ghosts_oldest_first); link != NULL;
         link = coordi_list_pop(&m->ghosts_oldest_first)) {
        coordi_free(COORDI_ITEM(link, coordi_ghost, link));
    }
    coordi_map_done(&m->ghosts);
}

void coordi_master_unref(coord_master *m)
{
    if (atomic_fetch_sub(&m->refs, 1) != 1) {
        return;
    }
    free_ghosts(m);
    coordi_map_done(&m->by_token);
    coordi_map_done(&m->by_id);
    coordi_map_done(&m->tasks);
    coordi_loop_unref(m->loop);
    coordi_free(m);
}

void coordi_master_shut(coord_master *m, const coord_error *why)
{
    m->closing = true;
    m->deaf = true;
    for (size_t at = 0;;) {
        coord_connection *c = coordi_map_next(&m->by_id, &at);
        if (c == NULL) {
            break;
        }
        coordi_connection_drop(c, why);
    }
    if (m->server != NULL) {
        m->loop->env->server_destroy(m->server);
        m->server = NULL;
        COORDI_LOG(&m->log, COORD_LOG_INFO, "closed late_results=%llu",
                   (unsigned long long)m->late_results);
    }
    coordi_heartbeats_done(&m->heartbeats);
    coordi_executor_destroy(m->executor);
    m->executor = NULL;
}

/* ---- connections ---- */

static void run_lost(coordi_heartbeat *beat, int64_t silent_ms)
{
    coord_connection *c = COORDI_ITEM(beat, coord_connection, beat);
    coord_error why;
    (void)coordi_fail(
        &why, COORD_ERR_LOST, "'%.100s': no heartbeat for %lld ms, tolerated are %lld",
        c->id, (long long)silent_ms, (long long)c->master->heartbeats.tolerance_ms);
    (void)coordi_connection_doubt(c, why.cause, sizeof why.cause);
    coordi_connection_lose(c, &why);
}

coord_status coordi_master_register(coord_master *m, coord_connection *c,
                                    coord_error *err)
{
    if (coordi_map_get(&m->by_id, c->key) != NULL) {
        return coordi_fail(err, COORD_ERR_EXISTS,
                           "connection '%s': another one of this id is connected", c->id);
    }
    if (!coordi_map_put(&m->by_id, c->key, c)) {
        return coordi_fail_nomem(err, "connection");
    }
    if (!coordi_map_put(&m->by_token, c->token, c)) {
        (void)coordi_map_remove(&m->by_id, c->key);
        return coordi_fail_nomem(err, "connection");
    }
    c->registered = true;
    return COORD_OK;
}

void coordi_master_unregister(coord_master *m, coord_connection *c)
{
    if (c->registered) {
        (void)coordi_map_remove(&m->by_id, c->key);
        (void)coordi_map_remove(&m->by_token, c->token);
        c->registered = false;
    }
}

static void remember(coord_master *m, const char *token, const char *key, bool connected)
{
    coordi_ghost *ghost;
    if (m->ghost_count == COORDI_GHOSTS_MAX) {
        ghost = COORDI_ITEM(coordi_list_pop(&m->ghosts_oldest_first), coordi_ghost, link);
        (void)coordi_map_remove(&m->ghosts, ghost->token);
        m->ghost_count--;
    } else {
        ghost = coordi_zalloc(sizeof *ghost);
    }
    /* Without memory its slave gets a plain 403: a courtesy less, nothing worse. */
    if (ghost == NULL || !coordi_map_put(&m->ghosts, token, ghost)) {
        coordi_free(ghost);
        return;
    }
    (void)snprintf(ghost->token, sizeof ghost->token, "%s", token);
    (void)snprintf(ghost->key, sizeof ghost->key, "%s", key);
    ghost->connected = connected;
    coordi_list_append(&m->ghosts_oldest_first, &ghost->link);
    m->ghost_count++;
}

void coordi_master_remember(coord_master *m, const coord_connection *c)
{
    remember(m, c->token, c->key, c->was_connected);
}

void coordi_master_expect(coord_master *m, const char *token, const char *key)
{
    remember(m, token, key, true);
}

/* No connection's key: ids are not empty, and a coordinator's begin with the role. */
static const char STRAY[] = "?";

static const coordi_ghost *nth_ghost(const coord_master *m, const char *key,
                                     bool connected, size_t *n)
{
    for (coordi_link *at = m->ghosts_oldest_first.prev; at != &m->ghosts_oldest_first;
         at = at->prev) {
        const coordi_ghost *ghost = COORDI_ITEM(at, coordi_ghost, link);
        if (ghost->connected == connected && !ghost->denied &&
            strcmp(ghost->key, key) == 0 && (*n)-- == 0) {
            return ghost;
        }
    }
    return NULL;
}

/* Those of connections that came about are before those of attempts of which nobody knows
 * what they did, and both before those that nobody knows at all. */
static const coordi_ghost *old_ghost(const coord_master *m, const coord_connection *c,
                                     size_t n)
{
    const coordi_ghost *ghost = nth_ghost(m, c->key, true, &n);
    if (ghost == NULL) {
        ghost = nth_ghost(m, c->key, false, &n);
    }
    return ghost != NULL ? ghost : nth_ghost(m, STRAY, true, &n);
}

const char *coordi_master_old_token(const coord_master *m, const coord_connection *c,
                                    size_t n)
{
    const coordi_ghost *ghost = old_ghost(m, c, n);
    return ghost == NULL ? NULL : ghost->token;
}

bool coordi_master_deny_token(coord_master *m, const char *token)
{
    coordi_ghost *ghost = coordi_map_get(&m->ghosts, token);
    if (ghost != NULL && strcmp(ghost->key, STRAY) == 0) {
        return false;
    }
    if (ghost != NULL) {
        ghost->denied = true; /* what is still on its way is answered all the same */
    }
    return true;
}

bool coordi_master_humours(coord_master *m, bool foreign, const char *token)
{
    coordi_ghost *ghost = coordi_map_get(&m->ghosts, token);
    size_t len = strlen(token);
    if (ghost == NULL && foreign && len > 0 && len < COORDI_TOKEN_SIZE &&
        coordi_now(m->loop) < m->strays_until_ms) {
        remember(m, token, STRAY, true);
        COORDI_LOG(&m->log, COORD_LOG_INFO, "stray slave: it may be of an earlier run");
        ghost = coordi_map_get(&m->ghosts, token);
    }
    if (ghost == NULL) {
        return false;
    }
    ghost->connected = true; /* for it is used: the connect was slower than its undo */
    ghost->denied = false;
    coordi_list_remove(&ghost->link);
    coordi_list_append(&m->ghosts_oldest_first, &ghost->link);
    return true;
}

static bool is_any(const char *host)
{
    return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

bool coordi_master_needs_path(const coord_master *master)
{
    return master->my_address[0] == '\0' && is_any(master->host);
}

void coordi_master_print_address(const coord_master *master, const char *path_host,
                                 char out[COORDI_HOST_PORT_SIZE + 8])
{
    char host_port[COORDI_HOST_PORT_SIZE];
    const char *host = master->my_address[0] != '\0' ? master->my_address
                       : path_host != NULL           ? path_host
                                                     : master->host;
    coordi_address_print(host, master->port, host_port);
    (void)snprintf(out, COORDI_HOST_PORT_SIZE + 8, "http://%s", host_port);
}
