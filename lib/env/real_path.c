#include "env/real_client.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Which of this machine's addresses a peer would see. Connecting a UDP socket sends
 * nothing but makes the kernel choose a route, and with it the address.
 *
 *   question  one caller that wants to know; answered at the end of a turn, once the
 *             peer's name is resolved */

typedef struct path_question {
    coordi_link link; /* in peer->paths */
    coordi_http_peer *peer;
    coordi_job job;
    coordi_timer timer;
    coordi_http_path_fn *done;
    void *arg;
} path_question;

static void question_free(path_question *question)
{
    coordi_list_remove(&question->link);
    coordi_list_remove(&question->job.link);
    coordi_heap_cancel(&question->peer->loop->timers, &question->timer);
    coordi_free(question);
}

static void tell(path_question *question, const char *local_host,
                 const coord_error *error)
{
    coordi_http_path_fn *done = question->done;
    void *arg = question->arg;
    question_free(question); /* first: the owner may destroy the peer */
    done(error == NULL ? COORD_OK : error->status, local_host, error, arg);
}

static int udp_connect(const char *numeric, uint16_t port, int *ret)
{
    char service[8];
    (void)snprintf(service, sizeof service, "%u", (unsigned)port);
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_DGRAM};
    struct addrinfo *to = NULL;
    if (getaddrinfo(numeric, service, &hints, &to) != 0) {
        return ENOMEM;
    }
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int os_errno = fd < 0 ? errno : 0;
    if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
        os_errno = errno;
        (void)close(fd);
    }
    freeaddrinfo(to);
    *ret = fd;
    return os_errno;
}

static coord_status find_local(const coordi_http_peer *peer,
                               char out[COORDI_NUMERIC_SIZE], coord_error *err)
{
    int os_errno = 0;
    for (size_t i = 0; i < peer->known.count; i++) {
        const char *numeric = peer->known.text[(peer->good + i) % peer->known.count];
        const uint16_t port = peer->address.port == 0 ? 1 : peer->address.port;
        int fd = -1;
        os_errno = udp_connect(numeric, port, &fd);
        if (os_errno != 0) {
            continue;
        }
        struct sockaddr_storage local;
        socklen_t len = sizeof local;
        bool named = getsockname(fd, (struct sockaddr *)&local, &len) == 0 &&
                     getnameinfo((struct sockaddr *)&local, len, out, COORDI_NUMERIC_SIZE,
                                 NULL, 0, NI_NUMERICHOST) == 0;
        (void)close(fd);
        if (named) {
            return COORD_OK;
        }
        os_errno = EADDRNOTAVAIL;
    }
    (void)coordi_fail_errno(err, os_errno, "no path to %.200s", peer->address.host);
    err->status = COORD_ERR_NETWORK;
    return err->status;
}

static void answer(path_question *question)
{
    char local[COORDI_NUMERIC_SIZE];
    coord_error error;
    if (find_local(question->peer, local, &error) == COORD_OK) {
        tell(question, local, NULL);
    } else {
        tell(question, NULL, &error);
    }
}

static void answer_run(coordi_job *job)
{
    answer(COORDI_ITEM(job, path_question, job));
}

static void waited_too_long(coordi_timer *timer)
{
    path_question *question = COORDI_ITEM(timer, path_question, timer);
    coord_error error;
    (void)coordi_fail(&error, COORD_ERR_TIMEOUT, "resolve '%s': no answer in time",
                      question->peer->address.host);
    tell(question, NULL, &error);
}

coord_status coordi_real_peer_path(coordi_http_peer *peer, int64_t timeout_ms,
                                   coordi_http_path_fn *done, void *arg, coord_error *err)
{
    path_question *question = coordi_zalloc(sizeof *question);
    if (question == NULL) {
        return coordi_fail_nomem(err, "http peer");
    }
    question->peer = peer;
    question->job.run = answer_run;
    question->timer.fire = waited_too_long;
    question->done = done;
    question->arg = arg;
    coord_status rc = COORD_OK;
    if (coordi_client_is_known(peer)) {
        coordi_real_defer(peer->loop, &question->job);
    } else {
        rc = coordi_client_ask(peer, err);
    }
    if (rc != COORD_OK) {
        coordi_free(question);
        return rc;
    }
    coordi_list_append(&peer->paths, &question->link);
    coordi_heap_set(&peer->loop->timers, &question->timer,
                    coordi_real_now() + timeout_ms);
    return COORD_OK;
}

void coordi_client_tell_paths(coordi_http_peer *peer, const coord_error *error)
{
    const bool *gone = peer->gone;
    const coordi_link *last = peer->paths.prev; /* owners may bring new ones meanwhile */
    for (bool more = !coordi_list_empty(&peer->paths); more && !*gone;) {
        path_question *question = COORDI_ITEM(peer->paths.next, path_question, link);
        more = &question->link != last;
        if (error != NULL) {
            tell(question, NULL, error);
        } else {
            answer(question);
        }
    }
}

void coordi_client_drop_paths(coordi_http_peer *peer)
{
    while (!coordi_list_empty(&peer->paths)) {
        question_free(COORDI_ITEM(peer->paths.next, path_question, link));
    }
}
