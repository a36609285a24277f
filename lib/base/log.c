#include "base/log.h"

#include "base/line.h"

#include <stdarg.h>
#include <stdio.h>

void coordi_log_line(const coordi_log *log, coord_log_level level, const char *format,
                     ...)
{
    char line[1024];
    int at = snprintf(line, sizeof line, "%s: ", log->who);
    if (at < 0 || (size_t)at >= sizeof line) {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line + at, sizeof line - (size_t)at, format, args);
    va_end(args);
    coordi_line_clean(line);
    log->sink(level, line, log->user);
}
