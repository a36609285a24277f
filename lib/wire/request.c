#include "wire/wire.h"

#include "base/error.h"
#include "codec/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const coord_text NOTHING = {"{}", 2};

static coord_text or_nothing(coord_text data)
{
    coordi_json_type type = coordi_json_type_of(data);
    return type == COORDI_JSON_NONE || type == COORDI_JSON_NULL ? NOTHING : data;
}

/* ---- builders ---- */

char *coordi_wire_connect(const char *master_address, coord_text data, size_t *len)
{
    coordi_buf buf = {0};
    coordi_buf_adds(&buf, "{\"master\": {\"address\": ");
    coordi_buf_add_json(&buf, master_address, strlen(master_address));
    coordi_buf_adds(&buf, "}, \"data\": ");
    coordi_buf_addt(&buf, or_nothing(data));
    coordi_buf_adds(&buf, "}");
    return coordi_buf_take(&buf, len);
}

char *coordi_wire_disconnect(coord_text data, size_t *len)
{
    coordi_buf buf = {0};
    coordi_buf_adds(&buf, "{\"data\": ");
    coordi_buf_addt(&buf, or_nothing(data));
    coordi_buf_adds(&buf, "}");
    return coordi_buf_take(&buf, len);
}

static char *with_task(const char *id, const char *key, coord_text value, size_t *len)
{
    coordi_buf buf = {0};
    (void)coordi_buf_reserve(&buf, value.len + 96); /* one allocation, also for 10 MB */
    coordi_buf_adds(&buf, "{\"task\": {\"id\": \"");
    coordi_buf_adds(&buf, id);
    coordi_buf_adds(&buf, "\"}, \"");
    coordi_buf_adds(&buf, key);
    coordi_buf_adds(&buf, "\": ");
    coordi_buf_addt(&buf, value);
    coordi_buf_adds(&buf, "}");
    return coordi_buf_take(&buf, len);
}

char *coordi_wire_new_task(const char *id, coord_text data, size_t *len)
{
    return with_task(id, "data", or_nothing(data), len);
}

char *coordi_wire_result(const char *id, coord_text result, size_t *len)
{
    return with_task(id, "result", coordi_json_truth(result) ? result : NOTHING, len);
}

char *coordi_wire_cancel(const char *id, size_t *len)
{
    coordi_buf buf = {0};
    coordi_buf_addf(&buf, "{\"task\": {\"id\": \"%s\"}}", id);
    return coordi_buf_take(&buf, len);
}

char *coordi_wire_nothing(size_t *len)
{
    coordi_buf buf = {0};
    coordi_buf_addt(&buf, NOTHING);
    return coordi_buf_take(&buf, len);
}

/* ---- readers ---- */

coord_text coordi_wire_seen_body(const char *content_type, coord_text body)
{
    static const char FORM[] = "application/x-www-form-urlencoded";
    bool is_form =
        content_type != NULL && strncasecmp(content_type, FORM, sizeof FORM - 1) == 0;
    return is_form ? (coord_text){NULL, 0} : body;
}

/* Reads the body's members; false with the reason in `why` if it is no JSON object. */
static bool read_members(coord_text body, coordi_json_member *members, size_t count,
                         coordi_message *ret, char *why, size_t why_size)
{
    coord_error err;
    if (body.len == 0) {
        ret->malformed = true;
        (void)snprintf(
            why, why_size,
            "The request has no body (or one sent as a form), but needs a JSON "
            "object.");
        return false;
    }
    coord_status rc = coordi_json_get_many(body, members, count, &err);
    if (rc != COORD_OK) {
        ret->malformed = rc == COORD_ERR_FORMAT;
        (void)snprintf(why, why_size, "The body is not a JSON object: %s.", err.text);
        return false;
    }
    return true;
}

static void say_missing(const char *key, char *why, size_t why_size)
{
    (void)snprintf(why, why_size, "The body lacks \"%s\".", key);
}

coordi_say coordi_wire_read_connect(coord_text body, coordi_message *ret, char *why,
                                    size_t why_size)
{
    coordi_json_member got[] = {{.key = "master"}, {.key = "data"}};

    memset(ret, 0, sizeof *ret);
    if (!read_members(body, got, 2, ret, why, why_size)) {
        return COORDI_SAY_BAD_CONNECT;
    }
    for (size_t i = 0; i < 2; i++) {
        if (!got[i].present) {
            say_missing(got[i].key, why, why_size);
            return COORDI_SAY_BAD_CONNECT;
        }
    }
    ret->data = got[1].value;
    /* The address is looked at after the hook was asked: leave what is wrong empty. */
    coord_text address;
    if (coordi_json_get(got[0].value, "address", &address, NULL) == COORD_OK &&
        coordi_json_type_of(address) == COORDI_JSON_STRING) {
        ret->master = address;
    }
    return COORDI_SAY_NOTHING;
}

