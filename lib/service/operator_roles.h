/* Who is what among the nodes of a job, which v2alpha1 lists by rank alone. Pure. */
#ifndef COORDI_SERVICE_OPERATOR_ROLES_H
#define COORDI_SERVICE_OPERATOR_ROLES_H

#include "coord/api.h"
#include "coord/resource_manager.h"

enum { COORDI_OPERATOR_NO_ROLE = -1 };

typedef struct coordi_operator_roles {
    int64_t own_rank;  /* of the node that asks; -1: it is none of the job's */
    const char *given; /* by rank 'c', 'l' or '-', the last for all further ones; NULL */
    const char *nodes; /* names by rank, as in DI_NODES; NULL */
    const char *job;   /* "namespace.name", to which the names belong */
    int64_t learners;  /* so many of the first are, where nothing else tells */
} coordi_operator_roles;

/* A coord_role, or COORDI_OPERATOR_NO_ROLE: it is no worker. The node that asks is none.
 * Others are what `given` says; else what their names say, "<job>-<task>-<i>.<subdomain>"
 * with a task that begins with "collector" or "learner"; ranks without a name, for those
 * come later than the names, are learners first and then collectors. */
int coordi_operator_role_of(const coordi_operator_roles *roles, int64_t rank);

/* A rank as DI_RANK has it; NULL and "" are none, -1. False: it is no number. */
bool coordi_operator_rank_read(const char *text, int64_t *ret);

#endif
