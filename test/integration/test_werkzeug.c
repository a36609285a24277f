/* Our requests, byte by byte, to scripted peers that speak HTTP as the Werkzeugs in the
 * field do. */
#include "support/raw_http.h"
#include "support/werkzeug_rig.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a master's requests ---- */

static void a_master_asks_in_a_way_that_is_understood(void **state)
{
    enum { BIG = 1 << 20 };
    wz_rig *r = *state;
    char body[256];
    int len;
    char *big = calloc(1, BIG + 256);
    assert_non_null(big);

    wz_connect(r);
    wz_await(r, "beat: 200\n"); /* its token was known before it answered */
    assert_int_equal(strlen(r->token), 64);
    len = snprintf(body, sizeof body,
                   "{\"master\": {\"address\": \"http://127.0.0.1:%u\"}, "
                   "\"data\": {\"a\": Infinity}}",
                   (unsigned)coord_master_port(r->master));
    wz_check_request(r, "/connect", 0, "POST", r->token, body, (size_t)len);

    coord_task *task = wz_make_task(r, "{\"b\": NaN}");
    wz_start(task);
    len = snprintf(body, sizeof body,
                   "{\"task\": {\"id\": \"%s\"}, \"data\": {\"b\": NaN}}",
                   coord_task_id(task));
    wz_check_request(r, "/task/new", 0, "POST", r->token, body, (size_t)len);
    wz_finish(r, task);

    memset(big, ' ', BIG);
    big[0] = '[';
    big[BIG - 1] = ']';
    task = wz_make_task(r, big);
    wz_start(task);
    len = snprintf(body, sizeof body,
                   "{\"task\": {\"id\": \"%s\"}, \"data\": ", coord_task_id(task));
    memmove(big + len, big, BIG);
    memcpy(big, body, (size_t)len);
    big[len + BIG] = '}';
    wz_check_request(r, "/task/new", 1, "POST", r->token, big, (size_t)len + BIG + 1);
    wz_finish(r, task);
    free(big);

    assert_int_equal(
        coord_connection_disconnect(r->connection, coord_text_of(""), WZ_WAIT_MS, NULL),
        COORD_OK);
    wz_check_request(r, "/disconnect", 0, "DELETE", r->token, "{\"data\": {}}", 12);
    wz_assert_no_reuse(r);
    assert_int_equal(werkzeug_count(r->peer, NULL), 4);
}

static void a_result_may_be_faster_than_the_answer_to_its_task(void **state)
{
    wz_rig *r = *state;
    coord_error err = {0};
    (void)pthread_mutex_lock(&r->lock);
    r->results_first = 2;
    (void)pthread_mutex_unlock(&r->lock);
    wz_connect(r);
    for (int answered = 0; answered < 2; answered++) {
        coord_task *task = wz_make_task(r, "{}");
        if (answered == 0) { /* not even an answer is needed */
            wz_script(r, "/task/new", 1, (werkzeug_answer){.body = NULL});
        }
        if (coord_task_start(task, WZ_WAIT_MS, 0, &err) != COORD_OK) {
            fail_msg("%s: %s", err.text, err.cause);
        }
        assert_int_equal(coord_task_join(task, WZ_WAIT_MS, NULL), COORD_OK);
        assert_int_equal(coord_task_result(task).len, 15);
        assert_memory_equal(coord_task_result(task).ptr, "{\"early\": true}", 15);
        coord_task_unref(task);
    }
    wz_await(r, "early: 200\nearly: 200\n");
    coord_task *task = wz_make_task(r, "{}"); /* and the slave is ours still */
    wz_start(task);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 3);
    wz_finish(r, task);
}

static void count_calls(coord_task *task, const coord_error *failure, void *user)
{
    (void)failure;
    wz_say(user, "complete %s\n", coord_task_id(task));
}

static void a_result_that_comes_again_is_answered_and_dropped(void **state)
{
    wz_rig *r = *state;
    wz_connect(r);
    coord_task *task = wz_make_task(r, "{}");
    assert_int_equal(coord_task_on_complete(task, count_calls, r, NULL), COORD_OK);
    wz_start(task);
    for (int i = 0; i < 3; i++) {
        char result[32];
        (void)snprintf(result, sizeof result, "{\"n\": %d}", i);
        assert_int_equal(wz_put_result(r, coord_task_id(task), result), 200);
    }
    assert_int_equal(wz_put_result(r, WZ_TASK_ID[0], "null"), 200);
    assert_memory_equal(coord_task_result(task).ptr, "{\"n\": 0}", 8);
    coord_task *next = wz_make_task(r, "{}");
    wz_start(next);
    wz_finish(r, next);
    wz_await(r, "complete ");
    coord_task_unref(task);
    wz_destroy_ours(r);
    assert_int_equal(wz_count(r, "complete "), 1);
}

