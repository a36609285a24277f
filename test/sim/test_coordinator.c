/* The coordinator with a whole cluster around it, in virtual time. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_collector_task_runs_from_start_to_finish(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    cluster_start(&k, "");

    char worker[COORD_ID_SIZE] = "";
    coord_text task = coord_text_of("{\"task_id\": \"t\", \"buffer_id\": \"b\"}");
    assert_int_equal(comm_coordinator_send_collector_task(k.c, task, worker, NULL),
                     COORD_OK);
    assert_string_equal(worker, "c0");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_string_equal(cluster_story(&k, "t"),
                        "start send_data send_data send_data judge finish");
    assert_string_equal(
        cluster_last(&k, "send_data", "t")->detail,
        "b c0-3 {\"data_id\": \"c0-3\", \"reward\": Infinity,\"buffer_id\":\"b\","
        "\"task_id\":\"t\"}");
    assert_string_equal(cluster_last(&k, "finish", "t")->detail,
                        "{\"count\": 4,\"task_id\":\"t\"}");
    cluster_done(&k);
}

static void a_learner_gets_its_last_info_before_it_finishes(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 2, 1, 1);
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "l");
    cluster_post(&k, COORD_COLLECTOR, "c");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "judge", "l"), 3);
    assert_int_equal(cluster_count(&k, "send_info", "l"), 3);
    assert_int_equal(cluster_count(&k, "finish", NULL), 2);
    const char *story = cluster_story(&k, "l");
    assert_non_null(strstr(story, "judge send_info finish"));
    cluster_done(&k);
}

/* ---- the queue ---- */

static void queued_tasks_get_workers_oldest_first(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 3, 1, 0);
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_post(&k, COORD_COLLECTOR, "b");
    cluster_post(&k, COORD_COLLECTOR, "c");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    char order[64] = "";
    for (int i = 0; i < k.event_count; i++) {
        if (strcmp(k.events[i].name, "start") == 0) {
            (void)strcat(order, k.events[i].task);
        }
    }
    assert_string_equal(order, "abc");
    assert_int_equal(cluster_count(&k, "finish", NULL), 3);
    cluster_done(&k);
}

static void a_task_waits_no_longer_than_the_queue_timeout(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 4, 1, 0);
    k.workers[0].work_ms = 10000;
    cluster_start(&k, "\"queue_timeout_s\": 5,");
    cluster_post(&k, COORD_COLLECTOR, "long");
    cluster_post(&k, COORD_COLLECTOR, "posted");
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(
        comm_coordinator_send_collector_task(k.c, cluster_task("sent"), NULL, &err),
        COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_now_ms(k.sim) - began, 5000);
    assert_non_null(strstr(err.text, "queue_timeout_s (5)"));
    assert_true(cluster_await(&k, "fail", "posted", 1, 100));
    assert_int_equal(cluster_count(&k, NULL, "sent"), 0);
    assert_int_equal(comm_coordinator_wait(k.c, 600000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "long"), 1);
    cluster_done(&k);
}

static void a_full_queue_is_busy(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 5, 1, 0);
    cluster_start(&k, "\"max_queued_tasks\": 2,");
    cluster_post(&k, COORD_COLLECTOR, "runs");
    cluster_post(&k, COORD_COLLECTOR, "waits 1");
    cluster_post(&k, COORD_COLLECTOR, "waits 2");
    assert_int_equal(comm_coordinator_post_collector_task(k.c, cluster_task("x"), &err),
                     COORD_ERR_BUSY);
    assert_non_null(strstr(err.text, "max_queued_tasks is 2"));
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    cluster_post(&k, COORD_COLLECTOR, "x");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", NULL), 4);
    cluster_done(&k);
}

static void send_next(cluster *k, const char *name, const char *task_id, void *user)
{
    int *left = user;
    char id[16];
    if (strcmp(name, "finish") == 0 && *left > 0) {
        (void)snprintf(id, sizeof id, "%s+", task_id);
        --*left;
        cluster_post(k, COORD_COLLECTOR, id);
    }
}

