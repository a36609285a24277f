/* A host that forks while everything works: what its child can do with the objects of the
 * parent, and that the parent does not notice. */
#include "coord/testing.h"
#include "support/launcher_rig.h"
#include "support/real_team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
enum { HAS_TSAN = 1 };
#else
enum { HAS_TSAN = 0 };
#endif

/* Each fork under a sanitizer takes its time, and its allocator may be locked by a thread
 * that the child does not have: so there are few, and none in the middle of work. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FORKS = 2, IN_THE_MIDDLE = 0 };
#else
enum { FORKS = 20, IN_THE_MIDDLE = 1 };
#endif

/* AddressSanitizer brings it. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

enum { LIMIT_S = 30, WAIT_MS = 60000 };

/* One of each kind. */
typedef struct family {
    real_team team; /* a coordinator, collectors */
    coord_learner *learner;
    coord_slave *slave;
    coord_master *master;
    coord_connection *connection; /* of the two */
    coord_task *done;
    coord_task *running;
    coord_task *idle;
    coord_launcher *launcher;
    coord_loop *loop;   /* with a thread */
    coord_loop *driven; /* with a master on it */
    coord_master *on_driven;
    coord_resource_manager *resources;
    coord_sim *sim;
    coord_loop *sim_loop;
    coord_master *sim_master;
} family;

/* ---- the family ---- */

/* The running task waits here until its master has given it up. */
static coord_status process(coord_slave *slave, coord_text data, coord_out *out,
                            void *user)
{
    (void)slave;
    if (data.len > 2) {
        (void)take(user);
    }
    return coord_out_printf(out, NULL, "{\"big\": \"%0*d\"}", 100000, 0);
}

static coord_status step(coord_slave *slave, coord_text in, coord_out *out,
                         coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)out;
    (void)err;
    (void)user;
    return COORD_OK;
}

static coord_task *task_of(family *f, const char *data, bool start)
{
    coord_task *task = NULL;
    assert_int_equal(
        coord_connection_new_task(f->connection, coord_text_of(data), &task, NULL),
        COORD_OK);
    if (start) {
        assert_int_equal(coord_task_start(task, WAIT_MS, 0, NULL), COORD_OK);
    }
    return task;
}

static void make_pair(family *f, sem_t *release)
{
    coord_slave_options so;
    coord_master_options mo;
    coord_connection_options co;
    coord_slave_options_init(&so, sizeof so);
    so.process_task = process;
    so.user = release;
    assert_int_equal(coord_slave_create(&so, &f->slave, NULL), COORD_OK);
    coord_master_options_init(&mo, sizeof mo);
    assert_int_equal(coord_master_create(&mo, &f->master, NULL), COORD_OK);
    coord_connection_options_init(&co, sizeof co);
    co.id = "slave";
    co.host = "localhost"; /* so that somebody has to look the name up */
    co.port = coord_slave_port(f->slave);
    assert_int_equal(coord_master_new_connection(f->master, &co, &f->connection, NULL),
                     COORD_OK);
    assert_int_equal(
        coord_connection_connect(f->connection, coord_text_of("{}"), WAIT_MS, NULL),
        COORD_OK);
    f->done = task_of(f, "{}", true);
    assert_int_equal(coord_task_join(f->done, WAIT_MS, NULL), COORD_OK);
    f->running = task_of(f, "{\"wait\": true}", true);
    f->idle = task_of(f, "{}", false);
}

static void make_learner(family *f)
{
    coord_slave_options o;
    coord_learner_callbacks cb;
    coord_slave_options_init(&o, sizeof o);
    coord_learner_callbacks_init(&cb, sizeof cb);
    cb.start = step;
    cb.get_data = step;
    cb.learn = step;
    assert_int_equal(coord_learner_create(&o, &cb, &f->learner, NULL), COORD_OK);
}

static coord_master *make_master(coord_loop *loop)
{
    coord_master *master = NULL;
    coord_master_options o;
    coord_master_options_init(&o, sizeof o);
    o.loop = loop;
    assert_int_equal(coord_master_create(&o, &master, NULL), COORD_OK);
    return master;
}

