/* An operator server that is gone, slow or out of its mind, and a coordinator that is
 * closed, crashes or has no memory left while it follows one. */
#include "support/heap.h"
#include "support/pods.h"
#include "support/sanitized.h"

#include <stdio.h>
#include <stdlib.h>

#define ASK                                                                              \
    "\"init_replicas_request\": {\"collectors\": {\"replicas\": 2}, "                    \
    "\"learners\": {\"replicas\": 1}}, "

static const uint64_t SEEDS = SANITIZED(20, 4, 2);
static const uint64_t STRIDE = SANITIZED(3, 31, 97);

static pods p;
static int warnings; /* log lines of an outage */
static int lines;

static void open_seed(uint64_t seed, int api)
{
    pods_open(&p, seed, api);
    (void)pods_worker(&p, COORD_COLLECTOR, 0);
    (void)pods_worker(&p, COORD_COLLECTOR, 1);
    (void)pods_worker(&p, COORD_LEARNER, 2);
}

static void open_started(int api)
{
    open_seed(1, api);
    pods_begin(&p, ASK, "");
    assert_int_equal(pods_ready(&p), 3);
}

static void note_line(coord_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    warnings += strstr(line, "operator server lost") != NULL ||
                strstr(line, "operator server found") != NULL;
    lines += strstr(line, "operator") != NULL && level <= COORD_LOG_INFO;
}

/* ---- outages ---- */

static void a_dead_server_costs_nobody_its_work(void **state)
{
    (void)state;
    open_seed(1, FAKE_V1);
    p.k.log = note_line;
    pods_begin(&p, ASK, "");
    warnings = 0;
    lines = 0;
    fake_operator_set_listening(p.fake, false);
    assert_true(pods_await(&p, "\"state\": \"unreachable\"", 3000));
    p.k.workers[0].work_ms = 10000;
    p.k.workers[1].work_ms = 10000;
    cluster_post(&p.k, COORD_COLLECTOR, "a");
    cluster_run(&p.k, 300000);
    assert_int_equal(cluster_count(&p.k, "finish", "a"), 1);
    assert_int_equal(cluster_count(&p.k, "decrease", NULL), 0);
    assert_int_equal(warnings, 1);
    assert_int_equal(lines, 1);
    assert_false(pods_says(&p, "\"error\": null, \"last_list_ms\""));
    fake_operator_set_listening(p.fake, true);
    assert_true(pods_await(&p, "\"state\": \"following\"", 11000));
    assert_int_equal(warnings, 2);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    assert_true(cluster_await(&p.k, "decrease", "collector", 1, 5000));
    pods_close(&p);
}

static void wrong_answers_are_an_outage_and_take_nobody_away(void **state)
{
    static const char *const WORDS[] = {
        "",
        "<html>",
        "null",
        "{\"success\":true,\"code\":0,\"message\":\"\",\"data\":null}",
        "{\"success\":true,\"code\":0,\"message\":\"\",\"data\":{\"namespace\":\"other\","
        "\"coordinator\":\"job-coordinator\",\"collectors\":[],\"learners\":[]}}",
        "{\"success\":false,\"code\":1,\"message\":\"tired\",\"data\":null}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        open_started(FAKE_V1);
        fake_operator_set_garbage(p.fake, WORDS[i]);
        fake_operator_fail(p.fake, FAKE_GET, FAKE_GARBAGE, 1000);
        size_t asked = fake_operator_requests(p.fake, FAKE_GET);
        cluster_run(&p.k, 30000);
        asked = fake_operator_requests(p.fake, FAKE_GET) - asked;
        assert_in_range(asked, 4, 7); /* ever less often */
        assert_int_equal(pods_ready(&p), 3);
        assert_true(pods_says(&p, "\"state\": \"unreachable\""));
        fake_operator_mend(p.fake);
        assert_true(pods_await(&p, "\"state\": \"following\"", 11000));
        pods_close(&p);
    }
}

