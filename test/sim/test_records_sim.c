/* Durable records of the simulated world: what a crash takes, and what it leaves. */
#include "base/alloc.h"
#include "coord/testing.h"
#include "support/notes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { DISK_MAX_MS = 4 };

typedef struct rig {
    coord_sim *sim;
    coord_loop *loop;
    notes notes;
    coordi_job job; /* for what has to be done on the loop */
    void (*run)(struct rig *r);
    note note[64];
    size_t count;
} rig;

static coord_loop *new_loop(rig *r)
{
    coord_loop *loop = NULL;
    assert_int_equal(coord_sim_loop(r->sim, "10.0.0.1", &loop, NULL), COORD_OK);
    return loop;
}

static void rig_open(rig *r, uint64_t seed)
{
    coord_sim_options options;
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&options, sizeof options);
    options.seed = seed;
    assert_int_equal(coord_sim_create(&options, &r->sim, NULL), COORD_OK);
    r->loop = new_loop(r);
}

static void rig_close(rig *r)
{
    notes_close(&r->notes);
    coord_loop_destroy(r->loop);
    coord_sim_destroy(r->sim);
}

static void open_notes(rig *r)
{
    coord_error err = {0};
    if (notes_open(&r->notes, r->loop, "/run/notes", &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
}

static void run_job(coordi_job *job)
{
    rig *r = COORDI_ITEM(job, rig, job);
    r->run(r);
}

static void on_loop(rig *r, void (*run)(rig *r))
{
    r->run = run;
    r->job.run = run_job;
    coordi_post(r->loop, &r->job);
    assert_int_equal(coord_sim_run_for(r->sim, 0, NULL), COORD_OK);
}

static void put_three(rig *r)
{
    for (int i = 0; i < 3; i++, r->count++) {
        notes_put(&r->notes, &r->note[r->count], (int64_t)r->count, "text");
    }
}

static void run_for(rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

/* As SIGKILL and a new start would: the next loop of the machine opens the file. */
static void crash_and_restart(rig *r, notes *corpse, coord_loop **corpse_loop)
{
    coord_sim_crash(r->sim, r->loop);
    *corpse = r->notes;
    *corpse_loop = r->loop;
    r->loop = new_loop(r);
    open_notes(r);
}

/* ---- durable, and not yet ---- */

static void what_is_told_is_there_after_a_crash(void **state)
{
    rig r;
    notes corpse;
    coord_loop *corpse_loop;
    (void)state;
    rig_open(&r, 1);
    open_notes(&r);
    on_loop(&r, put_three);
    run_for(&r, DISK_MAX_MS);
    assert_int_equal(r.notes.told, 3);
    assert_int_equal(r.notes.failed, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r.note[i].order, i + 1);
    }
    crash_and_restart(&r, &corpse, &corpse_loop);
    assert_int_equal(notes_count(&r.notes), 3);
    notes_close(&corpse);
    coord_loop_destroy(corpse_loop);
    rig_close(&r);
}

static void put_then_crash(rig *r)
{
    put_three(r);
    coord_sim_crash(r->sim, r->loop);
}

/* What was told before stays, what was not is gone, and told as lost to the corpse. */
static void a_crash_loses_what_was_not_durable_yet(void **state)
{
    rig r;
    notes corpse;
    coord_loop *corpse_loop;
    (void)state;
    rig_open(&r, 2);
    open_notes(&r);
    on_loop(&r, put_three);
    run_for(&r, DISK_MAX_MS);
    assert_int_equal(r.notes.told, 3);
    on_loop(&r, put_then_crash);
    run_for(&r, 1000); /* nothing more is applied */
    assert_int_equal(r.notes.told, 3);
    corpse = r.notes;
    corpse_loop = r.loop;
    for (int i = 3; i < 6; i++) {
        r.note[i].in = &corpse;
    }
    r.loop = new_loop(&r);
    open_notes(&r);
    assert_int_equal(notes_count(&r.notes), 3);

    notes_close(&corpse);
    run_for(&r, 0);
    assert_int_equal(corpse.told, 6);
    assert_int_equal(corpse.failed, 3);
    assert_int_equal(r.note[5].error.status, COORD_ERR_LOST);
    assert_int_equal(notes_count(&r.notes), 3);
    coord_loop_destroy(corpse_loop);
    rig_close(&r);
}

/* For every seed, and every moment to crash at: what was told is there. What is there was
 * told, or was just about to be. */
static void a_crash_at_any_moment_loses_exactly_the_untold(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (int64_t at = 0; at <= 2 * DISK_MAX_MS; at++) {
            rig r;
            notes corpse;
            coord_loop *corpse_loop;
            rig_open(&r, seed);
            open_notes(&r);
            on_loop(&r, put_three);
            run_for(&r, at / 2);
            on_loop(&r, put_three);
            run_for(&r, at - at / 2);
            const int told = r.notes.told;
            crash_and_restart(&r, &corpse, &corpse_loop);
            for (int i = 0; i < 6; i++) {
                r.note[i].in = &corpse;
            }
            assert_int_equal(notes_count(&r.notes), told);
            notes_close(&corpse);
            run_for(&r, 0);
            assert_int_equal(corpse.told, 6);
            assert_int_equal(corpse.failed, 6 - told);
            coord_loop_destroy(corpse_loop);
            rig_close(&r);
        }
    }
}

/* Sometime, and not always at once. */
static void a_write_takes_some_time(void **state)
{
    int64_t least = 100;
    int64_t most = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        rig r;
        rig_open(&r, seed);
        open_notes(&r);
        const int64_t from = coord_sim_now_ms(r.sim);
        on_loop(&r, put_three);
        assert_int_equal(coord_sim_run_until_idle(r.sim, 1000, NULL), COORD_OK);
        assert_int_equal(r.notes.told, 3);
        const int64_t took = coord_sim_now_ms(r.sim) - from;
        least = took < least ? took : least;
        most = took > most ? took : most;
        rig_close(&r);
    }
    assert_int_equal(least, 0);
    assert_int_equal(most, DISK_MAX_MS);
}

