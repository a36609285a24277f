/* Connections: made, refused, lost, made again, given up; with scripted slaves. */
#include "interaction/master.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const coord_text NOTHING = {NULL, 0};

static coord_master_options quick(void)
{
    coord_master_options o;
    coord_master_options_init(&o, sizeof o);
    o.request_retries = 2;
    o.request_timeout_ms = 1000;
    return o;
}

static void setup(wire_rig *r, bool foreign)
{
    coord_master_options o = quick();
    wire_open(r, 1);
    wire_master(r, &o);
    (void)wire_peer(r, foreign);
}

static coord_status connect_now(coord_connection *c, coord_error *err)
{
    return coord_connection_connect(c, NOTHING, 60000, err);
}

/* ---- connecting ---- */

static void connecting_tells_the_slave_where_to_report(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    coord_connection *c = wire_connection(&r, "s", &r.peers[0]);
    assert_false(coord_connection_is_connected(c));
    assert_int_equal(
        coord_connection_connect(c, coord_text_of("{\"a\": Infinity}"), 1000, NULL),
        COORD_OK);
    assert_true(coord_connection_is_connected(c));
    const peer_request *request = peer_get(&r.peers[0], "/connect", 0);
    char expected[128];
    (void)snprintf(expected, sizeof expected,
                   "{\"master\": {\"address\": \"http://10.0.0.1:%u\"}, \"data\": "
                   "{\"a\": Infinity}}",
                   (unsigned)r.port);
    assert_string_equal(request->body, expected);
    assert_string_equal(request->method, "POST");
    assert_string_equal(request->channel, "0");
    assert_int_equal(strlen(request->token), 64);
    assert_int_equal(connect_now(c, NULL), COORD_ERR_STATE);
    wire_run(&r, 10);
    assert_int_equal(wire_count(&r, "connect"), 1);
    assert_string_equal(coord_connection_id(c), "s");
    coord_connection_destroy(c);
    wire_close(&r);
}

static void the_token_is_known_before_the_answer(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    peer_script(p, "/connect", 1, 0, NULL);
    coord_connection *c = wire_connection(&r, "s", p);
    assert_int_equal(coord_connection_connect(c, NOTHING, 0, NULL), COORD_OK);
    assert_true(peer_await(p, "/connect", 1, 1000));
    const peer_reply *reply = peer_await_reply(p, peer_beat(p), 1000);
    assert_int_equal(reply->http_status, 200);
    assert_int_equal(reply->code, 0);
    peer_answer(p, peer_get(p, "/connect", 0), 200, PEER_YES);
    assert_true(wire_await(&r, "connect", 1, 1000));
    assert_true(coord_connection_is_connected(c));
    coord_connection_destroy(c);
    wire_close(&r);
}

