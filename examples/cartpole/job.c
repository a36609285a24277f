#include "job.h"
#include "report.h"

#include "coord/json.h"

#include <inttypes.h>
#include <stdio.h>

/* A member of the task, which must be within limits. */
static coord_status read_count(const json_t *task, const char *key, int64_t low,
                               int64_t high, int64_t *ret, coord_error *err)
{
    coord_status rc = coord_json_get_int(task, key, ret, err);
    if (rc == COORD_OK && (*ret < low || *ret > high)) {
        rc = report(err, COORD_ERR_FORMAT, "%s: must be from %" PRId64 " to %" PRId64,
                    key, low, high);
    }
    return rc;
}

static coord_status read_job(const json_t *task, job *ret, coord_error *err)
{
    const char *folder = "";
    const char *id = "";
    coord_status rc = coord_json_get_bool(task, "evaluate", &ret->evaluate, err);
    if (rc == COORD_OK) {
        rc = coord_json_get_string(task, "folder", &folder, err);
    }
    if (rc == COORD_OK) {
        rc = coord_json_get_string(task, "collector_id", &id, err);
    }
    if (rc == COORD_OK) {
        rc = coord_json_get_int(task, "seed", &ret->seed, err);
    }
    if (rc == COORD_OK && ret->evaluate) {
        rc = read_count(task, "policy_version", 0, INT64_MAX, &ret->version, err);
        if (rc == COORD_OK) {
            rc = read_count(task, "episodes", 1, JOB_EPISODES_MAX, &ret->episodes, err);
        }
    } else if (rc == COORD_OK) {
        rc = read_count(task, "envs", 1, JOB_ENVS_MAX, &ret->envs, err);
        if (rc == COORD_OK) {
            rc = read_count(task, "steps", 1, JOB_STEPS_MAX, &ret->steps, err);
        }
    }
    (void)snprintf(ret->folder, sizeof ret->folder, "%s", folder);
    (void)snprintf(ret->collector_id, sizeof ret->collector_id, "%s", id);
    return rc;
}

coord_status job_read(coord_text task, job *ret, coord_error *err)
{
    json_t *tree = NULL;
    coord_status rc = coord_json_parse(task, &tree, err);
    if (rc == COORD_OK) {
        rc = read_job(tree, ret, err);
    }
    json_decref(tree);
    return rc;
}
