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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_2_to_8_to_1),
    };
    return cmocka_run_group_tests_name("elastic", tests, NULL, NULL);
}
