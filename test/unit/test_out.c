#include "base/alloc.h"
#include "codec/out.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static void assert_holds(const coord_out *out, const char *expected)
{
    coord_text got = coordi_out_text(out);
    assert_int_equal(got.len, strlen(expected));
    assert_memory_equal(got.ptr, expected, got.len);
}

static void what_is_put_in_is_copied_byte_for_byte(void **state)
{
    (void)state;
    char json[] = " {\"a\": [NaN, 1e999]} ";
    coord_out out = {0};
    assert_int_equal(coord_out_json(&out, coord_text_of(json), NULL), COORD_OK);
    memset(json, 'x', sizeof json - 1);
    assert_true(out.set);
    assert_holds(&out, " {\"a\": [NaN, 1e999]} ");
    coordi_out_done(&out);
    assert_false(out.set);
}

static void the_last_answer_counts(void **state)
{
    (void)state;
    coord_out out = {0};
    assert_int_equal(coord_out_json(&out, coord_text_of("[1,2,3]"), NULL), COORD_OK);
    assert_int_equal(coord_out_printf(&out, NULL, "{\"step\": %d}", 7), COORD_OK);
    assert_holds(&out, "{\"step\": 7}");
    coordi_out_done(&out);
}

static void a_malformed_answer_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    coord_out out = {0};
    coord_error err;
    assert_int_equal(coord_out_json(&out, coord_text_of("{]"), &err), COORD_ERR_FORMAT);
    assert_string_equal(err.text, "JSON, byte 1: expected a key in quotes, got ']'");
    assert_false(out.set);
    assert_null(coordi_out_text(&out).ptr);

    assert_int_equal(coord_out_json(&out, coord_text_of("1"), &err), COORD_OK);
    assert_int_equal(coord_out_json(&out, (coord_text){NULL, 0}, &err), COORD_ERR_FORMAT);
    assert_int_equal(coord_out_printf(&out, &err, "{\"a\": %s}", "x"), COORD_ERR_FORMAT);
    assert_holds(&out, "1");
    coordi_out_done(&out);
}

static void arguments_are_looked_at(void **state)
{
    (void)state;
    coord_out out = {0};
    coord_error err;
    const char *volatile none = NULL;
    assert_int_equal(coord_out_json(NULL, coord_text_of("1"), &err), COORD_ERR_ARG);
    assert_int_equal(coord_out_printf(NULL, &err, "%d", 1), COORD_ERR_ARG);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    assert_int_equal(coord_out_printf(&out, &err, none), COORD_ERR_ARG);
#pragma GCC diagnostic pop
}

static void printf_makes_long_answers_too(void **state)
{
    (void)state;
    static char word[10000];
    coord_out out = {0};
    memset(word, 'w', sizeof word - 1);
    assert_int_equal(coord_out_printf(&out, NULL, "[\"%s\", %d]", word, 5), COORD_OK);
    assert_int_equal(coordi_out_text(&out).len, sizeof word - 1 + 7);
    coordi_out_done(&out);
}

static void the_text_can_be_taken_once(void **state)
{
    (void)state;
    coord_out out = {0};
    size_t len = 0;
    int none = 0;
    assert_null(coordi_out_take(&out, &len));
    assert_int_equal(coord_out_json(&out, coord_text_of("[true]"), NULL), COORD_OK);
    coordi_alloc_set_fault(countdown, &none); /* it needs no memory */
    char *taken = coordi_out_take(&out, &len);
    coordi_alloc_set_fault(NULL, NULL);
    assert_string_equal(taken, "[true]");
    assert_int_equal(len, 6);
    assert_null(coordi_out_take(&out, NULL));
    coord_free(taken);
    coordi_out_done(&out);
}

static void without_memory_the_old_answer_stays(void **state)
{
    (void)state;
    coord_out out = {0};
    coord_error err;
    int none = 0;
    assert_int_equal(coord_out_json(&out, coord_text_of("1"), NULL), COORD_OK);
    coordi_alloc_set_fault(countdown, &none);
    assert_int_equal(coord_out_json(&out, coord_text_of("2"), &err), COORD_ERR_NOMEM);
    assert_int_equal(coord_out_printf(&out, &err, "3"), COORD_ERR_NOMEM);
    coordi_alloc_set_fault(NULL, NULL);
    assert_string_equal(err.text, "answer of a callback: out of memory");
    assert_holds(&out, "1");
    coordi_out_done(&out);
}

static void lines_are_added_one_after_the_other(void **state)
{
    (void)state;
    coord_out out = {.lines = true};
    coord_error err;
    int none = 0;
    assert_int_equal(coord_out_line(&out, NULL, "a %d", 1), COORD_OK);
    assert_int_equal(coord_out_line(&out, NULL, "%s", ""), COORD_OK);
    assert_holds(&out, "a 1\n\n");
    assert_int_equal(coord_out_json(&out, coord_text_of("1"), &err), COORD_ERR_ARG);
    assert_string_equal(err.text, "this callback answers with lines of text, not JSON");
    assert_int_equal(coord_out_printf(&out, NULL, "b:%d\nc", 2), COORD_OK);
    assert_int_equal(coord_out_line(&out, NULL, "d"), COORD_OK);
    assert_holds(&out, "b:2\ncd\n");
    coordi_alloc_set_fault(countdown, &none);
    coord_status rc = coord_out_line(&out, &err, "%500d", 7);
    coordi_alloc_set_fault(NULL, NULL);
    assert_int_equal(rc, COORD_ERR_NOMEM);
    assert_holds(&out, "b:2\ncd\n");
    assert_int_equal(coord_out_line(&out, NULL, "e"), COORD_OK);
    assert_holds(&out, "b:2\ncd\ne\n");
    coordi_out_done(&out);

    coord_out json = {0};
    assert_int_equal(coord_out_line(&json, &err, "a"), COORD_ERR_ARG);
    assert_string_equal(err.text,
                        "this callback answers with JSON, not with lines of text");
    assert_false(json.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_in_is_copied_byte_for_byte),
        cmocka_unit_test(the_last_answer_counts),
        cmocka_unit_test(a_malformed_answer_is_refused_and_changes_nothing),
        cmocka_unit_test(arguments_are_looked_at),
        cmocka_unit_test(printf_makes_long_answers_too),
        cmocka_unit_test(the_text_can_be_taken_once),
        cmocka_unit_test(without_memory_the_old_answer_stays),
        cmocka_unit_test(lines_are_added_one_after_the_other),
    };
    return cmocka_run_group_tests_name("out", tests, NULL, NULL);
}