static void put_mixed(rig *r)
{
    notes_put(&r->notes, &r->note[0], 1, "good");
    notes_put(&r->notes, &r->note[1], 1, "again");
    notes_put(&r->notes, &r->note[2], 2, "bad");
    notes_put(&r->notes, &r->note[3], 3, "good");
    notes_write(&r->notes, &r->note[4], NOTES_STATEMENTS, 0);
}

static void a_statement_that_fails_fails_alone(void **state)
{
    static const coord_status WANTED[] = {COORD_OK, COORD_ERR_EXISTS, COORD_ERR_ARG,
                                          COORD_OK, COORD_ERR_ARG};
    rig r;
    (void)state;
    rig_open(&r, 3);
    open_notes(&r);
    on_loop(&r, put_mixed);
    run_for(&r, DISK_MAX_MS);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(r.note[i].error.status, WANTED[i]);
        assert_int_equal(r.note[i].order, i + 1);
    }
    rig_close(&r);
}

/* ---- faults ---- */

static void a_full_disk_fails_the_writes_and_later_ones_succeed(void **state)
{
    rig r;
    coord_error err;
    notes other;
    (void)state;
    rig_open(&r, 4);
    open_notes(&r);
    coord_sim_set_disk_full(r.sim, true);
    on_loop(&r, put_three);
    run_for(&r, DISK_MAX_MS);
    assert_int_equal(r.notes.failed, 3);
    assert_int_equal(r.note[0].error.status, COORD_ERR_IO);
    assert_int_equal(r.note[0].error.os_errno, ENOSPC);
    assert_int_equal(notes_open(&other, r.loop, "/run/new", &err), COORD_ERR_IO);
    assert_int_equal(err.os_errno, ENOSPC);
    coord_sim_set_disk_full(r.sim, false);
    on_loop(&r, put_three);
    run_for(&r, DISK_MAX_MS);
    assert_int_equal(r.notes.told, 6);
    assert_int_equal(r.notes.failed, 3);
    rig_close(&r);
}

