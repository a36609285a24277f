/* The host's journal, read as a story: what is true of each task after each line, and
 * whether the next line may follow. */
#include "check.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS_MAX = 16, TABLE_SIZE = 1 << 16, REASON_SIZE = 256, REASONS = 3 };

/* Statuses of libcoord with which a task was never accepted. */
enum { ERR_ARG = 2, ERR_STATE = 3, ERR_BUSY = 9, ERR_EXISTS = 10, ERR_CLOSED = 19 };

typedef struct delivery {
    char kind;
    uint32_t attempt;
    uint64_t sequence;
    uint32_t crc;
    int life;
    int step;
} delivery;

typedef struct task {
    struct task *next; /* in its bucket */
    char *id;
    int sent_life;
    bool waited;  /* for by send */
    bool refused; /* never was */
    bool known;   /* accepted, or something was heard of it */
    char end;     /* 'f'inished, 'x' failed, 0: not yet */
    int end_life;
    int failed_life; /* 0: none */
    bool finished;   /* in some life, with this result: */
    uint32_t finish_attempt;
    uint64_t finish_sequence;
    uint32_t finish_crc;
    int resumed_life;
    int open_life;    /* at the end of which the ledger had it open */
    int row_life;     /* ... had it at all */
    uint64_t started; /* attempts, as bits */
    uint32_t texts[TEXTS_MAX];
    int text_count;
    delivery *deliveries;
    size_t delivery_count;
} task;

struct soak_story {
    char folder[SOAK_PATH];
    FILE *journal;
    int life;
    task **table;
    soak_tally tally;
    long long late_of_life;
    int breaks[SOAK_RULES];
    char reasons[SOAK_RULES][REASONS][REASON_SIZE];
};

typedef struct line {
    long long ms;
    int life;
    const char *event;
    const char *task;
    uint32_t attempt;
    uint64_t sequence;
    uint32_t crc;
    const char *detail;
} line;

/* ---- small things ---- */

__attribute__((format(printf, 3, 4))) static void broken(soak_story *s, soak_rule rule,
                                                         const char *format, ...)
{
    va_list args;
    int at = s->breaks[rule]++;
    if (at < REASONS) {
        va_start(args, format);
        (void)vsnprintf(s->reasons[rule][at], REASON_SIZE, format, args);
        va_end(args);
    }
}

static task *find(soak_story *s, const char *id, bool make)
{
    task **bucket = &s->table[soak_crc(id, strlen(id)) % TABLE_SIZE];
    for (task *t = *bucket; t != NULL; t = t->next) {
        if (strcmp(t->id, id) == 0) {
            return t;
        }
    }
    if (!make) {
        return NULL;
    }
    task *t = calloc(1, sizeof *t);
    if (t == NULL || (t->id = strdup(id)) == NULL) {
        abort();
    }
    t->next = *bucket;
    *bucket = t;
    return t;
}

static bool read_line(char *text, line *ret)
{
    char *fields[8];
    for (int i = 0; i < 8; i++) {
        fields[i] = strsep(&text, i < 7 ? "\t" : "\n");
        if (fields[i] == NULL) {
            return false;
        }
    }
    *ret = (line){.ms = strtoll(fields[0], NULL, 10),
                  .life = atoi(fields[1]),
                  .event = fields[2],
                  .task = fields[3],
                  .attempt = (uint32_t)strtoul(fields[4], NULL, 10),
                  .sequence = strtoull(fields[5], NULL, 10),
                  .crc = (uint32_t)strtoul(fields[6], NULL, 16),
                  .detail = fields[7]};
    return true;
}

static bool is(const line *l, const char *event)
{
    return strcmp(l->event, event) == 0;
}

/* ---- deliveries ---- */

