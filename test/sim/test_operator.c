/* The operator server's client against a server with all the quirks of the real one, in
 * virtual time. */
#include "coord/operator_server.h"
#include "coord/testing.h"
#include "service/operator_server.h"
#include "support/fake_operator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_MS = 60000 };

typedef struct rig {
    coord_sim *sim;
    coord_loop *far; /* the operator's */
    coord_loop *near;
    fake_operator *fake;
    coord_operator_server_options options;
    char address[64];
    coord_operator_server *server;
    coord_operator_answer *answer; /* of the last call */
    coord_error err;
} rig;

static void open_at(rig *r, const fake_operator_spec *spec)
{
    coord_sim_options world;
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&world, sizeof world);
    world.seed = 7;
    assert_int_equal(coord_sim_create(&world, &r->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "operator", &r->far, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "coordinator", &r->near, NULL), COORD_OK);
    coord_sim_set_foreign(r->sim, r->far, true);
    r->fake = fake_operator_on_loop(r->far, spec);
    (void)snprintf(r->address, sizeof r->address, "operator:%u",
                   (unsigned)fake_operator_port(r->fake));
    coord_operator_server_options_init(&r->options, sizeof r->options);
    r->options.system_addr = r->address;
    r->options.name_space = "default";
    r->options.name = "job-coordinator";
    r->options.job_id = "default.job";
    r->options.loop = r->near;
}

static void create(rig *r)
{
    if (coord_operator_server_create(&r->options, &r->server, &r->err) != COORD_OK) {
        fail_msg("create: %s: %s", r->err.text, r->err.cause);
    }
}

static void open_rig(rig *r, int api)
{
    open_at(r, &(fake_operator_spec){.api = api});
    create(r);
}

static void close_rig(rig *r)
{
    coord_operator_answer_destroy(r->answer);
    coord_operator_server_destroy(r->server);
    coord_loop_destroy(r->near);
    fake_operator_stop(r->fake);
    coord_loop_destroy(r->far);
    coord_sim_destroy(r->sim);
}

static coord_status get(rig *r, int64_t wait_ms)
{
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_get(r->server, wait_ms, &r->answer, &r->err);
}

static coord_operator_request request_of(int collectors, int learners, int nodes)
{
    coord_operator_request request;
    coord_operator_request_init(&request, sizeof request);
    request.collectors = collectors;
    request.learners = learners;
    request.nodes = nodes;
    return request;
}

static coord_status post(rig *r, int collectors, int learners, int nodes)
{
    const coord_operator_request request = request_of(collectors, learners, nodes);
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_post(r->server, &request, LONG_MS, &r->answer, &r->err);
}

static coord_status delete (rig *r, int collectors, int learners, int nodes)
{
    const coord_operator_request request = request_of(collectors, learners, nodes);
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_delete(r->server, &request, LONG_MS, &r->answer,
                                        &r->err);
}

static coord_status report(rig *r, const char *const *names, size_t count)
{
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_failed(r->server, names, count, LONG_MS, &r->answer,
                                        &r->err);
}

#define expect(r, call, expected)                                                        \
    do {                                                                                 \
        const coord_status got_ = (call);                                                \
        if (got_ != (expected)) {                                                        \
            fail_msg("%s: %d: %s: %s", #call, (int)got_, (r)->err.text, (r)->err.cause); \
        }                                                                                \
    } while (0)

#define assert_says(text, words)                                                         \
    do {                                                                                 \
        if (strstr((text), (words)) == NULL) {                                           \
            fail_msg("\"%s\" is not in \"%s\"", (words), (text));                        \
        }                                                                                \
    } while (0)

static size_t requests(rig *r, fake_kind kind)
{
    return fake_operator_requests(r->fake, kind);
}

static bool lists(const coord_operator_answer *answer, const char *id)
{
    for (size_t i = 0; i < answer->collector_count; i++) {
        if (strcmp(answer->collectors[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- lists ---- */

static void a_list_tells_of_collectors_and_learners_apart(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_add(r.fake, FAKE_COLLECTORS, "job-collector-x7b2q.default:22270");
    fake_operator_add(r.fake, FAKE_LEARNERS, "job-aggregator-aaaaa.default:80");
    expect(&r, get(&r, LONG_MS), COORD_OK);
    const coord_operator_answer *a = r.answer;
    assert_int_equal(a->collector_count, 1);
    assert_string_equal(a->collectors[0].id, "job-collector-x7b2q.default:22270");
    assert_string_equal(a->collectors[0].name, "job-collector-x7b2q");
    assert_string_equal(a->collectors[0].host, "job-collector-x7b2q.default");
    assert_int_equal(a->collectors[0].port, 22270);
    assert_int_equal(a->collectors[0].rank, -1);
    assert_int_equal(a->learner_count, 1);
    assert_int_equal(a->learners[0].port, 80);
    assert_int_equal(a->node_count, 0);
    assert_true(a->complete);
    assert_string_equal(a->api_version, "v1alpha1");
    assert_int_equal(a->http_status, 200);
    assert_string_equal(a->message, "successfully get replicas");
    close_rig(&r);
}

static void null_lists_dicts_and_other_orders_are_the_same_list(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_null_lists(r.fake, true);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count + r.answer->learner_count, 0);
    assert_true(r.answer->complete);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 5);
    for (int dicts = 0; dicts < 2; dicts++) {
        fake_operator_set_dicts(r.fake, dicts == 1);
        for (int i = 0; i < 3; i++) {
            expect(&r, get(&r, LONG_MS), COORD_OK);
            assert_int_equal(r.answer->collector_count, 5);
            for (size_t n = 0; n < 5; n++) {
                assert_true(
                    lists(r.answer, fake_operator_id(r.fake, FAKE_COLLECTORS, n)));
            }
        }
    }
    close_rig(&r);
}

static void thousands_of_pods_are_fine_and_more_than_the_limit_are_not(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 4096);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 4096);
    fake_operator_scale(r.fake, FAKE_LEARNERS, 1);
    expect(&r, get(&r, LONG_MS), COORD_ERR_TOO_BIG);
    assert_null(r.answer);
    assert_says(r.err.text, "more than 4096 entries");
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 19000);
    const int64_t before_ms = coord_sim_now_ms(r.sim);
    expect(&r, get(&r, LONG_MS), COORD_ERR_TOO_BIG);         /* by its bytes */
    assert_true(coord_sim_now_ms(r.sim) - before_ms < 1000); /* it will not pass */
    close_rig(&r);
}

/* ---- waiting for what passes ---- */

static void a_pod_that_is_not_known_yet_and_failures_of_the_server_pass(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_NOT_YET, 3);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_ERROR, 1);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_BAD_GATEWAY, 1);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_BROKEN, 1);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 2);
    assert_int_equal(requests(&r, FAKE_GET), 7);
    close_rig(&r);
}

