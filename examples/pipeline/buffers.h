#ifndef PIPELINE_BUFFERS_H
#define PIPELINE_BUFFERS_H

#include "coord.h"

/* The newest samples of every buffer, as the text that their collectors sent. Every
 * function may be called on any thread. */
typedef struct buffers buffers;

enum { BUFFER_SAMPLES_MAX = 10000, BATCH_MAX = 100000, BATCH_BYTES_MAX = 256 << 20 };

/* Batches are drawn as `seed` says. NULL: no memory. */
buffers *buffers_create(uint64_t seed);

void buffers_destroy(buffers *b);

/* Adds a sample, in place of the oldest when the buffer is full. `buffer_id` may be NULL:
 * that is a buffer, too. False: no memory. */
bool buffers_add(buffers *b, const char *buffer_id, coord_text sample);

/* Puts a list of `count` samples into `out`, drawn with replacement, as soon as there is
 * one; COORD_AGAIN before. */
coord_status buffers_draw(buffers *b, const char *buffer_id, int64_t count,
                          coord_out *out);

#endif
