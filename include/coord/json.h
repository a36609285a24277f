/**
 * @file json.h
 * JSON for hosts that use jansson: payloads come as text, this makes trees of them.
 *
 * The only header that needs jansson, so coord.h leaves it out: include it yourself and
 * link with -ljansson.
 */
#ifndef COORD_JSON_H
#define COORD_JSON_H

#include "coord/api.h"
#include "coord/error.h"

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Arrays and objects within each other that coord_json_parse() takes. */
#define COORD_JSON_MAX_DEPTH 2048

/**
 * Makes a tree of what Python's json module writes. Jansson itself refuses much of it;
 * here is what becomes of it:
 *
 * | in the text                            | in the tree                                |
 * |----------------------------------------|--------------------------------------------|
 * | NaN, Infinity, -Infinity               | the string "NaN", "Infinity", "-Infinity"  |
 * | 1e999 and other numbers beyond double  | "Infinity" or "-Infinity"                  |
 * | integer beyond int64                   | a real, rounded                            |
 * | other integer; other number            | an integer; a real                         |
 * | lone surrogate escape                  | U+FFFD                                     |
 * | \u0000, in keys too                    | a NUL byte: see json_string_length(),      |
 * |                                        | json_object_iter_key_len()                 |
 * | duplicate keys                         | the last one                               |
 *
 * Strings, because jansson has no such numbers, and because null would read as 0.
 * coord_json_get_double() turns them back into numbers, and so does Python's float().
 *
 * @param text      Borrowed until the call returns.
 * @param[out] ret  Yours: free with json_decref().
 * @retval COORD_ERR_FORMAT  Not one well-formed value, or deeper than
 *                           COORD_JSON_MAX_DEPTH; the text names the byte.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_json_parse(coord_text text, json_t **ret,
                                                       coord_error *err);

/**
 * Makes a compact text of a tree.
 *
 * @param json      Borrowed.
 * @param[out] ret  Yours: free with coord_free(). Closed by a NUL.
 * @param[out] len  Optional: length without the NUL.
 * @retval COORD_ERR_ARG  There is none: a circle, or a string that is not UTF-8.
 * @thread any, while no other thread changes the tree
 */
COORD_API COORD_MUST_USE coord_status coord_json_text(const json_t *json, char **ret,
                                                      size_t *len, coord_error *err);

/**
 * Finds a value by its path: keys joined by dots, places in arrays in brackets, such as
 * "finish.learner_iters" or "learner[0].address". "" is `json` itself. Keys that hold a
 * dot or a bracket can't be named.
 *
 * @param[out] ret  Borrowed from `json`.
 * @retval COORD_ERR_NOT_FOUND  It is not there.
 * @retval COORD_ERR_FORMAT     Something on the way is neither object nor array:
 *                              `finish: expected an object, got 3`
 * @retval COORD_ERR_ARG        The path makes no sense.
 * @thread any, while no other thread changes the tree; so are those below
 */
COORD_API COORD_MUST_USE coord_status coord_json_get(const json_t *json, const char *path,
                                                     json_t **ret, coord_error *err);

/**
 * The same for an integer.
 *
 * @param[out] ret  Untouched on failure, so that it may hold a default before.
 * @retval COORD_ERR_FORMAT  Another type is there, null too:
 *                           `finish.learner_iters: expected an integer, got "x"`
 */
COORD_API COORD_MUST_USE coord_status coord_json_get_int(const json_t *json,
                                                         const char *path, int64_t *ret,
                                                         coord_error *err);

/** The same for a real, an integer, or the strings "NaN", "Infinity", "-Infinity". */
COORD_API COORD_MUST_USE coord_status coord_json_get_double(const json_t *json,
                                                            const char *path, double *ret,
                                                            coord_error *err);

/** The same for true and false. */
COORD_API COORD_MUST_USE coord_status coord_json_get_bool(const json_t *json,
                                                          const char *path, bool *ret,
                                                          coord_error *err);

/** The same for a string without NUL bytes; borrowed from `json`. */
COORD_API COORD_MUST_USE coord_status coord_json_get_string(const json_t *json,
                                                            const char *path,
                                                            const char **ret,
                                                            coord_error *err);

#ifdef __cplusplus
}
#endif
#endif
