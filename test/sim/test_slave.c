/* A worker's endpoint, with scripted masters around it. */
#include "interaction/slave.h"
#include "support/heap.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char HOST[] = "10.0.0.1";
static const char T1[] = "token-of-the-first-master";
static const char T2[] = "token-of-the-second-master";
#define ID_A "0123abcd-89ab-cdef-0123-456789abcdef"
#define ID_B "11111111-89ab-cdef-0123-456789abcdef"

/* A slave and one or two masters. */
static peer *setup(wire_rig *r, bool foreign)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.request_retries = 2;
    o.request_timeout_ms = 1000;
    wire_open(r, 1);
    wire_slave(r, &o);
    return wire_peer(r, foreign);
}

static const peer_reply *ask(wire_rig *r, peer *p, const char *method, const char *path,
                             const char *token, const char *body)
{
    return peer_ask(p, HOST, r->port, method, path, token, "0", body);
}

static void expect(const peer_reply *reply, int http_status, int code)
{
    if (reply->http_status != http_status || reply->code != code) {
        fail_msg("answered %d, %s", reply->http_status, reply->body);
    }
}

static void join(wire_rig *r, peer *p, const char *token)
{
    expect(peer_connect(p, HOST, r->port, token), 200, 0);
    assert_true(coord_slave_is_connected(r->slave));
}

static const peer_reply *give(wire_rig *r, peer *p, const char *token, const char *id)
{
    return peer_new_task(p, HOST, r->port, token, id, "{\"n\": NaN}");
}

static const peer_reply *leave(wire_rig *r, peer *p, const char *token)
{
    return ask(r, p, "DELETE", "/disconnect", token, "{\"data\": {}}");
}

/* ---- the order of the checks ---- */

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

static const char OWN[] = "own";
#define CONNECT(address) "{\"master\": {\"address\": " address "}, \"data\": {}}"
#define TASK(id) "{\"task\": {\"id\": " id "}, \"data\": 1}"

static void check_rows(wire_rig *r, peer *p, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const row *w = &rows[i];
        const char *token = w->token == OWN ? r->slave->token : w->token;
        const peer_reply *reply =
            peer_ask(p, HOST, r->port, w->method, w->path, token, w->channel, w->body);
        if (reply->http_status != w->http_status ||
            (w->code != -2 && reply->code != w->code) ||
            strstr(reply->body, w->says) == NULL) {
            fail_msg("row %zu: %s %s answered %d: %s", i, w->method, w->path,
                     reply->http_status, reply->body);
        }
        wire_run(r, 10); /* a task that was accepted is done by then */
    }
}

static void a_free_slave_checks_in_the_protocols_order(void **state)
{
    static wire_rig r;
    static const row ROWS[] = {
        {"POST", "/connect", NULL, NULL, NULL, 400, 201, "Channel not found."},
        {"POST", "/connect", NULL, "x", NULL, 400, 202, ""},
        {"POST", "/connect", NULL, "1", NULL, 403, 202, "Channel not match"},
        {"POST", "/connect", NULL, "0", NULL, 400, 301, "Master token not found."},
        {"POST", "/connect", T1, "0", NULL, 400, 503, "no body"},
        {"POST", "/connect", T1, "0", "{", 400, 503, "JSON"},
        {"POST", "/connect", T1, "0", "{}", 400, 503, "master"},
        {"POST", "/connect", T1, "0", "{\"master\": {}}", 400, 503, "data"},
        {"POST", "/connect", T1, "0", CONNECT("5"), 400, 503, "address"},
        {"POST", "/connect", T1, "0", CONNECT("\"http://:\""), 400, 503, ""},
        {"DELETE", "/disconnect", T1, "0", "{", 403, 302, "Master not match"},
        {"POST", "/task/new", T1, "0", "{", 403, 302, "Master not match"},
        {"GET", "/ping", NULL, NULL, "{}", 400, 401, "Slave token not found."},
        {"GET", "/ping", T1, NULL, "{}", 403, 402, "Slave token not match"},
        {"GET", "/ping", OWN, NULL, "{}", 200, 0, "PONG!"},
        {"POST", "/ping", OWN, NULL, "{}", 405, -2, ""},
        {"GET", "/", OWN, "0", "{}", 404, -2, ""},
        {"POST", "/connect", T1, "0",
         "{\"master\": {\"address\": \"10.0.1.1:20000\"}, \"data\": null}", 200, 0,
         "Connect success."},
    };
    (void)state;
    peer *p = setup(&r, true);
    check_rows(&r, p, ROWS, sizeof ROWS / sizeof ROWS[0]);
    /* What was refused for its address went through the hook first, as the reference's.
     */
    assert_int_equal(wire_count(&r, "ask connect"), 3);
    assert_true(coord_slave_is_connected(r.slave));
    wire_close(&r);
}

