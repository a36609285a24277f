/**
 * @file log.h
 * Log lines go to a sink that the host gives to each object; without one, nowhere.
 */
#ifndef COORD_LOG_H
#define COORD_LOG_H

#include "coord/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum coord_log_level {
    COORD_LOG_OFF = 0,
    COORD_LOG_ERROR = 1, /**< something was given up */
    COORD_LOG_WARN = 2,  /**< something failed and goes on */
    COORD_LOG_INFO = 3,  /**< workers come and go, tasks begin and end */
    COORD_LOG_DEBUG = 4  /**< every request */
} coord_log_level;

/**
 * A sink. `line` is "<object>: <event> key=value ...", without a newline, borrowed until
 * the sink returns.
 *
 * @thread any, several at once. It must not block and must not call libcoord.
 */
typedef void coord_log_fn(coord_log_level level, const char *line, void *user);

#ifdef __cplusplus
}
#endif
#endif
