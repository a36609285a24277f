#include "support/scene.h"

#include "coordinator/coordinator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char COORDINATOR[] = "10.0.0.1";

#define CONFIG "\"queue_timeout_s\": 5, \"start_timeout_s\": 5, \"close_timeout_s\": 10, "

const scene_spot SCENE_SPOTS[] = {
    {COORD_COLLECTOR, "queued"},     {COORD_COLLECTOR, "starting"},
    {COORD_COLLECTOR, "asking"},     {COORD_COLLECTOR, "pausing"},
    {COORD_COLLECTOR, "sending"},    {COORD_COLLECTOR, "judging"},
    {COORD_COLLECTOR, "closing"},    {COORD_COLLECTOR, "releasing"},
    {COORD_COLLECTOR, "restarting"}, {COORD_COLLECTOR, "finishing"},
    {COORD_COLLECTOR, "failing"},    {COORD_LEARNER, "queued"},
    {COORD_LEARNER, "starting"},     {COORD_LEARNER, "asking"},
    {COORD_LEARNER, "pausing"},      {COORD_LEARNER, "sampling"},
    {COORD_LEARNER, "waiting"},      {COORD_LEARNER, "learning"},
    {COORD_LEARNER, "judging"},      {COORD_LEARNER, "closing"},
    {COORD_LEARNER, "releasing"},    {COORD_LEARNER, "restarting"},
    {COORD_LEARNER, "finishing"},    {COORD_LEARNER, "failing"},
};
const size_t SCENE_SPOT_COUNT = sizeof SCENE_SPOTS / sizeof SCENE_SPOTS[0];

const scene_spot SCENE_LEDGER_SPOTS[] = {
    {COORD_COLLECTOR, "assigning"},
    {COORD_COLLECTOR, "settling"},
    {COORD_LEARNER, "assigning"},
    {COORD_LEARNER, "settling"},
};
const size_t SCENE_LEDGER_SPOT_COUNT =
    sizeof SCENE_LEDGER_SPOTS / sizeof SCENE_LEDGER_SPOTS[0];

/* ---- states ---- */

static bool is(const scene *s, const char *state)
{
    return strcmp(s->at->state, state) == 0;
}

static void give(scene *s, const char *id)
{
    cluster_post(&s->k, s->at->role, id);
    s->accepted++;
}

/* Another worker has the task, and dies. */
static void lose_first_worker(scene *s)
{
    cluster *k = &s->k;
    assert_true(cluster_await_task(k, "t", "asking", 10000));
    int first = strcmp(cluster_worker_state(k, k->workers[0].id), "working") == 0 ? 0 : 1;
    (void)snprintf(s->worker, sizeof s->worker, "%s", k->workers[1 - first].id);
    cluster_crash(k, k->workers[first].id);
}

void scene_reach(scene *s, const scene_spot *at, bool ledger)
{
    cluster *k = &s->k;
    bool collector = at->role == COORD_COLLECTOR;
    s->at = at;
    s->ledger = ledger;
    s->has_forger = false;
    s->accepted = 0;
    int workers = is(s, "restarting") ? 2 : 1;
    cluster_init(k, 1, collector ? workers : 0, collector ? 0 : workers);
    for (int i = 0; i < workers; i++) {
        cluster_worker *w = &k->workers[i];
        w->samples = 2;
        w->learns = 2;
        w->work_ms = 300;
        w->resource_ms = 300;
        w->fail_asks = is(s, "pausing") ? 1 : 0;
    }
    (void)snprintf(s->worker, sizeof s->worker, "%s", k->workers[0].id);
    k->callback_ms = 300;
    k->data_in_buffer = 1;
    k->hold_data = is(s, "waiting");
    cluster_start(k, ledger ? CONFIG "\"ledger\": \"/ledger\", " : CONFIG);
    if (is(s, "queued")) {
        give(s, "busy");
        assert_true(cluster_await_task(k, "busy", "asking", 10000));
    }
    give(s, "t");
    if (is(s, "failing")) {
        assert_true(cluster_await_task(k, "t", "asking", 10000));
        assert_int_equal(comm_coordinator_cancel_task(k->c, "t", NULL), COORD_OK);
    } else if (is(s, "restarting")) {
        lose_first_worker(s);
    }
    if (!cluster_await_task(k, "t", at->state, 30000)) {
        fail_msg("the task never was %s", at->state);
    }
    cluster_check(k);
}

void scene_create(scene *s)
{
    static const scene_spot NOWHERE = {COORD_COLLECTOR, ""};
    s->at = &NOWHERE;
    s->ledger = false;
    s->has_forger = false;
    s->accepted = 0;
    cluster_init(&s->k, 1, 1, 0);
    s->k.workers[0].resource_ms = 3000;
    (void)snprintf(s->worker, sizeof s->worker, "%s", s->k.workers[0].id);
    cluster_create(&s->k, CONFIG "\"max_retry_second\": 10, ");
}

/* ---- faults ---- */

static cluster_worker *victim(scene *s)
{
    return cluster_find(&s->k, s->worker);
}

static void nothing(scene *s)
{
    (void)s;
}

static void crash(scene *s)
{
    cluster_crash(&s->k, s->worker);
}

static void silence(scene *s)
{
    coord_sim_pause(s->k.sim, victim(s)->loop, true);
}

static void cut(scene *s, bool from_it, bool to_it)
{
    const char *host = victim(s)->host;
    if (from_it) {
        assert_int_equal(coord_sim_block(s->k.sim, host, COORDINATOR, true, NULL),
                         COORD_OK);
    }
    if (to_it) {
        assert_int_equal(coord_sim_block(s->k.sim, COORDINATOR, host, true, NULL),
                         COORD_OK);
    }
}

static void cut_from_it(scene *s)
{
    cut(s, true, false);
}

