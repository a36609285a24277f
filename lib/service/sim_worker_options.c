#include "service/sim_worker.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "codec/json.h"

#include <stdio.h>
#include <string.h>

/* Scripted workers: what they are made of, and the configuration that names them. */

static const coord_sim_worker_options DEFAULTS = {
    .size = sizeof(coord_sim_worker_options),
    .role = COORD_COLLECTOR,
    .port = 22270,
    .samples = 3,
    .learn_steps = 3,
    .batch_size = 4,
    .resource = "{}",
    .heartbeat_ms = 3000,
};

void coord_sim_worker_options_init(coord_sim_worker_options *options, size_t size)
{
    coordi_options_init(options, size, &DEFAULTS, sizeof DEFAULTS);
}

/* ---- options ---- */

static coord_status check_faults(const coord_sim_worker_options *o, coord_error *err)
{
    if (o->fault_count > 0 && o->faults == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: worker: fault_count without faults");
    }
    for (size_t i = 0; i < o->fault_count; i++) {
        const coord_sim_fault *f = &o->faults[i];
        if ((int)f->what < 0 || f->what > COORD_SIM_FAULT_SILENCE || (int)f->at < 0 ||
            f->at > COORD_SIM_STEP_CLOSE || f->back_after_ms < 0) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "sim: worker: faults[%zu]: what (%d), at (%d) or "
                               "back_after_ms (%lld) is out of range",
                               i, (int)f->what, (int)f->at, (long long)f->back_after_ms);
        }
    }
    return COORD_OK;
}

static coord_status check_options(const coord_sim_worker_options *o, coord_error *err)
{
    const coord_text resource = coord_text_of(o->resource);
    if (o->role != COORD_COLLECTOR && o->role != COORD_LEARNER) {
        return coordi_fail(err, COORD_ERR_ARG, "sim: worker: %d is no role",
                           (int)o->role);
    }
    if (coordi_json_check(resource, NULL) != COORD_OK ||
        coordi_json_type_of(resource) != COORDI_JSON_OBJECT) {
        return coordi_json_fail(err, COORD_ERR_ARG, "sim: worker: resource",
                                "a JSON object", resource);
    }
    for (size_t i = 0; i < sizeof o->step_ms / sizeof o->step_ms[0]; i++) {
        if (o->step_ms[i] < 0 || (i >= COORDI_SIM_STEPS && o->step_ms[i] != 0)) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "sim: worker: step_ms[%zu] is %lld: no such step, or "
                               "negative",
                               i, (long long)o->step_ms[i]);
        }
    }
    return check_faults(o, err);
}

static coord_status copy_faults(coord_sim_worker *w, const coord_sim_worker_options *o,
                                coord_error *err)
{
    coord_sim_fault *copy = coordi_zalloc(o->fault_count * sizeof *copy);
    bool good = copy != NULL;
    w->options.faults = copy;
    for (size_t i = 0; good && i < o->fault_count; i++) {
        copy[i] = o->faults[i];
        copy[i].nth = copy[i].nth == 0 ? 1 : copy[i].nth;
        copy[i].times = copy[i].times == 0 ? 1 : copy[i].times;
        copy[i].words =
            coordi_strdup(copy[i].words == NULL ? "as scripted" : copy[i].words);
        w->options.fault_count++; /* has words to free, or NULL */
        good = copy[i].words != NULL;
    }
    return good ? COORD_OK : coordi_fail_nomem(err, "sim: worker");
}

/* How many workers of its role the world has; `same` becomes true when one has this id.
 */
static size_t count_peers(const coord_sim_worker *w, const char *id, bool *same)
{
    size_t count = 0;
    *same = false;
    for (coordi_sim_guest *at = coordi_sim_guest_next(w->sim, NULL); at != NULL;
         at = coordi_sim_guest_next(w->sim, at)) {
        const coord_sim_worker *other = coordi_sim_worker_of(at);
        if (other != NULL && !other->left && other->options.role == w->options.role) {
            count++;
            *same = *same || strcmp(other->options.id, id) == 0;
        }
    }
    return count;
}

/* Of its own, for the two that have no literal default. */
static coord_status copy_names(coord_sim_worker *w, const coord_sim_worker_options *o,
                               coord_error *err)
{
    char made[32];
    bool same = false;
    const char *id = o->id;
    if (id == NULL) {
        (void)snprintf(made, sizeof made, "%s%zu", coord_role_str(o->role),
                       count_peers(w, "", &same));
        id = made;
    }
    if (id[0] == '\0' || strlen(id) >= COORD_ID_SIZE) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: worker: id must have from 1 to %d bytes",
                           COORD_ID_SIZE - 1);
    }
    (void)count_peers(w, id, &same);
    if (same) {
        return coordi_fail(err, COORD_ERR_EXISTS, "sim: worker: there is a %s '%.100s'",
                           coord_role_str(o->role), id);
    }
    w->options.id = coordi_strdup(id);
    w->options.host = coordi_strdup(o->host == NULL ? id : o->host);
    w->options.resource = coordi_strdup(o->resource);
    if (w->options.id == NULL || w->options.host == NULL || w->options.resource == NULL) {
        return coordi_fail_nomem(err, "sim: worker");
    }
    return COORD_OK;
}

