#include "support/hostile.h"

#include "support/raw_http.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { GUESTS_MAX = 128, STEPS_MAX = 1024, REQUESTS_MAX = 1024, TEXT_MAX = 4096 };
enum { PATIENCE_S = 20 };

typedef struct guest {
    hostile *h;
    pthread_t thread;
    hostile_step step;
    int fd;
    bool used; /* its thread is to be joined */
    bool done; /* ... and about to return */
} guest;

struct hostile {
    int listen_fd;
    uint16_t port;
    pthread_t thread;
    guest guests[GUESTS_MAX]; /* the accepting thread's, but for fd and done */

    pthread_mutex_t lock; /* guards all below, and fd and done above */
    pthread_cond_t changed;
    bool stopping;
    hostile_step steps[STEPS_MAX];
    size_t step_count;
    size_t next_step;
    size_t connections;
    char *requests[REQUESTS_MAX];
    size_t request_count;
};

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        abort();
    }
}

static void lock(hostile *h)
{
    must(pthread_mutex_lock(&h->lock) == 0, "lock");
}

static void unlock(hostile *h)
{
    must(pthread_mutex_unlock(&h->lock) == 0, "unlock");
}

/* ---- one connection ---- */

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool send_slowly(int fd, const char *text)
{
    const int on = 1;
    must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    for (; *text != '\0'; text++) {
        if (!send_all(fd, text, 1)) {
            return false;
        }
    }
    return true;
}

static void wait_for_end(int fd)
{
    char bytes[4096];
    while (recv(fd, bytes, sizeof bytes, 0) > 0) {
    }
}

static void send_without_end(int fd)
{
    (void)send_all(fd, "HTTP/1.1 200 OK\r\n", 17);
    while (send_all(fd, "X-More: of the same, and more, and more\r\n", 41)) {
    }
}

static size_t whole_request(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n");
    const char *length = strcasestr(text, "\r\nContent-Length:");
    if (end == NULL) {
        return 0;
    }
    size_t body = length == NULL || length > end ? 0 : strtoul(length + 17, NULL, 10);
    return (size_t)(end + 4 - text) + body;
}

/* False: it was not read to its end. */
static bool take(const guest *g, char text[TEXT_MAX])
{
    for (size_t len = 0; len < g->step.take && len + 1 < TEXT_MAX;) {
        ssize_t got = recv(g->fd, text + len, 1, 0); /* not a byte more than we want */
        if (got <= 0) {
            return false;
        }
        len++;
        text[len] = '\0';
        size_t whole = whole_request(text);
        if (whole > 0 && len >= whole) {
            return true;
        }
    }
    return false;
}

static void keep(hostile *h, const char *text)
{
    char *copy = strdup(text);
    must(copy != NULL, "strdup");
    lock(h);
    must(h->request_count < REQUESTS_MAX, "too many requests");
    h->requests[h->request_count++] = copy;
    must(pthread_cond_broadcast(&h->changed) == 0, "broadcast");
    unlock(h);
}

static void give(const guest *g)
{
    const hostile_step *step = &g->step;
    if (step->how == HOSTILE_LATE) {
        wait_for_end(g->fd);
    }
    if (step->how == HOSTILE_ENDLESS) {
        send_without_end(g->fd);
    } else if (step->answer != NULL && step->how == HOSTILE_DRIP) {
        (void)send_slowly(g->fd, step->answer);
    } else if (step->answer != NULL) {
        size_t len = strlen(step->answer);
        (void)send_all(g->fd, step->answer, step->give < len ? step->give : len);
    }
    if (step->how == HOSTILE_SILENT) {
        wait_for_end(g->fd);
    }
}

static void *serve(void *arg)
{
    guest *g = arg;
    char text[TEXT_MAX] = "";
    if (take(g, text)) {
        keep(g->h, text);
        give(g);
    }
    lock(g->h);
    if (g->step.how == HOSTILE_RESET) {
        raw_reset(g->fd);
    } else {
        (void)close(g->fd);
    }
    g->fd = -1;
    g->done = true;
    unlock(g->h);
    return NULL;
}

