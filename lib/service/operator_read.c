#include "base/alloc.h"
#include "base/error.h"
#include "base/line.h"
#include "base/map.h"
#include "codec/json.h"
#include "service/operator_answer.h"

#include <stdio.h>

/* From bytes to an answer.
 *
 * Everything is in an envelope {"success", "code", "message", "data"}, whatever the HTTP
 * status; the Content-Type says text/plain and is ignored. With v1alpha1 data is an
 * object of a coordinator's lists, or an array of such objects. A list is an array of
 * ids, null, or (of DI-engine's own test server) an object whose keys are ids. With
 * v2alpha1 data is an array of addresses by rank, or null.
 *
 * The shape is all or nothing: a GET without a list of the asked pod would otherwise look
 * as if all workers were gone. An entry that makes no sense is skipped and told of, and
 * takes the answer its `complete`: so one broken entry neither ends the worker it stands
 * for nor keeps new ones away. */

enum { SHOWN = 60, NOTE_SIZE = 256 };

typedef struct reader {
    const coordi_operator_reading *how;
    coord_operator_answer *answer;
    coordi_map seen; /* ids */
    size_t count;
    coord_error *err;
} reader;

/* ---- entries ---- */

/* False: out of memory. */
static bool skip(reader *r, const char *place, coord_text entry, const char *why)
{
    coord_operator_answer *answer = r->answer;
    if (answer->skipped++ > 0) {
        return true;
    }
    char note[NOTE_SIZE];
    const int shown = entry.len > SHOWN ? SHOWN : (int)entry.len;
    (void)snprintf(note, sizeof note, "%s: %.*s%s: %s", place, shown,
                   entry.ptr == NULL ? "" : entry.ptr, entry.len > SHOWN ? "..." : "",
                   why);
    coordi_line_clean(note);
    char *text = coordi_strdup(note);
    if (text == NULL) {
        answer->skipped = 0; /* its text is not ours to free */
        return false;
    }
    answer->skipped_text = text;
    return true;
}

static coord_status nomem(const reader *r)
{
    return coordi_fail_nomem(r->err, r->how->what);
}

static coord_status read_entry(reader *r, coordi_operator_list list, const char *place,
                               coord_text raw, int32_t rank)
{
    char id[COORD_ID_SIZE];
    const char *why = "expected a string of 1 to 255 bytes";
    if (++r->count > r->how->max_replicas) {
        return coordi_fail(r->err, COORD_ERR_TOO_BIG,
                           "%s: the list has more than %zu entries", r->how->what,
                           r->how->max_replicas);
    }
    if (coordi_json_string(raw, id, sizeof id) != COORD_OK) {
        r->answer->complete = false;
        return skip(r, place, raw, why) ? COORD_OK : nomem(r);
    }
    if (list == COORDI_OPERATOR_NODES && id[0] == '\0') {
        r->answer->pending++;
        return COORD_OK;
    }
    if (coordi_map_get(&r->seen, id) != NULL) {
        return skip(r, place, raw, "it stands there twice") ? COORD_OK : nomem(r);
    }
    coord_status rc =
        coordi_operator_answer_add(r->answer, list, id, r->how->name_space, rank, &why);
    if (rc == COORD_ERR_FORMAT) {
        r->answer->complete = false;
        return skip(r, place, raw, why) ? COORD_OK : nomem(r);
    }
    return rc == COORD_OK && coordi_map_put(&r->seen, id, r) ? COORD_OK : nomem(r);
}

static coord_status bad_shape(reader *r, const char *place, const char *expected,
                              coord_text got)
{
    char what[256];
    (void)snprintf(what, sizeof what, "%s: %s", r->how->what, place);
    return coordi_json_fail(r->err, COORD_ERR_PROTOCOL, what, expected, got);
}

