/* Why a task or a worker is as it is: one table of words, each with what to do about it,
 * and the errors that carry them.
 *
 * Three ways to notice that a worker is of no use are kept apart. Its connection is lost:
 * a request to it was refused, reset, or not answered, after the configured retries. It
 * is silent: no heartbeat within the tolerance. It makes no progress: it is alive, has
 * accepted a request, and reports nothing within that request's time. */
#ifndef COORDI_COORDINATOR_REASON_H
#define COORDI_COORDINATOR_REASON_H

#include "coordinator/coordinator.h"

typedef enum coordi_reason {
    /* why a worker, or a task with it, has come to grief */
    COORDI_REASON_CONNECTION_LOST,
    COORDI_REASON_SILENT,
    COORDI_REASON_NO_PROGRESS,
    COORDI_REASON_ALWAYS_BUSY,
    COORDI_REASON_ABANDONED_WORK,
    COORDI_REASON_REFUSED_START,
    COORDI_REASON_WORKER_FAILED_REQUEST,
    COORDI_REASON_NO_SENSE,
    COORDI_REASON_RESULT_TOO_BIG,
    COORDI_REASON_CONNECT_REFUSED,
    COORDI_REASON_CALLBACK_FAILED,
    COORDI_REASON_QUEUE_TIMEOUT,
    COORDI_REASON_CANCELED,
    COORDI_REASON_CLOSED,
    COORDI_REASON_OUT_OF_MEMORY,
    COORDI_REASON_OWN_NETWORK,
    COORDI_REASON_OTHER,
    /* what a task waits for */
    COORDI_REASON_NO_FREE_WORKER,
    COORDI_REASON_NO_WORKER_CONNECTED,
    COORDI_REASON_NO_WORKER_CONFIGURED,
    COORDI_REASON_DISCOVERY_FAILS,
    COORDI_REASON_TASKS_BEFORE_IT,
    COORDI_REASON_POLICY_WAITS,
    COORDI_REASON_WAITS_FOR_WORKER,
    COORDI_REASON_PAUSE_AFTER_FAILURE,
    COORDI_REASON_CALLBACK_RUNNING,
    COORDI_REASON_HOST_HAS_NO_DATA,
    COORDI_REASON_LEDGER_WRITES,
    COORDI_REASON_WAITS_AFTER_RESTART,
    COORDI_REASON_PASSING,
    COORDI_REASON_OPERATOR_UNREACHABLE,
    COORDI_REASON_OPERATOR_DEMAND_UNMET,
    /* what a worker is at */
    COORDI_REASON_WORKER_FREE,
    COORDI_REASON_WORKER_WORKS,
    COORDI_REASON_WORKER_CLEANS_UP,
    COORDI_REASON_WORKER_CONNECTING,
    COORDI_REASON_WORKER_AWAY,
    COORDI_REASON_WORKER_LEAVES,
    COORDI_REASON_QUARANTINED,
    COORDI_REASON_PROBE_FAILED,
    COORDI_REASON_COUNT
} coordi_reason;

/* The machine-readable word, such as "no_progress". */
const char *coordi_reason_word(coordi_reason reason);
/* What to do about it. */
const char *coordi_reason_advice(coordi_reason reason);
/* What an error says of itself, or else what its status comes down to. */
coordi_reason coordi_reason_of(const coord_error *why);
/* Makes sure that the error carries a word. */
void coordi_reason_mark(coord_error *why);

/* A request to a worker that has failed, for the words of an error. */
typedef struct coordi_ask {
    const char *name;
    bool accepted;
    int64_t limit_ms;
    const char *limit_key; /* in the configuration */
} coordi_ask;

/* That of a run, under way or just failed. */
coordi_ask coordi_run_ask(const coordi_run *run);

/* What a request that failed says of its worker, in words that tell the three apart.
 * `told` may be `why`. */
void coordi_explain(const coordi_member *m, const coordi_ask *ask, const coord_error *why,
                    coord_error *told);
/* The same for a connection that was lost. */
void coordi_explain_loss(const coordi_member *m, const coord_error *why,
                         coord_error *told);
/* The same for one that did not come about. */
void coordi_explain_connect(const coord_error *why, coord_error *told);

#endif
