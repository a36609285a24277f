/* The launcher's own life: calls from sinks, close, destroy, loops, memory; and that
 * nothing stays behind. */
#include "base/alloc.h"
#include "support/launcher_rig.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

/* ---- calls from sinks ---- */

static void restart_once(coord_launcher *launcher, const char *name,
                         const coord_launcher_exit *how, void *user)
{
    rig *r = user;
    on_exit_of(launcher, name, how, user);
    r->from_sink = coord_launcher_wait(launcher, NULL, 1, NULL, NULL);
    if (r->from_sink == COORD_ERR_STATE) {
        r->from_sink = coord_launcher_stop(launcher, name, 0, NULL);
    }
    if (r->from_sink == COORD_ERR_STATE) {
        r->from_sink = coord_launcher_close(launcher, 1, NULL);
    }
    const char *argv[] = {"/bin/sh", "-c", "exit 2", NULL};
    coord_launcher_spec spec = spec_of(r, name, argv);
    if (coord_launcher_start(launcher, &spec, NULL, NULL) != COORD_OK) {
        note(r, "not started");
    }
    (void)sem_post(&r->ready);
}

static void restart_with(const coord_launcher_options *options)
{
    rig r;
    rig_open_with(&r, options);
    const char *argv[] = {"/bin/sh", "-c", "exit 1", NULL};
    coord_launcher_spec spec = spec_of(&r, "q", argv);
    spec.on_exit = restart_once;
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_OK);
    assert_true(take(&r.ready));
    (void)wait_for(&r, "q");
    assert_string_equal(r.book, "q: 1 0\nq: 2 0\n");
    assert_int_equal(r.from_sink, COORD_ERR_STATE); /* where waiting could not end */
    rig_close(&r);
}

static void a_sink_can_start_a_child_again_and_never_wait(void **state)
{
    (void)state;
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    restart_with(&options);
    options.executor = COORD_EXECUTOR_INLINE;
    restart_with(&options);
    options.executor = COORD_EXECUTOR_POOL;
    options.executor_threads = 1;
    restart_with(&options);
}

static void destroy_in_sink(coord_launcher *launcher, const coord_launcher_line *line,
                            void *user)
{
    rig *r = user;
    (void)line;
    r->exits++;
    coord_launcher_destroy(launcher);
    (void)sem_post(&r->ready);
}

static void a_sink_can_destroy_its_launcher(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    const char *argv[] = {"/bin/sh", "-c", "echo 1; echo 2; exec cat <&3", NULL};
    coord_launcher_spec spec = spec_of(&r, "s", argv);
    spec.on_line = destroy_in_sink;
    int64_t pid;
    assert_int_equal(coord_launcher_start(r.launcher, &spec, &pid, NULL), COORD_OK);
    r.launcher = NULL;
    assert_true(take(&r.ready));
    int pidfd = pidfd_of(pid);
    assert_true(pidfd < 0 || ends(pidfd));
    assert_int_equal(r.exits, 1);
    rig_close(&r);
}

/* ---- close and destroy ---- */

static void close_stops_all_and_starts_no_more(void **state)
{
    (void)state;
    rig r;
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    options.close_grace_ms = SHORT_MS;
    rig_open_with(&r, &options);
    start_sh(&r, "t", PATIENT);
    start_sh(&r, "u", STUBBORN);
    assert_true(take(&r.ready) && take(&r.ready));
    assert_int_equal(coord_launcher_close(r.launcher, LONG_MS, NULL), COORD_OK);
    assert_int_equal(r.exits, 2);
    assert_int_equal(coord_launcher_count(r.launcher), 0);
    assert_true(no_children());
    assert_int_equal(coord_launcher_close(r.launcher, 1000, NULL), COORD_OK);
    const char *argv[] = {"/bin/true", NULL};
    coord_launcher_spec spec = spec_of(&r, "v", argv);
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL),
                     COORD_ERR_STATE);
    rig_close(&r);
}

static void close_names_the_sink_that_it_waits_for(void **state)
{
    (void)state;
    rig r;
    coord_error err;
    rig_open(&r);
    r.blocks = true;
    start_sh(&r, "w", "echo x");
    assert_true(take(&r.ready));
    assert_int_equal(coord_launcher_close(r.launcher, 5 * SHORT_MS, &err),
                     COORD_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "a sink of 'w'"));
    (void)sem_post(&r.release);
    assert_int_equal(coord_launcher_close(r.launcher, LONG_MS, &err), COORD_OK);
    rig_close(&r);
}

static int open_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    (void)closedir(folder);
    return count;
}

