#include "base/buf.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CAP = 128 };

void coordi_buf_done(coordi_buf *buf)
{
    coordi_free(buf->ptr);
    *buf = (coordi_buf){0};
}

bool coordi_buf_reserve(coordi_buf *buf, size_t more)
{
    if (buf->failed || more > SIZE_MAX / 2 - buf->len - 1) {
        buf->failed = true;
        return false;
    }
    size_t need = buf->len + more + 1; /* room for the closing NUL */
    if (need <= buf->cap) {
        return true;
    }
    size_t cap = buf->cap == 0 ? FIRST_CAP : buf->cap;
    while (cap < need) {
        cap *= 2;
    }
    char *grown = coordi_realloc(buf->ptr, cap);
    if (grown == NULL) {
        buf->failed = true;
        return false;
    }
    buf->ptr = grown;
    buf->cap = cap;
    return true;
}

void coordi_buf_add(coordi_buf *buf, const char *bytes, size_t len)
{
    if (len == 0 || !coordi_buf_reserve(buf, len)) {
        return;
    }
    memcpy(buf->ptr + buf->len, bytes, len);
    buf->len += len;
}

void coordi_buf_adds(coordi_buf *buf, const char *string)
{
    coordi_buf_add(buf, string, strlen(string));
}

void coordi_buf_addt(coordi_buf *buf, coord_text text)
{
    coordi_buf_add(buf, text.ptr, text.len);
}

void coordi_buf_addf(coordi_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0) {
        buf->failed = true;
    } else if (coordi_buf_reserve(buf, (size_t)len)) {
        (void)vsnprintf(buf->ptr + buf->len, (size_t)len + 1, format, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

void coordi_buf_add_json(coordi_buf *buf, const char *bytes, size_t len)
{
    static const char HEX[] = "0123456789abcdef";

    coordi_buf_add(buf, "\"", 1);
    size_t from = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c != '"' && c != '\\') {
            continue;
        }
        coordi_buf_add(buf, bytes + from, i - from);
        from = i + 1;
        if (c == '"' || c == '\\') {
            char pair[2] = {'\\', (char)c};
            coordi_buf_add(buf, pair, 2);
        } else {
            char code[6] = {'\\', 'u', '0', '0', HEX[c >> 4], HEX[c & 15]};
            coordi_buf_add(buf, code, 6);
        }
    }
    if (from < len) {
        coordi_buf_add(buf, bytes + from, len - from);
    }
    coordi_buf_add(buf, "\"", 1);
}

char *coordi_buf_take(coordi_buf *buf, size_t *len)
{
    char *taken = NULL;
    if (coordi_buf_reserve(buf, 0)) {
        taken = buf->ptr;
        taken[buf->len] = '\0';
        if (len != NULL) {
            *len = buf->len;
        }
        *buf = (coordi_buf){0};
    } else {
        coordi_buf_done(buf);
    }
    return taken;
}
