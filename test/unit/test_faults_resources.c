/* The faults that the reference's NaiveResourceManager has, one test each: test/FAULTS
 * says what each of them was. */
#include "coord/resource_manager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const coord_text TASK = {"{\"task_id\": \"t\"}", 16};

static void update(coord_resource_manager *m, const char *id, const char *resource)
{
    assert_int_equal(coord_resource_manager_update(m, COORD_COLLECTOR, id,
                                                   coord_text_of(resource), NULL),
                     COORD_OK);
}

/* NULL: none. */
static const char *assign(coord_resource_manager *m)
{
    const char *id = NULL;
    coord_status rc = coord_resource_manager_assign(m, COORD_COLLECTOR, TASK, &id, NULL);
    assert_true(rc == COORD_OK || rc == COORD_AGAIN);
    return id;
}

static void expect(const coord_resource_manager *m, size_t free_workers, size_t assigned)
{
    size_t count[2];
    coord_resource_manager_count(m, COORD_COLLECTOR, &count[0], &count[1]);
    assert_int_equal(count[0], free_workers);
    assert_int_equal(count[1], assigned);
}

static coord_resource_manager *create(const coord_resource_policy *policy)
{
    coord_resource_manager *m = NULL;
    assert_int_equal(coord_resource_manager_create(policy, 1, &m, NULL), COORD_OK);
    return m;
}

static void f_r1_have_assigned_is_true_of_those_that_have_a_task(void **state)
{
    coord_resource_manager *m = create(NULL);
    (void)state;
    update(m, "a", "{}");
    assert_false(coord_resource_manager_have_assigned(m, COORD_COLLECTOR, "a"));
    assert_string_equal(assign(m), "a");
    assert_true(coord_resource_manager_have_assigned(m, COORD_COLLECTOR, "a"));
    update(m, "a", "{}");
    assert_false(coord_resource_manager_have_assigned(m, COORD_COLLECTOR, "a"));
    assert_false(coord_resource_manager_have_assigned(m, COORD_COLLECTOR, "b"));
    coord_resource_manager_destroy(m);
}

static void f_r2_a_deleted_worker_leaves_whichever_pool_it_is_in(void **state)
{
    coord_resource_manager *m = create(NULL);
    (void)state;
    update(m, "a", "{}");
    assert_true(coord_resource_manager_delete(m, COORD_COLLECTOR, "a"));
    assert_null(assign(m));
    expect(m, 0, 0);
    update(m, "b", "{}");
    assert_string_equal(assign(m), "b");
    assert_true(coord_resource_manager_delete(m, COORD_COLLECTOR, "b"));
    assert_false(coord_resource_manager_have_assigned(m, COORD_COLLECTOR, "b"));
    expect(m, 0, 0);
    assert_null(assign(m));
    assert_false(coord_resource_manager_delete(m, COORD_COLLECTOR, "b"));
    coord_resource_manager_destroy(m);
}

/* What the reference's race led to: a worker that is given out twice, or lost. Here all
 * calls come from one thread, the loop's; test/sim/test_faults_coordinator.c has two
 * threads that send. */
static void f_r3_no_worker_is_given_out_twice_or_lost(void **state)
{
    enum { WORKERS = 8, STEPS = 4000 };
    coord_resource_manager *m = create(NULL);
    bool busy[WORKERS] = {false};
    size_t busy_count = 0;
    unsigned seed = 1;
    (void)state;
    for (int i = 0; i < WORKERS; i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "%d", i);
        update(m, id, "{}");
    }
    for (int step = 0; step < STEPS; step++) {
        seed = seed * 1664525U + 1013904223U;
        const unsigned who = (seed >> 16) % WORKERS;
        if ((seed >> 28) % 2 == 0) {
            const char *id = assign(m);
            assert_int_equal(id == NULL, busy_count == WORKERS);
            if (id != NULL) {
                assert_false(busy[id[0] - '0']);
                busy[id[0] - '0'] = true;
                busy_count++;
            }
        } else { /* it comes back, or is merely told of anew */
            char id[8];
            (void)snprintf(id, sizeof id, "%u", who);
            update(m, id, "{\"cpu\": 1}");
            busy_count -= busy[who];
            busy[who] = false;
        }
        expect(m, WORKERS - busy_count, busy_count);
    }
    coord_resource_manager_destroy(m);
}

/* Gives tasks to a worker that has a GPU, and to no other. */
static size_t choose_gpu(coord_role role, coord_text task,
                         const coord_candidate *candidates, size_t count, uint64_t random,
                         void *user)
{
    (void)role;
    (void)random;
    *(bool *)user = task.len == TASK.len && memcmp(task.ptr, TASK.ptr, task.len) == 0;
    for (size_t i = 0; i < count; i++) {
        if (memmem(candidates[i].resource.ptr, candidates[i].resource.len, "\"gpu\"",
                   5) != NULL) {
            return i;
        }
    }
    return COORD_CHOOSE_NONE;
}

static void f_r4_a_policy_sees_the_task_and_what_each_worker_has(void **state)
{
    bool saw_task = false;
    coord_resource_policy gpu = {sizeof gpu, "gpu", choose_gpu, &saw_task};
    coord_resource_manager *m = create(&gpu);
    (void)state;
    update(m, "a", "{\"cpu\": 64}");
    update(m, "b", "{\"cpu\": 1}");
    assert_null(assign(m)); /* it waits rather than go where it does not fit */
    assert_true(saw_task);
    expect(m, 2, 0);
    update(m, "c", "{\"cpu\": 1, \"gpu\": 1}");
    assert_string_equal(assign(m), "c");
    assert_null(assign(m));
    coord_resource_manager_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_r1_have_assigned_is_true_of_those_that_have_a_task),
        cmocka_unit_test(f_r2_a_deleted_worker_leaves_whichever_pool_it_is_in),
        cmocka_unit_test(f_r3_no_worker_is_given_out_twice_or_lost),
        cmocka_unit_test(f_r4_a_policy_sees_the_task_and_what_each_worker_has),
    };
    return cmocka_run_group_tests_name("faults of the resource manager", tests, NULL,
                                       NULL);
}
