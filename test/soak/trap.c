/* A process that kills itself at a point that a kill from outside would seldom meet. */
#include "soak.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char event_at[16];
static int64_t until_ms;
static long delay_us;
static atomic_int left;

static void *spring(void *arg)
{
    struct timespec wait = {0, delay_us * 1000};
    (void)arg;
    (void)ppoll(NULL, 0, &wait, NULL);
    (void)kill(getpid(), SIGKILL);
    return NULL;
}

bool soak_trap_set(const char *text)
{
    int count;
    long long until;
    if (strcmp(text, "-") == 0) {
        return true;
    }
    if (sscanf(text, "%15[a-z]:%d:%ld:%lld", event_at, &count, &delay_us, &until) != 4) {
        return false;
    }
    until_ms = until;
    atomic_store(&left, count);
    return true;
}

void soak_trap_step(const char *event)
{
    pthread_t thread;
    if (event_at[0] == '\0' || strcmp(event, event_at) != 0 ||
        atomic_fetch_sub(&left, 1) != 1 || soak_now_ms() > until_ms) {
        return;
    }
    if (delay_us == 0 || pthread_create(&thread, NULL, spring, NULL) != 0) {
        (void)kill(getpid(), SIGKILL);
    }
}
