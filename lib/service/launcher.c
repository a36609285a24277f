#include "service/launcher.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <stdio.h>

enum {
    RECORDS_MAX = 1024,
    NAMING_MS = 1000, /* to find out who keeps a close from its end */
    NAMES_SIZE = 160,
};

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

/* ---- life ---- */

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
    coord_status rc =
        coordi_executor_create(loop, o->executor, o->executor_threads, &l->executor, err);
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

/* ---- calls ---- */

void coordi_launcher_release(coordi_op *op)
{
    coordi_launcher_unref(op->object);
}

void *coordi_launcher_op(coord_launcher *launcher, size_t size,
                         void (*run)(coordi_op *op), coord_error *err)
{
    coordi_op *op = coordi_op_create(launcher->loop, size, run, launcher, err);
    if (op != NULL) {
        (void)coordi_launcher_ref(launcher);
        op->release = coordi_launcher_release;
    }
    return op;
}

coord_status coordi_launcher_check_call(const coord_launcher *launcher, bool all,
                                        const char *name, const char *what,
                                        coord_error *err)
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

/* ---- ends ---- */

void coordi_launcher_stop_all(coord_launcher *launcher, int64_t grace_ms)
{
    for (coordi_link *at = launcher->active.next; at != &launcher->active;
         at = at->next) {
        coordi_child_stop(COORDI_ITEM(at, coordi_child, link), grace_ms);
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
    coordi_launcher_look(launcher);
    check_closed(launcher);
    if (launcher->record_count > RECORDS_MAX) {
        forget(launcher, COORDI_ITEM(launcher->records.next, coordi_child, link));
    }
}

/* ---- closing ---- */

typedef struct close_op {
    coordi_op op;
    int64_t grace_ms;
} close_op;

static void run_close(coordi_op *op)
{
    coord_launcher *launcher = op->object;
    launcher->closing = true;
    coordi_launcher_stop_all(launcher, ((close_op *)op)->grace_ms);
    coordi_op_await(op, &launcher->await_close);
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
    naming_op *call = coordi_launcher_op(launcher, sizeof *call, run_naming, NULL);
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
    coord_status rc = coordi_launcher_check_call(launcher, true, NULL, WHAT, err);
    if (rc == COORD_OK && wait_ms < 1) {
        rc = coordi_fail(err, COORD_ERR_ARG, "%s: needs a time of at least 1 ms", WHAT);
    }
    if (rc == COORD_OK) {
        rc = coordi_check_may_wait(launcher->loop, launcher, WHAT, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    close_op *call = coordi_launcher_op(launcher, sizeof *call, run_close, err);
    if (call == NULL) {
        return COORD_ERR_NOMEM;
    }
    wait_ms = wait_ms < COORDI_LAUNCHER_LONGEST_MS ? wait_ms : COORDI_LAUNCHER_LONGEST_MS;
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
    coordi_launcher_end_waits(l);
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
        coordi_stays_behind(launcher->loop, &launcher->destroy_job.link)) {
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
