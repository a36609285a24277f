/* Our requests, byte by byte, to scripted peers that speak HTTP as the Werkzeugs in the
 * field do, and what becomes of whatever such peers answer. */
#include "support/raw_http.h"
#include "support/werkzeug.h"

#include "coord.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 20000, CHANNEL = 7, RETRY_MS = 40, RULES_MAX = 8 };

/* What the peer answers to the next requests of one path. */
typedef struct rule {
    const char *path;
    int times; /* left */
    werkzeug_answer answer;
} rule;

/* One of ours, and a scripted peer. */
typedef struct rig {
    werkzeug_kind kind;
    werkzeug *peer;
    coord_master *master;
    coord_connection *connection;
    coord_slave *slave;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t news;
    rule rules[RULES_MAX];
    int rule_count;
    int results_first; /* so many results come before the answer to /task/new */
    char token[128];   /* that the master gave */
    unsigned port;     /* where the master wants to be reported to */
    char task_id[64];  /* the last one that came */
    char said[65536];  /* what callbacks and log lines told, a line each */
    const char *work;  /* what process_task answers */
    size_t work_len;
} rig;

static werkzeug *proxy; /* that the environment asks everybody to use */

/* ---- what was said ------------------------------------------------------------------
 */

static void say(rig *r, const char *format, ...) COORD_PRINTF(2, 3);
static void say(rig *r, const char *format, ...)
{
    va_list args;
    (void)pthread_mutex_lock(&r->lock);
    size_t len = strlen(r->said);
    va_start(args, format);
    (void)vsnprintf(r->said + len, sizeof r->said - len, format, args);
    va_end(args);
    (void)pthread_cond_broadcast(&r->news);
    (void)pthread_mutex_unlock(&r->lock);
}

static void await_said(rig *r, const char *text)
{
    struct timespec until;
    bool said = false;
    bool late = false;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_MS / 1000;
    (void)pthread_mutex_lock(&r->lock);
    while (!said && !late) {
        said = strstr(r->said, text) != NULL;
        late = !said && pthread_cond_timedwait(&r->news, &r->lock, &until) == ETIMEDOUT;
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (!said) {
        fail_msg("nobody said \"%s\", only:\n%s", text, r->said);
    }
}

static int count_said(rig *r, const char *text)
{
    int count = 0;
    (void)pthread_mutex_lock(&r->lock);
    for (const char *at = strstr(r->said, text); at != NULL; at = strstr(at + 1, text)) {
        count++;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return count;
}

static void log_line(coord_log_level level, const char *line, void *user)
{
    (void)level;
    say(user, "%s\n", line);
}

/* ---- the peer -----------------------------------------------------------------------
 */

static void script(rig *r, const char *path, int times, werkzeug_answer answer)
{
    (void)pthread_mutex_lock(&r->lock);
    assert_true(r->rule_count < RULES_MAX);
    r->rules[r->rule_count++] = (rule){path, times, answer};
    (void)pthread_mutex_unlock(&r->lock);
}

static void follow(rig *r, const char *path, werkzeug_answer *answer)
{
    for (int i = 0; i < r->rule_count; i++) {
        if (r->rules[i].times > 0 && strcmp(r->rules[i].path, path) == 0) {
            r->rules[i].times--;
            *answer = r->rules[i].answer;
            return;
        }
    }
}

static int put_result(rig *r, const char *id, const char *result)
{
    char body[256];
    int len = snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}",
                       id, result);
    return werkzeug_ask((uint16_t)r->port, "PUT", "/slave/task/complete", CHANNEL,
                        r->token, body, (size_t)len, NULL, 0);
}

/* Takes notes as a slave must; a master's paths need none. */
static void serve(werkzeug *w, const werkzeug_request *request, werkzeug_answer *answer,
                  void *user)
{
    rig *r = user;
    (void)w;
    (void)pthread_mutex_lock(&r->lock);
    follow(r, request->path, answer);
    bool connects = strcmp(request->path, "/connect") == 0;
    if (connects) {
        (void)snprintf(r->token, sizeof r->token, "%s", request->token);
        (void)sscanf(request->body, "{\"master\": {\"address\": \"http://127.0.0.1:%u\"}",
                     &r->port);
    }
    bool task = sscanf(request->body, "{\"task\": {\"id\": \"%36s\"}", r->task_id) == 1;
    bool hurry = task && r->results_first > 0;
    r->results_first -= hurry;
    (void)pthread_mutex_unlock(&r->lock);
    if (connects) {
        int status = werkzeug_ask((uint16_t)r->port, "GET", "/slave/heartbeat", CHANNEL,
                                  r->token, "{}", 2, NULL, 0);
        say(r, "beat: %d\n", status);
    }
    if (hurry) {
        say(r, "early: %d\n", put_result(r, r->task_id, "{\"early\": true}"));
    }
}

