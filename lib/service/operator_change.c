#include "base/alloc.h"
#include "base/error.h"
#include "service/operator_server.h"

/* What makes a difference at the server: sent, and, when its answer does not come, made
 * out from the lists.
 *
 * Creating is additive, so nothing that may have arrived is sent again as it is. Two
 * lists in a row, settle_ms apart, that show the same part of the change mean that the
 * server is done with it; then the rest is sent. With v2alpha1 the list changes only when
 * the job has been restarted, and nobody knows when that is: there the list can confirm a
 * change, but not deny it.
 *
 * A report is sent pod by pod: in a longer one an unknown name would hide what became of
 * the others. A mark keeps a pod from being replaced twice, which is what the server does
 * while its own list still has it. */

static void finish_with(coordi_operator_call *call, coord_status status, const char *text)
{
    (void)coordi_fail(&call->failure, status, "operator server %s: %s",
                      call->op->settings.place, text);
    call->attempts = 0;
    call->in_doubt = false;
    coordi_operator_finish(call, status);
}

static void finish_nomem(coordi_operator_call *call)
{
    (void)coordi_fail_nomem(&call->failure, call->what);
    coordi_operator_finish(call, COORD_ERR_NOMEM);
}

/* ---- marks ---- */

/* Never NULL: the serial of the report, and whether its outcome is in doubt. */
static void *mark_value(uint64_t serial, bool in_doubt)
{
    return (void *)(uintptr_t)(serial << 1 | (in_doubt ? 1 : 0));
}

static bool put_mark(coordi_operator_call *call, bool in_doubt)
{
    coordi_operator *op = call->op;
    return coordi_map_put(&op->marks, call->names[call->name_at],
                          mark_value(++op->serial, in_doubt));
}

static void take_mark(coordi_operator_call *call)
{
    (void)coordi_map_remove(&call->op->marks, call->names[call->name_at]);
}

/* Nothing of the report can have had an effect. */
static void take_mark_of_failed(coordi_operator_call *call)
{
    if (call->kind == COORDI_OPERATOR_FAILED) {
        take_mark(call);
    }
}

void coordi_operator_sweep(coordi_operator *op, const coord_operator_answer *list,
                           uint64_t before_serial)
{
    if (op->marks.count == 0 || !list->complete) {
        return;
    }
    for (size_t i = 0; i < op->marks.used; i++) {
        const coordi_map_entry *entry = &op->marks.entries[i];
        if (entry->value != NULL && (uintptr_t)entry->value >> 1 <= before_serial &&
            !coordi_operator_lists(list, entry->key)) {
            (void)coordi_map_remove(&op->marks, entry->key);
        }
    }
}

/* ---- sending ---- */

static void on_sent(const coordi_http_reply *reply, void *arg);

void coordi_operator_submit(coordi_operator_call *call)
{
    size_t len = 0;
    call->phase = COORDI_OPERATOR_SENDING;
    if (call->kind == COORDI_OPERATOR_FAILED && !put_mark(call, true)) {
        finish_nomem(call);
        return;
    }
    char *path = coordi_operator_path(call, call->api, false);
    char *body = coordi_operator_body(call, &len);
    if (body == NULL) {
        coordi_free(path);
        finish_nomem(call);
        return;
    }
    (void)coordi_operator_send(call, coordi_operator_method(call), path, body, len,
                               on_sent);
}

/* The next pod of a report that needs one; the end after the last. */
static void next_name(coordi_operator_call *call)
{
    coordi_operator *op = call->op;
    for (; call->name_at < call->name_count; call->name_at++) {
        const void *mark = coordi_map_get(&op->marks, call->names[call->name_at]);
        call->compared = false;
        if (mark == NULL) {
            coordi_operator_submit(call);
            return;
        }
        if (((uintptr_t)mark & 1) != 0) { /* an earlier call did not find out */
            call->in_doubt = true;
            call->phase = COORDI_OPERATOR_CONFIRMING;
            (void)coordi_fail(&call->failure, COORD_ERR_TIMEOUT,
                              "an earlier report of it was not answered");
            coordi_operator_look(call);
            return;
        }
    }
    coordi_operator_finish(call, COORD_OK);
}

/* The outcome of this one is known. */
static void name_done(coordi_operator_call *call)
{
    call->in_doubt = false;
    call->attempts = 0;
    call->name_at++;
    next_name(call);
}

/* ---- answers ---- */

static size_t size_of(const coord_operator_answer *answer)
{
    return answer->collector_count + answer->learner_count + answer->node_count;
}

/* What the server did, as it told; false: out of memory. */
static bool keep(coordi_operator_call *call, const coord_operator_answer *said, bool told)
{
    coord_operator_answer *to = call->so_far;
    coordi_operator_answer_say_as(to, said);
    to->complete = to->complete && said->complete && told;
    return coordi_operator_answer_merge(to, said);
}

static void on_yes(coordi_operator_call *call)
{
    call->in_doubt = false;
    if (call->kind != COORDI_OPERATOR_FAILED) {
        coordi_operator_finish(call, COORD_OK);
    } else if (!put_mark(call, false)) {
        finish_nomem(call);
    } else {
        name_done(call);
    }
}

