/* The faults that the reference's Master, Connection and Task have, one test each:
 * test/FAULTS says what each of them was. */
#include "interaction/endpoint.h"
#include "interaction/master.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const coord_text NOTHING = {NULL, 0};
static const char HOST[] = "10.0.0.1";
#define STRANGER "01234567-89ab-cdef-0123-456789abcdef"

/* ---- a master among scripted slaves ---- */

static coord_master_options quick(void)
{
    coord_master_options o;
    coord_master_options_init(&o, sizeof o);
    o.request_retries = 2;
    o.request_timeout_ms = 1000;
    return o;
}

static peer *master_rig(wire_rig *r, bool foreign)
{
    coord_master_options o = quick();
    wire_open(r, 1);
    wire_master(r, &o);
    return wire_peer(r, foreign);
}

static coord_status connect_now(coord_connection *c, coord_error *err)
{
    return coord_connection_connect(c, NOTHING, 60000, err);
}

static coord_task *started(wire_rig *r, coord_connection *c)
{
    coord_task *task = wire_task(r, c, "{}");
    assert_int_equal(coord_task_start(task, 10000, 0, NULL), COORD_OK);
    return task;
}

static void report(peer *p, const char *id, const char *result)
{
    const peer_reply *reply = peer_await_reply(p, peer_report(p, id, true, result), 1000);
    assert_int_equal(reply->http_status, 200);
    assert_int_equal(reply->code, 0);
}

static void expect_result(const coord_task *task, const char *text)
{
    coord_text result = coord_task_result(task);
    assert_int_equal(coord_task_get_status(task), COORD_TASK_COMPLETED);
    assert_int_equal(result.len, strlen(text));
    assert_memory_equal(result.ptr, text, result.len);
}

static void beat(peer *p, int http_status, int code)
{
    const peer_reply *reply = peer_await_reply(p, peer_beat(p), 1000);
    assert_int_equal(reply->http_status, http_status);
    assert_int_equal(reply->code, code);
}

