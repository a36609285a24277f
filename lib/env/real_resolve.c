#include "env/real_resolve.h"

#include "base/alloc.h"
#include "base/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

/* Vocabulary
 *   resolver  the questions of one loop and the threads that work on them; made by the
 *             first question
 *   question  a name to resolve: queued, then taken by a thread, then posted to the loop
 *
 * A thread that is stuck in getaddrinfo() can't be stopped. So threads are detached,
 * never waited for, and end as soon as the queue is empty; the resolver lives until the
 * loop and the last thread have let go of it. A question belongs to the resolver while it
 * is queued, to the thread while it is taken, and to the loop once it is posted.
 *
 * `lock` guards all of it; the loop's own lock is taken under it, by posting. */

enum { MAX_THREADS = 4 };

struct coordi_resolver {
    pthread_mutex_t lock;
    size_t users;           /* the loop, and each thread */
    size_t threads;         /* that will look at the queue once more */
    coordi_real_loop *loop; /* NULL: gone */
    coordi_link queue;
};

struct coordi_question {
    coordi_link link; /* in resolver->queue */
    coordi_job job;
    coordi_resolver *resolver;
    coordi_answer_fn *answer;
    void *arg;
    enum { QUEUED, TAKEN, POSTED } state;
    bool forgotten;
    coordi_addresses found;
    coord_error error;
    char host[COORDI_HOST_SIZE];
};

bool coordi_real_is_numeric(const char *host, coordi_addresses *ret)
{
    unsigned char parsed[sizeof(struct in6_addr)];
    bool numeric =
        inet_pton(AF_INET, host, parsed) == 1 || inet_pton(AF_INET6, host, parsed) == 1;
    if (!numeric && strchr(host, '%') != NULL) { /* fe80::1%eth0 */
        const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
        struct addrinfo *list = NULL;
        numeric = getaddrinfo(host, NULL, &hints, &list) == 0;
        if (numeric) {
            freeaddrinfo(list);
        }
    }
    if (!numeric || strlen(host) >= COORDI_NUMERIC_SIZE) {
        return false;
    }
    ret->count = 1;
    (void)snprintf(ret->text[0], sizeof ret->text[0], "%s", host);
    return true;
}

/* ---- the threads ---- */

