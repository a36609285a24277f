#include "wire/wire.h"

#include "base/error.h"
#include "codec/json.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* One row an answer: this table is the protocol's, and PROTOCOL is its description. */
static const struct {
    int http;
    int code;
    bool success;
    const char *message;
} ROWS[COORDI_SAY_COUNT] = {
    [COORDI_SAY_NOTHING] = {500, COORDI_CODE_SHUTTING_DOWN, false, "No answer."},
    [COORDI_SAY_SHUTTING_DOWN] = {401, COORDI_CODE_SHUTTING_DOWN, false,
                                  "System has already been shutting down."},
    [COORDI_SAY_NO_CHANNEL] = {400, COORDI_CODE_NO_CHANNEL, false, "Channel not found."},
    [COORDI_SAY_BAD_CHANNEL] = {400, COORDI_CODE_WRONG_CHANNEL, false,
                                "Channel is not an integer."},
    [COORDI_SAY_WRONG_CHANNEL] = {403, COORDI_CODE_WRONG_CHANNEL, false,
                                  "Channel not match with this endpoint."},
    [COORDI_SAY_PONG] = {200, COORDI_CODE_OK, true, "PONG!"},
    [COORDI_SAY_SHUTDOWN_LATER] =
        {200, COORDI_CODE_OK, true,
         "Shutdown request received, this server will be down later."},
    [COORDI_SAY_NO_ENDPOINT] = {404, COORDI_CODE_WRONG_SELF_TOKEN, false,
                                "No such endpoint."},
    [COORDI_SAY_NO_METHOD] = {405, COORDI_CODE_WRONG_SELF_TOKEN, false,
                              "Method not allowed for this endpoint."},

    [COORDI_SAY_NO_MASTER_TOKEN] = {400, COORDI_CODE_NO_MASTER_TOKEN, false,
                                    "Master token not found."},
    [COORDI_SAY_WRONG_MASTER_TOKEN] = {403, COORDI_CODE_WRONG_MASTER_TOKEN, false,
                                       "Master not match with this endpoint."},
    [COORDI_SAY_NO_OWN_SLAVE_TOKEN] = {400, COORDI_CODE_NO_SELF_TOKEN, false,
                                       "Slave token not found."},
    [COORDI_SAY_WRONG_OWN_SLAVE_TOKEN] = {403, COORDI_CODE_WRONG_SELF_TOKEN, false,
                                          "Slave token not match with this endpoint."},
    [COORDI_SAY_CONNECTED] = {200, COORDI_CODE_OK, true, "Connect success."},
    [COORDI_SAY_ALREADY_CONNECTED] = {400, COORDI_CODE_SLAVE_CONNECTED, false,
                                      "This slave already connected."},
    [COORDI_SAY_CONNECT_REFUSED] = {403, COORDI_CODE_CONNECT_REFUSED, false,
                                    "Connection refused!"},
    [COORDI_SAY_DISCONNECTED] = {200, COORDI_CODE_OK, true, "Disconnect success."},
    [COORDI_SAY_NOT_CONNECTED] = {400, COORDI_CODE_SLAVE_NOT_CONNECTED, false,
                                  "This slave not connected yet."},
    [COORDI_SAY_DISCONNECT_REFUSED] = {403, COORDI_CODE_DISCONNECT_REFUSED, false,
                                       "Disconnection refused!"},
    [COORDI_SAY_TASK_RECEIVED] = {200, COORDI_CODE_OK, true, "Task received!"},
    [COORDI_SAY_BUSY] = {400, COORDI_CODE_SLAVE_BUSY, false, "Already has a task."},
    [COORDI_SAY_TASK_REFUSED] = {403, COORDI_CODE_TASK_REFUSED, false, "Task refused!"},
    [COORDI_SAY_CANCEL] = {200, COORDI_CODE_OK, true, "Cancel received!"},
    [COORDI_SAY_BAD_CONNECT] = {400, COORDI_CODE_CONNECT_REFUSED, false, "Bad request."},
    [COORDI_SAY_BAD_DISCONNECT] = {400, COORDI_CODE_DISCONNECT_REFUSED, false,
                                   "Bad request."},
    [COORDI_SAY_BAD_TASK] = {400, COORDI_CODE_TASK_REFUSED, false, "Bad request."},

    [COORDI_SAY_NO_SLAVE_TOKEN] = {400, COORDI_CODE_NO_SLAVE_TOKEN, false,
                                   "Slave token not found."},
    [COORDI_SAY_WRONG_SLAVE_TOKEN] = {403, COORDI_CODE_WRONG_SLAVE_TOKEN, false,
                                      "No matching slave token found in this endpoint."},
    [COORDI_SAY_NO_OWN_MASTER_TOKEN] = {400, COORDI_CODE_NO_SELF_TOKEN, false,
                                        "Master token not found."},
    [COORDI_SAY_WRONG_OWN_MASTER_TOKEN] = {403, COORDI_CODE_WRONG_SELF_TOKEN, false,
                                           "Master token not match with this endpoint."},
    [COORDI_SAY_HEARTBEAT] = {200, COORDI_CODE_OK, true, "Received!"},
    [COORDI_SAY_RESULT] = {200, COORDI_CODE_OK, true, "Result received!"},
    [COORDI_SAY_NO_TASK] = {200, COORDI_CODE_WRONG_RESULT, false,
                            "Task information not found."},
    [COORDI_SAY_NO_TASK_ID] = {200, COORDI_CODE_WRONG_RESULT, false,
                               "Task ID not found."},
    [COORDI_SAY_BAD_RESULT] = {400, COORDI_CODE_WRONG_RESULT, false, "Bad request."},
};

