#include "env/sim_http.h"

#include "base/alloc.h"
#include "base/error.h"
#include "env/sim_records.h"

#include <unistd.h>

/* Simulated loops: queue, timers, life and death of a process, and the table of
 * functions.
 *
 * A loop is one actor. When drawn it does one thing: the oldest job, or the timer that is
 * due first; the seed says which if there are both.
 *
 * States: runs; paused (stands still, keeps its ports); crashed (stands still, has lost
 * them); awake (crashed, but the host destroys its objects: it runs again to finish their
 * business, with no network). */

coordi_sim_loop *coordi_sim_loop_of(const coord_loop *loop)
{
    return (coordi_sim_loop *)((char *)loop - offsetof(coordi_sim_loop, base));
}

bool coordi_sim_stands_still(const coordi_sim_loop *loop)
{
    return (loop->paused && !loop->sim->abandoned) || (loop->crashed && !loop->awake);
}

/* Puts the loop where its next thing to do belongs. */
static void arm(coordi_sim_loop *loop)
{
    coord_sim *sim = loop->sim;
    const coordi_timer *first = coordi_heap_first(&loop->timers);
    if (coordi_linked(&loop->actor.held)) {
        return; /* thawing makes it ready */
    }
    bool due = first != NULL && first->at_ms <= sim->now_ms;
    if (due || !coordi_list_empty(&loop->jobs)) {
        coordi_sim_ready(sim, &loop->actor);
    } else if (first == NULL) {
        coordi_sim_calm(sim, &loop->actor);
    } else if (!coordi_timer_is_set(&loop->actor.wake) ||
               loop->actor.wake.at_ms != first->at_ms) {
        coordi_sim_at(sim, &loop->actor, first->at_ms);
    }
}

void coordi_sim_enter(coordi_sim_loop *loop)
{
    loop->events++;
    loop->sim->current = loop;
    (void)pthread_mutex_unlock(&loop->sim->lock);
}

/* What was posted without a reference runs before a loop that was let go is freed. */
static bool free_if_over(coordi_sim_loop *loop)
{
    coord_sim *sim = loop->sim;
    if (!loop->gone || sim->current == loop || !coordi_list_empty(&loop->jobs)) {
        return false;
    }
    coordi_sim_drop(sim, &loop->actor);
    coordi_list_remove(&loop->link);
    coordi_free(loop);
    sim->refs--; /* not the last: whoever gets here has one */
    return true;
}

bool coordi_sim_leave(coordi_sim_loop *loop)
{
    (void)pthread_mutex_lock(&loop->sim->lock);
    loop->sim->current = NULL;
    return !free_if_over(loop);
}

static void act(coord_sim *sim, coordi_sim_actor *actor)
{
    coordi_sim_loop *loop = COORDI_ITEM(actor, coordi_sim_loop, actor);
    const coordi_timer *first = coordi_heap_first(&loop->timers);
    bool is_due = first != NULL && first->at_ms <= sim->now_ms;
    bool has_job = !coordi_list_empty(&loop->jobs);
    if (is_due && (!has_job || coordi_sim_draw(sim, 2) == 0)) {
        coordi_timer *timer = coordi_heap_pop_due(&loop->timers, sim->now_ms, UINT64_MAX);
        coordi_sim_tell(sim, loop, "timer");
        coordi_sim_enter(loop);
        timer->fire(timer);
    } else if (has_job) {
        coordi_job *job = COORDI_ITEM(coordi_list_pop(&loop->jobs), coordi_job, link);
        coordi_sim_tell(sim, loop, "job");
        coordi_sim_enter(loop);
        job->run(job);
    } else {
        arm(loop);
        return;
    }
    if (coordi_sim_leave(loop)) {
        arm(loop);
    }
}

/* ---- made and freed ---- */

coord_status coord_sim_loop(coord_sim *sim, const char *host, coord_loop **ret,
                            coord_error *err)
{
    if (sim == NULL || host == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: loop needs a sim, a host and ret");
    }
    coord_status rc = coordi_check_process(sim->pid, "sim: loop", err);
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_sim_loop *loop = coordi_zalloc(sizeof *loop);
    if (loop == NULL) {
        return coordi_fail_nomem(err, "sim: loop");
    }
    loop->base.env = &coordi_env_sim;
    atomic_init(&loop->base.refs, 1);
    loop->base.pid = coordi_process_id();
    loop->base.log = sim->log;
    loop->base.log.who = "loop";
    loop->sim = sim;
    coordi_list_init(&loop->jobs);
    coordi_list_init(&loop->held);
    coordi_list_init(&loop->servers);
    coordi_list_init(&loop->peers);
    coordi_list_init(&loop->records);

    (void)pthread_mutex_lock(&sim->lock);
    rc = coordi_sim_host_named(sim, host, &loop->host, err);
    if (rc == COORD_OK && !coordi_sim_add(sim, &loop->actor, act, loop)) {
        rc = coordi_fail_nomem(err, "sim: loop");
    }
    if (rc == COORD_OK) {
        loop->index = ++sim->loop_count;
        coordi_list_append(&sim->loops, &loop->link);
        sim->refs++;
    }
    (void)pthread_mutex_unlock(&sim->lock);
    if (rc != COORD_OK) {
        coordi_free(loop);
        return rc;
    }
    *ret = &loop->base;
    return COORD_OK;
}

