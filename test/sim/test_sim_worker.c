/* Scripted workers: their work, their misbehaviour, and what can be seen of them. */
#include "base/alloc.h"
#include "coord.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A world with a coordinator whose callbacks keep a diary. */
typedef struct rig {
    coord_sim *sim;
    coord_loop *loop;
    CommCoordinator *c;
    coord_sim_worker *workers[4];
    int worker_count;
    int rounds; /* of progress that a collector's task needs; default 1 */
    char diary[4096];
    coord_error why; /* of the last restart or failure */
} rig;

/* ---- the host ---- */

static void note(rig *r, const char *what, coord_text text)
{
    size_t used = strlen(r->diary);
    (void)snprintf(r->diary + used, sizeof r->diary - used, "%s%s%s%.*s",
                   used == 0 ? "" : "\n", what, text.len == 0 ? "" : " ", (int)text.len,
                   text.ptr == NULL ? "" : text.ptr);
}

static void on_data(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    const char *data_id, coord_text data, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)data_id;
    note(user, "data", data);
}

static bool on_judge_collector(CommCoordinator *c, const char *task_id, coord_text info,
                               void *user)
{
    rig *r = user;
    (void)c;
    (void)task_id;
    note(r, "judge", info);
    return --r->rounds <= 0;
}

static coord_status on_get_data(CommCoordinator *c, const char *task_id,
                                const char *buffer_id, int64_t batch_size,
                                int64_t cur_learner_iter, coord_out *out, void *user)
{
    char text[64];
    (void)c;
    (void)task_id;
    (void)buffer_id;
    (void)snprintf(text, sizeof text, "%lld %lld", (long long)batch_size,
                   (long long)cur_learner_iter);
    note(user, "get_data", coord_text_of(text));
    return coord_out_json(out, coord_text_of("[{\"x\": 1}]"), NULL);
}

static void on_info(CommCoordinator *c, const char *task_id, const char *buffer_id,
                    coord_text info, void *user)
{
    (void)c;
    (void)task_id;
    (void)buffer_id;
    note(user, "info", info);
}

static bool on_judge_learner(CommCoordinator *c, const char *task_id, coord_text info,
                             void *user)
{
    (void)c;
    (void)task_id;
    (void)user;
    return memmem(info.ptr, info.len, "\"learner_done\": true", 20) != NULL;
}

static void on_finish(CommCoordinator *c, const char *task_id, coord_text result,
                      void *user)
{
    (void)c;
    (void)task_id;
    note(user, "finish", result);
}

static void on_start(CommCoordinator *c, const char *task_id, const char *worker_id,
                     void *user)
{
    (void)c;
    (void)task_id;
    note(user, "start", coord_text_of(worker_id));
}

static void on_restart(CommCoordinator *c, const char *task_id, uint32_t attempt,
                       const coord_error *cause, coord_out *out, void *user)
{
    rig *r = user;
    (void)c;
    (void)task_id;
    (void)attempt;
    (void)out;
    r->why = *cause;
    note(r, "restart", coord_text_of(""));
}

static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    rig *r = user;
    (void)c;
    (void)task_id;
    r->why = *why;
    note(r, "fail", coord_text_of(coord_status_str(why->status)));
}

/* ---- the rig ---- */

static void rig_open(rig *r, uint64_t seed)
{
    coord_sim_options options;
    memset(r, 0, sizeof *r);
    coord_sim_options_init(&options, sizeof options);
    options.seed = seed;
    assert_int_equal(coord_sim_create(&options, &r->sim, NULL), COORD_OK);
    assert_int_equal(coord_sim_loop(r->sim, "host", &r->loop, NULL), COORD_OK);
}

static coord_sim_worker_options defaults(void)
{
    coord_sim_worker_options options;
    coord_sim_worker_options_init(&options, sizeof options);
    return options;
}

