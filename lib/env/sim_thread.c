#include "env/sim.h"

#include "base/alloc.h"
#include "base/error.h"

#include <signal.h>
#include <stdio.h>

/* Threads of the world, and events.
 *
 * A thread of the world is a real thread that runs only while it has the baton:
 * sim->holder. It gets it from the driver, who then sleeps until it comes back, which is
 * when the thread waits in here or has returned. Whoever hands it over gives up the
 * world's lock before he wakes the other one, who would only run into it.
 *
 * Outside threads never have the baton: when they wait, they run the world. */

static _Thread_local coordi_thread *current_thread;

coordi_thread *coordi_sim_self(const coord_sim *sim)
{
    return current_thread != NULL && current_thread->sim == sim ? current_thread : NULL;
}

static void await(sem_t *word)
{
    while (sem_wait(word) != 0) { /* a signal of the host's */
    }
}

/* Driver: lends the baton, and waits for it. */
static void lend(coordi_thread *thread)
{
    coord_sim *sim = thread->sim;
    sim->holder = thread;
    (void)pthread_mutex_unlock(&sim->lock);
    (void)sem_post(&thread->turn);
    await(&sim->back);
    (void)pthread_mutex_lock(&sim->lock);
}

/* Gives up the lock, too. */
static void give_back(coord_sim *sim)
{
    sim->holder = NULL;
    (void)pthread_mutex_unlock(&sim->lock);
    (void)sem_post(&sim->back);
}

static void await_turn(coordi_thread *self)
{
    await(&self->turn);
    (void)pthread_mutex_lock(&self->sim->lock);
}

void coordi_sim_sleep(coordi_thread *self, int64_t until_ms)
{
    coordi_sim_at(self->sim, &self->actor, until_ms);
    give_back(self->sim);
    await_turn(self);
}

void coordi_sim_maybe_yield(coord_sim *sim)
{
    coordi_thread *self = coordi_sim_self(sim);
    if (self != NULL && coordi_sim_chance(sim, sim->options.yield_chance)) {
        coordi_sim_ready(sim, &self->actor);
        give_back(sim);
        await_turn(self);
    }
}

static void act(coord_sim *sim, coordi_sim_actor *actor)
{
    coordi_thread *thread = COORDI_ITEM(actor, coordi_thread, actor);
    coordi_sim_tell(sim, actor->loop, "thread %u", thread->index);
    coordi_sim_mix(sim, &thread->index, sizeof thread->index);
    lend(thread);
}

static void set_event(coordi_event *event)
{
    event->is_set = true;
    for (coordi_link *at = event->waiters.next; at != &event->waiters; at = at->next) {
        coordi_thread *waiter = COORDI_ITEM(at, coordi_thread, waiting);
        coordi_sim_awake(waiter->actor.loop);
        if (!coordi_linked(&waiter->actor.held)) {
            coordi_sim_ready(event->sim, &waiter->actor);
        }
    }
}

static void *thread_main(void *arg)
{
    coordi_thread *self = arg;
    coord_sim *sim = self->sim;
    current_thread = self;
    await(&self->turn);
    self->run(self->arg);
    (void)pthread_mutex_lock(&sim->lock);
    set_event(&self->ended);
    give_back(sim);
    return NULL;
}

/* ---- start and join ---- */

static int start_real(coordi_thread *thread, const char *name)
{
    sigset_t all;
    sigset_t before;
    char short_name[16];
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* what it inherits */
    int rc = pthread_create(&thread->id, NULL, thread_main, thread);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) {
        (void)snprintf(short_name, sizeof short_name, "%s", name);
        (void)pthread_setname_np(thread->id, short_name);
    }
    return rc;
}

static coord_status start(coord_sim *sim, coordi_sim_loop *loop, const char *name,
                          coordi_thread *thread, coord_error *err)
{
    thread->sim = sim;
    thread->ended.sim = sim;
    coordi_list_init(&thread->ended.waiters);
    if (!coordi_sim_add(sim, &thread->actor, act, loop)) {
        return coordi_fail_nomem(err, "sim: thread");
    }
    (void)sem_init(&thread->turn, 0, 0);
    int rc = start_real(thread, name);
    if (rc != 0) {
        coordi_sim_drop(sim, &thread->actor);
        (void)sem_destroy(&thread->turn);
        return coordi_fail_errno(err, rc, "sim: start thread %s", name);
    }
    thread->index = ++sim->thread_count;
    coordi_list_append(&sim->threads, &thread->link);
    sim->refs++;
    coordi_sim_ready(sim, &thread->actor);
    return COORD_OK;
}

