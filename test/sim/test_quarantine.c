/* Workers that are alive and do nothing: found, kept out of the pool, probed, used again.
 *
 * SEED=n runs that seed of the random stories alone, SEEDS=n the first n, instead of 60.
 */
#include "base/alloc.h"
#include "coordinator/coordinator.h"
#include "support/cluster.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t LONG_MS = 600000;
/* A worker has two seconds for each report, and is told at once when it is busy. */
static const char IMPATIENT[] =
    "\"collector_task_timeout_s\": 2, \"start_timeout_s\": 2, \"request_retries\": 0,";

/* ---- looking ---- */

static coordi_member *member(cluster *k, const char *id)
{
    coordi_member *m = coordi_map_get(&k->c->members[COORD_COLLECTOR], id);
    assert_non_null(m);
    return m;
}

static bool connected(cluster *k, const char *id)
{
    return coord_slave_is_connected(
        coord_collector_slave(cluster_find(k, id)->collector));
}

static void expect_status(cluster *k, const char *part)
{
    char *status = NULL;
    cluster_check(k);
    assert_int_equal(comm_coordinator_status(k->c, &status, NULL), COORD_OK);
    if (strstr(status, part) == NULL) {
        fail_msg("no %s in %s", part, status);
    }
    coord_free(status);
}

static const char *worker_of(cluster *k, const char *task_id)
{
    assert_true(cluster_await(k, "start", task_id, 1, LONG_MS));
    return cluster_last(k, "start", task_id)->detail;
}

typedef struct awaited_probe {
    const coordi_member *m;
    uint32_t probes;
} awaited_probe;

static bool was_probed(void *user)
{
    const awaited_probe *a = user;
    return a->m->probes >= a->probes;
}

static void await_probe(cluster *k, const coordi_member *m, uint32_t probes)
{
    awaited_probe a = {m, probes};
    assert_int_equal(coord_sim_run_until(k->sim, LONG_MS, was_probed, &a, NULL),
                     COORD_OK);
}

/* ---- scenes ---- */

/* `count` workers that look like Python's, of which c0 has "t" and will never report. */
static void begin_stuck(cluster *k, uint64_t seed, int count)
{
    cluster_init(k, seed, count, 0);
    for (int i = 0; i < count; i++) {
        cluster_set_foreign(k, k->workers[i].id);
        k->workers[i].samples = 1;
    }
    cluster_start(k, IMPATIENT);
    for (int i = 1; i < count; i++) { /* so that it is c0's turn */
        cluster_crash(k, k->workers[i].id);
        assert_true(cluster_await_worker(k, k->workers[i].id, "away", LONG_MS));
    }
    cluster_post(k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(k, "send_data", "t", 1, LONG_MS));
    cluster_find(k, "c0")->stuck = true;
    for (int i = 1; i < count; i++) {
        cluster_revive(k, k->workers[i].id);
    }
    (void)memset(cluster_find(k, "c0")->log, 0, sizeof k->workers[0].log);
}

static void a_worker_that_reports_nothing_is_quarantined(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 2, 0);
    cluster_set_foreign(&k, "c0");
    cluster_set_foreign(&k, "c1");
    cluster_start(&k, IMPATIENT);
    cluster_post(&k, COORD_COLLECTOR, "t");
    char stuck[32];
    (void)snprintf(stuck, sizeof stuck, "%.31s", worker_of(&k, "t"));
    cluster_find(&k, stuck)->stuck = true;
    assert_true(cluster_await_worker(&k, stuck, "quarantined", LONG_MS));
    assert_true(connected(&k, stuck));
    expect_status(&k,
                  "\"connected\": 2, \"free\": 0, \"assigned\": 1, \"quarantined\": 1");
    expect_status(&k, "\"state\": \"quarantined\"");
    expect_status(&k, "\"reason\": \"no_progress\"");
    assert_false(
        coord_resource_manager_have_assigned(k.c->resources, COORD_COLLECTOR, stuck));

    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS)); /* by the other one */
    const char *told = cluster_last(&k, "restart", "t")->detail;
    assert_memory_equal(told, "2 6 ", 4);
    assert_non_null(strstr(told, ": no progress: '"));
    assert_non_null(strstr(told, "accepted collector_data_task and reported nothing "
                                 "within 2 s (collector_task_timeout_s)"));

    cluster_run(&k, 120000); /* it is not lost in all the time, and gets no task */
    assert_string_equal(cluster_worker_state(&k, stuck), "quarantined");
    assert_true(connected(&k, stuck));
    for (int i = 0; i < 5; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "u%d", i);
        cluster_post(&k, COORD_COLLECTOR, id);
        assert_true(cluster_await(&k, "finish", id, 1, LONG_MS));
        assert_string_not_equal(cluster_last(&k, "start", id)->detail, stuck);
    }
    cluster_done(&k);
}

