/* What the reference's slave and master answered: every step of the recordings is a test
 * of its own. */
#include "support/processes.h"
#include "support/recording.h"
#include "support/werkzeug.h"

#include "coord/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WAIT_MS = 30000, SLAVE_STEPS = 48, MASTER_STEPS = 47 };

/* ---- the recordings ---- */

/* One of the two, with the program that answers it. */
typedef struct replay {
    recording recorded;
    recording_target target;
    char self_token[80];
    char task_id[40];
    process *peer;
    werkzeug *master; /* what the slave reports to */
    size_t tasks;     /* given so far */
} replay;

typedef struct replay_step {
    replay *replay;
    size_t n;
} replay_step;

static replay slave_replay;
static replay master_replay;

static void start_peer(replay *r)
{
    const char *args[] = {r->recorded.target, NULL};
    unsigned port = 0;
    r->peer = process_start_held("test/conformance_peer", args);
    const char *line = process_read_line(r->peer, WAIT_MS);
    if (line == NULL ||
        sscanf(line, "%u %79s %39s", &port, r->self_token, r->task_id) != 3) {
        fail_msg("the peer said %s, %s", line == NULL ? "nothing" : line,
                 process_errors(r->peer));
    }
    r->target = (recording_target){
        .port = (uint16_t)port, .self_token = r->self_token, .task_id = r->task_id};
}

static int start_slave(void **state)
{
    (void)state;
    slave_replay.master = werkzeug_start(WERKZEUG_2_2, NULL, NULL);
    start_peer(&slave_replay);
    slave_replay.target.master_port = werkzeug_port(slave_replay.master);
    return 0;
}

static int start_master(void **state)
{
    (void)state;
    start_peer(&master_replay);
    return 0;
}

static int end_peer(replay *r)
{
    process_end_input(r->peer);
    int status = process_wait(r->peer, WAIT_MS);
    if (status != 0) {
        (void)fprintf(stderr, "peer: %d, %s\n", status, process_errors(r->peer));
    }
    werkzeug_stop(r->master);
    processes_end_all();
    return status;
}

static int end_slave(void **state)
{
    (void)state;
    return end_peer(&slave_replay);
}

static int end_master(void **state)
{
    (void)state;
    return end_peer(&master_replay);
}

static void is_answered_as_recorded(void **state)
{
    const replay_step *s = *state;
    replay *r = s->replay;
    recording_play(&r->recorded, s->n, &r->target);
    r->tasks += recording_gives_task(&r->recorded, s->n);
    if (recording_pauses(&r->recorded, s->n)) {
        werkzeug_await(r->master, "/slave/task/complete", r->tasks);
    }
}

static void the_slave_sent_what_was_recorded(void **state)
{
    const replay *r = *state;
    size_t i;
    json_t *sent;
    json_array_foreach(r->recorded.slave_sent, i, sent)
    {
        const char *line = json_string_value(json_array_get(sent, 0));
        const char *got = werkzeug_raw(r->master, NULL, i, NULL);
        json_t *body = NULL;
        assert_int_equal(strncmp(got, line, strlen(line)), 0);
        assert_int_equal(
            coord_json_parse(coord_text_of(strstr(got, "\r\n\r\n")), &body, NULL),
            COORD_OK);
        if (!json_equal(body, json_array_get(sent, 1))) {
            fail_msg("the slave sent %s", got);
        }
        json_decref(body);
    }
    assert_int_equal(i, 5);
    assert_int_equal(werkzeug_count(r->master, NULL), i);
}

static int play(replay *r, const char *file, size_t steps, CMFixtureFunction start,
                CMFixtureFunction end)
{
    static replay_step which[SLAVE_STEPS + MASTER_STEPS];
    static size_t used;
    struct CMUnitTest tests[SLAVE_STEPS + 1];
    size_t count = 0;

    recording_open(&r->recorded, file);
    assert_int_equal(recording_count(&r->recorded), steps);
    for (size_t n = 0; n < steps; n++) {
        replay_step *s = &which[used++];
        *s = (replay_step){r, n};
        tests[count++] = (struct CMUnitTest){.name = recording_title(&r->recorded, n),
                                             .test_func = is_answered_as_recorded,
                                             .initial_state = s};
    }
    if (r->recorded.slave_sent != NULL) {
        tests[count++] =
            (struct CMUnitTest){.name = "the_slave_sent_what_was_recorded",
                                .test_func = the_slave_sent_what_was_recorded,
                                .initial_state = r};
    }
    int failed = _cmocka_run_group_tests(file, tests, count, start, end);
    recording_close(&r->recorded);
    return failed;
}

int main(void)
{
    return play(&slave_replay, "vectors_slave.json", SLAVE_STEPS, start_slave,
                end_slave) +
           play(&master_replay, "vectors_master.json", MASTER_STEPS, start_master,
                end_master);
}
