#include "support/peers.h"

#include "base/alloc.h"
#include "codec/json.h"
#include "support/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- what comes in ---- */

static void keep(char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from == NULL ? "" : from);
}

/* A test may take memory from others, not from its peers. */
static void respond(peer *p, coordi_http_call *call, int status, const char *body)
{
    heap_spare(true);
    p->loop->env->http_answer(call, status, coordi_strdup(body), strlen(body));
    heap_spare(false);
}

static peer_rule *rule_for(peer *p, const char *path)
{
    for (int i = 0; i < p->rule_count; i++) {
        if (p->rules[i].times != 0 && strcmp(p->rules[i].path, path) == 0) {
            return &p->rules[i];
        }
    }
    return NULL;
}

static void on_call(coordi_http_call *call, void *arg)
{
    peer *p = arg;
    if (p->request_count == PEER_REQUESTS_MAX) {
        respond(p, call, 500, "the peer's book is full");
        return;
    }
    peer_request *r = &p->requests[p->request_count++];
    keep(r->method, sizeof r->method, call->method);
    keep(r->path, sizeof r->path, call->path);
    keep(r->token, sizeof r->token, p->loop->env->call_header(call, "Token"));
    keep(r->channel, sizeof r->channel, p->loop->env->call_header(call, "Channel"));
    (void)snprintf(r->body, sizeof r->body, "%.*s", (int)call->body.len,
                   call->body.len == 0 ? "" : call->body.ptr);
    r->marked = call->marked;
    r->at_ms = coord_sim_now_ms(p->sim);
    peer_rule *rule = rule_for(p, r->path);
    if (rule == NULL) {
        respond(p, call, 200, PEER_YES);
        return;
    }
    rule->times -= rule->times > 0;
    if (rule->status == 0) {
        r->call = call;
    } else {
        respond(p, call, rule->status, rule->body);
    }
}

void peer_open(peer *p, coord_sim *sim, const char *host, bool foreign)
{
    memset(p, 0, sizeof *p);
    p->sim = sim;
    keep(p->host, sizeof p->host, host);
    assert_int_equal(coord_sim_loop(sim, host, &p->loop, NULL), COORD_OK);
    coord_sim_set_foreign(sim, p->loop, foreign);
    coordi_http_server_spec spec = {.host = host,
                                    .max_body_bytes = 1 << 20,
                                    .max_inflight_bytes = 1 << 24,
                                    .on_call = on_call,
                                    .arg = p};
    assert_int_equal(p->loop->env->server_create(p->loop, &spec, &p->server, NULL),
                     COORD_OK);
    p->port = p->loop->env->server_port(p->server);
}

void peer_close(peer *p)
{
    for (int i = 0; i < p->request_count; i++) {
        if (p->requests[i].call != NULL) {
            peer_answer(p, &p->requests[i], 200, PEER_YES);
        }
    }
    for (int i = 0; i < p->reply_count; i++) {
        p->loop->env->peer_destroy(p->out[i]);
    }
    p->loop->env->server_destroy(p->server);
    coord_loop_destroy(p->loop);
}

void peer_script(peer *p, const char *path, int times, int status, const char *body)
{
    assert_true(p->rule_count < PEER_RULES_MAX);
    p->rules[p->rule_count++] = (peer_rule){path, times, status, body};
}

const char *peer_no(int code, const char *data)
{
    static char ring[8][256];
    static unsigned next;
    char *text = ring[next++ % 8];
    (void)snprintf(text, sizeof ring[0],
                   "{\"success\":false,\"code\":%d,\"message\":\"no, %d\",\"data\":%s}",
                   code, code, data == NULL ? "null" : data);
    return text;
}

int peer_count(const peer *p, const char *path)
{
    int count = 0;
    for (int i = 0; i < p->request_count; i++) {
        count += strcmp(p->requests[i].path, path) == 0;
    }
    return count;
}

peer_request *peer_get(peer *p, const char *path, int n)
{
    peer_request *found = NULL;
    for (int i = 0; i < p->request_count; i++) {
        if (strcmp(p->requests[i].path, path) == 0) {
            found = &p->requests[i];
            if (n-- == 0) {
                return found;
            }
        }
    }
    if (found == NULL || n >= 0) {
        fail_msg("%s: no such request of %s", p->host, path);
    }
    return found;
}

typedef struct awaited {
    const peer *p;
    const char *path;
    int count; /* of requests, or index of a reply */
} awaited;

static bool has_come(void *user)
{
    awaited *a = user;
    return peer_count(a->p, a->path) >= a->count;
}

bool peer_await(peer *p, const char *path, int count, int64_t limit_ms)
{
    awaited a = {p, path, count};
    return coord_sim_run_until(p->sim, limit_ms, has_come, &a, NULL) == COORD_OK;
}

void peer_answer(peer *p, peer_request *request, int status, const char *body)
{
    assert_non_null(request->call);
    coordi_http_call *call = request->call;
    request->call = NULL;
    respond(p, call, status, body);
}

/* ---- what goes out ---- */

