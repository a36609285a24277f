/* What the CartPole run's coordinator and workers hand to each other, and when it is
 * solved. */
#include "cartpole/buffer.h"
#include "cartpole/exam.h"
#include "cartpole/files.h"
#include "cartpole/job.h"
#include "cartpole/paths.h"
#include "cartpole/policy.h"
#include "cartpole/rollout.h"
#include "cartpole/settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[1024];
static char path[PATH_SIZE];

static int set_up(void **state)
{
    const char *parent = getenv("TMPDIR");
    (void)state;
    (void)snprintf(folder, sizeof folder, "%.900s/cartpole-XXXXXX",
                   parent == NULL ? "/tmp" : parent);
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    (void)snprintf(path, sizeof path, "%s/" CHUNKS_NAME, folder);
    return mkdir(path, 0700);
}

static int tear_down(void **state)
{
    char command[1100];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* ---- files ---- */

static void a_policy_file_gives_back_weights_and_version(void **state)
{
    coord_error err;
    ppo_options options;
    int64_t version = -1;
    (void)state;
    ppo_options_init(&options);
    ppo *p = ppo_create(&options, 5);
    mlp *policy = policy_create(1);
    assert_true(p != NULL && policy != NULL);
    p->updates = 12;
    assert_int_equal(path_of_policy(path, folder, 12, &err), COORD_OK);
    assert_int_equal(policy_write(path, p, &err), COORD_OK);
    assert_int_equal(policy_read(path, policy, &version, &err), COORD_OK);
    assert_int_equal(version, 12);
    assert_memory_equal(policy->params, p->policy->params, policy->count * sizeof(float));
    mlp_destroy(policy);
    ppo_destroy(p);
}

static chunk *play(void)
{
    rollout *r = rollout_create(2, 40, 3);
    mlp *policy = policy_create(2);
    assert_true(r != NULL && policy != NULL);
    chunk *c = rollout_chunk(r);
    assert_non_null(c);
    rollout_collect(r, policy, c);
    c->policy_version = 7;
    mlp_destroy(policy);
    rollout_destroy(r);
    return c;
}

static void a_chunk_file_gives_back_the_chunk(void **state)
{
    coord_error err;
    chunk *read = NULL;
    (void)state;
    chunk *c = play();
    assert_int_equal(path_of_chunk(path, folder, "c-1", &err), COORD_OK);
    assert_int_equal(chunk_write(path, c, &err), COORD_OK);
    assert_int_equal(chunk_read(path, &read, &err), COORD_OK);
    assert_int_equal(read->policy_version, 7);
    assert_int_equal(read->steps, c->steps);
    assert_int_equal(read->cuts, c->cuts);
    assert_int_equal(read->episodes, c->episodes);
    assert_memory_equal(read->obs, c->obs, c->steps * 4 * sizeof(float));
    assert_memory_equal(read->returns, c->returns, c->episodes * sizeof(float));
    chunk_destroy(read);
    chunk_destroy(c);
}

static void a_file_that_is_no_valid_chunk_is_refused_by_name(void **state)
{
    coord_error err;
    chunk *read = NULL;
    ppo_options options;
    (void)state;
    assert_int_equal(path_of_chunk(path, folder, "c-1", &err), COORD_OK);
    assert_int_equal(chunk_read(path, &read, &err), COORD_ERR_NOT_FOUND);

    chunk *c = play();
    c->action[3] = 9;
    assert_int_equal(chunk_write(path, c, &err), COORD_OK);
    assert_int_equal(chunk_read(path, &read, &err), COORD_ERR_FORMAT);
    assert_non_null(strstr(err.text, path));
    chunk_destroy(c);

    ppo_options_init(&options); /* a file of another kind */
    ppo *p = ppo_create(&options, 1);
    assert_non_null(p);
    assert_int_equal(policy_write(path, p, &err), COORD_OK);
    assert_int_equal(chunk_read(path, &read, &err), COORD_ERR_FORMAT);
    ppo_destroy(p);
    assert_null(read);
}

static void the_name_of_a_chunk_leads_nowhere_else(void **state)
{
    static const char *const BAD[] = {"", ".", "..", "../policy", "a/b", "/etc/passwd"};
    coord_error err;
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_equal(path_of_chunk(path, folder, BAD[i], &err), COORD_ERR_FORMAT);
    }
}

static void the_checkpoint_tells_the_newest_version(void **state)
{
    coord_error err;
    int64_t version = -1;
    int64_t env_steps = -1;
    (void)state;
    assert_int_equal(checkpoint_read(folder, &version, NULL, &err), COORD_ERR_NOT_FOUND);
    assert_int_equal(checkpoint_write(folder, 1, 2048, false, &err), COORD_OK);
    assert_int_equal(checkpoint_write(folder, 2, 4096, false, &err), COORD_OK);
    assert_int_equal(checkpoint_read(folder, &version, &env_steps, &err), COORD_OK);
    assert_int_equal(version, 2);
    assert_int_equal(env_steps, 4096);
}

static void a_job_that_makes_no_sense_is_refused(void **state)
{
    static const char *const BAD[] = {
        "[]",
        "{\"evaluate\": 1}",
        "{\"evaluate\": false, \"folder\": \"f\", \"collector_id\": \"c\", \"seed\": 1}",
        "{\"evaluate\": false, \"folder\": \"f\", \"collector_id\": \"c\", \"seed\": 1,"
        " \"envs\": 0, \"steps\": 5}",
        "{\"evaluate\": true, \"folder\": \"f\", \"collector_id\": \"c\", \"seed\": 1,"
        " \"policy_version\": -1, \"episodes\": 5}",
    };
    coord_error err;
    job j;
    (void)state;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        assert_int_not_equal(job_read(coord_text_of(BAD[i]), &j, &err), COORD_OK);
    }
    assert_int_equal(job_read(coord_text_of("{\"evaluate\": true, \"folder\": \"f\", "
                                            "\"collector_id\": \"c\", \"seed\": 1, "
                                            "\"policy_version\": 3, \"episodes\": 5}"),
                              &j, &err),
                     COORD_OK);
    assert_int_equal(j.version, 3);
}

