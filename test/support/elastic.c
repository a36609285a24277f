#include "support/elastic.h"

#include "coordinator/coordinator.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEP_MS = 100, PORT = 22270, SETTLE_MS = 600000 };

uint64_t elastic_draw(elastic *e, uint64_t count)
{
    e->chance ^= e->chance << 13;
    e->chance ^= e->chance >> 7;
    e->chance ^= e->chance << 17;
    return (e->chance >> 11) % count;
}

static int64_t now(const elastic *e)
{
    return coord_sim_now_ms(e->p.k.sim);
}

static void complain(elastic *e, const char *format, ...) COORD_PRINTF(2, 3);

static void complain(elastic *e, const char *format, ...)
{
    va_list args;
    if (e->complaint[0] == '\0') {
        va_start(args, format);
        (void)vsnprintf(e->complaint, sizeof e->complaint, format, args);
        va_end(args);
    }
}

/* ---- tasks ---- */

static coord_role role_of_task(int n)
{
    return n % 4 == 3 ? COORD_LEARNER : COORD_COLLECTOR;
}

/* In callbacks, too. */
static void post(elastic *e, coord_role role)
{
    char id[16];
    char text[64];
    coord_error err = {0};
    while (e->task_count < ELASTIC_TASKS_MAX && role_of_task(e->task_count) != role) {
        e->task_count++;
    }
    if (e->task_count == ELASTIC_TASKS_MAX) {
        complain(e, "too many tasks");
        return;
    }
    elastic_task *t = &e->tasks[e->task_count];
    (void)snprintf(id, sizeof id, "t%d", e->task_count++);
    (void)snprintf(text, sizeof text, "{\"task_id\": \"%s\", \"buffer_id\": \"b\"}", id);
    t->accepted = true; /* its first callback may come at once */
    e->open[role]++;
    coord_status rc =
        role == COORD_COLLECTOR
            ? comm_coordinator_post_collector_task(e->p.k.c, coord_text_of(text), &err)
            : comm_coordinator_post_learner_task(e->p.k.c, coord_text_of(text), &err);
    if (rc != COORD_OK) {
        t->unsure = true;
        e->open[role]--;
    }
    if (rc != COORD_OK && !e->dying) {
        complain(e, "post of %s: %s", id, err.text);
    }
}

static void keep_load(elastic *e)
{
    for (int role = 0; role < 2; role++) {
        while (e->open[role] < e->depth[role] && e->complaint[0] == '\0') {
            post(e, (coord_role)role);
        }
    }
}

static void note_end(elastic *e, int n, const cluster_event *ev)
{
    elastic_task *t = &e->tasks[n];
    if (t->ends > 0 && t->life == ev->life) {
        complain(e, "task t%d has ended twice", n);
    }
    if (t->ends++ == 0) {
        e->open[role_of_task(n)] -= !t->unsure;
        e->done++;
    }
    t->life = ev->life;
    if (strcmp(ev->name, "fail") == 0) {
        if (e->fails++ == 0) {
            (void)snprintf(e->failure, sizeof e->failure, "at %lld ms task t%d: %s",
                           (long long)ev->at_ms, n, ev->detail);
        }
    }
}

static void on_note(cluster *k, const cluster_event *ev, void *user)
{
    elastic *e = user;
    const bool comes = strcmp(ev->name, "increase") == 0;
    if (comes || strcmp(ev->name, "decrease") == 0) {
        e->told[strcmp(ev->task, "learner") == 0][!comes] += ev->life == k->life;
        return;
    }
    if (strcmp(ev->name, "discovery") == 0) {
        return;
    }
    const int n = atoi(ev->task + 1);
    if (ev->task[0] != 't' || n >= ELASTIC_TASKS_MAX || !e->tasks[n].accepted) {
        complain(e, "%s of %s, which nobody sent", ev->name, ev->task);
    } else if (strcmp(ev->name, "finish") == 0 || strcmp(ev->name, "fail") == 0) {
        note_end(e, n, ev);
    } else if (e->tasks[n].ends > 0 && e->tasks[n].life == ev->life) {
        complain(e, "%s of %s, which has ended", ev->name, ev->task);
    }
}

