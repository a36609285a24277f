/* The simulated world: order, clock, jobs, timers, threads, events, life and death. */
#include "base/alloc.h"
#include "base/error.h"
#include "coord/testing.h"
#include "env/lane.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A world with two processes, and a diary of what they did. */
typedef struct rig {
    coord_sim *sim;
    coord_loop *a;
    coord_loop *b;
    char diary[256];
    size_t at;
} rig;

static coord_loop *loop_on(coord_sim *sim, const char *host)
{
    coord_loop *loop = NULL;
    assert_int_equal(coord_sim_loop(sim, host, &loop, NULL), COORD_OK);
    return loop;
}

static void rig_open(rig *r, uint64_t seed)
{
    coord_sim_options options;
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&options, sizeof options);
    options.seed = seed;
    options.yield_chance = 0.5;
    assert_int_equal(coord_sim_create(&options, &r->sim, NULL), COORD_OK);
    r->a = loop_on(r->sim, "10.0.0.1");
    r->b = loop_on(r->sim, "10.0.0.2");
}

static void rig_close(rig *r)
{
    coord_loop_destroy(r->a);
    coord_loop_destroy(r->b);
    coord_sim_destroy(r->sim);
}

static void write_down(rig *r, char what)
{
    if (r->at + 1 < sizeof r->diary) {
        r->diary[r->at++] = what;
    }
}

/* A job or a timer that writes one letter. */
typedef struct note {
    coordi_job job;
    coordi_timer timer;
    rig *rig;
    char what;
} note;

static void note_run(coordi_job *job)
{
    note *n = COORDI_ITEM(job, note, job);
    write_down(n->rig, n->what);
}

static void note_fire(coordi_timer *timer)
{
    note *n = COORDI_ITEM(timer, note, timer);
    write_down(n->rig, n->what);
}

static note note_of(rig *r, char what)
{
    note n = {.job.run = note_run, .timer.fire = note_fire, .rig = r, .what = what};
    return n;
}

static void run_for(rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

/* ---- order ---- */

static void jobs_of_one_loop_run_in_the_order_they_were_posted(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rig r;
        note notes[8];
        rig_open(&r, seed);
        for (int i = 0; i < 8; i++) {
            notes[i] = note_of(&r, (char)('0' + i));
            coordi_post(r.a, &notes[i].job);
        }
        run_for(&r, 0);
        assert_string_equal(r.diary, "01234567");
        rig_close(&r);
    }
}

static void jobs_of_two_loops_run_in_an_order_that_the_seed_decides(void **state)
{
    (void)state;
    bool a_first = false;
    bool b_first = false;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rig r;
        rig_open(&r, seed);
        note a = note_of(&r, 'a');
        note b = note_of(&r, 'b');
        coordi_post(r.a, &a.job);
        coordi_post(r.b, &b.job);
        run_for(&r, 0);
        a_first = a_first || strcmp(r.diary, "ab") == 0;
        b_first = b_first || strcmp(r.diary, "ba") == 0;
        rig_close(&r);
    }
    assert_true(a_first && b_first);
}

/* Two loops, timers, and jobs that post on: some work to make a trace of. */
typedef struct chatter {
    coordi_job job;
    coordi_timer timer;
    coord_loop *here;
    coord_loop *there;
    int left;
} chatter;

static void chatter_fire(coordi_timer *timer)
{
    chatter *c = COORDI_ITEM(timer, chatter, timer);
    coordi_post(c->there, &c->job);
}

static void chatter_run(coordi_job *job)
{
    chatter *c = COORDI_ITEM(job, chatter, job);
    unsigned char byte;
    if (c->left-- > 0) {
        coord_loop *other = c->here;
        c->here = c->there;
        c->there = other;
        c->here->env->random(c->here, &byte, 1);
        coordi_timer_in(c->here, &c->timer, byte % 4);
    }
}

static uint64_t hash_of_chatter(uint64_t seed)
{
    rig r;
    chatter talk[4];
    rig_open(&r, seed);
    for (int i = 0; i < 4; i++) {
        talk[i] = (chatter){.job.run = chatter_run,
                            .timer.fire = chatter_fire,
                            .here = r.a,
                            .there = r.b,
                            .left = 50};
        coordi_post(r.b, &talk[i].job);
    }
    run_for(&r, 1000);
    uint64_t hash = coord_sim_trace_hash(r.sim);
    rig_close(&r);
    return hash;
}

