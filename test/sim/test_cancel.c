/* Giving a task up: how a libcoord master tells its slave, and what the slave does. */
#include "interaction/master.h"
#include "interaction/slave.h"
#include "support/cluster.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char HOST[] = "10.0.0.1";
static const char T1[] = "token-of-the-master";
static const char T2[] = "token-of-another-connection";
static const char COMPLETE[] = "/slave/task/complete";
static const char CANCEL[] = "/task/cancel";
#define ID_A "0123abcd-89ab-cdef-0123-456789abcdef"
#define ID_B "11111111-89ab-cdef-0123-456789abcdef"
#define TASK(id) "{\"task\": {\"id\": \"" id "\"}}"

/* ---- the slave ---- */

static peer *slave_setup(wire_rig *r, bool foreign)
{
    wire_open(r, 1);
    wire_slave(r, NULL);
    peer *p = wire_peer(r, foreign);
    assert_int_equal(peer_connect(p, HOST, r->port, T1)->http_status, 200);
    return p;
}

static void expect(const peer_reply *reply, int http_status, int code, const char *says)
{
    if (reply->http_status != http_status || reply->code != code ||
        strstr(reply->body, says) == NULL) {
        fail_msg("answered %d, %s", reply->http_status, reply->body);
    }
}

static void give(wire_rig *r, peer *p, const char *id)
{
    expect(peer_new_task(p, HOST, r->port, T1, id, "1"), 200, 0, "Task received!");
}

static const peer_reply *cancel(wire_rig *r, peer *p, const char *token, const char *body)
{
    return peer_ask(p, HOST, r->port, "DELETE", CANCEL, token, "0", body);
}

static void the_running_task_is_told_and_the_slave_is_free_when_it_ends(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = slave_setup(&r, false);
    r.work_ms = 60000;
    give(&r, p, ID_A);
    wire_run(&r, 1000);
    assert_false(coord_slave_task_canceled(r.slave));
    expect(cancel(&r, p, T1, TASK(ID_A)), 200, 0, "Cancel received!");
    assert_true(coord_slave_task_canceled(r.slave));
    expect(cancel(&r, p, T1, TASK(ID_A)), 200, 0, "Cancel received!");
    wire_run(&r, 200);
    assert_int_equal(r.canceled, 1);
    expect(peer_new_task(p, HOST, r.port, T1, ID_A, "1"), 403, 602, "was canceled");
    r.work_ms = 1000;
    give(&r, p, ID_B);
    assert_false(coord_slave_task_canceled(r.slave));
    wire_run(&r, 5000);
    assert_int_equal(r.works, 2);
    assert_int_equal(r.canceled, 1);
    assert_int_equal(peer_count(p, COMPLETE), 1);
    assert_non_null(strstr(peer_get(p, COMPLETE, 0)->body, ID_B));
    wire_close(&r);
}

static void other_tasks_are_not_touched(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = slave_setup(&r, false);
    give(&r, p, ID_A);
    assert_true(peer_await(p, COMPLETE, 1, 1000));
    r.work_ms = 2000;
    give(&r, p, ID_B);
    expect(cancel(&r, p, T1, TASK(ID_A)), 200, 0, "Cancel received!");
    assert_false(coord_slave_task_canceled(r.slave));
    assert_true(peer_await(p, COMPLETE, 2, 3000));
    expect(cancel(&r, p, T1, TASK(ID_B)), 200, 0, "Cancel received!");
    give(&r, p, ID_B); /* ended before it was canceled: as any other */
    assert_true(peer_await(p, COMPLETE, 3, 1000));
    assert_int_equal(r.works, 2);
    wire_close(&r);
}

