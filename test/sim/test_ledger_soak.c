/* What a soak of real processes has found, once more in the simulated world. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEDGER "\"ledger\": \"/ledger\", "

static void crash(cluster *k, int64_t down_ms)
{
    cluster_crash_coordinator(k);
    cluster_run(k, down_ms);
    k->callback_ms = 0;
    cluster_restart(k, LEDGER);
}

static void expect_all_ended(cluster *k)
{
    coord_error err = {0};
    if (comm_coordinator_wait(k->c, 100000, &err) != COORD_OK) {
        fail_msg("%s", err.text);
    }
}

/* In the first life and in the second, with the same result at the same place. */
static void expect_finished_alike(const cluster *k, const char *task)
{
    const cluster_event *first = NULL;
    for (int i = 0; i < k->event_count; i++) {
        const cluster_event *e = &k->events[i];
        if (strcmp(e->name, "finish") != 0 || strcmp(e->task, task) != 0) {
            continue;
        }
        if (first == NULL) {
            first = e;
            continue;
        }
        assert_int_equal(e->life, 1);
        assert_int_equal(e->attempt, first->attempt);
        assert_int_equal(e->sequence, first->sequence);
        assert_string_equal(e->detail, first->detail);
    }
    assert_non_null(first);
    assert_int_equal(first->life, 0);
    assert_int_equal(cluster_count(k, "finish", task), 2);
}

/* "a" is done and its finish callback runs; its worker is at "b" already. */
static void reach_handover(cluster *k, uint64_t seed, coord_role role)
{
    bool collector = role == COORD_COLLECTOR;
    cluster_init(k, seed, collector ? 1 : 0, collector ? 0 : 1);
    k->workers[0].work_ms = 300;
    k->data_in_buffer = 1;
    cluster_start(k, LEDGER);
    cluster_post(k, role, "a");
    cluster_post(k, role, "b");
    assert_true(cluster_await_task(k, "a", "closing", 20000));
    k->callback_ms = 20000;
    assert_true(cluster_await_task(k, "b", "asking", 20000));
    assert_string_equal(cluster_task_state(k, "a"), "finishing");
}

/* Neither task is begun anew: the one that has nothing left to ask needs no worker. */
static void a_worker_goes_on_with_its_new_task(void **state)
{
    (void)state;
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            cluster k;
            reach_handover(&k, seed, (coord_role)role);
            crash(&k, (int64_t)seed * 250);
            expect_all_ended(&k);
            assert_int_equal(cluster_count(&k, "restart", NULL), 0);
            assert_int_equal(k.workers[0].starts, 2);
            expect_finished_alike(&k, "a");
            assert_int_equal(cluster_count(&k, "finish", "b"), 1);
            cluster_check(&k);
            cluster_done(&k);
        }
    }
}

/* ... not even when the worker has died, or has long given us up. */
static void a_result_that_is_written_needs_no_worker(void **state)
{
    (void)state;
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            cluster k;
            bool collector = role == COORD_COLLECTOR;
            cluster_init(&k, seed, collector ? 1 : 0, collector ? 0 : 1);
            k.data_in_buffer = 1;
            k.callback_ms = 300;
            cluster_start(&k, LEDGER);
            cluster_post(&k, (coord_role)role, "a");
            assert_true(cluster_await(&k, "finish", "a", 1, 20000));
            if (seed % 2 == 0) {
                cluster_crash(&k, k.workers[0].id);
                cluster_revive(&k, k.workers[0].id);
            }
            crash(&k, seed % 3 == 0 ? 60000 : 1000);
            expect_all_ended(&k);
            assert_int_equal(k.workers[0].starts, 1);
            assert_int_equal(cluster_count(&k, "restart", NULL), 0);
            expect_finished_alike(&k, "a");
            assert_true(cluster_await_worker(&k, k.workers[0].id, "free", 100000));
            cluster_check(&k);
            cluster_done(&k);
        }
    }
}

