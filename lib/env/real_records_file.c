#include "env/real_records.h"

#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opening a file of records.
 *
 * First its header is looked at through SQLite's own descriptor, which changes nothing;
 * one of our own would take SQLite's locks along when it is closed. A new file gets its
 * tables in a transaction of the old kind, with a rollback journal, so that the header of
 * every file of ours says what it is, whatever its WAL holds. After that SQLite reads the
 * file, WAL included, and checks all of it. As long as it is not accepted, closing it
 * leaves the WAL where it is. */

enum {
    HEADER_BYTES = 100,
    VERSION_AT = 60,
    APPLICATION_AT = 68,
    CHECKPOINT_PAGES = 1000, /* 4 MB of WAL, then it is copied into the file */
    WAL_KEPT_BYTES = 8 << 20,
    STEPS_BETWEEN_LOOKS = 10000 /* of SQLite's machine; a fraction of a millisecond */
};

/* ---- before SQLite reads it ---- */

static int32_t get_int32(const unsigned char *at)
{
    const uint32_t word =
        (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    return (int32_t)word;
}

static int64_t wal_size(const char *file)
{
    char name[PATH_MAX + 8];
    struct stat about;
    (void)snprintf(name, sizeof name, "%s-wal", file);
    return stat(name, &about) == 0 ? (int64_t)about.st_size : 0;
}

static coord_status check_empty(const coordi_sql *sql, int64_t wal_bytes,
                                coord_error *err)
{
    if (wal_bytes == 0) {
        return COORD_OK;
    }
    return coordi_fail(err, COORD_ERR_FORMAT,
                       "%s '%.140s' is damaged: it has 0 bytes and its \"-wal\" %lld, "
                       "expected both or none",
                       sql->what, sql->path, (long long)wal_bytes);
}

static coord_status check_header(const coordi_sql *sql, const coordi_records_spec *spec,
                                 int64_t wal_bytes, coord_error *err)
{
    static const char MAGIC[] = "SQLite format 3";
    unsigned char header[HEADER_BYTES + 1] = {0};
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    int code = sqlite3_file_control(sql->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code == SQLITE_OK) {
        code = file->pMethods->xFileSize(file, &size);
    }
    if (code == SQLITE_OK && size >= HEADER_BYTES) {
        code = file->pMethods->xRead(file, header, HEADER_BYTES, 0);
    }
    if (code != SQLITE_OK) {
        return coordi_sql_fail(sql, code, "read its header", err);
    }
    if (size == 0) {
        return check_empty(sql, wal_bytes, err);
    }
    if (size < HEADER_BYTES) {
        return coordi_fail(err, COORD_ERR_FORMAT,
                           "%s '%.140s' has %lld bytes, expected a SQLite file",
                           sql->what, sql->path, (long long)size);
    }
    if (memcmp(header, MAGIC, sizeof MAGIC) != 0) {
        return coordi_fail(err, COORD_ERR_FORMAT,
                           "%s '%.140s' begins with \"%.15s\", expected \"%s\"",
                           sql->what, sql->path, (const char *)header, MAGIC);
    }
    return coordi_sql_check_mark(sql, spec, get_int32(header + APPLICATION_AT),
                                 get_int32(header + VERSION_AT), err);
}

/* ---- what SQLite finds ---- */

static int is_late(void *arg)
{
    const int64_t *deadline_ms = arg;
    return coordi_real_now() >= *deadline_ms;
}

void coordi_real_records_limit(const coordi_sql *sql, int64_t *deadline_ms)
{
    if (deadline_ms != NULL) {
        sqlite3_progress_handler(sql->db, STEPS_BETWEEN_LOOKS, is_late, deadline_ms);
    } else {
        sqlite3_progress_handler(sql->db, 0, NULL, NULL);
    }
}

static coord_status quick_check(const coordi_sql *sql, coord_error *err)
{
    sqlite3_stmt *check = NULL;
    int code = sqlite3_prepare_v2(sql->db, "PRAGMA quick_check(1)", -1, &check, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(check);
    }
    coord_status rc = COORD_OK;
    if (code != SQLITE_ROW) {
        rc = coordi_sql_fail(sql, code, "check it", err);
    } else {
        const char *found = (const char *)sqlite3_column_text(check, 0);
        if (found == NULL) {
            rc = coordi_fail_nomem(err, sql->what);
        } else if (strcmp(found, "ok") != 0) {
            coord_error cause;
            (void)coordi_fail(&cause, COORD_ERR_FORMAT, "%s", found);
            rc = coordi_fail_because(err, COORD_ERR_FORMAT, &cause,
                                     "%s '%.140s' is damaged, expected that SQLite's "
                                     "quick_check finds nothing",
                                     sql->what, sql->path);
        }
    }
    (void)sqlite3_finalize(check);
    return rc;
}

static coord_status check_or_create(const coordi_sql *sql,
                                    const coordi_records_spec *spec, coord_error *err)
{
    int64_t pages = 0;
    coord_status rc = coordi_sql_number(sql, "PRAGMA page_count", &pages, err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (pages == 0) { /* empty, or its making was interrupted and has been undone */
        return coordi_sql_create(sql, spec, err);
    }
    rc = coordi_sql_check(sql, spec, err);
    return rc != COORD_OK ? rc : quick_check(sql, err);
}

/* Checks within the time that is left. The watching thread ends what SQLite does in one
 * go, and the handler what it does in steps. */
static coord_status check_in_time(coordi_records *records,
                                  const coordi_records_spec *spec, int64_t deadline_ms,
                                  coord_error *err)
{
    coordi_sql *sql = &records->sql;
    coord_error why;
    coordi_real_records_limit(sql, &deadline_ms);
    coordi_real_records_watch(records, deadline_ms);
    coord_status rc = check_or_create(sql, spec, &why);
    if (rc == COORD_OK) {
        rc = coordi_sql_prepare(sql, spec, &why);
    }
    coordi_real_records_unwatch(records);
    coordi_real_records_limit(sql, NULL);
    if (rc == COORD_ERR_TIMEOUT) {
        return coordi_fail_because(err, rc, &why,
                                   "%s '%.140s' could not be checked within %lld ms",
                                   sql->what, sql->path, (long long)spec->patience_ms);
    }
    return rc == COORD_OK ? rc : coordi_fail_copy(err, &why);
}

/* ---- settings ---- */

static coord_status set_wal(const coordi_sql *sql, coord_error *err)
{
    sqlite3_stmt *statement = NULL;
    int code =
        sqlite3_prepare_v2(sql->db, "PRAGMA journal_mode=WAL", -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = sqlite3_step(statement);
    }
    coord_status rc = COORD_OK;
    if (code != SQLITE_ROW) {
        rc = coordi_sql_fail(sql, code, "switch to a WAL", err);
    } else {
        const char *mode = (const char *)sqlite3_column_text(statement, 0);
        if (mode == NULL || strcmp(mode, "wal") != 0) {
            rc = coordi_fail(err, COORD_ERR_IO,
                             "%s '%.140s': journal mode \"%s\", expected \"wal\": its "
                             "file system can't share memory",
                             sql->what, sql->path, mode == NULL ? "" : mode);
        }
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

static coord_status set_pragmas(const coordi_sql *sql, bool sync_full, coord_error *err)
{
    char text[256];
    (void)snprintf(text, sizeof text,
                   "PRAGMA synchronous=%s; PRAGMA wal_autocheckpoint=%d;"
                   "PRAGMA journal_size_limit=%d; PRAGMA temp_store=MEMORY;"
                   "PRAGMA mmap_size=0; PRAGMA cell_size_check=ON",
                   sync_full ? "FULL" : "NORMAL", CHECKPOINT_PAGES, WAL_KEPT_BYTES);
    return coordi_sql_exec(sql, text, "set it up", err);
}

static coord_status check_writable(const coordi_sql *sql, const char *file,
                                   coord_error *err)
{
    if (sqlite3_db_readonly(sql->db, "main") == 0) {
        return COORD_OK;
    }
    const int os_errno = eaccess(file, W_OK) == 0 ? EACCES : errno;
    return coordi_fail_errno(err, os_errno,
                             "%s '%.140s' can only be read, expected to write to it",
                             sql->what, sql->path);
}

static int to_int(int64_t ms)
{
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

static void keep_wal_on_close(const coordi_sql *sql, bool keep)
{
    (void)sqlite3_db_config(sql->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep ? 1 : 0,
                            NULL);
}

static coord_status open_connection(coordi_sql *sql, const char *file, coord_error *err)
{
    static const char VFS[] = "unix"; /* whatever the host's default is */
    const sqlite3_vfs *vfs = sqlite3_vfs_find(VFS);
    const size_t len = strlen(file);
    if (vfs != NULL && len >= (size_t)vfs->mxPathname) {
        return coordi_fail_errno(err, ENAMETOOLONG,
                                 "%s '%.140s' has a path of %zu bytes, expected %d at "
                                 "most",
                                 sql->what, sql->path, len, vfs->mxPathname - 1);
    }
    return coordi_sql_open(sql, file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, VFS,
                           err);
}

coord_status coordi_real_records_open_file(coordi_records *records,
                                           const coordi_records_spec *spec,
                                           int64_t deadline_ms, coord_error *err)
{
    coordi_sql *sql = &records->sql;
    const char *file = coordi_claim_path(records->claim);
    const int64_t wal_bytes = wal_size(file);
    coord_status rc = open_connection(sql, file, err);
    if (rc != COORD_OK) {
        return rc;
    }
    /* An empty WAL is only there because we are: it goes with us. */
    keep_wal_on_close(sql, wal_bytes > 0);
    (void)sqlite3_busy_timeout(sql->db, to_int(deadline_ms - coordi_real_now()));
    rc = check_writable(sql, file, err);
    if (rc == COORD_OK) {
        rc = check_header(sql, spec, wal_bytes, err);
    }
    if (rc == COORD_OK) {
        rc = set_pragmas(sql, spec->sync_full, err);
    }
    if (rc == COORD_OK) {
        rc = check_in_time(records, spec, deadline_ms, err);
    }
    if (rc == COORD_OK) {
        rc = set_wal(sql, err);
    }
    if (rc == COORD_OK) {
        keep_wal_on_close(sql, false);
        (void)sqlite3_busy_timeout(sql->db, to_int(spec->patience_ms));
    }
    return rc;
}