static void a_server_that_never_answers_is_survived(void **state)
{
    (void)state;
    open_started(FAKE_V1);
    fake_operator_fail(p.fake, FAKE_GET, FAKE_SILENT, 1000);
    size_t asked = fake_operator_requests(p.fake, FAKE_GET);
    cluster_run(&p.k, 100000);
    asked = fake_operator_requests(p.fake, FAKE_GET) - asked;
    assert_in_range(asked, 5, 7); /* with pauses, though each takes long */
    assert_true(pods_says(&p, "\"state\": \"unreachable\""));
    fake_operator_mend(p.fake);
    assert_true(pods_await(&p, "\"state\": \"following\"", 120000));
    assert_int_equal(pods_ready(&p), 3);
    pods_close(&p);
}

/* It comes back as a newer one, whose nodes are the same pods. */
static void a_server_may_change_its_api(void **state)
{
    (void)state;
    open_started(FAKE_V1);
    fake_operator_set_api(p.fake, FAKE_V2);
    fake_operator_add(p.fake, FAKE_NODES, p.k.workers[2].id); /* the learner is first */
    fake_operator_add(p.fake, FAKE_NODES, p.k.workers[0].id);
    fake_operator_add(p.fake, FAKE_NODES, p.k.workers[1].id);
    assert_true(pods_await(&p, "\"api_version\": \"v2alpha1\"", 5000));
    cluster_run(&p.k, 10000);
    assert_int_equal(pods_ready(&p), 3);
    assert_int_equal(cluster_count(&p.k, "decrease", NULL), 0);
    pods_close(&p);
}

/* ---- why ---- */

static void expect_why(const char *words)
{
    char *text = NULL;
    assert_int_equal(comm_coordinator_why(p.k.c, "a", &text, NULL), COORD_OK);
    assert_says(text, words);
    coord_free(text);
}

static void why_names_the_server(void **state)
{
    (void)state;
    open_seed(1, FAKE_V1);
    pods_begin(&p, "", "");
    cluster_post(&p.k, COORD_COLLECTOR, "a");
    cluster_run(&p.k, 1000);
    expect_why(
        "\"code\": \"no_worker_configured\", \"seen\": \"no collector belongs here "
        "now: the configuration names none, and nobody else has brought one\"");
    fake_operator_set_listening(p.fake, false);
    cluster_run(&p.k, 3000);
    expect_why("\"code\": \"operator_unreachable\", \"seen\": \"operator server http://");
    pods_close(&p);

    open_seed(1, FAKE_V1);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 1);
    fake_operator_fail(p.fake, FAKE_POST, FAKE_ERROR, 100);
    pods_begin(&p, ASK "\"learner_target_num\": 0, ", "\"max_retry_second\": 10, ");
    p.k.workers[0].work_ms = 60000;
    cluster_post(&p.k, COORD_COLLECTOR, "b");
    cluster_post(&p.k, COORD_COLLECTOR, "a");
    cluster_run(&p.k, 1000);
    expect_why("\"code\": \"operator_demand_unmet\", \"seen\": \"the operator server at "
               "http://operator:");
    expect_why("lists 1 collectors, wanted are 2; creating more failed: failed to get "
               "DIJob: etcdserver: leader changed\"");
    pods_close(&p);
}

/* ---- ends ---- */

typedef struct awaited {
    fake_kind kind;
    size_t count;
} awaited;

static bool has_come(void *user)
{
    const awaited *a = user;
    return fake_operator_requests(p.fake, a->kind) >= a->count;
}

static void await_request(fake_kind kind)
{
    awaited a = {kind, fake_operator_requests(p.fake, kind) + 1};
    assert_int_equal(coord_sim_run_until(p.k.sim, 60000, has_come, &a, NULL), COORD_OK);
}

