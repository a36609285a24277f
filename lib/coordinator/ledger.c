#include "coordinator/ledger.h"

#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/ledger_sql.h"

#include <stdio.h>
#include <string.h>

enum {
    PATIENCE_MS = 30000, /* for another process, and for the check of the file */
    RETRY_MS = 1000,     /* pause before ends that could not be written are tried again */
    UNSETTLED_MAX = 10000, /* ends that are kept until they can be written */
    PRUNE_EVERY = 64,      /* ends */
    MOST_VALUES = 8
};

/* An end that could not be written. */
typedef struct unsettled {
    coordi_link link;
    uint64_t number;
    bool finished;
    char error[256];
    char cause[512];
} unsettled;

struct coordi_ledger {
    size_t refs; /* the owner's, and one for each write under way */
    coord_loop *loop;
    coordi_log log;
    coordi_records *records;
    char path[1024];
    coordi_ledger_past past;
    int64_t keep;   /* tasks that have ended */
    uint64_t ended; /* counts them, over all lives */

    size_t pending; /* writes under way */
    uint64_t written;
    uint64_t failed;
    coord_error
        trouble; /* the last failure; status COORD_OK: none since the last success */
    coordi_link unsettled;
    size_t unsettled_count;
    coordi_timer retry;
    void (*idle)(void *arg);
    void *idle_arg;
};

typedef struct ledger_write {
    coordi_record_write write;
    coordi_ledger *ledger; /* a reference */
    coordi_ledger_done_fn *done;
    void *arg;
    coordi_record_value values[MOST_VALUES];
    char texts[]; /* that they point to */
} ledger_write;

/* ---- life ---- */

static void on_retry(coordi_timer *timer);

static void unref(coordi_ledger *ledger)
{
    if (--ledger->refs > 0) {
        return;
    }
    for (coordi_link *link = coordi_list_pop(&ledger->unsettled); link != NULL;
         link = coordi_list_pop(&ledger->unsettled)) {
        coordi_free(COORDI_ITEM(link, unsettled, link));
    }
    coordi_ledger_free_past(&ledger->past);
    coordi_free(ledger);
}

static coord_status open_records(coordi_ledger *ledger, const coordi_config *config,
                                 coord_error *err)
{
    coordi_records_spec spec = {
        .path = config->ledger,
        .what = "ledger",
        .application = COORDI_LEDGER_APPLICATION,
        .version = COORDI_LEDGER_VERSION,
        .schema = coordi_ledger_schema,
        .statements = coordi_ledger_statements,
        .statement_count = COORDI_SQL_COUNT,
        .sync_full = strcmp(config->ledger_sync, "full") == 0,
        .patience_ms = PATIENCE_MS,
    };
    return ledger->loop->env->records_open(ledger->loop, &spec, &ledger->records, err);
}

coord_status coordi_ledger_open(coord_loop *loop, const coordi_config *config,
                                const coordi_log *log, coordi_ledger **ret,
                                coord_error *err)
{
    bool has_key = false;
    coordi_ledger *ledger = coordi_zalloc(sizeof *ledger);
    if (ledger == NULL) {
        return coordi_fail_nomem(err, "ledger");
    }
    ledger->refs = 1;
    ledger->loop = loop;
    ledger->log = *log;
    ledger->keep = config->ledger_keep;
    ledger->retry.fire = on_retry;
    coordi_list_init(&ledger->unsettled);
    coordi_list_init(&ledger->past.tasks);
    coordi_list_init(&ledger->past.workers);
    (void)snprintf(ledger->path, sizeof ledger->path, "%s", config->ledger);
    coord_status rc = open_records(ledger, config, err);
    if (rc == COORD_OK) {
        rc = coordi_ledger_read(loop, ledger->records, &ledger->past, &ledger->ended,
                                &has_key, err);
    }
    if (rc != COORD_OK) {
        coordi_ledger_close(ledger);
        return rc;
    }
    if (!has_key) { /* a new file: it is written with the first address */
        loop->env->random(loop, ledger->past.key.bytes, sizeof ledger->past.key.bytes);
    }
    *ret = ledger;
    return COORD_OK;
}

void coordi_ledger_close(coordi_ledger *ledger)
{
    if (ledger == NULL) {
        return;
    }
    if (coordi_timer_is_set(&ledger->retry)) {
        coordi_timer_stop(ledger->loop, &ledger->retry);
    }
    if (ledger->unsettled_count > 0) {
        COORDI_LOG(&ledger->log, COORD_LOG_ERROR,
                   "ledger closed file=%s unwritten_ends=%zu why=\"%s\"", ledger->path,
                   ledger->unsettled_count, ledger->trouble.text);
    }
    ledger->idle = NULL;
    ledger->log.sink = NULL; /* its owner may be gone when the last writes are told */
    ledger->loop->env->records_close(ledger->records);
    ledger->records = NULL;
    unref(ledger);
}

