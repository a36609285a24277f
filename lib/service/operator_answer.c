#include "service/operator_answer.h"

#include "base/address.h"
#include "base/alloc.h"
#include "base/line.h"
#include "base/map.h"
#include "codec/json.h"

#include <stdio.h>

/* Answers as they are made. A replica's strings are one block, of which its id is the
 * beginning. */

enum {
    COLLECTOR_PORT = 22270, /* where the job's template names none */
    LEARNER_PORT = 22271,
    FIRST_ROOM = 8,
};

/* What the caller sees is the first member. */
typedef struct box {
    coord_operator_answer face;
    coord_operator_replica *items[COORDI_OPERATOR_LISTS];
    size_t count[COORDI_OPERATOR_LISTS];
    size_t cap[COORDI_OPERATOR_LISTS];
    char message[256];
} box;

const char *coordi_operator_api_str(coordi_operator_api api)
{
    return api == COORDI_OPERATOR_V1   ? "v1alpha1"
           : api == COORDI_OPERATOR_V2 ? "v2alpha1"
                                       : "auto";
}

/* ---- life ---- */

static box *box_of(coord_operator_answer *answer)
{
    return (box *)(void *)answer;
}

static void show(box *b)
{
    b->face.collectors = b->items[COORDI_OPERATOR_COLLECTORS];
    b->face.collector_count = b->count[COORDI_OPERATOR_COLLECTORS];
    b->face.learners = b->items[COORDI_OPERATOR_LEARNERS];
    b->face.learner_count = b->count[COORDI_OPERATOR_LEARNERS];
    b->face.nodes = b->items[COORDI_OPERATOR_NODES];
    b->face.node_count = b->count[COORDI_OPERATOR_NODES];
}

coord_operator_answer *coordi_operator_answer_create(coordi_operator_api api)
{
    box *b = coordi_zalloc(sizeof *b);
    if (b == NULL) {
        return NULL;
    }
    b->face.complete = true;
    b->face.skipped_text = "";
    b->face.api_version = coordi_operator_api_str(api);
    b->face.message = b->message;
    return &b->face;
}

void coord_operator_answer_destroy(coord_operator_answer *answer)
{
    if (answer == NULL) {
        return;
    }
    box *b = box_of(answer);
    for (int list = 0; list < COORDI_OPERATOR_LISTS; list++) {
        for (size_t i = 0; i < b->count[list]; i++) {
            coordi_free((char *)b->items[list][i].id);
        }
        coordi_free(b->items[list]);
    }
    if (b->face.skipped > 0) {
        coordi_free((char *)b->face.skipped_text);
    }
    coordi_free(b);
}

const coord_operator_replica *
coordi_operator_answer_list(const coord_operator_answer *answer,
                            coordi_operator_list list, size_t *count)
{
    const box *b = (const box *)(const void *)answer;
    *count = b->count[list];
    return b->items[list];
}

void coordi_operator_answer_say(coord_operator_answer *answer, int http_status,
                                coord_text raw_message)
{
    box *b = box_of(answer);
    coordi_buf text = {0};
    b->face.http_status = http_status;
    b->message[0] = '\0';
    if (coordi_json_string_add_any(raw_message, &text) == COORD_OK) {
        (void)snprintf(b->message, sizeof b->message, "%.*s", (int)text.len,
                       text.len == 0 ? "" : text.ptr);
        coordi_line_clean(b->message);
    }
    coordi_buf_done(&text);
}

void coordi_operator_answer_say_as(coord_operator_answer *answer,
                                   const coord_operator_answer *like)
{
    box *b = box_of(answer);
    b->face.http_status = like->http_status;
    (void)snprintf(b->message, sizeof b->message, "%s", like->message);
}

/* ---- ids ---- */

typedef struct parts {
    char host[COORDI_HOST_SIZE];
    char name[COORD_ID_SIZE];
    uint16_t port; /* 0: none was given */
} parts;

/* False: no number from 1 to 65535. */
static bool read_port(const char *text, uint16_t *ret)
{
    unsigned value = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 5 || strspn(text, "0123456789") != len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *ret = (uint16_t)value;
    return value >= 1 && value <= 65535;
}

/* IPv6 comes with brackets or without; a server in Go prints it without. */
static const char *split_host(const char *id, parts *ret)
{
    const char *from = id;
    const char *end = strrchr(id, ':');
    const char *port = end == NULL ? NULL : end + 1;
    if (id[0] == '[') {
        from = id + 1;
        end = strchr(id, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            return "brackets without an end";
        }
        port = end[1] == ':' ? end + 2 : NULL;
    } else if (end == NULL) {
        end = id + strlen(id);
    }
    const size_t len = (size_t)(end - from);
    if (len == 0 || len >= sizeof ret->host) {
        return "no host of 1 to 255 bytes";
    }
    memcpy(ret->host, from, len);
    ret->host[len] = '\0';
    if (!coordi_address_is_host(ret->host)) {
        return "no host";
    }
    if (id[0] == '[' && strchr(ret->host, ':') == NULL) {
        return "brackets around what is no IPv6 address";
    }
    if (port != NULL && !read_port(port, &ret->port)) {
        return "the port must be a number from 1 to 65535";
    }
    return NULL;
}

static bool is_numeric(const char *host)
{
    return strchr(host, ':') != NULL || host[strspn(host, "0123456789.")] == '\0';
}