/* Whatever is under way. */
static void close_and_destroy_wait_for_no_server(void **state)
{
    static const fake_kind KINDS[] = {FAKE_GET, FAKE_POST, FAKE_FAILED};
    (void)state;
    for (int i = 0; i < 6; i++) {
        const fake_kind kind = KINDS[i / 2];
        open_seed(1, FAKE_V1);
        cluster_crash(&p.k, p.k.workers[1].id);
        fake_operator_fail(p.fake, kind, FAKE_SILENT, kind == FAKE_GET ? 0 : 1);
        pods_start(&p, kind == FAKE_POST ? ASK : "\"grace_s\": 3, ", "");
        if (kind != FAKE_POST) {
            assert_int_equal(pods_started(&p), COORD_OK);
            fake_operator_scale(p.fake, FAKE_COLLECTORS, 2);
            assert_true(pods_await_ready(&p, 1, 5000));
        }
        await_request(kind);
        int64_t since = coord_sim_now_ms(p.k.sim);
        if (i % 2 == 0) {
            assert_int_equal(cluster_close(&p.k, NULL), COORD_OK);
            assert_in_range(coord_sim_now_ms(p.k.sim) - since, 0, 1000);
        }
        comm_coordinator_destroy(p.k.c);
        p.k.c = NULL;
        p.k.closed = true;
        if (p.starter != NULL) {
            assert_int_equal(pods_started(&p), COORD_ERR_CLOSED);
        }
        size_t gets = fake_operator_requests(p.fake, FAKE_GET);
        cluster_run(&p.k, 60000);
        assert_in_range(fake_operator_requests(p.fake, FAKE_GET) - gets, 0, 1);
        pods_close(&p);
    }
}

static void start_works_after_starts_that_failed(void **state)
{
    (void)state;
    open_seed(1, FAKE_V1);
    fake_operator_set_listening(p.fake, false);
    for (int i = 0; i < 3; i++) {
        pods_start(&p, ASK, "\"max_retry_second\": 2, ");
        assert_int_equal(pods_started(&p), COORD_ERR_TIMEOUT);
    }
    size_t gets = fake_operator_requests(p.fake, FAKE_GET);
    fake_operator_set_listening(p.fake, true);
    cluster_run(&p.k, 10000); /* nobody asks any more */
    assert_int_equal(fake_operator_requests(p.fake, FAKE_GET), gets);
    comm_coordinator_destroy(p.k.c);
    p.k.c = NULL;
    pods_begin(&p, ASK, "");
    assert_int_equal(pods_ready(&p), 3);
    pods_close(&p);
}

static void nobody_is_asked_while_a_close_waits_for_callbacks(void **state)
{
    (void)state;
    open_started(FAKE_V1);
    p.k.callback_ms = 6000;
    cluster_post(&p.k, COORD_COLLECTOR, "a");
    cluster_run(&p.k, 3000);
    size_t asked = fake_operator_requests(p.fake, FAKE_GET);
    int64_t since = coord_sim_now_ms(p.k.sim);
    assert_int_equal(cluster_close(&p.k, NULL), COORD_OK);
    assert_true(coord_sim_now_ms(p.k.sim) - since > 5000);
    assert_in_range(fake_operator_requests(p.fake, FAKE_GET) - asked, 0, 1);
    pods_close(&p);
}

static void close_during_start_ends_it(void **state)
{
    (void)state;
    open_seed(1, FAKE_V1);
    fake_operator_set_delay(p.fake, 5000);
    pods_start(&p, ASK, "");
    cluster_run(&p.k, 7000);
    assert_int_equal(cluster_close(&p.k, NULL), COORD_OK);
    assert_int_equal(pods_started(&p), COORD_ERR_CLOSED);
    pods_close(&p);
}

/* ---- a restart from the ledger ---- */

#define LEDGER "\"ledger\": \"/ledger\", "

static void tasks_go_on_at_pods_across_a_crash(void **state)
{
    (void)state;
    for (int down = 0; down <= 1; down++) {
        open_seed(1, FAKE_V1);
        fake_operator_set_lag(p.fake, 1500);
        pods_begin(&p, ASK, LEDGER);
        for (int i = 0; i < 3; i++) {
            p.k.workers[i].work_ms = 3000;
        }
        cluster_post(&p.k, COORD_COLLECTOR, "a");
        cluster_run(&p.k, 4000);
        cluster_crash_coordinator(&p.k);
        fake_operator_set_listening(p.fake, down == 0);
        cluster_restart(&p.k, pods_config(&p, ASK, LEDGER));
        cluster_run(&p.k, 5000);
        fake_operator_set_listening(p.fake, true);
        assert_true(cluster_await(&p.k, "finish", "a", 1, 120000));
        assert_int_equal(cluster_count(&p.k, "restart", "a"), 0);
        cluster_run(&p.k, 20000);
        assert_int_equal(fake_operator_created(p.fake), 3);
        assert_int_equal(pods_ready(&p), 3);
        assert_false(pods_says(&p, "\"origin\": \"ledger\""));
        cluster_check(&p.k);
        pods_close(&p);
    }
}

