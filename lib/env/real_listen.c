#include "env/real_server.h"

#include "base/error.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

static int listen_on(const struct addrinfo *where, int *ret_errno)
{
    int fd = socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        *ret_errno = errno;
        return -1;
    }
    const int on = 1;
    const int off = 0;
    /* A server that restarts must not wait for old connections to be forgotten. */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (where->ai_family == AF_INET6) {
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (bind(fd, where->ai_addr, where->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
        *ret_errno = errno;
        (void)close(fd);
        return -1;
    }
    return fd;
}

static uint16_t port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } local = {.v6 = {0}};
    socklen_t len = sizeof local;
    if (getsockname(fd, &local.any, &len) != 0) {
        return 0;
    }
    return ntohs(local.any.sa_family == AF_INET6 ? local.v6.sin6_port
                                                 : local.v4.sin_port);
}

/* All interfaces: IPv6, which takes IPv4 too, or IPv4 alone where there is no IPv6. */
static int listen_any(uint16_t port, int *ret_errno)
{
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    const struct addrinfo both[] = {
        {.ai_family = AF_INET6,
         .ai_addr = (struct sockaddr *)&any6,
         .ai_addrlen = sizeof any6},
        {.ai_family = AF_INET,
         .ai_addr = (struct sockaddr *)&any4,
         .ai_addrlen = sizeof any4},
    };
    int fd = listen_on(&both[0], ret_errno);
    if (fd < 0 && (*ret_errno == EAFNOSUPPORT || *ret_errno == EADDRNOTAVAIL)) {
        fd = listen_on(&both[1], ret_errno);
    }
    return fd;
}

coord_status coordi_listen(const char *host, uint16_t port, int *ret_fd,
                           uint16_t *ret_port, coord_error *err)
{
    char where[COORDI_HOST_PORT_SIZE];
    coordi_address_print(host[0] == '\0' ? "*" : host, port, where);
    int os_errno = 0;
    int fd = -1;
    if (host[0] == '\0') {
        fd = listen_any(port, &os_errno);
    } else {
        char service[8];
        (void)snprintf(service, sizeof service, "%u", (unsigned)port);
        const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                       .ai_socktype = SOCK_STREAM};
        struct addrinfo *list = NULL;
        const int code = getaddrinfo(host, service, &hints, &list);
        if (code != 0) {
            return coordi_fail(err, COORD_ERR_IO, "listen on %s: %s", where,
                               gai_strerror(code));
        }
        for (struct addrinfo *at = list; at != NULL && fd < 0; at = at->ai_next) {
            fd = listen_on(at, &os_errno);
        }
        freeaddrinfo(list);
    }
    if (fd < 0) {
        return coordi_fail_errno(err, os_errno, "listen on %s", where);
    }
    *ret_fd = fd;
    *ret_port = port_of(fd);
    return COORD_OK;
}
