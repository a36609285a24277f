/* A worker to try things out with: a collector or a learner that does no real work, but
 * speaks the protocol to any coordinator, libcoord's or DI-engine's.
 *
 * Build and run:
 *
 *     cc -o worker worker.c $(pkg-config --cflags --libs libcoord jansson)
 *     ./worker --role collector --port 22270
 *
 * prints
 *
 *     listening on 127.0.0.1:22270
 *
 * and works until SIGINT or SIGTERM, with --once until its first coordinator says
 * goodbye. The exit status is 0, 1 when it can't listen, and 2 when the arguments are
 * wrong. */
#include "coord.h"
#include "coord/json.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, BATCH_SIZE = 4, SLICE_MS = 10, CLOSE_MS = 5000, PARTING_MS = 200 };

typedef struct settings {
    coord_role role;
    const char *host;
    int64_t port;
    int64_t samples; /* or learns, after which a task is done */
    int64_t step_ms;
    int64_t channel;
    int64_t heartbeat_ms;
    bool insecure;
    bool echo;
    bool die_with_parent;
    bool once;
    bool help;
} settings;

/* Steps run one at a time, so what belongs to them needs no lock. */
typedef struct worker {
    settings set;
    char task_id[COORD_ID_SIZE];
    int64_t done; /* samples or learns of the running task */
} worker;

static const char USAGE[] =
    "usage: worker --role collector|learner [options]\n"
    "  --host H             address to listen on (127.0.0.1)\n"
    "  --port P             port to listen on; 0: any free one (0)\n"
    "  --samples N          samples, or learns, after which a task is done (3)\n"
    "  --step-ms M          how long each of them takes (0)\n"
    "  --channel C          the coordinator's (0)\n"
    "  --heartbeat-ms B     between heartbeats, at least 200 (3000)\n"
    "  --echo               tell a task's info in its first sample, as \"task_info\"\n"
    "  --insecure           allow hosts beyond loopback\n"
    "  --die-with-parent    leave when the parent process dies\n"
    "  --once               leave when the coordinator says goodbye\n";

/* ---- steps ---- */

static coord_status tell_resource(coord_slave *slave, coord_text in, coord_out *out,
                                  coord_error *err, void *user)
{
    const worker *w = user;
    (void)slave;
    (void)in;
    return coord_out_printf(out, err,
                            w->set.role == COORD_COLLECTOR
                                ? "{\"cpu\": \"20\", \"gpu\": \"1\"}"
                                : "{\"cpu\": \"xxx\", \"gpu\": \"xxx\"}");
}

static coord_status start(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    worker *w = user;
    json_t *info = NULL;
    const char *id = NULL;
    (void)slave;
    (void)out; /* left empty: answered as the reference does */

    coord_status rc = coord_json_parse(in, &info, err);
    if (rc == COORD_OK) {
        rc = coord_json_get_string(info, "task_id", &id, err);
    }
    if (rc == COORD_OK) {
        (void)snprintf(w->task_id, sizeof w->task_id, "%s", id);
        w->done = 0;
    }
    json_decref(info);
    return rc;
}

