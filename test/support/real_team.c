#include "support/real_team.h"

#include "support/simple.h"

#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* ---- workers ---- */

static coord_status start(coord_slave *slave, coord_text in, coord_out *out,
                          coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    *(bool *)user = false;
    return coord_out_printf(out, err, "{}");
}

static coord_status data(coord_slave *slave, coord_text in, coord_out *out,
                         coord_error *err, void *user)
{
    bool *told = user;
    (void)slave;
    (void)in;
    if (*told) {
        return coord_out_printf(out, err, "{\"collector_done\": true}");
    }
    *told = true;
    return coord_out_printf(out, err, "{\"data_id\": \"d\"}");
}

/* ---- the host ---- */

static void on_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    const char *data_id, coord_text text, void *user)
{
    real_team *t = user;
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)data_id;
    (void)text;
    atomic_fetch_add(&t->samples, 1);
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    real_team *t = user;
    (void)c;
    (void)task_id;
    (void)result;
    atomic_fetch_add(&t->finished, 1);
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    real_team *t = user;
    (void)c;
    (void)task_id;
    (void)why;
    atomic_fetch_add(&t->failed, 1);
}

/* ---- life ---- */

static void make_worker(real_team *t, coord_loop *loop)
{
    coord_slave_options o;
    coord_collector_callbacks cb;
    coord_error err = {0};
    coord_slave_options_init(&o, sizeof o);
    o.loop = loop;
    coord_collector_callbacks_init(&cb, sizeof cb);
    cb.start = start;
    cb.data = data;
    cb.user = &t->told[t->worker_count];
    coord_status rc = coord_collector_create(&o, &cb, &t->workers[t->worker_count], &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, COORD_OK);
    t->worker_count++;
}

void real_team_start(real_team *t, coord_loop *loop, int workers, const char *executor)
{
    static char config[REAL_TEAM_MAX * 64 + 256];
    comm_coordinator_callbacks cb;
    comm_coordinator_options o;
    coord_error err = {0};
    memset(t, 0, sizeof *t);
    int at = snprintf(config, sizeof config, "{\"port\": 0, \"executor\": %s", executor);
    for (int i = 0; i < workers; i++) {
        make_worker(t, loop);
        at += snprintf(config + at, sizeof config - (size_t)at,
                       "%s\"%d\": [\"c%d\", \"127.0.0.1\", %u]",
                       i == 0 ? ", \"collector\": {" : ", ", i, i,
                       (unsigned)coord_slave_port(coord_collector_slave(t->workers[i])));
    }
    (void)snprintf(config + at, sizeof config - (size_t)at, "}}");
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = on_data;
    cb.deal_with_collector_judge_finish = simple_is_enough;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_task_fail = on_fail;
    cb.user = t;
    comm_coordinator_options_init(&o, sizeof o);
    o.config = config;
    o.callbacks = &cb;
    o.loop = loop;
    coord_status rc = comm_coordinator_create(&o, &t->c, &err);
    if (rc == COORD_OK) {
        rc = comm_coordinator_start(t->c, &err);
    }
    if (rc != COORD_OK) { /* else it may be a remark on who is missing */
        fail_msg("start: %s", err.text);
    }
}

void real_team_post(real_team *t)
{
    char task[64];
    coord_error err = {0};
    (void)snprintf(task, sizeof task, "{\"task_id\": \"t%d\"}", t->posted++);
    coord_status rc =
        comm_coordinator_post_collector_task(t->c, coord_text_of(task), &err);
    assert_string_equal(err.text, "");
    assert_int_equal(rc, COORD_OK);
}

void real_team_work(real_team *t, int tasks)
{
    for (int i = 0; i < tasks; i++) {
        real_team_post(t);
    }
    assert_int_equal(comm_coordinator_wait(t->c, REAL_TEAM_WAIT_MS, NULL), COORD_OK);
    assert_int_equal(atomic_load(&t->failed), 0);
    assert_int_equal(atomic_load(&t->finished), t->posted);
    assert_int_equal(atomic_load(&t->samples), t->posted);
}

void real_team_end(real_team *t)
{
    assert_int_equal(comm_coordinator_close(t->c, NULL), COORD_OK);
    comm_coordinator_destroy(t->c);
    for (int i = 0; i < t->worker_count; i++) {
        coord_collector_destroy(t->workers[i]);
    }
}

/* ---- the process ---- */

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        count += at->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count;
}

int open_descriptors(void)
{
    return count_entries("/proc/self/fd") - 1; /* without the one that looks */
}

int count_threads(void)
{
    return count_entries("/proc/self/task");
}

/* By their names; sanitizers have threads, too. */
static bool is_ours(const char *thread)
{
    char path[64];
    char name[32] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", thread);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false; /* gone just now */
    }
    const bool ours = fgets(name, sizeof name, file) != NULL &&
                      strncmp(name, "coord-", strlen("coord-")) == 0;
    (void)fclose(file);
    return ours;
}

static bool has_threads(void)
{
    bool found = false;
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *at = readdir(dir); at != NULL && !found; at = readdir(dir)) {
        found = at->d_name[0] != '.' && is_ours(at->d_name);
    }
    (void)closedir(dir);
    return found;
}

bool threads_are_gone(void)
{
    const time_t until = time(NULL) + REAL_TEAM_WAIT_MS / 1000;
    while (has_threads()) {
        if (time(NULL) > until) {
            return false;
        }
        (void)sched_yield();
    }
    return true;
}
