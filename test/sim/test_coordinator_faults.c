/* The coordinator among workers that die, fall silent and come back: whatever happens in
 * whatever state, each task ends once and in time, and no worker is lost for good. */
#include "base/alloc.h"
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TOLERANCE_MS = 17000, CHECK_MS = 1000, BEAT_MS = 3000, SLACK_MS = 2000 };

/* ---- every state, every fault ---- */

typedef struct spot {
    coord_role role;
    const char *state;
} spot;

static const spot SPOTS[] = {
    {COORD_COLLECTOR, "queued"},    {COORD_COLLECTOR, "starting"},
    {COORD_COLLECTOR, "asking"},    {COORD_COLLECTOR, "pausing"},
    {COORD_COLLECTOR, "sending"},   {COORD_COLLECTOR, "judging"},
    {COORD_COLLECTOR, "closing"},   {COORD_COLLECTOR, "releasing"},
    {COORD_COLLECTOR, "finishing"}, {COORD_COLLECTOR, "failing"},
    {COORD_LEARNER, "queued"},      {COORD_LEARNER, "starting"},
    {COORD_LEARNER, "asking"},      {COORD_LEARNER, "pausing"},
    {COORD_LEARNER, "sampling"},    {COORD_LEARNER, "waiting"},
    {COORD_LEARNER, "learning"},    {COORD_LEARNER, "judging"},
    {COORD_LEARNER, "closing"},     {COORD_LEARNER, "releasing"},
    {COORD_LEARNER, "finishing"},   {COORD_LEARNER, "failing"},
};

typedef struct scene {
    cluster k;
    const spot *at;
    const char *worker; /* the one that has the task, or will */
} scene;

static bool is(const scene *s, const char *state)
{
    return strcmp(s->at->state, state) == 0;
}

/* A cluster of one worker whose task "t" is in the state. */
static void reach(scene *s, const spot *at, const char *config)
{
    cluster *k = &s->k;
    bool collector = at->role == COORD_COLLECTOR;
    s->at = at;
    s->worker = collector ? "c0" : "l0";
    cluster_init(k, 1, collector ? 1 : 0, collector ? 0 : 1);
    cluster_worker *w = cluster_find(k, s->worker);
    w->samples = 2;
    w->learns = 2;
    w->work_ms = 300;
    w->resource_ms = 300;
    w->fail_asks = is(s, "pausing") ? 1 : 0;
    k->callback_ms = 300;
    k->data_in_buffer = 1;
    k->hold_data = is(s, "waiting");
    cluster_start(k, config);
    if (is(s, "queued")) {
        cluster_post(k, at->role, "busy");
        assert_true(cluster_await_task(k, "busy", "asking", 10000));
    }
    cluster_post(k, at->role, "t");
    if (is(s, "failing")) {
        assert_true(cluster_await_task(k, "t", "asking", 10000));
        assert_int_equal(comm_coordinator_cancel_task(k->c, "t", NULL), COORD_OK);
    }
    if (!cluster_await_task(k, "t", at->state, 20000)) {
        fail_msg("the task never was %s", at->state);
    }
    cluster_check(k);
}

static bool has_ended(void *user)
{
    cluster *k = user;
    return cluster_ends(k, "t") == 1;
}

/* The task has its one end within so long, and no second one. */
static void expect_end(scene *s, int64_t limit_ms)
{
    cluster *k = &s->k;
    const char *role = coord_role_str(s->at->role);
    if (coord_sim_run_until(k->sim, limit_ms, has_ended, k, NULL) != COORD_OK) {
        fail_msg("%s %s: no end after %lld ms, it is %s", role, s->at->state,
                 (long long)limit_ms, cluster_task_state(k, "t"));
    }
}

