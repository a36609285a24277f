#include "base/alloc.h"
#include "coord/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static json_t *parse(const char *string)
{
    json_t *json = NULL;
    coord_error err;
    if (coord_json_parse(coord_text_of(string), &json, &err) != COORD_OK) {
        fail_msg("%s: %s", string, err.text);
    }
    return json;
}

/* Parsed and written again. */
static void assert_mapped(const char *string, const char *expected)
{
    json_t *json = parse(string);
    char *out = NULL;
    size_t len = 0;
    assert_int_equal(coord_json_text(json, &out, &len, NULL), COORD_OK);
    assert_int_equal(len, strlen(out));
    assert_string_equal(out, expected);
    coord_free(out);
    json_decref(json);
}

static void ordinary_json_becomes_the_same_tree(void **state)
{
    (void)state;
    static const char *const SAME[] = {
        "null",
        "true",
        "false",
        "0",
        "-7",
        "1.5",
        "1.0",
        "\"\"",
        "\"a\\\"b\\\\\\n\"",
        "[]",
        "{}",
        "[[],{},[1,[2,[3]]]]",
        "{\"a\":{\"b\":[{\"c\":null}]},\"d\":\"\xc3\xa9\"}",
        "9223372036854775807",
        "-9223372036854775808"};
    for (size_t i = 0; i < COUNT(SAME); i++) {
        assert_mapped(SAME[i], SAME[i]);
    }
    assert_mapped(" [ 1 , { \"a\" : 2 } ] ", "[1,{\"a\":2}]");
}

static void what_jansson_has_no_number_for_becomes_a_string(void **state)
{
    (void)state;
    assert_mapped("[NaN,Infinity,-Infinity]", "[\"NaN\",\"Infinity\",\"-Infinity\"]");
    assert_mapped("[1e999,-1e999]", "[\"Infinity\",\"-Infinity\"]");
}

static void large_integers_become_reals(void **state)
{
    (void)state;
    json_t *json =
        parse("[9223372036854775808,-9223372036854775809,123456789012345678901234]");
    assert_true(json_is_real(json_array_get(json, 0)));
    assert_true(json_real_value(json_array_get(json, 0)) == 9223372036854775808.0);
    assert_true(json_real_value(json_array_get(json, 1)) == -9223372036854775808.0);
    assert_true(json_real_value(json_array_get(json, 2)) == 123456789012345678901234.0);
    json_decref(json);
}

static void strings_keep_what_can_be_kept(void **state)
{
    (void)state;
    json_t *json =
        parse("{\"a\":\"x\\u0000y\",\"\\ud800\":\"\\udc00z\",\"b\\u0000c\":1}");
    json_t *a = json_object_get(json, "a");
    assert_int_equal(json_string_length(a), 3);
    assert_memory_equal(json_string_value(a), "x\0y", 3);
    assert_string_equal(json_string_value(json_object_get(json, "\xef\xbf\xbd")),
                        "\xef\xbf\xbdz");
    assert_true(json_is_integer(json_object_getn(json, "b\0c", 3)));
    json_decref(json);
}

static void the_last_of_duplicate_keys_wins(void **state)
{
    (void)state;
    assert_mapped("{\"a\":{\"x\":1},\"b\":2,\"a\":[3],\"\\u0061\":4}",
                  "{\"a\":4,\"b\":2}");
}

static void malformed_text_is_refused_with_its_place(void **state)
{
    (void)state;
    coord_error err;
    json_t *json = NULL;
    assert_int_equal(coord_json_parse(coord_text_of("[1,2,]"), &json, &err),
                     COORD_ERR_FORMAT);
    assert_string_equal(err.text, "JSON, byte 5: expected a value, got ']'");
    assert_null(json);
    assert_int_equal(coord_json_parse((coord_text){NULL, 0}, &json, &err),
                     COORD_ERR_FORMAT);
    assert_int_equal(coord_json_parse(coord_text_of("1"), NULL, &err), COORD_ERR_ARG);
}

