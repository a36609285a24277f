#include "base/alloc.h"
#include "support/config_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define YEAR_S "31622400"
#define YEAR_MS 31622400000

/* ---- the table ---- */

typedef enum kind {
    HOST,
    PATH,
    INTEGER,
    SECONDS,
    WORD,
    SWITCH,
    WORKERS,
    EXECUTOR,
    OBJECT,
    OBJECT_OR_FALSE,
    FUTURE
} kind;

/* Every key with its default, and what it takes. */
typedef struct key {
    const char *name;
    kind kind;
    bool nullable;
    size_t at;         /* in coordi_config */
    int64_t preset;    /* of INTEGER; in milliseconds of SECONDS */
    const char *low;   /* the least and the most that it takes, and beyond */
    const char *below; /**/
    const char *high;  /**/
    const char *above; /**/
    const char *range; /* as errors name it */
    const char *with;  /* other keys that both limits need */
} key;

#define AT(field) offsetof(coordi_config, field)
#define ANY_S "0", "-0.001", YEAR_S, YEAR_S ".001", "0 to " YEAR_S
#define SOME_S "0.001", "0", YEAR_S, YEAR_S ".001", "0.001 to " YEAR_S
#define BYTES "1024", "1023", "1099511627776", "1099511627777", "1024 to 1099511627776"

static const key KEYS[] = {
    {"host", HOST, false, AT(host), 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"port", INTEGER, false, AT(port), 22273, "0", "-1", "65535", "65536", "0 to 65535",
     ""},
    {"my_address", HOST, true, AT(my_address), 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"channel", INTEGER, false, AT(channel), 0, "-2147483648", "-2147483649",
     "2147483647", "2147483648", "-2147483648 to 2147483647", ""},
    {"collector", WORKERS, false, 0, 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"learner", WORKERS, false, 0, 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"operator_server", OBJECT_OR_FALSE, true, AT(operator_server.given), 0, NULL, NULL,
     NULL, NULL, NULL, ""},
    {"discovery", OBJECT, true, AT(discovery.given), 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"executor", EXECUTOR, false, 0, 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"resource_manager", WORD, false, AT(resource_manager), 0, "random", NULL,
     "least_loaded", NULL, "random least_loaded", ""},
    {"queue_timeout_s", SECONDS, false, AT(queue_timeout_ms), 0, ANY_S, ""},
    {"max_queued_tasks", INTEGER, false, AT(max_queued_tasks), 10000, "1", "0",
     "10000000", "10000001", "1 to 10000000", ""},
    {"min_collectors", INTEGER, true, AT(min_workers[COORD_COLLECTOR]), -1, "0", "-1",
     "1000000", "1000001", "0 to 1000000", ""},
    {"min_learners", INTEGER, true, AT(min_workers[COORD_LEARNER]), -1, "0", "-1",
     "1000000", "1000001", "0 to 1000000", ""},
    {"max_retry_second", SECONDS, false, AT(max_retry_ms), 120000, SOME_S, ""},
    {"request_retries", INTEGER, false, AT(request_retries), 5, "0", "-1", "1000", "1001",
     "0 to 1000", ""},
    {"request_retry_wait_s", SECONDS, false, AT(request_retry_wait_ms), 1000, ANY_S, ""},
    {"request_timeout_s", SECONDS, false, AT(request_timeout_ms), 10000, SOME_S, ""},
    {"heartbeat_tolerance_s", SECONDS, false, AT(heartbeat_tolerance_ms), 17000, SOME_S,
     ""},
    {"heartbeat_check_s", SECONDS, false, AT(heartbeat_check_ms), 1000, SOME_S, ""},
    {"start_timeout_s", SECONDS, false, AT(start_timeout_ms), 60000, SOME_S, ""},
    {"collector_task_timeout_s", SECONDS, false, AT(task_timeout_ms[COORD_COLLECTOR]), 0,
     ANY_S, ""},
    {"learner_task_timeout_s", SECONDS, false, AT(task_timeout_ms[COORD_LEARNER]), 0,
     ANY_S, ""},
    {"close_timeout_s", SECONDS, false, AT(close_timeout_ms), 60000, SOME_S, ""},
    {"max_reassign", INTEGER, false, AT(max_reassign), 3, "0", "-1", "1000", "1001",
     "0 to 1000", ""},
    {"ledger", PATH, true, AT(ledger), 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"ledger_sync", WORD, false, AT(ledger_sync), 0, "normal", NULL, "full", NULL,
     "normal full", ""},
    {"ledger_keep", INTEGER, false, AT(ledger_keep), 10000, "0", "-1", "1000000000",
     "1000000001", "0 to 1000000000", ""},
    {"secret", FUTURE, true, 0, 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"tls", FUTURE, true, 0, 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"insecure", SWITCH, false, AT(insecure), 0, NULL, NULL, NULL, NULL, NULL, ""},
    {"max_body_bytes", INTEGER, false, AT(max_body_bytes), 16777216, BYTES,
     "\"max_inflight_bytes\": 1099511627776, "},
    {"max_inflight_bytes", INTEGER, false, AT(max_inflight_bytes), 268435456, BYTES,
     "\"max_body_bytes\": 1024, "},
};

