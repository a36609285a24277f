#include "env/sim_http.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

/* Simulated clients.
 *
 * What a request meets is drawn when it is sent: whether a connection comes about,
 * whether it gets lost, breaks or is doubled. Then its calls go their way (sim_call.c),
 * and either one of them comes back with an outcome, or the deadline does.
 *
 * A request that is not `fresh` may go over the connection that an earlier answer left
 * open. Only those can arrive twice: that is what a client library does which repeats a
 * request by itself when a kept connection dies under it. */

enum { REPLY_BYTES = 1024 * 1024 };

typedef struct sim_path {
    coordi_link link; /* in peer->paths */
    coordi_sim_actor actor;
    coordi_http_peer *peer;
    coordi_http_path_fn *done;
    void *arg;
} sim_path;

/* ---- headers ---- */

static coordi_http_header *find_header(coordi_sim_headers *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (strcasecmp(headers->items[i].name, name) == 0) {
            return &headers->items[i];
        }
    }
    return NULL;
}

static char *place_string(char **at, const char *string)
{
    char *placed = *at;
    size_t size = strlen(string) + 1;
    memcpy(placed, string, size);
    *at += size;
    return placed;
}

/* "a" and "b" become "a,b", as a server reads a header that comes twice. */
static void join_value(char **at, coordi_http_header *header, const char *more)
{
    char *joined = place_string(at, header->value);
    (*at)[-1] = ',';
    (void)place_string(at, more);
    header->value = joined;
}

static coordi_sim_headers *copy_headers(const coordi_http_header *from, size_t count)
{
    size_t bytes = 0;
    size_t longest = 0; /* joining copies what is there once more */
    for (size_t i = 0; i < count; i++) {
        longest += strlen(from[i].value) + 1;
        bytes += strlen(from[i].name) + 1 + longest;
    }
    coordi_sim_headers *headers =
        coordi_zalloc(sizeof *headers + count * sizeof *from + bytes);
    if (headers == NULL) {
        return NULL;
    }
    char *at = (char *)(headers->items + count);
    headers->refs = 1;
    for (size_t i = 0; i < count; i++) {
        coordi_http_header *same = find_header(headers, from[i].name);
        if (same != NULL) {
            join_value(&at, same, from[i].value);
            continue;
        }
        coordi_http_header *item = &headers->items[headers->count++];
        item->name = place_string(&at, from[i].name);
        item->value = place_string(&at, from[i].value);
    }
    return headers;
}

static void unref_headers(coordi_sim_headers *headers)
{
    if (headers != NULL && --headers->refs == 0) {
        coordi_free(headers);
    }
}

/* ---- peers ---- */

coord_status coordi_sim_peer_create(coord_loop *base, const coordi_address *address,
                                    const coordi_http_header *headers,
                                    size_t header_count, coordi_http_peer **ret,
                                    coord_error *err)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    if (address->https) {
        return coordi_fail(err, COORD_ERR_UNSUPPORTED,
                           "https://%.100s: this release speaks http only",
                           address->host);
    }
    coordi_http_peer *peer = coordi_zalloc(sizeof *peer);
    if (peer == NULL) {
        return coordi_fail_nomem(err, "http peer");
    }
    peer->headers = copy_headers(headers, header_count);
    if (peer->headers == NULL) {
        coordi_free(peer);
        return coordi_fail_nomem(err, "http peer");
    }
    peer->loop = loop;
    peer->address = *address;
    coordi_list_init(&peer->requests);
    coordi_list_init(&peer->paths);
    (void)pthread_mutex_lock(&loop->sim->lock);
    coordi_list_append(&loop->peers, &peer->link);
    (void)pthread_mutex_unlock(&loop->sim->lock);
    *ret = peer;
    return COORD_OK;
}

static void free_path(sim_path *path)
{
    coordi_sim_drop(path->peer->loop->sim, &path->actor);
    coordi_list_remove(&path->link);
    coordi_free(path);
}

static void path_act(coord_sim *sim, coordi_sim_actor *actor)
{
    sim_path *path = COORDI_ITEM(actor, sim_path, actor);
    coordi_sim_loop *loop = path->peer->loop;
    coordi_http_path_fn *done = path->done;
    void *arg = path->arg;
    coord_error error;
    coord_status rc = COORD_OK;
    char local[COORDI_SIM_HOST_SIZE];
    const char *name = path->peer->address.host;
    coordi_sim_target to = coordi_sim_resolve(sim, loop->host, name);
    (void)snprintf(local, sizeof local, "%s",
                   to.is_loopback ? "127.0.0.1" : loop->host->numeric);
    if (to.host == NULL && to.is_name) {
        rc = coordi_fail(&error, COORD_ERR_LOST, "%s: no such host", name);
    }
    coordi_sim_tell(sim, loop, "path to %s", name);
    free_path(path);
    coordi_sim_enter(loop);
    done(rc, rc == COORD_OK ? local : NULL, rc == COORD_OK ? NULL : &error, arg);
    (void)coordi_sim_leave(loop);
}

