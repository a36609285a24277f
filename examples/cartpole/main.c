/* Trains CartPole-v1 to solved, as a job of several processes: this one coordinates, the
 * others collect experience and learn from it. They find each other over HTTP on this
 * machine, and hand policies and experience to each other as files in the run's folder.
 *
 *     make run [SEED=1] [COLLECTORS=2]
 *
 * or build/examples/cartpole; --help tells the options and the exit status. Here stands a
 * run from its beginning to its end. Of the other files, host*.c answer what the
 * coordinator asks (who does what next) with exam.c (is it solved?) and buffer.c
 * (experience on its way); team.c starts the workers, which are main_collector.c and
 * main_learner.c; files.c is what they hand to each other; ppo.c, rollout.c and what they
 * use are the algorithm, which knows nothing of all this.
 *
 * A seed settles the first weights, all games and all random choices of the learner.
 * Which version of the policy plays which piece of a game, and which of them is
 * evaluated, depends on how fast the processes are, so two runs of a seed are alike, not
 * equal. */
#include "clock.h"
#include "host.h"
#include "report.h"
#include "screen.h"
#include "settings.h"
#include "signals.h"
#include "summary.h"
#include "team.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, EXIT_SIGNALED = 128, LINE_SIZE = 256 };

typedef struct run {
    settings set;
    int64_t begin_ms;
    run_folder folder;
    history *history;
    host *host;
    team *team;
    atomic_bool team_ready;
    CommCoordinator *coordinator;
    pthread_t starter; /* of the coordinator */
    int signal_fd;
    int wake_fd; /* something has changed */
} run;

/* ---- beginning ---- */

static void on_team_ready(void *user)
{
    run *r = user;
    atomic_store(&r->team_ready, true);
    (void)eventfd_write(r->wake_fd, 1);
}

static void on_worker_end(coord_role role, const char *name, const char *how, void *user)
{
    const run *r = user;
    host_worker_ended(r->host, role, name, how);
}

static coord_status begin(run *r, coord_error *err)
{
    const team_events events = {on_team_ready, on_worker_end, r};
    coord_status rc = run_folder_create(&r->set, &r->folder, err);
    if (rc == COORD_OK) {
        rc = history_open(r->folder.path, &r->history, err);
    }
    if (rc == COORD_OK) {
        rc = host_create(&r->set, &r->folder, r->history, r->wake_fd, &r->host, err);
    }
    return rc == COORD_OK ? team_start(r->set.collectors, &events, &r->team, err) : rc;
}

/* Connecting takes a moment, in which a signal must be heard: hence a thread of its own.
 * It ends early when the coordinator is closed. */
static void *start_coordinator(void *arg)
{
    run *r = arg;
    coord_error err = {0};
    if (comm_coordinator_start(r->coordinator, &err) == COORD_OK) {
        host_begin(r->host, r->coordinator);
    } else {
        host_fail(r->host, "the coordinator can't start: %s", err.text);
    }
    return NULL;
}

/* All workers are listening. */
static void connect_team(run *r)
{
    coord_error err = {0};
    char *config = NULL;
    comm_coordinator_callbacks callbacks;
    comm_coordinator_options options;

    host_callbacks(r->host, &callbacks);
    comm_coordinator_options_init(&options, sizeof options);
    options.callbacks = &callbacks;
    coord_status rc = team_config(r->team, &config, &err);
    if (rc == COORD_OK) {
        options.config = config;
        rc = comm_coordinator_create(&options, &r->coordinator, &err);
    }
    coord_free(config);
    if (rc == COORD_OK && pthread_create(&r->starter, NULL, start_coordinator, r) != 0) {
        rc = report(&err, COORD_ERR_NOMEM, "no thread");
        comm_coordinator_destroy(r->coordinator);
        r->coordinator = NULL;
    }
    if (rc != COORD_OK) {
        host_fail(r->host, "the coordinator can't start: %s", err.text);
    }
}

/* ---- while it runs ---- */

static void show_progress(const run *r)
{
    host_view view;
    char line[LINE_SIZE];
    host_look(r->host, &view);
    summary_progress(&view, clock_ms() - r->begin_ms, line, sizeof line);
    screen_progress(line);
}

