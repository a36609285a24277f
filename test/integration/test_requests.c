/* Requests that were not recorded, and are answered as the reference would: odd
 * spellings, odd ways to arrive, and bodies that lie about their size. */
#include "support/raw_http.h"
#include "support/recording.h"
#include "support/werkzeug.h"

#include "coord.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 30000, CHANNEL = 7, ANSWER_MAX = 8192 };

/* ---- a slave and a master of our own ---- */

/* A slave whose master is scripted, or a master whose slave is. */
typedef struct rig {
    coord_slave *slave;
    coord_master *master;
    werkzeug *peer;
    coord_connection *connection;
    char token[128]; /* of the connection to the scripted slave */
    uint16_t port;   /* ours */
} rig;

/* What was answered. */
typedef struct said {
    int status;
    int code;
    char text[ANSWER_MAX]; /* head and body */
} said;

static coord_status take_all(coord_slave *slave, coord_text data, coord_out *out,
                             void *user)
{
    (void)slave;
    (void)data;
    (void)out;
    (void)user;
    return COORD_OK;
}

static int open_slave(void **state)
{
    rig *r = calloc(1, sizeof *r);
    coord_slave_options o;
    assert_non_null(r);
    coord_slave_options_init(&o, sizeof o);
    o.channel = CHANNEL;
    o.heartbeat_ms = 600000;
    o.on_connect = take_all; /* so that answers come later */
    o.process_task = take_all;
    assert_int_equal(coord_slave_create(&o, &r->slave, NULL), COORD_OK);
    r->port = coord_slave_port(r->slave);
    r->peer = werkzeug_start(WERKZEUG_2_2, NULL, NULL);
    *state = r;
    return 0;
}

static void note_token(werkzeug *w, const werkzeug_request *request,
                       werkzeug_answer *answer, void *user)
{
    rig *r = user;
    (void)w;
    (void)answer;
    if (strcmp(request->path, "/connect") == 0) {
        (void)snprintf(r->token, sizeof r->token, "%s", request->token);
    }
}

static int open_master(void **state)
{
    rig *r = calloc(1, sizeof *r);
    coord_master_options o;
    coord_connection_options c;
    assert_non_null(r);
    coord_master_options_init(&o, sizeof o);
    o.channel = CHANNEL;
    o.max_body_bytes = 1 << 20;
    o.heartbeat_tolerance_ms = 600000;
    assert_int_equal(coord_master_create(&o, &r->master, NULL), COORD_OK);
    r->port = coord_master_port(r->master);
    r->peer = werkzeug_start(WERKZEUG_2_2, note_token, r);
    coord_connection_options_init(&c, sizeof c);
    c.id = "slave";
    c.host = "127.0.0.1";
    c.port = werkzeug_port(r->peer);
    assert_int_equal(coord_master_new_connection(r->master, &c, &r->connection, NULL),
                     COORD_OK);
    assert_int_equal(
        coord_connection_connect(r->connection, coord_text_of("{}"), WAIT_MS, NULL),
        COORD_OK);
    *state = r;
    return 0;
}

static int close_rig(void **state)
{
    rig *r = *state;
    coord_connection_destroy(r->connection);
    coord_master_destroy(r->master);
    coord_slave_destroy(r->slave);
    werkzeug_stop(r->peer);
    free(r);
    return 0;
}

