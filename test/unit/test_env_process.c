/* Child processes in the real world. The children are shells. */
#include "base/alloc.h"
#include "support/env_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { OUTPUT = 1 << 17 };

typedef struct rig {
    env_rig env;
    coordi_process *process;
    const char *script;
    const char *program; /* instead of a shell */
    const char *cwd;
    coord_status started;
    coord_error error;
    char *output[3];
    size_t len[3];
    int ends[3];
    int exits;
    int code;
    bool late_output; /* something came after the exit */
    bool destroy_on_output;
    atomic_bool seen; /* output has come */
} rig;

static void destroy(void *arg)
{
    rig *r = arg;
    r->env.loop->env->process_destroy(r->process);
    r->process = NULL;
}

static void on_output(coordi_process *process, int stream, const char *bytes, size_t len,
                      void *arg)
{
    rig *r = arg;
    assert_ptr_equal(process, r->process);
    assert_true(stream == 1 || stream == 2);
    r->late_output = r->late_output || r->exits > 0 || r->ends[stream] > 0;
    if (len == 0) {
        r->ends[stream]++;
        return;
    }
    assert_true(r->len[stream] + len < OUTPUT);
    memcpy(r->output[stream] + r->len[stream], bytes, len);
    r->len[stream] += len;
    atomic_store(&r->seen, true);
    if (r->destroy_on_output) {
        destroy(r);
        env_rig_wake(&r->env);
    }
}

static void on_exit_of(coordi_process *process, int code, void *arg)
{
    rig *r = arg;
    assert_ptr_equal(process, r->process);
    r->exits++;
    r->code = code;
    env_rig_wake(&r->env);
}

static void start(void *arg)
{
    rig *r = arg;
    const char *const shell[] = {"sh", "-c", r->script, NULL};
    const char *const program[] = {r->program, NULL};
    const char *const envp[] = {"PATH=/usr/bin:/bin", "GREETING=hello",
                                "COORD_LIFELINE_FD=99", NULL};
    const coordi_process_spec spec = {
        .argv = r->program != NULL ? program : shell,
        .envp = envp,
        .cwd = r->cwd,
        .on_output = on_output,
        .on_exit = on_exit_of,
        .arg = r,
    };
    r->started =
        r->env.loop->env->process_start(r->env.loop, &spec, &r->process, &r->error);
}

static void rig_open(rig *r, const char *script)
{
    *r = (rig){.script = script};
    r->output[1] = calloc(1, OUTPUT);
    r->output[2] = calloc(1, OUTPUT);
    env_rig_open(&r->env, NULL, NULL);
}

static void rig_close(rig *r)
{
    env_rig_do(&r->env, destroy, r);
    env_rig_close(&r->env);
    free(r->output[1]);
    free(r->output[2]);
}

static void rig_start(rig *r, const char *script)
{
    rig_open(r, script);
    env_rig_do(&r->env, start, r);
    assert_int_equal(r->started, COORD_OK);
}

/* Runs a script to its end. */
static void rig_run(rig *r, const char *script)
{
    rig_start(r, script);
    assert_true(env_rig_await(&r->env));
    assert_int_equal(r->exits, 1);
    assert_int_equal(r->ends[1], 1);
    assert_int_equal(r->ends[2], 1);
    assert_false(r->late_output);
}

static void await_output(rig *r)
{
    while (!atomic_load(&r->seen)) {
        (void)sched_yield();
    }
}

static bool is_alive(pid_t pid)
{
    return kill(pid, 0) == 0;
}

static void output_and_exit_code_are_told(void **state)
{
    (void)state;
    rig r;
    rig_run(&r, "echo $GREETING; echo oops >&2; exit 7");
    assert_string_equal(r.output[1], "hello\n");
    assert_string_equal(r.output[2], "oops\n");
    assert_int_equal(r.code, 7);
    rig_close(&r);
}

static void much_output_comes_whole(void **state)
{
    (void)state;
    rig r;
    rig_run(
        &r,
        "i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789; "
        "i=$((i+1)); done");
    assert_int_equal(r.len[1], 2000 * 41);
    assert_int_equal(r.code, 0);
    rig_close(&r);
}

