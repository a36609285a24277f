/* A good guest: what a coordinator and its workers leave of their host's process. */
#include "support/real_team.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIGNALS = 65 }; /* all of them, and 0 */

enum { VARIABLES_MAX = 512 };

/* ---- the process as it was ---- */

typedef struct process_state {
    struct sigaction actions[SIGNALS];
    sigset_t blocked;
    mode_t mask;
    char folder[4096];
    char locale[256];
    locale_t thread_locale;
    char **environment;
    char *variables[VARIABLES_MAX]; /* the strings themselves: a change makes new ones */
    size_t variable_count;
    struct itimerval timers[3];
    struct rlimit files;
    int dumpable;
} process_state;

static void look(process_state *p)
{
    memset(p, 0, sizeof *p);
    for (int i = 1; i < SIGNALS; i++) {
        (void)sigaction(i, NULL, &p->actions[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, NULL, &p->blocked);
    p->mask = umask(0);
    (void)umask(p->mask);
    assert_non_null(getcwd(p->folder, sizeof p->folder));
    strncpy(p->locale, setlocale(LC_ALL, NULL), sizeof p->locale - 1);
    p->thread_locale = uselocale((locale_t)0);
    p->environment = environ;
    for (; environ[p->variable_count] != NULL; p->variable_count++) {
        assert_true(p->variable_count < VARIABLES_MAX);
        p->variables[p->variable_count] = environ[p->variable_count];
    }
    for (int i = 0; i < 3; i++) { /* ITIMER_REAL, _VIRTUAL, _PROF */
        (void)getitimer((__itimer_which_t)i, &p->timers[i]);
    }
    (void)getrlimit(RLIMIT_NOFILE, &p->files);
    p->dumpable = prctl(PR_GET_DUMPABLE);
}

static void check_signals(const process_state *before, const process_state *now)
{
    for (int i = 1; i < SIGNALS; i++) {
        const struct sigaction *a = &before->actions[i];
        const struct sigaction *b = &now->actions[i];
        assert_true(a->sa_handler == b->sa_handler);
        assert_int_equal(a->sa_flags, b->sa_flags);
        assert_int_equal(sigismember(&before->blocked, i), sigismember(&now->blocked, i));
        for (int k = 1; k < SIGNALS; k++) {
            assert_int_equal(sigismember(&a->sa_mask, k), sigismember(&b->sa_mask, k));
        }
    }
}

static void check_unchanged(const process_state *before)
{
    static process_state now;
    look(&now);
    check_signals(before, &now);
    assert_int_equal(now.mask, before->mask);
    assert_string_equal(now.folder, before->folder);
    assert_string_equal(now.locale, before->locale);
    assert_true(now.thread_locale == before->thread_locale);
    assert_ptr_equal(now.environment, before->environment);
    assert_int_equal(now.variable_count, before->variable_count);
    assert_memory_equal(now.variables, before->variables, sizeof now.variables);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(now.timers[i].it_interval.tv_usec, 0);
        assert_int_equal(now.timers[i].it_value.tv_usec, 0);
    }
    assert_int_equal(now.files.rlim_cur, before->files.rlim_cur);
    assert_int_equal(now.dumpable, before->dumpable);
}

static void nothing_of_the_process_is_changed_while_it_runs_or_after(void **state)
{
    static process_state before;
    static real_team t;
    (void)state;
    look(&before);
    real_team_start(&t, NULL, 2, "\"per_task\"");
    check_unchanged(&before);
    real_team_work(&t, 5);
    check_unchanged(&before);
    real_team_end(&t);
    check_unchanged(&before);
}

static void no_descriptor_and_no_thread_is_left(void **state)
{
    static real_team t;
    (void)state;
    const int fds = open_descriptors();
    for (int i = 0; i < 3; i++) {
        real_team_start(&t, NULL, 2, i == 0 ? "\"inline\"" : "\"per_task\"");
        real_team_work(&t, 5);
        real_team_end(&t);
        assert_int_equal(open_descriptors(), fds);
        assert_true(threads_are_gone());
    }
}

/* ---- children of the host ---- */

static int count_inheritable(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    for (struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        const int flags = at->d_name[0] == '.' ? -1 : fcntl(atoi(at->d_name), F_GETFD);
        count += flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
    (void)closedir(dir);
    return count;
}

static void programs_that_the_host_starts_inherit_no_descriptor(void **state)
{
    static real_team t;
    (void)state;
    const int before = count_inheritable();
    real_team_start(&t, NULL, 2, "\"per_task\"");
    real_team_work(&t, 5);
    assert_int_equal(count_inheritable(), before);
    real_team_end(&t);
}

/* Runs this program as a child; the descriptors that it finds above the standard ones. */
static int descriptors_of_a_child(void)
{
    char *const argv[] = {"test_guest", "--descriptors", NULL};
    pid_t pid;
    int how = -1;
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

static int count_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return 255;
    }
    for (struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        const int fd = at->d_name[0] == '.' ? -1 : atoi(at->d_name);
        count += fd > STDERR_FILENO && fd != dirfd(dir);
    }
    (void)closedir(dir);
    return count;
}

static void programs_that_start_while_it_works_inherit_none_either(void **state)
{
    enum { CHILDREN = 10 };
    static real_team t;
    (void)state;
    const int before = descriptors_of_a_child();
    real_team_start(&t, NULL, 2, "\"per_task\"");
    for (int i = 0; i < CHILDREN; i++) {
        for (int k = 0; k < 10; k++) {
            real_team_post(&t);
        }
        assert_int_equal(descriptors_of_a_child(), before);
    }
    real_team_work(&t, 1);
    real_team_end(&t);
}

static void nothing_is_printed(void **state)
{
    static real_team t;
    struct stat about;
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    const int out = dup(STDOUT_FILENO);
    const int err = dup(STDERR_FILENO);
    assert_true(dup2(fileno(file), STDOUT_FILENO) == STDOUT_FILENO);
    assert_true(dup2(fileno(file), STDERR_FILENO) == STDERR_FILENO);
    real_team_start(&t, NULL, 2, "\"per_task\"");
    real_team_work(&t, 5);
    comm_coordinator_options o;
    comm_coordinator_options_init(&o, sizeof o);
    o.config = "{\"port\": \"wrong\"}";
    CommCoordinator *none = NULL;
    const coord_status rc = comm_coordinator_create(&o, &none, NULL);
    real_team_end(&t);
    assert_true(dup2(out, STDOUT_FILENO) == STDOUT_FILENO);
    assert_true(dup2(err, STDERR_FILENO) == STDERR_FILENO);
    (void)close(out);
    (void)close(err);
    assert_int_not_equal(rc, COORD_OK);
    assert_int_equal(fstat(fileno(file), &about), 0);
    assert_int_equal(about.st_size, 0);
    (void)fclose(file);
}

/* ---- a host that is out of descriptors ---- */

static void without_descriptors_creation_fails_and_leaves_nothing(void **state)
{
    enum { SPARE_MAX = 5, LIMIT = 256 };
    static real_team t;
    static int taken[LIMIT];
    struct rlimit before;
    (void)state;
    const int fds = open_descriptors();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit less = {LIMIT, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    for (int spare = 0; spare < SPARE_MAX; spare++) {
        coord_master_options o;
        coord_master *master = NULL;
        coord_error err = {0};
        int count = 0;
        for (int fd = dup(0); fd >= 0; fd = dup(0)) {
            taken[count++] = fd;
        }
        for (int i = 0; i < spare; i++) {
            (void)close(taken[--count]);
        }
        coord_master_options_init(&o, sizeof o);
        const coord_status rc = coord_master_create(&o, &master, &err);
        while (count > 0) {
            (void)close(taken[--count]);
        }
        if (rc != COORD_OK) {
            assert_int_equal(rc, COORD_ERR_IO);
            assert_null(master);
            assert_string_not_equal(err.text, "");
        }
        coord_master_destroy(master);
        assert_true(threads_are_gone());
        assert_int_equal(open_descriptors(), fds);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    real_team_start(&t, NULL, 1, "\"per_task\"");
    real_team_work(&t, 1);
    real_team_end(&t);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--descriptors") == 0) {
        return count_descriptors();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_of_the_process_is_changed_while_it_runs_or_after),
        cmocka_unit_test(no_descriptor_and_no_thread_is_left),
        cmocka_unit_test(programs_that_the_host_starts_inherit_no_descriptor),
        cmocka_unit_test(programs_that_start_while_it_works_inherit_none_either),
        cmocka_unit_test(nothing_is_printed),
        cmocka_unit_test(without_descriptors_creation_fails_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