static coord_task *start_task(rig *r)
{
    coord_task *task = NULL;
    coord_error err = {0};
    assert_int_equal(
        coord_connection_new_task(r->connection, coord_text_of("{}"), &task, NULL),
        COORD_OK);
    if (coord_task_start(task, WAIT_MS, 0, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    return task;
}

/* ---- asking ---- */

/* Reads one answer, with or without a body. */
static void hear(int fd, said *s, bool head_only)
{
    if (!raw_read_answer(fd, s->text, sizeof s->text, head_only) ||
        sscanf(s->text, "HTTP/1.1 %d ", &s->status) != 1) {
        fail_msg("no answer, but: %s", s->text);
    }
    const char *code = strstr(s->text, "{\"code\":");
    s->code = code == NULL ? -1 : atoi(code + 8);
}

/* Makes a request; `headers` are whole lines. */
static size_t print(char *out, size_t size, const char *what, const char *headers,
                    const char *body)
{
    int len = snprintf(
        out, size, "%s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sContent-Length: %zu\r\n\r\n%s",
        what, headers, strlen(body), body);
    assert_true(len > 0 && (size_t)len < size);
    return (size_t)len;
}

static void ask(const rig *r, const char *what, const char *headers, const char *body,
                said *s)
{
    char text[4096];
    size_t len = print(text, sizeof text, what, headers, body);
    int fd = raw_connect(r->port);
    raw_send(fd, text, len);
    hear(fd, s, false);
    (void)close(fd);
}

static void assert_said(const said *s, int status, int code)
{
    if (s->status != status || s->code != code) {
        fail_msg("expected %d and code %d, got: %s", status, code, s->text);
    }
}

static void ask_for(const rig *r, const char *what, const char *headers, const char *body,
                    int status, int code)
{
    said s;
    ask(r, what, headers, body, &s);
    assert_said(&s, status, code);
    if (status >= 400) {
        recording_check_refusal(r->slave == NULL ? "master" : "slave",
                                strstr(s.text, "\r\n\r\n") + 4);
    }
}

/* {"master": ..., "data": {}} for the rig's master; static. */
static const char *connect_body(const rig *r)
{
    static char body[128];
    (void)snprintf(body, sizeof body,
                   "{\"master\": {\"address\": \"http://127.0.0.1:%u\"}, \"data\": {}}",
                   (unsigned)werkzeug_port(r->peer));
    return body;
}

#define KNOWN "Channel: 7\r\nToken: tok\r\n"

static void connect_slave(const rig *r)
{
    ask_for(r, "POST /connect", KNOWN, connect_body(r), 200, 0);
}

/* ---- headers ---- */

static void a_channel_is_any_spelling_of_the_integer(void **state)
{
    static const struct {
        const char *spelling;
        int status;
        int code;
    } CASES[] = {
        {"+7", 200, 0},      {"07", 200, 0},      {"0000000007", 200, 0},
        {"  7  ", 200, 0},   {"\t7\t", 200, 0},   {"-7", 403, 202},
        {"8", 403, 202},     {"70", 403, 202},    {"99999999999999999999", 403, 202},
        {"-0", 403, 202},    {"7.0", 400, 202},   {"0x7", 400, 202},
        {"7 7", 400, 202},   {"+-7", 400, 202},   {"+ 7", 400, 202},
        {"7a", 400, 202},    {"seven", 400, 202}, {"+", 400, 202},
        {"\"7\"", 400, 202}, {"7,7", 400, 202},   {"7;q=1", 400, 202},
        {"   ", 400, 201},   {"", 400, 201},
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char headers[128];
        (void)snprintf(headers, sizeof headers, "Token: tok\r\nChannel: %s\r\n",
                       CASES[i].spelling);
        ask_for(r, "POST /connect", headers, connect_body(r), CASES[i].status,
                CASES[i].code);
        if (CASES[i].status == 200) {
            ask_for(r, "DELETE /disconnect", headers, "{\"data\": {}}", 200, 0);
        }
    }
}

static void names_of_headers_may_be_written_in_any_case(void **state)
{
    rig *r = *state;
    ask_for(r, "POST /connect", "CHANNEL: 7\r\ntoken: tok\r\n", connect_body(r), 200, 0);
    ask_for(r, "DELETE /disconnect", "cHaNnEl:7\r\ntOkEn:tok\r\n", "{\"data\": null}",
            200, 0);
}

static void an_empty_token_counts_as_given(void **state)
{
    static const char TASK[] =
        "{\"task\": {\"id\": \"12345678123456781234567812345678\"}, \"data\": {}}";
    rig *r = *state;
    ask_for(r, "GET /ping", "", "{}", 400, 401);
    ask_for(r, "GET /ping", "Token:\r\n", "{}", 403, 402);
    ask_for(r, "POST /connect", "Channel: 7\r\n", connect_body(r), 400, 301);
    ask_for(r, "POST /task/new", "Channel: 7\r\nToken:\r\n", TASK, 403, 302);
    ask_for(r, "POST /connect", "Channel: 7\r\nToken:\r\n", connect_body(r), 200, 0);
    ask_for(r, "POST /task/new", KNOWN, TASK, 403, 302);
    ask_for(r, "POST /task/new", "Channel: 7\r\n", TASK, 400, 301);
    ask_for(r, "POST /task/new", "Channel: 7\r\nToken:\r\n", TASK, 200, 0);
    assert_non_null(
        strstr(werkzeug_raw(r->peer, "/slave/task/complete", 0, NULL), "\r\nToken:\r\n"));
    ask_for(r, "DELETE /disconnect", "Channel: 7\r\nToken:\r\n", "{\"data\": {}}", 200,
            0);
}

static void a_token_may_be_long_but_not_endless(void **state)
{
    rig *r = *state;
    for (int len = 128; len <= 129; len++) {
        char headers[256];
        (void)snprintf(headers, sizeof headers, "Channel: 7\r\nToken: %0*d\r\n", len, 0);
        ask_for(r, "POST /connect", headers, connect_body(r), len == 128 ? 200 : 400,
                len == 128 ? 0 : 503);
        if (len == 128) {
            ask_for(r, "DELETE /disconnect", headers, "{\"data\": {}}", 200, 0);
        }
    }
}

static void an_empty_token_is_given_to_a_master_too(void **state)
{
    rig *r = *state;
    ask_for(r, "GET /slave/heartbeat", "Channel: 7\r\n", "{}", 400, 501);
    ask_for(r, "GET /slave/heartbeat", "Channel: 7\r\nToken:\r\n", "{}", 403, 502);
    ask_for(r, "GET /ping", "", "{}", 400, 401);
    ask_for(r, "GET /ping", "Token:\r\n", "{}", 403, 402);
}

static void a_header_given_twice_counts_as_one(void **state)
{
    rig *r = *state;
    ask_for(r, "POST /connect", "Channel: 7\r\nChannel: 7\r\nToken: a\r\n",
            connect_body(r), 400, 202);
    ask_for(r, "POST /connect", "Token: a\r\nChannel: 7\r\nToken: b\r\n", connect_body(r),
            200, 0);
    ask_for(r, "DELETE /disconnect", "Channel: 7\r\nToken: a\r\n", "{\"data\": 1}", 403,
            302);
    ask_for(r, "DELETE /disconnect", "Channel: 7\r\nToken: b\r\nToken: a\r\n",
            "{\"data\": 1}", 403, 302);
    ask_for(r, "DELETE /disconnect", "Channel: 7\r\nToken: a,b\r\n", "{\"data\": 1}", 200,
            0);
}

static void only_a_form_hides_the_body(void **state)
{
    static const char *const SEEN[] = {"application/json",
                                       "application/json; charset=utf-8", "text/plain",
                                       "", "multipart/form-data; boundary=x"};
    static const char *const HIDDEN[] = {
        "application/x-www-form-urlencoded",
        "Application/X-WWW-Form-Urlencoded; charset=utf-8"};
    rig *r = *state;
    char headers[160];
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(headers, sizeof headers, KNOWN "Content-Type: %s\r\n", HIDDEN[i]);
        ask_for(r, "POST /connect", headers, connect_body(r), 400, 503);
    }
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(headers, sizeof headers, KNOWN "Content-Type: %s\r\n", SEEN[i]);
        ask_for(r, "POST /connect", headers, connect_body(r), 200, 0);
        ask_for(r, "DELETE /disconnect", headers, "{\"data\": 1}", 200, 0);
    }
}

