#include "support/config_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

coordi_config config_good(const char *json)
{
    coordi_config config;
    coord_error err = {.status = COORD_OK};
    memset(&config, 0xff, sizeof config);
    if (coordi_config_read(coord_text_of(json), &config, &err) != COORD_OK) {
        fail_msg("<%s>: %s (%s)", json, err.text, err.cause);
    }
    return config;
}

void config_wrong(const char *json, coord_status status, const char *text)
{
    coordi_config config;
    coordi_config before;
    coord_error err = {.status = COORD_OK};
    memset(&config, 0xa5, sizeof config);
    memcpy(&before, &config, sizeof before);
    coord_status rc = coordi_config_read(coord_text_of(json), &config, &err);
    if (rc != status || err.status != status || strcmp(err.text, text) != 0) {
        fail_msg("<%s>\nexpected %d <%s>\ngot %d <%s>", json, (int)status, text, (int)rc,
                 err.text);
    }
    assert_memory_equal(&config, &before, sizeof config);
    assert_int_equal(coordi_config_read(coord_text_of(json), &config, NULL), status);
}