static void what_does_not_pass_in_time_is_told_with_its_cause(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_known(r.fake, false);
    int64_t before_ms = coord_sim_now_ms(r.sim);
    expect(&r, get(&r, 8000), COORD_ERR_NOT_FOUND);
    assert_true(coord_sim_now_ms(r.sim) - before_ms <= 8000);
    assert_int_equal(r.err.http_status, 404);
    assert_says(r.err.text, r.address);
    assert_says(r.err.cause, "GET /v1alpha1/replicas");
    assert_says(r.err.cause, "pod: default/job-coordinator not exists in cache");
    assert_int_equal(requests(&r, FAKE_GET), 5); /* after 0, 0.5, 1.5, 3.5, 7.5 s */

    fake_operator_set_listening(r.fake, false); /* not the leader */
    before_ms = coord_sim_now_ms(r.sim);
    expect(&r, get(&r, 8000), COORD_ERR_LOST);
    assert_true(coord_sim_now_ms(r.sim) - before_ms <= 8000);
    assert_says(r.err.cause, "connection refused");
    close_rig(&r);
}

static void a_silent_server_costs_no_more_than_the_time_given(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_delay(r.fake, 3600 * 1000);
    int64_t before_ms = coord_sim_now_ms(r.sim);
    expect(&r, get(&r, 25000), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_now_ms(r.sim) - before_ms, 25000);
    assert_int_equal(requests(&r, FAKE_GET), 3); /* ten seconds each */
    fake_operator_set_delay(r.fake, 4000);
    expect(&r, get(&r, LONG_MS), COORD_OK); /* slow is not dead */

    assert_int_equal(coord_sim_block(r.sim, "coordinator", "operator", true, NULL),
                     COORD_OK);
    coord_operator_server_destroy(r.server);
    create(&r); /* whose connection is not made yet */
    before_ms = coord_sim_now_ms(r.sim);
    expect(&r, get(&r, 3200), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_now_ms(r.sim) - before_ms, 3000); /* to connect */
    close_rig(&r);
}

/* ---- garbage ---- */

static void garbage_is_an_error_and_never_an_empty_list(void **state)
{
    (void)state;
    static const char *const GARBAGE[] = {
        "",
        "null",
        "[]",
        "{}",
        "404 page not found",
        "{\"success\":true}",
        "{\"success\":true,\"code\":0,\"message\":\"\",\"data\":null}",
        "{\"success\":true,\"code\":0,\"message\":\"\",\"data\":{}}",
        "{\"success\":true,\"code\":0,\"message\":\"\",\"data\":[]}",
        "{\"success\":true,\"code\":0,\"message\":\"\",\"data\":\"no\"}",
        "{\"success\":true,\"data\":{\"collectors\":7,\"learners\":[]}}",
        "{\"success\":true,\"data\":{\"namespace\":\"\",\"coordinator\":\"\","
        "\"collectors\":null,\"learners\":null}}",
        "{\"success\":true,\"data\":{\"namespace\":\"default\",\"coordinator\":\"other\","
        "\"collectors\":[],\"learners\":[]}}",
        "{\"success\":1,\"data\":{\"collectors\":[],\"learners\":[]}}",
    };
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
    for (size_t i = 0; i < sizeof GARBAGE / sizeof GARBAGE[0]; i++) {
        fake_operator_set_garbage(r.fake, GARBAGE[i]);
        fake_operator_fail(r.fake, FAKE_GET, FAKE_GARBAGE, 1);
        const coord_status rc = get(&r, LONG_MS);
        if (rc != COORD_ERR_PROTOCOL || r.answer != NULL) {
            fail_msg("garbage %zu: %d: %s", i, (int)rc, r.err.text);
        }
        assert_says(r.err.text, "GET /v1alpha1/replicas");
        assert_says(r.err.text, "expected");
    }
    close_rig(&r);
}