static void a_connected_slave_checks_in_the_protocols_order(void **state)
{
    static wire_rig r;
    static const row ROWS[] = {
        {"POST", "/connect", T1, "0", "{", 400, 503, "JSON"},
        {"POST", "/connect", T1, "0", "{}", 400, 501, "already connected"},
        {"POST", "/connect", T2, "0", "{}", 400, 501, "already connected"},
        {"DELETE", "/disconnect", T2, "0", "{\"data\": 1}", 403, 302, "Master not match"},
        {"POST", "/task/new", T2, "0", TASK("\"" ID_A "\""), 403, 302, "not match"},
        {"POST", "/task/new", NULL, "0", TASK("\"" ID_A "\""), 400, 301, "not found"},
        {"POST", "/task/new", T1, "0", NULL, 400, 602, "no body"},
        {"POST", "/task/new", T1, "0", "{}", 400, 602, "task"},
        {"POST", "/task/new", T1, "0", "{\"task\": {}, \"data\": 1}", 400, 602,
         "task.id"},
        {"POST", "/task/new", T1, "0", TASK("5"), 400, 602, "UUID"},
        {"POST", "/task/new", T1, "0",
         TASK("\"{urn:uuid:0123ABCD89abcdef0123456789abcdef}\""), 200, 0,
         "Task received!"},
        {"DELETE", "/disconnect", T1, "0", "{}", 400, 504, "data"},
        {"DELETE", "/disconnect", T1, "0", "{\"data\": null}", 200, 0,
         "Disconnect success."},
        {"DELETE", "/disconnect", T1, "0", "{\"data\": null}", 403, 302, "not match"},
    };
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    check_rows(&r, p, ROWS, sizeof ROWS / sizeof ROWS[0]);
    assert_string_equal(peer_get(p, "/slave/task/complete", 0)->body,
                        "{\"task\": {\"id\": \"" ID_A "\"}, \"result\": {}}");
    assert_false(coord_slave_is_connected(r.slave));
    wire_close(&r);
}

static void a_busy_slave_says_so_before_it_looks_at_the_keys(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    r.work_ms = 5000;
    join(&r, p, T1);
    expect(give(&r, p, T1, ID_A), 200, 0);
    expect(ask(&r, p, "POST", "/task/new", T1, "{}"), 400, 601);
    expect(ask(&r, p, "POST", "/task/new", T1, "{"), 400, 602);
    expect(give(&r, p, T1, ID_A), 400,
           601); /* a Python master never repeats: it's busy */
    expect(give(&r, p, T1, ID_B), 400, 601);
    assert_int_equal(wire_count(&r, "ask task"), 1);
    assert_true(peer_await(p, "/slave/task/complete", 1, 6000));
    expect(give(&r, p, T1, ID_B), 200, 0);
    wire_close(&r);
}

static void hooks_refuse_with_data(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    r.connect_says = COORD_ERR_BUSY;
    const peer_reply *reply = peer_connect(p, HOST, r.port, T1);
    expect(reply, 403, 503);
    assert_non_null(strstr(reply->body, "{\"why\": \"ask connect\"}"));
    assert_false(coord_slave_is_connected(r.slave));
    r.connect_says = COORD_OK;
    join(&r, p, T1);
    r.task_says = COORD_ERR_ARG;
    expect(give(&r, p, T1, "no uuid at all"), 403, 602); /* before the id is looked at */
    assert_int_equal(r.works, 0);
    r.disconnect_says = COORD_ERR_STATE;
    expect(leave(&r, p, T1), 403, 504);
    assert_true(coord_slave_is_connected(r.slave));
    r.disconnect_says = COORD_OK;
    expect(leave(&r, p, T1), 200, 0);
    wire_close(&r);
}

/* ---- two masters ---- */

