#include "service/operator_roles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The first ranks as letters. */
static const char *letters(const coordi_operator_roles *roles, int64_t count)
{
    static char text[32];
    for (int64_t rank = 0; rank < count; rank++) {
        const int role = coordi_operator_role_of(roles, rank);
        text[rank] = role == COORD_COLLECTOR ? 'c' : role == COORD_LEARNER ? 'l' : '-';
    }
    text[count] = '\0';
    return text;
}

static void the_first_are_learners_and_we_are_no_worker(void **state)
{
    (void)state;
    coordi_operator_roles roles = {.own_rank = -1, .learners = 2};
    assert_string_equal(letters(&roles, 5), "llccc");
    roles.own_rank = 0;
    assert_string_equal(letters(&roles, 5), "-llcc");
    roles.own_rank = 1;
    assert_string_equal(letters(&roles, 5), "l-lcc");
    roles.own_rank = 4;
    assert_string_equal(letters(&roles, 5), "llcc-");
    roles.learners = 0;
    assert_string_equal(letters(&roles, 5), "cccc-");
    assert_int_equal(coordi_operator_role_of(&roles, -1), COORDI_OPERATOR_NO_ROLE);
}

static void what_is_given_wins_and_its_last_holds_for_the_rest(void **state)
{
    (void)state;
    coordi_operator_roles roles = {.own_rank = 1,
                                   .given = "-lc",
                                   .nodes = "j-learner-0,j-learner-1,j-learner-2",
                                   .job = "ns.j",
                                   .learners = 5};
    assert_string_equal(letters(&roles, 5), "--ccc");
    roles.given = "l";
    assert_string_equal(letters(&roles, 3), "l-l");
    roles.given = "";
    assert_string_equal(letters(&roles, 3), "---");
}

static void names_tell_by_their_task(void **state)
{
    (void)state;
    coordi_operator_roles roles = {
        .own_rank = -1,
        .nodes = "my.job-serial-0.my-job.ns, my.job-collector-0.x,my.job-learner-gpu-0.x,"
                 "my.job-collectors-1.x",
        .job = "ns.my.job",
        .learners = 0};
    assert_string_equal(letters(&roles, 4), "-clc");
    /* Those that have come since then have no name. */
    assert_string_equal(letters(&roles, 6), "-clccc");
    roles.learners = 6;
    assert_string_equal(letters(&roles, 6), "-clcll");
    roles.job = "ns.my.job.17"; /* with its generation, of version 1.0 */
    assert_string_equal(letters(&roles, 4), "-clc");
    roles.job = "ns.other";
    assert_string_equal(letters(&roles, 4), "----");
    roles.job = "";
    assert_string_equal(letters(&roles, 4), "----");
    roles.job = NULL;
    assert_string_equal(letters(&roles, 4), "----");
}

static void odd_names_are_nobody(void **state)
{
    static const char *const ODD[] = {"j-",
                                      "j-collecto",
                                      "collector-0",
                                      "jcollector-0",
                                      "j_collector-0",
                                      "xj-collector-0",
                                      "j"};
    (void)state;
    for (size_t i = 0; i < sizeof ODD / sizeof ODD[0]; i++) {
        const coordi_operator_roles roles = {
            .own_rank = -1, .nodes = ODD[i], .job = "ns.j"};
        assert_int_equal(coordi_operator_role_of(&roles, 0), COORDI_OPERATOR_NO_ROLE);
    }
    const coordi_operator_roles gaps = {
        .own_rank = -1, .nodes = ",j-learner-0,,", .job = "j", .learners = 1};
    assert_string_equal(letters(&gaps, 5), "llccc"); /* no name is no name */
}

static void ranks_are_numbers(void **state)
{
    static const char *const WRONG[] = {"-1", "1.0", " 1", "x", "1234567890", "0x1"};
    int64_t rank = 7;
    (void)state;
    assert_true(coordi_operator_rank_read(NULL, &rank) && rank == -1);
    assert_true(coordi_operator_rank_read("0", &rank) && rank == 0);
    assert_true(coordi_operator_rank_read("", &rank) && rank == -1);
    assert_true(coordi_operator_rank_read("012", &rank) && rank == 12);
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
        assert_false(coordi_operator_rank_read(WRONG[i], &rank));
    }
    assert_int_equal(rank, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_are_learners_and_we_are_no_worker),
        cmocka_unit_test(what_is_given_wins_and_its_last_holds_for_the_rest),
        cmocka_unit_test(names_tell_by_their_task),
        cmocka_unit_test(odd_names_are_nobody),
        cmocka_unit_test(ranks_are_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
