/* The inside of a CommCoordinator. See coord/comm_coordinator.h for its public face.
 *
 * Vocabulary
 *
 *   member: a worker of the membership, connected or not (member.c; what it is asked
 *   between tasks is in recover.c).
 *
 *   run: a task of the host on its way through its states, from send or post to its last
 *   callback (run.c; its rules are in rules.h, collector_run.c and learner_run.c).
 *
 *   request: one task in the sense of the wire; a run makes many (request.c).
 *
 *   lane: where the callbacks of one run are called, one after the other (callback.c).
 *
 *   life: from a start of the coordinator to its end, however it comes. The ledger
 *   (record.c, ledger.c) is what one leaves to the next (restore.c).
 *
 * Everything here belongs to the loop thread, but for what is marked otherwise. */
#ifndef COORDI_COORDINATOR_COORDINATOR_H
#define COORDI_COORDINATOR_COORDINATOR_H

#include "base/map.h"
#include "codec/out.h"
#include "coord/comm_coordinator.h"
#include "coordinator/config.h"
#include "coordinator/ledger.h"
#include "env/lane.h"
#include "env/op.h"
#include "interaction/master.h"

typedef struct coordi_member coordi_member;
typedef struct coordi_run coordi_run;
typedef struct coordi_send_op coordi_send_op;
typedef struct coordi_history coordi_history;
typedef struct coordi_notice coordi_notice;
typedef struct coordi_roster coordi_roster;
typedef struct coordi_discovery coordi_discovery;
typedef struct coordi_question coordi_question;
typedef struct coordi_operator_sync coordi_operator_sync;

enum { COORDI_ROLES = 2, COORDI_SOURCES = 2 };

/* ---- the coordinator ---- */

typedef enum coordi_phase {
    COORDI_PHASE_CREATED, /* start() may be called, also again after it failed */
    COORDI_PHASE_STARTING,
    COORDI_PHASE_RUNNING,
    COORDI_PHASE_CLOSING,
    COORDI_PHASE_CLOSED
} coordi_phase;

typedef struct coordi_counters {
    uint64_t accepted; /* tasks */
    uint64_t finished;
    uint64_t failed;
    uint64_t moved;    /* attempts after the first */
    uint64_t requests; /* to workers */
    uint64_t dropped_events;
    uint64_t workers_lost;
    uint64_t quarantined; /* how often a worker was */
} coordi_counters;

/* Runs of one role that wait for a worker. */
typedef struct coordi_queue {
    coordi_link runs;      /* oldest first */
    coordi_timer patience; /* ... of those that were moved, when nobody is connected */
} coordi_queue;

struct CommCoordinator {
    atomic_size_t refs;
    coord_loop *loop; /* a reference */
    bool owns_loop;
    coordi_config config;
    comm_coordinator_callbacks callbacks;
    coord_resource_policy policy;
    coordi_log log;
    atomic_uint port;
    atomic_bool dead;    /* destroyed: no callback begins any more */
    atomic_size_t tasks; /* queued and running ones, for a wait that was in vain */

    coordi_phase phase;
    bool draining;        /* takes no more tasks */
    coord_master *master; /* NULL unless started */
    coordi_executor *executor;
    coordi_lane *lane;        /* for runs that have none (any more) */
    coordi_lane *member_lane; /* where the host hears of members */
    size_t host_calls;        /* on their way, beside those of runs */
    coord_resource_manager *resources;
    coordi_ledger *ledger;            /* NULL: none */
    atomic_flag begun;                /* start() was called, and has not failed */
    coordi_ticket_key key;            /* of its requests' ids */
    uint64_t last_number;             /* of a task */
    coordi_map members[COORDI_ROLES]; /* by id */
    size_t ready[COORDI_ROLES];       /* of them, connected, of use and not leaving */
    size_t present[COORDI_ROLES];     /* ... not GONE */
    coordi_roster *rosters[COORDI_SOURCES]; /* of its sources; NULL: no such */
    coordi_operator_sync *operator_sync;    /* NULL: there is no operator server */
    coordi_discovery *discovery;            /* NULL: none */
    coordi_question *question; /* of it to the host, still to return; NULL: none */
    bool elastic;              /* workers may come that nobody knows of yet */
    coordi_timer sweep;        /* of members that were removed and have gone */
    coordi_map runs;           /* by task id; queued ones, too */
    coordi_queue queues[COORDI_ROLES];
    size_t queued;
    coordi_counters counters;
    coordi_map past; /* tasks that failed, by id: history.c */
    coordi_link past_oldest_first;