static void death_by_a_signal_is_a_negative_code(void **state)
{
    (void)state;
    rig r;
    rig_run(&r, "kill -KILL $$");
    assert_int_equal(r.code, -SIGKILL);
    rig_close(&r);
}

static void the_child_has_only_what_it_is_given(void **state)
{
    (void)state;
    /* A descriptor that anybody may have forgotten to mark must not leak either. */
    int low = open("/dev/null", O_RDONLY);
    int leak = fcntl(low, F_DUPFD, 20);
    assert_true(leak >= 20);
    rig r;
    rig_open(
        &r, "cd /proc/self/fd && echo * && readlink 0 && pwd -P && cd / && env | sort && "
            "grep -E '^Sig(Blk|Ign)' /proc/self/status");
    r.cwd = "/usr";
    env_rig_do(&r.env, start, &r);
    assert_int_equal(r.started, COORD_OK);
    assert_true(env_rig_await(&r.env));
    (void)close(low);
    (void)close(leak);
    assert_non_null(strstr(r.output[1], "/dev/null\n"));
    char high[32];
    (void)snprintf(high, sizeof high, " %d", leak);
    assert_null(strstr(r.output[1], high));
    assert_non_null(strstr(r.output[1], "COORD_LIFELINE_FD=3\n"));
    assert_null(strstr(r.output[1], "LIFELINE_FD=99"));
    assert_non_null(strstr(r.output[1], "GREETING=hello\n"));
    assert_non_null(strstr(r.output[1], "SigBlk:\t0000000000000000\n"));
    const char *ignored = strstr(r.output[1], "SigIgn:\t");
    assert_non_null(ignored);
    /* 32 and 33 are the C library's own; it lets nobody set them, nor reset them. */
    assert_int_equal(strtoull(ignored + 8, NULL, 16) & ~0x180000000ULL, 0);
    rig_close(&r);
}

static void the_child_starts_in_the_folder_asked_for(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, "pwd -P");
    r.cwd = "/usr";
    env_rig_do(&r.env, start, &r);
    assert_true(env_rig_await(&r.env));
    assert_string_equal(r.output[1], "/usr\n");
    rig_close(&r);
}

static void a_program_that_is_not_there_is_named(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, NULL);
    r.program = "no-such-program";
    env_rig_do(&r.env, start, &r);
    assert_int_equal(r.started, COORD_ERR_IO);
    assert_int_equal(r.error.os_errno, ENOENT);
    assert_non_null(strstr(r.error.text, "no-such-program"));
    r.program = "/etc/passwd";
    env_rig_do(&r.env, start, &r);
    assert_int_equal(r.error.os_errno, EACCES);
    r.program = NULL;
    r.script = "true";
    r.cwd = "/no/such/folder";
    env_rig_do(&r.env, start, &r);
    assert_int_equal(r.started, COORD_ERR_IO);
    assert_non_null(strstr(r.error.text, "/no/such/folder"));
    assert_null(r.process);
    rig_close(&r);
}

static void send_term(void *arg)
{
    rig *r = arg;
    r->env.loop->env->process_signal(r->process, SIGTERM);
}

static void a_signal_reaches_the_whole_group(void **state)
{
    (void)state;
    rig r;
    rig_start(&r, "sleep 1000 & echo $!; wait");
    await_output(&r);
    const pid_t inner = (pid_t)atol(r.output[1]);
    assert_true(is_alive(inner));
    env_rig_do(&r.env, send_term, &r);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(r.code, -SIGTERM);
    rig_close(&r);
}

static void destroy_kills_the_group_and_tells_nothing(void **state)
{
    (void)state;
    rig r;
    rig_start(&r, "trap '' TERM; sleep 1000 & echo $!; wait");
    await_output(&r);
    const pid_t leader = (pid_t)r.env.loop->env->process_id(r.process);
    env_rig_do(&r.env, destroy, &r);
    while (is_alive(leader)) { /* reaped by the loop */
        (void)sched_yield();
    }
    assert_int_equal(r.exits, 0);
    rig_close(&r);
}

