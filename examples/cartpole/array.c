#include "array.h"

#include <stdio.h>

named_array array_describe(const char *prefix, const char *name, array_type type,
                           size_t rows, size_t columns, void *data)
{
    named_array array = {
        .type = type,
        .rank = columns == 0 ? 1 : 2,
        .shape = {rows, columns},
        .data = data,
    };
    (void)snprintf(array.name, sizeof array.name, "%s%s", prefix, name);
    return array;
}

size_t array_elements(const named_array *array)
{
    return array->rank == 1 ? array->shape[0] : array->shape[0] * array->shape[1];
}

size_t array_bytes(const named_array *array)
{
    static const size_t width[] = {
        [ARRAY_F32] = 4,
        [ARRAY_I32] = 4,
        [ARRAY_I64] = 8,
        [ARRAY_U8] = 1,
    };
    return array_elements(array) * width[array->type];
}
