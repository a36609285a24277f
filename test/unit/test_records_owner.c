/* Records belong to one owner at a time: in this process, among processes, across forks
 * and after a SIGKILL. This program is its own children: "test_records_owner ROLE PATH".
 */
#include "support/processes.h"
#include "support/records_rig.h"

#include "env/real_records.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000, SKIP = 77, FORKED = 7 };

/* ---- what the children do ---- */

static void child_must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

/* Has the file until its input ends. */
static int hold(const char *path)
{
    env_rig env;
    notes in;
    coord_error err = {0};
    env_rig_open(&env, NULL, NULL);
    child_must(notes_open(&in, env.loop, path, &err) == COORD_OK, err.text);
    child_must(puts("open") >= 0 && fflush(stdout) == 0, "stdout");
    while (getchar() != EOF) {
    }
    notes_close(&in);
    env_rig_close(&env);
    return 0;
}

typedef struct writer {
    notes in;
    note note[64];
    int64_t next;
    char text[2000];
} writer;

static void say(note *which)
{
    writer *w = which->in->arg;
    const int64_t id = which->values[0].number;
    child_must(which->error.status == COORD_OK, which->error.text);
    child_must(printf("%lld\n", (long long)id) > 0 && fflush(stdout) == 0, "stdout");
    notes_put(&w->in, which, w->next++, w->text); /* the next one, for ever */
}

static void start_writing(void *arg)
{
    writer *w = arg;
    for (int i = 0; i < 64; i++) {
        notes_put(&w->in, &w->note[i], w->next++, w->text);
    }
}

/* Writes, and tells what is durable, until it is killed. */
static int write_for_ever(const char *path)
{
    env_rig env;
    coord_error err = {0};
    writer *w = calloc(1, sizeof *w);
    env_rig_open(&env, NULL, NULL);
    child_must(notes_open(&w->in, env.loop, path, &err) == COORD_OK, err.text);
    memset(w->text, 'x', sizeof w->text - 1);
    w->in.on_told = say;
    w->in.arg = w;
    w->next = notes_count(&w->in);
    env_rig_do(&env, start_writing, w);
    while (pause() != 0) {
    }
    return 0;
}

/* A disk of its own, which is soon full. */
static int fill_disk(const char *folder)
{
    enum { BIG = 60000, ROOM_BYTES = 1024 * 1024 };
    char options[64];
    void *state = NULL;
    static char big[BIG + 1];
    (void)snprintf(options, sizeof options, "size=%d", ROOM_BYTES);
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, "") != 0 ||
        mount("none", folder, "tmpfs", 0, options) != 0) {
        return SKIP;
    }
    child_must(setenv("TMPDIR", folder, 1) == 0 && records_rig_setup(&state) == 0, "rig");
    records_rig *r = state;
    memset(big, 'x', BIG);
    records_rig_open(r, "a");
    records_rig_put(r, 0, 40, big);
    child_must(r->notes.failed > 0, "it went in all the same");
    for (int i = 0; i < 40; i++) {
        const coord_error *error = &r->note[i].error;
        child_must(error->status == COORD_OK ||
                       (error->status == COORD_ERR_IO && error->os_errno == ENOSPC),
                   error->text);
    }

    coord_error err;
    const coordi_records_spec spec = notes_spec(records_rig_path(r, "b"));
    const coord_status rc = records_rig_try(r, &spec, &err); /* a few KB may fit */
    child_must(rc == COORD_OK || (rc == COORD_ERR_IO && err.os_errno == ENOSPC),
               err.text);

    child_must(mount("none", folder, NULL, MS_REMOUNT, "size=64m") == 0, "remount");
    const int failed = r->notes.failed;
    records_rig_put(r, 100, 40, big);
    child_must(r->notes.failed == failed, r->note[0].error.text);
    records_rig_close(r);
    child_must(records_rig_reopened(r, "a") == 80 - failed, "count");
    child_must(records_rig_try(r, &spec, &err) == COORD_OK, err.text);
    records_rig_settle(r, "b");
    return records_rig_teardown(&state);
}

