/* Discovery: a command or a callback lists the workers, again and again. */
#include "support/cluster.h"

#include "coord/testing_program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t LONG_MS = 600000;

/* Asks the program "who" every second, for at most two. */
#define COMMAND_MORE "\"command\": \"who\", \"interval_s\": 1, \"timeout_s\": 2"
#define COMMAND "\"discovery\": {" COMMAND_MORE "}, "

static void expect(coord_status got, coord_status wanted, const coord_error *err)
{
    if (got != wanted) {
        fail_msg("status %d, expected %d: %s: %s", (int)got, (int)wanted, err->text,
                 err->cause);
    }
}

/* ---- the command ---- */

/* What runs of it were seen. */
typedef struct runs {
    int count;
    int64_t pid; /* of the last */
    const cluster *k;
    int64_t at_ms[64];
    char argument[64];
    char environment[64];
} runs;

static runs seen;

static void was_run(int64_t pid, const char *const *argv, const char *const *envp,
                    void *user)
{
    (void)user;
    seen.pid = pid;
    seen.at_ms[seen.count++ % 64] = coord_sim_now_ms(seen.k->sim);
    (void)snprintf(seen.argument, sizeof seen.argument, "%s",
                   argv[1] == NULL ? "" : argv[1]);
    (void)snprintf(seen.environment, sizeof seen.environment, "%s",
                   envp[0] == NULL ? "" : envp[0]);
}

static void set_program(cluster *k, const char *output, const char *error_output,
                        int64_t run_ms, int exit_code)
{
    coord_sim_program program;
    coord_sim_program_init(&program, sizeof program);
    program.name = "who";
    program.output = output;
    program.error_output = error_output;
    program.run_ms = run_ms;
    program.exit_code = exit_code;
    program.started = was_run;
    seen.k = k;
    assert_int_equal(coord_sim_add_program(k->sim, &program, NULL), COORD_OK);
}

/* It prints this from now on, and is done in a moment. */
static void set_list(cluster *k, const char *output)
{
    set_program(k, output, "", 10, 0);
}

/* Runs until the next list was taken. */
static void await_list(cluster *k)
{
    cluster_run(k, 1100);
}

/* With strangers alone, but for l0 and those of the first `configured` collectors. */
static void open_world(cluster *k, int collectors, int learners, int configured)
{
    memset(&seen, 0, sizeof seen);
    cluster_init(k, 1, collectors, learners);
    for (int i = 0; i < collectors + learners; i++) {
        k->workers[i].stranger = i >= configured;
    }
}

/* ---- looking ---- */

static char *status_text;

/* The status' part about discovery; until the next call. */
static const char *discovery_of(cluster *k)
{
    coord_free(status_text);
    status_text = NULL;
    assert_int_equal(comm_coordinator_status(k->c, &status_text, NULL), COORD_OK);
    const char *at = strstr(status_text, "\"discovery\": ");
    assert_non_null(at);
    return at;
}

static void assert_discovery(cluster *k, const char *words)
{
    const char *text = discovery_of(k);
    if (strstr(text, words) == NULL) {
        fail_msg("no %s in %s", words, text);
    }
}

static void end(cluster *k)
{
    coord_free(status_text); /* before memory is counted */
    status_text = NULL;
    cluster_done(k);
}

static bool is_forgotten(cluster *k, const char *id)
{
    return cluster_worker_state(k, id)[0] == '\0';
}

static void assert_free(cluster *k, const char *id)
{
    assert_true(cluster_await_worker(k, id, "free", 5000));
}

/* ---- tests: lists ---- */

static void who_is_listed_gets_tasks_and_who_is_not_leaves(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 2, 0);
    set_list(&k, "collector 10.0.1.1:22270 c0\n"
                 "learner 10.0.2.1:22270\tl0\r\n");
    cluster_start(&k, COMMAND);
    assert_discovery(&k, "{\"state\": \"starting\", \"last_list_ms\": null, ");
    cluster_run(&k, 100);
    assert_free(&k, "c0");
    assert_free(&k, "l0");
    assert_discovery(&k, "\"state\": \"following\"");
    assert_discovery(&k, "\"collectors\": 1, \"learners\": 1, \"failures\": 0, "
                         "\"error\": null}");
    assert_int_equal(cluster_count(&k, "increase", NULL), 2);
    cluster_post(&k, COORD_COLLECTOR, "a");
    assert_true(cluster_await(&k, "finish", "a", 1, 60000));
    assert_string_equal(cluster_last(&k, "start", "a")->detail, "c0");

    set_list(&k, "# two of them\n\n  collector 10.0.1.2:22270 c1");
    await_list(&k);
    assert_free(&k, "c1");
    assert_true(is_forgotten(&k, "c0"));
    assert_true(is_forgotten(&k, "l0"));
    assert_int_equal(cluster_count(&k, "increase", "collector"), 2);
    assert_int_equal(cluster_count(&k, "decrease", NULL), 2);

    set_list(&k, "");
    await_list(&k);
    assert_true(is_forgotten(&k, "c1"));
    assert_discovery(&k, "\"collectors\": 0, \"learners\": 0, \"failures\": 0");
    cluster_check(&k);
    end(&k);
}

