#include "env/real_process.h"

#include "base/alloc.h"
#include "base/error.h"
#include "env/real.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Vocabulary
 *   leader    the child itself, first of its process group
 *   lifeline  a pipe that nobody writes to; the child has its reading end, named by
 *             COORD_LIFELINE_FD, and sees its end when we are gone, however we went
 *   orphan    a process whose owner has destroyed it: killed, and waiting to be reaped
 *   grace     how long output is awaited that grandchildren may still hold open
 *
 * The leader is looked at with WNOWAIT and reaped only when it is destroyed: as long as
 * it is a zombie its number can't be given to somebody else, so that signals to the group
 * never hit strangers. Only our own child is ever waited for, through its pidfd; SIGCHLD
 * is left to the host. A host that has its children reaped (waitpid(-1), SIGCHLD ignored)
 * costs us the exit code, which is then EXIT_UNKNOWN. */

enum {
    STREAMS = 2,
    PIECE = 16384,
    PIECES = 8, /* of one stream a turn */
    GRACE_MS = 250,
    LIFELINE_FD = 3,
    FIRST_FD = 10, /* above all that the child's side uses */
    EXIT_UNKNOWN = 255,
    REAP_MS = 1000,
};

typedef struct stream {
    coordi_watch watch;
    coordi_process *process;
    int number; /* 1 or 2 */
    int fd;     /* -1: ended */
} stream;

struct coordi_process {
    coordi_link link; /* in loop->orphans */
    coordi_real_loop *loop;
    pid_t pid;
    int pid_fd;
    int lifeline;
    coordi_watch pid_watch;
    coordi_timer grace;
    stream streams[STREAMS];
    bool paused; /* streams are not read, but when they are about to be closed */
    bool exited; /* the leader */
    bool told;   /* on_exit has been called */
    bool lost;   /* the host reaped it: its number may be somebody else's by now */
    int code;
    void (*on_output)(coordi_process *process, int number, const char *bytes, size_t len,
                      void *arg);
    void (*on_exit)(coordi_process *process, int code, void *arg);
    void *arg;
    bool *gone; /* set while a function must know whether the process was destroyed */
};

/* ---- output and exit ---- */

static void stream_close(stream *s)
{
    if (s->fd >= 0) {
        coordi_real_unwatch(s->process->loop, s->fd, &s->watch);
        (void)close(s->fd);
        s->fd = -1;
    }
}

/* Tells the exit once the streams have ended. */
static void tell_exit(coordi_process *process)
{
    if (!process->exited || process->told || process->streams[0].fd >= 0 ||
        process->streams[1].fd >= 0) {
        return;
    }
    process->told = true;
    coordi_heap_cancel(&process->loop->timers, &process->grace);
    process->on_exit(process, process->code, process->arg);
}

/* False: the owner destroyed the process. */
static bool tell_output(coordi_process *process, int number, const char *bytes,
                        size_t len)
{
    bool gone = false;
    process->gone = &gone; /* cppcheck-suppress autoVariables ; reset below */
    process->on_output(process, number, bytes, len, process->arg);
    if (!gone) {
        process->gone = NULL;
    }
    return !gone;
}

/* False: the owner destroyed the process. */
static bool stream_end(stream *s)
{
    const bool was_open = s->fd >= 0;
    stream_close(s);
    return !was_open || tell_output(s->process, s->number, NULL, 0);
}

/* Passes on what is there, at most `pieces`. False: the owner destroyed the process. */
static bool stream_read(stream *s, int pieces)
{
    char bytes[PIECE];
    for (int i = 0; i < pieces && s->fd >= 0; i++) {
        const ssize_t len = read(s->fd, bytes, sizeof bytes);
        if (len > 0) {
            if (!tell_output(s->process, s->number, bytes, (size_t)len)) {
                return false;
            }
        } else if (len < 0 && errno == EAGAIN) {
            return true;
        } else if (len == 0 || errno != EINTR) {
            return stream_end(s);
        }
    }
    return true;
}

