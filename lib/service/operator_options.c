#include "base/error.h"
#include "base/options.h"
#include "service/operator_server.h"

#include <stdio.h>

/* From options and environment to settings. */

enum { DEFAULT_PORT = 8080 };

static const int64_t LONGEST_MS = (int64_t)1 << 40;

static const coord_operator_server_options DEFAULTS = {
    .size = sizeof(coord_operator_server_options),
    .connect_timeout_ms = 3000,
    .request_timeout_ms = 10000,
    .retry_wait_ms = 500,
    .settle_ms = 2000,
    .max_answer_bytes = (size_t)1 << 20,
    .max_replicas = 4096,
    .log_level = COORD_LOG_INFO,
};

void coord_operator_server_options_init(coord_operator_server_options *options,
                                        size_t size)
{
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

/* ---- values and where they come from ---- */

typedef struct source {
    const char *value; /* NULL: none */
    const char *from;  /* for errors: the option, or the variable */
} source;

const char *coordi_operator_variable(coord_loop *loop, const char *name)
{
    const size_t len = strlen(name);
    const char *const *list = loop->env->environment(loop);
    for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
        if (strncmp(list[i], name, len) == 0 && list[i][len] == '=') {
            return list[i][len + 1] == '\0' ? NULL : list[i] + len + 1;
        }
    }
    return NULL;
}

static source look_up(coord_loop *loop, const char *given, const char *option,
                      const char *name)
{
    source s = {given, option};
    if (given == NULL) {
        s = (source){coordi_operator_variable(loop, name), name};
    }
    return s;
}

static coord_status copy_name(char *to, size_t size, source s, coord_error *err)
{
    to[0] = '\0';
    if (s.value == NULL) {
        return COORD_OK;
    }
    const size_t len = strlen(s.value);
    if (len == 0 || len >= size ||
        strspn(s.value, "abcdefghijklmnopqrstuvwxyz"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789.-_") != len) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "operator server: %s must be a name of 1 to %zu letters, "
                           "digits, '.', '-' and '_', got \"%.60s\"",
                           s.from, size - 1, s.value);
    }
    memcpy(to, s.value, len + 1);
    return COORD_OK;
}

/* The server's paths want "namespace.name", but pods are told "namespace/name". */
static coord_status copy_job_id(coordi_operator_settings *ret, source s, coord_error *err)
{
    char dotted[sizeof ret->job_id];
    const size_t at = s.value == NULL ? 0 : strcspn(s.value, "/");
    if (at > 0 && s.value[at] == '/' && strlen(s.value) < sizeof dotted) {
        (void)snprintf(dotted, sizeof dotted, "%.*s.%s", (int)at, s.value,
                       s.value + at + 1);
        s.value = dotted;
    }
    return copy_name(ret->job_id, sizeof ret->job_id, s, err);
}

/* ---- api and address ---- */

static coord_status read_api(coordi_operator_settings *ret, source s, coord_error *err)
{
    static const char *const NAME[] = {"auto", "v1alpha1", "v2alpha1"};
    const char *at = s.value == NULL ? "auto" : s.value + strspn(s.value, "/");
    size_t len = strlen(at);
    while (len > 0 && at[len - 1] == '/') {
        len--;
    }
    for (int i = 0; i < 3; i++) {
        if (strlen(NAME[i]) == len && memcmp(NAME[i], at, len) == 0) {
            ret->wanted = (coordi_operator_api)i;
            return COORD_OK;
        }
    }
    return coordi_fail(err, COORD_ERR_ARG,
                       "operator server: %s must be \"auto\", \"v1alpha1\" or "
                       "\"v2alpha1\", got \"%.60s\"",
                       s.from, s.value);
}

static bool names_port(const char *address)
{
    const char *at = strstr(address, "://");
    at = at == NULL ? address : at + 3;
    const char *bracket = at[0] == '[' ? strchr(at, ']') : NULL;
    at = bracket == NULL ? at : bracket;
    return at[strcspn(at, ":/")] == ':';
}

