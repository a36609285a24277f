/* The heap of timers that the real and the simulated loop share. */
#include "env/timers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MANY = 500 };

static uint64_t seed;

static unsigned random_below(unsigned limit)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % limit;
}

static void an_empty_heap_has_no_first_timer(void **state)
{
    (void)state;
    coordi_heap heap = {0};
    assert_null(coordi_heap_first(&heap));
    assert_null(coordi_heap_pop_due(&heap, INT64_MAX, UINT64_MAX));
}

static void timers_come_out_by_time_and_then_in_the_order_they_were_set(void **state)
{
    (void)state;
    static coordi_timer timers[MANY];
    coordi_heap heap = {0};
    seed = 1;
    for (int i = 0; i < MANY; i++) {
        timers[i] = (coordi_timer){0};
        coordi_heap_set(&heap, &timers[i], random_below(50));
    }
    assert_int_equal(heap.count, MANY);
    const coordi_timer *last = NULL;
    for (int i = 0; i < MANY; i++) {
        coordi_timer *next = coordi_heap_pop_due(&heap, 50, UINT64_MAX);
        assert_non_null(next);
        assert_false(coordi_timer_is_set(next));
        if (last != NULL) {
            assert_true(last->at_ms < next->at_ms ||
                        (last->at_ms == next->at_ms && last->order < next->order));
        }
        last = next;
    }
    assert_int_equal(heap.count, 0);
}

static void canceled_and_moved_timers_leave_the_others_in_order(void **state)
{
    (void)state;
    static coordi_timer timers[MANY];
    coordi_heap heap = {0};
    for (seed = 1; seed < 20; seed++) {
        for (int i = 0; i < MANY; i++) {
            timers[i] = (coordi_timer){0};
        }
        size_t set = 0;
        for (int step = 0; step < 10 * MANY; step++) {
            coordi_timer *timer = &timers[random_below(MANY)];
            set -= coordi_timer_is_set(timer) ? 1 : 0;
            if (random_below(3) == 0) {
                coordi_heap_cancel(&heap, timer);
            } else {
                coordi_heap_set(&heap, timer, random_below(1000));
                set++;
            }
        }
        assert_int_equal(heap.count, set);
        int64_t at_ms = 0;
        for (; set > 0; set--) {
            coordi_timer *next = coordi_heap_pop_due(&heap, 1000, UINT64_MAX);
            assert_non_null(next);
            assert_true(next->at_ms >= at_ms);
            at_ms = next->at_ms;
        }
        assert_null(coordi_heap_first(&heap));
    }
}

static void a_timer_is_not_due_before_its_time(void **state)
{
    (void)state;
    coordi_heap heap = {0};
    coordi_timer timer = {0};
    coordi_heap_set(&heap, &timer, 10);
    assert_null(coordi_heap_pop_due(&heap, 9, UINT64_MAX));
    assert_ptr_equal(coordi_heap_first(&heap), &timer);
    assert_ptr_equal(coordi_heap_pop_due(&heap, 10, UINT64_MAX), &timer);
}

static void a_timer_that_sets_itself_for_now_waits_for_the_next_round(void **state)
{
    (void)state;
    coordi_heap heap = {0};
    coordi_timer timer = {0};
    coordi_heap_set(&heap, &timer, 5);
    const uint64_t newest = heap.last_order;
    assert_ptr_equal(coordi_heap_pop_due(&heap, 5, newest), &timer);
    coordi_heap_set(&heap, &timer, 5);
    assert_null(coordi_heap_pop_due(&heap, 5, newest));
    assert_ptr_equal(coordi_heap_pop_due(&heap, 5, heap.last_order), &timer);
}

static void canceling_a_timer_twice_is_fine(void **state)
{
    (void)state;
    coordi_heap heap = {0};
    coordi_timer timer = {0};
    coordi_heap_cancel(&heap, &timer);
    coordi_heap_set(&heap, &timer, 5);
    coordi_heap_cancel(&heap, &timer);
    coordi_heap_cancel(&heap, &timer);
    assert_int_equal(heap.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap_has_no_first_timer),
        cmocka_unit_test(timers_come_out_by_time_and_then_in_the_order_they_were_set),
        cmocka_unit_test(canceled_and_moved_timers_leave_the_others_in_order),
        cmocka_unit_test(a_timer_is_not_due_before_its_time),
        cmocka_unit_test(a_timer_that_sets_itself_for_now_waits_for_the_next_round),
        cmocka_unit_test(canceling_a_timer_twice_is_fine),
    };
    return cmocka_run_group_tests_name("timers", tests, NULL, NULL);
}
