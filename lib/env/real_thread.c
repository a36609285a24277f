#include "env/real.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

/* Vocabulary
 *   waiter  an event that some thread is asleep on, in its loop's list
 *
 * All events of a loop share the loop's lock, with a condition each: so setting and
 * destroying can't meet, and a waiter can see in one look whether its event is set and
 * whether anybody drives the loop. When nobody does, it drives the loop itself. */

enum { NAME_SIZE = 16 }; /* the kernel's limit, NUL included */

struct coordi_event {
    coord_loop *loop;
    pthread_cond_t cond;
    coordi_link waiting; /* in loop->waiters */
    int driving;         /* threads that make turns while they wait for this event */
    bool set;
};

struct coordi_thread {
    pthread_t id;
    void (*run)(void *arg);
    void *arg;
    char name[NAME_SIZE];
};

/* ---- time ---- */

int64_t coordi_real_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool coordi_real_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t how;
    if (pthread_condattr_init(&how) != 0) {
        return false;
    }
    bool done = pthread_condattr_setclock(&how, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(cond, &how) == 0;
    (void)pthread_condattr_destroy(&how);
    return done;
}

bool coordi_real_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
                           int64_t deadline_ms)
{
    if (deadline_ms == INT64_MAX) {
        return pthread_cond_wait(cond, lock) == 0;
    }
    struct timespec until = {0};
    if (deadline_ms > 0) {
        until.tv_sec = (time_t)(deadline_ms / 1000);
        until.tv_nsec = (long)(deadline_ms % 1000) * 1000000L;
    }
    return pthread_cond_timedwait(cond, lock, &until) != ETIMEDOUT;
}

/* ---- threads ---- */

/* Everything but what the thread's own faults raise: a host's crash handler must still
 * see those. */
static void signals_to_block(sigset_t *set)
{
    static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL,
                                 SIGTRAP, SIGSYS, SIGABRT};
    (void)sigfillset(set);
    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        (void)sigdelset(set, FAULTS[i]);
    }
}

coord_status coordi_real_spawn(const char *name, void *(*run)(void *arg), void *arg,
                               bool detached, pthread_t *ret, coord_error *err)
{
    pthread_attr_t how;
    if (pthread_attr_init(&how) != 0) {
        return coordi_fail_nomem(err, "thread");
    }
    (void)pthread_attr_setdetachstate(&how, detached ? PTHREAD_CREATE_DETACHED
                                                     : PTHREAD_CREATE_JOINABLE);
    sigset_t block;
    sigset_t before;
    signals_to_block(&block);
    /* A new thread begins with its parent's mask; so there is no moment without one. */
    (void)pthread_sigmask(SIG_SETMASK, &block, &before);
    int os_errno = pthread_create(ret, &how, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&how);
    if (os_errno != 0) {
        return coordi_fail_errno(err, os_errno, "start thread '%s'", name);
    }
    return COORD_OK;
}

static void *thread_main(void *arg)
{
    coordi_thread *thread = arg;
    (void)pthread_setname_np(pthread_self(), thread->name);
    thread->run(thread->arg);
    return NULL;
}

coord_status coordi_real_thread_start(coord_loop *loop, const char *name,
                                      void (*run)(void *arg), void *arg,
                                      coordi_thread **ret, coord_error *err)
{
    (void)loop;
    coordi_thread *thread = coordi_zalloc(sizeof *thread);
    if (thread == NULL) {
        return coordi_fail_nomem(err, name);
    }
    thread->run = run;
    thread->arg = arg;
    (void)snprintf(thread->name, sizeof thread->name, "%s", name);
    coord_status rc =
        coordi_real_spawn(name, thread_main, thread, false, &thread->id, err);
    if (rc != COORD_OK) {
        coordi_free(thread);
        return rc;
    }
    *ret = thread;
    return COORD_OK;
}

void coordi_real_thread_join(coordi_thread *thread)
{
    (void)pthread_join(thread->id, NULL);
    coordi_free(thread);
}

/* ---- events ---- */

coordi_event *coordi_real_event_create(coord_loop *loop)
{
    coordi_event *event = coordi_zalloc(sizeof *event);
    if (event == NULL) {
        return NULL;
    }
    if (!coordi_real_cond_init(&event->cond)) {
        coordi_free(event);
        return NULL;
    }
    event->loop = loop;
    return event;
}

void coordi_real_event_set(coordi_event *event)
{
    coordi_real_loop *loop = coordi_real(event->loop);
    (void)pthread_mutex_lock(&loop->lock);
    event->set = true;
    (void)pthread_cond_signal(&event->cond);
    if (event->driving > 0) {
        coordi_real_wake_locked(loop); /* it may sleep in a turn, waiting for this */
    }
    (void)pthread_mutex_unlock(&loop->lock);
}

void coordi_real_wake_waiter_locked(coordi_real_loop *loop)
{
    if (!coordi_list_empty(&loop->waiters)) {
        coordi_event *event = COORDI_ITEM(loop->waiters.next, coordi_event, waiting);
        (void)pthread_cond_signal(&event->cond);
    }
}

/* Idle threads, which wait without a deadline, are never asked to drive the loop. */
static void sleep_locked(coordi_real_loop *loop, coordi_event *event, int64_t deadline_ms)
{
    const bool enlist = deadline_ms != INT64_MAX && !coordi_linked(&event->waiting);
    if (enlist) {
        coordi_list_append(&loop->waiters, &event->waiting);
    }
    (void)coordi_real_cond_wait(&event->cond, &loop->lock, deadline_ms);
    if (enlist) {
        coordi_list_remove(&event->waiting);
    }
}

bool coordi_real_event_wait(coordi_event *event, int64_t deadline_ms)
{
    coordi_real_loop *loop = coordi_real(event->loop);
    (void)pthread_mutex_lock(&loop->lock);
    while (!event->set) {
        const int64_t left = deadline_ms - coordi_real_now();
        if (left <= 0) {
            break;
        }
        if (loop->driven || loop->takers > 0 || deadline_ms == INT64_MAX) {
            sleep_locked(loop, event, deadline_ms);
        } else {
            event->driving++;
            coordi_real_drive_locked(loop, left);
            event->driving--;
        }
    }
    const bool took = event->set;
    event->set = false;
    if (!loop->driven && deadline_ms != INT64_MAX) {
        /* We may have been the one who was asked to look after the loop. */
        coordi_real_wake_waiter_locked(loop);
    }
    (void)pthread_mutex_unlock(&loop->lock);
    return took;
}

void coordi_real_event_destroy(coordi_event *event)
{
    (void)pthread_cond_destroy(&event->cond);
    coordi_free(event);
}
