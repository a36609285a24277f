/* What the operator server's client changes at a server with all the quirks of the real
 * one: each change once, whatever becomes of its answer. */
#include "support/operator_rig.h"

#include <stdio.h>

/* ---- creating ---- */

static void a_create_says_what_it_wants_and_gets_the_new_ones(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_set_lag(r.fake, 3000);
    coord_operator_request request = operator_request_of(2, 1, 0);
    request.collector_cpus = "500m";
    request.learner_gpus = "2";
    request.learner_memory = "200Mi";
    expect(&r, coord_operator_server_post(r.server, &request, LONG_MS, &r.answer, &r.err),
           COORD_OK);
    assert_int_equal(r.answer->collector_count, 2);
    assert_int_equal(r.answer->learner_count, 1);
    assert_false(r.answer->inferred);
    assert_string_equal(
        fake_operator_body(r.fake, FAKE_POST),
        "{\"namespace\": \"default\", \"coordinator\": \"job-coordinator\", "
        "\"collectors\": {\"replicas\": 2, \"cpus\": \"500m\"}, "
        "\"learners\": {\"replicas\": 1, \"gpus\": \"2\", \"memory\": \"200Mi\"}}");
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 0); /* the list lags */
    operator_close(&r);
}

static void a_create_whose_answer_is_lost_is_not_done_twice(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_DONE_BROKEN, FAKE_GARBAGE};
    for (size_t i = 0; i < 3; i++) {
        operator_rig r;
        operator_open(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
        fake_operator_set_lag(r.fake, 1500);
        fake_operator_fail(r.fake, FAKE_POST, FAULTS[i], 1);
        expect(&r, operator_post(&r, 6, 1, 0), COORD_OK);
        assert_int_equal(fake_operator_created(r.fake), 7);
        assert_int_equal(operator_requests(&r, FAKE_POST), 1);
        assert_int_equal(r.answer->collector_count, 6);
        assert_int_equal(r.answer->learner_count, 1);
        assert_true(r.answer->inferred);
        operator_close(&r);
    }
}

static void only_the_difference_is_created_after_a_lost_answer(void **state)
{
    (void)state;
    static const struct {
        fake_fault fault;
        const char *rest;
    } CASES[] = {{FAKE_FIRST_SILENT, "\"collectors\": {\"replicas\": 2}"},
                 {FAKE_SILENT, "\"collectors\": {\"replicas\": 3}"},
                 {FAKE_BROKEN, "\"collectors\": {\"replicas\": 3}"},
                 {FAKE_BAD_GATEWAY, "\"collectors\": {\"replicas\": 3}"}};
    for (size_t i = 0; i < 4; i++) {
        operator_rig r;
        operator_open(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
        fake_operator_set_lag(r.fake, 1500);
        fake_operator_fail(r.fake, FAKE_POST, CASES[i].fault, 1);
        expect(&r, operator_post(&r, 3, 1, 0), COORD_OK);
        assert_int_equal(fake_operator_created(r.fake), 4);
        assert_int_equal(operator_requests(&r, FAKE_POST), 2);
        assert_says(fake_operator_body(r.fake, FAKE_POST), CASES[i].rest);
        assert_int_equal(r.answer->collector_count, 3);
        assert_int_equal(r.answer->learner_count, 1);
        operator_close(&r);
    }
}

static void lists_have_to_stand_still_before_the_rest_is_created(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_set_lag(r.fake, 3500); /* the first list does not show it */
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_BROKEN, 1);
    expect(&r, operator_post(&r, 3, 0, 0), COORD_OK);
    assert_int_equal(fake_operator_created(r.fake), 3);
    operator_close(&r);
}

static void spoil_lists(operator_rig *r)
{
    fake_operator_set_garbage(
        r->fake, "{\"success\":true,\"data\":{\"collectors\":[7],\"learners\":[]}}");
    fake_operator_fail(r->fake, FAKE_GET, FAKE_GARBAGE, 3);
}

