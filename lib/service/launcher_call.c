#include "base/error.h"
#include "service/launcher.h"

#include <stdio.h>

/* Calls about children by name, and those who wait for their ends. */

enum {
    PATIENCE_MS = 10000, /* for a stop beyond its grace */
    SIGNAL_MAX = 64,
};

/* ---- calls ---- */

/* A call about one child, or all. */
typedef struct name_op {
    coordi_op op;
    bool all;
    bool waits; /* finished only when they are done */
    int signal_number;
    int64_t grace_ms;
    uint64_t upto;        /* of all: those started so far */
    coordi_child *target; /* a reference while it waits; NULL: all */
    int64_t pid;
    coord_launcher_exit how;
    char name[COORD_ID_SIZE];
} name_op;

/* After check_call; NULL for all. */
static name_op *name_op_create(coord_launcher *launcher, const char *name,
                               void (*run)(coordi_op *op), coord_error *err)
{
    name_op *call = coordi_launcher_op(launcher, sizeof *call, run, err);
    if (call != NULL) {
        call->all = name == NULL;
        (void)snprintf(call->name, sizeof call->name, "%s", name == NULL ? "" : name);
    }
    return call;
}

/* The child that a call is about; NULL for all. */
static coord_status find_child(const name_op *call, coordi_child **ret, coord_error *err)
{
    const coord_launcher *launcher = call->op.object;
    *ret = call->all ? NULL : coordi_map_get(&launcher->by_name, call->name);
    if (*ret == NULL && !call->all) {
        return coordi_fail(err, COORD_ERR_NOT_FOUND,
                           "launcher: no child named '%.200s' was started", call->name);
    }
    return COORD_OK;
}

/* ---- waiters ---- */

/* Of the ends that are kept: the first started that went wrong; NULL: none did. */
static const coordi_child *first_failure(const coord_launcher *launcher, uint64_t upto)
{
    const coordi_child *first = NULL;
    for (const coordi_link *at = launcher->records.next; at != &launcher->records;
         at = at->next) {
        const coordi_child *child = COORDI_ITEM(at, const coordi_child, link);
        const bool failed = child->how.code != 0 && !child->how.stopped;
        if (failed && child->serial <= upto &&
            (first == NULL || child->serial < first->serial)) {
            first = child;
        }
    }
    return first;
}

static bool is_over(const coord_launcher *launcher, const name_op *call)
{
    if (call->target != NULL) {
        return call->target->done;
    }
    /* The list is in the order of starts. */
    return coordi_list_empty(&launcher->active) ||
           COORDI_ITEM(launcher->active.next, coordi_child, link)->serial > call->upto;
}

static void end_wait(name_op *call, coord_status status)
{
    coordi_child *child = call->target;
    call->target = NULL;
    if (status == COORD_OK) {
        const coordi_child *said =
            child != NULL ? child : first_failure(call->op.object, call->upto);
        call->how = said == NULL ? (coord_launcher_exit){0} : said->how;
    }
    coordi_list_remove(&call->op.link);
    coordi_op_finish(&call->op, status, NULL);
    if (child != NULL) {
        coordi_child_unref(child);
    }
}

void coordi_launcher_look(coord_launcher *launcher)
{
    coordi_link *next;
    for (coordi_link *at = launcher->waiters.next; at != &launcher->waiters; at = next) {
        next = at->next;
        name_op *call = (name_op *)COORDI_ITEM(at, coordi_op, link);
        if (is_over(launcher, call)) {
            end_wait(call, COORD_OK);
        } else if (atomic_load(&call->op.refs) == 1) {
            end_wait(call, COORD_ERR_TIMEOUT);
        }
    }
}

static void begin_wait(name_op *call, coordi_child *target)
{
    coord_launcher *launcher = call->op.object;
    call->target = target;
    call->upto = launcher->last_serial;
    if (target != NULL) {
        coordi_child_ref(target);
    }
    coordi_launcher_look(
        launcher); /* so that a host that polls with short waits costs nothing */
    coordi_list_append(&launcher->waiters, &call->op.link);
    if (is_over(launcher, call)) {
        end_wait(call, COORD_OK);
    }
}

void coordi_launcher_end_waits(coord_launcher *launcher)
{
    while (!coordi_list_empty(&launcher->waiters)) {
        end_wait((name_op *)COORDI_ITEM(launcher->waiters.next, coordi_op, link),
                 COORD_ERR_CLOSED);
    }
}

/* ---- stop, signal, wait ---- */

static void run_stop(coordi_op *op)
{
    name_op *call = (name_op *)op;
    coordi_child *child;
    coord_error why;
    if (find_child(call, &child, &why) != COORD_OK) {
        coordi_op_finish(op, why.status, &why);
        return;
    }
    if (child == NULL) {
        coordi_launcher_stop_all(op->object, call->grace_ms);
    } else {
        coordi_child_stop(child, call->grace_ms);
    }
    if (call->waits) {
        begin_wait(call, child);
    } else {
        coordi_op_finish(op, COORD_OK, NULL);
    }
}

