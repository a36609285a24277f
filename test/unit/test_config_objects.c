/* The keys of operator_server and discovery. */
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
#define AT(field) offsetof(coordi_config, field)

/* ---- the tables ---- */

typedef enum kind { TEXT, INTEGER, SECONDS, REMOVAL, ORDER, ROLES, COMMAND } kind;

typedef struct key {
    const char *object;
    const char *name;
    kind kind;
    bool nullable;
    size_t at;
    int64_t preset; /* of INTEGER; in milliseconds of SECONDS; of TEXT: most bytes */
    const char *low, *below, *high, *above; /* the limits and one step beyond */
    const char *takes;                      /* as errors say it */
} key;

#define NO_RANGE NULL, NULL, NULL, NULL
#define TARGET "0", "-1", "10000", "10001", "an integer from 0 to 10000"
#define HOUR "0.1", "0.0999", "3600", "3600.001", "a number of seconds from 0.1 to 3600"
#define TEXT_OF(bytes) "a string of at most " #bytes " bytes, or null"

static const key KEYS[] = {
    {"operator_server", "system_addr", TEXT, true, AT(operator_server.system_addr), 511,
     NO_RANGE, TEXT_OF(511)},
    {"operator_server", "api_version", TEXT, true, AT(operator_server.api_version), 31,
     NO_RANGE, TEXT_OF(31)},
    {"operator_server", "namespace", TEXT, true, AT(operator_server.name_space), 255,
     NO_RANGE, TEXT_OF(255)},
    {"operator_server", "name", TEXT, true, AT(operator_server.name), 255, NO_RANGE,
     TEXT_OF(255)},
    {"operator_server", "job_id", TEXT, true, AT(operator_server.job_id), 511, NO_RANGE,
     TEXT_OF(511)},
    {"operator_server", "init_replicas_request", ORDER, true, 0, 0, NO_RANGE, NULL},
    {"operator_server", "collector_target_num", INTEGER, true,
     AT(operator_server.targets[COORD_COLLECTOR]), 0, TARGET},
    {"operator_server", "learner_target_num", INTEGER, true,
     AT(operator_server.targets[COORD_LEARNER]), 0, TARGET},
    {"operator_server", "roles", ROLES, true, 0, 0, NO_RANGE,
     "a list of 1 to 10000 roles, or null"},
    {"operator_server", "poll_s", SECONDS, false, AT(operator_server.poll_ms), 1000,
     HOUR},
    {"operator_server", "grace_s", SECONDS, true, AT(operator_server.grace_ms), 120000,
     "0.001", "0", "31622400", "31622400.001",
     "a number of seconds from 0.001 to 31622400"},
    {"operator_server", "removal", REMOVAL, false, AT(operator_server.drains), 0,
     NO_RANGE, "one of: drop drain"},
    {"discovery", "command", COMMAND, true, 0, 0, NO_RANGE,
     "the path of a program, a list of 1 to 64 strings, or null"},
    {"discovery", "interval_s", SECONDS, false, AT(discovery.interval_ms), 5000, "0.1",
     "0.0999", "86400", "86400.001", "a number of seconds from 0.1 to 86400"},
    {"discovery", "timeout_s", SECONDS, false, AT(discovery.timeout_ms), 10000, HOUR},
    {"discovery", "removal", REMOVAL, false, AT(discovery.drains), 0, NO_RANGE,
     "one of: drop drain"},
};

static const void *field(const coordi_config *config, size_t at)
{
    return (const char *)config + at;
}

static int64_t integer_at(const coordi_config *config, size_t at)
{
    return *(const int64_t *)field(config, at);
}

/* ---- helpers ---- */

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static void count_blocks(void *block, int change, void *user)
{
    (void)block;
    *(int *)user += change;
}

static const char *with(const char *object, const char *name, const char *value)
{
    static char json[4096];
    (void)snprintf(json, sizeof json, "{\"%s\": {\"%s\": %s}}", object, name, value);
    return json;
}

