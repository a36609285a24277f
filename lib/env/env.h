/* The only door to the outside world: clock, timers, threads, network, processes, files,
 * durable records, random bytes. One table of functions, two implementations: real
 * (real_*.c) and simulated (sim_*.c). Nothing outside lib/env calls the operating system.
 *
 * Vocabulary
 *   loop    a queue of jobs, a clock with timers, and a share of the network. What lives
 *           on a loop is touched by one thread at a time: the loop thread.
 *   job     a function to run on the loop thread (or on a lane), linked in without
 *           allocating: posting never fails.
 *   event   what a thread outside the loop waits on, always with a deadline.
 *   peer    somebody that requests go to: an address and the headers that all have.
 *   call    a request that reached a server of ours and waits for its answer.
 *
 * Every function is for the loop thread unless it says "any thread". In the simulated
 * world all loops, and all threads that it knows, run one at a time. */
#ifndef COORDI_ENV_ENV_H
#define COORDI_ENV_ENV_H

#include "base/address.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "coord/loop.h"

#include <stdatomic.h>

/* ---- jobs, timers, events ---- */

typedef struct coordi_job coordi_job;
struct coordi_job {
    coordi_link link;
    void (*run)(coordi_job *job); /* may free the job, or post it again */
};

typedef struct coordi_timer coordi_timer;
struct coordi_timer {
    void (*fire)(coordi_timer *timer); /* may free the timer, or set it again */
    int64_t at_ms;
    uint64_t order;   /* timers of one instant fire in the order they were set */
    size_t heap_slot; /* not 0 while the timer is set; the rest belongs to env/timers.c */
    coordi_timer *child;
    coordi_timer *next;
    coordi_timer *prev;
};

/* A binary semaphore: wait takes what set gave. */
typedef struct coordi_event coordi_event;
typedef struct coordi_thread coordi_thread; /* a thread of ours */

/* ---- http client ---- */

/* Both ends of libcoord mark what they send with this header, and so find out that
 * requests can be repeated and connections kept. */
#define COORDI_HTTP_MARK "Libcoord"

typedef struct coordi_http_peer coordi_http_peer;
typedef struct coordi_http_request coordi_http_request;

typedef struct coordi_http_header {
    const char *name;
    const char *value;
} coordi_http_header;

typedef struct coordi_http_reply {
    coord_status status; /* COORD_OK: a whole HTTP answer came, whatever it says.
                          * COORD_ERR_LOST: not resolved, refused, reset, closed early.
                          * COORD_ERR_TIMEOUT, _TOO_BIG (answer), _NOMEM, _NETWORK,
                          * _PROTOCOL: what came back is not HTTP. */
    bool undelivered;    /* certainly nothing of the request reached the peer */
    bool marked;         /* the answer carries COORDI_HTTP_MARK */
    int http_status;
    coord_text body;          /* borrowed until the done function returns */
    const coord_error *error; /* detail when status is not COORD_OK; else NULL */
} coordi_http_reply;

typedef void coordi_http_done_fn(const coordi_http_reply *reply, void *arg);

typedef struct coordi_http_spec {
    const char *method; /* a literal: "GET", "POST", "PUT", "DELETE" */
    const char *path;   /* copied; "/connect", without the peer's prefix */
    char *body;         /* from coordi_alloc; taken over, also when the call fails */
    size_t body_len;
    int64_t timeout_ms; /* for all of it: resolve, connect, send, answer */
    int64_t connect_ms; /* of that: to resolve, and for each address to connect; 0: all */
    bool fresh;         /* a connection of its own: libcurl would silently send again on a
                         * kept connection that dies unanswered */
    size_t max_reply_bytes;    /* 0: 1 MiB */
    coordi_http_done_fn *done; /* called once, never from within send */
    void *arg;
} coordi_http_spec;

/* Told once: the local numeric address of the path to the peer ("192.168.1.7"). */
typedef void coordi_http_path_fn(coord_status status, const char *local_host,
                                 const coord_error *error, void *arg);

/* ---- http server ---- */

typedef struct coordi_http_server coordi_http_server;
typedef struct coordi_http_call coordi_http_call;

/* A request has come in whole. Answer it with http_answer, now or later; each call
 * exactly once, even when the server is gone by then. */
typedef void coordi_http_call_fn(coordi_http_call *call, void *arg);

