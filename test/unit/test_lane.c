/* Executors and lanes, on the real loop. */
#include "base/alloc.h"
#include "env/lane.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

typedef struct rig {
    coord_loop *loop;
    coordi_executor *executor;
    coordi_event *event;
} rig;

static void rig_open(rig *r, coord_executor kind, size_t threads)
{
    assert_int_equal(coord_loop_create(NULL, &r->loop, NULL), COORD_OK);
    coord_error err;
    assert_int_equal(coordi_executor_create(r->loop, kind, threads, &r->executor, &err),
                     COORD_OK);
    r->event = r->loop->env->event_create(r->loop);
    assert_non_null(r->event);
}

static void rig_close(rig *r)
{
    coordi_executor_destroy(r->executor);
    r->loop->env->event_destroy(r->event);
    coordi_loop_retire(r->loop); /* all threads are gone when this returns */
}

static bool await(rig *r)
{
    return r->loop->env->event_wait(r->event, coordi_now(r->loop) + PATIENCE_MS);
}

static coordi_lane *lane_open(rig *r)
{
    coordi_lane *lane = NULL;
    coord_error err;
    assert_int_equal(coordi_lane_open(r->executor, &lane, &err), COORD_OK);
    return lane;
}

/* A job that notes when it ran; the last one tells the rig. */
typedef struct task {
    coordi_job job;
    rig *rig;
    atomic_int *left;
    atomic_int *running; /* of its lane */
    atomic_int *last;    /* id of the job before it in its lane */
    int id;
    bool overlapped;
    bool out_of_order;
    bool inside;
} task;

static void task_run(coordi_job *job)
{
    task *t = COORDI_ITEM(job, task, job);
    t->overlapped = atomic_fetch_add(t->running, 1) != 0;
    t->out_of_order = atomic_exchange(t->last, t->id) != t->id - 1;
    t->inside = coordi_inside(t->rig->loop);
    (void)sched_yield();
    (void)atomic_fetch_sub(t->running, 1);
    if (atomic_fetch_sub(t->left, 1) == 1) {
        t->rig->loop->env->event_set(t->rig->event);
    }
}

enum { LANES = 20, JOBS = 100 };

static void run_many(coord_executor kind, size_t threads)
{
    static task tasks[LANES][JOBS];
    atomic_int running[LANES];
    atomic_int last[LANES];
    atomic_int left = LANES * JOBS;
    coordi_lane *lanes[LANES];
    rig r;
    rig_open(&r, kind, threads);
    for (int i = 0; i < LANES; i++) {
        lanes[i] = lane_open(&r);
        atomic_init(&running[i], 0);
        atomic_init(&last[i], -1);
    }
    for (int k = 0; k < JOBS; k++) {
        for (int i = 0; i < LANES; i++) {
            tasks[i][k] = (task){.job.run = task_run, .rig = &r, .left = &left};
            tasks[i][k].running = &running[i];
            tasks[i][k].last = &last[i];
            tasks[i][k].id = k;
            coordi_lane_run(lanes[i], &tasks[i][k].job);
        }
    }
    for (int i = 0; i < LANES; i++) {
        coordi_lane_close(lanes[i]); /* what is queued still runs */
    }
    assert_true(await(&r));
    rig_close(&r);
    for (int i = 0; i < LANES; i++) {
        for (int k = 0; k < JOBS; k++) {
            assert_false(tasks[i][k].overlapped);
            assert_false(tasks[i][k].out_of_order);
            assert_int_equal(tasks[i][k].inside, kind == COORD_EXECUTOR_INLINE);
        }
    }
}

static void jobs_of_a_lane_run_in_order_and_one_at_a_time(void **state)
{
    (void)state;
    run_many(COORD_EXECUTOR_PER_TASK, 0);
    run_many(COORD_EXECUTOR_POOL, 1);
    run_many(COORD_EXECUTOR_POOL, 4);
    run_many(COORD_EXECUTOR_INLINE, 0);
}

/* A job that waits until all jobs of its kind are running. */
typedef struct meeting {
    coordi_job job;
    rig *rig;
    coordi_event *go;
    atomic_int *here;
    int all;
} meeting;

static void meet(coordi_job *job)
{
    meeting *m = COORDI_ITEM(job, meeting, job);
    if (atomic_fetch_add(m->here, 1) + 1 == m->all) {
        m->rig->loop->env->event_set(m->rig->event);
    }
    (void)m->rig->loop->env->event_wait(m->go, coordi_now(m->rig->loop) + PATIENCE_MS);
}

static void arrive(coordi_job *job)
{
    meeting *m = COORDI_ITEM(job, meeting, job);
    if (atomic_fetch_add(m->here, 1) + 1 == m->all) {
        m->rig->loop->env->event_set(m->rig->event);
    }
}

