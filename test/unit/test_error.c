#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void assert_ends_with(const char *text, const char *end)
{
    assert_true(strlen(text) >= strlen(end));
    assert_string_equal(text + strlen(text) - strlen(end), end);
}

static void every_status_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = COORD_OK; i <= COORD_ERR_CALLBACK; i++) {
        const char *name = coord_status_str((coord_status)i);
        assert_string_not_equal(name, "unknown status");
        for (int j = COORD_OK; j < i; j++) {
            assert_string_not_equal(name, coord_status_str((coord_status)j));
        }
    }
    static const int STRANGE[] = {-1, COORD_ERR_CALLBACK + 1, 1000000};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(coord_status_str((coord_status)STRANGE[i]), "unknown status");
    }
}

static void a_failure_clears_what_was_there(void **state)
{
    (void)state;
    coord_error err;
    memset(&err, 0xff, sizeof err);
    assert_int_equal(coordi_fail(&err, COORD_ERR_BUSY, "%s has %d", "it", 7),
                     COORD_ERR_BUSY);
    coord_error expected = {.status = COORD_ERR_BUSY, .text = "it has 7"};
    assert_memory_equal(&err, &expected, sizeof err);
}

static void nobody_has_to_want_the_detail(void **state)
{
    (void)state;
    coord_error from = {.status = COORD_ERR_LOST};
    assert_int_equal(coordi_fail(NULL, COORD_ERR_ARG, "%d", 1), COORD_ERR_ARG);
    assert_int_equal(coordi_fail_errno(NULL, ENOENT, "%d", 1), COORD_ERR_IO);
    assert_int_equal(coordi_fail_because(NULL, COORD_ERR_IO, &from, "x"), COORD_ERR_IO);
    assert_int_equal(coordi_fail_nomem(NULL, "x"), COORD_ERR_NOMEM);
    assert_int_equal(coordi_fail_copy(NULL, &from), COORD_ERR_LOST);
}

static void a_text_that_does_not_fit_ends_in_dots(void **state)
{
    (void)state;
    static char words[1000];
    coord_error err;
    memset(words, 'w', sizeof words - 1);
    (void)coordi_fail(&err, COORD_ERR_ARG, "%.255s", words);
    assert_int_equal(strlen(err.text), 255);
    assert_ends_with(err.text, "www"); /* just fits */
    (void)coordi_fail(&err, COORD_ERR_ARG, "%.256s", words);
    assert_int_equal(strlen(err.text), 255);
    assert_ends_with(err.text, "w...");
    (void)coordi_fail_errno(&err, ENOENT, "%s", words);
    assert_ends_with(err.text, "w...");
    (void)coordi_fail_because(&err, COORD_ERR_ARG, NULL, "%s", words);
    assert_ends_with(err.text, "w...");
    assert_string_equal(err.cause, "");
}

static void a_text_is_one_line_of_utf8_whatever_a_peer_said(void **state)
{
    (void)state;
    static const struct {
        const char *said;
        const char *text;
    } CASE[] = {
        {"<!doctype html>\n<p>\t500\r\n", "<!doctype html>?<p>?500??"},
        {"\x1b[31m\x7f", "?[31m?"},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\xff\xfe", "a??"},
        {"\x80\xbf", "??"},           /* no lead */
        {"\xc3", "?"},                /* cut */
        {"\xe2\x82", "??"},           /**/
        {"\xf0\x9f\x98", "???"},      /**/
        {"\xc3(", "?("},              /**/
        {"\xc0\x80\xc1\xbf", "????"}, /* overlong */
        {"\xe0\x9f\xbf", "???"},      /**/
        {"\xf0\x8f\xbf\xbf", "????"}, /**/
        {"\xed\xa0\x80", "???"},      /* a surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* beyond U+10FFFF */
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
        {"\xee\x80\x80\xed\x9f\xbf", "\xee\x80\x80\xed\x9f\xbf"},
    };
    for (size_t i = 0; i < sizeof CASE / sizeof CASE[0]; i++) {
        coord_error err;
        (void)coordi_fail(&err, COORD_ERR_PROTOCOL, "%s", CASE[i].said);
        assert_string_equal(err.text, CASE[i].text);
    }
}

static void a_character_that_the_end_cuts_is_replaced(void **state)
{
    (void)state;
    static char words[400];
    coord_error err;
    for (size_t i = 0; i + 1 < sizeof words - 1; i += 2) {
        memcpy(words + i, "\xc3\xa4", 2);
    }
    (void)coordi_fail(&err, COORD_ERR_ARG, "%s", words);
    assert_ends_with(err.text, "\xc3\xa4...");
    (void)coordi_fail(&err, COORD_ERR_ARG, "x%s", words);
    assert_ends_with(err.text, "\xc3\xa4?...");
}

