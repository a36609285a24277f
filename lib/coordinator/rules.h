/* How the tables of collector_run.c and learner_run.c are written, and the rules that
 * both kinds of task have: the way in, and the ways out. */
#ifndef COORDI_COORDINATOR_RULES_H
#define COORDI_COORDINATOR_RULES_H

#include "coordinator/coordinator.h"

/* clang-format off */

/* In this state, at this event: the next state, and what is done. */
#define ON(state, event, next, act) \
    [COORDI_STATE_##state][COORDI_EVENT_##event] = {COORDI_STATE_##next, act}

/* While a worker has the task, it can be lost, and the task be moved, stopped, or left to
 * the ledger. */
#define ON_TROUBLE(state)                                   \
    ON(state, MOVED,  RESTARTING, coordi_run_move),         \
    ON(state, LOST,   FAILING,   coordi_run_fail),          \
    ON(state, STOP,   FAILING,   coordi_run_fail),          \
    ON(state, SHELVE, SHELVING,  coordi_run_shelve)

#define RULES_OF_BOTH                                       \
    ON(RECORDING, RECORDED, QUEUED,    coordi_run_queue),   \
    ON(RECORDING, BROKEN,   ENDED,     coordi_run_refuse),  \
    ON(RECORDING, STOP,     FAILING,   coordi_run_fail),    \
    ON(RECORDING, SHELVE,   SHELVING,  coordi_run_shelve),  \
                                                            \
    ON(QUEUED,    ASSIGNED, ASSIGNING, coordi_run_record_attempt), \
    ON(QUEUED,    STOP,     FAILING,   coordi_run_fail),    \
    ON(QUEUED,    LOST,     FAILING,   coordi_run_fail),    /* nobody left to wait for */ \
    ON(QUEUED,    SHELVE,   SHELVING,  coordi_run_shelve),  \
                                                            \
    ON(ASSIGNING, RECORDED, STARTING,  coordi_run_send_start), \
    ON(ASSIGNING, DUE,      ASSIGNING, coordi_run_record_attempt), /* it failed */ \
    ON_TROUBLE(ASSIGNING),                                  \
                                                            \
    ON(STARTING,  ACCEPTED, ASKING,    coordi_run_started), \
    ON(STARTING,  BROKEN,   FAILING,   coordi_run_fail),    \
    ON_TROUBLE(STARTING),                                   \
                                                            \
    ON(RESTARTING, WARNED,  QUEUED,    coordi_run_queue_again), \
    ON(RESTARTING, BROKEN,  FAILING,   coordi_run_fail),    \
    ON(RESTARTING, STOP,    FAILING,   coordi_run_fail),    \
    ON(RESTARTING, SHELVE,  SHELVING,  coordi_run_shelve),  \
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
    ON(FINISHING, TOLD,     SETTLING,  coordi_run_record_end), \
    ON(FAILING,   TOLD,     SETTLING,  coordi_run_record_end), \
    ON(SETTLING,  RECORDED, ENDED,     coordi_run_end),     \
    ON(SHELVING,  TOLD,     ENDED,     coordi_run_end),     \
                                                            \
    /* after a restart */                                   \
    ON(RESUMING,  WARNED,   QUEUED,    coordi_run_queue),   /* nobody had it */ \
    ON(RESUMING,  MOVED,    RESTARTING, coordi_run_move), \
    ON(RESUMING,  RESUMED,  AWAITING,  coordi_run_await),   \
    ON(RESUMING,  STOP,     FAILING,   coordi_run_fail),    \
    ON(RESUMING,  SHELVE,   SHELVING,  coordi_run_shelve),  \
                                                            \
    ON(AWAITING,  ASSIGNED, STARTING,  coordi_run_send_start), /* did it get that far? */ \
    ON(AWAITING,  CLAIMED_START, STARTING, coordi_run_claimed), \
    ON(AWAITING,  CLAIMED_ASK,   ASKING,   coordi_run_claimed), \
    ON(AWAITING,  CLAIMED_LEARN, LEARNING, coordi_run_claimed), \
    ON(AWAITING,  CLAIMED_CLOSE, CLOSING,  coordi_run_claimed), \
    ON(AWAITING,  LOST,     RESTARTING, coordi_run_move), \
    ON(AWAITING,  MOVED,    RESTARTING, coordi_run_move), \
    ON(AWAITING,  STOP,     FAILING,   coordi_run_fail),    \
    ON(AWAITING,  SHELVE,   SHELVING,  coordi_run_shelve)

/* clang-format on */

#endif
