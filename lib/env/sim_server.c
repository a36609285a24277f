#include "env/sim_http.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>

/* Simulated servers: ports, and what happens to calls when a server goes.
 *
 * A server listens on the loopback interface of its machine, on the machine's address, or
 * on both. On a machine that is itself called 127.0.0.1 the two are the same. */

enum { DEFAULT_BODY_MAX = 16 << 20 }; /* as the real one has it */

/* Which ways in `bind` names on this machine; false: not an address of it. */
static bool read_bind(const coordi_sim_host *host, const char *bind, bool *on_loopback,
                      bool *on_address)
{
    bool any = bind[0] == '\0' || strcmp(bind, "0.0.0.0") == 0 || strcmp(bind, "::") == 0;
    bool loopback = coordi_address_is_loopback(bind);
    bool own = strcmp(bind, host->name) == 0 || strcmp(bind, host->numeric) == 0;
    *on_loopback = any || loopback;
    *on_address = any || own;
    if (host->is_loopback && (any || loopback)) {
        *on_loopback = true;
        *on_address = true;
    }
    return any || loopback || own;
}

static bool is_taken(const coordi_sim_host *host, uint16_t port, bool on_loopback,
                     bool on_address)
{
    for (coordi_link *at = host->servers.next; at != &host->servers; at = at->next) {
        const coordi_http_server *other = COORDI_ITEM(at, coordi_http_server, port_link);
        if (other->port == port &&
            ((other->on_loopback && on_loopback) || (other->on_address && on_address))) {
            return true;
        }
    }
    return false;
}

/* 0: none is free. */
static uint16_t free_port(coordi_sim_host *host, bool on_loopback, bool on_address)
{
    for (int tries = 0; tries < 65536 - 20000; tries++) {
        host->last_port =
            host->last_port == 65535 ? 20000 : (uint16_t)(host->last_port + 1);
        if (!is_taken(host, host->last_port, on_loopback, on_address)) {
            return host->last_port;
        }
    }
    return 0;
}

static coord_status take_port(coordi_http_server *server,
                              const coordi_http_server_spec *spec, coord_error *err)
{
    const char *bind = spec->host == NULL ? "" : spec->host;
    char place[COORDI_HOST_PORT_SIZE];
    coordi_address_print(bind, spec->port, place);
    if (!read_bind(server->host, bind, &server->on_loopback, &server->on_address)) {
        return coordi_fail_errno(err, EADDRNOTAVAIL, "listen on %s", place);
    }
    server->port = spec->port;
    if (spec->port == 0) {
        server->port = free_port(server->host, server->on_loopback, server->on_address);
    }
    if (server->port == 0 ||
        is_taken(server->host, server->port, server->on_loopback, server->on_address)) {
        return coordi_fail_errno(err, EADDRINUSE, "listen on %s", place);
    }
    return COORD_OK;
}

static coord_status open_server(coordi_http_server *server,
                                const coordi_http_server_spec *spec, coord_error *err)
{
    coordi_sim_loop *loop = server->loop;
    if (loop->crashed) {
        return coordi_fail(err, COORD_ERR_NETWORK, "listen: this process has crashed");
    }
    coord_status rc = take_port(server, spec, err);
    if (rc == COORD_OK) {
        server->number = ++loop->sim->server_count;
        coordi_list_append(&loop->servers, &server->link);
        coordi_list_append(&server->host->servers, &server->port_link);
        coordi_sim_tell(loop->sim, loop, "listen %u", server->port);
        coordi_sim_mix(loop->sim, &server->port, sizeof server->port);
    }
    return rc;
}

coord_status coordi_sim_server_create(coord_loop *base,
                                      const coordi_http_server_spec *spec,
                                      coordi_http_server **ret, coord_error *err)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    coordi_http_server *server = coordi_zalloc(sizeof *server);
    if (server == NULL) {
        return coordi_fail_nomem(err, "http server");
    }
    server->loop = loop;
    server->host = loop->host;
    server->max_body_bytes =
        spec->max_body_bytes == 0 ? DEFAULT_BODY_MAX : spec->max_body_bytes;
    server->max_inflight_bytes =
        spec->max_inflight_bytes == 0 ? SIZE_MAX : spec->max_inflight_bytes;
    server->on_call = spec->on_call;
    server->arg = spec->arg;
    coordi_list_init(&server->open);
    coordi_list_init(&server->waiting);
    (void)pthread_mutex_lock(&loop->sim->lock);
    coord_status rc = open_server(server, spec, err);
    (void)pthread_mutex_unlock(&loop->sim->lock);
    if (rc != COORD_OK) {
        coordi_free(server);
        return rc;
    }
    *ret = server;
    return COORD_OK;
}

uint16_t coordi_sim_server_port(const coordi_http_server *server)
{
    return server->port; /* never changes */
}

/* Its connections break. Calls that the owner holds stay his to answer. */
static void close_server(coordi_http_server *server)
{
    coordi_link *at;
    coordi_list_remove(&server->port_link);
    while ((at = coordi_list_pop(&server->open)) != NULL) {
        coordi_sim_call_reset(COORDI_ITEM(at, coordi_sim_call, place));
    }
    while ((at = coordi_list_pop(&server->waiting)) != NULL) {
        coordi_sim_call_reset(COORDI_ITEM(at, coordi_sim_call, place));
    }
}

void coordi_sim_server_destroy(coordi_http_server *server)
{
    if (server == NULL) {
        return;
    }
    coord_sim *sim = server->loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    close_server(server);
    coordi_list_remove(&server->link);
    (void)pthread_mutex_unlock(&sim->lock);
    coordi_free(server);
}

void coordi_sim_servers_die(coordi_sim_loop *loop)
{
    for (coordi_link *at = loop->servers.next; at != &loop->servers; at = at->next) {
        close_server(COORDI_ITEM(at, coordi_http_server, link));
    }
}

coordi_http_server *coordi_sim_server_at(const coordi_sim_target *target, uint16_t port)
{
    const coordi_link *head = &target->host->servers;
    for (coordi_link *at = head->next; at != head; at = at->next) {
        coordi_http_server *server = COORDI_ITEM(at, coordi_http_server, port_link);
        if (server->port == port &&
            (target->is_loopback ? server->on_loopback : server->on_address)) {
            return server;
        }
    }
    return NULL;
}

void coordi_sim_server_room(coordi_http_server *server)
{
    coordi_link *at;
    while ((at = coordi_list_pop(&server->waiting)) != NULL) {
        coordi_sim_call *call = COORDI_ITEM(at, coordi_sim_call, place);
        call->server = NULL;
        coordi_sim_ready(server->loop->sim, &call->actor); /* arrives once more */
    }
}