static void a_cancel_may_be_faster_than_its_task(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = slave_setup(&r, false);
    expect(cancel(&r, p, T1, TASK(ID_A)), 200, 0, "Cancel received!");
    expect(peer_new_task(p, HOST, r.port, T1, ID_A, "1"), 403, 602, "was canceled");
    r.hook_ms = 1000; /* the other one comes while on_task thinks about it */
    int task = peer_send(p, HOST, r.port, "POST", "/task/new", T1, "0",
                         "{\"task\": {\"id\": \"" ID_B "\"}, \"data\": 1}");
    wire_run(&r, 500);
    expect(cancel(&r, p, T1, TASK(ID_B)), 200, 0, "Cancel received!");
    expect(peer_await_reply(p, task, 2000), 403, 602, "was canceled");
    wire_run(&r, 5000);
    assert_int_equal(r.works, 0);
    assert_int_equal(wire_count(&r, "ask task"), 1);
    wire_close(&r);
}

static void cancels_of_unknown_tasks_do_not_add_up(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = slave_setup(&r, false);
    r.work_ms = 60000;
    give(&r, p, ID_A);
    for (int i = 0; i < COORDI_RECENT + 2; i++) {
        char body[96];
        (void)snprintf(body, sizeof body,
                       "{\"task\": {\"id\": \"%08d-89ab-cdef-0123-456789abcdef\"}}", i);
        expect(cancel(&r, p, T1, body), 200, 0, "Cancel received!");
    }
    assert_false(coord_slave_task_canceled(r.slave));
    expect(cancel(&r, p, T1, TASK(ID_A)), 200, 0, "Cancel received!");
    wire_run(&r, 200);
    assert_int_equal(r.canceled, 1);
    give(&r, p, ID_B);
    wire_close(&r);
}

static void only_the_own_libcoord_master_can_cancel(void **state)
{
    static wire_rig r;
    (void)state;
    peer *p = slave_setup(&r, false);
    peer *stranger = wire_peer(&r, true);
    r.work_ms = 5000;
    give(&r, p, ID_A);
    expect(cancel(&r, stranger, T1, TASK(ID_A)), 404, 402, "No such endpoint.");
    expect(cancel(&r, p, T2, TASK(ID_A)), 403, 302, "Master not match");
    expect(cancel(&r, p, NULL, TASK(ID_A)), 400, 301, "Master token not found.");
    expect(peer_ask(p, HOST, r.port, "DELETE", CANCEL, T1, "1", TASK(ID_A)), 403, 202,
           "Channel not match");
    expect(cancel(&r, p, T1, NULL), 400, 602, "no body");
    expect(cancel(&r, p, T1, "{}"), 400, 602, "task.id");
    expect(cancel(&r, p, T1, TASK("x")), 400, 602, "UUID");
    assert_false(coord_slave_task_canceled(r.slave));
    assert_true(peer_await(p, COMPLETE, 1, 6000));
    wire_close(&r);
}

/* ---- the master ---- */

typedef struct bench {
    wire_rig r;
    peer *p;
    coord_connection *c;
    coord_task *task;
} bench;

static void master_setup(bench *b, bool foreign)
{
    wire_open(&b->r, 1);
    wire_master(&b->r, NULL);
    b->p = wire_peer(&b->r, foreign);
    b->c = wire_connected(&b->r, "s", b->p);
    b->task = wire_task(&b->r, b->c, "{}");
}

static void teardown(bench *b)
{
    coord_task_unref(b->task);
    coord_connection_destroy(b->c);
    wire_close(&b->r);
}

static void expect_told(bench *b, int count)
{
    char body[96];
    assert_int_equal(peer_count(b->p, CANCEL), count);
    (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}}",
                   coord_task_id(b->task));
    for (int i = 0; i < count; i++) {
        const peer_request *told = peer_get(b->p, CANCEL, i);
        assert_string_equal(told->method, "DELETE");
        assert_string_equal(told->body, body);
        assert_string_equal(told->token, peer_get(b->p, "/connect", 0)->token);
        assert_true(told->marked);
    }
}

static void a_libcoord_slave_is_told_once_a_python_slave_never(void **state)
{
    static bench b;
    (void)state;
    for (int foreign = 0; foreign <= 1; foreign++) {
        for (int late = 0; late <= 1; late++) {
            master_setup(&b, foreign != 0);
            assert_int_equal(coord_task_start(b.task, 1000, late ? 500 : 0, NULL),
                             COORD_OK);
            if (!late) {
                coord_task_cancel(b.task);
                coord_task_cancel(b.task);
            }
            assert_int_equal(coord_task_join(b.task, 1000, NULL),
                             late ? COORD_ERR_TIMEOUT : COORD_ERR_CANCELED);
            wire_run(&b.r, 1000);
            expect_told(&b, !foreign);
            assert_true(coord_connection_is_connected(b.c));
            teardown(&b);
        }
    }
}