/* ---- ours ---------------------------------------------------------------------------
 */

static void on_lost_slave(coord_connection *connection, const coord_error *failure,
                          coord_text data, void *user)
{
    (void)connection;
    (void)data;
    say(user, "lost: %s: %s\n", failure->text, failure->cause);
}

static void on_connect(coord_connection *connection, const coord_error *failure,
                       coord_text data, void *user)
{
    (void)connection;
    (void)data;
    say(user, failure == NULL ? "connected\n" : "not connected\n");
}

static void on_lost_master(coord_slave *slave, const coord_error *why, void *user)
{
    (void)slave;
    say(user, "lost: %s: %s\n", why->text, why->cause);
}

static coord_status do_task(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    const rig *r = user;
    (void)slave;
    (void)data;
    return coord_out_json(out, (coord_text){r->work, r->work_len}, NULL);
}

static rig *open_rig(void **state)
{
    rig *r = calloc(1, sizeof *r);
    pthread_condattr_t attributes;
    assert_non_null(r);
    assert_int_equal(pthread_mutex_init(&r->lock, NULL), 0);
    assert_int_equal(pthread_condattr_init(&attributes), 0);
    assert_int_equal(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
    assert_int_equal(pthread_cond_init(&r->news, &attributes), 0);
    (void)pthread_condattr_destroy(&attributes);
    r->kind = *(const werkzeug_kind *)*state;
    r->peer = werkzeug_start_deaf(r->kind, serve, r);
    r->work = "{\"ok\": 1}";
    r->work_len = strlen(r->work);
    *state = r;
    return r;
}

/* A master with a connection to the peer, which does not listen yet. */
static int open_deaf_master(void **state)
{
    rig *r = open_rig(state);
    coord_master_options o;
    coord_connection_options c;
    coord_master_options_init(&o, sizeof o);
    o.channel = CHANNEL;
    o.request_retry_wait_ms = RETRY_MS;
    o.request_retries = 500;
    o.heartbeat_tolerance_ms = 600000;
    o.log_level = COORD_LOG_DEBUG;
    o.log = log_line;
    o.user = r;
    assert_int_equal(coord_master_create(&o, &r->master, NULL), COORD_OK);
    coord_connection_options_init(&c, sizeof c);
    c.id = "slave";
    c.host = "127.0.0.1";
    c.port = werkzeug_port(r->peer);
    c.on_connect = on_connect;
    c.on_lost = on_lost_slave;
    c.user = r;
    assert_int_equal(coord_master_new_connection(r->master, &c, &r->connection, NULL),
                     COORD_OK);
    return 0;
}

static int open_master(void **state)
{
    int rc = open_deaf_master(state);
    werkzeug_listen(((rig *)*state)->peer);
    return rc;
}

/* A slave with a short heartbeat; the peer is to be its master. */
static int open_slave_beating(void **state, int64_t heartbeat_ms)
{
    rig *r = open_rig(state);
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.channel = CHANNEL;
    o.heartbeat_ms = heartbeat_ms;
    o.request_retry_wait_ms = RETRY_MS;
    o.request_retries = 500;
    o.process_task = do_task;
    o.on_lost = on_lost_master;
    o.log_level = COORD_LOG_DEBUG;
    o.log = log_line;
    o.user = r;
    assert_int_equal(coord_slave_create(&o, &r->slave, NULL), COORD_OK);
    return 0;
}

static int open_deaf_slave(void **state)
{
    return open_slave_beating(state, 600000);
}

static int open_slave(void **state)
{
    int rc = open_slave_beating(state, 600000);
    werkzeug_listen(((rig *)*state)->peer);
    return rc;
}

static int open_beating_slave(void **state)
{
    int rc = open_slave_beating(state, 200);
    werkzeug_listen(((rig *)*state)->peer);
    return rc;
}

static void destroy_ours(rig *r)
{
    coord_connection_destroy(r->connection);
    coord_master_destroy(r->master);
    coord_slave_destroy(r->slave);
    r->connection = NULL;
    r->master = NULL;
    r->slave = NULL;
}

static int close_rig(void **state)
{
    rig *r = *state;
    destroy_ours(r);
    size_t confused = werkzeug_confused(r->peer);
    size_t proxied = werkzeug_connections(proxy);
    werkzeug_stop(r->peer);
    (void)pthread_cond_destroy(&r->news);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
    return confused == 0 && proxied == 0 ? 0 : -1;
}

static void connect_to_peer(rig *r)
{
    coord_error err = {0};
    if (coord_connection_connect(r->connection, coord_text_of("{\"a\": Infinity}"),
                                 WAIT_MS, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    await_said(r, "\nconnected\n");
}

static coord_task *make_task(rig *r, const char *data)
{
    coord_task *task = NULL;
    assert_int_equal(
        coord_connection_new_task(r->connection, coord_text_of(data), &task, NULL),
        COORD_OK);
    return task;
}

static void start(coord_task *task)
{
    coord_error err = {0};
    if (coord_task_start(task, WAIT_MS, 0, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
}

static void finish(rig *r, coord_task *task)
{
    assert_int_equal(put_result(r, coord_task_id(task), "{\"late\": true}"), 200);
    assert_int_equal(coord_task_join(task, WAIT_MS, NULL), COORD_OK);
    coord_task_unref(task);
}

/* The peer connects to our slave; `prefix` is part of its address. */
static void connect_to_slave(const rig *r, const char *prefix)
{
    char body[160];
    int len = snprintf(body, sizeof body,
                       "{\"master\": {\"address\": \"http://127.0.0.1:%u%s\"}, "
                       "\"data\": {}}",
                       (unsigned)werkzeug_port(r->peer), prefix);
    assert_int_equal(werkzeug_ask(coord_slave_port(r->slave), "POST", "/connect", CHANNEL,
                                  "tok", body, (size_t)len, NULL, 0),
                     200);
}

static const char *const TASK_ID[] = {"00000000-0000-4000-8000-000000000000",
                                      "11111111-1111-4111-8111-111111111111"};

static int give_task(const rig *r, int n)
{
    char body[128];
    int len = snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"data\": {}}",
                       TASK_ID[n]);
    return werkzeug_ask(coord_slave_port(r->slave), "POST", "/task/new", CHANNEL, "tok",
                        body, (size_t)len, NULL, 0);
}

/* ---- bytes ---------------------------------------------------------------------------
 */

/* The value of the header; "" when it is not there. Fails when it is there twice. */
static void read_header(const char *head, const char *name, char *out, size_t size)
{
    size_t name_len = strlen(name);
    int times = 0;
    const char *end = strstr(head, "\r\n\r\n");
    out[0] = '\0';
    for (const char *at = head; at < end; at = strstr(at, "\r\n") + 2) {
        if (strncasecmp(at, name, name_len) == 0 && at[name_len] == ':') {
            int len = (int)strcspn(at + name_len + 2, "\r");
            assert_int_equal(at[name_len + 1], ' ');
            (void)snprintf(out, size, "%.*s", len, at + name_len + 2);
            times++;
        }
    }
    assert_true(times <= 1);
}

static void assert_header(const char *head, const char *name, const char *value)
{
    char got[256];
    read_header(head, name, got, sizeof got);
    if (strcmp(got, value) != 0) {
        fail_msg("%s is \"%s\", not \"%s\", in: %.400s", name, got, value, head);
    }
}

static size_t count_headers(const char *head)
{
    size_t count = 0;
    const char *end = strstr(head, "\r\n\r\n");
    for (const char *at = strstr(head, "\r\n"); at < end; at = strstr(at + 2, "\r\n")) {
        count++;
    }
    return count;
}

/* The whole request: these lines and headers and no others, and this body. */
static void check_request(rig *r, const char *path, size_t n, const char *method,
                          const char *token, const char *body, size_t body_len)
{
    char line[128];
    char text[32];
    size_t len;
    const char *raw = werkzeug_raw(r->peer, path, n, &len);
    const char *end = strstr(raw, "\r\n\r\n");
    assert_non_null(end);

    (void)snprintf(line, sizeof line, "%s %s HTTP/1.1\r\n", method, path);
    if (strncmp(raw, line, strlen(line)) != 0) {
        fail_msg("expected %s, got: %.400s", line, raw);
    }
    (void)snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)werkzeug_port(r->peer));
    assert_header(raw, "Host", text);
    assert_header(raw, "User-Agent", "libcoord/" COORD_VERSION);
    assert_header(raw, "Accept", "*/*");
    assert_header(raw, "Content-Type", "application/json");
    assert_header(raw, "Channel", "7");
    assert_header(raw, "Token", token);
    assert_header(raw, "Libcoord", "1");
    (void)snprintf(text, sizeof text, "%zu", body_len);
    assert_header(raw, "Content-Length", text);
    if (count_headers(raw) != 8) { /* so no Expect, no Transfer-Encoding, no Proxy- */
        fail_msg("there are more headers in: %.600s", raw);
    }
    assert_int_equal(len - (size_t)(end + 4 - raw), body_len);
    if (memcmp(end + 4, body, body_len) != 0) {
        fail_msg("expected the body %.200s, got: %.200s", body, end + 4);
    }
}

static void assert_each_on_its_own_connection(rig *r)
{
    assert_int_equal(werkzeug_connections(r->peer), werkzeug_count(r->peer, NULL));
}

/* ---- a master's requests -------------------------------------------------------------
 */

static void a_master_asks_in_a_way_that_is_understood(void **state)
{
    enum { BIG = 1 << 20 };
    rig *r = *state;
    char body[256];
    int len;
    char *big = calloc(1, BIG + 256);
    assert_non_null(big);

    connect_to_peer(r);
    await_said(r, "beat: 200\n"); /* its token was known before it answered */
    assert_int_equal(strlen(r->token), 64);
    len = snprintf(body, sizeof body,
                   "{\"master\": {\"address\": \"http://127.0.0.1:%u\"}, "
                   "\"data\": {\"a\": Infinity}}",
                   (unsigned)coord_master_port(r->master));
    check_request(r, "/connect", 0, "POST", r->token, body, (size_t)len);

    coord_task *task = make_task(r, "{\"b\": NaN}");
    start(task);
    len = snprintf(body, sizeof body,
                   "{\"task\": {\"id\": \"%s\"}, \"data\": {\"b\": NaN}}",
                   coord_task_id(task));
    check_request(r, "/task/new", 0, "POST", r->token, body, (size_t)len);
    finish(r, task);

    memset(big, ' ', BIG);
    big[0] = '[';
    big[BIG - 1] = ']';
    task = make_task(r, big);
    start(task);
    len = snprintf(body, sizeof body,
                   "{\"task\": {\"id\": \"%s\"}, \"data\": ", coord_task_id(task));
    memmove(big + len, big, BIG);
    memcpy(big, body, (size_t)len);
    big[len + BIG] = '}';
    check_request(r, "/task/new", 1, "POST", r->token, big, (size_t)len + BIG + 1);
    finish(r, task);
    free(big);

    assert_int_equal(
        coord_connection_disconnect(r->connection, coord_text_of(""), WAIT_MS, NULL),
        COORD_OK);
    check_request(r, "/disconnect", 0, "DELETE", r->token, "{\"data\": {}}", 12);
    assert_each_on_its_own_connection(r);
    assert_int_equal(werkzeug_count(r->peer, NULL), 4);
}

static void a_result_may_be_faster_than_the_answer_to_its_task(void **state)
{
    rig *r = *state;
    coord_error err = {0};
    (void)pthread_mutex_lock(&r->lock);
    r->results_first = 2;
    (void)pthread_mutex_unlock(&r->lock);
    connect_to_peer(r);
    for (int answered = 0; answered < 2; answered++) {
        coord_task *task = make_task(r, "{}");
        if (answered == 0) { /* not even an answer is needed */
            script(r, "/task/new", 1, (werkzeug_answer){.body = NULL});
        }
        if (coord_task_start(task, WAIT_MS, 0, &err) != COORD_OK) {
            fail_msg("%s: %s", err.text, err.cause);
        }
        assert_int_equal(coord_task_join(task, WAIT_MS, NULL), COORD_OK);
        assert_int_equal(coord_task_result(task).len, 15);
        assert_memory_equal(coord_task_result(task).ptr, "{\"early\": true}", 15);
        coord_task_unref(task);
    }
    await_said(r, "early: 200\nearly: 200\n");
    coord_task *task = make_task(r, "{}"); /* and the slave is ours still */
    start(task);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 3);
    finish(r, task);
}

static void count_calls(coord_task *task, const coord_error *failure, void *user)
{
    (void)failure;
    say(user, "complete %s\n", coord_task_id(task));
}

static void a_result_that_comes_again_is_answered_and_dropped(void **state)
{
    rig *r = *state;
    connect_to_peer(r);
    coord_task *task = make_task(r, "{}");
    assert_int_equal(coord_task_on_complete(task, count_calls, r, NULL), COORD_OK);
    start(task);
    for (int i = 0; i < 3; i++) {
        char result[32];
        (void)snprintf(result, sizeof result, "{\"n\": %d}", i);
        assert_int_equal(put_result(r, coord_task_id(task), result), 200);
    }
    assert_int_equal(put_result(r, TASK_ID[0], "null"), 200);
    assert_memory_equal(coord_task_result(task).ptr, "{\"n\": 0}", 8);
    coord_task *next = make_task(r, "{}");
    start(next);
    finish(r, next);
    await_said(r, "complete ");
    coord_task_unref(task);
    destroy_ours(r);
    assert_int_equal(count_said(r, "complete "), 1);
}

static void answers_without_a_length_are_understood(void **state)
{
    rig *r = *state;
    const werkzeug_answer yes = {.status = 200, .body = WERKZEUG_YES, .endless = true};
    script(r, "/connect", 1, yes);
    script(r, "/task/new", 1, yes);
    script(r, "/disconnect", 1, yes);
    connect_to_peer(r);
    coord_task *task = make_task(r, "{}");
    start(task);
    finish(r, task);
    assert_int_equal(
        coord_connection_disconnect(r->connection, coord_text_of("{}"), WAIT_MS, NULL),
        COORD_OK);
}

/* ---- what makes no sense --------------------------------------------------------------
 */

typedef struct oddity {
    werkzeug_answer answer;
    coord_status status;
    const char *words; /* in the error's text or cause */
} oddity;

static const oddity ODDITIES[] = {
    {{.status = 500, .body = WERKZEUG_PAGE, .html = true},
     COORD_ERR_PROTOCOL,
     "answered HTTP 500 without the four-key JSON body, but with 192 bytes \"<!doctype"},
    {{.status = 405, .body = WERKZEUG_PAGE, .html = true},
     COORD_ERR_PROTOCOL,
     "answered HTTP 405"},
    {{.status = 200, .body = WERKZEUG_PAGE, .html = true},
     COORD_ERR_PROTOCOL,
     "answered HTTP 200 without"},
    {{.status = 500, .body = ""}, COORD_ERR_PROTOCOL, "but with 0 bytes \"\""},
    {{.status = 200, .body = ""}, COORD_ERR_PROTOCOL, "HTTP 200 without"},
    {{.status = 200, .body = "{\"code\":0,\"succ"},
     COORD_ERR_PROTOCOL,
     "but with 15 bytes"},
    {{.status = 200, .body = "{\"code\":0}"}, COORD_ERR_PROTOCOL, "HTTP 200 without"},
    {{.status = 200, .body = "[true, 0]"}, COORD_ERR_PROTOCOL, "9 bytes"},
    {{.status = 302,
      .body = "{\"success\": true}",
      .more = "Location: http://127.0.0.1:1/connect\r\n"},
     COORD_ERR_PROTOCOL,
     "answered HTTP 302 without"},
    {{.status = 500, .body = WERKZEUG_YES}, COORD_ERR_REFUSED, "HTTP 500"},
    {{.status = 400,
      .body =
          "{\"success\": false, \"code\": 77, \"message\": \"R\\u00fcbe\", \"data\": 0}"},
     COORD_ERR_REFUSED,
     "answered \"R\xc3\xbc"
     "be\" (code 77, HTTP 400)"},
    {{.status = 200, .body = "{\"success\": false, \"code\": 601}"},
     COORD_ERR_REFUSED,
     "(code 601, HTTP 200)"},
};
enum { ODDITY_COUNT = sizeof ODDITIES / sizeof ODDITIES[0] };

static void assert_words(const oddity *odd, coord_status status, const coord_error *err)
{
    if (status != odd->status || strstr(err->text, odd->words) == NULL) {
        fail_msg("expected \"%s\" and %s, got: %s: %s: %s", coord_status_str(odd->status),
                 odd->words, coord_status_str(status), err->text, err->cause);
    }
    assert_int_equal(err->status, status);
    assert_int_equal(err->http_status, odd->answer.status);
}

static void a_connect_that_is_answered_oddly_fails_clearly(void **state)
{
    rig *r = *state;
    for (size_t i = 0; i < ODDITY_COUNT; i++) {
        coord_error err = {0};
        script(r, "/connect", 1, ODDITIES[i].answer);
        coord_status rc =
            coord_connection_connect(r->connection, coord_text_of("{}"), WAIT_MS, &err);
        r->rule_count = 0;
        assert_words(&ODDITIES[i], rc, &err);
        assert_non_null(strstr(err.text, "connect to 'slave' at 127.0.0.1:"));
        assert_false(coord_connection_is_connected(r->connection));
    }
    assert_int_equal(werkzeug_count(r->peer, "/connect"), ODDITY_COUNT); /* each once */
    connect_to_peer(r);
}

static void a_task_that_is_answered_oddly_fails_clearly(void **state)
{
    rig *r = *state;
    connect_to_peer(r);
    for (size_t i = 0; i < ODDITY_COUNT - 1; i++) { /* the last one means busy */
        coord_error err = {0};
        coord_task *task = make_task(r, "{}");
        script(r, "/task/new", 1, ODDITIES[i].answer);
        coord_status rc = coord_task_start(task, WAIT_MS, 0, &err);
        r->rule_count = 0;
        assert_words(&ODDITIES[i], rc, &err);
        assert_non_null(strstr(err.text, coord_task_id(task)));
        assert_int_equal(coord_task_get_status(task), COORD_TASK_START_FAILED);
        assert_int_equal(coord_task_join(task, WAIT_MS, NULL), rc);
        coord_task_unref(task);
        assert_true(coord_connection_is_connected(r->connection));
    }
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), ODDITY_COUNT - 1);
    coord_task *task = make_task(r, "{}");
    start(task);
    finish(r, task);
}

