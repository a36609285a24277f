/* The coordinator's calls: what they refuse, from where they may be made, how they wait
 * and how they end. */
#include "support/cluster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- arguments ---- */

static void tasks_are_checked_before_they_are_accepted(void **state)
{
    static cluster k;
    static const struct {
        const char *task;
        coord_status status;
    } ROWS[] = {{"", COORD_ERR_FORMAT},
                {"[1]", COORD_ERR_FORMAT},
                {"{\"task_id\": \"t\",}", COORD_ERR_FORMAT},
                {"{}", COORD_ERR_ARG},
                {"{\"task_id\": 5}", COORD_ERR_ARG},
                {"{\"task_id\": null}", COORD_ERR_ARG},
                {"{\"task_id\": \"\"}", COORD_ERR_ARG},
                {"{\"task_id\": \"a\\u0000b\"}", COORD_ERR_ARG}};
    coord_error err;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    cluster_start(&k, "");
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        coord_text task = coord_text_of(ROWS[i].task);
        assert_int_equal(comm_coordinator_post_collector_task(k.c, task, &err),
                         ROWS[i].status);
        assert_int_equal(comm_coordinator_send_learner_task(k.c, task, NULL, &err),
                         ROWS[i].status);
    }
    char text[400];
    for (int length = 255; length <= 256; length++) {
        (void)snprintf(text, sizeof text, "{\"task_id\": \"%0*d\"}", length, 1);
        assert_int_equal(
            comm_coordinator_post_collector_task(k.c, coord_text_of(text), &err),
            length == 255 ? COORD_OK : COORD_ERR_ARG);
    }
    assert_int_equal(comm_coordinator_wait(k.c, -1, NULL), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", NULL), 1);
    cluster_done(&k);
}

static void an_id_that_is_in_use_exists_until_its_last_callback_has_returned(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 2, 1, 1);
    cluster_start(&k, "");
    k.callback_ms = 500;
    cluster_post(&k, COORD_COLLECTOR, "t");
    cluster_post(&k, COORD_COLLECTOR, "queued");
    assert_int_equal(comm_coordinator_post_collector_task(k.c, cluster_task("t"), &err),
                     COORD_ERR_EXISTS);
    assert_int_equal(comm_coordinator_post_learner_task(k.c, cluster_task("t"), &err),
                     COORD_ERR_EXISTS);
    assert_int_equal(
        comm_coordinator_send_learner_task(k.c, cluster_task("queued"), NULL, &err),
        COORD_ERR_EXISTS);
    assert_true(cluster_await_task(&k, "t", "finishing", 60000));
    assert_int_equal(comm_coordinator_post_collector_task(k.c, cluster_task("t"), &err),
                     COORD_ERR_EXISTS);
    assert_int_equal(comm_coordinator_wait_task(k.c, "t", 60000, NULL), COORD_OK);
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "t"), 2);
    cluster_done(&k);
}

static void calls_answer_state_before_start_and_after_close(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 3, 1, 0);
    cluster_create(&k, "");
    for (int closed = 0; closed <= 1; closed++) {
        assert_int_equal(
            comm_coordinator_post_collector_task(k.c, cluster_task("t"), &err),
            COORD_ERR_STATE);
        assert_int_equal(
            comm_coordinator_send_collector_task(k.c, cluster_task("t"), NULL, &err),
            COORD_ERR_STATE);
        assert_int_equal(comm_coordinator_cancel_task(k.c, "t", &err),
                         COORD_ERR_NOT_FOUND);
        assert_int_equal(comm_coordinator_data_ready(k.c, "b", &err), COORD_OK);
        assert_int_equal(comm_coordinator_wait(k.c, 10, &err), COORD_OK);
        assert_int_equal(comm_coordinator_wait_task(k.c, "t", 10, &err), COORD_OK);
        assert_int_equal(comm_coordinator_port(k.c), 0);
        assert_string_equal(comm_coordinator_host(k.c), "10.0.0.1");
        cluster_check(&k);
        if (closed == 0) {
            assert_int_equal(comm_coordinator_start(k.c, &err), COORD_OK);
            assert_int_equal(comm_coordinator_port(k.c), 22273);
            assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_STATE);
            assert_int_equal(cluster_close(&k, &err), COORD_OK);
            assert_int_equal(cluster_close(&k, &err), COORD_OK);
            assert_int_equal(comm_coordinator_start(k.c, &err), COORD_ERR_STATE);
        }
    }
    cluster_done(&k);
}

