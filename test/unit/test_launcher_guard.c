/* What becomes of children when the launcher's process is killed. */
#include "support/launcher_rig.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- this program as a launcher, and as a child ---- */

static void print_line(coord_launcher *launcher, const coord_launcher_line *line,
                       void *user)
{
    (void)launcher;
    (void)user;
    (void)printf("%s\n", line->text.ptr);
    (void)fflush(stdout);
}

/* A fork that lives on holds the lifeline's other end. It is killed by the test. */
static pid_t fork_that_stays(void)
{
    const pid_t fork_pid = fork();
    if (fork_pid == 0) {
        (void)poll(NULL, 0, 2 * LONG_MS);
        _exit(0);
    }
    return fork_pid;
}

/* Starts one child, tells its number and what it says, and lives until it is killed. */
static int be_launcher(const char *what, const char *child)
{
    const bool own_thread = strcmp(what, "--launch-stepping") != 0;
    const bool forks = strcmp(what, "--launch-forking") == 0;
    coord_loop_options how;
    coord_loop_options_init(&how, sizeof how);
    how.own_thread = own_thread;
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    coord_launcher *launcher;
    if (coord_loop_create(&how, &options.loop, NULL) != COORD_OK ||
        coord_launcher_create(&options, &launcher, NULL) != COORD_OK) {
        return 2;
    }
    const char *self[] = {"/proc/self/exe", child, NULL};
    const char *shell[] = {"/bin/sh", "-c", "echo watching; read nothing <&3", NULL};
    coord_launcher_spec spec;
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = "child";
    spec.argv = strcmp(child, "--shell") == 0 ? shell : self;
    spec.on_line = print_line;
    int64_t pid;
    /* Its lines wait for ours: stdout is locked until then. */
    flockfile(stdout);
    const coord_status rc = coord_launcher_start(launcher, &spec, &pid, NULL);
    (void)printf("%lld %ld\n", rc == COORD_OK ? (long long)pid : -1LL,
                 forks ? (long)fork_that_stays() : 0L);
    (void)fflush(stdout);
    funlockfile(stdout);
    return coord_launcher_wait(launcher, "child", 10 * (int64_t)LONG_MS, NULL, NULL) ==
                   COORD_OK
               ? 3
               : 4;
}

static void end_gently(void *user)
{
    (void)user;
    exit(0);
}

static void hang(void *user)
{
    (void)user;
}

static int be_child(const char *how)
{
    coord_launcher_guard_options options;
    coord_launcher_guard_options_init(&options, sizeof options);
    if (strcmp(how, "--told") == 0) {
        options.on_parent_gone = end_gently;
        options.grace_ms = 0;
    } else if (strcmp(how, "--hangs") == 0) {
        options.on_parent_gone = hang;
        options.grace_ms = SHORT_MS;
    }
    if (coord_launcher_child_guard(&options, NULL) != COORD_OK) {
        return 2;
    }
    int death_signal = -1;
    (void)prctl(PR_GET_PDEATHSIG, &death_signal);
    (void)printf("death signal %d, cloexec %d\n", death_signal,
                 fcntl(3, F_GETFD) == FD_CLOEXEC);
    (void)fflush(stdout);
    (void)poll(NULL, 0, 10 * LONG_MS);
    return 3;
}

/* ---- the end of the launcher's process ---- */

/* Starts this program with some arguments; what it prints is read from *out. */
static pid_t start_self(const char *what, const char *child, int *out)
{
    int ends_of[2];
    assert_int_equal(pipe2(ends_of, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends_of[1], 1), 0);
    char self[] = "/proc/self/exe";
    char *argv[] = {self, strdup(what), strdup(child), NULL};
    pid_t pid;
    assert_int_equal(posix_spawn(&pid, self, &actions, NULL, argv, environ), 0);
    (void)posix_spawn_file_actions_destroy(&actions);
    free(argv[1]);
    free(argv[2]);
    (void)close(ends_of[1]);
    *out = ends_of[0];
    return pid;
}

/* The next line from a descriptor, in time. */
static void read_line(int fd, char *line, size_t size)
{
    size_t len = 0;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    while (len + 1 < size && poll(&readable, 1, LONG_MS) == 1 &&
           read(fd, line + len, 1) == 1 && line[len] != '\n') {
        len++;
    }
    line[len] = '\0';
}

