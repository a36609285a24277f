#include "env/sim_http.h"

#include <stdarg.h>
#include <stdio.h>

/* What a world can say of itself when a test fails: who waits for what, and what happened
 * last.
 *
 * A *fact* is one line about a loop, a thread or a request. Those that say that all is
 * well are for the whole report alone; the others also make the cause of a timeout. */

typedef struct teller {
    const coord_sim *sim;
    void (*tell)(const struct teller *t, const char *fact, bool all_is_well);
    coord_sim_trace_fn *sink;
    void *user;
    char *cause; /* of `cause_size` bytes */
    size_t cause_size;
} teller;

static void tell(const teller *t, bool all_is_well, const char *format, ...)
    COORD_PRINTF(3, 4);

static void tell(const teller *t, bool all_is_well, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    t->tell(t, line, all_is_well);
}

void coordi_sim_print_line(const coordi_sim_line *line, char text[COORDI_SIM_LINE_SIZE])
{
    (void)snprintf(text, COORDI_SIM_LINE_SIZE, "%lld %s#%u %s", (long long)line->at_ms,
                   line->host == NULL ? "world" : line->host->name, line->loop,
                   line->what);
}

/* ---- loops ---- */

static void tell_loop(const teller *t, const coordi_sim_loop *loop)
{
    const coordi_timer *next = coordi_heap_first(&loop->timers);
    const char *host = loop->host->name;
    if (loop->crashed) {
        tell(t, false, "%s#%u has crashed", host, loop->index);
    } else if (loop->paused) {
        tell(t, false, "%s#%u is paused", host, loop->index);
    } else if (!coordi_list_empty(&loop->jobs)) {
        tell(t, true, "%s#%u has something to do", host, loop->index);
    } else if (next != NULL) {
        tell(t, true, "%s#%u waits for its timer at %lld ms", host, loop->index,
             (long long)next->at_ms);
    } else {
        tell(t, true, "%s#%u waits for messages", host, loop->index);
    }
}

/* ---- threads ---- */

static void tell_thread(const teller *t, const coordi_thread *thread)
{
    const coordi_sim_loop *loop = thread->actor.loop;
    char place[COORDI_SIM_HOST_SIZE + 16];
    (void)snprintf(place, sizeof place, "%s#%u",
                   loop == NULL ? "world" : loop->host->name,
                   loop == NULL ? 0U : loop->index);
    if (thread->ended.is_set) {
        return;
    }
    if (thread == t->sim->holder) {
        tell(t, true, "%s thread %u runs", place, thread->index);
    } else if (thread->actor.ready_slot != 0 || coordi_linked(&thread->actor.held)) {
        tell(t, true, "%s thread %u can go on", place, thread->index);
    } else if (coordi_timer_is_set(&thread->actor.wake)) {
        tell(t, false, "%s thread %u %s until %lld ms", place, thread->index,
             thread->sleeps ? "sleeps" : "waits in a call",
             (long long)thread->actor.wake.at_ms);
    } else {
        tell(t, !thread->sleeps, "%s thread %u %s", place, thread->index,
             thread->sleeps ? "sleeps for ever" : "is idle");
    }
}

/* ---- requests ---- */

static const char *where_is(const coordi_sim_call *call, char *text, size_t size)
{
    const coordi_sim_loop *with = call->server == NULL ? NULL : call->server->loop;
    if (call->travels && call->is_back) {
        (void)snprintf(text, size, "the answer is on its way");
    } else if (call->with_owner && with != NULL) {
        (void)snprintf(text, size, "%s#%u has it", with->host->name, with->index);
    } else if (with != NULL) {
        (void)snprintf(text, size, "%s#%u has no room for it", with->host->name,
                       with->index);
    } else if (coordi_linked(&call->actor.held)) {
        (void)snprintf(text, size, "its server is paused");
    } else {
        (void)snprintf(text, size, "it is on its way");
    }
    return text;
}

