/* What has to come before what: a result is written before anybody hears of it, and a
 * callback is over before the next attempt begins. */
#include "coordinator/coordinator.h"
#include "support/cluster.h"
#include "support/peers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LEDGER "\"ledger\": \"/ledger\", "

static const int64_t LONG_MS = 200000;

/* ---- results and the ledger ---- */

/* Is the last sample of the first life told again, as the same delivery? */
static bool is_told_again(const cluster *k)
{
    const cluster_event *last = NULL;
    for (int i = 0; i < k->event_count; i++) {
        const cluster_event *e = &k->events[i];
        if (strcmp(e->name, "send_data") != 0) {
            continue;
        }
        if (e->life == 0) {
            last = e;
        } else {
            return last != NULL && strcmp(e->detail, last->detail) == 0 &&
                   e->attempt == last->attempt && e->sequence == last->sequence;
        }
    }
    return false;
}

/* The coordinator dies in the moment in which a callback with the result begins. */
static void what_the_host_is_told_is_in_the_ledger(void **state)
{
    (void)state;
    for (int sample = 1; sample <= 6; sample++) {
        for (int foreign = 0; foreign < 2; foreign++) {
            static cluster k;
            cluster_init(&k, (uint64_t)sample, 1, 0);
            if (foreign) {
                cluster_set_foreign(&k, "c0");
            }
            cluster_find(&k, "c0")->work_ms = 200;
            cluster_find(&k, "c0")->samples = 6;
            cluster_start(&k, LEDGER);
            cluster_post(&k, COORD_COLLECTOR, "t");
            assert_true(cluster_await(&k, "send_data", "t", sample, LONG_MS));
            cluster_crash_coordinator(&k);
            cluster_restart(&k, LEDGER);
            assert_int_equal(comm_coordinator_wait(k.c, LONG_MS, NULL), COORD_OK);
            if (!is_told_again(&k)) {
                fail_msg("sample %d, foreign %d: %s", sample, foreign,
                         cluster_story(&k, "t"));
            }
            cluster_done(&k);
        }
    }
}

/* The result of what "t" is at, in the name of its worker. */
static int forge_result(cluster *k, peer *forger, const char *result)
{
    char body[200];
    const coordi_run *run = coordi_map_get(&k->c->runs, "t");
    assert_non_null(run);
    (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}",
                   run->request->id, result);
    return peer_send(forger, "10.0.0.1", (uint16_t)atomic_load(&k->c->port), "PUT",
                     "/slave/task/complete", run->member->connection->token, "0", body);
}

/* ... or in which the worker has its answer, and may forget the result. */
static void what_was_answered_is_in_the_ledger(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        static cluster k;
        static peer forger;
        cluster_init(&k, seed, 1, 0);
        cluster_find(&k, "c0")->work_ms = 2000;
        cluster_start(&k, LEDGER);
        peer_open(&forger, k.sim, "10.0.9.9", true);
        cluster_post(&k, COORD_COLLECTOR, "t");
        assert_true(cluster_await_task(&k, "t", "asking", LONG_MS));
        cluster_find(&k, "c0")->work_ms = 30000;
        cluster_run(&k, 1000);
        int sent = forge_result(&k, &forger, "{\"data_id\": \"d\"}");
        assert_int_equal(peer_await_reply(&forger, sent, 5000)->http_status, 200);
        cluster_crash_coordinator(&k);
        cluster_restart(&k, LEDGER);
        cluster_run(&k, 20000);
        if (!is_told_again(&k)) {
            fail_msg("seed %llu: %s", (unsigned long long)seed, cluster_story(&k, "t"));
        }
        peer_close(&forger);
        cluster_done(&k);
    }
}

/* ---- callbacks and attempts ---- */

/* The host has no task_restart, and its send_data is still at the last sample when the
 * worker is given up. */
static void a_new_attempt_waits_for_the_callback_of_the_old_one(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 2, 0);
    cluster_create(&k, "\"heartbeat_tolerance_s\": 5, \"request_retries\": 0, ");
    k.c->callbacks.deal_with_task_restart = NULL;
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "start", "t", 1, LONG_MS));
    const char *first =
        strcmp(cluster_last(&k, "start", "t")->detail, "c0") == 0 ? "c0" : "c1";
    const char *second = strcmp(first, "c0") == 0 ? "c1" : "c0";
    k.callback_ms = 20000;
    assert_true(cluster_await(&k, "send_data", "t", 1, LONG_MS));
    cluster_crash(&k, first);
    cluster_run(&k, 10000); /* the loss is noticed, the callback runs */
    assert_string_equal(cluster_worker_state(&k, first), "away");
    assert_int_equal(cluster_count(&k, "send_data", "t"), 1);
    assert_int_equal(cluster_find(&k, second)->starts, 0);
    k.callback_ms = 0;
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    assert_int_equal(cluster_find(&k, second)->starts, 1);
    assert_int_equal(cluster_count(&k, "restart", "t"), 0);
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_host_is_told_is_in_the_ledger),
        cmocka_unit_test(what_was_answered_is_in_the_ledger),
        cmocka_unit_test(a_new_attempt_waits_for_the_callback_of_the_old_one),
    };
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