static void an_address_is_the_id_of_who_has_none(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 1, 0, 0);
    set_list(&k, "collector 10.0.1.1:22270\n");
    cluster_start(&k, COMMAND);
    assert_free(&k, "10.0.1.1:22270");
    end(&k);
}

static void an_id_at_another_address_is_another_worker(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, 0);
    set_list(&k, "collector 10.0.1.1:22270 x\n");
    cluster_start(&k, COMMAND);
    assert_free(&k, "x");
    cluster_find(&k, "c0")->work_ms = 3000;
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_run(&k, 500);
    set_list(&k, "collector 10.0.1.2:22270 x\n");
    assert_true(cluster_await(&k, "finish", "a", 1, 60000));
    assert_int_equal(cluster_count(&k, "restart", "a"), 1);
    assert_int_equal(cluster_find(&k, "c1")->starts, 1);
    assert_int_equal(cluster_count(&k, "increase", NULL), 2);
    assert_int_equal(cluster_count(&k, "decrease", NULL), 1);
    end(&k);
}

static void start_waits_for_as_many_as_it_is_told_to(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, 0);
    set_list(&k, "collector 10.0.1.1:22270 c0\ncollector 10.0.1.2:22270 c1\n");
    int64_t began = coord_sim_now_ms(k.sim);
    cluster_start(&k, COMMAND "\"min_collectors\": 2, ");
    assert_string_equal(cluster_worker_state(&k, "c0"), "free");
    assert_string_equal(cluster_worker_state(&k, "c1"), "free");
    assert_true(coord_sim_now_ms(k.sim) - began < 1000);
    assert_true(cluster_await(&k, "increase", "collector", 2, 100));
    end(&k);
}

static void a_start_in_vain_says_what_is_wrong_with_discovery(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    open_world(&k, 2, 0, 0);
    set_program(&k, "", "first\nno such cloud\n", 10, 3);
    cluster_create(&k, COMMAND "\"min_collectors\": 2, \"max_retry_second\": 5, ");
    expect(comm_coordinator_start(k.c, &err), COORD_ERR_TIMEOUT, &err);
    assert_string_equal(err.text,
                        "start: missing 2 collectors that nobody has named (discovery: "
                        "'who' has failed with exit code 3: it says \"no such cloud\")");
    int count = seen.count;
    cluster_run(&k, 5000);
    assert_int_equal(seen.count, count);
    assert_discovery(&k, "null");

    /* One of two: that is enough, with a remark. */
    set_list(&k, "collector 10.0.1.1:22270 c0\n");
    expect(comm_coordinator_start(k.c, &err), COORD_OK, &err);
    assert_string_equal(err.text, "start: missing 1 collector that nobody has named");
    assert_string_equal(cluster_worker_state(&k, "c0"), "free");
    end(&k);
}

static void a_worker_of_the_configuration_stays_its_own(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, 1);
    set_list(&k, "collector 10.9.9.9:1 c0\ncollector 10.0.1.2:22270 c1\n");
    cluster_start(&k, COMMAND);
    assert_free(&k, "c1");
    assert_string_equal(cluster_worker_state(&k, "c0"), "free");
    set_list(&k, "");
    await_list(&k);
    assert_true(is_forgotten(&k, "c1"));
    assert_string_equal(cluster_worker_state(&k, "c0"), "free");
    assert_int_equal(cluster_count(&k, "decrease", NULL), 1);
    end(&k);
}

