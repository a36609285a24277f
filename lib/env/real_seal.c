#include "env/real_client.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* libcurl (7.88 at least) makes a socket pair for each multi handle and does not mark it
 * close-on-exec, so that programs which the host starts would inherit it. There is no way
 * to ask for its descriptors. The kernel hands out the lowest free numbers, so we look
 * which those are, and after the handle is made we prove that they are the pair: waking
 * the handle up puts a byte into one end, and nothing else in the process could have done
 * that just then. What can't be proved, as when another thread opened something in
 * between or with a libcurl that does it right, is left alone. */

static bool lowest_free(int fds[2])
{
    fds[0] = eventfd(0, EFD_CLOEXEC);
    fds[1] = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    return fds[0] >= 0 && fds[1] >= 0;
}

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

/* Bytes that wait to be read from one end, and bytes that the other end has under way. */
static bool holds(const int fds[2], bool something)
{
    int in = -1;
    int out = -1;
    return ioctl(fds[0], FIONREAD, &in) == 0 && ioctl(fds[1], SIOCOUTQ, &out) == 0 &&
           (in > 0) == something && (out > 0) == something;
}

CURLM *coordi_multi_init(void)
{
    int fds[2];
    const bool guessed = lowest_free(fds);
    CURLM *multi = curl_multi_init();
    if (multi == NULL || !guessed || !is_unmarked_unix_stream(fds[0]) ||
        !is_unmarked_unix_stream(fds[1]) || !holds(fds, false)) {
        return multi;
    }
    (void)curl_multi_wakeup(multi);
    if (holds(fds, true)) {
        (void)fcntl(fds[0], F_SETFD, FD_CLOEXEC);
        (void)fcntl(fds[1], F_SETFD, FD_CLOEXEC);
    }
    (void)curl_multi_poll(multi, NULL, 0, 0, NULL); /* takes the byte out again */
    return multi;
}
