/* Unit tests of a host's callbacks, in a world of their own: no socket, no sleep, and the
 * same run for the same seed. See README, "Testing your host".
 *
 *     make examples && build/examples/unit_test
 *     SEED=17 build/examples/unit_test
 *
 * cc -o unit_test main.c world.c host.c $(pkg-config --cflags --libs libcoord cmocka) */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { HOUR_MS = 3600 * 1000 };

static const host_goal GOAL = {.samples = 6, .learn_steps = 3};

static void samples_are_collected_and_learnt_from(void **state)
{
    world w;
    coord_error err = {0};
    (void)state;
    world_open(&w, 1);
    coord_sim_worker *collector = world_add(&w, COORD_COLLECTOR, NULL);
    coord_sim_worker *learner = world_add(&w, COORD_LEARNER, NULL);
    world_start(&w, GOAL);
    world_must(&w, host_collect(w.host, "c", &err), &err);
    world_must(&w, host_learn(w.host, "l", &err), &err);
    world_must(&w, host_wait(w.host, HOUR_MS, &err), &err);

    host_counts is = host_look(w.host);
    assert_int_equal(is.finished, 2);
    assert_int_equal(is.samples, 6);
    assert_int_equal(is.batches, 3);
    assert_int_equal(is.steps, 3);
    assert_int_equal(coord_sim_worker_count(collector, COORD_SIM_COUNT_CLOSED), 1);
    assert_int_equal(coord_sim_worker_count(learner, COORD_SIM_COUNT_DONE), 3);
    world_close(&w);
}

static bool has_a_sample(void *user)
{
    return host_look(user).samples > 0;
}

static void a_collector_that_dies_is_replaced(void **state)
{
    world w;
    coord_error err = {0};
    coord_sim_worker *collectors[2];
    (void)state;
    world_open(&w, 2);
    collectors[0] = world_add(&w, COORD_COLLECTOR, NULL);
    collectors[1] = world_add(&w, COORD_COLLECTOR, NULL);
    world_start(&w, GOAL);
    world_must(&w, host_collect(w.host, "c", &err), &err);
    world_must(&w, coord_sim_run_until(w.sim, HOUR_MS, has_a_sample, w.host, &err), &err);

    /* Which of them got the task is up to the seed. */
    bool first = coord_sim_worker_count(collectors[0], COORD_SIM_COUNT_STARTED) == 1;
    coord_sim_worker *dies = collectors[first ? 0 : 1];
    coord_sim_worker *other = collectors[first ? 1 : 0];
    coord_sim_worker_crash(dies, 0);
    world_must(&w, host_wait(w.host, HOUR_MS, &err), &err);

    host_counts is = host_look(w.host);
    assert_int_equal(is.restarts, 1);
    assert_int_equal(is.why.status, COORD_ERR_LOST);
    assert_int_equal(is.finished, 1);
    assert_int_equal(coord_sim_worker_count(other, COORD_SIM_COUNT_CLOSED), 1);
    assert_true(is.samples >= 6); /* those of the first attempt still count */
    world_close(&w);
}

static void a_learner_that_comes_early_waits_for_data(void **state)
{
    world w;
    coord_error err = {0};
    (void)state;
    world_open(&w, 3);
    (void)world_add(&w, COORD_COLLECTOR, NULL);
    (void)world_add(&w, COORD_LEARNER, NULL);
    world_start(&w, GOAL);
    world_must(&w, host_learn(w.host, "l", &err), &err);
    world_must(&w, coord_sim_run_for(w.sim, 10000, &err), &err);
    assert_true(host_look(w.host).asked > 3);
    assert_int_equal(host_look(w.host).batches, 0);

    world_must(&w, host_collect(w.host, "c", &err), &err);
    world_must(&w, host_wait(w.host, HOUR_MS, &err), &err);
    assert_int_equal(host_look(w.host).finished, 2);
    assert_int_equal(host_look(w.host).batches, 3);
    world_close(&w);
}

static void the_task_of_a_silent_learner_fails_when_there_is_no_other(void **state)
{
    world w;
    coord_error err = {0};
    const coord_sim_fault falls_silent = {
        .what = COORD_SIM_FAULT_SILENCE, .at = COORD_SIM_STEP_INFO, .nth = 2};
    (void)state;
    world_open(&w, 4);
    (void)world_add(&w, COORD_COLLECTOR, NULL);
    (void)world_add(&w, COORD_LEARNER, &falls_silent);
    world_start(&w, GOAL);
    world_must(&w, host_collect(w.host, "c", &err), &err);
    world_must(&w, host_learn(w.host, "l", &err), &err);
    world_must(&w, host_wait(w.host, HOUR_MS, &err), &err);

    host_counts is = host_look(w.host);
    assert_int_equal(is.finished, 1);
    assert_int_equal(is.failed, 1);
    assert_int_equal(is.why.status, COORD_ERR_LOST);
    assert_int_equal(is.steps, 1);
    world_close(&w);
}

static void close_in_the_middle_ends_all_tasks(void **state)
{
    world w;
    coord_error err = {0};
    (void)state;
    world_open(&w, 5);
    (void)world_add(&w, COORD_COLLECTOR, NULL);
    (void)world_add(&w, COORD_LEARNER, NULL);
    world_start(&w, GOAL);
    world_must(&w, host_collect(w.host, "c", &err), &err);
    world_must(&w, host_learn(w.host, "l", &err), &err);
    world_must(&w, coord_sim_run_until(w.sim, HOUR_MS, has_a_sample, w.host, &err), &err);
    world_must(&w, host_close(w.host, &err), &err);

    host_counts is = host_look(w.host);
    assert_int_equal(is.failed, 2);
    assert_int_equal(is.why.status, COORD_ERR_CLOSED);
    world_must(&w, coord_sim_run_for(w.sim, HOUR_MS, &err), &err);
    assert_int_equal(host_look(w.host).samples, is.samples); /* nothing comes any more */
    world_close(&w);
}

/* A run in which a collector dies at its second sample and is back after a minute. */
static uint64_t hash_of_a_run(uint64_t seed)
{
    world w;
    coord_error err = {0};
    const coord_sim_fault dies = {.what = COORD_SIM_FAULT_CRASH,
                                  .at = COORD_SIM_STEP_DATA,
                                  .nth = 2,
                                  .back_after_ms = 60000};
    world_open(&w, seed);
    (void)world_add(&w, COORD_COLLECTOR, &dies);
    (void)world_add(&w, COORD_COLLECTOR, NULL);
    (void)world_add(&w, COORD_LEARNER, NULL);
    world_start(&w, GOAL);
    world_must(&w, host_collect(w.host, "c", &err), &err);
    world_must(&w, host_learn(w.host, "l", &err), &err);
    world_must(&w, host_wait(w.host, HOUR_MS, &err), &err);
    assert_int_equal(host_look(w.host).finished, 2);
    uint64_t hash = coord_sim_trace_hash(w.sim);
    world_close(&w);
    return hash;
}

static void every_seed_passes_and_gives_the_same_run_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_true(hash_of_a_run(seed) == hash_of_a_run(seed));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_collected_and_learnt_from),
        cmocka_unit_test(a_collector_that_dies_is_replaced),
        cmocka_unit_test(a_learner_that_comes_early_waits_for_data),
        cmocka_unit_test(the_task_of_a_silent_learner_fails_when_there_is_no_other),
        cmocka_unit_test(close_in_the_middle_ends_all_tasks),
        cmocka_unit_test(every_seed_passes_and_gives_the_same_run_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