coordi_ledger_past *coordi_ledger_get_past(coordi_ledger *ledger)
{
    return &ledger->past;
}

void coordi_ledger_forget_past(coordi_ledger *ledger)
{
    coordi_ledger_free_past(&ledger->past);
}

void coordi_ledger_on_idle(coordi_ledger *ledger, void (*idle)(void *arg), void *arg)
{
    ledger->idle = idle;
    ledger->idle_arg = arg;
}

bool coordi_ledger_is_idle(const coordi_ledger *ledger)
{
    return ledger->pending == 0;
}

/* ---- writing ---- */

static void note_outcome(coordi_ledger *ledger, const coord_error *failure)
{
    ledger->pending--;
    if (failure == NULL) {
        ledger->written++;
        ledger->trouble.status = COORD_OK;
        return;
    }
    ledger->failed++;
    if (ledger->trouble.status == COORD_OK) { /* else it was said before */
        COORDI_LOG(&ledger->log, COORD_LOG_ERROR,
                   "ledger does not write file=%s why=\"%s\" cause=\"%s\"", ledger->path,
                   failure->text, failure->cause);
    }
    ledger->trouble = *failure;
}

static void on_done(coordi_record_write *write, const coord_error *failure)
{
    ledger_write *w = COORDI_ITEM(write, ledger_write, write);
    coordi_ledger *ledger = w->ledger;
    note_outcome(ledger, failure);
    if (w->done != NULL) {
        w->done(failure, w->arg);
    }
    coordi_free(w);
    if (ledger->pending == 0 && ledger->idle != NULL) {
        ledger->idle(ledger->idle_arg);
    }
    unref(ledger);
}

/* Copies the values with all that they point to. */
static ledger_write *pack(const coordi_record_value *values, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += values[i].kind == COORDI_RECORD_TEXT ? values[i].text.len : 0;
    }
    ledger_write *w = coordi_zalloc(sizeof *w + bytes);
    char *at = w == NULL ? NULL : w->texts;
    for (size_t i = 0; w != NULL && i < count; i++) {
        w->values[i] = values[i];
        if (values[i].kind == COORDI_RECORD_TEXT && values[i].text.len > 0) {
            memcpy(at, values[i].text.ptr, values[i].text.len);
            w->values[i].text.ptr = at;
            at += values[i].text.len;
        }
    }
    return w;
}

static coord_status write(coordi_ledger *ledger, coordi_ledger_statement statement,
                          const coordi_record_value *values, size_t count,
                          coordi_ledger_done_fn *done, void *arg, coord_error *err)
{
    ledger_write *w = pack(values, count);
    if (w == NULL) {
        return coordi_fail_nomem(err, "ledger");
    }
    w->ledger = ledger;
    w->done = done;
    w->arg = arg;
    w->write.statement = statement;
    w->write.values = w->values;
    w->write.count = count;
    w->write.done = on_done;
    ledger->refs++;
    ledger->pending++;
    ledger->loop->env->records_write(ledger->records, &w->write);
    return COORD_OK;
}

/* One that nobody waits for. */
static void note(coordi_ledger *ledger, coordi_ledger_statement statement,
                 const coordi_record_value *values, size_t count)
{
    coord_error err;
    if (write(ledger, statement, values, count, NULL, NULL, &err) != COORD_OK) {
        ledger->failed++;
        COORDI_LOG(&ledger->log, COORD_LOG_ERROR,
                   "ledger does not write file=%s why=\"%s\"", ledger->path, err.text);
    }
}

/* ---- tasks ---- */

coord_status coordi_ledger_accept(coordi_ledger *ledger, uint64_t number, const char *id,
                                  coord_role role, coord_text task,
                                  coordi_ledger_done_fn *done, void *arg,
                                  coord_error *err)
{
    const coordi_record_value values[] = {
        coordi_number(number),
        coordi_string(id),
        coordi_string(coord_role_str(role)),
        coordi_number((uint64_t)ledger->loop->env->wall_ms(ledger->loop)),
        coordi_text(task),
    };
    return write(ledger, COORDI_SQL_ACCEPT, values, 5, done, arg, err);
}

enum { ATTEMPT_VALUES = 7, REQUEUE_VALUES = 6 };

