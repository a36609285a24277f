#include "base/alloc.h"
#include "base/buf.h"
#include "codec/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static void assert_holds(const coordi_buf *buf, const char *expected)
{
    assert_false(buf->failed);
    assert_int_equal(buf->len, strlen(expected));
    assert_memory_equal(buf->ptr, expected, buf->len);
}

static void pieces_add_up_in_order(void **state)
{
    (void)state;
    coordi_buf buf = {0};
    coordi_buf_adds(&buf, "a string, ");
    coordi_buf_add(&buf, "some bytesXXX", 10);
    coordi_buf_addt(&buf, coord_text_of(", a text"));
    coordi_buf_addf(&buf, ", %s %d %5.2f", "number", -7, 1.5);
    coordi_buf_adds(&buf, "");
    coordi_buf_add(&buf, NULL, 0);
    coordi_buf_addt(&buf, (coord_text){NULL, 0});
    assert_holds(&buf, "a string, some bytes, a text, number -7  1.50");
    coordi_buf_done(&buf);
    assert_null(buf.ptr);
    assert_int_equal(buf.len, 0);
    coordi_buf_done(&buf); /* once more does nothing */
}

static void nul_bytes_are_kept(void **state)
{
    (void)state;
    coordi_buf buf = {0};
    size_t len = 0;
    coordi_buf_add(&buf, "a\0b", 3);
    char *taken = coordi_buf_take(&buf, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(taken, "a\0b", 4);
    coordi_free(taken);
}

static void it_grows_to_any_size(void **state)
{
    (void)state;
    coordi_buf buf = {0};
    for (int i = 0; i < 100000; i++) {
        coordi_buf_addf(&buf, "%06d", i);
    }
    assert_false(buf.failed);
    assert_int_equal(buf.len, 600000);
    assert_memory_equal(buf.ptr + 6 * 99999, "099999", 6);
    coordi_buf_done(&buf);
}

static void a_long_line_is_printed_whole(void **state)
{
    (void)state;
    static char word[5000];
    coordi_buf buf = {0};
    size_t len = 0;
    memset(word, 'w', sizeof word - 1);
    for (int i = 120; i < 140; i++) { /* around the first size of the buffer */
        coordi_buf_addf(&buf, "%.*s|", i, word);
        assert_int_equal(buf.ptr[buf.len - 1], '|');
    }
    coordi_buf_done(&buf);
    coordi_buf_addf(&buf, "<%s>", word);
    char *taken = coordi_buf_take(&buf, &len);
    assert_int_equal(len, sizeof word + 1);
    assert_int_equal(strlen(taken), len);
    coordi_free(taken);
}

static void taking_hands_the_text_over_and_leaves_the_buffer_empty(void **state)
{
    (void)state;
    coordi_buf buf = {0};
    coordi_buf_adds(&buf, "text");
    char *taken = coordi_buf_take(&buf, NULL);
    assert_string_equal(taken, "text");
    assert_null(buf.ptr);
    coordi_free(taken);

    size_t len = 99;
    taken = coordi_buf_take(&buf, &len); /* of nothing */
    assert_string_equal(taken, "");
    assert_int_equal(len, 0);
    coordi_free(taken);
}

static void reserved_room_is_there(void **state)
{
    (void)state;
    coordi_buf buf = {0};
    int none = 0;
    assert_true(coordi_buf_reserve(&buf, 10000));
    coordi_alloc_set_fault(countdown, &none);
    for (int i = 0; i < 1000; i++) {
        coordi_buf_adds(&buf, "0123456789");
    }
    char *taken = coordi_buf_take(&buf, NULL);
    coordi_alloc_set_fault(NULL, NULL);
    assert_int_equal(strlen(taken), 10000);
    coordi_free(taken);
}

static void an_absurd_size_fails_instead_of_wrapping_around(void **state)
{
    (void)state;
    static const size_t SIZE[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, SIZE_MAX / 2 - 1};
    for (size_t i = 0; i < 4; i++) {
        coordi_buf buf = {0};
        coordi_buf_adds(&buf, "abc");
        assert_false(coordi_buf_reserve(&buf, SIZE[i]));
        assert_true(buf.failed);
        coordi_buf_done(&buf);
    }
}

static void failure_is_sticky(void **state)
{
    (void)state;
    coordi_buf buf = {0};
    size_t len = 99;
    int none = 0;
    coordi_buf_adds(&buf, "before");
    coordi_alloc_set_fault(countdown, &none);
    coordi_buf_addf(&buf, "%200d", 1);
    coordi_alloc_set_fault(NULL, NULL);
    assert_true(buf.failed);
    coordi_buf_adds(&buf, "after"); /* there is memory again, but a piece is missing */
    coordi_buf_addf(&buf, "%d", 1);
    coordi_buf_add_json(&buf, "x", 1);
    assert_false(coordi_buf_reserve(&buf, 0));
    assert_true(buf.failed);
    assert_int_equal(buf.len, strlen("before"));
    assert_null(coordi_buf_take(&buf, &len));
    assert_int_equal(len, 99);
    coordi_buf_adds(&buf, "anew"); /* a taken buffer starts again */
    assert_holds(&buf, "anew");
    coordi_buf_done(&buf);
}

static void assert_json(const char *bytes, size_t len, const char *expected)
{
    coordi_buf buf = {0};
    coordi_buf_add_json(&buf, bytes, len);
    assert_holds(&buf, expected);
    coordi_buf_done(&buf);
}

static void json_escapes_every_control_character(void **state)
{
    (void)state;
    for (int c = 0; c < 0x20; c++) {
        char byte = (char)c;
        char text[3] = {'a', byte, 'b'};
        char expected[16];
        (void)snprintf(expected, sizeof expected, "\"a\\u%04xb\"", (unsigned)c);
        assert_json(text, 3, expected);
        (void)snprintf(expected, sizeof expected, "\"\\u%04x\"", (unsigned)c);
        assert_json(&byte, 1, expected);
    }
}

static void json_escapes_quote_and_backslash_and_nothing_else(void **state)
{
    (void)state;
    assert_json("", 0, "\"\"");
    assert_json(NULL, 0, "\"\"");
    assert_json("\"", 1, "\"\\\"\"");
    assert_json("\\", 1, "\"\\\\\"");
    assert_json("say \"\\o/\"", 9, "\"say \\\"\\\\o/\\\"\"");
    for (int c = 0x20; c < 0x100; c++) {
        char byte = (char)c;
        char expected[4] = {'"', byte, '"', '\0'};
        if (c != '"' && c != '\\') {
            assert_json(&byte, 1, expected);
        }
    }
}

static void what_json_escapes_reads_back_the_same(void **state)
{
    (void)state;
    char all[127];
    char back[sizeof all + 1];
    coordi_buf buf = {0};
    for (int c = 1; c < 128; c++) {
        all[c - 1] = (char)c;
    }
    coordi_buf_add_json(&buf, all, sizeof all);
    coord_text made = {buf.ptr, buf.len};
    assert_int_equal(coordi_json_check(made, NULL), COORD_OK);
    assert_int_equal(coordi_json_string(made, back, sizeof back), COORD_OK);
    assert_memory_equal(back, all, sizeof all);
    coordi_buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_add_up_in_order),
        cmocka_unit_test(nul_bytes_are_kept),
        cmocka_unit_test(it_grows_to_any_size),
        cmocka_unit_test(a_long_line_is_printed_whole),
        cmocka_unit_test(taking_hands_the_text_over_and_leaves_the_buffer_empty),
        cmocka_unit_test(reserved_room_is_there),
        cmocka_unit_test(an_absurd_size_fails_instead_of_wrapping_around),
        cmocka_unit_test(failure_is_sticky),
        cmocka_unit_test(json_escapes_every_control_character),
        cmocka_unit_test(json_escapes_quote_and_backslash_and_nothing_else),
        cmocka_unit_test(what_json_escapes_reads_back_the_same),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