/* Its answer will not come. */
static void doubt(coordi_operator_call *call)
{
    call->in_doubt = true;
    call->compared = false;
    coordi_operator_settle(call);
}

/* "pod: default/x not exists in cache", "module x is not owned by any DIJob" */
static bool names_the_pod(const coordi_operator_call *call, const char *message)
{
    const char *name = call->names[call->name_at];
    const size_t len = strlen(name);
    for (const char *at = strstr(message, name); at != NULL; at = strstr(at + 1, name)) {
        if (at > message && (at[-1] == '/' || at[-1] == ' ') && at[len] == ' ') {
            return true;
        }
    }
    return false;
}

/* It said no. `told`: and what it did before that. */
static void on_no(coordi_operator_call *call, int http_status, bool told, size_t done)
{
    const bool v1 = call->api == COORDI_OPERATOR_V1;
    const bool failed = call->kind == COORDI_OPERATOR_FAILED;
    if (failed && http_status == 404 &&
        names_the_pod(call, call->failure.cause)) { /* it is not there any more */
        call->so_far->unknown++;
        take_mark(call);
        name_done(call);
        return;
    }
    if (failed && done > 0) { /* replaced, and yet not all that belongs to it */
        if (!put_mark(call, false)) {
            finish_nomem(call);
            return;
        }
    } else if (failed) {
        take_mark(call);
    } else if (http_status >= 500 && !told && v1) {
        doubt(call);
        return;
    }
    const bool may_pass =
        done == 0 && (http_status == 404 || (http_status >= 500 && v1 && !failed));
    if (may_pass) {
        coordi_operator_again(call);
    } else {
        coordi_operator_finish(call, call->failure.status);
    }
}

/* It is no answer of this server. */
static void on_nonsense(coordi_operator_call *call, int http_status, coord_status status,
                        bool no_route)
{
    coordi_operator *op = call->op;
    if (http_status >= 300 && http_status < 500) { /* nothing was done */
        if (no_route && op->settings.wanted == COORDI_OPERATOR_AUTO) {
            op->api = COORDI_OPERATOR_AUTO;
        }
        take_mark_of_failed(call);
        coordi_operator_finish(call, status);
    } else {
        doubt(call);
    }
}

static void on_sent(const coordi_http_reply *reply, void *arg)
{
    coordi_operator_call *call = arg;
    const coordi_operator_settings *s = &call->op->settings;
    call->http = NULL;
    call->attempts++;
    if (reply->status != COORD_OK) {
        (void)coordi_fail_because(&call->failure, reply->status, reply->error, "%s",
                                  call->what);
        if (reply->undelivered) {
            take_mark_of_failed(call);
            coordi_operator_again(call);
        } else {
            doubt(call);
        }
        return;
    }
    const coordi_operator_reading how = {.api = call->api,
                                         .name_space = s->name_space,
                                         .name = s->name,
                                         .max_replicas = s->max_replicas,
                                         .what = call->what};
    coordi_operator_verdict said;
    coord_error err;
    const coord_status rc =
        coordi_operator_read(&how, reply->http_status, reply->body, &said, &err);
    if (rc != COORD_OK) {
        call->failure = err;
    }
    if (said.answer == NULL) {
        on_nonsense(call, reply->http_status, rc, said.no_route);
        return;
    }
    const size_t done = size_of(said.answer);
    const bool kept = keep(call, said.answer, said.told);
    coord_operator_answer_destroy(said.answer);
    if (!kept) {
        finish_nomem(call);
    } else if (rc == COORD_OK) {
        on_yes(call);
    } else {
        on_no(call, reply->http_status, said.told, done);
    }
}

/* ---- comparing ---- */

static void count_lists(const coord_operator_answer *answer,
                        size_t count[COORDI_OPERATOR_LISTS])
{
    count[COORDI_OPERATOR_COLLECTORS] = answer->collector_count;
    count[COORDI_OPERATOR_LEARNERS] = answer->learner_count;
    count[COORDI_OPERATOR_NODES] = answer->node_count + answer->pending;
}

/* Has all that was wanted come about? Of a delete there may have been fewer. */
static bool is_all(const coordi_operator_call *call,
                   const size_t seen[COORDI_OPERATOR_LISTS])
{
    size_t before[COORDI_OPERATOR_LISTS];
    count_lists(call->before, before);
    for (int list = 0; list < COORDI_OPERATOR_NODES; list++) {
        size_t wanted = (size_t)call->wish.count[list];
        if (call->kind == COORDI_OPERATOR_DELETE && wanted > before[list]) {
            wanted = before[list];
        }
        if (seen[list] < wanted) {
            return false;
        }
    }
    return true;
}

