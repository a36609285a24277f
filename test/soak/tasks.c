#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an id may end with: as it is, and as JSON spells it. */
static const char *const SUFFIX[][2] = {
    {"", ""},
    {" \"quoted\"", " \\\"quoted\\\""},
    {"/%41?&", "/%41?&"},
    {"-\xc3\xa9", "-\\u00e9"},
};

/* Values that a strict reader would refuse, and that have to pass untouched. */
static const char *const WEIRD[] = {
    "null",
    "[NaN, -Infinity, 1e999]",
    "123456789012345678901234567890",
    "\"\\ud800\"",
    "{\"task_id\": \"inner\", \"attempt\": 77}",
};

void soak_task_id(uint64_t seed, int life, int number, bool learner, char id[64])
{
    uint64_t random = seed + (uint64_t)life * 1000003 + (uint64_t)number;
    int suffix = soak_chance(&random, 70) ? 0 : (int)soak_between(&random, 1, 3);
    (void)snprintf(id, 64, "%c%llx-%d-%d%s", learner ? 'l' : 'c',
                   (unsigned long long)(seed & 0xffff), life, number, SUFFIX[suffix][0]);
}

static uint64_t random_of(const char *id)
{
    return (uint64_t)soak_crc(id, strlen(id)) * 0x9e3779b1U;
}

soak_plan soak_task_plan(const char *id)
{
    uint64_t random = random_of(id);
    soak_plan plan = {.learner = id[0] == 'l'};
    plan.steps = (int)soak_between(&random, 1, 8);
    plan.step_ms = (int)soak_between(&random, 0, soak_chance(&random, 10) ? 400 : 60);
    int64_t dice = soak_between(&random, 0, 99);
    plan.fault = dice < 3    ? SOAK_FAULT_START
                 : dice < 9  ? SOAK_FAULT_ONCE
                 : dice < 10 ? SOAK_FAULT_STEPS
                             : SOAK_FAULT_NONE;
    return plan;
}

static size_t json_of(const char *id, char *out, size_t size)
{
    for (size_t i = sizeof SUFFIX / sizeof SUFFIX[0] - 1; i > 0; i--) {
        size_t len = strlen(id);
        size_t end = strlen(SUFFIX[i][0]);
        if (len > end && strcmp(id + len - end, SUFFIX[i][0]) == 0) {
            return (size_t)snprintf(out, size, "%.*s%s", (int)(len - end), id,
                                    SUFFIX[i][1]);
        }
    }
    return (size_t)snprintf(out, size, "%s", id);
}

char *soak_task_text(const char *id, uint32_t restarts)
{
    soak_plan plan = soak_task_plan(id);
    uint64_t random = random_of(id) + 1;
    size_t pad = (size_t)soak_between(&random, 0, soak_chance(&random, 3) ? 60000 : 300);
    const char *weird = WEIRD[soak_next(&random) % (sizeof WEIRD / sizeof WEIRD[0])];
    bool first = soak_chance(&random, 50);
    char name[128];
    char again[48] = "";
    char *text = malloc(pad + 512);
    if (text == NULL) {
        abort();
    }
    (void)json_of(id, name, sizeof name);
    if (restarts > 0) {
        (void)snprintf(again, sizeof again, ", \"restarted\": %u", restarts);
    }
    int len = snprintf(text, 512,
                       "{%s%s%s\"steps\": %d, \"step_ms\": %d, \"fault\": %d, "
                       "\"weird\": %s%s%s%s%s, \"pad\": \"",
                       first ? "\"task_id\": \"" : "", first ? name : "",
                       first ? "\", " : " ", plan.steps, plan.step_ms, (int)plan.fault,
                       weird, again, first ? "" : ",\n \"task_id\": \"",
                       first ? "" : name, first ? "" : "\"");
    memset(text + len, 'p', pad);
    memcpy(text + len + pad, "\"}", 3);
    return text;
}
