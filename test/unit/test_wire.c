#include "base/alloc.h"
#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
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

/* ---- answers ---- */

typedef struct row {
    coordi_say say;
    int http;
    const char *body;
} row;

/* As the reference's Flask wrote them, or, where it answers an HTML page, with a code
 * that its clients know. */
static const row ROW[] = {
    {COORDI_SAY_NOTHING, 500,
     "{\"code\":101,\"data\":null,\"message\":\"No answer.\",\"success\":false}\n"},
    {COORDI_SAY_SHUTTING_DOWN, 401,
     "{\"code\":101,\"data\":null,\"message\":\"System has already been shutting down.\","
     "\"success\":false}\n"},
    {COORDI_SAY_NO_CHANNEL, 400,
     "{\"code\":201,\"data\":null,\"message\":\"Channel not "
     "found.\",\"success\":false}\n"},
    {COORDI_SAY_BAD_CHANNEL, 400,
     "{\"code\":202,\"data\":null,\"message\":\"Channel is not an integer.\","
     "\"success\":false}\n"},
    {COORDI_SAY_WRONG_CHANNEL, 403,
     "{\"code\":202,\"data\":null,\"message\":\"Channel not match with this endpoint.\","
     "\"success\":false}\n"},
    {COORDI_SAY_PONG, 200,
     "{\"code\":0,\"data\":null,\"message\":\"PONG!\",\"success\":true}\n"},
    {COORDI_SAY_SHUTDOWN_LATER, 200,
     "{\"code\":0,\"data\":null,\"message\":\"Shutdown request received, this server "
     "will "
     "be down later.\",\"success\":true}\n"},
    {COORDI_SAY_NO_ENDPOINT, 404,
     "{\"code\":402,\"data\":null,\"message\":\"No such "
     "endpoint.\",\"success\":false}\n"},
    {COORDI_SAY_NO_METHOD, 405,
     "{\"code\":402,\"data\":null,\"message\":\"Method not allowed for this endpoint.\","
     "\"success\":false}\n"},
    {COORDI_SAY_NO_MASTER_TOKEN, 400,
     "{\"code\":301,\"data\":null,\"message\":\"Master token not found.\","
     "\"success\":false}\n"},
    {COORDI_SAY_WRONG_MASTER_TOKEN, 403,
     "{\"code\":302,\"data\":null,\"message\":\"Master not match with this endpoint.\","
     "\"success\":false}\n"},
    {COORDI_SAY_NO_OWN_SLAVE_TOKEN, 400,
     "{\"code\":401,\"data\":null,\"message\":\"Slave token not found.\","
     "\"success\":false}\n"},
    {COORDI_SAY_WRONG_OWN_SLAVE_TOKEN, 403,
     "{\"code\":402,\"data\":null,\"message\":\"Slave token not match with this "
     "endpoint.\","
     "\"success\":false}\n"},
    {COORDI_SAY_CONNECTED, 200,
     "{\"code\":0,\"data\":null,\"message\":\"Connect success.\",\"success\":true}\n"},
    {COORDI_SAY_ALREADY_CONNECTED, 400,
     "{\"code\":501,\"data\":null,\"message\":\"This slave already connected.\","
     "\"success\":false}\n"},
    {COORDI_SAY_CONNECT_REFUSED, 403,
     "{\"code\":503,\"data\":null,\"message\":\"Connection refused!\","
     "\"success\":false}\n"},
    {COORDI_SAY_DISCONNECTED, 200,
     "{\"code\":0,\"data\":null,\"message\":\"Disconnect success.\",\"success\":true}\n"},
    {COORDI_SAY_NOT_CONNECTED, 400,
     "{\"code\":502,\"data\":null,\"message\":\"This slave not connected yet.\","
     "\"success\":false}\n"},
    {COORDI_SAY_DISCONNECT_REFUSED, 403,
     "{\"code\":504,\"data\":null,\"message\":\"Disconnection refused!\","
     "\"success\":false}\n"},
    {COORDI_SAY_TASK_RECEIVED, 200,
     "{\"code\":0,\"data\":null,\"message\":\"Task received!\",\"success\":true}\n"},
    {COORDI_SAY_BUSY, 400,
     "{\"code\":601,\"data\":null,\"message\":\"Already has a task.\","
     "\"success\":false}\n"},
    {COORDI_SAY_TASK_REFUSED, 403,
     "{\"code\":602,\"data\":null,\"message\":\"Task refused!\",\"success\":false}\n"},
    {COORDI_SAY_CANCEL, 200,
     "{\"code\":0,\"data\":null,\"message\":\"Cancel received!\",\"success\":true}\n"},
    {COORDI_SAY_BAD_CONNECT, 400,
     "{\"code\":503,\"data\":null,\"message\":\"Bad request.\",\"success\":false}\n"},
    {COORDI_SAY_BAD_DISCONNECT, 400,
     "{\"code\":504,\"data\":null,\"message\":\"Bad request.\",\"success\":false}\n"},
    {COORDI_SAY_BAD_TASK, 400,
     "{\"code\":602,\"data\":null,\"message\":\"Bad request.\",\"success\":false}\n"},
    {COORDI_SAY_NO_SLAVE_TOKEN, 400,
     "{\"code\":501,\"data\":null,\"message\":\"Slave token not found.\","
     "\"success\":false}\n"},
    {COORDI_SAY_WRONG_SLAVE_TOKEN, 403,
     "{\"code\":502,\"data\":null,\"message\":\"No matching slave token found in this "
     "endpoint.\",\"success\":false}\n"},
    {COORDI_SAY_NO_OWN_MASTER_TOKEN, 400,
     "{\"code\":401,\"data\":null,\"message\":\"Master token not found.\","
     "\"success\":false}\n"},
    {COORDI_SAY_WRONG_OWN_MASTER_TOKEN, 403,
     "{\"code\":402,\"data\":null,\"message\":\"Master token not match with this "
     "endpoint.\",\"success\":false}\n"},
    {COORDI_SAY_HEARTBEAT, 200,
     "{\"code\":0,\"data\":null,\"message\":\"Received!\",\"success\":true}\n"},
    {COORDI_SAY_RESULT, 200,
     "{\"code\":0,\"data\":null,\"message\":\"Result received!\",\"success\":true}\n"},
    {COORDI_SAY_NO_TASK, 200,
     "{\"code\":601,\"data\":null,\"message\":\"Task information not found.\","
     "\"success\":false}\n"},
    {COORDI_SAY_NO_TASK_ID, 200,
     "{\"code\":601,\"data\":null,\"message\":\"Task ID not "
     "found.\",\"success\":false}\n"},
    {COORDI_SAY_BAD_RESULT, 400,
     "{\"code\":601,\"data\":null,\"message\":\"Bad request.\",\"success\":false}\n"},
};

