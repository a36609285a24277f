/* The simulated world, for its own files sim_*.c alone.
 *
 * Vocabulary
 *   world   a coord_sim: machines, loops, threads, a clock, and what lies between them
 *   host    a machine: an address with its ports; loops are processes on it
 *   actor   whatever can happen next: a loop that has something to do, a thread that can
 *           go on, a message that arrives, a deadline. It waits for its time in the
 *           world's heap, then stands among the ready, of which the seed draws one.
 *   held    an actor that was drawn while its loop stood still (paused, crashed)
 *   driver  the outside thread that runs the world just now
 *   baton   the right to run. The driver has it, and lends it to one thread of the world
 *           at a time.
 *
 * Invariants
 *   One lock guards everything; functions here expect it to be held, and give it up only
 *   around code that is not ours. Host code never runs under it.
 *   An actor is in at most one place: heap, ready, a loop's held list.
 *   Room among the ready is made when an actor is added, so that nothing later can fail.
 *   Whoever runs the world holds a reference, so that it can't go from under him. */
#ifndef COORDI_ENV_SIM_H
#define COORDI_ENV_SIM_H

#include "base/map.h"
#include "coord/testing_program.h"
#include "env/env.h"
#include "env/sim_guest.h"
#include "env/timers.h"

#include <pthread.h>
#include <semaphore.h>

typedef struct coordi_sim_actor coordi_sim_actor;
typedef struct coordi_sim_loop coordi_sim_loop;
typedef struct coordi_sim_host coordi_sim_host;

enum {
    COORDI_SIM_HOST_SIZE = 64,  /* bytes of a host's name, the NUL included */
    COORDI_SIM_RECENT = 32,     /* lines of the trace that are kept */
    COORDI_SIM_LINE_SIZE = 512, /* bytes of one in print, the NUL included */
};

/* One line of the trace; put together when somebody reads it. */
typedef struct coordi_sim_line {
    int64_t at_ms;
    const coordi_sim_host *host; /* NULL: the world itself */
    uint32_t loop;
    char what[236];
} coordi_sim_line;

struct coordi_sim_actor {
    coordi_timer wake; /* in the world's heap while it has to wait */
    void (*act)(coord_sim *sim, coordi_sim_actor *actor);
    coordi_sim_loop *loop; /* while this one stands still, so does the actor; or NULL */
    size_t ready_slot;     /* 1-based place among the ready; 0: none */
    coordi_link held;
    bool is_message; /* counts as under way while waiting or ready */
};

struct coord_sim {
    int64_t pid;          /* of the process that made it */
    coordi_link behind;   /* of what a forked child leaves alone */
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t idle;  /* nobody drives any more */
    sem_t back;           /* the baton is back with the driver */
    size_t refs;          /* the host's, and one each for loops, threads and events */
    bool abandoned;       /* the host has given it back */
    coord_sim_options options;
    coordi_log log;

    int64_t now_ms;
    int64_t wall_ahead_ms; /* time of day less the clock */
    uint64_t order_state;  /* generator for order and faults */
    uint64_t bytes_state;  /* ... for what random() hands out */
    uint64_t hash;
    uint64_t at_instant; /* events since the clock moved, or a call began to run it */
    uint64_t told;       /* lines of the trace, ever */
    coordi_sim_line recent[COORDI_SIM_RECENT]; /* the last of them, a ring */

    coordi_heap heap;
    coordi_sim_actor **ready;
    size_t ready_count;
    size_t ready_cap;
    size_t actor_count;
    size_t under_way; /* messages in the heap or ready */

    bool driving;
    pthread_t driver;
    size_t outside_waiting;   /* outside threads that want to drive */
    coordi_sim_loop *current; /* whose code the driver runs */
    coordi_thread *holder;    /* who has the baton; NULL: the driver */

    coordi_link loops;
    uint32_t loop_count; /* ever made */
    coordi_link threads;
    uint32_t thread_count;
    coordi_link hosts;
    uint32_t host_count;
    coordi_link links; /* of one direction each */
    coordi_link cuts;
    coordi_link calls; /* requests on their way, at a server, or on their way back */
    uint64_t server_count;
    coordi_map files;
    coordi_map stores;    /* of records, by path */
    coordi_map variables; /* "NAME" to "NAME=value" */
    const char **environment;
    bool disk_full;
    coordi_link guests;
    coordi_map programs;
    coordi_link processes;
    int64_t process_count;
};

