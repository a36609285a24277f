/* Whatever a task or a worker waits for, comm_coordinator_why() names it. */
#include "base/alloc.h"
#include "codec/json.h"
#include "coordinator/coordinator.h"
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t LONG_MS = 600000;
static const char IMPATIENT[] =
    "\"collector_task_timeout_s\": 2, \"request_retries\": 0, \"max_reassign\": 0,";

/* ---- reading answers ---- */

static coord_text get(coord_text object, const char *key)
{
    coord_text value;
    if (coordi_json_get(object, key, &value, NULL) != COORD_OK) {
        fail_msg("no %s in %.*s", key, (int)object.len, object.ptr);
    }
    return value;
}

/* The answer; static. */
static coord_text ask(cluster *k, const char *id)
{
    static char text[100 * 1024];
    char *answer = NULL;
    coord_error err = {0};
    if (comm_coordinator_why(k->c, id, &answer, &err) != COORD_OK) {
        fail_msg("%s: %s", id, err.text);
    }
    assert_int_equal(coordi_json_check(coord_text_of(answer), NULL), COORD_OK);
    assert_true(strlen(answer) < sizeof text);
    (void)snprintf(text, sizeof text, "%s", answer);
    coord_free(answer);
    return coord_text_of(text);
}

static bool is(coord_text object, const char *key, const char *word)
{
    return coordi_json_string_is(get(object, key), word);
}

static int64_t number(coord_text object, const char *key)
{
    int64_t value = -1;
    assert_true(coordi_json_int(get(object, key), &value));
    return value;
}

static bool has(coord_text text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

/* The codes in their order, "a b c"; static. Each cause has all that it must have. */
static const char *codes(coord_text answer)
{
    static char words[2048];
    char word[64];
    coord_text cause;
    size_t at = 0;
    words[0] = '\0';
    while (coordi_json_each(get(answer, "causes"), &at, &cause)) {
        assert_int_equal(coordi_json_string(get(cause, "code"), word, sizeof word),
                         COORD_OK);
        assert_true(get(cause, "seen").len > 2);
        assert_true(get(cause, "advice").len > 2);
        assert_true(number(cause, "since_ms") >= 0);
        size_t len = strlen(words);
        (void)snprintf(words + len, sizeof words - len, "%s%s", len == 0 ? "" : " ",
                       word);
    }
    return words;
}

/* What was seen of the n-th cause; static. */
static const char *seen(coord_text answer, int n)
{
    static char text[1024];
    coord_text cause;
    size_t at = 0;
    while (coordi_json_each(get(answer, "causes"), &at, &cause)) {
        if (n-- == 0) {
            assert_int_equal(coordi_json_string(get(cause, "seen"), text, sizeof text),
                             COORD_OK);
            return text;
        }
    }
    return "";
}

static void expect(coord_text answer, const char *state, const char *wanted)
{
    if (!is(answer, "state", state) || strcmp(codes(answer), wanted) != 0) {
        fail_msg("wanted %s: %s, got %.*s", state, wanted, (int)answer.len, answer.ptr);
    }
}

static void expect_seen(coord_text answer, int n, const char *part)
{
    if (strstr(seen(answer, n), part) == NULL) {
        fail_msg("no \"%s\" in %s", part, seen(answer, n));
    }
}

/* ---- tasks that wait ---- */

static void a_task_that_waits_names_every_worker_and_its_reason(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 3, 0);
    for (int i = 0; i < 3; i++) {
        cluster_set_foreign(&k, k.workers[i].id);
        k.workers[i].samples = 1000;
        k.workers[i].work_ms = 1000;
    }
    cluster_start(&k, "\"collector_task_timeout_s\": 2, \"request_retries\": 0, "
                      "\"max_reassign\": 0, \"resource_manager\": \"least_loaded\",");
    cluster_post(&k, COORD_COLLECTOR, "x"); /* to c0, which gets stuck */
    assert_true(cluster_await(&k, "start", "x", 1, LONG_MS));
    assert_string_equal(cluster_last(&k, "start", "x")->detail, "c0");
    k.workers[0].stuck = true;
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    cluster_crash(&k, "c1");
    assert_true(cluster_await_worker(&k, "c1", "away", LONG_MS));
    cluster_post(&k, COORD_COLLECTOR, "busy");
    assert_true(cluster_await(&k, "send_data", "busy", 1, LONG_MS));
    cluster_post(&k, COORD_COLLECTOR, "t");
    cluster_post(&k, COORD_COLLECTOR, "u");
    cluster_run(&k, 5000);

    coord_text answer = ask(&k, "t");
    assert_true(is(answer, "id", "t"));
    assert_true(is(answer, "kind", "task"));
    assert_true(is(answer, "role", "collector"));
    assert_int_equal(number(answer, "since_ms"), 5000);
    assert_int_equal(number(answer, "left_out"), 0);
    expect(answer, "queued",
           "no_free_worker worker_works quarantined probe_failed no_progress worker_away "
           "connection_lost silent");
    expect_seen(answer, 0,
                "of 3, 1 work, 0 clean up, 1 are quarantined, 1 are not "
                "connected");
    expect_seen(answer, 1, "'c2' has worked for task 'busy' for ");
    expect_seen(answer, 2, "'c0' is connected, but has not been used for ");
    expect_seen(answer, 3, "always busy: 'c0' did not take collector_close_task");
    expect_seen(answer, 4,
                "task 'x' at 'c0': its worker is of no use: no progress: 'c0' "
                "accepted collector_data_task and reported nothing within 2 s "
                "(collector_task_timeout_s)");
    expect_seen(answer, 6, "refused");
    expect_seen(answer, 7, "tolerated are 17000 (heartbeat_tolerance_s)");

    answer = ask(&k, "u");
    assert_memory_equal(codes(answer), "no_free_worker tasks_before_it worker_works ",
                        44);
    expect_seen(answer, 1, "1 tasks wait before it");

    expect(ask(&k, "c0"), "quarantined", "quarantined probe_failed no_progress");
    expect(ask(&k, "c1"), "away", "worker_away connection_lost silent");
    answer = ask(&k, "c2");
    assert_true(is(answer, "kind", "worker"));
    expect(answer, "working", "worker_works waits_for_worker");
    cluster_done(&k);
}

