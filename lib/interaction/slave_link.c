/* A slave's side of a connection: heartbeats, results, and the end of it. */
#include "base/alloc.h"
#include "base/error.h"
#include "codec/json.h"
#include "interaction/slave.h"
#include "interaction/undo.h"

#include <stdio.h>
#include <string.h>

static void beat_later(coord_slave *s);

/* ---- life ---- */

void coordi_master_link_unref(coordi_master_link *link)
{
    if (--link->refs > 0) {
        return;
    }
    if (link->peer != NULL) {
        link->slave->loop->env->peer_destroy(link->peer);
    }
    coordi_free(link);
}

static void on_heartbeat_due(coordi_timer *timer);

coord_status coordi_slave_link_create(coord_slave *s, coord_text address,
                                      const char *token, bool marked, coord_error *err)
{
    char text[COORDI_HOST_SIZE + COORDI_PREFIX_SIZE + 16];
    coordi_address where;

    if (coordi_json_string(address, text, sizeof text) != COORD_OK) {
        return coordi_fail(err, COORD_ERR_ARG, "\"master.address\" is not a string");
    }
    coord_status rc = coordi_address_read(text, strlen(text), &where, err);
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_master_link *link = coordi_zalloc(sizeof *link);
    if (link == NULL) {
        return coordi_fail_nomem(err, "master");
    }
    if (strlen(token) >= sizeof link->token) {
        rc = coordi_fail(err, COORD_ERR_ARG, "The token is over %zu bytes.",
                         sizeof link->token - 1);
        coordi_free(link);
        return rc;
    }
    link->refs = 1;
    link->slave = s;
    link->marked = marked;
    (void)snprintf(link->token, sizeof link->token, "%s", token);
    coordi_address_print(where.host, where.port, link->address);
    rc = coordi_peer_create(s->loop, &where, s->options.channel, token, &link->peer, err);
    if (rc != COORD_OK) {
        coordi_free(link);
        return rc;
    }
    s->link = link;
    atomic_store(&s->connected, true);
    COORDI_LOG(&s->log, COORD_LOG_INFO, "connected master=%s libcoord=%d", link->address,
               (int)marked);
    s->heartbeat.fire = on_heartbeat_due;
    beat_later(s);
    return COORD_OK;
}

static void tell_lost(coord_slave *s, const coord_error *why)
{
    if (s->options.on_lost == NULL || s->lost_pending || s->ask_lane == NULL) {
        return;
    }
    s->lost_pending = true;
    s->lost_why = *why;
    (void)coordi_slave_ref(s);
    coordi_lane_run(s->ask_lane, &s->lost_job);
}

void coordi_slave_unlink(coord_slave *s, const coord_error *why)
{
    coordi_master_link *link = s->link;
    if (link == NULL) {
        return;
    }
    s->link = NULL;
    link->gone = true;
    atomic_store(&s->connected, false);
    if (s->work != NULL && s->work->link == link) {
        atomic_store(&s->canceled, true);
    }
    coordi_timer_stop(s->loop, &s->heartbeat);
    coordi_exchange_cancel(s->heartbeat_exchange);
    s->heartbeat_exchange = NULL;
    coordi_slave_drop_deliveries(s);
    if (why == NULL) {
        COORDI_LOG(&s->log, COORD_LOG_INFO, "disconnected master=%s", link->address);
    } else {
        COORDI_LOG(&s->log, COORD_LOG_WARN, "lost master=%s why=\"%s\" cause=\"%s\"",
                   link->address, why->text, why->cause);
        tell_lost(s, why);
    }
    coordi_master_link_unref(link);
}

/* A request to the master has failed for good: is that the end of the link? The master
 * not knowing us is; an answer that makes no sense is not. */
static bool is_loss(const coordi_outcome *outcome)
{
    if (outcome->status == COORD_ERR_REFUSED) {
        return outcome->answer.code == COORDI_CODE_WRONG_SLAVE_TOKEN ||
               outcome->answer.code == COORDI_CODE_SHUTTING_DOWN;
    }
    return outcome->status == COORD_ERR_LOST || outcome->status == COORD_ERR_TIMEOUT;
}

/* ---- heartbeats ---- */

static void beat_later(coord_slave *s)
{
    coordi_timer_in(s->loop, &s->heartbeat, s->options.heartbeat_ms);
}

