/* A host: one life of the coordinator. Sends tasks so that some are always open, and
 * writes down what it did and what it was told. */
#include "coord.h"
#include "coord/json.h"
#include "soak.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPEN_COLLECTORS = 24, /* tasks that are kept open */
    OPEN_LEARNERS = 5,
    STATUS_MS = 500,
    DRAIN_MS = 90000,
    SETTLE_MS = 1500 /* for a life that only looks what is left */
};

typedef struct host {
    CommCoordinator *c;
    int journal;
    int life;
    uint64_t seed;
    atomic_int number;  /* of the last task */
    atomic_int open[2]; /* by role: collectors, learners */
    atomic_bool ending;
} host;

/* ---- notes ---- */

static void note(const host *h, const char *event, const char *task, coord_text payload,
                 const char *detail)
{
    comm_coordinator_delivery at = {.size = sizeof at};
    if (comm_coordinator_get_delivery(h->c, &at, NULL) != COORD_OK) {
        at.attempt = 0;
        at.sequence = 0;
    }
    soak_journal_write(
        h->journal, h->life,
        &(soak_note){event, task, at.attempt, at.sequence,
                     payload.len == 0 ? 0 : soak_crc(payload.ptr, payload.len), detail});
    soak_trap_step(event);
}

/* A luck of its own for each task and event of this life. */
static uint64_t luck(const host *h, const char *task, const char *event)
{
    return h->seed + (uint64_t)h->life * 7919 + soak_crc(task, strlen(task)) +
           ((uint64_t)soak_crc(event, strlen(event)) << 32);
}

/* Some callbacks take a while. */
static void dawdle(const host *h, const char *task, const char *event)
{
    uint64_t random = luck(h, task, event);
    if (soak_chance(&random, 40)) {
        soak_wait_ms(soak_between(&random, 1, soak_chance(&random, 10) ? 400 : 80));
    }
}

/* ---- sending ---- */

static void note_outcome(host *h, bool learner, const char *id, const char *failed,
                         coord_status rc, const char *why)
{
    char detail[320];
    if (rc == COORD_OK) {
        note(h, "accepted", id, (coord_text){NULL, 0}, NULL);
        return;
    }
    atomic_fetch_sub(&h->open[learner], 1);
    (void)snprintf(detail, sizeof detail, "%d %s", (int)rc, why);
    note(h, failed, id, (coord_text){NULL, 0}, detail);
}

static void send_task(host *h, bool learner, bool post)
{
    char id[64];
    coord_error err = {0};
    int number = atomic_fetch_add(&h->number, 1) + 1;
    soak_task_id(h->seed, h->life, number, learner, id);
    char *text = soak_task_text(id, 0);
    coord_text task = coord_text_of(text);
    coord_status rc;
    atomic_fetch_add(&h->open[learner], 1);
    note(h, post ? "post" : "send", id, task, NULL);
    if (post) {
        rc = learner ? comm_coordinator_post_learner_task(h->c, task, &err)
                     : comm_coordinator_post_collector_task(h->c, task, &err);
    } else {
        rc = learner ? comm_coordinator_send_learner_task(h->c, task, NULL, &err)
                     : comm_coordinator_send_collector_task(h->c, task, NULL, &err);
    }
    note_outcome(h, learner, id, post ? "unposted" : "unsent", rc, err.text);
    free(text);
}

/* One that waits for the worker's word, one task after the other. */
static void *send_on_and_on(void *arg)
{
    host *h = arg;
    uint64_t random = luck(h, "", "send");
    while (!atomic_load(&h->ending)) {
        send_task(h, soak_chance(&random, 20), false);
        soak_wait_ms(soak_between(&random, 0, 300));
    }
    return NULL;
}

static void cancel_one(host *h, uint64_t *random)
{
    char id[64];
    int last = atomic_load(&h->number);
    int number = (int)soak_between(random, last > 40 ? last - 40 : 1, last + 1);
    soak_task_id(h->seed, h->life, number, soak_chance(random, 20), id);
    if (comm_coordinator_cancel_task(h->c, id, NULL) == COORD_OK) {
        note(h, "cancel", id, (coord_text){NULL, 0}, NULL);
    }
}

/* ---- callbacks ---- */

static bool is_done(coord_text info)
{
    json_t *json = NULL;
    bool done = coord_json_parse(info, &json, NULL) == COORD_OK &&
                json_is_true(json_object_get(json, "done"));
    json_decref(json);
    return done;
}

static void on_data(CommCoordinator *c, const char *task, const char *buffer_id,
                    const char *data_id, coord_text data, void *user)
{
    (void)c;
    (void)buffer_id;
    note(user, "data", task, data, data_id);
    dawdle(user, task, data_id);
}

static bool on_judge(CommCoordinator *c, const char *task, coord_text info, void *user)
{
    (void)c;
    note(user, "judge", task, info, NULL);
    dawdle(user, task, "judge");
    return is_done(info);
}

