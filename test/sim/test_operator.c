/* The operator server's client against a server with all the quirks of the real one, in
 * virtual time: lists, finding out, options, and the calls on the loop. */
#include "service/operator_server.h"
#include "support/operator_rig.h"

#include <stdio.h>

/* ---- lists ---- */

static void a_list_tells_of_collectors_and_learners_apart(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_add(r.fake, FAKE_COLLECTORS, "job-collector-x7b2q.default:22270");
    fake_operator_add(r.fake, FAKE_LEARNERS, "job-aggregator-aaaaa.default:80");
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
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
    operator_close(&r);
}

static void null_lists_dicts_and_other_orders_are_the_same_list(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_set_null_lists(r.fake, true);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count + r.answer->learner_count, 0);
    assert_true(r.answer->complete);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 5);
    for (int dicts = 0; dicts < 2; dicts++) {
        fake_operator_set_dicts(r.fake, dicts == 1);
        for (int i = 0; i < 3; i++) {
            expect(&r, operator_get(&r, LONG_MS), COORD_OK);
            assert_int_equal(r.answer->collector_count, 5);
            for (size_t n = 0; n < 5; n++) {
                assert_true(operator_lists(r.answer,
                                           fake_operator_id(r.fake, FAKE_COLLECTORS, n)));
            }
        }
    }
    operator_close(&r);
}

static void thousands_of_pods_are_fine_and_more_than_the_limit_are_not(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 4096);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 4096);
    fake_operator_scale(r.fake, FAKE_LEARNERS, 1);
    expect(&r, operator_get(&r, LONG_MS), COORD_ERR_TOO_BIG);
    assert_null(r.answer);
    assert_says(r.err.text, "more than 4096 entries");
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 19000);
    const int64_t before_ms = coord_sim_now_ms(r.sim);
    expect(&r, operator_get(&r, LONG_MS), COORD_ERR_TOO_BIG); /* by its bytes */
    assert_true(coord_sim_now_ms(r.sim) - before_ms < 1000);  /* it will not pass */
    operator_close(&r);
}

/* ---- waiting for what passes ---- */

static void a_pod_that_is_not_known_yet_and_failures_of_the_server_pass(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_NOT_YET, 3);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_ERROR, 1);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_BAD_GATEWAY, 1);
    fake_operator_fail(r.fake, FAKE_GET, FAKE_BROKEN, 1);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 2);
    assert_int_equal(operator_requests(&r, FAKE_GET), 7);
    operator_close(&r);
}

static void what_does_not_pass_in_time_is_told_with_its_cause(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_set_known(r.fake, false);
    int64_t before_ms = coord_sim_now_ms(r.sim);
    expect(&r, operator_get(&r, 8000), COORD_ERR_NOT_FOUND);
    assert_true(coord_sim_now_ms(r.sim) - before_ms <= 8000);
    assert_int_equal(r.err.http_status, 404);
    assert_says(r.err.text, r.address);
    assert_says(r.err.cause, "GET /v1alpha1/replicas");
    assert_says(r.err.cause, "pod: default/job-coordinator not exists in cache");
    assert_int_equal(operator_requests(&r, FAKE_GET),
                     5); /* after 0, 0.5, 1.5, 3.5, 7.5 s */

    fake_operator_set_listening(r.fake, false); /* not the leader */
    before_ms = coord_sim_now_ms(r.sim);
    expect(&r, operator_get(&r, 8000), COORD_ERR_LOST);
    assert_true(coord_sim_now_ms(r.sim) - before_ms <= 8000);
    assert_says(r.err.cause, "connection refused");
    operator_close(&r);
}

