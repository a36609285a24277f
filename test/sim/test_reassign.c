/* A task whose worker is lost, or of no use, starts anew on another one. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t LONG_MS = 600000;
static const char QUICK[] = "\"heartbeat_tolerance_s\": 5, \"request_retries\": 0,";

/* Runs until task "t" is in that state, and tells who has it. */
static const char *worker_of_t(cluster *k, const char *state)
{
    assert_true(cluster_await_task(k, "t", state, LONG_MS));
    return strcmp(cluster_worker_state(k, "c0"), "working") == 0 ? "c0" : "c1";
}

static const char *other(const char *id)
{
    return strcmp(id, "c0") == 0 ? "c1" : "c0";
}

static void a_task_of_a_dead_worker_starts_anew_on_another(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 21, 2, 0);
    cluster_start(&k, QUICK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "send_data", "t", 2, LONG_MS));
    const char *dead = worker_of_t(&k, "asking");
    cluster_crash(&k, dead);
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));

    assert_non_null(strstr(cluster_story(&k, "t"),
                           "restart start send_data send_data send_data judge finish"));
    assert_int_equal(cluster_count(&k, "restart", "t"), 1);
    const cluster_event *restart = cluster_last(&k, "restart", "t");
    assert_memory_equal(restart->detail, "2 7 ", 4); /* attempt 2, for it was LOST */
    const cluster_worker *second = cluster_find(&k, other(dead));
    assert_non_null(strstr(second->info, "\"attempt\":2"));
    assert_int_equal(second->starts, 1);
    assert_int_equal(cluster_count(&k, "fail", "t"), 0);
    cluster_done(&k);
}

static void the_first_attempt_is_not_marked_on_the_wire(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 22, 1, 0);
    cluster_start(&k, QUICK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    assert_null(strstr(cluster_find(&k, "c0")->info, "attempt"));
    cluster_done(&k);
}

static void a_learner_task_is_moved_like_a_collectors(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 23, 1, 2);
    cluster_start(&k, QUICK);
    cluster_post(&k, COORD_COLLECTOR, "c");
    assert_true(cluster_await(&k, "finish", "c", 1, LONG_MS));
    k.hold_data = true;
    cluster_post(&k, COORD_LEARNER, "t");
    assert_true(cluster_await_task(&k, "t", "waiting", LONG_MS));
    bool first = strcmp(cluster_worker_state(&k, "l0"), "working") == 0;
    cluster_crash(&k, first ? "l0" : "l1");
    assert_true(cluster_await(&k, "restart", "t", 1, LONG_MS));
    k.hold_data = false;
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    assert_int_equal(cluster_count(&k, "judge", "t"), 3);
    cluster_done(&k);
}

static void a_task_fails_at_once_when_nobody_else_could_take_it(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 24, 1, 0);
    cluster_start(&k, QUICK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "t", "asking", LONG_MS));
    int64_t began = coord_sim_now_ms(k.sim);
    cluster_crash(&k, "c0");
    assert_true(cluster_await(&k, "fail", "t", 1, LONG_MS));
    assert_in_range(coord_sim_now_ms(k.sim) - began, 0, 5000 + 1000 + 2000);
    assert_int_equal(cluster_count(&k, "restart", "t"), 0);
    cluster_done(&k);
}

static void attempts_are_limited_and_the_last_failure_tells_of_all(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 25, 2, 0);
    cluster_start(&k, "\"heartbeat_tolerance_s\": 5, \"request_retries\": 0, "
                      "\"max_reassign\": 1,");
    cluster_find(&k, "c0")->samples = 1000;
    cluster_find(&k, "c1")->samples = 1000;
    cluster_post(&k, COORD_COLLECTOR, "t");
    const char *dead = worker_of_t(&k, "asking");
    cluster_crash(&k, dead);
    assert_true(cluster_await(&k, "start", "t", 2, LONG_MS));
    cluster_revive(&k, dead);
    assert_true(cluster_await_worker(&k, dead, "free", LONG_MS));
    cluster_crash(&k, other(dead));
    assert_true(cluster_await(&k, "fail", "t", 1, LONG_MS));
    char before[32];
    (void)snprintf(before, sizeof before, "attempt 1 at '%s'", dead);
    assert_non_null(strstr(cluster_last(&k, "fail", "t")->detail, before));
    assert_int_equal(cluster_count(&k, "restart", "t"), 1);
    cluster_done(&k);
}

