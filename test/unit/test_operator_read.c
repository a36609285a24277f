/* Answers of operator servers, read: shapes as the real ones send them, and what is not
 * one. */
#include "service/operator_answer.h"
#include "support/heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const coordi_operator_reading V1_GET = {.api = COORDI_OPERATOR_V1,
                                               .must_list = true,
                                               .name_space = "default",
                                               .name = "job-coordinator",
                                               .max_replicas = 100,
                                               .what = "here"};

static coord_error err;
static coordi_operator_verdict said;

static coord_status read_as(coordi_operator_reading how, int http_status,
                            const char *body)
{
    coord_operator_answer_destroy(said.answer);
    memset(&err, 0, sizeof err);
    return coordi_operator_read(&how, http_status, coord_text_of(body), &said, &err);
}

static coordi_operator_reading a_change(void)
{
    coordi_operator_reading how = V1_GET;
    how.must_list = false;
    return how;
}

static coordi_operator_reading of_v2(bool must_list)
{
    coordi_operator_reading how = V1_GET;
    how.api = COORDI_OPERATOR_V2;
    how.must_list = must_list;
    return how;
}

static int done(void **state)
{
    (void)state;
    coord_operator_answer_destroy(said.answer);
    said.answer = NULL;
    return 0;
}

#define ENVELOPE(data)                                                                   \
    "{\"success\":true,\"code\":0,\"message\":\"successfully get "                       \
    "replicas\",\"data\":" data "}\n"
#define OURS "\"namespace\":\"default\",\"coordinator\":\"job-coordinator\""
#define NO(data)                                                                         \
    "{\"success\":false,\"code\":1,\"message\":\"pods is forbidden\",\"data\":" data "}"

static void an_object_of_a_coordinator_is_read(void **state)
{
    (void)state;
    assert_int_equal(
        read_as(V1_GET, 200,
                ENVELOPE("{" OURS
                         ",\"collectors\":[\"job-collector-x7b2q.default:22270\","
                         "\"job-collector-9k2pd.default:80\"],"
                         "\"learners\":[\"job-aggregator-aaaaa.default:22272\"]}")),
        COORD_OK);
    assert_true(said.told);
    assert_int_equal(said.answer->collector_count, 2);
    assert_int_equal(said.answer->collectors[1].port, 80);
    assert_int_equal(said.answer->learner_count, 1);
    assert_string_equal(said.answer->learners[0].name, "job-aggregator-aaaaa");
    assert_string_equal(said.answer->message, "successfully get replicas");
}

static void null_absent_and_empty_lists_are_alike(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        ENVELOPE("{" OURS ",\"collectors\":null,\"learners\":null}"),
        ENVELOPE("{" OURS ",\"collectors\":[],\"learners\":null}"),
        ENVELOPE("{" OURS ",\"collectors\":{},\"learners\":{}}"),
        ENVELOPE("{" OURS ",\"collectors\":[]}"),
        ENVELOPE("{\"collectors\":[],\"learners\":[]}"),
    };
    for (size_t i = 0; i < sizeof BODIES / sizeof BODIES[0]; i++) {
        assert_int_equal(read_as(V1_GET, 200, BODIES[i]), COORD_OK);
        assert_int_equal(said.answer->collector_count, 0);
        assert_true(said.answer->complete);
    }
}

static void keys_of_objects_are_ids_too(void **state)
{
    (void)state;
    assert_int_equal(read_as(V1_GET, 200,
                             ENVELOPE("{\"collectors\":{\"127.0.0.1:22270\":{\"cpu\":1}},"
                                      "\"learners\":{}}")),
                     COORD_OK);
    assert_int_equal(said.answer->collector_count, 1);
    assert_string_equal(said.answer->collectors[0].name, "127.0.0.1");
    assert_string_equal(said.answer->collectors[0].host, "127.0.0.1");
}

static void of_many_coordinators_ours_is_taken(void **state)
{
    (void)state;
    assert_int_equal(
        read_as(V1_GET, 200,
                ENVELOPE("[{\"namespace\":\"\",\"coordinator\":\"\",\"collectors\":null,"
                         "\"learners\":null},{\"namespace\":\"x\",\"coordinator\":"
                         "\"job-coordinator\",\"collectors\":[],\"learners\":[]},"
                         "{" OURS ",\"collectors\":[\"a.default:1\"],\"learners\":[]}]")),
        COORD_OK);
    assert_int_equal(said.answer->collector_count, 1);
    assert_int_equal(read_as(V1_GET, 200, ENVELOPE("[]")), COORD_ERR_PROTOCOL);
}

