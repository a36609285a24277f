/* What masters ask of a slave. The order of the checks is the protocol's. */
#include "base/alloc.h"
#include "base/error.h"
#include "interaction/endpoint.h"
#include "interaction/slave.h"

#include <stdio.h>
#include <string.h>

static const coord_text NO_DATA = {NULL, 0};

static void serve(coordi_http_call *call, coord_slave *s, coordi_ask_kind kind);

static void answer(coord_slave *s, coordi_http_call *call, coordi_say say,
                   const char *message, coord_text data)
{
    coordi_endpoint_answer(s->loop, call, say, message, data);
}

static const char *header(coord_slave *s, coordi_http_call *call, const char *name)
{
    return s->loop->env->call_header(call, name);
}

/* ---- checks before the hook ---- */

static coordi_say check_master(coord_slave *s, coordi_http_call *call,
                               coordi_ask_kind kind)
{
    coordi_say say =
        coordi_wire_check_channel(header(s, call, "Channel"), s->options.channel);
    if (say != COORDI_SAY_NOTHING) {
        return say;
    }
    const char *token = header(s, call, "Token");
    if (token == NULL) {
        return COORDI_SAY_NO_MASTER_TOKEN;
    }
    if (kind != COORDI_ASK_CONNECT &&
        (s->link == NULL || !coordi_endpoint_token_is(token, s->link->token))) {
        return COORDI_SAY_WRONG_MASTER_TOKEN;
    }
    return COORDI_SAY_NOTHING;
}

static coordi_say check_state(const coord_slave *s, coordi_ask_kind kind)
{
    if (kind == COORDI_ASK_CONNECT && s->link != NULL) {
        return COORDI_SAY_ALREADY_CONNECTED;
    }
    if (kind == COORDI_ASK_TASK &&
        (s->work != NULL || s->delivery_count == COORDI_DELIVERIES_MAX)) {
        return COORDI_SAY_BUSY;
    }
    return COORDI_SAY_NOTHING;
}

static coordi_say read_body(coordi_ask_kind kind, coord_text body,
                            coordi_message *message, char *why, size_t why_size)
{
    switch (kind) {
    case COORDI_ASK_CONNECT:
        return coordi_wire_read_connect(body, message, why, why_size);
    case COORDI_ASK_DISCONNECT:
        return coordi_wire_read_disconnect(body, message, why, why_size);
    case COORDI_ASK_TASK:
        break;
    }
    return coordi_wire_read_new_task(body, message, why, why_size);
}

static const coordi_say YES[] = {
    [COORDI_ASK_CONNECT] = COORDI_SAY_CONNECTED,
    [COORDI_ASK_DISCONNECT] = COORDI_SAY_DISCONNECTED,
    [COORDI_ASK_TASK] = COORDI_SAY_TASK_RECEIVED,
};
static const coordi_say REFUSED[] = {
    [COORDI_ASK_CONNECT] = COORDI_SAY_CONNECT_REFUSED,
    [COORDI_ASK_DISCONNECT] = COORDI_SAY_DISCONNECT_REFUSED,
    [COORDI_ASK_TASK] = COORDI_SAY_TASK_REFUSED,
};
static const coordi_say BAD[] = {
    [COORDI_ASK_CONNECT] = COORDI_SAY_BAD_CONNECT,
    [COORDI_ASK_DISCONNECT] = COORDI_SAY_BAD_DISCONNECT,
    [COORDI_ASK_TASK] = COORDI_SAY_BAD_TASK,
};

/* A libcoord that did not hear our answer, or that has come back from an earlier state,
 * asks again. */
static coordi_say check_repeat(coord_slave *s, coordi_http_call *call,
                               coordi_ask_kind kind, const coordi_message *message,
                               char *why, size_t why_size)
{
    char id[COORDI_UUID_SIZE];
    if (!call->marked || s->link == NULL || !s->link->marked) {
        return COORDI_SAY_NOTHING;
    }
    if (kind == COORDI_ASK_CONNECT &&
        coordi_endpoint_token_is(header(s, call, "Token"), s->link->token)) {
        return COORDI_SAY_CONNECTED;
    }
    return kind == COORDI_ASK_TASK && coordi_wire_read_id(message->id, id)
               ? coordi_slave_repeat(s, id, why, why_size)
               : COORDI_SAY_NOTHING;
}

