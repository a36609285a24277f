#include "config.h"
#include "raw.h"

#include "coord/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const double TIMEOUT_MAX_S = 366.0 * 24 * 3600;

enum { ID_NUMBER_SIZE = 12 }; /* "-4294967295" and the NUL */

/* Where the reading of one file stands. */
typedef struct reader {
    const char *path;
    json_t *tree;    /* to check */
    coord_text text; /* to hand on */
    config *config;
} reader;

static bool wrong(const reader *r, const char *what)
{
    (void)fprintf(stderr, "pipeline: %s: %s\n", r->path, what);
    return false;
}

/* ---- the file ---- */

static char *read_all(FILE *file, size_t *len)
{
    char *text = NULL;
    char chunk[4096];
    FILE *to = open_memstream(&text, len);
    if (to == NULL) {
        return NULL;
    }
    for (size_t got = fread(chunk, 1, sizeof chunk, file); got > 0;
         got = fread(chunk, 1, sizeof chunk, file)) {
        (void)fwrite(chunk, 1, got, to);
    }
    bool whole = ferror(to) == 0 && ferror(file) == 0;
    if (fclose(to) != 0 || !whole) {
        free(text);
        return NULL;
    }
    return text;
}

static bool read_file(reader *r)
{
    FILE *file = fopen(r->path, "re");
    if (file != NULL) {
        r->config->text = read_all(file, &r->text.len);
        r->text.ptr = r->config->text;
        int why = errno;
        (void)fclose(file);
        errno = why;
    }
    return r->config->text != NULL || wrong(r, strerror(errno));
}

/* ---- keys ---- */

/* Is every key of the object one of `known`, which are separated by ", "? */
static bool check_keys(const reader *r, json_t *object, const char *prefix,
                       const char *known)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        char text[256];
        size_t len = strlen(key);
        const char *at = known;
        while (at != NULL &&
               (strncmp(at, key, len) != 0 || strchr(",", at[len]) == NULL)) {
            at = strstr(at, ", ");
            at = at == NULL ? NULL : at + 2;
        }
        if (at == NULL || len == 0) {
            (void)snprintf(text, sizeof text, "%s%.80s: is no key; there %s: %s", prefix,
                           key, strchr(known, ',') == NULL ? "is" : "are", known);
            return wrong(r, text);
        }
    }
    return true;
}

static bool read_coordinator(reader *r)
{
    coord_text raw;
    if (!json_is_object(json_object_get(r->tree, "coordinator")) ||
        !raw_member(r->text, "coordinator", &raw)) {
        return wrong(r,
                     "coordinator: must be an object, the coordinator's configuration");
    }
    r->config->coordinator = strndup(raw.ptr, raw.len);
    return r->config->coordinator != NULL || wrong(r, "out of memory");
}

static bool read_finish(reader *r)
{
    coord_error err;
    json_t *finish = json_object_get(r->tree, "finish");
    if (finish == NULL) {
        return true;
    }
    if (!json_is_object(finish)) {
        return wrong(r, "finish: must be an object");
    }
    if (!check_keys(r, finish, "finish.", "learner_iters")) {
        return false;
    }
    coord_status rc = coord_json_get_int(r->tree, "finish.learner_iters",
                                         &r->config->learner_iters, &err);
    if (rc != COORD_OK && rc != COORD_ERR_NOT_FOUND) {
        return wrong(r, err.text);
    }
    return rc == COORD_ERR_NOT_FOUND || r->config->learner_iters >= 1 ||
           wrong(r, "finish.learner_iters: must be at least 1");
}

static bool read_timeout(reader *r)
{
    coord_error err;
    double timeout_s = 0;
    coord_status rc = coord_json_get_double(r->tree, "timeout_s", &timeout_s, &err);
    if (rc != COORD_OK && rc != COORD_ERR_NOT_FOUND) {
        return wrong(r, err.text);
    }
    if (!(timeout_s >= 0 && timeout_s <= TIMEOUT_MAX_S)) { /* NaN neither */
        return wrong(r, "timeout_s: must be from 0, which is no limit, to a year");
    }
    r->config->timeout_ms = (int64_t)(timeout_s * 1000);
    if (r->config->timeout_ms == 0 && timeout_s > 0) {
        r->config->timeout_ms = 1;
    }
    return true;
}

/* ---- tasks ---- */

