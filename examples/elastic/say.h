#ifndef ELASTIC_SAY_H
#define ELASTIC_SAY_H

#include "coord.h"

#include <stdbool.h>

/* With `verbose`, tell() is heard, and lines have the seconds since this call in front.
 */
void say_begin(bool verbose);

/* A line of the story: the same text in every run. Any thread may speak. */
void say(const char *text);

/* A detail, which may be another each time. */
void tell(const char *format, ...) COORD_PRINTF(1, 2);

/* To stderr: what went wrong. `err` may be NULL. */
void complain(const char *what, const coord_error *err);

#endif
