/* Elastic membership under load, in a simulated world: pods that are scaled, replaced and
 * flap, and an operator server that is down or lists garbage. What has to hold in each
 * story all the while is in support/elastic.h.
 *
 * SEED=n tells all stories with that seed alone, SEEDS=n with the first n; TRACE=1 shows
 * them. */
#include "support/elastic.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_THREAD__)
enum { SEEDS = 1, OTHERS = 500 };
#elif defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 2, OTHERS = 500 };
#else
enum { SEEDS = 3, OTHERS = 4000 };
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
    assert_true(e.done > 5);
    elastic_end(&e, false);
}

static void from_2_to_8_to_1(void **state)
{
    (void)state;
    tell(scale);
}

/* Lists do not show yet what it has asked for, or never will. */
static void die_while_pods_are_made(uint64_t seed, int api)
{
    static const fake_fault FAULTS[] = {FAKE_DONE_SILENT, FAKE_DONE_BROKEN,
                                        FAKE_FIRST_SILENT, FAKE_PARTIAL, FAKE_SILENT};
    elastic_open(&e, seed, api);
    fake_operator_set_lag(e.p.fake, 1500);
    if (elastic_draw(&e, 2) == 0) {
        fake_operator_fail(e.p.fake, FAKE_POST, FAULTS[elastic_draw(&e, 5)], 1);
    }
    elastic_begin_and_die(&e, 3, 1, "", "", (int64_t)elastic_draw(&e, 1500));
    assert_true(elastic_come_back(&e, e.p.config));
    elastic_end(&e, false);
}