/* What is asked, and whether it can be done now. */
static coordi_say check_request(coord_slave *s, coordi_http_call *call,
                                coordi_ask_kind kind, coordi_message *message, char *why,
                                size_t why_size)
{
    char word[128] = "";
    coord_text body = coordi_wire_seen_body(header(s, call, "Content-Type"), call->body);
    coordi_say read = read_body(kind, body, message, why, why_size);
    if (message->malformed) {
        return read;
    }
    coordi_say say = check_repeat(s, call, kind, message, word, sizeof word);
    if (say == COORDI_SAY_NOTHING) {
        say = check_state(s, kind);
    }
    if (say == COORDI_SAY_NOTHING) {
        return read;
    }
    (void)snprintf(why, why_size, "%s", word); /* not what is wrong with its keys */
    return say;
}

static void refuse(coord_slave *s, coordi_http_call *call, coordi_ask_kind kind,
                   coordi_say say, const char *why)
{
    answer(s, call, say, why[0] == '\0' ? NULL : why,
           say == REFUSED[kind] ? coord_text_of("{}") : NO_DATA);
}

/* All that is looked at before the hook, in the protocol's order. True: go on with the
 * hook; false: answered. */
static bool passes(coord_slave *s, coordi_http_call *call, coordi_ask_kind kind,
                   coordi_message *message)
{
    char why[256] = "";
    coordi_say say = check_master(s, call, kind);
    if (say == COORDI_SAY_NOTHING && call->too_big) {
        (void)snprintf(why, sizeof why, "The body is over %zu bytes.",
                       s->options.max_body_bytes);
        say = BAD[kind];
    }
    if (say == COORDI_SAY_NOTHING) {
        say = check_request(s, call, kind, message, why, sizeof why);
    }
    if (say != COORDI_SAY_NOTHING) {
        refuse(s, call, kind, say, why);
    }
    return say == COORDI_SAY_NOTHING;
}

/* ---- after the hook ---- */

static coord_status accept_connect(coord_slave *s, coordi_http_call *call,
                                   const coordi_message *message, coord_error *err)
{
    return coordi_slave_link_create(s, message->master, header(s, call, "Token"),
                                    call->marked, err);
}

static coord_status accept_task(coord_slave *s, const coordi_message *message,
                                coord_error *err)
{
    char id[COORDI_UUID_SIZE];
    if (!coordi_wire_read_id(message->id, id)) {
        return coordi_fail(err, COORD_ERR_ARG, "\"task.id\" is not a UUID.");
    }
    coord_status rc = coordi_slave_take_work(s, id, message->data);
    return rc == COORD_OK ? rc : coordi_fail_nomem(err, "task");
}

/* The answer is there before anything is done: a master that is told of a failure gets no
 * result. */
static void accept(coord_slave *s, coordi_http_call *call, coordi_ask_kind kind,
                   const coordi_message *message)
{
    coord_error err;
    coord_status rc = COORD_OK;
    size_t len = 0;
    char *yes = coordi_wire_answer(YES[kind], NULL, NO_DATA, &len);
    if (yes == NULL) {
        answer(s, call, BAD[kind], "Out of memory.", NO_DATA);
        return;
    }
    switch (kind) {
    case COORDI_ASK_CONNECT:
        rc = accept_connect(s, call, message, &err);
        break;
    case COORDI_ASK_DISCONNECT:
        coordi_slave_unlink(s, NULL);
        break;
    case COORDI_ASK_TASK:
        rc = accept_task(s, message, &err);
        break;
    }
    if (rc == COORD_OK) {
        s->loop->env->http_answer(call, coordi_wire_status(YES[kind]), yes, len);
    } else {
        coordi_free(yes);
        answer(s, call, BAD[kind], err.text, NO_DATA);
    }
}

