#include "buffers.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct buffer {
    struct buffer *next;
    char *id;            /* NULL: that of workers that name none */
    coord_text *samples; /* a ring; the texts are owned */
    size_t count;
    size_t oldest; /* place of it, once the ring is full */
} buffer;

struct buffers {
    pthread_mutex_t lock; /* guards everything below */
    uint64_t random;
    buffer *first;
};

buffers *buffers_create(uint64_t seed)
{
    buffers *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&b->lock, NULL) != 0) {
        free(b);
        return NULL;
    }
    b->random = seed;
    return b;
}

static void buffer_free(buffer *one)
{
    for (size_t i = 0; one->samples != NULL && i < one->count; i++) {
        free((char *)one->samples[i].ptr);
    }
    free(one->samples);
    free(one->id);
    free(one);
}

void buffers_destroy(buffers *b)
{
    if (b == NULL) {
        return;
    }
    while (b->first != NULL) {
        buffer *one = b->first;
        b->first = one->next;
        buffer_free(one);
    }
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}

static buffer *find_locked(const buffers *b, const char *id)
{
    buffer *one = b->first;
    while (one != NULL &&
           (id == NULL || one->id == NULL ? id != one->id : strcmp(id, one->id) != 0)) {
        one = one->next;
    }
    return one;
}

static buffer *make_locked(buffers *b, const char *id)
{
    buffer *one = calloc(1, sizeof *one);
    if (one == NULL) {
        return NULL;
    }
    one->id = id == NULL ? NULL : strdup(id);
    one->samples = calloc(BUFFER_SAMPLES_MAX, sizeof *one->samples);
    if (one->samples == NULL || (id != NULL && one->id == NULL)) {
        buffer_free(one);
        return NULL;
    }
    one->next = b->first;
    b->first = one;
    return one;
}

bool buffers_add(buffers *b, const char *buffer_id, coord_text sample)
{
    char *copy = malloc(sample.len + 1); /* never of 0 bytes */
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, sample.ptr, sample.len);
    (void)pthread_mutex_lock(&b->lock);
    buffer *one = find_locked(b, buffer_id);
    if (one == NULL) {
        one = make_locked(b, buffer_id);
    }
    if (one == NULL) {
        free(copy);
    } else if (one->count < BUFFER_SAMPLES_MAX) {
        one->samples[one->count++] = (coord_text){copy, sample.len};
    } else {
        free((char *)one->samples[one->oldest].ptr);
        one->samples[one->oldest] = (coord_text){copy, sample.len};
        one->oldest = (one->oldest + 1) % BUFFER_SAMPLES_MAX;
    }
    (void)pthread_mutex_unlock(&b->lock);
    return one != NULL;
}

/* SplitMix64; at most 10,000 of its 2^64 values are without a fair share. */
static size_t random_below_locked(buffers *b, size_t bound)
{
    b->random += 0x9E3779B97F4A7C15U;
    uint64_t x = b->random;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return (size_t)((x ^ (x >> 31)) % bound);
}

/* Prints "[sample, sample]"; false when that would be too much. */
static bool print_batch_locked(buffers *b, const buffer *one, int64_t count, FILE *to)
{
    size_t bytes = 0;
    (void)fputc('[', to);
    for (int64_t i = 0; i < count; i++) {
        coord_text sample = one->samples[random_below_locked(b, one->count)];
        bytes += sample.len;
        if (bytes > BATCH_BYTES_MAX) {
            return false;
        }
        (void)fputs(i == 0 ? "" : ", ", to);
        (void)fwrite(sample.ptr, 1, sample.len, to);
    }
    (void)fputc(']', to);
    return true;
}

coord_status buffers_draw(buffers *b, const char *buffer_id, int64_t count,
                          coord_out *out)
{
    char *text = NULL;
    size_t len = 0;
    coord_status rc = count <= BATCH_MAX ? COORD_AGAIN : COORD_ERR_TOO_BIG;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL) {
        return COORD_ERR_NOMEM;
    }
    (void)pthread_mutex_lock(&b->lock);
    const buffer *one = find_locked(b, buffer_id);
    if (one != NULL && rc == COORD_AGAIN) {
        rc = print_batch_locked(b, one, count, to) ? COORD_OK : COORD_ERR_TOO_BIG;
    }
    (void)pthread_mutex_unlock(&b->lock);
    bool printed = ferror(to) == 0;
    if ((fclose(to) != 0 || !printed) && rc == COORD_OK) {
        rc = COORD_ERR_NOMEM;
    }
    if (rc == COORD_OK) {
        rc = coord_out_json(out, (coord_text){text, len}, NULL);
    }
    free(text);
    return rc;
}
