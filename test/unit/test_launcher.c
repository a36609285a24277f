/* The launcher with real processes: what they print, and how they end. */
#include "support/launcher_rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- lines ---- */

static void lines_arrive_in_order_with_the_name_before_them(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "collector0", "echo one; echo; printf 'two\\nthree'");
    coord_launcher_exit how = wait_for(&r, "collector0");
    assert_int_equal(how.code, 0);
    assert_int_equal(how.signal_number, 0);
    assert_false(how.stopped);
    assert_string_equal(r.book,
                        "1 [collector0] one\n1 [collector0] \n1 [collector0] two\n"
                        "1 [collector0] three\ncollector0: 0 0\n");
    rig_close(&r);
}

static void both_streams_are_told_apart(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "a", "echo out; echo err >&2; exit 7");
    assert_int_equal(wait_for(&r, "a").code, 7);
    assert_non_null(strstr(r.book, "1 [a] out\n"));
    assert_non_null(strstr(r.book, "2 [a] err\n"));
    assert_non_null(strstr(r.book, "a: 7 0\n"));
    rig_close(&r);
}

static void check_long_line(coord_launcher *launcher, const coord_launcher_line *line,
                            void *user)
{
    rig *r = user;
    (void)launcher;
    assert_int_equal(line->text.ptr[line->text.len], '\0');
    note(r, "%zu %d\n", line->text.len, (int)line->more);
}

static void an_over_long_line_comes_in_pieces(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    const char *argv[] = {"/bin/sh", "-c",
                          "head -c 65536 /dev/zero; echo; head -c 150000 /dev/zero; echo",
                          NULL};
    coord_launcher_spec spec = spec_of(&r, "long", argv);
    spec.on_line = check_long_line;
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_OK);
    (void)wait_for(&r, "long");
    assert_string_equal(r.book, "65536 0\n65536 1\n65536 1\n18928 0\nlong: 0 0\n");
    rig_close(&r);
}

static void a_child_without_sinks_is_read_all_the_same(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    const char *argv[] = {"/bin/sh", "-c", "head -c 1000000 /dev/zero; exit 3", NULL};
    coord_launcher_spec spec = spec_of(&r, "quiet", argv);
    spec.on_line = NULL;
    spec.on_exit = NULL;
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_OK);
    assert_int_equal(wait_for(&r, "quiet").code, 3);
    rig_close(&r);
}

static void a_slow_sink_makes_the_child_wait_and_loses_nothing(void **state)
{
    (void)state;
    rig r;
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    options.max_queued_bytes = 100000;
    rig_open_with(&r, &options);
    r.blocks = true;
    start_sh(&r, "fast", "yes 123456789 | head -c 4000000");
    assert_true(take(&r.ready));
    assert_int_equal(coord_launcher_wait(r.launcher, "fast", SHORT_MS, NULL, NULL),
                     COORD_ERR_TIMEOUT);
    assert_int_equal(coord_launcher_count(r.launcher), 1); /* it can't write on */
    (void)sem_post(&r.release);
    (void)wait_for(&r, "fast");
    assert_int_equal(r.bytes, 4000000 / 10 * 9);
    rig_close(&r);
}

static void what_a_child_leaves_in_its_pipe_is_not_lost_to_a_slow_sink(void **state)
{
    (void)state;
    rig r;
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    options.max_queued_bytes = 1;
    rig_open_with(&r, &options);
    r.blocks = true;
    start_sh(&r, "brief", "echo first; yes 123456789 | head -c 60000; exit 4");
    assert_true(take(&r.ready));
    assert_int_equal(coord_launcher_wait(r.launcher, "brief", 4 * SHORT_MS, NULL, NULL),
                     COORD_ERR_TIMEOUT); /* for its on_exit */
    assert_int_equal(r.exits, 0);
    (void)sem_post(&r.release);
    assert_int_equal(wait_for(&r, "brief").code, 4);
    assert_int_equal(r.bytes, 5 + 60000 / 10 * 9);
    rig_close(&r);
}

/* ---- ends ---- */

