/* Random lives of a coordinator with a ledger: it is killed, closed and started again in
 * the middle of everything else that goes wrong, and at the end the books must agree.
 * SEED=n tells one story, SEEDS=n the first n; TRACE=1 shows it. */
#include "support/cluster.h"
#include "support/sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = SANITIZED(300, 60, 40) };
enum { TASKS_MAX = 40, STEPS = 40, SETTLE_MS = 2000000 };

typedef struct task {
    char id[16];
    bool accepted;
    bool settled; /* its end is in the ledger: no later life may speak of it */
    int life;     /* ... of that one */
} task;

typedef struct tale {
    cluster k;
    uint64_t seed;
    uint64_t chance;
    task tasks[TASKS_MAX];
    int count;
    bool down[CLUSTER_WORKERS_MAX];
    bool paused[CLUSTER_WORKERS_MAX];
    bool disk_full;
    bool was_full; /* in this life: ends may be unwritten */
    char config[600];
} tale;

static uint64_t draw(tale *t, uint64_t count)
{
    t->chance ^= t->chance << 13;
    t->chance ^= t->chance >> 7;
    t->chance ^= t->chance << 17;
    return (t->chance >> 11) % count;
}

static void wrong(const tale *t, const char *what, const char *id)
{
    for (int i = 0; getenv("TRACE") != NULL && i < t->k.event_count; i++) {
        const cluster_event *e = &t->k.events[i];
        if (strcmp(e->task, id) == 0) {
            (void)fprintf(stderr, "%lld life %d: %s %u/%llu %s\n", (long long)e->at_ms,
                          e->life, e->name, e->attempt, (unsigned long long)e->sequence,
                          e->detail);
        }
    }
    fail_msg("seed %llu at %lld ms, life %d: task %s: %s: %s",
             (unsigned long long)t->seed, (long long)coord_sim_now_ms(t->k.sim),
             t->k.life, id, what, cluster_story(&t->k, id));
}

/* ---- the world ---- */

static void begin(tale *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->seed = seed;
    t->chance = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    cluster_init(&t->k, seed, 1 + (int)draw(t, 3), 1 + (int)draw(t, 2));
    for (int i = 0; i < t->k.worker_count; i++) {
        cluster_worker *w = &t->k.workers[i];
        w->work_ms = (int64_t)draw(t, 4) * 200;
        w->resource_ms = (int64_t)draw(t, 3) * 20;
        if (draw(t, 3) == 0) {
            cluster_set_foreign(&t->k, w->id);
        }
    }
    t->k.data_in_buffer = 1;
    t->k.callback_ms = (int64_t)draw(t, 3) * 50;
    static const char *const EXECUTORS[] = {"\"per_task\"", "{\"pool\": 2}"};
    (void)snprintf(t->config, sizeof t->config,
                   "\"ledger\": \"/ledger\", \"executor\": %s, \"min_collectors\": 0, "
                   "\"min_learners\": 0, \"request_retry_wait_s\": 0.5, "
                   "\"collector_task_timeout_s\": %d, \"learner_task_timeout_s\": %d, "
                   "\"max_reassign\": %d, \"ledger_keep\": %d, ",
                   EXECUTORS[draw(t, 2)], (int)draw(t, 2) * 20, (int)draw(t, 2) * 20,
                   (int)draw(t, 4), (int)draw(t, 2) * 1000);
    cluster_start(&t->k, t->config);
}

static void note_settled(tale *t)
{
    for (int i = 0; i < t->count; i++) {
        task *one = &t->tasks[i];
        if (!one->settled && !t->was_full && cluster_ends(&t->k, one->id) > 0 &&
            cluster_task_state(&t->k, one->id)[0] == '\0') {
            one->settled = true;
            one->life = t->k.life;
        }
    }
}

static void come_back(tale *t)
{
    cluster_run(&t->k, (int64_t)draw(t, draw(t, 3) == 0 ? 40000 : 3000));
    t->was_full = t->disk_full;
    cluster_restart(&t->k, t->config);
}

/* ---- what happens ---- */

static void post(tale *t)
{
    if (t->count == TASKS_MAX) {
        return;
    }
    task *one = &t->tasks[t->count++];
    coord_error err = {0};
    (void)snprintf(one->id, sizeof one->id, "t%d", t->count);
    coord_text text = cluster_task(one->id);
    coord_status rc = draw(t, 2) == 0
                          ? comm_coordinator_post_collector_task(t->k.c, text, &err)
                          : comm_coordinator_post_learner_task(t->k.c, text, &err);
    one->accepted = rc == COORD_OK;
    if (rc != COORD_OK && !(t->was_full && rc == COORD_ERR_IO)) {
        wrong(t, err.text, one->id);
    }
}

