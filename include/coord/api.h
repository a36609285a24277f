/**
 * @file api.h
 * What every other header of libcoord stands on: export marks, the version, and
 * text that crosses the API.
 *
 * NULL for an object is never a crash: calls with a status answer COORD_ERR_ARG, those
 * that give an object back do nothing, those that ask it something answer 0, false, NULL
 * or no text.
 */
#ifndef COORD_API_H
#define COORD_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define COORD_API __attribute__((visibility("default")))
#define COORD_MUST_USE __attribute__((warn_unused_result))
#define COORD_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define COORD_API
#define COORD_MUST_USE
#define COORD_PRINTF(at, first)
#endif

/** Release of these headers; coord_version() tells the release of the library. */
#define COORD_VERSION "0.1.0"

/** Bytes for any id that the library hands out, the closing NUL included. */
#define COORD_ID_SIZE 256

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A stretch of text, mostly JSON. Not closed by a NUL unless a function says so, and
 * may hold any byte. `ptr` may be NULL when `len` is 0: no text.
 */
typedef struct coord_text {
    const char *ptr; /**< borrowed; the function that hands it out says until when */
    size_t len;      /**< in bytes */
} coord_text;

/** A coord_text over a C string, which it borrows; NULL gives the empty text. */
static inline coord_text coord_text_of(const char *string)
{
    coord_text text;
    text.ptr = string;
    text.len = string == NULL ? 0 : strlen(string);
    return text;
}

/** Release of the library that is linked, such as "0.1.0". @thread any */
COORD_API const char *coord_version(void);

/** Frees what a function of libcoord documents as yours; NULL is fine. @thread any */
COORD_API void coord_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif
