/* A soak: real processes on loopback, killed and started again, and a checker that
 * compares what they wrote down with each other and with the ledger.
 *
 *     make soak MINUTES=5 [SEED=7]
 *
 * One program in three roles: the driver, which starts, kills, stops and checks; hosts,
 * one after the other, each a life of the coordinator; and workers. Hosts and workers
 * write a journal, a line a write, which a kill leaves whole. The checker looks at the
 * journals and, with SQLite alone, at a copy of the ledger after each life. */
#ifndef SOAK_SOAK_H
#define SOAK_SOAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { SOAK_PATH = 512, SOAK_WORKERS_MAX = 16 };

/* ---- small things (common.c) ---- */

int64_t soak_now_ms(void); /* of the monotonic clock, the same in all processes */
void soak_wait_ms(int64_t ms);
uint32_t soak_crc(const void *data, size_t len);
uint64_t soak_next(uint64_t *random);
int64_t soak_between(uint64_t *random, int64_t low, int64_t high);
bool soak_chance(uint64_t *random, int percent);
/* Has us killed when the parent ends. False: it has ended already. */
bool soak_follow_parent(pid_t parent);
/* A line to stderr, behind the time. */
void soak_say(const char *line);

/* ---- traps (trap.c) ---- */

/* "EVENT:COUNT:DELAY_US:UNTIL_MS": the process kills itself so many microseconds after
 * that event has happened so many times, if that is before that time; "-": it does not.
 * False: that is no such text. */
bool soak_trap_set(const char *text);
void soak_trap_step(const char *event);

/* ---- journals (journal.c) ---- */

typedef struct soak_note {
    const char *event;
    const char *task; /* NULL: none; without tabs and newlines, as is `detail` */
    uint32_t attempt;
    uint64_t sequence;
    uint32_t crc;
    const char *detail; /* NULL: none */
} soak_note;

/* Appends to the file; ends the process if it can't. */
int soak_journal_open(const char *folder, const char *name);
void soak_journal_write(int fd, int life, const soak_note *note);

/* ---- roles ---- */

int soak_host(int argc, char **argv);
int soak_worker(int argc, char **argv);
int soak_drive(int64_t seconds, uint64_t seed);

/* ---- tasks (tasks.c): a function of their id, so that every life knows them ---- */

typedef enum soak_fault {
    SOAK_FAULT_NONE,
    SOAK_FAULT_START, /* is refused */
    SOAK_FAULT_ONCE,  /* one step fails once */
    SOAK_FAULT_STEPS  /* all of them do */
} soak_fault;

typedef struct soak_plan {
    bool learner;
    int steps;
    int step_ms;
    soak_fault fault;
} soak_plan;

void soak_task_id(uint64_t seed, int life, int number, bool learner, char id[64]);
soak_plan soak_task_plan(const char *id);
/* `restarts` 0: as it was sent; else as the host replaces it before that attempt. Yours:
 * free with free(). */
char *soak_task_text(const char *id, uint32_t restarts);

#endif