static void a_silent_server_costs_no_more_than_the_time_given(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_set_delay(r.fake, 3600 * 1000);
    int64_t before_ms = coord_sim_now_ms(r.sim);
    expect(&r, operator_get(&r, 25000), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_now_ms(r.sim) - before_ms, 25000);
    assert_int_equal(operator_requests(&r, FAKE_GET), 3); /* ten seconds each */
    fake_operator_set_delay(r.fake, 4000);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK); /* slow is not dead */

    assert_int_equal(coord_sim_block(r.sim, "coordinator", "operator", true, NULL),
                     COORD_OK);
    coord_operator_server_destroy(r.server);
    operator_create(&r); /* whose connection is not made yet */
    before_ms = coord_sim_now_ms(r.sim);
    expect(&r, operator_get(&r, 3200), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_sim_now_ms(r.sim) - before_ms, 3000); /* to connect */
    operator_close(&r);
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
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 2);
    for (size_t i = 0; i < sizeof GARBAGE / sizeof GARBAGE[0]; i++) {
        fake_operator_set_garbage(r.fake, GARBAGE[i]);
        fake_operator_fail(r.fake, FAKE_GET, FAKE_GARBAGE, 1);
        const coord_status rc = operator_get(&r, LONG_MS);
        if (rc != COORD_ERR_PROTOCOL || r.answer != NULL) {
            fail_msg("garbage %zu: %d: %s", i, (int)rc, r.err.text);
        }
        assert_says(r.err.text, "GET /v1alpha1/replicas");
        assert_says(r.err.text, "expected");
    }
    operator_close(&r);
}

static void an_entry_of_garbage_is_skipped_and_the_answer_is_not_complete(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_set_garbage(
        r.fake, "{\"success\":true,\"data\":{\"collectors\":[\"a.default:1\",7,"
                "\"b.default:99999\",\"a.default:1\"],\"learners\":null}}");
    fake_operator_fail(r.fake, FAKE_GET, FAKE_GARBAGE, 1);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->collector_count, 1);
    assert_int_equal(r.answer->skipped, 3);
    assert_false(r.answer->complete);
    assert_says(r.answer->skipped_text, "data.collectors: 7: expected a string");
    operator_close(&r);
}

/* ---- v2alpha1, and finding out ---- */

static void nodes_come_by_rank_and_some_have_no_address_yet(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V2);
    fake_operator_add(r.fake, FAKE_NODES, "10.1.0.1:22270");
    fake_operator_add(r.fake, FAKE_NODES, "");
    fake_operator_add(r.fake, FAKE_NODES, "fd00::3:22270");
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
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
    operator_close(&r);
}

static void no_node_with_an_address_is_an_incomplete_answer(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V2);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK); /* null: the job restarts */
    assert_int_equal(r.answer->node_count, 0);
    assert_false(r.answer->complete);
    operator_close(&r);
}

static void nodes_are_added_and_taken_away_but_not_replaced(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V2);
    fake_operator_scale(r.fake, FAKE_NODES, 2);
    expect(&r, operator_post(&r, 0, 0, 3), COORD_OK);
    assert_string_equal(fake_operator_body(r.fake, FAKE_POST), "{\"replicas\": 3}");
    assert_int_equal(fake_operator_count(r.fake, FAKE_NODES), 5);
    assert_int_equal(r.answer->node_count, 0);
    expect(&r, operator_delete(&r, 0, 0, 4), COORD_OK);
    assert_int_equal(fake_operator_count(r.fake, FAKE_NODES), 1);
    const char *names[] = {"10.1.0.1:22270"};
    expect(&r, operator_report(&r, names, 1), COORD_ERR_UNSUPPORTED);
    assert_says(r.err.text, "v2alpha1");
    expect(&r, operator_post(&r, 1, 0, 0), COORD_ERR_UNSUPPORTED);
    assert_says(r.err.text, "knows nodes");
    operator_close(&r);
}

static void a_lost_answer_of_v2_is_confirmed_by_the_list_or_stays_unknown(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V2);
    fake_operator_scale(r.fake, FAKE_NODES, 2);
    fake_operator_set_lag(r.fake, 20000);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_DONE_BROKEN, 1);
    expect(&r, operator_post(&r, 0, 0, 2), COORD_OK);
    assert_true(r.answer->inferred);
    fake_operator_fail(r.fake, FAKE_POST, FAKE_BROKEN, 1);
    expect(&r, operator_post(&r, 0, 0, 2), COORD_ERR_TIMEOUT);
    assert_int_equal(operator_requests(&r, FAKE_POST), 2);
    assert_int_equal(fake_operator_created(r.fake), 2);
    operator_close(&r);
}