static bool holds(const coordi_addresses *found, const char *text)
{
    for (size_t i = 0; i < found->count; i++) {
        if (strcmp(found->text[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static void look_up(coordi_question *question)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    coordi_addresses *found = &question->found;
    const int code = getaddrinfo(question->host, NULL, &hints, &list);
    const int os_errno = code == EAI_SYSTEM ? errno : 0;
    if (code != 0) {
        (void)coordi_fail(&question->error,
                          code == EAI_MEMORY ? COORD_ERR_NOMEM : COORD_ERR_LOST,
                          "resolve '%s': %s", question->host, gai_strerror(code));
        question->error.os_errno = os_errno;
        return;
    }
    for (struct addrinfo *at = list; at != NULL && found->count < COORDI_ADDRESSES;
         at = at->ai_next) {
        char *text = found->text[found->count];
        if (getnameinfo(at->ai_addr, at->ai_addrlen, text, COORDI_NUMERIC_SIZE, NULL, 0,
                        NI_NUMERICHOST) == 0 &&
            !holds(found, text)) {
            found->count++;
        }
    }
    freeaddrinfo(list);
    if (found->count == 0) {
        (void)coordi_fail(&question->error, COORD_ERR_LOST, "resolve '%s': no address",
                          question->host);
    }
}

static void resolver_drop_locked(coordi_resolver *resolver)
{
    const bool last = --resolver->users == 0;
    (void)pthread_mutex_unlock(&resolver->lock);
    if (last) {
        (void)pthread_mutex_destroy(&resolver->lock);
        coordi_free(resolver);
    }
}

static void *resolver_main(void *arg)
{
    coordi_resolver *resolver = arg;
    (void)pthread_setname_np(pthread_self(), "coord-resolve");
    (void)pthread_mutex_lock(&resolver->lock);
    for (coordi_link *link = coordi_list_pop(&resolver->queue); link != NULL;
         link = coordi_list_pop(&resolver->queue)) {
        coordi_question *question = COORDI_ITEM(link, coordi_question, link);
        question->state = TAKEN;
        (void)pthread_mutex_unlock(&resolver->lock);
        look_up(question);
        (void)pthread_mutex_lock(&resolver->lock);
        if (question->forgotten || resolver->loop == NULL) {
            coordi_free(question);
        } else {
            question->state = POSTED;
            coordi_post(&resolver->loop->base, &question->job);
        }
    }
    resolver->threads--;
    resolver_drop_locked(resolver);
    return NULL;
}

/* ---- the loop's side ---- */

static void answer_run(coordi_job *job)
{
    coordi_question *question = COORDI_ITEM(job, coordi_question, job);
    if (!question->forgotten) {
        const coord_error *error = question->found.count == 0 ? &question->error : NULL;
        question->answer(&question->found, error, question->arg);
    }
    coordi_free(question);
}

static coordi_resolver *resolver_of(coordi_real_loop *loop)
{
    if (loop->resolver != NULL) {
        return loop->resolver;
    }
    coordi_resolver *resolver = coordi_zalloc(sizeof *resolver);
    if (resolver == NULL || pthread_mutex_init(&resolver->lock, NULL) != 0) {
        coordi_free(resolver);
        return NULL;
    }
    resolver->users = 1;
    resolver->loop = loop;
    coordi_list_init(&resolver->queue);
    loop->resolver = resolver;
    return resolver;
}

/* Queues the question; it is no failure that no thread can be had while another runs. */
static coord_status enqueue(coordi_resolver *resolver, coordi_question *question,
                            coord_error *err)
{
    (void)pthread_mutex_lock(&resolver->lock);
    coordi_list_append(&resolver->queue, &question->link);
    const bool start = resolver->threads < MAX_THREADS;
    if (start) {
        resolver->threads++;
        resolver->users++;
    }
    (void)pthread_mutex_unlock(&resolver->lock);
    if (!start) {
        return COORD_OK;
    }
    pthread_t thread;
    coord_status rc =
        coordi_real_spawn("coord-resolve", resolver_main, resolver, true, &thread, err);
    if (rc == COORD_OK) {
        return COORD_OK;
    }
    (void)pthread_mutex_lock(&resolver->lock);
    resolver->threads--;
    resolver->users--; /* never the last: the loop's is there */
    if (resolver->threads > 0) {
        rc = COORD_OK;
    } else {
        coordi_list_remove(&question->link);
    }
    (void)pthread_mutex_unlock(&resolver->lock);
    return rc;
}

coord_status coordi_real_ask(coordi_real_loop *loop, const char *host,
                             coordi_answer_fn *answer, void *arg, coordi_question **ret,
                             coord_error *err)
{
    coordi_resolver *resolver = resolver_of(loop);
    coordi_question *question = coordi_zalloc(sizeof *question);
    if (resolver == NULL || question == NULL) {
        coordi_free(question);
        return coordi_fail_nomem(err, "resolver");
    }
    question->job.run = answer_run;
    question->resolver = resolver;
    question->answer = answer;
    question->arg = arg;
    question->state = QUEUED;
    (void)snprintf(question->host, sizeof question->host, "%s", host);
    coord_status rc = enqueue(resolver, question, err);
    if (rc != COORD_OK) {
        coordi_free(question);
        return rc;
    }
    *ret = question;
    return COORD_OK;
}

void coordi_real_forget(coordi_question *question)
{
    coordi_resolver *resolver = question->resolver;
    (void)pthread_mutex_lock(&resolver->lock);
    question->forgotten = true;
    const bool queued = question->state == QUEUED;
    if (queued) {
        coordi_list_remove(&question->link);
    }
    (void)pthread_mutex_unlock(&resolver->lock);
    if (queued) {
        coordi_free(question);
    }
}

void coordi_real_resolver_end(coordi_real_loop *loop)
{
    coordi_resolver *resolver = loop->resolver;
    if (resolver == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&resolver->lock);
    resolver->loop = NULL;
    for (coordi_link *link = coordi_list_pop(&resolver->queue); link != NULL;
         link = coordi_list_pop(&resolver->queue)) {
        coordi_free(COORDI_ITEM(link, coordi_question, link));
    }
    resolver_drop_locked(resolver);
}
