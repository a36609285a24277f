#include "env/sim.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "env/sim_records.h"

#include <stdarg.h>
#include <stdio.h>

/* The world itself: made, run and freed; chance, clock and trace.
 *
 * Whoever runs the world becomes its driver for one event at a time. In between the lock
 * is free, so that a predicate may call whatever it likes, and a second outside thread
 * gets its turn. */

enum { SPIN_LIMIT = 1000000 }; /* events at one instant */

static const coord_sim_options DEFAULTS = {
    .size = sizeof(coord_sim_options),
    .seed = 1,
    .start_ms = 1000,
    .wall_start_ms = INT64_C(1767225600000),
    .latency_min_ms = 1,
    .latency_max_ms = 5,
};

void coord_sim_options_init(coord_sim_options *options, size_t size)
{
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

/* ---- chance ---- */

/* A Weyl sequence through a mixer; any state is a good one. */
static uint64_t scatter(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t coordi_sim_next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return scatter(*state);
}

size_t coordi_sim_draw(coord_sim *sim, size_t count)
{
    return count < 2 ? 0 : (size_t)(coordi_sim_next(&sim->order_state) % count);
}

bool coordi_sim_chance(coord_sim *sim, double probability)
{
    if (probability <= 0) {
        return false;
    }
    /* 53 bits are exact in a double, and so the same with every compiler. */
    return (double)(coordi_sim_next(&sim->order_state) >> 11) * 0x1p-53 < probability;
}

/* ---- trace ---- */

static void mix_word(coord_sim *sim, uint64_t word)
{
    sim->hash = scatter(sim->hash ^ word) + UINT64_C(0x9e3779b97f4a7c15);
}

void coordi_sim_mix(coord_sim *sim, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t word = len;
    for (size_t i = 0; i < len; i++) {
        word = (word ^ at[i]) * UINT64_C(0x100000001b3);
    }
    mix_word(sim, word);
}

void coordi_sim_tell(coord_sim *sim, const coordi_sim_loop *loop, const char *format, ...)
{
    mix_word(sim, (uint64_t)sim->now_ms);
    mix_word(sim, loop == NULL ? 0 : loop->index);
    coordi_sim_mix(sim, format, strlen(format)); /* the kind of event */
    coordi_sim_line *line = &sim->recent[sim->told++ % COORDI_SIM_RECENT];
    line->at_ms = sim->now_ms;
    line->host = loop == NULL ? NULL : loop->host;
    line->loop = loop == NULL ? 0 : loop->index;
    size_t len = strlen(format);
    if (len < sizeof line->what && memchr(format, '%', len) == NULL) { /* most are */
        memcpy(line->what, format, len + 1);
    } else {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(line->what, sizeof line->what, format, args);
        va_end(args);
    }
    if (sim->options.trace != NULL) {
        char text[COORDI_SIM_LINE_SIZE];
        coordi_sim_print_line(line, text);
        sim->options.trace(text, sim->options.user);
    }
}

/* ---- made and freed ---- */

static coord_status check_options(const coord_sim_options *o, coord_error *err)
{
    if (o->latency_min_ms < 0 || o->latency_max_ms < o->latency_min_ms) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: latency must be 0 <= min <= max, got %lld to %lld ms",
                           (long long)o->latency_min_ms, (long long)o->latency_max_ms);
    }
    if (!(o->yield_chance >= 0 && o->yield_chance <= 1)) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: yield_chance must be from 0 to 1, got %g",
                           o->yield_chance);
    }
    if (o->start_ms < 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: start_ms must not be negative, got %lld",
                           (long long)o->start_ms);
    }
    return COORD_OK;
}

static void fill(coord_sim *sim, const coord_sim_options *o)
{
    sim->options = *o;
    sim->log = (coordi_log){o->log, o->user, o->log_level, "sim"};
    sim->pid = coordi_process_id();
    sim->refs = 1;
    sim->now_ms = o->start_ms;
    sim->wall_ahead_ms = o->wall_start_ms - o->start_ms;
    /* Two streams that are far apart, so that one more UUID changes no order. */
    sim->order_state = scatter(o->seed);
    sim->bytes_state = scatter(~o->seed);
    coordi_list_init(&sim->loops);
    coordi_list_init(&sim->threads);
    coordi_list_init(&sim->hosts);
    coordi_list_init(&sim->links);
    coordi_list_init(&sim->cuts);
    coordi_list_init(&sim->calls);
    coordi_list_init(&sim->guests);
    coordi_list_init(&sim->processes);
}

