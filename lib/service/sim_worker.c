#include "service/sim_worker.h"

#include "base/alloc.h"
#include "base/error.h"

/* Scripted workers: born, killed, brought back, looked at.
 *
 * Whatever has to happen later, or must not happen in code of the life itself, is the
 * keeper's: whoever wants it writes down what, and posts `tend`. */

/* ---- lives ---- */

bool coordi_sim_life_is_over(const coordi_sim_life *life)
{
    coord_sim *sim = life->worker->sim;
    coordi_sim_guest_lock(sim);
    bool over = life->dead;
    coordi_sim_guest_unlock(sim);
    return over;
}

/* The latest life that is not dead; NULL: the worker is down. Under the lock. */
static coordi_sim_life *alive(const coord_sim_worker *w)
{
    return w->lives == NULL || w->lives->dead ? NULL : w->lives;
}

/* Before its loop may run. */
static coord_status life_create(coord_sim_worker *w, coordi_sim_life **ret,
                                coord_error *err)
{
    coordi_sim_life *life = coordi_zalloc(sizeof *life);
    if (life == NULL) {
        (void)coordi_fail_nomem(err, "sim: worker");
        return COORD_ERR_NOMEM;
    }
    coord_status rc = coord_sim_loop(w->sim, w->options.host, &life->loop, err);
    if (rc != COORD_OK) {
        coordi_free(life);
        return rc;
    }
    coord_sim_set_foreign(w->sim, life->loop, w->options.foreign);
    life->worker = w;
    coordi_sim_guest_lock(w->sim);
    life->before = w->lives;
    w->lives = life;
    coordi_sim_guest_unlock(w->sim);
    *ret = life;
    return COORD_OK;
}

static void fill_slave_options(const coordi_sim_life *life, coord_slave_options *ret)
{
    const coord_sim_worker *w = life->worker;
    coord_slave_options_init(ret, sizeof *ret);
    ret->host = w->options.host;
    ret->port = w->options.port;
    ret->insecure = true; /* in a world of its own */
    ret->channel = w->options.channel;
    ret->heartbeat_ms = w->options.heartbeat_ms;
    ret->executor =
        coordi_sim_worker_takes_time(w) ? COORD_EXECUTOR_PER_TASK : COORD_EXECUTOR_INLINE;
    ret->loop = life->loop;
    ret->log = life->loop->log.sink;
    ret->log_level = life->loop->log.level;
    ret->user = life->loop->log.user;
}

/* Makes the slave, which listens then. On the life's loop, or by one who may wait. */
static coord_status life_listen(coordi_sim_life *life, coord_error *err)
{
    coord_slave_options options;
    coord_collector_callbacks collects;
    coord_learner_callbacks learns;
    coord_collector *collector = NULL;
    coord_learner *learner = NULL;
    coord_status rc;

    fill_slave_options(life, &options);
    if (life->worker->options.role == COORD_COLLECTOR) {
        coordi_sim_worker_collect(life, &collects);
        rc = coord_collector_create(&options, &collects, &collector, err);
    } else {
        coordi_sim_worker_learn(life, &learns);
        rc = coord_learner_create(&options, &learns, &learner, err);
    }
    coordi_sim_guest_lock(life->worker->sim);
    life->collector = collector;
    life->learner = learner;
    coordi_sim_guest_unlock(life->worker->sim);
    return rc;
}

/* Gives its objects back; not in code of the life itself. */
static void life_bury(coordi_sim_life *life)
{
    coord_sim *sim = life->worker->sim;
    coordi_sim_guest_lock(sim);
    bool is_mine = !life->buried;
    coord_collector *collector = life->collector;
    coord_learner *learner = life->learner;
    life->dead = true;
    life->buried = true;
    coordi_sim_guest_unlock(sim);
    if (is_mine) {
        coord_collector_destroy(collector);
        coord_learner_destroy(learner);
        coord_loop_destroy(life->loop);
    }
}

/* ---- the keeper ---- */

/* With the lock held; gives it up. */
static void ask_keeper_unlock(coord_sim_worker *w)
{
    bool post = !w->tending && !w->left;
    coord_loop *keeper = post ? coordi_loop_ref(w->keeper) : NULL;
    w->tending = w->tending || post;
    coordi_sim_guest_unlock(w->sim);
    if (post) {
        coordi_post(keeper, &w->tend);
        coordi_loop_unref(keeper);
    }
}