/* Root, too, is then held to the permissions of what it owns. */
static bool give_up_privileges(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[2] = {0};
    if (syscall(SYS_capget, &head, has) != 0) {
        return false;
    }
    has[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
    return syscall(SYS_capset, &head, has) == 0;
}

static int meet_permissions(const char *folder)
{
    void *state = NULL;
    coord_error err = {0};
    child_must(give_up_privileges(), "capset");
    child_must(setenv("TMPDIR", folder, 1) == 0 && records_rig_setup(&state) == 0, "rig");
    records_rig *r = state;
    const coordi_records_spec spec = notes_spec(records_rig_path(r, "a"));
    child_must(records_rig_try(r, &spec, &err) == COORD_OK, err.text);
    records_rig_settle(r, "a");

    child_must(chmod(spec.path, 0400) == 0, "chmod");
    child_must(records_rig_try(r, &spec, &err) == COORD_ERR_IO, "it can't be written");
    child_must(err.os_errno == EACCES && strstr(err.text, "only be read") != NULL,
               err.text);
    child_must(chmod(spec.path, 0) == 0, "chmod");
    child_must(records_rig_try(r, &spec, &err) == COORD_ERR_IO, "it can't be read");
    child_must(err.os_errno == EACCES, err.text);

    child_must(chmod(spec.path, 0600) == 0 && chmod(r->folder, 0500) == 0, "chmod");
    child_must(records_rig_try(r, &spec, &err) == COORD_ERR_IO, "no room for a lock");
    child_must(err.os_errno == EACCES && strstr(err.text, "-lock") != NULL, err.text);
    child_must(chmod(r->folder, 0) == 0, "chmod");
    child_must(records_rig_try(r, &spec, &err) == COORD_ERR_IO, "a closed folder");
    child_must(err.os_errno == EACCES, err.text);
    child_must(chmod(r->folder, 0700) == 0, "chmod");
    return records_rig_teardown(&state);
}

static process *start_self(const char *role, const char *path)
{
    const char *const args[] = {role, path, NULL};
    return process_start_held("test/unit/test_records_owner", args);
}

/* ---- one owner at a time ---- */

static coord_status try_for(records_rig *r, const char *name, int64_t patience_ms,
                            coord_error *err)
{
    coordi_records_spec spec = notes_spec(records_rig_path(r, name));
    spec.patience_ms = patience_ms;
    return records_rig_try(r, &spec, err);
}

static void this_process_has_it_once(void **state)
{
    coord_error err;
    records_rig *r = *state;
    records_rig_open(r, "a");
    assert_int_equal(symlink("a", records_rig_path(r, "link")), 0);
    assert_int_equal(link(records_rig_path(r, "a"), records_rig_path(r, "name")), 0);
    static const char *const NAMES[] = {"a", "./a", "link", "name"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        assert_int_equal(try_for(r, NAMES[i], 30, &err), COORD_ERR_BUSY);
        assert_non_null(strstr(err.text, "in use by this process"));
    }
    assert_int_equal(unlink(records_rig_path(r, "name")), 0);
    records_rig_put(r, 0, 10, "text"); /* and still does */
    assert_int_equal(r->notes.failed, 0);
    process *other = start_self("hold", records_rig_path(r, "a"));
    records_rig_close(r);
    assert_string_equal(process_read_line(other, PATIENCE_MS), "open");
    process_end_input(other);
    assert_int_equal(process_wait(other, PATIENCE_MS), 0);
}

static void another_process_keeps_it_until_it_ends(void **state)
{
    char who[32];
    coord_error err;
    records_rig *r = *state;
    process *other = start_self("hold", records_rig_path(r, "a"));
    assert_string_equal(process_read_line(other, PATIENCE_MS), "open");
    for (int i = 0; i < 2; i++) { /* looking does not take the lock away */
        assert_int_equal(try_for(r, "a", 30, &err), COORD_ERR_BUSY);
        (void)snprintf(who, sizeof who, "in use by process %d", process_pid(other));
        assert_non_null(strstr(err.text, who));
    }
    process_signal(other, SIGKILL);
    assert_int_equal(try_for(r, "a", PATIENCE_MS, &err), COORD_OK);
    (void)process_wait(other, PATIENCE_MS);

    other = start_self("hold", records_rig_path(r, "a"));
    assert_string_equal(process_read_line(other, PATIENCE_MS), "open");
    process_end_input(other);
    assert_int_equal(try_for(r, "a", PATIENCE_MS, &err), COORD_OK); /* it waits */
    assert_int_equal(process_wait(other, PATIENCE_MS), 0);
}

static void put_and_close(records_rig *r)
{
    for (int i = 0; i < 1000; i++) {
        notes_put(&r->notes, &r->note[i], r->first_id + i, "text");
    }
    records_rig_close(r);
}

/* What was handed over is written and told; the next owner waits for it. */
static void the_next_open_waits_for_the_close(void **state)
{
    records_rig *r = *state;
    for (int i = 0; i < 10; i++) {
        records_rig_open(r, "a");
        r->first_id = i * 1000;
        memset(r->note, 0, 1000 * sizeof r->note[0]);
        records_rig_do(r, put_and_close, 1000);
        assert_int_equal(r->notes.failed, 0);
        assert_int_equal(records_rig_reopened(r, "a"), (i + 1) * 1000);
    }
}

static void reopen_on_the_loop(records_rig *r)
{
    put_and_close(r);
    coord_error err = {0};
    const coordi_records_spec spec = notes_spec(records_rig_path(r, "a"));
    coordi_records *next = NULL; /* here nobody is told meanwhile */
    if (coordi_env_real.records_open(r->env.loop, &spec, &next, &err) != COORD_OK) {
        r->count = -1;
        return;
    }
    coordi_env_real.records_close(next);
}

static void it_can_be_opened_again_on_the_loop_itself(void **state)
{
    records_rig *r = *state;
    records_rig_open(r, "a");
    records_rig_do(r, reopen_on_the_loop, 1000);
    assert_int_equal(r->count, 0);
    assert_int_equal(records_rig_reopened(r, "a"), 1000);
}

enum { OPENERS = 8 };

typedef struct opener {
    pthread_t thread;
    coord_loop *loop;
    const char *path;
    int opened;
} opener;

static void *open_often(void *arg)
{
    opener *at = arg;
    for (int i = 0; i < 10; i++) {
        notes in;
        if (notes_open(&in, at->loop, at->path, NULL) == COORD_OK) {
            at->opened++;
            notes_close(&in);
        }
    }
    return NULL;
}

static void many_threads_take_turns(void **state)
{
    char path[512];
    opener all[OPENERS] = {0};
    records_rig *r = *state;
    (void)snprintf(path, sizeof path, "%s", records_rig_path(r, "a"));
    for (int i = 0; i < OPENERS; i++) {
        all[i].loop = r->env.loop;
        all[i].path = path;
        assert_int_equal(pthread_create(&all[i].thread, NULL, open_often, &all[i]), 0);
    }
    for (int i = 0; i < OPENERS; i++) {
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
        assert_int_equal(all[i].opened, 10);
    }
}

/* ---- SIGKILL ---- */

/* Reads what the child says is durable, kills it, and reads the rest. */
static int64_t kill_after(process *child, int lines)
{
    int64_t last = -1;
    for (int i = 0; i < lines; i++) {
        const char *line = process_read_line(child, PATIENCE_MS);
        assert_non_null(line);
        last = atoll(line);
    }
    process_signal(child, SIGKILL);
    assert_int_equal(process_wait(child, PATIENCE_MS), 128 + SIGKILL);
    return last;
}

typedef struct listing {
    int64_t count;
    bool whole; /* none missing, no text cut off */
} listing;

static bool look_at_note(const coordi_record_value *values, size_t count, void *arg)
{
    listing *seen = arg;
    (void)count;
    if (values[0].number != seen->count || values[1].text.len != 1999) {
        seen->whole = false;
    }
    seen->count++;
    return true;
}

static void what_was_told_survives_sigkill(void **state)
{
    static const int LINES[] = {1, 2, 64, 65, 300, 1000, 3000, 1};
    records_rig *r = *state;
    for (size_t i = 0; i < sizeof LINES / sizeof LINES[0]; i++) {
        listing seen = {.whole = true};
        process *child = start_self("write", records_rig_path(r, "a"));
        const int64_t last = kill_after(child, LINES[i]);
        records_rig_open(r, "a");
        assert_int_equal(coordi_env_real.records_read(r->notes.records, NOTES_ALL, NULL,
                                                      0, look_at_note, &seen, NULL),
                         COORD_OK);
        assert_true(seen.whole);
        assert_true(seen.count > last);
        records_rig_close(r);
        records_rig_settle(r, "a");
    }
}

/* Waits until so many files have come into being. */
static void await_files(int watch, int count)
{
    _Alignas(struct inotify_event) char bytes[4096];
    while (count > 0) {
        const ssize_t len = read(watch, bytes, sizeof bytes);
        assert_true(len > 0);
        for (ssize_t at = 0; at < len; count--) {
            const struct inotify_event *event = (const void *)(bytes + at);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
}

/* Once the file is there, its lock, its journal, its WAL: it is made whole or not at all.
 */
static void a_kill_while_the_file_is_made_leaves_none_or_a_whole_one(void **state)
{
    enum { FILES = 5, TURNS = 4 };
    records_rig *r = *state;
    for (int i = 0; i < FILES * TURNS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "f%d", i);
        int watch = inotify_init1(IN_CLOEXEC);
        assert_true(inotify_add_watch(watch, r->folder, IN_CREATE) >= 0);
        process *child = start_self("write", records_rig_path(r, name));
        await_files(watch, 1 + i % FILES);
        process_signal(child, SIGKILL);
        (void)process_wait(child, PATIENCE_MS);
        (void)close(watch);
        assert_true(records_rig_reopened(r, name) >= 0);
        records_rig_settle(r, name);
    }
}

/* ---- fork ---- */

static int wait_for(pid_t child)
{
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool in_a_child(records_rig *r)
{
    coord_error err;
    coord_loop *loop = NULL;
    coord_loop_options options;
    coord_loop_options_init(&options, sizeof options);
    options.own_thread = false;
    const coordi_records_spec spec = notes_spec(records_rig_path(r, "a"));
    coordi_records *records = NULL;
    if (notes_count(&r->notes) != -1) {
        return false;
    }
    notes_close(&r->notes);
    if (coord_loop_create(&options, &loop, NULL) != COORD_OK) {
        return false;
    }
    /* SQLite still has the parent's connection in this process's memory. */
    bool refused =
        coordi_env_real.records_open(loop, &spec, &records, &err) == COORD_ERR_FORKED &&
        strstr(err.text, "forked") != NULL;
    coord_loop_destroy(loop);
    return refused;
}

static void a_forked_child_can_only_destroy_it(void **state)
{
    coord_error err;
    records_rig *r = *state;
    records_rig_open(r, "a");
    records_rig_put(r, 0, 10, "text");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(in_a_child(r) ? FORKED : 1);
    }
    assert_int_equal(wait_for(child), FORKED);
    /* Nobody else can have it, and nothing of it has gone. */
    process *other = start_self("once", records_rig_path(r, "a"));
    assert_int_equal(process_wait(other, PATIENCE_MS), COORD_ERR_BUSY);
    assert_int_equal(try_for(r, "a", 30, &err), COORD_ERR_BUSY);
    records_rig_put(r, 10, 10, "text");
    assert_int_equal(r->notes.failed, 0);
    records_rig_close(r);
    assert_int_equal(records_rig_reopened(r, "a"), 20);
}

static int open_once(const char *path)
{
    env_rig env;
    coordi_records *records = NULL;
    coordi_records_spec spec = notes_spec(path);
    spec.patience_ms = 500;
    env_rig_open(&env, NULL, NULL);
    const coord_status rc = coordi_env_real.records_open(env.loop, &spec, &records, NULL);
    coordi_env_real.records_close(records);
    env_rig_close(&env);
    return (int)rc;
}

static void a_forked_child_that_lives_on_keeps_nobody_out(void **state)
{
    int hold_on[2];
    char byte;
    records_rig *r = *state;
    assert_int_equal(pipe(hold_on), 0);
    records_rig_open(r, "a");
    records_rig_put(r, 0, 10, "text");
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(hold_on[1]);
        _exit(read(hold_on[0], &byte, 1) == 0 ? FORKED : 1);
    }
    (void)close(hold_on[0]);
    records_rig_close(r);
    records_rig_settle(r, "a");
    process *other = start_self("once", records_rig_path(r, "a"));
    assert_int_equal(process_wait(other, PATIENCE_MS), COORD_OK);
    assert_int_equal(records_rig_reopened(r, "a"), 10);
    (void)close(hold_on[1]);
    assert_int_equal(wait_for(child), FORKED);
}

/* ---- the thread, the disk ---- */

/* Looks through this process's threads for one of that name. */
static bool find_thread(const char *wanted, char *status, size_t size)
{
    bool found = false;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *at = readdir(dir); at != NULL && !found; at = readdir(dir)) {
        char path[512];
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", at->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL) {
            const size_t len = fread(status, 1, size - 1, file);
            status[len] = '\0';
            (void)fclose(file);
            found = strstr(status, wanted) != NULL;
        }
    }
    (void)closedir(dir);
    return found;
}

