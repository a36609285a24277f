#include "env/sim_records.h"

#include "base/alloc.h"
#include "base/error.h"
#include "env/sql.h"

#include <errno.h>

/* Durable records of the simulated world: a database in memory for each path, which stays
 * in the world whatever becomes of the loops.
 *
 * Vocabulary
 *   store   what is at a path; survives crashes
 *   disk    the actor of an open handle: some time after the first write was handed over
 *           it carries out all that have gathered, and posts their outcomes
 *   lost    a handle whose process has crashed: the store is another's, or nobody's
 *
 * A lost handle and one whose process is destroyed in an abandoned world wait for no
 * clock. SQLite is called under the world's lock, but for reading, where rows are handed
 * to code that is not ours: so its connections have locks of their own. */

enum { DISK_MAX_MS = 4 /* from the first write to the disk's turn */ };

static const char STORE[] = "records"; /* what a store that nobody has is called */

typedef struct store {
    coordi_sql sql; /* the connection; its statements are the handles' */
    coordi_records *holder;
    char path[];
} store;

struct coordi_records {
    coordi_sim_loop *loop; /* a reference */
    coordi_link link;      /* in the loop's records */
    store *store;          /* NULL: lost */
    coordi_sql sql;        /* the store's connection, statements of its own */
    coordi_sim_actor disk;
    coordi_link queue;
    coordi_job reap;
    char *what;
    bool waits;   /* the disk will have its turn */
    bool written; /* no more reads */
    bool closed;
    bool over; /* ... and its last job is on its way */
    char path[];
};

/* ---- stores ---- */

static void store_free(store *s)
{
    coordi_sql_close(&s->sql);
    coordi_free(s);
}

void coordi_sim_records_done(coord_sim *sim)
{
    size_t at = 0;
    store *s;
    while ((s = coordi_map_next(&sim->stores, &at)) != NULL) {
        store_free(s);
    }
    coordi_map_done(&sim->stores);
}

static coord_status store_fill(store *s, const coordi_records_spec *spec,
                               coord_error *err)
{
    static const int FLAGS = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
                             SQLITE_OPEN_MEMORY | SQLITE_OPEN_FULLMUTEX;
    s->sql.what = spec->what;
    coord_status rc = coordi_sql_open(&s->sql, ":memory:", FLAGS, NULL, err);
    if (rc == COORD_OK) {
        rc = coordi_sql_create(&s->sql, spec, err);
    }
    s->sql.what = STORE;
    return rc;
}

static coord_status store_make(coord_sim *sim, const coordi_records_spec *spec,
                               store **ret, coord_error *err)
{
    if (sim->disk_full) {
        return coordi_fail_errno(err, ENOSPC, "%s '%.140s': create its tables",
                                 spec->what, spec->path);
    }
    if (coordi_map_get(&sim->files, spec->path) != NULL) {
        return coordi_fail(err, COORD_ERR_FORMAT,
                           "%s '%.140s' is a plain file, expected a SQLite file",
                           spec->what, spec->path);
    }
    const size_t size = strlen(spec->path) + 1;
    store *s = coordi_zalloc(sizeof *s + size);
    if (s == NULL) {
        return coordi_fail_nomem(err, spec->what);
    }
    memcpy(s->path, spec->path, size);
    s->sql.path = s->path;
    coord_status rc = store_fill(s, spec, err);
    if (rc == COORD_OK && !coordi_map_put(&sim->stores, spec->path, s)) {
        rc = coordi_fail_nomem(err, spec->what);
    }
    if (rc != COORD_OK) {
        store_free(s);
        return rc;
    }
    *ret = s;
    return COORD_OK;
}

/* ---- the disk ---- */

static void mix_write(coord_sim *sim, const coordi_record_write *write)
{
    coordi_sim_mix(sim, &write->statement, sizeof write->statement);
    for (size_t i = 0; i < write->count; i++) {
        const coordi_record_value *value = &write->values[i];
        coordi_sim_mix(sim, &value->kind, sizeof value->kind);
        if (value->kind == COORDI_RECORD_NUMBER) {
            coordi_sim_mix(sim, &value->number, sizeof value->number);
        } else if (value->kind == COORDI_RECORD_TEXT) {
            coordi_sim_mix(sim, value->text.ptr, value->text.len);
        }
    }
}

