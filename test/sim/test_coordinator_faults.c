/* Every public call of comm_coordinator.h, while a task is in every state, under every
 * fault of its worker: the call returns by its deadline with an answer that it may give,
 * each task that was accepted has one end in time, and the worker comes back.
 *
 * A cell that fails is named as "role state / fault / call"; CELL="..." runs it alone,
 * with TRACE=1 printing all that happens. */
#include "support/sanitized.h"
#include "support/scene.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static scene s;
static char cell[128]; /* the one under way; "" between them */

enum { DISK_MS = 5 }; /* the ledger's */

#define IS(status) (UINT64_C(1) << COORD_ERR_##status)
static const uint64_t OK = UINT64_C(1) << COORD_OK;

/* ---- the calls ---- */

static coord_status send(const char *id)
{
    coord_text task = cluster_task(id);
    coord_status rc = s.at->role == COORD_COLLECTOR
                          ? comm_coordinator_send_collector_task(s.k.c, task, NULL, NULL)
                          : comm_coordinator_send_learner_task(s.k.c, task, NULL, NULL);
    s.accepted += rc == COORD_OK;
    return rc;
}

static coord_status call_nothing(void)
{
    return COORD_OK;
}

static coord_status call_send(void)
{
    return send("new");
}

/* Accepted only if the first one has ended. */
static coord_status call_send_again(void)
{
    bool there = cluster_task_state(&s.k, "t")[0] != '\0';
    coord_status rc = send("t");
    assert_true(!there || rc != COORD_OK);
    return rc;
}

static coord_status call_post(void)
{
    coord_text task = cluster_task("new");
    coord_status rc = s.at->role == COORD_COLLECTOR
                          ? comm_coordinator_post_collector_task(s.k.c, task, NULL)
                          : comm_coordinator_post_learner_task(s.k.c, task, NULL);
    s.accepted += rc == COORD_OK;
    return rc;
}

static coord_status call_cancel(void)
{
    return comm_coordinator_cancel_task(s.k.c, "t", NULL);
}

static coord_status call_cancel_unknown(void)
{
    return comm_coordinator_cancel_task(s.k.c, "unknown", NULL);
}

static coord_status call_data_ready(void)
{
    return comm_coordinator_data_ready(s.k.c, "b", NULL);
}

static coord_status call_wait(void)
{
    return comm_coordinator_wait(s.k.c, 5000, NULL);
}

static coord_status call_wait_no_time(void)
{
    return comm_coordinator_wait(s.k.c, 0, NULL);
}

static coord_status call_wait_task(void)
{
    return comm_coordinator_wait_task(s.k.c, "t", 5000, NULL);
}

static coord_status call_wait_for_unknown(void)
{
    return comm_coordinator_wait_task(s.k.c, "unknown", 5000, NULL);
}

static coord_status call_status(void)
{
    char *text = NULL;
    coord_status rc = comm_coordinator_status(s.k.c, &text, NULL);
    coord_free(text);
    return rc;
}

static coord_status ask_why(const char *id)
{
    char *text = NULL;
    coord_status rc = comm_coordinator_why(s.k.c, id, &text, NULL);
    coord_free(text);
    return rc;
}

static coord_status call_why(void)
{
    return ask_why("t");
}

static coord_status call_why_of_worker(void)
{
    return ask_why(s.worker);
}

static coord_status call_why_of_unknown(void)
{
    return ask_why("unknown");
}

static coord_status call_get_delivery(void)
{
    comm_coordinator_delivery d = {.size = sizeof d};
    return comm_coordinator_get_delivery(s.k.c, &d, NULL);
}

static coord_status call_start(void)
{
    return comm_coordinator_start(s.k.c, NULL);
}

static coord_status call_drain(void)
{
    return comm_coordinator_drain(s.k.c, 0, NULL);
}

static coord_status call_drain_and_wait(void)
{
    return comm_coordinator_drain(s.k.c, 5000, NULL);
}

static coord_status call_close(void)
{
    return cluster_close(&s.k, NULL);
}

static coord_status call_destroy(void)
{
    comm_coordinator_destroy(s.k.c);
    s.k.c = NULL;
    s.k.closed = true; /* no callback begins from here on */
    return COORD_OK;
}