static coord_status make(coord_sim *sim, coordi_sim_loop *loop, const char *name,
                         void (*run)(void *arg), void *arg, coordi_thread **ret,
                         coord_error *err)
{
    coordi_thread *thread = coordi_zalloc(sizeof *thread);
    if (thread == NULL) {
        return coordi_fail_nomem(err, "sim: thread");
    }
    thread->run = run;
    thread->arg = arg;
    (void)pthread_mutex_lock(&sim->lock);
    coord_status rc = start(sim, loop, name, thread, err);
    (void)pthread_mutex_unlock(&sim->lock);
    if (rc != COORD_OK) {
        coordi_free(thread);
        return rc;
    }
    *ret = thread;
    return COORD_OK;
}

coord_status coordi_sim_thread_start(coord_loop *base, const char *name,
                                     void (*run)(void *arg), void *arg,
                                     coordi_thread **ret, coord_error *err)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    return make(loop->sim, loop, name, run, arg, ret, err);
}

void coordi_sim_threads_leave(coordi_sim_loop *loop)
{
    coordi_link *head = &loop->sim->threads;
    for (coordi_link *at = head->next; at != head; at = at->next) {
        coordi_thread *thread = COORDI_ITEM(at, coordi_thread, link);
        if (thread->actor.loop == loop) {
            thread->actor.loop = NULL;
        }
    }
}

/* Waits like the caller can: false when the limit passed, or it can't wait. */
static bool await_end(coordi_thread *thread, int64_t limit_ms)
{
    coord_sim *sim = thread->sim;
    coordi_thread *self = coordi_sim_self(sim);
    while (!thread->ended.is_set) {
        if (self != NULL && sim->now_ms < limit_ms) {
            coordi_list_append(&thread->ended.waiters, &self->waiting);
            coordi_sim_sleep(self, limit_ms);
            coordi_list_remove(&self->waiting);
        } else if (self == NULL && coordi_sim_may_drive(sim)) {
            if (coordi_sim_spins(sim) || !coordi_sim_drive(sim, limit_ms)) {
                coordi_sim_jump(sim, limit_ms);
                return thread->ended.is_set;
            }
        } else if (self == NULL && sim->holder == NULL) {
            /* In code of a loop, where nothing else can run. By the contract the thread
             * is about to return: let it. */
            coordi_sim_calm(sim, &thread->actor);
            lend(thread);
            return thread->ended.is_set;
        } else {
            return false;
        }
    }
    return true;
}

/* The thread has ended; gives up the lock. */
static void free_thread(coordi_thread *thread)
{
    coord_sim *sim = thread->sim;
    (void)pthread_mutex_unlock(&sim->lock);
    (void)pthread_join(thread->id, NULL);
    (void)pthread_mutex_lock(&sim->lock);
    coordi_sim_drop(sim, &thread->actor);
    coordi_list_remove(&thread->link);
    (void)sem_destroy(&thread->turn);
    coordi_free(thread);
    coordi_sim_unlock_unref(sim);
}

void coordi_sim_thread_join(coordi_thread *thread)
{
    coord_sim *sim = thread->sim;
    (void)pthread_mutex_lock(&sim->lock);
    coordi_sim_awake(thread->actor.loop);
    if (await_end(thread, INT64_MAX)) {
        free_thread(thread);
        return;
    }
    COORDI_LOG(&sim->log, COORD_LOG_ERROR, "join: thread=%u will never end",
               thread->index);
    (void)pthread_mutex_unlock(&sim->lock);
}

/* ---- threads of the host ---- */

/* To the host a thread is a name for one of ours. */
static coordi_thread *thread_of(coord_sim_thread *thread)
{
    return (coordi_thread *)(void *)thread;
}