static void an_entry_of_garbage_is_skipped_and_the_answer_is_not_complete(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_garbage(
        r.fake, "{\"success\":true,\"data\":{\"collectors\":[\"a.default:1\",7,"
                "\"b.default:99999\",\"a.default:1\"],\"learners\":null}}");
    fake_operator_fail(r.fake, FAKE_GET, FAKE_GARBAGE, 1);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 1);
    assert_int_equal(r.answer->skipped, 3);
    assert_false(r.answer->complete);
    assert_says(r.answer->skipped_text, "data.collectors: 7: expected a string");
    close_rig(&r);
}

/* ---- creating ---- */

static void a_create_says_what_it_wants_and_gets_the_new_ones(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_lag(r.fake, 3000);
    coord_operator_request request = request_of(2, 1, 0);
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
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 0); /* the list lags */
    close_rig(&r);
}

static void a_create_whose_answer_is_lost_is_not_done_twice(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_DONE_BROKEN, FAKE_GARBAGE};
    for (size_t i = 0; i < 3; i++) {
        rig r;
        open_rig(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
        fake_operator_set_lag(r.fake, 1500);
        fake_operator_fail(r.fake, FAKE_POST, FAULTS[i], 1);
        expect(&r, post(&r, 6, 1, 0), COORD_OK);
        assert_int_equal(fake_operator_created(r.fake), 7);
        assert_int_equal(requests(&r, FAKE_POST), 1);
        assert_int_equal(r.answer->collector_count, 6);
        assert_int_equal(r.answer->learner_count, 1);
        assert_true(r.answer->inferred);
        close_rig(&r);
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
        rig r;
        open_rig(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
        fake_operator_set_lag(r.fake, 1500);
        fake_operator_fail(r.fake, FAKE_POST, CASES[i].fault, 1);
        expect(&r, post(&r, 3, 1, 0), COORD_OK);
        assert_int_equal(fake_operator_created(r.fake), 4);
        assert_int_equal(requests(&r, FAKE_POST), 2);
        assert_says(fake_operator_body(r.fake, FAKE_POST), CASES[i].rest);
        assert_int_equal(r.answer->collector_count, 3);
        assert_int_equal(r.answer->learner_count, 1);
        close_rig(&r);
    }
}

static void lists_have_to_stand_still_before_the_rest_is_created(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_lag(r.fake, 3500); /* the first list does not show it */
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_BROKEN, 1);
    expect(&r, post(&r, 3, 0, 0), COORD_OK);
    assert_int_equal(fake_operator_created(r.fake), 3);
    close_rig(&r);
}

static void spoil_lists(rig *r)
{
    fake_operator_set_garbage(
        r->fake, "{\"success\":true,\"data\":{\"collectors\":[7],\"learners\":[]}}");
    fake_operator_fail(r->fake, FAKE_GET, FAKE_GARBAGE, 3);
}

static void post_in_thread(void *user)
{
    rig *r = user;
    expect(r, post(r, 3, 0, 0), COORD_OK);
}

static void from_lists_that_are_not_complete_nothing_is_concluded(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_BROKEN, 1);
    coord_sim_thread *thread;
    assert_int_equal(coord_sim_thread_start(r.sim, post_in_thread, &r, &thread, NULL),
                     COORD_OK);
    assert_int_equal(coord_sim_run_for(r.sim, 1000, NULL), COORD_OK);
    assert_int_equal(requests(&r, FAKE_POST), 1);
    spoil_lists(&r);
    assert_int_equal(coord_sim_thread_join(thread, LONG_MS, NULL), COORD_OK);
    assert_int_equal(requests(&r, FAKE_GET), 5);
    assert_int_equal(fake_operator_created(r.fake), 3);
    close_rig(&r);
}

static void a_change_uses_no_kept_connection_over_which_it_could_come_twice(void **state)
{
    (void)state;
    rig r;
    coord_sim_link link;
    open_rig(&r, FAKE_V1);
    coord_sim_link_init(r.sim, &link, sizeof link);
    link.duplicate = 1.0;
    assert_int_equal(coord_sim_set_link(r.sim, "coordinator", "operator", &link, NULL),
                     COORD_OK);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    expect(&r, post(&r, 3, 0, 0), COORD_OK);
    assert_int_equal(coord_sim_run_for(r.sim, 1000, NULL), COORD_OK);
    assert_int_equal(fake_operator_created(r.fake), 3);
    assert_true(requests(&r, FAKE_GET) > 2); /* lists may come twice */
    close_rig(&r);
}

