#include "base/alloc.h"
#include "codec/json.h"

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

/* Lets every allocation fail after the first few. */
static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

/* ---- check ---- */

static void what_python_reads_is_accepted(void **state)
{
    (void)state;
    static const char *const GOOD[] = {
        "null",
        "true",
        "false",
        "NaN",
        "Infinity",
        "-Infinity",
        "0",
        "-0",
        "0.0",
        "-1.5e+10",
        "1E-7",
        "1e999",
        "123456789012345678901234567890",
        "\"\"",
        "\"a\\u0000b\"",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\\uD83D\\uDe00\"",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\x7f\"",
        "\"\xc2\x80\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf\"",
        "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"",
        "[]",
        "[ ]",
        "{}",
        "{ }",
        "[[],{},[{}],\"\"]",
        " \t\r\n{ \"a\" : [ 1 , 2 ] , \"a\" : null } \n",
        "{\"\":{\"\":[NaN,-Infinity]}}"};
    for (size_t i = 0; i < COUNT(GOOD); i++) {
        coord_error err;
        if (coordi_json_check(text(GOOD[i]), &err) != COORD_OK) {
            fail_msg("%s: %s", GOOD[i], err.text);
        }
    }
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t offset;
        const char *said;
    } BAD[] = {
        {"", 0, "expected a value, got the end"},
        {"  ", 2, "expected a value, got the end"},
        {"[1,]", 3, "expected a value, got ']'"},
        {"[1", 2, "expected ',' or ']', got the end"},
        {"[1 2]", 3, "expected ',' or ']', got '2'"},
        {"[1}", 2, "expected ',' or ']', got '}'"},
        {"]", 0, "expected a value, got ']'"},
        {"[,1]", 1, "expected a value, got ','"},
        {"[", 1, "expected a value, got the end"},
        {"{", 1, "expected a key in quotes, got the end"},
        {"{\"a\":1,}", 7, "expected a key in quotes, got '}'"},
        {"{a:1}", 1, "expected a key in quotes, got 'a'"},
        {"{\"a\" 1}", 5, "expected ':' after a key, got '1'"},
        {"{\"a\"", 4, "expected ':' after a key, got the end"},
        {"{\"a\":}", 5, "expected a value, got '}'"},
        {"{\"a\":1", 6, "expected ',' or '}', got the end"},
        {"{\"a\":1 \"b\":2}", 7, "expected ',' or '}', got '\"'"},
        {"1 2", 2, "expected nothing more, got '2'"},
        {"{}}", 2, "expected nothing more, got '}'"},
        {"nul", 0, "expected a value, got 'n'"},
        {"nullx", 4, "expected nothing more, got 'x'"},
        {"True", 0, "expected a value, got 'T'"},
        {"nan", 0, "expected a value, got 'n'"},
        {"+1", 0, "expected a value, got '+'"},
        {".5", 0, "expected a value, got '.'"},
        {"1.", 2, "expected a digit, got the end"},
        {"1.e5", 2, "expected a digit, got 'e'"},
        {"1e", 2, "expected a digit, got the end"},
        {"1e+", 3, "expected a digit, got the end"},
        {"-", 1, "expected a digit, got the end"},
        {"--1", 1, "expected a digit, got '-'"},
        {"-NaN", 1, "expected a digit, got 'N'"},
        {"-Inf", 1, "expected a value, got 'I'"},
        {"01", 1, "expected nothing more, got '1'"},
        {"[00]", 2, "expected ',' or ']', got '0'"},
        {"0x1", 1, "expected nothing more, got 'x'"},
        {"\"", 1, "expected the closing quote of a string, got the end"},
        {"\"abcdefghijklmno", 16, "expected the closing quote of a string, got the end"},
        {"\"abcdefgh\x01\"", 9,
         "expected an escape instead of a control character, got byte"},
        {"\"\n\"", 1, "expected an escape instead of a control character, got byte 0x0a"},
        {"\"\\x\"", 2, "after a backslash, got 'x'"},
        {"\"\\", 2, "after a backslash, got the end"},
        {"\"\\u12g4\"", 5, "expected four hex digits after \\u, got 'g'"},
        {"\"\\u12", 5, "expected four hex digits after \\u, got the end"},
        {"\"\x80\"", 1, "expected well-formed UTF-8, got byte 0x80"},
        {"\"a\xc0\x80\"", 2, "expected well-formed UTF-8, got byte 0xc0"},
        {"\"\xc1\xbf\"", 1, "UTF-8"},
        {"\"\xe0\x9f\xbf\"", 1, "UTF-8"},
        {"\"\xed\xa0\x80\"", 1, "UTF-8"},
        {"\"\xf0\x8f\xbf\xbf\"", 1, "UTF-8"},
        {"\"\xf4\x90\x80\x80\"", 1, "UTF-8"},
        {"\"\xf5\x80\x80\x80\"", 1, "UTF-8"},
        {"\"\xff\"", 1, "UTF-8"},
        {"\"\xe2\x82\"", 1, "UTF-8"},
        {"\"\xe2\x82", 1, "UTF-8"},
        {"\"\xe2\"", 1, "UTF-8"},
        {"\xef\xbb\xbf{}", 0, "expected a value, got byte 0xef"},
        {"'a'", 0, "expected a value, got '''"},
        {"[1,//\n2]", 3, "expected a value, got '/'"},
        {"{\"a\":\f1}", 5, "expected a value, got byte 0x0c"}};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        coord_error err = {0};
        char place[32];
        (void)snprintf(place, sizeof place, "JSON, byte %zu: ", BAD[i].offset);
        coord_status rc = coordi_json_check(text(BAD[i].text), &err);
        if (rc != COORD_ERR_FORMAT || strstr(err.text, BAD[i].said) == NULL ||
            strncmp(err.text, place, strlen(place)) != 0) {
            fail_msg("<%s>: expected byte %zu, %s; got %d, %s", BAD[i].text,
                     BAD[i].offset, BAD[i].said, rc, err.text);
        }
        assert_int_equal(coordi_json_check(text(BAD[i].text), NULL), COORD_ERR_FORMAT);
    }
}

