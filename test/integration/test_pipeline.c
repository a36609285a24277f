/* The examples pipeline and worker as processes of their own, over HTTP on loopback. */
#include "support/processes.h"

#include "coord.h"
#include "coord/json.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 30000, LINES_MAX = 1000 };

/* What a pipeline has printed. */
typedef struct printed {
    char *text[LINES_MAX]; /* owned */
    char event[LINES_MAX][32];
    char task[LINES_MAX][32]; /* "": about none */
    int count;
} printed;

typedef struct rig {
    char folder[256];
    char config[300]; /* path */
    printed run;
    printed manual; /* what the header of the example says */
} rig;

/* ---- what was printed ---- */

/* Takes the member as text; "" when it is not there. */
static void read_member(const json_t *line, const char *name, char *out, size_t size)
{
    const char *text;
    bool there = coord_json_get_string(line, name, &text, NULL) == COORD_OK;
    (void)snprintf(out, size, "%s", there ? text : "");
}

/* Adds a line, which must be a JSON object with an event. Those of a learner that was
 * given nothing come or don't, as chance has it, and are left out. */
static void add_line(printed *to, const char *text)
{
    json_t *line = NULL;
    coord_error err;
    int64_t returned;

    assert_true(to->count < LINES_MAX);
    if (coord_json_parse(coord_text_of(text), &line, &err) != COORD_OK) {
        fail_msg("%s in the line %s", err.text, text);
    }
    read_member(line, "event", to->event[to->count], sizeof to->event[0]);
    read_member(line, "task_id", to->task[to->count], sizeof to->task[0]);
    bool empty = coord_json_get_int(line, "returned", &returned, NULL) == COORD_OK &&
                 returned == 0;
    json_decref(line);
    assert_string_not_equal(to->event[to->count], "");
    if (!empty) {
        to->text[to->count] = strdup(text);
        assert_non_null(to->text[to->count]);
        to->count++;
    }
}

static void forget(printed *p)
{
    for (int i = 0; i < p->count; i++) {
        free(p->text[i]);
    }
    p->count = 0;
}

/* The events of a task in their order, "a b b c"; borrowed until the next call. */
static const char *story(const printed *p, const char *task)
{
    static char text[8192];
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < p->count; i++) {
        if (strcmp(p->task[i], task) == 0) {
            assert_true(at + sizeof p->event[i] + 1 < sizeof text);
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
                                   at == 0 ? "" : " ", p->event[i]);
        }
    }
    return text;
}

/* The n-th line of that event and task (NULL: of any), from 0; NULL when there is none.
 */
static const char *find(const printed *p, const char *event, const char *task, int n)
{
    for (int i = 0; i < p->count; i++) {
        if (strcmp(p->event[i], event) == 0 &&
            (task == NULL || strcmp(p->task[i], task) == 0) && n-- == 0) {
            return p->text[i];
        }
    }
    return NULL;
}

static void assert_in(const char *text, const char *part)
{
    if (text == NULL || strstr(text, part) == NULL) {
        fail_msg("%s is not in: %s", part, text == NULL ? "nothing" : text);
    }
}

/* ---- processes ---- */

static int setup(void **state)
{
    rig *r = calloc(1, sizeof *r);
    const char *parent = getenv("TMPDIR");
    assert_non_null(r);
    (void)snprintf(r->folder, sizeof r->folder, "%s/pipeline.XXXXXX",
                   parent == NULL ? "/tmp" : parent);
    assert_non_null(mkdtemp(r->folder));
    (void)snprintf(r->config, sizeof r->config, "%s/run.json", r->folder);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    rig *r = *state;
    processes_end_all();
    (void)unlink(r->config);
    (void)rmdir(r->folder);
    forget(&r->run);
    forget(&r->manual);
    free(r);
    return 0;
}

static void write_config(const rig *r, const char *format, ...) COORD_PRINTF(2, 3);
static void write_config(const rig *r, const char *format, ...)
{
    FILE *file = fopen(r->config, "we");
    va_list args;
    assert_non_null(file);
    va_start(args, format);
    assert_true(vfprintf(file, format, args) > 0);
    va_end(args);
    assert_int_equal(fclose(file), 0);
}

