#include "base/alloc.h"
#include "support/config_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void workers_are_read_in_their_order(void **state)
{
    (void)state;
    coordi_config c =
        config_good("{\"learner\": {\"x\": [\"l\\u00e4\", \"::1\", 65535]}, "
                    "\"collector\": {\"1\": [\"b\", \"10.0.0.1\", 1], \"0\": "
                    "[\"a\", \"fe80::1%eth0\", "
                    "22270]}}");
    static const coordi_config_worker EXPECTED[] = {
        {COORD_COLLECTOR, "b", "10.0.0.1", 1, false},
        {COORD_COLLECTOR, "a", "fe80::1%eth0", 22270, false},
        {COORD_LEARNER, "l\xc3\xa4", "::1", 65535, false},
    };
    assert_int_equal(c.worker_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(c.workers[i].role, EXPECTED[i].role);
        assert_string_equal(c.workers[i].id, EXPECTED[i].id);
        assert_string_equal(c.workers[i].host, EXPECTED[i].host);
        assert_int_equal(c.workers[i].port, EXPECTED[i].port);
    }
    coordi_config_done(&c);
}

static void a_wrong_worker_is_named_by_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *worker;
        const char *text;
    } CASE[] = {
        {"[\"c\", \"h\", \"x\"]",
         "collector.1[2]: port must be an integer from 0 to 65535, got \"x\""},
        {"[\"c\", \"h\", 65536]",
         "collector.1[2]: port must be an integer from 0 to 65535, got 65536"},
        {"[\"c\", \"h\", -1]",
         "collector.1[2]: port must be an integer from 0 to 65535, got -1"},
        {"[\"c\", \"h\", 1.0]",
         "collector.1[2]: port must be an integer from 0 to 65535, got 1.0"},
        {"[\"c\", \"h\", null]",
         "collector.1[2]: port must be an integer from 0 to 65535, got null"},
        {"[\"c\", \"h\", 0]",
         "collector.1[2]: port must be the one that the worker listens on, got 0"},
        {"[\"\", \"h\", 1]",
         "collector.1[0]: id must be a string of 1 to 255 bytes, got \"\""},
        {"[7, \"h\", 1]", "collector.1[0]: id must be a string of 1 to 255 bytes, got 7"},
        {"[null, \"h\", 1]",
         "collector.1[0]: id must be a string of 1 to 255 bytes, got null"},
        {"[\"a\\u0000\", \"h\", 1]",
         "collector.1[0]: id must be a string of 1 to 255 bytes, got \"a\\u0000\""},
        {"[\"\\ud800\", \"h\", 1]",
         "collector.1[0]: id must be a string of 1 to 255 bytes, got \"\\ud800\""},
        {"[\"c\", \"\", 1]",
         "collector.1[1]: host must be a host's name or address, without "
         "port and brackets, got \"\""},
        {"[\"c\", 5, 1]",
         "collector.1[1]: host must be a host's name or address, without "
         "port and brackets, got 5"},
        {"[\"c\", \"[::1]\", 1]",
         "collector.1[1]: host must be a host's name or address, "
         "without port and brackets, got \"[::1]\""},
        {"[\"c\", \"h:1\", 1]", "collector.1[1]: host must be a host's name or address, "
                                "without port and brackets, got \"h:1\""},
        {"[\"c\", \"h\"]",
         "collector.1: must be a list of three: [id, host, port], got [\"c\", \"h\"]"},
        {"[\"c\", \"h\", 1, 2]",
         "collector.1: must be a list of three: [id, host, port], got "
         "[\"c\", \"h\", 1, 2]"},
        {"[1, 2, 3, 4, 5]",
         "collector.1: must be a list of three: [id, host, port], got [1, 2, 3, 4, 5]"},
        {"[]", "collector.1: must be a list of three: [id, host, port], got []"},
        {"{}", "collector.1: must be a list of three: [id, host, port], got {}"},
        {"null", "collector.1: must be a list of three: [id, host, port], got null"},
        {"\"abc\"",
         "collector.1: must be a list of three: [id, host, port], got \"abc\""},
    };
    for (size_t i = 0; i < COUNT(CASE); i++) {
        char json[256];
        (void)snprintf(json, sizeof json,
                       "{\"collector\": {\"0\": [\"good\", \"h\", 1], \"1\": %s}}",
                       CASE[i].worker);
        config_wrong(json, COORD_ERR_CONFIG, CASE[i].text);
    }
    config_wrong("{\"learner\": {\"a: b\": 5}}", COORD_ERR_CONFIG,
                 "learner.a: b: must be a list of three: [id, host, port], got 5");
    config_wrong("{\"learner\": {\"\": 5}}", COORD_ERR_CONFIG,
                 "learner.: must be a list of three: [id, host, port], got 5");
}

