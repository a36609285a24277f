#include "support/story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a call that only needs the loop's attention may take, and a tick. */
enum { PATIENCE_MS = 10001 };

static const char *const BUFFERS[] = {"b", "other", NULL};

static uint64_t draw(uint64_t count)
{
    return story_draw(count);
}

/* ---- the host's book ---- */

static story_task *find(story *s, const char *id)
{
    for (int i = 0; i < s->task_count; i++) {
        if (strcmp(s->tasks[i].id, id) == 0) {
            return &s->tasks[i];
        }
    }
    return NULL;
}

/* NULL: there are enough. */
static story_task *new_task(story *s)
{
    if (s->task_count == STORY_TASKS_MAX) {
        return NULL;
    }
    story_task *t = &s->tasks[s->task_count];
    (void)snprintf(t->id, sizeof t->id, "t%d", s->task_count++);
    t->role = draw(3) == 0 ? COORD_LEARNER : COORD_COLLECTOR;
    return t;
}

/* Any id, mostly of a task that there is. */
static const char *some_id(story *s)
{
    return s->task_count == 0 || draw(20) == 0
               ? "nobody's"
               : s->tasks[draw((uint64_t)s->task_count)].id;
}

static bool is_expected(const story *s, coord_status rc, coord_status a, coord_status b)
{
    return rc == COORD_OK || rc == a || rc == b ||
           (rc == COORD_ERR_NOMEM && s->short_of_memory) ||
           (s->closing && (rc == COORD_ERR_STATE || rc == COORD_ERR_CLOSED));
}

/* A call has returned: in time, and with an answer that it may give? */
static void judge(story *s, const char *what, int64_t began_ms, int64_t limit_ms,
                  coord_status rc, coord_status a, coord_status b, const coord_error *err)
{
    int64_t took_ms = coord_sim_now_ms(s->k.sim) - began_ms;
    if (limit_ms >= 0 && took_ms > limit_ms) {
        story_complain(s, "%s took %lld ms, %lld are its limit", what, (long long)took_ms,
                       (long long)limit_ms);
    }
    if (!is_expected(s, rc, a, b)) {
        story_complain(s, "%s answered %s: %s", what, coord_status_str(rc),
                       rc == COORD_OK ? "" : err->text);
    }
}

/* ---- calls ---- */

static int64_t now(const story *s)
{
    return coord_sim_now_ms(s->k.sim);
}

static coord_text text_of(const story_task *t, char *to, size_t size)
{
    (void)snprintf(to, size, "{\"task_id\": \"%s\", \"buffer_id\": \"b\"}", t->id);
    return coord_text_of(to);
}

static void post(story *s, bool on_time)
{
    char text[64];
    coord_error err = {0};
    story_task *t = new_task(s);
    if (t == NULL) {
        return;
    }
    int64_t began = now(s);
    coord_text task = text_of(t, text, sizeof text);
    coord_status rc = t->role == COORD_COLLECTOR
                          ? comm_coordinator_post_collector_task(s->k.c, task, &err)
                          : comm_coordinator_post_learner_task(s->k.c, task, &err);
    t->accepted = rc == COORD_OK;
    t->refused = rc != COORD_OK;
    judge(s, "post", began, on_time ? 0 : PATIENCE_MS, rc, COORD_ERR_BUSY,
          on_time ? COORD_ERR_BUSY : COORD_ERR_TIMEOUT, &err);
}

void story_post(story *s)
{
    post(s, true);
}

static void send(story *s)
{
    char text[64];
    char worker[COORD_ID_SIZE] = "";
    coord_error err = {0};
    story_task *t = new_task(s);
    if (t == NULL) {
        return;
    }
    int64_t began = now(s);
    coord_text task = text_of(t, text, sizeof text);
    coord_status rc =
        t->role == COORD_COLLECTOR
            ? comm_coordinator_send_collector_task(s->k.c, task, worker, &err)
            : comm_coordinator_send_learner_task(s->k.c, task, worker, &err);
    t->accepted = rc == COORD_OK;
    t->refused = rc != COORD_OK;
    if (rc == COORD_OK && worker[0] == '\0') {
        story_complain(s, "send of %s: accepted by nobody", t->id);
    }
    /* Whatever its workers do to it is told here. */
    bool any = rc == COORD_ERR_BUSY || rc == COORD_ERR_TIMEOUT || rc == COORD_ERR_LOST ||
               rc == COORD_ERR_REFUSED || rc == COORD_ERR_PROTOCOL ||
               rc == COORD_ERR_CANCELED || rc == COORD_ERR_TOO_BIG;
    judge(s, "send", began, s->send_limit_ms, any ? COORD_OK : rc, COORD_OK, COORD_OK,
          &err);
}

