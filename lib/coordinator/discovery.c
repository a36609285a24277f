#include "coordinator/discovery.h"

#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/history.h"
#include "coordinator/roster.h"
#include "service/discovery_list.h"

#include <string.h>

/* Vocabulary
 *   question  one run of the command, or one call of the callback
 *   list      what a question has brought, if it went well
 *   trouble   questions that went wrong, in a row; the log hears when it begins and ends
 */

enum { SAID_SIZE = 200 };

struct coordi_discovery {
    CommCoordinator *c;
    coordi_roster roster;
    coordi_timer due;   /* of the next question */
    coordi_timer limit; /* of the one under way */
    int64_t asked_ms;   /* the last one was */
    int64_t listed_ms;  /* the last list has come */
    uint64_t failures;  /* in a row */
    int64_t failing_ms; /* since then */
    coord_error why;    /* of the last of them */
    bool counted;       /* the question under way is among them already */
    bool stopped;

    coordi_process *process; /* the command, while it runs */
    coordi_buf output;
    char said[SAID_SIZE]; /* its last words on stderr */
    size_t said_len;
    bool said_end; /* of that line: another may follow */

    coordi_lane *lane; /* of the callback; NULL: there is a command */
};

/* A call of the callback. It may outlive a coordinator's life. */
struct coordi_question {
    coordi_job job; /* on the lane, then back on the loop */
    CommCoordinator *c;
    coord_out out;
    coord_status answer;
    atomic_bool revoked; /* it is not to be called any more, if it wasn't yet */
    bool called;
};

static const char *command_of(const coordi_discovery *d)
{
    return d->c->config.discovery.command[0];
}

/* ---- what a question brought ---- */

/* The moments for questions lie interval_ms apart; those that pass meanwhile are left
 * out. */
static void plan_next(coordi_discovery *d)
{
    CommCoordinator *c = d->c;
    int64_t interval = c->config.discovery.interval_ms;
    int64_t took = coordi_now(c->loop) - d->asked_ms;
    coordi_timer_stop(c->loop, &d->limit);
    coordi_timer_in(c->loop, &d->due, interval - took % interval);
}

static void note_failure(coordi_discovery *d, const coord_error *why)
{
    d->why = *why;
    if (d->counted) {
        return;
    }
    d->counted = true;
    if (d->failures++ == 0) {
        d->failing_ms = coordi_now(d->c->loop);
        COORDI_LOG(&d->c->log, COORD_LOG_WARN, "discovery fails why=\"%s\" cause=\"%s\"",
                   why->text, why->cause);
    }
}

static void note_success(coordi_discovery *d)
{
    d->listed_ms = coordi_now(d->c->loop);
    if (d->failures > 0) {
        COORDI_LOG(&d->c->log, COORD_LOG_INFO,
                   "discovery works again failures=%llu collectors=%zu learners=%zu",
                   (unsigned long long)d->failures, d->roster.listed[COORD_COLLECTOR],
                   d->roster.listed[COORD_LEARNER]);
    }
    d->failures = 0;
}

static coord_status enter_worker(coordi_discovery *d, const coordi_discovery_worker *from,
                                 coord_error *err)
{
    coordi_config_worker worker = {.role = from->role, .port = from->port};
    memcpy(worker.id, from->id, sizeof worker.id);
    memcpy(worker.host, from->host, sizeof worker.host);
    return coordi_roster_list(&d->roster, &worker, err);
}

static void take_list(coordi_discovery *d, coord_text list)
{
    coord_error err;
    coordi_discovery_worker worker;
    size_t at = 0;
    coord_status rc = coordi_discovery_list_check(list, &err);
    if (rc != COORD_OK) {
        coord_error why = err;
        (void)coordi_fail_because(&err, rc, &why, "discovery: a list that can't be used");
        note_failure(d, &err);
        return;
    }
    coordi_roster_begin(&d->roster);
    while (rc == COORD_OK && coordi_discovery_list_next(list, &at, &worker)) {
        rc = enter_worker(d, &worker, &err);
    }
    coordi_roster_end(&d->roster, rc == COORD_OK);
    if (rc == COORD_OK) {
        note_success(d);
    } else { /* no memory: the next list may bring the others */
        note_failure(d, &err);
    }
}

/* ---- the command ---- */

static void end_command(coordi_discovery *d)
{
    if (d->process != NULL) {
        d->c->loop->env->process_destroy(d->process);
        d->process = NULL;
    }
    coordi_buf_done(&d->output);
}

/* `why` is completed by what the command has said on stderr. */
static void fail_command(coordi_discovery *d, const coord_error *why)
{
    coord_error told = *why;
    coord_error said;
    d->said[d->said_len] = '\0';
    if (d->said_len > 0) {
        (void)coordi_fail(&said, COORD_ERR_IO, "it says \"%s\"", d->said);
        (void)coordi_fail_because(&told, why->status, &said, "%s", why->text);
    }
    end_command(d);
    note_failure(d, &told);
    plan_next(d);
}

