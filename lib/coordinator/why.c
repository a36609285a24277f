/* Why a task or a worker is as it is: a chain of causes, from the immediate one to the
 * root, as JSON. Whatever there is to tell, the answer has at most WORKERS_MAX workers
 * and CAUSES_MAX causes, and says how many were left out. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/line.h"
#include "coordinator/call.h"
#include "coordinator/discovery.h"
#include "coordinator/history.h"
#include "coordinator/operator_sync.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { CAUSES_MAX = 24, WORKERS_MAX = 8, SEEN_SIZE = 480 };

/* One answer on its way. */
typedef struct chain {
    CommCoordinator *c;
    coordi_buf buf;
    int64_t now;
    int causes;
    int left_out;
} chain;

/* ---- writing ---- */

static void add_string(coordi_buf *buf, const char *key, const char *value)
{
    coordi_buf_addf(buf, "\"%s\": ", key);
    coordi_buf_add_json(buf, value, strlen(value));
}

/* `since` is a moment. */
static void add_cause(chain *a, coordi_reason reason, int64_t since, const char *format,
                      ...) COORD_PRINTF(4, 5);

static void add_cause(chain *a, coordi_reason reason, int64_t since, const char *format,
                      ...)
{
    char seen[SEEN_SIZE];
    va_list args;
    if (a->causes == CAUSES_MAX) {
        a->left_out++;
        return;
    }
    va_start(args, format);
    (void)vsnprintf(seen, sizeof seen, format, args);
    va_end(args);
    coordi_line_clean(seen);
    coordi_buf_addf(&a->buf, "%s{\"code\": \"%s\", ", a->causes++ == 0 ? "" : ", ",
                    coordi_reason_word(reason));
    add_string(&a->buf, "seen", seen);
    coordi_buf_addf(&a->buf, ", \"since_ms\": %lld, ", (long long)(a->now - since));
    add_string(&a->buf, "advice", coordi_reason_advice(reason));
    coordi_buf_adds(&a->buf, "}");
}

static void add_error(chain *a, const coord_error *why, int64_t at)
{
    char words[SEEN_SIZE];
    coordi_error_words(why, words, sizeof words);
    add_cause(a, coordi_reason_of(why), at, "%s", words);
}

static void add_history(chain *a, const coordi_history *history)
{
    const coordi_trouble *trouble;
    for (uint64_t n = 0; (trouble = coordi_history_last(history, n)) != NULL; n++) {
        char times[32] = "";
        if (trouble->times > 1) {
            (void)snprintf(times, sizeof times, " (%u times)", trouble->times);
        }
        add_cause(a, trouble->reason, trouble->at_ms, "attempt %u: %s%s",
                  trouble->attempt, trouble->seen, times);
    }
    if (history != NULL && history->count > COORDI_TROUBLES_MAX) {
        a->left_out += (int)(history->count - COORDI_TROUBLES_MAX);
    }
}

static void open_answer(chain *a, const char *id, const char *kind, coord_role role,
                        const char *state, int64_t since)
{
    coordi_buf_adds(&a->buf, "{");
    add_string(&a->buf, "id", id);
    coordi_buf_addf(&a->buf,
                    ", \"kind\": \"%s\", \"role\": \"%s\", \"state\": \"%s\", "
                    "\"since_ms\": %lld, \"causes\": [",
                    kind, coord_role_str(role), state, (long long)(a->now - since));
}

/* Leaves the object open for what else there is of this id. */
static void close_answer(chain *a)
{
    coordi_buf_addf(&a->buf, "], \"left_out\": %d", a->left_out);
    a->causes = 0;
    a->left_out = 0;
}

/* ---- tasks that run ---- */

static int64_t due_in(const chain *a, const coordi_timer *timer)
{
    return coordi_timer_is_set(timer) && timer->at_ms > a->now ? timer->at_ms - a->now
                                                               : 0;
}

