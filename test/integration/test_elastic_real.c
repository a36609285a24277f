/* Elastic membership over sockets: an operator server whose pods are real processes, that
 * are scaled, replaced, killed and not listed for a while, under a steady load of tasks.
 * Each has an address of its own, 127.x.y.z, where a port is free again once it was. */
#include "coord.h"
#include "support/fake_operator.h"
#include "support/processes.h"
#include "support/simple.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 30000, PODS_MAX = 12, TASKS_MAX = 20000, LEARNER_EVERY = 5 };

typedef struct pod {
    process *process;
    char id[64]; /* "127.1.2.3:40000" */
} pod;

typedef struct rig {
    fake_operator *fake;
    int api;
    pod pods[PODS_MAX];
    int pod_count;
    CommCoordinator *c;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool loaded; /* each task that ends is followed by another */
    int posted;
    int ended;
    int failed;
    int came;
    int went;
    unsigned char ends[TASKS_MAX];
    char wrong[512]; /* the first */
} rig;

/* ---- what the host is told ---- */

static void complain(rig *r, const char *what, const char *who, const char *why)
{
    if (r->wrong[0] == '\0') {
        (void)snprintf(r->wrong, sizeof r->wrong, "%s %s: %.400s", what, who, why);
    }
}

static void post(rig *r)
{
    char task[32];
    coord_error err = {0};
    (void)pthread_mutex_lock(&r->lock);
    const int n = r->loaded && r->posted < TASKS_MAX ? r->posted++ : -1;
    (void)pthread_mutex_unlock(&r->lock);
    if (n < 0) {
        return;
    }
    (void)snprintf(task, sizeof task, "{\"task_id\": \"t%d\"}", n);
    const coord_status rc =
        n % LEARNER_EVERY == 0
            ? comm_coordinator_post_learner_task(r->c, coord_text_of(task), &err)
            : comm_coordinator_post_collector_task(r->c, coord_text_of(task), &err);
    if (rc != COORD_OK) {
        (void)pthread_mutex_lock(&r->lock);
        complain(r, "post", task, err.text);
        (void)pthread_mutex_unlock(&r->lock);
    }
}

static void note_end(rig *r, const char *task_id, const coord_error *why)
{
    const int n = atoi(task_id + 1);
    (void)pthread_mutex_lock(&r->lock);
    if (n >= r->posted || r->ends[n]++ > 0) {
        complain(r, "not one end", task_id, "");
    }
    if (why != NULL) {
        r->failed++;
        complain(r, "failed", task_id, why->cause[0] == '\0' ? why->text : why->cause);
    }
    r->ended++;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    post(r);
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    (void)c;
    (void)result;
    note_end(user, task_id, NULL);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    (void)c;
    note_end(user, task_id, why);
}

static void note_change(rig *r, int *count)
{
    (void)pthread_mutex_lock(&r->lock);
    (*count)++;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

static void on_increase_collector(CommCoordinator *c, void *user)
{
    rig *r = user;
    (void)c;
    note_change(r, &r->came);
    post(r); /* as hosts of DI-engine do */
}

static void on_increase_learner(CommCoordinator *c, void *user)
{
    rig *r = user;
    (void)c;
    note_change(r, &r->came);
}

static void on_decrease(CommCoordinator *c, void *user)
{
    rig *r = user;
    (void)c;
    note_change(r, &r->went);
}

static coord_status on_get_data(CommCoordinator *c, const char *task_id,
                                const char *buffer_id, int64_t batch_size,
                                int64_t cur_learner_iter, coord_out *out, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)batch_size;
    (void)cur_learner_iter;
    (void)user;
    return coord_out_printf(out, NULL, "[1]");
}

static void on_info(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    coord_text info, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)info;
    (void)user;
}

/* ---- looking ---- */

/* "free + assigned + quarantined = connected", of each role. */
static void check_pools(rig *r)
{
    static const char *const POOLS[] = {"\"collector\": {\"connected\"",
                                        "\"learner\": {\"connected\""};
    char *status = NULL;
    unsigned long n[4];
    assert_int_equal(comm_coordinator_status(r->c, &status, NULL), COORD_OK);
    for (int role = 0; role < 2; role++) {
        const char *at = strstr(status, POOLS[role]);
        assert_non_null(at);
        assert_int_equal(sscanf(strchr(at, '{'),
                                "{\"connected\": %lu, \"free\": %lu, \"assigned\": %lu, "
                                "\"quarantined\": %lu}",
                                &n[0], &n[1], &n[2], &n[3]),
                         4);
        assert_int_equal(n[0], n[1] + n[2] + n[3]);
    }
    coord_free(status);
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits for a change, or a moment. */
static void await_change(rig *r)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&r->lock);
    (void)pthread_cond_timedwait(&r->changed, &r->lock, &until);
    (void)pthread_mutex_unlock(&r->lock);
}

