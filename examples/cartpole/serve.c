#include "serve.h"
#include "mlp.h"
#include "report.h"
#include "signals.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Heartbeats are quick, so that a dead worker is missed soon; closing is quick, so that
 * Ctrl-C is. */
enum { HEARTBEAT_MS = 500, RETRIES = 2, RETRY_WAIT_MS = 200, CLOSE_MS = 400 };

static int signal_fd = -1;

int serve_init(int argc, char **argv)
{
    coord_error err = {0};
    if (argc > 1) {
        (void)fprintf(stderr,
                      "%s: there are no arguments: a coordinator starts this program and "
                      "tells it what to do\n",
                      argv[0]);
        return SERVE_USAGE;
    }
    if (coord_launcher_child_guard(NULL, &err) != COORD_OK) {
        return complain(argv[0], &err);
    }
    mlp_use_one_thread();
    signal_fd = signals_open();
    if (signal_fd < 0) {
        perror(argv[0]);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

void serve_options(coord_slave_options *ret)
{
    coord_slave_options_init(ret, sizeof *ret);
    ret->heartbeat_ms = HEARTBEAT_MS;
    ret->request_retries = RETRIES;
    ret->request_retry_wait_ms = RETRY_WAIT_MS;
}

int serve(const char *program, coord_slave *slave)
{
    coord_error err = {0};
    struct pollfd fd = {signal_fd, POLLIN, 0};

    if (printf("listening on %s:%u\n", coord_slave_host(slave), coord_slave_port(slave)) <
            0 ||
        fflush(stdout) != 0) {
        perror(program);
        return EXIT_FAILURE;
    }
    while (poll(&fd, 1, -1) < 0 && errno == EINTR) {
    }
    coord_status rc = coord_slave_close(slave, CLOSE_MS, &err);
    if (rc == COORD_ERR_TIMEOUT) {
        /* In the middle of a step, which nobody waits for any more. It may need all that
         * exit() would take down. */
        _exit(EXIT_SUCCESS);
    }
    return rc == COORD_OK ? EXIT_SUCCESS : complain(program, &err);
}
