/* Over real sockets nothing grows either: memory, threads and descriptors after many
 * tasks are what they were after the first few. */
#include "support/real_team.h"
#include "support/sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    TASKS = SANITIZED(50000, 2000, 1000),
    WATCHED = SANITIZED(true, false, false) /* their memory is not ours alone */
};
enum { BATCH = 1000, WORKERS = 4 };

/* Kilobytes that the process has in memory, of its own. */
static long resident_kb(void)
{
    char line[128];
    long kb = -1;
    FILE *file = fopen("/proc/self/status", "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "RssAnon:", strlen("RssAnon:")) == 0) {
            kb = strtol(line + strlen("RssAnon:"), NULL, 10);
        }
    }
    (void)fclose(file);
    assert_true(kb > 0);
    return kb;
}

static void fifty_thousand_tasks_leave_everything_as_it_was(void **state)
{
    static real_team t;
    coord_loop *loop = NULL;
    (void)state;
    assert_int_equal(coord_loop_create(NULL, &loop, NULL), COORD_OK);
    real_team_start(&t, loop, WORKERS, "\"inline\"");
    for (int i = 0; i < TASKS / 10; i += BATCH) {
        real_team_work(&t, BATCH);
    }
    long kb = resident_kb();
    int threads = count_threads();
    /* A beat beside a result takes one connection more, which is kept. */
    int descriptors = open_descriptors() + 8 * WORKERS;
    for (int i = TASKS / 10; i < TASKS; i += BATCH) {
        real_team_work(&t, BATCH);
        assert_in_range(count_threads(), 1, threads);
        assert_in_range(open_descriptors(), 1, descriptors);
    }
    if (WATCHED) {
        assert_in_range(resident_kb(), 1, kb + 1024);
    }
    real_team_end(&t);
    coord_loop_destroy(loop);
    assert_true(threads_are_gone());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fifty_thousand_tasks_leave_everything_as_it_was),
    };
    return cmocka_run_group_tests_name("bounds over sockets", tests, NULL, NULL);
}
