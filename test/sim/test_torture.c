/* Memory runs out at every single moment (G8): whole lives of a coordinator with its
 * workers, of a slave, of a launcher and of a JSON tree are lived again and again, and
 * each time the next allocation fails, alone or with those after it. Every call answers
 * with a status, every task that was accepted has its one end, nobody hangs, nothing is
 * left.
 *
 * FIRST=n BURST=n TRACE=1 lives one of them alone. */
#include "coord/json.h"
#include "coord/launcher.h"
#include "support/cluster.h"
#include "support/heap.h"
#include "support/sanitized.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = 1 << 30, LIVES_MAX = 100000, MINUTE_MS = 60000 };

/* How many allocations fail, one after the other. */
static const uint64_t BURSTS[] = {1, 2, 8, ALL};

/* Sanitizers take their time: they see every so-manieth moment of the longer lives. */
enum { STRIDE = SANITIZED(1, 11, 31) };

static uint64_t first; /* of the life under way */
static uint64_t burst;

static const char *asked(const char *name)
{
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? NULL : text;
}

/* Lives it with ever later failures, until there are none any more. */
static void torture(bool (*live)(void), uint64_t stride)
{
    if (asked("FIRST") != NULL) {
        first = strtoull(asked("FIRST"), NULL, 10);
        burst = asked("BURST") == NULL ? 1 : strtoull(asked("BURST"), NULL, 10);
        (void)live();
        return;
    }
    for (size_t i = 0; i < sizeof BURSTS / sizeof BURSTS[0]; i++) {
        burst = BURSTS[i];
        first = 0;
        while (live()) {
            first += stride;
            assert_true(first < LIVES_MAX);
        }
        assert_true(first > 10); /* so many at least that it was worth it */
    }
    burst = 0;
}

static int name_the_moment(void **state)
{
    (void)state;
    (void)heap_mend();
    if (burst != 0) {
        print_error("again: FIRST=%llu BURST=%llu\n", (unsigned long long)first,
                    (unsigned long long)burst);
    }
    return 0;
}

/* An answer that a call may give in need; `also`: what else it may say. */
static void expect(const char *what, coord_status rc, coord_status also)
{
    if (rc != COORD_OK && rc != COORD_ERR_NOMEM && rc != also) {
        fail_msg("%s answered \"%s\"", what, coord_status_str(rc));
    }
}

/* ---- a coordinator with a collector and a learner ---- */

static cluster k;
static bool moves_about;    /* of the membership, too */
static char accepted[4][8]; /* ids of tasks */
static int accepted_count;

static bool all_have_ended(void *user)
{
    (void)user;
    for (int i = 0; i < accepted_count; i++) {
        if (cluster_ends(&k, accepted[i]) == 0) {
            return false;
        }
    }
    return true;
}

static void note_accepted(const char *id)
{
    (void)snprintf(accepted[accepted_count++], sizeof accepted[0], "%s", id);
}

static void give_tasks(void)
{
    coord_status rc = comm_coordinator_post_collector_task(k.c, cluster_task("c"), NULL);
    expect("post", rc, COORD_OK);
    if (rc == COORD_OK) {
        note_accepted("c");
    }
    rc = comm_coordinator_post_learner_task(k.c, cluster_task("l"), NULL);
    expect("post", rc, COORD_OK);
    if (rc == COORD_OK) {
        note_accepted("l");
    }
    rc = comm_coordinator_send_collector_task(k.c, cluster_task("s"), NULL, NULL);
    if (rc == COORD_OK) {
        note_accepted("s");
    } else if (rc == COORD_ERR_STATE || rc == COORD_ERR_ARG) {
        fail_msg("send answered \"%s\"", coord_status_str(rc));
    }
}