static void remember(task *t, const delivery *d)
{
    if ((t->delivery_count & (t->delivery_count + 1)) == 0) {
        size_t size = 2 * (t->delivery_count + 1) * sizeof *d;
        t->deliveries = realloc(t->deliveries, size);
        if (t->deliveries == NULL) {
            abort();
        }
    }
    t->deliveries[t->delivery_count++] = *d;
}

static void on_delivery(soak_story *s, task *t, const line *l)
{
    delivery d = {l->event[0], l->attempt, l->sequence, l->crc, l->life, atoi(l->detail)};
    s->tally.deliveries++;
    for (size_t i = 0; i < t->delivery_count; i++) {
        const delivery *before = &t->deliveries[i];
        bool same = before->attempt == d.attempt && before->sequence == d.sequence &&
                    before->kind == d.kind;
        if (same && before->life == d.life) {
            broken(s, SOAK_ONCE, "%s: %s %u/%" PRIu64 " twice in life %d", t->id,
                   l->event, d.attempt, d.sequence, d.life);
        } else if (same) {
            s->tally.repeated++;
        }
        if (same && before->crc != d.crc) {
            broken(s, SOAK_EQUAL, "%s: %s %u/%" PRIu64 " differs in lives %d and %d",
                   t->id, l->event, d.attempt, d.sequence, before->life, d.life);
        }
        if (before->attempt > d.attempt ||
            (before->attempt == d.attempt && before->sequence > d.sequence)) {
            broken(s, SOAK_ORDER,
                   "%s: %s %u/%" PRIu64 " in life %d after %u/%" PRIu64 " in life %d",
                   t->id, l->event, d.attempt, d.sequence, d.life, before->attempt,
                   before->sequence, before->life);
        }
    }
    remember(t, &d);
}

/* The attempt that finished has delivered each of its steps. */
static void check_steps(soak_story *s, const task *t, const line *l)
{
    soak_plan plan = soak_task_plan(t->id);
    char kind = plan.learner ? 'i' : 'd';
    for (int step = 1; step <= plan.steps; step++) {
        bool found = false;
        for (size_t i = 0; i < t->delivery_count && !found; i++) {
            const delivery *d = &t->deliveries[i];
            found = d->kind == kind && d->attempt == l->attempt && d->step == step;
        }
        if (!found) {
            broken(s, SOAK_STEPS,
                   "%s: finished in life %d, attempt %u, without step %d "
                   "of %d",
                   t->id, l->life, l->attempt, step, plan.steps);
        }
    }
}

static void check_finish(soak_story *s, task *t, const line *l)
{
    if (t->failed_life != 0) {
        broken(s, SOAK_SAME_END, "%s: failed in life %d, and finished in life %d", t->id,
               t->failed_life, l->life);
    }
    if (t->finished && (t->finish_attempt != l->attempt ||
                        t->finish_sequence != l->sequence || t->finish_crc != l->crc)) {
        broken(s, SOAK_SAME_END,
               "%s: finished at %u/%" PRIu64 ", and at %u/%" PRIu64 " in life %d", t->id,
               t->finish_attempt, t->finish_sequence, l->attempt, l->sequence, l->life);
    }
    t->finished = true;
    t->finish_attempt = l->attempt;
    t->finish_sequence = l->sequence;
    t->finish_crc = l->crc;
    check_steps(s, t, l);
}

/* ---- events ---- */

static void on_sent(soak_story *s, const line *l)
{
    if (find(s, l->task, false) != NULL) {
        broken(s, SOAK_INVENTED, "%s: was sent twice", l->task);
        return;
    }
    task *t = find(s, l->task, true);
    t->sent_life = l->life;
    t->waited = is(l, "send");
    t->texts[t->text_count++] = l->crc;
}

static void end(task *t, char how, int life)
{
    t->end = how;
    t->end_life = life;
}