static void a_paused_process_is_told_later(void **state)
{
    rig r;
    notes other;
    coord_error err;
    (void)state;
    rig_open(&r, 5);
    open_notes(&r);
    on_loop(&r, put_three);
    const int before = r.notes.told;
    coord_sim_pause(r.sim, r.loop, true);
    run_for(&r, 1000);
    assert_int_equal(r.notes.told, before);
    coord_loop *loop = new_loop(&r);
    assert_int_equal(notes_open(&other, loop, "/run/notes", &err), COORD_ERR_BUSY);
    coord_sim_pause(r.sim, r.loop, false);
    run_for(&r, 0);
    assert_int_equal(r.notes.told, 3);
    assert_int_equal(r.notes.failed, 0);
    coord_loop_destroy(loop);
    rig_close(&r);
}

/* ---- whose it is ---- */

static void a_living_process_has_it_alone(void **state)
{
    rig r;
    notes other;
    coord_error err;
    (void)state;
    rig_open(&r, 6);
    open_notes(&r);
    coord_loop *loop = new_loop(&r);
    assert_int_equal(notes_open(&other, loop, "/run/notes", &err), COORD_ERR_BUSY);
    assert_non_null(strstr(err.text, "'/run/notes' is in use"));
    assert_int_equal(notes_open(&other, r.loop, "/run/notes", &err), COORD_ERR_BUSY);
    assert_int_equal(notes_open(&other, loop, "/run/others", &err), COORD_OK);
    notes_close(&other);
    coord_sim_crash(r.sim, r.loop);
    assert_int_equal(notes_open(&other, loop, "/run/notes", &err), COORD_OK);
    notes_close(&other);
    coord_loop_destroy(loop);
    rig_close(&r);
}

static void put_and_close(rig *r)
{
    put_three(r);
    notes_close(&r->notes);
    r->notes.records = NULL;
}

static void reopen(rig *r)
{
    notes next;
    put_and_close(r);
    if (notes_open(&next, r->loop, "/run/notes", NULL) == COORD_OK) {
        r->note[63].told = (int)notes_count(&next);
        notes_close(&next);
    }
}

static void what_is_closed_is_written_and_can_be_opened_at_once(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 7);
    open_notes(&r);
    on_loop(&r, put_and_close);
    run_for(&r, 0);
    assert_int_equal(r.notes.told, 3);
    assert_int_equal(r.notes.failed, 0);
    notes_close(&r.notes); /* takes NULL */
    open_notes(&r);
    assert_int_equal(notes_count(&r.notes), 3);
    on_loop(&r, reopen);
    assert_int_equal(r.note[63].told, 6);
    assert_int_equal(r.notes.told, 3);
    rig_close(&r);
}

static void another_kind_of_file_is_refused(void **state)
{
    rig r;
    notes other;
    coord_error err;
    coordi_records *records = NULL;
    (void)state;
    rig_open(&r, 8);
    open_notes(&r);
    notes_close(&r.notes);
    r.notes.records = NULL;
    coordi_records_spec spec = notes_spec("/run/notes");
    spec.version++;
    assert_int_equal(coordi_env_sim.records_open(r.loop, &spec, &records, &err),
                     COORD_ERR_FORMAT);
    spec.application++;
    assert_int_equal(coordi_env_sim.records_open(r.loop, &spec, &records, &err),
                     COORD_ERR_FORMAT);
    spec.path = "";
    assert_int_equal(coordi_env_sim.records_open(r.loop, &spec, &records, &err),
                     COORD_ERR_ARG);
    assert_int_equal(coord_sim_put_file(r.sim, "/run/text", coord_text_of("text"), NULL),
                     COORD_OK);
    assert_int_equal(notes_open(&other, r.loop, "/run/text", &err), COORD_ERR_FORMAT);
    open_notes(&r);
    rig_close(&r);
}

static void reading_ends_with_the_first_write(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 9);
    open_notes(&r);
    on_loop(&r, put_three);
    assert_int_equal(notes_count(&r.notes), -1);
    rig_close(&r);
}

/* ---- the end of the world ---- */

