#include "check.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

static bool copy(const char *from, const char *to)
{
    struct stat about;
    off_t at = 0;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = in >= 0 && out >= 0 && fstat(in, &about) == 0;
    while (good && at < about.st_size) {
        good = sendfile(out, in, &at, (size_t)(about.st_size - at)) > 0;
    }
    if (in >= 0) {
        (void)close(in);
    }
    if (out >= 0) {
        (void)close(out);
    }
    return good;
}

static void add(soak_look *look, const char *id, const char *state)
{
    if ((look->count & (look->count + 1)) == 0) { /* one less than a power of two */
        look->rows = realloc(look->rows, 2 * (look->count + 1) * sizeof *look->rows);
    }
    char *kept = strdup(id);
    if (look->rows == NULL || kept == NULL) {
        abort();
    }
    look->rows[look->count++] =
        (soak_row){kept, strcmp(state, "failed") == 0 ? 'x' : state[0]};
}

static bool read_rows(sqlite3 *db, soak_look *look)
{
    sqlite3_stmt *at = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT id, state FROM task ORDER BY number", -1, &at,
                                NULL);
    for (rc = rc == SQLITE_OK ? sqlite3_step(at) : rc; rc == SQLITE_ROW;
         rc = sqlite3_step(at)) {
        add(look, (const char *)sqlite3_column_text(at, 0),
            (const char *)sqlite3_column_text(at, 1));
    }
    (void)sqlite3_finalize(at);
    return rc == SQLITE_DONE;
}

static bool read_totals(sqlite3 *db, soak_look *look)
{
    sqlite3_stmt *at = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT name, value FROM total", -1, &at, NULL);
    for (rc = rc == SQLITE_OK ? sqlite3_step(at) : rc; rc == SQLITE_ROW;
         rc = sqlite3_step(at)) {
        const char *name = (const char *)sqlite3_column_text(at, 0);
        long long value = sqlite3_column_int64(at, 1);
        *(strcmp(name, "accepted") == 0   ? &look->accepted
          : strcmp(name, "finished") == 0 ? &look->finished
          : strcmp(name, "failed") == 0   ? &look->failed
                                          : &look->moved) = value;
    }
    (void)sqlite3_finalize(at);
    return rc == SQLITE_DONE;
}

static bool is_whole(sqlite3 *db)
{
    sqlite3_stmt *at = NULL;
    bool whole =
        sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &at, NULL) == SQLITE_OK &&
        sqlite3_step(at) == SQLITE_ROW &&
        strcmp((const char *)sqlite3_column_text(at, 0), "ok") == 0;
    (void)sqlite3_finalize(at);
    return whole;
}

/* A life that was killed early has left no tables. */
static bool is_empty(sqlite3 *db)
{
    sqlite3_stmt *at = NULL;
    bool empty = sqlite3_prepare_v2(db, "SELECT 1 FROM sqlite_master", -1, &at, NULL) ==
                     SQLITE_OK &&
                 sqlite3_step(at) == SQLITE_DONE;
    (void)sqlite3_finalize(at);
    return empty;
}

void soak_look_at(const char *folder, int life, soak_look *ret)
{
    char from[SOAK_PATH];
    char to[SOAK_PATH];
    sqlite3 *db = NULL;
    memset(ret, 0, sizeof *ret);
    ret->life = life;
    (void)snprintf(from, sizeof from, "%s/ledger", folder);
    (void)snprintf(to, sizeof to, "%s/look", folder);
    if (access(from, F_OK) != 0) {
        ret->good = true;
        return;
    }
    if (!copy(from, to)) {
        return;
    }
    (void)snprintf(from, sizeof from, "%s/ledger-wal", folder);
    (void)snprintf(to, sizeof to, "%s/look-wal", folder);
    if (access(from, F_OK) != 0) {
        (void)unlink(to);
    } else if (!copy(from, to)) {
        return;
    }
    (void)snprintf(to, sizeof to, "%s/look", folder);
    ret->good = sqlite3_open_v2(to, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
                is_whole(db) &&
                (is_empty(db) || (read_rows(db, ret) && read_totals(db, ret)));
    (void)snprintf(ret->error, sizeof ret->error, "%s",
                   db == NULL ? "no memory" : sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

void soak_look_done(soak_look *look)
{
    for (size_t i = 0; i < look->count; i++) {
        free(look->rows[i].id);
    }
    free(look->rows);
    look->rows = NULL;
    look->count = 0;
}