/* Until *count is at least that; looks after the pools meanwhile. */
static void await(rig *r, const int *count, int least, const char *what)
{
    const int64_t deadline = now_ms() + WAIT_MS;
    for (;;) {
        (void)pthread_mutex_lock(&r->lock);
        const int got = *count;
        char wrong[sizeof r->wrong];
        memcpy(wrong, r->wrong, sizeof wrong);
        (void)pthread_mutex_unlock(&r->lock);
        check_pools(r);
        if (wrong[0] != '\0') {
            fail_msg("%s", wrong);
        }
        if (got >= least) {
            return;
        }
        if (now_ms() > deadline) {
            char *status = NULL;
            assert_int_equal(comm_coordinator_status(r->c, &status, NULL), COORD_OK);
            fail_msg("%d of %d %s: %s", got, least, what, status);
        }
        await_change(r);
    }
}

static int read_count(rig *r, const int *count)
{
    (void)pthread_mutex_lock(&r->lock);
    const int got = *count;
    (void)pthread_mutex_unlock(&r->lock);
    return got;
}

/* So many more tasks end. */
static void await_work(rig *r, int tasks)
{
    await(r, &r->ended, read_count(r, &r->ended) + tasks, "tasks");
}

static void await_members(rig *r, int came, int went)
{
    await(r, &r->came, came, "increases");
    await(r, &r->went, went, "decreases");
    assert_int_equal(read_count(r, &r->came), came);
    assert_int_equal(read_count(r, &r->went), went);
}

/* So many more lists were sent. */
static void await_lists(rig *r, size_t lists)
{
    const int64_t deadline = now_ms() + WAIT_MS;
    const size_t until = fake_operator_requests(r->fake, FAKE_GET) + lists;
    while (fake_operator_requests(r->fake, FAKE_GET) < until) {
        assert_true(now_ms() < deadline);
        check_pools(r);
        await_change(r);
    }
}

/* ---- pods ---- */

/* At that port of the n-th address; 0: any. It is waited for in await_process(). */
static void spawn_process(pod *p, coord_role role, int n, int port)
{
    char host[32];
    char number[16];
    const int pid = (int)getpid();
    (void)snprintf(host, sizeof host, "127.%d.%d.%d", 1 + pid / 256 % 254, pid % 256,
                   1 + n);
    (void)snprintf(number, sizeof number, "%d", port);
    const char *args[] = {"--role",
                          role == COORD_LEARNER ? "learner" : "collector",
                          "--host",
                          host,
                          "--port",
                          number,
                          "--samples",
                          "2",
                          "--step-ms",
                          "20",
                          "--heartbeat-ms",
                          "200",
                          "--die-with-parent",
                          NULL};
    p->process = process_start("examples/worker", args);
}

static void await_process(pod *p)
{
    const char *line = process_read_line(p->process, WAIT_MS);
    if (line == NULL || sscanf(line, "listening on %63s", p->id) != 1) {
        fail_msg("worker: %s", process_errors(p->process));
    }
}

/* So many, side by side. Returns the first. */
static pod *make_pods(rig *r, coord_role role, int count)
{
    pod *first = &r->pods[r->pod_count];
    assert_true(r->pod_count + count <= PODS_MAX);
    for (int i = 0; i < count; i++) {
        spawn_process(&first[i], role, r->pod_count++, 0);
    }
    for (int i = 0; i < count; i++) {
        await_process(&first[i]);
    }
    return first;
}

static void kill_pod(const pod *p)
{
    process_signal(p->process, SIGKILL);
    (void)process_wait(p->process, WAIT_MS);
}

/* Another process at the same address. */
static void revive(rig *r, pod *p, coord_role role)
{
    spawn_process(p, role, (int)(p - r->pods), atoi(strchr(p->id, ':') + 1));
    await_process(p);
}

/* Those that the server makes up are there already, in its order. */
static void name_pod(void *arg, fake_list list, unsigned n, char *id, size_t size)
{
    const rig *r = arg;
    (void)list;
    (void)snprintf(id, size, "%s", n < PODS_MAX ? r->pods[n].id : "none:1");
}

static fake_list list_of(const rig *r, coord_role role)
{
    return r->api == FAKE_V2       ? FAKE_NODES
           : role == COORD_LEARNER ? FAKE_LEARNERS
                                   : FAKE_COLLECTORS;
}

static void list_pods(rig *r, coord_role role, int count)
{
    const pod *first = make_pods(r, role, count);
    for (int i = 0; i < count; i++) {
        fake_operator_add(r->fake, list_of(r, role), first[i].id);
    }
}

/* ---- the coordinator ---- */