static const struct {
    const char *name;
    coord_status (*call)(void);
    int64_t limit_ms;
    uint64_t answers;
} CALLS[] = {
    {"nothing", call_nothing, 0, 0},
    {"send", call_send, SCENE_SEND_MS,
     IS(TIMEOUT) | IS(LOST) | IS(REFUSED) | IS(TASK) | IS(PROTOCOL)},
    {"send again", call_send_again, SCENE_SEND_MS,
     IS(EXISTS) | IS(TIMEOUT) | IS(LOST) | IS(REFUSED) | IS(TASK) | IS(PROTOCOL)},
    {"post", call_post, 0, 0},
    {"cancel", call_cancel, 0, IS(NOT_FOUND)},
    {"cancel unknown", call_cancel_unknown, 0, IS(NOT_FOUND)},
    {"data_ready", call_data_ready, 0, 0},
    {"wait", call_wait, 5000, IS(TIMEOUT)},
    {"wait no time", call_wait_no_time, 0, IS(TIMEOUT)},
    {"wait_task", call_wait_task, 5000, IS(TIMEOUT)},
    {"wait for unknown", call_wait_for_unknown, 0, 0},
    {"status", call_status, 0, 0},
    {"why", call_why, 0, IS(NOT_FOUND)},
    {"why of worker", call_why_of_worker, 0, IS(NOT_FOUND)},
    {"why of unknown", call_why_of_unknown, 0, IS(NOT_FOUND)},
    {"get_delivery", call_get_delivery, 0, IS(STATE)},
    {"start", call_start, 0, IS(STATE)},
    {"drain", call_drain, 0, IS(TIMEOUT)},
    {"drain and wait", call_drain_and_wait, 5000, IS(TIMEOUT)},
    {"close", call_close, SCENE_CLOSE_MS, 0},
    {"destroy", call_destroy, 0, 0},
};
enum { CALL_COUNT = sizeof CALLS / sizeof CALLS[0] };

/* ---- one cell ---- */

static void make_call(size_t which)
{
    int64_t began_ms = coord_sim_now_ms(s.k.sim);
    coord_status rc = CALLS[which].call();
    int64_t took_ms = coord_sim_now_ms(s.k.sim) - began_ms;
    int64_t limit_ms = CALLS[which].limit_ms + (s.ledger ? DISK_MS : 0);
    if (took_ms > limit_ms) {
        fail_msg("it took %lld ms, not at most %lld", (long long)took_ms,
                 (long long)limit_ms);
    }
    if (((OK | CALLS[which].answers) & (UINT64_C(1) << rc)) == 0) {
        fail_msg("it answered \"%s\"", coord_status_str(rc));
    }
}

/* After close nothing is left to happen, after destroy not even that must have; and what
 * a ledger keeps is not over. */
static void expect_closed(void)
{
    int ends = cluster_ends(&s.k, NULL);
    assert_true(s.k.c == NULL || s.ledger ? ends <= s.accepted : ends == s.accepted);
    cluster_run(&s.k, 30000);
    assert_int_equal(cluster_ends(&s.k, NULL), ends);
}

static void expect_end(int64_t limit_ms)
{
    if (!scene_await_end(&s, limit_ms)) {
        fail_msg("no end in %lld ms, the task is %s", (long long)limit_ms,
                 cluster_task_state(&s.k, "t"));
    }
}

/* Nothing but the call can be to blame. */
static void expect_canceled(void)
{
    char status[16];
    (void)snprintf(status, sizeof status, "%d ", (int)COORD_ERR_CANCELED);
    expect_end(2000);
    if (cluster_count(&s.k, "fail", "t") == 1) {
        assert_memory_equal(cluster_last(&s.k, "fail", "t")->detail, status,
                            strlen(status));
    }
}

static void expect_goodbye(void)
{
    const cluster_worker *w = cluster_find(&s.k, s.worker);
    assert_false(coord_slave_is_connected(w->collector != NULL
                                              ? coord_collector_slave(w->collector)
                                              : coord_learner_slave(w->learner)));
}

