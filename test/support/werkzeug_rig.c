#include "support/werkzeug_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <cmocka.h>

werkzeug_kind wz_kind[WERKZEUG_KINDS] = {WERKZEUG_2_0, WERKZEUG_2_1, WERKZEUG_2_2};

static werkzeug *proxy; /* that the environment asks everybody to use */

/* ---- what was said ---- */

void wz_say(wz_rig *r, const char *format, ...)
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

void wz_await(wz_rig *r, const char *text)
{
    struct timespec until;
    bool said = false;
    bool late = false;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WZ_WAIT_MS / 1000;
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

int wz_count(wz_rig *r, const char *text)
{
    int count = 0;
    (void)pthread_mutex_lock(&r->lock);
    for (const char *at = strstr(r->said, text); at != NULL; at = strstr(at + 1, text)) {
        count++;
    }
    (void)pthread_mutex_unlock(&r->lock);
    return count;
}

void wz_forget(wz_rig *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->said[0] = '\0';
    (void)pthread_mutex_unlock(&r->lock);
}

static void log_line(coord_log_level level, const char *line, void *user)
{
    (void)level;
    wz_say(user, "%s\n", line);
}

/* ---- the peer ---- */

void wz_script(wz_rig *r, const char *path, int times, werkzeug_answer answer)
{
    (void)pthread_mutex_lock(&r->lock);
    assert_true(r->rule_count < WZ_RULES_MAX);
    r->rules[r->rule_count++] = (wz_rule){path, times, answer};
    (void)pthread_mutex_unlock(&r->lock);
}

void wz_unscript(wz_rig *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->rule_count = 0;
    (void)pthread_mutex_unlock(&r->lock);
}

static void follow(wz_rig *r, const char *path, werkzeug_answer *answer)
{
    for (int i = 0; i < r->rule_count; i++) {
        if (r->rules[i].times > 0 && strcmp(r->rules[i].path, path) == 0) {
            r->rules[i].times--;
            *answer = r->rules[i].answer;
            return;
        }
    }
}

int wz_put_result(wz_rig *r, const char *id, const char *result)
{
    char body[256];
    int len = snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}",
                       id, result);
    return werkzeug_ask((uint16_t)r->port, "PUT", "/slave/task/complete", WZ_CHANNEL,
                        r->token, body, (size_t)len, NULL, 0);
}

/* Takes notes as a slave must; a master's paths need none. */
static void serve(werkzeug *w, const werkzeug_request *request, werkzeug_answer *answer,
                  void *user)
{
    wz_rig *r = user;
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
        int status = werkzeug_ask((uint16_t)r->port, "GET", "/slave/heartbeat",
                                  WZ_CHANNEL, r->token, "{}", 2, NULL, 0);
        wz_say(r, "beat: %d\n", status);
    }
    if (hurry) {
        wz_say(r, "early: %d\n", wz_put_result(r, r->task_id, "{\"early\": true}"));
    }
}

/* ---- ours ---- */

static void on_lost_slave(coord_connection *connection, const coord_error *failure,
                          coord_text data, void *user)
{
    (void)connection;
    (void)data;
    wz_say(user, "lost: %s: %s\n", failure->text, failure->cause);
}

static void on_connect(coord_connection *connection, const coord_error *failure,
                       coord_text data, void *user)
{
    (void)connection;
    (void)data;
    wz_say(user, failure == NULL ? "connected\n" : "not connected\n");
}

static void on_lost_master(coord_slave *slave, const coord_error *why, void *user)
{
    (void)slave;
    wz_say(user, "lost: %s: %s\n", why->text, why->cause);
}

static coord_status do_task(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    const wz_rig *r = user;
    (void)slave;
    (void)data;
    return coord_out_json(out, (coord_text){r->work, r->work_len}, NULL);
}

