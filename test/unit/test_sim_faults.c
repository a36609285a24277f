/* Faults of the simulated world: messages that get lost, doubled or cut off, and
 * processes that stop or die. */
#include "base/alloc.h"
#include "coord/testing.h"
#include "env/env.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A client process and a server process on two machines. */
typedef struct rig {
    coord_sim *sim;
    coord_loop *client;
    coord_loop *host;
    const coordi_env *env;
    coordi_http_server *server;
    coordi_http_peer *peer;
    coordi_http_call *call; /* kept by the server that holds */
    bool holds;
    int requests;
    int replies;
    int answered; /* replies that are answers */
    coord_status status;
    bool undelivered;
    int os_errno;
    int64_t took_ms;
    int64_t sent_ms;
} rig;

static void on_call(coordi_http_call *call, void *arg)
{
    rig *r = arg;
    r->requests++;
    if (r->holds) {
        r->call = call;
        return;
    }
    r->env->http_answer(call, 200, coordi_strdup("{}"), 2);
}

static void on_done(const coordi_http_reply *reply, void *arg)
{
    rig *r = arg;
    r->replies++;
    r->answered += reply->status == COORD_OK ? 1 : 0;
    r->status = reply->status;
    r->undelivered = reply->undelivered;
    r->os_errno = reply->error == NULL ? 0 : reply->error->os_errno;
    r->took_ms = coord_sim_now_ms(r->sim) - r->sent_ms;
}

static coord_loop *loop_on(rig *r, const char *host)
{
    coord_loop *loop = NULL;
    assert_int_equal(coord_sim_loop(r->sim, host, &loop, NULL), COORD_OK);
    return loop;
}

static coord_status serve(rig *r, coord_loop *loop)
{
    coordi_http_server_spec spec = {
        .host = "", .port = 80, .max_body_bytes = 100, .on_call = on_call, .arg = r};
    return r->env->server_create(loop, &spec, &r->server, NULL);
}

static void rig_open(rig *r, uint64_t seed)
{
    coord_sim_options options;
    coordi_address to = {.host = "server", .port = 80};
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&options, sizeof options);
    options.seed = seed;
    assert_int_equal(coord_sim_create(&options, &r->sim, NULL), COORD_OK);
    r->client = loop_on(r, "client");
    r->host = loop_on(r, "server");
    r->env = r->client->env;
    assert_int_equal(serve(r, r->host), COORD_OK);
    assert_int_equal(r->env->peer_create(r->client, &to, NULL, 0, &r->peer, NULL),
                     COORD_OK);
}

static void rig_close(rig *r)
{
    r->env->peer_destroy(r->peer);
    r->env->server_destroy(r->server);
    coord_loop_destroy(r->client);
    coord_loop_destroy(r->host);
    coord_sim_destroy(r->sim);
}

static void send(rig *r, bool fresh)
{
    coordi_http_spec spec = {.method = "PUT",
                             .path = "/x",
                             .body = coordi_strdup("body"),
                             .body_len = 4,
                             .timeout_ms = 1000,
                             .fresh = fresh,
                             .done = on_done,
                             .arg = r};
    r->sent_ms = coord_sim_now_ms(r->sim);
    assert_int_equal(r->env->http_send(r->peer, &spec, NULL, NULL), COORD_OK);
}

