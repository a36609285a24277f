/* Life and death in the simulated world: crashes, destruction in any order, memory that
 * runs out; and its programs, files and environment. */
#include "base/alloc.h"
#include "base/error.h"
#include "coord/testing_program.h"
#include "env/lane.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static coord_sim *world(void)
{
    coord_sim *sim = NULL;
    assert_int_equal(coord_sim_create(NULL, &sim, NULL), COORD_OK);
    return sim;
}

static coord_loop *loop_on(coord_sim *sim, const char *host)
{
    coord_loop *loop = NULL;
    assert_int_equal(coord_sim_loop(sim, host, &loop, NULL), COORD_OK);
    return loop;
}

static void run_for(coord_sim *sim, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(sim, ms, NULL), COORD_OK);
}

/* An object as the layers above build them: it ticks, works on a lane, and is torn down
 * on its loop by a job that destroy posts. */
typedef struct thing {
    coord_loop *loop;
    coordi_timer timer;
    coordi_job work;
    coordi_job told;
    coordi_job teardown;
    coordi_executor *executor;
    coordi_lane *lane;
    bool is_closing; /* destroyed while its lane is at work */
    int *ticks;
    int *gone;
} thing;

static void thing_end(thing *t)
{
    coord_loop *loop = t->loop;
    coordi_timer_stop(loop, &t->timer);
    coordi_lane_close(t->lane);
    coordi_executor_destroy(t->executor);
    ++*t->gone;
    coordi_free(t);
    coordi_loop_unref(loop);
}

static void thing_told(coordi_job *job)
{
    thing *t = COORDI_ITEM(job, thing, told);
    if (t->is_closing) {
        thing_end(t);
    } else {
        coordi_timer_in(t->loop, &t->timer, 10);
    }
}

static void thing_work(coordi_job *job)
{
    thing *t = COORDI_ITEM(job, thing, work);
    coordi_post(t->loop, &t->told);
}

static void thing_tick(coordi_timer *timer)
{
    thing *t = COORDI_ITEM(timer, thing, timer);
    ++*t->ticks;
    coordi_lane_run(t->lane, &t->work);
}

static void thing_teardown(coordi_job *job)
{
    thing *t = COORDI_ITEM(job, thing, teardown);
    t->is_closing = true;
    if (coordi_timer_is_set(&t->timer)) {
        thing_end(t);
    }
}

static thing *thing_create(coord_loop *loop, int *ticks, int *gone)
{
    thing *t = coordi_zalloc(sizeof *t);
    assert_non_null(t);
    t->loop = coordi_loop_ref(loop);
    t->timer.fire = thing_tick;
    t->work.run = thing_work;
    t->told.run = thing_told;
    t->teardown.run = thing_teardown;
    t->ticks = ticks;
    t->gone = gone;
    assert_int_equal(
        coordi_executor_create(loop, COORD_EXECUTOR_PER_TASK, 0, &t->executor, NULL),
        COORD_OK);
    assert_int_equal(coordi_lane_open(t->executor, &t->lane, NULL), COORD_OK);
    coordi_post(loop, &t->told);
    return t;
}

static void thing_destroy(thing *t)
{
    coordi_post(t->loop, &t->teardown);
}

static void objects_and_loops_go_before_the_world(void **state)
{
    (void)state;
    int ticks = 0;
    int gone = 0;
    coord_sim *sim = world();
    coord_loop *loop = loop_on(sim, "a");
    thing *t = thing_create(loop, &ticks, &gone);
    run_for(sim, 1001);
    assert_in_range(ticks, 90, 101);
    thing_destroy(t);
    coord_loop_destroy(loop);
    coord_sim_destroy(sim);
    assert_int_equal(gone, 1);
}

static void the_world_may_go_before_its_loops_and_objects(void **state)
{
    (void)state;
    int ticks = 0;
    int gone = 0;
    coord_sim *sim = world();
    coord_loop *loop = loop_on(sim, "a");
    thing *t = thing_create(loop, &ticks, &gone);
    run_for(sim, 1000);
    coord_sim_pause(sim, loop, true);
    coord_sim_destroy(sim);
    int64_t now = coordi_now(loop);
    assert_int_equal(gone, 0);
    thing_destroy(t);
    assert_int_equal(gone, 1);
    assert_int_equal(coordi_now(loop), now);
    coord_loop_destroy(loop);
}