static void probes_come_less_and_less_often(void **state)
{
    static cluster k;
    (void)state;
    begin_stuck(&k, 2, 1);
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    int64_t pause = 1000;
    int64_t last = coord_sim_now_ms(k.sim);
    for (uint32_t probe = 1; probe <= 12; probe++) {
        await_probe(&k, member(&k, "c0"), probe);
        int64_t now = coord_sim_now_ms(k.sim);
        assert_in_range(now - last, pause, pause + 25); /* two trips */
        last = now;
        pause = pause * 2 < 300000 ? pause * 2 : 300000;
    }
    expect_status(&k, "\"reason\": \"no_progress\""); /* why it is there, still */
    assert_int_equal(member(&k, "c0")->probe_why.status, COORD_ERR_BUSY);
    assert_non_null(strstr(member(&k, "c0")->probe_why.text, "always busy: 'c0'"));
    cluster_done(&k);
}

static void the_close_comes_before_the_worker_is_used_again(void **state)
{
    static cluster k;
    (void)state;
    begin_stuck(&k, 3, 1);
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    cluster_run(&k, 10000);
    assert_string_equal(k.workers[0].log, "d"); /* too busy for it, each time */
    k.workers[0].stuck = false;
    assert_true(cluster_await_worker(&k, "c0", "free", LONG_MS));
    assert_string_equal(k.workers[0].log, "dcr");
    cluster_post(&k, COORD_COLLECTOR, "u");
    assert_true(cluster_await(&k, "finish", "u", 1, LONG_MS));
    assert_string_equal(k.workers[0].log, "dcrsddcr");
    cluster_done(&k);
}

/* F6: it takes one more task, which it never runs, and is busy from then on. */
static void a_close_that_was_taken_and_never_run_is_not_sent_twice(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 4, 1, 0);
    cluster_set_foreign(&k, "c0");
    cluster_start(&k, IMPATIENT);
    k.callback_ms = 1000;
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "t", "sending", LONG_MS));
    k.workers[0].stuck = true; /* from its next task on: the close of this one */
    assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    assert_non_null(strstr(member(&k, "c0")->why.text,
                           "no progress: 'c0' accepted collector_close_task and reported "
                           "nothing within 2 s (start_timeout_s)"));
    cluster_run(&k, 60000);
    k.workers[0].stuck = false;
    assert_true(cluster_await_worker(&k, "c0", "free", LONG_MS));
    assert_string_equal(k.workers[0].log, "rsdcr");
    cluster_done(&k);
}

