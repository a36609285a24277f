/* Discovery that asks the host: the callback deal_with_discovery. */
#include "support/cluster.h"

#include "coord/testing_program.h"
#include "coordinator/coordinator.h"
#include "support/heap.h"
#include "support/sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Asks every second, for at most two. */
#define ASKING "\"discovery\": {\"interval_s\": 1, \"timeout_s\": 2}, "

/* STEP is odd: who comes and who goes is told apart by that. */
enum { PORT = 22270, STEP = SANITIZED(1, 3, 7) };

/* What the callback does. */
static struct {
    const char *ids[4]; /* whom it lists: workers of the cluster; closed by NULL */
    const char *text;   /* ... or this, as it is */
    coord_status answer;
    int64_t takes_ms;
    bool destroys;
    int inside; /* calls under way: at most one */
    int calls;
    int returned;
} host;

static coord_status discover(cluster *k, coord_out *out)
{
    coord_status rc = host.answer;
    coord_error err = {0};
    host.calls++;
    k->overlaps += host.inside++ > 0;
    if (host.takes_ms > 0 && coord_sim_run_for(k->sim, host.takes_ms, NULL) != COORD_OK) {
        k->overlaps++;
    }
    if (host.destroys) {
        comm_coordinator_destroy(k->c);
        k->c = NULL;
    }
    for (int i = 0; rc == COORD_OK && i < 4 && host.ids[i] != NULL; i++) {
        const cluster_worker *w = cluster_find(k, host.ids[i]);
        rc = coord_out_line(out, &err, "%s %s:%d %s", coord_role_str(w->role), w->host,
                            (int)PORT, w->id);
    }
    if (rc == COORD_OK && host.text != NULL) {
        rc = coord_out_printf(out, &err, "%s", host.text);
    }
    host.inside--;
    host.returned++;
    return rc;
}

static void expect(coord_status got, coord_status wanted, const coord_error *err)
{
    if (got != wanted) {
        fail_msg("status %d, expected %d: %s: %s", (int)got, (int)wanted, err->text,
                 err->cause);
    }
}

/* Only the first worker of a role is in the configuration, if `configured`. */
static void open_world(cluster *k, int collectors, int learners, bool configured)
{
    memset(&host, 0, sizeof host);
    cluster_init(k, 1, collectors, learners);
    k->discover = discover;
    for (int i = 0; i < k->worker_count; i++) {
        k->workers[i].stranger = !configured || k->workers[i].id[1] != '0';
    }
}

static void assert_discovery(cluster *k, const char *words)
{
    char *text = NULL;
    assert_int_equal(comm_coordinator_status(k->c, &text, NULL), COORD_OK);
    const char *at = strstr(text, "\"discovery\": ");
    if (at == NULL || strstr(at, words) == NULL) {
        fail_msg("no %s in %s", words, text);
    }
    coord_free(text);
}

static bool is_forgotten(cluster *k, const char *id)
{
    return cluster_worker_state(k, id)[0] == '\0';
}

static void assert_free(cluster *k, const char *id)
{
    assert_true(cluster_await_worker(k, id, "free", 5000));
}

/* ---- tests ---- */

static void the_hosts_lines_are_the_list(void **state)
{
    static const char *const EXECUTORS[] = {"", "\"executor\": \"inline\", ",
                                            "\"executor\": {\"pool\": 1}, "};
    (void)state;
    for (size_t i = 0; i < sizeof EXECUTORS / sizeof EXECUTORS[0]; i++) {
        static cluster k;
        char more[256];
        open_world(&k, 2, 1, false);
        host.ids[0] = "c1";
        host.ids[1] = "l0";
        (void)snprintf(more, sizeof more, "%s%s\"min_collectors\": 1, ", ASKING,
                       EXECUTORS[i]);
        cluster_start(&k, more);
        assert_free(&k, "c1");
        assert_free(&k, "l0");
        cluster_post(&k, COORD_COLLECTOR, "a");
        assert_true(cluster_await(&k, "finish", "a", 1, 60000));
        host.ids[0] = "c0";
        host.ids[1] = NULL;
        cluster_run(&k, 1100);
        assert_free(&k, "c0");
        assert_true(is_forgotten(&k, "c1"));
        host.ids[0] = NULL; /* nobody */
        cluster_run(&k, 1100);
        assert_true(is_forgotten(&k, "c0"));
        assert_discovery(&k, "{\"state\": \"following\", ");
        assert_int_equal(cluster_count(&k, "increase", "collector"), 2);
        assert_int_equal(cluster_count(&k, "decrease", "collector"), 2);
        cluster_check(&k);
        cluster_done(&k);
    }
}