static coord_status stop(coord_launcher *launcher, const char *name, int64_t grace_ms,
                         bool waits, coord_error *err)
{
    static const char WHAT[] = "launcher stop";
    coord_status rc = coordi_launcher_check_call(launcher, true, name, WHAT, err);
    if (rc == COORD_OK && grace_ms < 0) {
        rc = coordi_fail(err, COORD_ERR_ARG, "%s: a grace of %lld ms", WHAT,
                         (long long)grace_ms);
    }
    if (rc == COORD_OK && waits) {
        rc = coordi_check_may_wait(launcher->loop, launcher, WHAT, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    name_op *call = name_op_create(launcher, name, run_stop, err);
    if (call == NULL) {
        return COORD_ERR_NOMEM;
    }
    call->grace_ms =
        grace_ms < COORDI_LAUNCHER_LONGEST_MS ? grace_ms : COORDI_LAUNCHER_LONGEST_MS;
    call->waits = waits;
    rc = coordi_op_wait(&call->op, PATIENCE_MS + (waits ? call->grace_ms : 0), WHAT, err);
    coordi_op_unref(&call->op);
    return rc;
}

coord_status coord_launcher_stop(coord_launcher *launcher, const char *name,
                                 int64_t grace_ms, coord_error *err)
{
    return stop(launcher, name, grace_ms, true, err);
}

coord_status coord_launcher_post_stop(coord_launcher *launcher, const char *name,
                                      int64_t grace_ms, coord_error *err)
{
    return stop(launcher, name, grace_ms, false, err);
}

static void send_signal(const coord_launcher *launcher, const coordi_child *child,
                        int signal_number)
{
    if (child->process != NULL) {
        launcher->loop->env->process_signal(child->process, signal_number);
    }
}

static void run_signal(coordi_op *op)
{
    const name_op *call = (const name_op *)op;
    const coord_launcher *launcher = op->object;
    coordi_child *child;
    coord_error why;
    if (find_child(call, &child, &why) != COORD_OK) {
        coordi_op_finish(op, why.status, &why);
        return;
    }
    for (const coordi_link *at = launcher->active.next; at != &launcher->active;
         at = at->next) {
        const coordi_child *each = COORDI_ITEM(at, const coordi_child, link);
        if (child == NULL || child == each) {
            send_signal(launcher, each, call->signal_number);
        }
    }
    coordi_op_finish(op, COORD_OK, NULL);
}

coord_status coord_launcher_signal(coord_launcher *launcher, const char *name,
                                   int signal_number, coord_error *err)
{
    static const char WHAT[] = "launcher signal";
    coord_status rc = coordi_launcher_check_call(launcher, true, name, WHAT, err);
    if (rc == COORD_OK && (signal_number < 1 || signal_number > SIGNAL_MAX)) {
        rc = coordi_fail(err, COORD_ERR_ARG, "%s: %d is no signal", WHAT, signal_number);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    name_op *call = name_op_create(launcher, name, run_signal, err);
    if (call == NULL) {
        return COORD_ERR_NOMEM;
    }
    call->signal_number = signal_number;
    rc = coordi_op_wait(&call->op, COORDI_OP_PATIENCE_MS, WHAT, err);
    coordi_op_unref(&call->op);
    return rc;
}

static void run_wait(coordi_op *op)
{
    name_op *call = (name_op *)op;
    coordi_child *child;
    coord_error why;
    if (find_child(call, &child, &why) != COORD_OK) {
        coordi_op_finish(op, why.status, &why);
    } else {
        begin_wait(call, child);
    }
}

coord_status coord_launcher_wait(coord_launcher *launcher, const char *name,
                                 int64_t wait_ms, coord_launcher_exit *how,
                                 coord_error *err)
{
    static const char WHAT[] = "launcher wait";
    coord_status rc = coordi_launcher_check_call(launcher, true, name, WHAT, err);
    if (rc == COORD_OK && wait_ms < 1) {
        rc = coordi_fail(err, COORD_ERR_ARG, "%s: needs a time of at least 1 ms", WHAT);
    }
    if (rc == COORD_OK) {
        rc = coordi_check_may_wait(launcher->loop, launcher, WHAT, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    name_op *call = name_op_create(launcher, name, run_wait, err);
    if (call == NULL) {
        return COORD_ERR_NOMEM;
    }
    char what[sizeof WHAT + COORD_ID_SIZE + 8];
    (void)snprintf(what, sizeof what, name == NULL ? "%s: all" : "%s: '%s'", WHAT,
                   call->name);
    rc = coordi_op_wait(&call->op,
                        wait_ms < COORDI_LAUNCHER_LONGEST_MS ? wait_ms
                                                             : COORDI_LAUNCHER_LONGEST_MS,
                        what, err);
    if (rc == COORD_OK && how != NULL) {
        *how = call->how;
    }
    coordi_op_unref(&call->op);
    return rc;
}

/* ---- looking ---- */

static void run_pid(coordi_op *op)
{
    name_op *call = (name_op *)op;
    coord_launcher *launcher = op->object;
    const coordi_child *child = coordi_map_get(&launcher->by_name, call->name);
    call->pid = child != NULL && child->process != NULL ? child->pid : 0;
    coordi_op_finish(op, COORD_OK, NULL);
}

int64_t coord_launcher_pid(coord_launcher *launcher, const char *name)
{
    int64_t pid = 0;
    if (coordi_launcher_check_call(launcher, false, name, "launcher pid", NULL) !=
        COORD_OK) {
        return 0;
    }
    name_op *call = name_op_create(launcher, name, run_pid, NULL);
    if (call == NULL) {
        return 0;
    }
    if (coordi_op_wait(&call->op, COORDI_OP_PATIENCE_MS, "launcher pid", NULL) ==
        COORD_OK) {
        pid = call->pid;
    }
    coordi_op_unref(&call->op);
    return pid;
}

size_t coord_launcher_count(const coord_launcher *launcher)
{
    return launcher == NULL ? 0 : atomic_load(&launcher->running);
}