static void a_process_may_be_destroyed_by_its_own_output(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, "echo a; echo b >&2; sleep 1000");
    r.destroy_on_output = true;
    env_rig_do(&r.env, start, &r);
    assert_int_equal(r.started, COORD_OK);
    assert_true(env_rig_await(&r.env));
    assert_int_equal(r.exits, 0);
    rig_close(&r);
}

static void output_held_open_by_a_grandchild_does_not_hold_up_the_exit(void **state)
{
    (void)state;
    rig r;
    rig_run(&r, "sleep 1000 & echo done; exit 3");
    assert_int_equal(r.code, 3);
    assert_string_equal(r.output[1], "done\n");
    rig_close(&r); /* and the grandchild goes with the group */
}

static void a_child_sees_the_end_of_its_parent(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) { /* a host that starts a worker and dies without a word */
        char script[128];
        /* The worker says "gone" through /proc, as it has no other way out. */
        (void)snprintf(script, sizeof script,
                       "echo up; read x <&3; echo gone > /proc/%ld/fd/%d",
                       (long)getppid(), fds[1]);
        rig r;
        rig_start(&r, script);
        await_output(&r);
        (void)kill(getpid(), SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    char got[8] = "";
    assert_int_equal(read(fds[0], got, 5), 5);
    assert_string_equal(got, "gone\n");
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void other_children_are_left_to_the_host(void **state)
{
    (void)state;
    pid_t own = fork();
    assert_true(own >= 0);
    if (own == 0) {
        _exit(42);
    }
    rig r;
    rig_run(&r, "exit 1");
    int status;
    assert_int_equal(waitpid(own, &status, 0), own);
    assert_int_equal(WEXITSTATUS(status), 42);
    rig_close(&r);
}

static void a_host_that_ignores_sigchld_costs_the_exit_code_alone(void **state)
{
    (void)state;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    rig r;
    rig_run(&r, "exit 1");
    assert_int_equal(r.code, 255);
    rig_close(&r);
    (void)signal(SIGCHLD, before);
}

static bool countdown(void *user)
{
    return (*(int *)user)-- == 0;
}

static void start_with_faults(void *arg)
{
    rig *r = arg;
    for (int n = 0; r->process == NULL; n++) {
        int left = n;
        coordi_alloc_set_fault(countdown, &left);
        start(r);
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(r->started == COORD_OK || r->started == COORD_ERR_NOMEM);
    }
}

static void starting_survives_every_failed_allocation(void **state)
{
    (void)state;
    rig r;
    rig_open(&r, "exit 0");
    env_rig_do(&r.env, start_with_faults, &r);
    assert_true(env_rig_await(&r.env));
    rig_close(&r);
}

static void many_processes_leave_no_descriptor_behind(void **state)
{
    (void)state;
    int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)close(low);
    for (int i = 0; i < 20; i++) {
        rig r;
        rig_run(&r, "echo x");
        rig_close(&r);
    }
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(after, low);
    (void)close(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_and_exit_code_are_told),
        cmocka_unit_test(much_output_comes_whole),
        cmocka_unit_test(death_by_a_signal_is_a_negative_code),
        cmocka_unit_test(the_child_has_only_what_it_is_given),
        cmocka_unit_test(the_child_starts_in_the_folder_asked_for),
        cmocka_unit_test(a_program_that_is_not_there_is_named),
        cmocka_unit_test(a_signal_reaches_the_whole_group),
        cmocka_unit_test(destroy_kills_the_group_and_tells_nothing),
        cmocka_unit_test(a_process_may_be_destroyed_by_its_own_output),
        cmocka_unit_test(output_held_open_by_a_grandchild_does_not_hold_up_the_exit),
        cmocka_unit_test(a_child_sees_the_end_of_its_parent),
        cmocka_unit_test(other_children_are_left_to_the_host),
        cmocka_unit_test(a_host_that_ignores_sigchld_costs_the_exit_code_alone),
        cmocka_unit_test(starting_survives_every_failed_allocation),
        cmocka_unit_test(many_processes_leave_no_descriptor_behind),
    };
    return cmocka_run_group_tests_name("env_process", tests, NULL, NULL);
}
