/* The faults that the reference's CommCoordinator has, one test each: test/FAULTS says
 * what each of them was. */
#include "coordinator/coordinator.h"
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PORT = 22270 };

/* ---- a worker whose results a test writes ---- */

enum { RAW_RESOURCE, RAW_START, RAW_ASK, RAW_CLOSE, RAW_NAMES };
static const char *const NAMES[RAW_NAMES] = {"\"resource\"", "\"collector_start_task\"",
                                             "\"collector_data_task\"",
                                             "\"collector_close_task\""};

/* Stands in for a collector of the cluster. */
typedef struct raw_worker {
    cluster *k;
    cluster_worker *w;
    coord_slave *slave;
    const char *results[RAW_NAMES]; /* NULL: fails */
    bool hangs[RAW_NAMES];          /* ... or never ends, unless it is canceled */
    int counts[RAW_NAMES];
    bool refuses; /* every connect */
    int connects;
    int64_t connected_ms[64];
} raw_worker;

static coord_status raw_process(coord_slave *slave, coord_text data, coord_out *out,
                                void *user)
{
    raw_worker *raw = user;
    for (int i = 0; i < RAW_NAMES; i++) {
        if (memmem(data.ptr, data.len, NAMES[i], strlen(NAMES[i])) == NULL) {
            continue;
        }
        raw->counts[i]++;
        while (raw->hangs[i] && !coord_slave_task_canceled(slave) &&
               coord_sim_run_for(raw->k->sim, 100, NULL) == COORD_OK) {
        }
        return raw->results[i] == NULL
                   ? COORD_ERR_IO
                   : coord_out_json(out, coord_text_of(raw->results[i]), NULL);
    }
    return COORD_ERR_NOT_FOUND;
}

static coord_status raw_connect(coord_slave *slave, coord_text data, coord_out *out,
                                void *user)
{
    raw_worker *raw = user;
    (void)slave;
    (void)data;
    (void)out;
    if (raw->connects < 64) {
        raw->connected_ms[raw->connects] = coord_sim_now_ms(raw->k->sim);
    }
    raw->connects++;
    return raw->refuses ? COORD_ERR_BUSY : COORD_OK;
}

static void raw_begin(raw_worker *raw, cluster *k, const char *id)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    memset(raw, 0, sizeof *raw);
    raw->k = k;
    raw->w = cluster_find(k, id);
    raw->results[RAW_RESOURCE] = "{\"cpu\": 1}";
    raw->results[RAW_START] = "{\"message\": \"collector task has started\"}";
    raw->results[RAW_ASK] = "{\"collector_done\": true}";
    raw->results[RAW_CLOSE] = "{}";
    coord_collector_destroy(raw->w->collector);
    raw->w->collector = NULL;
    cluster_run(k, 1);
    o.host = raw->w->host;
    o.port = PORT;
    o.insecure = true;
    o.loop = raw->w->loop;
    o.process_task = raw_process;
    o.on_connect = raw_connect;
    o.user = raw;
    assert_int_equal(coord_slave_create(&o, &raw->slave, NULL), COORD_OK);
}

static void raw_done(raw_worker *raw)
{
    coord_slave_destroy(raw->slave);
    cluster_done(raw->k);
}

/* ---- looking ---- */

static int64_t now(const cluster *k)
{
    return coord_sim_now_ms(k->sim);
}

static int status_of(const cluster *k, const char *task_id)
{
    int status = -1;
    assert_int_equal(cluster_count(k, "fail", task_id), 1);
    (void)sscanf(cluster_last(k, "fail", task_id)->detail, "%d", &status);
    return status;
}

static void expect_finish(cluster *k, const char *task_id, int64_t limit_ms)
{
    assert_true(cluster_await(k, "finish", task_id, 1, limit_ms));
    assert_int_equal(cluster_ends(k, task_id), 1);
}

static coord_status send_task(cluster *k, const char *task_id, char *worker_id)
{
    return comm_coordinator_send_collector_task(k->c, cluster_task(task_id), worker_id,
                                                NULL);
}

/* ---- the faults ---- */

