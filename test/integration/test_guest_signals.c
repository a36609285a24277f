/* A good guest among signals: those of its host are the host's, in whatever state they
 * are, and none ever makes a call of ours fail. */
#include "support/launcher_rig.h"
#include "support/raw_http.h"
#include "support/real_team.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static coord_loop *driven_loop(void)
{
    coord_loop_options o;
    coord_loop *loop = NULL;
    coord_loop_options_init(&o, sizeof o);
    o.own_thread = false;
    assert_int_equal(coord_loop_create(&o, &loop, NULL), COORD_OK);
    return loop;
}

static void run_a_team(coord_loop *loop, const char *executor, int tasks)
{
    static real_team t;
    real_team_start(&t, loop, 2, executor);
    real_team_work(&t, tasks);
    real_team_end(&t);
}

/* 32 and 33, which glibc has its children ignore. */
static const uint64_t OF_THE_C_LIBRARY = (uint64_t)3 << 31;

static uint64_t signals_of(const rig *r, const char *which)
{
    const char *at = strstr(r->book, which);
    assert_non_null(at);
    return strtoull(at + strlen(which), NULL, 16);
}

/* A child that says in which state its signals are. */
static void run_a_child(coord_loop *loop)
{
    static rig r;
    coord_launcher_options o;
    coord_launcher_options_init(&o, sizeof o);
    o.loop = loop;
    rig_open_with(&r, &o);
    (void)start_sh(&r, "child", "grep -E 'Sig(Blk|Ign)' /proc/self/status");
    assert_int_equal(wait_for(&r, "child").code, 0);
    assert_int_equal(signals_of(&r, "SigBlk:"), 0);
    assert_int_equal(signals_of(&r, "SigIgn:") & ~OF_THE_C_LIBRARY, 0);
    rig_close(&r);
}

/* ---- EINTR ---- */

static volatile sig_atomic_t alarms;

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

/* A thousand a second, and what they interrupt is not restarted. */
static void storm(bool on)
{
    static struct sigaction before;
    const struct sigaction count = {.sa_handler = on_alarm};
    const struct itimerval each_ms = {{0, 1000}, {0, 1000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    if (on) {
        assert_int_equal(sigaction(SIGALRM, &count, &before), 0);
    }
    assert_int_equal(setitimer(ITIMER_REAL, on ? &each_ms : &never, NULL), 0);
    if (!on) {
        assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    }
}

static void a_storm_of_signals_interrupts_nothing(void **state)
{
    (void)state;
    storm(true);
    run_a_team(NULL, "\"per_task\"", 30);
    run_a_child(NULL);
    storm(false);
    assert_true(alarms > 0);
}

/* Here the thread that takes the signals makes all the system calls. */
static void nor_where_the_host_drives_the_loop(void **state)
{
    static const char *const EXECUTORS[] = {"\"inline\"", "\"per_task\""};
    (void)state;
    alarms = 0;
    for (size_t i = 0; i < 2; i++) {
        coord_loop *loop = driven_loop();
        storm(true);
        run_a_team(loop, EXECUTORS[i], 30);
        run_a_child(loop);
        storm(false);
        coord_loop_destroy(loop);
    }
    assert_true(alarms > 0);
}

static void files_are_read_and_written_in_a_storm(void **state)
{
    enum { ROUNDS = 20, FLOATS = 1 << 18 };
    char path[512];
    const char *folder = getenv("TMPDIR");
    const int64_t shape[] = {FLOATS};
    coord_error err = {0};
    (void)state;
    (void)snprintf(path, sizeof path, "%s/coord_guest.%ld.safetensors",
                   folder == NULL ? "/tmp" : folder, (long)getpid());
    float *numbers = calloc(FLOATS, sizeof *numbers);
    assert_non_null(numbers);
    const coord_tensor tensor = {"x",   COORD_DTYPE_F32, 1,
                                 shape, numbers,         FLOATS * sizeof *numbers};
    storm(true);
    for (int i = 0; i < ROUNDS; i++) {
        coord_safetensors *file = NULL;
        assert_int_equal(coord_safetensors_write_file(path, &tensor, 1, NULL, 0, &err),
                         COORD_OK);
        assert_int_equal(coord_safetensors_read_file(path, NULL, &file, &err), COORD_OK);
        coord_safetensors_destroy(file);
    }
    storm(false);
    free(numbers);
    assert_int_equal(unlink(path), 0);
}

/* ---- masks ---- */

static void a_host_that_blocks_all_signals_is_served_as_any_other(void **state)
{
    sigset_t all;
    sigset_t before;
    sigset_t after;
    (void)state;
    (void)sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    run_a_team(NULL, "\"per_task\"", 10);
    run_a_child(NULL);
    coord_loop *loop = driven_loop();
    run_a_team(loop, "\"inline\"", 10);
    run_a_child(loop);
    coord_loop_destroy(loop);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, &after), 0);
    for (int i = 1; i < SIGRTMAX; i++) {
        if (sigismember(&after, i) != 1) { /* the kernel's, or the C library's own */
            assert_true(i == SIGKILL || i == SIGSTOP || (i >= 32 && i < SIGRTMIN));
        }
    }
}