static void what_the_host_removes_stays_away_until_it_has_left_the_list(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    open_world(&k, 2, 0, 1);
    set_list(&k, "collector 10.0.1.2:22270 c1\n");
    cluster_start(&k, COMMAND);
    assert_free(&k, "c1");
    expect(comm_coordinator_remove_worker(k.c, COORD_COLLECTOR, "c1",
                                          COMM_COORDINATOR_DRAIN, &err),
           COORD_OK, &err);
    cluster_run(&k, 5000);
    assert_true(is_forgotten(&k, "c1"));
    set_list(&k, "");
    await_list(&k);
    set_list(&k, "collector 10.0.1.2:22270 c1\n");
    await_list(&k);
    assert_free(&k, "c1");
    assert_int_equal(cluster_count(&k, "increase", NULL), 2);
    end(&k);
}

/* A task that its worker has while that leaves the list. */
static void leave_while_working(const char *more, int restarts)
{
    static cluster k;
    open_world(&k, 2, 0, 1);
    set_list(&k, "collector 10.0.1.2:22270 c1\n");
    cluster_start(&k, more);
    assert_free(&k, "c1");
    cluster_find(&k, "c0")->work_ms = 1500;
    cluster_find(&k, "c1")->work_ms = 1500;
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_post(&k, COORD_COLLECTOR, "b");
    cluster_run(&k, 500);
    set_list(&k, "");
    assert_true(cluster_await(&k, "decrease", "collector", 1, 2000));
    assert_true(cluster_await(&k, "finish", NULL, 2, LONG_MS));
    assert_int_equal(cluster_count(&k, "restart", NULL), restarts);
    cluster_run(&k, 1000);
    assert_true(is_forgotten(&k, "c1"));
    cluster_check(&k);
    end(&k);
}

static void who_leaves_the_list_is_dropped_or_drained(void **state)
{
    (void)state;
    leave_while_working(COMMAND, 1);
    leave_while_working("\"discovery\": {" COMMAND_MORE ", \"removal\": \"drain\"}, ", 0);
}

static void who_comes_and_goes_is_told_each_time(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, 1);
    set_list(&k, "");
    cluster_start(&k, COMMAND);
    for (int i = 0; i < 5; i++) {
        set_list(&k, "collector 10.0.1.2:22270 c1\n");
        await_list(&k);
        assert_free(&k, "c1");
        set_list(&k, "");
        await_list(&k);
        assert_true(is_forgotten(&k, "c1"));
    }
    assert_int_equal(cluster_count(&k, "increase", NULL), 5);
    assert_int_equal(cluster_count(&k, "decrease", NULL), 5);
    end(&k);
}

/* ---- tests: trouble ---- */

static void check_trouble(cluster *k, const char *words)
{
    await_list(k);
    await_list(k);
    assert_discovery(k, "\"state\": \"failing\"");
    assert_discovery(k, words);
    assert_string_equal(cluster_worker_state(k, "c0"), "free");
}

static void whatever_goes_wrong_keeps_the_last_list(void **state)
{
    static cluster k;
    static char huge[(1 << 20) + 2];
    (void)state;
    open_world(&k, 1, 0, 0);
    set_list(&k, "collector 10.0.1.1:22270 c0\n");
    cluster_start(&k, COMMAND "\"min_collectors\": 1, ");

    set_program(&k, "", "", 10, 1);
    check_trouble(&k, "discovery: 'who' has failed with exit code 1\"}");
    assert_discovery(&k, "\"collectors\": 1, \"learners\": 0, \"failures\": 2, ");
    set_program(&k, "collector 10.0.1.2:22270 c0\n", "a\nb\r\n\n", 10, -9);
    check_trouble(&k, "'who' was ended by signal 9: it says \\\"b\\\"\"}");
    set_list(&k, "collector 10.0.1.2:22270 c1\ncollector 10.0.1.2\n");
    check_trouble(&k, "discovery: a list that can't be used: line 2, "
                      "\\\"collector 10.0.1.2\\\": the address lacks a port; expected: "
                      "role host:port [id]\"}");
    set_list(&k, "<html>502 Bad Gateway</html>");
    check_trouble(&k, "line 1, ");
    memset(huge, '\n', sizeof huge - 1);
    set_program(&k, huge, "", 5000, 0);
    check_trouble(&k, "'who' has printed more than 1048576 bytes, and was killed");

    set_list(&k, "collector 10.0.1.1:22270 c0\n");
    await_list(&k);
    assert_discovery(&k, "\"state\": \"following\"");
    assert_discovery(&k, "\"failures\": 0, \"error\": null");
    assert_int_equal(cluster_count(&k, "decrease", NULL), 0);
    end(&k);
}

