/* Elastic membership under load, in a simulated world: pods that are scaled, replaced and
 * flap, and an operator server that is down or lists garbage. What has to hold in each
 * story all the while is in support/elastic.h.
 *
 * SEED=n tells all stories with that seed alone, SEEDS=n with the first n; TRACE=1 shows
 * them. */
#include "support/elastic.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
enum { SEEDS = 2 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 4 };
#else
enum { SEEDS = 4 };
#endif
enum { CHANGE_MS = 30000 }; /* in which a change is taken up */

static elastic e;

/* Tells a story for each seed, and with both versions of the API. */
static void tell(void (*story)(uint64_t seed, int api))
{
    const char *one = getenv("SEED");
    const char *count = getenv("SEEDS");
    const uint64_t first = one != NULL ? strtoull(one, NULL, 10) : 1;
    const uint64_t last = one != NULL     ? first
                          : count != NULL ? strtoull(count, NULL, 10)
                                          : SEEDS;
    for (uint64_t seed = first; seed <= last; seed++) {
        story(seed, FAKE_V1);
        story(seed, FAKE_V2);
    }
}

static const char *removal_of(uint64_t seed)
{
    return seed % 2 == 0 ? "\"removal\": \"drain\", " : "";
}

/* ---- scaling ---- */

static void scale(uint64_t seed, int api)
{
    elastic_open(&e, seed, api);
    elastic_begin(&e, 2, 1, removal_of(seed), "");
    e.depth[COORD_COLLECTOR] = 6;
    elastic_run(&e, 3000);
    elastic_scale(&e, 8, 1);
    elastic_await_all(&e, CHANGE_MS);
    assert_int_equal(elastic_gain(&e), 9);
    elastic_run(&e, 5000);
    elastic_scale(&e, 1, 1);
    elastic_await_all(&e, CHANGE_MS);
    assert_int_equal(elastic_gain(&e), 2);
    elastic_run(&e, 5000);
    assert_true(e.done > 20);
    elastic_end(&e, false);
}

static void from_2_to_8_to_1(void **state)
{
    (void)state;
    tell(scale);
}

/* ---- replacing ---- */

/* The n-th pod's process is another one, at another address if that says so. */
static void replace(coord_role role, int n, const char *host_of_2, int port)
{
    char old[32];
    char by[32];
    (void)snprintf(old, sizeof old, "%s", elastic_id(&e, role, n));
    if (fake_operator_api(e.p.fake) == FAKE_V2) { /* a rank gets another address */
        (void)snprintf(by, sizeof by, "%s:%d", host_of_2, port);
        fake_operator_replace(e.p.fake, old, by);
    } else {
        const char *colon = strrchr(old, ':');
        (void)snprintf(by, sizeof by, "%.*s:%d", (int)(colon - old), old, port);
        fake_operator_replace(e.p.fake, old, by);
    }
}

static void replace_pods(uint64_t seed, int api)
{
    elastic_open(&e, seed, api);
    elastic_begin(&e, 3, 1, removal_of(seed), "");
    elastic_run(&e, 2000);
    replace(COORD_COLLECTOR, 1, "10.2.0.1", 22280);
    elastic_await_all(&e, CHANGE_MS);
    replace(COORD_LEARNER, 0, "10.2.0.2", 22281);
    replace(COORD_COLLECTOR, 0, "10.2.0.3", 22270 + (int)elastic_draw(&e, 2));
    elastic_run(&e, 5000);
    elastic_await_all(&e, CHANGE_MS);
    assert_int_equal(elastic_gain(&e), 4);
    assert_true(e.done > 10);
    elastic_end(&e, false);
}

static void pods_come_back_at_another_address(void **state)
{
    (void)state;
    tell(replace_pods);
}

/* Same name, same port: the list says nothing of it. */
static void exchange_processes(uint64_t seed, int api)
{
    elastic_open(&e, seed, api);
    elastic_begin(&e, 3, 1, removal_of(seed), "");
    elastic_await_all(&e, CHANGE_MS);
    const int told = e.told[0][0] + e.told[1][0];
    for (int i = 0; i < 4; i++) {
        elastic_run(&e, 500 + (int64_t)elastic_draw(&e, 2000));
        elastic_crash(&e,
                      i == 3 ? elastic_id(&e, COORD_LEARNER, 0)
                             : elastic_id(&e, COORD_COLLECTOR, i),
                      (int64_t)elastic_draw(&e, 3) * 1500);
    }
    elastic_run(&e, 3000);
    elastic_await_all(&e, CHANGE_MS);
    assert_int_equal(e.told[0][0] + e.told[1][0], told); /* nobody came or went */
    assert_int_equal(e.told[0][1] + e.told[1][1], 0);
    elastic_end(&e, false);
}

static void another_process_answers_at_the_same_address(void **state)
{
    (void)state;
    tell(exchange_processes);
}

/* ---- outages ---- */

enum { MINUTE_MS = 60000, MANY = 500 };

/* One way of not being there. */
static void take_down(uint64_t way)
{
    static const fake_fault FAULTS[] = {FAKE_SILENT, FAKE_BROKEN, FAKE_BAD_GATEWAY,
                                        FAKE_ERROR, FAKE_NOT_YET};
    if (way == 0) {
        fake_operator_set_listening(e.p.fake, false);
    } else if (way == 1) {
        assert_int_equal(coord_sim_block(e.p.k.sim, "operator", NULL, true, NULL),
                         COORD_OK);
    } else {
        fake_operator_fail(e.p.fake, FAKE_GET, FAULTS[way - 2], MANY);
        fake_operator_fail(e.p.fake, FAKE_FAILED, FAULTS[way - 2], MANY);
    }
}

static void bring_back(void)
{
    coord_sim_heal(e.p.k.sim);
    fake_operator_set_listening(e.p.fake, true);
    fake_operator_mend(e.p.fake);
}

/* Pods come and go, and one crashes, while nobody lists them. */
static void live_through_an_outage(uint64_t seed, int api)
{
    elastic_open(&e, seed, api);
    elastic_begin(&e, 3, 1, removal_of(seed), "");
    elastic_await_all(&e, CHANGE_MS);
    const int gain = elastic_gain(&e);
    const int done = e.done;
    take_down((seed + (uint64_t)api) % 7);
    elastic_run(&e, MINUTE_MS / 3);
    elastic_crash(&e, elastic_id(&e, COORD_COLLECTOR, 0), 5000);
    elastic_run(&e, MINUTE_MS / 3);
    assert_int_equal(elastic_gain(&e), gain);
    e.kill_ms = -1; /* those that go live on until they are not needed */
    elastic_scale(&e, seed % 3 == 0 ? 1 : 5, 1);
    elastic_run(&e, MINUTE_MS / 3);
    assert_int_equal(elastic_gain(&e), gain);
    assert_true(e.done > done + 20);
    bring_back();
    elastic_await_all(&e, CHANGE_MS);
    assert_int_equal(elastic_gain(&e), seed % 3 == 0 ? 2 : 6);
    elastic_end(&e, false);
}

static void the_server_is_down_for_a_minute(void **state)
{
    (void)state;
    tell(live_through_an_outage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_2_to_8_to_1),
        cmocka_unit_test(pods_come_back_at_another_address),
        cmocka_unit_test(another_process_answers_at_the_same_address),
        cmocka_unit_test(the_server_is_down_for_a_minute),
    };
    return cmocka_run_group_tests_name("elastic", tests, NULL, NULL);
}