static void on_unsent(task *t, const line *l)
{
    int status = atoi(l->detail);
    if (is(l, "unposted") || status == ERR_ARG || status == ERR_STATE ||
        status == ERR_BUSY || status == ERR_EXISTS) {
        t->refused = true;
    } else if (status != ERR_CLOSED) { /* else the ledger tells how far it was */
        t->known = true;
        end(t, 'x', l->life);
    }
}

static void on_resumed(soak_story *s, task *t, const line *l)
{
    bool same = false;
    s->tally.resumed++;
    for (int i = 0; i < t->text_count; i++) {
        same |= t->texts[i] == l->crc;
    }
    if (!same) {
        broken(s, SOAK_TEXTS, "%s: another text in life %d", t->id, l->life);
    }
    if (t->resumed_life == l->life) {
        broken(s, SOAK_RESUMED, "%s: twice in life %d", t->id, l->life);
    }
    if (t->open_life != l->life - 1) {
        broken(s, SOAK_RESUMED, "%s: was not open before life %d", t->id, l->life);
    }
    t->resumed_life = l->life;
}

/* Any callback but resume. */
static void on_callback(soak_story *s, task *t, const line *l)
{
    if (t->sent_life != l->life && t->resumed_life != l->life) {
        broken(s, SOAK_RESUMED, "%s: %s in life %d before its resume", t->id, l->event,
               l->life);
    }
    if (t->refused || (t->end != 0 && t->end_life == l->life)) {
        broken(s, SOAK_ENDS_ONCE, "%s: %s in life %d after its %s", t->id, l->event,
               l->life, t->refused ? "refusal" : "end");
    }
    if (is(l, "data") || is(l, "info") || is(l, "judge")) {
        on_delivery(s, t, l);
    } else if (is(l, "restart")) {
        s->tally.restarts++;
        if (l->crc != 0 && t->text_count < TEXTS_MAX) {
            t->texts[t->text_count++] = l->crc;
        }
    } else if (is(l, "finish")) {
        check_finish(s, t, l);
        end(t, 'f', l->life);
    } else if (is(l, "fail")) {
        t->failed_life = l->life;
        end(t, 'x', l->life);
    }
}

static void on_task_event(soak_story *s, const line *l)
{
    if (is(l, "post") || is(l, "send")) {
        on_sent(s, l);
        return;
    }
    task *t = find(s, l->task, false);
    if (t == NULL) {
        broken(s, SOAK_INVENTED, "%s: %s in life %d, but was never sent", l->task,
               l->event, l->life);
    } else if (is(l, "accepted")) {
        t->known = true;
    } else if (is(l, "unsent") || is(l, "unposted")) {
        on_unsent(t, l);
    } else if (is(l, "resume")) {
        t->known = true;
        on_resumed(s, t, l);
    } else if (!is(l, "cancel")) {
        t->known = true;
        on_callback(s, t, l);
    }
}

static void on_status(soak_story *s, const line *l)
{
    json_error_t why;
    json_t *status = json_loads(l->detail, 0, &why);
    json_t *counters = json_object_get(status, "counters");
    long long accepted = json_integer_value(json_object_get(counters, "accepted"));
    long long ended = json_integer_value(json_object_get(counters, "finished")) +
                      json_integer_value(json_object_get(counters, "failed"));
    long long tasks = json_integer_value(json_object_get(status, "tasks"));
    json_t *ledger = json_object_get(status, "ledger");
    if (status == NULL) {
        broken(s, SOAK_TOTALS, "no status in life %d", l->life);
    } else if (accepted < ended || accepted > ended + tasks) {
        broken(s, SOAK_TOTALS, "status in life %d: %lld accepted, %lld ended, %lld open",
               l->life, accepted, ended, tasks);
    }
    if (json_integer_value(json_object_get(ledger, "failed")) != 0) {
        broken(s, SOAK_LOG, "life %d: %s", l->life,
               json_string_value(json_object_get(ledger, "error")));
    }
    s->late_of_life = json_integer_value(json_object_get(counters, "late_results"));
    json_decref(status);
}

