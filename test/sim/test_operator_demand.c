/* The pods that a coordinator asks an operator server for when it starts, and what start
 * tells of those that do not come. */
#include "support/pods.h"

#include <stdio.h>

#define ASK(collectors, learners)                                                        \
    "\"init_replicas_request\": {\"collectors\": {\"replicas\": " #collectors            \
    ", \"cpus\": \"500m\"}, \"learners\": {\"replicas\": " #learners "}}, "
#define SHORT "\"max_retry_second\": 20, "

static pods p;

/* With workers for the first pods that the server makes up: collectors, then learners. */
static void open_with(int api, unsigned collectors, unsigned learners)
{
    pods_open(&p, 1, api);
    for (unsigned n = 0; n < collectors + learners; n++) {
        (void)pods_worker(&p, n < collectors ? COORD_COLLECTOR : COORD_LEARNER, n);
    }
}

static void expect_start(coord_status wanted)
{
    if (pods_started(&p) != wanted) {
        fail_msg("start: %d: %s: %s", (int)p.start_rc, p.start_err.text,
                 p.start_err.cause);
    }
}

static size_t posts(void)
{
    return fake_operator_requests(p.fake, FAKE_POST);
}

static void only_what_is_missing_is_asked_for(void **state)
{
    (void)state;
    open_with(FAKE_V1, 3, 1);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    pods_begin(&p, ASK(3, 1), "");
    assert_says(fake_operator_body(p.fake, FAKE_POST),
                "\"collectors\": {\"replicas\": 2, \"cpus\": \"500m\"}, "
                "\"learners\": {\"replicas\": 1}");
    assert_int_equal(fake_operator_created(p.fake), 3);
    assert_true(pods_says(&p, "\"demand\": {\"collectors\": 3, \"learners\": 1, "
                              "\"failures\": 0, \"state\": \"met\", \"error\": null}"));
    pods_close(&p);
}

static void nothing_is_asked_for_if_all_are_there(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2, 0);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 2);
    pods_begin(&p, ASK(2, 0), "");
    assert_int_equal(posts(), 0);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 0); /* later it is not its business */
    cluster_run(&p.k, 30000);
    assert_int_equal(posts(), 0);
    pods_close(&p);
}

/* The pods exist, and run only after the first start has given up. */
static void a_start_that_is_repeated_creates_nothing_twice(void **state)
{
    static const int64_t LAGS[] = {0, 1500, 30000};
    (void)state;
    for (size_t i = 0; i < sizeof LAGS / sizeof LAGS[0]; i++) {
        open_with(FAKE_V1, 2, 1);
        fake_operator_set_lag(p.fake, LAGS[i]);
        for (int w = 0; w < 3; w++) {
            cluster_crash(&p.k, p.k.workers[w].id);
        }
        pods_start(&p, ASK(2, 1), SHORT);
        expect_start(COORD_ERR_TIMEOUT);
        for (int w = 0; w < 3; w++) {
            cluster_revive(&p.k, p.k.workers[w].id);
        }
        pods_begin(&p, "", "");
        assert_int_equal(fake_operator_created(p.fake), 3);
        assert_int_equal(posts(), 1);
        pods_close(&p);
    }
}

/* Its POST is on its way when start is over; the lists lag behind it. */
static void a_start_that_is_given_up_in_the_middle_creates_nothing_twice(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1, 0);
    fake_operator_set_lag(p.fake, 1500);
    fake_operator_fail(p.fake, FAKE_POST, FAKE_DONE_SILENT, 1);
    pods_start(&p, ASK(1, 0) "\"poll_s\": 0.2, ", "\"max_retry_second\": 3, ");
    expect_start(COORD_ERR_TIMEOUT);
    assert_int_equal(posts(), 1);
    pods_begin(&p, "", "");
    assert_int_equal(fake_operator_created(p.fake), 1);
    pods_close(&p);
}

