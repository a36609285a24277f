/* libcoord against itself: a master here, all slaves in one other process. */
#include "bench.h"

#include "coord.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a task of a trainer looks like, about 100 bytes each way. */
#define TASK                                                                             \
    "{\"name\": \"collector_data_task\", \"buffer_id\": \"policy_default_buffer\", "     \
    "\"n\": 8}"
#define RESULT                                                                           \
    "{\"data_id\": \"env_0_sample_1234\", \"unroll_len\": 8, \"priority\": 1.0, "        \
    "\"cur_step\": 1234, \"buffer_id\": \"policy_default_buffer\"}"

static coord_executor executor_of(const char *name)
{
    return strcmp(name, "inline") == 0 ? COORD_EXECUTOR_INLINE : COORD_EXECUTOR_PER_TASK;
}

static void die(const char *what, const coord_error *err)
{
    (void)fprintf(stderr, "bench: %s: %s: %s\n", what, err->text, err->cause);
    exit(1);
}

/* ---- slaves ---- */

static coord_status no_work(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    (void)slave;
    (void)data;
    (void)user;
    return coord_out_json(out, (coord_text){RESULT, sizeof RESULT - 1}, NULL);
}

int bench_coord_workers(size_t workers, const char *executor)
{
    coord_error err = {0};
    coord_loop *loop;
    coord_slave **slaves = calloc(workers, sizeof(coord_slave *));
    if (slaves == NULL || coord_loop_create(NULL, &loop, &err) != COORD_OK) {
        die("loop", &err);
        return 1;
    }
    (void)printf("ready");
    for (size_t i = 0; i < workers; i++) {
        coord_slave_options o;
        coord_slave_options_init(&o, sizeof o);
        o.loop = loop;
        o.executor = executor_of(executor);
        o.process_task = no_work;
        if (coord_slave_create(&o, &slaves[i], &err) != COORD_OK) {
            die("slave", &err);
        }
        (void)printf(" %u", (unsigned)coord_slave_port(slaves[i]));
    }
    (void)printf("\n");
    (void)fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    for (size_t i = 0; i < workers; i++) {
        coord_slave_destroy(slaves[i]);
    }
    coord_loop_destroy(loop);
    free(slaves);
    return 0;
}

/* ---- master ---- */

typedef struct trip {
    struct rig *rig;
    coord_connection *connection;
    int64_t begun_ns;
} trip;

typedef struct rig {
    trip *trips;
    size_t count;
    atomic_int phase; /* 0: warming up, 1: measuring, 2: winding down */
    atomic_size_t under_way;
    atomic_ulong done;
    bench_histogram *histograms; /* one per trip: no sharing between threads */
} rig;

static void begin(trip *t);

static void on_complete(coord_task *task, const coord_error *failure, void *user)
{
    trip *t = user;
    (void)task;
    (void)failure;
    if (atomic_load(&t->rig->phase) == 1) {
        bench_record(&t->rig->histograms[t - t->rig->trips],
                     bench_now_ns() - t->begun_ns);
        atomic_fetch_add(&t->rig->done, 1);
    }
    begin(t);
}

static void on_fail(coord_task *task, const coord_error *failure, void *user)
{
    (void)task;
    (void)user;
    die("task", failure);
}

static void begin(trip *t)
{
    coord_error err = {0};
    coord_task *task;
    if (atomic_load(&t->rig->phase) == 2) {
        atomic_fetch_sub(&t->rig->under_way, 1);
        return;
    }
    t->begun_ns = bench_now_ns();
    if (coord_connection_new_task(t->connection, (coord_text){TASK, sizeof TASK - 1},
                                  &task, &err) != COORD_OK ||
        coord_task_on_complete(task, on_complete, t, &err) != COORD_OK ||
        coord_task_on_fail(task, on_fail, NULL, &err) != COORD_OK ||
        coord_task_start(task, 0, 60000, &err) != COORD_OK) {
        die("trip", &err);
    }
    coord_task_unref(task);
}