static void stream_ready(coordi_watch *watch, uint32_t events)
{
    (void)events;
    stream *s = COORDI_ITEM(watch, stream, watch);
    coordi_process *process = s->process;
    if (process->paused) { /* it has ended; resuming will tell again */
        return;
    }
    if (stream_read(s, PIECES)) {
        tell_exit(process);
    }
}

/* Somebody else still holds the child's output open: it is not waited for any longer. */
static void grace_over(coordi_timer *timer)
{
    coordi_process *process = COORDI_ITEM(timer, coordi_process, grace);
    for (int i = 0; i < STREAMS; i++) {
        if (!stream_read(&process->streams[i], PIECES) ||
            !stream_end(&process->streams[i])) {
            return;
        }
    }
    tell_exit(process);
}

static int code_of(const siginfo_t *info)
{
    return info->si_code == CLD_EXITED ? info->si_status : -info->si_status;
}

static void note_exit(coordi_process *process, int code)
{
    process->exited = true;
    process->code = code;
    coordi_heap_set(&process->loop->timers, &process->grace,
                    coordi_real_now() + GRACE_MS);
}

static void note_lost(coordi_process *process)
{
    process->lost = true;
    COORDI_LOG(&process->loop->base.log, COORD_LOG_WARN,
               "exit code lost: pid=%ld why=\"the host reaps children of ours\"",
               (long)process->pid);
    note_exit(process, EXIT_UNKNOWN);
}

static void leader_gone(coordi_watch *watch, uint32_t events)
{
    (void)events;
    coordi_process *process = COORDI_ITEM(watch, coordi_process, pid_watch);
    siginfo_t info = {0};
    const int rc = waitid((idtype_t)P_PIDFD, (id_t)process->pid_fd, &info,
                          WEXITED | WNOHANG | WNOWAIT);
    if (rc == 0 && info.si_pid == 0) {
        return; /* not yet */
    }
    coordi_real_unwatch(process->loop, process->pid_fd, &process->pid_watch);
    if (rc == 0) {
        note_exit(process, code_of(&info));
    } else {
        note_lost(process);
    }
    tell_exit(process);
}

/* ---- starting ---- */

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0) {
            (void)close(pair[i]);
            pair[i] = -1;
        }
    }
}

/* A pipe with both ends at FIRST_FD or above, so that the child's side can be arranged
 * without one descriptor running over another. 0 or an errno. */
static int pipe_above(int pair[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) != 0) {
        return errno;
    }
    int os_errno = 0;
    for (int i = 0; i < 2; i++) {
        pair[i] = fcntl(low[i], F_DUPFD_CLOEXEC, FIRST_FD);
        if (pair[i] < 0 && os_errno == 0) {
            os_errno = errno;
        }
    }
    close_pair(low);
    if (os_errno != 0) {
        close_pair(pair);
    }
    return os_errno;
}

typedef struct pipes {
    int out[2];
    int err[2];
    int life[2];
} pipes;

static void pipes_close(pipes *p)
{
    close_pair(p->out);
    close_pair(p->err);
    close_pair(p->life);
}

