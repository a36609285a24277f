#include "env/lane.h"

#include "base/alloc.h"
#include "base/error.h"

#include <pthread.h>

/* Vocabulary
 *   worker   a thread of an executor
 *   ready    a lane that has jobs and that no worker runs; in executor->ready, first come
 *            first served
 *   idle     a worker asleep; in executor->idle, last come first served
 *   reaping  joining a worker that is about to end; a job of the loop thread, so that no
 *            thread is left when the loop goes
 *
 * Invariants
 *   A lane is in `ready`, or run by one worker, or has no jobs.
 *   A worker that is taken out of `idle` is woken exactly once.
 *   An executor lives while it is not closed, or has an open lane, or a worker that was
 *   not reaped; it holds its loop all that time.
 *
 * `lock` guards all fields of executor, lanes and workers, and nothing is called under it
 * but the list and memory functions: the simulated world switches threads in all others.
 */

enum { SPARE_WORKERS = 8 }; /* idle threads kept beyond what the open lanes need */

struct coordi_executor {
    coord_loop *loop;
    coord_executor kind;
    size_t pool_size;
    pthread_mutex_t lock;
    coordi_link ready;
    coordi_link idle;
    size_t lanes;    /* open, or closed with jobs left */
    size_t workers;  /* that don't end yet */
    size_t unreaped; /* all that have a thread */
    bool closed;     /* destroyed by its owner */
};

struct coordi_lane {
    coordi_executor *executor;
    coordi_link link; /* in executor->ready */
    coordi_link jobs;
    bool running;
    bool closed;
};

typedef struct worker {
    coordi_executor *executor;
    coordi_link link; /* in executor->idle */
    coordi_event *wake;
    coordi_thread *thread; /* NULL until thread_start() has returned */
    coordi_job reap;
} worker;

coord_status coordi_executor_create(coord_loop *loop, coord_executor kind, size_t threads,
                                    coordi_executor **ret, coord_error *err)
{
    if (kind != COORD_EXECUTOR_PER_TASK && kind != COORD_EXECUTOR_POOL &&
        kind != COORD_EXECUTOR_INLINE) {
        return coordi_fail(err, COORD_ERR_ARG, "executor: %d is none", (int)kind);
    }
    if (kind == COORD_EXECUTOR_POOL && threads == 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "executor: a pool needs at least one thread");
    }
    coordi_executor *executor = coordi_zalloc(sizeof *executor);
    if (executor == NULL || pthread_mutex_init(&executor->lock, NULL) != 0) {
        coordi_free(executor);
        return coordi_fail_nomem(err, "executor");
    }
    executor->loop = coordi_loop_ref(loop);
    executor->kind = kind;
    executor->pool_size = threads;
    coordi_list_init(&executor->ready);
    coordi_list_init(&executor->idle);
    *ret = executor;
    return COORD_OK;
}

static void lock(coordi_executor *executor)
{
    (void)pthread_mutex_lock(&executor->lock);
}

static void unlock(coordi_executor *executor)
{
    (void)pthread_mutex_unlock(&executor->lock);
}

static bool is_over_locked(const coordi_executor *executor)
{
    return executor->closed && executor->lanes == 0 && executor->unreaped == 0;
}

static void discard(coordi_executor *executor)
{
    coord_loop *loop = executor->loop;
    (void)pthread_mutex_destroy(&executor->lock);
    coordi_free(executor);
    coordi_loop_unref(loop);
}

/* ---- workers ---- */

/* How many workers the executor wants now; a pool keeps its size while lanes are open. */
static size_t wanted_locked(const coordi_executor *executor)
{
    if (executor->closed && executor->lanes == 0) {
        return 0;
    }
    if (executor->kind == COORD_EXECUTOR_POOL) {
        return executor->pool_size;
    }
    return executor->lanes + (executor->closed ? 0 : SPARE_WORKERS);
}

/* The event of an idle worker that is now to look around; NULL when none is idle. */
static coordi_event *rouse_locked(coordi_executor *executor)
{
    coordi_link *link = coordi_list_pop(&executor->idle);
    return link == NULL ? NULL : COORDI_ITEM(link, worker, link)->wake;
}

static void set(coordi_executor *executor, coordi_event *event)
{
    if (event != NULL) {
        executor->loop->env->event_set(event);
    }
}

static void worker_free(worker *who)
{
    if (who->wake != NULL) {
        who->executor->loop->env->event_destroy(who->wake);
    }
    coordi_free(who);
}

static void worker_reap(coordi_job *job)
{
    worker *who = COORDI_ITEM(job, worker, reap);
    coordi_executor *executor = who->executor;
    lock(executor);
    coordi_thread *thread = who->thread;
    unlock(executor);
    if (thread == NULL) { /* its starter has not even learnt that it started */
        coordi_post(executor->loop, job);
        return;
    }
    executor->loop->env->thread_join(thread);
    worker_free(who);
    lock(executor);
    executor->unreaped--;
    const bool over = is_over_locked(executor);
    unlock(executor);
    if (over) {
        discard(executor);
    }
}

/* Runs one job of a ready lane. */
static void lane_turn_locked(coordi_executor *executor)
{
    coordi_lane *lane = COORDI_ITEM(coordi_list_pop(&executor->ready), coordi_lane, link);
    coordi_job *job = COORDI_ITEM(coordi_list_pop(&lane->jobs), coordi_job, link);
    lane->running = true;
    unlock(executor);
    job->run(job);
    lock(executor);
    lane->running = false;
    if (!coordi_list_empty(&lane->jobs)) {
        coordi_list_append(&executor->ready, &lane->link);
    } else if (lane->closed) {
        executor->lanes--;
        coordi_free(lane);
    }
}

