/* The least that a host and its workers can be: tasks begin at once, are done with the
 * first answer, and what comes on the way is dropped. `user` is not looked at. */
#ifndef TEST_SUPPORT_SIMPLE_H
#define TEST_SUPPORT_SIMPLE_H

#include "coord.h"

coord_status simple_start(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user);
/* "I am done." */
coord_status simple_data(coord_slave *slave, coord_text in, coord_out *out,
                         coord_error *err, void *user);
/* Wants a batch of one. */
coord_status simple_get_data(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user);
/* "I am done." */
coord_status simple_learn(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user);

void simple_on_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    const char *data_id, coord_text sample, void *user);
bool simple_is_enough(CommCoordinator *c, const char *task_id, coord_text info,
                      void *user);

#endif
