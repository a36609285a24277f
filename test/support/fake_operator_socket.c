#include "base/list.h"
#include "support/fake_operator_inside.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Over plain sockets, as a server in Go writes its answers. */

enum { CONNECTIONS = 64, PIECE = 65536, HEAD = 1024 };

typedef struct connection {
    int fd; /* -1: free */
    bool silent;
    char *got;
    size_t len;
    fake_reply reply; /* with due_ms: it is to be sent then */
    int64_t due_ms;   /* 0: nothing is */
} connection;

typedef struct socket_front {
    fake_front face;
    fake_operator *f;
    uint16_t port;
    int listen_fd;
    bool listening; /* else its port is kept, and refuses connections */
    int wake[2];
    pthread_t thread;
    pthread_mutex_t lock; /* guards listening, stopping */
    bool stopping;
    connection connections[CONNECTIONS];
} socket_front;

static socket_front *front_of(fake_front *face)
{
    return COORDI_ITEM(face, socket_front, face);
}

static int64_t now_ms(fake_front *face)
{
    struct timespec now;
    (void)face;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- answers ---- */

static void drop(connection *c)
{
    (void)close(c->fd);
    free(c->got);
    coordi_buf_done(&c->reply.body);
    *c = (connection){.fd = -1};
}

static void send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return; /* the other end has gone */
        }
        bytes += sent;
        len -= (size_t)sent;
    }
}

static void send_reply(connection *c)
{
    fake_reply *reply = &c->reply;
    char head[HEAD];
    const int len =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d -\r\nContent-Type: %s\r\nConten-Type: application/json\r\n"
                 "%s%s%sContent-Length: %zu\r\n\r\n",
                 reply->status, reply->type, reply->location == NULL ? "" : "Location: ",
                 reply->location == NULL ? "" : reply->location,
                 reply->location == NULL ? "" : "\r\n", reply->body.len);
    send_all(c->fd, head, (size_t)len);
    send_all(c->fd, reply->body.ptr, reply->body.len);
    coordi_buf_done(&reply->body);
    *reply = (fake_reply){0};
    c->due_ms = 0;
}

/* The length of the request at the start of the text, or 0 while it is not whole; and
 * where its body begins. */
static size_t whole_request(const char *text, size_t len, size_t *body_at)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    size_t body = 0;
    if (end == NULL) {
        return 0;
    }
    for (const char *at = text; at < end;) {
        if (strncasecmp(at, "Content-Length:", 15) == 0) {
            body = strtoul(at + 15, NULL, 10);
        }
        const char *next = memmem(at, (size_t)(end + 2 - at), "\r\n", 2);
        at = next == NULL ? end : next + 2;
    }
    *body_at = (size_t)(end - text) + 4;
    return len >= *body_at + body ? *body_at + body : 0;
}

static void answer(socket_front *front, connection *c, size_t whole, size_t body_at)
{
    char method[16];
    char target[2048];
    fake_must(sscanf(c->got, "%15s %2047s", method, target) == 2, "no request line");
    fake_operator_answer(front->f, method, target,
                         (coord_text){c->got + body_at, whole - body_at}, &c->reply);
    memmove(c->got, c->got + whole, c->len - whole);
    c->len -= whole;
    if (c->reply.broken) {
        drop(c);
    } else if (c->reply.silent) {
        c->silent = true;
    } else if (c->reply.delay_ms > 0) {
        c->due_ms = now_ms(&front->face) + c->reply.delay_ms;
    } else {
        send_reply(c);
    }
}

static void serve_waiting(socket_front *front, connection *c)
{
    while (c->fd >= 0 && !c->silent && c->due_ms == 0) {
        size_t body_at;
        const size_t whole = c->len == 0 ? 0 : whole_request(c->got, c->len, &body_at);
        if (whole == 0) {
            return;
        }
        answer(front, c, whole, body_at);
    }
}

static void read_more(socket_front *front, connection *c)
{
    c->got = realloc(c->got, c->len + PIECE + 1);
    fake_must(c->got != NULL, "realloc");
    const ssize_t len = recv(c->fd, c->got + c->len, PIECE, 0);
    if (len <= 0) {
        drop(c);
        return;
    }
    c->len += (size_t)len;
    c->got[c->len] = '\0';
    serve_waiting(front, c);
}

/* ---- the thread ---- */

static void take(socket_front *front)
{
    (void)pthread_mutex_lock(&front->lock);
    const int fd =
        front->listening ? accept4(front->listen_fd, NULL, NULL, SOCK_CLOEXEC) : -1;
    (void)pthread_mutex_unlock(&front->lock);
    if (fd < 0) {
        return;
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (front->connections[i].fd < 0) {
            front->connections[i].fd = fd;
            return;
        }
    }
    fake_must(false, "too many connections");
}

static void send_due(socket_front *front)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        connection *c = &front->connections[i];
        if (c->fd >= 0 && c->due_ms > 0 && c->due_ms <= now_ms(&front->face)) {
            send_reply(c);
            serve_waiting(front, c);
        }
    }
}