static void an_outcome_that_stays_unknown_is_told_as_such(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_SILENT, 1);
    const coord_operator_request request = request_of(1, 0, 0);
    /* The list from before comes, no other. */
    fake_operator_set_lag(r.fake, 3600 * 1000);
    expect(&r, coord_operator_server_post(r.server, &request, 11000, &r.answer, &r.err),
           COORD_ERR_TIMEOUT);
    assert_says(r.err.text, "whether it was carried out");
    assert_int_equal(fake_operator_created(r.fake), 1);
    assert_int_equal(requests(&r, FAKE_POST), 1);
    close_rig(&r);
}

static void a_partial_create_is_told_with_the_error(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_PARTIAL, FAKE_CONFLICT};
    for (size_t i = 0; i < 2; i++) {
        rig r;
        open_rig(&r, FAKE_V1);
        fake_operator_fail(r.fake, FAKE_POST, FAULTS[i], 1);
        expect(&r, post(&r, 3, 0, 0), COORD_ERR_REFUSED);
        assert_int_equal(requests(&r, FAKE_POST), 1); /* nobody knows what would help */
        assert_int_equal(r.err.http_status, i == 0 ? 500 : 409);
        assert_says(r.err.cause, i == 0 ? "exceeded quota" : "already exists");
        assert_non_null(r.answer);
        assert_int_equal(r.answer->collector_count, 1);
        assert_string_equal(r.answer->collectors[0].id,
                            fake_operator_id(r.fake, FAKE_COLLECTORS, 0));
        close_rig(&r);
    }
}

static void a_create_that_certainly_had_no_effect_is_tried_again(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_NOT_YET, 2);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_ERROR, 2);
    expect(&r, post(&r, 2, 2, 0), COORD_OK);
    assert_int_equal(requests(&r, FAKE_POST), 5);
    assert_int_equal(requests(&r, FAKE_GET), 1);
    assert_int_equal(fake_operator_created(r.fake), 4);
    close_rig(&r);
}

/* ---- deleting ---- */

static void a_delete_gets_the_names_of_those_that_went(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 3);
    expect(&r, delete (&r, 2, 5, 0), COORD_OK); /* there are no learners: fine */
    assert_int_equal(r.answer->collector_count, 2);
    assert_int_equal(fake_operator_count(r.fake, FAKE_COLLECTORS), 1);
    assert_says(fake_operator_body(r.fake, FAKE_DELETE),
                "\"collectors\": {\"replicas\": 2}, \"learners\": {\"replicas\": 5}");
    close_rig(&r);
}

static void a_delete_whose_answer_is_lost_deletes_no_more_than_asked(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_FIRST_SILENT, FAKE_SILENT,
                                        FAKE_DONE_BROKEN};
    for (size_t i = 0; i < 4; i++) {
        rig r;
        open_rig(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 8);
        fake_operator_set_lag(r.fake, 1500);
        fake_operator_fail(r.fake, FAKE_DELETE, FAULTS[i], 1);
        expect(&r, delete (&r, 3, 2, 0), COORD_OK);
        assert_int_equal(fake_operator_deleted(r.fake), 3);
        assert_int_equal(r.answer->collector_count, 3);
        assert_int_equal(requests(&r, FAKE_DELETE), i == 1 || i == 2 ? 2 : 1);
        close_rig(&r);
    }
}

/* ---- failed ---- */

static void a_failed_pod_is_replaced_once_however_often_it_is_reported(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 3);
    fake_operator_set_lag(r.fake, 5000);
    const char *id = fake_operator_id(r.fake, FAKE_COLLECTORS, 1);
    char kept[COORD_ID_SIZE];
    (void)snprintf(kept, sizeof kept, "%s", id);
    const char *names[] = {kept, kept};
    for (int i = 0; i < 4; i++) { /* a list still shows it, each time */
        expect(&r, report(&r, names, 2), COORD_OK);
        assert_int_equal(r.answer->collector_count, i == 0 ? 1 : 0);
        assert_int_equal(r.answer->unknown, 0);
        expect(&r, get(&r, LONG_MS), COORD_OK);
        assert_true(lists(r.answer, kept));
        assert_int_equal(coord_sim_run_for(r.sim, 1000, NULL), COORD_OK);
    }
    assert_int_equal(requests(&r, FAKE_FAILED), 1);
    assert_int_equal(fake_operator_created(r.fake), 1);
    assert_int_equal(coord_sim_run_for(r.sim, 5000, NULL), COORD_OK);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_false(lists(r.answer, kept));
    expect(&r, report(&r, names, 1), COORD_OK); /* now the server says so itself */
    assert_int_equal(r.answer->unknown, 1);
    assert_int_equal(fake_operator_created(r.fake), 1);
    close_rig(&r);
}

