#include "base/alloc.h"
#include "coord/resource_manager.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define C COORD_COLLECTOR
#define L COORD_LEARNER

static const coord_text TASK = {"{\"task_id\": \"t\"}", 16};

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static coord_resource_manager *create(const coord_resource_policy *policy, uint64_t seed)
{
    coord_resource_manager *m = NULL;
    assert_int_equal(coord_resource_manager_create(policy, seed, &m, NULL), COORD_OK);
    assert_non_null(m);
    return m;
}

static coord_resource_manager *least_loaded(void)
{
    return create(coord_resource_policy_find("least_loaded"), 1);
}

static void update(coord_resource_manager *m, coord_role role, const char *id)
{
    assert_int_equal(
        coord_resource_manager_update(m, role, id, coord_text_of("{\"cpu\": 1}"), NULL),
        COORD_OK);
}

/* The worker that gets the next task; NULL: none. */
static const char *assign(coord_resource_manager *m, coord_role role)
{
    const char *id = "untouched";
    coord_text resource = {NULL, 99};
    coord_status rc = coord_resource_manager_assign(m, role, TASK, &id, &resource);
    if (rc == COORD_OK) {
        assert_true(coord_resource_manager_have_assigned(m, role, id));
        return id;
    }
    assert_int_equal(rc, COORD_AGAIN);
    assert_string_equal(id, "untouched");
    assert_int_equal(resource.len, 99);
    return NULL;
}

static void assert_count(const coord_resource_manager *m, coord_role role,
                         size_t free_count, size_t assigned_count)
{
    size_t free_workers = 99;
    size_t assigned = 99;
    coord_resource_manager_count(m, role, &free_workers, &assigned);
    assert_int_equal(free_workers, free_count);
    assert_int_equal(assigned, assigned_count);
}

static const char *numbered(int i)
{
    static char id[16];
    (void)snprintf(id, sizeof id, "w%d", i);
    return id;
}

/* ---- life ---- */

static void roles_have_names(void **state)
{
    (void)state;
    assert_string_equal(coord_role_str(C), "collector");
    assert_string_equal(coord_role_str(L), "learner");
}

static void policies_are_found_by_name(void **state)
{
    (void)state;
    assert_string_equal(coord_resource_policy_find("random")->name, "random");
    assert_string_equal(coord_resource_policy_find("least_loaded")->name, "least_loaded");
    assert_null(coord_resource_policy_find("Random"));
    assert_null(coord_resource_policy_find(""));
    assert_null(coord_resource_policy_find(NULL));
}

static void an_unfit_policy_is_refused(void **state)
{
    (void)state;
    coord_resource_manager *m = NULL;
    coord_error err;
    coord_resource_policy p = *coord_resource_policy_find("random");
    assert_int_equal(coord_resource_manager_create(&p, 0, NULL, &err), COORD_ERR_ARG);
    p.choose = NULL;
    assert_int_equal(coord_resource_manager_create(&p, 0, &m, &err), COORD_ERR_ARG);
    assert_string_equal(err.text, "resource policy: choose is required");
    p = *coord_resource_policy_find("random");
    p.size = 0;
    assert_int_equal(coord_resource_manager_create(&p, 0, &m, &err), COORD_ERR_ABI);
    p.size = sizeof p + 8;
    assert_int_equal(coord_resource_manager_create(&p, 0, &m, &err), COORD_ERR_ABI);
    assert_null(m);
}

