/* The real http client, against a server that answers by script. */
#include "base/alloc.h"
#include "base/error.h"
#include "support/env_rig.h"
#include "support/raw_http.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

typedef struct got {
    coord_status status;
    bool undelivered;
    bool marked;
    int http_status;
    char body[4096];
    coord_error error;
    int times;
} got;

typedef struct rig {
    env_rig env;
    raw_server *server;
    coordi_http_peer *peer;
    coordi_address address;
    coordi_http_spec spec; /* for the next request; body is copied */
    const char *body;
    coord_status sent;
    coord_error send_error;
    got got;
    coordi_http_request *request;
    coordi_http_request *other;
} rig;

static void create_peer(void *arg)
{
    rig *r = arg;
    const coordi_http_header headers[] = {{"Token", "secret"}, {"Empty", ""}};
    coord_error err;
    assert_int_equal(
        r->env.loop->env->peer_create(r->env.loop, &r->address, headers, 2, &r->peer, &err),
        COORD_OK);
}

static void destroy_peer(void *arg)
{
    rig *r = arg;
    r->env.loop->env->peer_destroy(r->peer);
    r->peer = NULL;
}

static void on_done(const coordi_http_reply *reply, void *arg)
{
    rig *r = arg;
    got *g = &r->got;
    g->status = reply->status;
    g->undelivered = reply->undelivered;
    g->marked = reply->marked;
    g->http_status = reply->http_status;
    (void)snprintf(g->body, sizeof g->body, "%.*s", (int)reply->body.len,
                   reply->body.len == 0 ? "" : reply->body.ptr);
    if (reply->error != NULL) {
        g->error = *reply->error;
    }
    g->times++;
    env_rig_wake(&r->env);
}

static void send_now(void *arg)
{
    rig *r = arg;
    coordi_http_spec spec = r->spec;
    if (r->body != NULL) {
        spec.body = coordi_strdup(r->body);
        spec.body_len = strlen(r->body);
    }
    r->sent = r->env.loop->env->http_send(r->peer, &spec, &r->request, &r->send_error);
    assert_int_equal(r->got.times, 0); /* never from within send */
}

static void rig_open_at(rig *r, const char *host, uint16_t port)
{
    *r = (rig){.spec = {.method = "PUT", .path = "/task", .timeout_ms = 20000}};
    r->spec.done = on_done;
    r->spec.arg = r;
    r->body = "{\"a\": 1}";
    env_rig_open(&r->env, NULL, NULL);
    (void)snprintf(r->address.host, sizeof r->address.host, "%s", host);
    r->address.port = port;
    env_rig_do(&r->env, create_peer, r);
}

static void rig_open(rig *r, const raw_step *steps, size_t count)
{
    raw_server *server = raw_server_start(steps, count);
    rig_open_at(r, "127.0.0.1", raw_server_port(server));
    r->server = server;
}

static void rig_close(rig *r)
{
    env_rig_do(&r->env, destroy_peer, r);
    env_rig_close(&r->env);
    if (r->server != NULL) {
        raw_server_stop(r->server);
    }
}

/* Sends, and waits for the outcome. */
static got *request(rig *r)
{
    r->got = (got){0};
    env_rig_do(&r->env, send_now, r);
    assert_int_equal(r->sent, COORD_OK);
    assert_true(env_rig_await(&r->env));
    assert_int_equal(r->got.times, 1);
    return &r->got;
}

/* One request to a server that does just this step. */
static void one(raw_step step, got *ret)
{
    rig r;
    rig_open(&r, &step, 1);
    *ret = *request(&r);
    rig_close(&r);
}

/* ---- what is sent ---- */

static void a_request_carries_method_path_headers_and_body(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, 0);
    got *g = request(&r);
    assert_int_equal(g->status, COORD_OK);
    assert_int_equal(g->http_status, 200);
    assert_string_equal(g->body, "{}");
    const char *text = raw_server_request(r.server, 0);
    char host[64];
    (void)snprintf(host, sizeof host, "\r\nHost: 127.0.0.1:%u\r\n",
                   (unsigned)raw_server_port(r.server));
    assert_int_equal(strncmp(text, "PUT /task HTTP/1.1\r\n", 20), 0);
    assert_non_null(strstr(text, host));
    assert_non_null(strstr(text, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(text, "\r\nContent-Length: 8\r\n"));
    assert_non_null(strstr(text, "\r\nLibcoord: 1\r\n"));
    assert_non_null(strstr(text, "\r\nToken: secret\r\n"));
    assert_non_null(strstr(text, "\r\nEmpty:"));
    assert_non_null(strstr(text, "\r\n\r\n{\"a\": 1}"));
    assert_null(strstr(text, "Expect"));
    assert_null(strstr(text, "urlencoded"));
    assert_null(strstr(text, "Accept-Encoding"));
    rig_close(&r);
}

