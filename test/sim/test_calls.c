/* Calls whose loop does not answer in time, and times that mean "no limit". */
#include "coord.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PORT = 4000, LIMIT_MS = 60000 };

typedef struct bench {
    coord_sim *sim;
    coord_loop *loop;
    coord_slave *slave;
    coord_master *master;
    coord_connection *connection;
    coord_status status;
    coord_error error;
} bench;

static coord_status process(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    (void)slave;
    (void)data;
    (void)user;
    return coord_out_printf(out, NULL, "{}");
}

static void open_world(bench *b)
{
    memset(b, 0, sizeof *b);
    assert_int_equal(coord_sim_create(NULL, &b->sim, &b->error), COORD_OK);
    assert_int_equal(coord_sim_loop(b->sim, "127.0.0.1", &b->loop, &b->error), COORD_OK);
}

static void close_world(bench *b)
{
    coord_connection_destroy(b->connection);
    coord_master_destroy(b->master);
    coord_slave_destroy(b->slave);
    coord_loop_destroy(b->loop);
    coord_sim_destroy(b->sim);
}

/* The options live on the heap and are gone when the call has returned, so that a
 * sanitizer sees whoever looks at them later. */
static void create_slave(void *user)
{
    bench *b = user;
    coord_slave_options *o = malloc(sizeof *o);
    char *host = malloc(sizeof "127.0.0.1");
    assert_non_null(o);
    assert_non_null(host);
    memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    coord_slave_options_init(o, sizeof *o);
    o->host = host;
    o->port = PORT;
    o->process_task = process;
    o->loop = b->loop;
    b->status = coord_slave_create(o, &b->slave, &b->error);
    free(host);
    free(o);
}

static void create_master(void *user)
{
    bench *b = user;
    coord_master_options o;
    coord_master_options_init(&o, sizeof o);
    o.port = PORT;
    o.loop = b->loop;
    b->status = coord_master_create(&o, &b->master, &b->error);
}

static void create_connection(void *user)
{
    bench *b = user;
    coord_connection_options o;
    coord_connection_options_init(&o, sizeof o);
    o.id = "s";
    o.host = "127.0.0.1";
    o.port = PORT;
    b->status = coord_master_new_connection(b->master, &o, &b->connection, &b->error);
}

/* Makes the call on a thread while the loop stands still, until it has given up; then
 * lets the loop see what it missed. */
static void call_in_vain(bench *b, void (*call)(void *user))
{
    coord_sim_thread *thread = NULL;
    coord_sim_pause(b->sim, b->loop, true);
    assert_int_equal(coord_sim_thread_start(b->sim, call, b, &thread, &b->error),
                     COORD_OK);
    assert_int_equal(coord_sim_thread_join(thread, LIMIT_MS, NULL), COORD_OK);
    assert_int_equal(b->status, COORD_ERR_TIMEOUT);
    coord_sim_pause(b->sim, b->loop, false);
    assert_int_equal(coord_sim_run_until_idle(b->sim, LIMIT_MS, &b->error), COORD_OK);
}

static void a_slave_that_could_not_be_made_in_time_is_not_made_later(void **state)
{
    static bench b;
    (void)state;
    open_world(&b);
    call_in_vain(&b, create_slave);
    assert_null(b.slave);
    create_slave(&b);
    assert_int_equal(b.status, COORD_OK); /* else its port would be taken */
    close_world(&b);
}

static void a_master_that_could_not_be_made_in_time_is_not_made_later(void **state)
{
    static bench b;
    (void)state;
    open_world(&b);
    call_in_vain(&b, create_master);
    assert_null(b.master);
    create_master(&b);
    assert_int_equal(b.status, COORD_OK);
    close_world(&b);
}

static void a_connection_that_could_not_be_made_in_time_is_not_made_later(void **state)
{
    static bench b;
    (void)state;
    open_world(&b);
    create_master(&b);
    assert_int_equal(b.status, COORD_OK);
    call_in_vain(&b, create_connection);
    assert_null(b.connection);
    close_world(&b);
}

/* ---- no limit ---- */

static void the_longest_time_there_is_is_no_time_in_the_past(void **state)
{
    static bench b;
    coord_slave_options o;
    coord_task *task = NULL;
    (void)state;
    open_world(&b);
    coord_slave_options_init(&o, sizeof o);
    o.process_task = process;
    o.loop = b.loop;
    o.port = PORT + 1;
    assert_int_equal(coord_slave_create(&o, &b.slave, &b.error), COORD_OK);
    create_master(&b);
    assert_int_equal(b.status, COORD_OK);
    coord_connection_options to;
    coord_connection_options_init(&to, sizeof to);
    to.id = "s";
    to.host = "127.0.0.1";
    to.port = PORT + 1;
    assert_int_equal(coord_master_new_connection(b.master, &to, &b.connection, &b.error),
                     COORD_OK);
    assert_int_equal(
        coord_connection_connect(b.connection, coord_text_of(""), INT64_MAX, &b.error),
        COORD_OK);
    assert_int_equal(
        coord_connection_new_task(b.connection, coord_text_of("1"), &task, &b.error),
        COORD_OK);
    assert_int_equal(coord_task_start(task, INT64_MAX, INT64_MAX, &b.error), COORD_OK);
    assert_int_equal(coord_task_join(task, INT64_MAX, &b.error), COORD_OK);
    coord_task_unref(task);
    assert_int_equal(coord_master_close(b.master, INT64_MAX, &b.error), COORD_OK);
    assert_int_equal(coord_slave_close(b.slave, INT64_MAX, &b.error), COORD_OK);
    close_world(&b);
}

static void an_executor_that_does_not_exist_is_refused(void **state)
{
    static bench b;
    coord_slave_options o;
    (void)state;
    open_world(&b);
    coord_slave_options_init(&o, sizeof o);
    o.process_task = process;
    o.loop = b.loop;
    o.executor = (coord_executor)99;
    assert_int_equal(coord_slave_create(&o, &b.slave, &b.error), COORD_ERR_ARG);
    assert_null(b.slave);
    assert_non_null(strstr(b.error.text, "99"));
    close_world(&b);
}

/* ---- remarks ---- */

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    (void)c;
    (void)task_id;
    (void)why;
    (void)user;
}

static void the_remark_of_a_start_that_went_well_has_its_status(void **state)
{
    static bench b;
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    CommCoordinator *c = NULL;
    (void)state;
    open_world(&b);
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_task_fail = on_fail;
    comm_coordinator_options_init(&o, sizeof o);
    o.callbacks = &cb;
    o.config =
        "{\"min_collectors\": 0, \"collector\": {\"0\": [\"c0\", \"127.0.0.1\", 9]}}";
    o.loop = b.loop;
    assert_int_equal(comm_coordinator_create(&o, &c, NULL), COORD_OK);
    b.error.status = COORD_ERR_IO;
    assert_int_equal(comm_coordinator_start(c, &b.error), COORD_OK);
    assert_non_null(strstr(b.error.text, "'c0'"));
    assert_int_equal(b.error.status, COORD_OK);
    comm_coordinator_destroy(c);
    close_world(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slave_that_could_not_be_made_in_time_is_not_made_later),
        cmocka_unit_test(a_master_that_could_not_be_made_in_time_is_not_made_later),
        cmocka_unit_test(a_connection_that_could_not_be_made_in_time_is_not_made_later),
        cmocka_unit_test(the_longest_time_there_is_is_no_time_in_the_past),
        cmocka_unit_test(an_executor_that_does_not_exist_is_refused),
        cmocka_unit_test(the_remark_of_a_start_that_went_well_has_its_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