static void a_command_that_is_not_there_is_told(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 1, 0, 1);
    cluster_start(&k, COMMAND);
    cluster_run(&k, 2500);
    assert_discovery(&k, "{\"state\": \"failing\", \"last_list_ms\": null, "
                         "\"collectors\": 0, \"learners\": 0, \"failures\": 3, "
                         "\"error\": \"discovery: 'who' can't be started: ");
    end(&k);
}

static void a_command_that_takes_too_long_is_killed(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 1, 0, 0);
    set_list(&k, "collector 10.0.1.1:22270 c0\n");
    cluster_start(&k, COMMAND "\"min_collectors\": 1, ");
    set_program(&k, "collector 10.0.1.1:22270 c0\n", "waiting for the cloud", -1, 0);
    cluster_run(&k, 1000);
    int count = seen.count;
    int64_t pid = seen.pid;
    cluster_run(&k, 1500);
    assert_int_equal(seen.count, count); /* never two at a time */
    cluster_run(&k, 600);
    assert_discovery(&k, "\"failures\": 1, \"error\": \"discovery: 'who' did not end "
                         "within 2000 ms (discovery.timeout_s), and was killed: it says "
                         "\\\"waiting for the cloud\\\"\"}");
    assert_false(coord_sim_end_process(k.sim, pid, 0));
    assert_string_equal(cluster_worker_state(&k, "c0"), "free");
    cluster_run(&k, 400);
    assert_int_equal(seen.count, count); /* it keeps to its moments */
    cluster_run(&k, 600);
    assert_int_equal(seen.count, count + 1);
    end(&k);
}

static void it_is_asked_at_once_and_then_at_intervals(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 1, 0, 1);
    assert_int_equal(coord_sim_set_env(k.sim, "CLOUD", "nine", NULL), COORD_OK);
    set_list(&k, "");
    int64_t began = coord_sim_now_ms(k.sim);
    cluster_start(&k, "\"discovery\": {\"command\": [\"who\", \"--is there\"], "
                      "\"interval_s\": 0.5}, ");
    cluster_run(&k, 2100 - (coord_sim_now_ms(k.sim) - began));
    assert_int_equal(seen.count, 5);
    for (int i = 0; i < 5; i++) {
        assert_in_range(seen.at_ms[i] - began, i * 500, i * 500 + 60);
    }
    assert_string_equal(seen.argument, "--is there");
    assert_string_equal(seen.environment, "CLOUD=nine");
    end(&k);
}

static void a_task_that_waits_names_the_trouble(void **state)
{
    static cluster k;
    char *why = NULL;
    (void)state;
    open_world(&k, 1, 0, 0);
    set_program(&k, "", "out of quota\n", 10, 2);
    cluster_start(&k, COMMAND);
    cluster_post(&k, COORD_COLLECTOR, "a");
    cluster_run(&k, 2500);
    assert_int_equal(comm_coordinator_why(k.c, "a", &why, NULL), COORD_OK);
    assert_non_null(strstr(why, "{\"code\": \"no_worker_configured\", \"seen\": \"no "
                                "collector belongs here now"));
    assert_non_null(strstr(why,
                           "{\"code\": \"discovery_fails\", \"seen\": \"3 times in a "
                           "row: discovery: 'who' has failed with exit code 2: it "
                           "says \\\"out of quota\\\"\", \"since_ms\": 2"));
    coord_free(why);
    set_list(&k, "collector 10.0.1.1:22270 c0\n");
    assert_true(cluster_await(&k, "finish", "a", 1, 60000));
    end(&k);
}

/* ---- tests: ends ---- */

static void close_ends_a_command_at_once(void **state)
{
    static cluster k;
    coord_error err = {0};
    (void)state;
    open_world(&k, 1, 0, 1);
    set_program(&k, "", "", -1, 0);
    cluster_start(&k, COMMAND);
    cluster_run(&k, 100);
    assert_int_equal(seen.count, 1);
    int64_t since = coord_sim_now_ms(k.sim);
    expect(cluster_close(&k, &err), COORD_OK, &err);
    assert_true(coord_sim_now_ms(k.sim) - since < 500);
    assert_false(coord_sim_end_process(k.sim, seen.pid, 0));
    cluster_run(&k, 5000);
    assert_int_equal(seen.count, 1);
    assert_discovery(&k, "null");
    end(&k);
}

