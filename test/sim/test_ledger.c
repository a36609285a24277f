/* A coordinator that is killed and started again with its ledger: nothing is lost, and
 * workers do not notice. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEDGER "\"ledger\": \"/ledger\", "

/* ---- crash in every state ---- */

typedef struct spot {
    coord_role role;
    const char *state;
} spot;

static const spot SPOT[] = {
    {COORD_COLLECTOR, "queued"},    {COORD_COLLECTOR, "assigning"},
    {COORD_COLLECTOR, "starting"},  {COORD_COLLECTOR, "asking"},
    {COORD_COLLECTOR, "pausing"},   {COORD_COLLECTOR, "sending"},
    {COORD_COLLECTOR, "judging"},   {COORD_COLLECTOR, "closing"},
    {COORD_COLLECTOR, "releasing"}, {COORD_COLLECTOR, "finishing"},
    {COORD_COLLECTOR, "settling"},  {COORD_LEARNER, "queued"},
    {COORD_LEARNER, "assigning"},   {COORD_LEARNER, "starting"},
    {COORD_LEARNER, "asking"},      {COORD_LEARNER, "pausing"},
    {COORD_LEARNER, "sampling"},    {COORD_LEARNER, "waiting"},
    {COORD_LEARNER, "learning"},    {COORD_LEARNER, "judging"},
    {COORD_LEARNER, "closing"},     {COORD_LEARNER, "releasing"},
    {COORD_LEARNER, "finishing"},   {COORD_LEARNER, "settling"},
};

static const char *worker_of(const spot *at)
{
    return at->role == COORD_COLLECTOR ? "c0" : "l0";
}

static bool is(const spot *at, const char *state)
{
    return strcmp(at->state, state) == 0;
}

/* A cluster of one worker whose task "t" is in the state. */
static void reach(cluster *k, const spot *at, uint64_t seed, bool foreign)
{
    bool collector = at->role == COORD_COLLECTOR;
    cluster_init(k, seed, collector ? 1 : 0, collector ? 0 : 1);
    cluster_worker *w = cluster_find(k, worker_of(at));
    if (foreign) {
        cluster_set_foreign(k, w->id);
    }
    w->samples = 2;
    w->learns = 2;
    w->work_ms = 300;
    w->resource_ms = 300;
    w->fail_asks = is(at, "pausing") ? 1 : 0;
    k->callback_ms = 300;
    k->data_in_buffer = 1;
    k->hold_data = is(at, "waiting");
    cluster_start(k, LEDGER);
    if (is(at, "queued")) {
        cluster_post(k, at->role, "busy");
        assert_true(cluster_await_task(k, "busy", "asking", 10000));
    }
    cluster_post(k, at->role, "t");
    if (!cluster_await_task(k, "t", at->state, 20000)) {
        fail_msg("the task never was %s", at->state);
    }
}

static int finished(const cluster *k, int life)
{
    int count = 0;
    for (int i = 0; i < k->event_count; i++) {
        const cluster_event *e = &k->events[i];
        count += e->life == life && strcmp(e->name, "finish") == 0 &&
                 strcmp(e->task, "t") == 0;
    }
    return count;
}

/* What was delivered in both lives has the same place; within one life each place is
 * delivered once. */
static void check_deliveries(const cluster *k)
{
    for (int i = 0; i < k->event_count; i++) {
        const cluster_event *a = &k->events[i];
        for (int j = i + 1; j < k->event_count; j++) {
            const cluster_event *b = &k->events[j];
            bool data =
                strcmp(a->name, "send_data") == 0 && strcmp(b->name, a->name) == 0;
            if (!data || strcmp(a->task, b->task) != 0) {
                continue;
            }
            bool same = strcmp(a->detail, b->detail) == 0;
            bool place = a->attempt == b->attempt && a->sequence == b->sequence;
            if (a->life == b->life && place) {
                fail_msg("%s was delivered twice in life %d", a->detail, a->life);
            }
            if (a->attempt == b->attempt && same != place) {
                fail_msg("%s at %u/%llu, %s at %u/%llu", a->detail, a->attempt,
                         (unsigned long long)a->sequence, b->detail, b->attempt,
                         (unsigned long long)b->sequence);
            }
        }
    }
}