/* The collector goes and comes back, whatever it is at. */
static void come_and_go(comm_coordinator_removal how)
{
    const cluster_worker *w = cluster_find(&k, "c0");
    coord_status rc =
        comm_coordinator_remove_worker(k.c, COORD_COLLECTOR, "c0", how, NULL);
    expect("remove_worker", rc, COORD_ERR_STATE);
    if (rc != COORD_OK) {
        return;
    }
    rc = comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "c0", w->host, 22270, NULL);
    expect("add_worker", rc, COORD_OK);
    if (rc != COORD_OK && burst != ALL) {
        (void)heap_mend();
        rc =
            comm_coordinator_add_worker(k.c, COORD_COLLECTOR, "c0", w->host, 22270, NULL);
        assert_int_equal(rc, COORD_OK);
    }
}

static void ask_around(void)
{
    char *status = NULL;
    expect("status", comm_coordinator_status(k.c, &status, NULL), COORD_OK);
    coord_free(status);
    expect("data_ready", comm_coordinator_data_ready(k.c, "b", NULL), COORD_OK);
    expect("cancel", comm_coordinator_cancel_task(k.c, "none", NULL),
           COORD_ERR_NOT_FOUND);
    expect("wait", comm_coordinator_wait(k.c, 100, NULL), COORD_ERR_TIMEOUT);
    expect("wait_task", comm_coordinator_wait_task(k.c, "c", 100, NULL),
           COORD_ERR_TIMEOUT);
}

/* Starts, if need be once more when memory is there again. */
static void start(void)
{
    coord_status rc = comm_coordinator_start(k.c, NULL);
    expect("start", rc, COORD_ERR_TIMEOUT);
    if (rc != COORD_OK && burst != ALL) {
        (void)heap_mend();
        assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
    }
}

static void work(void)
{
    start();
    if (moves_about) {
        come_and_go(COMM_COORDINATOR_DRAIN);
    }
    give_tasks();
    if (moves_about) {
        come_and_go(COMM_COORDINATOR_DROP);
    }
    ask_around();
    if (coord_sim_run_until(k.sim, 5 * MINUTE_MS, all_have_ended, NULL, NULL) !=
        COORD_OK) {
        fail_msg("tasks do not end: %s %s %s", cluster_task_state(&k, "c"),
                 cluster_task_state(&k, "l"), cluster_task_state(&k, "s"));
    }
    for (int i = 0; i < k.worker_count && burst != ALL; i++) {
        if (!cluster_await_worker(&k, k.workers[i].id, "free", 2 * MINUTE_MS)) {
            fail_msg("worker %s stays %s", k.workers[i].id,
                     cluster_worker_state(&k, k.workers[i].id));
        }
    }
    coord_status rc = cluster_close(&k, NULL);
    expect("close", rc, COORD_ERR_TIMEOUT);
}

static void check_ends(void)
{
    for (int i = 0; i < accepted_count; i++) {
        assert_int_equal(cluster_ends(&k, accepted[i]), 1);
    }
    assert_int_equal(cluster_ends(&k, NULL), accepted_count);
}

#define CONFIG "\"queue_timeout_s\": 10, \"start_timeout_s\": 5, \"max_retry_second\": 5,"

/* Whatever had no end in the life that is over has one in the next. */
static void live_on(const char *config)
{
    k.closed = false;
    cluster_start(&k, config);
    assert_int_equal(comm_coordinator_wait(k.c, 5 * MINUTE_MS, NULL), COORD_OK);
    for (int i = 0; i < accepted_count; i++) {
        assert_in_range(cluster_ends(&k, accepted[i]), 1, 2);
    }
}

static bool live(const char *config, bool ledger)
{
    accepted_count = 0;
    cluster_init(&k, 1, 1, 1);
    k.data_in_buffer = 1;
    heap_fail(first, burst);
    coord_status rc = cluster_try_create(&k, config, NULL);
    expect("create", rc, COORD_OK);
    if (rc == COORD_OK) {
        work();
        comm_coordinator_destroy(k.c); /* needs no memory */
        k.c = NULL;
        k.closed = true;
    }
    cluster_run(&k, 1000);
    bool hit = heap_mend();
    if (ledger) {
        live_on(config);
    } else {
        check_ends();
    }
    cluster_done(&k);
    return hit;
}

