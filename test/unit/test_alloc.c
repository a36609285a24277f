#include "base/alloc.h"

#include "coord/api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool always(void *user)
{
    (*(int *)user)++;
    return true;
}

static void no_bytes_is_still_a_block_of_its_own(void **state)
{
    (void)state;
    void *a = coordi_alloc(0);
    void *b = coordi_zalloc(0);
    void *c = coordi_realloc(NULL, 0);
    void *d = coordi_realloc(c, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_non_null(d);
    assert_ptr_not_equal(a, b);
    coordi_free(a);
    coordi_free(b);
    coordi_free(d);
}

static void zalloc_gives_zeros(void **state)
{
    (void)state;
    static const char ZERO[4096];
    char *block = coordi_zalloc(sizeof ZERO);
    assert_memory_equal(block, ZERO, sizeof ZERO);
    coordi_free(block);
}

static void copies_are_closed_by_a_nul(void **state)
{
    (void)state;
    char *string = coordi_strdup("words");
    assert_string_equal(string, "words");
    char *bytes = coordi_memdup("a\0bc", 3);
    assert_memory_equal(bytes, "a\0b", 4);
    char *nothing = coordi_memdup(NULL, 0);
    assert_string_equal(nothing, "");
    coordi_free(string);
    coordi_free(bytes);
    coordi_free(nothing);
}

static void every_call_can_be_made_to_fail(void **state)
{
    (void)state;
    int asked = 0;
    char *kept = coordi_strdup("kept");
    coordi_alloc_set_fault(always, &asked);
    void *got[] = {coordi_alloc(1),         coordi_zalloc(1),
                   coordi_realloc(NULL, 1), coordi_realloc(kept, 1000),
                   coordi_strdup("x"),      coordi_memdup("x", 1)};
    coordi_alloc_set_fault(NULL, NULL);
    for (size_t i = 0; i < sizeof got / sizeof got[0]; i++) {
        assert_null(got[i]);
    }
    assert_int_equal(asked, 6);
    assert_string_equal(kept, "kept"); /* what could not grow is as it was */
    coordi_free(kept);
    void *after = coordi_alloc(1);
    assert_non_null(after);
    coordi_free(after);
    assert_int_equal(asked, 6);
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    coordi_free(NULL);
    coord_free(NULL);
}

static void the_library_and_its_headers_are_of_one_release(void **state)
{
    (void)state;
    assert_string_equal(coord_version(), COORD_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_is_still_a_block_of_its_own),
        cmocka_unit_test(zalloc_gives_zeros),
        cmocka_unit_test(copies_are_closed_by_a_nul),
        cmocka_unit_test(every_call_can_be_made_to_fail),
        cmocka_unit_test(freeing_nothing_is_fine),
        cmocka_unit_test(the_library_and_its_headers_are_of_one_release),
    };
    return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
