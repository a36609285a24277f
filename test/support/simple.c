#include "support/simple.h"

coord_status simple_start(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)user;
    return coord_out_printf(out, err, "{}");
}

coord_status simple_data(coord_slave *slave, coord_text in, coord_out *out,
                         coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)user;
    return coord_out_printf(out, err, "{\"collector_done\": true}");
}

coord_status simple_get_data(coord_slave *slave, coord_text in, coord_out *out,
                             coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)user;
    return coord_out_printf(out, err, "{\"batch_size\": 1, \"cur_learner_iter\": 0}");
}

coord_status simple_learn(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)user;
    return coord_out_printf(out, err, "{\"learner_done\": true}");
}

void simple_on_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    const char *data_id, coord_text sample, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)data_id;
    (void)sample;
    (void)user;
}

bool simple_is_enough(CommCoordinator *c, const char *task_id, coord_text info,
                      void *user)
{
    (void)c;
    (void)task_id;
    (void)info;
    (void)user;
    return true;
}