/* Runs a launcher in a process of its own with one child, kills that process, and looks
 * at what becomes of the child, which said `says` when it was ready. */
static void child_ends_with_a_killed_launcher(const char *what, const char *child,
                                              const char *says)
{
    int out;
    char line[256];
    pid_t helper = start_self(what, child, &out);
    read_line(out, line, sizeof line);
    char *rest;
    const int64_t pid = strtol(line, &rest, 10);
    const long fork_pid = strtol(rest, NULL, 10);
    assert_true(pid > 0);
    int pidfd = pidfd_of(pid);
    assert_true(pidfd >= 0);
    read_line(out, line, sizeof line);
    assert_string_equal(line, says);
    (void)close(out);
    assert_int_equal(kill(helper, SIGKILL), 0);
    assert_int_equal(waitpid(helper, NULL, 0), helper);
    assert_true(ends(pidfd));
    if (fork_pid > 0) {
        assert_int_equal(kill((pid_t)fork_pid, SIGKILL),
                         0); /* it was there all the time */
    }
}

static void a_guarded_child_ends_with_a_killed_launcher(void **state)
{
    (void)state;
    child_ends_with_a_killed_launcher("--launch", "--guarded",
                                      "death signal 9, cloexec 1");
}

static void a_guarded_child_can_be_told_first(void **state)
{
    (void)state;
    child_ends_with_a_killed_launcher("--launch", "--told", "death signal 0, cloexec 1");
}

static void a_told_child_that_hangs_is_ended_after_the_grace(void **state)
{
    (void)state;
    child_ends_with_a_killed_launcher("--launch", "--hangs", "death signal 0, cloexec 1");
}

static void a_fork_of_the_launcher_keeps_no_child_alive(void **state)
{
    (void)state;
    child_ends_with_a_killed_launcher("--launch-forking", "--told",
                                      "death signal 0, cloexec 1");
}

/* The signal would come when the thread ends that happened to start the child. */
static void no_death_signal_is_asked_for_under_a_loop_of_the_host(void **state)
{
    (void)state;
    child_ends_with_a_killed_launcher("--launch-stepping", "--guarded",
                                      "death signal 0, cloexec 1");
}

static void any_program_can_watch_the_lifeline(void **state)
{
    (void)state;
    child_ends_with_a_killed_launcher("--launch", "--shell", "watching");
}

static void without_a_launcher_the_guard_does_nothing(void **state)
{
    (void)state;
    coord_launcher_guard_options options;
    coord_launcher_guard_options_init(&options, sizeof options);
    options.exit_code = 256;
    assert_int_equal(coord_launcher_child_guard(&options, NULL), COORD_ERR_ARG);
    assert_int_equal(coord_launcher_child_guard(NULL, NULL), COORD_OK);
    /* Inherited from somebody who was guarded, and naming something else here. */
    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char number[16];
    (void)snprintf(number, sizeof number, "%d", other);
    assert_int_equal(setenv("COORD_LIFELINE_FD", number, 1), 0);
    assert_int_equal(coord_launcher_child_guard(NULL, NULL), COORD_OK);
    (void)close(other);
    assert_int_equal(coord_launcher_child_guard(NULL, NULL), COORD_OK);
    assert_int_equal(unsetenv("COORD_LIFELINE_FD"), 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strncmp(argv[1], "--launch", 8) == 0) {
        return be_launcher(argv[1], argv[2]);
    }
    if (argc == 2 && strncmp(argv[1], "--", 2) == 0) {
        return be_child(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_guarded_child_ends_with_a_killed_launcher),
        cmocka_unit_test(a_guarded_child_can_be_told_first),
        cmocka_unit_test(a_told_child_that_hangs_is_ended_after_the_grace),
        cmocka_unit_test(a_fork_of_the_launcher_keeps_no_child_alive),
        cmocka_unit_test(no_death_signal_is_asked_for_under_a_loop_of_the_host),
        cmocka_unit_test(any_program_can_watch_the_lifeline),
        cmocka_unit_test(without_a_launcher_the_guard_does_nothing),
    };
    return cmocka_run_group_tests_name("launcher guard", tests, NULL, NULL);
}
