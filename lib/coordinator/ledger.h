/* The ledger: a file that remembers tasks, workers and results when the process dies.
 *
 * What is written: a task before it is accepted, an attempt before its first request, a
 * result before it is answered, a failure before the host is told of it, an end after
 * that; and who is connected by which token. Writes are carried out in the order in which
 * they are made.
 *
 * `sqlite3 FILE 'select * from task'` shows it, also while the coordinator runs. */
#ifndef COORDI_COORDINATOR_LEDGER_H
#define COORDI_COORDINATOR_LEDGER_H

#include "base/list.h"
#include "coordinator/config.h"
#include "env/env.h"
#include "wire/ticket.h"
#include "wire/wire.h"

typedef struct coordi_ledger coordi_ledger;

/* ---- what an earlier life left behind ---- */

typedef struct coordi_ledger_task {
    coordi_link link;
    uint64_t number;
    char *id;
    coord_role role;
    bool running; /* at this worker; else queued */
    uint32_t attempt;
    uint32_t losses;
    char *worker;
    char *resource;
    char *past;
    char *token;        /* of the worker's connection; "": none */
    coord_status fails; /* COORD_OK: not yet */
    char *error;
    char *cause;
    uint64_t sequence; /* of the last result of this attempt; 0: none */
    coordi_ticket_kind request;
    bool completed; /* ... or failed */
    char *result;
    size_t result_len;
    char *task;
    size_t task_len;
} coordi_ledger_task;

typedef struct coordi_ledger_worker {
    coordi_link link;
    coord_role role;
    char id[COORD_ID_SIZE];
    char host[COORDI_HOST_SIZE];
    uint16_t port;
    char token[COORDI_TOKEN_SIZE];
    bool marked;    /* is a libcoord */
    bool connected; /* ... or lost */
} coordi_ledger_worker;

typedef struct coordi_ledger_past {
    coordi_ticket_key key;
    uint64_t last_number; /* of a task; 0: none yet */
    uint16_t port;        /* it listened on; 0: never did */
    char address[COORDI_HOST_PORT_SIZE];
    uint64_t accepted; /* totals of all lives */
    uint64_t finished;
    uint64_t failed;
    uint64_t moved;
    coordi_link tasks; /* that have not ended, oldest first */
    coordi_link workers;
} coordi_ledger_past;

/* Opens the file, or makes it, and reads all of it. Any thread; may take a while. */
coord_status coordi_ledger_open(coord_loop *loop, const coordi_config *config,
                                const coordi_log *log, coordi_ledger **ret,
                                coord_error *err);
/* Gives it back; what was handed over is still written. Takes NULL. */
void coordi_ledger_close(coordi_ledger *ledger);

/* The past, which goes with the first call of _forget_past. */
coordi_ledger_past *coordi_ledger_get_past(coordi_ledger *ledger);
void coordi_ledger_forget_past(coordi_ledger *ledger);

/* ---- writing; loop thread ---- */

/* On the loop, later, once: it is durable (NULL), or why not. */
typedef void coordi_ledger_done_fn(const coord_error *failure, void *arg);

/* Who asks to be told when nothing is on its way any more. */
void coordi_ledger_on_idle(coordi_ledger *ledger, void (*idle)(void *arg), void *arg);
bool coordi_ledger_is_idle(const coordi_ledger *ledger);

/* Those with a done function fail when there is no memory; then it isn't called. The
 * others do what they can, and log what they can't. */
coord_status coordi_ledger_accept(coordi_ledger *ledger, uint64_t number, const char *id,
                                  coord_role role, coord_text task,
                                  coordi_ledger_done_fn *done, void *arg,
                                  coord_error *err);

typedef struct coordi_ledger_attempt {
    uint64_t number;
    uint32_t attempt;
    uint32_t losses;
    const char *worker; /* "": it waits for one */
    const char *resource;
    const char *past;
    const char *token; /* of the worker's connection */
} coordi_ledger_attempt;

coord_status coordi_ledger_begin(coordi_ledger *ledger, const coordi_ledger_attempt *what,
                                 coordi_ledger_done_fn *done, void *arg,
                                 coord_error *err);
/* The attempt is over, and this one will begin. */
void coordi_ledger_requeue(coordi_ledger *ledger, const coordi_ledger_attempt *what);
void coordi_ledger_replace_text(coordi_ledger *ledger, uint64_t number, coord_text task);
coord_status coordi_ledger_result(coordi_ledger *ledger, const coordi_ticket *ticket,
                                  bool completed, coord_text result,
                                  coordi_ledger_done_fn *done, void *arg,
                                  coord_error *err);
/* It will fail: its worker has it no longer, and the host is told next. */
coord_status coordi_ledger_fail(coordi_ledger *ledger, uint64_t number,
                                const coord_error *why, coordi_ledger_done_fn *done,
                                void *arg, coord_error *err);
/* `why` NULL: finished. What can't be written now is kept and written later; done is told
 * all the same. */
coord_status coordi_ledger_end(coordi_ledger *ledger, uint64_t number,
                               const coord_error *why, coordi_ledger_done_fn *done,
                               void *arg, coord_error *err);

void coordi_ledger_listening(coordi_ledger *ledger, const char *address, uint16_t port);
void coordi_ledger_connected(coordi_ledger *ledger, const coordi_ledger_worker *worker);
void coordi_ledger_lost(coordi_ledger *ledger, const char *token);
void coordi_ledger_parted(coordi_ledger *ledger, const char *token);

/* The last failure to write; NULL: none since the last success, or no ledger. */
const coord_error *coordi_ledger_trouble(const coordi_ledger *ledger);

/* For the status: adds a JSON object. */
void coordi_ledger_print(const coordi_ledger *ledger, coordi_buf *buf);

#endif