static void every_answer_is_written_byte_for_byte_as_flask_writes_it(void **state)
{
    (void)state;
    assert_int_equal(COUNT(ROW), COORDI_SAY_COUNT);
    for (size_t i = 0; i < COUNT(ROW); i++) {
        size_t len = 0;
        assert_int_equal(ROW[i].say, i); /* all are there */
        char *body = coordi_wire_answer(ROW[i].say, NULL, text(NULL), &len);
        assert_string_equal(body, ROW[i].body);
        assert_int_equal(len, strlen(ROW[i].body));
        assert_int_equal(coordi_wire_status(ROW[i].say), ROW[i].http);
        coordi_free(body);
    }
}

static void every_answer_is_understood_by_our_own_reader(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(ROW); i++) {
        coordi_answer got;
        coord_error err;
        coord_status rc =
            coordi_wire_read_answer(ROW[i].http, text(ROW[i].body), "x", &got, &err);
        assert_int_equal(rc, got.success ? COORD_OK : COORD_ERR_REFUSED);
        assert_int_equal(got.success, strstr(ROW[i].body, "true") != NULL);
        assert_int_equal(got.success, got.code == 0);
    }
}

/* A code that a Python client doesn't know ends it with a KeyError. */
static void no_answer_has_a_code_that_python_does_not_know(void **state)
{
    (void)state;
    static const int KNOWN[] = {0,   101, 201, 202, 301, 302, 401,
                                402, 501, 502, 503, 504, 601, 602};
    for (size_t i = 0; i < COUNT(ROW); i++) {
        coordi_answer got;
        (void)coordi_wire_read_answer(ROW[i].http, text(ROW[i].body), "x", &got, NULL);
        bool known = false;
        for (size_t k = 0; k < COUNT(KNOWN); k++) {
            known = known || got.code == KNOWN[k];
        }
        assert_true(known);
        assert_true(got.code != 0 || coordi_wire_status(ROW[i].say) == 200);
    }
}