/* ---- lives ---- */

soak_story *soak_story_new(const char *folder)
{
    soak_story *s = calloc(1, sizeof *s);
    if (s == NULL || (s->table = calloc(TABLE_SIZE, sizeof *s->table)) == NULL) {
        abort();
    }
    (void)snprintf(s->folder, sizeof s->folder, "%s", folder);
    return s;
}

static void read_on(soak_story *s)
{
    char path[SOAK_PATH + 16];
    char *text = NULL;
    size_t size = 0;
    line l;
    (void)snprintf(path, sizeof path, "%s/host.journal", s->folder);
    if (s->journal == NULL && (s->journal = fopen(path, "re")) == NULL) {
        return; /* killed before it could write */
    }
    clearerr(s->journal);
    while (getline(&text, &size, s->journal) > 0) {
        if (!read_line(text, &l)) {
            broken(s, SOAK_INVENTED, "a line of the journal is torn: %.80s", text);
        } else if (is(&l, "status")) {
            on_status(s, &l);
        } else if (l.task[0] != '-') {
            on_task_event(s, &l);
        }
    }
    free(text);
    s->tally.late_results += s->late_of_life;
    s->late_of_life = 0;
}

/* A task that the ledger has, at the end of a life. */
static void compare_row(soak_story *s, const soak_row *row, int life)
{
    task *t = find(s, row->id, false);
    bool open = row->state == 'q' || row->state == 'r';
    if (t == NULL || t->refused) {
        broken(s, SOAK_INVENTED, "%s: the ledger has it after life %d, but it was %s",
               row->id, life, t == NULL ? "never sent" : "refused");
        return;
    }
    t->known = true;
    t->row_life = life;
    if (open) {
        t->open_life = life;
        if (t->end != 0 && t->end_life != life) {
            broken(s, SOAK_ENDS_KEPT, "%s: ended in life %d, open again after life %d",
                   t->id, t->end_life, life);
        }
        s->tally.again += t->end != 0;
        t->end = 0;
    } else if (t->end == 0 && t->waited && row->state == 'x' && t->resumed_life == 0) {
        end(t, 'x', life); /* send could not say so any more */
    } else if (t->end != row->state) {
        broken(s, SOAK_ENDS_KEPT,
               "%s: state %c in the ledger after life %d, %c (life %d) in the journal",
               t->id, row->state, life, t->end == 0 ? '-' : t->end, t->end_life);
    }
}

static void count_task(soak_story *s, task *t, int life)
{
    bool lost = t->end == 0 && t->open_life != life;
    if (!t->known) { /* killed before it was written: it never was */
        t->refused = true;
        return;
    }
    if (t->refused) {
        return;
    }
    if (lost) {
        broken(s, SOAK_KNOWN, "%s: accepted in life %d, not in the ledger after life %d",
               t->id, t->sent_life, life);
    }
    s->tally.tasks++;
    s->tally.finished += t->end == 'f';
    s->tally.failed += t->end == 'x';
    s->tally.open += t->end == 0;
}

static void count_tasks(soak_story *s, int life)
{
    s->tally.tasks = s->tally.finished = s->tally.failed = s->tally.open = 0;
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        for (task *t = s->table[i]; t != NULL; t = t->next) {
            count_task(s, t, life);
        }
    }
}

void soak_story_advance(soak_story *s, const soak_look *look)
{
    size_t open = 0;
    const soak_tally *n = &s->tally;
    read_on(s);
    if (!look->good) {
        broken(s, SOAK_LEDGER_READABLE, "after life %d: %s", look->life, look->error);
        return;
    }
    for (size_t i = 0; i < look->count; i++) {
        open += look->rows[i].state == 'q' || look->rows[i].state == 'r';
        compare_row(s, &look->rows[i], look->life);
    }
    count_tasks(s, look->life);
    if (look->accepted != look->finished + look->failed + (long long)open ||
        look->accepted != (long long)n->tasks ||
        look->finished != (long long)n->finished ||
        look->failed != (long long)n->failed) {
        broken(
            s, SOAK_TOTALS,
            "after life %d: the ledger has %lld = %lld + %lld + %zu, the journal %zu = "
            "%zu + %zu + %zu",
            look->life, look->accepted, look->finished, look->failed, open, n->tasks,
            n->finished, n->failed, n->open);
    }
}

