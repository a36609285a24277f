/* Descriptors run out in the middle of a run (R16): whatever needs one fails with a
 * status or waits, nothing spins, and when there are some again all goes on as before.
 *
 * Each scene is played in a process of its own, whose limit is low and whose loop is
 * driven by hand, so that its turns can be counted. */
#include "coord/launcher.h"
#include "support/raw_http.h"
#include "support/real_team.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { LIMIT = 128, WORKERS = 3, STRANGERS = 40, TASKS = 20 };

static const char EXECUTOR[] =
    "\"inline\", \"heartbeat_tolerance_s\": 5, \"request_timeout_s\": 1, "
    "\"request_retry_wait_s\": 0.1, \"min_learners\": 0, "
    "\"learner\": {\"0\": [\"l0\", \"localhost\", %u]}";

typedef struct stage {
    coord_loop *loop;
    real_team team;
    uint16_t absent_port; /* of a learner that is not there */
    int hoard[LIMIT];
    int hoarded;
    long turns;
} stage;

/* ---- descriptors ---- */

static void limit_descriptors(void)
{
    struct rlimit limit = {LIMIT, LIMIT};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void take_all(stage *s)
{
    for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0;
         fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) {
        s->hoard[s->hoarded++] = fd;
    }
    assert_int_equal(errno, EMFILE);
    assert_true(s->hoarded > 10);
}

static void give_back(stage *s)
{
    while (s->hoarded > 0) {
        (void)close(s->hoard[--s->hoarded]);
    }
}

/* ---- turns ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Turns the loop until it is done, for a minute at most. Fails when it spins: when there
 * are more turns than could have had a reason. */
static void turn_until(stage *s, bool (*done)(stage *s), int64_t limit_ms)
{
    int64_t began = now_ms();
    long turns = 0;
    while (!done(s) && now_ms() - began < limit_ms) {
        assert_int_equal(coord_loop_step(s->loop, 50, NULL), COORD_OK);
        turns++;
    }
    long reasons = 3000 + (long)(now_ms() - began);
    if (turns > reasons) {
        fail_msg("the loop spins: %ld turns, %ld had a reason", turns, reasons);
    }
}

static bool never(stage *s)
{
    (void)s;
    return false;
}

static bool all_have_ended(stage *s)
{
    return atomic_load(&s->team.finished) + atomic_load(&s->team.failed) ==
           s->team.posted;
}

static void post(stage *s, int tasks)
{
    for (int i = 0; i < tasks; i++) {
        real_team_post(&s->team);
    }
}

static void expect_all_to_end(stage *s)
{
    turn_until(s, all_have_ended, 60000);
    assert_true(all_have_ended(s));
}

static int count_in_status(stage *s, const char *what)
{
    char *status = NULL;
    int count = 0;
    assert_int_equal(comm_coordinator_status(s->team.c, &status, NULL), COORD_OK);
    for (const char *at = strstr(status, what); at != NULL; at = strstr(at + 1, what)) {
        count++;
    }
    coord_free(status);
    return count;
}

static bool all_are_free(stage *s)
{
    return count_in_status(s, "\"state\": \"free\"") == WORKERS;
}

/* All that worked before works again. */
static void expect_recovery(stage *s)
{
    turn_until(s, all_are_free, 60000);
    assert_true(all_are_free(s));
    int failed = atomic_load(&s->team.failed);
    post(s, TASKS);
    expect_all_to_end(s);
    assert_int_equal(atomic_load(&s->team.failed), failed);
}

/* ---- a stage in a process of its own ---- */

static void open_stage(stage *s)
{
    char executor[512];
    coord_loop_options o;
    memset(s, 0, sizeof *s);
    limit_descriptors();
    coord_loop_options_init(&o, sizeof o);
    o.own_thread = false;
    assert_int_equal(coord_loop_create(&o, &s->loop, NULL), COORD_OK);
    s->absent_port = raw_free_port();
    (void)snprintf(executor, sizeof executor, EXECUTOR, (unsigned)s->absent_port);
    real_team_start(&s->team, s->loop, WORKERS, executor);
    post(s, TASKS);
    expect_all_to_end(s);
    assert_int_equal(atomic_load(&s->team.failed), 0);
}

static void close_stage(stage *s)
{
    real_team_end(&s->team);
    coord_loop_destroy(s->loop);
    assert_true(threads_are_gone());
}

/* An assertion that fails in the child goes on with the child's own copy of what is left
 * of this program, which then ends with a failure. */
