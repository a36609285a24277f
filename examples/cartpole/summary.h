#ifndef CARTPOLE_SUMMARY_H
#define CARTPOLE_SUMMARY_H

#include "host.h"

#include <stddef.h>
#include <stdint.h>

/* What the run says of itself: how far it is, as one line, and at the end. */

void summary_progress(const host_view *view, int64_t elapsed_ms, char *ret, size_t size);

/* How it ended. */
void summary_result(const host_view *view, int64_t elapsed_ms);

/* Draws the learning curve. A courtesy: without it the run is what it was. */
void summary_draw(const run_folder *folder, int stop_fd);

/* Which files there are. */
void summary_files(const run_folder *folder, const host_view *view);

#endif
