/* The coordinator follows an operator server: it asks for pods when it starts, takes up
 * those that are listed and lets go of those that are not, and reports those that can't
 * be reached. The client is in service/operator_server.h.
 *
 * Vocabulary
 *   list    what a GET gave; one GET follows the other, each by itself
 *   demand  the pods of init_replicas_request, once in a start (operator_demand.c)
 *   report  of a pod that is to be replaced (operator_report.c)
 *   outage  since the last GET that went well; also one with an answer without sense
 *
 * Whatever becomes of the server, workers go on working: only complete lists take one
 * away, and two in a row have to be without it, for the server's own lists lag. */
#ifndef COORDI_COORDINATOR_OPERATOR_SYNC_H
#define COORDI_COORDINATOR_OPERATOR_SYNC_H

#include "coordinator/roster.h"
#include "service/operator_roles.h"
#include "service/operator_server.h"

enum { COORDI_OPERATOR_LONGEST_PAUSE_MS = 10000 };

typedef enum coordi_demand_state {
    COORDI_DEMAND_NONE,    /* nothing is asked for */
    COORDI_DEMAND_OPEN,    /* waits for a list that can be believed */
    COORDI_DEMAND_SENT,    /* a POST is under way */
    COORDI_DEMAND_MET,     /* the server has taken it, or listed all of it before */
    COORDI_DEMAND_GIVEN_UP /* start is over; `why` */
} coordi_demand_state;

typedef struct coordi_demand {
    coordi_demand_state state;
    coordi_operator_call *call; /* SENT */
    unsigned failures;
    coord_error why;       /* of the last */
    int64_t not_before_ms; /* a pause after it */
    int64_t pause_ms;      /* grows */
    int64_t awaits_ms;     /* since when lists are not complete; 0: they are */
    size_t lack[2];        /* by role; v2alpha1: nodes, in the first. By the last list */
    int64_t lack_since_ms; /* lists show the same; 0: none has come */

    /* Beyond a start: a POST that it was too short for may be carried out until then. */
    int64_t in_doubt_until_ms;
    /* ... and pods that the server says it has made, and no list has shown. */
    size_t expected[2];
    int64_t expected_until_ms;
} coordi_demand;

typedef struct coordi_reports {
    coordi_operator_call *call; /* one is under way; NULL: none */
    char id[COORD_ID_SIZE];     /* ... of this member */
    coord_role role;
    int64_t not_before_ms;
    int64_t pause_ms;
    coordi_map made; /* ids that were reported, and have been listed ever since */
    uint64_t count;
    bool impossible_told;
    bool suspect;       /* in the outage under way nobody at all can be reached */
    int64_t suspect_ms; /* when it was so last: nobody's absence counts from before */
    coord_error why;    /* the last failed */
} coordi_reports;

struct coordi_operator_sync {
    CommCoordinator *c;
    coordi_operator_settings settings;
    coordi_operator_roles roles;
    char *nodes; /* DI_NODES; owned; NULL: none */

    /* From begin to stop. */
    coordi_operator *client; /* NULL: it is stopped */
    coordi_operator_call *get;
    coordi_timer timer; /* the next */
    int64_t asked_ms;   /* when the GET under way, or the last, was sent */
    bool has_roster;
    coordi_roster roster;

    /* What lists have said. */
    bool listed; /* one has come, in this start */
    int64_t list_ms;
    size_t nodes_listed; /* v2alpha1: pending ones included, ours not */
    size_t pending;
    bool complete;
    size_t skipped;
    char skipped_text[160];
    char api_version[16]; /* "": not known yet */
    char last_words[256];

    int64_t outage_ms; /* since when; 0: there is none */
    int64_t pause_ms;  /* between GETs during it; grows */
    coord_error failure;

    coordi_demand demand;
    coordi_reports reports;
};

/* At create: checks what the configuration and the environment say. COORD_ERR_CONFIG,
 * _UNSUPPORTED, _NOMEM; without an operator server there is nothing to do. */
coord_status coordi_operator_sync_create(CommCoordinator *c, coord_error *err);
void coordi_operator_sync_free(coordi_operator_sync *sync); /* takes NULL */

/* All of these take NULL: there is no operator server. */
coord_status coordi_operator_sync_begin(coordi_operator_sync *sync, coord_error *err);
/* It has started. */
void coordi_operator_sync_started(coordi_operator_sync *sync);
/* No done function runs any more. Idempotent. */
void coordi_operator_sync_stop(coordi_operator_sync *sync);
/* ... and the list is forgotten. Idempotent. */
void coordi_operator_sync_release(coordi_operator_sync *sync);

/* How many workers of a role it is to bring. */
size_t coordi_operator_sync_target(const coordi_operator_sync *sync, coord_role role);
/* Has it been asked for what is wanted, as far as start has to wait for that? */
bool coordi_operator_sync_has_asked(const coordi_operator_sync *sync);

/* operator_words.c */
/* Why workers are missing in a start that is over, "" if it is not the server's fault;
 * `because`: the failure behind it, NULL: none. */
void coordi_operator_sync_explain(const coordi_operator_sync *sync, coordi_buf *buf,
                                  const coord_error **because);
/* JSON; without an operator server null. */
void coordi_operator_sync_print(const coordi_operator_sync *sync, coordi_buf *buf);
/* Does it list fewer of a role than are wanted? Says so in `seen`. */
bool coordi_operator_sync_lacks(const coordi_operator_sync *sync, coord_role role,
                                char *seen, size_t size);

/* operator_demand.c */
void coordi_demand_begin(coordi_operator_sync *sync);
void coordi_demand_see(coordi_operator_sync *sync, const coord_operator_answer *list);
/* The client goes, and the answers that it awaits do not come. */
void coordi_demand_stop(coordi_operator_sync *sync);
/* It is not asked for any more. */
void coordi_demand_give_up(coordi_operator_sync *sync);

/* operator_report.c */
void coordi_reports_begin(coordi_operator_sync *sync);
void coordi_reports_on_outage(coordi_operator_sync *sync);
/* A list has come. */
void coordi_reports_see(coordi_operator_sync *sync);

#endif
