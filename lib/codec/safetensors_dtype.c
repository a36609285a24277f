#include "codec/safetensors_dtype.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of the format's own list, from which writers take the order of tensors. */
static const struct {
    coord_dtype dtype;
    unsigned char size;
    const char *name;
} DTYPES[] = {
    {COORD_DTYPE_BOOL, 1, "BOOL"},       {COORD_DTYPE_U8, 1, "U8"},
    {COORD_DTYPE_I8, 1, "I8"},           {COORD_DTYPE_F8_E5M2, 1, "F8_E5M2"},
    {COORD_DTYPE_F8_E4M3, 1, "F8_E4M3"}, {COORD_DTYPE_F8_E8M0, 1, "F8_E8M0"},
    {COORD_DTYPE_I16, 2, "I16"},         {COORD_DTYPE_U16, 2, "U16"},
    {COORD_DTYPE_F16, 2, "F16"},         {COORD_DTYPE_BF16, 2, "BF16"},
    {COORD_DTYPE_I32, 4, "I32"},         {COORD_DTYPE_U32, 4, "U32"},
    {COORD_DTYPE_F32, 4, "F32"},         {COORD_DTYPE_C64, 8, "C64"},
    {COORD_DTYPE_F64, 8, "F64"},         {COORD_DTYPE_I64, 8, "I64"},
    {COORD_DTYPE_U64, 8, "U64"},
};
enum { DTYPE_COUNT = sizeof DTYPES / sizeof DTYPES[0] };

bool coordi_little_endian(void)
{
    const uint16_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first == 1;
}

int coordi_dtype_order(coord_dtype dtype)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (DTYPES[i].dtype == dtype) {
            return i;
        }
    }
    return -1;
}

size_t coord_dtype_size(coord_dtype dtype)
{
    int at = coordi_dtype_order(dtype);
    return at < 0 ? 0 : DTYPES[at].size;
}

const char *coord_dtype_str(coord_dtype dtype)
{
    int at = coordi_dtype_order(dtype);
    return at < 0 ? "?" : DTYPES[at].name;
}

coord_dtype coordi_dtype_of(const char *name)
{
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(DTYPES[i].name, name) == 0) {
            return DTYPES[i].dtype;
        }
    }
    return (coord_dtype)0;
}

bool coordi_tensor_bytes(const coord_tensor *tensor, size_t *ret)
{
    size_t sum = coord_dtype_size(tensor->dtype);
    for (size_t i = 0; i < tensor->rank; i++) {
        uint64_t dim = (uint64_t)tensor->shape[i];
        if (sum != 0 && dim > SIZE_MAX / sum) {
            return false;
        }
        sum *= (size_t)dim;
    }
    *ret = sum;
    return true;
}

int coordi_tensor_compare_names(const void *left, const void *right)
{
    const coord_tensor *a = *(const coord_tensor *const *)left;
    const coord_tensor *b = *(const coord_tensor *const *)right;
    return strcmp(a->name, b->name);
}

static int compare_strings(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

bool coordi_meta_unique(const coord_safetensors_meta *meta, size_t count,
                        const char **twice)
{
    *twice = NULL;
    if (count < 2) {
        return true;
    }
    const char **keys = coordi_alloc(count * sizeof *keys);
    if (keys == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        keys[i] = meta[i].key;
    }
    qsort(keys, count, sizeof *keys, compare_strings);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(keys[i - 1], keys[i]) == 0) {
            *twice = keys[i];
        }
    }
    coordi_free(keys);
    return true;
}

void coordi_tensor_label(const char *name, const char *part, char *out, size_t size)
{
    (void)snprintf(out, size, "safetensors: tensor '%.80s': %s", name, part);
}

bool coord_tensor_aligned(const coord_tensor *tensor)
{
    if (tensor == NULL) {
        return false;
    }
    /* C64 is two floats. */
    size_t align = tensor->dtype == COORD_DTYPE_C64 ? 4 : coord_dtype_size(tensor->dtype);
    return align != 0 && (uintptr_t)tensor->data % align == 0;
}

coord_status coord_tensor_copy(const coord_tensor *tensor, coord_dtype dtype, void *out,
                               size_t count, coord_error *err)
{
    if (tensor == NULL || (out == NULL && count > 0)) {
        return coordi_fail(err, COORD_ERR_ARG, "tensor and out are required");
    }
    const size_t size = coord_dtype_size(tensor->dtype);
    const size_t have = size == 0 ? 0 : tensor->bytes / size;
    if (tensor->dtype != dtype || have != count) {
        return coordi_fail(err, COORD_ERR_FORMAT,
                           "tensor '%.80s': expected %zu of %s, got %zu of %s",
                           tensor->name, count, coord_dtype_str(dtype), have,
                           coord_dtype_str(tensor->dtype));
    }
    if (count > 0) {
        memcpy(out, tensor->data, count * size);
    }
    return COORD_OK;
}