static void one_seed_gives_one_trace_and_another_seed_another(void **state)
{
    (void)state;
    assert_true(hash_of_chatter(7) == hash_of_chatter(7));
    assert_true(hash_of_chatter(7) != hash_of_chatter(8));
}

static void every_compiler_gives_the_trace_that_was_recorded(void **state)
{
    (void)state;
    /* Change these only with the order of events, or their wording in the trace. */
    assert_int_equal(hash_of_chatter(1), UINT64_C(0x846e1f7977b52017));
    assert_int_equal(hash_of_chatter(2), UINT64_C(0x59a2faac0acc0702));
}

static void random_bytes_come_from_the_seed(void **state)
{
    (void)state;
    char uuid[3][37];
    uint64_t seeds[] = {5, 5, 6};
    for (int i = 0; i < 3; i++) {
        rig r;
        rig_open(&r, seeds[i]);
        coordi_random_uuid(r.a, uuid[i]);
        rig_close(&r);
    }
    assert_string_equal(uuid[0], uuid[1]);
    assert_string_not_equal(uuid[0], uuid[2]);
}

static void count_lines(const char *line, void *user)
{
    assert_non_null(strstr(line, "10.0.0."));
    ++*(int *)user;
}

static void the_trace_has_one_line_for_each_event(void **state)
{
    (void)state;
    coord_sim_options options;
    coord_sim *sim = NULL;
    int lines = 0;
    rig r = {.at = 0};
    coord_sim_options_init(&options, sizeof options);
    options.trace = count_lines;
    options.user = &lines;
    assert_int_equal(coord_sim_create(&options, &sim, NULL), COORD_OK);
    coord_loop *loop = loop_on(sim, "10.0.0.1");
    note n = note_of(&r, 'x');
    coordi_post(loop, &n.job);
    assert_true(coord_sim_step(sim));
    assert_false(coord_sim_step(sim));
    assert_int_equal(lines, 1);
    coord_loop_destroy(loop);
    coord_sim_destroy(sim);
}

/* ---- clock and timers ---- */

static void the_clock_moves_by_what_was_asked_for(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    assert_int_equal(coord_sim_now_ms(r.sim), 1000);
    run_for(&r, 3600 * 1000);
    assert_int_equal(coordi_now(r.a), 1000 + 3600 * 1000);
    assert_int_equal(coord_loop_step(r.a, 50, NULL), COORD_OK);
    assert_int_equal(coordi_now(r.b), 1050 + 3600 * 1000);
    rig_close(&r);
}

static void the_wall_clock_jumps_without_the_other(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    int64_t wall = r.a->env->wall_ms(r.a);
    run_for(&r, 10);
    assert_int_equal(r.a->env->wall_ms(r.a), wall + 10);
    coord_sim_set_wall_ms(r.sim, 5);
    assert_int_equal(r.a->env->wall_ms(r.a), 5);
    run_for(&r, 10);
    assert_int_equal(r.a->env->wall_ms(r.a), 15);
    assert_int_equal(coordi_now(r.a), 1020);
    rig_close(&r);
}

static void timers_fire_when_due_and_in_the_order_they_were_set(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        rig r;
        rig_open(&r, seed);
        const char *names = "dabce";
        int64_t delays[] = {30, 10, 10, 10, 31};
        note notes[5];
        for (int i = 0; i < 5; i++) {
            notes[i] = note_of(&r, names[i]);
            coordi_timer_in(r.a, &notes[i].timer, delays[i]);
        }
        run_for(&r, 9);
        assert_string_equal(r.diary, "");
        run_for(&r, 1);
        assert_string_equal(r.diary, "abc");
        run_for(&r, 20);
        assert_string_equal(r.diary, "abcd");
        coordi_timer_stop(r.a, &notes[4].timer);
        run_for(&r, 100);
        assert_string_equal(r.diary, "abcd");
        rig_close(&r);
    }
}

static void a_timer_can_be_moved(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    note n = note_of(&r, 'x');
    coordi_timer_in(r.a, &n.timer, 10);
    coordi_timer_in(r.a, &n.timer, 500);
    run_for(&r, 499);
    assert_string_equal(r.diary, "");
    coordi_timer_in(r.a, &n.timer, 1);
    run_for(&r, 1);
    assert_string_equal(r.diary, "x");
    assert_false(coordi_timer_is_set(&n.timer));
    rig_close(&r);
}

