#include "support/pods.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void pods_open(pods *p, uint64_t seed, int api)
{
    memset(p, 0, offsetof(pods, k));
    cluster_init(&p->k, seed, 0, 0);
    assert_int_equal(coord_sim_loop(p->k.sim, "operator", &p->far, NULL), COORD_OK);
    coord_sim_set_foreign(p->k.sim, p->far, true);
    p->fake = fake_operator_on_loop(
        p->far,
        &(fake_operator_spec){.api = api, .name_space = "ns", .job_id = "ns.job"});
}

cluster_worker *pods_worker(pods *p, coord_role role, unsigned n)
{
    char id[FAKE_ID_SIZE];
    char host[FAKE_ID_SIZE];
    const bool v2 = fake_operator_api(p->fake) == FAKE_V2;
    fake_operator_name(p->fake,
                       v2                        ? FAKE_NODES
                       : role == COORD_COLLECTOR ? FAKE_COLLECTORS
                                                 : FAKE_LEARNERS,
                       n, id);
    const char *colon = strchr(id, ':');
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - id), id);
    return cluster_add(&p->k, role, id, host, atoi(colon + 1));
}

const char *pods_config(pods *p, const char *ask, const char *more)
{
    (void)snprintf(p->config, sizeof p->config,
                   "\"operator_server\": {%s\"system_addr\": \"operator:%u\", "
                   "\"namespace\": \"ns\", \"name\": \"job-coordinator\", "
                   "\"job_id\": \"ns.job\"}, %s",
                   ask, (unsigned)fake_operator_port(p->fake), more);
    return p->config;
}

static void run_start(void *user)
{
    pods *p = user;
    p->start_rc = comm_coordinator_start(p->k.c, &p->start_err);
}

void pods_start(pods *p, const char *ask, const char *more)
{
    if (p->k.c == NULL) {
        cluster_create(&p->k, pods_config(p, ask, more));
    }
    memset(&p->start_err, 0, sizeof p->start_err);
    assert_int_equal(coord_sim_thread_start(p->k.sim, run_start, p, &p->starter, NULL),
                     COORD_OK);
}

coord_status pods_started(pods *p)
{
    assert_int_equal(coord_sim_thread_join(p->starter, 600000, NULL), COORD_OK);
    p->starter = NULL;
    return p->start_rc;
}

void pods_begin(pods *p, const char *ask, const char *more)
{
    pods_start(p, ask, more);
    if (pods_started(p) != COORD_OK) {
        fail_msg("start: %s: %s", p->start_err.text, p->start_err.cause);
    }
}

const char *pods_status(pods *p)
{
    coord_free(p->json);
    p->json = NULL;
    assert_int_equal(comm_coordinator_status(p->k.c, &p->json, NULL), COORD_OK);
    return p->json;
}

bool pods_says(pods *p, const char *words)
{
    return strstr(pods_status(p), words) != NULL;
}

typedef struct awaited {
    pods *p;
    const char *words;
    int count;
} awaited;

static bool says(void *user)
{
    const awaited *a = user;
    return pods_says(a->p, a->words);
}

/* Looks every now and then, for a look takes time, too. */
bool pods_await(pods *p, const char *words, int64_t limit_ms)
{
    awaited a = {p, words, 0};
    for (int64_t passed = 0; passed < limit_ms; passed += 50) {
        if (says(&a)) {
            return true;
        }
        cluster_run(&p->k, 50);
    }
    return says(&a);
}

int pods_ready(pods *p)
{
    int ready = 0;
    for (int i = 0; i < p->k.worker_count; i++) {
        const char *state = cluster_worker_state(&p->k, p->k.workers[i].id);
        ready += strcmp(state, "free") == 0 || strcmp(state, "working") == 0;
    }
    return ready;
}

static bool are_ready(void *user)
{
    const awaited *a = user;
    return pods_ready(a->p) == a->count;
}

bool pods_await_ready(pods *p, int count, int64_t limit_ms)
{
    awaited a = {p, NULL, count};
    return coord_sim_run_until(p->k.sim, limit_ms, are_ready, &a, NULL) == COORD_OK;
}

void pods_close(pods *p)
{
    coord_error err = {0};
    coord_free(p->json);
    p->json = NULL;
    if (p->k.c != NULL) {
        if (cluster_close(&p->k, &err) != COORD_OK) {
            fail_msg("close: %s", err.text);
        }
        comm_coordinator_destroy(p->k.c);
        p->k.c = NULL;
        cluster_run(&p->k, 1000);
    }
    fake_operator_stop(p->fake);
    coord_loop_destroy(p->far);
    cluster_done(&p->k);
}
