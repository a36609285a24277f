#ifndef PIPELINE_HOST_H
#define PIPELINE_HOST_H

#include "buffers.h"
#include "config.h"
#include "crew.h"

#include <stdatomic.h>

/* What the callbacks work on. They run on several threads. */
typedef struct host {
    const config *config;
    buffers *buffers;
    crew crew;
    atomic_size_t finished; /* tasks of the file */
    atomic_size_t failed;
} host;

/* The callbacks of this program; `h` has to outlive the coordinator. */
void host_callbacks(host *h, comm_coordinator_callbacks *ret);

#endif
