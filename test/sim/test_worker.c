/* Collectors and learners as a coordinator's requests see them; the master is scripted.
 */
#include "interaction/slave.h"
#include "support/wire_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char TOKEN[] = "token";

/* A worker, its master, and what its functions do. */
typedef struct bench {
    wire_rig r;
    peer *p;
    coord_collector *collector;
    coord_learner *learner;
    uint16_t port;
    int given; /* requests so far */
    const char *out;
    coord_status says;
    const char *why;
    char in[256]; /* what the last function got */
    int calls;
} bench;

static coord_status step(coord_slave *slave, coord_text in, coord_out *out,
                         coord_error *err, void *user)
{
    bench *b = user;
    b->calls++;
    if (slave == NULL) {
        return COORD_ERR_STATE;
    }
    (void)snprintf(b->in, sizeof b->in, "%.*s", (int)in.len, in.len == 0 ? "" : in.ptr);
    if (b->why != NULL) {
        (void)snprintf(err->text, sizeof err->text, "%s", b->why);
    }
    if (b->out != NULL && coord_out_json(out, coord_text_of(b->out), err) != COORD_OK) {
        return COORD_ERR_FORMAT;
    }
    return b->says;
}

static coord_slave_options options_of(bench *b)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.host = "10.0.0.1";
    o.insecure = true;
    o.loop = b->r.loop;
    return o;
}

static void setup(bench *b, bool learner)
{
    memset(b, 0, sizeof *b);
    wire_open(&b->r, 1);
    b->p = wire_peer(&b->r, true);
    coord_slave_options o = options_of(b);
    if (learner) {
        coord_learner_callbacks cb;
        coord_learner_callbacks_init(&cb, sizeof cb);
        cb.resource = step;
        cb.start = step;
        cb.get_data = step;
        cb.learn = step;
        cb.close = step;
        cb.user = b;
        assert_int_equal(coord_learner_create(&o, &cb, &b->learner, NULL), COORD_OK);
        b->port = coord_slave_port(coord_learner_slave(b->learner));
    } else {
        coord_collector_callbacks cb;
        coord_collector_callbacks_init(&cb, sizeof cb);
        cb.resource = step;
        cb.start = step;
        cb.data = step;
        cb.close = step;
        cb.user = b;
        assert_int_equal(coord_collector_create(&o, &cb, &b->collector, NULL), COORD_OK);
        b->port = coord_slave_port(coord_collector_slave(b->collector));
    }
    assert_int_equal(peer_connect(b->p, "10.0.0.1", b->port, TOKEN)->code, 0);
}

static void teardown(bench *b)
{
    coord_collector_destroy(b->collector);
    coord_learner_destroy(b->learner);
    wire_close(&b->r);
}

/* Gives a task; its whole result must be this. */
static void expect(bench *b, const char *data, const char *out, bool complete,
                   const char *result)
{
    char id[64];
    char body[512];
    (void)snprintf(id, sizeof id, "%08d-89ab-cdef-0123-456789abcdef", b->given++);
    (void)snprintf(body, sizeof body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}", id,
                   result);
    b->out = out;
    int before = b->p->request_count;
    assert_int_equal(
        peer_new_task(b->p, "10.0.0.1", b->port, TOKEN, id, data)->http_status, 200);
    const char *path = complete ? "/slave/task/complete" : "/slave/task/fail";
    wire_run(&b->r, 20);
    assert_int_equal(b->p->request_count, before + 1);
    assert_string_equal(b->p->requests[before].path, path);
    assert_string_equal(b->p->requests[before].body, body);
}

#define INFO "{\"task_id\": \"t\", \"buffer_id\": \"b\", \"x\": Infinity}"

static void a_collector_answers_as_the_references_do(void **state)
{
    static bench b;
    (void)state;
    setup(&b, false);
    expect(&b, "{\"name\": \"resource\"}", "{\"gpu\": 1}", true, "{\"gpu\": 1}");
    assert_string_equal(b.in, "");
    expect(&b, "{\"name\": \"collector_start_task\", \"task_info\": " INFO "}", NULL,
           true, "{\"message\": \"collector task has started\"}");
    assert_string_equal(b.in, INFO);
    expect(&b, "{\"name\": \"collector_data_task\"}", "{\"data_id\": 7}", true,
           "{\"data_id\": 7,\"buffer_id\":\"b\",\"task_id\":\"t\"}");
    assert_string_equal(b.in, INFO);
    expect(&b, "{\"name\": \"collector_data_task\"}", NULL, true,
           "{\"buffer_id\":\"b\",\"task_id\":\"t\"}");
    expect(&b, "{\"name\": \"collector_data_task\"}",
           "{\"task_id\": \"own\", \"n\": NaN}", true,
           "{ \"n\": NaN,\"buffer_id\":\"b\",\"task_id\":\"t\"}");
    expect(&b, "{\"name\": \"collector_close_task\"}", "{\"steps\": 9}", true,
           "{\"steps\": 9,\"task_id\":\"t\"}");
    teardown(&b);
}