static void attempt_values(const coordi_ledger_attempt *what,
                           coordi_record_value values[ATTEMPT_VALUES])
{
    values[0] = coordi_number(what->number);
    values[1] = coordi_number(what->attempt);
    values[2] = coordi_number(what->losses);
    values[3] = coordi_string(what->worker);
    values[4] = coordi_string(what->resource);
    values[5] = coordi_string(what->past);
    values[6] = coordi_string(what->token);
}

coord_status coordi_ledger_begin(coordi_ledger *ledger, const coordi_ledger_attempt *what,
                                 coordi_ledger_done_fn *done, void *arg, coord_error *err)
{
    coordi_record_value values[ATTEMPT_VALUES];
    attempt_values(what, values);
    return write(ledger, COORDI_SQL_BEGIN, values, ATTEMPT_VALUES, done, arg, err);
}

void coordi_ledger_requeue(coordi_ledger *ledger, const coordi_ledger_attempt *what)
{
    coordi_record_value values[ATTEMPT_VALUES];
    attempt_values(what, values);
    note(ledger, COORDI_SQL_REQUEUE, values, REQUEUE_VALUES);
}

void coordi_ledger_replace_text(coordi_ledger *ledger, uint64_t number, coord_text task)
{
    const coordi_record_value values[] = {coordi_number(number), coordi_text(task)};
    note(ledger, COORDI_SQL_REPLACE_TEXT, values, 2);
}

coord_status coordi_ledger_result(coordi_ledger *ledger, const coordi_ticket *ticket,
                                  bool completed, coord_text result,
                                  coordi_ledger_done_fn *done, void *arg,
                                  coord_error *err)
{
    const coordi_record_value values[] = {
        coordi_number(ticket->task),
        coordi_number(ticket->attempt),
        coordi_number(ticket->sequence),
        coordi_string(coordi_ledger_request_str(ticket->kind)),
        coordi_number(completed),
        coordi_text(result),
    };
    return write(ledger, COORDI_SQL_RESULT, values, 6, done, arg, err);
}

/* ---- ends ---- */

coord_status coordi_ledger_fail(coordi_ledger *ledger, uint64_t number,
                                const coord_error *why, coordi_ledger_done_fn *done,
                                void *arg, coord_error *err)
{
    const coordi_record_value values[] = {
        coordi_number(number),
        coordi_number((uint64_t)why->status),
        coordi_string(why->text),
        coordi_string(why->cause),
    };
    return write(ledger, COORDI_SQL_FAIL, values, 4, done, arg, err);
}

static coord_status write_end(coordi_ledger *ledger, const unsettled *end,
                              coordi_ledger_done_fn *done, void *arg, coord_error *err)
{
    const coordi_record_value none = {.kind = COORDI_RECORD_NULL};
    const coordi_record_value values[] = {
        coordi_number(end->number),
        coordi_string(end->finished ? "finished" : "failed"),
        end->finished ? none : coordi_string(end->error),
        end->finished ? none : coordi_string(end->cause),
        coordi_number((uint64_t)ledger->loop->env->wall_ms(ledger->loop)),
        coordi_number(ledger->ended + 1),
    };
    coord_status rc = write(ledger, COORDI_SQL_END, values, 6, done, arg, err);
    if (rc != COORD_OK) {
        return rc;
    }
    ledger->ended++;
    if (ledger->ended % PRUNE_EVERY == 0 && ledger->ended > (uint64_t)ledger->keep) {
        const coordi_record_value last[] = {
            coordi_number(ledger->ended - (uint64_t)ledger->keep)};
        note(ledger, COORDI_SQL_PRUNE, last, 1);
    }
    return COORD_OK;
}

/* An end on its way; kept until it is written. */
typedef struct ending {
    coordi_ledger *ledger;
    unsettled *end; /* owned */
    coordi_ledger_done_fn *done;
    void *arg;
} ending;

static void keep_for_later(coordi_ledger *ledger, unsettled *end)
{
    if (ledger->records == NULL || ledger->unsettled_count >= UNSETTLED_MAX) {
        COORDI_LOG(&ledger->log, COORD_LOG_ERROR,
                   "ledger forgets the end of a task file=%s number=%llu", ledger->path,
                   (unsigned long long)end->number);
        coordi_free(end);
        return;
    }
    coordi_list_append(&ledger->unsettled, &end->link);
    ledger->unsettled_count++;
    if (!coordi_timer_is_set(&ledger->retry)) {
        coordi_timer_in(ledger->loop, &ledger->retry, RETRY_MS);
    }
}

static void on_ended(const coord_error *failure, void *arg)
{
    ending *e = arg;
    if (failure == NULL) {
        coordi_free(e->end);
    } else {
        keep_for_later(e->ledger, e->end);
    }
    if (e->done != NULL) {
        e->done(failure, e->arg);
    }
    coordi_free(e);
}