static void hear(coordi_discovery *d, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') {
            d->said_end = true;
        } else {
            d->said_len = d->said_end ? 0 : d->said_len;
            d->said_end = false;
            if (d->said_len < sizeof d->said - 1) {
                d->said[d->said_len++] = bytes[i];
            }
        }
    }
}

static void on_output(coordi_process *process, int stream, const char *bytes, size_t len,
                      void *arg)
{
    coordi_discovery *d = arg;
    coord_error why;
    (void)process;
    if (stream == 2) {
        hear(d, bytes, len);
        return;
    }
    coordi_buf_add(&d->output, bytes, len);
    if (d->output.failed) {
        (void)coordi_fail_nomem(&why, "discovery");
        fail_command(d, &why);
    } else if (d->output.len > COORDI_DISCOVERY_MAX_BYTES) {
        (void)coordi_fail(&why, COORD_ERR_TOO_BIG,
                          "discovery: '%.100s' has printed more than %d bytes, and was "
                          "killed",
                          command_of(d), (int)COORDI_DISCOVERY_MAX_BYTES);
        fail_command(d, &why);
    }
}

static void on_exit(coordi_process *process, int code, void *arg)
{
    coordi_discovery *d = arg;
    coord_error why;
    (void)process;
    if (code != 0) {
        (void)coordi_fail(&why, COORD_ERR_IO,
                          code > 0 ? "discovery: '%.100s' has failed with exit code %d"
                                   : "discovery: '%.100s' was ended by signal %d",
                          command_of(d), code > 0 ? code : -code);
        fail_command(d, &why);
        return;
    }
    coordi_buf list = d->output;
    d->output = (coordi_buf){0};
    end_command(d);
    take_list(d, (coord_text){list.ptr, list.len});
    coordi_buf_done(&list);
    plan_next(d);
}

static void run_command(coordi_discovery *d)
{
    coord_loop *loop = d->c->loop;
    coord_error why;
    const coordi_process_spec spec = {
        .argv = (const char *const *)d->c->config.discovery.command,
        .envp = loop->env->environment(loop),
        .on_output = on_output,
        .on_exit = on_exit,
        .arg = d,
    };
    d->said_len = 0;
    d->said_end = false;
    coord_status rc = loop->env->process_start(loop, &spec, &d->process, &why);
    if (rc != COORD_OK) {
        coord_error told;
        (void)coordi_fail_because(&told, rc, &why, "discovery: '%.100s' can't be started",
                                  command_of(d));
        note_failure(d, &told);
        plan_next(d);
    }
}

/* ---- the callback ---- */

static void ask(coordi_discovery *d);

/* It was asked by this life or, if that failed to start, by the one before. */
static void take_answer(coordi_discovery *d, const coordi_question *q)
{
    coord_error why;
    if (!q->called) {
        ask(d);
        return;
    }
    if (q->answer == COORD_OK) {
        take_list(d, coordi_out_text(&q->out));
    } else {
        (void)coordi_fail(&why, COORD_ERR_CALLBACK,
                          "discovery: deal_with_discovery has answered \"%s\"",
                          coord_status_str(q->answer));
        note_failure(d, &why);
    }
    plan_next(d);
}

static void question_returned(coordi_job *job)
{
    coordi_question *q = COORDI_ITEM(job, coordi_question, job);
    CommCoordinator *c = q->c;
    c->question = NULL;
    c->host_calls--;
    if (c->discovery != NULL && !c->discovery->stopped) {
        take_answer(c->discovery, q);
    }
    coordi_out_done(&q->out);
    coordi_free(q);
    coordi_coordinator_check(c);
    coordi_coordinator_unref(c);
}

static void run_question(coordi_job *job)
{
    coordi_question *q = COORDI_ITEM(job, coordi_question, job);
    CommCoordinator *c = q->c;
    coordi_frame frame;
    if (!atomic_load(&c->dead) && !atomic_load(&q->revoked)) {
        coordi_frame_enter(&frame, c);
        q->answer = c->callbacks.deal_with_discovery(c, &q->out, c->callbacks.user);
        coordi_frame_leave(&frame);
        q->called = true;
    }
    q->job.run = question_returned;
    coordi_post(c->loop, &q->job);
}

/* One of an earlier start may still be out: its answer is as good. */
static void call_host(coordi_discovery *d)
{
    CommCoordinator *c = d->c;
    if (c->question != NULL) {
        return;
    }
    coordi_question *q = coordi_zalloc(sizeof *q);
    if (q == NULL) {
        coord_error why;
        (void)coordi_fail_nomem(&why, "discovery");
        note_failure(d, &why);
        plan_next(d);
        return;
    }
    q->c = coordi_coordinator_ref(c);
    q->out.lines = true;
    atomic_init(&q->revoked, false);
    q->job.run = run_question;
    c->question = q;
    c->host_calls++;
    coordi_lane_run(d->lane, &q->job);
}

/* ---- asking ---- */

