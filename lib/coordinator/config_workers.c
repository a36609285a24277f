/* The workers of the configuration: read, added, removed. */
#include "coordinator/config_read.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/map.h"
#include "codec/json.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 160 };

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
        return coordi_config_wrong(err, path, "must be a list of three: [id, host, port]",
                                   value);
    }
    *out = (coordi_config_worker){.role = role};
    (void)snprintf(at, sizeof at, "%s[0]", path);
    if (coordi_json_string(item[0], out->id, sizeof out->id) != COORD_OK ||
        out->id[0] == '\0') {
        return coordi_config_wrong(err, at, "id must be a string of 1 to 255 bytes",
                                   item[0]);
    }
    (void)snprintf(at, sizeof at, "%s[1]", path);
    if (!coordi_config_read_host(item[1], out->host, sizeof out->host)) {
        return coordi_config_wrong(err, at, "host " COORDI_CONFIG_A_HOST, item[1]);
    }
    (void)snprintf(at, sizeof at, "%s[2]", path);
    coord_status rc =
        coordi_config_read_integer(at, "port ", 0, 65535, item[2], &port, err);
    if (rc == COORD_OK && port == 0) {
        return coordi_config_wrong(
            err, at, "port must be the one that the worker listens on", item[2]);
    }
    out->port = rc == COORD_OK ? (uint16_t)port : 0;
    return rc;
}

/* Room for one worker more. There always is room for the next power of two of the count
 * at least, so only a power of two can be all that there is room for; that holds when
 * workers are removed, too. */
static bool reserve_worker(coordi_config *config)
{
    size_t count = config->worker_count;
    if ((count & (count - 1)) != 0) {
        return true;
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
    config->role_count[role]++;
    return coordi_map_put(ids, w->id, config) ? COORD_OK
                                              : coordi_fail_nomem(err, "configuration");
}

coord_status coordi_config_read_workers(const coordi_config_key *k, coord_text value,
                                        coordi_config *config, coord_error *err)
{
    coord_status rc = COORD_OK;
    coordi_map ids = {0};
    coord_text name;
    coord_text item;
    size_t at = 0;

    if (coordi_json_type_of(value) != COORDI_JSON_OBJECT) {
        return coordi_config_wrong(err, k->name, "must be an object of [id, host, port]",
                                   value);
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

/* ---- while it runs ---- */

static size_t find_worker(const coordi_config *config, coord_role role, const char *id)
{
    size_t at = 0;
    while (at < config->worker_count && (config->workers[at].role != role ||
                                         strcmp(config->workers[at].id, id) != 0)) {
        at++;
    }
    return at;
}

coord_status coordi_config_add_worker(coordi_config *config,
                                      const coordi_config_worker *worker,
                                      coord_error *err)
{
    const coordi_config_worker added = *worker; /* it may be in the array that grows */
    if (find_worker(config, added.role, added.id) < config->worker_count) {
        return coordi_fail(err, COORD_ERR_EXISTS, "%s \"%.100s\" is there already",
                           coord_role_str(added.role), added.id);
    }
    if (!reserve_worker(config)) {
        return coordi_fail_nomem(err, "configuration");
    }
    config->workers[config->worker_count++] = added;
    config->role_count[added.role]++;
    return COORD_OK;
}

bool coordi_config_remove_worker(coordi_config *config, coord_role role, const char *id)
{
    size_t at = find_worker(config, role, id);
    if (at == config->worker_count) {
        return false;
    }
    coordi_config_worker *w = &config->workers[at];
    config->worker_count--;
    config->role_count[role]--;
    memmove(w, w + 1, (config->worker_count - at) * sizeof *w);
    return true;
}
