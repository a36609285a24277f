/* The kinds of keys: each reads a value, or says what it must be. */
#include "coordinator/config_read.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/json.h"

#include <stdio.h>
#include <string.h>

coord_status coordi_config_wrong(coord_error *err, const char *path, const char *expected,
                                 coord_text got)
{
    return coordi_fail(err, COORD_ERR_CONFIG, "%s: %s, got %.*s%s", path, expected,
                       (int)(got.len < 64 ? got.len : 64), got.len == 0 ? "" : got.ptr,
                       got.len > 64 ? "..." : "");
}

/* ---- one kind each ---- */

bool coordi_config_read_host(coord_text value, char *out, size_t size)
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

static coord_status read_word(const coordi_config_key *k, coord_text value, char *out,
                              size_t size, coord_error *err)
{
    char expected[96];
    char word[64];
    (void)snprintf(expected, sizeof expected, "must be one of: %s", k->words);
    if (coordi_json_string(value, word, sizeof word) != COORD_OK ||
        !is_word(k->words, word) || strlen(word) >= size) {
        return coordi_config_wrong(err, k->name, expected, value);
    }
    memcpy(out, word, strlen(word) + 1);
    return COORD_OK;
}

static coord_status read_either(const coordi_config_key *k, coord_text value, bool *out,
                                coord_error *err)
{
    char word[16];
    coord_status rc = read_word(k, value, word, sizeof word, err);
    if (rc == COORD_OK) {
        *out = strncmp(word, k->words, strlen(word)) != 0;
    }
    return rc;
}

coord_status coordi_config_read_integer(const char *path, const char *part, int64_t low,
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
    return coordi_config_wrong(err, path, expected, value);
}

static coord_status read_seconds(const coordi_config_key *k, coord_text value,
                                 int64_t *out, coord_error *err)
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
    return coordi_config_wrong(err, k->name, expected, value);
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

static coord_status read_executor(const coordi_config_key *k, coord_text value,
                                  coordi_config *config, coord_error *err)
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
        return rc != COORD_OK
                   ? rc
                   : coordi_config_read_integer("executor.pool", "", k->low, k->high,
                                                pool.value, &config->executor_threads,
                                                err);
    }
    return coordi_config_wrong(
        err, k->name, "must be \"per_task\", \"inline\" or {\"pool\": threads}", value);
}

/* ---- members of objects ---- */

/* What is wrong in the object gets the path of the object in front. */
static coord_status read_order(const coordi_config_key *k, coord_text value,
                               coordi_operator_order **out, coord_error *err)
{
    coord_error why = {.status = COORD_OK};
    const char *own = strrchr(k->name, '.') + 1;
    coordi_operator_order *order = coordi_zalloc(sizeof *order);
    if (order == NULL) {
        return coordi_fail_nomem(err, "configuration");
    }
    if (coordi_operator_order_read(order, value, &why) == COORD_OK) {
        *out = order;
        return COORD_OK;
    }
    coordi_free(order);
    /* Of the object as a whole it says the name itself. */
    const bool named = strncmp(why.text, own, strlen(own)) == 0;
    return coordi_fail(err, why.status, "%.*s%s%s",
                       (int)(named ? (size_t)(own - k->name) : strlen(k->name)), k->name,
                       named ? "" : ".", why.text);
}

static size_t count_items(coord_text list)
{
    coord_text item;
    size_t count = 0;
    size_t at = 0;
    while (coordi_json_each(list, &at, &item)) {
        count++;
    }
    return count;
}

static char letter_of(coord_text role)
{
    static const struct {
        const char *name;
        char letter;
    } ROLES[] = {{"collector", 'c'}, {"learner", 'l'}, {"none", '-'}};
    for (size_t i = 0; i < sizeof ROLES / sizeof ROLES[0]; i++) {
        if (coordi_json_string_is(role, ROLES[i].name)) {
            return ROLES[i].letter;
        }
    }
    return '\0';
}

