/* Who is there, as discovery tells it: a line for each worker,
 *
 *     collector 10.0.0.7:22270
 *     learner [fd00::2]:22271 learner-of-rack-2
 *
 * that is role, address and, optionally, id (default: the address). Words stand apart by
 * blanks and tabs, lines may end as those of Windows do; empty ones, and those that begin
 * with #, are skipped. A list is right as a whole, or wrong as a whole.
 *
 * Pure: text in, workers out. */
#ifndef COORDI_SERVICE_DISCOVERY_LIST_H
#define COORDI_SERVICE_DISCOVERY_LIST_H

#include "base/address.h"
#include "coord/resource_manager.h"

enum {
    COORDI_DISCOVERY_MAX_BYTES = 1 << 20,
    COORDI_DISCOVERY_MAX_WORKERS = 10000,
    COORDI_DISCOVERY_LINE_MAX = 1023 /* bytes of a line that names a worker */
};

typedef struct coordi_discovery_worker {
    coord_role role;
    char id[COORD_ID_SIZE]; /* UTF-8 without blanks and controls */
    char host[COORDI_HOST_SIZE];
    uint16_t port;
} coordi_discovery_worker;

/* Looks at the whole list. COORD_ERR_FORMAT: a line is wrong; the text says which, how it
 * begins, and what was expected. COORD_ERR_TOO_BIG: more bytes or workers than above. */
coord_status coordi_discovery_list_check(coord_text list, coord_error *err);

/* Walks a list that was found right: start with *at = 0; false at the end. */
bool coordi_discovery_list_next(coord_text list, size_t *at,
                                coordi_discovery_worker *ret);

#endif
