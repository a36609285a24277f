/* The real http server, asked by plain sockets. */
#include "base/alloc.h"
#include "support/env_rig.h"
#include "support/raw_http.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { CALLS = 16, ANSWER_SIZE = 8192 };

typedef struct seen {
    coordi_http_call *call; /* NULL once answered */
    char method[16];
    char path[128];
    char body[128]; /* the start of it */
    size_t body_len;
    bool too_big;
    bool marked;
    char peer[64];
    char token[128];
    bool has_none;
} seen;

typedef struct rig {
    env_rig env;
    coordi_http_server *server;
    coordi_http_server_spec spec;
    coord_status created;
    coord_error error;
    uint16_t port;
    bool hold;            /* answer later */
    bool destroy_in_call; /* the server */
    int http_status;
    seen calls[CALLS];
    atomic_int count;
    atomic_int paused; /* log lines about paused accepting */
} rig;

static void answer(rig *r, seen *s, const char *body)
{
    coordi_http_call *call = s->call;
    s->call = NULL;
    r->env.loop->env->http_answer(call, r->http_status,
                                  body == NULL ? NULL : coordi_strdup(body),
                                  body == NULL ? 0 : strlen(body));
}

static void on_call(coordi_http_call *call, void *arg)
{
    rig *r = arg;
    const int n = atomic_load(&r->count);
    seen *s = &r->calls[n];
    assert_true(n < CALLS);
    s->call = call;
    (void)snprintf(s->method, sizeof s->method, "%s", call->method);
    (void)snprintf(s->path, sizeof s->path, "%s", call->path);
    (void)snprintf(s->body, sizeof s->body, "%.*s",
                   (int)(call->body.len > 100 ? 100 : call->body.len),
                   call->body.len == 0 ? "" : call->body.ptr);
    s->body_len = call->body.len;
    s->too_big = call->too_big;
    s->marked = call->marked;
    (void)snprintf(s->peer, sizeof s->peer, "%s", call->peer);
    const char *token = r->env.loop->env->call_header(call, "token");
    (void)snprintf(s->token, sizeof s->token, "%s", token == NULL ? "(none)" : token);
    s->has_none = r->env.loop->env->call_header(call, "absent") == NULL;
    if (r->destroy_in_call) {
        r->env.loop->env->server_destroy(r->server);
        r->server = NULL;
    }
    if (!r->hold) {
        answer(r, s, "{\"code\": 0}");
    }
    (void)atomic_fetch_add(&r->count, 1);
    env_rig_wake(&r->env);
}

static void create(void *arg)
{
    rig *r = arg;
    r->created =
        r->env.loop->env->server_create(r->env.loop, &r->spec, &r->server, &r->error);
    r->port = r->created == COORD_OK ? r->env.loop->env->server_port(r->server) : 0;
}

static void destroy(void *arg)
{
    rig *r = arg;
    r->env.loop->env->server_destroy(r->server);
    r->server = NULL;
}

static void answer_all(void *arg)
{
    rig *r = arg;
    for (int i = 0; i < atomic_load(&r->count); i++) {
        if (r->calls[i].call != NULL) {
            answer(r, &r->calls[i], "late");
        }
    }
}

static void on_log(coord_log_level level, const char *line, void *user)
{
    (void)level;
    rig *r = user;
    if (strstr(line, "accepting paused") != NULL) {
        (void)atomic_fetch_add(&r->paused, 1);
    }
}

static void rig_open_with(rig *r, size_t max_body, size_t max_inflight)
{
    *r = (rig){.http_status = 200};
    r->spec =
        (coordi_http_server_spec){.host = "127.0.0.1", .on_call = on_call, .arg = r};
    r->spec.max_body_bytes = max_body;
    r->spec.max_inflight_bytes = max_inflight;
    env_rig_open(&r->env, on_log, r);
    env_rig_do(&r->env, create, r);
    assert_int_equal(r->created, COORD_OK);
    assert_true(r->port != 0);
}

static void rig_open(rig *r)
{
    rig_open_with(r, 1 << 20, 1 << 24);
}

static void rig_close(rig *r)
{
    env_rig_do(&r->env, destroy, r);
    env_rig_do(&r->env, answer_all, r);
    env_rig_close(&r->env);
}

