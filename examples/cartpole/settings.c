#include "settings.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char USAGE[] =
    "usage: cartpole [--seed N] [--collectors N] [--timeout S] [--runs DIR]\n"
    "Trains CartPole-v1 to solved, with collectors and a learner as processes.\n"
    "  --seed N        of all random numbers (1)\n"
    "  --collectors N  how many, at most 16 (2)\n"
    "  --timeout S     gives up after so many seconds (170)\n"
    "  --runs DIR      folder that gets a folder for this run (runs)\n"
    "The exit status is 0 when it is solved, 1 when it is not, 2 when the arguments are\n"
    "wrong, and 128 + the signal's number after SIGINT, SIGTERM or SIGHUP.\n";

static bool read_int(const char *name, const char *text, int64_t low, int64_t high,
                     int64_t *ret)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < low || value > high) {
        (void)fprintf(stderr,
                      "cartpole: --%s must be an integer from %" PRId64 " to %" PRId64
                      ", got \"%s\"\n",
                      name, low, high, text);
        return false;
    }
    *ret = value;
    return true;
}

static bool read_options(int argc, char **argv, settings *set)
{
    static const struct option OPTIONS[] = {
        {"seed", required_argument, NULL, 's'},
        {"collectors", required_argument, NULL, 'c'},
        {"timeout", required_argument, NULL, 't'},
        {"runs", required_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    bool good = true;
    int option;
    int64_t number = 0;

    while (good && (option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        switch (option) {
        case 's':
            good = read_int("seed", optarg, 0, INT64_MAX, &set->seed);
            break;
        case 'c':
            good = read_int("collectors", optarg, 1, COLLECTORS_MAX, &number);
            set->collectors = (size_t)number;
            break;
        case 't':
            good = read_int("timeout", optarg, 1, 86400, &number);
            set->timeout_ms = number * 1000;
            break;
        case 'r':
            set->runs = optarg;
            break;
        case 'h':
            set->help = true;
            return true;
        default: /* getopt has said what is wrong */
            good = false;
        }
    }
    if (good && optind < argc) {
        (void)fprintf(stderr, "cartpole: there is no argument \"%s\"\n", argv[optind]);
        good = false;
    }
    return good;
}

bool settings_read(int argc, char **argv, settings *ret)
{
    *ret = (settings){.seed = 1, .collectors = 2, .timeout_ms = 170000, .runs = "runs"};
    bool good = read_options(argc, argv, ret);
    if (!good || ret->help) {
        (void)fputs(USAGE, ret->help ? stdout : stderr);
    }
    return good;
}

size_t settings_envs(const settings *set)
{
    return ENVS_PER_UPDATE / set->collectors;
}
