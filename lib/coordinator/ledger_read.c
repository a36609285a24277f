/* What an earlier life left in the ledger. */
#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/ledger_sql.h"

#include <stdlib.h>
#include <string.h>

typedef struct reading {
    coordi_ledger_past *past;
    uint64_t *ended;
    bool *has_key;
    coord_status status; /* of the first row that could not be taken */
    coord_error *err;
} reading;

/* ---- values ---- */

static bool is(const coordi_record_value *value, const char *word)
{
    return value->kind == COORDI_RECORD_TEXT && value->text.len == strlen(word) &&
           memcmp(value->text.ptr, word, value->text.len) == 0;
}

static uint64_t number_of(const coordi_record_value *value)
{
    return value->kind == COORDI_RECORD_NUMBER && value->number > 0
               ? (uint64_t)value->number
               : 0;
}

static bool copy_fixed(const coordi_record_value *value, char *out, size_t size)
{
    if (value->kind != COORDI_RECORD_TEXT || value->text.len >= size) {
        return false;
    }
    memcpy(out, value->text.ptr, value->text.len);
    out[value->text.len] = '\0';
    return true;
}

/* NULL values become "". */
static char *copy(const coordi_record_value *value, size_t *len)
{
    size_t has = value->kind == COORDI_RECORD_TEXT ? value->text.len : 0;
    if (len != NULL) {
        *len = has;
    }
    return coordi_memdup(has == 0 ? "" : value->text.ptr, has);
}

static bool fail(reading *r, coord_status status, const char *what)
{
    r->status = coordi_fail(r->err, status, "ledger: %s", what);
    return false;
}

/* ---- rows ---- */

static bool hex_key(const coordi_record_value *value, coordi_ticket_key *key)
{
    char text[2 * sizeof key->bytes + 1];
    unsigned int byte;
    if (!copy_fixed(value, text, sizeof text) || strlen(text) != sizeof text - 1) {
        return false;
    }
    for (size_t i = 0; i < sizeof key->bytes; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};
        char *end;
        byte = (unsigned int)strtoul(pair, &end, 16);
        if (*end != '\0') {
            return false;
        }
        key->bytes[i] = (unsigned char)byte;
    }
    return true;
}

static bool on_about(const coordi_record_value *values, size_t count, void *arg)
{
    reading *r = arg;
    (void)count;
    if (is(&values[0], "key")) {
        *r->has_key = hex_key(&values[1], &r->past->key);
        return *r->has_key || fail(r, COORD_ERR_FORMAT, "its key is not 32 hex digits");
    }
    if (is(&values[0], "address")) {
        (void)copy_fixed(&values[1], r->past->address, sizeof r->past->address);
    } else if (is(&values[0], "port")) {
        char text[8];
        if (copy_fixed(&values[1], text, sizeof text)) {
            r->past->port = (uint16_t)strtoul(text, NULL, 10);
        }
    }
    return true;
}

static bool on_last(const coordi_record_value *values, size_t count, void *arg)
{
    reading *r = arg;
    (void)count;
    r->past->last_number = number_of(&values[0]);
    *r->ended = number_of(&values[1]);
    return true;
}

static bool on_total(const coordi_record_value *values, size_t count, void *arg)
{
    coordi_ledger_past *past = ((reading *)arg)->past;
    uint64_t *to = is(&values[0], "accepted")   ? &past->accepted
                   : is(&values[0], "finished") ? &past->finished
                   : is(&values[0], "failed")   ? &past->failed
                   : is(&values[0], "moved")    ? &past->moved
                                                : NULL;
    (void)count;
    if (to != NULL) {
        *to = number_of(&values[1]);
    }
    return true;
}

static void free_task(coordi_ledger_task *task)
{
    coordi_free(task->id);
    coordi_free(task->worker);
    coordi_free(task->resource);
    coordi_free(task->past);
    coordi_free(task->token);
    coordi_free(task->error);
    coordi_free(task->cause);
    coordi_free(task->result);
    coordi_free(task->task);
    coordi_free(task);
}

static coordi_ticket_kind request_of(const coordi_record_value *value)
{
    coordi_ticket_kind kind = COORDI_TICKET_START;
    while (kind < COORDI_TICKET_CLOSE && !is(value, coordi_ledger_request_str(kind))) {
        kind++;
    }
    return kind;
}

