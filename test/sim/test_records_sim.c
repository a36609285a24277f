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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_there_after_a_crash),
    };
    return cmocka_run_group_tests_name("records_sim", tests, NULL, NULL);
}
