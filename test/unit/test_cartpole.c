#include "cartpole/adam.h"
#include "cartpole/cartpole.h"
#include "cartpole/chunk.h"
#include "cartpole/mlp.h"
#include "cartpole/policy.h"
#include "cartpole/ppo.h"
#include "cartpole/ppo_loss.h"
#include "cartpole/rng.h"
#include "cartpole/rollout.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance)) {
        fail_msg("expected %.17g within %g, got %.17g", expected, tolerance, got);
    }
}

static void assert_state(const cartpole *env, const double expected[4], double tolerance)
{
    assert_near(env->x, expected[0], tolerance);
    assert_near(env->x_dot, expected[1], tolerance);
    assert_near(env->theta, expected[2], tolerance);
    assert_near(env->theta_dot, expected[3], tolerance);
}

static cartpole env_at(double x, double x_dot, double theta, double theta_dot)
{
    cartpole env;
    cartpole_init(&env, 1);
    env.x = x;
    env.x_dot = x_dot;
    env.theta = theta;
    env.theta_dot = theta_dot;
    return env;
}

/* --- Random numbers -------------------------------------------------------------------
 */

static void rng_gives_the_published_pcg32_sequence(void **state)
{
    (void)state;
    static const uint32_t expected[] = {0xa15c02b7, 0x7b47f409, 0xba1d3330,
                                        0x83d2f293, 0xbfa4784b, 0xcbed606e};
    rng r;
    rng_seed(&r, 42, 54);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(rng_next(&r), expected[i]);
    }
}

static void random_numbers_stay_in_range_and_have_the_right_mean(void **state)
{
    (void)state;
    enum { N = 20000 };
    double unit = 0.0;
    double normal = 0.0;
    double squares = 0.0;
    rng r;
    rng_seed(&r, 7, 0);
    for (int i = 0; i < N; i++) {
        assert_in_range(rng_below(&r, 3), 0, 2);
        const double u = rng_unit(&r);
        assert_true(u >= 0.0 && u < 1.0);
        const double z = rng_normal(&r);
        unit += u / N;
        normal += z / N;
        squares += z * z / N;
    }
    assert_near(unit, 0.5, 0.01);
    assert_near(normal, 0.0, 0.03);
    assert_near(squares, 1.0, 0.05);
}

/* --- Environment ----------------------------------------------------------------------
 */

/* The expected numbers come from solving the two equations of motion of cart and pole
 * with 50 decimal digits, not from the closed form that the environment uses. */
static void steps_follow_the_equations_of_motion(void **state)
{
    (void)state;
    static const int action[] = {1, 0, 1, 1};
    static const double expected[][4] = {
        {0.0096, 0.17467919574755523908, 0.0292, -0.3230687179600081550},
        {0.01309358391495110478, -0.0208461202333045415, 0.02273862564079983689,
         -0.0213221895392181829},
        {0.01267666151028501395, 0.17394248021606078807, 0.02231218185001547324,
         -0.3067449777344227903},
        {0.01615551111460622971, 0.36873950165756378584, 0.01617728229532701743,
         -0.5923085433601138857},
    };
    cartpole env = env_at(0.01, -0.02, 0.03, -0.04);
    for (size_t i = 0; i < 4; i++) {
        (void)cartpole_step(&env, action[i]);
        assert_state(&env, expected[i], 1e-15);
    }

    static const double fast[] = {-1.460, 1.80698450325469574594, -0.120,
                                  1.74233740021558455226};
    env = env_at(-1.5, 2.0, -0.15, 1.5);
    (void)cartpole_step(&env, 0);
    assert_state(&env, fast, 1e-14);
}

/* The accelerations have to satisfy both equations wherever the pole is. */
static void accelerations_balance_the_forces_on_cart_and_pole(void **state)
{
    (void)state;
    rng r;
    rng_seed(&r, 3, 0);
    for (int i = 0; i < 200; i++) {
        const double theta = rng_uniform(&r, -0.2, 0.2);
        const double spin = rng_uniform(&r, -3.0, 3.0);
        cartpole env =
            env_at(rng_uniform(&r, -2, 2), rng_uniform(&r, -3, 3), theta, spin);
        const cartpole before = env;
        (void)cartpole_step(&env, i % 2);

        const double x_acc = (env.x_dot - before.x_dot) / 0.02;
        const double theta_acc = (env.theta_dot - before.theta_dot) / 0.02;
        const double force = i % 2 == 1 ? 10.0 : -10.0;
        const double arm = 0.1 * 0.5;
        assert_near(1.1 * x_acc +
                        arm * (cos(theta) * theta_acc - sin(theta) * spin * spin),
                    force, 1e-10);
        assert_near(cos(theta) * x_acc + 4.0 / 3.0 * 0.5 * theta_acc, 9.8 * sin(theta),
                    1e-10);
        assert_near(env.x, before.x + 0.02 * before.x_dot, 1e-15);
        assert_near(env.theta, theta + 0.02 * spin, 1e-15);
    }
}

