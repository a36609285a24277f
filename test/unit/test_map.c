#include "base/alloc.h"
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 20000 };

static int value_of[MANY]; /* values are pointers into this */

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static const char *key_of(int i)
{
    static char key[32];
    (void)snprintf(key, sizeof key, "key-%d", i);
    return key;
}

static void put(coordi_map *map, int i)
{
    assert_true(coordi_map_put(map, key_of(i), &value_of[i]));
}

static int number(const void *value)
{
    return (int)((const int *)value - value_of);
}

/* The map holds these numbers, in this order. */
static void assert_walk(const coordi_map *map, const int *expected, size_t count)
{
    size_t at = 0;
    assert_int_equal(map->count, count);
    for (size_t i = 0; i < count; i++) {
        const void *value = coordi_map_next(map, &at);
        assert_non_null(value);
        assert_int_equal(number(value), expected[i]);
        assert_ptr_equal(coordi_map_get(map, key_of(expected[i])), value);
    }
    assert_null(coordi_map_next(map, &at));
    assert_null(coordi_map_next(map, &at)); /* the end stays the end */
}

static void an_empty_map_has_nothing(void **state)
{
    (void)state;
    coordi_map map = {0};
    size_t at = 0;
    assert_null(coordi_map_get(&map, "a"));
    assert_null(coordi_map_get(&map, ""));
    assert_null(coordi_map_remove(&map, "a"));
    assert_null(coordi_map_next(&map, &at));
    coordi_map_done(&map);
    coordi_map_done(&map);
}

static void walks_go_in_the_order_of_insertion(void **state)
{
    (void)state;
    static const int ORDER[] = {7, 3, 9, 1, 0, 8, 2, 6, 5, 4, 12, 11, 10};
    coordi_map map = {0};
    for (size_t i = 0; i < 13; i++) {
        put(&map, ORDER[i]);
    }
    assert_walk(&map, ORDER, 13);
    coordi_map_done(&map);
}

static void replacing_a_value_keeps_its_place(void **state)
{
    (void)state;
    coordi_map map = {0};
    size_t at = 0;
    put(&map, 0);
    put(&map, 1);
    assert_true(coordi_map_put(&map, key_of(0), &value_of[5]));
    assert_int_equal(map.count, 2);
    assert_ptr_equal(coordi_map_next(&map, &at), &value_of[5]);
    assert_ptr_equal(coordi_map_next(&map, &at), &value_of[1]);
    coordi_map_done(&map);
}

static void a_key_that_comes_back_goes_to_the_end(void **state)
{
    (void)state;
    coordi_map map = {0};
    for (int i = 0; i < 3; i++) {
        put(&map, i);
    }
    assert_ptr_equal(coordi_map_remove(&map, key_of(0)), &value_of[0]);
    assert_null(coordi_map_remove(&map, key_of(0)));
    assert_null(coordi_map_get(&map, key_of(0)));
    put(&map, 0);
    assert_walk(&map, (const int[]){1, 2, 0}, 3);
    coordi_map_done(&map);
}

static void keys_are_copied_and_any_bytes_do(void **state)
{
    (void)state;
    static char long_key[5000];
    coordi_map map = {0};
    char key[] = "mine";
    assert_true(coordi_map_put(&map, key, &value_of[0]));
    key[0] = 'X';
    assert_true(coordi_map_put(&map, "", &value_of[1]));
    assert_true(coordi_map_put(&map, "\xff\x01 \n", &value_of[2]));
    memset(long_key, 'k', sizeof long_key - 1);
    assert_true(coordi_map_put(&map, long_key, &value_of[3]));
    assert_ptr_equal(coordi_map_get(&map, "mine"), &value_of[0]);
    assert_null(coordi_map_get(&map, "Xine"));
    assert_ptr_equal(coordi_map_get(&map, ""), &value_of[1]);
    assert_ptr_equal(coordi_map_get(&map, "\xff\x01 \n"), &value_of[2]);
    assert_ptr_equal(coordi_map_get(&map, long_key), &value_of[3]);
    coordi_map_done(&map);
}

static void many_keys_are_all_found(void **state)
{
    (void)state;
    coordi_map map = {0};
    for (int i = 0; i < MANY; i++) {
        put(&map, i);
    }
    for (int i = 0; i < MANY; i += 3) {
        assert_ptr_equal(coordi_map_remove(&map, key_of(i)), &value_of[i]);
    }
    size_t at = 0;
    for (int i = 0; i < MANY; i++) {
        bool gone = i % 3 == 0;
        assert_ptr_equal(coordi_map_get(&map, key_of(i)), gone ? NULL : &value_of[i]);
        if (!gone) {
            assert_ptr_equal(coordi_map_next(&map, &at), &value_of[i]);
        }
    }
    assert_null(coordi_map_next(&map, &at));
    coordi_map_done(&map);
}

static void all_can_be_removed_while_walking(void **state)
{
    (void)state;
    coordi_map map = {0};
    for (int i = 0; i < 100; i++) {
        put(&map, i);
    }
    size_t at = 0;
    int seen = 0;
    for (const void *v = coordi_map_next(&map, &at); v != NULL;
         v = coordi_map_next(&map, &at)) {
        assert_int_equal(number(v), seen++);
        assert_ptr_equal(coordi_map_remove(&map, key_of(number(v))), v);
    }
    assert_int_equal(seen, 100);
    assert_int_equal(map.count, 0);
    coordi_map_done(&map);
}

