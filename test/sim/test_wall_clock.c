/* Somebody sets the time of day while a cluster works: it goes by the other clock. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const int64_t YEAR_MS = 365LL * 24 * 3600 * 1000;

/* A number made of all that happens; `step_ms`: the time of day jumps by so much, there
 * and back again, in the middle of it. */
static uint64_t run(int64_t step_ms)
{
    static cluster k;
    const int64_t noon = 1767225600000 + YEAR_MS;
    cluster_init(&k, 7, 2, 1);
    for (int i = 0; i < k.worker_count; i++) {
        k.workers[i].work_ms = 700;
        k.workers[i].samples = 20;
        k.workers[i].learns = 20;
    }
    coord_sim_set_wall_ms(k.sim, noon);
    cluster_start(&k, "\"port\": 0, \"collector_task_timeout_s\": 5, ");
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_post(&k, COORD_COLLECTOR, "b");
    cluster_post(&k, COORD_LEARNER, "l");
    cluster_run(&k, 4000);
    coord_sim_set_wall_ms(k.sim, noon + step_ms);
    cluster_run(&k, 4000);
    coord_sim_set_wall_ms(k.sim, noon - step_ms);
    assert_true(cluster_await(&k, "finish", "a", 1, 60000));
    assert_true(cluster_await(&k, "finish", "b", 1, 60000));
    assert_true(cluster_await(&k, "finish", "l", 1, 120000));
    cluster_run(&k, 60000); /* heartbeats alone */
    assert_int_equal(cluster_count(&k, "fail", NULL), 0);
    assert_int_equal(cluster_count(&k, "restart", NULL), 0);
    cluster_check(&k);
    const uint64_t hash = coord_sim_trace_hash(k.sim);
    cluster_done(&k);
    return hash;
}

static void a_step_of_the_time_of_day_changes_nothing(void **state)
{
    (void)state;
    const uint64_t without = run(0);
    assert_true(run(YEAR_MS) == without);
    assert_true(run(-YEAR_MS) == without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_of_the_time_of_day_changes_nothing),
    };
    return cmocka_run_group_tests_name("wall_clock", tests, NULL, NULL);
}
