/* The inside of a launcher. See coord/launcher.h for its public face.
 *
 * Vocabulary
 *   order   what to start: a copy of the caller's spec with the whole environment
 *   child   from its start until it is done. It runs while it has a process, then it has
 *           ended: its name is free, its last lines and on_exit may be under way on its
 *           lane. It is done when on_exit has returned.
 *   record  a child that is done and that the launcher keeps, to tell how it ended
 *   piece   bytes that a child wrote: first to the lane, which cuts them into lines for
 *           the sink, then back to the loop, which counts what is under way
 *
 * The loop thread has everything but what stands under "lane". */
#ifndef COORDI_SERVICE_LAUNCHER_H
#define COORDI_SERVICE_LAUNCHER_H

#include "base/map.h"
#include "coord/launcher.h"
#include "env/lane.h"
#include "env/op.h"

/* Nobody's grace is longer: sums of times stay far from overflow. */
#define COORDI_LAUNCHER_LONGEST_MS ((int64_t)1 << 40)

typedef struct coordi_order {
    char *name;
    char **argv;
    char **envp;
    char *cwd; /* or NULL */
    coord_launcher_line_fn *on_line;
    coord_launcher_exit_fn *on_exit;
    void *user;
} coordi_order;

/* Checks and copies a spec. Any thread; the host's environment is read here. */
coord_status coordi_order_init(coordi_order *order, coord_loop *loop,
                               const coord_launcher_spec *spec, coord_error *err);
void coordi_order_done(coordi_order *order);

/* Are these 1 to 255 bytes without control characters? */
coord_status coordi_launcher_check_name(const char *name, coord_error *err);

/* "[name] " and a line that is not yet whole, with room for the longest piece and a NUL.
 */
typedef struct coordi_line_room {
    char *text;
    size_t len;
} coordi_line_room;

typedef struct coordi_child {
    coordi_link
        link; /* in launcher->active until it is done, then in launcher->records */
    size_t refs;
    coord_launcher *launcher; /* a reference until it is done */
    uint64_t serial;          /* in the order of starts */
    char *name;
    coord_launcher_line_fn *on_line;
    coord_launcher_exit_fn *on_exit;
    void *user;
    coordi_lane *lane;       /* NULL: no sinks, or closed */
    coordi_process *process; /* NULL: it has ended */
    int64_t pid;
    coordi_timer kill; /* set: the grace runs */
    bool stopped;
    bool killed;
    bool done;
    bool paused;
    size_t queued_bytes; /* in pieces under way */
    coord_launcher_exit how;
    coordi_job exit_job; /* on the lane, then on the loop */

    /* lane */
    size_t prefix_len;
    coordi_line_room lines[2]; /* of stdout and stderr; texts NULL without on_line */
} coordi_child;

struct coord_launcher {
    atomic_size_t refs;
    coord_loop *loop; /* a reference */
    bool owns_loop;
    coord_launcher_options options;
    coordi_log log;
    atomic_bool silent; /* destroyed: no sink is called */
    atomic_size_t running;

    coordi_executor *executor; /* NULL: closed, and all children are done */
    coordi_map by_name;        /* the latest child of each name: a reference */
    coordi_link active;        /* children that are not done */
    coordi_link records;       /* those in by_name that are; the oldest first */
    size_t record_count;
    uint64_t last_serial;
    bool closing;
    coordi_link waiters; /* ops */
    coordi_link await_close;
    coordi_job destroy_job;
};

coord_launcher *coordi_launcher_ref(coord_launcher *launcher);
void coordi_launcher_unref(coord_launcher *launcher);

/* An op that holds the launcher; `size` as in coordi_op_create. An op with a release of
 * its own calls coordi_launcher_release in it. Any thread. */
void *coordi_launcher_op(coord_launcher *launcher, size_t size,
                         void (*run)(coordi_op *op), coord_error *err);
void coordi_launcher_release(coordi_op *op);

/* May this be called here, and with this name? `all`: NULL is one. Any thread. */
coord_status coordi_launcher_check_call(const coord_launcher *launcher, bool all,
                                        const char *name, const char *what,
                                        coord_error *err);

void coordi_launcher_stop_all(coord_launcher *launcher, int64_t grace_ms);

/* A child is done: it becomes a record, or goes, and its waiters are told. */
void coordi_launcher_on_done(coord_launcher *launcher, coordi_child *child);

/* launcher_call.c. Ends the waits that are over, and those that nobody waits for any
 * longer; or all. */
void coordi_launcher_look(coord_launcher *launcher);
void coordi_launcher_end_waits(coord_launcher *launcher);

/* launcher_child.c. All of it on the loop thread. */
/* Takes the name out of the order. NULL: out of memory. */
coordi_child *coordi_child_create(coordi_order *order);
/* When this fails the child is only to be let go of. */
coord_status coordi_child_start(coordi_child *child, coord_launcher *launcher,
                                const coordi_order *order, coord_error *err);
void coordi_child_ref(coordi_child *child);
void coordi_child_unref(coordi_child *child);
/* Does nothing to one that has ended. */
void coordi_child_stop(coordi_child *child, int64_t grace_ms);
/* Kills it; no sink is told. It is done now, or when its on_exit has returned. */
void coordi_child_drop(coordi_child *child);

#endif
