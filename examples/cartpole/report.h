#ifndef CARTPOLE_REPORT_H
#define CARTPOLE_REPORT_H

#include "coord.h"

/* Fills in `err` as libcoord does, and returns `status`. */
coord_status report(coord_error *err, coord_status status, const char *format, ...)
    COORD_PRINTF(3, 4);

/* The same with COORD_ERR_IO and what errno says. */
coord_status report_errno(coord_error *err, const char *what, const char *path);

/* "program: text: cause" on stderr. Returns EXIT_FAILURE. */
int complain(const char *program, const coord_error *err);

#endif
