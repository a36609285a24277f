#ifndef CARTPOLE_SCREEN_H
#define CARTPOLE_SCREEN_H

#include <stdint.h>

/* What the user sees: a line of progress, redrawn in place where that is possible, and
 * notes in between. Any thread. */

/* How often screen_progress() wants to be called. */
int64_t screen_interval_ms(void);

void screen_progress(const char *line);

/* A line on stderr. */
void screen_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The last progress stays; what comes next begins on a line of its own. */
void screen_end(void);

#endif