static void nonsense_is_answered_politely(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 0);
    coord_error err;
    const char *id = NULL;
    const coord_role strange = (coord_role)7;
    char long_id[COORD_ID_SIZE + 1];
    memset(long_id, 'i', sizeof long_id);
    long_id[COORD_ID_SIZE] = '\0';

    coord_resource_manager_destroy(NULL);
    assert_int_equal(coord_resource_manager_update(NULL, C, "a", TASK, &err),
                     COORD_ERR_ARG);
    assert_int_equal(coord_resource_manager_update(m, C, NULL, TASK, &err),
                     COORD_ERR_ARG);
    assert_int_equal(coord_resource_manager_update(m, strange, "a", TASK, &err),
                     COORD_ERR_ARG);
    assert_int_equal(coord_resource_manager_update(m, C, "", TASK, &err), COORD_ERR_ARG);
    assert_int_equal(coord_resource_manager_update(m, C, long_id, TASK, &err),
                     COORD_ERR_ARG);
    assert_string_equal(err.text,
                        "resource manager: a worker's id has 1 to 255 bytes, got 256");
    assert_int_equal(coord_resource_manager_assign(NULL, C, TASK, &id, NULL),
                     COORD_ERR_ARG);
    assert_int_equal(coord_resource_manager_assign(m, strange, TASK, &id, NULL),
                     COORD_ERR_ARG);
    assert_int_equal(coord_resource_manager_assign(m, C, TASK, NULL, NULL),
                     COORD_ERR_ARG);
    assert_false(coord_resource_manager_delete(NULL, C, "a"));
    assert_false(coord_resource_manager_delete(m, strange, "a"));
    assert_false(coord_resource_manager_delete(m, C, NULL));
    assert_false(coord_resource_manager_have_assigned(NULL, C, "a"));
    assert_false(coord_resource_manager_have_assigned(m, strange, "a"));
    assert_false(coord_resource_manager_have_assigned(m, C, NULL));
    assert_count(NULL, C, 0, 0);
    assert_count(m, strange, 0, 0);
    coord_resource_manager_count(m, C, NULL, NULL);
    assert_count(m, C, 0, 0);
    coord_resource_manager_destroy(m);
}

static void an_id_of_255_bytes_is_fine(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 0);
    char id[COORD_ID_SIZE];
    memset(id, 'i', sizeof id);
    id[COORD_ID_SIZE - 1] = '\0';
    update(m, C, id);
    assert_string_equal(assign(m, C), id);
    coord_resource_manager_destroy(m);
}

/* ---- bookkeeping ---- */

static void a_worker_is_assigned_once_until_it_comes_back(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 0);
    assert_null(assign(m, C));
    update(m, C, "a");
    assert_count(m, C, 1, 0);
    assert_string_equal(assign(m, C), "a");
    assert_count(m, C, 0, 1);
    assert_null(assign(m, C));
    update(m, C, "a");
    assert_count(m, C, 1, 0);
    assert_string_equal(assign(m, C), "a");
    coord_resource_manager_destroy(m);
}

static void the_resource_is_handed_on_byte_for_byte(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 0);
    char said[] = "{\"gpu\": NaN}";
    const char *id;
    coord_text resource;
    assert_int_equal(coord_resource_manager_update(m, L, "a", coord_text_of(said), NULL),
                     COORD_OK);
    memset(said, 'x', sizeof said - 1); /* it was copied */
    assert_int_equal(coord_resource_manager_assign(m, L, TASK, &id, &resource), COORD_OK);
    assert_int_equal(resource.len, 12);
    assert_memory_equal(resource.ptr, "{\"gpu\": NaN}", 12);
    assert_int_equal(
        coord_resource_manager_update(m, L, "a", (coord_text){NULL, 0}, NULL), COORD_OK);
    assert_int_equal(coord_resource_manager_assign(m, L, TASK, &id, &resource), COORD_OK);
    assert_int_equal(resource.len, 0);
    assert_int_equal(coord_resource_manager_update(m, L, id, TASK, NULL), COORD_OK);
    assert_int_equal(coord_resource_manager_assign(m, L, TASK, &id, NULL), COORD_OK);
    coord_resource_manager_destroy(m);
}

static void roles_are_apart(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 0);
    update(m, C, "a");
    assert_null(assign(m, L));
    update(m, L, "a");
    assert_string_equal(assign(m, L), "a");
    assert_false(coord_resource_manager_have_assigned(m, C, "a"));
    assert_true(coord_resource_manager_delete(m, L, "a"));
    assert_count(m, C, 1, 0);
    assert_count(m, L, 0, 0);
    coord_resource_manager_destroy(m);
}

static void updating_a_free_worker_changes_its_resource_only(void **state)
{
    (void)state;
    coord_resource_manager *m = least_loaded();
    const char *id;
    coord_text resource;
    update(m, C, "a");
    update(m, C, "b");
    assert_int_equal(coord_resource_manager_update(m, C, "a", coord_text_of("[7]"), NULL),
                     COORD_OK);
    assert_count(m, C, 2, 0);
    assert_int_equal(coord_resource_manager_assign(m, C, TASK, &id, &resource), COORD_OK);
    assert_string_equal(id, "a"); /* it kept its place */
    assert_memory_equal(resource.ptr, "[7]", 3);
    coord_resource_manager_destroy(m);
}

