#include "coordinator/config_read.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "codec/json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define AT(field) offsetof(coordi_config, field)
#define TEXT_AT(field) AT(field), sizeof((coordi_config *)NULL)->field

#define HOUR_MS (3600LL * 1000)
#define DAY_MS (24 * HOUR_MS)
#define YEAR_MS (366 * DAY_MS)

/* Every key there is; those of objects are in tables of their own. */
static const coordi_config_key KEYS[] = {
    {"host", "\"127.0.0.1\"", COORDI_KEY_HOST, 0, 0, TEXT_AT(host), NULL,
     "address to listen on"},
    {"port", "22273", COORDI_KEY_INTEGER, 0, 65535, AT(port), 0, NULL,
     "port to listen on; 0: any free port"},
    {"my_address", "null", COORDI_KEY_HOST_OR_NULL, 0, 0, TEXT_AT(my_address), NULL,
     "host that workers report to; null: host, or our end of the path if that is any"},
    {"channel", "0", COORDI_KEY_INTEGER, INT32_MIN, INT32_MAX, AT(channel), 0, NULL,
     "number that workers must have, too"},
    {"collector", "{}", COORDI_KEY_WORKERS, COORD_COLLECTOR, 0, 0, 0, NULL,
     "collectors: {\"any key\": [id, host, port]}"},
    {"learner", "{}", COORDI_KEY_WORKERS, COORD_LEARNER, 0, 0, 0, NULL,
     "learners: {\"any key\": [id, host, port]}"},
    {"operator_server", "null", COORDI_KEY_OBJECT_OR_FALSE, 0, 0,
     AT(operator_server.given), 0, NULL,
     "server of DI-orchestrator whose pods are followed: {...}; null, false or {}: none"},
    {"discovery", "null", COORDI_KEY_OBJECT, 0, 0, AT(discovery.given), 0, NULL,
     "program or callback that is asked which workers there are: {...}; null: neither"},
    {"executor", "\"per_task\"", COORDI_KEY_EXECUTOR, 1, 1024, 0, 0, NULL,
     "threads for callbacks: \"per_task\", \"inline\" or {\"pool\": n}"},
    {"resource_manager", "\"random\"", COORDI_KEY_WORD, 0, 0, TEXT_AT(resource_manager),
     "random least_loaded", "which free worker gets a task"},
    {"queue_timeout_s", "0", COORDI_KEY_SECONDS, 0, YEAR_MS, AT(queue_timeout_ms), 0,
     NULL, "longest wait for a free worker; 0: no limit"},
    {"max_queued_tasks", "10000", COORDI_KEY_INTEGER, 1, 10000000, AT(max_queued_tasks),
     0, NULL, "tasks that may wait for a free worker"},
    {"min_collectors", "null", COORDI_KEY_INTEGER_OR_NULL, 0, 1000000,
     AT(min_workers[COORD_COLLECTOR]), 0, NULL,
     "collectors that start waits for; null: all that are known then"},
    {"min_learners", "null", COORDI_KEY_INTEGER_OR_NULL, 0, 1000000,
     AT(min_workers[COORD_LEARNER]), 0, NULL,
     "learners that start waits for; null: all that are known then"},
    {"max_retry_second", "120", COORDI_KEY_SECONDS, 1, YEAR_MS, AT(max_retry_ms), 0, NULL,
     "longest wait of start for its workers"},
    {"request_retries", "5", COORDI_KEY_INTEGER, 0, 1000, AT(request_retries), 0, NULL,
     "how often a request that failed is repeated"},
    {"request_retry_wait_s", "1.0", COORDI_KEY_SECONDS, 0, YEAR_MS,
     AT(request_retry_wait_ms), 0, NULL, "pause before a request is repeated"},
    {"request_timeout_s", "10", COORDI_KEY_SECONDS, 1, YEAR_MS, AT(request_timeout_ms), 0,
     NULL, "longest wait for a worker's answer to one request"},
    {"heartbeat_tolerance_s", "17", COORDI_KEY_SECONDS, 1, YEAR_MS,
     AT(heartbeat_tolerance_ms), 0, NULL, "silence after which a worker is lost"},
    {"heartbeat_check_s", "1", COORDI_KEY_SECONDS, 1, YEAR_MS, AT(heartbeat_check_ms), 0,
     NULL, "how often silence is looked for"},
    {"start_timeout_s", "60", COORDI_KEY_SECONDS, 1, YEAR_MS, AT(start_timeout_ms), 0,
     NULL, "longest start, and longest close, of a task at its worker"},
    {"collector_task_timeout_s", "0", COORDI_KEY_SECONDS, 0, YEAR_MS,
     AT(task_timeout_ms[COORD_COLLECTOR]), 0, NULL,
     "longest silence between a collector task's reports; 0: no limit"},
    {"learner_task_timeout_s", "0", COORDI_KEY_SECONDS, 0, YEAR_MS,
     AT(task_timeout_ms[COORD_LEARNER]), 0, NULL,
     "longest silence between a learner task's reports; 0: no limit"},
    {"close_timeout_s", "60", COORDI_KEY_SECONDS, 1, YEAR_MS, AT(close_timeout_ms), 0,
     NULL, "longest close of the coordinator"},
    {"max_reassign", "3", COORDI_KEY_INTEGER, 0, 1000, AT(max_reassign), 0, NULL,
     "how often a task of a lost worker is started anew"},
    {"ledger", "null", COORDI_KEY_PATH_OR_NULL, 0, 0, TEXT_AT(ledger), NULL,
     "file that remembers tasks, for a restart after a crash"},
    {"ledger_sync", "\"normal\"", COORDI_KEY_WORD, 0, 0, TEXT_AT(ledger_sync),
     "normal full",
     "what the ledger survives: normal, the process; full, a power loss too"},
    {"ledger_keep", "10000", COORDI_KEY_INTEGER, 0, 1000000000, AT(ledger_keep), 0, NULL,
     "ended tasks that stay in the ledger"},
    {"secret", "null", COORDI_KEY_FUTURE, 0, 0, 0, 0, NULL,
     "key that peers must have, too"},
    {"tls", "null", COORDI_KEY_FUTURE, 0, 0, 0, 0, NULL, "encryption"},
    {"insecure", "false", COORDI_KEY_SWITCH, 0, 0, AT(insecure), 0, NULL,
     "allows to listen beyond loopback without secret or tls"},
    {"max_body_bytes", "16777216", COORDI_KEY_INTEGER, 1024, 1LL << 40,
     AT(max_body_bytes), 0, NULL, "largest result of a worker"},
    {"max_inflight_bytes", "268435456", COORDI_KEY_INTEGER, 1024, 1LL << 40,
     AT(max_inflight_bytes), 0, NULL,
     "results that may be in memory while they are received"},
};

