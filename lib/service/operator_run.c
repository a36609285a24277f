#include "base/alloc.h"
#include "base/error.h"
#include "service/operator_server.h"

#include <stdio.h>

/* How a call goes on: looks, pauses, its end. What a change does with the lists that
 * looks bring is in operator_change.c. */

enum { LONGEST_PAUSE = 10 }; /* times the first */

static const int64_t LONGEST_MS = (int64_t)1 << 40;

static int64_t time_left(const coordi_operator_call *call)
{
    return call->deadline_ms - coordi_now(call->op->loop);
}

/* ---- the end ---- */

/* Out of its list; the next in line begins. */
static void leave(coordi_operator_call *call)
{
    coordi_operator *op = call->op;
    const bool was_first = op->changes.next == &call->link;
    coordi_list_remove(&call->link);
    coordi_timer_stop(op->loop, &call->timer);
    if (call->http != NULL) {
        op->loop->env->http_cancel(call->http);
        call->http = NULL;
    }
    if (was_first && !coordi_list_empty(&op->changes)) {
        coordi_timer_in(op->loop,
                        &COORDI_ITEM(op->changes.next, coordi_operator_call, link)->timer,
                        0);
    }
}

void coordi_operator_cancel(coordi_operator_call *call)
{
    leave(call);
    coordi_operator_call_free(call);
}

static coord_status describe_end(const coordi_operator_call *call, coord_status status,
                                 coord_error *err)
{
    if (call->in_doubt) {
        return coordi_fail_because(
            err, COORD_ERR_TIMEOUT, &call->failure,
            "operator server %s: %s: no answer came, and in the lists from then on "
            "nothing shows for sure whether it was carried out",
            call->op->settings.place,
            call->kind == COORDI_OPERATOR_FAILED ? call->names[call->name_at]
                                                 : coordi_operator_method(call));
    }
    if (call->attempts > 1) {
        return coordi_fail_because(err, status, &call->failure,
                                   "operator server %s: given up after %u attempts",
                                   call->op->settings.place, call->attempts);
    }
    return coordi_fail_copy(err, &call->failure);
}

/* After a failure an answer is only worth telling if it has something to tell. */
static coord_operator_answer *take_answer(coordi_operator_call *call, coord_status status)
{
    coord_operator_answer *answer = call->so_far;
    const bool empty = answer != NULL && answer->collector_count + answer->learner_count +
                                                 answer->node_count + answer->unknown ==
                                             0;
    if (status != COORD_OK && empty) {
        return NULL; /* the call frees it */
    }
    call->so_far = NULL;
    return answer;
}

void coordi_operator_finish(coordi_operator_call *call, coord_status status)
{
    coord_error error;
    coordi_operator_outcome outcome = {.status = status,
                                       .answer = take_answer(call, status)};
    coordi_operator_done_fn *done = call->done;
    void *arg = call->arg;
    if (status != COORD_OK) {
        outcome.status = describe_end(call, status, &error);
        outcome.error = &error;
        outcome.unknown = call->in_doubt;
        COORDI_LOG(&call->op->log, COORD_LOG_DEBUG, "%s failed: why=\"%s: %s\"",
                   call->what, error.text, error.cause);
    }
    leave(call);
    coordi_operator_call_free(call);
    done(&outcome, arg);
}

static void run_out(coordi_operator_call *call)
{
    if (call->failure.status == COORD_OK) {
        (void)coordi_fail(&call->failure, COORD_ERR_TIMEOUT,
                          "operator server %s: no time was left to ask",
                          call->op->settings.place);
    }
    coordi_operator_finish(call, call->failure.status);
}

static void end_nomem(coordi_operator_call *call)
{
    (void)coordi_fail_nomem(&call->failure, call->what);
    coordi_operator_finish(call, COORD_ERR_NOMEM);
}

/* ---- pauses ---- */

void coordi_operator_again(coordi_operator_call *call)
{
    int64_t pause = call->op->settings.retry_wait_ms;
    const int64_t most = pause * LONGEST_PAUSE;
    for (unsigned i = 1; i < call->attempts && pause < most; i++) {
        pause *= 2;
    }
    pause = pause < most ? pause : most;
    if (!call->retry || pause >= time_left(call)) {
        coordi_operator_finish(call, call->failure.status);
        return;
    }
    COORDI_LOG(&call->op->log, COORD_LOG_INFO,
               "%s will be tried again: pause_ms=%lld why=\"%s: %s\"", call->what,
               (long long)pause, call->failure.text, call->failure.cause);
    coordi_timer_in(call->op->loop, &call->timer, pause);
}

void coordi_operator_settle(coordi_operator_call *call)
{
    const int64_t pause = call->op->settings.settle_ms;
    if (pause >= time_left(call)) {
        coordi_operator_finish(call, COORD_ERR_TIMEOUT);
        return;
    }
    call->phase = COORDI_OPERATOR_SETTLING;
    coordi_timer_in(call->op->loop, &call->timer, pause);
}

