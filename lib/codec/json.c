/* Whole texts and walks. Reading one value is in json_value.c. */
#include "codec/json.h"

#include "base/error.h"
#include "codec/json_scan.h"

#include <string.h>

static coord_status check(coordi_scan *s, coord_error *err)
{
    if (coordi_scan_value(s) && coordi_scan_end(s)) {
        return COORD_OK;
    }
    return coordi_scan_fail(s, err);
}

coord_status coordi_json_check(coord_text text, coord_error *err)
{
    coordi_scan s;
    coordi_scan_begin(&s, text);
    return check(&s, err);
}

coord_status coordi_json_fail(coord_error *err, coord_status status, const char *what,
                              const char *expected, coord_text got)
{
    enum { SHOWN = 60 };
    char shown[SHOWN + 1];
    got = coordi_scan_trim(got);
    size_t len = got.len < SHOWN ? got.len : SHOWN;
    /* Never cut a character of UTF-8 in two. */
    while (len > 0 && len < got.len && ((unsigned char)got.ptr[len] & 0xc0) == 0x80) {
        len--;
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)got.ptr[i];
        shown[i] = got.ptr[i];
        if (c < 0x20 || c == 0x7f) {
            shown[i] = ' ';
        }
    }
    shown[len] = '\0';
    return coordi_fail(err, status, "%s: expected %s, got %s%s", what, expected,
                       got.len == 0 ? "nothing" : shown, len < got.len ? "..." : "");
}

/* Opens an object; tells what is wrong when the text is something else. */
static coord_status open_object(coordi_scan *s, coord_text text, coord_error *err)
{
    coordi_scan_begin(s, text);
    if (coordi_scan_open(s, '{')) {
        return COORD_OK;
    }
    coord_status rc = check(s, err);
    return rc != COORD_OK
               ? rc
               : coordi_json_fail(err, COORD_ERR_ARG, "JSON", "an object", text);
}

static void forget(coordi_json_member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        members[i].value = (coord_text){NULL, 0};
        members[i].present = false;
    }
}

/* The place of the member with this raw key, or `count`. Most keys differ in their first
 * byte. */
static size_t find(const coordi_json_member *members, size_t count, coord_text key)
{
    size_t i = 0;
    const char first = key.ptr[1]; /* the closing quote of an empty key, at least */
    while (i < count) {
        const char *wanted = members[i].key;
        if ((first == wanted[0] || first == '\\' || wanted[0] == '\0') &&
            coordi_scan_key_is(key, wanted, strlen(wanted))) {
            break;
        }
        i++;
    }
    return i;
}

coord_status coordi_json_get_many(coord_text object, coordi_json_member *members,
                                  size_t count, coord_error *err)
{
    coordi_scan s;
    coord_text key;
    coord_text value;
    coordi_step step;

    forget(members, count);
    coord_status rc = open_object(&s, object, err);
    if (rc != COORD_OK) {
        return rc;
    }
    while ((step = coordi_scan_member(&s, &key, &value)) == COORDI_STEP_ITEM) {
        size_t at = find(members, count, key);
        if (at < count) {
            members[at].value = value;
            members[at].present = true;
        }
    }
    if (step == COORDI_STEP_END && coordi_scan_end(&s)) {
        return COORD_OK;
    }
    forget(members, count);
    return coordi_scan_fail(&s, err);
}

