#include "base/alloc.h"
#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ID "12345678-1234-5678-1234-567812345678"

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

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

/* ---- requests: built ---- */

static void assert_built(char *got, size_t len, const char *expected)
{
    assert_non_null(got);
    assert_string_equal(got, expected);
    assert_int_equal(len, strlen(expected));
    coordi_free(got);
}

static void requests_are_spelled_as_python_spells_them(void **state)
{
    (void)state;
    size_t len = 0;
    char *got = coordi_wire_connect("http://[::1]:7235/p\"q", text("{\"a\":1}"), &len);
    assert_built(got, len,
                 "{\"master\": {\"address\": \"http://[::1]:7235/p\\\"q\"}, "
                 "\"data\": {\"a\":1}}");
    got = coordi_wire_disconnect(text("{\"a\": [NaN]}"), &len);
    assert_built(got, len, "{\"data\": {\"a\": [NaN]}}");
    got = coordi_wire_new_task(ID, text("{\"name\": \"resource\"}"), &len);
    assert_built(got, len,
                 "{\"task\": {\"id\": \"" ID "\"}, \"data\": {\"name\": "
                 "\"resource\"}}");
    got = coordi_wire_result(ID, text("{\"ok\": 1}"), &len);
    assert_built(got, len, "{\"task\": {\"id\": \"" ID "\"}, \"result\": {\"ok\": 1}}");
    got = coordi_wire_cancel(ID, &len);
    assert_built(got, len, "{\"task\": {\"id\": \"" ID "\"}}");
    got = coordi_wire_nothing(&len);
    assert_built(got, len, "{}");
}

static void null_or_no_data_becomes_an_empty_object(void **state)
{
    (void)state;
    static const char *const NOTHING[] = {NULL, "", " ", "null", " null\n"};
    for (size_t i = 0; i < COUNT(NOTHING); i++) {
        size_t len = 0;
        char *got = coordi_wire_connect("a", text(NOTHING[i]), &len);
        assert_built(got, len, "{\"master\": {\"address\": \"a\"}, \"data\": {}}");
        got = coordi_wire_disconnect(text(NOTHING[i]), &len);
        assert_built(got, len, "{\"data\": {}}");
        got = coordi_wire_new_task(ID, text(NOTHING[i]), &len);
        assert_built(got, len, "{\"task\": {\"id\": \"" ID "\"}, \"data\": {}}");
    }
}

static void other_data_is_kept_even_if_python_takes_it_for_false(void **state)
{
    (void)state;
    static const char *const KEPT[] = {"0",     "\"\"", "[]",          "{}",
                                       "false", "NaN",  "\"\\ud800\"", "1e999"};
    for (size_t i = 0; i < COUNT(KEPT); i++) {
        char expected[128];
        size_t len = 0;
        (void)snprintf(expected, sizeof expected, "{\"data\": %s}", KEPT[i]);
        char *got = coordi_wire_disconnect(text(KEPT[i]), &len);
        assert_built(got, len, expected);
    }
}

static void a_falsy_result_becomes_an_empty_object(void **state)
{
    (void)state;
    static const char *const FALSY[] = {NULL, "",    " ",    "null",  "false",  "0",
                                        "-0", "0.0", "-0.0", "0e9",   "1e-999", "\"\"",
                                        "[]", "[ ]", "{}",   " {\n} "};
    static const char *const TRUTHY[] = {"true",
                                         "1",
                                         "-1",
                                         "5",
                                         "0.5",
                                         "1e-300",
                                         "NaN",
                                         "Infinity",
                                         "-Infinity",
                                         "1e999",
                                         "\"x\"",
                                         "\"0\"",
                                         "\" \"",
                                         "[0]",
                                         "[null]",
                                         "{\"\": 0}",
                                         "123456789012345678901234567890",
                                         "\"\\u0000\"",
                                         "\"\\udc00\""};
    for (size_t i = 0; i < COUNT(FALSY); i++) {
        size_t len = 0;
        char *got = coordi_wire_result(ID, text(FALSY[i]), &len);
        assert_built(got, len, "{\"task\": {\"id\": \"" ID "\"}, \"result\": {}}");
    }
    for (size_t i = 0; i < COUNT(TRUTHY); i++) {
        char expected[128];
        size_t len = 0;
        (void)snprintf(expected, sizeof expected,
                       "{\"task\": {\"id\": \"" ID "\"}, \"result\": %s}", TRUTHY[i]);
        char *got = coordi_wire_result(ID, text(TRUTHY[i]), &len);
        assert_built(got, len, expected);
    }
}