static void an_answer_that_breaks_off_is_a_loss_that_says_so(void **state)
{
    rig *r = *state;
    coord_error err = {0};
    const werkzeug_answer half = {.status = 200, .body = WERKZEUG_YES, .half = true};
    connect_to_peer(r);
    coord_task *task = make_task(r, "{}");
    script(r, "/task/new", 1, half);
    assert_int_equal(coord_task_start(task, WAIT_MS, 0, &err), COORD_ERR_LOST);
    assert_non_null(strstr(err.cause, "POST http://127.0.0.1:"));
    assert_non_null(strstr(err.cause, "bytes remaining to read"));
    await_said(r, "lost: ");
    coord_task_unref(task);
    destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 1);
}

static void a_goodbye_that_is_answered_oddly_is_one_all_the_same(void **state)
{
    rig *r = *state;
    connect_to_peer(r);
    script(r, "/disconnect", 1, ODDITIES[0].answer);
    assert_int_equal(
        coord_connection_disconnect(r->connection, coord_text_of("{}"), WAIT_MS, NULL),
        COORD_OK);
    assert_false(coord_connection_is_connected(r->connection));
}

/* ---- again, or not again
 * --------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void a_busy_slave_is_asked_again_after_a_pause(void **state)
{
    rig *r = *state;
    const werkzeug_answer busy = {.status = 400, .body = WERKZEUG_BUSY};
    connect_to_peer(r);
    script(r, "/task/new", 3, busy);
    coord_task *task = make_task(r, "{\"n\": 1}");
    int64_t begin_ms = now_ms();
    start(task);
    assert_true(now_ms() - begin_ms >= 3 * RETRY_MS);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 4);
    for (size_t i = 1; i < 4; i++) { /* each time the same task */
        assert_string_equal(werkzeug_raw(r->peer, "/task/new", i, NULL),
                            werkzeug_raw(r->peer, "/task/new", 0, NULL));
    }
    finish(r, task);
    assert_each_on_its_own_connection(r);
}

