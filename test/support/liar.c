#include "support/liar.h"

#include "base/alloc.h"
#include "codec/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PORT = 22270, BEAT_MS = 3000, TIMEOUT_MS = 10000, BIG = 2 << 20 };

static const char YES[] =
    "{\"success\": true, \"code\": 0, \"message\": \"\", \"data\": null}";

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

static uint64_t draw(liar *l, uint64_t count)
{
    return l->draw(count);
}

static bool lies_now(liar *l)
{
    return draw(l, 100) < l->lies;
}

/* ---- what it sends ---- */

static void forget(liar_deed *d)
{
    const coordi_env *env = d->liar->w->loop->env;
    env->timer_cancel(d->liar->w->loop, &d->timer);
    env->peer_destroy(d->peer);
    coordi_free(d->body);
    memset(d, 0, sizeof *d);
}

static void on_reply(const coordi_http_reply *reply, void *arg)
{
    (void)reply;
    forget(arg);
}

static void stranger(liar *l, char token[COORDI_TOKEN_SIZE])
{
    for (int i = 0; i < COORDI_TOKEN_SIZE - 1; i++) {
        token[i] = "0123456789abcdef"[draw(l, 16)];
    }
    token[COORDI_TOKEN_SIZE - 1] = '\0';
}

static void send(coordi_timer *timer)
{
    liar_deed *d = COORDI_ITEM(timer, liar_deed, timer);
    liar *l = d->liar;
    const coordi_env *env = l->w->loop->env;
    char token[COORDI_TOKEN_SIZE];
    memcpy(token, l->token, sizeof token);
    if (d->stranger) {
        stranger(l, token);
    }
    coordi_http_header headers[] = {{"Channel", draw(l, 200) == 0 ? "7" : "0"},
                                    {"Token", token}};
    coordi_http_spec spec = {.method = d->method,
                             .path = d->path,
                             .body = d->body,
                             .body_len = d->body == NULL ? 0 : strlen(d->body),
                             .timeout_ms = TIMEOUT_MS,
                             .fresh = draw(l, 2) == 0,
                             .done = on_reply,
                             .arg = d};
    coordi_http_request *request;
    if (env->peer_create(l->w->loop, &l->master, headers, 2, &d->peer, NULL) !=
        COORD_OK) {
        forget(d);
        return;
    }
    d->body = NULL; /* given away */
    if (env->http_send(d->peer, &spec, &request, NULL) != COORD_OK) {
        forget(d);
    }
}

/* Takes the body over. */
static void plan(liar *l, const char *method, const char *path, char *body,
                 bool with_strange_token, int64_t delay_ms)
{
    for (size_t i = 0; i < LIAR_DEEDS_MAX; i++) {
        liar_deed *d = &l->deeds[i];
        if (!d->taken && l->master.port != 0) {
            *d = (liar_deed){.liar = l,
                             .timer.fire = send,
                             .taken = true,
                             .method = method,
                             .path = path,
                             .body = body,
                             .stranger = with_strange_token};
            coordi_timer_in(l->w->loop, &d->timer, delay_ms);
            return;
        }
    }
    coordi_free(body); /* it is busy enough */
}

/* ---- results ---- */

static const char *const RESULTS[] = {
    "null",
    "[]",
    "17",
    "\"text\"",
    "NaN",
    "{}",
    "{\"data_id\": 5}",
    "{\"data_id\": null}",
    "{\"data_id\": \"\\u0000\", \"buffer_id\": 3}",
    "{\"data_id\": \"a\", \"data_id\": [1], \"buffer_id\": {\"b\": [1]}}",
    "{\"data_id\": \"a\", \"buffer_id\": \"\\ud800\"}",
    "{\"collector_done\": \"yes\"}",
    "{\"batch_size\": -1}",
    "{\"batch_size\": \"many\", \"cur_learner_iter\": 0}",
    "{\"batch_size\": 1e999, \"cur_learner_iter\": -0}",
    "{\"batch_size\": 99999999999999999999, \"cur_learner_iter\": 0}",
    "{\"batch_size\": 1, \"cur_learner_iter\": \"soon\"}",
    "{\"info\": NaN}",
    "{\"info\": \"\\ud800\", \"buffer_id\": null}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
};

static const char *const BODIES[] = {
    "",
    "{",
    "[",
    "null",
    "\xff\xfe",
    "{\"task\": {}}",
    "{\"task\": \"x\", \"result\": {}}",
    "{\"task\": {\"id\": 5}, \"result\": {}}",
    "{\"task\": {\"id\": \"no uuid\"}, \"result\": {}}",
    "{\"task\": {\"id\": \"00000000-0000-0000-0000-000000000000\"}, \"result\": {}}",
    "{\"task\": {\"id\": \"00000000-0000-0000-0000-000000000000\"}}",
};