/* ---- buffer ---- */

static void add(buffer *b, const char *name, int64_t version)
{
    chunk_entry entry = {.version = version};
    coord_error err;
    (void)snprintf(entry.name, sizeof entry.name, "%s", name);
    assert_int_equal(path_of_chunk(path, folder, name, &err), COORD_OK);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fclose(file);
    buffer_add(b, &entry);
}

static bool is_there(const char *name)
{
    coord_error err;
    assert_int_equal(path_of_chunk(path, folder, name, &err), COORD_OK);
    return access(path, F_OK) == 0;
}

static void chunks_are_taken_in_order_and_removed_when_the_learner_is_done(void **state)
{
    static buffer b;
    (void)state;
    b = (buffer){.folder = folder};
    assert_false(buffer_take(&b, 1));
    add(&b, "a", 1);
    add(&b, "b", 1);
    add(&b, "c", 2);
    assert_false(buffer_take(&b, 4));
    assert_true(buffer_take(&b, 2));
    assert_string_equal(b.taken[0].name, "a");
    assert_string_equal(b.taken[1].name, "b");
    assert_true(is_there("a"));
    assert_true(buffer_take(&b, 1));
    assert_false(is_there("a") || is_there("b"));
    assert_true(is_there("c"));
    buffer_return(&b);
    assert_false(is_there("c"));
}

static void old_chunks_are_dropped_with_their_files(void **state)
{
    static buffer b;
    (void)state;
    b = (buffer){.folder = folder};
    add(&b, "a", 1);
    add(&b, "b", 3);
    add(&b, "c", 2);
    buffer_drop_old(&b, 2);
    assert_int_equal(b.ready_count, 2);
    assert_false(is_there("a"));
    assert_true(is_there("b") && is_there("c"));
}

static void a_full_buffer_drops_the_oldest(void **state)
{
    static buffer b;
    char name[16];
    (void)state;
    b = (buffer){.folder = folder};
    for (int i = 0; i <= BUFFER_MAX; i++) {
        (void)snprintf(name, sizeof name, "c-%d", i);
        add(&b, name, 0);
    }
    assert_int_equal(b.ready_count, BUFFER_MAX);
    assert_string_equal(b.ready[0].name, "c-1");
    assert_false(is_there("c-0"));
}

/* ---- exam ---- */

static void a_version_is_evaluated_every_so_often_and_one_at_a_time(void **state)
{
    exam e = {.next = 5};
    (void)state;
    assert_false(exam_begin(&e, 4));
    assert_true(exam_begin(&e, 6));
    assert_int_equal(e.version, 6);
    assert_false(exam_begin(&e, 20));
    assert_int_equal(exam_end_round(&e, 100), EXAM_NOT_PASSED);
    assert_false(exam_begin(&e, 6 + EVALUATE_EVERY - 1));
    assert_true(exam_begin(&e, 20));
    assert_int_equal(e.version, 20);
}

static void solved_means_two_rounds_of_fresh_episodes(void **state)
{
    exam e = {0};
    (void)state;
    assert_true(exam_begin(&e, 10));
    int64_t seed = exam_seed(&e, 1);
    assert_int_equal(exam_end_round(&e, 500), EXAM_ANOTHER_ROUND);
    assert_int_not_equal(exam_seed(&e, 1), seed);
    assert_false(exam_begin(&e, 30));
    assert_int_equal(exam_end_round(&e, 475), EXAM_SOLVED);
}

static void luck_in_one_round_is_not_enough(void **state)
{
    exam e = {0};
    (void)state;
    assert_true(exam_begin(&e, 10));
    assert_int_equal(exam_end_round(&e, 500), EXAM_ANOTHER_ROUND);
    assert_int_equal(exam_end_round(&e, 474.9), EXAM_NOT_PASSED);
    assert_true(exam_begin(&e, 15));
    assert_int_equal(exam_end_round(&e, 476), EXAM_ANOTHER_ROUND);
    assert_int_equal(exam_end_round(&e, 476), EXAM_NOT_PASSED); /* too close */
}

#define WITH_FOLDER(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(a_policy_file_gives_back_weights_and_version),
        WITH_FOLDER(a_chunk_file_gives_back_the_chunk),
        WITH_FOLDER(a_file_that_is_no_valid_chunk_is_refused_by_name),
        WITH_FOLDER(the_name_of_a_chunk_leads_nowhere_else),
        WITH_FOLDER(the_checkpoint_tells_the_newest_version),
        cmocka_unit_test(a_job_that_makes_no_sense_is_refused),
        WITH_FOLDER(chunks_are_taken_in_order_and_removed_when_the_learner_is_done),
        WITH_FOLDER(old_chunks_are_dropped_with_their_files),
        WITH_FOLDER(a_full_buffer_drops_the_oldest),
        cmocka_unit_test(a_version_is_evaluated_every_so_often_and_one_at_a_time),
        cmocka_unit_test(solved_means_two_rounds_of_fresh_episodes),
        cmocka_unit_test(luck_in_one_round_is_not_enough),
    };
    return cmocka_run_group_tests_name("cartpole_host", tests, NULL, NULL);
}
