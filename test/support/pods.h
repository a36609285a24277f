/* A simulated cluster whose workers are pods of an operator server. */
#ifndef TEST_SUPPORT_PODS_H
#define TEST_SUPPORT_PODS_H

#include "support/cluster.h"
#include "support/fake_operator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct pods {
    coord_loop *far; /* the operator server's */
    fake_operator *fake;
    char config[2048];
    coord_sim_thread *starter; /* start is under way */
    coord_status start_rc;
    coord_error start_err;
    char *json; /* the last status */
    cluster k;  /* clears itself: it is large */
} pods;

/* A world with a server of this API, and neither pods nor workers yet. */
void pods_open(pods *p, uint64_t seed, int api);
/* Makes a worker for the n-th pod that the server makes up, whatever the list. It runs at
 * once; cluster_crash() ends it. */
cluster_worker *pods_worker(pods *p, coord_role role, unsigned n);
/* The configuration: `ask` is more of operator_server, `more` of the rest. Both end in a
 * comma, or are "". Until the next call. */
const char *pods_config(pods *p, const char *ask, const char *more);
/* Starts the coordinator, in a thread of the world; pods_started() waits for it. */
void pods_start(pods *p, const char *ask, const char *more);
coord_status pods_started(pods *p);
/* Both, and it has to go well. */
void pods_begin(pods *p, const char *ask, const char *more);
/* An object of the status, or the whole; until the next call. */
const char *pods_status(pods *p);
bool pods_says(pods *p, const char *words); /* ... has these words */
/* Runs until it says so; false after limit_ms. */
bool pods_await(pods *p, const char *words, int64_t limit_ms);
/* How many workers are free or work. */
int pods_ready(pods *p);
bool pods_await_ready(pods *p, int count, int64_t limit_ms);
/* Closes and destroys all. */
void pods_close(pods *p);

#define assert_says(text, words)                                                         \
    do {                                                                                 \
        if (strstr((text), (words)) == NULL) {                                           \
            fail_msg("\"%s\" is not in \"%s\"", (words), (text));                        \
        }                                                                                \
    } while (0)

#endif
