/* What an operator server answers: read from any bytes, kept as typed lists. Pure. */
#ifndef COORDI_SERVICE_OPERATOR_ANSWER_H
#define COORDI_SERVICE_OPERATOR_ANSWER_H

#include "coord/operator_server.h"

typedef enum coordi_operator_api {
    COORDI_OPERATOR_AUTO, /* not found out yet */
    COORDI_OPERATOR_V1,
    COORDI_OPERATOR_V2
} coordi_operator_api;

const char *coordi_operator_api_str(coordi_operator_api api);

typedef enum coordi_operator_list {
    COORDI_OPERATOR_COLLECTORS,
    COORDI_OPERATOR_LEARNERS,
    COORDI_OPERATOR_NODES,
    COORDI_OPERATOR_LISTS
} coordi_operator_list;

/* How an answer is to be read. */
typedef struct coordi_operator_reading {
    coordi_operator_api api;
    bool must_list;         /* an answer to a GET: without a list it makes no sense */
    const char *name_space; /* v1alpha1: of the pod that asks */
    const char *name;
    size_t max_replicas;
    const char *what; /* opens error texts: "operator server http://x:80: GET /y" */
} coordi_operator_reading;

typedef struct coordi_operator_verdict {
    bool no_route; /* there is no such path: the server does not speak this API */
    bool told;     /* the answer says what was done: `data` has its shape */
    coord_operator_answer *answer; /* the caller's; NULL: not in the server's envelope */
} coordi_operator_verdict;

/* COORD_OK: it says yes. COORD_ERR_REFUSED, COORD_ERR_NOT_FOUND (404): it says no.
 * COORD_ERR_PROTOCOL: it makes no sense. COORD_ERR_TOO_BIG: more than max_replicas.
 * COORD_ERR_NOMEM. The verdict is filled in with all but the last three. */
coord_status coordi_operator_read(const coordi_operator_reading *how, int http_status,
                                  coord_text body, coordi_operator_verdict *ret,
                                  coord_error *err);

/* ---- making answers ---- */

/* NULL: out of memory. */
coord_operator_answer *coordi_operator_answer_create(coordi_operator_api api);

/* Adds a replica by its id, "pod.namespace:port". COORD_ERR_FORMAT: that makes no sense;
 * *why tells (a literal). COORD_ERR_NOMEM. `name_space` helps to find the pod's name. */
coord_status coordi_operator_answer_add(coord_operator_answer *answer,
                                        coordi_operator_list list, const char *id,
                                        const char *name_space, int32_t rank,
                                        const char **why);

/* Moves the replicas of `from` over, those that `to` has (by id) excepted; false: out of
 * memory. */
bool coordi_operator_answer_merge(coord_operator_answer *to,
                                  const coord_operator_answer *from);

/* Adds to `to` what is in `one` and not in `other`; false: out of memory. */
bool coordi_operator_answer_difference(coord_operator_answer *to,
                                       const coord_operator_answer *one,
                                       const coord_operator_answer *other);

const coord_operator_replica *
coordi_operator_answer_list(const coord_operator_answer *answer,
                            coordi_operator_list list, size_t *count);

void coordi_operator_answer_say(coord_operator_answer *answer, int http_status,
                                coord_text raw_message);

void coordi_operator_answer_say_as(coord_operator_answer *answer,
                                   const coord_operator_answer *like);

/* The pod's name in a name or an id; false: it is neither, or over 255 bytes. */
bool coordi_operator_pod_name(const char *id, const char *name_space,
                              char out[COORD_ID_SIZE]);

#endif