static void tell_request(chain *a, const coordi_run *run)
{
    const coordi_member *m = run->member;
    coordi_ask ask = coordi_run_ask(run);
    char limit[96] = "no limit is set";
    char heard[96] = "";
    if (ask.limit_ms > 0) {
        (void)snprintf(limit, sizeof limit, "the limit is %g s (%s)",
                       (double)ask.limit_ms / 1000.0, ask.limit_key);
    }
    if (m != NULL && m->connection != NULL) {
        (void)snprintf(heard, sizeof heard,
                       "; last heard of %lld ms ago, tolerated are %lld",
                       (long long)(a->now - m->connection->beat.last_ms),
                       (long long)a->c->config.heartbeat_tolerance_ms);
    }
    add_cause(a, COORDI_REASON_WAITS_FOR_WORKER, run->since_ms,
              "'%.60s' %s %s, and has not reported for %lld ms; %s%s", run->worker_id,
              ask.accepted ? "has accepted" : "has not accepted yet", ask.name,
              (long long)(a->now - run->since_ms), limit, heard);
}

static const char *callback_of(const coordi_run *run)
{
    bool learner = run->kind->role == COORD_LEARNER;
    switch (run->state) {
    case COORDI_STATE_SENDING:
        return "deal_with_collector_send_data";
    case COORDI_STATE_SAMPLING:
        return "deal_with_learner_get_data";
    case COORDI_STATE_JUDGING:
        return learner ? "deal_with_learner_judge_finish, or _send_info,"
                       : "deal_with_collector_judge_finish";
    case COORDI_STATE_RESTARTING:
        return "deal_with_task_restart";
    case COORDI_STATE_RESUMING:
        return "deal_with_task_resume";
    case COORDI_STATE_FINISHING:
        return learner ? "deal_with_learner_finish_task"
                       : "deal_with_collector_finish_task";
    default:
        return "deal_with_task_fail";
    }
}

static void tell_callback(chain *a, const coordi_run *run)
{
    add_cause(a, COORDI_REASON_CALLBACK_RUNNING, run->since_ms,
              "%s has not returned for %lld ms", callback_of(run),
              (long long)(a->now - run->since_ms));
    if (run->state == COORDI_STATE_FAILING) {
        add_error(a, &run->why, run->since_ms);
    }
}

static void tell_no_data(chain *a, const coordi_run *run)
{
    add_cause(a, COORDI_REASON_HOST_HAS_NO_DATA, run->want_ms,
              "deal_with_learner_get_data has answered \"not yet\" for %lld ms, for %lld "
              "items of buffer '%.60s'; it is asked again in %lld ms",
              (long long)(a->now - run->want_ms), (long long)run->batch_size,
              run->buffer_id == NULL ? "" : run->buffer_id,
              (long long)due_in(a, &run->timer));
}

static void tell_pause(chain *a, const coordi_run *run)
{
    add_cause(a, COORDI_REASON_PAUSE_AFTER_FAILURE, run->since_ms,
              "'%.60s' failed %u requests in a row; it is asked again in %lld ms",
              run->worker_id, run->failures, (long long)due_in(a, &run->timer));
}

static void tell_queue(chain *a, const coordi_run *run);

static void tell_ledger(chain *a, const coordi_run *run)
{
    const coord_error *trouble = coordi_ledger_trouble(run->c->ledger);
    add_cause(a, COORDI_REASON_LEDGER_WRITES, run->since_ms,
              "it is %s: the ledger has not written that down for %lld ms",
              coordi_state_str(run->state), (long long)(a->now - run->since_ms));
    if (trouble != NULL) {
        add_error(a, trouble, run->since_ms);
    }
}

