/* Who has been heard of when. Beats and the check are O(1) per beat and per lost one: the
 * list is in the order of the last beat. */
#ifndef COORDI_INTERACTION_HEARTBEAT_H
#define COORDI_INTERACTION_HEARTBEAT_H

#include "env/env.h"

typedef struct coordi_heartbeat {
    coordi_link link;
    int64_t last_ms;
} coordi_heartbeat;

typedef struct coordi_heartbeats {
    coord_loop *loop;
    coordi_link oldest_first;
    coordi_timer check;
    int64_t tolerance_ms; /* silent for longer: lost */
    int64_t check_ms;
    /* The entry has left the table. It may be freed. */
    void (*lost)(coordi_heartbeat *beat, int64_t silent_ms);
} coordi_heartbeats;

void coordi_heartbeats_init(coordi_heartbeats *table, coord_loop *loop,
                            int64_t tolerance_ms, int64_t check_ms,
                            void (*lost)(coordi_heartbeat *beat, int64_t silent_ms));
void coordi_heartbeats_done(coordi_heartbeats *table);

/* Heard of: enters the table, or moves to its end. */
void coordi_heartbeats_beat(coordi_heartbeats *table, coordi_heartbeat *beat);

/* Leaves the table; fine for one that is not in it. */
void coordi_heartbeats_forget(coordi_heartbeats *table, coordi_heartbeat *beat);

#endif
