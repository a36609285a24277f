#include "exam.h"
#include "rng.h"
#include "settings.h"

enum { SEED_STREAM = 1000003 }; /* far from those that collectors play with */

bool exam_begin(exam *e, int64_t newest)
{
    if (e->running || newest < e->next) {
        return false;
    }
    e->running = true;
    e->version = newest;
    e->round = 0;
    e->next = newest + EVALUATE_EVERY;
    return true;
}

exam_result exam_end_round(exam *e, double mean)
{
    const bool passed = mean >= SOLVED_RETURN;
    e->means[e->round] = mean;
    e->latest = mean;
    e->any = true;
    if (passed && e->round + 1 < EXAM_ROUNDS) {
        e->round++;
        return EXAM_ANOTHER_ROUND;
    }
    e->running = false;
    return passed && (e->means[0] + e->means[1]) / 2 >= CONFIDENT_RETURN
               ? EXAM_SOLVED
               : EXAM_NOT_PASSED;
}

int64_t exam_seed(const exam *e, int64_t run_seed)
{
    uint64_t seed = rng_mix((uint64_t)run_seed, SEED_STREAM + (uint64_t)e->version);
    return (int64_t)(rng_mix(seed, (uint64_t)e->round) >> 1);
}
