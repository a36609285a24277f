#include "env/sim_http.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <arpa/inet.h>
#include <stdio.h>

/* Machines, and what lies between them.
 *
 * A *link* describes one direction in good times: latency and chances of mishaps. A *cut*
 * takes a direction away altogether. They are kept apart, so that ending a cut brings
 * back the link as it was. Both name their ends; an empty name is any machine. */

typedef struct ends {
    char from[COORDI_SIM_HOST_SIZE];
    char to[COORDI_SIM_HOST_SIZE];
} ends;

typedef struct link_rule {
    coordi_link link;
    ends ends;
    coord_sim_link what;
} link_rule;

typedef struct cut_rule {
    coordi_link link;
    ends ends;
} cut_rule;

/* ---- machines ---- */

static bool is_numeric(const char *name)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* All names of the loopback interface are one machine, when a test lives on it. */
static const char *plain_name(const char *name)
{
    return coordi_address_is_loopback(name) ? "127.0.0.1" : name;
}

static coordi_sim_host *find_host(coord_sim *sim, const char *name)
{
    for (coordi_link *at = sim->hosts.next; at != &sim->hosts; at = at->next) {
        coordi_sim_host *host = COORDI_ITEM(at, coordi_sim_host, link);
        if (strcmp(host->name, name) == 0 || strcmp(host->numeric, name) == 0) {
            return host;
        }
    }
    return NULL;
}

static void number_host(coord_sim *sim, coordi_sim_host *host)
{
    if (is_numeric(host->name)) {
        memcpy(host->numeric, host->name, sizeof host->numeric);
        return;
    }
    do {
        uint32_t n = ++sim->host_count;
        (void)snprintf(host->numeric, sizeof host->numeric, "10.83.%u.%u", n >> 8 & 0xff,
                       n & 0xff);
    } while (find_host(sim, host->numeric) != NULL);
}

static coord_status check_name(const char *name, coord_error *err)
{
    if (name[0] == '\0' || strlen(name) >= COORDI_SIM_HOST_SIZE) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: a host must have from 1 to %d bytes, got \"%.100s\"",
                           COORDI_SIM_HOST_SIZE - 1, name);
    }
    return COORD_OK;
}

coord_status coordi_sim_host_named(coord_sim *sim, const char *name,
                                   coordi_sim_host **ret, coord_error *err)
{
    coord_status rc = check_name(name, err);
    if (rc != COORD_OK) {
        return rc;
    }
    name = plain_name(name);
    coordi_sim_host *host = find_host(sim, name);
    if (host == NULL) {
        host = coordi_zalloc(sizeof *host);
        if (host == NULL) {
            return coordi_fail_nomem(err, "sim: host");
        }
        memcpy(host->name, name, strlen(name));
        host->is_loopback = coordi_address_is_loopback(name);
        host->last_port = 19999;
        coordi_list_init(&host->servers);
        number_host(sim, host);
        coordi_list_append(&sim->hosts, &host->link);
    }
    *ret = host;
    return COORD_OK;
}

coordi_sim_target coordi_sim_resolve(coord_sim *sim, coordi_sim_host *from,
                                     const char *name)
{
    coordi_sim_target target = {NULL, false, false};
    if (coordi_address_is_loopback(name)) {
        target.host = from;
        target.is_loopback = true;
    } else {
        target.host = find_host(sim, name);
        target.is_name = !is_numeric(name);
    }
    return target;
}

/* ---- links and cuts ---- */

static coord_status read_ends(const char *from, const char *to, ends *ret,
                              coord_error *err)
{
    memset(ret, 0, sizeof *ret);
    const char *name[] = {from, to};
    char *place[] = {ret->from, ret->to};
    for (size_t i = 0; i < 2; i++) {
        if (name[i] == NULL) {
            continue;
        }
        coord_status rc = check_name(name[i], err);
        if (rc != COORD_OK) {
            return rc;
        }
        memcpy(place[i], plain_name(name[i]), strlen(plain_name(name[i])));
    }
    return COORD_OK;
}