/* What a task of this state waits for. */
static void tell_run(chain *a, const coordi_run *run)
{
    if (run->writes > 0) { /* a failure, too, is written down before it is told */
        tell_ledger(a, run);
        return;
    }
    switch (run->state) {
    case COORDI_STATE_QUEUED:
        tell_queue(a, run);
        break;
    case COORDI_STATE_STARTING:
    case COORDI_STATE_ASKING:
    case COORDI_STATE_LEARNING:
    case COORDI_STATE_CLOSING:
        tell_request(a, run);
        break;
    case COORDI_STATE_PAUSING:
        tell_pause(a, run);
        break;
    case COORDI_STATE_WAITING:
        tell_no_data(a, run);
        break;
    case COORDI_STATE_SENDING:
    case COORDI_STATE_SAMPLING:
    case COORDI_STATE_JUDGING:
    case COORDI_STATE_RESTARTING:
    case COORDI_STATE_FINISHING:
    case COORDI_STATE_FAILING:
    case COORDI_STATE_RESUMING:
        tell_callback(a, run);
        break;
    case COORDI_STATE_RECORDING:
    case COORDI_STATE_ASSIGNING:
    case COORDI_STATE_SETTLING:
        tell_ledger(a, run);
        break;
    case COORDI_STATE_AWAITING:
        add_cause(a, COORDI_REASON_WAITS_AFTER_RESTART, run->since_ms,
                  "the coordinator was restarted; what '%.60s' was asked before that is "
                  "waited for %lld ms more",
                  run->worker_id, (long long)due_in(a, &run->timer));
        break;
    case COORDI_STATE_RELEASING:
        add_cause(a, COORDI_REASON_WORKER_CLEANS_UP, run->since_ms,
                  "'%.60s' has closed it, and is asked what it has", run->worker_id);
        break;
    default:
        add_cause(a, COORDI_REASON_PASSING, run->since_ms, "it is %s",
                  coordi_state_str(run->state));
        break;
    }
}

/* ---- workers ---- */

static void tell_quarantine(chain *a, const coordi_member *m)
{
    const coordi_timer *timer = &m->retry;
    char next[64] = "one is under way";
    if (m->task == NULL) {
        (void)snprintf(next, sizeof next, "the next one comes in %lld ms",
                       (long long)due_in(a, timer));
    }
    add_cause(
        a, COORDI_REASON_QUARANTINED, m->since_ms,
        "'%.60s' is connected, but has not been used for %lld ms; %u probes were in "
        "vain, %s",
        m->worker.id, (long long)(a->now - m->since_ms), m->probes, next);
    if (m->probes > 0) {
        char words[SEEN_SIZE];
        coordi_error_words(&m->probe_why, words, sizeof words);
        add_cause(a, COORDI_REASON_PROBE_FAILED, a->now, "%s", words);
    }
}

static void tell_cleaning(chain *a, const coordi_member *m)
{
    add_cause(a, COORDI_REASON_WORKER_CLEANS_UP, m->since_ms, "'%.60s' %s, for %lld ms",
              m->worker.id,
              m->left != NULL ? "is still at the last request of a task that was given up"
              : m->owed != NULL ? "closes its last task"
                                : "is asked what it has",
              (long long)(a->now - m->since_ms));
}

static void tell_working(chain *a, const coordi_member *m)
{
    const coordi_run *run = m->run;
    add_cause(a, COORDI_REASON_WORKER_WORKS, m->since_ms,
              "'%.60s' has worked for task '%.60s' for %lld ms; attempt %u, %s",
              m->worker.id, run == NULL ? "" : run->id, (long long)(a->now - m->since_ms),
              run == NULL ? 0 : run->attempt,
              run == NULL ? "" : coordi_state_str(run->state));
}

