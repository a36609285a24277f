/* What a simulated world says of itself when a test fails, and sleepers at its end. */
#include "base/alloc.h"
#include "coord/testing.h"
#include "env/env.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A client process and a server process, and all lines of one report. */
typedef struct rig {
    coord_sim *sim;
    coord_loop *client;
    coord_loop *host;
    const coordi_env *env;
    coordi_http_server *server;
    coordi_http_peer *peer;
    coordi_http_call *call; /* held */
    char text[8192];
} rig;

static void on_call(coordi_http_call *call, void *arg)
{
    rig *r = arg;
    r->call = call;
}

static void on_done(const coordi_http_reply *reply, void *arg)
{
    (void)reply;
    (void)arg;
}

static void rig_open(rig *r, uint64_t seed)
{
    coordi_http_server_spec spec = {.host = "", .port = 80, .on_call = on_call, .arg = r};
    coordi_address to = {.host = "server", .port = 80};
    coord_sim_options options;
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&options, sizeof options);
    options.seed = seed;
    assert_int_equal(coord_sim_create(&options, &r->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "client", &r->client, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "server", &r->host, NULL), COORD_OK);
    r->env = r->client->env;
    assert_int_equal(r->env->server_create(r->host, &spec, &r->server, NULL), COORD_OK);
    assert_int_equal(r->env->peer_create(r->client, &to, NULL, 0, &r->peer, NULL),
                     COORD_OK);
}

static void rig_close(rig *r)
{
    if (r->call != NULL) {
        r->env->http_answer(r->call, 200, coordi_strdup("{}"), 2);
    }
    r->env->peer_destroy(r->peer);
    r->env->server_destroy(r->server);
    coord_loop_destroy(r->client);
    coord_loop_destroy(r->host);
    coord_sim_destroy(r->sim);
}

static void send(rig *r)
{
    coordi_http_spec spec = {.method = "PUT",
                             .path = "/x",
                             .body = coordi_strdup("body"),
                             .body_len = 4,
                             .timeout_ms = 60000,
                             .done = on_done,
                             .arg = r};
    assert_int_equal(r->env->http_send(r->peer, &spec, NULL, NULL), COORD_OK);
}

