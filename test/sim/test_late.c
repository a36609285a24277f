/* What comes later than somebody waited for it: calls whose callers have given up,
 * callbacks of an attempt that is over, answers that overtake each other. */
#include "support/cluster.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_MS = 600000 };

/* ---- calls ---- */

static coord_status send_task(cluster *k, const char *id, coord_error *err)
{
    return comm_coordinator_send_collector_task(k->c, cluster_task(id), NULL, err);
}

static coord_status post_task(cluster *k, const char *id, coord_error *err)
{
    return comm_coordinator_post_collector_task(k->c, cluster_task(id), err);
}

/* Whoever was told "too late" is not surprised afterwards, and may try again. */
static void expect_no_trace(cluster *k, coord_status (*call)(cluster *k, const char *id,
                                                             coord_error *err))
{
    coord_error err = {0};
    coord_sim_pause(k->sim, k->loop, true);
    assert_int_equal(call(k, "t", &err), COORD_ERR_TIMEOUT);
    coord_sim_pause(k->sim, k->loop, false);
    cluster_run(k, 30000);
    assert_int_equal(k->event_count, 0);
    assert_true(cluster_await_worker(k, "c0", "free", LONG_MS));
    assert_int_equal(cluster_find(k, "c0")->starts, 0);
    assert_int_equal(call(k, "t", &err), COORD_OK);
    assert_true(cluster_await(k, "finish", "t", 1, LONG_MS));
}

static void a_post_that_came_too_late_is_not_done(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    cluster_start(&k, "");
    expect_no_trace(&k, post_task);
    cluster_done(&k);
}

static void a_send_that_came_too_late_is_not_done(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 2, 1, 0);
    cluster_start(&k, "\"queue_timeout_s\": 1, \"start_timeout_s\": 2,");
    expect_no_trace(&k, send_task);
    cluster_done(&k);
}

static void a_start_that_came_too_late_is_not_done(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 3, 1, 0);
    cluster_create(&k, "\"max_retry_second\": 5,");
    coord_sim_pause(k.sim, k.loop, true);
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT);
    coord_sim_pause(k.sim, k.loop, false);
    cluster_run(&k, 1000);
    assert_int_equal(comm_coordinator_port(k.c), 0);
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
    cluster_done(&k);
}

static void fall_asleep_soon(void *user)
{
    cluster *k = user;
    if (coord_sim_run_for(k->sim, 1000, NULL) == COORD_OK) {
        coord_sim_pause(k->sim, k->loop, true);
    }
}

/* Begins while somebody waits, and gets there when nobody does any more. */
static void a_start_whose_caller_has_gone_meanwhile_is_released(void **state)
{
    static cluster k;
    coord_error err = {0};
    coord_sim_thread *nap;
    (void)state;
    cluster_init(&k, 4, 1, 0);
    k.workers[0].resource_ms = 2000;
    cluster_create(&k, "\"max_retry_second\": 5,");
    assert_int_equal(coord_sim_thread_start(k.sim, fall_asleep_soon, &k, &nap, NULL),
                     COORD_OK);
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_thread_join(nap, LONG_MS, NULL), COORD_OK);
    coord_sim_pause(k.sim, k.loop, false);
    cluster_run(&k, 1000);
    assert_int_equal(comm_coordinator_port(k.c), 0);
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
    cluster_done(&k);
}

/* The coordinator stands still while the worker starts: what the worker says then is
 * heard when the caller has been told that it took too long. */
static void a_task_whose_sender_has_gone_meanwhile_is_taken_back(void **state)
{
    static cluster k;
    coord_error err = {0};
    coord_sim_thread *nap;
    (void)state;
    cluster_init(&k, 6, 1, 0);
    cluster_find(&k, "c0")->work_ms = 2000;
    cluster_start(&k, "\"queue_timeout_s\": 1, \"start_timeout_s\": 4, "
                      "\"max_reassign\": 0,");
    assert_int_equal(coord_sim_thread_start(k.sim, fall_asleep_soon, &k, &nap, NULL),
                     COORD_OK);
    assert_int_equal(send_task(&k, "t", &err), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_thread_join(nap, LONG_MS, NULL), COORD_OK);
    coord_sim_pause(k.sim, k.loop, false);
    cluster_run(&k, 30000);
    assert_int_equal(cluster_find(&k, "c0")->starts, 1);
    assert_int_equal(k.event_count, 0);
    assert_true(cluster_await_worker(&k, "c0", "free", LONG_MS));
    cluster_check(&k);
    assert_int_equal(send_task(&k, "t", &err), COORD_OK);
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    cluster_done(&k);
}

