#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char HOST[] = "10.0.0.1";

/* A callback has nobody to tell. */
static void ignore(coord_status status)
{
    (void)status;
}

/* ---- notes ---- */

static void note(wire_rig *r, const char *what, const char *who, const coord_error *why,
                 coord_text text, void *object)
{
    if (r->note_count == WIRE_NOTES_MAX) {
        abort();
    }
    wire_note *n = &r->notes[r->note_count++];
    (void)snprintf(n->what, sizeof n->what, "%s", what);
    (void)snprintf(n->who, sizeof n->who, "%.39s", who);
    n->status = why == NULL ? COORD_OK : why->status;
    n->peer_code = why == NULL ? 0 : why->peer_code;
    if (text.len > 0) {
        (void)snprintf(n->text, sizeof n->text, "%.*s", (int)text.len, text.ptr);
    } else {
        (void)snprintf(n->text, sizeof n->text, "%s", why == NULL ? "" : why->text);
    }
    n->at_ms = coord_sim_now_ms(r->sim);
    if (r->on_note != NULL) {
        r->on_note(r, n, object);
    }
}

int wire_count(const wire_rig *r, const char *what)
{
    int count = 0;
    for (int i = 0; i < r->note_count; i++) {
        count += strcmp(r->notes[i].what, what) == 0;
    }
    return count;
}

const wire_note *wire_last(const wire_rig *r, const char *what)
{
    for (int i = r->note_count - 1; i >= 0; i--) {
        if (strcmp(r->notes[i].what, what) == 0) {
            return &r->notes[i];
        }
    }
    fail_msg("no callback %s", what);
    return NULL;
}

typedef struct awaited {
    const wire_rig *r;
    const char *what;
    int count;
} awaited;

static bool has_come(void *user)
{
    awaited *a = user;
    return wire_count(a->r, a->what) >= a->count;
}

bool wire_await(wire_rig *r, const char *what, int count, int64_t limit_ms)
{
    awaited a = {r, what, count};
    return coord_sim_run_until(r->sim, limit_ms, has_come, &a, NULL) == COORD_OK;
}