static void die(tale *t)
{
    note_settled(t);
    cluster_crash_coordinator(&t->k);
    come_back(t);
}

static void close_and_come_back(tale *t)
{
    note_settled(t); /* what it interrupts is gone afterwards, too */
    assert_int_equal(cluster_close(&t->k, NULL), COORD_OK);
    cluster_crash_coordinator(&t->k);
    come_back(t);
}

static void worker_crash(tale *t)
{
    int n = (int)draw(t, (uint64_t)t->k.worker_count);
    if (t->down[n]) {
        cluster_revive(&t->k, t->k.workers[n].id);
    } else {
        cluster_crash(&t->k, t->k.workers[n].id);
    }
    t->down[n] = !t->down[n];
    t->paused[n] = false;
}

static void worker_silence(tale *t)
{
    int n = (int)draw(t, (uint64_t)t->k.worker_count);
    if (!t->down[n]) {
        t->paused[n] = !t->paused[n];
        coord_sim_pause(t->k.sim, t->k.workers[n].loop, t->paused[n]);
    }
}

static void cut(tale *t)
{
    const char *host = t->k.workers[draw(t, (uint64_t)t->k.worker_count)].host;
    bool to = draw(t, 2) == 0;
    assert_int_equal(coord_sim_block(t->k.sim, to ? "10.0.0.1" : host,
                                     to ? host : "10.0.0.1", true, NULL),
                     COORD_OK);
}

static void heal(tale *t)
{
    coord_sim_heal(t->k.sim);
}

static void weather(tale *t)
{
    coord_sim_link link;
    coord_sim_link_init(t->k.sim, &link, sizeof link);
    if (draw(t, 2) == 0) {
        link.latency_max_ms = 1 + (int64_t)draw(t, 300);
        link.loss = (double)draw(t, 4) * 0.01;
        link.reset_before = (double)draw(t, 4) * 0.02;
        link.reset_after = (double)draw(t, 4) * 0.02;
        link.duplicate = (double)draw(t, 4) * 0.02;
    }
    cluster_link(&t->k, &link);
}

static void disk(tale *t)
{
    t->disk_full = !t->disk_full;
    t->was_full |= t->disk_full;
    coord_sim_set_disk_full(t->k.sim, t->disk_full);
}

static void cancel(tale *t)
{
    if (t->count > 0) {
        const char *id = t->tasks[draw(t, (uint64_t)t->count)].id;
        coord_status rc = comm_coordinator_cancel_task(t->k.c, id, NULL);
        assert_true(rc == COORD_OK || rc == COORD_ERR_NOT_FOUND);
    }
}

static void hold(tale *t)
{
    t->k.hold_data = !t->k.hold_data;
}

static void go_on(tale *t)
{
    static void (*const DEEDS[])(tale * t) = {
        post,
        post,
        post,
        post,
        post,
        die,
        die,
        die,
        close_and_come_back,
        worker_crash,
        worker_silence,
        cut,
        heal,
        weather,
        disk,
        cancel,
        hold,
    };
    DEEDS[draw(t, sizeof DEEDS / sizeof DEEDS[0])](t);
    cluster_run(&t->k, (int64_t)draw(t, draw(t, 6) == 0 ? 20000 : 1500));
    cluster_check(&t->k);
}

static void mend(tale *t)
{
    coord_sim_link link;
    coord_sim_link_init(t->k.sim, &link, sizeof link);
    cluster_link(&t->k, &link);
    coord_sim_heal(t->k.sim);
    coord_sim_set_disk_full(t->k.sim, false);
    t->k.hold_data = false;
    for (int i = 0; i < t->k.worker_count; i++) {
        if (t->down[i]) {
            cluster_revive(&t->k, t->k.workers[i].id);
        } else if (t->paused[i]) {
            coord_sim_pause(t->k.sim, t->k.workers[i].loop, false);
        }
    }
}

/* ---- the books ---- */

static bool is_end(const cluster_event *e)
{
    return strcmp(e->name, "finish") == 0 || strcmp(e->name, "fail") == 0;
}