static coord_status read_list(reader *r, coordi_operator_list list, const char *place,
                              coord_text raw)
{
    coord_status rc = COORD_OK;
    coord_text item;
    coord_text value;
    size_t at = 0;
    int32_t rank = -1;
    switch (coordi_json_type_of(raw)) {
    case COORDI_JSON_NULL:
        return COORD_OK;
    case COORDI_JSON_ARRAY:
        while (rc == COORD_OK && coordi_json_each(raw, &at, &item)) {
            rank = list == COORDI_OPERATOR_NODES ? rank + 1 : -1;
            rc = read_entry(r, list, place, item, rank);
        }
        return rc;
    case COORDI_JSON_OBJECT:
        while (rc == COORD_OK && coordi_json_each_member(raw, &at, &item, &value)) {
            rc = read_entry(r, list, place, item, -1);
        }
        return rc;
    default:
        return bad_shape(r, place, "a list of ids", raw);
    }
}

/* ---- v1alpha1 ---- */

enum { OF_SPACE, OF_NAME, OF_COLLECTORS, OF_LEARNERS, OF_COUNT };

/* A name that is told has to be ours; "" is told by one that failed early. */
static bool is_other(coord_text told, const char *ours)
{
    return coordi_json_type_of(told) == COORDI_JSON_STRING && ours[0] != '\0' &&
           !coordi_json_string_is(told, "") && !coordi_json_string_is(told, ours);
}

static bool is_nothing(const coordi_json_member *member)
{
    return !member->present || coordi_json_type_of(member->value) == COORDI_JSON_NULL;
}

static coord_status read_object(reader *r, coord_text data)
{
    coordi_json_member m[OF_COUNT] = {{.key = "namespace"},
                                      {.key = "coordinator"},
                                      {.key = "collectors"},
                                      {.key = "learners"}};
    if (coordi_json_get_many(data, m, OF_COUNT, NULL) != COORD_OK ||
        (!m[OF_COLLECTORS].present && !m[OF_LEARNERS].present)) {
        return bad_shape(r, "data", "an object with collectors and learners", data);
    }
    if (r->how->must_list && is_nothing(&m[OF_COLLECTORS]) &&
        is_nothing(&m[OF_LEARNERS]) && m[OF_NAME].present &&
        coordi_json_string_is(m[OF_NAME].value, "")) {
        return bad_shape(r, "data", "lists, not an object that was never filled in",
                         data);
    }
    if (is_other(m[OF_SPACE].value, r->how->name_space) ||
        is_other(m[OF_NAME].value, r->how->name)) {
        return bad_shape(r, "data", "the lists of the pod that asks", data);
    }
    coord_status rc = COORD_OK;
    if (m[OF_COLLECTORS].present) {
        rc = read_list(r, COORDI_OPERATOR_COLLECTORS, "data.collectors",
                       m[OF_COLLECTORS].value);
    }
    if (rc == COORD_OK && m[OF_LEARNERS].present) {
        rc =
            read_list(r, COORDI_OPERATOR_LEARNERS, "data.learners", m[OF_LEARNERS].value);
    }
    return rc;
}

/* One of many objects: ours. */
static coord_status read_array(reader *r, coord_text data)
{
    coord_text item;
    size_t at = 0;
    while (coordi_json_each(data, &at, &item)) {
        coordi_json_member m[] = {{.key = "namespace"}, {.key = "coordinator"}};
        if (coordi_json_get_many(item, m, 2, NULL) == COORD_OK && m[1].present &&
            coordi_json_string_is(m[1].value, r->how->name) &&
            !is_other(m[0].value, r->how->name_space)) {
            return read_object(r, item);
        }
    }
    return bad_shape(r, "data", "an entry of the pod that asks", data);
}

/* ---- the envelope ---- */

enum { E_SUCCESS, E_CODE, E_MESSAGE, E_DATA, E_COUNT };

static coord_status read_data(reader *r, const coordi_json_member *data, bool *told)
{
    const coordi_json_type type = coordi_json_type_of(data->value);
    const bool nothing = is_nothing(data);
    *told = false;
    if (r->how->api == COORDI_OPERATOR_V2) {
        *told = true;
        if (nothing) { /* no rank has an address, which happens at restarts */
            r->answer->complete = !r->how->must_list;
            return COORD_OK;
        }
        if (type != COORDI_JSON_ARRAY) {
            return bad_shape(r, "data", "a list of addresses or null", data->value);
        }
        coord_status rc = read_list(r, COORDI_OPERATOR_NODES, "data", data->value);
        r->answer->complete =
            r->answer->complete && (!r->how->must_list || r->answer->node_count > 0);
        return rc;
    }
    if (nothing && !r->how->must_list) {
        return COORD_OK;
    }
    *told = true;
    return type == COORDI_JSON_ARRAY ? read_array(r, data->value)
                                     : read_object(r, data->value);
}

