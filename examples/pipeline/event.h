#ifndef PIPELINE_EVENT_H
#define PIPELINE_EVENT_H

#include "coord.h"

#include <stdio.h>

/* A line of JSON on stdout: begin, add members, end. Lines of several threads come out
 * whole, one after the other. */
typedef struct event {
    FILE *line; /* NULL: no memory */
    char *text;
    size_t len;
} event;

/* `task_id` NULL: it is about no task. */
void event_begin(event *e, const char *name, const char *task_id);

/* NULL is printed as null. */
void event_add_string(event *e, const char *key, const char *value);

void event_add_int(event *e, const char *key, int64_t value);

void event_add_bool(event *e, const char *key, bool value);

/* Well-formed JSON, as it is; no text is null. */
void event_add_json(event *e, const char *key, coord_text json);

void event_end(event *e);

/* False once a line could not be printed. */
bool event_all_printed(void);

#endif