coord_status coordi_sim_worker_adopt(coord_sim_worker *w,
                                     const coord_sim_worker_options *options,
                                     coord_error *err)
{
    coord_sim_worker_options o = DEFAULTS;
    coord_status rc = COORD_OK;
    if (options != NULL) {
        rc = coordi_options_adopt(&o, sizeof o, options, "coord_sim_worker_options", err);
    }
    if (rc == COORD_OK) {
        rc = check_options(&o, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    w->options = o;
    w->options.id = NULL;
    w->options.host = NULL;
    w->options.resource = NULL;
    w->options.faults = NULL;
    w->options.fault_count = 0;
    rc = copy_names(w, &o, err);
    return rc == COORD_OK ? copy_faults(w, &o, err) : rc;
}

void coordi_sim_worker_free_options(coord_sim_worker *w)
{
    for (size_t i = 0; i < w->options.fault_count; i++) {
        coordi_free((char *)w->options.faults[i].words);
    }
    coordi_free((coord_sim_fault *)w->options.faults);
    coordi_free((char *)w->options.resource);
    coordi_free((char *)w->options.host);
    coordi_free((char *)w->options.id);
}

bool coordi_sim_worker_takes_time(const coord_sim_worker *w)
{
    for (size_t i = 0; i < COORDI_SIM_STEPS; i++) {
        if (w->options.step_ms[i] > 0) {
            return true;
        }
    }
    for (size_t i = 0; i < w->options.fault_count; i++) {
        if (w->options.faults[i].what == COORD_SIM_FAULT_HANG) {
            return true;
        }
    }
    return false;
}

/* ---- configuration ---- */

/* {"0": [id, host, port], ...} */
static void add_workers(coord_sim *sim, coord_role role, coordi_buf *buf)
{
    size_t count = 0;
    coordi_buf_adds(buf, "{");
    for (coordi_sim_guest *at = coordi_sim_guest_next(sim, NULL); at != NULL;
         at = coordi_sim_guest_next(sim, at)) {
        const coord_sim_worker *w = coordi_sim_worker_of(at);
        if (w == NULL || w->left || w->options.role != role) {
            continue;
        }
        coordi_buf_addf(buf, "%s\"%zu\": [", count == 0 ? "" : ", ", count);
        coordi_buf_add_json(buf, w->options.id, strlen(w->options.id));
        coordi_buf_adds(buf, ", ");
        coordi_buf_add_json(buf, w->options.host, strlen(w->options.host));
        coordi_buf_addf(buf, ", %u]", (unsigned)w->options.port);
        count++;
    }
    coordi_buf_adds(buf, "}");
}

coord_status coord_sim_worker_config(coord_sim *sim, const char *host, const char *more,
                                     char **ret, coord_error *err)
{
    if (sim == NULL || host == NULL || ret == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: worker config needs a sim, a host and ret");
    }
    enum { HOST, COLLECTORS, LEARNERS, TEXTS };
    coordi_buf texts[TEXTS] = {{0}};
    coordi_buf config = {0};
    coordi_buf_add_json(&texts[HOST], host, strlen(host));
    add_workers(sim, COORD_COLLECTOR, &texts[COLLECTORS]);
    add_workers(sim, COORD_LEARNER, &texts[LEARNERS]);
    const coordi_json_member members[] = {
        {"host", {texts[HOST].ptr, texts[HOST].len}, true},
        {"insecure", coord_text_of("true"), true},
        {"collector", {texts[COLLECTORS].ptr, texts[COLLECTORS].len}, true},
        {"learner", {texts[LEARNERS].ptr, texts[LEARNERS].len}, true},
    };
    coord_status rc = COORD_OK;
    if (texts[HOST].failed || texts[COLLECTORS].failed || texts[LEARNERS].failed) {
        rc = coordi_fail_nomem(err, "configuration");
    } else {
        coord_error why;
        rc = coordi_json_splice(&config, coord_text_of(more == NULL ? "{}" : more),
                                members, sizeof members / sizeof members[0], &why);
        if (rc != COORD_OK) { /* not an object is told apart there, not here */
            rc = rc == COORD_ERR_NOMEM ? rc : COORD_ERR_FORMAT;
            rc = coordi_fail_because(err, rc, &why,
                                     "sim: worker config: `more` is no JSON object");
        }
    }
    char *text = rc == COORD_OK ? coordi_buf_take(&config, NULL) : NULL;
    for (size_t i = 0; i < TEXTS; i++) {
        coordi_buf_done(&texts[i]);
    }
    coordi_buf_done(&config);
    if (rc == COORD_OK && text == NULL) {
        rc = coordi_fail_nomem(err, "configuration");
    }
    if (rc == COORD_OK) {
        *ret = text;
    }
    return rc;
}
