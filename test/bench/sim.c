/* Simulated runs: how many whole tests of a host one core does in a second. */
#include "bench.h"

#include "coord.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct variant {
    const char *name;
    const char *config;
    int64_t step_ms; /* of the workers, virtual */
    double runs_per_s[BENCH_REPEATS_MAX];
    double cpu_us[BENCH_REPEATS_MAX];
} variant;

static variant variants[] = {
    {.name = "per_task", .config = "{}"},
    {.name = "inline", .config = "{\"executor\": \"inline\"}"},
    {.name = "per_task, slow workers", .config = "{}", .step_ms = 10},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

static void must(coord_status rc, const coord_error *err)
{
    if (rc != COORD_OK) {
        (void)fprintf(stderr, "bench: sim: %s: %s\n", err->text, err->cause);
        exit(1);
    }
}

/* ---- the least of hosts ---- */

static void on_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    const char *data_id, coord_text data, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)data_id;
    (void)data;
    ++*(int *)user;
}

static bool on_judge(CommCoordinator *c, const char *task_id, coord_text info, void *user)
{
    (void)c;
    (void)task_id;
    (void)info;
    (void)user;
    return true;
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    (void)c;
    (void)task_id;
    (void)result;
    ++*(int *)user;
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    (void)c;
    (void)task_id;
    (void)user;
    must(why->status, why);
}

static CommCoordinator *make_coordinator(coord_sim *sim, coord_loop *loop,
                                         const variant *v, int *events)
{
    coord_error err = {0};
    char *config = NULL;
    CommCoordinator *c = NULL;
    comm_coordinator_callbacks cb;
    comm_coordinator_options options;
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = on_data;
    cb.deal_with_collector_judge_finish = on_judge;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_task_fail = on_fail;
    cb.user = events;
    must(coord_sim_worker_config(sim, "host", v->config, &config, &err), &err);
    comm_coordinator_options_init(&options, sizeof options);
    options.config = config;
    options.callbacks = &cb;
    options.loop = loop;
    must(comm_coordinator_create(&options, &c, &err), &err);
    coord_free(config);
    return c;
}

/* A world, a coordinator, two collectors, one task of three samples, and all the way
 * back. */
static void run_once(const variant *v, uint64_t seed)
{
    coord_error err = {0};
    coord_sim *sim = NULL;
    coord_loop *loop = NULL;
    int events = 0;
    coord_sim_options options;
    coord_sim_worker_options worker;
    coord_sim_options_init(&options, sizeof options);
    options.seed = seed;
    must(coord_sim_create(&options, &sim, &err), &err);
    must(coord_sim_loop(sim, "host", &loop, &err), &err);
    coord_sim_worker_options_init(&worker, sizeof worker);
    worker.step_ms[COORD_SIM_STEP_ANY] = v->step_ms;
    must(coord_sim_worker_add(sim, &worker, NULL, &err), &err);
    must(coord_sim_worker_add(sim, &worker, NULL, &err), &err);

    CommCoordinator *c = make_coordinator(sim, loop, v, &events);
    coord_text task = coord_text_of("{\"task_id\": \"t\", \"buffer_id\": \"b\"}");
    must(comm_coordinator_start(c, &err), &err);
    must(comm_coordinator_send_collector_task(c, task, NULL, &err), &err);
    must(comm_coordinator_wait(c, 60000, &err), &err);
    must(comm_coordinator_close(c, &err), &err);
    comm_coordinator_destroy(c);
    coord_loop_destroy(loop);
    coord_sim_destroy(sim);
    if (events != 4) {
        (void)fprintf(stderr, "bench: sim: %d events instead of 4\n", events);
        exit(1);
    }
}

static void measure(variant *v, double seconds, int repeat)
{
    int64_t from = bench_now_ns();
    int64_t end = from + (int64_t)(seconds * 1e9);
    double cpu = bench_cpu_s();
    uint64_t runs = 0;
    do {
        run_once(v, ++runs);
    } while (bench_now_ns() < end);
    v->runs_per_s[repeat] = (double)runs / ((double)(bench_now_ns() - from) * 1e-9);
    v->cpu_us[repeat] = (bench_cpu_s() - cpu) / (double)runs * 1e6;
}

void bench_sim(double seconds, int repeats)
{
    cpu_set_t all;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    bool pinned = sched_getaffinity(0, sizeof all, &all) == 0 &&
                  sched_setaffinity(0, sizeof one, &one) == 0;
    for (int i = 0; i < repeats; i++) {
        for (size_t k = 0; k < VARIANTS; k++) {
            measure(&variants[k], seconds, i);
        }
    }
    if (pinned) {
        (void)sched_setaffinity(0, sizeof all, &all);
    }
    (void)printf(
        "Simulated runs on one core: world, coordinator, two workers, a task of 3 "
        "samples, close; medians of %d interleaved runs of %g s\n"
        "%-22s %9s %9s\n",
        repeats, seconds, "executor", "runs/s", "CPU us");
    for (size_t k = 0; k < VARIANTS; k++) {
        (void)printf("%-22s %9.0f %9.0f\n", variants[k].name,
                     bench_median(variants[k].runs_per_s, repeats),
                     bench_median(variants[k].cpu_us, repeats));
    }
    (void)printf(
        "slow workers: each step takes 10 virtual ms, so each worker has a thread "
        "to wait in.\n");
    (void)fflush(stdout);
}