static void f_m1_unknown_and_repeated_results_stop_nothing(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    coord_task *first = started(&r, c);
    report(p, STRANGER, "0");
    report(p, coord_task_id(first), "1");
    report(p, coord_task_id(first), "2");
    expect_result(first, "1");
    assert_int_equal(r.master->late_results, 2);
    coord_task *next = started(&r, c);
    report(p, coord_task_id(next), "3");
    assert_int_equal(coord_task_join(next, 0, NULL), COORD_OK);
    expect_result(next, "3");
    coord_task_unref(first);
    coord_task_unref(next);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m2_a_slave_killed_mid_task_fails_the_task_and_the_connection(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    coord_task *task = started(&r, c);
    int64_t began = coord_sim_now_ms(r.sim);
    coord_sim_crash(r.sim, p->loop);
    assert_int_equal(coord_task_join(task, 60000, &err), COORD_ERR_LOST);
    assert_in_range(coord_sim_now_ms(r.sim) - began, 16900, 18100);
    assert_non_null(strstr(err.text, "no heartbeat"));
    assert_false(coord_connection_is_connected(c));
    assert_true(wire_await(&r, "lost", 1, 100));
    assert_int_equal(wire_count(&r, "fail"), 1);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m3_a_slave_that_never_answers_blocks_nobody(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    peer_script(p, "/connect", -1, 0, NULL);
    coord_connection *c = wire_connection(&r, "s", p);
    int64_t began = coord_sim_now_ms(r.sim);
    assert_int_equal(coord_connection_connect(c, NOTHING, 0, NULL), COORD_OK);
    assert_true(peer_await(p, "/connect", 1, 1000));
    int64_t now = coord_sim_now_ms(r.sim);
    assert_false(coord_connection_is_connected(c));
    assert_int_equal(coord_sim_now_ms(r.sim), now);
    assert_true(wire_await(&r, "connect", 1, 60000));
    assert_int_equal(wire_last(&r, "connect")->status, COORD_ERR_TIMEOUT);
    assert_in_range(coord_sim_now_ms(r.sim) - began, 5000, 6500);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m4_the_token_is_known_early_and_taken_back_after_a_no(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    peer_script(p, "/connect", 2, 0, NULL);
    coord_connection *c = wire_connection(&r, "s", p);
    assert_int_equal(coord_connection_connect(c, NOTHING, 0, NULL), COORD_OK);
    assert_true(peer_await(p, "/connect", 1, 1000));
    beat(p, 200, 0);
    peer_answer(p, peer_get(p, "/connect", 0), 403, peer_no(503, "{}"));
    assert_true(wire_await(&r, "connect", 1, 1000));
    beat(p, 403, 502);
    assert_int_equal(coord_connection_connect(c, NOTHING, 0, NULL), COORD_OK);
    assert_true(peer_await(p, "/connect", 2, 1000));
    beat(p, 200, 0);
    peer_answer(p, peer_get(p, "/connect", 1), 200, PEER_YES);
    assert_true(wire_await(&r, "connect", 2, 1000));
    assert_true(coord_connection_is_connected(c));
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m5_a_stuck_start_or_connect_holds_up_nobody_else(void **state)
{
    static wire_rig r;
    (void)state;
    peer *stuck = master_rig(&r, true);
    peer *good = wire_peer(&r, true);
    peer *deaf = wire_peer(&r, true);
    coord_connection *c1 = wire_connected(&r, "stuck", stuck);
    coord_connection *c2 = wire_connected(&r, "good", good);
    coord_connection *c3 = wire_connection(&r, "deaf", deaf);
    peer_script(stuck, "/task/new", -1, 0, NULL);
    peer_script(deaf, "/connect", -1, 0, NULL);
    int64_t began = coord_sim_now_ms(r.sim);
    assert_int_equal(coord_connection_connect(c3, NOTHING, 0, NULL), COORD_OK);
    coord_task *slow = wire_task(&r, c1, "{}");
    assert_int_equal(coord_task_start(slow, 0, 0, NULL), COORD_OK);
    assert_true(peer_await(stuck, "/task/new", 1, 1000));
    assert_true(peer_await(deaf, "/connect", 1, 1000));
    report(stuck, coord_task_id(slow), "1"); /* before the answer to its start */
    coord_task *fast = started(&r, c2);
    report(good, coord_task_id(fast), "2");
    expect_result(slow, "1");
    expect_result(fast, "2");
    assert_in_range(coord_sim_now_ms(r.sim) - began, 0, 200);
    coord_task_unref(slow);
    coord_task_unref(fast);
    coord_connection_destroy(c1);
    coord_connection_destroy(c2);
    coord_connection_destroy(c3);
    wire_close(&r);
}

/* C has no exceptions: what a callback can do is not to return. */
static void stay_away(wire_rig *r, const wire_note *n, void *object)
{
    (void)object;
    if (strcmp(n->what, "complete") == 0) {
        (void)(coord_sim_run_for(r->sim, 30000, NULL) == COORD_OK);
    }
}

static void f_m6_a_callback_that_does_not_return_holds_up_nobody(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    peer *other = wire_peer(&r, true);
    r.on_note = stay_away;
    coord_connection *c1 = wire_connected(&r, "s", p);
    coord_connection *c2 = wire_connected(&r, "other", other);
    coord_task *first = started(&r, c1);
    coord_task *second = started(&r, c2);
    int64_t began = coord_sim_now_ms(r.sim);
    report(p, coord_task_id(first), "1");
    assert_true(wire_await(&r, "complete", 1, 100));
    assert_int_equal(coord_task_join(first, 1000, NULL), COORD_OK);
    report(other, coord_task_id(second), "2");
    assert_int_equal(coord_task_join(second, 1000, NULL), COORD_OK);
    assert_true(wire_await(&r, "complete", 2, 100));
    assert_in_range(coord_sim_now_ms(r.sim) - began, 0, 200);
    coord_task_unref(first);
    coord_task_unref(second);
    coord_connection_destroy(c1);
    coord_connection_destroy(c2);
    wire_close(&r);
}

/* What the callback below did; asserted on the test's own thread. */
typedef struct from_inside {
    coord_connection *c;
    coord_task *task;
    coord_status joined;
    coord_status made;
    coord_status began;
} from_inside;
static from_inside inside;

static void start_another(wire_rig *r, const wire_note *n, void *object)
{
    (void)r;
    if (strcmp(n->what, "complete") != 0 || inside.task != NULL) {
        return;
    }
    inside.joined = coord_task_join(object, 1000, NULL);
    inside.made = coord_connection_new_task(inside.c, NOTHING, &inside.task, NULL);
    inside.began = coord_task_start(inside.task, 1000, 0, NULL);
}

static void f_m7_a_callback_may_join_its_task_and_start_the_next(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    inside = (from_inside){c, NULL, COORD_AGAIN, COORD_AGAIN, COORD_AGAIN};
    r.on_note = start_another;
    coord_task *task = started(&r, c);
    report(p, coord_task_id(task), "1");
    assert_true(peer_await(p, "/task/new", 2, 1000));
    wire_run(&r, 100);
    assert_int_equal(inside.joined, COORD_OK);
    assert_int_equal(inside.made, COORD_OK);
    assert_int_equal(inside.began, COORD_OK);
    report(p, coord_task_id(inside.task), "2");
    expect_result(inside.task, "2");
    coord_task_unref(task);
    coord_task_unref(inside.task);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m8_every_failure_settles_calls_the_hook_and_leaves_nothing(void **state)
{
    static wire_rig r;
    static const int STATUS[] = {400, 403, 404, 500};
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connection(&r, "s", p);
    for (int i = 0; i < 4; i++) {
        const char *body = STATUS[i] == 500 ? PEER_HTML : peer_no(602, "{}");
        peer_script(p, "/connect", 1, STATUS[i], body);
        assert_int_not_equal(connect_now(c, NULL), COORD_OK);
        assert_true(wire_await(&r, "connect", i + 1, 10));
        assert_int_not_equal(wire_last(&r, "connect")->status, COORD_OK);
    }
    assert_int_equal(connect_now(c, NULL), COORD_OK);
    for (int i = 0; i < 4; i++) {
        coord_task *task = wire_task(&r, c, "{}");
        const char *body = STATUS[i] == 500 ? PEER_HTML : peer_no(602, "{}");
        peer_script(p, "/task/new", 1, STATUS[i], body);
        assert_int_not_equal(coord_task_start(task, 10000, 0, NULL), COORD_OK);
        assert_int_equal(coord_task_get_status(task), COORD_TASK_START_FAILED);
        assert_true(wire_await(&r, "new_task", i + 1, 10));
        assert_int_not_equal(wire_last(&r, "new_task")->status, COORD_OK);
        assert_int_equal(r.master->tasks.count, 0);
        coord_task_unref(task);
    }
    peer_script(p, "/disconnect", 1, 403, peer_no(504, "{}"));
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 10000, NULL),
                     COORD_ERR_REFUSED);
    assert_true(wire_await(&r, "disconnect", 1, 10));
    assert_int_equal(wire_last(&r, "disconnect")->peer_code, 504);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m9_join_tells_what_became_of_the_task_and_late_callbacks_fire(void **state)
{
    static wire_rig r;
    coord_task *task = NULL;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    assert_int_equal(coord_connection_new_task(c, NOTHING, &task, NULL), COORD_OK);
    assert_int_equal(coord_task_join(task, 1000, NULL), COORD_ERR_STATE);
    coord_task_unref(task);
    task = wire_task(&r, c, "{}");
    peer_script(p, "/task/new", 1, 403, peer_no(602, "{}"));
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_ERR_REFUSED);
    assert_int_equal(coord_task_join(task, 1000, NULL), COORD_ERR_REFUSED);
    assert_int_equal(coord_task_result(task).len, 0);
    coord_task_unref(task);
    assert_int_equal(coord_connection_new_task(c, NOTHING, &task, NULL), COORD_OK);
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
    report(p, coord_task_id(task), "1");
    assert_int_equal(coord_task_join(task, 0, NULL), COORD_OK);
    coord_task *copy = wire_task(&r, c, "{}"); /* for its callback: the rig's */
    assert_int_equal(
        coord_task_on_complete(task, copy->on_complete, copy->complete_user, NULL),
        COORD_OK);
    assert_true(wire_await(&r, "complete", 1, 10));
    coord_task_unref(copy);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m10_one_name_is_one_connection_and_nothing_of_it_stays(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    peer *p2 = wire_peer(&r, true);
    coord_connection *first = wire_connection(&r, "s", p);
    coord_connection *second = wire_connection(&r, "s", p2);
    assert_int_equal(connect_now(first, NULL), COORD_OK);
    assert_int_equal(connect_now(second, NULL), COORD_ERR_EXISTS);
    assert_int_equal(peer_count(p2, "/connect"), 0);
    assert_int_equal(coord_connection_disconnect(second, NOTHING, 1000, NULL), COORD_OK);
    assert_true(coord_connection_is_connected(first));
    beat(p, 200, 0);
    assert_int_equal(coord_connection_disconnect(first, NOTHING, 1000, NULL), COORD_OK);
    assert_int_equal(r.master->by_token.count, 0);
    assert_int_equal(r.master->by_id.count, 0);
    coord_connection_destroy(first);
    coord_connection_destroy(second);
    second = wire_connected(&r, "s", p2);
    coord_connection_destroy(second);
    wire_close(&r);
}

static void f_m11_disconnecting_a_lost_slave_is_done_at_once(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    coord_sim_crash(r.sim, p->loop);
    assert_true(wire_await(&r, "lost", 1, 60000));
    int64_t began = coord_sim_now_ms(r.sim);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(coord_connection_disconnect(c, NOTHING, 60000, NULL), COORD_OK);
        assert_false(coord_connection_is_connected(c));
    }
    assert_in_range(coord_sim_now_ms(r.sim) - began, 0, 10);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m12_a_port_that_is_taken_is_an_error_at_once(void **state)
{
    static wire_rig r;
    coord_master_options o = quick();
    coord_master *m = NULL;
    coord_error err = {0};
    char port[8];
    (void)state;
    (void)master_rig(&r, true);
    o.host = HOST;
    o.insecure = true;
    o.loop = r.loop;
    o.port = r.port;
    int64_t began = coord_sim_now_ms(r.sim);
    assert_int_equal(coord_master_create(&o, &m, &err), COORD_ERR_IO);
    assert_in_range(coord_sim_now_ms(r.sim) - began, 0, 10);
    (void)snprintf(port, sizeof port, "%u", (unsigned)r.port);
    assert_non_null(strstr(err.text, port));
    assert_int_not_equal(err.os_errno, 0);
    assert_null(m);
    assert_int_equal(coord_master_ping(r.master, 1000, NULL), COORD_OK);
    wire_close(&r);
}

static void f_m13_close_stops_the_listener_and_the_port_is_free_again(void **state)
{
    static wire_rig r;
    coord_master_options o = quick();
    coord_master *again = NULL;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    coord_task *task = started(&r, c);
    int64_t began = coord_sim_now_ms(r.sim);
    assert_int_equal(coord_master_close(r.master, 10000, NULL), COORD_OK);
    assert_in_range(coord_sim_now_ms(r.sim) - began, 0, 200);
    int notes = r.note_count; /* all has been told; nothing is from now on */
    assert_int_equal(coord_task_join(task, 0, NULL), COORD_ERR_CLOSED);
    assert_int_equal(wire_count(&r, "fail"), 1);
    assert_int_equal(peer_await_reply(p, peer_beat(p), 1000)->status, COORD_ERR_LOST);
    o.host = HOST;
    o.insecure = true;
    o.loop = r.loop;
    o.port = r.port;
    assert_int_equal(coord_master_create(&o, &again, NULL), COORD_OK);
    wire_run(&r, 1000);
    assert_int_equal(r.note_count, notes);
    coord_master_destroy(again);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

/* Disconnects just before, while and just after the silence of "a" is looked for. */
static void f_m14_a_disconnect_does_not_end_the_search_for_silent_slaves(void **state)
{
    static wire_rig r;
    (void)state;
    for (int64_t late = 0; late <= 2000; late += 100) {
        peer *pa = master_rig(&r, true);
        peer *pb = wire_peer(&r, true);
        coord_connection *a = wire_connected(&r, "a", pa);
        coord_connection *b = wire_connected(&r, "b", pb);
        wire_run(&r, 5000);
        beat(pb, 200, 0);
        wire_run(&r, 11500 + late);
        assert_int_equal(coord_connection_disconnect(a, NOTHING, 0, NULL), COORD_OK);
        wire_run(&r, 10000);
        assert_true(wire_count(&r, "lost") >= 1);
        assert_string_equal(wire_last(&r, "lost")->who, "b");
        assert_false(coord_connection_is_connected(a));
        assert_false(coord_connection_is_connected(b));
        coord_connection_destroy(a);
        coord_connection_destroy(b);
        wire_close(&r);
    }
}

static void f_m15_a_heartbeat_after_the_end_leaves_no_trace(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, NULL), COORD_OK);
    beat(p, 200, 0); /* answered, for its sender's sake */
    assert_true(coordi_list_empty(&r.master->heartbeats.oldest_first));
    assert_false(coordi_timer_is_set(&r.master->heartbeats.check));
    coord_connection_destroy(c);
    wire_run(&r, 10000);
    c = wire_connected(&r, "s", p);
    int64_t began = coord_sim_now_ms(r.sim);
    assert_true(wire_await(&r, "lost", 1, 60000));
    assert_in_range(coord_sim_now_ms(r.sim) - began, 17000, 18100);
    coord_connection_destroy(c);
    wire_close(&r);
}

/* Requests of a path come so often, `gap_ms` apart. */
static void expect_tries(peer *p, const char *path, int count, int64_t gap_ms)
{
    assert_int_equal(peer_count(p, path), count);
    for (int i = 1; i < count; i++) {
        int64_t gap = peer_get(p, path, i)->at_ms - peer_get(p, path, i - 1)->at_ms;
        assert_in_range(gap, gap_ms - 10, gap_ms + 10);
    }
}

static void f_m16_retry_settings_hold_everywhere_and_zero_is_zero(void **state)
{
    static wire_rig r;
    (void)state;
    for (uint32_t retries = 0; retries <= 2; retries += 2) {
        coord_master_options o = quick();
        o.request_retries = retries;
        o.request_retry_wait_ms = 700;
        o.request_timeout_ms = 500;
        wire_open(&r, 1);
        wire_master(&r, &o);
        peer *p = wire_peer(&r, false);
        peer *deaf = wire_peer(&r, false);
        peer_script(p, "/task/new", -1, 0, NULL);
        peer_script(deaf, "/connect", -1, 0, NULL);
        coord_connection *c = wire_connected(&r, "s", p);
        coord_connection *no = wire_connection(&r, "deaf", deaf);
        coord_task *task = wire_task(&r, c, "{}");
        assert_int_equal(coord_task_start(task, 60000, 0, NULL), COORD_ERR_LOST);
        assert_int_not_equal(connect_now(no, NULL), COORD_OK);
        expect_tries(p, "/task/new", 1 + (int)retries, 1200);
        expect_tries(deaf, "/connect", 1 + (int)retries, 1200);
        coord_task_unref(task);
        coord_connection_destroy(c);
        coord_connection_destroy(no);
        wire_close(&r);
    }
}

static void f_m17_the_own_address_is_configured_or_that_of_the_path(void **state)
{
    static wire_rig r;
    static const char *const MINE[] = {NULL, "198.51.100.7"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        coord_master_options o = quick();
        char expected[64];
        wire_open(&r, 1);
        o.host = "0.0.0.0";
        o.insecure = true;
        o.my_address = MINE[i];
        o.loop = r.loop;
        assert_int_equal(coord_master_create(&o, &r.master, NULL), COORD_OK);
        peer *p = wire_peer(&r, true);
        coord_connection *c = wire_connected(&r, "s", p);
        (void)snprintf(expected, sizeof expected, "{\"address\": \"http://%s:%u\"}",
                       MINE[i] == NULL ? HOST : MINE[i],
                       (unsigned)coord_master_port(r.master));
        assert_non_null(strstr(peer_get(p, "/connect", 0)->body, expected));
        coord_connection_destroy(c);
        wire_close(&r);
    }
}

/* In the real world: the simulated one repeats itself on purpose. */
static void f_m18_tokens_do_not_come_from_a_seed(void **state)
{
    char tokens[4][COORDI_TOKEN_SIZE];
    (void)state;
    for (int i = 0; i < 4; i += 2) {
        coord_loop *loop = NULL;
        assert_int_equal(coord_loop_create(NULL, &loop, NULL), COORD_OK);
        srand(42);
        srandom(42);
        coordi_endpoint_new_token(loop, tokens[i]);
        srand(42);
        srandom(42);
        coordi_endpoint_new_token(loop, tokens[i + 1]);
        coord_loop_destroy(loop);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(strspn(tokens[i], "0123456789abcdef"), 64);
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(tokens[i], tokens[j]);
        }
    }
}

static void f_m19_a_yes_without_sense_does_not_connect(void **state)
{
    static wire_rig r;
    static const char *const BODIES[] = {"",
                                         "{}",
                                         "[1]",
                                         PEER_HTML,
                                         "{\"success\":true",
                                         "{\"success\":\"yes\",\"code\":0}"};
    coord_error err;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connection(&r, "s", p);
    for (int i = 0; i < 6; i++) {
        peer_script(p, "/connect", 1, 200, BODIES[i]);
        assert_int_equal(connect_now(c, &err), COORD_ERR_PROTOCOL);
        assert_false(coord_connection_is_connected(c));
        assert_int_equal(r.master->by_id.count, 0);
        /* The slave may think otherwise: it is told. */
        assert_int_equal(peer_count(p, "/disconnect"), i + 1);
        assert_string_equal(peer_get(p, "/disconnect", i)->token,
                            peer_get(p, "/connect", i)->token);
    }
    assert_int_equal(connect_now(c, &err), COORD_OK);
    beat(p, 200, 0);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void f_m20_ipv6_works_and_nobody_listens_beyond_loopback_by_chance(void **state)
{
    static wire_rig r;
    coord_master_options o = quick();
    coord_loop *loop = NULL;
    coord_master *open = NULL;
    coord_error err;
    char expected[64];
    (void)state;
    wire_open(&r, 1);
    assert_int_equal(coord_sim_loop(r.sim, "fd00::1", &loop, NULL), COORD_OK);
    o.host = "fd00::1";
    o.loop = loop;
    assert_int_equal(coord_master_create(&o, &open, &err), COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "insecure"));
    o.insecure = true;
    assert_int_equal(coord_master_create(&o, &r.master, NULL), COORD_OK);
    peer *p = &r.peers[r.peer_count++];
    peer_open(p, r.sim, "fd00::2", true);
    coord_connection *c = wire_connected(&r, "s", p);
    (void)snprintf(expected, sizeof expected, "\"http://[fd00::1]:%u\"",
                   (unsigned)coord_master_port(r.master));
    assert_non_null(strstr(peer_get(p, "/connect", 0)->body, expected));
    beat(p, 200, 0);
    coord_task *task = started(&r, c);
    report(p, coord_task_id(task), "6");
    expect_result(task, "6");
    coord_task_unref(task);
    coord_connection_destroy(c);
    coord_loop_destroy(loop);
    wire_close(&r);
}

static void f_s5_disconnecting_during_a_task_ends_the_masters_wait(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = master_rig(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    coord_task *task = started(&r, c);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, NULL), COORD_OK);
    assert_int_equal(coord_task_join(task, 0, NULL), COORD_ERR_CLOSED);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_m1_unknown_and_repeated_results_stop_nothing),
        cmocka_unit_test(f_m2_a_slave_killed_mid_task_fails_the_task_and_the_connection),
        cmocka_unit_test(f_m3_a_slave_that_never_answers_blocks_nobody),
        cmocka_unit_test(f_m4_the_token_is_known_early_and_taken_back_after_a_no),
        cmocka_unit_test(f_m5_a_stuck_start_or_connect_holds_up_nobody_else),
        cmocka_unit_test(f_m6_a_callback_that_does_not_return_holds_up_nobody),
        cmocka_unit_test(f_m7_a_callback_may_join_its_task_and_start_the_next),
        cmocka_unit_test(f_m8_every_failure_settles_calls_the_hook_and_leaves_nothing),
        cmocka_unit_test(f_m9_join_tells_what_became_of_the_task_and_late_callbacks_fire),
        cmocka_unit_test(f_m10_one_name_is_one_connection_and_nothing_of_it_stays),
        cmocka_unit_test(f_m11_disconnecting_a_lost_slave_is_done_at_once),
        cmocka_unit_test(f_m12_a_port_that_is_taken_is_an_error_at_once),
        cmocka_unit_test(f_m13_close_stops_the_listener_and_the_port_is_free_again),
        cmocka_unit_test(f_m14_a_disconnect_does_not_end_the_search_for_silent_slaves),
        cmocka_unit_test(f_m15_a_heartbeat_after_the_end_leaves_no_trace),
        cmocka_unit_test(f_m16_retry_settings_hold_everywhere_and_zero_is_zero),
        cmocka_unit_test(f_m17_the_own_address_is_configured_or_that_of_the_path),
        cmocka_unit_test(f_m18_tokens_do_not_come_from_a_seed),
        cmocka_unit_test(f_m19_a_yes_without_sense_does_not_connect),
        cmocka_unit_test(f_m20_ipv6_works_and_nobody_listens_beyond_loopback_by_chance),
        cmocka_unit_test(f_s5_disconnecting_during_a_task_ends_the_masters_wait),
    };
    return cmocka_run_group_tests_name("faults of the master", tests, NULL, NULL);
}
