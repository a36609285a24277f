/* Tasks: one request to a slave, and every way in which it can end. */
#include "interaction/master.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A master, one peer, one connection, one task. */
typedef struct bench {
    wire_rig r;
    peer *p;
    coord_connection *c;
    coord_task *task;
} bench;

static void setup(bench *b, const coord_master_options *options, bool foreign)
{
    wire_open(&b->r, 1);
    wire_master(&b->r, options);
    b->p = wire_peer(&b->r, foreign);
    b->c = wire_connected(&b->r, "s", b->p);
    b->task = wire_task(&b->r, b->c, "{\"x\": NaN}");
}

static void teardown(bench *b)
{
    coord_task_unref(b->task);
    coord_connection_destroy(b->c);
    wire_close(&b->r);
}

static coord_master_options quick(void)
{
    coord_master_options o;
    coord_master_options_init(&o, sizeof o);
    o.request_retries = 2;
    return o;
}

static coord_status start(bench *b, coord_error *err)
{
    return coord_task_start(b->task, 120000, 0, err);
}

static const peer_reply *report(bench *b, const char *id, bool complete,
                                const char *result)
{
    return peer_await_reply(b->p, peer_report(b->p, id, complete, result), 1000);
}

/* The beats without which the slave would be lost. */
static void beat_for(bench *b, int64_t ms)
{
    for (; ms > 0; ms -= 10000) {
        const peer_reply *reply = peer_await_reply(b->p, peer_beat(b->p), 1000);
        assert_int_equal(reply->http_status, 200);
        wire_run(&b->r, ms < 10000 ? ms : 10000);
    }
}

static uint64_t late_results(const bench *b)
{
    return b->r.master->late_results;
}

/* ---- results ---- */

static void a_task_completes_with_the_slaves_result_byte_for_byte(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, false);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_IDLE);
    assert_int_equal(start(&b, NULL), COORD_OK);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_STARTED);
    assert_non_null(
        strstr(peer_get(b.p, "/task/new", 0)->body, "\"data\": {\"x\": NaN}"));
    assert_int_equal(coord_task_result(b.task).len, 0);
    const peer_reply *reply =
        report(&b, coord_task_id(b.task), true, "{\"a\": 1e999,\"a\":[]}");
    assert_int_equal(reply->code, 0);
    assert_int_equal(coord_task_join(b.task, 1000, NULL), COORD_OK);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_COMPLETED);
    coord_text result = coord_task_result(b.task);
    assert_memory_equal(result.ptr, "{\"a\": 1e999,\"a\":[]}", result.len);
    wire_run(&b.r, 10);
    assert_int_equal(wire_count(&b.r, "complete"), 1);
    assert_int_equal(wire_count(&b.r, "new_task"), 1);
    assert_int_equal(wire_count(&b.r, "fail"), 0);
    teardown(&b);
}

/* `answer`: after the result, the answer to /task/new comes, too. */
static void result_first(bool foreign, bool answer)
{
    static bench b;
    coord_master_options o = quick();
    char id[COORDI_UUID_SIZE];
    setup(&b, &o, foreign);
    peer_script(b.p, "/task/new", -1, 0, NULL);
    assert_int_equal(coord_task_start(b.task, 0, 0, NULL), COORD_OK);
    assert_true(peer_await(b.p, "/task/new", 1, 1000));
    peer_task_id(b.p, 0, id);
    assert_string_equal(id, coord_task_id(b.task));
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_STARTING);
    assert_int_equal(report(&b, id, true, "7")->code, 0);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_COMPLETED);
    /* The request goes on, for giving it up would close the connection. */
    assert_false(coordi_list_empty(&b.c->orphans));
    if (answer) {
        peer_answer(b.p, peer_get(b.p, "/task/new", 0), 200, PEER_YES);
        assert_int_equal(coord_sim_run_for(b.r.sim, 100, NULL), COORD_OK);
        assert_true(coordi_list_empty(&b.c->orphans));
    }
    beat_for(&b, 40000);
    assert_true(coordi_list_empty(&b.c->orphans)); /* answered, or too late */
    assert_int_equal(coord_task_join(b.task, 0, NULL), COORD_OK);
    assert_int_equal(peer_count(b.p, "/task/new"), 1);
    assert_int_equal(wire_count(&b.r, "new_task"), 1);
    assert_int_equal(wire_last(&b.r, "new_task")->status, COORD_OK);
    assert_int_equal(wire_count(&b.r, "complete"), 1);
    assert_true(coord_connection_is_connected(b.c));
    teardown(&b);
}

