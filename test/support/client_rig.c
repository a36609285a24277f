#include "support/client_rig.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

void client_create_peer(void *arg)
{
    client_rig *r = arg;
    const coordi_http_header headers[] = {{"Token", "secret"}, {"Empty", ""}};
    coord_error err;
    assert_int_equal(r->env.loop->env->peer_create(r->env.loop, &r->address, headers, 2,
                                                   &r->peer, &err),
                     COORD_OK);
}

void client_destroy_peer(void *arg)
{
    client_rig *r = arg;
    r->env.loop->env->peer_destroy(r->peer);
    r->peer = NULL;
}

void client_done(const coordi_http_reply *reply, void *arg)
{
    client_rig *r = arg;
    client_got *g = &r->got;
    g->status = reply->status;
    g->undelivered = reply->undelivered;
    g->marked = reply->marked;
    g->http_status = reply->http_status;
    (void)snprintf(g->body, sizeof g->body, "%.*s", (int)reply->body.len,
                   reply->body.len == 0 ? "" : reply->body.ptr);
    if (reply->error != NULL) {
        g->error = *reply->error;
    }
    g->times++;
    env_rig_wake(&r->env);
}

void client_send(void *arg)
{
    client_rig *r = arg;
    coordi_http_spec spec = r->spec;
    if (r->body != NULL) {
        spec.body = coordi_strdup(r->body);
        spec.body_len = strlen(r->body);
    }
    r->sent = r->env.loop->env->http_send(r->peer, &spec, &r->request, &r->send_error);
    assert_int_equal(r->got.times, 0); /* never from within send */
}

void client_rig_open_at(client_rig *r, const char *host, uint16_t port)
{
    *r = (client_rig){.spec = {.method = "PUT", .path = "/task", .timeout_ms = 20000}};
    r->spec.done = client_done;
    r->spec.arg = r;
    r->body = "{\"a\": 1}";
    env_rig_open(&r->env, NULL, NULL);
    (void)snprintf(r->address.host, sizeof r->address.host, "%s", host);
    r->address.port = port;
    env_rig_do(&r->env, client_create_peer, r);
}

void client_rig_open(client_rig *r, const raw_step *steps, size_t count)
{
    raw_server *server = raw_server_start(steps, count);
    client_rig_open_at(r, "127.0.0.1", raw_server_port(server));
    r->server = server;
}

void client_rig_close(client_rig *r)
{
    env_rig_do(&r->env, client_destroy_peer, r);
    env_rig_close(&r->env);
    if (r->server != NULL) {
        raw_server_stop(r->server);
    }
}

/* Sends, and waits for the outcome. */
client_got *client_request(client_rig *r)
{
    r->got = (client_got){0};
    env_rig_do(&r->env, client_send, r);
    assert_int_equal(r->sent, COORD_OK);
    assert_true(env_rig_await(&r->env));
    assert_int_equal(r->got.times, 1);
    return &r->got;
}
