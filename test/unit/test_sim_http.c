/* Simulated HTTP: addresses and ports, requests and answers, limits, and the faults that
 * lie between. */
#include "base/alloc.h"
#include "base/error.h"
#include "coord/testing.h"
#include "env/env.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { KEPT_CALLS = 8 };

/* A client on 10.0.0.1, a server on 10.0.0.2, and what they saw. */
typedef struct rig {
    coord_sim *sim;
    coord_loop *client;
    coord_loop *host;
    const coordi_env *env;
    coordi_http_server *server;
    coordi_http_peer *peer;
    uint16_t port;
    bool holds; /* the server keeps calls instead of answering at once */
    coordi_http_call *calls[KEPT_CALLS];
    int requests;
    char last_request[128];
    int replies;
    coord_status status;
    bool undelivered;
    bool marked;
    int http_status;
    char body[256];
    char why[520];
    int os_errno;
    int64_t at_ms;
} rig;

static void answer(rig *r, coordi_http_call *call, int status, const char *body)
{
    r->env->http_answer(call, status, coordi_strdup(body), strlen(body));
}

static void on_call(coordi_http_call *call, void *arg)
{
    rig *r = arg;
    (void)snprintf(
        r->last_request, sizeof r->last_request, "%s %s %.*s%s%s from %s", call->method,
        call->path, (int)call->body.len, call->body.ptr == NULL ? "" : call->body.ptr,
        call->too_big ? " too big" : "", call->marked ? "" : " unmarked", call->peer);
    if (r->holds) {
        assert_in_range(r->requests, 0, KEPT_CALLS - 1);
        r->calls[r->requests++] = call;
        return;
    }
    r->requests++;
    answer(r, call, 200, "yes");
}

static void on_done(const coordi_http_reply *reply, void *arg)
{
    rig *r = arg;
    assert_true(coordi_inside(r->client));
    r->replies++;
    r->status = reply->status;
    r->undelivered = reply->undelivered;
    r->marked = reply->marked;
    r->http_status = reply->http_status;
    r->at_ms = coord_sim_now_ms(r->sim);
    (void)snprintf(r->body, sizeof r->body, "%.*s", (int)reply->body.len,
                   reply->body.ptr == NULL ? "" : reply->body.ptr);
    assert_true((reply->error == NULL) == (reply->status == COORD_OK));
    if (reply->error != NULL) {
        assert_int_equal(reply->error->status, reply->status);
        (void)snprintf(r->why, sizeof r->why, "%.255s: %.255s", reply->error->text,
                       reply->error->cause);
        r->os_errno = reply->error->os_errno;
    }
}

static coord_status listen_on(rig *r, coord_loop *loop, const char *host, uint16_t port,
                              coordi_http_server **ret, coord_error *err)
{
    coordi_http_server_spec spec = {
        .host = host, .port = port, .max_body_bytes = 20, .on_call = on_call, .arg = r};
    return r->env->server_create(loop, &spec, ret, err);
}

static coordi_http_peer *peer_to(rig *r, coord_loop *loop, const char *where)
{
    coordi_http_header headers[] = {{"X-Id", "7"}, {"x-id", "8"}, {"Other", "o"}};
    coordi_address address;
    coordi_http_peer *peer = NULL;
    assert_int_equal(coordi_address_read(where, strlen(where), &address, NULL), COORD_OK);
    assert_int_equal(r->env->peer_create(loop, &address, headers, 3, &peer, NULL),
                     COORD_OK);
    return peer;
}

static void rig_open(rig *r, uint64_t seed)
{
    coord_sim_options options;
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&options, sizeof options);
    options.seed = seed;
    assert_int_equal(coord_sim_create(&options, &r->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "10.0.0.1", &r->client, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "10.0.0.2", &r->host, NULL), COORD_OK);
    r->env = r->client->env;
    assert_int_equal(listen_on(r, r->host, "", 0, &r->server, NULL), COORD_OK);
    r->port = r->env->server_port(r->server);
    assert_int_equal(r->port, 20000);
    r->peer = peer_to(r, r->client, "10.0.0.2:20000/v1");
}

static void rig_close(rig *r)
{
    r->env->peer_destroy(r->peer);
    r->env->server_destroy(r->server);
    coord_loop_destroy(r->client);
    coord_loop_destroy(r->host);
    coord_sim_destroy(r->sim);
}

