/* The inside of a slave. See coord/slave.h for its public face.
 *
 * Vocabulary
 *   link      the connection to one master: its token and address, from /connect to
 *             /disconnect or loss. Work remembers its link: a result never goes to
 *             another master than one that asked for it.
 *   ask       a request that a hook of the host must decide. Asks are served one after
 *             the other, each checked against the state when its turn comes, so that two
 *             masters at once can't both be told yes.
 *   work      an accepted task, from acceptance until process_task has returned
 *   delivery  a result on its way to the master. The slave is free for new work by then.
 *   last      the last work that is done. A libcoord master may ask for it again, also
 *             one that comes back from an earlier state of its own: it gets the result
 *             once more, and no id is worked on twice. */
#ifndef COORDI_INTERACTION_SLAVE_H
#define COORDI_INTERACTION_SLAVE_H

#include "codec/out.h"
#include "coord/slave.h"
#include "env/lane.h"
#include "interaction/exchange.h"

typedef struct coordi_master_link {
    size_t refs; /* loop thread only */
    coord_slave *slave;
    coordi_http_peer *peer;
    char token[COORDI_TOKEN_SIZE +
               64]; /* Python's have 64 characters, others may differ */
    char address[COORDI_HOST_PORT_SIZE];
    bool marked; /* the master is a libcoord: results may be repeated */
    bool gone;   /* disconnected or lost */
} coordi_master_link;

typedef struct coordi_work {
    coordi_job job; /* on the work lane, then on the loop */
    coord_slave *slave;
    coordi_master_link *link;
    char id[COORDI_UUID_SIZE];
    char *data; /* owned */
    size_t data_len;
    bool canceled; /* by its master, which does not want to hear of it any more */
    coord_status status;
    coord_out out;
} coordi_work;

/* A task that was taken, or canceled before it came. */
typedef struct coordi_known {
    char id[COORDI_UUID_SIZE]; /* "": none */
    bool canceled;
} coordi_known;

typedef enum coordi_ask_kind {
    COORDI_ASK_CONNECT,
    COORDI_ASK_DISCONNECT,
    COORDI_ASK_TASK
} coordi_ask_kind;

typedef struct coordi_ask {
    coordi_job job; /* on the ask lane, then on the loop */
    coordi_link queue;
    coord_slave *slave;
    coordi_ask_kind kind;
    coordi_http_call *call;
    coord_slave_ask_fn *hook;
    coord_text data; /* borrows from the call's body */
    coord_status status;
    coord_out out;
} coordi_ask;

enum { COORDI_ASKS_MAX = 64, COORDI_RECENT = 32, COORDI_DELIVERIES_MAX = 8 };

struct coord_slave {
    atomic_size_t refs;
    coord_loop *loop; /* a reference */
    bool owns_loop;
    coord_slave_options options; /* its texts are below */
    char host[COORDI_HOST_SIZE];
    uint16_t port;
    void *process_user;          /* for process_task alone */
    void (*release)(void *user); /* when the slave is freed; or NULL */
    void *release_user;
    coordi_log log;
    coordi_patience patience;
    char token[COORDI_TOKEN_SIZE];
    atomic_bool connected;
    atomic_bool canceled; /* of the running work */

    /* The rest is the loop thread's. */
    coordi_executor *executor;
    coordi_lane *ask_lane; /* NULL without hooks */
    coordi_lane *work_lane;
    coordi_http_server *server; /* NULL: closed */
    coordi_master_link *link;   /* NULL: no master */
    coordi_timer heartbeat;
    coordi_exchange *heartbeat_exchange;
    coordi_ask *asking; /* its hook runs */
    coordi_link asks;   /* waiting */
    size_t ask_count;
    coordi_work *work;
    coordi_work *last;                  /* of a libcoord, with its outcome; NULL: none */
    coordi_known recent[COORDI_RECENT]; /* a ring */
    size_t recent_next;
    coordi_link deliveries;
    size_t
        delivery_count; /* at its limit the slave is busy: the master takes no results */
    coordi_job lost_job;
    bool lost_pending;
    coord_error lost_why;
    bool closing;
    coordi_link await_close; /* ops */
    coordi_job destroy_job;
};

/* As coord_slave_create, with a user pointer of its own for process_task. */
coord_status coordi_slave_create(const coord_slave_options *options, void *process_user,
                                 coord_slave **ret, coord_error *err);

/* As coord_slave_destroy; `release` is called with `user` when the slave is freed: what
 * its callbacks need lives as long as they may run. */
void coordi_slave_destroy_with(coord_slave *slave, void (*release)(void *user),
                               void *user);

coord_slave *coordi_slave_ref(coord_slave *slave);
void coordi_slave_unref(coord_slave *slave);

/* slave_link.c: the connection to the master. */
coord_status coordi_slave_link_create(coord_slave *slave, coord_text address,
                                      const char *token, bool marked, coord_error *err);
/* `why` NULL: the master said goodbye. */
void coordi_slave_unlink(coord_slave *slave, const coord_error *why);
/* Sends the outcome to the master that is connected now. */
coord_status coordi_slave_deliver(coord_slave *slave, const coordi_work *work,
                                  coord_error *err);
bool coordi_slave_is_delivering(const coord_slave *slave, const char *id);
void coordi_slave_drop_deliveries(coord_slave *slave);
void coordi_master_link_unref(coordi_master_link *link);

/* slave_server.c: requests. */
void coordi_slave_on_call(coordi_http_call *call, void *arg);
void coordi_slave_drop_asks(coord_slave *slave);

/* slave_work.c: tasks. */
coord_status coordi_slave_take_work(coord_slave *slave, const char *id, coord_text data);
/* A libcoord master asks for a task of this id. COORDI_SAY_NOTHING: it is a new one. Else
 * what is answered, with a message in `why` or none; a result that is there is sent. */
coordi_say coordi_slave_repeat(coord_slave *slave, const char *id, char *why,
                               size_t why_size);
/* The master gives this task up. No effect on one that has ended; one that has not come
 * yet is refused if it does. */
void coordi_slave_cancel(coord_slave *slave, const char *id);
void coordi_slave_forget_last(coord_slave *slave);

/* slave.c: somebody who kept the slave busy has ended. */
void coordi_slave_check_closed(coord_slave *slave);

#endif