/* Nobody moves the clock any more: what was handed over is told all the same. */
static void in_an_abandoned_world_nothing_waits(void **state)
{
    rig r;
    (void)state;
    for (uint64_t seed = 1; seed < 10; seed++) {
        rig_open(&r, seed);
        open_notes(&r);
        on_loop(&r, put_three);
        r.run = put_three; /* one batch waits, another is to come */
        coordi_post(r.loop, &r.job);
        coord_sim_destroy(r.sim);
        assert_int_equal(r.notes.told, 6);
        assert_int_equal(r.notes.failed, 0);
        notes_close(&r.notes);
        coord_loop_destroy(r.loop);
    }
}

static void a_corpse_in_an_abandoned_world_is_told(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 3);
    open_notes(&r);
    on_loop(&r, put_then_crash);
    coord_sim_destroy(r.sim);
    assert_int_equal(r.notes.told, 0);
    notes_close(&r.notes);
    assert_int_equal(r.notes.failed, 3);
    coord_loop_destroy(r.loop);
}

/* ---- repeated ---- */

static uint64_t hash_of(uint64_t seed, const char *text)
{
    rig r;
    rig_open(&r, seed);
    open_notes(&r);
    on_loop(&r, put_three);
    run_for(&r, 2);
    notes_put(&r.notes, &r.note[r.count++], 100, text);
    run_for(&r, 10);
    coord_sim_crash(r.sim, r.loop);
    notes corpse = r.notes;
    coord_loop *corpse_loop = r.loop;
    r.loop = new_loop(&r);
    open_notes(&r);
    on_loop(&r, put_three);
    run_for(&r, 10);
    const uint64_t hash = coord_sim_trace_hash(r.sim);
    notes_close(&corpse);
    coord_loop_destroy(corpse_loop);
    rig_close(&r);
    return hash;
}

static void equal_seeds_have_equal_traces(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 10; seed++) {
        assert_true(hash_of(seed, "a") == hash_of(seed, "a"));
        assert_true(hash_of(seed, "a") != hash_of(seed, "b"));
        assert_true(hash_of(seed, "a") != hash_of(seed + 1, "a"));
    }
}

static bool is_up(void *arg)
{
    int *left = arg;
    return (*left)-- == 0;
}

static void every_allocation_of_open_may_fail(void **state)
{
    rig r;
    notes in;
    coord_error err;
    int fails = 0;
    coord_status rc = COORD_ERR_NOMEM;
    (void)state;
    rig_open(&r, 1);
    open_notes(&r);
    for (; rc != COORD_OK; fails++) {
        int left = fails;
        char path[32];
        (void)snprintf(path, sizeof path, "/run/%d", fails); /* a new one each time */
        coordi_alloc_set_fault(is_up, &left);
        rc = notes_open(&in, r.loop, path, &err);
        if (rc == COORD_OK) {
            rc = notes_count(&in) == 0 ? COORD_OK : COORD_ERR_NOMEM;
            notes_close(&in);
        }
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(rc == COORD_OK || rc == COORD_ERR_NOMEM);
        assert_true(fails < 50);
    }
    assert_true(fails > 5);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_there_after_a_crash),
        cmocka_unit_test(a_crash_loses_what_was_not_durable_yet),
        cmocka_unit_test(a_crash_at_any_moment_loses_exactly_the_untold),
        cmocka_unit_test(a_write_takes_some_time),
        cmocka_unit_test(a_statement_that_fails_fails_alone),
        cmocka_unit_test(a_full_disk_fails_the_writes_and_later_ones_succeed),
        cmocka_unit_test(a_paused_process_is_told_later),
        cmocka_unit_test(a_living_process_has_it_alone),
        cmocka_unit_test(what_is_closed_is_written_and_can_be_opened_at_once),
        cmocka_unit_test(another_kind_of_file_is_refused),
        cmocka_unit_test(reading_ends_with_the_first_write),
        cmocka_unit_test(in_an_abandoned_world_nothing_waits),
        cmocka_unit_test(a_corpse_in_an_abandoned_world_is_told),
        cmocka_unit_test(equal_seeds_have_equal_traces),
        cmocka_unit_test(every_allocation_of_open_may_fail),
    };
    return cmocka_run_group_tests_name("records_sim", tests, NULL, NULL);
}
