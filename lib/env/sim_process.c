#include "env/sim.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"

#include <errno.h>
#include <signal.h>

/* Simulated processes: a registered program is a script. It says what it has to say, runs
 * for its time or until it is ended, and leaves an exit code.
 *
 * Each stage of a process is an event of its own, in which one party is told one thing:
 * SAYS_START the test, SAYS_1 and SAYS_2 the owner what it writes to stdout and stderr.
 * Then it waits for its time, or for somebody to end it. SHUTS_1 and SHUTS_2 end the
 * streams, and SAYS_EXIT is the last. */

typedef enum stage {
    SAYS_START,
    SAYS_1,
    SAYS_2,
    SHUTS_1,
    SHUTS_2,
    SAYS_EXIT,
    GONE
} stage;

/* Shared by the table of programs and the processes that run it. */
typedef struct script {
    size_t refs;
    coord_sim_program what; /* its strings stand behind it */
    char strings[];
} script;

struct coordi_process {
    coordi_link link; /* in sim->processes until it has exited */
    coordi_sim_loop *loop;
    coordi_sim_actor actor;
    script *program;
    stage stage; /* that comes next */
    int64_t pid;
    int64_t ends_ms;
    int exit_code;
    bool is_ending;
    void (*on_output)(coordi_process *process, int stream, const char *bytes, size_t len,
                      void *arg);
    void (*on_exit)(coordi_process *process, int code, void *arg);
    void *arg;
    char **argv; /* copies, for the test */
    char **envp;
};

/* ---- programs ---- */

static const coord_sim_program DEFAULTS = {
    .size = sizeof(coord_sim_program),
    .run_ms = -1,
};

void coord_sim_program_init(coord_sim_program *program, size_t size)
{
    coordi_options_init(program, size, &DEFAULTS, sizeof DEFAULTS);
}

static void unref_program(script *p)
{
    if (p != NULL && --p->refs == 0) {
        coordi_free(p);
    }
}

void coordi_sim_programs_done(coord_sim *sim)
{
    size_t at = 0;
    script *p;
    while ((p = coordi_map_next(&sim->programs, &at)) != NULL) {
        unref_program(p);
    }
    coordi_map_done(&sim->programs);
}

static const char *place_string(char **at, const char *string)
{
    const char *placed = *at;
    const char *from = string == NULL ? "" : string;
    size_t size = strlen(from) + 1;
    memcpy(*at, from, size);
    *at += size;
    return placed;
}

static size_t size_of(const char *string)
{
    return string == NULL ? 1 : strlen(string) + 1;
}

static script *copy_program(const coord_sim_program *from)
{
    script *p = coordi_alloc(sizeof *p + size_of(from->name) + size_of(from->output) +
                             size_of(from->error_output));
    if (p != NULL) {
        char *at = p->strings;
        p->refs = 1;
        p->what = *from;
        p->what.name = place_string(&at, from->name);
        p->what.output = place_string(&at, from->output);
        p->what.error_output = place_string(&at, from->error_output);
    }
    return p;
}

coord_status coord_sim_add_program(coord_sim *sim, const coord_sim_program *given,
                                   coord_error *err)
{
    coord_sim_program what = DEFAULTS;
    if (sim == NULL || given == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "sim: add_program needs a sim and a program");
    }
    coord_status rc =
        coordi_options_adopt(&what, sizeof what, given, "coord_sim_program", err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (what.name == NULL || what.name[0] == '\0') {
        return coordi_fail(err, COORD_ERR_ARG, "sim: a program needs a name");
    }
    script *p = copy_program(&what);
    if (p == NULL) {
        return coordi_fail_nomem(err, "sim: program");
    }
    (void)pthread_mutex_lock(&sim->lock);
    script *old = coordi_map_get(&sim->programs, what.name);
    if (coordi_map_put(&sim->programs, what.name, p)) {
        unref_program(old);
    } else {
        unref_program(p);
        rc = coordi_fail_nomem(err, "sim: program");
    }
    (void)pthread_mutex_unlock(&sim->lock);
    return rc;
}