static void a_refusal_brings_the_slaves_data_and_may_be_tried_again(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    peer_script(p, "/connect", 1, 403, peer_no(503, "{\"why\": NaN}"));
    coord_connection *c = wire_connection(&r, "s", p);
    assert_int_equal(connect_now(c, &err), COORD_ERR_REFUSED);
    assert_int_equal(err.peer_code, 503);
    assert_true(wire_await(&r, "connect", 1, 10));
    assert_int_equal(wire_last(&r, "connect")->status, COORD_ERR_REFUSED);
    assert_string_equal(wire_last(&r, "connect")->text, "{\"why\": NaN}");
    assert_int_equal(peer_count(p, "/connect"), 1);
    assert_int_equal(connect_now(c, &err), COORD_OK);
    assert_string_not_equal(peer_get(p, "/connect", 0)->token,
                            peer_get(p, "/connect", 1)->token);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void another_masters_slave_is_left_alone(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    peer_script(p, "/connect", -1, 400, peer_no(501, NULL));
    coord_connection *c = wire_connection(&r, "s", p);
    assert_int_equal(connect_now(c, &err), COORD_ERR_REFUSED);
    assert_int_equal(err.peer_code, 501);
    assert_int_equal(peer_count(p, "/disconnect"), 0);
    assert_int_equal(peer_count(p, "/connect"), 1);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void a_connect_whose_answer_is_lost_is_undone_and_made_again(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    peer_script(p, "/connect", 1, 0, NULL);
    peer_script(p, "/connect", 1, 400, peer_no(501, NULL));
    coord_connection *c = wire_connection(&r, "s", p);
    assert_int_equal(connect_now(c, NULL), COORD_OK);
    assert_int_equal(peer_count(p, "/connect"), 3);
    assert_int_equal(peer_count(p, "/disconnect"), 1);
    assert_string_equal(peer_get(p, "/disconnect", 0)->token,
                        peer_get(p, "/connect", 0)->token);
    assert_string_equal(peer_get(p, "/disconnect", 0)->body, "{\"data\": {}}");
    wire_run(&r, 10);
    assert_int_equal(wire_count(&r, "connect"), 1);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void an_attempt_nobody_answered_is_taken_back(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    peer_script(p, "/connect", -1, 0, NULL);
    coord_connection *c = wire_connection(&r, "s", p);
    assert_int_equal(connect_now(c, &err), COORD_ERR_TIMEOUT);
    assert_int_equal(peer_count(p, "/connect"), 3);
    assert_int_equal(peer_count(p, "/disconnect"), 1);
    assert_string_equal(peer_get(p, "/disconnect", 0)->token,
                        peer_get(p, "/connect", 0)->token);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void an_unreachable_slave_is_lost_after_the_retries(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    setup(&r, true);
    peer nowhere = {.port = 9};
    (void)snprintf(nowhere.host, sizeof nowhere.host, "10.0.1.1");
    coord_connection *c = wire_connection(&r, "s", &nowhere);
    int64_t began = coord_sim_now_ms(r.sim);
    assert_int_equal(connect_now(c, &err), COORD_ERR_LOST);
    assert_in_range(coord_sim_now_ms(r.sim) - began, 2000, 2100);
    assert_non_null(strstr(err.cause, "refused"));
    coord_connection_destroy(c);
    wire_close(&r);
}

static void an_id_is_connected_once_at_a_time(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    setup(&r, true);
    peer *p2 = wire_peer(&r, true);
    coord_connection *first = wire_connection(&r, "s", &r.peers[0]);
    coord_connection *second = wire_connection(&r, "s", p2);
    assert_int_equal(connect_now(first, NULL), COORD_OK);
    assert_int_equal(connect_now(second, &err), COORD_ERR_EXISTS);
    assert_int_equal(peer_count(p2, "/connect"), 0);
    coord_connection_destroy(second);
    wire_run(&r, 10);
    assert_true(coord_connection_is_connected(first));
    const peer_reply *reply = peer_await_reply(&r.peers[0], peer_beat(&r.peers[0]), 1000);
    assert_int_equal(reply->http_status, 200);
    assert_int_equal(coord_connection_disconnect(first, NOTHING, 1000, NULL), COORD_OK);
    second = wire_connection(&r, "s", p2);
    assert_int_equal(connect_now(second, &err), COORD_OK);
    coord_connection_destroy(first);
    coord_connection_destroy(second);
    wire_close(&r);
}

/* ---- loss ---- */

static void silence_is_loss_right_after_the_tolerance(void **state)
{
    static wire_rig r;
    (void)state;
    wire_open(&r, 1);
    wire_master(&r, NULL);
    peer *p = wire_peer(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    coord_task *task = wire_task(&r, c, "{}");
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
    wire_run(&r, 9000);
    (void)peer_await_reply(p, peer_beat(p), 1000);
    int64_t heard = coord_sim_now_ms(r.sim);
    assert_true(wire_await(&r, "lost", 1, 60000));
    int64_t lost = wire_last(&r, "lost")->at_ms;
    assert_in_range(lost - heard, 17000 - 10, 18001);
    assert_int_equal(wire_last(&r, "lost")->status, COORD_ERR_LOST);
    assert_non_null(strstr(wire_last(&r, "lost")->text, "no heartbeat for"));
    assert_false(coord_connection_is_connected(c));
    coord_error err;
    assert_int_equal(coord_task_join(task, 0, &err), COORD_ERR_LOST);
    assert_non_null(strstr(err.text, "no heartbeat for"));
    assert_int_equal(connect_now(c, &err), COORD_ERR_LOST);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, &err), COORD_OK);
    /* What it still says is humoured: anything else would end a Python slave's threads.
     */
    assert_int_equal(peer_await_reply(p, peer_beat(p), 1000)->http_status, 200);
    int late = peer_report(p, coord_task_id(task), true, "{}");
    assert_int_equal(peer_await_reply(p, late, 1000)->code, 0);
    assert_int_equal(coord_task_get_status(task), COORD_TASK_FAILED);
    wire_run(&r, 60000);
    assert_int_equal(wire_count(&r, "lost"), 1);
    assert_int_equal(wire_count(&r, "fail"), 1);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void results_keep_a_connection_alive_as_beats_do(void **state)
{
    static wire_rig r;
    (void)state;
    wire_open(&r, 1);
    wire_master(&r, NULL);
    peer *p = wire_peer(&r, true);
    coord_connection *c = wire_connected(&r, "s", p);
    for (int i = 0; i < 4; i++) {
        wire_run(&r, 10000);
        int sent =
            peer_report(p, "01234567-89ab-cdef-0123-456789abcdef", i % 2 == 0, "{}");
        assert_int_equal(peer_await_reply(p, sent, 1000)->http_status, 200);
    }
    assert_true(coord_connection_is_connected(c));
    coord_connection_destroy(c);
    wire_close(&r);
}

static void a_lost_libcoord_slave_is_told_at_its_next_beat(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, false);
    peer *p = &r.peers[0];
    coord_connection *c = wire_connected(&r, "s", p);
    wire_run(&r, 20000);
    assert_int_equal(wire_count(&r, "lost"), 1);
    const peer_reply *reply = peer_await_reply(p, peer_beat(p), 1000);
    assert_int_equal(reply->http_status, 403);
    assert_int_equal(reply->code, COORDI_CODE_WRONG_SLAVE_TOKEN);
    coord_connection_destroy(c);
    wire_close(&r);
}

/* A slave that holds `token` refuses everybody until it is told with it to let go. */
static void hold(peer *p, int refusals)
{
    peer_script(p, "/connect", refusals, 400, peer_no(501, NULL));
}

static void a_slave_lost_before_is_connected_again(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    coord_connection *c = wire_connected(&r, "s", p);
    wire_run(&r, 20000);
    assert_int_equal(wire_count(&r, "lost"), 1);
    coord_connection_destroy(c);
    hold(p, 1);
    c = wire_connection(&r, "s", p);
    assert_int_equal(connect_now(c, NULL), COORD_OK);
    assert_int_equal(peer_count(p, "/disconnect"), 1);
    assert_string_equal(peer_get(p, "/disconnect", 0)->token,
                        peer_get(p, "/connect", 0)->token);
    coord_connection_destroy(c);
    wire_close(&r);
}

static int beat_of(wire_rig *r, const char *token)
{
    return peer_ask(&r->peers[0], "10.0.0.1", r->port, "GET", "/slave/heartbeat", token,
                    "0", "{}")
        ->http_status;
}

/* A Python slave that an earlier run left behind still beats: a 403 would end its thread
 * for good. Its token is good for taking the old connection back. */
static void a_slave_of_an_earlier_run_is_taken_over(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    assert_int_equal(beat_of(&r, "old"), 403); /* a master by itself: as recorded */
    r.master->strays_until_ms = coord_sim_now_ms(r.sim) + 1000;
    assert_int_equal(beat_of(&r, "old"), 200);
    hold(p, 1);
    coord_connection *c = wire_connection(&r, "s", p);
    assert_int_equal(connect_now(c, NULL), COORD_OK);
    assert_int_equal(peer_count(p, "/disconnect"), 1);
    assert_string_equal(peer_get(p, "/disconnect", 0)->token, "old");
    wire_run(&r, 1000);
    assert_int_equal(beat_of(&r, "another"), 403); /* that time is over */
    coord_connection_destroy(c);
    wire_close(&r);
}

/* Attempts that failed in between do not make it forget the token that the slave holds.
 */
static void the_token_of_a_lost_slave_survives_failed_attempts(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    coord_connection *c = wire_connected(&r, "s", p);
    wire_run(&r, 20000);
    coord_connection_destroy(c);
    peer_script(p, "/connect", 6, 0, NULL); /* two attempts of three, unanswered */
    peer_script(p, "/disconnect", 2, 0, NULL);
    hold(p, 1);
    c = wire_connection(&r, "s", p);
    assert_int_equal(connect_now(c, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(connect_now(c, NULL), COORD_ERR_TIMEOUT);
    assert_int_equal(connect_now(c, NULL), COORD_OK);
    assert_int_equal(peer_count(p, "/disconnect"), 3);
    assert_string_equal(peer_get(p, "/disconnect", 2)->token,
                        peer_get(p, "/connect", 0)->token);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void take_half_a_second(wire_rig *r, const wire_note *n, void *object)
{
    (void)n;
    (void)object;
    assert_int_equal(coord_sim_run_for(r->sim, 500, NULL), COORD_OK);
}

/* However slow the host's callbacks are: each attempt's outcome is told. */
static void outcomes_that_come_faster_than_they_are_told_are_all_told(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    r.on_note = take_half_a_second;
    peer_script(p, "/connect", 3, 403, peer_no(503, "{}"));
    coord_connection *c = wire_connection(&r, "s", p);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(connect_now(c, NULL), COORD_ERR_REFUSED);
    }
    assert_int_equal(connect_now(c, NULL), COORD_OK);
    wire_run(&r, 5000);
    assert_int_equal(wire_count(&r, "connect"), 4);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void a_slave_that_is_not_ours_any_more_is_given_up(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    coord_connection *c = wire_connected(&r, "s", p);
    wire_run(&r, 20000);
    coord_connection_destroy(c);
    hold(p, -1);
    peer_script(p, "/disconnect", -1, 403, peer_no(302, NULL));
    c = wire_connection(&r, "s", p);
    assert_int_equal(connect_now(c, &err), COORD_ERR_REFUSED);
    assert_int_equal(err.peer_code, 501);
    assert_int_equal(peer_count(p, "/disconnect"), 1);
    assert_int_equal(peer_count(p, "/connect"), 2);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void a_slave_gets_a_request_once_that_may_have_reached_it(void **state)
{
    static wire_rig r;
    (void)state;
    coord_sim_link link;
    setup(&r, true);
    peer *p = &r.peers[0];
    coord_connection *c = wire_connected(&r, "s", p);
    coord_task *task = wire_task(&r, c, "{}");
    coord_sim_link_init(r.sim, &link, sizeof link);
    link.reset_after = 1;
    assert_int_equal(coord_sim_set_link(r.sim, "10.0.0.1", p->host, &link, NULL),
                     COORD_OK);
    assert_int_equal(coord_task_start(task, 60000, 0, NULL), COORD_ERR_LOST);
    wire_run(&r, 60000);
    assert_int_equal(peer_count(p, "/task/new"), 1);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

/* Nobody listens for a while: what certainly did not arrive is sent again. */
static void a_slave_gets_a_request_again_that_did_not_reach_it(void **state)
{
    static wire_rig r;
    coord_error err = {0};
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    coord_connection *c = wire_connected(&r, "s", p);
    coord_task *task = wire_task(&r, c, "{}");
    assert_int_equal(coord_sim_block(r.sim, "10.0.0.1", p->host, true, NULL), COORD_OK);
    assert_int_equal(coord_task_start(task, 0, 0, NULL), COORD_OK);
    wire_run(&r, 1500);
    coord_sim_heal(r.sim);
    wire_run(&r, 1500);
    assert_int_equal(peer_count(p, "/task/new"), 1);
    assert_int_equal(coord_task_get_status(task), COORD_TASK_STARTED);
    assert_int_equal(err.status, COORD_OK);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

/* ---- disconnecting ---- */

static void disconnecting_fails_the_tasks_and_is_idempotent(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    coord_connection *c = wire_connected(&r, "s", p);
    coord_task *task = wire_task(&r, c, "{}");
    assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
    assert_int_equal(
        coord_connection_disconnect(c, coord_text_of("{\"bye\": 1}"), 1000, NULL),
        COORD_OK);
    assert_string_equal(peer_get(p, "/disconnect", 0)->body, "{\"data\": {\"bye\": 1}}");
    assert_string_equal(peer_get(p, "/disconnect", 0)->method, "DELETE");
    assert_false(coord_connection_is_connected(c));
    assert_int_equal(coord_task_join(task, 0, NULL), COORD_ERR_CLOSED);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, NULL), COORD_OK);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 0, NULL), COORD_OK);
    assert_int_equal(connect_now(c, NULL), COORD_ERR_STATE);
    wire_run(&r, 10);
    assert_int_equal(wire_count(&r, "disconnect"), 1);
    assert_int_equal(wire_count(&r, "fail"), 1);
    assert_int_equal(wire_count(&r, "lost"), 0);
    assert_int_equal(peer_count(p, "/disconnect"), 1);
    coord_task_unref(task);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void a_slave_may_refuse_to_be_disconnected(void **state)
{
    static wire_rig r;
    coord_error err;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    peer_script(p, "/disconnect", 1, 403, peer_no(504, "{\"not\": \"yet\"}"));
    coord_connection *c = wire_connected(&r, "s", p);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, &err),
                     COORD_ERR_REFUSED);
    assert_true(coord_connection_is_connected(c));
    wire_run(&r, 10);
    assert_string_equal(wire_last(&r, "disconnect")->text, "{\"not\": \"yet\"}");
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, &err), COORD_OK);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void disconnecting_ends_whatever_the_slave_answers(void **state)
{
    static wire_rig r;
    static const struct {
        int status;
        const char *body;
    } ANSWERS[] = {{403, "{\"success\":false,\"code\":302}"},
                   {500, PEER_HTML},
                   {200, "not json"},
                   {0, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof ANSWERS / sizeof ANSWERS[0]; i++) {
        setup(&r, true);
        peer *p = &r.peers[0];
        peer_script(p, "/disconnect", -1, ANSWERS[i].status, ANSWERS[i].body);
        coord_connection *c = wire_connected(&r, "s", p);
        assert_int_equal(coord_connection_disconnect(c, NOTHING, 60000, NULL), COORD_OK);
        assert_false(coord_connection_is_connected(c));
        assert_true(wire_await(&r, "disconnect", 1, 10));
        assert_int_equal(wire_last(&r, "disconnect")->status, COORD_OK);
        coord_connection_destroy(c);
        wire_close(&r);
    }
}

static void two_disconnects_share_one_request(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer *p = &r.peers[0];
    peer_script(p, "/disconnect", 1, 0, NULL);
    coord_connection *c = wire_connected(&r, "s", p);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 0, NULL), COORD_OK);
    assert_true(peer_await(p, "/disconnect", 1, 1000));
    coord_error err;
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 100, &err),
                     COORD_ERR_TIMEOUT);
    peer_answer(p, peer_get(p, "/disconnect", 0), 200, PEER_YES);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, &err), COORD_OK);
    wire_run(&r, 10);
    assert_int_equal(peer_count(p, "/disconnect"), 1);
    assert_int_equal(wire_count(&r, "disconnect"), 1);
    coord_connection_destroy(c);
    wire_close(&r);
}