static void expect_finish(cluster *k, const spot *at, int starts)
{
    cluster_worker *w = cluster_find(k, worker_of(at));
    k->hold_data = false;
    coord_error err = {0};
    if (comm_coordinator_wait(k->c, 100000, &err) != COORD_OK) {
        fail_msg("%s %s: %s; it is %s", coord_role_str(at->role), at->state, err.text,
                 cluster_task_state(k, "t"));
    }
    if (finished(k, 0) + finished(k, 1) < 1 || finished(k, 1) > 1) {
        fail_msg("%s %s: finished %d and %d times, story: %s", coord_role_str(at->role),
                 at->state, finished(k, 0), finished(k, 1), cluster_story(k, "t"));
    }
    assert_int_equal(cluster_count(k, "fail", "t"), 0);
    if (w->starts > starts) {
        fail_msg("%s %s: %d starts: %s", coord_role_str(at->role), at->state, w->starts,
                 cluster_story(k, "t"));
    }
    check_deliveries(k);
    cluster_check(k);
}

/* `starts`: how often the worker may be asked to begin the task, and "busy" before. */
static void crash_at(const spot *at, uint64_t seed, bool foreign, int64_t down_ms,
                     int starts)
{
    cluster k;
    reach(&k, at, seed, foreign);
    cluster_crash_coordinator(&k);
    cluster_run(&k, down_ms);
    cluster_restart(&k, LEDGER);
    cluster_run(&k, 1000);
    bool ended = is(at, "settling") && cluster_count(&k, "resume", "t") == 0;
    assert_int_equal(cluster_count(&k, "resume", "t"), ended ? 0 : 1);
    expect_finish(&k, at, starts + is(at, "queued"));
    cluster_done(&k);
}

static void a_quick_restart_goes_unnoticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SPOT / sizeof SPOT[0]; i++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            crash_at(&SPOT[i], seed, false, (int64_t)seed * 500, 1);
        }
    }
}

/* A Python worker can't tell a repeated start from a new one. What it was at when the
 * coordinator died is found by its result alone. */
static void workers_that_are_no_libcoord_go_on_too(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SPOT / sizeof SPOT[0]; i++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            crash_at(&SPOT[i], seed, true, (int64_t)seed * 500, 1);
        }
    }
}

/* Long after the workers have given the old one up: a new attempt for each task that one
 * had. */
static void a_late_restart_begins_anew(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SPOT / sizeof SPOT[0]; i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            crash_at(&SPOT[i], seed, false, 60000, 2);
            crash_at(&SPOT[i], seed, true, 60000, 2);
        }
    }
}

static bool info_was_told(const cluster *k, int step)
{
    char part[32];
    (void)snprintf(part, sizeof part, "\"learner_step\": %d,", step);
    for (int i = 0; i < k->event_count; i++) {
        const cluster_event *e = &k->events[i];
        if (strcmp(e->name, "send_info") == 0 && strstr(e->detail, part) != NULL) {
            return true;
        }
    }
    return false;
}

/* A worker that is long at it when the coordinator comes back is not asked to do it
 * again: what it says at last is taken. */
static void long_work_is_waited_for_and_done_once(void **state)
{
    (void)state;
    for (int foreign = 0; foreign < 2; foreign++) {
        cluster k;
        const spot at = {COORD_LEARNER, "learning"};
        reach(&k, &at, 1, foreign != 0);
        cluster_find(&k, "l0")->work_ms = 90000;
        k.workers[0].learns = 3;
        cluster_run(&k, 1000);
        assert_true(cluster_await_task(&k, "t", "learning", 100000));
        cluster_crash_coordinator(&k);
        cluster_run(&k, 2000);
        cluster_restart(&k, LEDGER);
        assert_int_equal(comm_coordinator_wait(k.c, 1000000, NULL), COORD_OK);
        for (int step = 1; step <= 3; step++) {
            if (!info_was_told(&k, step)) {
                fail_msg("foreign %d: step %d is lost: %s", foreign, step,
                         cluster_story(&k, "t"));
            }
        }
        assert_int_equal(k.workers[0].count, 3);
        assert_int_equal(k.workers[0].starts, 1);
        cluster_done(&k);
    }
}