static int pipes_open(pipes *p)
{
    *p = (pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    int os_errno = pipe_above(p->out);
    os_errno = os_errno != 0 ? os_errno : pipe_above(p->err);
    os_errno = os_errno != 0 ? os_errno : pipe_above(p->life);
    if (os_errno == 0 && (fcntl(p->out[0], F_SETFL, O_NONBLOCK) != 0 ||
                          fcntl(p->err[0], F_SETFL, O_NONBLOCK) != 0)) {
        os_errno = errno;
    }
    if (os_errno != 0) {
        pipes_close(p);
    }
    return os_errno;
}

static int set_actions(posix_spawn_file_actions_t *actions, const pipes *p,
                       const char *cwd)
{
    int rc = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
    rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(actions, p->out[1], 1);
    rc = rc != 0 ? rc : posix_spawn_file_actions_adddup2(actions, p->err[1], 2);
    rc =
        rc != 0 ? rc : posix_spawn_file_actions_adddup2(actions, p->life[0], LIFELINE_FD);
    rc =
        rc != 0 ? rc : posix_spawn_file_actions_addclosefrom_np(actions, LIFELINE_FD + 1);
    if (rc == 0 && cwd != NULL) {
        rc = posix_spawn_file_actions_addchdir_np(actions, cwd);
    }
    return rc;
}

/* A group of its own, no blocked signals, default actions, whatever the host has. */
static int set_attributes(posix_spawnattr_t *how)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int rc = posix_spawnattr_setflags(
        how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    rc = rc != 0 ? rc : posix_spawnattr_setpgroup(how, 0);
    rc = rc != 0 ? rc : posix_spawnattr_setsigmask(how, &none);
    return rc != 0 ? rc : posix_spawnattr_setsigdefault(how, &all);
}

static bool has_name(const char *variable, const char *name)
{
    const size_t len = strlen(name);
    return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

/* The child's environment, with what names the lifeline and us last. `parent` is
 * "COORD_PARENT_PID=..." or NULL. */
static const char **environment_of(const coordi_process_spec *spec, const char *parent)
{
    size_t count = 0;
    while (spec->envp[count] != NULL) {
        count++;
    }
    const char **all = coordi_alloc((count + 3) * sizeof *all);
    if (all == NULL) {
        return NULL;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!has_name(spec->envp[i], "COORD_LIFELINE_FD") &&
            !has_name(spec->envp[i], "COORD_PARENT_PID")) {
            all[kept++] = spec->envp[i];
        }
    }
    all[kept++] = "COORD_LIFELINE_FD=3";
    all[kept++] = parent;
    all[kept] = NULL; /* when parent is NULL there are two */
    return all;
}

static int spawn(const coordi_process_spec *spec, const pipes *p, const char **envp,
                 pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t how;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc != 0) {
        return rc;
    }
    rc = posix_spawnattr_init(&how);
    if (rc == 0) {
        rc = set_actions(&actions, p, spec->cwd);
        rc = rc != 0 ? rc : set_attributes(&how);
        if (rc == 0) { /* posix_spawn takes char *const[] and changes nothing */
            rc = posix_spawnp(ret, spec->argv[0], &actions, &how,
                              (char *const *)(uintptr_t)spec->argv,
                              (char *const *)(uintptr_t)envp);
        }
        (void)posix_spawnattr_destroy(&how);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static coord_status start(coordi_process *process, const coordi_process_spec *spec,
                          pipes *p, coord_error *err)
{
    /* A child that asks for a signal at our death gets it when the thread that started it
     * ends; so it is told who we are only if that thread lives as long as the loop. */
    char parent[48];
    (void)snprintf(parent, sizeof parent, "COORD_PARENT_PID=%ld", (long)getpid());
    const char **envp =
        environment_of(spec, process->loop->base.own_thread ? parent : NULL);
    if (envp == NULL) {
        return coordi_fail_nomem(err, "process");
    }
    const int os_errno = spawn(spec, p, envp, &process->pid);
    coordi_free(envp);
    if (os_errno != 0 && spec->cwd != NULL) {
        return coordi_fail_errno(err, os_errno, "start '%.100s' in '%.100s'",
                                 spec->argv[0], spec->cwd);
    }
    if (os_errno != 0) {
        return coordi_fail_errno(err, os_errno, "start '%.200s'", spec->argv[0]);
    }
    (void)close(p->out[1]);
    (void)close(p->err[1]);
    (void)close(p->life[0]);
    process->streams[0].fd = p->out[0];
    process->streams[1].fd = p->err[0];
    process->lifeline = p->life[1];
    return COORD_OK;
}

/* The child runs: from here on what fails is undone by destroying the process. */
static int watch_all(coordi_process *process)
{
    process->pid_fd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    int os_errno = 0;
    if (process->pid_fd >= 0) {
        os_errno = coordi_real_watch(process->loop, process->pid_fd, EPOLLIN,
                                     &process->pid_watch);
    } else if (errno == ESRCH) {
        note_lost(process); /* that was quick; the streams' ends will tell it */
    } else {
        os_errno = errno;
    }
    for (int i = 0; i < STREAMS && os_errno == 0; i++) {
        stream *s = &process->streams[i];
        os_errno = coordi_real_watch(process->loop, s->fd, EPOLLIN, &s->watch);
    }
    return os_errno;
}

coord_status coordi_real_process_start(coord_loop *loop, const coordi_process_spec *spec,
                                       coordi_process **ret, coord_error *err)
{
    coordi_process *process = coordi_zalloc(sizeof *process);
    if (process == NULL) {
        return coordi_fail_nomem(err, "process");
    }
    process->loop = coordi_real(loop);
    process->pid_fd = -1;
    process->lifeline = -1;
    process->pid_watch.ready = leader_gone;
    process->grace.fire = grace_over;
    process->on_output = spec->on_output;
    process->on_exit = spec->on_exit;
    process->arg = spec->arg;
    for (int i = 0; i < STREAMS; i++) {
        process->streams[i] = (stream){{stream_ready}, process, i + 1, -1};
    }
    pipes p;
    int os_errno = pipes_open(&p);
    if (os_errno != 0) {
        coordi_free(process);
        return coordi_fail_errno(err, os_errno, "start '%.200s': pipe", spec->argv[0]);
    }
    coord_status rc = start(process, spec, &p, err);
    if (rc != COORD_OK) {
        pipes_close(&p);
        coordi_free(process);
        return rc;
    }
    os_errno = watch_all(process);
    if (os_errno != 0) {
        coordi_real_process_destroy(process);
        return coordi_fail_errno(err, os_errno, "watch '%.200s'", spec->argv[0]);
    }
    *ret = process;
    return COORD_OK;
}

/* ---- ending ---- */

int64_t coordi_real_process_id(const coordi_process *process)
{
    return process->pid;
}

void coordi_real_process_signal(coordi_process *process, int signal_number)
{
    if (!process->lost) {
        (void)kill(-process->pid, signal_number);
    }
}

/* A stream that has ended is reported whatever is asked for, so it is reported once. */
void coordi_real_process_pause(coordi_process *process, bool paused)
{
    process->paused = paused;
    for (int i = 0; i < STREAMS; i++) {
        stream *s = &process->streams[i];
        if (s->fd >= 0) { /* can't fail: it is watched */
            (void)coordi_real_rewatch(process->loop, s->fd, paused ? EPOLLET : EPOLLIN,
                                      &s->watch);
        }
    }
}

/* True when the leader is reaped, or nobody of ours. */
static bool reap(coordi_process *process)
{
    if (process->lost) {
        return true;
    }
    siginfo_t info = {0};
    const int rc = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG);
    return rc != 0 || info.si_pid != 0;
}

static void process_free(coordi_process *process)
{
    if (process->pid_fd >= 0) {
        coordi_real_unwatch(process->loop, process->pid_fd, &process->pid_watch);
        (void)close(process->pid_fd);
    }
    coordi_list_remove(&process->link);
    coordi_free(process);
}

static void orphan_gone(coordi_watch *watch, uint32_t events)
{
    (void)events;
    coordi_process *process = COORDI_ITEM(watch, coordi_process, pid_watch);
    if (reap(process)) {
        process_free(process);
    }
}

void coordi_real_process_destroy(coordi_process *process)
{
    if (process == NULL) {
        return;
    }
    if (process->gone != NULL) {
        *process->gone = true;
    }
    coordi_real_process_signal(process, SIGKILL);
    for (int i = 0; i < STREAMS; i++) {
        stream_close(&process->streams[i]);
    }
    if (process->lifeline >= 0) {
        (void)close(process->lifeline);
    }
    coordi_heap_cancel(&process->loop->timers, &process->grace);
    if (reap(process)) {
        process_free(process);
        return;
    }
    process->pid_watch.ready = orphan_gone;
    coordi_list_append(&process->loop->orphans, &process->link);
}

/* Orphans have been killed, so they go in no time; one that hangs in the kernel stays a
 * zombie until this process ends. */
void coordi_real_process_end(coordi_real_loop *loop)
{
    while (!coordi_list_empty(&loop->orphans)) {
        coordi_process *process = COORDI_ITEM(loop->orphans.next, coordi_process, link);
        struct pollfd gone = {.fd = process->pid_fd, .events = POLLIN};
        if (process->pid_fd >= 0) {
            (void)poll(&gone, 1, REAP_MS);
        }
        (void)reap(process);
        process_free(process);
    }
}