/* A doubled slash would be answered with a redirection. */
static void squeeze_slashes(char *path)
{
    char *to = path;
    for (const char *from = path; *from != '\0'; from++) {
        if (*from != '/' || from[1] != '/') {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static coord_status read_address(coordi_operator_settings *ret, source s,
                                 coord_error *err)
{
    char host_port[COORDI_HOST_PORT_SIZE];
    if (s.value == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "operator server: system_addr is needed, or "
                           "KUBERNETES_SERVER_URL or DI_SERVER_URL in the environment");
    }
    coord_error cause;
    if (coordi_address_read(s.value, strlen(s.value), &ret->address, &cause) !=
            COORD_OK ||
        ret->address.port == 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "operator server: %s must be [http://]host[:port][/path] with "
                           "a port from 1 to 65535, got \"%.80s\"",
                           s.from, s.value);
    }
    if (!names_port(s.value) && !ret->address.https) {
        ret->address.port = DEFAULT_PORT;
    }
    squeeze_slashes(ret->address.prefix);
    coordi_address_print(ret->address.host, ret->address.port, host_port);
    (void)snprintf(ret->place, sizeof ret->place, "%s%s%s",
                   ret->address.https ? "https://" : "http://", host_port,
                   ret->address.prefix);
    return COORD_OK;
}

/* The variable of the API that is meant comes first; it also tells which is likely. */
static source find_address(coord_loop *loop, const coordi_operator_settings *s,
                           const char *given)
{
    const bool v2 = s->wanted == COORDI_OPERATOR_V2;
    source at = look_up(loop, given, "system_addr",
                        v2 ? "DI_SERVER_URL" : "KUBERNETES_SERVER_URL");
    if (at.value == NULL) {
        at = look_up(loop, NULL, NULL, v2 ? "KUBERNETES_SERVER_URL" : "DI_SERVER_URL");
    }
    return at;
}

/* ---- all of it ---- */

bool coordi_operator_can_ask(const coordi_operator_settings *s, coordi_operator_api api)
{
    return api == COORDI_OPERATOR_V2 ? s->job_id[0] != '\0'
                                     : s->name_space[0] != '\0' && s->name[0] != '\0';
}

static coord_status check_who_asks(const coordi_operator_settings *s, coord_error *err)
{
    const bool v1 = coordi_operator_can_ask(s, COORDI_OPERATOR_V1);
    const bool v2 = coordi_operator_can_ask(s, COORDI_OPERATOR_V2);
    if (s->wanted != COORDI_OPERATOR_V2 && !v1 &&
        (s->wanted == COORDI_OPERATOR_V1 || !v2)) {
        return coordi_fail(
            err, COORD_ERR_ARG,
            "operator server: v1alpha1 needs name_space (KUBERNETES_POD_NAMESPACE) and "
            "name (KUBERNETES_POD_NAME)%s",
            s->wanted == COORDI_OPERATOR_AUTO ? ", v2alpha1 job_id (DI_JOB_ID)" : "");
    }
    if (s->wanted == COORDI_OPERATOR_V2 && !v2) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "operator server: v2alpha1 needs job_id (DI_JOB_ID)");
    }
    return COORD_OK;
}

static coord_status check_limits(const coord_operator_server_options *o, coord_error *err)
{
    const int64_t time[] = {o->connect_timeout_ms, o->request_timeout_ms,
                            o->retry_wait_ms, o->settle_ms};
    static const char *const NAME[] = {"connect_timeout_ms", "request_timeout_ms",
                                       "retry_wait_ms", "settle_ms"};
    for (size_t i = 0; i < sizeof time / sizeof time[0]; i++) {
        if (time[i] < 1 || time[i] > LONGEST_MS) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "operator server: %s must be at least 1, got %lld",
                               NAME[i], (long long)time[i]);
        }
    }
    if (o->max_answer_bytes == 0 || o->max_replicas == 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "operator server: max_answer_bytes (%zu) and max_replicas "
                           "(%zu) must be at least 1",
                           o->max_answer_bytes, o->max_replicas);
    }
    return COORD_OK;
}

static coord_status read_names(coordi_operator_settings *ret, coord_loop *loop,
                               const coord_operator_server_options *o, coord_error *err)
{
    coord_status rc = copy_name(
        ret->name_space, sizeof ret->name_space,
        look_up(loop, o->name_space, "name_space", "KUBERNETES_POD_NAMESPACE"), err);
    if (rc == COORD_OK) {
        rc = copy_name(ret->name, sizeof ret->name,
                       look_up(loop, o->name, "name", "KUBERNETES_POD_NAME"), err);
    }
    if (rc == COORD_OK) {
        rc = copy_job_id(ret, look_up(loop, o->job_id, "job_id", "DI_JOB_ID"), err);
    }
    return rc == COORD_OK ? check_who_asks(ret, err) : rc;
}

coord_status coordi_operator_settings_read(coordi_operator_settings *ret,
                                           coord_loop *loop,
                                           const coord_operator_server_options *o,
                                           coord_error *err)
{
    memset(ret, 0, sizeof *ret);
    coord_status rc = check_limits(o, err);
    if (rc == COORD_OK) {
        rc = read_api(
            ret,
            look_up(loop, o->api_version, "api_version", "KUBERNETES_SERVER_API_VERSION"),
            err);
    }
    if (rc == COORD_OK) {
        const source at = find_address(loop, ret, o->system_addr);
        ret->first = at.value != NULL && strcmp(at.from, "DI_SERVER_URL") == 0
                         ? COORDI_OPERATOR_V2
                         : COORDI_OPERATOR_V1;
        rc = read_address(ret, at, err);
    }
    if (rc == COORD_OK) {
        rc = read_names(ret, loop, o, err);
    }
    if (rc == COORD_OK && !coordi_operator_can_ask(ret, ret->first)) {
        ret->first =
            ret->first == COORDI_OPERATOR_V1 ? COORDI_OPERATOR_V2 : COORDI_OPERATOR_V1;
    }
    ret->aggregator = o->aggregator;
    ret->connect_timeout_ms = o->connect_timeout_ms;
    ret->request_timeout_ms = o->request_timeout_ms;
    ret->retry_wait_ms = o->retry_wait_ms;
    ret->settle_ms = o->settle_ms;
    ret->max_answer_bytes = o->max_answer_bytes;
    ret->max_replicas = o->max_replicas;
    return rc;
}
