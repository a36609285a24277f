/* Reads configurations for tests. */
#ifndef TEST_SUPPORT_CONFIG_RIG_H
#define TEST_SUPPORT_CONFIG_RIG_H

#include "coordinator/config.h"

/* It has to be fine. */
coordi_config config_good(const char *json);

/* It has to be wrong, for this reason, and then nothing is written. */
void config_wrong(const char *json, coord_status status, const char *text);

#endif