static void observation_is_the_state_in_order_and_single_precision(void **state)
{
    (void)state;
    const cartpole env = env_at(0.1, 0.2, 0.3, 0.4);
    const float expected[CARTPOLE_OBS] = {0.1F, 0.2F, 0.3F, 0.4F};
    float obs[CARTPOLE_OBS];
    cartpole_observe(&env, obs);
    assert_memory_equal(obs, expected, sizeof obs);
}

static void episode_terminates_beyond_the_limits_and_not_before(void **state)
{
    (void)state;
    static const double angle = 12.0 * 3.14159265358979323846 / 180.0;
    static const struct {
        double x;
        double theta;
        bool over;
    } cases[] = {
        {2.399, 0.0, false},         {2.401, 0.0, true},
        {-2.399, 0.0, false},        {-2.401, 0.0, true},
        {0.0, angle - 1e-6, false},  {0.0, angle + 1e-6, true},
        {0.0, -angle + 1e-6, false}, {0.0, -angle - 1e-6, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* With zero velocities the positions are the same after one step. */
        cartpole env = env_at(cases[i].x, 0.0, cases[i].theta, 0.0);
        const cartpole_outcome o = cartpole_step(&env, 1);
        assert_int_equal(o.terminated, cases[i].over);
        assert_false(o.truncated);
        assert_near((double)o.reward, 1.0, 0.0);
    }
}

static void five_hundredth_step_truncates_without_terminating(void **state)
{
    (void)state;
    cartpole env;
    cartpole_init(&env, 1);
    for (int i = 1; i <= CARTPOLE_MAX_STEPS; i++) {
        /* Held upright, so that only the cap can end the episode. */
        env.x = env.x_dot = env.theta = env.theta_dot = 0.0;
        const cartpole_outcome o = cartpole_step(&env, i % 2);
        assert_false(o.terminated);
        assert_int_equal(o.truncated, i == 500);
    }

    env = env_at(3.0, 0.0, 0.0, 0.0);
    env.steps = 499;
    const cartpole_outcome both = cartpole_step(&env, 0);
    assert_true(both.terminated && both.truncated);
}

static void reset_draws_from_the_small_range_and_restarts_the_count(void **state)
{
    (void)state;
    cartpole env;
    cartpole_init(&env, 5);
    double low = 1.0;
    double high = -1.0;
    for (int i = 0; i < 500; i++) {
        (void)cartpole_step(&env, 0);
        cartpole_reset(&env);
        assert_int_equal(env.steps, 0);
        const double values[] = {env.x, env.x_dot, env.theta, env.theta_dot};
        for (size_t k = 0; k < 4; k++) {
            low = fmin(low, values[k]);
            high = fmax(high, values[k]);
        }
    }
    assert_true(low >= -0.05 && low < -0.049);
    assert_true(high <= 0.05 && high > 0.049);
}

static void same_seed_gives_the_same_episode_and_another_seed_another(void **state)
{
    (void)state;
    cartpole a;
    cartpole b;
    cartpole other;
    cartpole_init(&a, 11);
    cartpole_init(&b, 11);
    cartpole_init(&other, 12);
    assert_state(&a, (const double[]){b.x, b.x_dot, b.theta, b.theta_dot}, 0.0);
    assert_true(a.x < other.x || a.x > other.x);
    (void)cartpole_step(&a, 1);
    cartpole_reset(&a);
    cartpole_reset(&b); /* what was played in between does not matter */
    assert_state(&a, (const double[]){b.x, b.x_dot, b.theta, b.theta_dot}, 0.0);
}

/* --- Network and optimizer ------------------------------------------------------------
 */

/* A loss with known gradient by the outputs: a weighted sum of them. */
static double weighted_sum(mlp *net, const float *input, const float *weight, size_t rows)
{
    const float *out = mlp_forward(net, input, rows);
    double sum = 0.0;
    for (size_t i = 0; i < rows * net->sizes[net->layers]; i++) {
        sum += (double)weight[i] * (double)out[i];
    }
    return sum;
}

static void check_gradients(mlp_activation activation)
{
    enum { ROWS = 5, IN = 3, OUT = 2, INPUTS = ROWS * IN, OUTPUTS = ROWS * OUT };
    static const size_t sizes[] = {IN, 6, 4, OUT};
    float input[INPUTS];
    float weight[OUTPUTS];
    mlp *net = mlp_create(sizes, 3, activation, ROWS);
    assert_non_null(net);

    rng r;
    rng_seed(&r, 9, 0);
    mlp_randomize(net, &r, 1.0F);
    for (size_t i = 0; i < net->count; i++) {
        net->params[i] += 0.1F * (float)rng_normal(&r); /* biases too */
    }
    for (size_t i = 0; i < INPUTS; i++) {
        input[i] = (float)rng_normal(&r);
    }
    for (size_t i = 0; i < OUTPUTS; i++) {
        weight[i] = (float)rng_normal(&r);
    }

    (void)mlp_forward(net, input, ROWS);
    mlp_backward(net, weight);
    for (size_t i = 0; i < net->count; i++) {
        const float kept = net->params[i];
        const float step = 2e-3F;
        net->params[i] = kept + step;
        const double above = weighted_sum(net, input, weight, ROWS);
        net->params[i] = kept - step;
        const double below = weighted_sum(net, input, weight, ROWS);
        net->params[i] = kept;
        assert_near((double)net->grads[i], (above - below) / (2.0 * (double)step), 2e-3);
    }
    mlp_destroy(net);
}

static void backward_pass_agrees_with_finite_differences(void **state)
{
    (void)state;
    check_gradients(MLP_TANH);
    check_gradients(MLP_RELU);
}

static void forward_pass_is_weight_times_input_plus_bias(void **state)
{
    (void)state;
    static const size_t sizes[] = {2, 2, 1};
    static const float params[] = {1, 2, 3, 4, 0.5F, -20, 2, 5, 0.25F};
    static const float input[] = {1, 1, -1, 2};
    mlp *net = mlp_create(sizes, 2, MLP_RELU, 2);
    assert_non_null(net);
    assert_int_equal(net->count, 9);
    memcpy(net->params, params, sizeof params);

    /* Hidden, row 1: (3.5, -13 -> 0); row 2: (3.5, -15 -> 0). */
    const float *out = mlp_forward(net, input, 2);
    assert_near((double)out[0], 7.25, 0.0);
    assert_near((double)out[1], 7.25, 0.0);
    mlp_destroy(net);
}

static void adam_moves_as_computed_by_hand(void **state)
{
    (void)state;
    adam *optimizer = adam_create(2);
    assert_non_null(optimizer);
    float params[] = {1.0F, 1.0F};
    const float first[] = {0.5F, -4.0F};
    const float second[] = {0.1F, 0.0F};

    /* First step: mean/share is the gradient and square/share its square, so the move is
     * the rate against its sign, whatever its size. */
    adam_step(optimizer, params, first, 0.1F);
    assert_near((double)params[0], 0.9, 1e-5);
    assert_near((double)params[1], 1.1, 1e-5);

    /* Second step of the first parameter: mean 0.9 * 0.05 + 0.1 * 0.1 = 0.055, over 0.19;
     * square 0.999 * 0.00025 + 0.001 * 0.01 = 0.00025975, over 0.001999. */
    adam_step(optimizer, params, second, 0.1F);
    const double move = 0.1 * (0.055 / 0.19) / sqrt(0.00025975 / 0.001999);
    assert_near((double)params[0], 0.9 - move, 2e-5);
    assert_int_equal(optimizer->steps, 2);
    adam_destroy(optimizer);
}

static void long_gradients_are_clipped_and_short_ones_left_alone(void **state)
{
    (void)state;
    float grads[] = {3.0F, 4.0F};
    assert_near((double)adam_clip(grads, 2, 10.0F), 5.0, 1e-6);
    assert_near((double)grads[0], 3.0, 0.0);
    assert_near((double)adam_clip(grads, 2, 1.0F), 5.0, 1e-6);
    assert_near((double)grads[0], 0.6, 1e-6);
    assert_near((double)grads[1], 0.8, 1e-6);
}

/* --- Chunks, advantages, loss ---------------------------------------------------------
 */

/* Five steps: an episode that falls at the third, one that is cut off at the fifth. */
static chunk *small_chunk(void)
{
    chunk *c = chunk_create(5, 1, 1);
    assert_non_null(c);
    for (size_t i = 0; i < 5; i++) {
        c->reward[i] = 1.0F;
        c->logp[i] = -0.7F;
    }
    c->terminated[2] = 1;
    c->truncated[4] = 1;
    return c;
}

static void advantages_stop_at_a_fall_and_bootstrap_at_a_cut(void **state)
{
    (void)state;
    static const float values[] = {1.0F, 2.0F, 3.0F, 4.0F, 5.0F};
    static const float final_values[] = {6.0F};
    /* gamma 0.5, lambda 0.5. Surprises: 1+1-1=1, 1+1.5-2=0.5, 1-3=-2, 1+2.5-4=-0.5,
     * 1+3-5=-1; each advantage adds a quarter of the next within its stretch. */
    static const double expected[] = {1.0, 0.0, -2.0, -0.75, -1.0};
    float advantages[5];
    chunk *c = small_chunk();
    chunk_advantages(c, values, final_values, 0.5F, 0.5F, advantages);
    for (size_t i = 0; i < 5; i++) {
        assert_near((double)advantages[i], expected[i], 1e-6);
    }
    chunk_destroy(c);
}

static void chunk_that_a_learner_could_not_use_is_recognised(void **state)
{
    (void)state;
    chunk *c = small_chunk();
    assert_true(chunk_is_valid(c));
    c->action[1] = 2;
    assert_false(chunk_is_valid(c));
    c->action[1] = 0;
    c->logp[0] = NAN;
    assert_false(chunk_is_valid(c));
    c->logp[0] = -0.7F;
    c->truncated[2] = 1; /* terminated as well */
    assert_false(chunk_is_valid(c));
    c->truncated[2] = 0;
    c->truncated[0] = 1; /* one more than there are final observations */
    assert_false(chunk_is_valid(c));
    c->truncated[0] = 0;
    c->truncated[4] = 0; /* open end */
    assert_false(chunk_is_valid(c));
    chunk_destroy(c);
}

static void policy_gradient_agrees_with_finite_differences(void **state)
{
    (void)state;
    enum { ROWS = 6, LOGITS = 2 * ROWS };
    static const int32_t action[ROWS] = {0, 1, 0, 1, 0, 1};
    static const float logp[ROWS] = {-0.7F, -0.7F, -1.5F, -0.2F, -0.9F, -3.0F};
    static const float advantage[ROWS] = {1.0F, -0.5F, 2.0F, -1.5F, -1.0F, -2.0F};
    float logits[LOGITS] = {0.1F, -0.2F, 0.3F,  0.2F, 0.5F, -0.9F,
                            0.9F, 0.1F,  -0.1F, 0.4F, 0.6F, 0.2F};
    float grad[LOGITS];
    float unused[LOGITS];
    ppo_sums sums = {0};
    ppo_policy_loss(ROWS, logits, action, logp, advantage, 0.2F, 0.3F, grad, &sums);
    assert_int_equal(sums.samples, ROWS);
    assert_true(sums.clipped > 0.0 && sums.clipped < ROWS);

    for (size_t i = 0; i < LOGITS; i++) {
        double loss[2];
        const float kept = logits[i];
        for (int side = 0; side < 2; side++) {
            ppo_sums s = {0};
            logits[i] = kept + (side == 0 ? -1e-3F : 1e-3F);
            ppo_policy_loss(ROWS, logits, action, logp, advantage, 0.2F, 0.3F, unused,
                            &s);
            loss[side] = (s.policy_loss - 0.3 * s.entropy) / ROWS;
        }
        logits[i] = kept;
        assert_near((double)grad[i], (loss[1] - loss[0]) / 2e-3, 1e-3);
    }
}

static void sampling_follows_the_probabilities_and_reports_them(void **state)
{
    (void)state;
    enum { N = 20000 };
    const float logits[] = {logf(0.3F) + 50.0F, logf(0.7F) + 50.0F};
    int ones = 0;
    rng r;
    rng_seed(&r, 21, 0);
    for (int i = 0; i < N; i++) {
        float logp;
        const int action = policy_sample(logits, &r, &logp);
        ones += action;
        assert_near(exp((double)logp), action == 1 ? 0.7 : 0.3, 1e-5);
    }
    assert_near((double)ones / N, 0.7, 0.015);
    assert_int_equal(policy_greedy(logits), 1);
}

/* --- Rollout and learner --------------------------------------------------------------
 */

enum { ENVS = 8, STEPS = 128 };

static ppo *learner(int64_t seed)
{
    ppo_options options;
    ppo_options_init(&options);
    ppo *p = ppo_create(&options, seed);
    assert_non_null(p);
    return p;
}

static void chunks_are_valid_and_cut_episodes_go_on_in_the_next(void **state)
{
    (void)state;
    ppo *p = learner(1);
    rollout *r = rollout_create(ENVS, STEPS, 2);
    assert_non_null(r);
    chunk *first = rollout_chunk(r);
    chunk *second = rollout_chunk(r);
    assert_non_null(first);
    assert_non_null(second);
    rollout_collect(r, p->policy, first);
    rollout_collect(r, p->policy, second);
    assert_true(chunk_is_valid(first));
    assert_true(chunk_is_valid(second));
    assert_int_equal(first->steps, ENVS * STEPS);
    assert_true(first->episodes > 0); /* a random policy falls within 128 steps */

    size_t cut = 0;
    for (size_t e = 0; e < ENVS; e++) {
        if (first->truncated[(e + 1) * STEPS - 1] == 1) {
            assert_memory_equal(first->final_obs + cut++ * CARTPOLE_OBS,
                                second->obs + e * STEPS * CARTPOLE_OBS,
                                CARTPOLE_OBS * sizeof(float));
        }
    }
    assert_int_equal(cut, first->cuts);
    chunk_destroy(first);
    chunk_destroy(second);
    rollout_destroy(r);
    ppo_destroy(p);
}

static void greedy_evaluation_depends_on_the_seed_alone(void **state)
{
    (void)state;
    ppo *p = learner(3);
    evaluation a;
    evaluation b;
    evaluation other;
    assert_true(rollout_evaluate(p->policy, 50, 7, &a));
    assert_true(rollout_evaluate(p->policy, 50, 7, &b));
    assert_true(rollout_evaluate(p->policy, 50, 8, &other));
    assert_near(a.mean, b.mean, 0.0);
    assert_near(a.min, b.min, 0.0);
    assert_near(a.max, b.max, 0.0);
    assert_true(a.min >= 1.0 && a.min <= a.mean && a.mean <= a.max && a.max <= 500.0);
    assert_true(a.mean < other.mean || a.mean > other.mean);
    ppo_destroy(p);
}

/* Two collectors whose policy is always one version behind. */
static void train(ppo *p, int updates, uint64_t seed)
{
    rollout *r[2];
    chunk *c[2];
    mlp *behind = policy_create(ENVS);
    assert_non_null(behind);
    for (uint64_t i = 0; i < 2; i++) {
        r[i] = rollout_create(ENVS, STEPS, rng_mix(seed, i));
        assert_non_null(r[i]);
        c[i] = rollout_chunk(r[i]);
        assert_non_null(c[i]);
    }
    memcpy(behind->params, p->policy->params, behind->count * sizeof(float));
    for (int i = 0; i < updates; i++) {
        ppo_report report;
        rollout_collect(r[0], behind, c[0]);
        rollout_collect(r[1], behind, c[1]);
        memcpy(behind->params, p->policy->params, behind->count * sizeof(float));
        assert_true(ppo_update(p, (const chunk *const[]){c[0], c[1]}, 2, &report));
        assert_true(isfinite(report.policy_loss) && isfinite(report.value_loss));
    }
    for (int i = 0; i < 2; i++) {
        chunk_destroy(c[i]);
        rollout_destroy(r[i]);
    }
    mlp_destroy(behind);
}

static void few_updates_with_stale_data_make_a_much_better_policy(void **state)
{
    (void)state;
    ppo *p = learner(4);
    evaluation before;
    evaluation after;
    assert_true(rollout_evaluate(p->policy, 20, 1, &before));
    train(p, 6, 5);
    assert_true(rollout_evaluate(p->policy, 20, 1, &after));
    assert_true(before.mean < 60.0);
    assert_true(after.mean > 100.0);
    assert_int_equal(p->updates, 6);
    assert_int_equal(p->env_steps, 6 * 2 * ENVS * STEPS);
    ppo_destroy(p);
}

static void learner_restored_from_its_arrays_goes_on_identically(void **state)
{
    (void)state;
    ppo *saved = learner(6);
    ppo *restored = learner(999);
    named_array from[PPO_STATE_ARRAYS];
    named_array to[PPO_STATE_ARRAYS];
    train(saved, 1, 7);
    ppo_state_arrays(saved, from);
    ppo_state_arrays(restored, to);
    for (size_t i = 0; i < PPO_STATE_ARRAYS; i++) {
        assert_string_equal(from[i].name, to[i].name);
        assert_int_equal(array_bytes(&from[i]), array_bytes(&to[i]));
        memcpy(to[i].data, from[i].data, array_bytes(&from[i]));
    }

    train(saved, 1, 8);
    train(restored, 1, 8);
    assert_int_equal(restored->updates, 2);
    for (size_t i = 0; i < PPO_STATE_ARRAYS; i++) {
        assert_memory_equal(from[i].data, to[i].data, array_bytes(&from[i]));
    }
    ppo_destroy(saved);
    ppo_destroy(restored);
}

static void policy_arrays_have_the_names_and_shapes_that_readers_expect(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t rank, rows, columns;
    } expected[POLICY_ARRAYS] = {
        {"layers.0.weight", 2, POLICY_HIDDEN, 4},
        {"layers.0.bias", 1, POLICY_HIDDEN, 0},
        {"layers.1.weight", 2, POLICY_HIDDEN, POLICY_HIDDEN},
        {"layers.1.bias", 1, POLICY_HIDDEN, 0},
        {"layers.2.weight", 2, 2, POLICY_HIDDEN},
        {"layers.2.bias", 1, 2, 0},
    };
    named_array arrays[POLICY_ARRAYS];
    ppo *p = learner(1);
    size_t elements = 0;
    ppo_policy_arrays(p, arrays);
    for (size_t i = 0; i < POLICY_ARRAYS; i++) {
        assert_string_equal(arrays[i].name, expected[i].name);
        assert_int_equal(arrays[i].type, ARRAY_F32);
        assert_int_equal(arrays[i].rank, expected[i].rank);
        assert_int_equal(arrays[i].shape[0], expected[i].rows);
        assert_int_equal(arrays[i].shape[1], expected[i].columns);
        assert_ptr_equal(arrays[i].data, p->policy->params + elements);
        elements += array_elements(&arrays[i]);
    }
    assert_int_equal(elements, p->policy->count);
    ppo_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng_gives_the_published_pcg32_sequence),
        cmocka_unit_test(random_numbers_stay_in_range_and_have_the_right_mean),
        cmocka_unit_test(steps_follow_the_equations_of_motion),
        cmocka_unit_test(accelerations_balance_the_forces_on_cart_and_pole),
        cmocka_unit_test(observation_is_the_state_in_order_and_single_precision),
        cmocka_unit_test(episode_terminates_beyond_the_limits_and_not_before),
        cmocka_unit_test(five_hundredth_step_truncates_without_terminating),
        cmocka_unit_test(reset_draws_from_the_small_range_and_restarts_the_count),
        cmocka_unit_test(same_seed_gives_the_same_episode_and_another_seed_another),
        cmocka_unit_test(backward_pass_agrees_with_finite_differences),
        cmocka_unit_test(forward_pass_is_weight_times_input_plus_bias),
        cmocka_unit_test(adam_moves_as_computed_by_hand),
        cmocka_unit_test(long_gradients_are_clipped_and_short_ones_left_alone),
        cmocka_unit_test(advantages_stop_at_a_fall_and_bootstrap_at_a_cut),
        cmocka_unit_test(chunk_that_a_learner_could_not_use_is_recognised),
        cmocka_unit_test(policy_gradient_agrees_with_finite_differences),
        cmocka_unit_test(sampling_follows_the_probabilities_and_reports_them),
        cmocka_unit_test(chunks_are_valid_and_cut_episodes_go_on_in_the_next),
        cmocka_unit_test(greedy_evaluation_depends_on_the_seed_alone),
        cmocka_unit_test(few_updates_with_stale_data_make_a_much_better_policy),
        cmocka_unit_test(learner_restored_from_its_arrays_goes_on_identically),
        cmocka_unit_test(policy_arrays_have_the_names_and_shapes_that_readers_expect),
    };
    mlp_use_one_thread();
    return cmocka_run_group_tests_name("cartpole", tests, NULL, NULL);
}