static void post_in_thread(void *user)
{
    operator_rig *r = user;
    expect(r, operator_post(r, 3, 0, 0), COORD_OK);
}

static void from_lists_that_are_not_complete_nothing_is_concluded(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_BROKEN, 1);
    coord_sim_thread *thread;
    assert_int_equal(coord_sim_thread_start(r.sim, post_in_thread, &r, &thread, NULL),
                     COORD_OK);
    assert_int_equal(coord_sim_run_for(r.sim, 1000, NULL), COORD_OK);
    assert_int_equal(operator_requests(&r, FAKE_POST), 1);
    spoil_lists(&r);
    assert_int_equal(coord_sim_thread_join(thread, LONG_MS, NULL), COORD_OK);
    assert_int_equal(operator_requests(&r, FAKE_GET), 5);
    assert_int_equal(fake_operator_created(r.fake), 3);
    operator_close(&r);
}

static void a_change_uses_no_kept_connection_over_which_it_could_come_twice(void **state)
{
    (void)state;
    operator_rig r;
    coord_sim_link link;
    operator_open(&r, FAKE_V1);
    coord_sim_link_init(r.sim, &link, sizeof link);
    link.duplicate = 1.0;
    assert_int_equal(coord_sim_set_link(r.sim, "coordinator", "operator", &link, NULL),
                     COORD_OK);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    expect(&r, operator_post(&r, 3, 0, 0), COORD_OK);
    assert_int_equal(coord_sim_run_for(r.sim, 1000, NULL), COORD_OK);
    assert_int_equal(fake_operator_created(r.fake), 3);
    assert_true(operator_requests(&r, FAKE_GET) > 2); /* lists may come twice */
    operator_close(&r);
}

static void an_outcome_that_stays_unknown_is_told_as_such(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_SILENT, 1);
    const coord_operator_request request = operator_request_of(1, 0, 0);
    /* The list from before comes, no other. */
    fake_operator_set_lag(r.fake, 3600 * 1000);
    expect(&r, coord_operator_server_post(r.server, &request, 11000, &r.answer, &r.err),
           COORD_ERR_TIMEOUT);
    assert_says(r.err.text, "whether it was carried out");
    assert_int_equal(fake_operator_created(r.fake), 1);
    assert_int_equal(operator_requests(&r, FAKE_POST), 1);
    operator_close(&r);
}

static void a_partial_create_is_told_with_the_error(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_PARTIAL, FAKE_CONFLICT};
    for (size_t i = 0; i < 2; i++) {
        operator_rig r;
        operator_open(&r, FAKE_V1);
        fake_operator_fail(r.fake, FAKE_POST, FAULTS[i], 1);
        expect(&r, operator_post(&r, 3, 0, 0), COORD_ERR_REFUSED);
        assert_int_equal(operator_requests(&r, FAKE_POST),
                         1); /* nobody knows what would help */
        assert_int_equal(r.err.http_status, i == 0 ? 500 : 409);
        assert_says(r.err.cause, i == 0 ? "exceeded quota" : "already exists");
        assert_non_null(r.answer);
        assert_int_equal(r.answer->collector_count, 1);
        assert_string_equal(r.answer->collectors[0].id,
                            fake_operator_id(r.fake, FAKE_COLLECTORS, 0));
        operator_close(&r);
    }
}

static void a_create_that_certainly_had_no_effect_is_tried_again(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_NOT_YET, 2);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_ERROR, 2);
    expect(&r, operator_post(&r, 2, 2, 0), COORD_OK);
    assert_int_equal(operator_requests(&r, FAKE_POST), 5);
    assert_int_equal(operator_requests(&r, FAKE_GET), 1);
    assert_int_equal(fake_operator_created(r.fake), 4);
    operator_close(&r);
}

/* ---- deleting ---- */

static void a_delete_gets_the_names_of_those_that_went(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 3);
    expect(&r, operator_delete(&r, 2, 5, 0), COORD_OK); /* there are no learners: fine */
    assert_int_equal(r.answer->collector_count, 2);
    assert_int_equal(fake_operator_count(r.fake, FAKE_COLLECTORS), 1);
    assert_says(fake_operator_body(r.fake, FAKE_DELETE),
                "\"collectors\": {\"replicas\": 2}, \"learners\": {\"replicas\": 5}");
    operator_close(&r);
}

