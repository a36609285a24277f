/* Durable records of the real world: written, read back, refused, and when there is no
 * room. */
#include "base/alloc.h"
#include "env/real_records.h"
#include "support/records_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const coordi_env *const ENV = &coordi_env_real;

static coordi_record_value text_value(const char *ptr, size_t len)
{
    return (coordi_record_value){.kind = COORDI_RECORD_TEXT, .text = {ptr, len}};
}

/* ---- what is written is there ---- */

typedef struct listing {
    int64_t next;
    size_t bytes;
    bool in_order;
} listing;

static bool look_at_note(const coordi_record_value *values, size_t count, void *arg)
{
    listing *seen = arg;
    if (count != 2 || values[0].kind != COORDI_RECORD_NUMBER ||
        values[1].kind != COORDI_RECORD_TEXT || values[0].number != seen->next) {
        seen->in_order = false;
    }
    seen->next++;
    seen->bytes += values[1].text.len;
    return true;
}

static void what_is_written_is_read_back_by_the_next(void **state)
{
    records_rig *r = *state;
    listing seen = {.in_order = true};
    records_rig_open(r, "a");
    assert_int_equal(notes_count(&r->notes), 0);
    records_rig_put(r, 0, 1000, "some text");
    assert_int_equal(r->notes.failed, 0);
    records_rig_close(r);
    records_rig_open(r, "a");
    assert_int_equal(ENV->records_read(r->notes.records, NOTES_ALL, NULL, 0, look_at_note,
                                       &seen, NULL),
                     COORD_OK);
    assert_int_equal(seen.next, 1000);
    assert_int_equal(seen.bytes, 9000);
    assert_true(seen.in_order);
    records_rig_close(r);
}

static void all_is_told_in_the_order_in_which_it_was_handed_over(void **state)
{
    records_rig *r = *state;
    records_rig_open(r, "a");
    records_rig_put(r, 0, RECORDS_RIG_NOTES, "text"); /* several commits */
    for (int i = 0; i < RECORDS_RIG_NOTES; i++) {
        assert_int_equal(r->note[i].told, 1);
        assert_int_equal(r->note[i].order, i + 1);
    }
    assert_int_equal(r->notes.failed, 0);
    records_rig_close(r);
    assert_int_equal(records_rig_reopened(r, "a"), RECORDS_RIG_NOTES);
}

typedef struct echo {
    coordi_record_kind kind;
    int64_t number;
    char text[32];
    size_t len;
    int rows;
} echo;

static bool take_echo(const coordi_record_value *values, size_t count, void *arg)
{
    echo *got = arg;
    got->rows += count == 1 ? 1 : 100;
    got->kind = values[0].kind;
    got->number = values[0].number;
    got->len = values[0].text.len;
    if (got->kind == COORDI_RECORD_TEXT) {
        memcpy(got->text, values[0].text.ptr,
               got->len < sizeof got->text ? got->len : sizeof got->text);
    }
    return true;
}

static echo echo_of(records_rig *r, coordi_record_value value)
{
    echo got = {0};
    assert_int_equal(
        ENV->records_read(r->notes.records, NOTES_ECHO, &value, 1, take_echo, &got, NULL),
        COORD_OK);
    assert_int_equal(got.rows, 1);
    return got;
}

static void values_come_back_as_they_went_in(void **state)
{
    static const char BYTES[] = "a\0b\xff\"'";
    records_rig *r = *state;
    records_rig_open(r, "a");
    echo got = echo_of(r, (coordi_record_value){.kind = COORDI_RECORD_NULL});
    assert_int_equal(got.kind, COORDI_RECORD_NULL);
    got = echo_of(
        r, (coordi_record_value){.kind = COORDI_RECORD_NUMBER, .number = INT64_MIN});
    assert_int_equal(got.kind, COORDI_RECORD_NUMBER);
    assert_true(got.number == INT64_MIN);
    got = echo_of(r, text_value(BYTES, sizeof BYTES - 1));
    assert_int_equal(got.kind, COORDI_RECORD_TEXT);
    assert_int_equal(got.len, sizeof BYTES - 1);
    assert_memory_equal(got.text, BYTES, sizeof BYTES - 1);
    got = echo_of(r, text_value(NULL, 0)); /* an empty text is no NULL */
    assert_int_equal(got.kind, COORDI_RECORD_TEXT);
    assert_int_equal(got.len, 0);
    records_rig_close(r);
}

