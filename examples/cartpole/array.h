#ifndef CARTPOLE_ARRAY_H
#define CARTPOLE_ARRAY_H

#include <stddef.h>

typedef enum array_type {
    ARRAY_F32,
    ARRAY_I32,
    ARRAY_I64,
    ARRAY_U8,
} array_type;

enum { ARRAY_NAME_SIZE = 64 };

/* What a file of named arrays needs to know about one of them. `data` points into its
 * owner, so the same description serves for writing it and for reading it back. */
typedef struct named_array {
    char name[ARRAY_NAME_SIZE];
    array_type type;
    size_t rank; /* 1 or 2 */
    size_t shape[2];
    void *data;
} named_array;

/* A vector when `columns` is 0, else a row-major matrix. */
named_array array_describe(const char *prefix, const char *name, array_type type,
                           size_t rows, size_t columns, void *data);

size_t array_elements(const named_array *array);

size_t array_bytes(const named_array *array);

#endif