struct coordi_sim_loop {
    coord_loop base;
    coord_sim *sim;
    coordi_link link;
    coordi_sim_host *host;
    uint32_t index;
    coordi_sim_actor actor;
    coordi_link jobs;
    coordi_heap timers;
    coordi_link held; /* actors that go on when the loop does */
    coordi_link servers;
    coordi_link peers;
    coordi_link records;
    uint64_t events; /* things done */
    bool paused;
    bool crashed;
    bool awake; /* crashed, and now finishing for the host that destroys its objects */
    bool foreign;
    bool gone; /* its last reference went while its own code ran */
};

struct coordi_event {
    coord_sim *sim;
    coordi_link waiters; /* threads of the world */
    bool is_set;
};

struct coordi_thread {
    coord_sim *sim;
    coordi_link link;
    coordi_link waiting; /* in an event's waiters */
    coordi_sim_actor actor;
    pthread_t id;
    sem_t turn; /* it was given the baton */
    char name[16];
    uint32_t index;
    void (*run)(void *arg);
    void *arg;
    coordi_event ended; /* set for ever when run has returned */
    bool sleeps;        /* in coord_sim_run_for() */
};

/* ---- sim.c: the world, its clock, chance and trace ---- */

coord_status coordi_sim_lock_to_drive(coord_sim *sim, const char *what, coord_error *err);
/* Gives up the lock and a reference; the world goes with the last one. */
void coordi_sim_unlock_unref(coord_sim *sim);
/* Runs one event that is due by `limit_ms`, moving the clock to it; false: there is none.
 * Only for threads that may drive, see coordi_sim_may_drive(). */
bool coordi_sim_drive(coord_sim *sim, int64_t limit_ms);
bool coordi_sim_may_drive(const coord_sim *sim);
/* Too much happened at one instant: nothing that waits for a later one gets there. */
bool coordi_sim_spins(const coord_sim *sim);
void coordi_sim_jump(coord_sim *sim, int64_t to_ms);
int64_t coordi_sim_after(const coord_sim *sim,
                         int64_t ms); /* now + ms, at most for ever */
/* Does all that can be done without moving the clock. */
void coordi_sim_settle(coord_sim *sim);

uint64_t coordi_sim_next(uint64_t *state);
size_t coordi_sim_draw(coord_sim *sim, size_t count); /* 0 to count - 1 */
bool coordi_sim_chance(coord_sim *sim, double probability);

/* An event, for the hash and the sink. `loop` may be NULL. */
void coordi_sim_tell(coord_sim *sim, const coordi_sim_loop *loop, const char *format, ...)
    COORD_PRINTF(3, 4);
void coordi_sim_mix(coord_sim *sim, const void *bytes, size_t len);

/* ---- sim_report.c: what a world says of itself ---- */

void coordi_sim_print_line(const coordi_sim_line *line, char text[COORDI_SIM_LINE_SIZE]);
/* Why time passed in vain, as the cause of *err (or NULL). */
void coordi_sim_explain(const coord_sim *sim, coord_error *err);

/* ---- sim_actor.c: what happens next ---- */

bool coordi_sim_add(coord_sim *sim, coordi_sim_actor *actor,
                    void (*act)(coord_sim *sim, coordi_sim_actor *actor),
                    coordi_sim_loop *loop); /* false: out of memory */
void coordi_sim_drop(coord_sim *sim, coordi_sim_actor *actor);
void coordi_sim_at(coord_sim *sim, coordi_sim_actor *actor, int64_t at_ms);
void coordi_sim_ready(coord_sim *sim, coordi_sim_actor *actor);
void coordi_sim_calm(coord_sim *sim, coordi_sim_actor *actor); /* it waits for nothing */
void coordi_sim_hold(coord_sim *sim, coordi_sim_actor *actor, coordi_sim_loop *loop);
void coordi_sim_thaw(coord_sim *sim, coordi_sim_loop *loop);
/* Draws what is next by `limit_ms`, takes it out and moves the clock; NULL: nothing. */
coordi_sim_actor *coordi_sim_pick(coord_sim *sim, int64_t limit_ms);

/* ---- sim_loop.c ---- */

