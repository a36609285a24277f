#include "coordinator/operator_sync.h"

#include "base/alloc.h"
#include "base/error.h"
#include "coordinator/reason.h"

#include <stdio.h>
#include <string.h>

enum {
    GET_WAIT_MS = 20000, /* two attempts: the API may have to be found out */
    EAGER_MS = 2000,     /* longest pause while start waits */
    MISSES = 2,
    MOST_LISTED = 20000, /* as many as the configuration can ask for */
    MOST_BYTES = 8 << 20 /* 419 for each */
};

/* ---- at create ---- */

static const char *or_null(const char *text)
{
    return text[0] == '\0' ? NULL : text;
}

/* In the words of the configuration. */
static coord_status as_config(coord_status rc, const coord_error *why, coord_error *err)
{
    static const char OURS[] = "operator server: ";
    static const char OPTION[] = "name_space";
    const char *text = why->text;
    if (rc == COORD_ERR_NOMEM) {
        return coordi_fail_copy(err, why);
    }
    if (strncmp(text, OURS, sizeof OURS - 1) == 0) {
        text += sizeof OURS - 1;
    }
    const char *option = strstr(text, OPTION);
    return option == NULL
               ? coordi_fail(err, COORD_ERR_CONFIG, "operator_server: %s", text)
               : coordi_fail(err, COORD_ERR_CONFIG, "operator_server: %.*snamespace%s",
                             (int)(option - text), text, option + sizeof OPTION - 1);
}

static coord_status read_settings(coordi_operator_sync *sync, coord_error *err)
{
    const coordi_config_operator *config = &sync->c->config.operator_server;
    coord_operator_server_options o;
    coord_error why;
    coord_operator_server_options_init(&o, sizeof o);
    o.system_addr = or_null(config->system_addr);
    o.api_version = or_null(config->api_version);
    o.name_space = or_null(config->name_space);
    o.name = or_null(config->name);
    o.job_id = or_null(config->job_id);
    o.max_replicas = MOST_LISTED;
    o.max_answer_bytes = MOST_BYTES;
    coord_status rc =
        coordi_operator_settings_read(&sync->settings, sync->c->loop, &o, &why);
    if (rc != COORD_OK) {
        return as_config(rc, &why, err);
    }
    if (sync->settings.address.https) {
        return coordi_fail(err, COORD_ERR_UNSUPPORTED,
                           "operator_server: %s: https is not built yet",
                           sync->settings.place);
    }
    return COORD_OK;
}

static coord_status read_roles(coordi_operator_sync *sync, coord_error *err)
{
    const coordi_config_operator *config = &sync->c->config.operator_server;
    coord_loop *loop = sync->c->loop;
    const char *rank = coordi_operator_variable(loop, "DI_RANK");
    const char *nodes = coordi_operator_variable(loop, "DI_NODES");
    sync->roles.own_rank = -1;
    if (!coordi_operator_can_ask(&sync->settings, COORDI_OPERATOR_V2)) {
        return COORD_OK;
    }
    if (!coordi_operator_rank_read(rank, &sync->roles.own_rank)) {
        return coordi_fail(err, COORD_ERR_CONFIG,
                           "operator_server: DI_RANK must be a number from 0 on, got "
                           "\"%.60s\"",
                           rank);
    }
    sync->nodes = nodes == NULL ? NULL : coordi_strdup(nodes);
    sync->roles.given = config->roles;
    sync->roles.nodes = sync->nodes;
    sync->roles.job = sync->settings.job_id;
    sync->roles.learners = config->targets[COORD_LEARNER];
    return nodes != NULL && sync->nodes == NULL ? coordi_fail_nomem(err, "coordinator")
                                                : COORD_OK;
}

static void on_timer(coordi_timer *timer);

coord_status coordi_operator_sync_create(CommCoordinator *c, coord_error *err)
{
    if (!c->config.operator_server.given) {
        return COORD_OK;
    }
    coordi_operator_sync *sync = coordi_zalloc(sizeof *sync);
    if (sync == NULL) {
        return coordi_fail_nomem(err, "coordinator");
    }
    sync->c = c;
    sync->timer.fire = on_timer;
    coord_status rc = read_settings(sync, err);
    if (rc == COORD_OK) {
        rc = read_roles(sync, err);
    }
    if (rc != COORD_OK) {
        coordi_operator_sync_free(sync);
        return rc;
    }
    c->operator_sync = sync;
    return COORD_OK;
}

void coordi_operator_sync_free(coordi_operator_sync *sync)
{
    if (sync != NULL) {
        coordi_map_done(&sync->reports.made);
        coordi_free(sync->nodes);
        coordi_free(sync);
    }
}

