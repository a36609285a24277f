/* A coordinator that drains takes no more tasks and brings those it has to their ends. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const int64_t LONG_MS = 600000;

static bool status_has(cluster *k, const char *part)
{
    char *status = NULL;
    assert_int_equal(comm_coordinator_status(k->c, &status, NULL), COORD_OK);
    bool has = strstr(status, part) != NULL;
    coord_free(status);
    return has;
}

static void expect_no_more_tasks(cluster *k)
{
    coord_error err;
    assert_int_equal(
        comm_coordinator_send_collector_task(k->c, cluster_task("late"), NULL, &err),
        COORD_ERR_CLOSED);
    assert_non_null(strstr(err.text, "drains"));
    assert_int_equal(
        comm_coordinator_post_collector_task(k->c, cluster_task("late"), &err),
        COORD_ERR_CLOSED);
    assert_int_equal(comm_coordinator_post_learner_task(k->c, cluster_task("late"), &err),
                     COORD_ERR_CLOSED);
    assert_int_equal(cluster_count(k, NULL, "late"), 0);
}

static void queued_and_running_tasks_go_to_their_ends(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 1);
    k.workers[0].work_ms = 500;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "runs");
    cluster_post(&k, COORD_COLLECTOR, "waits");
    cluster_post(&k, COORD_LEARNER, "learns");
    assert_true(status_has(&k, "\"phase\": \"running\""));
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(comm_coordinator_drain(k.c, LONG_MS, NULL), COORD_OK);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 2 * 6 * 500, 2 * 6 * 500 + 1000);
    assert_int_equal(cluster_count(&k, "finish", NULL), 3);
    assert_true(status_has(&k, "\"phase\": \"draining\""));
    expect_no_more_tasks(&k);

    began = coord_sim_now_ms(k.sim);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 0, 100);
    assert_true(status_has(&k, "\"phase\": \"closed\""));
    assert_int_equal(comm_coordinator_drain(k.c, 0, NULL), COORD_OK);
    cluster_done(&k);
}

static void
a_drain_that_takes_too_long_says_what_is_left_and_can_be_waited_for_again(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 2, 1, 0);
    k.workers[0].work_ms = 1000;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_post(&k, COORD_COLLECTOR, "b");
    assert_int_equal(comm_coordinator_drain(k.c, 0, &err), COORD_ERR_TIMEOUT);
    assert_string_equal(err.text, "drain: 2 tasks are left after 0 ms");
    expect_no_more_tasks(&k);
    assert_int_equal(comm_coordinator_drain(k.c, 8000, &err), COORD_ERR_TIMEOUT);
    assert_string_equal(err.text, "drain: 1 tasks are left after 8000 ms");
    assert_int_equal(comm_coordinator_drain(k.c, LONG_MS, &err), COORD_OK);
    assert_int_equal(comm_coordinator_drain(k.c, 0, &err), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", NULL), 2);
    assert_int_equal(comm_coordinator_drain(k.c, -1, &err), COORD_ERR_ARG);
    cluster_done(&k);
}

static void a_task_is_still_moved_to_another_worker(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 3, 2, 0);
    cluster_start(&k, "\"heartbeat_tolerance_s\": 5, \"request_retries\": 0,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "send_data", "t", 1, LONG_MS));
    assert_int_equal(comm_coordinator_drain(k.c, 0, NULL), COORD_ERR_TIMEOUT);
    cluster_crash(&k, cluster_last(&k, "start", "t")->detail);
    assert_int_equal(comm_coordinator_drain(k.c, LONG_MS, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "restart", "t"), 1);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    cluster_done(&k);
}

static void a_coordinator_that_has_not_started_does_not_drain(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 4, 1, 0);
    cluster_create(&k, "");
    assert_int_equal(comm_coordinator_drain(k.c, 0, &err), COORD_ERR_STATE);
    assert_int_equal(comm_coordinator_drain(NULL, 0, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(comm_coordinator_drain(k.c, LONG_MS, &err), COORD_OK);
    cluster_done(&k);
}

/* ---- in callbacks ---- */

typedef struct inside {
    coord_status at_once;
    coord_status waits;
    coord_status post;
} inside;

static void drain_inside(cluster *k, const char *name, const char *task_id, void *user)
{
    inside *in = user;
    if (strcmp(name, "judge") == 0 && strcmp(task_id, "a") == 0) {
        in->waits = comm_coordinator_drain(k->c, 1000, NULL);
        in->at_once = comm_coordinator_drain(k->c, 0, NULL);
        in->post = comm_coordinator_post_collector_task(k->c, cluster_task("c"), NULL);
    }
}