static void a_slave_is_told_of_a_start_that_it_may_have_seen(void **state)
{
    static bench b;
    (void)state;
    master_setup(&b, false);
    peer_script(b.p, "/task/new", -1, 0, NULL);
    assert_int_equal(coord_task_start(b.task, 0, 0, NULL), COORD_OK);
    assert_true(peer_await(b.p, "/task/new", 1, 1000));
    coord_task_cancel(b.task);
    wire_run(&b.r, 100);
    expect_told(&b, 1);
    teardown(&b);
}

static void nobody_is_told_of_what_has_not_begun_or_has_ended(void **state)
{
    static bench b;
    (void)state;
    master_setup(&b, false);
    coord_task *done = wire_task(&b.r, b.c, "{}");
    assert_int_equal(coord_task_start(done, 1000, 0, NULL), COORD_OK);
    (void)peer_await_reply(b.p, peer_report(b.p, coord_task_id(done), true, "1"), 1000);
    coord_task_cancel(done);
    coord_task_cancel(b.task);
    wire_run(&b.r, 100);
    assert_int_equal(coord_task_join(done, 0, NULL), COORD_OK);
    expect_told(&b, 0);
    coord_task_unref(done);
    teardown(&b);
}

/* It is one attempt, and whatever becomes of it, the next task is not held up. */
static void an_unanswered_cancel_holds_nothing_up(void **state)
{
    static bench b;
    (void)state;
    for (int status = 0; status <= 500; status += 500) {
        master_setup(&b, false);
        peer_script(b.p, CANCEL, -1, status, PEER_HTML);
        assert_int_equal(coord_task_start(b.task, 1000, 0, NULL), COORD_OK);
        coord_task_cancel(b.task);
        int64_t began = coord_sim_now_ms(b.r.sim);
        coord_task *next = wire_task(&b.r, b.c, "{}");
        assert_int_equal(coord_task_start(next, 1000, 0, NULL), COORD_OK);
        assert_in_range(coord_sim_now_ms(b.r.sim) - began, 0, 50);
        for (int i = 0; i < 3; i++) {
            wire_run(&b.r, 10000);
            (void)peer_beat(b.p);
        }
        expect_told(&b, 1);
        assert_true(coordi_list_empty(&b.c->orphans));
        assert_true(coord_connection_is_connected(b.c));
        assert_int_equal(coord_task_get_status(next), COORD_TASK_STARTED);
        coord_task_unref(next);
        teardown(&b);
    }
}

static void a_cancel_on_its_way_ends_with_its_connection(void **state)
{
    static bench b;
    (void)state;
    master_setup(&b, false);
    peer_script(b.p, CANCEL, -1, 0, NULL);
    assert_int_equal(coord_task_start(b.task, 1000, 0, NULL), COORD_OK);
    coord_task_cancel(b.task);
    assert_true(peer_await(b.p, CANCEL, 1, 1000));
    assert_int_equal(coord_connection_disconnect(b.c, (coord_text){NULL, 0}, 1000, NULL),
                     COORD_OK);
    assert_true(coordi_list_empty(&b.c->orphans));
    teardown(&b);
}

/* ---- both ---- */

static void a_canceled_task_makes_way_for_the_next_one(void **state)
{
    static bench b;
    static peer slave; /* where it is, no more */
    (void)state;
    wire_open(&b.r, 1);
    wire_slave(&b.r, NULL);
    slave.port = b.r.port;
    (void)snprintf(slave.host, sizeof slave.host, "%s", HOST);
    wire_master(&b.r, NULL);
    b.c = wire_connected(&b.r, "s", &slave);
    b.task = wire_task(&b.r, b.c, "{}");
    b.r.work_ms = 600000;
    assert_int_equal(coord_task_start(b.task, 1000, 0, NULL), COORD_OK);
    wire_run(&b.r, 30000);
    coord_task_cancel(b.task);
    wire_run(&b.r, 150);
    assert_int_equal(b.r.canceled, 1);
    b.r.work_ms = 10;
    coord_task *next = wire_task(&b.r, b.c, "{}");
    assert_int_equal(coord_task_start(next, 100, 0, NULL), COORD_OK);
    assert_int_equal(coord_task_join(next, 100, NULL), COORD_OK);
    assert_int_equal(b.r.master->late_results, 0);
    coord_task_unref(next);
    teardown(&b);
}