static void a_nul_is_a_byte_like_any_other(void **state)
{
    (void)state;
    assert_int_equal(coordi_json_check((coord_text){"1\0", 2}, NULL), COORD_ERR_FORMAT);
    assert_int_equal(coordi_json_check((coord_text){"\"\0\"", 3}, NULL),
                     COORD_ERR_FORMAT);
    assert_int_equal(coordi_json_check((coord_text){"\"\\\0\"", 4}, NULL),
                     COORD_ERR_FORMAT);
    assert_int_equal(coordi_json_check((coord_text){"[\0]", 3}, NULL), COORD_ERR_FORMAT);
    assert_int_equal(coordi_json_check((coord_text){NULL, 0}, NULL), COORD_ERR_FORMAT);
}

/* `depth` times open, then `middle`, then `depth` times close. Yours to free. */
static char *nested(const char *open, const char *close, size_t depth, const char *middle)
{
    size_t a = strlen(open);
    size_t b = strlen(close);
    char *out = malloc(depth * (a + b) + strlen(middle) + 1);
    char *at = out;
    assert_non_null(out);
    for (size_t i = 0; i < depth; i++, at += a) {
        memcpy(at, open, a);
    }
    memcpy(at, middle, strlen(middle));
    at += strlen(middle);
    for (size_t i = 0; i < depth; i++, at += b) {
        memcpy(at, close, b);
    }
    *at = '\0';
    return out;
}

static coord_status check_nested(const char *open, const char *close, size_t depth,
                                 coord_error *err)
{
    char *deep = nested(open, close, depth, "1");
    coord_status rc = coordi_json_check(text(deep), err);
    free(deep);
    return rc;
}

