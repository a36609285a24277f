#include "env/real_client.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Vocabulary
 *   waiting   a request whose peer's name is being resolved
 *   flying    a request that libcurl has
 *   landed    libcurl is done with it: its owner is told, or the next address is tried
 *
 * A request that could not connect has certainly not been delivered, so it goes on to the
 * next address of its peer's name; the name is asked for again when all have refused, or
 * after NAME_FRESH_MS. Done functions run from the loop's turn, never from within a call
 * of ours; they may cancel requests and destroy peers, this one's too. */

enum {
    NAME_FRESH_MS = 5000,
    DEFAULT_REPLY_BYTES = 1 << 20,
    HTTP_PORT = 80,
};

/* ---- telling the owner ---- */

static void request_free(coordi_http_request *request)
{
    coordi_list_remove(&request->link);
    coordi_heap_cancel(&request->peer->loop->timers, &request->timer);
    coordi_shard_recall(request);
    coordi_buf_done(&request->reply);
    coordi_free(request->path);
    coordi_free(request->body);
    coordi_free(request);
}

static void finish(coordi_http_request *request, coord_status status, int http_status,
                   const coord_error *error)
{
    coordi_http_done_fn *done = request->done;
    void *arg = request->arg;
    coordi_buf body = request->reply;
    request->reply = (coordi_buf){0};
    const coordi_http_reply reply = {
        .status = status,
        .undelivered = !request->begun,
        .marked = request->marked,
        .http_status = http_status,
        .body = {body.ptr, body.len},
        .error = error,
    };
    request_free(request); /* first: the owner may destroy the peer */
    done(&reply, arg);
    coordi_buf_done(&body);
}

static void place(const coordi_http_request *request, char *out, size_t size)
{
    char host_port[COORDI_HOST_PORT_SIZE];
    coordi_address_print(request->peer->address.host, request->peer->address.port,
                         host_port);
    (void)snprintf(out, size, "%s http://%.120s%.40s%.60s", request->method, host_port,
                   request->peer->address.prefix, request->path);
}

static void finish_failed(coordi_http_request *request, const coord_error *why)
{
    char where[256];
    coord_error error;
    place(request, where, sizeof where);
    coord_status status = coordi_fail_because(&error, why->status, why, "%s: %s", where,
                                              coord_status_str(why->status));
    finish(request, status, 0, &error);
}

/* ---- sending ---- */

/* Sends to the next address that has not refused yet. */
static coord_status launch(coordi_http_request *request, coord_error *err)
{
    coordi_http_peer *peer = request->peer;
    const size_t count = peer->known.count;
    const size_t left = request->tried < count ? count - request->tried : 1;
    const int64_t time = request->deadline_ms - coordi_real_now();
    if (time <= 0) {
        return coordi_fail(err, COORD_ERR_TIMEOUT, "no time left to connect");
    }
    /* A silent address must leave time for those behind it. */
    int64_t share = time / (int64_t)left;
    if (request->connect_ms > 0 && request->connect_ms < share) {
        share = request->connect_ms;
    }
    const char *numeric = peer->known.text[(peer->good + request->tried) % count];
    coord_status rc =
        coordi_shard_send(request, numeric, time, share < 1 ? 1 : share, err);
    if (rc == COORD_OK) {
        coordi_heap_cancel(&peer->loop->timers, &request->timer);
        coordi_list_remove(&request->link);
        coordi_list_append(&peer->flying, &request->link);
    }
    return rc;
}

/* Lets the name be asked for again by the next request. */
static void doubt(coordi_http_peer *peer)
{
    if (peer->known_until_ms != INT64_MAX) {
        peer->known_until_ms = 0;
    }
}

static coord_status status_of(const coordi_http_request *request, CURLcode code,
                              int os_errno)
{
    if (request->too_big) {
        return COORD_ERR_TOO_BIG;
    }
    if (request->reply.failed) {
        return COORD_ERR_NOMEM;
    }
    if (request->flooded) {
        return COORD_ERR_PROTOCOL;
    }
    if (request->open_errno != 0 || os_errno == EADDRNOTAVAIL || os_errno == EACCES) {
        return COORD_ERR_NETWORK;
    }
    switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
        return COORD_ERR_TIMEOUT;
    case CURLE_OUT_OF_MEMORY:
        return COORD_ERR_NOMEM;
    case CURLE_UNSUPPORTED_PROTOCOL: /* HTTP/0.9: anything without a head */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return COORD_ERR_PROTOCOL;
    default:
        return COORD_ERR_LOST;
    }
}

