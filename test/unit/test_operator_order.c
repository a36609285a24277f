/* `init_replicas_request`, as users of DI-engine have it. */
#include "service/operator_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static coordi_operator_order order;
static coord_error err;

static coord_status read_text(const char *text)
{
    return coordi_operator_order_read(&order, coord_text_of(text), &err);
}

static void counts_and_resources_of_both_roles_are_read(void **state)
{
    (void)state;
    assert_int_equal(
        read_text("{\"collectors\": {\"replicas\": 2, \"cpus\": \"0.5\", \"memory\": "
                  "\"200Mi\"}, \"learners\": {\"replicas\": 1, \"gpus\": 2}}"),
        COORD_OK);
    assert_int_equal(order.request.collectors, 2);
    assert_int_equal(order.request.learners, 1);
    assert_string_equal(order.request.collector_cpus, "0.5");
    assert_string_equal(order.request.collector_memory, "200Mi");
    assert_string_equal(order.request.learner_gpus, "2");
    assert_null(order.request.learner_memory);
    assert_null(order.request.collector_gpus);
    assert_string_equal(order.remark, "");
}

static void singular_names_are_taken_with_a_remark(void **state)
{
    (void)state;
    assert_int_equal(read_text("{\"learners\": {\"gpu\": \"1\", \"replicas\": 1}, "
                               "\"namespace\": \"x\", \"coordinator\": \"y\"}"),
                     COORD_OK);
    assert_string_equal(order.request.learner_gpus, "1");
    assert_non_null(strstr(order.remark, "learners.gpu is taken for gpus"));
}

static void nothing_is_nothing(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"{}", "{\"collectors\": null}",
                                        "{\"collectors\": {}, \"learners\": {}}",
                                        "{\"learners\": {\"cpus\": null}}"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(read_text(TEXTS[i]), COORD_OK);
        assert_int_equal(order.request.collectors + order.request.learners, 0);
        assert_null(order.request.learner_cpus);
    }
}

static void what_is_wrong_is_named_by_its_path(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"", "is not JSON"},
        {"[]", "an object with collectors and learners"},
        {"{\"collector\": {}}", "only collectors and learners, got \"collector\""},
        {"{\"collectors\": 2}", "collectors: expected an object"},
        {"{\"collectors\": {\"replicas\": 2.0}}", "collectors.replicas: expected"},
        {"{\"collectors\": {\"replicas\": -1}}", "collectors.replicas: expected"},
        {"{\"learners\": {\"replicas\": 10001}}", "learners.replicas: expected"},
        {"{\"learners\": {\"gpus\": \"\"}}", "learners.gpus: expected"},
        {"{\"learners\": {\"gpu\": true}}", "learners.gpus: expected"},
        {"{\"learners\": {\"gpus\": NaN}}", "learners.gpus: expected"},
        {"{\"learners\": {\"disk\": 1}}", "got \"disk\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        assert_int_equal(read_text(CASES[i][0]), COORD_ERR_CONFIG);
        if (strstr(err.text, CASES[i][1]) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", CASES[i][1], err.text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_resources_of_both_roles_are_read),
        cmocka_unit_test(singular_names_are_taken_with_a_remark),
        cmocka_unit_test(nothing_is_nothing),
        cmocka_unit_test(what_is_wrong_is_named_by_its_path),
    };
    return cmocka_run_group_tests_name("operator_order", tests, NULL, NULL);
}