static void a_get_carries_a_body_and_the_prefix(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, 0);
    env_rig_do(&r.env, destroy_peer, &r);
    (void)snprintf(r.address.prefix, sizeof r.address.prefix, "/some/where");
    env_rig_do(&r.env, create_peer, &r);
    r.spec.method = "GET";
    r.body = "{}";
    assert_int_equal(request(&r)->status, COORD_OK);
    r.spec.method = "DELETE";
    assert_int_equal(request(&r)->status, COORD_OK);
    r.spec.method = "POST";
    r.body = NULL;
    assert_int_equal(request(&r)->status, COORD_OK);
    const char *text = raw_server_request(r.server, 0);
    assert_int_equal(strncmp(text, "GET /some/where/task HTTP/1.1\r\n", 31), 0);
    assert_non_null(strstr(text, "\r\nContent-Length: 2\r\n"));
    assert_non_null(strstr(text, "\r\n\r\n{}"));
    text = raw_server_request(r.server, 1);
    assert_int_equal(strncmp(text, "DELETE /some/where/task HTTP/1.1\r\n", 34), 0);
    assert_non_null(strstr(text, "\r\n\r\n{}"));
    text = raw_server_request(r.server, 2);
    assert_non_null(strstr(text, "\r\nContent-Length: 0\r\n"));
    rig_close(&r);
}

static void a_large_body_arrives_whole_and_without_expect(void **state)
{
    (void)state;
    enum { LEN = 3000000 };
    rig r;
    rig_open(&r, NULL, 0);
    char *body = malloc(LEN + 1);
    memset(body, 'x', LEN);
    body[LEN] = '\0';
    r.body = body;
    assert_int_equal(request(&r)->status, COORD_OK);
    const char *text = raw_server_request(r.server, 0);
    assert_null(strstr(text, "Expect"));
    assert_int_equal(strlen(strstr(text, "\r\n\r\n")), LEN + 4);
    free(body);
    rig_close(&r);
}

/* ---- connections ---- */

static void connections_are_kept_between_requests_unless_fresh(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(request(&r)->status, COORD_OK);
    }
    assert_int_equal(raw_server_connections(r.server), 1);
    r.spec.fresh = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(request(&r)->status, COORD_OK);
    }
    assert_int_equal(raw_server_connections(r.server), 4);
    rig_close(&r);
}

static void a_connection_that_was_closed_while_idle_is_replaced(void **state)
{
    (void)state;
    const raw_step steps[] = {{.send = OK_EMPTY, .then = RAW_DROP},
                              {.send = OK_EMPTY, .then = RAW_CLOSE},
                              {.send = OK_EMPTY, .then = RAW_RESET}};
    rig r;
    rig_open(&r, steps, 3);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(request(&r)->status, COORD_OK);
    }
    assert_int_equal(raw_server_requests(r.server), 5);
    rig_close(&r);
}

/* ---- answers ---- */

static void every_kind_of_answer_that_http_allows_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *send;
        int status;
        const char *body;
    } CASES[] = {
        {"HTTP/1.0 200 OK\r\n\r\n{\"old\": 1}", 200, "{\"old\": 1}"},
        {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", 200, "{}"},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end", 200, "to the end"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         "3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n0\r\n\r\n",
         200, "{\"a\":1}"},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\n1", 201,
         "1"},
        {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
        {"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n", 302, ""},
        {"HTTP/1.1 500 INTERNAL SERVER ERROR\r\nContent-Type: text/html\r\n"
         "Content-Length: 6\r\nConnection: close\r\n\r\n<html>",
         500, "<html>"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        got g;
        one((raw_step){.send = CASES[i].send, .then = RAW_CLOSE}, &g);
        assert_int_equal(g.status, COORD_OK);
        assert_int_equal(g.http_status, CASES[i].status);
        assert_string_equal(g.body, CASES[i].body);
        assert_false(g.undelivered);
        assert_false(g.marked);
    }
}

