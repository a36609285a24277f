/* The real loop: jobs, timers, events, threads, stepping by the host, and life. */
#include "base/alloc.h"
#include "env/env.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    PATIENCE_MS = 20000
}; /* for what must happen; never waited out when all is well */

static coord_loop *loop_create(bool own_thread)
{
    coord_loop_options options;
    coord_loop_options_init(&options, sizeof options);
    options.own_thread = own_thread;
    coord_loop *loop = NULL;
    coord_error err = {0};
    assert_int_equal(coord_loop_create(&options, &loop, &err), COORD_OK);
    return loop;
}

static int64_t deadline(coord_loop *loop)
{
    return coordi_now(loop) + PATIENCE_MS;
}

/* A job that counts, tells an event, and posts itself again `again` times. */
typedef struct counter {
    coordi_job job;
    coord_loop *loop;
    coordi_event *event;
    atomic_int count;
    int again;
    int *order; /* where to note `id` */
    atomic_int *next;
    int id;
    bool was_inside;
} counter;

static void count(coordi_job *job)
{
    counter *at = COORDI_ITEM(job, counter, job);
    at->was_inside = coordi_inside(at->loop);
    if (at->order != NULL) {
        at->order[atomic_fetch_add(at->next, 1)] = at->id;
    }
    (void)atomic_fetch_add(&at->count, 1);
    if (at->again > 0) {
        at->again--;
        coordi_post(at->loop, job);
    } else if (at->event != NULL) {
        at->loop->env->event_set(at->event);
    }
}

static void jobs_run_on_the_loop_thread_in_the_order_they_were_posted(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(true);
    coordi_event *event = loop->env->event_create(loop);
    enum { JOBS = 100 };
    static counter jobs[JOBS];
    int order[JOBS];
    atomic_int next = 0;
    for (int i = 0; i < JOBS; i++) {
        jobs[i] =
            (counter){.job.run = count, .loop = loop, .order = order, .next = &next};
        jobs[i].id = i;
        jobs[i].event = i == JOBS - 1 ? event : NULL;
        coordi_post(loop, &jobs[i].job);
    }
    assert_false(coordi_inside(loop));
    assert_true(loop->env->event_wait(event, deadline(loop)));
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(order[i], i);
        assert_true(jobs[i].was_inside);
    }
    loop->env->event_destroy(event);
    coord_loop_destroy(loop);
}

static void a_job_can_post_itself_again(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(true);
    coordi_event *event = loop->env->event_create(loop);
    counter job = {.job.run = count, .loop = loop, .event = event, .again = 10000};
    coordi_post(loop, &job.job);
    assert_true(loop->env->event_wait(event, deadline(loop)));
    assert_int_equal(atomic_load(&job.count), 10001);
    loop->env->event_destroy(event);
    coord_loop_destroy(loop);
}

typedef struct poster {
    coord_loop *loop;
    counter *job;
    int times;
    coordi_event *done;
} poster;

static void post_many(void *arg)
{
    poster *at = arg;
    for (int i = 0; i < at->times; i++) {
        coordi_post(at->loop, &at->job[i].job);
        assert_true(at->loop->env->event_wait(at->done, deadline(at->loop)));
    }
}

static void many_threads_can_post_at_once(void **state)
{
    (void)state;
    enum { THREADS = 8, TIMES = 500 };
    static counter jobs[THREADS][TIMES];
    coord_loop *loop = loop_create(true);
    poster posters[THREADS];
    coordi_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (poster){loop, jobs[i], TIMES, loop->env->event_create(loop)};
        for (int k = 0; k < TIMES; k++) {
            jobs[i][k] =
                (counter){.job.run = count, .loop = loop, .event = posters[i].done};
        }
        coord_error err;
        assert_int_equal(loop->env->thread_start(loop, "coord-a-long-name", post_many,
                                                 &posters[i], &threads[i], &err),
                         COORD_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        loop->env->thread_join(threads[i]);
        loop->env->event_destroy(posters[i].done);
        for (int k = 0; k < TIMES; k++) {
            assert_int_equal(atomic_load(&jobs[i][k].count), 1);
        }
    }
    coord_loop_destroy(loop);
}

