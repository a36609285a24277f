#include "env/real.h"

#include "base/error.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Vocabulary
 *   turn    one round: sleep until something is due, hand out descriptor events, run the
 *           jobs that are queued, the timers that are due, then what was deferred
 *   driver  the thread that makes turns: a loop's own thread from birth, or whoever is in
 *           coord_loop_step(), or a thread that waits for an event meanwhile
 *   scope   marks on a thread's stack that it drives a loop
 *
 * Invariants
 *   `driven` is true exactly while a thread is the driver; only the driver touches what
 *   the header lists as the loop thread's, and hand-over goes through `lock`.
 *   `asleep` implies that the queue is empty. Whoever queues the first job on a sleeping
 *   loop clears it and writes wake_fd; nobody else does.
 *   A host-driven loop that nobody drives has timer_fd set to what is due first.
 *
 * `lock` is the innermost lock: nothing is called under it but pthread functions and a
 * write to wake_fd. */

typedef struct scope {
    const coordi_real_loop *loop;
    struct scope *outer;
} scope;

static _Thread_local scope *scopes; /* innermost first */

static void scope_enter(scope *here, const coordi_real_loop *loop)
{
    here->loop = loop;
    here->outer = scopes;
    scopes = here;
}

static void scope_leave(const scope *here)
{
    scopes = here->outer;
}

bool coordi_real_inside(const coord_loop *loop)
{
    for (const scope *at = scopes; at != NULL; at = at->outer) {
        if (&at->loop->base == loop) {
            return true;
        }
    }
    return false;
}

/* ---- jobs, timers ---- */

void coordi_real_wake_locked(coordi_real_loop *loop)
{
    if (loop->asleep) {
        const uint64_t one = 1;
        loop->asleep = false;
        /* Can't fail: the counter is far from full. */
        ssize_t written = write(loop->wake_fd, &one, sizeof one);
        (void)written;
    }
}

void coordi_real_post(coord_loop *base, coordi_job *job)
{
    coordi_real_loop *loop = coordi_real(base);
    (void)pthread_mutex_lock(&loop->lock);
    coordi_list_append(&loop->jobs, &job->link);
    coordi_real_wake_locked(loop); /* never asleep when the poster is the driver */
    (void)pthread_mutex_unlock(&loop->lock);
}

void coordi_real_defer(coordi_real_loop *loop, coordi_job *job)
{
    coordi_list_append(&loop->deferred, &job->link);
}

void coordi_real_timer_set(coord_loop *loop, coordi_timer *timer, int64_t at_ms)
{
    coordi_heap_set(&coordi_real(loop)->timers, timer, at_ms);
}

void coordi_real_timer_cancel(coord_loop *loop, coordi_timer *timer)
{
    coordi_heap_cancel(&coordi_real(loop)->timers, timer);
}

static void move_jobs(coordi_link *to, coordi_link *from)
{
    coordi_list_init(to);
    if (!coordi_list_empty(from)) {
        *to = *from;
        to->next->prev = to;
        to->prev->next = to;
        coordi_list_init(from);
    }
}

static void run_jobs(coordi_link *jobs)
{
    for (coordi_link *link = coordi_list_pop(jobs); link != NULL;
         link = coordi_list_pop(jobs)) {
        coordi_job *job = COORDI_ITEM(link, coordi_job, link);
        job->run(job);
    }
}

static void run_timers(coordi_real_loop *loop)
{
    if (coordi_heap_first(&loop->timers) == NULL) {
        return;
    }
    const int64_t now = coordi_real_now();
    const uint64_t newest = loop->timers.last_order;
    for (coordi_timer *timer = coordi_heap_pop_due(&loop->timers, now, newest);
         timer != NULL; timer = coordi_heap_pop_due(&loop->timers, now, newest)) {
        timer->fire(timer);
    }
}

/* ---- descriptors ---- */

static int control(coordi_real_loop *loop, int op, int fd, uint32_t events,
                   coordi_watch *watch)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    return epoll_ctl(loop->epoll_fd, op, fd, &event) == 0 ? 0 : errno;
}