static void read_reply(peer_reply *r, const coordi_http_reply *reply)
{
    coord_text code = {NULL, 0};
    coord_text success = {NULL, 0};
    int64_t number = -1;
    r->status = reply->status;
    r->http_status = reply->http_status;
    (void)snprintf(r->body, sizeof r->body, "%.*s", (int)reply->body.len,
                   reply->body.len == 0 ? "" : reply->body.ptr);
    (void)coordi_json_get(reply->body, "code", &code, NULL);
    (void)coordi_json_get(reply->body, "success", &success, NULL);
    r->code = coordi_json_int(code, &number) ? (int)number : -1;
    (void)coordi_json_bool(success, &r->success);
}

/* `arg` is the reply itself: peer.replies does not move. */
static void on_reply(const coordi_http_reply *reply, void *arg)
{
    peer_reply *r = arg;
    read_reply(r, reply);
    r->done = true;
}

int peer_send(peer *p, const char *host, uint16_t port, const char *method,
              const char *path, const char *token, const char *channel, const char *body)
{
    const coordi_env *env = p->loop->env;
    coordi_http_header headers[2];
    size_t count = 0;
    coordi_address to = {.port = port};
    int index = p->reply_count++;

    assert_in_range(index, 0, PEER_REPLIES_MAX - 1);
    heap_spare(true);
    keep(to.host, sizeof to.host, host);
    if (channel != NULL) {
        headers[count++] = (coordi_http_header){"Channel", channel};
    }
    if (token != NULL) {
        headers[count++] = (coordi_http_header){"Token", token};
    }
    assert_int_equal(env->peer_create(p->loop, &to, headers, count, &p->out[index], NULL),
                     COORD_OK);
    coordi_http_spec spec = {.method = method,
                             .path = path,
                             .body = body == NULL ? NULL : coordi_strdup(body),
                             .body_len = body == NULL ? 0 : strlen(body),
                             .timeout_ms = 30000,
                             .fresh = true,
                             .done = on_reply,
                             .arg = &p->replies[index]};
    coordi_http_request *request;
    assert_int_equal(env->http_send(p->out[index], &spec, &request, NULL), COORD_OK);
    heap_spare(false);
    return index;
}

static bool is_answered(void *user)
{
    awaited *a = user;
    return a->p->replies[a->count].done;
}

const peer_reply *peer_await_reply(peer *p, int index, int64_t limit_ms)
{
    awaited a = {p, NULL, index};
    if (coord_sim_run_until(p->sim, limit_ms, is_answered, &a, NULL) != COORD_OK) {
        fail_msg("%s: request %d was not answered", p->host, index);
    }
    return &p->replies[index];
}

const peer_reply *peer_ask(peer *p, const char *host, uint16_t port, const char *method,
                           const char *path, const char *token, const char *channel,
                           const char *body)
{
    int index = peer_send(p, host, port, method, path, token, channel, body);
    return peer_await_reply(p, index, 60000);
}

/* ---- as a slave ---- */

static void master_of(peer *p, coordi_address *to)
{
    const peer_request *r = peer_get(p, "/connect", -1);
    coord_text master;
    coord_text address;
    char text[128];
    coord_text body = coord_text_of(r->body);
    assert_int_equal(coordi_json_get(body, "master", &master, NULL), COORD_OK);
    assert_int_equal(coordi_json_get(master, "address", &address, NULL), COORD_OK);
    assert_int_equal(coordi_json_string(address, text, sizeof text), COORD_OK);
    assert_int_equal(coordi_address_read(text, strlen(text), to, NULL), COORD_OK);
}

void peer_task_id(peer *p, int n, char id[COORDI_UUID_SIZE])
{
    coordi_message message;
    char why[128];
    coord_text body = coord_text_of(peer_get(p, "/task/new", n)->body);
    assert_int_equal(coordi_wire_read_new_task(body, &message, why, sizeof why),
                     COORDI_SAY_NOTHING);
    assert_true(coordi_wire_read_id(message.id, id));
}

static int tell_master(peer *p, const char *method, const char *path, const char *body)
{
    coordi_address to;
    master_of(p, &to);
    const peer_request *r = peer_get(p, "/connect", -1);
    return peer_send(p, to.host, to.port, method, path, r->token, r->channel, body);
}

int peer_beat(peer *p)
{
    return tell_master(p, "GET", "/slave/heartbeat", "{}");
}

int peer_report(peer *p, const char *task_id, bool complete, const char *result)
{
    coordi_buf body = {0};
    coordi_buf_addf(&body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}", task_id,
                    result);
    char *text = coordi_buf_take(&body, NULL);
    int index = tell_master(p, "PUT",
                            complete ? "/slave/task/complete" : "/slave/task/fail", text);
    coordi_free(text);
    return index;
}

/* ---- as a master ---- */

const peer_reply *peer_connect(peer *p, const char *host, uint16_t port,
                               const char *token)
{
    char body[128];
    (void)snprintf(body, sizeof body,
                   "{\"master\": {\"address\": \"http://%s:%u\"}, \"data\": {}}", p->host,
                   (unsigned)p->port);
    return peer_ask(p, host, port, "POST", "/connect", token, "0", body);
}

const peer_reply *peer_new_task(peer *p, const char *host, uint16_t port,
                                const char *token, const char *id, const char *data)
{
    char body[512];
    (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"data\": %s}", id,
                   data);
    return peer_ask(p, host, port, "POST", "/task/new", token, "0", body);
}