/* ---- ids ---- */

/* Python's uuid.UUID() was asked about each of these. */
static void an_id_is_any_spelling_that_python_takes(void **state)
{
    static const char *const GOOD[] = {
        "12345678-1234-5678-1234-56781234abcd",
        "12345678-1234-5678-1234-56781234ABCD",
        "1234567812345678123456781234aBcD",
        "-1-2345678123456781234-56781234abcd-",
        "{12345678-1234-5678-1234-56781234abcd}",
        "{{12345678-1234-5678-1234-56781234abcd}}}",
        "}1234567812345678123456781234abcd{",
        "{-1234567812345678123456781234abcd-}",
        "urn:uuid:1234567812345678123456781234abcd",
        "uuid:urn:1234567812345678123456781234abcd",
        "{urn:uuid:12345678-1234-5678-1234-56781234abcd}",
        "123456781234567812345678urn:1234abcd",
        "uurn:uid:1234567812345678123456781234abcd",
        "\\u0031234567812345678123456781234abcd",
    };
    rig *r = *state;
    connect_slave(r);
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        char body[256];
        (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"data\": {}}",
                       GOOD[i]);
        ask_for(r, "POST /task/new", KNOWN, body, 200, 0);
        const char *sent = werkzeug_raw(r->peer, "/slave/task/complete", i, NULL);
        if (strstr(sent, "{\"id\": \"12345678-1234-5678-1234-56781234abcd\"}") == NULL) {
            fail_msg("for %s it sent %s", GOOD[i], sent);
        }
    }
}

