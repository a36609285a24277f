/* Workers that the host adds and removes while the coordinator runs. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PORT = 22270 };

static const int64_t LONG_MS = 600000;

static void expect(coord_status got, coord_status wanted, const coord_error *err)
{
    if (got != wanted) {
        fail_msg("status %d, expected %d: %s: %s", (int)got, (int)wanted, err->text,
                 err->cause);
    }
}

static coord_status try_add(cluster *k, const char *id, coord_error *err)
{
    const cluster_worker *w = cluster_find(k, id);
    return comm_coordinator_add_worker(k->c, w->role, id, w->host, PORT, err);
}

static void add(cluster *k, const char *id)
{
    coord_error err = {0};
    expect(try_add(k, id, &err), COORD_OK, &err);
}

static void take_away(cluster *k, const char *id, comm_coordinator_removal how)
{
    coord_error err = {0};
    coord_role role = id[0] == 'l' ? COORD_LEARNER : COORD_COLLECTOR;
    expect(comm_coordinator_remove_worker(k->c, role, id, how, &err), COORD_OK, &err);
}

/* With strangers "c1", "c2" ... and all learners but the first. */
static void open_world(cluster *k, int collectors, int learners)
{
    cluster_init(k, 1, collectors, learners);
    for (int i = 0; i < k->worker_count; i++) {
        k->workers[i].stranger = k->workers[i].id[1] != '0';
    }
}

/* Only collectors, and the host has added "c1". */
static void begin_with_c1(cluster *k, int collectors, const char *more)
{
    open_world(k, collectors, 0);
    cluster_start(k, more);
    add(k, "c1");
    assert_true(cluster_await(k, "increase", "collector", 1, 5000));
}

/* "c0" and "c1" get tasks "a" and "b", each step of which takes so long there. */
static void both_work(cluster *k, int64_t c0_ms, int64_t c1_ms)
{
    cluster_find(k, "c0")->work_ms = c0_ms;
    cluster_find(k, "c1")->work_ms = c1_ms;
    cluster_post(k, COORD_COLLECTOR, "a");
    cluster_post(k, COORD_COLLECTOR, "b");
}

static bool is_forgotten(cluster *k, const char *id)
{
    return cluster_worker_state(k, id)[0] == '\0';
}

static void a_worker_that_is_added_gets_tasks(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 2);
    k.workers[0].work_ms = 60000;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_post(&k, COORD_COLLECTOR, "b");
    cluster_run(&k, 1000);
    assert_string_equal(cluster_task_state(&k, "b"), "queued");
    add(&k, "c1");
    add(&k, "l1");
    assert_true(cluster_await(&k, "finish", "b", 1, 5000));
    assert_true(cluster_await(&k, "increase", "learner", 1, 5000));
    assert_int_equal(cluster_count(&k, "increase", "collector"), 1);
    assert_string_equal(cluster_last(&k, "start", "b")->detail, "c1");
    cluster_check(&k);
    cluster_done(&k);
}

static void what_is_added_before_start_is_waited_for(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 1);
    cluster_crash(&k, "c1");
    cluster_create(&k, "\"max_retry_second\": 10, ");
    add(&k, "c1");
    coord_error err = {0};
    int64_t began = coord_sim_now_ms(k.sim);
    expect(comm_coordinator_start(k.c, &err), COORD_OK, &err);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 10000, 10100);
    assert_non_null(strstr(err.text, "collector 'c1' at 10.0.1.2"));
    assert_int_equal(cluster_count(&k, "increase", NULL), 0);
    cluster_revive(&k, "c1");
    assert_true(cluster_await(&k, "increase", "collector", 1, 60000));
    cluster_done(&k);
}

static void losing_and_finding_a_worker_is_no_change(void **state)
{
    static cluster k;
    (void)state;
    begin_with_c1(&k, 2, "");
    cluster_crash(&k, "c1");
    assert_true(cluster_await_worker(&k, "c1", "away", LONG_MS));
    cluster_revive(&k, "c1");
    assert_true(cluster_await_worker(&k, "c1", "free", LONG_MS));
    cluster_run(&k, 1000);
    assert_int_equal(cluster_count(&k, "increase", NULL), 1);
    assert_int_equal(cluster_count(&k, "decrease", NULL), 0);
    cluster_done(&k);
}

