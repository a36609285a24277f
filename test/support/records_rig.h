/* Files of notes in a folder of their own, in the real world, with a loop to use them on.
 * What must work fails the test when it does not. */
#ifndef TEST_SUPPORT_RECORDS_RIG_H
#define TEST_SUPPORT_RECORDS_RIG_H

#include "support/env_rig.h"
#include "support/notes.h"

enum { RECORDS_RIG_NOTES = 10000 };

typedef struct records_rig {
    env_rig env;
    notes notes;
    note note[RECORDS_RIG_NOTES];
    int count;   /* that are put */
    int awaited; /* told, in all, when the wait is over */
    int64_t first_id;
    const char *text;
    char folder[256];
} records_rig;

/* For cmocka: *state is the rig, and its folder is new. */
int records_rig_setup(void **state);
int records_rig_teardown(void **state);

/* A file of the folder; good for the next few calls. */
const char *records_rig_path(const records_rig *rig, const char *name);

void records_rig_open(records_rig *rig, const char *name);
/* Both the open and what it says, which names the file. */
coord_status records_rig_try(records_rig *rig, const coordi_records_spec *spec,
                             coord_error *err);
void records_rig_close(records_rig *rig);

/* Puts so many notes with rising ids, of that text, and waits until all are told. */
void records_rig_put(records_rig *rig, int64_t first_id, int count, const char *text);
/* Runs a function on the loop, and waits until so many in all have been told. */
void records_rig_do(records_rig *rig, void (*run)(records_rig *rig), int told);

/* Waits until a closed file has been let go. */
void records_rig_settle(const records_rig *rig, const char *name);

/* The number of notes in the file, found by opening it once more. */
int64_t records_rig_reopened(records_rig *rig, const char *name);

/* The content of a file, from malloc; NULL: there is none. */
char *records_rig_bytes(const char *path, size_t *len);
void records_rig_write(const char *path, const char *bytes, size_t len);
size_t records_rig_files(const records_rig *rig); /* in the folder */

#endif