static void an_answer_takes_a_message_and_data(void **state)
{
    (void)state;
    size_t len = 0;
    char *body = coordi_wire_answer(COORDI_SAY_TASK_REFUSED, NULL,
                                    text("{\"why\": [NaN, \"no\"]}"), &len);
    assert_string_equal(body,
                        "{\"code\":602,\"data\":{\"why\": [NaN, \"no\"]},\"message\":"
                        "\"Task refused!\",\"success\":false}\n");
    coordi_free(body);
    body = coordi_wire_answer(COORDI_SAY_BAD_TASK, "The body lacks \"data\".\n", text(""),
                              NULL);
    assert_string_equal(body, "{\"code\":602,\"data\":null,\"message\":\"The body lacks "
                              "\\\"data\\\".\\u000a\",\"success\":false}\n");
    coordi_free(body);
}

/* ---- reading answers ---- */

static coord_status read_answer(int http, const char *body, coordi_answer *got,
                                coord_error *err)
{
    memset(got, 0xff, sizeof *got);
    memset(err, 0xff, sizeof *err);
    return coordi_wire_read_answer(http, text(body), "connect to a:1", got, err);
}

static void yes_is_yes(void **state)
{
    (void)state;
    static const int HTTP[] = {200, 201, 204, 299, 302, 399};
    for (size_t i = 0; i < COUNT(HTTP); i++) {
        coordi_answer got;
        coord_error err;
        assert_int_equal(read_answer(HTTP[i],
                                     "{\"code\":0,\"data\":null,\"message\":\"PONG!\","
                                     "\"success\":true}\n",
                                     &got, &err),
                         COORD_OK);
        assert_true(got.success);
        assert_int_equal(got.code, 0);
        assert_text(got.message, "\"PONG!\"");
        assert_text(got.data, "null");
    }
}

static void message_and_data_may_be_missing_and_others_are_ignored(void **state)
{
    (void)state;
    static const char *const BODY[] = {
        "{\"success\": true, \"code\": 0}",
        " { \"code\" :0 , \"success\":true } \r\n",
        "{\"code\":0,\"more\":[1e999,{\"success\":false}],\"success\":true,\"x\":NaN}",
        "{\"success\":false,\"code\":7,\"code\":0,\"success\":true}", /* the last one
                                                                         counts */
        "{\"succ\\u0065ss\":true,\"\\u0063ode\":-0}",
    };
    for (size_t i = 0; i < COUNT(BODY); i++) {
        coordi_answer got;
        coord_error err;
        assert_int_equal(read_answer(200, BODY[i], &got, &err), COORD_OK);
        assert_int_equal(got.code, 0);
        assert_int_equal(got.message.len, 0);
        assert_int_equal(got.data.len, 0);
    }
}

static void no_is_told_in_the_peers_words(void **state)
{
    (void)state;
    coordi_answer got;
    coord_error err;
    assert_int_equal(read_answer(403,
                                 "{\"code\":503,\"data\":{\"why\":\"no\"},\"message\":"
                                 "\"Connection refused!\",\"success\":false}\n",
                                 &got, &err),
                     COORD_ERR_REFUSED);
    assert_string_equal(err.text,
                        "connect to a:1: answered \"Connection refused!\" (code "
                        "503, HTTP 403)");
    assert_int_equal(err.status, COORD_ERR_REFUSED);
    assert_int_equal(err.http_status, 403);
    assert_int_equal(err.peer_code, 503);
    assert_false(got.success);
    assert_int_equal(got.code, 503);
    assert_text(got.data, "{\"why\":\"no\"}");
}

static void no_with_http_200_is_no(void **state)
{
    (void)state;
    coordi_answer got;
    coord_error err;
    assert_int_equal(read_answer(200,
                                 "{\"code\":601,\"data\":null,\"message\":\"Task ID not "
                                 "found.\",\"success\":false}",
                                 &got, &err),
                     COORD_ERR_REFUSED);
    assert_int_equal(err.http_status, 200);
    assert_int_equal(err.peer_code, 601);
}

