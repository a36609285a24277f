/* Measurements as tables:
 *
 *     make bench [ARGS="--seconds 2 --repeats 5 --table sim"]
 *
 * All systems of one table run in turn, again and again, so that the machine's changing
 * speed meets all alike: compare figures of one table, and ratios, and nothing else. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct row {
    const char *system;
    const char *executor; /* NULL: gearmand */
    bench_result results[BENCH_REPEATS_MAX];
    int count;
} row;

/* The median of one field over all runs. */
static double median(const row *r, size_t field)
{
    double values[BENCH_REPEATS_MAX];
    for (int i = 0; i < r->count; i++) {
        memcpy(&values[i], (const char *)&r->results[i] + field, sizeof values[i]);
    }
    return bench_median(values, r->count);
}

#define MEDIAN(r, field) median(r, offsetof(bench_result, field))

static void print_row(const row *r, size_t workers, const row *rival)
{
    char ratio[32] = "";
    if (rival != NULL && rival->count > 0 && rival != r) {
        (void)snprintf(ratio, sizeof ratio, "%.2f",
                       MEDIAN(r, trips_per_s) / MEDIAN(rival, trips_per_s));
    }
    (void)printf("%-22s %5zu %4d %9.0f %9.1f %9.1f %9.1f %9.1f %9.1f %9.0f %8s\n",
                 r->system, workers, r->count, MEDIAN(r, trips_per_s), MEDIAN(r, p50_us),
                 MEDIAN(r, p99_us), MEDIAN(r, master_cpu_us), MEDIAN(r, worker_cpu_us),
                 MEDIAN(r, broker_cpu_us), MEDIAN(r, worker_rss_kb), ratio);
    (void)fflush(stdout);
}

static void run_table(size_t workers, double seconds, int repeats)
{
    row rows[] = {
        {.system = "libcoord inline", .executor = "inline"},
        {.system = "libcoord per_task", .executor = "per_task"},
        {.system = "gearmand"},
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    const row *rival = &rows[ROWS - 1];

    for (int i = 0; i < repeats; i++) {
        for (size_t k = 0; k < ROWS; k++) {
            bench_result *to = &rows[k].results[rows[k].count];
            bool ran = rows[k].executor != NULL
                           ? bench_coord(workers, rows[k].executor, seconds, to)
                           : bench_gearman(workers, seconds, to);
            rows[k].count += ran;
        }
    }
    for (size_t k = 0; k < ROWS; k++) {
        if (rows[k].count > 0) {
            print_row(&rows[k], workers, rival);
        } else if (k == ROWS - 1) {
            (void)printf("gearmand: not measured: not installed (apt install "
                         "gearman-job-server libgearman-dev), or over 256 workers\n");
        }
    }
}

static void print_trips(const size_t *sizes, size_t size_count, double seconds,
                        int repeats)
{
    (void)printf(
        "Round trips, closed loop, nil work; medians of %d interleaved runs of %g s\n"
        "%-22s %5s %4s %9s %9s %9s %9s %9s %9s %9s %8s\n",
        repeats, seconds, "system", "N", "runs", "trips/s", "p50 us", "p99 us", "master",
        "workers", "broker", "KB/worker", "ratio");
    for (size_t i = 0; i < size_count; i++) {
        run_table(sizes[i], seconds, repeats);
    }
    (void)printf(
        "master, workers, broker: CPU microseconds per trip. KB/worker: resident "
        "memory of the worker process by their number. ratio: trips/s against "
        "gearmand.\n");
}

/* 1000 workers take some 5000 descriptors. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    double seconds = 1.0;
    int repeats = 5;
    size_t sizes[8] = {1, 64, 1000};
    size_t size_count = 3;
    const char *table = NULL; /* all */

    raise_descriptor_limit();
    if (argc == 4 && strcmp(argv[1], "coord-workers") == 0) {
        return bench_coord_workers(strtoul(argv[2], NULL, 10), argv[3]);
    }
    if (argc == 4 && strcmp(argv[1], "gearman-workers") == 0) {
        return bench_gearman_workers(strtoul(argv[2], NULL, 10), atoi(argv[3]));
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0) {
            seconds = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--repeats") == 0) {
            repeats = atoi(argv[i + 1]);
        } else if (strcmp(argv[i], "--workers") == 0) {
            sizes[0] = strtoul(argv[i + 1], NULL, 10);
            size_count = 1;
        } else if (strcmp(argv[i], "--table") == 0) {
            table = argv[i + 1];
        }
    }
    bool trips = table == NULL || strcmp(table, "trips") == 0;
    bool sim = table == NULL || strcmp(table, "sim") == 0;
    if (seconds <= 0.0 || repeats < 1 || repeats > BENCH_REPEATS_MAX || sizes[0] < 1 ||
        (!trips && !sim)) {
        (void)fprintf(stderr,
                      "bench [--seconds S] [--repeats 1..%d] [--workers N] [--table "
                      "trips|sim]\n",
                      BENCH_REPEATS_MAX);
        return 2;
    }
    if (trips) {
        print_trips(sizes, size_count, seconds, repeats);
    }
    if (sim) {
        (void)printf("%s", trips ? "\n" : "");
        bench_sim(seconds, repeats);
    }
    return 0;
}
