#ifndef ELASTIC_SCALER_H
#define ELASTIC_SCALER_H

#include "coord.h"

/* Whoever decides how many collectors there are: a person, a job of the night, a program
 * that looks at the load. It speaks to the operator's server, not to the coordinator. */
bool scale_up(const char *server, int32_t collectors);

/* The server chooses which of them go. */
bool scale_down(const char *server, int32_t collectors);

#endif
