/* A server of DI-orchestrator that starts no pods: it answers as the real ones do (0.2.2
 * for v1alpha1, 1.0 and later for v2alpha1), with their quirks, and a script says what
 * goes wrong. In a simulated world it lives on a loop and its time is virtual; over
 * sockets it has a thread of its own and listens on 127.0.0.1.
 *
 * What GETs and look-ups see lags behind what is, by fake_operator_set_lag(): a pod that
 * was just created is missing, one that was just deleted is still there. Lists of
 * v1alpha1 come in another order each time. Of v2alpha1 they are by rank; a node whose id
 * is "" has no address yet.
 *
 * The script may be changed at any time: between two steps of the simulated world, in one
 * of its callbacks, and beside a server over sockets. */
#ifndef TEST_SUPPORT_FAKE_OPERATOR_H
#define TEST_SUPPORT_FAKE_OPERATOR_H

#include "coord/loop.h"

typedef struct fake_operator fake_operator;

enum { FAKE_V1 = 1, FAKE_V2 = 2 };

typedef struct fake_operator_spec {
    int api;                /* 0: FAKE_V1 */
    const char *name_space; /* NULL: "default" */
    const char *name;       /* of the coordinator's pod; NULL: "job-coordinator" */
    const char *job_id;     /* NULL: "default.job" */
    uint16_t port;          /* 0: any */
} fake_operator_spec;

/* On a simulated loop, whose machine it listens on. Ends the test program when it can't,
 * as all of these do. */
fake_operator *fake_operator_on_loop(coord_loop *loop, const fake_operator_spec *spec);
fake_operator *fake_operator_on_sockets(const fake_operator_spec *spec);
uint16_t fake_operator_port(fake_operator *f);
/* Before the loop and the world are given back. */
void fake_operator_stop(fake_operator *f);

/* ---- the pods ---- */

typedef enum fake_list { FAKE_COLLECTORS, FAKE_LEARNERS, FAKE_NODES } fake_list;

/* At once, without a lag; by their ids: "job-collector-x.default:22270". */
void fake_operator_add(fake_operator *f, fake_list list, const char *id);
void fake_operator_remove(fake_operator *f, const char *id);
/* One takes the other's place in the list, as at a rank that gets another address. */
void fake_operator_replace(fake_operator *f, const char *id, const char *by);
/* So many pods of names that it makes up, instead of all that are in the list; those that
 * are there stay as far as they can. */
void fake_operator_scale(fake_operator *f, fake_list list, size_t count);
/* What the n-th pod that it makes up, counted from 0 over all lists, is called if it is
 * of this list. */
enum { FAKE_ID_SIZE = 256 };
void fake_operator_name(const fake_operator *f, fake_list list, unsigned n,
                        char id[FAKE_ID_SIZE]);
/* Where there is something behind its pods: says how the id of the n-th pod that is made
 * is spelt, such as "127.0.0.7:40001". Called under its lock. */
typedef void fake_namer_fn(void *arg, fake_list list, unsigned n, char *id, size_t size);
void fake_operator_set_namer(fake_operator *f, fake_namer_fn *namer, void *arg);
/* How many there really are, and the n-th of them; NULL: there is none. */
size_t fake_operator_count(fake_operator *f, fake_list list);
const char *fake_operator_id(fake_operator *f, fake_list list, size_t n);

/* ---- what is wrong with it ---- */

typedef enum fake_kind {
    FAKE_GET,
    FAKE_POST,
    FAKE_DELETE,
    FAKE_FAILED,
    FAKE_KINDS
} fake_kind;

typedef enum fake_fault {
    FAKE_NOT_YET,  /* 404: the coordinator's pod is not in its cache; nothing is done */
    FAKE_ERROR,    /* 500 with empty data; nothing is done */
    FAKE_PARTIAL,  /* it does the first pod alone, then 500 with that in data */
    FAKE_CONFLICT, /* the same with 409 */
    FAKE_BAD_GATEWAY,  /* a proxy's page; nothing is done */
    FAKE_DONE_SILENT,  /* it does it, and never answers */
    FAKE_FIRST_SILENT, /* it does the first pod alone, and never answers */
    FAKE_SILENT,       /* it does nothing, and never answers */
    FAKE_DONE_BROKEN,  /* it does it, and the connection breaks */
    FAKE_BROKEN,       /* it does nothing, and the connection breaks */
    FAKE_GARBAGE       /* it does it, and answers 200 with the text of set_garbage */
} fake_fault;

/* The next `count` requests of a kind meet this; faults wait in line. */
void fake_operator_fail(fake_operator *f, fake_kind kind, fake_fault fault, size_t count);
void fake_operator_mend(fake_operator *f); /* no fault waits any more */
void fake_operator_set_garbage(fake_operator *f, const char *text);
void fake_operator_set_lag(fake_operator *f, int64_t lag_ms);
void fake_operator_set_delay(fake_operator *f, int64_t delay_ms); /* of each answer */
/* False: its port refuses connections, as one that is not the leader's does. */
void fake_operator_set_listening(fake_operator *f, bool listening);
/* False: it does not have the pod or job that asks in its cache (404). */
void fake_operator_set_known(fake_operator *f, bool known);
/* True: lists of no pods are null, as a server in Go prints them. */
void fake_operator_set_null_lists(fake_operator *f, bool null_lists);
/* True: lists are objects whose keys are ids, as DI-engine's own test server has it. */
void fake_operator_set_dicts(fake_operator *f, bool dicts);
/* v2alpha1. True: POST and DELETE say yes and do nothing. */
void fake_operator_set_preemptible(fake_operator *f, bool preemptible);
/* It becomes a server of the other API. */
void fake_operator_set_api(fake_operator *f, int api);
int fake_operator_api(fake_operator *f);

/* ---- what came ---- */

size_t fake_operator_requests(fake_operator *f, fake_kind kind);
/* The body of the last of a kind; "": none came. Until the next one. */
const char *fake_operator_body(fake_operator *f, fake_kind kind);
size_t fake_operator_created(fake_operator *f); /* pods, by POST and by failed */
size_t fake_operator_deleted(fake_operator *f);

#endif
