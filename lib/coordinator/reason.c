#include "coordinator/reason.h"

#include "base/error.h"

#include <string.h>

/* The one list of what comm_coordinator_why() can say. Words are only ever added. */
static const struct {
    const char *word;
    const char *advice;
} ROWS[COORDI_REASON_COUNT] = {
    [COORDI_REASON_CONNECTION_LOST] =
        {"connection_lost", "See whether the worker's process runs and its port can be "
                            "reached from here. It is connected again when it is back."},
    [COORDI_REASON_SILENT] =
        {"silent", "See whether its machine or process hangs, or the network drops what "
                   "it sends here. If it is merely slow: raise heartbeat_tolerance_s."},
    [COORDI_REASON_NO_PROGRESS] =
        {"no_progress", "It is alive, but reports nothing. If its work may take that "
                        "long: raise the limit that is named. Else restart its process."},
    [COORDI_REASON_ALWAYS_BUSY] =
        {"always_busy", "It still works at something, or its task thread has died: look "
                        "at its log, and restart its process if it never gets free."},
    [COORDI_REASON_ABANDONED_WORK] =
        {"abandoned_work",
         "It finishes what nobody waits for any more; it is used again "
         "when it reports. Restart its process if that takes too long."},
    [COORDI_REASON_REFUSED_START] =
        {"refused_start", "Look at its words and at its log: task and worker do not fit "
                          "together."},
    [COORDI_REASON_WORKER_FAILED_REQUEST] =
        {"worker_failed_request", "Look at its words and at the worker's log."},
    [COORDI_REASON_NO_SENSE] = {"answer_makes_no_sense",
                                "See whether a worker listens there that speaks this "
                                "protocol, and what its log says."},
    [COORDI_REASON_RESULT_TOO_BIG] =
        {"result_too_big", "Let the worker send a path instead of the data, or raise "
                           "max_body_bytes."},
    [COORDI_REASON_CONNECT_REFUSED] =
        {"connect_refused", "It has another master, or its hook says no. One that was "
                            "left behind lets go by itself; else restart it."},
    [COORDI_REASON_CALLBACK_FAILED] =
        {"callback_failed", "The host's own callback answered so: look there."},
    [COORDI_REASON_QUEUE_TIMEOUT] =
        {"queue_timeout", "Have more workers, give fewer tasks at once, or raise "
                          "queue_timeout_s."},
    [COORDI_REASON_CANCELED] = {"canceled", "None: comm_coordinator_cancel_task()."},
    [COORDI_REASON_CLOSED] = {"closed",
                              "None: it was closed. comm_coordinator_drain() lets tasks "
                              "come to their ends first."},
    [COORDI_REASON_OUT_OF_MEMORY] = {"out_of_memory", "Give this process more memory."},
    [COORDI_REASON_OWN_NETWORK] =
        {"own_network", "Look at this machine's network, ports and open files."},
    [COORDI_REASON_OTHER] = {"other", "See the words."},

    [COORDI_REASON_NO_FREE_WORKER] = {"no_free_worker",
                                      "Wait, or have more workers of this role."},
    [COORDI_REASON_NO_WORKER_CONNECTED] =
        {"no_worker_connected", "Start the workers, or see why they can't be reached."},
    [COORDI_REASON_NO_WORKER_CONFIGURED] =
        {"no_worker_configured",
         "Name workers of this role in the configuration, add them with "
         "comm_coordinator_add_worker(), or let an operator server or discovery bring "
         "them."},
    [COORDI_REASON_DISCOVERY_FAILS] =
        {"discovery_fails", "Run the command by hand, or look at deal_with_discovery: "
                            "new workers are found when it works again."},
    [COORDI_REASON_TASKS_BEFORE_IT] = {"tasks_before_it",
                                       "Wait: the oldest is served first."},
    [COORDI_REASON_POLICY_WAITS] =
        {"policy_waits",
         "See what the task asks for, and what the workers say they have."},
    [COORDI_REASON_WAITS_FOR_WORKER] =
        {"waits_for_worker", "Wait. Without a task timeout only its heartbeats are "
                             "watched."},
    [COORDI_REASON_PAUSE_AFTER_FAILURE] = {"pause_after_failure",
                                           "Wait: it is asked again soon."},
    [COORDI_REASON_CALLBACK_RUNNING] =
        {"callback_running", "It is the host's turn: see where that callback is, or "
                             "whether the executor has a thread left for it."},
    [COORDI_REASON_HOST_HAS_NO_DATA] = {"host_has_no_data",
                                        "See why the buffer stays empty; call "
                                        "comm_coordinator_data_ready() when it fills."},
    [COORDI_REASON_LEDGER_WRITES] = {"ledger_writes",
                                     "Look at the ledger's disk: is it full, or slow?"},
    [COORDI_REASON_WAITS_AFTER_RESTART] =
        {"waits_after_restart", "Wait: then the worker is asked again, or given up."},
    [COORDI_REASON_PASSING] = {"passing", "Wait: it is on its way through this state."},
    [COORDI_REASON_OPERATOR_UNREACHABLE] =
        {"operator_unreachable",
         "See whether the operator server runs and can be reached "
         "from here. It is asked again and again; till then "
         "workers neither come nor go."},
    [COORDI_REASON_OPERATOR_DEMAND_UNMET] =
        {"operator_demand_unmet", "See what the operator server and its cluster lack: "
                                  "quota, nodes, a template for pods of this role."},

    [COORDI_REASON_WORKER_FREE] = {"worker_free", "Give it a task."},
    [COORDI_REASON_WORKER_WORKS] = {"worker_works", "Ask about its task."},
    [COORDI_REASON_WORKER_CLEANS_UP] =
        {"worker_cleans_up", "Wait: it closes its last task and says what it has."},
    [COORDI_REASON_WORKER_CONNECTING] = {"worker_connecting",
                                         "Wait: it is connected, and asked what it has."},
    [COORDI_REASON_WORKER_AWAY] =
        {"worker_away", "Wait, or bring it back: it is tried again and again."},
    [COORDI_REASON_WORKER_LEAVES] = {"worker_leaves", "None: the coordinator closes."},
    [COORDI_REASON_QUARANTINED] =
        {"quarantined", "Wait for the next probe, or restart its process: it is used "
                        "again when it answers one."},
    [COORDI_REASON_PROBE_FAILED] = {"probe_failed",
                                    "It still does nothing: restart its process."},
};