static void the_pause_begins_anew_only_when_a_task_is_done(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 5, 1, 0);
    cluster_set_foreign(&k, "c0");
    cluster_start(&k, IMPATIENT);
    int64_t pause = 1000;
    for (int i = 0; i < 4; i++) { /* it answers each probe, and does no task */
        char id[16];
        (void)snprintf(id, sizeof id, "t%d", i);
        cluster_post(&k, COORD_COLLECTOR, id);
        (void)worker_of(&k, id);
        k.workers[0].stuck = true;
        assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
        assert_int_equal(member(&k, "c0")->quarantine_ms, pause);
        int64_t began = coord_sim_now_ms(k.sim);
        k.workers[0].stuck = false;
        assert_true(cluster_await_worker(&k, "c0", "free", LONG_MS));
        assert_in_range(coord_sim_now_ms(k.sim) - began, pause, pause + 50);
        pause *= 2;
    }
    assert_int_equal(cluster_count(&k, "fail", NULL), 4);
    cluster_post(&k, COORD_COLLECTOR, "good");
    assert_true(cluster_await(&k, "finish", "good", 1, LONG_MS));
    assert_int_equal(member(&k, "c0")->quarantine_ms, 0);
    cluster_done(&k);
}

static void a_report_that_comes_late_is_dropped(void **state)
{
    static cluster k;
    (void)state;
    begin_stuck(&k, 6, 2);
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    int events = k.event_count;
    k.workers[0].stuck = false;
    assert_true(cluster_await_worker(&k, "c0", "free", LONG_MS));
    assert_int_equal(k.event_count, events);
    assert_true(k.c->master->late_results > 0);
    cluster_done(&k);
}

static void a_quarantined_worker_that_dies_starts_anew_without_debts(void **state)
{
    static cluster k;
    (void)state;
    begin_stuck(&k, 7, 1);
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    cluster_run(&k, 40000);
    assert_string_equal(member(&k, "c0")->owed, "collector_close_task");
    k.workers[0].stuck = false;
    cluster_crash(&k, "c0");
    assert_true(cluster_await_worker(&k, "c0", "away", LONG_MS));
    assert_null(member(&k, "c0")->owed);
    cluster_check(&k);
    (void)memset(k.workers[0].log, 0, sizeof k.workers[0].log);
    cluster_revive(&k, "c0");
    assert_true(cluster_await_worker(&k, "c0", "free", 5000));
    assert_string_equal(k.workers[0].log, "r"); /* no close for what it never began */
    cluster_check(&k);
    cluster_done(&k);
}

static void quarantined_workers_are_nobody_that_a_task_could_move_to(void **state)
{
    static cluster k;
    (void)state;
    begin_stuck(&k, 8, 2);
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    assert_true(cluster_await(&k, "finish", "t", 1, LONG_MS));
    k.workers[1].samples = 1000;
    cluster_post(&k, COORD_COLLECTOR, "u");
    assert_string_equal(worker_of(&k, "u"), "c1");
    cluster_crash(&k, "c1");
    assert_true(cluster_await(&k, "fail", "u", 1, LONG_MS));
    assert_int_equal(cluster_count(&k, "restart", "u"), 0);
    const char *told = cluster_last(&k, "fail", "u")->detail;
    assert_memory_equal(told, "7 task 'u' at 'c1': lost its worker: ", 37);
    cluster_done(&k);
}

/* ---- starts ---- */

static void a_start_that_is_never_reported_or_never_taken_moves_the_task(void **state)
{
    static cluster k;
    (void)state;
    for (int busy = 0; busy <= 1; busy++) {
        cluster_init(&k, 9, 2, 0);
        cluster_set_foreign(&k, "c0");
        cluster_set_foreign(&k, "c1");
        cluster_start(&k, "\"start_timeout_s\": 2, \"request_retries\": 0, "
                          "\"resource_manager\": \"least_loaded\",");
        cluster_worker *first = cluster_find(&k, "c0");
        if (busy) { /* with a task of nobody */
            cluster_set_foreign(&k, "c0");
            first->stuck = true;
            coord_task *foreign = NULL;
            coord_error err;
            assert_int_equal(coordi_task_create(member(&k, "c0")->connection,
                                                coord_text_of("{\"name\": \"resource\"}"),
                                                &foreign, &err),
                             COORD_OK);
            assert_int_equal(coord_task_start(foreign, 1000, 0, &err), COORD_OK);
            coord_task_unref(foreign);
        }
        first->stuck = true;
        char who[COORD_ID_SIZE];
        for (int i = 0; i < 2; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "t%d", i);
            assert_int_equal(
                comm_coordinator_send_collector_task(k.c, cluster_task(id), who, NULL),
                COORD_OK);
            assert_string_equal(who, "c1");
            assert_true(cluster_await(&k, "finish", id, 1, LONG_MS));
            assert_int_equal(cluster_count(&k, "restart", id), 0); /* none had begun */
        }
        assert_string_equal(cluster_worker_state(&k, "c0"), "quarantined");
        assert_int_equal(member(&k, "c0")->why.status,
                         busy ? COORD_ERR_BUSY : COORD_ERR_TIMEOUT);
        first->stuck = false;
        assert_true(cluster_await_worker(&k, "c0", "free", LONG_MS));
        /* A start that was taken has begun by now, and is closed. */
        assert_string_equal(first->log, busy ? "rrr" : "rscr");
        cluster_done(&k);
    }
}

