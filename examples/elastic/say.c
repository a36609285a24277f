#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

static bool is_verbose;
static struct timespec begin;

void say_begin(bool verbose)
{
    is_verbose = verbose;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin.tv_sec) +
           (double)(now.tv_nsec - begin.tv_nsec) / 1e9;
}

void say(const char *text)
{
    if (is_verbose) {
        (void)printf("%6.2f  %s\n", seconds(), text);
    } else {
        (void)printf("%s\n", text);
    }
    (void)fflush(stdout); /* for whoever reads along through a pipe */
}

void tell(const char *format, ...)
{
    char text[512];
    va_list args;
    if (!is_verbose) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)printf("%6.2f    %s\n", seconds(), text);
    (void)fflush(stdout);
}

void complain(const char *what, const coord_error *err)
{
    bool text = err != NULL && err->text[0] != '\0';
    bool cause = text && err->cause[0] != '\0';
    (void)fprintf(stderr, "elastic: %s%s%s%s%s\n", what, text ? ": " : "",
                  text ? err->text : "", cause ? ": " : "", cause ? err->cause : "");
}