/* On the loop of a life that comes after a crash. */
static void rise(coordi_job *job)
{
    coordi_sim_life *life = COORDI_ITEM(job, coordi_sim_life, rise);
    coord_error err;
    if (coordi_sim_life_is_over(life) || life_listen(life, &err) == COORD_OK) {
        return;
    }
    coordi_sim_note(life->loop, "cannot come back", err.text);
    coordi_sim_guest_lock(life->worker->sim);
    life->dead = true;
    ask_keeper_unlock(life->worker);
}

/* A dead worker starts anew, a silent one goes on. On the keeper. */
static void come_back(coord_sim_worker *w)
{
    coord_error err;
    coordi_sim_guest_lock(w->sim);
    coordi_sim_life *life = alive(w);
    bool left = w->left;
    if (life != NULL) {
        life->silent = false;
    }
    coordi_sim_guest_unlock(w->sim);
    if (life != NULL && !left) {
        coord_sim_pause(w->sim, life->loop, false);
    } else if (!left && life_create(w, &life, &err) == COORD_OK) {
        life->rise.run = rise;
        coordi_post(life->loop, &life->rise);
    } else if (!left) {
        coordi_sim_note(w->keeper, "cannot come back", err.text);
    }
}

static void on_back(coordi_timer *timer)
{
    come_back(COORDI_ITEM(timer, coord_sim_worker, back));
}

static void bury_the_dead(coord_sim_worker *w)
{
    coordi_sim_guest_lock(w->sim);
    coordi_sim_life *life = w->lives;
    coordi_sim_guest_unlock(w->sim);
    for (; life != NULL; life = life->before) {
        if (coordi_sim_life_is_over(life)) {
            life_bury(life);
        }
    }
}

static void tend(coordi_job *job)
{
    coord_sim_worker *w = COORDI_ITEM(job, coord_sim_worker, tend);
    coordi_sim_guest_lock(w->sim);
    w->tending = false;
    bool revive = w->reviving;
    w->reviving = false;
    int64_t after_ms = w->back_after_ms;
    bool left = w->left;
    coordi_sim_guest_unlock(w->sim);

    bury_the_dead(w);
    if (left) {
        return;
    }
    if (revive || after_ms <= 0) {
        coordi_timer_stop(w->keeper, &w->back);
    } else {
        coordi_timer_in(w->keeper, &w->back, after_ms);
    }
    if (revive) {
        come_back(w);
    }
}

void coord_sim_worker_crash(coord_sim_worker *w, int64_t back_after_ms)
{
    coord_loop *loop = NULL;
    coordi_sim_guest_lock(w->sim);
    coordi_sim_life *life = alive(w);
    if (life != NULL) {
        life->dead = true;
        loop = coordi_loop_ref(life->loop);
        w->counts[COORD_SIM_COUNT_CRASHES]++;
    }
    w->back_after_ms = back_after_ms;
    coordi_sim_guest_unlock(w->sim);
    if (loop != NULL) {
        coord_sim_crash(w->sim, loop);
        coordi_loop_unref(loop);
    }
    coordi_sim_guest_lock(w->sim);
    ask_keeper_unlock(w);
}

void coord_sim_worker_silence(coord_sim_worker *w, int64_t back_after_ms)
{
    coordi_sim_guest_lock(w->sim);
    coordi_sim_life *life = alive(w);
    if (life == NULL) {
        coordi_sim_guest_unlock(w->sim);
        return;
    }
    life->silent = true;
    coord_loop *loop = coordi_loop_ref(life->loop);
    w->back_after_ms = back_after_ms;
    coordi_sim_guest_unlock(w->sim);
    coord_sim_pause(w->sim, loop, true);
    coordi_loop_unref(loop);
    coordi_sim_guest_lock(w->sim);
    ask_keeper_unlock(w);
}

void coord_sim_worker_revive(coord_sim_worker *w)
{
    coordi_sim_guest_lock(w->sim);
    const coordi_sim_life *life = alive(w);
    if (life == NULL || life->silent) {
        w->reviving = true;
        w->back_after_ms = 0;
    }
    ask_keeper_unlock(w);
}

/* ---- made and freed ---- */

/* The world is given back. */
static void leave(coordi_sim_guest *guest)
{
    coord_sim_worker *w = coordi_sim_worker_of(guest);
    coordi_sim_guest_lock(w->sim);
    w->left = true;
    coordi_sim_life *life = w->lives;
    coordi_sim_guest_unlock(w->sim);
    for (; life != NULL; life = life->before) {
        life_bury(life);
    }
    coord_loop_destroy(w->keeper);
}

