#include "env/sql.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>

/* ---- failures ---- */

static coord_status status_of(int code)
{
    switch (code) {
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
    case SQLITE_CONSTRAINT_UNIQUE:
        return COORD_ERR_EXISTS;
    case SQLITE_IOERR_NOMEM:
        return COORD_ERR_NOMEM;
    default:
        break;
    }
    switch (code & 0xff) {
    case SQLITE_NOMEM:
        return COORD_ERR_NOMEM;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return COORD_ERR_FORMAT;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return COORD_ERR_BUSY;
    case SQLITE_INTERRUPT:
        return COORD_ERR_TIMEOUT;
    case SQLITE_TOOBIG:
        return COORD_ERR_TOO_BIG;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
        return COORD_ERR_IO;
    default:
        return COORD_ERR_ARG;
    }
}

/* SQLite keeps errno for some failures only, a commit not among them. But what it does
 * after the call that failed seldom changes errno, which is 0 before each try. */
static int errno_of(const coordi_sql *sql, int code, int last)
{
    if ((code & 0xff) == SQLITE_FULL) {
        return ENOSPC;
    }
    return last != 0 || sql->db == NULL ? last : sqlite3_system_errno(sql->db);
}

coord_status coordi_sql_fail(const coordi_sql *sql, int code, const char *doing,
                             coord_error *err)
{
    const int last = errno;
    const coord_status status = status_of(code);
    const char *said = sql->db == NULL ? sqlite3_errstr(code) : sqlite3_errmsg(sql->db);
    const int os_errno = status == COORD_ERR_IO ? errno_of(sql, code, last) : 0;
    coord_error cause;
    if (os_errno != 0) {
        (void)coordi_fail_errno(&cause, os_errno, "%s", said);
    } else {
        (void)coordi_fail(&cause, status, "%s", said);
    }
    return coordi_fail_because(err, status, &cause, "%s '%.140s': %s", sql->what,
                               sql->path, doing);
}

int coordi_sql_step(sqlite3_stmt *statement)
{
    errno = 0;
    return sqlite3_step(statement);
}

/* ---- connection ---- */

