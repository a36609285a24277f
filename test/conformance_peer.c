/* A slave or a master with the hooks that the recorded exchanges expect:
 *
 *     conformance_peer slave|master
 *
 * prints "PORT SELF_TOKEN TASK_ID" and serves until its standard input closes. Its own
 * token is known inside the process alone, so this looks into the objects. */
#include "codec/json.h"
#include "coord.h"
#include "env/op.h"
#include "interaction/master.h"
#include "interaction/slave.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHANNEL = 7, FOREVER_MS = 3600000 };

static void fail(const char *what, const coord_error *err)
{
    (void)fprintf(stderr, "conformance_peer: %s: %s: %s\n", what, err->text, err->cause);
    _exit(1);
}

static void serve_until_eof(void)
{
    char byte;
    (void)fflush(stdout);
    while (read(0, &byte, 1) > 0) {
    }
}

/* ---- slave ---- */

static coord_status refuse_if_asked(coord_slave *slave, coord_text data, coord_out *out,
                                    void *user)
{
    coord_text refuse = {NULL, 0};
    (void)slave;
    (void)user;
    (void)coordi_json_get(data, "refuse", &refuse, NULL);
    if (!coordi_json_truth(refuse)) {
        return COORD_OK;
    }
    return coord_out_printf(out, NULL, "{\"why\": \"no\"}") == COORD_OK
               ? COORD_ERR_REFUSED
               : COORD_ERR_NOMEM;
}

/* {"sleep": s} works so long; it answers {"ok": 1} always. */
static coord_status process(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    const coordi_env *env = slave->loop->env;
    coord_text sleep_s = {NULL, 0};
    double seconds = 0.0;
    (void)user;
    if (coordi_json_get(data, "sleep", &sleep_s, NULL) == COORD_OK &&
        coordi_json_double(sleep_s, &seconds) && seconds > 0.0) {
        coordi_event *never = env->event_create(slave->loop);
        if (never == NULL) {
            return COORD_ERR_NOMEM;
        }
        (void)env->event_wait(never, coordi_now(slave->loop) + (int64_t)(seconds * 1e3));
        env->event_destroy(never);
    }
    return coord_out_printf(out, NULL, "{\"ok\": 1}");
}

static int run_slave(void)
{
    coord_error err = {0};
    coord_slave *slave = NULL;
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.channel = CHANNEL;
    o.heartbeat_ms = 600000;
    o.on_connect = refuse_if_asked;
    o.on_disconnect = refuse_if_asked;
    o.on_task = refuse_if_asked;
    o.process_task = process;
    if (coord_slave_create(&o, &slave, &err) != COORD_OK) {
        fail("slave", &err);
    }
    (void)printf("%u %s -\n", (unsigned)coord_slave_port(slave), slave->token);
    serve_until_eof();
    coord_slave_destroy(slave);
    return 0;
}

/* ---- master ---- */

static coordi_event *the_end;

/* The one connection of the recordings has a token that everybody knows. */
static void set_token(coordi_op *op)
{
    coord_connection *c = op->object;
    coord_master *m = c->master;
    (void)coordi_map_remove(&m->by_token, c->token);
    (void)snprintf(c->token, sizeof c->token, "SLAVETOKEN");
    bool put = coordi_map_put(&m->by_token, c->token, c);
    coordi_op_finish(op, put ? COORD_OK : COORD_ERR_NOMEM, NULL);
}

static bool change_token(coord_loop *loop, coord_connection *c, coord_error *err)
{
    coordi_op *op = coordi_op_create(loop, sizeof *op, set_token, c, err);
    bool changed =
        op != NULL && coordi_op_wait(op, COORDI_OP_PATIENCE_MS, "token", err) == COORD_OK;
    if (op != NULL) {
        coordi_op_unref(op);
    }
    return changed;
}

/* Works on its task until the program ends: the recordings send the result. */
static coord_status keep_task(coord_slave *slave, coord_text data, coord_out *out,
                              void *user)
{
    (void)data;
    (void)out;
    (void)user;
    (void)slave->loop->env->event_wait(the_end, coordi_now(slave->loop) + FOREVER_MS);
    return COORD_ERR_CANCELED;
}

static int run_master(void)
{
    coord_error err = {0};
    coord_slave *slave = NULL;
    coord_master *master = NULL;
    coord_connection *connection = NULL;
    coord_task *task = NULL;
    coord_slave_options so;
    coord_master_options mo;
    coord_connection_options co;

    coord_slave_options_init(&so, sizeof so);
    so.channel = CHANNEL;
    so.heartbeat_ms = FOREVER_MS;
    so.process_task = keep_task;
    coord_master_options_init(&mo, sizeof mo);
    mo.channel = CHANNEL;
    mo.heartbeat_tolerance_ms = FOREVER_MS;
    coord_connection_options_init(&co, sizeof co);
    co.id = "slave";
    co.host = "127.0.0.1";
    if (coord_slave_create(&so, &slave, &err) != COORD_OK ||
        coord_master_create(&mo, &master, &err) != COORD_OK) {
        fail("master", &err);
    }
    co.port = coord_slave_port(slave);
    the_end = slave->loop->env->event_create(slave->loop);
    if (the_end == NULL) {
        fail("event", &err);
    }
    if (coord_master_new_connection(master, &co, &connection, &err) != COORD_OK ||
        coord_connection_connect(connection, (coord_text){NULL, 0}, 10000, &err) !=
            COORD_OK ||
        coord_connection_new_task(connection, (coord_text){NULL, 0}, &task, &err) !=
            COORD_OK ||
        coord_task_start(task, 10000, 0, &err) != COORD_OK ||
        !change_token(master->loop, connection, &err)) {
        fail("connection", &err);
    }
    (void)printf("%u %s %s\n", (unsigned)coord_master_port(master), master->token,
                 coord_task_id(task));
    serve_until_eof();
    coord_task_unref(task);
    coord_connection_destroy(connection);
    coord_master_destroy(master);
    slave->loop->env->event_set(the_end);
    if (coord_slave_close(slave, 10000, &err) != COORD_OK) {
        fail("close", &err);
    }
    slave->loop->env->event_destroy(the_end);
    coord_slave_destroy(slave);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "slave") == 0) {
        return run_slave();
    }
    if (argc == 2 && strcmp(argv[1], "master") == 0) {
        return run_master();
    }
    (void)fprintf(stderr, "conformance_peer slave|master\n");
    return 2;
}