static void a_result_may_come_before_the_answer_to_the_start(void **state)
{
    (void)state;
    result_first(false, true);
    result_first(true, true);
}

static void a_result_proves_the_start_whose_answer_is_lost(void **state)
{
    (void)state;
    result_first(false, false);
    result_first(true, false);
}

static void a_failure_before_the_answer_fails_a_started_task(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    peer_script(b.p, "/task/new", -1, 0, NULL);
    assert_int_equal(coord_task_start(b.task, 0, 0, NULL), COORD_OK);
    assert_true(peer_await(b.p, "/task/new", 1, 1000));
    (void)report(&b, coord_task_id(b.task), false, "{\"message\": \"no\"}");
    coord_error err;
    assert_int_equal(coord_task_join(b.task, 0, &err), COORD_ERR_TASK);
    assert_non_null(strstr(err.text, "{\"message\": \"no\"}"));
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_FAILED);
    assert_int_equal(wire_last(&b.r, "new_task")->status, COORD_OK);
    assert_int_equal(wire_count(&b.r, "fail"), 1);
    teardown(&b);
}

static void results_nobody_waits_for_are_answered_counted_and_dropped(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    assert_int_equal(start(&b, NULL), COORD_OK);
    static const char STRANGER[] = "01234567-89ab-cdef-0123-456789abcdef";
    const char *id = coord_task_id(b.task);
    assert_int_equal(report(&b, STRANGER, true, "{}")->http_status, 200);
    assert_int_equal(report(&b, STRANGER, false, "{}")->http_status, 200);
    assert_int_equal(late_results(&b), 2);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_STARTED);
    assert_int_equal(report(&b, id, true, "1")->http_status, 200);
    assert_int_equal(report(&b, id, true, "2")->http_status, 200);
    assert_int_equal(report(&b, id, false, "3")->http_status, 200);
    assert_int_equal(late_results(&b), 4);
    assert_memory_equal(coord_task_result(b.task).ptr, "1", 1);
    wire_run(&b.r, 100);
    assert_int_equal(wire_count(&b.r, "complete"), 1);
    assert_int_equal(wire_count(&b.r, "fail"), 0);
    teardown(&b);
}

static void another_slaves_result_is_not_for_this_task(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    peer *other = wire_peer(&b.r, true);
    coord_connection *c2 = wire_connected(&b.r, "other", other);
    assert_int_equal(start(&b, NULL), COORD_OK);
    int index = peer_report(other, coord_task_id(b.task), true, "\"stolen\"");
    assert_int_equal(peer_await_reply(other, index, 1000)->code, 0);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_STARTED);
    assert_int_equal(late_results(&b), 1);
    (void)report(&b, coord_task_id(b.task), true, "\"own\"");
    assert_memory_equal(coord_task_result(b.task).ptr, "\"own\"", 5);
    coord_connection_destroy(c2);
    teardown(&b);
}

static void an_oversized_result_fails_its_task_and_is_answered(bool before_the_answer)
{
    static bench b;
    coord_master_options o = quick();
    o.max_body_bytes = 1024;
    setup(&b, &o, true);
    if (before_the_answer) {
        peer_script(b.p, "/task/new", -1, 0, NULL);
    }
    assert_int_equal(coord_task_start(b.task, 0, 0, NULL), COORD_OK);
    assert_true(peer_await(b.p, "/task/new", 1, 1000));
    wire_run(&b.r, 10);
    char *big = malloc(5000);
    assert_non_null(big);
    memset(big, 'x', 5000);
    big[0] = '"';
    big[4998] = '"';
    big[4999] = '\0';
    assert_int_equal(report(&b, coord_task_id(b.task), true, big)->http_status, 200);
    free(big);
    coord_error err;
    assert_int_equal(coord_task_join(b.task, 0, &err), COORD_ERR_TOO_BIG);
    assert_non_null(strstr(err.text, "max_body_bytes (1024)"));
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_FAILED);
    assert_int_equal(wire_last(&b.r, "new_task")->status, COORD_OK);
    assert_true(coord_connection_is_connected(b.c));
    teardown(&b);
}