static void carry_out(coordi_records *records)
{
    coord_sim *sim = records->loop->sim;
    coord_error why;
    if (records->store == NULL) {
        (void)coordi_fail(&why, COORD_ERR_LOST, "%s '%.140s': the process has crashed",
                          records->what, records->path);
        coordi_sql_fail_all(&records->queue, &why);
    } else if (sim->disk_full) {
        (void)coordi_fail_errno(&why, ENOSPC, "%s '%.140s': write", records->what,
                                records->path);
        coordi_sql_fail_all(&records->queue, &why);
    } else {
        coordi_sql_write_all(&records->sql, &records->queue);
    }
}

static void write_out(coordi_records *records)
{
    coordi_sim_loop *loop = records->loop;
    size_t count = 0;
    for (coordi_link *at = records->queue.next; at != &records->queue; at = at->next) {
        mix_write(loop->sim, COORDI_ITEM(at, coordi_record_write, job.link));
        count++;
    }
    if (count == 0) {
        return;
    }
    coordi_sim_tell(loop->sim, loop, "records %s: %zu writes to %s",
                    records->store == NULL ? "lost" : "commit", count, records->path);
    carry_out(records);
    for (coordi_link *link = coordi_list_pop(&records->queue); link != NULL;
         link = coordi_list_pop(&records->queue)) {
        coordi_sim_queue(loop, COORDI_ITEM(link, coordi_job, link));
    }
}

static void let_go(coordi_records *records)
{
    if (records->store != NULL) {
        records->store->holder = NULL;
        records->store = NULL;
    }
}

/* Does all that there is to do. */
static void finish(coordi_records *records)
{
    write_out(records);
    if (records->closed && !records->over) {
        coordi_sim_tell(records->loop->sim, records->loop, "records close %s",
                        records->path);
        records->over = true;
        let_go(records);
        coordi_sim_queue(records->loop, &records->reap);
    }
}

static void act(coord_sim *sim, coordi_sim_actor *actor)
{
    coordi_records *records = COORDI_ITEM(actor, coordi_records, disk);
    (void)sim;
    records->waits = false;
    finish(records);
}

void coordi_sim_records_die(coordi_sim_loop *loop)
{
    for (coordi_link *at = loop->records.next; at != &loop->records; at = at->next) {
        coordi_records *records = COORDI_ITEM(at, coordi_records, link);
        let_go(records);
        records->waits = true;
        coordi_sim_ready(loop->sim, &records->disk); /* for when it is awake */
    }
}

void coordi_sim_records_hurry(coordi_sim_loop *loop)
{
    for (coordi_link *at = loop->records.next; at != &loop->records; at = at->next) {
        coordi_records *records = COORDI_ITEM(at, coordi_records, link);
        if (records->waits) {
            coordi_sim_ready(loop->sim, &records->disk);
        }
    }
}

/* ---- opened and closed ---- */

static void reap(coordi_job *job)
{
    coordi_records *records = COORDI_ITEM(job, coordi_records, reap);
    coordi_sim_loop *loop = records->loop;
    (void)pthread_mutex_lock(&loop->sim->lock);
    coordi_sim_drop(loop->sim, &records->disk);
    coordi_list_remove(&records->link);
    coordi_sql_finalize(&records->sql);
    (void)pthread_mutex_unlock(&loop->sim->lock);
    coordi_free(records->what);
    coordi_free(records);
    coordi_loop_unref(&loop->base);
}

/* Somebody else wants the store: one that is closed has written, as if waited for. */
static coord_status displace(store *s, const coordi_records_spec *spec, coord_error *err)
{
    coordi_records *holder = s->holder;
    if (holder != NULL && holder->closed && !coordi_sim_stands_still(holder->loop)) {
        finish(holder);
        holder = s->holder;
    }
    return holder == NULL
               ? COORD_OK
               : coordi_fail(err, COORD_ERR_BUSY, "%s '%.140s' is in use by loop #%u",
                             spec->what, spec->path, holder->loop->index);
}

static coord_status find_store(coord_sim *sim, const coordi_records_spec *spec,
                               store **ret, coord_error *err)
{
    store *s = coordi_map_get(&sim->stores, spec->path);
    if (s == NULL) {
        return store_make(sim, spec, ret, err);
    }
    coord_status rc = displace(s, spec, err);
    if (rc == COORD_OK) {
        s->sql.what = spec->what;
        rc = coordi_sql_check(&s->sql, spec, err);
        s->sql.what = STORE;
    }
    if (rc == COORD_OK) {
        *ret = s;
    }
    return rc;
}