static void an_http_failure_is_no_whatever_the_body_says(void **state)
{
    (void)state;
    static const int HTTP[] = {400, 403, 404, 500, 503, 599};
    for (size_t i = 0; i < COUNT(HTTP); i++) {
        coordi_answer got;
        coord_error err;
        assert_int_equal(
            read_answer(HTTP[i], "{\"success\":true,\"code\":0}", &got, &err),
            COORD_ERR_REFUSED);
        assert_int_equal(err.http_status, HTTP[i]);
        assert_int_equal(err.peer_code, 0);
        assert_int_equal(
            read_answer(HTTP[i], "{\"success\":false,\"code\":0}", &got, &err),
            COORD_ERR_REFUSED);
    }
}

static void what_is_no_answer_breaks_the_protocol(void **state)
{
    (void)state;
    static const char *const BODY[] = {
        "",
        " ",
        "null",
        "true",
        "[]",
        "{}",
        "\"yes\"",
        "OK",
        "<!doctype html>\n<html lang=en>\n<title>500 Internal Server Error</title>\n",
        "{\"code\":0}",
        "{\"success\":true}",
        "{\"success\":1,\"code\":0}",
        "{\"success\":\"true\",\"code\":0}",
        "{\"success\":null,\"code\":0}",
        "{\"success\":true,\"code\":null}",
        "{\"success\":true,\"code\":\"0\"}",
        "{\"success\":true,\"code\":0.0}",
        "{\"success\":true,\"code\":false}",
        "{\"success\":true,\"code\":2147483648}",
        "{\"success\":true,\"code\":-2147483649}",
        "{\"success\":true,\"code\":100000000000000000000000000000000000000000}",
        "{\"success\":true,\"code\":1e999}",
        "{\"success\":true,\"code\":NaN}",
        "{\"success\":true,\"code\":0",
        "{\"success\":true,\"code\":0}}",
        "{\"success\":true,\"code\":0,}",
        "{'success':true,'code':0}",
        "\xef\xbb\xbf{\"success\":true,\"code\":0}",
        "{\"success\":true,\"code\":0,\"message\":\"\xff\"}",
    };
    for (size_t i = 0; i < COUNT(BODY); i++) {
        coordi_answer got;
        coord_error err;
        if (read_answer(500, BODY[i], &got, &err) != COORD_ERR_PROTOCOL ||
            read_answer(200, BODY[i], &got, &err) != COORD_ERR_PROTOCOL) {
            fail_msg("<%s>: %s", BODY[i], err.text);
        }
        assert_int_equal(err.http_status, 200);
        assert_non_null(strstr(err.text, "connect to a:1: answered HTTP 200 without the "
                                         "four-key JSON body"));
    }
}

static void what_came_instead_of_an_answer_is_shown_on_one_line(void **state)
{
    (void)state;
    coordi_answer got;
    coord_error err;
    (void)read_answer(500,
                      "<!doctype html>\n<html lang=en>\n<title>500 Internal Server Error"
                      "</title>\n",
                      &got, &err);
    assert_string_equal(
        err.text, "connect to a:1: answered HTTP 500 without the four-key JSON body, "
                  "but with 72 bytes \"<!doctype html>?<html lang=en>?<title>50\"");
    (void)read_answer(200, "\x89PNG\r\n\xff\xc3", &got, &err);
    assert_non_null(strstr(err.text, "\"?PNG????\""));
    (void)coordi_wire_read_answer(502, (coord_text){NULL, 0}, "x", &got, &err);
    assert_string_equal(err.text,
                        "x: answered HTTP 502 without the four-key JSON body, but "
                        "with 0 bytes \"\"");
}

static void codes_at_the_limits_of_an_int_are_read(void **state)
{
    (void)state;
    coordi_answer got;
    coord_error err;
    (void)read_answer(400, "{\"success\":false,\"code\":2147483647}", &got, &err);
    assert_int_equal(err.peer_code, INT32_MAX);
    (void)read_answer(400, "{\"success\":false,\"code\":-2147483648}", &got, &err);
    assert_int_equal(err.peer_code, INT32_MIN);
}