static void the_api_is_found_out_and_found_out_anew_after_a_change(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 1);
    fake_operator_scale(r.fake, FAKE_NODES, 1);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_string_equal(r.answer->api_version, "v1alpha1");
    fake_operator_set_api(r.fake, FAKE_V2);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_string_equal(r.answer->api_version, "v2alpha1");
    fake_operator_set_api(r.fake, FAKE_V1);
    expect(&r, operator_post(&r, 1, 0, 0), COORD_OK);
    assert_string_equal(r.answer->api_version, "v1alpha1");
    operator_close(&r);
}

static void a_server_of_the_other_api_or_of_none_is_named(void **state)
{
    (void)state;
    operator_rig r;
    operator_open_at(&r, &(fake_operator_spec){.api = FAKE_V2});
    r.options.api_version = "/v1alpha1/";
    operator_create(&r);
    expect(&r, operator_get(&r, LONG_MS), COORD_ERR_PROTOCOL);
    assert_says(r.err.text, "does not speak v1alpha1");
    coord_operator_server_destroy(r.server);
    r.options.api_version = NULL;
    r.options.job_id = NULL;
    operator_create(&r);
    expect(&r, operator_get(&r, LONG_MS), COORD_ERR_PROTOCOL);
    assert_says(r.err.text, "job_id (DI_JOB_ID) is needed");
    coord_operator_server_destroy(r.server);
    char other[96];
    (void)snprintf(other, sizeof other, "http://%s/some//where/", r.address);
    r.options.system_addr = other;
    r.options.job_id = "default.job";
    operator_create(&r);
    expect(&r, operator_get(&r, LONG_MS), COORD_ERR_PROTOCOL);
    assert_says(r.err.text, "/some/where: it does not speak v1alpha1 or v2alpha1");
    operator_close(&r);
}

/* ---- the environment and the options ---- */

static void the_environment_fills_in_what_the_options_leave_out(void **state)
{
    (void)state;
    static const char *const PAIRS[][2] = {{"KUBERNETES_POD_NAMESPACE", "default"},
                                           {"KUBERNETES_POD_NAME", "job-coordinator"},
                                           {"KUBERNETES_SERVER_API_VERSION", "/v1alpha1"},
                                           {"DI_SERVER_URL", "http://nowhere:1"}};
    operator_rig r;
    operator_open_at(&r, NULL);
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
    operator_create(&r);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_string_equal(r.answer->api_version, "v1alpha1");
    operator_close(&r);
}

/* Its operator sets DI_JOB_ID to "default/job", its server's paths want "default.job". */
static void a_job_is_named_as_its_pods_are_told(void **state)
{
    (void)state;
    operator_rig r;
    operator_open_at(&r, &(fake_operator_spec){.api = FAKE_V2});
    coord_operator_server_options_init(&r.options, sizeof r.options);
    r.options.loop = r.near;
    assert_int_equal(coord_sim_set_env(r.sim, "DI_JOB_ID", "default/job", NULL),
                     COORD_OK);
    assert_int_equal(coord_sim_set_env(r.sim, "DI_SERVER_URL", r.address, NULL),
                     COORD_OK);
    fake_operator_add(r.fake, FAKE_NODES, "10.0.0.1:22270");
    operator_create(&r);
    expect(&r, operator_get(&r, LONG_MS), COORD_OK);
    assert_int_equal(r.answer->node_count, 1);
    operator_close(&r);
}

static void options_that_make_no_sense_are_named(void **state)
{
    (void)state;
    operator_rig r;
    operator_open_at(&r, NULL);
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
    BAD(job_id, "a/b/c", COORD_ERR_ARG, "job_id must be");
    BAD(job_id, "/a", COORD_ERR_ARG, "job_id must be");
    BAD(request_timeout_ms, 0, COORD_ERR_ARG, "request_timeout_ms");
    BAD(max_replicas, 0, COORD_ERR_ARG, "max_replicas");
    assert_null(none);
    operator_close(&r);
}