static const coordi_config_key OPERATOR_KEYS[] = {
    {"operator_server.system_addr", "null", COORDI_KEY_TEXT_OR_NULL, 0, 0,
     TEXT_AT(operator_server.system_addr), NULL,
     "[http://]host[:port][/path]; null: $KUBERNETES_SERVER_URL or $DI_SERVER_URL"},
    {"operator_server.api_version", "null", COORDI_KEY_TEXT_OR_NULL, 0, 0,
     TEXT_AT(operator_server.api_version), NULL,
     "v1alpha1, v2alpha1 or auto; null: $KUBERNETES_SERVER_API_VERSION, else auto"},
    {"operator_server.namespace", "null", COORDI_KEY_TEXT_OR_NULL, 0, 0,
     TEXT_AT(operator_server.name_space), NULL,
     "v1alpha1: of our pod; null: $KUBERNETES_POD_NAMESPACE"},
    {"operator_server.name", "null", COORDI_KEY_TEXT_OR_NULL, 0, 0,
     TEXT_AT(operator_server.name), NULL,
     "v1alpha1: of our pod; null: $KUBERNETES_POD_NAME"},
    {"operator_server.job_id", "null", COORDI_KEY_TEXT_OR_NULL, 0, 0,
     TEXT_AT(operator_server.job_id), NULL, "v2alpha1: namespace.name; null: $DI_JOB_ID"},
    {"operator_server.init_replicas_request", "null", COORDI_KEY_ORDER, 0, 0, 0, 0, NULL,
     "pods to ask for at start: {\"collectors\": {\"replicas\": n}, \"learners\": ...}"},
    {"operator_server.collector_target_num", "null", COORDI_KEY_INTEGER_OR_NULL, 0, 10000,
     AT(operator_server.targets[COORD_COLLECTOR]), 0, NULL,
     "collectors that start waits for; null: as many as init_replicas_request asks for"},
    {"operator_server.learner_target_num", "null", COORDI_KEY_INTEGER_OR_NULL, 0, 10000,
     AT(operator_server.targets[COORD_LEARNER]), 0, NULL,
     "learners that start waits for; null: as many as init_replicas_request asks for"},
    {"operator_server.roles", "null", COORDI_KEY_ROLES, 1, 10000, 0, 0, NULL,
     "v2alpha1: \"collector\", \"learner\" or \"none\" by rank; the last holds for the "
     "rest"},
    {"operator_server.poll_s", "1", COORDI_KEY_SECONDS, 100, HOUR_MS,
     AT(operator_server.poll_ms), 0, NULL, "how often the list of pods is fetched"},
    {"operator_server.grace_s", "null", COORDI_KEY_SECONDS_OR_NULL, 1, YEAR_MS,
     AT(operator_server.grace_ms), 0, NULL,
     "a pod out of reach for so long is reported as failed; null: max_retry_second"},
    {"operator_server.removal", "\"drop\"", COORDI_KEY_EITHER, 0, 0,
     AT(operator_server.drains), 0, "drop drain",
     "a worker that is no longer listed: drop it, or let it end its task first (drain)"},
};