static void death_by_a_signal_is_told_as_such(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "b", "kill -SEGV $$");
    coord_launcher_exit how = wait_for(&r, "b");
    assert_int_equal(how.code, -1);
    assert_int_equal(how.signal_number, SIGSEGV);
    assert_false(how.stopped);
    rig_close(&r);
}

static void stop_asks_with_sigterm_first(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "c",
             "trap 'echo bye; exit 5' TERM; echo ready; "
             "while :; do cat <&3 & wait; done");
    assert_true(take(&r.ready));
    assert_int_equal(coord_launcher_stop(r.launcher, "c", LONG_MS, NULL), COORD_OK);
    assert_string_equal(r.book, "1 [c] ready\n1 [c] bye\nc: 5 0 stopped\n");
    assert_int_equal(coord_launcher_stop(r.launcher, "c", LONG_MS, NULL), COORD_OK);
    rig_close(&r);
}

static void a_child_that_ignores_sigterm_is_killed_after_the_grace(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "d", STUBBORN);
    assert_true(take(&r.ready));
    const int64_t before = now_ms();
    assert_int_equal(coord_launcher_stop(r.launcher, "d", SHORT_MS, NULL), COORD_OK);
    assert_true(now_ms() - before >= SHORT_MS);
    coord_launcher_exit how = wait_for(&r, "d");
    assert_int_equal(how.signal_number, SIGKILL);
    assert_true(how.stopped);
    rig_close(&r);
}

static void the_earlier_of_two_graces_counts(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "d", STUBBORN);
    assert_true(take(&r.ready));
    const int64_t before = now_ms();
    assert_int_equal(coord_launcher_post_stop(r.launcher, "d", 10 * LONG_MS, NULL),
                     COORD_OK);
    assert_int_equal(coord_launcher_stop(r.launcher, "d", 1, NULL), COORD_OK);
    assert_true(now_ms() - before < LONG_MS);
    rig_close(&r);
}

static void stop_reaches_grandchildren_that_ignore_it(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    int pidfd = start_family(&r, "(trap '' TERM; exec cat <&3) & echo $!; "
                                 "exec cat <&3");
    assert_int_equal(coord_launcher_stop(r.launcher, "family", LONG_MS, NULL), COORD_OK);
    assert_true(ends(pidfd));
    rig_close(&r);
}

static void grandchildren_end_with_the_child(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    int pidfd = start_family(&r, "cat <&3 & echo $!; kill -STOP $!; exit 0");
    assert_int_equal(wait_for(&r, "family").code, 0);
    assert_true(ends(pidfd));
    rig_close(&r);
}

static void a_halted_child_can_be_stopped(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "e", PATIENT);
    assert_true(take(&r.ready));
    assert_int_equal(coord_launcher_signal(r.launcher, NULL, SIGSTOP, NULL), COORD_OK);
    assert_int_equal(coord_launcher_stop(r.launcher, NULL, LONG_MS, NULL), COORD_OK);
    assert_int_equal(wait_for(&r, "e").signal_number, SIGTERM);
    rig_close(&r);
}

static void a_signal_is_passed_on(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "f", PATIENT);
    assert_true(take(&r.ready));
    assert_int_equal(coord_launcher_signal(r.launcher, "f", SIGUSR2, NULL), COORD_OK);
    assert_int_equal(wait_for(&r, "f").signal_number, SIGUSR2);
    assert_int_equal(coord_launcher_signal(r.launcher, "f", SIGUSR2, NULL), COORD_OK);
    assert_int_equal(coord_launcher_signal(r.launcher, "f", 65, NULL), COORD_ERR_ARG);
    assert_int_equal(coord_launcher_signal(r.launcher, "g", SIGUSR2, NULL),
                     COORD_ERR_NOT_FOUND);
    rig_close(&r);
}

/* ---- what can't be started ---- */