static void a_long_path_or_value_is_cut(void **state)
{
    (void)state;
    char name[300];
    char json[700];
    char text[400];
    memset(name, 'k', sizeof name);
    name[sizeof name - 1] = '\0';
    (void)snprintf(json, sizeof json, "{\"learner\": {\"%s\": \"%s\"}}", name, name);
    (void)snprintf(
        text, sizeof text,
        "learner.%.100s: must be a list of three: [id, host, port], got \"%.63s...", name,
        name);
    config_wrong(json, COORD_ERR_CONFIG, text);
}

static void an_id_has_at_most_255_bytes(void **state)
{
    (void)state;
    char id[300];
    char json[400];
    char text[200];
    memset(id, 'i', sizeof id);
    id[255] = '\0';
    (void)snprintf(json, sizeof json, "{\"collector\": {\"0\": [\"%s\", \"h\", 1]}}", id);
    coordi_config c = config_good(json);
    assert_string_equal(c.workers[0].id, id);
    coordi_config_done(&c);
    id[255] = 'i';
    id[256] = '\0';
    (void)snprintf(json, sizeof json, "{\"collector\": {\"0\": [\"%s\", \"h\", 1]}}", id);
    (void)snprintf(
        text, sizeof text,
        "collector.0[0]: id must be a string of 1 to 255 bytes, got \"%.63s...", id);
    config_wrong(json, COORD_ERR_CONFIG, text);
}

static void an_id_is_used_once_within_a_role(void **state)
{
    (void)state;
    config_wrong(
        "{\"collector\": {\"0\": [\"a\", \"h\", 1], \"1\": [\"b\", \"h\", 2], \"2\": "
        "[\"\\u0061\", \"h\", 3]}}",
        COORD_ERR_CONFIG, "collector.2[0]: id \"a\" is the id of another collector, too");
    config_wrong("{\"learner\": {\"0\": [\"a\", \"h\", 1], \"1\": [\"a\", \"h\", 1]}}",
                 COORD_ERR_CONFIG,
                 "learner.1[0]: id \"a\" is the id of another learner, too");
}

static void both_roles_may_use_the_same_id(void **state)
{
    (void)state;
    coordi_config c =
        config_good("{\"collector\": {\"0\": [\"a\", \"h\", 1]}, \"learner\": "
                    "{\"0\": [\"a\", \"h\", 1]}}");
    assert_int_equal(c.worker_count, 2);
    coordi_config_done(&c);
}

static void keys_of_workers_mean_nothing(void **state)
{
    (void)state;
    coordi_config c =
        config_good("{\"collector\": {\"0\": [\"a\", \"h\", 1], \"0\": [\"b\", "
                    "\"h\", 2], \"\\ud800\": [\"c\", \"h\", 3]}}");
    assert_int_equal(c.worker_count, 3);
    coordi_config_done(&c);
}

static void thousands_of_workers_are_fine(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    static char json[MANY * 48];
    size_t at = (size_t)snprintf(json, sizeof json, "{\"collector\": {");
    for (int i = 0; i < MANY; i++) {
        at += (size_t)snprintf(json + at, sizeof json - at,
                               "%s\"%d\": [\"c%d\", \"h\", 1]", i == 0 ? "" : ",", i, i);
    }
    (void)snprintf(json + at, sizeof json - at, "}}");
    coordi_config c = config_good(json);
    assert_int_equal(c.worker_count, MANY);
    assert_string_equal(c.workers[MANY - 1].id, "c4999");
    coordi_config_done(&c);
}

/* ---- while it runs ---- */

static bool always(void *user)
{
    (void)user;
    return true;
}

static coordi_config_worker worker(coord_role role, const char *id)
{
    coordi_config_worker w = {.role = role, .host = "h", .port = 1};
    (void)snprintf(w.id, sizeof w.id, "%s", id);
    return w;
}

static bool add(coordi_config *c, coord_role role, const char *id)
{
    const coordi_config_worker w = worker(role, id);
    return coordi_config_add_worker(c, &w, NULL) == COORD_OK;
}

/* The ids in their order, collectors in upper case. */
static void assert_ids(const coordi_config *c, const char *ids)
{
    assert_int_equal(c->worker_count, strlen(ids));
    for (size_t i = 0; i < c->worker_count; i++) {
        const char id = c->workers[i].id[0];
        const char shown = c->workers[i].role == COORD_COLLECTOR ? id : (char)(id | 32);
        assert_int_equal(shown, ids[i]);
    }
}

