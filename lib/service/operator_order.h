/* `init_replicas_request` as DI-engine's users write it: {"collectors": {"replicas": 2,
 * "cpus": "500m"}, "learners": {...}}. Pure. */
#ifndef COORDI_SERVICE_OPERATOR_ORDER_H
#define COORDI_SERVICE_OPERATOR_ORDER_H

#include "coord/operator_server.h"

enum { COORDI_OPERATOR_QUANTITY_SIZE = 64 };

typedef struct coordi_operator_order {
    coord_operator_request request; /* its strings are below: do not copy the struct */
    char quantities[6][COORDI_OPERATOR_QUANTITY_SIZE];
    char remark[160]; /* for a log; "": none */
} coordi_operator_order;

/* "cpu" and "gpu" are taken for the server's "cpus" and "gpus", which would ignore them,
 * with a remark; "namespace" and "coordinator" are ignored, for DI-engine writes them
 * into the user's request. COORD_ERR_CONFIG names the path ("learners.gpus") and what was
 * expected. */
coord_status coordi_operator_order_read(coordi_operator_order *ret, coord_text json,
                                        coord_error *err);

#endif