static void an_oversized_result_fails_its_task_with_too_big(void **state)
{
    (void)state;
    an_oversized_result_fails_its_task_and_is_answered(false);
    an_oversized_result_fails_its_task_and_is_answered(true);
}

static void results_out_of_order_reach_their_own_tasks(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    coord_task *second = wire_task(&b.r, b.c, "2");
    assert_int_equal(start(&b, NULL), COORD_OK);
    assert_int_equal(coord_task_start(second, 1000, 0, NULL), COORD_OK);
    (void)report(&b, coord_task_id(second), true, "\"second\"");
    (void)report(&b, coord_task_id(b.task), true, "\"first\"");
    assert_memory_equal(coord_task_result(second).ptr, "\"second\"", 8);
    assert_memory_equal(coord_task_result(b.task).ptr, "\"first\"", 7);
    coord_task_unref(second);
    teardown(&b);
}

/* ---- starts that fail ---- */

static void a_refused_start_is_settled_with_the_slaves_words(void **state)
{
    static bench b;
    coord_error err;
    (void)state;
    setup(&b, NULL, true);
    peer_script(b.p, "/task/new", -1, 403, peer_no(602, "{\"k\": 1}"));
    assert_int_equal(start(&b, &err), COORD_ERR_REFUSED);
    assert_int_equal(err.peer_code, 602);
    assert_int_equal(err.http_status, 403);
    assert_non_null(strstr(err.text, "no, 602"));
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_START_FAILED);
    assert_int_equal(coord_task_join(b.task, 0, NULL), COORD_ERR_REFUSED);
    assert_int_equal(start(&b, &err), COORD_ERR_STATE);
    wire_run(&b.r, 10);
    assert_int_equal(wire_last(&b.r, "new_task")->status, COORD_ERR_REFUSED);
    assert_int_equal(wire_count(&b.r, "fail"), 1);
    assert_int_equal(peer_count(b.p, "/task/new"), 1);
    assert_true(coord_connection_is_connected(b.c));
    teardown(&b);
}

/* Busy: with HTTP 400 as slaves say it, or with 200 as it may come, too. */
static void busy(int status, bool foreign)
{
    static bench b;
    coord_error err;
    coord_master_options o = quick();
    setup(&b, &o, foreign);
    peer_script(b.p, "/task/new", -1, status, PEER_BUSY);
    int64_t began = coord_sim_now_ms(b.r.sim);
    assert_int_equal(start(&b, &err), COORD_ERR_BUSY);
    assert_int_equal(err.peer_code, 601);
    assert_int_equal(peer_count(b.p, "/task/new"), 3);
    assert_in_range(coord_sim_now_ms(b.r.sim) - began, 2000, 2100);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_START_FAILED);
    assert_true(coord_connection_is_connected(b.c));
    teardown(&b);
}

static void a_busy_slave_is_asked_again_then_it_is_busy(void **state)
{
    (void)state;
    busy(400, false);
    busy(400, true);
    busy(200, true);
}

static void a_slave_that_becomes_free_gets_the_task(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    peer_script(b.p, "/task/new", 2, 400, PEER_BUSY);
    assert_int_equal(start(&b, NULL), COORD_OK);
    assert_int_equal(peer_count(b.p, "/task/new"), 3);
    assert_string_equal(peer_get(b.p, "/task/new", 0)->body,
                        peer_get(b.p, "/task/new", 2)->body);
    teardown(&b);
}