static coordi_records *make(coordi_sim_loop *loop, const coordi_records_spec *spec)
{
    const size_t size = strlen(spec->path) + 1;
    coordi_records *records = coordi_zalloc(sizeof *records + size);
    if (records == NULL) {
        return NULL;
    }
    records->what = coordi_strdup(spec->what);
    if (records->what == NULL) {
        coordi_free(records);
        return NULL;
    }
    memcpy(records->path, spec->path, size);
    records->loop = loop;
    records->reap.run = reap;
    records->sql.what = records->what;
    records->sql.path = records->path;
    coordi_list_init(&records->queue);
    return records;
}

static coord_status open_locked(coordi_records *records, const coordi_records_spec *spec,
                                coord_error *err)
{
    coordi_sim_loop *loop = records->loop;
    store *s = NULL;
    coord_status rc = find_store(loop->sim, spec, &s, err);
    if (rc == COORD_OK) {
        records->sql.db = s->sql.db;
        rc = coordi_sql_prepare(&records->sql, spec, err);
    }
    if (rc == COORD_OK && !coordi_sim_add(loop->sim, &records->disk, act, loop)) {
        rc = coordi_fail_nomem(err, spec->what);
    }
    if (rc != COORD_OK) {
        coordi_sql_finalize(&records->sql);
        return rc;
    }
    records->disk.is_message = true;
    records->store = s;
    s->holder = records;
    coordi_list_append(&loop->records, &records->link);
    coordi_sim_tell(loop->sim, loop, "records open %s", records->path);
    coordi_sim_mix(loop->sim, records->path, strlen(records->path));
    return COORD_OK;
}

coord_status coordi_sim_records_open(coord_loop *base, const coordi_records_spec *spec,
                                     coordi_records **ret, coord_error *err)
{
    if (spec->path == NULL || spec->path[0] == '\0') {
        return coordi_fail(err, COORD_ERR_ARG, "%s: expected a path, found none",
                           spec->what);
    }
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    coordi_records *records = make(loop, spec);
    if (records == NULL) {
        return coordi_fail_nomem(err, spec->what);
    }
    (void)pthread_mutex_lock(&loop->sim->lock);
    coord_status rc = open_locked(records, spec, err);
    (void)pthread_mutex_unlock(&loop->sim->lock);
    if (rc != COORD_OK) {
        coordi_free(records->what);
        coordi_free(records);
        return rc;
    }
    (void)coordi_loop_ref(base);
    *ret = records;
    return COORD_OK;
}

void coordi_sim_records_close(coordi_records *records)
{
    if (records == NULL) {
        return;
    }
    coordi_sim_loop *loop = records->loop;
    (void)pthread_mutex_lock(&loop->sim->lock);
    records->closed = true;
    records->waits = true;
    coordi_sim_ready(loop->sim, &records->disk);
    coordi_sim_awake(loop);
    coordi_sim_unlock_after(loop->sim);
}

/* ---- reading and writing ---- */

coord_status coordi_sim_records_read(coordi_records *records, size_t statement,
                                     const coordi_record_value *values, size_t count,
                                     coordi_record_row_fn *row, void *arg,
                                     coord_error *err)
{
    coord_sim *sim = records->loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    const bool written = records->written;
    const bool is_lost = records->store == NULL;
    (void)pthread_mutex_unlock(&sim->lock);
    if (written) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "%s '%.140s': read after the first write", records->what,
                           records->path);
    }
    if (is_lost) {
        return coordi_fail(err, COORD_ERR_LOST, "%s '%.140s': the process has crashed",
                           records->what, records->path);
    }
    return coordi_sql_read(&records->sql, statement, values, count, row, arg, err);
}

void coordi_sim_records_write(coordi_records *records, coordi_record_write *write)
{
    coord_sim *sim = records->loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    records->written = true;
    coordi_sql_enlist(write, &records->queue);
    if (records->store == NULL || sim->abandoned) {
        coordi_sim_ready(sim, &records->disk);
    } else if (!records->waits) {
        const int64_t delay = (int64_t)coordi_sim_draw(sim, DISK_MAX_MS + 1);
        coordi_sim_at(sim, &records->disk, coordi_sim_after(sim, delay));
    }
    records->waits = true;
    coordi_sim_unlock_after(sim);
}
