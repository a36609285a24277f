#include "support/one_core.h"

#include <sched.h>
#include <stdbool.h>

void one_core(void)
{
    static cpu_set_t allowed;
    static bool known;
    cpu_set_t one;
    if (!known) {
        known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    }
    if (!known || sched_setaffinity(0, sizeof allowed, &allowed) != 0) {
        return; /* slower, no worse */
    }
    int here = sched_getcpu();
    if (here >= 0 && here < CPU_SETSIZE) {
        CPU_ZERO(&one);
        CPU_SET((size_t)here, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
    }
}
