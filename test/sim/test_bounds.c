/* Nothing grows (R14, R15): neither with the number of tasks, nor with what peers do, nor
 * with how often a host asks. A million tasks, or fewer under a sanitizer. */
#include "coord.h"
#include "coordinator/coordinator.h"
#include "interaction/master.h"
#include "interaction/slave.h"
#include "support/cluster.h"
#include "support/heap.h"
#include "support/one_core.h"
#include "support/real_team.h"
#include "support/sanitized.h"
#include "support/simple.h"
#include "support/wire_rig.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The allocator of a sanitizer can't be asked what is in use; to watch each block takes
 * time, of which a million tasks leave none. */
enum {
    TASKS = SANITIZED(1000000, 6000, 2000),
    TURNS = SANITIZED(300, 150, 50),
    WATCHED = SANITIZED(false, true, true)
};
enum { WORKERS = 8, PORT = 22270, LONG_MS = 1 << 30 };

/* ---- a million tasks ---- */

/* What the process has at some moment. */
typedef struct footprint {
    int64_t bytes; /* of the library, or of the whole process */
    int threads;
    int descriptors;
} footprint;

typedef struct crowd {
    coord_sim *sim;
    coord_loop *loop;
    coord_collector *workers[WORKERS];
    coord_loop *homes[WORKERS];
    CommCoordinator *c;
    int tasks; /* in all */
    int posted;
    int ended;
    int failed;
    footprint settled;
} crowd;

static footprint look(void)
{
    return (footprint){WATCHED ? heap_in_use().bytes : (int64_t)mallinfo2().uordblks,
                       count_threads(), open_descriptors()};
}

static void post_next(crowd *t)
{
    char task[64];
    if (t->posted == t->tasks) {
        return;
    }
    (void)snprintf(task, sizeof task, "{\"task_id\": \"task-%d\"}", t->posted++);
    t->failed +=
        comm_coordinator_post_collector_task(t->c, coord_text_of(task), NULL) != COORD_OK;
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    crowd *t = user;
    (void)c;
    (void)task_id;
    (void)result;
    if (++t->ended == t->tasks / 4) {
        t->settled = look();
    }
    post_next(t);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    crowd *t = user;
    (void)c;
    (void)task_id;
    (void)why;
    t->failed++;
}

static void make_worker(crowd *t, int n)
{
    char host[32];
    coord_slave_options o;
    coord_collector_callbacks cb;
    (void)snprintf(host, sizeof host, "10.0.1.%d", n + 1);
    assert_int_equal(coord_sim_loop(t->sim, host, &t->homes[n], NULL), COORD_OK);
    coord_slave_options_init(&o, sizeof o);
    o.host = host;
    o.port = PORT;
    o.insecure = true;
    o.loop = t->homes[n];
    o.executor = COORD_EXECUTOR_INLINE;
    coord_collector_callbacks_init(&cb, sizeof cb);
    cb.start = simple_start;
    cb.data = simple_data;
    assert_int_equal(coord_collector_create(&o, &cb, &t->workers[n], NULL), COORD_OK);
}

static void make_coordinator(crowd *t, const char *more)
{
    char config[1024];
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    int at = snprintf(config, sizeof config,
                      "{\"host\": \"10.0.0.1\", \"insecure\": true, \"executor\": "
                      "\"inline\", %s \"collector\": {",
                      more);
    for (int i = 0; i < WORKERS; i++) {
        at += snprintf(config + at, sizeof config - (size_t)at,
                       "%s\"%d\": [\"c%d\", \"10.0.1.%d\", %d]", i == 0 ? "" : ", ", i, i,
                       i + 1, PORT);
    }
    (void)snprintf(config + at, sizeof config - (size_t)at, "}}");
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = simple_on_data;
    cb.deal_with_collector_judge_finish = simple_is_enough;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_task_fail = on_fail;
    cb.user = t;
    comm_coordinator_options_init(&o, sizeof o);
    o.config = config;
    o.callbacks = &cb;
    o.loop = t->loop;
    assert_int_equal(comm_coordinator_create(&o, &t->c, NULL), COORD_OK);
    assert_int_equal(comm_coordinator_start(t->c, NULL), COORD_OK);
}

