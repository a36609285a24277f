#ifndef CARTPOLE_PLOT_H
#define CARTPOLE_PLOT_H

#include "coord.h"

/* Draws history.jsonl of a run as learning_curve.png, with gnuplot; the script is left
 * beside it as learning_curve.gp.
 *
 * COORD_ERR_NOT_FOUND: there is no gnuplot. COORD_ERR_CANCELED: `stop_fd` became
 * readable. */
coord_status plot_draw(const char *folder, int stop_fd, coord_error *err);

#endif
