#include "interaction/connection.h"

#include "base/alloc.h"
#include "base/error.h"
#include "env/op.h"
#include "interaction/endpoint.h"
#include "interaction/master.h"

#include <stdio.h>
#include <string.h>

static void on_begin(coordi_timer *timer);

static const coord_text NO_DATA = {NULL, 0};

/* ---- reports to the host ---- */

static void free_report(coordi_connection_report *report)
{
    if (report != NULL) {
        coordi_free(report->data);
        coordi_free(report);
    }
}

static void run_report(coordi_job *job)
{
    coordi_connection_report *report = COORDI_ITEM(job, coordi_connection_report, job);
    coord_connection *c = report->owner;
    coordi_frame frame;

    coordi_master_enter_callback(c->master, &frame);
    report->fn(c, report->failed ? &report->error : NULL,
               (coord_text){report->data, report->data_len}, c->host.user);
    coordi_master_leave_callback(c->master, &frame);
    free_report(report);
    coordi_connection_unref(c);
}

/* Makes the report of what begins now, unless nobody wants it or it is there. */
static coord_status prepare(coord_connection *c, coordi_connection_report **slot,
                            coord_connection_fn *fn, coord_error *err)
{
    if (fn == NULL || *slot != NULL) {
        return COORD_OK;
    }
    coordi_connection_report *made = coordi_zalloc(sizeof *made);
    if (made == NULL) {
        return coordi_fail_nomem(err, "connection");
    }
    made->job.run = run_report;
    made->owner = c;
    made->fn = fn;
    *slot = made;
    return COORD_OK;
}

static void report(coord_connection *c, coordi_connection_report **slot,
                   const coord_error *failure, coord_text data)
{
    coordi_connection_report *made = *slot;
    if (made == NULL || c->lane == NULL) {
        return;
    }
    *slot = NULL;
    made->failed = failure != NULL;
    if (failure != NULL) {
        made->error = *failure;
    }
    made->data = data.len == 0 ? NULL : coordi_memdup(data.ptr, data.len);
    made->data_len = made->data == NULL ? 0 : data.len;
    (void)coordi_connection_ref(c);
    coordi_master_call_host(c->master, c->lane, &made->job);
}

/* ---- life ---- */

static void init_fields(coord_connection *c, const coord_connection_options *options)
{
    atomic_init(&c->refs, 1);
    atomic_init(&c->connected, false);
    c->host = *options;
    c->host.id = NULL; /* the caller's texts are copied, not kept */
    c->host.host = NULL;
    c->begin.fire = on_begin;
    coordi_list_init(&c->tasks);
    coordi_list_init(&c->orphans);
    coordi_list_init(&c->await_connect);
    coordi_list_init(&c->await_disconnect);
}

coord_status coordi_connection_create(coord_master *master,
                                      const coord_connection_options *options,
                                      coord_connection **ret, coord_error *err)
{
    size_t id_len = options->id == NULL ? 0 : strlen(options->id);
    size_t host_len = options->host == NULL ? 0 : strlen(options->host);
    if (id_len == 0 || id_len >= COORD_ID_SIZE) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "connection: id must have 1 to 255 bytes, has %zu", id_len);
    }
    if (host_len == 0 || !coordi_address_is_host(options->host) || options->port == 0) {
        return coordi_fail(
            err, COORD_ERR_ARG,
            "connection '%.60s': needs a host's name or address, without brackets, and a "
            "port, got \"%.60s\" and %u",
            options->id, options->host == NULL ? "" : options->host,
            (unsigned)options->port);
    }
    coord_connection *c = coordi_zalloc(sizeof *c);
    if (c == NULL) {
        return coordi_fail_nomem(err, "connection");
    }
    init_fields(c, options);
    memcpy(c->id, options->id, id_len);
    memcpy(c->key, options->id, id_len);
    c->connect_retries = master->patience.retries;
    memcpy(c->address.host, options->host, host_len);
    c->address.port = options->port;
    c->master = coordi_master_ref(master);
    *ret = c;
    return COORD_OK;
}

