/* Table entries of real_files.c. */
#ifndef COORDI_ENV_REAL_FILES_H
#define COORDI_ENV_REAL_FILES_H

#include "env/env.h"

coord_status coordi_real_file_read(coord_loop *loop, const char *path, size_t max_bytes,
                                   coordi_buf *ret, coord_error *err);
coord_status coordi_real_file_replace(coord_loop *loop, const char *path,
                                      const void *bytes, size_t len, coord_error *err);

#endif