static void release(coordi_sim_guest *guest)
{
    coord_sim_worker *w = coordi_sim_worker_of(guest);
    while (w->lives != NULL) {
        coordi_sim_life *life = w->lives;
        w->lives = life->before;
        coordi_free(life);
    }
    coordi_sim_worker_free_options(w);
    coordi_free(w->last_task);
    coordi_free(w);
}

coord_sim_worker *coordi_sim_worker_of(coordi_sim_guest *guest)
{
    return guest->release == release ? COORDI_ITEM(guest, coord_sim_worker, guest) : NULL;
}

/* The first life; from here on the worker is the world's. */
static coord_status begin(coord_sim_worker *w, coord_error *err)
{
    coordi_sim_life *life = NULL;
    coord_status rc = life_create(w, &life, err);
    if (rc == COORD_OK) {
        rc = life_listen(life, err);
    }
    if (rc == COORD_OK) {
        w->options.port = life->collector != NULL
                              ? coord_slave_port(coord_collector_slave(life->collector))
                              : coord_slave_port(coord_learner_slave(life->learner));
    }
    return rc;
}

coord_status coord_sim_worker_add(coord_sim *sim, const coord_sim_worker_options *options,
                                  coord_sim_worker **ret, coord_error *err)
{
    if (sim == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: worker needs a sim");
    }
    if (!coordi_sim_may_wait(sim)) {
        return coordi_fail(err, COORD_ERR_STATE,
                           "coord_sim_worker_add: called by code that the same world "
                           "runs");
    }
    coord_sim_worker *w = coordi_zalloc(sizeof *w);
    if (w == NULL) {
        return coordi_fail_nomem(err, "sim: worker");
    }
    w->guest.leave = leave;
    w->guest.release = release;
    w->sim = sim;
    w->tend.run = tend;
    w->back.fire = on_back;
    coord_status rc = coordi_sim_worker_adopt(w, options, err);
    if (rc == COORD_OK) {
        rc = coord_sim_loop(sim, w->options.host, &w->keeper, err);
    }
    if (rc != COORD_OK) {
        release(&w->guest);
        return rc;
    }
    rc = begin(w, err);
    if (rc != COORD_OK) { /* what it began may still run */
        w->left = true;
    }
    coordi_sim_guest_add(sim, &w->guest);
    if (rc == COORD_OK && ret != NULL) {
        *ret = w;
    }
    return rc;
}

/* ---- looking ---- */

/* The lock is all that a look changes. */
static coord_sim *lock_of(const coord_sim_worker *w)
{
    coordi_sim_guest_lock(w->sim);
    return w->sim;
}

uint64_t coord_sim_worker_count(const coord_sim_worker *w, coord_sim_worker_counter what)
{
    if ((int)what < 0 || (int)what >= COORDI_SIM_COUNTERS) {
        return 0;
    }
    coord_sim *sim = lock_of(w);
    uint64_t count = w->counts[what];
    coordi_sim_guest_unlock(sim);
    return count;
}

bool coord_sim_worker_is_up(const coord_sim_worker *w)
{
    coord_sim *sim = lock_of(w);
    bool is_up = alive(w) != NULL;
    coordi_sim_guest_unlock(sim);
    return is_up;
}

bool coord_sim_worker_is_connected(const coord_sim_worker *w)
{
    bool is_connected = false;
    coord_sim *sim = lock_of(w);
    const coordi_sim_life *life = alive(w);
    if (life != NULL && life->collector != NULL) {
        is_connected = coord_slave_is_connected(coord_collector_slave(life->collector));
    } else if (life != NULL && life->learner != NULL) {
        is_connected = coord_slave_is_connected(coord_learner_slave(life->learner));
    }
    coordi_sim_guest_unlock(sim);
    return is_connected;
}

coord_text coord_sim_worker_last_task(const coord_sim_worker *w)
{
    coord_sim *sim = lock_of(w);
    coord_text task = {w->last_task == NULL ? "" : w->last_task, w->last_task_len};
    coordi_sim_guest_unlock(sim);
    return task;
}

const char *coord_sim_worker_id(const coord_sim_worker *w)
{
    return w->options.id;
}

const char *coord_sim_worker_host(const coord_sim_worker *w)
{
    return w->options.host;
}

uint16_t coord_sim_worker_port(const coord_sim_worker *w)
{
    return w->options.port;
}