/* ... and a host that decides otherwise than before the crash does not confuse it. */
static void a_host_may_change_its_mind(void **state)
{
    (void)state;
    for (int foreign = 0; foreign < 2; foreign++) {
        cluster k;
        const spot at = {COORD_COLLECTOR, "judging"};
        reach(&k, &at, 1, foreign != 0);
        k.callback_ms = 0;
        k.judge_says_no = true; /* it has asked for more, and the worker is at it */
        cluster_find(&k, "c0")->work_ms = 20000;
        cluster_run(&k, 2000);
        assert_string_equal(cluster_task_state(&k, "t"), "asking");
        cluster_crash_coordinator(&k);
        k.judge_says_no = false; /* now it is enough: close */
        cluster_restart(&k, LEDGER);
        assert_int_equal(comm_coordinator_wait(k.c, 200000, NULL), COORD_OK);
        assert_int_equal(cluster_count(&k, "finish", "t"), 1);
        assert_int_equal(cluster_count(&k, "fail", "t"), 0);
        assert_true(cluster_await_worker(&k, "c0", "free", 100000));
        cluster_done(&k);
    }
}

/* One crash after the other. */
static void many_crashes_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        cluster k;
        cluster_init(&k, seed, 2, 1);
        for (int i = 0; i < k.worker_count; i++) {
            k.workers[i].work_ms = 200;
            k.workers[i].samples = 5;
            k.workers[i].foreign = seed % 2 == 0;
            coord_sim_set_foreign(k.sim, k.workers[i].loop, seed % 2 == 0);
        }
        k.callback_ms = 20;
        cluster_start(&k, LEDGER);
        for (int i = 0; i < 6; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "t%d", i);
            cluster_post(&k, i % 3 == 2 ? COORD_LEARNER : COORD_COLLECTOR, id);
        }
        for (int i = 0; i < 5; i++) {
            cluster_run(&k, 150 + (int64_t)(seed * 37 + (uint64_t)i * 211) % 900);
            cluster_crash_coordinator(&k);
            cluster_run(&k, (int64_t)(seed * 91 + (uint64_t)i * 307) % 3000);
            cluster_restart(&k, LEDGER);
        }
        coord_error err = {0};
        if (comm_coordinator_wait(k.c, 200000, &err) != COORD_OK) {
            fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
        }
        for (int i = 0; i < 6; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "t%d", i);
            if (cluster_count(&k, "finish", id) < 1 ||
                cluster_count(&k, "fail", id) > 0) {
                fail_msg("seed %llu, %s: %s", (unsigned long long)seed, id,
                         cluster_story(&k, id));
            }
        }
        check_deliveries(&k);
        cluster_check(&k);
        cluster_done(&k);
    }
}

/* ---- what send and close promise ---- */

static void restart(cluster *k)
{
    cluster_crash_coordinator(k);
    cluster_restart(k, LEDGER);
}

/* With the answer of post the task is safe. */
static void what_was_posted_is_there_after_a_crash(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        cluster k;
        cluster_init(&k, seed, 1, 0);
        cluster_start(&k, LEDGER);
        cluster_post(&k, COORD_COLLECTOR, "a");
        cluster_post(&k, COORD_COLLECTOR, "b");
        restart(&k);
        assert_int_equal(comm_coordinator_wait(k.c, 100000, NULL), COORD_OK);
        assert_int_equal(cluster_count(&k, "resume", "a"), 1);
        assert_int_equal(cluster_count(&k, "resume", "b"), 1);
        assert_true(cluster_count(&k, "finish", "a") >= 1);
        assert_true(cluster_count(&k, "finish", "b") >= 1);
        restart(&k); /* and they have ended for good */
        cluster_run(&k, 1000);
        assert_int_equal(cluster_count(&k, "resume", NULL), 2);
        cluster_done(&k);
    }
}

static void close_leaves_tasks_to_the_next_life(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SPOT / sizeof SPOT[0]; i++) {
        cluster k;
        reach(&k, &SPOT[i], 1, false);
        assert_int_equal(cluster_close(&k, NULL), COORD_OK);
        int ends = cluster_ends(&k, "t");
        if (cluster_count(&k, "fail", NULL) > 0 || ends > 1) {
            fail_msg("%s: %s", SPOT[i].state, cluster_story(&k, "t"));
        }
        assert_string_equal(cluster_task_state(&k, "t"), "");
        cluster_crash_coordinator(&k); /* its process ends */
        cluster_restart(&k, LEDGER);
        k.hold_data = false;
        assert_int_equal(comm_coordinator_wait(k.c, 100000, NULL), COORD_OK);
        assert_int_equal(cluster_count(&k, "resume", "t"), 1 - ends);
        assert_int_equal(cluster_count(&k, "finish", "t"), 1);
        cluster_done(&k);
    }
}

