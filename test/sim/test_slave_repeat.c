/* Tasks that a libcoord master asks a slave for again: because it heard no answer, or
 * because it has come back from an earlier state of its own. */
#include "base/alloc.h"
#include "interaction/slave.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char HOST[] = "10.0.0.1";
static const char T1[] = "token-of-the-first-connection";
static const char T2[] = "token-of-the-second-connection";
static const char COMPLETE[] = "/slave/task/complete";
static const char FAIL[] = "/slave/task/fail";
#define ID_A "0123abcd-89ab-cdef-0123-456789abcdef"
#define ID_B "11111111-89ab-cdef-0123-456789abcdef"

static peer *setup(wire_rig *r, bool foreign)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.request_retries = 2;
    o.request_timeout_ms = 1000;
    wire_open(r, 1);
    wire_slave(r, &o);
    r->work_out = "{\"n\": NaN}";
    peer *p = wire_peer(r, foreign);
    assert_int_equal(peer_connect(p, HOST, r->port, T1)->http_status, 200);
    return p;
}

static const peer_reply *give_as(wire_rig *r, peer *p, const char *token, const char *id,
                                 int http_status, int code)
{
    const peer_reply *reply = peer_new_task(p, HOST, r->port, token, id, "1");
    if (reply->http_status != http_status || reply->code != code) {
        fail_msg("answered %d, %s", reply->http_status, reply->body);
    }
    return reply;
}

static void give(wire_rig *r, peer *p, const char *id)
{
    (void)give_as(r, p, T1, id, 200, 0);
}

/* So many results have come, all of them this one, and no more of them come. */
static void expect_results(wire_rig *r, peer *p, const char *path, int count,
                           const char *id, const char *result)
{
    char body[256];
    (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}", id,
                   result);
    wire_run(r, 5000);
    assert_int_equal(peer_count(p, path), count);
    for (int i = 0; i < count; i++) {
        assert_string_equal(peer_get(p, path, i)->body, body);
    }
}

static void a_repeat_of_the_running_task_is_answered_and_that_is_all(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, false);
    r.work_ms = 1000;
    give(&r, p, ID_A);
    give(&r, p, ID_A);
    (void)give_as(&r, p, T1, ID_B, 400, 601);
    expect_results(&r, p, COMPLETE, 1, ID_A, "{\"n\": NaN}");
    assert_int_equal(r.works, 1);
    wire_close(&r);
}

static void a_repeat_of_the_last_task_brings_its_result_again(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, false);
    for (int i = 1; i <= 3; i++) {
        give(&r, p, ID_A);
        expect_results(&r, p, COMPLETE, i, ID_A, "{\"n\": NaN}");
    }
    assert_int_equal(r.works, 1);
    assert_int_equal(wire_count(&r, "ask task"), 1);
    wire_close(&r);
}

static void a_failure_is_repeated_as_one(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, false);
    r.work_says = COORD_ERR_IO;
    r.work_out = "{\"message\": \"disk\"}";
    give(&r, p, ID_A);
    expect_results(&r, p, FAIL, 1, ID_A, "{\"message\": \"disk\"}");
    give(&r, p, ID_A);
    expect_results(&r, p, FAIL, 2, ID_A, "{\"message\": \"disk\"}");
    assert_int_equal(peer_count(p, COMPLETE), 0);
    assert_int_equal(r.works, 1);
    wire_close(&r);
}

static void a_result_that_is_being_retried_is_not_doubled(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, false);
    peer_script(p, COMPLETE, 1, 0, NULL); /* answered never, then as usual */
    give(&r, p, ID_A);
    assert_true(peer_await(p, COMPLETE, 1, 1000));
    give(&r, p, ID_A);
    wire_run(&r, 1500); /* it waits for its second attempt */
    assert_int_equal(peer_count(p, COMPLETE), 1);
    give(&r, p, ID_A);
    expect_results(&r, p, COMPLETE, 2, ID_A, "{\"n\": NaN}");
    assert_int_equal(r.works, 1);
    wire_close(&r);
}

static void the_result_of_an_older_task_on_its_way_is_not_refused(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, false);
    peer_script(p, COMPLETE, 1, 0, NULL);
    give(&r, p, ID_A);
    assert_true(peer_await(p, COMPLETE, 1, 1000));
    give(&r, p, ID_B);
    give(&r, p, ID_A);
    wire_run(&r, 5000);
    assert_int_equal(peer_count(p, COMPLETE), 3);
    assert_non_null(strstr(peer_get(p, COMPLETE, 1)->body, ID_B));
    assert_non_null(strstr(peer_get(p, COMPLETE, 2)->body, ID_A));
    assert_int_equal(r.works, 2);
    wire_close(&r);
}

static void a_result_that_was_given_up_is_to_be_had(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, false);
    peer_script(p, COMPLETE, 1, 500, PEER_HTML);
    give(&r, p, ID_A);
    expect_results(&r, p, COMPLETE, 1, ID_A, "{\"n\": NaN}");
    assert_true(coord_slave_is_connected(r.slave));
    give(&r, p, ID_A);
    expect_results(&r, p, COMPLETE, 2, ID_A, "{\"n\": NaN}");
    wire_close(&r);
}

