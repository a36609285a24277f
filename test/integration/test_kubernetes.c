/* The manifests of examples/kubernetes without Kubernetes: their commands are run with
 * the variables that DI-orchestrator sets, and a fake of its server stands in for the
 * rest.
 *
 * What is changed: workers have addresses of 127.0.0.0/8 and free ports instead of those
 * of pods, and their steps take no time. */
#include "support/fake_operator.h"
#include "support/processes.h"

#include "coord/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WAIT_MS = 60000, WORKERS = 3, COMMANDS = 4, WORDS = 24, TEXT_MAX = 16384 };

typedef struct rig {
    char text[TEXT_MAX];        /* of the manifest */
    json_t *commands[COMMANDS]; /* command and args of each container, in their order */
    size_t command_count;
    fake_operator *fake;
    process *worker[WORKERS];
    char address[WORKERS][64]; /* learner first */
    size_t handed_out[2];
    char printed[1 << 20]; /* lines of the pipeline, without the routine */
} rig;

/* ---- the manifest ---- */

static json_t *read_list(const char *line)
{
    coord_error err;
    json_t *list = NULL;
    const char *at = strchr(line, '[');
    assert_non_null(at);
    const coord_text text = {at, strcspn(at, "\n")};
    if (coord_json_parse(text, &list, &err) != COORD_OK) {
        fail_msg("%s: %s", line, err.text);
    }
    assert_true(json_is_array(list));
    return list;
}

static void read_manifest(rig *r, const char *path)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    const size_t len = fread(r->text, 1, sizeof r->text - 1, file);
    assert_in_range(len, 1, sizeof r->text - 2);
    (void)fclose(file);
    for (char *line = r->text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n' ? 1 : 0;
        const char *word = line + strspn(line, " ");
        if (strncmp(word, "command: [", 10) == 0) {
            assert_true(r->command_count < COMMANDS);
            r->commands[r->command_count++] = read_list(word);
        } else if (strncmp(word, "args: [", 7) == 0) {
            json_t *args = read_list(word);
            assert_true(r->command_count > 0);
            assert_int_equal(json_array_extend(r->commands[r->command_count - 1], args),
                             0);
            json_decref(args);
        }
    }
}

/* The file of the ConfigMap, written to where its container would have it; the port,
 * which somebody else may have here, is any. */
static void write_config(const rig *r, char *path, size_t size)
{
    static const char BEGIN[] = "  pipeline.json: |\n";
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, size, "%s/pipeline.json", folder == NULL ? "/tmp" : folder);
    FILE *file = fopen(path, "we");
    const char *line = strstr(r->text, BEGIN);
    assert_non_null(file);
    assert_non_null(line);
    for (line += strlen(BEGIN); strncmp(line, "    ", 4) == 0;
         line = strchr(line, '\n') + 1) {
        const size_t len = strcspn(line, "\n") + 1;
        if (strstr(line, "\"port\": ") == line + strspn(line, " ")) {
            (void)fputs("\"port\": 0,\n", file);
        } else {
            (void)fwrite(line, 1, len, file);
        }
    }
    assert_int_equal(fclose(file), 0);
}

/* ---- what runs ---- */

static json_t *find_command(const rig *r, const char *role)
{
    for (size_t i = 0; i < r->command_count; i++) {
        const char *name = json_string_value(json_array_get(r->commands[i], 0));
        const char *is = json_string_value(json_array_get(r->commands[i], 2));
        if (strcmp(name, "worker") == 0 && strcmp(is, role) == 0) {
            return r->commands[i];
        }
    }
    fail_msg("there is no %s", role);
    return NULL;
}

static void start_worker(rig *r, size_t n)
{
    const json_t *command = find_command(r, n == 0 ? "learner" : "collector");
    const char *args[WORDS];
    char host[32];
    size_t count = 0;
    (void)snprintf(host, sizeof host, "127.0.0.%zu", n + 2);
    for (size_t i = 1; i < json_array_size(command); i++) {
        assert_true(count + 8 < WORDS);
        args[count++] = json_string_value(json_array_get(command, i));
    }
    /* The last that is said of an option holds. */
    const char *const more[] = {"--host", host, "--port", "0", "--step-ms", "1", NULL};
    memcpy(&args[count], more, sizeof more);
    r->worker[n] = process_start("examples/worker", args);
    const char *line = process_read_line(r->worker[n], WAIT_MS);
    if (line == NULL || sscanf(line, "listening on %63s", r->address[n]) != 1) {
        fail_msg("worker: %s", process_errors(r->worker[n]));
    }
}

/* Pods that the server makes are those workers. */
static void name_pod(void *arg, fake_list list, unsigned n, char *id, size_t size)
{
    rig *r = arg;
    const size_t nth = r->handed_out[list]++;
    (void)n;
    const size_t at = list == FAKE_LEARNERS ? 0 : 1 + nth;
    (void)snprintf(id, size, "%s", at < WORKERS ? r->address[at] : "127.0.0.99:1");
}

static void open_rig(rig *r, const char *manifest, const fake_operator_spec *spec)
{
    read_manifest(r, manifest);
    assert_int_equal(r->command_count, 3);
    r->fake = fake_operator_on_sockets(spec);
    for (size_t i = 0; i < WORKERS; i++) {
        start_worker(r, i);
    }
    fake_operator_set_namer(r->fake, name_pod, r);
}

static size_t count_lines(const rig *r, const char *part)
{
    size_t count = 0;
    for (const char *at = r->printed; (at = strstr(at, part)) != NULL; at++) {
        count++;
    }
    return count;
}

