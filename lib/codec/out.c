#include "codec/out.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/json.h"

#include <stdarg.h>
#include <stdio.h>

void coordi_out_done(coord_out *out)
{
    coordi_buf_done(&out->json);
    out->set = false;
}

coord_text coordi_out_text(const coord_out *out)
{
    return out->set ? (coord_text){out->json.ptr, out->json.len} : (coord_text){NULL, 0};
}

char *coordi_out_take(coord_out *out, size_t *len)
{
    if (!out->set) {
        return NULL;
    }
    out->set = false;
    return coordi_buf_take(&out->json, len);
}

/* Takes over `text`, which replaces what was there, or is freed. */
static coord_status put(coord_out *out, coordi_buf *text, coord_error *err)
{
    coord_status rc = COORD_OK;
    if (text->failed) {
        rc = coordi_fail_nomem(err, "answer of a callback");
    } else if (!out->lines) {
        rc = coordi_json_check((coord_text){text->ptr, text->len}, err);
    }
    if (rc != COORD_OK) {
        coordi_buf_done(text);
        return rc;
    }
    coordi_out_done(out);
    out->json = *text;
    out->set = true;
    return COORD_OK;
}

coord_status coord_out_json(coord_out *out, coord_text json, coord_error *err)
{
    if (out == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "out is required");
    }
    if (out->lines) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "this callback answers with lines of text, not JSON");
    }
    coordi_buf text = {0};
    coordi_buf_addt(&text, json);
    return put(out, &text, err);
}

/* Appends what printf makes. */
static coord_status print(coordi_buf *text, coord_error *err, const char *format,
                          va_list args) COORD_PRINTF(3, 0);

static coord_status print(coordi_buf *text, coord_error *err, const char *format,
                          va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len >= 0 && coordi_buf_reserve(text, (size_t)len)) {
        (void)vsnprintf(text->ptr + text->len, (size_t)len + 1, format, again);
        text->len += (size_t)len;
    }
    va_end(again);
    return len >= 0 ? COORD_OK
                    : coordi_fail(err, COORD_ERR_ARG, "format \"%s\" can't be printed",
                                  format);
}

coord_status coord_out_printf(coord_out *out, coord_error *err, const char *format, ...)
{
    if (out == NULL || format == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "out and format are required");
    }
    va_list args;
    va_start(args, format);
    coordi_buf text = {0};
    coord_status rc = print(&text, err, format, args);
    va_end(args);
    return rc == COORD_OK ? put(out, &text, err) : rc;
}

coord_status coord_out_line(coord_out *out, coord_error *err, const char *format, ...)
{
    if (out == NULL || format == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "out and format are required");
    }
    if (!out->lines) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "this callback answers with JSON, not with lines of text");
    }
    va_list args;
    va_start(args, format);
    coordi_buf *text = &out->json;
    size_t before = text->len;
    coord_status rc = print(text, err, format, args);
    va_end(args);
    coordi_buf_adds(text, "\n");
    if (rc == COORD_OK && text->failed) {
        rc = coordi_fail_nomem(err, "answer of a callback");
    }
    if (rc != COORD_OK) {
        text->failed = false;
        text->len = before;
        return rc;
    }
    out->set = true;
    return COORD_OK;
}
