#include "coordinator/ledger_sql.h"

/* Written for people, too, who look with the sqlite3 shell. */
const char coordi_ledger_schema[] =
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE total (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
    "INSERT INTO total VALUES ('accepted', 0), ('finished', 0), ('failed', 0),"
    " ('moved', 0);"
    "CREATE TABLE task ("
    " number INTEGER PRIMARY KEY AUTOINCREMENT,"
    " id TEXT NOT NULL,"
    " role TEXT NOT NULL,"
    " state TEXT NOT NULL," /* queued, running, finished, failed */
    " attempt INTEGER NOT NULL DEFAULT 1,"
    " losses INTEGER NOT NULL DEFAULT 0," /* attempts that were lost */
    " worker TEXT,"
    " token TEXT," /* of the connection by which the worker got it */
    " sequence INTEGER NOT NULL DEFAULT 0," /* of the last result in this attempt */
    " request TEXT,"                        /* that it answers */
    " completed INTEGER,"
    " result TEXT,"
    " accepted_at TEXT NOT NULL,"
    " ended_at TEXT,"
    " status INTEGER," /* with which it fails; the end may still have to be told */
    " error TEXT,"
    " cause TEXT,"
    " past TEXT,"
    " resource TEXT,"
    " ended INTEGER," /* counts the ends */
    " task TEXT NOT NULL);"
    "CREATE UNIQUE INDEX task_open ON task (id) WHERE state IN ('queued', 'running');"
    "CREATE INDEX task_ended ON task (ended) WHERE ended IS NOT NULL;"
    "CREATE TABLE worker (role TEXT, id TEXT, host TEXT NOT NULL, port INTEGER NOT NULL,"
    " state TEXT NOT NULL," /* connected, lost */
    " libcoord INTEGER NOT NULL, token TEXT NOT NULL, PRIMARY KEY (role, id))"
    " WITHOUT ROWID;"
    "CREATE TRIGGER task_accepted AFTER INSERT ON task BEGIN"
    " UPDATE total SET value = value + 1 WHERE name = 'accepted'; END;"
    "CREATE TRIGGER task_finished AFTER UPDATE OF ended ON task BEGIN"
    " UPDATE total SET value = value + 1 WHERE name = new.state; END;"
    "CREATE TRIGGER task_moved AFTER UPDATE OF attempt ON task"
    " WHEN new.attempt > old.attempt BEGIN"
    " UPDATE total SET value = value + 1 WHERE name = 'moved'; END;";

#define OPEN "state IN ('queued', 'running')"
#define TIME(n) "strftime('%Y-%m-%dT%H:%M:%fZ', " n " / 1000.0, 'unixepoch')"

const char *const coordi_ledger_statements[COORDI_SQL_COUNT] = {
    [COORDI_SQL_ABOUT] = "INSERT OR REPLACE INTO about VALUES (?1, ?2)",
    [COORDI_SQL_ACCEPT] = "INSERT INTO task (number, id, role, state, accepted_at, task)"
                          " VALUES (?1, ?2, ?3, 'queued', " TIME("?4") ", ?5)",
    [COORDI_SQL_BEGIN] =
        "UPDATE task SET state = 'running', attempt = ?2, losses = ?3, worker = ?4,"
        " resource = ?5, past = ?6, token = ?7, sequence = 0, request = NULL, completed "
        "= NULL,"
        " result = NULL WHERE number = ?1 AND " OPEN,
    [COORDI_SQL_REQUEUE] =
        "UPDATE task SET state = 'queued', attempt = ?2, losses = ?3, worker = NULL,"
        " resource = NULL, past = ?6, token = NULL, sequence = 0, request = NULL, "
        "completed = NULL,"
        " result = NULL WHERE number = ?1 AND " OPEN,
    [COORDI_SQL_REPLACE_TEXT] = "UPDATE task SET task = ?2 WHERE number = ?1 AND " OPEN,
    [COORDI_SQL_RESULT] =
        "UPDATE task SET sequence = ?3, request = ?4, completed = ?5, result = ?6"
        " WHERE number = ?1 AND attempt = ?2 AND " OPEN,
    [COORDI_SQL_FAIL] = "UPDATE task SET status = ?2, error = ?3, cause = ?4"
                        " WHERE number = ?1 AND " OPEN,
    [COORDI_SQL_END] = "UPDATE task SET state = ?2, error = ?3, cause = ?4,"
                       " ended_at = " TIME("?5") ", ended = ?6"
                                                 " WHERE number = ?1 AND " OPEN,
    [COORDI_SQL_PRUNE] = "DELETE FROM task WHERE ended <= ?1",
    [COORDI_SQL_CONNECTED] = "INSERT OR REPLACE INTO worker (role, id, host, port, state,"
                             " libcoord, token)"
                             " VALUES (?1, ?2, ?3, ?4, 'connected', ?5, ?6)",
    [COORDI_SQL_LOST] = "UPDATE worker SET state = 'lost' WHERE token = ?1",
    [COORDI_SQL_PARTED] = "DELETE FROM worker WHERE token = ?1",
    [COORDI_SQL_GET_ABOUT] = "SELECT name, value FROM about",
    [COORDI_SQL_GET_LAST] =
        "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'task'),"
        " (SELECT max(ended) FROM task WHERE ended IS NOT NULL)",
    [COORDI_SQL_GET_TOTALS] = "SELECT name, value FROM total",
    [COORDI_SQL_GET_TASKS] =
        "SELECT number, id, role, state = 'running', attempt, losses, worker, resource,"
        " past, sequence, request, completed, result, task, token, status, error, cause"
        " FROM task WHERE " OPEN " ORDER BY number",
    [COORDI_SQL_GET_WORKERS] =
        "SELECT role, id, host, port, state = 'connected', libcoord, token FROM worker",
};

const char *coordi_ledger_request_str(coordi_ticket_kind kind)
{
    static const char *const NAME[] = {
        [COORDI_TICKET_START] = "start",
        [COORDI_TICKET_ASK] = "ask",
        [COORDI_TICKET_LEARN] = "learn",
        [COORDI_TICKET_CLOSE] = "close",
    };
    return NAME[kind];
}
