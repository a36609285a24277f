#include "codec/json.h"
#include "support/fake_operator_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What the real servers answer, in their words. */

enum { WHOLE = 1 << 30 };

typedef struct request {
    fake_operator *f;
    fake_kind kind;
    coord_text body;
    fake_reply *reply;
    int most;            /* pods that it gets done before it fails */
    coordi_buf lists[3]; /* of what was done */
} request;

/* ---- answers ---- */

static void say_text(fake_reply *reply, int status, const char *text)
{
    reply->status = status;
    reply->type = "text/plain; charset=utf-8";
    coordi_buf_adds(&reply->body, text);
}

/* The Content-Type's name is misspelt in the server, so this is what goes out. */
static void say(request *r, int status, const char *message, const char *data)
{
    coordi_buf *body = &r->reply->body;
    r->reply->status = status;
    r->reply->type = r->f->api == FAKE_V1 ? "text/plain; charset=utf-8"
                                          : "application/json; charset=utf-8";
    coordi_buf_addf(body, "{\"success\":%s,\"code\":%d,\"message\":",
                    status == 200 ? "true" : "false", status == 200 ? 0 : 1);
    coordi_buf_add_json(body, message, strlen(message));
    coordi_buf_addf(body, ",\"data\":%s}%s", data, r->f->api == FAKE_V1 ? "\n" : "");
}

static void add_id(const request *r, coordi_buf *list, const char *id)
{
    coordi_buf_adds(list, list->len == 0 ? "" : ",");
    coordi_buf_add_json(list, id, strlen(id));
    coordi_buf_adds(list, r->f->dicts ? ":{}" : "");
}

static void add_list(const request *r, coordi_buf *out, const coordi_buf *list, bool null)
{
    if (list->len == 0 && null) {
        coordi_buf_adds(out, "null");
        return;
    }
    coordi_buf_addf(out, "%c%.*s%c", r->f->dicts ? '{' : '[', (int)list->len,
                    list->len == 0 ? "" : list->ptr, r->f->dicts ? '}' : ']');
}

/* {"namespace":..., "coordinator":..., "collectors":..., "learners":...} */
static char *print_replicas(const request *r, bool filled)
{
    coordi_buf out = {0};
    coordi_buf_addf(&out, "{\"namespace\":\"%s\",\"coordinator\":\"%s\",\"collectors\":",
                    filled ? r->f->name_space : "", filled ? r->f->name : "");
    add_list(r, &out, &r->lists[FAKE_COLLECTORS], r->f->null_lists || !filled);
    coordi_buf_adds(&out, ",\"learners\":");
    add_list(r, &out, &r->lists[FAKE_LEARNERS], r->f->null_lists || !filled);
    coordi_buf_adds(&out, "}");
    return coordi_buf_take(&out, NULL);
}

static void say_replicas(request *r, int status, const char *message, bool filled)
{
    char *data = print_replicas(r, filled);
    say(r, status, message, data);
    coord_free(data);
}

/* ---- the cache ---- */

static bool is_visible(const fake_operator *f, const fake_pod *pod)
{
    const int64_t then = f->front->now_ms(f->front) - f->lag_ms;
    return pod->born_ms <= then && (pod->gone_ms == FAKE_ALIVE || pod->gone_ms > then);
}

static bool has_name(const fake_pod *pod, const char *name)
{
    const size_t len = strlen(name);
    return strncmp(pod->id, name, len) == 0 && strchr(".:", pod->id[len]) != NULL;
}

/* The list in another order each time. */
static void collect(request *r, fake_list list)
{
    const fake_operator *f = r->f;
    for (size_t i = 0; i < f->pod_count; i++) {
        const size_t at =
            list == FAKE_NODES ? i : (i + f->requests[FAKE_GET] * 7) % f->pod_count;
        if (f->pods[at]->list == list && is_visible(f, f->pods[at])) {
            add_id(r, &r->lists[list], f->pods[at]->id);
        }
    }
}

/* ---- what it does ---- */

static void create(request *r, fake_list list, int64_t count)
{
    char id[FAKE_ID];
    for (; count > 0 && r->most > 0; count--, r->most--) {
        fake_pod_make(r->f, list, id);
        add_id(r, &r->lists[list], id);
    }
}