static void loss_ends_a_disconnect_that_nobody_answers(void **state)
{
    static wire_rig r;
    coord_master_options o = quick();
    (void)state;
    o.request_timeout_ms = 60000;
    wire_open(&r, 1);
    wire_master(&r, &o);
    peer *p = wire_peer(&r, true);
    peer_script(p, "/disconnect", -1, 0, NULL);
    coord_connection *c = wire_connected(&r, "s", p);
    int64_t began = coord_sim_now_ms(r.sim);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 60000, NULL), COORD_OK);
    assert_in_range(coord_sim_now_ms(r.sim) - began, 16000, 18100);
    assert_true(wire_await(&r, "lost", 1, 10));
    coord_connection_destroy(c);
    wire_close(&r);
}

static void disconnecting_while_connecting_ends_the_attempt(void **state)
{
    static wire_rig r;
    (void)state;
    for (int late = 0; late <= 1; late++) {
        setup(&r, true);
        peer *p = &r.peers[0];
        peer_script(p, "/connect", 1, 0, NULL);
        coord_connection *c = wire_connection(&r, "s", p);
        assert_int_equal(coord_connection_connect(c, NOTHING, 0, NULL), COORD_OK);
        if (late != 0) {
            assert_true(peer_await(p, "/connect", 1, 1000));
        }
        assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, NULL), COORD_OK);
        assert_false(coord_connection_is_connected(c));
        wire_run(&r, 100);
        assert_int_equal(wire_count(&r, "connect"), 1);
        assert_int_equal(wire_last(&r, "connect")->status, COORD_ERR_CLOSED);
        assert_int_equal(wire_count(&r, "disconnect"), 1);
        assert_int_equal(peer_count(p, "/disconnect"), late);
        p->rule_count = 0;
        assert_int_equal(connect_now(c, NULL), COORD_OK);
        coord_connection_destroy(c);
        wire_close(&r);
    }
}

