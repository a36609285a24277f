#include "support/werkzeug.h"

#include "support/raw_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Ports of our own choice lie below those that outgoing connections get: a request to a
 * port where nobody listens must not meet itself. */
enum {
    CONNECTIONS_MAX = 256,
    REQUESTS_MAX = 1024,
    PATIENCE_MS = 20000,
    PORT_FIRST = 20000,
    PORTS = 12000
};

typedef struct connection {
    int fd;      /* -1: closed */
    char *bytes; /* all that ever came */
    size_t len;
    size_t size;
    size_t served; /* where the next request begins */
} connection;

/* A request that came. */
typedef struct seen {
    size_t connection;
    size_t begin;
    size_t whole; /* bytes of head and body by what the head says */
    char path[128];
    char *text; /* given out */
} seen;

struct werkzeug {
    werkzeug_kind kind;
    werkzeug_fn *serve;
    void *user;
    int listen_fd;
    uint16_t port;
    int wake[2];
    pthread_t thread;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t news;
    bool listening;
    bool stopping;
    connection connections[CONNECTIONS_MAX];
    size_t connection_count;
    seen seen[REQUESTS_MAX];
    size_t seen_count;
    size_t confused;
};

/* On the server's thread no test can fail. */
static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        abort();
    }
}

static void lock(werkzeug *w)
{
    (void)pthread_mutex_lock(&w->lock);
}

static void unlock(werkzeug *w)
{
    (void)pthread_cond_broadcast(&w->news);
    (void)pthread_mutex_unlock(&w->lock);
}

/* ---- requests ---- */

/* The value of a header in a head that ends at `end`; "" when it is not there. */
static void read_header(const char *head, const char *end, const char *name, char *out,
                        size_t size)
{
    size_t name_len = strlen(name);
    out[0] = '\0';
    for (const char *at = head; at != NULL && at < end;) {
        const char *stop = memmem(at, (size_t)(end - at), "\r\n", 2);
        stop = stop == NULL ? end : stop;
        if (strncasecmp(at, name, name_len) == 0 && at[name_len] == ':') {
            at += name_len + 1;
            at += strspn(at, " ");
            (void)snprintf(out, size, "%.*s", (int)(stop - at), at);
            return;
        }
        at = stop + 2;
    }
}

