/* Who is free and who is assigned. Pure bookkeeping: a list of free workers per role, in
 * the order in which they became free, and a map of all of them. */
#include "service/resource_manager.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/list.h"
#include "base/map.h"

#include <string.h>

enum { ROLES = 2 };

typedef struct worker {
    coordi_link link; /* among the free ones */
    char id[COORD_ID_SIZE];
    char *resource; /* owned */
    size_t resource_len;
    uint64_t given;
    bool assigned;
} worker;

typedef struct pool {
    coordi_map workers;
    coordi_link free_longest_first;
    size_t free_count;
    coord_candidate *candidates; /* owned; what a policy is shown */
    size_t candidates_cap;       /* at least as many as there are workers */
} pool;

struct coord_resource_manager {
    coord_resource_policy policy;
    uint64_t random_state;
    pool pools[ROLES];
};

const char *coord_role_str(coord_role role)
{
    return role == COORD_LEARNER ? "learner" : "collector";
}

/* ---- policies ---- */

static size_t choose_random(coord_role role, coord_text task,
                            const coord_candidate *candidates, size_t count,
                            uint64_t random, void *user)
{
    (void)role;
    (void)task;
    (void)candidates;
    (void)user;
    return (size_t)(random % count);
}

static size_t choose_least_loaded(coord_role role, coord_text task,
                                  const coord_candidate *candidates, size_t count,
                                  uint64_t random, void *user)
{
    (void)role;
    (void)task;
    (void)random;
    (void)user;
    size_t best = 0;
    for (size_t i = 1; i < count; i++) {
        if (candidates[i].given < candidates[best].given) {
            best = i;
        }
    }
    return best;
}

const coord_resource_policy *coord_resource_policy_find(const char *name)
{
    static const coord_resource_policy BUILT_IN[] = {
        {sizeof(coord_resource_policy), "random", choose_random, NULL},
        {sizeof(coord_resource_policy), "least_loaded", choose_least_loaded, NULL},
    };
    for (size_t i = 0; name != NULL && i < sizeof BUILT_IN / sizeof BUILT_IN[0]; i++) {
        if (strcmp(BUILT_IN[i].name, name) == 0) {
            return &BUILT_IN[i];
        }
    }
    return NULL;
}

/* splitmix64, https://prng.di.unimi.it/splitmix64.c: choices need no secrecy. */
static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15ULL;
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* ---- life ---- */

coord_status coord_resource_manager_create(const coord_resource_policy *policy,
                                           uint64_t seed, coord_resource_manager **ret,
                                           coord_error *err)
{
    if (ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "resource manager: ret is required");
    }
    if (policy == NULL) {
        policy = coord_resource_policy_find("random");
    }
    if (policy->size != sizeof *policy) {
        return coordi_fail(err, COORD_ERR_ABI,
                           "resource policy: size is %zu, expected %zu", policy->size,
                           sizeof *policy);
    }
    if (policy->choose == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "resource policy: choose is required");
    }
    coord_resource_manager *m = coordi_zalloc(sizeof *m);
    if (m == NULL) {
        return coordi_fail_nomem(err, "resource manager");
    }
    m->policy = *policy;
    m->random_state = seed;
    for (size_t i = 0; i < ROLES; i++) {
        coordi_list_init(&m->pools[i].free_longest_first);
    }
    *ret = m;
    return COORD_OK;
}

static void free_worker(worker *w)
{
    coordi_free(w->resource);
    coordi_free(w);
}

void coord_resource_manager_destroy(coord_resource_manager *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; i < ROLES; i++) {
        size_t at = 0;
        for (worker *w = coordi_map_next(&m->pools[i].workers, &at); w != NULL;
             w = coordi_map_next(&m->pools[i].workers, &at)) {
            free_worker(w);
        }
        coordi_map_done(&m->pools[i].workers);
        coordi_free(m->pools[i].candidates);
    }
    coordi_free(m);
}

/* ---- bookkeeping ---- */

static bool has_pool(const coord_resource_manager *m, coord_role role)
{
    return m != NULL && (unsigned)role < ROLES;
}

