/* A simulated world with one real endpoint, a master or a slave, and scripted peers
 * around it. What the endpoint's callbacks are told is written down. */
#ifndef TEST_SUPPORT_WIRE_RIG_H
#define TEST_SUPPORT_WIRE_RIG_H

#include "coord.h"
#include "support/peers.h"

enum { WIRE_NOTES_MAX = 256, WIRE_PEERS_MAX = 4 };

/* One callback. */
typedef struct wire_note {
    char what[24];
    char who[40]; /* connection or task id */
    coord_status status;
    int peer_code;
    char text[256];
    int64_t at_ms;
} wire_note;

typedef struct wire_rig {
    coord_sim *sim;
    coord_loop *loop; /* of the endpoint, on 10.0.0.1 */
    coord_master *master;
    coord_slave *slave;
    uint16_t port;  /* of the endpoint */
    int peer_count; /* of the peers below */
    wire_note notes[WIRE_NOTES_MAX];
    int note_count;
    /* Optional; called in callbacks, after they were noted. */
    void (*on_note)(struct wire_rig *r, const wire_note *n, void *object);

    /* For slaves: what hooks and process_task do. */
    coord_status connect_says;
    coord_status disconnect_says;
    coord_status task_says;
    int64_t hook_ms; /* each hook takes so long */
    int64_t work_ms; /* ... and process_task, unless it is canceled */
    coord_status work_says;
    const char *work_out; /* JSON; NULL: nothing */
    int works;            /* begun */
    int canceled;         /* seen by process_task */
    int running;          /* process_tasks at once; must never pass 1 */
    int most_running;
    /* Last: megabytes that are not cleared for each world, but by peer_open(). */
    peer peers[WIRE_PEERS_MAX];
} wire_rig;

/* The world alone. TRACE=1 in the environment prints what happens. */
void wire_open(wire_rig *r, uint64_t seed);
void wire_close(wire_rig *r);

/* A master on 10.0.0.1; `options` NULL: defaults. */
void wire_master(wire_rig *r, const coord_master_options *options);
/* A slave on 10.0.0.1 whose hooks and work do as the rig says; `options` NULL: defaults.
 */
void wire_slave(wire_rig *r, const coord_slave_options *options);
/* ... or what keeps it from being made. */
coord_status wire_try_slave(wire_rig *r, coord_error *err);

/* A scripted peer on 10.0.1.1, 10.0.1.2, ... */
peer *wire_peer(wire_rig *r, bool foreign);

/* A connection of this id to the peer, all its callbacks noted. */
coord_connection *wire_connection(wire_rig *r, const char *id, const peer *p);
/* ... which is connected. */
coord_connection *wire_connected(wire_rig *r, const char *id, const peer *p);
/* A task with its callbacks noted, as "complete" and "fail". */
coord_task *wire_task(wire_rig *r, coord_connection *c, const char *data);

int wire_count(const wire_rig *r, const char *what);
const wire_note *wire_last(const wire_rig *r, const char *what);
bool wire_await(wire_rig *r, const char *what, int count, int64_t limit_ms);
void wire_run(wire_rig *r, int64_t ms);

#endif