/* ---- asks ---- */

static void free_ask(coordi_ask *ask)
{
    coordi_out_done(&ask->out);
    coordi_free(ask);
}

static void next_ask(coord_slave *s)
{
    while (s->asking == NULL && !s->closing) {
        coordi_link *first = coordi_list_pop(&s->asks);
        if (first == NULL) {
            return;
        }
        s->ask_count--;
        coordi_ask *ask = COORDI_ITEM(first, coordi_ask, queue);
        coordi_http_call *call = ask->call;
        coordi_ask_kind kind = ask->kind;
        free_ask(ask);
        serve(call, s, kind);
    }
}

/* On the loop again, with the hook's word. The master may have been lost meanwhile. */
static void finish_ask(coordi_job *job)
{
    coordi_ask *ask = COORDI_ITEM(job, coordi_ask, job);
    coord_slave *s = ask->slave;
    coordi_message message;
    char why[256] = "";

    s->asking = NULL;
    if (s->closing) {
        answer(s, ask->call, COORDI_SAY_SHUTTING_DOWN, NULL, NO_DATA);
    } else if (ask->status != COORD_OK) {
        coord_text data = coordi_out_text(&ask->out);
        answer(s, ask->call, REFUSED[ask->kind], NULL,
               data.len == 0 ? coord_text_of("{}") : data);
    } else {
        coordi_say say = check_master(s, ask->call, ask->kind);
        if (say == COORDI_SAY_NOTHING) {
            say = check_request(s, ask->call, ask->kind, &message, why, sizeof why);
        }
        if (say == COORDI_SAY_NOTHING) {
            accept(s, ask->call, ask->kind, &message);
        } else {
            refuse(s, ask->call, ask->kind, say, why);
        }
    }
    free_ask(ask);
    next_ask(s);
    coordi_slave_check_closed(s);
    coordi_slave_unref(s);
}

/* On the ask lane. */
static void run_hook(coordi_job *job)
{
    coordi_ask *ask = COORDI_ITEM(job, coordi_ask, job);
    coord_slave *s = ask->slave;
    coordi_frame frame;

    coordi_frame_enter(&frame, s);
    ask->status = ask->hook(s, ask->data, &ask->out, s->options.user);
    coordi_frame_leave(&frame);
    ask->job.run = finish_ask;
    coordi_post(s->loop, &ask->job);
}

static coordi_ask *new_ask(coord_slave *s, coordi_http_call *call, coordi_ask_kind kind)
{
    coordi_ask *ask = coordi_zalloc(sizeof *ask);
    if (ask == NULL) {
        answer(s, call, BAD[kind], "Out of memory.", NO_DATA);
        return NULL;
    }
    ask->slave = s;
    ask->call = call;
    ask->kind = kind;
    return ask;
}

static coord_slave_ask_fn *hook_of(const coord_slave *s, coordi_ask_kind kind)
{
    switch (kind) {
    case COORDI_ASK_CONNECT:
        return s->options.on_connect;
    case COORDI_ASK_DISCONNECT:
        return s->options.on_disconnect;
    case COORDI_ASK_TASK:
        break;
    }
    return s->options.on_task;
}

static void serve(coordi_http_call *call, coord_slave *s, coordi_ask_kind kind)
{
    coordi_message message = {0};
    if (!passes(s, call, kind, &message)) {
        return;
    }
    coord_slave_ask_fn *hook = hook_of(s, kind);
    if (hook == NULL) {
        accept(s, call, kind, &message);
        return;
    }
    coordi_ask *ask = new_ask(s, call, kind);
    if (ask != NULL) {
        ask->hook = hook;
        ask->data = message.data;
        ask->job.run = run_hook;
        s->asking = ask;
        (void)coordi_slave_ref(s);
        coordi_lane_run(s->ask_lane, &ask->job);
    }
}

