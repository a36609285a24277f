/* clang-format off */
/* A coordinator for any workers that speak the protocol, libcoord's or DI-engine's: gives
 * them the tasks of a file, passes samples from collectors to learners, and prints every
 * callback as a line of JSON.
 *
 * Build:
 *
 *     cc -o pipeline *.c $(pkg-config --cflags --libs libcoord jansson)
 *
 * Give it two workers
 *
 *     ./worker --role collector --samples 2 --port 22270 &
 *     ./worker --role learner --port 22271 &
 *
 * and a file run.json
 *
 *     {"coordinator": {"collector": {"0": ["c0", "127.0.0.1", 22270]},
 *                      "learner": {"0": ["l0", "127.0.0.1", 22271]}},
 *      "learner_tasks": [{"task_id": "learn", "buffer_id": "b"}],
 *      "collector_tasks": [{"task_id": "collect", "buffer_id": "b"}],
 *      "finish": {"learner_iters": 2},
 *      "timeout_s": 60}
 *
 * in which everything but the coordinator may be left out. Then `./pipeline run.json` prints
 *
 *     {"event":"task_start","task_id":"learn","worker_id":"l0"}
 *     {"event":"learner_get_data","task_id":"learn","buffer_id":"b","batch_size":4,"cur_learner_iter":0,"returned":4}
 *     {"event":"learner_judge_finish","task_id":"learn","info":{"learner_step": 1, "priority_info": {}, "learner_done": false},"finish":false}
 *     {"event":"learner_send_info","task_id":"learn","buffer_id":"b","info":{"learner_step": 1, "priority_info": {}, "learner_done": false}}
 *     {"event":"learner_get_data","task_id":"learn","buffer_id":"b","batch_size":4,"cur_learner_iter":1,"returned":4}
 *     {"event":"learner_judge_finish","task_id":"learn","info":{"learner_step": 2, "priority_info": {}, "learner_done": false},"finish":true}
 *     {"event":"learner_send_info","task_id":"learn","buffer_id":"b","info":{"learner_step": 2, "priority_info": {}, "learner_done": false}}
 *     {"event":"learner_finish_task","task_id":"learn","result":{"buffer_id":"b","task_id":"learn"}}
 *     {"event":"task_start","task_id":"collect","worker_id":"c0"}
 *     {"event":"collector_send_data","task_id":"collect","buffer_id":"b","data_id":"collect-1","data":{"data_id": "collect-1", "unroll_split_begin": 0,"buffer_id":"b","task_id":"collect"}}
 *     {"event":"collector_send_data","task_id":"collect","buffer_id":"b","data_id":"collect-2","data":{"data_id": "collect-2", "unroll_split_begin": 0,"buffer_id":"b","task_id":"collect"}}
 *     {"event":"collector_judge_finish","task_id":"collect","info":{"collector_done": true, "cur_episode": 1, "cur_sample": 2, "cur_step": 2,"buffer_id":"b","task_id":"collect"},"finish":true}
 *     {"event":"collector_finish_task","task_id":"collect","result":{"collector_done": true, "sample_count": 2,"task_id":"collect"}}
 *
 * where the lines of one task come in this order, those of several tasks mixed, and some
 * learner_get_data return 0 while there is no sample yet.
 *
 * With "ledger": "run.ledger" in the coordinator's configuration it may be killed at any
 * moment. Started again, it goes on with the tasks that had not ended: a line task_resume
 * tells of each, and workers that still know it are not disturbed.
 *
 * Where collectors come and go ("operator_server", "discovery"), "each_collector" is a task
 * that each of them gets when it comes, numbered collect-1, collect-2, ..., and again when
 * it has finished it. The tasks of the file say when the run is over.
 *
 *     {"coordinator": {"discovery": {"command": "./who-is-there"}},
 *      "learner_tasks": [{"task_id": "learn", "buffer_id": "b"}],
 *      "each_collector": {"task_id": "collect", "buffer_id": "b"}}
 *
 * A collector's task is finished when its worker says "collector_done": true; a learner's
 * after learner_iters steps, or when its worker says "learner_done": true. The exit status
 * is 0 when all have finished, 1 when a task or the start has failed or a signal came, 2
 * when the file is wrong, and 3 when timeout_s is over. */