coord_status coord_sim_create(const coord_sim_options *options, coord_sim **ret,
                              coord_error *err)
{
    if (ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: ret is required");
    }
    coord_sim_options o = DEFAULTS;
    if (options != NULL) {
        coord_status rc =
            coordi_options_adopt(&o, sizeof o, options, "coord_sim_options", err);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    coord_status rc = check_options(&o, err);
    if (rc != COORD_OK) {
        return rc;
    }
    coord_sim *sim = coordi_zalloc(sizeof *sim);
    if (sim == NULL) {
        return coordi_fail_nomem(err, "sim");
    }
    fill(sim, &o);
    /* These can't fail on Linux: they only write into the memory given. */
    (void)pthread_mutex_init(&sim->lock, NULL);
    (void)pthread_cond_init(&sim->idle, NULL);
    (void)sem_init(&sim->back, 0, 0);
    *ret = sim;
    return COORD_OK;
}

static void free_world(coord_sim *sim)
{
    coordi_sim_net_done(sim);
    coordi_sim_files_done(sim);
    coordi_sim_records_done(sim);
    coordi_sim_programs_done(sim);
    coordi_sim_guests_done(sim);
    (void)pthread_mutex_destroy(&sim->lock);
    (void)pthread_cond_destroy(&sim->idle);
    (void)sem_destroy(&sim->back);
    coordi_free(sim->ready);
    coordi_free(sim);
}

void coordi_sim_unlock_unref(coord_sim *sim)
{
    bool last = --sim->refs == 0;
    (void)pthread_mutex_unlock(&sim->lock);
    if (last) {
        free_world(sim);
    }
}

void coord_sim_destroy(coord_sim *sim)
{
    if (sim == NULL) {
        return;
    }
    if (coordi_check_process(sim->pid, "sim", NULL) != COORD_OK) {
        coordi_leave_behind(&sim->behind);
        return;
    }
    coordi_sim_guests_leave(sim);
    (void)pthread_mutex_lock(&sim->lock);
    sim->abandoned = true; /* from now on nobody is paused */
    for (coordi_link *at = sim->loops.next; at != &sim->loops; at = at->next) {
        coordi_sim_loop *loop = COORDI_ITEM(at, coordi_sim_loop, link);
        coordi_sim_thaw(sim, loop);
        coordi_sim_records_hurry(loop);
    }
    coordi_sim_wake_sleepers(sim);
    coordi_sim_settle(sim);
    if (sim->refs > 1) {
        COORDI_LOG(&sim->log, COORD_LOG_DEBUG, "destroy: waits for uses=%zu",
                   sim->refs - 1);
    }
    coordi_sim_unlock_unref(sim);
}

/* ---- run ---- */

bool coordi_sim_may_drive(const coord_sim *sim)
{
    return coordi_sim_self(sim) == NULL &&
           !(sim->driving && pthread_equal(sim->driver, pthread_self()));
}

bool coordi_sim_spins(const coord_sim *sim)
{
    return sim->at_instant > SPIN_LIMIT;
}

void coordi_sim_jump(coord_sim *sim, int64_t to_ms)
{
    if (to_ms > sim->now_ms && to_ms != INT64_MAX) { /* that is: no limit */
        sim->now_ms = to_ms;
        sim->at_instant = 0;
    }
}

bool coordi_sim_drive(coord_sim *sim, int64_t limit_ms)
{
    while (sim->driving) {
        sim->outside_waiting++;
        (void)pthread_cond_wait(&sim->idle, &sim->lock);
        sim->outside_waiting--;
    }
    coordi_sim_actor *actor = coordi_sim_pick(sim, limit_ms);
    if (actor == NULL) {
        return false;
    }
    sim->driving = true;
    sim->driver = pthread_self();
    sim->at_instant++;
    actor->act(sim, actor); /* may free the actor */
    sim->driving = false;
    if (sim->outside_waiting > 0) {
        (void)pthread_cond_broadcast(&sim->idle);
    }
    return true;
}

void coordi_sim_settle(coord_sim *sim)
{
    if (!coordi_sim_may_drive(sim)) {
        return; /* whoever runs us goes on when we have returned */
    }
    sim->refs++;
    sim->at_instant = 0;
    while (!coordi_sim_spins(sim) && coordi_sim_drive(sim, sim->now_ms)) {
    }
    sim->refs--;
}

coord_status coordi_sim_lock_to_drive(coord_sim *sim, const char *what, coord_error *err)
{
    if (sim == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "%s: sim is required", what);
    }
    coord_status rc = coordi_check_process(sim->pid, what, err);
    if (rc != COORD_OK) {
        return rc;
    }
    (void)pthread_mutex_lock(&sim->lock);
    if (!coordi_sim_may_drive(sim)) {
        (void)pthread_mutex_unlock(&sim->lock);
        return coordi_fail(err, COORD_ERR_STATE,
                           "%s: called by code that the same world runs", what);
    }
    sim->refs++;
    sim->at_instant = 0; /* each call may do its million */
    return COORD_OK;
}

static coord_status spins(const coord_sim *sim, coord_error *err)
{
    return coordi_fail(err, COORD_ERR_STATE,
                       "sim: more than %d events at %lld ms, and the clock does not move",
                       SPIN_LIMIT, (long long)sim->now_ms);
}

bool coord_sim_step(coord_sim *sim)
{
    if (coordi_sim_lock_to_drive(sim, "coord_sim_step", NULL) != COORD_OK) {
        return false;
    }
    bool stepped = coordi_sim_drive(sim, INT64_MAX);
    coordi_sim_unlock_unref(sim);
    return stepped;
}

