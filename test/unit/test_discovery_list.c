/* The lines that discovery answers with. */
#include "service/discovery_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static coord_error err;

/* "c|host|port|id" of each worker, closed by blanks; or what is wrong. */
static const char *read_bytes(const char *bytes, size_t len)
{
    static char told[1024];
    coord_text list = {bytes, len};
    coordi_discovery_worker w;
    size_t at = 0;
    size_t end = 0;
    told[0] = '\0';
    if (coordi_discovery_list_check(list, &err) != COORD_OK) {
        return err.text;
    }
    while (coordi_discovery_list_next(list, &at, &w)) {
        end +=
            (size_t)snprintf(told + end, sizeof told - end, "%c|%s|%u|%s ",
                             coord_role_str(w.role)[0], w.host, (unsigned)w.port, w.id);
    }
    return told;
}

#define READ(text) read_bytes((text), sizeof(text) - 1)

static void a_line_names_a_worker(void **state)
{
    (void)state;
    assert_string_equal(READ("collector 10.0.0.7:22270\n"
                             "learner [fd00::2]:22271 learner-of-rack-2\n"),
                        "c|10.0.0.7|22270|10.0.0.7:22270 "
                        "l|fd00::2|22271|learner-of-rack-2 ");
    assert_string_equal(READ("learner [fe80::1%eth0]:1"),
                        "l|fe80::1%eth0|1|[fe80::1%eth0]:1 ");
    assert_string_equal(READ("collector node-7.cluster.local:65535 gr\303\274n"),
                        "c|node-7.cluster.local|65535|gr\303\274n ");
}

static void blanks_remarks_and_ends_of_lines_do_not_count(void **state)
{
    (void)state;
    assert_string_equal(READ(""), "");
    assert_string_equal(READ("\n\r\n \t\n# collector a:1\n\t  # \xff\n#"), "");
    assert_string_equal(READ("\t collector \t a:1  x\t\r\n\r\nlearner\tb:2"),
                        "c|a|1|x l|b|2|b:2 ");
}

static void ids_are_unique_within_a_role(void **state)
{
    (void)state;
    assert_string_equal(READ("collector a:1 x\nlearner a:2 x\ncollector a:1 y\n"),
                        "c|a|1|x l|a|2|x c|a|1|y ");
    assert_string_equal(READ("collector a:1 x\n\ncollector b:1 x\n"),
                        "line 3, \"collector b:1 x\": has the id of line 1; each "
                        "collector needs one of its own");
    assert_int_equal(err.status, COORD_ERR_FORMAT);
    assert_string_equal(READ("learner a:1\nlearner a:01"),
                        "line 2, \"learner a:01\": has the id of line 1; each learner "
                        "needs one of its own");
}

#define FORM "; expected: role host:port [id]"

