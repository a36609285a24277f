#ifndef CARTPOLE_BUFFER_H
#define CARTPOLE_BUFFER_H

#include "paths.h"

#include "coord.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUFFER_MAX = 64, CHUNK_NAME_SIZE = NAME_SIZE + 32 };

/* Metadata of a chunk. */
typedef struct chunk_entry {
    char name[CHUNK_NAME_SIZE];
    int64_t version; /* of the policy that made it */
} chunk_entry;

/* Chunks on their way from the collectors to the learner, oldest first. The buffer owns
 * the files that its entries name, and removes them when nobody needs them any more. */
typedef struct buffer {
    const char *folder; /* of the run */
    chunk_entry ready[BUFFER_MAX];
    size_t ready_count;
    chunk_entry taken[BUFFER_MAX]; /* the learner has these */
    size_t taken_count;
} buffer;

/* Takes a chunk over; the oldest one has to go if there is no more room. */
void buffer_add(buffer *b, const chunk_entry *entry);

/* Drops chunks of policies before that version. */
void buffer_drop_old(buffer *b, int64_t version);

/* Gives the oldest chunks to the learner, which is done with those before. False: there
 * are not so many. */
bool buffer_take(buffer *b, size_t count);

/* The learner is done with what it has. */
void buffer_return(buffer *b);

/* Answers with what was taken, as a list. */
coord_status buffer_tell(const buffer *b, coord_out *out, coord_error *err);

#endif