static coord_status read_roles(const coordi_config_key *k, coord_text value, char **out,
                               coord_error *err)
{
    const size_t count = count_items(value);
    coord_text item;
    size_t at = 0;
    if (count < (size_t)k->low || count > (size_t)k->high) {
        return coordi_config_wrong(err, k->name,
                                   "must be a list of 1 to 10000 roles, or null", value);
    }
    char *roles = coordi_zalloc(count + 1);
    if (roles == NULL) {
        return coordi_fail_nomem(err, "configuration");
    }
    *out = roles;
    for (size_t i = 0; coordi_json_each(value, &at, &item); i++) {
        roles[i] = letter_of(item);
        if (roles[i] == '\0') {
            char path[64];
            (void)snprintf(path, sizeof path, "%s[%zu]", k->name, i);
            return coordi_config_wrong(
                err, path, "must be \"collector\", \"learner\" or \"none\"", item);
        }
    }
    return COORD_OK;
}

/* A string of argv to `out`, which has room for its raw text. Only the first is a path.
 */
static coord_status read_argument(const char *path, bool first, coord_text value,
                                  char *out, coord_error *err)
{
    if (coordi_json_string(value, out, value.len) == COORD_OK &&
        !(first && out[0] == '\0')) {
        return COORD_OK;
    }
    return coordi_config_wrong(err, path,
                               first ? "must be the path of a program"
                                     : "must be a string of UTF-8 without NUL",
                               value);
}

/* One block: the pointers, then the strings. */
static coord_status read_command(const coordi_config_key *k, coord_text value,
                                 char ***out, coord_error *err)
{
    const bool alone = coordi_json_type_of(value) == COORDI_JSON_STRING;
    const size_t count = alone ? 1 : count_items(value);
    coord_text item;
    size_t at = 0;
    if (count < (size_t)k->low || count > (size_t)k->high) {
        return coordi_config_wrong(
            err, k->name,
            "must be the path of a program, a list of 1 to 64 strings, or null", value);
    }
    char **argv = coordi_zalloc((count + 1) * sizeof *argv + value.len);
    if (argv == NULL) {
        return coordi_fail_nomem(err, "configuration");
    }
    *out = argv;
    argv[0] = (char *)(argv + count + 1);
    if (alone) {
        return read_argument(k->name, true, value, argv[0], err);
    }
    coord_status rc = COORD_OK;
    for (size_t i = 0; rc == COORD_OK && coordi_json_each(value, &at, &item); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s[%zu]", k->name, i);
        argv[i] = i == 0 ? argv[0] : argv[i - 1] + strlen(argv[i - 1]) + 1;
        rc = read_argument(path, i == 0, item, argv[i], err);
    }
    return rc;
}

/* ---- any kind ---- */

static coord_status read_future(const coordi_config_key *k, bool null, coord_error *err)
{
    return null ? COORD_OK
                : coordi_fail(err, COORD_ERR_UNSUPPORTED,
                              "%s: is not built into this release; leave it out or set "
                              "it to null",
                              k->name);
}

/* Whether an object is given; its own table reads it. */
static coord_status read_object(const coordi_config_key *k, coord_text value, bool *out,
                                coord_error *err)
{
    const bool or_false = k->kind == COORDI_KEY_OBJECT_OR_FALSE;
    bool on = true;
    switch (coordi_json_type_of(value)) {
    case COORDI_JSON_OBJECT:
        *out = !or_false || coordi_json_truth(value);
        return COORD_OK;
    case COORDI_JSON_NULL:
        return COORD_OK;
    default:
        return or_false && coordi_json_bool(value, &on) && !on
                   ? COORD_OK
                   : coordi_config_wrong(err, k->name,
                                         or_false ? "must be an object, false or null"
                                                  : "must be an object or null",
                                         value);
    }
}