static void of_two_masters_at_once_one_is_told_yes(void **state)
{
    static wire_rig r;
    (void)state;
    peer *first = setup(&r, true);
    peer *second = wire_peer(&r, true);
    r.hook_ms = 500;
    char body[128];
    (void)snprintf(body, sizeof body, CONNECT("\"http://10.0.1.2:%u\""),
                   (unsigned)second->port);
    int other = peer_send(second, HOST, r.port, "POST", "/connect", T2, "0", body);
    const peer_reply *a = peer_connect(first, HOST, r.port, T1);
    const peer_reply *b = peer_await_reply(second, other, 10000);
    assert_int_equal((a->code == 0) + (b->code == 0), 1);
    assert_int_equal((a->code == 501) + (b->code == 501), 1);
    assert_int_equal(wire_count(&r, "ask connect"), 1);
    wire_run(&r, 3100);
    assert_int_equal(peer_count(first, "/slave/heartbeat"), a->code == 0);
    assert_int_equal(peer_count(second, "/slave/heartbeat"), b->code == 0);
    wire_close(&r);
}

static void a_hook_that_answers_late_keeps_the_order(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    r.hook_ms = 2000;
    char body[128];
    (void)snprintf(body, sizeof body, CONNECT("\"http://10.0.1.1:%u\""),
                   (unsigned)p->port);
    int connect = peer_send(p, HOST, r.port, "POST", "/connect", T1, "0", body);
    wire_run(&r, 100);
    int goodbye =
        peer_send(p, HOST, r.port, "DELETE", "/disconnect", T1, "0", "{\"data\": 1}");
    expect(peer_await_reply(p, connect, 5000), 200, 0);
    expect(peer_await_reply(p, goodbye, 5000), 200, 0);
    assert_false(coord_slave_is_connected(r.slave));
    wire_close(&r);
}

/* ---- results ---- */

static void falsy_results_become_an_empty_object(void **state)
{
    static wire_rig r;
    static const char *const RESULTS[][2] = {
        {NULL, "{}"},       {"0", "{}"},      {"\"\"", "{}"},
        {"[]", "{}"},       {"null", "{}"},   {"5", "5"},
        {"[NaN]", "[NaN]"}, {"true", "true"}, {"{\"a\": 1e999}", "{\"a\": 1e999}"}};
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    for (int i = 0; i < (int)(sizeof RESULTS / sizeof RESULTS[0]); i++) {
        char id[64];
        char expected[128];
        (void)snprintf(id, sizeof id, "%08d-89ab-cdef-0123-456789abcdef", i);
        (void)snprintf(expected, sizeof expected,
                       "{\"task\": {\"id\": \"%s\"}, \"result\": %s}", id, RESULTS[i][1]);
        r.work_out = RESULTS[i][0];
        expect(give(&r, p, T1, id), 200, 0);
        assert_true(peer_await(p, "/slave/task/complete", i + 1, 1000));
        assert_string_equal(peer_get(p, "/slave/task/complete", i)->body, expected);
    }
    assert_string_equal(peer_get(p, "/slave/task/complete", 0)->token, T1);
    assert_string_equal(peer_get(p, "/slave/task/complete", 0)->method, "PUT");
    wire_close(&r);
}

static void a_failure_is_told_with_what_the_work_put_out(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    r.work_says = COORD_ERR_IO;
    r.work_out = "{\"message\": \"disk\"}";
    expect(give(&r, p, T1, ID_A), 200, 0);
    assert_true(peer_await(p, "/slave/task/fail", 1, 1000));
    assert_string_equal(peer_get(p, "/slave/task/fail", 0)->body,
                        "{\"task\": {\"id\": \"" ID_A "\"}, \"result\": {\"message\": "
                        "\"disk\"}}");
    assert_int_equal(peer_count(p, "/slave/task/complete"), 0);
    wire_close(&r);
}

static void the_slave_is_free_before_its_result_is_taken(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    peer_script(p, "/slave/task/complete", 1, 0, NULL);
    expect(give(&r, p, T1, ID_A), 200, 0);
    assert_true(peer_await(p, "/slave/task/complete", 1, 1000));
    expect(give(&r, p, T1, ID_B), 200, 0);
    assert_true(peer_await(p, "/slave/task/complete", 2, 1000));
    wire_close(&r);
}

