#include "base/line.h"

#include <stddef.h>

/* Bytes of the character that begins here; 0 when it is none. The closing NUL ends a
 * character that was cut. */
static size_t char_len(const unsigned char *at)
{
    const unsigned char lead = at[0];
    if (lead < 0x80) {
        return 1;
    }
    size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (lead < 0xc2 || lead > 0xf4 || at[1] < low || at[1] > high) {
        return 0;
    }
    for (size_t i = 2; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return more + 1;
}

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

bool coordi_line_is_utf8(const char *text)
{
    size_t len = 1;
    for (const char *at = text; *at != '\0' && len > 0; at += len) {
        len = char_len((const unsigned char *)at);
    }
    return len > 0;
}

void coordi_line_clean(char *text)
{
    for (char *at = text; *at != '\0';) {
        size_t len = char_len((const unsigned char *)at);
        if (len == 0 || is_control(*at)) {
            *at = '?';
            len = 1;
        }
        at += len;
    }
}
