/* The configuration of a coordinator: JSON text in, a checked struct out.
 *
 * One table in config.c holds every key with its type, range, default and help line; the
 * checks, and the page that coordi_config_help() prints, come from it. */
#ifndef COORDI_COORDINATOR_CONFIG_H
#define COORDI_COORDINATOR_CONFIG_H

#include "base/address.h"
#include "coord/loop.h"
#include "coord/resource_manager.h"

/* A worker that belongs here for as long as the configuration or the host says so. */
typedef struct coordi_config_worker {
    coord_role role;
    char id[COORD_ID_SIZE];
    char host[COORDI_HOST_SIZE];
    uint16_t port;
    bool by_host; /* has come since then: comm_coordinator_add_worker() */
} coordi_config_worker;

typedef struct coordi_config {
    char host[COORDI_HOST_SIZE];
    char my_address[COORDI_HOST_SIZE]; /* "": the local address of the path */
    int64_t port;
    int64_t channel;
    bool insecure;

    coordi_config_worker *workers; /* owned */
    size_t worker_count;
    int64_t min_workers[2]; /* by role; default: all that are configured */

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
    struct {
        bool given;
    } operator_server;
    struct {
        bool given;
    } discovery;
} coordi_config;
coord_status coordi_config_add_worker(coordi_config *config,
                                      const coordi_config_worker *worker,
                                      coord_error *err);
bool coordi_config_remove_worker(coordi_config *config, coord_role role, const char *id);

/* Reads and checks everything. *ret is untouched on failure. */
coord_status coordi_config_read(coord_text json, coordi_config *ret, coord_error *err);
void coordi_config_done(coordi_config *config);

/* One line a key: name, type, default, what it is for. Yours (coordi_free); NULL: no
 * memory. */
char *coordi_config_help(void);

#endif