typedef struct coordi_http_server_spec {
    const char *host;      /* numeric, or a name that resolves at once; "" is any */
    uint16_t port;         /* 0: any free port */
    size_t max_body_bytes; /* a longer body is read and dropped but for a first part */
    size_t max_inflight_bytes; /* bodies held at once; what would pass it waits unread */
    coordi_http_call_fn *on_call;
    void *arg;
} coordi_http_server_spec;

/* What every call begins with, in both implementations. */
struct coordi_http_call {
    const char *method;
    const char *path; /* decoded, without query */
    coord_text body;  /* until it is answered; when too_big the first part alone */
    bool too_big;     /* the body passed max_body_bytes */
    bool marked;      /* the request carries COORDI_HTTP_MARK */
    char peer[64];    /* numeric address of the sender, for logs */
};

/* ---- processes ---- */

typedef struct coordi_process coordi_process;

typedef struct coordi_process_spec {
    const char *const *argv; /* argv[0] with a slash is a path, else looked up in PATH */
    const char *const *envp; /* the whole environment of the child */
    const char *cwd;         /* NULL: the parent's */
    /* Pieces of what the child wrote: stream 1 or 2. len 0: that stream has ended. */
    void (*on_output)(coordi_process *process, int stream, const char *bytes, size_t len,
                      void *arg);
    /* The child is gone: its exit code, or minus the signal that ended it. Called once,
     * after the last on_output. */
    void (*on_exit)(coordi_process *process, int code, void *arg);
    void *arg;
} coordi_process_spec;

/* ---- durable records ---- */

/* A file of tables that outlives this process (SQLite). Its owner brings the schema and
 * the statements; one thread of its own writes them in the order they were handed over,
 * as many at once as are there (a group commit). While it is open, "-wal", "-shm" and
 * "-lock" files lie beside it, and any other program may read it. */
typedef struct coordi_records coordi_records;

typedef enum coordi_record_kind {
    COORDI_RECORD_NULL,
    COORDI_RECORD_NUMBER,
    COORDI_RECORD_TEXT
} coordi_record_kind;

typedef struct coordi_record_value {
    coordi_record_kind kind;
    int64_t number;
    coord_text text;
} coordi_record_value;

typedef struct coordi_records_spec {
    const char *path;
    const char *what;    /* opens error texts: "ledger" */
    int32_t application; /* marks files of ours (PRAGMA application_id) */
    int32_t version;     /* of the schema (PRAGMA user_version); any other is refused */
    const char *schema;  /* SQL that a new file begins with */
    const char *const *statements; /* SQL with ?1, ?2, ...; literals */
    size_t statement_count;
    bool sync_full;      /* what is written survives a power loss, too */
    int64_t patience_ms; /* for whoever has the file, and for all checks and reads */
} coordi_records_spec;

/* One row of an answer; the texts live until it returns. False: enough. */
typedef bool coordi_record_row_fn(const coordi_record_value *values, size_t count,
                                  void *arg);

/* A statement to be carried out, and what it needs: the caller's until done. */
typedef struct coordi_record_write coordi_record_write;
struct coordi_record_write {
    coordi_job job; /* env's, until done */
    size_t statement;
    const coordi_record_value *values;
    size_t count;
    bool failed; /* env's */
    coord_error error;
    /* On the loop, once: it is durable, or why not. COORD_ERR_EXISTS: its key is there;
     * COORD_ERR_ARG: the statement refuses it; COORD_ERR_IO: the disk (ENOSPC: it is
     * full); COORD_ERR_BUSY: another program is writing. May free the write. */
    void (*done)(coordi_record_write *write, const coord_error *failure);
};

/* ---- the table ---- */

