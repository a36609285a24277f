#include "base/error.h"

#include "base/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *coord_status_str(coord_status status)
{
    static const char *const NAME[] = {
        [COORD_OK] = "ok",
        [COORD_AGAIN] = "not yet",
        [COORD_ERR_ARG] = "wrong argument",
        [COORD_ERR_STATE] = "not possible now",
        [COORD_ERR_NOMEM] = "out of memory",
        [COORD_ERR_ABI] = "other library version",
        [COORD_ERR_TIMEOUT] = "timed out",
        [COORD_ERR_LOST] = "peer lost",
        [COORD_ERR_REFUSED] = "refused",
        [COORD_ERR_BUSY] = "busy",
        [COORD_ERR_EXISTS] = "exists already",
        [COORD_ERR_NOT_FOUND] = "not found",
        [COORD_ERR_TOO_BIG] = "too big",
        [COORD_ERR_UNSUPPORTED] = "not supported",
        [COORD_ERR_CONFIG] = "wrong configuration",
        [COORD_ERR_NETWORK] = "network failure",
        [COORD_ERR_PROTOCOL] = "protocol violated",
        [COORD_ERR_TASK] = "task failed",
        [COORD_ERR_CANCELED] = "canceled",
        [COORD_ERR_CLOSED] = "closed",
        [COORD_ERR_FORKED] = "used after fork",
        [COORD_ERR_IO] = "system call failed",
        [COORD_ERR_FORMAT] = "malformed data",
        [COORD_ERR_CALLBACK] = "callback failed",
    };
    size_t at = (size_t)status;
    return at < sizeof NAME / sizeof NAME[0] && NAME[at] != NULL ? NAME[at]
                                                                 : "unknown status";
}

static void print_text(char *out, size_t size, const char *format, va_list args)
    COORD_PRINTF(3, 0);

static void print_text(char *out, size_t size, const char *format, va_list args)
{
    int len = vsnprintf(out, size, format, args);
    if (len < 0) {
        out[0] = '\0';
    } else if ((size_t)len >= size) {
        memcpy(out + size - 4, "...", 4);
    }
    coordi_line_clean(out);
}

coord_status coordi_fail(coord_error *err, coord_status status, const char *format, ...)
{
    if (err != NULL) {
        memset(err, 0, sizeof *err);
        err->status = status;
        va_list args;
        va_start(args, format);
        print_text(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return status;
}

coord_status coordi_fail_errno(coord_error *err, int os_errno, const char *format, ...)
{
    if (err != NULL) {
        memset(err, 0, sizeof *err);
        err->status = COORD_ERR_IO;
        err->os_errno = os_errno;
        va_list args;
        va_start(args, format);
        print_text(err->text, sizeof err->text, format, args);
        va_end(args);
        char words[128] = "";
        const char *said = strerror_r(os_errno, words, sizeof words);
        (void)snprintf(err->cause, sizeof err->cause, "%s", said);
    }
    return COORD_ERR_IO;
}

coord_status coordi_fail_because(coord_error *err, coord_status status,
                                 const coord_error *cause, const char *format, ...)
{
    if (err != NULL) {
        coord_error old = {0};
        if (cause != NULL) {
            old = *cause; /* a copy: cause may be err itself */
        }
        memset(err, 0, sizeof *err);
        err->status = status;
        err->os_errno = old.os_errno;
        err->http_status = old.http_status;
        err->peer_code = old.peer_code;
        err->reason = old.reason;
        va_list args;
        va_start(args, format);
        print_text(err->text, sizeof err->text, format, args);
        va_end(args);
        int len =
            snprintf(err->cause, sizeof err->cause, "%s%s%s", old.text,
                     old.text[0] != '\0' && old.cause[0] != '\0' ? ": " : "", old.cause);
        if (len >= (int)sizeof err->cause) {
            memcpy(err->cause + sizeof err->cause - 4, "...", 4);
            coordi_line_clean(err->cause);
        }
    }
    return status;
}

coord_status coordi_fail_nomem(coord_error *err, const char *what)
{
    return coordi_fail(err, COORD_ERR_NOMEM, "%s: out of memory", what);
}

coord_status coordi_fail_copy(coord_error *err, const coord_error *from)
{
    if (err != NULL) {
        *err = *from;
    }
    return from->status;
}
