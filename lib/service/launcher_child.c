#include "base/alloc.h"
#include "base/error.h"
#include "service/launcher.h"

#include <signal.h>
#include <stdio.h>

/* ---- life ---- */

void coordi_child_ref(coordi_child *child)
{
    child->refs++;
}

static void free_lines(coordi_child *child)
{
    coordi_free(child->lines[0].text);
    coordi_free(child->lines[1].text);
    child->lines[0].text = NULL;
    child->lines[1].text = NULL;
}

void coordi_child_unref(coordi_child *child)
{
    if (--child->refs == 0) {
        free_lines(child);
        coordi_free(child->name);
        coordi_free(child);
    }
}

/* Its on_exit has returned, or never will run. */
static void be_done(coordi_child *child)
{
    coord_launcher *launcher = child->launcher;
    child->done = true;
    child->launcher = NULL;
    coordi_list_remove(&child->link);
    coordi_launcher_on_done(launcher, child);
    coordi_child_unref(child);
    coordi_launcher_unref(launcher);
}

/* ---- lines, on the lane ---- */

typedef struct piece {
    coordi_job job; /* on the lane, then on the loop */
    coordi_child *child;
    int stream;
    size_t len; /* 0: the stream has ended */
    char bytes[];
} piece;

static bool is_silent(const coordi_child *child)
{
    return atomic_load(&child->launcher->silent);
}

static void emit(coordi_child *child, int stream, bool more)
{
    coordi_line_room *room = &child->lines[stream - 1];
    room->text[room->len] = '\0';
    const coord_launcher_line line = {
        .name = child->name,
        .stream = stream,
        .text = {room->text + child->prefix_len, room->len - child->prefix_len},
        .prefixed = {room->text, room->len},
        .more = more,
    };
    if (!is_silent(child)) {
        coordi_frame frame;
        coordi_frame_enter(&frame, child->launcher);
        child->on_line(child->launcher, &line, child->user);
        coordi_frame_leave(&frame);
    }
    room->len = child->prefix_len;
}

static void add(coordi_child *child, int stream, const char *bytes, size_t len)
{
    coordi_line_room *room = &child->lines[stream - 1];
    const size_t full = child->prefix_len + COORD_LAUNCHER_LINE_MAX;
    while (len > 0) {
        if (room->len == full) { /* only now is it known that the line goes on */
            emit(child, stream, true);
        }
        const size_t left = full - room->len;
        const size_t take = len < left ? len : left;
        memcpy(room->text + room->len, bytes, take);
        room->len += take;
        bytes += take;
        len -= take;
    }
}

static void cut(coordi_child *child, int stream, const char *bytes, size_t len)
{
    while (len > 0) {
        const char *end = memchr(bytes, '\n', len);
        const size_t part = end == NULL ? len : (size_t)(end - bytes);
        add(child, stream, bytes, part);
        if (end == NULL) {
            return;
        }
        emit(child, stream, false);
        bytes += part + 1;
        len -= part + 1;
    }
}

/* The last line may lack its newline. */
static void flush(coordi_child *child, int stream)
{
    if (child->lines[stream - 1].len > child->prefix_len) {
        emit(child, stream, false);
    }
}

static void finish_piece(coordi_job *job);

static void run_piece(coordi_job *job)
{
    piece *p = COORDI_ITEM(job, piece, job);
    if (p->len > 0) {
        cut(p->child, p->stream, p->bytes, p->len);
    } else {
        flush(p->child, p->stream);
    }
    p->job.run = finish_piece;
    coordi_post(p->child->launcher->loop, &p->job);
}

/* ---- pieces, on the loop ---- */

static void set_paused(coordi_child *child, bool paused)
{
    if (child->process != NULL && child->paused != paused) {
        child->paused = paused;
        child->launcher->loop->env->process_pause(child->process, paused);
    }
}

static void finish_piece(coordi_job *job)
{
    piece *p = COORDI_ITEM(job, piece, job);
    coordi_child *child = p->child;
    child->queued_bytes -= p->len + sizeof *p;
    coordi_free(p);
    if (child->process != NULL &&
        child->queued_bytes <= child->launcher->options.max_queued_bytes / 2) {
        set_paused(child, false);
    }
    coordi_child_unref(child);
}

static void child_wrote(coordi_process *process, int stream, const char *bytes,
                        size_t len, void *arg)
{
    (void)process;
    coordi_child *child = arg;
    if (child->on_line == NULL) {
        return;
    }
    piece *p = coordi_alloc(sizeof *p + len);
    if (p == NULL) {
        COORDI_LOG(&child->launcher->log, COORD_LOG_ERROR,
                   "output lost: name=%s bytes=%zu why=\"out of memory\"", child->name,
                   len);
        return;
    }
    *p = (piece){.job.run = run_piece, .child = child, .stream = stream, .len = len};
    if (len > 0) {
        memcpy(p->bytes, bytes, len);
    }
    coordi_child_ref(child);
    child->queued_bytes += len + sizeof *p;
    coordi_lane_run(child->lane, &p->job);
    if (child->queued_bytes > child->launcher->options.max_queued_bytes) {
        set_paused(child, true);
    }
}

/* ---- end ---- */

static void finish_exit(coordi_job *job)
{
    coordi_child *child = COORDI_ITEM(job, coordi_child, exit_job);
    free_lines(child); /* all pieces came back before */
    be_done(child);
}

/* On the lane, after all pieces. */
static void run_exit(coordi_job *job)
{
    coordi_child *child = COORDI_ITEM(job, coordi_child, exit_job);
    if (child->on_line != NULL) {
        flush(child, 1);
        flush(child, 2);
    }
    if (child->on_exit != NULL && !is_silent(child)) {
        coordi_frame frame;
        coordi_frame_enter(&frame, child->launcher);
        child->on_exit(child->launcher, child->name, &child->how, child->user);
        coordi_frame_leave(&frame);
    }
    child->exit_job.run = finish_exit;
    coordi_post(child->launcher->loop, &child->exit_job);
}

