#include "support/heap.h"

#include "base/alloc.h"

#include <jansson.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

static atomic_int_least64_t blocks;
static atomic_int_least64_t bytes;

/* Which of the allocations fail. */
typedef struct shortage {
    atomic_uint_least64_t asked;
    uint64_t first;
    uint64_t end;
    atomic_bool hit;
} shortage;

static shortage ours;
static shortage of_jansson;
static atomic_int_least64_t jansson_blocks;
static _Thread_local int spared;

/* ---- in use ---- */

static void count(void *block, int change, void *user)
{
    (void)user;
    atomic_fetch_add(&blocks, change);
    atomic_fetch_add(&bytes, change * (int64_t)malloc_usable_size(block));
}

void heap_watch(void)
{
    atomic_store(&blocks, 0);
    atomic_store(&bytes, 0);
    coordi_alloc_set_watch(count, NULL);
}

heap_use heap_in_use(void)
{
    return (heap_use){atomic_load(&blocks), atomic_load(&bytes)};
}

void heap_expect_nothing_left(const char *what)
{
    heap_use left = heap_in_use();
    coordi_alloc_set_watch(NULL, NULL);
    if (left.blocks != 0) {
        fail_msg("%s: %lld blocks of memory are left, %lld bytes", what,
                 (long long)left.blocks, (long long)left.bytes);
    }
}

/* ---- failing ---- */

static bool must_fail(void *user)
{
    shortage *s = user;
    if (spared > 0) {
        return false;
    }
    uint64_t number = atomic_fetch_add(&s->asked, 1);
    if (number < s->first || number >= s->end) {
        return false;
    }
    atomic_store(&s->hit, true);
    return true;
}

static void begin(shortage *s, uint64_t first, uint64_t how_many)
{
    atomic_store(&s->asked, 0);
    atomic_store(&s->hit, false);
    s->first = first;
    s->end = how_many > UINT64_MAX - first ? UINT64_MAX : first + how_many;
}

void heap_fail(uint64_t first, uint64_t how_many)
{
    begin(&ours, first, how_many);
    coordi_alloc_set_fault(must_fail, &ours);
}

bool heap_mend(void)
{
    coordi_alloc_set_fault(NULL, NULL);
    return atomic_load(&ours.hit);
}

void heap_spare(bool spare)
{
    spared += spare ? 1 : -1;
}

/* ---- jansson ---- */

static void *jansson_alloc(size_t size)
{
    void *block = must_fail(&of_jansson) ? NULL : malloc(size);
    if (block != NULL) {
        atomic_fetch_add(&jansson_blocks, 1);
    }
    return block;
}

static void jansson_free(void *block)
{
    if (block != NULL) {
        atomic_fetch_sub(&jansson_blocks, 1);
    }
    free(block);
}

void heap_fail_jansson(uint64_t first, uint64_t how_many)
{
    begin(&of_jansson, first, how_many);
    json_set_alloc_funcs(jansson_alloc, jansson_free);
}

bool heap_mend_jansson(void)
{
    of_jansson.end = 0;
    return atomic_load(&of_jansson.hit);
}

int64_t heap_jansson_blocks(void)
{
    return atomic_load(&jansson_blocks);
}
