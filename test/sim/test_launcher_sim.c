/* The launcher in the simulated world: programs are scripts, time is virtual. */
#include "coord/launcher.h"
#include "coord/testing_program.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { BOOK = 4096, DAY_MS = 24 * 3600 * 1000 };

/* A world with a launcher, and a book of what its sinks and programs were told. */
typedef struct rig {
    coord_sim *sim;
    coord_loop *loop;
    coord_launcher *launcher;
    char book[BOOK];
    size_t at;
    int restarts;
} rig;

static void note(rig *r, const char *format, ...) COORD_PRINTF(2, 3);
static void note(rig *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(r->book + r->at, BOOK - r->at, format, args);
    va_end(args);
    if (len > 0 && (size_t)len < BOOK - r->at) {
        r->at += (size_t)len;
    }
}

static void on_line(coord_launcher *launcher, const coord_launcher_line *line, void *user)
{
    (void)launcher;
    note(user, "%d %s\n", line->stream, line->prefixed.ptr);
}

static void on_exit_of(coord_launcher *launcher, const char *name,
                       const coord_launcher_exit *how, void *user)
{
    (void)launcher;
    rig *r = user;
    note(r, "%s: %d %d%s\n", name, how->code, how->signal_number,
         how->stopped ? " stopped" : "");
}

static void rig_open(rig *r, uint64_t seed, coord_executor executor)
{
    coord_sim_options world;
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&world, sizeof world);
    world.seed = seed;
    world.yield_chance = 0.3;
    assert_int_equal(coord_sim_create(&world, &r->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "node-0", &r->loop, NULL), COORD_OK);
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    options.loop = r->loop;
    options.executor = executor;
    assert_int_equal(coord_launcher_create(&options, &r->launcher, NULL), COORD_OK);
}

static void rig_close(rig *r)
{
    coord_launcher_destroy(r->launcher);
    coord_loop_destroy(r->loop);
    coord_sim_destroy(r->sim);
}

static coord_sim_program program_of(const char *name, int64_t run_ms, int exit_code)
{
    coord_sim_program program;
    coord_sim_program_init(&program, sizeof program);
    program.name = name;
    program.run_ms = run_ms;
    program.exit_code = exit_code;
    return program;
}

static void add(rig *r, const coord_sim_program *program)
{
    assert_int_equal(coord_sim_add_program(r->sim, program, NULL), COORD_OK);
}

static coord_status start(rig *r, const char *name, const char *program)
{
    const char *argv[] = {program, "--seed", "1", NULL};
    const char *changes[] = {"ROLE=collector", NULL};
    coord_launcher_spec spec;
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = name;
    spec.argv = argv;
    spec.environment = changes;
    spec.on_line = on_line;
    spec.on_exit = on_exit_of;
    spec.user = r;
    return coord_launcher_start(r->launcher, &spec, NULL, NULL);
}

static void a_program_runs_its_time_in_none_of_ours(void **state)
{
    (void)state;
    for (int executor = COORD_EXECUTOR_PER_TASK; executor <= COORD_EXECUTOR_INLINE;
         executor++) {
        rig r;
        coord_launcher_exit how;
        rig_open(&r, 3, (coord_executor)executor);
        coord_sim_program program = program_of("trainer", DAY_MS, 3);
        program.output = "step 1\nstep 2";
        program.error_output = "warning\n";
        add(&r, &program);
        const int64_t before = coord_sim_now_ms(r.sim);
        assert_int_equal(start(&r, "t", "trainer"), COORD_OK);
        assert_int_equal(coord_launcher_wait(r.launcher, "t", DAY_MS / 2, &how, NULL),
                         COORD_ERR_TIMEOUT);
        assert_int_equal(coord_launcher_count(r.launcher), 1);
        assert_int_equal(coord_launcher_wait(r.launcher, "t", DAY_MS, &how, NULL),
                         COORD_OK);
        assert_int_equal(coord_sim_now_ms(r.sim), before + DAY_MS);
        assert_int_equal(how.code, 3);
        assert_string_equal(r.book,
                            "1 [t] step 1\n2 [t] warning\n1 [t] step 2\nt: 3 0\n");
        rig_close(&r);
    }
}

static void was_started(int64_t pid, const char *const *argv, const char *const *envp,
                        void *user)
{
    rig *r = user;
    (void)pid;
    for (size_t i = 0; argv[i] != NULL; i++) {
        note(r, "%s ", argv[i]);
    }
    for (size_t i = 0; envp[i] != NULL; i++) {
        note(r, "%s;", envp[i]);
    }
}

static void a_program_gets_its_arguments_and_a_changed_environment(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1, COORD_EXECUTOR_PER_TASK);
    assert_int_equal(coord_sim_set_env(r.sim, "HOME", "/home/me", NULL), COORD_OK);
    assert_int_equal(coord_sim_set_env(r.sim, "ROLE", "none", NULL), COORD_OK);
    coord_sim_program program = program_of("worker", 5, 0);
    program.started = was_started;
    program.user = &r;
    add(&r, &program);
    assert_int_equal(start(&r, "w", "worker"), COORD_OK);
    assert_int_equal(coord_launcher_wait(r.launcher, NULL, 1000, NULL, NULL), COORD_OK);
    assert_string_equal(r.book, "worker --seed 1 HOME=/home/me;ROLE=collector;w: 0 0\n");
    rig_close(&r);
}

