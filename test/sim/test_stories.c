/* Random stories, see support/story.h. 2,000 of them, or fewer under a sanitizer.
 *
 * SEED=n tells that one alone; with TRACE=1 it prints all that happens. SEEDS=n tells the
 * first n, JOBS=n in so many processes side by side. */
#include "support/sanitized.h"
#include "support/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STORIES = SANITIZED(2000, 400, 150) };

static story told;
static uint64_t seed_under_way;

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL || text[0] == '\0' ? otherwise : strtoull(text, NULL, 10);
}

/* Every `step`-th from `first` to `last`. */
static void tell(uint64_t first, uint64_t last, uint64_t step)
{
    for (uint64_t seed = first; seed <= last; seed += step) {
        seed_under_way = seed;
        story_tell(&told, seed);
    }
    seed_under_way = 0;
}

static uint64_t job; /* which of the jobs this process is */

static uint64_t jobs_wanted(void)
{
    uint64_t jobs = number_from("SEED", 0) != 0 ? 1 : number_from("JOBS", 1);
    return jobs == 0 ? 1 : jobs;
}

static void random_stories_end_well(void **state)
{
    uint64_t only = number_from("SEED", 0);
    (void)state;
    if (only != 0) {
        tell(only, only, 1);
    } else {
        tell(1 + job, number_from("SEEDS", STORIES), jobs_wanted());
    }
}

/* What a failing seed does must be seen again, whatever it is made of. */
static void equal_seeds_tell_equal_stories(void **state)
{
    (void)state;
    uint64_t last = job == 0 && number_from("SEED", 0) == 0 ? 25 : 0;
    for (uint64_t seed = 1; seed <= last; seed++) {
        tell(seed, seed, 1);
        uint64_t once = told.hash;
        tell(seed, seed, 1);
        if (told.hash != once) {
            fail_msg("seed %llu: not the same twice", (unsigned long long)seed);
        }
    }
}

static int name_the_seed(void **state)
{
    (void)state;
    if (seed_under_way != 0) {
        const char *san = getenv("SAN");
        bool plain = san == NULL || san[0] == '\0';
        print_error("again: make sim SEED=%llu TRACE=1%s%s%s%s\n",
                    (unsigned long long)seed_under_way,
                    plain ? "" : " SAN=", plain ? "" : san,
                    plain ? "" : " BUILD=", plain ? "" : getenv("BUILD"));
    }
    return 0;
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(random_stories_end_well, name_the_seed),
        cmocka_unit_test_teardown(equal_seeds_tell_equal_stories, name_the_seed),
    };
    return cmocka_run_group_tests_name("stories", tests, NULL, NULL);
}

/* All of the others; what they return: whether any failed. */
static int run_others(uint64_t jobs)
{
    int failed = 0;
    for (uint64_t other = 1; other < jobs; other++) {
        pid_t pid = fork();
        if (pid == 0) {
            job = other;
            exit(run() == 0 ? 0 : 1);
        }
        failed += pid < 0;
    }
    return failed;
}

int main(void)
{
    int failed = run_others(jobs_wanted());
    int status = 0;
    failed += run() != 0;
    while (wait(&status) > 0) {
        failed += status != 0;
    }
    return failed == 0 ? 0 : 1;
}