/* As hosts of DI-engine do. */
static void on_event(cluster *k, const char *name, const char *task_id, void *user)
{
    elastic *e = user;
    (void)k;
    if (e->eager && !e->dying && strcmp(name, "increase") == 0 &&
        strcmp(task_id, "collector") == 0) {
        post(e, COORD_COLLECTOR);
    }
}

/* ---- pods ---- */

static bool is_v2(elastic *e)
{
    return fake_operator_api(e->p.fake) == FAKE_V2;
}

static elastic_pod *find_pod(elastic *e, const char *id)
{
    for (int i = 0; i < e->pod_count; i++) {
        if (strcmp(e->pods[i].id, id) == 0) {
            return &e->pods[i];
        }
    }
    assert_true(e->pod_count < ELASTIC_PODS_MAX);
    elastic_pod *pod = &e->pods[e->pod_count++];
    (void)snprintf(pod->id, sizeof pod->id, "%s", id);
    pod->up_ms = now(e) + (int64_t)elastic_draw(e, (uint64_t)e->boot_ms + 1);
    pod->broken = e->break_in > 0 && elastic_draw(e, (uint64_t)e->break_in) == 0;
    return pod;
}

static cluster_worker *find_process(elastic *e, const elastic_pod *pod)
{
    for (int i = 0; i < e->p.k.worker_count; i++) {
        if (strcmp(e->p.k.workers[i].id, pod->id) == 0) {
            return &e->p.k.workers[i];
        }
    }
    return NULL;
}

static void start_process(elastic *e, const elastic_pod *pod)
{
    char host[sizeof pod->id];
    const char *colon = strrchr(pod->id, ':');
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - pod->id), pod->id);
    cluster_worker *w = cluster_add(&e->p.k, pod->role, pod->id, host, atoi(colon + 1));
    w->work_ms = 50 + (int64_t)elastic_draw(e, (uint64_t)e->work_ms);
    w->resource_ms = (int64_t)elastic_draw(e, 3) * 20;
    if (elastic_draw(e, 3) == 0) {
        cluster_set_foreign(&e->p.k, pod->id);
    }
}

static void end_process(elastic *e, const cluster_worker *w)
{
    char id[sizeof w->id];
    memcpy(id, w->id, sizeof id);
    if (w->loop != NULL) {
        cluster_crash(&e->p.k, id);
    }
    cluster_forget(&e->p.k, id);
}

static void see_listed(elastic *e, fake_list list)
{
    const char *id;
    for (size_t n = 0; (id = fake_operator_id(e->p.fake, list, n)) != NULL; n++) {
        elastic_pod *pod = find_pod(e, id);
        pod->role = list == FAKE_LEARNERS || (list == FAKE_NODES && n == 0)
                        ? COORD_LEARNER
                        : COORD_COLLECTOR;
        pod->listed = true;
    }
}

static void move_pod(elastic *e, elastic_pod *pod, bool was_listed)
{
    cluster_worker *w = find_process(e, pod);
    if (pod->listed && w == NULL && !pod->broken && now(e) >= pod->up_ms) {
        start_process(e, pod);
    }
    if (!pod->listed && was_listed) {
        pod->down_ms = e->kill_ms < 0
                           ? INT64_MAX
                           : now(e) + (int64_t)elastic_draw(e, (uint64_t)e->kill_ms + 1);
    }
    if (!pod->listed && w != NULL && now(e) >= pod->down_ms) {
        end_process(e, w);
    }
}

static void move_pods(elastic *e)
{
    bool was_listed[ELASTIC_PODS_MAX];
    for (int i = 0; i < e->pod_count; i++) {
        was_listed[i] = e->pods[i].listed;
        e->pods[i].listed = false;
    }
    const int known = e->pod_count;
    if (is_v2(e)) {
        see_listed(e, FAKE_NODES);
    } else {
        see_listed(e, FAKE_COLLECTORS);
        see_listed(e, FAKE_LEARNERS);
    }
    for (int i = 0; i < e->pod_count; i++) {
        move_pod(e, &e->pods[i], i < known && was_listed[i]);
    }
}