static coord_sim_worker *add(rig *r, const coord_sim_worker_options *options)
{
    coord_error err;
    coord_sim_worker *worker = NULL;
    if (coord_sim_worker_add(r->sim, options, &worker, &err) != COORD_OK) {
        fail_msg("add: %s: %s", err.text, err.cause);
    }
    r->workers[r->worker_count++] = worker;
    return worker;
}

/* A collector with one fault. */
static coord_sim_worker *add_faulty(rig *r, coord_sim_fault fault)
{
    coord_sim_worker_options options = defaults();
    options.faults = &fault;
    options.fault_count = 1;
    return add(r, &options);
}

static void start(rig *r, const char *more)
{
    coord_error err = {0};
    char *config = NULL;
    comm_coordinator_callbacks cb;
    comm_coordinator_options options;
    comm_coordinator_callbacks_init(&cb, sizeof cb);
    cb.deal_with_collector_send_data = on_data;
    cb.deal_with_collector_judge_finish = on_judge_collector;
    cb.deal_with_collector_finish_task = on_finish;
    cb.deal_with_learner_get_data = on_get_data;
    cb.deal_with_learner_send_info = on_info;
    cb.deal_with_learner_judge_finish = on_judge_learner;
    cb.deal_with_learner_finish_task = on_finish;
    cb.deal_with_task_start = on_start;
    cb.deal_with_task_restart = on_restart;
    cb.deal_with_task_fail = on_fail;
    cb.user = r;
    comm_coordinator_options_init(&options, sizeof options);
    assert_int_equal(coord_sim_worker_config(r->sim, "host", more, &config, &err),
                     COORD_OK);
    options.config = config;
    options.callbacks = &cb;
    options.loop = r->loop;
    if (comm_coordinator_create(&options, &r->c, &err) != COORD_OK ||
        comm_coordinator_start(r->c, &err) != COORD_OK) {
        fail_msg("start: %s: %s", err.text, err.cause);
    }
    coord_free(config);
}

static void collect(rig *r)
{
    coord_text task = coord_text_of("{\"task_id\": \"t\", \"buffer_id\": \"b\"}");
    assert_int_equal(comm_coordinator_post_collector_task(r->c, task, NULL), COORD_OK);
}

static void wait_all(rig *r)
{
    coord_error err;
    if (comm_coordinator_wait(r->c, 600000, &err) != COORD_OK) {
        fail_msg("wait: %s", err.text);
    }
}

static void run_for(rig *r, int64_t ms)
{
    assert_int_equal(coord_sim_run_for(r->sim, ms, NULL), COORD_OK);
}

static void rig_close(rig *r)
{
    if (r->c != NULL) {
        assert_int_equal(comm_coordinator_close(r->c, NULL), COORD_OK);
    }
    comm_coordinator_destroy(r->c);
    coord_loop_destroy(r->loop);
    coord_sim_destroy(r->sim);
}

static uint64_t count(const rig *r, int worker, coord_sim_worker_counter what)
{
    return coord_sim_worker_count(r->workers[worker], what);
}

/* ---- work ---- */

static void a_collector_hands_out_samples_and_then_tells_of_progress(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 1);
    add(&r, NULL);
    start(&r, NULL);
    r.rounds = 2;
    coord_sim_worker_options options = defaults();
    assert_int_equal(options.samples, 3);
    collect(&r);
    wait_all(&r);
#define IDS ",\"buffer_id\":\"b\",\"task_id\":\"t\"}"
    assert_string_equal(r.diary,
                        "start collector0\n"
                        "data {\"data_id\": \"collector0-1\"" IDS "\n"
                        "data {\"data_id\": \"collector0-2\"" IDS "\n"
                        "data {\"data_id\": \"collector0-3\"" IDS "\n"
                        "judge {\"collector_done\": true, \"samples\": 3" IDS "\n"
                        "data {\"data_id\": \"collector0-4\"" IDS "\n"
                        "data {\"data_id\": \"collector0-5\"" IDS "\n"
                        "data {\"data_id\": \"collector0-6\"" IDS "\n"
                        "judge {\"collector_done\": true, \"samples\": 6" IDS "\n"
                        "finish {\"samples\": 6,\"task_id\":\"t\"}");
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_STARTED), 1);
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_CLOSED), 1);
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_DONE), 6);
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_FAILED), 0);
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_STEPS), 12); /* 2 are of resources */
    rig_close(&r);
}