typedef struct nest {
    records_rig *r;
    int rows;
    int64_t inner;
    coord_status same;
} nest;

static bool ask_again(const coordi_record_value *values, size_t count, void *arg)
{
    nest *at = arg;
    (void)values;
    (void)count;
    at->rows++;
    at->inner = notes_count(&at->r->notes);
    at->same =
        ENV->records_read(at->r->notes.records, NOTES_ALL, NULL, 0, ask_again, at, NULL);
    return at->rows < 2;
}

static void a_row_function_may_ask_again_and_say_enough(void **state)
{
    records_rig *r = *state;
    nest at = {.r = r};
    records_rig_open(r, "a");
    records_rig_put(r, 0, 3, "text");
    records_rig_close(r);
    records_rig_open(r, "a");
    assert_int_equal(
        ENV->records_read(r->notes.records, NOTES_ALL, NULL, 0, ask_again, &at, NULL),
        COORD_OK);
    assert_int_equal(at.rows, 2);
    assert_int_equal(at.inner, 3);
    assert_int_equal(at.same, COORD_ERR_STATE);
    assert_int_equal(notes_count(&r->notes), 3);
    records_rig_close(r);
}

static void reading_ends_with_the_first_write_and_with_patience(void **state)
{
    records_rig *r = *state;
    coordi_records_spec spec = notes_spec(records_rig_path(r, "a"));
    int64_t number = 0;
    echo got = {0};
    coord_error err;
    spec.patience_ms = 1000;
    assert_int_equal(ENV->records_open(r->env.loop, &spec, &r->notes.records, &err),
                     COORD_OK);
    assert_int_equal(ENV->records_read(r->notes.records, NOTES_ENDLESS, NULL, 0,
                                       take_echo, &number, &err),
                     COORD_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, spec.path));
    echo_of(r, text_value("x", 1)); /* that did no harm */
    ENV->records_close(r->notes.records);

    records_rig_open(r, "a");
    records_rig_put(r, 0, 1, "text");
    assert_int_equal(
        ENV->records_read(r->notes.records, NOTES_COUNT, NULL, 0, take_echo, &got, &err),
        COORD_ERR_STATE);
    records_rig_close(r);
}

/* ---- what fails alone ---- */

static void put_mixed(records_rig *r)
{
    notes_put(&r->notes, &r->note[0], 1, "good");
    notes_put(&r->notes, &r->note[1], 2, "bad");
    notes_put(&r->notes, &r->note[2], 1, "again");
    notes_put(&r->notes, &r->note[3], 3, "good");
    notes_write(&r->notes, &r->note[4], NOTES_STATEMENTS, 0);
    notes_write(&r->notes, &r->note[5], NOTES_PUT, 1);
    r->note[6].values[0].kind = COORDI_RECORD_NUMBER;
    r->note[6].values[0].number = 4;
    notes_write(&r->notes, &r->note[6], NOTES_PUT, 2); /* the text is NULL */
    notes_put(&r->notes, &r->note[7], 5, "good");
    notes_write(&r->notes, &r->note[8], NOTES_COUNT, 0); /* rows that nobody wants */
}

static void a_statement_that_fails_fails_alone(void **state)
{
    static const coord_status WANTED[] = {COORD_OK,      COORD_ERR_ARG, COORD_ERR_EXISTS,
                                          COORD_OK,      COORD_ERR_ARG, COORD_ERR_ARG,
                                          COORD_ERR_ARG, COORD_OK,      COORD_OK};
    enum { COUNT = sizeof WANTED / sizeof WANTED[0] };
    records_rig *r = *state;
    records_rig_open(r, "a");
    records_rig_do(r, put_mixed, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(r->note[i].error.status, WANTED[i]);
        assert_int_equal(r->note[i].order, i + 1);
        if (WANTED[i] != COORD_OK) {
            assert_non_null(strstr(r->note[i].error.text, records_rig_path(r, "a")));
        }
    }
    assert_non_null(strstr(r->note[1].error.cause, "CHECK"));
    assert_non_null(strstr(r->note[2].error.cause, "UNIQUE"));
    records_rig_close(r);
    assert_int_equal(records_rig_reopened(r, "a"), 3);
}

/* ---- no room ---- */

