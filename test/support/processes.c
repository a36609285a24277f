#include "support/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

extern char **environ;

enum { ARGS_MAX = 32, ERRORS_MAX = 8192 };

struct process {
    process *next; /* in the list of all */
    pid_t pid;
    int pid_fd;    /* readable once it has ended */
    int input_fd;  /* our end of its stdin; -1: it has none */
    int output_fd; /* our end of its stdout */
    int errors_fd; /* a file without a name, which is its stderr */
    int status;    /* as process_wait() tells it; -1: not waited for */
    bool closed;   /* no more output comes */
    char *text;    /* output that was read */
    size_t len;
    size_t size;
    size_t at; /* the next line begins here */
    char errors[ERRORS_MAX];
};

static process *all;

/* ---- starting ---- */

const char *process_path(const char *program)
{
    static char path[2 * PATH_MAX];
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(len > 0);
    self[len] = '\0';
    for (int up = 0; up < 3; up++) { /* BUILD/test/integration/test_x */
        char *slash = strrchr(self, '/');
        assert_non_null(slash);
        *slash = '\0';
    }
    (void)snprintf(path, sizeof path, "%s/%s", self, program);
    return path;
}

/* `input` -1: nothing to read. */
static void spawn(process *p, const char *path, char **argv, int input, int output)
{
    posix_spawn_file_actions_t actions;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    int added = input < 0 ? posix_spawn_file_actions_addopen(&actions, 0, "/dev/null",
                                                             O_RDONLY, 0)
                          : posix_spawn_file_actions_adddup2(&actions, input, 0);
    assert_int_equal(added, 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, output, 1), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, p->errors_fd, 2), 0);
    int why = posix_spawn(&p->pid, path, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (why != 0) {
        p->pid = 0;
        fail_msg("%s: %s", path, strerror(why));
    }
    p->pid_fd = pidfd_open(p->pid, 0);
    assert_true(p->pid_fd >= 0);
}

static process *start(const char *path, const char *const *args, bool held)
{
    char *argv[ARGS_MAX] = {(char *)path};
    int input[2] = {-1, -1};
    int output[2];
    process *p = calloc(1, sizeof *p);

    assert_non_null(p);
    for (int i = 0; args[i] != NULL; i++) {
        assert_true(i + 2 < ARGS_MAX);
        argv[i + 1] = (char *)args[i];
    }
    p->status = -1;
    p->pid_fd = -1;
    p->errors_fd = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(p->errors_fd >= 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    if (held) {
        assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    }
    p->input_fd = input[1];
    p->output_fd = output[0];
    p->next = all;
    all = p;
    spawn(p, path, argv, input[0], output[1]);
    (void)close(output[1]);
    if (held) {
        (void)close(input[0]);
    }
    return p;
}

process *process_start_path(const char *path, const char *const *args)
{
    return start(path, args, false);
}

process *process_start(const char *program, const char *const *args)
{
    return start(process_path(program), args, false);
}

process *process_start_held(const char *program, const char *const *args)
{
    return start(process_path(program), args, true);
}

void process_end_input(process *p)
{
    if (p->input_fd >= 0) {
        (void)close(p->input_fd);
        p->input_fd = -1;
    }
}

/* ---- waiting ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool await_readable(int fd, int64_t until_ms)
{
    struct pollfd wanted = {fd, POLLIN, 0};
    int ready;
    do {
        int64_t left = until_ms - now_ms();
        ready = poll(&wanted, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

int process_wait(process *p, int64_t limit_ms)
{
    siginfo_t info = {0};
    if (p->status >= 0) {
        return p->status;
    }
    if (!await_readable(p->pid_fd, now_ms() + limit_ms)) {
        fail_msg("process %d still runs after %lld ms; it said: %s", (int)p->pid,
                 (long long)limit_ms, process_errors(p));
    }
    assert_int_equal(waitid(P_PIDFD, (id_t)p->pid_fd, &info, WEXITED), 0);
    p->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    return p->status;
}

void process_signal(process *p, int signal)
{
    assert_int_equal(p->status, -1); /* else the number may be another's by now */
    assert_int_equal(kill(p->pid, signal), 0);
}

int process_pid(const process *p)
{
    return p->pid;
}

/* ---- reading ---- */

static void read_more(process *p)
{
    if (p->at > 0) {
        p->len -= p->at;
        memmove(p->text, p->text + p->at, p->len);
        p->at = 0;
    }
    if (p->size - p->len < 4096) {
        p->size = 2 * p->size + 8192;
        p->text = realloc(p->text, p->size);
        assert_non_null(p->text);
    }
    ssize_t got = read(p->output_fd, p->text + p->len, p->size - p->len - 1);
    assert_true(got >= 0);
    p->len += (size_t)got;
    p->closed = got == 0;
}

const char *process_read_line(process *p, int64_t limit_ms)
{
    int64_t until_ms = now_ms() + limit_ms;
    for (;;) {
        char *line = p->text == NULL ? NULL : p->text + p->at;
        char *end = line == NULL ? NULL : memchr(line, '\n', p->len - p->at);
        if (end != NULL) {
            *end = '\0';
            p->at = (size_t)(end + 1 - p->text);
            return line;
        }
        if (p->closed) {
            assert_true(p->at == p->len); /* what ends without a newline is half a line */
            return NULL;
        }
        if (!await_readable(p->output_fd, until_ms)) {
            fail_msg("process %d printed no line for %lld ms; it said: %s", (int)p->pid,
                     (long long)limit_ms, process_errors(p));
        }
        read_more(p);
    }
}

const char *process_errors(process *p)
{
    ssize_t got = pread(p->errors_fd, p->errors, sizeof p->errors - 1, 0);
    p->errors[got > 0 ? got : 0] = '\0';
    return p->errors;
}

/* ---- the end ---- */

static void end(process *p)
{
    if (p->pid > 0 && p->status < 0) {
        (void)kill(p->pid, SIGKILL);
        (void)waitpid(p->pid, NULL, 0);
    }
    if (p->pid_fd >= 0) {
        (void)close(p->pid_fd);
    }
    process_end_input(p);
    (void)close(p->output_fd);
    (void)close(p->errors_fd);
    free(p->text);
    free(p);
}

void processes_end_all(void)
{
    while (all != NULL) {
        process *p = all;
        all = p->next;
        end(p);
    }
}
