#include "support/cluster.h"

#include "coordinator/coordinator.h"
#include "support/heap.h"
#include "support/one_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int PORT = 22270;

/* ---- what the host's callbacks see ---- */

/* In a thread of the world: takes virtual time. A callback has nobody to tell. */
static void spend(cluster *k, int64_t ms)
{
    if (ms > 0 && coord_sim_run_for(k->sim, ms, NULL) != COORD_OK) {
        k->overlaps += 1000; /* makes the test fail */
    }
}

static void enter(cluster *k, const char *task_id)
{
    int slot = -1;
    k->after_close += k->closed;
    for (int i = 63; i >= 0; i--) {
        if (k->busy[i][0] == '\0') {
            slot = i;
        } else if (strcmp(k->busy[i], task_id) == 0) {
            k->overlaps++;
        }
    }
    if (slot >= 0) {
        (void)snprintf(k->busy[slot], sizeof k->busy[slot], "%.31s", task_id);
    }
    spend(k, k->callback_ms);
}

static void leave(cluster *k, const char *task_id)
{
    for (int i = 0; i < 64; i++) {
        if (strcmp(k->busy[i], task_id) == 0) {
            k->busy[i][0] = '\0';
            return;
        }
    }
}

static void note(cluster *k, const char *name, const char *task_id, const char *format,
                 ...) COORD_PRINTF(4, 5);

static void note(cluster *k, const char *name, const char *task_id, const char *format,
                 ...)
{
    cluster_event e = {0};
    va_list args;
    va_start(args, format);
    (void)snprintf(e.name, sizeof e.name, "%s", name);
    (void)snprintf(e.task, sizeof e.task, "%.31s", task_id);
    (void)vsnprintf(e.detail, sizeof e.detail, format, args);
    va_end(args);
    e.at_ms = coord_sim_now_ms(k->sim);
    e.life = k->life;
    comm_coordinator_delivery delivery = {.size = sizeof delivery};
    if (comm_coordinator_get_delivery(k->c, &delivery, NULL) == COORD_OK) {
        e.attempt = delivery.attempt;
        e.sequence = delivery.sequence;
    }
    if (k->event_count < CLUSTER_EVENTS_MAX) {
        k->events[k->event_count++] = e;
    } else {
        k->overlaps += k->on_note == NULL; /* makes the test fail */
    }
    if (k->on_note != NULL) {
        k->on_note(k, &e, k->on_note_user);
    }
    enter(k, task_id);
    if (k->on_event != NULL) {
        k->on_event(k, name, task_id, k->on_event_user);
    }
    leave(k, task_id);
}

static void on_send_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                         const char *data_id, coord_text data, void *user)
{
    cluster *k = user;
    (void)c;
    k->data_in_buffer++;
    note(k, "send_data", task_id, "%s %s %.*s", buffer_id == NULL ? "-" : buffer_id,
         data_id, (int)data.len, data.ptr);
}

static bool has_true(coord_text text, const char *key)
{
    char pattern[64];
    (void)snprintf(pattern, sizeof pattern, "\"%s\": true", key);
    return memmem(text.ptr, text.len, pattern, strlen(pattern)) != NULL;
}

static bool on_judge_collector(CommCoordinator *c, const char *task_id, coord_text info,
                               void *user)
{
    (void)c;
    note(user, "judge", task_id, "%.*s", (int)info.len, info.ptr);
    return has_true(info, "collector_done") && !((cluster *)user)->judge_says_no;
}

static bool on_judge_learner(CommCoordinator *c, const char *task_id, coord_text info,
                             void *user)
{
    (void)c;
    note(user, "judge", task_id, "%.*s", (int)info.len, info.ptr);
    return has_true(info, "learner_done");
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    (void)c;
    note(user, "finish", task_id, "%.*s", (int)result.len, result.ptr);
}

static coord_status on_get_data(CommCoordinator *c, const char *task_id,
                                const char *buffer_id, int64_t batch_size,
                                int64_t cur_learner_iter, coord_out *out, void *user)
{
    cluster *k = user;
    (void)c;
    note(k, "get_data", task_id, "%s %lld %lld", buffer_id == NULL ? "-" : buffer_id,
         (long long)batch_size, (long long)cur_learner_iter);
    if (k->get_data_fails) {
        return COORD_ERR_IO;
    }
    if (k->hold_data || k->data_in_buffer == 0) {
        return COORD_AGAIN;
    }
    return coord_out_printf(out, NULL, "[{\"data_id\": \"d\", \"x\": NaN}]");
}

