/* The faults that the reference's Slave has, one test each: test/FAULTS says what each of
 * them was. */
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

/* A slave among scripted masters. */
static peer *slave_rig(wire_rig *r, bool foreign)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.request_retries = 2;
    o.request_timeout_ms = 1000;
    wire_open(r, 1);
    wire_slave(r, &o);
    return wire_peer(r, foreign);
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
}

static const peer_reply *give(wire_rig *r, peer *p, const char *token, const char *id)
{
    return peer_new_task(p, HOST, r->port, token, id, "{}");
}

static const peer_reply *leave(wire_rig *r, peer *p, const char *token)
{
    return peer_ask(p, HOST, r->port, "DELETE", "/disconnect", token, "0",
                    "{\"data\": {}}");
}

/* Results of this task that the master got. */
static int results(peer *p, const char *id)
{
    int count = 0;
    for (int i = 0; i < p->request_count; i++) {
        count += strncmp(p->requests[i].path, "/slave/task/", 12) == 0 &&
                 strstr(p->requests[i].body, id) != NULL;
    }
    return count;
}

/* A new master finds the slave free, and gets its work done. */
static void expect_service(wire_rig *r, peer *p)
{
    r->work_ms = 0;
    join(r, p, T2);
    wire_run(r, 300);
    expect(give(r, p, T2, ID_B), 200, 0);
    wire_run(r, 300);
    assert_int_equal(results(p, ID_B), 1);
    assert_int_equal(results(p, ID_A), 0);
    wire_run(r, 3100);
    assert_true(peer_count(p, "/slave/heartbeat") >= 1);
    assert_string_equal(peer_get(p, "/slave/heartbeat", -1)->token, T2);
}

static void f_s1_a_late_result_does_not_go_to_the_next_master(void **state)
{
    static wire_rig r;
    (void)state;
    peer *old = slave_rig(&r, true);
    peer *new = wire_peer(&r, true);
    r.work_ms = 60000;
    join(&r, old, T1);
    expect(give(&r, old, T1, ID_A), 200, 0);
    coord_sim_crash(r.sim, old->loop);
    assert_true(wire_await(&r, "slave lost", 1, 10000));
    expect_service(&r, new);
    wire_run(&r, 60000);
    assert_int_equal(results(new, ID_A), 0);
    wire_close(&r);
}

static void f_s2_a_result_that_can_not_be_delivered_costs_only_itself(void **state)
{
    static wire_rig r;
    static const int STATUS[] = {403, 401, 500, 0};
    (void)state;
    for (int i = 0; i < 4; i++) {
        peer *old = slave_rig(&r, true);
        peer *new = wire_peer(&r, true);
        join(&r, old, T1);
        const char *body =
            STATUS[i] == 500 ? PEER_HTML : peer_no(STATUS[i] == 401 ? 101 : 502, NULL);
        peer_script(old, "/slave/task/complete", 1, STATUS[i], body);
        expect(give(&r, old, T1, ID_A), 200, 0);
        wire_run(&r, 2000);
        if (STATUS[i] == 500) { /* an answer without sense is no reason to part */
            expect(give(&r, old, T1, ID_B), 200, 0);
            wire_run(&r, 100);
            assert_int_equal(results(old, ID_B), 1);
            expect(leave(&r, old, T1), 200, 0);
        }
        assert_int_equal(results(old, ID_A), 1);
        expect_service(&r, new);
        wire_close(&r);
    }
}

static void f_s3_a_heartbeat_that_is_refused_frees_the_slave(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = slave_rig(&r, true);
    peer *new = wire_peer(&r, true);
    join(&r, p, T1);
    peer_script(p, "/slave/heartbeat", 1, 403, peer_no(502, NULL));
    assert_true(wire_await(&r, "slave lost", 1, 3100));
    expect_service(&r, new);
    assert_int_equal(peer_count(p, "/slave/heartbeat"), 1);
    wire_close(&r);
}

