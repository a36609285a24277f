#include "history.h"
#include "clock.h"
#include "paths.h"
#include "report.h"

#include <stdio.h>
#include <stdlib.h>

enum { DIGITS = 6 };

struct history {
    FILE *file;
    int64_t begin_ms;
    char path[PATH_SIZE];
};

coord_status history_open(const char *folder, history **ret, coord_error *err)
{
    history *h = calloc(1, sizeof *h);
    if (h == NULL) {
        return report(err, COORD_ERR_NOMEM, "history: out of memory");
    }
    coord_status rc = path_make(h->path, err, "%s/history.jsonl", folder);
    if (rc == COORD_OK) {
        h->file = fopen(h->path, "we");
        if (h->file == NULL) {
            rc = report_errno(err, "create", h->path);
        }
    }
    if (rc != COORD_OK) {
        history_close(h);
        return rc;
    }
    h->begin_ms = clock_ms();
    *ret = h;
    return COORD_OK;
}

void history_close(history *h)
{
    if (h == NULL) {
        return;
    }
    if (h->file != NULL) {
        (void)fclose(h->file); /* all lines have been flushed */
    }
    free(h);
}

coord_status history_add(history *h, const char *event, const json_t *info,
                         coord_error *err)
{
    char *text = NULL;
    coord_status rc = COORD_OK;
    json_t *line = json_pack("{s:s, s:f}", "event", event, "time_s",
                             (double)(clock_ms() - h->begin_ms) / 1000);
    /* json_object_update() shares the values, which nobody changes. */
    if (line != NULL && json_object_update(line, (json_t *)info) == 0) {
        text = json_dumps(line, JSON_REAL_PRECISION(DIGITS));
    }
    json_decref(line);
    if (text == NULL) {
        rc = report(err, COORD_ERR_NOMEM, "history: out of memory");
    } else if (fprintf(h->file, "%s\n", text) < 0 || fflush(h->file) != 0) {
        rc = report_errno(err, "write", h->path);
    }
    free(text);
    return rc;
}