/* What a worker of this state is at, and then what brought it there. */
static void tell_member(chain *a, const coordi_member *m)
{
    switch (m->state) {
    case COORDI_MEMBER_FREE:
        add_cause(a, COORDI_REASON_WORKER_FREE, m->since_ms, "'%.60s' has no task",
                  m->worker.id);
        break;
    case COORDI_MEMBER_WORKING:
        tell_working(a, m);
        break;
    case COORDI_MEMBER_RECOVERING:
        tell_cleaning(a, m);
        break;
    case COORDI_MEMBER_QUARANTINED:
        tell_quarantine(a, m);
        break;
    case COORDI_MEMBER_CONNECTING:
    case COORDI_MEMBER_ASKING:
        add_cause(a, COORDI_REASON_WORKER_CONNECTING, m->since_ms, "'%.60s' is %s",
                  m->worker.id,
                  m->state == COORDI_MEMBER_ASKING ? "connected, and asked what it has"
                                                   : "being connected");
        break;
    case COORDI_MEMBER_AWAY:
        add_cause(a, COORDI_REASON_WORKER_AWAY, m->away_since_ms,
                  "'%.60s' at %.100s:%u is not connected; tried again in %lld ms",
                  m->worker.id, m->worker.host, (unsigned)m->worker.port,
                  (long long)due_in(a, &m->retry));
        break;
    case COORDI_MEMBER_LEAVING:
    case COORDI_MEMBER_GONE:
        add_cause(a, COORDI_REASON_WORKER_LEAVES, m->since_ms, "'%.60s' is %s",
                  m->worker.id, coordi_member_state_str(m->state));
        break;
    }
    if (m->why.status != COORD_OK && m->state != COORDI_MEMBER_FREE &&
        m->state != COORDI_MEMBER_WORKING) {
        add_error(a, &m->why, m->why_ms);
        if (m->lost_why.status != COORD_OK && m->lost_ms != m->why_ms) {
            add_error(a, &m->lost_why, m->lost_ms);
        }
    }
}

/* ---- tasks that wait for a worker ---- */

typedef struct crowd {
    size_t all;
    size_t free;
    size_t working;
    size_t cleaning;
    size_t quarantined;
    size_t connecting;
} crowd;

static crowd count_members(const coordi_map *members)
{
    crowd n = {0};
    size_t at = 0;
    for (const coordi_member *m = coordi_map_next(members, &at); m != NULL;
         m = coordi_map_next(members, &at)) {
        n.all++;
        n.free += m->state == COORDI_MEMBER_FREE;
        n.working += m->state == COORDI_MEMBER_WORKING;
        n.cleaning += m->state == COORDI_MEMBER_RECOVERING;
        n.quarantined += m->state == COORDI_MEMBER_QUARANTINED;
        n.connecting += m->state == COORDI_MEMBER_ASKING;
    }
    return n;
}

static size_t count_before(const CommCoordinator *c, const coordi_run *run)
{
    size_t before = 0;
    const coordi_link *head = &c->queues[run->kind->role].runs;
    for (const coordi_link *at = head->next; at != head && at != &run->queue;
         at = at->next) {
        before++;
    }
    return before;
}

/* Those that work first, for they are the nearest to being free, then the others. */
static void tell_members(chain *a, const coordi_map *members)
{
    int told = 0;
    for (int others = 0; others <= 1; others++) {
        size_t at = 0;
        for (const coordi_member *m = coordi_map_next(members, &at); m != NULL;
             m = coordi_map_next(members, &at)) {
            bool ready = coordi_member_is_ready(m);
            if (m->state == COORDI_MEMBER_FREE || ready == (others == 1)) {
                continue;
            }
            if (told++ < WORKERS_MAX) {
                tell_member(a, m);
            } else {
                a->left_out++;
            }
        }
    }
}

/* Workers may be there of whom nobody is told. */
static void tell_discovery(chain *a)
{
    uint64_t failures;
    int64_t since;
    char words[SEEN_SIZE];
    const coord_error *why = coordi_discovery_trouble(a->c, &failures, &since);
    if (why != NULL) {
        coordi_error_words(why, words, sizeof words);
        add_cause(a, COORDI_REASON_DISCOVERY_FAILS, since, "%llu times in a row: %s",
                  (unsigned long long)failures, words);
    }
}

