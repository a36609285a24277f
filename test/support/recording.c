#include "support/recording.h"

#include "coord/json.h"
#include "support/raw_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILE_MAX = 1 << 20, ANSWER_MAX = 8192, MESSAGE_MIN = 12 };

/* ---- reading ---- */

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "re"); /* tests run in the top folder */
    if (f == NULL) {
        fail_msg("%s can't be read", path);
    }
    char *text = calloc(1, FILE_MAX);
    assert_non_null(text);
    size_t len = fread(text, 1, FILE_MAX - 1, f);
    (void)fclose(f);
    assert_true(len > 0 && len < FILE_MAX - 1);
    return text;
}

static json_t *parse(const char *text)
{
    json_t *root = NULL;
    coord_error err;
    if (coord_json_parse(coord_text_of(text), &root, &err) != COORD_OK) {
        fail_msg("%s in: %.200s", err.text, text);
    }
    return root;
}

void recording_open(recording *r, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "test/vectors/%s", name);
    char *text = read_file(path);
    r->root = parse(text);
    free(text);
    r->steps = json_object_get(r->root, "steps");
    r->slave_sent = json_object_get(r->root, "slave_sent");
    assert_true(json_is_array(r->steps));
    assert_int_equal(coord_json_get_string(r->root, "target", &r->target, NULL),
                     COORD_OK);
}

void recording_close(recording *r)
{
    json_decref(r->root);
    *r = (recording){0};
}

size_t recording_count(const recording *r)
{
    return json_array_size(r->steps);
}

static json_t *step(const recording *r, size_t n)
{
    json_t *s = json_array_get(r->steps, n);
    assert_non_null(s);
    return s;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = NULL;
    assert_int_equal(coord_json_get_string(object, key, &text, NULL), COORD_OK);
    return text;
}

const char *recording_title(recording *r, size_t n)
{
    char title[160];
    json_t *s = step(r, n);
    (void)snprintf(title, sizeof title, "%s %zu: %s", r->target, n + 1,
                   text_of(s, "name"));
    assert_int_equal(json_object_set_new(s, "title", json_string(title)), 0);
    return text_of(s, "title");
}

bool recording_pauses(const recording *r, size_t n)
{
    double pause = 0.0;
    assert_int_equal(coord_json_get_double(step(r, n), "pause", &pause, NULL), COORD_OK);
    return pause > 0.0;
}

static int status_of(const json_t *s)
{
    int64_t status = 0;
    assert_int_equal(coord_json_get_int(s, "expect.status", &status, NULL), COORD_OK);
    return (int)status;
}

bool recording_gives_task(const recording *r, size_t n)
{
    const json_t *s = step(r, n);
    return strcmp(text_of(s, "path"), "/task/new") == 0 && status_of(s) == 200;
}

/* ---- asking ---- */

/* A text that grows by the end; asserts that it fits. */
typedef struct text {
    char bytes[4096];
    size_t len;
} text;

static void add(text *to, const char *bytes)
{
    size_t len = strlen(bytes);
    assert_true(to->len + len < sizeof to->bytes);
    memcpy(to->bytes + to->len, bytes, len + 1);
    to->len += len;
}

/* With `name` replaced by `value` wherever it stands. */
static void add_with(text *to, const char *from, const char *name, const char *value)
{
    for (const char *at = strstr(from, name); at != NULL; at = strstr(from, name)) {
        char part[2048];
        (void)snprintf(part, sizeof part, "%.*s", (int)(at - from), from);
        add(to, part);
        add(to, value);
        from = at + strlen(name);
    }
    add(to, from);
}

/* The recording's master listened on a port of its own. */
static void add_body(text *to, const recording *r, const char *body,
                     const recording_target *target)
{
    text with_task = {.len = 0};
    char recorded[32] = "";
    char ours[32];
    int64_t port = 0;
    add_with(&with_task, body, "@TASK@", target->task_id);
    if (coord_json_get_int(r->root, "master_port", &port, NULL) == COORD_OK) {
        (void)snprintf(recorded, sizeof recorded, "127.0.0.1:%d", (int)port);
        (void)snprintf(ours, sizeof ours, "127.0.0.1:%u", (unsigned)target->master_port);
        add_with(to, with_task.bytes, recorded, ours);
    } else {
        add(to, with_task.bytes);
    }
}