static size_t announced(const char *head, const char *end)
{
    char number[32];
    read_header(head, end, "Content-Length", number, sizeof number);
    return strtoul(number, NULL, 10);
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

/* ---- answers ---- */

static void send_answer(const werkzeug *w, int fd, const werkzeug_answer *a)
{
    static const char *const SERVER[WERKZEUG_KINDS] = {"2.0.3", "2.1.1", "2.2.2"};
    char head[512];
    char length[48] = "";
    size_t len = strlen(a->body);
    if (!a->endless) {
        (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n", len);
    }
    int head_len =
        snprintf(head, sizeof head,
                 "HTTP/1.%d %d WHATEVER\r\nServer: Werkzeug/%s Python/3.8.10\r\n"
                 "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: %s\r\n%s%s%s\r\n",
                 w->kind == WERKZEUG_2_0 ? 0 : 1, a->status, SERVER[w->kind],
                 a->html ? "text/html; charset=utf-8" : "application/json", length,
                 a->more == NULL ? "" : a->more,
                 w->kind == WERKZEUG_2_2 ? "Connection: close\r\n" : "");
    send_all(fd, head, (size_t)head_len);
    send_all(fd, a->body, a->half ? len / 2 : len);
}

static void drop(werkzeug *w, connection *c)
{
    (void)shutdown(c->fd, SHUT_RDWR);
    (void)close(c->fd);
    lock(w);
    c->fd = -1;
    unlock(w);
}

/* Writes down a request whose head lies from `head` to `end`. */
static void note(werkzeug *w, const connection *c, const char *head, const char *end,
                 const char *path)
{
    lock(w);
    must(w->seen_count < REQUESTS_MAX, "too many requests");
    seen *s = &w->seen[w->seen_count++];
    s->connection = (size_t)(c - w->connections);
    s->begin = c->served;
    s->whole = (size_t)(end - head) + 4 + announced(head, end);
    (void)snprintf(s->path, sizeof s->path, "%s", path);
    unlock(w);
}

/* Answers the request at the front; false: it is not whole yet, or the connection has
 * gone. */
static bool answer_next(werkzeug *w, connection *c)
{
    char method[32];
    char path[128];
    char channel[64];
    char token[256];
    const char *head = c->bytes + c->served;
    const char *end =
        c->len == c->served ? NULL : memmem(head, c->len - c->served, "\r\n\r\n", 4);
    char line[256];
    (void)snprintf(line, sizeof line, "%.*s", end == NULL ? 0 : (int)(end - head), head);
    if (sscanf(line, "%31s %127s", method, path) != 2) {
        return false;
    }
    bool unread = w->kind == WERKZEUG_2_1 && strcmp(method, "GET") == 0;
    size_t body_len = unread ? 0 : announced(head, end);
    size_t whole = (size_t)(end - head) + 4 + body_len;
    if (c->len - c->served < whole) {
        return false;
    }
    read_header(head, end, "Channel", channel, sizeof channel);
    read_header(head, end, "Token", token, sizeof token);
    char *body = strndup(end + 4, body_len);
    must(body != NULL, "strndup");
    note(w, c, head, end, path);

    werkzeug_answer answer = {.status = 200, .body = WERKZEUG_YES};
    if (strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != strlen(method)) {
        answer = (werkzeug_answer){.status = 405, .body = WERKZEUG_PAGE, .html = true};
        lock(w);
        w->confused++;
        unlock(w);
    } else if (w->serve != NULL) {
        const werkzeug_request request = {method, path, channel, token, body, body_len};
        w->serve(w, &request, &answer, w->user);
    }
    c->served += whole;
    if (answer.body != NULL) {
        send_answer(w, c->fd, &answer);
    }
    free(body);
    if (answer.body == NULL || answer.half || answer.endless || w->kind != WERKZEUG_2_1) {
        drop(w, c);
    }
    return c->fd >= 0;
}

/* ---- the server's thread ---- */

static void read_more(werkzeug *w, connection *c)
{
    char piece[65536];
    ssize_t len = recv(c->fd, piece, sizeof piece, 0);
    if (len > 0) {
        lock(w);
        if (c->size < c->len + (size_t)len + 1) {
            c->size = 2 * (c->len + (size_t)len + 1);
            c->bytes = realloc(c->bytes, c->size);
            must(c->bytes != NULL, "realloc");
        }
        memcpy(c->bytes + c->len, piece, (size_t)len);
        c->len += (size_t)len;
        c->bytes[c->len] = '\0';
        unlock(w);
    } else {
        drop(w, c);
        return;
    }
    while (answer_next(w, c)) {
    }
}

static void take(werkzeug *w)
{
    int fd = accept4(w->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) {
        return;
    }
    lock(w);
    must(w->connection_count < CONNECTIONS_MAX, "too many connections");
    w->connections[w->connection_count++].fd = fd;
    unlock(w);
}

static void *server_main(void *arg)
{
    werkzeug *w = arg;
    for (;;) {
        struct pollfd fds[CONNECTIONS_MAX + 2];
        connection *who[CONNECTIONS_MAX];
        nfds_t count = 2;
        char byte;
        lock(w);
        fds[0] = (struct pollfd){.fd = w->wake[0], .events = POLLIN};
        fds[1] =
            (struct pollfd){.fd = w->listening ? w->listen_fd : -1, .events = POLLIN};
        for (size_t i = 0; i < w->connection_count; i++) {
            if (w->connections[i].fd >= 0) {
                who[count - 2] = &w->connections[i];
                fds[count++] =
                    (struct pollfd){.fd = w->connections[i].fd, .events = POLLIN};
            }
        }
        bool stopping = w->stopping;
        unlock(w);
        if (stopping) {
            return NULL;
        }
        (void)poll(fds, count, -1);
        if (fds[0].revents != 0) {
            must(read(w->wake[0], &byte, 1) == 1, "read");
        }
        if (fds[1].revents != 0) {
            take(w);
        }
        for (nfds_t i = 2; i < count; i++) {
            if (fds[i].revents != 0) {
                read_more(w, who[i - 2]);
            }
        }
    }
}

/* ---- life ---- */

/* A port that is ours for good, also while nobody listens there. */
static void bind_port(werkzeug *w)
{
    static unsigned tried;
    w->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(w->listen_fd >= 0, "socket");
    for (int i = 0; i < 1000; i++) {
        unsigned n = (unsigned)getpid() * 31 + tried++;
        struct sockaddr_in where = {.sin_family = AF_INET};
        w->port = (uint16_t)(PORT_FIRST + n % PORTS);
        where.sin_port = htons(w->port);
        where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(w->listen_fd, (struct sockaddr *)&where, sizeof where) == 0) {
            /* Now, not before: for listening again beside old connections, and not for
             * taking the port of another who does the same. */
            const int yes = 1;
            must(setsockopt(w->listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) ==
                     0,
                 "SO_REUSEADDR");
            return;
        }
    }
    must(false, "bind");
}

static void init_news(werkzeug *w)
{
    pthread_condattr_t attributes;
    must(pthread_mutex_init(&w->lock, NULL) == 0, "mutex");
    must(pthread_condattr_init(&attributes) == 0 &&
             pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
             pthread_cond_init(&w->news, &attributes) == 0,
         "condition");
    (void)pthread_condattr_destroy(&attributes);
}

werkzeug *werkzeug_start_deaf(werkzeug_kind kind, werkzeug_fn *serve, void *user)
{
    werkzeug *w = calloc(1, sizeof *w);
    must(w != NULL, "calloc");
    w->kind = kind;
    w->serve = serve;
    w->user = user;
    init_news(w);
    bind_port(w);
    must(pipe2(w->wake, O_CLOEXEC) == 0, "pipe2");
    must(pthread_create(&w->thread, NULL, server_main, w) == 0, "thread");
    return w;
}

werkzeug *werkzeug_start(werkzeug_kind kind, werkzeug_fn *serve, void *user)
{
    werkzeug *w = werkzeug_start_deaf(kind, serve, user);
    werkzeug_listen(w);
    return w;
}

static void wake(werkzeug *w)
{
    must(write(w->wake[1], "x", 1) == 1, "write");
}

void werkzeug_listen(werkzeug *w)
{
    must(listen(w->listen_fd, 64) == 0, "listen");
    lock(w);
    w->listening = true;
    unlock(w);
    wake(w);
}

void werkzeug_deafen(werkzeug *w)
{
    lock(w);
    w->listening = false;
    unlock(w);
    must(shutdown(w->listen_fd, SHUT_RDWR) == 0, "shutdown"); /* it stays bound */
    wake(w);
}

uint16_t werkzeug_port(const werkzeug *w)
{
    return w->port;
}

void werkzeug_stop(werkzeug *w)
{
    if (w == NULL) {
        return;
    }
    lock(w);
    w->stopping = true;
    unlock(w);
    wake(w);
    (void)pthread_join(w->thread, NULL);
    for (size_t i = 0; i < w->connection_count; i++) {
        if (w->connections[i].fd >= 0) {
            (void)close(w->connections[i].fd);
        }
        free(w->connections[i].bytes);
    }
    for (size_t i = 0; i < w->seen_count; i++) {
        free(w->seen[i].text);
    }
    (void)close(w->listen_fd);
    (void)close(w->wake[0]);
    (void)close(w->wake[1]);
    (void)pthread_cond_destroy(&w->news);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

/* ---- looking ---- */

/* The n-th request of that path; NULL: not yet. Under the lock. */
static seen *find(werkzeug *w, const char *path, size_t n)
{
    for (size_t i = 0; i < w->seen_count; i++) {
        if ((path == NULL || strcmp(w->seen[i].path, path) == 0) && n-- == 0) {
            return &w->seen[i];
        }
    }
    return NULL;
}

static bool is_whole(const werkzeug *w, const seen *s)
{
    return s != NULL && w->connections[s->connection].len - s->begin >= s->whole;
}

/* Waits under the lock, which it keeps. */
static seen *await_nth(werkzeug *w, const char *path, size_t n, bool whole)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_MS / 1000;
    for (;;) {
        seen *s = find(w, path, n);
        if (s != NULL && (!whole || is_whole(w, s))) {
            return s;
        }
        if (pthread_cond_timedwait(&w->news, &w->lock, &until) == ETIMEDOUT) {
            return NULL;
        }
    }
}

size_t werkzeug_count(werkzeug *w, const char *path)
{
    size_t count = 0;
    lock(w);
    while (find(w, path, count) != NULL) {
        count++;
    }
    unlock(w);
    return count;
}

void werkzeug_await(werkzeug *w, const char *path, size_t count)
{
    lock(w);
    const seen *s = count == 0 ? &w->seen[0] : await_nth(w, path, count - 1, false);
    unlock(w);
    if (s == NULL) {
        fail_msg("only %zu of %zu requests of %s came", werkzeug_count(w, path), count,
                 path == NULL ? "all kinds" : path);
    }
}

size_t werkzeug_connections(werkzeug *w)
{
    lock(w);
    size_t count = w->connection_count;
    unlock(w);
    return count;
}

size_t werkzeug_confused(werkzeug *w)
{
    lock(w);
    size_t count = w->confused;
    unlock(w);
    return count;
}

const char *werkzeug_raw(werkzeug *w, const char *path, size_t n, size_t *len)
{
    lock(w);
    seen *s = await_nth(w, path, n, true);
    if (s != NULL && s->text == NULL) {
        s->text = calloc(1, s->whole + 1);
        must(s->text != NULL, "calloc");
        memcpy(s->text, w->connections[s->connection].bytes + s->begin, s->whole);
    }
    unlock(w);
    if (s == NULL) {
        fail_msg("request %zu of %s did not come", n, path == NULL ? "all kinds" : path);
    }
    if (len != NULL) {
        *len = s->whole;
    }
    return s->text;
}

/* ---- the client ---- */

int werkzeug_ask(uint16_t port, const char *method, const char *path, int channel,
                 const char *token, const char *body, size_t body_len, char *out,
                 size_t size)
{
    char text[1024];
    char answer[8192];
    int status = 0;
    int len = snprintf(text, sizeof text,
                       "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n"
                       "User-Agent: python-requests/2.28.1\r\n"
                       "Accept-Encoding: gzip, deflate\r\nAccept: */*\r\n"
                       "Connection: keep-alive\r\nChannel: %d\r\n%s%s%s"
                       "Content-Length: %zu\r\n\r\n",
                       method, path, (unsigned)port, channel,
                       token == NULL ? "" : "Token: ", token == NULL ? "" : token,
                       token == NULL ? "" : "\r\n", body_len);
    int fd = raw_connect(port);
    raw_send(fd, text, (size_t)len);
    raw_send(fd, body, body_len);
    bool came = raw_read_answer(fd, answer, sizeof answer, false);
    (void)close(fd);
    if (!came || sscanf(answer, "HTTP/1.%*d %d", &status) != 1) {
        return 0;
    }
    if (out != NULL) {
        (void)snprintf(out, size, "%s", strstr(answer, "\r\n\r\n") + 4);
    }
    return status;
}