static void without_memory_nothing_is_built(void **state)
{
    (void)state;
    for (int allowed = 0;; allowed++) {
        int left[7] = {allowed, allowed, allowed, allowed, allowed, allowed, allowed};
        char *got[7];
        size_t len = 0;
        coordi_alloc_set_fault(countdown, &left[0]);
        got[0] = coordi_wire_answer(COORDI_SAY_SHUTDOWN_LATER, NULL, text("[]"), &len);
        coordi_alloc_set_fault(countdown, &left[1]);
        got[1] = coordi_wire_connect("http://127.0.0.1:38553", text("[1]"), &len);
        coordi_alloc_set_fault(countdown, &left[2]);
        got[2] = coordi_wire_disconnect(text("[1]"), &len);
        coordi_alloc_set_fault(countdown, &left[3]);
        got[3] = coordi_wire_new_task(ID, text("[1]"), &len);
        coordi_alloc_set_fault(countdown, &left[4]);
        got[4] = coordi_wire_result(ID, text("[1]"), &len);
        coordi_alloc_set_fault(countdown, &left[5]);
        got[5] = coordi_wire_nothing(&len);
        coordi_alloc_set_fault(countdown, &left[6]);
        got[6] = coordi_wire_cancel(ID, &len);
        coordi_alloc_set_fault(NULL, NULL);
        int made = 0;
        for (size_t i = 0; i < 7; i++) {
            made += got[i] != NULL;
            assert_true(allowed > 0 || got[i] == NULL);
            coordi_free(got[i]);
        }
        if (made == 7) {
            break;
        }
    }
}

/* ---- requests: read ---- */

typedef coordi_say reader(coord_text body, coordi_message *ret, char *why,
                          size_t why_size);

static coordi_say read_result(coord_text body, coordi_message *ret, char *why,
                              size_t why_size)
{
    char id[COORDI_UUID_SIZE];
    return coordi_wire_read_result(body, ret, id, why, why_size);
}

static coordi_say read_cancel(coord_text body, coordi_message *ret, char *why,
                              size_t why_size)
{
    char id[COORDI_UUID_SIZE];
    return coordi_wire_read_cancel(body, ret, id, why, why_size);
}

typedef struct reading {
    reader *read;
    const char *body;
    coordi_say say;
    bool malformed;
    const char *why; /* how it begins */
} reading;

static void check_readings(const reading *r, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        coordi_message got;
        char why[300] = "";
        memset(&got, 0xff, sizeof got);
        coordi_say say = r[i].read(text(r[i].body), &got, why, sizeof why);
        if (say != r[i].say || got.malformed != r[i].malformed ||
            strncmp(why, r[i].why, strlen(r[i].why)) != 0) {
            fail_msg("case %zu <%s>: said %d, malformed %d, <%s>", i, r[i].body, (int)say,
                     (int)got.malformed, why);
        }
    }
}

#define NO_BODY "The request has no body"
#define NO_OBJECT "The body is not a JSON object: "