static void end_some(request *r, fake_list list, int64_t count)
{
    fake_operator *f = r->f;
    for (size_t i = 0; i < f->pod_count && count > 0 && r->most > 0; i++) {
        fake_pod *pod = f->pods[i];
        if (pod->list == list && pod->gone_ms == FAKE_ALIVE) {
            fake_pod_end(f, pod);
            add_id(r, &r->lists[list], pod->id);
            count--;
            r->most--;
        }
    }
}

static bool read_count(const coord_text body, const char *role, int64_t *ret)
{
    coord_text part;
    coord_text number;
    *ret = 0;
    if (role != NULL) {
        const coord_status rc = coordi_json_get(body, role, &part, NULL);
        if (rc != COORD_OK || coordi_json_type_of(part) != COORDI_JSON_OBJECT) {
            return rc == COORD_ERR_NOT_FOUND;
        }
    } else {
        part = body;
    }
    return coordi_json_get(part, "replicas", &number, NULL) != COORD_OK ||
           coordi_json_int(number, ret);
}

/* v1alpha1: collectors one by one, then learners; the first error stops. */
static void change_replicas(request *r)
{
    int64_t collectors;
    int64_t learners;
    const bool post = r->kind == FAKE_POST;
    if (!read_count(r->body, "collectors", &collectors) ||
        !read_count(r->body, "learners", &learners)) {
        say_replicas(r, 400, "failed to decode request body: json: cannot unmarshal",
                     false);
        return;
    }
    (post ? create : end_some)(r, FAKE_COLLECTORS, collectors);
    (post ? create : end_some)(r, FAKE_LEARNERS, learners);
    say_replicas(r, 200,
                 post ? "successfully create replicas" : "successfully delete replicas",
                 true);
}

static fake_pod *find_visible(const fake_operator *f, const char *name)
{
    for (size_t i = 0; i < f->pod_count; i++) {
        if (has_name(f->pods[i], name) && is_visible(f, f->pods[i])) {
            return f->pods[i];
        }
    }
    return NULL;
}

/* Within the lag a pod that was replaced can be replaced once more. */
static void replace(request *r, fake_pod *pod)
{
    char id[FAKE_ID];
    const fake_list list = pod->list;
    if (r->most-- <= 0) {
        return;
    }
    if (pod->gone_ms == FAKE_ALIVE) {
        fake_pod_end(r->f, pod);
    }
    fake_pod_make(r->f, list, id);
    add_id(r, &r->lists[list], id);
}

/* All names of one list are looked up before any of it is touched; the collectors are
 * through before the learners are looked up. False: one is unknown. */
static bool replace_list(request *r, const char *key)
{
    coord_text list;
    coord_text item;
    char name[FAKE_ID];
    char words[2 * FAKE_ID + 64];
    if (coordi_json_get(r->body, key, &list, NULL) != COORD_OK) {
        return true;
    }
    for (int touch = 0; touch < 2; touch++) {
        for (size_t at = 0; coordi_json_each(list, &at, &item);) {
            (void)coordi_json_string(item, name, sizeof name);
            fake_pod *pod = find_visible(r->f, name);
            if (pod == NULL) {
                (void)snprintf(words, sizeof words, "pod: %s/%s not exists in cache",
                               r->f->name_space, name);
                say_replicas(r, 404, words, true);
                return false;
            }
            if (touch == 1) {
                replace(r, pod);
            }
        }
    }
    return true;
}

static void replace_failed(request *r)
{
    if (replace_list(r, "collectors") && replace_list(r, "learners")) {
        say_replicas(r, 200, "successfully recreate replicas", true);
    }
}

/* ---- v1alpha1 ---- */

/* The value of a query's parameter, by its name in any case; NULL: none. */
static const char *parameter(const char *query, const char *name, char out[FAKE_ID])
{
    const size_t len = strlen(name);
    for (const char *at = query; at != NULL && *at != '\0';) {
        const char *end = at + strcspn(at, "&");
        if (strncasecmp(at, name, len) == 0 && at[len] == '=') {
            (void)snprintf(out, FAKE_ID, "%.*s", (int)(end - at - (long)len - 1),
                           at + len + 1);
            return out;
        }
        at = *end == '&' ? end + 1 : end;
    }
    return NULL;
}

