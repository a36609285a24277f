/* Workers that come and go while a coordinator runs, as they do in Kubernetes, in one
 * program on one machine:
 *
 *   - a server of DI-orchestrator, which creates, lists and deletes pods. It is the fake
 *     that libcoord's tests use, test/support/fake_operator.h;
 *   - a cluster that has a worker process for each pod (cluster.c);
 *   - somebody who asks the server for more collectors, or less (scaler.c);
 *   - a host with its CommCoordinator, which follows the server (host.c). All that makes
 *     it elastic is "operator_server" in the configuration below, and a callback that has
 *     a task for a collector that has come.
 *
 * It runs from where `make` puts it, with examples/worker beside it:
 *
 *     build/examples/elastic
 *
 * prints what stands in EXPECTED, the same each time, in about twelve seconds. -v tells
 * more: who comes, goes and dies, and when. The exit status is 0 when all went as it
 * says, 1 when not, or when SIGINT or SIGTERM came; no process is left behind. */
#include "cluster.h"
#include "host.h"
#include "say.h"
#include "scaler.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USAGE = 2, LOOK_MS = 10, PATIENCE_MS = 30000, OUTAGE_STEPS = 50 };

/* Times are short, so that the story is: a real job has the defaults, which are 1 s
 * between two looks at the list, 17 s of silence and two minutes of grace. */
static const char CONFIG[] =
    "{\"port\": 0, \"max_retry_second\": 20,"
    " \"heartbeat_tolerance_s\": 2, \"heartbeat_check_s\": 0.2,"
    " \"request_retries\": 1, \"request_retry_wait_s\": 0.1, \"max_reassign\": 10,"
    " \"operator_server\": {"
    "   \"system_addr\": \"%s\", \"api_version\": \"v1alpha1\","
    "   \"namespace\": \"default\", \"name\": \"job-coordinator\","
    "   \"init_replicas_request\": {\"collectors\": {\"replicas\": 2},"
    "                             \"learners\": {\"replicas\": 1}},"
    "   \"collector_target_num\": 2, \"learner_target_num\": 1,"
    "   \"poll_s\": 0.2, \"grace_s\": 3}}";

typedef struct story {
    fake_operator *server;
    char address[64];
    cluster *cluster;
    host host;
    size_t before; /* of numbers that are to grow */
    size_t samples_before;
    const char *killed; /* the id of its pod */
} story;

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

/* ---- waiting for what is to come ---- */

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool await(story *s, const char *what, bool (*has_come)(story *s))
{
    int64_t until_ms = now_ms() + PATIENCE_MS;
    while (!has_come(s)) {
        if (interrupted != 0 || now_ms() > until_ms) {
            (void)fprintf(stderr, "elastic: %s while waiting for: %s\n",
                          interrupted != 0 ? "interrupted" : "time is up", what);
            return false;
        }
        (void)nanosleep(&(struct timespec){0, (long)LOOK_MS * 1000000}, NULL);
    }
    return interrupted == 0;
}

static bool has_working(story *s, int64_t collectors)
{
    return host_status(&s->host, "pools.collector.connected") == collectors &&
           host_status(&s->host, "pools.collector.assigned") == collectors;
}

static bool have_two(story *s)
{
    return has_working(s, 2) && atomic_load(&s->host.steps) > 0;
}

static bool have_five(story *s)
{
    return has_working(s, 5);
}

static bool has_moved(story *s)
{
    return atomic_load(&s->host.moved) > s->before;
}

