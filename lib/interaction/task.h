/* A task as the layers above the connection see it. See coord/task.h for its public face.
 *
 * On the loop thread a task has one listener (the coordinator's task run). It is called
 * when the slave has accepted the task, and when the task has settled; a result that
 * comes before the answer to /task/new proves acceptance, so both calls follow at once
 * then. */
#ifndef COORDI_INTERACTION_TASK_H
#define COORDI_INTERACTION_TASK_H

#include "coord/connection.h"
#include "env/env.h"
#include "interaction/exchange.h"

typedef void coordi_task_listener_fn(coord_task *task, void *arg);

struct coord_task {
    atomic_size_t refs;
    coord_connection *connection; /* a reference */
    char id[COORDI_UUID_SIZE];
    char *data; /* owned, checked JSON */
    size_t data_len;

    /* Written on the loop, read anywhere: result and error before status. */
    atomic_int status;
    char *result;
    size_t result_len;
    coord_error error;

    /* The rest is the loop thread's. */
    coordi_link link; /* in the connection's live tasks */
    bool maybe_sent;  /* before, by an earlier life of ours: who is busy may be busy with
                         it */
    bool assumed;     /* ... and is */
    bool kept;        /* its result is written down before it is answered */
    bool keeping;     /* ... just now */
    coordi_link held; /* and came again meanwhile */
    coordi_exchange *exchange;
    coordi_timer timeout;
    int64_t timeout_ms;
    coordi_task_listener_fn *listener;
    void *listener_arg;
    coordi_link await_start;  /* ops */
    coordi_link await_settle; /* ops */

    coordi_job start_job; /* of a start that nobody waits for */
    coordi_job cancel_job;
    atomic_flag start_posted;
    atomic_flag cancel_posted;

    coord_task_fn *on_complete;
    void *complete_user;
    coord_task_fn *on_fail;
    void *fail_user;
    coordi_job start_report; /* on the connection's lane */
    coordi_job settle_report;
    bool accepted; /* by the slave; what start_report tells */
    bool reported;
};

/* Any thread. Takes `data` as it is: checked, not empty. */
coord_status coordi_task_create(coord_connection *connection, coord_text data,
                                coord_task **ret, coord_error *err);

/* Loop thread, all of these. `start` may fail at once; then the listener isn't called. */
coord_status coordi_task_start(coord_task *task, int64_t timeout_ms, coord_error *err);
/* A task that an earlier life of ours started under this id, and whose result may still
 * come. Yours, as from coordi_task_create. */
coord_status coordi_task_adopt(coord_connection *connection, const char *id,
                               coord_task **ret, coord_error *err);
void coordi_task_fail(coord_task *task, const coord_error *why);
/* Tells the host once that the task has settled, as soon as there is a function for it.
 */
void coordi_task_report_settled(coord_task *task);
/* The slave's report. `result` is copied. False: nobody waits for it (any more). */
bool coordi_task_report(coord_task *task, bool completed, coord_text result);
/* The slave's report has come, but is of no use. */
void coordi_task_fail_report(coord_task *task, const coord_error *why);

static inline bool coordi_task_is_settled(const coord_task *task)
{
    int status = atomic_load(&task->status);
    return status == COORD_TASK_START_FAILED || status == COORD_TASK_COMPLETED ||
           status == COORD_TASK_FAILED;
}

#endif