static int64_t integer_at(const coordi_config *config, size_t at)
{
    return *(const int64_t *)(const void *)((const char *)config + at);
}

static const char *string_at(const coordi_config *config, size_t at)
{
    return (const char *)config + at;
}

/* ---- helpers ---- */

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static const char *with(const char *others, const char *name, const char *value)
{
    static char json[2048];
    (void)snprintf(json, sizeof json, "{%s\"%s\": %s}", others, name, value);
    return json;
}

/* "<name>: must be <what><end>, got <value>" */
static const char *complaint(const char *name, const char *what, const char *end,
                             const char *value)
{
    static char text[1024];
    (void)snprintf(text, sizeof text, "%s: must be %s%s, got %s", name, what, end, value);
    return text;
}

static const char *what_it_takes(const key *k)
{
    static char text[256];
    switch (k->kind) {
    case HOST:
        return k->nullable
                   ? "a host's name or address, without port and brackets, or null"
                   : "a host's name or address, without port and brackets";
    case PATH:
        return "the path of a file, of 1 to 1023 bytes, or null";
    case INTEGER:
        (void)snprintf(text, sizeof text, "an integer from %s", k->range);
        return text;
    case SECONDS:
        (void)snprintf(text, sizeof text, "a number of seconds from %s", k->range);
        return text;
    case WORD:
        (void)snprintf(text, sizeof text, "one of: %s", k->range);
        return text;
    case SWITCH:
        return "true or false";
    case WORKERS:
        return "an object of [id, host, port]";
    case EXECUTOR:
        return "\"per_task\", \"inline\" or {\"pool\": threads}";
    case OBJECT:
        return "an object or null";
    case OBJECT_OR_FALSE:
        return "an object, false or null";
    default:
        return "";
    }
}

/* ---- every key ---- */

/* Objects in it come behind: test_config_objects.c. */
static void the_help_has_one_line_for_every_key_of_this_test(void **state)
{
    (void)state;
    char *help = coordi_config_help();
    assert_non_null(help);
    const char *at = help;
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        at += strspn(at, " ");
        size_t len = strcspn(at, " ");
        assert_int_equal(len, strlen(KEYS[i].name));
        assert_memory_equal(at, KEYS[i].name, len);
        at = strchr(at, '\n');
        assert_non_null(at);
        at++;
    }
    assert_int_equal(*at, '\n');
    coordi_free(help);
    int none = 0;
    coordi_alloc_set_fault(countdown, &none);
    assert_null(coordi_config_help());
    coordi_alloc_set_fault(NULL, NULL);
}