/* Why workers of this role do not come. */
static void tell_operator(chain *a, coord_role role)
{
    const coordi_operator_sync *sync = a->c->operator_sync;
    char seen[SEEN_SIZE];
    if (sync == NULL) {
        return;
    }
    if (sync->client != NULL && sync->outage_ms != 0) {
        coordi_error_words(&sync->failure, seen, sizeof seen);
        add_cause(a, COORDI_REASON_OPERATOR_UNREACHABLE, sync->outage_ms, "%s", seen);
    }
    if (coordi_operator_sync_lacks(sync, role, seen, sizeof seen)) {
        add_cause(a, COORDI_REASON_OPERATOR_DEMAND_UNMET, sync->list_ms, "%s", seen);
    }
}

static void tell_queue(chain *a, const coordi_run *run)
{
    const coordi_map *members = &a->c->members[run->kind->role];
    const char *role = coord_role_str(run->kind->role);
    crowd n = count_members(members);
    size_t before = count_before(a->c, run);
    const coordi_member *shunned = coordi_run_shuns(run);
    if (shunned != NULL && shunned->state == COORDI_MEMBER_FREE && n.free == 1) {
        add_cause(a, COORDI_REASON_NO_FREE_WORKER, run->since_ms,
                  "of %zu %ss only '%.100s' is free, which has lost this task %u times "
                  "in a row",
                  n.all, role, shunned->worker.id, run->in_a_row);
    } else if (n.all == 0) {
        add_cause(
            a, COORDI_REASON_NO_WORKER_CONFIGURED, run->since_ms,
            coordi_membership_may_grow(a->c)
                ? "no %s belongs here now: the configuration names none, and nobody "
                  "else has brought one"
                : "the configuration names no %s",
            role);
    } else if (n.free > 0) {
        add_cause(a, COORDI_REASON_POLICY_WAITS, run->since_ms,
                  "%zu of %zu %ss are free, but the policy \"%.40s\" gives none of them",
                  n.free, n.all, role,
                  a->c->policy.name == NULL ? "" : a->c->policy.name);
    } else if (n.working + n.cleaning + n.quarantined + n.connecting == 0) {
        add_cause(a, COORDI_REASON_NO_WORKER_CONNECTED, run->since_ms,
                  "of %zu %ss none is connected", n.all, role);
    } else {
        add_cause(a, COORDI_REASON_NO_FREE_WORKER, run->since_ms,
                  "no %s is free: of %zu, %zu work, %zu clean up, %zu are quarantined, "
                  "%zu are not connected",
                  role, n.all, n.working, n.cleaning, n.quarantined,
                  n.all - n.working - n.cleaning - n.quarantined);
    }
    if (before > 0) {
        add_cause(a, COORDI_REASON_TASKS_BEFORE_IT, run->since_ms,
                  "%zu tasks wait before it", before);
    }
    tell_discovery(a);
    tell_operator(a, run->kind->role);
    tell_members(a, members);
}

/* ---- whole answers ---- */

static void answer_run(chain *a, const coordi_run *run)
{
    open_answer(a, run->id, "task", run->kind->role, coordi_state_str(run->state),
                run->since_ms);
    tell_run(a, run);
    const coordi_past *past = coordi_map_get(&a->c->past, run->id);
    bool failing = run->state == COORDI_STATE_FAILING && past != NULL;
    add_history(a, failing ? past->history : run->history);
    close_answer(a);
}

static void answer_past(chain *a, const coordi_past *past)
{
    bool canceled = past->why.status == COORD_ERR_CANCELED;
    open_answer(a, past->id, "task", past->role, canceled ? "canceled" : "failed",
                past->ended_ms);
    add_error(a, &past->why, past->ended_ms);
    add_history(a, past->history);
    close_answer(a);
}

static void answer_member(chain *a, const coordi_member *m)
{
    open_answer(a, m->worker.id, "worker", m->worker.role,
                coordi_member_state_str(m->state), m->since_ms);
    tell_member(a, m);
    if (m->run != NULL) {
        tell_run(a, m->run);
        add_history(a, m->run->history);
    }
    close_answer(a);
}