static void assert_words(const char *message, const char *words)
{
    char body[2048];
    char expected[2048];
    coordi_answer got;
    coord_error err;
    (void)snprintf(body, sizeof body, "{\"success\":false,\"code\":1,\"message\":%s}",
                   message);
    (void)snprintf(expected, sizeof expected,
                   "connect to a:1: answered \"%s\" (code 1, HTTP 400)", words);
    assert_int_equal(read_answer(400, body, &got, &err), COORD_ERR_REFUSED);
    assert_string_equal(err.text, expected);
    assert_text(got.message, message);
}

static void any_message_can_be_told(void **state)
{
    (void)state;
    assert_words("\"\"", "");
    assert_words("\"\\u00e4 \\\"q\\\" \\\\\"", "\xc3\xa4 \"q\" \\");
    assert_words("\"two\\nlines\"", "two?lines");
    assert_words("null", "null"); /* not a string: as it came */
    assert_words("[1, NaN]", "[1, NaN]");
    assert_words("\"\\ud800 alone\"", "\\ud800 alone"); /* C can't hold those: likewise */
    assert_words("\"\\u0000\"", "\\u0000");
}

static void a_long_message_is_cut(void **state)
{
    (void)state;
    static const size_t LEN[] = {200, 511, 512, 513, 1900};
    for (size_t i = 0; i < COUNT(LEN); i++) {
        char body[2048];
        char words[2000];
        coordi_answer got;
        coord_error err;
        memset(words, 'w', sizeof words);
        (void)snprintf(body, sizeof body,
                       "{\"success\":false,\"code\":1,\"message\":\"%.*s\"}", (int)LEN[i],
                       words);
        assert_int_equal(read_answer(400, body, &got, &err), COORD_ERR_REFUSED);
        assert_memory_equal(err.text, "connect to a:1: answered \"wwww", 30);
        assert_int_equal(got.message.len, LEN[i] + 2);
        if (LEN[i] > 255) {
            assert_int_equal(strlen(err.text), 255);
            assert_string_equal(err.text + 252, "...");
        }
    }
}

static void nobody_has_to_want_the_detail(void **state)
{
    (void)state;
    coordi_answer got;
    assert_int_equal(coordi_wire_read_answer(500, text(""), "x", &got, NULL),
                     COORD_ERR_PROTOCOL);
    assert_int_equal(coordi_wire_read_answer(500, text("{\"success\":false,\"code\":1}"),
                                             "x", &got, NULL),
                     COORD_ERR_REFUSED);
}

/* ---- checks before the body ---- */

