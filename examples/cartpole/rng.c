#include "rng.h"

#include <math.h>

static const double TWO_PI = 6.28318530717958647692;

void rng_seed(rng *r, uint64_t seed, uint64_t stream)
{
    r->state = 0;
    r->increment = (stream << 1) | 1U;
    (void)rng_next(r);
    r->state += seed;
    (void)rng_next(r);
}

uint32_t rng_next(rng *r)
{
    const uint64_t old = r->state;
    r->state = old * UINT64_C(6364136223846793005) + r->increment;

    const uint32_t word = (uint32_t)(((old >> 18) ^ old) >> 27);
    const uint32_t turn = (uint32_t)(old >> 59);
    return (word >> turn) | (word << ((32U - turn) & 31U));
}

uint32_t rng_below(rng *r, uint32_t bound)
{
    /* The lowest 2^32 mod bound values would make small results likelier. */
    const uint32_t reject = (0U - bound) % bound;
    uint32_t word = rng_next(r);
    while (word < reject) {
        word = rng_next(r);
    }
    return word % bound;
}

double rng_unit(rng *r)
{
    const uint64_t high = rng_next(r) >> 5; /* 27 bits */
    const uint64_t low = rng_next(r) >> 6;  /* 26 bits */
    return (double)((high << 26) | low) * 0x1p-53;
}

double rng_uniform(rng *r, double low, double high)
{
    return low + (high - low) * rng_unit(r);
}

double rng_normal(rng *r)
{
    const double radius = sqrt(-2.0 * log(1.0 - rng_unit(r))); /* never log(0) */
    return radius * cos(TWO_PI * rng_unit(r));
}

uint64_t rng_mix(uint64_t seed, uint64_t index)
{
    /* SplitMix64: its output function applied to a point of its sequence. */
    uint64_t z = seed + (index + 1U) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