coord_status coordi_json_get(coord_text object, const char *key, coord_text *ret,
                             coord_error *err)
{
    coordi_json_member member = {.key = key};
    coord_status rc = coordi_json_get_many(object, &member, 1, err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (!member.present) {
        return coordi_fail(err, COORD_ERR_NOT_FOUND, "JSON: no member \"%s\"", key);
    }
    *ret = member.value;
    return COORD_OK;
}

/* Copies what is kept of an object, up to its closing mark. What stands between two
 * commas is kept or dropped as a whole, blanks included. */
static bool copy_kept(coordi_buf *buf, coordi_scan *s, const coordi_json_member *members,
                      size_t count, bool *any)
{
    const char *from = s->at; /* after the mark or comma that opens this member */
    coord_text key;
    coord_text value;
    coordi_step step;

    while ((step = coordi_scan_member(s, &key, &value)) == COORDI_STEP_ITEM) {
        const char *to = s->at;
        while (to < s->end && *to != ',' && *to != '}') {
            to++; /* blanks, or the scanner will complain */
        }
        if (find(members, count, key) == count) {
            coordi_buf_add(buf, ",", *any ? 1 : 0);
            coordi_buf_add(buf, from, (size_t)(to - from));
            *any = true;
        }
        from = to < s->end ? to + 1 : to;
    }
    return step == COORDI_STEP_END;
}

static void add_members(coordi_buf *buf, const coordi_json_member *members, size_t count,
                        bool any)
{
    for (size_t i = 0; i < count; i++) {
        if (!members[i].present) {
            continue;
        }
        coordi_buf_add(buf, ",", any ? 1 : 0);
        coordi_buf_add_json(buf, members[i].key, strlen(members[i].key));
        coordi_buf_add(buf, ":", 1);
        coordi_buf_addt(buf, members[i].value);
        any = true;
    }
}

coord_status coordi_json_splice(coordi_buf *buf, coord_text object,
                                const coordi_json_member *members, size_t count,
                                coord_error *err)
{
    coordi_scan s;
    const size_t before = buf->len;
    const bool failed = buf->failed;

    coord_status rc = open_object(&s, object, err);
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_buf_add(buf, s.begin, (size_t)(s.at - s.begin));
    bool any = false;
    bool good = copy_kept(buf, &s, members, count, &any);
    const char *closed = s.at;
    if (!good || !coordi_scan_end(&s)) {
        rc = coordi_scan_fail(&s, err);
    } else {
        add_members(buf, members, count, any);
        coordi_buf_add(buf, closed - 1, (size_t)(s.end - closed) + 1);
        if (buf->failed) {
            rc = coordi_fail_nomem(err, "JSON");
        }
    }
    if (rc != COORD_OK) {
        buf->len = before;
        buf->failed = failed;
    }
    return rc;
}

bool coordi_json_prefix_get(coord_text prefix, const char *path, coord_text *ret)
{
    coordi_scan s;
    coord_text key;
    coord_text value;

    coordi_scan_begin(&s, prefix);
    if (!coordi_scan_open(&s, '{')) {
        return false;
    }
    while (coordi_scan_key(&s, &key) == COORDI_STEP_ITEM) {
        size_t len = strcspn(path, ".");
        bool on_the_way = coordi_scan_key_is(key, path, len);
        if (on_the_way && path[len] == '.') {
            if (!coordi_scan_open(&s, '{')) {
                return false;
            }
            path += len + 1;
            continue;
        }
        if (!coordi_scan_member_value(&s, &value)) {
            return false; /* cut off in here */
        }
        if (on_the_way) {
            *ret = value;
            /* A number that the cut ends may go on. */
            return s.at < s.end || coordi_json_type_of(value) != COORDI_JSON_NUMBER;
        }
    }
    return false;
}

/* Both walks begin anew at each step: at the opening mark, or after an element. */
static bool resume(coordi_scan *s, coord_text text, char mark, size_t at)
{
    coordi_scan_begin(s, text);
    if (!coordi_scan_open(s, mark)) {
        return false;
    }
    if (at > 0) {
        s->at = s->begin + (at < text.len ? at : text.len);
        s->between = true;
    }
    return true;
}

bool coordi_json_each(coord_text array, size_t *at, coord_text *item)
{
    coordi_scan s;
    if (!resume(&s, array, '[', *at) || coordi_scan_item(&s, item) != COORDI_STEP_ITEM) {
        return false;
    }
    *at = (size_t)(s.at - s.begin);
    return true;
}

bool coordi_json_each_member(coord_text object, size_t *at, coord_text *key,
                             coord_text *value)
{
    coordi_scan s;
    if (!resume(&s, object, '{', *at) ||
        coordi_scan_member(&s, key, value) != COORDI_STEP_ITEM) {
        return false;
    }
    *at = (size_t)(s.at - s.begin);
    return true;
}