static void a_world_may_be_older_than_doubles_can_count(void **state)
{
    (void)state;
    coord_sim_options options;
    rig r = {.at = 0};
    coord_sim_options_init(&options, sizeof options);
    options.start_ms = INT64_C(9007199254740993); /* 2^53 + 1 */
    assert_int_equal(coord_sim_create(&options, &r.sim, NULL), COORD_OK);
    r.a = loop_on(r.sim, "10.0.0.1");
    note n = note_of(&r, 'x');
    coordi_timer_in(r.a, &n.timer, 1);
    run_for(&r, 1);
    assert_string_equal(r.diary, "x");
    assert_int_equal(coordi_now(r.a), options.start_ms + 1);
    rig_close(&r);
}

static void again(coordi_job *job)
{
    note *n = COORDI_ITEM(job, note, job);
    if (n->what == 'g') {
        coordi_post(n->rig->a, job);
    }
}

static void work_that_goes_round_in_a_circle_is_noticed(void **state)
{
    (void)state;
    rig r;
    coord_error err;
    rig_open(&r, 1);
    note n = note_of(&r, 'g');
    n.job.run = again;
    coordi_post(r.a, &n.job);
    assert_int_equal(coord_sim_run_for(r.sim, 1, &err), COORD_ERR_STATE);
    assert_non_null(strstr(err.text, "the clock does not move"));
    n.what = 's';
    rig_close(&r);
}

/* ---- running ---- */

static bool has_written(void *user)
{
    const rig *r = user;
    return r->at > 0;
}

static void it_runs_until_something_is_true_or_the_limit(void **state)
{
    (void)state;
    rig r;
    coord_error err;
    rig_open(&r, 1);
    note n = note_of(&r, 'x');
    coordi_timer_in(r.a, &n.timer, 70);
    assert_int_equal(coord_sim_run_until(r.sim, 60, has_written, &r, &err),
                     COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_now_ms(r.sim), 1060);
    assert_int_equal(coord_sim_run_until(r.sim, 60, has_written, &r, &err), COORD_OK);
    assert_int_equal(coord_sim_now_ms(r.sim), 1070);
    rig_close(&r);
}

static void it_is_idle_with_timers_in_the_future(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    note later = note_of(&r, 'l');
    note now = note_of(&r, 'n');
    coordi_timer_in(r.a, &later.timer, 70);
    coordi_post(r.b, &now.job);
    assert_int_equal(coord_sim_run_until_idle(r.sim, 1000, NULL), COORD_OK);
    assert_string_equal(r.diary, "n");
    assert_int_equal(coord_sim_now_ms(r.sim), 1000);
    rig_close(&r);
}

typedef struct nested {
    coordi_job job;
    rig *rig;
    coordi_event *event;
    bool inside;
    bool inside_other;
    bool waited;
    coord_status ran;
} nested;

static void nested_run(coordi_job *job)
{
    nested *n = COORDI_ITEM(job, nested, job);
    n->inside = coordi_inside(n->rig->a);
    n->inside_other = coordi_inside(n->rig->b);
    n->waited = n->rig->a->env->event_wait(n->event, 5000);
    n->ran = coord_sim_run_for(n->rig->sim, 1, NULL);
    assert_int_equal(coord_loop_step(n->rig->a, 1, NULL), COORD_ERR_STATE);
    assert_false(coord_sim_step(n->rig->sim));
}

static void code_of_a_loop_knows_that_it_is_and_cannot_wait(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    nested n = {.job.run = nested_run, .rig = &r, .waited = true};
    n.event = r.a->env->event_create(r.a);
    coordi_post(r.a, &n.job);
    run_for(&r, 10);
    assert_true(n.inside);
    assert_false(n.inside_other);
    assert_false(coordi_inside(r.a));
    assert_false(n.waited);
    assert_int_equal(n.ran, COORD_ERR_STATE);
    r.a->env->event_destroy(n.event);
    rig_close(&r);
}

/* ---- events and threads ---- */

typedef struct setter {
    coordi_timer timer;
    coord_loop *loop;
    coordi_event *event;
} setter;

static void setter_fire(coordi_timer *timer)
{
    setter *s = COORDI_ITEM(timer, setter, timer);
    s->loop->env->event_set(s->event);
}

