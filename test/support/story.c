#include "support/story.h"

#include "support/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char COORDINATOR[] = "10.0.0.1";
enum {
    GRACE_MS = 2000, /* what a send waits beyond its deadlines */
    YEAR_S = 31536000,
    SETTLE_MS = 900000 /* when all is well again, all has ended after so long */
};

/* ---- chance and complaints ---- */

static uint64_t chance;

uint64_t story_draw(uint64_t count)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (chance >> 11) % count;
}

static uint64_t draw(uint64_t count)
{
    return story_draw(count);
}

static bool one_in(uint64_t count)
{
    return draw(count) == 0;
}

void story_complain(story *s, const char *format, ...)
{
    va_list args;
    if (s->complaint[0] == '\0') {
        va_start(args, format);
        (void)vsnprintf(s->complaint, sizeof s->complaint, format, args);
        va_end(args);
    }
}

static void check(story *s)
{
    if (s->complaint[0] != '\0') {
        heap_mend();
        fail_msg("at %lld ms: %s", (long long)coord_sim_now_ms(s->k.sim), s->complaint);
    }
}

/* ---- the world ---- */

static void make_world(story *s, uint64_t seed)
{
    coord_sim_options world;
    coord_sim_options_init(&world, sizeof world);
    world.seed = seed;
    world.yield_chance = (double)draw(3) * 0.05;
    int collectors = 1 + (int)draw(3);
    cluster_init_in(&s->k, world, collectors, 1 + (int)draw(2));
    int liars = one_in(3) ? 1 + (int)draw(STORY_LIARS_MAX) : 0;
    for (int i = 0; i < s->k.worker_count; i++) {
        cluster_worker *w = &s->k.workers[i];
        w->work_ms = (int64_t)draw(3) * 150;
        w->resource_ms = (int64_t)draw(3) * 20;
        if (one_in(3)) {
            cluster_set_foreign(&s->k, w->id);
        }
        if (i != 0 && i != collectors && liars > 0) { /* one of a role is honest */
            s->liar_at[i] = &s->liars[--liars];
            liar_begin(s->liar_at[i], &s->k, w, story_draw, 5 + draw(45));
        }
    }
}

static int64_t pick(int64_t a, int64_t b)
{
    return one_in(2) ? a : b;
}

/* Returns further configuration; static. */
static const char *make_config(story *s)
{
    static char text[1024];
    static const char *const EXECUTORS[] = {"\"per_task\"", "{\"pool\": 1}",
                                            "{\"pool\": 2}", "\"inline\""};
    size_t executor = draw(4);
    int64_t queue_s = pick(0, 20);
    int64_t start_s = pick(5, 60);
    int64_t close_s = pick(5, 60);
    int64_t retry_s = pick(20, 120);
    s->is_inline = executor == 3;
    s->k.callback_ms = s->is_inline ? 0 : (int64_t)draw(3) * 40;
    int64_t reassigns = (int64_t)draw(4);
    int64_t once_ms = (queue_s + start_s) * 1000;
    s->send_limit_ms = queue_s == 0 ? -1 : once_ms * (reassigns + 1) + GRACE_MS;
    s->close_limit_ms = close_s * 1000;
    s->start_limit_ms = retry_s * 1000 + GRACE_MS;
    (void)snprintf(
        text, sizeof text,
        "\"executor\": %s, \"resource_manager\": \"%s\", \"queue_timeout_s\": %d, "
        "\"max_queued_tasks\": %d, \"max_retry_second\": %d, \"request_retries\": %d, "
        "\"request_retry_wait_s\": %g, \"request_timeout_s\": %d, "
        "\"heartbeat_tolerance_s\": %d, \"start_timeout_s\": %d, "
        "\"collector_task_timeout_s\": %d, \"learner_task_timeout_s\": %d, "
        "\"close_timeout_s\": %d, \"max_reassign\": %d, \"max_body_bytes\": %d,",
        EXECUTORS[executor], one_in(2) ? "random" : "least_loaded", (int)queue_s,
        (int)pick(3, 10000), (int)retry_s, (int)draw(6), one_in(2) ? 0.2 : 1.0,
        (int)pick(2, 10), (int)pick(7, 17), (int)start_s, (int)pick(0, 20),
        (int)pick(0, 20), (int)close_s, (int)reassigns, (int)pick(32768, 16777216));
    return text;
}