static void a_result_goes_again_to_a_libcoord_master_only(void **state)
{
    static wire_rig r;
    (void)state;
    for (int foreign = 0; foreign <= 1; foreign++) {
        peer *p = setup(&r, foreign != 0);
        join(&r, p, T1);
        peer_script(p, "/slave/task/complete", 1, 0, NULL); /* never answered */
        expect(give(&r, p, T1, ID_A), 200, 0);
        wire_run(&r, 10000);
        assert_int_equal(peer_count(p, "/slave/task/complete"), foreign ? 1 : 2);
        /* Whether the foreign one has it is unknown: the slave is free for a new start.
         */
        assert_int_equal(coord_slave_is_connected(r.slave), !foreign);
        assert_int_equal(wire_count(&r, "slave lost"), foreign);
        wire_close(&r);
    }
}

static void a_result_goes_again_to_any_master_that_it_did_not_reach(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    r.work_ms = 500;
    expect(give(&r, p, T1, ID_A), 200, 0);
    assert_int_equal(coord_sim_block(r.sim, HOST, p->host, true, NULL), COORD_OK);
    wire_run(&r, 1800);
    coord_sim_heal(r.sim);
    wire_run(&r, 2000);
    assert_int_equal(peer_count(p, "/slave/task/complete"), 1);
    assert_true(coord_slave_is_connected(r.slave));
    wire_close(&r);
}

/* It would be waited for in vain, while beats tell that all is well. */
static void a_result_that_finds_no_memory_ends_the_connection(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    r.work_ms = 500;
    expect(give(&r, p, T1, ID_A), 200, 0);
    assert_int_equal(coord_sim_block(r.sim, HOST, p->host, true, NULL), COORD_OK);
    wire_run(&r, 1600); /* the first attempt has failed */
    coord_sim_heal(r.sim);
    heap_fail(0, UINT64_MAX);
    wire_run(&r, 2000);
    assert_true(heap_mend());
    wire_run(&r, 10000);
    assert_int_equal(peer_count(p, "/slave/task/complete"), 0);
    assert_false(coord_slave_is_connected(r.slave));
    assert_int_equal(wire_count(&r, "slave lost"), 1);
    assert_int_equal(wire_last(&r, "slave lost")->status, COORD_ERR_NOMEM);
    wire_close(&r);
}

static void a_result_that_an_error_page_answers_is_not_sent_again(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    peer_script(p, "/slave/task/complete", 1, 500, PEER_HTML);
    expect(give(&r, p, T1, ID_A), 200, 0);
    wire_run(&r, 10000);
    assert_int_equal(peer_count(p, "/slave/task/complete"), 1);
    assert_true(coord_slave_is_connected(r.slave));
    expect(give(&r, p, T1, ID_B), 200, 0);
    wire_close(&r);
}

/* ---- losing the master ---- */

static void disconnecting_during_a_task_cancels_it_and_drops_its_result(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    r.work_ms = 10000;
    join(&r, p, T1);
    expect(give(&r, p, T1, ID_A), 200, 0);
    wire_run(&r, 1000);
    assert_false(coord_slave_task_canceled(r.slave));
    expect(leave(&r, p, T1), 200, 0);
    assert_true(coord_slave_task_canceled(r.slave));
    wire_run(&r, 1000);
    assert_int_equal(r.canceled, 1);
    join(&r, p, T1); /* the very same token: still another connection */
    wire_run(&r, 5000);
    assert_int_equal(peer_count(p, "/slave/task/complete"), 0);
    assert_int_equal(wire_count(&r, "slave lost"), 0);
    wire_close(&r);
}

static void a_result_never_goes_to_another_master(void **state)
{
    static wire_rig r;
    (void)state;
    peer *old = setup(&r, true);
    peer *new = wire_peer(&r, true);
    r.work_ms = 60000;
    join(&r, old, T1);
    expect(give(&r, old, T1, ID_A), 200, 0);
    coord_sim_crash(r.sim, old->loop);
    assert_true(wire_await(&r, "slave lost", 1, 10000));
    assert_false(coord_slave_is_connected(r.slave));
    join(&r, new, T2);
    expect(give(&r, new, T2, ID_B), 400, 601); /* until the old work has noticed */
    wire_run(&r, 200);
    r.work_ms = 0;
    expect(give(&r, new, T2, ID_B), 200, 0);
    wire_run(&r, 5000);
    assert_int_equal(peer_count(new, "/slave/task/complete"), 1);
    assert_non_null(strstr(peer_get(new, "/slave/task/complete", 0)->body, ID_B));
    assert_int_equal(peer_count(old, "/slave/task/complete"), 0);
    wire_close(&r);
}

