/* What the coordinator asks of coord/resource_manager.h beside what everybody may. */
#ifndef COORDI_SERVICE_RESOURCE_MANAGER_H
#define COORDI_SERVICE_RESOURCE_MANAGER_H

#include "coord/resource_manager.h"

/* As coord_resource_manager_assign(), but to any other than this worker; NULL: to any. */
coord_status coordi_resource_manager_assign_but(coord_resource_manager *manager,
                                                coord_role role, const char *but,
                                                coord_text task, const char **id);

#endif
