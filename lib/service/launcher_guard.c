#include "base/error.h"
#include "base/options.h"
#include "service/launcher.h"

static const coord_launcher_guard_options DEFAULTS = {
    .size = sizeof(coord_launcher_guard_options),
    .exit_code = 1,
    .grace_ms = 10000,
};

void coord_launcher_guard_options_init(coord_launcher_guard_options *options, size_t size)
{
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

coord_status coord_launcher_child_guard(const coord_launcher_guard_options *options,
                                        coord_error *err)
{
    coord_launcher_guard_options ours = DEFAULTS;
    if (options != NULL) {
        coord_status rc = coordi_options_adopt(&ours, sizeof ours, options,
                                               "coord_launcher_guard_options", err);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    if (ours.exit_code < 0 || ours.exit_code > 255 || ours.grace_ms < 0) {
        return coordi_fail(
            err, COORD_ERR_ARG,
            "launcher guard: exit_code (%d) must be from 0 to 255, grace_ms "
            "(%lld) at least 0",
            ours.exit_code, (long long)ours.grace_ms);
    }
    const coordi_guard_spec spec = {
        .exit_code = ours.exit_code,
        .on_gone = ours.on_parent_gone,
        .grace_ms = ours.grace_ms < COORDI_LAUNCHER_LONGEST_MS
                        ? ours.grace_ms
                        : COORDI_LAUNCHER_LONGEST_MS,
        .arg = ours.user,
    };
    return coordi_child_guard(&spec, err);
}