static coord_status no_envelope(const coordi_operator_reading *how, int http_status,
                                coord_text body, const coord_error *cause,
                                coord_error *err)
{
    char shown[SHOWN + 4];
    (void)snprintf(shown, sizeof shown, "%.*s%s",
                   (int)(body.len > SHOWN ? SHOWN : body.len),
                   body.ptr == NULL ? "" : body.ptr, body.len > SHOWN ? "..." : "");
    const coord_status rc = coordi_fail_because(
        err, COORD_ERR_PROTOCOL, cause,
        "%s: HTTP %d: expected {\"success\", \"message\", \"data\"}, got \"%s\"",
        how->what, http_status, shown);
    if (err != NULL) {
        err->http_status = http_status;
    }
    return rc;
}

static coord_status refuse(const reader *r, int http_status, int64_t code)
{
    const coord_status status =
        http_status == 404 ? COORD_ERR_NOT_FOUND : COORD_ERR_REFUSED;
    (void)coordi_fail(r->err, status, "%s: HTTP %d: the server says no", r->how->what,
                      http_status);
    if (r->err != NULL) {
        r->err->http_status = http_status;
        r->err->peer_code = code < INT32_MIN || code > INT32_MAX ? 0 : (int)code;
        (void)snprintf(r->err->cause, sizeof r->err->cause, "%s", r->answer->message);
        coordi_line_clean(r->err->cause);
    }
    return status;
}

/* With a no, broken data is none: the server's words are what counts. */
static coord_status read_inside(reader *r, int http_status, bool success,
                                const coordi_json_member *m, bool *told)
{
    int64_t code = 0;
    (void)coordi_json_int(m[E_CODE].value, &code);
    coord_error *err = r->err;
    if (success) {
        coord_status rc = read_data(r, &m[E_DATA], told);
        if (rc != COORD_OK && err != NULL) {
            err->http_status = http_status;
        }
        return rc;
    }
    r->err = NULL;
    const coord_status rc = read_data(r, &m[E_DATA], told);
    r->err = err;
    if (rc == COORD_ERR_NOMEM) {
        return nomem(r);
    }
    *told = *told && rc == COORD_OK;
    return refuse(r, http_status, code);
}

coord_status coordi_operator_read(const coordi_operator_reading *how, int http_status,
                                  coord_text body, coordi_operator_verdict *ret,
                                  coord_error *err)
{
    coord_error cause;
    coordi_json_member m[E_COUNT] = {
        {.key = "success"}, {.key = "code"}, {.key = "message"}, {.key = "data"}};
    bool success = false;
    *ret = (coordi_operator_verdict){0};
    cause.text[0] = '\0';
    coord_status rc = coordi_json_get_many(body, m, E_COUNT, &cause);
    if (rc != COORD_OK || !coordi_json_bool(m[E_SUCCESS].value, &success)) {
        ret->no_route = http_status == 404 || (http_status >= 300 && http_status < 400);
        return no_envelope(how, http_status, body, rc == COORD_OK ? NULL : &cause, err);
    }
    reader r = {
        .how = how, .answer = coordi_operator_answer_create(how->api), .err = err};
    if (r.answer == NULL) {
        return nomem(&r);
    }
    coordi_operator_answer_say(r.answer, http_status, m[E_MESSAGE].value);
    const bool yes = success && http_status >= 200 && http_status < 300;
    rc = read_inside(&r, http_status, yes, m, &ret->told);
    coordi_map_done(&r.seen);
    if (rc != COORD_OK && rc != COORD_ERR_REFUSED && rc != COORD_ERR_NOT_FOUND) {
        coord_operator_answer_destroy(r.answer);
        ret->told = false;
        return rc;
    }
    ret->answer = r.answer;
    return rc;
}