static void a_failed_system_call_tells_its_errno(void **state)
{
    (void)state;
    coord_error err;
    memset(&err, 0xff, sizeof err);
    assert_int_equal(coordi_fail_errno(&err, ENOENT, "open '%s'", "f"), COORD_ERR_IO);
    coord_error expected = {.status = COORD_ERR_IO,
                            .os_errno = ENOENT,
                            .text = "open 'f'",
                            .cause = "No such file or directory"};
    assert_memory_equal(&err, &expected, sizeof err);
}

static void a_cause_becomes_a_chain(void **state)
{
    (void)state;
    coord_error deep;
    coord_error middle;
    coord_error top;
    (void)coordi_fail_errno(&deep, ECONNREFUSED, "connect to a:1");
    deep.http_status = 500;
    deep.peer_code = 601;
    (void)coordi_fail_because(&middle, COORD_ERR_LOST, &deep, "start of %d", 3);
    assert_int_equal(coordi_fail_because(&top, COORD_ERR_TASK, &middle, "task"),
                     COORD_ERR_TASK);
    assert_int_equal(top.status, COORD_ERR_TASK);
    assert_int_equal(top.os_errno, ECONNREFUSED);
    assert_int_equal(top.http_status, 500);
    assert_int_equal(top.peer_code, 601);
    assert_string_equal(top.text, "task");
    assert_string_equal(top.cause, "start of 3: connect to a:1: Connection refused");
}

static void a_failure_can_be_its_own_cause(void **state)
{
    (void)state;
    coord_error err;
    (void)coordi_fail(&err, COORD_ERR_NETWORK, "inner");
    assert_int_equal(coordi_fail_because(&err, COORD_ERR_LOST, &err, "outer"),
                     COORD_ERR_LOST);
    assert_string_equal(err.text, "outer");
    assert_string_equal(err.cause, "inner");
    (void)coordi_fail_because(&err, COORD_ERR_TASK, &err, "outermost");
    assert_string_equal(err.cause, "outer: inner");
}

static void a_cause_may_be_missing_or_empty(void **state)
{
    (void)state;
    coord_error err;
    coord_error empty = {.status = COORD_OK};
    (void)coordi_fail_because(&err, COORD_ERR_TASK, NULL, "alone");
    assert_string_equal(err.cause, "");
    (void)coordi_fail_because(&err, COORD_ERR_TASK, &empty, "alone");
    assert_string_equal(err.cause, "");
    (void)snprintf(empty.cause, sizeof empty.cause, "only a cause");
    (void)coordi_fail_because(&err, COORD_ERR_TASK, &empty, "alone");
    assert_string_equal(err.cause, "only a cause");
}

static void a_chain_that_does_not_fit_ends_in_dots(void **state)
{
    (void)state;
    static char words[1000];
    coord_error err = {.status = COORD_OK};
    for (size_t i = 0; i + 1 < sizeof words - 1; i += 2) {
        memcpy(words + i, "\xc3\xa4", 2);
    }
    for (int i = 0; i < 10; i++) {
        (void)coordi_fail_because(&err, COORD_ERR_TASK, &err, "%s%s",
                                  i % 2 == 0 ? "" : "x", words);
        if (i >= 3) {
            assert_int_equal(strlen(err.cause), sizeof err.cause - 1);
            assert_ends_with(err.cause, "...");
        }
    }
    char again[sizeof err.cause];
    memcpy(again, err.cause, sizeof again);
    coord_error copy;
    (void)coordi_fail(&copy, COORD_ERR_TASK, "%.250s", again + 260); /* it is all UTF-8 */
    assert_null(strstr(copy.text + 1, "??"));
}

static void a_copy_is_the_whole_failure(void **state)
{
    (void)state;
    coord_error from;
    coord_error err;
    (void)coordi_fail_errno(&from, EIO, "read");
    assert_int_equal(coordi_fail_copy(&err, &from), COORD_ERR_IO);
    assert_memory_equal(&err, &from, sizeof err);
    assert_int_equal(coordi_fail_copy(&err, &err), COORD_ERR_IO);
}

static void no_memory_names_the_thing(void **state)
{
    (void)state;
    coord_error err;
    assert_int_equal(coordi_fail_nomem(&err, "task"), COORD_ERR_NOMEM);
    assert_string_equal(err.text, "task: out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_of_its_own),
        cmocka_unit_test(a_failure_clears_what_was_there),
        cmocka_unit_test(nobody_has_to_want_the_detail),
        cmocka_unit_test(a_text_that_does_not_fit_ends_in_dots),
        cmocka_unit_test(a_text_is_one_line_of_utf8_whatever_a_peer_said),
        cmocka_unit_test(a_character_that_the_end_cuts_is_replaced),
        cmocka_unit_test(a_failed_system_call_tells_its_errno),
        cmocka_unit_test(a_cause_becomes_a_chain),
        cmocka_unit_test(a_failure_can_be_its_own_cause),
        cmocka_unit_test(a_cause_may_be_missing_or_empty),
        cmocka_unit_test(a_chain_that_does_not_fit_ends_in_dots),
        cmocka_unit_test(a_copy_is_the_whole_failure),
        cmocka_unit_test(no_memory_names_the_thing),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