static void what_python_does_not_take_for_an_id_is_refused(void **state)
{
    static const char *const BAD[] = {
        "\"\"",
        "\"1234567812345678123456781234abc\"",
        "\"1234567812345678123456781234abcde\"",
        "\" 1234567812345678123456781234abcd\"",
        "\"1234567812345678123456781234abcd\\n\"",
        "\"12345678{1234567812345678}1234abcd\"",
        "\"-{1234567812345678123456781234abcd}-\"",
        "\"URN:1234567812345678123456781234abcd\"",
        "\"0x345678123456781234567812345678ab\"",
        "\"+234567812345678123456781234abcde\"",
        "\"1234567812345678123456781234abcg\"",
        "\"1234567812345678123456781234\\u0000bcd\"",
        "1234567812345678",
        "null",
        "true",
        "[\"12345678-1234-5678-1234-56781234abcd\"]",
        "{}",
    };
    rig *r = *state;
    connect_slave(r);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char body[256];
        (void)snprintf(body, sizeof body, "{\"task\": {\"id\": %s}, \"data\": {}}",
                       BAD[i]);
        ask_for(r, "POST /task/new", KNOWN, body, 400, 602);
    }
    assert_int_equal(werkzeug_count(r->peer, NULL), 0);
}

static void a_result_finds_its_task_by_any_spelling(void **state)
{
    rig *r = *state;
    coord_task *task = start_task(r);
    char headers[256];
    char body[256];
    char upper[64];
    const char *id = coord_task_id(task);
    for (size_t i = 0; i <= strlen(id); i++) {
        bool letter = id[i] >= 'a' && id[i] <= 'f';
        upper[i] = (char)(letter ? id[i] - 'a' + 'A' : id[i]);
    }
    (void)snprintf(headers, sizeof headers, "Channel: 7\r\nToken: %s\r\n", r->token);
    (void)snprintf(body, sizeof body,
                   "{\"result\": [1, NaN], \"more\": 1, \"task\": {\"id\": "
                   "\"urn:uuid:{%s}\", \"x\": {}}}",
                   upper);
    ask_for(r, "PUT /slave/task/complete", headers, body, 200, 0);
    assert_int_equal(coord_task_join(task, WAIT_MS, NULL), COORD_OK);
    coord_text result = coord_task_result(task);
    assert_int_equal(result.len, 8);
    assert_memory_equal(result.ptr, "[1, NaN]", 8);
    coord_task_unref(task);
}

/* ---- paths, methods and bodies ---- */

static void head_is_get_without_a_body(void **state)
{
    rig *r = *state;
    said s;
    int fd = raw_connect(r->port);
    raw_sends(fd, "HEAD /ping HTTP/1.1\r\nHost: x\r\nToken: x\r\n\r\n");
    hear(fd, &s, true);
    assert_int_equal(s.status, 403);
    assert_non_null(strstr(s.text, "\r\nContent-Length: "));
    raw_sends(fd, "HEAD /nosuch HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}");
    hear(fd, &s, true);
    assert_int_equal(s.status, 404);
    raw_sends(fd, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
    hear(fd, &s, false); /* begins where the head ended: no body came in between */
    assert_said(&s, 400, 401);
    (void)close(fd);
}

static void paths_and_methods_are_taken_to_the_letter(void **state)
{
    static const struct {
        const char *what;
        int status;
    } CASES[] = {
        {"GET /ping/", 404},       {"GET //ping", 404},
        {"GET /Ping", 404},        {"GET /", 404},
        {"POST /connect/", 404},   {"GET /slave/heartbeat", 404},
        {"GET /connect", 405},     {"PUT /task/new", 405},
        {"POST /disconnect", 405}, {"GET /disconnect", 405},
        {"GET /shutdown", 405},    {"PATCH /ping", 405},
        {"BREW /connect", 405},    {"DELETE /task/new", 405},
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        ask_for(r, CASES[i].what, KNOWN, "{}", CASES[i].status, 402);
    }
    ask_for(r, "GET /ping?x=1", "", "{}", 400, 401); /* a query is no part of it */
    ask_for(r, "GET /pi%6Eg", "", "{}", 400, 401);
}

static void what_is_not_json_is_said_before_anything_of_the_state(void **state)
{
    static const char *const BAD[] = {
        "",
        "{",
        "{\"data\": {},}",
        "{'data': 1}",
        "\xff\xfe",
        "{} {}",
        "\xef\xbb\xbf{}",
        "{\"data\": \"\xc0\xaf\"}",
        "{\"a\": 01}",
        "{\"a\": .5}",
        "{\"a\": \"\n\"}",
        "nan",
    };
    static const char *const NO_OBJECT[] = {"[]", "1", "null", "\"data\"", " true "};
    rig *r = *state;
    for (int connected = 0; connected < 2; connected++) {
        for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
            ask_for(r, "POST /connect", KNOWN, BAD[i], 400, 503);
        }
        for (size_t i = 0; i < sizeof NO_OBJECT / sizeof NO_OBJECT[0]; i++) {
            ask_for(r, "POST /connect", KNOWN, NO_OBJECT[i], 400,
                    connected == 0 ? 503 : 501);
        }
        if (connected == 0) {
            connect_slave(r);
        }
    }
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        ask_for(r, "DELETE /disconnect", KNOWN, BAD[i], 400, 504);
        ask_for(r, "POST /task/new", KNOWN, BAD[i], 400, 602);
    }
    assert_true(coord_slave_is_connected(r->slave));
}