static void deep_nesting_works_up_to_the_limit(void **state)
{
    (void)state;
    coord_error err;
    assert_int_equal(check_nested("[", "]", 1000, &err), COORD_OK);
    assert_int_equal(check_nested("{\"a\":", "}", 1000, &err), COORD_OK);
    assert_int_equal(check_nested("[", "]", COORDI_JSON_MAX_DEPTH, &err), COORD_OK);
    assert_int_equal(check_nested("[{\"k\":", "}]", COORDI_JSON_MAX_DEPTH / 2, &err),
                     COORD_OK);

    assert_int_equal(check_nested("[", "]", COORDI_JSON_MAX_DEPTH + 1, &err),
                     COORD_ERR_FORMAT);
    assert_string_equal(err.text,
                        "JSON, byte 4096: expected at most 4096 levels of arrays "
                        "and objects, got '['");
    assert_int_equal(check_nested("[", "]", 1000000, &err), COORD_ERR_FORMAT);
    assert_int_equal(check_nested("{\"a\":", "}", 100000, &err), COORD_ERR_FORMAT);
}

static void levels_remember_what_they_are(void **state)
{
    (void)state;
    char *deep = nested("[{\"k\":", "}]", 100, "[1,{\"a\":2,\"b\":[]},{}]");
    assert_int_equal(coordi_json_check(text(deep), NULL), COORD_OK);
    /* Any one closing mark the other way round is wrong. */
    for (size_t i = 0; deep[i] != '\0'; i++) {
        char was = deep[i];
        if (was == ']' || was == '}') {
            deep[i] = was == ']' ? '}' : ']';
            assert_int_equal(coordi_json_check(text(deep), NULL), COORD_ERR_FORMAT);
            deep[i] = was;
        }
    }
    free(deep);
}

/* A special byte is seen wherever it stands in a long string. */
static void long_strings_are_checked_to_the_last_byte(void **state)
{
    (void)state;
    char string[64];
    for (size_t len = 2; len <= sizeof string; len++) {
        memset(string, 'x', len);
        string[0] = '"';
        string[len - 1] = '"';
        assert_int_equal(coordi_json_check((coord_text){string, len}, NULL), COORD_OK);
        for (size_t at = 1; at < len - 1; at++) {
            static const char ODD[] = {'"', '\\', '\0', '\x1f', '\x80', '\xff'};
            for (size_t i = 0; i < sizeof ODD; i++) {
                string[at] = ODD[i];
                coord_status rc = coordi_json_check((coord_text){string, len}, NULL);
                /* A backslash before the closing quote leaves the string open, and before
                 * an x is no escape. */
                assert_int_equal(rc, COORD_ERR_FORMAT);
            }
            static const char PLAIN[] = {' ', '!', '#', '[', ']', '\x7f', '~'};
            for (size_t i = 0; i < sizeof PLAIN; i++) {
                string[at] = PLAIN[i];
                assert_int_equal(coordi_json_check((coord_text){string, len}, NULL),
                                 COORD_OK);
            }
            string[at] = 'x';
        }
    }
}

/* ---- members ---- */

static void members_are_fetched_raw(void **state)
{
    (void)state;
    coord_text value;
    const char *object =
        " { \"a\" : 1e999 , \"b\":[1, 2] , \"c\": \"x\\u0041\", \"d\":{\"a\":3} } ";
    assert_int_equal(coordi_json_get(text(object), "a", &value, NULL), COORD_OK);
    assert_text(value, "1e999");
    assert_int_equal(coordi_json_get(text(object), "b", &value, NULL), COORD_OK);
    assert_text(value, "[1, 2]");
    assert_int_equal(coordi_json_get(text(object), "c", &value, NULL), COORD_OK);
    assert_text(value, "\"x\\u0041\"");
    assert_int_equal(coordi_json_get(text(object), "d", &value, NULL), COORD_OK);
    assert_text(value, "{\"a\":3}");
}

static void an_absent_member_is_named(void **state)
{
    (void)state;
    coord_error err;
    coord_text value = {"kept", 4};
    assert_int_equal(coordi_json_get(text("{\"a\":1}"), "b", &value, &err),
                     COORD_ERR_NOT_FOUND);
    assert_string_equal(err.text, "JSON: no member \"b\"");
    assert_text(value, "kept");
    assert_int_equal(coordi_json_get(text("{}"), "", &value, NULL), COORD_ERR_NOT_FOUND);
}

