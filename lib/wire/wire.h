/* The interaction protocol as data: what is sent, what is read, and what is answered, in
 * the order in which it is checked. Pure: no I/O, no state.
 *
 * Conformance is to DI-engine's ding.interaction (Master and Slave). Where the reference
 * answers an HTML error page, we answer the same class of status with a four-key JSON
 * body and a code that its clients know. */
#ifndef COORDI_WIRE_WIRE_H
#define COORDI_WIRE_WIRE_H

#include "base/buf.h"
#include "base/uuid.h"
#include "coord/error.h"

enum { COORDI_TOKEN_SIZE = 65 }; /* 64 hex characters and the NUL */

/* Values of "code". The reference uses some numbers twice, for its master and its slave.
 */
enum {
    COORDI_CODE_OK = 0,
    COORDI_CODE_SHUTTING_DOWN = 101,
    COORDI_CODE_NO_CHANNEL = 201,
    COORDI_CODE_WRONG_CHANNEL = 202,
    COORDI_CODE_NO_MASTER_TOKEN = 301,
    COORDI_CODE_WRONG_MASTER_TOKEN = 302,
    COORDI_CODE_NO_SELF_TOKEN = 401,
    COORDI_CODE_WRONG_SELF_TOKEN = 402,
    COORDI_CODE_SLAVE_CONNECTED = 501, /* said by slaves */
    COORDI_CODE_SLAVE_NOT_CONNECTED = 502,
    COORDI_CODE_CONNECT_REFUSED = 503,
    COORDI_CODE_DISCONNECT_REFUSED = 504,
    COORDI_CODE_SLAVE_BUSY = 601,
    COORDI_CODE_TASK_REFUSED = 602,
    COORDI_CODE_NO_SLAVE_TOKEN = 501, /* said by masters */
    COORDI_CODE_WRONG_SLAVE_TOKEN = 502,
    COORDI_CODE_WRONG_RESULT = 601,
};

/* ---- answers ---- */

/* Everything an endpoint can say. */
typedef enum coordi_say {
    COORDI_SAY_NOTHING, /* checks passed so far */
    /* both */
    COORDI_SAY_SHUTTING_DOWN,
    COORDI_SAY_NO_CHANNEL,
    COORDI_SAY_BAD_CHANNEL,
    COORDI_SAY_WRONG_CHANNEL,
    COORDI_SAY_PONG,
    COORDI_SAY_SHUTDOWN_LATER,
    COORDI_SAY_NO_ENDPOINT,
    COORDI_SAY_NO_METHOD,
    /* slaves */
    COORDI_SAY_NO_MASTER_TOKEN,
    COORDI_SAY_WRONG_MASTER_TOKEN,
    COORDI_SAY_NO_OWN_SLAVE_TOKEN,
    COORDI_SAY_WRONG_OWN_SLAVE_TOKEN,
    COORDI_SAY_CONNECTED,
    COORDI_SAY_ALREADY_CONNECTED,
    COORDI_SAY_CONNECT_REFUSED,
    COORDI_SAY_DISCONNECTED,
    COORDI_SAY_NOT_CONNECTED,
    COORDI_SAY_DISCONNECT_REFUSED,
    COORDI_SAY_TASK_RECEIVED,
    COORDI_SAY_BUSY,
    COORDI_SAY_TASK_REFUSED,
    COORDI_SAY_CANCEL,
    COORDI_SAY_BAD_CONNECT,    /* with a message of ours: what is wrong with the body */
    COORDI_SAY_BAD_DISCONNECT, /* likewise */
    COORDI_SAY_BAD_TASK,       /* likewise */
    /* masters */
    COORDI_SAY_NO_SLAVE_TOKEN,
    COORDI_SAY_WRONG_SLAVE_TOKEN,
    COORDI_SAY_NO_OWN_MASTER_TOKEN,
    COORDI_SAY_WRONG_OWN_MASTER_TOKEN,
    COORDI_SAY_HEARTBEAT,
    COORDI_SAY_RESULT,
    COORDI_SAY_NO_TASK,
    COORDI_SAY_NO_TASK_ID,
    COORDI_SAY_BAD_RESULT, /* with a message of ours */
    COORDI_SAY_COUNT
} coordi_say;

