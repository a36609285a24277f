#include "support/fake_operator_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The server's state, and its script. */

void fake_must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "fake operator: %s\n", what);
        abort();
    }
}

static void copy(char *to, const char *from, const char *otherwise)
{
    from = from == NULL ? otherwise : from;
    fake_must(strlen(from) < FAKE_ID, "a name is too long");
    memcpy(to, from, strlen(from) + 1);
}

fake_operator *fake_operator_new(const fake_operator_spec *spec)
{
    fake_operator *f = calloc(1, sizeof *f);
    fake_must(f != NULL, "calloc");
    f->api = spec->api == 0 ? FAKE_V1 : spec->api;
    copy(f->name_space, spec->name_space, "default");
    copy(f->name, spec->name, "job-coordinator");
    copy(f->job_id, spec->job_id, "default.job");
    f->known = true;
    fake_must(pthread_mutex_init(&f->lock, NULL) == 0, "mutex");
    return f;
}

void fake_operator_stop(fake_operator *f)
{
    if (f == NULL) {
        return;
    }
    f->front->stop(f->front);
    for (int kind = 0; kind < FAKE_KINDS; kind++) {
        free(f->bodies[kind]);
    }
    (void)pthread_mutex_destroy(&f->lock);
    free(f->garbage);
    for (size_t i = 0; i < f->pod_count; i++) {
        free(f->pods[i]);
    }
    free(f->pods);
    free(f);
}

uint16_t fake_operator_port(fake_operator *f)
{
    return f->front->port(f->front);
}

static void lock(fake_operator *f)
{
    (void)pthread_mutex_lock(&f->lock);
}

static void unlock(fake_operator *f)
{
    (void)pthread_mutex_unlock(&f->lock);
}

/* ---- pods ---- */

/* Five characters as Kubernetes makes them up, another five each time. */
static void make_suffix(unsigned n, char out[6])
{
    static const char LETTERS[] = "bcdfghjklmnpqrstvwxz2456789";
    for (int i = 4; i >= 0; i--) {
        out[i] = LETTERS[n % (sizeof LETTERS - 1)];
        n /= sizeof LETTERS - 1;
    }
    out[5] = '\0';
}

static fake_pod *enter(fake_operator *f, fake_list list, const char *id)
{
    if (f->pod_count == f->pod_room) {
        f->pod_room = f->pod_room == 0 ? 16 : 2 * f->pod_room;
        f->pods = realloc(f->pods, f->pod_room * sizeof(fake_pod *));
        fake_must(f->pods != NULL, "realloc");
    }
    fake_pod *pod = malloc(sizeof *pod);
    fake_must(pod != NULL, "malloc");
    f->pods[f->pod_count++] = pod;
    pod->list = list;
    copy(pod->id, id, NULL);
    pod->born_ms = f->front->now_ms(f->front);
    pod->gone_ms = FAKE_ALIVE;
    return pod;
}

void fake_operator_name(const fake_operator *f, fake_list list, unsigned n,
                        char id[FAKE_ID])
{
    char suffix[6];
    make_suffix(n, suffix);
    if (f->namer != NULL) {
        f->namer(f->namer_arg, list, n, id, FAKE_ID);
    } else if (list == FAKE_NODES) {
        (void)snprintf(id, FAKE_ID, "10.1.%u.%u:22270", n / 250, n % 250 + 1);
    } else {
        (void)snprintf(id, FAKE_ID, "job-%s-%s.%.100s:%d",
                       list == FAKE_COLLECTORS ? "collector" : "learner", suffix,
                       f->name_space, list == FAKE_COLLECTORS ? 22270 : 22271);
    }
}

void fake_pod_make(fake_operator *f, fake_list list, char id[FAKE_ID])
{
    fake_operator_name(f, list, f->made++, id);
    (void)enter(f, list, id);
    f->created++;
}

void fake_pod_end(fake_operator *f, fake_pod *pod)
{
    pod->gone_ms = f->front->now_ms(f->front);
    f->deleted++;
}

void fake_operator_add(fake_operator *f, fake_list list, const char *id)
{
    lock(f);
    enter(f, list, id)->born_ms = INT64_MIN / 2;
    unlock(f);
}

void fake_operator_set_namer(fake_operator *f, fake_namer_fn *namer, void *arg)
{
    lock(f);
    f->namer = namer;
    f->namer_arg = arg;
    unlock(f);
}

static bool is_alive(const fake_pod *pod, fake_list list)
{
    return pod->list == list && pod->gone_ms == FAKE_ALIVE;
}