static void sleep_ms(long ms)
{
    (void)nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Takes step_ms, in slices, so that it ends soon when nobody waits for it any more. */
static coord_status work(const worker *w, const coord_slave *slave, coord_error *err)
{
    for (int64_t left = w->set.step_ms; left > 0; left -= SLICE_MS) {
        if (coord_slave_task_canceled(slave)) {
            (void)snprintf(err->text, sizeof err->text, "canceled");
            return COORD_ERR_CANCELED;
        }
        sleep_ms((long)(left < SLICE_MS ? left : SLICE_MS));
    }
    return COORD_OK;
}

static coord_status send_sample(const worker *w, coord_text task_info, coord_out *out,
                                coord_error *err)
{
    char *data_id = NULL; /* as JSON: a task_id may hold what has to be escaped */
    json_t *name = json_sprintf("%s-%" PRId64, w->task_id, w->done);
    bool echo = w->set.echo && w->done == 1;

    coord_status rc = coord_json_text(name, &data_id, NULL, err);
    json_decref(name);
    if (rc == COORD_OK) {
        rc = coord_out_printf(out, err,
                              "{\"data_id\": %s, \"unroll_split_begin\": 0%s%.*s}",
                              data_id, echo ? ", \"task_info\": " : "",
                              echo ? (int)task_info.len : 0, task_info.ptr);
    }
    coord_free(data_id);
    return rc;
}

static coord_status collect(coord_slave *slave, coord_text in, coord_out *out,
                            coord_error *err, void *user)
{
    worker *w = user;
    if (w->done >= w->set.samples) {
        return coord_out_printf(out, err,
                                "{\"collector_done\": true, \"cur_episode\": 1, "
                                "\"cur_sample\": %" PRId64 ", \"cur_step\": %" PRId64 "}",
                                w->done, w->done);
    }
    coord_status rc = work(w, slave, err);
    if (rc != COORD_OK) {
        return rc;
    }
    w->done++;
    return send_sample(w, in, out, err);
}

static coord_status close_collector(coord_slave *slave, coord_text in, coord_out *out,
                                    coord_error *err, void *user)
{
    const worker *w = user;
    (void)slave;
    (void)in;
    return coord_out_printf(out, err,
                            "{\"collector_done\": %s, \"sample_count\": %" PRId64 "}",
                            w->done >= w->set.samples ? "true" : "false", w->done);
}

static coord_status get_data(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    const worker *w = user;
    (void)slave;
    (void)in;
    return coord_out_printf(out, err,
                            "{\"batch_size\": %d, \"cur_learner_iter\": %" PRId64 "}",
                            BATCH_SIZE, w->done);
}

static coord_status learn(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    worker *w = user;
    (void)in; /* a real learner would read the samples that these describe */
    coord_status rc = work(w, slave, err);
    if (rc != COORD_OK) {
        return rc;
    }
    w->done++;
    return coord_out_printf(out, err,
                            "{\"learner_step\": %" PRId64
                            ", \"priority_info\": {}, \"learner_done\": %s}",
                            w->done, w->done >= w->set.samples ? "true" : "false");
}

/* ---- arguments ---- */

static bool read_int(const char *name, const char *text, int64_t low, int64_t high,
                     int64_t *ret)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < low || value > high) {
        (void)fprintf(stderr,
                      "worker: --%s must be an integer from %" PRId64 " to %" PRId64
                      ", got \"%s\"\n",
                      name, low, high, text);
        return false;
    }
    *ret = value;
    return true;
}

static bool read_role(const char *text, coord_role *ret)
{
    if (strcmp(text, "collector") != 0 && strcmp(text, "learner") != 0) {
        (void)fprintf(stderr, "worker: --role must be collector or learner, got \"%s\"\n",
                      text);
        return false;
    }
    *ret = text[0] == 'c' ? COORD_COLLECTOR : COORD_LEARNER;
    return true;
}

/* What no option alone can tell. */
static bool is_complete(int argc, char **argv, bool role_given)
{
    if (optind < argc) {
        (void)fprintf(stderr, "worker: there is no argument \"%s\"\n", argv[optind]);
    } else if (!role_given) {
        (void)fprintf(stderr, "worker: --role is required\n");
    }
    return optind >= argc && role_given;
}

static bool read_settings(int argc, char **argv, settings *set)
{
    static const struct option OPTIONS[] = {
        {"role", required_argument, NULL, 'r'},
        {"host", required_argument, NULL, 'h'},
        {"port", required_argument, NULL, 'p'},
        {"samples", required_argument, NULL, 'n'},
        {"step-ms", required_argument, NULL, 'm'},
        {"channel", required_argument, NULL, 'c'},
        {"heartbeat-ms", required_argument, NULL, 'b'},
        {"echo", no_argument, NULL, 'e'},
        {"insecure", no_argument, NULL, 'i'},
        {"die-with-parent", no_argument, NULL, 'd'},
        {"once", no_argument, NULL, 'o'},
        {"help", no_argument, NULL, '?' + 1},
        {NULL, 0, NULL, 0},
    };
    bool role_given = false;
    bool good = true;
    int at = 0;
    int option;

    while (good && (option = getopt_long(argc, argv, "", OPTIONS, &at)) != -1) {
        const char *name = option == '?' ? "" : OPTIONS[at].name;
        switch (option) {
        case 'r':
            role_given = good = read_role(optarg, &set->role);
            break;
        case 'h':
            set->host = optarg;
            break;
        case 'p':
            good = read_int(name, optarg, 0, 65535, &set->port);
            break;
        case 'n':
            good = read_int(name, optarg, 0, INT64_MAX, &set->samples);
            break;
        case 'm':
            good = read_int(name, optarg, 0, INT32_MAX, &set->step_ms);
            break;
        case 'c':
            good = read_int(name, optarg, INT32_MIN, INT32_MAX, &set->channel);
            break;
        case 'b':
            good = read_int(name, optarg, 200, INT32_MAX, &set->heartbeat_ms);
            break;
        case 'e':
            set->echo = true;
            break;
        case 'i':
            set->insecure = true;
            break;
        case 'd':
            set->die_with_parent = true;
            break;
        case 'o':
            set->once = true;
            break;
        case '?' + 1:
            set->help = true;
            return true;
        default: /* getopt has said what is wrong */
            good = false;
        }
    }
    good = good && is_complete(argc, argv, role_given);
    if (!good) {
        (void)fputs(USAGE, stderr);
    }
    return good;
}