/* A worker that listens; `more` are further arguments, parted by blanks. */
static process *start_worker(const char *role, const char *more, int *port)
{
    char words[256];
    const char *args[16] = {"--role", role, "--die-with-parent"};
    char *rest = NULL;
    size_t count = 3;

    (void)snprintf(words, sizeof words, "%s", more);
    for (char *w = strtok_r(words, " ", &rest); w != NULL;
         w = strtok_r(NULL, " ", &rest)) {
        assert_true(count < 15);
        args[count++] = w;
    }
    process *p = process_start("examples/worker", args);
    const char *line = process_read_line(p, WAIT_MS);
    if (line == NULL || sscanf(line, "listening on 127.0.0.1:%d", port) != 1) {
        fail_msg("worker: %s, %s", line == NULL ? "no line" : line, process_errors(p));
    }
    return p;
}

static process *start_pipeline(const rig *r)
{
    const char *args[] = {r->config, NULL};
    return process_start("examples/pipeline", args);
}

/* Reads up to the first line of that event; NULL: to the end of the output. */
static void read_until(rig *r, process *p, const char *event)
{
    const char *line;
    do {
        line = process_read_line(p, WAIT_MS);
        if (line != NULL) {
            add_line(&r->run, line);
        } else if (event != NULL) {
            fail_msg("it ended without %s: %s", event, process_errors(p));
        }
    } while (line != NULL && (event == NULL || find(&r->run, event, NULL, 0) == NULL));
}

static int finish(rig *r, process *p)
{
    read_until(r, p, NULL);
    return process_wait(p, WAIT_MS);
}

static void assert_runs(rig *r, int status)
{
    process *p = start_pipeline(r);
    int got = finish(r, p);
    if (got != status) {
        fail_msg("exit status %d instead of %d: %s", got, status, process_errors(p));
    }
}

/* ---- runs ---- */

static void two_collectors_and_a_learner_work_to_the_end(void **state)
{
    static const char *const TASK[] = {"a", "b", "c", "l"};
    rig *r = *state;
    int port[3];
    (void)start_worker("collector", "--samples 4", &port[0]);
    (void)start_worker("collector", "--samples 4", &port[1]);
    (void)start_worker("learner", "--samples 3", &port[2]);
    write_config(
        r,
        "{\"coordinator\": {\"port\": 0, \"collector\": {"
        "\"0\": [\"c0\", \"127.0.0.1\", %d], \"1\": [\"c1\", \"127.0.0.1\", %d]},"
        "\"learner\": {\"0\": [\"l0\", \"127.0.0.1\", %d]}},"
        "\"learner_tasks\": [{\"task_id\": \"l\", \"buffer_id\": \"x\"}],"
        "\"collector_tasks\": [{\"task_id\": \"a\", \"buffer_id\": \"x\"},"
        "{\"task_id\": \"b\", \"buffer_id\": \"x\"},"
        "{\"task_id\": \"c\", \"buffer_id\": \"y\"}]}",
        port[0], port[1], port[2]);
    assert_runs(r, 0);

    assert_string_equal(story(&r->run, "l"),
                        "task_start"
                        " learner_get_data learner_judge_finish learner_send_info"
                        " learner_get_data learner_judge_finish learner_send_info"
                        " learner_get_data learner_judge_finish learner_send_info"
                        " learner_finish_task");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(story(&r->run, TASK[i]),
                            "task_start collector_send_data collector_send_data "
                            "collector_send_data collector_send_data "
                            "collector_judge_finish collector_finish_task");
    }
    for (int i = 0; i < 4; i++) {
        const char *finished = i == 3 ? "learner_finish_task" : "collector_finish_task";
        assert_non_null(find(&r->run, finished, TASK[i], 0));
        assert_null(find(&r->run, finished, TASK[i], 1));
    }
    assert_null(find(&r->run, "task_fail", NULL, 0));
    assert_in(find(&r->run, "learner_get_data", "l", 0), "\"batch_size\":4,");
    assert_in(find(&r->run, "learner_judge_finish", "l", 2), "\"finish\":true");
    assert_in(find(&r->run, "collector_judge_finish", "c", 0), "\"buffer_id\":\"y\"");
}