static void on_end(host *h, const char *task, coord_text result)
{
    bool learner = task[0] == 'l';
    uint64_t random = luck(h, task, "more");
    note(h, "finish", task, result, NULL);
    dawdle(h, task, "finish");
    atomic_fetch_sub(&h->open[learner], 1);
    if (!atomic_load(&h->ending) && soak_chance(&random, 20)) {
        send_task(h, learner, true);
    }
}

static void on_finish(CommCoordinator *c, const char *task, coord_text result, void *user)
{
    (void)c;
    on_end(user, task, result);
}

static coord_status on_get_data(CommCoordinator *c, const char *task,
                                const char *buffer_id, int64_t batch_size,
                                int64_t iteration, coord_out *out, void *user)
{
    host *h = user;
    static atomic_int asked;
    (void)c;
    (void)buffer_id;
    uint64_t random = luck(h, task, "get") + (uint64_t)atomic_fetch_add(&asked, 1);
    if (soak_chance(&random, 30)) {
        return COORD_AGAIN;
    }
    note(h, "get", task, (coord_text){NULL, 0}, NULL);
    return coord_out_printf(out, NULL, "[{\"batch\": %lld, \"at\": %lld}]",
                            (long long)batch_size, (long long)iteration);
}

static void on_info(CommCoordinator *c, const char *task, const char *buffer_id,
                    coord_text info, void *user)
{
    json_t *json = NULL;
    char step[32] = "0";
    (void)c;
    (void)buffer_id;
    if (coord_json_parse(info, &json, NULL) == COORD_OK) {
        (void)snprintf(step, sizeof step, "%lld",
                       (long long)json_integer_value(json_object_get(json, "step")));
    }
    json_decref(json);
    note(user, "info", task, info, step);
    dawdle(user, task, step);
}

static void on_start(CommCoordinator *c, const char *task, const char *worker, void *user)
{
    (void)c;
    note(user, "start", task, (coord_text){NULL, 0}, worker);
}

static void on_restart(CommCoordinator *c, const char *task, uint32_t attempt,
                       const coord_error *cause, coord_out *out, void *user)
{
    const host *h = user;
    uint64_t random = luck(h, task, "restart") + attempt;
    char *text = soak_task_text(task, attempt);
    (void)c;
    bool replaces = soak_chance(&random, 40) &&
                    coord_out_json(out, coord_text_of(text), NULL) == COORD_OK;
    note(h, "restart", task, replaces ? coord_text_of(text) : (coord_text){NULL, 0},
         cause->text);
    free(text);
}

static void on_resume(CommCoordinator *c, const char *task, coord_text text, void *user)
{
    host *h = user;
    (void)c;
    atomic_fetch_add(&h->open[task[0] == 'l'], 1);
    note(h, "resume", task, text, NULL);
    dawdle(h, task, "resume");
}

static void on_fail(CommCoordinator *c, const char *task, const coord_error *why,
                    void *user)
{
    host *h = user;
    char detail[320];
    (void)c;
    (void)snprintf(detail, sizeof detail, "%d %s", (int)why->status, why->text);
    note(h, "fail", task, (coord_text){NULL, 0}, detail);
    dawdle(h, task, "fail");
    atomic_fetch_sub(&h->open[task[0] == 'l'], 1);
}

static void log_line(coord_log_level level, const char *line, void *user)
{
    (void)level;
    (void)user;
    soak_say(line);
}

/* ---- status ---- */

/* Pools, counters and the number of tasks. */
static void note_status(host *h)
{
    char *text = NULL;
    json_t *json = NULL;
    if (comm_coordinator_status(h->c, &text, NULL) != COORD_OK ||
        coord_json_parse(coord_text_of(text), &json, NULL) != COORD_OK) {
        note(h, "status", NULL, (coord_text){NULL, 0}, "none");
        coord_free(text);
        return;
    }
    json_t *brief =
        json_pack("{s:O, s:O, s:i, s:O}", "pools", json_object_get(json, "pools"),
                  "counters", json_object_get(json, "counters"), "tasks",
                  (int)json_array_size(json_object_get(json, "tasks")), "ledger",
                  json_object_get(json, "ledger"));
    char *line = json_dumps(brief, JSON_COMPACT);
    if (line == NULL) {
        abort();
    }
    note(h, "status", NULL, (coord_text){NULL, 0}, line);
    if (atomic_load(&h->ending)) {
        soak_say(text); /* for whoever looks why it does not end */
    }
    free(line);
    json_decref(brief);
    json_decref(json);
    coord_free(text);
}

/* ---- life ---- */

