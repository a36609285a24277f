#include "interaction/exchange.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* A peer that gives results and no answers has so many connections at most. */
enum { ORPHANS_MAX = 4 };

struct coordi_exchange {
    coord_loop *loop;
    coordi_http_peer *peer;
    coordi_http_request *request; /* NULL while it waits for its next attempt */
    coordi_timer retry;
    coordi_exchange_spec spec; /* owns body */
    uint32_t tries_left;
    bool maybe_delivered;
    coordi_link orphan; /* in the list of those that nobody waits for */
    char what[160];
};

static void on_reply(const coordi_http_reply *reply, void *arg);

static void free_exchange(coordi_exchange *ex)
{
    coordi_free(ex->spec.body);
    coordi_free(ex);
}

/* The last attempt gives its body away; those before it send a copy. */
static coord_status attempt(coordi_exchange *ex, coord_error *err)
{
    char *body = ex->spec.body;
    if (ex->tries_left > 0) {
        body = coordi_memdup(ex->spec.body, ex->spec.body_len);
        if (body == NULL) {
            return coordi_fail_nomem(err, ex->what);
        }
    } else {
        ex->spec.body = NULL;
    }
    coordi_http_spec spec = {
        .method = ex->spec.method,
        .path = ex->spec.path,
        .body = body,
        .body_len = ex->spec.body_len,
        .timeout_ms = ex->spec.patience.timeout_ms,
        .fresh = ex->spec.fresh,
        .done = on_reply,
        .arg = ex,
    };
    return ex->loop->env->http_send(ex->peer, &spec, &ex->request, err);
}

static void finish(coordi_exchange *ex, const coordi_outcome *outcome)
{
    coordi_outcome_fn *done = ex->spec.done;
    void *arg = ex->spec.arg;
    coordi_outcome told = *outcome;
    told.maybe_delivered = ex->maybe_delivered;
    coordi_list_remove(&ex->orphan);
    free_exchange(ex);
    if (done != NULL) {
        done(&told, arg);
    }
}

static void retry_or_finish(coordi_exchange *ex, const coordi_outcome *outcome)
{
    if (ex->tries_left == 0) {
        finish(ex, outcome);
        return;
    }
    ex->tries_left--;
    coordi_timer_in(ex->loop, &ex->retry, ex->spec.patience.retry_wait_ms);
}

static void on_retry(coordi_timer *timer)
{
    coordi_exchange *ex = COORDI_ITEM(timer, coordi_exchange, retry);
    coord_error err;
    coord_status rc = attempt(ex, &err);
    if (rc != COORD_OK) {
        coordi_outcome outcome = {.status = rc, .error = &err};
        finish(ex, &outcome);
    }
}

static void on_silence(coordi_exchange *ex, const coordi_http_reply *reply)
{
    coord_error err;
    coordi_outcome outcome = {.status = reply->status, .error = &err};
    (void)coordi_fail_because(&err, reply->status, reply->error, "%s", ex->what);
    if (!reply->undelivered) {
        ex->maybe_delivered = true;
    }
    if (reply->undelivered || ex->spec.repeatable) {
        retry_or_finish(ex, &outcome);
    } else {
        finish(ex, &outcome);
    }
}

static void on_reply(const coordi_http_reply *reply, void *arg)
{
    coordi_exchange *ex = arg;
    ex->request = NULL;
    if (reply->status != COORD_OK) {
        on_silence(ex, reply);
        return;
    }
    coord_error err;
    coordi_outcome outcome = {.marked = reply->marked};
    outcome.status = coordi_wire_read_answer(reply->http_status, reply->body, ex->what,
                                             &outcome.answer, &err);
    outcome.error = outcome.status == COORD_OK ? NULL : &err;
    /* To a repeated request "busy" may mean: with yours. A libcoord says so otherwise. */
    if (outcome.status == COORD_ERR_REFUSED && ex->spec.retry_busy &&
        (!ex->maybe_delivered || outcome.marked) &&
        outcome.answer.code == COORDI_CODE_SLAVE_BUSY) {
        retry_or_finish(ex, &outcome);
    } else {
        finish(ex, &outcome);
    }
}

coord_status coordi_exchange_start(coord_loop *loop, coordi_http_peer *peer,
                                   const coordi_exchange_spec *spec,
                                   coordi_exchange **ret, coord_error *err)
{
    coordi_exchange *ex = spec->body == NULL ? NULL : coordi_zalloc(sizeof *ex);
    if (ex == NULL) {
        coordi_free(spec->body);
        return coordi_fail_nomem(err, spec->what);
    }
    ex->loop = loop;
    ex->peer = peer;
    ex->spec = *spec;
    ex->tries_left = spec->patience.retries;
    ex->retry.fire = on_retry;
    strncpy(ex->what, spec->what, sizeof ex->what - 1);
    coord_status rc = attempt(ex, err);
    if (rc != COORD_OK) {
        free_exchange(ex);
        return rc;
    }
    *ret = ex;
    return COORD_OK;
}

void coordi_exchange_cancel(coordi_exchange *ex)
{
    if (ex == NULL) {
        return;
    }
    if (ex->request != NULL) {
        ex->loop->env->http_cancel(ex->request);
    }
    coordi_timer_stop(ex->loop, &ex->retry);
    free_exchange(ex);
}

void coordi_exchange_orphan(coordi_exchange *ex, coordi_link *orphans)
{
    if (ex == NULL) {
        return;
    }
    if (ex->request == NULL) { /* it waits for an attempt that nobody needs */
        coordi_exchange_cancel(ex);
        return;
    }
    ex->spec.done = NULL;
    ex->tries_left = 0;
    size_t count = 0;
    for (const coordi_link *at = orphans->next; at != orphans; at = at->next) {
        count++;
    }
    if (count == ORPHANS_MAX) {
        coordi_exchange_cancel(
            COORDI_ITEM(coordi_list_pop(orphans), coordi_exchange, orphan));
    }
    coordi_list_append(orphans, &ex->orphan);
}

void coordi_exchange_cancel_orphans(coordi_link *orphans)
{
    for (coordi_link *link = coordi_list_pop(orphans); link != NULL;
         link = coordi_list_pop(orphans)) {
        coordi_exchange_cancel(COORDI_ITEM(link, coordi_exchange, orphan));
    }
}
