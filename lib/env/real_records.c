#include "env/real_records.h"

#include "base/alloc.h"
#include "base/error.h"

/* Vocabulary
 *   opener  the thread that is in records_open()
 *   batch   what is written as one transaction
 *
 * The thread is started first, and watches while the opener checks the file: that can
 * take long, and nothing but another thread can interrupt it. Then the connection is
 * handed over: the readers have it until the first write, the thread from then on. The
 * thread closes the file as well, which may mean to write a lot, and is then joined by
 * its last job on the loop. */

enum {
    BATCH_WRITES = 4096,
    BATCH_BYTES = 16 << 20 /* of text; the write that passes it is the last */
};

/* ---- the thread ---- */

static size_t size_of(const coordi_record_write *write)
{
    size_t size = 0;
    for (size_t i = 0; i < write->count; i++) {
        const coordi_record_value *value = &write->values[i];
        size += value->kind == COORDI_RECORD_TEXT ? value->text.len : 0;
    }
    return size;
}

static void take_batch_locked(coordi_records *records, coordi_link *batch)
{
    size_t bytes = 0;
    coordi_list_init(batch);
    for (int i = 0; i < BATCH_WRITES && bytes < BATCH_BYTES; i++) {
        coordi_link *link = coordi_list_pop(&records->queue);
        if (link == NULL) {
            break;
        }
        coordi_list_append(batch, link);
        bytes += size_of(COORDI_ITEM(link, coordi_record_write, job.link));
    }
}

static void write_batch(coordi_records *records, coordi_link *batch)
{
    coordi_sql_write_all(&records->sql, batch);
    for (coordi_link *link = coordi_list_pop(batch); link != NULL;
         link = coordi_list_pop(batch)) {
        coordi_post(records->loop, COORDI_ITEM(link, coordi_job, link));
    }
}

/* False: it is over. */
static bool turn_locked(coordi_records *records)
{
    if (records->checking) {
        const bool late = !coordi_real_cond_wait(&records->wake, &records->lock,
                                                 records->check_until_ms);
        if (late && records->checking) {
            sqlite3_interrupt(records->sql.db);
            records->checking = false;
        }
        return true;
    }
    if (!coordi_list_empty(&records->queue)) {
        coordi_link batch;
        take_batch_locked(records, &batch);
        (void)pthread_mutex_unlock(&records->lock);
        write_batch(records, &batch);
        (void)pthread_mutex_lock(&records->lock);
        return true;
    }
    if (records->closing || records->abandoned) {
        return false;
    }
    (void)coordi_real_cond_wait(&records->wake, &records->lock, INT64_MAX);
    return true;
}

static void thread_main(void *arg)
{
    coordi_records *records = arg;
    (void)pthread_mutex_lock(&records->lock);
    while (turn_locked(records)) {
    }
    const bool abandoned = records->abandoned;
    (void)pthread_mutex_unlock(&records->lock);
    if (!abandoned) {
        coordi_sql_close(&records->sql);
        coordi_claim_release(records->claim);
        coordi_post(records->loop, &records->reap);
    }
}

void coordi_real_records_watch(coordi_records *records, int64_t deadline_ms)
{
    (void)pthread_mutex_lock(&records->lock);
    records->checking = true;
    records->check_until_ms = deadline_ms;
    (void)pthread_cond_signal(&records->wake);
    (void)pthread_mutex_unlock(&records->lock);
}

void coordi_real_records_unwatch(coordi_records *records)
{
    (void)pthread_mutex_lock(&records->lock);
    records->checking = false;
    (void)pthread_cond_signal(&records->wake);
    (void)pthread_mutex_unlock(&records->lock);
}

/* ---- made and freed ---- */

static void records_free(coordi_records *records)
{
    coordi_free(records->what);
    coordi_free(records->path);
    coordi_free(records);
}

static void discard(coordi_records *records)
{
    coord_loop *loop = records->loop;
    (void)pthread_cond_destroy(&records->wake);
    (void)pthread_mutex_destroy(&records->lock);
    records_free(records);
    coordi_loop_unref(loop);
}

static void reap(coordi_job *job)
{
    coordi_records *records = COORDI_ITEM(job, coordi_records, reap);
    coordi_real_thread_join(records->thread);
    discard(records);
}

