#include "base/uuid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CANON "12345678-90ab-cdef-1234-567890abcdef"

static void assert_read(const char *text, const char *expected)
{
    char out[COORDI_UUID_SIZE] = "untouched";
    if (!coordi_uuid_read(text, strlen(text), out) || strcmp(out, expected) != 0) {
        fail_msg("<%s> became <%s>", text, out);
    }
}

static void assert_none(const char *text)
{
    char out[COORDI_UUID_SIZE] = "untouched";
    if (coordi_uuid_read(text, strlen(text), out) || strcmp(out, "untouched") != 0) {
        fail_msg("<%s> became <%s>", text, out);
    }
}

static void every_spelling_of_python_is_read(void **state)
{
    (void)state;
    static const char *const SPELLING[] = {
        CANON,
        "1234567890abcdef1234567890abcdef",
        "1234567890ABCDEF1234567890aBcDeF",
        "{" CANON "}",
        "{{{" CANON "}}}",
        "}}" CANON "{",
        "{" CANON,
        CANON "}",
        "urn:uuid:" CANON,
        "uuid:" CANON,
        "urn:" CANON,
        "{urn:uuid:" CANON "}",
        "urn:uuid:{" CANON "}",
        "12345678-90abuuid:-cdef-1234-567890aburn:cdef",
        "uuid:uuid:urn:urn:" CANON,
        CANON "urn:",
        "uuurn:id:" CANON, /* "urn:" goes first, which makes a "uuid:" */
        "-1-2-3-4-5-6-7-8-9-0-a-b-c-d-e-f-1-2-3-4-5-6-7-8-9-0-a-b-c-d-e-f-",
        "1234567890abcdef--------1234567890abcdef",
        "{-" CANON "-}",
    };
    for (size_t i = 0; i < sizeof SPELLING / sizeof SPELLING[0]; i++) {
        assert_read(SPELLING[i], CANON);
    }
    assert_read("urn:uuid:{ABCDEFAB-CDEF-ABCD-EFAB-CDEFABCDEFAB}",
                "abcdefab-cdef-abcd-efab-cdefabcdefab");
}

static void neither_version_nor_variant_matters(void **state)
{
    (void)state;
    assert_read("00000000-0000-0000-0000-000000000000",
                "00000000-0000-0000-0000-000000000000");
    assert_read("FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
                "ffffffff-ffff-ffff-ffff-ffffffffffff");
}

static void anything_else_is_none(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",
        "-",
        "{}",
        "zz",
        "1",
        "urn:uuid:",
        "1234567890abcdef1234567890abcde",     /* a digit short */
        "1234567890abcdef1234567890abcdef0",   /* one more */
        "1234567890abcdef1234567890abcdeg",    /* not hex */
        " 1234567890abcdef1234567890abcdef",   /* blanks */
        "1234567890abcdef1234567890abcdef ",   /**/
        " 234567890abcdef1234567890abcdef",    /* in place of a digit */
        "1234567890abcdef 1234567890abcdef",   /**/
        "+1234567890abcdef1234567890abcde",    /* what only int() takes */
        "0x1234567890abcdef1234567890abcd",    /**/
        "1234_567890abcdef1234567890abcde",    /**/
        "1234567890abcdef{1234567890abcdef",   /* braces inside */
        "-{1234567890abcdef1234567890abcdef}", /* braces that a hyphen shields */
        "URN:1234567890abcdef1234567890abcdef",
        "UUID:1234567890abcdef1234567890abcdef",
        "uuuid:urn:uid:1234567890abcdef1234567890abcdef",
        "(1234567890abcdef1234567890abcdef)",
        "\xd9\xa1-34567890abcdef1234567890abcdef",
    };
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        assert_none(BAD[i]);
    }
}

static void a_nul_inside_is_no_digit(void **state)
{
    (void)state;
    char out[COORDI_UUID_SIZE];
    char text[32];
    memset(text, 'a', sizeof text);
    assert_true(coordi_uuid_read(text, sizeof text, out));
    text[31] = '\0';
    assert_false(coordi_uuid_read(text, sizeof text, out));
}

static void very_long_text_is_none(void **state)
{
    (void)state;
    static char text[100000];
    memset(text, '-', sizeof text - 1);
    memcpy(text, "1234567890abcdef1234567890abcdef", 32);
    assert_none(text);
    text[128] = '\0'; /* but 128 bytes are fine */
    assert_read(text, CANON);
}

static void bytes_are_printed_in_canonical_form(void **state)
{
    (void)state;
    unsigned char bytes[16];
    char out[COORDI_UUID_SIZE];
    char again[COORDI_UUID_SIZE];
    for (size_t i = 0; i < 16; i++) {
        bytes[i] = (unsigned char)(0xf1 * i);
    }
    coordi_uuid_print(bytes, out);
    assert_string_equal(out, "00f1e2d3-c4b5-a697-8879-6a5b4c3d2e1f");
    assert_true(coordi_uuid_read(out, strlen(out), again));
    assert_string_equal(again, out);
}

static void version_4_marks_six_bits_and_keeps_the_rest(void **state)
{
    (void)state;
    unsigned char ones[16];
    unsigned char zeros[16] = {0};
    char out[COORDI_UUID_SIZE];
    memset(ones, 0xff, sizeof ones);
    coordi_uuid_mark_v4(ones);
    coordi_uuid_print(ones, out);
    assert_string_equal(out, "ffffffff-ffff-4fff-bfff-ffffffffffff");
    coordi_uuid_mark_v4(zeros);
    coordi_uuid_print(zeros, out);
    assert_string_equal(out, "00000000-0000-4000-8000-000000000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_of_python_is_read),
        cmocka_unit_test(neither_version_nor_variant_matters),
        cmocka_unit_test(anything_else_is_none),
        cmocka_unit_test(a_nul_inside_is_no_digit),
        cmocka_unit_test(very_long_text_is_none),
        cmocka_unit_test(bytes_are_printed_in_canonical_form),
        cmocka_unit_test(version_4_marks_six_bits_and_keeps_the_rest),
    };
    return cmocka_run_group_tests_name("uuid", tests, NULL, NULL);
}