static void a_delete_whose_answer_is_lost_deletes_no_more_than_asked(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_FIRST_SILENT, FAKE_SILENT,
                                        FAKE_DONE_BROKEN};
    for (size_t i = 0; i < 4; i++) {
        operator_rig r;
        operator_open(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 8);
        fake_operator_set_lag(r.fake, 1500);
        fake_operator_fail(r.fake, FAKE_DELETE, FAULTS[i], 1);
        expect(&r, operator_delete(&r, 3, 2, 0), COORD_OK);
        assert_int_equal(fake_operator_deleted(r.fake), 3);
        assert_int_equal(r.answer->collector_count, 3);
        assert_int_equal(operator_requests(&r, FAKE_DELETE), i == 1 || i == 2 ? 2 : 1);
        operator_close(&r);
    }
}

/* ---- failed ---- */

static void a_failed_pod_is_replaced_once_however_often_it_is_reported(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 3);
    fake_operator_set_lag(r.fake, 5000);
    const char *id = fake_operator_id(r.fake, FAKE_COLLECTORS, 1);
    char kept[COORD_ID_SIZE];
    (void)snprintf(kept, sizeof kept, "%s", id);
    const char *names[] = {kept, kept};
    for (int i = 0; i < 4; i++) { /* a list still shows it, each time */
        expect(&r, operator_report(&r, names, 2), COORD_OK);
        assert_int_equal(r.answer->collector_count, i == 0 ? 1 : 0);
        assert_int_equal(r.answer->unknown, 0);
        expect(&r, operator_get(&r, LONG_MS), COORD_OK);
        assert_true(operator_lists(r.answer, kept));
        assert_int_equal(coord_sim_run_for(r.sim, 1000, NULL), COORD_OK);
    }
    assert_int_equal(operator_requests(&r, FAKE_FAILED), 1);
    assert_int_equal(fake_operator_created(r.fake), 1);
    assert_int_equal(coord_sim_run_for(r.sim, 5000, NULL), COORD_OK);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_false(operator_lists(r.answer, kept));
    expect(&r, operator_report(&r, names, 1),
           COORD_OK); /* now the server says so itself */
    assert_int_equal(r.answer->unknown, 1);
    assert_int_equal(fake_operator_created(r.fake), 1);
    operator_close(&r);
}

static void reports_are_made_pod_by_pod_and_with_bare_names(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_add(r.fake, FAKE_COLLECTORS, "job-collector-aaaaa.default:22270");
    fake_operator_add(r.fake, FAKE_LEARNERS, "job-learner-bbbbb.default:22271");
    const char *names[] = {"job-collector-aaaaa.default:22270", "job",
                           "job-learner-bbbbb.default.svc.cluster.local:22271"};
    expect(&r, operator_report(&r, names, 3), COORD_OK);
    assert_int_equal(operator_requests(&r, FAKE_FAILED), 3);
    assert_int_equal(r.answer->unknown, 1);
    assert_int_equal(r.answer->collector_count, 1);
    assert_int_equal(r.answer->learner_count, 1);
    assert_string_equal(fake_operator_body(r.fake, FAKE_FAILED),
                        "{\"namespace\": \"default\", \"coordinator\": "
                        "\"job-coordinator\", \"collectors\": [\"job-learner-bbbbb\"], "
                        "\"learners\": []}");
    operator_close(&r);
}