static void destroy_in_the_middle_leaves_nothing(void **state)
{
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, 1);
    set_program(&k, "collector 10.0.1.2:22270 c1\n", "", 300, 0);
    cluster_start(&k, COMMAND);
    cluster_run(&k, 100);
    comm_coordinator_destroy(k.c);
    k.c = NULL;
    cluster_run(&k, 5000);
    assert_int_equal(seen.count, 1);
    assert_false(coord_sim_end_process(k.sim, seen.pid, 0));
    cluster_done(&k);

    open_world(&k, 2, 0, 1);
    set_program(&k, "collector 10.0.1.2:22270 c1\n", "", 300, 0);
    cluster_start(&k, COMMAND "\"port\": 22273, ");
    cluster_run(&k, 100);
    cluster_crash_coordinator(&k);
    cluster_run(&k, 5000);
    assert_int_equal(seen.count, 1);
    cluster_restart(&k, COMMAND "\"port\": 22273, ");
    assert_true(cluster_await_worker(&k, "c1", "free", 60000));
    end(&k);
}

static void a_task_goes_on_when_the_coordinator_is_restarted(void **state)
{
    static const char MORE[] = COMMAND "\"port\": 22273, \"ledger\": \"run.db\", ";
    static cluster k;
    (void)state;
    open_world(&k, 2, 0, 0);
    set_list(&k, "collector 10.0.1.1:22270 c0\ncollector 10.0.1.2:22270 c1\n");
    cluster_start(&k, MORE);
    assert_free(&k, "c0");
    assert_free(&k, "c1");
    cluster_find(&k, "c0")->work_ms = 3000;
    cluster_find(&k, "c1")->work_ms = 3000;
    cluster_post(&k, COORD_COLLECTOR, "a");
    assert_true(cluster_await(&k, "start", "a", 1, 60000));
    cluster_run(&k, 1000);
    cluster_crash_coordinator(&k);
    set_program(&k, "", "not yet\n", 10, 1);
    cluster_restart(&k, MORE);
    cluster_run(&k, 2000);
    set_list(&k, "collector 10.0.1.1:22270 c0\ncollector 10.0.1.2:22270 c1\n");
    assert_true(cluster_await(&k, "finish", "a", 1, LONG_MS));
    assert_int_equal(cluster_count(&k, "restart", "a"), 0);
    assert_int_equal(cluster_find(&k, "c0")->starts + cluster_find(&k, "c1")->starts, 1);
    await_list(&k);
    assert_free(&k, "c0");
    assert_free(&k, "c1");
    cluster_check(&k);

    /* Those that are not listed any more after a restart go. */
    cluster_crash_coordinator(&k);
    set_list(&k, "collector 10.0.1.2:22270 c1\n");
    cluster_restart(&k, MORE);
    await_list(&k);
    assert_free(&k, "c1");
    cluster_run(&k, 1000);
    assert_true(is_forgotten(&k, "c0"));
    end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_listed_gets_tasks_and_who_is_not_leaves),
        cmocka_unit_test(an_address_is_the_id_of_who_has_none),
        cmocka_unit_test(an_id_at_another_address_is_another_worker),
        cmocka_unit_test(start_waits_for_as_many_as_it_is_told_to),
        cmocka_unit_test(a_start_in_vain_says_what_is_wrong_with_discovery),
        cmocka_unit_test(a_worker_of_the_configuration_stays_its_own),
        cmocka_unit_test(what_the_host_removes_stays_away_until_it_has_left_the_list),
        cmocka_unit_test(who_leaves_the_list_is_dropped_or_drained),
        cmocka_unit_test(who_comes_and_goes_is_told_each_time),
        cmocka_unit_test(whatever_goes_wrong_keeps_the_last_list),
        cmocka_unit_test(a_command_that_is_not_there_is_told),
        cmocka_unit_test(a_command_that_takes_too_long_is_killed),
        cmocka_unit_test(it_is_asked_at_once_and_then_at_intervals),
        cmocka_unit_test(a_task_that_waits_names_the_trouble),
        cmocka_unit_test(close_ends_a_command_at_once),
        cmocka_unit_test(destroy_in_the_middle_leaves_nothing),
        cmocka_unit_test(a_task_goes_on_when_the_coordinator_is_restarted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