static void a_drained_worker_ends_its_task_and_gets_no_other(void **state)
{
    static cluster k;
    (void)state;
    begin_with_c1(&k, 2, "");
    both_work(&k, 1000, 1000);
    cluster_post(&k, COORD_COLLECTOR, "c");
    cluster_run(&k, 500);
    take_away(&k, "c1", COMM_COORDINATOR_DRAIN);
    assert_true(cluster_await(&k, "decrease", "collector", 1, 100));
    assert_string_equal(cluster_worker_state(&k, "c1"), "working");
    cluster_check(&k);
    assert_true(cluster_await(&k, "finish", NULL, 3, LONG_MS));
    assert_int_equal(cluster_count(&k, "restart", NULL), 0);
    assert_int_equal(cluster_find(&k, "c1")->starts, 1);
    cluster_run(&k, 1000);
    assert_true(is_forgotten(&k, "c1"));
    assert_int_equal(cluster_count(&k, "decrease", NULL), 1);
    cluster_check(&k);
    cluster_done(&k);
}

static void the_task_of_a_dropped_worker_moves_and_that_does_not_count(void **state)
{
    static cluster k;
    (void)state;
    begin_with_c1(&k, 2, "\"max_reassign\": 0, ");
    both_work(&k, 3000, 3000);
    cluster_run(&k, 1000);
    take_away(&k, "c1", COMM_COORDINATOR_DROP);
    assert_true(cluster_await(&k, "restart", NULL, 1, 1000));
    cluster_run(&k, 500);
    assert_true(is_forgotten(&k, "c1"));
    assert_true(cluster_await(&k, "finish", NULL, 2, LONG_MS));
    assert_int_equal(cluster_count(&k, "fail", NULL), 0);
    cluster_check(&k);
    cluster_done(&k);
}

/* Disconnected in the middle of a request it would be of no use afterwards. */
static void a_python_worker_may_report_before_it_goes(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0);
    cluster_set_foreign(&k, "c1");
    cluster_start(&k, "");
    add(&k, "c1");
    assert_true(cluster_await(&k, "increase", "collector", 1, 5000));
    both_work(&k, 100000, 20000);
    cluster_run(&k, 1000);
    take_away(&k, "c1", COMM_COORDINATOR_DROP);
    assert_true(cluster_await(&k, "restart", NULL, 1, 100));
    cluster_run(&k, 15000);
    assert_string_equal(cluster_worker_state(&k, "c1"), "recovering");
    cluster_check(&k);
    cluster_run(&k, 45000);
    assert_true(is_forgotten(&k, "c1"));
    assert_string_equal(cluster_find(&k, "c1")->log, "rsc"); /* closed, too */
    cluster_check(&k);

    /* It is as good as new. */
    add(&k, "c1");
    cluster_find(&k, "c1")->work_ms = 0;
    assert_true(cluster_await(&k, "finish", NULL, 1, 5000));
    cluster_done(&k);
}

static void tasks_wait_when_the_last_worker_is_removed(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0);
    cluster_start(&k, "");
    k.workers[0].work_ms = 2000;
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_run(&k, 1000);
    take_away(&k, "c0", COMM_COORDINATOR_DROP);
    cluster_run(&k, 5000);
    assert_string_equal(cluster_task_state(&k, "a"), "queued");
    add(&k, "c1");
    assert_true(cluster_await(&k, "finish", "a", 1, LONG_MS));
    assert_int_equal(cluster_count(&k, "decrease", NULL), 0); /* of the configuration */
    cluster_done(&k);
}

static void a_lone_worker_that_dies_may_be_replaced_in_time(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 3, 0);
    cluster_start(&k, "\"max_retry_second\": 20, ");
    take_away(&k, "c0", COMM_COORDINATOR_DRAIN);
    add(&k, "c1");
    assert_true(cluster_await(&k, "increase", "collector", 1, 5000));
    cluster_find(&k, "c1")->work_ms = 5000;
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_run(&k, 1000);
    cluster_crash(&k, "c1");
    assert_true(cluster_await(&k, "restart", "a", 1, LONG_MS));
    cluster_run(&k, 10000);
    assert_string_equal(cluster_task_state(&k, "a"), "queued");
    add(&k, "c2");
    assert_true(cluster_await(&k, "finish", "a", 1, LONG_MS));

    /* ... or not: then nobody waits for ever. */
    cluster_find(&k, "c2")->work_ms = 5000;
    cluster_post(&k, COORD_COLLECTOR, "b");
    cluster_run(&k, 1000);
    cluster_crash(&k, "c2");
    assert_true(cluster_await(&k, "restart", "b", 1, LONG_MS));
    int64_t since = coord_sim_now_ms(k.sim);
    assert_true(cluster_await(&k, "fail", "b", 1, LONG_MS));
    assert_in_range(coord_sim_now_ms(k.sim) - since, 19000, 21000);
    cluster_done(&k);
}

