/* What a source of members has listed last, and the members made of it.
 *
 * A source brings a list, again and again: begin, an entry for each worker, end. Who is
 * new is added; who is no longer listed is removed, unless another origin brought it. A
 * worker that the host has removed stays so until a list comes without it. */
#ifndef COORDI_COORDINATOR_ROSTER_H
#define COORDI_COORDINATOR_ROSTER_H

#include "coordinator/membership.h"

struct coordi_roster {
    CommCoordinator *c;
    coordi_origin origin;
    bool drains;     /* those that are no longer listed; or drops them */
    unsigned misses; /* complete lists in a row without it, until a worker is removed */
    uint64_t round;  /* counts lists */
    bool settled;    /* a complete list has come */
    size_t listed[COORDI_ROLES];      /* by the last list */
    coordi_map entries[COORDI_ROLES]; /* by id */
};

void coordi_roster_init(coordi_roster *roster, CommCoordinator *c, coordi_origin origin,
                        bool drains, unsigned misses);
/* Forgets the list; members stay. */
void coordi_roster_done(coordi_roster *roster);

void coordi_roster_begin(coordi_roster *roster);
/* COORD_ERR_NOMEM: the next list may bring it. */
coord_status coordi_roster_list(coordi_roster *roster, const coordi_config_worker *worker,
                                coord_error *err);
/* `complete`: all there are were listed. */
void coordi_roster_end(coordi_roster *roster, bool complete);
/* Was it in the last list? */
bool coordi_roster_lists(const coordi_roster *roster, coord_role role, const char *id);

#endif