/* Takes `end` over, unless it fails. */
static coord_status settle(coordi_ledger *ledger, unsettled *end,
                           coordi_ledger_done_fn *done, void *arg, coord_error *err)
{
    ending *e = coordi_alloc(sizeof *e);
    if (e == NULL) {
        return coordi_fail_nomem(err, "ledger");
    }
    *e = (ending){ledger, end, done, arg};
    coord_status rc = write_end(ledger, end, on_ended, e, err);
    if (rc != COORD_OK) {
        coordi_free(e);
    }
    return rc;
}

static void on_retry(coordi_timer *timer)
{
    coordi_ledger *ledger = COORDI_ITEM(timer, coordi_ledger, retry);
    size_t count = ledger->unsettled_count; /* those that fail again come back behind */
    for (size_t i = 0; i < count; i++) {
        coordi_link *link = coordi_list_pop(&ledger->unsettled);
        unsettled *end = COORDI_ITEM(link, unsettled, link);
        ledger->unsettled_count--;
        if (settle(ledger, end, NULL, NULL, NULL) != COORD_OK) {
            keep_for_later(ledger, end);
        }
    }
}

coord_status coordi_ledger_end(coordi_ledger *ledger, uint64_t number,
                               const coord_error *why, coordi_ledger_done_fn *done,
                               void *arg, coord_error *err)
{
    unsettled *end = coordi_zalloc(sizeof *end);
    if (end == NULL) {
        return coordi_fail_nomem(err, "ledger");
    }
    end->number = number;
    end->finished = why == NULL;
    if (why != NULL) {
        (void)snprintf(end->error, sizeof end->error, "%s", why->text);
        (void)snprintf(end->cause, sizeof end->cause, "%s", why->cause);
    }
    coord_status rc = settle(ledger, end, done, arg, err);
    if (rc != COORD_OK) {
        keep_for_later(ledger, end);
    }
    return rc;
}

/* ---- workers ---- */

void coordi_ledger_listening(coordi_ledger *ledger, const char *address, uint16_t port)
{
    char key[2 * sizeof ledger->past.key.bytes + 1];
    char digits[8];
    for (size_t i = 0; i < sizeof ledger->past.key.bytes; i++) {
        (void)snprintf(key + 2 * i, 3, "%02x", ledger->past.key.bytes[i]);
    }
    (void)snprintf(digits, sizeof digits, "%u", (unsigned)port);
    const coordi_record_value pairs[][2] = {
        {coordi_string("key"), coordi_string(key)},
        {coordi_string("address"), coordi_string(address)},
        {coordi_string("port"), coordi_string(digits)},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        note(ledger, COORDI_SQL_ABOUT, pairs[i], 2);
    }
}

void coordi_ledger_connected(coordi_ledger *ledger, const coordi_ledger_worker *w)
{
    const coordi_record_value values[] = {
        coordi_string(coord_role_str(w->role)),
        coordi_string(w->id),
        coordi_string(w->host),
        coordi_number(w->port),
        coordi_number(w->marked),
        coordi_string(w->token),
    };
    note(ledger, COORDI_SQL_CONNECTED, values, 6);
}

void coordi_ledger_lost(coordi_ledger *ledger, const char *token)
{
    const coordi_record_value value = coordi_string(token);
    note(ledger, COORDI_SQL_LOST, &value, 1);
}

void coordi_ledger_parted(coordi_ledger *ledger, const char *token)
{
    const coordi_record_value value = coordi_string(token);
    note(ledger, COORDI_SQL_PARTED, &value, 1);
}

/* ---- looking ---- */

const coord_error *coordi_ledger_trouble(const coordi_ledger *ledger)
{
    return ledger == NULL || ledger->trouble.status == COORD_OK ? NULL : &ledger->trouble;
}

void coordi_ledger_print(const coordi_ledger *ledger, coordi_buf *buf)
{
    coordi_buf_adds(buf, "{\"file\": ");
    coordi_buf_add_json(buf, ledger->path, strlen(ledger->path));
    coordi_buf_addf(buf,
                    ", \"written\": %llu, \"pending\": %zu, \"failed\": %llu, "
                    "\"unwritten_ends\": %zu, \"error\": ",
                    (unsigned long long)ledger->written, ledger->pending,
                    (unsigned long long)ledger->failed, ledger->unsettled_count);
    if (ledger->trouble.status == COORD_OK) {
        coordi_buf_adds(buf, "null}");
    } else {
        coordi_buf_add_json(buf, ledger->trouble.text, strlen(ledger->trouble.text));
        coordi_buf_adds(buf, "}");
    }
}