static void run_for(rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

static bool never(void *user)
{
    (void)user;
    return false;
}

/* Runs in vain; the cause that it gives. Static. */
static const char *cause_of(rig *r, int64_t limit_ms)
{
    static coord_error err;
    assert_int_equal(coord_sim_run_until(r->sim, limit_ms, never, NULL, &err),
                     COORD_ERR_TIMEOUT);
    return err.cause;
}

static void add_line(const char *line, void *user)
{
    rig *r = user;
    size_t used = strlen(r->text);
    (void)snprintf(r->text + used, sizeof r->text - used, "%s\n", line);
}

static const char *report_of(rig *r)
{
    r->text[0] = '\0';
    coord_sim_report(r->sim, add_line, r);
    return r->text;
}

/* ---- causes ---- */

static void a_timeout_names_the_request_that_is_not_answered(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    send(&r);
    assert_string_equal(cause_of(&r, 100),
                        "client#1 waits until 61000 ms for PUT http://server:80/x: "
                        "server#2 has it");
    rig_close(&r);
}

static void a_timeout_names_what_stands_still(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    coord_sim_pause(r.sim, r.host, true);
    send(&r);
    assert_string_equal(cause_of(&r, 100),
                        "server#2 is paused; client#1 waits until 61000 ms for PUT "
                        "http://server:80/x: its server is paused");
    coord_sim_pause(r.sim, r.host, false);
    coord_sim_crash(r.sim, r.client);
    assert_string_equal(cause_of(&r, 1),
                        "client#1 has crashed; nothing more will ever happen");
    rig_close(&r);
}

static void a_timeout_tells_what_the_network_does(void **state)
{
    (void)state;
    rig r;
    coord_sim_link slow;
    rig_open(&r, 1);
    assert_int_equal(coord_sim_block(r.sim, NULL, NULL, true, NULL), COORD_OK);
    send(&r);
    assert_non_null(strstr(cause_of(&r, 1), "no connection can be made"));
    run_for(&r, 60000);
    coord_sim_heal(r.sim);
    coord_sim_link_init(r.sim, &slow, sizeof slow);
    slow.latency_min_ms = 500;
    slow.latency_max_ms = 500;
    assert_int_equal(coord_sim_set_link(r.sim, NULL, NULL, &slow, NULL), COORD_OK);
    send(&r);
    assert_non_null(strstr(cause_of(&r, 1), "it is on its way"));
    run_for(&r, 500);
    r.env->http_answer(r.call, 200, coordi_strdup("{}"), 2);
    r.call = NULL;
    assert_non_null(strstr(cause_of(&r, 1), "the answer is on its way"));
    run_for(&r, 500);
    slow.loss = 1;
    assert_int_equal(coord_sim_set_link(r.sim, NULL, NULL, &slow, NULL), COORD_OK);
    send(&r);
    assert_non_null(strstr(cause_of(&r, 1), "it was lost"));
    rig_close(&r);
}

static void a_timeout_tells_when_nothing_can_come(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    assert_string_equal(cause_of(&r, 100), "nothing more will ever happen");
    rig_close(&r);
}

static void sleeper(void *user)
{
    rig *r = user;
    assert_int_equal(coord_sim_run_for(r->sim, INT64_MAX, NULL), COORD_OK);
    r->text[0] = 'w';
}

static void a_timeout_names_threads_that_sleep_or_wait(void **state)
{
    (void)state;
    rig r;
    coord_error err;
    coord_sim_thread *thread = NULL;
    rig_open(&r, 1);
    assert_int_equal(coord_sim_thread_start(r.sim, sleeper, &r, &thread, NULL), COORD_OK);
    assert_int_equal(coord_sim_thread_join(thread, 100, &err), COORD_ERR_TIMEOUT);
    assert_string_equal(
        err.cause, "world#0 thread 1 sleeps for ever; nothing more will ever happen");
    coord_sim *sim = r.sim;
    rig_close(&r); /* wakes it: the clock of a world that was given back stands still */
    assert_int_equal(r.text[0], 'w');
    assert_int_equal(coord_sim_now_ms(sim), 1100);
    assert_int_equal(coord_sim_thread_join(thread, 1, NULL), COORD_OK);
}

/* ---- the report ---- */

static void a_report_tells_seed_time_everybody_and_the_last_events(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 77);
    send(&r);
    run_for(&r, 100);
    assert_string_equal(report_of(&r),
                        "seed 77, 1100 ms, 0 messages under way\n"
                        "client#1 waits for messages\n"
                        "server#2 waits for messages\n"
                        "client#1 waits until 61000 ms for PUT http://server:80/x: "
                        "server#2 has it\n"
                        "the last 2 of 2 events:\n"
                        "1000 server#2 listen 80\n"
                        "1005 server#2 request PUT /x (4 bytes) from 10.83.0.1\n");
    rig_close(&r);
}

static void a_report_keeps_the_last_events_in_order(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    for (int i = 0; i < 100; i++) {
        run_for(&r, 1);
        coord_sim_heal(r.sim);
    }
    const char *text = report_of(&r);
    assert_non_null(strstr(text, "the last 32 of 101 events:\n1069 world#0 heal\n"));
    assert_non_null(strstr(text, "\n1099 world#0 heal\n1100 world#0 heal\n"));
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeout_names_the_request_that_is_not_answered),
        cmocka_unit_test(a_timeout_names_what_stands_still),
        cmocka_unit_test(a_timeout_tells_what_the_network_does),
        cmocka_unit_test(a_timeout_tells_when_nothing_can_come),
        cmocka_unit_test(a_timeout_names_threads_that_sleep_or_wait),
        cmocka_unit_test(a_report_tells_seed_time_everybody_and_the_last_events),
        cmocka_unit_test(a_report_keeps_the_last_events_in_order),
    };
    return cmocka_run_group_tests_name("sim_report", tests, NULL, NULL);
}
