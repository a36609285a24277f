/* How the tables of collector_run.c and learner_run.c are written, and the rules that
 * both kinds of task have: the way in, and the ways out. */
#ifndef COORDI_COORDINATOR_RULES_H
#define COORDI_COORDINATOR_RULES_H

#include "coordinator/coordinator.h"

/* clang-format off */

/* In this state, at this event: the next state, and what is done. */
#define ON(state, event, next, act) \
    [COORDI_STATE_##state][COORDI_EVENT_##event] = {COORDI_STATE_##next, act}

/* While a worker has the task, it can be lost, and the task be moved or stopped. */
#define ON_TROUBLE(state)                                   \
    ON(state, MOVED, RESTARTING, coordi_run_move),          \
    ON(state, LOST, FAILING, coordi_run_fail),              \
    ON(state, STOP, FAILING, coordi_run_fail)

#define RULES_OF_BOTH                                       \
    ON(QUEUED,    ASSIGNED, STARTING,  coordi_run_send_start), \
    ON(QUEUED,    STOP,     FAILING,   coordi_run_fail),    \
    ON(QUEUED,    LOST,     FAILING,   coordi_run_fail),    /* nobody left to wait for */ \
                                                            \
    ON(STARTING,  ACCEPTED, ASKING,    coordi_run_started), \
    ON(STARTING,  BROKEN,   FAILING,   coordi_run_fail),    \
    ON_TROUBLE(STARTING),                                   \
                                                            \
    ON(RESTARTING, WARNED,  QUEUED,    coordi_run_queue_again), \
    ON(RESTARTING, BROKEN,  FAILING,   coordi_run_fail),    \
    ON(RESTARTING, STOP,    FAILING,   coordi_run_fail),    \
                                                            \
    ON(PAUSING,   DUE,      ASKING,    coordi_run_send_ask), \
    ON_TROUBLE(PAUSING),                                    \
                                                            \
    ON(JUDGING,   NO,       ASKING,    coordi_run_send_ask), \
    ON(JUDGING,   YES,      CLOSING,   coordi_run_send_close), \
    ON_TROUBLE(JUDGING),                                    \
                                                            \
    ON(CLOSING,   CLOSED,   RELEASING, coordi_run_release), \
    ON(CLOSING,   BROKEN,   RELEASING, coordi_run_release_open), \
    ON_TROUBLE(CLOSING),                                    \
                                                            \
    ON(RELEASING, RELEASED, FINISHING, coordi_run_finish),  \
    ON(FINISHING, TOLD,     ENDED,     coordi_run_end),     \
    ON(FAILING,   TOLD,     ENDED,     coordi_run_end)

/* clang-format on */

#endif