/* The last reference has gone: only jobs that were posted without one are left, and they
 * run whatever state the process is in. */
static void let_go(coordi_sim_loop *loop)
{
    coord_sim *sim = loop->sim;
    if (!coordi_list_empty(&loop->servers) || !coordi_list_empty(&loop->peers)) {
        COORDI_LOG(&sim->log, COORD_LOG_ERROR, "loop: freed with peers or servers open");
    }
    loop->gone = true;
    loop->paused = false;
    loop->awake = true;
    memset(&loop->timers, 0, sizeof loop->timers);
    for (coordi_link *at = loop->held.next; at != &loop->held; at = at->next) {
        coordi_sim_actor *actor = COORDI_ITEM(at, coordi_sim_actor, held);
        actor->loop = NULL;
    }
    coordi_sim_thaw(sim, loop);
    coordi_sim_threads_leave(loop);
    arm(loop);
}

static void loop_free(coord_loop *base)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    coord_sim *sim = loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    sim->refs++;
    let_go(loop);
    (void)free_if_over(loop);
    if (sim->abandoned) {
        coordi_sim_settle(sim);
    }
    coordi_sim_unlock_unref(sim);
}

/* ---- jobs and timers ---- */

/* Only the destruction of its objects, by someone else, brings a crashed loop back. Its
 * own code may still run when it crashes itself: that doesn't count. */
void coordi_sim_awake(coordi_sim_loop *loop)
{
    if (loop == NULL || !loop->crashed || loop->awake) {
        return;
    }
    coord_sim *sim = loop->sim;
    const coordi_thread *self = coordi_sim_self(sim);
    bool by_itself = self != NULL ? self->actor.loop == loop
                                  : sim->current == loop && !coordi_sim_may_drive(sim);
    if (!by_itself) {
        loop->awake = true;
        coordi_sim_thaw(sim, loop);
    }
}

void coordi_sim_unlock_after(coord_sim *sim)
{
    sim->refs++;
    coordi_sim_maybe_yield(sim);
    if (sim->abandoned) {
        coordi_sim_settle(sim);
    }
    coordi_sim_unlock_unref(sim);
}

void coordi_sim_queue(coordi_sim_loop *loop, coordi_job *job)
{
    coordi_list_append(&loop->jobs, &job->link);
    arm(loop);
}

static void post(coord_loop *base, coordi_job *job)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    coord_sim *sim = loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    coordi_list_append(&loop->jobs, &job->link);
    coordi_sim_awake(loop);
    arm(loop);
    coordi_sim_unlock_after(sim);
}

static bool inside(const coord_loop *base)
{
    const coordi_sim_loop *loop = coordi_sim_loop_of(base);
    coord_sim *sim = loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    bool is_inside = sim->current == loop && sim->driving &&
                     pthread_equal(sim->driver, pthread_self());
    (void)pthread_mutex_unlock(&sim->lock);
    return is_inside;
}

static void timer_set(coord_loop *base, coordi_timer *timer, int64_t at_ms)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    (void)pthread_mutex_lock(&loop->sim->lock);
    coordi_heap_set(&loop->timers, timer, at_ms);
    arm(loop);
    (void)pthread_mutex_unlock(&loop->sim->lock);
}

static void timer_cancel(coord_loop *base, coordi_timer *timer)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    (void)pthread_mutex_lock(&loop->sim->lock);
    coordi_heap_cancel(&loop->timers, timer);
    arm(loop);
    (void)pthread_mutex_unlock(&loop->sim->lock);
}

static coord_status step(coord_loop *base, int64_t wait_ms, coord_error *err)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    coord_sim *sim = loop->sim;
    coord_status rc = coordi_sim_lock_to_drive(sim, "coord_loop_step", err);
    if (rc != COORD_OK) {
        return rc;
    }
    int64_t limit = coordi_sim_after(sim, wait_ms);
    uint64_t before = loop->events;
    while (loop->events == before && !coordi_sim_spins(sim)) {
        if (!coordi_sim_drive(sim, limit)) {
            coordi_sim_jump(sim, limit);
            break;
        }
    }
    coordi_sim_unlock_unref(sim);
    return COORD_OK;
}

