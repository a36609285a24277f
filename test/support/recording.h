/* Exchanges that were recorded with the reference's slave and master (test/vectors), to
 * be replayed against ours. */
#ifndef TEST_SUPPORT_RECORDING_H
#define TEST_SUPPORT_RECORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct recording {
    json_t *root; /* owned */
    json_t *steps;
    json_t *slave_sent; /* [[request line, body], ...]; NULL in a master's */
    const char *target; /* "slave" or "master" */
} recording;

/* What stands for the recording's own port and names. */
typedef struct recording_target {
    uint16_t port;
    uint16_t master_port; /* where the slave reports to */
    const char *self_token;
    const char *task_id;
} recording_target;

/* Reads test/vectors/<name>; a test that fails here is told so. */
void recording_open(recording *r, const char *name);
void recording_close(recording *r);
size_t recording_count(const recording *r);

/* "slave 34: task null data"; borrowed until close. */
const char *recording_title(recording *r, size_t n);

/* Sends the n-th step's request on a connection of its own, and fails unless the answer
 * is the recorded one; instead of an HTML page, four keys that say what is wrong. */
void recording_play(const recording *r, size_t n, const recording_target *target);

/* Was there time for the slave's work after this step? */
bool recording_pauses(const recording *r, size_t n);
/* Did the slave take a task? */
bool recording_gives_task(const recording *r, size_t n);

/* Fails unless this is an answer with four keys that says no: a code from PROTOCOL's
 * table for that target, and a message. */
void recording_check_refusal(const char *target, const char *body);

#endif
