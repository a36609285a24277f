/* A snapshot for people and programs that look in from outside. */
#include "coordinator/discovery.h"
#include "coordinator/history.h"
#include "coordinator/operator_sync.h"

#include <string.h>

static void add_string(coordi_buf *buf, const char *key, const char *value)
{
    coordi_buf_addf(buf, ", \"%s\": ", key);
    if (value == NULL || value[0] == '\0') {
        coordi_buf_adds(buf, "null");
    } else {
        coordi_buf_add_json(buf, value, strlen(value));
    }
}

static void add_worker(coordi_buf *buf, const coordi_member *m, bool first)
{
    coordi_buf_addf(buf, "%s{\"role\": \"%s\"", first ? "" : ", ",
                    coord_role_str(m->worker.role));
    add_string(buf, "id", m->worker.id);
    add_string(buf, "host", m->worker.host);
    coordi_buf_addf(buf, ", \"port\": %u", (unsigned)m->worker.port);
    add_string(buf, "origin", coordi_origin_str(m->origin));
    add_string(buf, "state", coordi_member_state_str(m->state));
    coordi_buf_addf(buf, ", \"removed\": %s", m->removed ? "true" : "false");
    add_string(buf, "task", m->run == NULL ? NULL : m->run->id);
    char words[400] = "";
    if (m->why.status != COORD_OK) {
        coordi_error_words(&m->why, words, sizeof words);
    }
    add_string(buf, "error", words);
    add_string(buf, "reason", m->why.status == COORD_OK ? NULL : m->why.reason);
    coordi_buf_adds(buf, "}");
}

static void add_run(coordi_buf *buf, const coordi_run *run, int64_t now, bool first)
{
    coordi_buf_addf(buf, "%s{\"role\": \"%s\"", first ? "" : ", ",
                    coord_role_str(run->kind->role));
    add_string(buf, "id", run->id);
    add_string(buf, "state", coordi_state_str(run->state));
    add_string(buf, "worker", run->worker_id);
    add_string(buf, "buffer_id", run->buffer_id);
    coordi_buf_addf(buf, ", \"attempt\": %u, \"requests\": %llu, \"state_ms\": %lld}",
                    run->attempt, (unsigned long long)run->sequence,
                    (long long)(now - run->since_ms));
}

static void add_pools(coordi_buf *buf, const CommCoordinator *c)
{
    coordi_buf_adds(buf, ", \"pools\": {");
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t free_workers = 0;
        size_t assigned = 0;
        size_t quarantined = 0;
        size_t connected = 0;
        size_t at = 0;
        for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            free_workers += m->state == COORDI_MEMBER_FREE;
            assigned += coordi_member_is_ready(m) && m->state != COORDI_MEMBER_FREE;
            quarantined += m->state == COORDI_MEMBER_QUARANTINED;
            connected += coordi_member_is_connected(m);
        }
        coordi_buf_addf(
            buf,
            "%s\"%s\": {\"connected\": %zu, \"free\": %zu, \"assigned\": %zu, "
            "\"quarantined\": %zu}",
            role == 0 ? "" : ", ", coord_role_str((coord_role)role), connected,
            free_workers, assigned, quarantined);
    }
    coordi_buf_adds(buf, "}");
}

static void add_counters(coordi_buf *buf, const CommCoordinator *c)
{
    const coordi_counters *n = &c->counters;
    coordi_buf_addf(
        buf,
        ", \"counters\": {\"accepted\": %llu, \"finished\": %llu, \"failed\": "
        "%llu, \"moved\": %llu, \"queued\": %zu, \"requests\": %llu, \"workers_lost\": "
        "%llu, "
        "\"quarantined\": %llu, \"late_results\": %llu, \"dropped_events\": %llu}",
        (unsigned long long)n->accepted, (unsigned long long)n->finished,
        (unsigned long long)n->failed, (unsigned long long)n->moved, c->queued,
        (unsigned long long)n->requests, (unsigned long long)n->workers_lost,
        (unsigned long long)n->quarantined,
        (unsigned long long)(c->master == NULL ? 0 : c->master->late_results),
        (unsigned long long)n->dropped_events);
}

char *coordi_coordinator_status(CommCoordinator *c)
{
    static const char *const PHASE[] = {"created", "starting", "running", "closing",
                                        "closed"};
    coordi_buf buf = {0};
    int64_t now = coordi_now(c->loop);

    bool draining = c->draining && c->phase == COORDI_PHASE_RUNNING;
    coordi_buf_addf(&buf, "{\"phase\": \"%s\"", draining ? "draining" : PHASE[c->phase]);
    add_string(&buf, "host", c->config.host);
    coordi_buf_addf(&buf, ", \"port\": %u, \"workers\": [", atomic_load(&c->port));
    bool first = true;
    for (int role = 0; role < COORDI_ROLES; role++) {
        size_t at = 0;
        for (const coordi_member *m = coordi_map_next(&c->members[role], &at); m != NULL;
             m = coordi_map_next(&c->members[role], &at)) {
            add_worker(&buf, m, first);
            first = false;
        }
    }
    coordi_buf_adds(&buf, "], \"tasks\": [");
    first = true;
    size_t at = 0;
    for (const coordi_run *run = coordi_map_next(&c->runs, &at); run != NULL;
         run = coordi_map_next(&c->runs, &at)) {
        add_run(&buf, run, now, first);
        first = false;
    }
    coordi_buf_adds(&buf, "]");
    add_pools(&buf, c);
    add_counters(&buf, c);
    coordi_buf_adds(&buf, ", \"ledger\": ");
    if (c->ledger == NULL) {
        coordi_buf_adds(&buf, "null");
    } else {
        coordi_ledger_print(c->ledger, &buf);
    }
    coordi_buf_adds(&buf, ", \"discovery\": ");
    coordi_discovery_print(c, &buf);
    coordi_buf_adds(&buf, ", \"operator_server\": ");
    coordi_operator_sync_print(c->operator_sync, &buf);
    coordi_buf_adds(&buf, "}");
    return coordi_buf_take(&buf, NULL);
}
