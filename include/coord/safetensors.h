/**
 * @file safetensors.h
 * Named arrays in one stretch of bytes, in the safetensors format: what PyTorch, JAX and
 * NumPy users read and write as it is. Here: from and to memory, from and to files.
 *
 * The bytes are little-endian. On a big-endian machine every call that reads or writes
 * them answers COORD_ERR_UNSUPPORTED.
 */
#ifndef COORD_SAFETENSORS_H
#define COORD_SAFETENSORS_H

#include "coord/api.h"
#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Type of an element. Numbers are only ever added, never changed. */
typedef enum coord_dtype {
    COORD_DTYPE_BOOL = 1, /**< one byte */
    COORD_DTYPE_U8 = 2,
    COORD_DTYPE_I8 = 3,
    COORD_DTYPE_F8_E5M2 = 4,
    COORD_DTYPE_F8_E4M3 = 5,
    COORD_DTYPE_F8_E8M0 = 6,
    COORD_DTYPE_I16 = 7,
    COORD_DTYPE_U16 = 8,
    COORD_DTYPE_F16 = 9,
    COORD_DTYPE_BF16 = 10,
    COORD_DTYPE_I32 = 11,
    COORD_DTYPE_U32 = 12,
    COORD_DTYPE_F32 = 13,
    COORD_DTYPE_C64 = 14, /**< two F32 */
    COORD_DTYPE_F64 = 15,
    COORD_DTYPE_I64 = 16,
    COORD_DTYPE_U64 = 17
} coord_dtype;

/** Bytes of an element, 0 for what is no dtype. @thread any */
COORD_API size_t coord_dtype_size(coord_dtype dtype);

/** "F32" and so on, "?" for what is no dtype; never NULL. @thread any */
COORD_API const char *coord_dtype_str(coord_dtype dtype);

/** One array, row-major. Never grows: hosts make arrays of these. */
typedef struct coord_tensor {
    const char *name; /**< UTF-8 without NUL; not "__metadata__" */
    coord_dtype dtype;
    size_t rank;          /**< 0: a single element */
    const int64_t *shape; /**< `rank` numbers; 0 is allowed and means no elements */
    const void *data;     /**< little-endian; may be NULL when `bytes` is 0 */
    size_t bytes;         /**< elements times coord_dtype_size() */
} coord_tensor;

/** A line of the string-to-string map that a file may carry. Never grows. */
typedef struct coord_safetensors_meta {
    const char *key;
    const char *value;
} coord_safetensors_meta;

/** What a text from elsewhere may cost. 0 in a field: no limit. */
typedef struct coord_safetensors_limits {
    size_t size;               /**< written by coord_safetensors_limits_init() */
    uint64_t max_header_bytes; /**< default 16 MiB (the format itself allows 100 MB) */
    uint64_t max_tensors;      /**< default 65536 */
    uint64_t max_rank;         /**< default 64 */
    uint64_t max_total_bytes;  /**< header included; default 4 GiB */
} coord_safetensors_limits;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_safetensors_limits_init(coord_safetensors_limits *limits,
                                             size_t size);

typedef struct coord_safetensors coord_safetensors;

/**
 * Reads the header and checks all that it says: known types, no name twice, each extent
 * as large as its shape, all within the data, no byte of it used twice or not at all.
 * Members of a tensor's entry that are not part of the format are passed over.
 *
 * @param bytes     Borrowed until coord_safetensors_destroy(): the tensors point into it.
 * @param limits    Optional; copied.
 * @param[out] ret  Yours: free with coord_safetensors_destroy().
 * @retval COORD_ERR_FORMAT       The header lies; the text names the tensor.
 * @retval COORD_ERR_TOO_BIG      Over one of the limits.
 * @retval COORD_ERR_UNSUPPORTED  A dtype that this release does not know, or a big-endian
 *                                machine.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_safetensors_parse(
    const void *bytes, size_t len, const coord_safetensors_limits *limits,
    coord_safetensors **ret, coord_error *err);

/**
 * The same from a file, whose bytes the object then owns.
 *
 * @retval COORD_ERR_NOT_FOUND  There is no such file.
 * @retval COORD_ERR_IO         It can't be read.
 * @thread any; reads the disk
 */
COORD_API COORD_MUST_USE coord_status
coord_safetensors_read_file(const char *path, const coord_safetensors_limits *limits,
                            coord_safetensors **ret, coord_error *err);

/** Takes NULL. Tensors and strings that came from it are gone. @thread one */
COORD_API void coord_safetensors_destroy(coord_safetensors *tensors);

/** How many there are. @thread any, like all getters: nothing changes after parsing */
COORD_API size_t coord_safetensors_count(const coord_safetensors *tensors);

/** The one at a place, in the order of the header; NULL past the end. Borrowed. */
COORD_API const coord_tensor *coord_safetensors_at(const coord_safetensors *tensors,
                                                   size_t at);

/** The one of that name, or NULL. Borrowed. */
COORD_API const coord_tensor *coord_safetensors_find(const coord_safetensors *tensors,
                                                     const char *name);

/** The value of a key of the string map, or NULL. Borrowed. */
COORD_API const char *coord_safetensors_metadata(const coord_safetensors *tensors,
                                                 const char *key);

/** The line of the string map at a place; NULL past the end. Borrowed. */
COORD_API const coord_safetensors_meta *
coord_safetensors_metadata_at(const coord_safetensors *tensors, size_t at);

/**
 * Is `data` aligned for its type, so that it can be used in place? Always so for files of
 * the usual writers, when the bytes begin at a multiple of 8; the format does not promise
 * it.
 */
COORD_API bool coord_tensor_aligned(const coord_tensor *tensor);

/**
 * Copies the elements, whatever their alignment, to an array of yours.
 *
 * @param dtype  What you expect.
 * @param count  Elements you expect, which `out` has room for.
 * @retval COORD_ERR_FORMAT  It has another type or number of elements; `out` is
 * untouched.
 */
COORD_API COORD_MUST_USE coord_status coord_tensor_copy(const coord_tensor *tensor,
                                                        coord_dtype dtype, void *out,
                                                        size_t count, coord_error *err);

/**
 * Writes tensors to memory. The order is that of the usual writers whatever yours is:
 * wide types first, then by name; so the same tensors give the same bytes.
 *
 * @param tensors   `count` of them; copied.
 * @param meta      `meta_count` lines, written in your order; may be NULL when 0.
 * @param[out] ret  Yours: free with coord_free().
 * @retval COORD_ERR_ARG  A tensor makes no sense, or a name comes twice; the text says
 * which.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_safetensors_write(
    const coord_tensor *tensors, size_t count, const coord_safetensors_meta *meta,
    size_t meta_count, char **ret, size_t *len, coord_error *err);

/**
 * The same to a file: written to a temporary file beside it, synced, and renamed, so that
 * readers see the old file or the new one and never a torn one, even across a crash.
 *
 * @retval COORD_ERR_IO  It can't be written; an old file is still there.
 * @thread any; writes the disk
 */
COORD_API COORD_MUST_USE coord_status coord_safetensors_write_file(
    const char *path, const coord_tensor *tensors, size_t count,
    const coord_safetensors_meta *meta, size_t meta_count, coord_error *err);

#ifdef __cplusplus
}
#endif
#endif