static void its_thread_has_a_name_and_takes_no_signals(void **state)
{
    char status[4096];
    records_rig *r = *state;
    records_rig_open(r, "a");
    records_rig_put(r, 0, 1, "text");
    assert_true(find_thread("coord-records", status, sizeof status));
    const char *blocked = strstr(status, "SigBlk:");
    assert_non_null(blocked);
    const unsigned long long mask = strtoull(blocked + 7, NULL, 16);
    assert_true(mask & 1ULL << (SIGXFSZ - 1));
    assert_true(mask & 1ULL << (SIGPIPE - 1));
    assert_true(mask & 1ULL << (SIGTERM - 1));
    records_rig_close(r);
    records_rig_settle(r, "a");
}

static void a_full_disk_fails_the_writes_and_later_ones_succeed(void **state)
{
    records_rig *r = *state;
    process *child = start_self("full", r->folder);
    const int code = process_wait(child, PATIENCE_MS);
    if (code == SKIP) {
        skip();
    }
    if (code != 0) {
        fail_msg("%d: %s", code, process_errors(child));
    }
}

static void a_file_that_may_not_be_written_is_named(void **state)
{
    records_rig *r = *state;
    process *child = start_self("permissions", r->folder);
    const int code = process_wait(child, PATIENCE_MS);
    if (code != 0) {
        fail_msg("%d: %s", code, process_errors(child));
    }
}

