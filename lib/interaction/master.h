/* A master as the layers above see it. See coord/master.h for its public face. */
#ifndef COORDI_INTERACTION_MASTER_H
#define COORDI_INTERACTION_MASTER_H

#include "base/map.h"
#include "coord/master.h"
#include "env/lane.h"
#include "interaction/connection.h"
#include "interaction/task.h"

/* A token of a connection that is gone, or of one that may have come about. Its slave may
 * not know: a 4xx would end a Python slave's threads, so it is answered politely. And it
 * may refuse us until it is told with this token that we are gone. */
typedef struct coordi_ghost {
    coordi_link link;
    char token[COORDI_TOKEN_SIZE];
    char key[COORDI_KEY_SIZE]; /* of its connection */
    bool connected;            /* it certainly came about */
    bool denied; /* its slave says that it does not have it, and has not used it since */
} coordi_ghost;

enum { COORDI_GHOSTS_MAX = 1024 };

/* A result whose answer waits until it is written down. */
typedef struct coordi_held {
    coordi_link link; /* in its task */
    coordi_http_call *call;
    coord_task *task; /* a reference */
    bool completed;
    coord_text result; /* the call's */
} coordi_held;

/* Who writes results down before they are answered; all zero: nobody. */
typedef struct coordi_keeper {
    /* A result for no request that is known here has come from this slave: is it one that
     * an earlier life of ours sent? Then its task, adopted; else NULL. */
    coord_task *(*claim)(coord_connection *from, const char *id, void *arg);
    /* Writes a result down and then calls coordi_master_release(). False: it won't, and
     * nobody waits for it. */
    bool (*keep)(coordi_held *held, void *arg);
    void *arg;
} coordi_keeper;

struct coord_master {
    atomic_size_t refs;
    coord_loop *loop; /* a reference */
    bool owns_loop;
    coord_master_options options; /* its texts are below */
    char host[COORDI_HOST_SIZE];
    char my_address[COORDI_HOST_SIZE]; /* or "" */
    coordi_log log;
    coordi_patience patience;
    char token[COORDI_TOKEN_SIZE];
    uint16_t port;

    /* The rest is the loop thread's. */
    coordi_executor *executor;
    coordi_http_server *server; /* NULL: closed */
    coordi_map by_token;        /* registered connections */
    coordi_map by_id;           /* the same */
    coordi_map tasks;           /* live tasks, by wire id */
    coordi_map ghosts;
    coordi_link ghosts_oldest_first;
    size_t ghost_count;
    int64_t strays_until_ms; /* till then unknown tokens are taken for those of slaves
                              * that an earlier run of ours left behind; 0: never */
    coordi_heartbeats heartbeats;
    coordi_keeper keeper;
    uint64_t late_results;   /* unknown, repeated or fenced: answered, counted, dropped */
    bool closing;            /* nobody connects any more */
    bool deaf;               /* ... and everybody is told so */
    atomic_size_t callbacks; /* queued or running */
    atomic_bool close_waits; /* ... for them to end */
    coordi_job idle_job;
    coordi_timer close_deadline;
    coordi_link await_close; /* ops */
    coordi_job destroy_job;
};

/* Loop thread. Listens. */
coord_status coordi_master_create(coord_loop *loop, const coord_master_options *options,
                                  coord_master **ret, coord_error *err);
/* Loop thread. Deaf from here on; drops all connections for this reason. Idempotent. */
void coordi_master_shut(coord_master *master, const coord_error *why);
coord_master *coordi_master_ref(coord_master *master);
void coordi_master_unref(coord_master *master);

/* For connections. */
coord_status coordi_master_register(coord_master *master, coord_connection *c,
                                    coord_error *err);
void coordi_master_unregister(coord_master *master, coord_connection *c);
/* Its token, for the time when it is gone. */
void coordi_master_remember(coord_master *master, const coord_connection *c);
/* A token that an earlier life of ours gave to the slave of this key. */
void coordi_master_expect(coord_master *master, const char *token, const char *key);
/* The n-th token that a slave which refuses this connection may have from us, the
 * likeliest first; NULL: no more. */
const char *coordi_master_old_token(const coord_master *master, const coord_connection *c,
                                    size_t n);
/* The slave says that it does not have this one. False: it is a stray's, and may be
 * another slave's. */
bool coordi_master_deny_token(coord_master *master, const char *token);
/* Somebody uses a token: is it one of a connection that is gone? `foreign`: it may be one
 * that an earlier run of ours left behind. */
bool coordi_master_humours(coord_master *master, bool foreign, const char *token);
/* "http://host:port" as a slave should see it. */
void coordi_master_print_address(const coord_master *master, const char *path_host,
                                 char out[COORDI_HOST_PORT_SIZE + 8]);
/* Must the path to a slave be asked for our address on it? */
bool coordi_master_needs_path(const coord_master *master);

/* Requests that reach the server. */
void coordi_master_on_call(coordi_http_call *call, void *arg);

/* Reports a result that was written down, or can't be, and answers it. */
void coordi_master_release(coordi_held *held);

/* Queues a job that calls a host function; the job does so between enter and leave. */
void coordi_master_call_host(coord_master *master, coordi_lane *lane, coordi_job *job);
void coordi_master_enter_callback(coord_master *master, coordi_frame *frame);
void coordi_master_leave_callback(coord_master *master, coordi_frame *frame);

/* A connection has left the tables. */
void coordi_master_check_closed(coord_master *master);

#endif