typedef struct coordi_env {
    const char *name; /* "real" or "sim" */

    int64_t (*now_ms)(coord_loop *loop);  /* any thread; monotonic */
    int64_t (*wall_ms)(coord_loop *loop); /* any thread; since 1970 */
    void (*random)(coord_loop *loop, void *bytes, size_t len); /* any thread */

    /* Loop */
    void (*post)(coord_loop *loop, coordi_job *job); /* any thread; first in, first out */
    /* Any thread: is this the loop thread, now? */
    bool (*inside)(const coord_loop *loop);
    coord_status (*step)(coord_loop *loop, int64_t wait_ms, coord_error *err);
    int (*fd)(const coord_loop *loop);
    void (*free)(coord_loop *loop); /* the last reference is gone; any thread */
    void (*timer_set)(coord_loop *loop, coordi_timer *timer, int64_t at_ms);
    void (*timer_cancel)(coord_loop *loop, coordi_timer *timer);

    /* Threads; all of these from any thread */
    coord_status (*thread_start)(coord_loop *loop, const char *name,
                                 void (*run)(void *arg), void *arg, coordi_thread **ret,
                                 coord_error *err);
    void (*thread_join)(coordi_thread *thread); /* frees it; run() is about to return */
    coordi_event *(*event_create)(coord_loop *loop); /* NULL: out of memory */
    void (*event_set)(coordi_event *event);
    /* False: too late. INT64_MAX is no deadline: for idle threads, which are woken before
     * they are joined, and for nothing else. */
    bool (*event_wait)(coordi_event *event, int64_t deadline_ms);
    void (*event_destroy)(coordi_event *event);

    /* Client. A peer that is destroyed drops its requests: no done function runs. */
    coord_status (*peer_create)(coord_loop *loop, const coordi_address *address,
                                const coordi_http_header *headers, size_t header_count,
                                coordi_http_peer **ret, coord_error *err);
    void (*peer_destroy)(coordi_http_peer *peer);
    coord_status (*peer_path)(coordi_http_peer *peer, int64_t timeout_ms,
                              coordi_http_path_fn *done, void *arg, coord_error *err);
    coord_status (*http_send)(coordi_http_peer *peer, const coordi_http_spec *spec,
                              coordi_http_request **ret, coord_error *err);
    void (*http_cancel)(coordi_http_request *request); /* its done function won't run */

    /* Server */
    coord_status (*server_create)(coord_loop *loop, const coordi_http_server_spec *spec,
                                  coordi_http_server **ret, coord_error *err);
    uint16_t (*server_port)(const coordi_http_server *server);
    /* Open calls stay to be answered. */
    void (*server_destroy)(coordi_http_server *server);
    /* A header's value until the answer, repeated ones joined by ","; NULL: absent. */
    const char *(*call_header)(coordi_http_call *call, const char *name);
    /* `body` is from coordi_alloc and taken over; NULL: out of memory, an empty 500. */
    void (*http_answer)(coordi_http_call *call, int http_status, char *body, size_t len);

    /* Processes */
    coord_status (*process_start)(coord_loop *loop, const coordi_process_spec *spec,
                                  coordi_process **ret, coord_error *err);
    int64_t (*process_id)(const coordi_process *process);
    /* Signals the child's whole process group. */
    void (*process_signal)(coordi_process *process, int signal_number);
    /* True: what it writes is left in its pipes, so that it has to wait in the end. Some
     * of it may still come. Its exit comes all the same, after what was in the pipes. */
    void (*process_pause)(coordi_process *process, bool paused);
    void (*process_destroy)(coordi_process *process); /* kills what is left of it */

    /* Files; any thread. `loop` may be NULL in the real world. */
    coord_status (*file_read)(coord_loop *loop, const char *path, size_t max_bytes,
                              coordi_buf *ret, coord_error *err);
    /* Readers see the old file or the new one, never a torn one, even across a crash. */
    coord_status (*file_replace)(coord_loop *loop, const char *path, const void *bytes,
                                 size_t len, coord_error *err);
    /* Opens a file of records, or makes it, for this process alone. Any thread; may take
     * patience_ms. COORD_ERR_FORMAT: it is damaged, newer or something else, and left as
     * it is. COORD_ERR_BUSY: somebody has it. COORD_ERR_IO: the disk. */
    coord_status (*records_open)(coord_loop *loop, const coordi_records_spec *spec,
                                 coordi_records **ret, coord_error *err);
    /* Asks; before the first write, any thread, one at a time. A row function may ask
     * again, but not the same. */
    coord_status (*records_read)(coordi_records *records, size_t statement,
                                 const coordi_record_value *values, size_t count,
                                 coordi_record_row_fn *row, void *arg, coord_error *err);
    void (*records_write)(coordi_records *records, coordi_record_write *write);
    /* Gives it back; takes NULL. What was handed over is still written, and told. Any
     * thread before the first write, else the loop's. */
    void (*records_close)(coordi_records *records);
    /* The host's environment as "NAME=value" strings, closed by NULL; borrowed. */
    const char *const *(*environment)(coord_loop *loop);
} coordi_env;