static void an_address_that_can_not_be_reached_is_refused(void **state)
{
    static const char *const BAD[] = {
        "\"\"",
        "1",
        "null",
        "\"http://\"",
        "\"http://h:99999\"",
        "\"https://127.0.0.1:443\"",
        "\"ftp://127.0.0.1\"",
        "\"http://127.0.0.1:1/a b\"",
        "\"127.0.0.1:1\\u0000\"",
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char body[160];
        (void)snprintf(body, sizeof body, "{\"master\": {\"address\": %s}, \"data\": {}}",
                       BAD[i]);
        ask_for(r, "POST /connect", KNOWN, body, 400, 503);
        assert_false(coord_slave_is_connected(r->slave));
        ask_for(r, "POST /task/new", KNOWN, "{}", 403, 302); /* its token is not kept */
    }
}

/* ---- how requests arrive ---- */

static void a_chunked_request_is_read(void **state)
{
    rig *r = *state;
    said s;
    char text[512];
    const char *body = connect_body(r);
    int half = (int)strlen(body) / 2;
    int fd = raw_connect(r->port);
    (void)snprintf(text, sizeof text,
                   "POST /connect HTTP/1.1\r\nHost: x\r\n" KNOWN
                   "Transfer-Encoding: chunked\r\n\r\n%x\r\n%.*s\r\n%x;why=not\r\n%s\r\n"
                   "0\r\n\r\n",
                   half, half, body, (int)strlen(body) - half, body + half);
    raw_sends(fd, text);
    hear(fd, &s, false);
    assert_said(&s, 200, 0);
    (void)close(fd);
    assert_true(coord_slave_is_connected(r->slave));
}

static void a_request_may_come_in_pieces(void **state)
{
    rig *r = *state;
    said s;
    char text[512];
    size_t len = print(text, sizeof text, "POST /connect", KNOWN, connect_body(r));
    size_t head = (size_t)(strstr(text, "\r\n\r\n") + 4 - text);
    int fd = raw_connect(r->port);
    raw_send(fd, text, head); /* as Python sends it */
    raw_send(fd, text + head, len - head);
    hear(fd, &s, false);
    assert_said(&s, 200, 0);
    len = print(text, sizeof text, "DELETE /disconnect", KNOWN, "{\"data\": {}}");
    for (size_t i = 0; i < len; i++) {
        raw_send(fd, text + i, 1);
    }
    hear(fd, &s, false);
    assert_said(&s, 200, 0);
    (void)close(fd);
}

static void requests_sent_in_a_row_are_answered_in_a_row(void **state)
{
    enum { TIMES = 20 };
    rig *r = *state;
    said s;
    char text[2 * TIMES * 512];
    size_t len = 0;
    for (int i = 0; i < TIMES; i++) {
        len +=
            print(text + len, sizeof text - len, "POST /connect", KNOWN, connect_body(r));
        len += print(text + len, sizeof text - len, "DELETE /disconnect", KNOWN,
                     "{\"data\": {}}");
    }
    int fd = raw_connect(r->port);
    raw_send(fd, text, len);
    for (int i = 0; i < TIMES; i++) {
        hear(fd, &s, false);
        assert_said(&s, 200, 0);
        assert_non_null(strstr(s.text, "Connect success."));
        hear(fd, &s, false);
        assert_said(&s, 200, 0);
        assert_non_null(strstr(s.text, "Disconnect success."));
    }
    (void)close(fd);
}

