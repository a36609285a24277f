#include "base/options.h"

#include "base/error.h"

#include <string.h>

enum { SANE_SIZE = 65536 };

void coordi_options_init(void *options, size_t size, const void *defaults,
                         size_t default_size)
{
    if (options == NULL || size < sizeof(size_t)) {
        return;
    }
    memset(options, 0, size);
    memcpy(options, defaults, size < default_size ? size : default_size);
    memcpy(options, &size, sizeof size);
}

coord_status coordi_options_adopt(void *ours, size_t our_size, const void *theirs,
                                  const char *what, coord_error *err)
{
    const unsigned char *bytes = theirs;
    size_t their_size;

    memcpy(&their_size, theirs, sizeof their_size);
    if (their_size < sizeof(size_t) || their_size > SANE_SIZE) {
        return coordi_fail(err, COORD_ERR_ABI,
                           "%s: size field is %zu; call its _init() function first", what,
                           their_size);
    }
    for (size_t i = our_size; i < their_size; i++) {
        if (bytes[i] != 0) {
            return coordi_fail(
                err, COORD_ERR_ABI,
                "%s: the field at byte %zu is newer than this libcoord (%s)", what, i,
                COORD_VERSION);
        }
    }
    memcpy(ours, theirs, their_size < our_size ? their_size : our_size);
    memcpy(ours, &our_size, sizeof our_size);
    return COORD_OK;
}
