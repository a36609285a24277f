#ifndef CARTPOLE_TEAM_H
#define CARTPOLE_TEAM_H

#include "coord.h"

#include <stddef.h>

/* The worker processes of a run: "learner0", and "collector0" and so on. Their programs
 * stand beside ours. They end with us, however we end. */
typedef struct team team;

/* What happens to it. Called on threads of the launcher. */
typedef struct team_events {
    /* All are listening: team_config() can be called. */
    void (*on_ready)(void *user);
    /* One has ended that was not told to; `how` in words. */
    void (*on_end)(coord_role role, const char *name, const char *how, void *user);
    void *user;
} team_events;

/* Starts them. */
coord_status team_start(size_t collectors, const team_events *events, team **ret,
                        coord_error *err);

/* Where they listen, as configuration for a coordinator. Free it with coord_free(). */
coord_status team_config(team *t, char **ret, coord_error *err);

/* Ends all; soon, whatever they do. No event comes later. */
coord_status team_close(team *t, coord_error *err);

/* Once closed. Takes NULL. */
void team_destroy(team *t);

#endif