static void a_heartbeat_that_is_disowned_frees_the_slave(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    peer_script(p, "/slave/heartbeat", 1, 403, peer_no(502, NULL));
    assert_true(wire_await(&r, "slave lost", 1, 3100));
    assert_false(coord_slave_is_connected(r.slave));
    assert_int_equal(wire_last(&r, "slave lost")->peer_code, 502);
    join(&r, p, T2);
    wire_run(&r, 3100);
    assert_string_equal(peer_get(p, "/slave/heartbeat", 1)->token, T2);
    wire_close(&r);
}

static void a_heartbeat_that_makes_no_sense_is_no_loss(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    peer_script(p, "/slave/heartbeat", 3, 500, PEER_HTML);
    wire_run(&r, 15100);
    assert_int_equal(peer_count(p, "/slave/heartbeat"), 5);
    assert_true(coord_slave_is_connected(r.slave));
    wire_close(&r);
}

static void a_silent_master_is_lost_after_the_retries(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    coord_sim_pause(r.sim, p->loop, true);
    int64_t began = coord_sim_now_ms(r.sim);
    assert_true(wire_await(&r, "slave lost", 1, 60000));
    assert_in_range(coord_sim_now_ms(r.sim) - began, 3000 + 5000 - 20, 3000 + 5000 + 20);
    coord_sim_pause(r.sim, p->loop, false);
    wire_close(&r);
}

/* After a pause of the slave beats that came due meanwhile are not made up for. */
static void beats_do_not_come_in_bursts(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    coord_sim_pause(r.sim, r.loop, true);
    wire_run(&r, 60000);
    coord_sim_pause(r.sim, r.loop, false);
    wire_run(&r, 100);
    assert_int_equal(peer_count(p, "/slave/heartbeat"), 1);
    wire_run(&r, 3000);
    assert_int_equal(peer_count(p, "/slave/heartbeat"), 2);
    wire_close(&r);
}

/* ---- closing ---- */

static void close_waits_for_the_running_task(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    r.hook_ms = 3000;
    int held =
        peer_send(p, HOST, r.port, "POST", "/task/new", T1, "0", TASK("\"" ID_A "\""));
    wire_run(&r, 100);
    assert_int_equal(coord_slave_close(r.slave, 1000, &err), COORD_ERR_TIMEOUT);
    assert_false(coord_slave_is_connected(r.slave));
    assert_int_equal(coord_slave_close(r.slave, 5000, &err), COORD_OK);
    assert_int_equal(coord_slave_close(r.slave, 5000, &err), COORD_OK);
    assert_int_equal(peer_await_reply(p, held, 1000)->status, COORD_ERR_LOST);
    assert_int_equal(r.works, 0);
    assert_int_equal(coord_slave_close(NULL, 1, &err), COORD_ERR_ARG);
    wire_close(&r);
}

static void a_slave_can_be_destroyed_while_it_works(void **state)
{
    static wire_rig r;
    (void)state;
    for (int executor = COORD_EXECUTOR_PER_TASK; executor <= COORD_EXECUTOR_POOL;
         executor++) {
        coord_slave_options o;
        coord_slave_options_init(&o, sizeof o);
        o.executor = (coord_executor)executor;
        o.executor_threads = 2;
        wire_open(&r, 1);
        wire_slave(&r, &o);
        peer *p = wire_peer(&r, true);
        r.work_ms = 5000;
        join(&r, p, T1);
        expect(give(&r, p, T1, ID_A), 200, 0);
        wire_run(&r, 100);
        coord_slave_destroy(r.slave);
        r.slave = NULL;
        wire_run(&r, 1000);
        assert_int_equal(r.canceled, 1);
        assert_int_equal(peer_count(p, "/slave/task/complete"), 0);
        wire_close(&r);
    }
    coord_slave_destroy(NULL);
}