/* The lines that stand in the example's header are what it prints. */
static void the_run_in_the_header_of_the_example_is_true(void **state)
{
    static const char BEFORE[] = " *     ";
    rig *r = *state;
    int port[2];
    char line[1024];
    FILE *source = fopen("examples/pipeline/main.c", "re");
    assert_non_null(source);
    while (fgets(line, sizeof line, source) != NULL) {
        if (strstr(line, "{\"event\":") == line + strlen(BEFORE)) {
            line[strcspn(line, "\n")] = '\0';
            add_line(&r->manual, line + strlen(BEFORE));
        }
    }
    (void)fclose(source);

    (void)start_worker("collector", "--samples 2", &port[0]);
    (void)start_worker("learner", "", &port[1]);
    write_config(
        r,
        "{\"coordinator\": {\"port\": 0,"
        "\"collector\": {\"0\": [\"c0\", \"127.0.0.1\", %d]},"
        "\"learner\": {\"0\": [\"l0\", \"127.0.0.1\", %d]}},"
        "\"learner_tasks\": [{\"task_id\": \"learn\", \"buffer_id\": \"b\"}],"
        "\"collector_tasks\": [{\"task_id\": \"collect\", \"buffer_id\": \"b\"}],"
        "\"finish\": {\"learner_iters\": 2}, \"timeout_s\": 60}",
        port[0], port[1]);
    assert_runs(r, 0);

    assert_int_equal(r->manual.count, 13);
    assert_int_equal(r->run.count, r->manual.count);
    for (int i = 0; i < r->manual.count; i++) {
        int before = 0;
        for (int j = 0; j < i; j++) {
            before += strcmp(r->manual.event[j], r->manual.event[i]) == 0 &&
                      strcmp(r->manual.task[j], r->manual.task[i]) == 0;
        }
        const char *got = find(&r->run, r->manual.event[i], r->manual.task[i], before);
        assert_non_null(got);
        assert_string_equal(got, r->manual.text[i]);
    }
    for (int i = 0; i < r->manual.count; i++) {
        char told[8192];
        (void)snprintf(told, sizeof told, "%s", story(&r->manual, r->manual.task[i]));
        assert_string_equal(story(&r->run, r->manual.task[i]), told);
    }
}

static void each_collector_gets_a_task_until_the_learner_has_finished(void **state)
{
    rig *r = *state;
    int port[3];
    process *one = start_worker("collector", "--step-ms 5 --once", &port[0]);
    process *other = start_worker("collector", "--step-ms 5 --once", &port[1]);
    process *learner =
        start_worker("learner", "--samples 100 --step-ms 5 --once", &port[2]);
    write_config(
        r,
        "{\"coordinator\": {\"port\": 0, \"collector\": {"
        "\"0\": [\"c0\", \"127.0.0.1\", %d], \"1\": [\"c1\", \"127.0.0.1\", %d]},"
        "\"learner\": {\"0\": [\"l0\", \"127.0.0.1\", %d]}}, \"timeout_s\": 60,"
        "\"learner_tasks\": [{\"task_id\": \"l\", \"buffer_id\": \"b\"}],"
        "\"each_collector\": {\"buffer_id\": \"b\", \"task_id\": \"c\", \"x\": 1.00}}",
        port[0], port[1], port[2]);
    assert_runs(r, 0);
    for (int i = 1; i <= 3; i++) { /* and more, as many as there was time for */
        char id[16];
        (void)snprintf(id, sizeof id, "c-%d", i);
        assert_non_null(find(&r->run, "task_start", id, 0));
        assert_non_null(find(&r->run, "collector_finish_task", id, 0));
    }
    assert_in(find(&r->run, "collector_send_data", "c-1", 0), "\"buffer_id\":\"b\"");
    assert_non_null(find(&r->run, "learner_finish_task", "l", 0));
    assert_null(find(&r->run, "task_fail", NULL, 0));

    assert_int_equal(process_wait(one, WAIT_MS), 0); /* the coordinator said goodbye */
    assert_int_equal(process_wait(other, WAIT_MS), 0);
    assert_int_equal(process_wait(learner, WAIT_MS), 0);
}

