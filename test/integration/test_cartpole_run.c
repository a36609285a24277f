/* The main job, as a user runs it: a coordinator, collectors and a learner as processes.
 */
#include "cartpole/files.h"
#include "cartpole/paths.h"
#include "cartpole/policy.h"
#include "cartpole/rollout.h"
#include "support/processes.h"

#include "coord/json.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Bounds for machines that are slow and busy, and for sanitizers; nothing takes so long.
 */
enum { RUN_MS = 110000, SOON_MS = 20000, CHILDREN_MAX = 8, EPISODES = 500 };

static char runs[PATH_SIZE]; /* a new folder for each test */
static char text[PATH_SIZE];

static int set_up(void **state)
{
    const char *parent = getenv("TMPDIR");
    (void)state;
    (void)snprintf(runs, sizeof runs, "%s/cartpole-XXXXXX",
                   parent == NULL ? "/tmp" : parent);
    return mkdtemp(runs) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    processes_end_all();
    return 0;
}

/* ---- helpers ---- */

static process *start(const char *option, const char *value)
{
    const char *args[] = {"--seed", "1",    "--timeout", "105", "--runs",
                          runs,     option, value,       NULL};
    return process_start("examples/cartpole", args);
}

static const char *path_of(const char *name)
{
    (void)snprintf(text, sizeof text, "%.2000s/latest/%.300s", runs, name);
    return text;
}

/* Reads to the end; the last line that begins so, or NULL. */
static const char *last_line(process *p, const char *begin)
{
    static char found[PATH_SIZE];
    const char *line;
    found[0] = '\0';
    while ((line = process_read_line(p, RUN_MS)) != NULL) {
        if (strncmp(line, begin, strlen(begin)) == 0) {
            (void)snprintf(found, sizeof found, "%s", line);
        }
    }
    return found[0] == '\0' ? NULL : found;
}

/* Waits until a folder has a file of that name. */
static void await_file(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    char events[4096];
    int fd = inotify_init1(IN_CLOEXEC);
    struct pollfd wanted = {fd, POLLIN, 0};

    (void)snprintf(path, sizeof path, "%.2000s/%.100s", folder, name);
    assert_true(fd >= 0);
    assert_true(inotify_add_watch(fd, folder, IN_CREATE | IN_MOVED_TO) >= 0);
    while (access(path, F_OK) != 0) {
        assert_int_equal(poll(&wanted, 1, SOON_MS), 1);
        assert_true(read(fd, events, sizeof events) > 0);
    }
    (void)close(fd);
}

/* The learner has published its first policy: everybody is at work. */
static void await_work(void)
{
    char folder[PATH_SIZE];
    await_file(runs, "latest");
    (void)snprintf(folder, sizeof folder, "%s", path_of(""));
    await_file(folder, "policy-0.safetensors");
}

/* Is that a child of `parent` that has not ended? */
static bool is_child(const char *pid, pid_t parent)
{
    char path[64];
    char line[512] = "";
    char state = '\0';
    int ppid = 0;
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL) { /* it has gone, or is no process */
        return false;
    }
    char *got = fgets(line, sizeof line, file);
    (void)fclose(file);
    const char *name_end = strrchr(line, ')');
    return got != NULL && name_end != NULL &&
           sscanf(name_end + 1, " %c %d", &state, &ppid) == 2 && ppid == parent &&
           state != 'Z';
}

static size_t find_children(pid_t parent, pid_t *ret)
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *dir = opendir("/proc");
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            is_child(entry->d_name, parent)) {
            assert_true(count < CHILDREN_MAX);
            ret[count++] = (pid_t)strtol(entry->d_name, NULL, 10);
        }
    }
    (void)closedir(dir);
    return count;
}

