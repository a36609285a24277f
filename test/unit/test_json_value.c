#include "codec/json.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static coord_text text(const char *string)
{
    return coord_text_of(string);
}

static void assert_text(coord_text got, const char *expected)
{
    if (got.len != strlen(expected) || memcmp(got.ptr, expected, got.len) != 0) {
        fail_msg("expected <%s>, got <%.*s>", expected, (int)got.len, got.ptr);
    }
}

static void types_are_told_by_the_first_byte(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        coordi_json_type type;
    } CASE[] = {{"", COORDI_JSON_NONE},           {"  ", COORDI_JSON_NONE},
                {"?", COORDI_JSON_NONE},          {"null", COORDI_JSON_NULL},
                {" true", COORDI_JSON_BOOL},      {"false", COORDI_JSON_BOOL},
                {"0", COORDI_JSON_NUMBER},        {"-1", COORDI_JSON_NUMBER},
                {"9e9", COORDI_JSON_NUMBER},      {"NaN", COORDI_JSON_NUMBER},
                {"Infinity", COORDI_JSON_NUMBER}, {"\"\"", COORDI_JSON_STRING},
                {"\t[]", COORDI_JSON_ARRAY},      {"\n{}", COORDI_JSON_OBJECT}};
    for (size_t i = 0; i < COUNT(CASE); i++) {
        assert_int_equal(coordi_json_type_of(text(CASE[i].text)), CASE[i].type);
    }
    assert_int_equal(coordi_json_type_of((coord_text){NULL, 0}), COORDI_JSON_NONE);
}

static void truth_is_what_python_takes_for_true(void **state)
{
    (void)state;
    static const char *const FALSY[] = {
        "null", "false", "0",    "-0", "0.0", "-0.000", "0e5",    "0E+9", "\"\"", "[]",
        "[ ]",  "{}",    "{\n}", "",   " ",   " [] ",   "1e-999", "-0.0", " 0 "};
    static const char *const TRUTHY[] = {
        "true", "1",        "-1",        "0.1",   "1e-300",
        "NaN",  "Infinity", "-Infinity", "\"0\"", "\" \"",
        "[0]",  "[[]]",     "{\"\":0}",  "1e999", "100000000000000000000000000000"};
    for (size_t i = 0; i < COUNT(FALSY); i++) {
        if (coordi_json_truth(text(FALSY[i]))) {
            fail_msg("%s is true", FALSY[i]);
        }
    }
    for (size_t i = 0; i < COUNT(TRUTHY); i++) {
        if (!coordi_json_truth(text(TRUTHY[i]))) {
            fail_msg("%s is false", TRUTHY[i]);
        }
    }
}

static void only_true_and_false_are_bools(void **state)
{
    (void)state;
    bool value = false;
    assert_true(coordi_json_bool(text(" true "), &value));
    assert_true(value);
    assert_true(coordi_json_bool(text("false"), &value));
    assert_false(value);
    static const char *const BAD[] = {"0", "1", "null", "\"true\"", "truer", "", "t"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        assert_false(coordi_json_bool(text(BAD[i]), &value));
    }
}

static void integers_are_spelled_as_such_and_in_range(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } GOOD[] = {{"0", 0},
                {"-0", 0},
                {"7", 7},
                {" -12 ", -12},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"-9223372036854775807", -INT64_MAX}};
    for (size_t i = 0; i < COUNT(GOOD); i++) {
        int64_t value = 99;
        assert_true(coordi_json_int(text(GOOD[i].text), &value));
        assert_true(value == GOOD[i].value);
    }
    static const char *const BAD[] = {"9223372036854775808",
                                      "-9223372036854775809",
                                      "1.0",
                                      "1e2",
                                      "99999999999999999999",
                                      "-18446744073709551616",
                                      "\"1\"",
                                      "true",
                                      "null",
                                      "",
                                      "-",
                                      "NaN",
                                      "Infinity",
                                      "-Infinity",
                                      "01",
                                      "1 2",
                                      "[1]"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        int64_t value = 99;
        if (coordi_json_int(text(BAD[i]), &value) || value != 99) {
            fail_msg("%s became %lld", BAD[i], (long long)value);
        }
    }
}

