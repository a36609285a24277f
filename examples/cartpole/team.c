#include "team.h"
#include "paths.h"
#include "report.h"
#include "screen.h"
#include "settings.h"

#include "coord/json.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GRACE_MS = 500, CLOSE_MS = 1000, MEMBERS_MAX = COLLECTORS_MAX + 1 };

typedef struct member {
    team *team;
    coord_role role;
    char name[32];
    int port; /* 0: not known yet */
} member;

struct team {
    coord_launcher *launcher;
    team_events events;
    size_t count;
    member members[MEMBERS_MAX];
    pthread_mutex_t lock; /* guards all `port`, and: */
    size_t listening;
};

/* ---- what they say ---- */

static void on_listening(member *m, int port)
{
    team *t = m->team;
    (void)pthread_mutex_lock(&t->lock);
    t->listening += m->port == 0;
    m->port = port;
    bool all = t->listening == t->count;
    (void)pthread_mutex_unlock(&t->lock);
    if (all) {
        t->events.on_ready(t->events.user);
    }
}

static void on_line(coord_launcher *launcher, const coord_launcher_line *line, void *user)
{
    static const char LISTENING[] = "listening on 127.0.0.1:";
    const size_t len = sizeof LISTENING - 1;
    (void)launcher;
    if (line->stream == 1 && strncmp(line->text.ptr, LISTENING, len) == 0) {
        on_listening(user, (int)strtol(line->text.ptr + len, NULL, 10));
    } else {
        screen_note("%s", line->prefixed.ptr);
    }
}

static void on_exit_of(coord_launcher *launcher, const char *name,
                       const coord_launcher_exit *how, void *user)
{
    const member *m = user;
    char text[64];
    (void)launcher;
    if (how->stopped) {
        return;
    }
    if (how->signal_number != 0) {
        const char *signal_name = sigabbrev_np(how->signal_number);
        (void)snprintf(text, sizeof text, "killed by SIG%s",
                       signal_name == NULL ? "?" : signal_name);
    } else {
        (void)snprintf(text, sizeof text, "exit status %d", how->code);
    }
    m->team->events.on_end(m->role, name, text, m->team->events.user);
}

/* ---- starting ---- */

/* The path of a program that was built or installed beside this one. */
static coord_status path_of_program(char ret[PATH_SIZE], coord_role role,
                                    coord_error *err)
{
    char self[PATH_SIZE];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len < 0) {
        return report_errno(err, "read", "/proc/self/exe");
    }
    self[len] = '\0';
    return path_make(ret, err, "%s-%s", self, coord_role_str(role));
}

static coord_status start_member(team *t, coord_role role, size_t index, coord_error *err)
{
    /* Many processes, few cores: each keeps to one. */
    static const char *const ENVIRONMENT[] = {"OPENBLAS_NUM_THREADS=1", NULL};
    char path[PATH_SIZE];
    const char *argv[] = {path, NULL};
    member *m = &t->members[role == COORD_LEARNER ? 0 : index + 1];
    coord_launcher_spec spec;

    m->team = t;
    m->role = role;
    (void)snprintf(m->name, sizeof m->name, "%s%zu", coord_role_str(role), index);
    coord_launcher_spec_init(&spec, sizeof spec);
    spec.name = m->name;
    spec.argv = argv;
    spec.environment = ENVIRONMENT;
    spec.on_line = on_line;
    spec.on_exit = on_exit_of;
    spec.user = m;
    coord_status rc = path_of_program(path, role, err);
    return rc == COORD_OK ? coord_launcher_start(t->launcher, &spec, NULL, err) : rc;
}

coord_status team_start(size_t collectors, const team_events *events, team **ret,
                        coord_error *err)
{
    coord_launcher_options options;
    team *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return report(err, COORD_ERR_NOMEM, "team: out of memory");
    }
    (void)pthread_mutex_init(&t->lock, NULL); /* can't fail with this C library */
    t->events = *events;
    t->count = collectors + 1;
    coord_launcher_options_init(&options, sizeof options);
    options.close_grace_ms = GRACE_MS;
    coord_status rc = coord_launcher_create(&options, &t->launcher, err);
    if (rc == COORD_OK) {
        rc = start_member(t, COORD_LEARNER, 0, err);
    }
    for (size_t i = 0; i < collectors && rc == COORD_OK; i++) {
        rc = start_member(t, COORD_COLLECTOR, i, err);
    }
    if (rc != COORD_OK) {
        coord_error why;
        if (team_close(t, &why) == COORD_OK) { /* else a sink may need it still */
            team_destroy(t);
        }
        return rc;
    }
    *ret = t;
    return COORD_OK;
}

/* ---- the rest ---- */

coord_status team_config(team *t, char **ret, coord_error *err)
{
    json_t *collectors = json_object();
    json_t *learners = json_object();
    int failed = 0;

    (void)pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->count; i++) {
        const member *m = &t->members[i];
        failed |= json_object_set_new(
            m->role == COORD_COLLECTOR ? collectors : learners, m->name,
            json_pack("[s, s, i]", m->name, "127.0.0.1", m->port));
    }
    (void)pthread_mutex_unlock(&t->lock);
    /* Whoever dies is missed soon, and close does not keep the user waiting. */
    json_t *config = json_pack("{s:s, s:i, s:o, s:o, s:i, s:f, s:i, s:i, s:i}", "host",
                               "127.0.0.1", "port", 0, "collector", collectors, "learner",
                               learners, "request_retries", 2, "request_retry_wait_s",
                               0.2, "heartbeat_tolerance_s", 5, "max_retry_second", 20,
                               "close_timeout_s", 1);
    coord_status rc = failed != 0 || config == NULL
                          ? report(err, COORD_ERR_NOMEM, "team: out of memory")
                          : coord_json_text(config, ret, NULL, err);
    json_decref(config);
    return rc;
}

coord_status team_close(team *t, coord_error *err)
{
    return t->launcher == NULL ? COORD_OK
                               : coord_launcher_close(t->launcher, CLOSE_MS, err);
}

void team_destroy(team *t)
{
    if (t == NULL) {
        return;
    }
    coord_launcher_destroy(t->launcher);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}