/* v1alpha1: which pods came or went is the change as far as it was carried out. */
static void compare_pods(coordi_operator_call *call, const coord_operator_answer *now)
{
    const bool created = call->kind == COORDI_OPERATOR_POST;
    coord_operator_answer *seen = coordi_operator_answer_create(COORDI_OPERATOR_V1);
    if (seen == NULL ||
        !coordi_operator_answer_difference(seen, created ? now : call->before,
                                           created ? call->before : now)) {
        coord_operator_answer_destroy(seen);
        finish_nomem(call);
        return;
    }
    size_t count[COORDI_OPERATOR_LISTS];
    count_lists(seen, count);
    const bool same = call->compared && memcmp(count, call->seen, sizeof count) == 0;
    memcpy(call->seen, count, sizeof count);
    call->compared = true;
    seen->inferred = true;
    coord_operator_answer_destroy(call->so_far);
    call->so_far = seen;
    if (is_all(call, count)) {
        call->in_doubt = false;
        coordi_operator_finish(call, COORD_OK);
    } else if (same) {
        COORDI_LOG(&call->op->log, COORD_LOG_INFO,
                   "%s was not answered: collectors=%zu learners=%zu of %d and %d are "
                   "seen, the rest is asked for",
                   call->what, count[0], count[1], (int)call->wish.count[0],
                   (int)call->wish.count[1]);
        call->in_doubt = false;
        coordi_operator_submit(call);
    } else {
        coordi_operator_settle(call);
    }
}

static void compare_nodes(coordi_operator_call *call, const coord_operator_answer *now)
{
    size_t before[COORDI_OPERATOR_LISTS];
    size_t after[COORDI_OPERATOR_LISTS];
    count_lists(call->before, before);
    count_lists(now, after);
    const size_t change = (size_t)call->wish.count[COORDI_OPERATOR_NODES];
    const size_t from = before[COORDI_OPERATOR_NODES];
    const size_t to = after[COORDI_OPERATOR_NODES];
    const bool there =
        call->kind == COORDI_OPERATOR_POST ? to == from + change : to + change == from;
    if (there) {
        call->so_far->inferred = true;
        call->in_doubt = false;
        coordi_operator_finish(call, COORD_OK);
    } else {
        coordi_operator_settle(call);
    }
}

/* Was the pod replaced whose report was not answered? */
static void compare_name(coordi_operator_call *call, const coord_operator_answer *now)
{
    if (!coordi_operator_lists(now, call->names[call->name_at])) {
        call->so_far->inferred = true;
        take_mark(call);
        name_done(call);
    } else if (call->compared) {
        call->in_doubt = false;
        coordi_operator_submit(call);
    } else {
        call->compared = true;
        coordi_operator_settle(call);
    }
}

/* From a list that is not complete nothing follows: who is absent may be there. */
static bool can_compare(const coordi_operator_call *call,
                        const coord_operator_answer *now)
{
    return now->complete && call->asked == call->api &&
           (call->kind == COORDI_OPERATOR_FAILED || call->before->complete);
}

static void compare(coordi_operator_call *call, const coord_operator_answer *now)
{
    if (call->before == NULL || !can_compare(call, now)) {
        coordi_operator_settle(call);
    } else if (call->kind == COORDI_OPERATOR_FAILED) {
        compare_name(call, now);
    } else if (call->api == COORDI_OPERATOR_V2) {
        compare_nodes(call, now);
    } else {
        compare_pods(call, now);
    }
}

/* ---- the beginning ---- */

/* Can it be had of this API? NULL: yes; else why not. */
static const char *objection(const coordi_operator_call *call)
{
    const int32_t *count = call->wish.count;
    if (call->api == COORDI_OPERATOR_V2) {
        return call->kind == COORDI_OPERATOR_FAILED
                   ? "it speaks v2alpha1, which cannot replace single pods"
               : count[COORDI_OPERATOR_COLLECTORS] + count[COORDI_OPERATOR_LEARNERS] > 0
                   ? "it speaks v2alpha1, which knows nodes, no collectors and learners"
                   : NULL;
    }
    if (call->kind == COORDI_OPERATOR_FAILED) {
        return NULL;
    }
    return count[COORDI_OPERATOR_NODES] > 0
               ? "it speaks v1alpha1, which knows collectors and learners, no nodes"
           : call->op->settings.aggregator
               ? "an aggregator cannot create or delete pods, only its coordinator can"
               : NULL;
}

static void begin(coordi_operator_call *call, coord_operator_answer *list)
{
    call->api = call->asked;
    const char *why = objection(call);
    coord_operator_answer_destroy(call->before);
    call->before = list;
    if (why != NULL) {
        finish_with(call, COORD_ERR_UNSUPPORTED, why);
        return;
    }
    call->so_far = coordi_operator_answer_create(call->api);
    if (call->so_far == NULL) {
        finish_nomem(call);
    } else if (call->kind == COORDI_OPERATOR_FAILED) {
        next_name(call);
    } else {
        coordi_operator_submit(call);
    }
}

void coordi_operator_change(coordi_operator_call *call, coord_operator_answer *list)
{
    if (call->phase == COORDI_OPERATOR_CONFIRMING) {
        compare(call, list);
        coord_operator_answer_destroy(list);
    } else {
        begin(call, list);
    }
}