static void cancel(story *s)
{
    coord_error err = {0};
    int64_t began = now(s);
    coord_status rc = comm_coordinator_cancel_task(s->k.c, some_id(s), &err);
    judge(s, "cancel_task", began, PATIENCE_MS, rc, COORD_ERR_NOT_FOUND,
          COORD_ERR_TIMEOUT, &err);
}

static void data_ready(story *s)
{
    coord_error err = {0};
    int64_t began = now(s);
    coord_status rc = comm_coordinator_data_ready(s->k.c, BUFFERS[draw(3)], &err);
    judge(s, "data_ready", began, PATIENCE_MS, rc, COORD_ERR_TIMEOUT, COORD_OK, &err);
}

static void status(story *s)
{
    coord_error err = {0};
    char *text = NULL;
    int64_t began = now(s);
    coord_status rc = comm_coordinator_status(s->k.c, &text, &err);
    if ((rc == COORD_OK) != (text != NULL)) {
        story_complain(s, "status: %s, and %s text", coord_status_str(rc),
                       text == NULL ? "no" : "a");
    }
    coord_free(text);
    judge(s, "status", began, PATIENCE_MS, rc, COORD_ERR_TIMEOUT, COORD_OK, &err);
}

static void why(story *s)
{
    coord_error err = {0};
    char *text = NULL;
    int64_t began = now(s);
    coord_status rc = comm_coordinator_why(s->k.c, some_id(s), &text, &err);
    coord_free(text);
    judge(s, "why", began, PATIENCE_MS, rc, COORD_ERR_NOT_FOUND, COORD_ERR_TIMEOUT, &err);
}

/* Waits as long as it may, or is refused where it can't. */
static void wait_for(story *s, bool in_callback)
{
    coord_error err = {0};
    int64_t limit_ms = draw(3) == 0 ? 0 : (int64_t)draw(20000);
    int64_t began = now(s);
    bool all = draw(2) == 0;
    coord_status rc =
        all ? comm_coordinator_wait(s->k.c, limit_ms, &err)
            : comm_coordinator_wait_task(s->k.c, some_id(s), limit_ms, &err);
    if (in_callback && rc == COORD_OK) {
        story_complain(s, "wait in a callback answered OK");
    }
    judge(s, all ? "wait" : "wait_task", began, in_callback ? 0 : limit_ms, rc,
          in_callback ? COORD_ERR_STATE : COORD_ERR_TIMEOUT, COORD_OK, &err);
}

static void get_delivery(story *s)
{
    comm_coordinator_delivery d = {.size = sizeof d};
    if (comm_coordinator_get_delivery(s->k.c, &d, NULL) != COORD_ERR_STATE) {
        story_complain(s, "get_delivery outside of callbacks is not COORD_ERR_STATE");
    }
}

bool story_close(story *s)
{
    coord_error err = {0};
    int64_t began = now(s);
    s->closing = true;
    coord_status rc = comm_coordinator_close(s->k.c, &err);
    s->k.closed = s->k.closed || rc == COORD_OK;
    judge(s, "close", began, s->close_limit_ms, rc, COORD_ERR_TIMEOUT, COORD_OK, &err);
    return rc == COORD_OK;
}

/* ---- threads ---- */

static void call_something(story *s)
{
    switch (draw(13)) {
    case 12:
        why(s);
        break;
    case 0:
    case 1:
    case 2:
        send(s);
        break;
    case 3:
    case 4:
        post(s, false);
        break;
    case 5:
        cancel(s);
        break;
    case 6:
        data_ready(s);
        break;
    case 7:
        status(s);
        break;
    case 8:
        get_delivery(s);
        break;
    default:
        wait_for(s, false);
        break;
    }
}

static void run_host(void *user)
{
    story_host *h = user;
    story *s = h->story;
    for (; h->calls > 0; h->calls--) {
        if (coord_sim_run_for(s->k.sim, (int64_t)draw(3000), NULL) != COORD_OK) {
            story_complain(s, "a thread can't sleep");
        }
        call_something(s);
    }
}

void story_start_host(story *s, int calls)
{
    story_host *h = &s->hosts[s->host_count++];
    *h = (story_host){.story = s, .calls = calls};
    assert_int_equal(coord_sim_thread_start(s->k.sim, run_host, h, &h->thread, NULL),
                     COORD_OK);
}

void story_join_hosts(story *s)
{
    for (int i = 0; i < s->host_count; i++) {
        if (coord_sim_thread_join(s->hosts[i].thread, 900000, NULL) != COORD_OK) {
            story_complain(s, "a thread of the host hangs, with %d calls left",
                           s->hosts[i].calls);
        }
    }
    s->host_count = 0;
}