/* ---- lists ---- */

static void on_answer(const coordi_operator_outcome *outcome, void *arg);

static void note_failure(coordi_operator_sync *sync, const coord_error *why);

static void ask(coordi_operator_sync *sync)
{
    const coordi_operator_spec spec = {.kind = COORDI_OPERATOR_GET,
                                       .wait_ms = GET_WAIT_MS,
                                       .done = on_answer,
                                       .arg = sync};
    coord_error err;
    sync->asked_ms = coordi_now(sync->c->loop);
    if (coordi_operator_start(sync->client, &spec, &sync->get, &err) != COORD_OK) {
        sync->get = NULL;
        note_failure(sync, &err);
    }
}

static void on_timer(coordi_timer *timer)
{
    ask(COORDI_ITEM(timer, coordi_operator_sync, timer));
}

/* As often as it is configured, counted from when the last was sent; less often while
 * none goes well. */
static void schedule(coordi_operator_sync *sync)
{
    const CommCoordinator *c = sync->c;
    const bool outage = sync->outage_ms != 0; /* its pauses are between the GETs */
    int64_t pause = outage ? sync->pause_ms : c->config.operator_server.poll_ms;
    if (c->phase < COORDI_PHASE_RUNNING && pause > EAGER_MS) {
        pause = EAGER_MS;
    }
    const int64_t passed = outage ? 0 : coordi_now(c->loop) - sync->asked_ms;
    coordi_timer_in(c->loop, &sync->timer, passed < pause ? pause - passed : 0);
}

static void note_failure(coordi_operator_sync *sync, const coord_error *why)
{
    CommCoordinator *c = sync->c;
    const int64_t now = coordi_now(c->loop);
    const int64_t poll = c->config.operator_server.poll_ms;
    const int64_t longest =
        poll > COORDI_OPERATOR_LONGEST_PAUSE_MS ? poll : COORDI_OPERATOR_LONGEST_PAUSE_MS;
    sync->failure = *why;
    sync->failure.reason = coordi_reason_word(COORDI_REASON_OPERATOR_UNREACHABLE);
    if (sync->outage_ms == 0) {
        sync->outage_ms = sync->asked_ms > 0 ? sync->asked_ms : now;
        sync->pause_ms = poll;
        COORDI_LOG(&c->log, COORD_LOG_WARN,
                   "operator server lost address=%s why=\"%s\" cause=\"%s\"",
                   sync->settings.place, why->text, why->cause);
    } else {
        sync->pause_ms = sync->pause_ms * 2 < longest ? sync->pause_ms * 2 : longest;
    }
    coordi_reports_on_outage(sync);
    schedule(sync);
}

static void end_outage(coordi_operator_sync *sync)
{
    CommCoordinator *c = sync->c;
    if (sync->outage_ms != 0) {
        COORDI_LOG(&c->log, COORD_LOG_INFO,
                   "operator server found again address=%s outage_ms=%lld",
                   sync->settings.place,
                   (long long)(coordi_now(c->loop) - sync->outage_ms));
    }
    sync->outage_ms = 0;
    sync->failure.status = COORD_OK;
}

/* False: out of memory. */
static bool list_one(coordi_operator_sync *sync, const coord_operator_replica *replica,
                     coord_role role)
{
    coordi_config_worker worker = {.role = role, .port = replica->port};
    coord_error err;
    (void)snprintf(worker.id, sizeof worker.id, "%s", replica->id);
    (void)snprintf(worker.host, sizeof worker.host, "%s", replica->host);
    coord_status rc = coordi_roster_list(&sync->roster, &worker, &err);
    if (rc != COORD_OK) {
        COORDI_LOG(&sync->c->log, COORD_LOG_WARN,
                   "listed worker not taken worker=%s why=\"%s\"", worker.id, err.text);
    }
    return rc == COORD_OK;
}

/* Who was not taken is not known as listed; nobody is to be removed by that. */
static void take_list(coordi_operator_sync *sync, const coord_operator_answer *list)
{
    bool all = true;
    coordi_roster_begin(&sync->roster);
    for (size_t i = 0; i < list->collector_count; i++) {
        all &= list_one(sync, &list->collectors[i], COORD_COLLECTOR);
    }
    for (size_t i = 0; i < list->learner_count; i++) {
        all &= list_one(sync, &list->learners[i], COORD_LEARNER);
    }
    for (size_t i = 0; i < list->node_count; i++) {
        int role = coordi_operator_role_of(&sync->roles, list->nodes[i].rank);
        if (role != COORDI_OPERATOR_NO_ROLE) {
            all &= list_one(sync, &list->nodes[i], (coord_role)role);
        }
    }
    coordi_roster_end(&sync->roster, all && list->complete);
}