static void payload_reaches_the_worker_byte_for_byte(void **state)
{
    static const char VALUES[] =
        "\"values\" : [Infinity, -Infinity, NaN, 1e999, 1.0, 1, 1.00, -0, 1E+2,"
        "1234567890123456789012345678901234567890, \"\\ud800\", \"\\u0000\", \"\\/\","
        " {\"a\":1, \"a\":2, \"\\u0061\" :3}, [], {}, \"]}\\\\\\\"\"]";
    rig *r = *state;
    int port;
    (void)start_worker("collector", "--samples 1 --echo", &port);
    write_config(r,
                 "{\"coordinator\": {\"port\": 0, \"collector\": {"
                 "\"0\": [\"c0\", \"127.0.0.1\", %d]}}, \"timeout_s\": 60,"
                 "\"collector_tasks\": [\n{\"task_id\": \"t\",\n\t%s}\n]}",
                 port, VALUES);
    assert_runs(r, 0);

    char expected[1024];
    (void)snprintf(expected, sizeof expected,
                   "\"task_info\": {\"task_id\": \"t\", \t%s,\"collector_id\":\"c0\","
                   "\"resource_info\":{\"cpu\": \"20\", \"gpu\": \"1\"}}",
                   VALUES);
    const char *line = find(&r->run, "collector_send_data", "t", 0);
    assert_in(line, expected);
    assert_in(line, "\"buffer_id\":null,\"data_id\":\"t-1\"");
}

/* ---- ends ---- */

static void a_bad_configuration_is_refused_with_its_path(void **state)
{
    static const char ONE[] =
        "\"coordinator\": {\"collector\": {\"1\": [\"c\", \"h\", 1]}}";
    static const struct {
        const char *text;
        const char *complaint;
    } CASES[] = {
        {"{\"coordinator\": {\"collector\": {\"1\": [\"c\", \"h\", \"x\"]}}}",
         "coordinator.collector.1[2]: port must be an integer from 0 to 65535, got "
         "\"x\""},
        {"{\"coordinator\": {\"prot\": 1}}", "coordinator.prot: "},
        {"{}", "coordinator: must be an object"},
        {"{\"coordinator\": [1]}", "coordinator: must be an object"},
        {"{%s, \"learner_task\": []}", "learner_task: is no key"},
        {"{%s, \"finish\": {\"iters\": 1}}", "finish.iters: is no key"},
        {"{%s, \"finish\": {\"learner_iters\": \"x\"}}",
         "finish.learner_iters: expected"},
        {"{%s, \"finish\": {\"learner_iters\": 0}}", "finish.learner_iters: must be at"},
        {"{%s, \"timeout_s\": NaN}", "timeout_s: must be"},
        {"{%s, \"collector_tasks\": {}}", "collector_tasks: must be a list"},
        {"{%s, \"collector_tasks\": [{\"id\": 1}]}",
         "collector_tasks[0].task_id: missing"},
        {"{%s, \"collector_tasks\": [{\"task_id\": \"a\"}, {\"task_id\": 1}]}",
         "collector_tasks[1].task_id: expected a string, got 1"},
        {"{%s, \"collector_tasks\": [{\"task_id\": \"a\"}, {\"task_id\": \"a\"}]}",
         "collector_tasks[1].task_id: \"a\" is the id of another task"},
        {"{%s, \"learner_tasks\": [{\"task_id\": \"a\"}]}",
         "coordinator.learner: must name a worker for learner_tasks"},
        {"{%s, \"each_collector\": []}", "each_collector: expected an object"},
        {"{%s, \"each_collector\": {\"task_id\": \"\"}}",
         "each_collector.task_id: must be"},
        {"{%s, \"each_collector\": {\"task_id\": \"c\"}}",
         "each_collector: needs learner_tasks"},
        {"{%s, }", "JSON, byte"},
    };
    rig *r = *state;
    const char *args[] = {r->config, NULL};
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        const char *at = strstr(CASES[i].text, "%s");
        int before = at == NULL ? (int)strlen(CASES[i].text) : (int)(at - CASES[i].text);
        write_config(r, "%.*s%s%s", before, CASES[i].text, at == NULL ? "" : ONE,
                     at == NULL ? "" : at + 2);
        process *p = process_start("examples/pipeline", args);
        assert_int_equal(process_wait(p, WAIT_MS), 2);
        assert_in(process_errors(p), CASES[i].complaint);
        assert_in(process_errors(p), r->config);
        assert_null(process_read_line(p, WAIT_MS));
    }
}