static coordi_config good(const char *object, const char *name, const char *value)
{
    return config_good(with(object, name, value));
}

/* Wrong with "<object>.<name>: must be <takes>, got <value>". */
static void wrong(const char *object, const char *name, const char *value,
                  const char *takes)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%s.%s: must be %s, got %.64s%s", object, name,
                   takes, value, strlen(value) > 64 ? "..." : "");
    config_wrong(with(object, name, value), COORD_ERR_CONFIG, text);
}

/* ---- every key ---- */

static void the_help_has_a_block_for_each_object(void **state)
{
    (void)state;
    char *help = coordi_config_help();
    assert_non_null(help);
    const char *at = help;
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        if (i == 0 || strcmp(KEYS[i].object, KEYS[i - 1].object) != 0) {
            at = strstr(at, "\n\n");
            assert_non_null(at);
            at += 2;
        }
        char path[100];
        int len = snprintf(path, sizeof path, "    %s.%s ", KEYS[i].object, KEYS[i].name);
        assert_memory_equal(at, path, (size_t)len);
        at = strchr(at, '\n') + 1;
        if (i + 1 < COUNT(KEYS) && *at == '\n') {
            at--;
        }
    }
    assert_string_equal(at, "");
    coordi_free(help);
}

static void assert_defaults(const coordi_config *c, const char *object)
{
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        if (strcmp(KEYS[i].object, object) != 0) {
            continue;
        }
        if (KEYS[i].kind == INTEGER || KEYS[i].kind == SECONDS) {
            assert_int_equal(integer_at(c, KEYS[i].at), KEYS[i].preset);
        } else if (KEYS[i].kind == TEXT) {
            assert_string_equal(field(c, KEYS[i].at), "");
        } else if (KEYS[i].kind == REMOVAL) {
            assert_false(*(const bool *)field(c, KEYS[i].at));
        }
    }
    assert_null(c->operator_server.order);
    assert_null(c->operator_server.roles);
    assert_null(c->discovery.command);
}

static void an_absent_key_has_its_default(void **state)
{
    (void)state;
    coordi_config c = config_good("{\"operator_server\": {\"poll_s\": 1}}");
    assert_true(c.operator_server.given);
    assert_false(c.discovery.given);
    assert_defaults(&c, "operator_server");
    assert_defaults(&c, "discovery");
    coordi_config_done(&c);
    c = config_good("{\"discovery\": {}}");
    assert_false(c.operator_server.given);
    assert_true(c.discovery.given);
    assert_defaults(&c, "operator_server");
    assert_defaults(&c, "discovery");
    coordi_config_done(&c);
}

static void no_operator_server_is_null_false_or_empty(void **state)
{
    (void)state;
    static const char *const NONE[] = {
        "{}", "{\"operator_server\": null}", "{\"operator_server\": false}",
        "{\"operator_server\": { }, \"discovery\": null}",
        "{\"operator_server\": {\"poll_s\": 7, \"roles\": [\"none\"]}, "
        "\"operator_server\": null, \"discovery\": {}, \"discovery\": null}"};
    static const char *const BAD[] = {"true", "0",       "1",         "\"\"",
                                      "[]",   "\"off\"", "[\"a\", 1]"};
    for (size_t i = 0; i < COUNT(NONE); i++) {
        coordi_config c = config_good(NONE[i]);
        assert_false(c.operator_server.given);
        assert_false(c.discovery.given);
        assert_defaults(&c, "operator_server");
        coordi_config_done(&c);
    }
    for (size_t i = 0; i < COUNT(BAD); i++) {
        char json[100];
        char text[200];
        (void)snprintf(json, sizeof json, "{\"operator_server\": %s}", BAD[i]);
        (void)snprintf(text, sizeof text,
                       "operator_server: must be an object, false or null, got %s",
                       BAD[i]);
        config_wrong(json, COORD_ERR_CONFIG, text);
    }
    config_wrong("{\"discovery\": false}", COORD_ERR_CONFIG,
                 "discovery: must be an object or null, got false");
    config_wrong("{\"discovery\": \"/bin/list\"}", COORD_ERR_CONFIG,
                 "discovery: must be an object or null, got \"/bin/list\"");
}