static bool on_task(const coordi_record_value *values, size_t count, void *arg)
{
    reading *r = arg;
    coordi_ledger_task *t = coordi_zalloc(sizeof *t);
    (void)count;
    if (t == NULL) {
        return fail(r, COORD_ERR_NOMEM, "out of memory for its tasks");
    }
    t->number = number_of(&values[0]);
    t->id = copy(&values[1], NULL);
    t->role =
        is(&values[2], coord_role_str(COORD_LEARNER)) ? COORD_LEARNER : COORD_COLLECTOR;
    t->running = number_of(&values[3]) != 0;
    t->attempt = (uint32_t)number_of(&values[4]);
    t->losses = (uint32_t)number_of(&values[5]);
    t->worker = copy(&values[6], NULL);
    t->resource = copy(&values[7], NULL);
    t->past = copy(&values[8], NULL);
    t->sequence = number_of(&values[9]);
    t->request = request_of(&values[10]);
    t->completed = number_of(&values[11]) != 0;
    t->result = copy(&values[12], &t->result_len);
    t->task = copy(&values[13], &t->task_len);
    t->token = copy(&values[14], NULL);
    t->fails = (coord_status)number_of(&values[15]);
    t->error = copy(&values[16], NULL);
    t->cause = copy(&values[17], NULL);
    if (t->id == NULL || t->worker == NULL || t->resource == NULL || t->past == NULL ||
        t->result == NULL || t->task == NULL || t->token == NULL || t->error == NULL ||
        t->cause == NULL) {
        free_task(t);
        return fail(r, COORD_ERR_NOMEM, "out of memory for its tasks");
    }
    coordi_list_append(&r->past->tasks, &t->link);
    return true;
}

static bool on_worker(const coordi_record_value *values, size_t count, void *arg)
{
    reading *r = arg;
    coordi_ledger_worker *w = coordi_zalloc(sizeof *w);
    (void)count;
    if (w == NULL) {
        return fail(r, COORD_ERR_NOMEM, "out of memory for its workers");
    }
    w->role =
        is(&values[0], coord_role_str(COORD_LEARNER)) ? COORD_LEARNER : COORD_COLLECTOR;
    w->port = (uint16_t)number_of(&values[3]);
    w->connected = number_of(&values[4]) != 0;
    w->marked = number_of(&values[5]) != 0;
    if (!copy_fixed(&values[1], w->id, sizeof w->id) ||
        !copy_fixed(&values[2], w->host, sizeof w->host) ||
        !copy_fixed(&values[6], w->token, sizeof w->token)) {
        coordi_free(w);
        return fail(r, COORD_ERR_FORMAT, "a worker's id, host or token is too long");
    }
    coordi_list_append(&r->past->workers, &w->link);
    return true;
}

/* ---- all of it ---- */

void coordi_ledger_free_past(coordi_ledger_past *past)
{
    for (coordi_link *link = coordi_list_pop(&past->tasks); link != NULL;
         link = coordi_list_pop(&past->tasks)) {
        free_task(COORDI_ITEM(link, coordi_ledger_task, link));
    }
    for (coordi_link *link = coordi_list_pop(&past->workers); link != NULL;
         link = coordi_list_pop(&past->workers)) {
        coordi_free(COORDI_ITEM(link, coordi_ledger_worker, link));
    }
}

coord_status coordi_ledger_read(coord_loop *loop, coordi_records *records,
                                coordi_ledger_past *past, uint64_t *ended, bool *has_key,
                                coord_error *err)
{
    static const struct {
        coordi_ledger_statement statement;
        coordi_record_row_fn *row;
    } QUERIES[] = {
        {COORDI_SQL_GET_ABOUT, on_about},    {COORDI_SQL_GET_LAST, on_last},
        {COORDI_SQL_GET_TOTALS, on_total},   {COORDI_SQL_GET_TASKS, on_task},
        {COORDI_SQL_GET_WORKERS, on_worker},
    };
    reading r = {past, ended, has_key, COORD_OK, err};
    coord_status rc = COORD_OK;
    coordi_list_init(&past->tasks);
    coordi_list_init(&past->workers);
    for (size_t i = 0; rc == COORD_OK && i < sizeof QUERIES / sizeof QUERIES[0]; i++) {
        rc = loop->env->records_read(records, QUERIES[i].statement, NULL, 0,
                                     QUERIES[i].row, &r, err);
        rc = rc == COORD_OK ? r.status : rc;
    }
    return rc;
}
