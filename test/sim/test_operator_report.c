/* Pods that can't be reached are reported to the operator server: late, once, and never
 * if it may be our own fault. */
#include "support/pods.h"

#include <stdio.h>

#define GRACE "\"grace_s\": 10, "

static pods p;
static int log_lines; /* that say that reports are not possible */

/* With workers for the first pods; the second and the third do not run. */
static void open_with(int api, unsigned collectors)
{
    pods_open(&p, 1, api);
    for (unsigned n = 0; n < collectors; n++) {
        (void)pods_worker(&p, COORD_COLLECTOR, n);
        if (n == 1 || n == 2) {
            cluster_crash(&p.k, p.k.workers[n].id);
        }
    }
}

static void list(size_t count)
{
    fake_operator_scale(p.fake,
                        p.k.worker_count > 0 && fake_operator_api(p.fake) == FAKE_V2
                            ? FAKE_NODES
                            : FAKE_COLLECTORS,
                        count);
}

static size_t reports(void)
{
    return fake_operator_requests(p.fake, FAKE_FAILED);
}

static bool reported(void *user)
{
    return reports() >= *(const size_t *)user;
}

static bool await_reports(size_t count, int64_t limit_ms)
{
    return coord_sim_run_until(p.k.sim, limit_ms, reported, &count, NULL) == COORD_OK;
}

static void a_pod_that_never_runs_is_reported_once_and_replaced(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2);
    (void)pods_worker(&p, COORD_COLLECTOR, 2); /* the one that will replace it */
    pods_begin(&p, GRACE, "");
    fake_operator_set_lag(p.fake, 3000);
    int64_t since = coord_sim_now_ms(p.k.sim);
    list(2);
    assert_true(await_reports(1, 60000));
    assert_in_range(coord_sim_now_ms(p.k.sim) - since, 10000, 12500);
    assert_says(fake_operator_body(p.fake, FAKE_FAILED),
                "\"collectors\": [\"job-collector-bbbbc\"]"); /* of the pod alone */
    assert_true(cluster_await(&p.k, "increase", "collector", 2, 60000));
    cluster_run(&p.k, 60000);
    assert_int_equal(reports(), 1);
    assert_int_equal(fake_operator_created(p.fake), 1);
    assert_int_equal(fake_operator_count(p.fake, FAKE_COLLECTORS), 2);
    assert_string_equal(cluster_worker_state(&p.k, p.k.workers[1].id), "");
    assert_true(pods_says(&p, "\"reported\": 1, \"report_error\": null"));
    pods_close(&p);
}

static void a_worker_that_is_lost_is_reported_when_it_stays_away(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1);
    pods_begin(&p, GRACE, "");
    list(1);
    assert_true(pods_await_ready(&p, 1, 5000));
    const char *id = p.k.workers[0].id;
    for (int i = 0; i < 3; i++) { /* it comes back in time */
        cluster_crash(&p.k, id);
        assert_true(cluster_await_worker(&p.k, id, "away", 60000));
        cluster_run(&p.k, 7000);
        cluster_revive(&p.k, id);
        assert_true(pods_await_ready(&p, 1, 10000));
    }
    cluster_run(&p.k, 20000);
    assert_int_equal(reports(), 0);
    cluster_crash(&p.k, id);
    assert_true(cluster_await_worker(&p.k, id, "away", 60000));
    int64_t since = coord_sim_now_ms(p.k.sim);
    assert_true(await_reports(1, 60000));
    assert_in_range(coord_sim_now_ms(p.k.sim) - since, 10000, 11500);
    pods_close(&p);
}

static void several_are_reported_one_after_the_other(void **state)
{
    (void)state;
    open_with(FAKE_V1, 3);
    pods_begin(&p, GRACE, "");
    list(3);
    assert_true(await_reports(1, 60000));
    cluster_run(&p.k, 5000);
    assert_int_equal(reports(), 2);
    assert_int_equal(fake_operator_created(p.fake), 2);
    assert_int_equal(pods_ready(&p), 1);
    pods_close(&p);
}