static void answers_without_a_length_are_understood(void **state)
{
    wz_rig *r = *state;
    const werkzeug_answer yes = {.status = 200, .body = WERKZEUG_YES, .endless = true};
    wz_script(r, "/connect", 1, yes);
    wz_script(r, "/task/new", 1, yes);
    wz_script(r, "/disconnect", 1, yes);
    wz_connect(r);
    coord_task *task = wz_make_task(r, "{}");
    wz_start(task);
    wz_finish(r, task);
    assert_int_equal(
        coord_connection_disconnect(r->connection, coord_text_of("{}"), WZ_WAIT_MS, NULL),
        COORD_OK);
}

/* ---- a slave's requests
 * ---------------------------------------------------------------- */

static void a_slave_reports_in_a_way_that_is_understood(void **state)
{
    enum { BIG = 1 << 20 };
    wz_rig *r = *state;
    char body[256];
    char *big = calloc(1, BIG + 256);
    assert_non_null(big);
    wz_connect_to_slave(r, "/some/where/");
    for (size_t i = 0; i < 3; i++) {
        wz_check_request(r, "/some/where/slave/heartbeat", i, "GET", "tok", "{}", 2);
    }
    assert_int_equal(wz_give_task(r, 0), 200);
    int len =
        snprintf(body, sizeof body,
                 "{\"task\": {\"id\": \"%s\"}, \"result\": {\"ok\": 1}}", WZ_TASK_ID[0]);
    wz_check_request(r, "/some/where/slave/task/complete", 0, "PUT", "tok", body,
                     (size_t)len);

    len = snprintf(big, 256, "{\"task\": {\"id\": \"%s\"}, \"result\": ", WZ_TASK_ID[1]);
    memset(big + len, 'x', BIG);
    big[len] = '"';
    big[len + BIG - 1] = '"';
    big[len + BIG] = '}';
    r->work = big + len;
    r->work_len = BIG;
    assert_int_equal(wz_give_task(r, 1), 200);
    wz_check_request(r, "/some/where/slave/task/complete", 1, "PUT", "tok", big,
                     (size_t)len + BIG + 1);
    wz_destroy_ours(r);
    wz_assert_no_reuse(r);
    assert_int_equal(werkzeug_count(r->peer, NULL),
                     2 + werkzeug_count(r->peer, "/some/where/slave/heartbeat"));
    free(big);
}

/* ---- a Python client that keeps its connection
 * ------------------------------------------ */

static void heartbeats_with_bodies_share_a_connection(void **state)
{
    wz_rig *r = *state;
    char text[512];
    char answer[1024];
    wz_connect(r);
    (void)snprintf(
        text, sizeof text,
        "GET /slave/heartbeat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n"
        "Channel: 7\r\nToken: %s\r\nContent-Length: 2\r\n\r\n",
        r->token);
    int fd = raw_connect((uint16_t)r->port);
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)), 0);
    for (int i = 0; i < 100; i++) {
        raw_sends(fd, text);
        raw_sends(fd, "{}");
        assert_true(raw_read_answer(fd, answer, sizeof answer, false));
        assert_non_null(strstr(answer, "Received!"));
    }
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WZ_EACH(a_master_asks_in_a_way_that_is_understood, wz_open_master),
        WZ_EACH(a_result_may_be_faster_than_the_answer_to_its_task, wz_open_master),
        WZ_ONE(a_result_that_comes_again_is_answered_and_dropped, wz_open_master, "", 2),
        WZ_EACH(answers_without_a_length_are_understood, wz_open_master),
        WZ_EACH(a_slave_reports_in_a_way_that_is_understood, wz_open_beating_slave),
        WZ_ONE(heartbeats_with_bodies_share_a_connection, wz_open_master, "", 2),
    };
    return wz_run("werkzeug", tests, sizeof tests / sizeof tests[0]);
}