int coordi_real_watch(coordi_real_loop *loop, int fd, uint32_t events,
                      coordi_watch *watch)
{
    return control(loop, EPOLL_CTL_ADD, fd, events, watch);
}

int coordi_real_rewatch(coordi_real_loop *loop, int fd, uint32_t events,
                        coordi_watch *watch)
{
    return control(loop, EPOLL_CTL_MOD, fd, events, watch);
}

void coordi_real_unwatch(coordi_real_loop *loop, int fd, const coordi_watch *watch)
{
    (void)control(loop, EPOLL_CTL_DEL, fd, 0, NULL); /* fails when it is closed already */
    for (int i = 0; i < loop->event_count; i++) {
        if (loop->events[i].data.ptr == watch) {
            loop->events[i].data.ptr = NULL; /* of this turn, and not handed out yet */
        }
    }
}

static void clear_wake(coordi_watch *watch, uint32_t events)
{
    (void)events;
    coordi_real_loop *loop = COORDI_ITEM(watch, coordi_real_loop, wake_watch);
    uint64_t count;
    ssize_t got = read(loop->wake_fd, &count, sizeof count);
    (void)got;
}

static void clear_timer(coordi_watch *watch, uint32_t events)
{
    (void)events;
    coordi_real_loop *loop = COORDI_ITEM(watch, coordi_real_loop, timer_watch);
    uint64_t count;
    ssize_t got = read(loop->timer_fd, &count, sizeof count);
    (void)got;
    loop->armed_ms = INT64_MAX;
}

int coordi_real_watch_own(coordi_real_loop *loop)
{
    loop->wake_watch.ready = clear_wake;
    loop->timer_watch.ready = clear_timer;
    int os_errno = coordi_real_watch(loop, loop->wake_fd, EPOLLIN, &loop->wake_watch);
    if (os_errno == 0 && loop->timer_fd >= 0) {
        os_errno = coordi_real_watch(loop, loop->timer_fd, EPOLLIN, &loop->timer_watch);
    }
    return os_errno;
}

/* ---- a turn ---- */

/* How long epoll may sleep: -1 is for ever. */
static int sleep_ms(coordi_real_loop *loop, int64_t wait_ms)
{
    const coordi_timer *first = coordi_heap_first(&loop->timers);
    int64_t limit = wait_ms < 0 ? INT64_MAX : wait_ms;
    if (!coordi_list_empty(&loop->deferred)) {
        limit = 0;
    } else if (first != NULL) {
        int64_t left = first->at_ms - coordi_real_now();
        left = left < 0 ? 0 : left;
        limit = left < limit ? left : limit;
    }
    if (limit == INT64_MAX) {
        return -1;
    }
    return limit > INT32_MAX ? INT32_MAX : (int)limit;
}

static void hand_out(coordi_real_loop *loop)
{
    for (int i = 0; i < loop->event_count; i++) {
        coordi_watch *watch = loop->events[i].data.ptr;
        if (watch != NULL) { /* NULL: unwatched by an earlier one */
            loop->events[i].data.ptr = NULL;
            watch->ready(watch, loop->events[i].events);
        }
    }
    loop->event_count = 0;
}

static void turn(coordi_real_loop *loop, int64_t wait_ms)
{
    int timeout = sleep_ms(loop, wait_ms);
    (void)pthread_mutex_lock(&loop->lock);
    if (loop->ending || loop->takers > 0 || !coordi_list_empty(&loop->jobs)) {
        timeout = 0;
    } else {
        loop->asleep = timeout != 0;
    }
    (void)pthread_mutex_unlock(&loop->lock);

    int got = epoll_wait(loop->epoll_fd, loop->events, COORDI_TURN_EVENTS, timeout);
    loop->event_count = got < 0 ? 0 : got; /* EINTR: the host's signal, no event */

    coordi_link jobs;
    (void)pthread_mutex_lock(&loop->lock);
    loop->asleep = false;
    move_jobs(&jobs, &loop->jobs);
    (void)pthread_mutex_unlock(&loop->lock);

    hand_out(loop);
    run_jobs(&jobs);
    run_timers(loop);
    coordi_link deferred;
    move_jobs(&deferred, &loop->deferred);
    run_jobs(&deferred);
}