void elastic_crash(elastic *e, const char *id, int64_t back_after_ms)
{
    elastic_pod *pod = find_pod(e, id);
    const cluster_worker *w = find_process(e, pod);
    if (w != NULL) {
        end_process(e, w);
    }
    pod->up_ms = now(e) + back_after_ms;
}

void elastic_pause(elastic *e, const char *id, bool paused)
{
    elastic_pod *pod = find_pod(e, id);
    const cluster_worker *w = find_process(e, pod);
    if (w != NULL && w->loop != NULL) {
        coord_sim_pause(e->p.k.sim, w->loop, paused);
    }
}

void elastic_mend(elastic *e)
{
    e->break_in = 0;
    for (int i = 0; i < e->pod_count; i++) {
        elastic_pause(e, e->pods[i].id, false);
    }
}

/* ---- what the host does ---- */

void elastic_ban(elastic *e, const char *id, comm_coordinator_removal how)
{
    elastic_pod *pod = find_pod(e, id);
    coord_error err = {0};
    const coord_status rc =
        comm_coordinator_remove_worker(e->p.k.c, pod->role, id, how, &err);
    if (rc != COORD_OK && rc != COORD_ERR_NOT_FOUND) {
        complain(e, "remove_worker: %s", err.text);
    }
    pod->banned |= rc == COORD_OK;
}

void elastic_host(elastic *e, bool has)
{
    coord_error err = {0};
    bool exists = false;
    for (int i = 0; i < e->p.k.worker_count; i++) {
        exists = exists || strcmp(e->p.k.workers[i].id, "h0") == 0;
    }
    if (!exists) {
        cluster_add(&e->p.k, COORD_COLLECTOR, "h0", "10.0.9.1", PORT)->work_ms =
            e->work_ms;
    }
    const coord_status rc =
        has ? comm_coordinator_add_worker(e->p.k.c, COORD_COLLECTOR, "h0", "10.0.9.1",
                                          PORT, &err)
            : comm_coordinator_remove_worker(e->p.k.c, COORD_COLLECTOR, "h0",
                                             elastic_draw(e, 2) == 0
                                                 ? COMM_COORDINATOR_DRAIN
                                                 : COMM_COORDINATOR_DROP,
                                             &err);
    if (rc != COORD_OK) {
        complain(e, "%s of h0: %s", has ? "add" : "remove", err.text);
    }
    e->host_has = has;
}

/* ---- how many there are ---- */

int elastic_count(elastic *e, coord_role role)
{
    if (!is_v2(e)) {
        return (int)fake_operator_count(
            e->p.fake, role == COORD_LEARNER ? FAKE_LEARNERS : FAKE_COLLECTORS);
    }
    const int nodes = (int)fake_operator_count(e->p.fake, FAKE_NODES);
    return role == COORD_LEARNER ? nodes > 0 : nodes > 0 ? nodes - 1 : 0;
}

const char *elastic_id(elastic *e, coord_role role, int n)
{
    const fake_list list = is_v2(e)                ? FAKE_NODES
                           : role == COORD_LEARNER ? FAKE_LEARNERS
                                                   : FAKE_COLLECTORS;
    const bool after_learner = is_v2(e) && role == COORD_COLLECTOR;
    return fake_operator_id(e->p.fake, list, (size_t)n + after_learner);
}

/* A start that comes may ask for some again. */
static void allow(elastic *e, fake_list list, size_t count)
{
    const size_t wanted = e->restarts ? e->wanted[list] : 0;
    e->most[list] = count > wanted ? count : wanted;
}