int64_t coordi_sim_after(const coord_sim *sim, int64_t ms)
{
    if (ms <= 0) {
        return sim->now_ms;
    }
    return ms > INT64_MAX - sim->now_ms ? INT64_MAX : sim->now_ms + ms;
}

/* In a thread of the world; false: in another one. Nobody sleeps in a world that was
 * given back: its clock stands still. */
static bool sleep_for(coord_sim *sim, int64_t ms)
{
    (void)pthread_mutex_lock(&sim->lock);
    coordi_thread *self = coordi_sim_self(sim);
    if (self != NULL && !sim->abandoned) {
        self->sleeps = true;
        coordi_sim_sleep(self, coordi_sim_after(sim, ms));
        self->sleeps = false;
    }
    (void)pthread_mutex_unlock(&sim->lock);
    return self != NULL;
}

coord_status coord_sim_run_for(coord_sim *sim, int64_t ms, coord_error *err)
{
    if (sim == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "coord_sim_run_for: sim is NULL");
    }
    if (coordi_check_process(sim->pid, "coord_sim_run_for", err) != COORD_OK) {
        return COORD_ERR_FORKED;
    }
    if (sleep_for(sim, ms)) {
        return COORD_OK;
    }
    coord_status rc = coordi_sim_lock_to_drive(sim, "coord_sim_run_for", err);
    if (rc != COORD_OK) {
        return rc;
    }
    int64_t limit = coordi_sim_after(sim, ms);
    while (!coordi_sim_spins(sim) && coordi_sim_drive(sim, limit)) {
    }
    if (coordi_sim_spins(sim)) {
        rc = spins(sim, err);
    } else {
        coordi_sim_jump(sim, limit);
    }
    coordi_sim_unlock_unref(sim);
    return rc;
}

coord_status coord_sim_run_until(coord_sim *sim, int64_t limit_ms,
                                 coord_sim_done_fn *done, void *user, coord_error *err)
{
    coord_status rc = coordi_sim_lock_to_drive(sim, "coord_sim_run_until", err);
    if (rc != COORD_OK) {
        return rc;
    }
    int64_t limit = coordi_sim_after(sim, limit_ms);
    for (;;) {
        (void)pthread_mutex_unlock(&sim->lock);
        bool is_done = done(user);
        (void)pthread_mutex_lock(&sim->lock);
        if (is_done) {
            break;
        }
        if (coordi_sim_spins(sim)) {
            rc = spins(sim, err);
            break;
        }
        if (!coordi_sim_drive(sim, limit)) {
            coordi_sim_jump(sim, limit);
            rc = coordi_fail(err, COORD_ERR_TIMEOUT,
                             "sim: what it ran for did not come within %lld ms",
                             (long long)limit_ms);
            coordi_sim_explain(sim, err);
            break;
        }
    }
    coordi_sim_unlock_unref(sim);
    return rc;
}

coord_status coord_sim_run_until_idle(coord_sim *sim, int64_t limit_ms, coord_error *err)
{
    coord_status rc = coordi_sim_lock_to_drive(sim, "coord_sim_run_until_idle", err);
    if (rc != COORD_OK) {
        return rc;
    }
    int64_t limit = coordi_sim_after(sim, limit_ms);
    for (;;) {
        if (coordi_sim_spins(sim)) {
            rc = spins(sim, err);
            break;
        }
        if (coordi_sim_drive(sim, sim->now_ms)) {
            continue;
        }
        if (sim->under_way == 0) {
            break;
        }
        if (!coordi_sim_drive(sim, limit)) {
            rc = coordi_fail(err, COORD_ERR_TIMEOUT,
                             "sim: %zu messages are still under way after %lld ms",
                             sim->under_way, (long long)limit_ms);
            coordi_sim_explain(sim, err);
            coordi_sim_jump(sim, limit);
            break;
        }
    }
    coordi_sim_unlock_unref(sim);
    return rc;
}

/* ---- asked and set ---- */

int64_t coord_sim_now_ms(const coord_sim *sim)
{
    if (sim == NULL) {
        return 0;
    }
    coord_sim *s = (coord_sim *)sim; /* the lock is all that changes */
    (void)pthread_mutex_lock(&s->lock);
    int64_t now = s->now_ms;
    (void)pthread_mutex_unlock(&s->lock);
    return now;
}

void coord_sim_set_wall_ms(coord_sim *sim, int64_t wall_ms)
{
    if (sim == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&sim->lock);
    sim->wall_ahead_ms = wall_ms - sim->now_ms;
    (void)pthread_mutex_unlock(&sim->lock);
}

uint64_t coord_sim_trace_hash(const coord_sim *sim)
{
    if (sim == NULL) {
        return 0;
    }
    coord_sim *s = (coord_sim *)sim;
    (void)pthread_mutex_lock(&s->lock);
    uint64_t hash = s->hash;
    (void)pthread_mutex_unlock(&s->lock);
    return hash;
}