static void the_worker_is_back_before_its_task_finishes(void **state)
{
    static cluster k;
    int left = 3;
    (void)state;
    cluster_init(&k, 6, 1, 0);
    cluster_start(&k, "\"max_queued_tasks\": 1,");
    k.on_event = send_next;
    k.on_event_user = &left;
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", NULL), 4);
    const cluster_event *finish = cluster_last(&k, "finish", "t++");
    const cluster_event *start = cluster_last(&k, "start", "t+++");
    assert_in_range(start->at_ms - finish->at_ms, 0, 25); /* two trips */
    cluster_done(&k);
}

/* ---- start and membership ---- */

static void a_start_waits_for_all_configured_workers(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 7, 2, 1);
    cluster_crash(&k, "c1");
    cluster_create(&k, "\"max_retry_second\": 20,");
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
    assert_int_equal(coord_sim_now_ms(k.sim) - began, 20000);
    assert_non_null(strstr(err.text, "collector 'c1' at 10.0.1.2:22270"));
    cluster_revive(&k, "c1");
    assert_true(cluster_await_worker(&k, "c1", "free", 31000));
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_post(&k, COORD_COLLECTOR, "b");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(k.workers[1].starts, 1);
    cluster_done(&k);
}

static void min_workers_are_enough_to_start(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 8, 3, 0);
    cluster_crash(&k, "c1");
    cluster_create(&k, "\"min_collectors\": 2,");
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 0, 1000);
    assert_non_null(strstr(err.text, "'c1'"));
    cluster_done(&k);
}

static void a_role_without_workers_fails_the_start_which_may_be_tried_again(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 9, 1, 1);
    cluster_crash(&k, "l0");
    cluster_create(&k, "\"max_retry_second\": 5,");
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "learner 'l0' at 10.0.2.1:22270"));
    assert_non_null(strstr(err.text, "refused"));
    assert_int_equal(comm_coordinator_port(k.c), 0);
    assert_int_equal(comm_coordinator_post_collector_task(k.c, cluster_task("t"), &err),
                     COORD_ERR_STATE);
    cluster_revive(&k, "l0");
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", NULL), 1);
    cluster_done(&k);
}

static void a_worker_without_resources_is_of_use(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 10, 1, 0);
    k.workers[0].no_resource = true;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    cluster_done(&k);
}

static void a_lost_worker_is_used_again_when_it_is_back(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 11, 1, 0);
    cluster_start(&k, "");
    for (int i = 0; i < 3; i++) {
        cluster_crash(&k, "c0");
        assert_true(cluster_await_worker(&k, "c0", "away", 20000));
        cluster_check(&k);
        cluster_run(&k, 60000);
        cluster_revive(&k, "c0");
        assert_true(cluster_await_worker(&k, "c0", "free", 2000));
    }
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    cluster_done(&k);
}

/* As a Python worker is: one that was only silent refuses until it is told to let go. */
static void a_foreign_worker_that_was_silent_is_taken_back(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 12, 1, 1);
    cluster_set_foreign(&k, "c0");
    cluster_set_foreign(&k, "l0");
    cluster_start(&k, "");
    for (int i = 0; i < 2; i++) {
        coord_sim_pause(k.sim, k.workers[i].loop, true);
    }
    cluster_run(&k, 100000);
    assert_string_not_equal(cluster_worker_state(&k, "c0"), "free");
    for (int i = 0; i < 2; i++) {
        coord_sim_pause(k.sim, k.workers[i].loop, false);
    }
    assert_true(cluster_await_worker(&k, "c0", "free", 60000));
    assert_true(cluster_await_worker(&k, "l0", "free", 60000));
    cluster_post(&k, COORD_COLLECTOR, "c");
    cluster_post(&k, COORD_LEARNER, "l");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", NULL), 2);
    cluster_done(&k);
}

/* ---- workers that fail ---- */