coord_connection *coordi_connection_ref(coord_connection *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void coordi_connection_unref(coord_connection *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1) {
        return;
    }
    coordi_free(c->greeting);
    free_report(c->connect_report);
    free_report(c->disconnect_report);
    free_report(c->lost_report);
    coordi_master_unref(c->master);
    coordi_free(c);
}

coord_status coordi_connection_need_lane(coord_connection *c, coord_error *err)
{
    if (c->lane != NULL) {
        return COORD_OK;
    }
    if (c->state == COORDI_CONNECTION_ENDED) {
        return coordi_fail_because(err, COORD_ERR_CLOSED, &c->end,
                                   "connection '%s': is gone", c->id);
    }
    if (c->master->executor == NULL) {
        return coordi_fail(err, COORD_ERR_CLOSED, "connection '%s': the master is closed",
                           c->id);
    }
    return coordi_lane_open(c->master->executor, &c->lane, err);
}

/* Ends the attempt under way: everybody who asked for its outcome is told. */
static void conclude(coord_connection *c, coordi_link *waiters,
                     coordi_connection_report **host, const coord_error *failure,
                     coord_text data)
{
    coordi_connection_done_fn *done = c->done;
    c->done = NULL;
    report(c, host, failure, data);
    coordi_op_finish_all(waiters, failure == NULL ? COORD_OK : failure->status, failure);
    if (done != NULL) {
        done(c, failure, data, c->done_arg);
    }
}

/* ---- leaving ---- */

static void fail_tasks(coord_connection *c, const coord_error *why)
{
    while (!coordi_list_empty(&c->tasks)) {
        coord_task *task = COORDI_ITEM(c->tasks.next, coord_task, link);
        coordi_task_fail(task, why); /* takes it off the list */
    }
}

/* Stops all traffic of the connection. */
static void silence(coord_connection *c)
{
    atomic_store(&c->connected, false);
    coordi_timer_stop(c->master->loop, &c->begin);
    coordi_exchange_cancel(c->exchange);
    c->exchange = NULL;
    coordi_exchange_cancel_orphans(&c->orphans);
    coordi_undo_cancel(c->undo);
    c->undo = NULL;
    coordi_heartbeats_forget(&c->master->heartbeats, &c->beat);
    if (c->registered) {
        if (c->sent) {
            coordi_master_remember(c->master, c);
        }
        coordi_master_unregister(c->master, c);
    }
}

/* The last thing that an end does, with a reference of its own: once all that depended on
 * the connection has been told, a close that waits for it may be over. */
static void leave(coord_connection *c)
{
    coordi_master_check_closed(c->master);
    coordi_connection_unref(c);
}

static void drop_peer(coord_connection *c)
{
    if (c->peer != NULL) {
        c->master->loop->env->peer_destroy(c->peer);
        c->peer = NULL;
    }
}

void coordi_connection_drop(coord_connection *c, const coord_error *why)
{
    if (c->state == COORDI_CONNECTION_ENDED) {
        return;
    }
    bool was_lost = c->state == COORDI_CONNECTION_LOST;
    (void)coordi_connection_ref(c); /* who is told may let it go */
    silence(c);
    c->state = COORDI_CONNECTION_ENDED;
    if (!was_lost) {
        c->end = *why;
    }
    c->done = NULL;
    coordi_op_finish_all(&c->await_connect, why->status, why);
    coordi_op_finish_all(&c->await_disconnect, COORD_OK, NULL);
    fail_tasks(c, why);
    drop_peer(c);
    coordi_lane_close(c->lane);
    c->lane = NULL;
    leave(c);
}

