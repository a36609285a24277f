#include "support/env_rig.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATIENCE_MS = 20000 };

typedef struct errand {
    coordi_job job;
    coordi_event *done;
    env_rig *rig;
    void (*run)(void *arg);
    void *arg;
} errand;

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "env_rig: %s\n", what);
        abort();
    }
}

void env_rig_open(env_rig *rig, coord_log_fn *log, void *user)
{
    coord_loop_options options;
    coord_loop_options_init(&options, sizeof options);
    options.log = log;
    options.user = user;
    must(coord_loop_create(&options, &rig->loop, NULL) == COORD_OK, "no loop");
    rig->event = rig->loop->env->event_create(rig->loop);
    must(rig->event != NULL, "no event");
}

void env_rig_close(env_rig *rig)
{
    rig->loop->env->event_destroy(rig->event);
    coordi_loop_retire(rig->loop);
}

static void errand_run(coordi_job *job)
{
    errand *at = COORDI_ITEM(job, errand, job);
    at->run(at->arg);
    at->rig->loop->env->event_set(at->done);
}

void env_rig_do(env_rig *rig, void (*run)(void *arg), void *arg)
{
    coord_loop *loop = rig->loop;
    errand at = {.job.run = errand_run, .rig = rig, .run = run, .arg = arg};
    at.done = loop->env->event_create(loop);
    must(at.done != NULL, "no event");
    coordi_post(loop, &at.job);
    must(loop->env->event_wait(at.done, coordi_now(loop) + PATIENCE_MS), "loop hangs");
    loop->env->event_destroy(at.done);
}

bool env_rig_await(env_rig *rig)
{
    return rig->loop->env->event_wait(rig->event, coordi_now(rig->loop) + PATIENCE_MS);
}

void env_rig_wake(env_rig *rig)
{
    rig->loop->env->event_set(rig->event);
}
