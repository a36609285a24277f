#include "service/discovery_list.h"

#include "base/error.h"
#include "base/line.h"
#include "base/map.h"

#include <string.h>

enum { WORDS_MAX = 3 };

/* One line on its way, with blanks for tabs and none around. */
typedef struct line {
    size_t number; /* the first is 1 */
    size_t len;    /* of all of it, which may be more than there is room for */
    char text[COORDI_DISCOVERY_LINE_MAX + 1];
} line;

static coord_status wrong(const line *l, coord_error *err, const char *what)
{
    return coordi_fail(err, COORD_ERR_FORMAT,
                       "line %zu, \"%.80s%s\": %s; expected: role host:port [id]",
                       l->number, l->text, l->len > 80 ? "..." : "", what);
}

/* ---- lines ---- */

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* A NUL would hide what stands behind it. */
static void take_bytes(line *l, const char *bytes, size_t len)
{
    const size_t room = sizeof l->text - 1;
    l->len = len;
    const size_t kept = len < room ? len : room;
    for (size_t i = 0; i < kept; i++) {
        l->text[i] = bytes[i];
        if (bytes[i] == '\t') {
            l->text[i] = ' ';
        } else if (bytes[i] == '\0') {
            l->text[i] = '\1';
        }
    }
    l->text[kept] = '\0';
}

/* The next line that is neither empty nor a remark. False: there is none. */
static bool next_line(coord_text list, size_t *at, line *l)
{
    while (*at < list.len) {
        const char *bytes = list.ptr + *at;
        const char *end = memchr(bytes, '\n', list.len - *at);
        size_t len = end == NULL ? list.len - *at : (size_t)(end - bytes);
        *at += len + (end != NULL);
        l->number++;
        len -= len > 0 && bytes[len - 1] == '\r';
        while (len > 0 && is_blank(bytes[len - 1])) {
            len--;
        }
        while (len > 0 && is_blank(bytes[0])) {
            bytes++;
            len--;
        }
        if (len > 0 && bytes[0] != '#') {
            take_bytes(l, bytes, len);
            return true;
        }
    }
    return false;
}

/* How many words there are; the first few of them, closed by NULs, in `words`. */
static size_t split(char *text, char *words[WORDS_MAX])
{
    size_t count = 0;
    for (char *at = text; *at != '\0';) {
        at += strspn(at, " ");
        if (*at == '\0') {
            break;
        }
        if (count < WORDS_MAX) {
            words[count] = at;
        }
        count++;
        at += strcspn(at, " ");
        if (*at != '\0') {
            *at++ = '\0';
        }
    }
    return count;
}

static bool is_clean(const line *l)
{
    char cleaned[sizeof l->text];
    memcpy(cleaned, l->text, strlen(l->text) + 1);
    coordi_line_clean(cleaned);
    return strcmp(cleaned, l->text) == 0;
}

/* ---- workers ---- */

static coord_status read_role(const line *l, const char *word, coord_role *ret,
                              coord_error *err)
{
    for (int role = COORD_COLLECTOR; role <= COORD_LEARNER; role++) {
        if (strcmp(word, coord_role_str((coord_role)role)) == 0) {
            *ret = (coord_role)role;
            return COORD_OK;
        }
    }
    return wrong(l, err, "the role must be collector or learner");
}

static coord_status read_address(const line *l, const char *word,
                                 coordi_discovery_worker *ret, coord_error *err)
{
    coordi_address address;
    const size_t len = strlen(word);
    if (strchr(word, '/') != NULL ||
        coordi_address_read(word, len, &address, NULL) != COORD_OK) {
        return wrong(l, err, "that is no address");
    }
    if (strchr(word, ':') == NULL || word[len - 1] == ']') {
        return wrong(l, err, "the address lacks a port");
    }
    if (address.port == 0) {
        return wrong(l, err, "the port must be the one that it listens on, not 0");
    }
    memcpy(ret->host, address.host, sizeof ret->host);
    ret->port = address.port;
    return COORD_OK;
}