static void a_program_that_is_not_there_is_named(void **state)
{
    (void)state;
    rig r;
    coord_error err;
    rig_open(&r);
    const char *argv[] = {"/no/such/program", NULL};
    coord_launcher_spec spec = spec_of(&r, "g", argv);
    int64_t pid = -7;
    assert_int_equal(coord_launcher_start(r.launcher, &spec, &pid, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, ENOENT);
    assert_non_null(strstr(err.text, "'g'"));
    assert_non_null(strstr(err.cause, "/no/such/program"));
    assert_non_null(strstr(err.cause, "No such file"));
    assert_int_equal(pid, -7);
    assert_int_equal(coord_launcher_wait(r.launcher, "g", LONG_MS, NULL, NULL),
                     COORD_ERR_NOT_FOUND);
    argv[0] = "/etc/passwd";
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, EACCES);
    argv[0] = "/bin/true";
    spec.cwd = "/no/such/folder";
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, &err), COORD_ERR_IO);
    assert_non_null(strstr(err.cause, "/no/such/folder"));
    assert_int_equal(coord_launcher_count(r.launcher), 0);
    assert_string_equal(r.book, "");
    assert_true(no_children());
    rig_close(&r);
}

static void a_start_that_fails_leaves_the_old_record(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    start_sh(&r, "h", "exit 9");
    assert_int_equal(wait_for(&r, "h").code, 9);
    const char *argv[] = {"/no/such/program", NULL};
    coord_launcher_spec spec = spec_of(&r, "h", argv);
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_ERR_IO);
    assert_int_equal(wait_for(&r, "h").code, 9);
    start_sh(&r, "h", "exit 8");
    assert_int_equal(wait_for(&r, "h").code, 8);
    rig_close(&r);
}

static void wrong_specs_are_refused(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    const char *argv[] = {"/bin/true", NULL};
    const char *nothing[] = {NULL};
    const char *no_name[] = {"=x", NULL};
    coord_launcher_spec spec = spec_of(&r, NULL, argv);
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_ERR_ARG);
    spec.name = "";
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_ERR_ARG);
    spec.name = "a\nb";
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_ERR_ARG);
    spec = spec_of(&r, "i", nothing);
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_ERR_ARG);
    spec = spec_of(&r, "i", argv);
    spec.environment = no_name;
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_ERR_ARG);
    spec = spec_of(&r, "i", argv);
    spec.size = 0;
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_ERR_ABI);
    assert_int_equal(coord_launcher_start(r.launcher, NULL, NULL, NULL), COORD_ERR_ARG);
    rig_close(&r);
}

static void a_name_belongs_to_one_child_that_runs(void **state)
{
    (void)state;
    rig r;
    coord_error err;
    rig_open(&r);
    int64_t pid = start_sh(&r, "j", PATIENT);
    const char *argv[] = {"/bin/true", NULL};
    coord_launcher_spec spec = spec_of(&r, "j", argv);
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, &err),
                     COORD_ERR_EXISTS);
    assert_non_null(strstr(err.text, "'j'"));
    assert_int_equal(coord_launcher_pid(r.launcher, "j"), pid);
    assert_int_equal(coord_launcher_stop(r.launcher, "j", 0, NULL), COORD_OK);
    assert_int_equal(coord_launcher_pid(r.launcher, "j"), 0);
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_OK);
    assert_int_equal(wait_for(&r, "j").code, 0);
    rig_close(&r);
}

/* ---- environment ---- */

static void the_environment_is_a_changed_copy(void **state)
{
    (void)state;
    rig r;
    rig_open(&r);
    assert_int_equal(setenv("LAUNCHER_KEPT", "kept", 1), 0);
    assert_int_equal(setenv("LAUNCHER_CHANGED", "old", 1), 0);
    assert_int_equal(setenv("LAUNCHER_REMOVED", "there", 1), 0);
    const char *changes[] = {"LAUNCHER_CHANGED=first", "LAUNCHER_NEW=a b=c",
                             "LAUNCHER_REMOVED", "LAUNCHER_CHANGED=new", NULL};
    const char *argv[] = {"sh", "-c",
                          "echo $LAUNCHER_KEPT,$LAUNCHER_CHANGED,$LAUNCHER_NEW,"
                          "${LAUNCHER_REMOVED-gone},$COORD_LIFELINE_FD; pwd",
                          NULL};
    coord_launcher_spec spec = spec_of(&r, "k", argv);
    spec.environment = changes;
    spec.cwd = "/usr";
    assert_int_equal(coord_launcher_start(r.launcher, &spec, NULL, NULL), COORD_OK);
    (void)wait_for(&r, "k");
    assert_string_equal(r.book, "1 [k] kept,new,a b=c,gone,3\n1 [k] /usr\nk: 0 0\n");
    assert_string_equal(getenv("LAUNCHER_CHANGED"), "old");
    assert_string_equal(getenv("LAUNCHER_REMOVED"), "there");
    assert_null(getenv("LAUNCHER_NEW"));
    assert_null(getenv("COORD_LIFELINE_FD"));
    rig_close(&r);
}