/* ... and the server takes its time to carry it out, as is seen when a list has it. */
static void a_post_that_start_was_too_short_for_has_time_to_be_carried_out(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1, 0);
    fake_operator_set_lag(p.fake, 8000);
    fake_operator_fail(p.fake, FAKE_POST, FAKE_DONE_SILENT, 1);
    pods_start(&p, ASK(1, 0), "\"max_retry_second\": 3, ");
    expect_start(COORD_ERR_TIMEOUT);
    assert_int_equal(posts(), 1);
    for (int i = 0; i < 4; i++) {
        pods_start(&p, "", "");
        if (pods_started(&p) == COORD_OK) {
            break;
        }
    }
    assert_int_equal(p.start_rc, COORD_OK);
    assert_int_equal(posts(), 1);
    assert_int_equal(fake_operator_created(p.fake), 1);
    pods_close(&p);
}

static void a_coordinator_that_was_restarted_creates_nothing_twice(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2, 1);
    fake_operator_set_lag(p.fake, 1500);
    pods_begin(&p, ASK(2, 1), "");
    cluster_crash_coordinator(&p.k);
    cluster_restart(&p.k, pods_config(&p, ASK(2, 1), ""));
    cluster_run(&p.k, 10000);
    assert_int_equal(fake_operator_created(p.fake), 3);
    assert_int_equal(pods_ready(&p), 3);
    pods_close(&p);
}

/* ---- what goes wrong ---- */

static void what_fails_is_asked_for_again_while_start_waits(void **state)
{
    static const fake_fault FAULTS[] = {
        FAKE_ERROR,       FAKE_PARTIAL,     FAKE_CONFLICT,     FAKE_NOT_YET,
        FAKE_BAD_GATEWAY, FAKE_DONE_SILENT, FAKE_FIRST_SILENT, FAKE_SILENT,
        FAKE_DONE_BROKEN, FAKE_BROKEN};
    (void)state;
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        open_with(FAKE_V1, 3, 0);
        fake_operator_set_lag(p.fake, 1000);
        fake_operator_fail(p.fake, FAKE_POST, FAULTS[i], 1);
        pods_begin(&p, ASK(3, 0), "");
        cluster_run(&p.k, 20000);
        assert_int_equal(fake_operator_created(p.fake), 3);
        assert_true(pods_says(&p, "\"state\": \"met\""));
        pods_close(&p);
    }
}

/* What was made counts as there before any list has it. */
static void pods_that_were_made_are_not_made_again_before_they_are_listed(void **state)
{
    (void)state;
    open_with(FAKE_V1, 3, 0);
    fake_operator_set_lag(p.fake, 20000);
    fake_operator_fail(p.fake, FAKE_POST, FAKE_PARTIAL, 2);
    pods_begin(&p, ASK(3, 0), "");
    assert_int_equal(fake_operator_created(p.fake), 3);
    assert_int_equal(posts(), 3);
    pods_close(&p);
}

static void a_quota_is_what_start_names(void **state)
{
    (void)state;
    open_with(FAKE_V1, 3, 0);
    fake_operator_fail(p.fake, FAKE_POST, FAKE_PARTIAL, 2);
    fake_operator_fail(p.fake, FAKE_POST, FAKE_ERROR, 100);
    pods_start(&p, ASK(3, 0), "\"max_retry_second\": 60, ");
    cluster_run(&p.k, 30000);
    assert_true(pods_says(&p, "\"state\": \"starting\""));
    expect_start(COORD_OK); /* with a remark */
    assert_says(p.start_err.text, "start: missing 2 of 3 collectors: 1 not listed by the "
                                  "operator server at http://operator:");
    assert_says(p.start_err.text,
                "; the operator server did not create all pods: failed to get DIJob: "
                "etcdserver: leader changed");
    assert_says(p.start_err.cause, "HTTP 500");
    size_t asked = posts();
    assert_in_range(asked, 5, 9); /* with growing pauses */
    assert_true(pods_says(&p, "\"state\": \"given_up\", \"error\": \"operator server"));
    cluster_run(&p.k, 60000);
    assert_int_equal(posts(), asked);
    pods_close(&p);
}

