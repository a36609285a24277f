/* The driver: starts all processes, kills, stops and starts them again by the seed, and
 * lets the story be checked after each life of the host. */
#include "check.h"
#include "children.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    COLLECTORS = 6,
    LEARNERS = 2,
    WORKERS = COLLECTORS + LEARNERS,
    FIRST_PORT = 20000, /* below the kernel's own */
    TICK_MS = 20,
    SAMPLE_MS = 250,
    SAMPLES = 16,
    ENDING_MS = 120000, /* for the drain, and for the close */
    LEAVING_MS = 10000,
    CLOSING_MS = 25000,
    LONG_SOAK_S = 150, /* from here on some are away for long */
    DEBUG_S = 900,     /* up to here the logs hold every request */
    KB_MORE = 3072,    /* what a process may grow between early and late samples: this, */
    PERCENT_MORE = 15, /* and this share, */
    FDS_MORE = 24,     /* and by so many descriptors */
    THREADS_MORE = 16
};

typedef struct sizes {
    soak_size early[SAMPLES]; /* the first ones */
    soak_size late[SAMPLES];  /* the last ones, in a ring */
    int early_count;
    int late_count;
} sizes;

typedef struct soak {
    char folder[SOAK_PATH];
    uint64_t seed;
    int64_t begin_ms;
    int64_t calm_ms; /* from here on the host lives on */
    int64_t end_ms;
    bool is_long;
    char log_level[4];
    soak_child host;
    soak_child workers[WORKERS];
    int ports[WORKERS + 1]; /* the last one is the host's */
    int life;
    soak_story *story;
    uint64_t host_luck; /* one for each kind of event: independent of the others' times */
    uint64_t worker_luck;
    uint64_t stop_luck;
    int64_t next_host_kill_ms;
    int64_t next_worker_kill_ms;
    int64_t next_stop_ms;
    int64_t next_sample_ms;
    sizes of_host;
    sizes of_workers[WORKERS];
    int stops;
    int closes;
    int strange_ends;
    char strange[256];
} soak;

/* ---- the folder ---- */

static int remove_one(const char *path, const struct stat *about, int kind,
                      struct FTW *where)
{
    (void)about;
    (void)kind;
    (void)where;
    return remove(path);
}

static void make_folder(soak *s)
{
    const char *under = getenv("TMPDIR");
    (void)snprintf(s->folder, sizeof s->folder, "%s/libcoord-soak.XXXXXX",
                   under == NULL ? "/tmp" : under);
    if (mkdtemp(s->folder) == NULL) {
        perror(s->folder);
        exit(EXIT_FAILURE);
    }
}

