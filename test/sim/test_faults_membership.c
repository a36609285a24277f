/* The faults of the reference's coordinator with an operator server (test/FAULTS). */
#include "support/pods.h"

#include <stdio.h>

#define ASK                                                                              \
    "\"init_replicas_request\": {\"collectors\": {\"replicas\": 2}, "                    \
    "\"learners\": {\"replicas\": 1}}, "

static pods p;

static void open_world(void)
{
    pods_open(&p, 1, FAKE_V1);
    (void)pods_worker(&p, COORD_COLLECTOR, 0);
    (void)pods_worker(&p, COORD_COLLECTOR, 1);
    (void)pods_worker(&p, COORD_LEARNER, 2);
}

static void f_c10_start_waits_for_a_server_that_is_down_and_says_so(void **state)
{
    (void)state;
    open_world();
    fake_operator_set_listening(p.fake, false);
    pods_start(&p, ASK, "");
    cluster_run(&p.k, 60000);
    fake_operator_set_listening(p.fake, true);
    fake_operator_fail(p.fake, FAKE_POST, FAKE_ERROR, 2); /* success=false, too */
    assert_int_equal(pods_started(&p), COORD_OK);
    assert_int_equal(pods_ready(&p), 3);
    pods_close(&p);

    open_world();
    fake_operator_set_listening(p.fake, false);
    pods_start(&p, ASK, "\"max_retry_second\": 5, ");
    assert_int_equal(pods_started(&p), COORD_ERR_TIMEOUT);
    assert_says(p.start_err.text, "the operator server at http://operator:");
    assert_says(p.start_err.text, "can't be reached: ");
    assert_says(p.start_err.cause, "refused");
    pods_close(&p);
}

static void f_c11_the_list_is_followed_after_whatever_answer(void **state)
{
    static const fake_fault FAULTS[] = {FAKE_ERROR, FAKE_BAD_GATEWAY, FAKE_NOT_YET,
                                        FAKE_SILENT, FAKE_BROKEN};
    (void)state;
    open_world();
    pods_begin(&p, ASK, "");
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        fake_operator_fail(p.fake, FAKE_GET, FAULTS[i], 2);
        cluster_run(&p.k, 40000);
        fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
        assert_true(pods_await_ready(&p, 2, 10000));
        fake_operator_add(p.fake, FAKE_COLLECTORS, p.k.workers[1].id);
        assert_true(pods_await_ready(&p, 3, 10000));
    }
    fake_operator_add(p.fake, FAKE_COLLECTORS, "127.0.0.1:x"); /* an id without sense */
    fake_operator_remove(p.fake, p.k.workers[1].id);
    cluster_run(&p.k, 5000);
    fake_operator_remove(p.fake, "127.0.0.1:x");
    assert_true(pods_await_ready(&p, 2, 10000));
    pods_close(&p);
}

/* Names of one part, and addresses. */
static void f_c12_a_failed_worker_is_reported_as_it_was_listed(void **state)
{
    static const char *const LISTED[] = {"127.0.0.1:22270", "localhost:22270",
                                         "a.b.ns:22270", "pod.ns.svc.cluster.local:1"};
    static const char *const NAME[] = {"127.0.0.1", "localhost", "a.b", "pod"};
    (void)state;
    for (size_t i = 0; i < sizeof LISTED / sizeof LISTED[0]; i++) {
        char words[64];
        open_world();
        fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
        fake_operator_add(p.fake, FAKE_COLLECTORS, LISTED[i]);
        pods_begin(&p, "\"grace_s\": 5, ", "");
        assert_true(pods_await_ready(&p, 1, 3000)); /* the other does not block it */
        cluster_run(&p.k, 20000);
        (void)snprintf(words, sizeof words, "\"collectors\": [\"%s\"]", NAME[i]);
        assert_says(fake_operator_body(p.fake, FAKE_FAILED), words);
        assert_int_equal(fake_operator_requests(p.fake, FAKE_FAILED), 1);
        assert_int_equal(fake_operator_created(p.fake), 1);
        pods_close(&p);
    }
}

static void f_c13_a_busy_worker_that_is_taken_away_is_counted_once(void **state)
{
    static const char *const STATES[] = {"starting", "asking", "sending", "judging",
                                         "closing"};
    (void)state;
    for (size_t i = 0; i < sizeof STATES / sizeof STATES[0]; i++) {
        open_world();
        const bool dies = i % 2 == 0;
        pods_begin(&p, ASK, dies ? "" : "\"max_reassign\": 0, ");
        p.k.callback_ms = 3000;
        p.k.workers[0].work_ms = p.k.workers[1].work_ms = 3000;
        cluster_post(&p.k, COORD_COLLECTOR, "t");
        assert_true(cluster_await_task(&p.k, "t", STATES[i], 120000));
        const bool second = p.k.workers[0].log[1] == '\0'; /* beside what it has */
        char id[64];
        (void)snprintf(id, sizeof id, "%s", p.k.workers[second ? 1 : 0].id);
        fake_operator_remove(p.fake, id);
        if (dies) {
            cluster_crash(&p.k, id);
        }
        assert_true(cluster_await(&p.k, "finish", "t", 1, 300000));
        cluster_run(&p.k, 60000);
        assert_int_equal(cluster_ends(&p.k, "t"), 1);
        assert_int_equal(cluster_count(&p.k, "decrease", "collector"), 1);
        assert_string_equal(cluster_worker_state(&p.k, id), "");
        assert_int_equal(pods_ready(&p), 2);
        cluster_check(&p.k);
        pods_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_c10_start_waits_for_a_server_that_is_down_and_says_so),
        cmocka_unit_test(f_c11_the_list_is_followed_after_whatever_answer),
        cmocka_unit_test(f_c12_a_failed_worker_is_reported_as_it_was_listed),
        cmocka_unit_test(f_c13_a_busy_worker_that_is_taken_away_is_counted_once),
    };
    return cmocka_run_group_tests_name("faults of the membership", tests, NULL, NULL);
}
