/* A coordinator that follows an operator server. */
#include "support/pods.h"

#include <stdio.h>

#define TWO_AND_ONE                                                                      \
    "\"init_replicas_request\": {\"collectors\": {\"replicas\": 2}, "                    \
    "\"learners\": {\"replicas\": 1}}, "

static pods p;

static void start_asks_for_pods_and_waits_for_them(void **state)
{
    (void)state;
    pods_open(&p, 1, FAKE_V1);
    pods_worker(&p, COORD_COLLECTOR, 0);
    pods_worker(&p, COORD_COLLECTOR, 1);
    pods_worker(&p, COORD_LEARNER, 2);
    pods_begin(&p, TWO_AND_ONE, "");
    assert_int_equal(pods_ready(&p), 3);
    assert_int_equal(fake_operator_created(p.fake), 3);
    assert_int_equal(fake_operator_requests(p.fake, FAKE_POST), 1);
    assert_int_equal(cluster_count(&p.k, "increase", NULL), 0);
    assert_true(cluster_await(&p.k, "increase", "collector", 2, 1000));
    cluster_post(&p.k, COORD_COLLECTOR, "a");
    assert_true(cluster_await(&p.k, "finish", "a", 1, 60000));
    cluster_check(&p.k);
    assert_true(pods_says(&p, "\"state\": \"following\""));
    pods_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_asks_for_pods_and_waits_for_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