static void assert_double(const char *spelled)
{
    double got = -1;
    double expected = strtod(spelled, NULL);
    if (!coordi_json_double(text(spelled), &got) || got != expected ||
        signbit(got) != signbit(expected)) {
        fail_msg("%s: expected %a, got %a", spelled, expected, got);
    }
}

static void doubles_are_rounded_like_strtod(void **state)
{
    (void)state;
    static const char *const CASE[] = {"0",
                                       "-0",
                                       "0.0",
                                       "-0.0",
                                       "1",
                                       "-1",
                                       "0.1",
                                       "0.2",
                                       "0.3",
                                       "123.456",
                                       "1e22",
                                       "1e23",
                                       "1e-22",
                                       "1e-23",
                                       "123456789012345",
                                       "1234567890123456",
                                       "9007199254740993",
                                       "9007199254740992.5",
                                       "9007199254740993.0000000000000000000000000001",
                                       "5e-324",
                                       "2.4703282292062327e-324",
                                       "2.4703282292062328e-324",
                                       "2.2250738585072011e-308",
                                       "1.7976931348623157e308",
                                       "1.7976931348623159e308",
                                       "1e308",
                                       "1e309",
                                       "-1e999",
                                       "1e-999",
                                       "0e99999999999999999999",
                                       "1e99999999999999999999999",
                                       "1e-99999999999999999999999",
                                       "100000000000000000000000000000000000000",
                                       "0.000000000000000000000000000000000000000123",
                                       "1000000e-6",
                                       "0.00001e5"};
    for (size_t i = 0; i < COUNT(CASE); i++) {
        assert_double(CASE[i]);
    }
    double value;
    assert_true(coordi_json_double(text("NaN"), &value) && isnan(value));
    assert_true(coordi_json_double(text("Infinity"), &value) && isinf(value) &&
                value > 0);
    assert_true(coordi_json_double(text(" -Infinity "), &value) && isinf(value) &&
                value < 0);
    static const char *const BAD[] = {"",     "null", "\"1\"", "1.",
                                      "true", "1 1",  "nan",   "[1]"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        assert_false(coordi_json_double(text(BAD[i]), &value));
    }
}

static void random_doubles_come_back_as_they_were(void **state)
{
    (void)state;
    uint64_t seed = 88172645463325252U;
    for (int i = 0; i < 20000; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        double value;
        char spelled[64];
        memcpy(&value, &seed, sizeof value);
        if (isfinite(value)) {
            (void)snprintf(spelled, sizeof spelled, "%.*g", 1 + i % 20, value);
            assert_double(spelled);
        }
    }
}

/* Half way between two doubles, and then a one far behind. */
static void very_long_numbers_are_rounded_by_their_last_digit(void **state)
{
    (void)state;
    char spelled[3000];
    memset(spelled, '0', sizeof spelled);
    memcpy(spelled, "9007199254740993.", 17);
    spelled[2998] = '0';
    spelled[2999] = '\0';
    assert_double(spelled);
    spelled[2998] = '1';
    assert_double(spelled);

    memset(spelled, '9', 2000);
    spelled[2000] = '\0';
    assert_double(spelled);
    memcpy(spelled + 2000, "e-1990", sizeof "e-1990");
    assert_double(spelled);
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    (void)state;
    double value;
    (void)setlocale(LC_NUMERIC, "de_DE.UTF-8"); /* where it is installed */
    assert_true(coordi_json_double(text("0.12345678901234567"), &value));
    (void)setlocale(LC_NUMERIC, "C");
    assert_true(value > 0.1234 && value < 0.1235);
}