enum { BIG = 64 * 1024, LIMIT_BYTES = 2 * 1024 * 1024 };

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* SIGXFSZ would end this process; it does not, for that thread takes no signals. */
static void a_file_that_may_not_grow_fails_the_writes_and_later_ones_succeed(void **state)
{
    records_rig *r = *state;
    char *big = malloc(BIG + 1);
    assert_non_null(big);
    memset(big, 'x', BIG);
    big[BIG] = '\0';
    records_rig_open(r, "a");
    records_rig_put(r, 0, 1, "before");
    limit_files(LIMIT_BYTES);
    records_rig_put(r, 1, 100, big);
    limit_files(RLIM_INFINITY);
    const int failed = r->notes.failed;
    assert_true(failed > 0);
    for (int i = 0; i < 100; i++) {
        const coord_error *error = &r->note[i].error;
        assert_true(error->status == COORD_OK || error->status == COORD_ERR_IO);
        if (error->status != COORD_OK) {
            assert_int_equal(error->os_errno, EFBIG);
        }
    }
    records_rig_put(r, 200, 50, big);
    assert_int_equal(r->notes.failed, failed);
    records_rig_close(r);
    assert_int_equal(records_rig_reopened(r, "a"), 151 - failed);
    free(big);
}

/* ---- settings ---- */

static int64_t ask(const records_rig *r, const char *pragma)
{
    int64_t number = -1;
    assert_int_equal(coordi_sql_number(&r->notes.records->sql, pragma, &number, NULL),
                     COORD_OK);
    return number;
}

static void the_disk_is_waited_for_only_when_asked(void **state)
{
    records_rig *r = *state;
    coordi_records_spec spec = notes_spec(records_rig_path(r, "a"));
    records_rig_open(r, "a");
    assert_int_equal(ask(r, "PRAGMA synchronous"), 1);
    records_rig_close(r);
    spec.sync_full = true;
    assert_int_equal(ENV->records_open(r->env.loop, &spec, &r->notes.records, NULL),
                     COORD_OK);
    assert_int_equal(ask(r, "PRAGMA synchronous"), 2);
    records_rig_put(r, 0, 10, "text");
    assert_int_equal(r->notes.failed, 0);
    records_rig_close(r);
    assert_int_equal(records_rig_reopened(r, "a"), 10);
}

static void the_log_is_copied_into_the_file_and_does_not_grow_for_ever(void **state)
{
    enum { ROUNDS = 15, COUNT = 500, LEN = 4000 };
    records_rig *r = *state;
    struct stat wal;
    char text[LEN + 1];
    memset(text, 'x', LEN);
    text[LEN] = '\0';
    records_rig_open(r, "a");
    for (int i = 0; i < ROUNDS; i++) { /* 30 MB */
        records_rig_put(r, i * COUNT, COUNT, text);
    }
    assert_int_equal(r->notes.failed, 0);
    assert_int_equal(stat(records_rig_path(r, "a-wal"), &wal), 0);
    assert_true(wal.st_size < 16 * 1024 * 1024);
    records_rig_close(r);
    assert_int_equal(records_rig_reopened(r, "a"), ROUNDS * COUNT);
}

static void closing_leaves_the_file_alone(void **state)
{
    records_rig *r = *state;
    records_rig_open(r, "a");
    records_rig_put(r, 0, 10, "text");
    assert_int_equal(records_rig_files(r), 4); /* with -wal, -shm and -lock */
    records_rig_close(r);
    assert_int_equal(records_rig_reopened(r, "a"), 10);
    records_rig_settle(r, "a");
    assert_int_equal(records_rig_files(r), 1);
}

static void only_its_owner_may_look_at_a_new_file(void **state)
{
    static const char *const NAMES[] = {"a", "a-wal", "a-shm", "a-lock"};
    records_rig *r = *state;
    const mode_t mask = umask(0);
    (void)umask(mask);
    records_rig_open(r, "a");
    records_rig_put(r, 0, 1, "text");
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        struct stat about;
        assert_int_equal(stat(records_rig_path(r, NAMES[i]), &about), 0);
        assert_int_equal(about.st_mode & 07777, 0600);
    }
    assert_int_equal(umask(mask), mask);
    records_rig_close(r);
}

