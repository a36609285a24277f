/* The endpoint that slaves report to: what it answers to whom, and how it closes. */
#include "interaction/master.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const coord_text NOTHING = {NULL, 0};

/* A master that knows one slave, whose token is `token`. */
typedef struct bench {
    wire_rig r;
    peer *p;
    coord_connection *c;
    const char *token;
} bench;

static void setup(bench *b)
{
    wire_open(&b->r, 1);
    wire_master(&b->r, NULL);
    b->p = wire_peer(&b->r, true);
    b->c = wire_connected(&b->r, "s", b->p);
    b->token = peer_get(b->p, "/connect", 0)->token;
}

static void teardown(bench *b)
{
    coord_connection_destroy(b->c);
    wire_close(&b->r);
}

/* Tokens of the table below. */
static const char SLAVE[] = "slave";
static const char OWN[] = "own";

typedef struct row {
    const char *method;
    const char *path;
    const char *token;
    const char *channel;
    const char *body;
    int http_status;
    int code;
    const char *says;
} row;

#define ID "\"01234567-89ab-cdef-0123-456789abcdef\""

static const row ROWS[] = {
    {"GET", "/slave/heartbeat", NULL, NULL, "{}", 400, 201, "Channel not found."},
    {"GET", "/slave/heartbeat", NULL, "", "{}", 400, 201, "Channel not found."},
    {"GET", "/slave/heartbeat", SLAVE, "7.0", "{}", 400, 202, "Channel"},
    {"GET", "/slave/heartbeat", SLAVE, "7", "{}", 403, 202, "Channel not match"},
    {"GET", "/slave/heartbeat", NULL, "0", "{}", 400, 501, "Slave token not found."},
    {"GET", "/slave/heartbeat", "x", "0", "{}", 403, 502, "No matching slave token"},
    {"GET", "/slave/heartbeat", SLAVE, "0", "{}", 200, 0, "Received!"},
    {"GET", "/slave/heartbeat", SLAVE, " +0 ", "{}", 200, 0, "Received!"},
    {"GET", "/slave/heartbeat", SLAVE, "0", NULL, 200, 0, "Received!"},
    {"GET", "/slave/heartbeat", SLAVE, "0", "junk", 200, 0, "Received!"},
    {"POST", "/slave/heartbeat", SLAVE, "0", "{}", 405, -2, ""},
    {"PUT", "/slave/task/complete", "x", "0", "junk", 403, 502, ""},
    {"PUT", "/slave/task/complete", SLAVE, "0", NULL, 400, 601, "no body"},
    {"PUT", "/slave/task/complete", SLAVE, "0", "junk", 400, 601, "not a JSON object"},
    {"PUT", "/slave/task/complete", SLAVE, "0", "[1]", 400, 601, "not a JSON object"},
    {"PUT", "/slave/task/complete", SLAVE, "0", "{}", 200, 601,
     "Task information not found."},
    {"PUT", "/slave/task/complete", SLAVE, "0", "{\"task\": {}}", 400, 601, "result"},
    {"PUT", "/slave/task/complete", SLAVE, "0", "{\"task\": {}, \"result\": 1}", 200, 601,
     "Task ID not found."},
    {"PUT", "/slave/task/complete", SLAVE, "0", "{\"task\": 5, \"result\": 1}", 400, 601,
     "not an object"},
    {"PUT", "/slave/task/complete", SLAVE, "0",
     "{\"task\": {\"id\": \"no\"}, \"result\": 1}", 400, 601, "not a UUID"},
    {"PUT", "/slave/task/complete", SLAVE, "0",
     "{\"task\": {\"id\": " ID "}, \"result\": NaN, \"more\": 1}", 200, 0,
     "Result received!"},
    {"PUT", "/slave/task/fail", SLAVE, "0",
     "{\"task\": {\"id\": " ID "}, \"result\": null}", 200, 0, "Result received!"},
    {"GET", "/ping", NULL, NULL, "{}", 400, 401, "Master token not found."},
    {"GET", "/ping", SLAVE, NULL, "{}", 403, 402, "Master token not match"},
    {"GET", "/ping", OWN, NULL, "{}", 200, 0, "PONG!"},
    {"GET", "/ping/", OWN, NULL, "{}", 404, -2, ""},
    {"DELETE", "/shutdown", "x", NULL, "{}", 403, 402, "Master token not match"},
};