static void a_learner_answers_as_the_references_do(void **state)
{
    static bench b;
    (void)state;
    setup(&b, true);
    expect(&b, "{\"name\": \"learner_start_task\", \"task_info\": " INFO "}", NULL, true,
           "{\"message\": \"learner task has started\"}");
    expect(&b, "{\"name\": \"learner_get_data_task\"}",
           "{\"batch_size\": 4, \"cur_learner_iter\": 0}", true,
           "{\"batch_size\": 4, \"cur_learner_iter\": 0,\"buffer_id\":\"b\","
           "\"task_id\":\"t\"}");
    expect(&b, "{\"name\": \"learner_learn_task\", \"data\": [1, NaN]}",
           "{\"learner_done\": false}", true,
           "{\"info\": {\"learner_done\": false},\"buffer_id\":\"b\",\"task_id\":\"t\"}");
    assert_string_equal(b.in, "[1, NaN]");
    int calls = b.calls;
    expect(&b, "{\"name\": \"learner_learn_task\", \"data\": null}", NULL, false,
           "{\"message\": \"learner_learn_task: no data\"}");
    expect(&b, "{\"name\": \"learner_learn_task\"}", NULL, false,
           "{\"message\": \"learner_learn_task: no data\"}");
    assert_int_equal(b.calls, calls);
    expect(&b, "{\"name\": \"learner_close_task\"}", NULL, true,
           "{\"buffer_id\":\"b\",\"task_id\":\"t\"}");
    teardown(&b);
}

static void unknown_names_and_wrong_moments_fail_with_a_message(void **state)
{
    static bench b;
    (void)state;
    setup(&b, false);
    expect(&b, "{\"name\": \"learner_start_task\"}", NULL, false,
           "{\"message\": \"task name error\"}");
    expect(&b, "{\"name\": 5}", NULL, false, "{\"message\": \"task name error\"}");
    expect(&b, "[]", NULL, false, "{\"message\": \"task name error\"}");
    expect(&b, "{\"name\": \"collector_data_task\"}", NULL, false,
           "{\"message\": \"collector_data_task: no task has started\"}");
    expect(&b, "{\"name\": \"collector_start_task\"}", NULL, false,
           "{\"message\": \"collector_start_task: no task_info\"}");
    expect(&b, "{\"name\": \"collector_start_task\", \"task_info\": " INFO "}", NULL,
           true, "{\"message\": \"collector task has started\"}");
    expect(&b, "{\"name\": \"collector_close_task\"}", NULL, true, "{\"task_id\":\"t\"}");
    expect(&b, "{\"name\": \"collector_close_task\"}", NULL, false,
           "{\"message\": \"collector_close_task: no task has started\"}");
    teardown(&b);
}

static void a_step_that_fails_tells_why_and_may_be_repeated(void **state)
{
    static bench b;
    (void)state;
    setup(&b, false);
    b.says = COORD_ERR_IO;
    expect(&b, "{\"name\": \"resource\"}", NULL, false,
           "{\"message\": \"system call failed\"}");
    b.why = "no \"policy\"";
    expect(&b, "{\"name\": \"collector_start_task\", \"task_info\": " INFO "}", NULL,
           false, "{\"message\": \"no \\\"policy\\\"\"}");
    expect(&b, "{\"name\": \"collector_data_task\"}", NULL, false,
           "{\"message\": \"collector_data_task: no task has started\"}");
    b.says = COORD_OK;
    b.why = NULL;
    expect(&b, "{\"name\": \"collector_start_task\", \"task_info\": " INFO "}", NULL,
           true, "{\"message\": \"collector task has started\"}");
    expect(&b, "{\"name\": \"collector_start_task\", \"task_info\": {\"task_id\": 5}}",
           NULL, true, "{\"message\": \"collector task has started\"}");
    expect(&b, "{\"name\": \"collector_data_task\"}", NULL, true, "{\"task_id\":5}");
    teardown(&b);
}

static void output_that_is_no_object_fails_the_step(void **state)
{
    static bench b;
    (void)state;
    setup(&b, false);
    expect(&b, "{\"name\": \"collector_start_task\", \"task_info\": " INFO "}", NULL,
           true, "{\"message\": \"collector task has started\"}");
    b.out = "[1]";
    assert_int_equal(peer_new_task(b.p, "10.0.0.1", b.port, TOKEN,
                                   "aaaaaaaa-89ab-cdef-0123-456789abcdef",
                                   "{\"name\": \"collector_data_task\"}")
                         ->code,
                     0);
    assert_true(peer_await(b.p, "/slave/task/fail", 1, 100));
    teardown(&b);
}

static void callbacks_are_checked(void **state)
{
    static bench b;
    coord_error err;
    coord_collector *c = NULL;
    coord_learner *l = NULL;
    (void)state;
    setup(&b, false);
    coord_slave_options o = options_of(&b);
    coord_collector_callbacks cc;
    coord_learner_callbacks lc;
    coord_collector_callbacks_init(&cc, sizeof cc);
    coord_learner_callbacks_init(&lc, sizeof lc);
    assert_int_equal(coord_collector_create(&o, &cc, &c, &err), COORD_ERR_ARG);
    assert_int_equal(coord_learner_create(&o, &lc, &l, &err), COORD_ERR_ARG);
    cc.start = step;
    cc.data = step;
    o.port = b.port;
    assert_int_equal(coord_collector_create(&o, &cc, &c, &err), COORD_ERR_IO);
    cc.size = 1;
    assert_int_equal(coord_collector_create(&o, &cc, &c, &err), COORD_ERR_ABI);
    assert_int_equal(coord_collector_create(NULL, &cc, &c, &err), COORD_ERR_ARG);
    assert_null(c);
    assert_null(l);
    coord_collector_destroy(NULL);
    coord_learner_destroy(NULL);
    teardown(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collector_answers_as_the_references_do),
        cmocka_unit_test(a_learner_answers_as_the_references_do),
        cmocka_unit_test(unknown_names_and_wrong_moments_fail_with_a_message),
        cmocka_unit_test(a_step_that_fails_tells_why_and_may_be_repeated),
        cmocka_unit_test(output_that_is_no_object_fails_the_step),
        cmocka_unit_test(callbacks_are_checked),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
