/* The learner of the CartPole run: reads chunks, improves the policy, and writes down
 * every version of it.
 *
 * A version is published in an order that collectors can rely on: first its files, then
 * checkpoint.json, which names them. */
#include "files.h"
#include "paths.h"
#include "report.h"
#include "serve.h"

#include "coord/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNKS_MAX = 64 };

/* Steps run one at a time: no lock. */
typedef struct learner {
    char folder[PATH_SIZE];
    int64_t batch_size; /* chunks for one update */
    ppo *ppo;
} learner;

/* The chunks of one update, and what they tell. */
typedef struct batch_of_chunks {
    chunk *chunks[CHUNKS_MAX];
    size_t count;
    size_t episodes;
    double returns; /* of these episodes, summed up */
    int64_t lag;    /* versions that the oldest chunk is behind */
} batch_of_chunks;

/* ---- start ---- */

static coord_status publish(const learner *l, coord_error *err)
{
    char path[PATH_SIZE];
    coord_status rc = path_of_policy(path, l->folder, l->ppo->updates, err);
    if (rc == COORD_OK) {
        rc = policy_write(path, l->ppo, err);
    }
    if (rc == COORD_OK) {
        rc = path_of_learner(path, l->folder, l->ppo->updates, err);
    }
    if (rc == COORD_OK) {
        rc = learner_write(path, l->ppo, err);
    }
    if (rc == COORD_OK) {
        rc = checkpoint_write(l->folder, l->ppo->updates, l->ppo->env_steps, false, err);
    }
    return rc;
}

static coord_status read_task(learner *l, const json_t *task, int64_t *seed,
                              coord_error *err)
{
    const char *folder = "";
    coord_status rc = coord_json_get_string(task, "folder", &folder, err);
    if (rc == COORD_OK) {
        rc = coord_json_get_int(task, "seed", seed, err);
    }
    if (rc == COORD_OK) {
        rc = coord_json_get_int(task, "batch_size", &l->batch_size, err);
    }
    if (rc == COORD_OK && (l->batch_size < 1 || l->batch_size > CHUNKS_MAX)) {
        rc =
            report(err, COORD_ERR_FORMAT, "batch_size: must be from 1 to %d", CHUNKS_MAX);
    }
    (void)snprintf(l->folder, sizeof l->folder, "%s", folder);
    return rc;
}

static coord_status start(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    learner *l = user;
    json_t *task = NULL;
    int64_t seed = 0;
    ppo_options options;
    (void)slave;
    (void)out;

    coord_status rc = coord_json_parse(in, &task, err);
    if (rc == COORD_OK) {
        rc = read_task(l, task, &seed, err);
    }
    json_decref(task);
    if (rc != COORD_OK) {
        return rc;
    }
    ppo_options_init(&options);
    ppo_destroy(l->ppo);
    l->ppo = ppo_create(&options, seed);
    return l->ppo != NULL ? publish(l, err)
                          : report(err, COORD_ERR_NOMEM, "learner: out of memory");
}

/* ---- learning ---- */

static coord_status get_data(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    const learner *l = user;
    (void)slave;
    (void)in;
    return coord_out_printf(
        out, err, "{\"batch_size\": %" PRId64 ", \"cur_learner_iter\": %" PRId64 "}",
        l->batch_size, l->ppo->updates);
}

static void batch_done(batch_of_chunks *b)
{
    for (size_t i = 0; i < b->count; i++) {
        chunk_destroy(b->chunks[i]);
    }
}

static void batch_count(batch_of_chunks *b, const chunk *c, int64_t version)
{
    const int64_t lag = version - c->policy_version;
    b->lag = lag > b->lag ? lag : b->lag;
    b->episodes += c->episodes;
    for (size_t i = 0; i < c->episodes; i++) {
        b->returns += (double)c->returns[i];
    }
}