static void a_crashed_process_stands_still(void **state)
{
    (void)state;
    int ticks = 0;
    int gone = 0;
    coord_sim *sim = world();
    coord_loop *loop = loop_on(sim, "a");
    thing *t = thing_create(loop, &ticks, &gone);
    run_for(sim, 105);
    int before = ticks;
    coord_sim_crash(sim, loop);
    run_for(sim, 100000);
    assert_int_equal(ticks, before);
    thing_destroy(t);
    run_for(sim, 0);
    assert_int_equal(gone, 1);
    coord_loop_destroy(loop);
    coord_sim_destroy(sim);
}

static void a_process_may_crash_wherever_it_is(void **state)
{
    (void)state;
    for (int steps = 0; steps < 60; steps++) {
        int ticks = 0;
        int gone = 0;
        coord_sim *sim = world();
        coord_loop *loop = loop_on(sim, "a");
        thing *t = thing_create(loop, &ticks, &gone);
        for (int i = 0; i < steps; i++) {
            (void)coord_sim_step(sim);
        }
        int before = ticks;
        coord_sim_crash(sim, loop);
        run_for(sim, 1000);
        assert_int_equal(ticks, before);
        thing_destroy(t);
        coord_loop_destroy(loop);
        coord_sim_destroy(sim);
        assert_int_equal(gone, 1);
    }
}

typedef struct suicide {
    coordi_job job;
    coordi_job next;
    coord_sim *sim;
    coord_loop *loop;
    int ran;
} suicide;

static void suicide_next(coordi_job *job)
{
    COORDI_ITEM(job, suicide, next)->ran++;
}

static void suicide_run(coordi_job *job)
{
    suicide *s = COORDI_ITEM(job, suicide, job);
    s->ran++;
    coord_sim_crash(s->sim, s->loop);
    coordi_post(s->loop, &s->next);
}

static void a_process_that_crashes_itself_does_not_wake_itself(void **state)
{
    (void)state;
    coord_sim *sim = world();
    suicide s = {.job.run = suicide_run, .next.run = suicide_next, .sim = sim};
    s.loop = loop_on(sim, "a");
    coordi_post(s.loop, &s.job);
    run_for(sim, 100);
    assert_int_equal(s.ran, 1);
    coord_loop_destroy(s.loop);
    coord_sim_destroy(sim);
    assert_int_equal(s.ran, 2); /* the corpse finishes when it is buried */
}

/* ---- memory runs out ---- */

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static void no_call(coordi_http_call *call, void *arg)
{
    (void)arg;
    (void)call;
}

static void no_done(const coordi_http_reply *reply, void *arg)
{
    (void)reply;
    (void)arg;
}

static void no_path(coord_status status, const char *local, const coord_error *error,
                    void *arg)
{
    (void)status;
    (void)local;
    (void)error;
    (void)arg;
}