static void on_info(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    coord_text info, void *user)
{
    (void)c;
    note(user, "send_info", task_id, "%s %.*s", buffer_id == NULL ? "-" : buffer_id,
         (int)info.len, info.ptr);
}

static void on_start(CommCoordinator *c, const char *task_id, const char *worker_id,
                     void *user)
{
    (void)c;
    note(user, "start", task_id, "%s", worker_id);
}

static void on_restart(CommCoordinator *c, const char *task_id, uint32_t attempt,
                       const coord_error *cause, coord_out *out, void *user)
{
    cluster *k = user;
    (void)c;
    note(k, "restart", task_id, "%u %d %s: %s", attempt, (int)cause->status, cause->text,
         cause->cause);
    if (k->restart_text != NULL &&
        coord_out_json(out, coord_text_of(k->restart_text), NULL) != COORD_OK) {
        k->restart_text = NULL; /* the test sees that it was not taken */
    }
}

static void on_resume(CommCoordinator *c, const char *task_id, coord_text task,
                      void *user)
{
    (void)c;
    note(user, "resume", task_id, "%.*s", (int)task.len, task.ptr);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    (void)c;
    note(user, "fail", task_id, "%d %s: %s [%s]", (int)why->status, why->text, why->cause,
         why->reason);
}

/* ---- workers ---- */

static bool fails(int *left)
{
    return *left > 0 && (*left)-- > 0;
}

/* A request has reached the worker's own code. */
static void begin_work(coord_slave *slave, cluster_worker *w, char letter, int64_t ms)
{
    size_t len = strlen(w->log);
    if (len + 1 < sizeof w->log) {
        w->log[len] = letter;
        w->log[len + 1] = '\0';
    }
    spend(w->cluster, ms);
    while (w->stuck && !(w->obeys && coord_slave_task_canceled(slave))) {
        spend(w->cluster, 50);
    }
    w->stuck = w->stuck && !w->obeys;
}

static coord_status do_resource(coord_slave *slave, coord_text in, coord_out *out,
                                coord_error *err, void *user)
{
    cluster_worker *w = user;
    (void)in;
    begin_work(slave, w, 'r', w->resource_ms);
    return w->no_resource ? COORD_ERR_IO : coord_out_printf(out, err, "{\"cpu\": 1}");
}

static coord_status do_start(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    cluster_worker *w = user;
    (void)out;
    (void)snprintf(w->info, sizeof w->info, "%.*s", (int)in.len, in.ptr);
    begin_work(slave, w, 's', w->work_ms);
    w->count = 0;
    w->starts++;
    if (fails(&w->fail_starts)) {
        (void)snprintf(err->text, sizeof err->text, "no such policy");
        return COORD_ERR_IO;
    }
    return COORD_OK;
}

static coord_status do_data(coord_slave *slave, coord_text in, coord_out *out,
                            coord_error *err, void *user)
{
    cluster_worker *w = user;
    (void)in;
    begin_work(slave, w, 'd', w->work_ms);
    if (fails(&w->fail_asks)) {
        return COORD_ERR_IO;
    }
    if (w->count++ < w->samples) {
        return coord_out_printf(
            out, err, "{\"data_id\": \"%s-%d\", \"reward\": Infinity}", w->id, w->count);
    }
    return coord_out_printf(out, err, "{\"collector_done\": true}");
}

static coord_status do_get_data(coord_slave *slave, coord_text in, coord_out *out,
                                coord_error *err, void *user)
{
    cluster_worker *w = user;
    (void)in;
    begin_work(slave, w, 'g', w->work_ms);
    if (fails(&w->fail_asks)) {
        return COORD_ERR_IO;
    }
    return coord_out_printf(out, err, "{\"batch_size\": 4, \"cur_learner_iter\": %d}",
                            w->count);
}

static coord_status do_learn(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    cluster_worker *w = user;
    (void)in;
    begin_work(slave, w, 'l', w->work_ms);
    if (fails(&w->fail_learns)) {
        return COORD_ERR_IO;
    }
    w->count++;
    return coord_out_printf(out, err, "{\"learner_step\": %d, \"learner_done\": %s}",
                            w->count, w->count >= w->learns ? "true" : "false");
}

