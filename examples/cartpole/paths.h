#ifndef CARTPOLE_PATHS_H
#define CARTPOLE_PATHS_H

#include "coord.h"

enum { PATH_SIZE = 4096, NAME_SIZE = 256 };

/* What lies in the folder of a run. Workers get the folder in their tasks; what they tell
 * of files is names within it. */
#define CHECKPOINT_NAME "checkpoint.json"
#define CHUNKS_NAME "chunks"

/* The path that printf makes; COORD_ERR_TOO_BIG if it is too long. */
coord_status path_make(char ret[PATH_SIZE], coord_error *err, const char *format, ...)
    COORD_PRINTF(3, 4);

/* Weights of one version. */
coord_status path_of_policy(char ret[PATH_SIZE], const char *folder, int64_t version,
                            coord_error *err);

/* The learner's whole state at one version. */
coord_status path_of_learner(char ret[PATH_SIZE], const char *folder, int64_t version,
                             coord_error *err);

/* A chunk that metadata names. The name is checked: it must not lead elsewhere. */
coord_status path_of_chunk(char ret[PATH_SIZE], const char *folder, const char *name,
                           coord_error *err);

/* Writes a small file that readers find whole: the old one or the new one. */
coord_status path_replace(const char *path, coord_text content, coord_error *err);

#endif