static fake_pod *nth(fake_operator *f, fake_list list, size_t n)
{
    for (size_t i = 0; i < f->pod_count; i++) {
        if (is_alive(f->pods[i], list) && n-- == 0) {
            return f->pods[i];
        }
    }
    return NULL;
}

void fake_operator_remove(fake_operator *f, const char *id)
{
    lock(f);
    for (size_t i = 0; i < f->pod_count; i++) {
        if (f->pods[i]->gone_ms == FAKE_ALIVE && strcmp(f->pods[i]->id, id) == 0) {
            f->pods[i]->gone_ms = INT64_MIN / 2;
        }
    }
    unlock(f);
}

void fake_operator_replace(fake_operator *f, const char *id, const char *by)
{
    lock(f);
    for (size_t i = 0; i < f->pod_count; i++) {
        if (f->pods[i]->gone_ms == FAKE_ALIVE && strcmp(f->pods[i]->id, id) == 0) {
            copy(f->pods[i]->id, by, NULL);
        }
    }
    unlock(f);
}

void fake_operator_scale(fake_operator *f, fake_list list, size_t count)
{
    char id[FAKE_ID];
    size_t alive = 0;
    lock(f);
    for (size_t i = 0; i < f->pod_count; i++) {
        fake_pod *pod = f->pods[i];
        if (!is_alive(pod, list)) {
            continue;
        }
        if (alive < count) {
            alive++;
        } else {
            pod->gone_ms = INT64_MIN / 2;
        }
    }
    for (; alive < count; alive++) {
        fake_pod_make(f, list, id);
        f->pods[f->pod_count - 1]->born_ms = INT64_MIN / 2;
        f->created--;
    }
    unlock(f);
}

size_t fake_operator_count(fake_operator *f, fake_list list)
{
    size_t count = 0;
    lock(f);
    for (size_t i = 0; i < f->pod_count; i++) {
        count += is_alive(f->pods[i], list);
    }
    unlock(f);
    return count;
}

const char *fake_operator_id(fake_operator *f, fake_list list, size_t n)
{
    lock(f);
    const fake_pod *pod = nth(f, list, n);
    unlock(f);
    return pod == NULL ? NULL : pod->id; /* it never moves */
}

/* ---- script ---- */

void fake_operator_fail(fake_operator *f, fake_kind kind, fake_fault fault, size_t count)
{
    lock(f);
    for (; count > 0; count--) {
        fake_must(f->fault_end[kind] < FAKE_FAULTS, "too many faults");
        f->faults[kind][f->fault_end[kind]++] = fault;
    }
    unlock(f);
}

void fake_operator_mend(fake_operator *f)
{
    lock(f);
    memset(f->fault_at, 0, sizeof f->fault_at);
    memset(f->fault_end, 0, sizeof f->fault_end);
    unlock(f);
}

void fake_operator_set_garbage(fake_operator *f, const char *text)
{
    char *own = strdup(text);
    fake_must(own != NULL, "strdup");
    lock(f);
    free(f->garbage);
    f->garbage = own;
    unlock(f);
}

void fake_operator_set_listening(fake_operator *f, bool listening)
{
    f->front->listen(f->front, listening);
}

#define SETTER(name, type, field)                                                        \
    void fake_operator_set_##name(fake_operator *f, type value)                          \
    {                                                                                    \
        lock(f);                                                                         \
        f->field = value;                                                                \
        unlock(f);                                                                       \
    }
SETTER(lag, int64_t, lag_ms)
SETTER(delay, int64_t, delay_ms)
SETTER(known, bool, known)
SETTER(null_lists, bool, null_lists)
SETTER(dicts, bool, dicts)
SETTER(preemptible, bool, preemptible)
SETTER(api, int, api)

int fake_operator_api(fake_operator *f)
{
    lock(f);
    const int api = f->api;
    unlock(f);
    return api;
}

/* ---- what came ---- */

#define GETTER(name)                                                                     \
    size_t fake_operator_##name(fake_operator *f)                                        \
    {                                                                                    \
        lock(f);                                                                         \
        const size_t count = f->name;                                                    \
        unlock(f);                                                                       \
        return count;                                                                    \
    }
GETTER(created)
GETTER(deleted)

size_t fake_operator_requests(fake_operator *f, fake_kind kind)
{
    lock(f);
    const size_t count = f->requests[kind];
    unlock(f);
    return count;
}

const char *fake_operator_body(fake_operator *f, fake_kind kind)
{
    lock(f);
    const char *body = f->bodies[kind];
    unlock(f);
    return body == NULL ? "" : body;
}
