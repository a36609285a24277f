#include "env/real_server.h"

#include "base/alloc.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

/* A request and its answer. The call is made when the head of the request is in, and is
 * freed when both its connection is done with it (coordi_call_lost) and its owner has
 * answered; a call that its owner never saw belongs to the connection alone. Everything
 * that the owner may look at is copied into the call: the connection, or the whole
 * server, may go before the owner answers. */

enum {
    BODY_STEP = 65536, /* what is only announced is never allocated at once beyond this */
    KEPT_OF_TOO_BIG = 65536,
};

/* ---- creation ---- */

typedef struct head {
    size_t bytes; /* of all names and values with their NULs */
    size_t count;
    char *at; /* where the next one goes; NULL while measuring */
} head;

static char *put(char *at, const char *text)
{
    size_t size = strlen(text) + 1;
    memcpy(at, text, size);
    return at + size;
}

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    (void)kind;
    head *h = arg;
    value = value == NULL ? "" : value;
    if (h->at == NULL) {
        h->bytes += strlen(name) + strlen(value) + 2;
        h->count++;
    } else {
        h->at = put(put(h->at, name), value);
    }
    return MHD_YES;
}

static void print_peer(struct MHD_Connection *connection, char *out, size_t size)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *from = info == NULL ? NULL : info->client_addr;
    out[0] = '\0';
    if (from != NULL && from->sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)from)->sin_addr, out,
                        (socklen_t)size);
    } else if (from != NULL && from->sa_family == AF_INET6) {
        const struct in6_addr *v6 = &((const struct sockaddr_in6 *)from)->sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(v6)) {
            (void)inet_ntop(AF_INET, &v6->s6_addr[12], out, (socklen_t)size);
        } else {
            (void)inet_ntop(AF_INET6, v6, out, (socklen_t)size);
        }
    }
}

static const char *next_text(const char *text)
{
    return text + strlen(text) + 1;
}

/* How much of the body will be kept, and what it costs, from what is announced. */
static void plan_body(coordi_call *call)
{
    const size_t max = call->server->max_body_bytes;
    const size_t kept = max < KEPT_OF_TOO_BIG ? max : KEPT_OF_TOO_BIG;
    const char *announced = MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND,
                                                        MHD_HTTP_HEADER_CONTENT_LENGTH);
    call->body_max = max;
    if (MHD_lookup_connection_value(call->connection, MHD_HEADER_KIND,
                                    MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) {
        call->charge = max; /* unknown: the worst, until it is in */
    } else if (announced != NULL) {
        /* libmicrohttpd has refused what is no number, or too large for one. */
        const unsigned long long len = strtoull(announced, NULL, 10);
        if (len > max) {
            call->base.too_big = true;
            call->body_max = kept;
        } else {
            call->body_max = (size_t)len;
        }
        call->charge = call->body_max;
        call->to_come = len;
    }
}

coordi_call *coordi_call_create(coordi_http_server *server,
                                struct MHD_Connection *connection, const char *method,
                                const char *path)
{
    head h = {0};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &h);
    const size_t bytes = strlen(method) + strlen(path) + 2 + h.bytes;
    coordi_call *call = coordi_zalloc(sizeof *call + bytes);
    if (call == NULL) {
        return NULL;
    }
    call->server = server;
    call->connection = connection;
    char *at = (char *)(call + 1);
    call->base.method = at;
    at = put(at, method);
    call->base.path = at;
    h.at = put(at, path);
    call->headers = h.at;
    call->header_count = h.count;
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, on_header, &h);
    call->base.marked = coordi_real_call_header(&call->base, COORDI_HTTP_MARK) != NULL;
    print_peer(connection, call->base.peer, sizeof call->base.peer);
    plan_body(call);
    return call;
}

static void call_free(coordi_call *call)
{
    coordi_list_remove(&call->link);
    coordi_free(call->body);
    coordi_free(call->joined);
    coordi_free(call);
}

void coordi_call_lost(coordi_call *call)
{
    call->connection = NULL;
    if (call->stage == COORDI_CALL_OPEN) {
        return; /* its owner will answer, and free it then */
    }
    coordi_server_release(call);
    call_free(call);
}

/* ---- headers ---- */