static void depth_is_limited_as_in_jansson(void **state)
{
    (void)state;
    static char deep[2 * (COORD_JSON_MAX_DEPTH + 1) + 1];
    coord_error err;
    json_t *json = NULL;
    memset(deep, '[', COORD_JSON_MAX_DEPTH);
    memset(deep + COORD_JSON_MAX_DEPTH, ']', COORD_JSON_MAX_DEPTH);
    json = parse(deep);
    json_decref(json);

    memset(deep, '[', COORD_JSON_MAX_DEPTH + 1);
    memset(deep + COORD_JSON_MAX_DEPTH + 1, ']', COORD_JSON_MAX_DEPTH + 1);
    json = NULL;
    assert_int_equal(coord_json_parse(coord_text_of(deep), &json, &err),
                     COORD_ERR_FORMAT);
    assert_string_equal(err.text,
                        "JSON, byte 2048: expected at most 2048 levels of arrays "
                        "and objects, got '['");
    assert_null(json);
}

/* Jansson has an allocator of its own; a test program may replace it. */
static int jansson_left;

static void *jansson_alloc(size_t size)
{
    return jansson_left-- <= 0 ? NULL : malloc(size);
}

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

/* One allocation after another fails: ours, and then those of jansson. */
static coord_status parse_with(int ours, int theirs, char **text)
{
    json_t *json = NULL;
    jansson_left = theirs;
    coordi_alloc_set_fault(countdown, &ours);
    coord_status rc = coord_json_parse(
        coord_text_of("{\"a\":[1,2.5,\"text\",{\"b\":{}},[[]],NaN,null],\"c\":\"d\"}"),
        &json, NULL);
    if (rc == COORD_OK) {
        rc = coord_json_text(json, text, NULL, NULL);
    }
    coordi_alloc_set_fault(NULL, NULL);
    json_decref(json);
    return rc;
}

static void any_failed_allocation_is_a_status(void **state)
{
    (void)state;
    char *text = NULL;
    json_set_alloc_funcs(jansson_alloc, free);
    for (int kind = 0; kind < 2; kind++) {
        int limit = 0;
        coord_status rc = COORD_ERR_NOMEM;
        for (; limit < 500 && rc != COORD_OK; limit++) {
            rc = parse_with(kind == 0 ? limit : 9999, kind == 1 ? limit : 9999, &text);
            /* Jansson does not tell what a failure to write was for. */
            assert_true(rc == COORD_OK || rc == COORD_ERR_NOMEM ||
                        (kind == 1 && rc == COORD_ERR_ARG));
        }
        assert_int_equal(rc, COORD_OK);
        assert_true(limit > 2);
        assert_string_equal(
            text, "{\"a\":[1,2.5,\"text\",{\"b\":{}},[[]],\"NaN\",null],\"c\":\"d\"}");
        coord_free(text);
    }
    json_set_alloc_funcs(malloc, free);
}

static void a_tree_without_a_text_is_refused(void **state)
{
    (void)state;
    coord_error err;
    char *text = NULL;
    json_t *circle = json_array();
    json_t *inner = json_array();
    assert_int_equal(json_array_append(circle, inner), 0);
    assert_int_equal(json_array_append(inner, circle), 0);
    assert_int_equal(coord_json_text(circle, &text, NULL, &err), COORD_ERR_ARG);
    assert_null(text);
    assert_int_equal(json_array_clear(inner), 0);
    json_decref(inner);
    json_decref(circle);
    assert_int_equal(coord_json_text(NULL, &text, NULL, &err), COORD_ERR_ARG);
}

/* ---- getters ---- */

static const char CONFIG[] =
    "{\"a\":{\"b\":[1,{},{\"c\":42}]},\"finish\":{\"iters\":\"x\",\"loss\":0.5,\"inf\":"
    "Infinity,"
    "\"ninf\":-Infinity,\"nan\":NaN,\"on\":true,\"off\":false,\"name\":\"n\",\"z\":null,"
    "\"nul\":\"a\\u0000\"},\"m\":[[1,2],[3,4]]}";

