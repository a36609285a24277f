/* What the coordinator tells of its operator server. */
#include "coordinator/history.h"
#include "coordinator/operator_sync.h"

#include <stdio.h>
#include <string.h>

static size_t lacking(const coordi_operator_sync *sync, coord_role role)
{
    const size_t target = coordi_operator_sync_target(sync, role);
    const size_t listed = sync->listed ? sync->roster.listed[role] : 0;
    return target > listed ? target - listed : 0;
}

/* ---- of a start ---- */

/* "1 of 3 collectors: 2 not listed" for each role that is short of workers; the server is
 * named once. False: none is. */
static bool add_counts(const coordi_operator_sync *sync, coordi_buf *buf)
{
    const CommCoordinator *c = sync->c;
    char by[sizeof sync->settings.place + 32];
    bool any = false;
    (void)snprintf(by, sizeof by, " by the operator server at %s", sync->settings.place);
    for (int role = 0; role < COORDI_ROLES; role++) {
        const size_t ready = c->ready[role];
        const size_t needed = coordi_membership_needed(c, (coord_role)role);
        const size_t lack = lacking(sync, (coord_role)role);
        if (ready >= needed || (lack == 0 && needed <= c->members[role].count)) {
            continue;
        }
        coordi_buf_addf(buf, "%s%zu of %zu %ss", any ? ", " : "", ready, needed,
                        coord_role_str((coord_role)role));
        if (lack > 0 && sync->listed) {
            coordi_buf_addf(buf, ": %zu not listed%s", lack, by);
            by[0] = '\0';
        }
        any = true;
    }
    return any;
}

static const char *words_of(const coord_error *why)
{
    return why->cause[0] != '\0' ? why->cause : why->text;
}

void coordi_operator_sync_explain(const coordi_operator_sync *sync, coordi_buf *buf,
                                  const coord_error **because)
{
    *because = NULL;
    if (sync == NULL) {
        return;
    }
    const coordi_demand *d = &sync->demand;
    const bool unmet = d->why.status != COORD_OK && d->state != COORDI_DEMAND_MET;
    const bool short_of = add_counts(sync, buf);
    if (!short_of && !unmet) {
        return;
    }
    const char *before = short_of ? "; " : "";
    if (sync->outage_ms != 0) {
        *because = &sync->failure;
        coordi_buf_addf(buf, "%sthe operator server at %s can't be reached: %s", before,
                        sync->settings.place, words_of(&sync->failure));
    } else if (unmet) {
        *because = &d->why;
        coordi_buf_addf(buf, "%sthe operator server did not create all pods: %s", before,
                        words_of(&d->why));
    } else if (sync->listed && sync->skipped > 0) {
        coordi_buf_addf(buf, " (%zu entries make no sense: %s)", sync->skipped,
                        sync->skipped_text);
    } else if (sync->listed) {
        coordi_buf_addf(buf, " (last words: %s)", sync->last_words);
    }
}

/* ---- of a task that waits ---- */

bool coordi_operator_sync_lacks(const coordi_operator_sync *sync, coord_role role,
                                char *seen, size_t size)
{
    if (sync == NULL || sync->client == NULL || !sync->listed ||
        lacking(sync, role) == 0) {
        return false;
    }
    const coord_error *why = &sync->demand.why;
    const bool unmet = why->status != COORD_OK && sync->demand.state != COORDI_DEMAND_MET;
    (void)snprintf(seen, size,
                   "the operator server at %.100s lists %zu %ss, wanted are %zu%s%.200s",
                   sync->settings.place, sync->roster.listed[role], coord_role_str(role),
                   coordi_operator_sync_target(sync, role),
                   unmet ? "; creating more failed: " : "", unmet ? words_of(why) : "");
    return true;
}

/* ---- status ---- */

static const char *state_of(const coordi_operator_sync *sync)
{
    const coordi_demand_state demand = sync->demand.state;
    const bool begins =
        !sync->listed || demand == COORDI_DEMAND_SENT || demand == COORDI_DEMAND_OPEN;
    return sync->client == NULL   ? "stopped"
           : sync->outage_ms != 0 ? "unreachable"
           : begins               ? "starting"
                                  : "following";
}

static void add_text(coordi_buf *buf, const char *key, const char *text)
{
    coordi_buf_addf(buf, ", \"%s\": ", key);
    if (text[0] == '\0') {
        coordi_buf_adds(buf, "null");
    } else {
        coordi_buf_add_json(buf, text, strlen(text));
    }
}

static void add_error(coordi_buf *buf, const coord_error *why)
{
    char words[400] = "";
    if (why->status != COORD_OK) {
        coordi_error_words(why, words, sizeof words);
    }
    add_text(buf, "error", words);
}

static void add_demand(coordi_buf *buf, const coordi_operator_sync *sync)
{
    static const char *const STATE[] = {"none", "open", "sent", "met", "given_up"};
    const coordi_operator_order *order = sync->c->config.operator_server.order;
    coordi_buf_adds(buf, ", \"demand\": ");
    if (order == NULL || sync->demand.state == COORDI_DEMAND_NONE) {
        coordi_buf_adds(buf, "null");
        return;
    }
    coordi_buf_addf(buf, "{\"collectors\": %d, \"learners\": %d, \"failures\": %u",
                    (int)order->request.collectors, (int)order->request.learners,
                    sync->demand.failures);
    add_text(buf, "state", STATE[sync->demand.state]);
    add_error(buf, &sync->demand.why);
    coordi_buf_adds(buf, "}");
}

void coordi_operator_sync_print(const coordi_operator_sync *sync, coordi_buf *buf)
{
    if (sync == NULL) {
        coordi_buf_adds(buf, "null");
        return;
    }
    const int64_t now = coordi_now(sync->c->loop);
    const bool out = sync->client != NULL && sync->outage_ms != 0;
    coordi_buf_adds(buf, "{\"address\": ");
    coordi_buf_add_json(buf, sync->settings.place, strlen(sync->settings.place));
    add_text(buf, "api_version", sync->api_version);
    add_text(buf, "state", state_of(sync));
    coordi_buf_addf(buf, ", \"outage_ms\": %lld",
                    out ? (long long)(now - sync->outage_ms) : 0);
    add_error(buf, &sync->failure);
    if (sync->listed) {
        coordi_buf_addf(buf, ", \"last_list_ms\": %lld",
                        (long long)(now - sync->list_ms));
    } else {
        coordi_buf_adds(buf, ", \"last_list_ms\": null");
    }
    for (int role = 0; role < COORDI_ROLES; role++) {
        coordi_buf_addf(buf, ", \"%ss\": %zu", coord_role_str((coord_role)role),
                        sync->listed ? sync->roster.listed[role] : 0);
    }
    coordi_buf_addf(buf, ", \"pending\": %zu, \"complete\": %s, \"skipped\": %zu",
                    sync->pending, sync->complete ? "true" : "false", sync->skipped);
    add_demand(buf, sync);
    coordi_buf_addf(buf, ", \"reported\": %llu, \"report_error\": ",
                    (unsigned long long)sync->reports.count);
    if (sync->reports.why.status == COORD_OK) {
        coordi_buf_adds(buf, "null}");
        return;
    }
    char words[400];
    coordi_error_words(&sync->reports.why, words, sizeof words);
    coordi_buf_add_json(buf, words, strlen(words));
    coordi_buf_adds(buf, "}");
}
