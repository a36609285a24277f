/* Durable records of the real world. */
#include "base/alloc.h"
#include "support/env_rig.h"
#include "support/notes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NOTES_MAX = 20000 };

typedef struct rig {
    env_rig env;
    notes notes;
    note note[NOTES_MAX];
    int count; /* to be put */
} rig;

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void open_notes(rig *r, const char *name)
{
    coord_error err = {0};
    if (notes_open(&r->notes, r->env.loop, path_of(name), &err) != COORD_OK) {
        fail_msg("%s: %s", err.text, err.cause);
    }
}

static void on_told(note *which)
{
    rig *r = which->in->arg;
    if (which->in->told == r->count) {
        env_rig_wake(&r->env);
    }
}

static void put_all(void *arg)
{
    rig *r = arg;
    r->notes.on_told = on_told;
    r->notes.arg = r;
    for (int i = 0; i < r->count; i++) {
        notes_put(&r->notes, &r->note[i], i, "text");
    }
}

static void what_is_written_is_read_back_by_the_next(void **state)
{
    rig *r = calloc(1, sizeof *r);
    (void)state;
    strcpy(folder, "/tmp/coord-records-XXXXXX");
    assert_non_null(mkdtemp(folder));
    env_rig_open(&r->env, NULL, NULL);
    open_notes(r, "a");
    assert_int_equal(notes_count(&r->notes), 0);
    r->count = NOTES_MAX;
    env_rig_do(&r->env, put_all, r);
    assert_true(env_rig_await(&r->env));
    assert_int_equal(r->notes.failed, 0);
    notes_close(&r->notes);
    open_notes(r, "a");
    assert_int_equal(notes_count(&r->notes), NOTES_MAX);
    notes_close(&r->notes);
    env_rig_close(&r->env);
    free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back_by_the_next),
    };
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