const char *coordi_reason_word(coordi_reason reason)
{
    return ROWS[reason].word;
}

const char *coordi_reason_advice(coordi_reason reason)
{
    return ROWS[reason].advice;
}

static coordi_reason of_status(coord_status status)
{
    switch (status) {
    case COORD_ERR_LOST:
        return COORDI_REASON_CONNECTION_LOST;
    case COORD_ERR_TIMEOUT:
        return COORDI_REASON_NO_PROGRESS;
    case COORD_ERR_BUSY:
        return COORDI_REASON_ALWAYS_BUSY;
    case COORD_ERR_REFUSED:
    case COORD_ERR_TASK:
        return COORDI_REASON_WORKER_FAILED_REQUEST;
    case COORD_ERR_PROTOCOL:
        return COORDI_REASON_NO_SENSE;
    case COORD_ERR_TOO_BIG:
        return COORDI_REASON_RESULT_TOO_BIG;
    case COORD_ERR_CALLBACK:
        return COORDI_REASON_CALLBACK_FAILED;
    case COORD_ERR_CANCELED:
        return COORDI_REASON_CANCELED;
    case COORD_ERR_CLOSED:
        return COORDI_REASON_CLOSED;
    case COORD_ERR_NOMEM:
        return COORDI_REASON_OUT_OF_MEMORY;
    case COORD_ERR_NETWORK:
        return COORDI_REASON_OWN_NETWORK;
    default:
        return COORDI_REASON_OTHER;
    }
}

coordi_reason coordi_reason_of(const coord_error *why)
{
    for (int i = 0; why->reason != NULL && i < COORDI_REASON_COUNT; i++) {
        if (strcmp(ROWS[i].word, why->reason) == 0) {
            return (coordi_reason)i;
        }
    }
    return of_status(why->status);
}

void coordi_reason_mark(coord_error *why)
{
    why->reason = ROWS[coordi_reason_of(why)].word;
}

/* ---- errors ---- */

static void mark(coord_error *told, coordi_reason reason)
{
    told->reason = ROWS[reason].word;
}

void coordi_explain_loss(const coordi_member *m, const coord_error *why,
                         coord_error *told)
{
    const coord_connection *connection = m->connection;
    coord_error end =
        connection->state == COORDI_CONNECTION_LOST ? connection->end : *why;
    int64_t silent = coordi_now(m->c->loop) - connection->beat.last_ms;
    int64_t tolerance = m->c->config.heartbeat_tolerance_ms;

    if (silent > tolerance) {
        (void)coordi_fail_because(
            told, COORD_ERR_LOST, end.cause[0] == '\0' ? NULL : &end,
            "silent: no heartbeat from '%.60s' for %lld ms, tolerated are %lld "
            "(heartbeat_tolerance_s)",
            m->worker.id, (long long)silent, (long long)tolerance);
        mark(told, COORDI_REASON_SILENT);
    } else {
        (void)coordi_fail_because(told, COORD_ERR_LOST, &end,
                                  "connection lost: '%.60s' at %.100s:%u", m->worker.id,
                                  m->worker.host, (unsigned)m->worker.port);
        mark(told, COORDI_REASON_CONNECTION_LOST);
    }
}

void coordi_explain_connect(const coord_error *why, coord_error *told)
{
    *told = *why;
    if (why->status == COORD_ERR_REFUSED) {
        mark(told, COORDI_REASON_CONNECT_REFUSED);
    } else if (why->status == COORD_ERR_TIMEOUT) {
        mark(told, COORDI_REASON_CONNECTION_LOST);
    } else {
        coordi_reason_mark(told);
    }
}

static void explain_no_progress(const coordi_member *m, const coordi_ask *ask,
                                coord_error *told)
{
    (void)coordi_fail(
        told, COORD_ERR_TIMEOUT,
        ask->accepted ? "no progress: '%.60s' accepted %s and reported nothing within "
                        "%g s (%s)"
                      : "no progress: '%.60s' did not accept %s within %g s (%s)",
        m->worker.id, ask->name, (double)ask->limit_ms / 1000.0, ask->limit_key);
    mark(told, COORDI_REASON_NO_PROGRESS);
}

void coordi_explain(const coordi_member *m, const coordi_ask *ask, const coord_error *why,
                    coord_error *told)
{
    coord_status status = m == NULL || m->connection == NULL ? COORD_OK : why->status;
    switch (status) {
    case COORD_ERR_LOST:
        coordi_explain_loss(m, why, told);
        break;
    case COORD_ERR_TIMEOUT:
        explain_no_progress(m, ask, told);
        break;
    case COORD_ERR_BUSY:
        (void)coordi_fail_because(told, COORD_ERR_BUSY, why,
                                  "always busy: '%.60s' did not take %s, also after %lld "
                                  "retries (request_retries)",
                                  m->worker.id, ask->name,
                                  (long long)m->c->config.request_retries);
        mark(told, COORDI_REASON_ALWAYS_BUSY);
        break;
    default:
        *told = *why;
        coordi_reason_mark(told);
        break;
    }
}
