/* A worker: does what a task's text says, in steps, and writes down what it did. */
#include "coord.h"
#include "coord/json.h"
#include "soak.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLICE_MS = 10, CLOSE_MS = 5000 };

typedef struct worker {
    const char *id;
    int journal;
    coord_collector *collector; /* NULL in a learner */
    coord_learner *learner;
    char task[COORD_ID_SIZE];
    uint32_t attempt;
    soak_plan plan;
    int done;      /* steps of the running task */
    bool stumbled; /* has failed once */
    int64_t count; /* steps of this process */
} worker;

static void note(const worker *w, const char *event, int step)
{
    char detail[64];
    (void)snprintf(detail, sizeof detail, "%s %d", w->id, step);
    soak_journal_write(w->journal, (int)getpid(),
                       &(soak_note){.event = event,
                                    .task = w->task,
                                    .attempt = w->attempt,
                                    .sequence = (uint64_t)step,
                                    .detail = detail});
}

/* ---- steps ---- */

static coord_status fail(coord_error *err, coord_status status, const char *why)
{
    (void)snprintf(err->text, sizeof err->text, "%s", why);
    return status;
}

static coord_status resource(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)user;
    return coord_out_printf(out, err, "{\"cpu\": 2, \"pid\": %d}", (int)getpid());
}

static coord_status start(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    worker *w = user;
    json_t *info = NULL;
    const char *id = NULL;
    (void)slave;
    (void)out;
    coord_status rc = coord_json_parse(in, &info, err);
    if (rc == COORD_OK) {
        rc = coord_json_get_string(info, "task_id", &id, err);
    }
    if (rc == COORD_OK) {
        json_t *attempt = json_object_get(info, "attempt");
        (void)snprintf(w->task, sizeof w->task, "%s", id);
        w->attempt = json_is_integer(attempt) ? (uint32_t)json_integer_value(attempt) : 1;
        w->plan = soak_task_plan(id);
        w->done = 0;
        w->stumbled = false;
        note(w, "start", 0);
    }
    json_decref(info);
    if (rc == COORD_OK && w->plan.fault == SOAK_FAULT_START) {
        return fail(err, COORD_ERR_REFUSED, "its text says so");
    }
    return rc;
}

static coord_status work(worker *w, const coord_slave *slave, coord_error *err)
{
    for (int left = w->plan.step_ms; left > 0; left -= SLICE_MS) {
        if (coord_slave_task_canceled(slave)) {
            note(w, "canceled", w->done);
            return fail(err, COORD_ERR_CANCELED, "nobody waits for it");
        }
        soak_wait_ms(left < SLICE_MS ? left : SLICE_MS);
    }
    bool once = w->plan.fault == SOAK_FAULT_ONCE && !w->stumbled;
    if (once || w->plan.fault == SOAK_FAULT_STEPS) {
        w->stumbled = true;
        return fail(err, COORD_ERR_IO, "its text says so");
    }
    w->done++;
    w->count++;
    note(w, "step", w->done);
    return COORD_OK;
}

