#ifndef PIPELINE_CREW_H
#define PIPELINE_CREW_H

#include "config.h"

#include <pthread.h>

/* With "each_collector": one task for each collector there is, those that come later too.
 * A task that has ended is followed by the next for as long as there are as many
 * collectors. Every function may be called on any thread. */
typedef struct crew {
    const config *config;
    pthread_mutex_t lock; /* guards all that follows */
    size_t collectors;    /* that are there */
    size_t tasks;         /* that have not ended */
    unsigned made;        /* tasks so far: their ids are numbered */
    bool closed;          /* no more are wanted */
} crew;

/* False: no memory. */
bool crew_init(crew *w, const config *c);
void crew_done(crew *w);

/* So many collectors have come. */
void crew_come(crew *w, CommCoordinator *c, size_t count);

/* One has gone. */
void crew_go(crew *w);

/* A task that is not in the file has come back from the ledger, or has ended. */
void crew_resume(crew *w);
void crew_end(crew *w, CommCoordinator *c);

#endif