    coordi_timer start_deadline;
    coord_error start_failure; /* it has failed, and callbacks are waited for */
    coordi_timer close_deadline;
    coordi_link await_start; /* ops */
    coordi_link await_empty;
    coordi_link await_close;
    coordi_job destroy_job;
};

CommCoordinator *coordi_coordinator_ref(CommCoordinator *c);
void coordi_coordinator_unref(CommCoordinator *c);

/* start.c */
/* Takes the ledger over; NULL: none. */
coord_status coordi_coordinator_begin(CommCoordinator *c, coordi_ledger *ledger,
                                      coord_error *err);
/* While it starts: are enough workers there? */
void coordi_coordinator_check_start(CommCoordinator *c);

/* lifecycle.c */
void coordi_coordinator_begin_close(CommCoordinator *c);
void coordi_coordinator_tear_down(CommCoordinator *c);
/* All that start made. */
void coordi_coordinator_release(CommCoordinator *c);
/* A member has become ready, or a run or member has gone: is anybody waiting for that? */
void coordi_coordinator_check(CommCoordinator *c);

/* queue.c */
void coordi_queue_init(coordi_queue *queue);
/* Workers have come or gone: tasks that were moved and have nobody left to wait for fail;
 * where workers may come that nobody knows of yet, after max_retry_second. */
void coordi_coordinator_check_stranded(CommCoordinator *c, coord_role role);
/* The worker that a run is not given to: it has lost it twice in a row, and others are
 * connected. So one that crashes again and again can't use up a task's attempts. NULL:
 * none. */
const coordi_member *coordi_run_shuns(const coordi_run *run);
/* Gives free workers to the runs that wait longest. */
void coordi_coordinator_pump(CommCoordinator *c, coord_role role);

/* Which callback for this role's tasks is missing? COORD_ERR_ARG names it. */
coord_status coordi_coordinator_check_callbacks(const CommCoordinator *c, coord_role role,
                                                coord_error *err);

/* restore.c: takes up what the ledger remembers, before the first worker is connected. */
coord_status coordi_coordinator_restore(CommCoordinator *c, coord_error *err);

/* status.c: yours (coordi_free); NULL: no memory. */
char *coordi_coordinator_status(CommCoordinator *c);

/* ---- members ---- */

typedef enum coordi_member_state {
    COORDI_MEMBER_AWAY, /* not connected; the timer brings the next attempt */
    COORDI_MEMBER_CONNECTING,
    COORDI_MEMBER_ASKING, /* for its resources: it comes into the pool with them */
    COORDI_MEMBER_FREE,
    COORDI_MEMBER_WORKING,     /* for its run */
    COORDI_MEMBER_RECOVERING,  /* closes what a run left behind, and is asked again */
    COORDI_MEMBER_QUARANTINED, /* connected, but not used: the timer brings a probe */
    COORDI_MEMBER_LEAVING,     /* disconnects, for the coordinator closes */
    COORDI_MEMBER_GONE
} coordi_member_state;

/* Who has brought it. */
typedef enum coordi_origin {
    COORDI_ORIGIN_CONFIG,
    COORDI_ORIGIN_HOST, /* comm_coordinator_add_worker() */
    COORDI_ORIGIN_OPERATOR,
    COORDI_ORIGIN_DISCOVERY,
    COORDI_ORIGIN_LEDGER /* was there in an earlier life; a source may list it again */
} coordi_origin;

/* Which request of an attempt that was given up is still under way. */
typedef enum coordi_left_kind {
    COORDI_LEFT_WORK,
    COORDI_LEFT_START,
    COORDI_LEFT_CLOSE
} coordi_left_kind;