static void f_c1_tasks_do_not_go_to_dead_workers(void **state)
{
    static cluster k;
    char who[COORD_ID_SIZE];
    char id[8];
    (void)state;
    cluster_init(&k, 1, 2, 0);
    cluster_start(&k, "\"resource_manager\": \"least_loaded\",");
    cluster_crash(&k, "c0");
    for (int i = 0; i < 4; i++) { /* one of them finds out */
        (void)snprintf(id, sizeof id, "a%d", i);
        assert_int_equal(send_task(&k, id, who), COORD_OK);
        assert_string_equal(who, "c1");
        expect_finish(&k, id, 5000);
    }
    assert_string_equal(cluster_worker_state(&k, "c1"), "free");
    assert_string_not_equal(cluster_worker_state(&k, "c0"), "free");
    cluster_run(&k, 22000);
    cluster_check(&k);
    assert_int_equal(send_task(&k, "b", who), COORD_OK);
    assert_string_equal(who, "c1");
    cluster_revive(&k, "c0");
    assert_true(cluster_await_worker(&k, "c0", "free", 60000));
    cluster_done(&k);
}

/* It is told once and at the latest after the tolerance; the task goes to another worker
 * if there is one, and the dead one's place is not lost. */
static void f_c2_a_worker_that_dies_during_a_task_is_replaced(void **state)
{
    static cluster k;
    (void)state;
    for (int workers = 1; workers <= 2; workers++) {
        cluster_init(&k, 1, workers, 0);
        for (int i = 0; i < workers; i++) {
            k.workers[i].work_ms = 1000;
        }
        cluster_start(&k, "");
        cluster_post(&k, COORD_COLLECTOR, "t");
        assert_true(cluster_await(&k, "send_data", "t", 1, 10000));
        const char *who = cluster_last(&k, "start", "t")->detail;
        int64_t began = now(&k);
        cluster_crash(&k, who);
        assert_true(cluster_await(&k, workers == 1 ? "fail" : "restart", "t", 1, 60000));
        assert_in_range(now(&k) - began, 0, 19000);
        if (workers == 1) {
            assert_int_equal(status_of(&k, "t"), COORD_ERR_LOST);
        } else {
            expect_finish(&k, "t", 20000);
        }
        cluster_check(&k);
        cluster_revive(&k, who);
        assert_true(cluster_await_worker(&k, who, "free", 60000));
        cluster_post(&k, COORD_COLLECTOR, "next");
        expect_finish(&k, "next", 20000);
        assert_int_equal(cluster_ends(&k, "t"), 1);
        cluster_check(&k);
        cluster_done(&k);
    }
}

static void f_c3_close_reaches_all_workers_although_one_is_dead(void **state)
{
    static cluster k;
    (void)state;
    for (int idle = 0; idle <= 1; idle++) {
        cluster_init(&k, 1, 4, 0);
        cluster_find(&k, "c0")->work_ms = 60000;
        cluster_start(&k, "\"close_timeout_s\": 10,");
        if (idle == 0) {
            for (int i = 0; i < 4; i++) {
                cluster_post(&k, COORD_COLLECTOR,
                             (const char *[]){"a", "b", "c", "d"}[i]);
            }
            cluster_run(&k, 500);
        }
        uint16_t port = comm_coordinator_port(k.c);
        cluster_crash(&k, "c0");
        int64_t began = now(&k);
        coord_error err = {0};
        assert_int_equal(cluster_close(&k, &err), COORD_OK);
        assert_in_range(now(&k) - began, 0, 10000);
        cluster_run(&k, 100);
        for (int i = 1; i < 4; i++) {
            assert_false(
                coord_slave_is_connected(coord_collector_slave(k.workers[i].collector)));
        }
        coord_master_options o; /* the port is free again */
        coord_master *m = NULL;
        coord_master_options_init(&o, sizeof o);
        o.host = "10.0.0.1";
        o.insecure = true;
        o.loop = k.loop;
        o.port = port;
        assert_int_equal(coord_master_create(&o, &m, NULL), COORD_OK);
        coord_master_destroy(m);
        cluster_done(&k);
    }
}