/* `late_ms`: how long after the fault the call is made. */
static void run_cell(const scene_fault *fault, size_t which, int64_t late_ms)
{
    fault->strike(&s);
    int64_t struck_ms = coord_sim_now_ms(s.k.sim);
    cluster_run(&s.k, late_ms);
    make_call(which);
    bool is_well = strcmp(fault->name, "nothing") == 0;
    if (is_well && CALLS[which].call == call_cancel) {
        expect_canceled();
    }
    if (s.k.closed) {
        expect_closed();
        if (is_well) {
            expect_goodbye();
        }
        scene_mend(&s);
        scene_done(&s);
        return;
    }
    cluster_check(&s.k);
    if (fault->ends_within_ms > 0) {
        s.k.hold_data = false;
        expect_end(fault->ends_within_ms + struck_ms - coord_sim_now_ms(s.k.sim));
        cluster_check(&s.k);
    }
    scene_mend(&s);
    expect_end(90000);
    scene_expect_recovery(&s, CALLS[which].call == call_drain ||
                                  CALLS[which].call == call_drain_and_wait);
    scene_done(&s);
}

/* Sanitizers take their time: they see every so-manieth cell. */
enum { STRIDE = SANITIZED(1, 13, 23) }; /* none of them divides the count of calls */

/* Makes this cell the one under way; false: it is not wanted. */
static bool enter(const char *where, const char *state, const scene_fault *fault,
                  int64_t late_ms, size_t which)
{
    char name[sizeof cell];
    static unsigned long count;
    const char *only = getenv("CELL");
    (void)snprintf(name, sizeof name, "%s %s / %s%s / %s", where, state, fault->name,
                   late_ms > 0 ? " before" : "", CALLS[which].name);
    if (only != NULL ? strcmp(only, name) != 0 : count++ % STRIDE != 0) {
        return false;
    }
    memcpy(cell, name, sizeof cell);
    return true;
}

/* A row of the matrix: one fault, at every spot, before every call. */
typedef struct row {
    const scene_fault *fault;
    int64_t late_ms;
    bool ledger;
    char name[80];
} row;

static void run_spots(const row *r, const scene_spot *spots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char where[32];
        (void)snprintf(where, sizeof where, "%s%s", r->ledger ? "ledger " : "",
                       coord_role_str(spots[i].role));
        for (size_t which = 0; which < CALL_COUNT; which++) {
            if (enter(where, spots[i].state, r->fault, r->late_ms, which)) {
                scene_reach(&s, &spots[i], r->ledger);
                run_cell(r->fault, which, r->late_ms);
                cell[0] = '\0';
            }
        }
    }
}

static void run_row(void **state)
{
    const row *r = *state;
    run_spots(r, SCENE_SPOTS, SCENE_SPOT_COUNT);
    if (r->ledger) {
        run_spots(r, SCENE_LEDGER_SPOTS, SCENE_LEDGER_SPOT_COUNT);
    }
}

/* ---- before and after ---- */

enum { START_MS = 12000 }; /* max_retry_second and 2 s of grace */

static coord_status started;
static coord_status closed;

static void start_aside(void *user)
{
    started = comm_coordinator_start(((scene *)user)->k.c, NULL);
}

static void close_aside(void *user)
{
    closed = cluster_close(&((scene *)user)->k, NULL);
}

typedef struct phase {
    const char *name;
    void (*aside)(void *user); /* what another thread does meanwhile; NULL: nothing */
    bool is_started;
    bool is_closed;
} phase;

static const phase PHASES[] = {
    {"created", NULL, false, false},
    {"starting", start_aside, false, false},
    {"closing", close_aside, true, false},
    {"closed", NULL, true, true},
};

/* A task whose callbacks hold up close for some seconds, if the phase has one. */
static void reach_phase(const phase *at)
{
    scene_create(&s);
    if (at->is_started) {
        assert_int_equal(comm_coordinator_start(s.k.c, NULL), COORD_OK);
        cluster_post(&s.k, COORD_COLLECTOR, "t");
        s.accepted++;
        s.k.callback_ms = at->is_closed ? 0 : 4000;
        assert_true(cluster_await(&s.k, "start", "t", 1, 10000));
    }
    if (at->is_closed) {
        assert_int_equal(cluster_close(&s.k, NULL), COORD_OK);
    }
}

