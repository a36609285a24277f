/* Random stories of elastic membership: an operator server scales, lags, breaks and lists
 * garbage, pods crash and stand still, the host adds and removes workers beside it, and
 * the coordinator is killed and goes on with its ledger. What has to hold all the while
 * is in support/elastic.h.
 *
 * SEED=n tells one story, SEEDS=n the first n; TRACE=1 shows it. */
#include "support/elastic.h"

#include "coordinator/operator_sync.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
enum { SEEDS = 3 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 5 };
#else
enum { SEEDS = 20 };
#endif
enum { DEEDS_MADE = 40, COLLECTORS = 3, SETTLE_MS = 300000 };

static elastic e;
static char config[2048];
static bool is_out; /* the server is */

static uint64_t draw(uint64_t count)
{
    return elastic_draw(&e, count);
}

static const char *some_pod(void)
{
    const coord_role role = draw(4) == 0 ? COORD_LEARNER : COORD_COLLECTOR;
    const int count = elastic_count(&e, role);
    return count == 0 ? NULL : elastic_id(&e, role, (int)draw((uint64_t)count));
}

/* ---- what happens ---- */

/* Not while a start may ask for what is missing: both would make it. */
static void scale(void)
{
    const coordi_demand_state demand = e.p.k.c->operator_sync->demand.state;
    if (demand != COORDI_DEMAND_OPEN && demand != COORDI_DEMAND_SENT) {
        const bool v2 = fake_operator_api(e.p.fake) == FAKE_V2;
        elastic_scale(&e, (int)draw(7), v2 ? 1 : 1 + (int)draw(2));
    }
}

static void crash_pod(void)
{
    const char *id = some_pod();
    if (id != NULL) {
        elastic_crash(&e, id, (int64_t)draw(5) * 1500);
    }
}

static void pause_pod(void)
{
    const char *id = some_pod();
    if (id != NULL) {
        elastic_pause(&e, id, draw(3) > 0);
    }
}

static void ban_pod(void)
{
    const int count = elastic_count(&e, COORD_COLLECTOR);
    if (count > 0) {
        const char *id = elastic_id(&e, COORD_COLLECTOR, (int)draw((uint64_t)count));
        elastic_ban(&e, id,
                    draw(2) == 0 ? COMM_COORDINATOR_DRAIN : COMM_COORDINATOR_DROP);
    }
}

static void change_host(void)
{
    elastic_host(&e, !e.host_has);
}

static void break_new_pods(void)
{
    if (fake_operator_api(e.p.fake) == FAKE_V1) { /* the other can't replace them */
        e.break_in = draw(2) == 0 ? 0 : 3;
    }
}

static void go_out(void)
{
    is_out = !is_out;
    fake_operator_set_listening(e.p.fake, !is_out);
}

static void fail_requests(void)
{
    static const fake_fault FAULTS[] = {
        FAKE_NOT_YET,  FAKE_ERROR,        FAKE_BAD_GATEWAY, FAKE_DONE_SILENT,
        FAKE_SILENT,   FAKE_DONE_BROKEN,  FAKE_BROKEN,      FAKE_PARTIAL,
        FAKE_CONFLICT, FAKE_FIRST_SILENT,
    };
    static const fake_kind KINDS[] = {FAKE_GET, FAKE_POST, FAKE_FAILED};
    fake_operator_fail(e.p.fake, KINDS[draw(3)],
                       FAULTS[draw(sizeof FAULTS / sizeof FAULTS[0])], 1 + draw(3));
}

static void list_garbage(void)
{
    static const char *const TEXTS[] = {"", "null", "{\"success\": true, \"data\": 7}"};
    fake_operator_set_garbage(e.p.fake, TEXTS[draw(3)]);
    fake_operator_fail(e.p.fake, FAKE_GET, FAKE_GARBAGE, 1 + draw(5));
}

static void lag(void)
{
    fake_operator_set_lag(e.p.fake, (int64_t)draw(4) * 500);
    fake_operator_set_delay(e.p.fake, (int64_t)draw(3) * 200);
}