static void a_task_without_any_worker_says_so(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 2, 1, 0);
    cluster_start(&k, "\"heartbeat_tolerance_s\": 5,");
    cluster_crash(&k, "c0");
    assert_true(cluster_await_worker(&k, "c0", "away", LONG_MS));
    cluster_post(&k, COORD_COLLECTOR, "t");
    cluster_post(&k, COORD_LEARNER, "l");
    cluster_run(&k, 60000);
    expect(ask(&k, "t"), "queued",
           "no_worker_connected worker_away connection_lost silent");
    expect_seen(ask(&k, "t"), 2, "refused");
    expect(ask(&k, "l"), "queued", "no_worker_configured");
    cluster_done(&k);
}

static size_t choose_none(coord_role role, coord_text task,
                          const coord_candidate *candidates, size_t count,
                          uint64_t random, void *user)
{
    (void)role;
    (void)task;
    (void)candidates;
    (void)count;
    (void)random;
    (void)user;
    return COORD_CHOOSE_NONE;
}

static void a_task_that_its_policy_lets_wait_says_so(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 3, 2, 0);
    cluster_create(&k, "");
    k.c->policy.choose = choose_none;
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    expect(ask(&k, "t"), "queued", "policy_waits");
    expect_seen(ask(&k, "t"), 0, "2 of 2 collectors are free");
    expect(ask(&k, "c0"), "free", "worker_free");
    cluster_done(&k);
}

/* ---- tasks that run ---- */