static void a_value_of_another_type_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *value;
        unsigned fine; /* bits of the kinds that take it */
    } VALUE[] = {
        {"true", 0},
        {"false", 0},
        {"\"drop\"", 1U << TEXT | 1U << REMOVAL | 1U << COMMAND},
        {"\"drain \"", 1U << TEXT | 1U << COMMAND},
        {"\"\"", 1U << TEXT | 1U << COMMAND /* other words */},
        {"12", 1U << INTEGER | 1U << SECONDS},
        {"1.0", 1U << SECONDS},
        {"[]", 0},
        {"{}", 0},
        {"NaN", 0},
        {"Infinity", 0},
        {"1e999", 0},
        {"123456789012345678901234567890", 0},
        {"\"\\u0000\"", 1U << COMMAND /* other words */},
        {"\"\\ud800\"", 1U << COMMAND},
    };
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        for (size_t v = 0; v < COUNT(VALUE) && KEYS[i].kind != ORDER; v++) {
            if ((VALUE[v].fine >> KEYS[i].kind & 1) == 0) {
                wrong(KEYS[i].object, KEYS[i].name, VALUE[v].value, KEYS[i].takes);
            }
        }
    }
}

static void null_is_the_default_where_it_means_something(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        if (!KEYS[i].nullable) {
            wrong(KEYS[i].object, KEYS[i].name, "null", KEYS[i].takes);
            continue;
        }
        coordi_config c = good(KEYS[i].object, KEYS[i].name, "null");
        assert_true(c.operator_server.given || c.discovery.given);
        assert_defaults(&c, KEYS[i].object);
        coordi_config_done(&c);
    }
}

static void both_limits_are_taken_and_one_step_beyond_is_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        const key *k = &KEYS[i];
        const char *const fine[] = {k->low, k->high};
        const char *const bad[] = {k->below, k->above};
        for (int side = 0; side < 2 && k->low != NULL; side++) {
            const double factor = k->kind == SECONDS ? 1000.0 : 1.0;
            coordi_config c = good(k->object, k->name, fine[side]);
            assert_int_equal(integer_at(&c, k->at),
                             (int64_t)(strtod(fine[side], NULL) * factor + 0.5));
            coordi_config_done(&c);
            wrong(k->object, k->name, bad[side], k->takes);
        }
    }
}

static void a_text_has_room_for_so_many_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(KEYS); i++) {
        const key *k = &KEYS[i];
        if (k->kind != TEXT) {
            continue;
        }
        char value[600];
        const size_t most = (size_t)k->preset;
        memset(value, 't', sizeof value);
        value[0] = '"';
        memcpy(value + 1 + most, "\"", 2);
        coordi_config c = good(k->object, k->name, value);
        assert_int_equal(strlen(field(&c, k->at)), most);
        assert_memory_equal(field(&c, k->at), value + 1, most);
        coordi_config_done(&c);
        memcpy(value + 1 + most, "t\"", 3);
        wrong(k->object, k->name, value, k->takes);
    }
}

static void an_unknown_key_suggests_the_nearest_of_its_object(void **state)
{
    (void)state;
    static const struct {
        const char *object;
        const char *name;
        const char *nearest;
    } CASE[] = {
        {"operator_server", "system_address", "system_addr"},
        {"operator_server", "API_VERSION", "api_version"},
        {"operator_server", "collector_target", "collector_target_num"},
        {"operator_server", "learners_target_num", "learner_target_num"},
        {"operator_server", "poll", "poll_s"},
        {"discovery", "comand", "command"},
        {"discovery", "interval", "interval_s"},
    };
    for (size_t i = 0; i < COUNT(CASE); i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "%s.%s: is no key of the configuration; did you mean \"%s\"?",
                       CASE[i].object, CASE[i].name, CASE[i].nearest);
        config_wrong(with(CASE[i].object, CASE[i].name, "1"), COORD_ERR_CONFIG, text);
    }
    config_wrong("{\"operator_server.poll_s\": 1}", COORD_ERR_CONFIG,
                 "operator_server.poll_s: is no key of the configuration; did you mean "
                 "\"operator_server\"?");
}