static void a_worker_that_refuses_all_does_not_eat_the_queue_up(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 10, 1, 0);
    k.workers[0].fail_starts = 1000;
    cluster_start(&k, "");
    for (int i = 0; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%d", i);
        cluster_post(&k, COORD_COLLECTOR, id);
    }
    assert_true(cluster_await_worker(&k, "c0", "quarantined", 1000));
    assert_int_equal(k.workers[0].starts, 3);
    expect_status(&k, "\"reason\": \"refused_start\"");
    assert_non_null(
        strstr(member(&k, "c0")->why.text, "'c0' did not start the last 3 tasks"));
    assert_non_null(strstr(member(&k, "c0")->why.cause, "no such policy"));
    cluster_run(&k, 10000); /* one more after 1, 2, 4 s */
    assert_int_equal(k.workers[0].starts, 6);
    assert_int_equal(cluster_count(&k, "fail", NULL), 6);
    assert_true(connected(&k, "c0"));
    k.workers[0].fail_starts = 0;
    assert_int_equal(comm_coordinator_wait(k.c, LONG_MS, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", NULL), 4);
    assert_int_equal(member(&k, "c0")->failed_starts, 0);
    assert_int_equal(member(&k, "c0")->quarantine_ms, 0);
    cluster_done(&k);
}

static void start_names_workers_that_are_quarantined_and_why(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    cluster_init(&k, 11, 2, 0);
    cluster_set_foreign(&k, "c0");
    k.workers[0].stuck = true;
    cluster_create(&k, "\"max_retry_second\": 20,");
    assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
    assert_non_null(strstr(err.text, "collector 'c0' at 10.0.1.1:22270 (quarantined: no "
                                     "progress: 'c0' accepted resource and reported "
                                     "nothing within 10 s (request_timeout_s))"));
    assert_null(strstr(err.text, "c1"));
    cluster_check(&k);
    k.workers[0].stuck = false;
    assert_true(cluster_await_worker(&k, "c0", "free", 7000));
    cluster_done(&k);
}

typedef struct starter {
    cluster *k;
    coord_status status;
} starter;

static void start_in_thread(void *user)
{
    starter *s = user;
    s->status = comm_coordinator_start(s->k->c, NULL);
}

/* While a start waits, the pauses do not grow: each probe may be what it waits for. */
static void a_start_gets_a_worker_soon_after_it_is_free(void **state)
{
    static cluster k;
    starter s = {&k, COORD_AGAIN};
    coord_sim_thread *thread;
    (void)state;
    cluster_init(&k, 12, 1, 0);
    cluster_set_foreign(&k, "c0");
    k.workers[0].stuck = true; /* as if it were still at a task of an earlier run */
    cluster_create(&k, "");
    assert_int_equal(coord_sim_thread_start(k.sim, start_in_thread, &s, &thread, NULL),
                     COORD_OK);
    cluster_run(&k, 60000);
    assert_string_equal(cluster_worker_state(&k, "c0"), "quarantined");
    k.workers[0].stuck = false;
    assert_int_equal(coord_sim_thread_join(thread, 2100, NULL), COORD_OK);
    assert_int_equal(s.status, COORD_OK);
    cluster_done(&k);
}

/* ---- ends ---- */

/* It hears that nobody waits any more. One that heeds that is used again at once. */
static void a_libcoord_worker_is_told_to_stop(void **state)
{
    static cluster k;
    (void)state;
    for (int obeys = 0; obeys <= 1; obeys++) {
        cluster_init(&k, 13, 1, 0);
        cluster_start(&k, IMPATIENT);
        k.workers[0].obeys = obeys;
        cluster_post(&k, COORD_COLLECTOR, "t");
        (void)worker_of(&k, "t");
        k.workers[0].stuck = true;
        assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
        if (!obeys) {
            cluster_run(&k, 300000);
            assert_string_equal(cluster_worker_state(&k, "c0"), "quarantined");
            k.workers[0].stuck = false;
        }
        assert_true(cluster_await_worker(&k, "c0", "free", obeys ? 10000 : LONG_MS));
        assert_int_equal(k.c->counters.workers_lost, 0);
        cluster_done(&k);
    }
}

static void close_says_goodbye_to_quarantined_workers(void **state)
{
    static cluster k;
    (void)state;
    begin_stuck(&k, 14, 1);
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    cluster_run(&k, 1500);
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 0, 100);
    cluster_run(&k, 100);
    assert_false(connected(&k, "c0"));
    cluster_done(&k);
}

