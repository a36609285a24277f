/* Table entries of real_process.c. */
#ifndef COORDI_ENV_REAL_PROCESS_H
#define COORDI_ENV_REAL_PROCESS_H

#include "env/env.h"

coord_status coordi_real_process_start(coord_loop *loop, const coordi_process_spec *spec,
                                       coordi_process **ret, coord_error *err);
int64_t coordi_real_process_id(const coordi_process *process);
void coordi_real_process_signal(coordi_process *process, int signal_number);
void coordi_real_process_pause(coordi_process *process, bool paused);
void coordi_real_process_destroy(coordi_process *process);

#endif
