/* What the coordinator calls. Each callback takes a note under the lock, and then sends
 * what follows from it. */
#include "host_state.h"
#include "screen.h"

enum { FAILURES_MAX = 20 };

bool host_is_evaluation(const char *task_id)
{
    return strncmp(task_id, "evaluate-", strlen("evaluate-")) == 0;
}

void host_evaluate_if_due(host *h, CommCoordinator *c)
{
    (void)pthread_mutex_lock(&h->lock);
    bool due = h->state == HOST_RUNNING && exam_begin(&h->exam, h->version);
    if (due) {
        h->exam_env_steps = h->env_steps;
    }
    (void)pthread_mutex_unlock(&h->lock);
    if (due) {
        host_post_exam(h, c);
    }
}

/* The learner has published its first policy: there is something to play with. */
static void on_start(CommCoordinator *c, const char *task_id, const char *worker_id,
                     void *user)
{
    (void)worker_id;
    if (strcmp(task_id, "learn") == 0) {
        host_post_collectors(user, c);
    }
}

/* Without its learner a run is over; what a collector did not do another one can. */
static void on_fail(CommCoordinator *c, const char *task_id, const coord_error *why,
                    void *user)
{
    host *h = user;
    const bool evaluation = host_is_evaluation(task_id);
    if (strcmp(task_id, "learn") == 0) {
        host_fail(h, "the learner's task has failed: %s%s%s", why->text,
                  why->cause[0] != '\0' ? ": " : "", why->cause);
        return;
    }
    (void)pthread_mutex_lock(&h->lock);
    h->collecting -= evaluation ? 0 : 1;
    if (++h->failures > FAILURES_MAX) {
        host_fail_locked(h, "%d tasks in a row have failed, the last: %s", h->failures,
                         why->text);
    }
    const bool running = h->state == HOST_RUNNING;
    (void)pthread_mutex_unlock(&h->lock);

    if (running) {
        screen_note("cartpole: %s has failed and is given to another collector: %s",
                    task_id, why->text);
    }
    if (evaluation) {
        host_post_exam(h, c);
    } else {
        host_post_collectors(h, c);
    }
}

void host_callbacks(host *h, comm_coordinator_callbacks *ret)
{
    comm_coordinator_callbacks_init(ret, sizeof *ret);
    host_collector_callbacks(ret);
    host_learner_callbacks(ret);
    ret->deal_with_task_start = on_start;
    ret->deal_with_task_fail = on_fail;
    ret->user = h;
}