static void several_members_come_in_one_pass(void **state)
{
    (void)state;
    coordi_json_member m[] = {
        {.key = "id", .present = true}, {.key = "none"}, {.key = ""}, {.key = "data"}};
    const char *object =
        "{\"data\":null,\"\":7,\"other\":[{}],\"id\":\"x\",\"data\":{\"id\":1}}";
    assert_int_equal(coordi_json_get_many(text(object), m, COUNT(m), NULL), COORD_OK);
    assert_text(m[0].value, "\"x\"");
    assert_false(m[1].present);
    assert_null(m[1].value.ptr);
    assert_text(m[2].value, "7");
    assert_text(m[3].value, "{\"id\":1}"); /* the last one wins */
    assert_true(m[0].present && m[2].present && m[3].present);

    assert_int_equal(coordi_json_get_many(text("{}"), m, COUNT(m), NULL), COORD_OK);
    assert_false(m[0].present);
    assert_int_equal(coordi_json_get_many(text("{\"a\":1}"), NULL, 0, NULL), COORD_OK);
}

static void keys_are_compared_after_their_escapes_are_undone(void **state)
{
    (void)state;
    coord_text value;
    assert_int_equal(coordi_json_get(text("{\"\\u0069d\":1}"), "id", &value, NULL),
                     COORD_OK);
    assert_int_equal(
        coordi_json_get(text("{\"id\":1,\"i\\u0064\":2}"), "id", &value, NULL), COORD_OK);
    assert_text(value, "2");
    assert_int_equal(
        coordi_json_get(text("{\"\\\"\\\\\\/\\n\":3}"), "\"\\/\n", &value, NULL),
        COORD_OK);
    assert_text(value, "3");
    assert_int_equal(
        coordi_json_get(text("{\"\\ud83d\\ude00\":4}"), "\xf0\x9f\x98\x80", &value, NULL),
        COORD_OK);
    assert_text(value, "4");
    assert_int_equal(coordi_json_get(text("{\"\\u00e9\":5}"), "\xc3\xa9", &value, NULL),
                     COORD_OK);

    static const char *const OTHER[] = {
        "{\"\\u0069\":1}", "{\"\\u0069dd\":1}", "{\"\\u0069d\\u0000\":1}",
        "{\"\\u0000\":1}", "{\"\\ud800\":1}",   "{\"i\":1}",
        "{\"idd\":1}",     "{\"ID\":1}"};
    for (size_t i = 0; i < COUNT(OTHER); i++) {
        assert_int_equal(coordi_json_get(text(OTHER[i]), "id", &value, NULL),
                         COORD_ERR_NOT_FOUND);
    }
}

static void what_is_no_object_is_told_apart_from_what_is_malformed(void **state)
{
    (void)state;
    coord_error err;
    coord_text value;
    coordi_json_member m = {.key = "a", .present = true};
    assert_int_equal(coordi_json_get_many(text(" [1] "), &m, 1, &err), COORD_ERR_ARG);
    assert_string_equal(err.text, "JSON: expected an object, got [1]");
    assert_false(m.present);
    assert_int_equal(coordi_json_get(text("null"), "a", &value, &err), COORD_ERR_ARG);
    assert_int_equal(coordi_json_get(text("[1"), "a", &value, &err), COORD_ERR_FORMAT);
    assert_int_equal(coordi_json_get(text(""), "a", &value, &err), COORD_ERR_FORMAT);

    /* What comes after the member counts as well. */
    static const char *const BAD[] = {
        "{\"a\":1",          "{\"a\":1}x", "{\"a\":1,}", "{\"a\":1,\"b\"}",
        "{\"a\":1 \"b\":2}", "{,\"a\":1}", "{\"a\":1]"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        assert_int_equal(coordi_json_get_many(text(BAD[i]), &m, 1, &err),
                         COORD_ERR_FORMAT);
        assert_false(m.present);
    }
}

static void a_member_may_be_as_deep_as_the_limit(void **state)
{
    (void)state;
    coord_text value;
    char *deep = nested("{\"a\":", "}", COORDI_JSON_MAX_DEPTH, "1");
    assert_int_equal(coordi_json_get(text(deep), "a", &value, NULL), COORD_OK);
    free(deep);
    deep = nested("{\"a\":", "}", COORDI_JSON_MAX_DEPTH + 1, "1");
    assert_int_equal(coordi_json_get(text(deep), "a", &value, NULL), COORD_ERR_FORMAT);
    free(deep);
}