static void a_learner_asks_for_batches_and_tells_of_its_steps(void **state)
{
    rig r;
    coord_sim_worker_options options = defaults();
    coord_text task = coord_text_of("{\"task_id\": \"t\", \"buffer_id\": \"b\"}");
    (void)state;
    rig_open(&r, 1);
    options.role = COORD_LEARNER;
    options.learn_steps = 2;
    options.batch_size = 16;
    options.resource = "{\"gpu\": 1}";
    add(&r, &options);
    start(&r, NULL);
    assert_int_equal(comm_coordinator_post_learner_task(r.c, task, NULL), COORD_OK);
    wait_all(&r);
    assert_string_equal(r.diary, "start learner0\n"
                                 "get_data 16 0\n"
                                 "info {\"learner_step\": 1, \"learner_done\": false}\n"
                                 "get_data 16 1\n"
                                 "info {\"learner_step\": 2, \"learner_done\": true}\n"
                                 "finish {\"learner_step\": 2" IDS);
    coord_text info = coord_sim_worker_last_task(r.workers[0]);
    assert_string_equal(info.ptr, "{\"task_id\": \"t\", \"buffer_id\": \"b\","
                                  "\"learner_id\":\"learner0\",\"resource_info\":"
                                  "{\"gpu\": 1}}");
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_DONE), 2);
    rig_close(&r);
}

static coord_status answer(coord_sim_worker *worker, coord_sim_worker_step step,
                           uint64_t n, coord_text in, coord_out *out, coord_error *err,
                           void *user)
{
    int *calls = user;
    (void)worker;
    ++*calls;
    if (step == COORD_SIM_STEP_DATA && n == 2) {
        assert_non_null(memmem(in.ptr, in.len, "\"task_id\"", 9));
        return coord_out_printf(out, err, "{\"data_id\": \"mine\", \"reward\": NaN}");
    }
    if (step == COORD_SIM_STEP_INFO && *calls < 8) {
        (void)snprintf(err->text, sizeof err->text, "lost the thread");
        return COORD_ERR_IO;
    }
    return COORD_OK; /* the default */
}

static void a_function_makes_the_answers_that_it_wants_to(void **state)
{
    rig r;
    int calls = 0;
    coord_sim_worker_options options = defaults();
    (void)state;
    rig_open(&r, 1);
    options.samples = 2;
    options.answer = answer;
    options.user = &calls;
    add(&r, &options);
    start(&r, NULL);
    collect(&r);
    wait_all(&r);
    assert_non_null(strstr(r.diary, "data {\"data_id\": \"collector0-1\""));
    assert_non_null(strstr(r.diary, "data {\"data_id\": \"mine\", \"reward\": NaN,"));
    assert_non_null(strstr(r.diary, "finish {\"samples\": 2"));
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_FAILED), 3);
    rig_close(&r);
}

static void steps_take_the_time_that_they_are_given(void **state)
{
    rig r;
    coord_sim_worker_options options = defaults();
    (void)state;
    rig_open(&r, 1);
    options.step_ms[COORD_SIM_STEP_ANY] = 1;
    options.step_ms[COORD_SIM_STEP_DATA] = 10000;
    options.step_ms[COORD_SIM_STEP_INFO] = 500000;
    add(&r, &options);
    start(&r, NULL);
    int64_t begun = coord_sim_now_ms(r.sim);
    collect(&r);
    wait_all(&r);
    int64_t took = coord_sim_now_ms(r.sim) - begun;
    assert_true(took > 530000 && took < 530100);
    assert_non_null(strstr(r.diary, "finish"));
    rig_close(&r);
}

