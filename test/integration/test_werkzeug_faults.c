/* What becomes of requests that such peers answer oddly, late, or not at all. */
#include "support/werkzeug_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* ---- what makes no sense ---- */

typedef struct oddity {
    werkzeug_answer answer;
    coord_status status;
    const char *words; /* in the error's text or cause */
} oddity;

static const oddity ODDITIES[] = {
    {{.status = 500, .body = WERKZEUG_PAGE, .html = true},
     COORD_ERR_PROTOCOL,
     "answered HTTP 500 without the four-key JSON body, but with 192 bytes \"<!doctype"},
    {{.status = 405, .body = WERKZEUG_PAGE, .html = true},
     COORD_ERR_PROTOCOL,
     "answered HTTP 405"},
    {{.status = 200, .body = WERKZEUG_PAGE, .html = true},
     COORD_ERR_PROTOCOL,
     "answered HTTP 200 without"},
    {{.status = 500, .body = ""}, COORD_ERR_PROTOCOL, "but with 0 bytes \"\""},
    {{.status = 200, .body = ""}, COORD_ERR_PROTOCOL, "HTTP 200 without"},
    {{.status = 200, .body = "{\"code\":0,\"succ"},
     COORD_ERR_PROTOCOL,
     "but with 15 bytes"},
    {{.status = 200, .body = "{\"code\":0}"}, COORD_ERR_PROTOCOL, "HTTP 200 without"},
    {{.status = 200, .body = "[true, 0]"}, COORD_ERR_PROTOCOL, "9 bytes"},
    {{.status = 302,
      .body = "{\"success\": true}",
      .more = "Location: http://127.0.0.1:1/connect\r\n"},
     COORD_ERR_PROTOCOL,
     "answered HTTP 302 without"},
    {{.status = 500, .body = WERKZEUG_YES}, COORD_ERR_REFUSED, "HTTP 500"},
    {{.status = 400,
      .body =
          "{\"success\": false, \"code\": 77, \"message\": \"R\\u00fcbe\", \"data\": 0}"},
     COORD_ERR_REFUSED,
     "answered \"R\xc3\xbc"
     "be\" (code 77, HTTP 400)"},
    {{.status = 200, .body = "{\"success\": false, \"code\": 601}"},
     COORD_ERR_REFUSED,
     "(code 601, HTTP 200)"},
};
enum { ODDITY_COUNT = sizeof ODDITIES / sizeof ODDITIES[0] };

static void assert_words(const oddity *odd, coord_status status, const coord_error *err)
{
    if (status != odd->status || strstr(err->text, odd->words) == NULL) {
        fail_msg("expected \"%s\" and %s, got: %s: %s: %s", coord_status_str(odd->status),
                 odd->words, coord_status_str(status), err->text, err->cause);
    }
    assert_int_equal(err->status, status);
    assert_int_equal(err->http_status, odd->answer.status);
}

static void a_connect_that_is_answered_oddly_fails_clearly(void **state)
{
    wz_rig *r = *state;
    for (size_t i = 0; i < ODDITY_COUNT; i++) {
        coord_error err = {0};
        wz_script(r, "/connect", 1, ODDITIES[i].answer);
        coord_status rc = coord_connection_connect(r->connection, coord_text_of("{}"),
                                                   WZ_WAIT_MS, &err);
        wz_unscript(r);
        assert_words(&ODDITIES[i], rc, &err);
        assert_non_null(strstr(err.text, "connect to 'slave' at 127.0.0.1:"));
        assert_false(coord_connection_is_connected(r->connection));
    }
    assert_int_equal(werkzeug_count(r->peer, "/connect"), ODDITY_COUNT); /* each once */
    wz_connect(r);
}

static void a_task_that_is_answered_oddly_fails_clearly(void **state)
{
    wz_rig *r = *state;
    wz_connect(r);
    for (size_t i = 0; i < ODDITY_COUNT - 1; i++) { /* the last one means busy */
        coord_error err = {0};
        coord_task *task = wz_make_task(r, "{}");
        wz_script(r, "/task/new", 1, ODDITIES[i].answer);
        coord_status rc = coord_task_start(task, WZ_WAIT_MS, 0, &err);
        wz_unscript(r);
        assert_words(&ODDITIES[i], rc, &err);
        assert_non_null(strstr(err.text, coord_task_id(task)));
        assert_int_equal(coord_task_get_status(task), COORD_TASK_START_FAILED);
        assert_int_equal(coord_task_join(task, WZ_WAIT_MS, NULL), rc);
        coord_task_unref(task);
        assert_true(coord_connection_is_connected(r->connection));
    }
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), ODDITY_COUNT - 1);
    coord_task *task = wz_make_task(r, "{}");
    wz_start(task);
    wz_finish(r, task);
}