/* Those that may be null and are not. */
static coord_status read_present(const coordi_config_key *k, coord_text value, char *at,
                                 coordi_config *config, coord_error *err)
{
    char expected[96];
    switch (k->kind) {
    case COORDI_KEY_HOST_OR_NULL:
        return coordi_config_read_host(value, at, k->size)
                   ? COORD_OK
                   : coordi_config_wrong(err, k->name, COORDI_CONFIG_A_HOST ", or null",
                                         value);
    case COORDI_KEY_INTEGER_OR_NULL:
        return coordi_config_read_integer(k->name, "", k->low, k->high, value,
                                          (int64_t *)(void *)at, err);
    case COORDI_KEY_SECONDS_OR_NULL:
        return read_seconds(k, value, (int64_t *)(void *)at, err);
    case COORDI_KEY_PATH_OR_NULL:
        return coordi_json_string(value, at, k->size) == COORD_OK && *at != '\0'
                   ? COORD_OK
                   : coordi_config_wrong(
                         err, k->name,
                         "must be the path of a file, of 1 to 1023 bytes, or null",
                         value);
    case COORDI_KEY_TEXT_OR_NULL:
        (void)snprintf(expected, sizeof expected,
                       "must be a string of at most %zu bytes, or null", k->size - 1);
        return coordi_json_string(value, at, k->size) == COORD_OK
                   ? COORD_OK
                   : coordi_config_wrong(err, k->name, expected, value);
    case COORDI_KEY_ORDER:
        return read_order(k, value, &config->operator_server.order, err);
    case COORDI_KEY_ROLES:
        return read_roles(k, value, &config->operator_server.roles, err);
    default:
        return read_command(k, value, &config->discovery.command, err);
    }
}

/* Those that may be null: -1 or nothing then, which is what there is already. */
static coord_status read_or_null(const coordi_config_key *k, coord_text value,
                                 coordi_config *config, coord_error *err)
{
    char *at = (char *)config + k->at;
    if (coordi_json_type_of(value) != COORDI_JSON_NULL) {
        return read_present(k, value, at, config, err);
    }
    if (k->kind == COORDI_KEY_INTEGER_OR_NULL || k->kind == COORDI_KEY_SECONDS_OR_NULL) {
        *(int64_t *)(void *)at = -1;
    }
    return COORD_OK;
}

coord_status coordi_config_read_key(const coordi_config_key *k, coord_text value,
                                    coordi_config *config, coord_error *err)
{
    char *at = (char *)config + k->at;

    switch (k->kind) {
    case COORDI_KEY_HOST:
        return coordi_config_read_host(value, at, k->size)
                   ? COORD_OK
                   : coordi_config_wrong(err, k->name, COORDI_CONFIG_A_HOST, value);
    case COORDI_KEY_WORD:
        return read_word(k, value, at, k->size, err);
    case COORDI_KEY_EITHER:
        return read_either(k, value, (bool *)(void *)at, err);
    case COORDI_KEY_INTEGER:
        return coordi_config_read_integer(k->name, "", k->low, k->high, value,
                                          (int64_t *)(void *)at, err);
    case COORDI_KEY_SECONDS:
        return read_seconds(k, value, (int64_t *)(void *)at, err);
    case COORDI_KEY_SWITCH:
        return coordi_json_bool(value, (bool *)(void *)at)
                   ? COORD_OK
                   : coordi_config_wrong(err, k->name, "must be true or false", value);
    case COORDI_KEY_WORKERS:
        return coordi_config_read_workers(k, value, config, err);
    case COORDI_KEY_EXECUTOR:
        return read_executor(k, value, config, err);
    case COORDI_KEY_OBJECT:
    case COORDI_KEY_OBJECT_OR_FALSE:
        return read_object(k, value, (bool *)(void *)at, err);
    case COORDI_KEY_FUTURE:
        return read_future(k, coordi_json_type_of(value) == COORDI_JSON_NULL, err);
    default:
        return read_or_null(k, value, config, err);
    }
}