static void a_body_that_ends_early_does_nothing(void **state)
{
    rig *r = *state;
    char text[512];
    size_t len = print(text, sizeof text, "POST /connect", KNOWN, connect_body(r));
    for (int how = 0; how < 3; how++) {
        int fd = raw_connect(r->port);
        raw_send(fd, text, len - 1);
        if (how == 0) {
            assert_int_equal(shutdown(fd, SHUT_WR), 0); /* its end comes with its bytes */
            assert_true(raw_sees_end(fd));
        }
        if (how == 2) {
            raw_reset(fd);
        } else {
            (void)close(fd);
        }
        ask_for(r, "GET /ping", "", "{}", 400, 401); /* it is all there */
        assert_false(coord_slave_is_connected(r->slave));
    }
}

static void a_body_that_is_longer_than_announced_is_cut(void **state)
{
    rig *r = *state;
    said s;
    char text[512];
    size_t len = print(text, sizeof text, "POST /connect", KNOWN, connect_body(r));
    int fd = raw_connect(r->port);
    (void)snprintf(text + len, sizeof text - len, "and so on\r\n\r\n");
    raw_send(fd, text, strlen(text));
    hear(fd, &s, false);
    assert_said(&s, 200, 0);
    assert_true(raw_sees_end(fd)); /* the rest is no request */
    (void)close(fd);
    ask_for(r, "DELETE /disconnect", KNOWN, "{\"data\": {}}", 200, 0);
}

/* In kB: the most that this process has ever asked for. */
static long peak_memory(void)
{
    char line[256];
    long peak = -1;
    FILE *f = fopen("/proc/self/status", "re");
    assert_non_null(f);
    while (peak < 0 && fgets(line, sizeof line, f) != NULL) {
        (void)sscanf(line, "VmPeak: %ld kB", &peak);
    }
    (void)fclose(f);
    assert_true(peak > 0);
    return peak;
}

static void a_body_that_is_only_announced_takes_no_memory(void **state)
{
    static const char *const LENGTH[] = {"8589934592",
                                         "9223372036854775807",
                                         "18446744073709551615",
                                         "99999999999999999999999",
                                         "-1",
                                         "7x"};
    rig *r = *state;
    int fds[6];
    long before = peak_memory();
    for (size_t i = 0; i < 6; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "POST /connect HTTP/1.1\r\nHost: x\r\n" KNOWN
                       "Content-Length: %s\r\n\r\n{\"master\": ",
                       LENGTH[i]);
        fds[i] = raw_connect(r->port);
        raw_sends(fds[i], text);
    }
    for (int i = 0; i < 3; i++) { /* meanwhile others are served */
        connect_slave(r);
        ask_for(r, "DELETE /disconnect", KNOWN, "{\"data\": {}}", 200, 0);
    }
    assert_true(peak_memory() - before < 512 * 1024);
    for (size_t i = 0; i < 6; i++) {
        (void)close(fds[i]);
    }
    connect_slave(r);
}

/* ---- results that are too big ---- */

static void send_big_result(rig *r, const coord_task *task, bool chunked, size_t len,
                            said *s)
{
    char head[512];
    char start[128];
    char *filling = malloc(len);
    assert_non_null(filling);
    memset(filling, 'x', len);
    int start_len =
        snprintf(start, sizeof start, "{\"task\": {\"id\": \"%s\"}, \"result\": \"",
                 coord_task_id(task));
    int fd = raw_connect(r->port);
    int head_len = snprintf(head, sizeof head,
                            "PUT /slave/task/complete HTTP/1.1\r\nHost: x\r\n"
                            "Channel: 7\r\nToken: %s\r\n",
                            r->token);
    if (chunked) {
        (void)snprintf(head + head_len, sizeof head - (size_t)head_len,
                       "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
                       len + (size_t)start_len + 2);
    } else {
        (void)snprintf(head + head_len, sizeof head - (size_t)head_len,
                       "Content-Length: %zu\r\n\r\n", len + (size_t)start_len + 2);
    }
    raw_sends(fd, head);
    raw_sends(fd, start);
    raw_send(fd, filling, len);
    raw_sends(fd, chunked ? "\"}\r\n0\r\n\r\n" : "\"}");
    hear(fd, s, false);
    raw_sends(fd, "GET /ping HTTP/1.1\r\nHost: x\r\n\r\n");
    said next;
    hear(fd, &next, false); /* the connection goes on behind the last byte */
    assert_said(&next, 400, 401);
    (void)close(fd);
    free(filling);
}