/* ---- misbehaviour ---- */

static void a_start_is_refused_in_the_words_of_the_script(void **state)
{
    rig r;
    coord_error err = {0};
    (void)state;
    rig_open(&r, 1);
    add_faulty(&r, (coord_sim_fault){.at = COORD_SIM_STEP_START,
                                     .words = "no such environment"});
    start(&r, NULL);
    assert_int_equal(comm_coordinator_send_collector_task(
                         r.c, coord_text_of("{\"task_id\": \"t\"}"), NULL, &err),
                     COORD_ERR_REFUSED);
    assert_non_null(strstr(err.cause, "no such environment"));
    assert_string_equal(r.diary, "");
    collect(&r); /* only the first was to be refused */
    wait_all(&r);
    assert_non_null(strstr(r.diary, "finish"));
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_FAILED), 1);
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_STARTED), 1);
    rig_close(&r);
}

static void requests_fail_as_often_as_the_script_says(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 1);
    add_faulty(&r, (coord_sim_fault){.at = COORD_SIM_STEP_DATA, .nth = 2, .times = 3});
    start(&r, NULL);
    collect(&r);
    wait_all(&r);
    assert_non_null(strstr(r.diary, "finish {\"samples\": 3"));
    assert_null(strstr(r.diary, "restart"));
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_FAILED), 3);
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_DONE), 3);
    rig_close(&r);
}

/* The task's first worker, whichever it is: both have the same fault. */
static void add_two_faulty(rig *r, coord_sim_fault fault)
{
    add_faulty(r, fault);
    add_faulty(r, fault);
}

/* Which of the two the task began with: its only sample there was the first. */
static int first_of(const rig *r)
{
    return strncmp(r->diary, "start collector0", 16) == 0 ? 0 : 1;
}

static void a_worker_that_hangs_goes_on_with_heartbeats(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 1);
    add_faulty(&r, (coord_sim_fault){.what = COORD_SIM_FAULT_HANG,
                                     .at = COORD_SIM_STEP_DATA,
                                     .nth = 2});
    start(&r, NULL);
    collect(&r);
    run_for(&r, 3600000);
    assert_string_equal(r.diary, "start collector0\n"
                                 "data {\"data_id\": \"collector0-1\"" IDS);
    assert_true(coord_sim_worker_is_connected(r.workers[0]));
    rig_close(&r); /* ... and does not keep the world from ending */
}

static void a_task_of_a_worker_that_hangs_moves_when_its_time_is_up(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 3);
    add_two_faulty(&r, (coord_sim_fault){.what = COORD_SIM_FAULT_HANG,
                                         .at = COORD_SIM_STEP_DATA,
                                         .nth = 2});
    start(&r, "{\"collector_task_timeout_s\": 30}");
    collect(&r);
    run_for(&r, 40000);
    assert_non_null(strstr(r.diary, "restart\nstart collector"));
    assert_int_equal(r.why.status, COORD_ERR_TIMEOUT);
    coord_sim_worker_crash(r.workers[first_of(&r)], 0); /* ends the hanging, too */
    run_for(&r, 1);
    assert_false(coord_sim_worker_is_up(r.workers[first_of(&r)]));
    rig_close(&r);
}