static void per_task_lanes_never_wait_for_each_other(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, COORD_EXECUTOR_PER_TASK, 0);
    meeting meetings[LANES];
    meeting arrivals[LANES];
    coordi_event *go[LANES];
    coordi_lane *lanes[LANES];
    for (int i = 0; i < LANES; i++) {
        go[i] = r.loop->env->event_create(r.loop);
    }
    for (int round = 0; round < 3; round++) {
        atomic_int here = 0;
        for (int i = 0; i < LANES; i++) {
            lanes[i] = lane_open(&r);
            meetings[i] =
                (meeting){.job.run = meet, .rig = &r, .go = go[i], .here = &here};
            meetings[i].all = LANES;
            coordi_lane_run(lanes[i], &meetings[i].job);
        }
        assert_true(await(&r)); /* all of them are inside, at once */
        atomic_init(&here, 0);
        for (int i = 0; i < LANES; i++) {
            r.loop->env->event_set(go[i]);
        }
        for (int i = 0; i < LANES; i++) { /* behind the meeting in the same lane */
            arrivals[i] = (meeting){.job.run = arrive, .rig = &r, .here = &here};
            arrivals[i].all = LANES;
            coordi_lane_run(lanes[i], &arrivals[i].job);
            coordi_lane_close(lanes[i]);
        }
        assert_true(await(&r));
    }
    for (int i = 0; i < LANES; i++) {
        r.loop->env->event_destroy(go[i]);
    }
    rig_close(&r);
}

typedef struct chain {
    coordi_job job;
    rig *rig;
    coordi_lane *lane;
    int left;
} chain;

static void chain_run(coordi_job *job)
{
    chain *c = COORDI_ITEM(job, chain, job);
    if (--c->left > 0) {
        coordi_lane_run(c->lane, job); /* a job may queue itself again */
        return;
    }
    coordi_lane_close(c->lane);
    c->rig->loop->env->event_set(c->rig->event);
}

static void a_job_can_queue_itself_again_and_close_its_lane(void **state)
{
    (void)state;
    const coord_executor kinds[] = {COORD_EXECUTOR_PER_TASK, COORD_EXECUTOR_POOL,
                                    COORD_EXECUTOR_INLINE};
    for (size_t i = 0; i < 3; i++) {
        rig r;
        rig_open(&r, kinds[i], 2);
        chain c = {.job.run = chain_run, .rig = &r, .lane = lane_open(&r), .left = 1000};
        coordi_lane_run(c.lane, &c.job);
        assert_true(await(&r));
        rig_close(&r);
    }
}

static void lanes_opened_and_closed_unused_leave_nothing(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, COORD_EXECUTOR_PER_TASK, 0);
    for (int i = 0; i < 100; i++) {
        coordi_lane_close(lane_open(&r));
    }
    rig_close(&r);
    rig_open(&r, COORD_EXECUTOR_POOL, 3);
    rig_close(&r);
    coordi_executor_destroy(NULL);
    coordi_lane_close(NULL);
}

static void jobs_queued_before_the_executor_is_destroyed_still_run(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, COORD_EXECUTOR_POOL, 2);
    chain c = {.job.run = chain_run, .rig = &r, .lane = lane_open(&r), .left = 500};
    coordi_lane_run(c.lane, &c.job);
    coordi_executor_destroy(r.executor);
    r.executor = NULL;
    assert_true(await(&r));
    rig_close(&r);
}

static bool countdown(void *user)
{
    return (*(int *)user)-- == 0;
}

static void opening_a_lane_survives_every_failed_allocation(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, COORD_EXECUTOR_PER_TASK, 0);
    bool opened = false;
    for (int n = 0; !opened; n++) {
        int left = n;
        coordi_lane *lane = NULL;
        coord_error err = {0};
        coordi_alloc_set_fault(countdown, &left);
        coord_status rc = coordi_lane_open(r.executor, &lane, &err);
        coordi_alloc_set_fault(NULL, NULL);
        opened = rc == COORD_OK;
        if (!opened) {
            assert_int_equal(rc, COORD_ERR_NOMEM);
            assert_int_equal(err.status, COORD_ERR_NOMEM);
        }
        coordi_lane_close(lane);
    }
    rig_close(&r);
}

static void a_pool_of_no_threads_is_refused(void **state)
{
    (void)state;
    coord_loop *loop = NULL;
    assert_int_equal(coord_loop_create(NULL, &loop, NULL), COORD_OK);
    coordi_executor *executor = NULL;
    coord_error err;
    assert_int_equal(
        coordi_executor_create(loop, COORD_EXECUTOR_POOL, 0, &executor, &err),
        COORD_ERR_ARG);
    coord_loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_a_lane_run_in_order_and_one_at_a_time),
        cmocka_unit_test(per_task_lanes_never_wait_for_each_other),
        cmocka_unit_test(a_job_can_queue_itself_again_and_close_its_lane),
        cmocka_unit_test(lanes_opened_and_closed_unused_leave_nothing),
        cmocka_unit_test(jobs_queued_before_the_executor_is_destroyed_still_run),
        cmocka_unit_test(opening_a_lane_survives_every_failed_allocation),
        cmocka_unit_test(a_pool_of_no_threads_is_refused),
    };
    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