static void an_absent_key_has_its_default(void **state)
{
    (void)state;
    coordi_config c = config_good("{}");
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        if (KEYS[i].kind == INTEGER || KEYS[i].kind == SECONDS) {
            assert_int_equal(integer_at(&c, KEYS[i].at), KEYS[i].preset);
        }
    }
    assert_string_equal(c.host, "127.0.0.1");
    assert_string_equal(c.my_address, "");
    assert_false(c.insecure);
    assert_false(c.operator_server.given);
    assert_false(c.discovery.given);
    assert_int_equal(c.worker_count, 0);
    assert_int_equal(c.executor, COORD_EXECUTOR_PER_TASK);
    assert_string_equal(c.resource_manager, "random");
    assert_string_equal(c.ledger, "");
    assert_string_equal(c.ledger_sync, "normal");
    coordi_config_done(&c);
    coordi_config_done(&c);
}

static void a_value_of_another_type_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        unsigned fine; /* bits of the kinds that take it */
    } VALUE[] = {
        {"true", 1U << SWITCH},
        {"false", 1U << SWITCH | 1U << OBJECT_OR_FALSE},
        {"\"12\"", 1U << HOST | 1U << PATH},
        {"\"\"", 0},
        {"\"true\"", 1U << HOST | 1U << PATH},
        {"12", 1U << INTEGER | 1U << SECONDS},
        {"1.5", 1U << SECONDS},
        {"1.0", 1U << SECONDS},
        {"1e0", 1U << SECONDS},
        {"[]", 0},
        {"[1]", 0},
        {"{}", 1U << WORKERS | 1U << OBJECT | 1U << OBJECT_OR_FALSE},
        {"NaN", 0},
        {"Infinity", 0},
        {"-Infinity", 0},
        {"1e999", 0},
        {"-1e999", 0},
        {"123456789012345678901234567890", 0},
        {"\"\\u0000\"", 0},
        {"\"\\ud800\"", 0},
    };
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        for (size_t v = 0; v < COUNT(VALUE) && KEYS[i].kind != FUTURE; v++) {
            if ((VALUE[v].fine >> KEYS[i].kind & 1) == 0) {
                config_wrong(
                    with(KEYS[i].with, KEYS[i].name, VALUE[v].value), COORD_ERR_CONFIG,
                    complaint(KEYS[i].name, what_it_takes(&KEYS[i]), "", VALUE[v].value));
            }
        }
    }
}

static void null_is_taken_where_it_means_something_and_nowhere_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        const char *json = with(KEYS[i].with, KEYS[i].name, "null");
        if (!KEYS[i].nullable) {
            config_wrong(json, COORD_ERR_CONFIG,
                         complaint(KEYS[i].name, what_it_takes(&KEYS[i]), "", "null"));
            continue;
        }
        coordi_config c = config_good(json);
        if (KEYS[i].kind == INTEGER) {
            assert_int_equal(integer_at(&c, KEYS[i].at), KEYS[i].preset);
        }
        coordi_config_done(&c);
    }
}

static int64_t as_number(const key *k, const char *spelled)
{
    double seconds = strtod(spelled, NULL);
    return k->kind == SECONDS ? (int64_t)(seconds * 1000.0 + 0.5)
                              : (int64_t)strtoll(spelled, NULL, 10);
}

static void both_limits_are_taken_and_one_step_beyond_is_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        const key *k = &KEYS[i];
        if (k->kind != INTEGER && k->kind != SECONDS) {
            continue;
        }
        const char *const fine[] = {k->low, k->high};
        const char *const bad[] = {k->below, k->above};
        for (int side = 0; side < 2; side++) {
            coordi_config c = config_good(with(k->with, k->name, fine[side]));
            assert_int_equal(integer_at(&c, k->at), as_number(k, fine[side]));
            coordi_config_done(&c);
            config_wrong(with(k->with, k->name, bad[side]), COORD_ERR_CONFIG,
                         complaint(k->name, what_it_takes(k), "", bad[side]));
        }
    }
}

#define LONG_WORD                                                                        \
    "\"a word that is far longer than any of those that are known, by a lot\""