static void an_answer_of_our_own_kind_is_recognised(void **state)
{
    (void)state;
    got g;
    one((raw_step){.send = "HTTP/1.1 200 OK\r\nlibcoord: 1\r\nContent-Length: 0\r\n\r\n"}, &g);
    assert_true(g.marked);
    one((raw_step){.send = "HTTP/1.1 200 OK\r\nLibcoordX: 1\r\nContent-Length: 0\r\n\r\n"}, &g);
    assert_false(g.marked);
}

static void broken_answers_are_lost_and_may_have_been_delivered(void **state)
{
    (void)state;
    const raw_step steps[] = {
        {.send = NULL, .then = RAW_CLOSE},
        {.send = NULL, .then = RAW_RESET},
        {.send = "HTTP/1.1 200 OK\r\nContent-Le", .then = RAW_CLOSE},
        {.send = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", .then = RAW_CLOSE},
        {.send = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",
         .then = RAW_CLOSE},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        got g;
        one(steps[i], &g);
        assert_int_equal(g.status, COORD_ERR_LOST);
        assert_int_equal(g.error.status, COORD_ERR_LOST);
        assert_false(g.undelivered);
        assert_non_null(strstr(g.error.text, "PUT http://127.0.0.1:"));
        assert_true(g.error.cause[0] != '\0');
    }
}

static void what_is_not_http_is_a_violation_of_the_protocol(void **state)
{
    (void)state;
    got g;
    one((raw_step){.send = "SSH-2.0-OpenSSH_9.2\r\n", .then = RAW_CLOSE}, &g);
    assert_int_equal(g.status, COORD_ERR_PROTOCOL);
    assert_false(g.undelivered);
}

static void headers_without_end_are_cut_off(void **state)
{
    (void)state;
    enum { LEN = 90000 };
    char *flood = malloc(LEN);
    size_t at = (size_t)sprintf(flood, "HTTP/1.1 200 OK\r\n");
    while (at + 64 < LEN) {
        at += (size_t)sprintf(flood + at, "X-Some-Header: and a value\r\n");
    }
    got g;
    one((raw_step){.send = flood, .len = at, .then = RAW_CLOSE}, &g);
    assert_int_equal(g.status, COORD_ERR_PROTOCOL);
    free(flood);
}

static void an_answer_over_the_limit_is_too_big(void **state)
{
    (void)state;
    const raw_step steps[] = {
        {.send = "HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n", .then = RAW_SILENT},
        {.send = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n0123456789a", .then = RAW_SILENT},
        {.send = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"},
    };
    rig r;
    rig_open(&r, steps, 3);
    r.spec.max_reply_bytes = 10;
    assert_int_equal(request(&r)->status, COORD_ERR_TOO_BIG);
    assert_int_equal(request(&r)->status, COORD_ERR_TOO_BIG);
    assert_non_null(strstr(r.got.error.cause, "10 bytes"));
    assert_int_equal(request(&r)->status, COORD_OK);
    rig_close(&r);
}

static void a_silent_server_is_given_up_at_the_deadline(void **state)
{
    (void)state;
    const raw_step steps[] = {{.send = NULL, .then = RAW_SILENT}};
    rig r;
    rig_open(&r, steps, 1);
    r.spec.timeout_ms = 50;
    got *g = request(&r);
    assert_int_equal(g->status, COORD_ERR_TIMEOUT);
    assert_false(g->undelivered);
    rig_close(&r);
}

/* ---- not delivered ---- */

static uint16_t free_port(void)
{
    raw_server *server = raw_server_start(NULL, 0);
    uint16_t port = raw_server_port(server);
    raw_server_stop(server);
    return port;
}

static void a_refused_connection_is_certainly_not_delivered(void **state)
{
    (void)state;
    rig r;
    rig_open_at(&r, "127.0.0.1", free_port());
    got *g = request(&r);
    assert_int_equal(g->status, COORD_ERR_LOST);
    assert_true(g->undelivered);
    assert_int_equal(g->error.os_errno, ECONNREFUSED);
    assert_non_null(strstr(g->error.cause, "refused"));
    rig_close(&r);
}

static void a_name_is_resolved_and_kept_as_the_host_header(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, 0);
    env_rig_do(&r.env, destroy_peer, &r);
    (void)snprintf(r.address.host, sizeof r.address.host, "localhost");
    env_rig_do(&r.env, create_peer, &r);
    /* Twice: asked for, and remembered. If ::1 comes first, it refuses. */
    assert_int_equal(request(&r)->status, COORD_OK);
    assert_int_equal(request(&r)->status, COORD_OK);
    char host[64];
    (void)snprintf(host, sizeof host, "\r\nHost: localhost:%u\r\n",
                   (unsigned)raw_server_port(r.server));
    assert_non_null(strstr(raw_server_request(r.server, 0), host));
    rig_close(&r);
}

static void a_name_that_does_not_exist_is_not_delivered(void **state)
{
    (void)state;
    rig r;
    rig_open_at(&r, "no-such-host.invalid", 80);
    r.spec.timeout_ms = 5000;
    got *g = request(&r);
    /* Without a name server in reach it takes longer than we wait. */
    assert_true(g->status == COORD_ERR_LOST || g->status == COORD_ERR_TIMEOUT);
    assert_true(g->undelivered);
    assert_non_null(strstr(g->error.cause, "no-such-host.invalid"));
    rig_close(&r);
}

static void send_many_and_destroy(void *arg)
{
    rig *r = arg;
    for (int i = 0; i < 10; i++) {
        send_now(r);
    }
    destroy_peer(r);
    create_peer(r);
}

static void a_peer_can_go_while_its_name_is_being_resolved(void **state)
{
    (void)state;
    rig r;
    rig_open_at(&r, "no-such-host.invalid", 80);
    env_rig_do(&r.env, send_many_and_destroy, &r);
    assert_int_equal(r.got.times, 0);
    rig_close(&r);
}

static int *hoard; /* all descriptors that can be had */
static size_t hoarded;
static struct rlimit usual;

static void hoard_all(void *arg)
{
    (void)arg;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    struct rlimit tight = {.rlim_cur = 64, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    hoard = calloc(64, sizeof *hoard);
    for (hoarded = 0; (hoard[hoarded] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
        hoarded++;
    }
    assert_int_equal(errno, EMFILE);
}

static void give_back(void)
{
    while (hoarded > 0) {
        (void)close(hoard[--hoarded]);
    }
    free(hoard);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

static void running_out_of_descriptors_is_this_machines_failure(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, 0);
    assert_int_equal(request(&r)->status, COORD_OK); /* libcurl has its own by now */
    hoard_all(NULL);
    r.spec.fresh = true;
    got *g = request(&r);
    give_back();
    assert_int_equal(g->status, COORD_ERR_NETWORK);
    assert_int_equal(g->error.os_errno, EMFILE);
    assert_true(g->undelivered);
    assert_int_equal(request(&r)->status, COORD_OK);
    rig_close(&r);
}

/* ---- taking back ---- */

static void cancel(void *arg)
{
    rig *r = arg;
    r->env.loop->env->http_cancel(r->request);
}

static void send_and_cancel(void *arg)
{
    send_now(arg);
    cancel(arg);
}

static void a_canceled_request_tells_nothing(void **state)
{
    (void)state;
    const raw_step steps[] = {{.send = NULL, .then = RAW_SILENT}};
    rig r;
    rig_open(&r, steps, 1);
    env_rig_do(&r.env, send_now, &r);
    while (raw_server_requests(r.server) == 0) {
        (void)sched_yield();
    }
    env_rig_do(&r.env, cancel, &r);
    env_rig_do(&r.env, send_and_cancel, &r); /* and one that never got out */
    assert_int_equal(r.got.times, 0);
    assert_int_equal(request(&r)->status, COORD_OK);
    rig_close(&r);
}

static void done_cancels_other(const coordi_http_reply *reply, void *arg)
{
    rig *r = arg;
    r->env.loop->env->http_cancel(r->other);
    on_done(reply, arg);
}

static void send_two(void *arg)
{
    rig *r = arg;
    send_now(r);
    r->other = r->request;
    r->spec.done = done_cancels_other;
    send_now(r);
}

static void a_done_function_may_cancel_another_request(void **state)
{
    (void)state;
    const raw_step steps[] = {{.send = NULL, .then = RAW_SILENT}};
    rig r;
    rig_open(&r, steps, 1);
    env_rig_do(&r.env, send_two, &r);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(r.got.times, 1);
    rig_close(&r);
}

static void done_destroys_peer(const coordi_http_reply *reply, void *arg)
{
    destroy_peer(arg);
    on_done(reply, arg);
}

static void a_done_function_may_destroy_its_peer(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, 0);
    r.spec.done = done_destroys_peer;
    env_rig_do(&r.env, send_two, &r);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(r.got.times, 1);
    env_rig_do(&r.env, create_peer, &r);

    env_rig_do(&r.env, destroy_peer, &r); /* the same while its name is unknown */
    (void)snprintf(r.address.host, sizeof r.address.host, "localhost");
    r.address.port = free_port();
    env_rig_do(&r.env, create_peer, &r);
    r.got.times = 0;
    r.spec.done = done_destroys_peer;
    env_rig_do(&r.env, send_now, &r);
    assert_true(env_rig_await(&r.env));
    env_rig_do(&r.env, create_peer, &r);
    rig_close(&r);
}

static void done_sends_again(const coordi_http_reply *reply, void *arg)
{
    rig *r = arg;
    r->spec.done = on_done;
    r->got.times = 0;
    send_now(r);
    assert_int_equal(reply->status, COORD_OK);
}

static void a_done_function_may_send_the_next_request(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, 0);
    r.spec.done = done_sends_again;
    env_rig_do(&r.env, send_now, &r);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(r.got.status, COORD_OK);
    assert_int_equal(raw_server_connections(r.server), 1);
    rig_close(&r);
}

/* ---- many ---- */

enum { PEERS = 150 }; /* more than one shard */

typedef struct crowd {
    rig *rig;
    coordi_http_peer *peers[PEERS];
    int left;
    int failed;
} crowd;

static void crowd_done(const coordi_http_reply *reply, void *arg)
{
    crowd *c = arg;
    c->failed += reply->status != COORD_OK;
    if (--c->left == 0) {
        env_rig_wake(&c->rig->env);
    }
}

static void crowd_send(void *arg)
{
    crowd *c = arg;
    coord_loop *loop = c->rig->env.loop;
    c->left = PEERS;
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(loop->env->peer_create(loop, &c->rig->address, NULL, 0,
                                                &c->peers[i], NULL),
                         COORD_OK);
        const coordi_http_spec spec = {.method = "GET",
                                       .path = "/",
                                       .timeout_ms = 20000,
                                       .done = crowd_done,
                                       .arg = c};
        assert_int_equal(loop->env->http_send(c->peers[i], &spec, NULL, NULL), COORD_OK);
    }
}

static void crowd_leave(void *arg)
{
    crowd *c = arg;
    for (int i = 0; i < PEERS; i++) {
        c->rig->env.loop->env->peer_destroy(c->peers[i]);
    }
}

static void many_peers_work_side_by_side(void **state)
{
    (void)state;
    raw_step steps[PEERS];
    for (int i = 0; i < PEERS; i++) {
        steps[i] = (raw_step){.send = OK_EMPTY, .then = RAW_CLOSE};
    }
    rig r;
    rig_open(&r, steps, PEERS);
    crowd c = {.rig = &r};
    env_rig_do(&r.env, crowd_send, &c);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(c.failed, 0);
    env_rig_do(&r.env, crowd_leave, &c);
    rig_close(&r);
}

/* ---- paths, refusals, memory ---- */

static void on_path(coord_status status, const char *local_host, const coord_error *error,
                    void *arg)
{
    rig *r = arg;
    r->got.status = status;
    r->got.times++;
    (void)snprintf(r->got.body, sizeof r->got.body, "%s",
                   local_host != NULL ? local_host : error->text);
    env_rig_wake(&r->env);
}

static void ask_path(void *arg)
{
    rig *r = arg;
    assert_int_equal(r->env.loop->env->peer_path(r->peer, 20000, on_path, r, NULL),
                     COORD_OK);
    assert_int_equal(r->got.times, 0);
}

static void ask_path_and_destroy(void *arg)
{
    rig *r = arg;
    r->got.times = 0;
    ask_path(r);
    destroy_peer(r);
    create_peer(r);
}

static void the_path_to_a_peer_names_the_local_address(void **state)
{
    (void)state;
    const char *const hosts[] = {"127.0.0.1", "localhost"};
    for (int i = 0; i < 2; i++) {
        rig r;
        rig_open_at(&r, hosts[i], 80);
        env_rig_do(&r.env, ask_path, &r);
        assert_true(env_rig_await(&r.env));
        assert_int_equal(r.got.status, COORD_OK);
        assert_true(strcmp(r.got.body, "127.0.0.1") == 0 || strcmp(r.got.body, "::1") == 0);
        env_rig_do(&r.env, ask_path_and_destroy, &r);
        env_rig_do(&r.env, ask_path_and_destroy, &r);
        assert_int_equal(r.got.times, 0);
        rig_close(&r);
    }
}

static void create_wrong_peers(void *arg)
{
    rig *r = arg;
    coord_loop *loop = r->env.loop;
    coordi_http_peer *peer = NULL;
    coord_error err;
    coordi_address https = r->address;
    https.https = true;
    assert_int_equal(loop->env->peer_create(loop, &https, NULL, 0, &peer, &err),
                     COORD_ERR_UNSUPPORTED);
    const coordi_http_header split = {"Token", "a\r\nEvil: 1"};
    assert_int_equal(loop->env->peer_create(loop, &r->address, &split, 1, &peer, &err),
                     COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "Token"));
    assert_null(peer);
    loop->env->peer_destroy(NULL);
}

