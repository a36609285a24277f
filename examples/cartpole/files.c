#include "files.h"
#include "policy.h"
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ENV_NAME "CartPole-v1"

enum { ARRAYS_MAX = PPO_STATE_ARRAYS, META_SIZE = 24, FILE_MAX = 64 * 1024 * 1024 };

static const coord_dtype DTYPE[] = {
    [ARRAY_F32] = COORD_DTYPE_F32,
    [ARRAY_I32] = COORD_DTYPE_I32,
    [ARRAY_I64] = COORD_DTYPE_I64,
    [ARRAY_U8] = COORD_DTYPE_U8,
};

/* ---- named arrays ---- */

static coord_status write_arrays(const char *path, const named_array *arrays,
                                 size_t count, const coord_safetensors_meta *meta,
                                 size_t meta_count, coord_error *err)
{
    coord_tensor tensors[ARRAYS_MAX];
    int64_t shapes[ARRAYS_MAX][2];

    for (size_t i = 0; i < count; i++) {
        const named_array *a = &arrays[i];
        shapes[i][0] = (int64_t)a->shape[0];
        shapes[i][1] = (int64_t)a->shape[1];
        tensors[i] = (coord_tensor){
            .name = a->name,
            .dtype = DTYPE[a->type],
            .rank = a->rank,
            .shape = shapes[i],
            .data = a->data,
            .bytes = array_bytes(a),
        };
    }
    return coord_safetensors_write_file(path, tensors, count, meta, meta_count, err);
}

static bool has_shape(const coord_tensor *t, const named_array *a)
{
    bool same = t->rank == a->rank;
    for (size_t i = 0; same && i < a->rank; i++) {
        same = t->shape[i] == (int64_t)a->shape[i];
    }
    return same;
}

/* Fills every array from the one of that name, which must have its shape and type. */
static coord_status read_arrays(const coord_safetensors *file, const named_array *arrays,
                                size_t count, coord_error *err)
{
    coord_status rc = COORD_OK;
    for (size_t i = 0; i < count && rc == COORD_OK; i++) {
        const named_array *a = &arrays[i];
        const coord_tensor *t = coord_safetensors_find(file, a->name);
        if (t == NULL || !has_shape(t, a)) {
            return report(err, COORD_ERR_FORMAT, "no array \"%s\" of the right shape",
                          a->name);
        }
        rc = coord_tensor_copy(t, DTYPE[a->type], a->data, array_elements(a), err);
    }
    return rc;
}

static coord_status open_file(const char *path, coord_safetensors **ret, coord_error *err)
{
    coord_safetensors_limits limits;
    coord_safetensors_limits_init(&limits, sizeof limits);
    limits.max_total_bytes = FILE_MAX;
    return coord_safetensors_read_file(path, &limits, ret, err);
}

/* Names the file, for an error that tells of its content. */
static coord_status blame(const char *path, coord_status rc, coord_error *err)
{
    if (rc != COORD_OK) {
        coord_error why = *err;
        (void)report(err, rc, "read '%.200s'", path);
        (void)snprintf(err->cause, sizeof err->cause, "%s", why.text);
    }
    return rc;
}

static coord_status read_version(const coord_safetensors *file, const char *key,
                                 int64_t *ret, coord_error *err)
{
    const char *text = coord_safetensors_metadata(file, key);
    char *end = NULL;
    errno = 0;
    long long value = text == NULL ? -1 : strtoll(text, &end, 10);
    if (errno != 0 || value < 0 || end == text || *end != '\0') {
        return report(err, COORD_ERR_FORMAT, "no metadata \"%s\" that is a number", key);
    }
    *ret = value;
    return COORD_OK;
}

/* ---- policy and learner ---- */

coord_status policy_write(const char *path, ppo *p, coord_error *err)
{
    named_array arrays[POLICY_ARRAYS];
    char version[META_SIZE];
    const coord_safetensors_meta meta[] = {
        {"activation", "tanh"}, {"version", version}, {"env", ENV_NAME}};

    (void)snprintf(version, sizeof version, "%" PRId64, p->updates);
    ppo_policy_arrays(p, arrays);
    return write_arrays(path, arrays, POLICY_ARRAYS, meta, sizeof meta / sizeof *meta,
                        err);
}