static void none_are_made_when_none_are_allowed(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 26, 2, 0);
    cluster_start(&k, "\"heartbeat_tolerance_s\": 5, \"request_retries\": 0, "
                      "\"max_reassign\": 0,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    cluster_crash(&k, worker_of_t(&k, "asking"));
    assert_true(cluster_await(&k, "fail", "t", 1, LONG_MS));
    assert_int_equal(cluster_count(&k, "restart", "t"), 0);
    cluster_done(&k);
}

static void a_moved_task_does_not_wait_for_workers_that_are_all_gone(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 27, 2, 0);
    cluster_start(&k, QUICK);
    cluster_find(&k, "c0")->samples = 1000;
    cluster_find(&k, "c1")->samples = 1000;
    cluster_post(&k, COORD_COLLECTOR, "u");
    assert_true(cluster_await(&k, "start", "u", 1, LONG_MS));
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "start", "t", 1, LONG_MS));
    const char *of_u = cluster_last(&k, "start", "u")->detail;
    const char *of_t = cluster_last(&k, "start", "t")->detail;
    cluster_crash(&k, of_t);
    assert_true(cluster_await(&k, "restart", "t", 1, LONG_MS));
    assert_true(cluster_await_task(&k, "t", "queued", LONG_MS)); /* behind "u" */
    cluster_crash(&k, of_u);
    assert_true(cluster_await(&k, "fail", "t", 1, LONG_MS));
    assert_true(cluster_await(&k, "fail", "u", 1, LONG_MS));
    cluster_done(&k);
}

static void a_worker_that_reports_nothing_loses_its_task(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 28, 2, 0);
    cluster_start(&k, "\"collector_task_timeout_s\": 2, \"request_retries\": 0,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    const char *silent = worker_of_t(&k, "asking");
    coord_sim_pause(k.sim, cluster_find(&k, silent)->loop, true);
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    assert_memory_equal(cluster_last(&k, "restart", "t")->detail, "2 6 ",
                        4); /* TIMEOUT */
    int samples = cluster_count(&k, "send_data", "t");

    /* What it reports when it wakes up is of an attempt that is over. */
    coord_sim_pause(k.sim, cluster_find(&k, silent)->loop, false);
    assert_true(cluster_await_worker(&k, silent, "free", LONG_MS));
    assert_int_equal(cluster_count(&k, "send_data", "t"), samples);
    assert_int_equal(cluster_ends(&k, "t"), 1);
    cluster_done(&k);
}

static void a_worker_that_goes_on_failing_loses_its_task(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 29, 2, 0);
    cluster_start(&k, "\"request_retries\": 1,");
    cluster_find(&k, "c0")->fail_asks = 100;
    cluster_find(&k, "c1")->samples = 5;
    for (int i = 0; i < 4; i++) { /* one of them gets to c0 */
        char id[8];
        (void)snprintf(id, sizeof id, "t%d", i);
        cluster_post(&k, COORD_COLLECTOR, id);
    }
    assert_true(cluster_await(&k, "finish", NULL, 4, LONG_MS));
    assert_true(cluster_count(&k, "restart", NULL) >= 1);
    assert_int_equal(cluster_count(&k, "fail", NULL), 0);
    cluster_done(&k);
}

static void a_worker_lost_before_it_accepts_leaves_no_trace(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 30, 2, 0);
    cluster_start(&k, QUICK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "t", "starting", LONG_MS));
    const char *dead =
        strcmp(cluster_worker_state(&k, "c0"), "working") == 0 ? "c0" : "c1";
    cluster_crash(&k, dead);
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    assert_int_equal(cluster_count(&k, "start", "t"), 1);
    assert_string_equal(cluster_last(&k, "start", "t")->detail, other(dead));
    cluster_done(&k);
}

static void a_task_can_be_canceled_between_two_attempts(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 31, 2, 0);
    cluster_start(&k, QUICK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    cluster_crash(&k, worker_of_t(&k, "asking"));
    assert_true(cluster_await_task(&k, "t", "restarting", LONG_MS));
    assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
    assert_true(cluster_await(&k, "fail", "t", 1, LONG_MS));
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_ends(&k, "t"), 1);
    cluster_done(&k);
}

/* ... and by close, which does not wait for a worker that nobody gets any more. */
static void close_ends_a_task_between_two_attempts(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 36, 2, 0);
    cluster_start(&k, QUICK);
    k.callback_ms = 2000;
    cluster_post(&k, COORD_COLLECTOR, "t");
    cluster_crash(&k, worker_of_t(&k, "asking"));
    assert_true(cluster_await_task(&k, "t", "restarting", LONG_MS));
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 0, 10000);
    assert_int_equal(cluster_count(&k, "fail", "t"), 1);
    cluster_done(&k);
}