static void a_server_that_cannot_be_reached_is_what_start_names(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1, 0);
    fake_operator_set_listening(p.fake, false);
    pods_start(&p, ASK(1, 0), SHORT);
    expect_start(COORD_ERR_TIMEOUT);
    assert_says(p.start_err.text, "start: missing 0 of 1 collectors; the operator server "
                                  "at http://operator:");
    assert_says(p.start_err.text, " can't be reached: ");
    assert_string_equal(p.start_err.reason, "operator_unreachable");
    assert_int_equal(posts(), 0);
    fake_operator_set_listening(p.fake, true);
    pods_begin(&p, "", "");
    assert_int_equal(fake_operator_created(p.fake), 1);
    pods_close(&p);
}

static void who_is_listed_and_who_is_not_is_told_apart(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2, 0);
    cluster_crash(&p.k, p.k.workers[1].id);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 2);
    pods_start(&p, "\"collector_target_num\": 4, \"learner_target_num\": 1, ", SHORT);
    expect_start(COORD_ERR_TIMEOUT);
    assert_says(
        p.start_err.text,
        "start: missing 1 of 4 collectors: 2 not listed by the operator server at "
        "http://operator:");
    assert_says(p.start_err.text, ", 0 of 1 learners: 1 not listed (last words: "
                                  "successfully get replicas); collector "
                                  "'job-collector-");
    pods_close(&p);
}

/* It is over while the POST is under way, which then fails. */
static void what_fails_after_start_is_not_asked_for_again(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1, 0);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    fake_operator_set_delay(p.fake, 4000);
    fake_operator_fail(p.fake, FAKE_POST, FAKE_ERROR, 1);
    pods_start(&p, ASK(2, 0), "\"max_retry_second\": 14, ");
    expect_start(COORD_OK);
    assert_true(pods_says(&p, "\"state\": \"sent\""));
    fake_operator_set_delay(p.fake, 0);
    assert_true(pods_await(&p, "\"state\": \"given_up\"", 10000));
    cluster_run(&p.k, 60000);
    assert_int_equal(posts(), 1);
    pods_close(&p);
}

/* ---- how long start waits ---- */

static void pods_are_asked_for_before_start_is_over(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2, 0);
    pods_begin(&p, ASK(2, 0) "\"collector_target_num\": 0, ", "");
    assert_int_equal(posts(), 1);
    assert_true(cluster_await(&p.k, "increase", "collector", 2, 5000));
    pods_close(&p);
}

static void start_waits_for_both_targets(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2, 1);
    cluster_crash(&p.k, p.k.workers[2].id);
    pods_start(&p, ASK(2, 1), "");
    assert_true(pods_await_ready(&p, 2, 10000));
    cluster_run(&p.k, 20000);
    assert_true(pods_says(&p, "\"phase\": \"starting\""));
    cluster_revive(&p.k, p.k.workers[2].id);
    cluster_run(&p.k, 2000);
    assert_true(pods_says(&p, "\"phase\": \"running\""));
    expect_start(COORD_OK);
    assert_string_equal(p.start_err.text, "");
    pods_close(&p);
}

/* Whoever brought them, and `min` may ask for more. */
static void all_ready_workers_count(void **state)
{
    (void)state;
    open_with(FAKE_V1, 3, 0);
    p.k.workers[2].stranger = false; /* of the configuration, whose ports are 22270 */
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    pods_begin(&p, "\"collector_target_num\": 2, ", "");
    assert_int_equal(pods_ready(&p), 2);
    pods_close(&p);

    open_with(FAKE_V1, 2, 0);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    pods_start(&p, "\"collector_target_num\": 1, ", SHORT "\"min_collectors\": 2, ");
    expect_start(COORD_OK);
    assert_says(p.start_err.text, "missing 1 of 2 collectors");
    pods_close(&p);
}

