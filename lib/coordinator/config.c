#include "coordinator/config.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "codec/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind {
    HOST, /* a name or an address; `size` bytes at `at` */
    HOST_OR_NULL,
    WORD,    /* one of the words in `words` */
    INTEGER, /* int64_t at `at` */
    INTEGER_OR_NULL,
    SECONDS,      /* a number; int64_t milliseconds at `at` */
    SWITCH,       /* bool at `at` */
    PATH_OR_NULL, /* `size` bytes at `at`; "" is null */
    WORKERS,      /* map of [id, host, port]; the role is in `low` */
    EXECUTOR,     /* "per_task", "inline" or {"pool": n} */
    FUTURE        /* must be null: its feature is not built yet */
} kind;

typedef struct key {
    const char *name;
    const char *preset; /* default, as JSON */
    kind kind;
    int64_t low, high; /* range, inclusive; in milliseconds for SECONDS */
    size_t at;         /* offset in coordi_config */
    size_t size;
    const char *words; /* for WORD: separated by blanks */
    const char *help;
} key;

#define AT(field) offsetof(coordi_config, field)
#define TEXT_AT(field) AT(field), sizeof((coordi_config *)NULL)->field

#define YEAR_MS (366LL * 24 * 3600 * 1000)

/* Every key there is. */
static const key KEYS[] = {
    {"host", "\"127.0.0.1\"", HOST, 0, 0, TEXT_AT(host), NULL, "address to listen on"},
    {"port", "22273", INTEGER, 0, 65535, AT(port), 0, NULL,
     "port to listen on; 0: any free port"},
    {"my_address", "null", HOST_OR_NULL, 0, 0, TEXT_AT(my_address), NULL,
     "host that workers report to; null: host, or our end of the path if that is any"},
    {"channel", "0", INTEGER, INT32_MIN, INT32_MAX, AT(channel), 0, NULL,
     "number that workers must have, too"},
    {"collector", "{}", WORKERS, COORD_COLLECTOR, 0, 0, 0, NULL,
     "collectors: {\"any key\": [id, host, port]}"},
    {"learner", "{}", WORKERS, COORD_LEARNER, 0, 0, 0, NULL,
     "learners: {\"any key\": [id, host, port]}"},
    {"operator_server", "null", FUTURE, 0, 0, 0, 0, NULL, "DI-orchestrator"},
    {"executor", "\"per_task\"", EXECUTOR, 1, 1024, 0, 0, NULL,
     "threads for callbacks: \"per_task\", \"inline\" or {\"pool\": n}"},
    {"resource_manager", "\"random\"", WORD, 0, 0, TEXT_AT(resource_manager),
     "random least_loaded", "which free worker gets a task"},
    {"queue_timeout_s", "0", SECONDS, 0, YEAR_MS, AT(queue_timeout_ms), 0, NULL,
     "longest wait for a free worker; 0: no limit"},
    {"max_queued_tasks", "10000", INTEGER, 1, 10000000, AT(max_queued_tasks), 0, NULL,
     "tasks that may wait for a free worker"},
    {"min_collectors", "null", INTEGER_OR_NULL, 0, 1000000,
     AT(min_workers[COORD_COLLECTOR]), 0, NULL,
     "collectors that start waits for; null: all configured"},
    {"min_learners", "null", INTEGER_OR_NULL, 0, 1000000, AT(min_workers[COORD_LEARNER]),
     0, NULL, "learners that start waits for; null: all configured"},
    {"max_retry_second", "120", SECONDS, 1, YEAR_MS, AT(max_retry_ms), 0, NULL,
     "longest wait of start for its workers"},
    {"request_retries", "5", INTEGER, 0, 1000, AT(request_retries), 0, NULL,
     "how often a request that failed is repeated"},
    {"request_retry_wait_s", "1.0", SECONDS, 0, YEAR_MS, AT(request_retry_wait_ms), 0,
     NULL, "pause before a request is repeated"},
    {"request_timeout_s", "10", SECONDS, 1, YEAR_MS, AT(request_timeout_ms), 0, NULL,
     "longest wait for a worker's answer to one request"},
    {"heartbeat_tolerance_s", "17", SECONDS, 1, YEAR_MS, AT(heartbeat_tolerance_ms), 0,
     NULL, "silence after which a worker is lost"},
    {"heartbeat_check_s", "1", SECONDS, 1, YEAR_MS, AT(heartbeat_check_ms), 0, NULL,
     "how often silence is looked for"},
    {"start_timeout_s", "60", SECONDS, 1, YEAR_MS, AT(start_timeout_ms), 0, NULL,
     "longest start, and longest close, of a task at its worker"},
    {"collector_task_timeout_s", "0", SECONDS, 0, YEAR_MS,
     AT(task_timeout_ms[COORD_COLLECTOR]), 0, NULL,
     "longest silence between a collector task's reports; 0: no limit"},
    {"learner_task_timeout_s", "0", SECONDS, 0, YEAR_MS,
     AT(task_timeout_ms[COORD_LEARNER]), 0, NULL,
     "longest silence between a learner task's reports; 0: no limit"},
    {"close_timeout_s", "60", SECONDS, 1, YEAR_MS, AT(close_timeout_ms), 0, NULL,
     "longest close of the coordinator"},
    {"max_reassign", "3", INTEGER, 0, 1000, AT(max_reassign), 0, NULL,
     "how often a task of a lost worker is started anew"},
    {"ledger", "null", PATH_OR_NULL, 0, 0, TEXT_AT(ledger), NULL,
     "file that remembers tasks, for a restart after a crash"},
    {"ledger_sync", "\"normal\"", WORD, 0, 0, TEXT_AT(ledger_sync), "normal full",
     "what the ledger survives: normal, the process; full, a power loss too"},
    {"ledger_keep", "10000", INTEGER, 0, 1000000000, AT(ledger_keep), 0, NULL,
     "ended tasks that stay in the ledger"},
    {"secret", "null", FUTURE, 0, 0, 0, 0, NULL, "key that peers must have, too"},
    {"tls", "null", FUTURE, 0, 0, 0, 0, NULL, "encryption"},
    {"insecure", "false", SWITCH, 0, 0, AT(insecure), 0, NULL,
     "allows to listen beyond loopback without secret or tls"},
    {"max_body_bytes", "16777216", INTEGER, 1024, 1LL << 40, AT(max_body_bytes), 0, NULL,
     "largest result of a worker"},
    {"max_inflight_bytes", "268435456", INTEGER, 1024, 1LL << 40, AT(max_inflight_bytes),
     0, NULL, "results that may be in memory while they are received"},
};