static void of_duplicate_keys_the_last_one_wins(void **state)
{
    (void)state;
    coordi_config c = config_good(
        "{\"operator_server\": {\"job_id\": 5}, \"operator_server\": {\"roles\": 7, "
        "\"roles\": [\"none\"], \"poll_s\": 1, \"p\\u006fll_s\": 2}, "
        "\"discovery\": {\"command\": [], \"command\": \"b\"}}");
    assert_string_equal(c.operator_server.roles, "-");
    assert_int_equal(c.operator_server.poll_ms, 2000);
    assert_string_equal(c.discovery.command[0], "b");
    coordi_config_done(&c);
}

/* ---- one kind each ---- */

static void texts_are_taken_as_they_are(void **state)
{
    (void)state;
    coordi_config c = config_good(
        "{\"operator_server\": {\"system_addr\": \"http://di-server:8081/x\", "
        "\"api_version\": \"/v1alpha1\", \"namespace\": \"\", \"name\": \"pod\\u00e4\", "
        "\"job_id\": \"ns.job\"}}");
    assert_string_equal(c.operator_server.system_addr, "http://di-server:8081/x");
    assert_string_equal(c.operator_server.api_version, "/v1alpha1");
    assert_string_equal(c.operator_server.name_space, "");
    assert_string_equal(c.operator_server.name, "pod\xc3\xa4");
    assert_string_equal(c.operator_server.job_id, "ns.job");
    coordi_config_done(&c);
}

static void removal_drops_or_drains(void **state)
{
    (void)state;
    static const char *const BAD[] = {"\"Drop\"", "\"dra\"", "\"drop drain\"", "\" \"",
                                      "\"a word that is longer than those known\""};
    coordi_config c = config_good("{\"operator_server\": {\"removal\": \"drain\"}, "
                                  "\"discovery\": {\"removal\": \"drop\"}}");
    assert_true(c.operator_server.drains);
    assert_false(c.discovery.drains);
    coordi_config_done(&c);
    c = config_good("{\"operator_server\": {\"removal\": \"drop\"}, "
                    "\"discovery\": {\"removal\": \"drain\"}}");
    assert_false(c.operator_server.drains);
    assert_true(c.discovery.drains);
    coordi_config_done(&c);
    for (size_t i = 0; i < COUNT(BAD); i++) {
        wrong("operator_server", "removal", BAD[i], "one of: drop drain");
        wrong("discovery", "removal", BAD[i], "one of: drop drain");
    }
}

static void grace_is_as_long_as_start_waits_unless_it_is_said(void **state)
{
    (void)state;
    coordi_config c = config_good("{\"operator_server\": {\"grace_s\": null}, "
                                  "\"max_retry_second\": 7.5}");
    assert_int_equal(c.operator_server.grace_ms, 7500);
    coordi_config_done(&c);
    c = config_good("{\"max_retry_second\": 7.5, \"operator_server\": {\"grace_s\": 3}}");
    assert_int_equal(c.operator_server.grace_ms, 3000);
    coordi_config_done(&c);
}