static void cut(void)
{
    const char *id = some_pod();
    char host[32];
    if (id != NULL) {
        (void)snprintf(host, sizeof host, "%.*s", (int)(strrchr(id, ':') - id), id);
        const bool to = draw(2) == 0;
        assert_int_equal(coord_sim_block(e.p.k.sim, to ? "10.0.0.1" : host,
                                         to ? host : "10.0.0.1", true, NULL),
                         COORD_OK);
    }
}

static void heal(void)
{
    coord_sim_heal(e.p.k.sim);
}

static void change_weather(void)
{
    coord_sim_link link;
    coord_sim_link_init(e.p.k.sim, &link, sizeof link);
    if (draw(2) == 0) {
        link.latency_max_ms = 1 + (int64_t)draw(300);
        link.loss = (double)draw(4) * 0.01;
        link.reset_before = (double)draw(4) * 0.02;
        link.reset_after = (double)draw(4) * 0.02;
        link.duplicate = (double)draw(4) * 0.02;
    }
    cluster_link(&e.p.k, &link);
}

static void mend(void)
{
    coord_sim_link plain;
    coord_sim_link_init(e.p.k.sim, &plain, sizeof plain);
    cluster_link(&e.p.k, &plain);
    coord_sim_heal(e.p.k.sim);
    is_out = false;
    fake_operator_set_listening(e.p.fake, true);
    fake_operator_mend(e.p.fake);
    elastic_mend(&e);
}

static void die(void)
{
    elastic_die(&e);
    cluster_run(&e.p.k, (int64_t)draw(draw(3) == 0 ? 40000 : 3000));
    while (!elastic_come_back(&e, config)) {
        mend();
    }
}

static void close_and_come_back(void)
{
    e.dying = true;
    assert_int_equal(cluster_close(&e.p.k, NULL), COORD_OK);
    die();
}

static void go_on(void)
{
    static void (*const DEEDS[])(void) = {
        scale,
        scale,
        scale,
        crash_pod,
        crash_pod,
        pause_pod,
        pause_pod,
        ban_pod,
        lag,
        cut,
        heal,
        change_host,
        break_new_pods,
        go_out,
        go_out,
        fail_requests,
        fail_requests,
        list_garbage,
        change_weather,
        die,
        close_and_come_back,
    };
    DEEDS[draw(sizeof DEEDS / sizeof DEEDS[0])]();
    elastic_run(&e, (int64_t)draw(draw(5) == 0 ? 20000 : 2500));
}

/* ---- a story ---- */

static void tell(uint64_t seed)
{
    elastic_open(&e, seed, seed % 3 == 0 ? FAKE_V2 : FAKE_V1);
    is_out = false;
    e.restarts = true;
    e.depth[COORD_COLLECTOR] = 2;
    elastic_begin(&e, COLLECTORS, 1,
                  seed % 2 == 0 ? "\"removal\": \"drain\", \"grace_s\": 15, "
                                : "\"grace_s\": 15, ",
                  "\"ledger\": \"/ledger\", \"max_reassign\": 1000, "
                  "\"max_retry_second\": 30, ");
    (void)snprintf(config, sizeof config, "%s", e.p.config);
    for (int i = 0; i < DEEDS_MADE; i++) {
        go_on();
    }
    mend();
    elastic_run(&e, 60000);
    elastic_scale(&e, 0, 1);
    elastic_await_all(&e, SETTLE_MS);
    elastic_scale(&e, COLLECTORS, 1); /* others, of whom the host knows nothing */
    elastic_end(&e, !e.configured);   /* else somebody could always take a task */
}

static void whatever_happens_all_is_well_at_the_end(void **state)
{
    const char *one = getenv("SEED");
    const char *count = getenv("SEEDS");
    (void)state;
    const uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    const uint64_t last = one != NULL     ? first
                          : count != NULL ? strtoull(count, NULL, 10)
                                          : SEEDS;
    for (uint64_t seed = first; seed <= last; seed++) {
        tell(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_all_is_well_at_the_end),
    };
    return cmocka_run_group_tests_name("elastic stories", tests, NULL, NULL);
}