static void what_is_wrong_is_told_with_its_line(void **state)
{
    static const struct {
        const char *line;
        const char *what;
    } WRONG[] = {
        {"collector", "that is too little"},
        {"collector a:1 x y", "that is too much"},
        {"collector a:1 x # y", "that is too much"},
        {"collector a:1 #x", "an id does not begin with #, remarks have their own lines"},
        {"Collector a:1", "the role must be collector or learner"},
        {"a:1 collector", "the role must be collector or learner"},
        {"learner a", "the address lacks a port"},
        {"learner [::1]", "the address lacks a port"},
        {"learner a:", "that is no address"},
        {"learner :1", "that is no address"},
        {"learner a:x", "that is no address"},
        {"learner a:65536", "that is no address"},
        {"learner a:-1", "that is no address"},
        {"learner ::1:22270", "that is no address"},
        {"learner [a]:1", "that is no address"},
        {"learner http://a:1", "that is no address"},
        {"learner a:1/x", "that is no address"},
        {"learner a:0", "the port must be the one that it listens on, not 0"},
        {"learner a:1 x\x1b[1m", "it must be UTF-8 without control characters"},
        {"learner a:1 \xc3", "it must be UTF-8 without control characters"},
        {"learner a:1 x\ry", "it must be UTF-8 without control characters"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        char list[128];
        char line[64];
        char text[256];
        (void)snprintf(list, sizeof list, "collector z:1\n %s \nlearner z:1\n",
                       WRONG[i].line);
        (void)snprintf(line, sizeof line, "%s", WRONG[i].line);
        for (char *at = line; *at != '\0'; at++) {
            *at = *at < ' ' ? '?' : *at;
        }
        (void)snprintf(text, sizeof text, "line 2, \"%s\": %s" FORM, line, WRONG[i].what);
        assert_string_equal(read_bytes(list, strlen(list)), text);
        assert_int_equal(err.status, COORD_ERR_FORMAT);
    }
}

static void a_nul_ends_nothing(void **state)
{
    (void)state;
    assert_string_equal(READ("collector a:1\0 x\n"),
                        "line 1, \"collector a:1? x\": it must be UTF-8 without control "
                        "characters" FORM);
    assert_string_equal(READ("\0"), "line 1, \"?\": it must be UTF-8 without control "
                                    "characters" FORM);
    assert_string_equal(READ("# \0 \ncollector a:1"), "c|a|1|a:1 ");
}

static void long_lines_and_ids_are_wrong(void **state)
{
    char list[4096];
    char x[1200];
    (void)state;
    memset(x, 'x', sizeof x);
    (void)snprintf(list, sizeof list, "learner a:1 %.255s\n", x);
    assert_non_null(strstr(read_bytes(list, strlen(list)), "l|a|1|xxx"));
    (void)snprintf(list, sizeof list, "learner a:1 %.256s\n", x);
    assert_non_null(
        strstr(read_bytes(list, strlen(list)), "...\": an id has at most 255 bytes"));
    (void)snprintf(list, sizeof list, "learner %.255s:1 x\n", x);
    assert_non_null(strstr(read_bytes(list, strlen(list)), "x|1|x "));
    (void)snprintf(list, sizeof list, "learner %.255s:1\n", x);
    assert_non_null(strstr(read_bytes(list, strlen(list)), "too long to be an id"));
    (void)snprintf(list, sizeof list, "learner a:1 x%*s\n", 2000, "");
    assert_string_equal(read_bytes(list, strlen(list)), "l|a|1|x ");
    (void)snprintf(list, sizeof list, "learner a:1%*s\n", 1013, "x");
    assert_non_null(
        strstr(read_bytes(list, strlen(list)), "a line has at most 1023 bytes"));
    (void)snprintf(list, sizeof list, "#%*s\n", 2000, "x");
    assert_string_equal(read_bytes(list, strlen(list)), "");
}

static void a_list_has_limits(void **state)
{
    coordi_discovery_worker w;
    const size_t room = (size_t)COORDI_DISCOVERY_MAX_BYTES + 1;
    char *list = malloc(room);
    size_t len = 0;
    size_t at = 0;
    size_t count = 0;
    (void)state;
    assert_non_null(list);
    for (int i = 0; i < COORDI_DISCOVERY_MAX_WORKERS; i++) {
        len += (size_t)snprintf(list + len, room - len, "collector h:1 %d\n", i);
    }
    coord_text text = {list, len};
    assert_int_equal(coordi_discovery_list_check(text, &err), COORD_OK);
    while (coordi_discovery_list_next(text, &at, &w)) {
        count++;
    }
    assert_int_equal(count, COORDI_DISCOVERY_MAX_WORKERS);
    len += (size_t)snprintf(list + len, room - len, "learner h:1\n");
    assert_string_equal(read_bytes(list, len), "a list has at most 10000 workers");
    assert_int_equal(err.status, COORD_ERR_TOO_BIG);

    memset(list, '\n', room);
    assert_string_equal(read_bytes(list, room - 1), "");
    assert_string_equal(read_bytes(list, room), "a list has at most 1048576 bytes");
    assert_int_equal(err.status, COORD_ERR_TOO_BIG);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_names_a_worker),
        cmocka_unit_test(blanks_remarks_and_ends_of_lines_do_not_count),
        cmocka_unit_test(ids_are_unique_within_a_role),
        cmocka_unit_test(what_is_wrong_is_told_with_its_line),
        cmocka_unit_test(a_nul_ends_nothing),
        cmocka_unit_test(long_lines_and_ids_are_wrong),
        cmocka_unit_test(a_list_has_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
