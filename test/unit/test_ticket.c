/* Ids of requests that are known again: wire/ticket.h. */
#include "wire/ticket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const coordi_ticket_key KEY = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}};

static void assert_same(const coordi_ticket *given)
{
    char id[COORDI_UUID_SIZE];
    char canonical[COORDI_UUID_SIZE];
    coordi_ticket got;
    coordi_ticket_print(&KEY, given, id);
    assert_true(coordi_uuid_read(id, strlen(id), canonical));
    assert_string_equal(canonical, id);
    assert_int_equal(id[14], '8'); /* version */
    assert_non_null(strchr("89ab", id[19]));
    assert_true(coordi_ticket_read(&KEY, id, &got));
    assert_true(got.task == given->task);
    assert_int_equal(got.attempt, given->attempt);
    assert_true(got.sequence == given->sequence);
    assert_int_equal(got.kind, given->kind);
}

static void a_ticket_is_read_as_it_was_printed(void **state)
{
    (void)state;
    const uint64_t tasks[] = {0, 1, 77, (UINT64_C(1) << 36) - 1};
    const uint32_t attempts[] = {0, 1, 4095};
    const uint64_t sequences[] = {0, 1, (1U << 24) - 1, 1U << 24,
                                  (UINT64_C(1) << 34) - 1};
    for (size_t i = 0; i < 4 * 3 * 5 * 4; i++) {
        coordi_ticket ticket = {tasks[i % 4], attempts[i / 4 % 3], sequences[i / 12 % 5],
                                (coordi_ticket_kind)(i / 60)};
        assert_same(&ticket);
    }
}

static void large_numbers_lose_their_upper_bits(void **state)
{
    (void)state;
    coordi_ticket ticket = {1, 4096 + 7, (UINT64_C(1) << 34) + 9, COORDI_TICKET_CLOSE};
    coordi_ticket got;
    char id[COORDI_UUID_SIZE];
    coordi_ticket_print(&KEY, &ticket, id);
    assert_true(coordi_ticket_read(&KEY, id, &got));
    assert_int_equal(got.attempt, coordi_ticket_attempt(ticket.attempt));
    assert_int_equal(got.attempt, 7);
    assert_true(got.sequence == coordi_ticket_sequence(ticket.sequence));
    assert_true(got.sequence == 9);
}

static void what_another_key_sealed_is_not_ours(void **state)
{
    (void)state;
    coordi_ticket_key other = KEY;
    coordi_ticket ticket = {5, 1, 2, COORDI_TICKET_ASK};
    coordi_ticket got;
    char id[COORDI_UUID_SIZE];
    other.bytes[15] = 1;
    coordi_ticket_print(&KEY, &ticket, id);
    assert_false(coordi_ticket_read(&other, id, &got));
}

/* Any digit that changes breaks the seal. */
static void a_changed_ticket_is_not_ours(void **state)
{
    (void)state;
    coordi_ticket ticket = {123456, 3, 789, COORDI_TICKET_LEARN};
    coordi_ticket got;
    char id[COORDI_UUID_SIZE];
    coordi_ticket_print(&KEY, &ticket, id);
    for (size_t i = 0; i < COORDI_UUID_SIZE - 1; i++) {
        char was = id[i];
        if (was == '-') {
            continue;
        }
        for (const char *c = "0123456789abcdef"; *c != '\0'; c++) {
            id[i] = *c;
            if (*c != was && coordi_ticket_read(&KEY, id, &got)) {
                fail_msg("%s is taken for a ticket", id);
            }
        }
        id[i] = was;
    }
}

static void other_text_is_no_ticket(void **state)
{
    (void)state;
    const char *texts[] = {"", "x", "12345678-90ab-cdef-1234-567890abcdef",
                           "12345678-90ab-8def-9234-567890abcdef",
                           "12345678-90ab-8def-9234-567890abcdef00"};
    coordi_ticket got;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_false(coordi_ticket_read(&KEY, texts[i], &got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ticket_is_read_as_it_was_printed),
        cmocka_unit_test(large_numbers_lose_their_upper_bits),
        cmocka_unit_test(what_another_key_sealed_is_not_ours),
        cmocka_unit_test(a_changed_ticket_is_not_ours),
        cmocka_unit_test(other_text_is_no_ticket),
    };
    return cmocka_run_group_tests_name("ticket", tests, NULL, NULL);
}