static void strings_are_decoded(void **state)
{
    (void)state;
    char out[64];
    static const struct {
        const char *raw;
        const char *text;
    } CASE[] = {{"\"\"", ""},
                {" \"abc\" ", "abc"},
                {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
                {"\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"",
                 "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
                {"\"x\xc3\xa9y\\u007fz\"", "x\xc3\xa9y\x7fz"}};
    for (size_t i = 0; i < COUNT(CASE); i++) {
        coordi_buf buf = {0};
        assert_int_equal(coordi_json_string(text(CASE[i].raw), out, sizeof out),
                         COORD_OK);
        assert_string_equal(out, CASE[i].text);
        assert_int_equal(coordi_json_string_add(text(CASE[i].raw), &buf), COORD_OK);
        assert_text((coord_text){buf.ptr, buf.len}, CASE[i].text);
        assert_true(coordi_json_string_is(text(CASE[i].raw), CASE[i].text));
        assert_false(coordi_json_string_is(text(CASE[i].raw), "other"));
        coordi_buf_done(&buf);
    }
}

static void what_c_cannot_hold_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"\"\\u0000\"",
                                      "\"a\\ud800\"",
                                      "\"\\udc00\"",
                                      "\"\\ud800\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\\ud800x\"",
                                      "1",
                                      "null",
                                      "",
                                      "\"a",
                                      "\"a\"b",
                                      "\"a\" \"b\"",
                                      "\"",
                                      "[\"a\"]"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        char out[64] = "before";
        coordi_buf buf = {0};
        coordi_buf_adds(&buf, "kept");
        assert_int_equal(coordi_json_string(text(BAD[i]), out, sizeof out),
                         COORD_ERR_FORMAT);
        assert_string_equal(out, "");
        assert_int_equal(coordi_json_string_add(text(BAD[i]), &buf), COORD_ERR_FORMAT);
        assert_text((coord_text){buf.ptr, buf.len}, "kept");
        coordi_buf_done(&buf);
    }
}

static void any_string_can_be_decoded_with_replacements(void **state)
{
    (void)state;
    coordi_buf buf = {0};
    assert_int_equal(coordi_json_string_add_any(
                         text("\"a\\u0000\\ud800b\\udc00\\ud800\\u0041\""), &buf),
                     COORD_OK);
    static const char EXPECTED[] = "a\0\xef\xbf\xbd"
                                   "b\xef\xbf\xbd\xef\xbf\xbd"
                                   "A";
    assert_int_equal(buf.len, sizeof EXPECTED - 1);
    assert_memory_equal(buf.ptr, EXPECTED, buf.len);
    assert_int_equal(coordi_json_string_add_any(text("7"), &buf), COORD_ERR_FORMAT);
    coordi_buf_done(&buf);
}

static void a_string_has_to_fit(void **state)
{
    (void)state;
    char out[5];
    assert_int_equal(coordi_json_string(text("\"abcd\""), out, sizeof out), COORD_OK);
    assert_string_equal(out, "abcd");
    assert_int_equal(coordi_json_string(text("\"abcde\""), out, sizeof out),
                     COORD_ERR_TOO_BIG);
    assert_string_equal(out, "");
    assert_int_equal(coordi_json_string(text("\"abc\\u00e9\""), out, sizeof out),
                     COORD_ERR_TOO_BIG);
    assert_int_equal(coordi_json_string(text("\"ab\\u00e9\""), out, sizeof out),
                     COORD_OK);
    assert_int_equal(coordi_json_string(text("\"\""), out, 1), COORD_OK);
    assert_int_equal(coordi_json_string(text("\"\""), out, 0), COORD_ERR_TOO_BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_told_by_the_first_byte),
        cmocka_unit_test(truth_is_what_python_takes_for_true),
        cmocka_unit_test(only_true_and_false_are_bools),
        cmocka_unit_test(integers_are_spelled_as_such_and_in_range),
        cmocka_unit_test(doubles_are_rounded_like_strtod),
        cmocka_unit_test(random_doubles_come_back_as_they_were),
        cmocka_unit_test(very_long_numbers_are_rounded_by_their_last_digit),
        cmocka_unit_test(numbers_do_not_depend_on_the_locale),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(what_c_cannot_hold_is_refused),
        cmocka_unit_test(any_string_can_be_decoded_with_replacements),
        cmocka_unit_test(a_string_has_to_fit),
    };
    return cmocka_run_group_tests_name("json_value", tests, NULL, NULL);
}