/* Kills what is left of the group, too. */
static void end_process(coordi_child *child)
{
    coord_loop *loop = child->launcher->loop;
    loop->env->process_destroy(child->process);
    child->process = NULL;
    coordi_timer_stop(loop, &child->kill);
    (void)atomic_fetch_sub(&child->launcher->running, 1);
}

static void end(coordi_child *child, int code)
{
    end_process(child);
    child->how.code = code < 0 ? -1 : code;
    child->how.signal_number = code < 0 ? -code : 0;
    child->how.stopped = child->stopped;
    COORDI_LOG(&child->launcher->log, COORD_LOG_INFO,
               "ended: name=%s pid=%lld code=%d signal=%d stopped=%d", child->name,
               (long long)child->pid, child->how.code, child->how.signal_number,
               (int)child->stopped);
    coordi_lane *lane = child->lane;
    child->lane = NULL;
    if (lane == NULL) {
        be_done(child);
    } else { /* pieces may be under way: the exit comes after them */
        coordi_lane_run(lane, &child->exit_job);
        coordi_lane_close(lane);
    }
}

static void child_ended(coordi_process *process, int code, void *arg)
{
    (void)process;
    end(arg, code);
}

static void kill_now(coordi_child *child)
{
    child->killed = true;
    coordi_timer_stop(child->launcher->loop, &child->kill);
    child->launcher->loop->env->process_signal(child->process, SIGKILL);
}

static void grace_over(coordi_timer *timer)
{
    coordi_child *child = COORDI_ITEM(timer, coordi_child, kill);
    COORDI_LOG(&child->launcher->log, COORD_LOG_WARN,
               "killed: name=%s pid=%lld why=\"it did not end within the grace\"",
               child->name, (long long)child->pid);
    kill_now(child);
}

void coordi_child_stop(coordi_child *child, int64_t grace_ms)
{
    if (child->process == NULL || child->killed) {
        return;
    }
    coord_loop *loop = child->launcher->loop;
    const bool first = !child->stopped;
    child->stopped = true;
    if (grace_ms == 0) {
        kill_now(child);
        return;
    }
    if (first) {
        loop->env->process_signal(child->process, SIGTERM);
        loop->env->process_signal(child->process, SIGCONT); /* one that is halted, too */
    }
    const int64_t at_ms = coordi_deadline(loop, grace_ms);
    if (!coordi_timer_is_set(&child->kill) || at_ms < child->kill.at_ms) {
        loop->env->timer_set(loop, &child->kill, at_ms);
    }
}

void coordi_child_drop(coordi_child *child)
{
    if (child->process != NULL) {
        child->stopped = true;
        end(child, -SIGKILL);
    }
}

/* ---- start ---- */

static bool make_room(coordi_child *child)
{
    child->prefix_len = strlen(child->name) + 3;
    for (int i = 0; i < 2; i++) {
        const size_t size = child->prefix_len + COORD_LAUNCHER_LINE_MAX + 1;
        coordi_line_room *room = &child->lines[i];
        room->text = coordi_alloc(size);
        if (room->text == NULL) {
            return false;
        }
        (void)snprintf(room->text, size, "[%s] ", child->name);
        room->len = child->prefix_len;
    }
    return true;
}

coordi_child *coordi_child_create(coordi_order *order)
{
    coordi_child *child = coordi_zalloc(sizeof *child);
    if (child == NULL) {
        return NULL;
    }
    child->refs = 1;
    child->name = order->name;
    order->name = NULL;
    child->on_line = order->on_line;
    child->on_exit = order->on_exit;
    child->user = order->user;
    child->kill.fire = grace_over;
    child->exit_job.run = run_exit;
    if (child->on_line != NULL && !make_room(child)) {
        coordi_child_unref(child);
        return NULL;
    }
    return child;
}

static coord_status start_process(coord_launcher *launcher, coordi_child *child,
                                  const coordi_order *order, coord_error *err)
{
    const coordi_process_spec spec = {
        .argv = (const char *const *)order->argv,
        .envp = (const char *const *)order->envp,
        .cwd = order->cwd,
        .on_output = child_wrote,
        .on_exit = child_ended,
        .arg = child,
    };
    coord_error why;
    coord_status rc =
        launcher->loop->env->process_start(launcher->loop, &spec, &child->process, &why);
    if (rc != COORD_OK) {
        return coordi_fail_because(err, rc, &why, "launcher: '%.100s' can't be started",
                                   child->name);
    }
    child->pid = launcher->loop->env->process_id(child->process);
    return COORD_OK;
}

coord_status coordi_child_start(coordi_child *child, coord_launcher *launcher,
                                const coordi_order *order, coord_error *err)
{
    coord_status rc = COORD_OK;
    if (child->on_line != NULL || child->on_exit != NULL) {
        rc = coordi_lane_open(launcher->executor, &child->lane, err);
    }
    if (rc == COORD_OK) {
        rc = start_process(launcher, child, order, err);
    }
    if (rc != COORD_OK) {
        coordi_lane_close(child->lane);
        return rc;
    }
    coordi_child_ref(child);
    child->launcher = coordi_launcher_ref(launcher);
    child->serial = ++launcher->last_serial;
    coordi_list_append(&launcher->active, &child->link);
    (void)atomic_fetch_add(&launcher->running, 1);
    COORDI_LOG(&launcher->log, COORD_LOG_INFO, "started: name=%s pid=%lld program=%s",
               child->name, (long long)child->pid, order->argv[0]);
    return COORD_OK;
}