/* ---- destroying ---- */

/* What a connection is made to do before it is destroyed. */
static void nothing(peer *p, coord_connection *c)
{
    (void)p;
    (void)c;
}

static void begin(peer *p, coord_connection *c)
{
    peer_script(p, "/connect", -1, 0, NULL);
    assert_int_equal(coord_connection_connect(c, NOTHING, 0, NULL), COORD_OK);
}

static void begin_and_wait(peer *p, coord_connection *c)
{
    begin(p, c);
    assert_true(peer_await(p, "/connect", 1, 1000));
}

static void begin_undo(peer *p, coord_connection *c)
{
    peer_script(p, "/disconnect", -1, 0, NULL);
    begin(p, c);
    assert_true(peer_await(p, "/disconnect", 1, 60000));
}

static void complete(peer *p, coord_connection *c)
{
    (void)p;
    assert_int_equal(connect_now(c, NULL), COORD_OK);
}

static void disconnect_slowly(peer *p, coord_connection *c)
{
    complete(p, c);
    peer_script(p, "/disconnect", -1, 0, NULL);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 0, NULL), COORD_OK);
    assert_true(peer_await(p, "/disconnect", 1, 1000));
}

static void disconnect(peer *p, coord_connection *c)
{
    complete(p, c);
    assert_int_equal(coord_connection_disconnect(c, NOTHING, 1000, NULL), COORD_OK);
}

