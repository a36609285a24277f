#include "raw.h"

#include "coord/json.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_blanks(coord_text text, size_t at)
{
    while (at < text.len && is_blank(text.ptr[at])) {
        at++;
    }
    return at;
}

static bool is_at(coord_text text, size_t at, char c)
{
    return at < text.len && text.ptr[at] == c;
}

/* From the opening quote to behind the closing one. */
static size_t skip_string(coord_text text, size_t at)
{
    for (at++; at < text.len && text.ptr[at] != '"'; at++) {
        at += text.ptr[at] == '\\';
    }
    return at < text.len ? at + 1 : text.len;
}

/* Past one value. Brackets are only counted: they do match, and none is in a string. */
static size_t skip_value(coord_text text, size_t at)
{
    size_t depth = 0;
    while (at < text.len) {
        char c = text.ptr[at];
        bool whole = true; /* does something end here, and not merely go on? */
        if (c == '"') {
            at = skip_string(text, at);
        } else if (c == '[' || c == '{') {
            depth++;
            at++;
        } else if (depth > 0 && (c == ']' || c == '}')) {
            depth--;
            at++;
        } else if (depth == 0 && (c == ']' || c == '}' || c == ',' || is_blank(c))) {
            return at; /* behind a number or word */
        } else {
            at++;
            whole = false;
        }
        if (whole && depth == 0) {
            return at;
        }
    }
    return at;
}

bool raw_next(coord_text text, size_t *at, coord_text *key, coord_text *value)
{
    size_t i = skip_blanks(text, *at);
    bool begins = *at == 0 && is_at(text, i, key == NULL ? '[' : '{');
    if (!begins && (*at == 0 || !is_at(text, i, ','))) {
        return false;
    }
    i = skip_blanks(text, i + 1);
    if (i >= text.len || text.ptr[i] == ']' || text.ptr[i] == '}') {
        return false; /* nothing in it */
    }
    if (key != NULL) {
        size_t end = skip_string(text, i);
        *key = (coord_text){text.ptr + i, end - i};
        i = skip_blanks(text, skip_blanks(text, end) + 1); /* the colon */
    }
    *at = skip_value(text, i);
    *value = (coord_text){text.ptr + i, *at - i};
    return true;
}

/* A key with escapes is rare, and left to the reader that undoes them. */
bool raw_is_name(coord_text key, const char *name)
{
    json_t *read = NULL;
    if (memchr(key.ptr, '\\', key.len) == NULL) {
        return key.len == strlen(name) + 2 && memcmp(key.ptr + 1, name, key.len - 2) == 0;
    }
    bool same = coord_json_parse(key, &read, NULL) == COORD_OK &&
                json_string_length(read) == strlen(name) &&
                memcmp(json_string_value(read), name, strlen(name)) == 0;
    json_decref(read);
    return same;
}

bool raw_member(coord_text object, const char *name, coord_text *ret)
{
    size_t at = 0;
    bool found = false;
    coord_text key;
    coord_text value;
    while (raw_next(object, &at, &key, &value)) {
        if (raw_is_name(key, name)) {
            *ret = value;
            found = true;
        }
    }
    return found;
}

bool raw_is_true(coord_text object, const char *name)
{
    coord_text value;
    return raw_member(object, name, &value) && value.len == 4 &&
           memcmp(value.ptr, "true", 4) == 0;
}
