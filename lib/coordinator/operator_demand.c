/* The pods that a coordinator asks for when it starts.
 *
 * Creating is additive, and a start may be repeated, or come after a crash: so only what
 * the lists lack is asked for, and only once they have shown the same lack for a while,
 * as they lag behind what was created a moment ago; if a start was over before its
 * request was answered, the next one gives the server time to carry it out. A list that
 * is not complete, or is null, which it is while a job's pods restart, is believed only
 * after a while, too. What the server itself has said to have made counts as there until
 * it is listed. */
#include "base/error.h"
#include "coordinator/operator_sync.h"
#include "service/operator_order.h"

#include <string.h>

enum {
    AWAIT_MS = 5000, /* a complete list */
    WAIT_MS = 30000, /* for a POST, and for what the lists tell of it */
    PAUSE_FIRST_MS = 1000,
    EXPECT_MS = 60000,       /* pods that were made, in the lists */
    EXPECT_NODES_MS = 600000 /* ... of v2alpha1, which restarts the job for that */
};

static bool is_v2(const coord_operator_answer *list)
{
    return strcmp(list->api_version, coordi_operator_api_str(COORDI_OPERATOR_V2)) == 0;
}

static const coord_operator_request *request_of(const coordi_operator_sync *sync)
{
    const coordi_operator_order *order = sync->c->config.operator_server.order;
    return order == NULL ? NULL : &order->request;
}

void coordi_demand_begin(coordi_operator_sync *sync)
{
    coordi_demand *d = &sync->demand;
    const coord_operator_request *request = request_of(sync);
    const bool wanted =
        request != NULL && (request->collectors > 0 || request->learners > 0);
    d->state = wanted ? COORDI_DEMAND_OPEN : COORDI_DEMAND_NONE;
    d->call = NULL;
    d->failures = 0;
    d->why.status = COORD_OK;
    d->not_before_ms = d->in_doubt_until_ms;
    d->pause_ms = PAUSE_FIRST_MS;
    d->awaits_ms = 0;
    d->lack_since_ms = 0;
}

void coordi_demand_stop(coordi_operator_sync *sync)
{
    coordi_demand *d = &sync->demand;
    if (d->call != NULL) {
        d->call = NULL;
        d->in_doubt_until_ms =
            coordi_now(sync->c->loop) + sync->settings.request_timeout_ms;
    }
}

void coordi_demand_give_up(coordi_operator_sync *sync)
{
    coordi_demand *d = &sync->demand;
    d->state = COORDI_DEMAND_GIVEN_UP;
    COORDI_LOG(&sync->c->log, COORD_LOG_WARN,
               "operator server: pods not asked for any more, for start is over "
               "attempts=%u why=\"%s\" cause=\"%s\"",
               d->failures, d->why.text, d->why.cause);
}

/* ---- the POST ---- */

static void on_posted(const coordi_operator_outcome *outcome, void *arg);

static void expect(coordi_operator_sync *sync, const coord_operator_answer *made)
{
    coordi_demand *d = &sync->demand;
    d->expected[COORD_COLLECTOR] += made->collector_count;
    d->expected[COORD_LEARNER] += made->learner_count;
    d->expected_until_ms = coordi_now(sync->c->loop) + EXPECT_MS;
    if (is_v2(made)) {
        d->expected[0] += d->lack[0];
        d->expected_until_ms = coordi_now(sync->c->loop) + EXPECT_NODES_MS;
    }
}

static void fail(coordi_operator_sync *sync, const coord_error *why)
{
    coordi_demand *d = &sync->demand;
    COORDI_LOG(&sync->c->log, COORD_LOG_WARN,
               "operator server: pods not created pause_ms=%lld why=\"%s\" cause=\"%s\"",
               (long long)d->pause_ms, why->text, why->cause);
    d->state = COORDI_DEMAND_OPEN;
    d->failures++;
    d->why = *why;
    d->lack_since_ms = 0;
    d->not_before_ms = coordi_now(sync->c->loop) + d->pause_ms;
    d->pause_ms = d->pause_ms * 2 < COORDI_OPERATOR_LONGEST_PAUSE_MS
                      ? d->pause_ms * 2
                      : COORDI_OPERATOR_LONGEST_PAUSE_MS;
    if (sync->c->phase == COORDI_PHASE_RUNNING) {
        coordi_demand_give_up(sync);
    }
}