/* Waits until so many calls have come. */
static void await_calls(rig *r, int count)
{
    while (atomic_load(&r->count) < count) {
        assert_true(env_rig_await(&r->env));
    }
}

/* ---- what a call says ---- */

static void a_call_carries_all_that_was_asked(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    int fd = raw_connect(r.port);
    char got[ANSWER_SIZE];
    raw_sends(fd,
              "PUT /a%20b/c?query=1 HTTP/1.1\r\nHost: x\r\nToken: one\r\nlibcoord: 1\r\n"
              "TOKEN: two\r\nContent-Length: 7\r\n\r\n{\"b\":1}");
    assert_true(raw_read_answer(fd, got, sizeof got, false));
    assert_int_equal(strncmp(got, "HTTP/1.1 200 OK\r\n", 17), 0);
    assert_non_null(strstr(got, "\r\nLibcoord: 1\r\n"));
    assert_non_null(strstr(got, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(got, "\r\n\r\n{\"code\": 0}"));
    const seen *s = &r.calls[0];
    assert_string_equal(s->method, "PUT");
    assert_string_equal(s->path, "/a b/c");
    assert_string_equal(s->body, "{\"b\":1}");
    assert_string_equal(s->token, "one,two");
    assert_string_equal(s->peer, "127.0.0.1");
    assert_true(s->marked);
    assert_true(s->has_none);
    assert_false(s->too_big);

    raw_sends(fd,
              "GET / HTTP/1.1\r\nHost: x\r\nToken: only\r\n\r\n"); /* same connection */
    assert_true(raw_read_answer(fd, got, sizeof got, false));
    assert_string_equal(r.calls[1].token, "only");
    assert_false(r.calls[1].marked);
    (void)close(fd);
    rig_close(&r);
}

static void every_method_reaches_the_owner(void **state)
{
    (void)state;
    static const char *const METHODS[] = {"GET",     "DELETE", "HEAD",
                                          "OPTIONS", "PATCH",  "BREW"};
    rig r;
    rig_open(&r);
    int fd = raw_connect(r.port);
    for (int i = 0; i < 6; i++) {
        char text[256];
        char got[ANSWER_SIZE];
        (void)snprintf(text, sizeof text,
                       "%s /p HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
                       METHODS[i]);
        raw_sends(fd, text);
        assert_true(
            raw_read_answer(fd, got, sizeof got, strcmp(METHODS[i], "HEAD") == 0));
        assert_string_equal(r.calls[i].method, METHODS[i]);
        assert_string_equal(r.calls[i].body, "{}");
    }
    (void)close(fd);
    rig_close(&r);
}

static void requests_in_any_shape_are_read(void **state)
{
    (void)state;
    static const char *const PIECES[][4] = {
        {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
         "3\r\nabc\r\n", "2\r\nde\r\n", "0\r\n\r\n"},
        {"POST / HTTP/1.1\r\nHo", "st: x\r\nContent-Length: 5\r\n\r", "\nabc", "de"},
        {"POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nabcde", "", "", ""},
    };
    for (size_t i = 0; i < 3; i++) {
        rig r;
        rig_open(&r);
        int fd = raw_connect(r.port);
        char got[ANSWER_SIZE];
        for (size_t k = 0; k < 4; k++) {
            raw_sends(fd, PIECES[i][k]);
            (void)sched_yield();
        }
        assert_true(raw_read_answer(fd, got, sizeof got, false));
        assert_string_equal(r.calls[0].body, "abcde");
        (void)close(fd);
        rig_close(&r);
    }
}

static void a_client_that_waits_for_continue_is_told_to_go_on(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    int fd = raw_connect(r.port);
    char got[ANSWER_SIZE];
    raw_sends(fd, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                  "Content-Length: 2\r\n\r\n");
    assert_true(raw_read_answer(fd, got, sizeof got, true));
    assert_int_equal(strncmp(got, "HTTP/1.1 100 Continue\r\n", 23), 0);
    raw_sends(fd, "{}");
    assert_true(raw_read_answer(fd, got, sizeof got, false));
    assert_string_equal(r.calls[0].body, "{}");
    (void)close(fd);
    rig_close(&r);
}

static void what_is_not_http_never_reaches_the_owner(void **state)
{
    (void)state;
    static const char *const JUNK[] = {"hello\r\n\r\n", "GET\r\n\r\n",
                                       "POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\n",
                                       "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"};
    rig r;
    rig_open(&r);
    for (size_t i = 0; i < 4; i++) {
        int fd = raw_connect(r.port);
        raw_sends(fd, JUNK[i]);
        (void)shutdown(fd, SHUT_WR);
        assert_true(raw_sees_end(fd));
        (void)close(fd);
    }
    assert_int_equal(atomic_load(&r.count), 0);
    rig_close(&r);
}

/* ---- later ---- */

static void an_answer_may_come_later(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    r.hold = true;
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = raw_connect(r.port);
        raw_sends(fds[i], "GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    await_calls(&r, 3);
    env_rig_do(&r.env, answer_all, &r);
    for (int i = 0; i < 3; i++) {
        char got[ANSWER_SIZE];
        assert_true(raw_read_answer(fds[i], got, sizeof got, false));
        assert_non_null(strstr(got, "\r\n\r\nlate"));
        (void)close(fds[i]);
    }
    rig_close(&r);
}

static void answer_without_body(void *arg)
{
    rig *r = arg;
    answer(r, &r->calls[0], NULL);
}

static void an_answer_without_a_body_is_an_empty_500(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    r.hold = true;
    int fd = raw_connect(r.port);
    char got[ANSWER_SIZE];
    raw_sends(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await_calls(&r, 1);
    env_rig_do(&r.env, answer_without_body, &r);
    assert_true(raw_read_answer(fd, got, sizeof got, false));
    assert_int_equal(strncmp(got, "HTTP/1.1 500 ", 13), 0);
    (void)close(fd);
    rig_close(&r);
}

static void an_answer_to_a_client_that_has_gone_is_harmless(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    r.hold = true;
    for (int i = 0; i < 4; i++) {
        int fd = raw_connect(r.port);
        raw_sends(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        await_calls(&r, i + 1);
        if (i % 2 == 0) {
            raw_reset(fd);
        } else {
            (void)close(fd);
        }
    }
    env_rig_do(&r.env, answer_all, &r);
    r.hold = false;
    int fd = raw_connect(r.port);
    char got[ANSWER_SIZE];
    raw_sends(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_true(raw_read_answer(fd, got, sizeof got, false));
    (void)close(fd);
    rig_close(&r);
}

static void a_server_that_goes_leaves_its_open_calls_answerable(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    r.hold = true;
    int fd = raw_connect(r.port);
    raw_sends(fd, "PUT / HTTP/1.1\r\nHost: x\r\nToken: t\r\nContent-Length: 2\r\n\r\n{}");
    await_calls(&r, 1);
    env_rig_do(&r.env, destroy, &r);
    assert_true(raw_sees_end(fd));
    coordi_http_call *call = r.calls[0].call;
    assert_string_equal(call->path, "/"); /* still there */
    assert_string_equal(r.env.loop->env->call_header(call, "Token"), "t");
    assert_int_equal(call->body.len, 2);
    (void)close(fd);
    rig_close(&r); /* answers */
}

static void a_server_may_be_destroyed_by_its_own_call(void **state)
{
    (void)state;
    for (int hold = 0; hold < 2; hold++) {
        rig r;
        rig_open(&r);
        r.destroy_in_call = true;
        r.hold = hold == 1;
        int fd = raw_connect(r.port);
        char got[ANSWER_SIZE];
        raw_sends(fd,
                  "DELETE /shutdown HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        assert_int_equal(raw_read_answer(fd, got, sizeof got, false), hold == 0);
        assert_true(raw_sees_end(fd));
        (void)close(fd);
        rig_close(&r);
    }
}

static void answer_all_and_destroy(void *arg)
{
    answer_all(arg);
    destroy(arg);
}

static void an_answer_given_before_destroy_still_goes_out(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    r.hold = true;
    int fd = raw_connect(r.port);
    char got[ANSWER_SIZE];
    raw_sends(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await_calls(&r, 1);
    env_rig_do(&r.env, answer_all_and_destroy, &r);
    assert_true(raw_read_answer(fd, got, sizeof got, false));
    assert_non_null(strstr(got, "late"));
    (void)close(fd);
    rig_close(&r);
}

/* ---- limits ---- */

static void send_upload(int fd, size_t len, bool chunked, size_t send)
{
    char head[256];
    if (chunked) {
        (void)snprintf(
            head, sizeof head,
            "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n",
            len);
    } else {
        (void)snprintf(head, sizeof head,
                       "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n", len);
    }
    raw_sends(fd, head);
    char *bytes = malloc(send);
    memset(bytes, 'x', send);
    raw_send(fd, bytes, send);
    free(bytes);
    if (chunked) {
        raw_sends(fd, "\r\n0\r\n\r\n");
    }
}

static void a_body_over_the_limit_is_drained_and_its_start_is_kept(void **state)
{
    (void)state;
    rig r;
    rig_open_with(&r, 100000, 1 << 24);
    int fd = raw_connect(r.port);
    for (int i = 0; i < 4; i++) {
        char got[ANSWER_SIZE];
        const size_t len = i < 2 ? 1000000 : 100000;
        send_upload(fd, len, i % 2 == 1, len);
        assert_true(raw_read_answer(fd, got, sizeof got, false)); /* and is kept */
        assert_int_equal(r.calls[i].too_big, i < 2);
        assert_int_equal(r.calls[i].body_len, i < 2 ? 65536 : 100000);
    }
    (void)close(fd);
    rig_close(&r);
}

static void uploads_over_the_budget_wait_unread(void **state)
{
    (void)state;
    enum { LEN = 600000 };
    rig r;
    rig_open_with(&r, 1 << 20, 1000000);
    r.hold = true;
    int first = raw_connect(r.port);
    int second = raw_connect(r.port);
    int third = raw_connect(r.port);
    int small = raw_connect(r.port);
    send_upload(first, LEN, false, LEN);
    await_calls(&r, 1);
    send_upload(second, LEN, false, 1000); /* would pass the budget */
    send_upload(third, 5000, false, 5000); /* would fit, but is behind it */
    send_upload(small, 100, false, 100);   /* heartbeats and such never wait */
    await_calls(&r, 2);
    assert_int_equal(r.calls[1].body_len, 100);
    char *rest = calloc(1, LEN);
    raw_send(second, rest, LEN - 1000 - 1);
    env_rig_do(&r.env, answer_all, &r); /* makes room */
    await_calls(&r, 3);
    assert_int_equal(r.calls[2].body_len, 5000);
    raw_send(second, rest, 1);
    await_calls(&r, 4);
    assert_int_equal(r.calls[3].body_len, LEN);
    free(rest);
    (void)close(first);
    (void)close(second);
    (void)close(third);
    (void)close(small);
    rig_close(&r);
}

static void one_upload_is_always_admitted(void **state)
{
    (void)state;
    rig r;
    rig_open_with(&r, 1 << 20, 10);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = raw_connect(r.port);
        send_upload(fds[i], 100000, i == 1, 100000);
    }
    for (int i = 0; i < 3; i++) {
        char got[ANSWER_SIZE];
        assert_true(raw_read_answer(fds[i], got, sizeof got, false));
        (void)close(fds[i]);
    }
    rig_close(&r);
}

static void a_server_goes_with_uploads_unread_and_half_read(void **state)
{
    (void)state;
    rig r;
    rig_open_with(&r, 1 << 20, 10);
    int half = raw_connect(r.port);
    int unread = raw_connect(r.port);
    send_upload(half, 100000, false, 50000);
    send_upload(unread, 100000, false, 100000);
    env_rig_do(&r.env, destroy, &r);
    assert_true(raw_sees_end(half));
    assert_true(raw_sees_end(unread));
    (void)close(half);
    (void)close(unread);
    rig_close(&r);
}

/* ---- listening ---- */

static void create_second(void *arg)
{
    rig *r = arg;
    coordi_http_server *second = NULL;
    coordi_http_server_spec spec = r->spec;
    spec.port = r->port;
    coord_error err;
    assert_int_equal(r->env.loop->env->server_create(r->env.loop, &spec, &second, &err),
                     COORD_ERR_IO);
    char where[64];
    (void)snprintf(where, sizeof where, "127.0.0.1:%u", (unsigned)r->port);
    assert_non_null(strstr(err.text, where));
    assert_int_equal(err.os_errno, EADDRINUSE);
    assert_null(second);
    spec.host = "192.0.2.1"; /* nobody's */
    spec.port = 0;
    assert_int_equal(r->env.loop->env->server_create(r->env.loop, &spec, &second, &err),
                     COORD_ERR_IO);
    assert_non_null(strstr(err.text, "192.0.2.1"));
    r->env.loop->env->server_destroy(NULL);
}

static void a_port_that_is_taken_is_named(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    env_rig_do(&r.env, create_second, &r);
    rig_close(&r);
}

static void any_host_and_names_can_be_listened_on(void **state)
{
    (void)state;
    const char *const hosts[] = {"", "0.0.0.0", "localhost"};
    for (int i = 0; i < 3; i++) {
        rig r;
        rig_open(&r);
        env_rig_do(&r.env, destroy, &r);
        r.spec.host = hosts[i];
        env_rig_do(&r.env, create, &r);
        assert_int_equal(r.created, COORD_OK);
        if (i < 2) {
            int fd = raw_connect(r.port);
            char got[ANSWER_SIZE];
            raw_sends(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_true(raw_read_answer(fd, got, sizeof got, false));
            assert_string_equal(r.calls[0].peer, "127.0.0.1"); /* not ::ffff:127.0.0.1 */
            (void)close(fd);
        }
        rig_close(&r);
    }
}

/* The client's own socket is made beforehand: only the server runs out. */
static void running_out_of_descriptors_pauses_accepting(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    struct rlimit usual;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    const struct rlimit tight = {.rlim_cur = 64, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    int hoard[64];
    int hoarded = 0;
    while ((hoard[hoarded] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        hoarded++;
    }
    assert_true(hoarded > 0);
    (void)close(hoard[--hoarded]);
    int client = raw_connect(r.port); /* takes the last one */
    raw_sends(client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    while (atomic_load(&r.paused) < 2) { /* tries again, and again in vain */
        (void)sched_yield();
    }
    while (hoarded > 0) {
        (void)close(hoard[--hoarded]);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
    char got[ANSWER_SIZE];
    assert_true(raw_read_answer(client, got, sizeof got, false));
    (void)close(client);
    rig_close(&r);
}

/* ---- descriptors ---- */

static void on_reply(const coordi_http_reply *reply, void *arg)
{
    rig *r = arg;
    assert_int_equal(reply->status, COORD_OK);
    (void)atomic_fetch_add(&r->paused, 1);
    env_rig_wake(&r->env);
}

static coordi_http_peer *own_peer;

static void ask_myself(void *arg)
{
    rig *r = arg;
    coord_loop *loop = r->env.loop;
    const coordi_address address = {.host = "127.0.0.1", .port = r->port};
    const coordi_http_spec spec = {
        .method = "GET", .path = "/", .timeout_ms = 20000, .done = on_reply, .arg = r};
    assert_int_equal(loop->env->peer_create(loop, &address, NULL, 0, &own_peer, NULL),
                     COORD_OK);
    assert_int_equal(loop->env->http_send(own_peer, &spec, NULL, NULL), COORD_OK);
}

static void leave_myself(void *arg)
{
    rig *r = arg;
    r->env.loop->env->peer_destroy(own_peer);
}

static void no_descriptor_is_inherited_by_other_programs(void **state)
{
    (void)state;
    bool before[256];
    for (int fd = 0; fd < 256; fd++) {
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    rig r;
    rig_open(&r);
    env_rig_do(&r.env, ask_myself, &r); /* a client and a server, with a connection */
    while (atomic_load(&r.paused) == 0) {
        assert_true(env_rig_await(&r.env));
    }
    int ours = 0;
    for (int fd = 0; fd < 256; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        if (!before[fd] && flags >= 0) {
            assert_true((flags & FD_CLOEXEC) != 0);
            ours++;
        }
    }
    assert_true(ours > 6);
    env_rig_do(&r.env, leave_myself, &r);
    rig_close(&r);
    for (int fd = 0; fd < 256; fd++) {
        assert_int_equal(fcntl(fd, F_GETFD) >= 0, before[fd]);
    }
}

/* ---- memory ---- */

typedef struct fault {
    coord_loop *loop;
    atomic_int left;
} fault;

static bool countdown(void *user);

/* On the loop thread: the hook itself is guarded by nothing. */
static void set_fault(void *arg)
{
    coordi_alloc_set_fault(arg == NULL ? NULL : countdown, arg);
}

/* Counts the loop thread's allocations alone: the test has its own. */
static bool countdown(void *user)
{
    fault *f = user;
    return coordi_inside(f->loop) && atomic_fetch_sub(&f->left, 1) == 0;
}

static void serving_survives_every_failed_allocation(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    bool answered = false;
    for (int n = 0; !answered; n++) {
        fault f = {.loop = r.env.loop};
        atomic_init(&f.left, n);
        atomic_store(&r.count, 0);
        int fd = raw_connect(r.port);
        char got[ANSWER_SIZE];
        env_rig_do(&r.env, set_fault, &f);
        raw_sends(fd, "PUT / HTTP/1.1\r\nHost: x\r\nToken: a\r\nToken: b\r\n"
                      "Content-Length: 2\r\n\r\n{}");
        (void)raw_read_answer(fd, got, sizeof got, false); /* or it is closed */
        (void)close(fd);
        env_rig_do(&r.env, set_fault, NULL);
        answered = atomic_load(&f.left) >= 0;
        assert_true(n < 100);
    }
    rig_close(&r);
}

/* ---- a host that drives the loop itself, and has SIGPIPE at its default ---- */

static void a_client_that_resets_never_raises_sigpipe(void **state)
{
    (void)state;
    rig r = {.http_status = 200, .hold = true};
    coord_loop_options options;
    coord_loop_options_init(&options, sizeof options);
    options.own_thread = false;
    assert_int_equal(coord_loop_create(&options, &r.env.loop, NULL), COORD_OK);
    r.env.event = r.env.loop->env->event_create(r.env.loop);
    r.spec =
        (coordi_http_server_spec){.host = "127.0.0.1", .on_call = on_call, .arg = &r};
    assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_DFL);
    env_rig_do(&r.env, create, &r);
    for (int i = 0; i < 3; i++) {
        int fd = raw_connect(r.port);
        raw_sends(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
        while (atomic_load(&r.count) <= i) {
            assert_int_equal(coord_loop_step(r.env.loop, 1000, NULL), COORD_OK);
        }
        raw_reset(fd);
        env_rig_do(&r.env, answer_all, &r);
        assert_int_equal(coord_loop_step(r.env.loop, 0, NULL), COORD_OK);
    }
    env_rig_do(&r.env, destroy, &r);
    r.env.loop->env->event_destroy(r.env.event);
    coord_loop_destroy(r.env.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_carries_all_that_was_asked),
        cmocka_unit_test(every_method_reaches_the_owner),
        cmocka_unit_test(requests_in_any_shape_are_read),
        cmocka_unit_test(a_client_that_waits_for_continue_is_told_to_go_on),
        cmocka_unit_test(what_is_not_http_never_reaches_the_owner),
        cmocka_unit_test(an_answer_may_come_later),
        cmocka_unit_test(an_answer_without_a_body_is_an_empty_500),
        cmocka_unit_test(an_answer_to_a_client_that_has_gone_is_harmless),
        cmocka_unit_test(a_server_that_goes_leaves_its_open_calls_answerable),
        cmocka_unit_test(a_server_may_be_destroyed_by_its_own_call),
        cmocka_unit_test(an_answer_given_before_destroy_still_goes_out),
        cmocka_unit_test(a_body_over_the_limit_is_drained_and_its_start_is_kept),
        cmocka_unit_test(uploads_over_the_budget_wait_unread),
        cmocka_unit_test(one_upload_is_always_admitted),
        cmocka_unit_test(a_server_goes_with_uploads_unread_and_half_read),
        cmocka_unit_test(a_port_that_is_taken_is_named),
        cmocka_unit_test(any_host_and_names_can_be_listened_on),
        cmocka_unit_test(running_out_of_descriptors_pauses_accepting),
        cmocka_unit_test(no_descriptor_is_inherited_by_other_programs),
        cmocka_unit_test(serving_survives_every_failed_allocation),
        cmocka_unit_test(a_client_that_resets_never_raises_sigpipe),
    };
    return cmocka_run_group_tests_name("env_server", tests, NULL, NULL);
}
