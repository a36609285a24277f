/* String to pointer. Walks in the order of insertion, so that what a program does never
 * depends on a hash. */
#ifndef COORDI_BASE_MAP_H
#define COORDI_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct coordi_map_entry {
    char *key;   /* owned */
    void *value; /* not owned; NULL marks an entry that was removed */
    uint64_t hash;
    size_t serial; /* rises from entry to entry, and never changes */
} coordi_map_entry;

/* All zero is an empty map. */
typedef struct coordi_map {
    coordi_map_entry *entries; /* in the order of insertion, holes included */
    uint32_t *slots;           /* hash table of entry index + 1; 0 is free */
    size_t used;               /* entries, holes included */
    size_t count;              /* entries that live */
    size_t cap;                /* room for entries; slots has twice as many */
    size_t serial;             /* of the next entry */
} coordi_map;

void coordi_map_done(coordi_map *map);

/* Adds or replaces; the key is copied and the value must not be NULL. False when memory
 * is out, and then nothing changed. */
bool coordi_map_put(coordi_map *map, const char *key, void *value);

/* The value, or NULL. */
void *coordi_map_get(const coordi_map *map, const char *key);

/* Removes and returns the value, or NULL. Allowed while walking. */
void *coordi_map_remove(coordi_map *map, const char *key);

/* Walks: start with *at = 0; NULL at the end. Putting and removing while walking is fine:
 * what is there all the time is seen exactly once, what is put meanwhile is seen last. */
void *coordi_map_next(const coordi_map *map, size_t *at);

#endif
