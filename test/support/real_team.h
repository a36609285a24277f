/* A coordinator and collectors in one process, over real sockets. */
#ifndef TEST_SUPPORT_REAL_TEAM_H
#define TEST_SUPPORT_REAL_TEAM_H

#include "coord.h"

#include <stdatomic.h>

enum { REAL_TEAM_MAX = 64, REAL_TEAM_WAIT_MS = 60000 };

typedef struct real_team {
    coord_collector *workers[REAL_TEAM_MAX];
    bool told[REAL_TEAM_MAX]; /* the running task's sample has been sent */
    int worker_count;
    CommCoordinator *c;
    int posted;
    atomic_int samples;
    atomic_int finished;
    atomic_int failed;
} real_team;

/* Creates `workers` collectors and a coordinator, and starts it. `loop` may be NULL: each
 * has its own then. `executor` is JSON. Asserts that it works. */
void real_team_start(real_team *t, coord_loop *loop, int workers, const char *executor);
/* Posts a task; it makes one sample. */
void real_team_post(real_team *t);
/* Posts that many and waits for their ends. */
void real_team_work(real_team *t, int tasks);
/* Closes and destroys all. */
void real_team_end(real_team *t);

/* Descriptors that the process has open, and its threads. */
int open_descriptors(void);
int count_threads(void);
/* True when none of libcoord's threads is left within the limit: one that was joined may
 * be seen for a moment more. */
bool threads_are_gone(void);

#endif
