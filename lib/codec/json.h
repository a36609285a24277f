/* JSON as raw slices: finds, checks and copies values without ever building a tree.
 *
 * Reads what Python's json module reads: NaN, Infinity, -Infinity, integers of any size,
 * 1e999, lone surrogate escapes, \u0000, duplicate keys (the last one wins), any value at
 * the top, blanks around it. Strict otherwise: no trailing commas, no control characters
 * in strings, well-formed UTF-8, no byte order mark.
 *
 * Nothing here recurses or allocates, except where a coordi_buf is given. */
#ifndef COORDI_CODEC_JSON_H
#define COORDI_CODEC_JSON_H

#include "base/buf.h"
#include "coord/error.h"

/* Arrays and objects within each other; one more is COORD_ERR_FORMAT. Python itself gives
 * up near 1000. */
enum { COORDI_JSON_MAX_DEPTH = 4096 };

typedef enum coordi_json_type {
    COORDI_JSON_NONE, /* no text, or nothing that begins a value */
    COORDI_JSON_NULL,
    COORDI_JSON_BOOL,
    COORDI_JSON_NUMBER, /* NaN and the infinities too */
    COORDI_JSON_STRING,
    COORDI_JSON_ARRAY,
    COORDI_JSON_OBJECT
} coordi_json_type;

/* One member of an object: asked for, or to be spliced in. */
typedef struct coordi_json_member {
    const char *key;  /* as the program writes it: not escaped, no quotes */
    coord_text value; /* raw; no blanks around; a string keeps its quotes */
    bool present;     /* false: `value` is no text */
} coordi_json_member;

/* ---- whole texts: these read every byte and tell what is wrong ---- */

/* Is it one well-formed value? COORD_ERR_FORMAT names the byte and what was expected. */
coord_status coordi_json_check(coord_text text, coord_error *err);

/* Fetches several members of an object in one pass, which also checks the whole text.
 * Fills in `value` and `present` of each; the slices borrow from `object`. An absent one
 * is not an error. COORD_ERR_FORMAT: malformed. COORD_ERR_ARG: well-formed, but not an
 * object. On failure none is present. */
coord_status coordi_json_get_many(coord_text object, coordi_json_member *members,
                                  size_t count, coord_error *err);

/* The same for one member. Absent is COORD_ERR_NOT_FOUND. */
coord_status coordi_json_get(coord_text object, const char *key, coord_text *ret,
                             coord_error *err);

/* Adds `object` to `buf` byte for byte, but with these members: old ones of the same name
 * are dropped wherever they stand, and those that are `present` are added last, in the
 * order given. (One that isn't present is only dropped.) The new values must be
 * well-formed; they are copied as they are. Fails like coordi_json_get_many, or with
 * COORD_ERR_NOMEM; then `buf` holds what it held before. */
coord_status coordi_json_splice(coordi_buf *buf, coord_text object,
                                const coordi_json_member *members, size_t count,
                                coord_error *err);

/* Best effort on a text of which only the first part is there: finds a value by the keys
 * on the way to it ("task.id"; keys that hold a dot can't be asked for). Here the first
 * of duplicate keys wins. False when the value isn't there, or not to its last byte. */
bool coordi_json_prefix_get(coord_text prefix, const char *path, coord_text *ret);

/* ---- slices: for text that is known to be well-formed ----
 * On anything else they are harmless: they answer false or stop. Blanks around are fine.
 */

coordi_json_type coordi_json_type_of(coord_text value);

/* Truth as Python sees it: null, false, 0, -0.0, 1e-999, "", [] and {} are false, and so
 * is no text; NaN is true. */
bool coordi_json_truth(coord_text value);

/* true and false only. */
bool coordi_json_bool(coord_text value, bool *ret);

/* Spelled as an integer (no point, no exponent) and within int64. */
bool coordi_json_int(coord_text value, int64_t *ret);

/* Any number, correctly rounded whatever the locale. Too large is infinite, as in Python.
 */
bool coordi_json_double(coord_text value, double *ret);

/* The text of a string as UTF-8, closed by a NUL. COORD_ERR_FORMAT: not a string, or it
 * holds \u0000 or a lone surrogate, so that C can't hold it. COORD_ERR_TOO_BIG: needs
 * more than `cap` bytes. On failure `out` is "". */
coord_status coordi_json_string(coord_text value, char *out, size_t cap);

/* The same, added to `buf` (which gets no NUL); COORD_ERR_NOMEM when it can't grow. On
 * failure `buf` holds what it held before. */
coord_status coordi_json_string_add(coord_text value, coordi_buf *buf);

/* The same for any string: NUL stays a NUL, a lone surrogate becomes U+FFFD. */
coord_status coordi_json_string_add_any(coord_text value, coordi_buf *buf);

/* Is `raw`, a string with its quotes, this text? Escapes are undone while comparing. */
bool coordi_json_string_is(coord_text raw, const char *text);

/* Walks an array: start with *at = 0; false at the end, at once when it is no array. */
bool coordi_json_each(coord_text array, size_t *at, coord_text *item);

/* Walks an object in the same way; duplicates are all seen. `key` is raw, with its
 * quotes. */
bool coordi_json_each_member(coord_text object, size_t *at, coord_text *key,
                             coord_text *value);

/* Fails with "<what>: expected <expected>, got <value>", the value cut short. */
coord_status coordi_json_fail(coord_error *err, coord_status status, const char *what,
                              const char *expected, coord_text got);

#endif