/* What the reference answers to before it looks at any state, and what only after it. */
static void bodies_that_are_no_json_are_malformed(void **state)
{
    (void)state;
    static const struct {
        reader *read;
        coordi_say say;
    } READER[] = {{coordi_wire_read_connect, COORDI_SAY_BAD_CONNECT},
                  {coordi_wire_read_disconnect, COORDI_SAY_BAD_DISCONNECT},
                  {coordi_wire_read_new_task, COORDI_SAY_BAD_TASK},
                  {read_result, COORDI_SAY_BAD_RESULT},
                  {read_cancel, COORDI_SAY_BAD_TASK}};
    static const struct {
        const char *body;
        bool malformed;
        const char *why;
    } BODY[] = {
        {NULL, true, NO_BODY},
        {"", true, NO_BODY},
        {" \r\n", true, NO_OBJECT},
        {"zz", true, NO_OBJECT},
        {"{", true, NO_OBJECT},
        {"{}{}", true, NO_OBJECT},
        {"{\"data\": {},}", true, NO_OBJECT},
        {"{\"data\": \"\xff\"}", true, NO_OBJECT},
        {"{\"data\": \"\n\"}", true, NO_OBJECT},
        {"{'data': {}}", true, NO_OBJECT},
        {"\xef\xbb\xbf{}", true, NO_OBJECT},
        {"[]", false, NO_OBJECT},
        {"null", false, NO_OBJECT},
        {"\"data\"", false, NO_OBJECT},
        {"NaN", false, NO_OBJECT},
        {"[", true, NO_OBJECT},
    };
    for (size_t r = 0; r < COUNT(READER); r++) {
        for (size_t b = 0; b < COUNT(BODY); b++) {
            const reading one = {READER[r].read, BODY[b].body, READER[r].say,
                                 BODY[b].malformed, BODY[b].why};
            check_readings(&one, 1);
        }
    }
}

static void too_deep_a_body_is_malformed(void **state)
{
    (void)state;
    static char body[20000];
    coordi_message got;
    char why[200];
    memset(body, '[', sizeof body);
    memcpy(body, "{\"data\":", 8);
    assert_int_equal(coordi_wire_read_disconnect((coord_text){body, sizeof body}, &got,
                                                 why, sizeof why),
                     COORDI_SAY_BAD_DISCONNECT);
    assert_true(got.malformed);
}

static void missing_keys_are_named_in_the_order_of_the_protocol(void **state)
{
    (void)state;
    static const reading CASE[] = {
        {coordi_wire_read_connect, "{}", COORDI_SAY_BAD_CONNECT, false,
         "The body lacks \"master\"."},
        {coordi_wire_read_connect, "{\"data\": {}}", COORDI_SAY_BAD_CONNECT, false,
         "The body lacks \"master\"."},
        {coordi_wire_read_connect, "{\"master\": {\"address\": \"http://127.0.0.1:1\"}}",
         COORDI_SAY_BAD_CONNECT, false, "The body lacks \"data\"."},
        {coordi_wire_read_disconnect, "{}", COORDI_SAY_BAD_DISCONNECT, false,
         "The body lacks \"data\"."},
        {coordi_wire_read_new_task, "{}", COORDI_SAY_BAD_TASK, false,
         "The body lacks \"task\"."},
        {coordi_wire_read_new_task, "{\"task\": {\"id\": \"" ID "\"}}",
         COORDI_SAY_BAD_TASK, false, "The body lacks \"data\"."},
        {coordi_wire_read_new_task, "{\"task\": {}, \"data\": {}}", COORDI_SAY_BAD_TASK,
         false, "The body lacks \"task.id\"."},
        {coordi_wire_read_new_task, "{\"task\": null, \"data\": {}}", COORDI_SAY_BAD_TASK,
         false, "The body lacks \"task.id\"."},
        {coordi_wire_read_new_task, "{\"task\": \"id\", \"data\": {}}",
         COORDI_SAY_BAD_TASK, false, "The body lacks \"task.id\"."},
        {read_result, "{}", COORDI_SAY_NO_TASK, false, ""},
        {read_result, "{\"result\": {}}", COORDI_SAY_NO_TASK, false, ""},
        {read_result, "{\"task\": {\"id\": \"" ID "\"}}", COORDI_SAY_BAD_RESULT, false,
         "The body lacks \"result\"."},
        {read_result, "{\"task\": {}}", COORDI_SAY_BAD_RESULT, false,
         "The body lacks \"result\"."}, /* before the id */
        {read_result, "{\"task\": null}", COORDI_SAY_BAD_RESULT, false,
         "The body lacks \"result\"."},
        {read_result, "{\"task\": {}, \"result\": 1}", COORDI_SAY_NO_TASK_ID, false, ""},
        {read_result, "{\"task\": null, \"result\": 1}", COORDI_SAY_BAD_RESULT, false,
         "\"task\" is not an object."},
        {read_result, "{\"task\": [\"id\"], \"result\": 1}", COORDI_SAY_BAD_RESULT, false,
         "\"task\" is not an object."},
        {read_result, "{\"task\": {\"id\": \"x\"}, \"result\": 1}", COORDI_SAY_BAD_RESULT,
         false, "\"task.id\" is not a UUID."},
        {read_result, "{\"task\": {\"id\": 1}, \"result\": 1}", COORDI_SAY_BAD_RESULT,
         false, "\"task.id\" is not a UUID."},
        {read_result, "{\"task\": {\"id\": null}, \"result\": 1}", COORDI_SAY_BAD_RESULT,
         false, "\"task.id\" is not a UUID."},
        {read_cancel, "{}", COORDI_SAY_BAD_TASK, false, "The body lacks \"task.id\"."},
        {read_cancel, "{\"task\": 1}", COORDI_SAY_BAD_TASK, false,
         "The body lacks \"task.id\"."},
        {read_cancel, "{\"task\": {\"id\": 1}}", COORDI_SAY_BAD_TASK, false,
         "\"task.id\" is not a UUID."},
    };
    check_readings(CASE, COUNT(CASE));
}

