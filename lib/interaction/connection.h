/* A connection as the layers above see it. See coord/connection.h for its public face.
 *
 *   IDLE -> CONNECTING -> CONNECTED -> DISCONNECTING -> ENDED
 *   CONNECTING falls back to IDLE when it fails, DISCONNECTING to CONNECTED when the
 * slave refuses. From every state a drop leads to ENDED, and loss from CONNECTED or
 *   DISCONNECTING to LOST. ENDED and LOST are final. */
#ifndef COORDI_INTERACTION_CONNECTION_H
#define COORDI_INTERACTION_CONNECTION_H

#include "coord/master.h"
#include "env/lane.h"
#include "interaction/exchange.h"
#include "interaction/heartbeat.h"
#include "interaction/undo.h"

enum { COORDI_KEY_SIZE = COORD_ID_SIZE + 16 };

typedef enum coordi_connection_state {
    COORDI_CONNECTION_IDLE,
    COORDI_CONNECTION_CONNECTING,
    COORDI_CONNECTION_CONNECTED,
    COORDI_CONNECTION_DISCONNECTING,
    COORDI_CONNECTION_ENDED,
    COORDI_CONNECTION_LOST,
} coordi_connection_state;

/* The end of an attempt, told on the loop. `data` is what a refusing slave gave. */
typedef void coordi_connection_done_fn(coord_connection *connection,
                                       const coord_error *failure, coord_text data,
                                       void *arg);

/* A report to the host, made when an attempt begins, so that its end can always be told.
 */
typedef struct coordi_connection_report {
    coordi_job job; /* on the lane */
    coord_connection *owner;
    coord_connection_fn *fn;
    bool failed;
    coord_error error;
    char *data; /* owned */
    size_t data_len;
} coordi_connection_report;

struct coord_connection {
    atomic_size_t refs;
    coord_master *master; /* a reference */
    char id[COORD_ID_SIZE];
    char key[COORDI_KEY_SIZE]; /* in the master's tables; the id, unless changed before it
                                * connects (a coordinator's ids are unique per role) */
    uint32_t connect_retries;  /* the master's, unless changed */
    coordi_address address;
    char token[COORDI_TOKEN_SIZE]; /* ours, for this attempt alone */
    atomic_bool connected;

    /* The rest is the loop thread's. */
    coordi_connection_state state;
    coord_error end;                      /* why it is LOST or ENDED */
    char told[COORDI_HOST_PORT_SIZE + 8]; /* where the slave was told to report */
    bool heard;                           /* something of it has come there */
    bool marked;     /* the slave is a libcoord: requests may be repeated */
    bool registered; /* token and id are in the master's tables */
    bool unproven;   /* adopted, and nothing has been heard of its slave yet */
    bool sent;       /* the slave may have heard of the token */
    bool was_connected;
    bool undone;        /* an old connection of ours was taken back in this attempt */
    bool own_undone;    /* what may have come of this attempt was */
    bool aborted;       /* a disconnect came while it was connecting */
    size_t old_tries;   /* of old tokens, in this attempt */
    size_t old_skipped; /* ... of which the slave did not say whether it has them */
    char old[COORDI_TOKEN_SIZE]; /* ... the one that is tried now */
    coordi_http_peer *peer;
    coordi_exchange *exchange; /* connect, knock or disconnect */
    coordi_undo *undo;
    coordi_timer begin; /* of a connect, so that no outcome comes from within its call */
    char *greeting;     /* data of the connect under way; owned */
    size_t greeting_len;
    coordi_heartbeat beat;
    coordi_link tasks;   /* live ones */
    coordi_link orphans; /* exchanges whose answer nobody needs any more */
    coordi_connection_done_fn *done;
    void *done_arg;
    void (*on_lost)(coord_connection *connection, const coord_error *why, void *arg);
    void *watcher; /* whose connection it is, and who is told */
    void (*on_proven)(coord_connection *connection, void *arg);

    coord_connection_options host; /* functions of the host; texts are not kept */
    coordi_lane *lane;             /* NULL until a callback needs one */
    coordi_link await_connect;     /* ops */
    coordi_link await_disconnect;
    coordi_connection_report *connect_report; /* of the attempt under way; NULL: none */
    coordi_connection_report *disconnect_report;
    coordi_connection_report *lost_report;
    coordi_job destroy_job;
};

/* Loop thread or before it is shared. Text is copied. */
coord_status coordi_connection_create(coord_master *master,
                                      const coord_connection_options *options,
                                      coord_connection **ret, coord_error *err);

/* Loop thread, all of these. `done` is called once, later; unless the call itself fails,
 * or the connection is dropped. */
coord_status coordi_connection_connect(coord_connection *c, coord_text data,
                                       coordi_connection_done_fn *done, void *arg,
                                       coord_error *err);
coord_status coordi_connection_disconnect(coord_connection *c, coord_text data,
                                          coordi_connection_done_fn *done, void *arg,
                                          coord_error *err);
/* Takes a connection up that an earlier life of ours had, by its token: it counts as
 * connected, and as unproven until its slave is heard of. */
coord_status coordi_connection_adopt(coord_connection *c, const char *token, bool marked,
                                     coord_error *err);
/* Asks the slave, which may be at work, whether it still knows an adopted connection. Its
 * answer proves or loses it. */
coord_status coordi_connection_knock(coord_connection *c, coord_error *err);
/* Gives a connect that is under way up, and takes back what the slave may have heard. */
void coordi_connection_abort(coord_connection *c);
/* Ends it without a word to the slave; its tasks fail for this reason. */
void coordi_connection_drop(coord_connection *c, const coord_error *why);
/* The slave is gone: its tasks fail for this reason, on_lost is called. */
void coordi_connection_lose(coord_connection *c, const coord_error *why);
/* A request came from this slave. */
void coordi_connection_heard(coord_connection *c);
/* A sentence for error texts when the slave is connected, and yet nothing of it was ever
 * heard; else "". Returns `out`. */
enum { COORDI_DOUBT_SIZE = 224 };
const char *coordi_connection_doubt(const coord_connection *c, char *out, size_t size);

/* Makes sure that there is a lane for callbacks. */
coord_status coordi_connection_need_lane(coord_connection *c, coord_error *err);

coord_connection *coordi_connection_ref(coord_connection *c);
void coordi_connection_unref(coord_connection *c);

#endif