/* ---- the server ---- */

static guest *free_guest(hostile *h)
{
    guest *found = NULL;
    for (int i = 0; i < GUESTS_MAX; i++) {
        guest *g = &h->guests[i];
        lock(h);
        bool done = g->done;
        unlock(h);
        if (g->used && done) {
            must(pthread_join(g->thread, NULL) == 0, "join");
            lock(h);
            g->used = false;
            unlock(h);
        }
        found = g->used ? found : g;
    }
    must(found != NULL, "too many guests");
    return found;
}

static void *accept_all(void *arg)
{
    static const hostile_step GOOD = {HOSTILE_ALL, HOSTILE_YES, HOSTILE_ALL,
                                      HOSTILE_CLOSE};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    hostile *h = arg;
    for (;;) {
        int fd = accept4(h->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            return NULL; /* shut down */
        }
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        guest *g = free_guest(h);
        lock(h);
        h->connections++;
        *g = (guest){.h = h, .fd = fd, .used = true};
        g->step = h->next_step < h->step_count ? h->steps[h->next_step++] : GOOD;
        bool stopping = h->stopping;
        unlock(h);
        if (stopping) {
            (void)shutdown(fd, SHUT_RDWR);
        }
        must(pthread_create(&g->thread, NULL, serve, g) == 0, "thread");
    }
}

hostile *hostile_start(void)
{
    hostile *h = calloc(1, sizeof *h);
    must(h != NULL, "calloc");
    struct sockaddr_in where = {.sin_family = AF_INET};
    socklen_t len = sizeof where;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    h->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(h->listen_fd >= 0 &&
             bind(h->listen_fd, (struct sockaddr *)&where, sizeof where) == 0 &&
             listen(h->listen_fd, 256) == 0 &&
             getsockname(h->listen_fd, (struct sockaddr *)&where, &len) == 0,
         "hostile server");
    h->port = ntohs(where.sin_port);
    must(pthread_mutex_init(&h->lock, NULL) == 0, "mutex");
    must(pthread_cond_init(&h->changed, NULL) == 0, "condition");
    must(pthread_create(&h->thread, NULL, accept_all, h) == 0, "thread");
    return h;
}

void hostile_stop(hostile *h)
{
    lock(h);
    h->stopping = true;
    for (int i = 0; i < GUESTS_MAX; i++) {
        if (h->guests[i].used && h->guests[i].fd >= 0) {
            (void)shutdown(h->guests[i].fd, SHUT_RDWR);
        }
    }
    unlock(h);
    (void)shutdown(h->listen_fd, SHUT_RDWR);
    must(pthread_join(h->thread, NULL) == 0, "join");
    for (int i = 0; i < GUESTS_MAX; i++) {
        if (h->guests[i].used) {
            must(pthread_join(h->guests[i].thread, NULL) == 0, "join");
        }
    }
    hostile_forget(h);
    (void)close(h->listen_fd);
    (void)pthread_cond_destroy(&h->changed);
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}

uint16_t hostile_port(const hostile *h)
{
    return h->port;
}

void hostile_add(hostile *h, hostile_step step)
{
    lock(h);
    must(h->step_count < STEPS_MAX, "too many steps");
    h->steps[h->step_count++] = step;
    unlock(h);
}

void hostile_forget(hostile *h)
{
    lock(h);
    for (size_t i = 0; i < h->request_count; i++) {
        free(h->requests[i]);
    }
    h->request_count = 0;
    h->connections = 0;
    h->step_count = 0;
    h->next_step = 0;
    unlock(h);
}

static const char *find(const hostile *h, const char *path)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < h->request_count; i++) {
        const char *at = strchr(h->requests[i], ' ');
        if (at != NULL && strncmp(at + 1, path, len) == 0 && at[1 + len] == ' ') {
            return h->requests[i];
        }
    }
    return NULL;
}

