/* The operator server's client over real sockets, with a server that writes its answers
 * as the one in Go does. No times are asserted. */
#include "coord/operator_server.h"
#include "support/fake_operator.h"
#include "support/raw_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_MS = 20000 };

typedef struct rig {
    fake_operator *fake;
    coord_operator_server_options options;
    char address[64];
    coord_operator_server *server;
    coord_operator_answer *answer;
    coord_error err;
} rig;

static void client_open(rig *r, uint16_t port)
{
    (void)snprintf(r->address, sizeof r->address, "http://127.0.0.1:%u", (unsigned)port);
    coord_operator_server_options_init(&r->options, sizeof r->options);
    r->options.system_addr = r->address;
    r->options.name_space = "default";
    r->options.name = "job-coordinator";
    r->options.job_id = "default.job";
    r->options.settle_ms = 100;
    r->options.retry_wait_ms = 10;
    assert_int_equal(coord_operator_server_create(&r->options, &r->server, &r->err),
                     COORD_OK);
}

static void open_rig(rig *r, int api)
{
    memset(r, 0, sizeof *r);
    r->fake = fake_operator_on_sockets(&(fake_operator_spec){.api = api});
    client_open(r, fake_operator_port(r->fake));
}

static void close_rig(rig *r)
{
    coord_operator_answer_destroy(r->answer);
    coord_operator_server_destroy(r->server);
    fake_operator_stop(r->fake);
}

static coord_status get(rig *r, int64_t wait_ms)
{
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_get(r->server, wait_ms, &r->answer, &r->err);
}

static coord_status post(rig *r, int collectors, int nodes)
{
    coord_operator_request request;
    coord_operator_request_init(&request, sizeof request);
    request.collectors = collectors;
    request.nodes = nodes;
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_post(r->server, &request, LONG_MS, &r->answer, &r->err);
}

static void expect(const rig *r, coord_status got, coord_status expected)
{
    if (got != expected) {
        fail_msg("%d: %s: %s", (int)got, r->err.text, r->err.cause);
    }
}

static void all_four_work_over_sockets(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_null_lists(r.fake, true);
    expect(&r, post(&r, 3, 0), COORD_OK);
    assert_int_equal(r.answer->collector_count, 3);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 3);
    const char *names[] = {fake_operator_id(r.fake, FAKE_COLLECTORS, 0)};
    coord_operator_answer_destroy(r.answer);
    expect(&r,
           coord_operator_server_failed(r.server, names, 1, LONG_MS, &r.answer, &r.err),
           COORD_OK);
    assert_int_equal(r.answer->collector_count, 1);
    coord_operator_request request;
    coord_operator_request_init(&request, sizeof request);
    request.collectors = 2;
    coord_operator_answer_destroy(r.answer);
    expect(&r,
           coord_operator_server_delete(r.server, &request, LONG_MS, &r.answer, &r.err),
           COORD_OK);
    assert_int_equal(r.answer->collector_count, 2);
    assert_int_equal(fake_operator_count(r.fake, FAKE_COLLECTORS), 1);
    close_rig(&r);
}

static void a_broken_connection_does_not_create_twice(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    expect(&r, get(&r, LONG_MS), COORD_OK); /* a connection is kept */
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_BROKEN, 1);
    expect(&r, post(&r, 4, 0), COORD_OK);
    assert_int_equal(fake_operator_created(r.fake), 4);
    assert_int_equal(fake_operator_requests(r.fake, FAKE_POST), 1);
    assert_int_equal(r.answer->collector_count, 4);
    close_rig(&r);
}

static void the_newer_api_is_found_out(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V2);
    fake_operator_scale(r.fake, FAKE_NODES, 2);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->node_count, 2);
    expect(&r, post(&r, 0, 1), COORD_OK);
    assert_int_equal(fake_operator_count(r.fake, FAKE_NODES), 3);
    close_rig(&r);
}

static void nobody_there_is_refused_and_passes(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_listening(r.fake, false);
    expect(&r, get(&r, 50), COORD_ERR_LOST);
    assert_non_null(strstr(r.err.text, r.address));
    fake_operator_set_listening(r.fake, true);
    fake_operator_set_delay(r.fake, 20);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    close_rig(&r);
}

static void a_silent_server_ends_a_call_in_its_time(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_SILENT, 10);
    expect(&r, get(&r, 200), COORD_ERR_TIMEOUT);
    fake_operator_mend(r.fake);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    close_rig(&r);
}

/* As it is on the wire. */
static void a_get_asks_in_one_line_and_ignores_proxies(void **state)
{
    (void)state;
    static const raw_step STEPS[] = {
        {.send =
             "HTTP/1.1 200 OK\r\nConten-Type: application/json\r\nContent-Type: "
             "text/plain; charset=utf-8\r\nContent-Length: 78\r\n\r\n"
             "{\"success\":true,\"code\":0,\"message\":\"m\",\"data\":{\"collectors\":"
             "[\"a.b:1\"]       }}"},
    };
    rig r = {0};
    raw_server *raw = raw_server_start(STEPS, 1);
    assert_int_equal(setenv("http_proxy", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(setenv("ALL_PROXY", "http://127.0.0.1:1", 1), 0);
    client_open(&r, raw_server_port(raw));
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 1);
    const char *text = raw_server_request(raw, 0);
    const char *line =
        "GET /v1alpha1/replicas?namespace=default&coordinator=job-coordinator "
        "HTTP/1.1\r\n";
    assert_int_equal(strncmp(text, line, strlen(line)), 0);
    (void)unsetenv("http_proxy");
    (void)unsetenv("ALL_PROXY");
    coord_operator_answer_destroy(r.answer);
    coord_operator_server_destroy(r.server);
    raw_server_stop(raw);
}

static void a_loop_that_the_host_steps_does(void **state)
{
    (void)state;
    rig r;
    coord_loop *loop;
    coord_loop_options own;
    coord_loop_options_init(&own, sizeof own);
    own.own_thread = false;
    assert_int_equal(coord_loop_create(&own, &loop, NULL), COORD_OK);
    memset(&r, 0, sizeof r);
    r.fake = fake_operator_on_sockets(NULL);
    client_open(&r, fake_operator_port(r.fake));
    coord_operator_server_destroy(r.server);
    r.options.loop = loop;
    assert_int_equal(coord_operator_server_create(&r.options, &r.server, &r.err),
                     COORD_OK);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    close_rig(&r);
    coord_loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_four_work_over_sockets),
        cmocka_unit_test(a_broken_connection_does_not_create_twice),
        cmocka_unit_test(the_newer_api_is_found_out),
        cmocka_unit_test(nobody_there_is_refused_and_passes),
        cmocka_unit_test(a_silent_server_ends_a_call_in_its_time),
        cmocka_unit_test(a_get_asks_in_one_line_and_ignores_proxies),
        cmocka_unit_test(a_loop_that_the_host_steps_does),
    };
    return cmocka_run_group_tests_name("operator_real", tests, NULL, NULL);
}
