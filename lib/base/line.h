/* Text of unknown origin, made fit for one line of an error or a log. */
#ifndef COORDI_BASE_LINE_H
#define COORDI_BASE_LINE_H

#include <stdbool.h>

/* Control characters, and bytes that are not UTF-8, become '?': a peer can't forge lines,
 * and what was cut in the middle of a character can still be put into JSON. */
void coordi_line_clean(char *text);

/* Control characters are allowed, for JSON has a way to write them. */
bool coordi_line_is_utf8(const char *text);

#endif