static void data_on_errors_is_read(void **state)
{
    (void)state;
    assert_int_equal(read_as(a_change(), 500,
                             NO("{" OURS ",\"collectors\":[\"a.default:1\"],"
                                "\"learners\":null}")),
                     COORD_ERR_REFUSED);
    assert_true(said.told);
    assert_int_equal(said.answer->collector_count, 1);
    assert_int_equal(err.http_status, 500);
    assert_int_equal(err.peer_code, 1);
    assert_string_equal(err.cause, "pods is forbidden");
    assert_int_equal(read_as(a_change(), 404,
                             NO("{\"namespace\":\"\",\"coordinator\":\"\","
                                "\"collectors\":null,\"learners\":null}")),
                     COORD_ERR_NOT_FOUND);
    assert_true(said.told);
    assert_int_equal(read_as(a_change(), 500, NO("null")), COORD_ERR_REFUSED);
    assert_false(said.told);
    assert_int_equal(read_as(a_change(), 500, NO("[7]")), COORD_ERR_REFUSED);
    assert_false(said.told);
    assert_int_equal(read_as(V1_GET, 404, NO("null")), COORD_ERR_NOT_FOUND);
    assert_false(said.no_route);
}

static void a_yes_with_a_bad_status_and_a_no_with_a_good_one_are_no(void **state)
{
    (void)state;
    assert_int_equal(read_as(V1_GET, 500, ENVELOPE("null")), COORD_ERR_REFUSED);
    assert_int_equal(read_as(V1_GET, 200, NO("null")), COORD_ERR_REFUSED);
}