int coordi_wire_status(coordi_say say)
{
    return ROWS[say].http;
}

char *coordi_wire_answer(coordi_say say, const char *message, coord_text data,
                         size_t *len)
{
    coordi_buf buf = {0};
    if (message == NULL) {
        message = ROWS[say].message;
    }
    /* Keys sorted, compact, a newline: as Flask writes it. */
    coordi_buf_addf(&buf, "{\"code\":%d,\"data\":", ROWS[say].code);
    coordi_buf_addt(&buf, data.len == 0 ? coord_text_of("null") : data);
    coordi_buf_adds(&buf, ",\"message\":");
    coordi_buf_add_json(&buf, message, strlen(message));
    coordi_buf_adds(&buf,
                    ROWS[say].success ? ",\"success\":true}\n" : ",\"success\":false}\n");
    return coordi_buf_take(&buf, len);
}

/* The peer's words for an error text: its message, decoded if that is possible. */
static void words_of(coord_text message, char *out, size_t size)
{
    if (message.len == 0) {
        out[0] = '\0';
        return;
    }
    if (coordi_json_string(message, out, size) == COORD_OK) {
        return;
    }
    if (coordi_json_type_of(message) == COORDI_JSON_STRING) {
        message = (coord_text){message.ptr + 1, message.len - 2}; /* without its quotes */
    }
    (void)snprintf(out, size, "%.*s", (int)(message.len < size ? message.len : size - 1),
                   message.ptr);
}

static coord_status fail_unreadable(int http_status, coord_text body, const char *what,
                                    coord_error *err)
{
    coord_status rc =
        coordi_fail(err, COORD_ERR_PROTOCOL,
                    "%s: answered HTTP %d without the four-key JSON body, but with %zu "
                    "bytes \"%.*s\"",
                    what, http_status, body.len, (int)(body.len < 40 ? body.len : 40),
                    body.len == 0 ? "" : body.ptr);
    if (err != NULL) {
        err->http_status = http_status;
    }
    return rc;
}

coord_status coordi_wire_read_answer(int http_status, coord_text body, const char *what,
                                     coordi_answer *ret, coord_error *err)
{
    coordi_json_member got[] = {
        {.key = "success"}, {.key = "code"}, {.key = "message"}, {.key = "data"}};
    int64_t code;

    memset(ret, 0, sizeof *ret);
    if (coordi_json_get_many(body, got, 4, NULL) != COORD_OK ||
        !coordi_json_bool(got[0].value, &ret->success) ||
        !coordi_json_int(got[1].value, &code) || code < INT_MIN || code > INT_MAX) {
        return fail_unreadable(http_status, body, what, err);
    }
    ret->code = (int)code;
    ret->message = got[2].value;
    ret->data = got[3].value;
    if (ret->success && http_status < 400) {
        return COORD_OK;
    }
    char words[512];
    words_of(ret->message, words, sizeof words);
    coord_status rc =
        coordi_fail(err, COORD_ERR_REFUSED, "%s: answered \"%s\" (code %d, HTTP %d)",
                    what, words, ret->code, http_status);
    if (err != NULL) {
        err->http_status = http_status;
        err->peer_code = ret->code;
    }
    return rc;
}

/* Strict decimal with an optional sign and blanks around, as Python's int() reads what
 * its own clients write. */
coordi_say coordi_wire_check_channel(const char *header, int64_t own)
{
    if (header == NULL || header[0] == '\0') {
        return COORDI_SAY_NO_CHANNEL;
    }
    const char *at = header + strspn(header, " \t");
    bool minus = *at == '-';
    if (*at == '-' || *at == '+') {
        at++;
    }
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || at[digits + strspn(at + digits, " \t")] != '\0') {
        return COORDI_SAY_BAD_CHANNEL;
    }
    int64_t value = 0;
    for (size_t i = 0; i < digits; i++) {
        if (value > (INT64_MAX - 9) / 10) {
            return COORDI_SAY_WRONG_CHANNEL; /* any size is an integer, but not ours */
        }
        value = value * 10 + (at[i] - '0');
    }
    return (minus ? -value : value) == own ? COORDI_SAY_NOTHING
                                           : COORDI_SAY_WRONG_CHANNEL;
}
