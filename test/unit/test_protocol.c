/* lib/wire/PROTOCOL says what the code says. */
#include "base/alloc.h"
#include "codec/json.h"
#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char page[1 << 16];

static int read_page(void **state)
{
    (void)state;
    FILE *f = fopen("lib/wire/PROTOCOL", "re"); /* tests run in the top folder */
    if (f == NULL) {
        return -1;
    }
    size_t len = fread(page, 1, sizeof page - 1, f);
    (void)fclose(f);
    page[len] = '\0';
    return len < sizeof page - 1 ? 0 : -1;
}

/* Does the table of codes have this row? */
static bool lists(int code, const char *who)
{
    char row[32];
    (void)snprintf(row, sizeof row, "\n    %-4d %-7s ", code, who);
    return strstr(page, row) != NULL;
}

static void the_table_of_codes_is_the_enum(void **state)
{
    static const struct {
        int code;
        const char *who;
    } ENUM[] = {
        {COORDI_CODE_OK, "both"},
        {COORDI_CODE_SHUTTING_DOWN, "both"},
        {COORDI_CODE_NO_CHANNEL, "both"},
        {COORDI_CODE_WRONG_CHANNEL, "both"},
        {COORDI_CODE_NO_MASTER_TOKEN, "slave"},
        {COORDI_CODE_WRONG_MASTER_TOKEN, "slave"},
        {COORDI_CODE_NO_SELF_TOKEN, "both"},
        {COORDI_CODE_WRONG_SELF_TOKEN, "both"},
        {COORDI_CODE_SLAVE_CONNECTED, "slave"},
        {COORDI_CODE_SLAVE_NOT_CONNECTED, "slave"},
        {COORDI_CODE_CONNECT_REFUSED, "slave"},
        {COORDI_CODE_DISCONNECT_REFUSED, "slave"},
        {COORDI_CODE_SLAVE_BUSY, "slave"},
        {COORDI_CODE_TASK_REFUSED, "slave"},
        {COORDI_CODE_NO_SLAVE_TOKEN, "master"},
        {COORDI_CODE_WRONG_SLAVE_TOKEN, "master"},
        {COORDI_CODE_WRONG_RESULT, "master"},
    };
    const size_t count = sizeof ENUM / sizeof ENUM[0];
    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (!lists(ENUM[i].code, ENUM[i].who)) {
            fail_msg("PROTOCOL lacks code %d of %s", ENUM[i].code, ENUM[i].who);
        }
    }
    size_t rows = 0;
    const char *table = strstr(page, "\n    0    both ");
    assert_non_null(table);
    for (const char *at = table; at != NULL && strncmp(at, "\n    ", 5) == 0;
         at = strchr(at + 1, '\n')) {
        rows++;
    }
    assert_int_equal(rows, count);
}

static void every_recorded_answer_stands_there_with_its_status_and_code(void **state)
{
    (void)state;
    for (int say = COORDI_SAY_SHUTTING_DOWN; say < COORDI_SAY_COUNT; say++) {
        size_t len;
        char *body =
            coordi_wire_answer((coordi_say)say, NULL, (coord_text){NULL, 0}, &len);
        coordi_answer answer;
        char message[128];
        assert_non_null(body);
        (void)coordi_wire_read_answer(coordi_wire_status((coordi_say)say),
                                      (coord_text){body, len}, "test", &answer, NULL);
        assert_int_equal(coordi_json_string(answer.message, message, sizeof message),
                         COORD_OK);
        bool ours = strcmp(message, "Bad request.") == 0 ||
                    strcmp(message, "Channel is not an integer.") == 0 ||
                    strstr(message, "endpoint.") == message + strlen(message) - 9 ||
                    say == COORDI_SAY_NOT_CONNECTED || say == COORDI_SAY_SHUTDOWN_LATER;
        const char *at = strstr(page, message);
        if (at == NULL && !ours) {
            fail_msg("PROTOCOL lacks \"%s\"", message);
        }
        char status_and_code[32];
        (void)snprintf(status_and_code, sizeof status_and_code, "%d %d ",
                       coordi_wire_status((coordi_say)say), answer.code);
        if (!ours && strncmp(at - strlen(status_and_code), status_and_code,
                             strlen(status_and_code)) != 0) {
            bool second_of_two = say == COORDI_SAY_PONG ||
                                 strstr(message, "aster token") ||
                                 strstr(message, "Slave token");
            if (!second_of_two) {
                fail_msg("PROTOCOL has \"%s\" without \"%s\"", message, status_and_code);
            }
        }
        coordi_free(body);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_codes_is_the_enum),
        cmocka_unit_test(every_recorded_answer_stands_there_with_its_status_and_code),
    };
    return cmocka_run_group_tests_name("protocol", tests, read_page, NULL);
}