/* ---- requests ---- */

bool coordi_operator_send(coordi_operator_call *call, const char *method, char *path,
                          char *body, size_t len, coordi_http_done_fn *done)
{
    const coordi_operator_settings *s = &call->op->settings;
    const int64_t left = time_left(call);
    if (left <= 0) {
        coordi_free(path);
        coordi_free(body);
        run_out(call);
        return false;
    }
    if (path == NULL) {
        coordi_free(body);
        end_nomem(call);
        return false;
    }
    (void)snprintf(call->what, sizeof call->what, "operator server %s: %s %.*s", s->place,
                   method, (int)strcspn(path, "?"), path);
    const coordi_http_spec spec = {
        .method = method,
        .path = path,
        .body = body,
        .body_len = len,
        .timeout_ms = left < s->request_timeout_ms ? left : s->request_timeout_ms,
        .connect_ms = s->connect_timeout_ms,
        .fresh = body != NULL, /* libcurl would silently send it again */
        .max_reply_bytes = s->max_answer_bytes,
        .done = done,
        .arg = call,
    };
    coord_error err;
    const coord_status rc =
        call->op->loop->env->http_send(call->op->peer, &spec, &call->http, &err);
    coordi_free(path);
    if (rc != COORD_OK) {
        (void)coordi_fail_because(&call->failure, rc, &err, "%s", call->what);
        call->http = NULL;
        coordi_operator_finish(call, rc);
        return false;
    }
    return true;
}

/* ---- looks ---- */

static coordi_operator_api other(coordi_operator_api api)
{
    return api == COORDI_OPERATOR_V1 ? COORDI_OPERATOR_V2 : COORDI_OPERATOR_V1;
}

static void on_look(const coordi_http_reply *reply, void *arg);

static void ask(coordi_operator_call *call)
{
    call->serial = call->op->serial;
    (void)coordi_operator_send(call, "GET", coordi_operator_path(call, call->asked, true),
                               NULL, 0, on_look);
}

void coordi_operator_look(coordi_operator_call *call)
{
    const coordi_operator *op = call->op;
    if (call->phase != COORDI_OPERATOR_CONFIRMING) {
        call->phase = COORDI_OPERATOR_LOOKING;
    }
    call->other_asked = false;
    call->asked = op->api != COORDI_OPERATOR_AUTO               ? op->api
                  : op->settings.wanted != COORDI_OPERATOR_AUTO ? op->settings.wanted
                                                                : op->settings.first;
    ask(call);
}

/* A look that brought no list. */
static void look_failed(coordi_operator_call *call, bool may_pass)
{
    call->attempts++;
    if (call->phase == COORDI_OPERATOR_CONFIRMING) {
        coordi_operator_settle(call);
    } else if (may_pass) {
        coordi_operator_again(call);
    } else {
        coordi_operator_finish(call, call->failure.status);
    }
}

/* The server does not have this API. */
static void on_no_route(coordi_operator_call *call)
{
    coordi_operator *op = call->op;
    const coordi_operator_api next = other(call->asked);
    if (op->settings.wanted == COORDI_OPERATOR_AUTO) {
        op->api = COORDI_OPERATOR_AUTO;
        if (!call->other_asked && coordi_operator_can_ask(&op->settings, next)) {
            call->other_asked = true;
            call->asked = next;
            ask(call);
            return;
        }
    }
    const coord_error cause = call->failure;
    const bool both = call->other_asked;
    (void)coordi_fail_because(
        &call->failure, COORD_ERR_PROTOCOL, &cause,
        "operator server %s: it does not speak %s%s", op->settings.place,
        both ? "v1alpha1 or v2alpha1" : coordi_operator_api_str(call->asked),
        both || op->settings.wanted != COORDI_OPERATOR_AUTO ? ""
        : next == COORDI_OPERATOR_V2
            ? "; to try v2alpha1, job_id (DI_JOB_ID) is needed"
            : "; to try v1alpha1, name_space and name (KUBERNETES_POD_...) are needed");
    look_failed(call, false);
}

static void on_list(coordi_operator_call *call, coord_operator_answer *answer)
{
    call->attempts = 0;
    if (call->op->api == COORDI_OPERATOR_V1) {
        coordi_operator_sweep(call->op, answer, call->serial);
    }
    const bool is_new = answer->skipped != call->op->skipped; /* lists come each second */
    call->op->skipped = answer->skipped;
    if (answer->skipped > 0 && is_new) {
        COORDI_LOG(&call->op->log, COORD_LOG_WARN, "%s: entries skipped: count=%zu: %s",
                   call->what, answer->skipped, answer->skipped_text);
    }
    if (call->kind == COORDI_OPERATOR_GET) {
        call->so_far = answer;
        coordi_operator_finish(call, COORD_OK);
    } else {
        coordi_operator_change(call, answer);
    }
}

