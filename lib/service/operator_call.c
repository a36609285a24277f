#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "codec/json.h"
#include "service/operator_server.h"

/* What callers ask for, checked and copied, and what it looks like on the wire. */

enum { MOST = 10000, QUANTITY_MAX = 63 };

static const coord_operator_request NOTHING = {.size = sizeof(coord_operator_request)};

void coord_operator_request_init(coord_operator_request *request, size_t size)
{
    coordi_options_init(request, size, &NOTHING, sizeof NOTHING);
}

/* ---- made and freed ---- */

static coord_status copy_quantity(char **to, const char *from, const char *what,
                                  coord_error *err)
{
    if (from == NULL) {
        return COORD_OK;
    }
    const size_t len = strlen(from);
    if (len == 0 || len > QUANTITY_MAX || strchr("0123456789.", from[0]) == NULL ||
        strspn(from, "0123456789.+-EPTGMkKinmu") != len) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "operator request: %s must be a Kubernetes quantity such as "
                           "\"2\", \"500m\" or \"200Mi\", got \"%.60s\"",
                           what, from);
    }
    *to = coordi_strdup(from);
    return *to == NULL ? coordi_fail_nomem(err, "operator request") : COORD_OK;
}

static coord_status copy_quantities(coordi_operator_wish *to,
                                    const coord_operator_request *r, coord_error *err)
{
    const struct {
        char **to;
        const char *from;
        const char *what;
    } all[] = {
        {&to->cpus[0], r->collector_cpus, "collector_cpus"},
        {&to->gpus[0], r->collector_gpus, "collector_gpus"},
        {&to->memory[0], r->collector_memory, "collector_memory"},
        {&to->cpus[1], r->learner_cpus, "learner_cpus"},
        {&to->gpus[1], r->learner_gpus, "learner_gpus"},
        {&to->memory[1], r->learner_memory, "learner_memory"},
    };
    coord_status rc = COORD_OK;
    for (size_t i = 0; rc == COORD_OK && i < sizeof all / sizeof all[0]; i++) {
        rc = copy_quantity(all[i].to, all[i].from, all[i].what, err);
    }
    return rc;
}

static coord_status copy_wish(coordi_operator_call *call,
                              const coord_operator_request *given, coord_error *err)
{
    if (given == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "operator request: is NULL");
    }
    coord_operator_request r = NOTHING;
    coord_status rc =
        coordi_options_adopt(&r, sizeof r, given, "coord_operator_request", err);
    if (rc != COORD_OK) {
        return rc;
    }
    const int32_t count[COORDI_OPERATOR_LISTS] = {r.collectors, r.learners, r.nodes};
    int32_t sum = 0;
    for (int i = 0; i < COORDI_OPERATOR_LISTS; i++) {
        if (count[i] < 0 || count[i] > MOST) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "operator request: counts must be from 0 to %d, got %d",
                               MOST, (int)count[i]);
        }
        call->wish.count[i] = count[i];
        sum += count[i];
    }
    if (sum == 0) {
        return coordi_fail(err, COORD_ERR_ARG, "operator request: it asks for nothing");
    }
    return copy_quantities(&call->wish, &r, err);
}

static coord_status copy_names(coordi_operator_call *call, const char *const *names,
                               size_t count, const char *name_space, coord_error *err)
{
    if (names == NULL || count == 0) {
        return coordi_fail(err, COORD_ERR_ARG, "operator request: it names no pod");
    }
    call->names = coordi_zalloc(count * sizeof *call->names);
    if (call->names == NULL) {
        return coordi_fail_nomem(err, "operator request");
    }
    for (size_t i = 0; i < count; i++) {
        char name[COORD_ID_SIZE];
        if (names[i] == NULL || !coordi_operator_pod_name(names[i], name_space, name)) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "operator request: expected a pod's name or id, "
                               "\"pod.namespace:port\", got \"%.100s\"",
                               names[i] == NULL ? "(null)" : names[i]);
        }
        call->names[i] = coordi_strdup(name);
        if (call->names[i] == NULL) {
            return coordi_fail_nomem(err, "operator request");
        }
        call->name_count++;
    }
    return COORD_OK;
}

coord_status coordi_operator_call_create(const coordi_operator_spec *spec,
                                         const char *name_space,
                                         coordi_operator_call **ret, coord_error *err)
{
    coordi_operator_call *call = coordi_zalloc(sizeof *call);
    if (call == NULL) {
        return coordi_fail_nomem(err, "operator request");
    }
    call->kind = spec->kind;
    call->wait_ms = spec->wait_ms;
    call->retry = spec->retry;
    call->done = spec->done;
    call->arg = spec->arg;
    coord_status rc = COORD_OK;
    if (spec->kind == COORDI_OPERATOR_FAILED) {
        rc = copy_names(call, spec->names, spec->name_count, name_space, err);
    } else if (spec->kind != COORDI_OPERATOR_GET) {
        rc = copy_wish(call, spec->request, err);
    }
    if (rc != COORD_OK) {
        coordi_operator_call_free(call);
        return rc;
    }
    *ret = call;
    return COORD_OK;
}