void elastic_scale(elastic *e, int collectors, int learners)
{
    const size_t c = (size_t)collectors;
    const size_t l = (size_t)learners;
    if (is_v2(e)) {
        fake_operator_scale(e->p.fake, FAKE_NODES, c + l);
        allow(e, FAKE_NODES, c + l);
        return;
    }
    fake_operator_scale(e->p.fake, FAKE_COLLECTORS, c);
    fake_operator_scale(e->p.fake, FAKE_LEARNERS, l);
    allow(e, FAKE_COLLECTORS, c);
    allow(e, FAKE_LEARNERS, l);
}

/* ---- what has to hold ---- */

static bool is_there(const coordi_member *m)
{
    return !m->removed && m->origin != COORDI_ORIGIN_CONFIG && m->decrease != NULL &&
           m->increase == NULL;
}

/* Workers that came at runtime, and of which the host has been told. */
static int count_told(const elastic *e, coord_role role)
{
    int count = 0;
    size_t at = 0;
    for (const coordi_member *m = coordi_map_next(&e->p.k.c->members[role], &at);
         m != NULL; m = coordi_map_next(&e->p.k.c->members[role], &at)) {
        count += is_there(m);
    }
    return count;
}

static void check_told(elastic *e)
{
    for (int role = 0; role < 2; role++) {
        const int gain = e->told[role][0] - e->told[role][1];
        const int there = count_told(e, (coord_role)role);
        if (gain < 0 || (e->p.k.c->host_calls == 0 && gain != there)) {
            complain(e, "%s: %d increases, %d decreases, and %d are there",
                     coord_role_str((coord_role)role), e->told[role][0], e->told[role][1],
                     there);
        }
    }
}

static void check_configured(elastic *e)
{
    static const char *const IDS[] = {"c0", "l0"};
    for (int role = 0; e->configured && role < 2; role++) {
        const coordi_member *m = coordi_map_get(&e->p.k.c->members[role], IDS[role]);
        if (m == NULL || m->origin != COORDI_ORIGIN_CONFIG || m->removed || m->leaving ||
            strncmp(m->worker.host, "10.0.", 5) != 0) {
            complain(e, "%s of the configuration was touched", IDS[role]);
        }
    }
}

static void check_pods(elastic *e)
{
    for (int list = 0; list < 3; list++) {
        const size_t count = fake_operator_count(e->p.fake, (fake_list)list);
        if (count > e->most[list]) {
            complain(e, "%zu pods of list %d, and %zu are right", count, list,
                     e->most[list]);
        }
    }
    /* As many as were asked for, and another for each that was reported. */
    const size_t created = fake_operator_created(e->p.fake);
    const size_t ended = fake_operator_deleted(e->p.fake);
    if (!e->restarts && created > e->wanted[FAKE_NODES] + ended) {
        complain(e, "%zu pods were made for %zu and %zu reported ones", created,
                 e->wanted[FAKE_NODES], ended);
    }
    if (fake_operator_requests(e->p.fake, FAKE_DELETE) > 0) {
        complain(e, "pods were deleted");
    }
}

void elastic_check(elastic *e)
{
    if (e->p.k.c != NULL) {
        cluster_check(&e->p.k);
        check_told(e);
        check_configured(e);
    }
    check_pods(e);
    if (e->complaint[0] != '\0') {
        fail_msg("seed %llu at %lld ms: %s", (unsigned long long)e->seed,
                 (long long)now(e), e->complaint);
    }
}

int elastic_gain(const elastic *e)
{
    return e->told[0][0] + e->told[1][0] - e->told[0][1] - e->told[1][1];
}

/* ---- time ---- */

void elastic_run(elastic *e, int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += STEP_MS) {
        move_pods(e);
        keep_load(e);
        cluster_run(&e->p.k, STEP_MS);
        elastic_check(e);
    }
}

