/* Memory in tests: how much of it is in use, and allocations that fail. */
#ifndef TEST_SUPPORT_HEAP_H
#define TEST_SUPPORT_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks of the library that were given out and have not come back. */
typedef struct heap_use {
    int64_t blocks;
    int64_t bytes;
} heap_use;

/* Counts from here on, from zero; not while a thread of the library's runs. */
void heap_watch(void);
heap_use heap_in_use(void);
/* Ends the count. Fails the test if anything is left; `what` says of what. */
void heap_expect_nothing_left(const char *what);

/* From now on the library's allocations fail, all threads counted together, from number
 * `first` on (0 is the next one), `count` of them. */
void heap_fail(uint64_t first, uint64_t count);
/* All work again. True: some have failed. */
bool heap_mend(void);
/* This thread's neither fail nor count until it is spared no more; nests. For what a test
 * does in the middle of it all. */
void heap_spare(bool spare);

/* The same for jansson's allocations, alone. Not undone: jansson keeps these functions.
 */
void heap_fail_jansson(uint64_t first, uint64_t count);
bool heap_mend_jansson(void);
int64_t heap_jansson_blocks(void);

#endif