/* `word` NULL: it is the address. */
static coord_status read_id(const line *l, const char *word, coordi_discovery_worker *ret,
                            coord_error *err)
{
    char address[COORDI_HOST_PORT_SIZE];
    if (word == NULL) {
        coordi_address_print(ret->host, ret->port, address);
        word = address;
    } else if (word[0] == '#') {
        return wrong(l, err, "an id does not begin with #, remarks have their own lines");
    }
    const size_t len = strlen(word);
    if (len >= sizeof ret->id) {
        return wrong(l, err,
                     word == address
                         ? "that address is too long to be an id: it needs one"
                         : "an id has at most 255 bytes");
    }
    memcpy(ret->id, word, len + 1);
    return COORD_OK;
}

static coord_status read_worker(const line *l, coordi_discovery_worker *ret,
                                coord_error *err)
{
    char text[sizeof l->text];
    char *words[WORDS_MAX] = {NULL};
    if (l->len >= sizeof l->text) {
        return wrong(l, err, "a line has at most 1023 bytes");
    }
    if (!is_clean(l)) {
        return wrong(l, err, "it must be UTF-8 without control characters");
    }
    memcpy(text, l->text, l->len + 1);
    const size_t count = split(text, words);
    if (count < 2 || count > WORDS_MAX) {
        return wrong(l, err, count < 2 ? "that is too little" : "that is too much");
    }
    coord_status rc = read_role(l, words[0], &ret->role, err);
    if (rc == COORD_OK) {
        rc = read_address(l, words[1], ret, err);
    }
    return rc == COORD_OK ? read_id(l, words[2], ret, err) : rc;
}

/* ---- the list ---- */

/* Ids are unique within a role; the map tells the lines in which they stand. */
static coord_status note_id(coordi_map *ids, const line *l,
                            const coordi_discovery_worker *w, coord_error *err)
{
    const void *first = coordi_map_get(ids, w->id);
    if (first != NULL) {
        return coordi_fail(err, COORD_ERR_FORMAT,
                           "line %zu, \"%.80s%s\": has the id of line %zu; each %s needs "
                           "one of its own",
                           l->number, l->text, l->len > 80 ? "..." : "",
                           (size_t)(uintptr_t)first, coord_role_str(w->role));
    }
    return coordi_map_put(ids, w->id, (void *)(uintptr_t)l->number)
               ? COORD_OK
               : coordi_fail_nomem(err, "list of workers");
}

coord_status coordi_discovery_list_check(coord_text list, coord_error *err)
{
    coordi_map ids[2] = {{0}, {0}};
    coordi_discovery_worker worker;
    coord_status rc = COORD_OK;
    line l = {0};
    size_t at = 0;
    size_t count = 0;
    if (list.len > COORDI_DISCOVERY_MAX_BYTES) {
        return coordi_fail(err, COORD_ERR_TOO_BIG, "a list has at most %d bytes",
                           (int)COORDI_DISCOVERY_MAX_BYTES);
    }
    while (rc == COORD_OK && next_line(list, &at, &l)) {
        rc = read_worker(&l, &worker, err);
        if (rc == COORD_OK && ++count > COORDI_DISCOVERY_MAX_WORKERS) {
            rc = coordi_fail(err, COORD_ERR_TOO_BIG, "a list has at most %d workers",
                             (int)COORDI_DISCOVERY_MAX_WORKERS);
        }
        if (rc == COORD_OK) {
            rc = note_id(&ids[worker.role], &l, &worker, err);
        }
    }
    coordi_map_done(&ids[0]);
    coordi_map_done(&ids[1]);
    return rc;
}

bool coordi_discovery_list_next(coord_text list, size_t *at, coordi_discovery_worker *ret)
{
    line l = {0};
    return next_line(list, at, &l) && read_worker(&l, ret, NULL) == COORD_OK;
}