void wire_run(wire_rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

/* ---- the world ---- */

static void trace(const char *line, void *user)
{
    (void)user;
    (void)fprintf(stderr, "%s\n", line);
}

void wire_open(wire_rig *r, uint64_t seed)
{
    coord_sim_options o;
    memset(r, 0, offsetof(wire_rig, peers));
    coord_sim_options_init(&o, sizeof o);
    o.seed = seed;
    o.trace = getenv("TRACE") == NULL ? NULL : trace;
    assert_int_equal(coord_sim_create(&o, &r->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, HOST, &r->loop, NULL), COORD_OK);
}

void wire_close(wire_rig *r)
{
    coord_master_destroy(r->master);
    coord_slave_destroy(r->slave);
    wire_run(r, 60000); /* callbacks that still run */
    for (int i = 0; i < r->peer_count; i++) {
        peer_close(&r->peers[i]);
    }
    coord_loop_destroy(r->loop);
    coord_sim_destroy(r->sim);
    assert_true(r->most_running <= 1);
}

peer *wire_peer(wire_rig *r, bool foreign)
{
    char host[32];
    peer *p = &r->peers[r->peer_count++];
    assert_true(r->peer_count <= WIRE_PEERS_MAX);
    (void)snprintf(host, sizeof host, "10.0.1.%d", r->peer_count);
    peer_open(p, r->sim, host, foreign);
    return p;
}

/* ---- masters ---- */

void wire_master(wire_rig *r, const coord_master_options *options)
{
    coord_master_options o;
    coord_error err = {0};
    coord_master_options_init(&o, sizeof o);
    if (options != NULL) {
        o = *options;
    }
    o.host = HOST;
    o.insecure = true;
    o.loop = r->loop;
    if (coord_master_create(&o, &r->master, &err) != COORD_OK) {
        fail_msg("master: %s", err.text);
    }
    r->port = coord_master_port(r->master);
}

#define NOTED(name)                                                                      \
    static void noted_##name(coord_connection *c, const coord_error *failure,            \
                             coord_text data, void *user)                                \
    {                                                                                    \
        note(user, #name, coord_connection_id(c), failure, data, c);                     \
    }
NOTED(connect)
NOTED(disconnect)
NOTED(lost)

static void noted_new_task(coord_connection *c, coord_task *task,
                           const coord_error *failure, void *user)
{
    (void)c;
    note(user, "new_task", coord_task_id(task), failure, (coord_text){NULL, 0}, task);
}

coord_connection *wire_connection(wire_rig *r, const char *id, const peer *p)
{
    coord_connection_options o;
    coord_connection *c = NULL;
    coord_connection_options_init(&o, sizeof o);
    o.id = id;
    o.host = p->host;
    o.port = p->port;
    o.on_connect = noted_connect;
    o.on_disconnect = noted_disconnect;
    o.on_new_task = noted_new_task;
    o.on_lost = noted_lost;
    o.user = r;
    assert_int_equal(coord_master_new_connection(r->master, &o, &c, NULL), COORD_OK);
    return c;
}

coord_connection *wire_connected(wire_rig *r, const char *id, const peer *p)
{
    coord_connection *c = wire_connection(r, id, p);
    coord_error err = {0};
    if (coord_connection_connect(c, (coord_text){NULL, 0}, 60000, &err) != COORD_OK) {
        fail_msg("connect: %s: %s", err.text, err.cause);
    }
    return c;
}

static void noted_complete(coord_task *task, const coord_error *failure, void *user)
{
    note(user, "complete", coord_task_id(task), failure, coord_task_result(task), task);
}

static void noted_fail(coord_task *task, const coord_error *failure, void *user)
{
    note(user, "fail", coord_task_id(task), failure, (coord_text){NULL, 0}, task);
}

coord_task *wire_task(wire_rig *r, coord_connection *c, const char *data)
{
    coord_task *task = NULL;
    assert_int_equal(coord_connection_new_task(c, coord_text_of(data), &task, NULL),
                     COORD_OK);
    assert_int_equal(coord_task_on_complete(task, noted_complete, r, NULL), COORD_OK);
    assert_int_equal(coord_task_on_fail(task, noted_fail, r, NULL), COORD_OK);
    return task;
}

/* ---- slaves ---- */

static coord_status hook(wire_rig *r, const char *what, coord_status says,
                         coord_text data, coord_out *out)
{
    note(r, what, "", NULL, data, NULL);
    if (r->hook_ms > 0) {
        ignore(coord_sim_run_for(r->sim, r->hook_ms, NULL));
    }
    if (says != COORD_OK) {
        ignore(coord_out_printf(out, NULL, "{\"why\": \"%s\"}", what));
    }
    return says;
}

static coord_status on_connect(coord_slave *slave, coord_text data, coord_out *out,
                               void *user)
{
    wire_rig *r = user;
    (void)slave;
    return hook(r, "ask connect", r->connect_says, data, out);
}

static coord_status on_disconnect(coord_slave *slave, coord_text data, coord_out *out,
                                  void *user)
{
    wire_rig *r = user;
    (void)slave;
    return hook(r, "ask disconnect", r->disconnect_says, data, out);
}

static coord_status on_task(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    wire_rig *r = user;
    (void)slave;
    return hook(r, "ask task", r->task_says, data, out);
}

static void on_lost(coord_slave *slave, const coord_error *why, void *user)
{
    note(user, "slave lost", "", why, (coord_text){NULL, 0}, slave);
}

static coord_status process(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    wire_rig *r = user;
    r->works++;
    r->running++;
    r->most_running = r->running > r->most_running ? r->running : r->most_running;
    note(r, "work", "", NULL, data, slave);
    for (int64_t left = r->work_ms; left > 0; left -= 100) {
        if (coord_slave_task_canceled(slave)) {
            r->canceled++;
            break;
        }
        ignore(coord_sim_run_for(r->sim, left < 100 ? left : 100, NULL));
    }
    r->running--;
    if (r->work_out != NULL) {
        ignore(coord_out_json(out, coord_text_of(r->work_out), NULL));
    }
    return r->work_says;
}

static coord_status make_slave(wire_rig *r, coord_slave_options o, coord_error *err)
{
    o.host = HOST;
    o.insecure = true;
    o.loop = r->loop;
    o.on_connect = on_connect;
    o.on_disconnect = on_disconnect;
    o.on_task = on_task;
    o.on_lost = on_lost;
    o.process_task = process;
    o.user = r;
    coord_status rc = coord_slave_create(&o, &r->slave, err);
    if (rc == COORD_OK) {
        r->port = coord_slave_port(r->slave);
    }
    return rc;
}

coord_status wire_try_slave(wire_rig *r, coord_error *err)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    return make_slave(r, o, err);
}

void wire_slave(wire_rig *r, const coord_slave_options *options)
{
    coord_slave_options o;
    coord_error err = {0};
    coord_slave_options_init(&o, sizeof o);
    if (make_slave(r, options == NULL ? o : *options, &err) != COORD_OK) {
        fail_msg("slave: %s", err.text);
    }
}
