#include "screen.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TERMINAL_MS = 200, OTHER_MS = 5000, COLUMNS_DEFAULT = 80 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool drawn; /* the cursor stands behind a progress line */

static bool is_terminal(void)
{
    return isatty(STDOUT_FILENO) == 1;
}

int64_t screen_interval_ms(void)
{
    return is_terminal() ? TERMINAL_MS : OTHER_MS;
}

static int columns(void)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : COLUMNS_DEFAULT;
}

void screen_progress(const char *line)
{
    (void)pthread_mutex_lock(&lock);
    if (is_terminal()) {
        (void)printf("\r%.*s\033[K", columns() - 1, line); /* a wrapped line would stay */
        drawn = true;
    } else {
        (void)puts(line);
    }
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&lock);
}

/* Frees the line. Under the lock. */
static void leave_line(const char *how)
{
    if (drawn) {
        (void)fputs(how, stdout);
        (void)fflush(stdout);
        drawn = false;
    }
}

void screen_note(const char *format, ...)
{
    va_list args;
    (void)pthread_mutex_lock(&lock);
    leave_line("\r\033[K");
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    (void)pthread_mutex_unlock(&lock);
}

void screen_end(void)
{
    (void)pthread_mutex_lock(&lock);
    leave_line("\n");
    (void)pthread_mutex_unlock(&lock);
}