static void reports_are_made_pod_by_pod_and_with_bare_names(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_add(r.fake, FAKE_COLLECTORS, "job-collector-aaaaa.default:22270");
    fake_operator_add(r.fake, FAKE_LEARNERS, "job-learner-bbbbb.default:22271");
    const char *names[] = {"job-collector-aaaaa.default:22270", "never-there",
                           "job-learner-bbbbb.default.svc.cluster.local:22271"};
    expect(&r, report(&r, names, 3), COORD_OK);
    assert_int_equal(requests(&r, FAKE_FAILED), 3);
    assert_int_equal(r.answer->unknown, 1);
    assert_int_equal(r.answer->collector_count, 1);
    assert_int_equal(r.answer->learner_count, 1);
    assert_string_equal(fake_operator_body(r.fake, FAKE_FAILED),
                        "{\"namespace\": \"default\", \"coordinator\": "
                        "\"job-coordinator\", \"collectors\": [\"job-learner-bbbbb\"], "
                        "\"learners\": []}");
    close_rig(&r);
}

static void a_report_whose_answer_is_lost_replaces_once(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_SILENT, FAKE_DONE_BROKEN,
                                        FAKE_BROKEN, FAKE_GARBAGE};
    for (size_t i = 0; i < 5; i++) {
        rig r;
        open_rig(&r, FAKE_V1);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
        fake_operator_set_lag(r.fake, 3500);
        assert_int_equal(coord_sim_run_for(r.sim, 3000, NULL), COORD_OK);
        fake_operator_fail(r.fake, FAKE_FAILED, FAULTS[i], 1);
        const char *names[] = {fake_operator_id(r.fake, FAKE_COLLECTORS, 0)};
        expect(&r, report(&r, names, 1), COORD_OK);
        assert_int_equal(fake_operator_created(r.fake), 1);
        assert_int_equal(fake_operator_deleted(r.fake), 1);
        close_rig(&r);
    }
}

static void a_report_in_doubt_is_looked_into_before_it_is_repeated(void **state)
{
    (void)state;
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_SILENT};
    for (size_t i = 0; i < 2; i++) {
        rig r;
        open_rig(&r, FAKE_V1);
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
        expect(&r, report(&r, names, 1), COORD_OK);
        assert_int_equal(fake_operator_created(r.fake), 1);
        assert_int_equal(fake_operator_deleted(r.fake), 1);
        close_rig(&r);
    }
}

static void a_report_that_is_refused_may_be_made_again(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
    fake_operator_fail(r.fake, FAKE_FAILED, FAKE_ERROR, 1);
    const char *names[] = {fake_operator_id(r.fake, FAKE_COLLECTORS, 0),
                           fake_operator_id(r.fake, FAKE_COLLECTORS, 1)};
    expect(&r, report(&r, names, 2), COORD_ERR_REFUSED);
    assert_int_equal(requests(&r, FAKE_FAILED), 1);
    expect(&r, report(&r, names, 2), COORD_OK);
    assert_int_equal(r.answer->collector_count, 2);
    fake_operator_fail(r.fake, FAKE_FAILED, FAKE_PARTIAL, 1); /* told, and replaced */
    names[0] = fake_operator_id(r.fake, FAKE_COLLECTORS, 0);
    expect(&r, report(&r, names, 1), COORD_ERR_REFUSED);
    assert_int_equal(r.answer->collector_count, 1);
    close_rig(&r);
}

/* ---- v2alpha1, and finding out ---- */

static void nodes_come_by_rank_and_some_have_no_address_yet(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V2);
    fake_operator_add(r.fake, FAKE_NODES, "10.1.0.1:22270");
    fake_operator_add(r.fake, FAKE_NODES, "");
    fake_operator_add(r.fake, FAKE_NODES, "fd00::3:22270");
    expect(&r, get(&r, LONG_MS), COORD_OK);
    const coord_operator_answer *a = r.answer;
    assert_string_equal(a->api_version, "v2alpha1");
    assert_int_equal(a->node_count, 2);
    assert_int_equal(a->pending, 1);
    assert_int_equal(a->nodes[0].rank, 0);
    assert_string_equal(a->nodes[0].name, "10.1.0.1");
    assert_int_equal(a->nodes[1].rank, 2);
    assert_string_equal(a->nodes[1].host, "fd00::3");
    assert_int_equal(a->nodes[1].port, 22270);
    assert_true(a->complete);
    close_rig(&r);
}

static void no_node_with_an_address_is_an_incomplete_answer(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V2);
    expect(&r, get(&r, LONG_MS), COORD_OK); /* null: the job restarts */
    assert_int_equal(r.answer->node_count, 0);
    assert_false(r.answer->complete);
    close_rig(&r);
}