static void fail_landed(coordi_http_request *request, CURLcode code, int os_errno,
                        const char *words)
{
    char where[256];
    place(request, where, sizeof where);
    if (request->open_errno != 0) {
        os_errno = request->open_errno;
    }
    coord_error error;
    const coord_status status = status_of(request, code, os_errno);
    (void)coordi_fail(&error, status, "%s: %s", where, coord_status_str(status));
    error.os_errno = os_errno;
    char errno_words[128] = "";
    const char *said =
        os_errno == 0 ? "" : strerror_r(os_errno, errno_words, sizeof errno_words);
    if (request->too_big) {
        (void)snprintf(error.cause, sizeof error.cause, "the answer is over %zu bytes",
                       request->max_reply_bytes);
    } else if (request->flooded) {
        (void)snprintf(error.cause, sizeof error.cause,
                       "the answer's headers do not end");
    } else {
        (void)snprintf(error.cause, sizeof error.cause, "%s%s%s", words,
                       said[0] == '\0' ? "" : ": ", said);
    }
    finish(request, status, 0, &error);
}

void coordi_client_landed(coordi_http_request *request, CURLcode code, int http_status,
                          int os_errno, const char *words)
{
    coordi_http_peer *peer = request->peer;
    request->too_big = request->too_big || code == CURLE_FILESIZE_EXCEEDED;
    if (code == CURLE_OK && request->headed) {
        if (request->tried > 0 && peer->known.count > 0) {
            peer->good = (peer->good + request->tried) % peer->known.count;
        }
        finish(request, COORD_OK, http_status, NULL);
        return;
    }
    const bool try_next = !request->begun && request->open_errno == 0 &&
                          code != CURLE_OUT_OF_MEMORY &&
                          request->tried + 1 < peer->known.count &&
                          coordi_real_now() < request->deadline_ms;
    if (try_next) {
        coord_error error;
        request->tried++;
        if (launch(request, &error) != COORD_OK) {
            finish_failed(request, &error);
        }
        return;
    }
    if (!request->begun) {
        doubt(peer);
    }
    fail_landed(request, code, os_errno,
                code == CURLE_OK ? "the connection ended within the answer's head"
                                 : words);
}

/* ---- names ---- */

static void on_answer(const coordi_addresses *found, const coord_error *error, void *arg)
{
    coordi_http_peer *peer = arg;
    bool gone = false;
    peer->asking = NULL;
    peer->gone = &gone;
    if (error == NULL) {
        peer->known = *found;
        peer->good = 0;
        peer->known_until_ms = coordi_real_now() + NAME_FRESH_MS;
    }
    size_t count = 0; /* those that wait now; owners may bring new ones meanwhile */
    for (coordi_link *at = peer->waiting.next; at != &peer->waiting; at = at->next) {
        count++;
    }
    for (; count > 0 && !gone && !coordi_list_empty(&peer->waiting); count--) {
        coordi_http_request *request =
            COORDI_ITEM(peer->waiting.next, coordi_http_request, link);
        coord_error why;
        if (error != NULL) {
            finish_failed(request, error);
        } else if (launch(request, &why) != COORD_OK) {
            finish_failed(request, &why);
        }
    }
    if (!gone) {
        coordi_client_tell_paths(peer, error);
    }
    if (!gone) {
        peer->gone = NULL;
    }
}

bool coordi_client_is_known(const coordi_http_peer *peer)
{
    return peer->known.count > 0 && coordi_real_now() < peer->known_until_ms;
}

coord_status coordi_client_ask(coordi_http_peer *peer, coord_error *err)
{
    if (peer->asking != NULL) {
        return COORD_OK;
    }
    return coordi_real_ask(peer->loop, peer->address.host, on_answer, peer, &peer->asking,
                           err);
}

static void waited_too_long(coordi_timer *timer)
{
    coordi_http_request *request = COORDI_ITEM(timer, coordi_http_request, timer);
    coord_error why;
    (void)coordi_fail(&why, COORD_ERR_TIMEOUT, "resolve '%s': no answer in time",
                      request->peer->address.host);
    finish_failed(request, &why);
}

/* ---- requests ---- */

static coordi_http_request *request_create(coordi_http_peer *peer,
                                           const coordi_http_spec *spec)
{
    coordi_http_request *request = coordi_zalloc(sizeof *request);
    if (request == NULL) {
        return NULL;
    }
    request->path = coordi_strdup(spec->path);
    if (request->path == NULL) {
        coordi_free(request);
        return NULL;
    }
    const int64_t time = spec->timeout_ms < 1 ? 1 : spec->timeout_ms;
    request->peer = peer;
    request->timer.fire = waited_too_long;
    request->method = spec->method;
    request->body = spec->body;
    request->body_len = spec->body_len;
    request->deadline_ms = coordi_real_now() + (time > INT_MAX ? INT_MAX : time);
    request->connect_ms = spec->connect_ms;
    request->fresh = spec->fresh;
    request->max_reply_bytes =
        spec->max_reply_bytes == 0 ? DEFAULT_REPLY_BYTES : spec->max_reply_bytes;
    if (request->max_reply_bytes > INT_MAX) {
        request->max_reply_bytes = INT_MAX;
    }
    request->done = spec->done;
    request->arg = spec->arg;
    coordi_list_append(&peer->waiting, &request->link);
    return request;
}

