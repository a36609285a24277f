#include "bench.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* ---- latencies ---- */

/* 64 buckets for each power of two. */
static size_t bucket_of(uint64_t ns)
{
    if (ns < 64) {
        return (size_t)ns;
    }
    unsigned power = 63U - (unsigned)__builtin_clzll(ns);
    size_t at = 64 * (power - 5) + ((ns >> (power - 6)) & 63);
    return at < BENCH_BUCKETS ? at : BENCH_BUCKETS - 1;
}

static double middle_of(size_t bucket)
{
    if (bucket < 64) {
        return (double)bucket;
    }
    double power = (double)(1ULL << (bucket / 64 + 5));
    return power * (1.0 + ((double)(bucket % 64) + 0.5) / 64.0);
}

void bench_record(bench_histogram *h, int64_t ns)
{
    h->count[bucket_of(ns < 0 ? 0 : (uint64_t)ns)]++;
    h->total++;
}

double bench_percentile(const bench_histogram *h, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)h->total);
    uint64_t seen = 0;
    for (size_t i = 0; i < BENCH_BUCKETS; i++) {
        seen += h->count[i];
        if (seen > wanted) {
            return middle_of(i) / 1000.0;
        }
    }
    return 0.0;
}

/* ---- medians ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof values[0], by_value);
    return count == 0 ? 0.0 : (values[(count - 1) / 2] + values[count / 2]) / 2.0;
}

/* ---- clocks and counters ---- */

int64_t bench_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void bench_wait(double seconds)
{
    (void)poll(NULL, 0, (int)(seconds * 1000.0));
}

double bench_cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* User and system time are fields 14 and 15 of /proc/PID/stat, proc(5). */
double bench_cpu_of_s(long pid)
{
    char path[64];
    char text[1024] = "";
    unsigned long user = 0;
    unsigned long system = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (f != NULL) {
        size_t len = fread(text, 1, sizeof text - 1, f);
        text[len] = '\0';
        (void)fclose(f);
    }
    const char *after_name = strrchr(text, ')');
    if (after_name != NULL) {
        (void)sscanf(after_name + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                     &system);
    }
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

double bench_rss_kb(long pid)
{
    char path[64];
    long pages = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/statm", pid);
    FILE *f = fopen(path, "re");
    if (f != NULL) {
        if (fscanf(f, "%*s %ld", &pages) != 1) {
            pages = 0;
        }
        (void)fclose(f);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1024.0;
}

/* ---- children ---- */

bool bench_spawn(bench_child *child, char *const argv[])
{
    int to[2];
    int from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
        return false;
    }
    posix_spawn_file_actions_t files;
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawn_file_actions_adddup2(&files, to[0], 0);
    (void)posix_spawn_file_actions_adddup2(&files, from[1], 1);
    pid_t pid;
    int failed = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)close(to[0]);
    (void)close(from[1]);
    child->pid = pid;
    child->to = to[1];
    child->from = from[0];
    return failed == 0;
}

bool bench_read_line(bench_child *child, char *line, size_t size, int seconds)
{
    size_t at = 0;
    int64_t end = bench_now_ns() + (int64_t)seconds * 1000000000;
    while (at + 1 < size && bench_now_ns() < end) {
        struct pollfd wait = {.fd = child->from, .events = POLLIN};
        if (poll(&wait, 1, 100) <= 0) {
            continue;
        }
        if (read(child->from, line + at, 1) != 1) {
            return false;
        }
        if (line[at] == '\n') {
            line[at] = '\0';
            return true;
        }
        at++;
    }
    return false;
}

void bench_end(bench_child *child)
{
    int status;
    (void)close(child->to);
    (void)close(child->from);
    (void)waitpid((pid_t)child->pid, &status, 0);
}
