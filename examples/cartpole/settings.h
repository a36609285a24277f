#ifndef CARTPOLE_SETTINGS_H
#define CARTPOLE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_ID "cartpole"

enum {
    COLLECTORS_MAX = 16,
    ENVS_PER_UPDATE = 16, /* shared out among the collectors */
    STEPS_PER_ENV = 128,
    EVALUATE_EVERY = 5, /* versions */
    EVALUATION_EPISODES = 100,
    SOLVED_RETURN = 475,    /* mean of that many greedy episodes, in two evaluations */
    CONFIDENT_RETURN = 487, /* mean of both: a third one would pass, too */
    POLICIES_KEPT = 20,
    LAG_MAX = 4, /* versions; older chunks are dropped */
};

/* What the command line says. */
typedef struct settings {
    int64_t seed;
    size_t collectors;
    int64_t timeout_ms;
    const char *runs; /* folder of all runs */
    bool help;        /* was asked for, and is printed */
} settings;

/* False when the arguments are wrong, which is explained on stderr. */
bool settings_read(int argc, char **argv, settings *ret);

/* Environments of one collector: a batch is about as large whatever their number is. */
size_t settings_envs(const settings *set);

#endif