void hostile_read(hostile *h, const char *path, char *out, size_t size)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S / 2;
    lock(h);
    while (find(h, path) == NULL &&
           pthread_cond_timedwait(&h->changed, &h->lock, &until) == 0) {
    }
    const char *found = find(h, path);
    (void)snprintf(out, size, "%s", found == NULL ? "" : found);
    unlock(h);
}

size_t hostile_count(hostile *h)
{
    lock(h);
    size_t count = h->connections;
    unlock(h);
    return count;
}

/* ---- requests by hand ---- */

void hostile_print(char *out, size_t size, const char *method, const char *path,
                   const char *token, const char *body)
{
    (void)snprintf(out, size,
                   "%s %s HTTP/1.1\r\nHost: here\r\nChannel: 0\r\n%s%s%s"
                   "Content-Length: %zu\r\n\r\n%s",
                   method, path,
                   token == NULL ? "" : "Token: ", token == NULL ? "" : token,
                   token == NULL ? "" : "\r\n", strlen(body), body);
}

void hostile_stop_short(uint16_t port, const char *text, size_t send, size_t read,
                        bool reset)
{
    int fd = raw_connect(port);
    char byte;
    raw_send(fd, text, send);
    for (size_t i = 0; i < read; i++) {
        if (recv(fd, &byte, 1, 0) <= 0) {
            break;
        }
    }
    if (reset || read > 0) {
        raw_reset(fd);
    } else {
        (void)close(fd);
    }
}

static int read_code(int fd, char *out, size_t size)
{
    const char *code =
        raw_read_answer(fd, out, size, false) ? strstr(out, "\"code\":") : NULL;
    (void)close(fd);
    return code == NULL ? -1 : (int)strtol(code + 7, NULL, 10);
}

int hostile_ask(uint16_t port, const char *text, char *out, size_t size)
{
    char own[TEXT_MAX];
    int fd = raw_connect(port);
    raw_sends(fd, text);
    return read_code(fd, out == NULL ? own : out, out == NULL ? sizeof own : size);
}

int hostile_ask_slowly(uint16_t port, const char *text)
{
    char own[TEXT_MAX];
    int fd = raw_connect(port);
    (void)send_slowly(fd, text);
    return read_code(fd, own, sizeof own);
}

bool hostile_send_off(uint16_t port, const char *text)
{
    int fd = hostile_hold(port, text);
    (void)shutdown(fd, SHUT_WR);
    bool ended = raw_sees_end(fd);
    (void)close(fd);
    return ended;
}

int hostile_hold(uint16_t port, const char *text)
{
    int fd = raw_connect(port);
    raw_sends(fd, text);
    return fd;
}

bool hostile_tire(uint16_t port, const char *path)
{
    char line[64];
    int fd = raw_connect(port);
    bool ended = false;
    (void)snprintf(line, sizeof line, "GET %.40s HTTP/1.1\r\n", path);
    raw_sends(fd, line);
    for (int i = 0; i < (64 << 20) / 41 && !ended; i++) {
        struct pollfd readable = {fd, POLLIN, 0};
        ended = !send_all(fd, "X-More: of the same, and more, and more\r\n", 41) ||
                (i % 64 == 0 && poll(&readable, 1, 0) > 0);
    }
    (void)close(fd);
    return ended;
}

void hostile_cut_request(uint16_t port, const char *text)
{
    size_t len = strlen(text);
    for (size_t at = 0; at < len; at++) {
        hostile_stop_short(port, text, at, 0, at % 2 == 1);
    }
}

void hostile_cut_answer(uint16_t port, const char *text)
{
    char answer[TEXT_MAX];
    (void)hostile_ask(port, text, answer, sizeof answer);
    size_t len = strlen(answer);
    for (size_t at = 0; at <= len; at++) {
        hostile_stop_short(port, text, strlen(text), at, true);
    }
}

