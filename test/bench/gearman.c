/* The yardstick: gearmand with one blocking client thread per worker and as many worker
 * threads, foreground jobs of the same size. */
#include "bench.h"

#if __has_include(<libgearman/gearman.h>)

#include <libgearman/gearman.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static const char PAYLOAD[] =
    "{\"data_id\": \"env_0_sample_1234\", \"unroll_len\": 8, \"priority\": 1.0, "
    "\"cur_step\": 1234, \"buffer_id\": \"policy_default_buffer\"}";

/* ---- workers ---- */

static void *no_work(gearman_job_st *job, void *user, size_t *size, gearman_return_t *rc)
{
    (void)job;
    (void)user;
    char *result = malloc(sizeof PAYLOAD - 1);
    if (result != NULL) {
        memcpy(result, PAYLOAD, sizeof PAYLOAD - 1);
    }
    *size = sizeof PAYLOAD - 1;
    *rc = GEARMAN_SUCCESS;
    return result;
}

static void *work(void *user)
{
    gearman_worker_st *worker = gearman_worker_create(NULL);
    gearman_worker_add_server(worker, "127.0.0.1", (in_port_t) * (int *)user);
    gearman_worker_add_function(worker, "trip", 0, no_work, NULL);
    while (gearman_worker_work(worker) == GEARMAN_SUCCESS) {
    }
    gearman_worker_free(worker);
    return NULL;
}

int bench_gearman_workers(size_t workers, int port)
{
    for (size_t i = 0; i < workers; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, &port) != 0) {
            return 1;
        }
        (void)pthread_detach(thread);
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    _exit(0); /* its threads wait inside libgearman */
}

/* ---- clients ---- */

typedef struct client {
    pthread_t thread;
    int port;
    atomic_int *phase;
    atomic_ulong *done;
    bench_histogram histogram;
} client;

static void *drive(void *user)
{
    client *c = user;
    gearman_client_st *g = gearman_client_create(NULL);
    gearman_client_add_server(g, "127.0.0.1", (in_port_t)c->port);
    while (atomic_load(c->phase) != 2) {
        size_t size = 0;
        gearman_return_t rc;
        int64_t begun = bench_now_ns();
        void *result =
            gearman_client_do(g, "trip", NULL, PAYLOAD, sizeof PAYLOAD - 1, &size, &rc);
        free(result);
        if (rc == GEARMAN_SUCCESS && atomic_load(c->phase) == 1) {
            bench_record(&c->histogram, bench_now_ns() - begun);
            atomic_fetch_add(c->done, 1);
        }
    }
    gearman_client_free(g);
    return NULL;
}

static int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int port = 0;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 &&
        getsockname(fd, (struct sockaddr *)&a, &len) == 0) {
        port = ntohs(a.sin_port);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return port;
}

static bool await_port(int port)
{
    for (int i = 0; i < 200; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool there = fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
        if (fd >= 0) {
            (void)close(fd);
        }
        if (there) {
            return true;
        }
        bench_wait(0.02);
    }
    return false;
}

static void measure(client *clients, size_t count, double seconds,
                    const bench_child *broker, const bench_child *workers,
                    bench_result *ret)
{
    atomic_int phase = 0;
    atomic_ulong done = 0;
    for (size_t i = 0; i < count; i++) {
        clients[i].phase = &phase;
        clients[i].done = &done;
        (void)pthread_create(&clients[i].thread, NULL, drive, &clients[i]);
    }
    bench_wait(seconds / 4);
    double cpu = bench_cpu_s();
    double worker_cpu = bench_cpu_of_s(workers->pid);
    double broker_cpu = bench_cpu_of_s(broker->pid);
    int64_t from = bench_now_ns();
    atomic_store(&phase, 1);
    bench_wait(seconds);
    double trips = (double)atomic_load(&done);
    ret->trips_per_s = trips / ((double)(bench_now_ns() - from) * 1e-9);
    ret->master_cpu_us = (bench_cpu_s() - cpu) / trips * 1e6;
    ret->worker_cpu_us = (bench_cpu_of_s(workers->pid) - worker_cpu) / trips * 1e6;
    ret->broker_cpu_us = (bench_cpu_of_s(broker->pid) - broker_cpu) / trips * 1e6;
    ret->worker_rss_kb = bench_rss_kb(workers->pid) / (double)count;
    atomic_store(&phase, 2);
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(clients[i].thread, NULL);
        for (size_t b = 0; i > 0 && b < BENCH_BUCKETS; b++) {
            clients[0].histogram.count[b] += clients[i].histogram.count[b];
        }
        clients[0].histogram.total += i > 0 ? clients[i].histogram.total : 0;
    }
    ret->p50_us = bench_percentile(&clients[0].histogram, 0.50);
    ret->p99_us = bench_percentile(&clients[0].histogram, 0.99);
}

bool bench_gearman(size_t workers, double seconds, bench_result *ret)
{
    char port_text[16];
    char number[32];
    char line[64];
    int port = free_port();
    memset(ret, 0, sizeof *ret);
    (void)snprintf(port_text, sizeof port_text, "%d", port);
    (void)snprintf(number, sizeof number, "%zu", workers);
    char *broker_argv[] = {"gearmand", "--listen=127.0.0.1", "--port",
                           port_text,  "--log-file=none",    "--file-descriptors=20000",
                           NULL};
    char *worker_argv[] = {"/proc/self/exe", "gearman-workers", number, port_text, NULL};
    bench_child broker;
    bench_child pool;
    if (workers > 256 || !bench_spawn(&broker, broker_argv)) {
        return false; /* one thread per client: no fair figure beyond */
    }
    bool ready = await_port(port) && bench_spawn(&pool, worker_argv);
    client *clients = calloc(workers, sizeof *clients);
    if (ready && clients != NULL && bench_read_line(&pool, line, sizeof line, 30)) {
        for (size_t i = 0; i < workers; i++) {
            clients[i].port = port;
        }
        measure(clients, workers, seconds, &broker, &pool, ret);
    }
    free(clients);
    if (ready) {
        bench_end(&pool);
    }
    (void)kill((pid_t)broker.pid, SIGTERM);
    bench_end(&broker);
    return ret->trips_per_s > 0.0;
}

#else

bool bench_gearman(size_t workers, double seconds, bench_result *ret)
{
    (void)workers;
    (void)seconds;
    (void)ret;
    return false;
}

int bench_gearman_workers(size_t workers, int port)
{
    (void)workers;
    (void)port;
    return 1;
}

#endif
