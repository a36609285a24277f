/* One thread compares what there should be, the server's pods, with what there is, the
 * launcher's processes, and starts and ends some: the way in which Kubernetes works.
 *
 * The launcher sees to it that no process outlives this program, however that ends. */
#include "cluster.h"
#include "say.h"

#include "coord.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PODS_MAX = 200, LOOK_MS = 20, END_MS = 5000, ID_SIZE = 64 };

/* A pod that has had its process. */
typedef struct pod {
    char id[ID_SIZE]; /* "127.3.1.7:40001", which is the process's name, too */
    bool listed;      /* in the look around that goes on */
    bool ended;
} pod;

struct cluster {
    fake_operator *server;
    char worker[4096];
    coord_launcher *launcher;
    pthread_t thread;
    atomic_bool stopping;
    pod pods[PODS_MAX]; /* of the thread */
    size_t pod_count;
};

/* ---- addresses ---- */

/* A port that is free on that address; 0: there is none. Nobody else is likely to take it
 * before the worker does: addresses of 127.0.0.0/8 but the first are hardly used. */
static unsigned free_port(struct in_addr address)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = address};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
                getsockname(fd, (struct sockaddr *)&at, &size) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return good ? ntohs(at.sin_port) : 0;
}

/* The n-th pod has the address 127.x.y.n, where x and y are ours: another run of this
 * program at the same time has others. The server calls a pod by its host alone when it
 * is reported as failed, so that each has to have its own. */
static void name_pod(void *arg, fake_list list, unsigned n, char *id, size_t size)
{
    char host[INET_ADDRSTRLEN];
    struct in_addr address;
    unsigned pid = (unsigned)getpid();
    (void)arg;
    (void)list;
    (void)snprintf(host, sizeof host, "127.%u.%u.%u", pid % 250 + 1, pid / 250 % 250,
                   n % 250 + 1);
    unsigned port = inet_pton(AF_INET, host, &address) == 1 ? free_port(address) : 0;
    if (port == 0) {
        complain("no free port for a pod", NULL);
        port = 1; /* where nobody listens */
    }
    (void)snprintf(id, size, "%s:%u", host, port);
}

/* ---- processes ---- */

static void on_line(coord_launcher *launcher, const coord_launcher_line *line, void *user)
{
    (void)launcher;
    (void)user;
    tell("%.*s", (int)line->prefixed.len, line->prefixed.ptr);
}

static void on_exit_of(coord_launcher *launcher, const char *name,
                       const coord_launcher_exit *how, void *user)
{
    (void)launcher;
    (void)user;
    tell("[%s] has ended: code %d, signal %d", name, how->code, how->signal_number);
}

static void start_process(cluster *k, const pod *p, bool learner)
{
    coord_error err = {0};
    coord_launcher_spec spec;
    char host[ID_SIZE];
    size_t at = strcspn(p->id, ":");
    (void)snprintf(host, sizeof host, "%.*s", (int)at, p->id);
    /* A collector's task is ten samples; a learner's goes on until the host says so. */
    const char *const argv[] = {k->worker,
                                "--role",
                                learner ? "learner" : "collector",
                                "--host",
                                host,
                                "--port",
                                p->id + at + 1,
                                "--samples",
                                learner ? "1000000" : "10",
                                "--step-ms",
                                "20",
                                "--heartbeat-ms",
                                "300",
                                "--die-with-parent",
                                NULL};
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = p->id;
    spec.argv = argv;
    spec.on_line = on_line;
    spec.on_exit = on_exit_of;
    if (coord_launcher_start(k->launcher, &spec, NULL, &err) != COORD_OK) {
        complain("worker", &err);
    }
}

static void end_process(cluster *k, pod *p)
{
    coord_error err = {0};
    tell("[%s] is deleted", p->id);
    p->ended = true;
    if (coord_launcher_post_stop(k->launcher, p->id, 0, &err) != COORD_OK &&
        err.status != COORD_ERR_NOT_FOUND) {
        complain("worker", &err);
    }
}

/* ---- looking around ---- */

static void see(cluster *k, const char *id, bool learner)
{
    for (size_t i = 0; i < k->pod_count; i++) {
        if (strcmp(k->pods[i].id, id) == 0) {
            k->pods[i].listed = true;
            return; /* and if its process has ended, it has: no pod is started twice */
        }
    }
    if (k->pod_count < PODS_MAX && !atomic_load(&k->stopping)) {
        pod *p = &k->pods[k->pod_count++];
        (void)snprintf(p->id, sizeof p->id, "%s", id);
        p->listed = true;
        start_process(k, p, learner);
    }
}

static void look_around(cluster *k)
{
    for (size_t i = 0; i < k->pod_count; i++) {
        k->pods[i].listed = false;
    }
    for (int learner = 0; learner < 2; learner++) {
        fake_list list = learner == 1 ? FAKE_LEARNERS : FAKE_COLLECTORS;
        const char *id;
        for (size_t n = 0; (id = fake_operator_id(k->server, list, n)) != NULL; n++) {
            see(k, id, learner == 1);
        }
    }
    for (size_t i = 0; i < k->pod_count; i++) {
        if (!k->pods[i].listed && !k->pods[i].ended) {
            end_process(k, &k->pods[i]);
        }
    }
}

static void *work(void *arg)
{
    cluster *k = arg;
    while (!atomic_load(&k->stopping)) {
        look_around(k);
        (void)nanosleep(&(struct timespec){0, (long)LOOK_MS * 1000000}, NULL);
    }
    return NULL;
}

/* ---- the whole ---- */

cluster *cluster_create(fake_operator *server, const char *worker)
{
    coord_error err = {0};
    cluster *k = calloc(1, sizeof *k);
    if (k == NULL || strlen(worker) >= sizeof k->worker) {
        complain("cluster: no memory", NULL);
        free(k);
        return NULL;
    }
    (void)snprintf(k->worker, sizeof k->worker, "%s", worker);
    k->server = server;
    if (coord_launcher_create(NULL, &k->launcher, &err) != COORD_OK) {
        complain("cluster", &err);
        free(k);
        return NULL;
    }
    fake_operator_set_namer(server, name_pod, NULL);
    if (pthread_create(&k->thread, NULL, work, k) != 0) {
        complain("cluster: no thread", NULL);
        coord_launcher_destroy(k->launcher);
        free(k);
        return NULL;
    }
    return k;
}

bool cluster_crash(cluster *k, const char *id)
{
    coord_error err = {0};
    tell("[%s] is killed", id);
    if (coord_launcher_signal(k->launcher, id, SIGKILL, &err) != COORD_OK) {
        complain("kill", &err);
        return false;
    }
    return true;
}

size_t cluster_count(const cluster *k)
{
    return coord_launcher_count(k->launcher);
}

void cluster_destroy(cluster *k)
{
    coord_error err = {0};
    if (k == NULL) {
        return;
    }
    atomic_store(&k->stopping, true);
    (void)pthread_join(k->thread, NULL);
    if (coord_launcher_close(k->launcher, END_MS, &err) != COORD_OK) {
        complain("workers", &err); /* destroy kills them */
    }
    coord_launcher_destroy(k->launcher);
    free(k);
}