static void a_refused_start_is_an_error_without_callbacks(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 13, 1, 0);
    k.workers[0].fail_starts = 2;
    cluster_start(&k, "");
    char worker[COORD_ID_SIZE] = "untouched";
    assert_int_equal(
        comm_coordinator_send_collector_task(k.c, cluster_task("t"), worker, &err),
        COORD_ERR_REFUSED);
    assert_non_null(strstr(err.text, "'c0' did not start it"));
    assert_non_null(strstr(err.cause, "no such policy"));
    assert_string_equal(worker, "untouched");
    cluster_run(&k, 1000);
    assert_int_equal(k.event_count, 0);
    cluster_post(&k, COORD_COLLECTOR, "posted"); /* nobody waits: it is told so */
    assert_true(cluster_await(&k, "fail", "posted", 1, 1000));
    assert_string_equal(cluster_story(&k, "posted"), "fail");
    assert_int_equal(
        comm_coordinator_send_collector_task(k.c, cluster_task("t"), worker, &err),
        COORD_OK);
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    cluster_done(&k);
}

static void requests_that_fail_are_repeated_with_growing_pauses(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 14, 1, 0);
    k.workers[0].fail_asks = 3;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "t");
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 1000 + 2000 + 3000, 6500);
    assert_string_equal(cluster_story(&k, "t"),
                        "start send_data send_data send_data judge finish");
    cluster_done(&k);
}

static void requests_that_go_on_failing_fail_the_task(void **state)
{
    static cluster k;
    (void)state;
    for (int learner = 0; learner <= 1; learner++) {
        cluster_init(&k, 15, 1, 1);
        k.workers[0].fail_asks = 100;
        k.workers[1].fail_learns = 100;
        k.data_in_buffer = 1;
        cluster_start(&k, "\"request_retries\": 2,");
        cluster_post(&k, learner ? COORD_LEARNER : COORD_COLLECTOR, "t");
        assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
        assert_int_equal(cluster_count(&k, "fail", "t"), 1);
        assert_int_equal(100 - k.workers[0].fail_asks + 100 - k.workers[1].fail_learns,
                         3);
        assert_true(cluster_await_worker(&k, learner ? "l0" : "c0", "free", 1000));
        cluster_check(&k);
        cluster_done(&k);
    }
}

static void a_worker_that_knows_no_close_finishes_all_the_same(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 16, 1, 0);
    k.workers[0].fail_closes = 100;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_string_equal(cluster_last(&k, "finish", "t")->detail, "{}");
    assert_int_equal(k.workers[0].fail_closes, 99);
    assert_true(cluster_await_worker(&k, "c0", "free", 1000));
    cluster_done(&k);
}

static void silence_between_reports_is_bounded_if_configured(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 17, 1, 0);
    k.workers[0].work_ms = 8000;
    cluster_start(&k, "\"collector_task_timeout_s\": 5,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "fail", "t", 1, 20000));
    assert_memory_equal(cluster_last(&k, "fail", "t")->detail, "6 ", 2);
    k.workers[0].work_ms = 0;
    assert_true(cluster_await_worker(&k, "c0", "free", 60000));
    cluster_check(&k);
    cluster_done(&k);
}

/* ---- learners and data ---- */

static void a_host_without_data_is_asked_less_and_less_often(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 18, 0, 1);
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "l");
    assert_true(cluster_await(&k, "get_data", "l", 12, 60000));
    int64_t last = -1;
    int64_t pause = 10;
    for (int i = 0; i < k.event_count; i++) {
        if (strcmp(k.events[i].name, "get_data") == 0) {
            if (last >= 0) {
                assert_int_equal(k.events[i].at_ms - last, pause);
                pause = pause * 2 < 1000 ? pause * 2 : 1000;
            }
            last = k.events[i].at_ms;
        }
    }
    cluster_done(&k);
}