bool hostile_pester(uint16_t port, const char *path, int open[HOSTILE_HELD])
{
    static const char *const REFUSED[] = {
        "HELO there\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: nine\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    };
    static const char *const HELD[HOSTILE_HELD] = {
        "",
        "\r\n\r\n\r\n",
        "\x16\x03\x01\x02",
        "POST /conn",
        "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n{\"task\": ",
    };
    bool refused = true;
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        refused = hostile_send_off(port, REFUSED[i]) && refused;
    }
    for (int i = 0; i < HOSTILE_HELD; i++) {
        open[i] = hostile_hold(port, HELD[i]);
    }
    return hostile_tire(port, path) && refused;
}

/* ---- kinds of answers ---- */

#define ALL HOSTILE_ALL
#define HEAD(length) "HTTP/1.1 200 OK\r\nContent-Length: " length "\r\n\r\n"
#define NO                                                                               \
    "HTTP/1.1 403 FORBIDDEN\r\nContent-Length: 61\r\n\r\n"                               \
    "{\"code\":777,\"data\":{},\"message\":\"No, never.\",\"success\":false}"

const hostile_kind hostile_kinds[HOSTILE_KINDS] = {
    {"never", {ALL, NULL, 0, HOSTILE_SILENT}, false, true},
    {"late", {ALL, HOSTILE_YES, ALL, HOSTILE_LATE}, false, true},
    {"hangs up", {ALL, NULL, 0, HOSTILE_CLOSE}, false, true},
    {"resets", {ALL, NULL, 0, HOSTILE_RESET}, false, true},
    {"half", {ALL, HOSTILE_YES, sizeof HOSTILE_YES - 20, HOSTILE_CLOSE}, false, true},
    {"half, silence",
     {ALL, HOSTILE_YES, sizeof HOSTILE_YES - 20, HOSTILE_SILENT},
     false,
     true},
    {"no HTTP", {ALL, "\x16\x03\x01 smtp\r\n\r\n", ALL, HOSTILE_CLOSE}, false, false},
    {"no JSON", {ALL, HEAD("5") "<html", ALL, HOSTILE_CLOSE}, false, false},
    {"empty", {ALL, HEAD("0"), ALL, HOSTILE_CLOSE}, false, false},
    {"other JSON", {ALL, HEAD("2") "[]", ALL, HOSTILE_CLOSE}, false, false},
    {"100 MB", {ALL, HEAD("104857600") "{\"code\"", ALL, HOSTILE_SILENT}, false, false},
    {"negative", {ALL, HEAD("-5") "{\"code\"", ALL, HOSTILE_SILENT}, false, false},
    {"endless head", {ALL, NULL, 0, HOSTILE_ENDLESS}, false, false},
    {"no", {ALL, NO, ALL, HOSTILE_CLOSE}, false, false},
    {"drop by drop", {ALL, HOSTILE_YES, ALL, HOSTILE_DRIP}, true, false},
    {"twice", {ALL, HOSTILE_YES HOSTILE_YES, ALL, HOSTILE_CLOSE}, true, false},
    {"yes, silence", {ALL, HOSTILE_YES, ALL, HOSTILE_SILENT}, true, false},
};

/* ---- what is left ---- */

int64_t hostile_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int count_entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    must(d != NULL, folder);
    while (readdir(d) != NULL) {
        n++;
    }
    (void)closedir(d);
    return n;
}

hostile_census hostile_count_all(void)
{
    return (hostile_census){count_entries("/proc/self/fd"),
                            count_entries("/proc/self/task")};
}

/* A thread that was joined may be seen a moment longer. */
bool hostile_nothing_left(const hostile_census *before)
{
    int64_t until = hostile_now_ms() + 5000;
    hostile_census now = hostile_count_all();
    while ((now.fds != before->fds || now.threads != before->threads) &&
           hostile_now_ms() < until) {
        (void)sched_yield();
        now = hostile_count_all();
    }
    if (now.fds == before->fds && now.threads == before->threads) {
        return true;
    }
    (void)fprintf(stderr, "%d descriptors, %d threads; before %d, %d\n", now.fds,
                  now.threads, before->fds, before->threads);
    return false;
}
