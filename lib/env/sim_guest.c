#include "env/sim.h"

void coordi_sim_guest_add(coord_sim *sim, coordi_sim_guest *guest)
{
    (void)pthread_mutex_lock(&sim->lock);
    coordi_list_append(&sim->guests, &guest->link);
    (void)pthread_mutex_unlock(&sim->lock);
}

coordi_sim_guest *coordi_sim_guest_next(coord_sim *sim, const coordi_sim_guest *guest)
{
    (void)pthread_mutex_lock(&sim->lock);
    coordi_link *at = guest == NULL ? sim->guests.next : guest->link.next;
    bool is_end = at == &sim->guests;
    (void)pthread_mutex_unlock(&sim->lock);
    return is_end ? NULL : COORDI_ITEM(at, coordi_sim_guest, link);
}

void coordi_sim_guest_lock(coord_sim *sim)
{
    (void)pthread_mutex_lock(&sim->lock);
}

void coordi_sim_guest_unlock(coord_sim *sim)
{
    (void)pthread_mutex_unlock(&sim->lock);
}

bool coordi_sim_may_wait(coord_sim *sim)
{
    (void)pthread_mutex_lock(&sim->lock);
    bool may = coordi_sim_self(sim) != NULL || coordi_sim_may_drive(sim);
    (void)pthread_mutex_unlock(&sim->lock);
    return may;
}

void coordi_sim_note(coord_loop *base, const char *what, const char *detail)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    (void)pthread_mutex_lock(&loop->sim->lock);
    coordi_sim_tell(loop->sim, loop, "%s: %s", what, detail);
    coordi_sim_mix(loop->sim, detail, strlen(detail));
    (void)pthread_mutex_unlock(&loop->sim->lock);
}

/* Each one's objects go as if the host had destroyed them. */
void coordi_sim_guests_leave(coord_sim *sim)
{
    for (coordi_sim_guest *guest = coordi_sim_guest_next(sim, NULL); guest != NULL;
         guest = coordi_sim_guest_next(sim, guest)) {
        guest->leave(guest);
    }
}

void coordi_sim_guests_done(coord_sim *sim)
{
    coordi_link *link;
    while ((link = coordi_list_pop(&sim->guests)) != NULL) {
        coordi_sim_guest *guest = COORDI_ITEM(link, coordi_sim_guest, link);
        guest->release(guest);
    }
}