static void a_task_that_may_have_arrived_is_not_sent_again(void **state)
{
    rig *r = *state;
    coord_error err = {0};
    connect_to_peer(r);
    script(r, "/task/new", 1000, (werkzeug_answer){.body = NULL});
    coord_task *task = make_task(r, "{}");
    assert_int_equal(coord_task_start(task, WAIT_MS, 0, &err), COORD_ERR_LOST);
    assert_int_equal(coord_task_join(task, WAIT_MS, NULL), COORD_ERR_LOST);
    assert_non_null(strstr(err.text, coord_task_id(task)));
    assert_non_null(strstr(err.cause, "/task/new"));
    await_said(r, "lost: ");
    coord_task_unref(task);
    destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 1);
}

static void a_slave_that_does_not_listen_yet_is_waited_for(void **state)
{
    rig *r = *state;
    coord_error err = {0};
    assert_int_equal(
        coord_connection_connect(r->connection, coord_text_of("{}"), 2 * RETRY_MS, &err),
        COORD_ERR_TIMEOUT);
    werkzeug_listen(r->peer);
    await_said(r, "\nconnected\n");
    assert_int_equal(werkzeug_count(r->peer, "/connect"), 1);

    werkzeug_deafen(r->peer);
    coord_task *task = make_task(r, "{}");
    assert_int_equal(coord_task_start(task, 2 * RETRY_MS, 0, &err), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_task_get_status(task), COORD_TASK_STARTING);
    werkzeug_listen(r->peer);
    werkzeug_await(r->peer, "/task/new", 1);
    finish(r, task);
    destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 1);
}

