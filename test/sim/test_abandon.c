/* A task that is given up is closed at its worker, in whatever state: once, after what
 * the worker is still at, and before its next task. */
#include "coordinator/coordinator.h"
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t LONG_MS = 600000;

typedef struct spot {
    coord_role role;
    const char *state;
} spot;

/* All states in which the worker has accepted the task. */
static const spot SPOTS[] = {
    {COORD_COLLECTOR, "asking"},  {COORD_COLLECTOR, "pausing"},
    {COORD_COLLECTOR, "sending"}, {COORD_COLLECTOR, "judging"},
    {COORD_COLLECTOR, "closing"}, {COORD_LEARNER, "asking"},
    {COORD_LEARNER, "pausing"},   {COORD_LEARNER, "sampling"},
    {COORD_LEARNER, "waiting"},   {COORD_LEARNER, "learning"},
    {COORD_LEARNER, "judging"},   {COORD_LEARNER, "closing"},
};
enum { SPOT_COUNT = sizeof SPOTS / sizeof SPOTS[0] };

/* Task "t" of one worker is in that state. */
static cluster_worker *reach(cluster *k, const spot *at, bool foreign, const char *config)
{
    bool collector = at->role == COORD_COLLECTOR;
    cluster_init(k, 1, collector ? 1 : 0, collector ? 0 : 1);
    cluster_worker *w = &k->workers[0];
    if (foreign) {
        cluster_set_foreign(k, w->id);
    }
    w->samples = 2;
    w->learns = 2;
    w->work_ms = 300;
    w->fail_asks = strcmp(at->state, "pausing") == 0 ? 1 : 0;
    k->callback_ms = 300;
    k->data_in_buffer = 1;
    k->hold_data = strcmp(at->state, "waiting") == 0;
    cluster_start(k, config);
    cluster_post(k, at->role, "t");
    if (!cluster_await_task(k, "t", at->state, 20000)) {
        fail_msg("the task never was %s", at->state);
    }
    return w;
}

static int count_closes(const cluster_worker *w)
{
    int count = 0;
    for (const char *at = w->log; *at != '\0'; at++) {
        count += *at == 'c';
    }
    return count;
}

/* The close came, alone and last; the worker is of use again, and gets no second one. */
static void expect_closed(cluster *k, cluster_worker *w, const spot *at)
{
    if (!cluster_await_worker(k, w->id, "free", LONG_MS)) {
        fail_msg("%s: the worker stays %s", at->state, cluster_worker_state(k, w->id));
    }
    size_t len = strlen(w->log);
    if (count_closes(w) != 1 || strcmp(w->log + len - 2, "cr") != 0) {
        fail_msg("%s %s: the worker got %s", coord_role_str(at->role), at->state, w->log);
    }
    cluster_check(k);
    k->callback_ms = 0;
    k->hold_data = false;
    w->work_ms = 0;
    cluster_post(k, at->role, "next");
    if (!cluster_await(k, "finish", "next", 1, LONG_MS)) {
        fail_msg("%s: the next one is %s after %s", at->state,
                 cluster_task_state(k, "next"), cluster_story(k, "next"));
    }
    assert_int_equal(count_closes(w), 2);
}

static void a_canceled_task_is_closed_at_its_worker_in_every_state(void **state)
{
    static cluster k;
    (void)state;
    for (size_t i = 0; i < 2 * SPOT_COUNT; i++) {
        const spot *at = &SPOTS[i % SPOT_COUNT];
        cluster_worker *w = reach(&k, at, i >= SPOT_COUNT, "");
        assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
        expect_closed(&k, w, at);
        assert_true(cluster_await(&k, "fail", "t", 1, 1000));
        assert_int_equal(k.c->counters.workers_lost, 0);
        assert_int_equal(k.c->counters.quarantined, 0);
        cluster_done(&k);
    }
}

/* The coordinator closes: a worker that is at nothing gets the close, and then a goodbye;
 * a busy one is disconnected at once, also when the close is on its way. */
static void a_task_that_is_closed_away_is_closed_at_an_idle_worker(void **state)
{
    static cluster k;
    (void)state;
    for (size_t i = 0; i < 2 * SPOT_COUNT; i++) {
        const spot *at = &SPOTS[i % SPOT_COUNT];
        cluster_worker *w = reach(&k, at, i >= SPOT_COUNT, "");
        bool busy = strcmp(at->state, "asking") == 0 ||
                    strcmp(at->state, "learning") == 0 ||
                    strcmp(at->state, "closing") == 0;
        assert_int_equal(cluster_close(&k, NULL), COORD_OK);
        cluster_run(&k, 1000);
        if (count_closes(w) != (busy ? 0 : 1)) {
            fail_msg("%s %s: the worker got %s", coord_role_str(at->role), at->state,
                     w->log);
        }
        assert_int_equal(cluster_count(&k, "fail", "t"), 1);
        cluster_done(&k);
    }
}

