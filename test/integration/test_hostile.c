/* A master, and a coordinator, over real sockets, among slaves that answer late, never,
 * twice, with wrong names or with nonsense, and that hang up at every byte of a whole
 * life. Whatever they do: what was begun ends in time with an error that says why, the
 * next peer is served at once, close returns, and neither a descriptor nor a thread stays
 * behind. */
#include "coord.h"
#include "support/hostile.h"
#include "support/simple.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEXT = 4096, PATIENCE_MS = 20000 };

#define ALL HOSTILE_ALL

static const coord_text NOTHING = {NULL, 0};

/* ---- a master, and a slave that is played by hand ---- */

static coord_master *new_master(int64_t timeout_ms)
{
    coord_master_options o;
    coord_master *m = NULL;
    coord_master_options_init(&o, sizeof o);
    o.request_retries = 0;
    o.request_timeout_ms = timeout_ms;
    o.heartbeat_tolerance_ms = 60000;
    o.max_body_bytes = 65536;
    o.max_inflight_bytes = 1 << 20;
    o.executor = COORD_EXECUTOR_INLINE;
    assert_int_equal(coord_master_create(&o, &m, NULL), COORD_OK);
    return m;
}

static void end_master(coord_master *m)
{
    int64_t began = hostile_now_ms();
    coord_error err = {0};
    if (coord_master_close(m, 5000, &err) != COORD_OK) {
        fail_msg("close: %s", err.text);
    }
    assert_true(hostile_now_ms() - began < 5000);
    coord_master_destroy(m);
}

static coord_connection *new_connection(coord_master *m, const char *id, hostile *h,
                                        coord_connection_fn *on_connect, void *user)
{
    coord_connection_options o;
    coord_connection *c = NULL;
    coord_connection_options_init(&o, sizeof o);
    o.id = id;
    o.host = "127.0.0.1";
    o.port = hostile_port(h);
    o.on_connect = on_connect;
    o.user = user;
    assert_int_equal(coord_master_new_connection(m, &o, &c, NULL), COORD_OK);
    return c;
}

/* What the slave was told: its token and its task's id. */
static void read_token(hostile *h, char out[80])
{
    char text[TEXT];
    hostile_read(h, "/connect", text, sizeof text);
    const char *at = strcasestr(text, "\r\nToken: ");
    assert_non_null(at);
    (void)snprintf(out, 80, "%.64s", at + 9);
}

static void print_result(char *out, const char *token, const char *id, const char *value)
{
    char body[256];
    (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}", id,
                   value);
    hostile_print(out, TEXT, "PUT", "/slave/task/complete", token, body);
}

static void expect_result(coord_task *task, const char *value)
{
    coord_error err = {0};
    if (coord_task_join(task, PATIENCE_MS, &err) != COORD_OK) {
        fail_msg("task: %s: %s", err.text, err.cause);
    }
    coord_text result = coord_task_result(task);
    assert_int_equal(result.len, strlen(value));
    assert_memory_equal(result.ptr, value, result.len);
}

static coord_task *started(coord_connection *c)
{
    coord_task *task = NULL;
    coord_error err = {0};
    assert_int_equal(coord_connection_new_task(c, NOTHING, &task, NULL), COORD_OK);
    if (coord_task_start(task, PATIENCE_MS, 0, &err) != COORD_OK) {
        fail_msg("start: %s: %s", err.text, err.cause);
    }
    return task;
}

static void joined(coord_connection *c)
{
    coord_error err = {0};
    if (coord_connection_connect(c, NOTHING, PATIENCE_MS, &err) != COORD_OK) {
        fail_msg("connect: %s: %s", err.text, err.cause);
    }
}