coordi_say coordi_wire_read_disconnect(coord_text body, coordi_message *ret, char *why,
                                       size_t why_size)
{
    coordi_json_member got[] = {{.key = "data"}};

    memset(ret, 0, sizeof *ret);
    if (!read_members(body, got, 1, ret, why, why_size)) {
        return COORDI_SAY_BAD_DISCONNECT;
    }
    if (!got[0].present) {
        say_missing("data", why, why_size);
        return COORDI_SAY_BAD_DISCONNECT;
    }
    ret->data = got[0].value;
    return COORDI_SAY_NOTHING;
}

coordi_say coordi_wire_read_new_task(coord_text body, coordi_message *ret, char *why,
                                     size_t why_size)
{
    coordi_json_member got[] = {{.key = "task"}, {.key = "data"}};

    memset(ret, 0, sizeof *ret);
    if (!read_members(body, got, 2, ret, why, why_size)) {
        return COORDI_SAY_BAD_TASK;
    }
    if (!got[0].present || !got[1].present) {
        say_missing(got[0].present ? "data" : "task", why, why_size);
        return COORDI_SAY_BAD_TASK;
    }
    if (coordi_json_get(got[0].value, "id", &ret->id, NULL) != COORD_OK) {
        say_missing("task.id", why, why_size);
        return COORDI_SAY_BAD_TASK;
    }
    ret->data = got[1].value;
    return COORDI_SAY_NOTHING;
}

coordi_say coordi_wire_read_result(coord_text body, coordi_message *ret,
                                   char id[COORDI_UUID_SIZE], char *why, size_t why_size)
{
    coordi_json_member got[] = {{.key = "task"}, {.key = "result"}};

    memset(ret, 0, sizeof *ret);
    if (!read_members(body, got, 2, ret, why, why_size)) {
        return COORDI_SAY_BAD_RESULT;
    }
    if (!got[0].present) {
        return COORDI_SAY_NO_TASK;
    }
    if (!got[1].present) {
        say_missing("result", why, why_size);
        return COORDI_SAY_BAD_RESULT;
    }
    coord_status rc = coordi_json_get(got[0].value, "id", &ret->id, NULL);
    if (rc == COORD_ERR_NOT_FOUND) {
        return COORDI_SAY_NO_TASK_ID;
    }
    if (rc != COORD_OK) {
        (void)snprintf(why, why_size, "\"task\" is not an object.");
        return COORDI_SAY_BAD_RESULT;
    }
    if (!coordi_wire_read_id(ret->id, id)) {
        (void)snprintf(why, why_size, "\"task.id\" is not a UUID.");
        return COORDI_SAY_BAD_RESULT;
    }
    ret->result = got[1].value;
    return COORDI_SAY_NOTHING;
}

coordi_say coordi_wire_read_cancel(coord_text body, coordi_message *ret,
                                   char id[COORDI_UUID_SIZE], char *why, size_t why_size)
{
    coordi_json_member got[] = {{.key = "task"}};

    memset(ret, 0, sizeof *ret);
    if (!read_members(body, got, 1, ret, why, why_size)) {
        return COORDI_SAY_BAD_TASK;
    }
    if (coordi_json_get(got[0].value, "id", &ret->id, NULL) != COORD_OK) {
        say_missing("task.id", why, why_size);
        return COORDI_SAY_BAD_TASK;
    }
    if (!coordi_wire_read_id(ret->id, id)) {
        (void)snprintf(why, why_size, "\"task.id\" is not a UUID.");
        return COORDI_SAY_BAD_TASK;
    }
    return COORDI_SAY_NOTHING;
}

bool coordi_wire_read_id(coord_text raw, char id[COORDI_UUID_SIZE])
{
    char text[128];
    return coordi_json_string(raw, text, sizeof text) == COORD_OK &&
           coordi_uuid_read(text, strlen(text), id);
}

bool coordi_wire_prefix_id(coord_text body, char id[COORDI_UUID_SIZE])
{
    coord_text raw;
    return coordi_json_prefix_get(body, "task.id", &raw) && coordi_wire_read_id(raw, id);
}
