/* Timers in the order in which they are due; used by the real loop and the simulated one.
 *
 * A pairing heap whose links stand in the timers themselves, so that setting a timer
 * never allocates and never fails. Setting costs O(1), taking the first one O(log n)
 * amortised. Timers of one instant come out in the order they were set. */
#ifndef COORDI_ENV_TIMERS_H
#define COORDI_ENV_TIMERS_H

#include "env/env.h"

/* All zero is an empty heap. */
typedef struct coordi_heap {
    coordi_timer *top;
    uint64_t last_order; /* of the timer that was set last */
    size_t count;
} coordi_heap;

/* Sets a timer, or moves one that is set. */
void coordi_heap_set(coordi_heap *heap, coordi_timer *timer, int64_t at_ms);

/* Does nothing to a timer that is not set. */
void coordi_heap_cancel(coordi_heap *heap, coordi_timer *timer);

/* The timer that is due first, still set; NULL when there is none. */
coordi_timer *coordi_heap_first(const coordi_heap *heap);

/* Takes out the first timer if it is due at `now_ms` and was set no later than `newest`;
 * else NULL. A round of firing passes the last_order from before the round, so that a
 * timer which sets itself for "now" can't keep the round going for ever. */
coordi_timer *coordi_heap_pop_due(coordi_heap *heap, int64_t now_ms, uint64_t newest);

#endif