/* A closed coordinator has said goodbye: its tasks are new attempts. */
static void an_attempt_of_an_earlier_life_is_counted(void **state)
{
    (void)state;
    cluster k;
    reach(&k, &SPOT[3], 1, false);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    cluster_crash_coordinator(&k);
    cluster_restart(&k, LEDGER);
    assert_int_equal(comm_coordinator_wait(k.c, 100000, NULL), COORD_OK);
    assert_int_equal(cluster_last(&k, "finish", "t")->attempt, 2);
    const cluster_event *restarted = cluster_last(&k, "restart", "t");
    assert_non_null(restarted);
    assert_non_null(strstr(restarted->detail, "the coordinator was restarted"));
    assert_non_null(strstr(cluster_find(&k, "c0")->info, "\"attempt\":2"));
    cluster_done(&k);
}

static void a_full_disk_fails_what_is_sent_and_nothing_else(void **state)
{
    (void)state;
    cluster k;
    coord_error err = {0};
    cluster_init(&k, 1, 2, 0);
    k.workers[0].work_ms = 300;
    cluster_start(&k, LEDGER);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "t", "asking", 10000));
    coord_sim_set_disk_full(k.sim, true);
    assert_int_equal(comm_coordinator_post_collector_task(k.c, cluster_task("n"), &err),
                     COORD_ERR_IO);
    assert_non_null(strstr(err.text, "task 'n': the ledger could not be told of it"));
    assert_int_equal(
        comm_coordinator_send_collector_task(k.c, cluster_task("n"), NULL, &err),
        COORD_ERR_IO);
    assert_int_equal(comm_coordinator_wait(k.c, 20000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    assert_int_equal(cluster_count(&k, NULL, "n"), 0);
    char *status = NULL;
    assert_int_equal(comm_coordinator_status(k.c, &status, NULL), COORD_OK);
    assert_non_null(strstr(status, "\"unwritten_ends\": 1"));
    assert_non_null(strstr(status, "\"accepted\": 1, \"finished\": 1"));
    coord_free(status);
    /* With room again it catches up. */
    coord_sim_set_disk_full(k.sim, false);
    cluster_run(&k, 3000);
    cluster_post(&k, COORD_COLLECTOR, "n");
    assert_int_equal(comm_coordinator_wait(k.c, 20000, NULL), COORD_OK);
    assert_int_equal(comm_coordinator_status(k.c, &status, NULL), COORD_OK);
    assert_non_null(strstr(status, "\"unwritten_ends\": 0, \"error\": null"));
    coord_free(status);
    restart(&k);
    cluster_run(&k, 1000);
    assert_int_equal(cluster_count(&k, "resume", NULL), 0);
    cluster_done(&k);
}

static void expect_why(cluster *k, const char *words)
{
    char *why = NULL;
    assert_int_equal(comm_coordinator_why(k->c, "t", &why, NULL), COORD_OK);
    if (strstr(why, words) == NULL) {
        fail_msg("%s is not in %s", words, why);
    }
    coord_free(why);
}

/* An attempt is not begun before it is written down: it waits for room. */
static void on_a_full_disk_no_attempt_begins(void **state)
{
    (void)state;
    cluster k;
    cluster_init(&k, 1, 1, 0);
    k.workers[0].work_ms = 300;
    cluster_start(&k, LEDGER);
    cluster_post(&k, COORD_COLLECTOR, "first");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "first", "asking", 10000));
    coord_sim_set_disk_full(k.sim, true);
    assert_true(cluster_await_task(&k, "t", "assigning", 20000));
    cluster_run(&k, 10000);
    assert_string_equal(cluster_task_state(&k, "t"), "assigning");
    assert_int_equal(k.workers[0].starts, 1);
    expect_why(&k, "\"ledger_writes\"");
    expect_why(&k, "No space left on device");
    coord_sim_set_disk_full(k.sim, false);
    assert_int_equal(comm_coordinator_wait(k.c, 20000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    cluster_done(&k);
}

/* While a failure is written down, no callback is what it waits for. */
static void a_failure_waits_for_the_ledger_and_then_for_the_host(void **state)
{
    (void)state;
    cluster k;
    reach(&k, &SPOT[3], 1, false);
    k.callback_ms = 5000;
    assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
    assert_string_equal(cluster_task_state(&k, "t"), "failing");
    expect_why(&k, "\"ledger_writes\"");
    cluster_run(&k, 1000);
    assert_string_equal(cluster_task_state(&k, "t"), "failing");
    expect_why(&k, "deal_with_task_fail has not returned");
    cluster_done(&k);
}

/* The old worker is not there any more: its task goes to another one. */
static void a_worker_that_died_meanwhile_costs_an_attempt(void **state)
{
    (void)state;
    cluster k;
    cluster_init(&k, 1, 2, 0);
    k.workers[0].work_ms = 500;
    k.workers[1].work_ms = 500;
    cluster_start(&k, LEDGER);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "t", "asking", 10000));
    const char *had = k.workers[0].starts > 0 ? "c0" : "c1";
    cluster_crash_coordinator(&k);
    cluster_crash(&k, had);
    cluster_restart(&k, LEDGER "\"min_collectors\": 1, ");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    assert_int_equal(cluster_last(&k, "finish", "t")->attempt, 2);
    assert_int_equal(cluster_count(&k, "restart", "t"), 1);
    cluster_revive(&k, had);
    assert_true(cluster_await_worker(&k, had, "free", 60000));
    cluster_done(&k);
}

