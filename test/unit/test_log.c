#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct sink {
    int lines;
    coord_log_level level;
    char line[2048];
} sink;

static void write_down(coord_log_level level, const char *line, void *user)
{
    sink *s = user;
    s->lines++;
    s->level = level;
    (void)snprintf(s->line, sizeof s->line, "%s", line);
}

static int formatted;

static int count_formatting(void)
{
    return ++formatted;
}

static void a_line_opens_with_who_writes_it(void **state)
{
    (void)state;
    sink s = {0};
    coordi_log log = {write_down, &s, COORD_LOG_INFO, "master"};
    COORDI_LOG(&log, COORD_LOG_WARN, "heartbeat missed slave=%s misses=%d", "c0", 2);
    assert_int_equal(s.lines, 1);
    assert_int_equal(s.level, COORD_LOG_WARN);
    assert_string_equal(s.line, "master: heartbeat missed slave=c0 misses=2");
}

static void only_the_level_and_what_is_graver_is_written(void **state)
{
    (void)state;
    for (int level = COORD_LOG_OFF; level <= COORD_LOG_DEBUG; level++) {
        sink s = {0};
        coordi_log log = {write_down, &s, (coord_log_level)level, "x"};
        COORDI_LOG(&log, COORD_LOG_ERROR, "1");
        COORDI_LOG(&log, COORD_LOG_WARN, "2");
        COORDI_LOG(&log, COORD_LOG_INFO, "3");
        COORDI_LOG(&log, COORD_LOG_DEBUG, "4");
        assert_int_equal(s.lines, level);
    }
}

static void nothing_is_formatted_for_nobody(void **state)
{
    (void)state;
    sink s = {0};
    coordi_log log = {write_down, &s, COORD_LOG_INFO, "x"};
    coordi_log silent = {NULL, NULL, COORD_LOG_DEBUG, "x"};
    formatted = 0;
    COORDI_LOG(&log, COORD_LOG_DEBUG, "%d", count_formatting());
    COORDI_LOG(&silent, COORD_LOG_ERROR, "%d", count_formatting());
    assert_int_equal(formatted, 0);
    COORDI_LOG(&log, COORD_LOG_INFO, "%d", count_formatting());
    assert_int_equal(formatted, 1);
}

static void control_characters_cannot_forge_lines(void **state)
{
    (void)state;
    sink s = {0};
    coordi_log log = {write_down, &s, COORD_LOG_INFO, "x"};
    char all[33];
    for (int c = 1; c < 0x20; c++) {
        all[c - 1] = (char)c;
    }
    all[31] = 0x7f;
    all[32] = '\0';
    COORDI_LOG(&log, COORD_LOG_INFO, "id=%s|", all);
    assert_int_equal(strspn(s.line + strlen("x: id="), "?"), 32);
    assert_string_equal(s.line + strlen("x: id=") + 32, "|");
}

static void text_is_kept_and_bytes_that_are_none_are_not(void **state)
{
    (void)state;
    sink s = {0};
    coordi_log log = {write_down, &s, COORD_LOG_INFO, "x"};
    COORDI_LOG(&log, COORD_LOG_INFO, "id=%s", "\xc3\xa4\xff\xe2\x82\xac");
    assert_string_equal(s.line, "x: id=\xc3\xa4?\xe2\x82\xac");
}

static void a_long_line_is_cut(void **state)
{
    (void)state;
    static char words[5000];
    sink s = {0};
    coordi_log log = {write_down, &s, COORD_LOG_INFO, "x"};
    memset(words, 'w', sizeof words - 1);
    COORDI_LOG(&log, COORD_LOG_INFO, "%s", words);
    assert_int_equal(s.lines, 1);
    assert_int_equal(strlen(s.line), 1023);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_opens_with_who_writes_it),
        cmocka_unit_test(only_the_level_and_what_is_graver_is_written),
        cmocka_unit_test(nothing_is_formatted_for_nobody),
        cmocka_unit_test(control_characters_cannot_forge_lines),
        cmocka_unit_test(text_is_kept_and_bytes_that_are_none_are_not),
        cmocka_unit_test(a_long_line_is_cut),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