static bool same_ends(const ends *a, const ends *b)
{
    return strcmp(a->from, b->from) == 0 && strcmp(a->to, b->to) == 0;
}

/* How well a rule's end fits: 0 not at all, 1 as any machine, 2 by name. */
static int fit_end(const char *end, const coordi_sim_host *host)
{
    if (end[0] == '\0') {
        return 1;
    }
    return strcmp(end, host->name) == 0 || strcmp(end, host->numeric) == 0 ? 2 : 0;
}

/* 0: does not apply; else the higher the closer. `from` counts for more than `to`. */
static int fit(const ends *e, const coordi_sim_host *from, const coordi_sim_host *to)
{
    int a = fit_end(e->from, from);
    int b = fit_end(e->to, to);
    return a == 0 || b == 0 ? 0 : a * 2 + b;
}

static coord_sim_link plain_link(const coord_sim *sim)
{
    coord_sim_link link;
    memset(&link, 0, sizeof link);
    link.size = sizeof link;
    link.latency_min_ms = sim->options.latency_min_ms;
    link.latency_max_ms = sim->options.latency_max_ms;
    return link;
}

void coord_sim_link_init(const coord_sim *sim, coord_sim_link *link, size_t size)
{
    coord_sim_link defaults = {.size = sizeof defaults};
    if (sim != NULL) {
        defaults = plain_link(sim);
    }
    coordi_options_init(link, size, &defaults, sizeof defaults);
}

const coord_sim_link *coordi_sim_link_of(const coord_sim *sim,
                                         const coordi_sim_host *from,
                                         const coordi_sim_host *to, coord_sim_link *plain)
{
    const coord_sim_link *best = NULL;
    int best_fit = 0;
    for (const coordi_link *at = sim->links.next; at != &sim->links; at = at->next) {
        const link_rule *rule = COORDI_ITEM(at, const link_rule, link);
        int how_well = fit(&rule->ends, from, to);
        if (how_well > best_fit) {
            best = &rule->what;
            best_fit = how_well;
        }
    }
    if (best == NULL) {
        *plain = plain_link(sim);
        best = plain;
    }
    return best;
}

int64_t coordi_sim_arrival(coord_sim *sim, const coordi_sim_host *from,
                           const coordi_sim_host *to)
{
    coord_sim_link plain;
    const coord_sim_link *link = coordi_sim_link_of(sim, from, to, &plain);
    int64_t range = link->latency_max_ms - link->latency_min_ms;
    return sim->now_ms + link->latency_min_ms +
           (int64_t)coordi_sim_draw(sim, (size_t)range + 1);
}

static bool is_probability(double p)
{
    return p >= 0 && p <= 1; /* false for NaN */
}

static coord_status check_link(const coord_sim_link *link, coord_error *err)
{
    if (link->latency_min_ms < 0 || link->latency_max_ms < link->latency_min_ms) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: latency must be 0 <= min <= max, got %lld to %lld ms",
                           (long long)link->latency_min_ms,
                           (long long)link->latency_max_ms);
    }
    if (!is_probability(link->loss) || !is_probability(link->duplicate) ||
        !is_probability(link->reset_before) || !is_probability(link->reset_after)) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: probabilities must be from 0 to 1, got loss %g, "
                           "duplicate %g, reset_before %g, reset_after %g",
                           link->loss, link->duplicate, link->reset_before,
                           link->reset_after);
    }
    return COORD_OK;
}

static coord_status set_link(coord_sim *sim, const ends *e, const coord_sim_link *what,
                             coord_error *err)
{
    for (coordi_link *at = sim->links.next; at != &sim->links; at = at->next) {
        link_rule *rule = COORDI_ITEM(at, link_rule, link);
        if (same_ends(&rule->ends, e)) {
            rule->what = *what;
            return COORD_OK;
        }
    }
    link_rule *rule = coordi_zalloc(sizeof *rule);
    if (rule == NULL) {
        return coordi_fail_nomem(err, "sim: link");
    }
    rule->ends = *e;
    rule->what = *what;
    coordi_list_append(&sim->links, &rule->link);
    return COORD_OK;
}