static void a_wait_ends_at_its_deadline(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(true);
    coordi_event *event = loop->env->event_create(loop);
    const int64_t until = coordi_now(loop) + 20;
    assert_false(loop->env->event_wait(event, until));
    assert_true(coordi_now(loop) >= until);
    loop->env->event_set(event);
    loop->env->event_set(event); /* a binary semaphore: two sets are one */
    assert_true(loop->env->event_wait(event, coordi_now(loop) + 1));
    assert_false(loop->env->event_wait(event, coordi_now(loop)));
    loop->env->event_destroy(event);
    coord_loop_destroy(loop);
}

/* ---- timers ---- */

typedef struct alarm_clock {
    coordi_job job;
    coordi_timer timer;
    coordi_timer never;
    coord_loop *loop;
    coordi_event *event;
    int64_t set_ms;
    int64_t fired_ms;
    int rings;
} alarm_clock;

static void ring(coordi_timer *timer)
{
    alarm_clock *at = COORDI_ITEM(timer, alarm_clock, timer);
    at->fired_ms = coordi_now(at->loop);
    if (--at->rings > 0) {
        coordi_timer_in(at->loop, timer, 0);
    } else {
        at->loop->env->event_set(at->event);
    }
}

static void ring_never(coordi_timer *timer)
{
    (void)timer;
    fail();
}

static void set_alarm(coordi_job *job)
{
    alarm_clock *at = COORDI_ITEM(job, alarm_clock, job);
    at->set_ms = coordi_now(at->loop);
    coordi_timer_in(at->loop, &at->never, 5);
    coordi_timer_in(at->loop, &at->timer, 15);
    coordi_timer_stop(at->loop, &at->never);
}

static void a_timer_fires_when_due_and_a_stopped_one_never(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(true);
    alarm_clock at = {.job.run = set_alarm, .timer.fire = ring, .never.fire = ring_never};
    at.loop = loop;
    at.event = loop->env->event_create(loop);
    at.rings = 3;
    coordi_post(loop, &at.job);
    assert_true(loop->env->event_wait(at.event, deadline(loop)));
    assert_true(at.fired_ms >= at.set_ms + 15);
    loop->env->event_destroy(at.event);
    coord_loop_destroy(loop);
}

/* ---- host-driven loops ---- */

static void a_hosts_poll_sees_posted_jobs_and_due_timers(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(false);
    coord_error err;
    struct pollfd poller = {.fd = coord_loop_fd(loop), .events = POLLIN};
    assert_true(poller.fd >= 0);
    assert_int_equal(poll(&poller, 1, 0), 0);

    alarm_clock at = {.job.run = set_alarm, .timer.fire = ring, .never.fire = ring_never};
    at.loop = loop;
    at.event = loop->env->event_create(loop);
    at.rings = 1;
    coordi_post(loop, &at.job);
    assert_int_equal(poll(&poller, 1, 0), 1);
    assert_int_equal(coord_loop_step(loop, 0, &err), COORD_OK);
    while (at.fired_ms == 0) {
        assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
        assert_int_equal(coord_loop_step(loop, 0, &err), COORD_OK);
    }
    assert_int_equal(coord_loop_step(loop, 0, &err), COORD_OK);
    assert_int_equal(poll(&poller, 1, 0), 0);
    loop->env->event_destroy(at.event);
    coord_loop_destroy(loop);
}

static void a_job_posted_by_a_job_wakes_the_hosts_poll(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(false);
    struct pollfd poller = {.fd = coord_loop_fd(loop), .events = POLLIN};
    counter job = {.job.run = count, .loop = loop, .again = 3};
    coordi_post(loop, &job.job);
    for (int i = 1; i <= 4; i++) {
        assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
        assert_int_equal(coord_loop_step(loop, 0, NULL), COORD_OK);
        assert_int_equal(atomic_load(&job.count), i);
    }
    assert_int_equal(coord_loop_step(loop, 0, NULL), COORD_OK);
    assert_int_equal(poll(&poller, 1, 0), 0);
    coord_loop_destroy(loop);
}