/* ---- v2alpha1 ---- */

static void a_null_list_is_awaited_before_it_counts_as_empty(void **state)
{
    (void)state;
    open_with(FAKE_V2, 2, 0);
    pods_start(&p, ASK(2, 0), "");
    cluster_run(&p.k, 4500);
    assert_int_equal(posts(), 0);
    cluster_run(&p.k, 5500);
    assert_int_equal(posts(), 1);
    expect_start(COORD_OK);
    pods_close(&p);

    open_with(FAKE_V2, 2, 0); /* while a job's pods restart it is null, too */
    pods_start(&p, ASK(2, 0), "");
    cluster_run(&p.k, 4500);
    fake_operator_scale(p.fake, FAKE_NODES, 2);
    expect_start(COORD_OK);
    assert_int_equal(posts(), 0);
    pods_close(&p);
}

static void pending_ranks_count_and_ours_does_not(void **state)
{
    (void)state;
    open_with(FAKE_V2, 0, 0);
    (void)pods_worker(&p, COORD_COLLECTOR, 1);
    (void)pods_worker(&p, COORD_COLLECTOR, 2);
    assert_int_equal(coord_sim_set_env(p.k.sim, "DI_RANK", "0", NULL), COORD_OK);
    fake_operator_scale(p.fake, FAKE_NODES, 2);
    fake_operator_add(p.fake, FAKE_NODES, "");
    pods_start(&p, ASK(3, 0) "\"collector_target_num\": 2, ", "");
    cluster_run(&p.k, 10000);
    assert_string_equal(fake_operator_body(p.fake, FAKE_POST), "{\"replicas\": 1}");
    assert_true(pods_says(&p, "\"pending\": 1"));
    expect_start(COORD_OK);
    assert_int_equal(posts(), 1);
    pods_close(&p);
}

/* A server of v2alpha1 takes note, and may do nothing: then nobody asks for ever. */
static void nodes_that_never_come_are_named(void **state)
{
    (void)state;
    open_with(FAKE_V2, 1, 0);
    fake_operator_scale(p.fake, FAKE_NODES, 1);
    fake_operator_set_preemptible(p.fake, true);
    pods_start(&p, ASK(3, 0), SHORT);
    expect_start(COORD_OK);
    assert_says(p.start_err.text, "missing 1 of 3 collectors: 2 not listed by");
    pods_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_missing_is_asked_for),
        cmocka_unit_test(nothing_is_asked_for_if_all_are_there),
        cmocka_unit_test(a_start_that_is_repeated_creates_nothing_twice),
        cmocka_unit_test(a_start_that_is_given_up_in_the_middle_creates_nothing_twice),
        cmocka_unit_test(a_post_that_start_was_too_short_for_has_time_to_be_carried_out),
        cmocka_unit_test(a_coordinator_that_was_restarted_creates_nothing_twice),
        cmocka_unit_test(what_fails_is_asked_for_again_while_start_waits),
        cmocka_unit_test(pods_that_were_made_are_not_made_again_before_they_are_listed),
        cmocka_unit_test(a_quota_is_what_start_names),
        cmocka_unit_test(a_server_that_cannot_be_reached_is_what_start_names),
        cmocka_unit_test(who_is_listed_and_who_is_not_is_told_apart),
        cmocka_unit_test(what_fails_after_start_is_not_asked_for_again),
        cmocka_unit_test(pods_are_asked_for_before_start_is_over),
        cmocka_unit_test(start_waits_for_both_targets),
        cmocka_unit_test(all_ready_workers_count),
        cmocka_unit_test(a_null_list_is_awaited_before_it_counts_as_empty),
        cmocka_unit_test(pending_ranks_count_and_ours_does_not),
        cmocka_unit_test(nodes_that_never_come_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