static void a_file_that_is_not_there_is_named(void **state)
{
    rig *r = *state;
    process *p = start_pipeline(r);
    assert_int_equal(process_wait(p, WAIT_MS), 2);
    assert_in(process_errors(p), r->config);
    assert_in(process_errors(p), "No such file");
}

/* A port of which we are sure that nobody listens: bound, and no more. */
static int bind_port(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void a_worker_that_is_missing_fails_the_start(void **state)
{
    rig *r = *state;
    int port;
    int fd = bind_port(&port);
    write_config(
        r,
        "{\"coordinator\": {\"port\": 0, \"max_retry_second\": 1, \"collector\": {"
        "\"0\": [\"c0\", \"127.0.0.1\", %d]}},"
        "\"collector_tasks\": [{\"task_id\": \"t\"}]}",
        port);
    process *p = start_pipeline(r);
    assert_int_equal(finish(r, p), 1);
    assert_int_equal(r->run.count, 0);
    assert_in(process_errors(p), "start: missing collector 'c0' at 127.0.0.1:");
    (void)close(fd);
}

static void a_run_that_takes_too_long_is_ended(void **state)
{
    rig *r = *state;
    int port;
    (void)start_worker("learner", "", &port);
    write_config(r,
                 "{\"coordinator\": {\"port\": 0, \"learner\": {"
                 "\"0\": [\"l0\", \"127.0.0.1\", %d]}}, \"timeout_s\": 0.3,"
                 "\"learner_tasks\": [{\"task_id\": \"l\", \"buffer_id\": \"empty\"}]}",
                 port);
    assert_runs(r, 3);
    const char *last = find(&r->run, "task_fail", "l", 0);
    if (last != NULL) { /* the start was in time, as it mostly is */
        assert_in(last, "\"code\":19,");
    }
}

static void an_interrupt_ends_the_run_and_frees_its_workers(void **state)
{
    rig *r = *state;
    int port[2];
    (void)start_worker("collector", "", &port[0]);
    (void)start_worker("learner", "", &port[1]);
    write_config(r,
                 "{\"coordinator\": {\"port\": 0, \"learner\": {"
                 "\"0\": [\"l0\", \"127.0.0.1\", %d]}},"
                 "\"learner_tasks\": [{\"task_id\": \"l\"}]}",
                 port[1]);
    process *p = start_pipeline(r);
    read_until(r, p, "task_start");
    process_signal(p, SIGINT);
    assert_int_equal(finish(r, p), 1);
    assert_in(find(&r->run, "task_fail", "l", 0), "\"code\":19,");

    forget(&r->run);
    write_config(r,
                 "{\"coordinator\": {\"port\": 0,"
                 "\"collector\": {\"0\": [\"c0\", \"127.0.0.1\", %d]},"
                 "\"learner\": {\"0\": [\"l0\", \"127.0.0.1\", %d]}},"
                 "\"learner_tasks\": [{\"task_id\": \"l\"}],"
                 "\"collector_tasks\": [{\"task_id\": \"c\"}]}",
                 port[0], port[1]);
    assert_runs(r, 0);
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void the_task_of_a_killed_worker_fails_within_the_tolerance(void **state)
{
    rig *r = *state;
    int port;
    process *worker = start_worker(
        "collector", "--samples 1000000 --step-ms 50 --heartbeat-ms 200", &port);
    write_config(
        r,
        "{\"coordinator\": {\"port\": 0, \"heartbeat_tolerance_s\": 1,"
        "\"heartbeat_check_s\": 0.2, \"request_retries\": 0, \"max_reassign\": 0,"
        "\"collector\": {\"0\": [\"c0\", \"127.0.0.1\", %d]}},"
        "\"collector_tasks\": [{\"task_id\": \"t\"}]}",
        port);
    process *p = start_pipeline(r);
    read_until(r, p, "collector_send_data");
    process_signal(worker, SIGKILL);
    assert_int_equal(process_wait(worker, WAIT_MS), 128 + SIGKILL);
    int64_t begin_ms = now_ms();
    read_until(r, p, "task_fail");
    int64_t took_ms = now_ms() - begin_ms;
    assert_in_range(took_ms, 0, 3000);
    assert_in(find(&r->run, "task_fail", "t", 0), "\"code\":7,");
    assert_int_equal(finish(r, p), 1);
    assert_null(find(&r->run, "task_fail", NULL, 1));
}

/* ---- the worker alone ---- */

static void a_worker_refuses_bad_arguments(void **state)
{
    static const struct {
        const char *args[7];
        const char *complaint;
    } CASES[] = {
        {{NULL}, "--role is required"},
        {{"--role", "cook", NULL}, "--role must be collector or learner, got \"cook\""},
        {{"--role", "learner", "--port", "70000", NULL},
         "--port must be an integer from 0"},
        {{"--role", "learner", "--samples", "3x", NULL}, "--samples must be"},
        {{"--role", "learner", "--what", NULL}, "--what"},
        {{"--role", "learner", "more", NULL}, "there is no argument \"more\""},
        {{"--role", "collector", "--host", "0.0.0.0", NULL}, "insecure"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        process *p = process_start("examples/worker", CASES[i].args);
        assert_int_equal(process_wait(p, WAIT_MS), 2);
        assert_in(process_errors(p), CASES[i].complaint);
    }
}

static void a_worker_leaves_in_the_middle_of_a_step(void **state)
{
    rig *r = *state;
    int port;
    process *worker =
        start_worker("collector", "--step-ms 600000 --heartbeat-ms 200", &port);
    write_config(
        r,
        "{\"coordinator\": {\"port\": 0, \"heartbeat_tolerance_s\": 1,"
        "\"heartbeat_check_s\": 0.2, \"request_retries\": 0, \"max_reassign\": 0,"
        "\"collector\": {\"0\": [\"c0\", \"127.0.0.1\", %d]}},"
        "\"collector_tasks\": [{\"task_id\": \"t\"}]}",
        port);
    process *p = start_pipeline(r);
    read_until(r, p, "task_start");
    process_signal(worker, SIGTERM);
    assert_int_equal(process_wait(worker, WAIT_MS), 0);
    assert_int_equal(finish(r, p), 1);
    assert_string_equal(story(&r->run, "t"), "task_start task_fail");
}

static void a_worker_leaves_with_its_parent(void **state)
{
    const char *worker = process_path("examples/worker");
    const char *args[] = {"-c", "\"$0\" --role learner --die-with-parent & wait", worker,
                          NULL};
    (void)state;
    process *shell = process_start_path("/bin/sh", args);
    assert_in(process_read_line(shell, WAIT_MS), "listening on 127.0.0.1:");
    process_signal(shell, SIGKILL);
    assert_int_equal(process_wait(shell, WAIT_MS), 128 + SIGKILL);
    assert_null(process_read_line(shell, WAIT_MS)); /* the worker has closed it, too */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(two_collectors_and_a_learner_work_to_the_end),
        TEST(the_run_in_the_header_of_the_example_is_true),
        TEST(each_collector_gets_a_task_until_the_learner_has_finished),
        TEST(payload_reaches_the_worker_byte_for_byte),
        TEST(a_bad_configuration_is_refused_with_its_path),
        TEST(a_file_that_is_not_there_is_named),
        TEST(a_worker_that_is_missing_fails_the_start),
        TEST(a_run_that_takes_too_long_is_ended),
        TEST(an_interrupt_ends_the_run_and_frees_its_workers),
        TEST(the_task_of_a_killed_worker_fails_within_the_tolerance),
        TEST(a_worker_refuses_bad_arguments),
        TEST(a_worker_leaves_in_the_middle_of_a_step),
        TEST(a_worker_leaves_with_its_parent),
    };
    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