static void lose(peer *p, coord_connection *c)
{
    complete(p, c);
    assert_int_equal(coord_sim_run_for(p->sim, 30000, NULL), COORD_OK);
    assert_false(coord_connection_is_connected(c));
}

static void (*const DEEDS[])(peer *, coord_connection *) = {
    nothing,    begin, begin_and_wait, begin_undo, complete, disconnect_slowly,
    disconnect, lose};

static void a_connection_can_be_destroyed_in_every_state(void **state)
{
    static wire_rig r;
    (void)state;
    for (size_t i = 0; i < sizeof DEEDS / sizeof DEEDS[0]; i++) {
        setup(&r, true);
        coord_connection *c = wire_connection(&r, "s", &r.peers[0]);
        coord_task *task = wire_task(&r, c, "{}");
        DEEDS[i](&r.peers[0], c);
        bool up = DEEDS[i] == complete;
        if (up) {
            assert_int_equal(coord_task_start(task, 1000, 0, NULL), COORD_OK);
        }
        coord_connection_destroy(c);
        wire_run(&r, 10);
        if (up) {
            assert_int_equal(coord_task_join(task, 0, NULL), COORD_ERR_CLOSED);
        }
        wire_run(&r, 60000);
        coord_task_unref(task);
        wire_close(&r);
    }
}

