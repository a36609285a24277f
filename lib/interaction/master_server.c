/* What slaves ask of a master. The order of the checks is the protocol's. */
#include "base/alloc.h"
#include "base/error.h"
#include "interaction/endpoint.h"
#include "interaction/master.h"

static const coord_text NO_DATA = {NULL, 0};

static void answer(coord_master *m, coordi_http_call *call, coordi_say say,
                   const char *message)
{
    coordi_endpoint_answer(m->loop, call, say, message, NO_DATA);
}

static const char *header(coord_master *m, coordi_http_call *call, const char *name)
{
    return m->loop->env->call_header(call, name);
}

/* Who sent this? NULL with COORDI_SAY_NOTHING: a slave that we let go, and still humour.
 */
static coordi_say check_slave(coord_master *m, coordi_http_call *call,
                              coord_connection **who)
{
    *who = NULL;
    coordi_say say =
        coordi_wire_check_channel(header(m, call, "Channel"), m->options.channel);
    if (say != COORDI_SAY_NOTHING) {
        return say;
    }
    const char *token = header(m, call, "Token");
    if (token == NULL) {
        return COORDI_SAY_NO_SLAVE_TOKEN;
    }
    *who = coordi_map_get(&m->by_token, token);
    if (*who == NULL && !coordi_master_humours(m, !call->marked, token)) {
        return COORDI_SAY_WRONG_SLAVE_TOKEN;
    }
    return COORDI_SAY_NOTHING;
}

static void on_heartbeat(coordi_http_call *call, void *owner)
{
    coord_master *m = owner;
    coord_connection *c;
    coordi_say say = check_slave(m, call, &c);
    if (say == COORDI_SAY_NOTHING && c == NULL && call->marked) {
        say = COORDI_SAY_WRONG_SLAVE_TOKEN; /* a libcoord is free then; nobody else would
                                               be */
    } else if (say == COORDI_SAY_NOTHING) {
        say = COORDI_SAY_HEARTBEAT;
        if (c != NULL) {
            coordi_connection_heard(c);
        }
    }
    answer(m, call, say, NULL);
}

/* A result is for a task of the slave that sends it, and for one that has not settled.
 * Everything else is counted and dropped: an error would end a Python slave's thread. */
static coord_task *find_task(coord_master *m, coord_connection *from, const char *id)
{
    coord_task *task = from == NULL ? NULL : coordi_map_get(&m->tasks, id);
    if (task == NULL && from != NULL && m->keeper.claim != NULL) {
        task = m->keeper.claim(from, id, m->keeper.arg);
    }
    if (task == NULL || task->connection != from) {
        m->late_results++;
        COORDI_LOG(&m->log, COORD_LOG_INFO, "dropped result wire_task=%s slave=%s", id,
                   from == NULL ? "(gone)" : from->id);
        return NULL;
    }
    return task;
}

static void on_too_big(coord_master *m, coordi_http_call *call, coord_connection *from)
{
    char id[COORDI_UUID_SIZE];
    coord_error why;
    coord_task *task =
        coordi_wire_prefix_id(call->body, id) ? find_task(m, from, id) : NULL;
    answer(m, call, COORDI_SAY_RESULT, NULL);
    if (task != NULL) {
        (void)coordi_fail(&why, COORD_ERR_TOO_BIG,
                          "task %s on '%s': its result is over max_body_bytes (%zu)", id,
                          from->id, m->options.max_body_bytes);
        coordi_task_fail_report(task, &why);
    }
}

/* ---- results that are written down first ---- */

static void answer_held(coordi_held *held)
{
    coord_master *m = held->task->connection->master;
    if (!coordi_task_report(held->task, held->completed, held->result)) {
        m->late_results++;
    }
    answer(m, held->call, COORDI_SAY_RESULT, NULL);
    coord_task_unref(held->task);
    coordi_free(held);
}