/* All that can fail, one after the other; stops at the first failure. */
static coord_status use_everything(coord_sim *sim, coord_loop *loop)
{
    const coordi_env *env = loop->env;
    coord_error err;
    coordi_address to = {.host = "127.0.0.1", .port = 80};
    coordi_http_header headers[] = {{"A", "1"}, {"a", "2"}};
    coordi_http_server_spec served = {.host = "", .port = 80, .on_call = no_call};
    coordi_http_spec sent = {
        .method = "GET", .path = "/", .timeout_ms = 10, .done = no_done};
    coord_sim_program program;
    coord_sim_link link;
    coordi_http_server *server = NULL;
    coordi_http_peer *peer = NULL;
    coordi_process *process = NULL;
    coordi_buf got = {0};
    const char *argv[] = {"prog", "-x", NULL};
    coord_sim_program_init(&program, sizeof program);
    coord_sim_link_init(sim, &link, sizeof link);
    program.name = "prog";
    coordi_process_spec started = {.argv = argv, .envp = argv};
    coord_status rc = env->server_create(loop, &served, &server, &err);
    rc = rc != COORD_OK ? rc : env->peer_create(loop, &to, headers, 2, &peer, &err);
    rc = rc != COORD_OK ? rc : env->peer_path(peer, 10, no_path, NULL, &err);
    if (rc == COORD_OK) {
        sent.body = coordi_alloc(9); /* taken over, also when the call fails */
        sent.body_len = 0;
        rc = sent.body == NULL ? COORD_ERR_NOMEM : COORD_OK;
    }
    rc = rc != COORD_OK ? rc : env->http_send(peer, &sent, NULL, &err);
    rc = rc != COORD_OK ? rc : coord_sim_set_link(sim, "a", "b", &link, &err);
    rc = rc != COORD_OK ? rc : coord_sim_block(sim, "a", "b", true, &err);
    rc = rc != COORD_OK ? rc : coord_sim_add_program(sim, &program, &err);
    rc = rc != COORD_OK ? rc : env->process_start(loop, &started, &process, &err);
    rc = rc != COORD_OK ? rc : env->file_replace(loop, "f", "abc", 3, &err);
    rc = rc != COORD_OK ? rc : env->file_replace(loop, "f", "abcd", 4, &err);
    rc = rc != COORD_OK ? rc : env->file_read(loop, "f", 10, &got, &err);
    rc = rc != COORD_OK ? rc : coord_sim_set_env(sim, "NAME", "value", &err);
    rc = rc != COORD_OK ? rc : coord_sim_set_env(sim, "NAME", NULL, &err);
    assert_true(rc == COORD_OK || rc == COORD_ERR_NOMEM);
    coordi_buf_done(&got);
    env->process_destroy(process);
    env->peer_destroy(peer);
    env->server_destroy(server);
    return rc;
}

static coord_status live_with(int allocations)
{
    int left = allocations;
    coord_sim *sim = NULL;
    coord_loop *loop = NULL;
    coordi_alloc_set_fault(countdown, &left);
    coord_status rc = coord_sim_create(NULL, &sim, NULL);
    if (rc == COORD_OK) {
        rc = coord_sim_loop(sim, "a", &loop, NULL);
    }
    if (rc == COORD_OK) {
        rc = use_everything(sim, loop);
    }
    coord_loop_destroy(loop);
    coord_sim_destroy(sim);
    coordi_alloc_set_fault(NULL, NULL);
    return rc;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    int allowed = 0;
    while (live_with(allowed) != COORD_OK) {
        allowed++;
        assert_in_range(allowed, 1, 200);
    }
    assert_in_range(allowed, 20, 200);
}

/* ---- programs ---- */

typedef struct watch {
    coord_sim *sim;
    coordi_process *process;
    char seen[256];
    int exits;
    int code;
    int64_t started_pid;
    int64_t at_ms;
} watch;

static void on_output(coordi_process *process, int stream, const char *bytes, size_t len,
                      void *arg)
{
    watch *w = arg;
    size_t at = strlen(w->seen);
    assert_ptr_equal(process, w->process);
    (void)snprintf(w->seen + at, sizeof w->seen - at, "%d:%.*s;", stream, (int)len,
                   bytes);
}

static void on_exit_code(coordi_process *process, int code, void *arg)
{
    watch *w = arg;
    assert_ptr_equal(process, w->process);
    w->exits++;
    w->code = code;
    w->at_ms = coord_sim_now_ms(w->sim);
}

static void on_started(int64_t pid, const char *const *argv, const char *const *envp,
                       void *user)
{
    watch *w = user;
    w->started_pid = pid;
    (void)snprintf(w->seen, sizeof w->seen, "%s %s %s;", argv[0], argv[1], envp[0]);
}

static void add_program(watch *w, int64_t run_ms, bool ignores_signals)
{
    coord_sim_program program;
    coord_sim_program_init(&program, sizeof program);
    program.name = "worker";
    program.output = "out";
    program.error_output = "err";
    program.run_ms = run_ms;
    program.exit_code = 3;
    program.ignores_signals = ignores_signals;
    program.started = on_started;
    program.user = w;
    assert_int_equal(coord_sim_add_program(w->sim, &program, NULL), COORD_OK);
}