static const coordi_config_key DISCOVERY_KEYS[] = {
    {"discovery.command", "null", COORDI_KEY_COMMAND, 1, 64, 0, 0, NULL,
     "program that prints the workers: path or [path, argument...]; null: the callback"},
    {"discovery.interval_s", "5", COORDI_KEY_SECONDS, 100, DAY_MS,
     AT(discovery.interval_ms), 0, NULL, "time from one question to the next"},
    {"discovery.timeout_s", "10", COORDI_KEY_SECONDS, 100, HOUR_MS,
     AT(discovery.timeout_ms), 0, NULL, "longest wait for an answer"},
    {"discovery.removal", "\"drop\"", COORDI_KEY_EITHER, 0, 0, AT(discovery.drains), 0,
     "drop drain",
     "a worker that is no longer listed: drop it, or let it end its task first (drain)"},
};

/* The keys of the configuration itself, or of an object in it. */
typedef struct table {
    const char *name; /* of the object; "": the configuration */
    const coordi_config_key *keys;
    size_t count;
} table;

#define TABLE(name, keys)                                                                \
    {                                                                                    \
        name, keys, sizeof(keys) / sizeof(keys)[0]                                       \
    }

static const table TABLES[] = {
    TABLE("", KEYS),
    TABLE("operator_server", OPERATOR_KEYS),
    TABLE("discovery", DISCOVERY_KEYS),
};

enum {
    TABLE_COUNT = sizeof TABLES / sizeof TABLES[0],
    MOST_KEYS = sizeof KEYS / sizeof KEYS[0]
};

_Static_assert(sizeof OPERATOR_KEYS <= sizeof KEYS &&
                   sizeof DISCOVERY_KEYS <= sizeof KEYS,
               "KEYS is the longest table");

/* The key without the name of its object. */
static const char *own_name(const table *t, size_t at)
{
    return t->keys[at].name + (t->name[0] == '\0' ? 0 : strlen(t->name) + 1);
}

/* ---- unknown keys ---- */

/* Number of edits from any word to a lower-case one (Levenshtein), for suggestions. */
static size_t distance(const char *a, size_t a_len, const char *b)
{
    size_t b_len = strlen(b);
    size_t row[64];
    if (b_len >= sizeof row / sizeof row[0]) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t change = diagonal + (tolower((unsigned char)a[i - 1]) != b[j - 1]);
            diagonal = row[j];
            size_t best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
        }
    }
    return row[b_len];
}

static coord_status unknown_key(coord_error *err, const table *t, const char *name)
{
    const char *nearest = own_name(t, 0);
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < t->count; i++) {
        size_t d = distance(name, strlen(name), own_name(t, i));
        if (d < best) {
            best = d;
            nearest = own_name(t, i);
        }
    }
    return coordi_fail(err, COORD_ERR_CONFIG,
                       "%s%s%.80s: is no key of the configuration; did you mean \"%s\"?",
                       t->name, t->name[0] == '\0' ? "" : ".", name, nearest);
}

static coord_status check_names(const table *t, coord_text json, coord_error *err)
{
    coord_text name;
    coord_text value;
    size_t at = 0;
    while (coordi_json_each_member(json, &at, &name, &value)) {
        bool known = false;
        for (size_t i = 0; i < t->count && !known; i++) {
            known = coordi_json_string_is(name, own_name(t, i));
        }
        if (!known) {
            char text[96];
            if (coordi_json_string(name, text, sizeof text) != COORD_OK) {
                (void)snprintf(text, sizeof text, "%.*s",
                               (int)(name.len < 80 ? name.len : 80), name.ptr);
            }
            return unknown_key(err, t, text);
        }
    }
    return COORD_OK;
}

/* ---- the whole ---- */

