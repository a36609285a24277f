/* The scanner is the hot path of every request: one pass, one table, no memory of its
 * own. Long runs inside strings (weights in base64, mostly) are passed eight bytes at a
 * time. */
#include "codec/json_scan.h"

#include "base/error.h"

#include <string.h>

/* What a byte can be. Those from B on begin a value. */
enum { X = 0, S, B, Q, N, W };

/* X: nothing, S: blank, B: opens a bracket, Q: opens a string, N: number, W: word */
static const unsigned char KIND[256] = {
    X, X, X, X, X, X, X, X, X, S, S, X, X, S, X, X, /* \t \n \r */
    X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, /**/
    S, X, Q, X, X, X, X, X, X, X, X, X, X, N, X, X, /* blank " - */
    N, N, N, N, N, N, N, N, N, N, X, X, X, X, X, X, /* 0-9 */
    X, X, X, X, X, X, X, X, X, W, X, X, X, X, W, X, /* I N */
    X, X, X, X, X, X, X, X, X, X, X, B, X, X, X, X, /* [ */
    X, X, X, X, X, X, W, X, X, X, X, X, X, X, W, X, /* f n */
    X, X, X, X, W, X, X, X, X, X, X, B, X, X, X, X, /* t { */
};

void coordi_scan_begin(coordi_scan *s, coord_text text)
{
    s->begin = text.ptr == NULL ? "" : text.ptr;
    s->at = s->begin;
    s->end = s->begin + text.len;
    s->expected = NULL;
    s->depth = 0;
    s->between = false;
}

static bool missed(coordi_scan *s, const char *expected)
{
    s->expected = expected;
    return false;
}

static inline void skip_blanks(coordi_scan *s)
{
    const char *at = s->at;
    while (at < s->end && KIND[(unsigned char)*at] == S) {
        at++;
    }
    s->at = at;
}

/* The next byte; NUL, which is never right, at the end. */
static inline char peek(const coordi_scan *s)
{
    if (s->at == s->end) {
        return '\0';
    }
    return *s->at;
}

/* Marks those of eight bytes that are a quote, a backslash, a control or beyond ASCII, by
 * their top bits; what follows the first mark (in the order of significance) may be
 * wrong. */
static inline uint64_t odd_bytes(const char *at)
{
    const uint64_t ones = 0x0101010101010101U;
    uint64_t w;
    memcpy(&w, at, sizeof w);
    uint64_t quote = w ^ (ones * '"');
    uint64_t slash = w ^ (ones * '\\');
    /* A byte below what is taken away borrows, which sets its top bit. */
    uint64_t odd = w | (w - ones * 0x20) | (quote - ones) | (slash - ones);
    return odd & (ones * 0x80);
}

static inline bool plain(unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && c < 0x80;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* At a backslash. */
static bool skip_escape(coordi_scan *s)
{
    const char *at = s->at + 1;
    if (at == s->end || *at == '\0' || strchr("\"\\/bfnrtu", *at) == NULL) {
        s->at = at;
        return missed(s, "one of \"\\/bfnrtu after a backslash");
    }
    if (*at++ != 'u') {
        s->at = at;
        return true;
    }
    for (int i = 0; i < 4; i++, at++) {
        if (at == s->end || !is_hex(*at)) {
            s->at = at;
            return missed(s, "four hex digits after \\u");
        }
    }
    s->at = at;
    return true;
}

/* At a byte beyond ASCII: passes one character of UTF-8. Overlong forms, surrogates and
 * what lies beyond U+10FFFF are not UTF-8; the second byte tells. */
static bool skip_utf8(coordi_scan *s)
{
    const unsigned char *at = (const unsigned char *)s->at;
    const unsigned char lead = at[0];
    size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;

    if (lead < 0xc2 || lead > 0xf4 || (size_t)(s->end - s->at) <= more || at[1] < low ||
        at[1] > high) {
        return missed(s, "well-formed UTF-8");
    }
    for (size_t i = 2; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return missed(s, "well-formed UTF-8");
        }
    }
    s->at += more + 1;
    return true;
}

/* Passes the bytes of a string that need no look. */
static inline const char *skip_plain(const char *at, const char *end)
{
    while (end - at >= 8) {
        uint64_t odd = odd_bytes(at);
        if (odd != 0) {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            return at + __builtin_ctzll(odd) / 8;
#else
            break;
#endif
        }
        at += 8;
    }
    while (at < end && plain((unsigned char)*at)) {
        at++;
    }
    return at;
}