/* Serves it now, or when those before it are through. */
static void serve_in_turn(coordi_http_call *call, coord_slave *s, coordi_ask_kind kind)
{
    if (s->asking == NULL) {
        serve(call, s, kind);
    } else if (s->ask_count == COORDI_ASKS_MAX) {
        answer(s, call, BAD[kind], "Too many requests are waiting.", NO_DATA);
    } else {
        coordi_ask *ask = new_ask(s, call, kind);
        if (ask != NULL) {
            s->ask_count++;
            coordi_list_append(&s->asks, &ask->queue);
        }
    }
}

void coordi_slave_drop_asks(coord_slave *s)
{
    for (coordi_link *link = coordi_list_pop(&s->asks); link != NULL;
         link = coordi_list_pop(&s->asks)) {
        coordi_ask *ask = COORDI_ITEM(link, coordi_ask, queue);
        answer(s, ask->call, COORDI_SAY_SHUTTING_DOWN, NULL, NO_DATA);
        free_ask(ask);
    }
    s->ask_count = 0;
}

/* ---- routes ---- */

static void on_connect(coordi_http_call *call, void *owner)
{
    serve_in_turn(call, owner, COORDI_ASK_CONNECT);
}

static void on_disconnect(coordi_http_call *call, void *owner)
{
    serve_in_turn(call, owner, COORDI_ASK_DISCONNECT);
}

static void on_new_task(coordi_http_call *call, void *owner)
{
    serve_in_turn(call, owner, COORDI_ASK_TASK);
}

/* At once: it waits for no hook. To others it is a path that the reference has not. */
static void on_cancel(coordi_http_call *call, void *owner)
{
    coord_slave *s = owner;
    coordi_message message;
    char id[COORDI_UUID_SIZE];
    char why[256] = "";
    coordi_say say =
        call->marked ? check_master(s, call, COORDI_ASK_TASK) : COORDI_SAY_NO_ENDPOINT;
    if (say == COORDI_SAY_NOTHING) {
        coord_text body =
            coordi_wire_seen_body(header(s, call, "Content-Type"), call->body);
        say = coordi_wire_read_cancel(body, &message, id, why, sizeof why);
    }
    if (say == COORDI_SAY_NOTHING) {
        coordi_slave_cancel(s, id);
        say = COORDI_SAY_CANCEL;
    }
    refuse(s, call, COORDI_ASK_TASK, say, why);
}

static bool check_self(coord_slave *s, coordi_http_call *call)
{
    const char *token = header(s, call, "Token");
    coordi_say say = token == NULL ? COORDI_SAY_NO_OWN_SLAVE_TOKEN
                     : coordi_endpoint_token_is(token, s->token)
                         ? COORDI_SAY_NOTHING
                         : COORDI_SAY_WRONG_OWN_SLAVE_TOKEN;
    if (say != COORDI_SAY_NOTHING) {
        answer(s, call, say, NULL, NO_DATA);
    }
    return say == COORDI_SAY_NOTHING;
}

static void on_ping(coordi_http_call *call, void *owner)
{
    if (check_self(owner, call)) {
        answer(owner, call, COORDI_SAY_PONG, NULL, NO_DATA);
    }
}

static void on_shutdown(coordi_http_call *call, void *owner)
{
    coord_slave *s = owner;
    if (check_self(s, call)) {
        answer(s, call, COORDI_SAY_SHUTDOWN_LATER, NULL, NO_DATA);
        s->closing = true;
        coordi_slave_unlink(s, NULL);
        coordi_slave_drop_asks(s);
    }
}

void coordi_slave_on_call(coordi_http_call *call, void *arg)
{
    static const coordi_route ROUTES[] = {
        {"POST", "/connect", on_connect},   {"DELETE", "/disconnect", on_disconnect},
        {"POST", "/task/new", on_new_task}, {"DELETE", "/task/cancel", on_cancel},
        {"GET", "/ping", on_ping},          {"DELETE", "/shutdown", on_shutdown},
    };
    coord_slave *s = arg;
    if (s->closing) {
        answer(s, call, COORDI_SAY_SHUTTING_DOWN, NULL, NO_DATA);
        return;
    }
    coordi_endpoint_dispatch(s->loop, ROUTES, sizeof ROUTES / sizeof ROUTES[0], call, s);
}