static bool add_task(reader *r, const char *path, coord_role role, coord_text raw)
{
    config *c = r->config;
    coord_error err;
    const char *id = NULL;
    char id_path[160];
    char text[512];

    (void)snprintf(id_path, sizeof id_path, "%s.task_id", path);
    if (coord_json_get_string(r->tree, id_path, &id, &err) != COORD_OK) {
        return wrong(r, err.text);
    }
    if (id[0] == '\0' || strlen(id) >= COORD_ID_SIZE) {
        (void)snprintf(text, sizeof text, "%s: must be of 1 to 255 bytes", id_path);
        return wrong(r, text);
    }
    if (config_find_task(c, id) != NULL) {
        (void)snprintf(text, sizeof text, "%s: \"%s\" is the id of another task, too",
                       id_path, id);
        return wrong(r, text);
    }
    task *grown = realloc(c->tasks, (c->task_count + 1) * sizeof *grown);
    if (grown == NULL) {
        return wrong(r, "out of memory");
    }
    c->tasks = grown;
    task *added = &grown[c->task_count++];
    *added = (task){.text = raw, .role = role};
    (void)snprintf(added->id, sizeof added->id, "%s", id);
    return true;
}

static bool is_set(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return value != NULL && !json_is_null(value);
}

/* With no worker in sight a task would wait for ever. */
static bool has_workers(const reader *r, coord_role role)
{
    const json_t *coordinator = json_object_get(r->tree, "coordinator");
    const json_t *workers = json_object_get(coordinator, coord_role_str(role));
    return is_set(coordinator, "operator_server") || is_set(coordinator, "discovery") ||
           (workers != NULL &&
            !(json_is_object(workers) && json_object_size(workers) == 0));
}

static bool read_tasks(reader *r, const char *key, coord_role role)
{
    json_t *list = json_object_get(r->tree, key);
    coord_text raw;
    coord_text item;
    size_t at = 0;
    char path[128];

    if (list == NULL) {
        return true;
    }
    if (!json_is_array(list) || !raw_member(r->text, key, &raw)) {
        (void)snprintf(path, sizeof path, "%s: must be a list of tasks", key);
        return wrong(r, path);
    }
    if (json_array_size(list) > 0 && !has_workers(r, role)) {
        (void)snprintf(path, sizeof path, "coordinator.%s: must name a worker for %s",
                       coord_role_str(role), key);
        return wrong(r, path);
    }
    for (size_t i = 0; raw_next(raw, &at, NULL, &item); i++) {
        (void)snprintf(path, sizeof path, "%s[%zu]", key, i);
        if (!add_task(r, path, role, item)) {
            return false;
        }
    }
    return true;
}

static bool has_learner_task(const config *c)
{
    for (size_t i = 0; i < c->task_count; i++) {
        if (c->tasks[i].role == COORD_LEARNER) {
            return true;
        }
    }
    return false;
}

static bool read_each(reader *r)
{
    static const char KEY[] = "each_collector";
    coord_error err;
    const char *id = NULL;
    const json_t *coordinator = json_object_get(r->tree, "coordinator");
    if (json_object_get(r->tree, KEY) == NULL) {
        return true;
    }
    if (coord_json_get_string(r->tree, "each_collector.task_id", &id, &err) != COORD_OK) {
        return wrong(r, err.text);
    }
    if (id[0] == '\0' || strlen(id) > COORD_ID_SIZE - ID_NUMBER_SIZE) {
        return wrong(r, "each_collector.task_id: must be of 1 to 244 bytes");
    }
    if (!has_learner_task(r->config)) {
        return wrong(r, "each_collector: needs learner_tasks, whose end ends the run");
    }
    r->config->collectors = json_object_size(json_object_get(coordinator, "collector"));
    return raw_member(r->text, KEY, &r->config->each);
}

/* ---- the whole ---- */

static bool read_all_keys(reader *r)
{
    coord_error err;
    if (coord_json_parse(r->text, &r->tree, &err) != COORD_OK) {
        return wrong(r, err.text);
    }
    if (!json_is_object(r->tree)) {
        return wrong(r, "must hold a JSON object");
    }
    return check_keys(r, r->tree, "",
                      "coordinator, learner_tasks, collector_tasks, each_collector, "
                      "finish, timeout_s") &&
           read_coordinator(r) && read_tasks(r, "learner_tasks", COORD_LEARNER) &&
           read_tasks(r, "collector_tasks", COORD_COLLECTOR) && read_each(r) &&
           read_finish(r) && read_timeout(r);
}

bool config_read(const char *path, config *ret)
{
    *ret = (config){0};
    reader r = {.path = path, .config = ret};
    bool good = read_file(&r) && read_all_keys(&r);
    json_decref(r.tree);
    if (!good) {
        config_done(ret);
    }
    return good;
}

task *config_find_task(const config *c, const char *id)
{
    for (size_t i = 0; i < c->task_count; i++) {
        if (strcmp(c->tasks[i].id, id) == 0) {
            return &c->tasks[i];
        }
    }
    return NULL;
}

void config_done(config *c)
{
    free(c->tasks);
    free(c->coordinator);
    free(c->text);
    *c = (config){0};
}