/* Our own rank is there, with an address or without one, if the list is long enough. */
static size_t count_nodes(const coordi_operator_sync *sync,
                          const coord_operator_answer *list)
{
    const size_t all = list->node_count + list->pending;
    const int64_t own = sync->roles.own_rank;
    return all - (own >= 0 && own < (int64_t)all ? 1 : 0);
}

static void note_list(coordi_operator_sync *sync, const coord_operator_answer *list)
{
    sync->listed = true;
    sync->list_ms = coordi_now(sync->c->loop);
    sync->nodes_listed = count_nodes(sync, list);
    sync->pending = list->pending;
    sync->complete = list->complete;
    sync->skipped = list->skipped;
    (void)snprintf(sync->skipped_text, sizeof sync->skipped_text, "%s",
                   list->skipped_text);
    (void)snprintf(sync->api_version, sizeof sync->api_version, "%s", list->api_version);
    (void)snprintf(sync->last_words, sizeof sync->last_words, "%s", list->message);
}

static void on_answer(const coordi_operator_outcome *outcome, void *arg)
{
    coordi_operator_sync *sync = arg;
    sync->get = NULL;
    if (outcome->status != COORD_OK) {
        note_failure(sync, outcome->error);
    } else {
        end_outage(sync);
        note_list(sync, outcome->answer);
        take_list(sync, outcome->answer);
        coordi_demand_see(sync, outcome->answer);
        coordi_reports_see(sync);
        schedule(sync);
    }
    coord_operator_answer_destroy(outcome->answer);
    coordi_coordinator_check(sync->c);
}

/* ---- the life of a coordinator ---- */

coord_status coordi_operator_sync_begin(coordi_operator_sync *sync, coord_error *err)
{
    if (sync == NULL) {
        return COORD_OK;
    }
    CommCoordinator *c = sync->c;
    coordi_log log = c->log;
    coord_error why;
    log.who = "operator_server";
    coord_status rc =
        coordi_operator_create(c->loop, &sync->settings, &log, &sync->client, &why);
    if (rc != COORD_OK) {
        return coordi_fail_copy(err, &why);
    }
    coordi_roster_init(&sync->roster, c, COORDI_ORIGIN_OPERATOR,
                       c->config.operator_server.drains, MISSES);
    sync->has_roster = true;
    sync->listed = false;
    sync->outage_ms = 0;
    sync->failure.status = COORD_OK;
    const coordi_operator_order *order = c->config.operator_server.order;
    if (order != NULL && order->remark[0] != '\0') {
        COORDI_LOG(&c->log, COORD_LOG_WARN, "init_replicas_request: %s", order->remark);
    }
    coordi_demand_begin(sync);
    coordi_reports_begin(sync);
    coordi_timer_in(c->loop, &sync->timer, 0);
    return COORD_OK;
}

void coordi_operator_sync_started(coordi_operator_sync *sync)
{
    if (sync != NULL && sync->demand.state == COORDI_DEMAND_OPEN &&
        sync->demand.failures > 0) {
        coordi_demand_give_up(sync);
    }
}

void coordi_operator_sync_stop(coordi_operator_sync *sync)
{
    if (sync == NULL || sync->client == NULL) {
        return;
    }
    coordi_timer_stop(sync->c->loop, &sync->timer);
    coordi_demand_stop(sync);
    coordi_operator_destroy(sync->client); /* and its calls */
    sync->client = NULL;
    sync->get = NULL;
    sync->reports.call = NULL;
}

void coordi_operator_sync_release(coordi_operator_sync *sync)
{
    coordi_operator_sync_stop(sync);
    if (sync != NULL && sync->has_roster) {
        coordi_roster_done(&sync->roster);
        sync->has_roster = false;
    }
}

size_t coordi_operator_sync_target(const coordi_operator_sync *sync, coord_role role)
{
    return sync == NULL ? 0 : (size_t)sync->c->config.operator_server.targets[role];
}

/* A server that can't be reached is waited for only if workers are missing; then the
 * demand is made when it is back. */
bool coordi_operator_sync_has_asked(const coordi_operator_sync *sync)
{
    return sync == NULL || sync->outage_ms != 0 || sync->demand.failures > 0 ||
           (sync->listed && (sync->demand.state == COORDI_DEMAND_NONE ||
                             sync->demand.state == COORDI_DEMAND_MET));
}