coord_status coordi_sql_open(coordi_sql *sql, const char *file, int flags,
                             const char *vfs, coord_error *err)
{
    const int code = sqlite3_open_v2(file, &sql->db, flags | SQLITE_OPEN_EXRESCODE, vfs);
    if (code != SQLITE_OK) {
        return coordi_sql_fail(sql, code, "open it", err);
    }
    /* The file may come from anywhere: what is in its schema is not to be trusted. */
    (void)sqlite3_db_config(sql->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(sql->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return COORD_OK;
}

void coordi_sql_finalize(coordi_sql *sql)
{
    for (size_t i = 0; i < sql->count; i++) {
        (void)sqlite3_finalize(sql->statements[i]);
    }
    coordi_free(sql->statements);
    sql->statements = NULL;
    sql->count = 0;
    (void)sqlite3_finalize(sql->begin);
    (void)sqlite3_finalize(sql->commit);
    (void)sqlite3_finalize(sql->rollback);
    sql->begin = NULL;
    sql->commit = NULL;
    sql->rollback = NULL;
}

void coordi_sql_close(coordi_sql *sql)
{
    coordi_sql_finalize(sql);
    (void)sqlite3_close(sql->db); /* succeeds: it has no statements left */
    sql->db = NULL;
}

coord_status coordi_sql_exec(const coordi_sql *sql, const char *text, const char *doing,
                             coord_error *err)
{
    errno = 0;
    const int code = sqlite3_exec(sql->db, text, NULL, NULL, NULL);
    return code == SQLITE_OK ? COORD_OK : coordi_sql_fail(sql, code, doing, err);
}

coord_status coordi_sql_number(const coordi_sql *sql, const char *text, int64_t *ret,
                               coord_error *err)
{
    sqlite3_stmt *statement = NULL;
    errno = 0;
    int code = sqlite3_prepare_v2(sql->db, text, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = coordi_sql_step(statement);
    }
    if (code != SQLITE_ROW) {
        const coord_status rc = coordi_sql_fail(sql, code, text, err);
        (void)sqlite3_finalize(statement);
        return rc;
    }
    *ret = sqlite3_column_int64(statement, 0);
    (void)sqlite3_finalize(statement);
    return COORD_OK;
}

/* ---- what a file is ---- */

coord_status coordi_sql_check_mark(const coordi_sql *sql, const coordi_records_spec *spec,
                                   int32_t application, int32_t version, coord_error *err)
{
    if (application != spec->application) {
        return coordi_fail(err, COORD_ERR_FORMAT,
                           "%s '%.140s' belongs to another program: application id "
                           "0x%08x, expected 0x%08x",
                           sql->what, sql->path, (unsigned)application,
                           (unsigned)spec->application);
    }
    if (version != spec->version) {
        return coordi_fail(err, COORD_ERR_FORMAT,
                           "%s '%.140s' is of %s release: schema version %d, expected %d",
                           sql->what, sql->path,
                           version > spec->version ? "a newer" : "an older", (int)version,
                           (int)spec->version);
    }
    return COORD_OK;
}

coord_status coordi_sql_check(const coordi_sql *sql, const coordi_records_spec *spec,
                              coord_error *err)
{
    int64_t application = 0;
    int64_t version = 0;
    coord_status rc = coordi_sql_number(sql, "PRAGMA application_id", &application, err);
    if (rc == COORD_OK) {
        rc = coordi_sql_number(sql, "PRAGMA user_version", &version, err);
    }
    if (rc == COORD_OK) {
        rc =
            coordi_sql_check_mark(sql, spec, (int32_t)application, (int32_t)version, err);
    }
    return rc;
}

coord_status coordi_sql_create(const coordi_sql *sql, const coordi_records_spec *spec,
                               coord_error *err)
{
    static const char doing[] = "create its tables";
    char mark[128];
    (void)snprintf(mark, sizeof mark,
                   "BEGIN IMMEDIATE; PRAGMA application_id=%d; PRAGMA user_version=%d;",
                   (int)spec->application, (int)spec->version);
    coord_status rc = coordi_sql_exec(sql, mark, doing, err);
    if (rc == COORD_OK) {
        rc = coordi_sql_exec(sql, spec->schema, doing, err);
    }
    if (rc == COORD_OK) {
        rc = coordi_sql_exec(sql, "COMMIT", doing, err);
    }
    if (rc != COORD_OK && sqlite3_get_autocommit(sql->db) == 0) {
        (void)coordi_sql_exec(sql, "ROLLBACK", doing, NULL);
    }
    return rc;
}

/* ---- statements ---- */

static coord_status prepare(const coordi_sql *sql, const char *text, sqlite3_stmt **ret,
                            coord_error *err)
{
    errno = 0;
    const int code =
        sqlite3_prepare_v3(sql->db, text, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
    if (code == SQLITE_OK) {
        return COORD_OK;
    }
    char doing[128];
    (void)snprintf(doing, sizeof doing, "prepare \"%.80s\"", text);
    coord_status rc = coordi_sql_fail(sql, code, doing, err);
    if (rc == COORD_ERR_ARG) { /* it lacks a table or a column */
        rc = COORD_ERR_FORMAT;
        if (err != NULL) {
            err->status = rc;
        }
    }
    return rc;
}

coord_status coordi_sql_prepare(coordi_sql *sql, const coordi_records_spec *spec,
                                coord_error *err)
{
    sql->statements = coordi_zalloc(spec->statement_count * sizeof *sql->statements);
    if (sql->statements == NULL) {
        return coordi_fail_nomem(err, sql->what);
    }
    sql->count = spec->statement_count;
    coord_status rc = COORD_OK;
    for (size_t i = 0; i < sql->count && rc == COORD_OK; i++) {
        rc = prepare(sql, spec->statements[i], &sql->statements[i], err);
    }
    if (rc == COORD_OK) {
        rc = prepare(sql, "BEGIN IMMEDIATE", &sql->begin, err);
    }
    if (rc == COORD_OK) {
        rc = prepare(sql, "COMMIT", &sql->commit, err);
    }
    if (rc == COORD_OK) {
        rc = prepare(sql, "ROLLBACK", &sql->rollback, err);
    }
    return rc;
}

/* The texts stay the caller's: they outlive the statement's run. */
static int bind(sqlite3_stmt *statement, const coordi_record_value *values, size_t count)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < count && code == SQLITE_OK; i++) {
        const coordi_record_value *value = &values[i];
        const int at = (int)i + 1;
        switch (value->kind) {
        case COORDI_RECORD_NULL:
            code = sqlite3_bind_null(statement, at);
            break;
        case COORDI_RECORD_NUMBER:
            code = sqlite3_bind_int64(statement, at, value->number);
            break;
        case COORDI_RECORD_TEXT: /* without a pointer it would be NULL */
            code = sqlite3_bind_text64(statement, at,
                                       value->text.ptr == NULL ? "" : value->text.ptr,
                                       value->text.len, SQLITE_STATIC, SQLITE_UTF8);
            break;
        }
    }
    return code;
}

static coord_status take(coordi_sql *sql, size_t which, const coordi_record_value *values,
                         size_t count, sqlite3_stmt **ret, coord_error *err)
{
    if (which >= sql->count) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "%s '%.140s': statement %zu, expected one below %zu",
                           sql->what, sql->path, which, sql->count);
    }
    sqlite3_stmt *statement = sql->statements[which];
    if (sqlite3_stmt_busy(statement)) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "%s '%.140s': statement %zu is being read", sql->what,
                           sql->path, which);
    }
    const int wanted = sqlite3_bind_parameter_count(statement);
    if (count != (size_t)wanted) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "%s '%.140s': statement %zu with %zu values, expected %d",
                           sql->what, sql->path, which, count, wanted);
    }
    const int code = bind(statement, values, count);
    if (code != SQLITE_OK) {
        return coordi_sql_fail(sql, code, "bind a value", err);
    }
    *ret = statement;
    return COORD_OK;
}

/* ---- reading ---- */