static coord_status do_close(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    cluster_worker *w = user;
    (void)in;
    begin_work(slave, w, 'c', w->work_ms);
    if (fails(&w->fail_closes)) {
        return COORD_ERR_IO;
    }
    return coord_out_printf(out, err, "{\"count\": %d}", w->count);
}

static void listen_on_loop(cluster_worker *w)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.host = w->host;
    o.port = (uint16_t)w->port;
    o.insecure = true;
    o.loop = w->loop;
    if (w->role == COORD_COLLECTOR) {
        coord_collector_callbacks cb;
        coord_collector_callbacks_init(&cb, sizeof cb);
        cb.resource = do_resource;
        cb.start = do_start;
        cb.data = do_data;
        cb.close = do_close;
        cb.user = w;
        assert_int_equal(coord_collector_create(&o, &cb, &w->collector, NULL), COORD_OK);
    } else {
        coord_learner_callbacks cb;
        coord_learner_callbacks_init(&cb, sizeof cb);
        cb.resource = do_resource;
        cb.start = do_start;
        cb.get_data = do_get_data;
        cb.learn = do_learn;
        cb.close = do_close;
        cb.user = w;
        assert_int_equal(coord_learner_create(&o, &cb, &w->learner, NULL), COORD_OK);
    }
}

static void bring_up(cluster *k, cluster_worker *w)
{
    assert_int_equal(coord_sim_loop(k->sim, w->host, &w->loop, NULL), COORD_OK);
    coord_sim_set_foreign(k->sim, w->loop, w->foreign);
    listen_on_loop(w);
}

static void vacate(cluster_worker *w)
{
    coord_collector_destroy(w->collector);
    coord_learner_destroy(w->learner);
    w->collector = NULL;
    w->learner = NULL;
}

static void take_down(cluster_worker *w)
{
    vacate(w);
    coord_loop_destroy(w->loop);
    w->loop = NULL;
}

/* ---- the cluster ---- */

static void trace(const char *line, void *user)
{
    (void)user;
    (void)fprintf(stderr, "%s\n", line);
}

void cluster_init(cluster *k, uint64_t seed, int collectors, int learners)
{
    coord_sim_options o;
    coord_sim_options_init(&o, sizeof o);
    o.seed = seed;
    cluster_init_in(k, o, collectors, learners);
}

static cluster_worker *find_room(cluster *k)
{
    for (int i = 0; i < k->worker_count; i++) {
        if (k->workers[i].id[0] == '\0') {
            return &k->workers[i];
        }
    }
    assert_true(k->worker_count < CLUSTER_WORKERS_MAX);
    return &k->workers[k->worker_count++];
}

cluster_worker *cluster_add(cluster *k, coord_role role, const char *id, const char *host,
                            int port)
{
    cluster_worker *w = find_room(k);
    assert_true(strlen(id) < sizeof w->id && strlen(host) < sizeof w->host);
    w->cluster = k;
    w->role = role;
    w->samples = 3;
    w->learns = 3;
    w->stranger = true;
    w->port = port;
    memcpy(w->id, id, strlen(id) + 1);
    memcpy(w->host, host, strlen(host) + 1);
    bring_up(k, w);
    return w;
}