/* What every loop begins with. */
struct coord_loop {
    const coordi_env *env;
    atomic_size_t refs;
    int64_t pid; /* of the process that made it: a forked child must not use it */
    coordi_log log;
    bool own_thread;
};

extern const coordi_env coordi_env_real;
extern const coordi_env coordi_env_sim;

/* ---- in a child that process_start() of another process started ---- */

typedef struct coordi_guard_spec {
    int exit_code;              /* with which this process is ended */
    void (*on_gone)(void *arg); /* or NULL: it is ended at once */
    int64_t grace_ms;           /* after on_gone has returned; 0: it is left alone */
    void *arg;
} coordi_guard_spec;

/* Watches the lifeline on a thread that stays for good. Only the first call does, and
 * only when there is one. Any thread; belongs to the process, not to a loop. */
coord_status coordi_child_guard(const coordi_guard_spec *spec, coord_error *err);

/* ---- in short ---- */

static inline int64_t coordi_now(coord_loop *loop)
{
    return loop->env->now_ms(loop);
}

static inline void coordi_post(coord_loop *loop, coordi_job *job)
{
    loop->env->post(loop, job);
}

static inline bool coordi_inside(const coord_loop *loop)
{
    return loop->env->inside(loop);
}

/* The moment `delay_ms` from now; hosts write INT64_MAX for "no limit". */
static inline int64_t coordi_deadline(coord_loop *loop, int64_t delay_ms)
{
    const int64_t never = INT64_MAX / 2;
    const int64_t now = coordi_now(loop);
    return delay_ms < never - now ? now + delay_ms : never;
}

static inline void coordi_timer_in(coord_loop *loop, coordi_timer *timer,
                                   int64_t delay_ms)
{
    loop->env->timer_set(loop, timer, coordi_deadline(loop, delay_ms));
}

static inline void coordi_timer_stop(coord_loop *loop, coordi_timer *timer)
{
    loop->env->timer_cancel(loop, timer);
}

static inline bool coordi_timer_is_set(const coordi_timer *timer)
{
    return timer->heap_slot != 0;
}

/* References keep a loop's thread alive; the last one to go ends it. Any thread. */
coord_loop *coordi_loop_ref(coord_loop *loop);
void coordi_loop_unref(coord_loop *loop);

/* For a destroy function whose object had the loop to itself, after it posted its
 * teardown: drops the caller's reference. Outside of the loop thread and of every
 * callback it first waits, one second at most, until that reference is the last one, so
 * that normally all threads are gone when destroy returns; elsewhere, or later, the loop
 * ends by itself. */
void coordi_loop_retire(coord_loop *loop);

/* A random version 4 UUID. */
void coordi_random_uuid(coord_loop *loop, char out[37]);

/* This process's pid; cheap. Any thread. */
int64_t coordi_process_id(void);

/* COORD_ERR_FORKED in a child of the process that made the loop, else COORD_OK. */
coord_status coordi_check_fork(const coord_loop *loop, const char *what,
                               coord_error *err);
/* The same for an object that knows its process itself. */
coord_status coordi_check_process(int64_t pid, const char *what, coord_error *err);

/* For destroy functions. True in a forked child: then the object stays as it is, for its
 * threads may have been changing it when the child was made (coord/loop.h has the rule).
 * `link` is one in it that nobody needs there; it keeps all that the object refers to
 * within the sight of leak checkers. */
bool coordi_stays_behind(const coord_loop *loop, coordi_link *link);
void coordi_leave_behind(coordi_link *link);

/* One lock for the whole process, which no forked child inherits locked. */
void coordi_process_lock(void);
void coordi_process_unlock(void);

/* ---- callbacks on the stack ---- */

/* Marks that this thread runs a callback of `owner`, so that a call which waits for that
 * callback's end can be refused. */
typedef struct coordi_frame {
    const void *owner;
    struct coordi_frame *outer;
} coordi_frame;

void coordi_frame_enter(coordi_frame *frame, const void *owner);
void coordi_frame_leave(coordi_frame *frame);
bool coordi_frame_has(const void *owner); /* is this thread in a callback of owner? */
bool coordi_frame_any(void);              /* ... of anything of ours? */

#endif