/* What there is after a quarter of the tasks is all that there is at their end. */
static void expect_tasks_leave_nothing(int tasks, const char *config)
{
    static crowd t;
    memset(&t, 0, sizeof t);
    t.tasks = tasks;
    one_core();
    if (WATCHED) {
        heap_watch();
    }
    assert_int_equal(coord_sim_create(NULL, &t.sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(t.sim, "10.0.0.1", &t.loop, NULL), COORD_OK);
    for (int i = 0; i < WORKERS; i++) {
        make_worker(&t, i);
    }
    make_coordinator(&t, config);
    for (int i = 0; i < 2 * WORKERS; i++) { /* some always wait */
        post_next(&t);
    }
    assert_int_equal(comm_coordinator_wait(t.c, INT64_MAX, NULL), COORD_OK);
    assert_int_equal(t.failed, 0);
    assert_int_equal(t.ended, tasks);
    footprint last = look();
    assert_in_range(last.bytes, 0, t.settled.bytes + 65536);
    assert_int_equal(last.threads, t.settled.threads);
    assert_int_equal(last.descriptors, t.settled.descriptors);

    assert_int_equal(comm_coordinator_close(t.c, NULL), COORD_OK);
    comm_coordinator_destroy(t.c);
    for (int i = 0; i < WORKERS; i++) {
        coord_collector_destroy(t.workers[i]);
        coord_loop_destroy(t.homes[i]);
    }
    coord_loop_destroy(t.loop);
    coord_sim_destroy(t.sim);
    if (WATCHED) {
        heap_expect_nothing_left("many tasks");
    }
}

static void a_million_tasks_leave_everything_as_it_was(void **state)
{
    (void)state;
    expect_tasks_leave_nothing(TASKS, "");
}

/* It keeps the last so many, and forgets who they were before. */
static void tasks_of_a_ledger_leave_no_more_than_it_keeps(void **state)
{
    (void)state;
    expect_tasks_leave_nothing(TASKS < 20000 ? TASKS : 20000,
                               "\"ledger\": \"/ledger\", \"ledger_keep\": 100,");
}

/* ---- what goes on and on ---- */

/* Far more often than anybody keeps of it, and then once more as often: nothing more is
 * in use. */
static void expect_flat(void (*turn)(void *arg, int n), void *arg, int times)
{
    for (int i = 0; i < times; i++) {
        turn(arg, i);
    }
    int64_t before = heap_in_use().bytes;
    for (int i = times; i < 2 * times; i++) {
        turn(arg, i);
    }
    int64_t after = heap_in_use().bytes;
    if (after > before + 65536) { /* a map keeps its holes for some time */
        fail_msg("from %lld to %lld bytes in use", (long long)before, (long long)after);
    }
}

static void poll(void *arg, int n)
{
    cluster *k = arg;
    (void)n;
    assert_int_equal(comm_coordinator_wait(k->c, 1, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(comm_coordinator_wait_task(k->c, "t", 1, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(comm_coordinator_data_ready(k->c, "b", NULL), COORD_OK);
}

static void a_host_that_polls_leaves_nothing_behind(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    k.workers[0].work_ms = LONG_MS;
    cluster_start(&k, "\"start_timeout_s\": 86400,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    cluster_run(&k, 1000);
    expect_flat(poll, &k, TURNS);
    cluster_run(&k, LONG_MS); /* its work ends */
    cluster_done(&k);
}

static void fail_one(void *arg, int n)
{
    cluster *k = arg;
    char id[16];
    (void)snprintf(id, sizeof id, "t%d", n);
    cluster_post(k, COORD_COLLECTOR, id);
    assert_int_equal(comm_coordinator_cancel_task(k->c, id, NULL), COORD_OK);
    assert_int_equal(comm_coordinator_wait_task(k->c, id, 1000, NULL), COORD_OK);
}

/* Of tasks that failed some are remembered, up to a number that is reached. */
static void tasks_that_fail_leave_no_more_than_is_remembered(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    cluster_start(&k, "");
    expect_flat(fail_one, &k, 1300);
    cluster_done(&k);
}

static void join(void *arg, int n)
{
    (void)n;
    assert_int_equal(coord_task_join(arg, 1, NULL), COORD_ERR_TIMEOUT);
}

static void a_task_that_is_joined_again_and_again_leaves_nothing_behind(void **state)
{
    static wire_rig r;
    (void)state;
    wire_open(&r, 1);
    wire_master(&r, NULL);
    coord_connection *c = wire_connected(&r, "s", wire_peer(&r, true));
    coord_task *task = wire_task(&r, c, "{}");
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
    heap_watch();
    expect_flat(join, task, TURNS);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void live_a_day(void *arg, int n)
{
    (void)n;
    cluster_run(arg, 24 * 3600000 / 50);
}

/* One worker is away for days, the others idle. */
static void idle_days_leave_nothing_behind(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 2, 1);
    cluster_start(&k, "");
    cluster_crash(&k, "c1");
    expect_flat(live_a_day, &k, TURNS / 4);
    cluster_done(&k);
}

static void come_and_go(void *arg, int n)
{
    cluster *k = arg;
    (void)n;
    cluster_crash(k, "c0");
    cluster_run(k, 3000);
    cluster_revive(k, "c0");
    cluster_run(k, 20000); /* whether it was noticed or not: it is back */
}

static void beat_as_a_stranger(void *arg, int n)
{
    char token[32];
    (void)snprintf(token, sizeof token, "stranger-%d", n);
    assert_true(coordi_master_humours(arg, true, token));
}

/* Of each connection that is lost a token is kept, up to a number that is reached. */
static void workers_that_come_and_go_leave_nothing_more_behind(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    cluster_start(&k, "\"heartbeat_tolerance_s\": 5,");
    for (int i = 0; i < 3 * COORDI_GHOSTS_MAX; i++) {
        beat_as_a_stranger(k.c->master, i);
    }
    expect_flat(come_and_go, &k, TURNS);
    cluster_done(&k);
}

static void strangers_that_beat_leave_little_behind(void **state)
{
    static wire_rig r;
    (void)state;
    wire_open(&r, 1);
    wire_master(&r, NULL);
    heap_watch();
    r.master->strays_until_ms = coord_sim_now_ms(r.sim) + 1000;
    expect_flat(beat_as_a_stranger, r.master, 3 * COORDI_GHOSTS_MAX);
    assert_int_equal(r.master->ghost_count, COORDI_GHOSTS_MAX);
    wire_close(&r);
}

/* ---- peers that pile up ---- */

static int new_task(wire_rig *r, peer *p, int n)
{
    char id[COORDI_UUID_SIZE];
    (void)snprintf(id, sizeof id, "00000000-0000-4000-8000-0000000000%02d", n);
    return peer_new_task(p, "10.0.0.1", r->port, "token", id, "{}")->code;
}

static void a_slave_whose_results_nobody_takes_is_busy(void **state)
{
    static wire_rig r;
    (void)state;
    wire_open(&r, 1);
    peer *p = wire_peer(&r, true);
    wire_slave(&r, NULL);
    (void)peer_connect(p, "10.0.0.1", r.port, "token");
    peer_script(p, "/slave/task/complete", COORDI_DELIVERIES_MAX, 0, NULL);
    for (int i = 0; i < COORDI_DELIVERIES_MAX; i++) {
        assert_int_equal(new_task(&r, p, i), COORDI_CODE_OK);
        wire_run(&r, 100);
    }
    assert_int_equal(new_task(&r, p, 50), COORDI_CODE_SLAVE_BUSY);
    assert_int_equal(r.slave->delivery_count, COORDI_DELIVERIES_MAX);
    peer_answer(p, peer_get(p, "/slave/task/complete", 3), 200, PEER_YES);
    wire_run(&r, 100);
    assert_int_equal(new_task(&r, p, 51), COORDI_CODE_OK);
    wire_run(&r, 100);
    assert_int_equal(r.slave->delivery_count, COORDI_DELIVERIES_MAX - 1);
    wire_close(&r);
}

static int count_orphans(const coord_connection *c)
{
    int count = 0;
    for (const coordi_link *at = c->orphans.next; at != &c->orphans; at = at->next) {
        count++;
    }
    return count;
}

static void a_slave_that_reports_and_never_answers_holds_few_connections(void **state)
{
    static wire_rig r;
    (void)state;
    wire_open(&r, 1);
    wire_master(&r, NULL);
    peer *p = wire_peer(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    peer_script(p, "/task/new", -1, 0, NULL);
    int most = 0;
    for (int i = 0; i < 20; i++) {
        char id[COORDI_UUID_SIZE];
        coord_task *task = wire_task(&r, c, "{}");
        assert_int_equal(coord_task_start(task, 0, 0, NULL), COORD_OK);
        assert_true(peer_await(p, "/task/new", i + 1, 1000));
        peer_task_id(p, i, id);
        (void)peer_report(p, id, true, "{}");
        assert_int_equal(coord_task_join(task, 1000, NULL), COORD_OK);
        coord_task_unref(task);
        most = count_orphans(c) > most ? count_orphans(c) : most;
    }
    assert_in_range(most, 1, 4);
    assert_true(coord_connection_is_connected(c));
    coord_connection_destroy(c);
    wire_close(&r);
}

static void a_full_queue_bounds_the_status(void **state)
{
    enum { QUEUE = 2000 };
    static cluster k;
    char id[16];
    char *status = NULL;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    k.workers[0].work_ms = 1000;
    cluster_start(&k, "\"max_queued_tasks\": 2000,");
    for (int i = 0; i <= QUEUE; i++) { /* one runs */
        (void)snprintf(id, sizeof id, "t%d", i);
        cluster_post(&k, COORD_COLLECTOR, id);
    }
    assert_int_equal(
        comm_coordinator_post_collector_task(k.c, cluster_task("more"), NULL),
        COORD_ERR_BUSY);
    assert_int_equal(comm_coordinator_status(k.c, &status, NULL), COORD_OK);
    assert_in_range(strlen(status), QUEUE * 100, (QUEUE + 10) * 300);
    coord_free(status);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_int_equal(cluster_ends(&k, NULL), QUEUE + 1);
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_tasks_leave_everything_as_it_was),
        cmocka_unit_test(tasks_of_a_ledger_leave_no_more_than_it_keeps),
        cmocka_unit_test(a_host_that_polls_leaves_nothing_behind),
        cmocka_unit_test(tasks_that_fail_leave_no_more_than_is_remembered),
        cmocka_unit_test(a_task_that_is_joined_again_and_again_leaves_nothing_behind),
        cmocka_unit_test(idle_days_leave_nothing_behind),
        cmocka_unit_test(workers_that_come_and_go_leave_nothing_more_behind),
        cmocka_unit_test(strangers_that_beat_leave_little_behind),
        cmocka_unit_test(a_slave_whose_results_nobody_takes_is_busy),
        cmocka_unit_test(a_slave_that_reports_and_never_answers_holds_few_connections),
        cmocka_unit_test(a_full_queue_bounds_the_status),
    };
    return cmocka_run_group_tests_name("bounds", tests, NULL, NULL);
}