/* At the opening quote. */
static bool skip_string(coordi_scan *s)
{
    s->at++;
    for (;;) {
        s->at = skip_plain(s->at, s->end);
        if (s->at == s->end) {
            return missed(s, "the closing quote of a string");
        }
        unsigned char c = (unsigned char)*s->at;
        if (c == '"') {
            s->at++;
            return true;
        }
        if (c < 0x20) {
            return missed(s, "an escape instead of a control character");
        }
        if (!(c == '\\' ? skip_escape(s) : skip_utf8(s))) {
            return false;
        }
    }
}

static bool skip_digits(coordi_scan *s)
{
    const char *at = s->at;
    while (at < s->end && *at >= '0' && *at <= '9') {
        at++;
    }
    if (at == s->at) {
        return missed(s, "a digit");
    }
    s->at = at;
    return true;
}

static bool skip_word(coordi_scan *s, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0) {
        return missed(s, "a value");
    }
    s->at += len;
    return true;
}

/* At a minus or a digit. */
static bool skip_number(coordi_scan *s)
{
    if (*s->at == '-') {
        s->at++;
        if (peek(s) == 'I') {
            return skip_word(s, "Infinity");
        }
    }
    if (peek(s) == '0') {
        s->at++; /* a digit after it is where the next mark should be */
    } else if (!skip_digits(s)) {
        return false;
    }
    if (peek(s) == '.') {
        s->at++;
        if (!skip_digits(s)) {
            return false;
        }
    }
    if (peek(s) == 'e' || peek(s) == 'E') {
        s->at++;
        if (peek(s) == '+' || peek(s) == '-') {
            s->at++;
        }
        return skip_digits(s);
    }
    return true;
}

static bool skip_literal(coordi_scan *s)
{
    switch (*s->at) {
    case 't':
        return skip_word(s, "true");
    case 'f':
        return skip_word(s, "false");
    case 'n':
        return skip_word(s, "null");
    case 'N':
        return skip_word(s, "NaN");
    default:
        return skip_word(s, "Infinity");
    }
}

static bool in_object(const coordi_scan *s)
{
    unsigned top = s->depth - 1;
    return (s->nest[top / 64] >> (top % 64) & 1) != 0;
}

/* At an opening mark. */
static bool open_level(coordi_scan *s)
{
    if (s->depth == COORDI_JSON_MAX_DEPTH) {
        return missed(s, "at most 4096 levels of arrays and objects");
    }
    uint64_t bit = (uint64_t)1 << (s->depth % 64);
    uint64_t *word = &s->nest[s->depth / 64];
    *word = *s->at == '{' ? *word | bit : *word & ~bit;
    s->depth++;
    s->at++;
    return true;
}

/* A key and its colon, blanks included; `close` is set to where the key itself ends. */
static bool skip_key(coordi_scan *s, const char **close)
{
    skip_blanks(s);
    if (peek(s) != '"') {
        return missed(s, "a key in quotes");
    }
    if (!skip_string(s)) {
        return false;
    }
    *close = s->at;
    skip_blanks(s);
    if (peek(s) != ':') {
        return missed(s, "':' after a key");
    }
    s->at++;
    return true;
}

/* After a value: closes the levels that end here, down to `floor`. An element that
 * follows a comma is announced by COORDI_STEP_ITEM, its key passed already. */
static coordi_step close_levels(coordi_scan *s, unsigned floor)
{
    const char *close;
    while (s->depth > floor) {
        bool object = in_object(s);
        skip_blanks(s);
        char c = peek(s);
        if (c == ',') {
            s->at++;
            return !object || skip_key(s, &close) ? COORDI_STEP_ITEM : COORDI_STEP_BAD;
        }
        if (c != (object ? '}' : ']')) {
            (void)missed(s, object ? "',' or '}'" : "',' or ']'");
            return COORDI_STEP_BAD;
        }
        s->at++;
        s->depth--;
    }
    return COORDI_STEP_END;
}

/* At an opening mark: passes it, and the first key of an object. COORDI_STEP_END: it was
 * empty, and is closed. */
static coordi_step enter_level(coordi_scan *s)
{
    bool object = *s->at == '{';
    if (!open_level(s)) {
        return COORDI_STEP_BAD;
    }
    skip_blanks(s);
    if (peek(s) == (object ? '}' : ']')) {
        s->at++;
        s->depth--;
        return COORDI_STEP_END;
    }
    const char *close;
    return !object || skip_key(s, &close) ? COORDI_STEP_ITEM : COORDI_STEP_BAD;
}

bool coordi_scan_value(coordi_scan *s)
{
    const unsigned floor = s->depth;
    coordi_step step = COORDI_STEP_ITEM;

    while (step == COORDI_STEP_ITEM) {
        skip_blanks(s);
        bool good = true;
        switch (s->at == s->end ? X : KIND[(unsigned char)*s->at]) {
        case B:
            step = enter_level(s);
            if (step == COORDI_STEP_ITEM) {
                continue;
            }
            good = step == COORDI_STEP_END;
            break;
        case Q:
            good = skip_string(s);
            break;
        case N:
            good = skip_number(s);
            break;
        case W:
            good = skip_literal(s);
            break;
        default:
            good = missed(s, "a value");
            break;
        }
        step = good ? close_levels(s, floor) : COORDI_STEP_BAD;
    }
    return step == COORDI_STEP_END;
}