static void a_worker_that_crashes_comes_back_when_the_script_says(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 1);
    add_faulty(&r, (coord_sim_fault){.what = COORD_SIM_FAULT_CRASH,
                                     .at = COORD_SIM_STEP_DATA,
                                     .nth = 3,
                                     .back_after_ms = 60000});
    add(&r, NULL);
    start(&r, NULL);
    collect(&r);
    run_for(&r, 100);
    assert_int_equal(first_of(&r), 0);
    assert_false(coord_sim_worker_is_up(r.workers[0]));
    assert_false(coord_sim_worker_is_connected(r.workers[0]));
    wait_all(&r);
    assert_non_null(strstr(r.diary, "restart\nstart collector1"));
    assert_non_null(strstr(r.diary, "finish"));
    assert_int_equal(r.why.status, COORD_ERR_LOST);
    assert_false(coord_sim_worker_is_up(r.workers[0]));
    run_for(&r, 90000);
    assert_true(coord_sim_worker_is_up(r.workers[0]));
    assert_true(coord_sim_worker_is_connected(r.workers[0]));
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_CRASHES), 1);
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_DONE), 2);
    rig_close(&r);
}

static void a_worker_that_falls_silent_is_lost_until_it_goes_on(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 1);
    add_faulty(&r, (coord_sim_fault){.what = COORD_SIM_FAULT_SILENCE,
                                     .at = COORD_SIM_STEP_DATA,
                                     .nth = 2,
                                     .back_after_ms = 60000});
    add(&r, NULL);
    start(&r, NULL);
    collect(&r);
    run_for(&r, 30000);
    assert_int_equal(first_of(&r), 0);
    assert_non_null(strstr(r.diary, "restart\nstart collector1"));
    assert_true(coord_sim_worker_is_up(r.workers[0]));
    run_for(&r, 60000);
    assert_true(coord_sim_worker_is_connected(r.workers[0]));
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_DONE), 2); /* the second was dropped */
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_CRASHES), 0);
    rig_close(&r);
}

static void workers_misbehave_on_a_word(void **state)
{
    rig r;
    (void)state;
    rig_open(&r, 1);
    coord_sim_worker *w = add(&r, NULL);
    start(&r, NULL);
    assert_true(coord_sim_worker_is_connected(w));
    coord_sim_worker_revive(w); /* nothing is wrong with it */
    coord_sim_worker_silence(w, 0);
    run_for(&r, 60000);
    coord_sim_worker_revive(w);
    run_for(&r, 60000);
    assert_true(coord_sim_worker_is_connected(w));
    coord_sim_worker_crash(w, 0);
    coord_sim_worker_silence(w, 10); /* the dead are silent as it is */
    run_for(&r, 60000);
    assert_false(coord_sim_worker_is_up(w));
    coord_sim_worker_crash(w, 5000);
    coord_sim_worker_crash(w, 10000); /* later, after all */
    run_for(&r, 9999);
    assert_false(coord_sim_worker_is_up(w));
    run_for(&r, 1);
    assert_true(coord_sim_worker_is_up(w));
    run_for(&r, 60000);
    assert_true(coord_sim_worker_is_connected(w));
    coord_sim_worker_crash(w, 0);
    coord_sim_worker_revive(w);
    run_for(&r, 1);
    assert_true(coord_sim_worker_is_up(w));
    assert_int_equal(count(&r, 0, COORD_SIM_COUNT_CRASHES), 2);
    rig_close(&r);
}

static coord_status never_called(coord_slave *slave, coord_text in, coord_out *out,
                                 coord_error *err, void *user)
{
    (void)slave;
    (void)in;
    (void)out;
    (void)err;
    (void)user;
    return COORD_ERR_STATE;
}

static void a_worker_cannot_come_back_to_a_port_that_is_taken(void **state)
{
    rig r;
    coord_slave_options squatter;
    coord_loop *loop = NULL;
    coord_collector *collector = NULL;
    coord_collector_callbacks cb;
    (void)state;
    rig_open(&r, 1);
    coord_sim_worker *w = add(&r, NULL);
    coord_sim_worker_crash(w, 1000);
    assert_int_equal(coord_sim_loop(r.sim, "collector0", &loop, NULL), COORD_OK);
    coord_slave_options_init(&squatter, sizeof squatter);
    squatter.host = "collector0";
    squatter.port = 22270;
    squatter.insecure = true;
    squatter.loop = loop;
    coord_collector_callbacks_init(&cb, sizeof cb);
    cb.start = never_called;
    cb.data = never_called;
    assert_int_equal(coord_collector_create(&squatter, &cb, &collector, NULL), COORD_OK);
    run_for(&r, 2000);
    assert_false(coord_sim_worker_is_up(w));
    coord_collector_destroy(collector);
    coord_loop_destroy(loop);
    coord_sim_worker_revive(w);
    run_for(&r, 1);
    assert_true(coord_sim_worker_is_up(w));
    rig_close(&r);
}

