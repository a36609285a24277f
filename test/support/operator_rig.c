#include "support/operator_rig.h"

#include <stdio.h>

void operator_open_at(operator_rig *r, const fake_operator_spec *spec)
{
    coord_sim_options world;
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&world, sizeof world);
    world.seed = 7;
    assert_int_equal(coord_sim_create(&world, &r->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "operator", &r->far, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "coordinator", &r->near, NULL), COORD_OK);
    coord_sim_set_foreign(r->sim, r->far, true);
    r->fake = fake_operator_on_loop(r->far, spec);
    (void)snprintf(r->address, sizeof r->address, "operator:%u",
                   (unsigned)fake_operator_port(r->fake));
    coord_operator_server_options_init(&r->options, sizeof r->options);
    r->options.system_addr = r->address;
    r->options.name_space = "default";
    r->options.name = "job-coordinator";
    r->options.job_id = "default.job";
    r->options.loop = r->near;
}

void operator_create(operator_rig *r)
{
    if (coord_operator_server_create(&r->options, &r->server, &r->err) != COORD_OK) {
        fail_msg("create: %s: %s", r->err.text, r->err.cause);
    }
}

void operator_open(operator_rig *r, int api)
{
    operator_open_at(r, &(fake_operator_spec){.api = api});
    operator_create(r);
}

void operator_close(operator_rig *r)
{
    coord_operator_answer_destroy(r->answer);
    coord_operator_server_destroy(r->server);
    coord_loop_destroy(r->near);
    fake_operator_stop(r->fake);
    coord_loop_destroy(r->far);
    coord_sim_destroy(r->sim);
}

coord_status operator_get(operator_rig *r, int64_t wait_ms)
{
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_get(r->server, wait_ms, &r->answer, &r->err);
}

coord_operator_request operator_request_of(int collectors, int learners, int nodes)
{
    coord_operator_request request;
    coord_operator_request_init(&request, sizeof request);
    request.collectors = collectors;
    request.learners = learners;
    request.nodes = nodes;
    return request;
}

coord_status operator_post(operator_rig *r, int collectors, int learners, int nodes)
{
    const coord_operator_request request =
        operator_request_of(collectors, learners, nodes);
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_post(r->server, &request, LONG_MS, &r->answer, &r->err);
}

coord_status operator_delete(operator_rig *r, int collectors, int learners, int nodes)
{
    const coord_operator_request request =
        operator_request_of(collectors, learners, nodes);
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_delete(r->server, &request, LONG_MS, &r->answer,
                                        &r->err);
}

coord_status operator_report(operator_rig *r, const char *const *names, size_t count)
{
    coord_operator_answer_destroy(r->answer);
    return coord_operator_server_failed(r->server, names, count, LONG_MS, &r->answer,
                                        &r->err);
}

size_t operator_requests(operator_rig *r, fake_kind kind)
{
    return fake_operator_requests(r->fake, kind);
}

bool operator_lists(const coord_operator_answer *answer, const char *id)
{
    for (size_t i = 0; i < answer->collector_count; i++) {
        if (strcmp(answer->collectors[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}