static bool live_as_coordinator(void)
{
    moves_about = true;
    bool hit = live(CONFIG, false);
    moves_about = false;
    return hit;
}

static bool live_with_ledger(void)
{
    return live(CONFIG "\"ledger\": \"/ledger\",", true);
}

static void a_coordinator_bears_every_lack_of_memory(void **state)
{
    (void)state;
    torture(live_as_coordinator, STRIDE);
}

static void a_ledger_bears_every_lack_of_memory(void **state)
{
    (void)state;
    torture(live_with_ledger, STRIDE);
}

/* ---- a slave with hooks ---- */

static const char TOKEN[] = "slave-torture-token";
static const char ID_A[] = "aaaaaaaa-0000-4000-8000-000000000000";
static const char ID_B[] = "bbbbbbbb-0000-4000-8000-000000000000";

static int taken(wire_rig *r, peer *p, const char *id)
{
    const peer_reply *reply = peer_new_task(p, "10.0.0.1", r->port, TOKEN, id, "{}");
    return reply->code == COORDI_CODE_OK && reply->http_status == 200;
}

static bool try_slave(wire_rig *r)
{
    coord_status rc = wire_try_slave(r, NULL);
    expect("slave", rc, COORD_OK);
    return rc == COORD_OK;
}

static bool live_as_slave(void)
{
    static wire_rig r;
    int tasks = 0;
    wire_open(&r, 1);
    heap_watch();
    peer *p = wire_peer(&r, true);
    heap_fail(first, burst);
    if (try_slave(&r)) {
        (void)peer_connect(p, "10.0.0.1", r.port, TOKEN);
        tasks += taken(&r, p, ID_A);
        wire_run(&r, 4000); /* a beat */
        (void)peer_ask(p, "10.0.0.1", r.port, "DELETE", "/disconnect", TOKEN, "0",
                       "{\"data\": {}}");
        (void)peer_connect(p, "10.0.0.1", r.port, TOKEN);
        r.work_ms = 500;
        tasks += taken(&r, p, ID_B);
        expect("close", coord_slave_close(r.slave, MINUTE_MS, NULL), COORD_OK);
        coord_slave_destroy(r.slave);
        r.slave = NULL;
        wire_run(&r, 2000);
        assert_int_equal(r.works, tasks); /* no other was taken */
    }
    bool hit = heap_mend();
    int reported =
        peer_count(p, "/slave/task/complete") + peer_count(p, "/slave/task/fail");
    assert_in_range(reported, 0, r.works);
    wire_close(&r);
    return hit;
}

static void a_slave_bears_every_lack_of_memory(void **state)
{
    (void)state;
    torture(live_as_slave, STRIDE);
}

/* ---- a launcher ---- */

typedef struct launch {
    coord_sim *sim;
    coord_loop *loop;
    coord_launcher *launcher;
    int lines;
    int exits;
} launch;

static void on_line(coord_launcher *launcher, const coord_launcher_line *line, void *user)
{
    (void)launcher;
    (void)line;
    ((launch *)user)->lines++;
}

static void on_exit_of(coord_launcher *launcher, const char *name,
                       const coord_launcher_exit *how, void *user)
{
    (void)launcher;
    (void)name;
    (void)how;
    ((launch *)user)->exits++;
}