static char *body_of(const char *id, const char *result)
{
    coordi_buf body = {0};
    coordi_buf_addf(&body, "{\"task\": {\"id\": \"%s\"}, \"result\": %s}", id, result);
    return coordi_buf_take(&body, NULL);
}

static void report(liar *l, const char *id, const char *result, bool completed,
                   bool with_strange_token, int64_t delay_ms)
{
    plan(l, "PUT", completed ? "/slave/task/complete" : "/slave/task/fail",
         body_of(id, result), with_strange_token, delay_ms);
}

static void lie_in_result(liar *l, const char *id, const char *result, int64_t delay_ms)
{
    static const char NOBODY[] = "12345678-1234-4234-8234-123456789abc";
    const char *old = l->ids[draw(l, LIAR_IDS_MAX)];
    const int64_t later_ms = delay_ms + (int64_t)draw(l, 3000);
    switch (draw(l, 10)) {
    case 0:
        report(l, NOBODY, result, true, false, delay_ms);
        break;
    case 1:
        report(l, id, result, true, false, delay_ms);
        report(l, id, result, true, false, later_ms);
        break;
    case 2:
        report(l, old, result, draw(l, 2) == 0, false, delay_ms);
        report(l, id, result, true, false, later_ms);
        break;
    case 3:
        report(l, id, result, true, false, delay_ms);
        report(l, id, result, false, false, delay_ms);
        break;
    case 4:
    case 5:
        report(l, id, RESULTS[draw(l, COUNT(RESULTS))], true, false, delay_ms);
        break;
    case 6:
        plan(l, "PUT", "/slave/task/complete",
             coordi_strdup(BODIES[draw(l, COUNT(BODIES))]), false, delay_ms);
        report(l, id, result, true, false, later_ms);
        break;
    case 7:
        report(l, id, result, true, true, delay_ms);
        break;
    case 8:
        report(l, id, "{\"message\": \"no\"}", false, false, delay_ms);
        break;
    default:
        break; /* it never says a word */
    }
}

static bool asks_for(coord_text data, const char *name)
{
    return data.len > 0 && memmem(data.ptr, data.len, name, strlen(name)) != NULL;
}

static const char *honest_result(liar *l, coord_text data)
{
    static char text[96];
    if (asks_for(data, "_start_task\"")) {
        l->steps = 0;
    }
    if (asks_for(data, "\"resource\"")) {
        return "{\"cpu\": 1}";
    }
    if (asks_for(data, "\"collector_data_task\"")) {
        (void)snprintf(text, sizeof text, "{\"data_id\": \"liar-%d\"}", l->steps);
        return l->steps++ == 3 ? "{\"collector_done\": true}" : text;
    }
    if (asks_for(data, "\"learner_get_data_task\"")) {
        (void)snprintf(text, sizeof text, "{\"batch_size\": 4, \"cur_learner_iter\": %d}",
                       l->steps);
        return text;
    }
    if (asks_for(data, "\"learner_learn_task\"")) {
        return l->steps++ == 2 ? "{\"info\": {\"learner_done\": true}}"
                               : "{\"info\": {}}";
    }
    return "{\"message\": \"done\"}";
}

static void do_task(liar *l, coord_text body)
{
    coordi_message message;
    char id[COORDI_UUID_SIZE];
    char why[64];
    if (coordi_wire_read_new_task(body, &message, why, sizeof why) !=
            COORDI_SAY_NOTHING ||
        !coordi_wire_read_id(message.id, id)) {
        return;
    }
    const char *result = honest_result(l, message.data);
    const int64_t delay_ms = (int64_t)draw(l, 300);
    if (lies_now(l)) {
        lie_in_result(l, id, result, delay_ms);
    } else {
        report(l, id, result, true, false, delay_ms);
    }
    memcpy(l->ids[l->given++ % LIAR_IDS_MAX], id, sizeof id);
}

/* ---- beats ---- */

static void beat(coordi_timer *timer)
{
    liar *l = COORDI_ITEM(timer, liar, beat);
    const bool lie = lies_now(l);
    coordi_timer_in(l->w->loop, timer, BEAT_MS);
    switch (lie ? draw(l, 6) : 0) {
    case 0:
        plan(l, "GET", "/slave/heartbeat", NULL, false, 0);
        break;
    case 1:
        plan(l, "GET", "/slave/heartbeat", NULL, true, 0);
        break;
    case 2:
        plan(l, "PUT", "/slave/heartbeat", NULL, false, 0);
        plan(l, "GET", "/slave/heartbeat", coordi_strdup("not JSON"), false, 0);
        break;
    case 3:
        plan(l, "DELETE", "/shutdown", NULL, draw(l, 2) == 0, 0);
        break;
    case 4:
        plan(l, "POST", "/slave/../%00/x?y", coordi_strdup("{}"), false, 0);
        break;
    default:
        break; /* it skips one */
    }
}

