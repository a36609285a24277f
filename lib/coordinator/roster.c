#include "coordinator/roster.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

typedef struct entry {
    coordi_config_worker worker;
    uint64_t round;  /* of the last list that had it */
    unsigned missed; /* complete lists since then */
    bool taken;      /* became a member once, or is one of another origin */
} entry;

void coordi_roster_init(coordi_roster *roster, CommCoordinator *c, coordi_origin origin,
                        bool drains, unsigned misses)
{
    *roster =
        (coordi_roster){.c = c, .origin = origin, .drains = drains, .misses = misses};
    c->rosters[origin == COORDI_ORIGIN_DISCOVERY] = roster;
}

void coordi_roster_done(coordi_roster *roster)
{
    roster->c->rosters[roster->origin == COORDI_ORIGIN_DISCOVERY] = NULL;
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (entry *e = coordi_map_next(&roster->entries[role], &at); e != NULL;
             e = coordi_map_next(&roster->entries[role], &at)) {
            coordi_free(e);
        }
        coordi_map_done(&roster->entries[role]);
    }
}

void coordi_roster_begin(coordi_roster *roster)
{
    roster->round++;
    memset(roster->listed, 0, sizeof roster->listed);
}

/* ---- who is listed ---- */

static coordi_member *find_own(const coordi_roster *roster, const entry *e)
{
    coordi_member *m = coordi_membership_find(roster->c, e->worker.role, e->worker.id);
    return m != NULL && m->origin == roster->origin ? m : NULL;
}

static coord_status take(coordi_roster *roster, entry *e, coord_error *err)
{
    CommCoordinator *c = roster->c;
    coord_status rc = coordi_membership_add(c, &e->worker, roster->origin, err);
    if (rc == COORD_ERR_EXISTS) {
        COORDI_LOG(&c->log, COORD_LOG_WARN,
                   "worker listed twice worker=%s role=%s by=%s why=\"%s\"", e->worker.id,
                   coord_role_str(e->worker.role), coordi_origin_str(roster->origin),
                   err->text);
        rc = COORD_OK; /* the other one counts */
    }
    e->taken = rc == COORD_OK;
    return rc;
}

/* The same id at another address is another worker. */
static void replace_address(coordi_roster *roster, entry *e,
                            const coordi_config_worker *worker)
{
    coordi_member *m = find_own(roster, e);
    if (m != NULL) {
        coord_error why;
        (void)coordi_fail(
            &why, COORD_ERR_LOST, "%s: '%.60s' is at %.60s:%u now, was at %.60s:%u",
            coordi_origin_str(roster->origin), worker->id, worker->host,
            (unsigned)worker->port, e->worker.host, (unsigned)e->worker.port);
        coordi_membership_remove(m, true, &why);
    }
    e->worker = *worker;
    e->taken = false;
}

static entry *make_entry(coordi_roster *roster, const coordi_config_worker *worker)
{
    entry *e = coordi_zalloc(sizeof *e);
    if (e == NULL || !coordi_map_put(&roster->entries[worker->role], worker->id, e)) {
        coordi_free(e);
        return NULL;
    }
    e->worker = *worker;
    return e;
}

coord_status coordi_roster_list(coordi_roster *roster, const coordi_config_worker *worker,
                                coord_error *err)
{
    coord_error why;
    entry *e = coordi_map_get(&roster->entries[worker->role], worker->id);
    if (e == NULL) {
        e = make_entry(roster, worker);
        if (e == NULL) {
            return coordi_fail_nomem(err, "worker");
        }
    } else if (e->round == roster->round) {
        return COORD_OK; /* listed twice */
    } else if (strcmp(e->worker.host, worker->host) != 0 ||
               e->worker.port != worker->port) {
        replace_address(roster, e, worker);
    }
    e->round = roster->round;
    e->missed = 0;
    roster->listed[worker->role]++;
    coord_status rc = e->taken ? COORD_OK : take(roster, e, &why);
    return rc == COORD_OK ? rc : coordi_fail_copy(err, &why);
}

bool coordi_roster_lists(const coordi_roster *roster, coord_role role, const char *id)
{
    const entry *e = coordi_map_get(&roster->entries[role], id);
    return e != NULL && e->round == roster->round;
}

/* ---- who is not ---- */

/* If another source lists it too, it belongs here again with that one's next list. */
static void leave_to_others(const coordi_roster *roster, const entry *e)
{
    const CommCoordinator *c = roster->c;
    for (int i = 0; i < COORDI_SOURCES; i++) {
        if (c->rosters[i] != NULL && c->rosters[i] != roster) {
            entry *other =
                coordi_map_get(&c->rosters[i]->entries[e->worker.role], e->worker.id);
            if (other != NULL) {
                other->taken = false;
            }
        }
    }
}

static void let_go(coordi_roster *roster, entry *e)
{
    coordi_member *m = find_own(roster, e);
    if (m != NULL) {
        coord_error why;
        (void)coordi_fail(&why, COORD_ERR_LOST, "the %s no longer lists '%.100s'",
                          coordi_origin_str(roster->origin), e->worker.id);
        coordi_membership_remove(m, !roster->drains, &why);
        leave_to_others(roster, e);
    }
    (void)coordi_map_remove(&roster->entries[e->worker.role], e->worker.id);
    coordi_free(e);
}

void coordi_roster_end(coordi_roster *roster, bool complete)
{
    for (int role = 0; complete && role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (entry *e = coordi_map_next(&roster->entries[role], &at); e != NULL;
             e = coordi_map_next(&roster->entries[role], &at)) {
            if (e->round != roster->round && ++e->missed >= roster->misses) {
                let_go(roster, e);
            }
        }
    }
    if (complete && !roster->settled) {
        roster->settled = true;
        coordi_membership_settle(roster->c);
    }
}