static void open_launch(launch *l)
{
    coord_sim_program program;
    memset(l, 0, sizeof *l);
    heap_watch();
    assert_int_equal(coord_sim_create(NULL, &l->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(l->sim, "node", &l->loop, NULL), COORD_OK);
    coord_sim_program_init(&program, sizeof program);
    program.name = "worker";
    program.output = "one\ntwo\n";
    assert_int_equal(coord_sim_add_program(l->sim, &program, NULL), COORD_OK);
}

static coord_status launch_one(launch *l, const char *name)
{
    const char *argv[] = {"worker", "--seed", "1", NULL};
    const char *changes[] = {"ROLE=collector", NULL};
    coord_launcher_spec spec;
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = name;
    spec.argv = argv;
    spec.environment = changes;
    spec.on_line = on_line;
    spec.on_exit = on_exit_of;
    spec.user = l;
    coord_status rc = coord_launcher_start(l->launcher, &spec, NULL, NULL);
    expect("launcher start", rc, COORD_OK);
    return rc;
}

static bool live_as_launcher(void)
{
    launch l;
    int started = 0;
    coord_launcher_options options;
    coord_launcher_options_init(&options, sizeof options);
    open_launch(&l);
    options.loop = l.loop;
    heap_fail(first, burst);
    coord_status rc = coord_launcher_create(&options, &l.launcher, NULL);
    expect("launcher", rc, COORD_OK);
    if (rc == COORD_OK) {
        started += launch_one(&l, "a") == COORD_OK;
        started += launch_one(&l, "b") == COORD_OK;
        rc = coord_launcher_stop(l.launcher, "a", 1000, NULL);
        expect("stop", rc, COORD_ERR_NOT_FOUND);
        rc = coord_launcher_wait(l.launcher, "b", 1000, NULL, NULL);
        expect("wait", rc, rc == COORD_ERR_TIMEOUT ? rc : COORD_ERR_NOT_FOUND);
        rc = coord_launcher_close(l.launcher, MINUTE_MS, NULL);
        expect("close", rc, COORD_OK);
    }
    bool hit = heap_mend();
    if (l.launcher != NULL && rc != COORD_OK) {
        assert_int_equal(coord_launcher_close(l.launcher, MINUTE_MS, NULL), COORD_OK);
    }
    assert_int_equal(l.exits, started);
    coord_launcher_destroy(l.launcher);
    coord_loop_destroy(l.loop);
    coord_sim_destroy(l.sim);
    heap_expect_nothing_left("a launcher");
    return hit;
}

static void a_launcher_bears_every_lack_of_memory(void **state)
{
    (void)state;
    torture(live_as_launcher, 1);
}

/* ---- trees of jansson ---- */

static bool live_as_tree(void)
{
    static const char TEXT[] = "{\"a\": [1, 2.5, \"text\", {\"b\": {}}, [[]], NaN, null, "
                               "18446744073709551616], \"c\": \"d\", \"e\": true}";
    json_t *tree = NULL;
    json_t *part = NULL;
    char *text = NULL;
    const char *string = NULL;
    heap_watch();
    heap_fail_jansson(first, burst);
    coord_status rc = coord_json_parse(coord_text_of(TEXT), &tree, NULL);
    expect("parse", rc, COORD_OK);
    if (rc == COORD_OK) {
        expect("get", coord_json_get(tree, "a[3].b", &part, NULL), COORD_OK);
        expect("get", coord_json_get_string(tree, "c", &string, NULL), COORD_OK);
        /* Jansson does not tell what a failure to write was for. */
        expect("text", coord_json_text(tree, &text, NULL, NULL), COORD_ERR_ARG);
    }
    bool hit = heap_mend_jansson();
    coord_free(text);
    json_decref(tree);
    assert_int_equal(heap_jansson_blocks(), 0);
    heap_expect_nothing_left("a tree");
    return hit;
}

static void trees_of_jansson_bear_every_lack_of_memory(void **state)
{
    (void)state;
    torture(live_as_tree, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_coordinator_bears_every_lack_of_memory,
                                  name_the_moment),
        cmocka_unit_test_teardown(a_ledger_bears_every_lack_of_memory, name_the_moment),
        cmocka_unit_test_teardown(a_slave_bears_every_lack_of_memory, name_the_moment),
        cmocka_unit_test_teardown(a_launcher_bears_every_lack_of_memory, name_the_moment),
        cmocka_unit_test_teardown(trees_of_jansson_bear_every_lack_of_memory,
                                  name_the_moment),
    };
    return cmocka_run_group_tests_name("torture", tests, NULL, NULL);
}