static void https_and_split_headers_are_refused(void **state)
{
    (void)state;
    rig r;
    rig_open_at(&r, "127.0.0.1", 1);
    env_rig_do(&r.env, create_wrong_peers, &r);
    rig_close(&r);
}

static bool countdown(void *user)
{
    return (*(int *)user)-- == 0;
}

/* On the loop thread alone, so that the hook is nobody else's. */
static void send_with_faults(void *arg)
{
    rig *r = arg;
    coord_loop *loop = r->env.loop;
    for (int n = 0; r->sent != COORD_OK; n++) {
        int left = n;
        coordi_http_peer *peer = NULL;
        coord_error err = {0};
        coordi_http_spec spec = r->spec;
        spec.body = coordi_strdup("{}");
        spec.body_len = 2;
        coordi_alloc_set_fault(countdown, &left);
        r->sent = loop->env->peer_create(loop, &r->address, NULL, 0, &peer, &err);
        if (r->sent == COORD_OK) {
            r->sent = loop->env->http_send(peer, &spec, NULL, &err);
        } else {
            coordi_free(spec.body);
        }
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(r->sent == COORD_OK || r->sent == COORD_ERR_NOMEM);
        assert_int_equal(r->sent, err.status);
        loop->env->peer_destroy(peer);
    }
}