static void a_driver_that_waits_runs_the_world(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    const coordi_env *env = r.a->env;
    setter s = {.timer.fire = setter_fire, .loop = r.a, .event = env->event_create(r.a)};
    coordi_timer_in(r.a, &s.timer, 60000);
    assert_false(env->event_wait(s.event, 1500));
    assert_int_equal(coord_sim_now_ms(r.sim), 1500);
    assert_true(env->event_wait(s.event, 100000));
    assert_int_equal(coord_sim_now_ms(r.sim), 61000);
    assert_false(env->event_wait(s.event, 99)); /* long ago */
    env->event_set(s.event);
    env->event_set(s.event);
    assert_true(env->event_wait(s.event, 0));          /* set before: no need to wait */
    assert_false(env->event_wait(s.event, 0));         /* and taken */
    assert_false(env->event_wait(s.event, INT64_MAX)); /* nothing can ever set it */
    env->event_destroy(s.event);
    rig_close(&r);
}

/* Two threads that play ball: each waits for its event and sets the other's. */
typedef struct player {
    rig *rig;
    coordi_event *mine;
    coordi_event *other;
    char what;
    int turns;
} player;

static void play(void *user)
{
    player *p = user;
    const coordi_env *env = p->rig->a->env;
    for (int i = 0; i < p->turns; i++) {
        assert_true(env->event_wait(p->mine, INT64_MAX));
        write_down(p->rig, p->what);
        assert_int_equal(coord_sim_run_for(p->rig->sim, 10, NULL), COORD_OK); /* sleeps */
        env->event_set(p->other);
    }
}

static void threads_take_turns_in_virtual_time(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 3);
    const coordi_env *env = r.a->env;
    coordi_event *ping = env->event_create(r.a);
    coordi_event *pong = env->event_create(r.b);
    player a = {&r, ping, pong, 'a', 5};
    player b = {&r, pong, ping, 'b', 5};
    coord_sim_thread *threads[2];
    assert_int_equal(coord_sim_thread_start(r.sim, play, &a, &threads[0], NULL),
                     COORD_OK);
    assert_int_equal(coord_sim_thread_start(r.sim, play, &b, &threads[1], NULL),
                     COORD_OK);
    run_for(&r, 1000);
    assert_string_equal(r.diary, "");
    env->event_set(ping);
    assert_int_equal(coord_sim_thread_join(threads[1], 99, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_thread_join(threads[1], 1, NULL), COORD_OK);
    assert_int_equal(coord_sim_thread_join(threads[0], 1, NULL), COORD_OK);
    assert_string_equal(r.diary, "ababababab");
    assert_int_equal(coord_sim_now_ms(r.sim), 2100);
    env->event_destroy(ping);
    env->event_destroy(pong);
    rig_close(&r);
}

static void late_waiter(void *user)
{
    player *p = user;
    int64_t now = coordi_now(p->rig->a);
    assert_false(p->rig->a->env->event_wait(p->mine, now + 250));
    assert_int_equal(coordi_now(p->rig->a), now + 250);
    write_down(p->rig, p->what);
}

static void starter(void *user)
{
    player *p = user;
    coord_sim_thread *inner = NULL;
    player second = *p;
    second.what = 'i';
    assert_int_equal(
        coord_sim_thread_start(p->rig->sim, late_waiter, &second, &inner, NULL),
        COORD_OK);
    assert_int_equal(coord_sim_thread_join(inner, 10, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_thread_join(inner, 1000, NULL), COORD_OK);
    write_down(p->rig, p->what);
}

static void a_thread_starts_and_joins_another(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 3);
    coordi_event *never = r.a->env->event_create(r.a);
    player p = {&r, never, NULL, 'o', 0};
    coord_sim_thread *outer = NULL;
    assert_int_equal(coord_sim_thread_start(r.sim, starter, &p, &outer, NULL), COORD_OK);
    assert_int_equal(coord_sim_thread_join(outer, 10000, NULL), COORD_OK);
    assert_string_equal(r.diary, "io");
    assert_int_equal(coord_sim_now_ms(r.sim), 1250);
    r.a->env->event_destroy(never);
    rig_close(&r);
}

/* An outside thread beside the driver: allowed, though not repeatable. */
static void *wait_outside(void *user)
{
    setter *s = user;
    bool was_set = s->loop->env->event_wait(s->event, INT64_MAX);
    return was_set ? user : NULL;
}

