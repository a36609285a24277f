#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct item {
    int number;
    coordi_link link; /* not first, so that COORDI_ITEM has to do something */
} item;

static item items[4];
static coordi_link head;

static int setup(void **state)
{
    (void)state;
    memset(items, 0, sizeof items);
    for (int i = 0; i < 4; i++) {
        items[i].number = i;
    }
    coordi_list_init(&head);
    return 0;
}

/* The numbers from the first to the last, and the same backwards. */
static void assert_order(const char *expected)
{
    size_t len = strlen(expected);
    const coordi_link *at = head.next;
    for (size_t i = 0; i < len; i++, at = at->next) {
        assert_int_equal(COORDI_ITEM(at, item, link)->number, expected[i] - '0');
    }
    assert_ptr_equal(at, &head);
    at = head.prev;
    for (size_t i = len; i-- > 0; at = at->prev) {
        assert_int_equal(COORDI_ITEM(at, item, link)->number, expected[i] - '0');
    }
    assert_ptr_equal(at, &head);
    assert_int_equal(coordi_list_empty(&head), len == 0);
}

static void items_come_in_the_order_in_which_they_were_appended(void **state)
{
    (void)state;
    assert_order("");
    for (int i = 0; i < 4; i++) {
        coordi_list_append(&head, &items[i].link);
    }
    assert_order("0123");
}

static void prepended_ones_come_first(void **state)
{
    (void)state;
    coordi_list_prepend(&head, &items[0].link);
    coordi_list_prepend(&head, &items[1].link);
    coordi_list_append(&head, &items[2].link);
    assert_order("102");
}

static void any_one_can_be_removed(void **state)
{
    (void)state;
    static const char *const LEFT[] = {"123", "023", "013", "012"};
    for (int gone = 0; gone < 4; gone++) {
        (void)setup(NULL);
        for (int i = 0; i < 4; i++) {
            coordi_list_append(&head, &items[i].link);
        }
        coordi_list_remove(&items[gone].link);
        assert_order(LEFT[gone]);
        assert_false(coordi_linked(&items[gone].link));
        coordi_list_append(&head, &items[gone].link); /* and put back */
        assert_true(coordi_linked(&items[gone].link));
    }
}

static void removing_what_is_in_no_list_does_nothing(void **state)
{
    (void)state;
    coordi_list_append(&head, &items[0].link);
    coordi_list_remove(&items[1].link); /* all zero */
    coordi_list_remove(&items[1].link); /* points at itself */
    assert_false(coordi_linked(&items[1].link));
    assert_order("0");
}

static void popping_empties_from_the_front(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        coordi_list_append(&head, &items[i].link);
    }
    for (int i = 0; i < 3; i++) {
        coordi_link *link = coordi_list_pop(&head);
        assert_ptr_equal(link, &items[i].link);
        assert_false(coordi_linked(link));
    }
    assert_null(coordi_list_pop(&head));
    assert_order("");
}

static void a_head_that_was_never_set_up_is_empty(void **state)
{
    (void)state;
    coordi_link zero = {0};
    assert_true(coordi_list_empty(&zero));
    assert_null(coordi_list_pop(&zero));
    assert_false(coordi_linked(&zero));
}

static void the_last_one_of_a_list_is_linked_too(void **state)
{
    (void)state;
    coordi_list_append(&head, &items[0].link);
    assert_true(coordi_linked(&items[0].link));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(items_come_in_the_order_in_which_they_were_appended,
                               setup),
        cmocka_unit_test_setup(prepended_ones_come_first, setup),
        cmocka_unit_test_setup(any_one_can_be_removed, setup),
        cmocka_unit_test_setup(removing_what_is_in_no_list_does_nothing, setup),
        cmocka_unit_test_setup(popping_empties_from_the_front, setup),
        cmocka_unit_test_setup(a_head_that_was_never_set_up_is_empty, setup),
        cmocka_unit_test_setup(the_last_one_of_a_list_is_linked_too, setup),
    };
    return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