/* In the reference it is the other way round. */
static void
fault_f_r1_have_assigned_is_true_for_busy_workers_and_false_for_free_ones(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 0);
    assert_false(coord_resource_manager_have_assigned(m, C, "a")); /* unknown */
    update(m, C, "a");
    assert_false(coord_resource_manager_have_assigned(m, C, "a"));
    assert_string_equal(assign(m, C), "a");
    assert_true(coord_resource_manager_have_assigned(m, C, "a"));
    update(m, C, "a");
    assert_false(coord_resource_manager_have_assigned(m, C, "a"));
    assert_string_equal(assign(m, C), "a");
    assert_true(coord_resource_manager_delete(m, C, "a"));
    assert_false(coord_resource_manager_have_assigned(m, C, "a"));
    coord_resource_manager_destroy(m);
}

/* In the reference it takes them out of the wrong one. */
static void fault_f_r2_a_deleted_worker_leaves_the_pool_it_is_in(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 0);
    update(m, C, "idle");
    assert_true(coord_resource_manager_delete(m, C, "idle"));
    assert_false(coord_resource_manager_delete(m, C, "idle"));
    assert_count(m, C, 0, 0);
    assert_null(assign(m, C)); /* it gets no task any more */

    update(m, C, "busy");
    assert_string_equal(assign(m, C), "busy");
    assert_true(coord_resource_manager_delete(m, C, "busy"));
    assert_count(m, C, 0, 0);
    update(m, C, "busy"); /* whoever comes back is new */
    assert_count(m, C, 1, 0);
    coord_resource_manager_destroy(m);
}

static void the_id_that_assign_gave_can_be_used_to_update_and_delete(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 0);
    update(m, C, "a");
    const char *id = assign(m, C);
    update(m, C, id);
    assert_string_equal(id, "a"); /* it lives until the worker is deleted */
    assert_true(coord_resource_manager_delete(m, C, id));
    coord_resource_manager_destroy(m);
}

/* ---- policies ---- */

static void random_uses_every_worker_and_evenly(void **state)
{
    (void)state;
    enum { WORKERS = 10, DRAWS = 10000 };
    int given[WORKERS] = {0};
    coord_resource_manager *m = create(NULL, 42);
    for (int i = 0; i < WORKERS; i++) {
        update(m, C, numbered(i));
    }
    for (int i = 0; i < DRAWS; i++) {
        const char *id = assign(m, C);
        assert_non_null(id);
        assert_int_equal(strlen(id), 2);
        given[id[1] - '0']++;
        update(m, C, id);
    }
    for (int i = 0; i < WORKERS; i++) { /* six standard deviations around the mean */
        assert_in_range(given[i], 1000 - 180, 1000 + 180);
    }
    coord_resource_manager_destroy(m);
}

static void the_same_seed_makes_the_same_choices(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        coord_resource_manager *a = create(NULL, seed);
        coord_resource_manager *b = create(coord_resource_policy_find("random"), seed);
        coord_resource_manager *other = create(NULL, seed + 100);
        int same = 0;
        for (int i = 0; i < 100; i++) {
            update(a, L, numbered(i));
            update(b, L, numbered(i));
            update(other, L, numbered(i));
        }
        for (int i = 0; i < 100; i++) {
            const char *id = assign(a, L);
            assert_string_equal(id, assign(b, L));
            same += strcmp(id, assign(other, L)) == 0;
        }
        assert_true(same < 20);
        coord_resource_manager_destroy(a);
        coord_resource_manager_destroy(b);
        coord_resource_manager_destroy(other);
    }
}

static void the_least_loaded_is_the_one_that_was_given_the_fewest_tasks(void **state)
{
    (void)state;
    coord_resource_manager *m = least_loaded();
    update(m, C, "a");
    for (int i = 0; i < 3; i++) {
        assert_string_equal(assign(m, C), "a");
        update(m, C, "a");
    }
    update(m, C, "b"); /* new, so it catches up first */
    for (int i = 0; i < 3; i++) {
        assert_string_equal(assign(m, C), "b");
        update(m, C, "b");
    }
    assert_string_equal(assign(m, C), "a"); /* 3 each: a is free longer */
    assert_string_equal(assign(m, C), "b");
    coord_resource_manager_destroy(m);
}