static void a_master_can_be_closed_with_connections_in_every_state(void **state)
{
    static wire_rig r;
    (void)state;
    for (size_t i = 0; i < sizeof DEEDS / sizeof DEEDS[0]; i++) {
        setup(&r, true);
        coord_connection *c = wire_connection(&r, "s", &r.peers[0]);
        coord_task *task = wire_task(&r, c, "{}");
        DEEDS[i](&r.peers[0], c);
        int64_t began = coord_sim_now_ms(r.sim);
        assert_int_equal(coord_master_close(r.master, 4000, NULL), COORD_OK);
        assert_in_range(coord_sim_now_ms(r.sim) - began, 0, 3100);
        assert_false(coord_connection_is_connected(c));
        assert_int_equal(coord_master_close(r.master, 4000, NULL), COORD_OK);
        assert_int_not_equal(connect_now(c, NULL), COORD_OK);
        coord_task_unref(task);
        coord_connection_destroy(c);
        wire_close(&r);
    }
}

/* ---- callbacks ---- */

static void do_more(wire_rig *r, const wire_note *n, void *object)
{
    coord_connection *c = object;
    if (strcmp(n->what, "connect") == 0 && n->status != COORD_OK) {
        assert_int_equal(coord_connection_connect(c, NOTHING, 0, NULL), COORD_OK);
    } else if (strcmp(n->what, "connect") == 0) {
        assert_int_equal(coord_connection_disconnect(c, NOTHING, 5000, NULL), COORD_OK);
    } else if (strcmp(n->what, "disconnect") == 0) {
        coord_connection_destroy(c);
    }
    assert_int_equal(coord_master_close(r->master, 1000, NULL), COORD_ERR_STATE);
}

