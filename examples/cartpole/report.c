#include "report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

coord_status report(coord_error *err, coord_status status, const char *format, ...)
{
    va_list args;
    *err = (coord_error){.status = status};
    va_start(args, format);
    (void)vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return status;
}

coord_status report_errno(coord_error *err, const char *what, const char *path)
{
    const int os_errno = errno;
    (void)report(err, COORD_ERR_IO, "%s '%.180s'", what, path);
    err->os_errno = os_errno;
    (void)snprintf(err->cause, sizeof err->cause, "%s", strerror(os_errno));
    return COORD_ERR_IO;
}

int complain(const char *program, const coord_error *err)
{
    (void)fprintf(stderr, "%s: %s%s%s\n", program,
                  err->text[0] != '\0' ? err->text : coord_status_str(err->status),
                  err->cause[0] != '\0' ? ": " : "", err->cause);
    return EXIT_FAILURE;
}
