/* A slave over real sockets, among masters that answer late, never, twice, or with
 * nonsense, and that hang up at every byte of a whole life. Whatever they do: the slave
 * is free for the next master at once, does each task once, close returns, and neither a
 * descriptor nor a thread stays behind. */
#include "coord.h"
#include "support/hostile.h"

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

static const char ID_A[] = "0123abcd-89ab-cdef-0123-456789abcdef";

typedef struct worker {
    coord_slave *slave;
    atomic_int works;
    atomic_bool lost;
    const hostile_kind *kind; /* of the answers that it gets */
    hostile *h;               /* its master */
} worker;

static coord_status work(coord_slave *slave, coord_text data, coord_out *out, void *user)
{
    worker *w = user;
    (void)slave;
    (void)data;
    atomic_fetch_add(&w->works, 1);
    return coord_out_printf(out, NULL, "[7]");
}

static void await_flag(atomic_bool *flag)
{
    for (int64_t until = hostile_now_ms() + PATIENCE_MS; !atomic_load(flag);) {
        assert_true(hostile_now_ms() < until);
        (void)sched_yield();
    }
}

static void on_lost(coord_slave *slave, const coord_error *why, void *user)
{
    worker *w = user;
    (void)slave;
    if (why->text[0] != '\0') {
        atomic_store(&w->lost, true);
    }
}

static void new_slave(worker *w, coord_loop *loop, int64_t heartbeat_ms,
                      int64_t timeout_ms)
{
    coord_slave_options o;
    coord_error err = {0};
    coord_slave_options_init(&o, sizeof o);
    o.heartbeat_ms = heartbeat_ms;
    o.request_retries = 0;
    o.request_timeout_ms = timeout_ms;
    o.max_body_bytes = 65536;
    o.max_inflight_bytes = 1 << 20;
    o.executor = COORD_EXECUTOR_INLINE;
    o.process_task = work;
    o.on_lost = on_lost;
    o.loop = loop;
    o.user = w;
    if (coord_slave_create(&o, &w->slave, &err) != COORD_OK) {
        fail_msg("slave: %s: %s", err.text, err.cause);
    }
}

static void end_slave(worker *w)
{
    int64_t began = hostile_now_ms();
    assert_int_equal(coord_slave_close(w->slave, 5000, NULL), COORD_OK);
    assert_true(hostile_now_ms() - began < 5000);
    coord_slave_destroy(w->slave);
}

static void print_connect(char *out, const char *token, hostile *h)
{
    char body[128];
    (void)snprintf(body, sizeof body,
                   "{\"master\": {\"address\": \"http://127.0.0.1:%u\"}, \"data\": {}}",
                   (unsigned)hostile_port(h));
    hostile_print(out, TEXT, "POST", "/connect", token, body);
}

static void print_task(char *out, const char *token, const char *id)
{
    char body[128];
    (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"data\": 1}", id);
    hostile_print(out, TEXT, "POST", "/task/new", token, body);
}

static void print_disconnect(char *out, const char *token)
{
    hostile_print(out, TEXT, "DELETE", "/disconnect", token, "{\"data\": {}}");
}

static void tell(const worker *w, const char *text, int code)
{
    char answer[TEXT] = "";
    int said = hostile_ask(coord_slave_port(w->slave), text, answer, sizeof answer);
    if (said != code) {
        fail_msg("code %d: %s\n%s", said, answer, text);
    }
}

static void await_connected(const worker *w, bool connected)
{
    int64_t until = hostile_now_ms() + PATIENCE_MS;
    while (coord_slave_is_connected(w->slave) != connected) {
        assert_true(hostile_now_ms() < until);
        (void)sched_yield();
    }
}

