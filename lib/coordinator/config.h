/* The configuration of a coordinator: JSON text in, a checked struct out.
 *
 * The tables in config.c, one for each object, hold every key with its type, range,
 * default and help line; the checks, and the page that coordi_config_help() prints, come
 * from them. */
#ifndef COORDI_COORDINATOR_CONFIG_H
#define COORDI_COORDINATOR_CONFIG_H

#include "base/address.h"
#include "coord/loop.h"
#include "coord/resource_manager.h"
#include "service/operator_order.h"

/* A worker that belongs here for as long as the configuration or the host says so. */
typedef struct coordi_config_worker {
    coord_role role;
    char id[COORD_ID_SIZE];
    char host[COORDI_HOST_SIZE];
    uint16_t port;
    bool by_host; /* has come since then: comm_coordinator_add_worker() */
} coordi_config_worker;

/* The server of DI-orchestrator that is followed. */
typedef struct coordi_config_operator {
    bool given;            /* else the rest means nothing */
    char system_addr[512]; /* "": the environment says it; coordi_operator_settings_read
                            * checks it */
    char api_version[32];  /* "": the environment, else auto */
    char name_space[COORD_ID_SIZE]; /* these three: "": the environment */
    char name[COORD_ID_SIZE];
    char job_id[2 * COORD_ID_SIZE];
    coordi_operator_order *order; /* init_replicas_request; owned; NULL: none */
    int64_t
        targets[2]; /* by role; default: what init_replicas_request asks for, else 0 */
    char *roles;    /* v2alpha1: by rank, 'c', 'l' or '-' each, the last one for all
                     * further ranks, too; owned; NULL: not given */
    int64_t poll_ms;
    int64_t grace_ms; /* a pod out of reach for so long is reported as failed */
    bool drains;      /* workers that are no longer listed; else they are dropped */
} coordi_config_operator;

/* Who tells which workers there are. */
typedef struct coordi_config_discovery {
    bool given;
    char **command; /* argv, NULL-terminated; owned, in one block; NULL: the callback
                     * deal_with_discovery is asked */
    int64_t interval_ms;
    int64_t timeout_ms;
    bool drains; /* workers that are no longer listed; else they are dropped */
} coordi_config_discovery;

typedef struct coordi_config {
    char host[COORDI_HOST_SIZE];
    char my_address[COORDI_HOST_SIZE]; /* "": the local address of the path */
    int64_t port;
    int64_t channel;
    bool insecure;

    coordi_config_worker *workers; /* owned */
    size_t worker_count;
    size_t role_count[2];   /* of them, by role */
    int64_t min_workers[2]; /* by role; -1: all that are known when start waits */

    coordi_config_operator operator_server;
    coordi_config_discovery discovery;

    coord_executor executor;
    int64_t executor_threads;
    char resource_manager[64];

    int64_t queue_timeout_ms; /* 0: none */
    int64_t max_queued_tasks;
    int64_t max_retry_ms;
    int64_t request_retries;
    int64_t request_retry_wait_ms;
    int64_t request_timeout_ms;
    int64_t heartbeat_tolerance_ms;
    int64_t heartbeat_check_ms;
    int64_t start_timeout_ms;
    int64_t task_timeout_ms[2]; /* by role; 0: none */
    int64_t close_timeout_ms;
    int64_t max_reassign;
    char ledger[1024]; /* "": none */
    char ledger_sync[16];
    int64_t ledger_keep;
    int64_t max_body_bytes;
    int64_t max_inflight_bytes;
} coordi_config;

/* Reads and checks everything, and keeps nothing of `json`. *ret is untouched on failure.
 */
coord_status coordi_config_read(coord_text json, coordi_config *ret, coord_error *err);
void coordi_config_done(coordi_config *config);

/* Adds a worker behind the others. COORD_ERR_EXISTS: its role has its id already. */
coord_status coordi_config_add_worker(coordi_config *config,
                                      const coordi_config_worker *worker,
                                      coord_error *err);

/* The others keep their order. False: it isn't there. */
bool coordi_config_remove_worker(coordi_config *config, coord_role role, const char *id);

/* One line a key, in one block a table: name, type, default, what it is for. Yours
 * (coordi_free); NULL: no memory. */
char *coordi_config_help(void);

#endif