static wz_rig *open_rig(void **state)
{
    wz_rig *r = calloc(1, sizeof *r);
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
int wz_open_deaf_master(void **state)
{
    wz_rig *r = open_rig(state);
    coord_master_options o;
    coord_connection_options c;
    coord_master_options_init(&o, sizeof o);
    o.channel = WZ_CHANNEL;
    o.request_retry_wait_ms = WZ_RETRY_MS;
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

int wz_open_master(void **state)
{
    int rc = wz_open_deaf_master(state);
    werkzeug_listen(((wz_rig *)*state)->peer);
    return rc;
}

/* A slave with a short heartbeat; the peer is to be its master. */
static int open_slave_beating(void **state, int64_t heartbeat_ms)
{
    wz_rig *r = open_rig(state);
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.channel = WZ_CHANNEL;
    o.heartbeat_ms = heartbeat_ms;
    o.request_retry_wait_ms = WZ_RETRY_MS;
    o.request_retries = 500;
    o.process_task = do_task;
    o.on_lost = on_lost_master;
    o.log_level = COORD_LOG_DEBUG;
    o.log = log_line;
    o.user = r;
    assert_int_equal(coord_slave_create(&o, &r->slave, NULL), COORD_OK);
    return 0;
}

int wz_open_deaf_slave(void **state)
{
    return open_slave_beating(state, 600000);
}

int wz_open_slave(void **state)
{
    int rc = open_slave_beating(state, 600000);
    werkzeug_listen(((wz_rig *)*state)->peer);
    return rc;
}

int wz_open_beating_slave(void **state)
{
    int rc = open_slave_beating(state, 200);
    werkzeug_listen(((wz_rig *)*state)->peer);
    return rc;
}

void wz_destroy_ours(wz_rig *r)
{
    coord_connection_destroy(r->connection);
    coord_master_destroy(r->master);
    coord_slave_destroy(r->slave);
    r->connection = NULL;
    r->master = NULL;
    r->slave = NULL;
}

int wz_close(void **state)
{
    wz_rig *r = *state;
    wz_destroy_ours(r);
    size_t confused = werkzeug_confused(r->peer);
    size_t proxied = werkzeug_connections(proxy);
    werkzeug_stop(r->peer);
    (void)pthread_cond_destroy(&r->news);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
    return confused == 0 && proxied == 0 ? 0 : -1;
}

void wz_connect(wz_rig *r)
{
    coord_error err = {0};
    if (coord_connection_connect(r->connection, coord_text_of("{\"a\": Infinity}"),
                                 WZ_WAIT_MS, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    wz_await(r, "\nconnected\n");
}

coord_task *wz_make_task(wz_rig *r, const char *data)
{
    coord_task *task = NULL;
    assert_int_equal(
        coord_connection_new_task(r->connection, coord_text_of(data), &task, NULL),
        COORD_OK);
    return task;
}

void wz_start(coord_task *task)
{
    coord_error err = {0};
    if (coord_task_start(task, WZ_WAIT_MS, 0, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
}

void wz_finish(wz_rig *r, coord_task *task)
{
    assert_int_equal(wz_put_result(r, coord_task_id(task), "{\"late\": true}"), 200);
    assert_int_equal(coord_task_join(task, WZ_WAIT_MS, NULL), COORD_OK);
    coord_task_unref(task);
}

/* The peer connects to our slave; `prefix` is part of its address. */
void wz_connect_to_slave(const wz_rig *r, const char *prefix)
{
    char body[160];
    int len = snprintf(body, sizeof body,
                       "{\"master\": {\"address\": \"http://127.0.0.1:%u%s\"}, "
                       "\"data\": {}}",
                       (unsigned)werkzeug_port(r->peer), prefix);
    assert_int_equal(werkzeug_ask(coord_slave_port(r->slave), "POST", "/connect",
                                  WZ_CHANNEL, "tok", body, (size_t)len, NULL, 0),
                     200);
}

const char *const WZ_TASK_ID[2] = {"00000000-0000-4000-8000-000000000000",
                                   "11111111-1111-4111-8111-111111111111"};

int wz_give_task(const wz_rig *r, int n)
{
    char body[128];
    int len = snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"data\": {}}",
                       WZ_TASK_ID[n]);
    return werkzeug_ask(coord_slave_port(r->slave), "POST", "/task/new", WZ_CHANNEL,
                        "tok", body, (size_t)len, NULL, 0);
}

/* ---- bytes ---- */

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

void wz_check_request(wz_rig *r, const char *path, size_t n, const char *method,
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

void wz_assert_no_reuse(wz_rig *r)
{
    assert_int_equal(werkzeug_connections(r->peer), werkzeug_count(r->peer, NULL));
}

/* ---- the environment ---- */

int wz_run(const char *name, const struct CMUnitTest *tests, size_t count)
{
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
    int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    werkzeug_stop(proxy);
    return failed;
}