static void a_callback_starts_a_drain_without_waiting(void **state)
{
    static cluster k;
    static const char *const HOW[] = {"", "\"executor\": {\"pool\": 1},",
                                      "\"executor\": \"inline\","};
    (void)state;
    for (int i = 0; i < 3; i++) {
        inside in = {COORD_AGAIN, COORD_AGAIN, COORD_AGAIN};
        cluster_init(&k, 5, 1, 0);
        cluster_start(&k, HOW[i]);
        k.on_event = drain_inside;
        k.on_event_user = &in;
        cluster_post(&k, COORD_COLLECTOR, "a");
        cluster_post(&k, COORD_COLLECTOR, "b");
        assert_int_equal(comm_coordinator_wait(k.c, LONG_MS, NULL), COORD_OK);
        assert_int_equal(in.waits, COORD_ERR_STATE);
        assert_int_equal(in.at_once, COORD_ERR_TIMEOUT);
        assert_int_equal(in.post, COORD_ERR_CLOSED);
        assert_int_equal(cluster_count(&k, "finish", NULL), 2);
        assert_int_equal(comm_coordinator_drain(k.c, 0, NULL), COORD_OK);
        cluster_done(&k);
    }
}

/* ---- with other calls ---- */

typedef struct waiter {
    cluster *k;
    coord_status status;
} waiter;

static void wait_in_thread(void *user)
{
    waiter *w = user;
    w->status = comm_coordinator_drain(w->k->c, LONG_MS, NULL);
}

static void close_ends_a_drain_that_waits(void **state)
{
    static cluster k;
    waiter w = {&k, COORD_AGAIN};
    coord_sim_thread *thread;
    (void)state;
    cluster_init(&k, 6, 1, 0);
    k.workers[0].work_ms = 5000;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(coord_sim_thread_start(k.sim, wait_in_thread, &w, &thread, NULL),
                     COORD_OK);
    cluster_run(&k, 1000);
    assert_int_equal(w.status, COORD_AGAIN);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_int_equal(coord_sim_thread_join(thread, 1000, NULL), COORD_OK);
    assert_int_equal(w.status, COORD_OK); /* none is left, and none will come */
    assert_string_equal(cluster_story(&k, "t"), "fail");
    cluster_done(&k);
}

static void cancel_works_while_it_drains(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 7, 1, 0);
    k.workers[0].work_ms = 1000;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "runs");
    cluster_post(&k, COORD_COLLECTOR, "waits");
    assert_int_equal(comm_coordinator_drain(k.c, 0, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(comm_coordinator_cancel_task(k.c, "runs", NULL), COORD_OK);
    assert_int_equal(comm_coordinator_cancel_task(k.c, "waits", NULL), COORD_OK);
    assert_int_equal(comm_coordinator_drain(k.c, 1000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "fail", NULL), 2);
    cluster_done(&k);
}

/* ---- how long a close takes ---- */

/* Idle workers are asked all at once; silent ones are waited for as long as there is
 * time, and no longer. */
static void close_takes_as_long_as_its_workers_but_no_longer(void **state)
{
    static cluster k;
    (void)state;
    for (int silent = 0; silent <= 1; silent++) {
        cluster_init(&k, 3, 6, 2);
        cluster_start(&k, "\"close_timeout_s\": 10, \"request_timeout_s\": 60,");
        for (int i = 0; silent && i < k.worker_count; i++) {
            coord_sim_pause(k.sim, k.workers[i].loop, true);
        }
        int64_t began = coord_sim_now_ms(k.sim);
        assert_int_equal(cluster_close(&k, NULL), COORD_OK);
        int64_t took = coord_sim_now_ms(k.sim) - began;
        assert_in_range(took, silent ? 9000 : 0, silent ? 10000 : 100);
        cluster_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queued_and_running_tasks_go_to_their_ends),
        cmocka_unit_test(
            a_drain_that_takes_too_long_says_what_is_left_and_can_be_waited_for_again),
        cmocka_unit_test(a_task_is_still_moved_to_another_worker),
        cmocka_unit_test(a_coordinator_that_has_not_started_does_not_drain),
        cmocka_unit_test(a_callback_starts_a_drain_without_waiting),
        cmocka_unit_test(close_ends_a_drain_that_waits),
        cmocka_unit_test(cancel_works_while_it_drains),
        cmocka_unit_test(close_takes_as_long_as_its_workers_but_no_longer),
    };
    return cmocka_run_group_tests_name("drain", tests, NULL, NULL);
}
