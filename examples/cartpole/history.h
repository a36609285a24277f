#ifndef CARTPOLE_HISTORY_H
#define CARTPOLE_HISTORY_H

#include "coord.h"

#include "coord/json.h"

/* history.jsonl: a JSON object on each line, `event` being "update" or "evaluation". */
typedef struct history history;

/* The times in it count from now on. */
coord_status history_open(const char *folder, history **ret, coord_error *err);

/* Takes NULL. */
void history_close(history *h);

/* Writes a copy of `info` as a line, with the event and the time added. Whole lines, at
 * once: the file can be followed. One thread at a time. */
coord_status history_add(history *h, const char *event, const json_t *info,
                         coord_error *err);

#endif
