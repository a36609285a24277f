#include "soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { MARGIN_S = 400 }; /* whatever happens, we end so long after the time */

/* soak [--minutes M] [--seed N] */
int main(int argc, char **argv)
{
    double minutes = 1.0;
    uint64_t seed = 0;
    if (argc > 1 && strcmp(argv[1], "host") == 0) {
        return soak_host(argc, argv);
    }
    if (argc > 1 && strcmp(argv[1], "worker") == 0) {
        return soak_worker(argc, argv);
    }
    (void)getrandom(&seed, sizeof seed, 0);
    seed %= 1000000;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--minutes") == 0) {
            minutes = strtod(argv[i + 1], NULL);
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[i + 1], NULL, 10);
        }
    }
    if (!(minutes >= 1.0 && minutes <= 60 * 24 * 7)) {
        (void)fprintf(stderr, "soak [--minutes 1 or more] [--seed N]\n");
        return 2;
    }
    (void)alarm((unsigned)(minutes * 60.0) + MARGIN_S);
    return soak_drive((int64_t)(minutes * 60.0), seed);
}