static void only_the_servers_own_pods_are_reported(void **state)
{
    coord_error err;
    (void)state;
    open_with(FAKE_V1, 3); /* 0 runs, 1 is the host's, 2 has gone from the list */
    cluster_create(&p.k, pods_config(&p, GRACE, ""));
    const cluster_worker *w = &p.k.workers[1];
    assert_int_equal(comm_coordinator_add_worker(p.k.c, COORD_COLLECTOR, w->id, w->host,
                                                 (uint16_t)w->port, &err),
                     COORD_OK);
    cluster_worker *sick = pods_worker(&p, COORD_COLLECTOR, 3);
    list(4);
    fake_operator_remove(p.fake, p.k.workers[2].id);
    sick->stuck = true; /* alive, and of no use */
    pods_begin(&p, "", "\"max_retry_second\": 10, \"min_collectors\": 0, ");
    assert_true(cluster_await_worker(&p.k, sick->id, "quarantined", 60000));
    cluster_run(&p.k, 60000);
    assert_string_equal(cluster_worker_state(&p.k, sick->id), "quarantined");
    assert_string_equal(cluster_worker_state(&p.k, w->id), "away");
    assert_int_equal(reports(), 0);
    pods_close(&p);
}

/* ---- whose fault it is ---- */

static void nobody_is_reported_while_our_own_network_is_down(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1);
    pods_begin(&p, "\"grace_s\": 3, ", "");
    list(1);
    assert_true(pods_await_ready(&p, 1, 5000));
    assert_int_equal(coord_sim_block(p.k.sim, "10.0.0.1", NULL, true, NULL), COORD_OK);
    assert_true(cluster_await_worker(&p.k, p.k.workers[0].id, "away", 60000));
    cluster_run(&p.k, 300000);
    assert_true(pods_says(&p, "\"state\": \"unreachable\""));
    coord_sim_heal(p.k.sim);
    assert_true(pods_await(&p, "\"state\": \"following\"", 30000));
    cluster_run(&p.k, 2000); /* its grace begins now */
    assert_int_equal(reports(), 0);
    assert_true(pods_await_ready(&p, 1, 60000));
    cluster_run(&p.k, 30000);
    assert_int_equal(reports(), 0);
    pods_close(&p);
}

/* ... also if a part of it is back before the server is. */
static void what_was_our_own_fault_does_not_count_later(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1);
    cluster_worker *late = pods_worker(&p, COORD_COLLECTOR, 1);
    pods_begin(&p, "\"grace_s\": 30, ", "");
    list(2);
    assert_true(pods_await_ready(&p, 2, 5000));
    fake_operator_set_listening(p.fake, false);
    assert_int_equal(coord_sim_block(p.k.sim, "10.0.0.1", NULL, true, NULL), COORD_OK);
    assert_true(cluster_await_worker(&p.k, late->id, "away", 60000));
    cluster_run(&p.k, 60000);
    coord_sim_heal(p.k.sim);
    assert_int_equal(coord_sim_block(p.k.sim, "10.0.0.1", late->host, true, NULL),
                     COORD_OK);
    assert_true(pods_await_ready(&p, 1, 60000));
    cluster_run(&p.k, 10000); /* so that an outage without our fault is seen */
    fake_operator_set_listening(p.fake, true);
    assert_true(pods_await(&p, "\"state\": \"following\"", 15000));
    coord_sim_heal(p.k.sim);
    cluster_run(&p.k, 1500);
    assert_int_equal(reports(), 0);
    assert_true(pods_await_ready(&p, 2, 60000));
    pods_close(&p);
}

static void a_report_waits_for_the_server(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2);
    (void)pods_worker(&p, COORD_COLLECTOR, 2);
    pods_begin(&p, GRACE, "");
    list(2);
    assert_true(pods_await_ready(&p, 1, 5000)); /* so our network is fine */
    fake_operator_set_listening(p.fake, false);
    cluster_run(&p.k, 60000);
    fake_operator_set_listening(p.fake, true);
    fake_operator_fail(p.fake, FAKE_FAILED, FAKE_BAD_GATEWAY, 1);
    fake_operator_fail(p.fake, FAKE_FAILED, FAKE_ERROR, 2);
    assert_true(await_reports(1, 12000));
    cluster_run(&p.k, 60000);
    assert_int_equal(fake_operator_created(p.fake), 1);
    assert_true(pods_says(&p, "\"reported\": 1"));
    pods_close(&p);
}

