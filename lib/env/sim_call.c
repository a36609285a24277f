#include "env/sim_http.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

/* The way of a call: out, at the server, and back. See sim_http.h.
 *
 * States, by (travels, is_back, with_owner):
 *   1 0 0  on its way out, or held by a paused server process, or waiting for room
 *   0 0 1  at the server, to be answered
 *   1 1 1  the connection broke; the client is about to learn it, the owner still answers
 *   0 1 1  the client knows, or never will; the owner still answers
 *   1 1 0  on its way back
 * Whatever has neither travels nor with_owner is freed. */

/* As the real server has them. */
enum {
    FIRST_PART_BYTES = 65536, /* what is shown of a body that is too big */
    SMALL_BODY_BYTES = 4096,  /* never waits for room */
};

static const coordi_sim_outcome REFUSED = {.status = COORD_ERR_LOST,
                                           .why = "connection refused",
                                           .os_errno = ECONNREFUSED,
                                           .undelivered = true};
static const coordi_sim_outcome RESET = {
    .status = COORD_ERR_LOST, .why = "connection reset", .os_errno = ECONNRESET};

/* ---- made and freed ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Without its query, %xx resolved; never longer. */
static void decode_path(const char *from, char *to)
{
    while (*from != '\0' && *from != '?') {
        int high = from[0] == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        if (low >= 0) {
            *to++ = (char)(high * 16 + low);
            from += 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static void act(coord_sim *sim, coordi_sim_actor *actor);

coordi_sim_call *coordi_sim_call_create(coordi_http_request *request)
{
    coord_sim *sim = request->sim;
    coordi_sim_call *call = coordi_zalloc(sizeof *call + strlen(request->path) + 1);
    if (call == NULL || !coordi_sim_add(sim, &call->actor, act, NULL)) {
        coordi_free(call);
        return NULL;
    }
    call->actor.is_message = true;
    decode_path(request->path, call->path);
    call->face.method = request->method;
    call->face.path = call->path;
    call->face.marked = request->marked;
    (void)snprintf(call->face.peer, sizeof call->face.peer, "%s",
                   request->to.is_loopback ? "127.0.0.1" : request->from->numeric);
    call->request = request;
    request->refs++;
    coordi_list_append(&request->calls, &call->sibling);
    coordi_list_append(&sim->calls, &call->link);
    return call;
}

static void free_if_over(coordi_sim_call *call)
{
    if (call->travels || call->with_owner) {
        return;
    }
    coordi_sim_drop(call->request->sim, &call->actor);
    coordi_list_remove(&call->link);
    coordi_list_remove(&call->sibling);
    coordi_list_remove(&call->place);
    coordi_sim_request_unref(call->request);
    coordi_free(call->outcome.body);
    coordi_free(call);
}

void coordi_sim_call_forget(coordi_sim_call *call)
{
    coordi_sim_calm(call->request->sim, &call->actor);
    call->travels = false;
    free_if_over(call);
}

/* The world ends: no process is left that could hold one. */
void coordi_sim_calls_done(coord_sim *sim)
{
    while (!coordi_list_empty(&sim->calls)) {
        coordi_sim_call *call = COORDI_ITEM(sim->calls.next, coordi_sim_call, link);
        call->with_owner = false;
        coordi_sim_call_forget(call);
    }
}

/* Is there still a client to come back to? */
static bool is_listening(const coordi_http_request *request)
{
    return request->peer != NULL && !request->cut_off;
}

/* ---- out ---- */

void coordi_sim_call_send(coordi_sim_call *call)
{
    const coordi_http_request *request = call->request;
    call->travels = true;
    coordi_sim_at(request->sim, &call->actor,
                  coordi_sim_arrival(request->sim, request->from, request->to.host));
}

void coordi_sim_call_return(coordi_sim_call *call, int64_t at_ms,
                            const coordi_sim_outcome *outcome)
{
    const coordi_http_request *request = call->request;
    call->travels = true;
    call->is_back = true;
    call->outcome = *outcome;
    /* While its process stands still, the client learns nothing. */
    call->actor.loop = request->peer == NULL ? NULL : request->peer->loop;
    coordi_sim_at(request->sim, &call->actor, at_ms);
}

void coordi_sim_call_reset(coordi_sim_call *call)
{
    const coordi_http_request *request = call->request;
    call->server = NULL;
    if (!call->is_back) {
        coordi_sim_call_return(
            call, coordi_sim_arrival(request->sim, request->to.host, request->from),
            &RESET);
    }
}

static void refuse(coordi_sim_call *call)
{
    coordi_sim_outcome outcome = REFUSED;
    if (call->request->on_kept) { /* it was sent, into a connection that is no more */
        outcome = RESET;
    }
    coordi_sim_call_return(call, call->request->sim->now_ms, &outcome);
}

void coordi_sim_call_leave_server(coordi_sim_call *call)
{
    coordi_http_server *server = call->server;
    if (server == NULL) {
        return;
    }
    coordi_list_remove(&call->place);
    call->server = NULL;
    server->inflight_bytes -= call->held_bytes;
    coordi_sim_server_room(server);
}

static void deliver(coordi_sim_call *call, coordi_http_server *server)
{
    const coordi_http_request *request = call->request;
    coord_sim *sim = request->sim;
    coord_sim_link plain;
    const coord_sim_link *link =
        coordi_sim_link_of(sim, request->from, request->to.host, &plain);
    call->face.body.ptr = request->body;
    call->face.body.len = call->held_bytes;
    call->face.too_big = request->body_len > server->max_body_bytes;
    call->server = server;
    call->with_owner = true;
    call->travels = false;
    server->inflight_bytes += call->held_bytes;
    coordi_list_append(&server->open, &call->place);
    coordi_sim_tell(sim, server->loop, "request %s %s (%zu bytes) from %s",
                    request->method, call->path, request->body_len, call->face.peer);
    coordi_sim_mix(sim, request->method, strlen(request->method));
    coordi_sim_mix(sim, call->path, strlen(call->path));
    coordi_sim_mix(sim, request->body, request->body_len);
    if (coordi_sim_chance(sim, link->reset_after)) {
        coordi_sim_call_return(
            call, coordi_sim_arrival(sim, request->to.host, request->from), &RESET);
    }
    coordi_sim_loop *loop = server->loop; /* the server may go in there, and the call */
    coordi_sim_enter(loop);
    server->on_call(&call->face, server->arg);
    (void)coordi_sim_leave(loop);
}

static size_t shown_bytes(const coordi_http_server *server, size_t body_len)
{
    if (body_len <= server->max_body_bytes) {
        return body_len;
    }
    return server->max_body_bytes < FIRST_PART_BYTES ? server->max_body_bytes
                                                     : FIRST_PART_BYTES;
}

static bool has_room(const coordi_http_server *server, size_t bytes)
{
    return bytes <= SMALL_BODY_BYTES || server->inflight_bytes == 0 ||
           (server->inflight_bytes < server->max_inflight_bytes &&
            bytes <= server->max_inflight_bytes - server->inflight_bytes);
}

static void arrive(coordi_sim_call *call)
{
    const coordi_http_request *request = call->request;
    coord_sim *sim = request->sim;
    call->actor.loop = NULL;
    if (coordi_sim_is_cut(sim, request->from, request->to.host)) {
        coordi_sim_tell(sim, NULL, "lost in a cut: %s", request->url);
        coordi_sim_call_forget(call);
        return;
    }
    coordi_http_server *server = coordi_sim_server_at(&request->to, request->port);
    if (server == NULL) {
        refuse(call);
        return;
    }
    if (coordi_sim_stands_still(server->loop)) {
        coordi_sim_hold(sim, &call->actor, server->loop);
        return;
    }
    call->held_bytes = shown_bytes(server, request->body_len);
    if (!has_room(server, call->held_bytes)) {
        call->server = server;
        coordi_list_append(&server->waiting, &call->place);
        return;
    }
    deliver(call, server);
}

/* ---- back ---- */

static void come_back(coordi_sim_call *call)
{
    coordi_http_request *request = call->request;
    if (!is_listening(request) ||
        (!call->outcome.local &&
         coordi_sim_is_cut(request->sim, request->to.host, request->from))) {
        coordi_sim_call_forget(call);
        return;
    }
    coordi_sim_outcome outcome = call->outcome;
    call->outcome.body = NULL;
    call->travels = false;
    request->refs++; /* the call's may go first */
    free_if_over(call);
    coordi_sim_request_done(request, &outcome);
    coordi_sim_request_unref(request);
    coordi_free(outcome.body);
}

static void act(coord_sim *sim, coordi_sim_actor *actor)
{
    (void)sim;
    coordi_sim_call *call = COORDI_ITEM(actor, coordi_sim_call, actor);
    if (call->is_back) {
        come_back(call);
    } else {
        arrive(call);
    }
}

/* ---- for the server's owner ---- */

static coordi_sim_call *call_of(coordi_http_call *face)
{
    return (coordi_sim_call *)(void *)face;
}

const char *coordi_sim_call_header(coordi_http_call *face, const char *name)
{
    const coordi_http_request *request = call_of(face)->request;
    if (strcasecmp(name, COORDI_HTTP_MARK) == 0) {
        return request->marked ? "1" : NULL;
    }
    if (strcasecmp(name, "Content-Type") == 0) {
        return "application/json"; /* all say so */
    }
    for (size_t i = 0; i < request->headers->count; i++) {
        if (strcasecmp(request->headers->items[i].name, name) == 0) {
            return request->headers->items[i].value;
        }
    }
    return NULL;
}

/* True when the answer sets out and owns the body. */
static bool set_out(coordi_sim_call *call, coordi_http_server *server, int http_status,
                    char *body, size_t len)
{
    const coordi_http_request *request = call->request;
    coord_sim *sim = request->sim;
    coord_sim_link plain;
    if (call->is_back || server == NULL || !is_listening(request)) {
        return false; /* nobody is there to hear it */
    }
    const coord_sim_link *link =
        coordi_sim_link_of(sim, request->to.host, request->from, &plain);
    if (coordi_sim_is_cut(sim, request->to.host, request->from) ||
        coordi_sim_chance(sim, link->loss)) {
        return false;
    }
    coordi_sim_outcome outcome = {.status = COORD_OK,
                                  .http_status = http_status,
                                  .marked = !server->loop->foreign,
                                  .body = body,
                                  .body_len = len,
                                  .server = server->number};
    coordi_sim_call_return(call, coordi_sim_arrival(sim, request->to.host, request->from),
                           &outcome);
    return true;
}

void coordi_sim_http_answer(coordi_http_call *face, int http_status, char *body,
                            size_t len)
{
    coordi_sim_call *call = call_of(face);
    coordi_http_server *server = call->server;
    coord_sim *sim = call->request->sim;
    (void)pthread_mutex_lock(&sim->lock);
    call->with_owner = false;
    if (!set_out(call, server, body == NULL ? 500 : http_status, body,
                 body == NULL ? 0 : len)) {
        coordi_free(body);
    }
    coordi_sim_call_leave_server(call);
    free_if_over(call);
    (void)pthread_mutex_unlock(&sim->lock);
}