static void a_word_is_one_of_those_listed(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "\"rando\"",    "\"random \"",     "\" random\"", "\"Random\"",
        "\"least\"",    "\"loaded\"",      "\" \"",       "\"random least_loaded\"",
        "\"best_fit\"", "\"normal full\"", "\"norma\"",   "\"fullx\"",
        LONG_WORD};
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        if (KEYS[i].kind != WORD) {
            continue;
        }
        const char *const fine[] = {KEYS[i].low, KEYS[i].high};
        for (int side = 0; side < 2; side++) {
            char value[64];
            (void)snprintf(value, sizeof value, "\"%s\"", fine[side]);
            coordi_config c = config_good(with("", KEYS[i].name, value));
            assert_string_equal(string_at(&c, KEYS[i].at), fine[side]);
            coordi_config_done(&c);
        }
        for (size_t b = 0; b < COUNT(BAD); b++) {
            char shown[80];
            (void)snprintf(shown, sizeof shown, "%.64s%s", BAD[b],
                           strlen(BAD[b]) > 64 ? "..." : "");
            config_wrong(with("", KEYS[i].name, BAD[b]), COORD_ERR_CONFIG,
                         complaint(KEYS[i].name, what_it_takes(&KEYS[i]), "", shown));
        }
    }
}

static void what_is_not_built_yet_has_to_be_null(void **state)
{
    (void)state;
    static const char *const VALUE[] = {"true", "false", "\"x\"", "{}", "[]", "0", "NaN"};
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        for (size_t v = 0; v < COUNT(VALUE) && KEYS[i].kind == FUTURE; v++) {
            char text[200];
            (void)snprintf(
                text, sizeof text,
                "%s: is not built into this release; leave it out or set it to "
                "null",
                KEYS[i].name);
            config_wrong(with("", KEYS[i].name, VALUE[v]), COORD_ERR_UNSUPPORTED, text);
        }
    }
}

static void of_duplicate_keys_the_last_one_wins(void **state)
{
    (void)state;
    coordi_config c = config_good("{\"port\": 1, \"insecure\": true, \"port\": 2, "
                                  "\"p\\u006frt\": 3, \"insecure\": false}");
    assert_int_equal(c.port, 3);
    assert_false(c.insecure);
    coordi_config_done(&c);
    c = config_good("{\"port\": \"x\", \"port\": 5, \"ledger\": true, \"ledger\": null, "
                    "\"collector\": 7, \"collector\": {}}");
    assert_int_equal(c.port, 5);
    coordi_config_done(&c);
    config_wrong("{\"port\": 5, \"port\": \"x\"}", COORD_ERR_CONFIG,
                 "port: must be an integer from 0 to 65535, got \"x\"");
}

static void an_unknown_key_suggests_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *nearest;
    } CASE[] = {
        {"prot", "port"},
        {"PORT", "port"},
        {"hots", "host"},
        {"", "tls"},
        {"collectors", "collector"},
        {"learnr", "learner"},
        {"max_retry_seconds", "max_retry_second"},
        {"request_timeout", "request_timeout_s"},
        {"request_retry", "request_retries"},
        {"min_collector", "min_collectors"},
        {"heartbeat_tolerance", "heartbeat_tolerance_s"},
        {"learner_task_timeout", "learner_task_timeout_s"},
        {"Collector_Task_Timeout_S", "collector_task_timeout_s"},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_max_inflight_bytes",
         "max_inflight_bytes"},
        {"ledgersync", "ledger_sync"},
        {"my_adress", "my_address"},
    };
    for (size_t i = 0; i < COUNT(CASE); i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "%s: is no key of the configuration; did you mean \"%s\"?",
                       CASE[i].name, CASE[i].nearest);
        config_wrong(with("\"port\": 7, ", CASE[i].name, "1"), COORD_ERR_CONFIG, text);
    }
}