static void an_answer_that_breaks_off_is_a_loss_that_says_so(void **state)
{
    wz_rig *r = *state;
    coord_error err = {0};
    const werkzeug_answer half = {.status = 200, .body = WERKZEUG_YES, .half = true};
    wz_connect(r);
    coord_task *task = wz_make_task(r, "{}");
    wz_script(r, "/task/new", 1, half);
    assert_int_equal(coord_task_start(task, WZ_WAIT_MS, 0, &err), COORD_ERR_LOST);
    assert_non_null(strstr(err.cause, "POST http://127.0.0.1:"));
    assert_non_null(strstr(err.cause, "bytes remaining to read"));
    wz_await(r, "lost: ");
    coord_task_unref(task);
    wz_destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 1);
}

static void a_goodbye_that_is_answered_oddly_is_one_all_the_same(void **state)
{
    wz_rig *r = *state;
    wz_connect(r);
    wz_script(r, "/disconnect", 1, ODDITIES[0].answer);
    assert_int_equal(
        coord_connection_disconnect(r->connection, coord_text_of("{}"), WZ_WAIT_MS, NULL),
        COORD_OK);
    assert_false(coord_connection_is_connected(r->connection));
}

/* ---- again, or not again
 * --------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void a_busy_slave_is_asked_again_after_a_pause(void **state)
{
    wz_rig *r = *state;
    const werkzeug_answer busy = {.status = 400, .body = WERKZEUG_BUSY};
    wz_connect(r);
    wz_script(r, "/task/new", 3, busy);
    coord_task *task = wz_make_task(r, "{\"n\": 1}");
    int64_t begin_ms = now_ms();
    wz_start(task);
    assert_true(now_ms() - begin_ms >= 3 * WZ_RETRY_MS);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 4);
    for (size_t i = 1; i < 4; i++) { /* each time the same task */
        assert_string_equal(werkzeug_raw(r->peer, "/task/new", i, NULL),
                            werkzeug_raw(r->peer, "/task/new", 0, NULL));
    }
    wz_finish(r, task);
    wz_assert_no_reuse(r);
}

static void a_task_that_may_have_arrived_is_not_sent_again(void **state)
{
    wz_rig *r = *state;
    coord_error err = {0};
    wz_connect(r);
    wz_script(r, "/task/new", 1000, (werkzeug_answer){.body = NULL});
    coord_task *task = wz_make_task(r, "{}");
    assert_int_equal(coord_task_start(task, WZ_WAIT_MS, 0, &err), COORD_ERR_LOST);
    assert_int_equal(coord_task_join(task, WZ_WAIT_MS, NULL), COORD_ERR_LOST);
    assert_non_null(strstr(err.text, coord_task_id(task)));
    assert_non_null(strstr(err.cause, "/task/new"));
    wz_await(r, "lost: ");
    coord_task_unref(task);
    wz_destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 1);
}

static void a_slave_that_does_not_listen_yet_is_waited_for(void **state)
{
    wz_rig *r = *state;
    coord_error err = {0};
    assert_int_equal(coord_connection_connect(r->connection, coord_text_of("{}"),
                                              2 * WZ_RETRY_MS, &err),
                     COORD_ERR_TIMEOUT);
    werkzeug_listen(r->peer);
    wz_await(r, "\nconnected\n");
    assert_int_equal(werkzeug_count(r->peer, "/connect"), 1);

    werkzeug_deafen(r->peer);
    coord_task *task = wz_make_task(r, "{}");
    assert_int_equal(coord_task_start(task, 2 * WZ_RETRY_MS, 0, &err), COORD_ERR_TIMEOUT);
    assert_int_equal(coord_task_get_status(task), COORD_TASK_STARTING);
    werkzeug_listen(r->peer);
    werkzeug_await(r->peer, "/task/new", 1);
    wz_finish(r, task);
    wz_destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, "/task/new"), 1);
}

/* ---- a slave's reports
 * ------------------------------------------------------------------ */

static void a_result_that_is_answered_oddly_does_the_slave_no_harm(void **state)
{
    wz_rig *r = *state;
    wz_connect_to_slave(r, "");
    for (size_t i = 0; i < ODDITY_COUNT; i++) {
        char line[128];
        wz_script(r, "/slave/task/complete", 1, ODDITIES[i].answer);
        assert_int_equal(wz_give_task(r, i % 2 == 0 ? 0 : 1), 200);
        werkzeug_await(r->peer, "/slave/task/complete", i + 1);
        (void)snprintf(line, sizeof line, "result not delivered task=%s",
                       WZ_TASK_ID[i % 2 == 0 ? 0 : 1]);
        wz_await(r, line);
        wz_await(r, ODDITIES[i].words);
        wz_forget(r);
        wz_unscript(r);
        assert_true(coord_slave_is_connected(r->slave));
    }
    assert_int_equal(wz_give_task(r, 0), 200);
    werkzeug_await(r->peer, "/slave/task/complete", ODDITY_COUNT + 1);
    wz_destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, NULL), ODDITY_COUNT + 1);
}

