#include "support/raw_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS = 256, REQUESTS = 256, PATIENCE_MS = 20000 };

typedef struct connection {
    int fd; /* -1: free */
    bool silent;
    bool drop;
    char *got;
    size_t len;
} connection;

struct raw_server {
    const raw_step *steps;
    size_t step_count;
    int listen_fd;
    int stop[2];
    uint16_t port;
    pthread_t thread;
    connection connections[CONNECTIONS];

    pthread_mutex_t lock; /* guards the rest */
    size_t request_count;
    size_t connection_count;
    char *requests[REQUESTS];
};

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        abort();
    }
}

static void set_linger(int fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};
    must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now) == 0, "SO_LINGER");
}

void raw_reset(int fd)
{
    set_linger(fd);
    (void)close(fd);
}

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return; /* the other end has gone: that is its right */
        }
        bytes += sent;
        len -= (size_t)sent;
    }
}

/* ---- server ---- */

/* The length of the request at the start of the text, or 0 while it is not whole. */
static size_t whole_request(const char *text, size_t len)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    size_t head = (size_t)(end - text) + 4;
    size_t body = 0;
    for (const char *at = text; at < end;) {
        if (strncasecmp(at, "Content-Length:", 15) == 0) {
            body = strtoul(at + 15, NULL, 10);
        }
        const char *next = memmem(at, (size_t)(end + 2 - at), "\r\n", 2);
        at = next == NULL ? end : next + 2;
    }
    return len >= head + body ? head + body : 0;
}

static void note(raw_server *server, const char *text, size_t len, raw_step *ret)
{
    char *copy = strndup(text, len);
    must(copy != NULL, "strndup");
    (void)pthread_mutex_lock(&server->lock);
    const size_t n = server->request_count++;
    must(n < REQUESTS, "too many requests");
    server->requests[n] = copy;
    (void)pthread_mutex_unlock(&server->lock);
    static const raw_step DEFAULT = {
        .send = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", .then = RAW_KEEP};
    *ret = n < server->step_count ? server->steps[n] : DEFAULT;
}

static void drop(connection *c)
{
    (void)close(c->fd);
    free(c->got);
    *c = (connection){.fd = -1};
}

static void answer(raw_server *server, connection *c, size_t len)
{
    raw_step step;
    note(server, c->got, len, &step);
    memmove(c->got, c->got + len, c->len - len);
    c->len -= len;
    if (step.send != NULL) {
        send_all(c->fd, step.send, step.len == 0 ? strlen(step.send) : step.len);
    }
    if (step.then == RAW_RESET) {
        set_linger(c->fd);
    }
    if (step.then == RAW_CLOSE || step.then == RAW_RESET) {
        drop(c);
        return;
    }
    c->silent = step.then == RAW_SILENT;
    c->drop = step.then == RAW_DROP;
}

static void serve(raw_server *server, connection *c)
{
    c->got = realloc(c->got, c->len + 65536);
    must(c->got != NULL, "realloc");
    ssize_t len = recv(c->fd, c->got + c->len, 65536, 0);
    if (len <= 0) {
        drop(c);
        return;
    }
    c->len += (size_t)len;
    for (size_t whole = whole_request(c->got, c->len); whole > 0 && !c->silent;
         whole = c->fd < 0 ? 0 : whole_request(c->got, c->len)) {
        answer(server, c, whole);
        if (c->fd < 0) {
            return;
        }
    }
}

static void take(raw_server *server)
{
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (server->connections[i].fd < 0) {
            server->connections[i].fd = fd;
            (void)pthread_mutex_lock(&server->lock);
            server->connection_count++;
            (void)pthread_mutex_unlock(&server->lock);
            return;
        }
    }
    must(false, "too many connections");
}