void coordi_connection_lose(coord_connection *c, const coord_error *why)
{
    if (c->state != COORDI_CONNECTION_CONNECTED &&
        c->state != COORDI_CONNECTION_DISCONNECTING) {
        return;
    }
    coord_error end = *why; /* may belong to a task that goes */
    end.status = COORD_ERR_LOST;
    COORDI_LOG(&c->master->log, COORD_LOG_WARN, "lost slave=%s why=\"%s\" cause=\"%s\"",
               c->id, end.text, end.cause);
    bool disconnecting = c->state == COORDI_CONNECTION_DISCONNECTING;
    (void)coordi_connection_ref(c);
    silence(c);
    c->state = COORDI_CONNECTION_LOST;
    c->end = end;
    fail_tasks(c, &end);
    drop_peer(c);
    report(c, &c->lost_report, &end, NO_DATA);
    if (disconnecting) {
        conclude(c, &c->await_disconnect, &c->disconnect_report, NULL, NO_DATA);
    }
    if (c->on_lost != NULL) {
        c->on_lost(c, &end, c->watcher);
    }
    leave(c);
}

void coordi_connection_heard(coord_connection *c)
{
    if (c->state == COORDI_CONNECTION_CONNECTED ||
        c->state == COORDI_CONNECTION_DISCONNECTING) {
        coordi_heartbeats_beat(&c->master->heartbeats, &c->beat);
        c->heard = true;
        if (c->unproven) {
            c->unproven = false;
            if (c->on_proven != NULL) {
                c->on_proven(c, c->watcher);
            }
        }
    }
}

const char *coordi_connection_doubt(const coord_connection *c, char *out, size_t size)
{
    out[0] = '\0';
    if (c->state == COORDI_CONNECTION_CONNECTED && !c->heard && c->told[0] != '\0') {
        (void)snprintf(out, size,
                       "it accepted the connection, but nothing has come from it in %lld "
                       "ms: can it reach %.80s, where it was told to report?",
                       (long long)(coordi_now(c->master->loop) - c->beat.last_ms),
                       c->told);
    }
    return out;
}

/* ---- connecting ---- */

static void connect_failed(coord_connection *c, const coord_error *why, coord_text data)
{
    (void)coordi_connection_ref(c);
    silence(c);
    drop_peer(c);
    c->state = COORDI_CONNECTION_IDLE;
    COORDI_LOG(&c->master->log, COORD_LOG_INFO, "connect failed slave=%s why=\"%s\"",
               c->id, why->text);
    if (c->aborted) {
        report(c, &c->disconnect_report, NULL, NO_DATA);
        coordi_op_finish_all(&c->await_disconnect, COORD_OK, NULL);
    }
    conclude(c, &c->await_connect, &c->connect_report, why, data);
    leave(c);
}

static void connected(coord_connection *c, bool marked)
{
    c->state = COORDI_CONNECTION_CONNECTED;
    c->was_connected = true;
    c->marked = marked;
    atomic_store(&c->connected, true);
    coordi_connection_heard(c);
    c->heard = false;
    COORDI_LOG(&c->master->log, COORD_LOG_INFO, "connected slave=%s libcoord=%d", c->id,
               (int)marked);
    conclude(c, &c->await_connect, &c->connect_report, NULL, NO_DATA);
}

static void send_connect(coord_connection *c);

static bool start_undo(coord_connection *c, const char *token, coordi_undo_fn *done)
{
    return coordi_undo_start(c->master->loop, &c->address, c->master->options.channel,
                             token, c->master->patience.timeout_ms, done, c, &c->undo,
                             NULL) == COORD_OK;
}

static void on_old_token_undone(coordi_undone how, void *arg);

static bool undo_next_old_token(coord_connection *c)
{
    enum { TRIES = 32 }; /* each costs a request, and mostly the first is the one */
    const char *old = c->old_tries++ == TRIES
                          ? NULL
                          : coordi_master_old_token(c->master, c, c->old_skipped);
    if (old == NULL) {
        return false;
    }
    memcpy(c->old, old, sizeof c->old);
    return start_undo(c, old, on_old_token_undone);
}

static void on_old_token_undone(coordi_undone how, void *arg)
{
    coord_connection *c = arg;
    c->undo = NULL;
    c->undone = how == COORDI_UNDONE_YES;
    if (how != COORDI_UNDONE_NO || !coordi_master_deny_token(c->master, c->old)) {
        c->old_skipped++;
    }
    if (c->undone) {
        send_connect(c);
    } else if (!undo_next_old_token(c)) {
        coord_error why = c->end;
        connect_failed(c, &why, NO_DATA);
    }
}