/* A slave that behaves is served at once, from beginning to end. */
static void serve_good_slave(coord_master *m, hostile *h)
{
    char token[80];
    char text[TEXT];
    int64_t began = hostile_now_ms();
    hostile_forget(h);
    coord_connection *c = new_connection(m, "good", h, NULL, NULL);
    joined(c);
    read_token(h, token);
    hostile_print(text, sizeof text, "GET", "/slave/heartbeat", token, "{}");
    assert_int_equal(hostile_ask(coord_master_port(m), text, NULL, 0), 0);
    coord_task *task = started(c);
    print_result(text, token, coord_task_id(task), "[NaN]");
    assert_int_equal(hostile_ask(coord_master_port(m), text, NULL, 0), 0);
    expect_result(task, "[NaN]");
    assert_int_equal(coord_connection_disconnect(c, NOTHING, PATIENCE_MS, NULL),
                     COORD_OK);
    coord_task_unref(task);
    coord_connection_destroy(c);
    assert_true(hostile_now_ms() - began < 5000);
}

/* ---- answers of all kinds ---- */

enum { CONNECT, TASK, DISCONNECT, STAGES };

typedef struct scene {
    const hostile_kind *kind;
    int stage; /* whose answer is of that kind */
    hostile *h;
    coord_connection *c;
    coord_task *task;
    coord_error why; /* of connecting */
    atomic_bool connected;
} scene;

static void on_connect(coord_connection *c, const coord_error *failure, coord_text data,
                       void *user)
{
    scene *s = user;
    (void)c;
    (void)data;
    s->why = failure == NULL ? (coord_error){0} : *failure;
    atomic_store(&s->connected, true);
}

static void await_flag(atomic_bool *flag)
{
    for (int64_t until = hostile_now_ms() + PATIENCE_MS; !atomic_load(flag);) {
        assert_true(hostile_now_ms() < until);
        (void)sched_yield();
    }
}

static void begin_scene(scene *s, coord_master *m, int n)
{
    static const hostile_step GOOD = {ALL, HOSTILE_YES, ALL, HOSTILE_CLOSE};
    char id[16];
    s->kind = &hostile_kinds[n % HOSTILE_KINDS];
    s->stage = n / HOSTILE_KINDS;
    s->h = hostile_start();
    for (int i = 0; i < s->stage; i++) {
        hostile_add(s->h, GOOD);
    }
    hostile_add(s->h, s->kind->step);
    (void)snprintf(id, sizeof id, "%d", n);
    s->c = new_connection(m, id, s->h, on_connect, s);
    assert_int_equal(coord_connection_connect(s->c, NOTHING, 0, NULL), COORD_OK);
}

static void check(const scene *s, int stage, const coord_error *why)
{
    bool good = s->stage != stage || s->kind->good;
    if ((why->status == COORD_OK) != good || (!good && why->text[0] == '\0')) {
        fail_msg("%s, at stage %d of %d: status %d: %s: %s", s->kind->name, stage,
                 s->stage, (int)why->status, why->text, why->cause);
    }
}

static void start_task(scene *s)
{
    await_flag(&s->connected);
    check(s, CONNECT, &s->why);
    assert_int_equal(coord_connection_is_connected(s->c), s->why.status == COORD_OK);
    if (coord_connection_is_connected(s->c)) {
        assert_int_equal(coord_connection_new_task(s->c, NOTHING, &s->task, NULL),
                         COORD_OK);
        assert_int_equal(coord_task_start(s->task, 0, 5000, NULL), COORD_OK);
    }
}

/* Where the start was accepted, the result follows. */
static void end_task(scene *s, coord_master *m)
{
    char token[80];
    char text[TEXT];
    coord_error why = {0};
    if (s->task == NULL) {
        return;
    }
    if (s->stage == TASK && !s->kind->good) {
        why.status = coord_task_join(s->task, PATIENCE_MS, &why);
        check(s, TASK, &why);
        assert_true(coord_task_get_status(s->task) == COORD_TASK_START_FAILED);
        return;
    }
    read_token(s->h, token);
    print_result(text, token, coord_task_id(s->task), "5");
    assert_int_equal(hostile_ask(coord_master_port(m), text, NULL, 0), 0);
    expect_result(s->task, "5");
}