/* Nobody knows whether it was made: the lists tell. */
static void a_report_without_an_answer_is_not_made_twice(void **state)
{
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_DONE_BROKEN, FAKE_SILENT,
                                        FAKE_BROKEN, FAKE_BAD_GATEWAY};
    (void)state;
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        open_with(FAKE_V1, 2);
        pods_begin(&p, GRACE, "");
        fake_operator_set_lag(p.fake, 1500);
        list(2);
        fake_operator_fail(p.fake, FAKE_FAILED, FAULTS[i], 1);
        assert_true(await_reports(1, 60000));
        cluster_run(&p.k, 9000); /* before the pod that replaces it is due */
        assert_in_range(fake_operator_created(p.fake), 0, 1);
        cluster_run(&p.k, 15000);
        assert_string_equal(cluster_worker_state(&p.k, p.k.workers[1].id), "");
        pods_close(&p);
    }
}

/* The list is old: the server does not know it any more. */
static void a_pod_that_the_server_does_not_know_counts_as_gone(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1);
    pods_begin(&p, GRACE, "");
    list(1);
    assert_true(pods_await_ready(&p, 1, 5000));
    cluster_crash(&p.k, p.k.workers[0].id);
    fake_operator_set_garbage(
        p.fake, "{\"success\":true,\"code\":0,\"message\":\"\",\"data\":{\"namespace\":"
                "\"ns\",\"coordinator\":\"job-coordinator\",\"collectors\":["
                "\"job-collector-bbbbb.ns:22270\"],\"learners\":[]}}");
    list(0);
    fake_operator_fail(p.fake, FAKE_GET, FAKE_GARBAGE, 100);
    assert_true(await_reports(1, 60000));
    cluster_run(&p.k, 10000);
    assert_int_equal(reports(), 1);
    assert_int_equal(fake_operator_created(p.fake), 0);
    assert_true(pods_says(&p, "\"reported\": 1"));
    pods_close(&p);
}

/* A pod that the server refuses to replace does not keep others from it. */
static void one_that_is_refused_does_not_hold_up_the_others(void **state)
{
    (void)state;
    open_with(FAKE_V1, 3);
    pods_begin(&p, GRACE, "");
    list(3);
    fake_operator_fail(p.fake, FAKE_FAILED, FAKE_ERROR, 1);
    assert_true(await_reports(1, 60000));
    char first[256];
    (void)snprintf(first, sizeof first, "%s", fake_operator_body(p.fake, FAKE_FAILED));
    assert_true(await_reports(2, 4000));
    assert_string_not_equal(fake_operator_body(p.fake, FAKE_FAILED), first);
    cluster_run(&p.k, 5000);
    assert_int_equal(fake_operator_created(p.fake), 2);
    pods_close(&p);
}

/* ---- v2alpha1 ---- */

static void count_lines(coord_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    log_lines += strstr(line, "cannot replace single pods") != NULL;
}

static void a_server_that_cannot_replace_pods_is_not_asked_to(void **state)
{
    (void)state;
    open_with(FAKE_V2, 3);
    log_lines = 0;
    p.k.log = count_lines;
    pods_begin(&p, GRACE, "");
    list(3);
    cluster_run(&p.k, 60000);
    assert_int_equal(log_lines, 1);
    assert_int_equal(reports(), 0);
    assert_int_equal(pods_ready(&p), 1);
    pods_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_that_never_runs_is_reported_once_and_replaced),
        cmocka_unit_test(a_worker_that_is_lost_is_reported_when_it_stays_away),
        cmocka_unit_test(several_are_reported_one_after_the_other),
        cmocka_unit_test(only_the_servers_own_pods_are_reported),
        cmocka_unit_test(nobody_is_reported_while_our_own_network_is_down),
        cmocka_unit_test(what_was_our_own_fault_does_not_count_later),
        cmocka_unit_test(a_report_waits_for_the_server),
        cmocka_unit_test(a_report_without_an_answer_is_not_made_twice),
        cmocka_unit_test(a_pod_that_the_server_does_not_know_counts_as_gone),
        cmocka_unit_test(one_that_is_refused_does_not_hold_up_the_others),
        cmocka_unit_test(a_server_that_cannot_replace_pods_is_not_asked_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
