/* Runs that wait for a worker, and what becomes of those that nobody is left for. */
#include "coordinator/membership.h"

#include <string.h>

/* Those that were moved, and so have waited for a worker before. */
static void fail_stranded(coordi_queue *queue)
{
    coordi_link *link = queue->runs.next;
    while (link != &queue->runs) {
        coordi_run *run = COORDI_ITEM(link, coordi_run, queue);
        link = link->next;
        if (run->losses > 0) {
            coord_error why = run->moved_why;
            coordi_run_stop(run, COORDI_EVENT_LOST, &why);
        }
    }
}

static void on_patience_ends(coordi_timer *timer)
{
    fail_stranded(COORDI_ITEM(timer, coordi_queue, patience));
}

void coordi_queue_init(coordi_queue *queue)
{
    coordi_list_init(&queue->runs);
    queue->patience.fire = on_patience_ends;
}

void coordi_coordinator_check_stranded(CommCoordinator *c, coord_role role)
{
    coordi_queue *queue = &c->queues[role];
    if (coordi_list_empty(&queue->runs) || c->ready[role] > 0) {
        coordi_timer_stop(c->loop, &queue->patience);
    } else if (c->phase != COORDI_PHASE_RUNNING) {
        return;
    } else if (!coordi_membership_may_grow(c)) {
        fail_stranded(queue);
    } else if (!coordi_timer_is_set(&queue->patience)) {
        coordi_timer_in(c->loop, &queue->patience, c->config.max_retry_ms);
    }
}

void coordi_coordinator_pump(CommCoordinator *c, coord_role role)
{
    coordi_link *waiting = &c->queues[role].runs;
    while (c->phase == COORDI_PHASE_RUNNING && !coordi_list_empty(waiting)) {
        coordi_run *run = COORDI_ITEM(waiting->next, coordi_run, queue);
        const char *id;
        if (coord_resource_manager_assign(c->resources, role,
                                          (coord_text){run->task, run->task_len}, &id,
                                          NULL) != COORD_OK) {
            return;
        }
        coordi_member *m = coordi_map_get(&c->members[role], id);
        coordi_member_set_state(m, COORDI_MEMBER_WORKING);
        m->run = run;
        run->member = m;
        memcpy(run->worker_id, m->worker.id, sizeof run->worker_id);
        coordi_run_dispatch(run, COORDI_EVENT_ASSIGNED);
    }
}