/* clang-format on */
#include "config.h"
#include "event.h"
#include "host.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum {
    EXIT_CONFIG = 2,
    EXIT_TIMEOUT = 3,
    SEED = 1,
    HOUR_MS = 3600 * 1000,
    DRAIN_MS = 10000
};

typedef struct pipeline {
    const char *path;
    config config;
    host host;
    CommCoordinator *coordinator;
    bool started; /* and all tasks posted; of the thread that works, until it is joined */
    int done_fd;  /* readable once it has nothing left to do */
    int signal_fd;
} pipeline;

static void complain(const char *what, const coord_error *err)
{
    (void)fprintf(stderr, "pipeline: %s%s%s%s\n", what, err->text,
                  err->cause[0] != '\0' ? ": " : "", err->cause);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the thread that works ---- */

static bool post_tasks(pipeline *p)
{
    coord_error err = {0};
    for (size_t i = 0; i < p->config.task_count; i++) {
        const task *t = &p->config.tasks[i];
        coord_status rc =
            t->role == COORD_LEARNER
                ? comm_coordinator_post_learner_task(p->coordinator, t->text, &err)
                : comm_coordinator_post_collector_task(p->coordinator, t->text, &err);
        if (rc == COORD_ERR_EXISTS) {
            continue; /* the ledger has brought it back */
        }
        if (rc != COORD_OK) {
            complain("", &err);
            return false;
        }
    }
    return true;
}

static bool start(pipeline *p)
{
    coord_error err = {0};
    coord_status rc = comm_coordinator_start(p->coordinator, &err);
    if (rc != COORD_OK || err.text[0] != '\0') { /* some may be missing all the same */
        complain("", &err);
    }
    return rc == COORD_OK;
}

/* NULL: for all tasks. */
static bool wait_for(const pipeline *p, const char *task_id)
{
    coord_error err = {0};
    coord_status rc = COORD_ERR_TIMEOUT;
    while (rc == COORD_ERR_TIMEOUT) {
        rc = task_id == NULL
                 ? comm_coordinator_wait(p->coordinator, HOUR_MS, &err)
                 : comm_coordinator_wait_task(p->coordinator, task_id, HOUR_MS, &err);
    }
    if (rc != COORD_OK) {
        complain("wait: ", &err);
    }
    return rc == COORD_OK;
}

/* The tasks of each collector would go on for ever: those of the file say when it is
 * over. Then they get some time to come to their ends. */
static void wait_for_all(const pipeline *p)
{
    bool good = true;
    if (p->config.each.ptr == NULL) {
        (void)wait_for(p, NULL);
        return;
    }
    for (size_t i = 0; good && i < p->config.task_count; i++) {
        good = wait_for(p, p->config.tasks[i].id);
    }
    if (good) {
        coord_error err = {0};
        if (comm_coordinator_drain(p->coordinator, DRAIN_MS, &err) != COORD_OK) {
            complain("drain: ", &err); /* close ends what is left */
        }
    }
}

static void *work(void *arg)
{
    pipeline *p = arg;
    p->started = start(p) && post_tasks(p);
    if (p->started) {
        crew_come(&p->host.crew, p->coordinator, p->config.collectors);
        wait_for_all(p);
    }
    (void)eventfd_write(p->done_fd, 1);
    return NULL;
}

/* ---- the thread that watches ---- */

/* Waits until the work is done (0), a signal comes (1) or time is up (EXIT_TIMEOUT). */
static int watch(const pipeline *p, int64_t until_ms)
{
    struct pollfd fds[] = {{p->done_fd, POLLIN, 0}, {p->signal_fd, POLLIN, 0}};
    int ready = 0;
    while (ready == 0 || (ready < 0 && errno == EINTR)) {
        int64_t left = until_ms == 0 ? HOUR_MS : until_ms - now_ms();
        if (left <= 0) {
            (void)fprintf(stderr, "pipeline: timed out\n");
            return EXIT_TIMEOUT;
        }
        ready = poll(fds, 2, (int)(left < HOUR_MS ? left : HOUR_MS));
    }
    if (ready < 0) {
        perror("pipeline: poll");
        return EXIT_FAILURE;
    }
    return (fds[0].revents & POLLIN) != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int run(pipeline *p, int64_t until_ms)
{
    pthread_t worker;
    coord_error err = {0};
    int why = pthread_create(&worker, NULL, work, p);
    if (why != 0) {
        (void)fprintf(stderr, "pipeline: thread: %s\n", strerror(why));
        return EXIT_FAILURE;
    }
    int status = watch(p, until_ms);
    if (comm_coordinator_close(p->coordinator, &err) != COORD_OK) {
        /* A callback hangs, in a full stdout for example: nothing is left to wait for. */
        complain("", &err);
        _exit(status == EXIT_SUCCESS ? EXIT_FAILURE : status);
    }
    (void)pthread_join(worker, NULL);
    bool finished = p->started && atomic_load(&p->host.failed) == 0 &&
                    atomic_load(&p->host.finished) == p->config.task_count;
    return status == EXIT_TIMEOUT ? status : finished ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- set-up ---- */

static int create(pipeline *p)
{
    coord_error err = {0};
    char where[4096];
    comm_coordinator_callbacks callbacks;
    comm_coordinator_options options;
    host_callbacks(&p->host, &callbacks);
    comm_coordinator_options_init(&options, sizeof options);
    options.config = p->config.coordinator;
    options.callbacks = &callbacks;

    coord_status rc = comm_coordinator_create(&options, &p->coordinator, &err);
    if (rc == COORD_OK) {
        return EXIT_SUCCESS;
    }
    (void)snprintf(where, sizeof where, "%s: coordinator.", p->path);
    complain(where, &err);
    return rc == COORD_ERR_CONFIG || rc == COORD_ERR_UNSUPPORTED ? EXIT_CONFIG
                                                                 : EXIT_FAILURE;
}

static bool open_fds(pipeline *p)
{
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    p->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    p->done_fd = eventfd(0, EFD_CLOEXEC);
    p->host.config = &p->config;
    p->host.buffers = buffers_create(SEED);
    if (p->signal_fd < 0 || p->done_fd < 0 || p->host.buffers == NULL ||
        !crew_init(&p->host.crew, &p->config)) {
        perror("pipeline");
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static pipeline p = {.done_fd = -1, .signal_fd = -1};
    int64_t begin_ms = now_ms();

    if (argc != 2 || argv[1][0] == '-') {
        (void)fprintf(stderr, "usage: pipeline CONFIG.json\n");
        return EXIT_CONFIG;
    }
    p.path = argv[1];
    if (!config_read(p.path, &p.config)) {
        return EXIT_CONFIG;
    }
    int status = open_fds(&p) ? create(&p) : EXIT_FAILURE;
    if (status == EXIT_SUCCESS) {
        int64_t timeout_ms = p.config.timeout_ms;
        status = run(&p, timeout_ms == 0 ? 0 : begin_ms + timeout_ms);
    }
    if (status == EXIT_SUCCESS && !event_all_printed()) {
        status = EXIT_FAILURE;
    }
    comm_coordinator_destroy(p.coordinator);
    crew_done(&p.host.crew);
    buffers_destroy(p.host.buffers);
    config_done(&p.config);
    (void)close(p.done_fd);
    (void)close(p.signal_fd);
    return status;
}
