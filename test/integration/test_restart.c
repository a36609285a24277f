/* The example pipeline is killed again and again, and goes on with its ledger: real
 * processes, real files. */
#include "support/processes.h"

#include "coord.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, SAMPLES = 200, LIVES = 5, LINES_A_LIFE = 60 };

typedef struct rig {
    char folder[256];
    char config[300];
    char ledger[300];
    int seen[2][SAMPLES + 1]; /* how often each sample of task "a", "b" came */
    int resumes;
    int restarts;
    int finishes;
    int fails;
} rig;

static int setup(void **state)
{
    rig *r = calloc(1, sizeof *r);
    const char *parent = getenv("TMPDIR");
    assert_non_null(r);
    (void)snprintf(r->folder, sizeof r->folder, "%s/restart.XXXXXX",
                   parent == NULL ? "/tmp" : parent);
    assert_non_null(mkdtemp(r->folder));
    (void)snprintf(r->config, sizeof r->config, "%s/run.json", r->folder);
    (void)snprintf(r->ledger, sizeof r->ledger, "%s/ledger", r->folder);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    static const char *const SUFFIX[] = {"", "-wal", "-shm", "-lock"};
    rig *r = *state;
    processes_end_all();
    (void)unlink(r->config);
    for (size_t i = 0; i < sizeof SUFFIX / sizeof SUFFIX[0]; i++) {
        char path[320];
        (void)snprintf(path, sizeof path, "%s%s", r->ledger, SUFFIX[i]);
        (void)unlink(path);
    }
    (void)rmdir(r->folder);
    free(r);
    return 0;
}

static int start_worker(const char *role, const char *samples)
{
    const char *args[] = {"--role",    role, "--die-with-parent", "--samples", samples,
                          "--step-ms", "2",  "--heartbeat-ms",    "300",       NULL};
    int port = 0;
    process *p = process_start("examples/worker", args);
    const char *line = process_read_line(p, WAIT_MS);
    if (line == NULL || sscanf(line, "listening on 127.0.0.1:%d", &port) != 1) {
        fail_msg("worker: %s", process_errors(p));
    }
    return port;
}

static void write_config(const rig *r, const int port[3])
{
    FILE *file = fopen(r->config, "we");
    assert_non_null(file);
    assert_true(
        fprintf(file,
                "{\"coordinator\": {\"port\": 0, \"ledger\": \"%s\", "
                "\"request_retry_wait_s\": 0.2, \"heartbeat_tolerance_s\": 4,"
                "\"collector\": {\"0\": [\"c0\", \"127.0.0.1\", %d], "
                "\"1\": [\"c1\", \"127.0.0.1\", %d]},"
                "\"learner\": {\"0\": [\"l0\", \"127.0.0.1\", %d]}},"
                "\"learner_tasks\": [{\"task_id\": \"l\", \"buffer_id\": \"x\"}],"
                "\"collector_tasks\": [{\"task_id\": \"a\", \"buffer_id\": \"x\"},"
                "{\"task_id\": \"b\", \"buffer_id\": \"x\"}]}",
                r->ledger, port[0], port[1], port[2]) > 0);
    assert_int_equal(fclose(file), 0);
}

static void take_line(rig *r, const char *line)
{
    char task = 'a';
    int n = 0;
    r->resumes += strstr(line, "\"task_resume\"") != NULL;
    r->restarts += strstr(line, "\"task_restart\"") != NULL;
    r->finishes += strstr(line, "_finish_task\"") != NULL;
    r->fails += strstr(line, "\"task_fail\"") != NULL;
    const char *sample = strstr(line, "\"data_id\":\"");
    if (sample != NULL && sscanf(sample, "\"data_id\":\"%c-%d\"", &task, &n) == 2) {
        assert_in_range(n, 1, SAMPLES);
        r->seen[task == 'b'][n]++;
    }
}

static process *start_pipeline(const rig *r)
{
    const char *args[] = {r->config, NULL};
    return process_start("examples/pipeline", args);
}

/* Killed in the middle of its work, whatever that is. */
static void live_and_die(rig *r)
{
    process *p = start_pipeline(r);
    for (int i = 0; i < LINES_A_LIFE; i++) {
        const char *line = process_read_line(p, WAIT_MS);
        if (line == NULL) {
            fail_msg("it ended by itself: %s", process_errors(p));
        }
        take_line(r, line);
    }
    process_signal(p, SIGKILL);
    for (const char *line = process_read_line(p, WAIT_MS); line != NULL;
         line = process_read_line(p, WAIT_MS)) {
        take_line(r, line); /* what was in the pipe */
    }
    assert_int_equal(process_wait(p, WAIT_MS), 128 + SIGKILL);
}

static void live_to_the_end(rig *r)
{
    process *p = start_pipeline(r);
    for (const char *line = process_read_line(p, WAIT_MS); line != NULL;
         line = process_read_line(p, WAIT_MS)) {
        take_line(r, line);
    }
    if (process_wait(p, WAIT_MS) != 0) {
        fail_msg("it failed: %s", process_errors(p));
    }
}

static void killed_again_and_again_it_loses_nothing(void **state)
{
    rig *r = *state;
    char samples[16];
    (void)snprintf(samples, sizeof samples, "%d", SAMPLES);
    int port[3] = {start_worker("collector", samples), start_worker("collector", samples),
                   start_worker("learner", samples)};
    write_config(r, port);
    for (int life = 0; life < LIVES; life++) {
        live_and_die(r);
    }
    live_to_the_end(r);

    assert_int_equal(r->fails, 0);
    assert_int_equal(r->restarts, 0); /* no worker has noticed */
    assert_true(r->resumes >= LIVES);
    assert_true(r->finishes >= 3);
    for (int task = 0; task < 2; task++) {
        int again = 0;
        for (int n = 1; n <= SAMPLES; n++) {
            if (r->seen[task][n] == 0) {
                fail_msg("sample %d of task %d is lost", n, task);
            }
            again += r->seen[task][n] - 1;
        }
        assert_in_range(again, 0, LIVES); /* at most the last one of each life */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_again_and_again_it_loses_nothing, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("restart", tests, NULL, NULL);
}