/* ---- walks ---- */

static void arrays_are_walked(void **state)
{
    (void)state;
    static const char *const ITEM[] = {"1", "\"a,b\"", "[2, 3]", "{\"x\":[]}", "null"};
    coord_text item = {NULL, 0};
    size_t at = 0;
    size_t count = 0;
    const coord_text array = text(" [1 , \"a,b\",[2, 3],\n{\"x\":[]}, null ] ");
    while (coordi_json_each(array, &at, &item)) {
        assert_true(count < COUNT(ITEM));
        assert_text(item, ITEM[count++]);
    }
    assert_int_equal(count, COUNT(ITEM));
    assert_false(coordi_json_each(array, &at, &item));

    static const char *const NONE[] = {"[]", "[ ]", "{}", "1", "", "\"[1]\"", "[", "[]]"};
    for (size_t i = 0; i < COUNT(NONE); i++) {
        at = 0;
        assert_false(coordi_json_each(text(NONE[i]), &at, &item));
    }
    at = 1000; /* a place from elsewhere does no harm */
    assert_false(coordi_json_each(text("[1,2]"), &at, &item));
}

static void objects_are_walked_with_duplicates(void **state)
{
    (void)state;
    coord_text key;
    coord_text value;
    size_t at = 0;
    const coord_text object = text("{ \"a\" : 1, \"\\u0062\":[2] ,\"a\":{} }");
    assert_true(coordi_json_each_member(object, &at, &key, &value));
    assert_text(key, "\"a\"");
    assert_text(value, "1");
    assert_true(coordi_json_each_member(object, &at, &key, &value));
    assert_text(key, "\"\\u0062\"");
    assert_true(coordi_json_string_is(key, "b"));
    assert_text(value, "[2]");
    assert_true(coordi_json_each_member(object, &at, &key, &value));
    assert_text(key, "\"a\"");
    assert_text(value, "{}");
    assert_false(coordi_json_each_member(object, &at, &key, &value));

    at = 0;
    assert_false(coordi_json_each_member(text("{}"), &at, &key, &value));
    assert_false(coordi_json_each_member(text("[1]"), &at, &key, &value));
}

/* ---- splice ---- */

static void assert_splice(const char *object, const coordi_json_member *m, size_t count,
                          const char *expected)
{
    coord_error err;
    coordi_buf buf = {0};
    coordi_buf_adds(&buf, "->");
    if (coordi_json_splice(&buf, text(object), m, count, &err) != COORD_OK) {
        fail_msg("%s: %s", object, err.text);
    }
    assert_memory_equal(buf.ptr, "->", 2);
    assert_text((coord_text){buf.ptr + 2, buf.len - 2}, expected);
    assert_int_equal(coordi_json_check((coord_text){buf.ptr + 2, buf.len - 2}, NULL),
                     COORD_OK);
    coordi_buf_done(&buf);
}

static void members_are_spliced_in_last(void **state)
{
    (void)state;
    const coordi_json_member m[] = {{"id", {"\"x\"", 3}, true},
                                    {"n", {"[1, 2]", 6}, true}};
    assert_splice("{}", m, 2, "{\"id\":\"x\",\"n\":[1, 2]}");
    assert_splice("{ }", m, 2, "{\"id\":\"x\",\"n\":[1, 2]}");
    assert_splice(" { \"a\" : 1e999 } \n", m, 1, " { \"a\" : 1e999 ,\"id\":\"x\"} \n");
    assert_splice("{\"a\":NaN, \"b\":\"\\ud800\"}", m, 2,
                  "{\"a\":NaN, \"b\":\"\\ud800\",\"id\":\"x\",\"n\":[1, 2]}");
}

