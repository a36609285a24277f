/* Which files are taken for records, and what is left of those that are not. */
#include "support/records_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- files to begin with ---- */

/* A closed file of notes, of some pages. */
static void make_file(records_rig *r, const char *name)
{
    records_rig_open(r, name);
    records_rig_put(r, 0, 2000, "a text that takes a little room");
    assert_int_equal(r->notes.failed, 0);
    records_rig_close(r);
    records_rig_settle(r, name);
}

static void copy(const records_rig *r, const char *from, const char *to)
{
    size_t len = 0;
    char *bytes = records_rig_bytes(records_rig_path(r, from), &len);
    assert_non_null(bytes);
    records_rig_write(records_rig_path(r, to), bytes, len);
    free(bytes);
}

static void patch(const records_rig *r, const char *name, long at, const char *bytes,
                  size_t len)
{
    FILE *file = fopen(records_rig_path(r, name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void run_sql(const records_rig *r, const char *name, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(records_rig_path(r, name), &db), SQLITE_OK);
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s", sqlite3_errmsg(db));
    }
    (void)sqlite3_close(db);
}

/* As a process leaves it that is killed: what was written last stands in the WAL. */
static void make_crashed(records_rig *r, const char *name)
{
    char wal[64];
    records_rig_open(r, "live");
    records_rig_put(r, notes_count(&r->notes), 500, "text");
    assert_int_equal(r->notes.failed, 0);
    copy(r, "live", name);
    (void)snprintf(wal, sizeof wal, "%s-wal", name);
    copy(r, "live-wal", wal);
    records_rig_close(r);
    records_rig_settle(r, "live");
}

/* ---- refused, and left as it was ---- */

static void assert_same(const char *path, const char *bytes, size_t len)
{
    size_t now_len = 0;
    char *now = records_rig_bytes(path, &now_len);
    assert_int_equal(now != NULL, bytes != NULL);
    if (now != NULL) {
        assert_int_equal(now_len, len);
        assert_memory_equal(now, bytes, len);
    }
    free(now);
}

/* `says` are up to two words of the text or its cause. */
static void assert_refused(records_rig *r, const char *name, const char *found,
                           const char *expected)
{
    char wal[64];
    size_t len = 0;
    size_t wal_len = 0;
    coord_error err = {0};
    const coordi_records_spec spec = notes_spec(records_rig_path(r, name));
    (void)snprintf(wal, sizeof wal, "%s-wal", name);
    char *bytes = records_rig_bytes(spec.path, &len);
    char *wal_bytes = records_rig_bytes(records_rig_path(r, wal), &wal_len);
    for (int i = 0; i < 2; i++) { /* the first refusal changes nothing */
        const coord_status rc = records_rig_try(r, &spec, &err);
        if (rc != COORD_ERR_FORMAT || strstr(err.text, found) == NULL ||
            strstr(err.text, expected) == NULL) {
            fail_msg("%s: status %d: %s: %s", name, rc, err.text, err.cause);
        }
        assert_same(spec.path, bytes, len);
        assert_same(records_rig_path(r, wal), wal_bytes, wal_len);
    }
    free(bytes);
    free(wal_bytes);
}

static void what_is_no_sqlite_file_is_left_alone(void **state)
{
    static const char TEXT[] = "Dear diary, today I was not a SQLite file. I was this "
                               "and that, and longer than a hundred bytes altogether.";
    records_rig *r = *state;
    records_rig_write(records_rig_path(r, "text"), TEXT, sizeof TEXT);
    assert_refused(r, "text", "Dear diary", "expected \"SQLite format 3\"");
    records_rig_write(records_rig_path(r, "short"), TEXT, 7);
    assert_refused(r, "short", "7 bytes", "expected a SQLite file");
    assert_int_equal(records_rig_files(r), 2); /* and nothing beside it */
}

static void a_damaged_file_is_left_alone(void **state)
{
    char junk[4096];
    size_t len = 0;
    records_rig *r = *state;
    memset(junk, 0x5a, sizeof junk);
    make_file(r, "good");
    char *bytes = records_rig_bytes(records_rig_path(r, "good"), &len);
    assert_true(len > 5 * sizeof junk);

    records_rig_write(records_rig_path(r, "half"), bytes, len / 2);
    assert_refused(r, "half", "half", "");
    records_rig_write(records_rig_path(r, "odd"), bytes, len - 1000);
    assert_refused(r, "odd", "odd", "");
    copy(r, "good", "magic");
    patch(r, "magic", 3, "X", 1);
    assert_refused(r, "magic", "SQLXte", "expected");
    for (long page = 1; page < 5; page++) {
        copy(r, "good", "page");
        patch(r, "page", page * (long)sizeof junk, junk, sizeof junk);
        assert_refused(r, "page", "damaged", "expected");
    }
    copy(r, "good", "schema");
    patch(r, "schema", 100, junk, 100);
    assert_refused(r, "schema", "schema", "");
    copy(r, "good", "count"); /* of bytes in a cell */
    patch(r, "count", (long)sizeof junk + 8, junk, 200);
    assert_refused(r, "count", "damaged", "expected");
    free(bytes);
    assert_int_equal(records_rig_reopened(r, "good"), 2000);
}

static void files_of_others_and_of_other_releases_are_left_alone(void **state)
{
    records_rig *r = *state;
    make_file(r, "good");
    copy(r, "good", "other");
    patch(r, "other", 68, "\x12\x34\x56\x78", 4);
    assert_refused(r, "other", "application id 0x12345678", "expected 0x6e6f7465");
    copy(r, "good", "newer");
    patch(r, "newer", 60, "\0\0\0\4", 4);
    assert_refused(r, "newer", "newer release: schema version 4", "expected 3");
    copy(r, "good", "older");
    patch(r, "older", 60, "\0\0\0\2", 4);
    assert_refused(r, "older", "older release: schema version 2", "expected 3");
    run_sql(r, "plain", "CREATE TABLE x(y)");
    assert_refused(r, "plain", "application id 0x00000000", "expected");
    run_sql(r, "wal", "PRAGMA journal_mode=WAL; CREATE TABLE x(y)");
    assert_refused(r, "wal", "application id 0x00000000", "expected");
}

static void tables_that_are_not_ours_are_left_alone(void **state)
{
    records_rig *r = *state;
    make_file(r, "good");
    copy(r, "good", "lacks");
    run_sql(r, "lacks", "ALTER TABLE note RENAME TO memo");
    assert_refused(r, "lacks", "INSERT INTO note", "");
}

/* ---- with a WAL that its owner left ---- */

static void what_a_killed_process_left_is_recovered(void **state)
{
    records_rig *r = *state;
    make_crashed(r, "a");
    assert_int_equal(records_rig_reopened(r, "a"), 500);
    records_rig_settle(r, "a");
    assert_int_equal(records_rig_files(r), 2);
    assert_int_equal(records_rig_reopened(r, "a"), 500);
}

static void a_wal_is_kept_when_its_file_is_refused(void **state)
{
    char junk[4096];
    records_rig *r = *state;
    memset(junk, 0x5a, sizeof junk);
    make_crashed(r, "newer"); /* which stands in the WAL alone */
    run_sql(r, "newer", "PRAGMA user_version=9");
    assert_refused(r, "newer", "version 9", "expected 3");
    make_crashed(r, "other");
    run_sql(r, "other", "PRAGMA application_id=1");
    assert_refused(r, "other", "application id 0x00000001", "expected");
    make_crashed(r, "lacks");
    run_sql(r, "lacks", "DROP TABLE note");
    assert_refused(r, "lacks", "note", "");
    make_crashed(r, "gone");
    records_rig_write(records_rig_path(r, "gone"), "", 0);
    assert_refused(r, "gone", "0 bytes", "expected both");
    make_crashed(r, "damaged");
    patch(r, "damaged", 2L * (long)sizeof junk, junk, sizeof junk);
    assert_refused(r, "damaged", "damaged", "expected");
}

/* A WAL ends where its checksums do: what was cut off had not been told, or was lost with
 * the machine. */
static void a_torn_wal_counts_as_far_as_it_is_whole(void **state)
{
    size_t len = 0;
    records_rig *r = *state;
    make_crashed(r, "a");
    char *bytes = records_rig_bytes(records_rig_path(r, "a-wal"), &len);
    records_rig_write(records_rig_path(r, "a-wal"), bytes, len - 100);
    free(bytes);
    const int64_t count = records_rig_reopened(r, "a");
    assert_true(count >= 0 && count < 500);
}

/* ---- taken ---- */

static void an_empty_file_is_new(void **state)
{
    struct stat about;
    records_rig *r = *state;
    records_rig_write(records_rig_path(r, "a"), "", 0);
    assert_int_equal(chmod(records_rig_path(r, "a"), 0640), 0);
    make_file(r, "a");
    assert_int_equal(records_rig_reopened(r, "a"), 2000);
    assert_int_equal(stat(records_rig_path(r, "a"), &about), 0);
    assert_int_equal(about.st_mode & 07777, 0640); /* as its maker chose */
}

static void a_file_in_the_old_journal_mode_is_taken(void **state)
{
    records_rig *r = *state;
    make_file(r, "a");
    run_sql(r, "a", "PRAGMA journal_mode=DELETE");
    assert_int_equal(records_rig_reopened(r, "a"), 2000);
}

static int last_page(void *arg, int count, char **values, char **names)
{
    (void)count;
    (void)names;
    *(int *)arg = atoi(values[0]);
    return 0;
}

static void others_may_read_and_write_meanwhile(void **state)
{
    sqlite3 *db = NULL;
    int count = 0;
    coordi_records_spec spec;
    records_rig *r = *state;
    spec = notes_spec(records_rig_path(r, "a"));
    spec.patience_ms = 5000;
    assert_int_equal(
        r->env.loop->env->records_open(r->env.loop, &spec, &r->notes.records, NULL),
        COORD_OK);
    r->env.loop->env->records_close(r->notes.records);
    records_rig_open(r, "a");
    records_rig_put(r, 0, 10, "text");
    assert_int_equal(sqlite3_open(spec.path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "SELECT count(*) FROM note", last_page, &count, NULL),
        SQLITE_OK);
    assert_int_equal(count, 10);
    assert_int_equal(
        sqlite3_exec(db, "INSERT INTO note VALUES(100, 'theirs')", NULL, NULL, NULL),
        SQLITE_OK);
    records_rig_put(r, 10, 10, "text");
    assert_int_equal(r->notes.failed, 0);
    records_rig_close(r);
    (void)sqlite3_close(db);
    assert_int_equal(records_rig_reopened(r, "a"), 21);
}

static void who_writes_too_long_fails_the_writes_of_that_time(void **state)
{
    sqlite3 *db = NULL;
    records_rig *r = *state;
    coordi_records_spec spec = notes_spec(records_rig_path(r, "a"));
    records_rig_open(r, "a"); /* sets the callbacks up */
    records_rig_close(r);
    spec.patience_ms = 1000;
    assert_int_equal(
        r->env.loop->env->records_open(r->env.loop, &spec, &r->notes.records, NULL),
        COORD_OK);
    assert_int_equal(sqlite3_open(spec.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    records_rig_put(r, 0, 3, "text");
    assert_int_equal(r->notes.failed, 3);
    assert_int_equal(r->note[2].error.status, COORD_ERR_BUSY);
    assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    records_rig_put(r, 0, 3, "text");
    assert_int_equal(r->notes.failed, 3);
    records_rig_close(r);
    (void)sqlite3_close(db);
    assert_int_equal(records_rig_reopened(r, "a"), 3);
}

static void checking_ends_with_patience(void **state)
{
    coord_error err;
    records_rig *r = *state;
    make_file(r, "good");
    run_sql(r, "good",
            "WITH RECURSIVE n(i) AS (SELECT 5000 UNION ALL SELECT i + 1 FROM n"
            " LIMIT 50000) INSERT INTO note SELECT i, 'text' FROM n");
    coordi_records_spec spec = notes_spec(records_rig_path(r, "good"));
    spec.patience_ms = 0; /* over before it has begun */
    assert_int_equal(records_rig_try(r, &spec, &err), COORD_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "within 0 ms"));
    assert_int_equal(records_rig_reopened(r, "good"), 52000);
}

/* ---- paths ---- */

static void assert_no_path(records_rig *r, const char *name, int os_errno,
                           const char *says)
{
    coord_error err = {0};
    const coordi_records_spec spec = notes_spec(records_rig_path(r, name));
    assert_int_equal(records_rig_try(r, &spec, &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, os_errno);
    if (strstr(err.text, says) == NULL) {
        fail_msg("%s: %s", err.text, err.cause);
    }
}

static void a_path_that_leads_nowhere_is_named(void **state)
{
    records_rig *r = *state;
    coord_error err;
    assert_int_equal(mkdir(records_rig_path(r, "folder"), 0700), 0);
    assert_no_path(r, "folder", EISDIR, "is a folder, expected a file");
    assert_int_equal(mkfifo(records_rig_path(r, "pipe"), 0600), 0);
    assert_no_path(r, "pipe", 0, "is a pipe, expected a file");
    assert_no_path(r, "none/below", ENOENT, "folder is not there");
    records_rig_write(records_rig_path(r, "file"), "", 0);
    assert_no_path(r, "file/below", ENOTDIR, "");
    assert_int_equal(symlink("loop", records_rig_path(r, "loop")), 0);
    assert_no_path(r, "loop", ELOOP, "");
    coordi_records_spec spec = notes_spec("");
    assert_int_equal(records_rig_try(r, &spec, &err), COORD_ERR_ARG);
}

static void a_path_that_is_too_long_for_sqlite_is_refused(void **state)
{
    char name[1024];
    coord_error err;
    records_rig *r = *state;
    char *at = name + snprintf(name, sizeof name, "%s", r->folder);
    for (int i = 0; i < 4; i++) {
        at += snprintf(at, 161, "/%0159d", i);
        assert_int_equal(mkdir(name, 0700), 0);
    }
    (void)strcpy(at, "/a");
    coordi_records_spec spec = notes_spec(name);
    coordi_records *records = NULL;
    assert_int_equal(r->env.loop->env->records_open(r->env.loop, &spec, &records, &err),
                     COORD_ERR_IO);
    assert_int_equal(err.os_errno, ENAMETOOLONG);
}

static void a_file_with_two_names_is_refused(void **state)
{
    records_rig *r = *state;
    make_file(r, "a");
    assert_int_equal(link(records_rig_path(r, "a"), records_rig_path(r, "b")), 0);
    assert_no_path(r, "b", 0, "2 names");
    assert_int_equal(unlink(records_rig_path(r, "b")), 0);
    assert_int_equal(records_rig_reopened(r, "a"), 2000);
}

static void a_link_leads_to_its_file(void **state)
{
    struct stat about;
    records_rig *r = *state;
    assert_int_equal(mkdir(records_rig_path(r, "folder"), 0700), 0);
    assert_int_equal(symlink("folder/a", records_rig_path(r, "link")), 0);
    make_file(r, "link"); /* which is not there at first */
    assert_int_equal(lstat(records_rig_path(r, "link"), &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(lstat(records_rig_path(r, "folder/a"), &about), 0);
    assert_true(S_ISREG(about.st_mode));
    assert_int_equal(about.st_mode & 07777, 0600);
    assert_int_equal(records_rig_reopened(r, "folder/a"), 2000);
    records_rig_settle(r, "folder/a");
    assert_int_equal(records_rig_files(r), 2);
}

static void a_relative_path_is_taken_from_the_current_folder(void **state)
{
    char before[1024];
    coord_error err;
    records_rig *r = *state;
    coordi_records_spec spec = notes_spec("plain");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(r->folder), 0);
    const coord_status rc = records_rig_try(r, &spec, &err);
    assert_int_equal(chdir(before), 0); /* it is looked up once */
    assert_int_equal(rc, COORD_OK);
    assert_int_equal(records_rig_reopened(r, "plain"), 0);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, records_rig_setup, records_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_no_sqlite_file_is_left_alone),
        TEST(a_damaged_file_is_left_alone),
        TEST(files_of_others_and_of_other_releases_are_left_alone),
        TEST(tables_that_are_not_ours_are_left_alone),
        TEST(what_a_killed_process_left_is_recovered),
        TEST(a_wal_is_kept_when_its_file_is_refused),
        TEST(a_torn_wal_counts_as_far_as_it_is_whole),
        TEST(an_empty_file_is_new),
        TEST(a_file_in_the_old_journal_mode_is_taken),
        TEST(others_may_read_and_write_meanwhile),
        TEST(who_writes_too_long_fails_the_writes_of_that_time),
        TEST(checking_ends_with_patience),
        TEST(a_path_that_leads_nowhere_is_named),
        TEST(a_path_that_is_too_long_for_sqlite_is_refused),
        TEST(a_file_with_two_names_is_refused),
        TEST(a_link_leads_to_its_file),
        TEST(a_relative_path_is_taken_from_the_current_folder),
    };
    return cmocka_run_group_tests_name("records_file", tests, NULL, NULL);
}