/* ---- another text for the new attempt ---- */

/* "t" runs, loses its worker, and task_restart puts this out. */
static const cluster_worker *restart_with(cluster *k, uint64_t seed, const char *text)
{
    cluster_init(k, seed, 3, 0);
    k->restart_text = text;
    cluster_start(k, QUICK);
    cluster_post(k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(k, "t", "asking", LONG_MS));
    assert_true(cluster_await(k, "start", "t", 1, LONG_MS));
    cluster_crash(k, cluster_last(k, "start", "t")->detail);
    assert_true(cluster_await(k, "restart", "t", 1, LONG_MS));
    assert_true(coord_sim_run_for(k->sim, 10000, NULL) == COORD_OK);
    return cluster_find(k, cluster_last(k, "start", "t")->detail);
}

static void a_restart_may_replace_the_text_of_the_task(void **state)
{
    static cluster k;
    (void)state;
    const cluster_worker *second =
        restart_with(&k, 32,
                     "{\"resume\": 1e999, \"task_id\": \"\\u0074\", \"attempt\": 9, "
                     "\"buffer_id\": \"other\"}");
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    assert_int_equal(second->starts, 1);
    assert_non_null(strstr(second->info, "\"resume\": 1e999"));
    assert_non_null(strstr(second->info, "\"attempt\":2"));
    assert_null(strstr(second->info, "\"attempt\": 9"));
    assert_memory_equal(cluster_last(&k, "send_data", "t")->detail, "other ", 6);
    cluster_done(&k);
}

static void the_new_text_stays_for_the_attempts_after_it(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 33, 3, 0);
    for (int i = 0; i < 3; i++) {
        k.workers[i].samples = 1000;
    }
    cluster_start(&k, QUICK);
    k.restart_text = "{\"task_id\": \"t\", \"resume\": \"step 7\"}";
    cluster_post(&k, COORD_COLLECTOR, "t");
    for (int attempt = 1; attempt <= 2; attempt++) {
        assert_true(cluster_await(&k, "start", "t", attempt, LONG_MS));
        cluster_crash(&k, cluster_last(&k, "start", "t")->detail);
        assert_true(cluster_await(&k, "restart", "t", attempt, LONG_MS));
        cluster_run(&k, attempt == 1 ? 1 : 0);
        k.restart_text = attempt == 1 ? NULL : k.restart_text;
    }
    assert_true(cluster_await(&k, "start", "t", 3, LONG_MS));
    const char *last = cluster_last(&k, "start", "t")->detail;
    assert_non_null(strstr(cluster_find(&k, last)->info, "\"resume\": \"step 7\""));
    cluster_done(&k);
}

