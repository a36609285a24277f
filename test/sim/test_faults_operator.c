/* The faults of the reference's client of operator servers (test/FAULTS), and what memory
 * that runs out does to ours. */
#include "coord/operator_server.h"
#include "coord/testing.h"
#include "support/fake_operator.h"
#include "support/heap.h"
#include "support/sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_MS = 60000 };

typedef struct rig {
    coord_sim *sim;
    coord_loop *far;
    coord_loop *near;
    fake_operator *fake;
    coord_operator_server_options options;
    char address[64];
    coord_operator_server *server;
    coord_error err;
} rig;

static void open_world(rig *r)
{
    memset(r, 0, sizeof *r);
    assert_int_equal(coord_sim_create(NULL, &r->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "operator", &r->far, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "coordinator", &r->near, NULL), COORD_OK);
    r->fake = fake_operator_on_loop(r->far, NULL);
    (void)snprintf(r->address, sizeof r->address, "operator:%u",
                   (unsigned)fake_operator_port(r->fake));
    coord_operator_server_options_init(&r->options, sizeof r->options);
    r->options.system_addr = r->address;
    r->options.name_space = "default";
    r->options.name = "job-coordinator";
    r->options.loop = r->near;
}

static void open_rig(rig *r)
{
    open_world(r);
    assert_int_equal(coord_operator_server_create(&r->options, &r->server, &r->err),
                     COORD_OK);
}

static void close_rig(rig *r)
{
    coord_operator_server_destroy(r->server);
    coord_loop_destroy(r->near);
    fake_operator_stop(r->fake);
    coord_loop_destroy(r->far);
    coord_sim_destroy(r->sim);
}

/* ---- faults ---- */

static void f_o1_every_error_has_the_servers_words(void **state)
{
    (void)state;
    static const struct {
        fake_fault fault;
        coord_status status;
        int http_status;
        const char *words;
    } CASES[] = {
        {FAKE_NOT_YET, COORD_ERR_NOT_FOUND, 404, "not exists in cache"},
        {FAKE_ERROR, COORD_ERR_REFUSED, 500, "etcdserver: leader changed"},
        {FAKE_BAD_GATEWAY, COORD_ERR_PROTOCOL, 502, "502 Bad Gateway"},
        {FAKE_BROKEN, COORD_ERR_LOST, 0, "reset"},
        {FAKE_SILENT, COORD_ERR_TIMEOUT, 0, "no answer within"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        rig r;
        coord_operator_answer *answer;
        open_rig(&r);
        fake_operator_fail(r.fake, FAKE_GET, CASES[i].fault, 100);
        assert_int_equal(coord_operator_server_get(r.server, 5000, &answer, &r.err),
                         CASES[i].status);
        char all[sizeof r.err.text + sizeof r.err.cause + 2];
        (void)snprintf(all, sizeof all, "%s: %s", r.err.text, r.err.cause);
        assert_int_equal(r.err.http_status, CASES[i].http_status);
        assert_non_null(strstr(all, CASES[i].words));
        assert_non_null(strstr(all, r.address));
        assert_non_null(strstr(all, "GET /v1alpha1/replicas"));
        close_rig(&r);
    }
}

static void f_o2_an_api_version_is_checked_and_a_role_needs_no_setting(void **state)
{
    (void)state;
    static const char *const GOOD[] = {"v1alpha1", "/v1alpha1", "/v1alpha1/", "auto"};
    static const char *const BAD[] = {"",           "/",        "v1",
                                      "v1alpha1/x", "V1ALPHA1", "v1alpha2"};
    rig r;
    open_world(&r);
    for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        r.options.api_version = BAD[i];
        assert_int_equal(coord_operator_server_create(&r.options, &r.server, &r.err),
                         COORD_ERR_ARG);
        assert_non_null(strstr(r.err.text, "api_version"));
    }
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        coord_operator_answer *answer;
        r.options.api_version = GOOD[i];
        coord_operator_server_destroy(r.server);
        assert_int_equal(coord_operator_server_create(&r.options, &r.server, &r.err),
                         COORD_OK);
        assert_int_equal(coord_operator_server_get(r.server, LONG_MS, &answer, &r.err),
                         COORD_OK);
        coord_operator_answer_destroy(answer);
    }
    close_rig(&r);
}

/* ---- memory ---- */

static bool is_fair(coord_status rc)
{
    /* What is lost on the way to or from the server is its loss, too. */
    return rc == COORD_OK || rc == COORD_ERR_NOMEM || rc == COORD_ERR_TIMEOUT ||
           rc == COORD_ERR_LOST;
}

static void call_all(rig *r, coord_operator_server *server)
{
    coord_operator_answer *answer = NULL;
    coord_operator_request request;
    coord_operator_request_init(&request, sizeof request);
    request.collectors = 3;
    request.learner_gpus = "1";
    const char *names[] = {fake_operator_id(r->fake, FAKE_COLLECTORS, 0), "other"};
    char id[COORD_ID_SIZE];
    (void)snprintf(id, sizeof id, "%s", names[0]);
    names[0] = id;
    assert_true(is_fair(coord_operator_server_get(server, LONG_MS, &answer, &r->err)));
    coord_operator_answer_destroy(answer);
    assert_true(
        is_fair(coord_operator_server_post(server, &request, LONG_MS, &answer, &r->err)));
    coord_operator_answer_destroy(answer);
    assert_true(is_fair(
        coord_operator_server_failed(server, names, 2, LONG_MS, &answer, &r->err)));
    coord_operator_answer_destroy(answer);
    assert_true(is_fair(
        coord_operator_server_delete(server, &request, LONG_MS, &answer, &r->err)));
    coord_operator_answer_destroy(answer);
}

/* Each allocation fails once, with answers that come and with ones that are lost; under a
 * sanitizer every so-manieth. */
static void try_all(fake_fault fault, size_t faults)
{
    bool failed = true;
    for (uint64_t n = 0; failed; n += SANITIZED(1, 1, 3)) {
        rig r;
        heap_watch();
        open_world(&r);
        fake_operator_scale(r.fake, FAKE_COLLECTORS, 10);
        fake_operator_fail(r.fake, FAKE_POST, fault, faults);
        fake_operator_fail(r.fake, FAKE_FAILED, fault, faults);
        heap_fail(n, 1);
        const coord_status rc =
            coord_operator_server_create(&r.options, &r.server, &r.err);
        assert_true(rc == COORD_OK || rc == COORD_ERR_NOMEM);
        if (rc == COORD_OK) {
            call_all(&r, r.server);
        }
        failed = heap_mend();
        assert_true(fake_operator_created(r.fake) <= 4);
        assert_true(fake_operator_deleted(r.fake) <= 4);
        close_rig(&r);
        heap_expect_nothing_left("an operator server");
    }
}

static void memory_that_runs_out_anywhere_is_told_and_creates_nothing_twice(void **state)
{
    (void)state;
    try_all(FAKE_SILENT, 0);
    try_all(FAKE_DONE_SILENT, 1);
    try_all(FAKE_FIRST_SILENT, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f_o1_every_error_has_the_servers_words),
        cmocka_unit_test(f_o2_an_api_version_is_checked_and_a_role_needs_no_setting),
        cmocka_unit_test(memory_that_runs_out_anywhere_is_told_and_creates_nothing_twice),
    };
    return cmocka_run_group_tests_name("faults_operator", tests, NULL, NULL);
}