static void roughen(story *s)
{
    coord_sim_link rough;
    coord_sim_link_init(s->k.sim, &rough, sizeof rough);
    rough.latency_max_ms = 1 + (int64_t)draw(one_in(4) ? 2000 : 100);
    rough.loss = (double)draw(4) * 0.01;
    rough.reset_before = (double)draw(4) * 0.02;
    rough.reset_after = (double)draw(4) * 0.02;
    rough.duplicate = (double)draw(4) * 0.02;
    cluster_link(&s->k, &rough);
}

static void smooth(story *s)
{
    coord_sim_link plain;
    coord_sim_link_init(s->k.sim, &plain, sizeof plain);
    cluster_link(&s->k, &plain);
}

/* ---- what can go wrong ---- */

static void crash(story *s, int n)
{
    if (s->down[n]) {
        cluster_revive(&s->k, s->k.workers[n].id);
        s->down[n] = false;
        return;
    }
    if (s->liar_at[n] != NULL) {
        liar_end(s->liar_at[n]);
        s->liar_at[n] = NULL;
    } else {
        cluster_crash(&s->k, s->k.workers[n].id);
    }
    s->down[n] = true;
    s->paused[n] = false;
}

static void fall_silent(story *s, int n)
{
    if (!s->down[n]) {
        s->paused[n] = !s->paused[n];
        coord_sim_pause(s->k.sim, s->k.workers[n].loop, s->paused[n]);
    }
}

static void cut_from(story *s, int n)
{
    assert_int_equal(
        coord_sim_block(s->k.sim, s->k.workers[n].host, COORDINATOR, true, NULL),
        COORD_OK);
}

static void cut_to(story *s, int n)
{
    assert_int_equal(
        coord_sim_block(s->k.sim, COORDINATOR, s->k.workers[n].host, true, NULL),
        COORD_OK);
}

static void heal(story *s, int n)
{
    (void)n;
    coord_sim_heal(s->k.sim);
}

static void change_weather(story *s, int n)
{
    (void)n;
    if (one_in(3)) {
        smooth(s);
    } else {
        roughen(s);
    }
}

static void step_wall_clock(story *s, int n)
{
    (void)n;
    int64_t year_ms = (int64_t)YEAR_S * 1000;
    coord_sim_set_wall_ms(s->k.sim, (int64_t)draw(60) * year_ms);
}

/* The coordinator's own process stands still, as when its machine sleeps. */
static void doze(story *s, int n)
{
    (void)n;
    coord_sim_pause(s->k.sim, s->k.loop, true);
    cluster_run(&s->k, (int64_t)draw(one_in(3) ? 60000 : 8000));
    coord_sim_pause(s->k.sim, s->k.loop, false);
}

static void slow_callbacks(story *s, int n)
{
    (void)n;
    if (!s->is_inline) {
        s->k.callback_ms = (int64_t)draw(3) * (one_in(4) ? 9000 : 200);
    }
}

static void hold_data(story *s, int n)
{
    (void)n;
    s->k.hold_data = !s->k.hold_data;
}

static void fail_work(story *s, int n)
{
    cluster_worker *w = &s->k.workers[n];
    w->fail_starts = (int)draw(2);
    w->fail_asks = (int)draw(4);
    w->fail_learns = (int)draw(4);
    w->fail_closes = (int)draw(2);
    w->no_resource = one_in(4);
}

/* Some of the next allocations fail, of whoever needs memory then. */
static void run_short(story *s, int n)
{
    (void)n;
    s->short_of_memory = true; /* what fails now may be told later */
    heap_fail(draw(400), 1 + draw(one_in(3) ? 50 : 3));
    cluster_run(&s->k, (int64_t)draw(2000));
    (void)heap_mend();
}