/* The first worker is dead, the second takes its time: together they take longer than
 * one attempt may. */
static void a_start_that_moves_is_waited_for(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 5, 2, 0);
    cluster_start(&k, "\"queue_timeout_s\": 1, \"start_timeout_s\": 4, "
                      "\"request_retries\": 3, \"request_retry_wait_s\": 1.3, "
                      "\"resource_manager\": \"least_loaded\",");
    k.workers[0].work_ms = 3900;
    k.workers[1].work_ms = 3900;
    assert_int_equal(send_task(&k, "before", &err), COORD_OK);
    assert_true(cluster_await(&k, "finish", "before", 1, LONG_MS));
    const char *used = cluster_last(&k, "start", "before")->detail;
    const char *dead = strcmp(used, "c0") == 0 ? "c1" : "c0"; /* it is next */
    cluster_worker *second = cluster_find(&k, used);
    char id[32];
    (void)snprintf(id, sizeof id, "%s", second->id);
    cluster_crash(&k, dead);
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(send_task(&k, "t", &err), COORD_OK);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 7000, 12000);
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    assert_int_equal(second->starts, 2);
    assert_true(cluster_await_worker(&k, id, "free", LONG_MS));
    cluster_check(&k);
    cluster_done(&k);
}

/* ---- callbacks ---- */

static void tell_delivery(cluster *k, const cluster_event *e, void *user)
{
    comm_coordinator_delivery *d = user;
    d->size = sizeof *d;
    if (strcmp(e->task, "t") == 0 && strcmp(e->name, "send_data") == 0 &&
        comm_coordinator_get_delivery(k->c, d, NULL) != COORD_OK) {
        d->attempt = 0;
    }
}

/* The pool is busy when the sample comes; when its turn comes, the worker is lost and
 * another attempt is about to begin. The sample is still what it was. */
static void a_late_callback_tells_of_its_own_attempt(void **state)
{
    static cluster k;
    comm_coordinator_delivery d = {0};
    (void)state;
    cluster_init(&k, 6, 3, 0);
    cluster_start(&k, "\"executor\": {\"pool\": 1}, \"heartbeat_tolerance_s\": 5, ");
    for (int i = 0; i < 3; i++) {
        k.workers[i].work_ms = 500;
    }
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "t", "asking", LONG_MS));
    const char *dead = "c0";
    for (int i = 0; i < 3; i++) {
        if (strcmp(cluster_worker_state(&k, k.workers[i].id), "working") == 0) {
            dead = k.workers[i].id;
        }
        k.workers[i].work_ms = 0;
    }
    cluster_run(&k, 1);
    k.callback_ms = 10000;
    cluster_post(&k, COORD_COLLECTOR, "slow");
    assert_true(cluster_await(&k, "start", "slow", 1, LONG_MS));
    k.on_note = tell_delivery;
    k.on_note_user = &d;
    assert_true(cluster_await_task(&k, "t", "sending", LONG_MS));
    cluster_crash(&k, dead);
    assert_true(cluster_await(&k, "send_data", "t", 1, LONG_MS));
    assert_string_equal(cluster_task_state(&k, "t"), "restarting");
    assert_int_equal(d.attempt, 1);
    assert_int_equal(d.sequence, 2);
    k.on_note = NULL;
    k.callback_ms = 0;
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    cluster_done(&k);
}

static void a_learner_is_told_nothing_more_once_its_coordinator_is_destroyed(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 7, 0, 1);
    k.data_in_buffer = 1;
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "t");
    assert_true(cluster_await_task(&k, "t", "learning", LONG_MS));
    k.callback_ms = 1000;
    assert_true(cluster_await(&k, "judge", "t", 1, LONG_MS));
    comm_coordinator_destroy(k.c);
    k.c = NULL;
    k.closed = true;
    cluster_run(&k, 10000);
    assert_int_equal(cluster_count(&k, "send_info", "t"), 0);
    cluster_done(&k);
}

/* ---- tokens ---- */