static void a_report_whose_answer_is_lost_replaces_once(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_SILENT, FAKE_DONE_BROKEN,
                                        FAKE_BROKEN, FAKE_GARBAGE};
    for (size_t i = 0; i < 5; i++) {
        operator_rig r;
        operator_open(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
        fake_operator_set_lag(r.fake, 3500);
        assert_int_equal(coord_sim_run_for(r.sim, 3000, NULL), COORD_OK);
        fake_operator_fail(r.fake, FAKE_FAILED, FAULTS[i], 1);
        const char *names[] = {fake_operator_id(r.fake, FAKE_COLLECTORS, 0)};
        expect(&r, operator_report(&r, names, 1), COORD_OK);
        assert_int_equal(fake_operator_created(r.fake), 1);
        assert_int_equal(fake_operator_deleted(r.fake), 1);
        operator_close(&r);
    }
}

static void a_report_in_doubt_is_looked_into_before_it_is_repeated(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_SILENT};
    for (size_t i = 0; i < 2; i++) {
        operator_rig r;
        operator_open(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
        fake_operator_fail(r.fake, FAKE_FAILED, FAULTS[i], 1);
        char id[COORD_ID_SIZE];
        (void)snprintf(id, sizeof id, "%s", fake_operator_id(r.fake, FAKE_COLLECTORS, 0));
        const char *names[] = {id};
        expect(&r,
               coord_operator_server_failed(r.server, names, 1, 3000, &r.answer, &r.err),
               COORD_ERR_TIMEOUT);
        assert_says(r.err.text, "whether it was carried out");
        assert_says(r.err.text, "job-collector-");
        fake_operator_set_lag(r.fake, 1000);
        expect(&r, operator_report(&r, names, 1), COORD_OK);
        assert_int_equal(fake_operator_created(r.fake), 1);
        assert_int_equal(fake_operator_deleted(r.fake), 1);
        operator_close(&r);
    }
}

static void a_report_that_is_refused_may_be_made_again(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
    fake_operator_fail(r.fake, FAKE_FAILED, FAKE_ERROR, 1);
    const char *names[] = {fake_operator_id(r.fake, FAKE_COLLECTORS, 0),
                           fake_operator_id(r.fake, FAKE_COLLECTORS, 1)};
    expect(&r, operator_report(&r, names, 2), COORD_ERR_REFUSED);
    assert_int_equal(operator_requests(&r, FAKE_FAILED), 1);
    expect(&r, operator_report(&r, names, 2), COORD_OK);
    assert_int_equal(r.answer->collector_count, 2);
    fake_operator_fail(r.fake, FAKE_FAILED, FAKE_PARTIAL, 1); /* told, and replaced */
    names[0] = fake_operator_id(r.fake, FAKE_COLLECTORS, 0);
    expect(&r, operator_report(&r, names, 1), COORD_ERR_REFUSED);
    assert_int_equal(r.answer->collector_count, 1);
    operator_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_create_says_what_it_wants_and_gets_the_new_ones),
        cmocka_unit_test(a_create_whose_answer_is_lost_is_not_done_twice),
        cmocka_unit_test(only_the_difference_is_created_after_a_lost_answer),
        cmocka_unit_test(lists_have_to_stand_still_before_the_rest_is_created),
        cmocka_unit_test(from_lists_that_are_not_complete_nothing_is_concluded),
        cmocka_unit_test(a_change_uses_no_kept_connection_over_which_it_could_come_twice),
        cmocka_unit_test(an_outcome_that_stays_unknown_is_told_as_such),
        cmocka_unit_test(a_partial_create_is_told_with_the_error),
        cmocka_unit_test(a_create_that_certainly_had_no_effect_is_tried_again),
        cmocka_unit_test(a_delete_gets_the_names_of_those_that_went),
        cmocka_unit_test(a_delete_whose_answer_is_lost_deletes_no_more_than_asked),
        cmocka_unit_test(a_failed_pod_is_replaced_once_however_often_it_is_reported),
        cmocka_unit_test(reports_are_made_pod_by_pod_and_with_bare_names),
        cmocka_unit_test(a_report_whose_answer_is_lost_replaces_once),
        cmocka_unit_test(a_report_in_doubt_is_looked_into_before_it_is_repeated),
        cmocka_unit_test(a_report_that_is_refused_may_be_made_again),
    };
    return cmocka_run_group_tests_name("operator_change", tests, NULL, NULL);
}