static const struct {
    coord_role role;
    const char *state;
    const char *codes;
    const char *seen;
} SPOTS[] = {
    {COORD_COLLECTOR, "starting", "waits_for_worker",
     "'c0' has not accepted yet collector_start_task, and has not reported for 0 ms; the "
     "limit is 60 s (start_timeout_s)"},
    {COORD_COLLECTOR, "asking", "waits_for_worker",
     "'c0' has not accepted yet collector_data_task, and has not reported for 0 ms; no "
     "limit is set; last heard of "},
    {COORD_COLLECTOR, "pausing", "pause_after_failure worker_failed_request",
     "'c0' failed 1 requests in a row; it is asked again in 1000 ms"},
    {COORD_COLLECTOR, "sending", "callback_running",
     "deal_with_collector_send_data has not returned for 0 ms"},
    {COORD_COLLECTOR, "judging", "callback_running", "deal_with_collector_judge_finish"},
    {COORD_COLLECTOR, "closing", "waits_for_worker", "collector_close_task"},
    {COORD_COLLECTOR, "releasing", "worker_cleans_up", "'c0' has closed it"},
    {COORD_COLLECTOR, "finishing", "callback_running", "deal_with_collector_finish_task"},
    {COORD_COLLECTOR, "failing", "callback_running canceled", "deal_with_task_fail"},
    {COORD_LEARNER, "asking", "waits_for_worker", "learner_get_data_task"},
    {COORD_LEARNER, "sampling", "callback_running", "deal_with_learner_get_data"},
    {COORD_LEARNER, "waiting", "host_has_no_data",
     "for 4 items of buffer 'b'; it is asked again in 10 ms"},
    {COORD_LEARNER, "learning", "waits_for_worker", "learner_learn_task"},
    {COORD_LEARNER, "judging", "callback_running", "deal_with_learner_judge_finish, or "},
    {COORD_LEARNER, "finishing", "callback_running", "deal_with_learner_finish_task"},
};

static void a_task_that_runs_says_whose_turn_it_is_in_every_state(void **state)
{
    static cluster k;
    (void)state;
    for (size_t i = 0; i < sizeof SPOTS / sizeof SPOTS[0]; i++) {
        bool collector = SPOTS[i].role == COORD_COLLECTOR;
        cluster_init(&k, 4, collector ? 1 : 0, collector ? 0 : 1);
        k.workers[0].fail_asks = strcmp(SPOTS[i].state, "pausing") == 0 ? 1 : 0;
        k.workers[0].resource_ms = 100;
        k.callback_ms = 300;
        k.data_in_buffer = 1;
        k.hold_data = strcmp(SPOTS[i].state, "waiting") == 0;
        cluster_start(&k, "");
        cluster_post(&k, SPOTS[i].role, "t");
        if (strcmp(SPOTS[i].state, "failing") == 0) {
            assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
        }
        assert_true(cluster_await_task(&k, "t", SPOTS[i].state, LONG_MS));
        coord_text answer = ask(&k, "t");
        expect(answer, SPOTS[i].state, SPOTS[i].codes);
        expect_seen(answer, 0, SPOTS[i].seen);
        k.hold_data = false;
        cluster_done(&k);
    }
}

static void a_slow_task_says_how_long_its_worker_has_been_silent(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 5, 1, 0);
    k.workers[0].work_ms = 8000;
    cluster_start(&k, "\"collector_task_timeout_s\": 30,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "t", "asking", LONG_MS));
    cluster_run(&k, 5000);
    coord_text answer = ask(&k, "t");
    expect(answer, "asking", "waits_for_worker");
    expect_seen(answer, 0,
                "'c0' has accepted collector_data_task, and has not reported "
                "for 5000 ms; the limit is 30 s (collector_task_timeout_s); "
                "last heard of ");
    assert_int_equal(number(answer, "since_ms"), 5000);
    cluster_done(&k);
}

/* ---- the three ways to notice that a worker is of no use ---- */

static void lost_silent_and_without_progress_are_told_apart(void **state)
{
    static cluster k;
    static const char *const REASONS[] = {"connection_lost", "silent", "no_progress"};
    static const char *const WORDS[] = {": connection lost: 'c0' at 10.0.1.1:22270: ",
                                        ": silent: no heartbeat from 'c0' for ",
                                        ": no progress: 'c0' accepted "};
    static const int STATUS[] = {COORD_ERR_LOST, COORD_ERR_LOST, COORD_ERR_TIMEOUT};
    (void)state;
    for (int i = 0; i < 3; i++) {
        char word[32];
        int status = 0;
        cluster_init(&k, 6, 1, 0);
        cluster_set_foreign(&k, "c0");
        cluster_start(&k, i == 2 ? IMPATIENT : "\"request_retries\": 0,");
        cluster_post(&k, COORD_COLLECTOR, "t");
        if (i == 0) { /* its next request finds nobody there */
            k.callback_ms = 1000;
            assert_true(cluster_await_task(&k, "t", "sending", LONG_MS));
            cluster_crash(&k, "c0");
        } else {
            k.workers[0].work_ms = 500;
            assert_true(cluster_await_task(&k, "t", "asking", LONG_MS));
            cluster_run(&k, 20); /* it has been accepted */
            k.workers[0].stuck = i == 2;
            coord_sim_pause(k.sim, k.workers[0].loop, i == 1);
        }
        assert_true(cluster_await(&k, "fail", "t", 1, LONG_MS));
        const char *told = cluster_last(&k, "fail", "t")->detail;
        assert_int_equal(sscanf(told, "%d", &status), 1);
        assert_int_equal(status, STATUS[i]);
        if (strstr(told, WORDS[i]) == NULL) {
            fail_msg("no %s in %s", WORDS[i], told);
        }
        (void)snprintf(word, sizeof word, "[%s]", REASONS[i]);
        assert_non_null(strstr(told, word));

        assert_int_equal(comm_coordinator_wait(k.c, LONG_MS, NULL), COORD_OK);
        expect(ask(&k, "t"), "failed", REASONS[i]);
        expect_seen(ask(&k, "t"), 0, WORDS[i]);
        if (i == 1) {
            coord_sim_pause(k.sim, k.workers[0].loop, false);
        }
        cluster_done(&k);
    }
}