void cluster_init_in(cluster *k, coord_sim_options o, int collectors, int learners)
{
    memset(k, 0, offsetof(cluster, events));
    one_core();
    heap_watch();
    o.trace = getenv("TRACE") == NULL ? NULL : trace;
    assert_int_equal(coord_sim_create(&o, &k->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(k->sim, "10.0.0.1", &k->loop, NULL), COORD_OK);
    for (int i = 0; i < collectors + learners; i++) {
        bool collector = i < collectors;
        int n = collector ? i : i - collectors;
        char id[32];
        char host[32];
        (void)snprintf(id, sizeof id, "%c%d", collector ? 'c' : 'l', n);
        (void)snprintf(host, sizeof host, "10.0.%d.%d", collector ? 1 : 2, 1 + n);
        cluster_add(k, collector ? COORD_COLLECTOR : COORD_LEARNER, id, host, PORT)
            ->stranger = false;
    }
}

#define MEMBER_CALLBACK(what, role)                                                      \
    static void on_##what##_##role(CommCoordinator *c, void *user)                       \
    {                                                                                    \
        (void)c;                                                                         \
        note(user, #what, #role, "-");                                                   \
    }
MEMBER_CALLBACK(increase, collector)
MEMBER_CALLBACK(decrease, collector)
MEMBER_CALLBACK(increase, learner)
MEMBER_CALLBACK(decrease, learner)

static coord_status on_discovery(CommCoordinator *c, coord_out *out, void *user)
{
    cluster *k = user;
    (void)c;
    note(k, "discovery", "discovery", "-");
    return k->discover(k, out);
}

static void print_config(cluster *k, const char *more)
{
    size_t at = (size_t)snprintf(k->config, sizeof k->config,
                                 "{\"host\": \"10.0.0.1\", \"insecure\": true, %s", more);
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        at += (size_t)snprintf(k->config + at, sizeof k->config - at, "%s\"%s\": {",
                               role == COORD_COLLECTOR ? "" : ", ",
                               coord_role_str((coord_role)role));
        bool first = true;
        for (int i = 0; i < k->worker_count; i++) {
            const cluster_worker *w = &k->workers[i];
            if (w->role == (coord_role)role && !w->stranger) {
                at += (size_t)snprintf(k->config + at, sizeof k->config - at,
                                       "%s\"%d\": [\"%s\", \"%s\", %d]",
                                       first ? "" : ", ", i, w->id, w->host, PORT);
                first = false;
            }
        }
        at += (size_t)snprintf(k->config + at, sizeof k->config - at, "}");
    }
    (void)snprintf(k->config + at, sizeof k->config - at, "}");
}

static void log_line(coord_log_level level, const char *line, void *user)
{
    (void)level;
    trace(line, user);
}

void cluster_link(cluster *k, const coord_sim_link *link)
{
    assert_int_equal(coord_sim_set_link(k->sim, NULL, NULL, link, NULL), COORD_OK);
}

coord_status cluster_try_create(cluster *k, const char *more, coord_error *err)
{
    comm_coordinator_callbacks cb;
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.user = k;
    cb.deal_with_collector_send_data = on_send_data;
    cb.deal_with_collector_judge_finish = on_judge_collector;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_learner_get_data = on_get_data;
    cb.deal_with_learner_send_info = on_info;
    cb.deal_with_learner_judge_finish = on_judge_learner;
    cb.deal_with_learner_finish_task = on_finish;
    cb.deal_with_increase_collector = on_increase_collector;
    cb.deal_with_decrease_collector = on_decrease_collector;
    cb.deal_with_increase_learner = on_increase_learner;
    cb.deal_with_decrease_learner = on_decrease_learner;
    cb.deal_with_discovery = k->discover == NULL ? NULL : on_discovery;
    cb.deal_with_task_start = on_start;
    cb.deal_with_task_restart = on_restart;
    cb.deal_with_task_resume = on_resume;
    cb.deal_with_task_fail = on_fail;

    print_config(k, more);
    comm_coordinator_options o;
    comm_coordinator_options_init(&o, sizeof o);
    o.config = k->config;
    o.callbacks = &cb;
    o.loop = k->loop;
    o.log_level = COORD_LOG_DEBUG;
    o.log = k->log != NULL ? k->log : getenv("TRACE") == NULL ? NULL : log_line;
    o.user = k;
    return comm_coordinator_create(&o, &k->c, err);
}

void cluster_create(cluster *k, const char *more)
{
    coord_error err = {0};
    if (cluster_try_create(k, more, &err) != COORD_OK) {
        fail_msg("create: %s: %s", err.text, err.cause);
    }
}

void cluster_start(cluster *k, const char *more)
{
    coord_error err = {0};
    cluster_create(k, more);
    if (comm_coordinator_start(k->c, &err) != COORD_OK) {
        fail_msg("start: %s: %s", err.text, err.cause);
    }
}

coord_status cluster_close(cluster *k, coord_error *err)
{
    coord_status rc = comm_coordinator_close(k->c, err);
    k->closed = rc == COORD_OK;
    return rc;
}

void cluster_done(cluster *k)
{
    coord_error err = {0};
    for (int i = 0; i < k->worker_count; i++) {
        k->workers[i].stuck = false;
    }
    if (k->c != NULL) {
        if (cluster_close(k, &err) != COORD_OK) {
            fail_msg("close: %s", err.text);
        }
        comm_coordinator_destroy(k->c);
    }
    assert_int_equal(coord_sim_run_for(k->sim, 1000, NULL), COORD_OK);
    assert_int_equal(k->overlaps, 0);
    assert_int_equal(k->after_close, 0);
    for (int i = 0; i < k->worker_count; i++) {
        cluster_worker *w = &k->workers[i];
        if (w->loop != NULL) { /* what it has begun needs time to end */
            coord_sim_pause(k->sim, w->loop, false);
        }
        take_down(w);
    }
    assert_int_equal(coord_sim_run_for(k->sim, 60000, NULL), COORD_OK);
    coord_loop_destroy(k->loop);
    coord_sim_destroy(k->sim);
    heap_expect_nothing_left("a cluster");
}

cluster_worker *cluster_find(cluster *k, const char *id)
{
    for (int i = 0; i < k->worker_count; i++) {
        if (strcmp(k->workers[i].id, id) == 0) {
            return &k->workers[i];
        }
    }
    fail_msg("no worker %s", id);
    return NULL;
}

void cluster_set_foreign(cluster *k, const char *id)
{
    cluster_worker *w = cluster_find(k, id);
    w->foreign = true;
    coord_sim_set_foreign(k->sim, w->loop, true);
}

void cluster_crash(cluster *k, const char *id)
{
    cluster_worker *w = cluster_find(k, id);
    coord_sim_crash(k->sim, w->loop);
    take_down(w);
}

void cluster_vacate(cluster *k, const char *id)
{
    vacate(cluster_find(k, id));
    cluster_run(k, 1);
}

void cluster_revive(cluster *k, const char *id)
{
    bring_up(k, cluster_find(k, id));
}

void cluster_forget(cluster *k, const char *id)
{
    cluster_worker *w = cluster_find(k, id);
    assert_null(w->loop);
    *w = (cluster_worker){.cluster = k, .stranger = true};
}

void cluster_crash_coordinator(cluster *k)
{
    coord_sim_crash(k->sim, k->loop);
    comm_coordinator_destroy(k->c);
    coord_loop_destroy(k->loop);
    k->c = NULL;
    k->loop = NULL;
    k->life++;
    memset(k->busy, 0, sizeof k->busy);
}

void cluster_restart(cluster *k, const char *more)
{
    assert_int_equal(coord_sim_loop(k->sim, "10.0.0.1", &k->loop, NULL), COORD_OK);
    k->closed = false;
    cluster_start(k, more);
}

/* ---- looking ---- */

static void check_pool(cluster *k, const char *status, coord_role role)
{
    char pattern[32];
    unsigned long n[4] = {0};
    size_t free_workers = 0;
    size_t assigned = 0;
    (void)snprintf(pattern, sizeof pattern, "\"%s\": {", coord_role_str(role));
    const char *at = strstr(strstr(status, "\"pools\""), pattern);
    assert_non_null(at);
    int got = sscanf(strchr(at, '{'),
                     "{\"connected\": %lu, \"free\": %lu, \"assigned\": %lu, "
                     "\"quarantined\": %lu}",
                     &n[0], &n[1], &n[2], &n[3]);
    assert_int_equal(got, 4);
    assert_int_equal(n[0], n[1] + n[2] + n[3]);
    if (k->c->resources != NULL) {
        coord_resource_manager_count(k->c->resources, role, &free_workers, &assigned);
        assert_int_equal(free_workers, n[1]);
        assert_int_equal(assigned, n[2]);
    }
}

/* The coordinator's own numbers, which it keeps so as not to count again and again. */
static void check_numbers(const CommCoordinator *c, coord_role role)
{
    size_t ready = 0;
    size_t present = 0;
    size_t at = 0;
    for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
         m = coordi_map_next(&c->members[role], &at)) {
        ready += coordi_member_is_ready(m) && !m->leaving;
        present += m->state != COORDI_MEMBER_GONE;
    }
    assert_int_equal(c->ready[role], ready);
    assert_int_equal(c->present[role], present);
}