/* A libcoord knows a task that comes twice: its "busy" is about another one. */
static void busy_after_a_lost_request_is_no_acceptance(void **state)
{
    static bench b;
    coord_master_options o = quick();
    (void)state;
    o.request_timeout_ms = 1000;
    setup(&b, &o, false);
    peer_script(b.p, "/task/new", 1, 0, NULL);
    peer_script(b.p, "/task/new", -1, 400, PEER_BUSY);
    assert_int_equal(start(&b, NULL), COORD_ERR_BUSY);
    assert_int_equal(peer_count(b.p, "/task/new"), 3);
    teardown(&b);
}

static void an_error_page_fails_the_start_and_nothing_else(void **state)
{
    static bench b;
    coord_error err;
    (void)state;
    setup(&b, NULL, true);
    peer_script(b.p, "/task/new", 1, 500, PEER_HTML);
    assert_int_equal(start(&b, &err), COORD_ERR_PROTOCOL);
    assert_int_equal(err.http_status, 500);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_START_FAILED);
    assert_true(coord_connection_is_connected(b.c));
    coord_task *next = wire_task(&b.r, b.c, "{}");
    assert_int_equal(coord_task_start(next, 1000, 0, NULL), COORD_OK);
    coord_task_unref(next);
    teardown(&b);
}

static void a_silent_foreign_slave_gets_a_task_once_and_is_lost(void **state)
{
    static bench b;
    coord_error err;
    (void)state;
    setup(&b, NULL, true);
    peer_script(b.p, "/task/new", -1, 0, NULL);
    assert_int_equal(start(&b, &err), COORD_ERR_LOST);
    assert_int_equal(peer_count(b.p, "/task/new"), 1);
    assert_false(coord_connection_is_connected(b.c));
    assert_int_equal(coord_task_join(b.task, 0, NULL), COORD_ERR_LOST);
    wire_run(&b.r, 100);
    assert_int_equal(wire_count(&b.r, "lost"), 1);
    teardown(&b);
}

static void a_silent_libcoord_slave_gets_a_task_again(void **state)
{
    static bench b;
    coord_master_options o = quick();
    (void)state;
    o.request_timeout_ms = 1000;
    setup(&b, &o, false);
    peer_script(b.p, "/task/new", 2, 0, NULL);
    assert_int_equal(start(&b, NULL), COORD_OK);
    assert_int_equal(peer_count(b.p, "/task/new"), 3);
    assert_string_equal(peer_get(b.p, "/task/new", 0)->body,
                        peer_get(b.p, "/task/new", 2)->body);
    teardown(&b);
}

static void a_slave_that_disowns_us_is_lost(void **state)
{
    static bench b;
    coord_error err;
    (void)state;
    setup(&b, NULL, true);
    peer_script(b.p, "/task/new", -1, 403, peer_no(302, NULL));
    assert_int_equal(start(&b, &err), COORD_ERR_LOST);
    assert_int_equal(err.peer_code, 302);
    assert_false(coord_connection_is_connected(b.c));
    teardown(&b);
}

static void a_start_needs_a_connection_and_can_be_made_up_for(void **state)
{
    static bench b;
    coord_error err;
    (void)state;
    setup(&b, NULL, true);
    peer *p2 = wire_peer(&b.r, true);
    coord_connection *c2 = wire_connection(&b.r, "later", p2);
    coord_task *early = wire_task(&b.r, c2, "{}");
    assert_int_equal(coord_task_start(early, 1000, 0, &err), COORD_ERR_STATE);
    assert_non_null(strstr(err.text, "is not connected"));
    assert_int_equal(coord_task_get_status(early), COORD_TASK_IDLE);
    assert_int_equal(coord_connection_connect(c2, (coord_text){NULL, 0}, 1000, NULL),
                     COORD_OK);
    assert_int_equal(coord_task_start(early, 1000, 0, &err), COORD_OK);
    coord_task_unref(early);
    coord_connection_destroy(c2);
    teardown(&b);
}

