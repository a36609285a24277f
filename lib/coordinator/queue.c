/* Runs that wait for a worker, and what becomes of those that nobody is left for. */
#include "coordinator/membership.h"
#include "service/resource_manager.h"

#include <string.h>

enum { SHUNNED_AFTER = 2 };

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
        coordi_coordinator_pump(c, role); /* the last that is left is shunned no more */
    } else if (c->phase != COORDI_PHASE_RUNNING) {
        return;
    } else if (!coordi_membership_may_grow(c)) {
        fail_stranded(queue);
    } else if (!coordi_timer_is_set(&queue->patience)) {
        coordi_timer_in(c->loop, &queue->patience, c->config.max_retry_ms);
    }
}

const coordi_member *coordi_run_shuns(const coordi_run *run)
{
    const CommCoordinator *c = run->c;
    const coord_role role = run->kind->role;
    if (run->in_a_row < SHUNNED_AFTER) {
        return NULL;
    }
    const coordi_member *m = coordi_map_get(&c->members[role], run->worker_id);
    const bool is_ready = m != NULL && coordi_member_is_ready(m);
    return is_ready && c->ready[role] > 1 ? m : NULL;
}

static bool give(CommCoordinator *c, coordi_run *run, const coordi_member *but)
{
    const coord_role role = run->kind->role;
    const char *id;
    if (coordi_resource_manager_assign_but(
            c->resources, role, but == NULL ? NULL : but->worker.id,
            (coord_text){run->task, run->task_len}, &id) != COORD_OK) {
        return false;
    }
    coordi_member *m = coordi_map_get(&c->members[role], id);
    coordi_member_set_state(m, COORDI_MEMBER_WORKING);
    m->run = run;
    run->member = m;
    if (strcmp(run->worker_id, m->worker.id) != 0) {
        run->in_a_row = 0;
    }
    memcpy(run->worker_id, m->worker.id, sizeof run->worker_id);
    coordi_run_dispatch(run, COORDI_EVENT_ASSIGNED);
    return true;
}

/* What one run shuns may be good for those behind it. */
void coordi_coordinator_pump(CommCoordinator *c, coord_role role)
{
    coordi_link *waiting = &c->queues[role].runs;
    coordi_link *at = waiting->next;
    while (c->phase == COORDI_PHASE_RUNNING && at != waiting) {
        coordi_run *run = COORDI_ITEM(at, coordi_run, queue);
        const coordi_member *but = coordi_run_shuns(run);
        if (give(c, run, but)) {
            at = waiting->next;
        } else if (but != NULL) {
            at = at->next;
        } else {
            return;
        }
    }
}
