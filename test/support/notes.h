/* Records with one table of numbered notes, for tests of env's durable records. */
#ifndef TEST_SUPPORT_NOTES_H
#define TEST_SUPPORT_NOTES_H

#include "env/env.h"

enum { NOTES_APPLICATION = 0x6e6f7465, NOTES_VERSION = 3 };

/* Statements, and what they take. */
enum {
    NOTES_PUT,     /* id, text: neither NULL nor "bad" */
    NOTES_ALL,     /* gives id, text in order of id */
    NOTES_COUNT,   /* gives the number of notes */
    NOTES_ENDLESS, /* counts for ever */
    NOTES_ECHO,    /* gives its one value */
    NOTES_DROP,    /* id */
    NOTES_STATEMENTS
};

typedef struct notes notes;

typedef struct note {
    coordi_record_write write;
    coordi_record_value values[2];
    notes *in;
    int told;  /* how often */
    int order; /* it was the n-th to be told */
    coord_error error;
} note;

/* What was opened, and what was told; touched on its loop alone. */
struct notes {
    coord_loop *loop;
    coordi_records *records;
    int told;
    int failed;
    void (*on_told)(note *which); /* optional */
    void *arg;
};

coordi_records_spec notes_spec(const char *path);
coord_status notes_open(notes *in, coord_loop *loop, const char *path, coord_error *err);
void notes_close(notes *in);

/* Hands it over; the text is the caller's until it is told. */
void notes_put(notes *in, note *which, int64_t id, const char *text);
void notes_write(notes *in, note *which, size_t statement, size_t count);

/* Before the first write: how many there are, -1 after a failure. */
int64_t notes_count(notes *in);

#endif
