/* Trees for hosts. The text is checked first, so building can only fail for memory. */
#include "coord/json.h"

#include "base/buf.h"
#include "base/error.h"
#include "codec/json_scan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- text to tree ---- */

typedef struct builder {
    coordi_scan scan;
    coordi_buf text; /* the string or key that was read last */
    json_t *root;    /* owned; all else hangs on it */
    json_t *open[COORD_JSON_MAX_DEPTH];
    size_t depth;
    bool too_deep;
} builder;

static json_t *number_of(coord_text raw)
{
    int64_t integer;
    double real;
    if (coordi_json_int(raw, &integer)) {
        return json_integer(integer);
    }
    if (!coordi_json_double(raw, &real) || isnan(real)) {
        return json_string("NaN");
    }
    if (isinf(real)) {
        return json_string(real > 0 ? "Infinity" : "-Infinity");
    }
    return json_real(real);
}

static bool read_text(builder *b, coord_text raw)
{
    b->text.len = 0;
    return coordi_json_string_add_any(raw, &b->text) == COORD_OK;
}

static json_t *string_of(builder *b, coord_text raw)
{
    return read_text(b, raw) ? json_stringn_nocheck(b->text.ptr, b->text.len) : NULL;
}

/* A value as it goes into the tree; an array or object is still empty. */
static json_t *value_of(builder *b, coord_text raw, coordi_json_type type)
{
    switch (type) {
    case COORDI_JSON_NULL:
        return json_null();
    case COORDI_JSON_BOOL:
        return json_boolean(raw.ptr[0] == 't');
    case COORDI_JSON_NUMBER:
        return number_of(raw);
    case COORDI_JSON_STRING:
        return string_of(b, raw);
    case COORDI_JSON_ARRAY:
        return json_array();
    default:
        return json_object();
    }
}

/* Hangs `value` (which it takes over) on the open array or object. */
static bool attach(builder *b, coord_text key, json_t *value)
{
    if (value == NULL) {
        return false;
    }
    if (b->depth == 0) {
        b->root = value;
        return true;
    }
    json_t *parent = b->open[b->depth - 1];
    if (json_is_array(parent)) {
        return json_array_append_new(parent, value) == 0;
    }
    if (!read_text(b, key)) {
        json_decref(value);
        return false;
    }
    return json_object_setn_new_nocheck(parent, b->text.ptr, b->text.len, value) == 0;
}

/* At the value of `key` (no text in an array): adds it, and goes into it if it has an
 * inside. */
static bool add_value(builder *b, coord_text key)
{
    coord_text raw = {b->scan.at, (size_t)(b->scan.end - b->scan.at)};
    const coordi_json_type type = coordi_json_type_of(raw);
    const bool inner = type == COORDI_JSON_ARRAY || type == COORDI_JSON_OBJECT;

    if (inner && b->depth == COORD_JSON_MAX_DEPTH) {
        b->too_deep = true;
        return false;
    }
    if (!inner && !coordi_scan_member_value(&b->scan, &raw)) {
        return false;
    }
    json_t *value = value_of(b, raw, type);
    if (!attach(b, key, value)) {
        return false;
    }
    if (inner) {
        (void)coordi_scan_open(&b->scan, type == COORDI_JSON_ARRAY ? '[' : '{');
        b->open[b->depth++] = value;
    }
    return true;
}

static bool build(builder *b)
{
    const coord_text none = {NULL, 0};
    if (!add_value(b, none)) {
        return false;
    }
    while (b->depth > 0) {
        coord_text key = none;
        coordi_step step = json_is_array(b->open[b->depth - 1])
                               ? coordi_scan_element(&b->scan)
                               : coordi_scan_key(&b->scan, &key);
        if (step == COORDI_STEP_END) {
            b->depth--;
        } else if (!add_value(b, key)) {
            return false;
        }
    }
    return true;
}

coord_status coord_json_parse(coord_text text, json_t **ret, coord_error *err)
{
    if (ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "ret is required");
    }
    coord_status rc = coordi_json_check(text, err);
    if (rc != COORD_OK) {
        return rc;
    }
    builder b;
    coordi_scan_begin(&b.scan, text);
    b.text = (coordi_buf){0};
    b.root = NULL;
    b.depth = 0;
    b.too_deep = false;
    if (build(&b)) {
        *ret = b.root;
    } else {
        json_decref(b.root);
        if (b.too_deep) {
            b.scan.expected = "at most 2048 levels of arrays and objects";
            rc = coordi_scan_fail(&b.scan, err);
        } else {
            rc = coordi_fail_nomem(err, "JSON");
        }
    }
    coordi_buf_done(&b.text);
    return rc;
}

/* ---- tree to text ---- */

static int add_text(const char *bytes, size_t len, void *user)
{
    coordi_buf *buf = user;
    coordi_buf_add(buf, bytes, len);
    return buf->failed ? -1 : 0;
}

coord_status coord_json_text(const json_t *json, char **ret, size_t *len,
                             coord_error *err)
{
    if (json == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "json and ret are required");
    }
    coordi_buf buf = {0};
    if (json_dump_callback(json, add_text, &buf, JSON_COMPACT | JSON_ENCODE_ANY) != 0 &&
        !buf.failed) {
        coordi_buf_done(&buf);
        return coordi_fail(err, COORD_ERR_ARG,
                           "JSON: the tree holds a circle or text that is not UTF-8");
    }
    size_t size = 0;
    char *text = coordi_buf_take(&buf, &size);
    if (text == NULL) {
        return coordi_fail_nomem(err, "JSON");
    }
    *ret = text;
    if (len != NULL) {
        *len = size;
    }
    return COORD_OK;
}

