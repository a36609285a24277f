/* Loops that the host drives, and loops that many share, over real sockets. */
#include "support/real_team.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static coord_loop *make_loop(bool own_thread)
{
    coord_loop_options o;
    coord_loop *loop = NULL;
    coord_loop_options_init(&o, sizeof o);
    o.own_thread = own_thread;
    assert_int_equal(coord_loop_create(&o, &loop, NULL), COORD_OK);
    return loop;
}

static void one_thread_can_make_all_calls_on_a_loop_that_it_drives(void **state)
{
    static const char *const EXECUTORS[] = {"\"inline\"", "\"per_task\"",
                                            "{\"pool\": 1}"};
    (void)state;
    const int fds = open_descriptors();
    for (size_t i = 0; i < sizeof EXECUTORS / sizeof EXECUTORS[0]; i++) {
        static real_team t;
        coord_loop *loop = make_loop(false);
        real_team_start(&t, loop, 2, EXECUTORS[i]);
        real_team_work(&t, 10);
        real_team_end(&t);
        coord_loop_destroy(loop);
        assert_true(threads_are_gone());
        assert_int_equal(open_descriptors(), fds);
    }
}

static void a_host_that_polls_the_descriptor_and_steps_needs_nothing_else(void **state)
{
    enum { TASKS = 100 };
    static real_team t;
    (void)state;
    coord_loop *loop = make_loop(false);
    real_team_start(&t, loop, 2, "\"inline\"");
    for (int i = 0; i < TASKS; i++) {
        real_team_post(&t);
    }
    while (atomic_load(&t.finished) < TASKS) {
        struct pollfd at = {.fd = coord_loop_fd(loop), .events = POLLIN};
        assert_int_equal(poll(&at, 1, REAL_TEAM_WAIT_MS), 1);
        assert_int_equal(coord_loop_step(loop, 0, NULL), COORD_OK);
    }
    assert_int_equal(atomic_load(&t.failed), 0);
    real_team_end(&t);
    coord_loop_destroy(loop);
}

static void a_coordinator_and_many_workers_can_share_one_loop(void **state)
{
    static real_team t;
    (void)state;
    coord_loop *loop = make_loop(true);
    real_team_start(&t, loop, REAL_TEAM_MAX, "{\"pool\": 1}");
    real_team_work(&t, 2 * REAL_TEAM_MAX);
    real_team_end(&t);
    coord_loop_destroy(loop);
}

/* ---- those who wait when the end comes ---- */

typedef struct waiter {
    CommCoordinator *c;
    coord_status status;
} waiter;

static void *wait_for_all(void *arg)
{
    waiter *w = arg;
    w->status = comm_coordinator_wait(w->c, INT64_MAX, NULL);
    return NULL;
}

static void *close_it(void *arg)
{
    waiter *w = arg;
    w->status = comm_coordinator_close(w->c, NULL);
    return NULL;
}

static void threads_may_close_at_once_while_others_wait_without_limit(void **state)
{
    enum { CLOSERS = 3 };
    static real_team t;
    waiter who[CLOSERS + 1];
    pthread_t threads[CLOSERS + 1];
    (void)state;
    real_team_start(&t, NULL, 1, "\"per_task\"");
    for (int i = 0; i < 20; i++) {
        real_team_post(&t);
    }
    for (int i = 0; i <= CLOSERS; i++) {
        who[i] = (waiter){t.c, COORD_AGAIN};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i == 0 ? wait_for_all : close_it, &who[i]),
            0);
    }
    for (int i = 0; i <= CLOSERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(who[i].status, COORD_OK);
    }
    assert_int_equal(atomic_load(&t.finished) + atomic_load(&t.failed), t.posted);
    real_team_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_can_make_all_calls_on_a_loop_that_it_drives),
        cmocka_unit_test(a_host_that_polls_the_descriptor_and_steps_needs_nothing_else),
        cmocka_unit_test(a_coordinator_and_many_workers_can_share_one_loop),
        cmocka_unit_test(threads_may_close_at_once_while_others_wait_without_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