static void pages_of_others_tell_whether_the_path_is_there(void **state)
{
    (void)state;
    static const struct {
        int http_status;
        const char *body;
        bool no_route;
    } CASES[] = {
        {404, "404 page not found\n", true},
        {301, "<a href=\"/v1alpha1/replicas\">Moved Permanently</a>.\n\n", true},
        {502, "<html>502 Bad Gateway</html>", false},
        {200, "", false},
        {200, "{\"success\":true", false},
        {404, "{\"detail\":\"Not Found\"}", true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_int_equal(read_as(V1_GET, CASES[i].http_status, CASES[i].body),
                         COORD_ERR_PROTOCOL);
        assert_int_equal(said.no_route, CASES[i].no_route);
        assert_null(said.answer);
        assert_int_equal(err.http_status, CASES[i].http_status);
        assert_non_null(strstr(err.text, "here: HTTP "));
    }
}

static void what_would_look_like_the_end_of_all_workers_is_refused(void **state)
{
    (void)state;
    static const char *const BODIES[] = {
        ENVELOPE("null"),
        ENVELOPE("{}"),
        ENVELOPE("{" OURS "}"),
        ENVELOPE("{\"namespace\":\"\",\"coordinator\":\"\",\"collectors\":null,"
                 "\"learners\":null}"),
        ENVELOPE("{\"namespace\":\"default\",\"coordinator\":\"x\",\"collectors\":[],"
                 "\"learners\":[]}"),
        ENVELOPE("{\"namespace\":\"x\",\"coordinator\":\"job-coordinator\","
                 "\"collectors\":[],\"learners\":[]}"),
        ENVELOPE("{" OURS ",\"collectors\":\"\",\"learners\":[]}"),
        ENVELOPE("{" OURS ",\"collectors\":[],\"learners\":0}"),
        "{\"success\":true,\"code\":0,\"message\":\"\"}",
    };
    for (size_t i = 0; i < sizeof BODIES / sizeof BODIES[0]; i++) {
        const coord_status rc = read_as(V1_GET, 200, BODIES[i]);
        if (rc != COORD_ERR_PROTOCOL) {
            fail_msg("%zu: %d", i, (int)rc);
        }
        assert_non_null(strstr(err.text, "expected"));
    }
}

static void a_bad_entry_is_named_and_takes_the_completeness(void **state)
{
    (void)state;
    static const char *const ENTRIES[] = {
        "7",         "\"\"",          "\"a:0\"",   "\"a:65536\"",    "\"a:\"",
        "\"a:1x\"",  "\":1\"",        "\"a b:1\"", "\"http://a:1\"", "\"[::1:2\"",
        "\"[a]:2\"", "\"\\u0000:1\"", "[\"a:1\"]"};
    for (size_t i = 0; i < sizeof ENTRIES / sizeof ENTRIES[0]; i++) {
        char body[512];
        (void)snprintf(body, sizeof body,
                       ENVELOPE("{\"collectors\":[%s,\"good.default:1\"],"
                                "\"learners\":[]}"),
                       ENTRIES[i]);
        assert_int_equal(read_as(V1_GET, 200, body), COORD_OK);
        assert_int_equal(said.answer->collector_count, 1);
        assert_int_equal(said.answer->skipped, 1);
        assert_false(said.answer->complete);
        assert_non_null(strstr(said.answer->skipped_text, "data.collectors: "));
        assert_non_null(strstr(said.answer->skipped_text, ENTRIES[i]));
    }
}

static void
what_stands_there_twice_counts_once_and_leaves_the_answer_complete(void **state)
{
    (void)state;
    assert_int_equal(read_as(V1_GET, 200,
                             ENVELOPE("{\"collectors\":[\"a:1\",\"a:1\"],"
                                      "\"learners\":[\"a:1\",\"b:1\"]}")),
                     COORD_OK);
    assert_int_equal(said.answer->collector_count, 1);
    assert_int_equal(said.answer->learner_count, 1);
    assert_int_equal(said.answer->skipped, 2);
    assert_true(said.answer->complete);
}

static void names_hosts_and_ports_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        const char *name;
        const char *host;
        int port;
    } CASES[] = {
        {"pod.default:80", "pod", "pod.default", 80},
        {"pod.default", "pod", "pod.default", 22270},
        {"pod:80", "pod", "pod", 80},
        {"pod", "pod", "pod", 22270},
        {"a.b.default:80", "a.b", "a.b.default", 80},
        {"pod.default.svc.cluster.local:80", "pod", "pod.default.svc.cluster.local", 80},
        {"pod.other:80", "pod", "pod.other", 80},
        {"10.1.2.3:80", "10.1.2.3", "10.1.2.3", 80},
        {"10.1.2.3", "10.1.2.3", "10.1.2.3", 22270},
        {"[fd00::1]:80", "fd00::1", "fd00::1", 80},
        {"fd00::1:80", "fd00::1", "fd00::1", 80},
        {"[fd00::1]", "fd00::1", "fd00::1", 22270},
        {"localhost:65535", "localhost", "localhost", 65535},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char body[256];
        (void)snprintf(body, sizeof body, ENVELOPE("{\"collectors\":[\"%s\"]}"),
                       CASES[i].id);
        assert_int_equal(read_as(V1_GET, 200, body), COORD_OK);
        assert_int_equal(said.answer->collector_count, 1);
        const coord_operator_replica *r = &said.answer->collectors[0];
        assert_string_equal(r->id, CASES[i].id);
        assert_string_equal(r->name, CASES[i].name);
        assert_string_equal(r->host, CASES[i].host);
        assert_int_equal(r->port, CASES[i].port);
    }
}

static void ids_have_255_bytes_at_most(void **state)
{
    (void)state;
    for (int len = 255; len <= 256; len++) {
        char body[1024];
        char id[300];
        memset(id, 'a', sizeof id);
        memcpy(id + len - 3, ":80", 4);
        (void)snprintf(body, sizeof body, ENVELOPE("{\"collectors\":[\"%s\"]}"), id);
        assert_int_equal(read_as(V1_GET, 200, body), COORD_OK);
        assert_int_equal(said.answer->collector_count, len == 255);
        assert_int_equal(said.answer->skipped, len == 256);
    }
}

static void of_more_entries_than_allowed_none_is_taken(void **state)
{
    (void)state;
    coordi_operator_reading how = V1_GET;
    how.max_replicas = 2;
    const char *three = ENVELOPE("{\"collectors\":[\"a\",\"b\"],\"learners\":[\"c\"]}");
    assert_int_equal(read_as(how, 200, three), COORD_ERR_TOO_BIG);
    assert_null(said.answer);
    how.max_replicas = 3;
    assert_int_equal(read_as(how, 200, three), COORD_OK);
}