coord_status coordi_sim_peer_path(coordi_http_peer *peer, int64_t timeout_ms,
                                  coordi_http_path_fn *done, void *arg, coord_error *err)
{
    coord_sim *sim = peer->loop->sim;
    (void)timeout_ms; /* looking up a name takes no time here */
    sim_path *path = coordi_zalloc(sizeof *path);
    if (path == NULL) {
        return coordi_fail_nomem(err, "http path");
    }
    path->peer = peer;
    path->done = done;
    path->arg = arg;
    (void)pthread_mutex_lock(&sim->lock);
    bool added = coordi_sim_add(sim, &path->actor, path_act, peer->loop);
    if (added) {
        coordi_list_append(&peer->paths, &path->link);
        coordi_sim_ready(sim, &path->actor);
    }
    (void)pthread_mutex_unlock(&sim->lock);
    if (!added) {
        coordi_free(path);
        return coordi_fail_nomem(err, "http path");
    }
    return COORD_OK;
}

/* ---- the end of a request ---- */

void coordi_sim_request_unref(coordi_http_request *request)
{
    if (--request->refs > 0) {
        return;
    }
    unref_headers(request->headers);
    coordi_free(request->url);
    coordi_free(request->body);
    coordi_free(request);
}

/* Whatever was about to tell the client something need not come any more. */
static void forget_returning(coordi_http_request *request)
{
    coordi_link *next;
    for (coordi_link *at = request->calls.next; at != &request->calls; at = next) {
        next = at->next;
        coordi_sim_call *call = COORDI_ITEM(at, coordi_sim_call, sibling);
        if (call->is_back && call->travels) {
            coordi_sim_call_forget(call);
        }
    }
}

/* Not live any more; the reference of the live one is the caller's to drop. */
static void end(coordi_http_request *request)
{
    request->peer = NULL;
    coordi_list_remove(&request->link);
    coordi_sim_drop(request->sim, &request->deadline);
    forget_returning(request);
}

static void drop(coordi_http_request *request)
{
    end(request);
    coordi_sim_request_unref(request);
}

void coordi_sim_http_cancel(coordi_http_request *request)
{
    coord_sim *sim = request->sim;
    (void)pthread_mutex_lock(&sim->lock);
    drop(request);
    (void)pthread_mutex_unlock(&sim->lock);
}

void coordi_sim_peer_destroy(coordi_http_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    coord_sim *sim = peer->loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    while (!coordi_list_empty(&peer->requests)) {
        drop(COORDI_ITEM(peer->requests.next, coordi_http_request, link));
    }
    while (!coordi_list_empty(&peer->paths)) {
        free_path(COORDI_ITEM(peer->paths.next, sim_path, link));
    }
    coordi_list_remove(&peer->link);
    unref_headers(peer->headers);
    (void)pthread_mutex_unlock(&sim->lock);
    coordi_free(peer);
}

/* In the words of the real client: what and how, and why as the cause. */
static void describe(const coordi_http_request *request,
                     const coordi_sim_outcome *outcome, coord_error *error)
{
    (void)coordi_fail(error, outcome->status, "%s %s: %s", request->method, request->url,
                      coord_status_str(outcome->status));
    error->os_errno = outcome->os_errno;
    if (outcome->why != NULL) {
        (void)snprintf(error->cause, sizeof error->cause, "%s", outcome->why);
    } else {
        (void)snprintf(error->cause, sizeof error->cause, "no %s within %lld ms",
                       outcome->undelivered ? "connection" : "answer",
                       (long long)request->timeout_ms);
    }
}

static void note(const coordi_http_request *request, const coordi_sim_loop *loop,
                 const coordi_sim_outcome *outcome)
{
    coord_sim *sim = request->sim;
    coordi_sim_tell(sim, loop, "reply to %s %s: %s %d (%zu bytes)", request->method,
                    request->url, coord_status_str(outcome->status), outcome->http_status,
                    outcome->body_len);
    int32_t numbers[] = {(int32_t)outcome->status, outcome->http_status,
                         outcome->undelivered};
    coordi_sim_mix(sim, numbers, sizeof numbers);
    coordi_sim_mix(sim, request->path, strlen(request->path));
    coordi_sim_mix(sim, outcome->body, outcome->body_len);
}