/* A master that behaves finds the slave free, and gets its work done. */
static void serve_good_master(worker *w, hostile *h)
{
    char text[TEXT];
    int64_t began = hostile_now_ms();
    int works = atomic_load(&w->works);
    hostile_forget(h);
    print_connect(text, "good", h);
    tell(w, text, 0);
    print_task(text, "good", ID_A);
    tell(w, text, 0);
    hostile_read(h, "/slave/task/complete", text, sizeof text);
    assert_non_null(strstr(text, "\"result\": [7]"));
    assert_non_null(strstr(text, ID_A));
    assert_int_equal(atomic_load(&w->works), works + 1);
    print_disconnect(text, "good");
    tell(w, text, 0);
    assert_false(coord_slave_is_connected(w->slave));
    assert_true(hostile_now_ms() - began < 5000);
}

static void a_slave_bears_every_kind_of_answer(void **state)
{
    static worker workers[2 * HOSTILE_KINDS];
    char text[TEXT];
    hostile_census before = hostile_count_all();
    coord_loop *loop = NULL;
    (void)state;
    memset(workers, 0, sizeof workers);
    assert_int_equal(coord_loop_create(NULL, &loop, NULL), COORD_OK);
    for (int i = 0; i < 2 * HOSTILE_KINDS; i++) {
        worker *w = &workers[i];
        w->kind = &hostile_kinds[i % HOSTILE_KINDS];
        w->h = hostile_start();
        hostile_add(w->h, w->kind->step);
        new_slave(w, loop, i < HOSTILE_KINDS ? 200 : 60000, 1500);
        print_connect(text, "bad", w->h);
        tell(w, text, 0);
        if (i >= HOSTILE_KINDS) { /* the answer to its result, not to its heartbeat */
            print_task(text, "bad", ID_A);
            tell(w, text, 0);
        }
    }
    for (int i = 0; i < 2 * HOSTILE_KINDS; i++) {
        worker *w = &workers[i];
        hostile_read(w->h,
                     i < HOSTILE_KINDS ? "/slave/heartbeat" : "/slave/task/complete",
                     text, sizeof text);
        assert_true(text[0] != '\0');
        if (w->kind->silent) {
            await_flag(&w->lost);
            assert_false(coord_slave_is_connected(w->slave));
        } else if (coord_slave_is_connected(w->slave)) {
            print_disconnect(text, "bad");
            (void)hostile_ask(coord_slave_port(w->slave), text, NULL, 0);
            await_connected(w, false);
        }
        serve_good_master(w, w->h);
    }
    for (int i = 0; i < 2 * HOSTILE_KINDS; i++) {
        end_slave(&workers[i]);
        hostile_stop(workers[i].h);
    }
    coord_loop_destroy(loop);
    assert_true(hostile_nothing_left(&before));
}

/* ---- a master that hangs up at every byte ---- */

enum { CONNECT, TASK, DISCONNECT, STAGES };

/* One life, of whose request `stage` the master hears `at` bytes of the answer. */
static void live_on_a_cut(worker *w, hostile *h, int stage, size_t at)
{
    char texts[STAGES][TEXT];
    char id[64];
    uint16_t port = coord_slave_port(w->slave);
    int works = atomic_load(&w->works);
    (void)snprintf(id, sizeof id, "%08zu-89ab-cdef-0123-%012d", at, stage);
    print_connect(texts[CONNECT], "t", h);
    print_task(texts[TASK], "t", id);
    print_disconnect(texts[DISCONNECT], "t");
    hostile_forget(h);
    for (int i = 0; i < STAGES; i++) {
        if (i == stage) {
            hostile_stop_short(port, texts[i], strlen(texts[i]), at, false);
        } else {
            tell(w, texts[i], 0);
        }
        if (i == TASK) {
            hostile_read(h, "/slave/task/complete", texts[TASK], TEXT);
            assert_non_null(strstr(texts[TASK], id));
        } else {
            await_connected(w, i == CONNECT);
        }
    }
    assert_int_equal(atomic_load(&w->works), works + 1);
}