static void old_members_of_the_same_name_are_dropped(void **state)
{
    (void)state;
    const coordi_json_member m[] = {{"id", {"7", 1}, true}};
    assert_splice("{\"id\":1}", m, 1, "{\"id\":7}");
    assert_splice("{\"id\":1,\"a\":2}", m, 1, "{\"a\":2,\"id\":7}");
    assert_splice("{\"a\":2, \"id\":1}", m, 1, "{\"a\":2,\"id\":7}");
    assert_splice("{\"a\":2, \"id\":1 , \"b\":3 }", m, 1, "{\"a\":2, \"b\":3 ,\"id\":7}");
    assert_splice("{\"id\":1,\"id\":2,\"\\u0069d\":{\"id\":3}}", m, 1, "{\"id\":7}");
    assert_splice("{\"x\":{\"id\":1}}", m, 1, "{\"x\":{\"id\":1},\"id\":7}");
    assert_splice("{\"id\":[1,{\"a\":\"},{\"}],\"a\":\",\"}", m, 1,
                  "{\"a\":\",\",\"id\":7}");
}

static void a_member_that_is_not_present_is_only_dropped(void **state)
{
    (void)state;
    const coordi_json_member m[] = {{.key = "secret"}, {"id", {"7", 1}, true}};
    assert_splice("{\"secret\":1}", m, 1, "{}");
    assert_splice("{\"a\":1,\"secret\":2}", m, 2, "{\"a\":1,\"id\":7}");
    assert_splice("{\"a\": 1 }", m, 1, "{\"a\": 1 }");
    assert_splice("{\"a\": 1 , \"b\":2}", NULL, 0, "{\"a\": 1 , \"b\":2}");
}

static void keys_that_are_spliced_in_are_escaped(void **state)
{
    (void)state;
    const coordi_json_member m[] = {{"a\"\\\n", {"1", 1}, true}};
    assert_splice("{\"a\\\"\\\\\\u000a\":0}", m, 1, "{\"a\\\"\\\\\\u000a\":1}");
}

static void a_failed_splice_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    const coordi_json_member m[] = {{"id", {"7", 1}, true}};
    static const char *const BAD[] = {
        "",           "{",           "{\"a\":1",  "{\"a\":1]", "{\"a\":1 x}",
        "{\"a\":1,}", "{\"a\":1}{}", "{\"id\":}", "{\"a\" 1}"};
    coord_error err;
    coordi_buf buf = {0};
    coordi_buf_adds(&buf, "kept");
    for (size_t i = 0; i < COUNT(BAD); i++) {
        assert_int_equal(coordi_json_splice(&buf, text(BAD[i]), m, 1, &err),
                         COORD_ERR_FORMAT);
        assert_text((coord_text){buf.ptr, buf.len}, "kept");
    }
    assert_int_equal(coordi_json_splice(&buf, text("null"), m, 1, &err), COORD_ERR_ARG);
    assert_text((coord_text){buf.ptr, buf.len}, "kept");
    coordi_buf_done(&buf);
}

static void splice_and_decoding_survive_any_failed_allocation(void **state)
{
    (void)state;
    static char object[2000];
    (void)snprintf(object, sizeof object, "{\"a\":1,\"id\":2,\"b\":3%*s}", 1970, "");
    const coordi_json_member m[] = {{"id", {"7", 1}, true}};
    coord_status rc = COORD_ERR_NOMEM;
    int limit = 0;
    for (; rc == COORD_ERR_NOMEM; limit++) {
        int left = limit;
        coord_error err;
        coordi_buf buf = {0};
        coordi_alloc_set_fault(countdown, &left);
        rc = coordi_json_splice(&buf, text(object), m, 1, &err);
        coordi_alloc_set_fault(NULL, NULL);
        assert_false(buf.failed);
        assert_true(rc == COORD_OK || buf.len == 0);
        coordi_buf_done(&buf);
    }
    assert_int_equal(rc, COORD_OK);
    assert_true(limit > 1);

    int none = 0;
    coordi_buf buf = {0};
    coordi_alloc_set_fault(countdown, &none);
    assert_int_equal(coordi_json_string_add(text("\"abc\""), &buf), COORD_ERR_NOMEM);
    assert_int_equal(coordi_json_string_add_any(text("\"abc\""), &buf), COORD_ERR_NOMEM);
    coordi_alloc_set_fault(NULL, NULL);
    assert_false(buf.failed);
}

/* ---- prefixes, errors ---- */