static int no_fd(const coord_loop *base)
{
    (void)base;
    return -1;
}

/* ---- clock and chance ---- */

static int64_t now_ms(coord_loop *base)
{
    return coord_sim_now_ms(coordi_sim_loop_of(base)->sim);
}

static int64_t wall_ms(coord_loop *base)
{
    coord_sim *sim = coordi_sim_loop_of(base)->sim;
    (void)pthread_mutex_lock(&sim->lock);
    int64_t wall = sim->now_ms + sim->wall_ahead_ms;
    (void)pthread_mutex_unlock(&sim->lock);
    return wall;
}

static void random_bytes(coord_loop *base, void *bytes, size_t len)
{
    coord_sim *sim = coordi_sim_loop_of(base)->sim;
    unsigned char *at = bytes;
    uint64_t word = 0;
    (void)pthread_mutex_lock(&sim->lock);
    for (size_t i = 0; i < len; i++) {
        word = i % 8 == 0 ? coordi_sim_next(&sim->bytes_state) : word >> 8;
        at[i] = (unsigned char)(word & 0xff);
    }
    (void)pthread_mutex_unlock(&sim->lock);
}

/* ---- faults of a process ---- */

/* The loop of this world that is meant, or NULL. */
static coordi_sim_loop *of_this_world(const coord_sim *sim, const coord_loop *base)
{
    if (sim == NULL || base == NULL || base->env != &coordi_env_sim) {
        return NULL;
    }
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    return loop->sim == sim ? loop : NULL;
}

void coord_sim_crash(coord_sim *sim, coord_loop *base)
{
    coordi_sim_loop *loop = of_this_world(sim, base);
    if (loop == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&sim->lock);
    if (!loop->crashed) {
        coordi_sim_tell(sim, loop, "crash");
        loop->crashed = true;
        loop->paused = false;
        coordi_sim_servers_die(loop);
        coordi_sim_requests_die(loop);
        coordi_sim_records_die(loop);
    }
    (void)pthread_mutex_unlock(&sim->lock);
}

void coord_sim_pause(coord_sim *sim, coord_loop *base, bool paused)
{
    coordi_sim_loop *loop = of_this_world(sim, base);
    if (loop == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&sim->lock);
    if (!loop->crashed && loop->paused != paused) {
        coordi_sim_tell(sim, loop, "%s", paused ? "pause" : "go on");
        loop->paused = paused;
        if (!paused) {
            coordi_sim_thaw(sim, loop);
        }
    }
    (void)pthread_mutex_unlock(&sim->lock);
}

void coord_sim_set_foreign(coord_sim *sim, coord_loop *base, bool foreign)
{
    coordi_sim_loop *loop = of_this_world(sim, base);
    if (loop != NULL) {
        (void)pthread_mutex_lock(&sim->lock);
        loop->foreign = foreign;
        (void)pthread_mutex_unlock(&sim->lock);
    }
}

/* ---- the table ---- */

const coordi_env coordi_env_sim = {
    .name = "sim",
    .now_ms = now_ms,
    .wall_ms = wall_ms,
    .random = random_bytes,
    .post = post,
    .inside = inside,
    .step = step,
    .fd = no_fd,
    .free = loop_free,
    .timer_set = timer_set,
    .timer_cancel = timer_cancel,
    .thread_start = coordi_sim_thread_start,
    .thread_join = coordi_sim_thread_join,
    .event_create = coordi_sim_event_create,
    .event_set = coordi_sim_event_set,
    .event_wait = coordi_sim_event_wait,
    .event_destroy = coordi_sim_event_destroy,
    .peer_create = coordi_sim_peer_create,
    .peer_destroy = coordi_sim_peer_destroy,
    .peer_path = coordi_sim_peer_path,
    .http_send = coordi_sim_http_send,
    .http_cancel = coordi_sim_http_cancel,
    .server_create = coordi_sim_server_create,
    .server_port = coordi_sim_server_port,
    .server_destroy = coordi_sim_server_destroy,
    .call_header = coordi_sim_call_header,
    .http_answer = coordi_sim_http_answer,
    .process_start = coordi_sim_process_start,
    .process_id = coordi_sim_process_id,
    .process_signal = coordi_sim_process_signal,
    .process_pause = coordi_sim_process_pause,
    .process_destroy = coordi_sim_process_destroy,
    .file_read = coordi_sim_file_read,
    .file_replace = coordi_sim_file_replace,
    .records_open = coordi_sim_records_open,
    .records_read = coordi_sim_records_read,
    .records_write = coordi_sim_records_write,
    .records_close = coordi_sim_records_close,
    .environment = coordi_sim_environment,
};