static void the_channel_is_read_as_python_writes_it(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int64_t own;
        coordi_say say;
    } CASE[] = {
        {NULL, 0, COORDI_SAY_NO_CHANNEL},
        {"", 0, COORDI_SAY_NO_CHANNEL},
        {"7", 7, COORDI_SAY_NOTHING},
        {"+7", 7, COORDI_SAY_NOTHING},
        {"07", 7, COORDI_SAY_NOTHING},
        {"+07", 7, COORDI_SAY_NOTHING},
        {"0000000000000000000000000000007", 7, COORDI_SAY_NOTHING},
        {" 7", 7, COORDI_SAY_NOTHING},
        {"7 ", 7, COORDI_SAY_NOTHING},
        {" \t 7 \t ", 7, COORDI_SAY_NOTHING},
        {"0", 0, COORDI_SAY_NOTHING},
        {"-0", 0, COORDI_SAY_NOTHING},
        {"+0", 0, COORDI_SAY_NOTHING},
        {"-7", -7, COORDI_SAY_NOTHING},
        {"2147483647", INT32_MAX, COORDI_SAY_NOTHING},
        {"-2147483648", INT32_MIN, COORDI_SAY_NOTHING},
        {"8", 7, COORDI_SAY_WRONG_CHANNEL},
        {"-7", 7, COORDI_SAY_WRONG_CHANNEL},
        {"77", 7, COORDI_SAY_WRONG_CHANNEL},
        {"4294967303", 7, COORDI_SAY_WRONG_CHANNEL},           /* 7 + 2^32 */
        {"18446744073709551623", 7, COORDI_SAY_WRONG_CHANNEL}, /* 7 + 2^64 */
        {"9223372036854775807", 7, COORDI_SAY_WRONG_CHANNEL},
        {"-9223372036854775808", 7, COORDI_SAY_WRONG_CHANNEL},
        {"99999999999999999999999999999999999999999", 7, COORDI_SAY_WRONG_CHANNEL},
        {"-99999999999999999999999999999999999999999", 7, COORDI_SAY_WRONG_CHANNEL},
        {"abc", 7, COORDI_SAY_BAD_CHANNEL},
        {"7.0", 7, COORDI_SAY_BAD_CHANNEL},
        {"7.", 7, COORDI_SAY_BAD_CHANNEL},
        {"7e0", 7, COORDI_SAY_BAD_CHANNEL},
        {"0x7", 7, COORDI_SAY_BAD_CHANNEL},
        {"0_7", 7, COORDI_SAY_BAD_CHANNEL}, /* Python's own clients never write it */
        {"7 7", 7, COORDI_SAY_BAD_CHANNEL},
        {"7,7", 7, COORDI_SAY_BAD_CHANNEL}, /* two headers */
        {"7, 7", 7, COORDI_SAY_BAD_CHANNEL},
        {"+", 7, COORDI_SAY_BAD_CHANNEL},
        {"-", 7, COORDI_SAY_BAD_CHANNEL},
        {"+-7", 7, COORDI_SAY_BAD_CHANNEL},
        {"--7", -7, COORDI_SAY_BAD_CHANNEL},
        {"- 7", -7, COORDI_SAY_BAD_CHANNEL},
        {" ", 7, COORDI_SAY_BAD_CHANNEL},
        {"\xd9\xa7", 7, COORDI_SAY_BAD_CHANNEL},
        {"99999999999999999999999999999999999999999x", 7, COORDI_SAY_BAD_CHANNEL},
    };
    for (size_t i = 0; i < COUNT(CASE); i++) {
        coordi_say say = coordi_wire_check_channel(CASE[i].header, CASE[i].own);
        if (say != CASE[i].say) {
            fail_msg("<%s> for %d: %d", CASE[i].header, (int)CASE[i].own, (int)say);
        }
    }
}

static void a_body_sent_as_a_form_is_not_seen(void **state)
{
    (void)state;
    static const char *const FORM[] = {
        "application/x-www-form-urlencoded", "Application/X-WWW-Form-URLEncoded",
        "application/x-www-form-urlencoded; charset=utf-8"};
    static const char *const OTHER[] = {NULL, "", "application/json", "text/plain",
                                        "application/x-www-form"};
    for (size_t i = 0; i < COUNT(FORM); i++) {
        assert_int_equal(coordi_wire_seen_body(FORM[i], text("{}")).len, 0);
    }
    for (size_t i = 0; i < COUNT(OTHER); i++) {
        assert_text(coordi_wire_seen_body(OTHER[i], text("{}")), "{}");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_written_byte_for_byte_as_flask_writes_it),
        cmocka_unit_test(every_answer_is_understood_by_our_own_reader),
        cmocka_unit_test(no_answer_has_a_code_that_python_does_not_know),
        cmocka_unit_test(an_answer_takes_a_message_and_data),
        cmocka_unit_test(yes_is_yes),
        cmocka_unit_test(message_and_data_may_be_missing_and_others_are_ignored),
        cmocka_unit_test(no_is_told_in_the_peers_words),
        cmocka_unit_test(no_with_http_200_is_no),
        cmocka_unit_test(an_http_failure_is_no_whatever_the_body_says),
        cmocka_unit_test(what_is_no_answer_breaks_the_protocol),
        cmocka_unit_test(what_came_instead_of_an_answer_is_shown_on_one_line),
        cmocka_unit_test(codes_at_the_limits_of_an_int_are_read),
        cmocka_unit_test(any_message_can_be_told),
        cmocka_unit_test(a_long_message_is_cut),
        cmocka_unit_test(nobody_has_to_want_the_detail),
        cmocka_unit_test(the_channel_is_read_as_python_writes_it),
        cmocka_unit_test(a_body_sent_as_a_form_is_not_seen),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
