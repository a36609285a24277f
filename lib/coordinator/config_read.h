/* The keys of the configuration as data, and how each kind of them is read. For config.c,
 * which has the tables; nobody else needs it. */
#ifndef COORDI_COORDINATOR_CONFIG_READ_H
#define COORDI_COORDINATOR_CONFIG_READ_H

#include "coordinator/config.h"

typedef enum coordi_config_kind {
    COORDI_KEY_HOST, /* a name or an address; `size` bytes at `at` */
    COORDI_KEY_HOST_OR_NULL,
    COORDI_KEY_WORD,            /* one of the words in `words`; `size` bytes at `at` */
    COORDI_KEY_EITHER,          /* one of two words; bool at `at`: is it the second? */
    COORDI_KEY_INTEGER,         /* int64_t at `at` */
    COORDI_KEY_INTEGER_OR_NULL, /* null is -1 */
    COORDI_KEY_SECONDS,         /* a number; int64_t milliseconds at `at` */
    COORDI_KEY_SECONDS_OR_NULL, /* null is -1 */
    COORDI_KEY_SWITCH,          /* bool at `at` */
    COORDI_KEY_PATH_OR_NULL,    /* `size` bytes at `at`; "" is null */
    COORDI_KEY_TEXT_OR_NULL,    /* the same, but "" may be said, too */
    COORDI_KEY_WORKERS,         /* map of [id, host, port]; the role is in `low` */
    COORDI_KEY_EXECUTOR,        /* "per_task", "inline" or {"pool": n} */
    COORDI_KEY_ORDER,           /* init_replicas_request, or null */
    COORDI_KEY_ROLES,           /* list of roles by rank, or null */
    COORDI_KEY_COMMAND,         /* path, list of strings, or null */
    COORDI_KEY_OBJECT,          /* with a table of its own; bool at `at`: is it given? */
    COORDI_KEY_OBJECT_OR_FALSE, /* the same, but false and {} are null, too */
    COORDI_KEY_FUTURE           /* must be null: its feature is not built yet */
} coordi_config_kind;

typedef struct coordi_config_key {
    const char *name;   /* the whole path */
    const char *preset; /* default, as JSON */
    coordi_config_kind kind;
    int64_t low, high; /* range, inclusive; in milliseconds for SECONDS */
    size_t at;         /* offset in coordi_config */
    size_t size;
    const char *words; /* for WORD and EITHER: separated by blanks */
    const char *help;
} coordi_config_key;

/* Reads the value of one key. What is allocated before a failure is coordi_config_done's
 * to free. */
coord_status coordi_config_read_key(const coordi_config_key *key, coord_text value,
                                    coordi_config *config, coord_error *err);

/* The kind WORKERS. */
coord_status coordi_config_read_workers(const coordi_config_key *key, coord_text value,
                                        coordi_config *config, coord_error *err);

/* ---- for the kinds ---- */

#define COORDI_CONFIG_A_HOST "must be a host's name or address, without port and brackets"

/* "path: must be ..., got x"; `expected` may name a part: "port must be ...". */
coord_status coordi_config_wrong(coord_error *err, const char *path, const char *expected,
                                 coord_text got);

/* `part` names what the path alone doesn't, such as "port "; else it is "". */
coord_status coordi_config_read_integer(const char *path, const char *part, int64_t low,
                                        int64_t high, coord_text value, int64_t *out,
                                        coord_error *err);

bool coordi_config_read_host(coord_text value, char *out, size_t size);

#endif
