#include "env/real_client.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* libcurl (7.88 at least) makes a socket pair for each multi handle and does not mark it
 * close-on-exec, so that programs which the host starts would inherit it. There is no way
 * to ask for its descriptors. So all that may be them are looked at, before and after the
 * handle is woken up, which puts a byte into one end: the two that change, and change
 * back when the byte is taken out, are the pair. If others change just then, we look
 * again, and in the end leave them alone. */

enum { CANDIDATES = 256, LOOKS = 8 };

typedef struct candidates {
    int fds[CANDIDATES];
    int count;
} candidates;

static bool is_unmarked_unix_stream(int fd)
{
    int domain = 0;
    int type = 0;
    socklen_t size = sizeof(int);
    const int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
           domain == AF_UNIX && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           type == SOCK_STREAM;
}

/* Bytes that wait to be read here, and bytes from here that the other end has not read.
 */
static bool reads(int fd, bool *in, bool *out)
{
    int waiting = 0;
    int under_way = 0;
    if (ioctl(fd, FIONREAD, &waiting) != 0 || ioctl(fd, SIOCOUTQ, &under_way) != 0) {
        return false;
    }
    *in = waiting > 0;
    *out = under_way > 0;
    return true;
}

static bool is_quiet(int fd)
{
    bool in = true;
    bool out = true;
    return reads(fd, &in, &out) && !in && !out;
}

static void find_candidates(candidates *found)
{
    found->count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL) {
        return;
    }
    for (const struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        const int fd = at->d_name[0] == '.' ? -1 : (int)strtol(at->d_name, NULL, 10);
        if (fd >= 0 && found->count < CANDIDATES && is_unmarked_unix_stream(fd) &&
            is_quiet(fd)) {
            found->fds[found->count++] = fd;
        }
    }
    (void)closedir(dir);
}

/* Exactly one candidate has got a byte, and exactly one has sent it. */
static bool find_pair(const candidates *all, int *reader, int *writer)
{
    int readers = 0;
    int writers = 0;
    for (int i = 0; i < all->count; i++) {
        bool in = false;
        bool out = false;
        if (reads(all->fds[i], &in, &out) && in) {
            *reader = all->fds[i];
            readers++;
        } else if (out) {
            *writer = all->fds[i];
            writers++;
        }
    }
    return readers == 1 && writers == 1;
}

static bool seal(CURLM *multi)
{
    candidates all;
    int reader = -1;
    int writer = -1;
    find_candidates(&all);
    if (all.count == 0) {
        return true; /* another libcurl, which does it right */
    }
    (void)curl_multi_wakeup(multi);
    const bool found = find_pair(&all, &reader, &writer);
    (void)curl_multi_poll(multi, NULL, 0, 0, NULL); /* takes the byte out again */
    if (!found || !is_quiet(reader) || !is_quiet(writer)) {
        return false;
    }
    (void)fcntl(reader, F_SETFD, FD_CLOEXEC);
    (void)fcntl(writer, F_SETFD, FD_CLOEXEC);
    return true;
}

CURLM *coordi_multi_init(void)
{
    coordi_process_lock(); /* loops of one process would disturb each other here */
    CURLM *multi = curl_multi_init();
    for (int i = 0; multi != NULL && i < LOOKS && !seal(multi); i++) {
    }
    coordi_process_unlock();
    return multi;
}