static void values_are_found_in_a_text_that_was_cut(void **state)
{
    (void)state;
    coord_text value;
    const char *cut = "{\"x\":[1,{\"task\":0}],\"task\":{\"n\":12,\"id\":\"t1\",\"data\":"
                      "{\"big\":[1,2,";
    assert_true(coordi_json_prefix_get(text(cut), "task.id", &value));
    assert_text(value, "\"t1\"");
    assert_true(coordi_json_prefix_get(text(cut), "task.n", &value));
    assert_text(value, "12");
    assert_true(coordi_json_prefix_get(text(cut), "x", &value));
    assert_text(value, "[1,{\"task\":0}]");
    assert_false(coordi_json_prefix_get(text(cut), "task.data", &value));
    assert_false(coordi_json_prefix_get(text(cut), "task.data.big", &value));
    assert_false(coordi_json_prefix_get(text(cut), "task.id.x", &value));
    assert_false(coordi_json_prefix_get(text(cut), "task", &value));
    assert_false(coordi_json_prefix_get(text(cut), "none", &value));
    assert_false(coordi_json_prefix_get(text(cut), "x.y", &value));
    assert_true(
        coordi_json_prefix_get(text("{\"a\":{\"b\":{\"c\":null"), "a.b.c", &value));
    assert_text(value, "null");

    /* A number that the cut ends may go on; a string that it ends does not. */
    assert_false(coordi_json_prefix_get(text("{\"a\":12"), "a", &value));
    assert_true(coordi_json_prefix_get(text("{\"a\":12,"), "a", &value));
    assert_true(coordi_json_prefix_get(text("{\"a\":\"1\""), "a", &value));
    assert_false(coordi_json_prefix_get(text("{\"a\":\"1"), "a", &value));
    assert_false(coordi_json_prefix_get(text("[{\"a\":1}]"), "a", &value));
    assert_false(coordi_json_prefix_get(text(""), "a", &value));
    /* An inner object that has ended without it is not looked for twice. */
    assert_false(
        coordi_json_prefix_get(text("{\"a\":{\"b\":1},\"c\":2}"), "a.c", &value));
}

static void every_cut_of_a_text_is_harmless(void **state)
{
    (void)state;
    const char *whole =
        "{\"a\":[1.5e3,\"\\ud83d\\ude00\xe2\x82\xac\",{\"b\":null}],\"c\":-Infinity,"
        "\"task\":{\"id\":\"x\"}}";
    for (size_t len = 0; len < strlen(whole); len++) {
        /* In memory of its own, so that a sanitizer sees a byte too many. */
        char *cut = malloc(len + 1);
        assert_non_null(cut);
        memcpy(cut, whole, len);
        coord_text value;
        char *exact = realloc(cut, len == 0 ? 1 : len);
        assert_non_null(exact);
        coord_text part = {exact, len};
        assert_int_equal(coordi_json_check(part, NULL), COORD_ERR_FORMAT);
        bool found = coordi_json_prefix_get(part, "task.id", &value);
        assert_int_equal(found, len >= strlen(whole) - 2);
        free(exact);
    }
}

static void errors_show_the_beginning_of_long_values(void **state)
{
    (void)state;
    coord_error err;
    assert_int_equal(
        coordi_json_fail(&err, COORD_ERR_CONFIG, "host", "a string", text(" 12 ")),
        COORD_ERR_CONFIG);
    assert_string_equal(err.text, "host: expected a string, got 12");
    (void)coordi_json_fail(&err, COORD_ERR_FORMAT, "host", "a string", text(""));
    assert_string_equal(err.text, "host: expected a string, got nothing");
    (void)coordi_json_fail(&err, COORD_ERR_FORMAT, "x", "y", text("[1,\n\x1b[2]"));
    assert_string_equal(err.text, "x: expected y, got [1,  [2]");

    char value[200];
    memset(value, 'a', sizeof value);
    value[59] = '\xc3';
    value[60] = '\xa9'; /* never cut in two */
    value[199] = '\0';
    (void)coordi_json_fail(&err, COORD_ERR_FORMAT, "x", "y", text(value));
    assert_int_equal(strlen(err.text), strlen("x: expected y, got ") + 59 + 3);
}