/* Until it is solved, has failed, is out of time, or a signal comes. */
static void watch(run *r)
{
    struct pollfd fds[] = {{r->signal_fd, POLLIN, 0}, {r->wake_fd, POLLIN, 0}};
    const int64_t end_ms = r->begin_ms + r->set.timeout_ms;
    int64_t next_ms = r->begin_ms + screen_interval_ms();
    host_view view = {.state = HOST_RUNNING};

    while (view.state == HOST_RUNNING) {
        const int64_t now_ms = clock_ms();
        if (now_ms >= end_ms) {
            host_fail(r->host, "the time is over");
        } else if (now_ms >= next_ms) {
            show_progress(r);
            next_ms = now_ms + screen_interval_ms();
        }
        const int64_t until_ms = next_ms < end_ms ? next_ms : end_ms;
        const int64_t wait_ms = until_ms > now_ms ? until_ms - now_ms : 0;
        if (poll(fds, 2, (int)wait_ms) < 0 && errno != EINTR) {
            host_fail(r->host, "poll: %s", strerror(errno));
        }
        eventfd_t count;
        (void)eventfd_read(r->wake_fd, &count);
        if (signals_which() != 0) {
            host_stop(r->host);
        }
        if (r->coordinator == NULL && atomic_load(&r->team_ready)) {
            connect_team(r);
        }
        host_look(r->host, &view);
    }
    show_progress(r);
    screen_end();
}

/* ---- end ---- */

/* Ends the coordinator, then the workers; bounded. False: something is still running. */
static bool close_all(run *r)
{
    coord_error err = {0};
    bool closed = true;
    if (r->host != NULL) {
        host_stop(r->host);
    }
    if (r->coordinator != NULL) {
        closed = comm_coordinator_close(r->coordinator, &err) == COORD_OK;
        if (!closed) {
            (void)complain("cartpole: close", &err);
        }
        (void)pthread_join(r->starter, NULL);
    }
    if (r->team != NULL && team_close(r->team, &err) != COORD_OK) {
        (void)complain("cartpole: close", &err);
        closed = false;
    }
    return closed;
}

/* Says how it ended and leaves the folder in order. Returns the exit status. */
static int conclude(const run *r, const host_view *view)
{
    coord_error err = {0};
    const bool solved = view->state == HOST_SOLVED;
    const int64_t elapsed_ms = clock_ms() - r->begin_ms;
    int status = solved ? EXIT_SUCCESS : EXIT_FAILURE;

    if (run_folder_tidy(&r->folder, solved ? view->solved_version : -1,
                        view->solved_env_steps, &err) != COORD_OK) {
        status = complain("cartpole", &err);
    }
    if (view->state == HOST_STOPPED) {
        (void)printf("Interrupted after %.1f s.\n", (double)elapsed_ms / 1000);
        status = EXIT_SIGNALED + signals_which();
    } else {
        summary_result(view, elapsed_ms);
        (void)fflush(stdout);
        summary_draw(&r->folder, r->signal_fd);
    }
    summary_files(&r->folder, view);
    return fflush(stdout) == 0 ? status : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static run r;
    coord_error err = {0};
    host_view view = {0};

    r.begin_ms = clock_ms();
    if (!settings_read(argc, argv, &r.set)) {
        return EXIT_USAGE;
    }
    if (r.set.help) {
        return EXIT_SUCCESS;
    }
    r.signal_fd = signals_open();
    r.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r.signal_fd < 0 || r.wake_fd < 0) {
        perror("cartpole");
        return EXIT_FAILURE;
    }
    int status = EXIT_FAILURE;
    if (begin(&r, &err) != COORD_OK) {
        status = complain("cartpole", &err);
        (void)close_all(&r);
    } else {
        watch(&r);
        host_look(r.host, &view);
        if (!close_all(&r)) { /* what still runs needs all of it */
            _exit(EXIT_FAILURE);
        }
        status = conclude(&r, &view);
    }
    comm_coordinator_destroy(r.coordinator);
    team_destroy(r.team);
    host_destroy(r.host);
    history_close(r.history);
    return status;
}