static void nodes_are_added_and_taken_away_but_not_replaced(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V2);
    fake_operator_scale(r.fake, FAKE_NODES, 2);
    expect(&r, post(&r, 0, 0, 3), COORD_OK);
    assert_string_equal(fake_operator_body(r.fake, FAKE_POST), "{\"replicas\": 3}");
    assert_int_equal(fake_operator_count(r.fake, FAKE_NODES), 5);
    assert_int_equal(r.answer->node_count, 0);
    expect(&r, delete (&r, 0, 0, 4), COORD_OK);
    assert_int_equal(fake_operator_count(r.fake, FAKE_NODES), 1);
    const char *names[] = {"10.1.0.1:22270"};
    expect(&r, report(&r, names, 1), COORD_ERR_UNSUPPORTED);
    assert_says(r.err.text, "v2alpha1");
    expect(&r, post(&r, 1, 0, 0), COORD_ERR_UNSUPPORTED);
    assert_says(r.err.text, "knows nodes");
    close_rig(&r);
}

static void a_lost_answer_of_v2_is_confirmed_by_the_list_or_stays_unknown(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V2);
    fake_operator_scale(r.fake, FAKE_NODES, 2);
    fake_operator_set_lag(r.fake, 20000);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_BROKEN, 1);
    expect(&r, post(&r, 0, 0, 2), COORD_OK);
    assert_true(r.answer->inferred);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_BROKEN, 1);
    expect(&r, post(&r, 0, 0, 2), COORD_ERR_TIMEOUT);
    assert_int_equal(requests(&r, FAKE_POST), 2);
    assert_int_equal(fake_operator_created(r.fake), 2);
    close_rig(&r);
}

static void the_api_is_found_out_and_found_out_anew_after_a_change(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 1);
    fake_operator_scale(r.fake, FAKE_NODES, 1);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_string_equal(r.answer->api_version, "v1alpha1");
    fake_operator_set_api(r.fake, FAKE_V2);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_string_equal(r.answer->api_version, "v2alpha1");
    fake_operator_set_api(r.fake, FAKE_V1);
    expect(&r, post(&r, 1, 0, 0), COORD_OK);
    assert_string_equal(r.answer->api_version, "v1alpha1");
    close_rig(&r);
}

static void a_server_of_the_other_api_or_of_none_is_named(void **state)
{
    (void)state;
    rig r;
    open_at(&r, &(fake_operator_spec){.api = FAKE_V2});
    r.options.api_version = "/v1alpha1/";
    create(&r);
    expect(&r, get(&r, LONG_MS), COORD_ERR_PROTOCOL);
    assert_says(r.err.text, "does not speak v1alpha1");
    coord_operator_server_destroy(r.server);
    r.options.api_version = NULL;
    r.options.job_id = NULL;
    create(&r);
    expect(&r, get(&r, LONG_MS), COORD_ERR_PROTOCOL);
    assert_says(r.err.text, "job_id (DI_JOB_ID) is needed");
    coord_operator_server_destroy(r.server);
    char other[96];
    (void)snprintf(other, sizeof other, "http://%s/some//where/", r.address);
    r.options.system_addr = other;
    r.options.job_id = "default.job";
    create(&r);
    expect(&r, get(&r, LONG_MS), COORD_ERR_PROTOCOL);
    assert_says(r.err.text, "/some/where: it does not speak v1alpha1 or v2alpha1");
    close_rig(&r);
}

/* ---- the environment and the options ---- */

static void the_environment_fills_in_what_the_options_leave_out(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {{"KUBERNETES_POD_NAMESPACE", "default"},
                                           {"KUBERNETES_POD_NAME", "job-coordinator"},
                                           {"KUBERNETES_SERVER_API_VERSION", "/v1alpha1"},
                                           {"DI_SERVER_URL", "http://nowhere:1"}};
    rig r;
    open_at(&r, NULL);
    coord_operator_server_options_init(&r.options, sizeof r.options);
    r.options.loop = r.near;
    coord_operator_server *none = NULL;
    assert_int_equal(coord_operator_server_create(&r.options, &none, &r.err),
                     COORD_ERR_ARG);
    assert_says(r.err.text, "KUBERNETES_SERVER_URL");
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(coord_sim_set_env(r.sim, PAIRS[i][0], PAIRS[i][1], NULL),
                         COORD_OK);
    }
    assert_int_equal(coord_sim_set_env(r.sim, "KUBERNETES_SERVER_URL", r.address, NULL),
                     COORD_OK);
    create(&r);
    expect(&r, get(&r, LONG_MS), COORD_OK);
    assert_string_equal(r.answer->api_version, "v1alpha1");
    close_rig(&r);
}