/* ---- life ---- */

static int complain(const coord_error *err, coord_status status)
{
    (void)fprintf(stderr, "worker: %s%s%s\n",
                  err->text[0] != '\0' ? err->text : coord_status_str(status),
                  err->cause[0] != '\0' ? ": " : "", err->cause);
    return status == COORD_ERR_ARG ? EXIT_USAGE : EXIT_FAILURE;
}

/* With --once. A coordinator that is merely lost may come back: that is another hook. */
static coord_status on_goodbye(coord_slave *slave, coord_text data, coord_out *out,
                               void *user)
{
    (void)slave;
    (void)data;
    (void)out;
    (void)user;
    (void)kill(getpid(), SIGTERM); /* blocked everywhere: main() is waiting for it */
    return COORD_OK;
}

static int work_until_signaled(const worker *w, coord_slave *slave,
                               const sigset_t *signals)
{
    coord_error err = {0};
    int signal;
    const char *host = coord_slave_host(slave);
    bool bracket = strchr(host, ':') != NULL; /* IPv6 */

    if (printf("listening on %s%s%s:%u\n", bracket ? "[" : "", host, bracket ? "]" : "",
               coord_slave_port(slave)) < 0 ||
        fflush(stdout) != 0) {
        perror("worker: stdout");
        return EXIT_FAILURE;
    }
    (void)sigwait(signals, &signal);
    if (w->set.once && signal == SIGTERM) {
        sleep_ms(PARTING_MS); /* until the coordinator has read our goodbye */
    }
    coord_status rc = coord_slave_close(slave, CLOSE_MS, &err);
    return rc == COORD_OK ? EXIT_SUCCESS : complain(&err, rc);
}

static int run_collector(worker *w, const coord_slave_options *options,
                         const sigset_t *signals)
{
    coord_error err = {0};
    coord_collector *collector;
    coord_collector_callbacks callbacks;
    coord_collector_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.resource = tell_resource;
    callbacks.start = start;
    callbacks.data = collect;
    callbacks.close = close_collector;
    callbacks.user = w;

    coord_status rc = coord_collector_create(options, &callbacks, &collector, &err);
    if (rc != COORD_OK) {
        return complain(&err, rc);
    }
    int status = work_until_signaled(w, coord_collector_slave(collector), signals);
    coord_collector_destroy(collector);
    return status;
}

static int run_learner(worker *w, const coord_slave_options *options,
                       const sigset_t *signals)
{
    coord_error err = {0};
    coord_learner *learner;
    coord_learner_callbacks callbacks;
    coord_learner_callbacks_init(&callbacks, sizeof callbacks);
    callbacks.resource = tell_resource;
    callbacks.start = start;
    callbacks.get_data = get_data;
    callbacks.learn = learn;
    callbacks.user = w;

    coord_status rc = coord_learner_create(options, &callbacks, &learner, &err);
    if (rc != COORD_OK) {
        return complain(&err, rc);
    }
    int status = work_until_signaled(w, coord_learner_slave(learner), signals);
    coord_learner_destroy(learner);
    return status;
}

/* False when the parent is gone already. */
static bool follow_parent(pid_t parent)
{
    return prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent;
}

int main(int argc, char **argv)
{
    /* Static, for a step that close() could not wait for still needs it. */
    static worker w = {.set = {.host = "127.0.0.1", .samples = 3, .heartbeat_ms = 3000}};
    const pid_t parent = getppid();
    coord_slave_options options;
    sigset_t signals;

    if (!read_settings(argc, argv, &w.set)) {
        return EXIT_USAGE;
    }
    if (w.set.help) {
        return fputs(USAGE, stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (w.set.die_with_parent && !follow_parent(parent)) {
        return EXIT_SUCCESS;
    }
    coord_slave_options_init(&options, sizeof options);
    options.host = w.set.host;
    options.port = (uint16_t)w.set.port;
    options.channel = (int32_t)w.set.channel;
    options.heartbeat_ms = w.set.heartbeat_ms;
    options.insecure = w.set.insecure;
    options.on_disconnect = w.set.once ? on_goodbye : NULL;
    return w.set.role == COORD_COLLECTOR ? run_collector(&w, &options, &signals)
                                         : run_learner(&w, &options, &signals);
}