/* A ledger whose tasks the host can't serve is a mistake of the host, and costs nothing:
 * the next start finds them all. */
static void a_failed_start_leaves_the_ledger_as_it_is(void **state)
{
    (void)state;
    cluster k;
    reach(&k, &SPOT[3], 1, false);
    cluster_crash_coordinator(&k);
    cluster_crash(&k, "c0");
    assert_int_equal(coord_sim_loop(k.sim, "10.0.0.1", &k.loop, NULL), COORD_OK);
    cluster_create(&k, LEDGER "\"max_retry_second\": 3, ");
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(cluster_count(&k, "resume", "t"), 1);
    cluster_revive(&k, "c0");
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "resume", "t"), 2);
    assert_int_equal(cluster_count(&k, "finish", "t"), 1);
    assert_int_equal(cluster_count(&k, "fail", "t"), 0);
    cluster_done(&k);
}

static void two_coordinators_can_not_share_a_ledger(void **state)
{
    (void)state;
    cluster k;
    coord_error err = {0};
    cluster_init(&k, 1, 1, 0);
    cluster_start(&k, LEDGER);
    CommCoordinator *first = k.c;
    cluster_create(&k, LEDGER "\"port\": 0, ");
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_BUSY);
    assert_non_null(strstr(err.text, "/ledger"));
    comm_coordinator_destroy(k.c);
    k.c = first;
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_STATE);
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quick_restart_goes_unnoticed),
        cmocka_unit_test(workers_that_are_no_libcoord_go_on_too),
        cmocka_unit_test(a_late_restart_begins_anew),
        cmocka_unit_test(long_work_is_waited_for_and_done_once),
        cmocka_unit_test(a_host_may_change_its_mind),
        cmocka_unit_test(many_crashes_lose_nothing),
        cmocka_unit_test(what_was_posted_is_there_after_a_crash),
        cmocka_unit_test(close_leaves_tasks_to_the_next_life),
        cmocka_unit_test(an_attempt_of_an_earlier_life_is_counted),
        cmocka_unit_test(a_full_disk_fails_what_is_sent_and_nothing_else),
        cmocka_unit_test(on_a_full_disk_no_attempt_begins),
        cmocka_unit_test(a_failure_waits_for_the_ledger_and_then_for_the_host),
        cmocka_unit_test(a_worker_that_died_meanwhile_costs_an_attempt),
        cmocka_unit_test(a_failed_start_leaves_the_ledger_as_it_is),
        cmocka_unit_test(two_coordinators_can_not_share_a_ledger),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