/* HTTP status of an answer. */
int coordi_wire_status(coordi_say say);

/* The body of an answer. `message` NULL: the recorded one; `data` empty: null. The text
 * is yours (coordi_free); NULL when memory is out. */
char *coordi_wire_answer(coordi_say say, const char *message, coord_text data,
                         size_t *len);

/* What somebody answered us. Slices borrow from the body. */
typedef struct coordi_answer {
    bool success;
    int code;
    coord_text message; /* raw JSON string; may be empty */
    coord_text data;    /* raw JSON; may be empty */
} coordi_answer;

/* Reads an answer. An HTTP status of 400 and more is a failure whatever the body says; a
 * body with "success": false is a failure whatever the status (601 comes with 200); an
 * HTML page, an empty or a broken body is COORD_ERR_PROTOCOL with the status in the text.
 * On COORD_OK the peer's word is yes. COORD_ERR_REFUSED: it is no; *ret is filled in and
 * err says so in the peer's words. `what` names the request in errors: "connect to a:1".
 */
coord_status coordi_wire_read_answer(int http_status, coord_text body, const char *what,
                                     coordi_answer *ret, coord_error *err);

/* ---- checks before the body ---- */

/* The Channel header. `header` NULL: absent. */
coordi_say coordi_wire_check_channel(const char *header, int64_t own);

/* What a Flask endpoint sees of a body: nothing, when it was sent as a form. */
coord_text coordi_wire_seen_body(const char *content_type, coord_text body);

/* ---- requests ---- */

/* Builders: the text is yours; NULL when memory is out. */
char *coordi_wire_connect(const char *master_address, coord_text data, size_t *len);
char *coordi_wire_disconnect(coord_text data, size_t *len);
char *coordi_wire_new_task(const char *id, coord_text data, size_t *len);
char *coordi_wire_result(const char *id, coord_text result, size_t *len); /* falsy: {} */
char *coordi_wire_cancel(const char *id, size_t *len);
char *coordi_wire_nothing(size_t *len); /* {} */

/* What a body says. Slices borrow from the body and are raw JSON. */
typedef struct coordi_message {
    coord_text master; /* "address" of "master": a string */
    coord_text id;     /* "id" of "task": any type */
    coord_text data;   /* "data" */
    coord_text result; /* "result" */
    bool malformed;    /* no body, or no JSON: reported before any state is looked at */
} coordi_message;

/* Readers. COORDI_SAY_NOTHING: fine. Else the answer to give, with the message in `why`,
 * which has `why_size` bytes. The id is not looked at: refusal comes before that. */
coordi_say coordi_wire_read_connect(coord_text body, coordi_message *ret, char *why,
                                    size_t why_size);
coordi_say coordi_wire_read_disconnect(coord_text body, coordi_message *ret, char *why,
                                       size_t why_size);
coordi_say coordi_wire_read_new_task(coord_text body, coordi_message *ret, char *why,
                                     size_t why_size);
/* These parse the id too. */
coordi_say coordi_wire_read_result(coord_text body, coordi_message *ret,
                                   char id[COORDI_UUID_SIZE], char *why, size_t why_size);
coordi_say coordi_wire_read_cancel(coord_text body, coordi_message *ret,
                                   char id[COORDI_UUID_SIZE], char *why, size_t why_size);

/* The id of a task as a peer spells it: a JSON string that Python's UUID() takes. */
bool coordi_wire_read_id(coord_text raw, char id[COORDI_UUID_SIZE]);

/* The task's id in a body of which only the first part is there. */
bool coordi_wire_prefix_id(coord_text body, char id[COORDI_UUID_SIZE]);

#endif