static void workers_are_added_behind_the_others(void **state)
{
    (void)state;
    coordi_config c = config_good("{\"collector\": {\"0\": [\"A\", \"h\", 1]}}");
    assert_true(add(&c, COORD_LEARNER, "B"));
    assert_true(add(&c, COORD_COLLECTOR, "B"));
    assert_true(add(&c, COORD_LEARNER, "A"));
    assert_ids(&c, "AbBa");
    assert_string_equal(c.workers[3].host, "h");
    assert_int_equal(c.workers[3].port, 1);
    coordi_config_done(&c);
}

static void a_worker_that_is_there_is_not_added(void **state)
{
    (void)state;
    coord_error err;
    coordi_config c = config_good("{\"collector\": {\"0\": [\"A\", \"h\", 1]}}");
    assert_int_equal(coordi_config_add_worker(&c, &c.workers[0], &err), COORD_ERR_EXISTS);
    assert_string_equal(err.text, "collector \"A\" is there already");
    assert_ids(&c, "A");
    coordi_config_done(&c);
}

static void workers_are_removed_and_the_others_keep_their_order(void **state)
{
    (void)state;
    coordi_config c = config_good("{}");
    assert_false(coordi_config_remove_worker(&c, COORD_COLLECTOR, "A"));
    for (const char *id = "ABCDE"; *id != '\0'; id++) {
        const char text[] = {*id, '\0'};
        assert_true(add(&c, COORD_COLLECTOR, text));
    }
    assert_false(coordi_config_remove_worker(&c, COORD_LEARNER, "A"));
    assert_false(coordi_config_remove_worker(&c, COORD_COLLECTOR, "X"));
    assert_ids(&c, "ABCDE");
    assert_true(coordi_config_remove_worker(&c, COORD_COLLECTOR, "C"));
    assert_ids(&c, "ABDE");
    assert_true(coordi_config_remove_worker(&c, COORD_COLLECTOR, "E"));
    assert_true(coordi_config_remove_worker(&c, COORD_COLLECTOR, c.workers[0].id));
    assert_ids(&c, "BD");
    assert_true(add(&c, COORD_COLLECTOR, "A"));
    assert_ids(&c, "BDA");
    coordi_config_done(&c);
}

/* A sanitizer sees it when there is not room for all. */
static void they_may_come_and_go_in_any_number(void **state)
{
    (void)state;
    coordi_config c = config_good("{}");
    char id[16];
    int first = 0;
    int next = 0;
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < round % 7 * 5; i++) {
            (void)snprintf(id, sizeof id, "%d", next++);
            assert_true(add(&c, COORD_COLLECTOR, id));
        }
        for (int i = 0; i < round % 6 * 6 && first < next; i++) {
            (void)snprintf(id, sizeof id, "%d", first++);
            assert_true(coordi_config_remove_worker(&c, COORD_COLLECTOR, id));
        }
        assert_int_equal(c.worker_count, next - first);
        for (size_t i = 0; i < c.worker_count; i++) {
            (void)snprintf(id, sizeof id, "%d", first + (int)i);
            assert_string_equal(c.workers[i].id, id);
        }
    }
    assert_true(first > 100);
    coordi_config_done(&c);
}

static void without_memory_no_worker_is_added(void **state)
{
    (void)state;
    coord_error err;
    coordi_config c = config_good("{\"collector\": {\"0\": [\"A\", \"h\", 1]}}");
    const coordi_config_worker w = worker(COORD_COLLECTOR, "B");
    coordi_alloc_set_fault(always, NULL);
    coord_status rc = coordi_config_add_worker(&c, &w, &err);
    coordi_alloc_set_fault(NULL, NULL);
    assert_int_equal(rc, COORD_ERR_NOMEM);
    assert_string_equal(err.text, "configuration: out of memory");
    assert_ids(&c, "A");
    assert_true(add(&c, COORD_COLLECTOR, "B"));
    assert_ids(&c, "AB");
    coordi_config_done(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_are_read_in_their_order),
        cmocka_unit_test(a_wrong_worker_is_named_by_its_path),
        cmocka_unit_test(a_long_path_or_value_is_cut),
        cmocka_unit_test(an_id_has_at_most_255_bytes),
        cmocka_unit_test(an_id_is_used_once_within_a_role),
        cmocka_unit_test(both_roles_may_use_the_same_id),
        cmocka_unit_test(keys_of_workers_mean_nothing),
        cmocka_unit_test(thousands_of_workers_are_fine),
        cmocka_unit_test(workers_are_added_behind_the_others),
        cmocka_unit_test(a_worker_that_is_there_is_not_added),
        cmocka_unit_test(workers_are_removed_and_the_others_keep_their_order),
        cmocka_unit_test(they_may_come_and_go_in_any_number),
        cmocka_unit_test(without_memory_no_worker_is_added),
    };
    return cmocka_run_group_tests_name("config_workers", tests, NULL, NULL);
}
