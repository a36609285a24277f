#include "env/real_client.h"

#include "base/alloc.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* The sockets of libcurl's connections, from opening to closing.
 *
 *   wanted  what libcurl wants to hear of the socket now; 0 between two transfers
 *   armed   what the epoll set has; 0: it does not have the socket
 *
 * libcurl gives a socket up after each transfer and takes it again with the next. To save
 * two system calls a request the epoll set keeps it meanwhile; only when something
 * happens on a socket that nobody wants, mostly the peer closing it, is it taken out.
 *
 * A socket must be out of the epoll set before it is closed: when the host has forked,
 * the child still holds it, and the set would go on reporting it. */

struct coordi_line {
    coordi_watch watch;
    coordi_real_loop *loop;
    coordi_line_fn *happened;
    void *arg;
    int fd;
    uint32_t wanted;
    uint32_t armed;
};

static coordi_line *line_of(const coordi_real_loop *loop, int fd)
{
    return fd >= 0 && (size_t)fd < loop->line_count ? loop->lines[fd] : NULL;
}

static bool make_room(coordi_real_loop *loop, int fd)
{
    if ((size_t)fd < loop->line_count) {
        return true;
    }
    const size_t count = ((size_t)fd + 1) * 2;
    coordi_line **more = coordi_realloc(loop->lines, count * sizeof(coordi_line *));
    if (more == NULL) {
        return false;
    }
    for (size_t i = loop->line_count; i < count; i++) {
        more[i] = NULL;
    }
    loop->lines = more;
    loop->line_count = count;
    return true;
}

static void arm(coordi_line *line, uint32_t events)
{
    int os_errno = 0;
    if (events == line->armed) {
        return;
    }
    if (events == 0) {
        coordi_real_unwatch(line->loop, line->fd, &line->watch);
    } else if (line->armed == 0) {
        os_errno = coordi_real_watch(line->loop, line->fd, events, &line->watch);
    } else {
        os_errno = coordi_real_rewatch(line->loop, line->fd, events, &line->watch);
    }
    line->armed = os_errno == 0 ? events : 0;
}

static void line_ready(coordi_watch *watch, uint32_t events)
{
    coordi_line *line = COORDI_ITEM(watch, coordi_line, watch);
    if (line->wanted == 0) {
        arm(line, 0);
        return;
    }
    int what = (events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0;
    what |= (events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0;
    what |= (events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0;
    line->happened(line->fd, what, line->arg);
}

static void line_free(coordi_real_loop *loop, int fd)
{
    coordi_line *line = line_of(loop, fd);
    if (line != NULL) {
        arm(line, 0);
        loop->lines[fd] = NULL;
        coordi_free(line);
    }
}

int coordi_line_open(coordi_real_loop *loop, const struct curl_sockaddr *address,
                     coordi_line_fn *happened, void *arg, int *ret_errno)
{
    coordi_line *line = coordi_zalloc(sizeof *line);
    int fd = line == NULL ? -1
                          : socket(address->family,
                                   address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                                   address->protocol);
    if (fd < 0) {
        *ret_errno = line == NULL ? ENOMEM : errno;
        coordi_free(line);
        return -1;
    }
    if (!make_room(loop, fd)) {
        *ret_errno = ENOMEM;
        (void)close(fd);
        coordi_free(line);
        return -1;
    }
    line_free(loop, fd); /* libcurl closed that one without a word */
    line->watch.ready = line_ready;
    line->loop = loop;
    line->happened = happened;
    line->arg = arg;
    line->fd = fd;
    loop->lines[fd] = line;
    return fd;
}

void coordi_line_want(coordi_real_loop *loop, int fd, uint32_t events)
{
    coordi_line *line = line_of(loop, fd);
    if (line != NULL) {
        line->wanted = events;
        if (events != 0) {
            arm(line, events);
        }
    }
}

void coordi_line_close(coordi_real_loop *loop, int fd)
{
    line_free(loop, fd);
    (void)close(fd);
}

void coordi_lines_end(coordi_real_loop *loop)
{
    for (size_t fd = 0; fd < loop->line_count; fd++) {
        line_free(loop, (int)fd);
    }
    coordi_free(loop->lines);
}
