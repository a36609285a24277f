/* A launcher under test, and a book of what its sinks were told. */
#ifndef TEST_LAUNCHER_RIG_H
#define TEST_LAUNCHER_RIG_H

#include "coord/launcher.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { LONG_MS = 20000, SHORT_MS = 100, BOOK = 8192 };

/* Hangs, whatever SIGTERM says, until this process ends (descriptor 3). */
#define STUBBORN "trap '' TERM; echo ready; exec cat <&3"
#define PATIENT "echo ready; exec cat <&3"

typedef struct rig {
    coord_launcher *launcher;
    pthread_mutex_t lock;
    char book[BOOK];
    size_t at;
    size_t bytes;  /* of all lines */
    sem_t told;    /* posted at the end of each line */
    sem_t ready;   /* posted by each line "ready" */
    sem_t release; /* a sink that blocks waits for this */
    bool blocks;
    coord_status from_sink;
    int exits;
} rig;

void note(rig *r, const char *format, ...) COORD_PRINTF(2, 3);
bool take(sem_t *sem); /* in time? */

/* Sinks that write "<stream> <prefixed line>" and "<name>: <code> <signal>". */
void on_line(coord_launcher *launcher, const coord_launcher_line *line, void *user);
void on_exit_of(coord_launcher *launcher, const char *name,
                const coord_launcher_exit *how, void *user);

void rig_open(rig *r);
void rig_open_with(rig *r, const coord_launcher_options *options);
void rig_close(rig *r);

/* A spec with those sinks. */
coord_launcher_spec spec_of(rig *r, const char *name, const char *const *argv);
int64_t start_sh(rig *r, const char *name, const char *script);
coord_launcher_exit wait_for(rig *r, const char *name);
/* Starts "family", whose first line is the number of a process that it has started;
 * returns the pidfd of that. */
int start_family(rig *r, const char *script);

int pidfd_of(int64_t pid);
bool ends(int pidfd); /* takes it over: does its process end in time? */
bool no_children(void);
int64_t now_ms(void);

#endif
