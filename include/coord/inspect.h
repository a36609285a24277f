/**
 * @file inspect.h
 * What a CommCoordinator tells of itself.
 */
#ifndef COORD_INSPECT_H
#define COORD_INSPECT_H

#include "coord/callbacks.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A snapshot as JSON: phase ("draining" from comm_coordinator_drain() on), workers,
 * tasks, pools, counters.
 *
 * @param[out] ret  Yours: free with coord_free(). Closed by a NUL.
 * @thread any, except a callback that runs inline
 */
COORD_API COORD_MUST_USE coord_status comm_coordinator_status(CommCoordinator *c,
                                                              char **ret,
                                                              coord_error *err);

/** Port it listens on; 0 before start. @thread any */
COORD_API uint16_t comm_coordinator_port(const CommCoordinator *c);

/** Host it listens on, as configured; lives as long as c. @thread any */
COORD_API const char *comm_coordinator_host(const CommCoordinator *c);

#ifdef __cplusplus
}
#endif
#endif