static uint64_t hash_of_trouble(uint64_t seed)
{
    rig r;
    rig_open(&r, seed);
    add_two_faulty(
        &r,
        (coord_sim_fault){.what = COORD_SIM_FAULT_CRASH, .nth = 4, .back_after_ms = 700});
    start(&r, NULL);
    r.rounds = 3;
    collect(&r);
    wait_all(&r);
    uint64_t hash = coord_sim_trace_hash(r.sim);
    rig_close(&r);
    return hash;
}

static void one_seed_gives_one_story_of_trouble(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        assert_true(hash_of_trouble(seed) == hash_of_trouble(seed));
    }
    assert_true(hash_of_trouble(1) != hash_of_trouble(2));
}

/* ---- making ---- */

static void the_configuration_names_all_workers_and_what_is_asked_for(void **state)
{
    rig r;
    coord_error err;
    char *config = NULL;
    coord_sim_worker_options options = defaults();
    (void)state;
    rig_open(&r, 1);
    add(&r, NULL);
    options.role = COORD_LEARNER;
    options.id = "tutor \"0\"";
    options.host = "10.0.0.7";
    options.port = 0;
    add(&r, &options);
    assert_int_equal(
        coord_sim_worker_config(r.sim, "host", "{\"max_reassign\": 1}", &config, &err),
        COORD_OK);
    assert_string_equal(config,
                        "{\"max_reassign\": 1,\"host\":\"host\",\"insecure\":true,"
                        "\"collector\":{\"0\": [\"collector0\", \"collector0\", 22270]},"
                        "\"learner\":{\"0\": [\"tutor \\\"0\\\"\", \"10.0.0.7\", "
                        "20000]}}");
    coord_free(config);
    assert_int_equal(coord_sim_worker_config(r.sim, "host", "[1]", &config, &err),
                     COORD_ERR_FORMAT);
    assert_int_equal(coord_sim_worker_config(r.sim, "host", "{", &config, &err),
                     COORD_ERR_FORMAT);
    assert_int_equal(coord_sim_worker_config(r.sim, NULL, NULL, &config, &err),
                     COORD_ERR_ARG);
    assert_string_equal(coord_sim_worker_id(r.workers[0]), "collector0");
    assert_string_equal(coord_sim_worker_host(r.workers[1]), "10.0.0.7");
    assert_int_equal(coord_sim_worker_port(r.workers[1]), 20000);
    rig_close(&r);
}

static coord_status add_wrong(rig *r, const coord_sim_worker_options *options,
                              const char *words)
{
    coord_error err = {0};
    coord_sim_worker *worker = NULL;
    coord_status rc = coord_sim_worker_add(r->sim, options, &worker, &err);
    assert_null(worker);
    assert_non_null(strstr(err.text, words));
    return rc;
}