coord_status coord_sim_set_link(coord_sim *sim, const char *from, const char *to,
                                const coord_sim_link *link, coord_error *err)
{
    ends e;
    if (sim == NULL || link == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: set_link needs a sim and a link");
    }
    coord_sim_link what = plain_link(sim);
    coord_status rc =
        coordi_options_adopt(&what, sizeof what, link, "coord_sim_link", err);
    if (rc == COORD_OK) {
        rc = check_link(&what, err);
    }
    if (rc == COORD_OK) {
        rc = read_ends(from, to, &e, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    (void)pthread_mutex_lock(&sim->lock);
    rc = set_link(sim, &e, &what, err);
    (void)pthread_mutex_unlock(&sim->lock);
    return rc;
}

bool coordi_sim_is_cut(const coord_sim *sim, const coordi_sim_host *from,
                       const coordi_sim_host *to)
{
    for (const coordi_link *at = sim->cuts.next; at != &sim->cuts; at = at->next) {
        if (fit(&COORDI_ITEM(at, const cut_rule, link)->ends, from, to) > 0) {
            return true;
        }
    }
    return false;
}

static void free_cut(cut_rule *rule)
{
    coordi_list_remove(&rule->link);
    coordi_free(rule);
}

static coord_status set_cut(coord_sim *sim, const ends *e, bool blocked, coord_error *err)
{
    for (coordi_link *at = sim->cuts.next; at != &sim->cuts; at = at->next) {
        cut_rule *rule = COORDI_ITEM(at, cut_rule, link);
        if (same_ends(&rule->ends, e)) {
            if (!blocked) {
                free_cut(rule);
            }
            return COORD_OK;
        }
    }
    if (!blocked) {
        return COORD_OK;
    }
    cut_rule *rule = coordi_zalloc(sizeof *rule);
    if (rule == NULL) {
        return coordi_fail_nomem(err, "sim: block");
    }
    rule->ends = *e;
    coordi_list_append(&sim->cuts, &rule->link);
    return COORD_OK;
}

coord_status coord_sim_block(coord_sim *sim, const char *from, const char *to,
                             bool blocked, coord_error *err)
{
    ends e;
    if (sim == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: block needs a sim");
    }
    coord_status rc = read_ends(from, to, &e, err);
    if (rc != COORD_OK) {
        return rc;
    }
    (void)pthread_mutex_lock(&sim->lock);
    coordi_sim_tell(sim, NULL, "%s %s to %s", blocked ? "cut" : "end of cut",
                    from == NULL ? "any" : from, to == NULL ? "any" : to);
    rc = set_cut(sim, &e, blocked, err);
    (void)pthread_mutex_unlock(&sim->lock);
    return rc;
}

static void free_cuts(coord_sim *sim)
{
    coordi_link *link;
    while ((link = coordi_list_pop(&sim->cuts)) != NULL) {
        coordi_free(COORDI_ITEM(link, cut_rule, link));
    }
}

void coord_sim_heal(coord_sim *sim)
{
    if (sim == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&sim->lock);
    coordi_sim_tell(sim, NULL, "heal");
    free_cuts(sim);
    (void)pthread_mutex_unlock(&sim->lock);
}

void coordi_sim_net_done(coord_sim *sim)
{
    coordi_link *link;
    coordi_sim_calls_done(sim);
    free_cuts(sim);
    while ((link = coordi_list_pop(&sim->links)) != NULL) {
        coordi_free(COORDI_ITEM(link, link_rule, link));
    }
    while ((link = coordi_list_pop(&sim->hosts)) != NULL) {
        coordi_free(COORDI_ITEM(link, coordi_sim_host, link));
    }
}