/* ---- a slave's requests
 * ---------------------------------------------------------------- */

static void a_slave_reports_in_a_way_that_is_understood(void **state)
{
    enum { BIG = 1 << 20 };
    rig *r = *state;
    char body[256];
    char *big = calloc(1, BIG + 256);
    assert_non_null(big);
    connect_to_slave(r, "/some/where/");
    for (size_t i = 0; i < 3; i++) {
        check_request(r, "/some/where/slave/heartbeat", i, "GET", "tok", "{}", 2);
    }
    assert_int_equal(give_task(r, 0), 200);
    int len =
        snprintf(body, sizeof body,
                 "{\"task\": {\"id\": \"%s\"}, \"result\": {\"ok\": 1}}", TASK_ID[0]);
    check_request(r, "/some/where/slave/task/complete", 0, "PUT", "tok", body,
                  (size_t)len);

    len = snprintf(big, 256, "{\"task\": {\"id\": \"%s\"}, \"result\": ", TASK_ID[1]);
    memset(big + len, 'x', BIG);
    big[len] = '"';
    big[len + BIG - 1] = '"';
    big[len + BIG] = '}';
    r->work = big + len;
    r->work_len = BIG;
    assert_int_equal(give_task(r, 1), 200);
    check_request(r, "/some/where/slave/task/complete", 1, "PUT", "tok", big,
                  (size_t)len + BIG + 1);
    destroy_ours(r);
    assert_each_on_its_own_connection(r);
    assert_int_equal(werkzeug_count(r->peer, NULL),
                     2 + werkzeug_count(r->peer, "/some/where/slave/heartbeat"));
    free(big);
}

