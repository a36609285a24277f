/* A master gives tasks up, and a slave on the other side of a socket stops early. */
#include "support/real_team.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

enum { WAIT_MS = 60000 };

/* A slave whose tasks run until they are canceled, but for those without data. */
typedef struct pair {
    coord_slave *slave;
    coord_master *master;
    coord_connection *connection;
    atomic_int running;
    atomic_int canceled;
} pair;

static coord_status process(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    pair *p = user;
    const time_t until = time(NULL) + WAIT_MS / 1000;
    const bool quick = data.len == 2;
    (void)out;
    atomic_fetch_add(&p->running, 1);
    while (!quick && time(NULL) < until) {
        if (coord_slave_task_canceled(slave)) {
            atomic_fetch_add(&p->canceled, 1);
            return COORD_ERR_CANCELED;
        }
        (void)sched_yield();
    }
    return COORD_OK;
}

static void setup(pair *p)
{
    coord_slave_options so;
    coord_master_options mo;
    coord_connection_options co;
    coord_slave_options_init(&so, sizeof so);
    so.process_task = process;
    so.user = p;
    assert_int_equal(coord_slave_create(&so, &p->slave, NULL), COORD_OK);
    coord_master_options_init(&mo, sizeof mo);
    mo.request_retry_wait_ms = 20;
    mo.request_retries = 1000;
    assert_int_equal(coord_master_create(&mo, &p->master, NULL), COORD_OK);
    coord_connection_options_init(&co, sizeof co);
    co.id = "slave";
    co.host = "127.0.0.1";
    co.port = coord_slave_port(p->slave);
    assert_int_equal(coord_master_new_connection(p->master, &co, &p->connection, NULL),
                     COORD_OK);
    assert_int_equal(
        coord_connection_connect(p->connection, coord_text_of("{}"), WAIT_MS, NULL),
        COORD_OK);
}

static void teardown(pair *p)
{
    coord_connection_destroy(p->connection);
    coord_master_destroy(p->master);
    coord_slave_destroy(p->slave);
}

static coord_task *started(pair *p, const char *data, int64_t timeout_ms)
{
    coord_task *task = NULL;
    assert_int_equal(
        coord_connection_new_task(p->connection, coord_text_of(data), &task, NULL),
        COORD_OK);
    assert_int_equal(coord_task_start(task, WAIT_MS, timeout_ms, NULL), COORD_OK);
    return task;
}

static void a_slave_stops_when_its_task_is_given_up(void **state)
{
    pair p = {0};
    (void)state;
    setup(&p);
    for (int i = 0; i < 4; i++) {
        const bool by_time = i % 2 == 1;
        coord_task *task = started(&p, "{\"long\": true}", by_time ? 2000 : 0);
        if (!by_time) {
            coord_task_cancel(task);
        }
        assert_int_equal(coord_task_join(task, WAIT_MS, NULL),
                         by_time ? COORD_ERR_TIMEOUT : COORD_ERR_CANCELED);
        coord_task_unref(task); /* the next one waits until this one has stopped */
    }
    coord_task *last = started(&p, "{}", 0);
    assert_int_equal(coord_task_join(last, WAIT_MS, NULL), COORD_OK);
    coord_task_unref(last);
    assert_int_equal(atomic_load(&p.running), 5);
    assert_int_equal(atomic_load(&p.canceled), 4);
    assert_true(coord_connection_is_connected(p.connection));
    teardown(&p);
    assert_true(threads_are_gone());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slave_stops_when_its_task_is_given_up),
    };
    return cmocka_run_group_tests_name("cancel_real", tests, NULL, NULL);
}