/* Those that were listed and could run work here, and nobody else. */
static bool all_are_there(elastic *e)
{
    int listed = 2 * e->configured + e->host_has + e->others;
    for (int i = 0; i < e->pod_count; i++) {
        const elastic_pod *pod = &e->pods[i];
        const char *state = cluster_worker_state(&e->p.k, pod->id);
        const bool ready = strcmp(state, "free") == 0 || strcmp(state, "working") == 0 ||
                           strcmp(state, "recovering") == 0;
        const bool belongs = pod->listed && !pod->banned;
        if (belongs ? !ready : state[0] != '\0') {
            return false;
        }
        listed += belongs;
    }
    return e->p.k.c->host_calls == 0 &&
           e->p.k.c->members[0].count + e->p.k.c->members[1].count == (size_t)listed;
}

void elastic_await_all(elastic *e, int64_t limit_ms)
{
    for (int64_t passed = 0; passed < limit_ms; passed += STEP_MS) {
        elastic_run(e, STEP_MS);
        if (all_are_there(e)) {
            return;
        }
    }
    for (int i = 0; i < e->pod_count; i++) {
        (void)fprintf(stderr, "%s%s%s: %s\n", e->pods[i].id,
                      e->pods[i].listed ? " listed" : "",
                      e->pods[i].broken   ? " broken"
                      : e->pods[i].banned ? " banned"
                                          : "",
                      cluster_worker_state(&e->p.k, e->pods[i].id));
    }
    fail_msg("seed %llu: not all that are listed are there: %s",
             (unsigned long long)e->seed, pods_status(&e->p));
}

/* ---- beginning and end ---- */

static void add_configured(elastic *e, coord_role role, const char *id, const char *host)
{
    cluster_worker *w = cluster_add(&e->p.k, role, id, host, PORT);
    w->stranger = false;
    w->work_ms = 50 + (int64_t)elastic_draw(e, (uint64_t)e->work_ms);
}

static void set_weather(elastic *e)
{
    coord_sim_link link;
    coord_sim_link_init(e->p.k.sim, &link, sizeof link);
    link.latency_max_ms =
        1 + (int64_t)elastic_draw(e, elastic_draw(e, 4) == 0 ? 300 : 40);
    cluster_link(&e->p.k, &link);
}

void elastic_open(elastic *e, uint64_t seed, int api)
{
    memset(e, 0, offsetof(elastic, p));
    e->seed = seed;
    e->chance = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    pods_open(&e->p, seed, api);
    set_weather(e);
    e->boot_ms = 1500;
    e->kill_ms = (int64_t)elastic_draw(e, 3) * 1500;
    e->work_ms = 600;
    e->eager = true;
    e->depth[COORD_COLLECTOR] = 3;
    e->depth[COORD_LEARNER] = 1;
    e->configured = elastic_draw(e, 2) == 0;
    if (e->configured) {
        add_configured(e, COORD_COLLECTOR, "c0", "10.0.1.1");
        add_configured(e, COORD_LEARNER, "l0", "10.0.2.1");
    }
    fake_operator_set_lag(e->p.fake, (int64_t)elastic_draw(e, 4) * 500);
    fake_operator_set_delay(e->p.fake, (int64_t)elastic_draw(e, 3) * 50);
    e->p.k.data_in_buffer = 1;
    e->p.k.callback_ms = (int64_t)elastic_draw(e, 3) * 20;
    e->p.k.on_note = on_note;
    e->p.k.on_note_user = e;
    e->p.k.on_event = on_event;
    e->p.k.on_event_user = e;
}

static bool await_start(elastic *e)
{
    e->p.start_rc = COORD_AGAIN;
    pods_start(&e->p, "", "");
    for (int i = 0; i < 6000 && e->p.start_rc == COORD_AGAIN; i++) {
        move_pods(e);
        cluster_run(&e->p.k, STEP_MS);
    }
    const coord_status rc = pods_started(&e->p);
    if (rc != COORD_OK && !(rc == COORD_ERR_TIMEOUT && e->restarts)) {
        fail_msg("seed %llu: start: %s: %s", (unsigned long long)e->seed,
                 e->p.start_err.text, e->p.start_err.cause);
    }
    return rc == COORD_OK;
}