static void an_unknown_key_of_any_bytes_is_named(void **state)
{
    (void)state;
    char name[300];
    coord_error err;
    coordi_config config;
    static const char *const ODD[] = {"\\ud800", "\\u0000", "\\u00e4", "a\\nb",
                                      "port\\u0000"};
    for (size_t i = 0; i < COUNT(ODD); i++) {
        assert_int_equal(
            coordi_config_read(coord_text_of(with("", ODD[i], "1")), &config, &err),
            COORD_ERR_CONFIG);
        assert_non_null(
            strstr(err.text, ": is no key of the configuration; did you mean"));
    }
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(
        coordi_config_read(coord_text_of(with("", name, "1")), &config, &err),
        COORD_ERR_CONFIG);
    assert_non_null(
        strstr(err.text, "nnnn: is no key of the configuration; did you mean"));
}

static void what_is_no_json_object_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *cause;
    } CASE[] = {
        {NULL, "JSON, byte 0: expected a value, got the end"},
        {"", "JSON, byte 0: expected a value, got the end"},
        {" \n", "got the end"},
        {"{", "JSON, byte 1: expected a key in quotes, got the end"},
        {"{\"port\": 1,}", "JSON, byte 11: expected a key in quotes, got '}'"},
        {"{\"port\": 1} x", "JSON, byte 12: expected nothing more, got 'x'"},
        {"{'port': 1}", "JSON, byte 1"},
        {"port = 1", "JSON, byte 0"},
        {"/* no */ {}", "JSON, byte 0"},
        {"\xef\xbb\xbf{}", "JSON, byte 0"},
        {"[]", ""},
        {"null", ""},
        {"\"{}\"", ""},
        {"7", ""},
    };
    for (size_t i = 0; i < COUNT(CASE); i++) {
        coordi_config config;
        coord_error err;
        config_wrong(CASE[i].json, COORD_ERR_CONFIG,
                     "configuration: is not a JSON object");
        (void)coordi_config_read(coord_text_of(CASE[i].json), &config, &err);
        if (err.cause[0] == '\0' || strstr(err.cause, CASE[i].cause) == NULL) {
            fail_msg("<%s>: %s", CASE[i].json, err.cause);
        }
    }
}

/* ---- one kind each ---- */

static void seconds_have_fractions(void **state)
{
    (void)state;
    static const struct {
        const char *spelled;
        int64_t ms;
    } CASE[] = {{"0", 0},          {"-0", 0},
                {"-0.0", 0},       {"0.0", 0},
                {"0e9", 0},        {"1", 1000},
                {"1.0", 1000},     {"1e0", 1000},
                {"0.25", 250},     {"1.5e-1", 150},
                {"0.001", 1},      {"0.0014", 1},
                {"0.0015", 2},     {"0.1", 100},
                {"0.3", 300},      {"1.0005", 1001},
                {"3600", 3600000}, {"1e3", 1000000},
                {"0.29", 290},     {"16.999999", 17000},
                {"0.0005", 1},     {"0.0004", 1},
                {"1e-300", 1}, /* 0 would be no limit */
                {YEAR_S, YEAR_MS}, {YEAR_S ".0", YEAR_MS}};
    for (size_t i = 0; i < COUNT(CASE); i++) {
        coordi_config c = config_good(with("", "queue_timeout_s", CASE[i].spelled));
        if (c.queue_timeout_ms != CASE[i].ms) {
            fail_msg("%s became %lld", CASE[i].spelled, (long long)c.queue_timeout_ms);
        }
        coordi_config_done(&c);
    }
}

static void seconds_that_are_no_time_are_wrong(void **state)
{
    (void)state;
    static const char *const BAD[] = {"NaN",    "Infinity", "-Infinity", "1e999",
                                      "-1e999", "1e300",    "-1",        "-0.0001",
                                      "-1e-9",  "\"1\"",    "31622401"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        config_wrong(with("", "queue_timeout_s", BAD[i]), COORD_ERR_CONFIG,
                     complaint("queue_timeout_s", "a number of seconds from 0 to " YEAR_S,
                               "", BAD[i]));
    }
    config_wrong("{\"close_timeout_s\": 0.0005}", COORD_ERR_CONFIG,
                 "close_timeout_s: must be a number of seconds from 0.001 to " YEAR_S
                 ", got 0.0005");
}

