#ifndef PIPELINE_RAW_H
#define PIPELINE_RAW_H

#include "coord.h"

/* Cuts values out of JSON text, byte for byte. coord/json.h makes trees of numbers and
 * strings, and a tree can't tell what is to be handed on unchanged: Infinity from
 * "Infinity", 1.0 from 1.00, a lone surrogate from U+FFFD, 40 digits from their double.
 *
 * All text must be well-formed: coord_json_parse() has read it, or libcoord has. */

/* Walks an object, or an array with `key` NULL: start with *at = 0; false at the end, at
 * once when it is the other. A key keeps its quotes. */
bool raw_next(coord_text text, size_t *at, coord_text *key, coord_text *value);

/* The member of that name, the last if there are several; false when there is none. */
bool raw_member(coord_text object, const char *name, coord_text *ret);

/* Is this key, with its quotes, that name? */
bool raw_is_name(coord_text key, const char *name);

/* Is the member of that name `true`? */
bool raw_is_true(coord_text object, const char *name);

#endif
