#include "children.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { KILL_MS = 10000, PORTS_END = 32700 };

/* ---- life ---- */

bool soak_spawn(soak_child *child, const char *folder, const char *log, char *const *argv)
{
    char path[SOAK_PATH];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t polite; /* blocked from the start: what tells it to end is never lost */
    (void)snprintf(path, sizeof path, "%s/%s", folder, log);
    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawnattr_init(&attributes) != 0) {
        return false;
    }
    (void)sigemptyset(&polite);
    (void)sigaddset(&polite, SIGTERM);
    (void)sigaddset(&polite, SIGINT);
    bool good =
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&actions, 1, path, O_WRONLY | O_CREAT | O_APPEND,
                                         0600) == 0 &&
        posix_spawn_file_actions_adddup2(&actions, 1, 2) == 0 &&
        posix_spawnattr_setsigmask(&attributes, &polite) == 0 &&
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK) == 0 &&
        posix_spawn(&child->pid, "/proc/self/exe", &actions, &attributes, argv,
                    environ) == 0;
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (!good) {
        child->pid = 0;
        return false;
    }
    child->pid_fd = pidfd_open(child->pid, 0);
    child->since_ms = soak_now_ms();
    child->again_ms = 0;
    child->go_on_ms = 0;
    child->starts++;
    return child->pid_fd >= 0;
}

int soak_await(soak_child *child, int64_t limit_ms)
{
    struct pollfd ended = {child->pid_fd, POLLIN, 0};
    siginfo_t info = {0};
    int64_t until = soak_now_ms() + limit_ms;
    int ready;
    do {
        int64_t left = until - soak_now_ms();
        ready = poll(&ended, 1, left > 0 ? (int)left : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0 || waitid(P_PIDFD, (id_t)child->pid_fd, &info, WEXITED) != 0) {
        return -1;
    }
    (void)close(child->pid_fd);
    child->pid = 0;
    child->since_ms = soak_now_ms();
    child->go_on_ms = 0;
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

void soak_kill(soak_child *child)
{
    if (child->pid == 0) {
        return;
    }
    (void)kill(child->pid, SIGKILL);
    if (soak_await(child, KILL_MS) < 0) {
        (void)fprintf(stderr, "soak: %s (%d) does not die\n", child->name,
                      (int)child->pid);
        exit(EXIT_FAILURE);
    }
    child->kills++;
}

/* ---- sizes ---- */

static long read_field(pid_t pid, const char *field)
{
    char path[64];
    char line[256];
    long value = -1;
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && value < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            value = strtol(line + strlen(field), NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return value;
}

bool soak_measure(const soak_child *child, soak_size *ret)
{
    char path[64];
    if (child->pid == 0) {
        return false;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)child->pid);
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return false;
    }
    ret->fds = 0;
    for (struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        ret->fds += at->d_name[0] != '.';
    }
    (void)closedir(dir);
    ret->rss_kb = read_field(child->pid, "VmRSS:");
    ret->threads = read_field(child->pid, "Threads:");
    return ret->rss_kb > 0 && ret->threads > 0;
}

int soak_find_port(int from)
{
    for (int port = from; port < PORTS_END; port++) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)port),
                                      .sin_addr = {htonl(INADDR_LOOPBACK)}};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool free_now =
            fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
        if (fd >= 0) {
            (void)close(fd);
        }
        if (free_now) {
            return port;
        }
    }
    (void)fprintf(stderr, "soak: no port is free from %d on\n", from);
    exit(EXIT_FAILURE);
}