static void requests_are_checked_in_the_protocols_order(void **state)
{
    static bench b;
    (void)state;
    setup(&b);
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        const row *w = &ROWS[i];
        const char *token = w->token == SLAVE ? b.token
                            : w->token == OWN ? b.r.master->token
                                              : w->token;
        const peer_reply *reply = peer_ask(b.p, "10.0.0.1", b.r.port, w->method, w->path,
                                           token, w->channel, w->body);
        if (reply->http_status != w->http_status ||
            (w->code != -2 && reply->code != w->code) ||
            strstr(reply->body, w->says) == NULL) {
            fail_msg("row %zu: %s %s answered %d: %s", i, w->method, w->path,
                     reply->http_status, reply->body);
        }
        assert_int_equal(reply->success, w->http_status == 200 && w->code == 0);
    }
    teardown(&b);
}

static void after_shutdown_everybody_is_told(void **state)
{
    static bench b;
    (void)state;
    setup(&b);
    const peer_reply *reply = peer_ask(b.p, "10.0.0.1", b.r.port, "DELETE", "/shutdown",
                                       b.r.master->token, NULL, "{}");
    assert_int_equal(reply->http_status, 200);
    reply = peer_await_reply(b.p, peer_beat(b.p), 1000);
    assert_int_equal(reply->http_status, 401);
    assert_int_equal(reply->code, 101);
    teardown(&b);
}

static void a_ping_reaches_the_master_itself(void **state)
{
    static bench b;
    (void)state;
    setup(&b);
    assert_int_equal(coord_master_ping(b.r.master, 1000, NULL), COORD_OK);
    assert_int_equal(coord_master_ping(b.r.master, 0, NULL), COORD_ERR_ARG);
    assert_string_equal(coord_master_host(b.r.master), "10.0.0.1");
    assert_int_equal(coord_master_close(b.r.master, 5000, NULL), COORD_OK);
    assert_int_equal(coord_master_ping(b.r.master, 1000, NULL), COORD_ERR_LOST);
    teardown(&b);
}

/* ---- closing ---- */

static void close_disconnects_idle_slaves_and_drops_busy_ones(void **state)
{
    static bench b;
    (void)state;
    setup(&b);
    peer *busy = wire_peer(&b.r, true);
    coord_connection *c2 = wire_connected(&b.r, "busy", busy);
    coord_task *task = wire_task(&b.r, c2, "{}");
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
    assert_int_equal(coord_master_close(b.r.master, 5000, NULL), COORD_OK);
    assert_int_equal(peer_count(b.p, "/disconnect"), 1);
    assert_int_equal(peer_count(busy, "/disconnect"), 0);
    assert_int_equal(coord_task_join(task, 0, NULL), COORD_ERR_CLOSED);
    assert_false(coord_connection_is_connected(b.c));
    assert_int_equal(coord_master_close(b.r.master, 5000, NULL), COORD_OK);
    const peer_reply *gone = peer_await_reply(b.p, peer_beat(b.p), 1000);
    assert_int_equal(gone->status, COORD_ERR_LOST);
    coord_task_unref(task);
    coord_connection_destroy(c2);
    teardown(&b);
}

typedef struct closer {
    coord_master *master;
    coord_status status;
} closer;

static void close_master(void *user)
{
    closer *k = user;
    k->status = coord_master_close(k->master, 5000, NULL);
}

static void slaves_are_heard_while_the_master_closes(void **state)
{
    static bench b;
    coord_sim_thread *thread;
    (void)state;
    setup(&b);
    closer k = {b.r.master, COORD_AGAIN};
    peer_script(b.p, "/disconnect", 1, 0, NULL);
    assert_int_equal(coord_sim_thread_start(b.r.sim, close_master, &k, &thread, NULL),
                     COORD_OK);
    assert_true(peer_await(b.p, "/disconnect", 1, 1000));
    assert_int_equal(peer_await_reply(b.p, peer_beat(b.p), 1000)->http_status, 200);
    peer_answer(b.p, peer_get(b.p, "/disconnect", 0), 200, PEER_YES);
    assert_int_equal(coord_sim_thread_join(thread, 10000, NULL), COORD_OK);
    assert_int_equal(k.status, COORD_OK);
    teardown(&b);
}

