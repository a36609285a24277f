/* A collector of the CartPole run: plays with the newest policy and writes down what
 * happened, or plays with a given policy to find out how good it is.
 *
 * Only names and numbers pass through the coordinator; policies and chunks are files in
 * the run's folder. Episodes that a chunk cuts off go on in the next one, so what is
 * being played is kept from task to task. */
#include "files.h"
#include "job.h"
#include "paths.h"
#include "policy.h"
#include "report.h"
#include "rollout.h"
#include "serve.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Steps run one at a time: no lock. */
typedef struct collector {
    job job;
    bool done;
    mlp *policy;
    int64_t version; /* of `policy` */
    rollout *rollout;
    chunk *chunk;
    int64_t chunks; /* made with this rollout */
    int64_t rollout_envs;
    int64_t rollout_steps;
    char rollout_folder[PATH_SIZE];
    evaluation evaluation;
} collector;

/* ---- start ---- */

/* Each collector plays games of its own, whatever the order of the tasks is. */
static uint64_t own_seed(const job *j)
{
    uint64_t hash = 14695981039346656037U; /* FNV-1a */
    for (const char *c = j->collector_id; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * 1099511628211U;
    }
    return rng_mix((uint64_t)j->seed, hash);
}

/* The games under way are for this task, too, unless it belongs to another run. */
static coord_status prepare_rollout(collector *c, coord_error *err)
{
    const job *j = &c->job;
    if (c->chunk != NULL && c->rollout_envs == j->envs && c->rollout_steps == j->steps &&
        strcmp(c->rollout_folder, j->folder) == 0) {
        return COORD_OK;
    }
    rollout_destroy(c->rollout);
    chunk_destroy(c->chunk);
    c->chunk = NULL;
    c->rollout = rollout_create((size_t)j->envs, (size_t)j->steps, own_seed(j));
    if (c->rollout != NULL) {
        c->chunk = rollout_chunk(c->rollout);
    }
    if (c->chunk == NULL) {
        return report(err, COORD_ERR_NOMEM, "rollout: out of memory");
    }
    c->chunks = 0;
    c->rollout_envs = j->envs;
    c->rollout_steps = j->steps;
    (void)snprintf(c->rollout_folder, sizeof c->rollout_folder, "%s", j->folder);
    return COORD_OK;
}

static coord_status start(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    collector *c = user;
    (void)slave;
    (void)out;

    c->done = false;
    coord_status rc = job_read(in, &c->job, err);
    return rc == COORD_OK && !c->job.evaluate ? prepare_rollout(c, err) : rc;
}

/* ---- data ---- */

static coord_status load_policy(collector *c, int64_t version, coord_error *err)
{
    char path[PATH_SIZE];
    coord_status rc = path_of_policy(path, c->job.folder, version, err);
    return rc == COORD_OK ? policy_read(path, c->policy, &c->version, err) : rc;
}

static coord_status play(collector *c, coord_out *out, coord_error *err)
{
    char name[NAME_SIZE + 32];
    char path[PATH_SIZE];
    int64_t newest = 0;

    coord_status rc = checkpoint_read(c->job.folder, &newest, NULL, err);
    if (rc == COORD_OK) {
        rc = load_policy(c, newest, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    rollout_collect(c->rollout, c->policy, c->chunk);
    c->chunk->policy_version = c->version;
    c->chunks++;
    (void)snprintf(name, sizeof name, "%s-%" PRId64, c->job.collector_id, c->chunks);
    rc = path_of_chunk(path, c->job.folder, name, err);
    if (rc == COORD_OK) {
        rc = chunk_write(path, c->chunk, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    c->done = true;
    return coord_out_printf(out, err,
                            "{\"data_id\": \"%s\", \"file\": \"%s\", "
                            "\"policy_version\": %" PRId64
                            ", \"steps\": %zu, \"episodes\": %zu}",
                            name, name, c->version, c->chunk->steps, c->chunk->episodes);
}

static coord_status evaluate(collector *c, coord_error *err)
{
    coord_status rc = load_policy(c, c->job.version, err);
    if (rc == COORD_OK && !rollout_evaluate(c->policy, (size_t)c->job.episodes,
                                            (uint64_t)c->job.seed, &c->evaluation)) {
        rc = report(err, COORD_ERR_NOMEM, "evaluation: out of memory");
    }
    c->done = rc == COORD_OK;
    return rc;
}

/* A sample if it has a data_id, else progress: that there is no more to come. */
static coord_status data(coord_slave *slave, coord_text in, coord_out *out,
                         coord_error *err, void *user)
{
    collector *c = user;
    (void)slave;
    (void)in;

    if (!c->done && !c->job.evaluate) {
        return play(c, out, err);
    }
    coord_status rc = c->done ? COORD_OK : evaluate(c, err);
    return rc == COORD_OK ? coord_out_printf(out, err, "{\"collector_done\": true}") : rc;
}

/* ---- close ---- */

static coord_status close_task(coord_slave *slave, coord_text in, coord_out *out,
                               coord_error *err, void *user)
{
    const collector *c = user;
    const evaluation *e = &c->evaluation;
    (void)slave;
    (void)in;

    if (!c->job.evaluate) {
        return COORD_OK; /* all has been said */
    }
    return coord_out_printf(out, err,
                            "{\"policy_version\": %" PRId64
                            ", \"episodes\": %zu, \"mean\": %.3f, \"min\": %.0f, "
                            "\"max\": %.0f}",
                            c->version, e->episodes, e->mean, e->min, e->max);
}

int main(int argc, char **argv)
{
    static collector c;
    coord_error err = {0};
    coord_collector *self = NULL;
    coord_slave_options options;
    coord_collector_callbacks callbacks;

    int status = serve_init(argc, argv);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    c.policy = policy_create(JOB_ENVS_MAX);
    if (c.policy == NULL) {
        (void)fprintf(stderr, "%s: out of memory\n", argv[0]);
        return EXIT_FAILURE;
    }
    serve_options(&options);
    coord_collector_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.start = start;
    callbacks.data = data;
    callbacks.close = close_task;
    callbacks.user = &c;
    if (coord_collector_create(&options, &callbacks, &self, &err) != COORD_OK) {
        status = complain(argv[0], &err);
    } else {
        status = serve(argv[0], coord_collector_slave(self));
    }
    coord_collector_destroy(self);
    return status;
}
