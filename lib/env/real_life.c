#include "env/real.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* How a loop begins and ends.
 *
 * The last reference may go on any thread. A loop's own thread is then joined, unless it
 * is the one that let go: then it is detached, and frees the loop as its last deed. A
 * loop that its host drives is run dry and freed by whoever let go, unless somebody is in
 * there: then by that thread. In each case the queue is run dry first: what was posted
 * before the last reference went still runs. */

/* ---- the own thread ---- */

static void *loop_main(void *arg)
{
    coordi_real_loop *loop = arg;
    (void)pthread_setname_np(pthread_self(), "coord-loop");
    (void)pthread_mutex_lock(&loop->lock);
    if (!loop->base.own_thread) { /* adopted: somebody may be inside */
        loop->takers++;
        while (loop->driven) {
            coordi_real_wake_locked(loop);
            (void)pthread_cond_wait(&loop->left, &loop->lock);
        }
        loop->takers--;
        loop->driven = true;
    }
    coordi_real_run_locked(loop);
    bool detached = loop->detached;
    (void)pthread_mutex_unlock(&loop->lock);
    if (detached) {
        coordi_real_discard(loop);
    }
    return NULL;
}

void coordi_real_loop_adopt(coord_loop *base)
{
    coordi_real_loop *loop = coordi_real(base);
    (void)pthread_mutex_lock(&loop->lock);
    loop->has_thread = true;
    loop->detached = true;
    (void)pthread_mutex_unlock(&loop->lock);
    coord_error why;
    pthread_t thread; /* is never joined */
    if (coordi_real_spawn("loop", loop_main, loop, true, &thread, &why) != COORD_OK) {
        COORDI_LOG(&base->log, COORD_LOG_ERROR,
                   "given back with objects on it, and no thread to run them: why=\"%s\"",
                   why.text);
        (void)pthread_mutex_lock(&loop->lock);
        loop->has_thread = false;
        loop->detached = false;
        (void)pthread_mutex_unlock(&loop->lock);
    }
}

/* ---- life ---- */

static void close_fds(const coordi_real_loop *loop)
{
    const int fds[] = {loop->epoll_fd, loop->wake_fd, loop->timer_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
}

static void close_and_free(coordi_real_loop *loop)
{
    close_fds(loop);
    coordi_free(loop);
}

void coordi_real_discard(coordi_real_loop *loop)
{
    coordi_real_client_end(loop);
    coordi_real_process_end(loop);
    coordi_real_resolver_end(loop);
    (void)pthread_cond_destroy(&loop->left);
    (void)pthread_mutex_destroy(&loop->lock);
    close_and_free(loop);
}

/* In a forked child, without an object on it: there is no thread to join, no lock to
 * trust, and the epoll set is the parent's. The own descriptors are copies, and what
 * objects left is libcurl's or of threads that may have been at it. */
static void stay_behind(coordi_real_loop *loop)
{
    const bool bare = loop->resolver == NULL && loop->lines == NULL &&
                      coordi_list_empty(&loop->shards) &&
                      coordi_list_empty(&loop->orphans);
    close_fds(loop);
    if (bare) {
        coordi_free(loop);
    } else {
        coordi_leave_behind(&loop->jobs);
    }
}

void coordi_real_free(coord_loop *base)
{
    coordi_real_loop *loop = coordi_real(base);
    if (coordi_check_fork(base, "loop", NULL) != COORD_OK) {
        stay_behind(loop);
        return;
    }
    (void)pthread_mutex_lock(&loop->lock);
    if (loop->ending) { /* a job of the last hour took a reference, and gave it back */
        (void)pthread_mutex_unlock(&loop->lock);
        return;
    }
    loop->ending = true;
    bool join = false;
    bool discard = false;
    if (loop->has_thread) {
        join = !loop->detached && !coordi_real_inside(base);
        if (!join && !loop->detached) {
            loop->detached = true;
            (void)pthread_detach(loop->thread);
        }
        coordi_real_wake_locked(loop);
    } else if (!loop->driven) {
        loop->driven = true;
        coordi_real_run_locked(loop); /* dry, on the thread that let go last */
        discard = true;
    } /* else the thread that is in there sees `ending` */
    (void)pthread_mutex_unlock(&loop->lock);
    if (join) {
        (void)pthread_join(loop->thread, NULL);
        discard = true;
    }
    if (discard) {
        coordi_real_discard(loop);
    }
}

static coord_status open_fds(coordi_real_loop *loop, bool own_thread, coord_error *err)
{
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0) {
        return coordi_fail_errno(err, errno, "loop: epoll_create1");
    }
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0) {
        return coordi_fail_errno(err, errno, "loop: eventfd");
    }
    if (!own_thread) {
        loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (loop->timer_fd < 0) {
            return coordi_fail_errno(err, errno, "loop: timerfd_create");
        }
    }
    const int os_errno = coordi_real_watch_own(loop);
    return os_errno == 0 ? COORD_OK : coordi_fail_errno(err, os_errno, "loop: epoll_ctl");
}

static coord_status start(coordi_real_loop *loop, bool own_thread, coord_error *err)
{
    if (pthread_mutex_init(&loop->lock, NULL) != 0) {
        return coordi_fail_nomem(err, "loop");
    }
    if (!coordi_real_cond_init(&loop->left)) {
        (void)pthread_mutex_destroy(&loop->lock);
        return coordi_fail_nomem(err, "loop");
    }
    loop->base.own_thread = own_thread;
    loop->has_thread = own_thread;
    loop->driven = own_thread;
    loop->asleep = !own_thread;
    coord_status rc = COORD_OK;
    if (own_thread) {
        rc = coordi_real_spawn("loop", loop_main, loop, false, &loop->thread, err);
    }
    if (rc != COORD_OK) {
        (void)pthread_cond_destroy(&loop->left);
        (void)pthread_mutex_destroy(&loop->lock);
    }
    return rc;
}

coord_status coordi_real_loop_create(bool own_thread, const coordi_log *log,
                                     coord_loop **ret, coord_error *err)
{
    if (!coordi_real_libraries()) {
        return coordi_fail(err, COORD_ERR_IO,
                           "loop: libcurl or libsodium won't initialise");
    }
    coordi_real_loop *loop = coordi_zalloc(sizeof *loop);
    if (loop == NULL) {
        return coordi_fail_nomem(err, "loop");
    }
    loop->base.env = &coordi_env_real;
    atomic_init(&loop->base.refs, 1);
    loop->base.pid = coordi_process_id();
    loop->base.log = *log;
    loop->epoll_fd = -1;
    loop->wake_fd = -1;
    loop->timer_fd = -1;
    loop->armed_ms = INT64_MAX;
    coordi_list_init(&loop->deferred);
    coordi_list_init(&loop->shards);
    coordi_list_init(&loop->orphans);
    coordi_list_init(&loop->jobs);
    coordi_list_init(&loop->waiters);
    coord_status rc = open_fds(loop, own_thread, err);
    if (rc == COORD_OK) {
        rc = start(loop, own_thread, err);
    }
    if (rc != COORD_OK) {
        close_and_free(loop);
        return rc;
    }
    *ret = &loop->base;
    return COORD_OK;
}