static void a_callback_may_try_again_disconnect_and_destroy(void **state)
{
    static wire_rig r;
    (void)state;
    setup(&r, true);
    peer_script(&r.peers[0], "/connect", 2, 403, peer_no(503, NULL));
    coord_connection *c = wire_connection(&r, "s", &r.peers[0]);
    r.on_note = do_more;
    assert_int_equal(coord_connection_connect(c, NOTHING, 0, NULL), COORD_OK);
    assert_true(wire_await(&r, "disconnect", 1, 10000));
    assert_int_equal(wire_count(&r, "connect"), 3);
    wire_run(&r, 1000);
    wire_close(&r);
}

static void arguments_are_checked(void **state)
{
    static wire_rig r;
    coord_connection_options o;
    coord_connection *c = NULL;
    coord_error err;
    (void)state;
    setup(&r, true);
    coord_connection_options_init(&o, sizeof o);
    o.host = "h";
    o.port = 1;
    assert_int_equal(coord_master_new_connection(r.master, &o, &c, &err), COORD_ERR_ARG);
    o.id = "";
    assert_int_equal(coord_master_new_connection(r.master, &o, &c, &err), COORD_ERR_ARG);
    o.id = "s";
    o.port = 0;
    assert_int_equal(coord_master_new_connection(r.master, &o, &c, &err), COORD_ERR_ARG);
    o.port = 1;
    o.host = NULL;
    assert_int_equal(coord_master_new_connection(r.master, &o, &c, &err), COORD_ERR_ARG);
    assert_null(c);
    o.host = "h";
    assert_int_equal(coord_master_new_connection(r.master, &o, &c, &err), COORD_OK);
    assert_int_equal(coord_connection_connect(c, coord_text_of("{"), 100, &err),
                     COORD_ERR_FORMAT);
    assert_int_equal(coord_connection_connect(c, NOTHING, -1, &err), COORD_ERR_ARG);
    assert_int_equal(coord_connection_connect(NULL, NOTHING, 1, &err), COORD_ERR_ARG);
    assert_false(coord_connection_is_connected(NULL));
    coord_connection_destroy(c);
    coord_connection_destroy(NULL);
    wire_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connecting_tells_the_slave_where_to_report),
        cmocka_unit_test(the_token_is_known_before_the_answer),
        cmocka_unit_test(a_refusal_brings_the_slaves_data_and_may_be_tried_again),
        cmocka_unit_test(another_masters_slave_is_left_alone),
        cmocka_unit_test(a_connect_whose_answer_is_lost_is_undone_and_made_again),
        cmocka_unit_test(an_attempt_nobody_answered_is_taken_back),
        cmocka_unit_test(an_unreachable_slave_is_lost_after_the_retries),
        cmocka_unit_test(an_id_is_connected_once_at_a_time),
        cmocka_unit_test(silence_is_loss_right_after_the_tolerance),
        cmocka_unit_test(results_keep_a_connection_alive_as_beats_do),
        cmocka_unit_test(a_lost_libcoord_slave_is_told_at_its_next_beat),
        cmocka_unit_test(a_slave_lost_before_is_connected_again),
        cmocka_unit_test(a_slave_of_an_earlier_run_is_taken_over),
        cmocka_unit_test(the_token_of_a_lost_slave_survives_failed_attempts),
        cmocka_unit_test(outcomes_that_come_faster_than_they_are_told_are_all_told),
        cmocka_unit_test(a_slave_that_is_not_ours_any_more_is_given_up),
        cmocka_unit_test(a_slave_gets_a_request_once_that_may_have_reached_it),
        cmocka_unit_test(a_slave_gets_a_request_again_that_did_not_reach_it),
        cmocka_unit_test(disconnecting_fails_the_tasks_and_is_idempotent),
        cmocka_unit_test(a_slave_may_refuse_to_be_disconnected),
        cmocka_unit_test(disconnecting_ends_whatever_the_slave_answers),
        cmocka_unit_test(two_disconnects_share_one_request),
        cmocka_unit_test(loss_ends_a_disconnect_that_nobody_answers),
        cmocka_unit_test(disconnecting_while_connecting_ends_the_attempt),
        cmocka_unit_test(a_connection_can_be_destroyed_in_every_state),
        cmocka_unit_test(a_master_can_be_closed_with_connections_in_every_state),
        cmocka_unit_test(a_callback_may_try_again_disconnect_and_destroy),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
