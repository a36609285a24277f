#include "base/alloc.h"

#include "coord/api.h"

#include <stdlib.h>
#include <string.h>

static coordi_alloc_fault_fn *fault_fn;
static void *fault_user;
static coordi_alloc_watch_fn *watch_fn;
static void *watch_user;

void coordi_alloc_set_fault(coordi_alloc_fault_fn *fault, void *user)
{
    fault_fn = fault;
    fault_user = user;
}

void coordi_alloc_set_watch(coordi_alloc_watch_fn *watch, void *user)
{
    watch_fn = watch;
    watch_user = user;
}

static bool must_fail(void)
{
    return fault_fn != NULL && fault_fn(fault_user);
}

static void *watched(void *block, int change)
{
    if (watch_fn != NULL && block != NULL) {
        watch_fn(block, change, watch_user);
    }
    return block;
}

void *coordi_alloc(size_t size)
{
    return must_fail() ? NULL : watched(malloc(size == 0 ? 1 : size), 1);
}

void *coordi_zalloc(size_t size)
{
    return must_fail() ? NULL : watched(calloc(1, size == 0 ? 1 : size), 1);
}

void *coordi_realloc(void *memory, size_t size)
{
    if (must_fail()) {
        return NULL;
    }
    (void)watched(memory, -1);
    void *grown = realloc(memory, size == 0 ? 1 : size);
    (void)watched(grown == NULL ? memory : grown, 1);
    return grown;
}

char *coordi_memdup(const char *bytes, size_t len)
{
    char *copy = coordi_alloc(len + 1);
    if (copy == NULL) {
        return NULL;
    }
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    copy[len] = '\0';
    return copy;
}

char *coordi_strdup(const char *string)
{
    return coordi_memdup(string, strlen(string));
}

void coordi_free(void *memory)
{
    (void)watched(memory, -1);
    free(memory);
}

void coord_free(void *memory)
{
    coordi_free(memory);
}

const char *coord_version(void)
{
    return COORD_VERSION;
}