void coordi_operator_call_free(coordi_operator_call *call)
{
    if (call == NULL) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        coordi_free(call->wish.cpus[i]);
        coordi_free(call->wish.gpus[i]);
        coordi_free(call->wish.memory[i]);
    }
    for (size_t i = 0; i < call->name_count; i++) {
        coordi_free(call->names[i]);
    }
    coordi_free(call->names);
    coord_operator_answer_destroy(call->before);
    coord_operator_answer_destroy(call->so_far);
    coordi_free(call);
}

/* ---- on the wire ---- */

const char *coordi_operator_method(const coordi_operator_call *call)
{
    return call->kind == COORDI_OPERATOR_GET      ? "GET"
           : call->kind == COORDI_OPERATOR_DELETE ? "DELETE"
                                                  : "POST";
}

/* Names hold nothing that a URL would need escaped (operator_options.c). */
char *coordi_operator_path(const coordi_operator_call *call, coordi_operator_api api,
                           bool look)
{
    const coordi_operator_settings *s = &call->op->settings;
    coordi_buf path = {0};
    if (api == COORDI_OPERATOR_V2) {
        coordi_buf_addf(&path, "/v2alpha1/job/%s/replicas", s->job_id);
    } else if (look) {
        coordi_buf_addf(&path, "/v1alpha1/replicas?namespace=%s&%s=%s", s->name_space,
                        s->aggregator ? "aggregator" : "coordinator", s->name);
    } else {
        coordi_buf_adds(&path, call->kind == COORDI_OPERATOR_FAILED
                                   ? "/v1alpha1/replicas/failed"
                                   : "/v1alpha1/replicas");
    }
    return coordi_buf_take(&path, NULL);
}

static void add_member(coordi_buf *body, const char *key, const char *value)
{
    if (value != NULL) {
        coordi_buf_addf(body, ", \"%s\": ", key);
        coordi_buf_add_json(body, value, strlen(value));
    }
}

/* So many as are still to come. */
static void add_count(coordi_buf *body, const char *key, const coordi_operator_call *call,
                      int list)
{
    const size_t wanted = (size_t)call->wish.count[list];
    const size_t seen = call->seen[list];
    coordi_buf_addf(body, ", \"%s\": {\"replicas\": %zu", key,
                    seen < wanted ? wanted - seen : 0);
    if (call->kind == COORDI_OPERATOR_POST) {
        add_member(body, "cpus", call->wish.cpus[list]);
        add_member(body, "gpus", call->wish.gpus[list]);
        add_member(body, "memory", call->wish.memory[list]);
    }
    coordi_buf_adds(body, "}");
}

char *coordi_operator_body(const coordi_operator_call *call, size_t *len)
{
    const coordi_operator_settings *s = &call->op->settings;
    coordi_buf body = {0};
    if (call->api == COORDI_OPERATOR_V2) {
        coordi_buf_addf(&body, "{\"replicas\": %d}",
                        (int)call->wish.count[COORDI_OPERATOR_NODES]);
        return coordi_buf_take(&body, len);
    }
    coordi_buf_adds(&body, "{\"namespace\": ");
    coordi_buf_add_json(&body, s->name_space, strlen(s->name_space));
    add_member(&body, "coordinator", s->name);
    if (call->kind == COORDI_OPERATOR_FAILED) {
        const char *name = call->names[call->name_at];
        coordi_buf_adds(&body, ", \"collectors\": [");
        coordi_buf_add_json(&body, name, strlen(name));
        coordi_buf_adds(&body, "], \"learners\": []");
    } else {
        add_count(&body, "collectors", call, COORDI_OPERATOR_COLLECTORS);
        add_count(&body, "learners", call, COORDI_OPERATOR_LEARNERS);
    }
    coordi_buf_adds(&body, "}");
    return coordi_buf_take(&body, len);
}

bool coordi_operator_lists(const coord_operator_answer *answer, const char *name)
{
    for (int list = 0; list < COORDI_OPERATOR_LISTS; list++) {
        size_t count;
        const coord_operator_replica *items =
            coordi_operator_answer_list(answer, (coordi_operator_list)list, &count);
        for (size_t i = 0; i < count; i++) {
            if (strcmp(items[i].name, name) == 0) {
                return true;
            }
        }
    }
    return false;
}
