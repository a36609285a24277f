#include "service/operator_order.h"

#include "base/error.h"
#include "codec/json.h"

#include <stdio.h>

enum { MOST = 10000 };

typedef struct resource {
    const char *name;  /* as the server has it */
    const char *usual; /* as DI-engine's examples have it; NULL: the same */
} resource;

static const resource RESOURCES[] = {{"cpus", "cpu"}, {"gpus", "gpu"}, {"memory", NULL}};

enum { RESOURCE_COUNT = sizeof RESOURCES / sizeof RESOURCES[0] };

static coord_status fail_at(coord_error *err, const char *role, const char *key,
                            const char *expected, coord_text got)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s%s", role, key[0] == '\0' ? "" : ".", key);
    return coordi_json_fail(err, COORD_ERR_CONFIG, path, expected, got);
}

/* A quantity may come as a number. */
static bool read_quantity(coord_text value, char *out)
{
    if (coordi_json_type_of(value) == COORDI_JSON_STRING) {
        return coordi_json_string(value, out, COORDI_OPERATOR_QUANTITY_SIZE) ==
                   COORD_OK &&
               out[0] != '\0';
    }
    double number;
    if (!coordi_json_double(value, &number) || !(number >= 0) ||
        value.len >= COORDI_OPERATOR_QUANTITY_SIZE) {
        return false;
    }
    memcpy(out, value.ptr, value.len);
    out[value.len] = '\0';
    return strspn(out, "0123456789.eE+-") == value.len;
}

static coord_status read_resource(coordi_operator_order *order, int list,
                                  const char *role, int which, coord_text value,
                                  coord_error *err)
{
    char *out = order->quantities[list * RESOURCE_COUNT + which];
    const char **fields[2][RESOURCE_COUNT] = {
        {&order->request.collector_cpus, &order->request.collector_gpus,
         &order->request.collector_memory},
        {&order->request.learner_cpus, &order->request.learner_gpus,
         &order->request.learner_memory}};
    if (coordi_json_type_of(value) == COORDI_JSON_NULL) {
        return COORD_OK;
    }
    if (!read_quantity(value, out)) {
        return fail_at(err, role, RESOURCES[which].name,
                       "a Kubernetes quantity such as 2, \"500m\" or \"200Mi\"", value);
    }
    *fields[list][which] = out;
    return COORD_OK;
}

static int find_resource(coordi_operator_order *order, const char *role, coord_text key)
{
    for (int i = 0; i < RESOURCE_COUNT; i++) {
        if (coordi_json_string_is(key, RESOURCES[i].name)) {
            return i;
        }
        if (RESOURCES[i].usual != NULL &&
            coordi_json_string_is(key, RESOURCES[i].usual)) {
            (void)snprintf(order->remark, sizeof order->remark,
                           "init_replicas_request: %s.%s is taken for %s, which is what "
                           "the server reads",
                           role, RESOURCES[i].usual, RESOURCES[i].name);
            return i;
        }
    }
    return -1;
}

static coord_status read_member(coordi_operator_order *order, int list, const char *role,
                                coord_text key, coord_text value, coord_error *err)
{
    if (coordi_json_string_is(key, "replicas")) {
        int64_t count;
        if (!coordi_json_int(value, &count) || count < 0 || count > MOST) {
            return fail_at(err, role, "replicas", "an integer from 0 to 10000", value);
        }
        *(list == 0 ? &order->request.collectors : &order->request.learners) =
            (int32_t)count;
        return COORD_OK;
    }
    const int which = find_resource(order, role, key);
    if (which < 0) {
        return fail_at(err, role, "", "only replicas, cpus, gpus and memory", key);
    }
    return read_resource(order, list, role, which, value, err);
}

static coord_status read_role(coordi_operator_order *order, int list, const char *role,
                              coord_text value, coord_error *err)
{
    coord_text key;
    coord_text item;
    coord_status rc = COORD_OK;
    if (coordi_json_type_of(value) == COORDI_JSON_NULL) {
        return COORD_OK;
    }
    if (coordi_json_type_of(value) != COORDI_JSON_OBJECT) {
        return fail_at(err, role, "", "an object such as {\"replicas\": 2}", value);
    }
    for (size_t at = 0;
         rc == COORD_OK && coordi_json_each_member(value, &at, &key, &item);) {
        rc = read_member(order, list, role, key, item, err);
    }
    return rc;
}

coord_status coordi_operator_order_read(coordi_operator_order *ret, coord_text json,
                                        coord_error *err)
{
    static const char *const ROLES[] = {"collectors", "learners"};
    coord_error cause;
    coord_text key;
    coord_text value;
    memset(ret, 0, sizeof *ret);
    coord_operator_request_init(&ret->request, sizeof ret->request);
    if (coordi_json_check(json, &cause) != COORD_OK) {
        return coordi_fail_because(err, COORD_ERR_CONFIG, &cause,
                                   "init_replicas_request is not JSON");
    }
    if (coordi_json_type_of(json) != COORDI_JSON_OBJECT) {
        return coordi_json_fail(err, COORD_ERR_CONFIG, "init_replicas_request",
                                "an object with collectors and learners", json);
    }
    for (size_t at = 0; coordi_json_each_member(json, &at, &key, &value);) {
        const int list = coordi_json_string_is(key, ROLES[0])   ? 0
                         : coordi_json_string_is(key, ROLES[1]) ? 1
                                                                : -1;
        if (list < 0 && !coordi_json_string_is(key, "namespace") &&
            !coordi_json_string_is(key, "coordinator")) {
            return coordi_json_fail(err, COORD_ERR_CONFIG, "init_replicas_request",
                                    "only collectors and learners", key);
        }
        const coord_status rc =
            list < 0 ? COORD_OK : read_role(ret, list, ROLES[list], value, err);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    return COORD_OK;
}