static void a_connect_gives_address_and_data(void **state)
{
    (void)state;
    coordi_message got;
    char why[100];
    assert_int_equal(coordi_wire_read_connect(
                         text("{\"master\": {\"address\": \"http://127.0.0.1:38553\"}, "
                              "\"data\": {\"refuse\": 1}, \"more\": 1e999}"),
                         &got, why, sizeof why),
                     COORDI_SAY_NOTHING);
    assert_text(got.master, "\"http://127.0.0.1:38553\"");
    assert_text(got.data, "{\"refuse\": 1}");
    assert_false(got.malformed);
}

/* The hook is asked first, so a bad address is no reason to stop here. */
static void an_address_that_is_none_is_left_to_the_caller(void **state)
{
    (void)state;
    static const char *const BODY[] = {
        "{\"master\": {}, \"data\": null}",
        "{\"master\": {\"address\": null}, \"data\": null}",
        "{\"master\": {\"address\": 5}, \"data\": null}",
        "{\"master\": {\"address\": {\"address\": \"a\"}}, \"data\": null}",
        "{\"master\": null, \"data\": null}",
        "{\"master\": \"http://a:1\", \"data\": null}",
        "{\"master\": [\"address\"], \"data\": null}",
    };
    for (size_t i = 0; i < COUNT(BODY); i++) {
        coordi_message got;
        char why[100];
        assert_int_equal(coordi_wire_read_connect(text(BODY[i]), &got, why, sizeof why),
                         COORDI_SAY_NOTHING);
        assert_int_equal(got.master.len, 0);
        assert_text(got.data, "null");
    }
}

static void data_of_any_type_is_taken(void **state)
{
    (void)state;
    static const char *const DATA[] = {"null", "{}",   "[1]",  "0",        "\"\\ud800\"",
                                       "NaN",  "true", "\"\"", "-Infinity"};
    for (size_t i = 0; i < COUNT(DATA); i++) {
        char body[200];
        char why[100];
        coordi_message got;
        (void)snprintf(body, sizeof body,
                       " {\"data\" : %s ,\"task\":{\"id\":\"" ID "\"}} ", DATA[i]);
        assert_int_equal(coordi_wire_read_disconnect(text(body), &got, why, sizeof why),
                         COORDI_SAY_NOTHING);
        assert_text(got.data, DATA[i]);
        assert_int_equal(coordi_wire_read_new_task(text(body), &got, why, sizeof why),
                         COORDI_SAY_NOTHING);
        assert_text(got.data, DATA[i]);
        assert_text(got.id, "\"" ID "\"");
    }
}

/* The reference refuses a task before it parses the id. */
static void the_id_of_a_new_task_is_handed_on_as_it_is(void **state)
{
    (void)state;
    static const char *const RAW[] = {"\"zz\"", "1", "null", "[]", "\"" ID "\""};
    for (size_t i = 0; i < COUNT(RAW); i++) {
        char body[200];
        char why[100];
        coordi_message got;
        (void)snprintf(body, sizeof body, "{\"task\": {\"id\": %s}, \"data\": {}}",
                       RAW[i]);
        assert_int_equal(coordi_wire_read_new_task(text(body), &got, why, sizeof why),
                         COORDI_SAY_NOTHING);
        assert_text(got.id, RAW[i]);
    }
}