/* The master dies with the result on its way; another process of it comes back. */
static void a_master_that_comes_back_gets_the_result_on_its_new_connection(void **state)
{
    static wire_rig r;
    (void)state;
    peer *old = setup(&r, false);
    peer *new = wire_peer(&r, false);
    peer_script(old, COMPLETE, -1, 0, NULL);
    give(&r, old, ID_A);
    assert_true(peer_await(old, COMPLETE, 1, 1000));
    coord_sim_crash(r.sim, old->loop);
    assert_true(wire_await(&r, "slave lost", 1, 60000));
    assert_int_equal(peer_connect(new, HOST, r.port, T2)->http_status, 200);
    (void)give_as(&r, new, T2, ID_A, 200, 0);
    expect_results(&r, new, COMPLETE, 1, ID_A, "{\"n\": NaN}");
    assert_string_equal(peer_get(new, COMPLETE, 0)->token, T2);
    assert_int_equal(r.works, 1);
    wire_close(&r);
}

static void what_was_cut_off_is_done_anew(void **state)
{
    static wire_rig r;
    (void)state;
    peer *old = setup(&r, false);
    peer *new = wire_peer(&r, false);
    r.work_ms = 60000;
    give(&r, old, ID_A);
    coord_sim_crash(r.sim, old->loop);
    assert_true(wire_await(&r, "slave lost", 1, 60000));
    assert_int_equal(peer_connect(new, HOST, r.port, T2)->http_status, 200);
    (void)give_as(&r, new, T2, ID_A, 400, 601); /* until process_task has noticed */
    wire_run(&r, 200);
    assert_int_equal(r.canceled, 1);
    r.work_ms = 0;
    (void)give_as(&r, new, T2, ID_A, 200, 0);
    expect_results(&r, new, COMPLETE, 1, ID_A, "{\"n\": NaN}");
    assert_int_equal(r.works, 2);
    wire_close(&r);
}

static void a_task_before_the_last_is_refused_with_the_reason(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, false);
    give(&r, p, ID_A);
    wire_run(&r, 100);
    give(&r, p, ID_B);
    wire_run(&r, 100);
    const peer_reply *reply = give_as(&r, p, T1, ID_A, 403, 602);
    assert_non_null(strstr(reply->body, ID_A " was done before, and its result is not"));
    assert_non_null(strstr(reply->body, "\"data\":{}"));
    give(&r, p, ID_B); /* the last one still is */
    wire_run(&r, 5000);
    assert_int_equal(peer_count(p, COMPLETE), 3);
    assert_int_equal(r.works, 2);
    wire_close(&r);
}

/* Nobody's result is kept for a master that never asks twice. */
static void nothing_is_kept_for_a_python_master(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, true);
    give(&r, p, ID_A);
    wire_run(&r, 100);
    assert_null(r.slave->last);
    give(&r, p, ID_A);
    expect_results(&r, p, COMPLETE, 2, ID_A, "{\"n\": NaN}");
    assert_int_equal(r.works, 2); /* to the reference it is a task as any other */
    wire_close(&r);
}

static void closing_lets_go_of_the_result(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = setup(&r, false);
    give(&r, p, ID_A);
    wire_run(&r, 100);
    assert_non_null(r.slave->last);
    assert_int_equal(coord_slave_close(r.slave, 1000, NULL), COORD_OK);
    assert_null(r.slave->last);
    wire_close(&r);
}

static bool the_nth(void *user)
{
    int *left = user;
    return (*left)-- == 0;
}

static void without_memory_a_repeat_is_answered_all_the_same(void **state)
{
    static wire_rig r;
    int refused = 0;
    (void)state;
    for (int nth = 0; nth < 24; nth++) {
        peer *p = setup(&r, false);
        give(&r, p, ID_A);
        wire_run(&r, 100);
        int left = nth;
        int before = peer_count(p, COMPLETE);
        int index = peer_send(p, HOST, r.port, "POST", "/task/new", T1, "0",
                              "{\"task\": {\"id\": \"" ID_A "\"}, \"data\": 1}");
        coordi_alloc_set_fault(the_nth, &left);
        bool ran = coord_sim_run_for(r.sim, 20, NULL) == COORD_OK;
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(ran);
        wire_run(&r, 10000);
        assert_int_equal(r.works, 1);
        assert_true(coord_slave_is_connected(r.slave));
        if (p->replies[index].code == 0) {
            assert_int_equal(peer_count(p, COMPLETE), before + 1);
        }
        refused += strstr(p->replies[index].body, "out of memory") != NULL;
        wire_close(&r);
    }
    assert_true(refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeat_of_the_running_task_is_answered_and_that_is_all),
        cmocka_unit_test(a_repeat_of_the_last_task_brings_its_result_again),
        cmocka_unit_test(a_failure_is_repeated_as_one),
        cmocka_unit_test(a_result_that_is_being_retried_is_not_doubled),
        cmocka_unit_test(the_result_of_an_older_task_on_its_way_is_not_refused),
        cmocka_unit_test(a_result_that_was_given_up_is_to_be_had),
        cmocka_unit_test(a_master_that_comes_back_gets_the_result_on_its_new_connection),
        cmocka_unit_test(what_was_cut_off_is_done_anew),
        cmocka_unit_test(a_task_before_the_last_is_refused_with_the_reason),
        cmocka_unit_test(nothing_is_kept_for_a_python_master),
        cmocka_unit_test(closing_lets_go_of_the_result),
        cmocka_unit_test(without_memory_a_repeat_is_answered_all_the_same),
    };
    return cmocka_run_group_tests_name("slave_repeat", tests, NULL, NULL);
}