static void step_waits_for_the_first_thing_to_do(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(false);
    alarm_clock at = {.job.run = set_alarm, .timer.fire = ring, .never.fire = ring_never};
    at.loop = loop;
    at.event = loop->env->event_create(loop);
    at.rings = 1;
    coordi_post(loop, &at.job);
    const int64_t limit = deadline(loop);
    while (at.fired_ms == 0) {
        assert_int_equal(coord_loop_step(loop, PATIENCE_MS, NULL), COORD_OK);
        assert_true(coordi_now(loop) < limit);
    }
    loop->env->event_destroy(at.event);
    coord_loop_destroy(loop);
}

static void waiting_for_an_event_steps_a_loop_that_nobody_steps(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(false);
    coordi_event *event = loop->env->event_create(loop);
    counter job = {.job.run = count, .loop = loop, .event = event, .again = 5};
    coordi_post(loop, &job.job);
    assert_true(loop->env->event_wait(event, deadline(loop)));
    assert_int_equal(atomic_load(&job.count), 6);
    assert_false(loop->env->event_wait(event, coordi_now(loop) + 5));
    loop->env->event_destroy(event);
    coord_loop_destroy(loop);
}

static void many_waiting_threads_share_the_stepping(void **state)
{
    (void)state;
    enum { THREADS = 6, TIMES = 300 };
    static counter jobs[THREADS][TIMES];
    coord_loop *loop = loop_create(false);
    poster posters[THREADS];
    coordi_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (poster){loop, jobs[i], TIMES, loop->env->event_create(loop)};
        for (int k = 0; k < TIMES; k++) {
            jobs[i][k] =
                (counter){.job.run = count, .loop = loop, .event = posters[i].done};
        }
        assert_int_equal(loop->env->thread_start(loop, "coord-test", post_many,
                                                 &posters[i], &threads[i], NULL),
                         COORD_OK);
    }
    for (int i = 0; i < 50; i++) { /* the host's step takes over from a waiting thread */
        assert_int_equal(coord_loop_step(loop, 0, NULL), COORD_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        loop->env->thread_join(threads[i]);
        loop->env->event_destroy(posters[i].done);
    }
    coord_loop_destroy(loop);
}

typedef struct stepper {
    coordi_job job;
    coord_loop *loop;
    coord_status status;
    coord_error error;
} stepper;

static void step_inside(coordi_job *job)
{
    stepper *at = COORDI_ITEM(job, stepper, job);
    at->status = coord_loop_step(at->loop, 0, &at->error);
}

static void step_is_refused_from_a_callback_and_for_loops_with_a_thread(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(false);
    stepper at = {.job.run = step_inside, .loop = loop};
    coordi_post(loop, &at.job);
    assert_int_equal(coord_loop_step(loop, 0, NULL), COORD_OK);
    assert_int_equal(at.status, COORD_ERR_STATE);
    assert_non_null(strstr(at.error.text, "callback"));
    coord_loop_destroy(loop);

    loop = loop_create(true);
    coord_error err;
    assert_int_equal(coord_loop_fd(loop), -1);
    assert_int_equal(coord_loop_step(loop, 0, &err), COORD_ERR_STATE);
    coord_loop_destroy(loop);
}

/* ---- life ---- */

/* An object that lives on a loop: torn down by a job, which drops its reference. */
typedef struct object {
    coordi_job job;
    coord_loop *loop;
    atomic_int *gone;
    int hops; /* how often the teardown posts on */
} object;

static void object_teardown(coordi_job *job)
{
    object *at = COORDI_ITEM(job, object, job);
    if (at->hops-- > 0) {
        coordi_post(at->loop, job);
        return;
    }
    coord_loop *loop = at->loop;
    (void)atomic_fetch_add(at->gone, 1);
    coordi_free(at);
    coordi_loop_unref(loop);
}

static object *object_create(coord_loop *loop, atomic_int *gone, int hops)
{
    object *at = coordi_zalloc(sizeof *at);
    assert_non_null(at);
    at->job.run = object_teardown;
    at->loop = coordi_loop_ref(loop);
    at->gone = gone;
    at->hops = hops;
    return at;
}

static void retiring_a_loop_waits_for_the_teardown_that_was_posted(void **state)
{
    (void)state;
    atomic_int gone = 0;
    for (int i = 0; i < 20; i++) {
        coord_loop *loop = loop_create(true);
        object *at = object_create(loop, &gone, i);
        coordi_post(loop, &at->job);
        coordi_loop_retire(loop);
        assert_int_equal(atomic_load(&gone), i + 1);
    }
}