static int teardown(void **state)
{
    processes_end_all();
    return records_rig_teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, records_rig_setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(this_process_has_it_once),
        TEST(another_process_keeps_it_until_it_ends),
        TEST(the_next_open_waits_for_the_close),
        TEST(it_can_be_opened_again_on_the_loop_itself),
        TEST(many_threads_take_turns),
        TEST(what_was_told_survives_sigkill),
        TEST(a_kill_while_the_file_is_made_leaves_none_or_a_whole_one),
        TEST(a_forked_child_can_only_destroy_it),
        TEST(a_forked_child_that_lives_on_keeps_nobody_out),
        TEST(its_thread_has_a_name_and_takes_no_signals),
        TEST(a_full_disk_fails_the_writes_and_later_ones_succeed),
        TEST(a_file_that_may_not_be_written_is_named),
    };
    static const struct {
        const char *name;
        int (*run)(const char *path);
    } ROLES[] = {{"hold", hold},
                 {"write", write_for_ever},
                 {"once", open_once},
                 {"full", fill_disk},
                 {"permissions", meet_permissions}};
    for (size_t i = 0; argc == 3 && i < sizeof ROLES / sizeof ROLES[0]; i++) {
        if (strcmp(argv[1], ROLES[i].name) == 0) {
            return ROLES[i].run(argv[2]);
        }
    }
    return cmocka_run_group_tests_name("records_owner", tests, NULL, NULL);
}