static coord_connection *lost_connection(wire_rig *r)
{
    coord_master_options o;
    coord_master_options_init(&o, sizeof o);
    o.request_retries = 0;
    o.request_timeout_ms = 1000;
    wire_open(r, 1);
    wire_master(r, &o);
    coord_connection *c = wire_connected(r, "s", wire_peer(r, true));
    wire_run(r, 20000);
    assert_int_equal(wire_count(r, "lost"), 1);
    coord_connection_destroy(c);
    return wire_connection(r, "s", &r->peers[0]);
}

static coord_status connect_now(coord_connection *c)
{
    return coord_connection_connect(c, (coord_text){NULL, 0}, 60000, NULL);
}

static const char *token_of(wire_rig *r, const char *path, int n)
{
    return peer_get(&r->peers[0], path, n)->token;
}

static int beat_of(wire_rig *r, const char *token)
{
    return peer_ask(&r->peers[0], "10.0.0.1", r->port, "GET", "/slave/heartbeat", token,
                    "0", "{}")
        ->http_status;
}

/* While the slave denies one old token, it uses another: that one is not forgotten. */
static void a_token_that_comes_into_use_is_not_taken_for_the_denied_one(void **state)
{
    static wire_rig r;
    (void)state;
    coord_connection *c = lost_connection(&r);
    peer *p = &r.peers[0];
    peer_script(p, "/connect", 1, 0, NULL); /* taken, but nobody hears of it */
    peer_script(p, "/disconnect", 2, 0, NULL);
    assert_int_equal(connect_now(c), COORD_ERR_TIMEOUT);
    char taken[COORDI_TOKEN_SIZE];
    memcpy(taken, token_of(&r, "/connect", 1), sizeof taken);

    peer_script(p, "/connect", 1, 400, peer_no(501, NULL));
    assert_int_equal(coord_connection_connect(c, (coord_text){NULL, 0}, 0, NULL),
                     COORD_OK);
    assert_true(peer_await(p, "/disconnect", 2, 10000));
    assert_string_equal(token_of(&r, "/disconnect", 1), token_of(&r, "/connect", 0));
    assert_int_equal(beat_of(&r, taken), 200);
    peer_answer(p, peer_get(p, "/disconnect", 1), 403, peer_no(302, NULL));
    assert_true(wire_await(&r, "connect", 3, 10000));
    assert_int_equal(wire_last(&r, "connect")->status, COORD_OK);
    assert_string_equal(token_of(&r, "/disconnect", 2), taken);
    coord_connection_destroy(c);
    wire_close(&r);
}

/* The slave denies the token, for the connect that brings it comes only later. */
static void a_connect_that_comes_after_its_undo_is_taken_back_later(void **state)
{
    static wire_rig r;
    (void)state;
    coord_connection *c = lost_connection(&r);
    peer *p = &r.peers[0];
    peer_script(p, "/connect", 1, 0, NULL);
    peer_script(p, "/disconnect", 1, 403, peer_no(302, NULL));
    assert_int_equal(connect_now(c), COORD_ERR_TIMEOUT);
    char taken[COORDI_TOKEN_SIZE];
    memcpy(taken, token_of(&r, "/connect", 1), sizeof taken);
    assert_string_equal(token_of(&r, "/disconnect", 0), taken);

    assert_int_equal(beat_of(&r, taken), 200); /* a 403 would end it for good */
    peer_script(p, "/connect", 1, 400, peer_no(501, NULL));
    assert_int_equal(connect_now(c), COORD_OK);
    assert_string_equal(token_of(&r, "/disconnect", 1), taken);
    coord_connection_destroy(c);
    wire_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_post_that_came_too_late_is_not_done),
        cmocka_unit_test(a_send_that_came_too_late_is_not_done),
        cmocka_unit_test(a_start_that_came_too_late_is_not_done),
        cmocka_unit_test(a_start_whose_caller_has_gone_meanwhile_is_released),
        cmocka_unit_test(a_task_whose_sender_has_gone_meanwhile_is_taken_back),
        cmocka_unit_test(a_start_that_moves_is_waited_for),
        cmocka_unit_test(a_late_callback_tells_of_its_own_attempt),
        cmocka_unit_test(
            a_learner_is_told_nothing_more_once_its_coordinator_is_destroyed),
        cmocka_unit_test(a_token_that_comes_into_use_is_not_taken_for_the_denied_one),
        cmocka_unit_test(a_connect_that_comes_after_its_undo_is_taken_back_later),
    };
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