void coordi_master_release(coordi_held *held)
{
    coord_task *task = held->task;
    coord_task_ref(task);
    answer_held(held);
    /* What was sent again meanwhile is known now. */
    for (coordi_link *link = coordi_list_pop(&task->held); link != NULL;
         link = coordi_list_pop(&task->held)) {
        answer_held(COORDI_ITEM(link, coordi_held, link));
    }
    coord_task_unref(task);
}

/* True: it is answered later. */
static bool hold(coord_master *m, coordi_http_call *call, coord_task *task,
                 bool completed, coord_text result)
{
    coordi_held *held =
        task->kept && m->keeper.keep != NULL ? coordi_zalloc(sizeof *held) : NULL;
    if (held == NULL) {
        return false;
    }
    *held = (coordi_held){.call = call, .completed = completed, .result = result};
    held->task = coord_task_ref(task);
    if (task->keeping) {
        coordi_list_append(&task->held, &held->link);
        return true;
    }
    task->keeping = m->keeper.keep(held, m->keeper.arg);
    if (!task->keeping) {
        coord_task_unref(task);
        coordi_free(held);
    }
    return task->keeping;
}

static void on_result(coordi_http_call *call, coord_master *m, bool completed)
{
    coord_connection *from;
    coordi_message message;
    char id[COORDI_UUID_SIZE];
    char why[256] = "";

    coordi_say say = check_slave(m, call, &from);
    if (say != COORDI_SAY_NOTHING) {
        answer(m, call, say, NULL);
        return;
    }
    if (from != NULL) {
        coordi_connection_heard(from);
    }
    if (call->too_big) {
        on_too_big(m, call, from);
        return;
    }
    coord_text body = coordi_wire_seen_body(header(m, call, "Content-Type"), call->body);
    say = coordi_wire_read_result(body, &message, id, why, sizeof why);
    if (say != COORDI_SAY_NOTHING) {
        answer(m, call, say, why[0] == '\0' ? NULL : why);
        return;
    }
    coord_task *task = find_task(m, from, id);
    if (task != NULL && hold(m, call, task, completed, message.result)) {
        return;
    }
    if (task != NULL) {
        (void)coordi_task_report(task, completed, message.result);
    }
    answer(m, call, COORDI_SAY_RESULT, NULL); /* last: the result borrows from the call */
}

static void on_complete(coordi_http_call *call, void *owner)
{
    on_result(call, owner, true);
}

static void on_fail(coordi_http_call *call, void *owner)
{
    on_result(call, owner, false);
}

static bool check_self(coord_master *m, coordi_http_call *call)
{
    const char *token = header(m, call, "Token");
    coordi_say say = token == NULL ? COORDI_SAY_NO_OWN_MASTER_TOKEN
                     : coordi_endpoint_token_is(token, m->token)
                         ? COORDI_SAY_NOTHING
                         : COORDI_SAY_WRONG_OWN_MASTER_TOKEN;
    if (say != COORDI_SAY_NOTHING) {
        answer(m, call, say, NULL);
    }
    return say == COORDI_SAY_NOTHING;
}

static void on_ping(coordi_http_call *call, void *owner)
{
    if (check_self(owner, call)) {
        answer(owner, call, COORDI_SAY_PONG, NULL);
    }
}

static void on_shutdown(coordi_http_call *call, void *owner)
{
    coord_master *m = owner;
    if (check_self(m, call)) {
        answer(m, call, COORDI_SAY_SHUTDOWN_LATER, NULL);
        m->closing = true;
        m->deaf = true;
    }
}

void coordi_master_on_call(coordi_http_call *call, void *arg)
{
    static const coordi_route ROUTES[] = {
        {"GET", "/slave/heartbeat", on_heartbeat},
        {"PUT", "/slave/task/complete", on_complete},
        {"PUT", "/slave/task/fail", on_fail},
        {"GET", "/ping", on_ping},
        {"DELETE", "/shutdown", on_shutdown},
    };
    coord_master *m = arg;
    if (m->deaf) {
        answer(m, call, COORDI_SAY_SHUTTING_DOWN, NULL);
        return;
    }
    coordi_endpoint_dispatch(m->loop, ROUTES, sizeof ROUTES / sizeof ROUTES[0], call, m);
}
