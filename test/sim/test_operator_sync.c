/* A coordinator that follows an operator server: who is listed belongs to it. */
#include "support/pods.h"

#include <stdio.h>

#define TWO_AND_ONE                                                                      \
    "\"init_replicas_request\": {\"collectors\": {\"replicas\": 2}, "                    \
    "\"learners\": {\"replicas\": 1}}, "

static pods p;

static void open_with(int api, unsigned collectors, unsigned learners)
{
    pods_open(&p, 1, api);
    for (unsigned n = 0; n < collectors + learners; n++) {
        (void)pods_worker(&p, n < collectors ? COORD_COLLECTOR : COORD_LEARNER, n);
    }
}

static void start_asks_for_pods_and_waits_for_them(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2, 1);
    pods_begin(&p, TWO_AND_ONE, "");
    assert_int_equal(pods_ready(&p), 3);
    assert_int_equal(fake_operator_created(p.fake), 3);
    assert_int_equal(fake_operator_requests(p.fake, FAKE_POST), 1);
    assert_true(cluster_await(&p.k, "increase", "collector", 2, 1000));
    assert_true(cluster_await(&p.k, "increase", "learner", 1, 1000));
    cluster_post(&p.k, COORD_COLLECTOR, "a");
    assert_true(cluster_await(&p.k, "finish", "a", 1, 60000));
    cluster_check(&p.k);
    assert_true(pods_says(&p, "\"state\": \"following\", \"outage_ms\": 0"));
    assert_true(pods_says(&p, "\"collectors\": 2, \"learners\": 1, \"pending\": 0"));
    assert_true(pods_says(&p, "\"origin\": \"operator_server\""));
    pods_close(&p);
}

static void pods_that_come_are_taken_and_those_that_go_are_let_go_of(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2, 0);
    pods_begin(&p, "", "");
    assert_int_equal(pods_ready(&p), 0);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 2);
    assert_true(cluster_await(&p.k, "increase", "collector", 2, 2000));
    const char *id = fake_operator_id(p.fake, FAKE_COLLECTORS, 1);
    fake_operator_remove(p.fake, id);
    int64_t since = coord_sim_now_ms(p.k.sim);
    assert_true(cluster_await(&p.k, "decrease", "collector", 1, 5000));
    assert_in_range(coord_sim_now_ms(p.k.sim) - since, 900, 2200); /* two lists */
    cluster_run(&p.k, 1000);
    assert_string_equal(cluster_worker_state(&p.k, id), "");
    assert_int_equal(pods_ready(&p), 1);
    assert_int_equal(fake_operator_requests(p.fake, FAKE_POST), 0);
    cluster_check(&p.k);
    pods_close(&p);
}

static void one_list_without_a_worker_is_no_end_of_it(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1, 0);
    pods_begin(&p, "", "");
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    assert_true(pods_await_ready(&p, 1, 5000));
    char id[64];
    (void)snprintf(id, sizeof id, "%s", fake_operator_id(p.fake, FAKE_COLLECTORS, 0));
    for (int i = 0; i < 5; i++) { /* the server's cache flickers */
        size_t asked = fake_operator_requests(p.fake, FAKE_GET);
        fake_operator_remove(p.fake, id);
        while (fake_operator_requests(p.fake, FAKE_GET) == asked) {
            cluster_run(&p.k, 10);
        }
        fake_operator_add(p.fake, FAKE_COLLECTORS, id);
        cluster_run(&p.k, 2500);
    }
    assert_int_equal(cluster_count(&p.k, "decrease", NULL), 0);
    assert_string_equal(cluster_worker_state(&p.k, id), "free");
    pods_close(&p);
}