coordi_sim_loop *coordi_sim_loop_of(const coord_loop *loop); /* takes no lock */
bool coordi_sim_stands_still(const coordi_sim_loop *loop);
/* Around code of a loop: enter gives up the lock, leave takes it back. Leave is false
 * when the loop has gone meanwhile. */
void coordi_sim_enter(coordi_sim_loop *loop);
bool coordi_sim_leave(coordi_sim_loop *loop);
/* Something from outside wants a crashed loop to go on: its objects are destroyed. */
void coordi_sim_awake(coordi_sim_loop *loop);
/* After something new to do came to a loop; gives up the lock. In an abandoned world
 * nobody else would run it. */
void coordi_sim_unlock_after(coord_sim *sim);
void coordi_sim_queue(coordi_sim_loop *loop, coordi_job *job);

/* ---- sim_thread.c ---- */

coordi_thread *coordi_sim_self(const coord_sim *sim); /* NULL: not of this world */
void coordi_sim_threads_leave(coordi_sim_loop *loop); /* the loop goes */
/* In a thread of the world: lets others go first, if the seed says so. */
void coordi_sim_maybe_yield(coord_sim *sim);
/* The calling thread of the world sleeps. */
void coordi_sim_sleep(coordi_thread *self, int64_t until_ms);
void coordi_sim_wake_sleepers(coord_sim *sim); /* the world has been given back */

coord_status coordi_sim_thread_start(coord_loop *loop, const char *name,
                                     void (*run)(void *arg), void *arg,
                                     coordi_thread **ret, coord_error *err);
void coordi_sim_thread_join(coordi_thread *thread);
coordi_event *coordi_sim_event_create(coord_loop *loop);
void coordi_sim_event_set(coordi_event *event);
bool coordi_sim_event_wait(coordi_event *event, int64_t deadline_ms);
void coordi_sim_event_destroy(coordi_event *event);

/* ---- sim_net.c: machines and what lies between them ---- */

struct coordi_sim_host {
    coordi_link link;
    char name[COORDI_SIM_HOST_SIZE];    /* as the test said */
    char numeric[COORDI_SIM_HOST_SIZE]; /* the same, or made up */
    bool is_loopback;
    uint16_t last_port; /* that was handed out for port 0 */
    coordi_link servers;
};

/* Finds or makes a machine. */
coord_status coordi_sim_host_named(coord_sim *sim, const char *name,
                                   coordi_sim_host **ret, coord_error *err);

typedef struct coordi_sim_target {
    coordi_sim_host *host; /* NULL: no such machine */
    bool is_loopback;      /* the way does not leave the machine */
    bool is_name;          /* not numeric, so that it had to be resolved */
} coordi_sim_target;

coordi_sim_target coordi_sim_resolve(coord_sim *sim, coordi_sim_host *from,
                                     const char *name);
const coord_sim_link *coordi_sim_link_of(const coord_sim *sim,
                                         const coordi_sim_host *from,
                                         const coordi_sim_host *to,
                                         coord_sim_link *plain);
bool coordi_sim_is_cut(const coord_sim *sim, const coordi_sim_host *from,
                       const coordi_sim_host *to);
/* Draws when something sent now arrives. */
int64_t coordi_sim_arrival(coord_sim *sim, const coordi_sim_host *from,
                           const coordi_sim_host *to);
void coordi_sim_net_done(coord_sim *sim);

/* ---- sim_guest.c, sim_files.c, sim_process.c ---- */

void coordi_sim_guests_leave(coord_sim *sim); /* takes no lock */
void coordi_sim_guests_done(coord_sim *sim);

coord_status coordi_sim_file_read(coord_loop *loop, const char *path, size_t max_bytes,
                                  coordi_buf *ret, coord_error *err);
coord_status coordi_sim_file_replace(coord_loop *loop, const char *path,
                                     const void *bytes, size_t len, coord_error *err);
const char *const *coordi_sim_environment(coord_loop *loop);
void coordi_sim_files_done(coord_sim *sim);

coord_status coordi_sim_process_start(coord_loop *loop, const coordi_process_spec *spec,
                                      coordi_process **ret, coord_error *err);
int64_t coordi_sim_process_id(const coordi_process *process);
void coordi_sim_process_signal(coordi_process *process, int signal_number);
void coordi_sim_process_pause(coordi_process *process, bool paused);
void coordi_sim_process_destroy(coordi_process *process);
void coordi_sim_programs_done(coord_sim *sim);

#endif
