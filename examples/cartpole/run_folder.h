#ifndef CARTPOLE_RUN_FOLDER_H
#define CARTPOLE_RUN_FOLDER_H

#include "paths.h"
#include "settings.h"

/* The folder of this run, RUNS/<run_id>:
 *
 *     config.json                   what was run
 *     history.jsonl                 a line for each update and each evaluation
 *     policy-<version>.safetensors  the last versions of the weights
 *     learner-<version>.safetensors the learner's state at the version of checkpoint.json
 *     checkpoint.json               names the newest of both
 *     learning_curve.png
 *     chunks/                       experience on its way to the learner; gone at the end
 *
 * RUNS/latest is a link to the newest run. */
typedef struct run_folder {
    char id[NAME_SIZE];
    char path[PATH_SIZE];
} run_folder;

/* Makes the folder, config.json and the link. */
coord_status run_folder_create(const settings *set, run_folder *ret, coord_error *err);

/* Removes what was on its way, and the learner's states but the newest. Leaves the
 * newest version, `solved` if that is not negative, as the one of checkpoint.json.
 * To be called once the workers have gone. */
coord_status run_folder_tidy(const run_folder *folder, int64_t solved, int64_t env_steps,
                             coord_error *err);

#endif
