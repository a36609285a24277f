#include "service/launcher.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <stdio.h>

enum {
    RECORDS_MAX = 1024,
    PATIENCE_MS = 10000, /* for a stop beyond its grace */
    SIGNAL_MAX = 64,
    NAMING_MS = 1000, /* to find out who keeps a close from its end */
    NAMES_SIZE = 160,
};

/* Nobody's grace is longer: sums of times stay far from overflow. */
#define LONGEST_MS ((int64_t)1 << 40)

static const coord_launcher_options DEFAULTS = {
    .size = sizeof(coord_launcher_options),
    .executor = COORD_EXECUTOR_PER_TASK,
    .executor_threads = 4,
    .close_grace_ms = 5000,
    .max_queued_bytes = (size_t)1 << 20,
    .log_level = COORD_LOG_INFO,
};

void coord_launcher_options_init(coord_launcher_options *options, size_t size)
{
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

static coord_status check_options(const coord_launcher_options *o, coord_error *err)
{
    if (o->close_grace_ms < 0 || o->max_queued_bytes == 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "launcher: close_grace_ms (%lld) must be at least 0, "
                           "max_queued_bytes (%zu) at least 1",
                           (long long)o->close_grace_ms, o->max_queued_bytes);
    }
    if (o->executor > COORD_EXECUTOR_INLINE) {
        return coordi_fail(err, COORD_ERR_ARG, "launcher: executor %d is unknown",
                           (int)o->executor);
    }
    return COORD_OK;
}

/* ---- life
 * ------------------------------------------------------------------------------ */

coord_launcher *coordi_launcher_ref(coord_launcher *launcher)
{
    (void)atomic_fetch_add(&launcher->refs, 1);
    return launcher;
}

void coordi_launcher_unref(coord_launcher *l)
{
    if (atomic_fetch_sub(&l->refs, 1) == 1) {
        coordi_loop_unref(l->loop);
        coordi_free(l);
    }
}

static coord_status create(coord_loop *loop, const coord_launcher_options *o,
                           bool owns_loop, coord_launcher **ret, coord_error *err)
{
    coord_launcher *l = coordi_zalloc(sizeof *l);
    if (l == NULL) {
        return coordi_fail_nomem(err, "launcher");
    }
    coord_status rc = coordi_executor_create(loop, o->executor,
                                             o->executor_threads, &l->executor, err);
    if (rc != COORD_OK) {
        coordi_free(l);
        return rc;
    }
    atomic_init(&l->refs, 1);
    atomic_init(&l->silent, false);
    atomic_init(&l->running, 0);
    l->loop = coordi_loop_ref(loop);
    l->owns_loop = owns_loop;
    l->options = *o;
    l->options.loop = NULL;
    l->log = (coordi_log){o->log, o->user, o->log_level, "launcher"};
    coordi_list_init(&l->active);
    coordi_list_init(&l->records);
    coordi_list_init(&l->waiters);
    coordi_list_init(&l->await_close);
    *ret = l;
    return COORD_OK;
}