static void a_list_that_is_not_complete_only_adds(void **state)
{
    (void)state;
    open_with(FAKE_V1, 2, 0);
    pods_begin(&p, "", "");
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    assert_true(pods_await_ready(&p, 1, 5000));
    fake_operator_add(p.fake, FAKE_COLLECTORS, "job-collector-x.ns:port");
    fake_operator_remove(p.fake, p.k.workers[0].id);
    fake_operator_add(p.fake, FAKE_COLLECTORS, p.k.workers[1].id);
    assert_true(pods_await_ready(&p, 2, 5000));
    cluster_run(&p.k, 10000);
    assert_int_equal(pods_ready(&p), 2);
    assert_true(pods_says(&p, "\"complete\": false, \"skipped\": 1"));
    fake_operator_remove(p.fake, "job-collector-x.ns:port");
    assert_true(cluster_await(&p.k, "decrease", "collector", 1, 5000));
    assert_int_equal(pods_ready(&p), 1);
    pods_close(&p);
}

static void a_vanished_worker_is_drained_or_dropped(void **state)
{
    (void)state;
    for (int drains = 0; drains <= 1; drains++) {
        open_with(FAKE_V1, 2, 0);
        pods_begin(&p, drains ? "\"removal\": \"drain\", " : "", "\"max_reassign\": 0, ");
        fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
        assert_true(pods_await_ready(&p, 1, 5000));
        p.k.workers[0].work_ms = 5000;
        cluster_post(&p.k, COORD_COLLECTOR, "a");
        cluster_run(&p.k, 1000);
        fake_operator_remove(p.fake, p.k.workers[0].id);
        fake_operator_add(p.fake, FAKE_COLLECTORS, p.k.workers[1].id);
        assert_true(cluster_await(&p.k, "finish", "a", 1, 60000));
        assert_int_equal(cluster_count(&p.k, "restart", "a"), drains ? 0 : 1);
        assert_int_equal(cluster_count(&p.k, "decrease", NULL), 1);
        cluster_run(&p.k, 1000);
        assert_string_equal(cluster_worker_state(&p.k, p.k.workers[0].id), "");
        cluster_check(&p.k);
        pods_close(&p);
    }
}

static void what_the_host_has_removed_stays_away_until_it_was_not_listed(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1, 0);
    pods_begin(&p, "", "");
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    assert_true(pods_await_ready(&p, 1, 5000));
    const char *id = p.k.workers[0].id;
    assert_int_equal(comm_coordinator_remove_worker(p.k.c, COORD_COLLECTOR, id,
                                                    COMM_COORDINATOR_DRAIN, NULL),
                     COORD_OK);
    cluster_run(&p.k, 10000);
    assert_string_equal(cluster_worker_state(&p.k, id), "");
    fake_operator_remove(p.fake, id);
    cluster_run(&p.k, 4000);
    fake_operator_add(p.fake, FAKE_COLLECTORS, id);
    assert_true(pods_await_ready(&p, 1, 5000));
    pods_close(&p);
}

/* Whoever had an id first keeps it. */
static void the_servers_list_takes_nobody_from_the_host(void **state)
{
    (void)state;
    open_with(FAKE_V1, 1, 0);
    const cluster_worker *w = &p.k.workers[0];
    cluster_create(&p.k, pods_config(&p, "", ""));
    assert_int_equal(comm_coordinator_add_worker(p.k.c, COORD_COLLECTOR, w->id, w->host,
                                                 (uint16_t)w->port, NULL),
                     COORD_OK);
    pods_begin(&p, "", "");
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    cluster_run(&p.k, 5000);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 0);
    cluster_run(&p.k, 5000);
    assert_string_equal(cluster_worker_state(&p.k, w->id), "free");
    assert_true(pods_says(&p, "\"origin\": \"host\""));
    pods_close(&p);
}

static void one_get_follows_the_other_at_the_pace_that_is_wanted(void **state)
{
    (void)state;
    open_with(FAKE_V1, 0, 0);
    pods_begin(&p, "\"poll_s\": 0.5, ", "");
    size_t before = fake_operator_requests(p.fake, FAKE_GET);
    cluster_run(&p.k, 20000);
    assert_in_range(fake_operator_requests(p.fake, FAKE_GET) - before, 39, 41);

    fake_operator_set_delay(p.fake, 4000); /* slow, and yet one at a time */
    cluster_run(&p.k, 4000);
    before = fake_operator_requests(p.fake, FAKE_GET);
    cluster_run(&p.k, 40000);
    assert_in_range(fake_operator_requests(p.fake, FAKE_GET) - before, 9, 10);
    assert_true(pods_says(&p, "\"state\": \"following\""));
    pods_close(&p);
}