static void a_worker_that_is_drained_may_come_back(void **state)
{
    static cluster k;
    (void)state;
    begin_with_c1(&k, 2, "");
    both_work(&k, 60000, 1000);
    cluster_run(&k, 500);
    take_away(&k, "c1", COMM_COORDINATOR_DRAIN);
    add(&k, "c1");
    cluster_post(&k, COORD_COLLECTOR, "c");
    assert_true(cluster_await(&k, "finish", "c", 1, 60000));
    assert_string_equal(cluster_last(&k, "start", "c")->detail, "c1");
    assert_int_equal(cluster_count(&k, "increase", NULL), 2);
    assert_int_equal(cluster_count(&k, "decrease", NULL), 1);
    cluster_check(&k);
    cluster_done(&k);
}

/* At another address, while the old one still works: it waits until that has gone. */
static void an_id_may_be_used_again(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    begin_with_c1(&k, 3, "");
    both_work(&k, 60000, 1000);
    cluster_run(&k, 500);
    take_away(&k, "c1", COMM_COORDINATOR_DRAIN);
    const char *host = cluster_find(&k, "c2")->host;
    expect(comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "c1", host, PORT, &err),
           COORD_OK, &err);
    expect(try_add(&k, "c1", &err), COORD_ERR_EXISTS, &err);
    assert_int_equal(cluster_count(&k, "increase", NULL), 1);
    assert_true(cluster_await(&k, "finish", NULL, 1, 60000));
    assert_true(cluster_await(&k, "increase", "collector", 2, 5000));
    cluster_post(&k, COORD_COLLECTOR, "c");
    assert_true(cluster_await(&k, "finish", "c", 1, 60000));
    assert_int_equal(cluster_find(&k, "c2")->starts, 1);

    /* The one that waits may be removed, too. */
    cluster_find(&k, "c2")->work_ms = 1000;
    cluster_post(&k, COORD_COLLECTOR, "d");
    cluster_run(&k, 500);
    take_away(&k, "c1", COMM_COORDINATOR_DRAIN);
    add(&k, "c1");
    take_away(&k, "c1", COMM_COORDINATOR_DROP);
    cluster_check(&k); /* the old one keeps its place in the pool */
    assert_true(cluster_await(&k, "finish", "d", 1, 60000));
    cluster_run(&k, 1000);
    assert_true(is_forgotten(&k, "c1"));
    assert_int_equal(cluster_count(&k, "increase", NULL), 2);
    assert_int_equal(cluster_count(&k, "decrease", NULL), 2);
    cluster_check(&k);
    cluster_done(&k);
}

/* The old one can't even be told that it is no longer wanted. */
static void a_new_address_does_not_wait_for_the_old_one(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    begin_with_c1(&k, 3, "");
    both_work(&k, 60000, 60000);
    cluster_run(&k, 500);
    const char *old_host = cluster_find(&k, "c1")->host;
    assert_int_equal(coord_sim_block(k.sim, "10.0.0.1", old_host, true, NULL), COORD_OK);
    take_away(&k, "c1", COMM_COORDINATOR_DROP);
    expect(comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "c1",
                                       cluster_find(&k, "c2")->host, PORT, &err),
           COORD_OK, &err);
    assert_true(cluster_await(&k, "increase", "collector", 2, 2000));
    assert_true(cluster_await(&k, "finish", NULL, 1, 5000));
    cluster_check(&k);
    cluster_done(&k);
}