/* Everything is well again: so is the cluster, soon. */
static void expect_recovery(scene *s)
{
    cluster *k = &s->k;
    cluster_worker *w = cluster_find(k, s->worker);
    k->hold_data = false;
    k->callback_ms = 0;
    w->work_ms = 0;
    cluster_run(k,
                TOLERANCE_MS + CHECK_MS + BEAT_MS); /* a quick return is noticed, too */
    if (!cluster_await_worker(k, s->worker, "free", 90000)) {
        fail_msg("%s %s: the worker stays %s", coord_role_str(s->at->role), s->at->state,
                 cluster_worker_state(k, s->worker));
    }
    cluster_check(k);
    cluster_post(k, s->at->role, "again");
    assert_int_equal(comm_coordinator_wait(k->c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(k, "finish", "again"), 1);
    assert_int_equal(cluster_ends(k, "t"), 1);
    assert_int_equal(cluster_ends(k, NULL), is(s, "queued") ? 3 : 2);
    cluster_check(k);
    cluster_done(k);
}

/* Runs one fault through all states. `late_ms`: how long after the fault the worker may
 * still be heard. */
static void everywhere(void (*strike)(scene *s), void (*mend)(scene *s), int64_t late_ms)
{
    static scene s;
    for (size_t i = 0; i < sizeof SPOTS / sizeof SPOTS[0]; i++) {
        reach(&s, &SPOTS[i], "");
        strike(&s);
        s.k.hold_data = false;
        if (is(&s, "queued")) { /* it waits for a worker, which there is none */
            cluster_run(&s.k, TOLERANCE_MS + CHECK_MS + SLACK_MS + late_ms);
            assert_int_equal(cluster_count(&s.k, "fail", "busy"), 1);
            assert_int_equal(cluster_ends(&s.k, "t"), 0);
            cluster_check(&s.k);
            mend(&s);
            expect_end(&s, 90000);
        } else {
            expect_end(&s, TOLERANCE_MS + CHECK_MS + SLACK_MS + late_ms);
            cluster_check(&s.k);
            mend(&s);
        }
        expect_recovery(&s);
    }
}

static void crash(scene *s)
{
    cluster_crash(&s->k, s->worker);
}

static void revive(scene *s)
{
    cluster_revive(&s->k, s->worker);
}

static void a_worker_that_dies_in_any_state_ends_its_task_once(void **state)
{
    (void)state;
    everywhere(crash, revive, 0);
}

static void stop(scene *s)
{
    coord_sim_pause(s->k.sim, cluster_find(&s->k, s->worker)->loop, true);
}

static void go_on(scene *s)
{
    coord_sim_pause(s->k.sim, cluster_find(&s->k, s->worker)->loop, false);
}

static void a_worker_that_falls_silent_in_any_state_ends_its_task_once(void **state)
{
    (void)state;
    everywhere(stop, go_on, 0);
}

static void cut(scene *s, bool in, bool out)
{
    const char *host = cluster_find(&s->k, s->worker)->host;
    if (in) {
        assert_int_equal(coord_sim_block(s->k.sim, host, "10.0.0.1", true, NULL),
                         COORD_OK);
    }
    if (out) {
        assert_int_equal(coord_sim_block(s->k.sim, "10.0.0.1", host, true, NULL),
                         COORD_OK);
    }
}

static void cut_from_it(scene *s)
{
    cut(s, true, false);
}

static void cut_to_it(scene *s)
{
    cut(s, false, true);
}

static void cut_both(scene *s)
{
    cut(s, true, true);
}

static void heal(scene *s)
{
    coord_sim_heal(s->k.sim);
}

static void a_worker_that_can_not_be_heard_ends_its_task_once(void **state)
{
    (void)state;
    everywhere(cut_from_it, heal, 0);
}

/* Over the connections that are open it is still heard, once. */
static void a_worker_that_can_not_be_reached_ends_its_task_once(void **state)
{
    (void)state;
    everywhere(cut_to_it, heal, BEAT_MS + 1000);
}

static void a_worker_behind_a_partition_ends_its_task_once(void **state)
{
    (void)state;
    everywhere(cut_both, heal, 0);
}

static void cancel(scene *s)
{
    assert_int_equal(comm_coordinator_cancel_task(s->k.c, "t", NULL), COORD_OK);
}

static void a_task_can_be_canceled_in_every_state(void **state)
{
    static scene s;
    (void)state;
    for (size_t i = 0; i < sizeof SPOTS / sizeof SPOTS[0]; i++) {
        reach(&s, &SPOTS[i], "");
        cancel(&s);
        cancel(&s);
        expect_end(&s, SLACK_MS);
        if (cluster_count(&s.k, "fail", "t") == 1) {
            char status[16];
            (void)snprintf(status, sizeof status, "%d ", (int)COORD_ERR_CANCELED);
            assert_memory_equal(cluster_last(&s.k, "fail", "t")->detail, status,
                                strlen(status));
        }
        expect_recovery(&s);
    }
}

static void the_coordinator_can_be_closed_in_every_state(void **state)
{
    static scene s;
    coord_error err;
    (void)state;
    for (size_t i = 0; i < sizeof SPOTS / sizeof SPOTS[0]; i++) {
        reach(&s, &SPOTS[i], "");
        int64_t began = coord_sim_now_ms(s.k.sim);
        assert_int_equal(cluster_close(&s.k, &err), COORD_OK);
        assert_in_range(coord_sim_now_ms(s.k.sim) - began, 0, SLACK_MS);
        assert_int_equal(cluster_ends(&s.k, "t"), 1);
        assert_int_equal(cluster_ends(&s.k, NULL), is(&s, "queued") ? 2 : 1);
        cluster_worker *w = cluster_find(&s.k, s.worker);
        cluster_run(&s.k, 1000);
        assert_false(coord_slave_is_connected(w->collector != NULL
                                                  ? coord_collector_slave(w->collector)
                                                  : coord_learner_slave(w->learner)));
        cluster_done(&s.k);
    }
}

static void the_coordinator_closes_in_time_whatever_its_worker_does(void **state)
{
    static scene s;
    static void (*const STRIKES[])(scene *) = {crash, stop, cut_both, cut_to_it};
    coord_error err;
    (void)state;
    for (size_t i = 0; i < sizeof SPOTS / sizeof SPOTS[0]; i++) {
        for (size_t n = 0; n < sizeof STRIKES / sizeof STRIKES[0]; n++) {
            reach(&s, &SPOTS[i], "\"close_timeout_s\": 10,");
            STRIKES[n](&s);
            if (n % 2 == 1) {
                cluster_run(&s.k, 5000); /* it has not been noticed yet, or only just */
            }
            int64_t began = coord_sim_now_ms(s.k.sim);
            if (cluster_close(&s.k, &err) != COORD_OK) {
                fail_msg("%s %s, strike %zu: %s", coord_role_str(s.at->role), s.at->state,
                         n, err.text);
            }
            assert_in_range(coord_sim_now_ms(s.k.sim) - began, 0, 10000);
            assert_int_equal(cluster_ends(&s.k, "t"), 1);
            cluster_done(&s.k);
        }
    }
}

static void the_coordinator_can_be_destroyed_in_every_state(void **state)
{
    static scene s;
    (void)state;
    for (size_t i = 0; i < sizeof SPOTS / sizeof SPOTS[0]; i++) {
        reach(&s, &SPOTS[i], "");
        int before = s.k.event_count;
        comm_coordinator_destroy(s.k.c);
        s.k.c = NULL;
        s.k.closed = true;
        cluster_run(&s.k, 30000);
        assert_int_equal(s.k.event_count, before);
        cluster_done(&s.k);
    }
}

/* ---- no memory ---- */

typedef struct shortage {
    int left; /* allocations that still work */
    bool hit;
} shortage;

static bool run_out(void *user)
{
    shortage *m = user;
    m->hit = m->hit || m->left == 0;
    return m->left-- == 0;
}

static bool posted(cluster *k, coord_role role, const char *id)
{
    coord_error err;
    coord_text task = cluster_task(id);
    coord_status rc = role == COORD_COLLECTOR
                          ? comm_coordinator_post_collector_task(k->c, task, &err)
                          : comm_coordinator_post_learner_task(k->c, task, &err);
    if (rc != COORD_OK && rc != COORD_ERR_NOMEM) {
        fail_msg("post: %d %s", (int)rc, err.text);
    }
    return rc == COORD_OK;
}

static bool have_ended(void *user)
{
    cluster *k = user;
    return cluster_ends(k, "c") == 1 && cluster_ends(k, "l") == 1;
}

/* Whichever single allocation fails while tasks run: each still has one end, and all
 * workers are free again (G8). */
static void any_allocation_may_fail_while_tasks_run(void **state)
{
    static cluster k;
    shortage m = {.hit = true};
    (void)state;
    for (int n = 0; m.hit; n++) {
        m = (shortage){.left = n};
        cluster_init(&k, 1, 1, 1);
        k.data_in_buffer = 1;
        cluster_start(&k, "");
        coordi_alloc_set_fault(run_out, &m);
        int begun = posted(&k, COORD_COLLECTOR, "c") + posted(&k, COORD_LEARNER, "l");
        (void)(coord_sim_run_until(k.sim, 10000, have_ended, &k, NULL) == COORD_OK);
        coordi_alloc_set_fault(NULL, NULL);
        if (comm_coordinator_wait(k.c, 200000, NULL) != COORD_OK) {
            fail_msg("allocation %d: tasks are %s and %s", n, cluster_task_state(&k, "c"),
                     cluster_task_state(&k, "l"));
        }
        assert_int_equal(cluster_ends(&k, NULL), begun);
        if (!cluster_await_worker(&k, "c0", "free", 120000) ||
            !cluster_await_worker(&k, "l0", "free", 120000)) {
            fail_msg("allocation %d: workers are %s and %s", n,
                     cluster_worker_state(&k, "c0"), cluster_worker_state(&k, "l0"));
        }
        cluster_check(&k);
        cluster_done(&k);
    }
}

static void any_allocation_may_fail_while_it_starts(void **state)
{
    static cluster k;
    shortage m = {.hit = true};
    coord_error err;
    (void)state;
    for (int n = 0; m.hit; n++) {
        m = (shortage){.left = n};
        cluster_init(&k, 1, 1, 1);
        cluster_create(&k, "");
        coordi_alloc_set_fault(run_out, &m);
        coord_status rc = comm_coordinator_start(k.c, &err);
        coordi_alloc_set_fault(NULL, NULL);
        if (rc == COORD_ERR_NOMEM) {
            rc = comm_coordinator_start(k.c, &err);
        }
        assert_int_equal(rc, COORD_OK);
        cluster_post(&k, COORD_COLLECTOR, "c");
        assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
        assert_int_equal(cluster_count(&k, "finish", "c"), 1);
        cluster_done(&k);
    }
}

static void any_allocation_may_fail_while_it_closes(void **state)
{
    static cluster k;
    shortage m = {.hit = true};
    coord_error err;
    (void)state;
    for (int n = 0; m.hit; n++) {
        m = (shortage){.left = n};
        cluster_init(&k, 1, 2, 0);
        k.workers[0].work_ms = 500;
        cluster_start(&k, "");
        cluster_post(&k, COORD_COLLECTOR, "c");
        cluster_run(&k, 100);
        coordi_alloc_set_fault(run_out, &m);
        coord_status rc = cluster_close(&k, &err);
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(rc == COORD_OK || rc == COORD_ERR_NOMEM);
        assert_int_equal(cluster_close(&k, &err), COORD_OK);
        assert_int_equal(cluster_ends(&k, "c"), 1);
        cluster_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_dies_in_any_state_ends_its_task_once),
        cmocka_unit_test(a_worker_that_falls_silent_in_any_state_ends_its_task_once),
        cmocka_unit_test(a_worker_that_can_not_be_heard_ends_its_task_once),
        cmocka_unit_test(a_worker_that_can_not_be_reached_ends_its_task_once),
        cmocka_unit_test(a_worker_behind_a_partition_ends_its_task_once),
        cmocka_unit_test(a_task_can_be_canceled_in_every_state),
        cmocka_unit_test(the_coordinator_can_be_closed_in_every_state),
        cmocka_unit_test(the_coordinator_closes_in_time_whatever_its_worker_does),
        cmocka_unit_test(the_coordinator_can_be_destroyed_in_every_state),
        cmocka_unit_test(any_allocation_may_fail_while_tasks_run),
        cmocka_unit_test(any_allocation_may_fail_while_it_starts),
        cmocka_unit_test(any_allocation_may_fail_while_it_closes),
    };
    return cmocka_run_group_tests_name("coordinator faults", tests, NULL, NULL);
}