/* ---- tasks that were retried, moved, or have failed ---- */

static void a_task_tells_of_its_attempts_the_last_first(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 7, 3, 0);
    for (int i = 0; i < 3; i++) {
        k.workers[i].samples = 1000;
        k.workers[i].work_ms = 100;
    }
    cluster_start(&k, "\"heartbeat_tolerance_s\": 5, \"request_retries\": 2,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "start", "t", 1, LONG_MS));
    cluster_worker *w = cluster_find(&k, cluster_last(&k, "start", "t")->detail);
    w->fail_asks = 1000;
    assert_true(cluster_await(&k, "start", "t", 2, LONG_MS));
    assert_true(cluster_await_task(&k, "t", "asking", LONG_MS));
    cluster_run(&k, 20);
    cluster_worker *second = cluster_find(&k, cluster_last(&k, "start", "t")->detail);
    coord_sim_pause(k.sim, second->loop, true);
    assert_true(cluster_await(&k, "start", "t", 3, LONG_MS));
    assert_true(cluster_await_task(&k, "t", "asking", LONG_MS));
    coord_text answer = ask(&k, "t");
    expect(answer, "asking", "waits_for_worker silent worker_failed_request");
    expect_seen(answer, 1, "attempt 2: task 't' at '");
    expect_seen(answer, 2, "collector_data_task failed, 3 in a row");
    expect_seen(answer, 2, "(3 times)");

    assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
    assert_int_equal(comm_coordinator_wait(k.c, LONG_MS, NULL), COORD_OK);
    expect(ask(&k, "t"), "canceled", "canceled silent worker_failed_request");
    coord_sim_pause(k.sim, second->loop, false);
    cluster_done(&k);
}

static bool fails_get_data(cluster *k)
{
    k->get_data_fails = true;
    k->data_in_buffer = 1;
    cluster_post(k, COORD_LEARNER, "t");
    return true;
}

static bool is_refused(cluster *k)
{
    k->workers[0].fail_starts = 1;
    cluster_post(k, COORD_COLLECTOR, "t");
    return true;
}

static bool waits_too_long(cluster *k)
{
    k->workers[0].work_ms = 10000;
    cluster_post(k, COORD_COLLECTOR, "busy");
    cluster_post(k, COORD_COLLECTOR, "t");
    return true;
}

static bool fails_at_its_worker(cluster *k)
{
    k->workers[0].fail_asks = 1000;
    cluster_post(k, COORD_COLLECTOR, "t");
    return true;
}

static bool is_closed_away(cluster *k)
{
    k->workers[0].work_ms = 10000;
    cluster_post(k, COORD_COLLECTOR, "t");
    return cluster_close(k, NULL) == COORD_OK;
}

