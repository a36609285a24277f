/* Payloads go through masters, slaves and coordinators byte for byte, whatever Python's
 * json writes into them. */
#include "support/werkzeug.h"

#include "coord.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, BIG = 10 << 20, DEPTH = 1000, NOTES_MAX = 16, FILE_MAX = 8192 };

/* ---- payloads -----------------------------------------------------------------------
 */

static const char *const SMALL[] = {
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "[NaN,-Infinity , Infinity,\t-1E+999]",
    "1234567890123456789012345678901234567890",
    "-1234567890123456789012345678901234567890",
    "[0.1, 0.10000000000000001, 1.0, 1.00, 1, -0.0, 1e-400, 1E5, 1e+05]",
    "[9223372036854775807, 9223372036854775808, 18446744073709551616]",
    "\"\\ud800\"",
    "[\"\\udfff\\ud800\", {\"\\udc00\": \"\\uD83D\\uDE00\"}]",
    "\"a\\u0000b\"",
    "{\"\\u0000\": {\"a\\u0000\": \"\\u0000\"}}",
    "{\"a\": 1, \"a\": {\"a\": 2}, \"\\u0061\": 3, \"a\": 1}",
    "{\"\": 0, \" \": \"\"}",
    "{ \"a\"\t:\r\n[ 1 ,\n2\t] , \"b\" : { } }",
    "[[], {}, [ ], { }, [\n], [[[]]], null, true, false, \"\"]",
    "\"\\/ / \\b\\f\\n\\r\\t \\\" \\\\ \\u00fc \xc3\xbc \xf0\x9f\x98\x80 \x7f\"",
    "\"]}\\\\\\\"{[,: \"",
    "[{\"task\": {\"id\": 1}, \"data\": 2, \"result\": 3, \"name\": \"x\"}]",
    "{\"success\": false, \"code\": 601, \"message\": \"no\", \"data\": null}",
    "true",
    "1",
    "\"x\"",
};
enum { SMALL_COUNT = sizeof SMALL / sizeof SMALL[0], PAYLOADS = SMALL_COUNT + 3 };

static char *payloads[PAYLOADS];

/* So many arrays, or objects, in each other. */
static char *nest(const char *open, const char *inside, const char *close)
{
    char *text = calloc(1, DEPTH * (strlen(open) + strlen(close)) + strlen(inside) + 1);
    assert_non_null(text);
    char *at = text;
    for (int i = 0; i < DEPTH; i++) {
        at = stpcpy(at, open);
    }
    at = stpcpy(at, inside);
    for (int i = 0; i < DEPTH; i++) {
        at = stpcpy(at, close);
    }
    return text;
}

/* A string of letters, in which nothing may be lost or moved. */
static char *long_string(void)
{
    char *text = malloc(BIG + 1);
    assert_non_null(text);
    for (int i = 0; i < BIG; i++) {
        text[i] = (char)('a' + (i * 7 + i / 1000) % 26);
    }
    text[0] = '"';
    text[BIG - 1] = '"';
    text[BIG] = '\0';
    return text;
}

static int make_payloads(void **state)
{
    (void)state;
    for (size_t i = 0; i < SMALL_COUNT; i++) {
        payloads[i] = strdup(SMALL[i]);
    }
    payloads[SMALL_COUNT] = nest("[", "-Infinity", "]");
    payloads[SMALL_COUNT + 1] = nest("{\"a\" : ", "NaN", " }");
    payloads[SMALL_COUNT + 2] = long_string();
    return 0;
}

static int free_payloads(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAYLOADS; i++) {
        free(payloads[i]);
    }
    return 0;
}

/* ---- texts --------------------------------------------------------------------------
 */

static char *print(const char *format, ...) COORD_PRINTF(1, 2);
static char *print(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    assert_true(len >= 0);
    return text;
}