static void a_result_gives_the_canonical_id_and_the_raw_result(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        const char *result;
    } CASE[] = {{"\"" ID "\"", "null"},
                {"\"{12345678123456781234567812345678}\"", "[1]"},
                {"\"urn:uuid:" ID "\"", "NaN"},
                {"\"\\u00312345678-1234-5678-1234-567812345678\"", "{\"a\": 1e999}"}};
    for (size_t i = 0; i < COUNT(CASE); i++) {
        char body[300];
        char why[100];
        char id[COORDI_UUID_SIZE];
        coordi_message got;
        (void)snprintf(body, sizeof body,
                       "{\"x\": 0, \"result\": %s, \"task\": {\"id\": %s, \"y\": []}}",
                       CASE[i].result, CASE[i].id);
        assert_int_equal(coordi_wire_read_result(text(body), &got, id, why, sizeof why),
                         COORDI_SAY_NOTHING);
        assert_string_equal(id, ID);
        assert_text(got.result, CASE[i].result);
        assert_text(got.id, CASE[i].id);
    }
}

static void the_last_of_duplicate_keys_counts(void **state)
{
    (void)state;
    coordi_message got;
    char why[100];
    char id[COORDI_UUID_SIZE];
    assert_int_equal(
        coordi_wire_read_result(text("{\"task\": null, \"result\": 1, \"result\": 2, "
                                     "\"task\": {\"id\": 7, \"\\u0069d\": \"" ID "\"}}"),
                                &got, id, why, sizeof why),
        COORDI_SAY_NOTHING);
    assert_string_equal(id, ID);
    assert_text(got.result, "2");
    assert_int_equal(
        coordi_wire_read_result(text("{\"task\": {\"id\": \"" ID "\"}, \"result\": 1, "
                                     "\"task\": null}"),
                                &got, id, why, sizeof why),
        COORDI_SAY_BAD_RESULT);
}

static void a_reason_is_cut_to_the_room_there_is(void **state)
{
    (void)state;
    coordi_message got;
    char why[8] = "";
    (void)coordi_wire_read_disconnect(text("{}"), &got, why, sizeof why);
    assert_string_equal(why, "The bod");
}

static void what_is_built_reads_back(void **state)
{
    (void)state;
    static const char *const DATA[] = {"{\"a\": [1, NaN]}", "[]", "\"\\ud800\"", "1e999"};
    for (size_t i = 0; i < COUNT(DATA); i++) {
        coordi_message got;
        char why[100];
        char id[COORDI_UUID_SIZE];
        size_t len = 0;
        char *body = coordi_wire_connect("http://a:1/\xc3\xa4", text(DATA[i]), &len);
        assert_int_equal(
            coordi_wire_read_connect((coord_text){body, len}, &got, why, sizeof why),
            COORDI_SAY_NOTHING);
        assert_text(got.master, "\"http://a:1/\xc3\xa4\"");
        assert_text(got.data, DATA[i]);
        coordi_free(body);
        body = coordi_wire_new_task(ID, text(DATA[i]), &len);
        assert_int_equal(
            coordi_wire_read_new_task((coord_text){body, len}, &got, why, sizeof why),
            COORDI_SAY_NOTHING);
        assert_text(got.data, DATA[i]);
        assert_true(coordi_wire_read_id(got.id, id));
        coordi_free(body);
        body = coordi_wire_result(ID, text(DATA[i]), &len);
        assert_int_equal(
            coordi_wire_read_result((coord_text){body, len}, &got, id, why, sizeof why),
            COORDI_SAY_NOTHING);
        assert_text(got.result, strcmp(DATA[i], "[]") == 0 ? "{}" : DATA[i]);
        coordi_free(body);
        body = coordi_wire_cancel(ID, &len);
        assert_int_equal(
            coordi_wire_read_cancel((coord_text){body, len}, &got, id, why, sizeof why),
            COORDI_SAY_NOTHING);
        assert_string_equal(id, ID);
        coordi_free(body);
    }
}

/* ---- ids ---- */