/* The first parameter that it does not know; NULL: there is none. */
static const char *unknown_parameter(const char *query, char out[FAKE_ID])
{
    static const char *const KNOWN[] = {"namespace", "coordinator", "aggregator", "name"};
    for (const char *at = query; *at != '\0';) {
        const size_t len = strcspn(at, "=&");
        bool known = len == 0;
        for (size_t i = 0; i < 4; i++) {
            known =
                known || (strlen(KNOWN[i]) == len && strncasecmp(at, KNOWN[i], len) == 0);
        }
        if (!known) {
            (void)snprintf(out, FAKE_ID, "%.*s", (int)len, at);
            return out;
        }
        at += strcspn(at, "&");
        at += *at == '&' ? 1 : 0;
    }
    return NULL;
}

static void say_not_found(request *r, const char *name)
{
    char words[2 * FAKE_ID + 64];
    (void)snprintf(words, sizeof words, "pod: %s/%s not exists in cache",
                   r->f->name_space, name);
    if (r->kind == FAKE_GET) {
        say(r, 404, words, "null");
    } else {
        say_replicas(r, 404, words, false);
    }
}

static void get_replicas(request *r, const char *query)
{
    const fake_operator *f = r->f;
    char space[FAKE_ID];
    char name[FAKE_ID];
    char words[FAKE_ID + 64];
    const char *wrong = unknown_parameter(query, name);
    if (wrong != NULL) {
        (void)snprintf(words, sizeof words, "request param %s is not supported", wrong);
        say(r, 400, words, "null");
        return;
    }
    const bool in_space =
        parameter(query, "namespace", space) != NULL && strcmp(space, f->name_space) == 0;
    const bool of_pod = parameter(query, "coordinator", name) != NULL ||
                        parameter(query, "aggregator", name) != NULL;
    if (of_pod && (!in_space || strcmp(name, f->name) != 0)) {
        say_not_found(r, name);
        return;
    }
    if (!of_pod && parameter(query, "name", name) != NULL) { /* never implemented */
        say(r, 200, "successfully get replicas", "null");
        return;
    }
    collect(r, FAKE_COLLECTORS);
    collect(r, FAKE_LEARNERS);
    char *one = print_replicas(r, true);
    coordi_buf data = {0};
    coordi_buf_addf(&data, of_pod ? "%s" : "[%s]", one);
    coord_free(one);
    char *text = coordi_buf_take(&data, NULL);
    say(r, 200, "successfully get replicas", text);
    coord_free(text);
}

static void serve_v1(request *r, const char *query)
{
    if (!r->f->known) {
        say_not_found(r, r->f->name);
    } else if (r->kind == FAKE_GET) {
        get_replicas(r, query);
    } else if (r->body.len == 0) {
        say_replicas(r, 400, "failed to decode request body: EOF", false);
    } else if (r->kind == FAKE_FAILED) {
        replace_failed(r);
    } else {
        change_replicas(r);
    }
}

/* ---- v2alpha1 ---- */

/* POST and DELETE change the wanted number alone, and say nothing of who that is. */
static void serve_v2(request *r)
{
    int64_t count = 0;
    if (!r->f->known) {
        say(r, r->kind == FAKE_DELETE ? 400 : 404,
            "DIJob.diengine.opendilab.org \"job\" not found", "null");
    } else if (r->kind == FAKE_GET) {
        collect(r, FAKE_NODES);
        coordi_buf data = {0};
        add_list(r, &data, &r->lists[FAKE_NODES], true);
        char *text = coordi_buf_take(&data, NULL);
        say(r, 200, "successfully get replicas", text);
        coord_free(text);
    } else if (!read_count(r->body, NULL, &count)) {
        say(r, 400, "json: cannot unmarshal", "null");
    } else {
        if (!r->f->preemptible) {
            (r->kind == FAKE_POST ? create : end_some)(r, FAKE_NODES, count);
        }
        say(r, 200,
            r->kind == FAKE_POST ? "successfully add replicas"
                                 : "successfully delete replicas",
            "null");
    }
}

/* ---- faults ---- */

static void serve(request *r, const char *query)
{
    if (r->f->api == FAKE_V1) {
        serve_v1(r, query);
    } else {
        serve_v2(r);
    }
}

static void answer_instead(request *r)
{
    coordi_buf_done(&r->reply->body);
    memset(&r->reply->body, 0, sizeof r->reply->body);
}