static void a_start_on_a_lost_connection_is_settled_as_lost(void **state)
{
    static bench b;
    coord_error err;
    (void)state;
    for (int64_t wait_ms = 0; wait_ms <= 1000; wait_ms += 1000) {
        setup(&b, NULL, true);
        wire_run(&b.r, 20000);
        assert_int_equal(wire_count(&b.r, "lost"), 1);
        coord_status rc = coord_task_start(b.task, wait_ms, 0, &err);
        assert_int_equal(rc, wait_ms == 0 ? COORD_OK : COORD_ERR_LOST);
        assert_int_equal(coord_task_join(b.task, 1000, &err), COORD_ERR_LOST);
        assert_non_null(strstr(err.cause, "no heartbeat"));
        wire_run(&b.r, 10);
        assert_int_equal(wire_count(&b.r, "fail"), 1);
        assert_int_equal(peer_count(b.p, "/task/new"), 0);
        teardown(&b);
    }
}

/* ---- waiting, timeout, cancel ---- */

static void joining_before_the_start_is_an_error(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    assert_int_equal(coord_task_join(b.task, 1000, NULL), COORD_ERR_STATE);
    assert_int_equal(start(&b, NULL), COORD_OK);
    coord_error err;
    assert_int_equal(coord_task_join(b.task, 500, &err), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_STARTED);
    assert_int_equal(start(&b, NULL), COORD_ERR_STATE);
    teardown(&b);
}

static void a_task_times_out_on_its_own(void **state)
{
    static bench b;
    coord_error err;
    (void)state;
    setup(&b, NULL, true);
    int64_t began = coord_sim_now_ms(b.r.sim);
    assert_int_equal(coord_task_start(b.task, 1000, 5000, NULL), COORD_OK);
    assert_int_equal(coord_task_join(b.task, 60000, &err), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_now_ms(b.r.sim) - began, 5000);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_FAILED);
    assert_non_null(strstr(err.text, "no result after 5000 ms"));
    assert_int_equal(report(&b, coord_task_id(b.task), true, "1")->code, 0);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_FAILED);
    assert_int_equal(late_results(&b), 1);
    assert_true(coord_connection_is_connected(b.c));
    teardown(&b);
}

static void a_task_times_out_while_it_starts(void **state)
{
    static bench b;
    coord_error err;
    (void)state;
    setup(&b, NULL, true);
    peer_script(b.p, "/task/new", -1, 0, NULL);
    assert_int_equal(coord_task_start(b.task, 60000, 500, &err), COORD_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "not accepted after 500 ms"));
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_FAILED);
    assert_true(wire_await(&b.r, "fail", 1, 10));
    assert_int_equal(wire_last(&b.r, "new_task")->status, COORD_ERR_TIMEOUT);
    assert_true(coord_connection_is_connected(b.c));
    teardown(&b);
}

static void a_task_can_be_canceled_before_it_starts(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    coord_task_cancel(b.task);
    coord_task_cancel(b.task);
    assert_true(wire_await(&b.r, "fail", 1, 10));
    assert_int_equal(wire_last(&b.r, "fail")->status, COORD_ERR_CANCELED);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_FAILED);
    assert_int_equal(start(&b, NULL), COORD_ERR_STATE);
    assert_int_equal(coord_task_join(b.task, 10, NULL), COORD_ERR_CANCELED);
    assert_int_equal(peer_count(b.p, "/task/new"), 0);
    teardown(&b);
}

static void a_task_can_be_canceled_while_it_starts(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    peer_script(b.p, "/task/new", -1, 0, NULL);
    assert_int_equal(coord_task_start(b.task, 0, 0, NULL), COORD_OK);
    assert_true(peer_await(b.p, "/task/new", 1, 1000));
    coord_task_cancel(b.task);
    assert_int_equal(coord_task_join(b.task, 10, NULL), COORD_ERR_CANCELED);
    assert_int_equal(coord_task_get_status(b.task), COORD_TASK_FAILED);
    peer_answer(b.p, peer_get(b.p, "/task/new", 0), 200, PEER_YES);
    wire_run(&b.r, 100);
    assert_int_equal(report(&b, coord_task_id(b.task), true, "1")->code, 0);
    assert_int_equal(wire_count(&b.r, "fail"), 1);
    assert_int_equal(wire_last(&b.r, "new_task")->status, COORD_ERR_CANCELED);
    assert_int_equal(wire_count(&b.r, "complete"), 0);
    teardown(&b);
}