void coordi_sim_request_done(coordi_http_request *request,
                             const coordi_sim_outcome *given)
{
    coordi_http_peer *peer = request->peer;
    coordi_sim_loop *loop = peer->loop;
    coordi_sim_outcome outcome = *given;
    coord_error error;
    if (outcome.status == COORD_OK && outcome.body_len > request->max_reply_bytes) {
        outcome = (coordi_sim_outcome){.status = COORD_ERR_TOO_BIG,
                                       .why = "the answer is too big"};
    }
    if (!request->fresh) {
        peer->kept = outcome.status == COORD_OK ? outcome.server : 0;
    }
    note(request, loop, &outcome);
    end(request);
    coordi_http_reply reply = {.status = outcome.status,
                               .undelivered = outcome.undelivered,
                               .marked = outcome.marked,
                               .http_status = outcome.http_status,
                               .body = {outcome.body, outcome.body_len}};
    if (outcome.status != COORD_OK) {
        describe(request, &outcome, &error);
        reply.error = &error;
    }
    coordi_http_done_fn *done = request->done;
    void *arg = request->arg;
    coordi_sim_enter(loop);
    done(&reply, arg);
    (void)coordi_sim_leave(loop);
    coordi_sim_request_unref(request);
}

static void deadline_act(coord_sim *sim, coordi_sim_actor *actor)
{
    (void)sim;
    coordi_http_request *request = COORDI_ITEM(actor, coordi_http_request, deadline);
    coordi_sim_outcome outcome = {.status = COORD_ERR_TIMEOUT,
                                  .undelivered = request->unconnected};
    if (request->cut_off) {
        outcome.status = COORD_ERR_LOST;
        outcome.why = "this process has crashed";
    }
    coordi_sim_request_done(request, &outcome);
}

void coordi_sim_requests_die(coordi_sim_loop *loop)
{
    for (coordi_link *p = loop->peers.next; p != &loop->peers; p = p->next) {
        coordi_http_peer *peer = COORDI_ITEM(p, coordi_http_peer, link);
        for (coordi_link *at = peer->requests.next; at != &peer->requests;
             at = at->next) {
            coordi_http_request *request = COORDI_ITEM(at, coordi_http_request, link);
            request->cut_off = true;
            forget_returning(request);
            coordi_sim_ready(loop->sim, &request->deadline); /* for when it is awake */
        }
    }
}

/* ---- sending ---- */

static bool print_url(coordi_http_request *request, const coordi_address *to,
                      const char *path)
{
    char place[COORDI_HOST_PORT_SIZE];
    coordi_buf url = {0};
    coordi_address_print(to->host, to->port, place);
    coordi_buf_adds(&url, to->https ? "https://" : "http://");
    coordi_buf_adds(&url, place);
    size_t path_at = url.len;
    coordi_buf_adds(&url, to->prefix);
    coordi_buf_adds(&url, path);
    request->url = coordi_buf_take(&url, NULL);
    request->path = request->url == NULL ? NULL : request->url + path_at;
    return request->url != NULL;
}

/* Takes the body over, also when it fails with NULL: out of memory. */
static coordi_http_request *make(coordi_http_peer *peer, const coordi_http_spec *spec)
{
    coord_sim *sim = peer->loop->sim;
    coordi_http_request *request = coordi_zalloc(sizeof *request);
    if (request == NULL) {
        coordi_free(spec->body);
        return NULL;
    }
    request->refs = 1;
    request->sim = sim;
    request->peer = peer;
    request->from = peer->loop->host;
    request->to = coordi_sim_resolve(sim, request->from, peer->address.host);
    request->port = peer->address.port;
    coordi_list_init(&request->calls);
    request->method = spec->method;
    request->body = spec->body;
    request->body_len = spec->body == NULL ? 0 : spec->body_len;
    request->max_reply_bytes =
        spec->max_reply_bytes == 0 ? REPLY_BYTES : spec->max_reply_bytes;
    request->timeout_ms = spec->timeout_ms;
    request->connect_ms = spec->connect_ms;
    request->fresh = spec->fresh;
    request->marked = !peer->loop->foreign;
    request->done = spec->done;
    request->arg = spec->arg;
    request->headers = peer->headers;
    request->headers->refs++;
    if (!print_url(request, &peer->address, spec->path) ||
        !coordi_sim_add(sim, &request->deadline, deadline_act, peer->loop)) {
        coordi_sim_request_unref(request);
        return NULL;
    }
    return request;
}