static void write_config(const soak *s)
{
    char path[SOAK_PATH + 16];
    (void)snprintf(path, sizeof path, "%s/config.json", s->folder);
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    (void)fprintf(file,
                  "{\"port\": %d, \"ledger\": \"%s/ledger\", \"ledger_keep\": 1000,\n"
                  " \"request_retries\": 3, \"request_retry_wait_s\": 0.2,\n"
                  " \"request_timeout_s\": 2, \"heartbeat_tolerance_s\": 2.5,\n"
                  " \"heartbeat_check_s\": 0.2, \"start_timeout_s\": 4,\n"
                  " \"collector_task_timeout_s\": 3, \"learner_task_timeout_s\": 3,\n"
                  " \"max_reassign\": 5, \"max_retry_second\": 30,\n"
                  " \"min_collectors\": 1, \"min_learners\": 1, \"close_timeout_s\": 20",
                  s->ports[WORKERS], s->folder);
    for (int i = 0; i < WORKERS; i++) {
        (void)fprintf(file, "%s\"%d\": [\"%s\", \"127.0.0.1\", %d]",
                      i == 0            ? ",\n \"collector\": {"
                      : i == COLLECTORS ? "},\n \"learner\": {"
                                        : ", ",
                      i, s->workers[i].name, s->ports[i]);
    }
    (void)fprintf(file, "}}\n");
    if (fclose(file) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

/* ---- starting ---- */

static void must_spawn(const soak *s, soak_child *child, const char *log,
                       char *const *argv)
{
    if (!soak_spawn(child, s->folder, log, argv)) {
        (void)fprintf(stderr, "soak: %s can't be started: %s\n", child->name,
                      strerror(errno));
        exit(EXIT_FAILURE);
    }
}

static void start_worker(soak *s, int i)
{
    char parent[16];
    char port[8];
    char log[32];
    soak_child *w = &s->workers[i];
    (void)snprintf(parent, sizeof parent, "%d", (int)getpid());
    (void)snprintf(port, sizeof port, "%d", s->ports[i]);
    (void)snprintf(log, sizeof log, "%s.log", w->name);
    char *argv[] = {"soak",  "worker", parent,       s->folder,
                    w->name, port,     s->log_level, NULL};
    must_spawn(s, w, log, argv);
}

static void plan_host_kill(soak *s)
{
    int64_t lives_ms = soak_chance(&s->host_luck, 20)
                           ? soak_between(&s->host_luck, 20, 500) /* still starting */
                           : soak_between(&s->host_luck, 700, 5000);
    s->next_host_kill_ms = soak_now_ms() + lives_ms;
}

/* Half of the lives end at a point that is chosen. */
static void print_trap(soak *s, char *out, size_t size)
{
    static const char *const EVENTS[] = {
        "post",   "send", "accepted", "start",  "data",   "judge",   "get", "info",
        "finish", "fail", "restart",  "resume", "cancel", "started", "born"};
    const char *event = EVENTS[soak_next(&s->host_luck) % 15];
    bool set = soak_chance(&s->host_luck, 50);
    int64_t count = soak_between(&s->host_luck, 1, 40);
    int64_t delay_us = soak_between(&s->host_luck, 0, 5000) - 1000;
    bool rare = strcmp(event, "fail") == 0 || strcmp(event, "restart") == 0 ||
                strcmp(event, "cancel") == 0;
    if (event[0] == 'b' || strcmp(event, "started") == 0) { /* once in a life */
        count = 1;
        delay_us *= 20;
    }
    (void)snprintf(out, size, set ? "%s:%d:%lld:%lld" : "-", event,
                   (int)(rare ? (count + 9) / 10 : count),
                   (long long)(delay_us > 0 ? delay_us : 0), (long long)s->calm_ms);
}

static void start_host(soak *s, bool looks)
{
    char parent[16];
    char life[16];
    char seed[24];
    char log[32];
    char trap[64] = "look";
    s->life++;
    if (!looks) {
        print_trap(s, trap, sizeof trap);
    }
    (void)snprintf(parent, sizeof parent, "%d", (int)getpid());
    (void)snprintf(life, sizeof life, "%d", s->life);
    (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)s->seed);
    (void)snprintf(log, sizeof log, "host-%d.log", s->life);
    char *argv[] = {"soak", "host",       parent, s->folder, life,
                    seed,   s->log_level, trap,   NULL};
    must_spawn(s, &s->host, log, argv);
    plan_host_kill(s);
    if (!looks) {
        memset(&s->of_host, 0, sizeof s->of_host);
    }
}

/* ---- what happens to them ---- */

/* How long one that was killed stays away: mostly not so long that its peers give up. */
static int64_t away_ms(const soak *s, uint64_t *luck, int64_t *longest_left)
{
    if (s->is_long && *longest_left > 0 && soak_chance(luck, 12)) {
        (*longest_left)--;
        return soak_between(luck, 8000, 20000);
    }
    return soak_between(luck, 200, 3000);
}

static void end_life(soak *s)
{
    soak_look look;
    soak_look_at(s->folder, s->life, &look);
    soak_story_advance(s->story, &look);
    soak_look_done(&look);
}

static void kill_worker(soak *s, int i, uint64_t *luck)
{
    int64_t any = 1000;
    soak_child *w = &s->workers[i];
    if (w->pid != 0 && !w->spared) {
        soak_kill(w);
        w->again_ms = soak_now_ms() + away_ms(s, luck, &any);
    }
}

static int any_worker(uint64_t *luck)
{
    return (int)soak_between(luck, 0, WORKERS - 1);
}

static void note_strange(soak *s, const soak_child *child, int status)
{
    if (s->strange_ends++ == 0) {
        (void)snprintf(s->strange, sizeof s->strange,
                       "%s (life %d) ended with %d (-1: not at all)", child->name,
                       s->life, status);
    }
}

/* It was killed, or has sprung its trap. */
static void after_host(soak *s)
{
    int64_t any = 1000;
    if (soak_chance(&s->host_luck, 25)) { /* both at once */
        kill_worker(s, any_worker(&s->host_luck), &s->host_luck);
    }
    int64_t again_ms = soak_now_ms() + away_ms(s, &s->host_luck, &any);
    end_life(s);
    s->host.again_ms = again_ms < s->calm_ms ? again_ms : s->calm_ms;
}

static void kill_host(soak *s)
{
    int status = 0;
    if (s->host.go_on_ms == 0 && soak_chance(&s->host_luck, 15)) { /* it may close */
        (void)kill(s->host.pid, SIGINT);
        status = soak_await(&s->host, CLOSING_MS);
        s->closes += status == 0;
    }
    if (status != 0 && status != 128 + SIGKILL) {
        note_strange(s, &s->host, status);
    }
    soak_kill(&s->host);
    after_host(s);
}

static void stop_one(soak *s)
{
    int i = (int)soak_between(&s->stop_luck, -1, WORKERS - 1);
    soak_child *child = i < 0 ? &s->host : &s->workers[i];
    int64_t for_ms = soak_between(&s->stop_luck, 100, i < 0 ? 1500 : 5000);
    if (child->pid != 0 && child->go_on_ms == 0 && !child->spared) {
        (void)kill(child->pid, SIGSTOP);
        child->go_on_ms = soak_now_ms() + for_ms;
        s->stops++;
    }
}

static void let_go_on(soak_child *child, int64_t now)
{
    if (child->pid != 0 && child->go_on_ms != 0 && now >= child->go_on_ms) {
        (void)kill(child->pid, SIGCONT);
        child->go_on_ms = 0;
    }
}

/* Nobody ends by himself, but by a trap. */
static void look_for_end(soak *s, soak_child *child)
{
    int status = child->pid == 0 ? -1 : soak_await(child, 0);
    if (status < 0) {
        return;
    }
    if (child == &s->host && status == 128 + SIGKILL) {
        child->kills++;
        after_host(s);
        return;
    }
    note_strange(s, child, status);
    child->again_ms = soak_now_ms() + 500;
    if (child == &s->host) {
        end_life(s);
    }
}

/* ---- sizes ---- */

static void sample(const soak_child *child, sizes *to)
{
    soak_size size;
    if (child->go_on_ms != 0 || !soak_measure(child, &size)) {
        return;
    }
    if (to->early_count < SAMPLES) {
        to->early[to->early_count++] = size;
    }
    to->late[to->late_count++ % SAMPLES] = size;
}

static void sample_all(soak *s, int64_t now)
{
    if (now < s->next_sample_ms) {
        return;
    }
    s->next_sample_ms = now + SAMPLE_MS;
    if (s->host.pid != 0 && now - s->host.since_ms > 2000) { /* it has settled */
        sample(&s->host, &s->of_host);
    }
    for (int i = 0; i < WORKERS; i++) {
        if (s->workers[i].spared && now - s->begin_ms > 5000) {
            sample(&s->workers[i], &s->of_workers[i]);
        }
    }
}

/* The greatest of each. */
static soak_size largest(const soak_size *samples, int count)
{
    soak_size most = {0, 0, 0};
    for (int i = 0; i < count && i < SAMPLES; i++) {
        const soak_size *at = &samples[i];
        most.rss_kb = at->rss_kb > most.rss_kb ? at->rss_kb : most.rss_kb;
        most.fds = at->fds > most.fds ? at->fds : most.fds;
        most.threads = at->threads > most.threads ? at->threads : most.threads;
    }
    return most;
}

static void report_sizes(const char *name, const sizes *of)
{
    soak_size early = largest(of->early, of->early_count);
    soak_size late = largest(of->late, of->late_count);
    char what[200];
    (void)snprintf(what, sizeof what,
                   "%s is flat: %ld KB then %ld, %ld descriptors then %ld, %ld threads "
                   "then %ld",
                   name, early.rss_kb, late.rss_kb, early.fds, late.fds, early.threads,
                   late.threads);
    bool rss = late.rss_kb <= early.rss_kb * (100 + PERCENT_MORE) / 100 + KB_MORE;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    rss = true; /* what was freed is kept for a while */
#endif
    soak_report(of->late_count >= 2 * SAMPLES && rss &&
                    late.fds <= early.fds + FDS_MORE &&
                    late.threads <= early.threads + THREADS_MORE,
                what, of->late_count < 2 * SAMPLES ? "too few samples" : "it is not");
}

/* ---- the run ---- */

static void start_again(soak *s, int64_t now)
{
    if (s->host.pid == 0 && now >= s->host.again_ms) {
        start_host(s, false);
    }
    for (int i = 0; i < WORKERS; i++) {
        if (s->workers[i].pid == 0 && now >= s->workers[i].again_ms) {
            start_worker(s, i);
        }
    }
}

static void tick(soak *s, int64_t now)
{
    look_for_end(s, &s->host);
    let_go_on(&s->host, now);
    for (int i = 0; i < WORKERS; i++) {
        look_for_end(s, &s->workers[i]);
        let_go_on(&s->workers[i], now);
    }
    start_again(s, now);
    if (now >= s->next_host_kill_ms && now < s->calm_ms && s->host.pid != 0) {
        kill_host(s);
    }
    if (now >= s->next_worker_kill_ms) {
        kill_worker(s, any_worker(&s->worker_luck), &s->worker_luck);
        s->next_worker_kill_ms = now + soak_between(&s->worker_luck, 300, 3500);
    }
    if (now >= s->next_stop_ms) {
        stop_one(s);
        s->next_stop_ms = now + soak_between(&s->stop_luck, 1000, 7000);
    }
    sample_all(s, now);
}

static void let_all_work(soak *s)
{
    let_go_on(&s->host, INT64_MAX);
    s->host.again_ms = 0;
    for (int i = 0; i < WORKERS; i++) {
        let_go_on(&s->workers[i], INT64_MAX);
        s->workers[i].again_ms = 0;
    }
    start_again(s, soak_now_ms());
}

/* Ends by itself within the limit, with status 0. */
static void await_end(soak_child *child, int64_t limit_ms, const char *what)
{
    char why[96];
    int status = soak_await(child, limit_ms);
    (void)snprintf(why, sizeof why,
                   status < 0 ? "%s still runs after %lld ms"
                              : "%s: status after %lld ms",
                   child->name, (long long)limit_ms);
    if (status > 0) {
        (void)snprintf(why, sizeof why, "%s: status %d", child->name, status);
    }
    soak_report(status == 0, what, why);
    if (status < 0) {
        soak_kill(child);
    }
}

static void finish(soak *s)
{
    soak_look look;
    char *names[WORKERS];
    let_all_work(s);
    (void)kill(s->host.pid, SIGTERM);
    await_end(&s->host, ENDING_MS, "all that is open comes to its end, and close works");
    end_life(s);
    start_host(s, true);
    await_end(&s->host, ENDING_MS, "once more started, nothing is pending");
    soak_look_at(s->folder, s->life, &look);
    soak_story_advance(s->story, &look);
    for (int i = 0; i < WORKERS; i++) {
        names[i] = s->workers[i].name;
        if (s->workers[i].pid != 0) {
            (void)kill(s->workers[i].pid, SIGTERM);
        }
    }
    int left = 0;
    for (int i = 0; i < WORKERS; i++) {
        if (s->workers[i].pid != 0 && soak_await(&s->workers[i], LEAVING_MS) != 0) {
            left++;
            soak_kill(&s->workers[i]);
        }
    }
    soak_report(left == 0, "the workers leave when they are told", "not all of them");
    soak_report(waitid(P_ALL, 0, &(siginfo_t){0}, WEXITED | WNOHANG) < 0 &&
                    errno == ECHILD,
                "no process is left behind", "there is one");
    soak_story_close(s->story, &look, names, WORKERS);
    soak_look_done(&look);
}

static void print_counts(const soak *s)
{
    const soak_tally *n = soak_story_tally(s->story);
    int kills = 0;
    for (int i = 0; i < WORKERS; i++) {
        kills += s->workers[i].kills;
    }
    (void)printf("%zu tasks, %zu finished, %zu failed; host killed %d times and "
                 "closed %d times, workers killed %d times, %d stopped; %zu resumed, %zu "
                 "moved, %zu ended again; %zu "
                 "deliveries, %zu repeated, %lld late results\n",
                 n->tasks, n->finished, n->failed, s->host.kills, s->closes, kills,
                 s->stops, n->resumed, n->restarts, n->again, n->deliveries, n->repeated,
                 n->late_results);
}

static void set_up(soak *s, int64_t seconds, uint64_t seed)
{
    s->seed = seed;
    s->host_luck = seed ^ 0x484f5354;
    s->worker_luck = seed ^ 0x574f524b;
    s->stop_luck = seed ^ 0x53544f50;
    s->is_long = seconds >= LONG_SOAK_S;
    (void)snprintf(s->log_level, sizeof s->log_level, "%d", seconds <= DEBUG_S ? 4 : 3);
    make_folder(s);
    int port = FIRST_PORT + (int)getpid() % 11000;
    for (int i = 0; i <= WORKERS; i++) {
        s->ports[i] = soak_find_port(port);
        port = s->ports[i] + 1;
    }
    (void)snprintf(s->host.name, sizeof s->host.name, "host");
    for (int i = 0; i < WORKERS; i++) {
        bool learner = i >= COLLECTORS;
        (void)snprintf(s->workers[i].name, sizeof s->workers[i].name, "%c%d",
                       learner ? 'l' : 'c', learner ? i - COLLECTORS : i);
        s->workers[i].spared = i == 0 || i == COLLECTORS;
    }
    write_config(s);
    s->story = soak_story_new(s->folder);
    s->begin_ms = soak_now_ms();
    s->end_ms = s->begin_ms + seconds * 1000;
    s->calm_ms = s->end_ms - seconds * 300; /* the last three tenths */
    s->next_worker_kill_ms = s->begin_ms + 2000;
    s->next_stop_ms = s->begin_ms + 3000;
}

int soak_drive(int64_t seconds, uint64_t seed)
{
    static soak s;
    set_up(&s, seconds, seed);
    (void)printf("soak of %lld s, SEED=%llu, in %s\n", (long long)seconds,
                 (unsigned long long)seed, s.folder);
    (void)fflush(stdout);
    for (int i = 0; i < WORKERS; i++) {
        start_worker(&s, i);
    }
    start_host(&s, false);
    for (int64_t now = soak_now_ms(); now < s.end_ms; now = soak_now_ms()) {
        tick(&s, now);
        soak_wait_ms(TICK_MS);
    }
    finish(&s);
    soak_story_report(s.story);
    soak_report(s.strange_ends == 0, "nobody ends by himself", s.strange);
    report_sizes("the coordinator", &s.of_host);
    report_sizes("a collector that is never killed", &s.of_workers[0]);
    report_sizes("a learner that is never killed", &s.of_workers[COLLECTORS]);
    print_counts(&s);
    if (soak_failures() == 0) {
        (void)nftw(s.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        return 0;
    }
    (void)printf("kept: %s\nagain: make soak MINUTES=%g SEED=%llu\n", s.folder,
                 (double)seconds / 60.0, (unsigned long long)seed);
    return 1;
}