static void an_id_is_a_string_that_python_takes_for_a_uuid(void **state)
{
    (void)state;
    char id[COORDI_UUID_SIZE];
    assert_true(coordi_wire_read_id(text("\"" ID "\""), id));
    assert_true(
        coordi_wire_read_id(text("\"{12345678-12345678-12345678-12345678}\""), id));
    assert_string_equal(id, ID);
    static const char *const BAD[] = {"",
                                      ID,
                                      "null",
                                      "1",
                                      "\"\"",
                                      "\" " ID "\"",
                                      "[\"" ID "\"]",
                                      "\"12345678-1234-5678-1234-56781234567\\u0000\"",
                                      "\"12345678-1234-5678-1234-56781234567\\ud800\""};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        assert_false(coordi_wire_read_id(text(BAD[i]), id));
    }
}

/* A result that is too big is cut off; its task has to be found all the same. */
static void the_first_part_of_a_body_tells_the_id(void **state)
{
    (void)state;
    static const char BODY[] =
        "{\"x\": {\"id\": \"y\"}, \"task\": {\"z\": 1, \"id\": \"" ID
        "\"}, \"result\": {\"id\": 7, \"task\": 8}}";
    const size_t closed = (size_t)(strstr(BODY, ID) - BODY) + strlen(ID) + 1;
    for (size_t len = 0; len < sizeof BODY; len++) {
        char id[COORDI_UUID_SIZE] = "";
        assert_int_equal(coordi_wire_prefix_id((coord_text){BODY, len}, id),
                         len >= closed);
        assert_string_equal(id, len >= closed ? ID : "");
    }
}

static void a_first_part_without_an_id_tells_none(void **state)
{
    (void)state;
    static const char *const BODY[] = {
        "",
        "zz",
        "[{\"task\": {\"id\": \"" ID "\"}}]",
        "{\"id\": \"" ID "\"}",
        "{\"task\": \"" ID "\"}",
        "{\"task\": {\"id\": 5}}",
        "{\"task\": {\"id\": {\"id\": \"" ID "\"}}}",
        "{\"task\": {\"x\": {\"id\": \"" ID "\"}}",
        "{\"result\": {\"task\": {\"id\": \"" ID "\"}}",
        "{\"task\": {\"id\": \"zz\"}, \"result\": [",
        "{\"task\": {\"task.id\": \"" ID "\"}, \"task.id\": \"" ID "\"",
        "{\"task\" {\"id\": \"" ID "\"}}",
    };
    for (size_t i = 0; i < COUNT(BODY); i++) {
        char id[COORDI_UUID_SIZE];
        if (coordi_wire_prefix_id(text(BODY[i]), id)) {
            fail_msg("<%s> tells %s", BODY[i], id);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_spelled_as_python_spells_them),
        cmocka_unit_test(null_or_no_data_becomes_an_empty_object),
        cmocka_unit_test(other_data_is_kept_even_if_python_takes_it_for_false),
        cmocka_unit_test(a_falsy_result_becomes_an_empty_object),
        cmocka_unit_test(without_memory_nothing_is_built),
        cmocka_unit_test(bodies_that_are_no_json_are_malformed),
        cmocka_unit_test(too_deep_a_body_is_malformed),
        cmocka_unit_test(missing_keys_are_named_in_the_order_of_the_protocol),
        cmocka_unit_test(a_connect_gives_address_and_data),
        cmocka_unit_test(an_address_that_is_none_is_left_to_the_caller),
        cmocka_unit_test(data_of_any_type_is_taken),
        cmocka_unit_test(the_id_of_a_new_task_is_handed_on_as_it_is),
        cmocka_unit_test(a_result_gives_the_canonical_id_and_the_raw_result),
        cmocka_unit_test(the_last_of_duplicate_keys_counts),
        cmocka_unit_test(a_reason_is_cut_to_the_room_there_is),
        cmocka_unit_test(what_is_built_reads_back),
        cmocka_unit_test(an_id_is_a_string_that_python_takes_for_a_uuid),
        cmocka_unit_test(the_first_part_of_a_body_tells_the_id),
        cmocka_unit_test(a_first_part_without_an_id_tells_none),
    };
    return cmocka_run_group_tests_name("wire_request", tests, NULL, NULL);
}
