/* Any bytes as safetensors: what is accepted must be true, and can be written again. */
#include "coord/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool truth)
{
    if (!truth) {
        abort();
    }
}

/* All data is used, byte for byte, and every tensor is found by its name. */
static void check_tensors(const coord_safetensors *st, const uint8_t *data, size_t size)
{
    size_t sum = 0;
    unsigned char touched = 0;
    for (size_t i = 0; i < coord_safetensors_count(st); i++) {
        const coord_tensor *t = coord_safetensors_at(st, i);
        const uint8_t *begin = t->data;
        must(coord_safetensors_find(st, t->name) == t);
        must(begin >= data && begin + t->bytes <= data + size);
        for (size_t at = 0; at < t->bytes; at++) {
            touched ^= begin[at];
        }
        for (size_t at = 0; at < t->rank; at++) {
            must(t->shape[at] >= 0);
        }
        sum += t->bytes;
    }
    uint64_t header = 0;
    for (size_t i = 8; i-- > 0;) {
        header = header << 8 | data[i];
    }
    must(sum + header + 8 == size);
    (void)touched;
}

static void write_again(const coord_safetensors *st)
{
    const size_t count = coord_safetensors_count(st);
    size_t meta_count = 0;
    while (coord_safetensors_metadata_at(st, meta_count) != NULL) {
        meta_count++;
    }
    char *bytes = NULL;
    size_t len = 0;
    coord_safetensors *again = NULL;
    must(coord_safetensors_write(coord_safetensors_at(st, 0), count,
                                 coord_safetensors_metadata_at(st, 0), meta_count, &bytes,
                                 &len, NULL) == COORD_OK);
    must(coord_safetensors_parse(bytes, len, NULL, &again, NULL) == COORD_OK);
    must(coord_safetensors_count(again) == count);
    for (size_t i = 0; i < count; i++) {
        const coord_tensor *a = coord_safetensors_at(st, i);
        const coord_tensor *b = coord_safetensors_find(again, a->name);
        must(b != NULL && a->dtype == b->dtype && a->rank == b->rank &&
             a->bytes == b->bytes);
        must(a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
        must(a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
    }
    coord_safetensors_destroy(again);
    coord_free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coord_safetensors *st = NULL;
    coord_error err;
    if (coord_safetensors_parse(data, size, NULL, &st, &err) == COORD_OK) {
        check_tensors(st, data, size);
        write_again(st);
        coord_safetensors_destroy(st);
    }
    return 0;
}