static void on_own_token_undone(coordi_undone how, void *arg)
{
    coord_connection *c = arg;
    c->undo = NULL;
    (void)how; /* the next answer tells */
    send_connect(c);
}

/* The slave says that it has a master. If that may be us, from an attempt whose answer
 * got lost or from a connection that we took for lost, take that one back and try again.
 */
static bool undo_and_try_again(coord_connection *c, const coordi_outcome *outcome)
{
    if (c->undone || outcome->status != COORD_ERR_REFUSED ||
        outcome->answer.code != COORDI_CODE_SLAVE_CONNECTED) {
        return false;
    }
    c->end = *outcome->error;
    if (outcome->maybe_delivered && !c->own_undone) {
        c->own_undone = true;
        return start_undo(c, c->token, on_own_token_undone);
    }
    return undo_next_old_token(c);
}

static void on_taken_back(coordi_undone how, void *arg)
{
    coord_connection *c = arg;
    coord_error why = c->end;
    c->undo = NULL;
    /* A no is no proof: the connect may arrive yet. */
    c->sent = c->sent && how != COORDI_UNDONE_YES;
    connect_failed(c, &why, NO_DATA);
}

void coordi_connection_abort(coord_connection *c)
{
    if (c->aborted) {
        return;
    }
    bool under_way = c->exchange != NULL;
    coordi_timer_stop(c->master->loop, &c->begin);
    coordi_exchange_cancel(c->exchange);
    c->exchange = NULL;
    coordi_undo_cancel(c->undo);
    c->undo = NULL;
    c->aborted = true;
    (void)coordi_fail(&c->end, COORD_ERR_CLOSED,
                      "connection '%s': disconnected while it "
                      "was connecting",
                      c->id);
    if (!under_way || !start_undo(c, c->token, on_taken_back)) {
        coord_error why = c->end;
        connect_failed(c, &why, NO_DATA);
    }
}

static void on_connect_outcome(const coordi_outcome *outcome, void *arg)
{
    coord_connection *c = arg;
    c->exchange = NULL;
    if (outcome->status == COORD_OK) {
        connected(c, outcome->marked);
        return;
    }
    /* What was not answered, or not with sense, may have been taken for all that. */
    bool unknown = outcome->maybe_delivered || outcome->status == COORD_ERR_PROTOCOL;
    c->sent = unknown;
    if (undo_and_try_again(c, outcome)) {
        return;
    }
    if (unknown && outcome->status != COORD_ERR_REFUSED &&
        start_undo(c, c->token, on_taken_back)) {
        c->end = *outcome->error;
        return; /* else it might refuse every other master from now on */
    }
    connect_failed(c, outcome->error, outcome->answer.data);
}

static void send_to(coord_connection *c, const char *path_host)
{
    char what[160];
    coord_error err;

    coordi_master_print_address(c->master, path_host, c->told);
    (void)snprintf(what, sizeof what, "connect to '%.60s' at %.60s:%u", c->id,
                   c->address.host, (unsigned)c->address.port);
    coordi_exchange_spec spec = {
        .method = "POST",
        .path = "/connect",
        .what = what,
        .patience = c->master->patience,
        .fresh = true, /* nobody knows yet who the slave is */
        .repeatable = true,
        .done = on_connect_outcome,
        .arg = c,
    };
    spec.patience.retries = c->connect_retries;
    spec.body = coordi_wire_connect(c->told, (coord_text){c->greeting, c->greeting_len},
                                    &spec.body_len);
    coord_status rc =
        coordi_exchange_start(c->master->loop, c->peer, &spec, &c->exchange, &err);
    if (rc != COORD_OK) {
        connect_failed(c, &err, NO_DATA);
    } else {
        c->sent = true; /* until we know better */
    }
}