static void start(watch *w, coord_loop *loop)
{
    const char *argv[] = {"worker", "--x", NULL};
    const char *envp[] = {"A=1", NULL};
    coordi_process_spec spec = {.argv = argv,
                                .envp = envp,
                                .on_output = on_output,
                                .on_exit = on_exit_code,
                                .arg = w};
    w->exits = 0;
    assert_int_equal(loop->env->process_start(loop, &spec, &w->process, NULL), COORD_OK);
}

static void a_program_writes_and_exits_when_its_time_has_come(void **state)
{
    (void)state;
    watch w = {.sim = world()};
    coord_loop *loop = loop_on(w.sim, "a");
    add_program(&w, 500, false);
    start(&w, loop);
    run_for(w.sim, 499);
    assert_string_equal(w.seen, "worker --x A=1;1:out;2:err;");
    assert_int_equal(w.started_pid, loop->env->process_id(w.process));
    run_for(w.sim, 1);
    assert_string_equal(w.seen, "worker --x A=1;1:out;2:err;1:;2:;");
    assert_int_equal(w.exits, 1);
    assert_int_equal(w.code, 3);
    assert_int_equal(w.at_ms, 1500);
    loop->env->process_signal(w.process, SIGKILL);
    run_for(w.sim, 100);
    assert_int_equal(w.exits, 1);
    loop->env->process_destroy(w.process);
    coord_loop_destroy(loop);
    coord_sim_destroy(w.sim);
}

static void a_program_ends_by_signal_by_test_or_not_at_all(void **state)
{
    (void)state;
    watch w = {.sim = world()};
    coord_loop *loop = loop_on(w.sim, "a");
    add_program(&w, -1, true);
    start(&w, loop);
    loop->env->process_signal(w.process, SIGTERM);
    run_for(w.sim, 1000000);
    assert_int_equal(w.exits, 0);
    loop->env->process_signal(w.process, SIGKILL);
    run_for(w.sim, 1);
    assert_int_equal(w.code, -SIGKILL);
    loop->env->process_destroy(w.process);

    add_program(&w, -1, false);
    start(&w, loop);
    loop->env->process_signal(w.process, SIGTERM); /* before it has said anything */
    run_for(w.sim, 1);
    assert_int_equal(w.code, -SIGTERM);
    assert_non_null(strstr(w.seen, "1:out;2:err;1:;2:;"));
    loop->env->process_destroy(w.process);

    start(&w, loop);
    run_for(w.sim, 1);
    assert_true(coord_sim_end_process(w.sim, w.started_pid, 9));
    run_for(w.sim, 1);
    assert_int_equal(w.code, 9);
    assert_false(coord_sim_end_process(w.sim, w.started_pid, 9));
    loop->env->process_destroy(w.process);

    start(&w, loop);
    loop->env->process_destroy(w.process); /* nobody is told */
    run_for(w.sim, 1000);
    assert_int_equal(w.exits, 0);
    coord_loop_destroy(loop);
    coord_sim_destroy(w.sim);
}

