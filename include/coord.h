/**
 * @file coord.h
 * All of libcoord but coord/json.h, which needs jansson.
 */
#ifndef COORD_H
#define COORD_H

#include "coord/api.h"
#include "coord/callbacks.h"
#include "coord/comm_coordinator.h"
#include "coord/connection.h"
#include "coord/error.h"
#include "coord/inspect.h"
#include "coord/launcher.h"
#include "coord/log.h"
#include "coord/loop.h"
#include "coord/master.h"
#include "coord/membership.h"
#include "coord/operator_server.h"
#include "coord/out.h"
#include "coord/resource_manager.h"
#include "coord/safetensors.h"
#include "coord/slave.h"
#include "coord/task.h"
#include "coord/testing.h"
#include "coord/testing_program.h"
#include "coord/testing_worker.h"
#include "coord/worker.h"

#endif