struct coordi_member {
    CommCoordinator *c;
    coordi_config_worker worker; /* role, id, host, port */
    coordi_origin origin;
    coordi_member_state state;
    int64_t since_ms;             /* of the state */
    coord_connection *connection; /* NULL while AWAY or GONE */
    coord_task *task;             /* its own request (resource, close); NULL: none */
    coordi_run *run;              /* works for it, or waits for its release; NULL: none */
    char *resource;               /* what it said last that it has; JSON, owned */
    bool parted;                  /* disconnected: its slave knows */
    bool leaving;                 /* to be disconnected as soon as it is idle */
    bool counted_ready;           /* in the coordinator's numbers */
    bool counted_present;
    bool removed;            /* ... and then forgotten */
    coordi_member *heir;     /* takes its place then; owned; NULL: nobody */
    coordi_notice *increase; /* for the host, when it is ready; NULL: it knows */
    coordi_notice *decrease; /* ... when it was removed */
    coordi_timer retry;      /* AWAY: connects; RECOVERING: ends the patience with `left`;
                              * QUARANTINED: probes; LEAVING: drops it */
    int64_t pause_ms;        /* before the next attempt; grows */
    int64_t away_since_ms;
    coord_error why;      /* what went wrong last; status COORD_OK: nothing */
    int64_t why_ms;       /* ... and when */
    coord_error lost_why; /* why it was lost, while `why` tells of attempts since then */
    int64_t lost_ms;

    /* What an attempt that was given up has left behind. */
    coord_task *left; /* the request that it is still at; NULL: none */
    coordi_left_kind left_kind;
    const char *owed; /* the close request that has to come before it is used again;
                       * NULL: none */

    int64_t quarantine_ms;  /* last pause before a probe; 0: has done a task since */
    uint32_t probes;        /* in vain, in this quarantine */
    coord_error probe_why;  /* of the last of them */
    uint32_t failed_starts; /* in a row */
};

const char *coordi_member_state_str(coordi_member_state state);
/* Not yet among the members. NULL: no memory. */
coordi_member *coordi_member_create(CommCoordinator *c,
                                    const coordi_config_worker *worker,
                                    coordi_origin origin);
void coordi_member_free(coordi_member *m); /* takes NULL */
void coordi_member_connect(coordi_member *m);
/* What its connections are called in the master's tables. */
void coordi_member_print_key(const coordi_member *m, char key[COORDI_KEY_SIZE]);
/* Goes on with a connection of an earlier life, where it works for `run` (NULL: it was
 * free). False: it can't be taken up, and is connected anew. */
bool coordi_member_adopt(coordi_member *m, const coordi_ledger_worker *past,
                         coordi_run *run, const char *resource);
void coordi_member_set_state(coordi_member *m, coordi_member_state state);
void coordi_member_set_leaving(coordi_member *m, bool leaving);
/* Brings the coordinator's numbers up to date with it. */
void coordi_member_recount(coordi_member *m);
/* It is gone: its run, if it has one, hears of it, and it is tried again. */
void coordi_member_lose(coordi_member *m, const coord_error *why);
/* Disconnects, whatever it was asked for; not while it works for a run. It becomes GONE,
 * at once or soon. */
void coordi_member_leave(coordi_member *m);
/* It leaves, and another waits for its place: no more than a short goodbye. */
void coordi_member_hurry(coordi_member *m);
/* Drops it without a word. */
void coordi_member_drop(coordi_member *m, const coord_error *why);
bool coordi_member_is_ready(const coordi_member *m);
/* Also one that is of no use for now. */
bool coordi_member_is_connected(const coordi_member *m);
/* A run that waits for its release need not wait any longer. */
void coordi_member_let_run_finish(coordi_member *m);

/* recover.c. Connected: asked what it has, then into the pool. */
void coordi_member_ask(coordi_member *m);
/* Its run is over and waits: back to the pool with fresh resources, then the run gets
 * COORDI_EVENT_RELEASED. `closed`: the close request was sent. */
void coordi_member_release(coordi_member *m, bool closed);
/* The timer has fired. */
void coordi_member_recover_on_timer(coordi_member *m);
/* Nobody waits for what it was asked. */
void coordi_member_forget_requests(coordi_member *m);
/* The run lets go of its worker, which is not told: what it is still at, and the close
 * that it must get, become the member's business. */