static void data_that_is_ready_is_asked_for_at_once(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 19, 0, 1);
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "l");
    assert_true(cluster_await(&k, "get_data", "l", 10, 60000));
    assert_true(cluster_await_task(&k, "l", "waiting", 100));
    cluster_run(&k, 100);
    assert_int_equal(cluster_count(&k, "get_data", "l"), 10);
    assert_int_equal(comm_coordinator_data_ready(k.c, "other", NULL), COORD_OK);
    assert_int_equal(comm_coordinator_data_ready(k.c, NULL, NULL), COORD_OK);
    cluster_run(&k, 100);
    assert_int_equal(cluster_count(&k, "get_data", "l"), 10);
    k.data_in_buffer = 1;
    assert_int_equal(comm_coordinator_data_ready(k.c, "b", NULL), COORD_OK);
    assert_true(cluster_await(&k, "get_data", "l", 11, 0));
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "l"), 1);
    cluster_done(&k);
}

/* The buffer fills while the host looks: it has just seen that it is empty. */
static void fill_meanwhile(cluster *k, const char *name, const char *task_id, void *user)
{
    int *calls = user;
    (void)task_id;
    if (strcmp(name, "get_data") == 0 && ++*calls == 8) {
        k->hold_data = true;
        assert_int_equal(comm_coordinator_data_ready(k->c, "b", NULL), COORD_OK);
    } else {
        k->hold_data = false;
        k->data_in_buffer = *calls > 8 ? 1 : 0;
    }
}

static void data_that_gets_ready_while_the_host_looks_is_not_missed(void **state)
{
    static cluster k;
    int calls = 0;
    (void)state;
    cluster_init(&k, 20, 0, 1);
    cluster_start(&k, "");
    k.on_event = fill_meanwhile;
    k.on_event_user = &calls;
    cluster_post(&k, COORD_LEARNER, "l");
    assert_true(cluster_await(&k, "get_data", "l", 8, 60000));
    int64_t at = coord_sim_now_ms(k.sim);
    assert_true(cluster_await(&k, "get_data", "l", 9, 60000));
    assert_int_equal(coord_sim_now_ms(k.sim), at);
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "l"), 1);
    cluster_done(&k);
}

static void a_host_that_fails_to_get_data_fails_its_task(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 21, 0, 1);
    k.get_data_fails = true;
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "l");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_string_equal(cluster_story(&k, "l"), "start get_data fail");
    assert_memory_equal(cluster_last(&k, "fail", "l")->detail, "23 ", 3);
    assert_true(cluster_await_worker(&k, "l0", "free", 1000));
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collector_task_runs_from_start_to_finish),
        cmocka_unit_test(a_learner_gets_its_last_info_before_it_finishes),
        cmocka_unit_test(queued_tasks_get_workers_oldest_first),
        cmocka_unit_test(a_task_waits_no_longer_than_the_queue_timeout),
        cmocka_unit_test(a_full_queue_is_busy),
        cmocka_unit_test(the_worker_is_back_before_its_task_finishes),
        cmocka_unit_test(a_start_waits_for_all_configured_workers),
        cmocka_unit_test(min_workers_are_enough_to_start),
        cmocka_unit_test(a_role_without_workers_fails_the_start_which_may_be_tried_again),
        cmocka_unit_test(a_worker_without_resources_is_of_use),
        cmocka_unit_test(a_lost_worker_is_used_again_when_it_is_back),
        cmocka_unit_test(a_foreign_worker_that_was_silent_is_taken_back),
        cmocka_unit_test(a_refused_start_is_an_error_without_callbacks),
        cmocka_unit_test(requests_that_fail_are_repeated_with_growing_pauses),
        cmocka_unit_test(requests_that_go_on_failing_fail_the_task),
        cmocka_unit_test(a_worker_that_knows_no_close_finishes_all_the_same),
        cmocka_unit_test(silence_between_reports_is_bounded_if_configured),
        cmocka_unit_test(a_host_without_data_is_asked_less_and_less_often),
        cmocka_unit_test(data_that_is_ready_is_asked_for_at_once),
        cmocka_unit_test(data_that_gets_ready_while_the_host_looks_is_not_missed),
        cmocka_unit_test(a_host_that_fails_to_get_data_fails_its_task),
    };
    return cmocka_run_group_tests_name("coordinator", tests, NULL, NULL);
}