static void check_task(const tale *t, const task *one)
{
    int ends_in_life[2 * STEPS] = {0};
    int ends = 0;
    for (int i = 0; i < t->k.event_count; i++) {
        const cluster_event *e = &t->k.events[i];
        if (strcmp(e->task, one->id) != 0) {
            continue;
        }
        ends += is_end(e);
        if (is_end(e) && ends_in_life[e->life]++ > 0) {
            wrong(t, "ended twice in one life", one->id);
        }
        if (!is_end(e) && ends_in_life[e->life] > 0) {
            wrong(t, "was spoken of after its end", one->id);
        }
        if (one->settled && e->life > one->life) {
            wrong(t, "was spoken of in a later life than its end's", one->id);
        }
    }
    if (one->accepted && ends == 0) {
        wrong(t, "has no end", one->id);
    }
    if (!one->accepted && cluster_count(&t->k, NULL, one->id) > 0) {
        wrong(t, "was not accepted, and came all the same", one->id);
    }
}

/* What has the same place was delivered before, in another life, with the same words. */
static void check_places(const tale *t)
{
    for (int i = 0; i < t->k.event_count; i++) {
        const cluster_event *a = &t->k.events[i];
        for (int j = i + 1; j < t->k.event_count; j++) {
            const cluster_event *b = &t->k.events[j];
            if (strcmp(a->name, "send_data") != 0 || strcmp(b->name, a->name) != 0 ||
                strcmp(a->task, b->task) != 0 || a->attempt != b->attempt ||
                a->sequence != b->sequence) {
                continue;
            }
            if (a->life == b->life) {
                wrong(t, "was given a sample twice", a->task);
            }
            if (strcmp(a->detail, b->detail) != 0) {
                wrong(t, "was given two samples under one number", a->task);
            }
        }
    }
}

static void check_totals(tale *t)
{
    unsigned long long accepted = 0;
    unsigned long long finished = 0;
    unsigned long long failed = 0;
    char *status = NULL;
    int wanted = 0;
    for (int i = 0; i < t->count; i++) {
        wanted += t->tasks[i].accepted;
    }
    assert_int_equal(comm_coordinator_status(t->k.c, &status, NULL), COORD_OK);
    const char *at = strstr(status, "\"counters\"");
    assert_non_null(at);
    assert_int_equal(sscanf(at,
                            "\"counters\": {\"accepted\": %llu, \"finished\": %llu, "
                            "\"failed\": %llu",
                            &accepted, &finished, &failed),
                     3);
    coord_free(status);
    if ((int)accepted != wanted || accepted != finished + failed) {
        fail_msg("seed %llu: %d tasks were accepted, the books say %llu, %llu and %llu",
                 (unsigned long long)t->seed, wanted, accepted, finished, failed);
    }
}

static void tell(uint64_t seed)
{
    static tale t;
    coord_error err = {0};
    begin(&t, seed);
    for (int i = 0; i < STEPS; i++) {
        go_on(&t);
    }
    mend(&t);
    if (comm_coordinator_wait(t.k.c, SETTLE_MS, &err) != COORD_OK) {
        char *status = NULL;
        assert_int_equal(comm_coordinator_status(t.k.c, &status, NULL), COORD_OK);
        fail_msg("seed %llu: %s: %s", (unsigned long long)seed, err.text, status);
    }
    /* Once more, so that the ledger speaks for itself. */
    cluster_run(&t.k, 5000);
    t.was_full = false;
    note_settled(&t);
    assert_int_equal(cluster_close(&t.k, NULL), COORD_OK);
    cluster_crash_coordinator(&t.k);
    cluster_restart(&t.k, t.config);
    cluster_run(&t.k, 30000);
    for (int i = 0; i < t.count; i++) {
        check_task(&t, &t.tasks[i]);
    }
    check_places(&t);
    check_totals(&t);
    cluster_check(&t.k);
    cluster_done(&t.k);
}

static void whatever_happens_the_books_agree(void **state)
{
    (void)state;
    const char *one = getenv("SEED");
    const char *count = getenv("SEEDS");
    if (one != NULL) {
        tell(strtoull(one, NULL, 10));
        return;
    }
    uint64_t seeds = count != NULL ? strtoull(count, NULL, 10) : SEEDS;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        tell(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_the_books_agree),
    };
    return cmocka_run_group_tests_name("ledger stories", tests, NULL, NULL);
}