static void make_loops(family *f)
{
    coord_loop_options o;
    assert_int_equal(coord_loop_create(NULL, &f->loop, NULL), COORD_OK);
    coord_loop_options_init(&o, sizeof o);
    o.own_thread = false;
    assert_int_equal(coord_loop_create(&o, &f->driven, NULL), COORD_OK);
    f->on_driven = make_master(f->driven);
    assert_int_equal(coord_sim_create(NULL, &f->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(f->sim, "127.0.0.1", &f->sim_loop, NULL), COORD_OK);
    f->sim_master = make_master(f->sim_loop);
}

static void start_child(family *f, const char *name)
{
    const char *const argv[] = {"/bin/sh", "-c", "exec cat <&3", NULL};
    coord_launcher_spec spec;
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = name;
    spec.argv = argv;
    assert_int_equal(coord_launcher_start(f->launcher, &spec, NULL, NULL), COORD_OK);
}

static void make_family(family *f, sem_t *release)
{
    memset(f, 0, sizeof *f);
    assert_int_equal(sem_init(release, 0, 0), 0);
    real_team_start(&f->team, NULL, 2, "\"per_task\"");
    real_team_work(&f->team, 2);
    make_pair(f, release);
    make_learner(f);
    make_loops(f);
    assert_int_equal(coord_launcher_create(NULL, &f->launcher, NULL), COORD_OK);
    start_child(f, "child");
    assert_int_equal(coord_resource_manager_create(NULL, 1, &f->resources, NULL),
                     COORD_OK);
}

/* ---- in the child ---- */

/* All that answers with a status must answer COORD_ERR_FORKED; how many don't? */
static int calls_that_work(family *f)
{
    const coord_text task = {"{\"task_id\": \"f\"}", 16};
    const char *const argv[] = {"/bin/true", NULL};
    CommCoordinator *c = f->team.c;
    coord_connection *connection = NULL;
    coord_connection_options co;
    coord_launcher_spec spec;
    coord_master_options mo;
    coord_master *master = NULL;
    coord_task *made = NULL;
    coord_loop *loop = NULL;
    char *text = NULL;
    comm_coordinator_delivery delivery = {.size = sizeof delivery};
    coord_connection_options_init(&co, sizeof co);
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = "other";
    spec.argv = argv;
    coord_master_options_init(&mo, sizeof mo);
    mo.loop = f->loop;
    const coord_status answers[] = {
        comm_coordinator_start(c, NULL),
        comm_coordinator_send_collector_task(c, task, NULL, NULL),
        comm_coordinator_post_collector_task(c, task, NULL),
        comm_coordinator_send_learner_task(c, task, NULL, NULL),
        comm_coordinator_post_learner_task(c, task, NULL),
        comm_coordinator_cancel_task(c, "f", NULL),
        comm_coordinator_data_ready(c, NULL, NULL),
        comm_coordinator_get_delivery(c, &delivery, NULL),
        comm_coordinator_wait(c, 1000, NULL),
        comm_coordinator_wait_task(c, "f", 1000, NULL),
        comm_coordinator_status(c, &text, NULL),
        comm_coordinator_close(c, NULL),
        coord_slave_close(coord_collector_slave(f->team.workers[0]), 1000, NULL),
        coord_slave_close(coord_learner_slave(f->learner), 1000, NULL),
        coord_slave_close(f->slave, 1000, NULL),
        coord_master_ping(f->master, 1000, NULL),
        coord_master_new_connection(f->master, &co, &connection, NULL),
        coord_master_close(f->master, 1000, NULL),
        coord_master_close(f->on_driven, 1000, NULL),
        coord_master_create(&mo, &master, NULL),
        coord_connection_connect(f->connection, task, 1000, NULL),
        coord_connection_disconnect(f->connection, task, 1000, NULL),
        coord_connection_new_task(f->connection, task, &made, NULL),
        coord_task_start(f->idle, 1000, 0, NULL),
        coord_task_start(f->idle, 0, 0, NULL),
        coord_task_join(f->running, 1000, NULL),
        coord_task_join(f->done, 0, NULL),
        coord_task_on_complete(f->done, NULL, NULL, NULL),
        coord_task_on_fail(f->done, NULL, NULL, NULL),
        coord_launcher_start(f->launcher, &spec, NULL, NULL),
        coord_launcher_signal(f->launcher, "child", SIGKILL, NULL),
        coord_launcher_stop(f->launcher, "child", 1, NULL),
        coord_launcher_post_stop(f->launcher, "child", 1, NULL),
        coord_launcher_wait(f->launcher, "child", 1000, NULL, NULL),
        coord_launcher_close(f->launcher, 1000, NULL),
        coord_loop_step(f->loop, 0, NULL),
        coord_loop_step(f->driven, 0, NULL),
        coord_loop_step(f->sim_loop, 0, NULL),
        coord_master_close(f->sim_master, 1000, NULL),
        coord_sim_loop(f->sim, "10.0.0.1", &loop, NULL),
        coord_sim_run_for(f->sim, 1, NULL),
        coord_sim_run_until_idle(f->sim, 1, NULL),
    };
    int wrong = 0;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (answers[i] != COORD_ERR_FORKED) {
            (void)fprintf(stderr, "call %zu answered %d\n", i, (int)answers[i]);
            wrong++;
        }
    }
    coord_task_cancel(f->running);
    wrong += coord_launcher_pid(f->launcher, "child") != 0;
    wrong += coord_sim_step(f->sim);
    return wrong;
}