coord_status coord_launcher_create(const coord_launcher_options *options,
                                   coord_launcher **ret, coord_error *err)
{
    if (ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "launcher: no place for the result");
    }
    coord_launcher_options ours = DEFAULTS;
    coord_status rc = COORD_OK;
    if (options != NULL) {
        rc = coordi_options_adopt(&ours, sizeof ours, options, "coord_launcher_options",
                                  err);
    }
    if (rc == COORD_OK) {
        rc = check_options(&ours, err);
    }
    coord_loop *loop;
    if (rc == COORD_OK) {
        rc = coordi_loop_take(ours.loop, &loop, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    rc = create(loop, &ours, ours.loop == NULL, ret, err);
    if (rc != COORD_OK || ours.loop != NULL) {
        coordi_loop_unref(loop);
    }
    return rc;
}

/* ---- calls
 * ----------------------------------------------------------------------------- */

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

static void release_launcher(coordi_op *op)
{
    coordi_launcher_unref(op->object);
}

/* An op that holds the launcher; `size` as in coordi_op_create. */
static void *op_create(coord_launcher *launcher, size_t size, void (*run)(coordi_op *op),
                       coord_error *err)
{
    coordi_op *op = coordi_op_create(launcher->loop, size, run, launcher, err);
    if (op != NULL) {
        (void)coordi_launcher_ref(launcher);
        op->release = release_launcher;
    }
    return op;
}

static coord_status check_call(const coord_launcher *launcher, bool all, const char *name,
                               const char *what, coord_error *err)
{
    if (launcher == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "%s: launcher is NULL", what);
    }
    coord_status rc = coordi_check_fork(launcher->loop, what, err);
    if (rc == COORD_OK && !(all && name == NULL)) {
        rc = coordi_launcher_check_name(name, err);
    }
    return rc;
}

/* After check_call; NULL for all. */
static name_op *name_op_create(coord_launcher *launcher, const char *name,
                               void (*run)(coordi_op *op), coord_error *err)
{
    name_op *call = op_create(launcher, sizeof *call, run, err);
    if (call != NULL) {
        call->all = name == NULL;
        (void)snprintf(call->name, sizeof call->name, "%s", name == NULL ? "" : name);
    }
    return call;
}

/* The latest child of the call's name; NULL, and the call is finished, when there is
 * none. */
static coordi_child *find_child(name_op *call)
{
    coord_launcher *launcher = call->op.object;
    coordi_child *child = coordi_map_get(&launcher->by_name, call->name);
    if (child == NULL) {
        coord_error why;
        (void)coordi_fail(&why, COORD_ERR_NOT_FOUND,
                          "launcher: no child named '%.200s' was started", call->name);
        coordi_op_finish(&call->op, why.status, &why);
    }
    return child;
}

/* ---- waiters
 * --------------------------------------------------------------------------- */

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

/* Ends the waits that are over, and those that nobody waits for any longer. */
static void look_at_waiters(coord_launcher *launcher)
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
    look_at_waiters(
        launcher); /* so that a host that polls with short waits costs nothing */
    coordi_list_append(&launcher->waiters, &call->op.link);
    if (is_over(launcher, call)) {
        end_wait(call, COORD_OK);
    }
}

static void check_closed(coord_launcher *launcher)
{
    if (launcher->closing && coordi_list_empty(&launcher->active)) {
        coordi_executor_destroy(launcher->executor);
        launcher->executor = NULL;
        coordi_op_finish_all(&launcher->await_close, COORD_OK, NULL);
    }
}

static void forget(coord_launcher *launcher, coordi_child *record)
{
    coordi_list_remove(&record->link);
    launcher->record_count--;
    (void)coordi_map_remove(&launcher->by_name, record->name);
    coordi_child_unref(record);
}

void coordi_launcher_on_done(coord_launcher *launcher, coordi_child *child)
{
    if (coordi_map_get(&launcher->by_name, child->name) == child) {
        coordi_list_append(&launcher->records, &child->link);
        launcher->record_count++;
    }
    look_at_waiters(launcher);
    check_closed(launcher);
    if (launcher->record_count > RECORDS_MAX) {
        forget(launcher, COORDI_ITEM(launcher->records.next, coordi_child, link));
    }
}

/* ---- start
 * ----------------------------------------------------------------------------- */

typedef struct start_op {
    coordi_op op;
    coordi_order order;
    int64_t pid;
} start_op;

static void release_start(coordi_op *op)
{
    coordi_order_done(&((start_op *)op)->order);
    release_launcher(op);
}

/* Lets go of the child that had the name before, or NULL. */
static void replace_child(coord_launcher *launcher, coordi_child *old)
{
    if (old == NULL) {
        return;
    }
    if (old->done) {
        coordi_list_remove(&old->link);
        launcher->record_count--;
    }
    coordi_child_unref(old);
}