static void a_result_that_is_too_big_is_drained_and_fails_its_task(void **state)
{
    rig *r = *state;
    for (int chunked = 0; chunked < 2; chunked++) {
        said s;
        coord_error err = {0};
        coord_task *task = start_task(r);
        send_big_result(r, task, chunked == 1, (size_t)3 << 20, &s);
        assert_said(&s, 200, 0);
        assert_int_equal(coord_task_join(task, WAIT_MS, &err), COORD_ERR_TOO_BIG);
        assert_non_null(strstr(err.text, "max_body_bytes (1048576)"));
        assert_non_null(strstr(err.text, coord_task_id(task)));
        assert_int_equal(coord_task_get_status(task), COORD_TASK_FAILED);
        coord_task_unref(task);
    }
    for (int chunked = 0; chunked < 2; chunked++) { /* the next ones pass */
        said s;
        coord_task *task = start_task(r);
        send_big_result(r, task, chunked == 1, (size_t)1 << 19, &s);
        assert_said(&s, 200, 0);
        assert_int_equal(coord_task_join(task, WAIT_MS, NULL), COORD_OK);
        assert_int_equal(coord_task_result(task).len, ((size_t)1 << 19) + 2);
        coord_task_unref(task);
    }
}

static void a_task_that_is_too_big_is_refused(void **state)
{
    enum { BIG = (16 << 20) + 1 };
    rig *r = *state;
    said s;
    char head[256];
    char *filling = malloc(BIG);
    connect_slave(r);
    assert_non_null(filling);
    memset(filling, ' ', BIG);
    int fd = raw_connect(r->port);
    (void)snprintf(
        head, sizeof head,
        "POST /task/new HTTP/1.1\r\nHost: x\r\n" KNOWN "Content-Length: %d\r\n\r\n", BIG);
    raw_sends(fd, head);
    raw_send(fd, filling, BIG);
    hear(fd, &s, false);
    assert_said(&s, 400, 602);
    assert_non_null(strstr(s.text, "The body is over 16777216 bytes."));
    (void)close(fd);
    free(filling);
}

int main(void)
{
#define OF_SLAVE(name) cmocka_unit_test_setup_teardown(name, open_slave, close_rig)
#define OF_MASTER(name) cmocka_unit_test_setup_teardown(name, open_master, close_rig)
    const struct CMUnitTest tests[] = {
        OF_SLAVE(a_channel_is_any_spelling_of_the_integer),
        OF_SLAVE(names_of_headers_may_be_written_in_any_case),
        OF_SLAVE(an_empty_token_counts_as_given),
        OF_SLAVE(a_token_may_be_long_but_not_endless),
        OF_MASTER(an_empty_token_is_given_to_a_master_too),
        OF_SLAVE(a_header_given_twice_counts_as_one),
        OF_SLAVE(only_a_form_hides_the_body),
        OF_SLAVE(an_id_is_any_spelling_that_python_takes),
        OF_SLAVE(what_python_does_not_take_for_an_id_is_refused),
        OF_MASTER(a_result_finds_its_task_by_any_spelling),
        OF_SLAVE(head_is_get_without_a_body),
        OF_SLAVE(paths_and_methods_are_taken_to_the_letter),
        OF_SLAVE(what_is_not_json_is_said_before_anything_of_the_state),
        OF_SLAVE(an_address_that_can_not_be_reached_is_refused),
        OF_SLAVE(a_chunked_request_is_read),
        OF_SLAVE(a_request_may_come_in_pieces),
        OF_SLAVE(requests_sent_in_a_row_are_answered_in_a_row),
        OF_SLAVE(a_body_that_ends_early_does_nothing),
        OF_SLAVE(a_body_that_is_longer_than_announced_is_cut),
        OF_SLAVE(a_body_that_is_only_announced_takes_no_memory),
        OF_MASTER(a_result_that_is_too_big_is_drained_and_fails_its_task),
        OF_SLAVE(a_task_that_is_too_big_is_refused),
    };
    return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
