/* Options structs begin with their size, so that old hosts and new libraries agree. */
#ifndef COORDI_BASE_OPTIONS_H
#define COORDI_BASE_OPTIONS_H

#include "coord/error.h"

/* Writes the first `size` bytes of `defaults` (zero beyond its own size) and the size
 * field, which must come first. */
void coordi_options_init(void *options, size_t size, const void *defaults,
                         size_t default_size);

/* `ours` holds this build's defaults; lays the caller's fields over them. A caller built
 * against a newer header may pass more, as long as what we can't read is zero: an option
 * that was set must never be ignored in silence. `what` names the struct in errors. */
coord_status coordi_options_adopt(void *ours, size_t our_size, const void *theirs,
                                  const char *what, coord_error *err);

#endif