static int setup(void **state)
{
    *state = parse(CONFIG);
    return 0;
}

static int teardown(void **state)
{
    json_decref(*state);
    return 0;
}

static void values_are_found_by_their_path(void **state)
{
    int64_t integer = 0;
    double real = 0;
    bool on = false;
    const char *name = NULL;
    json_t *part = NULL;
    assert_int_equal(coord_json_get_int(*state, "a.b[2].c", &integer, NULL), COORD_OK);
    assert_true(integer == 42);
    assert_int_equal(coord_json_get_int(*state, "m[1][0]", &integer, NULL), COORD_OK);
    assert_true(integer == 3);
    assert_int_equal(coord_json_get_double(*state, "finish.loss", &real, NULL), COORD_OK);
    assert_true(real == 0.5);
    assert_int_equal(coord_json_get_double(*state, "a.b[0]", &real, NULL), COORD_OK);
    assert_true(real == 1.0);
    assert_int_equal(coord_json_get_bool(*state, "finish.on", &on, NULL), COORD_OK);
    assert_true(on);
    assert_int_equal(coord_json_get_bool(*state, "finish.off", &on, NULL), COORD_OK);
    assert_false(on);
    assert_int_equal(coord_json_get_string(*state, "finish.name", &name, NULL), COORD_OK);
    assert_string_equal(name, "n");
    assert_int_equal(coord_json_get(*state, "", &part, NULL), COORD_OK);
    assert_ptr_equal(part, *state);
    assert_int_equal(coord_json_get(*state, "finish.z", &part, NULL), COORD_OK);
    assert_true(json_is_null(part));
    assert_int_equal(coord_json_get(json_object_get(*state, "m"), "[0]", &part, NULL),
                     COORD_OK);
    assert_true(json_is_array(part));
}

static void infinity_and_nan_come_back_as_numbers(void **state)
{
    double real = 0;
    assert_int_equal(coord_json_get_double(*state, "finish.inf", &real, NULL), COORD_OK);
    assert_true(isinf(real) && real > 0);
    assert_int_equal(coord_json_get_double(*state, "finish.ninf", &real, NULL), COORD_OK);
    assert_true(isinf(real) && real < 0);
    assert_int_equal(coord_json_get_double(*state, "finish.nan", &real, NULL), COORD_OK);
    assert_true(isnan(real));
}

static void assert_int_fails(const json_t *json, const char *path, coord_status status,
                             const char *said)
{
    int64_t value = 77;
    coord_error err = {0};
    coord_status rc = coord_json_get_int(json, path, &value, &err);
    if (rc != status || strcmp(err.text, said) != 0 || value != 77) {
        fail_msg("%s: expected %d, %s; got %d, %s", path, status, said, rc, err.text);
    }
}

static void errors_name_the_path_and_what_was_expected(void **state)
{
    assert_int_fails(*state, "finish.iters", COORD_ERR_FORMAT,
                     "finish.iters: expected an integer, got \"x\"");
    assert_int_fails(*state, "finish.loss", COORD_ERR_FORMAT,
                     "finish.loss: expected an integer, got 0.5");
    assert_int_fails(*state, "finish.z", COORD_ERR_FORMAT,
                     "finish.z: expected an integer, got null");
    assert_int_fails(*state, "a.b", COORD_ERR_FORMAT,
                     "a.b: expected an integer, got an array");
    assert_int_fails(*state, "", COORD_ERR_FORMAT,
                     "JSON: expected an integer, got an object");
    assert_int_fails(*state, "a.b[0].c", COORD_ERR_FORMAT,
                     "a.b[0]: expected an object, got 1");
    assert_int_fails(*state, "a[0]", COORD_ERR_FORMAT,
                     "a: expected an array, got an object");
    assert_int_fails(*state, "[0]", COORD_ERR_FORMAT,
                     "JSON: expected an array, got an object");
    assert_int_fails(*state, "none.iters", COORD_ERR_NOT_FOUND, "none: missing");
    assert_int_fails(*state, "a.b[3].c", COORD_ERR_NOT_FOUND, "a.b[3]: missing");
    assert_int_fails(*state, "a.b[99999999999999999999999]", COORD_ERR_NOT_FOUND,
                     "a.b[99999999999999999999999]: missing");
}