static void a_master_may_hang_up_at_every_byte_of_what_it_asks(void **state)
{
    char texts[STAGES][TEXT];
    char answers[STAGES][TEXT];
    hostile_census before = hostile_count_all();
    hostile *h = hostile_start();
    worker w = {0};
    (void)state;
    new_slave(&w, NULL, 60000, PATIENCE_MS);
    uint16_t port = coord_slave_port(w.slave);
    print_connect(texts[CONNECT], "t", h);
    print_task(texts[TASK], "t", ID_A);
    print_disconnect(texts[DISCONNECT], "t");
    for (int i = 0; i < STAGES; i++) {
        hostile_cut_request(port, texts[i]);
        assert_int_equal(coord_slave_is_connected(w.slave), i != CONNECT);
        assert_int_equal(atomic_load(&w.works), i == DISCONNECT);
        assert_int_equal(hostile_ask(port, texts[i], answers[i], TEXT), 0);
        if (i == TASK) {
            hostile_read(h, "/slave/task/complete", texts[TASK], TEXT);
        }
    }
    for (int i = 0; i < STAGES; i++) {
        for (size_t at = 0; at <= strlen(answers[i]); at++) {
            live_on_a_cut(&w, h, i, at);
        }
    }
    serve_good_master(&w, h);
    end_slave(&w);
    hostile_stop(h);
    assert_true(hostile_nothing_left(&before));
}

/* The n-th of some slaves sends one heartbeat, or one result, to a master that hangs up
 * at byte `from + n`, below `end`. */
enum { WAVE = 48 };
static void cut_reports(coord_loop *loop, hostile *h, hostile *friend, bool beats,
                        bool answer, size_t from, size_t end)
{
    static worker workers[WAVE];
    char text[TEXT];
    size_t wave = end - from < WAVE ? end - from : WAVE;
    memset(workers, 0, sizeof workers);
    hostile_forget(h);
    for (size_t at = from; at < from + wave; at++) {
        hostile_add(h, answer ? (hostile_step){ALL, HOSTILE_YES, at, HOSTILE_CLOSE}
                              : (hostile_step){at, NULL, 0,
                                               at % 2 ? HOSTILE_RESET : HOSTILE_CLOSE});
    }
    for (size_t i = 0; i < wave; i++) {
        new_slave(&workers[i], loop, beats ? 200 : 60000, PATIENCE_MS);
        print_connect(text, "t", h);
        tell(&workers[i], text, 0);
        if (!beats) {
            print_task(text, "t", ID_A);
            tell(&workers[i], text, 0);
        }
    }
    for (size_t i = 0; i < wave; i++) {
        await_flag(&workers[i].lost);
        assert_false(coord_slave_is_connected(workers[i].slave));
        if (i % 16 == 0) {
            serve_good_master(&workers[i], friend);
        }
        end_slave(&workers[i]);
    }
    assert_int_equal(hostile_count(h), wave);
}

static void a_master_may_hang_up_at_every_byte_of_what_it_is_told(void **state)
{
    char text[TEXT];
    hostile_census before = hostile_count_all();
    hostile *h = hostile_start();
    hostile *friend = hostile_start();
    coord_loop *loop = NULL;
    worker w = {0};
    size_t length[2];
    (void)state;
    assert_int_equal(coord_loop_create(NULL, &loop, NULL), COORD_OK);
    new_slave(&w, loop, 200, PATIENCE_MS);
    print_connect(text, "t", h);
    tell(&w, text, 0);
    print_task(text, "t", ID_A);
    tell(&w, text, 0);
    for (int beats = 0; beats <= 1; beats++) {
        hostile_read(h, beats ? "/slave/heartbeat" : "/slave/task/complete", text,
                     sizeof text);
        length[beats] = strlen(text);
        assert_true(length[beats] > 50);
    }
    end_slave(&w);
    for (int beats = 0; beats <= 1; beats++) {
        for (size_t from = 0; from < length[beats]; from += WAVE) {
            cut_reports(loop, h, friend, beats, false, from, length[beats]);
        }
        for (size_t from = 0; from < sizeof HOSTILE_YES - 1; from += WAVE) {
            cut_reports(loop, h, friend, beats, true, from, sizeof HOSTILE_YES - 1);
        }
    }
    coord_loop_destroy(loop);
    hostile_stop(h);
    hostile_stop(friend);
    assert_true(hostile_nothing_left(&before));
}