static void destroy_leaves_no_process_and_no_descriptor(void **state)
{
    (void)state;
    const int before = open_fds();
    rig r;
    rig_open(&r);
    start_sh(&r, "x", STUBBORN);
    start_sh(&r, "y", "cat <&3 & echo ready; wait");
    assert_true(take(&r.ready) && take(&r.ready));
    int pidfd = start_family(&r, "cat <&3 & echo $!; wait");
    r.exits = 0;
    const int64_t began = now_ms();
    coord_launcher_destroy(r.launcher);
    r.launcher = NULL;
    assert_true(now_ms() - began < LONG_MS / 4);
    assert_true(ends(pidfd));
    assert_true(no_children());
    assert_int_equal(r.exits, 0);
    assert_int_equal(open_fds(), before);
    rig_close(&r);
}

static void destroy_does_not_wait_for_a_sink(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    r.blocks = true;
    start_sh(&r, "z", "echo x; exec cat <&3");
    assert_true(take(&r.ready));
    int pidfd = pidfd_of(coord_launcher_pid(r.launcher, "z"));
    coord_launcher_destroy(r.launcher);
    r.launcher = NULL;
    assert_true(ends(pidfd));
    (void)sem_post(&r.release);
    assert_true(take(&r.told));
    assert_string_equal(r.book, "1 [z] x\n");
    assert_int_equal(r.exits, 0);
    rig_close(&r);
}

static void a_loop_of_the_host_needs_no_thread(void **state)
{
    (void)state;
    rig r;
    coord_loop_options how;
    coord_loop_options_init(&how, sizeof how);
    how.own_thread = false;
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    options.executor = COORD_EXECUTOR_INLINE;
    assert_int_equal(coord_loop_create(&how, &options.loop, NULL), COORD_OK);
    rig_open_with(&r, &options);
    start_sh(&r, "host", "echo 1; exit 3");
    assert_int_equal(wait_for(&r, "host").code, 3);
    assert_string_equal(r.book, "1 [host] 1\nhost: 3 0\n");
    rig_close(&r);
    coord_loop_destroy(options.loop);
}

/* ---- out of memory ---- */

static int allocations_left;

static bool fail_when_used_up(void *user)
{
    (void)user;
    return allocations_left-- <= 0;
}

/* One launcher's life, every call of which may fail. No thread of ours runs in here. */
static bool life_in_need(rig *r, coord_loop *loop)
{
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    options.executor = COORD_EXECUTOR_INLINE;
    options.loop = loop;
    const char *changes[] = {"A=b", NULL};
    const char *argv[] = {"/bin/sh", "-c", "echo 1; exit 3", NULL};
    coord_launcher_spec spec = spec_of(r, "poor", argv);
    spec.environment = changes;
    spec.cwd = "/";
    coord_launcher *launcher = NULL;
    coord_status rc = coord_launcher_create(&options, &launcher, NULL);
    if (rc == COORD_OK) {
        rc = coord_launcher_start(launcher, &spec, NULL, NULL);
    }
    if (rc == COORD_OK) {
        rc = coord_launcher_wait(launcher, "poor", LONG_MS, NULL, NULL);
    }
    if (rc == COORD_OK) {
        rc = coord_launcher_close(launcher, LONG_MS, NULL);
    }
    coord_launcher_destroy(launcher);
    assert_true(rc == COORD_OK || rc == COORD_ERR_NOMEM);
    return rc == COORD_OK && allocations_left >= 0;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rig r;
    coord_loop *loop = NULL;
    coord_loop_options how;
    coord_loop_options_init(&how, sizeof how);
    how.own_thread = false;
    assert_int_equal(coord_loop_create(&how, &loop, NULL), COORD_OK);
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    options.executor = COORD_EXECUTOR_INLINE;
    options.loop = loop;
    rig_open_with(&r, &options);
    coordi_alloc_set_fault(fail_when_used_up, NULL);
    bool whole = false;
    for (int count = 0; count < 1000 && !whole; count++) {
        allocations_left = count;
        whole = life_in_need(&r, loop);
        assert_int_equal(coord_loop_step(loop, 0, NULL), COORD_OK);
    }
    coordi_alloc_set_fault(NULL, NULL);
    assert_true(whole);
    rig_close(&r);
    coord_loop_destroy(loop);
    assert_true(no_children());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: threads of others, that end by themselves, may still allocate. */
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_sink_can_start_a_child_again_and_never_wait),
        cmocka_unit_test(a_sink_can_destroy_its_launcher),
        cmocka_unit_test(close_stops_all_and_starts_no_more),
        cmocka_unit_test(close_names_the_sink_that_it_waits_for),
        cmocka_unit_test(destroy_leaves_no_process_and_no_descriptor),
        cmocka_unit_test(destroy_does_not_wait_for_a_sink),
        cmocka_unit_test(a_loop_of_the_host_needs_no_thread),
    };
    return cmocka_run_group_tests_name("launcher life", tests, NULL, NULL);
}