static coord_status check_start(const coord_launcher *launcher, const coordi_child *old,
                                const char *name, coord_error *err)
{
    if (launcher->closing) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "launcher: closed, '%.200s' is not started", name);
    }
    if (old != NULL && old->process != NULL) {
        return coordi_fail(err, COORD_ERR_EXISTS,
                           "launcher: '%.200s' runs as process %lld", name,
                           (long long)old->pid);
    }
    return COORD_OK;
}

/* The name is entered first, so that nothing can fail once the process runs. */
static coord_status start(coord_launcher *launcher, start_op *call, coord_error *err)
{
    coordi_child *old = coordi_map_get(&launcher->by_name, call->order.name);
    coord_status rc = check_start(launcher, old, call->order.name, err);
    if (rc != COORD_OK) {
        return rc;
    }
    coordi_child *child = coordi_child_create(&call->order);
    if (child == NULL) {
        return coordi_fail_nomem(err, "launcher");
    }
    if (!coordi_map_put(&launcher->by_name, child->name, child)) {
        coordi_child_unref(child);
        return coordi_fail_nomem(err, "launcher");
    }
    rc = coordi_child_start(child, launcher, &call->order, err);
    if (rc == COORD_OK) {
        call->pid = child->pid;
        replace_child(launcher, old);
        return COORD_OK;
    }
    if (old != NULL) { /* replacing never fails */
        (void)coordi_map_put(&launcher->by_name, child->name, old);
    } else {
        (void)coordi_map_remove(&launcher->by_name, child->name);
    }
    coordi_child_unref(child);
    return rc;
}

static void run_start(coordi_op *op)
{
    coord_error err;
    if (atomic_load(&op->refs) == 1) { /* the caller has been told that it timed out */
        coordi_op_finish(op, COORD_ERR_TIMEOUT, NULL);
        return;
    }
    coord_status rc = start(op->object, (start_op *)op, &err);
    coordi_op_finish(op, rc, rc == COORD_OK ? NULL : &err);
}

coord_status coord_launcher_start(coord_launcher *launcher,
                                  const coord_launcher_spec *spec, int64_t *pid,
                                  coord_error *err)
{
    coord_status rc = check_call(launcher, true, NULL, "launcher start", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (spec == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "launcher start: spec is NULL");
    }
    start_op *call = op_create(launcher, sizeof *call, run_start, err);
    if (call == NULL) {
        return COORD_ERR_NOMEM;
    }
    call->op.release = release_start;
    rc = coordi_order_init(&call->order, launcher->loop, spec, err);
    if (rc != COORD_OK) {
        coordi_op_discard(&call->op);
        return rc;
    }
    rc = coordi_op_wait(&call->op, COORDI_OP_PATIENCE_MS, "launcher start", err);
    if (rc == COORD_OK && pid != NULL) {
        *pid = call->pid;
    }
    coordi_op_unref(&call->op);
    return rc;
}

/* ---- stop, signal, wait
 * ---------------------------------------------------------------- */

static void stop_all(coord_launcher *launcher, int64_t grace_ms)
{
    for (coordi_link *at = launcher->active.next; at != &launcher->active;
         at = at->next) {
        coordi_child_stop(COORDI_ITEM(at, coordi_child, link), grace_ms);
    }
}