static void an_unknown_program_is_an_error(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1, COORD_EXECUTOR_PER_TASK);
    assert_int_equal(start(&r, "x", "nothing"), COORD_ERR_IO);
    assert_int_equal(coord_launcher_wait(r.launcher, "x", 1, NULL, NULL),
                     COORD_ERR_NOT_FOUND);
    rig_close(&r);
}

static void who_ignores_sigterm_is_killed_when_the_grace_ends(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1, COORD_EXECUTOR_PER_TASK);
    coord_sim_program stubborn = program_of("stubborn", -1, 0);
    stubborn.ignores_signals = true;
    coord_sim_program polite = program_of("polite", -1, 0);
    add(&r, &stubborn);
    add(&r, &polite);
    assert_int_equal(start(&r, "s", "stubborn"), COORD_OK);
    assert_int_equal(start(&r, "p", "polite"), COORD_OK);
    const int64_t before = coord_sim_now_ms(r.sim);
    assert_int_equal(coord_launcher_stop(r.launcher, NULL, 3000, NULL), COORD_OK);
    assert_int_equal(coord_sim_now_ms(r.sim), before + 3000);
    assert_string_equal(r.book, "p: -1 15 stopped\ns: -1 9 stopped\n");
    rig_close(&r);
}

static void restart(coord_launcher *launcher, const char *name,
                    const coord_launcher_exit *how, void *user)
{
    rig *r = user;
    on_exit_of(launcher, name, how, user);
    const char *argv[] = {"crasher", NULL};
    coord_launcher_spec spec;
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = name;
    spec.argv = argv;
    spec.on_exit = restart;
    spec.user = r;
    if (r->restarts-- > 0 &&
        coord_launcher_start(launcher, &spec, NULL, NULL) != COORD_OK) {
        note(r, "not started\n");
    }
}

static void a_child_can_be_started_again_from_its_on_exit(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1, COORD_EXECUTOR_PER_TASK);
    coord_sim_program program = program_of("crasher", 100, 1);
    add(&r, &program);
    r.restarts = 3;
    const coord_launcher_exit never = {.code = 99};
    restart(r.launcher, "c", &never, &r);
    const int64_t before = coord_sim_now_ms(r.sim);
    assert_int_equal(coord_sim_run_for(r.sim, 1000, NULL), COORD_OK);
    assert_string_equal(r.book, "c: 99 0\nc: 1 0\nc: 1 0\nc: 1 0\n");
    assert_int_equal(coord_sim_now_ms(r.sim), before + 1000);
    rig_close(&r);
}

static void close_takes_half_of_its_time_for_the_grace(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1, COORD_EXECUTOR_POOL);
    coord_sim_program stubborn = program_of("stubborn", -1, 0);
    stubborn.ignores_signals = true;
    add(&r, &stubborn);
    assert_int_equal(start(&r, "s", "stubborn"), COORD_OK);
    const int64_t before = coord_sim_now_ms(r.sim);
    assert_int_equal(coord_launcher_close(r.launcher, 1000, NULL), COORD_OK);
    assert_int_equal(coord_sim_now_ms(r.sim), before + 500);
    assert_int_equal(start(&r, "t", "stubborn"), COORD_ERR_STATE);
    rig_close(&r);
}

/* Some children, some ends, and a destroy in the midst of it. */
static uint64_t some_life(uint64_t seed)
{
    rig r;
    rig_open(&r, seed, COORD_EXECUTOR_PER_TASK);
    coord_sim_program program = program_of("p", 7, 0);
    program.output = "a\nb\nc\n";
    add(&r, &program);
    program = program_of("q", -1, 0);
    program.output = "d\ne";
    add(&r, &program);
    char name[16];
    for (int i = 0; i < 6; i++) {
        (void)snprintf(name, sizeof name, "child%d", i);
        assert_int_equal(start(&r, name, i % 2 == 0 ? "p" : "q"), COORD_OK);
    }
    assert_int_equal(coord_launcher_post_stop(r.launcher, "child1", 5, NULL), COORD_OK);
    assert_int_equal(coord_sim_run_for(r.sim, 7, NULL), COORD_OK);
    const uint64_t hash = coord_sim_trace_hash(r.sim);
    rig_close(&r);
    return hash;
}

static void equal_seeds_live_equal_lives(void **state)
{
    (void)state;
    bool differs = false;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        const uint64_t hash = some_life(seed);
        assert_int_equal(hash, some_life(seed));
        differs = differs || hash != some_life(1);
    }
    assert_true(differs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_runs_its_time_in_none_of_ours),
        cmocka_unit_test(a_program_gets_its_arguments_and_a_changed_environment),
        cmocka_unit_test(an_unknown_program_is_an_error),
        cmocka_unit_test(who_ignores_sigterm_is_killed_when_the_grace_ends),
        cmocka_unit_test(a_child_can_be_started_again_from_its_on_exit),
        cmocka_unit_test(close_takes_half_of_its_time_for_the_grace),
        cmocka_unit_test(equal_seeds_live_equal_lives),
    };
    return cmocka_run_group_tests_name("launcher in simulation", tests, NULL, NULL);
}