static coordi_records *make(coord_loop *loop, const coordi_records_spec *spec)
{
    coordi_records *records = coordi_zalloc(sizeof *records);
    if (records == NULL) {
        return NULL;
    }
    records->what = coordi_strdup(spec->what);
    records->path = coordi_strdup(spec->path);
    if (records->what == NULL || records->path == NULL ||
        pthread_mutex_init(&records->lock, NULL) != 0) {
        records_free(records);
        return NULL;
    }
    if (!coordi_real_cond_init(&records->wake)) {
        (void)pthread_mutex_destroy(&records->lock);
        records_free(records);
        return NULL;
    }
    records->loop = coordi_loop_ref(loop);
    records->patience_ms = spec->patience_ms;
    records->reap.run = reap;
    records->sql.what = records->what;
    records->sql.path = records->path;
    coordi_list_init(&records->queue);
    return records;
}

static void abandon(coordi_records *records)
{
    if (records->thread != NULL) {
        (void)pthread_mutex_lock(&records->lock);
        records->abandoned = true;
        (void)pthread_cond_signal(&records->wake);
        (void)pthread_mutex_unlock(&records->lock);
        coordi_real_thread_join(records->thread);
    }
    coordi_sql_close(&records->sql);
    coordi_claim_release(records->claim);
    discard(records);
}

coord_status coordi_real_records_open(coord_loop *loop, const coordi_records_spec *spec,
                                      coordi_records **ret, coord_error *err)
{
    if (spec->path == NULL || spec->path[0] == '\0') {
        return coordi_fail(err, COORD_ERR_ARG, "%s: expected a path, found none",
                           spec->what);
    }
    if (sqlite3_threadsafe() == 0) {
        return coordi_fail(err, COORD_ERR_UNSUPPORTED,
                           "%s: this SQLite was built for programs without threads",
                           spec->what);
    }
    const int64_t deadline = coordi_deadline(loop, spec->patience_ms);
    coordi_records *records = make(loop, spec);
    if (records == NULL) {
        return coordi_fail_nomem(err, spec->what);
    }
    coord_status rc =
        coordi_claim_take(spec->what, spec->path, deadline, &records->claim, err);
    if (rc == COORD_OK) {
        rc = coordi_real_thread_start(loop, "coord-records", thread_main, records,
                                      &records->thread, err);
    }
    if (rc == COORD_OK) {
        rc = coordi_real_records_open_file(records, spec, deadline, err);
    }
    if (rc != COORD_OK) {
        abandon(records);
        return rc;
    }
    *ret = records;
    return COORD_OK;
}

/* In a forked child there is no thread, and no lock to trust; and SQLite must not notice
 * that its connection has been copied. */
static void leave_to_parent(coordi_records *records)
{
    coord_loop *loop = records->loop;
    coordi_claim_disown(records->claim);
    coordi_free(records->sql.statements);
    records_free(records);
    coordi_loop_unref(loop);
}

void coordi_real_records_close(coordi_records *records)
{
    if (records == NULL) {
        return;
    }
    if (coordi_check_fork(records->loop, records->what, NULL) != COORD_OK) {
        leave_to_parent(records);
        return;
    }
    (void)pthread_mutex_lock(&records->lock);
    records->closing = true;
    (void)pthread_cond_signal(&records->wake);
    (void)pthread_mutex_unlock(&records->lock);
}

/* ---- reading and writing ---- */

coord_status coordi_real_records_read(coordi_records *records, size_t statement,
                                      const coordi_record_value *values, size_t count,
                                      coordi_record_row_fn *row, void *arg,
                                      coord_error *err)
{
    coord_status rc = coordi_check_fork(records->loop, records->what, err);
    if (rc != COORD_OK) {
        return rc;
    }
    (void)pthread_mutex_lock(&records->lock);
    const bool written = records->written;
    (void)pthread_mutex_unlock(&records->lock);
    if (written) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "%s '%.140s': read after the first write", records->what,
                           records->path);
    }
    int64_t deadline = coordi_deadline(records->loop, records->patience_ms);
    coord_error why;
    coordi_real_records_limit(&records->sql, &deadline);
    rc = coordi_sql_read(&records->sql, statement, values, count, row, arg, &why);
    coordi_real_records_limit(&records->sql, NULL);
    if (rc == COORD_ERR_TIMEOUT) {
        return coordi_fail_because(
            err, rc, &why, "%s '%.140s' could not be read within %lld ms", records->what,
            records->path, (long long)records->patience_ms);
    }
    return rc == COORD_OK ? rc : coordi_fail_copy(err, &why);
}

void coordi_real_records_write(coordi_records *records, coordi_record_write *write)
{
    (void)pthread_mutex_lock(&records->lock);
    records->written = true;
    coordi_sql_enlist(write, &records->queue);
    (void)pthread_cond_signal(&records->wake);
    (void)pthread_mutex_unlock(&records->lock);
}