/* ---- anything goes in, nothing breaks ---- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

static void try_all(coord_text in)
{
    static const coordi_json_member M[] = {{"a", {"1", 1}, true}};
    coord_text key;
    coord_text value;
    double number;
    int64_t integer;
    char out[16];
    size_t at = 0;
    coordi_buf buf = {0};
    coord_status rc = coordi_json_check(in, NULL);
    coord_status spliced = coordi_json_splice(&buf, in, M, 1, NULL);
    if (spliced == COORD_OK) {
        assert_int_equal(rc, COORD_OK);
        assert_int_equal(coordi_json_check((coord_text){buf.ptr, buf.len}, NULL),
                         COORD_OK);
    }
    (void)coordi_json_truth(in);
    (void)coordi_json_double(in, &number);
    (void)coordi_json_int(in, &integer);
    (void)coordi_json_string(in, out, sizeof out);
    (void)coordi_json_string_add_any(in, &buf);
    (void)coordi_json_prefix_get(in, "a.b", &value);
    while (coordi_json_each(in, &at, &value)) {
        assert_true(value.ptr > in.ptr && value.ptr + value.len <= in.ptr + in.len);
    }
    at = 0;
    while (coordi_json_each_member(in, &at, &key, &value)) {
        (void)coordi_json_string_is(key, "a");
    }
    coordi_buf_done(&buf);
}

static void random_changes_never_break_anything(void **state)
{
    (void)state;
    static const char *const SEED[] = {
        "{\"a\":[1,2.5e-3,NaN],\"b\":{\"c\":\"\\ud83d\\ude00x\\u0000\"},\"a\":null}",
        "[\"abcdefghijklmnop\\n\xc3\xa9\xf0\x9f\x98\x80\", -Infinity, true, {}]"};
    static const char BYTES[] = "{}[]\",:\\u0d8-+.eEINft \n\x80\xc3\xed\xf4\x01";
    uint32_t seed = 7;
    for (size_t round = 0; round < 20000; round++) {
        char copy[128];
        const char *from = SEED[round % COUNT(SEED)];
        size_t len = strlen(from);
        memcpy(copy, from, len + 1);
        for (uint32_t i = next_random(&seed) % 4 + 1; i > 0; i--) {
            copy[next_random(&seed) % len] =
                BYTES[next_random(&seed) % (sizeof BYTES - 1)];
        }
        if (next_random(&seed) % 4 == 0) {
            len = next_random(&seed) % len;
        }
        try_all((coord_text){copy, len});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_python_reads_is_accepted),
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
        cmocka_unit_test(a_nul_is_a_byte_like_any_other),
        cmocka_unit_test(deep_nesting_works_up_to_the_limit),
        cmocka_unit_test(levels_remember_what_they_are),
        cmocka_unit_test(long_strings_are_checked_to_the_last_byte),
        cmocka_unit_test(members_are_fetched_raw),
        cmocka_unit_test(an_absent_member_is_named),
        cmocka_unit_test(several_members_come_in_one_pass),
        cmocka_unit_test(keys_are_compared_after_their_escapes_are_undone),
        cmocka_unit_test(what_is_no_object_is_told_apart_from_what_is_malformed),
        cmocka_unit_test(a_member_may_be_as_deep_as_the_limit),
        cmocka_unit_test(arrays_are_walked),
        cmocka_unit_test(objects_are_walked_with_duplicates),
        cmocka_unit_test(members_are_spliced_in_last),
        cmocka_unit_test(old_members_of_the_same_name_are_dropped),
        cmocka_unit_test(a_member_that_is_not_present_is_only_dropped),
        cmocka_unit_test(keys_that_are_spliced_in_are_escaped),
        cmocka_unit_test(a_failed_splice_leaves_the_buffer_as_it_was),
        cmocka_unit_test(splice_and_decoding_survive_any_failed_allocation),
        cmocka_unit_test(values_are_found_in_a_text_that_was_cut),
        cmocka_unit_test(every_cut_of_a_text_is_harmless),
        cmocka_unit_test(errors_show_the_beginning_of_long_values),
        cmocka_unit_test(random_changes_never_break_anything),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
