#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

static volatile sig_atomic_t which;
static int event_fd = -1;

static void on_signal(int signal_number)
{
    const int kept = errno;
    if (which == 0) {
        which = signal_number;
        (void)eventfd_write(event_fd, 1);
    }
    errno = kept;
}

int signals_open(void)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; event_fd >= 0 && i < sizeof SIGNALS / sizeof *SIGNALS; i++) {
        if (sigaction(SIGNALS[i], &action, NULL) != 0) {
            return -1;
        }
    }
    return event_fd;
}

int signals_which(void)
{
    return which;
}