/* It is replaced while nobody looks: its task moves. */
static void a_pod_that_goes_while_the_coordinator_is_down_is_let_go_of(void **state)
{
    (void)state;
    open_seed(1, FAKE_V1);
    pods_begin(&p, ASK, LEDGER);
    p.k.workers[0].stuck = true;
    p.k.workers[1].stuck = true;
    cluster_post(&p.k, COORD_COLLECTOR, "a");
    cluster_run(&p.k, 2000);
    char busy[64];
    (void)snprintf(busy, sizeof busy, "%s",
                   p.k.workers[p.k.workers[0].info[0] == '\0'].id);
    cluster_crash_coordinator(&p.k);
    fake_operator_remove(p.fake, busy);
    cluster_find(&p.k, busy)->stuck = false;
    cluster_crash(&p.k, busy);
    p.k.workers[0].stuck = false;
    p.k.workers[1].stuck = false;
    char left[128];
    (void)snprintf(left, sizeof left, "job-collector-late.ns:22270");
    fake_operator_add(p.fake, FAKE_COLLECTORS, left);
    (void)cluster_add(&p.k, COORD_COLLECTOR, left, "job-collector-late.ns", 22270);
    cluster_restart(&p.k, pods_config(&p, ASK, LEDGER));
    assert_true(cluster_await(&p.k, "finish", "a", 1, 120000));
    assert_true(cluster_await_worker(&p.k, busy, "", 60000));
    assert_int_equal(pods_ready(&p), 3);
    assert_int_equal(fake_operator_created(p.fake), 3);
    pods_close(&p);
}

/* ---- lack of memory, and chance ---- */

static bool live(uint64_t first, uint64_t count)
{
    open_seed(1, FAKE_V1);
    heap_fail(first, count);
    coord_status rc = cluster_try_create(
        &p.k, pods_config(&p, ASK "\"grace_s\": 600, ", "\"max_retry_second\": 15, "),
        NULL);
    if (rc == COORD_OK) {
        rc = comm_coordinator_start(p.k.c, NULL);
    }
    if (rc != COORD_OK && rc != COORD_ERR_NOMEM && rc != COORD_ERR_TIMEOUT) {
        fail_msg("start: %s", coord_status_str(rc));
    }
    cluster_run(&p.k, 3000);
    const bool hit = heap_mend();
    if (p.k.c != NULL && rc != COORD_OK) {
        rc = comm_coordinator_start(p.k.c, NULL);
    }
    if (p.k.c != NULL) {
        assert_int_equal(rc, COORD_OK);
        assert_true(pods_await_ready(&p, 3, 60000));
        assert_int_equal(fake_operator_created(p.fake), 3);
    }
    pods_close(&p);
    return hit;
}

/* The same with a pod that has to be replaced; memory is short from then on. */
static bool live_with_a_report(uint64_t first, uint64_t count)
{
    open_seed(1, FAKE_V1);
    (void)cluster_add(&p.k, COORD_COLLECTOR, "job-collector-bbbbd.ns:22270",
                      "job-collector-bbbbd.ns", 22270); /* comes for the second */
    cluster_crash(&p.k, p.k.workers[1].id);
    fake_operator_scale(p.fake, FAKE_COLLECTORS, 2);
    pods_begin(&p, "\"grace_s\": 5, ", "");
    assert_true(pods_await_ready(&p, 1, 4000));
    cluster_run(&p.k, 2500);
    heap_fail(first, count);
    cluster_run(&p.k, 6000);
    const bool hit = heap_mend();
    assert_true(pods_await_ready(&p, 2, 60000));
    assert_int_equal(fake_operator_created(p.fake), 1);
    pods_close(&p);
    return hit;
}