static void of_equally_loaded_ones_the_one_that_is_free_longest_goes_first(void **state)
{
    (void)state;
    coord_resource_manager *m = least_loaded();
    update(m, C, "x");
    update(m, C, "y");
    update(m, C, "z");
    assert_string_equal(assign(m, C), "x");
    assert_string_equal(assign(m, C), "y");
    assert_string_equal(assign(m, C), "z");
    update(m, C, "z");
    update(m, C, "x");
    update(m, C, "y");
    assert_string_equal(assign(m, C), "z");
    assert_string_equal(assign(m, C), "x");
    assert_string_equal(assign(m, C), "y");
    coord_resource_manager_destroy(m);
}

static void a_deleted_worker_starts_anew(void **state)
{
    (void)state;
    coord_resource_manager *m = least_loaded();
    update(m, C, "a");
    assert_string_equal(assign(m, C), "a");
    update(m, C, "a");
    update(m, C, "b");
    assert_string_equal(assign(m, C), "b");
    update(m, C, "b"); /* one each */
    assert_true(coord_resource_manager_delete(m, C, "b"));
    update(m, C, "b"); /* none for b */
    assert_string_equal(assign(m, C), "b");
    coord_resource_manager_destroy(m);
}

/* A policy that writes down what it is shown, and answers what the test says. */
typedef struct spy {
    size_t answer;
    size_t calls;
    size_t count;
    coord_role role;
    char task[64];
    char ids[256];
    char resource[64];
    uint64_t given;
    uint64_t random;
} spy;

static size_t spy_choose(coord_role role, coord_text task,
                         const coord_candidate *candidates, size_t count, uint64_t random,
                         void *user)
{
    spy *s = user;
    size_t len = 0;
    s->calls++;
    s->count = count;
    s->role = role;
    s->random = random;
    s->given = candidates[0].given;
    (void)snprintf(s->task, sizeof s->task, "%.*s", (int)task.len, task.ptr);
    (void)snprintf(s->resource, sizeof s->resource, "%.*s",
                   (int)candidates[0].resource.len, candidates[0].resource.ptr);
    for (size_t i = 0; i < count && len < sizeof s->ids; i++) {
        len +=
            (size_t)snprintf(s->ids + len, sizeof s->ids - len, "%s ", candidates[i].id);
    }
    return s->answer;
}

static coord_resource_manager *spied(spy *s)
{
    const coord_resource_policy policy = {sizeof policy, "spy", spy_choose, s};
    return create(&policy, 5); /* copied: it may go out of scope */
}

static void a_policy_of_the_host_sees_task_and_free_workers(void **state)
{
    (void)state;
    spy s = {.answer = 1};
    coord_resource_manager *m = spied(&s);
    assert_null(assign(m, L));
    assert_int_equal(s.calls, 0); /* it is not asked for nothing */
    update(m, L, "a");
    update(m, L, "b");
    update(m, L, "c");
    update(m, C, "other");
    assert_string_equal(assign(m, L), "b");
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.count, 3);
    assert_int_equal(s.role, L);
    assert_string_equal(s.task, "{\"task_id\": \"t\"}");
    assert_string_equal(s.ids, "a b c ");
    assert_string_equal(s.resource, "{\"cpu\": 1}");
    uint64_t random = s.random;
    assert_string_equal(assign(m, L), "c");
    assert_string_equal(s.ids, "a c ");
    assert_true(s.random != random);
    update(m, L, "c");
    assert_true(coord_resource_manager_delete(m, L, "a"));
    s.answer = 0;
    assert_string_equal(assign(m, L), "c");
    assert_int_equal(s.given, 1);
    coord_resource_manager_destroy(m);
}