static void create(elastic *e, int collectors, int learners, const char *ask,
                   const char *more)
{
    char all[1024];
    (void)snprintf(all, sizeof all,
                   "\"init_replicas_request\": {\"collectors\": {\"replicas\": %d}, "
                   "\"learners\": {\"replicas\": %d}}, %s",
                   collectors, learners, ask);
    e->wanted[FAKE_COLLECTORS] = (size_t)collectors;
    e->wanted[FAKE_LEARNERS] = (size_t)learners;
    e->wanted[FAKE_NODES] = (size_t)(collectors + learners);
    memcpy(e->most, e->wanted, sizeof e->most);
    cluster_create(&e->p.k, pods_config(&e->p, all, more));
}

void elastic_begin(elastic *e, int collectors, int learners, const char *ask,
                   const char *more)
{
    create(e, collectors, learners, ask, more);
    assert_true(await_start(e));
    elastic_check(e);
}

void elastic_begin_and_die(elastic *e, int collectors, int learners, const char *ask,
                           const char *more, int64_t after_ms)
{
    create(e, collectors, learners, ask, more);
    pods_start(&e->p, "", "");
    while (fake_operator_requests(e->p.fake, FAKE_POST) == 0) {
        cluster_run(&e->p.k, 10);
    }
    cluster_run(&e->p.k, after_ms);
    elastic_die(e);
    (void)pods_started(&e->p);
}

void elastic_die(elastic *e)
{
    e->dying = true;
    cluster_crash_coordinator(&e->p.k);
    memset(e->told, 0, sizeof e->told);
    for (int i = 0; i < e->pod_count; i++) {
        e->pods[i].banned = false; /* nobody remembers that */
    }
}

bool elastic_come_back(elastic *e, const char *config)
{
    if (e->p.k.c == NULL) {
        assert_int_equal(coord_sim_loop(e->p.k.sim, "10.0.0.1", &e->p.k.loop, NULL),
                         COORD_OK);
        e->p.k.closed = false;
        cluster_create(&e->p.k, config);
    }
    const bool started = await_start(e);
    e->dying = !started;
    if (started && e->host_has) {
        elastic_host(e, true);
    }
    return started;
}

static int count_wanted(const elastic *e)
{
    int count = e->host_has + e->others;
    for (int i = 0; i < e->pod_count; i++) {
        count += e->pods[i].listed && !e->pods[i].banned;
    }
    return count;
}

static void check_tasks(elastic *e, bool may_fail)
{
    for (int i = 0; i < e->task_count; i++) {
        const elastic_task *t = &e->tasks[i];
        if (t->accepted && !t->unsure && t->ends == 0) {
            fail_msg("seed %llu: task t%d is lost", (unsigned long long)e->seed, i);
        }
    }
    if (e->fails > 0 && !may_fail) {
        fail_msg("seed %llu: %d tasks failed, first %s", (unsigned long long)e->seed,
                 e->fails, e->failure);
    }
}

void elastic_end(elastic *e, bool may_fail)
{
    e->depth[0] = 0;
    e->depth[1] = 0;
    elastic_await_all(e, SETTLE_MS);
    for (int i = 0; i < SETTLE_MS / STEP_MS && e->open[0] + e->open[1] > 0; i++) {
        elastic_run(e, STEP_MS);
    }
    check_tasks(e, may_fail);
    elastic_run(e, 5000);
    assert_int_equal(comm_coordinator_wait(e->p.k.c, SETTLE_MS, NULL), COORD_OK);
    elastic_await_all(e, 5000); /* a callback may be under way */
    assert_int_equal(elastic_gain(e), count_wanted(e));
    if (!e->restarts) {
        assert_int_equal(fake_operator_created(e->p.fake),
                         e->wanted[FAKE_NODES] + fake_operator_deleted(e->p.fake));
    }
    pods_close(&e->p);
    if (e->complaint[0] != '\0') {
        fail_msg("seed %llu: %s", (unsigned long long)e->seed, e->complaint);
    }
}