static void an_executor_has_three_forms(void **state)
{
    (void)state;
    coordi_config c = config_good("{\"executor\": \"per_task\"}");
    assert_int_equal(c.executor, COORD_EXECUTOR_PER_TASK);
    coordi_config_done(&c);
    c = config_good("{\"executor\": \"inline\"}");
    assert_int_equal(c.executor, COORD_EXECUTOR_INLINE);
    coordi_config_done(&c);
    c = config_good("{\"executor\": {\"pool\": 1}}");
    assert_int_equal(c.executor, COORD_EXECUTOR_POOL);
    assert_int_equal(c.executor_threads, 1);
    coordi_config_done(&c);
    c = config_good("{\"executor\": {\"pool\": 0, \"pool\": 1024}}");
    assert_int_equal(c.executor_threads, 1024);
    coordi_config_done(&c);
}

static void any_other_executor_is_wrong(void **state)
{
    (void)state;
    static const char *const FORM[] = {"\"pool\"", "\"PER_TASK\"", "{}", "[\"pool\", 2]",
                                       "{\"threads\": 4}"};
    static const char *const THREADS[] = {"0",     "-1",   "1025", "1.0",
                                          "\"2\"", "null", "true", "[]"};
    for (size_t i = 0; i < COUNT(FORM); i++) {
        config_wrong(with("", "executor", FORM[i]), COORD_ERR_CONFIG,
                     complaint("executor",
                               "\"per_task\", \"inline\" or {\"pool\": threads}", "",
                               FORM[i]));
    }
    for (size_t i = 0; i < COUNT(THREADS); i++) {
        char value[64];
        (void)snprintf(value, sizeof value, "{\"pool\": %s}", THREADS[i]);
        config_wrong(
            with("", "executor", value), COORD_ERR_CONFIG,
            complaint("executor.pool", "an integer from 1 to 1024", "", THREADS[i]));
    }
    config_wrong("{\"executor\": {\"pool\": 2, \"pol\": 3}}", COORD_ERR_CONFIG,
                 "executor: \"pol\" is no key of it; did you mean \"pool\"?");
}

static void a_host_is_a_name_or_an_address(void **state)
{
    (void)state;
    static const char *const GOOD[] = {"localhost", "127.0.0.1", "::1", "127.9.9.9"};
    static const char *const BAD[] = {"\"\"",         "\"127.0.0.1:80\"", "\"[::1]\"",
                                      "\"http://a\"", "\"a b\"",          "\"a\\n\"",
                                      "\"u@h\"",      "\":::\""};
    for (size_t i = 0; i < COUNT(GOOD); i++) {
        char json[100];
        (void)snprintf(json, sizeof json, "{\"host\": \"%s\", \"my_address\": \"%s\"}",
                       GOOD[i], GOOD[i]);
        coordi_config c = config_good(json);
        assert_string_equal(c.host, GOOD[i]);
        assert_string_equal(c.my_address, GOOD[i]);
        coordi_config_done(&c);
    }
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        for (size_t b = 0; b < COUNT(BAD) && KEYS[i].kind == HOST; b++) {
            config_wrong(with("\"insecure\": true, ", KEYS[i].name, BAD[b]),
                         COORD_ERR_CONFIG,
                         complaint(KEYS[i].name, what_it_takes(&KEYS[i]), "", BAD[b]));
        }
    }
}

static void a_host_has_at_most_255_bytes(void **state)
{
    (void)state;
    char value[300];
    char text[512];
    memset(value, 'h', sizeof value);
    value[0] = '"';
    memcpy(value + 256, "\"", 2);
    coordi_config c = config_good(with("\"insecure\": true, ", "host", value));
    assert_int_equal(strlen(c.host), 255);
    coordi_config_done(&c);
    memcpy(value + 256, "h\"", 3);
    (void)snprintf(
        text, sizeof text,
        "host: must be a host's name or address, without port and brackets, got "
        "%.64s...",
        value);
    config_wrong(with("\"insecure\": true, ", "host", value), COORD_ERR_CONFIG, text);
}

