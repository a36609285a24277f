/* Workers that take a connection and cannot report back: what the host is told. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NOWHERE "\"my_address\": \"10.9.9.9\", "

static void expect_words(const char *text, const char *words)
{
    if (strstr(text, words) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", text, words);
    }
}

static void a_start_says_that_nothing_comes_back(void **state)
{
    static cluster k;
    static const char *const LIMITS[] = {"\"max_retry_second\": 5, ",
                                         "\"max_retry_second\": 30, "};
    (void)state;
    for (size_t i = 0; i < 2; i++) { /* before its first request has timed out, after */
        char config[128];
        coord_error err = {0};
        (void)snprintf(config, sizeof config, NOWHERE "%s", LIMITS[i]);
        cluster_init(&k, 1, 1, 0);
        cluster_create(&k, config);
        assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT);
        expect_words(err.text, "missing collector 'c0' at 10.0.1.1:22270");
        expect_words(err.text, "accepted the connection, but nothing has come from it");
        expect_words(err.text, "can it reach http://10.9.9.9:22273, where");
        cluster_done(&k);
    }
}

static void a_slow_worker_is_not_taken_for_one_that_can_not_report(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 1, 1, 0);
    k.workers[0].resource_ms = 60000;
    cluster_create(&k, "\"max_retry_second\": 5, ");
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT);
    expect_words(err.text, "connected, but has not said yet what it has");
    cluster_done(&k);
}

static void a_worker_that_is_not_there_gave_no_answer(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 1, 1, 0);
    coord_sim_pause(k.sim, k.workers[0].loop, true);
    cluster_create(&k, "\"max_retry_second\": 5, ");
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT);
    expect_words(err.text, "no answer yet");
    coord_sim_pause(k.sim, k.workers[0].loop, false);
    cluster_done(&k);
}

static void a_lost_slave_was_never_heard_of(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    coord_master_options mo;
    coord_connection_options co;
    coord_master *master = NULL;
    coord_connection *c = NULL;
    coord_task *task = NULL;
    coord_error err = {0};
    coord_master_options_init(&mo, sizeof mo);
    mo.host = "10.0.0.1";
    mo.my_address = "10.9.9.9";
    mo.insecure = true;
    mo.loop = k.loop;
    assert_int_equal(coord_master_create(&mo, &master, NULL), COORD_OK);
    coord_connection_options_init(&co, sizeof co);
    co.id = "c0";
    co.port = 22270;
    co.host = "[::1]";
    assert_int_equal(coord_master_new_connection(master, &co, &c, &err), COORD_ERR_ARG);
    expect_words(err.text, "without brackets");
    co.host = k.workers[0].host;
    assert_int_equal(coord_master_new_connection(master, &co, &c, NULL), COORD_OK);
    assert_int_equal(coord_connection_connect(c, (coord_text){NULL, 0}, 1000, NULL),
                     COORD_OK);
    for (int i = 0; i < 2; i++) {
        const int64_t limit_ms = i == 0 ? 4000 : 0;
        assert_int_equal(coord_connection_new_task(c, coord_text_of("{}"), &task, NULL),
                         COORD_OK);
        assert_int_equal(coord_task_start(task, 2000, limit_ms, NULL), COORD_OK);
        assert_int_equal(coord_task_join(task, 60000, &err),
                         i == 0 ? COORD_ERR_TIMEOUT : COORD_ERR_LOST);
        expect_words(err.text,
                     i == 0 ? "no result after 4000 ms" : "no heartbeat for 18");
        expect_words(err.cause, "can it reach http://10.9.9.9:");
        coord_task_unref(task);
    }
    coord_connection_destroy(c);
    coord_master_destroy(master);
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_says_that_nothing_comes_back),
        cmocka_unit_test(a_slow_worker_is_not_taken_for_one_that_can_not_report),
        cmocka_unit_test(a_worker_that_is_not_there_gave_no_answer),
        cmocka_unit_test(a_lost_slave_was_never_heard_of),
    };
    return cmocka_run_group_tests_name("unreachable", tests, NULL, NULL);
}