/* Frees `want`. */
static void assert_text(const char *what, coord_text got, char *want)
{
    size_t len = strlen(want);
    if (got.len != len || memcmp(got.ptr, want, len) != 0) {
        fail_msg("%s: expected %zu bytes: %.300s\ngot %zu bytes: %.*s", what, len, want,
                 got.len, (int)(got.len < 300 ? got.len : 300),
                 got.len == 0 ? "" : got.ptr);
    }
    free(want);
}

/* What callbacks were told: the last text of each name. */
typedef struct notes {
    pthread_mutex_t lock;
    const char *name[NOTES_MAX];
    char *text[NOTES_MAX];
    size_t len[NOTES_MAX];
    int count;
} notes;

static void note(notes *n, const char *name, coord_text text)
{
    int i = 0;
    (void)pthread_mutex_lock(&n->lock);
    while (i < n->count && strcmp(n->name[i], name) != 0) {
        i++;
    }
    if (i == n->count) {
        n->count++;
        n->name[i] = name;
    }
    free(n->text[i]);
    n->text[i] = malloc(text.len + 1);
    n->len[i] = text.len;
    if (text.len > 0) {
        memcpy(n->text[i], text.ptr, text.len);
    }
    (void)pthread_mutex_unlock(&n->lock);
}

static coord_text noted(notes *n, const char *name)
{
    coord_text text = {NULL, 0};
    (void)pthread_mutex_lock(&n->lock);
    for (int i = 0; i < n->count; i++) {
        if (strcmp(n->name[i], name) == 0) {
            text = (coord_text){n->text[i], n->len[i]};
        }
    }
    (void)pthread_mutex_unlock(&n->lock);
    return text;
}

static void forget(notes *n)
{
    for (int i = 0; i < n->count; i++) {
        free(n->text[i]);
    }
    n->count = 0;
}

/* ---- a master and a slave
 * -------------------------------------------------------------- */

typedef struct pair {
    notes notes;
    coord_master *master;
    coord_connection *connection;
    coord_slave *slave;
    const char *answer; /* of hooks and work */
    bool refuses;
    bool fails;
} pair;

static coord_status take_connect(coord_slave *slave, coord_text data, coord_out *out,
                                 void *user)
{
    pair *p = user;
    (void)slave;
    note(&p->notes, "connect", data);
    if (!p->refuses) {
        return COORD_OK;
    }
    assert_int_equal(coord_out_json(out, coord_text_of(p->answer), NULL), COORD_OK);
    return COORD_ERR_REFUSED;
}

static coord_status take_task(coord_slave *slave, coord_text data, coord_out *out,
                              void *user)
{
    pair *p = user;
    (void)slave;
    (void)out;
    note(&p->notes, "hook", data);
    return COORD_OK;
}

static coord_status take_disconnect(coord_slave *slave, coord_text data, coord_out *out,
                                    void *user)
{
    pair *p = user;
    (void)slave;
    (void)out;
    note(&p->notes, "disconnect", data);
    return COORD_OK;
}

static coord_status do_task(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    pair *p = user;
    (void)slave;
    note(&p->notes, "work", data);
    coord_status rc = coord_out_json(out, coord_text_of(p->answer), NULL);
    return rc == COORD_OK && p->fails ? COORD_ERR_TASK : rc;
}

static void on_connect(coord_connection *connection, const coord_error *failure,
                       coord_text data, void *user)
{
    pair *p = user;
    (void)connection;
    if (failure != NULL) {
        note(&p->notes, "refused", data);
    }
}

static void open_slave_of(pair *p)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.on_connect = take_connect;
    o.on_disconnect = take_disconnect;
    o.on_task = take_task;
    o.process_task = do_task;
    o.heartbeat_ms = 600000;
    o.user = p;
    assert_int_equal(coord_slave_create(&o, &p->slave, NULL), COORD_OK);
}