static void f_c4_a_task_is_known_by_the_id_that_was_sent(void **state)
{
    static cluster k;
    static raw_worker raw;
    (void)state;
    cluster_init(&k, 1, 2, 0);
    raw_begin(&raw, &k, "c0");
    cluster_find(&k, "c1")->work_ms = 3000;
    raw.results[RAW_ASK] = "{\"collector_done\": true, \"task_id\": \"other\"}";
    raw.results[RAW_CLOSE] = "{\"task_id\": \"other\"}";
    cluster_start(&k, "\"resource_manager\": \"least_loaded\", \"max_reassign\": 0,");
    char who[COORD_ID_SIZE];
    const char *id = "t";
    if (send_task(&k, "other", who) == COORD_OK && strcmp(who, "c0") == 0) {
        expect_finish(&k, "other",
                      1000); /* the raw one took it: once more, the other way */
        assert_int_equal(send_task(&k, "other", who), COORD_OK);
    }
    assert_string_equal(who, "c1");
    int ended = cluster_ends(&k, "other");
    assert_int_equal(send_task(&k, id, who), COORD_OK);
    assert_string_equal(who, "c0");
    expect_finish(&k, id, 1000);
    assert_string_equal(cluster_last(&k, "judge", "t")->task, "t");
    assert_int_equal(cluster_ends(&k, "other"), ended);
    assert_true(cluster_await(&k, "finish", "other", ended + 1, 60000));
    /* A task that never gave a result leaves nothing behind. */
    raw.results[RAW_ASK] = NULL;
    cluster_find(&k, "c1")->fail_asks = 1000;
    cluster_post(&k, COORD_COLLECTOR, "none");
    assert_true(cluster_await(&k, "fail", "none", 1, 60000));
    int64_t began = now(&k);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_in_range(now(&k) - began, 0, 6000);
    raw_done(&raw);
}

static void f_c5_what_fails_is_asked_again_with_pauses_and_not_for_ever(void **state)
{
    static cluster k;
    static raw_worker raw;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    raw_begin(&raw, &k, "c0");
    raw.results[RAW_RESOURCE] = NULL;
    raw.results[RAW_ASK] = NULL;
    cluster_start(&k, "");
    cluster_run(&k, 5000);
    assert_in_range(raw.counts[RAW_RESOURCE], 1, 2);
    cluster_post(&k, COORD_COLLECTOR, "t");
    int64_t began = now(&k);
    assert_true(cluster_await(&k, "fail", "t", 1, 60000));
    assert_int_equal(raw.counts[RAW_ASK], 6); /* request_retries is 5 */
    assert_in_range(now(&k) - began, 1000 + 2000 + 3000 + 4000 + 5000, 15500);
    assert_int_equal(status_of(&k, "t"), COORD_ERR_TASK);
    cluster_run(&k, 5000);
    assert_in_range(raw.counts[RAW_RESOURCE], 2, 4);
    cluster_check(&k);
    raw_done(&raw);
}

static void f_c6_a_close_that_fails_or_hangs_finishes_the_task_once(void **state)
{
    static cluster k;
    static raw_worker raw;
    (void)state;
    for (int hangs = 0; hangs <= 1; hangs++) {
        cluster_init(&k, 1, 1, 0);
        raw_begin(&raw, &k, "c0");
        raw.results[RAW_CLOSE] = NULL;
        raw.hangs[RAW_CLOSE] = hangs;
        cluster_start(&k, "\"start_timeout_s\": 3,");
        cluster_post(&k, COORD_COLLECTOR, "t");
        expect_finish(&k, "t", hangs ? 15000 : 1000);
        assert_int_equal(raw.counts[RAW_CLOSE], 1);
        cluster_check(&k);
        raw.hangs[RAW_CLOSE] = false;
        assert_true(cluster_await_worker(&k, "c0", "free", 60000));
        cluster_post(&k, COORD_COLLECTOR, "next");
        expect_finish(&k, "next", 5000);
        raw_done(&raw);
    }
}

