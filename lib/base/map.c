#include "base/map.h"

#include "base/alloc.h"

#include <string.h>

enum { FIRST_CAP = 8 };

/* FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t hash_of(const char *key)
{
    uint64_t hash = 14695981039346656037ULL;
    for (; *key != '\0'; key++) {
        hash = (hash ^ (unsigned char)*key) * 1099511628211ULL;
    }
    return hash;
}

void coordi_map_done(coordi_map *map)
{
    for (size_t i = 0; i < map->used; i++) {
        coordi_free(map->entries[i].key);
    }
    coordi_free(map->entries);
    coordi_free(map->slots);
    *map = (coordi_map){0};
}

static void place(uint32_t *slots, size_t slot_count, uint64_t hash, size_t entry)
{
    size_t at = (size_t)hash & (slot_count - 1);
    while (slots[at] != 0) {
        at = (at + 1) & (slot_count - 1);
    }
    slots[at] = (uint32_t)(entry + 1);
}

/* Copies what lives into tables of `cap` entries, and so closes the holes. */
static bool rebuild(coordi_map *map, size_t cap)
{
    if (cap > UINT32_MAX / 2) {
        return false;
    }
    coordi_map_entry *entries = coordi_alloc(cap * sizeof *entries);
    uint32_t *slots = coordi_zalloc(2 * cap * sizeof *slots);
    if (entries == NULL || slots == NULL) {
        coordi_free(entries);
        coordi_free(slots);
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < map->used; i++) {
        if (map->entries[i].value == NULL) {
            coordi_free(map->entries[i].key);
            continue;
        }
        entries[kept] = map->entries[i];
        place(slots, 2 * cap, entries[kept].hash, kept);
        kept++;
    }
    coordi_free(map->entries);
    coordi_free(map->slots);
    map->entries = entries;
    map->slots = slots;
    map->used = kept;
    map->cap = cap;
    return true;
}

static coordi_map_entry *find(const coordi_map *map, const char *key, uint64_t hash)
{
    if (map->cap == 0) {
        return NULL;
    }
    size_t mask = 2 * map->cap - 1;
    for (size_t at = (size_t)hash & mask; map->slots[at] != 0; at = (at + 1) & mask) {
        coordi_map_entry *entry = &map->entries[map->slots[at] - 1];
        if (entry->hash == hash && entry->value != NULL && strcmp(entry->key, key) == 0) {
            return entry;
        }
    }
    return NULL;
}

bool coordi_map_put(coordi_map *map, const char *key, void *value)
{
    uint64_t hash = hash_of(key);
    coordi_map_entry *entry = find(map, key, hash);
    if (entry != NULL) {
        entry->value = value;
        return true;
    }
    if (map->used == map->cap) {
        /* Grow only if the room is really used; else closing the holes is enough. */
        size_t cap = map->cap == 0               ? FIRST_CAP
                     : map->count > map->cap / 2 ? map->cap * 2
                                                 : map->cap;
        if (!rebuild(map, cap)) {
            return false;
        }
    }
    char *copy = coordi_strdup(key);
    if (copy == NULL) {
        return false;
    }
    map->entries[map->used] = (coordi_map_entry){copy, value, hash, map->serial++};
    place(map->slots, 2 * map->cap, hash, map->used);
    map->used++;
    map->count++;
    return true;
}

void *coordi_map_get(const coordi_map *map, const char *key)
{
    const coordi_map_entry *entry = find(map, key, hash_of(key));
    return entry == NULL ? NULL : entry->value;
}

void *coordi_map_remove(coordi_map *map, const char *key)
{
    coordi_map_entry *entry = find(map, key, hash_of(key));
    if (entry == NULL) {
        return NULL;
    }
    void *value = entry->value;
    entry->value = NULL; /* a hole: the next rebuild closes it */
    map->count--;
    return value;
}

/* Index of the first entry with this serial or a higher one. */
static size_t index_of(const coordi_map *map, size_t serial)
{
    size_t low = 0;
    size_t high = map->used;
    if (high == 0 || serial <= map->entries[0].serial) {
        return 0;
    }
    const size_t most = serial - map->entries[0].serial; /* unless holes were closed */
    if (most < high) {
        if (map->entries[most].serial == serial) {
            return most;
        }
        high = most;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->entries[middle].serial < serial) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* *at is a serial, not an index, which closing holes would shift. */
void *coordi_map_next(const coordi_map *map, size_t *at)
{
    for (size_t i = index_of(map, *at); i < map->used; i++) {
        if (map->entries[i].value != NULL) {
            *at = map->entries[i].serial + 1;
            return map->entries[i].value;
        }
    }
    return NULL;
}