static coordi_http_request *send_to(rig *r, coordi_http_peer *peer, const char *body,
                                    bool fresh)
{
    coordi_http_request *request = NULL;
    coordi_http_spec spec = {.method = "POST",
                             .path = "/a%20b?x=1",
                             .body = coordi_strdup(body),
                             .body_len = strlen(body),
                             .timeout_ms = 1000,
                             .fresh = fresh,
                             .done = on_done,
                             .arg = r};
    assert_int_equal(r->env->http_send(peer, &spec, &request, NULL), COORD_OK);
    assert_int_equal(r->replies, 0); /* never from within send */
    return request;
}

static void run_for(rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

/* Sends and waits for the reply. */
static coord_status ask(rig *r, const char *body, bool fresh)
{
    r->replies = 0;
    (void)send_to(r, r->peer, body, fresh);
    run_for(r, 1100);
    assert_int_equal(r->replies, 1);
    return r->status;
}

static coord_sim_link link_of(rig *r)
{
    coord_sim_link link;
    coord_sim_link_init(r->sim, &link, sizeof link);
    return link;
}

static void set_link(rig *r, const char *from, const char *to, const coord_sim_link *link)
{
    assert_int_equal(coord_sim_set_link(r->sim, from, to, link, NULL), COORD_OK);
}

/* ---- requests and answers ---- */

static void a_request_is_delivered_and_answered(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    assert_int_equal(ask(&r, "hello", true), COORD_OK);
    assert_string_equal(r.last_request, "POST /v1/a b hello from 10.0.0.1");
    assert_int_equal(r.http_status, 200);
    assert_string_equal(r.body, "yes");
    assert_true(r.marked);
    assert_in_range(r.at_ms, 1002, 1010);
    rig_close(&r);
}

static void latency_is_what_the_link_says(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    coord_sim_link slow = link_of(&r);
    slow.latency_min_ms = slow.latency_max_ms = 100;
    set_link(&r, "10.0.0.1", NULL, &slow);
    slow.latency_min_ms = slow.latency_max_ms = 30;
    set_link(&r, NULL, "10.0.0.1", &slow);
    assert_int_equal(ask(&r, "x", true), COORD_OK);
    assert_int_equal(r.at_ms, 1130);
    slow.latency_max_ms = 29;
    assert_int_equal(coord_sim_set_link(r.sim, NULL, NULL, &slow, NULL), COORD_ERR_ARG);
    slow = link_of(&r);
    slow.loss = 1.01;
    assert_int_equal(coord_sim_set_link(r.sim, NULL, NULL, &slow, NULL), COORD_ERR_ARG);
    rig_close(&r);
}

static void headers_arrive_with_repeated_ones_joined(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    r.holds = true;
    (void)send_to(&r, r.peer, "", true);
    run_for(&r, 10);
    assert_string_equal(r.env->call_header(r.calls[0], "X-ID"), "7,8");
    assert_string_equal(r.env->call_header(r.calls[0], "other"), "o");
    assert_non_null(r.env->call_header(r.calls[0], COORDI_HTTP_MARK));
    assert_null(r.env->call_header(r.calls[0], "none"));
    answer(&r, r.calls[0], 204, "");
    run_for(&r, 10);
    assert_int_equal(r.http_status, 204);
    rig_close(&r);
}

static void a_foreign_process_leaves_no_mark(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    coord_sim_set_foreign(r.sim, r.host, true);
    assert_int_equal(ask(&r, "x", true), COORD_OK);
    assert_false(r.marked);
    assert_null(strstr(r.last_request, "unmarked"));
    coord_sim_set_foreign(r.sim, r.client, true);
    assert_int_equal(ask(&r, "x", true), COORD_OK);
    assert_non_null(strstr(r.last_request, "unmarked"));
    rig_close(&r);
}

static void an_answer_may_come_later_and_an_empty_one_is_a_500(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    r.holds = true;
    (void)send_to(&r, r.peer, "x", true);
    run_for(&r, 500);
    assert_int_equal(r.replies, 0);
    r.env->http_answer(r.calls[0], 200, NULL, 0);
    run_for(&r, 10);
    assert_int_equal(r.status, COORD_OK);
    assert_int_equal(r.http_status, 500);
    assert_string_equal(r.body, "");
    rig_close(&r);
}

static void a_cancelled_request_is_never_done(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    r.env->http_cancel(send_to(&r, r.peer, "x", true));
    coordi_http_peer *second = peer_to(&r, r.client, "10.0.0.2:20000");
    (void)send_to(&r, second, "y", true);
    r.env->peer_destroy(second);
    run_for(&r, 2000);
    assert_int_equal(r.requests, 2); /* they were sent all the same */
    assert_int_equal(r.replies, 0);
    rig_close(&r);
}

static void a_server_that_never_answers_runs_into_the_timeout(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    r.holds = true;
    assert_int_equal(ask(&r, "x", true), COORD_ERR_TIMEOUT);
    assert_int_equal(r.at_ms, 2000);
    assert_false(r.undelivered);
    assert_string_equal(r.why, "POST http://10.0.0.2:20000/v1/a%20b?x=1: timed out: "
                               "no answer within 1000 ms");
    answer(&r, r.calls[0], 200, "too late");
    run_for(&r, 100);
    assert_int_equal(r.replies, 1);
    rig_close(&r);
}

static void limits_hold(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    assert_int_equal(ask(&r, "a body of 27 bytes, no more", true), COORD_OK);
    assert_string_equal(r.last_request,
                        "POST /v1/a b a body of 27 bytes,  too big from 10.0.0.1");
    r.replies = 0;
    coordi_http_spec spec = {.method = "GET",
                             .path = "/",
                             .timeout_ms = 1000,
                             .max_reply_bytes = 2,
                             .done = on_done,
                             .arg = &r};
    assert_int_equal(r.env->http_send(r.peer, &spec, NULL, NULL), COORD_OK);
    run_for(&r, 100);
    assert_int_equal(r.status, COORD_ERR_TOO_BIG);
    assert_false(r.undelivered);
    rig_close(&r);
}

static void bodies_over_the_budget_wait_but_small_ones_do_not(void **state)
{
    (void)state;
    rig r;
    coordi_http_server *server = NULL;
    rig_open(&r, 1);
    coordi_http_server_spec spec = {.host = "",
                                    .port = 9000,
                                    .max_body_bytes = 8000,
                                    .max_inflight_bytes = 12000,
                                    .on_call = on_call,
                                    .arg = &r};
    assert_int_equal(r.env->server_create(r.host, &spec, &server, NULL), COORD_OK);
    coordi_http_peer *peer = peer_to(&r, r.client, "10.0.0.2:9000");
    char big[5001];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    r.holds = true;
    for (int i = 0; i < 3; i++) {
        (void)send_to(&r, peer, big, true);
    }
    run_for(&r, 100);
    assert_int_equal(r.requests, 2);
    (void)send_to(&r, peer, "small", true);
    run_for(&r, 100);
    assert_int_equal(r.requests, 3);
    for (int i = 0; i < 4; i++) {
        answer(&r, r.calls[i], 200, "");
        run_for(&r, 100);
        assert_int_equal(r.requests, 4);
    }
    assert_int_equal(r.replies, 4);
    r.env->peer_destroy(peer);
    r.env->server_destroy(server);
    rig_close(&r);
}

/* ---- addresses ---- */

static void a_port_can_be_taken_once(void **state)
{
    (void)state;
    rig r;
    coord_error err;
    coordi_http_server *more = NULL;
    rig_open(&r, 1);
    assert_int_equal(listen_on(&r, r.host, "127.0.0.1", 20000, &more, &err),
                     COORD_ERR_IO);
    assert_int_equal(err.os_errno, EADDRINUSE);
    assert_string_equal(err.text, "listen on 127.0.0.1:20000");
    assert_int_equal(listen_on(&r, r.client, "10.0.0.9", 0, &more, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, EADDRNOTAVAIL);
    assert_int_equal(listen_on(&r, r.client, "10.0.0.1", 20000, &more, NULL), COORD_OK);
    r.env->server_destroy(more);
    assert_int_equal(listen_on(&r, r.host, "", 0, &more, NULL), COORD_OK);
    assert_int_equal(r.env->server_port(more), 20001);
    r.env->server_destroy(more);
    rig_close(&r);
}

static void loopback_stays_on_its_machine(void **state)
{
    (void)state;
    rig r;
    coordi_http_server *local = NULL;
    rig_open(&r, 1);
    assert_int_equal(listen_on(&r, r.host, "127.0.0.1", 7000, &local, NULL), COORD_OK);
    coordi_http_peer *near = peer_to(&r, r.host, "localhost:7000");
    coordi_http_peer *far = peer_to(&r, r.client, "10.0.0.2:7000");
    coordi_http_peer *wrong = peer_to(&r, r.client, "127.0.0.1:7000");
    coord_loop *client = r.client;
    r.client = r.host; /* on whose loop on_done expects to be */
    (void)send_to(&r, near, "x", true);
    run_for(&r, 100);
    assert_int_equal(r.status, COORD_OK);
    assert_non_null(strstr(r.last_request, "from 127.0.0.1"));
    r.client = client;
    coordi_http_peer *elsewhere[] = {far, wrong};
    for (int i = 0; i < 2; i++) {
        r.replies = 0;
        (void)send_to(&r, elsewhere[i], "x", true);
        run_for(&r, 100);
        assert_int_equal(r.status, COORD_ERR_LOST);
        assert_int_equal(r.os_errno, ECONNREFUSED);
    }
    r.env->peer_destroy(near);
    r.env->peer_destroy(far);
    r.env->peer_destroy(wrong);
    r.env->server_destroy(local);
    rig_close(&r);
}

static void names_resolve_when_a_machine_has_them(void **state)
{
    (void)state;
    rig r;
    coord_loop *named = NULL;
    coordi_http_server *server = NULL;
    rig_open(&r, 1);
    coordi_http_peer *peer = peer_to(&r, r.client, "node-3:8000");
    (void)send_to(&r, peer, "x", true);
    run_for(&r, 100);
    assert_int_equal(r.status, COORD_ERR_LOST);
    assert_true(r.undelivered);
    assert_non_null(strstr(r.why, ": no such host"));
    assert_int_equal(coord_sim_loop(r.sim, "node-3", &named, NULL), COORD_OK);
    assert_int_equal(listen_on(&r, named, "node-3", 8000, &server, NULL), COORD_OK);
    r.replies = 0;
    (void)send_to(&r, peer, "x", true);
    run_for(&r, 100);
    assert_int_equal(r.status, COORD_OK);
    r.env->peer_destroy(peer);
    r.env->server_destroy(server);
    coord_loop_destroy(named);
    rig_close(&r);
}

static void a_machine_that_is_not_there_is_silent(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    coordi_http_peer *peer = peer_to(&r, r.client, "10.9.9.9:8000");
    (void)send_to(&r, peer, "x", true);
    run_for(&r, 1000);
    assert_int_equal(r.status, COORD_ERR_TIMEOUT);
    assert_true(r.undelivered);
    assert_non_null(strstr(r.why, "timed out: no connection within 1000 ms"));
    r.env->peer_destroy(peer);
    rig_close(&r);
}

static void on_path(coord_status status, const char *local, const coord_error *error,
                    void *arg)
{
    rig *r = arg;
    r->replies++;
    r->status = status;
    (void)snprintf(r->body, sizeof r->body, "%s",
                   status == COORD_OK ? local : error->text);
}

static void find_path(rig *r, coord_loop *loop, const char *to, const char *expected)
{
    coordi_http_peer *peer = peer_to(r, loop, to);
    r->replies = 0;
    assert_int_equal(r->env->peer_path(peer, 100, on_path, r, NULL), COORD_OK);
    assert_int_equal(r->replies, 0);
    run_for(r, 100);
    assert_int_equal(r->replies, 1);
    assert_string_equal(r->body, expected);
    assert_int_equal(r->env->peer_path(peer, 100, on_path, r, NULL), COORD_OK);
    r->env->peer_destroy(peer);
    run_for(r, 100);
    assert_int_equal(r->replies, 1);
}

static void the_path_to_a_peer_tells_the_own_address(void **state)
{
    (void)state;
    rig r;
    coord_loop *named = NULL;
    rig_open(&r, 1);
    assert_int_equal(coord_sim_loop(r.sim, "node-3", &named, NULL), COORD_OK);
    find_path(&r, r.client, "10.0.0.2:1", "10.0.0.1");
    find_path(&r, r.client, "localhost:1", "127.0.0.1");
    find_path(&r, named, "10.0.0.2:1", "10.83.0.1");
    find_path(&r, named, "nowhere:1", "nowhere: no such host");
    coord_loop_destroy(named);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_delivered_and_answered),
        cmocka_unit_test(latency_is_what_the_link_says),
        cmocka_unit_test(headers_arrive_with_repeated_ones_joined),
        cmocka_unit_test(a_foreign_process_leaves_no_mark),
        cmocka_unit_test(an_answer_may_come_later_and_an_empty_one_is_a_500),
        cmocka_unit_test(a_cancelled_request_is_never_done),
        cmocka_unit_test(a_server_that_never_answers_runs_into_the_timeout),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(bodies_over_the_budget_wait_but_small_ones_do_not),
        cmocka_unit_test(a_port_can_be_taken_once),
        cmocka_unit_test(loopback_stays_on_its_machine),
        cmocka_unit_test(names_resolve_when_a_machine_has_them),
        cmocka_unit_test(a_machine_that_is_not_there_is_silent),
        cmocka_unit_test(the_path_to_a_peer_tells_the_own_address),
    };
    return cmocka_run_group_tests_name("sim http", tests, NULL, NULL);
}