static void a_task_that_failed_says_why(void **state)
{
    static cluster k;
    static const struct {
        bool (*strike)(cluster *k);
        const char *codes;
        const char *seen;
    } WAYS[] = {
        {fails_get_data, "callback_failed", "deal_with_learner_get_data answered"},
        {is_refused, "refused_start", "'c0' did not start it: "},
        {waits_too_long, "queue_timeout", "queue_timeout_s (5)"},
        {fails_at_its_worker, "worker_failed_request worker_failed_request",
         "collector_data_task failed, 2 in a row: "},
        {is_closed_away, "closed", "the coordinator was closed"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; i++) {
        cluster_init(&k, 8, 1, 1);
        cluster_start(&k, "\"queue_timeout_s\": 5, \"request_retries\": 1,");
        assert_true(WAYS[i].strike(&k));
        assert_true(cluster_await(&k, "fail", "t", 1, LONG_MS));
        cluster_run(&k, 10);
        int64_t began = coord_sim_now_ms(k.sim);
        cluster_run(&k, 1000);
        coord_text answer = ask(&k, "t");
        expect(answer, "failed", WAYS[i].codes);
        expect_seen(answer, 0, WAYS[i].seen);
        assert_in_range(number(answer, "since_ms"), coord_sim_now_ms(k.sim) - began,
                        1020);
        cluster_done(&k);
    }
}

static void a_send_that_fails_carries_its_reason(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 9, 1, 0);
    k.workers[0].fail_starts = 1;
    cluster_start(&k, "");
    assert_int_equal(
        comm_coordinator_send_collector_task(k.c, cluster_task("t"), NULL, &err),
        COORD_ERR_REFUSED);
    assert_string_equal(err.reason, "refused_start");
    expect(ask(&k, "t"), "failed", "refused_start");
    expect_seen(ask(&k, "t"), 0, "no such policy");
    cluster_done(&k);
}

static void the_last_thousand_that_failed_are_known(void **state)
{
    static cluster k;
    coord_error err;
    char *text = NULL;
    char id[16];
    (void)state;
    cluster_init(&k, 10, 1, 0);
    cluster_crash(&k, "c0");
    cluster_create(&k, "\"min_collectors\": 0,");
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
    cluster_run(&k, 10000);
    for (int i = 0; i < 1003; i++) {
        (void)snprintf(id, sizeof id, "t%d", i);
        cluster_post(&k, COORD_COLLECTOR, id);
        assert_int_equal(comm_coordinator_cancel_task(k.c, id, NULL), COORD_OK);
    }
    assert_int_equal(comm_coordinator_wait(k.c, LONG_MS, NULL), COORD_OK);
    assert_int_equal(comm_coordinator_why(k.c, "t2", &text, &err), COORD_ERR_NOT_FOUND);
    assert_null(text);
    assert_non_null(strstr(err.text,
                           "no task or worker 't2' is known; of tasks that have "
                           "ended, the last 1000 that failed are"));
    expect(ask(&k, "t3"), "canceled", "canceled");
    expect(ask(&k, "t1002"), "canceled", "canceled");

    cluster_run(&k, 20000 - k.c->config.heartbeat_check_ms);
    assert_true(cluster_await_worker(&k, "c0", "away", LONG_MS));
    /* One of the same id takes its place, and one that finishes leaves none. */
    cluster_post(&k, COORD_COLLECTOR, "t3");
    expect(ask(&k, "t3"), "queued", "no_worker_connected worker_away connection_lost");
    cluster_revive(&k, "c0");
    assert_true(cluster_await(&k, "finish", "t3", 1, LONG_MS));
    assert_int_equal(comm_coordinator_wait(k.c, LONG_MS, NULL), COORD_OK);
    assert_int_equal(comm_coordinator_why(k.c, "t3", &text, &err), COORD_ERR_NOT_FOUND);
    cluster_done(&k);
}

static void a_task_that_has_much_to_tell_tells_the_last_of_it(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 11, 2, 0);
    for (int i = 0; i < 2; i++) {
        k.workers[i].samples = 1000;
        k.workers[i].fail_asks = 1000;
    }
    cluster_start(&k, "\"max_reassign\": 11, \"request_retries\": 0,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "fail", "t", 1, LONG_MS));
    cluster_run(&k, 10);
    coord_text answer = ask(&k, "t");
    expect_seen(answer, 1, "attempt 11: ");
    expect_seen(answer, 8, "attempt 4: ");
    assert_string_equal(seen(answer, 9), "");
    assert_int_equal(number(answer, "left_out"), 3);
    cluster_done(&k);
}

/* ---- names and sizes ---- */