/* A collector whose steps take ten minutes, unless nobody waits for them any more. */
static coord_status long_step(coord_slave *slave, coord_text in, coord_out *out,
                              coord_error *err, void *user)
{
    cluster_worker *w = user;
    (void)in;
    (void)out;
    (void)err;
    for (int i = 0; i < 6000; i++) {
        if (coord_slave_task_canceled(slave)) {
            w->count++;
            return COORD_ERR_CANCELED;
        }
        if (coord_sim_run_for(w->cluster->sim, 100, NULL) != COORD_OK) {
            break;
        }
    }
    return COORD_OK;
}

static coord_status short_step(coord_slave *slave, coord_text in, coord_out *out,
                               coord_error *err, void *user)
{
    cluster_worker *w = user;
    (void)slave;
    (void)in;
    (void)out;
    (void)err;
    w->starts++;
    return COORD_OK;
}

static void make_slow(cluster_worker *w)
{
    coord_slave_options o;
    coord_collector_callbacks cb;
    coord_slave_options_init(&o, sizeof o);
    o.host = w->host;
    o.port = coord_slave_port(coord_collector_slave(w->collector));
    o.insecure = true;
    o.loop = w->loop;
    coord_collector_destroy(w->collector);
    coord_collector_callbacks_init(&cb, sizeof cb);
    cb.start = short_step;
    cb.data = long_step;
    cb.close = short_step;
    cb.user = w;
    assert_int_equal(coord_collector_create(&o, &cb, &w->collector, NULL), COORD_OK);
}

static void canceling_a_coordinators_task_frees_its_worker(void **state)
{
    static cluster k;
    (void)state;
    cluster_init(&k, 1, 1, 0);
    cluster_worker *w = cluster_find(&k, "c0");
    make_slow(w);
    cluster_start(&k, "\"port\": 0, ");
    cluster_post(&k, COORD_COLLECTOR, "t");
    assert_true(cluster_await_task(&k, "t", "asking", 1000));
    cluster_run(&k, 20000);
    assert_int_equal(w->count, 0);
    assert_int_equal(comm_coordinator_cancel_task(k.c, "t", NULL), COORD_OK);
    assert_true(cluster_await(&k, "fail", "t", 1, 100));
    assert_true(cluster_await_worker(&k, "c0", "free", 2000));
    assert_int_equal(w->count, 1);
    assert_int_equal(w->starts, 2); /* its close task has come, too */
    cluster_check(&k);
    cluster_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_running_task_is_told_and_the_slave_is_free_when_it_ends),
        cmocka_unit_test(other_tasks_are_not_touched),
        cmocka_unit_test(a_cancel_may_be_faster_than_its_task),
        cmocka_unit_test(cancels_of_unknown_tasks_do_not_add_up),
        cmocka_unit_test(only_the_own_libcoord_master_can_cancel),
        cmocka_unit_test(a_libcoord_slave_is_told_once_a_python_slave_never),
        cmocka_unit_test(a_slave_is_told_of_a_start_that_it_may_have_seen),
        cmocka_unit_test(nobody_is_told_of_what_has_not_begun_or_has_ended),
        cmocka_unit_test(an_unanswered_cancel_holds_nothing_up),
        cmocka_unit_test(a_cancel_on_its_way_ends_with_its_connection),
        cmocka_unit_test(a_canceled_task_makes_way_for_the_next_one),
        cmocka_unit_test(canceling_a_coordinators_task_frees_its_worker),
    };
    return cmocka_run_group_tests_name("cancel", tests, NULL, NULL);
}