/* ---- v2alpha1 ---- */

static void set_env(const char *name, const char *value)
{
    assert_int_equal(coord_sim_set_env(p.k.sim, name, value, NULL), COORD_OK);
}

static void nodes_are_learners_first_and_we_are_none_of_them(void **state)
{
    (void)state;
    open_with(FAKE_V2, 0, 0);
    (void)pods_worker(&p, COORD_LEARNER, 1); /* 0 is ours */
    (void)pods_worker(&p, COORD_COLLECTOR, 2);
    (void)pods_worker(&p, COORD_COLLECTOR, 3);
    set_env("DI_RANK", "0");
    fake_operator_scale(p.fake, FAKE_NODES, 1);
    pods_begin(&p, TWO_AND_ONE, "");
    assert_int_equal(fake_operator_count(p.fake, FAKE_NODES), 4);
    assert_string_equal(fake_operator_body(p.fake, FAKE_POST), "{\"replicas\": 3}");
    assert_int_equal(pods_ready(&p), 3);
    assert_true(pods_says(&p, "\"api_version\": \"v2alpha1\""));
    assert_true(cluster_await(&p.k, "increase", "collector", 2, 1000));
    assert_int_equal(cluster_count(&p.k, "increase", "learner"), 1);
    cluster_run(&p.k, 5000);
    assert_string_equal(
        cluster_worker_state(&p.k, fake_operator_id(p.fake, FAKE_NODES, 0)), "");
    fake_operator_scale(p.fake, FAKE_NODES, 3);
    assert_true(cluster_await(&p.k, "decrease", "collector", 1, 5000));
    pods_close(&p);
}

static void roles_come_from_the_configuration_or_from_names(void **state)
{
    static const struct {
        const char *ask;
        const char *nodes;
    } CASES[] = {
        {"\"roles\": [\"none\", \"collector\", \"learner\", \"collector\"], ", NULL},
        {"", "job-serial-0.job.ns,job-collector-0.job.ns,job-learner-0.job.ns,"
             "job-collector-1.job.ns"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        open_with(FAKE_V2, 0, 0);
        (void)pods_worker(&p, COORD_COLLECTOR, 1);
        (void)pods_worker(&p, COORD_LEARNER, 2);
        (void)pods_worker(&p, COORD_COLLECTOR, 3);
        fake_operator_scale(p.fake, FAKE_NODES, 4);
        set_env("DI_NODES", CASES[i].nodes);
        pods_begin(&p, CASES[i].ask, "");
        assert_true(cluster_await(&p.k, "increase", "collector", 2, 5000));
        assert_int_equal(cluster_count(&p.k, "increase", "learner"), 1);
        pods_close(&p);
    }
}

/* ---- what is wrong is told at create ---- */

static coord_status try_create(const char *inside, coord_error *err)
{
    char config[512];
    (void)snprintf(config, sizeof config, "\"operator_server\": {%s}, ", inside);
    return cluster_try_create(&p.k, config, err);
}

static void wrong_settings_are_told_at_create(void **state)
{
    static const struct {
        const char *inside;
        const char *words;
    } WRONG[] = {
        {"\"poll_s\": 1", "system_addr is needed, or KUBERNETES_SERVER_URL"},
        {"\"system_addr\": \"h:0\"", "system_addr must be"},
        {"\"system_addr\": \"h\"", "v1alpha1 needs namespace (KUBERNETES_POD_NAMESPACE)"},
        {"\"system_addr\": \"h\", \"api_version\": \"v3\"", "api_version must be"},
        {"\"system_addr\": \"h\", \"job_id\": \"a b\"", "job_id must be"},
    };
    coord_error err;
    (void)state;
    open_with(FAKE_V1, 0, 0);
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        assert_int_equal(try_create(WRONG[i].inside, &err), COORD_ERR_CONFIG);
        assert_memory_equal(err.text, "operator_server: ", 17);
        assert_says(err.text, WRONG[i].words);
    }
    assert_int_equal(
        try_create("\"system_addr\": \"https://h\", \"job_id\": \"a.b\"", &err),
        COORD_ERR_UNSUPPORTED);
    assert_memory_equal(err.text, "operator_server: https://h:443", 30);

    set_env("DI_RANK", "first");
    assert_int_equal(try_create("\"system_addr\": \"h\", \"job_id\": \"a.b\"", &err),
                     COORD_ERR_CONFIG);
    assert_says(err.text, "DI_RANK must be a number from 0 on, got \"first\"");
    set_env("DI_RANK", NULL);
    set_env("KUBERNETES_SERVER_URL", "h:1");
    set_env("KUBERNETES_POD_NAMESPACE", "ns");
    set_env("KUBERNETES_POD_NAME", "job-coordinator");
    assert_int_equal(try_create("\"poll_s\": 1", &err), COORD_OK);
    assert_true(pods_says(&p, "\"operator_server\": {\"address\": \"http://h:1\", "
                              "\"api_version\": null, \"state\": \"stopped\""));
    pods_close(&p);
}