static bool is_dry_locked(const coordi_real_loop *loop)
{
    return coordi_list_empty(&loop->jobs) && coordi_list_empty(&loop->deferred);
}

void coordi_real_run_locked(coordi_real_loop *loop)
{
    scope here;
    scope_enter(&here, loop);
    while (!loop->ending || !is_dry_locked(loop)) {
        (void)pthread_mutex_unlock(&loop->lock);
        turn(loop, -1); /* which never sleeps once the loop is ending */
        (void)pthread_mutex_lock(&loop->lock);
    }
    scope_leave(&here);
}

/* ---- driving, by the host or by a thread that waits ---- */

/* Sets timer_fd to what is due first, now that nobody sleeps in epoll_wait. */
static void arm_locked(coordi_real_loop *loop)
{
    const coordi_timer *first = coordi_heap_first(&loop->timers);
    int64_t due = first == NULL ? INT64_MAX : first->at_ms;
    if (!is_dry_locked(loop)) {
        due = 1; /* long ago */
    }
    loop->asleep = due != 1;
    if (due == loop->armed_ms) {
        return;
    }
    struct itimerspec when = {0};
    if (due != INT64_MAX) {
        due = due < 1 ? 1 : due; /* 0 would switch it off */
        when.it_value.tv_sec = (time_t)(due / 1000);
        when.it_value.tv_nsec = (long)(due % 1000) * 1000000L;
    }
    loop->armed_ms = due;
    (void)timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void leave_locked(coordi_real_loop *loop)
{
    arm_locked(loop);
    loop->driven = false;
    loop->by_waiter = false;
    if (loop->takers > 0) {
        (void)pthread_cond_broadcast(&loop->left);
    } else {
        coordi_real_wake_waiter_locked(loop);
    }
}

void coordi_real_drive_locked(coordi_real_loop *loop, int64_t wait_ms)
{
    loop->driven = true;
    loop->by_waiter = true;
    (void)pthread_mutex_unlock(&loop->lock);
    scope here;
    scope_enter(&here, loop);
    turn(loop, wait_ms);
    scope_leave(&here);
    (void)pthread_mutex_lock(&loop->lock);
    leave_locked(loop);
}

/* Becomes the driver as soon as a waiting thread makes way; false when it is somebody
 * who doesn't. */
static bool take_over_locked(coordi_real_loop *loop)
{
    loop->takers++;
    while (loop->driven && loop->by_waiter) {
        coordi_real_wake_locked(loop);
        (void)pthread_cond_wait(&loop->left, &loop->lock);
    }
    loop->takers--;
    if (loop->driven) {
        return false;
    }
    loop->driven = true;
    return true;
}

coord_status coordi_real_step(coord_loop *base, int64_t wait_ms, coord_error *err)
{
    coordi_real_loop *loop = coordi_real(base);
    if (base->own_thread) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "loop: it has a thread of its own; "
                           "coord_loop_step() is for loops made with "
                           "own_thread = false");
    }
    if (coordi_real_inside(base)) {
        return coordi_fail(err, COORD_ERR_STATE, "loop: stepped from its own callback");
    }
    (void)pthread_mutex_lock(&loop->lock);
    bool mine = take_over_locked(loop);
    (void)pthread_mutex_unlock(&loop->lock);
    if (!mine) {
        return coordi_fail(err, COORD_ERR_STATE, "loop: another thread is stepping it");
    }
    scope here;
    scope_enter(&here, loop);
    turn(loop, wait_ms < 0 ? 0 : wait_ms);
    (void)pthread_mutex_lock(&loop->lock);
    while (loop->ending && !is_dry_locked(loop)) {
        (void)pthread_mutex_unlock(&loop->lock);
        turn(loop, 0);
        (void)pthread_mutex_lock(&loop->lock);
    }
    bool ending = loop->ending;
    leave_locked(loop);
    (void)pthread_mutex_unlock(&loop->lock);
    scope_leave(&here);
    if (ending) { /* a callback of this step dropped the last reference */
        coordi_real_discard(loop);
    }
    return COORD_OK;
}

int coordi_real_fd(const coord_loop *base)
{
    return base->own_thread ? -1 : coordi_real(base)->epoll_fd;
}