static void f_s4_work_that_fails_without_a_word_is_reported(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = slave_rig(&r, true);
    join(&r, p, T1);
    r.work_says = COORD_ERR_NOMEM;
    expect(give(&r, p, T1, ID_A), 200, 0);
    assert_true(peer_await(p, "/slave/task/fail", 1, 1000));
    assert_string_equal(peer_get(p, "/slave/task/fail", 0)->body,
                        "{\"task\": {\"id\": \"" ID_A "\"}, \"result\": {}}");
    r.work_says = COORD_OK;
    expect(give(&r, p, T1, ID_B), 200, 0);
    assert_true(peer_await(p, "/slave/task/complete", 1, 1000));
    wire_close(&r);
}

static void f_s5_disconnecting_during_a_task_ends_it(void **state)
{
    static wire_rig r;
    (void)state;
    peer *old = slave_rig(&r, true);
    peer *new = wire_peer(&r, true);
    r.work_ms = 60000;
    join(&r, old, T1);
    expect(give(&r, old, T1, ID_A), 200, 0);
    expect(leave(&r, old, T1), 200, 0);
    wire_run(&r, 200);
    assert_int_equal(r.canceled, 1);
    expect_service(&r, new);
    assert_int_equal(results(old, ID_A), 0);
    wire_close(&r);
}

static void f_s6_a_connect_that_fails_leaves_no_token_behind(void **state)
{
    static wire_rig r;
    static const char *const BODIES[] = {
        "{\"master\": {\"address\": \"http://:\"}, \"data\": {}}",
        "{\"master\": {\"address\": 5}, \"data\": {}}",
        "{\"master\": {}, \"data\": {}}",
        "{\"master\": {\"address\": \"https://10.0.1.1:80\"}, \"data\": {}}",
    };
    (void)state;
    peer *p = slave_rig(&r, true);
    for (int i = 0; i < 4; i++) {
        expect(peer_ask(p, HOST, r.port, "POST", "/connect", T1, "0", BODIES[i]), 400,
               503);
        assert_false(coord_slave_is_connected(r.slave));
        expect(give(&r, p, T1, ID_A), 403, 302);
    }
    assert_int_equal(r.works, 0);
    expect_service(&r, p);
    wire_close(&r);
}

static void f_s7_heartbeats_do_not_catch_up_and_do_not_pile_up(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = slave_rig(&r, true);
    join(&r, p, T1);
    coord_sim_pause(r.sim, r.loop, true);
    wire_run(&r, 30000);
    coord_sim_pause(r.sim, r.loop, false);
    wire_run(&r, 400);
    assert_int_equal(peer_count(p, "/slave/heartbeat"), 1);
    peer_script(p, "/slave/heartbeat", 2, 0,
                NULL); /* each costs 1 s, and a pause of 1 s */
    wire_run(&r, 2900);
    int before = peer_count(p, "/slave/heartbeat");
    assert_int_equal(before, 2);
    wire_run(&r, 4050); /* two attempts follow, and no beat beside them */
    assert_int_equal(peer_count(p, "/slave/heartbeat"), 4);
    for (int i = 2; i < 4; i++) {
        int64_t gap = peer_get(p, "/slave/heartbeat", i)->at_ms -
                      peer_get(p, "/slave/heartbeat", i - 1)->at_ms;
        assert_in_range(gap, 1980, 2020);
    }
    assert_true(coord_slave_is_connected(r.slave));
    wire_close(&r);
}