void coordi_run_let_go(coordi_run *run);

/* ---- runs ---- */

typedef enum coordi_state {
    COORDI_STATE_NONE,      /* in a table: this event means nothing in this state */
    COORDI_STATE_RECORDING, /* the ledger writes down that it is accepted */
    COORDI_STATE_QUEUED,
    COORDI_STATE_ASSIGNING,  /* the ledger writes down who gets it */
    COORDI_STATE_STARTING,   /* request: start */
    COORDI_STATE_ASKING,     /* request: data, or get_data */
    COORDI_STATE_PAUSING,    /* after a failed request */
    COORDI_STATE_SENDING,    /* callback: send_data */
    COORDI_STATE_SAMPLING,   /* callback: get_data */
    COORDI_STATE_WAITING,    /* the host has no data yet */
    COORDI_STATE_LEARNING,   /* request: learn */
    COORDI_STATE_JUDGING,    /* callback: judge_finish (and send_info) */
    COORDI_STATE_CLOSING,    /* request: close */
    COORDI_STATE_RELEASING,  /* the worker goes back to the pool */
    COORDI_STATE_RESTARTING, /* callback: task_restart, before another attempt */
    COORDI_STATE_FINISHING,  /* callback: finish_task */
    COORDI_STATE_FAILING,    /* callback: task_fail */
    COORDI_STATE_SETTLING,   /* the ledger writes down how it ended */
    COORDI_STATE_RESUMING,   /* callback: task_resume, after a restart */
    COORDI_STATE_AWAITING,   /* the request that a worker had before the restart */
    COORDI_STATE_SHELVING,   /* lets go of all but its place in the ledger */
    COORDI_STATE_ENDED,
    COORDI_STATE_COUNT
} coordi_state;

typedef enum coordi_event_kind {
    COORDI_EVENT_ASSIGNED, /* a worker is there */
    COORDI_EVENT_ACCEPTED, /* the start request has completed */
    COORDI_EVENT_SAMPLE,   /* a collector's data */
    COORDI_EVENT_INFO,     /* a collector's progress */
    COORDI_EVENT_WANT,     /* a learner wants a batch */
    COORDI_EVENT_LEARNED,
    COORDI_EVENT_CLOSED, /* the close request has ended, well or not */
    COORDI_EVENT_RETRY,  /* the request failed at the worker; another may not */
    COORDI_EVENT_BROKEN, /* ... for good; or a callback failed */
    COORDI_EVENT_LOST,   /* the worker is gone */
    COORDI_EVENT_MOVED,  /* ... or of no use, and another may take the task */
    COORDI_EVENT_STOP,   /* cancel, close, or too long in the queue */
    COORDI_EVENT_YES,    /* the callback has returned */
    COORDI_EVENT_NO,
    COORDI_EVENT_AGAIN,
    COORDI_EVENT_DUE,           /* the pause is over */
    COORDI_EVENT_RELEASED,      /* the worker is in the pool again, or given up */
    COORDI_EVENT_WARNED,        /* task_restart has returned */
    COORDI_EVENT_TOLD,          /* the last callback has returned */
    COORDI_EVENT_RECORDED,      /* the ledger has it, or there is none */
    COORDI_EVENT_RESUMED,       /* task_resume has returned */
    COORDI_EVENT_CLAIMED_START, /* the result of such a request is there: of a start */
    COORDI_EVENT_CLAIMED_ASK,   /* ... data, get_data */
    COORDI_EVENT_CLAIMED_LEARN, /* ... learn */
    COORDI_EVENT_CLAIMED_CLOSE, /* ... close */
    COORDI_EVENT_SHELVE,        /* the coordinator closes, and will take it up again */
    COORDI_EVENT_COUNT
} coordi_event_kind;

/* What an event does in a state. The state changes first, then act() runs. */
typedef struct coordi_rule {
    coordi_state next;
    void (*act)(coordi_run *run);
} coordi_rule;

