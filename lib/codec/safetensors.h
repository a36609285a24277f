/* The halves of reading and writing safetensors that a file needs. */
#ifndef COORDI_CODEC_SAFETENSORS_H
#define COORDI_CODEC_SAFETENSORS_H

#include "base/buf.h"
#include "coord/safetensors.h"

/* Like coord_safetensors_parse, but takes over `bytes` (from base/alloc.h) on success. */
coord_status coordi_safetensors_adopt(char *bytes, size_t len,
                                      const coord_safetensors_limits *limits,
                                      coord_safetensors **ret, coord_error *err);

/* What stands in a file before the data, and the order in which the data of the tensors
 * follows it, without gaps. `order` has `count` entries that point into `tensors`: free
 * it with coordi_free. Adds to `head`, which must be empty. */
coord_status coordi_safetensors_plan(const coord_tensor *tensors, size_t count,
                                     const coord_safetensors_meta *meta,
                                     size_t meta_count, coordi_buf *head,
                                     const coord_tensor ***order, coord_error *err);

#endif
