#include "env/env.h"

#include "base/error.h"
#include "env/real.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Vocabulary
 *   lifeline  the reading end of a pipe whose only writing end the parent has: see
 *             real_process.c. It ends with the parent.
 *   parent    known if it has told its number (COORD_PARENT_PID): then the kernel may be
 *             asked for a signal at its death, and a pidfd tells its end even when a fork
 *             of it still holds the lifeline open
 *
 * The watcher is the one thread that a library of ours leaves behind for good: it belongs
 * to the process, as what it watches does. */

enum { FDS = 2 };

typedef struct guard {
    coordi_guard_spec spec;
    struct pollfd fds[FDS]; /* lifeline, parent; -1: not there */
    bool gone;              /* the parent, before there was a watcher */
} guard;

static guard the_guard; /* written once, before its thread starts */
static atomic_bool taken;

/* A number from the environment; -1: none. */
static long number_of(const char *name, long max)
{
    const char *text = getenv(name);
    if (text == NULL || *text < '0' || *text > '9') {
        return -1;
    }
    char *end;
    errno = 0;
    const long number = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 && number <= max ? number : -1;
}

/* The variable may have been inherited from somebody who was guarded: what it names must
 * look like a lifeline. */
static int find_lifeline(void)
{
    const int fd = (int)number_of("COORD_LIFELINE_FD", 65535);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0 || !S_ISFIFO(about.st_mode)) {
        return -1;
    }
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY ? fd : -1;
}

/* Has the pipe come to its end? Nobody writes to it, but what is written would be eaten.
 */
static bool lifeline_ended(int fd)
{
    char byte;
    return read(fd, &byte, 1) == 0;
}

static void wait_for_end(struct pollfd fds[FDS])
{
    for (;;) {
        const int ready = poll(fds, FDS, -1);
        if (ready <= 0) {
            continue; /* EINTR, or the kernel is short of memory */
        }
        if (fds[1].revents != 0 || (fds[0].revents != 0 && lifeline_ended(fds[0].fd))) {
            return;
        }
    }
}

static void pause_for(int64_t wait_ms)
{
    const int64_t until = coordi_real_now() + wait_ms;
    for (int64_t left = wait_ms; left > 0; left = until - coordi_real_now()) {
        (void)poll(NULL, 0, left > INT32_MAX ? INT32_MAX : (int)left);
    }
}

static void *guard_main(void *arg)
{
    guard *g = arg;
    (void)pthread_setname_np(pthread_self(), "coord-guard");
    if (!g->gone) {
        wait_for_end(g->fds);
    }
    if (g->spec.on_gone != NULL) {
        g->spec.on_gone(g->spec.arg);
        if (g->spec.grace_ms == 0) {
            return NULL;
        }
        pause_for(g->spec.grace_ms);
    }
    _exit(g->spec.exit_code);
}

/* The parent's pidfd, or -1: not known, or a shell stands between us. Asks for the
 * signal, too, where nobody wants to be told first. */
static int watch_parent(bool ask_signal, bool *gone)
{
    const long parent = number_of("COORD_PARENT_PID", INT32_MAX);
    *gone = false;
    if (parent <= 1 || getppid() != parent) {
        return -1;
    }
    if (ask_signal) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    const int fd = (int)syscall(SYS_pidfd_open, (pid_t)parent, 0);
    *gone = getppid() != parent; /* since we looked: too late for the signal */
    return fd;
}

coord_status coordi_child_guard(const coordi_guard_spec *spec, coord_error *err)
{
    const int lifeline = find_lifeline();
    if (lifeline < 0 || atomic_exchange(&taken, true)) {
        return COORD_OK;
    }
    (void)fcntl(lifeline, F_SETFD, FD_CLOEXEC);
    the_guard.spec = *spec;
    const int parent = watch_parent(spec->on_gone == NULL, &the_guard.gone);
    if (the_guard.gone && spec->on_gone == NULL) {
        _exit(spec->exit_code);
    }
    the_guard.fds[0] = (struct pollfd){.fd = lifeline, .events = POLLIN};
    the_guard.fds[1] = (struct pollfd){.fd = parent, .events = POLLIN};
    pthread_t thread;
    coord_status rc =
        coordi_real_spawn("guard", guard_main, &the_guard, true, &thread, err);
    if (rc != COORD_OK) {
        if (parent >= 0) {
            (void)close(parent);
        }
        atomic_store(&taken, false);
    }
    return rc;
}
