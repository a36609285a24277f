/* What reading and writing safetensors share: types, sizes, names. */
#ifndef COORDI_CODEC_SAFETENSORS_DTYPE_H
#define COORDI_CODEC_SAFETENSORS_DTYPE_H

#include "coord/safetensors.h"

bool coordi_little_endian(void);

/* The type of that name, 0 when there is none. */
coord_dtype coordi_dtype_of(const char *name);

/* Where a type stands in the order of the format's own list, narrow ones first. */
int coordi_dtype_order(coord_dtype dtype);

/* Bytes that rank, shape and dtype take; false when they overflow. Dimensions must not be
 * negative. */
bool coordi_tensor_bytes(const coord_tensor *tensor, size_t *ret);

/* For qsort and bsearch over pointers to tensors. */
int coordi_tensor_compare_names(const void *left, const void *right);

/* Finds a key that comes twice (NULL: none does); false when memory is out. */
bool coordi_meta_unique(const coord_safetensors_meta *meta, size_t count,
                        const char **twice);

/* "safetensors: tensor 'w': shape", long names cut. */
void coordi_tensor_label(const char *name, const char *part, char *out, size_t size);

#endif