/* `samples` is the metadata that the collectors sent. */
static coord_status batch_read(const learner *l, const json_t *samples,
                               batch_of_chunks *b, coord_error *err)
{
    coord_status rc = COORD_OK;
    *b = (batch_of_chunks){0};
    if (!json_is_array(samples) || json_array_size(samples) == 0 ||
        json_array_size(samples) > CHUNKS_MAX) {
        return report(err, COORD_ERR_FORMAT, "a list of 1 to %d chunks was expected",
                      CHUNKS_MAX);
    }
    for (size_t i = 0; rc == COORD_OK && i < json_array_size(samples); i++) {
        const char *name = "";
        char path[PATH_SIZE];
        rc = coord_json_get_string(json_array_get(samples, i), "file", &name, err);
        if (rc == COORD_OK) {
            rc = path_of_chunk(path, l->folder, name, err);
        }
        if (rc == COORD_OK) {
            rc = chunk_read(path, &b->chunks[b->count], err);
        }
        if (rc == COORD_OK) {
            batch_count(b, b->chunks[b->count++], l->ppo->updates);
        }
    }
    if (rc != COORD_OK) {
        batch_done(b);
    }
    return rc;
}

static coord_status tell(const learner *l, const batch_of_chunks *b, const ppo_report *r,
                         coord_out *out, coord_error *err)
{
    char mean[32] = "null";
    if (b->episodes > 0) {
        (void)snprintf(mean, sizeof mean, "%.2f", b->returns / (double)b->episodes);
    }
    return coord_out_printf(
        out, err,
        "{\"version\": %" PRId64 ", \"env_steps\": %" PRId64
        ", \"steps\": %zu, \"episodes\": %zu, \"return_mean\": %s, \"lag\": %" PRId64
        ", \"epochs\": %zu, \"policy_loss\": %.6g, \"value_loss\": %.6g, "
        "\"entropy\": %.6g, \"kl\": %.6g, \"clipped\": %.6g}",
        l->ppo->updates, l->ppo->env_steps, r->steps, b->episodes, mean, b->lag,
        r->epochs, r->policy_loss, r->value_loss, r->entropy, r->kl, r->clipped);
}

static coord_status learn(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    learner *l = user;
    json_t *samples = NULL;
    batch_of_chunks b;
    ppo_report r;
    (void)slave;

    coord_status rc = coord_json_parse(in, &samples, err);
    if (rc == COORD_OK) {
        rc = batch_read(l, samples, &b, err);
    }
    json_decref(samples);
    if (rc != COORD_OK) {
        return rc;
    }
    if (!ppo_update(l->ppo, (const chunk *const *)b.chunks, b.count, &r)) {
        rc = report(err, COORD_ERR_NOMEM, "update: out of memory");
    }
    if (rc == COORD_OK) {
        rc = publish(l, err);
    }
    if (rc == COORD_OK) {
        rc = tell(l, &b, &r, out, err);
    }
    batch_done(&b);
    return rc;
}

static coord_status close_task(coord_slave *slave, coord_text in, coord_out *out,
                               coord_error *err, void *user)
{
    const learner *l = user;
    (void)slave;
    (void)in;
    return coord_out_printf(out, err, "{\"version\": %" PRId64 "}", l->ppo->updates);
}

int main(int argc, char **argv)
{
    static learner l;
    coord_error err = {0};
    coord_learner *self = NULL;
    coord_slave_options options;
    coord_learner_callbacks callbacks;

    int status = serve_init(argc, argv);
    if (status != EXIT_SUCCESS) {
        return status;
    }
    serve_options(&options);
    coord_learner_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.start = start;
    callbacks.get_data = get_data;
    callbacks.learn = learn;
    callbacks.close = close_task;
    callbacks.user = &l;
    if (coord_learner_create(&options, &callbacks, &self, &err) != COORD_OK) {
        status = complain(argv[0], &err);
    } else {
        status = serve(argv[0], coord_learner_slave(self));
    }
    coord_learner_destroy(self);
    return status;
}