static void *server_main(void *arg)
{
    raw_server *server = arg;
    for (;;) {
        struct pollfd fds[CONNECTIONS + 2];
        connection *who[CONNECTIONS];
        nfds_t count = 2;
        bool dropping = false;
        fds[0] = (struct pollfd){.fd = server->stop[0], .events = POLLIN};
        fds[1] = (struct pollfd){.fd = server->listen_fd, .events = POLLIN};
        for (size_t i = 0; i < CONNECTIONS; i++) {
            connection *c = &server->connections[i];
            if (c->fd >= 0 && !c->silent) {
                dropping = dropping || c->drop;
                who[count - 2] = c;
                fds[count++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
            }
        }
        int ready = poll(fds, count, dropping ? 20 : -1);
        if (fds[0].revents != 0) {
            return NULL;
        }
        if (fds[1].revents != 0) {
            take(server);
        }
        for (nfds_t i = 2; i < count; i++) {
            if (fds[i].revents != 0) {
                serve(server, who[i - 2]);
            } else if (ready == 0 && who[i - 2]->drop) {
                drop(who[i - 2]);
            }
        }
    }
}

raw_server *raw_server_start(const raw_step *steps, size_t count)
{
    raw_server *server = calloc(1, sizeof *server);
    must(server != NULL, "calloc");
    server->steps = steps;
    server->step_count = count;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        server->connections[i].fd = -1;
    }
    server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in where = {.sin_family = AF_INET};
    socklen_t len = sizeof where;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(server->listen_fd >= 0 &&
             bind(server->listen_fd, (struct sockaddr *)&where, sizeof where) == 0 &&
             listen(server->listen_fd, 64) == 0 &&
             getsockname(server->listen_fd, (struct sockaddr *)&where, &len) == 0 &&
             pipe2(server->stop, O_CLOEXEC) == 0,
         "raw server");
    server->port = ntohs(where.sin_port);
    must(pthread_mutex_init(&server->lock, NULL) == 0, "mutex");
    must(pthread_create(&server->thread, NULL, server_main, server) == 0, "thread");
    return server;
}

uint16_t raw_server_port(const raw_server *server)
{
    return server->port;
}

void raw_server_stop(raw_server *server)
{
    must(write(server->stop[1], "x", 1) == 1, "write");
    (void)pthread_join(server->thread, NULL);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (server->connections[i].fd >= 0) {
            drop(&server->connections[i]);
        }
    }
    for (size_t i = 0; i < server->request_count; i++) {
        free(server->requests[i]);
    }
    (void)close(server->listen_fd);
    (void)close(server->stop[0]);
    (void)close(server->stop[1]);
    (void)pthread_mutex_destroy(&server->lock);
    free(server);
}

uint16_t raw_free_port(void)
{
    raw_server *server = raw_server_start(NULL, 0);
    uint16_t port = raw_server_port(server);
    raw_server_stop(server);
    return port;
}

size_t raw_server_requests(raw_server *server)
{
    (void)pthread_mutex_lock(&server->lock);
    size_t count = server->request_count;
    (void)pthread_mutex_unlock(&server->lock);
    return count;
}

size_t raw_server_connections(raw_server *server)
{
    (void)pthread_mutex_lock(&server->lock);
    size_t count = server->connection_count;
    (void)pthread_mutex_unlock(&server->lock);
    return count;
}

const char *raw_server_request(raw_server *server, size_t n)
{
    (void)pthread_mutex_lock(&server->lock);
    const char *text = n < server->request_count ? server->requests[n] : NULL;
    (void)pthread_mutex_unlock(&server->lock);
    return text;
}

/* ---- client ---- */

int raw_connect(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(port)};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(fd >= 0 && connect(fd, (struct sockaddr *)&where, sizeof where) == 0, "connect");
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0,
         "SO_RCVTIMEO");
    return fd;
}

void raw_send(int fd, const void *bytes, size_t len)
{
    send_all(fd, bytes, len);
}

void raw_sends(int fd, const char *text)
{
    send_all(fd, text, strlen(text));
}

bool raw_read_answer(int fd, char *out, size_t size, bool head_only)
{
    size_t len = 0;
    for (;;) {
        out[len] = '\0';
        const char *end = strstr(out, "\r\n\r\n");
        if (end != NULL && (head_only || whole_request(out, len) > 0)) {
            return true;
        }
        if (len + 1 == size) {
            return false;
        }
        /* byte by byte: what follows belongs to the next answer */
        ssize_t got = recv(fd, out + len, 1, 0);
        if (got <= 0) {
            return false;
        }
        len += (size_t)got;
    }
}

bool raw_sees_end(int fd)
{
    char bytes[4096];
    for (;;) {
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) {
            return true;
        }
        if (got < 0) {
            return false;
        }
    }
}