static void destroy_in(family *f, bool children_first)
{
    if (!children_first) {
        coord_loop_destroy(f->loop);
        coord_loop_destroy(f->driven);
        coord_loop_destroy(f->sim_loop);
        coord_sim_destroy(f->sim);
        coord_master_destroy(f->master);
    }
    coord_task_unref(f->done);
    coord_task_unref(f->running);
    coord_task_unref(f->idle);
    coord_connection_destroy(f->connection);
    coord_slave_destroy(f->slave);
    coord_learner_destroy(f->learner);
    comm_coordinator_destroy(f->team.c);
    for (int i = 0; i < f->team.worker_count; i++) {
        coord_collector_destroy(f->team.workers[i]);
    }
    coord_launcher_destroy(f->launcher);
    coord_resource_manager_destroy(f->resources);
    coord_master_destroy(f->on_driven);
    coord_master_destroy(f->sim_master);
    if (children_first) {
        coord_master_destroy(f->master);
        coord_loop_destroy(f->loop);
        coord_loop_destroy(f->driven);
        coord_loop_destroy(f->sim_loop);
        coord_sim_destroy(f->sim);
    }
    memset(f, 0, sizeof *f);
}

/* What the child makes itself works, whatever the parent's threads were at. */
static int own_work(void)
{
    static real_team t;
    if (HAS_TSAN) {
        return 0; /* it ends a forked child that starts a thread */
    }
    real_team_start(&t, NULL, 1, "\"per_task\"");
    real_team_work(&t, 2);
    real_team_end(&t);
    return 0;
}

static void be_the_child(family *f, bool children_first, bool look_for_leaks)
{
    (void)alarm(LIMIT_S); /* what hangs ends by SIGALRM */
    int wrong = calls_that_work(f);
    destroy_in(f, children_first);
    if (look_for_leaks && __lsan_do_recoverable_leak_check != NULL) {
        wrong += __lsan_do_recoverable_leak_check() != 0;
    }
    _exit(wrong + own_work());
}

/* ---- the parent ---- */

static void fork_and_wait(family *f, bool children_first, bool look_for_leaks)
{
    int how = -1;
    const pid_t child = fork();
    if (child == 0) {
        be_the_child(f, children_first, look_for_leaks);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}

static void check_family(family *f)
{
    real_team_work(&f->team, 2);
    assert_int_equal(coord_master_ping(f->master, WAIT_MS, NULL), COORD_OK);
    assert_int_equal(coord_master_ping(f->on_driven, WAIT_MS, NULL), COORD_OK);
    assert_int_equal(coord_master_ping(f->sim_master, WAIT_MS, NULL), COORD_OK);
    assert_true(coord_connection_is_connected(f->connection));
    assert_int_equal(coord_task_result(f->done).len, 100000 + strlen("{\"big\": \"\"}"));
    assert_int_equal(coord_task_get_status(f->running), COORD_TASK_STARTED);
    assert_int_equal(coord_launcher_count(f->launcher), 1);
}

static void end_family(family *f, sem_t *release)
{
    (void)sem_post(release);
    assert_int_equal(coord_task_join(f->running, WAIT_MS, NULL), COORD_OK);
    assert_int_equal(coord_task_start(f->idle, WAIT_MS, 0, NULL), COORD_OK);
    assert_int_equal(coord_task_join(f->idle, WAIT_MS, NULL), COORD_OK);
    assert_int_equal(coord_launcher_stop(f->launcher, "child", WAIT_MS, NULL), COORD_OK);
    assert_int_equal(comm_coordinator_close(f->team.c, NULL), COORD_OK);
    destroy_in(f, true);
    (void)sem_destroy(release);
    assert_true(threads_are_gone());
}

static void the_child_is_refused_and_the_parent_does_not_notice(void **state)
{
    static family f;
    static sem_t release;
    (void)state;
    const int fds = open_descriptors();
    make_family(&f, &release);
    for (int i = 0; i < FORKS; i++) {
        if (IN_THE_MIDDLE) {
            for (int k = 0; k < 20; k++) {
                real_team_post(&f.team);
            }
        }
        fork_and_wait(&f, i % 2 == 0, false);
    }
    check_family(&f);
    end_family(&f, &release);
    assert_int_equal(open_descriptors(), fds);
}

static void what_stays_behind_is_no_leak(void **state)
{
    static family f;
    static sem_t release;
    (void)state;
    make_family(&f, &release);
    fork_and_wait(&f, true, true);
    fork_and_wait(&f, false, true);
    check_family(&f);
    end_family(&f, &release);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_is_refused_and_the_parent_does_not_notice),
        cmocka_unit_test(what_stays_behind_is_no_leak),
    };
    return cmocka_run_group_tests_name("guest_fork", tests, NULL, NULL);
}