static bool is_same_name(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

const char *coordi_real_call_header(coordi_http_call *base, const char *name)
{
    coordi_call *call = (coordi_call *)base;
    const char *first = NULL;
    coordi_buf all = {0};
    const char *at = call->headers;
    for (size_t i = 0; i < call->header_count; i++) {
        const char *value = next_text(at);
        if (is_same_name(at, name)) {
            if (first == NULL) {
                first = value;
            } else {
                coordi_buf_adds(&all, all.len == 0 ? first : "");
                coordi_buf_add(&all, ",", 1);
                coordi_buf_adds(&all, value);
            }
        }
        at = next_text(value);
    }
    if (all.len == 0 && !all.failed) {
        return first;
    }
    char *joined = coordi_buf_take(&all, NULL);
    coordi_free(call->joined);
    call->joined = joined;
    return joined;
}

/* ---- the body ---- */

/* Makes room for `need` bytes: doubling, but never over what will be kept. */
static bool reserve(coordi_call *call, size_t need)
{
    if (need <= call->body_cap) {
        return true;
    }
    size_t cap = call->body_cap * 2;
    cap = cap < need ? need : cap;
    if (call->body_cap == 0 && cap < BODY_STEP) {
        cap = BODY_STEP;
    }
    cap = cap > call->body_max ? call->body_max : cap;
    char *grown = coordi_realloc(call->body, cap + 1);
    if (grown == NULL) {
        return false;
    }
    call->body = grown;
    call->body_cap = cap;
    return true;
}

/* A body without an announced length has passed the limit. */
static void overflow(coordi_call *call)
{
    call->base.too_big = true;
    call->body_max = call->body_max < KEPT_OF_TOO_BIG ? call->body_max : KEPT_OF_TOO_BIG;
    if (call->body_len > call->body_max) {
        call->body_len = call->body_max;
        char *less = coordi_realloc(call->body, call->body_max + 1);
        if (less != NULL) {
            call->body = less;
            call->body_cap = call->body_max;
        }
    }
}

static bool keep(coordi_call *call, const char *bytes, size_t len)
{
    if (!call->base.too_big && len > call->body_max - call->body_len) {
        overflow(call);
    }
    const size_t room = call->body_max - call->body_len;
    const size_t take = len < room ? len : room;
    if (take == 0) {
        return true;
    }
    if (!reserve(call, call->body_len + take)) {
        return false;
    }
    memcpy(call->body + call->body_len, bytes, take);
    call->body_len += take;
    return true;
}

/* Has the client gone in the middle of its body? libmicrohttpd does not notice an end
 * that comes together with the last bytes, and would keep the connection until it times
 * out. */
static bool is_given_up(const coordi_call *call)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    char byte;
    return call->to_come > 0 && info != NULL &&
           recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool coordi_call_add(coordi_call *call, const char *bytes, size_t len)
{
    call->to_come -= len < call->to_come ? len : call->to_come;
    return keep(call, bytes, len) && !is_given_up(call);
}

/* ---- the answer ---- */

static void free_bytes(void *bytes)
{
    coordi_free(bytes);
}

static bool queue_answer(coordi_call *call, int http_status, char *body, size_t len)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer_with_free_callback(len, body, free_bytes);
    if (response == NULL) {
        coordi_free(body);
        return false;
    }
    bool queued =
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                "application/json") == MHD_YES &&
        MHD_add_response_header(response, COORDI_HTTP_MARK, "1") == MHD_YES &&
        MHD_queue_response(call->connection, (unsigned)http_status, response) == MHD_YES;
    MHD_destroy_response(response); /* drops our reference alone */
    return queued;
}

void coordi_real_http_answer(coordi_http_call *base, int http_status, char *body,
                             size_t len)
{
    coordi_call *call = (coordi_call *)base;
    call->stage = COORDI_CALL_ANSWERED;
    coordi_server_release(call);
    if (call->connection == NULL) {
        coordi_free(body);
        call_free(call);
        return;
    }
    coordi_free(call->body);
    call->body = NULL;
    if (body == NULL) {
        http_status = MHD_HTTP_INTERNAL_SERVER_ERROR;
        len = 0;
    }
    /* An answer that can't be queued leaves the connection without one, and so closed. */
    (void)queue_answer(call, http_status, body, len);
    if (!call->handing_over) {
        coordi_call_resume(call);
    }
}

void coordi_call_hand_over(coordi_call *call)
{
    coordi_http_server *server = call->server;
    call->stage = COORDI_CALL_OPEN;
    call->base.body = (coord_text){call->body, call->body_len};
    call->handing_over = true;
    server->on_call(&call->base, server->arg);
    call->handing_over = false; /* it lives: its connection is on the stack */
    if (call->stage == COORDI_CALL_OPEN) {
        coordi_call_suspend(call);
    }
}

void coordi_call_suspend(coordi_call *call)
{
    call->suspended = true;
    MHD_suspend_connection(call->connection);
}

void coordi_call_resume(coordi_call *call)
{
    if (call->suspended) {
        call->suspended = false;
        MHD_resume_connection(call->connection);
        coordi_server_run_soon(call->server);
    }
}