/* Of every sample and step there is a line. */
static bool is_routine(const char *line)
{
    return strstr(line, "{\"event\":\"collector_send_data\"") == line ||
           strstr(line, "{\"event\":\"learner_get_data\"") == line ||
           strstr(line, "{\"event\":\"learner_judge_finish\"") == line ||
           strstr(line, "{\"event\":\"learner_send_info\"") == line;
}

static void run_pipeline(rig *r)
{
    char path[512];
    const char *args[] = {path, NULL};
    const char *line;
    size_t at = 0;
    write_config(r, path, sizeof path);
    process *p = process_start("examples/pipeline", args);
    while ((line = process_read_line(p, WAIT_MS)) != NULL) {
        const size_t room = sizeof r->printed - at;
        if (!is_routine(line)) {
            at += (size_t)snprintf(r->printed + at, room, "%s\n", line);
            assert_true(at < sizeof r->printed);
        }
    }
    const int code = process_wait(p, WAIT_MS);
    if (code != 0) {
        fail_msg("exit status %d: %s", code, process_errors(p));
    }
    assert_string_equal(process_errors(p), "");
    (void)remove(path);
}

/* Each collector has had tasks, and nothing has failed. */
static void check_run(const rig *r)
{
    assert_int_equal(count_lines(r, "{\"event\":\"increase_collector\""), 2);
    assert_int_equal(count_lines(r, "{\"event\":\"decrease_collector\""), 0);
    assert_int_equal(count_lines(r, "{\"event\":\"task_fail\""), 0);
    assert_int_equal(count_lines(r, "\"learner_finish_task\",\"task_id\":\"learn\""), 1);
    for (size_t i = 0; i < WORKERS; i++) {
        char part[128];
        (void)snprintf(part, sizeof part, "\"worker_id\":\"%s\"", r->address[i]);
        assert_true(count_lines(r, part) > 0);
    }
    assert_true(count_lines(r, "\"collector_finish_task\",\"task_id\":\"collect-2\"") >
                0);
    assert_int_equal(fake_operator_requests(r->fake, FAKE_FAILED), 0);
    assert_int_equal(fake_operator_requests(r->fake, FAKE_DELETE), 0);
}

static const char *const VARIABLES[] = {"KUBERNETES_SERVER_URL",
                                        "KUBERNETES_POD_NAMESPACE",
                                        "KUBERNETES_POD_NAME",
                                        "DI_SERVER_URL",
                                        "DI_JOB_ID",
                                        "DI_RANK",
                                        "DI_NODES"};

static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof VARIABLES / sizeof VARIABLES[0]; i++) {
        (void)unsetenv(VARIABLES[i]);
    }
    return 0;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(setenv(name, value, 1), 0);
}

static void close_rig(rig *r)
{
    processes_end_all();
    fake_operator_stop(r->fake);
    for (size_t i = 0; i < r->command_count; i++) {
        json_decref(r->commands[i]);
    }
    free(r);
}

/* ---- the two jobs ---- */

static void the_job_of_v1alpha1_runs(void **state)
{
    char url[64];
    rig *r = calloc(1, sizeof *r);
    (void)state;
    assert_non_null(r);
    open_rig(r, "examples/kubernetes/dijob-v1alpha1.yaml",
             &(fake_operator_spec){.api = FAKE_V1, .name = "libcoord-v1-coordinator"});
    (void)snprintf(url, sizeof url, "127.0.0.1:%d", fake_operator_port(r->fake));
    set("KUBERNETES_SERVER_URL", url); /* it comes without a scheme */
    set("KUBERNETES_POD_NAMESPACE", "default");
    set("KUBERNETES_POD_NAME", "libcoord-v1-coordinator");
    run_pipeline(r);
    check_run(r);
    assert_int_equal(fake_operator_created(r->fake), WORKERS);
    assert_int_equal(fake_operator_requests(r->fake, FAKE_POST), 1);
    assert_non_null(strstr(fake_operator_body(r->fake, FAKE_POST), "\"cpus\""));
    close_rig(r);
}

static void the_job_of_v2alpha1_runs(void **state)
{
    char url[64];
    rig *r = calloc(1, sizeof *r);
    (void)state;
    assert_non_null(r);
    open_rig(r, "examples/kubernetes/dijob-v2alpha1.yaml",
             &(fake_operator_spec){.api = FAKE_V2, .job_id = "default.libcoord-v2"});
    fake_operator_add(r->fake, FAKE_NODES, "127.0.0.98:1"); /* the coordinator itself */
    for (size_t i = 0; i < WORKERS; i++) {
        fake_operator_add(r->fake, FAKE_NODES, r->address[i]);
    }
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", fake_operator_port(r->fake));
    set("DI_SERVER_URL", url);
    set("DI_JOB_ID", "default/libcoord-v2"); /* as 1.1.3 spells it */
    set("DI_RANK", "0");
    set("DI_NODES", "libcoord-v2-coordinator-0.di-libcoord-v2.default.svc.cluster.local");
    run_pipeline(r);
    check_run(r);
    assert_int_equal(fake_operator_requests(r->fake, FAKE_POST), 0);
    for (size_t i = 0; i < WORKERS; i++) { /* for the job to succeed, all pods have to */
        assert_int_equal(process_wait(r->worker[i], WAIT_MS), 0);
    }
    close_rig(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_job_of_v1alpha1_runs, clean, clean),
        cmocka_unit_test_setup_teardown(the_job_of_v2alpha1_runs, clean, clean),
    };
    return cmocka_run_group_tests_name("kubernetes", tests, NULL, NULL);
}