/* ---- keys together ---- */

static void listening_beyond_loopback_has_to_be_asked_for(void **state)
{
    (void)state;
    static const char *const BEYOND[] = {"0.0.0.0",     "::",           "10.0.0.1",
                                         "example.org", "127.evil.com", "127.1"};
    for (size_t i = 0; i < COUNT(BEYOND); i++) {
        char json[100];
        char text[200];
        (void)snprintf(
            text, sizeof text,
            "host: \"%s\" is beyond loopback, which needs \"secret\", \"tls\", or "
            "\"insecure\": true",
            BEYOND[i]);
        (void)snprintf(json, sizeof json, "{\"host\": \"%s\"}", BEYOND[i]);
        config_wrong(json, COORD_ERR_CONFIG, text);
        (void)snprintf(json, sizeof json, "{\"host\": \"%s\", \"insecure\": false}",
                       BEYOND[i]);
        config_wrong(json, COORD_ERR_CONFIG, text);
        (void)snprintf(json, sizeof json, "{\"insecure\": true, \"host\": \"%s\"}",
                       BEYOND[i]);
        coordi_config c = config_good(json);
        assert_true(c.insecure);
        coordi_config_done(&c);
    }
}

static void more_workers_may_be_waited_for_than_are_configured(void **state)
{
    (void)state;
    coordi_config c = config_good("{\"min_collectors\": 1000000, \"min_learners\": 2, "
                                  "\"learner\": {\"a\": [\"l\", \"h\", 1]}}");
    assert_int_equal(c.min_workers[COORD_COLLECTOR], 1000000);
    assert_int_equal(c.min_workers[COORD_LEARNER], 2);
    coordi_config_done(&c);
}

static void as_much_may_be_in_flight_as_one_body_has(void **state)
{
    (void)state;
    coordi_config c =
        config_good("{\"max_inflight_bytes\": 4096, \"max_body_bytes\": 4096}");
    assert_int_equal(c.max_inflight_bytes, 4096);
    coordi_config_done(&c);
    config_wrong("{\"max_inflight_bytes\": 4095, \"max_body_bytes\": 4096}",
                 COORD_ERR_CONFIG,
                 "max_inflight_bytes: must be at least max_body_bytes (4096), got 4095");
    config_wrong("{\"max_body_bytes\": 1073741824}", COORD_ERR_CONFIG,
                 "max_inflight_bytes: must be at least max_body_bytes (1073741824), got "
                 "268435456");
}

/* ---- the whole ---- */

/* As the documentation shows it. */
static const char WHOLE[] =
    "{ \"host\": \"127.0.0.1\", \"port\": 22273, \"my_address\": null, \"channel\": 0,\n"
    "  \"collector\": {\"0\": [\"collector0\", \"127.0.0.1\", 22270]},\n"
    "  \"learner\":   {\"0\": [\"learner0\",   \"127.0.0.1\", 22271]},\n"
    "  \"operator_server\": null, \"discovery\": null,\n"
    "  \"executor\": \"per_task\", \"resource_manager\": \"random\", "
    "\"queue_timeout_s\": 0, "
    "\"max_queued_tasks\": 10000,\n"
    "  \"min_collectors\": null, \"min_learners\": null, \"max_retry_second\": 120, "
    "\"request_retries\": 5, \"request_retry_wait_s\": 1.0, \"request_timeout_s\": 10,\n"
    "  \"heartbeat_tolerance_s\": 17, \"heartbeat_check_s\": 1,\n"
    "  \"start_timeout_s\": 60, \"collector_task_timeout_s\": 0, "
    "\"learner_task_timeout_s\": "
    "0, \"close_timeout_s\": 60, \"max_reassign\": 3,\n"
    "  \"ledger\": null, \"ledger_sync\": \"normal\", \"ledger_keep\": 10000, "
    "\"secret\": null, \"tls\": null, "
    "\"insecure\": false, \"max_body_bytes\": 16777216, \"max_inflight_bytes\": "
    "268435456 }\n";

