/* Measurements of round trips: one task out, one result back, always one under way per
 * slave. Each system runs its workers in a process of their own. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one run of one system gave. */
typedef struct bench_result {
    double trips_per_s;
    double p50_us;
    double p99_us;
    double master_cpu_us; /* per trip */
    double worker_cpu_us;
    double broker_cpu_us;
    double worker_rss_kb; /* per worker, above a process with one; 0: not measured */
} bench_result;

/* Latencies, each in a bucket of 1.6 % width: 64 a power of two. */
enum { BENCH_BUCKETS = 64 * 40 };
typedef struct bench_histogram {
    uint64_t count[BENCH_BUCKETS];
    uint64_t total;
} bench_histogram;

void bench_record(bench_histogram *h, int64_t ns);
double bench_percentile(const bench_histogram *h, double share); /* in microseconds */

enum { BENCH_REPEATS_MAX = 50 };
double bench_median(double *values, int count); /* sorts them; 0 of none */

int64_t bench_now_ns(void);
void bench_wait(double seconds);
double bench_cpu_s(void);        /* of this process */
double bench_cpu_of_s(long pid); /* of another */
double bench_rss_kb(long pid);   /* resident memory */

/* A worker process: this program again, with these arguments. It says "ready ..." on its
 * standard output and ends when its standard input closes. */
typedef struct bench_child {
    long pid;
    int to;
    int from;
} bench_child;
bool bench_spawn(bench_child *child, char *const argv[]);
/* Reads up to a newline, so long as seconds allow. */
bool bench_read_line(bench_child *child, char *line, size_t size, int seconds);
void bench_end(bench_child *child);

/* libcoord, in loop.c. `light`: nothing is known of the workers but that they exist. */
bool bench_coord(size_t workers, const char *executor, double seconds, bench_result *ret);
int bench_coord_workers(size_t workers, const char *executor);

/* gearmand, in gearman.c; false when it is not installed. */
bool bench_gearman(size_t workers, double seconds, bench_result *ret);
int bench_gearman_workers(size_t workers, int port);

/* Whole runs of a simulated cluster, in sim.c; prints its table. */
void bench_sim(double seconds, int repeats);

#endif