static void a_result_that_is_answered_oddly_does_the_slave_no_harm(void **state)
{
    rig *r = *state;
    connect_to_slave(r, "");
    for (size_t i = 0; i < ODDITY_COUNT; i++) {
        char line[128];
        script(r, "/slave/task/complete", 1, ODDITIES[i].answer);
        assert_int_equal(give_task(r, i % 2 == 0 ? 0 : 1), 200);
        werkzeug_await(r->peer, "/slave/task/complete", i + 1);
        (void)snprintf(line, sizeof line, "result not delivered task=%s",
                       TASK_ID[i % 2 == 0 ? 0 : 1]);
        await_said(r, line);
        await_said(r, ODDITIES[i].words);
        (void)pthread_mutex_lock(&r->lock);
        r->said[0] = '\0';
        r->rule_count = 0;
        (void)pthread_mutex_unlock(&r->lock);
        assert_true(coord_slave_is_connected(r->slave));
    }
    assert_int_equal(give_task(r, 0), 200);
    werkzeug_await(r->peer, "/slave/task/complete", ODDITY_COUNT + 1);
    destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, NULL), ODDITY_COUNT + 1);
}

static void a_heartbeat_that_is_answered_oddly_does_the_slave_no_harm(void **state)
{
    rig *r = *state;
    script(r, "/slave/heartbeat", 1, ODDITIES[0].answer);
    script(r, "/slave/heartbeat", 1, ODDITIES[3].answer);
    connect_to_slave(r, "");
    werkzeug_await(r->peer, "/slave/heartbeat", 4);
    await_said(r, "heartbeat failed");
    await_said(r, "answered HTTP 500");
    assert_int_equal(count_said(r, "lost"), 0);
    assert_true(coord_slave_is_connected(r->slave));
}

