#include "base/uuid.h"

#include <string.h>

static const char HEX[] = "0123456789abcdef";

void coordi_uuid_print(const unsigned char bytes[16], char out[COORDI_UUID_SIZE])
{
    size_t at = 0;
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            out[at++] = '-';
        }
        out[at++] = HEX[bytes[i] >> 4];
        out[at++] = HEX[bytes[i] & 15];
    }
    out[at] = '\0';
}

void coordi_uuid_mark_v4(unsigned char bytes[16])
{
    bytes[6] = (unsigned char)((bytes[6] & 0x0f) | 0x40);
    bytes[8] = (unsigned char)((bytes[8] & 0x3f) | 0x80);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Python removes "urn:" and then "uuid:" wherever they stand, then strips braces from
 * both ends, then removes hyphens. `text` is what is left of one such removal. */
static size_t without(char *text, size_t len, const char *word)
{
    size_t word_len = strlen(word);
    size_t kept = 0;
    for (size_t i = 0; i < len;) {
        if (len - i >= word_len && memcmp(text + i, word, word_len) == 0) {
            i += word_len;
        } else {
            text[kept++] = text[i++];
        }
    }
    return kept;
}

static bool is_canonical(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
        const char c = text[i];
        if (hyphen ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return len == COORDI_UUID_SIZE - 1;
}

bool coordi_uuid_read(const char *text, size_t len, char out[COORDI_UUID_SIZE])
{
    char work[128];                /* longer than any sane spelling of 32 digits */
    if (is_canonical(text, len)) { /* as nearly all are */
        memcpy(out, text, len);
        out[len] = '\0';
        return true;
    }
    if (len > sizeof work) {
        return false;
    }
    memcpy(work, text, len);
    len = without(work, len, "urn:");
    len = without(work, len, "uuid:");
    size_t from = 0;
    while (from < len && (work[from] == '{' || work[from] == '}')) {
        from++;
    }
    while (len > from && (work[len - 1] == '{' || work[len - 1] == '}')) {
        len--;
    }
    memmove(work, work + from, len - from);
    len = without(work, len - from, "-");
    if (len != 32) {
        return false;
    }
    unsigned char bytes[16];
    for (size_t i = 0; i < 16; i++) {
        int high = hex_digit(work[2 * i]);
        int low = hex_digit(work[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    coordi_uuid_print(bytes, out);
    return true;
}
