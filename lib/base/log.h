/* Log lines: the level is tested before anything is formatted. */
#ifndef COORDI_BASE_LOG_H
#define COORDI_BASE_LOG_H

#include "coord/log.h"

typedef struct coordi_log {
    coord_log_fn *sink; /* NULL: silent */
    void *user;
    coord_log_level level;
    const char *who; /* "master", "slave", ...: opens every line */
} coordi_log;

#define COORDI_LOG(log, lvl, ...)                                                        \
    do {                                                                                 \
        if ((log)->sink != NULL && (log)->level >= (lvl)) {                              \
            coordi_log_line((log), (lvl), __VA_ARGS__);                                  \
        }                                                                                \
    } while (0)

/* The line is cut at 1023 bytes and cleaned, so that a peer can't forge lines. */
void coordi_log_line(const coordi_log *log, coord_log_level level, const char *format,
                     ...) COORD_PRINTF(3, 4);

#endif
