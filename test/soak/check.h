/* What the journals and the ledger say, and whether it can be true. Nothing here is
 * taken from the library. */
#ifndef SOAK_CHECK_H
#define SOAK_CHECK_H

#include "soak.h"

/* ---- a look into the ledger (look.c) ---- */

typedef struct soak_row {
    char *id;
    char state; /* 'q'ueued, 'r'unning, 'f'inished, 'x' failed */
} soak_row;

typedef struct soak_look {
    int life; /* that has ended */
    soak_row *rows;
    size_t count;
    long long accepted, finished, failed, moved;
    bool good; /* could be read */
    char error[160];
} soak_look;

/* Copies the ledger of a process that is dead, so that its log is left as it is, and
 * reads the copy. */
void soak_look_at(const char *folder, int life, soak_look *ret);
void soak_look_done(soak_look *look);

/* ---- what was found (story.c) ---- */

typedef enum soak_rule {
    SOAK_LEDGER_READABLE,
    SOAK_KNOWN,     /* an accepted task is in the ledger or has ended */
    SOAK_INVENTED,  /* no task that was not sent */
    SOAK_TEXTS,     /* a task comes back as it was sent */
    SOAK_RESUMED,   /* what was open is resumed, once, before all else */
    SOAK_ONCE,      /* a delivery, within a life */
    SOAK_EQUAL,     /* the same delivery has the same bytes in another life */
    SOAK_ORDER,     /* attempts and sequences do not go back */
    SOAK_ENDS_ONCE, /* no second end, and nothing behind the end */
    SOAK_ENDS_KEPT, /* an end that the ledger had comes once */
    SOAK_SAME_END,  /* what ended ends again as it did */
    SOAK_STEPS,     /* a finished task has delivered all of its steps */
    SOAK_STARTS,    /* no worker is told twice to start an attempt */
    SOAK_TOTALS,    /* accepted = finished + failed + open, in the ledger too */
    SOAK_LOG,       /* the ledger could always be written */
    SOAK_RULES
} soak_rule;

typedef struct soak_tally {
    size_t tasks; /* that the ledger had */
    size_t finished;
    size_t failed;
    size_t open;
    size_t again;   /* ended, and once more in the next life */
    size_t resumed; /* callbacks */
    size_t restarts;
    size_t deliveries;
    size_t repeated; /* in a later life */
    long long late_results;
} soak_tally;

typedef struct soak_story soak_story;

soak_story *soak_story_new(const char *folder);
/* Reads on in the host's journal, and compares with the ledger: a life has ended. */
void soak_story_advance(soak_story *story, const soak_look *look);
/* After the last life: nothing is left, and the workers' journals fit. */
void soak_story_close(soak_story *story, const soak_look *look, char *const *workers,
                      size_t count);
/* A line for each rule. */
void soak_story_report(soak_story *story);
const soak_tally *soak_story_tally(const soak_story *story);

/* "ok - what" or "not ok - what: why"; counts the latter. */
void soak_report(bool good, const char *what, const char *why);
int soak_failures(void);

#endif