static void targets_are_what_is_asked_for_at_start_unless_they_are_said(void **state)
{
    (void)state;
#define ORDERED                                                                          \
    "\"init_replicas_request\": {\"collectors\": {\"replicas\": 3, \"cpus\": \"500m\"}," \
    " \"learners\": {\"replicas\": 2, \"gpu\": 1}}"
    coordi_config c = config_good("{\"operator_server\": {" ORDERED "}}");
    const coord_operator_request *r = &c.operator_server.order->request;
    assert_int_equal(r->collectors, 3);
    assert_int_equal(r->learners, 2);
    assert_string_equal(r->collector_cpus, "500m");
    assert_string_equal(r->learner_gpus, "1");
    assert_null(r->learner_memory);
    assert_true(c.operator_server.order->remark[0] != '\0');
    assert_int_equal(c.operator_server.targets[COORD_COLLECTOR], 3);
    assert_int_equal(c.operator_server.targets[COORD_LEARNER], 2);
    coordi_config_done(&c);
    c = config_good("{\"operator_server\": {\"collector_target_num\": 0, "
                    "\"learner_target_num\": null, " ORDERED "}}");
    assert_int_equal(c.operator_server.targets[COORD_COLLECTOR], 0);
    assert_int_equal(c.operator_server.targets[COORD_LEARNER], 2);
    coordi_config_done(&c);
    c = config_good("{\"operator_server\": {\"learner_target_num\": 4, "
                    "\"init_replicas_request\": {}}}");
    assert_non_null(c.operator_server.order);
    assert_int_equal(c.operator_server.targets[COORD_COLLECTOR], 0);
    assert_int_equal(c.operator_server.targets[COORD_LEARNER], 4);
    coordi_config_done(&c);
}

static void what_is_wrong_in_the_request_is_named_by_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *order;
        const char *text;
    } CASE[] = {
        {"{\"learners\": {\"gpus\": true}}",
         ".learners.gpus: expected a Kubernetes quantity such as 2, \"500m\" or "
         "\"200Mi\", got true"},
        {"{\"collectors\": {\"replicas\": 10001}}",
         ".collectors.replicas: expected an integer from 0 to 10000, got 10001"},
        {"{\"collectors\": {\"init_replicas_request\": 1}}",
         ".collectors: expected only replicas, cpus, gpus and memory, got "
         "\"init_replicas_request\""},
        {"{\"collectors\": 2}",
         ".collectors: expected an object such as {\"replicas\": 2}, got 2"},
        {"{\"collector\": {}}",
         ": expected only collectors and learners, got \"collector\""},
        {"[]", ": expected an object with collectors and learners, got []"},
        {"false", ": expected an object with collectors and learners, got false"},
    };
    for (size_t i = 0; i < COUNT(CASE); i++) {
        char text[300];
        (void)snprintf(text, sizeof text, "operator_server.init_replicas_request%s",
                       CASE[i].text);
        config_wrong(with("operator_server", "init_replicas_request", CASE[i].order),
                     COORD_ERR_CONFIG, text);
    }
}

static void roles_are_a_letter_for_each_rank(void **state)
{
    (void)state;
    static const char *const BAD[] = {"\"Learner\"", "\"\"", "null",
                                      "7",           "[]",   "\"collector\\u0000\""};
    coordi_config c = good("operator_server", "roles",
                           "[\"none\", \"learner\", \"learner\", \"c\\u006fllector\"]");
    assert_string_equal(c.operator_server.roles, "-llc");
    coordi_config_done(&c);
    for (size_t i = 0; i < COUNT(BAD); i++) {
        char value[100];
        (void)snprintf(value, sizeof value, "[\"none\", %s]", BAD[i]);
        char text[200];
        (void)snprintf(text, sizeof text,
                       "operator_server.roles[1]: must be \"collector\", \"learner\" or "
                       "\"none\", got %s",
                       BAD[i]);
        config_wrong(with("operator_server", "roles", value), COORD_ERR_CONFIG, text);
    }
}

static void there_are_at_most_ten_thousand_roles(void **state)
{
    (void)state;
    enum { MOST = 10000 };
    static char json[(MOST + 1) * 8 + 64];
    for (int more = 0; more < 2; more++) {
        size_t at = (size_t)sprintf(json, "{\"operator_server\": {\"roles\": [");
        for (int i = 0; i < MOST + more; i++) {
            at += (size_t)sprintf(json + at, "%s\"none\"", i == 0 ? "" : ",");
        }
        (void)sprintf(json + at, "]}}");
        if (more == 0) {
            coordi_config c = config_good(json);
            assert_int_equal(strlen(c.operator_server.roles), MOST);
            coordi_config_done(&c);
        } else {
            char text[200];
            (void)snprintf(text, sizeof text,
                           "operator_server.roles: must be a list of 1 to 10000 roles, "
                           "or null, got %.64s...",
                           strchr(json, '['));
            config_wrong(json, COORD_ERR_CONFIG, text);
        }
    }
}