static void play(void (*scene)(void))
{
    static bool in_child;
    int status = -1;
    if (in_child) {
        return;
    }
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        in_child = true;
        scene();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- scenes ---- */

/* Tasks go on over the connections that are there; what is away is tried again. */
static void run_short(void)
{
    stage s;
    open_stage(&s);
    take_all(&s);
    post(&s, TASKS);
    expect_all_to_end(&s);
    turn_until(&s, never, 1500); /* the absent learner is looked for */
    give_back(&s);
    expect_recovery(&s);
    close_stage(&s);
}

static void a_run_outlives_a_lack_of_descriptors(void **state)
{
    (void)state;
    play(run_short);
}

/* Connections are lost and can't be made anew: tasks end, and later work again. */
static void lose_workers(void)
{
    stage s;
    open_stage(&s);
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(
            coord_slave_close(coord_collector_slave(s.team.workers[i]), 10000, NULL),
            COORD_OK);
    }
    take_all(&s);
    post(&s, TASKS);
    turn_until(&s, never, 1500);
    give_back(&s);
    assert_int_equal(comm_coordinator_close(s.team.c, NULL), COORD_OK);
    assert_true(all_have_ended(&s));
    close_stage(&s);
}

static void tasks_end_when_no_worker_can_be_reached(void **state)
{
    (void)state;
    play(lose_workers);
}

static coord_status do_nothing(coord_slave *slave, coord_text data, coord_out *out,
                               void *user)
{
    (void)slave;
    (void)data;
    (void)out;
    (void)user;
    return COORD_OK;
}

/* Every object that needs a descriptor says so. */
static void make_things(void)
{
    static const char *const ARGV[] = {"/bin/true", NULL};
    stage s;
    coord_error err = {0};
    coord_loop *loop = NULL;
    coord_slave *worker = NULL;
    coord_slave_options slave;
    coord_launcher_options launcher_options;
    coord_launcher_spec spec;
    coord_launcher *launcher = NULL;
    coord_launcher_exit how;
    open_stage(&s);
    coord_launcher_options_init(&launcher_options, sizeof launcher_options);
    assert_int_equal(coord_launcher_create(&launcher_options, &launcher, NULL), COORD_OK);
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = "child";
    spec.argv = ARGV;
    take_all(&s);

    assert_int_equal(coord_loop_create(NULL, &loop, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, EMFILE);
    coord_slave_options_init(&slave, sizeof slave);
    slave.loop = s.loop;
    slave.process_task = do_nothing;
    assert_int_equal(coord_slave_create(&slave, &worker, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, EMFILE);
    assert_int_equal(coord_launcher_start(launcher, &spec, NULL, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, EMFILE);

    give_back(&s);
    assert_int_equal(coord_launcher_start(launcher, &spec, NULL, NULL), COORD_OK);
    assert_int_equal(coord_launcher_wait(launcher, "child", 60000, &how, NULL), COORD_OK);
    assert_int_equal(how.code, 0);
    assert_int_equal(coord_launcher_close(launcher, 60000, NULL), COORD_OK);
    coord_launcher_destroy(launcher);
    close_stage(&s);
}

static void what_needs_a_descriptor_says_that_there_is_none(void **state)
{
    (void)state;
    play(make_things);
}

/* More strangers connect than there are descriptors; they are let in later, or never. */
static void be_crowded(void)
{
    stage s;
    int go[2];
    assert_int_equal(pipe(go), 0);
    open_stage(&s);
    uint16_t port = comm_coordinator_port(s.team.c);
    pid_t stranger = fork();
    assert_true(stranger >= 0);
    if (stranger == 0) {
        char byte;
        struct rlimit more = {LIMIT, LIMIT};
        (void)setrlimit(RLIMIT_NOFILE, &more);
        (void)close(go[1]);
        for (int i = 0; i < STRANGERS; i++) {
            (void)raw_connect(port); /* and says nothing */
        }
        (void)read(go[0], &byte, 1); /* until the coordinator has had enough */
        _exit(0);
    }
    take_all(&s);
    turn_until(&s, never, 1000); /* they knock, and nobody opens */
    post(&s, TASKS);
    expect_all_to_end(&s);
    give_back(&s);
    turn_until(&s, never, 500);
    expect_recovery(&s); /* with them inside */
    (void)close(go[0]);
    (void)close(go[1]);
    assert_int_equal(waitpid(stranger, NULL, 0), stranger);
    expect_recovery(&s);
    close_stage(&s);
}

static void strangers_may_take_half_of_the_descriptors(void **state)
{
    (void)state;
    play(be_crowded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_outlives_a_lack_of_descriptors),
        cmocka_unit_test(tasks_end_when_no_worker_can_be_reached),
        cmocka_unit_test(what_needs_a_descriptor_says_that_there_is_none),
        cmocka_unit_test(strangers_may_take_half_of_the_descriptors),
    };
    return cmocka_run_group_tests_name("emfile", tests, NULL, NULL);
}