static void several_of_one_name_are_all_answered(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 12, 1, 1);
    (void)snprintf(k.workers[1].id, sizeof k.workers[1].id, "c0");
    k.workers[0].work_ms = 1000;
    cluster_start(&k, "");
    coord_text answer = ask(&k, "c0");
    assert_true(is(answer, "role", "collector"));
    coord_text other;
    size_t at = 0;
    assert_true(coordi_json_each(get(answer, "also"), &at, &other));
    assert_true(is(other, "role", "learner"));
    assert_false(coordi_json_each(get(answer, "also"), &at, &other));

    cluster_post(&k, COORD_COLLECTOR, "c0");
    assert_true(cluster_await_task(&k, "c0", "asking", LONG_MS));
    answer = ask(&k, "c0");
    assert_true(is(answer, "kind", "task"));
    expect(answer, "asking", "waits_for_worker");
    at = 0;
    assert_true(coordi_json_each(get(answer, "also"), &at, &other));
    expect(other, "working", "worker_works waits_for_worker");
    assert_true(coordi_json_each(get(answer, "also"), &at, &other));
    expect(other, "free", "worker_free");

    assert_true(is(ask(&k, "task/c0"), "kind", "task"));
    assert_true(is(ask(&k, "collector/c0"), "role", "collector"));
    assert_true(is(ask(&k, "collector/c0"), "kind", "worker"));
    assert_true(is(ask(&k, "learner/c0"), "role", "learner"));
    assert_false(has(ask(&k, "learner/c0"), "also"));
    cluster_done(&k);
}