/* Every descriptor that leads into the folder. */
static void no_descriptor_is_left_to_children(void **state)
{
    records_rig *r = *state;
    int found = 0;
    records_rig_open(r, "a");
    records_rig_put(r, 0, 1, "text");
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    for (struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        char target[512];
        const ssize_t len = readlinkat(dirfd(dir), at->d_name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        if (strncmp(target, r->folder, strlen(r->folder)) == 0) {
            found++;
            assert_true(fcntl(atoi(at->d_name), F_GETFD) & FD_CLOEXEC);
        }
    }
    (void)closedir(dir);
    assert_int_equal(found, 4);
    records_rig_close(r);
}

static void a_host_that_drives_its_loop_is_told_in_its_steps(void **state)
{
    records_rig *r = *state;
    coord_loop_options options;
    coord_loop *loop = NULL;
    notes in;
    coord_loop_options_init(&options, sizeof options);
    options.own_thread = false;
    assert_int_equal(coord_loop_create(&options, &loop, NULL), COORD_OK);
    assert_int_equal(notes_open(&in, loop, records_rig_path(r, "a"), NULL), COORD_OK);
    for (int i = 0; i < 10; i++) {
        notes_put(&in, &r->note[i], i, "text");
    }
    assert_int_equal(in.told, 0);
    while (in.told < 10) {
        assert_int_equal(coord_loop_step(loop, 1000, NULL), COORD_OK);
    }
    assert_int_equal(in.failed, 0);
    notes_close(&in);
    coord_loop_destroy(loop);
    assert_int_equal(records_rig_reopened(r, "a"), 10);
}

/* ---- out of memory ---- */

typedef struct countdown {
    atomic_int left; /* allocations until one fails; below 0: none does any more */
} countdown;

static bool is_up(void *arg)
{
    countdown *at = arg;
    return atomic_fetch_sub(&at->left, 1) == 0;
}

static void every_allocation_of_open_and_read_may_fail(void **state)
{
    records_rig *r = *state;
    const coordi_records_spec spec = notes_spec(records_rig_path(r, "a"));
    coord_status rc = COORD_ERR_NOMEM;
    int fails = 0;
    for (; rc != COORD_OK; fails++) {
        countdown at = {fails};
        coord_error err;
        echo got = {0};
        coordi_records *records = NULL;
        coordi_alloc_set_fault(is_up, &at);
        rc = ENV->records_open(r->env.loop, &spec, &records, &err);
        if (rc == COORD_OK) {
            rc = ENV->records_read(records, NOTES_COUNT, NULL, 0, take_echo, &got, &err);
            ENV->records_close(records);
        }
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(rc == COORD_OK || rc == COORD_ERR_NOMEM);
        assert_true(fails < 50);
    }
    assert_true(fails > 5);
    assert_int_equal(records_rig_reopened(r, "a"), 0);
}

/* SQLite's own memory. */
static void a_write_that_finds_no_memory_fails_and_later_ones_succeed(void **state)
{
    enum { HUGE_TEXT = 8 * 1024 * 1024 };
    records_rig *r = *state;
    char *text = malloc(HUGE_TEXT + 1);
    assert_non_null(text);
    memset(text, 'x', HUGE_TEXT);
    text[HUGE_TEXT] = '\0';
    records_rig_open(r, "a");
    records_rig_put(r, 0, 1, "text");
    (void)sqlite3_hard_heap_limit64(sqlite3_memory_used() + HUGE_TEXT / 2);
    records_rig_put(r, 1, 1, text);
    (void)sqlite3_hard_heap_limit64(0);
    assert_int_equal(r->notes.failed, 1);
    assert_int_equal(r->note[0].error.status, COORD_ERR_NOMEM);
    records_rig_put(r, 1, 1, text);
    assert_int_equal(r->notes.failed, 1);
    records_rig_close(r);
    assert_int_equal(records_rig_reopened(r, "a"), 2);
    free(text);
}

#define TEST(name)                                                                       \
    cmocka_unit_test_setup_teardown(name, records_rig_setup, records_rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back_by_the_next),
        TEST(all_is_told_in_the_order_in_which_it_was_handed_over),
        TEST(values_come_back_as_they_went_in),
        TEST(a_row_function_may_ask_again_and_say_enough),
        TEST(reading_ends_with_the_first_write_and_with_patience),
        TEST(a_statement_that_fails_fails_alone),
        TEST(a_file_that_may_not_grow_fails_the_writes_and_later_ones_succeed),
        TEST(the_disk_is_waited_for_only_when_asked),
        TEST(the_log_is_copied_into_the_file_and_does_not_grow_for_ever),
        TEST(closing_leaves_the_file_alone),
        TEST(only_its_owner_may_look_at_a_new_file),
        TEST(no_descriptor_is_left_to_children),
        TEST(a_host_that_drives_its_loop_is_told_in_its_steps),
        TEST(every_allocation_of_open_and_read_may_fail),
        TEST(a_write_that_finds_no_memory_fails_and_later_ones_succeed),
    };
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
