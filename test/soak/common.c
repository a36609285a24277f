#include "soak.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

int64_t soak_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void soak_wait_ms(int64_t ms)
{
    int64_t until = soak_now_ms() + ms;
    for (int64_t left = ms; left > 0; left = until - soak_now_ms()) {
        (void)poll(NULL, 0, (int)left);
    }
}

/* CRC-32 as of zip files, a bit at a time: there is little to count. */
uint32_t soak_crc(const void *data, size_t len)
{
    const unsigned char *at = data;
    uint32_t crc = 0xffffffffU;
    for (size_t i = 0; i < len; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
        }
    }
    return ~crc;
}

/* splitmix64 */
uint64_t soak_next(uint64_t *random)
{
    uint64_t z = *random += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

int64_t soak_between(uint64_t *random, int64_t low, int64_t high)
{
    return low + (int64_t)(soak_next(random) % (uint64_t)(high - low + 1));
}

bool soak_chance(uint64_t *random, int percent)
{
    return soak_between(random, 0, 99) < percent;
}

bool soak_follow_parent(pid_t parent)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

void soak_say(const char *line)
{
    int64_t now = soak_now_ms();
    (void)dprintf(STDERR_FILENO, "%lld.%03d %s\n", (long long)(now / 1000),
                  (int)(now % 1000), line);
}