/* A host that ignores SIGCHLD has its children reaped by the kernel: their exit codes are
 * gone, but nothing waits for them for ever. */
static void a_host_that_ignores_sigchld_still_hears_of_exits(void **state)
{
    static rig r;
    (void)state;
    void (*before)(int) = signal(SIGCHLD, SIG_IGN);
    assert_true(before != SIG_ERR);
    rig_open(&r);
    (void)start_sh(&r, "child", "echo ready");
    coord_launcher_exit how;
    assert_int_equal(coord_launcher_wait(r.launcher, "child", LONG_MS, &how, NULL),
                     COORD_OK);
    rig_close(&r);
    assert_true(signal(SIGCHLD, before) == SIG_IGN);
}

/* ---- SIGPIPE ---- */

typedef struct slammer {
    int listener;
    uint16_t port;
    atomic_bool done;
    pthread_t thread;
} slammer;

/* Accepts, reads a little, and slams the door in the middle of what is sent. */
static void *slam(void *arg)
{
    slammer *s = arg;
    char bytes[4096];
    for (;;) {
        int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
        if (atomic_load(&s->done)) {
            (void)close(fd);
            return NULL;
        }
        if (fd >= 0) {
            (void)recv(fd, bytes, sizeof bytes, 0);
            raw_reset(fd);
        }
    }
}

static void slammer_start(slammer *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(s->listener >= 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(listen(s->listener, 16), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, slam, s), 0);
}

static void slammer_stop(slammer *s)
{
    atomic_store(&s->done, true);
    (void)close(raw_connect(s->port));
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    (void)close(s->listener);
}

/* SIGPIPE at its default would end this program. */
static void a_peer_that_slams_the_door_raises_no_signal(void **state)
{
    enum { BYTES = 4 << 20 };
    slammer s = {0};
    coord_master *master = NULL;
    coord_master_options mo;
    coord_connection_options co;
    coord_error err = {0};
    (void)state;
    assert_true(signal(SIGPIPE, SIG_DFL) == SIG_DFL);
    slammer_start(&s);
    char *big = malloc(BYTES);
    assert_non_null(big);
    memset(big, 'x', BYTES);
    big[0] = '"';
    big[BYTES - 1] = '"';
    coord_loop *loop = driven_loop();
    coord_master_options_init(&mo, sizeof mo);
    mo.loop = loop;
    mo.request_retry_wait_ms = 1;
    assert_int_equal(coord_master_create(&mo, &master, NULL), COORD_OK);
    coord_connection_options_init(&co, sizeof co);
    co.id = "slammer";
    co.host = "127.0.0.1";
    co.port = s.port;
    for (int i = 0; i < 5; i++) {
        coord_connection *c = NULL;
        assert_int_equal(coord_master_new_connection(master, &co, &c, NULL), COORD_OK);
        assert_int_equal(coord_connection_connect(c, (coord_text){big, BYTES},
                                                  REAL_TEAM_WAIT_MS, &err),
                         COORD_ERR_LOST);
        coord_connection_destroy(c);
    }
    coord_master_destroy(master);
    coord_loop_destroy(loop);
    slammer_stop(&s);
    free(big);
    assert_true(signal(SIGPIPE, SIG_DFL) == SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_storm_of_signals_interrupts_nothing),
        cmocka_unit_test(nor_where_the_host_drives_the_loop),
        cmocka_unit_test(files_are_read_and_written_in_a_storm),
        cmocka_unit_test(a_host_that_blocks_all_signals_is_served_as_any_other),
        cmocka_unit_test(a_host_that_ignores_sigchld_still_hears_of_exits),
        cmocka_unit_test(a_peer_that_slams_the_door_raises_no_signal),
    };
    return cmocka_run_group_tests_name("guest_signals", tests, NULL, NULL);
}