static void options_that_make_no_sense_are_named(void **state)
{
    (void)state;
    rig r;
    open_at(&r, NULL);
    coord_operator_server *none = NULL;
    coord_operator_server_options o = r.options;
#define BAD(field, value, status, words)                                                 \
    do {                                                                                 \
        o = r.options;                                                                   \
        o.field = (value);                                                               \
        assert_int_equal(coord_operator_server_create(&o, &none, &r.err), (status));     \
        assert_says(r.err.text, (words));                                                \
    } while (0)
    BAD(system_addr, "https://operator:8443", COORD_ERR_UNSUPPORTED, "https://");
    BAD(system_addr, "ftp://operator", COORD_ERR_ARG, "system_addr");
    BAD(system_addr, "operator:0", COORD_ERR_ARG, "1 to 65535");
    BAD(system_addr, "operator:65536", COORD_ERR_ARG, "1 to 65535");
    BAD(system_addr, "::1:80", COORD_ERR_ARG, "system_addr");
    BAD(api_version, "v3", COORD_ERR_ARG, "\"v3\"");
    BAD(name, "a/b", COORD_ERR_ARG, "name must be");
    BAD(name_space, "", COORD_ERR_ARG, "name_space must be");
    BAD(job_id, "a b", COORD_ERR_ARG, "job_id must be");
    BAD(request_timeout_ms, 0, COORD_ERR_ARG, "request_timeout_ms");
    BAD(max_replicas, 0, COORD_ERR_ARG, "max_replicas");
    assert_null(none);
    close_rig(&r);
}

static void requests_that_make_no_sense_are_not_sent(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    coord_operator_request request = request_of(0, 0, 0);
    expect(&r, post(&r, 0, 0, 0), COORD_ERR_ARG);
    expect(&r, post(&r, -1, 0, 0), COORD_ERR_ARG);
    expect(&r, post(&r, 10001, 0, 0), COORD_ERR_ARG);
    request = request_of(1, 0, 0);
    request.collector_cpus = "";
    expect(&r, coord_operator_server_post(r.server, &request, LONG_MS, &r.answer, &r.err),
           COORD_ERR_ARG);
    assert_says(r.err.text, "collector_cpus");
    const char *names[] = {"fine", "not fine"};
    expect(&r, report(&r, names, 2), COORD_ERR_ARG);
    assert_says(r.err.text, "not fine");
    expect(&r, report(&r, names, 0), COORD_ERR_ARG);
    expect(&r, post(&r, 0, 0, 1), COORD_ERR_UNSUPPORTED);
    assert_int_equal(requests(&r, FAKE_POST) + requests(&r, FAKE_FAILED), 0);
    close_rig(&r);
}

typedef struct errand {
    coordi_job job;
    rig *r;
    coord_status status;
} errand;

static void run_errand(coordi_job *job)
{
    errand *e = COORDI_ITEM(job, errand, job);
    e->status = get(e->r, LONG_MS);
}

static void a_call_on_the_loop_thread_is_refused(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    errand e = {.job.run = run_errand, .r = &r};
    coordi_post(r.near, &e.job);
    assert_int_equal(coord_sim_run_for(r.sim, 10, NULL), COORD_OK);
    assert_int_equal(e.status, COORD_ERR_STATE);
    close_rig(&r);
}

/* ---- on the loop ---- */

typedef struct note {
    int times;
    coord_status status;
    bool unknown;
    size_t collectors;
} note;

static void on_done(const coordi_operator_outcome *outcome, void *arg)
{
    note *n = arg;
    n->times++;
    n->status = outcome->status;
    n->unknown = outcome->unknown;
    n->collectors = outcome->answer == NULL ? 0 : outcome->answer->collector_count;
    coord_operator_answer_destroy(outcome->answer);
}

static coordi_operator *open_inside(rig *r)
{
    coordi_operator_settings settings;
    coordi_operator *op = NULL;
    const coordi_log log = {0};
    open_at(r, NULL);
    assert_int_equal(
        coordi_operator_settings_read(&settings, r->near, &r->options, &r->err),
        COORD_OK);
    assert_int_equal(coordi_operator_create(r->near, &settings, &log, &op, &r->err),
                     COORD_OK);
    return op;
}

static void start(coordi_operator *op, coordi_operator_kind kind, int64_t wait_ms,
                  note *n, coordi_operator_call **ret)
{
    const coord_operator_request request = request_of(1, 0, 0);
    const coordi_operator_spec spec = {
        .kind = kind, .request = &request, .wait_ms = wait_ms, .done = on_done, .arg = n};
    assert_int_equal(coordi_operator_start(op, &spec, ret, NULL), COORD_OK);
    assert_int_equal(n->times, 0);
}

