/* NULL where an object should be. */
#include "coord.h"
#include "coord/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const coord_text TEXT = {"{}", 2};

static void what_asks_an_object_has_an_answer(void **state)
{
    (void)state;
    size_t count[2] = {1, 1};
    assert_int_equal(comm_coordinator_port(NULL), 0);
    assert_null(comm_coordinator_host(NULL));
    assert_null(coord_collector_slave(NULL));
    assert_null(coord_learner_slave(NULL));
    assert_null(coord_connection_id(NULL));
    assert_false(coord_connection_is_connected(NULL));
    assert_int_equal(coord_launcher_pid(NULL, "x"), 0);
    assert_int_equal(coord_launcher_count(NULL), 0);
    assert_int_equal(coord_loop_fd(NULL), -1);
    assert_int_equal(coord_master_port(NULL), 0);
    assert_null(coord_master_host(NULL));
    assert_false(coord_resource_manager_delete(NULL, COORD_COLLECTOR, "x"));
    assert_false(coord_resource_manager_have_assigned(NULL, COORD_COLLECTOR, "x"));
    coord_resource_manager_count(NULL, COORD_COLLECTOR, &count[0], &count[1]);
    assert_int_equal(count[0] + count[1], 0);
    assert_null(coord_resource_policy_find(NULL));
    assert_int_equal(coord_safetensors_count(NULL), 0);
    assert_null(coord_safetensors_at(NULL, 0));
    assert_null(coord_safetensors_find(NULL, "x"));
    assert_null(coord_safetensors_metadata(NULL, "x"));
    assert_null(coord_safetensors_metadata_at(NULL, 0));
    assert_false(coord_tensor_aligned(NULL));
    assert_int_equal(coord_slave_port(NULL), 0);
    assert_null(coord_slave_host(NULL));
    assert_false(coord_slave_is_connected(NULL));
    assert_false(coord_slave_task_canceled(NULL));
    assert_null(coord_task_id(NULL));
    assert_int_equal(coord_task_data(NULL).len, 0);
    assert_int_equal(coord_task_get_status(NULL), COORD_TASK_IDLE);
    assert_int_equal(coord_task_result(NULL).len, 0);
    assert_null(coord_task_ref(NULL));
    assert_int_equal(coord_sim_now_ms(NULL), 0);
    assert_int_equal(coord_sim_trace_hash(NULL), 0);
    assert_false(coord_sim_step(NULL));
    assert_false(coord_sim_end_process(NULL, 1, 0));
}

static void what_gives_back_or_tells_does_nothing(void **state)
{
    coord_sim_link link;
    (void)state;
    coord_free(NULL);
    comm_coordinator_destroy(NULL);
    coord_collector_destroy(NULL);
    coord_learner_destroy(NULL);
    coord_connection_destroy(NULL);
    coord_launcher_destroy(NULL);
    coord_operator_answer_destroy(NULL);
    coord_operator_request_init(NULL, 0);
    coord_operator_server_destroy(NULL);
    coord_operator_server_options_init(NULL, 0);
    coord_loop_destroy(NULL);
    coord_master_destroy(NULL);
    coord_resource_manager_destroy(NULL);
    coord_safetensors_destroy(NULL);
    coord_slave_destroy(NULL);
    coord_task_cancel(NULL);
    coord_task_unref(NULL);
    coord_sim_destroy(NULL);
    coord_sim_heal(NULL);
    coord_sim_set_wall_ms(NULL, 0);
    coord_sim_set_disk_full(NULL, true);
    coord_sim_crash(NULL, NULL);
    coord_sim_pause(NULL, NULL, true);
    coord_sim_set_foreign(NULL, NULL, true);
    coord_sim_link_init(NULL, &link, sizeof link);
    assert_int_equal(link.size, sizeof link);
}