static void each_getter_names_its_type(void **state)
{
    coord_error err;
    double real;
    bool on;
    const char *name;
    assert_int_equal(coord_json_get_double(*state, "finish.name", &real, &err),
                     COORD_ERR_FORMAT);
    assert_string_equal(err.text, "finish.name: expected a number, got \"n\"");
    assert_int_equal(coord_json_get_bool(*state, "a.b[0]", &on, &err), COORD_ERR_FORMAT);
    assert_string_equal(err.text, "a.b[0]: expected true or false, got 1");
    assert_int_equal(coord_json_get_string(*state, "finish.on", &name, &err),
                     COORD_ERR_FORMAT);
    assert_string_equal(err.text, "finish.on: expected a string, got true");
    assert_int_equal(coord_json_get_string(*state, "finish.nul", &name, &err),
                     COORD_ERR_FORMAT);
    assert_string_equal(err.text, "finish.nul: expected a string without NUL, got \"a\"");
}

static void long_values_are_cut_in_errors(void **state)
{
    (void)state;
    char value[300];
    memset(value, 'v', sizeof value);
    value[0] = '"';
    value[sizeof value - 2] = '"';
    value[sizeof value - 1] = '\0';
    json_t *json = parse(value);
    coord_error err;
    int64_t integer;
    assert_int_equal(coord_json_get_int(json, "", &integer, &err), COORD_ERR_FORMAT);
    assert_int_equal(strlen(err.text),
                     strlen("JSON: expected an integer, got ") + 60 + 3);
    json_decref(json);
}

static void paths_that_make_no_sense_are_refused(void **state)
{
    static const char *const BAD[] = {".",     ".a",      "a.",      "a..b",
                                      "a.b[",  "a.b[]",   "a.b[x]",  "a.b[-1]",
                                      "a.b[0", "a.b[0]x", "a.b[2].", "a.b[ 0]"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        int64_t value = 77;
        coord_error err = {0};
        coord_status rc = coord_json_get_int(*state, BAD[i], &value, &err);
        if (rc != COORD_ERR_ARG) {
            fail_msg("%s: %d, %s", BAD[i], rc, err.text);
        }
    }
    int64_t value;
    assert_int_equal(coord_json_get_int(NULL, "a", &value, NULL), COORD_ERR_ARG);
    assert_int_equal(coord_json_get_int(*state, NULL, &value, NULL), COORD_ERR_ARG);
    assert_int_equal(coord_json_get_int(*state, "a", NULL, NULL), COORD_ERR_ARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_json_becomes_the_same_tree),
        cmocka_unit_test(what_jansson_has_no_number_for_becomes_a_string),
        cmocka_unit_test(large_integers_become_reals),
        cmocka_unit_test(strings_keep_what_can_be_kept),
        cmocka_unit_test(the_last_of_duplicate_keys_wins),
        cmocka_unit_test(malformed_text_is_refused_with_its_place),
        cmocka_unit_test(depth_is_limited_as_in_jansson),
        cmocka_unit_test(any_failed_allocation_is_a_status),
        cmocka_unit_test(a_tree_without_a_text_is_refused),
        cmocka_unit_test_setup_teardown(values_are_found_by_their_path, setup, teardown),
        cmocka_unit_test_setup_teardown(infinity_and_nan_come_back_as_numbers, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(errors_name_the_path_and_what_was_expected, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(each_getter_names_its_type, setup, teardown),
        cmocka_unit_test(long_values_are_cut_in_errors),
        cmocka_unit_test_setup_teardown(paths_that_make_no_sense_are_refused, setup,
                                        teardown),
    };
    return cmocka_run_group_tests_name("json_public", tests, NULL, NULL);
}