static bool has_name(pid_t pid, const char *name)
{
    char path[64];
    char exe[PATH_MAX];
    (void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t len = readlink(path, exe, sizeof exe - 1);
    assert_true(len > 0);
    exe[len] = '\0';
    const char *slash = strrchr(exe, '/');
    return slash != NULL && strcmp(slash + 1, name) == 0;
}

static void kill_worker(const process *p, const char *name)
{
    pid_t children[CHILDREN_MAX];
    size_t count = find_children(process_pid(p), children);
    for (size_t i = 0; i < count; i++) {
        if (has_name(children[i], name)) {
            assert_int_equal(kill(children[i], SIGKILL), 0);
            return;
        }
    }
    fail_msg("there is no %s", name);
}

/* This process adopts orphans: whatever a run left behind would be ours now. */
static void assert_nobody_left(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---- solving ---- */

static int64_t newest_policy(void)
{
    int64_t newest = -1;
    int64_t version;
    int end;
    const struct dirent *entry;
    DIR *dir = opendir(path_of(""));
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        end = 0;
        if (sscanf(entry->d_name, "policy-%" SCNd64 ".safetensors%n", &version, &end) ==
                1 &&
            entry->d_name[end] == '\0' && version > newest) {
            newest = version;
        }
    }
    (void)closedir(dir);
    return newest;
}

/* Two evaluations at the end, both of that version and passed; an update for each
 * version up to it. */
static void check_history(int64_t solved)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    int64_t updates = 0;
    int passed = 0;
    FILE *file = fopen(path_of("history.jsonl"), "r");
    assert_non_null(file);
    while ((len = getline(&line, &size, file)) > 0) {
        json_t *tree = NULL;
        const char *event = "";
        int64_t version;
        double mean;
        coord_error err;
        assert_int_equal(line[len - 1], '\n');
        assert_int_equal(coord_json_parse((coord_text){line, (size_t)len}, &tree, &err),
                         0);
        assert_int_equal(coord_json_get_string(tree, "event", &event, &err), 0);
        if (strcmp(event, "update") == 0) {
            assert_int_equal(coord_json_get_int(tree, "version", &version, &err), 0);
            assert_int_equal(version, ++updates);
        } else {
            assert_string_equal(event, "evaluation");
            assert_int_equal(coord_json_get_double(tree, "mean", &mean, &err), 0);
            assert_int_equal(coord_json_get_int(tree, "policy_version", &version, &err),
                             0);
            passed += version == solved && mean >= 475;
        }
        json_decref(tree);
    }
    free(line);
    (void)fclose(file);
    assert_int_equal(passed, 2);
    assert_true(updates >= solved);
}

static void check_policy_file(const char *path, int64_t version)
{
    coord_safetensors *file = NULL;
    coord_error err;
    char expected[32];
    (void)snprintf(expected, sizeof expected, "%" PRId64, version);
    assert_int_equal(coord_safetensors_read_file(path, NULL, &file, &err), COORD_OK);
    assert_string_equal(coord_safetensors_metadata(file, "activation"), "tanh");
    assert_string_equal(coord_safetensors_metadata(file, "env"), "CartPole-v1");
    assert_string_equal(coord_safetensors_metadata(file, "version"), expected);
    assert_int_equal(coord_safetensors_count(file), 6);
    const coord_tensor *weight = coord_safetensors_find(file, "layers.0.weight");
    const coord_tensor *bias = coord_safetensors_find(file, "layers.2.bias");
    assert_true(weight != NULL && weight->rank == 2 && weight->shape[1] == 4);
    assert_int_equal(weight->dtype, COORD_DTYPE_F32);
    assert_true(bias != NULL && bias->rank == 1 && bias->shape[0] == 2);
    coord_safetensors_destroy(file);
}

/* Loaded anew, it plays as well as the run says. */
static void check_policy(int64_t solved)
{
    coord_error err;
    evaluation e;
    int64_t version = 0;
    char name[64];
    (void)snprintf(name, sizeof name, "policy-%" PRId64 ".safetensors", solved);
    check_policy_file(path_of(name), solved);

    mlp *policy = policy_create(EPISODES);
    assert_non_null(policy);
    assert_int_equal(policy_read(path_of(name), policy, &version, &err), COORD_OK);
    assert_int_equal(version, solved);
    assert_true(rollout_evaluate(policy, EPISODES, 271828, &e));
    mlp_destroy(policy);
    if (e.mean < 475) {
        fail_msg("version %" PRId64 " returns %.1f only", solved, e.mean);
    }
}

static void a_run_solves_cartpole_and_leaves_its_files(void **state)
{
    static const char *const FILES[] = {"config.json", "checkpoint.json",
                                        "history.jsonl"};
    (void)state;
    process *p = start("--collectors", "2");
    assert_non_null(last_line(p, "Solved CartPole-v1 in "));
    assert_int_equal(process_wait(p, RUN_MS), 0);
    assert_string_equal(process_errors(p), "");
    assert_nobody_left();

    int64_t solved = -1;
    coord_error err;
    char folder[PATH_SIZE];
    (void)snprintf(folder, sizeof folder, "%s", path_of(""));
    assert_int_equal(checkpoint_read(folder, &solved, NULL, &err), COORD_OK);
    assert_int_equal(newest_policy(), solved);
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) {
        assert_int_equal(access(path_of(FILES[i]), F_OK), 0);
    }
    (void)snprintf(folder, sizeof folder, "learner-%" PRId64 ".safetensors", solved);
    assert_int_equal(access(path_of(folder), F_OK), 0);
    assert_int_equal(access(path_of("chunks"), F_OK), -1);
    if (system("command -v gnuplot > /dev/null") == 0) {
        assert_int_equal(access(path_of("learning_curve.png"), F_OK), 0);
    }
    check_history(solved);
    check_policy(solved);
}

/* ---- not solving ---- */

static void end_with_signal(int signal_number)
{
    process *p = start(NULL, NULL);
    await_work();
    process_signal(p, signal_number);
    assert_int_equal(process_wait(p, SOON_MS), 128 + signal_number);
    assert_non_null(last_line(p, "Interrupted after "));
    assert_nobody_left();
    assert_int_equal(access(path_of("chunks"), F_OK), -1);
}

