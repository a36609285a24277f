#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void print(const char *line, void *user)
{
    (void)user;
    (void)fprintf(stderr, "    | %s\n", line);
}

void world_must(world *w, coord_status rc, const coord_error *err)
{
    if (rc != COORD_OK) {
        coord_sim_report(w->sim, print, NULL);
        fail_msg("%s: %s: %s", coord_status_str(rc), err->text, err->cause);
    }
}

void world_open(world *w, uint64_t seed)
{
    coord_error err = {0};
    coord_sim_options options;
    const char *wanted = getenv("SEED");
    coord_sim_options_init(&options, sizeof options);
    options.seed = wanted == NULL ? seed : strtoull(wanted, NULL, 10);
    *w = (world){0};
    world_must(w, coord_sim_create(&options, &w->sim, &err), &err);
    world_must(w, coord_sim_loop(w->sim, "host", &w->loop, &err), &err);
}

coord_sim_worker *world_add(world *w, coord_role role, const coord_sim_fault *fault)
{
    coord_error err = {0};
    coord_sim_worker *worker = NULL;
    coord_sim_worker_options options;
    coord_sim_worker_options_init(&options, sizeof options);
    options.role = role;
    options.faults = fault;
    options.fault_count = fault == NULL ? 0 : 1;
    world_must(w, coord_sim_worker_add(w->sim, &options, &worker, &err), &err);
    return worker;
}

void world_start(world *w, host_goal goal)
{
    coord_error err = {0};
    char *config = NULL;
    world_must(w, coord_sim_worker_config(w->sim, "host", NULL, &config, &err), &err);
    w->host = host_create(config, w->loop, goal, &err);
    coord_free(config);
    assert_non_null(w->host);
    world_must(w, host_start(w->host, &err), &err);
}

void world_close(world *w)
{
    coord_error err = {0};
    if (w->host != NULL) {
        world_must(w, host_close(w->host, &err), &err);
    }
    host_destroy(w->host);
    coord_loop_destroy(w->loop);
    coord_sim_destroy(w->sim); /* its workers go with it */
}