/* ---- callbacks ---- */

static bool is_liar(story *s, const char *worker)
{
    for (int i = 0; i < s->k.worker_count; i++) {
        if (strcmp(s->k.workers[i].id, worker) == 0) {
            return s->liar_at[i] != NULL;
        }
    }
    return false;
}

/* Which worker sent a sample, and its number: "c0-3". */
static void note_sample(story *s, story_task *t, const char *detail)
{
    char worker[32];
    int number = 0;
    if (sscanf(detail, "%*s %31[^- ]-%d", worker, &number) != 2 ||
        strcmp(worker, t->worker) != 0 || s->short_of_memory) {
        t->next_sample = -1; /* a liar's; or its worker may fail with it half done */
    } else if (t->next_sample > 0 && number != t->next_sample++) {
        story_complain(s, "task %s: sample %s, number %d was due", t->id, detail,
                       t->next_sample - 1);
    }
}

/* The same delivery comes once; later ones have higher numbers. */
static void note_delivery(story *s, story_task *t, const cluster_event *e)
{
    comm_coordinator_delivery d = {.size = sizeof d};
    if (comm_coordinator_get_delivery(s->k.c, &d, NULL) != COORD_OK) {
        story_complain(s, "task %s: %s has no delivery", t->id, e->name);
        return;
    }
    bool restart = strcmp(e->name, "restart") == 0;
    bool sample = strcmp(e->name, "send_data") == 0;
    bool later = d.attempt > t->attempt ||
                 (d.attempt == t->attempt &&
                  (d.sequence > t->sequence || (!sample && d.sequence == t->sequence)));
    if (!later || d.attempt == 0 ||
        (d.sequence == 0 && !restart && strcmp(e->name, "fail") != 0)) {
        story_complain(s, "task %s: %s is of attempt %u, sequence %llu, after %u, %llu",
                       t->id, e->name, d.attempt, (unsigned long long)d.sequence,
                       t->attempt, (unsigned long long)t->sequence);
    }
    t->attempt = d.attempt;
    t->sequence = d.sequence;
}

/* Members come and go. */
static bool note_member(story *s, const cluster_event *e)
{
    if (strcmp(e->name, "increase") == 0) {
        s->increases++;
        return true;
    }
    if (strcmp(e->name, "decrease") == 0) {
        s->decreases++;
        return true;
    }
    return false;
}

static void on_note(cluster *k, const cluster_event *e, void *user)
{
    story *s = user;
    story_task *t = find(s, e->task);
    (void)k;
    if (note_member(s, e)) {
        return;
    }
    if (t == NULL || t->refused || t->ends > 0) {
        story_complain(s, "%s of %s, which %s", e->name, e->task,
                       t == NULL     ? "nobody sent"
                       : t->ends > 0 ? "has ended"
                                     : "was refused");
        return;
    }
    note_delivery(s, t, e);
    t->callbacks++;
    if (strcmp(e->name, "start") == 0) {
        (void)snprintf(t->worker, sizeof t->worker, "%.31s", e->detail);
        t->next_sample = is_liar(s, e->detail) ? -1 : 1;
    } else if (strcmp(e->name, "send_data") == 0) {
        note_sample(s, t, e->detail);
    } else if (strcmp(e->name, "finish") == 0) {
        t->finished = true;
        t->ends++;
    } else if (strcmp(e->name, "fail") == 0) {
        t->ends++;
    }
}

static void call_in_callback(cluster *k, const char *name, const char *task_id,
                             void *user)
{
    story *s = user;
    coord_error err = {0};
    (void)k;
    (void)name;
    (void)task_id;
    if (draw(6) > 0 || s->destroyed) {
        return;
    }
    switch (draw(6)) {
    case 0:
        if (s->task_count < s->tasks_wanted) {
            post(s, false);
        }
        break;
    case 1:
        if (draw(3) == 0) {
            cancel(s);
        }
        break;
    case 2:
        data_ready(s);
        break;
    case 3:
        if (!s->is_inline) {
            status(s);
        }
        break;
    case 4:
        wait_for(s, true);
        break;
    default:
        if (comm_coordinator_close(s->k.c, &err) != COORD_ERR_STATE) {
            story_complain(s, "close in a callback is not COORD_ERR_STATE");
        }
        break;
    }
}

void story_watch(story *s)
{
    s->k.on_note = on_note;
    s->k.on_note_user = s;
    s->k.on_event = call_in_callback;
    s->k.on_event_user = s;
}