static void what_has_a_status_says_that_an_argument_is_wrong(void **state)
{
    (void)state;
    comm_coordinator_delivery delivery = {.size = sizeof delivery};
    coord_launcher_exit how;
    coord_operator_answer *operator_answer;
    coord_task *task = NULL;
    coord_connection *connection = NULL;
    const char *id = NULL;
    char *text = NULL;
    float number;
    const coord_status answers[] = {
        comm_coordinator_create(NULL, NULL, NULL),
        comm_coordinator_start(NULL, NULL),
        comm_coordinator_send_collector_task(NULL, TEXT, NULL, NULL),
        comm_coordinator_send_learner_task(NULL, TEXT, NULL, NULL),
        comm_coordinator_post_collector_task(NULL, TEXT, NULL),
        comm_coordinator_post_learner_task(NULL, TEXT, NULL),
        comm_coordinator_cancel_task(NULL, "x", NULL),
        comm_coordinator_data_ready(NULL, NULL, NULL),
        comm_coordinator_get_delivery(NULL, &delivery, NULL),
        comm_coordinator_wait(NULL, 1, NULL),
        comm_coordinator_wait_task(NULL, "x", 1, NULL),
        comm_coordinator_status(NULL, &text, NULL),
        comm_coordinator_close(NULL, NULL),
        coord_collector_create(NULL, NULL, NULL, NULL),
        coord_learner_create(NULL, NULL, NULL, NULL),
        coord_connection_connect(NULL, TEXT, 1, NULL),
        coord_connection_disconnect(NULL, TEXT, 1, NULL),
        coord_connection_new_task(NULL, TEXT, &task, NULL),
        coord_launcher_create(NULL, NULL, NULL),
        coord_launcher_start(NULL, NULL, NULL, NULL),
        coord_launcher_signal(NULL, "x", 15, NULL),
        coord_launcher_stop(NULL, "x", 1, NULL),
        coord_launcher_post_stop(NULL, "x", 1, NULL),
        coord_launcher_wait(NULL, "x", 1, &how, NULL),
        coord_launcher_close(NULL, 1, NULL),
        coord_operator_server_create(NULL, NULL, NULL),
        coord_operator_server_get(NULL, 1, &operator_answer, NULL),
        coord_operator_server_post(NULL, NULL, 1, &operator_answer, NULL),
        coord_operator_server_delete(NULL, NULL, 1, &operator_answer, NULL),
        coord_operator_server_failed(NULL, NULL, 0, 1, &operator_answer, NULL),
        coord_loop_create(NULL, NULL, NULL),
        coord_loop_step(NULL, 0, NULL),
        coord_master_create(NULL, NULL, NULL),
        coord_master_ping(NULL, 1, NULL),
        coord_master_new_connection(NULL, NULL, &connection, NULL),
        coord_master_close(NULL, 1, NULL),
        coord_out_json(NULL, TEXT, NULL),
        coord_out_printf(NULL, NULL, "{}"),
        coord_out_line(NULL, NULL, "x"),
        coord_resource_manager_create(NULL, 1, NULL, NULL),
        coord_resource_manager_update(NULL, COORD_COLLECTOR, "x", TEXT, NULL),
        coord_resource_manager_assign(NULL, COORD_COLLECTOR, TEXT, &id, NULL),
        coord_safetensors_parse(NULL, 0, NULL, NULL, NULL),
        coord_safetensors_read_file(NULL, NULL, NULL, NULL),
        coord_safetensors_write(NULL, 1, NULL, 0, NULL, NULL, NULL),
        coord_safetensors_write_file(NULL, NULL, 1, NULL, 0, NULL),
        coord_tensor_copy(NULL, COORD_DTYPE_F32, &number, 1, NULL),
        coord_slave_create(NULL, NULL, NULL),
        coord_slave_close(NULL, 1, NULL),
        coord_task_start(NULL, 0, 0, NULL),
        coord_task_join(NULL, 0, NULL),
        coord_task_on_complete(NULL, NULL, NULL, NULL),
        coord_task_on_fail(NULL, NULL, NULL, NULL),
        coord_sim_create(NULL, NULL, NULL),
        coord_sim_loop(NULL, "10.0.0.1", NULL, NULL),
        coord_sim_run_for(NULL, 1, NULL),
        coord_sim_run_until(NULL, 1, NULL, NULL, NULL),
        coord_sim_run_until_idle(NULL, 1, NULL),
        coord_sim_thread_start(NULL, NULL, NULL, NULL, NULL),
        coord_sim_thread_join(NULL, 1, NULL),
        coord_sim_set_link(NULL, NULL, NULL, NULL, NULL),
        coord_sim_block(NULL, NULL, NULL, true, NULL),
        coord_sim_put_file(NULL, NULL, TEXT, NULL),
        coord_sim_get_file(NULL, NULL, NULL, NULL),
        coord_sim_set_env(NULL, NULL, NULL, NULL),
        coord_sim_add_program(NULL, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (answers[i] != COORD_ERR_ARG) {
            fail_msg("call %zu answered %d", i, (int)answers[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_asks_an_object_has_an_answer),
        cmocka_unit_test(what_gives_back_or_tells_does_nothing),
        cmocka_unit_test(what_has_a_status_says_that_an_argument_is_wrong),
    };
    return cmocka_run_group_tests_name("null", tests, NULL, NULL);
}
