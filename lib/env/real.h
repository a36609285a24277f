/* Inside of the real world: what the real_*.c files share. */
#ifndef COORDI_ENV_REAL_H
#define COORDI_ENV_REAL_H

#include "env/env.h"
#include "env/timers.h"

#include <pthread.h>
#include <sys/epoll.h>

/* ---- the loop ---- */

/* What an epoll event points at. It may be freed as soon as it is unwatched, also while
 * the events of this turn are being handed out. */
typedef struct coordi_watch coordi_watch;
struct coordi_watch {
    void (*ready)(coordi_watch *watch, uint32_t events);
};

typedef struct coordi_resolver coordi_resolver;
typedef struct coordi_line coordi_line;

enum { COORDI_TURN_EVENTS = 64 };

typedef struct coordi_real_loop {
    coord_loop base;
    int epoll_fd;
    int wake_fd;  /* eventfd: somebody posted */
    int timer_fd; /* host-driven loops: makes epoll_fd readable when a timer is due */
    coordi_watch wake_watch;
    coordi_watch timer_watch;
    pthread_t thread;
    bool has_thread; /* fixed before anything runs on the loop, but for adoption */

    /* the loop thread's */
    coordi_heap timers;
    coordi_link deferred; /* jobs for the end of this turn */
    struct epoll_event events[COORDI_TURN_EVENTS];
    int event_count;
    int64_t armed_ms;    /* what timer_fd is set to; INT64_MAX: not set */
    coordi_link shards;  /* real_shard.c */
    coordi_line **lines; /* real_line.c: by descriptor */
    size_t line_count;
    coordi_link orphans;       /* real_process.c: killed, not reaped yet */
    coordi_resolver *resolver; /* real_resolve.c; made when first needed */

    pthread_mutex_t lock; /* guards everything below, and the events of this loop */
    pthread_cond_t left;  /* whoever drove the loop has left */
    coordi_link jobs;
    coordi_link waiters; /* events that a thread waits on, asleep */
    int takers;          /* threads that wait on `left` to drive the loop */
    bool asleep;         /* the next post must write wake_fd */
    bool driven;         /* some thread is the loop thread */
    bool by_waiter;      /* ... because it waits for an event; it yields to takers */
    bool ending;         /* no references; the queue is run dry, then all goes */
    bool detached;       /* the thread frees the loop when it ends */
} coordi_real_loop;

static inline coordi_real_loop *coordi_real(const coord_loop *loop)
{
    return (coordi_real_loop *)(uintptr_t)loop;
}

coord_status coordi_real_loop_create(bool own_thread, const coordi_log *log,
                                     coord_loop **ret, coord_error *err);

/* Gives a thread to a host-driven loop whose host lets go while objects live on it. */
void coordi_real_loop_adopt(coord_loop *loop);

/* Runs the job at the end of this turn, or of the next when called there. Loop thread. */
void coordi_real_defer(coordi_real_loop *loop, coordi_job *job);

/* 0 or an errno. */
int coordi_real_watch(coordi_real_loop *loop, int fd, uint32_t events,
                      coordi_watch *watch);
int coordi_real_rewatch(coordi_real_loop *loop, int fd, uint32_t events,
                        coordi_watch *watch);
void coordi_real_unwatch(coordi_real_loop *loop, int fd, const coordi_watch *watch);

/* ---- waiting threads drive host-driven loops (real_loop.c for real_thread.c) ---- */

/* Under loop->lock, and nobody drives: one turn as the loop thread, `wait_ms` long at
 * most. Lets go of the lock meanwhile. */
void coordi_real_drive_locked(coordi_real_loop *loop, int64_t wait_ms);

/* Under loop->lock: makes the loop thread come out of its sleep. */
void coordi_real_wake_locked(coordi_real_loop *loop);

/* Under loop->lock: lets the first thread that waits for an event look again. */
void coordi_real_wake_waiter_locked(coordi_real_loop *loop);

/* ---- real_loop.c and real_life.c for each other ---- */

/* Under loop->lock, by the driver: makes turns until the loop is ending and its queue is
 * dry. */
void coordi_real_run_locked(coordi_real_loop *loop);
/* Nobody drives the loop, nobody refers to it, and its queue is dry: frees it. */
void coordi_real_discard(coordi_real_loop *loop);
/* Watches wake_fd and timer_fd. 0 or an errno. */
int coordi_real_watch_own(coordi_real_loop *loop);

/* ---- threads ---- */

/* A thread that takes no signals but those that its own faults raise. */
coord_status coordi_real_spawn(const char *name, void *(*run)(void *arg), void *arg,
                               bool detached, pthread_t *ret, coord_error *err);

int64_t coordi_real_now(void);

/* A condition that waits on the monotonic clock; false: no resources. */
bool coordi_real_cond_init(pthread_cond_t *cond);
/* False: the deadline passed. */
bool coordi_real_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
                           int64_t deadline_ms);

coord_status coordi_real_thread_start(coord_loop *loop, const char *name,
                                      void (*run)(void *arg), void *arg,
                                      coordi_thread **ret, coord_error *err);
void coordi_real_thread_join(coordi_thread *thread);
coordi_event *coordi_real_event_create(coord_loop *loop);
void coordi_real_event_set(coordi_event *event);
bool coordi_real_event_wait(coordi_event *event, int64_t deadline_ms);
void coordi_real_event_destroy(coordi_event *event);

/* ---- loop entries of the table ---- */

void coordi_real_post(coord_loop *loop, coordi_job *job);
bool coordi_real_inside(const coord_loop *loop);
coord_status coordi_real_step(coord_loop *loop, int64_t wait_ms, coord_error *err);
int coordi_real_fd(const coord_loop *loop);
void coordi_real_free(coord_loop *loop);
void coordi_real_timer_set(coord_loop *loop, coordi_timer *timer, int64_t at_ms);
void coordi_real_timer_cancel(coord_loop *loop, coordi_timer *timer);

/* libcurl and libsodium, once a process; false when they can't be had. */
bool coordi_real_libraries(void);

/* ---- parts that end with the loop ---- */

void coordi_real_client_end(coordi_real_loop *loop);
void coordi_real_process_end(coordi_real_loop *loop);
void coordi_real_resolver_end(coordi_real_loop *loop);

#endif