static void on_heartbeat_outcome(const coordi_outcome *outcome, void *arg)
{
    coord_slave *s = arg;
    s->heartbeat_exchange = NULL;
    if (outcome->status == COORD_OK) {
        return;
    }
    if (is_loss(outcome)) {
        coordi_slave_unlink(s, outcome->error);
    } else {
        COORDI_LOG(&s->log, COORD_LOG_WARN, "heartbeat failed master=%s why=\"%s\"",
                   s->link->address, outcome->error->text);
    }
}

/* A beat that is still under way, or retried, stands for those that come due meanwhile.
 */
static void on_heartbeat_due(coordi_timer *timer)
{
    coord_slave *s = COORDI_ITEM(timer, coord_slave, heartbeat);
    beat_later(s);
    if (s->heartbeat_exchange != NULL) {
        return;
    }
    coordi_exchange_spec spec = {
        .method = "GET",
        .path = "/slave/heartbeat",
        .what = "heartbeat",
        .patience = s->patience,
        .fresh = !s->link->marked,
        .repeatable = true,
        .done = on_heartbeat_outcome,
        .arg = s,
    };
    coord_error err;
    spec.body = coordi_wire_nothing(&spec.body_len);
    if (coordi_exchange_start(s->loop, s->link->peer, &spec, &s->heartbeat_exchange,
                              &err) != COORD_OK) {
        COORDI_LOG(&s->log, COORD_LOG_WARN, "heartbeat not sent why=\"%s\"", err.text);
    }
}

/* ---- results ---- */

typedef struct delivery {
    coordi_link link;
    coord_slave *slave;
    coordi_exchange *exchange;
    char id[COORDI_UUID_SIZE];
} delivery;

/* A result that the master was never asked to take, for want of memory or descriptors, is
 * one that it waits for in vain. One that it answered, however oddly, costs only itself.
 */
static bool is_missed(const coordi_outcome *outcome)
{
    return outcome->status != COORD_OK && outcome->status != COORD_ERR_REFUSED &&
           outcome->status != COORD_ERR_PROTOCOL && outcome->status != COORD_ERR_TOO_BIG;
}

static void on_delivered(const coordi_outcome *outcome, void *arg)
{
    delivery *d = arg;
    coord_slave *s = d->slave;
    coordi_list_remove(&d->link);
    if (outcome->status != COORD_OK) {
        COORDI_LOG(&s->log, COORD_LOG_WARN, "result not delivered task=%s why=\"%s\"",
                   d->id, outcome->error->text);
    }
    coordi_free(d);
    if (is_missed(outcome) || is_loss(outcome)) {
        coordi_slave_unlink(s, outcome->error);
    }
}

void coordi_slave_drop_deliveries(coord_slave *s)
{
    for (coordi_link *link = coordi_list_pop(&s->deliveries); link != NULL;
         link = coordi_list_pop(&s->deliveries)) {
        delivery *d = COORDI_ITEM(link, delivery, link);
        coordi_exchange_cancel(d->exchange);
        coordi_free(d);
    }
}

bool coordi_slave_is_delivering(const coord_slave *s, const char *id)
{
    for (const coordi_link *at = s->deliveries.next; at != &s->deliveries;
         at = at->next) {
        if (strcmp(COORDI_ITEM(at, const delivery, link)->id, id) == 0) {
            return true;
        }
    }
    return false;
}

coord_status coordi_slave_deliver(coord_slave *s, const coordi_work *work,
                                  coord_error *err)
{
    char what[96];
    delivery *d = coordi_zalloc(sizeof *d);
    if (d == NULL) {
        return coordi_fail_nomem(err, "result");
    }
    d->slave = s;
    memcpy(d->id, work->id, sizeof d->id);
    (void)snprintf(what, sizeof what, "result of task %s", work->id);
    coordi_exchange_spec spec = {
        .method = "PUT",
        .path = work->status == COORD_OK ? "/slave/task/complete" : "/slave/task/fail",
        .what = what,
        .patience = s->patience,
        .fresh = !s->link->marked,
        .repeatable = s->link->marked,
        .done = on_delivered,
        .arg = d,
    };
    spec.body = coordi_wire_result(work->id, coordi_out_text(&work->out), &spec.body_len);
    coord_status rc =
        coordi_exchange_start(s->loop, s->link->peer, &spec, &d->exchange, err);
    if (rc != COORD_OK) {
        coordi_free(d);
        return rc;
    }
    coordi_list_append(&s->deliveries, &d->link);
    return COORD_OK;
}