static void a_coordinator_can_be_destroyed_around_a_quarantined_worker(void **state)
{
    static cluster k;
    (void)state;
    begin_stuck(&k, 15, 1);
    assert_true(cluster_await_worker(&k, "c0", "quarantined", LONG_MS));
    comm_coordinator_destroy(k.c);
    k.c = NULL;
    k.closed = true;
    cluster_run(&k, 60000);
    cluster_done(&k);
}

/* ---- whatever happens ---- */

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

static void any_allocation_may_fail_around_a_quarantine(void **state)
{
    static cluster k;
    shortage m = {.hit = true};
    (void)state;
    for (int n = 0; m.hit; n++) {
        m = (shortage){.left = n};
        begin_stuck(&k, 16, 1);
        coordi_alloc_set_fault(run_out, &m);
        (void)(cluster_await_worker(&k, "c0", "quarantined", 10000));
        k.workers[0].stuck = false;
        (void)(cluster_await_worker(&k, "c0", "free", 10000));
        coordi_alloc_set_fault(NULL, NULL);
        if (!cluster_await_worker(&k, "c0", "free", 60000)) {
            fail_msg("allocation %d: c0 is %s", n, cluster_worker_state(&k, "c0"));
        }
        assert_int_equal(cluster_ends(&k, "t"), 1);
        cluster_check(&k);
        cluster_done(&k);
    }
}

static uint64_t seed_under_way;
static uint64_t chance;

static uint64_t draw(uint64_t count)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return (chance >> 11) % count;
}

/* Workers get stuck, come loose and die, tasks come and are canceled: the pools add up at
 * every look, each task has one end, and all workers are free at last. */
