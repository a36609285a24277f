/* Programs of this build as child processes, for tests. Every wait has a limit, and what
 * a program does not do in time fails the test; nothing sleeps or polls. */
#ifndef TEST_SUPPORT_PROCESSES_H
#define TEST_SUPPORT_PROCESSES_H

#include <stdint.h>

typedef struct process process;

/* Starts BUILD/<program>, such as "examples/worker", where BUILD is the folder that the
 * running test was built in. `args` ends with NULL; the program's name is not in it. Its
 * input is empty; its output and errors are read with the functions below. */
process *process_start(const char *program, const char *const *args);

/* The same, but its input stays open, and empty, until process_end_input() or its end. */
process *process_start_held(const char *program, const char *const *args);
void process_end_input(process *p);

/* Starts the program at that path, the same otherwise. */
process *process_start_path(const char *path, const char *const *args);

/* The path of BUILD/<program>; borrowed until the next call. */
const char *process_path(const char *program);

/* The next line of output, without its newline; NULL once every process that had the
 * output has closed it. Borrowed until the next call for that process. */
const char *process_read_line(process *p, int64_t limit_ms);

void process_signal(process *p, int signal);

/* Its process id. */
int process_pid(const process *p);

/* Waits for its end: the exit status, or 128 + the signal that ended it. May be called
 * again. */
int process_wait(process *p, int64_t limit_ms);

/* What it has written to stderr so far; borrowed until the next call for that process. */
const char *process_errors(process *p);

/* Kills and forgets all that were started: for teardowns. */
void processes_end_all(void);

#endif