static void a_task_can_be_canceled_while_it_runs_but_not_afterwards(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    assert_int_equal(start(&b, NULL), COORD_OK);
    coord_task *second = wire_task(&b.r, b.c, "{}");
    assert_int_equal(coord_task_start(second, 1000, 0, NULL), COORD_OK);
    coord_task_cancel(b.task);
    assert_int_equal(coord_task_join(b.task, 10, NULL), COORD_ERR_CANCELED);
    (void)report(&b, coord_task_id(second), true, "1");
    coord_task_cancel(second);
    wire_run(&b.r, 10);
    assert_int_equal(coord_task_join(second, 10, NULL), COORD_OK);
    assert_int_equal(coord_task_get_status(second), COORD_TASK_COMPLETED);
    assert_int_equal(wire_count(&b.r, "fail"), 1);
    assert_int_equal(wire_count(&b.r, "complete"), 1);
    coord_task_unref(second);
    teardown(&b);
}

/* ---- callbacks ---- */

static void count_calls(coord_task *task, const coord_error *failure, void *user)
{
    (void)task;
    (void)failure;
    ++*(int *)user;
}

static void a_callback_that_is_registered_late_is_called_once(void **state)
{
    static bench b;
    int calls = 0;
    (void)state;
    setup(&b, NULL, true);
    coord_task *task = NULL;
    assert_int_equal(coord_connection_new_task(b.c, coord_text_of("{}"), &task, NULL),
                     COORD_OK);
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
    (void)report(&b, coord_task_id(task), true, "1");
    assert_int_equal(coord_task_on_fail(task, count_calls, &calls, NULL), COORD_OK);
    wire_run(&b.r, 10);
    assert_int_equal(calls, 0);
    assert_int_equal(coord_task_on_complete(task, count_calls, &calls, NULL), COORD_OK);
    assert_int_equal(coord_task_on_complete(task, count_calls, &calls, NULL), COORD_OK);
    wire_run(&b.r, 10);
    assert_int_equal(calls, 1);
    coord_task_unref(task);
    teardown(&b);
}

typedef struct caller {
    bench *b;
    coord_task *next;
    coord_status made;
    coord_status started;
    coord_status joined;
    coord_status closed;
} caller;

/* Does with the library whatever it can think of. */
static void call_back(coord_task *task, const coord_error *failure, void *user)
{
    caller *k = user;
    (void)failure;
    coord_task_unref(coord_task_ref(task));
    coord_task_cancel(task);
    k->made = coord_connection_new_task(k->b->c, coord_text_of("{}"), &k->next, NULL);
    k->started = coord_task_start(k->next, 5000, 0, NULL);
    k->joined = coord_task_join(task, 1000, NULL);
    k->closed = coord_master_close(k->b->r.master, 1000, NULL);
}

static void a_callback_may_call_the_library(void **state)
{
    static bench b;
    (void)state;
    setup(&b, NULL, true);
    caller k = {.b = &b};
    assert_int_equal(coord_task_on_complete(b.task, call_back, &k, NULL), COORD_OK);
    assert_int_equal(start(&b, NULL), COORD_OK);
    (void)report(&b, coord_task_id(b.task), true, "1");
    wire_run(&b.r, 1000);
    assert_int_equal(k.made, COORD_OK);
    assert_int_equal(k.started, COORD_OK);
    assert_int_equal(k.joined, COORD_OK);
    assert_int_equal(k.closed, COORD_ERR_STATE);
    coord_task_unref(k.next);
    teardown(&b);
}