static void null_is_an_argument_error(void **state)
{
    coord_error err;
    char *text = NULL;
    coord_text task = cluster_task("t");
    (void)state;
    assert_int_equal(comm_coordinator_create(NULL, NULL, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_start(NULL, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_close(NULL, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_wait(NULL, 1, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_wait_task(NULL, "t", 1, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_cancel_task(NULL, "t", &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_data_ready(NULL, "b", &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_status(NULL, &text, &err), COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_post_collector_task(NULL, task, &err),
                     COORD_ERR_ARG);
    assert_int_equal(comm_coordinator_send_learner_task(NULL, task, NULL, &err),
                     COORD_ERR_ARG);
    comm_coordinator_destroy(NULL);
}

static void ignore_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                        void *user)
{
    (void)c;
    (void)task_id;
    (void)why;
    (void)user;
}

static void a_role_needs_its_callbacks_when_its_tasks_are_sent(void **state)
{
    static cluster k;
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    coord_error err;
    CommCoordinator *c = NULL;
    (void)state;
    cluster_init(&k, 4, 0, 0);
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    comm_coordinator_options_init(&o, sizeof o);
    o.loop = k.loop;
    o.callbacks = &cb;
    o.config = "{\"host\": \"10.0.0.1\", \"insecure\": true}";
    assert_int_equal(comm_coordinator_create(&o, &c, &err), COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "deal_with_task_fail"));
    cb.deal_with_task_fail = ignore_fail;
    assert_int_equal(comm_coordinator_create(&o, &c, &err), COORD_OK);
    assert_int_equal(comm_coordinator_start(c, &err), COORD_OK); /* nobody to wait for */
    assert_int_equal(comm_coordinator_post_collector_task(c, cluster_task("t"), &err),
                     COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "deal_with_collector_send_data"));
    assert_int_equal(comm_coordinator_post_learner_task(c, cluster_task("t"), &err),
                     COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "deal_with_learner_get_data"));
    comm_coordinator_destroy(c);
    cluster_done(&k);
}

/* ---- calls from callbacks ---- */

typedef struct inside {
    const char *when; /* the callback in which the calls are made */
    coord_status wait, wait_task, close, start, post, ready, delivery, status;
    comm_coordinator_delivery about;
    coord_status outer_delivery;
} inside;

static void call_everything(cluster *k, const char *name, const char *task_id, void *user)
{
    inside *in = user;
    coord_error err;
    char *text = NULL;
    if (strcmp(name, in->when) != 0 || strcmp(task_id, "t") != 0) {
        return;
    }
    in->wait = comm_coordinator_wait(k->c, 1000, &err);
    in->wait_task = comm_coordinator_wait_task(k->c, "t", 1000, &err);
    in->close = comm_coordinator_close(k->c, &err);
    in->start = comm_coordinator_start(k->c, &err);
    in->post = comm_coordinator_post_collector_task(k->c, cluster_task("more"), &err);
    in->ready = comm_coordinator_data_ready(k->c, NULL, &err);
    in->about.size = sizeof in->about;
    in->delivery = comm_coordinator_get_delivery(k->c, &in->about, &err);
    in->status = comm_coordinator_status(k->c, &text, &err);
    coord_free(text);
}

static void callbacks_may_post_but_not_wait_for_themselves(void **state)
{
    static cluster k;
    static const char *const WHEN[] = {"start", "send_data", "judge", "finish"};
    static const char *const HOW[] = {"", "\"executor\": {\"pool\": 2},",
                                      "\"executor\": \"inline\","};
    (void)state;
    for (size_t i = 0; i < 4 * 3; i++) {
        inside in = {.when = WHEN[i % 4]};
        cluster_init(&k, 5, 1, 0);
        k.workers[0].samples = 1;
        cluster_start(&k, HOW[i / 4]);
        k.on_event = call_everything;
        k.on_event_user = &in;
        cluster_post(&k, COORD_COLLECTOR, "t");
        assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
        assert_int_equal(in.wait, COORD_ERR_STATE);
        assert_int_equal(in.wait_task, COORD_ERR_STATE);
        assert_int_equal(in.close, COORD_ERR_STATE);
        assert_int_equal(in.start, COORD_ERR_STATE);
        assert_int_equal(in.post, COORD_OK);
        assert_int_equal(in.ready, COORD_OK);
        assert_int_equal(in.delivery, COORD_OK);
        assert_int_equal(in.status, COORD_OK);
        assert_int_equal(in.about.attempt, 1);
        /* start, data, info, close, one request each */
        assert_int_equal(in.about.sequence, 1 + i % 4);
        assert_int_equal(cluster_count(&k, "finish", NULL), 2);
        comm_coordinator_delivery about = {.size = sizeof about};
        assert_int_equal(comm_coordinator_get_delivery(k.c, &about, NULL),
                         COORD_ERR_STATE);
        cluster_done(&k);
    }
}

/* The start callback is told of the start even when it is slower than the next request.
 */
static void look_late(cluster *k, const char *name, const char *task_id, void *user)
{
    inside *in = user;
    (void)task_id;
    if (strcmp(name, "start") == 0) {
        in->about.size = sizeof in->about;
        in->delivery = comm_coordinator_get_delivery(k->c, &in->about, NULL);
    }
}

static void a_slow_callback_still_knows_what_it_is_about(void **state)
{
    static cluster k;
    inside in = {0};
    (void)state;
    cluster_init(&k, 6, 1, 0);
    k.callback_ms = 500;
    k.on_event = look_late;
    k.on_event_user = &in;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(in.delivery, COORD_OK);
    assert_int_equal(in.about.sequence, 1);
    cluster_done(&k);
}

static void send_inside(cluster *k, const char *name, const char *task_id, void *user)
{
    coord_status *rc = user;
    if (strcmp(name, "judge") == 0 && strcmp(task_id, "t") == 0) {
        *rc = comm_coordinator_send_collector_task(k->c, cluster_task("u"), NULL, NULL);
    }
}

static void send_waits_in_a_thread_of_its_own_but_not_on_the_loop(void **state)
{
    static cluster k;
    (void)state;
    for (int on_loop = 0; on_loop <= 1; on_loop++) {
        coord_status rc = COORD_AGAIN;
        cluster_init(&k, 7, 2, 0);
        cluster_start(&k, on_loop ? "\"executor\": \"inline\"," : "");
        k.on_event = send_inside;
        k.on_event_user = &rc;
        cluster_post(&k, COORD_COLLECTOR, "t");
        assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
        assert_int_equal(rc, on_loop ? COORD_ERR_STATE : COORD_OK);
        assert_int_equal(cluster_count(&k, "finish", NULL), on_loop ? 1 : 2);
        cluster_done(&k);
    }
}

static void cancel_inside(cluster *k, const char *name, const char *task_id, void *user)
{
    const char *when = user;
    if (strcmp(name, when) == 0) {
        assert_int_equal(comm_coordinator_cancel_task(k->c, task_id, NULL), COORD_OK);
    }
}

static void a_task_can_be_canceled_from_its_own_callbacks(void **state)
{
    static cluster k;
    static const char *const WHEN[] = {"start",     "send_data", "judge", "get_data",
                                       "send_info", "finish",    "fail"};
    static const char *const HOW[] = {"", "\"executor\": \"inline\","};
    (void)state;
    for (size_t i = 0; i < 7 * 2; i++) {
        char when[16];
        (void)snprintf(when, sizeof when, "%s", WHEN[i % 7]);
        cluster_init(&k, 8, 1, 1);
        k.data_in_buffer = 1;
        k.workers[0].fail_asks = i % 7 == 6 ? 1 : 0; /* one of the two fails */
        cluster_start(&k, HOW[i / 7]);
        if (i % 7 == 6) {
            cluster_post(&k, COORD_LEARNER, "other");
            assert_int_equal(comm_coordinator_cancel_task(k.c, "other", NULL), COORD_OK);
        }
        k.on_event = cancel_inside;
        k.on_event_user = when;
        cluster_post(&k, COORD_COLLECTOR, "c");
        cluster_post(&k, COORD_LEARNER, "l");
        assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
        assert_int_equal(cluster_ends(&k, "c"), 1);
        assert_int_equal(cluster_ends(&k, "l"), 1);
        bool both = strcmp(when, "start") == 0 || strcmp(when, "judge") == 0;
        bool none = i % 7 >= 5;
        int fails = cluster_count(&k, "fail", "c") + cluster_count(&k, "fail", "l");
        assert_int_equal(fails, both ? 2 : none ? 0 : 1);
        assert_true(cluster_await_worker(&k, "c0", "free", 5000));
        assert_true(cluster_await_worker(&k, "l0", "free", 5000));
        cluster_check(&k);
        cluster_done(&k);
    }
}

/* ---- several threads ---- */

typedef struct sender {
    cluster *k;
    char id[16];
    char worker[COORD_ID_SIZE];
    coord_status status;
    coord_error err;
} sender;

static void send_one(void *user)
{
    sender *s = user;
    char text[64];
    (void)snprintf(text, sizeof text, "{\"task_id\": \"%s\"}", s->id);
    s->status = comm_coordinator_send_collector_task(s->k->c, coord_text_of(text),
                                                     s->worker, &s->err);
}

static void two_threads_send_at_once(void **state)
{
    static cluster k;
    sender senders[3];
    coord_sim_thread *threads[3];
    (void)state;
    cluster_init(&k, 9, 2, 0);
    cluster_start(&k, "");
    for (int i = 0; i < 3; i++) {
        senders[i] = (sender){.k = &k, .status = COORD_AGAIN};
        (void)snprintf(senders[i].id, sizeof senders[i].id, "t%d", i);
        assert_int_equal(
            coord_sim_thread_start(k.sim, send_one, &senders[i], &threads[i], NULL),
            COORD_OK);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(coord_sim_thread_join(threads[i], 60000, NULL), COORD_OK);
        assert_int_equal(senders[i].status, COORD_OK);
    }
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", NULL), 3);
    cluster_done(&k);
}

static void close_ends_calls_that_wait(void **state)
{
    static cluster k;
    sender s = {.k = &k, .id = "queued", .status = COORD_AGAIN};
    coord_sim_thread *thread;
    (void)state;
    cluster_init(&k, 10, 1, 0);
    k.workers[0].work_ms = 5000;
    cluster_start(&k, "");
    cluster_post(&k, COORD_COLLECTOR, "busy");
    assert_int_equal(coord_sim_thread_start(k.sim, send_one, &s, &thread, NULL),
                     COORD_OK);
    cluster_run(&k, 100);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_int_equal(coord_sim_thread_join(thread, 0, NULL), COORD_OK);
    assert_int_equal(s.status, COORD_ERR_CLOSED);
    assert_int_equal(cluster_count(&k, NULL, "queued"), 0);
    assert_string_equal(cluster_story(&k, "busy"), "fail");
    cluster_done(&k);
}

static void start_in_thread(void *user)
{
    sender *s = user;
    s->status = comm_coordinator_start(s->k->c, &s->err);
}

static void close_ends_a_start_that_waits(void **state)
{
    static cluster k;
    sender s = {.k = &k, .status = COORD_AGAIN};
    coord_sim_thread *thread;
    (void)state;
    cluster_init(&k, 11, 1, 1);
    cluster_crash(&k, "l0");
    cluster_create(&k, "");
    assert_int_equal(coord_sim_thread_start(k.sim, start_in_thread, &s, &thread, NULL),
                     COORD_OK);
    cluster_run(&k, 3000);
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    assert_int_equal(coord_sim_thread_join(thread, 0, NULL), COORD_OK);
    assert_int_equal(s.status, COORD_ERR_CLOSED);
    cluster_run(&k, 1000);
    assert_false(coord_slave_is_connected(coord_collector_slave(k.workers[0].collector)));
    cluster_done(&k);
}

/* ---- close ---- */

static void a_callback_that_blocks_close_is_named(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 12, 2, 0);
    cluster_start(&k, "\"close_timeout_s\": 5,");
    cluster_post(&k, COORD_COLLECTOR, "other");
    assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
    k.callback_ms = 8000;
    cluster_post(&k, COORD_COLLECTOR, "blocks");
    assert_true(cluster_await_task(&k, "blocks", "sending", 20000));
    int64_t began = coord_sim_now_ms(k.sim);
    assert_int_equal(cluster_close(&k, &err), COORD_ERR_TIMEOUT);
    assert_in_range(coord_sim_now_ms(k.sim) - began, 0, 5000);
    assert_non_null(strstr(err.text, "'blocks'"));
    assert_non_null(strstr(err.text, "close_timeout_s (5)"));
    k.callback_ms = 0;
    assert_int_equal(
        comm_coordinator_post_collector_task(k.c, cluster_task("late"), &err),
        COORD_ERR_STATE);
    assert_int_equal(cluster_close(&k, &err), COORD_OK);
    assert_string_equal(cluster_story(&k, "blocks"), "start send_data fail");
    cluster_done(&k);
}

static void close_says_goodbye_to_its_workers(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 13, 2, 1);
    cluster_start(&k, "");
    assert_int_equal(cluster_close(&k, NULL), COORD_OK);
    cluster_run(&k, 10);
    for (int i = 0; i < 2; i++) {
        assert_false(
            coord_slave_is_connected(coord_collector_slave(k.workers[i].collector)));
    }
    assert_false(coord_slave_is_connected(coord_learner_slave(k.workers[2].learner)));
    cluster_done(&k);
}

/* ---- destroy ---- */

static void a_coordinator_can_be_destroyed_in_every_phase(void **state)
{
    static cluster k;
    (void)state;
    for (int phase = 0; phase < 5; phase++) {
        sender s = {.k = &k, .status = COORD_AGAIN};
        coord_sim_thread *thread = NULL;
        cluster_init(&k, 14, 1, 1);
        if (phase == 1) {
            cluster_crash(&k, "l0");
        }
        cluster_create(&k, "");
        if (phase == 1) { /* starting */
            assert_int_equal(
                coord_sim_thread_start(k.sim, start_in_thread, &s, &thread, NULL),
                COORD_OK);
            cluster_run(&k, 1000);
        } else if (phase >= 2) {
            assert_int_equal(comm_coordinator_start(k.c, NULL), COORD_OK);
        }
        if (phase == 3) { /* closing, in vain */
            k.callback_ms = 100000;
            cluster_post(&k, COORD_COLLECTOR, "t");
            assert_true(cluster_await_task(&k, "t", "sending", 400000));
            assert_int_equal(cluster_close(&k, NULL), COORD_ERR_TIMEOUT);
        } else if (phase == 4) {
            assert_int_equal(cluster_close(&k, NULL), COORD_OK);
        }
        comm_coordinator_destroy(k.c);
        k.c = NULL;
        k.closed = true;
        if (thread != NULL) {
            assert_int_equal(coord_sim_thread_join(thread, 1000, NULL), COORD_OK);
            assert_int_equal(s.status, COORD_ERR_CLOSED);
        }
        cluster_run(&k, 300000);
        cluster_done(&k);
    }
}

static void destroy_inside(cluster *k, const char *name, const char *task_id, void *user)
{
    (void)task_id;
    (void)user;
    if (strcmp(name, "send_data") == 0) {
        comm_coordinator_destroy(k->c);
        k->c = NULL;
    }
}

static void a_coordinator_can_be_destroyed_by_its_own_callback(void **state)
{
    static cluster k;
    static const char *const HOW[] = {"", "\"executor\": {\"pool\": 1},",
                                      "\"executor\": \"inline\","};
    (void)state;
    for (int i = 0; i < 3; i++) {
        cluster_init(&k, 15, 1, 0);
        cluster_start(&k, HOW[i]);
        k.on_event = destroy_inside;
        cluster_post(&k, COORD_COLLECTOR, "t");
        assert_true(cluster_await(&k, "send_data", "t", 1, 10000));
        cluster_run(&k, 30000);
        assert_null(k.c);
        assert_string_equal(cluster_story(&k, "t"), "start send_data");
        cluster_done(&k);
    }
}

/* ---- executors ---- */

static int most_at_once;
static int at_once;

static void count_overlap(cluster *k, const char *name, const char *task_id, void *user)
{
    (void)name;
    (void)task_id;
    (void)user;
    at_once++;
    most_at_once = at_once > most_at_once ? at_once : most_at_once;
    cluster_run(k, 50);
    at_once--;
}

static void callbacks_of_different_tasks_run_side_by_side(void **state)
{
    static cluster k;
    static const char *const HOW[] = {"", "\"executor\": {\"pool\": 2},",
                                      "\"executor\": {\"pool\": 1},"};
    static const int MOST[] = {4, 2, 1};
    (void)state;
    for (int i = 0; i < 3; i++) {
        most_at_once = 0;
        cluster_init(&k, 16, 4, 0);
        cluster_start(&k, HOW[i]);
        k.on_event = count_overlap;
        for (int n = 0; n < 4; n++) {
            char id[8];
            (void)snprintf(id, sizeof id, "t%d", n);
            cluster_post(&k, COORD_COLLECTOR, id);
        }
        assert_int_equal(comm_coordinator_wait(k.c, 60000, NULL), COORD_OK);
        assert_int_equal(most_at_once, MOST[i]);
        assert_int_equal(cluster_count(&k, "finish", NULL), 4);
        cluster_done(&k);
    }
}

/* ---- waiting ---- */

static void waiting_has_a_deadline_and_says_what_is_left(void **state)
{
    static cluster k;
    coord_error err;
    (void)state;
    cluster_init(&k, 17, 1, 0);
    k.workers[0].work_ms = 1000;
    cluster_start(&k, "");
    assert_int_equal(comm_coordinator_wait(k.c, 0, &err), COORD_OK);
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_post(&k, COORD_COLLECTOR, "b");
    assert_int_equal(comm_coordinator_wait(k.c, 0, &err), COORD_ERR_TIMEOUT);
    assert_int_equal(comm_coordinator_wait(k.c, 100, &err), COORD_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "2 tasks"));
    assert_int_equal(comm_coordinator_wait_task(k.c, "a", 100, &err), COORD_ERR_TIMEOUT);
    assert_int_equal(comm_coordinator_wait_task(k.c, "a", 20000, &err), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "a"), 1);
    assert_int_equal(cluster_count(&k, "finish", "b"), 0);
    assert_int_equal(comm_coordinator_wait(k.c, 20000, &err), COORD_OK);
    assert_int_equal(cluster_count(&k, "finish", "b"), 1);
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_checked_before_they_are_accepted),
        cmocka_unit_test(
            an_id_that_is_in_use_exists_until_its_last_callback_has_returned),
        cmocka_unit_test(calls_answer_state_before_start_and_after_close),
        cmocka_unit_test(null_is_an_argument_error),
        cmocka_unit_test(a_role_needs_its_callbacks_when_its_tasks_are_sent),
        cmocka_unit_test(callbacks_may_post_but_not_wait_for_themselves),
        cmocka_unit_test(a_slow_callback_still_knows_what_it_is_about),
        cmocka_unit_test(send_waits_in_a_thread_of_its_own_but_not_on_the_loop),
        cmocka_unit_test(a_task_can_be_canceled_from_its_own_callbacks),
        cmocka_unit_test(two_threads_send_at_once),
        cmocka_unit_test(close_ends_calls_that_wait),
        cmocka_unit_test(close_ends_a_start_that_waits),
        cmocka_unit_test(a_callback_that_blocks_close_is_named),
        cmocka_unit_test(close_says_goodbye_to_its_workers),
        cmocka_unit_test(a_coordinator_can_be_destroyed_in_every_phase),
        cmocka_unit_test(a_coordinator_can_be_destroyed_by_its_own_callback),
        cmocka_unit_test(callbacks_of_different_tasks_run_side_by_side),
        cmocka_unit_test(waiting_has_a_deadline_and_says_what_is_left),
    };
    return cmocka_run_group_tests_name("coordinator api", tests, NULL, NULL);
}