static void on_path(coord_status status, const char *local_host, const coord_error *error,
                    void *arg)
{
    coord_connection *c = arg;
    if (status == COORD_OK) {
        send_to(c, local_host);
    } else {
        connect_failed(c, error, NO_DATA);
    }
}

static void send_connect(coord_connection *c)
{
    coord_error err;
    if (!coordi_master_needs_path(c->master)) {
        send_to(c, NULL);
    } else if (c->master->loop->env->peer_path(c->peer, c->master->patience.timeout_ms,
                                               on_path, c, &err) != COORD_OK) {
        connect_failed(c, &err, NO_DATA);
    }
}

static void on_begin(coordi_timer *timer)
{
    send_connect(COORDI_ITEM(timer, coord_connection, begin));
}

coord_status coordi_connection_connect(coord_connection *c, coord_text data,
                                       coordi_connection_done_fn *done, void *arg,
                                       coord_error *err)
{
    if (c->state != COORDI_CONNECTION_IDLE) {
        return coordi_fail(
            err, c->state == COORDI_CONNECTION_LOST ? COORD_ERR_LOST : COORD_ERR_STATE,
            "connection '%s': can connect once only", c->id);
    }
    if (c->master->closing) {
        return coordi_fail(err, COORD_ERR_STATE, "connection '%s': the master is closed",
                           c->id);
    }
    coord_status rc = prepare(c, &c->connect_report, c->host.on_connect, err);
    if (rc == COORD_OK) { /* a disconnect may cut this short */
        rc = prepare(c, &c->disconnect_report, c->host.on_disconnect, err);
    }
    if (rc == COORD_OK) {
        rc = prepare(c, &c->lost_report, c->host.on_lost, err);
    }
    char *greeting = rc == COORD_OK ? coordi_memdup(data.ptr, data.len) : NULL;
    if (greeting == NULL) {
        return coordi_fail_nomem(err, "connection");
    }
    coordi_free(c->greeting);
    c->greeting = greeting;
    c->greeting_len = data.len;
    /* The token is known before the slave hears of it: its first heartbeat may be faster
     * than its answer. */
    coordi_endpoint_new_token(c->master->loop, c->token);
    rc = coordi_master_register(c->master, c, err);
    if (rc != COORD_OK) {
        return rc;
    }
    rc = coordi_peer_create(c->master->loop, &c->address, c->master->options.channel,
                            c->token, &c->peer, err);
    if (rc != COORD_OK) {
        coordi_master_unregister(c->master, c);
        return rc;
    }
    c->sent = false;
    c->was_connected = false;
    c->undone = false;
    c->own_undone = false;
    c->aborted = false;
    c->old_tries = 0;
    c->old_skipped = 0;
    c->done = done;
    c->done_arg = arg;
    c->state = COORDI_CONNECTION_CONNECTING;
    coordi_timer_in(c->master->loop, &c->begin, 0); /* no outcome from within this call */
    return COORD_OK;
}

/* ---- adopting ---- */