/* Is the connection still there that the last answer left open? */
static bool has_kept(const coordi_http_request *request)
{
    const coordi_http_server *server =
        request->to.host == NULL ? NULL
                                 : coordi_sim_server_at(&request->to, request->port);
    return !request->fresh && server != NULL && request->peer->kept == server->number;
}

static bool can_connect(const coordi_http_request *request)
{
    const coordi_sim_host *to = request->to.host;
    return to != NULL && !coordi_sim_is_cut(request->sim, request->from, to) &&
           !coordi_sim_is_cut(request->sim, to, request->from);
}

static void send_out(coordi_http_request *request, coordi_sim_call *first,
                     coordi_sim_call *second)
{
    static const coordi_sim_outcome unresolved = {.status = COORD_ERR_LOST,
                                                  .why = "no such host",
                                                  .undelivered = true,
                                                  .local = true};
    static const coordi_sim_outcome reset = {
        .status = COORD_ERR_LOST, .why = "connection reset", .os_errno = ECONNRESET};
    coord_sim *sim = request->sim;
    coord_sim_link plain;
    const coordi_sim_host *to = request->to.host;
    if (to == NULL && request->to.is_name) {
        coordi_sim_call_return(first, sim->now_ms + 1, &unresolved);
        return;
    }
    if (!request->on_kept && !can_connect(request)) {
        request->unconnected = true;
        if (request->connect_ms > 0 && request->connect_ms < request->timeout_ms) {
            request->timeout_ms = request->connect_ms;
            coordi_sim_at(sim, &request->deadline, sim->now_ms + request->timeout_ms);
        }
        return;
    }
    const coord_sim_link *link = coordi_sim_link_of(sim, request->from, to, &plain);
    if (coordi_sim_is_cut(sim, request->from, to) || coordi_sim_chance(sim, link->loss)) {
        return;
    }
    if (coordi_sim_chance(sim, link->reset_before)) {
        coordi_sim_call_return(first, coordi_sim_arrival(sim, request->from, to), &reset);
        return;
    }
    coordi_sim_call_send(first);
    if (second != NULL) {
        coordi_sim_call_send(second);
    }
}

static bool is_doubled(const coordi_http_request *request)
{
    coord_sim_link plain;
    return request->on_kept &&
           coordi_sim_chance(request->sim, coordi_sim_link_of(request->sim, request->from,
                                                              request->to.host, &plain)
                                               ->duplicate);
}

/* All that can fail on the way fails here. */
static bool make_calls(coordi_http_request *request, coordi_sim_call *calls[2])
{
    size_t count = is_doubled(request) ? 2 : 1;
    for (size_t i = 0; i < count; i++) {
        calls[i] = coordi_sim_call_create(request);
        if (calls[i] == NULL) {
            return false;
        }
    }
    return true;
}

static void forget_unsent(coordi_sim_call *calls[2])
{
    for (size_t i = 0; i < 2; i++) {
        if (calls[i] != NULL && !calls[i]->travels) {
            coordi_sim_call_forget(calls[i]);
        }
    }
}

static coord_status start(coordi_http_peer *peer, const coordi_http_spec *spec,
                          coordi_http_request **ret, coord_error *err)
{
    coord_sim *sim = peer->loop->sim;
    coordi_http_request *request = make(peer, spec);
    if (request == NULL) {
        return coordi_fail_nomem(err, "http request");
    }
    request->on_kept = has_kept(request);
    coordi_sim_call *calls[2] = {NULL, NULL};
    if (!make_calls(request, calls)) {
        forget_unsent(calls);
        drop(request);
        return coordi_fail_nomem(err, "http request");
    }
    coordi_list_append(&peer->requests, &request->link);
    if (peer->loop->crashed) { /* nothing leaves a dead process */
        request->cut_off = true;
        coordi_sim_at(sim, &request->deadline, sim->now_ms + 1);
    } else {
        int64_t patience = spec->timeout_ms > 0 ? spec->timeout_ms : 0;
        coordi_sim_at(sim, &request->deadline, sim->now_ms + patience);
        send_out(request, calls[0], calls[1]);
    }
    forget_unsent(calls);
    if (ret != NULL) {
        *ret = request;
    }
    return COORD_OK;
}

coord_status coordi_sim_http_send(coordi_http_peer *peer, const coordi_http_spec *spec,
                                  coordi_http_request **ret, coord_error *err)
{
    coord_sim *sim = peer->loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    coord_status rc = start(peer, spec, ret, err);
    (void)pthread_mutex_unlock(&sim->lock);
    return rc;
}