static void tell_it(const worker *w, const char *method, const char *path,
                    const char *token, const char *body, int code)
{
    char text[TEXT];
    hostile_print(text, sizeof text, method, path, token, body);
    tell(w, text, code);
}

static void a_slave_sorts_out_what_masters_ask(void **state)
{
    static const char NEW[] = "/task/new";
    static const char TASK_A[] =
        "{\"task\": {\"id\": \"0123abcd-89ab-cdef-0123-456789abcdef\"}, \"data\": 1}";
    char text[TEXT];
    hostile_census before = hostile_count_all();
    hostile *h = hostile_start();
    worker w = {0};
    (void)state;
    new_slave(&w, NULL, 60000, PATIENCE_MS);
    tell_it(&w, "POST", NEW, "t", TASK_A, 302); /* before it is connected */
    tell_it(&w, "DELETE", "/disconnect", "t", "{\"data\": {}}", 302);
    tell_it(&w, "POST", "/connect", NULL, "{}", 301);
    tell_it(&w, "POST", "/connect", "t", "{\"master\": {\"addr", 503);
    tell_it(&w, "POST", "/connect", "t", "{\"master\": {\"address\": \"x\"}}", 503);
    print_connect(text, "t", h);
    assert_int_equal(hostile_ask_slowly(coord_slave_port(w.slave), text), 0);
    tell(&w, text, 501); /* twice */
    tell_it(&w, "POST", NEW, "u", TASK_A, 302);
    tell_it(&w, "POST", NEW, "t", "", 602);
    tell_it(&w, "POST", NEW, "t", "{\"task\": {\"id\": \"no uuid\"}, \"data\": 1}", 602);
    tell_it(&w, "DELETE", "/disconnect", "u", "{\"data\": {}}", 302);
    assert_true(coord_slave_is_connected(w.slave));
    assert_int_equal(atomic_load(&w.works), 0);
    tell_it(&w, "POST", NEW, "t", TASK_A, 0);
    hostile_read(h, "/slave/task/complete", text, sizeof text);
    assert_non_null(strstr(text, ID_A));
    assert_int_equal(atomic_load(&w.works), 1);
    tell_it(&w, "DELETE", "/disconnect", "t", "{\"data\": {}}", 0);
    serve_good_master(&w, h);
    end_slave(&w);
    hostile_stop(h);
    assert_true(hostile_nothing_left(&before));
}

static void a_slave_bears_what_is_no_request(void **state)
{
    int open[HOSTILE_HELD];
    hostile_census before = hostile_count_all();
    hostile *h = hostile_start();
    worker w = {0};
    (void)state;
    new_slave(&w, NULL, 60000, PATIENCE_MS);
    assert_true(hostile_pester(coord_slave_port(w.slave), "/ping", open));
    serve_good_master(&w, h);
    end_slave(&w);
    for (int i = 0; i < HOSTILE_HELD; i++) {
        (void)close(open[i]);
    }
    hostile_stop(h);
    assert_true(hostile_nothing_left(&before));
}

/* What the libraries keep for good, once they were used, is there before the first test
 * counts. */
static int warm_up(void **state)
{
    hostile *h = hostile_start();
    worker w = {0};
    (void)state;
    new_slave(&w, NULL, 60000, PATIENCE_MS);
    serve_good_master(&w, h);
    end_slave(&w);
    hostile_stop(h);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slave_bears_every_kind_of_answer),
        cmocka_unit_test(a_slave_sorts_out_what_masters_ask),
        cmocka_unit_test(a_slave_bears_what_is_no_request),
        cmocka_unit_test(a_master_may_hang_up_at_every_byte_of_what_it_asks),
        cmocka_unit_test(a_master_may_hang_up_at_every_byte_of_what_it_is_told),
    };
    return cmocka_run_group_tests_name("hostile masters", tests, warm_up, NULL);
}