static void a_heartbeat_without_an_answer_is_sent_again(void **state)
{
    rig *r = *state;
    script(r, "/slave/heartbeat", 2, (werkzeug_answer){.body = NULL});
    connect_to_slave(r, "");
    werkzeug_await(r->peer, "/slave/heartbeat", 4);
    assert_true(coord_slave_is_connected(r->slave));
}

static void a_master_that_does_not_know_the_slave_sets_it_free(void **state)
{
    rig *r = *state;
    script(r, "/slave/heartbeat", 1,
           (werkzeug_answer){
               .status = 403,
               .body =
                   "{\"code\":502,\"data\":null,\"message\":\"No matching slave token "
                   "found in this endpoint.\",\"success\":false}"});
    connect_to_slave(r, "");
    await_said(r, "lost: heartbeat: answered \"No matching slave token found");
    connect_to_slave(r, ""); /* for the next master, or the same */
    werkzeug_await(r->peer, "/slave/heartbeat", 2);
}

static void a_result_that_may_have_arrived_is_not_sent_again(void **state)
{
    static const werkzeug_answer LOST[] = {
        {.body = NULL}, {.status = 200, .body = WERKZEUG_YES, .half = true}};
    rig *r = *state;
    for (size_t i = 0; i < 2; i++) {
        connect_to_slave(r, "");
        script(r, "/slave/task/complete", 1, LOST[i]);
        assert_int_equal(give_task(r, (int)i), 200);
        await_said(r, i == 0 ? "lost: result of task 0" : "lost: result of task 1");
        assert_false(coord_slave_is_connected(r->slave));
    }
    destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, NULL), 2);
}

