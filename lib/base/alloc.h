/* Memory. The only place that calls malloc, so that a test can make any call fail. */
#ifndef COORDI_BASE_ALLOC_H
#define COORDI_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Each returns NULL when memory is out; a size of 0 gives a pointer to nothing, not NULL.
 */
void *coordi_alloc(size_t size);
void *coordi_zalloc(size_t size);
void *coordi_realloc(void *memory, size_t size);
char *coordi_strdup(const char *string);
char *coordi_memdup(const char *bytes, size_t len); /* closed by a NUL */
void coordi_free(void *memory);

/* Test hook: asked before each allocation; true makes it fail. NULL switches it off.
 * Set it while no thread of ours runs. */
typedef bool coordi_alloc_fault_fn(void *user);
void coordi_alloc_set_fault(coordi_alloc_fault_fn *fault, void *user);

/* Test hook: told of each block that is given out (+1), or is about to come back (-1).
 * Likewise. */
typedef void coordi_alloc_watch_fn(void *block, int change, void *user);
void coordi_alloc_set_watch(coordi_alloc_watch_fn *watch, void *user);

#endif
