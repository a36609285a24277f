#include "env/real.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

/* Vocabulary
 *   handle    the reference that coord_loop_create() gave to the host
 *   marker    a job that tells its event when it runs: all that was posted before it has
 *             then run too
 *   settling  passing markers through a loop until the caller's reference is the last */

enum {
    SETTLE_MS = 1000,   /* how long a destroy may wait for others to let go */
    BRIEF_MS = 20,      /* ... when they may as well be objects that live on */
    SETTLE_PASSES = 16, /* how often a teardown may post on, when nobody is waited for */
    SETTLE_PAUSE_MS = 64
};

static const coord_loop_options DEFAULTS = {
    .size = sizeof(coord_loop_options),
    .own_thread = true,
    .log_level = COORD_LOG_INFO,
};

void coord_loop_options_init(coord_loop_options *options, size_t size)
{
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

coord_status coord_loop_create(const coord_loop_options *options, coord_loop **ret,
                               coord_error *err)
{
    if (ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "loop: no place for the result");
    }
    coord_loop_options given = DEFAULTS;
    if (options != NULL) {
        coord_status rc = coordi_options_adopt(&given, sizeof given, options,
                                               "coord_loop_options", err);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    coordi_log log = {given.log, given.user, given.log_level, "loop"};
    return coordi_real_loop_create(given.own_thread, &log, ret, err);
}

int coord_loop_fd(const coord_loop *loop)
{
    return loop == NULL ? -1 : loop->env->fd(loop);
}

coord_status coord_loop_step(coord_loop *loop, int64_t wait_ms, coord_error *err)
{
    if (loop == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "loop is NULL");
    }
    coord_status rc = coordi_check_fork(loop, "loop", err);
    return rc != COORD_OK ? rc : loop->env->step(loop, wait_ms, err);
}

/* ---- letting go ---- */

typedef struct marker {
    coordi_job job;
    coord_loop *loop;
    coordi_event *event;
    atomic_int users; /* who waits, and who runs it: the last one frees */
} marker;

static void marker_drop(marker *mark)
{
    if (atomic_fetch_sub(&mark->users, 1) == 1) {
        mark->loop->env->event_destroy(mark->event);
        coordi_free(mark);
    }
}

static void marker_run(coordi_job *job)
{
    marker *mark = COORDI_ITEM(job, marker, job);
    mark->loop->env->event_set(mark->event);
    marker_drop(mark);
}

/* NULL when memory is out: then nobody waits, and the loop ends by itself. */
static marker *marker_create(coord_loop *loop)
{
    marker *mark = coordi_zalloc(sizeof *mark);
    if (mark == NULL) {
        return NULL;
    }
    mark->job.run = marker_run;
    mark->loop = loop;
    atomic_init(&mark->users, 1);
    mark->event = loop->env->event_create(loop);
    if (mark->event == NULL) {
        coordi_free(mark);
        return NULL;
    }
    return mark;
}

static bool is_last(coord_loop *loop)
{
    return atomic_load(&loop->refs) == 1;
}

/* Waits until everything posted so far has run; false when that takes too long. */
static bool marker_pass(marker *mark, int64_t deadline_ms)
{
    (void)atomic_fetch_add(&mark->users, 1);
    coordi_post(mark->loop, &mark->job);
    return mark->loop->env->event_wait(mark->event, deadline_ms);
}

/* With `patient`, waits for threads that are still busy on behalf of a torn-down object;
 * without, lets the jobs run that are queued, and idle threads end. */
static void settle(coord_loop *loop, bool patient)
{
    if (is_last(loop) || coordi_inside(loop) || coordi_frame_any()) {
        return;
    }
    marker *mark = marker_create(loop);
    if (mark == NULL) {
        return;
    }
    /* Simulated threads need no time to end. */
    const bool brief = !patient && loop->env == &coordi_env_real;
    const int64_t deadline = coordi_now(loop) + (brief ? BRIEF_MS : SETTLE_MS);
    int64_t pause = 1;
    for (int pass = 0; patient || brief || pass < SETTLE_PASSES; pass++) {
        int64_t now = coordi_now(loop);
        if (now >= deadline || !marker_pass(mark, deadline) || is_last(loop)) {
            break;
        }
        if ((patient || brief) && pass > 0) { /* nobody sets it now: this is a pause */
            int64_t until = now + pause < deadline ? now + pause : deadline;
            (void)loop->env->event_wait(mark->event, until);
            pause = pause < SETTLE_PAUSE_MS ? pause * 2 : pause;
        }
    }
    marker_drop(mark);
}

void coordi_loop_retire(coord_loop *loop)
{
    if (coordi_check_fork(loop, "loop", NULL) == COORD_OK) {
        settle(loop, true);
    }
    coordi_loop_unref(loop);
}

void coord_loop_destroy(coord_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    if (coordi_check_fork(loop, "loop", NULL) == COORD_OK) {
        settle(loop, false);
        if (loop->env == &coordi_env_real && !loop->own_thread && !is_last(loop)) {
            coordi_real_loop_adopt(loop);
        }
    } else if (loop->env != &coordi_env_real) {
        return; /* it is a part of its world */
    }
    coordi_loop_unref(loop);
}