static void run_stop(coordi_op *op)
{
    name_op *call = (name_op *)op;
    coordi_child *child = NULL;
    if (call->all) {
        stop_all(op->object, call->grace_ms);
    } else {
        child = find_child(call);
        if (child == NULL) {
            return;
        }
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
    coord_status rc = check_call(launcher, true, name, WHAT, err);
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
    call->grace_ms = grace_ms < LONGEST_MS ? grace_ms : LONGEST_MS;
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
    name_op *call = (name_op *)op;
    const coord_launcher *launcher = op->object;
    if (call->all) {
        for (const coordi_link *at = launcher->active.next; at != &launcher->active;
             at = at->next) {
            send_signal(launcher, COORDI_ITEM(at, const coordi_child, link),
                        call->signal_number);
        }
    } else {
        const coordi_child *child = find_child(call);
        if (child == NULL) {
            return;
        }
        send_signal(launcher, child, call->signal_number);
    }
    coordi_op_finish(op, COORD_OK, NULL);
}

coord_status coord_launcher_signal(coord_launcher *launcher, const char *name,
                                   int signal_number, coord_error *err)
{
    static const char WHAT[] = "launcher signal";
    coord_status rc = check_call(launcher, true, name, WHAT, err);
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
    coordi_child *child = call->all ? NULL : find_child(call);
    if (call->all || child != NULL) {
        begin_wait(call, child);
    }
}

coord_status coord_launcher_wait(coord_launcher *launcher, const char *name,
                                 int64_t wait_ms, coord_launcher_exit *how,
                                 coord_error *err)
{
    static const char WHAT[] = "launcher wait";
    coord_status rc = check_call(launcher, true, name, WHAT, err);
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
    rc =
        coordi_op_wait(&call->op, wait_ms < LONGEST_MS ? wait_ms : LONGEST_MS, what, err);
    if (rc == COORD_OK && how != NULL) {
        *how = call->how;
    }
    coordi_op_unref(&call->op);
    return rc;
}

/* ---- looking
 * --------------------------------------------------------------------------- */

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
    if (check_call(launcher, false, name, "launcher pid", NULL) != COORD_OK) {
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

/* ---- closing
 * --------------------------------------------------------------------------- */

typedef struct close_op {
    coordi_op op;
    int64_t grace_ms;
} close_op;

static void run_close(coordi_op *op)
{
    coord_launcher *launcher = op->object;
    launcher->closing = true;
    stop_all(launcher, ((close_op *)op)->grace_ms);
    coordi_list_append(&launcher->await_close, &op->link);
    check_closed(launcher);
}

typedef struct naming_op {
    coordi_op op;
    size_t len;
    char names[NAMES_SIZE];
} naming_op;

static void run_naming(coordi_op *op)
{
    naming_op *call = (naming_op *)op;
    const coord_launcher *launcher = op->object;
    for (const coordi_link *at = launcher->active.next;
         at != &launcher->active && call->len < sizeof call->names; at = at->next) {
        const coordi_child *child = COORDI_ITEM(at, const coordi_child, link);
        const int added =
            snprintf(call->names + call->len, sizeof call->names - call->len,
                     "%s%s of '%s'", call->len == 0 ? "" : ", ",
                     child->process != NULL ? "the process" : "a sink", child->name);
        call->len += added > 0 ? (size_t)added : 0;
    }
    coordi_op_finish(op, COORD_OK, NULL);
}

/* Says in *err who kept the close from its end. */
static void name_the_late(coord_launcher *launcher, int64_t wait_ms, coord_error *err)
{
    naming_op *call = op_create(launcher, sizeof *call, run_naming, NULL);
    if (call == NULL) {
        return;
    }
    if (coordi_op_wait(&call->op, NAMING_MS, "launcher close", NULL) == COORD_OK &&
        call->len > 0) {
        (void)coordi_fail(err, COORD_ERR_TIMEOUT,
                          "launcher close: after %lld ms still runs %s",
                          (long long)wait_ms, call->names);
    }
    coordi_op_unref(&call->op);
}

coord_status coord_launcher_close(coord_launcher *launcher, int64_t wait_ms,
                                  coord_error *err)
{
    static const char WHAT[] = "launcher close";
    coord_status rc = check_call(launcher, true, NULL, WHAT, err);
    if (rc == COORD_OK && wait_ms < 1) {
        rc = coordi_fail(err, COORD_ERR_ARG, "%s: needs a time of at least 1 ms", WHAT);
    }
    if (rc == COORD_OK) {
        rc = coordi_check_may_wait(launcher->loop, launcher, WHAT, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    close_op *call = op_create(launcher, sizeof *call, run_close, err);
    if (call == NULL) {
        return COORD_ERR_NOMEM;
    }
    wait_ms = wait_ms < LONGEST_MS ? wait_ms : LONGEST_MS;
    call->grace_ms = launcher->options.close_grace_ms < wait_ms / 2
                         ? launcher->options.close_grace_ms
                         : wait_ms / 2;
    rc = coordi_op_wait(&call->op, wait_ms, WHAT, err);
    coordi_op_unref(&call->op);
    if (rc == COORD_ERR_TIMEOUT && err != NULL) {
        name_the_late(launcher, wait_ms, err);
    }
    return rc;
}

static void run_destroy(coordi_job *job)
{
    coord_launcher *l = COORDI_ITEM(job, coord_launcher, destroy_job);
    l->closing = true;
    while (!coordi_list_empty(&l->waiters)) {
        end_wait((name_op *)COORDI_ITEM(l->waiters.next, coordi_op, link),
                 COORD_ERR_CLOSED);
    }
    coordi_link *next;
    for (coordi_link *at = l->active.next; at != &l->active; at = next) {
        next = at->next;
        coordi_child_drop(COORDI_ITEM(at, coordi_child, link));
    }
    size_t at = 0;
    coordi_child *child;
    while ((child = coordi_map_next(&l->by_name, &at)) != NULL) {
        if (child->done) {
            coordi_list_remove(&child->link);
        }
        coordi_child_unref(child);
    }
    coordi_map_done(&l->by_name);
    coordi_executor_destroy(l->executor);
    l->executor = NULL;
    coordi_op_finish_all(&l->await_close, COORD_OK, NULL);
    coordi_launcher_unref(l);
}

void coord_launcher_destroy(coord_launcher *launcher)
{
    if (launcher == NULL ||
        coordi_check_fork(launcher->loop, "launcher", NULL) != COORD_OK) {
        return;
    }
    coord_loop *loop = launcher->loop;
    const bool owns_loop = launcher->owns_loop;
    atomic_store(&launcher->silent, true);
    launcher->destroy_job.run = run_destroy;
    coordi_post(loop, &launcher->destroy_job);
    if (owns_loop) {
        coordi_loop_retire(loop);
    }
}

/* ---- in the child
 * ------------------------------------------------------------------------ */

static const coord_launcher_guard_options GUARD_DEFAULTS = {
    .size = sizeof(coord_launcher_guard_options),
    .exit_code = 1,
    .grace_ms = 10000,
};

void coord_launcher_guard_options_init(coord_launcher_guard_options *options, size_t size)
{
    coordi_options_init(options, size, &GUARD_DEFAULTS, sizeof GUARD_DEFAULTS);
}

coord_status coord_launcher_child_guard(const coord_launcher_guard_options *options,
                                        coord_error *err)
{
    coord_launcher_guard_options ours = GUARD_DEFAULTS;
    if (options != NULL) {
        coord_status rc = coordi_options_adopt(&ours, sizeof ours, options,
                                               "coord_launcher_guard_options", err);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    if (ours.exit_code < 0 || ours.exit_code > 255 || ours.grace_ms < 0) {
        return coordi_fail(
            err, COORD_ERR_ARG,
            "launcher guard: exit_code (%d) must be from 0 to 255, grace_ms "
            "(%lld) at least 0",
            ours.exit_code, (long long)ours.grace_ms);
    }
    const coordi_guard_spec spec = {
        .exit_code = ours.exit_code,
        .on_gone = ours.on_parent_gone,
        .grace_ms = ours.grace_ms < LONGEST_MS ? ours.grace_ms : LONGEST_MS,
        .arg = ours.user,
    };
    return coordi_child_guard(&spec, err);
}