coord_status policy_read(const char *path, mlp *policy, int64_t *version,
                         coord_error *err)
{
    named_array arrays[POLICY_ARRAYS];
    coord_safetensors *file = NULL;
    coord_status rc = open_file(path, &file, err);
    if (rc != COORD_OK) {
        return rc;
    }
    const char *activation = coord_safetensors_metadata(file, "activation");
    if (activation == NULL || strcmp(activation, "tanh") != 0) {
        rc = report(err, COORD_ERR_FORMAT, "the activation is not tanh");
    }
    if (rc == COORD_OK) {
        rc = read_version(file, "version", version, err);
    }
    if (rc == COORD_OK) {
        size_t count = mlp_arrays(policy, policy->params, "", arrays);
        rc = read_arrays(file, arrays, count, err);
    }
    coord_safetensors_destroy(file);
    return blame(path, rc, err);
}

coord_status learner_write(const char *path, ppo *p, coord_error *err)
{
    named_array arrays[PPO_STATE_ARRAYS];
    const coord_safetensors_meta meta[] = {{"env", ENV_NAME}};
    ppo_state_arrays(p, arrays);
    return write_arrays(path, arrays, PPO_STATE_ARRAYS, meta, 1, err);
}

/* ---- chunks ---- */

coord_status chunk_write(const char *path, chunk *c, coord_error *err)
{
    named_array arrays[CHUNK_ARRAYS];
    char version[META_SIZE];
    const coord_safetensors_meta meta[] = {{"policy_version", version},
                                           {"env", ENV_NAME}};

    (void)snprintf(version, sizeof version, "%" PRId64, c->policy_version);
    chunk_arrays(c, arrays);
    return write_arrays(path, arrays, CHUNK_ARRAYS, meta, sizeof meta / sizeof *meta,
                        err);
}

/* How many rows an array has, 0 if it is not there. Those of a matrix must have the
 * width that is expected, so that a few bytes can't claim many rows. */
static size_t rows_of(const coord_safetensors *file, const char *name, int64_t columns)
{
    const coord_tensor *t = coord_safetensors_find(file, name);
    if (t == NULL || t->rank != (columns == 0 ? 1U : 2U) ||
        (columns != 0 && t->shape[1] != columns)) {
        return 0; /* read_arrays() will say so, if it matters */
    }
    return (size_t)t->shape[0];
}

static coord_status fill_chunk(const coord_safetensors *file, chunk *c, coord_error *err)
{
    named_array arrays[CHUNK_ARRAYS];
    if (c == NULL) {
        return report(err, COORD_ERR_NOMEM, "out of memory");
    }
    chunk_arrays(c, arrays);
    coord_status rc = read_version(file, "policy_version", &c->policy_version, err);
    if (rc == COORD_OK) {
        rc = read_arrays(file, arrays, CHUNK_ARRAYS, err);
    }
    if (rc == COORD_OK && !chunk_is_valid(c)) {
        rc = report(err, COORD_ERR_FORMAT, "it makes no sense");
    }
    return rc;
}

coord_status chunk_read(const char *path, chunk **ret, coord_error *err)
{
    coord_safetensors *file = NULL;
    coord_status rc = open_file(path, &file, err);
    if (rc != COORD_OK) {
        return rc;
    }
    chunk *c = chunk_create(rows_of(file, "obs", CARTPOLE_OBS),
                            rows_of(file, "final_obs", CARTPOLE_OBS),
                            rows_of(file, "returns", 0));
    rc = fill_chunk(file, c, err);
    coord_safetensors_destroy(file);
    if (rc != COORD_OK) {
        chunk_destroy(c);
        return blame(path, rc, err);
    }
    *ret = c;
    return COORD_OK;
}