static void a_master_bears_every_kind_of_answer(void **state)
{
    static scene scenes[STAGES * HOSTILE_KINDS];
    hostile_census before = hostile_count_all();
    hostile *friend = hostile_start();
    coord_master *m = new_master(1500);
    int64_t began = hostile_now_ms();
    (void)state;
    memset(scenes, 0, sizeof scenes);
    for (int i = 0; i < STAGES * HOSTILE_KINDS; i++) {
        begin_scene(&scenes[i], m, i);
    }
    for (int i = 0; i < STAGES * HOSTILE_KINDS; i++) {
        start_task(&scenes[i]);
    }
    serve_good_slave(m, friend);
    for (int i = 0; i < STAGES * HOSTILE_KINDS; i++) {
        end_task(&scenes[i], m);
    }
    for (int i = 0; i < STAGES * HOSTILE_KINDS; i++) {
        coord_status rc = coord_connection_disconnect(scenes[i].c, NOTHING, 0, NULL);
        assert_int_equal(rc, COORD_OK);
    }
    for (int i = 0; i < STAGES * HOSTILE_KINDS; i++) {
        assert_int_equal(
            coord_connection_disconnect(scenes[i].c, NOTHING, PATIENCE_MS, NULL),
            COORD_OK);
        assert_false(coord_connection_is_connected(scenes[i].c));
        coord_task_unref(scenes[i].task);
        coord_connection_destroy(scenes[i].c);
    }
    assert_true(hostile_now_ms() - began < PATIENCE_MS);
    serve_good_slave(m, friend);
    end_master(m);
    for (int i = 0; i < STAGES * HOSTILE_KINDS; i++) {
        hostile_stop(scenes[i].h);
    }
    hostile_stop(friend);
    assert_true(hostile_nothing_left(&before));
}

static void a_master_closes_in_time_among_slaves_that_never_answer(void **state)
{
    static scene scenes[STAGES];
    hostile_census before = hostile_count_all();
    coord_master *m = new_master(60000);
    coord_error err = {0};
    (void)state;
    memset(scenes, 0, sizeof scenes);
    for (int i = 0; i < STAGES; i++) {
        begin_scene(&scenes[i], m, i * HOSTILE_KINDS);
    }
    start_task(&scenes[TASK]);
    start_task(&scenes[DISCONNECT]);
    int64_t began = hostile_now_ms();
    assert_int_equal(coord_master_close(m, 300, &err), COORD_OK);
    assert_true(hostile_now_ms() - began < 3000);
    for (int i = TASK; i < STAGES; i++) {
        if (coord_task_join(scenes[i].task, 0, &err) != COORD_ERR_CLOSED) {
            fail_msg("stage %d: %s: %s", i, err.text, err.cause);
        }
        coord_task_unref(scenes[i].task);
    }
    for (int i = 0; i < STAGES; i++) {
        coord_connection_destroy(scenes[i].c);
        hostile_stop(scenes[i].h);
    }
    coord_master_destroy(m);
    assert_true(hostile_nothing_left(&before));
}

/* ---- a slave that hangs up at every byte ---- */

/* Lengths of the three requests of a life; all lives of a master have the same. */
static void measure(hostile *h, size_t length[STAGES])
{
    static const char *const PATHS[] = {"/connect", "/task/new", "/disconnect"};
    char text[TEXT];
    for (int i = 0; i < STAGES; i++) {
        hostile_read(h, PATHS[i], text, sizeof text);
        length[i] = strlen(text);
        assert_true(length[i] > 50);
    }
}