static void a_closed_master_makes_no_callbacks_and_no_connections(void **state)
{
    static bench b;
    coord_connection_options o;
    coord_connection *c = NULL;
    coord_task *task = NULL;
    coord_error err;
    (void)state;
    setup(&b);
    task = wire_task(&b.r, b.c, "{}");
    assert_int_equal(coord_master_close(b.r.master, 5000, NULL), COORD_OK);
    coord_connection_options_init(&o, sizeof o);
    o.id = "n";
    o.host = "h";
    o.port = 1;
    assert_int_equal(coord_master_new_connection(b.r.master, &o, &c, &err), COORD_OK);
    assert_int_equal(coord_connection_connect(c, NOTHING, 100, &err), COORD_ERR_STATE);
    coord_task *other = NULL;
    assert_int_equal(coord_connection_new_task(c, NOTHING, &other, NULL), COORD_OK);
    assert_int_equal(coord_task_on_fail(other, NULL, NULL, &err), COORD_ERR_CLOSED);
    coord_task_unref(other);
    coord_task_unref(task);
    coord_connection_destroy(c);
    teardown(&b);
}

static void slow_callback(wire_rig *r, const wire_note *n, void *object)
{
    (void)n;
    (void)object;
    wire_run(r, 3000);
}

static void close_waits_for_callbacks_and_may_be_called_again(void **state)
{
    static bench b;
    (void)state;
    setup(&b);
    b.r.on_note = slow_callback;
    assert_int_equal(coord_connection_disconnect(b.c, NOTHING, 1000, NULL), COORD_OK);
    assert_int_equal(coord_master_close(b.r.master, 1000, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_master_close(b.r.master, 5000, NULL), COORD_OK);
    teardown(&b);
}

static void a_master_can_be_destroyed_without_close_and_before_its_children(void **state)
{
    static bench b;
    (void)state;
    setup(&b);
    coord_task *task = wire_task(&b.r, b.c, "{}");
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
    coord_master_destroy(b.r.master);
    b.r.master = NULL;
    assert_int_equal(coord_task_join(task, 1000, NULL), COORD_ERR_CLOSED);
    assert_false(coord_connection_is_connected(b.c));
    assert_int_equal(coord_connection_connect(b.c, NOTHING, 100, NULL), COORD_ERR_STATE);
    assert_int_equal(coord_connection_disconnect(b.c, NOTHING, 100, NULL), COORD_OK);
    coord_task *late = NULL;
    assert_int_equal(coord_connection_new_task(b.c, NOTHING, &late, NULL), COORD_OK);
    assert_int_equal(coord_task_start(late, 100, 0, NULL), COORD_ERR_STATE);
    coord_task_unref(late);
    coord_task_unref(task);
    teardown(&b);
    coord_master_destroy(NULL);
}

/* ---- options ---- */

static void options_are_checked(void **state)
{
    static wire_rig r;
    coord_master_options o;
    coord_master *m = NULL;
    coord_error err;
    (void)state;
    wire_open(&r, 1);
    coord_master_options_init(&o, sizeof o);
    o.loop = r.loop;
    o.host = "10.0.0.1";
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "beyond loopback"));
    o.host = "[::1]";
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "without port and brackets, got \"[::1]\""));
    o.host = "10.0.0.1";
    o.my_address = "10.0.0.1:7";
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "my_address must be"));
    o.my_address = NULL;
    o.insecure = true;
    o.heartbeat_check_ms = 0;
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_ERR_ARG);
    o.heartbeat_check_ms = 1;
    o.max_inflight_bytes = 1;
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_ERR_ARG);
    o.max_inflight_bytes = o.max_body_bytes;
    o.size = 3;
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_ERR_ABI);
    o.size = sizeof o;
    o.host = "10.9.9.9";
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_ERR_IO);
    assert_null(m);
    assert_int_equal(coord_master_create(NULL, &m, &err), COORD_ERR_ARG);
    o.host = "10.0.0.1";
    o.port = 30000;
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_OK);
    coord_master *twin = NULL;
    assert_int_equal(coord_master_create(&o, &twin, &err), COORD_ERR_IO);
    assert_int_not_equal(err.os_errno, 0);
    assert_int_equal(coord_master_port(m), 30000);
    coord_master_destroy(m);
    wire_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_checked_in_the_protocols_order),
        cmocka_unit_test(after_shutdown_everybody_is_told),
        cmocka_unit_test(a_ping_reaches_the_master_itself),
        cmocka_unit_test(close_disconnects_idle_slaves_and_drops_busy_ones),
        cmocka_unit_test(slaves_are_heard_while_the_master_closes),
        cmocka_unit_test(a_closed_master_makes_no_callbacks_and_no_connections),
        cmocka_unit_test(close_waits_for_callbacks_and_may_be_called_again),
        cmocka_unit_test(a_master_can_be_destroyed_without_close_and_before_its_children),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests_name("master", tests, NULL, NULL);
}
