/**
 * @file testing_program.h
 * Programs for the processes that are started in a coord_sim, by a launcher for example.
 * Nothing is executed: a program is what it prints, how long it runs and how it ends.
 */
#ifndef COORD_TESTING_PROGRAM_H
#define COORD_TESTING_PROGRAM_H

#include "coord/testing.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A program that processes of this world can run. */
typedef struct coord_sim_program {
    size_t size;              /**< written by coord_sim_program_init() */
    const char *name;         /**< copied; what argv[0] must be */
    const char *output;       /**< copied; written to stdout at once; default "" */
    const char *error_output; /**< copied; written to stderr; default "" */
    int64_t run_ms;           /**< until it exits by itself; default -1: it does not */
    int exit_code;            /**< with which it does then */
    bool ignores_signals;     /**< all but SIGKILL; default false: any one ends it */
    /** Optional: one was started. `argv` and `envp` are closed by NULL and borrowed until
     *  it returns. It runs on the driver's thread and must not wait. */
    void (*started)(int64_t pid, const char *const *argv, const char *const *envp,
                    void *user);
    void *user; /**< passed to started */
} coord_sim_program;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_sim_program_init(coord_sim_program *program, size_t size);

/** Registers a program, or replaces the one of that name; processes that run keep theirs.
 *  @thread any */
COORD_API COORD_MUST_USE coord_status
coord_sim_add_program(coord_sim *sim, const coord_sim_program *program, coord_error *err);

/** Ends a running process with this exit code, or minus a signal number. False: no such
 *  process. @thread any */
COORD_API bool coord_sim_end_process(coord_sim *sim, int64_t pid, int exit_code);

#ifdef __cplusplus
}
#endif
#endif