/* One life, of which connection `stage` follows the step. */
static void live_on_a_cut(coord_master *m, hostile *h, int stage, hostile_step step,
                          bool good)
{
    char token[80];
    char text[TEXT];
    coord_error err = {0};
    hostile_forget(h);
    for (int i = 0; i < stage; i++) {
        hostile_add(h, (hostile_step){ALL, HOSTILE_YES, ALL, HOSTILE_CLOSE});
    }
    hostile_add(h, step);
    coord_connection *c = new_connection(m, "cut", h, NULL, NULL);
    coord_task *task = NULL;
    if (stage == CONNECT && !good) {
        assert_int_equal(coord_connection_connect(c, NOTHING, PATIENCE_MS, &err),
                         COORD_ERR_LOST);
        assert_false(coord_connection_is_connected(c));
        assert_true(err.text[0] != '\0');
        hostile_forget(h);
    }
    joined(c);
    assert_int_equal(coord_connection_new_task(c, NOTHING, &task, NULL), COORD_OK);
    coord_status rc = coord_task_start(task, PATIENCE_MS, 0, &err);
    if (stage == TASK && !good) {
        assert_int_equal(rc, COORD_ERR_LOST);
        assert_int_equal(coord_task_join(task, 0, NULL), COORD_ERR_LOST);
        assert_true(err.text[0] != '\0');
    } else {
        assert_int_equal(rc, COORD_OK);
        read_token(h, token);
        print_result(text, token, coord_task_id(task), "1");
        assert_int_equal(hostile_ask(coord_master_port(m), text, NULL, 0), 0);
        expect_result(task, "1");
    }
    assert_int_equal(coord_connection_disconnect(c, NOTHING, PATIENCE_MS, NULL),
                     COORD_OK);
    coord_task_unref(task);
    coord_connection_destroy(c);
}

static void a_slave_may_hang_up_at_every_byte_of_what_it_is_asked(void **state)
{
    hostile_census before = hostile_count_all();
    hostile *h = hostile_start();
    coord_master *m = new_master(PATIENCE_MS);
    size_t length[STAGES];
    (void)state;
    serve_good_slave(m, h);
    measure(h, length);
    for (int stage = 0; stage < STAGES; stage++) {
        for (size_t at = 0; at < length[stage]; at++) {
            live_on_a_cut(
                m, h, stage,
                (hostile_step){at, NULL, 0, at % 2 == 0 ? HOSTILE_CLOSE : HOSTILE_RESET},
                false);
        }
        for (size_t at = 0; at < sizeof HOSTILE_YES; at++) {
            live_on_a_cut(m, h, stage,
                          (hostile_step){ALL, HOSTILE_YES, at, HOSTILE_CLOSE},
                          at == sizeof HOSTILE_YES - 1);
        }
    }
    serve_good_slave(m, h);
    end_master(m);
    hostile_stop(h);
    assert_true(hostile_nothing_left(&before));
}

static void a_slave_may_hang_up_at_every_byte_of_what_it_reports(void **state)
{
    char token[80];
    char text[TEXT];
    hostile_census before = hostile_count_all();
    hostile *h = hostile_start();
    coord_master *m = new_master(PATIENCE_MS);
    uint16_t port = coord_master_port(m);
    (void)state;
    coord_connection *c = new_connection(m, "s", h, NULL, NULL);
    joined(c);
    read_token(h, token);
    hostile_print(text, sizeof text, "GET", "/slave/heartbeat", token, "{}");
    hostile_cut_request(port, text);
    hostile_cut_answer(port, text);
    coord_task *task = started(c);
    print_result(text, token, coord_task_id(task), "\"whole\"");
    hostile_cut_request(port, text);
    assert_int_equal(coord_task_get_status(task), COORD_TASK_STARTED);
    hostile_cut_answer(port, text);
    expect_result(task, "\"whole\"");
    coord_task *next = started(c);
    print_result(text, token, coord_task_id(next), "2");
    hostile_stop_short(port, text, strlen(text), 0,
                       false); /* it hears no answer at all */
    expect_result(next, "2");
    assert_true(coord_connection_is_connected(c));
    serve_good_slave(m, h);
    coord_task_unref(task);
    coord_task_unref(next);
    coord_connection_destroy(c);
    end_master(m);
    hostile_stop(h);
    assert_true(hostile_nothing_left(&before));
}

/* ---- a slave that reports nonsense ---- */

static void say(uint16_t port, const char *path, const char *token, const char *body,
                int code)
{
    char text[TEXT];
    hostile_print(text, sizeof text, "PUT", path, token, body);
    int said = hostile_ask(port, text, NULL, 0);
    if (said != code) {
        fail_msg("PUT %s %s: code %d", path, body, said);
    }
}