static void sending_survives_every_failed_allocation(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL, 0);
    r.sent = COORD_ERR_NOMEM;
    env_rig_do(&r.env, send_with_faults, &r);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_carries_method_path_headers_and_body),
        cmocka_unit_test(a_get_carries_a_body_and_the_prefix),
        cmocka_unit_test(a_large_body_arrives_whole_and_without_expect),
        cmocka_unit_test(connections_are_kept_between_requests_unless_fresh),
        cmocka_unit_test(a_connection_that_was_closed_while_idle_is_replaced),
        cmocka_unit_test(every_kind_of_answer_that_http_allows_is_read),
        cmocka_unit_test(an_answer_of_our_own_kind_is_recognised),
        cmocka_unit_test(broken_answers_are_lost_and_may_have_been_delivered),
        cmocka_unit_test(what_is_not_http_is_a_violation_of_the_protocol),
        cmocka_unit_test(headers_without_end_are_cut_off),
        cmocka_unit_test(an_answer_over_the_limit_is_too_big),
        cmocka_unit_test(a_silent_server_is_given_up_at_the_deadline),
        cmocka_unit_test(a_refused_connection_is_certainly_not_delivered),
        cmocka_unit_test(a_name_is_resolved_and_kept_as_the_host_header),
        cmocka_unit_test(a_name_that_does_not_exist_is_not_delivered),
        cmocka_unit_test(a_peer_can_go_while_its_name_is_being_resolved),
        cmocka_unit_test(running_out_of_descriptors_is_this_machines_failure),
        cmocka_unit_test(a_canceled_request_tells_nothing),
        cmocka_unit_test(a_done_function_may_cancel_another_request),
        cmocka_unit_test(a_done_function_may_destroy_its_peer),
        cmocka_unit_test(a_done_function_may_send_the_next_request),
        cmocka_unit_test(many_peers_work_side_by_side),
        cmocka_unit_test(the_path_to_a_peer_names_the_local_address),
        cmocka_unit_test(https_and_split_headers_are_refused),
        cmocka_unit_test(sending_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("env_http", tests, NULL, NULL);
}