/* "pod.namespace", "pod.namespace.svc.cluster.local"; names of pods may hold dots. */
static void find_name(const char *host, const char *name_space, char *out)
{
    size_t len = strcspn(host, ".");
    const size_t space_len = strlen(name_space);
    const char *at = space_len == 0 || is_numeric(host) ? NULL : strchr(host, '.');
    for (; at != NULL; at = strchr(at + 1, '.')) {
        const char *rest = at + 1;
        if (strncmp(rest, name_space, space_len) == 0 &&
            (rest[space_len] == '\0' || strncmp(rest + space_len, ".svc", 4) == 0)) {
            len = (size_t)(at - host);
            break;
        }
    }
    if (is_numeric(host) || len == 0) {
        len = strlen(host);
    }
    (void)snprintf(out, COORD_ID_SIZE, "%.*s", (int)len, host);
}

/* NULL: good; else what is wrong. */
static const char *split_id(const char *id, const char *name_space, parts *ret)
{
    *ret = (parts){0};
    const size_t len = strlen(id);
    if (len == 0 || len >= COORD_ID_SIZE) {
        return "an id has 1 to 255 bytes";
    }
    const char *why = split_host(id, ret);
    if (why == NULL) {
        find_name(ret->host, name_space, ret->name);
    }
    return why;
}

bool coordi_operator_pod_name(const char *id, const char *name_space,
                              char out[COORD_ID_SIZE])
{
    parts p;
    if (split_id(id, name_space, &p) != NULL) {
        return false;
    }
    memcpy(out, p.name, COORD_ID_SIZE);
    return true;
}

/* ---- replicas ---- */

static bool make_room(box *b, coordi_operator_list list)
{
    if (b->count[list] < b->cap[list]) {
        return true;
    }
    const size_t cap = b->cap[list] == 0 ? FIRST_ROOM : 2 * b->cap[list];
    coord_operator_replica *grown =
        coordi_realloc(b->items[list], cap * sizeof *b->items[list]);
    if (grown == NULL) {
        return false;
    }
    b->items[list] = grown;
    b->cap[list] = cap;
    show(b);
    return true;
}

/* One block of three strings; NULL: out of memory. */
static char *place_strings(const char *id, const char *name, const char *host)
{
    const size_t id_size = strlen(id) + 1;
    const size_t name_size = strlen(name) + 1;
    const size_t host_size = strlen(host) + 1;
    char *block = coordi_alloc(id_size + name_size + host_size);
    if (block != NULL) {
        memcpy(block, id, id_size);
        memcpy(block + id_size, name, name_size);
        memcpy(block + id_size + name_size, host, host_size);
    }
    return block;
}

/* False: out of memory. */
static bool append(box *b, coordi_operator_list list, const coord_operator_replica *like)
{
    char *block =
        make_room(b, list) ? place_strings(like->id, like->name, like->host) : NULL;
    if (block == NULL) {
        return false;
    }
    coord_operator_replica *item = &b->items[list][b->count[list]++];
    *item = *like;
    item->id = block;
    item->name = block + strlen(block) + 1;
    item->host = item->name + strlen(item->name) + 1;
    show(b);
    return true;
}

coord_status coordi_operator_answer_add(coord_operator_answer *answer,
                                        coordi_operator_list list, const char *id,
                                        const char *name_space, int32_t rank,
                                        const char **why)
{
    parts p;
    *why = split_id(id, name_space, &p);
    if (*why != NULL) {
        return COORD_ERR_FORMAT;
    }
    const uint16_t usual =
        list == COORDI_OPERATOR_LEARNERS ? LEARNER_PORT : COLLECTOR_PORT;
    const coord_operator_replica like = {.id = id,
                                         .name = p.name,
                                         .host = p.host,
                                         .port = p.port == 0 ? usual : p.port,
                                         .rank = rank};
    return append(box_of(answer), list, &like) ? COORD_OK : COORD_ERR_NOMEM;
}

/* ---- sets ---- */

/* All ids of an answer; false: out of memory. */
static bool index_ids(const coord_operator_answer *answer, coordi_map *map)
{
    for (int list = 0; list < COORDI_OPERATOR_LISTS; list++) {
        size_t count;
        const coord_operator_replica *items =
            coordi_operator_answer_list(answer, (coordi_operator_list)list, &count);
        for (size_t i = 0; i < count; i++) {
            if (!coordi_map_put(map, items[i].id, (void *)&items[i])) {
                return false;
            }
        }
    }
    return true;
}

bool coordi_operator_answer_difference(coord_operator_answer *to,
                                       const coord_operator_answer *one,
                                       const coord_operator_answer *other)
{
    coordi_map there = {0};
    bool good = index_ids(other, &there);
    for (int list = 0; good && list < COORDI_OPERATOR_LISTS; list++) {
        size_t count;
        const coord_operator_replica *items =
            coordi_operator_answer_list(one, (coordi_operator_list)list, &count);
        for (size_t i = 0; good && i < count; i++) {
            good = coordi_map_get(&there, items[i].id) != NULL ||
                   append(box_of(to), (coordi_operator_list)list, &items[i]);
        }
    }
    coordi_map_done(&there);
    return good;
}

bool coordi_operator_answer_merge(coord_operator_answer *to,
                                  const coord_operator_answer *from)
{
    return coordi_operator_answer_difference(to, from, to);
}