static void destroying_a_host_driven_loop_runs_the_teardown_that_was_posted(void **state)
{
    (void)state;
    atomic_int gone = 0;
    coord_loop *loop = loop_create(false);
    object *at = object_create(loop, &gone, 3);
    coordi_post(loop, &at->job);
    coord_loop_destroy(loop);
    assert_int_equal(atomic_load(&gone), 1);
}

static void an_object_outlives_the_handle_of_its_host_driven_loop(void **state)
{
    (void)state;
    atomic_int gone = 0;
    coord_loop *loop = loop_create(false);
    object *first = object_create(loop, &gone, 3);
    object *second = object_create(loop, &gone, 0);
    coordi_event *event = loop->env->event_create(loop);
    coord_loop_destroy(loop); /* from here on a thread of the library runs it */
    counter job = {.job.run = count, .loop = loop, .event = event};
    coordi_post(loop, &job.job);
    assert_true(loop->env->event_wait(event, deadline(loop)));
    loop->env->event_destroy(event);
    coordi_post(loop, &first->job);
    coordi_post(loop, &second->job);
    while (atomic_load(&gone) < 2) {
        (void)sched_yield();
    }
}

static void drop(coordi_job *job)
{
    object *at = COORDI_ITEM(job, object, job);
    coord_loop *loop = at->loop;
    atomic_int *gone = at->gone;
    coordi_free(at);
    coordi_loop_retire(loop); /* inside: hands over, does not wait */
    (void)atomic_fetch_add(gone, 1);
}

static void the_last_reference_may_go_on_the_loop_thread(void **state)
{
    (void)state;
    atomic_int gone = 0;
    coord_loop *loop = loop_create(true);
    object *at = object_create(loop, &gone, 0);
    at->job.run = drop;
    coordi_loop_unref(loop);
    coordi_post(loop, &at->job);
    while (atomic_load(&gone) == 0) {
        (void)sched_yield();
    }

    loop = loop_create(false);
    at = object_create(loop, &gone, 0);
    at->job.run = drop;
    coordi_loop_unref(loop);
    coordi_post(loop, &at->job);
    assert_int_equal(coord_loop_step(loop, 0, NULL), COORD_OK);
    assert_int_equal(atomic_load(&gone), 2);
}

static void destroying_no_loop_is_fine(void **state)
{
    (void)state;
    coord_loop_destroy(NULL);
}

static void create_survives_every_failed_allocation(void **state);

static bool countdown(void *user)
{
    return (*(int *)user)-- == 0;
}

static void create_survives_every_failed_allocation(void **state)
{
    (void)state;
    for (int n = 0, ok = 0; !ok; n++) {
        int left = n;
        coord_loop *loop = NULL;
        coord_error err = {0};
        coordi_alloc_set_fault(countdown, &left);
        coord_status rc = coord_loop_create(NULL, &loop, &err);
        coordi_alloc_set_fault(NULL, NULL);
        ok = rc == COORD_OK;
        if (!ok) {
            assert_int_equal(rc, COORD_ERR_NOMEM);
            assert_int_equal(err.status, COORD_ERR_NOMEM);
        }
        coord_loop_destroy(loop);
    }
}

static void options_of_a_newer_header_are_refused_when_set(void **state)
{
    (void)state;
    struct {
        coord_loop_options known;
        uint64_t newer;
    } options = {0};
    coord_loop_options_init(&options.known, sizeof options);
    coord_loop *loop = NULL;
    coord_error err;
    options.newer = 1;
    assert_int_equal(coord_loop_create(&options.known, &loop, &err), COORD_ERR_ABI);
    options.newer = 0;
    assert_int_equal(coord_loop_create(&options.known, &loop, &err), COORD_OK);
    coord_loop_destroy(loop);
    options.known.size = 0;
    assert_int_equal(coord_loop_create(&options.known, &loop, &err), COORD_ERR_ABI);
}