static void who_does_not_know_keeps_the_last_list(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 1, 0, false);
    host.ids[0] = "c0";
    cluster_start(&k, ASKING "\"min_collectors\": 1, ");
    host.ids[0] = NULL;
    host.answer = COORD_AGAIN;
    cluster_run(&k, 2100);
    assert_discovery(&k, "\"state\": \"failing\"");
    assert_discovery(&k, "\"failures\": 2, \"error\": \"discovery: deal_with_discovery "
                         "has answered \\\"");
    host.answer = COORD_OK;
    host.text = "c0 is there\n";
    cluster_run(&k, 1000);
    assert_discovery(&k, "\"failures\": 3, \"error\": \"discovery: a list that can't be "
                         "used: line 1, \\\"c0 is there\\\": the role must be collector "
                         "or learner; expected: role host:port [id]\"");
    host.text = "collector 10.0.1.1:22270 c0";
    cluster_run(&k, 1000);
    assert_discovery(&k, "\"state\": \"following\"");
    assert_string_equal(cluster_worker_state(&k, "c0"), "free");
    assert_int_equal(cluster_count(&k, "increase", NULL), 1);
    assert_int_equal(cluster_count(&k, "decrease", NULL), 0);
    cluster_done(&k);
}

static void who_takes_long_is_not_asked_again_and_still_heard(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, false);
    host.ids[0] = "c0";
    cluster_start(&k, ASKING "\"min_collectors\": 1, ");
    host.takes_ms = 4500;
    host.ids[1] = "c1";
    cluster_run(&k, 1000);
    assert_int_equal(host.calls, 2);
    assert_discovery(&k, "\"state\": \"following\"");
    cluster_run(&k, 2100);
    assert_discovery(&k, "\"failures\": 1, \"error\": \"discovery: deal_with_discovery "
                         "did not return within 2000 ms (discovery.timeout_s); it is "
                         "asked again when it has\"}");
    assert_string_equal(cluster_worker_state(&k, "c0"), "free");
    cluster_run(&k, 1900);
    assert_int_equal(host.calls, 2);
    host.takes_ms = 0;
    cluster_run(&k, 800);
    assert_free(&k, "c1");
    assert_discovery(&k, "\"state\": \"following\"");
    assert_int_equal(host.calls, 2);
    cluster_run(&k, 500);
    assert_int_equal(host.calls, 3);
    cluster_done(&k);
}

static void close_waits_for_a_call_that_runs(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    open_world(&k, 1, 0, true);
    host.takes_ms = 3000;
    cluster_start(&k, ASKING);
    cluster_run(&k, 100);
    assert_int_equal(host.inside, 1);
    expect(cluster_close(&k, &err), COORD_OK, &err);
    assert_int_equal(host.inside, 0);
    cluster_run(&k, 10000);
    assert_int_equal(host.calls, 1);
    cluster_done(&k);

    open_world(&k, 1, 0, true);
    host.takes_ms = 15000;
    cluster_start(&k, ASKING "\"close_timeout_s\": 5, ");
    cluster_run(&k, 100);
    expect(cluster_close(&k, &err), COORD_ERR_TIMEOUT, &err);
    assert_non_null(strstr(err.text, "_discovery"));
    cluster_run(&k, 11000);
    expect(cluster_close(&k, &err), COORD_OK, &err);
    assert_int_equal(host.calls, 1);
    cluster_done(&k);
}

/* Of its last moments: with a call under way, or with one that destroys it. */
static void destroy_with(const char *executor, bool from_inside)
{
    static cluster k;
    char more[256];
    open_world(&k, 2, 0, true);
    host.ids[0] = "c1";
    host.takes_ms = 3000;
    host.destroys = from_inside;
    (void)snprintf(more, sizeof more, "%s%s", ASKING, executor);
    cluster_start(&k, more);
    cluster_run(&k, 100);
    if (!from_inside) {
        comm_coordinator_destroy(k.c);
        k.c = NULL;
    }
    cluster_run(&k, 5000);
    assert_null(k.c);
    assert_int_equal(host.calls, 1);
    assert_int_equal(host.inside, 0);
    cluster_done(&k);
}

static void destroy_does_not_wait(void **state)
{
    (void)state;
    destroy_with("", false);
    destroy_with("\"executor\": {\"pool\": 1}, ", false);
    destroy_with("", true);
    destroy_with("\"executor\": {\"pool\": 1}, ", true);

    static cluster k;
    open_world(&k, 2, 0, true);
    cluster_start(&k, ASKING "\"executor\": \"inline\", ");
    host.ids[0] = "c1";
    host.destroys = true;
    cluster_run(&k, 2000);
    assert_null(k.c);
    assert_int_equal(host.calls, 2);
    cluster_done(&k);
}

static void a_crash_in_the_middle_leaves_nothing(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, true);
    host.ids[0] = "c1";
    host.takes_ms = 3000;
    cluster_start(&k, ASKING "\"port\": 22273, ");
    cluster_run(&k, 100);
    cluster_crash_coordinator(&k);
    host.takes_ms = 0;
    cluster_run(&k, 5000);
    cluster_restart(&k, ASKING "\"port\": 22273, ");
    assert_true(cluster_await_worker(&k, "c1", "free", 60000));
    cluster_done(&k);
}

