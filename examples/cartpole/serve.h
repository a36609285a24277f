#ifndef CARTPOLE_SERVE_H
#define CARTPOLE_SERVE_H

#include "coord.h"

#include <stdbool.h>

/* What the worker programs have in common. */

enum { SERVE_USAGE = 2 };

/* For the first lines of main(): ends with whoever started it, keeps to one thread,
 * takes no arguments. Returns an exit status, 0 to go on. */
int serve_init(int argc, char **argv);

/* How it listens: on any port of this machine. */
void serve_options(coord_slave_options *ret);

/* Prints "listening on HOST:PORT" and works until a signal comes. Returns the exit
 * status, unless a step takes too long to wait for: then the process ends in here. */
int serve(const char *program, coord_slave *slave);

#endif