static void a_command_is_a_path_or_argv(void **state)
{
    (void)state;
    coordi_config c = good("discovery", "command", "\"/opt/my list\"");
    assert_string_equal(c.discovery.command[0], "/opt/my list");
    assert_null(c.discovery.command[1]);
    coordi_config_done(&c);
    c = good("discovery", "command",
             " [ \"list\", \"\", \"a\\u00e4\\n\" , \"--x=\\\"y\\\"\", \"\"]");
    static const char *const ARGV[] = {"list", "", "a\xc3\xa4\n", "--x=\"y\"", ""};
    for (size_t i = 0; i < COUNT(ARGV); i++) {
        assert_string_equal(c.discovery.command[i], ARGV[i]);
    }
    assert_null(c.discovery.command[COUNT(ARGV)]);
    coordi_config_done(&c);
}

static void a_command_has_1_to_64_strings(void **state)
{
    (void)state;
    char value[1000];
    for (int count = 64; count <= 65; count++) {
        size_t at = (size_t)sprintf(value, "[");
        for (int i = 0; i < count; i++) {
            at += (size_t)sprintf(value + at, "%s\"%d\"", i == 0 ? "" : ",", i);
        }
        (void)sprintf(value + at, "]");
        if (count == 64) {
            coordi_config c = good("discovery", "command", value);
            assert_string_equal(c.discovery.command[63], "63");
            assert_null(c.discovery.command[64]);
            coordi_config_done(&c);
        } else {
            wrong("discovery", "command", value,
                  "the path of a program, a list of 1 to 64 strings, or null");
        }
    }
}

static void a_wrong_argument_is_named_by_its_path(void **state)
{
    (void)state;
    static const struct {
        const char *command;
        const char *text;
    } CASE[] = {
        {"\"\"", ": must be the path of a program, got \"\""},
        {"\"a\\u0000\"", ": must be the path of a program, got \"a\\u0000\""},
        {"[\"\", \"x\"]", "[0]: must be the path of a program, got \"\""},
        {"[null]", "[0]: must be the path of a program, got null"},
        {"[\"a\", 7]", "[1]: must be a string of UTF-8 without NUL, got 7"},
        {"[\"a\", \"\", \"\\u0000\"]",
         "[2]: must be a string of UTF-8 without NUL, got \"\\u0000\""},
        {"[\"a\", \"\\ud800\"]",
         "[1]: must be a string of UTF-8 without NUL, got \"\\ud800\""},
        {"[\"a\", [\"b\"]]", "[1]: must be a string of UTF-8 without NUL, got [\"b\"]"},
    };
    for (size_t i = 0; i < COUNT(CASE); i++) {
        char text[200];
        (void)snprintf(text, sizeof text, "discovery.command%s", CASE[i].text);
        config_wrong(with("discovery", "command", CASE[i].command), COORD_ERR_CONFIG,
                     text);
    }
}

/* ---- the whole ---- */

static const char WHOLE[] =
    "{\"collector\": {\"0\": [\"c\", \"h\", 1]}, \"operator_server\": {\"system_addr\": "
    "\"di:80\", " ORDERED ", \"roles\": [\"learner\", \"collector\"]}, "
    "\"discovery\": {\"command\": [\"list\", \"--all\"]}}";

static void nothing_is_kept_of_the_text(void **state)
{
    (void)state;
    char text[sizeof WHOLE];
    coordi_config c;
    coord_error err;
    memcpy(text, WHOLE, sizeof WHOLE);
    assert_int_equal(coordi_config_read(coord_text_of(text), &c, &err), COORD_OK);
    memset(text, 'x', sizeof text);
    assert_string_equal(c.operator_server.system_addr, "di:80");
    assert_string_equal(c.operator_server.order->request.collector_cpus, "500m");
    assert_string_equal(c.operator_server.roles, "lc");
    assert_string_equal(c.discovery.command[0], "list");
    assert_string_equal(c.discovery.command[1], "--all");
    coordi_config_done(&c);
    assert_null(c.operator_server.order);
    assert_null(c.operator_server.roles);
    assert_null(c.discovery.command);
    coordi_config_done(&c);
}