static void cut_to_it(scene *s)
{
    cut(s, false, true);
}

static void cut_both(scene *s)
{
    cut(s, true, true);
}

static coord_sim_link plain(const scene *s)
{
    coord_sim_link link;
    coord_sim_link_init(s->k.sim, &link, sizeof link);
    return link;
}

static void lose_all(scene *s)
{
    coord_sim_link link = plain(s);
    link.loss = 1;
    cluster_link(&s->k, &link);
}

static void reset_requests(scene *s)
{
    coord_sim_link link = plain(s);
    link.reset_before = 0.5;
    link.reset_after = 0.5;
    cluster_link(&s->k, &link);
}

static void double_requests(scene *s)
{
    coord_sim_link link = plain(s);
    link.duplicate = 1;
    cluster_link(&s->k, &link);
}

static void delay(scene *s)
{
    coord_sim_link link = plain(s);
    link.latency_min_ms = 500;
    link.latency_max_ms = 3000;
    cluster_link(&s->k, &link);
}

/* The id on the wire of what the worker is asked just now; "" if nothing. */
static const char *wire_id(scene *s, const coordi_member *m)
{
    const coordi_run *run = coordi_map_get(&s->k.c->runs, "t");
    if (m != NULL && m->task != NULL) {
        return m->task->id;
    }
    return run != NULL && run->request != NULL ? run->request->id : "";
}

static void forge(scene *s, const char *path, const char *token, const char *id,
                  const char *result)
{
    char body[256];
    (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}", id,
                   result);
    (void)peer_send(&s->forger, COORDINATOR, comm_coordinator_port(s->k.c), "PUT", path,
                    token, "0", body);
}

/* Somebody who knows the worker's token tells the coordinator what is not so. */
static void lie(scene *s)
{
    static const char OTHER[] = "00000000-0000-4000-8000-000000000000";
    static const char COMPLETE[] = "/slave/task/complete";
    static const char FAIL[] = "/slave/task/fail";
    coordi_member *m = coordi_map_get(&s->k.c->members[s->at->role], s->worker);
    char id[COORDI_UUID_SIZE];
    (void)snprintf(id, sizeof id, "%s", wire_id(s, m));
    peer_open(&s->forger, s->k.sim, "10.0.9.9", true);
    s->has_forger = true;
    if (m == NULL || m->connection == NULL) {
        return; /* nobody to speak for */
    }
    char token[COORDI_TOKEN_SIZE];
    memcpy(token, m->connection->token, sizeof token);
    forge(s, COMPLETE, token, OTHER, "{}");
    forge(s, COMPLETE, token, id, "{\"data_id\": ");
    forge(s, COMPLETE, token, id, "\"neither an object nor useful\"");
    forge(s, COMPLETE, token, id, "{\"batch_size\": -1, \"data_id\": [5]}");
    forge(s, FAIL, token, id, "null");
    forge(s, COMPLETE, "no token of anybody", id, "{}");
}

const scene_fault SCENE_FAULTS[] = {
    {"nothing", nothing, 0},
    {"crash", crash, SCENE_NOTICED_MS},
    {"silence", silence, SCENE_NOTICED_MS},
    {"cut from it", cut_from_it, SCENE_NOTICED_MS},
    {"cut to it", cut_to_it, SCENE_NOTICED_MS + 4000}, /* it is still heard, once */
    {"cut both ways", cut_both, SCENE_NOTICED_MS},
    {"loss", lose_all, SCENE_NOTICED_MS},
    {"reset", reset_requests, 0},
    {"duplicate", double_requests, 0},
    {"delay", delay, 0},
    {"lie", lie, 0},
};
const size_t SCENE_FAULT_COUNT = sizeof SCENE_FAULTS / sizeof SCENE_FAULTS[0];

/* ---- the end ---- */

void scene_mend(scene *s)
{
    cluster *k = &s->k;
    coord_sim_link link = plain(s);
    cluster_link(k, &link);
    coord_sim_heal(k->sim);
    for (int i = 0; i < k->worker_count; i++) {
        cluster_worker *w = &k->workers[i];
        if (w->loop == NULL) {
            cluster_revive(k, w->id);
        }
        coord_sim_pause(k->sim, w->loop, false);
        w->work_ms = 0;
        w->resource_ms = 0;
    }
    k->hold_data = false;
    k->callback_ms = 0;
}

static bool has_ended(void *user)
{
    return cluster_ends(user, "t") > 0;
}

bool scene_await_end(scene *s, int64_t limit_ms)
{
    return coord_sim_run_until(s->k.sim, limit_ms, has_ended, &s->k, NULL) == COORD_OK;
}

void scene_expect_recovery(scene *s, bool drains)
{
    cluster *k = &s->k;
    cluster_run(k, SCENE_NOTICED_MS); /* a quick return is noticed, too */
    for (int i = 0; i < k->worker_count; i++) {
        if (!cluster_await_worker(k, k->workers[i].id, "free", 90000)) {
            fail_msg("worker %s stays %s", k->workers[i].id,
                     cluster_worker_state(k, k->workers[i].id));
        }
    }
    cluster_check(k);
    if (drains) {
        assert_int_equal(comm_coordinator_drain(k->c, 60000, NULL), COORD_OK);
    } else {
        give(s, "again");
        assert_int_equal(comm_coordinator_wait(k->c, 60000, NULL), COORD_OK);
        assert_int_equal(cluster_count(k, "finish", "again"), 1);
    }
    assert_int_equal(cluster_ends(k, NULL), s->accepted);
    cluster_check(k);
}

void scene_done(scene *s)
{
    if (s->has_forger) {
        cluster_run(&s->k, 30000); /* its requests end */
        peer_close(&s->forger);
    }
    cluster_done(&s->k);
}