static void wrong_options_are_named(void **state)
{
    rig r;
    char *config = NULL;
    coord_sim_fault fault = {.what = (coord_sim_fault_kind)9};
    coord_sim_worker_options o = defaults();
    (void)state;
    rig_open(&r, 1);
    add(&r, NULL);
    o.id = "collector0";
    assert_int_equal(add_wrong(&r, &o, "there is a collector 'coll"), COORD_ERR_EXISTS);
    o.host = "collector0";
    o.id = "c";
    assert_int_equal(add_wrong(&r, &o, "listen on collector0:22270"), COORD_ERR_IO);
    o = defaults();
    o.id = "";
    assert_int_equal(add_wrong(&r, &o, "id must have"), COORD_ERR_ARG);
    o = defaults();
    o.role = (coord_role)7;
    assert_int_equal(add_wrong(&r, &o, "7 is no role"), COORD_ERR_ARG);
    o = defaults();
    o.resource = "[]";
    assert_int_equal(add_wrong(&r, &o, "resource: expected a JSON object, got []"),
                     COORD_ERR_ARG);
    o = defaults();
    o.step_ms[7] = 1;
    assert_int_equal(add_wrong(&r, &o, "step_ms[7]"), COORD_ERR_ARG);
    o = defaults();
    o.fault_count = 1;
    assert_int_equal(add_wrong(&r, &o, "fault_count"), COORD_ERR_ARG);
    o.faults = &fault;
    assert_int_equal(add_wrong(&r, &o, "faults[0]"), COORD_ERR_ARG);
    o = defaults();
    o.size = 0;
    assert_int_equal(add_wrong(&r, &o, "coord_sim_worker_options"), COORD_ERR_ABI);
    assert_int_equal(coord_sim_worker_config(r.sim, "host", NULL, &config, NULL),
                     COORD_OK);
    assert_null(strstr(config, "\"1\"")); /* those that failed are not in it */
    coord_free(config);
    rig_close(&r);
}

typedef struct countdown {
    int left;
    bool used_up;
} countdown;

static bool count_down(void *user)
{
    countdown *c = user;
    c->used_up = c->used_up || c->left == 0;
    return c->left-- <= 0;
}

static void adding_a_worker_survives_every_lack_of_memory(void **state)
{
    (void)state;
    for (int i = 0;; i++) {
        rig r;
        coord_sim_fault fault = {.words = "x"};
        coord_sim_worker_options o = defaults();
        countdown c = {.left = i};
        o.faults = &fault;
        o.fault_count = 1;
        rig_open(&r, 1);
        coordi_alloc_set_fault(count_down, &c);
        coord_status rc = coord_sim_worker_add(r.sim, &o, NULL, NULL);
        coordi_alloc_set_fault(NULL, NULL);
        rig_close(&r);
        if (!c.used_up) {
            assert_int_equal(rc, COORD_OK);
            assert_true(i > 10);
            return;
        }
        assert_int_equal(rc, COORD_ERR_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_collector_hands_out_samples_and_then_tells_of_progress),
        cmocka_unit_test(a_learner_asks_for_batches_and_tells_of_its_steps),
        cmocka_unit_test(a_function_makes_the_answers_that_it_wants_to),
        cmocka_unit_test(steps_take_the_time_that_they_are_given),
        cmocka_unit_test(a_start_is_refused_in_the_words_of_the_script),
        cmocka_unit_test(requests_fail_as_often_as_the_script_says),
        cmocka_unit_test(a_worker_that_hangs_goes_on_with_heartbeats),
        cmocka_unit_test(a_task_of_a_worker_that_hangs_moves_when_its_time_is_up),
        cmocka_unit_test(a_worker_that_crashes_comes_back_when_the_script_says),
        cmocka_unit_test(a_worker_that_falls_silent_is_lost_until_it_goes_on),
        cmocka_unit_test(workers_misbehave_on_a_word),
        cmocka_unit_test(a_worker_cannot_come_back_to_a_port_that_is_taken),
        cmocka_unit_test(one_seed_gives_one_story_of_trouble),
        cmocka_unit_test(the_configuration_names_all_workers_and_what_is_asked_for),
        cmocka_unit_test(wrong_options_are_named),
        cmocka_unit_test(adding_a_worker_survives_every_lack_of_memory),
    };
    return cmocka_run_group_tests_name("sim_worker", tests, NULL, NULL);
}