/* The call of the start that failed is still out: it is that of the next one, too. */
static void a_failed_start_does_not_wait_and_the_next_asks_no_second_time(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    open_world(&k, 1, 0, false);
    host.ids[0] = "c0";
    host.takes_ms = 8000;
    cluster_create(&k, ASKING "\"min_collectors\": 1, \"max_retry_second\": 5, ");
    expect(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT, &err);
    assert_non_null(strstr(err.text, "start: missing 1 collector that nobody has named "
                                     "(discovery: deal_with_discovery did not return"));
    assert_int_equal(host.calls, 1);
    assert_int_equal(host.returned, 0);
    expect(comm_coordinator_start(k.c, &err), COORD_OK, &err);
    assert_int_equal(host.calls, 1);
    assert_string_equal(cluster_worker_state(&k, "c0"), "free");
    cluster_done(&k);
}

/* With one thread for all callbacks a call may have to wait for its turn. */
static void who_was_not_asked_yet_is_not_when_it_is_too_late(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    open_world(&k, 1, 0, true);
    cluster_start(&k, ASKING "\"executor\": {\"pool\": 1}, ");
    k.callback_ms = 4000;
    cluster_post(&k, COORD_COLLECTOR, "a");
    assert_true(cluster_await(&k, "start", "a", 1, 5000));
    cluster_run(&k, 2000);
    int calls = host.calls;
    assert_non_null(k.c->question);
    k.callback_ms = 0;
    expect(cluster_close(&k, &err), COORD_OK, &err);
    assert_int_equal(host.calls, calls);
    assert_int_equal(cluster_ends(&k, "a"), 1);
    cluster_done(&k);
}

static void somebody_must_be_there_to_be_asked(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    open_world(&k, 1, 0, true);
    k.discover = NULL;
    expect(cluster_try_create(&k, ASKING, &err), COORD_ERR_CONFIG, &err);
    assert_string_equal(
        err.text, "discovery: needs a command, or the callback deal_with_discovery");
    k.discover = discover; /* for nothing: the configuration does not ask */
    cluster_start(&k, "");
    cluster_run(&k, 20000);
    assert_discovery(&k, "\"discovery\": null");
    cluster_done(&k);

    open_world(&k, 1, 0, true);
    coord_sim_program program;
    coord_sim_program_init(&program, sizeof program);
    program.name = "who";
    program.run_ms = 1;
    assert_int_equal(coord_sim_add_program(k.sim, &program, NULL), COORD_OK);
    cluster_start(&k, "\"discovery\": {\"command\": \"who\"}, "); /* comes first */
    cluster_run(&k, 20000);
    assert_discovery(&k, "\"state\": \"following\"");
    assert_int_equal(host.calls, 0);
    cluster_done(&k);
}

static void call_from_inside(cluster *k, const char *name, const char *task_id,
                             void *user)
{
    coord_error err = {0};
    char *text = NULL;
    (void)task_id;
    (void)user;
    if (strcmp(name, "discovery") != 0 || host.calls > 0) {
        return;
    }
    expect(
        comm_coordinator_add_worker(k->c, COORD_COLLECTOR, "c1", "10.0.1.2", PORT, &err),
        COORD_OK, &err);
    expect(comm_coordinator_status(k->c, &text, &err), COORD_OK, &err);
    coord_free(text);
    expect(comm_coordinator_close(k->c, &err), COORD_ERR_STATE, &err);
}

static void it_may_call_what_does_not_wait(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, true);
    k.on_event = call_from_inside;
    cluster_start(&k, ASKING);
    assert_free(&k, "c1");
    cluster_done(&k);
}

/* Whichever allocation fails while a worker comes and another goes: sooner or later the
 * list is followed. */
static void memory_that_runs_out_is_got_over(void **state)
{
    static cluster k;
    bool hit = true;
    (void)state;
    open_world(&k, 2, 0, false);
    host.ids[0] = "c0";
    cluster_start(&k, ASKING "\"min_collectors\": 1, ");
    for (uint64_t n = 0; hit && n < 400; n += STEP) {
        const char *comes = n % 2 == 0 ? "c1" : "c0";
        const char *goes = n % 2 == 0 ? "c0" : "c1";
        host.ids[0] = comes;
        heap_fail(n, 1);
        cluster_run(&k, 1500);
        hit = heap_mend();
        assert_true(cluster_await_worker(&k, comes, "free", 300000));
        cluster_run(&k, 1500);
        assert_true(is_forgotten(&k, goes));
        assert_discovery(&k, "\"state\": \"following\"");
    }
    assert_false(hit);
    cluster_check(&k);
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hosts_lines_are_the_list),
        cmocka_unit_test(who_does_not_know_keeps_the_last_list),
        cmocka_unit_test(who_takes_long_is_not_asked_again_and_still_heard),
        cmocka_unit_test(close_waits_for_a_call_that_runs),
        cmocka_unit_test(destroy_does_not_wait),
        cmocka_unit_test(a_crash_in_the_middle_leaves_nothing),
        cmocka_unit_test(a_failed_start_does_not_wait_and_the_next_asks_no_second_time),
        cmocka_unit_test(who_was_not_asked_yet_is_not_when_it_is_too_late),
        cmocka_unit_test(somebody_must_be_there_to_be_asked),
        cmocka_unit_test(it_may_call_what_does_not_wait),
        cmocka_unit_test(memory_that_runs_out_is_got_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