static void run_for(rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

static void polls_go_on_beside_changes_that_stand_in_line(void **state)
{
    (void)state;
    rig r;
    coordi_operator *op = open_inside(&r);
    note first = {0};
    note second = {0};
    note late = {0};
    note poll = {0};
    fake_operator_fail(r.fake, FAKE_POST, FAKE_SILENT, 1);
    start(op, COORDI_OPERATOR_POST, 30000, &first, NULL);
    start(op, COORDI_OPERATOR_POST, 30000, &second, NULL);
    start(op, COORDI_OPERATOR_POST, 5000, &late, NULL);
    run_for(&r, 100);
    start(op, COORDI_OPERATOR_GET, 1000, &poll, NULL);
    run_for(&r, 100);
    assert_int_equal(poll.times, 1);
    assert_int_equal(poll.status, COORD_OK);
    run_for(&r, 5000);
    assert_int_equal(late.times, 1); /* it was never sent */
    assert_int_equal(late.status, COORD_ERR_TIMEOUT);
    assert_false(late.unknown);
    assert_int_equal(second.times, 0);
    run_for(&r, 30000);
    assert_int_equal(first.status, COORD_OK);
    assert_int_equal(second.status, COORD_OK);
    assert_int_equal(first.times + second.times, 2);
    assert_int_equal(fake_operator_created(r.fake), 2);
    coordi_operator_destroy(op);
    close_rig(&r);
}

static void without_retry_a_failure_is_told_at_once(void **state)
{
    (void)state;
    rig r;
    coordi_operator *op = open_inside(&r);
    note n = {0};
    fake_operator_set_listening(r.fake, false);
    start(op, COORDI_OPERATOR_GET, 30000, &n, NULL);
    run_for(&r, 500);
    assert_int_equal(n.status, COORD_ERR_LOST);
    coordi_operator_destroy(op);
    close_rig(&r);
}

static void a_call_that_is_cancelled_or_whose_client_goes_is_not_told(void **state)
{
    (void)state;
    rig r;
    coordi_operator *op = open_inside(&r);
    note n = {0};
    coordi_operator_call *call;
    for (int64_t ms = 0; ms < 40; ms += 3) {
        start(op, COORDI_OPERATOR_POST, 30000, &n, &call);
        run_for(&r, ms < 12 ? ms : 0);
        if (n.times == 0) {
            coordi_operator_cancel(call);
        }
        n.times = 0;
        run_for(&r, 100);
        assert_int_equal(n.times, 0);
    }
    fake_operator_set_delay(r.fake, 1000);
    start(op, COORDI_OPERATOR_GET, 30000, &n, NULL);
    start(op, COORDI_OPERATOR_POST, 30000, &n, NULL);
    start(op, COORDI_OPERATOR_POST, 30000, &n, NULL);
    run_for(&r, 1500);
    n.times = 0;
    coordi_operator_destroy(op);
    run_for(&r, 40000);
    assert_int_equal(n.times, 0);
    close_rig(&r);
}

static void call_in_thread(void *user)
{
    rig *r = user;
    expect(r, get(r, LONG_MS), COORD_ERR_CLOSED);
}

static void destroy_ends_calls_that_wait(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, FAKE_V1);
    fake_operator_set_delay(r.fake, 3600 * 1000);
    coord_sim_thread *thread;
    assert_int_equal(coord_sim_thread_start(r.sim, call_in_thread, &r, &thread, NULL),
                     COORD_OK);
    run_for(&r, 1000);
    coord_operator_server_destroy(r.server);
    r.server = NULL;
    assert_int_equal(coord_sim_thread_join(thread, 1000, NULL), COORD_OK);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_tells_of_collectors_and_learners_apart),
        cmocka_unit_test(null_lists_dicts_and_other_orders_are_the_same_list),
        cmocka_unit_test(thousands_of_pods_are_fine_and_more_than_the_limit_are_not),
        cmocka_unit_test(a_pod_that_is_not_known_yet_and_failures_of_the_server_pass),
        cmocka_unit_test(what_does_not_pass_in_time_is_told_with_its_cause),
        cmocka_unit_test(a_silent_server_costs_no_more_than_the_time_given),
        cmocka_unit_test(garbage_is_an_error_and_never_an_empty_list),
        cmocka_unit_test(an_entry_of_garbage_is_skipped_and_the_answer_is_not_complete),
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
        cmocka_unit_test(nodes_come_by_rank_and_some_have_no_address_yet),
        cmocka_unit_test(no_node_with_an_address_is_an_incomplete_answer),
        cmocka_unit_test(nodes_are_added_and_taken_away_but_not_replaced),
        cmocka_unit_test(a_lost_answer_of_v2_is_confirmed_by_the_list_or_stays_unknown),
        cmocka_unit_test(the_api_is_found_out_and_found_out_anew_after_a_change),
        cmocka_unit_test(a_server_of_the_other_api_or_of_none_is_named),
        cmocka_unit_test(the_environment_fills_in_what_the_options_leave_out),
        cmocka_unit_test(options_that_make_no_sense_are_named),
        cmocka_unit_test(requests_that_make_no_sense_are_not_sent),
        cmocka_unit_test(a_call_on_the_loop_thread_is_refused),
        cmocka_unit_test(polls_go_on_beside_changes_that_stand_in_line),
        cmocka_unit_test(without_retry_a_failure_is_told_at_once),
        cmocka_unit_test(a_call_that_is_cancelled_or_whose_client_goes_is_not_told),
        cmocka_unit_test(destroy_ends_calls_that_wait),
    };
    return cmocka_run_group_tests_name("operator", tests, NULL, NULL);
}