/* What is null because another key says it. */
static void resolve(coordi_config *config)
{
    coordi_config_operator *o = &config->operator_server;
    if (o->grace_ms < 0) {
        o->grace_ms = config->max_retry_ms;
    }
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        if (o->targets[role] < 0) {
            o->targets[role] = o->order == NULL          ? 0
                               : role == COORD_COLLECTOR ? o->order->request.collectors
                                                         : o->order->request.learners;
        }
    }
}

/* What no key alone can tell. */
static coord_status check_together(const coordi_config *config, coord_error *err)
{
    if (config->max_inflight_bytes < config->max_body_bytes) {
        return coordi_fail(
            err, COORD_ERR_CONFIG,
            "max_inflight_bytes: must be at least max_body_bytes (%lld), got "
            "%lld",
            (long long)config->max_body_bytes, (long long)config->max_inflight_bytes);
    }
    if (!config->insecure && !coordi_address_is_loopback(config->host)) {
        return coordi_fail(err, COORD_ERR_CONFIG,
                           "host: \"%.100s\" is beyond loopback, which needs \"secret\", "
                           "\"tls\", or \"insecure\": true",
                           config->host);
    }
    return COORD_OK;
}

/* `objects` gets the values that have tables of their own, by table. */
static coord_status read_table(const table *t, coord_text json, coord_text *objects,
                               coordi_config *config, coord_error *err)
{
    coordi_json_member given[MOST_KEYS];
    for (size_t i = 0; i < t->count; i++) {
        given[i] = (coordi_json_member){.key = own_name(t, i)};
    }
    coord_status rc = coordi_json_get_many(json, given, t->count, err);
    if (rc != COORD_OK) {
        coord_error why = err == NULL ? (coord_error){0} : *err;
        return coordi_fail_because(err, COORD_ERR_CONFIG, &why,
                                   "configuration: is not a JSON object");
    }
    rc = check_names(t, json, err);
    for (size_t i = 0; rc == COORD_OK && i < t->count; i++) {
        coord_text value =
            given[i].present ? given[i].value : coord_text_of(t->keys[i].preset);
        rc = coordi_config_read_key(&t->keys[i], value, config, err);
        for (size_t k = 1; k < TABLE_COUNT; k++) {
            if (strcmp(t->keys[i].name, TABLES[k].name) == 0 &&
                coordi_json_type_of(value) == COORDI_JSON_OBJECT) {
                objects[k] = value;
            }
        }
    }
    return rc;
}

coord_status coordi_config_read(coord_text json, coordi_config *ret, coord_error *err)
{
    coordi_config config = {.executor_threads = 1};
    coord_text objects[TABLE_COUNT] = {json};
    coord_status rc = COORD_OK;
    for (size_t i = 1; i < TABLE_COUNT; i++) {
        objects[i] = coord_text_of("{}"); /* for the defaults, if it isn't given */
    }
    for (size_t i = 0; rc == COORD_OK && i < TABLE_COUNT; i++) {
        rc = read_table(&TABLES[i], objects[i], objects, &config, err);
    }
    if (rc == COORD_OK) {
        resolve(&config);
        rc = check_together(&config, err);
    }
    if (rc != COORD_OK) {
        coordi_config_done(&config);
        return rc;
    }
    *ret = config;
    return COORD_OK;
}

void coordi_config_done(coordi_config *config)
{
    coordi_free(config->workers);
    config->workers = NULL;
    config->worker_count = 0;
    coordi_free(config->operator_server.order);
    config->operator_server.order = NULL;
    coordi_free(config->operator_server.roles);
    config->operator_server.roles = NULL;
    coordi_free(config->discovery.command);
    config->discovery.command = NULL;
}

/* ---- help ---- */

static void add_help(coordi_buf *buf, const table *t)
{
    size_t width = 0;
    for (size_t i = 0; i < t->count; i++) {
        size_t len = strlen(t->keys[i].name);
        width = len > width ? len : width;
    }
    for (size_t i = 0; i < t->count; i++) {
        const coordi_config_key *k = &t->keys[i];
        coordi_buf_addf(buf, "    %-*s  %-12s %s\n", (int)width, k->name, k->preset,
                        k->kind == COORDI_KEY_FUTURE ? "not built yet: must be null"
                                                     : k->help);
    }
}

char *coordi_config_help(void)
{
    coordi_buf buf = {0};
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        if (i > 0) {
            coordi_buf_addf(&buf, "\n");
        }
        add_help(&buf, &TABLES[i]);
    }
    return coordi_buf_take(&buf, NULL);
}
