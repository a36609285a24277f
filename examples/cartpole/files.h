#ifndef CARTPOLE_FILES_H
#define CARTPOLE_FILES_H

#include "chunk.h"
#include "mlp.h"
#include "ppo.h"

#include "coord.h"

#include <stdint.h>

/* What the processes of a run hand to each other, as safetensors files. Each is replaced
 * as a whole: readers never see half of one. */

/* The arrays `layers.<i>.weight` [out, in] and `layers.<i>.bias` [out], float32, with the
 * metadata `activation`, `version` and `env`. */
coord_status policy_write(const char *path, ppo *p, coord_error *err);

/* Reads weights into a network of policy_create(). */
coord_status policy_read(const char *path, mlp *policy, int64_t *version,
                         coord_error *err);

/* All that a learner would need to go on. */
coord_status learner_write(const char *path, ppo *p, coord_error *err);

coord_status chunk_write(const char *path, chunk *c, coord_error *err);

/* Reads and checks a chunk. Free it with chunk_destroy(). */
coord_status chunk_read(const char *path, chunk **ret, coord_error *err);

/* checkpoint.json of a run: which files are the newest. */
coord_status checkpoint_write(const char *folder, int64_t version, int64_t env_steps,
                              bool solved, coord_error *err);

/* COORD_ERR_NOT_FOUND: there is none yet. `env_steps` may be NULL. */
coord_status checkpoint_read(const char *folder, int64_t *version, int64_t *env_steps,
                             coord_error *err);

#endif