static void an_unknown_program_is_not_found(void **state)
{
    (void)state;
    coord_sim *sim = world();
    coord_loop *loop = loop_on(sim, "a");
    const char *argv[] = {"nothing", NULL};
    coordi_process_spec spec = {.argv = argv, .envp = argv + 1};
    coordi_process *process = NULL;
    coord_error err;
    assert_int_equal(loop->env->process_start(loop, &spec, &process, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, ENOENT);
    assert_string_equal(err.text, "start 'nothing'");
    coord_loop_destroy(loop);
    coord_sim_destroy(sim);
}

/* ---- files and environment ---- */

static void files_are_shared_and_the_disk_may_be_full(void **state)
{
    (void)state;
    coord_sim *sim = world();
    coord_loop *loop = loop_on(sim, "a");
    const coordi_env *env = loop->env;
    coord_error err;
    coord_text text;
    coordi_buf got = {0};
    assert_int_equal(env->file_read(loop, "/f", 10, &got, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(coord_sim_get_file(sim, "/f", &text, NULL), COORD_ERR_NOT_FOUND);
    assert_int_equal(coord_sim_put_file(sim, "/f", coord_text_of("first"), NULL),
                     COORD_OK);
    coord_sim_set_disk_full(sim, true);
    assert_int_equal(env->file_replace(loop, "/f", "other", 5, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, ENOSPC);
    assert_int_equal(env->file_read(loop, "/f", 10, &got, NULL), COORD_OK);
    assert_int_equal(got.len, 5);
    assert_memory_equal(got.ptr, "first", 5);
    coord_sim_set_disk_full(sim, false);
    assert_int_equal(env->file_replace(loop, "/f", "longer text", 11, NULL), COORD_OK);
    assert_int_equal(env->file_read(loop, "/f", 10, &got, NULL), COORD_ERR_TOO_BIG);
    assert_int_equal(coord_sim_get_file(sim, "/f", &text, NULL), COORD_OK);
    assert_string_equal(text.ptr, "longer text");
    coordi_buf_done(&got);
    coord_loop_destroy(loop);
    coord_sim_destroy(sim);
}

static void the_environment_is_what_the_test_sets(void **state)
{
    (void)state;
    coord_sim *sim = world();
    coord_loop *loop = loop_on(sim, "a");
    assert_null(loop->env->environment(loop)[0]);
    assert_int_equal(coord_sim_set_env(sim, "A", "1", NULL), COORD_OK);
    assert_int_equal(coord_sim_set_env(sim, "B", "2", NULL), COORD_OK);
    assert_int_equal(coord_sim_set_env(sim, "A", "3", NULL), COORD_OK);
    assert_string_equal(loop->env->environment(loop)[0], "A=3");
    assert_string_equal(loop->env->environment(loop)[1], "B=2");
    assert_int_equal(coord_sim_set_env(sim, "A", NULL, NULL), COORD_OK);
    assert_string_equal(loop->env->environment(loop)[0], "B=2");
    assert_null(loop->env->environment(loop)[1]);
    assert_int_equal(coord_sim_set_env(sim, "A=", "1", NULL), COORD_ERR_ARG);
    coord_loop_destroy(loop);
    coord_sim_destroy(sim);
}

static void wrong_options_are_refused(void **state)
{
    (void)state;
    coord_sim *sim = NULL;
    coord_loop *loop = NULL;
    coord_error err;
    coord_sim_options options;
    coord_sim_options_init(&options, sizeof options);
    options.latency_min_ms = 6;
    assert_int_equal(coord_sim_create(&options, &sim, &err), COORD_ERR_ARG);
    assert_string_equal(err.text, "sim: latency must be 0 <= min <= max, got 6 to 5 ms");
    options.size = 0;
    assert_int_equal(coord_sim_create(&options, &sim, &err), COORD_ERR_ABI);
    sim = world();
    assert_int_equal(coord_sim_loop(sim, "", &loop, &err), COORD_ERR_ARG);
    assert_int_equal(coord_sim_block(sim, "", NULL, true, &err), COORD_ERR_ARG);
    coord_sim_destroy(sim);
    coord_sim_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_and_loops_go_before_the_world),
        cmocka_unit_test(the_world_may_go_before_its_loops_and_objects),
        cmocka_unit_test(a_crashed_process_stands_still),
        cmocka_unit_test(a_process_may_crash_wherever_it_is),
        cmocka_unit_test(a_process_that_crashes_itself_does_not_wake_itself),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_program_writes_and_exits_when_its_time_has_come),
        cmocka_unit_test(a_program_ends_by_signal_by_test_or_not_at_all),
        cmocka_unit_test(an_unknown_program_is_not_found),
        cmocka_unit_test(files_are_shared_and_the_disk_may_be_full),
        cmocka_unit_test(the_environment_is_what_the_test_sets),
        cmocka_unit_test(wrong_options_are_refused),
    };
    return cmocka_run_group_tests_name("sim life", tests, NULL, NULL);
}