static void a_text_of_another_task_fails_the_task_and_says_so(void **state)
{
    static cluster k;
    static const struct {
        const char *text;
        const char *said;
    } WRONG[] = {
        {"[1, 2]", "must put out a JSON object"},
        {"{\"buffer_id\": \"b\"}", "put out another task_id"},
        {"{\"task_id\": \"u\"}", "got \"u\""},
        {"{\"task_id\": 7}", "got 7"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        char status[16];
        (void)restart_with(&k, 34, WRONG[i].text);
        assert_int_equal(cluster_count(&k, "fail", "t"), 1);
        assert_int_equal(cluster_ends(&k, "t"), 1);
        const char *told = cluster_last(&k, "fail", "t")->detail;
        (void)snprintf(status, sizeof status, "%d ", (int)COORD_ERR_CALLBACK);
        assert_memory_equal(told, status, strlen(status));
        assert_non_null(strstr(told, WRONG[i].said));
        assert_int_equal(cluster_count(&k, "start", "t"), 1);
        cluster_check(&k);
        cluster_done(&k);
    }
}

static void what_is_no_json_is_refused_and_the_text_stays(void **state)
{
    static cluster k;
    (void)state;
    const cluster_worker *second = restart_with(&k, 35, "{\"task_id\": \"t\"");
    assert_null(k.restart_text);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    assert_non_null(strstr(second->info, "\"buffer_id\": \"b\""));
    cluster_done(&k);
}

/* Which has come back in time to lose it once more. */
static void lose_at(cluster *k, const char *id, int starts)
{
    assert_true(cluster_await(k, "start", "t", starts, LONG_MS));
    assert_string_equal(cluster_last(k, "start", "t")->detail, id);
    cluster_crash(k, id);
    assert_true(cluster_await(k, "restart", "t", starts, LONG_MS));
    cluster_revive(k, id);
}

/* c0 is at something long, and c1 loses "t" twice. */
static void shun_c1(cluster *k, uint64_t seed)
{
    cluster_init(k, seed, 2, 0);
    cluster_crash(k, "c1");
    cluster_start(k, "\"heartbeat_tolerance_s\": 5, \"request_retries\": 0, "
                     "\"max_retry_second\": 5,");
    cluster_find(k, "c0")->work_ms = 9000;
    cluster_post(k, COORD_COLLECTOR, "long");
    assert_true(cluster_await(k, "start", "long", 1, LONG_MS));
    cluster_revive(k, "c1");
    cluster_find(k, "c1")->work_ms = 200;
    cluster_post(k, COORD_COLLECTOR, "t");
    lose_at(k, "c1", 1);
    lose_at(k, "c1", 2);
    assert_true(cluster_await_worker(k, "c1", "free", 5000));
}

static void who_lost_a_task_twice_is_not_given_it_while_others_are_there(void **state)
{
    static cluster k;
    char *why = NULL;
    (void)state;
    shun_c1(&k, 40);
    cluster_run(&k, 3000);
    assert_string_equal(cluster_task_state(&k, "t"), "queued");
    assert_int_equal(comm_coordinator_why(k.c, "t", &why, NULL), COORD_OK);
    assert_non_null(strstr(why, "\"no_free_worker\", \"seen\": \"of 2 collectors only "
                                "'c1' is free, which has lost this task 2 times in a "
                                "row\""));
    coord_free(why);
    cluster_post(&k, COORD_COLLECTOR, "u"); /* behind it, and none the worse for that */
    assert_true(cluster_await(&k, "finish", "u", 1, 5000));
    assert_string_equal(cluster_last(&k, "start", "u")->detail, "c1");
    assert_true(cluster_await(&k, "finish", "long", 1, LONG_MS));
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    assert_string_equal(cluster_last(&k, "start", "t")->detail, "c0");
    cluster_check(&k);
    cluster_done(&k);
}

static void the_last_that_is_left_gets_what_it_has_lost(void **state)
{
    static cluster k;
    (void)state;
    for (int removed = 0; removed <= 1; removed++) {
        shun_c1(&k, 41);
        if (removed) { /* and yet ends its task */
            assert_int_equal(comm_coordinator_remove_worker(k.c, COORD_COLLECTOR, "c0",
                                                            COMM_COORDINATOR_DRAIN, NULL),
                             COORD_OK);
        } else {
            cluster_crash(&k, "c0");
        }
        assert_true(cluster_await(&k, "start", "t", 3, 15000));
        assert_string_equal(cluster_last(&k, "start", "t")->detail, "c1");
        assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
        assert_int_equal(cluster_count(&k, "fail", NULL), 0);
        cluster_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_of_a_dead_worker_starts_anew_on_another),
        cmocka_unit_test(the_first_attempt_is_not_marked_on_the_wire),
        cmocka_unit_test(a_learner_task_is_moved_like_a_collectors),
        cmocka_unit_test(a_task_fails_at_once_when_nobody_else_could_take_it),
        cmocka_unit_test(attempts_are_limited_and_the_last_failure_tells_of_all),
        cmocka_unit_test(none_are_made_when_none_are_allowed),
        cmocka_unit_test(a_moved_task_does_not_wait_for_workers_that_are_all_gone),
        cmocka_unit_test(a_worker_that_reports_nothing_loses_its_task),
        cmocka_unit_test(a_worker_that_goes_on_failing_loses_its_task),
        cmocka_unit_test(a_worker_lost_before_it_accepts_leaves_no_trace),
        cmocka_unit_test(a_task_can_be_canceled_between_two_attempts),
        cmocka_unit_test(close_ends_a_task_between_two_attempts),
        cmocka_unit_test(a_restart_may_replace_the_text_of_the_task),
        cmocka_unit_test(the_new_text_stays_for_the_attempts_after_it),
        cmocka_unit_test(a_text_of_another_task_fails_the_task_and_says_so),
        cmocka_unit_test(what_is_no_json_is_refused_and_the_text_stays),
        cmocka_unit_test(who_lost_a_task_twice_is_not_given_it_while_others_are_there),
        cmocka_unit_test(the_last_that_is_left_gets_what_it_has_lost),
    };
    return cmocka_run_group_tests_name("reassign", tests, NULL, NULL);
}
