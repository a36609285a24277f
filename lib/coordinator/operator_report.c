/* Pods that can't be reached are reported, so that the server replaces them.
 *
 * A report costs a pod, so it is made late and once: of one that has not been ready, or
 * has been away, for grace_ms, that the last list has, and never again while it is
 * listed. We suspect ourselves first: while neither the server nor any of its pods can be
 * reached it is our own network that is broken, and nobody's absence counts. */
#include "base/error.h"
#include "coordinator/operator_sync.h"

#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 30000 };

void coordi_reports_begin(coordi_operator_sync *sync)
{
    coordi_reports *r = &sync->reports;
    r->call = NULL;
    r->not_before_ms = 0;
    r->pause_ms = 0;
    r->suspect = false;
    r->suspect_ms = 0;
    r->why.status = COORD_OK;
}

/* ---- whose fault it is ---- */

static bool somebody_is_reachable(const CommCoordinator *c)
{
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (m->origin == COORDI_ORIGIN_OPERATOR && coordi_member_is_connected(m)) {
                return true;
            }
        }
    }
    return false;
}

void coordi_reports_on_outage(coordi_operator_sync *sync)
{
    coordi_reports *r = &sync->reports;
    r->suspect = !somebody_is_reachable(sync->c);
    r->suspect_ms = r->suspect ? coordi_now(sync->c->loop) : r->suspect_ms;
}

static bool is_due(const coordi_operator_sync *sync, const coordi_member *m, int64_t now)
{
    const coordi_reports *r = &sync->reports;
    const int64_t since =
        m->away_since_ms > r->suspect_ms ? m->away_since_ms : r->suspect_ms;
    return m->origin == COORDI_ORIGIN_OPERATOR && !m->removed && !m->leaving &&
           !coordi_member_is_connected(m) && m->why.status != COORD_OK &&
           m->why_ms > since && /* tried since then, and in vain */
           now - since >= sync->c->config.operator_server.grace_ms &&
           coordi_roster_lists(&sync->roster, m->worker.role, m->worker.id) &&
           coordi_map_get(&r->made, m->worker.id) == NULL;
}

/* Another than the one whose report has failed, if there is one. */
static coordi_member *find_due(const coordi_operator_sync *sync, int64_t now)
{
    const CommCoordinator *c = sync->c;
    const char *last = sync->reports.why.status == COORD_OK ? "" : sync->reports.id;
    coordi_member *failed = NULL;
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            if (is_due(sync, m, now) && strcmp(m->worker.id, last) != 0) {
                return m;
            }
            failed = is_due(sync, m, now) ? m : failed;
        }
    }
    return failed;
}

/* ---- one report ---- */

static void fail(coordi_operator_sync *sync, const coord_error *why)
{
    coordi_reports *r = &sync->reports;
    const int64_t poll = sync->c->config.operator_server.poll_ms;
    const int64_t next = r->pause_ms == 0 ? poll : r->pause_ms * 2;
    r->pause_ms =
        next < COORDI_OPERATOR_LONGEST_PAUSE_MS ? next : COORDI_OPERATOR_LONGEST_PAUSE_MS;
    r->not_before_ms = coordi_now(sync->c->loop) + r->pause_ms;
    r->why = *why;
    COORDI_LOG(&sync->c->log, COORD_LOG_WARN,
               "worker not reported worker=%s pause_ms=%lld why=\"%s\" cause=\"%s\"",
               r->id, (long long)r->pause_ms, why->text, why->cause);
}

static void on_reported(const coordi_operator_outcome *outcome, void *arg)
{
    coordi_operator_sync *sync = arg;
    coordi_reports *r = &sync->reports;
    r->call = NULL;
    if (outcome->status != COORD_OK) {
        fail(sync, outcome->error);
    } else {
        const bool gone = outcome->answer != NULL && outcome->answer->unknown > 0;
        r->pause_ms = 0;
        r->why.status = COORD_OK;
        r->count++;
        COORDI_LOG(&sync->c->log, COORD_LOG_INFO, "worker reported worker=%s%s", r->id,
                   gone ? ", which the server does not have any more" : "");
        if (!coordi_map_put(&r->made, r->id, sync)) {
            COORDI_LOG(&sync->c->log, COORD_LOG_WARN, /* the client knows it, too */
                       "report not kept in mind worker=%s", r->id);
        }
    }
    coord_operator_answer_destroy(outcome->answer);
}

static void report(coordi_operator_sync *sync, const coordi_member *m)
{
    coordi_reports *r = &sync->reports;
    coord_error err;
    const char *const names[] = {m->worker.id};
    const coordi_operator_spec spec = {.kind = COORDI_OPERATOR_FAILED,
                                       .names = names,
                                       .name_count = 1,
                                       .wait_ms = WAIT_MS,
                                       .done = on_reported,
                                       .arg = sync};
    (void)snprintf(r->id, sizeof r->id, "%s", m->worker.id);
    if (coordi_operator_start(sync->client, &spec, &r->call, &err) != COORD_OK) {
        r->call = NULL;
        fail(sync, &err);
    }
}

static void tell_impossible(coordi_operator_sync *sync, const coordi_member *m)
{
    if (!sync->reports.impossible_told) {
        sync->reports.impossible_told = true;
        COORDI_LOG(&sync->c->log, COORD_LOG_WARN,
                   "worker not reported worker=%s, nor will others be: the operator "
                   "server speaks v2alpha1, which cannot replace single pods",
                   m->worker.id);
    }
}

/* ---- lists ---- */

/* Those that have gone may be reported again should they ever come back. */
static void forget_gone(coordi_operator_sync *sync)
{
    coordi_map *made = &sync->reports.made;
    for (size_t i = 0; sync->complete && i < made->used; i++) {
        const coordi_map_entry *entry = &made->entries[i];
        if (entry->value != NULL &&
            !coordi_roster_lists(&sync->roster, COORD_COLLECTOR, entry->key) &&
            !coordi_roster_lists(&sync->roster, COORD_LEARNER, entry->key)) {
            (void)coordi_map_remove(made, entry->key);
        }
    }
}

void coordi_reports_see(coordi_operator_sync *sync)
{
    coordi_reports *r = &sync->reports;
    const int64_t now = coordi_now(sync->c->loop);
    if (r->suspect) {
        r->suspect = false;
        r->suspect_ms = now;
    }
    forget_gone(sync);
    if (r->call != NULL || now < r->not_before_ms) {
        return;
    }
    const coordi_member *m = find_due(sync, now);
    if (m == NULL) {
        return;
    }
    if (strcmp(sync->api_version, coordi_operator_api_str(COORDI_OPERATOR_V2)) == 0) {
        tell_impossible(sync, m);
    } else {
        report(sync, m);
    }
}
