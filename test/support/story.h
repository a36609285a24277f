/* Random stories: a coordinator with workers of all kinds, a host whose threads and
 * callbacks call whatever there is to call, and everything that can go wrong; all of it
 * drawn from a seed, and at the end all that is guaranteed is looked after. */
#ifndef TEST_SUPPORT_STORY_H
#define TEST_SUPPORT_STORY_H

#include "support/cluster.h"
#include "support/liar.h"

enum {
    STORY_TASKS_MAX = 64,
    STORY_HOSTS_MAX = 2,
    STORY_LIARS_MAX = 2,
};

/* What the host knows of one of its tasks. */
typedef struct story_task {
    char id[16];
    coord_role role;
    bool accepted; /* send or post said so */
    bool refused;  /* ... or said no */
    int callbacks;
    int ends;
    bool finished;
    uint32_t attempt; /* of the last callback */
    uint64_t sequence;
    int next_sample; /* of an honest worker in this attempt */
    char worker[32]; /* who started it last */
} story_task;

/* A thread of the host. */
typedef struct story_host {
    struct story *story;
    coord_sim_thread *thread;
    int calls; /* left to make */
} story_host;

typedef struct story {
    uint64_t seed;
    story_task tasks[STORY_TASKS_MAX];
    int task_count;
    int tasks_wanted;
    story_host hosts[STORY_HOSTS_MAX];
    int host_count;
    liar liars[STORY_LIARS_MAX];
    liar *liar_at[CLUSTER_WORKERS_MAX]; /* NULL: an honest worker */
    bool paused[CLUSTER_WORKERS_MAX];
    bool down[CLUSTER_WORKERS_MAX];
    bool absent[CLUSTER_WORKERS_MAX]; /* removed, and not added since */
    bool added[CLUSTER_WORKERS_MAX];  /* by the host, after it was removed */
    int increases;
    int decreases;
    bool is_inline;       /* its callbacks run on the loop */
    bool short_of_memory; /* calls may answer so */
    bool closing;         /* close was called */
    bool destroyed;
    int64_t send_limit_ms; /* how long a send may take; -1: as long as it likes */
    int64_t close_limit_ms;
    int64_t start_limit_ms;
    uint64_t hash;       /* of all that happened */
    char complaint[256]; /* the first one */
    cluster k;           /* clears itself: it is large */
} story;

/* Chance, from the seed of the story under way: 0 to count - 1. */
uint64_t story_draw(uint64_t count);

/* Tells the story of a seed and checks its end. */
void story_tell(story *s, uint64_t seed);

/* Something is not as it must be. For any thread: the test fails later. */
void story_complain(story *s, const char *format, ...) COORD_PRINTF(2, 3);

/* ---- story_host.c: what the host does ---- */

/* For the cluster: looks at each callback, and makes calls in it. */
void story_watch(story *s);
/* Gives the coordinator one more task, without waiting. */
void story_post(story *s);
/* A thread that makes so many calls. */
void story_start_host(story *s, int calls);
void story_join_hosts(story *s);
/* Closes; true once it is closed. */
bool story_close(story *s);

#endif
