/**
 * @file resource_manager.h
 * Who is free, and who gets the next task. The coordinator has one inside; hosts can plug
 * a policy of their own into it, or use one by itself.
 */
#ifndef COORD_RESOURCE_MANAGER_H
#define COORD_RESOURCE_MANAGER_H

#include "coord/api.h"
#include "coord/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_resource_manager coord_resource_manager;

/** The two kinds of worker; tasks of one never go to the other. */
typedef enum coord_role { COORD_COLLECTOR = 0, COORD_LEARNER = 1 } coord_role;

/** "collector" or "learner". @thread any */
COORD_API const char *coord_role_str(coord_role role);

/** A free worker, as a policy sees it. All of it is borrowed until choose returns. */
typedef struct coord_candidate {
    const char *id;
    coord_text resource; /**< what the worker said it has: JSON, as it sent it */
    uint64_t given;      /**< tasks given to it so far */
} coord_candidate;

/** What choose answers when the task fits none of them, for now. */
#define COORD_CHOOSE_NONE SIZE_MAX

/** How a worker is chosen. Fields are only ever appended. */
typedef struct coord_resource_policy {
    size_t size; /**< sizeof(coord_resource_policy) */
    const char *name;
    /**
     * Index of the candidate that gets the task, or COORD_CHOOSE_NONE to let it wait.
     * `count` is at least 1; `random` is a fresh random number. Runs on the loop thread:
     * it must not block and not call libcoord.
     */
    size_t (*choose)(coord_role role, coord_text task, const coord_candidate *candidates,
                     size_t count, uint64_t random, void *user);
    void *user; /**< passed to choose */
} coord_resource_policy;

/**
 * A built-in policy: "random" (any free worker, as DI-engine's) or "least_loaded" (the
 * one that was given the fewest tasks; of equals the one that is free longest). NULL for
 * another name. Lives for ever. @thread any
 */
COORD_API const coord_resource_policy *coord_resource_policy_find(const char *name);

/**
 * @param policy    Optional: "random". The struct is copied.
 * @param seed      Start of the random numbers that choose gets.
 * @param[out] ret  Yours: free with coord_resource_manager_destroy().
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status
coord_resource_manager_create(const coord_resource_policy *policy, uint64_t seed,
                              coord_resource_manager **ret, coord_error *err);

/** Takes NULL. @thread one */
COORD_API void coord_resource_manager_destroy(coord_resource_manager *manager);

/**
 * The worker is free and has `resource` (JSON, copied; may be empty): a new worker, or
 * one that comes back from its task.
 *
 * @thread one
 */
COORD_API COORD_MUST_USE coord_status
coord_resource_manager_update(coord_resource_manager *manager, coord_role role,
                              const char *id, coord_text resource, coord_error *err);

/**
 * Takes a free worker for a task.
 *
 * @param[out] id        Borrowed until the worker is deleted.
 * @param[out] resource  Optional; borrowed until the worker is updated or deleted.
 * @retval COORD_AGAIN   None is free, or the policy lets the task wait; nothing written.
 *                       Needs no memory, so that nothing else can be in the way.
 * @thread one
 */
COORD_API COORD_MUST_USE coord_status
coord_resource_manager_assign(coord_resource_manager *manager, coord_role role,
                              coord_text task, const char **id, coord_text *resource);

/**
 * The worker is there, has `resource` (JSON, copied), and works already: it is known as
 * assigned.
 *
 * @thread one
 */
COORD_API COORD_MUST_USE coord_status
coord_resource_manager_take(coord_resource_manager *manager, coord_role role,
                            const char *id, coord_text resource, coord_error *err);

/** Forgets a worker, free or assigned; false if it is unknown. @thread one */
COORD_API bool coord_resource_manager_delete(coord_resource_manager *manager,
                                             coord_role role, const char *id);

/** Is the worker known and assigned to a task? @thread one */
COORD_API bool coord_resource_manager_have_assigned(const coord_resource_manager *manager,
                                                    coord_role role, const char *id);

/** Number of free and of assigned workers of a role; both optional. @thread one */
COORD_API void coord_resource_manager_count(const coord_resource_manager *manager,
                                            coord_role role, size_t *free_workers,
                                            size_t *assigned);

#ifdef __cplusplus
}
#endif
#endif
