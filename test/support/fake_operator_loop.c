#include "base/alloc.h"
#include "env/sim_http.h"
#include "support/fake_operator_inside.h"
#include "support/heap.h"

#include <stdlib.h>
#include <string.h>

/* On a simulated loop, behind env's server. That one keeps queries to itself, so the path
 * is taken from the simulated request. */

typedef struct loop_front {
    fake_front face;
    fake_operator *f;
    coord_loop *loop;
    coordi_http_server *server; /* NULL: it does not listen */
    uint16_t port;
    coordi_link pending;
} loop_front;

/* A call whose answer comes later, or never. */
typedef struct pending_call {
    coordi_link link;
    coordi_timer timer;
    loop_front *front;
    coordi_http_call *call;
    int status;
    char *body;
    size_t len;
} pending_call;

static void give(pending_call *p)
{
    coord_loop *loop = p->front->loop;
    coordi_list_remove(&p->link);
    coordi_timer_stop(loop, &p->timer);
    loop->env->http_answer(p->call, p->status, p->body, p->len);
    free(p);
}

static void on_due(coordi_timer *timer)
{
    give(COORDI_ITEM(timer, pending_call, timer));
}

static void on_call(coordi_http_call *call, void *arg);

static void open_server(loop_front *front)
{
    const coordi_http_server_spec spec = {
        .host = "", .port = front->port, .on_call = on_call, .arg = front};
    heap_spare(true);
    fake_must(front->loop->env->server_create(front->loop, &spec, &front->server, NULL) ==
                  COORD_OK,
              "it can't listen");
    heap_spare(false);
    front->port = front->loop->env->server_port(front->server);
}

static void close_server(loop_front *front)
{
    front->loop->env->server_destroy(front->server);
    front->server = NULL;
}

static void on_call(coordi_http_call *call, void *arg)
{
    loop_front *front = arg;
    const char *target = ((coordi_sim_call *)(void *)call)->request->path;
    fake_reply reply;
    heap_spare(true);
    fake_operator_answer(front->f, call->method, target, call->body, &reply);
    pending_call *p = calloc(1, sizeof *p);
    fake_must(p != NULL, "calloc");
    p->timer.fire = on_due;
    p->front = front;
    p->call = call;
    p->status = reply.status;
    p->body = coordi_buf_take(&reply.body, &p->len);
    heap_spare(false);
    coordi_list_append(&front->pending, &p->link);
    if (reply.broken) {
        close_server(front);
        open_server(front);
        give(p); /* to nobody */
    } else if (reply.delay_ms > 0 && !reply.silent) {
        coordi_timer_in(front->loop, &p->timer, reply.delay_ms);
    } else if (!reply.silent) {
        give(p);
    }
}

/* ---- the front ---- */

static loop_front *front_of(fake_front *face)
{
    return COORDI_ITEM(face, loop_front, face);
}

static int64_t now_ms(fake_front *face)
{
    return coordi_now(front_of(face)->loop);
}

static void set_listening(fake_front *face, bool listening)
{
    loop_front *front = front_of(face);
    if (listening && front->server == NULL) {
        open_server(front);
    } else if (!listening && front->server != NULL) {
        close_server(front);
    }
}

static uint16_t port_of(fake_front *face)
{
    return front_of(face)->port;
}

static void stop(fake_front *face)
{
    loop_front *front = front_of(face);
    set_listening(face, false);
    while (!coordi_list_empty(&front->pending)) {
        give(COORDI_ITEM(front->pending.next, pending_call, link));
    }
    coordi_loop_unref(front->loop);
    free(front);
}

fake_operator *fake_operator_on_loop(coord_loop *loop, const fake_operator_spec *spec)
{
    static const fake_operator_spec USUAL = {0};
    loop_front *front = calloc(1, sizeof *front);
    fake_must(front != NULL, "calloc");
    fake_must(strcmp(loop->env->name, "sim") == 0, "the loop is not a simulated one");
    spec = spec == NULL ? &USUAL : spec;
    front->face = (fake_front){now_ms, set_listening, port_of, stop};
    front->f = fake_operator_new(spec);
    front->f->front = &front->face;
    front->loop = coordi_loop_ref(loop);
    front->port = spec->port;
    coordi_list_init(&front->pending);
    open_server(front);
    return front->f;
}