/* ---- what a process does ---- */

static void free_strings(char **strings)
{
    for (size_t i = 0; strings != NULL && strings[i] != NULL; i++) {
        coordi_free(strings[i]);
    }
    coordi_free(strings);
}

/* NULL: out of memory. */
static char **copy_strings(const char *const *from)
{
    size_t count = 0;
    while (from != NULL && from[count] != NULL) {
        count++;
    }
    char **copy = coordi_zalloc((count + 1) * sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = coordi_strdup(from[i]);
        if (copy[i] == NULL) {
            free_strings(copy);
            return NULL;
        }
    }
    return copy;
}

static void give_output(coordi_process *process, int stream, const char *text, size_t len)
{
    coordi_sim_loop *loop = process->loop;
    if (process->on_output != NULL) {
        coordi_sim_enter(loop);
        process->on_output(process, stream, text, len, process->arg);
        (void)coordi_sim_leave(loop);
    }
}

static void tell_output(coordi_process *process, int stream, const char *text)
{
    size_t len = strlen(text);
    if (len > 0) { /* 0 would end the stream */
        coordi_sim_tell(process->loop->sim, process->loop,
                        "process writes %zu bytes to %d", len, stream);
        coordi_sim_mix(process->loop->sim, text, len);
        give_output(process, stream, text, len);
    }
}

static void tell_end(coordi_process *process, int stream)
{
    coordi_sim_tell(process->loop->sim, process->loop, "process closes %d", stream);
    give_output(process, stream, "", 0);
}

static void tell_exit(coordi_process *process)
{
    coordi_sim_loop *loop = process->loop;
    coordi_list_remove(&process->link);
    coordi_sim_tell(loop->sim, loop, "process exits with %d", process->exit_code);
    coordi_sim_mix(loop->sim, &process->exit_code, sizeof process->exit_code);
    if (process->on_exit != NULL) {
        coordi_sim_enter(loop);
        process->on_exit(process, process->exit_code, process->arg);
        (void)coordi_sim_leave(loop);
    }
}

/* The test may look at what it was started with. This is not code of the loop. */
static void tell_test(coordi_process *process)
{
    coord_sim *sim = process->loop->sim;
    const coord_sim_program *what = &process->program->what;
    coordi_sim_tell(sim, process->loop, "process %s starts", what->name);
    if (what->started != NULL) {
        (void)pthread_mutex_unlock(&sim->lock);
        what->started(process->pid, (const char *const *)process->argv,
                      (const char *const *)process->envp, what->user);
        (void)pthread_mutex_lock(&sim->lock);
    }
}

static void tell(coordi_process *process, stage what)
{
    const coord_sim_program *says = &process->program->what;
    switch (what) {
    case SAYS_START:
        tell_test(process);
        break;
    case SAYS_1:
    case SAYS_2:
        tell_output(process, what == SAYS_1 ? 1 : 2,
                    what == SAYS_1 ? says->output : says->error_output);
        break;
    case SHUTS_1:
    case SHUTS_2:
        tell_end(process, what == SHUTS_1 ? 1 : 2);
        break;
    case SAYS_EXIT:
        tell_exit(process);
        break;
    case GONE:
        break;
    }
}

/* Sets the next stage up before anybody is told: the owner may destroy the process. */
static void act(coord_sim *sim, coordi_sim_actor *actor)
{
    coordi_process *process = COORDI_ITEM(actor, coordi_process, actor);
    stage now = process->stage;
    process->stage = (stage)(now + 1);
    if (process->stage == SHUTS_1 && !process->is_ending) {
        coordi_sim_at(sim, actor, process->ends_ms);
    } else if (process->stage != GONE) {
        coordi_sim_ready(sim, actor);
    }
    tell(process, now);
}

/* ---- for the owner ---- */

