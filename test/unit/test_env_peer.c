/* The real http client: peers, and requests that come to nothing or are taken back. */
#include "base/alloc.h"
#include "support/client_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define OK_EMPTY "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

/* ---- not delivered ---- */

static void a_refused_connection_is_certainly_not_delivered(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open_at(&r, "127.0.0.1", raw_free_port());
    client_got *g = client_request(&r);
    assert_int_equal(g->status, COORD_ERR_LOST);
    assert_true(g->undelivered);
    assert_int_equal(g->error.os_errno, ECONNREFUSED);
    assert_non_null(strstr(g->error.cause, "refused"));
    client_rig_close(&r);
}

/* Connections beyond a listener's backlog get no answer, not even a no. */
static void
what_does_not_connect_is_given_up_sooner_than_what_does_not_answer(void **state)
{
    (void)state;
    enum { MORE_THAN_FIT = 4 };
    struct sockaddr_in where = {.sin_family = AF_INET};
    socklen_t len = sizeof where;
    int fds[MORE_THAN_FIT];
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&where, sizeof where), 0);
    assert_int_equal(listen(listener, 0), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&where, &len), 0);
    for (int i = 0; i < MORE_THAN_FIT; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)!connect(fds[i], (struct sockaddr *)&where, sizeof where);
    }
    client_rig r;
    client_rig_open_at(&r, "127.0.0.1", ntohs(where.sin_port));
    r.spec.timeout_ms = 3600 * 1000;
    r.spec.connect_ms = 50;
    client_got *g = client_request(&r);
    assert_int_equal(g->status, COORD_ERR_TIMEOUT);
    assert_true(g->undelivered);
    client_rig_close(&r);
    for (int i = 0; i < MORE_THAN_FIT; i++) {
        (void)close(fds[i]);
    }
    (void)close(listener);
}

static void a_name_is_resolved_and_kept_as_the_host_header(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open(&r, NULL, 0);
    env_rig_do(&r.env, client_destroy_peer, &r);
    (void)snprintf(r.address.host, sizeof r.address.host, "localhost");
    env_rig_do(&r.env, client_create_peer, &r);
    /* Twice: asked for, and remembered. If ::1 comes first, it refuses. */
    assert_int_equal(client_request(&r)->status, COORD_OK);
    assert_int_equal(client_request(&r)->status, COORD_OK);
    char host[64];
    (void)snprintf(host, sizeof host, "\r\nHost: localhost:%u\r\n",
                   (unsigned)raw_server_port(r.server));
    assert_non_null(strstr(raw_server_request(r.server, 0), host));
    client_rig_close(&r);
}

static void a_name_that_does_not_exist_is_not_delivered(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open_at(&r, "no-such-host.invalid", 80);
    r.spec.timeout_ms = 5000;
    client_got *g = client_request(&r);
    /* Without a name server in reach it takes longer than we wait. */
    assert_true(g->status == COORD_ERR_LOST || g->status == COORD_ERR_TIMEOUT);
    assert_true(g->undelivered);
    assert_non_null(strstr(g->error.cause, "no-such-host.invalid"));
    client_rig_close(&r);
}

static void send_many_and_destroy(void *arg)
{
    client_rig *r = arg;
    for (int i = 0; i < 10; i++) {
        client_send(r);
    }
    client_destroy_peer(r);
    client_create_peer(r);
}

static void a_peer_can_go_while_its_name_is_being_resolved(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open_at(&r, "no-such-host.invalid", 80);
    env_rig_do(&r.env, send_many_and_destroy, &r);
    assert_int_equal(r.got.times, 0);
    client_rig_close(&r);
}

static int *hoard; /* all descriptors that can be had */
static size_t hoarded;
static struct rlimit usual;