static void on_look(const coordi_http_reply *reply, void *arg)
{
    coordi_operator_call *call = arg;
    coordi_operator *op = call->op;
    call->http = NULL;
    if (reply->status != COORD_OK) {
        (void)coordi_fail_because(&call->failure, reply->status, reply->error, "%s",
                                  call->what);
        look_failed(call, reply->status != COORD_ERR_TOO_BIG);
        return;
    }
    const coordi_operator_reading how = {.api = call->asked,
                                         .must_list = true,
                                         .name_space = op->settings.name_space,
                                         .name = op->settings.name,
                                         .max_replicas = op->settings.max_replicas,
                                         .what = call->what};
    coordi_operator_verdict said;
    coord_error err;
    const coord_status rc =
        coordi_operator_read(&how, reply->http_status, reply->body, &said, &err);
    if (rc != COORD_OK) {
        call->failure = err;
    }
    if (said.answer != NULL) {
        op->api = call->asked;
    }
    if (rc == COORD_OK && said.answer != NULL) {
        on_list(call, said.answer);
        return;
    }
    coord_operator_answer_destroy(said.answer);
    if (said.no_route) {
        on_no_route(call);
    } else {
        look_failed(call, reply->http_status >= 500 || rc == COORD_ERR_NOT_FOUND);
    }
}

/* ---- turns ---- */

static void on_timer(coordi_timer *timer)
{
    coordi_operator_call *call = COORDI_ITEM(timer, coordi_operator_call, timer);
    switch (call->phase) {
    case COORDI_OPERATOR_SETTLING:
        call->phase = COORDI_OPERATOR_CONFIRMING;
        coordi_operator_look(call);
        return;
    case COORDI_OPERATOR_SENDING:
        coordi_operator_submit(call);
        return;
    default: /* also one in line whose time is over: it ends without having asked */
        coordi_operator_look(call);
        return;
    }
}

void coordi_operator_call_begin(coordi_operator *op, coordi_operator_call *call)
{
    const int64_t wait_ms = call->wait_ms < LONGEST_MS ? call->wait_ms : LONGEST_MS;
    const bool change = call->kind != COORDI_OPERATOR_GET;
    const bool waits = change && !coordi_list_empty(&op->changes);
    call->op = op;
    call->timer.fire = on_timer;
    call->deadline_ms = coordi_now(op->loop) + wait_ms;
    coordi_list_append(change ? &op->changes : &op->gets, &call->link);
    coordi_timer_in(op->loop, &call->timer, waits ? wait_ms : 0);
}

coord_status coordi_operator_start(coordi_operator *op, const coordi_operator_spec *spec,
                                   coordi_operator_call **ret, coord_error *err)
{
    coordi_operator_call *call;
    const coord_status rc =
        coordi_operator_call_create(spec, op->settings.name_space, &call, err);
    if (rc == COORD_OK) {
        coordi_operator_call_begin(op, call);
        if (ret != NULL) {
            *ret = call;
        }
    }
    return rc;
}

/* ---- life ---- */

coord_status coordi_operator_create(coord_loop *loop,
                                    const coordi_operator_settings *settings,
                                    const coordi_log *log, coordi_operator **ret,
                                    coord_error *err)
{
    coordi_operator *op = coordi_zalloc(sizeof *op);
    if (op == NULL) {
        return coordi_fail_nomem(err, "operator server");
    }
    coord_error cause;
    const coord_status rc =
        loop->env->peer_create(loop, &settings->address, NULL, 0, &op->peer, &cause);
    if (rc != COORD_OK) {
        coordi_free(op);
        return coordi_fail_because(err, rc, &cause, "operator server %s",
                                   settings->place);
    }
    op->loop = coordi_loop_ref(loop);
    op->settings = *settings;
    op->log = *log;
    op->api = settings->wanted;
    coordi_list_init(&op->gets);
    coordi_list_init(&op->changes);
    *ret = op;
    return COORD_OK;
}

static void drop_all(coordi_operator *op, coordi_link *calls)
{
    for (coordi_link *link = coordi_list_pop(calls); link != NULL;
         link = coordi_list_pop(calls)) {
        coordi_operator_call *call = COORDI_ITEM(link, coordi_operator_call, link);
        coordi_timer_stop(op->loop, &call->timer);
        coordi_operator_call_free(call);
    }
}

void coordi_operator_destroy(coordi_operator *op)
{
    if (op == NULL) {
        return;
    }
    op->loop->env->peer_destroy(op->peer); /* and its requests */
    drop_all(op, &op->gets);
    drop_all(op, &op->changes);
    coordi_map_done(&op->marks);
    coordi_loop_unref(op->loop);
    coordi_free(op);
}

const coordi_operator_settings *coordi_operator_settings_of(const coordi_operator *op)
{
    return &op->settings;
}
