/**
 * @file out.h
 * How a callback hands JSON, or lines of text, to the library: it is given a coord_out
 * and puts its answer in.
 */
#ifndef COORD_OUT_H
#define COORD_OUT_H

#include "coord/api.h"
#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where a callback puts its answer. Borrowed: gone when the callback returns. */
typedef struct coord_out coord_out;

/**
 * Answers with a JSON text. It is copied, and replaces what was put in before.
 *
 * Read as Python's json module reads it: NaN, Infinity, integers of any size and any
 * value at the top are fine. It is passed on byte for byte.
 *
 * @param json  Borrowed until the call returns.
 * @retval COORD_ERR_FORMAT  Not one well-formed value; the text names the byte. What was
 *                           put in before is still there.
 * @retval COORD_ERR_NOMEM   Out of memory; what was put in before is still there.
 * @retval COORD_ERR_ARG     This callback answers with lines of text.
 * @thread one, the one that runs the callback
 */
COORD_API COORD_MUST_USE coord_status coord_out_json(coord_out *out, coord_text json,
                                                     coord_error *err);

/**
 * The same with a text that printf makes, for small answers:
 *
 *     return coord_out_printf(out, err, "{\"step\": %d}", step);
 *
 * %s copies bytes and escapes nothing; %f and %g print the decimal point of the locale.
 * Where lines of text are answered with, the text is taken as it is.
 *
 * @retval COORD_ERR_ARG  The format can't be printed.
 * @thread one, the one that runs the callback
 */
COORD_API COORD_MUST_USE coord_status coord_out_printf(coord_out *out, coord_error *err,
                                                       const char *format, ...)
    COORD_PRINTF(3, 4);

/**
 * Adds a line to those that are there already, where lines of text are answered with:
 * deal_with_discovery.
 *
 *     return coord_out_line(out, err, "collector %s:%u", host, port);
 *
 * @retval COORD_ERR_NOMEM  Out of memory; the lines before are still there.
 * @retval COORD_ERR_ARG    This callback answers with JSON, or the format can't be
 *                          printed.
 * @thread one, the one that runs the callback
 */
COORD_API COORD_MUST_USE coord_status coord_out_line(coord_out *out, coord_error *err,
                                                     const char *format, ...)
    COORD_PRINTF(3, 4);

#ifdef __cplusplus
}
#endif
#endif