/* ---- beside discovery ---- */

static const char *discovered; /* line; NULL: nobody */

static coord_status discover(cluster *k, coord_out *out)
{
    (void)k;
    return discovered == NULL ? COORD_OK : coord_out_line(out, NULL, "%s", discovered);
}

/* It belongs here for as long as one of them lists it. */
static void who_leaves_one_of_two_lists_stays(void **state)
{
    static char line[600];
    (void)state;
    open_with(FAKE_V1, 1, 0);
    const cluster_worker *w = &p.k.workers[0];
    (void)snprintf(line, sizeof line, "collector %s:%d %s", w->host, w->port, w->id);
    discovered = NULL;
    p.k.discover = discover;
    pods_begin(&p, "", "\"discovery\": {\"interval_s\": 1}, ");
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    assert_true(pods_await_ready(&p, 1, 5000));
    discovered = line;
    cluster_run(&p.k, 3000);
    assert_true(pods_says(&p, "\"origin\": \"operator_server\""));
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 0);
    assert_true(cluster_await(&p.k, "decrease", "collector", 1, 5000));
    assert_true(pods_await_ready(&p, 1, 5000));
    assert_true(pods_says(&p, "\"origin\": \"discovery\""));
    assert_true(cluster_await(&p.k, "increase", "collector", 2, 1000));
    discovered = NULL;
    assert_true(cluster_await(&p.k, "decrease", "collector", 2, 5000));
    pods_close(&p);
}

/* As many as it may be asked for. */
static void long_lists_are_taken(void **state)
{
    (void)state;
    open_with(FAKE_V1, 0, 0);
    pods_begin(&p, "", "");
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 4500);
    assert_true(pods_await(&p, "\"collectors\": 4500", 5000));
    assert_true(pods_says(&p, "\"state\": \"following\""));
    pods_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_asks_for_pods_and_waits_for_them),
        cmocka_unit_test(pods_that_come_are_taken_and_those_that_go_are_let_go_of),
        cmocka_unit_test(one_list_without_a_worker_is_no_end_of_it),
        cmocka_unit_test(a_list_that_is_not_complete_only_adds),
        cmocka_unit_test(a_vanished_worker_is_drained_or_dropped),
        cmocka_unit_test(what_the_host_has_removed_stays_away_until_it_was_not_listed),
        cmocka_unit_test(the_servers_list_takes_nobody_from_the_host),
        cmocka_unit_test(one_get_follows_the_other_at_the_pace_that_is_wanted),
        cmocka_unit_test(nodes_are_learners_first_and_we_are_none_of_them),
        cmocka_unit_test(roles_come_from_the_configuration_or_from_names),
        cmocka_unit_test(wrong_settings_are_told_at_create),
        cmocka_unit_test(who_leaves_one_of_two_lists_stays),
        cmocka_unit_test(long_lists_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