static void open_rig(rig *r, int api)
{
    memset(r, 0, sizeof *r);
    r->api = api;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->changed, NULL);
    r->fake = fake_operator_on_sockets(&(fake_operator_spec){.api = api});
}

static void start(rig *r, const char *ask)
{
    char config[768];
    coord_error err = {0};
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    (void)snprintf(config, sizeof config,
                   "{\"port\": 0, \"request_retry_wait_s\": 0.1, \"request_retries\": 1, "
                   "\"heartbeat_tolerance_s\": 1.2, \"heartbeat_check_s\": 0.1, "
                   "\"max_reassign\": 10, "
                   "\"operator_server\": {%s\"poll_s\": 0.1, "
                   "\"system_addr\": \"127.0.0.1:%u\", \"namespace\": \"default\", "
                   "\"name\": \"job-coordinator\", \"job_id\": \"default.job\"}}",
                   ask, (unsigned)fake_operator_port(r->fake));
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = simple_on_data;
    cb.deal_with_collector_judge_finish = simple_is_enough;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_learner_get_data = on_get_data;
    cb.deal_with_learner_send_info = on_info;
    cb.deal_with_learner_judge_finish = simple_is_enough;
    cb.deal_with_learner_finish_task = on_finish;
    cb.deal_with_increase_collector = on_increase_collector;
    cb.deal_with_decrease_collector = on_decrease;
    cb.deal_with_increase_learner = on_increase_learner;
    cb.deal_with_decrease_learner = on_decrease;
    cb.deal_with_task_fail = on_fail;
    cb.user = r;
    comm_coordinator_options_init(&o, sizeof o);
    o.config = config;
    o.callbacks = &cb;
    if (comm_coordinator_create(&o, &r->c, &err) != COORD_OK ||
        comm_coordinator_start(r->c, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
}

static void load(rig *r, int tasks)
{
    (void)pthread_mutex_lock(&r->lock);
    r->loaded = true;
    (void)pthread_mutex_unlock(&r->lock);
    for (int i = 0; i < tasks; i++) {
        post(r);
    }
}

static void close_rig(rig *r)
{
    coord_error err = {0};
    (void)pthread_mutex_lock(&r->lock);
    r->loaded = false;
    (void)pthread_mutex_unlock(&r->lock);
    if (comm_coordinator_wait(r->c, WAIT_MS, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
    check_pools(r);
    assert_string_equal(r->wrong, "");
    assert_int_equal(r->failed, 0);
    assert_int_equal(r->ended, r->posted);
    assert_true(r->posted < TASKS_MAX);
    assert_int_equal(comm_coordinator_close(r->c, NULL), COORD_OK);
    comm_coordinator_destroy(r->c);
    processes_end_all();
    fake_operator_stop(r->fake);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
}

static int end_processes(void **state)
{
    (void)state;
    processes_end_all();
    return 0;
}

/* A learner and so many collectors, that work. */
static void begin(rig *r, int api, int collectors)
{
    open_rig(r, api);
    list_pods(r, COORD_LEARNER, 1); /* rank 0 */
    list_pods(r, COORD_COLLECTOR, collectors);
    start(r, "\"learner_target_num\": 1, ");
    await_members(r, 1 + collectors, 0);
    load(r, 5);
    await_work(r, 10);
}

/* ---- tests ---- */

static rig r;

/* In the order in which the server makes them, collectors first. */
static void from_2_to_8_to_1(void **state)
{
    (void)state;
    open_rig(&r, FAKE_V1);
    (void)make_pods(&r, COORD_COLLECTOR, 2);
    (void)make_pods(&r, COORD_LEARNER, 1);
    (void)make_pods(&r, COORD_COLLECTOR, 6);
    fake_operator_set_namer(r.fake, name_pod, &r);
    start(&r, "\"init_replicas_request\": {\"collectors\": {\"replicas\": 2}, "
              "\"learners\": {\"replicas\": 1}}, ");
    await_members(&r, 3, 0);
    load(&r, 8);
    await_work(&r, 10);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 8);
    await_members(&r, 9, 0);
    await_work(&r, 10);
    fake_operator_scale(r.fake, FAKE_COLLECTORS, 1);
    for (int n = 4; n < 9; n++) { /* the list is a moment late */
        kill_pod(&r.pods[n]);
    }
    await_members(&r, 9, 7);
    await_work(&r, 10);
    assert_int_equal(fake_operator_created(r.fake), 3);
    assert_int_equal(fake_operator_requests(r.fake, FAKE_POST), 1);
    close_rig(&r);
}

static void from_2_to_5_to_1_by_rank(void **state)
{
    (void)state;
    begin(&r, FAKE_V2, 2);
    list_pods(&r, COORD_COLLECTOR, 3);
    await_members(&r, 6, 0);
    await_work(&r, 10);
    fake_operator_scale(r.fake, FAKE_NODES, 2);
    kill_pod(&r.pods[5]);
    await_members(&r, 6, 4);
    await_work(&r, 10);
    assert_int_equal(fake_operator_created(r.fake), 0);
    close_rig(&r);
}

/* The n-th pod is killed, and listed with another address. */
static void replace(int n, coord_role role)
{
    pod old = r.pods[n];
    pod *by = &r.pods[n];
    kill_pod(&old);
    if (r.api == FAKE_V2) {
        by = make_pods(&r, role, 1); /* at another address */
    } else {                         /* at another port */
        spawn_process(by, role, n, 0);
        await_process(by);
    }
    fake_operator_replace(r.fake, old.id, by->id);
}

static void pods_come_back_at_another_address(void **state)
{
    (void)state;
    for (int api = FAKE_V1; api <= FAKE_V2; api++) {
        begin(&r, api, 3);
        replace(1, COORD_COLLECTOR);
        await_work(&r, 5);
        replace(0, COORD_LEARNER);
        await_members(&r, 6, 2);
        await_work(&r, 10);
        close_rig(&r);
    }
}

static void another_process_answers_at_the_same_address(void **state)
{
    (void)state;
    begin(&r, FAKE_V1, 3);
    for (int n = 0; n < 2; n++) {
        const coord_role role = n == 0 ? COORD_LEARNER : COORD_COLLECTOR;
        kill_pod(&r.pods[n]);
        revive(&r, &r.pods[n], role);
        await_work(&r, 10);
    }
    await_members(&r, 4, 0);
    close_rig(&r);
}

static void the_server_is_down_for_a_while(void **state)
{
    (void)state;
    begin(&r, FAKE_V1, 3);
    fake_operator_set_listening(r.fake, false);
    await_work(&r, 10);
    fake_operator_remove(r.fake, r.pods[3].id);
    list_pods(&r, COORD_COLLECTOR, 1);
    kill_pod(&r.pods[1]);
    await_work(&r, 10);
    revive(&r, &r.pods[1], COORD_COLLECTOR);
    await_work(&r, 10);
    await_members(&r, 4, 0);
    fake_operator_set_listening(r.fake, true);
    await_members(&r, 5, 1);
    await_work(&r, 10);
    close_rig(&r);
}

static void garbage_brings_nobody_and_takes_nobody(void **state)
{
    static const char *const GARBAGE[] = {
        "",
        "{\"success\": true, \"data\": {\"collectors\": 7, \"learners\": []}}",
        "{\"success\": true, \"data\": {\"collectors\": [7, \"x:0\"], \"learners\": []}}",
    };
    (void)state;
    begin(&r, FAKE_V1, 3);
    for (size_t i = 0; i < sizeof GARBAGE / sizeof GARBAGE[0]; i++) {
        fake_operator_set_garbage(r.fake, GARBAGE[i]);
        fake_operator_fail(r.fake, FAKE_GET, FAKE_GARBAGE, 2);
        await_lists(&r, 3);
    }
    await_work(&r, 10);
    await_members(&r, 4, 0);
    close_rig(&r);
}

/* One is in every other list, another one is killed again and again. */
static void flapping_pods_cost_no_task(void **state)
{
    (void)state;
    begin(&r, FAKE_V1, 4);
    for (int i = 0; i < 2; i++) {
        fake_operator_set_garbage(
            r.fake,
            "{\"success\": true, \"data\": {\"collectors\": [], \"learners\": []}}");
        fake_operator_fail(r.fake, FAKE_GET, FAKE_GARBAGE, 1);
        kill_pod(&r.pods[1]);
        await_lists(&r, 2 + (size_t)i % 2);
        revive(&r, &r.pods[1], COORD_COLLECTOR);
        await_work(&r, 10);
    }
    await_members(&r, 5, 0);
    assert_int_equal(fake_operator_requests(r.fake, FAKE_FAILED), 0);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(from_2_to_8_to_1, end_processes),
        cmocka_unit_test_teardown(from_2_to_5_to_1_by_rank, end_processes),
        cmocka_unit_test_teardown(pods_come_back_at_another_address, end_processes),
        cmocka_unit_test_teardown(another_process_answers_at_the_same_address,
                                  end_processes),
        cmocka_unit_test_teardown(the_server_is_down_for_a_while, end_processes),
        cmocka_unit_test_teardown(garbage_brings_nobody_and_takes_nobody, end_processes),
        cmocka_unit_test_teardown(flapping_pods_cost_no_task, end_processes),
    };
    return cmocka_run_group_tests_name("elastic, over sockets", tests, NULL, NULL);
}