/* Differs with each process and step, so that equal bytes are the same result. */
static coord_status put(const worker *w, coord_out *out, coord_error *err,
                        const char *head)
{
    static const char PAD[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST";
    uint64_t random = (uint64_t)w->count * 31 + (uint64_t)getpid();
    int64_t times = soak_between(&random, 0, soak_chance(&random, 3) ? 1000 : 10);
    char *pad = malloc((size_t)times * sizeof PAD + 1);
    if (pad == NULL) {
        return fail(err, COORD_ERR_NOMEM, "out of memory");
    }
    size_t len = 0;
    for (int64_t i = 0; i < times; i++) {
        memcpy(pad + len, PAD, sizeof PAD - 1);
        len += sizeof PAD - 1;
    }
    pad[len] = '\0';
    coord_status rc = coord_out_printf(
        out, err,
        "{%s, \"step\": %d, \"pid\": %d, \"count\": %" PRId64 ", \"pad\": \"%s\"}", head,
        w->done, (int)getpid(), w->count, pad);
    free(pad);
    return rc;
}

static coord_status collect(coord_slave *slave, coord_text in, coord_out *out,
                            coord_error *err, void *user)
{
    worker *w = user;
    char head[48];
    (void)in;
    if (w->done >= w->plan.steps) {
        return coord_out_printf(out, err, "{\"done\": true, \"step\": %d}", w->done);
    }
    coord_status rc = work(w, slave, err);
    if (rc != COORD_OK) {
        return rc;
    }
    (void)snprintf(head, sizeof head, "\"data_id\": \"%d\", \"value\": NaN", w->done);
    return put(w, out, err, head);
}

static coord_status get_data(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    const worker *w = user;
    (void)slave;
    (void)in;
    return coord_out_printf(out, err, "{\"batch_size\": 2, \"cur_learner_iter\": %d}",
                            w->done);
}

static coord_status learn(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    worker *w = user;
    (void)in;
    coord_status rc = work(w, slave, err);
    return rc != COORD_OK
               ? rc
               : put(w, out, err,
                     w->done >= w->plan.steps ? "\"done\": true" : "\"done\": false");
}

static coord_status close_task(coord_slave *slave, coord_text in, coord_out *out,
                               coord_error *err, void *user)
{
    const worker *w = user;
    (void)slave;
    (void)in;
    note(w, "close", w->done);
    return coord_out_printf(out, err, "{\"count\": %d, \"pid\": %d}", w->done,
                            (int)getpid());
}

/* ---- life ---- */

static void log_line(coord_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    soak_say(line);
}

static coord_slave *make_collector(const coord_slave_options *o, worker *w,
                                   coord_error *err)
{
    coord_collector *collector;
    coord_collector_callbacks cb;
    coord_collector_callbacks_init(&cb, sizeof cb);
    cb.resource = resource;
    cb.start = start;
    cb.data = collect;
    cb.close = close_task;
    cb.user = w;
    if (coord_collector_create(o, &cb, &collector, err) != COORD_OK) {
        return NULL;
    }
    w->collector = collector;
    return coord_collector_slave(collector);
}

static coord_slave *make_learner(const coord_slave_options *o, worker *w,
                                 coord_error *err)
{
    coord_learner *learner;
    coord_learner_callbacks cb;
    coord_learner_callbacks_init(&cb, sizeof cb);
    cb.resource = resource;
    cb.start = start;
    cb.get_data = get_data;
    cb.learn = learn;
    cb.close = close_task;
    cb.user = w;
    if (coord_learner_create(o, &cb, &learner, err) != COORD_OK) {
        return NULL;
    }
    w->learner = learner;
    return coord_learner_slave(learner);
}

/* worker PARENT FOLDER ID PORT LOG_LEVEL: works until SIGTERM. */
int soak_worker(int argc, char **argv)
{
    static worker w; /* a step that close can't wait for still needs it */
    coord_slave_options o;
    coord_error err = {0};
    sigset_t signals;
    int signal;
    if (argc != 7 || !soak_follow_parent(atoi(argv[2]))) {
        return 2;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    w.id = argv[4];
    w.journal = soak_journal_open(argv[3], w.id);
    coord_slave_options_init(&o, sizeof o);
    o.port = (uint16_t)atoi(argv[5]);
    o.heartbeat_ms = 400;
    o.request_timeout_ms = 2000;
    o.request_retry_wait_ms = 500;
    o.log_level = (coord_log_level)atoi(argv[6]);
    o.log = log_line;
    coord_slave *slave =
        w.id[0] == 'l' ? make_learner(&o, &w, &err) : make_collector(&o, &w, &err);
    if (slave == NULL) {
        soak_say(err.text);
        soak_say(err.cause);
        return 1;
    }
    (void)sigwait(&signals, &signal);
    if (coord_slave_close(slave, CLOSE_MS, &err) != COORD_OK) {
        soak_say(err.text);
        return 3;
    }
    coord_collector_destroy(w.collector);
    coord_learner_destroy(w.learner);
    return 0;
}