static void tell(uint64_t seed)
{
    static cluster k;
    int posted = 0;
    chance = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    cluster_init(&k, seed, 3, 0);
    for (int i = 0; i < 3; i++) {
        k.workers[i].work_ms = (int64_t)draw(3) * 100;
        k.workers[i].obeys = draw(2) == 0;
        if (draw(3) != 0) {
            cluster_set_foreign(&k, k.workers[i].id);
        }
    }
    cluster_start(&k, seed % 2 == 0
                          ? IMPATIENT
                          : "\"collector_task_timeout_s\": 3, "
                            "\"request_timeout_s\": 2, \"start_timeout_s\": 4,");
    for (int step = 0; step < 80; step++) {
        cluster_worker *w = &k.workers[draw(3)];
        char id[16];
        w->stuck = draw(3) == 0;
        if (draw(3) == 0) {
            w->fail_starts = (int)draw(5);
        }
        if (draw(12) == 0) {
            w->stuck = false;
            cluster_crash(&k, w->id);
            cluster_run(&k, (int64_t)draw(20000));
            cluster_check(&k);
            cluster_revive(&k, w->id);
        }
        if (posted < 20 && draw(2) == 0) {
            (void)snprintf(id, sizeof id, "t%d", posted++);
            cluster_post(&k, COORD_COLLECTOR, id);
        }
        if (posted > 0 && draw(4) == 0) {
            (void)snprintf(id, sizeof id, "t%d", (int)draw((uint64_t)posted));
            coord_status rc = comm_coordinator_cancel_task(k.c, id, NULL);
            assert_true(rc == COORD_OK || cluster_ends(&k, id) == 1);
        }
        cluster_run(&k, (int64_t)draw(draw(4) == 0 ? 20000 : 1500));
        cluster_check(&k);
    }
    for (int i = 0; i < 3; i++) {
        k.workers[i].stuck = false;
        k.workers[i].fail_starts = 0;
    }
    assert_int_equal(comm_coordinator_wait(k.c, 2 * LONG_MS, NULL), COORD_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(cluster_await_worker(&k, k.workers[i].id, "free", LONG_MS));
    }
    cluster_check(&k);
    for (int i = 0; i < posted; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%d", i);
        assert_int_equal(cluster_ends(&k, id), 1);
    }
    cluster_done(&k);
}

static void the_pools_add_up_whatever_workers_do(void **state)
{
    const char *only = getenv("SEED");
    const char *count = getenv("SEEDS");
    uint64_t first = only == NULL ? 1 : strtoull(only, NULL, 10);
    uint64_t last = only != NULL ? first : count != NULL ? strtoull(count, NULL, 10) : 60;
    (void)state;
    for (uint64_t seed = first; seed <= last; seed++) {
        seed_under_way = seed;
        tell(seed);
    }
    seed_under_way = 0;
}

static int name_the_seed(void **state)
{
    (void)state;
    if (seed_under_way != 0) {
        print_error("again: SEED=%llu TRACE=1 %s\n", (unsigned long long)seed_under_way,
                    program_invocation_name);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_reports_nothing_is_quarantined),
        cmocka_unit_test(probes_come_less_and_less_often),
        cmocka_unit_test(the_close_comes_before_the_worker_is_used_again),
        cmocka_unit_test(a_close_that_was_taken_and_never_run_is_not_sent_twice),
        cmocka_unit_test(the_pause_begins_anew_only_when_a_task_is_done),
        cmocka_unit_test(a_report_that_comes_late_is_dropped),
        cmocka_unit_test(a_quarantined_worker_that_dies_starts_anew_without_debts),
        cmocka_unit_test(quarantined_workers_are_nobody_that_a_task_could_move_to),
        cmocka_unit_test(a_start_that_is_never_reported_or_never_taken_moves_the_task),
        cmocka_unit_test(a_worker_that_refuses_all_does_not_eat_the_queue_up),
        cmocka_unit_test(start_names_workers_that_are_quarantined_and_why),
        cmocka_unit_test(a_start_gets_a_worker_soon_after_it_is_free),
        cmocka_unit_test(a_libcoord_worker_is_told_to_stop),
        cmocka_unit_test(close_says_goodbye_to_quarantined_workers),
        cmocka_unit_test(a_coordinator_can_be_destroyed_around_a_quarantined_worker),
        cmocka_unit_test(any_allocation_may_fail_around_a_quarantine),
        cmocka_unit_test_teardown(the_pools_add_up_whatever_workers_do, name_the_seed),
    };
    return cmocka_run_group_tests_name("quarantine", tests, NULL, NULL);
}
