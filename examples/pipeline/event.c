#include "event.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards stdout and `lost` */
static bool lost;

static void add_quoted(event *e, const char *text)
{
    (void)fputc('"', e->line);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            (void)fprintf(e->line, "\\%c", *c);
        } else if ((unsigned char)*c < ' ') {
            (void)fprintf(e->line, "\\u%04x", (unsigned)*c);
        } else {
            (void)fputc(*c, e->line);
        }
    }
    (void)fputc('"', e->line);
}

static void add_key(event *e, const char *key)
{
    (void)fputc(',', e->line);
    add_quoted(e, key);
    (void)fputc(':', e->line);
}

void event_begin(event *e, const char *name, const char *task_id)
{
    e->text = NULL;
    e->len = 0;
    e->line = open_memstream(&e->text, &e->len);
    if (e->line == NULL) {
        return;
    }
    (void)fputs("{\"event\":", e->line);
    add_quoted(e, name);
    if (task_id != NULL) {
        event_add_string(e, "task_id", task_id);
    }
}

void event_add_string(event *e, const char *key, const char *value)
{
    if (e->line == NULL) {
        return;
    }
    add_key(e, key);
    if (value == NULL) {
        (void)fputs("null", e->line);
    } else {
        add_quoted(e, value);
    }
}

void event_add_int(event *e, const char *key, int64_t value)
{
    if (e->line != NULL) {
        add_key(e, key);
        (void)fprintf(e->line, "%" PRId64, value);
    }
}

void event_add_bool(event *e, const char *key, bool value)
{
    if (e->line != NULL) {
        add_key(e, key);
        (void)fputs(value ? "true" : "false", e->line);
    }
}

void event_add_json(event *e, const char *key, coord_text json)
{
    if (e->line == NULL) {
        return;
    }
    add_key(e, key);
    (void)fwrite(json.len == 0 ? "null" : json.ptr, 1, json.len == 0 ? 4 : json.len,
                 e->line);
}

/* In JSON a line can only break between values, never in a string: there a blank does as
 * well, and the event stays on one line. */
static void join_lines(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n' || text[i] == '\r') {
            text[i] = ' ';
        }
    }
}

void event_end(event *e)
{
    bool whole = false;
    if (e->line != NULL) {
        (void)fputc('}', e->line);
        whole = ferror(e->line) == 0;
        whole = fclose(e->line) == 0 && whole;
    }
    if (whole) {
        join_lines(e->text, e->len);
    } else {
        errno = ENOMEM;
    }
    (void)pthread_mutex_lock(&lock);
    if (!whole || fwrite(e->text, 1, e->len, stdout) != e->len ||
        fputc('\n', stdout) == EOF || fflush(stdout) != 0) {
        if (!lost) {
            perror("pipeline: stdout");
        }
        lost = true;
    }
    (void)pthread_mutex_unlock(&lock);
    free(e->text);
}

bool event_all_printed(void)
{
    (void)pthread_mutex_lock(&lock);
    bool all = !lost;
    (void)pthread_mutex_unlock(&lock);
    return all;
}