static void torture(bool (*live_once)(uint64_t first, uint64_t count))
{
    static const uint64_t BURSTS[] = {1, 3, 40};
    for (size_t i = 0; i < sizeof BURSTS / sizeof BURSTS[0]; i++) {
        uint64_t first = i;
        while (live_once(first, BURSTS[i])) {
            first += STRIDE * (i + 1);
        }
        assert_true(first > 100);
    }
}

static void every_lack_of_memory_is_borne(void **state)
{
    (void)state;
    torture(live);
}

static void a_report_bears_every_lack_of_memory(void **state)
{
    (void)state;
    torture(live_with_a_report);
}

/* Pods come and go, the server stumbles, and in the end those that are listed are those
 * that work. */
static void chance(uint64_t seed, int api)
{
    static const fake_fault FAULTS[] = {FAKE_NOT_YET,     FAKE_ERROR,  FAKE_BAD_GATEWAY,
                                        FAKE_DONE_SILENT, FAKE_SILENT, FAKE_DONE_BROKEN,
                                        FAKE_GARBAGE};
    const fake_list list = api == FAKE_V1 ? FAKE_COLLECTORS : FAKE_NODES;
    uint64_t dice = seed * 0x9e3779b97f4a7c15U + 1;
    pods_open(&p, seed, api);
    for (unsigned n = 0; n < 6; n++) {
        (void)pods_worker(&p, COORD_COLLECTOR, n);
    }
    fake_operator_set_lag(p.fake, (int64_t)(seed % 3) * 700);
    fake_operator_scale(p.fake, list, 6);
    pods_begin(&p, "\"collector_target_num\": 4, \"grace_s\": 600, ", "");
    for (int i = 0; i < 30; i++) {
        char task[16];
        dice = dice * 6364136223846793005U + 1442695040888963407U;
        const char *id = p.k.workers[(dice >> 33) % 6].id;
        fake_operator_remove(p.fake, id);
        if ((dice >> 40) % 2 == 0) {
            fake_operator_add(p.fake, list, id);
        }
        if ((dice >> 42) % 4 == 0) {
            fake_operator_fail(p.fake, FAKE_GET, FAULTS[(dice >> 45) % 7], 1);
        }
        (void)snprintf(task, sizeof task, "t%d", i);
        cluster_post(&p.k, COORD_COLLECTOR, task);
        cluster_run(&p.k, (int64_t)(dice >> 50) % 3000);
        cluster_check(&p.k);
    }
    fake_operator_mend(p.fake);
    fake_operator_remove(p.fake, p.k.workers[0].id);
    fake_operator_add(p.fake, list, p.k.workers[0].id);
    assert_true(cluster_await(&p.k, "finish", NULL, 30, 300000));
    cluster_run(&p.k, 30000);
    assert_int_equal(cluster_ends(&p.k, NULL), 30);
    assert_int_equal(pods_ready(&p), (int)fake_operator_count(p.fake, list));
    assert_int_equal(cluster_count(&p.k, "increase", NULL) -
                         cluster_count(&p.k, "decrease", NULL),
                     (int)fake_operator_count(p.fake, list));
    cluster_check(&p.k);
    pods_close(&p);
}

static void whatever_happens_who_is_listed_works_in_the_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        chance(seed, seed % 2 == 0 ? FAKE_V2 : FAKE_V1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_server_costs_nobody_its_work),
        cmocka_unit_test(wrong_answers_are_an_outage_and_take_nobody_away),
        cmocka_unit_test(a_server_that_never_answers_is_survived),
        cmocka_unit_test(a_server_may_change_its_api),
        cmocka_unit_test(why_names_the_server),
        cmocka_unit_test(close_and_destroy_wait_for_no_server),
        cmocka_unit_test(start_works_after_starts_that_failed),
        cmocka_unit_test(nobody_is_asked_while_a_close_waits_for_callbacks),
        cmocka_unit_test(close_during_start_ends_it),
        cmocka_unit_test(tasks_go_on_at_pods_across_a_crash),
        cmocka_unit_test(a_pod_that_goes_while_the_coordinator_is_down_is_let_go_of),
        cmocka_unit_test(every_lack_of_memory_is_borne),
        cmocka_unit_test(a_report_bears_every_lack_of_memory),
        cmocka_unit_test(whatever_happens_who_is_listed_works_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