static void on_limit(coordi_timer *timer)
{
    coordi_discovery *d = COORDI_ITEM(timer, coordi_discovery, limit);
    long long limit_ms = (long long)d->c->config.discovery.timeout_ms;
    coord_error why;
    if (d->process != NULL) {
        (void)coordi_fail(&why, COORD_ERR_TIMEOUT,
                          "discovery: '%.100s' did not end within %lld ms "
                          "(discovery.timeout_s), and was killed",
                          command_of(d), limit_ms);
        fail_command(d, &why);
        return;
    }
    (void)coordi_fail(&why, COORD_ERR_TIMEOUT,
                      "discovery: deal_with_discovery did not return within %lld ms "
                      "(discovery.timeout_s); it is asked again when it has",
                      limit_ms);
    note_failure(d, &why);
}

static void ask(coordi_discovery *d)
{
    CommCoordinator *c = d->c;
    d->asked_ms = coordi_now(c->loop);
    d->counted = false;
    coordi_timer_in(c->loop, &d->limit, c->config.discovery.timeout_ms);
    if (d->lane == NULL) {
        run_command(d);
    } else {
        call_host(d);
    }
}

static void on_due(coordi_timer *timer)
{
    ask(COORDI_ITEM(timer, coordi_discovery, due));
}

/* ---- life ---- */

coord_status coordi_discovery_check(const CommCoordinator *c, coord_error *err)
{
    const coordi_config_discovery *config = &c->config.discovery;
    bool asks = config->command != NULL || c->callbacks.deal_with_discovery != NULL;
    return !config->given || asks
               ? COORD_OK
               : coordi_fail(err, COORD_ERR_CONFIG,
                             "discovery: needs a command, or the callback "
                             "deal_with_discovery");
}

coord_status coordi_discovery_begin(CommCoordinator *c, coord_error *err)
{
    const coordi_config_discovery *config = &c->config.discovery;
    if (!config->given) {
        return COORD_OK;
    }
    coordi_discovery *d = coordi_zalloc(sizeof *d);
    if (d == NULL) {
        return coordi_fail_nomem(err, "discovery");
    }
    coord_status rc =
        config->command != NULL ? COORD_OK : coordi_lane_open(c->executor, &d->lane, err);
    if (rc != COORD_OK) {
        coordi_free(d);
        return rc;
    }
    d->c = c;
    d->due.fire = on_due;
    d->limit.fire = on_limit;
    coordi_roster_init(&d->roster, c, COORDI_ORIGIN_DISCOVERY, config->drains, 1);
    c->discovery = d;
    coordi_timer_in(c->loop, &d->due, 0);
    return COORD_OK;
}

void coordi_discovery_stop(CommCoordinator *c)
{
    coordi_discovery *d = c->discovery;
    if (d == NULL) {
        return;
    }
    d->stopped = true;
    coordi_timer_stop(c->loop, &d->due);
    coordi_timer_stop(c->loop, &d->limit);
    end_command(d);
    if (c->question != NULL) {
        atomic_store(&c->question->revoked, true);
    }
}

void coordi_discovery_release(CommCoordinator *c)
{
    coordi_discovery *d = c->discovery;
    coordi_discovery_stop(c);
    if (d != NULL) {
        coordi_lane_close(d->lane);
        coordi_roster_done(&d->roster);
        coordi_free(d);
        c->discovery = NULL;
    }
}

/* ---- looking ---- */

const coord_error *coordi_discovery_trouble(const CommCoordinator *c, uint64_t *failures,
                                            int64_t *since_ms)
{
    const coordi_discovery *d = c->discovery;
    if (d == NULL || d->failures == 0) {
        return NULL;
    }
    *failures = d->failures;
    *since_ms = d->failing_ms;
    return &d->why;
}

void coordi_discovery_print(const CommCoordinator *c, coordi_buf *buf)
{
    const coordi_discovery *d = c->discovery;
    if (d == NULL) {
        coordi_buf_adds(buf, "null");
        return;
    }
    bool listed = d->roster.settled;
    coordi_buf_addf(buf, "{\"state\": \"%s\", \"last_list_ms\": ",
                    d->failures > 0 ? "failing"
                    : listed        ? "following"
                                    : "starting");
    if (listed) {
        coordi_buf_addf(buf, "%lld", (long long)(coordi_now(c->loop) - d->listed_ms));
    } else {
        coordi_buf_adds(buf, "null");
    }
    coordi_buf_addf(buf,
                    ", \"collectors\": %zu, \"learners\": %zu, \"failures\": %llu, "
                    "\"error\": ",
                    d->roster.listed[COORD_COLLECTOR], d->roster.listed[COORD_LEARNER],
                    (unsigned long long)d->failures);
    if (d->failures > 0) {
        char words[sizeof d->why.text + sizeof d->why.cause + 2];
        coordi_error_words(&d->why, words, sizeof words);
        coordi_buf_add_json(buf, words, strlen(words));
    } else {
        coordi_buf_adds(buf, "null");
    }
    coordi_buf_adds(buf, "}");
}
