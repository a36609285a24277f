/* Payloads go through masters and slaves byte for byte, whatever Python's json writes
 * into them. */
#include "support/payloads.h"
#include "support/werkzeug.h"

#include "coord.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WAIT_MS = 60000 };

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
    notes_add(&p->notes, "connect", data);
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
    notes_add(&p->notes, "hook", data);
    return COORD_OK;
}

static coord_status take_disconnect(coord_slave *slave, coord_text data, coord_out *out,
                                    void *user)
{
    pair *p = user;
    (void)slave;
    (void)out;
    notes_add(&p->notes, "disconnect", data);
    return COORD_OK;
}

static coord_status do_task(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    pair *p = user;
    (void)slave;
    notes_add(&p->notes, "work", data);
    coord_status rc = coord_out_json(out, coord_text_of(p->answer), NULL);
    return rc == COORD_OK && p->fails ? COORD_ERR_TASK : rc;
}

static void on_connect(coord_connection *connection, const coord_error *failure,
                       coord_text data, void *user)
{
    pair *p = user;
    (void)connection;
    if (failure != NULL) {
        notes_add(&p->notes, "refused", data);
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
    notes_forget(&p->notes);
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
    *result = text_print("%.*s", (int)got.len, got.ptr);
    coord_task_unref(task);
    return rc;
}

static void data_and_results_go_from_master_to_slave_and_back(void **state)
{
    pair p = {.notes = NOTES_INIT};
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
            assert_text("hook", notes_get(&p.notes, "hook"), strdup(payloads[i]));
            assert_text("work", notes_get(&p.notes, "work"), strdup(payloads[i]));
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
        pair p = {.notes = NOTES_INIT};
        open_slave_of(&p);
        open_master_of(&p, coord_slave_port(p.slave));
        p.answer = payloads[i];
        p.refuses = short_enough;
        if (short_enough) {
            assert_int_equal(
                coord_connection_connect(p.connection, payload, WAIT_MS, NULL),
                COORD_ERR_REFUSED);
            assert_text("refused", notes_await(&p.notes, "refused"), strdup(payloads[i]));
        }
        p.refuses = false;
        assert_int_equal(coord_connection_connect(p.connection, payload, WAIT_MS, NULL),
                         COORD_OK);
        assert_text("connect", notes_get(&p.notes, "connect"), strdup(payloads[i]));
        assert_int_equal(
            coord_connection_disconnect(p.connection, payload, WAIT_MS, NULL), COORD_OK);
        assert_text("disconnect", notes_get(&p.notes, "disconnect"), strdup(payloads[i]));
        close_pair(&p);
    }
}

/* As the reference does it: data is left alone, unless it is null. */
static void a_result_that_python_takes_for_false_becomes_an_empty_object(void **state)
{
    static const char *const FALSE[] = {"null",   "false", "0",      "-0",   "0.0",
                                        "-0.0e7", "0E9",   "1e-999", "\"\"", "[]",
                                        "[ ]",    "{}",    "{\n}"};
    pair p = {.notes = NOTES_INIT};
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
        assert_text("data", notes_get(&p.notes, "work"),
                    strdup(i == 0 ? "{}" : FALSE[i]));
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
    pair p = {.notes = NOTES_INIT};
    (void)state;
    open_slave_of(&p);
    uint16_t port = coord_slave_port(p.slave);
    werkzeug *master = werkzeug_start(WERKZEUG_2_2, NULL, NULL);
    char *body = text_print("{\"master\": {\"address\": \"127.0.0.1:%u\"}, \"data\": {}}",
                            (unsigned)werkzeug_port(master));
    assert_int_equal(
        werkzeug_ask(port, "POST", "/connect", 0, "tok", body, strlen(body), NULL, 0),
        200);
    free(body);
    for (size_t i = 0; i < PAYLOADS; i++) {
        size_t len;
        p.answer = payloads[i];
        body = text_print(
            " {\"more\":1 ,\t\"data\" :\r\n %s\t, \"task\":{\"x\": NaN,\"id\": "
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
            text_print("{\"task\": {\"id\": \"" ID "\"}, \"result\": %s}", payloads[i]));
        assert_text("work", notes_get(&p.notes, "work"), strdup(payloads[i]));
    }
    close_pair(&p);
    werkzeug_stop(master);
}

static void keep_token(werkzeug *w, const werkzeug_request *request,
                       werkzeug_answer *answer, void *user)
{
    (void)w;
    (void)answer;
    notes_add(user, "token", coord_text_of(request->token));
}

static void a_master_passes_on_what_a_python_slave_wrote(void **state)
{
    pair p = {.notes = NOTES_INIT};
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
                    text_print("{\"task\": {\"id\": \"%s\"}, \"data\": %s}",
                               coord_task_id(task), payloads[i]));

        coord_text token = notes_get(&p.notes, "token");
        char *text = text_print("%.*s", (int)token.len, token.ptr);
        char *body = text_print("{\"task\":\n{ \"id\":\"%s\"},\t\"result\" : %s\n }",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_and_results_go_from_master_to_slave_and_back),
        cmocka_unit_test(greetings_and_refusals_arrive_as_they_are),
        cmocka_unit_test(a_result_that_python_takes_for_false_becomes_an_empty_object),
        cmocka_unit_test(a_slave_passes_on_what_a_python_master_wrote),
        cmocka_unit_test(a_master_passes_on_what_a_python_slave_wrote),
    };
    return cmocka_run_group_tests_name("payload", tests, payloads_make, payloads_free);
}