static void read_worker(soak_story *s, const char *name)
{
    char path[SOAK_PATH + 32];
    char *text = NULL;
    size_t size = 0;
    line l;
    (void)snprintf(path, sizeof path, "%s/%s.journal", s->folder, name);
    FILE *file = fopen(path, "re");
    while (file != NULL && getline(&text, &size, file) > 0) {
        task *t = read_line(text, &l) ? find(s, l.task, false) : NULL;
        if (t == NULL || !is(&l, "start")) {
            continue;
        }
        uint64_t bit = 1ULL << (l.attempt & 63);
        if ((t->started & bit) != 0) {
            broken(s, SOAK_STARTS, "%s: attempt %u, once more at %s", t->id, l.attempt,
                   l.detail);
        }
        t->started |= bit;
    }
    free(text);
    if (file != NULL) {
        (void)fclose(file);
    }
}

void soak_story_close(soak_story *s, const soak_look *look, char *const *workers,
                      size_t count)
{
    if (s->tally.open > 0 || s->tally.tasks == 0) {
        broken(s, SOAK_KNOWN, "%zu of %zu tasks are open after life %d", s->tally.open,
               s->tally.tasks, look->life);
    }
    for (size_t i = 0; i < count; i++) {
        read_worker(s, workers[i]);
    }
}

/* ---- reports ---- */

static int failures;

void soak_report(bool good, const char *what, const char *why)
{
    failures += !good;
    (void)printf("%s - %s%s%s\n", good ? "ok" : "not ok", what, good ? "" : ": ",
                 good ? "" : why);
    (void)fflush(stdout);
}

int soak_failures(void)
{
    return failures;
}

void soak_story_report(soak_story *s)
{
    static const char *const WHAT[SOAK_RULES] = {
        [SOAK_LEDGER_READABLE] = "the ledger is whole after each life",
        [SOAK_KNOWN] = "each accepted task has ended or is in the ledger",
        [SOAK_INVENTED] = "no task is known that was not sent",
        [SOAK_TEXTS] = "tasks are resumed with the text that they had",
        [SOAK_RESUMED] = "what was open is resumed once, before all else",
        [SOAK_ONCE] = "nothing is delivered twice in one life",
        [SOAK_EQUAL] = "what is delivered again is the same",
        [SOAK_ORDER] = "attempts and sequences do not go back",
        [SOAK_ENDS_ONCE] = "nothing follows the end of a task",
        [SOAK_ENDS_KEPT] = "an end that the ledger has stays",
        [SOAK_SAME_END] = "what ended once ends again as it did",
        [SOAK_STEPS] = "finished tasks have delivered all of their steps",
        [SOAK_STARTS] = "no attempt is started twice",
        [SOAK_TOTALS] = "accepted = finished + failed + open, in ledger and journal",
        [SOAK_LOG] = "the ledger could always be written",
    };
    char why[REASONS * REASON_SIZE + 64];
    for (int rule = 0; rule < SOAK_RULES; rule++) {
        int len = snprintf(why, sizeof why, "%d times", s->breaks[rule]);
        for (int i = 0; i < s->breaks[rule] && i < REASONS; i++) {
            len += snprintf(why + len, sizeof why - (size_t)len, "\n    %s",
                            s->reasons[rule][i]);
        }
        soak_report(s->breaks[rule] == 0, WHAT[rule], why);
    }
}

const soak_tally *soak_story_tally(const soak_story *s)
{
    return &s->tally;
}