static void one_that_is_removed_ahead_of_a_walk_is_not_seen(void **state)
{
    (void)state;
    coordi_map map = {0};
    for (int i = 0; i < 6; i++) {
        put(&map, i);
    }
    size_t at = 0;
    assert_int_equal(number(coordi_map_next(&map, &at)), 0);
    (void)coordi_map_remove(&map, key_of(1));
    (void)coordi_map_remove(&map, key_of(2));
    (void)coordi_map_remove(&map, key_of(5));
    assert_int_equal(number(coordi_map_next(&map, &at)), 3);
    assert_int_equal(number(coordi_map_next(&map, &at)), 4);
    assert_null(coordi_map_next(&map, &at));
    coordi_map_done(&map);
}

/* Putting may close holes, which moves what the walk has yet to see. */
static void a_walk_misses_nothing_while_others_are_put(void **state)
{
    (void)state;
    for (int total = 1; total < 64; total++) {
        coordi_map map = {0};
        for (int i = 0; i < total; i++) {
            put(&map, i);
        }
        size_t at = 0;
        int more = 1000;
        for (int i = 0; i < total; i++) {
            assert_int_equal(number(coordi_map_next(&map, &at)), i);
            (void)coordi_map_remove(&map, key_of(i));
            put(&map, more++);
            put(&map, more++);
        }
        for (int i = 1000; i < more; i++) { /* those come last */
            assert_int_equal(number(coordi_map_next(&map, &at)), i);
        }
        assert_null(coordi_map_next(&map, &at));
        coordi_map_done(&map);
    }
}

static void holes_are_closed_instead_of_growing(void **state)
{
    (void)state;
    coordi_map map = {0};
    put(&map, 0);
    for (int i = 1; i < MANY; i++) {
        put(&map, i);
        assert_ptr_equal(coordi_map_remove(&map, key_of(i)), &value_of[i]);
        assert_true(map.used <= map.cap && map.cap <= 16);
    }
    assert_walk(&map, (const int[]){0}, 1);
    coordi_map_done(&map);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

static void it_agrees_with_a_plain_list(void **state)
{
    (void)state;
    enum { KEYS = 200 };
    int list[KEYS];
    size_t count = 0;
    uint32_t seed = 1;
    coordi_map map = {0};
    for (int step = 0; step < 20000; step++) {
        int i = (int)(next_random(&seed) % KEYS);
        size_t place = 0;
        while (place < count && list[place] != i) {
            place++;
        }
        if (next_random(&seed) % 2 == 0) {
            put(&map, i);
            count += place == count;
            list[place] = i;
        } else {
            bool there = place < count;
            assert_ptr_equal(coordi_map_remove(&map, key_of(i)),
                             there ? &value_of[i] : NULL);
            count -= there;
            memmove(list + place, list + place + there,
                    (count - place) * there * sizeof list[0]);
        }
        if (step % 50 == 0) {
            assert_walk(&map, list, count);
        }
    }
    assert_walk(&map, list, count);
    coordi_map_done(&map);
}

static void without_memory_the_map_is_unchanged(void **state)
{
    (void)state;
    int expected[64];
    coordi_map map = {0};
    for (int i = 0; i < 64; i++) {
        int failures = 0;
        bool done = false;
        while (!done) { /* fails at the first, second, ... allocation */
            int left = failures++;
            coordi_alloc_set_fault(countdown, &left);
            done = coordi_map_put(&map, key_of(i), &value_of[i]);
            coordi_alloc_set_fault(NULL, NULL);
            if (!done) {
                assert_walk(&map, expected, (size_t)i);
                assert_null(coordi_map_get(&map, key_of(i)));
            }
        }
        assert_true(failures >= 2);
        expected[i] = i;
    }
    int none = 0;
    coordi_alloc_set_fault(countdown, &none); /* replacing and removing need no memory */
    assert_true(coordi_map_put(&map, key_of(0), &value_of[0]));
    assert_ptr_equal(coordi_map_remove(&map, key_of(63)), &value_of[63]);
    coordi_alloc_set_fault(NULL, NULL);
    assert_walk(&map, expected, 63);
    coordi_map_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map_has_nothing),
        cmocka_unit_test(walks_go_in_the_order_of_insertion),
        cmocka_unit_test(replacing_a_value_keeps_its_place),
        cmocka_unit_test(a_key_that_comes_back_goes_to_the_end),
        cmocka_unit_test(keys_are_copied_and_any_bytes_do),
        cmocka_unit_test(many_keys_are_all_found),
        cmocka_unit_test(all_can_be_removed_while_walking),
        cmocka_unit_test(one_that_is_removed_ahead_of_a_walk_is_not_seen),
        cmocka_unit_test(a_walk_misses_nothing_while_others_are_put),
        cmocka_unit_test(holes_are_closed_instead_of_growing),
        cmocka_unit_test(it_agrees_with_a_plain_list),
        cmocka_unit_test(without_memory_the_map_is_unchanged),
    };
    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