static void cancel(story *s, int n)
{
    (void)n;
    if (s->task_count > 0) {
        const char *id = s->tasks[draw((uint64_t)s->task_count)].id;
        coord_status rc = comm_coordinator_cancel_task(s->k.c, id, NULL);
        assert_true(rc == COORD_OK || rc == COORD_ERR_NOT_FOUND || s->closing);
    }
}

static coord_status add_worker(story *s, int n, coord_error *err)
{
    const cluster_worker *w = &s->k.workers[n];
    return comm_coordinator_add_worker(s->k.c, w->role, w->id, w->host, 22270, err);
}

/* Removes a worker, or adds it again; never the first of its role. */
static void come_or_go(story *s, int n)
{
    const cluster_worker *w = &s->k.workers[n];
    comm_coordinator_removal how =
        one_in(2) ? COMM_COORDINATOR_DRAIN : COMM_COORDINATOR_DROP;
    coord_error err = {0};
    if (w->id[1] == '0' || s->closing) {
        return;
    }
    coord_status rc =
        s->absent[n] ? add_worker(s, n, &err)
                     : comm_coordinator_remove_worker(s->k.c, w->role, w->id, how, &err);
    if (rc != COORD_OK && !(rc == COORD_ERR_CLOSED && s->closing)) {
        story_complain(s, "%s of %s: %s", s->absent[n] ? "add" : "remove", w->id,
                       err.text);
    }
    s->absent[n] = !s->absent[n];
    s->added[n] = !s->absent[n];
}

static void nothing(story *s, int n)
{
    (void)s;
    (void)n;
}

static void strike(story *s)
{
    static void (*const STRIKES[])(story * s, int n) = {
        crash,           crash,     fall_silent,    fall_silent, cut_from,
        cut_to,          heal,      heal,           doze,        change_weather,
        step_wall_clock, run_short, slow_callbacks, hold_data,   fail_work,
        cancel,          nothing,   come_or_go,     come_or_go,
    };
    size_t which = draw(sizeof STRIKES / sizeof STRIKES[0]);
    STRIKES[which](s, (int)draw((uint64_t)s->k.worker_count));
}

/* Everything is well again; liars are replaced by honest workers. */
static void mend(story *s)
{
    smooth(s);
    coord_sim_heal(s->k.sim);
    s->k.hold_data = false;
    s->k.callback_ms = 0;
    for (int i = 0; i < s->k.worker_count; i++) {
        cluster_worker *w = &s->k.workers[i];
        if (s->liar_at[i] != NULL && !s->down[i]) {
            crash(s, i);
        }
        if (s->down[i]) {
            crash(s, i);
        } else if (s->paused[i]) {
            fall_silent(s, i);
        }
        w->fail_starts = 0;
        w->fail_asks = 0;
        w->fail_learns = 0;
        w->fail_closes = 0;
        w->no_resource = false;
    }
}

static void call_back(story *s)
{
    for (int i = 0; i < s->k.worker_count; i++) {
        if (s->absent[i]) {
            come_or_go(s, i);
        }
    }
}

/* ---- beginning, middle, end ---- */

static coord_status start_in_time(story *s, coord_error *err)
{
    int64_t began_ms = coord_sim_now_ms(s->k.sim);
    coord_status rc = comm_coordinator_start(s->k.c, err);
    if (coord_sim_now_ms(s->k.sim) - began_ms > s->start_limit_ms) {
        story_complain(s, "start took over %lld ms", (long long)s->start_limit_ms);
    }
    return rc;
}

/* Starts; if the weather is too bad for that, then once it is better. */
static void start(story *s)
{
    coord_error err = {0};
    cluster_create(&s->k, make_config(s));
    story_watch(s);
    bool at_once = one_in(2);
    if (!at_once) {
        roughen(s);
    }
    coord_status rc = start_in_time(s, &err);
    if (rc == COORD_ERR_TIMEOUT && !at_once) {
        smooth(s);
        rc = start_in_time(s, &err);
    }
    if (rc != COORD_OK) {
        fail_msg("start: %s: %s", err.text, err.cause);
    }
    roughen(s);
}