static void sigint_ends_a_run_and_its_workers(void **state)
{
    (void)state;
    end_with_signal(SIGINT);
}

static void sigterm_ends_a_run_and_its_workers(void **state)
{
    (void)state;
    end_with_signal(SIGTERM);
}

static void sigint_is_heard_from_the_first_moment(void **state)
{
    (void)state;
    process *p = start(NULL, NULL);
    await_file(runs, "latest"); /* workers are just being started */
    process_signal(p, SIGINT);
    assert_int_equal(process_wait(p, SOON_MS), 128 + SIGINT);
    assert_nobody_left();
}

static void workers_do_not_outlive_a_killed_coordinator(void **state)
{
    pid_t children[CHILDREN_MAX];
    struct pollfd ended[CHILDREN_MAX];
    (void)state;
    process *p = start(NULL, NULL);
    await_work();
    size_t count = find_children(process_pid(p), children);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        ended[i] = (struct pollfd){pidfd_open(children[i], 0), POLLIN, 0};
        assert_true(ended[i].fd >= 0);
    }
    process_signal(p, SIGKILL);
    assert_int_equal(process_wait(p, SOON_MS), 128 + SIGKILL);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(poll(&ended[i], 1, SOON_MS), 1);
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
        (void)close(ended[i].fd);
    }
    assert_nobody_left();
}

static void a_run_without_its_learner_fails_and_says_so(void **state)
{
    (void)state;
    process *p = start(NULL, NULL);
    await_work();
    kill_worker(p, "cartpole-learner");
    const char *line = last_line(p, "Not solved ");
    assert_non_null(line);
    assert_non_null(strstr(line, "learner"));
    assert_int_equal(process_wait(p, SOON_MS), 1);
    assert_nobody_left();
}

static void a_run_goes_on_without_one_of_its_collectors(void **state)
{
    (void)state;
    process *p = start(NULL, NULL);
    await_work();
    kill_worker(p, "cartpole-collector");
    assert_non_null(last_line(p, "Solved CartPole-v1 in "));
    assert_int_equal(process_wait(p, SOON_MS), 0);
    assert_non_null(strstr(process_errors(p), "1 of 2 collectors go on"));
    assert_nobody_left();
}

static void a_run_ends_when_its_time_is_over(void **state)
{
    (void)state;
    process *p = start("--timeout", "1");
    const char *line = last_line(p, "Not solved ");
    /* A quick machine may have solved it by then. */
    int status = process_wait(p, SOON_MS);
    assert_true(line == NULL ? status == 0
                             : status == 1 && strstr(line, "the time is over") != NULL);
    assert_nobody_left();
}

/* ---- arguments ---- */

static void expect_usage(const char *option, const char *value, const char *complaint)
{
    const char *args[] = {option, value, NULL};
    process *p = process_start("examples/cartpole", args);
    assert_int_equal(process_wait(p, SOON_MS), 2);
    assert_non_null(strstr(process_errors(p), complaint));
    assert_non_null(strstr(process_errors(p), "usage: "));
}

static void wrong_arguments_are_explained(void **state)
{
    (void)state;
    expect_usage("--seed", "x", "--seed must be an integer from 0 to");
    expect_usage("--seed", NULL, "seed");
    expect_usage("--collectors", "0", "--collectors must be an integer from 1 to 16");
    expect_usage("--timeout", "1e9", "--timeout");
    expect_usage("--colectors", "2", "colectors");
    expect_usage("seed", "1", "there is no argument \"seed\"");
}

static void help_is_no_error(void **state)
{
    const char *args[] = {"--help", NULL};
    (void)state;
    process *p = process_start("examples/cartpole", args);
    assert_non_null(last_line(p, "usage: "));
    assert_int_equal(process_wait(p, SOON_MS), 0);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
    const char *args[] = {"--runs", "/dev/null/runs", NULL};
    (void)state;
    process *p = process_start("examples/cartpole", args);
    assert_int_equal(process_wait(p, SOON_MS), 1);
    assert_non_null(strstr(process_errors(p), "/dev/null/runs"));
    assert_nobody_left();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_solves_cartpole_and_leaves_its_files),
        TEST(sigint_ends_a_run_and_its_workers),
        TEST(sigterm_ends_a_run_and_its_workers),
        TEST(sigint_is_heard_from_the_first_moment),
        TEST(workers_do_not_outlive_a_killed_coordinator),
        TEST(a_run_without_its_learner_fails_and_says_so),
        TEST(a_run_goes_on_without_one_of_its_collectors),
        TEST(a_run_ends_when_its_time_is_over),
        TEST(wrong_arguments_are_explained),
        TEST(help_is_no_error),
        TEST(a_folder_that_cannot_be_made_is_an_error),
    };
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
        perror("prctl");
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests_name("cartpole_run", tests, NULL, NULL);
}