coord_status coord_sim_thread_start(coord_sim *sim, void (*run)(void *user), void *user,
                                    coord_sim_thread **ret, coord_error *err)
{
    if (sim == NULL || run == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: thread needs a sim, run and ret");
    }
    coordi_thread *thread = NULL;
    coord_status rc = make(sim, NULL, "coord-sim", run, user, &thread, err);
    if (rc == COORD_OK) {
        *ret = (coord_sim_thread *)(void *)thread;
    }
    return rc;
}

coord_status coord_sim_thread_join(coord_sim_thread *handle, int64_t limit_ms,
                                   coord_error *err)
{
    coordi_thread *thread = thread_of(handle);
    if (thread == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: thread is required");
    }
    coord_sim *sim = thread->sim;
    coord_status rc = COORD_OK;
    (void)pthread_mutex_lock(&sim->lock);
    if (coordi_sim_self(sim) == thread ||
        (coordi_sim_self(sim) == NULL && !coordi_sim_may_drive(sim))) {
        rc =
            coordi_fail(err, COORD_ERR_STATE,
                        "coord_sim_thread_join: called by code that the same world runs");
    } else if (!await_end(thread, coordi_sim_after(sim, limit_ms))) {
        rc = coordi_fail(err, COORD_ERR_TIMEOUT,
                         "sim: thread %u has not returned within %lld ms", thread->index,
                         (long long)limit_ms);
    }
    if (rc != COORD_OK) {
        (void)pthread_mutex_unlock(&sim->lock);
        return rc;
    }
    free_thread(thread);
    return COORD_OK;
}

/* ---- events ---- */

coordi_event *coordi_sim_event_create(coord_loop *base)
{
    coord_sim *sim = coordi_sim_loop_of(base)->sim;
    coordi_event *event = coordi_zalloc(sizeof *event);
    if (event != NULL) {
        event->sim = sim;
        coordi_list_init(&event->waiters);
        (void)pthread_mutex_lock(&sim->lock);
        sim->refs++;
        (void)pthread_mutex_unlock(&sim->lock);
    }
    return event;
}

void coordi_sim_event_set(coordi_event *event)
{
    coord_sim *sim = event->sim;
    (void)pthread_mutex_lock(&sim->lock);
    set_event(event);
    coordi_sim_unlock_after(sim);
}

static void wait_in_thread(coordi_event *event, coordi_thread *self, int64_t deadline_ms)
{
    while (!event->is_set && event->sim->now_ms < deadline_ms) {
        coordi_list_append(&event->waiters, &self->waiting);
        coordi_sim_sleep(self, deadline_ms);
        coordi_list_remove(&self->waiting);
    }
}

/* Runs the world meanwhile. When nothing can happen before the deadline, it is now. */
static void wait_outside(coordi_event *event, int64_t deadline_ms)
{
    coord_sim *sim = event->sim;
    sim->at_instant = 0;
    while (!event->is_set && sim->now_ms < deadline_ms) {
        if (coordi_sim_spins(sim)) {
            COORDI_LOG(&sim->log, COORD_LOG_ERROR, "wait: the clock does not move");
            return;
        }
        if (!coordi_sim_drive(sim, deadline_ms)) {
            coordi_sim_jump(sim, deadline_ms);
            return;
        }
    }
}

bool coordi_sim_event_wait(coordi_event *event, int64_t deadline_ms)
{
    coord_sim *sim = event->sim;
    (void)pthread_mutex_lock(&sim->lock);
    sim->refs++;
    coordi_thread *self = coordi_sim_self(sim);
    if (self != NULL) {
        wait_in_thread(event, self, deadline_ms);
    } else if (coordi_sim_may_drive(sim)) {
        wait_outside(event, deadline_ms);
    } else if (!event->is_set) {
        COORDI_LOG(&sim->log, COORD_LOG_ERROR, "wait: in code of a loop, for ever");
    }
    bool was_set = event->is_set;
    event->is_set = false;
    coordi_sim_unlock_unref(sim);
    return was_set;
}

void coordi_sim_event_destroy(coordi_event *event)
{
    if (event == NULL) {
        return;
    }
    coord_sim *sim = event->sim;
    (void)pthread_mutex_lock(&sim->lock);
    coordi_free(event);
    coordi_sim_unlock_unref(sim);
}
