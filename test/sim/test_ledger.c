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

static void crash_at(const spot *at, uint64_t seed, bool foreign, int64_t down_ms)
{
    cluster k;
    reach(&k, at, seed, foreign);
    cluster_crash_coordinator(&k);
    cluster_run(&k, down_ms);
    cluster_restart(&k, LEDGER);
    bool ended = is(at, "settling") && cluster_count(&k, "resume", "t") == 0;
    if (!ended) {
        assert_true(cluster_await(&k, "resume", "t", 1, 1000));
    }
    /* The worker's own run of the task goes on; only a start that may not have arrived
     * is asked for again. */
    expect_finish(&k, at, is(at, "queued") ? 2 : 1);
    cluster_done(&k);
}

static void a_quick_restart_goes_unnoticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof SPOT / sizeof SPOT[0]; i++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            crash_at(&SPOT[i], seed, false, (int64_t)seed * 500);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quick_restart_goes_unnoticed),
    };
    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