/* ---- waiting ---- */

static void waiting_has_a_deadline(void **state)
{
    (void)state;
    rig r;
    coord_error err;
    rig_open(&r);
    start_sh(&r, "l", PATIENT);
    for (int i = 0; i < 50; i++) { /* none of these is remembered */
        assert_int_equal(coord_launcher_wait(r.launcher, "l", 1, NULL, &err),
                         COORD_ERR_TIMEOUT);
    }
    assert_non_null(strstr(err.text, "'l'"));
    assert_int_equal(coord_launcher_wait(r.launcher, NULL, 1, NULL, NULL),
                     COORD_ERR_TIMEOUT);
    assert_int_equal(coord_launcher_wait(r.launcher, "l", 0, NULL, NULL), COORD_ERR_ARG);
    rig_close(&r);
}

static void waiting_for_all_tells_the_first_failure(void **state)
{
    (void)state;
    rig r;
    coord_launcher_exit how;
    rig_open(&r);
    assert_int_equal(coord_launcher_wait(r.launcher, NULL, LONG_MS, &how, NULL),
                     COORD_OK);
    assert_int_equal(how.code, 0);
    start_sh(&r, "m", "exit 0");
    start_sh(&r, "n", PATIENT);
    start_sh(&r, "o", "exit 11");
    start_sh(&r, "p", "exit 12");
    assert_int_equal(coord_launcher_post_stop(r.launcher, "n", LONG_MS, NULL), COORD_OK);
    assert_int_equal(coord_launcher_wait(r.launcher, NULL, LONG_MS, &how, NULL),
                     COORD_OK);
    assert_int_equal(how.code, 11);
    assert_int_equal(r.exits, 4);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_arrive_in_order_with_the_name_before_them),
        cmocka_unit_test(both_streams_are_told_apart),
        cmocka_unit_test(an_over_long_line_comes_in_pieces),
        cmocka_unit_test(a_child_without_sinks_is_read_all_the_same),
        cmocka_unit_test(a_slow_sink_makes_the_child_wait_and_loses_nothing),
        cmocka_unit_test(what_a_child_leaves_in_its_pipe_is_not_lost_to_a_slow_sink),
        cmocka_unit_test(death_by_a_signal_is_told_as_such),
        cmocka_unit_test(stop_asks_with_sigterm_first),
        cmocka_unit_test(a_child_that_ignores_sigterm_is_killed_after_the_grace),
        cmocka_unit_test(the_earlier_of_two_graces_counts),
        cmocka_unit_test(stop_reaches_grandchildren_that_ignore_it),
        cmocka_unit_test(grandchildren_end_with_the_child),
        cmocka_unit_test(a_halted_child_can_be_stopped),
        cmocka_unit_test(a_signal_is_passed_on),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
        cmocka_unit_test(a_start_that_fails_leaves_the_old_record),
        cmocka_unit_test(wrong_specs_are_refused),
        cmocka_unit_test(a_name_belongs_to_one_child_that_runs),
        cmocka_unit_test(the_environment_is_a_changed_copy),
        cmocka_unit_test(waiting_has_a_deadline),
        cmocka_unit_test(waiting_for_all_tells_the_first_failure),
    };
    return cmocka_run_group_tests_name("launcher", tests, NULL, NULL);
}