bool coordi_scan_end(coordi_scan *s)
{
    skip_blanks(s);
    return s->at == s->end || missed(s, "nothing more");
}

bool coordi_scan_open(coordi_scan *s, char mark)
{
    skip_blanks(s);
    s->between = false;
    return peek(s) == mark && open_level(s);
}

/* Passes the comma before the next element, or the closing mark. */
static coordi_step next_element(coordi_scan *s, char close, const char *expected)
{
    skip_blanks(s);
    char c = peek(s);
    if (c == close) {
        s->at++;
        s->depth--;
        s->between = true; /* of the level outside */
        return COORDI_STEP_END;
    }
    if (!s->between) {
        return COORDI_STEP_ITEM;
    }
    if (c != ',') {
        (void)missed(s, expected);
        return COORDI_STEP_BAD;
    }
    s->at++;
    return COORDI_STEP_ITEM;
}

bool coordi_scan_member_value(coordi_scan *s, coord_text *value)
{
    skip_blanks(s);
    value->ptr = s->at;
    if (!coordi_scan_value(s)) {
        return false;
    }
    value->len = (size_t)(s->at - value->ptr);
    s->between = true;
    return true;
}

static coordi_step value_step(coordi_scan *s, coord_text *value)
{
    return coordi_scan_member_value(s, value) ? COORDI_STEP_ITEM : COORDI_STEP_BAD;
}

coordi_step coordi_scan_element(coordi_scan *s)
{
    coordi_step step = next_element(s, ']', "',' or ']'");
    skip_blanks(s);
    return step;
}

coordi_step coordi_scan_item(coordi_scan *s, coord_text *item)
{
    coordi_step step = coordi_scan_element(s);
    return step == COORDI_STEP_ITEM ? value_step(s, item) : step;
}

coordi_step coordi_scan_key(coordi_scan *s, coord_text *key)
{
    coordi_step step = next_element(s, '}', "',' or '}'");
    if (step != COORDI_STEP_ITEM) {
        return step;
    }
    const char *close;
    skip_blanks(s);
    key->ptr = s->at;
    if (!skip_key(s, &close)) {
        return COORDI_STEP_BAD;
    }
    key->len = (size_t)(close - key->ptr);
    skip_blanks(s);
    return COORDI_STEP_ITEM;
}

coordi_step coordi_scan_member(coordi_scan *s, coord_text *key, coord_text *value)
{
    coordi_step step = coordi_scan_key(s, key);
    return step == COORDI_STEP_ITEM ? value_step(s, value) : step;
}

coord_status coordi_scan_fail(const coordi_scan *s, coord_error *err)
{
    const char *expected = s->expected == NULL ? "a value" : s->expected;
    size_t offset = (size_t)(s->at - s->begin);
    unsigned char c = s->at < s->end ? (unsigned char)*s->at : 0;

    if (s->at == s->end) {
        return coordi_fail(err, COORD_ERR_FORMAT,
                           "JSON, byte %zu: expected %s, got the end", offset, expected);
    }
    if (c > 0x20 && c < 0x7f) {
        return coordi_fail(err, COORD_ERR_FORMAT, "JSON, byte %zu: expected %s, got '%c'",
                           offset, expected, c);
    }
    return coordi_fail(err, COORD_ERR_FORMAT,
                       "JSON, byte %zu: expected %s, got byte 0x%02x", offset, expected,
                       c);
}

coord_text coordi_scan_trim(coord_text text)
{
    if (text.ptr == NULL) {
        return coord_text_of("");
    }
    while (text.len > 0 && KIND[(unsigned char)text.ptr[0]] == S) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && KIND[(unsigned char)text.ptr[text.len - 1]] == S) {
        text.len--;
    }
    return text;
}

bool coordi_scan_is_number(coord_text trimmed)
{
    coordi_scan s;
    coordi_scan_begin(&s, trimmed);
    if (s.at == s.end) {
        return false;
    }
    unsigned char kind = KIND[(unsigned char)*s.at];
    bool good = kind == N
                    ? skip_number(&s)
                    : kind == W && (*s.at == 'N' || *s.at == 'I') && skip_literal(&s);
    return good && s.at == s.end;
}

bool coordi_scan_is_string(coord_text trimmed)
{
    coordi_scan s;
    coordi_scan_begin(&s, trimmed);
    return peek(&s) == '"' && skip_string(&s) && s.at == s.end;
}