static void f_c7_what_is_never_answered_ends_start_and_send_in_time(void **state)
{
    static cluster k;
    static raw_worker raw;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    raw_begin(&raw, &k, "c0");
    raw.hangs[RAW_RESOURCE] = true;
    cluster_create(&k, "\"max_retry_second\": 5, \"start_timeout_s\": 5,");
    int64_t began = now(&k);
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_ERR_TIMEOUT);
    assert_in_range(now(&k) - began, 4990, 5100);
    raw.hangs[RAW_RESOURCE] = false;
    cluster_run(&k, 5000);
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
    raw.hangs[RAW_START] = true;
    began = now(&k);
    assert_int_equal(send_task(&k, "t", NULL), COORD_ERR_TIMEOUT);
    assert_in_range(now(&k) - began, 4990, 5100);
    assert_int_equal(k.event_count, 0);
    raw_done(&raw);
}

static void f_c8_absent_workers_are_waited_for_side_by_side(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 4, 0);
    cluster_crash(&k, "c1");
    cluster_crash(&k, "c2");
    cluster_set_foreign(&k, "c3");
    coord_sim_pause(k.sim, cluster_find(&k, "c3")->loop, true);
    cluster_create(&k, "\"max_retry_second\": 12,");
    int64_t began = now(&k);
    assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
    assert_in_range(now(&k) - began, 11990, 12100);
    cluster_post(&k, COORD_COLLECTOR, "t");
    expect_finish(&k, "t", 1000);
    /* What the silent one had been asked did not make it ours, or anybody's, for good. */
    coord_sim_pause(k.sim, cluster_find(&k, "c3")->loop, false);
    assert_true(cluster_await_worker(&k, "c3", "free", 60000));
    cluster_done(&k);
}

static void f_c9_start_waits_for_collectors_and_learners(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *absent = i == 0 ? "l0" : "c0";
        cluster_init(&k, 1, 1, 1);
        cluster_crash(&k, absent);
        cluster_create(&k, "\"max_retry_second\": 5,");
        assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT);
        assert_non_null(strstr(err.text, absent));
        cluster_revive(&k, absent);
        assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
        assert_string_equal(cluster_worker_state(&k, "l0"), "free");
        assert_string_equal(cluster_worker_state(&k, "c0"), "free");
        cluster_done(&k);
    }
}

static void f_c12_a_worker_that_fails_is_tried_ever_later(void **state)
{
    static cluster k;
    static raw_worker raw;
    (void)state;
    cluster_init(&k, 1, 2, 0);
    raw_begin(&raw, &k, "c0");
    raw.refuses = true;
    cluster_start(&k, "\"min_collectors\": 1, \"max_retry_second\": 10,");
    cluster_post(&k, COORD_COLLECTOR, "t");
    expect_finish(&k, "t", 1000);
    cluster_run(&k, 120000);
    assert_in_range(raw.connects, 12, 22);
    for (int i = 2; i < raw.connects; i++) {
        int64_t gap = raw.connected_ms[i] - raw.connected_ms[i - 1];
        assert_in_range(gap, raw.connected_ms[i - 1] - raw.connected_ms[i - 2] - 20,
                        30100);
    }
    assert_true(raw.connected_ms[raw.connects - 1] - raw.connected_ms[raw.connects - 2] >
                10000);
    raw.refuses = false;
    assert_true(cluster_await_worker(&k, "c0", "free", 35000));
    raw_done(&raw);
}

/* Lost under its task; taken away it is in test_faults_membership.c. */
static void f_c13_a_worker_that_leaves_under_its_task_is_counted_once(void **state)
{
    static cluster k;
    static const char *const STATES[] = {"sending", "judging", "asking"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        cluster_init(&k, 1, 2, 0);
        k.callback_ms = 30000; /* longer than the loss takes to be noticed */
        cluster_find(&k, "c0")->work_ms = cluster_find(&k, "c1")->work_ms = 30000;
        cluster_find(&k, "c0")->samples = cluster_find(&k, "c1")->samples =
            i == 1 ? 0 : 9;
        cluster_start(&k, "\"max_reassign\": 0,");
        cluster_post(&k, COORD_COLLECTOR, "t");
        assert_true(cluster_await_task(&k, "t", STATES[i], 120000));
        const coordi_run *run = coordi_map_get(&k.c->runs, "t");
        char who[COORD_ID_SIZE];
        (void)snprintf(who, sizeof who, "%.31s", run->worker_id);
        cluster_crash(&k, who);
        cluster_run(&k, 20000);
        cluster_check(&k);
        assert_true(cluster_await(&k, "fail", "t", 1, 60000));
        assert_int_equal(status_of(&k, "t"), COORD_ERR_LOST);
        cluster_run(&k, 31000);
        cluster_check(&k);
        assert_int_equal(cluster_ends(&k, "t"), 1);
        cluster_revive(&k, who);
        assert_true(cluster_await_worker(&k, "c0", "free", 60000));
        assert_true(cluster_await_worker(&k, "c1", "free", 60000));
        cluster_done(&k);
    }
}

