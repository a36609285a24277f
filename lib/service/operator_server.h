/* The client of an operator server on its loop. See coord/operator_server.h for the
 * public face, which is this with calls that wait.
 *
 * Vocabulary
 *   list    what a GET gave
 *   change  a call that makes a difference at the server: post, delete, failed. One at a
 *           time is under way, the others stand in line; GETs go at once.
 *   look    a GET in the course of a call: to find out the API, to have a list from
 * before the change, or to see what became of one whose answer did not come mark    a pod
 * that was reported as failed, until a list has come without it
 *
 * A call goes through phases:
 *   QUEUED -> LOOKING -> (get: the end)
 *                     -> SENDING -> the end, or the next pod of failed
 *   SENDING, unknown  -> SETTLING -> CONFIRMING -> the end, SETTLING, or SENDING the rest
 * What can't have had an effect and may pass goes back to LOOKING or SENDING after a
 * pause, if the call wants that. The deadline ends each phase. */
#ifndef COORDI_SERVICE_OPERATOR_SERVER_H
#define COORDI_SERVICE_OPERATOR_SERVER_H

#include "base/map.h"
#include "env/env.h"
#include "service/operator_answer.h"

enum { COORDI_OPERATOR_PLACE_SIZE = COORDI_HOST_PORT_SIZE + COORDI_PREFIX_SIZE + 8 };

typedef struct coordi_operator_settings {
    coordi_address address;
    coordi_operator_api wanted;             /* AUTO: to be found out */
    coordi_operator_api first;              /* with AUTO: asked for first */
    char place[COORDI_OPERATOR_PLACE_SIZE]; /* "http://host:port/prefix" */
    char name_space[COORD_ID_SIZE];         /* with name: v1alpha1 can be asked */
    char name[COORD_ID_SIZE];
    char job_id[2 * COORD_ID_SIZE]; /* v2alpha1 can be asked */
    bool aggregator;
    int64_t connect_timeout_ms;
    int64_t request_timeout_ms;
    int64_t retry_wait_ms;
    int64_t settle_ms;
    size_t max_answer_bytes;
    size_t max_replicas;
} coordi_operator_settings;

/* Checks the options and fills in what the environment knows. Any thread. */
coord_status coordi_operator_settings_read(coordi_operator_settings *ret,
                                           coord_loop *loop,
                                           const coord_operator_server_options *options,
                                           coord_error *err);

/* An environment variable; NULL: it is not set, or empty. Borrowed. Any thread. */
const char *coordi_operator_variable(coord_loop *loop, const char *name);

/* Can this API be asked, with what is known? */
bool coordi_operator_can_ask(const coordi_operator_settings *s, coordi_operator_api api);

/* ---- the client: loop thread, unless it says otherwise ---- */

typedef struct coordi_operator coordi_operator;
typedef struct coordi_operator_call coordi_operator_call;

typedef enum coordi_operator_kind {
    COORDI_OPERATOR_GET,
    COORDI_OPERATOR_POST,
    COORDI_OPERATOR_DELETE,
    COORDI_OPERATOR_FAILED
} coordi_operator_kind;

typedef struct coordi_operator_outcome {
    coord_status status;           /* as in coord/operator_server.h */
    const coord_error *error;      /* NULL with COORD_OK */
    coord_operator_answer *answer; /* now yours; NULL: none. May come with a failure */
    bool unknown; /* nothing told whether the change, or a part of it, was carried out */
} coordi_operator_outcome;

typedef void coordi_operator_done_fn(const coordi_operator_outcome *outcome, void *arg);

/* All is copied. */
typedef struct coordi_operator_spec {
    coordi_operator_kind kind;
    const coord_operator_request *request; /* post, delete */
    const char *const *names;              /* failed: of pods, or ids */
    size_t name_count;
    int64_t wait_ms; /* it is done by then, whatever the server does */
    bool retry;      /* what may pass is tried again until then; else told at once */
    coordi_operator_done_fn *done; /* called once, never from within start */
    void *arg;
} coordi_operator_spec;

/* `log` is copied. Fails with COORD_ERR_UNSUPPORTED (https), _NOMEM. */
coord_status coordi_operator_create(coord_loop *loop,
                                    const coordi_operator_settings *settings,
                                    const coordi_log *log, coordi_operator **ret,
                                    coord_error *err);
/* No done function runs any more. Takes NULL. May be called from one. */
void coordi_operator_destroy(coordi_operator *op);

/* Begins a call. `ret` is optional, and valid until done. COORD_ERR_ARG: the request or a
 * name is wrong. */