enum { KEY_COUNT = sizeof KEYS / sizeof KEYS[0], PATH_SIZE = 160 };

/* ---- errors ---- */

/* "path: must be ..., got x"; `expected` may name a part: "port must be ...". */
static coord_status wrong(coord_error *err, const char *path, const char *expected,
                          coord_text got)
{
    return coordi_fail(err, COORD_ERR_CONFIG, "%s: %s, got %.*s%s", path, expected,
                       (int)(got.len < 64 ? got.len : 64), got.len == 0 ? "" : got.ptr,
                       got.len > 64 ? "..." : "");
}

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

static coord_status unknown_key(coord_error *err, const char *name)
{
    const char *nearest = KEYS[0].name;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < KEY_COUNT; i++) {
        size_t d = distance(name, strlen(name), KEYS[i].name);
        if (d < best) {
            best = d;
            nearest = KEYS[i].name;
        }
    }
    return coordi_fail(err, COORD_ERR_CONFIG,
                       "%.80s: is no key of the configuration; did you mean \"%s\"?",
                       name, nearest);
}

/* ---- one kind each ---- */

#define A_HOST "must be a host's name or address, without port and brackets"

static bool read_host(coord_text value, char *out, size_t size)
{
    return coordi_json_string(value, out, size) == COORD_OK &&
           coordi_address_is_host(out);
}