static void run_for(rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

static coord_status ask(rig *r, bool fresh)
{
    int before = r->replies;
    send(r, fresh);
    run_for(r, 1000);
    assert_int_equal(r->replies, before + 1);
    return r->status;
}

/* What one direction does from now on. */
static void set(rig *r, const char *from, const char *to, double loss, double duplicate,
                double reset_before, double reset_after)
{
    coord_sim_link link;
    coord_sim_link_init(r->sim, &link, sizeof link);
    link.loss = loss;
    link.duplicate = duplicate;
    link.reset_before = reset_before;
    link.reset_after = reset_after;
    assert_int_equal(coord_sim_set_link(r->sim, from, to, &link, NULL), COORD_OK);
}

static void block(rig *r, const char *from, const char *to, bool blocked)
{
    assert_int_equal(coord_sim_block(r->sim, from, to, blocked, NULL), COORD_OK);
}

/* ---- mishaps ---- */

static void a_lost_request_times_out_and_may_have_arrived(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    set(&r, "client", "server", 1, 0, 0, 0);
    assert_int_equal(ask(&r, true), COORD_ERR_TIMEOUT);
    assert_int_equal(r.took_ms, 1000);
    assert_false(r.undelivered);
    assert_int_equal(r.requests, 0);
    set(&r, "client", "server", 0, 0, 0, 0);
    set(&r, "server", NULL, 1, 0, 0, 0); /* now the answer */
    assert_int_equal(ask(&r, true), COORD_ERR_TIMEOUT);
    assert_false(r.undelivered);
    assert_int_equal(r.requests, 1);
    rig_close(&r);
}

static void loss_follows_its_probability(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    set(&r, NULL, "server", 0.25, 0, 0, 0);
    for (int i = 0; i < 1000; i++) {
        send(&r, true);
    }
    run_for(&r, 1000);
    assert_int_equal(r.replies, 1000);
    assert_in_range(r.answered, 700, 800);
    rig_close(&r);
}

static void a_reset_before_delivery_and_one_after_look_the_same(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    set(&r, "client", "server", 0, 0, 1, 0);
    assert_int_equal(ask(&r, true), COORD_ERR_LOST);
    assert_int_equal(r.os_errno, ECONNRESET);
    assert_false(r.undelivered);
    assert_int_equal(r.requests, 0);
    set(&r, "client", "server", 0, 0, 0, 1);
    assert_int_equal(ask(&r, true), COORD_ERR_LOST);
    assert_int_equal(r.os_errno, ECONNRESET);
    assert_false(r.undelivered);
    assert_int_equal(r.requests, 1);
    rig_close(&r);
}

static void only_kept_connections_deliver_twice(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    set(&r, NULL, NULL, 0, 1, 0, 0);
    assert_int_equal(ask(&r, false), COORD_OK); /* makes the connection */
    assert_int_equal(r.requests, 1);
    assert_int_equal(ask(&r, false), COORD_OK); /* uses it */
    assert_int_equal(r.requests, 3);
    assert_int_equal(r.replies, 2);
    assert_int_equal(ask(&r, true), COORD_OK); /* has its own */
    assert_int_equal(r.requests, 4);
    rig_close(&r);
}

static void the_closest_link_counts(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    set(&r, NULL, NULL, 1, 0, 0, 0);
    set(&r, "server", NULL, 0, 0, 0, 0);
    set(&r, NULL, "server", 1, 0, 0, 0);
    set(&r, "client", NULL, 1, 0, 0, 0);
    set(&r, "client", "server", 0, 0, 0, 0);
    assert_int_equal(ask(&r, true), COORD_OK);
    rig_close(&r);
}

/* ---- partitions ---- */

static void no_connection_comes_about_with_either_direction_cut(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    for (int i = 0; i < 2; i++) {
        block(&r, i == 0 ? "client" : "server", i == 0 ? "server" : "client", true);
        assert_int_equal(ask(&r, true), COORD_ERR_TIMEOUT);
        assert_true(r.undelivered);
        assert_int_equal(r.requests, 0);
        coord_sim_heal(r.sim);
    }
    assert_int_equal(ask(&r, true), COORD_OK);
    rig_close(&r);
}

static void a_kept_connection_still_carries_the_open_direction(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    assert_int_equal(ask(&r, false), COORD_OK);
    block(&r, "server", "client", true);
    assert_int_equal(ask(&r, false), COORD_ERR_TIMEOUT);
    assert_false(r.undelivered);
    assert_int_equal(r.requests, 2);
    block(&r, "server", "client", false);
    assert_int_equal(ask(&r, false), COORD_OK);
    block(&r, "client", NULL, true);
    assert_int_equal(ask(&r, false), COORD_ERR_TIMEOUT);
    assert_false(r.undelivered); /* it can't know */
    assert_int_equal(r.requests, 3);
    rig_close(&r);
}

static void a_cut_takes_what_is_on_its_way(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    send(&r, true);
    block(&r, "client", "server", true);
    run_for(&r, 500);
    block(&r, "client", "server", false);
    run_for(&r, 500);
    assert_int_equal(r.status, COORD_ERR_TIMEOUT);
    assert_false(r.undelivered);
    assert_int_equal(r.requests, 0);
    rig_close(&r);
}

static void cuts_add_up(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    block(&r, "client", "server", true);
    block(&r, NULL, "server", true);
    block(&r, "client", "server", false);
    block(&r, "client", "server", false);
    assert_int_equal(ask(&r, true), COORD_ERR_TIMEOUT);
    block(&r, NULL, "server", false);
    assert_int_equal(ask(&r, true), COORD_OK);
    rig_close(&r);
}

/* ---- processes that stop ---- */

static void a_paused_process_accepts_and_answers_when_it_goes_on(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    coord_sim_pause(r.sim, r.host, true);
    assert_int_equal(ask(&r, true), COORD_ERR_TIMEOUT);
    assert_false(r.undelivered);
    send(&r, true);
    run_for(&r, 100);
    assert_int_equal(r.requests, 0);
    assert_int_equal(coord_sim_run_until_idle(r.sim, 10, NULL), COORD_OK);
    coord_sim_pause(r.sim, r.host, false);
    run_for(&r, 100);
    assert_int_equal(r.requests, 2); /* the first one too, though nobody waits for it */
    assert_int_equal(r.replies, 2);
    assert_int_equal(r.status, COORD_OK);
    rig_close(&r);
}

static void a_process_may_end_before_it_looks_at_what_has_gathered(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    coord_sim_pause(r.sim, r.host, true);
    send(&r, true);
    run_for(&r, 100);
    coord_sim_pause(r.sim, r.host, false);
    r.env->server_destroy(r.server);
    r.server = NULL;
    coord_loop_destroy(r.host);
    r.host = NULL;
    run_for(&r, 100);
    assert_int_equal(r.requests, 0);
    assert_int_equal(r.status, COORD_ERR_LOST);
    rig_close(&r);
}

static void a_paused_client_learns_its_replies_when_it_goes_on(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    send(&r, true);
    coord_sim_pause(r.sim, r.client, true);
    run_for(&r, 5000);
    assert_int_equal(r.requests, 1);
    assert_int_equal(r.replies, 0);
    coord_sim_pause(r.sim, r.client, false);
    run_for(&r, 1);
    assert_int_equal(r.replies, 1); /* answer or timeout, whichever is looked at first */
    rig_close(&r);
}

static void a_crashed_server_refuses_and_resets(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    r.holds = true;
    send(&r, true);
    run_for(&r, 100);
    coord_sim_crash(r.sim, r.host);
    run_for(&r, 100);
    assert_int_equal(r.status, COORD_ERR_LOST);
    assert_int_equal(r.os_errno, ECONNRESET);
    assert_false(r.undelivered);
    assert_int_equal(ask(&r, true), COORD_ERR_LOST);
    assert_int_equal(r.os_errno, ECONNREFUSED);
    assert_true(r.undelivered);
    r.env->http_answer(r.call, 200, coordi_strdup("{}"), 2); /* destroyed by its owner */
    assert_int_equal(r.requests, 1);
    rig_close(&r);
}

static void a_new_process_takes_the_place_of_a_crashed_one(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    assert_int_equal(ask(&r, false), COORD_OK);
    coordi_http_server *dead = r.server;
    coord_loop *corpse = r.host;
    coord_sim_crash(r.sim, corpse);
    r.host = loop_on(&r, "server");
    assert_int_equal(serve(&r, r.host), COORD_OK);
    assert_int_equal(ask(&r, false), COORD_OK); /* not over the connection to the dead */
    assert_int_equal(r.requests, 2);
    r.env->server_destroy(dead);
    coord_loop_destroy(corpse);
    rig_close(&r);
}

static void a_crashed_client_is_not_heard_from_again(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, 1);
    send(&r, true);
    coord_sim_crash(r.sim, r.client);
    run_for(&r, 10000);
    assert_int_equal(r.requests, 1); /* it had left already */
    assert_int_equal(r.replies, 0);
    send(&r, true);
    run_for(&r, 10000);
    assert_int_equal(r.requests, 1);
    assert_int_equal(r.replies, 0);
    rig_close(&r);
}