/* Until the first answer is due; -1: none is. */
static int time_to_due(socket_front *front)
{
    int64_t first = -1;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        const connection *c = &front->connections[i];
        if (c->fd >= 0 && c->due_ms > 0 && (first < 0 || c->due_ms < first)) {
            first = c->due_ms;
        }
    }
    const int64_t left = first < 0 ? -1 : first - now_ms(&front->face);
    return first < 0 ? -1 : left < 0 ? 0 : (int)left;
}

/* A process that has gone leaves no connections. */
static void drop_all(socket_front *front)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (front->connections[i].fd >= 0) {
            drop(&front->connections[i]);
        }
    }
}

static void *serve(void *arg)
{
    socket_front *front = arg;
    for (;;) {
        struct pollfd fds[CONNECTIONS + 2];
        connection *who[CONNECTIONS + 2];
        nfds_t count = 2;
        char byte[64];
        (void)pthread_mutex_lock(&front->lock);
        const bool stopping = front->stopping;
        const bool listening = front->listening;
        if (stopping || !listening) {
            drop_all(front);
        }
        fds[0] = (struct pollfd){.fd = front->wake[0], .events = POLLIN};
        fds[1] =
            (struct pollfd){.fd = listening ? front->listen_fd : -1, .events = POLLIN};
        (void)pthread_mutex_unlock(&front->lock);
        if (stopping) {
            return NULL;
        }
        for (size_t i = 0; i < CONNECTIONS; i++) {
            connection *c = &front->connections[i];
            if (c->fd >= 0) {
                who[count] = c;
                fds[count++] = (struct pollfd){.fd = c->fd, .events = POLLIN};
            }
        }
        (void)poll(fds, count, time_to_due(front));
        if (fds[0].revents != 0) {
            (void)!read(front->wake[0], byte, sizeof byte);
            continue; /* what it listens on may have changed */
        }
        send_due(front);
        for (nfds_t i = 2; i < count; i++) {
            if (fds[i].revents != 0 && who[i]->fd == fds[i].fd) {
                read_more(front, who[i]);
            }
        }
        if (fds[1].revents != 0) {
            take(front);
        }
    }
}

/* ---- the front ---- */

static int open_listener(uint16_t *port)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t len = sizeof where;
    const int yes = 1;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fake_must(fd >= 0 &&
                  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                  bind(fd, (struct sockaddr *)&where, sizeof where) == 0 &&
                  listen(fd, CONNECTIONS) == 0 &&
                  getsockname(fd, (struct sockaddr *)&where, &len) == 0 &&
                  fcntl(fd, F_SETFL, O_NONBLOCK) == 0,
              "it can't listen");
    *port = ntohs(where.sin_port);
    return fd;
}

static void wake(socket_front *front)
{
    fake_must(write(front->wake[1], "", 1) == 1, "write");
}

static void set_listening(fake_front *face, bool listening)
{
    socket_front *front = front_of(face);
    (void)pthread_mutex_lock(&front->lock);
    if (listening && !front->listening) {
        fake_must(listen(front->listen_fd, CONNECTIONS) == 0, "it can't listen again");
    } else if (!listening && front->listening) { /* Linux keeps the port bound */
        fake_must(shutdown(front->listen_fd, SHUT_RD) == 0, "shutdown");
    }
    front->listening = listening;
    (void)pthread_mutex_unlock(&front->lock);
    wake(front);
}

static uint16_t port_of(fake_front *face)
{
    return front_of(face)->port;
}

static void stop(fake_front *face)
{
    socket_front *front = front_of(face);
    (void)pthread_mutex_lock(&front->lock);
    front->stopping = true;
    (void)pthread_mutex_unlock(&front->lock);
    wake(front);
    (void)pthread_join(front->thread, NULL);
    (void)close(front->listen_fd);
    (void)close(front->wake[0]);
    (void)close(front->wake[1]);
    (void)pthread_mutex_destroy(&front->lock);
    free(front);
}

fake_operator *fake_operator_on_sockets(const fake_operator_spec *spec)
{
    static const fake_operator_spec USUAL = {0};
    socket_front *front = calloc(1, sizeof *front);
    fake_must(front != NULL, "calloc");
    spec = spec == NULL ? &USUAL : spec;
    front->face = (fake_front){now_ms, set_listening, port_of, stop};
    front->f = fake_operator_new(spec);
    front->f->front = &front->face;
    front->port = spec->port;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        front->connections[i].fd = -1;
    }
    fake_must(pipe2(front->wake, O_CLOEXEC) == 0 &&
                  pthread_mutex_init(&front->lock, NULL) == 0,
              "no pipe");
    front->listen_fd = open_listener(&front->port);
    front->listening = true;
    fake_must(pthread_create(&front->thread, NULL, serve, front) == 0, "no thread");
    return front->f;
}
