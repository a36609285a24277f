/* The host's own changes of the membership. What it has added belongs here until it says
 * otherwise, also when the coordinator is started again after a start that failed. */
#include "base/error.h"
#include "base/line.h"
#include "coord/membership.h"
#include "coordinator/call.h"
#include "coordinator/membership.h"

#include <string.h>

typedef struct change_op {
    coordi_op op;
    coordi_config_worker worker; /* to remove one: role and id */
    bool drop;
} change_op;

static coord_status check_open(const CommCoordinator *c, const char *what,
                               coord_error *err)
{
    bool open = c->phase <= COORDI_PHASE_RUNNING;
    return open ? COORD_OK
                : coordi_fail(err, COORD_ERR_CLOSED, "%s: the coordinator is closed",
                              what);
}

static coord_status check_who(const char *what, coord_role role, const char *id,
                              coordi_config_worker *ret, coord_error *err)
{
    size_t len = id == NULL ? 0 : strlen(id);
    if (role != COORD_COLLECTOR && role != COORD_LEARNER) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "%s: role must be COORD_COLLECTOR or COORD_LEARNER, got %d",
                           what, (int)role);
    }
    if (len == 0 || len >= sizeof ret->id) {
        return coordi_fail(err, COORD_ERR_ARG, "%s: id must have 1 to %zu bytes, has %zu",
                           what, sizeof ret->id - 1, len);
    }
    if (!coordi_line_is_utf8(id)) { /* it could not stand in JSON */
        return coordi_fail(err, COORD_ERR_ARG, "%s: id must be UTF-8, got \"%.100s\"",
                           what, id);
    }
    ret->role = role;
    memcpy(ret->id, id, len + 1);
    return COORD_OK;
}

static coord_status check_where(const char *what, const char *host, uint16_t port,
                                coordi_config_worker *ret, coord_error *err)
{
    if (host == NULL || strlen(host) >= sizeof ret->host ||
        !coordi_address_is_host(host) || !coordi_line_is_utf8(host)) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "%s: host must be a name or address, without port and "
                           "brackets, got \"%.100s\"",
                           what, host == NULL ? "" : host);
    }
    if (port == 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "%s: port must be the one that '%.60s' listens on, got 0",
                           what, ret->id);
    }
    memcpy(ret->host, host, strlen(host) + 1);
    ret->port = port;
    return COORD_OK;
}

/* ---- adding ---- */

static coord_status add(CommCoordinator *c, const coordi_config_worker *worker,
                        coord_error *err)
{
    coord_status rc = check_open(c, "add_worker", err);
    if (rc == COORD_OK) {
        rc = coordi_config_add_worker(&c->config, worker, err);
    }
    if (rc == COORD_OK && c->phase != COORDI_PHASE_CREATED) {
        rc = coordi_membership_add(c, worker, COORDI_ORIGIN_HOST, err);
        if (rc != COORD_OK) {
            (void)coordi_config_remove_worker(&c->config, worker->role, worker->id);
        }
    }
    c->elastic |= rc == COORD_OK;
    return rc;
}

static void run_add(coordi_op *op)
{
    coord_error err;
    coord_status rc = add(op->object, &((change_op *)op)->worker, &err);
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

coord_status comm_coordinator_add_worker(CommCoordinator *c, coord_role role,
                                         const char *id, const char *host, uint16_t port,
                                         coord_error *err)
{
    coordi_config_worker worker = {.by_host = true};
    coord_status rc = check_who("add_worker", role, id, &worker, err);
    if (rc == COORD_OK) {
        rc = check_where("add_worker", host, port, &worker, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    change_op *op =
        coordi_call_make(c, sizeof *op, run_add, false, NULL, "add_worker", err, &rc);
    if (op == NULL) {
        return rc;
    }
    op->op.borrows = true; /* carried out, or not, before the caller hears of it */
    op->worker = worker;
    return coordi_call_finish(&op->op, COORDI_OP_PATIENCE_MS, "add_worker", err);
}

/* ---- removing ---- */

static coord_status remove_worker(CommCoordinator *c, const change_op *op,
                                  coord_error *err)
{
    coord_role role = op->worker.role;
    const char *id = op->worker.id;
    coord_status rc = check_open(c, "remove_worker", err);
    if (rc != COORD_OK) {
        return rc;
    }
    bool known = coordi_config_remove_worker(&c->config, role, id);
    coordi_member *m = coordi_membership_find(c, role, id);
    if (m == NULL) { /* or does it leave already, and is to be quicker now? */
        m = coordi_map_get(&c->members[role], id);
    }
    if (m != NULL && m->state != COORDI_MEMBER_GONE) {
        coord_error why;
        (void)coordi_fail(&why, COORD_ERR_LOST, "the host removed '%.100s'", id);
        coordi_membership_remove(m, op->drop, &why);
        return COORD_OK;
    }
    return known ? COORD_OK
                 : coordi_fail(err, COORD_ERR_NOT_FOUND,
                               "remove_worker: there is no %s '%.100s'",
                               coord_role_str(role), id);
}

static void run_remove(coordi_op *op)
{
    coord_error err;
    coord_status rc = remove_worker(op->object, (change_op *)op, &err);
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

coord_status comm_coordinator_remove_worker(CommCoordinator *c, coord_role role,
                                            const char *id, comm_coordinator_removal how,
                                            coord_error *err)
{
    coordi_config_worker worker = {0};
    coord_status rc = check_who("remove_worker", role, id, &worker, err);
    if (rc == COORD_OK && how != COMM_COORDINATOR_DRAIN && how != COMM_COORDINATOR_DROP) {
        rc =
            coordi_fail(err, COORD_ERR_ARG,
                        "remove_worker: how must be COMM_COORDINATOR_DRAIN or _DROP, got "
                        "%d",
                        (int)how);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    change_op *op = coordi_call_make(c, sizeof *op, run_remove, false, NULL,
                                     "remove_worker", err, &rc);
    if (op == NULL) {
        return rc;
    }
    op->op.borrows = true; /* carried out, or not, before the caller hears of it */
    op->worker = worker;
    op->drop = how == COMM_COORDINATOR_DROP;
    return coordi_call_finish(&op->op, COORDI_OP_PATIENCE_MS, "remove_worker", err);
}