/* One kind of task: a table and its words on the wire. */
typedef struct coordi_run_kind {
    coord_role role;
    const char *start_name; /* of the requests */
    const char *ask_name;
    const char *close_name;
    const char *id_key; /* what the worker's id is called in the task */
    const coordi_rule (*rules)[COORDI_EVENT_COUNT];
    /* What a completed ask or learn request means. */
    coordi_event_kind (*read)(coordi_run *run, coord_text result);
} coordi_run_kind;

/* What a callback is about. */
typedef struct coordi_delivery {
    uint32_t attempt;
    uint64_t sequence;
} coordi_delivery;

struct coordi_run {
    size_t refs;
    CommCoordinator *c; /* a reference */
    const coordi_run_kind *kind;
    coordi_state state;
    char *id;   /* owned */
    char *task; /* the host's text; owned */
    size_t task_len;
    uint64_t number; /* counts all tasks; in the ids of its requests, and in the ledger */
    uint32_t attempt;
    uint32_t losses;   /* attempts that were lost; a restart of ours is none */
    uint32_t in_a_row; /* ... the last of them, all by `worker_id` */
    uint64_t sequence; /* of the request under way, or the last */
    coordi_link queue;
    int64_t since_ms; /* of the state */

    coordi_member *member;         /* NULL: none (any more) */
    char worker_id[COORD_ID_SIZE]; /* who it is or was */
    coord_task *request;           /* under way, or the last: callbacks read its result */
    uint32_t failures;             /* requests failed in a row */
    coordi_timer timer;            /* queue timeout, pause, wait for data */
    int64_t pause_ms;
    coord_error why;         /* of a failure */
    coord_error moved_why;   /* why the last attempt ended; read on the lane */
    coordi_history *history; /* owned; NULL: no trouble so far */
    char past[256]; /* what became of the attempts before, for the cause at the end */

    size_t writes;      /* to the ledger, on their way */
    bool restored;      /* from the ledger, after a restart */
    bool doomed;        /* ... and has failed before it, for the reason in why */
    bool resumes;       /* its next request may be one that was sent before that */
    bool counted;       /* in c->queued */
    coord_task *parked; /* the request that was under way before the restart, once its
                         * result has come; not yet needed */
    coordi_ticket parked_ticket;
    char *kept; /* the last result in the ledger; owned */
    size_t kept_len;
    coordi_ticket_kind kept_request;
    bool kept_completed;

    coordi_op *post;      /* whoever waits in post_* for the ledger */
    coordi_send_op *send; /* whoever waits in send_*; NULL: nobody, or told */
    bool accepted;        /* by the worker */
    bool close_sent;
    bool failed;
    bool told;             /* the host, or who sent it, knows of its end */
    coordi_link await_end; /* ops */

    coordi_lane *lane;
    coordi_job start_job; /* callback jobs: on the lane, then back on the loop */
    coordi_job job;
    coordi_job restart_job; /* and of task_resume */
    coordi_job end_job;
    coordi_event_kind (*call)(coordi_run *run); /* what `job` does on the lane */
    coordi_delivery call_about; /* of `job`, which the loop may leave behind */
    coordi_delivery start_about;
    coordi_event_kind returned;
    coord_error call_why; /* with COORDI_EVENT_BROKEN */
    bool ready;           /* data_ready came while the host was looking */

    /* What callbacks are told; filled in on the loop, read on the lane. */
    char *buffer_id; /* owned; NULL: none */
    char *data_id;   /* owned */
    coord_text info;
    int64_t batch_size;
    int64_t learner_iter;
    int64_t want_ms; /* since when the learner waits for it */
    coord_out out;
    char *result; /* of the close request; owned */
    size_t result_len;
};

/* A send_* or post_* on its way to the loop. */
struct coordi_send_op {
    coordi_op op;
    const coordi_run_kind *kind;
    coord_text task;               /* the caller's: it waits until the op has run */
    char worker_id[COORD_ID_SIZE]; /* out */
    bool post;
};

extern const coordi_run_kind coordi_collector_run;
extern const coordi_run_kind coordi_learner_run;