static void serve_faulty(request *r, const char *query, fake_fault fault)
{
    const fake_operator *f = r->f;
    const bool first =
        fault == FAKE_PARTIAL || fault == FAKE_CONFLICT || fault == FAKE_FIRST_SILENT;
    const bool does = first || fault == FAKE_DONE_SILENT || fault == FAKE_DONE_BROKEN ||
                      fault == FAKE_GARBAGE;
    r->most = first ? 1 : WHOLE;
    if (does) {
        serve(r, query);
        answer_instead(r);
    }
    r->reply->silent =
        fault == FAKE_DONE_SILENT || fault == FAKE_FIRST_SILENT || fault == FAKE_SILENT;
    r->reply->broken = fault == FAKE_DONE_BROKEN || fault == FAKE_BROKEN;
    const bool object = f->api == FAKE_V1 && r->kind != FAKE_GET;
    if (fault == FAKE_NOT_YET && f->api == FAKE_V1) {
        say_not_found(r, f->name);
    } else if (fault == FAKE_NOT_YET) {
        say(r, 404, "DIJob.diengine.opendilab.org \"job\" not found", "null");
    } else if (first && object) {
        say_replicas(r, fault == FAKE_CONFLICT ? 409 : 500,
                     fault == FAKE_CONFLICT ? "pods already exists"
                                            : "pods is forbidden: exceeded quota",
                     true);
    } else if (fault == FAKE_ERROR && object) {
        say_replicas(r, 500, "failed to get DIJob: etcdserver: leader changed", false);
    } else if (first || fault == FAKE_ERROR) {
        say(r, 500, "failed to get DIJob: etcdserver: leader changed", "null");
    } else if (fault == FAKE_BAD_GATEWAY) {
        say_text(r->reply, 502, "<html>502 Bad Gateway</html>\n");
    } else {
        say_text(r->reply, 200, f->garbage == NULL ? "" : f->garbage);
    }
}

/* ---- routes ---- */

/* False: there is no such path. */
static bool find_route(const fake_operator *f, const char *method, const char *path,
                       fake_kind *ret)
{
    char own[FAKE_ID + 64];
    const bool failed =
        f->api == FAKE_V1 && strcmp(path, "/v1alpha1/replicas/failed") == 0;
    (void)snprintf(own, sizeof own,
                   f->api == FAKE_V1 ? "/v1alpha1/replicas" : "/v2alpha1/job/%s/replicas",
                   f->job_id);
    *ret = failed                          ? FAKE_FAILED
           : strcmp(method, "POST") == 0   ? FAKE_POST
           : strcmp(method, "DELETE") == 0 ? FAKE_DELETE
                                           : FAKE_GET;
    return failed || strcmp(path, own) == 0;
}

static void note(request *r)
{
    fake_operator *f = r->f;
    free(f->bodies[r->kind]);
    f->bodies[r->kind] = strndup(r->body.len == 0 ? "" : r->body.ptr, r->body.len);
    fake_must(f->bodies[r->kind] != NULL, "strndup");
    f->requests[r->kind]++;
}

static void route(request *r, const char *method, const char *path, const char *query)
{
    fake_operator *f = r->f;
    if (strstr(path, "//") != NULL) { /* many clients make a GET of a POST then */
        say_text(r->reply, 301, "<a href=\"/\">Moved Permanently</a>.\n\n");
        r->reply->location = "/v1alpha1/replicas";
    } else if (strcmp(path, "/healthz") == 0 && f->api == FAKE_V1) {
        say_text(r->reply, 200, "");
    } else if (!find_route(f, method, path, &r->kind)) {
        say_text(r->reply, 404, "404 page not found\n");
    } else {
        note(r);
        if (f->fault_at[r->kind] < f->fault_end[r->kind]) {
            serve_faulty(r, query, f->faults[r->kind][f->fault_at[r->kind]++]);
        } else {
            serve(r, query);
        }
    }
}

void fake_operator_answer(fake_operator *f, const char *method, const char *target,
                          coord_text body, fake_reply *ret)
{
    *ret = (fake_reply){0};
    request r = {.f = f, .body = body, .reply = ret, .most = WHOLE};
    const size_t len = strcspn(target, "?");
    char *path = strndup(target, len);
    fake_must(path != NULL, "strndup");
    (void)pthread_mutex_lock(&f->lock);
    ret->delay_ms = f->delay_ms;
    route(&r, method, path, target[len] == '?' ? target + len + 1 : "");
    (void)pthread_mutex_unlock(&f->lock);
    for (int list = 0; list < 3; list++) {
        coordi_buf_done(&r.lists[list]);
    }
    free(path);
    fake_must(!ret->body.failed, "out of memory");
}
