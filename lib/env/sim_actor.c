#include "env/sim.h"

#include "base/alloc.h"

/* What happens next. See sim.h for actors, the heap, the ready and the held.
 *
 * The order of the ready array follows from the order of what happened, and the draw from
 * the seed: so does everything. A loop's stillness is looked at when one of its actors is
 * drawn, not when the loop stops; that keeps pausing and waking simple. */

static bool is_queued(const coordi_sim_actor *actor)
{
    return actor->ready_slot != 0 || coordi_timer_is_set(&actor->wake);
}

static void take_from_ready(coord_sim *sim, coordi_sim_actor *actor)
{
    coordi_sim_actor *last = sim->ready[sim->ready_count - 1];
    sim->ready[actor->ready_slot - 1] = last;
    last->ready_slot = actor->ready_slot;
    actor->ready_slot = 0;
    sim->ready_count--;
}

bool coordi_sim_add(coord_sim *sim, coordi_sim_actor *actor,
                    void (*act)(coord_sim *sim, coordi_sim_actor *actor),
                    coordi_sim_loop *loop)
{
    if (sim->actor_count == sim->ready_cap) {
        size_t cap = sim->ready_cap == 0 ? 32 : sim->ready_cap * 2;
        coordi_sim_actor **ready = coordi_realloc(sim->ready, cap * sizeof *ready);
        if (ready == NULL) {
            return false;
        }
        sim->ready = ready;
        sim->ready_cap = cap;
    }
    sim->actor_count++;
    actor->act = act;
    actor->loop = loop;
    return true;
}

/* Takes one that was never added, too. */
void coordi_sim_drop(coord_sim *sim, coordi_sim_actor *actor)
{
    if (actor->act != NULL) {
        coordi_sim_calm(sim, actor);
        actor->act = NULL;
        sim->actor_count--;
    }
}

void coordi_sim_calm(coord_sim *sim, coordi_sim_actor *actor)
{
    if (actor->is_message && is_queued(actor)) {
        sim->under_way--;
    }
    if (actor->ready_slot != 0) {
        take_from_ready(sim, actor);
    }
    coordi_heap_cancel(&sim->heap, &actor->wake);
    coordi_list_remove(&actor->held);
}

void coordi_sim_at(coord_sim *sim, coordi_sim_actor *actor, int64_t at_ms)
{
    coordi_sim_calm(sim, actor);
    if (at_ms == INT64_MAX) {
        return; /* never: the clock must not go there */
    }
    coordi_heap_set(&sim->heap, &actor->wake, at_ms);
    sim->under_way += actor->is_message ? 1 : 0;
}

void coordi_sim_ready(coord_sim *sim, coordi_sim_actor *actor)
{
    if (actor->ready_slot != 0) {
        return;
    }
    coordi_sim_calm(sim, actor);
    sim->ready[sim->ready_count++] = actor;
    actor->ready_slot = sim->ready_count;
    sim->under_way += actor->is_message ? 1 : 0;
}

void coordi_sim_hold(coord_sim *sim, coordi_sim_actor *actor, coordi_sim_loop *loop)
{
    coordi_sim_calm(sim, actor);
    coordi_list_append(&loop->held, &actor->held);
}

void coordi_sim_thaw(coord_sim *sim, coordi_sim_loop *loop)
{
    coordi_link *link;
    while ((link = coordi_list_pop(&loop->held)) != NULL) {
        coordi_sim_ready(sim, COORDI_ITEM(link, coordi_sim_actor, held));
    }
}

/* Moves what is due from the heap to the ready. */
static void promote(coord_sim *sim)
{
    coordi_timer *first = coordi_heap_first(&sim->heap);
    while (first != NULL && first->at_ms <= sim->now_ms) {
        coordi_sim_ready(sim, COORDI_ITEM(first, coordi_sim_actor, wake));
        first = coordi_heap_first(&sim->heap);
    }
}

/* One that may act now, or NULL when none of the ready may. */
static coordi_sim_actor *draw_ready(coord_sim *sim)
{
    while (sim->ready_count > 0) {
        coordi_sim_actor *actor = sim->ready[coordi_sim_draw(sim, sim->ready_count)];
        coordi_sim_calm(sim, actor);
        if (actor->loop == NULL || !coordi_sim_stands_still(actor->loop)) {
            return actor;
        }
        coordi_sim_hold(sim, actor, actor->loop);
    }
    return NULL;
}

coordi_sim_actor *coordi_sim_pick(coord_sim *sim, int64_t limit_ms)
{
    for (;;) {
        promote(sim);
        coordi_sim_actor *actor = draw_ready(sim);
        if (actor != NULL) {
            return actor;
        }
        const coordi_timer *first = coordi_heap_first(&sim->heap);
        if (first == NULL || first->at_ms > limit_ms) {
            return NULL;
        }
        coordi_sim_jump(sim, first->at_ms);
    }
}
