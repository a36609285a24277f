/* The coordinator with a whole cluster around it, in virtual time. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_collector_task_runs_from_start_to_finish(void **state)
{
    cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    cluster_start(&k, "");

    char worker[COORD_ID_SIZE] = "";
    coord_text task = coord_text_of("{\"task_id\": \"t\", \"buffer_id\": \"b\"}");
    assert_int_equal(comm_coordinator_send_collector_task(k.c, task, worker, NULL), COORD_OK);
    assert_string_equal(worker, "c0");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_string_equal(cluster_story(&k, "t"),
                        "start send_data send_data send_data judge finish");
    assert_string_equal(
        cluster_last(&k, "send_data", "t")->detail,
        "b c0-3 {\"data_id\": \"c0-3\", \"reward\": Infinity,\"buffer_id\":\"b\","
        "\"task_id\":\"t\"}");
    assert_string_equal(cluster_last(&k, "finish", "t")->detail,
                        "{\"count\": 4,\"task_id\":\"t\"}");
    cluster_done(&k);
}

static void a_learner_gets_its_last_info_before_it_finishes(void **state)
{
    cluster k;
    (void)state;
    cluster_init(&k, 2, 1, 1);
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "l");
    cluster_post(&k, COORD_COLLECTOR, "c");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "judge", "l"), 3);
    assert_int_equal(cluster_count(&k, "send_info", "l"), 3);
    assert_int_equal(cluster_count(&k, "finish", NULL), 2);
    const char *story = cluster_story(&k, "l");
    assert_non_null(strstr(story, "judge send_info finish"));
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collector_task_runs_from_start_to_finish),
        cmocka_unit_test(a_learner_gets_its_last_info_before_it_finishes),
    };
    return cmocka_run_group_tests_name("coordinator", tests, NULL, NULL);
}
