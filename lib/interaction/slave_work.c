/* A slave's tasks: one at a time, on the work lane. */
#include "base/alloc.h"
#include "base/error.h"
#include "interaction/slave.h"

#include <string.h>

static void free_work(coordi_work *work)
{
    coordi_master_link_unref(work->link);
    coordi_out_done(&work->out);
    coordi_free(work->data);
    coordi_free(work);
}

/* On the loop again: the slave is free before the result goes, as the reference's is, so
 * that the master's next task finds it free. */
static void finish_work(coordi_job *job)
{
    coordi_work *work = COORDI_ITEM(job, coordi_work, job);
    coord_slave *s = work->slave;

    s->work = NULL;
    if (work->link == s->link && s->link != NULL) {
        coordi_slave_deliver(s, work);
    } else {
        COORDI_LOG(&s->log, COORD_LOG_INFO,
                   "dropped result task=%s why=\"its master is "
                   "gone\"",
                   work->id);
    }
    free_work(work);
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
    memcpy(s->recent[s->recent_next], id, sizeof s->recent[0]);
    s->recent_next = (s->recent_next + 1) % COORDI_RECENT;
    s->work = work;
    atomic_store(&s->canceled, false);
    COORDI_LOG(&s->log, COORD_LOG_DEBUG, "task=%s bytes=%zu", id, data.len);
    coordi_lane_run(s->work_lane, &work->job);
    return COORD_OK;
}
