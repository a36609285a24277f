/**
 * @file launcher.h
 * Starts worker processes, listens to what they print, and ends them: a child never
 * outlives its launcher, however the launcher's process ends.
 *
 * Each child leads a process group of its own; stopping it reaches what it has started.
 * When a child ends, what is left of its group is killed. A child reads nothing
 * (/dev/null), inherits no descriptor but a *lifeline* as descriptor 3 (COORD_LIFELINE_FD
 * names it): a pipe that ends when this process is gone, even by SIGKILL. Programs that
 * use libcoord watch it with coord_launcher_child_guard().
 *
 * The library prints nothing: lines go to the sink that the caller gives.
 */
#ifndef COORD_LAUNCHER_H
#define COORD_LAUNCHER_H

#include "coord/api.h"
#include "coord/error.h"
#include "coord/log.h"
#include "coord/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Longer lines come in pieces of this many bytes. */
#define COORD_LAUNCHER_LINE_MAX 65536

typedef struct coord_launcher coord_launcher;

/** A line that a child wrote. The library fills it in; fields are only ever appended. All
 *  of it is borrowed until the sink returns. */
typedef struct coord_launcher_line {
    const char *name;    /**< of the child */
    int stream;          /**< 1: standard output, 2: standard error */
    coord_text text;     /**< without its newline, closed by a NUL; may hold any byte */
    coord_text prefixed; /**< "[name] text", closed by a NUL: for a common log */
    bool more;           /**< the line is over-long and goes on in the next piece */
} coord_launcher_line;

/** How a child ended. Never grows. */
typedef struct coord_launcher_exit {
    int code;          /**< its exit code; -1 when a signal ended it */
    int signal_number; /**< the signal that ended it, else 0 */
    bool stopped;      /**< it had been asked to: stop, close */
    uint64_t reserved[4];
} coord_launcher_exit;

/**
 * A child wrote a line; the last one may lack its newline. What a slow sink has not taken
 * is not read any further, and in the end the child waits.
 *
 * @thread a thread of the launcher's executor; one call at a time and in order for each
 * child, under no lock. Standard output and error have no order between them.
 */
typedef void coord_launcher_line_fn(coord_launcher *launcher,
                                    const coord_launcher_line *line, void *user);

/** A child has ended. Called once for each that was started, after its last line; its
 * name is free for a new start, which may be made in here. @thread as
 * coord_launcher_line_fn */
typedef void coord_launcher_exit_fn(coord_launcher *launcher, const char *name,
                                    const coord_launcher_exit *how, void *user);

typedef struct coord_launcher_options {
    size_t size;             /**< written by coord_launcher_options_init() */
    coord_executor executor; /**< runs the sinks; default COORD_EXECUTOR_PER_TASK: a
                              *   thread for each child that has sinks */
    size_t executor_threads; /**< for COORD_EXECUTOR_POOL; default 4 */
    int64_t close_grace_ms;  /**< from SIGTERM to SIGKILL in coord_launcher_close(), half
                              *   of its time at most; default 5000 */
    size_t max_queued_bytes; /**< that a child may be ahead of its sink; default 1 MiB */
    coord_loop *loop;        /**< default NULL: a loop of its own */
    coord_log_level log_level;
    coord_log_fn *log; /**< optional */
    void *user;        /**< passed to log */
} coord_launcher_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_launcher_options_init(coord_launcher_options *options, size_t size);

/**
 * Creates a launcher without children.
 *
 * @param options   Optional; copied.
 * @param[out] ret  Yours: free with coord_launcher_destroy().
 * @retval COORD_ERR_ARG  An option is out of range; err->text names it.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_launcher_create(
    const coord_launcher_options *options, coord_launcher **ret, coord_error *err);

/** What to start. */
typedef struct coord_launcher_spec {
    size_t size;             /**< written by coord_launcher_spec_init() */
    const char *name;        /**< 1 to 255 bytes without control characters; no child
                              *   that runs may have it: "collector0" */
    const char *const *argv; /**< program and arguments, closed by NULL. A program with a
                              *   slash is a path (from cwd), others are looked for in
                              *   this process's PATH */
    const char *const *environment;  /**< optional, closed by NULL: "NAME=value" is added
                                      * to  the child's copy of this process's environment,
                                      *   or replaces what was there; "NAME" removes it */
    const char *cwd;                 /**< default NULL: that of this process */
    coord_launcher_line_fn *on_line; /**< optional: what it writes is read and dropped */
    coord_launcher_exit_fn *on_exit; /**< optional */
    void *user;                      /**< passed to both; use it no more once on_exit has
                                      *   returned */
} coord_launcher_spec;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_launcher_spec_init(coord_launcher_spec *spec, size_t size);

/**
 * Starts a child. Sinks may be called before this returns.
 *
 * @param spec      Copied.
 * @param[out] pid  Optional: its process id.
 * @retval COORD_ERR_ARG     The spec is wrong; the text says how.
 * @retval COORD_ERR_EXISTS  A child of that name runs.
 * @retval COORD_ERR_IO      It can't be started; err->os_errno says why (ENOENT: there is
 *                           no such program, or no such cwd), the text names it.
 * @retval COORD_ERR_STATE   The launcher is closed.
 * @thread any, all callbacks too
 */
