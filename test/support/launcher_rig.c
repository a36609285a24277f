#include "support/launcher_rig.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void note(rig *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)pthread_mutex_lock(&r->lock);
    int len = vsnprintf(r->book + r->at, BOOK - r->at, format, args);
    if (len > 0 && (size_t)len < BOOK - r->at) {
        r->at += (size_t)len;
    }
    (void)pthread_mutex_unlock(&r->lock);
    va_end(args);
}

bool take(sem_t *sem)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += LONG_MS / 1000;
    int rc;
    do {
        rc = sem_timedwait(sem, &until);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

void on_line(coord_launcher *launcher, const coord_launcher_line *line, void *user)
{
    rig *r = user;
    (void)launcher;
    if (r->blocks) {
        (void)sem_post(&r->ready);
        (void)take(&r->release);
        r->blocks = false;
    }
    r->bytes += line->text.len;
    if (line->text.len < 200) {
        note(r, "%d %s%s\n", line->stream, line->prefixed.ptr, line->more ? "..." : "");
    }
    if (strcmp(line->text.ptr, "ready") == 0) {
        (void)sem_post(&r->ready);
    }
    (void)sem_post(&r->told);
}

void on_exit_of(coord_launcher *launcher, const char *name,
                const coord_launcher_exit *how, void *user)
{
    rig *r = user;
    (void)launcher;
    note(r, "%s: %d %d%s\n", name, how->code, how->signal_number,
         how->stopped ? " stopped" : "");
    r->exits++;
}

void rig_open_with(rig *r, const coord_launcher_options *options)
{
    memset(r, 0, sizeof *r);
    assert_int_equal(pthread_mutex_init(&r->lock, NULL), 0);
    assert_int_equal(sem_init(&r->told, 0, 0), 0);
    assert_int_equal(sem_init(&r->ready, 0, 0), 0);
    assert_int_equal(sem_init(&r->release, 0, 0), 0);
    assert_int_equal(coord_launcher_create(options, &r->launcher, NULL), COORD_OK);
}

void rig_open(rig *r)
{
    rig_open_with(r, NULL);
}

void rig_close(rig *r)
{
    coord_launcher_destroy(r->launcher);
    (void)pthread_mutex_destroy(&r->lock);
    (void)sem_destroy(&r->told);
    (void)sem_destroy(&r->ready);
    (void)sem_destroy(&r->release);
}

coord_launcher_spec spec_of(rig *r, const char *name, const char *const *argv)
{
    coord_launcher_spec spec;
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = name;
    spec.argv = argv;
    spec.on_line = on_line;
    spec.on_exit = on_exit_of;
    spec.user = r;
    return spec;
}

int64_t start_sh(rig *r, const char *name, const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    coord_launcher_spec spec = spec_of(r, name, argv);
    int64_t pid = 0;
    assert_int_equal(coord_launcher_start(r->launcher, &spec, &pid, NULL), COORD_OK);
    assert_true(pid > 0);
    return pid;
}

coord_launcher_exit wait_for(rig *r, const char *name)
{
    coord_launcher_exit how;
    assert_int_equal(coord_launcher_wait(r->launcher, name, LONG_MS, &how, NULL),
                     COORD_OK);
    return how;
}

int pidfd_of(int64_t pid)
{
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
}

/* Takes over a pidfd; does its process end in time? */
bool ends(int pidfd)
{
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    const bool ended = pidfd >= 0 && poll(&gone, 1, LONG_MS) == 1;
    (void)close(pidfd);
    return ended;
}

bool no_children(void)
{
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Its first line is the number of a process that it has started. */
static void grandchild_number(coord_launcher *launcher, const coord_launcher_line *line,
                              void *user)
{
    rig *r = user;
    (void)launcher;
    r->exits = pidfd_of(strtol(line->text.ptr, NULL, 10));
    (void)sem_post(&r->ready);
}

int start_family(rig *r, const char *script)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    coord_launcher_spec spec = spec_of(r, "family", argv);
    spec.on_line = grandchild_number;
    spec.on_exit = NULL;
    assert_int_equal(coord_launcher_start(r->launcher, &spec, NULL, NULL), COORD_OK);
    assert_true(take(&r->ready));
    assert_true(r->exits >= 0);
    return r->exits;
}
