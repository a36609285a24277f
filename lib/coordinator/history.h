/* What befell tasks: the last few troubles of each, and how the last of them failed. For
 * comm_coordinator_why(); without memory there is less to tell, and nothing worse. */
#ifndef COORDI_COORDINATOR_HISTORY_H
#define COORDI_COORDINATOR_HISTORY_H

#include "coordinator/reason.h"

enum {
    COORDI_TROUBLES_MAX = 8,   /* remembered for each task; the oldest go first */
    COORDI_PAST_MAX = 1000,    /* tasks that failed; the same */
    COORDI_TROUBLE_SIZE = 320, /* of its words */
};

typedef struct coordi_trouble {
    coordi_reason reason;
    uint32_t attempt;
    uint32_t times; /* in a row, for the same reason */
    int64_t at_ms;  /* the last time */
    char seen[COORDI_TROUBLE_SIZE];
} coordi_trouble;

struct coordi_history {
    coordi_trouble ring[COORDI_TROUBLES_MAX];
    uint64_t count; /* ever; the last is at (count - 1) % COORDI_TROUBLES_MAX */
};

/* A task that has failed. */
typedef struct coordi_past {
    coordi_link link; /* the oldest first */
    coord_role role;
    char *id; /* owned */
    uint32_t attempt;
    char worker_id[COORD_ID_SIZE]; /* who had it last; "": nobody */
    int64_t ended_ms;
    coord_error why;
    coordi_history *history; /* owned; NULL: no trouble before */
} coordi_past;

/* "text: cause", cut short. */
void coordi_error_words(const coord_error *why, char *out, size_t size);
/* The n-th last; NULL: no more. */
const coordi_trouble *coordi_history_last(const coordi_history *history, uint64_t n);

#endif