static void a_policy_may_let_the_task_wait(void **state)
{
    (void)state;
    static const size_t NONE[] = {COORD_CHOOSE_NONE, 2, 3, SIZE_MAX - 1};
    spy s = {.answer = 0};
    coord_resource_manager *m = spied(&s);
    update(m, C, "a");
    update(m, C, "b");
    for (size_t i = 0; i < sizeof NONE / sizeof NONE[0]; i++) {
        s.answer = NONE[i];
        assert_null(assign(m, C));
        assert_count(m, C, 2, 0);
    }
    s.answer = 1;
    assert_string_equal(assign(m, C), "b");
    coord_resource_manager_destroy(m);
}

/* ---- many ---- */

static void any_number_of_free_workers_is_shown(void **state)
{
    (void)state;
    spy s = {.answer = 0};
    coord_resource_manager *m = spied(&s);
    for (int i = 1; i <= 70; i++) {
        update(m, C, numbered(i));
        s.answer = (size_t)i - 1; /* the one that came last */
        assert_string_equal(assign(m, C), numbered(i));
        assert_int_equal(s.count, i);
        update(m, C, numbered(i));
    }
    coord_resource_manager_destroy(m);
}

static void five_thousand_workers_are_all_assigned(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static bool seen[MANY];
    coord_resource_manager *m = create(NULL, 3);
    for (int i = 0; i < MANY; i++) {
        update(m, C, numbered(i));
    }
    assert_count(m, C, MANY, 0);
    for (int i = 0; i < MANY; i++) {
        int n = 0;
        assert_int_equal(sscanf(assign(m, C), "w%d", &n), 1);
        assert_false(seen[n]);
        seen[n] = true;
    }
    assert_null(assign(m, C));
    assert_count(m, C, 0, MANY);
    for (int i = 0; i < MANY; i += 2) {
        assert_true(coord_resource_manager_delete(m, C, numbered(i)));
    }
    assert_count(m, C, 0, MANY / 2);
    coord_resource_manager_destroy(m);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

typedef enum model { UNKNOWN, FREE, BUSY } model;

static void check_against(const coord_resource_manager *m, coord_role role,
                          const model *workers, int count)
{
    size_t free_count = 0;
    size_t busy = 0;
    for (int i = 0; i < count; i++) {
        free_count += workers[i] == FREE;
        busy += workers[i] == BUSY;
        assert_int_equal(coord_resource_manager_have_assigned(m, role, numbered(i)),
                         workers[i] == BUSY);
    }
    assert_count(m, role, free_count, busy); /* together: all that are known */
}

static void free_and_assigned_are_all_that_are_known_whatever_happens(void **state)
{
    (void)state;
    enum { WORKERS = 60, STEPS = 20000 };
    for (uint32_t seed = 1; seed <= 2; seed++) {
        model workers[2][WORKERS] = {{UNKNOWN}};
        uint32_t random = seed;
        coord_resource_manager *m = create(
            coord_resource_policy_find(seed == 1 ? "random" : "least_loaded"), seed);
        for (int step = 0; step < STEPS; step++) {
            coord_role role = next_random(&random) % 3 == 0 ? L : C;
            int i = (int)(next_random(&random) % WORKERS);
            model *w = &workers[role][i];
            uint32_t action = next_random(&random) % 8;
            if (action < 3) {
                update(m, role, numbered(i));
                *w = FREE;
            } else if (action < 4) {
                assert_int_equal(coord_resource_manager_delete(m, role, numbered(i)),
                                 *w != UNKNOWN);
                *w = UNKNOWN;
            } else {
                const char *id = assign(m, role);
                size_t free_count = 0;
                for (int k = 0; k < WORKERS; k++) {
                    free_count += workers[role][k] == FREE;
                }
                assert_int_equal(id != NULL, free_count > 0);
                if (id != NULL) {
                    assert_int_equal(sscanf(id, "w%d", &i), 1);
                    assert_int_equal(workers[role][i], FREE);
                    workers[role][i] = BUSY;
                }
            }
            if (step % 20 == 0) {
                check_against(m, C, workers[C], WORKERS);
                check_against(m, L, workers[L], WORKERS);
            }
        }
        coord_resource_manager_destroy(m);
    }
}

/* ---- memory ---- */

static void without_memory_nothing_is_created(void **state)
{
    (void)state;
    coord_resource_manager *m = NULL;
    coord_error err;
    int none = 0;
    coordi_alloc_set_fault(countdown, &none);
    assert_int_equal(coord_resource_manager_create(NULL, 0, &m, &err), COORD_ERR_NOMEM);
    coordi_alloc_set_fault(NULL, NULL);
    assert_null(m);
    assert_string_equal(err.text, "resource manager: out of memory");
}

static void without_memory_an_update_changes_nothing(void **state)
{
    (void)state;
    coord_resource_manager *m = least_loaded();
    for (int i = 0; i < 40; i++) {
        int failures = 0;
        coord_status rc = COORD_ERR_NOMEM;
        while (rc != COORD_OK) { /* fails at the first, second, ... allocation */
            int left = failures++;
            coordi_alloc_set_fault(countdown, &left);
            rc = coord_resource_manager_update(m, C, numbered(i), TASK, NULL);
            coordi_alloc_set_fault(NULL, NULL);
            assert_true(rc == COORD_OK || rc == COORD_ERR_NOMEM);
            assert_count(m, C, (size_t)i + (rc == COORD_OK), 0);
        }
        assert_true(failures >= 3);
    }
    assert_string_equal(assign(m, C), "w0");
    int none = 0;
    coordi_alloc_set_fault(countdown,
                           &none); /* of one that is known: it stays as it was */
    assert_int_equal(coord_resource_manager_update(m, C, "w0", TASK, NULL),
                     COORD_ERR_NOMEM);
    coordi_alloc_set_fault(NULL, NULL);
    assert_true(coord_resource_manager_have_assigned(m, C, "w0"));
    update(m, C, "w0");
    assert_count(m, C, 40, 0);
    coord_resource_manager_destroy(m);
}

/* Otherwise a task would wait for memory that nobody tells it about. */
static void assigning_and_deleting_need_no_memory(void **state)
{
    (void)state;
    coord_resource_manager *m = create(NULL, 9);
    for (int i = 0; i < 1000; i++) {
        update(m, C, numbered(i));
    }
    int none = 0;
    coordi_alloc_set_fault(countdown, &none);
    for (int i = 0; i < 1000; i++) {
        assert_non_null(assign(m, C));
    }
    for (int i = 0; i < 1000; i++) {
        assert_true(coord_resource_manager_delete(m, C, numbered(i)));
    }
    coordi_alloc_set_fault(NULL, NULL);
    assert_count(m, C, 0, 0);
    coord_resource_manager_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_have_names),
        cmocka_unit_test(policies_are_found_by_name),
        cmocka_unit_test(an_unfit_policy_is_refused),
        cmocka_unit_test(nonsense_is_answered_politely),
        cmocka_unit_test(an_id_of_255_bytes_is_fine),
        cmocka_unit_test(a_worker_is_assigned_once_until_it_comes_back),
        cmocka_unit_test(the_resource_is_handed_on_byte_for_byte),
        cmocka_unit_test(roles_are_apart),
        cmocka_unit_test(updating_a_free_worker_changes_its_resource_only),
        cmocka_unit_test(
            fault_f_r1_have_assigned_is_true_for_busy_workers_and_false_for_free_ones),
        cmocka_unit_test(fault_f_r2_a_deleted_worker_leaves_the_pool_it_is_in),
        cmocka_unit_test(the_id_that_assign_gave_can_be_used_to_update_and_delete),
        cmocka_unit_test(random_uses_every_worker_and_evenly),
        cmocka_unit_test(the_same_seed_makes_the_same_choices),
        cmocka_unit_test(the_least_loaded_is_the_one_that_was_given_the_fewest_tasks),
        cmocka_unit_test(of_equally_loaded_ones_the_one_that_is_free_longest_goes_first),
        cmocka_unit_test(a_deleted_worker_starts_anew),
        cmocka_unit_test(a_policy_of_the_host_sees_task_and_free_workers),
        cmocka_unit_test(a_policy_may_let_the_task_wait),
        cmocka_unit_test(any_number_of_free_workers_is_shown),
        cmocka_unit_test(five_thousand_workers_are_all_assigned),
        cmocka_unit_test(free_and_assigned_are_all_that_are_known_whatever_happens),
        cmocka_unit_test(without_memory_nothing_is_created),
        cmocka_unit_test(without_memory_an_update_changes_nothing),
        cmocka_unit_test(assigning_and_deleting_need_no_memory),
    };
    return cmocka_run_group_tests_name("resource_manager", tests, NULL, NULL);
}
