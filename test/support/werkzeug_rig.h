/* A master or a slave of ours with a scripted peer that speaks HTTP as a Werkzeug does.
 */
#ifndef TEST_SUPPORT_WERKZEUG_RIG_H
#define TEST_SUPPORT_WERKZEUG_RIG_H

#include "coord.h"
#include "support/werkzeug.h"

#include <pthread.h>

enum { WZ_WAIT_MS = 20000, WZ_CHANNEL = 7, WZ_RETRY_MS = 40, WZ_RULES_MAX = 8 };

/* What the peer answers to the next requests of one path. */
typedef struct wz_rule {
    const char *path;
    int times; /* left */
    werkzeug_answer answer;
} wz_rule;

typedef struct wz_rig {
    werkzeug_kind kind;
    werkzeug *peer;
    coord_master *master;
    coord_connection *connection;
    coord_slave *slave;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t news;
    wz_rule rules[WZ_RULES_MAX];
    int rule_count;
    int results_first; /* so many results come before the answer to /task/new */
    char token[128];   /* that the master gave */
    unsigned port;     /* where the master wants to be reported to */
    char task_id[64];  /* the last one that came */
    char said[65536];  /* what callbacks and log lines told, a line each */
    const char *work;  /* what process_task answers */
    size_t work_len;
} wz_rig;

/* Setups; *state points to the kind of Werkzeug, and then to the rig. A master has a
 * connection "slave" to the peer, which is not connected; a slave waits for the peer to
 * connect. As a slave the peer sends a heartbeat before it answers /connect. A deaf one
 * does not listen yet. Heartbeats of a beating slave come every 200 ms, else never. */
int wz_open_master(void **state);
int wz_open_deaf_master(void **state);
int wz_open_slave(void **state);
int wz_open_deaf_slave(void **state);
int wz_open_beating_slave(void **state);
/* Fails when a request was mixed up with what was left of another, or went to the proxy.
 */
int wz_close(void **state);
/* Nothing is sent any more when it returns. */
void wz_destroy_ours(wz_rig *r);

void wz_script(wz_rig *r, const char *path, int times, werkzeug_answer answer);
void wz_unscript(wz_rig *r);

/* What was said by callbacks and in the log. */
void wz_say(wz_rig *r, const char *format, ...) COORD_PRINTF(2, 3);
void wz_await(wz_rig *r, const char *text);
int wz_count(wz_rig *r, const char *text);
void wz_forget(wz_rig *r);

/* Of a master: these must work. */
void wz_connect(wz_rig *r);
coord_task *wz_make_task(wz_rig *r, const char *data);
void wz_start(coord_task *task);
/* The peer sends a result; gives the status. */
int wz_put_result(wz_rig *r, const char *id, const char *result);
/* ... which completes the task; the reference to it goes. */
void wz_finish(wz_rig *r, coord_task *task);

/* Of a slave: the peer connects, with `prefix` in its address, or gives one of two tasks.
 */
extern const char *const WZ_TASK_ID[2];
void wz_connect_to_slave(const wz_rig *r, const char *prefix);
int wz_give_task(const wz_rig *r, int n);

/* The n-th request of that path is this one: these lines and headers and no others, and
 * this body. */
void wz_check_request(wz_rig *r, const char *path, size_t n, const char *method,
                      const char *token, const char *body, size_t body_len);
/* Each request had a connection of its own. */
void wz_assert_no_reuse(wz_rig *r);

/* A row for each kind, or for one of them. */
extern werkzeug_kind wz_kind[WERKZEUG_KINDS];
#define WZ_ONE(test, open, of, n)                                                        \
    {                                                                                    \
#test of, test, open, wz_close, &wz_kind[n]                                      \
    }
#define WZ_EACH(test, open)                                                              \
    WZ_ONE(test, open, ": Werkzeug 2.0", WERKZEUG_2_0),                                  \
        WZ_ONE(test, open, ": Werkzeug 2.1", WERKZEUG_2_1),                              \
        WZ_ONE(test, open, ": Werkzeug 2.2", WERKZEUG_2_2)

/* Runs the tests in an environment that names a proxy. */
struct CMUnitTest;
int wz_run(const char *name, const struct CMUnitTest *tests, size_t count);

#endif
