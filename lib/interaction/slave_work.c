/* A slave's tasks: one at a time, on the work lane. */
#include "base/alloc.h"
#include "base/error.h"
#include "interaction/slave.h"

#include <stdio.h>
#include <string.h>

/* ---- outcomes ---- */

static void free_work(coordi_work *work)
{
    if (work->link != NULL) {
        coordi_master_link_unref(work->link);
    }
    coordi_out_done(&work->out);
    coordi_free(work->data);
    coordi_free(work);
}

void coordi_slave_forget_last(coord_slave *s)
{
    if (s->last != NULL) {
        free_work(s->last);
        s->last = NULL;
    }
}

/* Its outcome is kept until the next one is taken, if its master may ask again. */
static void keep_or_free(coord_slave *s, coordi_work *work)
{
    if (!work->link->marked || s->closing) {
        free_work(work);
        return;
    }
    coordi_master_link_unref(work->link);
    coordi_free(work->data);
    work->link = NULL;
    work->data = NULL;
    s->last = work;
}

/* ---- the tasks that were taken ---- */

static coordi_known *find_recent(coord_slave *s, const char *id)
{
    for (size_t i = 0; i < COORDI_RECENT; i++) {
        if (strcmp(s->recent[i].id, id) == 0) {
            return &s->recent[i];
        }
    }
    return NULL;
}

static coordi_known *remember(coord_slave *s, const char *id)
{
    coordi_known *known = &s->recent[s->recent_next];
    s->recent_next = (s->recent_next + 1) % COORDI_RECENT;
    memcpy(known->id, id, sizeof known->id);
    known->canceled = false;
    return known;
}

/* What is cut off may be done anew. */
static void forget(coord_slave *s, const char *id)
{
    coordi_known *known = find_recent(s, id);
    if (known != NULL) {
        known->id[0] = '\0';
    }
}

coordi_say coordi_slave_repeat(coord_slave *s, const char *id, char *why, size_t why_size)
{
    coord_error err;
    const coordi_known *known = find_recent(s, id);
    if (known == NULL) {
        return COORDI_SAY_NOTHING;
    }
    if (known->canceled) {
        (void)snprintf(why, why_size, "Task %s was canceled.", id);
        return COORDI_SAY_TASK_REFUSED;
    }
    if (s->work != NULL && strcmp(s->work->id, id) == 0) {
        return s->work->link == s->link ? COORDI_SAY_TASK_RECEIVED : COORDI_SAY_BUSY;
    }
    if (coordi_slave_is_delivering(s, id)) {
        return COORDI_SAY_TASK_RECEIVED;
    }
    if (s->last == NULL || strcmp(s->last->id, id) != 0) {
        (void)snprintf(why, why_size,
                       "Task %s was done before, and its result is not kept any more.",
                       id);
        return COORDI_SAY_TASK_REFUSED;
    }
    if (coordi_slave_deliver(s, s->last, &err) != COORD_OK) {
        (void)snprintf(why, why_size, "%s", err.text);
        return COORDI_SAY_BAD_TASK;
    }
    return COORDI_SAY_TASK_RECEIVED;
}

void coordi_slave_cancel(coord_slave *s, const char *id)
{
    coordi_work *work = s->work;
    coordi_known *known = find_recent(s, id);
    if (work != NULL && work->link == s->link && strcmp(work->id, id) == 0) {
        COORDI_LOG(&s->log, COORD_LOG_INFO, "canceled task=%s", id);
        work->canceled = true;
        atomic_store(&s->canceled, true);
        known = known == NULL ? remember(s, id) : known;
        known->canceled = true;
    } else if (known == NULL) {
        remember(s, id)->canceled = true;
    }
}

/* ---- work ---- */

/* On the loop again: the slave is free before the result goes, as the reference's is, so
 * that the master's next task finds it free. */
static void finish_work(coordi_job *job)
{
    coordi_work *work = COORDI_ITEM(job, coordi_work, job);
    coord_slave *s = work->slave;
    coord_error err;

    s->work = NULL;
    if (work->link != s->link) {
        COORDI_LOG(&s->log, COORD_LOG_INFO,
                   "dropped result task=%s why=\"its master is gone\"", work->id);
        forget(s, work->id);
        free_work(work);
    } else if (work->canceled) {
        free_work(work);
    } else if (coordi_slave_deliver(s, work, &err) == COORD_OK) {
        keep_or_free(s, work);
    } else {
        coordi_slave_unlink(s, &err); /* it would be waited for in vain */
        keep_or_free(s, work);
    }
    coordi_slave_check_closed(s);
    coordi_slave_unref(s);
}

/* On the work lane. */
static void do_work(coordi_job *job)
{
    coordi_work *work = COORDI_ITEM(job, coordi_work, job);
    coord_slave *s = work->slave;
    coordi_frame frame;

    coordi_frame_enter(&frame, s);
    work->status = s->options.process_task(s, (coord_text){work->data, work->data_len},
                                           &work->out, s->process_user);
    coordi_frame_leave(&frame);
    work->job.run = finish_work;
    coordi_post(s->loop, &work->job);
}

coord_status coordi_slave_take_work(coord_slave *s, const char *id, coord_text data)
{
    coordi_work *work = coordi_zalloc(sizeof *work);
    char *copy = coordi_memdup(data.ptr, data.len);
    if (work == NULL || copy == NULL) {
        coordi_free(work);
        coordi_free(copy);
        return COORD_ERR_NOMEM;
    }
    work->job.run = do_work;
    work->slave = coordi_slave_ref(s);
    work->link = s->link;
    work->link->refs++;
    work->data = copy;
    work->data_len = data.len;
    memcpy(work->id, id, sizeof work->id);
    coordi_slave_forget_last(s);
    (void)remember(s, id);
    s->work = work;
    atomic_store(&s->canceled, false);
    COORDI_LOG(&s->log, COORD_LOG_DEBUG, "task=%s bytes=%zu", id, data.len);
    coordi_lane_run(s->work_lane, &work->job);
    return COORD_OK;
}
