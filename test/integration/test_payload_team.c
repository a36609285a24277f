/* Payloads go from workers through a coordinator to its host and to other workers byte
 * for byte; only the keys that the protocol adds are added. */
#include "support/payloads.h"
#include "support/werkzeug.h"

#include "coord.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, FILE_MAX = 8192 };

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
    notes_add(&t->notes, "start", in);
    t->asked = 0;
    return coord_out_json(out, coord_text_of("{}"), err);
}

/* {key: the payload} */
static coord_status put(team *t, const char *before, coord_out *out, coord_error *err)
{
    char *text = text_print("{%s\"x\" : %s}", before, t->payload);
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
    notes_add(&t->notes, "learn", in);
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
    notes_add(&t->notes, "send_data", data);
}

static bool on_judge(CommCoordinator *c, const char *task_id, coord_text info, void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    notes_add(&t->notes, "judge", info);
    return true;
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    notes_add(&t->notes, "finish", result);
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
    coord_text sample = notes_get(&t->notes, "send_data");
    char *list = text_print("[ %.*s ,null]", (int)sample.len, sample.ptr);
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
    notes_add(&t->notes, "info", info);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    team *t = user;
    (void)c;
    (void)task_id;
    notes_add(&t->notes, "fail", coord_text_of(why->text));
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
    char *config =
        text_print("{\"port\": 0, \"close_timeout_s\": 30, \"collector\": {\"0\": "
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
    coord_text failure = notes_get(&t->notes, "fail");
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
    notes_forget(&t->notes);
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
    char *task =
        text_print("{\"task_id\": \"c\", \"buffer_id\": \"\\u0062\", \"x\": %s,\t"
                   "\"collector_id\": \"old\", \"y\": NaN }",
                   x);
    run_to_the_end(t, COORD_COLLECTOR, task);
    assert_text(
        "start", notes_get(&t->notes, "start"),
        text_print("{\"task_id\": \"c\", \"buffer_id\": \"\\u0062\", \"x\": %s, \"y\": "
                   "NaN ,\"collector_id\":\"c\xc3\xbc"
                   "0\",\"resource_info\":{}}",
                   x));
    assert_text("send_data", notes_get(&t->notes, "send_data"),
                text_print("{\"data_id\": \"d\", \"x\" : %s,\"buffer_id\":\"\\u0062\","
                           "\"task_id\":\"c\"}",
                           x));
    assert_text(
        "judge", notes_get(&t->notes, "judge"),
        text_print("{\"x\" : %s,\"buffer_id\":\"\\u0062\",\"task_id\":\"c\"}", x));
    assert_text("finish", notes_get(&t->notes, "finish"),
                text_print("{ \"x\" : %s,\"task_id\":\"c\"}", x));
    free(task);
}

static void check_learner(team *t)
{
    const char *x = t->payload;
    char *task = text_print(" {\"x\": %s, \"task_id\": \"l\"}\n", x);
    coord_text sample = notes_get(&t->notes, "send_data");
    run_to_the_end(t, COORD_LEARNER, task);
    assert_text("start", notes_get(&t->notes, "start"),
                text_print("{\"x\": %s, \"task_id\": \"l\",\"learner_id\":\"learner0\","
                           "\"resource_info\":{}}",
                           x));
    assert_text("learn", notes_get(&t->notes, "learn"),
                text_print("[ %.*s ,null]", (int)sample.len, sample.ptr));
    assert_text("judge", notes_get(&t->notes, "judge"),
                text_print("{\"task_id\": 7, \"x\" : %s}", x));
    assert_text("info", notes_get(&t->notes, "info"),
                text_print("{\"task_id\": 7, \"x\" : %s}", x));
    assert_text("finish", notes_get(&t->notes, "finish"),
                text_print("{ \"x\" : %s,\"task_id\":\"l\"}", x));
    free(task);
}

static void samples_go_from_a_collector_through_the_host_to_a_learner(void **state)
{
    team t = {.notes = NOTES_INIT};
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
        notes_add(&w->notes, "port", (coord_text){(const char *)&port, sizeof port});
        return;
    }
    if (sscanf(request->body,
               "{\"task\": {\"id\": \"%36s\"}, \"data\": {\"name\": \"%31[a-z_]\"", id,
               name) != 2) {
        return;
    }
    char *body = text_print("{\"task\": {\"id\": \"%s\"}, \"result\": %s}", id,
                            result_of(w, name));
    memcpy(&port, notes_get(&w->notes, "port").ptr, sizeof port);
    (void)werkzeug_ask((uint16_t)port, "PUT", "/slave/task/complete", 0, request->token,
                       body, strlen(body), NULL, 0);
    free(body);
}

static char *read_training(const char *name)
{
    char *path = text_print("test/vectors/training/%s", name);
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
    char *id_key = text_print(", \"%s_id\": \"", kind);
    char *start_name = text_print("%s_start_task", kind);
    const char *added = strstr(task, id_key); /* the recorded one had this already */
    size_t before = werkzeug_count(w, "/task/new");
    assert_non_null(added);
    assert_non_null(strstr(task, "Infinity"));
    run_to_the_end(t, role, task);
    assert_asked(w, before, start_name,
                 text_print("{\"name\": \"%s\", \"task_info\": %.*s,\"%s_id\":\"%s\","
                            "\"resource_info\":%s}}}",
                            start_name, (int)(added - task), task, kind,
                            role == COORD_COLLECTOR ? "c\xc3\xbc"
                                                      "0"
                                                    : "learner0",
                            role == COORD_COLLECTOR ? "{\"gpu\":  1, \"cpu\": 20}"
                                                    : "{\"gpu\": Infinity}"));
    assert_text("finish", notes_get(&t->notes, "finish"),
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
    team t = {.notes = NOTES_INIT};
    worker c = {.notes = NOTES_INIT, .resource = "{\"gpu\":  1, \"cpu\": 20}"};
    worker l = {.notes = NOTES_INIT, .resource = "{\"gpu\": Infinity}"};
    (void)state;
    werkzeug *collector = werkzeug_start(WERKZEUG_2_2, work, &c);
    werkzeug *learner = werkzeug_start(WERKZEUG_2_0, work, &l);
    start_coordinator(&t, werkzeug_port(collector), werkzeug_port(learner));
    for (size_t i = 0; i < 3; i++) {
        check_training_task(&t, collector, COORD_COLLECTOR, TASKS[i]);
        assert_text("sample", notes_get(&t.notes, "send_data"), strdup(SAMPLE));
        assert_text("judge", notes_get(&t.notes, "judge"),
                    strdup("{\"collector_done\": true,  \"reward\": -Infinity}"));
    }
    check_training_task(&t, learner, COORD_LEARNER, "learner_task.json");
    assert_asked(
        learner, 0, "learner_learn_task",
        text_print("{\"name\": \"learner_learn_task\", \"data\": [ %s ,null]}}", SAMPLE));
    assert_text("info", notes_get(&t.notes, "info"), strdup(INFO));
    assert_text("judge", notes_get(&t.notes, "judge"), strdup(INFO));
    close_team(&t);
    werkzeug_stop(collector);
    werkzeug_stop(learner);
    notes_forget(&c.notes);
    notes_forget(&l.notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_go_from_a_collector_through_the_host_to_a_learner),
        cmocka_unit_test(a_recorded_training_goes_through_unchanged),
    };
    return cmocka_run_group_tests_name("payload_team", tests, payloads_make,
                                       payloads_free);
}