static void an_inline_callback_may_not_wait(void **state)
{
    static bench b;
    coord_master_options o = quick();
    (void)state;
    o.executor = COORD_EXECUTOR_INLINE;
    setup(&b, &o, true);
    caller k = {.b = &b};
    assert_int_equal(coord_task_on_complete(b.task, call_back, &k, NULL), COORD_OK);
    assert_int_equal(start(&b, NULL), COORD_OK);
    (void)report(&b, coord_task_id(b.task), true, "1");
    wire_run(&b.r, 1000);
    assert_int_equal(k.made, COORD_OK);
    assert_int_equal(k.started, COORD_ERR_STATE);
    assert_int_equal(k.joined, COORD_OK);
    assert_int_equal(k.closed, COORD_ERR_STATE);
    coord_task_unref(k.next);
    teardown(&b);
}

static void data_must_be_json_and_null_becomes_an_object(void **state)
{
    static bench b;
    coord_task *task = NULL;
    (void)state;
    setup(&b, NULL, true);
    assert_int_equal(
        coord_connection_new_task(b.c, coord_text_of("{\"a\": }"), &task, NULL),
        COORD_ERR_FORMAT);
    assert_null(task);
    task = wire_task(&b.r, b.c, "null");
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
    assert_non_null(strstr(peer_get(b.p, "/task/new", 0)->body, "\"data\": {}"));
    coord_task_unref(task);
    assert_int_equal(coord_task_start(NULL, 0, 0, NULL), COORD_ERR_ARG);
    assert_int_equal(coord_task_start(b.task, -1, 0, NULL), COORD_ERR_ARG);
    assert_int_equal(coord_task_join(b.task, -1, NULL), COORD_ERR_ARG);
    coord_task_cancel(NULL);
    coord_task_unref(NULL);
    teardown(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_completes_with_the_slaves_result_byte_for_byte),
        cmocka_unit_test(a_result_may_come_before_the_answer_to_the_start),
        cmocka_unit_test(a_result_proves_the_start_whose_answer_is_lost),
        cmocka_unit_test(a_failure_before_the_answer_fails_a_started_task),
        cmocka_unit_test(results_nobody_waits_for_are_answered_counted_and_dropped),
        cmocka_unit_test(another_slaves_result_is_not_for_this_task),
        cmocka_unit_test(an_oversized_result_fails_its_task_with_too_big),
        cmocka_unit_test(results_out_of_order_reach_their_own_tasks),
        cmocka_unit_test(a_refused_start_is_settled_with_the_slaves_words),
        cmocka_unit_test(a_busy_slave_is_asked_again_then_it_is_busy),
        cmocka_unit_test(a_slave_that_becomes_free_gets_the_task),
        cmocka_unit_test(busy_after_a_lost_request_is_no_acceptance),
        cmocka_unit_test(an_error_page_fails_the_start_and_nothing_else),
        cmocka_unit_test(a_silent_foreign_slave_gets_a_task_once_and_is_lost),
        cmocka_unit_test(a_silent_libcoord_slave_gets_a_task_again),
        cmocka_unit_test(a_slave_that_disowns_us_is_lost),
        cmocka_unit_test(a_start_needs_a_connection_and_can_be_made_up_for),
        cmocka_unit_test(a_start_on_a_lost_connection_is_settled_as_lost),
        cmocka_unit_test(joining_before_the_start_is_an_error),
        cmocka_unit_test(a_task_times_out_on_its_own),
        cmocka_unit_test(a_task_times_out_while_it_starts),
        cmocka_unit_test(a_task_can_be_canceled_before_it_starts),
        cmocka_unit_test(a_task_can_be_canceled_while_it_starts),
        cmocka_unit_test(a_task_can_be_canceled_while_it_runs_but_not_afterwards),
        cmocka_unit_test(a_callback_that_is_registered_late_is_called_once),
        cmocka_unit_test(a_callback_may_call_the_library),
        cmocka_unit_test(an_inline_callback_may_not_wait),
        cmocka_unit_test(data_must_be_json_and_null_becomes_an_object),
    };
    return cmocka_run_group_tests_name("task", tests, NULL, NULL);
}
