/* The real http client: what it sends, and what it makes of answers. The server answers
 * by script. */
#include "support/client_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

/* One request to a server that does just this step. */
static void one(raw_step step, client_got *ret)
{
    client_rig r;
    client_rig_open(&r, &step, 1);
    *ret = *client_request(&r);
    client_rig_close(&r);
}

/* ---- what is sent ---- */

static void a_request_carries_method_path_headers_and_body(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open(&r, NULL, 0);
    client_got *g = client_request(&r);
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
    client_rig_close(&r);
}

static void a_get_carries_a_body_and_the_prefix(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open(&r, NULL, 0);
    env_rig_do(&r.env, client_destroy_peer, &r);
    (void)snprintf(r.address.prefix, sizeof r.address.prefix, "/some/where");
    env_rig_do(&r.env, client_create_peer, &r);
    r.spec.method = "GET";
    r.body = "{}";
    assert_int_equal(client_request(&r)->status, COORD_OK);
    r.spec.method = "DELETE";
    assert_int_equal(client_request(&r)->status, COORD_OK);
    r.spec.method = "POST";
    r.body = NULL;
    assert_int_equal(client_request(&r)->status, COORD_OK);
    const char *text = raw_server_request(r.server, 0);
    assert_int_equal(strncmp(text, "GET /some/where/task HTTP/1.1\r\n", 31), 0);
    assert_non_null(strstr(text, "\r\nContent-Length: 2\r\n"));
    assert_non_null(strstr(text, "\r\n\r\n{}"));
    text = raw_server_request(r.server, 1);
    assert_int_equal(strncmp(text, "DELETE /some/where/task HTTP/1.1\r\n", 34), 0);
    assert_non_null(strstr(text, "\r\n\r\n{}"));
    text = raw_server_request(r.server, 2);
    assert_non_null(strstr(text, "\r\nContent-Length: 0\r\n"));
    client_rig_close(&r);
}

static void a_large_body_arrives_whole_and_without_expect(void **state)
{
    (void)state;
    enum { LEN = 3000000 };
    client_rig r;
    client_rig_open(&r, NULL, 0);
    char *body = malloc(LEN + 1);
    memset(body, 'x', LEN);
    body[LEN] = '\0';
    r.body = body;
    assert_int_equal(client_request(&r)->status, COORD_OK);
    const char *text = raw_server_request(r.server, 0);
    assert_null(strstr(text, "Expect"));
    assert_int_equal(strlen(strstr(text, "\r\n\r\n")), LEN + 4);
    free(body);
    client_rig_close(&r);
}

/* ---- connections ---- */

static void connections_are_kept_between_requests_unless_fresh(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open(&r, NULL, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(client_request(&r)->status, COORD_OK);
    }
    assert_int_equal(raw_server_connections(r.server), 1);
    r.spec.fresh = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(client_request(&r)->status, COORD_OK);
    }
    assert_int_equal(raw_server_connections(r.server), 4);
    client_rig_close(&r);
}

static void a_connection_that_was_closed_while_idle_is_replaced(void **state)
{
    (void)state;
    const raw_step steps[] = {{.send = OK_EMPTY, .then = RAW_DROP},
                              {.send = OK_EMPTY, .then = RAW_CLOSE},
                              {.send = OK_EMPTY, .then = RAW_RESET}};
    client_rig r;
    client_rig_open(&r, steps, 3);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(client_request(&r)->status, COORD_OK);
    }
    assert_int_equal(raw_server_requests(r.server), 5);
    client_rig_close(&r);
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
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: "
         "1\r\n\r\n1",
         201, "1"},
        {"HTTP/1.1 204 No Content\r\n\r\n", 204, ""},
        {"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n", 302, ""},
        {"HTTP/1.1 500 INTERNAL SERVER ERROR\r\nContent-Type: text/html\r\n"
         "Content-Length: 6\r\nConnection: close\r\n\r\n<html>",
         500, "<html>"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        client_got g;
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
    client_got g;
    one((raw_step){.send = "HTTP/1.1 200 OK\r\nlibcoord: 1\r\nContent-Length: 0\r\n\r\n"},
        &g);
    assert_true(g.marked);
    one((raw_step){.send =
                       "HTTP/1.1 200 OK\r\nLibcoordX: 1\r\nContent-Length: 0\r\n\r\n"},
        &g);
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
        client_got g;
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
    client_got g;
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
    client_got g;
    one((raw_step){.send = flood, .len = at, .then = RAW_CLOSE}, &g);
    assert_int_equal(g.status, COORD_ERR_PROTOCOL);
    free(flood);
}

static void an_answer_over_the_limit_is_too_big(void **state)
{
    (void)state;
    const raw_step steps[] = {
        {.send = "HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n", .then = RAW_SILENT},
        {.send = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n0123456789a",
         .then = RAW_SILENT},
        {.send = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"},
    };
    client_rig r;
    client_rig_open(&r, steps, 3);
    r.spec.max_reply_bytes = 10;
    assert_int_equal(client_request(&r)->status, COORD_ERR_TOO_BIG);
    assert_int_equal(client_request(&r)->status, COORD_ERR_TOO_BIG);
    assert_non_null(strstr(r.got.error.cause, "10 bytes"));
    assert_int_equal(client_request(&r)->status, COORD_OK);
    client_rig_close(&r);
}

static void a_silent_server_is_given_up_at_the_deadline(void **state)
{
    (void)state;
    const raw_step steps[] = {{.send = NULL, .then = RAW_SILENT}};
    client_rig r;
    client_rig_open(&r, steps, 1);
    r.spec.timeout_ms = 50;
    client_got *g = client_request(&r);
    assert_int_equal(g->status, COORD_ERR_TIMEOUT);
    assert_false(g->undelivered);
    client_rig_close(&r);
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
    };
    return cmocka_run_group_tests_name("env_http", tests, NULL, NULL);
}