static void in_a_forked_child_only_destroy_works(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(false);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        coord_error err;
        bool refused = coord_loop_step(loop, 0, &err) == COORD_ERR_FORKED;
        coord_loop_destroy(loop);
        _exit(refused ? 7 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(coord_loop_step(loop, 0, NULL), COORD_OK);
    coord_loop_destroy(loop);
}

static void the_lock_of_the_process_is_free_in_a_forked_child(void **state)
{
    (void)state;
    coordi_process_lock();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(30); /* it hangs */
        coordi_process_lock();
        coordi_process_unlock();
        _exit(coordi_process_id() == getpid() ? 7 : 1);
    }
    coordi_process_unlock();
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static void look_at_signals(void *arg)
{
    sigset_t *mask = arg;
    (void)pthread_sigmask(SIG_SETMASK, NULL, mask);
}

static void threads_of_ours_take_no_signals_but_their_own_faults(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(true);
    coordi_thread *thread;
    sigset_t mask;
    assert_int_equal(loop->env->thread_start(loop, "coord-test", look_at_signals, &mask,
                                             &thread, NULL),
                     COORD_OK);
    loop->env->thread_join(thread);
    assert_true(sigismember(&mask, SIGPIPE));
    assert_true(sigismember(&mask, SIGINT));
    assert_true(sigismember(&mask, SIGCHLD));
    assert_false(sigismember(&mask, SIGSEGV));
    coord_loop_destroy(loop);
}

static void frames_tell_whose_callbacks_are_on_the_stack(void **state)
{
    (void)state;
    int a = 0;
    int b = 0;
    coordi_frame outer;
    coordi_frame inner;
    assert_false(coordi_frame_any());
    coordi_frame_enter(&outer, &a);
    coordi_frame_enter(&inner, &b);
    assert_true(coordi_frame_has(&a));
    assert_true(coordi_frame_has(&b));
    coordi_frame_leave(&inner);
    assert_false(coordi_frame_has(&b));
    assert_true(coordi_frame_any());
    coordi_frame_leave(&outer);
    assert_false(coordi_frame_any());
}

static void uuids_are_version_4_and_differ(void **state)
{
    (void)state;
    coord_loop *loop = loop_create(false);
    char a[37];
    char b[37];
    coordi_random_uuid(loop, a);
    coordi_random_uuid(loop, b);
    assert_int_equal(strlen(a), 36);
    assert_int_equal(a[14], '4');
    assert_string_not_equal(a, b);
    coord_loop_destroy(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_on_the_loop_thread_in_the_order_they_were_posted),
        cmocka_unit_test(a_job_can_post_itself_again),
        cmocka_unit_test(many_threads_can_post_at_once),
        cmocka_unit_test(a_wait_ends_at_its_deadline),
        cmocka_unit_test(a_timer_fires_when_due_and_a_stopped_one_never),
        cmocka_unit_test(a_hosts_poll_sees_posted_jobs_and_due_timers),
        cmocka_unit_test(a_job_posted_by_a_job_wakes_the_hosts_poll),
        cmocka_unit_test(step_waits_for_the_first_thing_to_do),
        cmocka_unit_test(waiting_for_an_event_steps_a_loop_that_nobody_steps),
        cmocka_unit_test(many_waiting_threads_share_the_stepping),
        cmocka_unit_test(step_is_refused_from_a_callback_and_for_loops_with_a_thread),
        cmocka_unit_test(retiring_a_loop_waits_for_the_teardown_that_was_posted),
        cmocka_unit_test(destroying_a_host_driven_loop_runs_the_teardown_that_was_posted),
        cmocka_unit_test(an_object_outlives_the_handle_of_its_host_driven_loop),
        cmocka_unit_test(the_last_reference_may_go_on_the_loop_thread),
        cmocka_unit_test(destroying_no_loop_is_fine),
        cmocka_unit_test(create_survives_every_failed_allocation),
        cmocka_unit_test(options_of_a_newer_header_are_refused_when_set),
        cmocka_unit_test(in_a_forked_child_only_destroy_works),
        cmocka_unit_test(the_lock_of_the_process_is_free_in_a_forked_child),
        cmocka_unit_test(threads_of_ours_take_no_signals_but_their_own_faults),
        cmocka_unit_test(frames_tell_whose_callbacks_are_on_the_stack),
        cmocka_unit_test(uuids_are_version_4_and_differ),
    };
    return cmocka_run_group_tests_name("env_loop", tests, NULL, NULL);
}