static void go_on(story *s)
{
    if (s->task_count < s->tasks_wanted && one_in(3)) {
        story_post(s);
    }
    if (s->task_count > 0) {
        strike(s);
    }
    cluster_run(&s->k, 100 + (int64_t)draw(one_in(5) ? 20000 : 1500));
    check(s);
    cluster_check(&s->k);
}

static void end_in_the_middle(story *s)
{
    for (int tries = 0; !story_close(s) && s->complaint[0] == '\0'; tries++) {
        if (tries == 200) {
            story_complain(s, "close never gets done");
        }
    }
    check(s);
    mend(s);
    story_join_hosts(s);
}

static void end_without_a_word(story *s)
{
    mend(s);
    story_join_hosts(s);
    s->destroyed = true;
    comm_coordinator_destroy(s->k.c);
    s->k.c = NULL;
    s->k.closed = true; /* no callback begins from here on */
}

/* Each change was told once. */
static void check_changes(story *s)
{
    int added = 0;
    for (int i = 0; i < s->k.worker_count; i++) {
        added += s->added[i];
    }
    cluster_run(&s->k, 60000); /* the last may wait behind slow ones */
    if (s->increases - s->decreases != added) {
        story_complain(s, "%d increases and %d decreases, and %d workers were added",
                       s->increases, s->decreases, added);
    }
}

static void end_well(story *s, bool drains)
{
    coord_error err = {0};
    mend(s);
    call_back(s);
    if (drains) {
        s->closing = true; /* to its tasks it is all the same */
        coord_status rc = comm_coordinator_drain(s->k.c, 0, &err);
        assert_true(rc == COORD_OK || rc == COORD_ERR_TIMEOUT);
        story_post(s);
    }
    story_join_hosts(s);
    check(s);
    if (comm_coordinator_wait(s->k.c, SETTLE_MS, &err) != COORD_OK) {
        char *status = NULL;
        assert_int_equal(comm_coordinator_status(s->k.c, &status, NULL), COORD_OK);
        fail_msg("%s: %s", err.text, status);
    }
    for (int i = 0; i < s->k.worker_count; i++) {
        if (!cluster_await_worker(&s->k, s->k.workers[i].id, "free", 120000)) {
            fail_msg("worker %s stays %s", s->k.workers[i].id,
                     cluster_worker_state(&s->k, s->k.workers[i].id));
        }
    }
    cluster_check(&s->k);
    check_changes(s);
}

static void check_tasks(story *s)
{
    for (int i = 0; i < s->task_count; i++) {
        const story_task *t = &s->tasks[i];
        int wanted = t->accepted ? 1 : 0;
        bool may_lack = s->destroyed && t->accepted;
        if (t->ends != wanted && !(may_lack && t->ends == 0)) {
            story_complain(s, "task %s has %d ends, %d are right", t->id, t->ends,
                           wanted);
        }
        if (t->refused && t->callbacks > 0) {
            story_complain(s, "task %s was refused and had %d callbacks", t->id,
                           t->callbacks);
        }
        if (t->finished && t->role == COORD_COLLECTOR && t->next_sample >= 0 &&
            t->next_sample != 4 && !s->short_of_memory) {
            story_complain(s, "task %s finished after %d samples of 3", t->id,
                           t->next_sample - 1);
        }
    }
    check(s);
}

void story_tell(story *s, uint64_t seed)
{
    memset(s, 0, offsetof(story, k));
    s->seed = seed;
    chance = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    make_world(s, seed);
    s->tasks_wanted = 4 + (int)draw(8);
    s->k.data_in_buffer = 1;
    start(s);
    for (int i = 0; i < STORY_HOSTS_MAX; i++) {
        if (one_in(3)) {
            story_start_host(s, 1 + (int)draw(8));
        }
    }
    for (int i = 0; i < 30; i++) {
        go_on(s);
    }
    while (s->task_count < s->tasks_wanted) {
        story_post(s);
    }
    switch (draw(8)) {
    case 0:
    case 1:
        end_in_the_middle(s);
        break;
    case 2:
        end_without_a_word(s);
        break;
    default:
        end_well(s, one_in(4));
        break;
    }
    s->hash = coord_sim_trace_hash(s->k.sim);
    cluster_done(&s->k);
    check_tasks(s);
}