void cluster_check(cluster *k)
{
    check_numbers(k->c, COORD_COLLECTOR);
    check_numbers(k->c, COORD_LEARNER);
    char *status = NULL;
    assert_int_equal(comm_coordinator_status(k->c, &status, NULL), COORD_OK);
    check_pool(k, status, COORD_COLLECTOR);
    check_pool(k, status, COORD_LEARNER);
    coord_free(status);
}

const char *cluster_task_state(cluster *k, const char *task_id)
{
    const coordi_run *run = coordi_map_get(&k->c->runs, task_id);
    return run == NULL ? "" : coordi_state_str(run->state);
}

const char *cluster_worker_state(cluster *k, const char *id)
{
    for (int role = 0; role < COORDI_ROLES; role++) {
        const coordi_member *m = coordi_map_get(&k->c->members[role], id);
        if (m != NULL) {
            return coordi_member_state_str(m->state);
        }
    }
    return "";
}

typedef struct awaited_state {
    cluster *k;
    const char *id;
    const char *state;
    const char *(*look)(cluster *k, const char *id);
} awaited_state;

static bool is_in_state(void *user)
{
    awaited_state *a = user;
    return strcmp(a->look(a->k, a->id), a->state) == 0;
}

bool cluster_await_task(cluster *k, const char *task_id, const char *state,
                        int64_t limit_ms)
{
    awaited_state a = {k, task_id, state, cluster_task_state};
    return coord_sim_run_until(k->sim, limit_ms, is_in_state, &a, NULL) == COORD_OK;
}