static void what_is_not_there_is_not_found(void **state)
{
    static cluster k;
    static const char *const NAMES[] = {"x",          "",      "task/c0",
                                        "learner/c0", "task/", "collector/",
                                        "/c0",        "c0/",   "collector"};
    char *text = NULL;
    coord_error err;
    (void)state;
    cluster_init(&k, 13, 1, 0);
    cluster_create(&k, "");
    assert_int_equal(comm_coordinator_why(k.c, "c0", &text, &err), COORD_ERR_NOT_FOUND);
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        assert_int_equal(comm_coordinator_why(k.c, NAMES[i], &text, &err),
                         COORD_ERR_NOT_FOUND);
    }
    assert_int_equal(comm_coordinator_why(NULL, "c0", &text, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_why(k.c, NULL, &text, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_why(k.c, "c0", NULL, &err), COORD_ERR_ARG);
    assert_null(text);
    expect(ask(&k, "c0"), "free", "worker_free");
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_int_equal(comm_coordinator_why(k.c, "c0", &text, &err), COORD_ERR_NOT_FOUND);
    cluster_done(&k);
}

static void names_and_words_of_others_are_escaped(void **state)
{
    static cluster k;
    char id[64];
    (void)state;
    static const char ID[] = "a\"b\\c\n\x01\xc3\xbc";
    cluster_init(&k, 14, 1, 0);
    (void)snprintf(k.workers[0].id, sizeof k.workers[0].id, "w");
    k.workers[0].fail_starts = 1;
    cluster_start(&k, "");
    assert_int_equal(
        comm_coordinator_post_collector_task(
            k.c,
            coord_text_of("{\"task_id\": \"a\\\"b\\\\c\\n\\u0001\\u00fc\", \"x\": 1}"),
            NULL),
        COORD_OK);
    assert_true(cluster_await(&k, "fail", NULL, 1, LONG_MS));
    cluster_run(&k, 10);
    coord_text answer = ask(&k, ID);
    assert_int_equal(coordi_json_string(get(answer, "id"), id, sizeof id), COORD_OK);
    assert_string_equal(id, ID);
    expect(answer, "failed", "refused_start");
    expect_seen(answer, 0, "task 'a\"b\\c??\xc3\xbc'"); /* on one line, in words */
    cluster_done(&k);
}

static void an_answer_is_bounded_however_much_there_is(void **state)
{
    static cluster k;
    char id[8];
    (void)state;
    cluster_init(&k, 15, CLUSTER_WORKERS_MAX, 0);
    for (int i = 0; i < CLUSTER_WORKERS_MAX; i++) {
        cluster_set_foreign(&k, k.workers[i].id);
        k.workers[i].samples = 1000;
    }
    cluster_start(&k, IMPATIENT);
    for (int i = 0; i < CLUSTER_WORKERS_MAX; i++) {
        (void)snprintf(id, sizeof id, "b%d", i % 100);
        cluster_post(&k, COORD_COLLECTOR, id);
    }
    assert_true(cluster_await(&k, "start", NULL, CLUSTER_WORKERS_MAX, LONG_MS));
    for (int i = 0; i < CLUSTER_WORKERS_MAX; i++) {
        k.workers[i].stuck = true;
    }
    assert_true(cluster_await(&k, "fail", NULL, CLUSTER_WORKERS_MAX, LONG_MS));
    cluster_run(&k, 10000);

    char task[1024];
    char name[256];
    memset(name, '\\', 255);
    name[255] = '\0';
    size_t at = (size_t)snprintf(task, sizeof task, "{\"task_id\": \"");
    for (int i = 0; i < 255; i++) {
        at += (size_t)snprintf(task + at, sizeof task - at, "\\\\");
    }
    (void)snprintf(task + at, sizeof task - at, "\"}");
    assert_int_equal(comm_coordinator_post_collector_task(k.c, coord_text_of(task), NULL),
                     COORD_OK);
    coord_text answer = ask(&k, name); /* checks the size */
    assert_memory_equal(codes(answer), "no_free_worker quarantined probe_failed ", 40);
    /* Eight workers of three causes each, and one for the task itself. */
    assert_int_equal(number(answer, "left_out"), 8 + 1);
    cluster_done(&k);
}

/* ---- who may ask ---- */

static void ask_inside(cluster *k, const char *name, const char *task_id, void *user)
{
    coord_status *rc = user;
    if (strcmp(name, "judge") == 0) {
        char *text = NULL;
        *rc = comm_coordinator_why(k->c, task_id, &text, NULL);
        coord_free(text);
    }
}

static void every_callback_may_ask(void **state)
{
    static cluster k;
    static const char *const HOW[] = {"", "\"executor\": {\"pool\": 1},",
                                      "\"executor\": \"inline\","};
    (void)state;
    for (int i = 0; i < 3; i++) {
        coord_status rc = COORD_AGAIN;
        cluster_init(&k, 16, 1, 0);
        cluster_start(&k, HOW[i]);
        k.on_event = ask_inside;
        k.on_event_user = &rc;
        cluster_post(&k, COORD_COLLECTOR, "t");
        assert_int_equal(comm_coordinator_wait(k.c, LONG_MS, NULL), COORD_OK);
        assert_int_equal(rc, COORD_OK);
        cluster_done(&k);
    }
}

typedef struct shortage {
    int left;
    bool hit;
} shortage;

static bool run_out(void *user)
{
    shortage *m = user;
    m->hit = m->hit || m->left == 0;
    return m->left-- == 0;
}

static void any_allocation_may_fail_while_it_is_asked(void **state)
{
    static cluster k;
    shortage m = {.hit = true};
    (void)state;
    cluster_init(&k, 17, 1, 0);
    cluster_start(&k, "");
    for (int n = 0; m.hit; n++) {
        char *text = NULL;
        m = (shortage){.left = n};
        coordi_alloc_set_fault(run_out, &m);
        coord_status rc = comm_coordinator_why(k.c, "c0", &text, NULL);
        coordi_alloc_set_fault(NULL, NULL);
        assert_int_equal(rc, m.hit ? COORD_ERR_NOMEM : COORD_OK);
        assert_true((text != NULL) == (rc == COORD_OK));
        coord_free(text);
    }
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_waits_names_every_worker_and_its_reason),
        cmocka_unit_test(a_task_without_any_worker_says_so),
        cmocka_unit_test(a_task_that_its_policy_lets_wait_says_so),
        cmocka_unit_test(a_task_that_runs_says_whose_turn_it_is_in_every_state),
        cmocka_unit_test(a_slow_task_says_how_long_its_worker_has_been_silent),
        cmocka_unit_test(lost_silent_and_without_progress_are_told_apart),
        cmocka_unit_test(a_task_tells_of_its_attempts_the_last_first),
        cmocka_unit_test(a_task_that_failed_says_why),
        cmocka_unit_test(a_send_that_fails_carries_its_reason),
        cmocka_unit_test(the_last_thousand_that_failed_are_known),
        cmocka_unit_test(a_task_that_has_much_to_tell_tells_the_last_of_it),
        cmocka_unit_test(several_of_one_name_are_all_answered),
        cmocka_unit_test(what_is_not_there_is_not_found),
        cmocka_unit_test(names_and_words_of_others_are_escaped),
        cmocka_unit_test(an_answer_is_bounded_however_much_there_is),
        cmocka_unit_test(every_callback_may_ask),
        cmocka_unit_test(any_allocation_may_fail_while_it_is_asked),
    };
    return cmocka_run_group_tests_name("why", tests, NULL, NULL);
}