/* With room for one candidate more before there is one, assigning never needs memory. */
static bool reserve_candidate(pool *p)
{
    if (p->workers.count < p->candidates_cap) {
        return true;
    }
    size_t cap = p->candidates_cap == 0 ? 8 : 2 * p->candidates_cap;
    coord_candidate *grown = coordi_realloc(p->candidates, cap * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    p->candidates = grown;
    p->candidates_cap = cap;
    return true;
}

/* NULL: *status and *err say why. */
static worker *add_worker(pool *p, const char *id, coord_status *status, coord_error *err)
{
    size_t len = strlen(id);
    if (len == 0 || len >= COORD_ID_SIZE) {
        *status = coordi_fail(
            err, COORD_ERR_ARG,
            "resource manager: a worker's id has 1 to 255 bytes, got %zu", len);
        return NULL;
    }
    worker *w = reserve_candidate(p) ? coordi_zalloc(sizeof *w) : NULL;
    if (w == NULL || !coordi_map_put(&p->workers, id, w)) {
        coordi_free(w);
        *status = coordi_fail_nomem(err, "resource manager");
        return NULL;
    }
    memcpy(w->id, id, len);
    w->assigned = true; /* until it is put among the free */
    return w;
}

coord_status coord_resource_manager_update(coord_resource_manager *manager,
                                           coord_role role, const char *id,
                                           coord_text resource, coord_error *err)
{
    if (!has_pool(manager, role) || id == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "resource manager: manager, role and id are required");
    }
    pool *p = &manager->pools[role];
    char *copy = coordi_memdup(resource.ptr, resource.len);
    if (copy == NULL) {
        return coordi_fail_nomem(err, "resource manager");
    }
    coord_status rc = COORD_OK;
    worker *w = coordi_map_get(&p->workers, id);
    if (w == NULL) {
        w = add_worker(p, id, &rc, err);
    }
    if (w == NULL) {
        coordi_free(copy);
        return rc;
    }
    coordi_free(w->resource);
    w->resource = copy;
    w->resource_len = resource.len;
    if (w->assigned) {
        w->assigned = false;
        coordi_list_append(&p->free_longest_first, &w->link);
        p->free_count++;
    }
    return COORD_OK;
}

/* Out of the free ones. */
static void assign(pool *p, worker *w)
{
    coordi_list_remove(&w->link);
    p->free_count--;
    w->assigned = true;
    w->given++;
}

coord_status coord_resource_manager_take(coord_resource_manager *manager, coord_role role,
                                         const char *id, coord_text resource,
                                         coord_error *err)
{
    coord_status rc = coord_resource_manager_update(manager, role, id, resource, err);
    if (rc == COORD_OK) {
        pool *p = &manager->pools[role];
        assign(p, coordi_map_get(&p->workers, id));
    }
    return rc;
}

/* The chosen one, not `but` (NULL: nobody), or NULL. */
static worker *choose(coord_resource_manager *m, coord_role role, const char *but,
                      coord_text task)
{
    pool *p = &m->pools[role];
    coord_candidate *candidates = p->candidates;
    size_t count = 0;
    for (coordi_link *link = p->free_longest_first.next; link != &p->free_longest_first;
         link = link->next) {
        const worker *w = COORDI_ITEM(link, worker, link);
        if (but == NULL || strcmp(w->id, but) != 0) {
            candidates[count++] =
                (coord_candidate){w->id, {w->resource, w->resource_len}, w->given};
        }
    }
    if (count == 0) {
        return NULL;
    }
    size_t chosen = m->policy.choose(role, task, candidates, count,
                                     next_random(&m->random_state), m->policy.user);
    return chosen < count ? coordi_map_get(&p->workers, candidates[chosen].id) : NULL;
}

static worker *assign_but(coord_resource_manager *manager, coord_role role,
                          const char *but, coord_text task, const char **id)
{
    worker *w = choose(manager, role, but, task);
    if (w != NULL) {
        assign(&manager->pools[role], w);
        *id = w->id;
    }
    return w;
}

coord_status coordi_resource_manager_assign_but(coord_resource_manager *manager,
                                                coord_role role, const char *but,
                                                coord_text task, const char **id)
{
    return assign_but(manager, role, but, task, id) == NULL ? COORD_AGAIN : COORD_OK;
}

coord_status coord_resource_manager_assign(coord_resource_manager *manager,
                                           coord_role role, coord_text task,
                                           const char **id, coord_text *resource)
{
    if (!has_pool(manager, role) || id == NULL) {
        return COORD_ERR_ARG;
    }
    const worker *w = assign_but(manager, role, NULL, task, id);
    if (w == NULL) {
        return COORD_AGAIN;
    }
    if (resource != NULL) {
        *resource = (coord_text){w->resource, w->resource_len};
    }
    return COORD_OK;
}

bool coord_resource_manager_delete(coord_resource_manager *manager, coord_role role,
                                   const char *id)
{
    if (!has_pool(manager, role) || id == NULL) {
        return false;
    }
    pool *p = &manager->pools[role];
    worker *w = coordi_map_remove(&p->workers, id);
    if (w == NULL) {
        return false;
    }
    if (!w->assigned) {
        coordi_list_remove(&w->link);
        p->free_count--;
    }
    free_worker(w);
    return true;
}

bool coord_resource_manager_have_assigned(const coord_resource_manager *manager,
                                          coord_role role, const char *id)
{
    if (!has_pool(manager, role) || id == NULL) {
        return false;
    }
    const worker *w = coordi_map_get(&manager->pools[role].workers, id);
    return w != NULL && w->assigned;
}

void coord_resource_manager_count(const coord_resource_manager *manager, coord_role role,
                                  size_t *free_workers, size_t *assigned)
{
    bool known = has_pool(manager, role);
    const pool *p = known ? &manager->pools[role] : NULL;
    if (free_workers != NULL) {
        *free_workers = known ? p->free_count : 0;
    }
    if (assigned != NULL) {
        *assigned = known ? p->workers.count - p->free_count : 0;
    }
}