bool cluster_await_worker(cluster *k, const char *id, const char *state, int64_t limit_ms)
{
    awaited_state a = {k, id, state, cluster_worker_state};
    return coord_sim_run_until(k->sim, limit_ms, is_in_state, &a, NULL) == COORD_OK;
}

void cluster_run(cluster *k, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(k->sim, ms, NULL), COORD_OK);
}

int cluster_ends(const cluster *k, const char *task_id)
{
    return cluster_count(k, "finish", task_id) + cluster_count(k, "fail", task_id);
}

coord_text cluster_task(const char *task_id)
{
    static char text[128];
    (void)snprintf(text, sizeof text, "{\"task_id\": \"%s\", \"buffer_id\": \"b\"}",
                   task_id);
    return coord_text_of(text);
}

void cluster_post(cluster *k, coord_role role, const char *task_id)
{
    coord_error err = {0};
    coord_text text = cluster_task(task_id);
    coord_status rc = role == COORD_COLLECTOR
                          ? comm_coordinator_post_collector_task(k->c, text, &err)
                          : comm_coordinator_post_learner_task(k->c, text, &err);
    if (rc != COORD_OK) {
        fail_msg("post %s: %s", task_id, err.text);
    }
}

static bool matches(const cluster_event *e, const char *name, const char *task_id)
{
    return (name == NULL || strcmp(e->name, name) == 0) &&
           (task_id == NULL || strcmp(e->task, task_id) == 0);
}

int cluster_count(const cluster *k, const char *name, const char *task_id)
{
    int count = 0;
    for (int i = 0; i < k->event_count; i++) {
        count += matches(&k->events[i], name, task_id);
    }
    return count;
}

const cluster_event *cluster_last(const cluster *k, const char *name, const char *task_id)
{
    for (int i = k->event_count - 1; i >= 0; i--) {
        if (matches(&k->events[i], name, task_id)) {
            return &k->events[i];
        }
    }
    fail_msg("no event %s of %s", name, task_id);
    return NULL;
}

typedef struct awaited {
    cluster *k;
    const char *name;
    const char *task_id;
    int times;
} awaited;

static bool seen(void *user)
{
    awaited *a = user;
    return cluster_count(a->k, a->name, a->task_id) >= a->times;
}

bool cluster_await(cluster *k, const char *name, const char *task_id, int times,
                   int64_t limit_ms)
{
    awaited a = {k, name, task_id, times};
    return coord_sim_run_until(k->sim, limit_ms, seen, &a, NULL) == COORD_OK;
}

const char *cluster_story(const cluster *k, const char *task_id)
{
    static char story[4096];
    size_t at = 0;
    story[0] = '\0';
    for (int i = 0; i < k->event_count; i++) {
        if (matches(&k->events[i], NULL, task_id) && at < sizeof story - 32) {
            at += (size_t)snprintf(story + at, sizeof story - at, "%s%s",
                                   at == 0 ? "" : " ", k->events[i].name);
        }
    }
    return story;
}