static bool is_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    if (len == 0 || strchr(word, ' ') != NULL) {
        return false;
    }
    for (const char *at = words; at != NULL; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, word, len) == 0 && (at[len] == ' ' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static coord_status read_word(const key *k, coord_text value, char *out, coord_error *err)
{
    char expected[96];
    char word[64];
    (void)snprintf(expected, sizeof expected, "must be one of: %s", k->words);
    if (coordi_json_string(value, word, sizeof word) != COORD_OK ||
        !is_word(k->words, word) || strlen(word) >= k->size) {
        return wrong(err, k->name, expected, value);
    }
    memcpy(out, word, strlen(word) + 1);
    return COORD_OK;
}

/* `part` names what the path alone doesn't, such as "port "; else it is "". */
static coord_status read_integer(const char *path, const char *part, int64_t low,
                                 int64_t high, coord_text value, int64_t *out,
                                 coord_error *err)
{
    char expected[96];
    int64_t number;
    if (coordi_json_int(value, &number) && number >= low && number <= high) {
        *out = number;
        return COORD_OK;
    }
    (void)snprintf(expected, sizeof expected, "%smust be an integer from %lld to %lld",
                   part, (long long)low, (long long)high);
    return wrong(err, path, expected, value);
}

static coord_status read_seconds(const key *k, coord_text value, int64_t *out,
                                 coord_error *err)
{
    char expected[96];
    double seconds;
    bool number = coordi_json_type_of(value) == COORDI_JSON_NUMBER &&
                  coordi_json_double(value, &seconds);
    /* Compared as milliseconds, so that NaN and the infinities fall out, too. */
    if (number && seconds * 1000.0 >= (double)k->low &&
        seconds * 1000.0 <= (double)k->high) {
        *out = (int64_t)(seconds * 1000.0 + 0.5);
        if (*out == 0 && seconds > 0.0) {
            *out = 1; /* 0 would mean no limit */
        }
        return COORD_OK;
    }
    (void)snprintf(expected, sizeof expected,
                   "must be a number of seconds from %.10g to %.10g",
                   (double)k->low / 1000.0, (double)k->high / 1000.0);
    return wrong(err, k->name, expected, value);
}

/* An object with one key that is known. */
static coord_status check_only(const char *path, coord_text object, const char *known,
                               coord_error *err)
{
    coord_text name;
    coord_text value;
    size_t at = 0;
    while (coordi_json_each_member(object, &at, &name, &value)) {
        if (!coordi_json_string_is(name, known)) {
            return coordi_fail(err, COORD_ERR_CONFIG,
                               "%s: %.*s is no key of it; did you mean \"%s\"?", path,
                               (int)(name.len < 80 ? name.len : 80), name.ptr, known);
        }
    }
    return COORD_OK;
}

static coord_status read_executor(const key *k, coord_text value, coordi_config *config,
                                  coord_error *err)
{
    coordi_json_member pool = {.key = "pool"};
    if (coordi_json_string_is(value, "per_task")) {
        config->executor = COORD_EXECUTOR_PER_TASK;
        return COORD_OK;
    }
    if (coordi_json_string_is(value, "inline")) {
        config->executor = COORD_EXECUTOR_INLINE;
        return COORD_OK;
    }
    if (coordi_json_type_of(value) == COORDI_JSON_OBJECT &&
        coordi_json_get_many(value, &pool, 1, NULL) == COORD_OK && pool.present) {
        coord_status rc = check_only("executor", value, "pool", err);
        config->executor = COORD_EXECUTOR_POOL;
        return rc != COORD_OK ? rc
                              : read_integer("executor.pool", "", k->low, k->high,
                                             pool.value, &config->executor_threads, err);
    }
    return wrong(err, k->name, "must be \"per_task\", \"inline\" or {\"pool\": threads}",
                 value);
}

/* ---- workers ---- */

static coord_status read_worker(const char *path, coord_role role, coord_text value,
                                coordi_config_worker *out, coord_error *err)
{
    coord_text item[4] = {{NULL, 0}};
    char at[PATH_SIZE + 4];
    size_t count = 0;
    int64_t port = 0;

    if (coordi_json_type_of(value) == COORDI_JSON_ARRAY) {
        size_t cursor = 0;
        while (count < 4 && coordi_json_each(value, &cursor, &item[count])) {
            count++;
        }
    }
    if (count != 3) {
        return wrong(err, path, "must be a list of three: [id, host, port]", value);
    }
    *out = (coordi_config_worker){.role = role};
    (void)snprintf(at, sizeof at, "%s[0]", path);
    if (coordi_json_string(item[0], out->id, sizeof out->id) != COORD_OK ||
        out->id[0] == '\0') {
        return wrong(err, at, "id must be a string of 1 to 255 bytes", item[0]);
    }
    (void)snprintf(at, sizeof at, "%s[1]", path);
    if (!read_host(item[1], out->host, sizeof out->host)) {
        return wrong(err, at, "host " A_HOST, item[1]);
    }
    (void)snprintf(at, sizeof at, "%s[2]", path);
    coord_status rc = read_integer(at, "port ", 0, 65535, item[2], &port, err);
    if (rc == COORD_OK && port == 0) {
        return wrong(err, at, "port must be the one that the worker listens on", item[2]);
    }
    out->port = rc == COORD_OK ? (uint16_t)port : 0;
    return rc;
}

/* Room for one worker more, doubled when it is used up. */
static bool reserve_worker(coordi_config *config)
{
    size_t count = config->worker_count;
    if ((count & (count - 1)) != 0) {
        return true; /* it was doubled at the last power of two */
    }
    size_t cap = count == 0 ? 1 : 2 * count;
    coordi_config_worker *grown = coordi_realloc(config->workers, cap * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    config->workers = grown;
    return true;
}

/* Reads one worker behind those that are there; `ids` are the ids of its role. */
static coord_status add_worker(const char *path, coord_role role, coord_text item,
                               coordi_config *config, coordi_map *ids, coord_error *err)
{
    if (!reserve_worker(config)) {
        return coordi_fail_nomem(err, "configuration");
    }
    coordi_config_worker *w = &config->workers[config->worker_count];
    coord_status rc = read_worker(path, role, item, w, err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (coordi_map_get(ids, w->id) != NULL) {
        return coordi_fail(err, COORD_ERR_CONFIG,
                           "%s[0]: id \"%.100s\" is the id of another %s, too", path,
                           w->id, coord_role_str(role));
    }
    config->worker_count++;
    return coordi_map_put(ids, w->id, config) ? COORD_OK
                                              : coordi_fail_nomem(err, "configuration");
}

static coord_status read_workers(const key *k, coord_text value, coordi_config *config,
                                 coord_error *err)
{
    coord_status rc = COORD_OK;
    coordi_map ids = {0};
    coord_text name;
    coord_text item;
    size_t at = 0;

    if (coordi_json_type_of(value) != COORDI_JSON_OBJECT) {
        return wrong(err, k->name, "must be an object of [id, host, port]", value);
    }
    while (rc == COORD_OK && coordi_json_each_member(value, &at, &name, &item)) {
        char path[PATH_SIZE];
        /* The key without its quotes. */
        (void)snprintf(path, sizeof path, "%s.%.*s", k->name,
                       (int)(name.len > 102 ? 100 : name.len - 2), name.ptr + 1);
        rc = add_worker(path, (coord_role)k->low, item, config, &ids, err);
    }
    coordi_map_done(&ids);
    return rc;
}

/* ---- the whole ---- */

static coord_status read_key(const key *k, coord_text value, coordi_config *config,
                             coord_error *err)
{
    char *at = (char *)config + k->at;
    bool null = coordi_json_type_of(value) == COORDI_JSON_NULL;

    switch (k->kind) {
    case HOST:
        return read_host(value, at, k->size) ? COORD_OK
                                             : wrong(err, k->name, A_HOST, value);
    case HOST_OR_NULL:
        at[0] = '\0';
        return null || read_host(value, at, k->size)
                   ? COORD_OK
                   : wrong(err, k->name, A_HOST ", or null", value);
    case WORD:
        return read_word(k, value, at, err);
    case INTEGER:
        return read_integer(k->name, "", k->low, k->high, value, (int64_t *)(void *)at,
                            err);
    case INTEGER_OR_NULL:
        *(int64_t *)(void *)at = -1;
        return null ? COORD_OK
                    : read_integer(k->name, "", k->low, k->high, value,
                                   (int64_t *)(void *)at, err);
    case SECONDS:
        return read_seconds(k, value, (int64_t *)(void *)at, err);
    case PATH_OR_NULL:
        at[0] = '\0';
        return null || (coordi_json_string(value, at, k->size) == COORD_OK && *at != '\0')
                   ? COORD_OK
                   : wrong(err, k->name,
                           "must be the path of a file, of 1 to 1023 bytes, or null",
                           value);
    case SWITCH:
        return coordi_json_bool(value, (bool *)(void *)at)
                   ? COORD_OK
                   : wrong(err, k->name, "must be true or false", value);
    case WORKERS:
        return read_workers(k, value, config, err);
    case EXECUTOR:
        return read_executor(k, value, config, err);
    case FUTURE:
        break;
    }
    if (null) {
        return COORD_OK;
    }
    return coordi_fail(
        err, COORD_ERR_UNSUPPORTED,
        "%s: is not built into this release; leave it out or set it to null", k->name);
}

static coord_status check_names(coord_text json, coord_error *err)
{
    coord_text name;
    coord_text value;
    size_t at = 0;
    while (coordi_json_each_member(json, &at, &name, &value)) {
        bool known = false;
        for (size_t i = 0; i < KEY_COUNT && !known; i++) {
            known = coordi_json_string_is(name, KEYS[i].name);
        }
        if (!known) {
            char text[96];
            if (coordi_json_string(name, text, sizeof text) != COORD_OK) {
                (void)snprintf(text, sizeof text, "%.*s",
                               (int)(name.len < 80 ? name.len : 80), name.ptr);
            }
            return unknown_key(err, text);
        }
    }
    return COORD_OK;
}

static size_t count_role(const coordi_config *config, coord_role role)
{
    size_t count = 0;
    for (size_t i = 0; i < config->worker_count; i++) {
        count += config->workers[i].role == role;
    }
    return count;
}

/* What no key alone can tell. */
static coord_status check_together(coordi_config *config, coord_error *err)
{
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        int64_t *min = &config->min_workers[role];
        int64_t count = (int64_t)count_role(config, (coord_role)role);
        if (*min < 0) {
            *min = count;
        } else if (*min > count) {
            return coordi_fail(
                err, COORD_ERR_CONFIG, "min_%ss: is %lld, but only %lld are configured",
                coord_role_str((coord_role)role), (long long)*min, (long long)count);
        }
    }
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

static coord_status read_keys(coord_text json, coordi_config *config, coord_error *err)
{
    coordi_json_member given[KEY_COUNT];
    for (size_t i = 0; i < KEY_COUNT; i++) {
        given[i] = (coordi_json_member){.key = KEYS[i].name};
    }
    coord_status rc = coordi_json_get_many(json, given, KEY_COUNT, err);
    if (rc != COORD_OK) {
        coord_error why = err == NULL ? (coord_error){0} : *err;
        return coordi_fail_because(err, COORD_ERR_CONFIG, &why,
                                   "configuration: is not a JSON object");
    }
    rc = check_names(json, err);
    for (size_t i = 0; rc == COORD_OK && i < KEY_COUNT; i++) {
        coord_text value =
            given[i].present ? given[i].value : coord_text_of(KEYS[i].preset);
        rc = read_key(&KEYS[i], value, config, err);
    }
    return rc == COORD_OK ? check_together(config, err) : rc;
}

coord_status coordi_config_read(coord_text json, coordi_config *ret, coord_error *err)
{
    coordi_config config = {.executor_threads = 1};
    coord_status rc = read_keys(json, &config, err);
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
}

char *coordi_config_help(void)
{
    coordi_buf buf = {0};
    for (size_t i = 0; i < KEY_COUNT; i++) {
        coordi_buf_addf(&buf, "    %-25s %-12s %s\n", KEYS[i].name, KEYS[i].preset,
                        KEYS[i].kind == FUTURE ? "not built yet: must be null"
                                               : KEYS[i].help);
    }
    return coordi_buf_take(&buf, NULL);
}

coord_status coordi_config_add_worker(coordi_config *config,
                                      const coordi_config_worker *worker,
                                      coord_error *err)
{
    for (size_t i = 0; i < config->worker_count; i++) {
        if (config->workers[i].role == worker->role &&
            strcmp(config->workers[i].id, worker->id) == 0)
            return coordi_fail(err, COORD_ERR_EXISTS, "there is a %s '%s'",
                               coord_role_str(worker->role), worker->id);
    }
    if (!reserve_worker(config))
        return coordi_fail_nomem(err, "worker");
    config->workers[config->worker_count++] = *worker;
    return COORD_OK;
}
bool coordi_config_remove_worker(coordi_config *config, coord_role role, const char *id)
{
    for (size_t i = 0; i < config->worker_count; i++) {
        if (config->workers[i].role == role && strcmp(config->workers[i].id, id) == 0) {
            memmove(&config->workers[i], &config->workers[i + 1],
                    (config->worker_count - i - 1) * sizeof *config->workers);
            config->worker_count--;
            return true;
        }
    }
    return false;
}
