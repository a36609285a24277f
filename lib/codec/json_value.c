/* One value at a time: its type, its truth, its number, its text. */
#include "codec/json_scan.h"

#include "base/error.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

coordi_json_type coordi_json_type_of(coord_text value)
{
    value = coordi_scan_trim(value);
    switch (value.len == 0 ? '\0' : value.ptr[0]) {
    case 'n':
        return COORDI_JSON_NULL;
    case 't':
    case 'f':
        return COORDI_JSON_BOOL;
    case '"':
        return COORDI_JSON_STRING;
    case '[':
        return COORDI_JSON_ARRAY;
    case '{':
        return COORDI_JSON_OBJECT;
    case 'N':
    case 'I':
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return COORDI_JSON_NUMBER;
    default:
        return COORDI_JSON_NONE;
    }
}

static bool text_is(coord_text text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

bool coordi_json_truth(coord_text value)
{
    double number;
    value = coordi_scan_trim(value);
    switch (coordi_json_type_of(value)) {
    case COORDI_JSON_BOOL:
        return text_is(value, "true");
    case COORDI_JSON_NUMBER:
        return coordi_json_double(value, &number) && number != 0.0;
    case COORDI_JSON_STRING:
        return value.len > 2;
    case COORDI_JSON_ARRAY:
    case COORDI_JSON_OBJECT: {
        coord_text inside = {value.ptr + 1, value.len - 1};
        inside = coordi_scan_trim(inside);
        return inside.len > 1; /* more than the closing mark */
    }
    default:
        return false;
    }
}

bool coordi_json_bool(coord_text value, bool *ret)
{
    value = coordi_scan_trim(value);
    bool truth = text_is(value, "true");
    if (!truth && !text_is(value, "false")) {
        return false;
    }
    *ret = truth;
    return true;
}

bool coordi_json_int(coord_text value, int64_t *ret)
{
    value = coordi_scan_trim(value);
    if (!coordi_scan_is_number(value)) {
        return false;
    }
    const bool minus = value.ptr[0] == '-';
    const uint64_t limit = minus ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t sum = 0;
    for (size_t i = minus ? 1 : 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9') {
            return false;
        }
        unsigned digit = (unsigned)(value.ptr[i] - '0');
        if (sum > (limit - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    if (minus) {
        *ret = sum == limit ? INT64_MIN : -(int64_t)sum;
    } else {
        *ret = (int64_t)sum;
    }
    return true;
}

/* ---- doubles ---- */

/* More digits than this never decide how a double is rounded; that some follow may. */
enum { DIGITS = 800 };

/* A number as digits and a power of ten: 0.0125 is "125", -4. */
typedef struct decimal {
    char digit[DIGITS + 1]; /* no leading zeros; room for one that stands for the rest */
    size_t count;
    int64_t power;
} decimal;

static int64_t read_exponent(const char *at, const char *end)
{
    const int64_t far = 1000000000000000; /* beyond what any text can balance */
    bool minus = *at == '-';
    int64_t sum = 0;
    for (at += *at == '-' || *at == '+' ? 1 : 0; at < end; at++) {
        sum = sum < far ? sum * 10 + (*at - '0') : sum;
    }
    return minus ? -sum : sum;
}

static void read_decimal(coord_text number, decimal *ret)
{
    const char *end = number.ptr + number.len;
    bool fraction = false;
    bool rest = false;

    ret->count = 0;
    ret->power = 0;
    for (const char *at = number.ptr; at < end; at++) {
        if (*at == '.') {
            fraction = true;
        } else if (*at == 'e' || *at == 'E') {
            ret->power += read_exponent(at + 1, end);
            break;
        } else if (ret->count == 0 && *at == '0') {
            ret->power -= fraction ? 1 : 0;
        } else if (ret->count < DIGITS) {
            ret->digit[ret->count++] = *at;
            ret->power -= fraction ? 1 : 0;
        } else {
            rest = rest || *at != '0';
            ret->power += fraction ? 0 : 1;
        }
    }
    if (rest) {
        ret->digit[ret->count++] = '1';
        ret->power--;
    }
}

/* Up to 15 digits and 22 powers of ten are exact as doubles, so one operation rounds
 * once. */
static bool quick_double(const decimal *d, double *ret)
{
    static const double TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

    if (FLT_EVAL_METHOD != 0 || d->count > 15 || d->power < -22 || d->power > 22) {
        return false;
    }
    int64_t sum = 0;
    for (size_t i = 0; i < d->count; i++) {
        sum = sum * 10 + (d->digit[i] - '0');
    }
    *ret = d->power < 0 ? (double)sum / TEN[-d->power] : (double)sum * TEN[d->power];
    return true;
}

/* strtod rounds correctly but takes the decimal point from the locale: it is given none.
 */
static double slow_double(decimal *d)
{
    char text[DIGITS + 32];
    if (d->count == 0) {
        return 0.0;
    }
    memcpy(text, d->digit, d->count);
    (void)snprintf(text + d->count, sizeof text - d->count, "e%lld", (long long)d->power);
    return strtod(text, NULL);
}

bool coordi_json_double(coord_text value, double *ret)
{
    value = coordi_scan_trim(value);
    if (!coordi_scan_is_number(value)) {
        return false;
    }
    const bool minus = value.ptr[0] == '-';
    if (minus) {
        value.ptr++;
        value.len--;
    }
    double number;
    decimal d;
    if (value.ptr[0] == 'N') {
        number = NAN;
    } else if (value.ptr[0] == 'I') {
        number = INFINITY;
    } else {
        read_decimal(value, &d);
        if (!quick_double(&d, &number)) {
            number = slow_double(&d);
        }
    }
    *ret = minus ? -number : number;
    return true;
}

/* ---- strings ---- */

/* No character: a surrogate without its other half. */
#define LONE UINT32_MAX

static uint32_t read_hex4(const char *at)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        uint32_t digit = (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        sum = sum << 4 | digit;
    }
    return sum;
}

/* At a backslash in a string that was checked: the character, and *at moved past it. */
static uint32_t read_escape(const char **at, const char *end)
{
    const char *p = *at + 1;
    const char c = *p++;
    *at = p;
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'u':
        break;
    default:
        return (unsigned char)c;
    }
    uint32_t unit = read_hex4(p);
    *at = p += 4;
    if (unit < 0xd800 || unit > 0xdfff) {
        return unit;
    }
    if (unit > 0xdbff || end - p < 6 || p[0] != '\\' || p[1] != 'u') {
        return LONE;
    }
    uint32_t low = read_hex4(p + 2);
    if (low < 0xdc00 || low > 0xdfff) {
        return LONE; /* what follows is a character of its own */
    }
    *at = p + 6;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

static size_t put_utf8(char out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* What is inside the quotes of a string that was checked. */
static coord_text inside(coord_text raw)
{
    return (coord_text){raw.ptr + 1, raw.len - 2};
}

/* Writes the text of a checked string. `any`: NUL and lone surrogates are let through. */
static coord_status decode(coord_text raw, bool any, char *out, size_t cap, size_t *len)
{
    const coord_text in = inside(raw);
    const char *at = in.ptr;
    const char *end = at + in.len;

    *len = 0;
    while (at < end) {
        const char *slash = memchr(at, '\\', (size_t)(end - at));
        size_t run = (size_t)((slash == NULL ? end : slash) - at);
        if (run > cap - *len) {
            return COORD_ERR_TOO_BIG;
        }
        memcpy(out + *len, at, run);
        *len += run;
        at += run;
        if (at == end) {
            break;
        }
        uint32_t c = read_escape(&at, end);
        if (!any && (c == 0 || c == LONE)) {
            return COORD_ERR_FORMAT;
        }
        char utf8[4];
        size_t size = put_utf8(utf8, c == LONE ? 0xfffd : c);
        if (size > cap - *len) {
            return COORD_ERR_TOO_BIG;
        }
        memcpy(out + *len, utf8, size);
        *len += size;
    }
    return COORD_OK;
}

coord_status coordi_json_string(coord_text value, char *out, size_t cap)
{
    size_t len = 0;
    if (cap == 0) {
        return COORD_ERR_TOO_BIG;
    }
    out[0] = '\0';
    value = coordi_scan_trim(value);
    if (!coordi_scan_is_string(value)) {
        return COORD_ERR_FORMAT;
    }
    coord_status rc = decode(value, false, out, cap - 1, &len);
    out[rc == COORD_OK ? len : 0] = '\0';
    return rc;
}

static coord_status string_add(coord_text value, bool any, coordi_buf *buf)
{
    size_t len = 0;
    value = coordi_scan_trim(value);
    if (!coordi_scan_is_string(value)) {
        return COORD_ERR_FORMAT;
    }
    const bool failed = buf->failed;
    /* Undoing escapes never makes a text longer. */
    if (!coordi_buf_reserve(buf, value.len)) {
        buf->failed = failed;
        return COORD_ERR_NOMEM;
    }
    coord_status rc = decode(value, any, buf->ptr + buf->len, value.len, &len);
    if (rc == COORD_OK) {
        buf->len += len;
    }
    return rc;
}

coord_status coordi_json_string_add(coord_text value, coordi_buf *buf)
{
    return string_add(value, false, buf);
}

coord_status coordi_json_string_add_any(coord_text value, coordi_buf *buf)
{
    return string_add(value, true, buf);
}

bool coordi_scan_key_is(coord_text raw, const char *text, size_t len)
{
    const coord_text in = inside(raw);
    const char *at = in.ptr;
    const char *end = at + in.len;

    if (memchr(at, '\\', in.len) == NULL) {
        return in.len == len && memcmp(at, text, len) == 0;
    }
    while (at < end) {
        char utf8[4] = {*at};
        size_t size = 1;
        if (*at == '\\') {
            uint32_t c = read_escape(&at, end);
            if (c == LONE) {
                return false;
            }
            size = put_utf8(utf8, c);
        } else {
            at++;
        }
        if (size > len || memcmp(utf8, text, size) != 0) {
            return false;
        }
        text += size;
        len -= size;
    }
    return len == 0;
}

bool coordi_json_string_is(coord_text raw, const char *text)
{
    raw = coordi_scan_trim(raw);
    return coordi_scan_is_string(raw) && coordi_scan_key_is(raw, text, strlen(text));
}