/* A close that the worker does not answer in time ends the task all the same. */
static void an_unanswered_close_stays_one(void **state)
{
    (void)state;
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        cluster k;
        bool collector = role == COORD_COLLECTOR;
        cluster_init(&k, 1, collector ? 1 : 0, collector ? 0 : 1);
        k.data_in_buffer = 1;
        k.workers[0].work_ms = 100;
        cluster_start(&k, LEDGER "\"start_timeout_s\": 2, ");
        cluster_post(&k, (coord_role)role, "a");
        assert_true(cluster_await(&k, "judge", "a", collector ? 1 : 3, 20000));
        k.workers[0].work_ms = 60000;
        k.callback_ms = 20000;
        assert_true(cluster_await(&k, "finish", "a", 1, 100000));
        crash(&k, 1000);
        expect_all_ended(&k);
        assert_int_equal(k.workers[0].starts, 1);
        expect_finished_alike(&k, "a");
        cluster_done(&k);
    }
}

/* The worker of a task was started anew while the coordinator was away, and is given
 * another task before the host has heard that the first one is resumed. */
static void a_new_worker_is_not_taken_for_the_old_one(void **state)
{
    (void)state;
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            cluster k;
            bool collector = role == COORD_COLLECTOR;
            cluster_init(&k, seed, collector ? 1 : 0, collector ? 0 : 1);
            k.workers[0].work_ms = 300;
            k.data_in_buffer = 1;
            cluster_start(&k, LEDGER);
            cluster_post(&k, (coord_role)role, "a");
            assert_true(
                cluster_await(&k, collector ? "send_data" : "get_data", "a", 1, 20000));
            cluster_crash_coordinator(&k);
            cluster_crash(&k, k.workers[0].id);
            cluster_revive(&k, k.workers[0].id);
            k.callback_ms = 60000; /* of a's resume */
            cluster_restart(&k, LEDGER);
            k.callback_ms = 0;
            cluster_post(&k, (coord_role)role, "b");
            assert_true(cluster_await_task(&k, "b", "asking", 20000));
            assert_string_equal(cluster_task_state(&k, "a"), "resuming");
            crash(&k, (int64_t)seed * 250);
            expect_all_ended(&k);
            assert_int_equal(k.workers[0].starts, 3);
            assert_int_equal(cluster_last(&k, "finish", "a")->attempt, 2);
            assert_int_equal(cluster_last(&k, "finish", "b")->attempt, 1);
            assert_int_equal(cluster_count(&k, "restart", NULL), 1);
            if (collector) {
                assert_int_equal(cluster_count(&k, "send_data", "b"), 3);
            }
            cluster_done(&k);
        }
    }
}

/* A canceled task stays so, though the crash comes before its host has taken notice; and
 * its worker, which has the next task by then, is left alone. */
static void what_has_failed_does_not_come_back_to_life(void **state)
{
    (void)state;
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            cluster k;
            bool collector = role == COORD_COLLECTOR;
            cluster_init(&k, seed, collector ? 1 : 0, collector ? 0 : 1);
            k.workers[0].work_ms = 300;
            k.data_in_buffer = 1;
            cluster_start(&k, LEDGER);
            cluster_post(&k, (coord_role)role, "a");
            cluster_post(&k, (coord_role)role, "b");
            assert_true(cluster_await(&k, "start", "a", 1, 20000));
            k.callback_ms = 60000;
            assert_int_equal(comm_coordinator_cancel_task(k.c, "a", NULL), COORD_OK);
            assert_true(cluster_await_task(&k, "b", "asking", 20000));
            assert_string_equal(cluster_task_state(&k, "a"), "failing");
            int data = cluster_count(&k, "send_data", "a");
            crash(&k, (int64_t)seed * 250);
            expect_all_ended(&k);
            assert_int_equal(cluster_last(&k, "fail", "a")->life, 1);
            assert_int_equal(atoi(cluster_last(&k, "fail", "a")->detail),
                             COORD_ERR_CANCELED);
            assert_int_equal(cluster_count(&k, "resume", "a"), 1);
            assert_int_equal(cluster_count(&k, "send_data", "a"), data);
            assert_int_equal(cluster_count(&k, "restart", NULL), 0);
            assert_int_equal(cluster_count(&k, "finish", "b"), 1);
            assert_int_equal(k.workers[0].starts, 2);
            cluster_check(&k);
            cluster_done(&k);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_goes_on_with_its_new_task),
        cmocka_unit_test(a_result_that_is_written_needs_no_worker),
        cmocka_unit_test(an_unanswered_close_stays_one),
        cmocka_unit_test(a_new_worker_is_not_taken_for_the_old_one),
        cmocka_unit_test(what_has_failed_does_not_come_back_to_life),
    };
    return cmocka_run_group_tests_name("ledger_soak", tests, NULL, NULL);
}
