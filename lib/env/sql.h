/* SQLite, as both implementations of the door use it: a connection and its prepared
 * statements. Changes no setting of the process and prints nothing.
 *
 * How its failures are told
 *   COORD_ERR_EXISTS   the key is there already
 *   COORD_ERR_ARG      another constraint, or the statement or its values make no sense
 *   COORD_ERR_FORMAT   the file is damaged, or is not what was expected
 *   COORD_ERR_BUSY     another program writes to it
 *   COORD_ERR_TIMEOUT  interrupted
 *   COORD_ERR_IO       the disk, with an errno; ENOSPC when it is full
 *   COORD_ERR_NOMEM, COORD_ERR_TOO_BIG */
#ifndef COORDI_ENV_SQL_H
#define COORDI_ENV_SQL_H

#include "env/env.h"

#include <sqlite3.h>

typedef struct coordi_sql {
    sqlite3 *db;
    const char *what; /* these two are for error texts, and borrowed */
    const char *path;
    sqlite3_stmt **statements; /* the owner's */
    size_t count;
    sqlite3_stmt *begin;
    sqlite3_stmt *commit;
    sqlite3_stmt *rollback;
} coordi_sql;

/* Opens `file` with SQLITE_OPEN_ flags. `what` and `path` are set. After a failure, too,
 * coordi_sql_close() frees. */
coord_status coordi_sql_open(coordi_sql *sql, const char *file, int flags,
                             const char *vfs, coord_error *err);
/* Takes one that is all zero. */
void coordi_sql_close(coordi_sql *sql);
/* Lets go of the statements alone. */
void coordi_sql_finalize(coordi_sql *sql);

/* As sqlite3_step(), ready for coordi_sql_fail(). */
int coordi_sql_step(sqlite3_stmt *statement);

/* Tells what the last call on the connection answered. */
coord_status coordi_sql_fail(const coordi_sql *sql, int code, const char *doing,
                             coord_error *err);

/* Runs SQL without results that matter, or with one number. */
coord_status coordi_sql_exec(const coordi_sql *sql, const char *text, const char *doing,
                             coord_error *err);
coord_status coordi_sql_number(const coordi_sql *sql, const char *text, int64_t *ret,
                               coord_error *err);

/* Are these the numbers of a file that was made with this spec? */
coord_status coordi_sql_check_mark(const coordi_sql *sql, const coordi_records_spec *spec,
                                   int32_t application, int32_t version,
                                   coord_error *err);
/* The same for what the connection says. */
coord_status coordi_sql_check(const coordi_sql *sql, const coordi_records_spec *spec,
                              coord_error *err);
/* Makes an empty file what the spec says, in one transaction. */
coord_status coordi_sql_create(const coordi_sql *sql, const coordi_records_spec *spec,
                               coord_error *err);
coord_status coordi_sql_prepare(coordi_sql *sql, const coordi_records_spec *spec,
                                coord_error *err);

coord_status coordi_sql_read(coordi_sql *sql, size_t statement,
                             const coordi_record_value *values, size_t count,
                             coordi_record_row_fn *row, void *arg, coord_error *err);

/* A list of writes, linked through their jobs: carries them out as one transaction, and
 * leaves in each what became of it. */
void coordi_sql_write_all(coordi_sql *sql, coordi_link *writes);
/* ... as failed, but for those that have failed already. */
void coordi_sql_fail_all(coordi_link *writes, const coord_error *why);

/* Makes a write fit for a queue: its job, when run, tells the outcome. */
void coordi_sql_enlist(coordi_record_write *write, coordi_link *queue);

#endif
