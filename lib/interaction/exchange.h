/* One request to a peer with its retries, and what the peer finally said. */
#ifndef COORDI_INTERACTION_EXCHANGE_H
#define COORDI_INTERACTION_EXCHANGE_H

#include "env/env.h"
#include "wire/wire.h"

typedef struct coordi_exchange coordi_exchange;

/* How the owner wants requests to be repeated. */
typedef struct coordi_patience {
    int64_t timeout_ms;    /* for one attempt */
    int64_t retry_wait_ms; /* between two */
    uint32_t retries;      /* after the first */
} coordi_patience;

typedef struct coordi_outcome {
    coord_status status; /* COORD_OK: the peer said yes. COORD_ERR_REFUSED: it said no.
                          * COORD_ERR_PROTOCOL: it said something else. Other: it was not
                          * reached, or did not answer. */
    const coord_error *error; /* NULL with COORD_OK */
    coordi_answer answer;     /* with COORD_OK and COORD_ERR_REFUSED; borrowed */
    bool maybe_delivered; /* an attempt got no answer, but may have reached the peer */
    bool marked;          /* the answer came from a libcoord */
} coordi_outcome;

typedef void coordi_outcome_fn(const coordi_outcome *outcome, void *arg);

typedef struct coordi_exchange_spec {
    const char *method; /* a literal */
    const char *path;   /* a literal */
    const char *what;   /* opens error texts: "task X to worker Y"; copied */
    char *body;         /* taken over; NULL: out of memory, which fails the start */
    size_t body_len;
    coordi_patience patience;
    bool fresh;      /* a connection of its own for each attempt */
    bool repeatable; /* may be sent again though it may have been delivered: the peer
                      * takes the second for the first. Otherwise only what certainly did
                      * not reach it is sent again. */
    bool retry_busy; /* "already has a task" is no answer but a reason to try again */
    coordi_outcome_fn *done; /* called once, never from within start */
    void *arg;
} coordi_exchange_spec;

/* The peer must outlive the exchange. */
coord_status coordi_exchange_start(coord_loop *loop, coordi_http_peer *peer,
                                   const coordi_exchange_spec *spec,
                                   coordi_exchange **ret, coord_error *err);

/* Its done function won't run. The connection that it was on is closed, if its answer has
 * not come. Takes NULL. */
void coordi_exchange_cancel(coordi_exchange *exchange);

/* The same for one whose answer is on its way, but without closing its connection: the
 * answer is taken and dropped. Until then it stands in this list, of which the oldest is
 * canceled when there are too many. Takes NULL. */
void coordi_exchange_orphan(coordi_exchange *exchange, coordi_link *orphans);
void coordi_exchange_cancel_orphans(coordi_link *orphans);

#endif
