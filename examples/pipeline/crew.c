#include "crew.h"
#include "raw.h"

#include <stdio.h>
#include <stdlib.h>

bool crew_init(crew *w, const config *c)
{
    *w = (crew){.config = c};
    return pthread_mutex_init(&w->lock, NULL) == 0;
}

void crew_done(crew *w)
{
    (void)pthread_mutex_destroy(&w->lock);
}

static void lock(crew *w)
{
    (void)pthread_mutex_lock(&w->lock);
}

static void unlock(crew *w)
{
    (void)pthread_mutex_unlock(&w->lock);
}

/* The task of the file, byte for byte but for its task_id. Yours; NULL: no memory. */
static char *print_task(const config *c, unsigned n)
{
    char *text = NULL;
    size_t len = 0;
    size_t at = 0;
    coord_text key;
    coord_text value;
    const char *comma = "";
    FILE *to = open_memstream(&text, &len);
    if (to == NULL) {
        return NULL;
    }
    (void)fputc('{', to);
    while (raw_next(c->each, &at, &key, &value)) {
        (void)fprintf(to, "%s%.*s: ", comma, (int)key.len, key.ptr);
        comma = ", ";
        if (raw_is_name(key, "task_id")) { /* its closing quote comes after the number */
            (void)fprintf(to, "%.*s-%u\"", (int)value.len - 1, value.ptr, n);
        } else {
            (void)fprintf(to, "%.*s", (int)value.len, value.ptr);
        }
    }
    (void)fputc('}', to);
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

static coord_status post(const crew *w, CommCoordinator *c, unsigned n)
{
    coord_error err = {0};
    char *text = print_task(w->config, n);
    coord_status rc =
        text == NULL ? COORD_ERR_NOMEM
                     : comm_coordinator_post_collector_task(c, coord_text_of(text), &err);
    bool over = rc == COORD_ERR_CLOSED || rc == COORD_ERR_STATE; /* drains, or closes */
    if (rc != COORD_OK && rc != COORD_ERR_EXISTS && !over) {
        (void)fprintf(stderr, "pipeline: each_collector: %s\n",
                      text == NULL ? "out of memory" : err.text);
    }
    free(text);
    return rc;
}

/* Until there are as many tasks as collectors. Posting may take its time, with a ledger,
 * so that it is done without the lock. */
static void top_up(crew *w, CommCoordinator *c)
{
    coord_status rc = COORD_OK;
    while (rc == COORD_OK || rc == COORD_ERR_EXISTS) {
        lock(w);
        bool wanted = !w->closed && w->tasks < w->collectors;
        unsigned n = wanted ? ++w->made : 0;
        w->tasks += wanted ? 1 : 0;
        unlock(w);
        if (!wanted) {
            return;
        }
        rc = post(w, c, n);
        if (rc != COORD_OK) { /* EXISTS: of that number there is one from the ledger */
            lock(w);
            w->tasks--;
            w->closed = w->closed || rc == COORD_ERR_CLOSED;
            unlock(w);
        }
    }
}

void crew_come(crew *w, CommCoordinator *c, size_t count)
{
    if (w->config->each.ptr != NULL) {
        lock(w);
        w->collectors += count;
        unlock(w);
        top_up(w, c);
    }
}

void crew_go(crew *w)
{
    lock(w);
    w->collectors -= w->collectors > 0 ? 1 : 0;
    unlock(w);
}

void crew_resume(crew *w)
{
    lock(w);
    w->tasks++;
    unlock(w);
}

void crew_end(crew *w, CommCoordinator *c)
{
    lock(w);
    w->tasks -= w->tasks > 0 ? 1 : 0;
    unlock(w);
    top_up(w, c);
}