static void the_whole_example_is_the_defaults_and_two_workers(void **state)
{
    (void)state;
    coordi_config whole = config_good(WHOLE);
    coordi_config workers =
        config_good("{\"collector\": {\"0\": [\"collector0\", \"127.0.0.1\", 22270]}, "
                    "\"learner\": {\"0\": [\"learner0\", \"127.0.0.1\", 22271]}}");
    assert_int_equal(whole.worker_count, 2);
    assert_string_equal(whole.workers[0].id, "collector0");
    assert_int_equal(whole.workers[0].port, 22270);
    assert_string_equal(whole.workers[1].id, "learner0");
    assert_int_equal(whole.workers[1].role, COORD_LEARNER);
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        assert_non_null(strstr(WHOLE, KEYS[i].name)); /* it shows them all */
        if (KEYS[i].kind == INTEGER || KEYS[i].kind == SECONDS) {
            assert_int_equal(integer_at(&whole, KEYS[i].at), KEYS[i].preset);
            assert_int_equal(integer_at(&workers, KEYS[i].at), KEYS[i].preset);
        } else if (KEYS[i].kind == HOST || KEYS[i].kind == WORD) {
            assert_string_equal(string_at(&whole, KEYS[i].at),
                                string_at(&workers, KEYS[i].at));
        }
    }
    coordi_config_done(&whole);
    coordi_config_done(&workers);
}

static void without_memory_it_fails_and_keeps_nothing(void **state)
{
    (void)state;
    int failures = 0;
    for (;;) {
        coordi_config config;
        coord_error err;
        int left = failures;
        coordi_alloc_set_fault(countdown, &left);
        coord_status rc = coordi_config_read(coord_text_of(WHOLE), &config, &err);
        coordi_alloc_set_fault(NULL, NULL);
        if (rc == COORD_OK) {
            coordi_config_done(&config);
            break;
        }
        assert_int_equal(rc, COORD_ERR_NOMEM);
        assert_string_equal(err.text, "configuration: out of memory");
        failures++;
    }
    assert_true(failures >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_help_has_one_line_for_every_key_of_this_test),
        cmocka_unit_test(an_absent_key_has_its_default),
        cmocka_unit_test(a_value_of_another_type_is_wrong),
        cmocka_unit_test(null_is_taken_where_it_means_something_and_nowhere_else),
        cmocka_unit_test(both_limits_are_taken_and_one_step_beyond_is_not),
        cmocka_unit_test(a_word_is_one_of_those_listed),
        cmocka_unit_test(what_is_not_built_yet_has_to_be_null),
        cmocka_unit_test(of_duplicate_keys_the_last_one_wins),
        cmocka_unit_test(an_unknown_key_suggests_the_nearest),
        cmocka_unit_test(an_unknown_key_of_any_bytes_is_named),
        cmocka_unit_test(what_is_no_json_object_is_wrong),
        cmocka_unit_test(seconds_have_fractions),
        cmocka_unit_test(seconds_that_are_no_time_are_wrong),
        cmocka_unit_test(an_executor_has_three_forms),
        cmocka_unit_test(any_other_executor_is_wrong),
        cmocka_unit_test(a_host_is_a_name_or_an_address),
        cmocka_unit_test(a_host_has_at_most_255_bytes),
        cmocka_unit_test(listening_beyond_loopback_has_to_be_asked_for),
        cmocka_unit_test(more_workers_may_be_waited_for_than_are_configured),
        cmocka_unit_test(as_much_may_be_in_flight_as_one_body_has),
        cmocka_unit_test(the_whole_example_is_the_defaults_and_two_workers),
        cmocka_unit_test(without_memory_it_fails_and_keeps_nothing),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
