/* Memory runs out over real sockets: a coordinator, a collector and a learner live whole
 * lives, in each of which one allocation of the library's fails, or some in a row, at
 * moments that are spread over the life. (libcurl's own are left alone: 7.88 divides by
 * zero when one of them fails.) */
#include "coord.h"
#include "support/heap.h"
#include "support/real_team.h"
#include "support/sanitized.h"
#include "support/simple.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WAIT_MS = 20000, NEVER = 1 << 30 };

enum { MOMENTS = SANITIZED(40, 20, 15) };

typedef struct life {
    coord_loop *loop;
    coord_collector *collector;
    coord_learner *learner;
    CommCoordinator *c;
    int accepted;
    atomic_int ends;
    atomic_int learned;
    int step; /* of the learner */
} life;

static uint64_t first; /* of the life under way */

/* ---- the workers ---- */

static coord_status start(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    ((life *)user)->step = 0;
    return coord_out_printf(out, err, "{}");
}

static coord_status start_collector(coord_slave *slave, coord_text in, coord_out *out,
                                    coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)user;
    return coord_out_printf(out, err, "{}");
}

static coord_slave_options slave_options(life *l)
{
    coord_slave_options o;
    coord_slave_options_init(&o, sizeof o);
    o.loop = l->loop;
    o.heartbeat_ms = 300;
    o.request_timeout_ms = 500;
    o.request_retry_wait_ms = 50;
    return o;
}

static coord_status make_workers(life *l)
{
    coord_slave_options o = slave_options(l);
    coord_collector_callbacks collector;
    coord_learner_callbacks learner;
    coord_collector_callbacks_init(&collector, sizeof collector);
    collector.start = start_collector;
    collector.data = simple_data;
    collector.user = l;
    coord_learner_callbacks_init(&learner, sizeof learner);
    learner.start = start;
    learner.get_data = simple_get_data;
    learner.learn = simple_learn;
    learner.user = l;
    coord_status rc = coord_collector_create(&o, &collector, &l->collector, NULL);
    return rc != COORD_OK ? rc : coord_learner_create(&o, &learner, &l->learner, NULL);
}

/* ---- the host ---- */

static coord_status give_data(CommCoordinator *c, const char *task_id,
                              const char *buffer_id, int64_t batch_size,
                              int64_t cur_learner_iter, coord_out *out, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)batch_size;
    (void)cur_learner_iter;
    (void)user;
    return coord_out_printf(out, NULL, "[{\"data_id\": \"d\"}]");
}

static void on_info(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    coord_text info, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)info;
    atomic_fetch_add(&((life *)user)->learned, 1);
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    (void)c;
    (void)task_id;
    (void)result;
    atomic_fetch_add(&((life *)user)->ends, 1);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    (void)c;
    (void)task_id;
    (void)why;
    atomic_fetch_add(&((life *)user)->ends, 1);
}

static coord_status make_coordinator(life *l)
{
    char config[1024];
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    (void)snprintf(config, sizeof config,
                   "{\"port\": 0, \"request_timeout_s\": 0.5, \"request_retries\": 2, "
                   "\"request_retry_wait_s\": 0.05, \"max_retry_second\": 2, "
                   "\"heartbeat_tolerance_s\": 1, \"heartbeat_check_s\": 0.1, "
                   "\"queue_timeout_s\": 2, \"start_timeout_s\": 2, "
                   "\"close_timeout_s\": 20, "
                   "\"collector\": {\"0\": [\"c0\", \"127.0.0.1\", %u]}, "
                   "\"learner\": {\"0\": [\"l0\", \"127.0.0.1\", %u]}}",
                   (unsigned)coord_slave_port(coord_collector_slave(l->collector)),
                   (unsigned)coord_slave_port(coord_learner_slave(l->learner)));
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = simple_on_data;
    cb.deal_with_collector_judge_finish = simple_is_enough;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_learner_get_data = give_data;
    cb.deal_with_learner_send_info = on_info;
    cb.deal_with_learner_judge_finish = simple_is_enough;
    cb.deal_with_learner_finish_task = on_finish;
    cb.deal_with_task_fail = on_fail;
    cb.user = l;
    comm_coordinator_options_init(&o, sizeof o);
    o.config = config;
    o.callbacks = &cb;
    o.loop = l->loop;
    return comm_coordinator_create(&o, &l->c, NULL);
}

/* ---- a life ---- */

/* Every answer is fine that tells of need or of what comes of it. */
static coord_status expect(const char *what, coord_status rc)
{
    if (rc != COORD_OK && rc != COORD_ERR_NOMEM && rc != COORD_ERR_TIMEOUT &&
        rc != COORD_ERR_IO) {
        fail_msg("moment %llu: %s answered \"%s\"", (unsigned long long)first, what,
                 coord_status_str(rc));
    }
    return rc;
}

static void work(life *l)
{
    static const char TASK_C[] = "{\"task_id\": \"c\"}";
    static const char TASK_L[] = "{\"task_id\": \"l\", \"buffer_id\": \"b\"}";
    if (expect("start", comm_coordinator_start(l->c, NULL)) != COORD_OK) {
        return;
    }
    coord_status rc =
        comm_coordinator_post_collector_task(l->c, coord_text_of(TASK_C), NULL);
    l->accepted += expect("post", rc) == COORD_OK;
    rc = comm_coordinator_post_learner_task(l->c, coord_text_of(TASK_L), NULL);
    l->accepted += expect("post", rc) == COORD_OK;
    (void)expect("wait", comm_coordinator_wait(l->c, WAIT_MS, NULL));
}

static void end(life *l)
{
    if (l->c != NULL) {
        for (int i = 0; expect("close", comm_coordinator_close(l->c, NULL)) != COORD_OK;
             i++) {
            assert_in_range(i, 0, 20); /* what runs out comes back in the end */
        }
        assert_int_equal(atomic_load(&l->ends), l->accepted);
    }
    comm_coordinator_destroy(l->c);
    coord_collector_destroy(l->collector);
    coord_learner_destroy(l->learner);
    coord_loop_destroy(l->loop);
    assert_true(threads_are_gone());
}

static void live(void)
{
    life l = {0};
    if (expect("loop", coord_loop_create(NULL, &l.loop, NULL)) == COORD_OK &&
        expect("worker", make_workers(&l)) == COORD_OK &&
        expect("coordinator", make_coordinator(&l)) == COORD_OK) {
        work(&l);
    }
    end(&l);
}

/* ---- the moments ---- */

static void memory_may_run_out_at_any_moment(void **state)
{
    (void)state;
    heap_fail(NEVER, 1);
    live();
    const uint64_t all = heap_asked();
    (void)heap_mend();
    const int descriptors = open_descriptors();
    for (uint64_t i = 0; i < MOMENTS; i++) {
        first = all * i / MOMENTS;
        heap_watch();
        heap_fail(first, i % 4 == 3 ? 20 : 1);
        live();
        (void)heap_mend();
        heap_expect_nothing_left("a life");
        assert_int_equal(open_descriptors(), descriptors);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_run_out_at_any_moment),
    };
    return cmocka_run_group_tests_name("torture over sockets", tests, NULL, NULL);
}