/* ---- looking up ---- */

enum { TASKS = 1, COLLECTORS = 2, LEARNERS = 4, ALL = TASKS | COLLECTORS | LEARNERS };

/* All that has this id. The first is the answer, the others stand in it as "also". */
static int find(chain *a, const char *id, unsigned where)
{
    const coordi_run *run = coordi_map_get(&a->c->runs, id);
    const coordi_past *past = coordi_map_get(&a->c->past, id);
    int found = 0;
    if ((where & TASKS) != 0 && (run != NULL || past != NULL)) {
        if (run != NULL) {
            answer_run(a, run);
        } else {
            answer_past(a, past);
        }
        found++;
    }
    for (int role = 0; role < COORDI_ROLES; role++) {
        const coordi_member *m = coordi_map_get(&a->c->members[role], id);
        unsigned bit = role == COORD_COLLECTOR ? COLLECTORS : LEARNERS;
        if (m == NULL || (where & bit) == 0) {
            continue;
        }
        coordi_buf_adds(&a->buf, found == 0 ? "" : found == 1 ? ", \"also\": [" : "}, ");
        answer_member(a, m);
        found++;
    }
    coordi_buf_adds(&a->buf, found == 0 ? "" : found == 1 ? "}" : "}]}");
    return found;
}

/* An id, or one with its kind before it: "task/t", "collector/c0", "learner/l0". */
static bool find_named(chain *a, const char *name)
{
    static const struct {
        const char *prefix;
        unsigned where;
    } KINDS[] = {{"task/", TASKS}, {"collector/", COLLECTORS}, {"learner/", LEARNERS}};
    if (find(a, name, ALL) > 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        size_t len = strlen(KINDS[i].prefix);
        if (strncmp(name, KINDS[i].prefix, len) == 0) {
            return find(a, name + len, KINDS[i].where) > 0;
        }
    }
    return false;
}

/* ---- public ---- */

typedef struct why_op {
    coordi_op op;
    char *name; /* owned */
    char *text; /* owned until the caller has it */
} why_op;

static void release_why(coordi_op *op)
{
    coordi_free(((why_op *)op)->name);
    coordi_free(((why_op *)op)->text);
    coordi_call_release(op);
}

static void run_why(coordi_op *op)
{
    why_op *why = (why_op *)op;
    chain a = {.c = op->object};
    coord_error err;
    coord_status rc = COORD_OK;
    a.now = coordi_now(a.c->loop);
    if (!find_named(&a, why->name)) {
        rc = coordi_fail(&err, COORD_ERR_NOT_FOUND,
                         "why: no task or worker '%.100s' is known; of tasks that have "
                         "ended, the last %d that failed are",
                         why->name, (int)COORDI_PAST_MAX);
    } else {
        why->text = coordi_buf_take(&a.buf, NULL);
        rc = why->text == NULL ? coordi_fail_nomem(&err, "why") : COORD_OK;
    }
    coordi_buf_done(&a.buf);
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

coord_status comm_coordinator_why(CommCoordinator *c, const char *id, char **ret,
                                  coord_error *err)
{
    if (id == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "why: id and ret are required");
    }
    coord_status rc;
    why_op *op = coordi_call_make(c, sizeof *op, run_why, false, NULL, "why", err, &rc);
    if (op == NULL) {
        return rc;
    }
    op->op.release = release_why;
    op->name = coordi_strdup(id);
    if (op->name == NULL) {
        coordi_op_discard(&op->op);
        return coordi_fail_nomem(err, "why");
    }
    rc = coordi_op_wait(&op->op, COORDI_OP_PATIENCE_MS, "why", err);
    if (rc == COORD_OK) {
        *ret = op->text;
        op->text = NULL;
    }
    coordi_op_unref(&op->op);
    return rc;
}