static void a_master_sorts_out_what_slaves_report(void **state)
{
    static const char DONE[] = "/slave/task/complete";
    char tokens[2][80];
    char text[TEXT];
    hostile_census before = hostile_count_all();
    hostile *h[2] = {hostile_start(), hostile_start()};
    coord_connection *c[2];
    coord_task *tasks[3];
    coord_master *m = new_master(PATIENCE_MS);
    uint16_t port = coord_master_port(m);
    (void)state;
    for (int i = 0; i < 2; i++) {
        c[i] = new_connection(m, i == 0 ? "a" : "b", h[i], NULL, NULL);
        joined(c[i]);
        read_token(h[i], tokens[i]);
        tasks[i] = started(c[i]);
    }
    tasks[2] = started(c[0]);
    say(port, DONE, "no such token", "{}", 502);
    say(port, DONE, tokens[0], "", 601);
    say(port, DONE, tokens[0], "{\"task\": ", 601);
    say(port, DONE, tokens[0], "[[[[[[[[[[[[[[[[", 601);
    say(port, DONE, tokens[0], "{\"task\": {\"id\": 7}, \"result\": 1}", 601);
    print_result(text, tokens[0], "0123abcd-89ab-cdef-0123-456789abcdef", "\"unknown\"");
    assert_int_equal(hostile_ask(port, text, NULL, 0), 0);
    print_result(text, tokens[1], coord_task_id(tasks[0]), "\"stolen\"");
    assert_int_equal(hostile_ask(port, text, NULL, 0), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(coord_task_get_status(tasks[i]), COORD_TASK_STARTED);
    }
    print_result(text, tokens[0], coord_task_id(tasks[2]), "\"last first\"");
    assert_int_equal(hostile_ask_slowly(port, text), 0);
    for (int again = 0; again < 2; again++) { /* the second time is dropped */
        print_result(text, tokens[0], coord_task_id(tasks[0]), again ? "\"2\"" : "\"1\"");
        assert_int_equal(hostile_ask(port, text, NULL, 0), 0);
    }
    print_result(text, tokens[1], coord_task_id(tasks[1]), "\"b\"");
    assert_int_equal(hostile_ask(port, text, NULL, 0), 0);
    expect_result(tasks[0], "\"1\"");
    expect_result(tasks[1], "\"b\"");
    expect_result(tasks[2], "\"last first\"");
    for (int i = 0; i < 3; i++) {
        coord_task_unref(tasks[i]);
    }
    for (int i = 0; i < 2; i++) {
        coord_connection_destroy(c[i]);
        hostile_stop(h[i]);
    }
    end_master(m);
    assert_true(hostile_nothing_left(&before));
}

static void a_master_bears_what_is_no_request(void **state)
{
    int open[HOSTILE_HELD];
    hostile_census before = hostile_count_all();
    hostile *h = hostile_start();
    coord_master *m = new_master(PATIENCE_MS);
    (void)state;
    assert_true(hostile_pester(coord_master_port(m), "/slave/heartbeat", open));
    serve_good_slave(m, h);
    end_master(m); /* with those that it never got to the end of */
    for (int i = 0; i < HOSTILE_HELD; i++) {
        (void)close(open[i]);
    }
    hostile_stop(h);
    assert_true(hostile_nothing_left(&before));
}

/* ---- a coordinator among workers of bad manners ---- */

static void on_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    const char *data_id, coord_text data, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)data_id;
    (void)data;
    (void)user;
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    (void)c;
    (void)task_id;
    (void)result;
    atomic_fetch_add((atomic_int *)user, 1);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    (void)c;
    (void)task_id;
    (void)why;
    atomic_fetch_add((atomic_int *)user, 1000);
}

static coord_status do_nothing(coord_slave *slave, coord_text in, coord_out *out,
                               coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)user;
    return coord_out_printf(out, err, "{}");
}

static coord_collector *new_collector(void)
{
    coord_slave_options o;
    coord_collector_callbacks cb;
    coord_collector *collector = NULL;
    coord_slave_options_init(&o, sizeof o);
    coord_collector_callbacks_init(&cb, sizeof cb);
    cb.resource = cb.start = cb.data = cb.close = do_nothing;
    assert_int_equal(coord_collector_create(&o, &cb, &collector, NULL), COORD_OK);
    return collector;
}

