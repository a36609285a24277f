/* Any bytes as a configuration: either every value is in range, or an error says in one
 * line which is not; without memory, too. */
#include "base/alloc.h"
#include "base/buf.h"
#include "codec/json.h"
#include "coordinator/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool truth)
{
    if (!truth) {
        abort();
    }
}

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static void count_blocks(void *block, int change, void *user)
{
    (void)block;
    *(int *)user += change;
}

static void must_be_a_line(const char *text)
{
    coordi_buf buf = {0};
    must(text[strcspn(text, "\r\n")] == '\0');
    coordi_buf_add_json(&buf, text, strlen(text));
    must(coordi_json_check((coord_text){buf.ptr, buf.len}, NULL) == COORD_OK);
    coordi_buf_done(&buf);
}

static void must_be_sound_operator(const coordi_config_operator *o)
{
    for (int role = 0; role < 2; role++) {
        must(o->targets[role] >= 0 && o->targets[role] <= 10000);
    }
    must(o->poll_ms >= 100 && o->poll_ms <= 3600000 && o->grace_ms > 0);
    must(strlen(o->system_addr) < sizeof o->system_addr);
    must(strlen(o->api_version) < sizeof o->api_version);
    must(strlen(o->name_space) < sizeof o->name_space);
    must(strlen(o->name) < sizeof o->name && strlen(o->job_id) < sizeof o->job_id);
    must(o->given || (o->order == NULL && o->roles == NULL && !o->drains));
    if (o->roles != NULL) {
        size_t count = strlen(o->roles);
        must(count >= 1 && count <= 10000 && strspn(o->roles, "cl-") == count);
    }
    if (o->order != NULL) {
        const coord_operator_request *r = &o->order->request;
        must(r->collectors >= 0 && r->learners >= 0);
        must(r->learner_memory == NULL || r->learner_memory[0] != '\0');
    }
}

static void must_be_sound_discovery(const coordi_config_discovery *d)
{
    must(d->interval_ms >= 100 && d->interval_ms <= 86400000);
    must(d->timeout_ms >= 100 && d->timeout_ms <= 3600000);
    must(d->given || (d->command == NULL && !d->drains));
    if (d->command != NULL) {
        size_t count = 0;
        must(d->command[0] != NULL && d->command[0][0] != '\0');
        while (d->command[count] != NULL) {
            must(strlen(d->command[count]) < SIZE_MAX); /* all of it can be read */
            count++;
        }
        must(count <= 64);
    }
}

static void must_be_sound(const coordi_config *c)
{
    for (size_t i = 0; i < c->worker_count; i++) {
        const coordi_config_worker *w = &c->workers[i];
        must(w->role == COORD_COLLECTOR || w->role == COORD_LEARNER);
        must(w->id[0] != '\0' && coordi_address_is_host(w->host) && w->port > 0);
        for (size_t k = 0; k < i; k++) {
            must(c->workers[k].role != w->role || strcmp(c->workers[k].id, w->id) != 0);
        }
    }
    for (int role = 0; role < 2; role++) {
        must(c->min_workers[role] >= -1 && c->min_workers[role] <= 1000000);
        must(c->task_timeout_ms[role] >= 0);
    }
    must_be_sound_operator(&c->operator_server);
    must_be_sound_discovery(&c->discovery);
    must(coordi_address_is_host(c->host));
    must(c->insecure || coordi_address_is_loopback(c->host));
    must(c->my_address[0] == '\0' || coordi_address_is_host(c->my_address));
    must(c->port >= 0 && c->port <= 65535);
    must(c->executor != COORD_EXECUTOR_POOL || c->executor_threads > 0);
    must(coord_resource_policy_find(c->resource_manager) != NULL);
    must(c->queue_timeout_ms >= 0 && c->max_queued_tasks > 0 && c->request_retries >= 0);
    must(c->max_retry_ms > 0 && c->request_timeout_ms > 0 && c->close_timeout_ms > 0);
    must(c->heartbeat_tolerance_ms > 0 && c->heartbeat_check_ms > 0);
    must(c->max_inflight_bytes >= c->max_body_bytes && c->max_body_bytes > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const coord_text in = {(const char *)data, size};
    coordi_config config;
    coord_error err = {.status = COORD_OK};
    coord_status rc = coordi_config_read(in, &config, &err);
    if (rc == COORD_OK) {
        must_be_sound(&config);
        coordi_config_done(&config);
    } else {
        must(rc == COORD_ERR_CONFIG || rc == COORD_ERR_UNSUPPORTED);
        must(err.status == rc && err.text[0] != '\0');
        must_be_a_line(err.text);
        must_be_a_line(err.cause);
    }
    int left = (int)(size % 7);
    int blocks = 0;
    coordi_alloc_set_watch(count_blocks, &blocks);
    coordi_alloc_set_fault(countdown, &left);
    coord_status poor = coordi_config_read(in, &config, &err);
    coordi_alloc_set_fault(NULL, NULL);
    must(poor == rc || poor == COORD_ERR_NOMEM);
    must(blocks == 0 || poor == COORD_OK);
    if (poor == COORD_OK) {
        coordi_config_done(&config);
        must(blocks == 0);
    }
    coordi_alloc_set_watch(NULL, NULL);
    return 0;
}