static coord_status make(coordi_sim_loop *loop, const coordi_process_spec *spec,
                         coordi_process *process, coord_error *err)
{
    coord_sim *sim = loop->sim;
    script *p = coordi_map_get(&sim->programs, spec->argv[0]);
    if (p == NULL) {
        return coordi_fail_errno(err, ENOENT, "start '%s'", spec->argv[0]);
    }
    process->argv = copy_strings(spec->argv);
    process->envp = copy_strings(spec->envp);
    if (process->argv == NULL || process->envp == NULL ||
        !coordi_sim_add(sim, &process->actor, act, loop)) {
        return coordi_fail_nomem(err, "process");
    }
    p->refs++;
    process->program = p;
    process->loop = loop;
    process->pid = 1000 + ++sim->process_count;
    process->exit_code = p->what.exit_code;
    process->ends_ms = p->what.run_ms < 0 ? INT64_MAX : sim->now_ms + p->what.run_ms;
    process->on_output = spec->on_output;
    process->on_exit = spec->on_exit;
    process->arg = spec->arg;
    coordi_list_append(&sim->processes, &process->link);
    coordi_sim_ready(sim, &process->actor);
    return COORD_OK;
}

static void free_process(coordi_process *process)
{
    coordi_list_remove(&process->link);
    unref_program(process->program);
    free_strings(process->argv);
    free_strings(process->envp);
    coordi_free(process);
}

coord_status coordi_sim_process_start(coord_loop *base, const coordi_process_spec *spec,
                                      coordi_process **ret, coord_error *err)
{
    coordi_sim_loop *loop = coordi_sim_loop_of(base);
    coordi_process *process = coordi_zalloc(sizeof *process);
    if (process == NULL) {
        return coordi_fail_nomem(err, "process");
    }
    (void)pthread_mutex_lock(&loop->sim->lock);
    coord_status rc = make(loop, spec, process, err);
    if (rc != COORD_OK) {
        free_process(process);
    }
    (void)pthread_mutex_unlock(&loop->sim->lock);
    if (rc == COORD_OK) {
        *ret = process;
    }
    return rc;
}

int64_t coordi_sim_process_id(const coordi_process *process)
{
    return process->pid; /* never changes */
}

/* False when it has ended, or is about to. What it still has to say is said first. */
static bool end(coordi_process *process, int exit_code)
{
    if (process->is_ending || process->stage > SHUTS_1) {
        return false;
    }
    process->is_ending = true;
    process->exit_code = exit_code;
    if (process->stage == SHUTS_1 && !coordi_linked(&process->actor.held)) {
        coordi_sim_ready(process->loop->sim, &process->actor);
    }
    return true;
}

void coordi_sim_process_signal(coordi_process *process, int signal_number)
{
    coord_sim *sim = process->loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    if (signal_number == SIGKILL ||
        (signal_number > 0 && !process->program->what.ignores_signals)) {
        (void)end(process, -signal_number);
    }
    (void)pthread_mutex_unlock(&sim->lock);
}

/* A program here says all that it has to say at once. */
void coordi_sim_process_pause(coordi_process *process, bool paused)
{
    (void)process;
    (void)paused;
}

void coordi_sim_process_destroy(coordi_process *process)
{
    if (process == NULL) {
        return;
    }
    coord_sim *sim = process->loop->sim;
    (void)pthread_mutex_lock(&sim->lock);
    coordi_sim_drop(sim, &process->actor);
    free_process(process);
    (void)pthread_mutex_unlock(&sim->lock);
}

bool coord_sim_end_process(coord_sim *sim, int64_t pid, int exit_code)
{
    bool ended = false;
    if (sim == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&sim->lock);
    for (coordi_link *at = sim->processes.next; at != &sim->processes; at = at->next) {
        coordi_process *process = COORDI_ITEM(at, coordi_process, link);
        if (process->pid == pid) {
            ended = end(process, exit_code);
            break;
        }
    }
    (void)pthread_mutex_unlock(&sim->lock);
    return ended;
}