static void build(text *to, const recording *r, const json_t *s,
                  const recording_target *target)
{
    text body = {.len = 0};
    char line[256];
    size_t i;
    json_t *header;
    const json_t *recorded = json_object_get(s, "body");

    (void)snprintf(line, sizeof line, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n",
                   text_of(s, "method"), text_of(s, "path"), (unsigned)target->port);
    add(to, line);
    json_array_foreach(json_object_get(s, "headers"), i, header)
    {
        add(to, text_of(header, "[0]"));
        add(to, ": ");
        add_with(to, text_of(header, "[1]"), "@SELF@", target->self_token);
        add(to, "\r\n");
    }
    if (json_is_string(recorded)) {
        add_body(&body, r, text_of(s, "body"), target);
        (void)snprintf(line, sizeof line, "Content-Length: %zu\r\n", body.len);
        add(to, line);
    }
    add(to, "\r\n");
    add(to, body.bytes);
}

/* ---- judging ---- */

/* Does PROTOCOL's table list the code for this target? */
static bool is_listed(const char *target, int code)
{
    char *page = read_file("lib/wire/PROTOCOL");
    bool listed = false;
    for (int i = 0; i < 2; i++) {
        char row[32];
        (void)snprintf(row, sizeof row, "\n    %-4d %-7s ", code,
                       i == 0 ? "both" : target);
        listed = listed || strstr(page, row) != NULL;
    }
    free(page);
    return listed;
}

void recording_check_refusal(const char *target, const char *body)
{
    json_t *got = parse(body);
    bool success = true;
    int64_t code = 0;
    const char *message = "";
    assert_int_equal(json_object_size(got), 4);
    assert_non_null(json_object_get(got, "data"));
    assert_int_equal(coord_json_get_bool(got, "success", &success, NULL), COORD_OK);
    assert_int_equal(coord_json_get_int(got, "code", &code, NULL), COORD_OK);
    assert_int_equal(coord_json_get_string(got, "message", &message, NULL), COORD_OK);
    assert_false(success);
    if (code == 0 || !is_listed(target, (int)code)) {
        fail_msg("a %s has no code %d: %s", target, (int)code, body);
    }
    if (strlen(message) < MESSAGE_MIN || strcmp(message, "Bad request.") == 0) {
        fail_msg("the message says nothing: %s", body);
    }
    json_decref(got);
}

static void check_json(const json_t *want, const char *body)
{
    json_t *got = parse(body);
    if (!json_equal(got, want)) {
        char *words = json_dumps(want, JSON_SORT_KEYS);
        fail_msg("expected %s, got %s", words, body);
    }
    json_decref(got);
}

void recording_play(const recording *r, size_t n, const recording_target *target)
{
    text request = {.len = 0};
    char answer[ANSWER_MAX];
    int status = 0;
    const json_t *s = step(r, n);
    const json_t *want = json_object_get(json_object_get(s, "expect"), "json");
    int expected = status_of(s);

    build(&request, r, s, target);
    int fd = raw_connect(target->port);
    raw_send(fd, request.bytes, request.len);
    bool came = raw_read_answer(fd, answer, sizeof answer, false);
    (void)close(fd);
    if (!came || sscanf(answer, "HTTP/1.1 %d ", &status) != 1) {
        fail_msg("no answer to: %s", request.bytes);
    }
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    if (want == NULL && expected == 500) {
        expected = 400; /* ours is not the server's fault */
    }
    if (status != expected) {
        fail_msg("expected status %d, got: %s", expected, answer);
    }
    if (want != NULL) {
        check_json(want, body);
    } else {
        recording_check_refusal(r->target, body);
    }
}