static void f_c14_a_learner_waits_a_second_at_most(void **state)
{
    static cluster k;
    int64_t last = 0;
    (void)state;
    cluster_init(&k, 1, 0, 1);
    k.hold_data = true;
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "t");
    assert_true(cluster_await(&k, "get_data", "t", 1, 5000));
    cluster_run(&k, 60000);
    for (int i = 0; i < k.event_count; i++) {
        if (strcmp(k.events[i].name, "get_data") == 0) {
            assert_true(last == 0 || k.events[i].at_ms - last <= 1010);
            last = k.events[i].at_ms;
        }
    }
    assert_true(now(&k) - last <= 1010);
    assert_in_range(cluster_count(&k, "get_data", "t"), 60, 70);
    k.hold_data = false;
    k.data_in_buffer = 1;
    int64_t began = now(&k);
    assert_int_equal(comm_coordinator_data_ready(k.c, "b", NULL), COORD_OK);
    assert_true(cluster_await(&k, "send_info", "t", 1, 5000));
    assert_in_range(now(&k) - began, 0, 100);
    expect_finish(&k, "t", 5000);
    cluster_done(&k);
}

static void f_c15_the_info_of_the_last_step_is_delivered(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 0, 1);
    k.data_in_buffer = 1;
    cluster_find(&k, "l0")->learns = 6;
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "t");
    expect_finish(&k, "t", 10000);
    assert_int_equal(cluster_count(&k, "send_info", "t"), 6);
    assert_int_equal(cluster_count(&k, "judge", "t"), 6);
    assert_non_null(strstr(cluster_last(&k, "send_info", "t")->detail,
                           "\"learner_step\": 6, \"learner_done\": true"));
    const char *story = cluster_story(&k, "t");
    const char tail[] = "judge send_info finish";
    assert_string_equal(story + strlen(story) - strlen(tail), tail);
    cluster_done(&k);
}

static void f_c16_close_reports_all_tasks_and_https_is_not_ignored(void **state)
{
    static cluster k;
    static const char *const IDS[] = {"a", "b", "queued"};
    CommCoordinator *c = NULL;
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    (void)state;
    cluster_init(&k, 1, 2, 0);
    cluster_find(&k, "c0")->work_ms = cluster_find(&k, "c1")->work_ms = 5000;
    cluster_start(&k, "");
    for (int i = 0; i < 3; i++) {
        cluster_post(&k, COORD_COLLECTOR, IDS[i]);
    }
    cluster_run(&k, 7000);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cluster_ends(&k, IDS[i]), 1);
        assert_int_equal(status_of(&k, IDS[i]), COORD_ERR_CLOSED);
    }
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    comm_coordinator_options_init(&o, sizeof o);
    cb.deal_with_task_fail = k.c->callbacks.deal_with_task_fail;
    cb.user = &k;
    o.callbacks = &cb;
    o.loop = k.loop;
    o.config = "{\"operator_server\": {\"system_addr\": \"https://op:80\", "
               "\"namespace\": \"default\", \"name\": \"coordinator\"}}";
    assert_int_equal(comm_coordinator_create(&o, &c, NULL), COORD_ERR_UNSUPPORTED);
    assert_null(c);
    cluster_done(&k);
}

static void count_alarms(coord_log_level level, const char *line, void *user)
{
    (void)line;
    *(int *)user += level == COORD_LOG_WARN || level == COORD_LOG_ERROR;
}