/* ---- while it starts ---- */

static const spot STARTING = {COORD_COLLECTOR, "starting"};

static void a_start_that_is_accepted_after_the_cancel_is_closed(void **state)
{
    static cluster k;
    (void)state;
    for (int late_ms = 0; late_ms <= 300; late_ms += 20) {
        for (int foreign = 0; foreign <= 1; foreign++) {
            cluster_worker *w = reach(&k, &STARTING, foreign, "");
            coord_sim_link slow;
            coord_sim_link_init(k.sim, &slow, sizeof slow);
            slow.latency_min_ms = 40;
            slow.latency_max_ms = 40;
            cluster_link(&k, &slow);
            assert_true(coord_sim_run_for(k.sim, late_ms, NULL) == COORD_OK);
            assert_string_equal(cluster_task_state(&k, "t"), "starting");
            assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
            assert_true(cluster_await(&k, "fail", "t", 1, 500)); /* that waits for none */
            expect_closed(&k, w, &STARTING);
            assert_int_equal(cluster_count(&k, "start", "t"), 0);
            cluster_done(&k);
        }
    }
}

static void a_start_that_is_refused_after_the_cancel_is_not_closed(void **state)
{
    static cluster k;
    (void)state;
    cluster_worker *w = reach(&k, &STARTING, true, "");
    w->fail_starts = 1;
    assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
    assert_true(cluster_await_worker(&k, "c0", "free", 10000));
    assert_string_equal(w->log, "rsr");
    cluster_done(&k);
}

/* It takes longer than we wait for it: the close follows all the same. */
static void a_start_that_takes_for_ever_is_closed_when_it_ends(void **state)
{
    static cluster k;
    (void)state;
    for (int limit = 0; limit <= 1; limit++) { /* ours, or that of the start */
        cluster_worker *w =
            reach(&k, &STARTING, true, limit ? "\"start_timeout_s\": 3," : "");
        w->stuck = true;
        assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
        assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
        const coordi_member *m = coordi_map_get(&k.c->members[COORD_COLLECTOR], "c0");
        assert_non_null(
            strstr(m->why.text, limit ? "no progress: " : "abandoned work: "));
        cluster_run(&k, 90000);
        assert_string_equal(w->log, "rs");
        w->stuck = false;
        expect_closed(&k, w, &STARTING);
        cluster_done(&k);
    }
}

/* ---- while it works ---- */

/* As soon as the worker reports, not when a probe happens to come. */
static void a_worker_that_works_on_after_a_cancel_is_back_when_it_reports(void **state)
{
    static cluster k;
    static const spot ASKING = {COORD_COLLECTOR, "asking"};
    (void)state;
    cluster_worker *w = reach(&k, &ASKING, true, "");
    w->stuck = true;
    assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
    int64_t began = coord_sim_now_ms(k.sim);
    assert_string_equal(cluster_worker_state(&k, "c0"), "recovering");
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    assert_in_range(coord_sim_now_ms(k.sim) - began, 9990, 10010);
    cluster_run(&k, 200000 - 10000); /* in a long pause */
    assert_string_equal(cluster_worker_state(&k, "c0"), "quarantined");
    w->stuck = false;
    assert_true(cluster_await_worker(&k, "c0", "free", 1000));
    expect_closed(&k, w, &ASKING);
    cluster_done(&k);
}

static void a_moved_task_is_closed_at_the_worker_that_lost_it(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 2, 2, 0);
    k.workers[0].fail_asks = 1000;
    k.workers[1].fail_asks = 1000;
    cluster_start(&k, "\"request_retries\": 1,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "start", "t", 1, LONG_MS));
    cluster_worker *first = cluster_find(&k, cluster_last(&k, "start", "t")->detail);
    k.workers[0].fail_asks = first == &k.workers[0] ? 1000 : 0;
    k.workers[1].fail_asks = first == &k.workers[1] ? 1000 : 0;
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    assert_true(cluster_await_worker(&k, first->id, "free", LONG_MS));
    assert_int_equal(cluster_count(&k, "restart", "t"), 1);
    assert_string_equal(first->log, "rsddcr");
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_canceled_task_is_closed_at_its_worker_in_every_state),
        cmocka_unit_test(a_task_that_is_closed_away_is_closed_at_an_idle_worker),
        cmocka_unit_test(a_start_that_is_accepted_after_the_cancel_is_closed),
        cmocka_unit_test(a_start_that_is_refused_after_the_cancel_is_not_closed),
        cmocka_unit_test(a_start_that_takes_for_ever_is_closed_when_it_ends),
        cmocka_unit_test(a_worker_that_works_on_after_a_cancel_is_back_when_it_reports),
        cmocka_unit_test(a_moved_task_is_closed_at_the_worker_that_lost_it),
    };
    return cmocka_run_group_tests_name("abandon", tests, NULL, NULL);
}
