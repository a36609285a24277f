/* A worker that lies: it speaks the protocol, and every now and then says or sends
 * something that no honest worker would: wrong ids, results twice, results of other
 * tasks and attempts, both ends of a task, broken or monstrous JSON, wrong tokens, no
 * answer at all. In between it is honest, so that it is given work. */
#ifndef TEST_SUPPORT_LIAR_H
#define TEST_SUPPORT_LIAR_H

#include "env/env.h"
#include "support/cluster.h"
#include "wire/wire.h"

enum { LIAR_DEEDS_MAX = 64, LIAR_HELD_MAX = 64, LIAR_IDS_MAX = 16 };

struct liar;

/* Something that it will send, or has sent. */
typedef struct liar_deed {
    struct liar *liar;
    coordi_timer timer;
    coordi_http_peer *peer; /* NULL: not sent */
    bool taken;
    const char *method;
    const char *path;
    char *body;    /* owned until it is sent */
    bool stranger; /* with a token that nobody gave it */
} liar_deed;

typedef struct liar {
    cluster *k;
    cluster_worker *w;                /* in whose place it is */
    uint64_t (*draw)(uint64_t count); /* chance: 0 to count - 1 */
    uint64_t lies;                    /* of 100 things that it does */
    coordi_http_server *server;
    coordi_timer beat;
    coordi_address master; /* port 0: none yet */
    char token[COORDI_TOKEN_SIZE];
    char ids[LIAR_IDS_MAX]
            [COORDI_UUID_SIZE]; /* of tasks that it was given, the last ones */
    uint64_t given;
    int steps; /* of the running task */
    liar_deed deeds[LIAR_DEEDS_MAX];
    coordi_http_call *held[LIAR_HELD_MAX]; /* requests that it does not answer */
    int held_count;
} liar;

/* Takes a worker's place, on its loop and its port. */
void liar_begin(liar *l, cluster *k, cluster_worker *w, uint64_t (*draw)(uint64_t count),
                uint64_t lies);
/* It dies. cluster_revive() brings the honest one. */
void liar_end(liar *l);

#endif