static void f_c17_what_the_host_gives_stays_and_a_good_end_is_no_alarm(void **state)
{
    static cluster k;
    int alarms = 0;
    comm_coordinator_options o;
    char task[] = "{\"task_id\": \"t\", \"collector_id\": \"mine\", \"x\": [1, {}]}";
    char config[sizeof k.config];
    char task_before[sizeof task];
    (void)state;
    cluster_init(&k, 1, 1, 0);
    cluster_create(&k, ""); /* for its configuration and callbacks */
    comm_coordinator_options_init(&o, sizeof o);
    o.callbacks = &k.c->callbacks;
    memcpy(config, k.config, sizeof config);
    memcpy(task_before, task, sizeof task);
    o.config = config;
    o.loop = k.loop;
    o.log = count_alarms;
    o.user = &alarms;
    CommCoordinator *c = NULL;
    assert_int_equal(comm_coordinator_create(&o, &c, NULL), COORD_OK);
    comm_coordinator_destroy(k.c);
    k.c = c;
    assert_int_equal(comm_coordinator_start(c, NULL), COORD_OK);
    assert_int_equal(
        comm_coordinator_send_collector_task(c, coord_text_of(task), NULL, NULL),
        COORD_OK);
    expect_finish(&k, "t", 5000);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_memory_equal(task, task_before, sizeof task);
    assert_memory_equal(config, k.config, sizeof config);
    assert_int_equal(alarms, 0);
    cluster_done(&k);
}

static void f_c18_a_callback_that_fails_costs_its_task_and_nothing_else(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 0, 1);
    k.data_in_buffer = 1;
    k.get_data_fails = true;
    cluster_start(&k, "");
    cluster_post(&k, COORD_LEARNER, "t");
    assert_true(cluster_await(&k, "fail", "t", 1, 5000));
    assert_int_equal(status_of(&k, "t"), COORD_ERR_CALLBACK);
    assert_true(cluster_await_worker(&k, "l0", "free", 1000));
    cluster_check(&k);
    k.get_data_fails = false;
    cluster_post(&k, COORD_LEARNER, "next");
    expect_finish(&k, "next", 5000);
    cluster_done(&k);
}

typedef struct first_look {
    coord_status said;
    int calls;
} first_look;

static void cancel_first(cluster *k, const char *name, const char *task_id, void *user)
{
    first_look *look = user;
    (void)name;
    if (look->calls++ == 0) {
        look->said = comm_coordinator_cancel_task(k->c, task_id, NULL);
    }
}

static void f_c19_a_task_is_known_in_its_first_callback(void **state)
{
    static cluster k;
    first_look look = {COORD_ERR_STATE, 0};
    (void)state;
    cluster_init(&k, 1, 1, 0);
    k.on_event = cancel_first;
    k.on_event_user = &look;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await(&k, "fail", "t", 1, 5000));
    assert_int_equal(look.said, COORD_OK);
    assert_string_equal(cluster_story(&k, "t"), "start fail");
    assert_int_equal(status_of(&k, "t"), COORD_ERR_CANCELED);
    k.on_event = NULL;
    cluster_find(&k, "c0")->fail_starts = 1;
    assert_int_equal(send_task(&k, "refused", NULL), COORD_ERR_REFUSED);
    assert_string_equal(cluster_story(&k, "refused"), "");
    cluster_done(&k);
}

/* F-R3 where threads are: two of them send at once. */
typedef struct sender {
    cluster *k;
    const char *id;
    char who[COORD_ID_SIZE];
    coord_status said;
} sender;

static void send_one(void *user)
{
    sender *s = user;
    char task[64];
    (void)snprintf(task, sizeof task, "{\"task_id\": \"%s\"}", s->id);
    s->said =
        comm_coordinator_send_collector_task(s->k->c, coord_text_of(task), s->who, NULL);
}

