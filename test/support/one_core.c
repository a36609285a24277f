#include "support/one_core.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

static const int64_t LOOK_EVERY_NS = 20000000;

static int64_t read_clock(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Has somebody else had much of this core since the last look? */
static bool is_crowded(void)
{
    static int64_t looked_ns;
    static int64_t used_ns;
    int64_t now_ns = read_clock(CLOCK_MONOTONIC);
    if (now_ns - looked_ns < LOOK_EVERY_NS) {
        return false;
    }
    int64_t cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    bool crowded = looked_ns != 0 && (cpu_ns - used_ns) * 4 < (now_ns - looked_ns) * 3;
    looked_ns = now_ns;
    used_ns = cpu_ns;
    return crowded;
}

/* Two that crowd each other must not go on to the same core together. */
static bool coin(void)
{
    static uint64_t state;
    if (state == 0) {
        state = (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15) + 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 20) % 2 == 0;
}

static int next_of(const cpu_set_t *allowed, int core)
{
    for (int i = 1; i <= CPU_SETSIZE; i++) {
        int next = (core + i) % CPU_SETSIZE;
        if (CPU_ISSET((size_t)next, allowed)) {
            return next;
        }
    }
    return core;
}

void one_core(void)
{
    static cpu_set_t allowed;
    static int core = -1;
    cpu_set_t one;
    if (core < 0) {
        core = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? sched_getcpu() : -1;
    } else if (is_crowded() && coin()) {
        core = next_of(&allowed, core);
    } else {
        return;
    }
    if (core >= 0 && core < CPU_SETSIZE) {
        CPU_ZERO(&one);
        CPU_SET((size_t)core, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
    }
}