static void requests_that_make_no_sense_are_not_sent(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    coord_operator_request request = operator_request_of(0, 0, 0);
    expect(&r, operator_post(&r, 0, 0, 0), COORD_ERR_ARG);
    expect(&r, operator_post(&r, -1, 0, 0), COORD_ERR_ARG);
    expect(&r, operator_post(&r, 10001, 0, 0), COORD_ERR_ARG);
    request = operator_request_of(1, 0, 0);
    request.collector_cpus = "";
    expect(&r, coord_operator_server_post(r.server, &request, LONG_MS, &r.answer, &r.err),
           COORD_ERR_ARG);
    assert_says(r.err.text, "collector_cpus");
    const char *names[] = {"fine", "not fine"};
    expect(&r, operator_report(&r, names, 2), COORD_ERR_ARG);
    assert_says(r.err.text, "not fine");
    expect(&r, operator_report(&r, names, 0), COORD_ERR_ARG);
    expect(&r, operator_post(&r, 0, 0, 1), COORD_ERR_UNSUPPORTED);
    assert_int_equal(
        operator_requests(&r, FAKE_POST) + operator_requests(&r, FAKE_FAILED), 0);
    operator_close(&r);
}

typedef struct errand {
    coordi_job job;
    operator_rig *r;
    coord_status status;
} errand;

static void run_errand(coordi_job *job)
{
    errand *e = COORDI_ITEM(job, errand, job);
    e->status = operator_get(e->r, LONG_MS);
}

static void a_call_on_the_loop_thread_is_refused(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    errand e = {.job.run = run_errand, .r = &r};
    coordi_post(r.near, &e.job);
    assert_int_equal(coord_sim_run_for(r.sim, 10, NULL), COORD_OK);
    assert_int_equal(e.status, COORD_ERR_STATE);
    operator_close(&r);
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

static coordi_operator *open_inside(operator_rig *r)
{
    coordi_operator_settings settings;
    coordi_operator *op = NULL;
    const coordi_log log = {0};
    operator_open_at(r, NULL);
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
    const coord_operator_request request = operator_request_of(1, 0, 0);
    const coordi_operator_spec spec = {
        .kind = kind, .request = &request, .wait_ms = wait_ms, .done = on_done, .arg = n};
    assert_int_equal(coordi_operator_start(op, &spec, ret, NULL), COORD_OK);
    assert_int_equal(n->times, 0);
}

static void run_for(operator_rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

static void polls_go_on_beside_changes_that_stand_in_line(void **state)
{
    (void)state;
    operator_rig r;
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
    operator_close(&r);
}

static void without_retry_a_failure_is_told_at_once(void **state)
{
    (void)state;
    operator_rig r;
    coordi_operator *op = open_inside(&r);
    note n = {0};
    fake_operator_set_listening(r.fake, false);
    start(op, COORDI_OPERATOR_GET, 30000, &n, NULL);
    run_for(&r, 500);
    assert_int_equal(n.status, COORD_ERR_LOST);
    coordi_operator_destroy(op);
    operator_close(&r);
}

static void a_call_that_is_cancelled_or_whose_client_goes_is_not_told(void **state)
{
    (void)state;
    operator_rig r;
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
    operator_close(&r);
}

static void call_in_thread(void *user)
{
    operator_rig *r = user;
    expect(r, operator_get(r, LONG_MS), COORD_ERR_CLOSED);
}

static void destroy_ends_calls_that_wait(void **state)
{
    (void)state;
    operator_rig r;
    operator_open(&r, FAKE_V1);
    fake_operator_set_delay(r.fake, 3600 * 1000);
    coord_sim_thread *thread;
    assert_int_equal(coord_sim_thread_start(r.sim, call_in_thread, &r, &thread, NULL),
                     COORD_OK);
    run_for(&r, 1000);
    coord_operator_server_destroy(r.server);
    r.server = NULL;
    assert_int_equal(coord_sim_thread_join(thread, 1000, NULL), COORD_OK);
    operator_close(&r);
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
        cmocka_unit_test(nodes_come_by_rank_and_some_have_no_address_yet),
        cmocka_unit_test(no_node_with_an_address_is_an_incomplete_answer),
        cmocka_unit_test(nodes_are_added_and_taken_away_but_not_replaced),
        cmocka_unit_test(a_lost_answer_of_v2_is_confirmed_by_the_list_or_stays_unknown),
        cmocka_unit_test(the_api_is_found_out_and_found_out_anew_after_a_change),
        cmocka_unit_test(a_server_of_the_other_api_or_of_none_is_named),
        cmocka_unit_test(the_environment_fills_in_what_the_options_leave_out),
        cmocka_unit_test(a_job_is_named_as_its_pods_are_told),
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
