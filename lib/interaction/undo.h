/* Takes back a connection that a slave may think it has: sends /disconnect with an old
 * token, once, and forgets about it. For answers to /connect that got lost, and for
 * connections that outlived our interest. */
#ifndef COORDI_INTERACTION_UNDO_H
#define COORDI_INTERACTION_UNDO_H

#include "env/env.h"

typedef struct coordi_undo coordi_undo;

typedef enum coordi_undone {
    COORDI_UNDONE_YES,    /* the slave had this token, and is free now */
    COORDI_UNDONE_NO,     /* it has another one, or none */
    COORDI_UNDONE_UNKNOWN /* it did not answer, or made no sense */
} coordi_undone;

typedef void coordi_undo_fn(coordi_undone how, void *arg);

/* `done` is called once, later; unless it is cancelled. */
coord_status coordi_undo_start(coord_loop *loop, const coordi_address *address,
                               int32_t channel, const char *token, int64_t timeout_ms,
                               coordi_undo_fn *done, void *arg, coordi_undo **ret,
                               coord_error *err);
void coordi_undo_cancel(coordi_undo *undo); /* takes NULL */

/* The headers of every request of a connection. `channel` has room for 24 bytes. */
coord_status coordi_peer_create(coord_loop *loop, const coordi_address *address,
                                int32_t channel, const char *token,
                                coordi_http_peer **ret, coord_error *err);

#endif