/* ---- answers ---- */

static void respond(liar *l, coordi_http_call *call, int status, const char *body)
{
    l->w->loop->env->http_answer(call, status, coordi_strdup(body), strlen(body));
}

static void respond_at_length(liar *l, coordi_http_call *call)
{
    char *body = coordi_alloc(BIG);
    if (body != NULL) {
        memset(body, ' ', BIG);
    }
    l->w->loop->env->http_answer(call, 200, body, BIG);
}

static void lie_in_answer(liar *l, coordi_http_call *call)
{
    static const char *const TEXTS[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"success\": true}",
        "{\"success\": \"yes\", \"code\": \"0\"}",
        "{\"success\": true, \"code\": 1e99, \"message\": 5, \"data\": [}",
        "<!DOCTYPE HTML><title>500 Internal Server Error</title>",
    };
    static const int CODES[] = {-1,  101, 201, 202, 301, 302, 401,
                                501, 502, 503, 504, 601, 602, 9999};
    static const int STATUS[] = {200, 200, 200, 202, 204, 301, 404, 500, 503};
    char no[128];
    if (draw(l, 3) == 0 && l->held_count < LIAR_HELD_MAX) {
        l->held[l->held_count++] = call;
    } else if (draw(l, 40) == 0) {
        respond_at_length(l, call);
    } else if (draw(l, 2) == 0) {
        respond(l, call, STATUS[draw(l, COUNT(STATUS))], TEXTS[draw(l, COUNT(TEXTS))]);
    } else {
        (void)snprintf(no, sizeof no,
                       "{\"success\": false, \"code\": %d, \"message\": \"no\", "
                       "\"data\": {}}",
                       CODES[draw(l, COUNT(CODES))]);
        respond(l, call, STATUS[draw(l, COUNT(STATUS))], no);
    }
}

static void meet_master(liar *l, coordi_http_call *call)
{
    coordi_message message;
    char why[64];
    char text[COORDI_HOST_PORT_SIZE + 16];
    const char *token = l->w->loop->env->call_header(call, "Token");
    coordi_address master;
    if (token != NULL && strlen(token) < sizeof l->token &&
        coordi_wire_read_connect(call->body, &message, why, sizeof why) ==
            COORDI_SAY_NOTHING &&
        coordi_json_string(message.master, text, sizeof text) == COORD_OK &&
        coordi_address_read(text, strlen(text), &master, NULL) == COORD_OK) {
        l->master = master;
        (void)snprintf(l->token, sizeof l->token, "%s", token);
    }
}

static void on_call(coordi_http_call *call, void *arg)
{
    liar *l = arg;
    if (strcmp(call->path, "/connect") == 0) {
        meet_master(l, call);
    } else if (strcmp(call->path, "/task/new") == 0) {
        do_task(l, call->body);
    }
    if (lies_now(l)) {
        lie_in_answer(l, call);
    } else {
        respond(l, call, 200, YES);
    }
}

/* ---- life ---- */

void liar_begin(liar *l, cluster *k, cluster_worker *w,
                uint64_t (*chance)(uint64_t count), uint64_t lies)
{
    memset(l, 0, sizeof *l);
    l->k = k;
    l->w = w;
    l->draw = chance;
    l->lies = lies;
    l->beat.fire = beat;
    for (size_t i = 0; i < LIAR_IDS_MAX; i++) {
        (void)snprintf(l->ids[i], sizeof l->ids[i],
                       "00000000-0000-4000-8000-0000000000%02zu", i);
    }
    cluster_vacate(k, w->id);
    coordi_http_server_spec spec = {.host = w->host,
                                    .port = PORT,
                                    .max_body_bytes = 1 << 20,
                                    .max_inflight_bytes = 1 << 24,
                                    .on_call = on_call,
                                    .arg = l};
    assert_int_equal(w->loop->env->server_create(w->loop, &spec, &l->server, NULL),
                     COORD_OK);
    coordi_timer_in(w->loop, &l->beat, BEAT_MS);
}

void liar_end(liar *l)
{
    coord_sim_crash(l->k->sim, l->w->loop);
    l->w->loop->env->timer_cancel(l->w->loop, &l->beat);
    for (int i = 0; i < l->held_count; i++) {
        respond(l, l->held[i], 200, YES);
    }
    for (size_t i = 0; i < LIAR_DEEDS_MAX; i++) {
        if (l->deeds[i].taken) {
            forget(&l->deeds[i]);
        }
    }
    l->w->loop->env->server_destroy(l->server);
    cluster_crash(l->k, l->w->id);
}