static void hoard_all(void *arg)
{
    (void)arg;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
    struct rlimit tight = {.rlim_cur = 64, .rlim_max = usual.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    hoard = calloc(64, sizeof *hoard);
    for (hoarded = 0; (hoard[hoarded] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) {
        hoarded++;
    }
    assert_int_equal(errno, EMFILE);
}

static void give_back(void)
{
    while (hoarded > 0) {
        (void)close(hoard[--hoarded]);
    }
    free(hoard);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

static void running_out_of_descriptors_is_this_machines_failure(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open(&r, NULL, 0);
    assert_int_equal(client_request(&r)->status,
                     COORD_OK); /* libcurl has its own by now */
    hoard_all(NULL);
    r.spec.fresh = true;
    client_got *g = client_request(&r);
    give_back();
    assert_int_equal(g->status, COORD_ERR_NETWORK);
    assert_int_equal(g->error.os_errno, EMFILE);
    assert_true(g->undelivered);
    assert_int_equal(client_request(&r)->status, COORD_OK);
    client_rig_close(&r);
}

/* ---- taking back ---- */

static void cancel(void *arg)
{
    client_rig *r = arg;
    r->env.loop->env->http_cancel(r->request);
}

static void send_and_cancel(void *arg)
{
    client_send(arg);
    cancel(arg);
}

static void a_canceled_request_tells_nothing(void **state)
{
    (void)state;
    const raw_step steps[] = {{.send = NULL, .then = RAW_SILENT}};
    client_rig r;
    client_rig_open(&r, steps, 1);
    env_rig_do(&r.env, client_send, &r);
    while (raw_server_requests(r.server) == 0) {
        (void)sched_yield();
    }
    env_rig_do(&r.env, cancel, &r);
    env_rig_do(&r.env, send_and_cancel, &r); /* and one that never got out */
    assert_int_equal(r.got.times, 0);
    assert_int_equal(client_request(&r)->status, COORD_OK);
    client_rig_close(&r);
}

static void done_cancels_other(const coordi_http_reply *reply, void *arg)
{
    client_rig *r = arg;
    r->env.loop->env->http_cancel(r->other);
    client_done(reply, arg);
}

static void send_two(void *arg)
{
    client_rig *r = arg;
    client_send(r);
    r->other = r->request;
    r->spec.done = done_cancels_other;
    client_send(r);
}

static void a_done_function_may_cancel_another_request(void **state)
{
    (void)state;
    const raw_step steps[] = {{.send = NULL, .then = RAW_SILENT}};
    client_rig r;
    client_rig_open(&r, steps, 1);
    env_rig_do(&r.env, send_two, &r);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(r.got.times, 1);
    client_rig_close(&r);
}

static void done_destroys_peer(const coordi_http_reply *reply, void *arg)
{
    client_destroy_peer(arg);
    client_done(reply, arg);
}

static void a_done_function_may_destroy_its_peer(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open(&r, NULL, 0);
    r.spec.done = done_destroys_peer;
    env_rig_do(&r.env, send_two, &r);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(r.got.times, 1);
    env_rig_do(&r.env, client_create_peer, &r);

    env_rig_do(&r.env, client_destroy_peer, &r); /* the same while its name is unknown */
    (void)snprintf(r.address.host, sizeof r.address.host, "localhost");
    r.address.port = raw_free_port();
    env_rig_do(&r.env, client_create_peer, &r);
    r.got.times = 0;
    r.spec.done = done_destroys_peer;
    env_rig_do(&r.env, client_send, &r);
    assert_true(env_rig_await(&r.env));
    env_rig_do(&r.env, client_create_peer, &r);
    client_rig_close(&r);
}

static void done_sends_again(const coordi_http_reply *reply, void *arg)
{
    client_rig *r = arg;
    r->spec.done = client_done;
    r->got.times = 0;
    client_send(r);
    assert_int_equal(reply->status, COORD_OK);
}

static void a_done_function_may_send_the_next_request(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open(&r, NULL, 0);
    r.spec.done = done_sends_again;
    env_rig_do(&r.env, client_send, &r);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(r.got.status, COORD_OK);
    assert_int_equal(raw_server_connections(r.server), 1);
    client_rig_close(&r);
}

/* ---- many ---- */

enum { PEERS = 150 }; /* more than one shard */

typedef struct crowd {
    client_rig *rig;
    coordi_http_peer *peers[PEERS];
    int left;
    int failed;
} crowd;

static void crowd_done(const coordi_http_reply *reply, void *arg)
{
    crowd *c = arg;
    c->failed += reply->status != COORD_OK;
    if (--c->left == 0) {
        env_rig_wake(&c->rig->env);
    }
}

static void crowd_send(void *arg)
{
    crowd *c = arg;
    coord_loop *loop = c->rig->env.loop;
    c->left = PEERS;
    for (int i = 0; i < PEERS; i++) {
        assert_int_equal(
            loop->env->peer_create(loop, &c->rig->address, NULL, 0, &c->peers[i], NULL),
            COORD_OK);
        const coordi_http_spec spec = {.method = "GET",
                                       .path = "/",
                                       .timeout_ms = 20000,
                                       .done = crowd_done,
                                       .arg = c};
        assert_int_equal(loop->env->http_send(c->peers[i], &spec, NULL, NULL), COORD_OK);
    }
}

static void crowd_leave(void *arg)
{
    crowd *c = arg;
    for (int i = 0; i < PEERS; i++) {
        c->rig->env.loop->env->peer_destroy(c->peers[i]);
    }
}

static void many_peers_work_side_by_side(void **state)
{
    (void)state;
    raw_step steps[PEERS];
    for (int i = 0; i < PEERS; i++) {
        steps[i] = (raw_step){.send = OK_EMPTY, .then = RAW_CLOSE};
    }
    client_rig r;
    client_rig_open(&r, steps, PEERS);
    crowd c = {.rig = &r};
    env_rig_do(&r.env, crowd_send, &c);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(c.failed, 0);
    env_rig_do(&r.env, crowd_leave, &c);
    client_rig_close(&r);
}

/* ---- paths, refusals, memory ---- */

static void on_path(coord_status status, const char *local_host, const coord_error *error,
                    void *arg)
{
    client_rig *r = arg;
    r->got.status = status;
    r->got.times++;
    (void)snprintf(r->got.body, sizeof r->got.body, "%s",
                   local_host != NULL ? local_host : error->text);
    env_rig_wake(&r->env);
}

static void ask_path(void *arg)
{
    client_rig *r = arg;
    assert_int_equal(r->env.loop->env->peer_path(r->peer, 20000, on_path, r, NULL),
                     COORD_OK);
    assert_int_equal(r->got.times, 0);
}

static void ask_path_and_destroy(void *arg)
{
    client_rig *r = arg;
    r->got.times = 0;
    ask_path(r);
    client_destroy_peer(r);
    client_create_peer(r);
}

static void the_path_to_a_peer_names_the_local_address(void **state)
{
    (void)state;
    const char *const hosts[] = {"127.0.0.1", "localhost"};
    for (int i = 0; i < 2; i++) {
        client_rig r;
        client_rig_open_at(&r, hosts[i], 80);
        env_rig_do(&r.env, ask_path, &r);
        assert_true(env_rig_await(&r.env));
        assert_int_equal(r.got.status, COORD_OK);
        assert_true(strcmp(r.got.body, "127.0.0.1") == 0 ||
                    strcmp(r.got.body, "::1") == 0);
        env_rig_do(&r.env, ask_path_and_destroy, &r);
        env_rig_do(&r.env, ask_path_and_destroy, &r);
        assert_int_equal(r.got.times, 0);
        client_rig_close(&r);
    }
}

static void create_wrong_peers(void *arg)
{
    client_rig *r = arg;
    coord_loop *loop = r->env.loop;
    coordi_http_peer *peer = NULL;
    coord_error err;
    coordi_address https = r->address;
    https.https = true;
    assert_int_equal(loop->env->peer_create(loop, &https, NULL, 0, &peer, &err),
                     COORD_ERR_UNSUPPORTED);
    const coordi_http_header split = {"Token", "a\r\nEvil: 1"};
    assert_int_equal(loop->env->peer_create(loop, &r->address, &split, 1, &peer, &err),
                     COORD_ERR_ARG);
    assert_non_null(strstr(err.text, "Token"));
    assert_null(peer);
    loop->env->peer_destroy(NULL);
}

static void https_and_split_headers_are_refused(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open_at(&r, "127.0.0.1", 1);
    env_rig_do(&r.env, create_wrong_peers, &r);
    client_rig_close(&r);
}

static bool countdown(void *user)
{
    return (*(int *)user)-- == 0;
}

/* On the loop thread alone, so that the hook is nobody else's. */
static void send_with_faults(void *arg)
{
    client_rig *r = arg;
    coord_loop *loop = r->env.loop;
    for (int n = 0; r->sent != COORD_OK; n++) {
        int left = n;
        coordi_http_peer *peer = NULL;
        coord_error err = {0};
        coordi_http_spec spec = r->spec;
        spec.body = coordi_strdup("{}");
        spec.body_len = 2;
        coordi_alloc_set_fault(countdown, &left);
        r->sent = loop->env->peer_create(loop, &r->address, NULL, 0, &peer, &err);
        if (r->sent == COORD_OK) {
            r->sent = loop->env->http_send(peer, &spec, NULL, &err);
        } else {
            coordi_free(spec.body);
        }
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(r->sent == COORD_OK || r->sent == COORD_ERR_NOMEM);
        assert_int_equal(r->sent, err.status);
        loop->env->peer_destroy(peer);
    }
}

static void sending_survives_every_failed_allocation(void **state)
{
    (void)state;
    client_rig r;
    client_rig_open(&r, NULL, 0);
    r.sent = COORD_ERR_NOMEM;
    env_rig_do(&r.env, send_with_faults, &r);
    client_rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_connection_is_certainly_not_delivered),
        cmocka_unit_test(
            what_does_not_connect_is_given_up_sooner_than_what_does_not_answer),
        cmocka_unit_test(a_name_is_resolved_and_kept_as_the_host_header),
        cmocka_unit_test(a_name_that_does_not_exist_is_not_delivered),
        cmocka_unit_test(a_peer_can_go_while_its_name_is_being_resolved),
        cmocka_unit_test(running_out_of_descriptors_is_this_machines_failure),
        cmocka_unit_test(a_canceled_request_tells_nothing),
        cmocka_unit_test(a_done_function_may_cancel_another_request),
        cmocka_unit_test(a_done_function_may_destroy_its_peer),
        cmocka_unit_test(a_done_function_may_send_the_next_request),
        cmocka_unit_test(many_peers_work_side_by_side),
        cmocka_unit_test(the_path_to_a_peer_names_the_local_address),
        cmocka_unit_test(https_and_split_headers_are_refused),
        cmocka_unit_test(sending_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("env_peer", tests, NULL, NULL);
}