COORD_API COORD_MUST_USE coord_status
coord_launcher_start(coord_launcher *launcher, const coord_launcher_spec *spec,
                     int64_t *pid, coord_error *err);

/**
 * Asks a child to end (SIGTERM to its group), kills its group if it still runs after the
 * grace, and waits until it has gone and its on_exit has returned. One that has ended
 * already is no error.
 *
 * @param name      NULL: all that run now.
 * @param grace_ms  0: SIGKILL at once. Given twice, the earlier end counts.
 * @retval COORD_ERR_NOT_FOUND  No child of that name was ever started.
 * @retval COORD_ERR_TIMEOUT    Not gone 10 seconds after the grace: a sink still runs.
 * @retval COORD_ERR_STATE      Called from a sink of this launcher or on the loop thread.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_launcher_stop(coord_launcher *launcher,
                                                          const char *name,
                                                          int64_t grace_ms,
                                                          coord_error *err);

/** The same, and does not wait: on_exit tells the end. @thread any, all callbacks too */
COORD_API COORD_MUST_USE coord_status coord_launcher_post_stop(coord_launcher *launcher,
                                                               const char *name,
                                                               int64_t grace_ms,
                                                               coord_error *err);

/**
 * Sends a signal to a child's group: SIGUSR1, say. One that has ended is no error.
 *
 * @param name  NULL: all that run.
 * @retval COORD_ERR_NOT_FOUND  No child of that name was ever started.
 * @thread any, all callbacks too
 */
COORD_API COORD_MUST_USE coord_status coord_launcher_signal(coord_launcher *launcher,
                                                            const char *name,
                                                            int signal_number,
                                                            coord_error *err);

/**
 * Waits until a child has ended and its on_exit has returned. How a child ended is kept
 * until its name is started again; of 1024 names that ended the oldest is forgotten.
 *
 * @param name      NULL: all that run now.
 * @param wait_ms   At most so many milliseconds, more than 0.
 * @param[out] how  Optional: how it ended. With all: of all ends that are kept, that of
 * the first started which neither was code 0 nor asked for; else code 0.
 * @retval COORD_ERR_NOT_FOUND  No child of that name was ever started.
 * @retval COORD_ERR_TIMEOUT    It still runs.
 * @retval COORD_ERR_STATE      Called from a sink of this launcher or on the loop thread.
 * @retval COORD_ERR_CLOSED     The launcher was destroyed meanwhile.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_launcher_wait(coord_launcher *launcher,
                                                          const char *name,
                                                          int64_t wait_ms,
                                                          coord_launcher_exit *how,
                                                          coord_error *err);

/** Process id of a child that runs; 0: none of that name does. @thread any, all callbacks
 *  too */
COORD_API int64_t coord_launcher_pid(coord_launcher *launcher, const char *name);

/** How many children run. @thread any */
COORD_API size_t coord_launcher_count(const coord_launcher *launcher);

/**
 * Stops all children, starts no more, and waits until they have gone and their on_exit
 * has returned; no sink is called after this returned COORD_OK. Idempotent.
 *
 * @param wait_ms  At most so many milliseconds, more than 0.
 * @retval COORD_ERR_TIMEOUT  Not all have gone, or a sink still runs; may be called
 * again.
 * @retval COORD_ERR_STATE    Called from a sink of this launcher or on the loop thread.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_launcher_close(coord_launcher *launcher,
                                                           int64_t wait_ms,
                                                           coord_error *err);

/**
 * Gives the launcher back: kills what runs (SIGKILL to the groups); no sink is called any
 * more, but one that runs ends in peace. Never waits for a child. Takes NULL.
 *
 * @thread any, its own callbacks too
 */
COORD_API void coord_launcher_destroy(coord_launcher *launcher);

/* ---- in the child ---- */

typedef struct coord_launcher_guard_options {
    size_t size;   /**< written by coord_launcher_guard_options_init() */
    int exit_code; /**< with which this process is ended; default 1 */
    /** Optional: the launcher is gone; called once, on a thread of its own. It should
     *  bring the program to its end, and may return before that is reached. */
    void (*on_parent_gone)(void *user);
    int64_t grace_ms; /**< for the program to end after that, else it is ended; default
                       *   10000; 0: no limit */
    void *user;       /**< passed to on_parent_gone */
} coord_launcher_guard_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_launcher_guard_options_init(coord_launcher_guard_options *options,
                                                 size_t size);

/**
 * Makes this process end when the launcher that started it is gone: for the first lines
 * of main(). A thread watches the lifeline; without on_parent_gone, that is _exit(), and
 * the kernel is asked for SIGKILL as well, which reaches a process that hangs. The
 * lifeline is not passed on to programs that this process starts.
 *
 * In a process that no launcher started, and when called again, it does nothing.
 *
 * @param options  Optional; copied.
 * @retval COORD_ERR_IO  The thread could not be started.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status
coord_launcher_child_guard(const coord_launcher_guard_options *options, coord_error *err);

#ifdef __cplusplus
}
#endif
#endif