static bool is_listed(const story *s, const char *id)
{
    const char *listed;
    for (size_t n = 0; (listed = fake_operator_id(s->server, FAKE_COLLECTORS, n)) != NULL;
         n++) {
        if (strcmp(listed, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_replaced(story *s)
{
    return fake_operator_requests(s->server, FAKE_FAILED) > 0 &&
           !is_listed(s, s->killed) && has_working(s, 5);
}

static bool has_one(story *s)
{
    return has_working(s, 1) && host_status(&s->host, "counters.queued") == 0 &&
           cluster_count(s->cluster) == 2;
}

static bool has_learned(story *s)
{
    return atomic_load(&s->host.steps) >= s->before + OUTAGE_STEPS &&
           atomic_load(&s->host.samples) >= s->samples_before + OUTAGE_STEPS;
}

static bool is_out_of_reach(story *s)
{
    return host_status(&s->host, "operator_server.outage_ms") > 0;
}

static bool is_in_reach(story *s)
{
    return host_status(&s->host, "operator_server.outage_ms") == 0;
}

/* ---- the story ---- */

static bool begin(story *s)
{
    char config[sizeof CONFIG + sizeof s->address];
    (void)snprintf(config, sizeof config, CONFIG, s->address);
    if (!host_start(&s->host, config)) { /* waits for the three of them */
        return false;
    }
    say("2 collectors and a learner were asked for, and have come");
    if (!host_learn(&s->host) || !await(s, "two collectors at work", have_two)) {
        return false;
    }
    say("each collector has a task, and the learner learns from their samples");
    return true;
}

static bool grow(story *s)
{
    if (!scale_up(s->address, 3) || !await(s, "five collectors at work", have_five)) {
        return false;
    }
    say("scaled up: 5 collectors are at work");
    return true;
}

static bool lose_one(story *s)
{
    s->before = atomic_load(&s->host.moved);
    s->killed = fake_operator_id(s->server, FAKE_COLLECTORS, 0);
    if (!cluster_crash(s->cluster, s->killed) ||
        !await(s, "the task to move", has_moved)) {
        return false;
    }
    say("one was killed: its task has begun anew on another");
    if (!await(s, "a new pod", is_replaced)) {
        return false;
    }
    say("its pod was reported as failed, and replaced: 5 are at work again");
    return true;
}

static bool shrink(story *s)
{
    if (!scale_down(s->address, 4) || !await(s, "one collector at work", has_one)) {
        return false;
    }
    say("scaled down: 1 collector does the work that the other 4 left");
    return true;
}

static bool be_cut_off(story *s)
{
    fake_operator_set_listening(s->server, false);
    if (!await(s, "the status to tell of the outage", is_out_of_reach)) {
        return false;
    }
    say("the operator's server is gone: the status says so");
    s->before = atomic_load(&s->host.steps);
    s->samples_before = atomic_load(&s->host.samples);
    if (!await(s, "the work to go on", has_learned)) {
        return false;
    }
    say("the workers work on");
    fake_operator_set_listening(s->server, true);
    if (!await(s, "the server to be back", is_in_reach)) {
        return false;
    }
    say("it is back, and followed again");
    return true;
}

static bool end(story *s)
{
    if (!host_drain(&s->host)) {
        return false;
    }
    size_t failed = atomic_load(&s->host.failed);
    tell("%zu samples, %zu steps, %zu tasks moved, %zu failed",
         atomic_load(&s->host.samples), atomic_load(&s->host.steps),
         atomic_load(&s->host.moved), failed);
    if (failed > 0) {
        complain("tasks have failed", NULL);
        return false;
    }
    say("drained: every task has finished, none was lost");
    if (!host_stop(&s->host)) {
        return false;
    }
    say("closed");
    return true;
}

/* ---- the program ---- */

/* The worker lies beside this program. */
static bool find_worker(char *path, size_t size)
{
    static const char NAME[] = "worker";
    ssize_t len = readlink("/proc/self/exe", path, size - sizeof NAME);
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    if (len <= 0) {
        perror("elastic: /proc/self/exe");
        return false;
    }
    (void)snprintf(path + len, size - (size_t)len, "%s", NAME);
    if (access(path, X_OK) != 0) {
        perror(path);
        return false;
    }
    return true;
}

static bool run(story *s)
{
    char worker[4096];
    if (!find_worker(worker, sizeof worker)) {
        return false;
    }
    s->server = fake_operator_on_sockets(NULL);
    (void)snprintf(s->address, sizeof s->address, "127.0.0.1:%u",
                   (unsigned)fake_operator_port(s->server));
    s->cluster = cluster_create(s->server, worker);
    bool good = s->cluster != NULL && begin(s) && grow(s) && lose_one(s) && shrink(s) &&
                be_cut_off(s) && end(s);
    good = host_stop(&s->host) && good; /* which takes all workers along if need be */
    cluster_destroy(s->cluster);
    fake_operator_stop(s->server);
    return good;
}

int main(int argc, char **argv)
{
    static story s;
    struct sigaction action = {.sa_handler = on_signal};
    bool verbose = argc == 2 && strcmp(argv[1], "-v") == 0;
    if (argc > 2 || (argc == 2 && !verbose)) {
        (void)fprintf(stderr, "usage: elastic [-v]\n");
        return EXIT_USAGE;
    }
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    say_begin(verbose);
    return run(&s) ? EXIT_SUCCESS : EXIT_FAILURE;
}