/* ---- values by path ---- */

/* The value for an error text; strings are not escaped, only cut. */
static coord_text show(const json_t *got, char *out, size_t size)
{
    int len = 0;
    if (json_is_array(got)) {
        return coord_text_of("an array");
    }
    if (json_is_object(got)) {
        return coord_text_of("an object");
    }
    if (json_is_string(got)) {
        len = snprintf(out, size, "\"%s\"", json_string_value(got));
    } else {
        len = (int)json_dumpb(got, out, size, JSON_ENCODE_ANY);
    }
    return (coord_text){out, len < (int)size ? (size_t)len : size - 1};
}

/* "<path>: expected <expected>, got <value>"; `len` cuts the path. */
static coord_status unexpected(coord_error *err, const char *path, size_t len,
                               const char *expected, const json_t *got)
{
    char text[80];
    char what[128];
    int cut = len < sizeof what ? (int)len : (int)sizeof what - 1;
    (void)snprintf(what, sizeof what, "%.*s", cut, path);
    return coordi_json_fail(err, COORD_ERR_FORMAT, len == 0 ? "JSON" : what, expected,
                            show(got, text, sizeof text));
}

/* At a key: finds it. */
static const json_t *step_key(const json_t *at, const char **p)
{
    size_t len = strcspn(*p, ".[");
    const char *key = *p;
    *p += len;
    return json_object_getn(at, key, len);
}

/* At an opening bracket: finds the place; NULL with *p untouched when it isn't [digits].
 */
static const json_t *step_place(const json_t *at, const char **p)
{
    const char *digit = *p + 1;
    size_t place = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        size_t more = (size_t)(*digit - '0');
        place = place > (SIZE_MAX - more) / 10 ? SIZE_MAX : place * 10 + more;
    }
    if (digit == *p + 1 || *digit != ']') {
        return NULL;
    }
    *p = digit + 1;
    return json_array_get(at, place);
}

static coord_status walk(const json_t *at, const char *path, const json_t **ret,
                         coord_error *err)
{
    const char *p = path;
    while (*p != '\0') {
        const size_t before = (size_t)(p - path);
        const bool place = *p == '[';
        if (!place && before > 0 && *p++ != '.') {
            p = path + before;
            break;
        }
        if (!place && strcspn(p, ".[") == 0) {
            break;
        }
        if (place ? !json_is_array(at) : !json_is_object(at)) {
            return unexpected(err, path, before, place ? "an array" : "an object", at);
        }
        const char *from = p;
        const json_t *next = place ? step_place(at, &p) : step_key(at, &p);
        if (p == from) {
            break;
        }
        if (next == NULL) {
            return coordi_fail(err, COORD_ERR_NOT_FOUND, "%.*s: missing", (int)(p - path),
                               path);
        }
        at = next;
    }
    if (*p != '\0' || (p > path && p[-1] == '.')) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "path \"%s\": expected a key or [place] at %zu", path,
                           (size_t)(p - path));
    }
    *ret = at;
    return COORD_OK;
}

static coord_status find(const json_t *json, const char *path, const void *ret,
                         const json_t **found, coord_error *err)
{
    if (json == NULL || path == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "json, path and ret are required");
    }
    return walk(json, path, found, err);
}

coord_status coord_json_get(const json_t *json, const char *path, json_t **ret,
                            coord_error *err)
{
    const json_t *found = NULL;
    coord_status rc = find(json, path, ret, &found, err);
    if (rc == COORD_OK) {
        *ret = (json_t *)found; /* jansson's own getters shed the const as well */
    }
    return rc;
}

coord_status coord_json_get_int(const json_t *json, const char *path, int64_t *ret,
                                coord_error *err)
{
    const json_t *found = NULL;
    coord_status rc = find(json, path, ret, &found, err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (!json_is_integer(found)) {
        return unexpected(err, path, strlen(path), "an integer", found);
    }
    *ret = json_integer_value(found);
    return COORD_OK;
}

coord_status coord_json_get_double(const json_t *json, const char *path, double *ret,
                                   coord_error *err)
{
    const json_t *found = NULL;
    coord_status rc = find(json, path, ret, &found, err);
    if (rc != COORD_OK) {
        return rc;
    }
    const char *word = json_is_string(found) ? json_string_value(found) : "";
    if (json_is_number(found)) {
        *ret = json_number_value(found);
    } else if (strcmp(word, "NaN") == 0) {
        *ret = NAN;
    } else if (strcmp(word, "Infinity") == 0) {
        *ret = INFINITY;
    } else if (strcmp(word, "-Infinity") == 0) {
        *ret = -INFINITY;
    } else {
        return unexpected(err, path, strlen(path), "a number", found);
    }
    return COORD_OK;
}

coord_status coord_json_get_bool(const json_t *json, const char *path, bool *ret,
                                 coord_error *err)
{
    const json_t *found = NULL;
    coord_status rc = find(json, path, ret, &found, err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (!json_is_boolean(found)) {
        return unexpected(err, path, strlen(path), "true or false", found);
    }
    *ret = json_is_true(found);
    return COORD_OK;
}

coord_status coord_json_get_string(const json_t *json, const char *path, const char **ret,
                                   coord_error *err)
{
    const json_t *found = NULL;
    coord_status rc = find(json, path, ret, &found, err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (!json_is_string(found)) {
        return unexpected(err, path, strlen(path), "a string", found);
    }
    if (strlen(json_string_value(found)) != json_string_length(found)) {
        return unexpected(err, path, strlen(path), "a string without NUL", found);
    }
    *ret = json_string_value(found);
    return COORD_OK;
}
