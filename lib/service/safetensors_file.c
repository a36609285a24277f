/* Safetensors from and to files: what the codec does, through the door to the world. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "codec/safetensors.h"
#include "env/env.h"

/* The most bytes that a file may have. */
static coord_status size_limit(const coord_safetensors_limits *limits, size_t *ret,
                               coord_error *err)
{
    coord_safetensors_limits ours;
    coord_safetensors_limits_init(&ours, sizeof ours);
    if (limits != NULL) {
        coord_status rc = coordi_options_adopt(&ours, sizeof ours, limits,
                                               "coord_safetensors_limits", err);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    const bool any = ours.max_total_bytes == 0 || ours.max_total_bytes > SIZE_MAX;
    *ret = any ? SIZE_MAX : (size_t)ours.max_total_bytes;
    return COORD_OK;
}

coord_status coord_safetensors_read_file(const char *path,
                                         const coord_safetensors_limits *limits,
                                         coord_safetensors **ret, coord_error *err)
{
    if (path == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "safetensors: path and ret are required");
    }
    size_t max_bytes;
    coordi_buf content = {0};
    coord_status rc = size_limit(limits, &max_bytes, err);
    if (rc == COORD_OK) {
        rc = coordi_env_real.file_read(NULL, path, max_bytes, &content, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    const size_t len = content.len;
    char *bytes = coordi_buf_take(&content, NULL);
    if (bytes == NULL) {
        return coordi_fail_nomem(err, path);
    }
    char *fitting =
        coordi_realloc(bytes, len); /* it grew by doubling, and will live long */
    bytes = fitting == NULL ? bytes : fitting;
    coord_error why;
    rc = coordi_safetensors_adopt(bytes, len, limits, ret, &why);
    if (rc != COORD_OK) {
        coordi_free(bytes);
        return coordi_fail_because(err, rc, &why, "read '%.200s'", path);
    }
    return COORD_OK;
}

coord_status coord_safetensors_write_file(const char *path, const coord_tensor *tensors,
                                          size_t count,
                                          const coord_safetensors_meta *meta,
                                          size_t meta_count, coord_error *err)
{
    if (path == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "safetensors: path is NULL");
    }
    char *bytes;
    size_t len;
    coord_status rc =
        coord_safetensors_write(tensors, count, meta, meta_count, &bytes, &len, err);
    if (rc == COORD_OK) {
        rc = coordi_env_real.file_replace(NULL, path, bytes, len, err);
        coord_free(bytes);
    }
    return rc;
}