/* False: out of memory. */
static bool get_value(sqlite3_stmt *statement, int at, coordi_record_value *value)
{
    *value = (coordi_record_value){.kind = COORDI_RECORD_TEXT};
    switch (sqlite3_column_type(statement, at)) {
    case SQLITE_NULL:
        value->kind = COORDI_RECORD_NULL;
        return true;
    case SQLITE_INTEGER:
        value->kind = COORDI_RECORD_NUMBER;
        value->number = sqlite3_column_int64(statement, at);
        return true;
    default:
        value->text.ptr = (const char *)sqlite3_column_text(statement, at);
        value->text.len = (size_t)sqlite3_column_bytes(statement, at);
        return value->text.ptr != NULL;
    }
}

static coord_status hand_out(const coordi_sql *sql, sqlite3_stmt *statement,
                             coordi_record_value *values, coordi_record_row_fn *row,
                             void *arg, coord_error *err)
{
    const int count = sqlite3_column_count(statement);
    for (;;) {
        const int code = coordi_sql_step(statement);
        if (code == SQLITE_DONE) {
            return COORD_OK;
        }
        if (code != SQLITE_ROW) {
            return coordi_sql_fail(sql, code, "read", err);
        }
        for (int i = 0; i < count; i++) {
            if (!get_value(statement, i, &values[i])) {
                return coordi_fail_nomem(err, sql->what);
            }
        }
        if (!row(values, (size_t)count, arg)) {
            return COORD_OK;
        }
    }
}

coord_status coordi_sql_read(coordi_sql *sql, size_t statement,
                             const coordi_record_value *values, size_t count,
                             coordi_record_row_fn *row, void *arg, coord_error *err)
{
    sqlite3_stmt *taken = NULL;
    coord_status rc = take(sql, statement, values, count, &taken, err);
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_record_value *columns =
        coordi_alloc((size_t)sqlite3_column_count(taken) * sizeof *columns);
    if (columns == NULL) {
        return coordi_fail_nomem(err, sql->what);
    }
    rc = hand_out(sql, taken, columns, row, arg, err);
    (void)sqlite3_reset(taken); /* says again how the last step ended */
    coordi_free(columns);
    return rc;
}

/* ---- writing ---- */

static void tell(coordi_job *job)
{
    coordi_record_write *write = COORDI_ITEM(job, coordi_record_write, job);
    write->done(write, write->failed ? &write->error : NULL);
}

void coordi_sql_enlist(coordi_record_write *write, coordi_link *queue)
{
    write->failed = false;
    write->job.run = tell;
    coordi_list_append(queue, &write->job.link);
}

static coord_status run(const coordi_sql *sql, sqlite3_stmt *statement, const char *doing,
                        coord_error *err)
{
    int code;
    do {
        code = coordi_sql_step(statement);
    } while (code == SQLITE_ROW);
    const coord_status rc =
        code == SQLITE_DONE ? COORD_OK : coordi_sql_fail(sql, code, doing, err);
    (void)sqlite3_reset(statement);
    return rc;
}

static coord_status write_one(coordi_sql *sql, coordi_record_write *write)
{
    sqlite3_stmt *statement = NULL;
    coord_status rc = take(sql, write->statement, write->values, write->count, &statement,
                           &write->error);
    if (rc == COORD_OK) {
        rc = run(sql, statement, "write", &write->error);
    }
    write->failed = rc != COORD_OK;
    return rc;
}

/* A statement that fails has undone what it did, and nothing else, unless SQLite had to
 * give up the whole transaction: then it is out of it. */
static coord_status write_each(coordi_sql *sql, const coordi_link *writes,
                               coord_error *why)
{
    for (coordi_link *at = writes->next; at != writes; at = at->next) {
        coordi_record_write *write = COORDI_ITEM(at, coordi_record_write, job.link);
        const coord_status rc = write_one(sql, write);
        if (sqlite3_get_autocommit(sql->db) == 0) {
            continue;
        }
        return rc != COORD_OK
                   ? coordi_fail_copy(why, &write->error)
                   : coordi_fail(why, COORD_ERR_ARG,
                                 "%s '%.140s': statement %zu ended the transaction",
                                 sql->what, sql->path, write->statement);
    }
    return COORD_OK;
}

void coordi_sql_write_all(coordi_sql *sql, coordi_link *writes)
{
    coord_error why;
    coord_status rc = run(sql, sql->begin, "begin to write", &why);
    if (rc == COORD_OK) {
        rc = write_each(sql, writes, &why);
    }
    if (rc == COORD_OK) {
        rc = run(sql, sql->commit, "commit", &why);
    }
    if (rc != COORD_OK) {
        if (sqlite3_get_autocommit(sql->db) == 0) {
            (void)run(sql, sql->rollback, "roll back", NULL);
        }
        coordi_sql_fail_all(writes, &why);
    }
}

void coordi_sql_fail_all(coordi_link *writes, const coord_error *why)
{
    for (coordi_link *at = writes->next; at != writes; at = at->next) {
        coordi_record_write *write = COORDI_ITEM(at, coordi_record_write, job.link);
        if (!write->failed) {
            write->failed = true;
            write->error = *why;
        }
    }
}