coord_status coordi_connection_adopt(coord_connection *c, const char *token, bool marked,
                                     coord_error *err)
{
    coord_status rc = prepare(c, &c->disconnect_report, c->host.on_disconnect, err);
    if (rc == COORD_OK) {
        rc = prepare(c, &c->lost_report, c->host.on_lost, err);
    }
    if (rc == COORD_OK) {
        (void)snprintf(c->token, sizeof c->token, "%s", token);
        rc = coordi_master_register(c->master, c, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    rc = coordi_peer_create(c->master->loop, &c->address, c->master->options.channel,
                            c->token, &c->peer, err);
    if (rc != COORD_OK) {
        coordi_master_unregister(c->master, c);
        return rc;
    }
    c->sent = true;
    c->was_connected = true;
    c->marked = marked;
    c->unproven = true;
    c->state = COORDI_CONNECTION_CONNECTED;
    atomic_store(&c->connected, true);
    coordi_heartbeats_beat(&c->master->heartbeats, &c->beat);
    COORDI_LOG(&c->master->log, COORD_LOG_INFO, "adopted slave=%s libcoord=%d", c->id,
               (int)marked);
    return COORD_OK;
}

static void on_knock_outcome(const coordi_outcome *outcome, void *arg)
{
    coord_connection *c = arg;
    c->exchange = NULL;
    bool gone = outcome->status == COORD_ERR_LOST || outcome->status == COORD_ERR_TIMEOUT;
    bool disowned = outcome->status == COORD_ERR_REFUSED &&
                    outcome->answer.code == COORDI_CODE_WRONG_MASTER_TOKEN;
    if (gone || disowned) {
        coordi_connection_lose(c, outcome->error);
    } else {
        coordi_connection_heard(c);
    }
}

coord_status coordi_connection_knock(coord_connection *c, coord_error *err)
{
    char what[160];
    (void)snprintf(what, sizeof what, "knock at '%.100s' after a restart", c->id);
    /* A task without an id is refused whatever the slave does, but after its check of the
     * token: it is the one request that asks for nothing else. */
    coordi_exchange_spec spec = {
        .method = "POST",
        .path = "/task/new",
        .what = what,
        .patience = c->master->patience,
        .fresh = true,
        .repeatable = true,
        .done = on_knock_outcome,
        .arg = c,
    };
    spec.body = coordi_wire_nothing(&spec.body_len);
    return coordi_exchange_start(c->master->loop, c->peer, &spec, &c->exchange, err);
}

/* ---- disconnecting ---- */

static void on_disconnect_outcome(const coordi_outcome *outcome, void *arg)
{
    coord_connection *c = arg;
    coord_error closed;
    c->exchange = NULL;
    if (outcome->status == COORD_ERR_REFUSED &&
        outcome->answer.code == COORDI_CODE_DISCONNECT_REFUSED) {
        c->state = COORDI_CONNECTION_CONNECTED;
        conclude(c, &c->await_disconnect, &c->disconnect_report, outcome->error,
                 outcome->answer.data);
        return;
    }
    /* Whatever else it says, it is no slave of ours any more. */
    (void)coordi_fail(&closed, COORD_ERR_CLOSED, "connection '%s': disconnected", c->id);
    (void)coordi_connection_ref(c);
    silence(c);
    c->state = COORDI_CONNECTION_ENDED;
    c->end = closed;
    fail_tasks(c, &closed);
    drop_peer(c);
    COORDI_LOG(&c->master->log, COORD_LOG_INFO, "disconnected slave=%s", c->id);
    conclude(c, &c->await_disconnect, &c->disconnect_report, NULL, NO_DATA);
    coordi_lane_close(c->lane);
    c->lane = NULL;
    leave(c);
}

coord_status coordi_connection_disconnect(coord_connection *c, coord_text data,
                                          coordi_connection_done_fn *done, void *arg,
                                          coord_error *err)
{
    if (c->state != COORDI_CONNECTION_CONNECTED) {
        return coordi_fail(
            err, c->state == COORDI_CONNECTION_LOST ? COORD_ERR_LOST : COORD_ERR_STATE,
            "connection '%s': is not connected", c->id);
    }
    coord_status rc = prepare(c, &c->disconnect_report, c->host.on_disconnect, err);
    if (rc != COORD_OK) {
        return rc;
    }
    char what[160];
    (void)snprintf(what, sizeof what, "disconnect from '%.100s'", c->id);
    coordi_exchange_spec spec = {
        .method = "DELETE",
        .path = "/disconnect",
        .what = what,
        .patience = c->master->patience,
        .fresh = !c->marked,
        .repeatable = true,
        .done = on_disconnect_outcome,
        .arg = c,
    };
    spec.body = coordi_wire_disconnect(data, &spec.body_len);
    coordi_exchange_cancel(c->exchange); /* a knock */
    rc = coordi_exchange_start(c->master->loop, c->peer, &spec, &c->exchange, err);
    if (rc == COORD_OK) {
        c->done = done;
        c->done_arg = arg;
        c->state = COORDI_CONNECTION_DISCONNECTING;
    }
    return rc;
}