const char *coordi_state_str(coordi_state state);
/* Queues a task of the host. */
coord_status coordi_run_create(CommCoordinator *c, const coordi_run_kind *kind,
                               coord_text task, coordi_send_op *send, coord_error *err);
void coordi_run_dispatch(coordi_run *run, coordi_event_kind event);
/* STOP, LOST or BROKEN, and why. */
void coordi_run_stop(coordi_run *run, coordi_event_kind event, const coord_error *why);
/* Its worker is gone, or of no use: `event` (LOST or BROKEN), unless another worker may
 * take the task. */
void coordi_run_lose(coordi_run *run, coordi_event_kind event, const coord_error *why);
void coordi_run_unref(coordi_run *run);

/* A wire request of this run has ended, in this life or before. */
void coordi_run_completed(coordi_run *run, coord_text result);
void coordi_run_request_failed(coordi_run *run, const coord_error *why);
void coordi_run_listen(coordi_run *run, coord_task *request, uint64_t sequence);
/* All of it but what makes it wait; NULL: *status and *err say why. */
coordi_run *coordi_run_allocate(CommCoordinator *c, const coordi_run_kind *kind,
                                coord_text task, coord_status *status, coord_error *err);
void coordi_run_leave_queue(coordi_run *run);

/* restore.c */
void coordi_run_after_resume(coordi_run *run);
void coordi_run_await_due(coordi_run *run);
bool coordi_run_take_parked(coordi_run *run, const char *id);
void coordi_run_drop_parked(coordi_run *run);
void coordi_run_await(coordi_run *run);
void coordi_run_claimed(coordi_run *run);
coord_task *coordi_claim(coord_connection *from, const char *id, void *arg);

/* record.c: what the ledger is told of a run. */
void coordi_run_record_acceptance(coordi_run *run);
void coordi_run_record_attempt(coordi_run *run);
void coordi_run_record_move(const coordi_run *run);
void coordi_run_record_text(const coordi_run *run);
void coordi_run_record_closed(const coordi_run *run);
/* True: coordi_run_tell_failure() follows when it is written. */
bool coordi_run_record_failure(coordi_run *run);
void coordi_run_tell_failure(coordi_run *run);
void coordi_run_record_end(coordi_run *run);
bool coordi_keep(coordi_held *held, void *arg);

/* Actions that both kinds use. */
void coordi_run_refuse(coordi_run *run);
void coordi_run_queue(coordi_run *run);
void coordi_run_shelve(coordi_run *run);
void coordi_run_send_start(coordi_run *run);
void coordi_run_started(coordi_run *run);
void coordi_run_send_ask(coordi_run *run);
void coordi_run_pause(coordi_run *run);
void coordi_run_send_close(coordi_run *run);
void coordi_run_release(coordi_run *run);
void coordi_run_release_open(coordi_run *run); /* the close could not be sent */
void coordi_run_finish(coordi_run *run);
void coordi_run_move(coordi_run *run);
void coordi_run_queue_again(coordi_run *run);
void coordi_run_fail(coordi_run *run);
void coordi_run_end(coordi_run *run);
/* Sends a request; `body` is taken over, NULL: no memory. */
void coordi_run_request(coordi_run *run, char *body, size_t len, int64_t timeout_ms);
/* Copies the member `key` of `from`; keeps *to when there is none. False: no memory. */
bool coordi_run_read_text(coord_text from, const char *key, char **to);

/* history.c: what befell a run, and the runs that failed. */
void coordi_history_note(coordi_run *run, const coord_error *why);
void coordi_past_keep(coordi_run *run);
void coordi_past_forget(CommCoordinator *c, const char *task_id);
void coordi_past_done(CommCoordinator *c);

/* restart.c: the text that task_restart put out, if any, becomes the task. */
coord_status coordi_run_take_text(coordi_run *run, coord_error *err);

/* callback.c: where host functions are called. */
void coordi_run_call(coordi_run *run, coordi_event_kind (*call)(coordi_run *run));
void coordi_run_call_started(coordi_run *run);
void coordi_run_call_restart(coordi_run *run);
void coordi_run_call_resume(coordi_run *run);
void coordi_run_call_end(coordi_run *run);

#endif