static void results_wait_for_a_master_that_does_not_listen(void **state)
{
    rig *r = *state;
    connect_to_slave(r, "");
    assert_int_equal(give_task(r, 0), 200);
    while (give_task(r, 1) == 400) { /* until the first one is done */
    }
    for (int i = 0; i < 20; i++) { /* both meet nobody now */
        assert_int_equal(werkzeug_ask(coord_slave_port(r->slave), "GET", "/ping", CHANNEL,
                                      NULL, "{}", 2, NULL, 0),
                         400);
    }
    werkzeug_listen(r->peer);
    werkzeug_await(r->peer, "/slave/task/complete", 2);
    destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, NULL), 2);
    const char *first = werkzeug_raw(r->peer, NULL, 0, NULL);
    const char *second = werkzeug_raw(r->peer, NULL, 1, NULL);
    assert_true((strstr(first, TASK_ID[0]) != NULL) ==
                (strstr(second, TASK_ID[1]) != NULL));
}

/* ---- a Python client that keeps its connection
 * ------------------------------------------ */

static void heartbeats_with_bodies_share_a_connection(void **state)
{
    rig *r = *state;
    char text[512];
    char answer[1024];
    connect_to_peer(r);
    (void)snprintf(
        text, sizeof text,
        "GET /slave/heartbeat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n"
        "Channel: 7\r\nToken: %s\r\nContent-Length: 2\r\n\r\n",
        r->token);
    int fd = raw_connect((uint16_t)r->port);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
    for (int i = 0; i < 100; i++) {
        raw_sends(fd, text);
        raw_sends(fd, "{}");
        assert_true(raw_read_answer(fd, answer, sizeof answer, false));
        assert_non_null(strstr(answer, "Received!"));
    }
    (void)close(fd);
}

/* ---- all
 * -------------------------------------------------------------------------------- */

int main(void)
{
    static werkzeug_kind kind[] = {WERKZEUG_2_0, WERKZEUG_2_1, WERKZEUG_2_2};
#define ONE(name, open, of, n)                                                           \
    {                                                                                    \
#name of, name, open, close_rig, &kind[n]                                        \
    }
#define EACH(name, open)                                                                 \
    ONE(name, open, ": Werkzeug 2.0", 0), ONE(name, open, ": Werkzeug 2.1", 1),          \
        ONE(name, open, ": Werkzeug 2.2", 2)
    const struct CMUnitTest tests[] = {
        EACH(a_master_asks_in_a_way_that_is_understood, open_master),
        EACH(a_result_may_be_faster_than_the_answer_to_its_task, open_master),
        ONE(a_result_that_comes_again_is_answered_and_dropped, open_master, "", 2),
        EACH(answers_without_a_length_are_understood, open_master),
        EACH(a_connect_that_is_answered_oddly_fails_clearly, open_master),
        EACH(a_task_that_is_answered_oddly_fails_clearly, open_master),
        EACH(an_answer_that_breaks_off_is_a_loss_that_says_so, open_master),
        ONE(a_goodbye_that_is_answered_oddly_is_one_all_the_same, open_master, "", 2),
        EACH(a_busy_slave_is_asked_again_after_a_pause, open_master),
        EACH(a_task_that_may_have_arrived_is_not_sent_again, open_master),
        ONE(a_slave_that_does_not_listen_yet_is_waited_for, open_deaf_master, "", 2),
        EACH(a_slave_reports_in_a_way_that_is_understood, open_beating_slave),
        EACH(a_result_that_is_answered_oddly_does_the_slave_no_harm, open_slave),
        EACH(a_heartbeat_that_is_answered_oddly_does_the_slave_no_harm,
             open_beating_slave),
        EACH(a_heartbeat_without_an_answer_is_sent_again, open_beating_slave),
        ONE(a_master_that_does_not_know_the_slave_sets_it_free, open_beating_slave, "",
            2),
        EACH(a_result_that_may_have_arrived_is_not_sent_again, open_slave),
        ONE(results_wait_for_a_master_that_does_not_listen, open_deaf_slave, "", 2),
        ONE(heartbeats_with_bodies_share_a_connection, open_master, "", 2),
    };
    static const char *const NAME[] = {"http_proxy", "HTTP_PROXY", "all_proxy",
                                       "ALL_PROXY"};
    char url[64];
    proxy = werkzeug_start(WERKZEUG_2_2, NULL, NULL);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/",
                   (unsigned)werkzeug_port(proxy));
    for (size_t i = 0; i < 4; i++) {
        (void)setenv(NAME[i], url, 1);
    }
    (void)unsetenv("no_proxy");
    (void)unsetenv("NO_PROXY");
    int failed = cmocka_run_group_tests_name("werkzeug", tests, NULL, NULL);
    werkzeug_stop(proxy);
    return failed;
}