static void connect_all(rig *r, coord_master *master, char *ports)
{
    coord_error err = {0};
    char *at = strtok(ports, " "); /* "ready" */
    for (size_t i = 0; i < r->count; i++) {
        char id[32];
        at = strtok(NULL, " ");
        (void)snprintf(id, sizeof id, "slave%zu", i);
        coord_connection_options o;
        coord_connection_options_init(&o, sizeof o);
        o.id = id;
        o.host = "127.0.0.1";
        o.port = (uint16_t)strtoul(at == NULL ? "0" : at, NULL, 10);
        if (coord_master_new_connection(master, &o, &r->trips[i].connection, &err) !=
                COORD_OK ||
            coord_connection_connect(r->trips[i].connection, (coord_text){NULL, 0}, 20000,
                                     &err) != COORD_OK) {
            die("connect", &err);
        }
        r->trips[i].rig = r;
    }
}

static void measure(rig *r, double seconds, const bench_child *child, bench_result *ret)
{
    atomic_store(&r->under_way, r->count);
    for (size_t i = 0; i < r->count; i++) {
        begin(&r->trips[i]);
    }
    bench_wait(seconds / 4);
    double cpu = bench_cpu_s();
    double worker_cpu = bench_cpu_of_s(child->pid);
    int64_t from = bench_now_ns();
    atomic_store(&r->phase, 1);
    bench_wait(seconds);
    double trips = (double)atomic_load(&r->done);
    double took = (double)(bench_now_ns() - from) * 1e-9;
    ret->trips_per_s = trips / took;
    ret->master_cpu_us = (bench_cpu_s() - cpu) / trips * 1e6;
    ret->worker_cpu_us = (bench_cpu_of_s(child->pid) - worker_cpu) / trips * 1e6;
    ret->worker_rss_kb = bench_rss_kb(child->pid) / (double)r->count;
    atomic_store(&r->phase, 2);
    while (atomic_load(&r->under_way) > 0) {
        bench_wait(0.001);
    }
}

bool bench_coord(size_t workers, const char *executor, double seconds, bench_result *ret)
{
    coord_error err = {0};
    char number[32];
    (void)snprintf(number, sizeof number, "%zu", workers);
    char *argv[] = {"/proc/self/exe", "coord-workers", number,
                    (char *)(uintptr_t)executor, NULL};
    bench_child child;
    size_t line_size = 32 + workers * 6;
    char *line = malloc(line_size);
    rig r = {.count = workers};
    r.trips = calloc(workers, sizeof *r.trips);
    r.histograms = calloc(workers, sizeof *r.histograms);
    if (line == NULL || r.trips == NULL || r.histograms == NULL ||
        !bench_spawn(&child, argv) || !bench_read_line(&child, line, line_size, 30)) {
        die("workers", &err);
        return false;
    }
    coord_master *master;
    coord_master_options o;
    coord_master_options_init(&o, sizeof o);
    o.executor = executor_of(executor);
    if (coord_master_create(&o, &master, &err) != COORD_OK) {
        die("master", &err);
    }
    connect_all(&r, master, line);
    measure(&r, seconds, &child, ret);
    for (size_t i = 1; i < workers; i++) {
        for (size_t b = 0; b < BENCH_BUCKETS; b++) {
            r.histograms[0].count[b] += r.histograms[i].count[b];
        }
        r.histograms[0].total += r.histograms[i].total;
    }
    ret->p50_us = bench_percentile(&r.histograms[0], 0.50);
    ret->p99_us = bench_percentile(&r.histograms[0], 0.99);
    for (size_t i = 0; i < workers; i++) {
        coord_connection_destroy(r.trips[i].connection);
    }
    coord_master_destroy(master);
    bench_end(&child);
    free(r.trips);
    free(r.histograms);
    free(line);
    return true;
}