static void send(coordi_operator_sync *sync, bool v2, const size_t there[2])
{
    coordi_demand *d = &sync->demand;
    coord_operator_request request = *request_of(sync); /* its quantities live there */
    coord_error err;
    request.collectors = v2 ? 0 : (int32_t)d->lack[COORD_COLLECTOR];
    request.learners = v2 ? 0 : (int32_t)d->lack[COORD_LEARNER];
    request.nodes = v2 ? (int32_t)d->lack[0] : 0;
    memcpy(d->expected, there, sizeof d->expected);
    COORDI_LOG(&sync->c->log, COORD_LOG_INFO,
               "operator server: asked for pods collectors=%d learners=%d nodes=%d",
               (int)request.collectors, (int)request.learners, (int)request.nodes);
    const coordi_operator_spec spec = {.kind = COORDI_OPERATOR_POST,
                                       .request = &request,
                                       .wait_ms = WAIT_MS,
                                       .done = on_posted,
                                       .arg = sync};
    d->state = COORDI_DEMAND_SENT;
    if (coordi_operator_start(sync->client, &spec, &d->call, &err) != COORD_OK) {
        d->call = NULL;
        fail(sync, &err);
    }
}

static void on_posted(const coordi_operator_outcome *outcome, void *arg)
{
    coordi_operator_sync *sync = arg;
    sync->demand.call = NULL;
    if (outcome->answer != NULL) {
        expect(sync, outcome->answer);
    }
    if (outcome->status == COORD_OK) {
        sync->demand.state = COORDI_DEMAND_MET;
    } else {
        fail(sync, outcome->error);
    }
    coord_operator_answer_destroy(outcome->answer);
    coordi_coordinator_check(sync->c);
}

/* ---- what lists lack ---- */

static void count_listed(const coordi_operator_sync *sync,
                         const coord_operator_answer *list, size_t there[2])
{
    there[COORD_COLLECTOR] = list->collector_count;
    there[COORD_LEARNER] = list->learner_count;
    if (is_v2(list)) {
        there[0] = sync->nodes_listed;
    }
}

/* Pods that were made and are not listed yet are there, too. */
static void add_expected(coordi_demand *d, int64_t now, size_t there[2])
{
    if ((there[0] >= d->expected[0] && there[1] >= d->expected[1]) ||
        now >= d->expected_until_ms) {
        memset(d->expected, 0, sizeof d->expected);
    }
    for (int i = 0; i < 2; i++) {
        there[i] = there[i] < d->expected[i] ? d->expected[i] : there[i];
    }
}

/* Entries that make no sense stand for somebody. */
static void find_lack(const coordi_operator_sync *sync, const coord_operator_answer *list,
                      const size_t there[2], size_t lack[2])
{
    const coord_operator_request *request = request_of(sync);
    size_t wanted[2] = {(size_t)request->collectors, (size_t)request->learners};
    size_t broken = list->complete ? 0 : list->skipped;
    if (is_v2(list)) {
        wanted[0] += wanted[1];
        wanted[1] = 0;
    }
    for (int i = 0; i < 2; i++) {
        lack[i] = wanted[i] > there[i] ? wanted[i] - there[i] : 0;
        const size_t less = lack[i] < broken ? lack[i] : broken;
        lack[i] -= less;
        broken -= less;
    }
}

static bool is_believed(coordi_demand *d, const coord_operator_answer *list, int64_t now)
{
    if (list->complete) {
        d->awaits_ms = 0;
    } else if (d->awaits_ms == 0) {
        d->awaits_ms = now;
    }
    return list->complete || now - d->awaits_ms >= AWAIT_MS;
}

void coordi_demand_see(coordi_operator_sync *sync, const coord_operator_answer *list)
{
    coordi_demand *d = &sync->demand;
    const int64_t now = coordi_now(sync->c->loop);
    size_t there[2];
    size_t lack[2];
    if (d->state != COORDI_DEMAND_OPEN || sync->asked_ms < d->not_before_ms ||
        !is_believed(d, list, now)) {
        return;
    }
    count_listed(sync, list, there);
    add_expected(d, now, there);
    find_lack(sync, list, there, lack);
    if (lack[0] + lack[1] == 0) {
        d->state = COORDI_DEMAND_MET;
        d->why.status = COORD_OK;
        return;
    }
    if (d->lack_since_ms == 0 || memcmp(lack, d->lack, sizeof lack) != 0) {
        memcpy(d->lack, lack, sizeof lack);
        d->lack_since_ms = now;
    } else if (now - d->lack_since_ms >= sync->settings.settle_ms) {
        send(sync, is_v2(list), there);
    }
}