/* ---- all at once ---- */

static uint64_t hash_of_trouble(uint64_t seed)
{
    rig r;
    rig_open(&r, seed);
    set(&r, NULL, NULL, 0.1, 0.2, 0.1, 0.1);
    for (int i = 0; i < 200; i++) {
        send(&r, i % 3 == 0);
        if (i % 50 == 20) {
            block(&r, i % 100 == 20 ? "client" : "server", NULL, true);
        }
        if (i % 50 == 30) {
            coord_sim_heal(r.sim);
        }
        coord_sim_pause(r.sim, r.host, i % 40 > 35);
        run_for(&r, 7);
    }
    run_for(&r, 2000);
    assert_int_equal(r.replies, 200);
    assert_in_range(r.answered, 20, 180);
    uint64_t hash = coord_sim_trace_hash(r.sim);
    rig_close(&r);
    return hash;
}

static void trouble_repeats_with_its_seed_under_every_compiler(void **state)
{
    (void)state;
    assert_true(hash_of_trouble(5) == hash_of_trouble(5));
    assert_true(hash_of_trouble(5) != hash_of_trouble(6));
    /* Change these only with the order of events, or their wording in the trace. */
    assert_int_equal(hash_of_trouble(1), UINT64_C(0xdd960f75a814749a));
    assert_int_equal(hash_of_trouble(2), UINT64_C(0x3908fb1c22686573));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_request_times_out_and_may_have_arrived),
        cmocka_unit_test(loss_follows_its_probability),
        cmocka_unit_test(a_reset_before_delivery_and_one_after_look_the_same),
        cmocka_unit_test(only_kept_connections_deliver_twice),
        cmocka_unit_test(the_closest_link_counts),
        cmocka_unit_test(no_connection_comes_about_with_either_direction_cut),
        cmocka_unit_test(a_kept_connection_still_carries_the_open_direction),
        cmocka_unit_test(a_cut_takes_what_is_on_its_way),
        cmocka_unit_test(cuts_add_up),
        cmocka_unit_test(a_paused_process_accepts_and_answers_when_it_goes_on),
        cmocka_unit_test(a_process_may_end_before_it_looks_at_what_has_gathered),
        cmocka_unit_test(a_paused_client_learns_its_replies_when_it_goes_on),
        cmocka_unit_test(a_crashed_server_refuses_and_resets),
        cmocka_unit_test(a_new_process_takes_the_place_of_a_crashed_one),
        cmocka_unit_test(a_crashed_client_is_not_heard_from_again),
        cmocka_unit_test(trouble_repeats_with_its_seed_under_every_compiler),
    };
    return cmocka_run_group_tests_name("sim faults", tests, NULL, NULL);
}