static int64_t resolve_until(const coordi_http_request *request)
{
    const int64_t at_ms = coordi_real_now() + request->connect_ms;
    return request->connect_ms > 0 && at_ms < request->deadline_ms ? at_ms
                                                                   : request->deadline_ms;
}

coord_status coordi_real_http_send(coordi_http_peer *peer, const coordi_http_spec *spec,
                                   coordi_http_request **ret, coord_error *err)
{
    coordi_http_request *request = request_create(peer, spec);
    if (request == NULL) {
        coordi_free(spec->body);
        return coordi_fail_nomem(err, "http request");
    }
    coord_status rc;
    if (coordi_client_is_known(peer)) {
        rc = launch(request, err);
    } else {
        rc = coordi_client_ask(peer, err);
        coordi_heap_set(&peer->loop->timers, &request->timer, resolve_until(request));
    }
    if (rc != COORD_OK) {
        request_free(request);
        return rc;
    }
    if (ret != NULL) {
        *ret = request;
    }
    return COORD_OK;
}

void coordi_real_http_cancel(coordi_http_request *request)
{
    if (request != NULL) {
        request_free(request);
    }
}

/* ---- peers ---- */

static bool is_header_text(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool add_line(coordi_http_peer *peer, const char *text)
{
    struct curl_slist *longer = curl_slist_append(peer->headers, text);
    if (longer != NULL) {
        peer->headers = longer;
    }
    return longer != NULL;
}

static bool add_header(coordi_http_peer *peer, const char *name, const char *value)
{
    coordi_buf text = {0};
    /* libcurl's spelling for a header without a value ends in ";" */
    coordi_buf_addf(&text, value[0] == '\0' ? "%s;%s" : "%s: %s", name, value);
    char *whole = coordi_buf_take(&text, NULL);
    bool added = whole != NULL && add_line(peer, whole);
    coordi_free(whole);
    return added;
}

static coord_status set_headers(coordi_http_peer *peer, const coordi_http_header *headers,
                                size_t count, coord_error *err)
{
    char host[COORDI_HOST_PORT_SIZE];
    coordi_address_print(peer->address.host, peer->address.port, host);
    if (peer->address.port == HTTP_PORT) {
        *strrchr(host, ':') = '\0';
    }
    bool added =
        add_header(peer, "Host", host) &&
        add_line(peer, "Content-Type: application/json") &&
        add_line(peer, "Expect:") && /* an HTTP/1.0 server never says "continue" */
        add_header(peer, COORDI_HTTP_MARK, "1");
    for (size_t i = 0; added && i < count; i++) {
        if (!is_header_text(headers[i].name) || !is_header_text(headers[i].value)) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "header '%.40s': control characters are not allowed",
                               headers[i].name);
        }
        added = add_header(peer, headers[i].name, headers[i].value);
    }
    return added ? COORD_OK : coordi_fail_nomem(err, "http peer");
}

coord_status coordi_real_peer_create(coord_loop *loop, const coordi_address *address,
                                     const coordi_http_header *headers,
                                     size_t header_count, coordi_http_peer **ret,
                                     coord_error *err)
{
    if (address->https) {
        return coordi_fail(err, COORD_ERR_UNSUPPORTED,
                           "https://%.100s: this release speaks http only",
                           address->host);
    }
    coordi_http_peer *peer = coordi_zalloc(sizeof *peer);
    if (peer == NULL) {
        return coordi_fail_nomem(err, "http peer");
    }
    peer->loop = coordi_real(loop);
    peer->address = *address;
    coordi_list_init(&peer->waiting);
    coordi_list_init(&peer->flying);
    coordi_list_init(&peer->paths);
    if (coordi_real_is_numeric(address->host, &peer->known)) {
        peer->known_until_ms = INT64_MAX;
    }
    coord_status rc = set_headers(peer, headers, header_count, err);
    if (rc == COORD_OK) {
        peer->shard = coordi_shard_join(peer->loop);
        rc = peer->shard == NULL ? coordi_fail_nomem(err, "http peer") : COORD_OK;
    }
    if (rc != COORD_OK) {
        coordi_real_peer_destroy(peer);
        return rc;
    }
    *ret = peer;
    return COORD_OK;
}

void coordi_real_peer_destroy(coordi_http_peer *peer)
{
    if (peer == NULL) {
        return;
    }
    if (peer->gone != NULL) {
        *peer->gone = true;
    }
    while (!coordi_list_empty(&peer->waiting)) {
        request_free(COORDI_ITEM(peer->waiting.next, coordi_http_request, link));
    }
    while (!coordi_list_empty(&peer->flying)) {
        request_free(COORDI_ITEM(peer->flying.next, coordi_http_request, link));
    }
    coordi_client_drop_paths(peer);
    if (peer->asking != NULL) {
        coordi_real_forget(peer->asking);
    }
    if (peer->shard != NULL) {
        coordi_shard_leave(peer->shard);
    }
    curl_slist_free_all(peer->headers);
    coordi_free(peer);
}