static CommCoordinator *start_coordinator(hostile *bad[HOSTILE_KINDS], uint16_t good,
                                          atomic_int *ends)
{
    static char config[8192];
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    CommCoordinator *c = NULL;
    coord_error err = {0};
    int at = snprintf(config, sizeof config,
                      "{\"port\": 0, \"max_retry_second\": 2, \"request_timeout_s\": 1, "
                      "\"close_timeout_s\": 5, \"collector\": {\"g\": [\"good\", "
                      "\"127.0.0.1\", %u]",
                      (unsigned)good);
    for (int i = 0; i < HOSTILE_KINDS; i++) {
        at += snprintf(config + at, sizeof config - (size_t)at,
                       ", \"%d\": [\"bad%d\", \"127.0.0.1\", %u]", i, i,
                       (unsigned)hostile_port(bad[i]));
    }
    (void)snprintf(config + at, sizeof config - (size_t)at, "}}");
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = on_data;
    cb.deal_with_collector_judge_finish = simple_is_enough;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_task_fail = on_fail;
    cb.user = ends;
    comm_coordinator_options_init(&o, sizeof o);
    o.config = config;
    o.callbacks = &cb;
    if (comm_coordinator_create(&o, &c, &err) != COORD_OK ||
        comm_coordinator_start(c, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    return c;
}

static void a_coordinator_works_among_workers_of_bad_manners(void **state)
{
    hostile *bad[HOSTILE_KINDS];
    atomic_int ends = 0;
    coord_error err = {0};
    hostile_census before = hostile_count_all();
    (void)state;
    for (int i = 0; i < HOSTILE_KINDS; i++) {
        bad[i] = hostile_start();
        for (int n = 0; n < 200; n++) {
            hostile_add(bad[i], hostile_kinds[i].step);
        }
    }
    coord_collector *good = new_collector();
    CommCoordinator *c =
        start_coordinator(bad, coord_slave_port(coord_collector_slave(good)), &ends);
    for (int i = 0; i < 20; i++) {
        char task[64];
        (void)snprintf(task, sizeof task, "{\"task_id\": \"%d\"}", i);
        assert_int_equal(
            comm_coordinator_post_collector_task(c, coord_text_of(task), NULL), COORD_OK);
    }
    assert_int_equal(comm_coordinator_wait(c, PATIENCE_MS, NULL), COORD_OK);
    assert_int_equal(atomic_load(&ends), 20);
    int64_t began = hostile_now_ms();
    if (comm_coordinator_close(c, &err) != COORD_OK) {
        fail_msg("close: %s", err.text);
    }
    assert_true(hostile_now_ms() - began < 6000);
    comm_coordinator_destroy(c);
    coord_collector_destroy(good);
    for (int i = 0; i < HOSTILE_KINDS; i++) {
        hostile_stop(bad[i]);
    }
    assert_true(hostile_nothing_left(&before));
}

/* What the libraries keep for good, once they were used, is there before the first test
 * counts. */
static int warm_up(void **state)
{
    hostile *h = hostile_start();
    coord_master *m = new_master(PATIENCE_MS);
    (void)state;
    serve_good_slave(m, h);
    end_master(m);
    hostile_stop(h);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_master_bears_every_kind_of_answer),
        cmocka_unit_test(a_master_closes_in_time_among_slaves_that_never_answer),
        cmocka_unit_test(a_slave_may_hang_up_at_every_byte_of_what_it_is_asked),
        cmocka_unit_test(a_slave_may_hang_up_at_every_byte_of_what_it_reports),
        cmocka_unit_test(a_master_sorts_out_what_slaves_report),
        cmocka_unit_test(a_master_bears_what_is_no_request),
        cmocka_unit_test(a_coordinator_works_among_workers_of_bad_manners),
    };
    return cmocka_run_group_tests_name("hostile slaves", tests, warm_up, NULL);
}
