/* Discovery with a real command: a shell script that prints a file, breaks, or hangs. */
#include "coord.h"
#include "support/simple.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, WORKERS = 2 };

/* Prints what is in the file "list". If a file "hang" is there, a pipe, it holds that
 * open, says so, and stays, with a child of its own. */
static const char SCRIPT[] = "#!/bin/sh\n"
                             "cd \"${0%/*}\" || exit 9\n"
                             "if [ -p hang ]; then\n"
                             "    exec 9> hang\n"
                             "    echo x >&9\n"
                             "    sleep 600 &\n"
                             "    wait\n"
                             "fi\n"
                             "[ -f list ] || { echo \"no list today\" >&2; exit 3; }\n"
                             "cat list\n";

typedef struct rig {
    char folder[200];
    char script[256];
    coord_collector *workers[WORKERS];
    CommCoordinator *c;
    int told[2];   /* a pipe: a letter for each thing that happened */
    int seen[128]; /* ... by letter: how often */
    int hang;      /* our end of the pipe "hang" */
} rig;

/* ---- what happens ---- */

static void tell(rig *r, char letter)
{
    if (write(r->told[1], &letter, 1) != 1) {
        fprintf(stderr, "'%c' is lost\n", letter);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The next byte; '\0': the pipe has no writer any more. */
static char read_byte(int fd, int64_t deadline, const char *what)
{
    char byte = '\0';
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - now_ms();
        if (left <= 0 || (poll(&ready, 1, (int)left) == 0)) {
            fail_msg("waited in vain for %s", what);
        }
        ssize_t len = read(fd, &byte, 1);
        if (len >= 0) {
            return len == 0 ? '\0' : byte;
        }
        assert_true(errno == EAGAIN || errno == EINTR);
    }
}

/* Until it has happened so often, since the beginning. */
static void await(rig *r, char letter, int times)
{
    const char what[] = {letter, '\0'};
    int64_t deadline = now_ms() + WAIT_MS;
    while (r->seen[letter & 127] < times) {
        r->seen[read_byte(r->told[0], deadline, what) & 127]++;
    }
}

static void on_log(coord_log_level level, const char *line, void *user)
{
    (void)level;
    if (strstr(line, "discovery fails") != NULL) {
        tell(user, 'f');
    } else if (strstr(line, "discovery works again") != NULL) {
        tell(user, 'w');
    }
}

static void on_increase(CommCoordinator *c, void *user)
{
    (void)c;
    tell(user, '+');
}

static void on_decrease(CommCoordinator *c, void *user)
{
    (void)c;
    tell(user, '-');
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    (void)c;
    (void)task_id;
    (void)result;
    tell(user, 'e');
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    (void)c;
    (void)task_id;
    fprintf(stderr, "task fails: %s: %s\n", why->text, why->cause);
    tell(user, '!');
}

/* ---- files ---- */

static const char *path_of(const rig *r, const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", r->folder, name);
    return path;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

/* At one stroke, for the script may be reading it. */
static void list_worker(rig *r, int which)
{
    char line[128];
    char made[256];
    (void)snprintf(line, sizeof line, "collector 127.0.0.1:%u w%d\n",
                   (unsigned)coord_slave_port(coord_collector_slave(r->workers[which])),
                   which);
    (void)snprintf(made, sizeof made, "%s", path_of(r, "made"));
    write_file(made, line, 0600);
    assert_int_equal(rename(made, path_of(r, "list")), 0);
}

static void hang(rig *r)
{
    assert_int_equal(mkfifo(path_of(r, "made"), 0600), 0);
    r->hang = open(path_of(r, "made"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(r->hang >= 0);
    char made[256];
    (void)snprintf(made, sizeof made, "%s", path_of(r, "made"));
    assert_int_equal(rename(made, path_of(r, "hang")), 0);
}

/* A read of a pipe that nobody has opened yet says "end" at once: the first byte is
 * awaited by poll alone. */
static void await_hanging(rig *r)
{
    struct pollfd ready = {.fd = r->hang, .events = POLLIN};
    char byte;
    assert_int_equal(poll(&ready, 1, WAIT_MS), 1);
    assert_int_equal(read(r->hang, &byte, 1), 1);
}

/* The script and its child are gone. */
static void await_end(rig *r)
{
    int64_t deadline = now_ms() + WAIT_MS;
    while (read_byte(r->hang, deadline, "the end of the script") != '\0') {
    }
}

/* ---- life ---- */

static void make_worker(rig *r, int which)
{
    coord_slave_options o;
    coord_collector_callbacks cb;
    coord_slave_options_init(&o, sizeof o);
    coord_collector_callbacks_init(&cb, sizeof cb);
    cb.start = simple_start;
    cb.data = simple_data;
    assert_int_equal(coord_collector_create(&o, &cb, &r->workers[which], NULL), COORD_OK);
}

static int setup(void **state)
{
    rig *r = calloc(1, sizeof *r);
    const char *parent = getenv("TMPDIR");
    assert_non_null(r);
    (void)snprintf(r->folder, sizeof r->folder, "%.150s/discovery.XXXXXX",
                   parent == NULL ? "/tmp" : parent);
    assert_non_null(mkdtemp(r->folder));
    (void)snprintf(r->script, sizeof r->script, "%s/who", r->folder);
    write_file(r->script, SCRIPT, 0700);
    assert_int_equal(pipe2(r->told, O_CLOEXEC), 0);
    r->hang = -1;
    for (int i = 0; i < WORKERS; i++) {
        make_worker(r, i);
    }
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    static const char *const FILES[] = {"who", "list", "made", "hang"};
    rig *r = *state;
    comm_coordinator_destroy(r->c);
    for (int i = 0; i < WORKERS; i++) {
        coord_collector_destroy(r->workers[i]);
    }
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        (void)unlink(path_of(r, FILES[i]));
    }
    (void)rmdir(r->folder);
    (void)close(r->told[0]);
    (void)close(r->told[1]);
    if (r->hang >= 0) {
        (void)close(r->hang);
    }
    free(r);
    return 0;
}

static void create(rig *r, const char *timeout_s)
{
    char config[512];
    coord_error err = {0};
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    (void)snprintf(config, sizeof config,
                   "{\"port\": 0, \"min_collectors\": 1, \"request_retry_wait_s\": 0.1, "
                   "\"discovery\": {\"command\": \"%s\", \"interval_s\": 0.1, "
                   "\"timeout_s\": %s}}",
                   r->script, timeout_s);
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = simple_on_data;
    cb.deal_with_collector_judge_finish = simple_is_enough;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_task_fail = on_fail;
    cb.deal_with_increase_collector = on_increase;
    cb.deal_with_decrease_collector = on_decrease;
    cb.user = r;
    comm_coordinator_options_init(&o, sizeof o);
    o.config = config;
    o.callbacks = &cb;
    o.log = on_log;
    o.user = r;
    if (comm_coordinator_create(&o, &r->c, &err) != COORD_OK ||
        comm_coordinator_start(r->c, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
}

static void close_in_time(rig *r)
{
    coord_error err = {0};
    if (comm_coordinator_close(r->c, &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
}

/* Fails unless the status has these words. */
static void assert_status(rig *r, const char *words)
{
    char *text = NULL;
    assert_int_equal(comm_coordinator_status(r->c, &text, NULL), COORD_OK);
    if (strstr(text, words) == NULL) {
        fail_msg("no %s in %s", words, text);
    }
    coord_free(text);
}

static void work(rig *r, const char *expected_worker)
{
    int before = r->seen['e'];
    char who[COORD_ID_SIZE];
    coord_error err = {0};
    coord_status rc = comm_coordinator_send_collector_task(
        r->c, coord_text_of("{\"task_id\": \"t\"}"), who, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, COORD_OK);
    assert_string_equal(who, expected_worker);
    await(r, 'e', before + 1);
}

/* ---- tests ---- */

static void what_a_script_prints_is_followed(void **state)
{
    rig *r = *state;
    list_worker(r, 0);
    create(r, "60");
    await(r, '+', 1);
    work(r, "w0");

    list_worker(r, 1); /* instead */
    await(r, '+', 2);
    await(r, '-', 1);
    work(r, "w1");

    assert_int_equal(unlink(path_of(r, "list")), 0);
    await(r, 'f', 1);
    assert_status(r, "/who' has failed with exit code 3: it says \\\"no list today\\\"");
    work(r, "w1");

    write_file(path_of(r, "list"), "", 0600);
    await(r, 'w', 1);
    await(r, '-', 2);
    close_in_time(r);
}

static void a_script_that_hangs_is_killed_with_its_children(void **state)
{
    rig *r = *state;
    list_worker(r, 0);
    create(r, "0.5");
    hang(r);
    await_hanging(r);
    await_end(r);
    await(r, 'f', 1);
    assert_status(r, "/who' did not end within 500 ms");
    assert_int_equal(unlink(path_of(r, "hang")), 0);
    await(r, 'w', 1);
    work(r, "w0");
    close_in_time(r);
}

static void close_ends_a_script_that_hangs(void **state)
{
    rig *r = *state;
    list_worker(r, 0);
    create(r, "600");
    hang(r);
    await_hanging(r);
    work(r, "w0");
    close_in_time(r);
    await_end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_a_script_prints_is_followed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_script_that_hangs_is_killed_with_its_children,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(close_ends_a_script_that_hangs, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