static void a_heartbeat_that_is_answered_oddly_does_the_slave_no_harm(void **state)
{
    wz_rig *r = *state;
    wz_script(r, "/slave/heartbeat", 1, ODDITIES[0].answer);
    wz_script(r, "/slave/heartbeat", 1, ODDITIES[3].answer);
    wz_connect_to_slave(r, "");
    werkzeug_await(r->peer, "/slave/heartbeat", 4);
    wz_await(r, "heartbeat failed");
    wz_await(r, "answered HTTP 500");
    assert_int_equal(wz_count(r, "lost"), 0);
    assert_true(coord_slave_is_connected(r->slave));
}

static void a_heartbeat_without_an_answer_is_sent_again(void **state)
{
    wz_rig *r = *state;
    wz_script(r, "/slave/heartbeat", 2, (werkzeug_answer){.body = NULL});
    wz_connect_to_slave(r, "");
    werkzeug_await(r->peer, "/slave/heartbeat", 4);
    assert_true(coord_slave_is_connected(r->slave));
}

static void a_master_that_does_not_know_the_slave_sets_it_free(void **state)
{
    wz_rig *r = *state;
    wz_script(r, "/slave/heartbeat", 1,
              (werkzeug_answer){
                  .status = 403,
                  .body =
                      "{\"code\":502,\"data\":null,\"message\":\"No matching slave token "
                      "found in this endpoint.\",\"success\":false}"});
    wz_connect_to_slave(r, "");
    wz_await(r, "lost: heartbeat: answered \"No matching slave token found");
    wz_connect_to_slave(r, ""); /* for the next master, or the same */
    werkzeug_await(r->peer, "/slave/heartbeat", 2);
}

static void a_result_that_may_have_arrived_is_not_sent_again(void **state)
{
    static const werkzeug_answer LOST[] = {
        {.body = NULL}, {.status = 200, .body = WERKZEUG_YES, .half = true}};
    wz_rig *r = *state;
    for (size_t i = 0; i < 2; i++) {
        wz_connect_to_slave(r, "");
        wz_script(r, "/slave/task/complete", 1, LOST[i]);
        assert_int_equal(wz_give_task(r, (int)i), 200);
        wz_await(r, i == 0 ? "lost: result of task 0" : "lost: result of task 1");
        assert_false(coord_slave_is_connected(r->slave));
    }
    wz_destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, NULL), 2);
}

static void results_wait_for_a_master_that_does_not_listen(void **state)
{
    wz_rig *r = *state;
    wz_connect_to_slave(r, "");
    assert_int_equal(wz_give_task(r, 0), 200);
    while (wz_give_task(r, 1) == 400) { /* until the first one is done */
    }
    for (int i = 0; i < 20; i++) { /* both meet nobody now */
        assert_int_equal(werkzeug_ask(coord_slave_port(r->slave), "GET", "/ping",
                                      WZ_CHANNEL, NULL, "{}", 2, NULL, 0),
                         400);
    }
    werkzeug_listen(r->peer);
    werkzeug_await(r->peer, "/slave/task/complete", 2);
    wz_destroy_ours(r);
    assert_int_equal(werkzeug_count(r->peer, NULL), 2);
    const char *first = werkzeug_raw(r->peer, NULL, 0, NULL);
    const char *second = werkzeug_raw(r->peer, NULL, 1, NULL);
    assert_true((strstr(first, WZ_TASK_ID[0]) != NULL) ==
                (strstr(second, WZ_TASK_ID[1]) != NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WZ_EACH(a_connect_that_is_answered_oddly_fails_clearly, wz_open_master),
        WZ_EACH(a_task_that_is_answered_oddly_fails_clearly, wz_open_master),
        WZ_EACH(an_answer_that_breaks_off_is_a_loss_that_says_so, wz_open_master),
        WZ_ONE(a_goodbye_that_is_answered_oddly_is_one_all_the_same, wz_open_master, "",
               2),
        WZ_EACH(a_busy_slave_is_asked_again_after_a_pause, wz_open_master),
        WZ_EACH(a_task_that_may_have_arrived_is_not_sent_again, wz_open_master),
        WZ_ONE(a_slave_that_does_not_listen_yet_is_waited_for, wz_open_deaf_master, "",
               2),
        WZ_EACH(a_result_that_is_answered_oddly_does_the_slave_no_harm, wz_open_slave),
        WZ_EACH(a_heartbeat_that_is_answered_oddly_does_the_slave_no_harm,
                wz_open_beating_slave),
        WZ_EACH(a_heartbeat_without_an_answer_is_sent_again, wz_open_beating_slave),
        WZ_ONE(a_master_that_does_not_know_the_slave_sets_it_free, wz_open_beating_slave,
               "", 2),
        WZ_EACH(a_result_that_may_have_arrived_is_not_sent_again, wz_open_slave),
        WZ_ONE(results_wait_for_a_master_that_does_not_listen, wz_open_deaf_slave, "", 2),
    };
    return wz_run("werkzeug_faults", tests, sizeof tests / sizeof tests[0]);
}