static void two_outside_threads_may_wait_at_once(void **state)
{
    (void)state;
    rig r;
    pthread_t other;
    void *result = NULL;
    rig_open(&r, 3);
    const coordi_env *env = r.a->env;
    setter s = {.timer.fire = setter_fire, .loop = r.a, .event = env->event_create(r.a)};
    setter t = {.timer.fire = setter_fire, .loop = r.b, .event = env->event_create(r.b)};
    coordi_timer_in(r.a, &s.timer, 1000);
    coordi_timer_in(r.b, &t.timer, 1000);
    assert_int_equal(pthread_create(&other, NULL, wait_outside, &t), 0);
    assert_true(env->event_wait(s.event, INT64_MAX));
    assert_int_equal(pthread_join(other, &result), 0);
    assert_ptr_equal(result, &t);
    env->event_destroy(s.event);
    env->event_destroy(t.event);
    rig_close(&r);
}

/* ---- lanes: what the layers above do with all this ---- */

/* Work on a lane that tells its loop something, as all of it does. */
static void lane_note_run(coordi_job *job)
{
    note *n = COORDI_ITEM(job, note, job);
    write_down(n->rig, n->what);
    n->job.run = note_run; /* once more, on the loop */
    n->what = '.';
    coordi_post(n->rig->a, &n->job);
}

static void lanes_run_on_threads_of_the_world(void **state)
{
    (void)state;
    char first[sizeof((rig *)NULL)->diary] = "";
    bool differs = false;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        rig r;
        coordi_executor *executor = NULL;
        coordi_lane *lane[2];
        note notes[4];
        rig_open(&r, seed);
        assert_int_equal(
            coordi_executor_create(r.a, COORD_EXECUTOR_PER_TASK, 0, &executor, NULL),
            COORD_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(coordi_lane_open(executor, &lane[i], NULL), COORD_OK);
        }
        for (int i = 0; i < 4; i++) {
            notes[i] = note_of(&r, "abAB"[i]);
            notes[i].job.run = lane_note_run;
            coordi_lane_run(lane[i % 2], &notes[i].job);
        }
        run_for(&r, 0);
        assert_int_equal(r.at, 8);
        assert_true(strchr(r.diary, 'a') < strchr(r.diary, 'A'));
        assert_true(strchr(r.diary, 'b') < strchr(r.diary, 'B'));
        differs = differs || (seed > 1 && strcmp(first, r.diary) != 0);
        memcpy(first, r.diary, sizeof first);
        coordi_lane_close(lane[0]);
        coordi_lane_close(lane[1]);
        coordi_executor_destroy(executor);
        rig_close(&r); /* ends the threads */
    }
    assert_true(differs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_one_loop_run_in_the_order_they_were_posted),
        cmocka_unit_test(jobs_of_two_loops_run_in_an_order_that_the_seed_decides),
        cmocka_unit_test(one_seed_gives_one_trace_and_another_seed_another),
        cmocka_unit_test(every_compiler_gives_the_trace_that_was_recorded),
        cmocka_unit_test(random_bytes_come_from_the_seed),
        cmocka_unit_test(the_trace_has_one_line_for_each_event),
        cmocka_unit_test(the_clock_moves_by_what_was_asked_for),
        cmocka_unit_test(the_wall_clock_jumps_without_the_other),
        cmocka_unit_test(timers_fire_when_due_and_in_the_order_they_were_set),
        cmocka_unit_test(a_timer_can_be_moved),
        cmocka_unit_test(a_world_may_be_older_than_doubles_can_count),
        cmocka_unit_test(work_that_goes_round_in_a_circle_is_noticed),
        cmocka_unit_test(it_runs_until_something_is_true_or_the_limit),
        cmocka_unit_test(it_is_idle_with_timers_in_the_future),
        cmocka_unit_test(code_of_a_loop_knows_that_it_is_and_cannot_wait),
        cmocka_unit_test(a_driver_that_waits_runs_the_world),
        cmocka_unit_test(threads_take_turns_in_virtual_time),
        cmocka_unit_test(a_thread_starts_and_joins_another),
        cmocka_unit_test(two_outside_threads_may_wait_at_once),
        cmocka_unit_test(lanes_run_on_threads_of_the_world),
    };
    return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