static void a_failure_keeps_nothing(void **state)
{
    (void)state;
    char json[sizeof WHOLE + 100];
    int blocks = 0;
    coordi_alloc_set_watch(count_blocks, &blocks);
    /* Behind all that WHOLE has, something is wrong. */
    static const char *const LAST[] = {"\"x\": 1}}", "\"timeout_s\": 0}}",
                                       "\"removal\": \"\"}}"};
    for (size_t i = 0; i < COUNT(LAST); i++) {
        (void)snprintf(json, sizeof json, "%.*s, %s", (int)sizeof WHOLE - 3, WHOLE,
                       LAST[i]);
        coordi_config c;
        assert_int_equal(coordi_config_read(coord_text_of(json), &c, NULL),
                         COORD_ERR_CONFIG);
        assert_int_equal(blocks, 0);
    }
    coordi_alloc_set_watch(NULL, NULL);
}

static void without_memory_it_fails_and_keeps_nothing(void **state)
{
    (void)state;
    int blocks = 0;
    int failures = 0;
    coord_status rc;
    coordi_alloc_set_watch(count_blocks, &blocks);
    do {
        coordi_config config;
        coord_error err;
        int left = failures;
        coordi_alloc_set_fault(countdown, &left);
        rc = coordi_config_read(coord_text_of(WHOLE), &config, &err);
        coordi_alloc_set_fault(NULL, NULL);
        if (rc == COORD_OK) {
            coordi_config_done(&config);
        } else {
            assert_int_equal(rc, COORD_ERR_NOMEM);
            assert_string_equal(err.text, "configuration: out of memory");
            failures++;
        }
        assert_int_equal(blocks, 0);
    } while (rc != COORD_OK);
    coordi_alloc_set_watch(NULL, NULL);
    assert_true(failures >= 5); /* workers, their ids, request, roles, command */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_help_has_a_block_for_each_object),
        cmocka_unit_test(an_absent_key_has_its_default),
        cmocka_unit_test(no_operator_server_is_null_false_or_empty),
        cmocka_unit_test(a_value_of_another_type_is_wrong),
        cmocka_unit_test(null_is_the_default_where_it_means_something),
        cmocka_unit_test(both_limits_are_taken_and_one_step_beyond_is_not),
        cmocka_unit_test(a_text_has_room_for_so_many_bytes),
        cmocka_unit_test(an_unknown_key_suggests_the_nearest_of_its_object),
        cmocka_unit_test(of_duplicate_keys_the_last_one_wins),
        cmocka_unit_test(texts_are_taken_as_they_are),
        cmocka_unit_test(removal_drops_or_drains),
        cmocka_unit_test(grace_is_as_long_as_start_waits_unless_it_is_said),
        cmocka_unit_test(targets_are_what_is_asked_for_at_start_unless_they_are_said),
        cmocka_unit_test(what_is_wrong_in_the_request_is_named_by_its_path),
        cmocka_unit_test(roles_are_a_letter_for_each_rank),
        cmocka_unit_test(there_are_at_most_ten_thousand_roles),
        cmocka_unit_test(a_command_is_a_path_or_argv),
        cmocka_unit_test(a_command_has_1_to_64_strings),
        cmocka_unit_test(a_wrong_argument_is_named_by_its_path),
        cmocka_unit_test(nothing_is_kept_of_the_text),
        cmocka_unit_test(a_failure_keeps_nothing),
        cmocka_unit_test(without_memory_it_fails_and_keeps_nothing),
    };
    return cmocka_run_group_tests_name("config_objects", tests, NULL, NULL);
}
