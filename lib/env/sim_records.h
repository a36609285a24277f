/* Table entries of sim_records.c, and what the world asks of it. */
#ifndef COORDI_ENV_SIM_RECORDS_H
#define COORDI_ENV_SIM_RECORDS_H

#include "env/sim.h"

coord_status coordi_sim_records_open(coord_loop *loop, const coordi_records_spec *spec,
                                     coordi_records **ret, coord_error *err);
coord_status coordi_sim_records_read(coordi_records *records, size_t statement,
                                     const coordi_record_value *values, size_t count,
                                     coordi_record_row_fn *row, void *arg,
                                     coord_error *err);
void coordi_sim_records_write(coordi_records *records, coordi_record_write *write);
void coordi_sim_records_close(coordi_records *records);

/* The process has crashed: its handles are lost. */
void coordi_sim_records_die(coordi_sim_loop *loop);
/* Nobody moves the clock any more: what waits for the disk waits no longer. */
void coordi_sim_records_hurry(coordi_sim_loop *loop);
void coordi_sim_records_done(coord_sim *sim);

#endif