static void worker_main(void *arg)
{
    worker *who = arg;
    coordi_executor *executor = who->executor;
    lock(executor);
    for (;;) {
        if (!coordi_list_empty(&executor->ready)) {
            lane_turn_locked(executor);
            continue;
        }
        if (executor->workers > wanted_locked(executor)) {
            break;
        }
        coordi_list_prepend(&executor->idle, &who->link);
        unlock(executor);
        (void)executor->loop->env->event_wait(who->wake, INT64_MAX);
        lock(executor);
    }
    executor->workers--;
    /* Whoever ends passes the word on: others may be too many as well. */
    coordi_event *next =
        executor->workers > wanted_locked(executor) ? rouse_locked(executor) : NULL;
    unlock(executor);
    set(executor, next);
    coordi_post(executor->loop, &who->reap);
}

static coord_status worker_start(coordi_executor *executor, coord_error *err)
{
    worker *who = coordi_zalloc(sizeof *who);
    if (who == NULL) {
        return coordi_fail_nomem(err, "worker thread");
    }
    who->executor = executor;
    who->reap.run = worker_reap;
    who->wake = executor->loop->env->event_create(executor->loop);
    if (who->wake == NULL) {
        coordi_free(who);
        return coordi_fail_nomem(err, "worker thread");
    }
    lock(executor);
    executor->workers++;
    executor->unreaped++;
    unlock(executor);
    coordi_thread *thread = NULL;
    coord_status rc = executor->loop->env->thread_start(executor->loop, "coord-task",
                                                        worker_main, who, &thread, err);
    lock(executor);
    if (rc == COORD_OK) {
        who->thread = thread;
    } else {
        executor->workers--;
        executor->unreaped--;
    }
    unlock(executor);
    if (rc != COORD_OK) {
        worker_free(who);
    }
    return rc;
}

/* ---- lanes ---- */

static bool needs_worker_locked(const coordi_executor *executor)
{
    switch (executor->kind) {
    case COORD_EXECUTOR_PER_TASK:
        return executor->workers < executor->lanes;
    case COORD_EXECUTOR_POOL:
        return executor->workers < executor->pool_size;
    case COORD_EXECUTOR_INLINE:
        break;
    }
    return false;
}

/* A lane has gone; lets workers end that it leaves without work. */
static void lane_gone(coordi_executor *executor)
{
    lock(executor);
    executor->lanes--;
    const bool over = is_over_locked(executor);
    coordi_event *next =
        executor->workers > wanted_locked(executor) ? rouse_locked(executor) : NULL;
    unlock(executor);
    set(executor, next);
    if (over) {
        discard(executor);
    }
}

coord_status coordi_lane_open(coordi_executor *executor, coordi_lane **ret,
                              coord_error *err)
{
    coordi_lane *lane = coordi_zalloc(sizeof *lane);
    if (lane == NULL) {
        return coordi_fail_nomem(err, "lane");
    }
    lane->executor = executor;
    coordi_list_init(&lane->jobs);
    lock(executor);
    const bool closed = executor->closed;
    executor->lanes += closed ? 0 : 1;
    unlock(executor);
    if (closed) {
        coordi_free(lane);
        return coordi_fail(err, COORD_ERR_CLOSED, "lane: the executor is closed");
    }
    coord_status rc = COORD_OK;
    for (bool more = true; more && rc == COORD_OK;) {
        lock(executor);
        more = needs_worker_locked(executor);
        unlock(executor);
        if (more) {
            rc = worker_start(executor, err);
        }
    }
    if (rc != COORD_OK) {
        coordi_free(lane);
        lane_gone(executor);
        return rc;
    }
    *ret = lane;
    return COORD_OK;
}

void coordi_lane_run(coordi_lane *lane, coordi_job *job)
{
    coordi_executor *executor = lane->executor;
    if (executor->kind == COORD_EXECUTOR_INLINE) {
        coordi_post(executor->loop, job);
        return;
    }
    lock(executor);
    const bool ready = !lane->running && coordi_list_empty(&lane->jobs);
    coordi_list_append(&lane->jobs, &job->link);
    coordi_event *next = NULL;
    if (ready) {
        coordi_list_append(&executor->ready, &lane->link);
        next = rouse_locked(executor);
    }
    unlock(executor);
    set(executor, next);
}

void coordi_lane_close(coordi_lane *lane)
{
    if (lane == NULL) {
        return;
    }
    coordi_executor *executor = lane->executor;
    lock(executor);
    lane->closed = true;
    const bool gone = !lane->running && coordi_list_empty(&lane->jobs);
    unlock(executor);
    if (gone) {
        coordi_free(lane);
        lane_gone(executor);
    }
}

void coordi_executor_destroy(coordi_executor *executor)
{
    if (executor == NULL) {
        return;
    }
    lock(executor);
    executor->closed = true;
    const bool over = is_over_locked(executor);
    coordi_event *next =
        executor->workers > wanted_locked(executor) ? rouse_locked(executor) : NULL;
    unlock(executor);
    set(executor, next);
    if (over) {
        discard(executor);
    }
}