static void tell_request(const teller *t, const coordi_sim_loop *loop,
                         const coordi_http_request *request)
{
    char place[COORDI_SIM_HOST_SIZE + 64];
    const char *what = "it was lost";
    if (request->cut_off) {
        return; /* of a process that has crashed: nobody waits */
    }
    if (request->unconnected) {
        what = "no connection can be made";
    } else if (!coordi_list_empty(&request->calls)) {
        what = where_is(COORDI_ITEM(request->calls.next, coordi_sim_call, sibling), place,
                        sizeof place);
    }
    tell(t, false, "%s#%u waits until %lld ms for %s %s: %s", loop->host->name,
         loop->index, (long long)request->deadline.wake.at_ms, request->method,
         request->url, what);
}

static void tell_requests(const teller *t, const coordi_sim_loop *loop)
{
    for (coordi_link *p = loop->peers.next; p != &loop->peers; p = p->next) {
        const coordi_http_peer *peer = COORDI_ITEM(p, coordi_http_peer, link);
        for (coordi_link *at = peer->requests.next; at != &peer->requests;
             at = at->next) {
            tell_request(t, loop, COORDI_ITEM(at, coordi_http_request, link));
        }
    }
}

/* ---- all of it ---- */

static void tell_all(const teller *t)
{
    const coord_sim *sim = t->sim;
    for (coordi_link *at = sim->loops.next; at != &sim->loops; at = at->next) {
        tell_loop(t, COORDI_ITEM(at, coordi_sim_loop, link));
    }
    for (coordi_link *at = sim->loops.next; at != &sim->loops; at = at->next) {
        tell_requests(t, COORDI_ITEM(at, coordi_sim_loop, link));
    }
    for (coordi_link *at = sim->threads.next; at != &sim->threads; at = at->next) {
        tell_thread(t, COORDI_ITEM(at, coordi_thread, link));
    }
}

static void add_to_cause(const teller *t, const char *fact, bool all_is_well)
{
    size_t used = strlen(t->cause);
    size_t needed = strlen(fact) + (used == 0 ? 0 : 2);
    if (!all_is_well && used + needed < t->cause_size) {
        (void)snprintf(t->cause + used, t->cause_size - used, "%s%s",
                       used == 0 ? "" : "; ", fact);
    }
}

void coordi_sim_explain(const coord_sim *sim, coord_error *err)
{
    if (err == NULL) {
        return;
    }
    teller t = {.sim = sim,
                .tell = add_to_cause,
                .cause = err->cause,
                .cause_size = sizeof err->cause};
    err->cause[0] = '\0';
    tell_all(&t);
    const coordi_timer *next = coordi_heap_first(&sim->heap);
    if (next == NULL && sim->ready_count == 0) {
        add_to_cause(&t, "nothing more will ever happen", false);
    } else if (err->cause[0] == '\0') {
        add_to_cause(&t, "everybody waits for timers or messages", false);
    }
}

static void hand_on(const teller *t, const char *fact, bool all_is_well)
{
    (void)all_is_well;
    t->sink(fact, t->user);
}

static void tell_recent(const teller *t)
{
    const coord_sim *sim = t->sim;
    uint64_t first = sim->told > COORDI_SIM_RECENT ? sim->told - COORDI_SIM_RECENT : 0;
    tell(t, true,
         "the last %llu of %llu events:", (unsigned long long)(sim->told - first),
         (unsigned long long)sim->told);
    for (uint64_t i = first; i < sim->told; i++) {
        char text[COORDI_SIM_LINE_SIZE];
        coordi_sim_print_line(&sim->recent[i % COORDI_SIM_RECENT], text);
        t->sink(text, t->user);
    }
}

void coord_sim_report(const coord_sim *sim, coord_sim_trace_fn *sink, void *user)
{
    coord_sim *s = (coord_sim *)sim; /* the lock is all that changes */
    if (sim == NULL || sink == NULL) {
        return;
    }
    teller t = {.sim = sim, .tell = hand_on, .sink = sink, .user = user};
    (void)pthread_mutex_lock(&s->lock);
    tell(&t, true, "seed %llu, %lld ms, %zu messages under way",
         (unsigned long long)sim->options.seed, (long long)sim->now_ms, sim->under_way);
    tell_all(&t);
    tell_recent(&t);
    (void)pthread_mutex_unlock(&s->lock);
}