/* Tasks are offered all the time, so that one comes in right when the slave gets free. */
static void f_s8_each_result_carries_the_id_of_its_own_task(void **state)
{
    static wire_rig r;
    int sent[40];
    int taken = 0;
    (void)state;
    peer *p = slave_rig(&r, true);
    r.work_ms = 7;
    join(&r, p, T1);
    for (int i = 0; i < 40; i++) {
        char body[128];
        (void)snprintf(body, sizeof body,
                       "{\"task\": {\"id\": \"%08d-0000-0000-0000-000000000000\"}, "
                       "\"data\": 1}",
                       i);
        sent[i] = peer_send(p, HOST, r.port, "POST", "/task/new", T1, "0", body);
        wire_run(&r, 1);
    }
    wire_run(&r, 100);
    for (int i = 0; i < 40; i++) {
        char id[16];
        const peer_reply *reply = peer_await_reply(p, sent[i], 1000);
        (void)snprintf(id, sizeof id, "\"%08d-", i);
        assert_true(reply->code == 0 || reply->code == 601);
        assert_int_equal(results(p, id), reply->code == 0);
        taken += reply->code == 0;
    }
    assert_true(taken >= 3);
    assert_int_equal(r.works, taken);
    assert_int_equal(peer_count(p, "/slave/task/complete"), taken);
    wire_close(&r);
}

static void f_s9_of_two_masters_at_once_one_is_told_yes(void **state)
{
    static wire_rig r;
    char body[128];
    (void)state;
    peer *a = slave_rig(&r, true);
    peer *b = wire_peer(&r, true);
    r.hook_ms = 500;
    (void)snprintf(body, sizeof body,
                   "{\"master\": {\"address\": \"http://%s:%u\"}, \"data\": {}}", b->host,
                   (unsigned)b->port);
    int second = peer_send(b, HOST, r.port, "POST", "/connect", T2, "0", body);
    bool first_won = peer_connect(a, HOST, r.port, T1)->code == 0;
    expect(peer_await_reply(b, second, 5000), first_won ? 400 : 200, first_won ? 501 : 0);
    r.hook_ms = 0;
    wire_run(&r, 3100);
    assert_int_equal(peer_count(a, "/slave/heartbeat"), first_won);
    assert_int_equal(peer_count(b, "/slave/heartbeat"), !first_won);
    expect(give(&r, first_won ? b : a, first_won ? T2 : T1, ID_A), 403, 302);
    expect(give(&r, first_won ? a : b, first_won ? T1 : T2, ID_A), 200, 0);
    wire_close(&r);
}

static void f_s10_work_for_a_master_that_is_gone_is_told_to_stop(void **state)
{
    static wire_rig r;
    (void)state;
    peer *old = slave_rig(&r, true);
    peer *new = wire_peer(&r, true);
    r.work_ms = 600000;
    join(&r, old, T1);
    expect(give(&r, old, T1, ID_A), 200, 0);
    coord_sim_crash(r.sim, old->loop);
    assert_true(wire_await(&r, "slave lost", 1, 10000));
    wire_run(&r, 200);
    assert_int_equal(r.canceled, 1);
    assert_int_equal(r.running, 0);
    expect_service(&r, new);
    wire_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_s1_a_late_result_does_not_go_to_the_next_master),
        cmocka_unit_test(f_s2_a_result_that_can_not_be_delivered_costs_only_itself),
        cmocka_unit_test(f_s3_a_heartbeat_that_is_refused_frees_the_slave),
        cmocka_unit_test(f_s4_work_that_fails_without_a_word_is_reported),
        cmocka_unit_test(f_s5_disconnecting_during_a_task_ends_it),
        cmocka_unit_test(f_s6_a_connect_that_fails_leaves_no_token_behind),
        cmocka_unit_test(f_s7_heartbeats_do_not_catch_up_and_do_not_pile_up),
        cmocka_unit_test(f_s8_each_result_carries_the_id_of_its_own_task),
        cmocka_unit_test(f_s9_of_two_masters_at_once_one_is_told_yes),
        cmocka_unit_test(f_s10_work_for_a_master_that_is_gone_is_told_to_stop),
    };
    return cmocka_run_group_tests_name("faults of the slave", tests, NULL, NULL);
}