/* A call that is not possible then is told so at once; start may take its time. */
static void call_in_phase(size_t which)
{
    bool is_start = CALLS[which].call == call_start;
    int64_t limit_ms = is_start ? START_MS : CALLS[which].limit_ms;
    int64_t began_ms = coord_sim_now_ms(s.k.sim);
    coord_status rc = CALLS[which].call();
    assert_in_range(coord_sim_now_ms(s.k.sim) - began_ms, 0, limit_ms);
    uint64_t answers = OK | CALLS[which].answers | IS(STATE) | IS(CLOSED) | IS(TIMEOUT);
    if ((answers & (UINT64_C(1) << rc)) == 0) {
        fail_msg("it answered \"%s\"", coord_status_str(rc));
    }
}

static void run_in_phase(const phase *at, const scene_fault *fault, size_t which)
{
    coord_sim_thread *aside = NULL;
    if (at->aside != NULL && CALLS[which].call == call_destroy) {
        return; /* nobody else may be in a call then */
    }
    reach_phase(at);
    fault->strike(&s);
    if (at->aside != NULL) {
        assert_int_equal(coord_sim_thread_start(s.k.sim, at->aside, &s, &aside, NULL),
                         COORD_OK);
        cluster_run(&s.k, 500);
    }
    call_in_phase(which);
    if (aside != NULL) {
        assert_int_equal(coord_sim_thread_join(aside, START_MS, NULL), COORD_OK);
        assert_true(at->is_started
                        ? closed == COORD_OK
                        : started == COORD_OK || started == COORD_ERR_TIMEOUT ||
                              started == COORD_ERR_CLOSED);
    }
    scene_mend(&s);
    if (s.k.c != NULL) {
        assert_int_equal(cluster_close(&s.k, NULL), COORD_OK);
    }
    expect_closed();
    scene_done(&s);
}

static void every_call_in_every_phase_returns_in_time(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof PHASES / sizeof PHASES[0]; p++) {
        for (size_t f = 0; f < SCENE_FAULT_COUNT; f++) {
            for (size_t which = 0; which < CALL_COUNT; which++) {
                if (enter("coordinator", PHASES[p].name, &SCENE_FAULTS[f], 0, which)) {
                    run_in_phase(&PHASES[p], &SCENE_FAULTS[f], which);
                    cell[0] = '\0';
                }
            }
        }
    }
}

static int name_the_cell(void **state)
{
    (void)state;
    if (cell[0] != '\0') {
        print_error("again: CELL=\"%s\" TRACE=1 %s\n", cell, program_invocation_name);
    }
    return 0;
}

enum { ROWS_MAX = 64, LATE_MS = 5000 };

static row rows[ROWS_MAX];
static struct CMUnitTest tests[ROWS_MAX + 1];
static size_t row_count;

static void add_row(const scene_fault *fault, int64_t late_ms, bool ledger)
{
    row *r = &rows[row_count];
    *r = (row){.fault = fault, .late_ms = late_ms, .ledger = ledger};
    (void)snprintf(r->name, sizeof r->name, "%s%s%s", fault->name,
                   late_ms > 0 ? ", a while before" : "",
                   ledger ? ", with a ledger" : "");
    tests[row_count++] = (struct CMUnitTest){r->name, run_row, NULL, name_the_cell, r};
}

int main(void)
{
    for (size_t i = 0; i < SCENE_FAULT_COUNT; i++) {
        add_row(&SCENE_FAULTS[i], 0, false);
        add_row(&SCENE_FAULTS[i], LATE_MS, false); /* not noticed yet, or only just */
        if (i % 2 == 0) {
            add_row(&SCENE_FAULTS[i], 0, true);
        }
    }
    tests[row_count] = (struct CMUnitTest)cmocka_unit_test_teardown(
        every_call_in_every_phase_returns_in_time, name_the_cell);
    return _cmocka_run_group_tests("coordinator faults", tests, row_count + 1, NULL,
                                   NULL);
}