static void nodes_are_read_by_rank(void **state)
{
    (void)state;
    assert_int_equal(read_as(of_v2(true), 200,
                             ENVELOPE("[\"10.1.0.1:22270\",\"\",\"10.1.0.3:22270\"]")),
                     COORD_OK);
    assert_int_equal(said.answer->node_count, 2);
    assert_int_equal(said.answer->nodes[1].rank, 2);
    assert_int_equal(said.answer->pending, 1);
    assert_true(said.answer->complete);
    assert_int_equal(read_as(of_v2(true), 200, ENVELOPE("null")), COORD_OK);
    assert_false(said.answer->complete);
    assert_int_equal(read_as(of_v2(true), 200, ENVELOPE("[\"\"]")), COORD_OK);
    assert_false(said.answer->complete);
    assert_int_equal(read_as(of_v2(false), 200, ENVELOPE("null")), COORD_OK);
    assert_true(said.answer->complete);
    assert_int_equal(read_as(of_v2(true), 200, ENVELOPE("{}")), COORD_ERR_PROTOCOL);
    assert_int_equal(read_as(of_v2(true), 200, ENVELOPE("\"x\"")), COORD_ERR_PROTOCOL);
}

static void words_of_the_server_forge_no_lines(void **state)
{
    (void)state;
    assert_int_equal(
        read_as(V1_GET, 500,
                "{\"success\":false,\"message\":\"a\\nb\\u0000c\\ud800\",\"data\":null}"),
        COORD_ERR_REFUSED);
    assert_null(strchr(err.cause, '\n'));
    assert_null(strchr(said.answer->message, '\n'));
}

static void a_lack_of_memory_is_told_and_leaves_nothing(void **state)
{
    (void)state;
    const char *body = ENVELOPE("{\"collectors\":[\"a:1\",7,\"b:1\",\"b:1\"],"
                                "\"learners\":[\"c:1\"]}");
    coord_operator_answer_destroy(said.answer);
    said.answer = NULL;
    bool failed = true;
    for (uint64_t n = 0; failed; n++) {
        heap_watch();
        heap_fail(n, 1);
        const coord_status rc = read_as(V1_GET, 200, body);
        failed = heap_mend();
        assert_true(rc == COORD_OK || (failed && rc == COORD_ERR_NOMEM));
        coord_operator_answer_destroy(said.answer);
        said.answer = NULL;
        heap_expect_nothing_left("an answer");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_object_of_a_coordinator_is_read, done),
        cmocka_unit_test_teardown(null_absent_and_empty_lists_are_alike, done),
        cmocka_unit_test_teardown(keys_of_objects_are_ids_too, done),
        cmocka_unit_test_teardown(of_many_coordinators_ours_is_taken, done),
        cmocka_unit_test_teardown(data_on_errors_is_read, done),
        cmocka_unit_test_teardown(a_yes_with_a_bad_status_and_a_no_with_a_good_one_are_no,
                                  done),
        cmocka_unit_test_teardown(pages_of_others_tell_whether_the_path_is_there, done),
        cmocka_unit_test_teardown(what_would_look_like_the_end_of_all_workers_is_refused,
                                  done),
        cmocka_unit_test_teardown(a_bad_entry_is_named_and_takes_the_completeness, done),
        cmocka_unit_test_teardown(
            what_stands_there_twice_counts_once_and_leaves_the_answer_complete, done),
        cmocka_unit_test_teardown(names_hosts_and_ports_are_told_apart, done),
        cmocka_unit_test_teardown(ids_have_255_bytes_at_most, done),
        cmocka_unit_test_teardown(of_more_entries_than_allowed_none_is_taken, done),
        cmocka_unit_test_teardown(nodes_are_read_by_rank, done),
        cmocka_unit_test_teardown(words_of_the_server_forge_no_lines, done),
        cmocka_unit_test_teardown(a_lack_of_memory_is_told_and_leaves_nothing, done),
    };
    return cmocka_run_group_tests_name("operator_read", tests, NULL, NULL);
}