coord_status coordi_operator_start(coordi_operator *op, const coordi_operator_spec *spec,
                                   coordi_operator_call **ret, coord_error *err);
/* Its done function won't run. A change that is under way may have an effect. */
void coordi_operator_cancel(coordi_operator_call *call);

/* The same in two steps: made on any thread, then begun on the loop, or freed. */
coord_status coordi_operator_call_create(const coordi_operator_spec *spec,
                                         const char *name_space,
                                         coordi_operator_call **ret, coord_error *err);
void coordi_operator_call_begin(coordi_operator *op, coordi_operator_call *call);
void coordi_operator_call_free(coordi_operator_call *call); /* takes NULL */

const coordi_operator_settings *coordi_operator_settings_of(const coordi_operator *op);

/* ---- for operator_call.c, operator_run.c and operator_change.c ---- */

typedef enum coordi_operator_phase {
    COORDI_OPERATOR_QUEUED,
    COORDI_OPERATOR_LOOKING,
    COORDI_OPERATOR_SENDING,
    COORDI_OPERATOR_SETTLING,
    COORDI_OPERATOR_CONFIRMING
} coordi_operator_phase;

typedef struct coordi_operator_wish {
    int32_t count[COORDI_OPERATOR_LISTS];
    char *cpus[2]; /* of collectors and learners; NULL: as the template has it */
    char *gpus[2];
    char *memory[2];
} coordi_operator_wish;

struct coordi_operator_call {
    coordi_link link; /* in op->gets or op->changes */
    coordi_operator *op;
    coordi_operator_kind kind;
    coordi_operator_phase phase;
    coordi_operator_wish wish;
    char **names; /* of pods */
    size_t name_count;
    size_t name_at;
    int64_t wait_ms;
    int64_t deadline_ms;
    bool retry;
    coordi_operator_done_fn *done;
    void *arg;

    coordi_http_request *http; /* under way; else NULL */
    coordi_timer timer;
    coordi_operator_api asked; /* by the look under way */
    coordi_operator_api api;   /* of the change: that of the list from before it */
    bool other_asked;          /* both APIs were, one after the other */
    uint64_t serial;           /* op->serial when the look was sent */
    unsigned attempts;         /* that failed since the last that went well */
    coord_error failure;       /* the last */
    bool in_doubt;             /* an answer is missing */
    bool compared;             /* once at least since then */
    size_t seen[COORDI_OPERATOR_LISTS]; /* of the change, at the last comparison */
    coord_operator_answer *before;      /* the list before it; NULL: none yet */
    coord_operator_answer *so_far;      /* what the answer to the caller will be */
    char what[COORDI_OPERATOR_PLACE_SIZE + 64];
};

struct coordi_operator {
    coord_loop *loop;
    coordi_operator_settings settings;
    coordi_log log;
    coordi_http_peer *peer;
    coordi_operator_api api; /* that it was found to speak; or AUTO */
    uint64_t serial;         /* rises with each report */
    size_t skipped;          /* in the last list */
    coordi_map marks;        /* pod name to its mark */
    coordi_link gets;
    coordi_link changes; /* the first is under way */
};

/* operator_call.c: what is sent. NULL: out of memory. */
char *coordi_operator_path(const coordi_operator_call *call, coordi_operator_api api,
                           bool look);
char *coordi_operator_body(const coordi_operator_call *call, size_t *len);
const char *coordi_operator_method(const coordi_operator_call *call);
/* Is `name` among the replicas of the list? */
bool coordi_operator_lists(const coord_operator_answer *answer, const char *name);

/* operator_run.c: how a call goes on. */
void coordi_operator_look(coordi_operator_call *call);
void coordi_operator_settle(coordi_operator_call *call);
/* `call->failure` may pass: again, if there is time and it is wanted. */
void coordi_operator_again(coordi_operator_call *call);
/* The end of it; frees it. */
void coordi_operator_finish(coordi_operator_call *call, coord_status status);
bool coordi_operator_send(coordi_operator_call *call, const char *method, char *path,
                          char *body, size_t len, coordi_http_done_fn *done);

/* operator_change.c. A list has come: before a change, or to compare. */
void coordi_operator_change(coordi_operator_call *call, coord_operator_answer *list);
/* Sends the change, or its rest, once more. */
void coordi_operator_submit(coordi_operator_call *call);
/* Forgets those that have gone. */
void coordi_operator_sweep(coordi_operator *op, const coord_operator_answer *list,
                           uint64_t before_serial);

#endif