static void make(host *h, const char *config, int log_level)
{
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    coord_error err = {0};
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = on_data;
    cb.deal_with_collector_judge_finish = on_judge;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_learner_get_data = on_get_data;
    cb.deal_with_learner_send_info = on_info;
    cb.deal_with_learner_judge_finish = on_judge;
    cb.deal_with_learner_finish_task = on_finish;
    cb.deal_with_task_start = on_start;
    cb.deal_with_task_restart = on_restart;
    cb.deal_with_task_resume = on_resume;
    cb.deal_with_task_fail = on_fail;
    cb.user = h;
    comm_coordinator_options_init(&o, sizeof o);
    o.config_file = config;
    o.callbacks = &cb;
    o.log_level = (coord_log_level)log_level;
    o.log = log_line;
    if (comm_coordinator_create(&o, &h->c, &err) != COORD_OK ||
        comm_coordinator_start(h->c, &err) != COORD_OK) {
        note(h, "unstarted", NULL, (coord_text){NULL, 0}, err.text);
        soak_say(err.text);
        soak_say(err.cause);
        exit(3);
    }
    note(h, "started", NULL, (coord_text){NULL, 0}, NULL);
}

/* The signal that says so, or -1. */
static int told_to_end(const sigset_t *signals, int64_t wait_ms)
{
    struct timespec wait = {wait_ms / 1000, (long)(wait_ms % 1000) * 1000000};
    return sigtimedwait(signals, NULL, &wait);
}

static int keep_busy(host *h, const sigset_t *signals)
{
    uint64_t random = luck(h, "", "busy");
    int64_t next_status = 0;
    for (;;) {
        int signal = told_to_end(signals, soak_between(&random, 1, 30));
        if (signal > 0) {
            return signal;
        }
        for (int learner = 0; learner < 2; learner++) {
            int wanted = learner ? OPEN_LEARNERS : OPEN_COLLECTORS;
            for (int i = 0; i < 4 && atomic_load(&h->open[learner]) < wanted; i++) {
                send_task(h, learner, true);
            }
        }
        if (soak_chance(&random, 3)) {
            cancel_one(h, &random);
        }
        if (soak_chance(&random, 20) &&
            comm_coordinator_data_ready(h->c, NULL, NULL) != COORD_OK) {
            soak_say("data_ready failed");
        }
        if (soak_now_ms() >= next_status) {
            next_status = soak_now_ms() + STATUS_MS;
            note_status(h);
        }
    }
}

/* Tasks that are open stay in the ledger, or come to their ends first. */
static int finish(host *h, bool drains)
{
    coord_error err = {0};
    coord_status rc = drains ? COORD_ERR_TIMEOUT : COORD_OK;
    int64_t until = soak_now_ms() + DRAIN_MS;
    while (rc == COORD_ERR_TIMEOUT && soak_now_ms() < until) {
        note_status(h);
        rc = comm_coordinator_drain(h->c, 5000, &err);
    }
    if (drains) {
        note_status(h);
        note(h, rc == COORD_OK ? "drained" : "undrained", NULL, (coord_text){NULL, 0},
             err.text);
    }
    int64_t before = soak_now_ms();
    coord_status closed = comm_coordinator_close(h->c, &err);
    char detail[320];
    (void)snprintf(detail, sizeof detail, "%lld ms, %s",
                   (long long)(soak_now_ms() - before),
                   closed == COORD_OK ? "" : err.text);
    note(h, closed == COORD_OK ? "closed" : "unclosed", NULL, (coord_text){NULL, 0},
         detail);
    comm_coordinator_destroy(h->c);
    return rc == COORD_OK && closed == COORD_OK ? 0 : 4;
}

/* host PARENT FOLDER LIFE SEED LOG_LEVEL TRAP|look: works until SIGTERM, which drains,
 * or SIGINT, which does not; or only looks what the ledger brings back. */
int soak_host(int argc, char **argv)
{
    static host h;
    char config[SOAK_PATH];
    pthread_t sender;
    sigset_t signals;
    bool looks = argc == 8 && strcmp(argv[7], "look") == 0;
    if (argc != 8 || !soak_follow_parent(atoi(argv[2])) ||
        (!looks && !soak_trap_set(argv[7]))) {
        return 2;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    h.life = atoi(argv[4]);
    h.seed = strtoull(argv[5], NULL, 10);
    h.journal = soak_journal_open(argv[3], "host");
    (void)snprintf(config, sizeof config, "%s/config.json", argv[3]);
    note(&h, "born", NULL, (coord_text){NULL, 0}, NULL);
    make(&h, config, atoi(argv[6]));
    if (looks) {
        soak_wait_ms(SETTLE_MS);
        atomic_store(&h.ending, true);
        return finish(&h, true);
    }
    if (pthread_create(&sender, NULL, send_on_and_on, &h) != 0) {
        return 2;
    }
    bool drains = keep_busy(&h, &signals) == SIGTERM;
    note(&h, "ending", NULL, (coord_text){NULL, 0}, NULL);
    atomic_store(&h.ending, true);
    int status = finish(&h, drains);
    (void)pthread_join(sender, NULL); /* close has ended its wait */
    return status;
}