static void close_and_destroy(wire_rig *r, const wire_note *n, void *object)
{
    if (strcmp(n->what, "work") == 0 && r->slave != NULL) {
        coord_error err;
        assert_int_equal(coord_slave_close(object, 1000, &err), COORD_ERR_STATE);
        coord_slave_destroy(object);
        r->slave = NULL;
    }
}

static void a_slave_can_be_destroyed_by_its_own_task(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    r.on_note = close_and_destroy;
    join(&r, p, T1);
    (void)give(&r, p, T1, ID_A);
    wire_run(&r, 1000);
    assert_null(r.slave);
    wire_close(&r);
}

static void after_shutdown_everybody_is_told(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    join(&r, p, T1);
    expect(ask(&r, p, "DELETE", "/shutdown", T1, "{}"), 403, 402);
    expect(ask(&r, p, "DELETE", "/shutdown", r.slave->token, "{}"), 200, 0);
    expect(give(&r, p, T1, ID_A), 401, 101);
    expect(ask(&r, p, "GET", "/ping", r.slave->token, "{}"), 401, 101);
    wire_close(&r);
}

static void options_are_checked(void **state)
{
    static wire_rig r;
    coord_slave_options o;
    coord_slave *s = NULL;
    coord_error err;
    (void)state;
    (void)setup(&r, true);
    coord_slave_options_init(&o, sizeof o);
    o.loop = r.loop;
    assert_int_equal(coord_slave_create(&o, &s, &err), COORD_ERR_ARG);
    o.process_task = r.slave->options.process_task;
    o.heartbeat_ms = 199;
    assert_int_equal(coord_slave_create(&o, &s, &err), COORD_ERR_ARG);
    o.heartbeat_ms = 200;
    o.host = HOST;
    assert_int_equal(coord_slave_create(&o, &s, &err), COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "beyond loopback"));
    o.host = "[::1]";
    assert_int_equal(coord_slave_create(&o, &s, &err), COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "without port and brackets, got \"[::1]\""));
    o.host = HOST;
    o.insecure = true;
    o.port = r.port;
    assert_int_equal(coord_slave_create(&o, &s, &err), COORD_ERR_IO);
    assert_int_not_equal(err.os_errno, 0);
    o.executor = COORD_EXECUTOR_POOL;
    o.executor_threads = 0;
    o.port = 0;
    assert_int_equal(coord_slave_create(&o, &s, &err), COORD_ERR_ARG);
    assert_null(s);
    wire_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_slave_checks_in_the_protocols_order),
        cmocka_unit_test(a_connected_slave_checks_in_the_protocols_order),
        cmocka_unit_test(a_busy_slave_says_so_before_it_looks_at_the_keys),
        cmocka_unit_test(hooks_refuse_with_data),
        cmocka_unit_test(of_two_masters_at_once_one_is_told_yes),
        cmocka_unit_test(a_hook_that_answers_late_keeps_the_order),
        cmocka_unit_test(falsy_results_become_an_empty_object),
        cmocka_unit_test(a_failure_is_told_with_what_the_work_put_out),
        cmocka_unit_test(the_slave_is_free_before_its_result_is_taken),
        cmocka_unit_test(a_result_goes_again_to_a_libcoord_master_only),
        cmocka_unit_test(a_result_goes_again_to_any_master_that_it_did_not_reach),
        cmocka_unit_test(a_result_that_finds_no_memory_ends_the_connection),
        cmocka_unit_test(a_result_that_an_error_page_answers_is_not_sent_again),
        cmocka_unit_test(disconnecting_during_a_task_cancels_it_and_drops_its_result),
        cmocka_unit_test(a_result_never_goes_to_another_master),
        cmocka_unit_test(a_heartbeat_that_is_disowned_frees_the_slave),
        cmocka_unit_test(a_heartbeat_that_makes_no_sense_is_no_loss),
        cmocka_unit_test(a_silent_master_is_lost_after_the_retries),
        cmocka_unit_test(beats_do_not_come_in_bursts),
        cmocka_unit_test(close_waits_for_the_running_task),
        cmocka_unit_test(a_slave_can_be_destroyed_while_it_works),
        cmocka_unit_test(a_slave_can_be_destroyed_by_its_own_task),
        cmocka_unit_test(after_shutdown_everybody_is_told),
        cmocka_unit_test(options_are_checked),
    };
    return cmocka_run_group_tests_name("slave", tests, NULL, NULL);
}