static void open_master_of(pair *p, uint16_t slave_port)
{
    coord_master_options o;
    coord_connection_options c;
    coord_master_options_init(&o, sizeof o);
    o.executor = COORD_EXECUTOR_INLINE; /* told before connect returns */
    assert_int_equal(coord_master_create(&o, &p->master, NULL), COORD_OK);
    coord_connection_options_init(&c, sizeof c);
    c.id = "slave";
    c.host = "127.0.0.1";
    c.port = slave_port;
    c.on_connect = on_connect;
    c.user = p;
    assert_int_equal(coord_master_new_connection(p->master, &c, &p->connection, NULL),
                     COORD_OK);
}

static void close_pair(pair *p)
{
    coord_connection_destroy(p->connection);
    coord_master_destroy(p->master);
    coord_slave_destroy(p->slave);
    forget(&p->notes);
}

static coord_status run_task(pair *p, const char *data, char **result)
{
    coord_task *task = NULL;
    coord_error err = {0};
    assert_int_equal(
        coord_connection_new_task(p->connection, coord_text_of(data), &task, NULL),
        COORD_OK);
    if (coord_task_start(task, WAIT_MS, 0, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    coord_status rc = coord_task_join(task, WAIT_MS, NULL);
    coord_text got = coord_task_result(task);
    *result = print("%.*s", (int)got.len, got.ptr);
    coord_task_unref(task);
    return rc;
}

static void data_and_results_go_from_master_to_slave_and_back(void **state)
{
    pair p = {.notes.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    open_slave_of(&p);
    open_master_of(&p, coord_slave_port(p.slave));
    assert_int_equal(
        coord_connection_connect(p.connection, coord_text_of(""), WAIT_MS, NULL),
        COORD_OK);
    for (size_t i = 0; i < PAYLOADS; i++) {
        for (int fails = 0; fails < 2; fails++) {
            char *result;
            p.answer = payloads[PAYLOADS - 1 - i];
            p.fails = fails == 1;
            assert_int_equal(run_task(&p, payloads[i], &result),
                             fails == 1 ? COORD_ERR_TASK : COORD_OK);
            assert_text("hook", noted(&p.notes, "hook"), strdup(payloads[i]));
            assert_text("work", noted(&p.notes, "work"), strdup(payloads[i]));
            assert_text("result", coord_text_of(result), strdup(p.answer));
            free(result);
        }
    }
    close_pair(&p);
}

static void greetings_and_refusals_arrive_as_they_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAYLOADS; i++) {
        coord_text payload = coord_text_of(payloads[i]);
        bool short_enough = payload.len < 1 << 19; /* an answer has 1 MiB at most */
        pair p = {.notes.lock = PTHREAD_MUTEX_INITIALIZER};
        open_slave_of(&p);
        open_master_of(&p, coord_slave_port(p.slave));
        p.answer = payloads[i];
        p.refuses = short_enough;
        if (short_enough) {
            assert_int_equal(
                coord_connection_connect(p.connection, payload, WAIT_MS, NULL),
                COORD_ERR_REFUSED);
            assert_text("refused", noted(&p.notes, "refused"), strdup(payloads[i]));
        }
        p.refuses = false;
        assert_int_equal(coord_connection_connect(p.connection, payload, WAIT_MS, NULL),
                         COORD_OK);
        assert_text("connect", noted(&p.notes, "connect"), strdup(payloads[i]));
        assert_int_equal(
            coord_connection_disconnect(p.connection, payload, WAIT_MS, NULL), COORD_OK);
        assert_text("disconnect", noted(&p.notes, "disconnect"), strdup(payloads[i]));
        close_pair(&p);
    }
}

/* As the reference does it: data is left alone, unless it is null. */
static void a_result_that_python_takes_for_false_becomes_an_empty_object(void **state)
{
    static const char *const FALSE[] = {"null",   "false", "0",      "-0",   "0.0",
                                        "-0.0e7", "0E9",   "1e-999", "\"\"", "[]",
                                        "[ ]",    "{}",    "{\n}"};
    pair p = {.notes.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    open_slave_of(&p);
    open_master_of(&p, coord_slave_port(p.slave));
    assert_int_equal(
        coord_connection_connect(p.connection, coord_text_of(""), WAIT_MS, NULL),
        COORD_OK);
    for (size_t i = 0; i < sizeof FALSE / sizeof FALSE[0]; i++) {
        char *result;
        p.answer = FALSE[i];
        assert_int_equal(run_task(&p, FALSE[i], &result), COORD_OK);
        assert_text("data", noted(&p.notes, "work"), strdup(i == 0 ? "{}" : FALSE[i]));
        assert_text("result", coord_text_of(result), strdup("{}"));
        free(result);
    }
    close_pair(&p);
}

/* ---- peers that write JSON in their own way
 * ---------------------------------------------- */

#define ID "12345678-1234-5678-1234-567812345678"

static void a_slave_passes_on_what_a_python_master_wrote(void **state)
{
    pair p = {.notes.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    open_slave_of(&p);
    uint16_t port = coord_slave_port(p.slave);
    werkzeug *master = werkzeug_start(WERKZEUG_2_2, NULL, NULL);
    char *body = print("{\"master\": {\"address\": \"127.0.0.1:%u\"}, \"data\": {}}",
                       (unsigned)werkzeug_port(master));
    assert_int_equal(
        werkzeug_ask(port, "POST", "/connect", 0, "tok", body, strlen(body), NULL, 0),
        200);
    free(body);
    for (size_t i = 0; i < PAYLOADS; i++) {
        size_t len;
        p.answer = payloads[i];
        body = print(" {\"more\":1 ,\t\"data\" :\r\n %s\t, \"task\":{\"x\": NaN,\"id\": "
                     "\"" ID "\" } }\n",
                     payloads[i]);
        assert_int_equal(werkzeug_ask(port, "POST", "/task/new", 0, "tok", body,
                                      strlen(body), NULL, 0),
                         200);
        free(body);
        const char *sent = werkzeug_raw(master, "/slave/task/complete", i, &len);
        const char *start = strstr(sent, "\r\n\r\n") + 4;
        assert_text(
            "sent", (coord_text){start, len - (size_t)(start - sent)},
            print("{\"task\": {\"id\": \"" ID "\"}, \"result\": %s}", payloads[i]));
        assert_text("work", noted(&p.notes, "work"), strdup(payloads[i]));
    }
    close_pair(&p);
    werkzeug_stop(master);
}

static void keep_token(werkzeug *w, const werkzeug_request *request,
                       werkzeug_answer *answer, void *user)
{
    (void)w;
    (void)answer;
    note(user, "token", coord_text_of(request->token));
}

static void a_master_passes_on_what_a_python_slave_wrote(void **state)
{
    pair p = {.notes.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    werkzeug *slave = werkzeug_start(WERKZEUG_2_2, keep_token, &p.notes);
    open_master_of(&p, werkzeug_port(slave));
    assert_int_equal(
        coord_connection_connect(p.connection, coord_text_of(""), WAIT_MS, NULL),
        COORD_OK);
    for (size_t i = 0; i < PAYLOADS; i++) {
        coord_task *task = NULL;
        coord_text data = coord_text_of(payloads[i]);
        size_t len;
        assert_int_equal(coord_connection_new_task(p.connection, data, &task, NULL),
                         COORD_OK);
        assert_text("data", coord_task_data(task), strdup(payloads[i]));
        assert_int_equal(coord_task_start(task, WAIT_MS, 0, NULL), COORD_OK);
        const char *sent = werkzeug_raw(slave, "/task/new", i, &len);
        const char *start = strstr(sent, "\r\n\r\n") + 4;
        assert_text("sent", (coord_text){start, len - (size_t)(start - sent)},
                    print("{\"task\": {\"id\": \"%s\"}, \"data\": %s}",
                          coord_task_id(task), payloads[i]));

        coord_text token = noted(&p.notes, "token");
        char *text = print("%.*s", (int)token.len, token.ptr);
        char *body = print("{\"task\":\n{ \"id\":\"%s\"},\t\"result\" : %s\n }",
                           coord_task_id(task), payloads[i]);
        assert_int_equal(
            werkzeug_ask(coord_master_port(p.master), "PUT",
                         i % 2 == 0 ? "/slave/task/complete" : "/slave/task/fail", 0,
                         text, body, strlen(body), NULL, 0),
            200);
        assert_int_equal(coord_task_join(task, WAIT_MS, NULL),
                         i % 2 == 0 ? COORD_OK : COORD_ERR_TASK);
        assert_text("result", coord_task_result(task), strdup(payloads[i]));
        free(text);
        free(body);
        coord_task_unref(task);
    }
    close_pair(&p);
    werkzeug_stop(slave);
}

/* ---- a coordinator between two workers
 * --------------------------------------------------- */

typedef struct team {
    notes notes;
    const char *payload;
    int asked; /* data requests of the running task */
    coord_collector *collector;
    coord_learner *learner;
    CommCoordinator *c;
} team;

static coord_status do_start(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    team *t = user;
    (void)slave;
    note(&t->notes, "start", in);
    t->asked = 0;
    return coord_out_json(out, coord_text_of("{}"), err);
}

/* {key: the payload} */
static coord_status put(team *t, const char *before, coord_out *out, coord_error *err)
{
    char *text = print("{%s\"x\" : %s}", before, t->payload);
    coord_status rc = coord_out_json(out, coord_text_of(text), err);
    free(text);
    return rc;
}

static coord_status do_data(coord_slave *slave, coord_text in, coord_out *out,
                            coord_error *err, void *user)
{
    team *t = user;
    (void)slave;
    (void)in;
    return put(t, t->asked++ == 0 ? "\"data_id\": \"d\", " : "", out, err);
}

static coord_status do_get_data(coord_slave *slave, coord_text in, coord_out *out,
                                coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    return put(user, "\"batch_size\": 1, \"cur_learner_iter\": 0, ", out, err);
}

static coord_status do_learn(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    team *t = user;
    (void)slave;
    note(&t->notes, "learn", in);
    return put(t, "\"task_id\": 7, ", out, err);
}

static coord_status do_close(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    return put(user, "\"task_id\": \"another\", ", out, err);
}

static void on_send_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                         const char *data_id, coord_text data, void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)data_id;
    note(&t->notes, "send_data", data);
}

static bool on_judge(CommCoordinator *c, const char *task_id, coord_text info, void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    note(&t->notes, "judge", info);
    return true;
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    note(&t->notes, "finish", result);
}

static coord_status on_get_data(CommCoordinator *c, const char *task_id,
                                const char *buffer_id, int64_t batch_size, int64_t iter,
                                coord_out *out, void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)batch_size;
    (void)iter;
    coord_text sample = noted(&t->notes, "send_data");
    char *list = print("[ %.*s ,null]", (int)sample.len, sample.ptr);
    coord_status rc = coord_out_json(out, coord_text_of(list), NULL);
    free(list);
    return rc;
}

static void on_info(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    coord_text info, void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    (void)buffer_id;
    note(&t->notes, "info", info);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    note(&t->notes, "fail", coord_text_of(why->text));
}

static void start_coordinator(team *t, uint16_t collector_port, uint16_t learner_port)
{
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    coord_error err = {0};
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.user = t;
    cb.deal_with_collector_send_data = on_send_data;
    cb.deal_with_collector_judge_finish = on_judge;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_learner_get_data = on_get_data;
    cb.deal_with_learner_send_info = on_info;
    cb.deal_with_learner_judge_finish = on_judge;
    cb.deal_with_learner_finish_task = on_finish;
    cb.deal_with_task_fail = on_fail;
    char *config = print("{\"port\": 0, \"close_timeout_s\": 30, \"collector\": {\"0\": "
                         "[\"c\\u00fc0\", \"127.0.0.1\", %u]}, \"learner\": {\"0\": "
                         "[\"learner0\", \"127.0.0.1\", %u]}}",
                         (unsigned)collector_port, (unsigned)learner_port);
    comm_coordinator_options_init(&o, sizeof o);
    o.config = config;
    o.callbacks = &cb;
    if (comm_coordinator_create(&o, &t->c, &err) != COORD_OK ||
        comm_coordinator_start(t->c, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    free(config);
}

static void run_to_the_end(team *t, coord_role role, const char *task)
{
    coord_error err = {0};
    coord_text text = coord_text_of(task);
    coord_status rc = role == COORD_COLLECTOR
                          ? comm_coordinator_send_collector_task(t->c, text, NULL, &err)
                          : comm_coordinator_send_learner_task(t->c, text, NULL, &err);
    if (rc != COORD_OK || comm_coordinator_wait(t->c, WAIT_MS, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    coord_text failure = noted(&t->notes, "fail");
    if (failure.len > 0) {
        fail_msg("it failed: %.*s", (int)failure.len, failure.ptr);
    }
}

static void close_team(team *t)
{
    assert_int_equal(comm_coordinator_close(t->c, NULL), COORD_OK);
    comm_coordinator_destroy(t->c);
    coord_collector_destroy(t->collector);
    coord_learner_destroy(t->learner);
    forget(&t->notes);
}

static void open_workers(team *t)
{
    coord_slave_options o;
    coord_collector_callbacks ccb;
    coord_learner_callbacks lcb;
    coord_slave_options_init(&o, sizeof o);
    coord_collector_callbacks_init(&ccb, sizeof ccb);
    ccb.start = do_start;
    ccb.data = do_data;
    ccb.close = do_close;
    ccb.user = t;
    assert_int_equal(coord_collector_create(&o, &ccb, &t->collector, NULL), COORD_OK);
    coord_learner_callbacks_init(&lcb, sizeof lcb);
    lcb.start = do_start;
    lcb.get_data = do_get_data;
    lcb.learn = do_learn;
    lcb.close = do_close;
    lcb.user = t;
    assert_int_equal(coord_learner_create(&o, &lcb, &t->learner, NULL), COORD_OK);
}

static void check_collector(team *t)
{
    const char *x = t->payload;
    char *task = print("{\"task_id\": \"c\", \"buffer_id\": \"\\u0062\", \"x\": %s,\t"
                       "\"collector_id\": \"old\", \"y\": NaN }",
                       x);
    run_to_the_end(t, COORD_COLLECTOR, task);
    assert_text(
        "start", noted(&t->notes, "start"),
        print("{\"task_id\": \"c\", \"buffer_id\": \"\\u0062\", \"x\": %s, \"y\": "
              "NaN ,\"collector_id\":\"c\xc3\xbc"
              "0\",\"resource_info\":{}}",
              x));
    assert_text("send_data", noted(&t->notes, "send_data"),
                print("{\"data_id\": \"d\", \"x\" : %s,\"buffer_id\":\"\\u0062\","
                      "\"task_id\":\"c\"}",
                      x));
    assert_text("judge", noted(&t->notes, "judge"),
                print("{\"x\" : %s,\"buffer_id\":\"\\u0062\",\"task_id\":\"c\"}", x));
    assert_text("finish", noted(&t->notes, "finish"),
                print("{\"x\" : %s,\"task_id\":\"c\"}", x));
    free(task);
}

static void check_learner(team *t)
{
    const char *x = t->payload;
    char *task = print(" {\"x\": %s, \"task_id\": \"l\"}\n", x);
    coord_text sample = noted(&t->notes, "send_data");
    run_to_the_end(t, COORD_LEARNER, task);
    assert_text("start", noted(&t->notes, "start"),
                print("{\"x\": %s, \"task_id\": \"l\",\"learner_id\":\"learner0\","
                      "\"resource_info\":{}}",
                      x));
    assert_text("learn", noted(&t->notes, "learn"),
                print("[ %.*s ,null]", (int)sample.len, sample.ptr));
    assert_text("judge", noted(&t->notes, "judge"),
                print("{\"task_id\": 7, \"x\" : %s}", x));
    assert_text("info", noted(&t->notes, "info"),
                print("{\"task_id\": 7, \"x\" : %s}", x));
    assert_text("finish", noted(&t->notes, "finish"),
                print("{\"x\" : %s,\"task_id\":\"l\"}", x));
    free(task);
}

static void samples_go_from_a_collector_through_the_host_to_a_learner(void **state)
{
    team t = {.notes.lock = PTHREAD_MUTEX_INITIALIZER};
    (void)state;
    t.payload = payloads[0];
    open_workers(&t);
    start_coordinator(&t, coord_slave_port(coord_collector_slave(t.collector)),
                      coord_slave_port(coord_learner_slave(t.learner)));
    for (size_t i = 0; i < PAYLOADS; i++) {
        t.payload = payloads[i];
        check_collector(&t);
        check_learner(&t);
    }
    close_team(&t);
}

/* ---- a real training, with workers that speak as Python's do
 * ------------------------------ */

/* A worker's memory: its notes keep token and address of its master. */
typedef struct worker {
    notes notes;
    const char *resource;
    int asked;
} worker;

static const char *result_of(worker *w, const char *name)
{
    if (strcmp(name, "resource") == 0) {
        return w->resource;
    }
    if (strcmp(name, "collector_data_task") == 0) {
        return w->asked++ % 2 == 0
                   ? "{\"data_id\": \"d\", \"priority\": NaN, \"a\": 1e999}"
                   : "{\"collector_done\": true,  \"reward\": -Infinity}";
    }
    if (strcmp(name, "learner_get_data_task") == 0) {
        return "{\"task_id\": \"t\", \"buffer_id\": \"b\", \"batch_size\": 1, "
               "\"cur_learner_iter\": 0}";
    }
    if (strcmp(name, "learner_learn_task") == 0) {
        return "{\"info\":  {\"loss\": NaN,\"priority_info\" : {}}, \"task_id\": \"t\"}";
    }
    return strstr(name, "close") != NULL ? "{\"reward_mean\": NaN, \"task_id\": null}"
                                         : "{\"message\": \"task has started\"}";
}

/* Answers after it has sent its result, which a Python worker may do as well. */
static void work(werkzeug *z, const werkzeug_request *request, werkzeug_answer *answer,
                 void *user)
{
    worker *w = user;
    unsigned port;
    char id[40];
    char name[32];
    (void)z;
    (void)answer;
    if (sscanf(request->body, "{\"master\": {\"address\": \"http://127.0.0.1:%u\"",
               &port) == 1) {
        note(&w->notes, "port", (coord_text){(const char *)&port, sizeof port});
        return;
    }
    if (sscanf(request->body,
               "{\"task\": {\"id\": \"%36s\"}, \"data\": {\"name\": \"%31[a-z_]\"", id,
               name) != 2) {
        return;
    }
    char *body =
        print("{\"task\": {\"id\": \"%s\"}, \"result\": %s}", id, result_of(w, name));
    memcpy(&port, noted(&w->notes, "port").ptr, sizeof port);
    (void)werkzeug_ask((uint16_t)port, "PUT", "/slave/task/complete", 0, request->token,
                       body, strlen(body), NULL, 0);
    free(body);
}

static char *read_training(const char *name)
{
    char *path = print("test/vectors/training/%s", name);
    char *text = calloc(1, FILE_MAX);
    FILE *f = fopen(path, "re"); /* tests run in the top folder */
    assert_non_null(f);
    assert_true(fread(text, 1, FILE_MAX - 1, f) > 0);
    (void)fclose(f);
    free(path);
    return text;
}

/* The n-th request for a task of that name. */
static void assert_asked(werkzeug *w, size_t from, const char *name, char *data)
{
    for (size_t n = from;; n++) {
        size_t len;
        const char *raw = werkzeug_raw(w, "/task/new", n, &len);
        const char *body = strstr(raw, "\r\n\r\n") + 4;
        const char *asked = strstr(body, ", \"data\": ") + strlen(", \"data\": ");
        if (strncmp(asked + strlen("{\"name\": \""), name, strlen(name)) == 0) {
            assert_text(name, (coord_text){asked, len - (size_t)(asked - raw)}, data);
            return;
        }
    }
}

static void check_training_task(team *t, werkzeug *w, coord_role role, const char *file)
{
    const char *kind = coord_role_str(role);
    char *task = read_training(file);
    char *id_key = print(", \"%s_id\": \"", kind);
    char *start_name = print("%s_start_task", kind);
    const char *added = strstr(task, id_key); /* the recorded one had this already */
    size_t before = werkzeug_count(w, "/task/new");
    assert_non_null(added);
    assert_non_null(strstr(task, "Infinity"));
    run_to_the_end(t, role, task);
    assert_asked(w, before, start_name,
                 print("{\"name\": \"%s\", \"task_info\": %.*s,\"%s_id\":\"%s\","
                       "\"resource_info\":%s}}}",
                       start_name, (int)(added - task), task, kind,
                       role == COORD_COLLECTOR ? "c\xc3\xbc"
                                                 "0"
                                               : "learner0",
                       role == COORD_COLLECTOR ? "{\"gpu\":  1, \"cpu\": 20}"
                                               : "{\"gpu\": Infinity}"));
    assert_text("finish", noted(&t->notes, "finish"),
                strdup("{\"reward_mean\": NaN, \"task_id\": null}"));
    free(start_name);
    free(id_key);
    free(task);
}

static void a_recorded_training_goes_through_unchanged(void **state)
{
    static const char *const TASKS[] = {"collector_task_0.json", "collector_task_1.json",
                                        "evaluator_task.json"};
    static const char SAMPLE[] = "{\"data_id\": \"d\", \"priority\": NaN, \"a\": 1e999}";
    static const char INFO[] = "{\"loss\": NaN,\"priority_info\" : {}}";
    team t = {.notes.lock = PTHREAD_MUTEX_INITIALIZER};
    worker c = {.notes.lock = PTHREAD_MUTEX_INITIALIZER,
                .resource = "{\"gpu\":  1, \"cpu\": 20}"};
    worker l = {.notes.lock = PTHREAD_MUTEX_INITIALIZER,
                .resource = "{\"gpu\": Infinity}"};
    (void)state;
    werkzeug *collector = werkzeug_start(WERKZEUG_2_2, work, &c);
    werkzeug *learner = werkzeug_start(WERKZEUG_2_0, work, &l);
    start_coordinator(&t, werkzeug_port(collector), werkzeug_port(learner));
    for (size_t i = 0; i < 3; i++) {
        check_training_task(&t, collector, COORD_COLLECTOR, TASKS[i]);
        assert_text("sample", noted(&t.notes, "send_data"), strdup(SAMPLE));
        assert_text("judge", noted(&t.notes, "judge"),
                    strdup("{\"collector_done\": true,  \"reward\": -Infinity}"));
    }
    check_training_task(&t, learner, COORD_LEARNER, "learner_task.json");
    assert_asked(
        learner, 0, "learner_learn_task",
        print("{\"name\": \"learner_learn_task\", \"data\": [ %s ,null]}}", SAMPLE));
    assert_text("info", noted(&t.notes, "info"), strdup(INFO));
    assert_text("judge", noted(&t.notes, "judge"), strdup(INFO));
    close_team(&t);
    werkzeug_stop(collector);
    werkzeug_stop(learner);
    forget(&c.notes);
    forget(&l.notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_and_results_go_from_master_to_slave_and_back),
        cmocka_unit_test(greetings_and_refusals_arrive_as_they_are),
        cmocka_unit_test(a_result_that_python_takes_for_false_becomes_an_empty_object),
        cmocka_unit_test(a_slave_passes_on_what_a_python_master_wrote),
        cmocka_unit_test(a_master_passes_on_what_a_python_slave_wrote),
        cmocka_unit_test(samples_go_from_a_collector_through_the_host_to_a_learner),
        cmocka_unit_test(a_recorded_training_goes_through_unchanged),
    };
    return cmocka_run_group_tests_name("payload", tests, make_payloads, free_payloads);
}