static void wrong_changes_are_named(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    open_world(&k, 2, 0);
    cluster_create(&k, "");
    expect(try_add(&k, "c0", &err), COORD_ERR_EXISTS, &err);
    assert_non_null(strstr(err.text, "collector \"c0\""));
    expect(comm_coordinator_start(k.c, &err), COORD_OK, &err);
    expect(try_add(&k, "c0", &err), COORD_ERR_EXISTS, &err);
    assert_non_null(strstr(err.text, "collector \"c0\""));
    expect(comm_coordinator_remove_worker(k.c, COORD_LEARNER, "c0", COMM_COORDINATOR_DROP,
                                          &err),
           COORD_ERR_NOT_FOUND, &err);
    assert_non_null(strstr(err.text, "learner 'c0'"));
    expect(comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "", "h", PORT, &err),
           COORD_ERR_ARG, &err);
    expect(comm_coordinator_add_worker(k.c, COORD_COLLECTOR, NULL, "h", PORT, &err),
           COORD_ERR_ARG, &err);
    expect(comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "x", "h:1", PORT, &err),
           COORD_ERR_ARG, &err);
    assert_non_null(strstr(err.text, "\"h:1\""));
    expect(comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "x", "h", 0, &err),
           COORD_ERR_ARG, &err);
    expect(comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "x\xff", "h", PORT, &err),
           COORD_ERR_ARG, &err);
    expect(comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "x", "h\xff", PORT, &err),
           COORD_ERR_ARG, &err);
    expect(comm_coordinator_add_worker(k.c, (coord_role)7, "x", "h", PORT, &err),
           COORD_ERR_ARG, &err);
    expect(comm_coordinator_remove_worker(k.c, COORD_COLLECTOR, "c0",
                                          (comm_coordinator_removal)9, &err),
           COORD_ERR_ARG, &err);
    expect(comm_coordinator_add_worker(NULL, COORD_COLLECTOR, "x", "h", PORT, &err),
           COORD_ERR_ARG, &err);
    assert_int_equal(cluster_close(&k, &err), COORD_OK);
    expect(try_add(&k, "c1", &err), COORD_ERR_CLOSED, &err);
    expect(comm_coordinator_remove_worker(k.c, COORD_COLLECTOR, "c0",
                                          COMM_COORDINATOR_DROP, &err),
           COORD_ERR_CLOSED, &err);
    cluster_done(&k);
}

static void grow_in_a_callback(cluster *k, const char *name, const char *task_id,
                               void *user)
{
    (void)user;
    if (strcmp(name, "increase") == 0) {
        cluster_post(k, COORD_COLLECTOR, "from_increase");
        take_away(k, "c0", COMM_COORDINATOR_DROP);
    } else if (strcmp(name, "finish") == 0 && strcmp(task_id, "a") == 0) {
        add(k, "c1");
    }
}

static void changes_may_be_made_in_callbacks(void **state)
{
    static const char *const EXECUTORS[] = {"", "\"executor\": \"inline\", ",
                                            "\"executor\": {\"pool\": 1}, "};
    (void)state;
    for (size_t i = 0; i < sizeof EXECUTORS / sizeof EXECUTORS[0]; i++) {
        static cluster k;
        open_world(&k, 2, 0);
        k.on_event = grow_in_a_callback;
        cluster_start(&k, EXECUTORS[i]);
        cluster_post(&k, COORD_COLLECTOR, "a");
        assert_true(cluster_await(&k, "finish", "from_increase", 1, 60000));
        assert_true(is_forgotten(&k, "c0"));
        cluster_check(&k);
        cluster_done(&k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_is_added_gets_tasks),
        cmocka_unit_test(what_is_added_before_start_is_waited_for),
        cmocka_unit_test(losing_and_finding_a_worker_is_no_change),
        cmocka_unit_test(a_drained_worker_ends_its_task_and_gets_no_other),
        cmocka_unit_test(the_task_of_a_dropped_worker_moves_and_that_does_not_count),
        cmocka_unit_test(a_python_worker_may_report_before_it_goes),
        cmocka_unit_test(tasks_wait_when_the_last_worker_is_removed),
        cmocka_unit_test(a_lone_worker_that_dies_may_be_replaced_in_time),
        cmocka_unit_test(a_worker_that_is_drained_may_come_back),
        cmocka_unit_test(an_id_may_be_used_again),
        cmocka_unit_test(a_new_address_does_not_wait_for_the_old_one),
        cmocka_unit_test(wrong_changes_are_named),
        cmocka_unit_test(changes_may_be_made_in_callbacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
