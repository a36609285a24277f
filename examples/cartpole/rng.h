#ifndef CARTPOLE_RNG_H
#define CARTPOLE_RNG_H

#include <stdint.h>

/* PCG32 (XSH-RR 64/32): small, seedable, the same on every machine. Every environment
 * and every update has a generator of its own, so that a run can be repeated whatever
 * the order is in which its parts are scheduled. */
typedef struct rng {
    uint64_t state;
    uint64_t increment; /* odd; selects the stream */
} rng;

void rng_seed(rng *r, uint64_t seed, uint64_t stream);

uint32_t rng_next(rng *r);

/* Without bias from 0 to bound - 1; bound must not be 0. */
uint32_t rng_below(rng *r, uint32_t bound);

/* From 0 (included) to 1 (excluded), with 53 random bits. */
double rng_unit(rng *r);

double rng_uniform(rng *r, double low, double high);

/* Standard normal. */
double rng_normal(rng *r);

/* A seed for child number `index` of `seed`; neighbours get unrelated seeds. */
uint64_t rng_mix(uint64_t seed, uint64_t index);

#endif