static void f_r3_two_threads_never_get_the_same_worker(void **state)
{
    static cluster k;
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        sender a = {.k = &k, .id = "a"};
        sender b = {.k = &k, .id = "b"};
        coord_sim_thread *threads[2];
        cluster_init(&k, seed, 2, 0);
        cluster_find(&k, "c0")->work_ms = cluster_find(&k, "c1")->work_ms = 1000;
        cluster_start(&k, "");
        assert_int_equal(coord_sim_thread_start(k.sim, send_one, &a, &threads[0], NULL),
                         COORD_OK);
        assert_int_equal(coord_sim_thread_start(k.sim, send_one, &b, &threads[1], NULL),
                         COORD_OK);
        assert_int_equal(coord_sim_thread_join(threads[0], 20000, NULL), COORD_OK);
        assert_int_equal(coord_sim_thread_join(threads[1], 20000, NULL), COORD_OK);
        assert_int_equal(a.said, COORD_OK);
        assert_int_equal(b.said, COORD_OK);
        assert_string_not_equal(a.who, b.who);
        cluster_check(&k);
        cluster_done(&k);
    }
}

/* Python's own fault, seen from here: it heartbeats, takes one more task, never runs it,
 * and is busy from then on. Only a new process helps. */
static void f_s2_a_worker_whose_task_thread_died_gets_no_tasks(void **state)
{
    static cluster k;
    static raw_worker raw;
    char id[16];
    (void)state;
    cluster_init(&k, 1, 2, 0);
    cluster_set_foreign(&k, "c0");
    raw_begin(&raw, &k, "c0");
    cluster_start(&k, "\"start_timeout_s\": 5, \"resource_manager\": \"least_loaded\",");
    for (int i = 0; i < RAW_NAMES; i++) {
        raw.hangs[i] = true;
    }
    for (int i = 0; i < 6; i++) {
        (void)snprintf(id, sizeof id, "t%d", i);
        cluster_post(&k, COORD_COLLECTOR, id);
        expect_finish(&k, id, 20000);
    }
    assert_int_equal(raw.counts[RAW_START], 1);
    assert_true(coord_slave_is_connected(raw.slave));
    cluster_run(&k, 100000);
    assert_string_equal(cluster_worker_state(&k, "c0"), "quarantined");
    cluster_check(&k);
    coord_slave_destroy(raw.slave);
    cluster_run(&k, 1000);
    for (int i = 0; i < RAW_NAMES; i++) {
        raw.hangs[i] = false;
    }
    cluster_crash(&k, "c0");
    cluster_revive(&k, "c0");
    assert_true(cluster_await_worker(&k, "c0", "free", 60000));
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_c1_tasks_do_not_go_to_dead_workers),
        cmocka_unit_test(f_c2_a_worker_that_dies_during_a_task_is_replaced),
        cmocka_unit_test(f_c3_close_reaches_all_workers_although_one_is_dead),
        cmocka_unit_test(f_c4_a_task_is_known_by_the_id_that_was_sent),
        cmocka_unit_test(f_c5_what_fails_is_asked_again_with_pauses_and_not_for_ever),
        cmocka_unit_test(f_c6_a_close_that_fails_or_hangs_finishes_the_task_once),
        cmocka_unit_test(f_c7_what_is_never_answered_ends_start_and_send_in_time),
        cmocka_unit_test(f_c8_absent_workers_are_waited_for_side_by_side),
        cmocka_unit_test(f_c9_start_waits_for_collectors_and_learners),
        cmocka_unit_test(f_c12_a_worker_that_fails_is_tried_ever_later),
        cmocka_unit_test(f_c13_a_worker_that_leaves_under_its_task_is_counted_once),
        cmocka_unit_test(f_c14_a_learner_waits_a_second_at_most),
        cmocka_unit_test(f_c15_the_info_of_the_last_step_is_delivered),
        cmocka_unit_test(f_c16_close_reports_all_tasks_and_https_is_not_ignored),
        cmocka_unit_test(f_c17_what_the_host_gives_stays_and_a_good_end_is_no_alarm),
        cmocka_unit_test(f_c18_a_callback_that_fails_costs_its_task_and_nothing_else),
        cmocka_unit_test(f_c19_a_task_is_known_in_its_first_callback),
        cmocka_unit_test(f_r3_two_threads_never_get_the_same_worker),
        cmocka_unit_test(f_s2_a_worker_whose_task_thread_died_gets_no_tasks),
    };
    return cmocka_run_group_tests_name("faults of the coordinator", tests, NULL, NULL);
}