static void a_start_that_is_killed_and_repeated_makes_no_pod_twice(void **state)
{
    (void)state;
    tell(die_while_pods_are_made);
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
    assert_true(e.done > 5);
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

enum { MINUTE_MS = 60000, LASTING = 500 };

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
        fake_operator_fail(e.p.fake, FAKE_GET, FAULTS[way - 2], LASTING);
        fake_operator_fail(e.p.fake, FAKE_FAILED, FAULTS[way - 2], LASTING);
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
    assert_true(e.done > done + 10);
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

/* ---- garbage ---- */

#define OK_V1 "{\"success\":true,\"code\":0,\"message\":\"\",\"data\":"
#define OURS "{\"namespace\":\"ns\",\"coordinator\":\"job-coordinator\","

/* REAL stands for the ids that are listed, TWICE for each of them two times, HUGE
 * for 20,001 others, MANY for fewer. */
typedef struct garbage {
    int api;   /* 0: both */
    bool once; /* it would be believed if it came again */
    const char *text;
} garbage;

static const garbage GARBAGE[] = {
    {0, false, ""},
    {0, false, "}{"},
    {0, false, "null"},
    {0, false, "[]"},
    {0, false, "{}"},
    {0, false, "7"},
    {0, false, "\xff\xfe"},
    {0, false, "<html>It works!</html>"},
    {0, false, "{\"success\": true}"},
    {0, false, "{\"success\": 1, \"data\": []}"},
    {0, false, "{\"success\": false, \"code\": 1, \"data\": null}"},
    {0, false, OK_V1 "7}"},
    {0, false, OK_V1 "\"REAL\"}"},
    {0, false, OK_V1 "null}"},
    {0, false, OK_V1 "[]}"},
    {0, false, OK_V1 "{}}"},
    {0, false, OK_V1 "["},
    {1, false, OK_V1 "[7, null, {\"coordinator\": 7}]}"},
    {1, false,
     OK_V1 "{\"namespace\": \"\", \"coordinator\": \"\", "
           "\"collectors\": null, \"learners\": null}}"},
    {1, false,
     OK_V1 "{\"namespace\": \"ns\", \"coordinator\": \"other\", "
           "\"collectors\": [\"x.ns:1\"], \"learners\": []}}"},
    {1, false, OK_V1 OURS "\"collectors\": 7, \"learners\": []}}"},
    {1, false, OK_V1 OURS "\"collectors\": [], \"learners\": \"REAL\"}}"},
    {1, false, OK_V1 OURS "\"collectors\": [HUGE], \"learners\": null}}"},
    {1, false,
     OK_V1 OURS "\"collectors\": [7, null, {}, [], \"\", \"a b\", \":1\", "
                "\"x:0\", \"x:99999\", \"x:y\", \"[::1\"], \"learners\": []}}"},
    {1, false, OK_V1 OURS "\"collectors\": [REAL, 7], \"learners\": null}}"},
    {1, true, OK_V1 OURS "\"collectors\": [], \"learners\": []}}"},
    {1, true, OK_V1 OURS "\"collectors\": null, \"learners\": null}}"},
    {1, true, OK_V1 OURS "\"learners\": [null]}}"},
    {1, true, OK_V1 OURS "\"collectors\": [TWICE], \"learners\": []}}"},
    {1, true, OK_V1 OURS "\"collectors\": [REAL, \"c0\"], \"learners\": [\"l0\"]}}"},
    {2, false, OK_V1 "\"10.9.9.9:1\"}"},
    {2, false, OK_V1 "{\"collectors\": []}}"},
    {2, false, OK_V1 "[\"\", \"\"]}"},
    {2, false, OK_V1 "[HUGE]}"},
    {2, false, OK_V1 "[7, null, {}, \"a b\", \":1\", \"x:0\", \"[::1\"]}"},
    {2, false, OK_V1 "[REAL, 7]}"},
    {2, true, OK_V1 "[TWICE]}"},
    {2, true, OK_V1 "[REAL, \"\"]}"},
};

static void add_ids(coordi_buf *text, int times)
{
    const char *comma = "";
    for (int role = COORD_LEARNER; role >= COORD_COLLECTOR; role--) {
        const bool listed =
            role == COORD_COLLECTOR || fake_operator_api(e.p.fake) == FAKE_V2;
        for (int n = 0; listed && n < elastic_count(&e, (coord_role)role); n++) {
            for (int i = 0; i < times; i++) {
                coordi_buf_addf(text, "%s\"%s\"", comma,
                                elastic_id(&e, (coord_role)role, n));
                comma = ",";
            }
        }
    }
}

static void add_others(coordi_buf *text, int count)
{
    for (int i = 0; i < count; i++) {
        coordi_buf_addf(text, "%s\"10.8.%d.%d:1\"", i == 0 ? "" : ",", i / 250, i % 250);
    }
}

static void set_garbage(const garbage *g)
{
    static const char *const WORDS[] = {"REAL", "TWICE", "HUGE", "MANY"};
    coordi_buf text = {0};
    const char *at = g->text;
    while (*at != '\0') {
        int which = -1;
        for (int i = 0; i < 4; i++) {
            which = strncmp(at, WORDS[i], strlen(WORDS[i])) == 0 ? i : which;
        }
        if (which < 0) {
            coordi_buf_add(&text, at++, 1);
        } else if (which >= 2) {
            add_others(&text, which == 2 ? 20001 : OTHERS);
        } else {
            add_ids(&text, which + 1);
        }
        at += which < 0 ? 0 : strlen(WORDS[which]);
    }
    char *whole = coordi_buf_take(&text, NULL);
    fake_operator_set_garbage(e.p.fake, whole == NULL ? "" : whole);
    coord_free(whole);
}

/* So many lists are that, and nobody comes or goes for it. */
static void list_garbage(const garbage *g)
{
    const size_t times = g->once ? 1 : 1 + (size_t)elastic_draw(&e, 4);
    const size_t until = fake_operator_requests(e.p.fake, FAKE_GET) + times + 1;
    int told[2][2];
    memcpy(told, e.told, sizeof told);
    set_garbage(g);
    fake_operator_fail(e.p.fake, FAKE_GET, FAKE_GARBAGE, times);
    for (int i = 0; i < 600 && fake_operator_requests(e.p.fake, FAKE_GET) < until; i++) {
        elastic_run(&e, 100);
        if (memcmp(told, e.told, sizeof told) != 0) {
            fail_msg("seed %llu: somebody came or went by %s", (unsigned long long)e.seed,
                     g->text);
        }
    }
    assert_true(fake_operator_requests(e.p.fake, FAKE_GET) >= until);
}

static void endure_garbage(uint64_t seed, int api)
{
    elastic_open(&e, seed, api);
    fake_operator_set_lag(e.p.fake, 0);
    elastic_begin(&e, 2, 1, removal_of(seed), "");
    elastic_await_all(&e, CHANGE_MS);
    e.eager = false;
    e.depth[COORD_COLLECTOR] = 1; /* it takes its time */
    for (size_t i = 0; i < sizeof GARBAGE / sizeof GARBAGE[0]; i++) {
        if (GARBAGE[i].api == 0 || GARBAGE[i].api == api) {
            list_garbage(&GARBAGE[i]);
        }
    }
    elastic_scale(&e, 4, 1);
    elastic_await_all(&e, CHANGE_MS);
    elastic_end(&e, false);
}

static void garbage_brings_nobody_and_takes_nobody(void **state)
{
    (void)state;
    tell(endure_garbage);
}

/* A list may be as long as this one, and then all of it is taken for true. */
static void a_long_list_of_nobody_does_no_harm(void **state)
{
    const garbage LONG = {1, true,
                          OK_V1 OURS "\"collectors\": [MANY], \"learners\": []}}"};
    (void)state;
    elastic_open(&e, 1, FAKE_V1);
    fake_operator_set_lag(e.p.fake, 0);
    elastic_begin(&e, 2, 1, "", "");
    elastic_await_all(&e, CHANGE_MS);
    list_garbage(&LONG);
    elastic_await_all(&e, CHANGE_MS);
    elastic_end(&e, false);
}

/* ---- flapping ---- */

/* Until so many more lists were sent. */
static void await_lists(size_t count)
{
    const size_t until = fake_operator_requests(e.p.fake, FAKE_GET) + count;
    while (fake_operator_requests(e.p.fake, FAKE_GET) < until) {
        elastic_run(&e, 100);
    }
}

/* Its process knows nothing of that. */
static void flicker(uint64_t seed, int api)
{
    char id[32];
    elastic_open(&e, seed, api);
    fake_operator_set_lag(e.p.fake, 0);
    fake_operator_set_delay(e.p.fake, 0);
    elastic_begin(&e, 3, 1, removal_of(seed), "");
    elastic_await_all(&e, CHANGE_MS);
    const int gain = elastic_gain(&e);
    e.kill_ms = -1;
    (void)snprintf(id, sizeof id, "%s", elastic_id(&e, COORD_COLLECTOR, 2));
    const fake_list list = api == FAKE_V2 ? FAKE_NODES : FAKE_COLLECTORS;
    for (int i = 0; i < 10; i++) {
        fake_operator_remove(e.p.fake, id);
        await_lists(1);
        fake_operator_add(e.p.fake, list, id);
        await_lists(1 + elastic_draw(&e, 2));
    }
    assert_int_equal(e.told[0][1] + e.told[1][1], 0);
    assert_int_equal(elastic_gain(&e), gain);
    elastic_await_all(&e, CHANGE_MS);
    elastic_end(&e, false);
}

static void a_pod_that_every_other_list_lacks_stays(void **state)
{
    (void)state;
    tell(flicker);
}

/* Listed for less than it takes to start, or to connect. */
static void pass_by(uint64_t seed, int api)
{
    char id[32];
    elastic_open(&e, seed, api);
    e.boot_ms = 0;
    elastic_begin(&e, 2, 1, removal_of(seed), "\"request_timeout_s\": 30, ");
    elastic_await_all(&e, CHANGE_MS);
    const int gain = elastic_gain(&e);
    const fake_list list = api == FAKE_V2 ? FAKE_NODES : FAKE_COLLECTORS;
    for (int i = 0; i < 6; i++) {
        char host[16];
        coord_sim_link slow;
        coord_sim_link_init(e.p.k.sim, &slow, sizeof slow);
        slow.latency_min_ms = 6000;
        slow.latency_max_ms = 9000;
        (void)snprintf(host, sizeof host, "10.3.0.%d", i);
        (void)snprintf(id, sizeof id, "%s:22270", host);
        assert_int_equal(coord_sim_set_link(e.p.k.sim, host, NULL, &slow, NULL),
                         COORD_OK);
        e.break_in = i % 2; /* far away, or not there at all */
        e.most[list]++;
        fake_operator_add(e.p.fake, list, id);
        elastic_run(&e, 500 + (int64_t)elastic_draw(&e, 1500));
        fake_operator_remove(e.p.fake, id);
        elastic_run(&e, 4000);
    }
    assert_int_equal(elastic_gain(&e), gain);
    assert_int_equal(e.told[0][1] + e.told[1][1], 0);
    elastic_await_all(&e, CHANGE_MS);
    elastic_end(&e, false);
}

static void a_pod_that_passes_by_leaves_nothing(void **state)
{
    (void)state;
    tell(pass_by);
}

/* Its process crashes and crashes, and is listed all the while. */
static void crash_again_and_again(uint64_t seed, int api)
{
    char id[32];
    elastic_open(&e, seed, api);
    elastic_begin(&e, 3, 1, removal_of(seed), "");
    elastic_await_all(&e, CHANGE_MS);
    const int told = e.told[0][0] + e.told[1][0];
    (void)snprintf(id, sizeof id, "%s", elastic_id(&e, COORD_COLLECTOR, 1));
    for (int i = 0; i < 15; i++) {
        elastic_crash(&e, id, (int64_t)elastic_draw(&e, 3) * 500);
        elastic_run(&e, 2000 + (int64_t)elastic_draw(&e, 3000));
    }
    elastic_await_all(&e, CHANGE_MS);
    assert_int_equal(e.told[0][0] + e.told[1][0], told);
    assert_int_equal(fake_operator_requests(e.p.fake, FAKE_FAILED), 0);
    elastic_end(&e, false);
}

static void a_pod_that_crashes_again_and_again_costs_no_task(void **state)
{
    (void)state;
    tell(crash_again_and_again);
}

/* By discovery, beside the operator server: whose ids are addresses. */
static coord_status say_where(cluster *k, coord_out *out)
{
    const int64_t turn = coord_sim_now_ms(k->sim) / 4000 % 2;
    return coord_out_printf(out, NULL, "collector 10.4.0.1:%d d0\n",
                            22270 + 10 * (int)turn);
}

static coord_status stay(cluster *k, coord_out *out)
{
    (void)k;
    return coord_out_printf(out, NULL, "collector 10.4.0.1:22270 d0\n");
}

static void move_about(uint64_t seed, int api)
{
    elastic_open(&e, seed, api);
    e.others = 1;
    e.p.k.discover = say_where;
    (void)cluster_add(&e.p.k, COORD_COLLECTOR, "d0 there", "10.4.0.1", 22270);
    (void)cluster_add(&e.p.k, COORD_COLLECTOR, "d0 here", "10.4.0.1", 22280);
    elastic_begin(&e, 2, 1, removal_of(seed), "\"discovery\": {\"interval_s\": 1}, ");
    elastic_await_all(&e, CHANGE_MS);
    elastic_run(&e, MINUTE_MS / 2);
    assert_true(e.told[0][1] >= 5);
    e.p.k.discover = stay;
    elastic_end(&e, false);
}

static void a_worker_that_is_here_and_there_costs_no_task(void **state)
{
    (void)state;
    tell(move_about);
}

/* ---- pods that never run ---- */

static void replace_broken(uint64_t seed, int api)
{
    elastic_open(&e, seed, FAKE_V1); /* the other API can't */
    (void)api;
    elastic_begin(&e, 2, 1, "\"grace_s\": 10, ", "");
    elastic_await_all(&e, CHANGE_MS);
    e.break_in = 2;
    elastic_scale(&e, 7, 1);
    elastic_run(&e, MINUTE_MS);
    e.break_in = 0;
    elastic_run(&e, MINUTE_MS);
    elastic_await_all(&e, CHANGE_MS);
    assert_int_equal(elastic_gain(&e), 8);
    elastic_end(&e, false);
}

static void pods_that_never_run_are_replaced_one_for_one(void **state)
{
    (void)state;
    tell(replace_broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_2_to_8_to_1),
        cmocka_unit_test(a_start_that_is_killed_and_repeated_makes_no_pod_twice),
        cmocka_unit_test(pods_come_back_at_another_address),
        cmocka_unit_test(another_process_answers_at_the_same_address),
        cmocka_unit_test(the_server_is_down_for_a_minute),
        cmocka_unit_test(garbage_brings_nobody_and_takes_nobody),
        cmocka_unit_test(a_long_list_of_nobody_does_no_harm),
        cmocka_unit_test(a_pod_that_every_other_list_lacks_stays),
        cmocka_unit_test(a_pod_that_passes_by_leaves_nothing),
        cmocka_unit_test(a_pod_that_crashes_again_and_again_costs_no_task),
        cmocka_unit_test(a_worker_that_is_here_and_there_costs_no_task),
        cmocka_unit_test(pods_that_never_run_are_replaced_one_for_one),
    };
    return cmocka_run_group_tests_name("elastic", tests, NULL, NULL);
}
