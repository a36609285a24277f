#include "coordinator/history.h"

#include "base/alloc.h"
#include "base/line.h"

#include <stdio.h>
#include <string.h>

void coordi_error_words(const coord_error *why, char *out, size_t size)
{
    int len = snprintf(out, size, "%s%s%s", why->text, why->cause[0] == '\0' ? "" : ": ",
                       why->cause);
    if (len >= (int)size) {
        memcpy(out + size - 4, "...", 4);
    }
    coordi_line_clean(out);
}

/* ---- troubles of one task ---- */

const coordi_trouble *coordi_history_last(const coordi_history *history, uint64_t n)
{
    if (history == NULL || n >= history->count || n >= COORDI_TROUBLES_MAX) {
        return NULL;
    }
    return &history->ring[(history->count - 1 - n) % COORDI_TROUBLES_MAX];
}

/* The one that this is a repetition of, or a new one. */
static coordi_trouble *find_slot(coordi_history *history, const coordi_run *run,
                                 coordi_reason reason)
{
    coordi_trouble *last = NULL;
    if (history->count > 0) {
        last = &history->ring[(history->count - 1) % COORDI_TROUBLES_MAX];
    }
    if (last == NULL || last->reason != reason || last->attempt != run->attempt) {
        last = &history->ring[history->count++ % COORDI_TROUBLES_MAX];
        last->times = 0;
    }
    return last;
}

void coordi_history_note(coordi_run *run, const coord_error *why)
{
    coordi_reason reason = coordi_reason_of(why);
    if (run->history == NULL) {
        run->history = coordi_zalloc(sizeof *run->history);
    }
    if (run->history == NULL) {
        return;
    }
    coordi_trouble *trouble = find_slot(run->history, run, reason);
    trouble->reason = reason;
    trouble->attempt = run->attempt;
    trouble->times++;
    trouble->at_ms = coordi_now(run->c->loop);
    coordi_error_words(why, trouble->seen, sizeof trouble->seen);
}

/* ---- tasks that failed ---- */

static void free_past(coordi_past *past)
{
    coordi_free(past->history);
    coordi_free(past->id);
    coordi_free(past);
}

void coordi_past_forget(CommCoordinator *c, const char *task_id)
{
    coordi_past *past = coordi_map_remove(&c->past, task_id);
    if (past != NULL) {
        coordi_list_remove(&past->link);
        free_past(past);
    }
}

void coordi_past_done(CommCoordinator *c)
{
    for (coordi_link *link = coordi_list_pop(&c->past_oldest_first); link != NULL;
         link = coordi_list_pop(&c->past_oldest_first)) {
        free_past(COORDI_ITEM(link, coordi_past, link));
    }
    coordi_map_done(&c->past);
}

void coordi_past_keep(coordi_run *run)
{
    CommCoordinator *c = run->c;
    coordi_past_forget(c, run->id);
    if (c->past.count == COORDI_PAST_MAX) {
        coordi_past *oldest = COORDI_ITEM(c->past_oldest_first.next, coordi_past, link);
        coordi_past_forget(c, oldest->id);
    }
    coordi_past *past = coordi_zalloc(sizeof *past);
    if (past == NULL) {
        return;
    }
    past->id = coordi_strdup(run->id);
    if (past->id == NULL || !coordi_map_put(&c->past, run->id, past)) {
        free_past(past);
        return;
    }
    past->role = run->kind->role;
    past->attempt = run->attempt;
    memcpy(past->worker_id, run->worker_id, sizeof past->worker_id);
    past->ended_ms = coordi_now(c->loop);
    past->why = run->why;
    past->history = run->history;
    run->history = NULL;
    coordi_list_append(&c->past_oldest_first, &past->link);
}
