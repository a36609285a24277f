#include "env/real_server.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Vocabulary
 *   daemon     libmicrohttpd's, in external mode: it has no thread and no listening
 *              socket, only an epoll set of its connections, which stands in our loop's
 *   accepting  is ours, so that running out of descriptors pauses it instead of spinning
 *   admission  a request whose body would pass the budget is suspended unread, first come
 *              first served; one is always admitted, however big
 *   charge     what an admitted call has of the budget, until it is answered or lost
 *
 * Bodies up to SMALL_BODY never wait: they cost less than their connection does, and
 * heartbeats must not queue up behind somebody's slow upload.
 *
 * The daemon calls us from within MHD_run() alone. A server that is destroyed in there is
 * taken down at the end of the turn; from then on nothing is handed over. Before the
 * daemon stops, every suspended connection must be resumed, or libmicrohttpd ends the
 * process. */

enum {
    CONNECTION_MEMORY = 8192,
    CONNECTION_LIMIT = 15000,
    CONNECTION_TIMEOUT_S = 60,
    ACCEPT_BATCH = 64,
    ACCEPT_PAUSE_MS = 100,
    SMALL_BODY = 4096,
    DEFAULT_BODY_MAX = 16 << 20,
};

/* ---- running the daemon ---- */

void coordi_server_run_soon(coordi_http_server *server)
{
    if (!coordi_linked(&server->run_job.link)) {
        coordi_real_defer(server->loop, &server->run_job);
    }
}

/* The timer may fire too early, since deadlines move on with each request; then it is set
 * again. So it is only ever moved forward. */
static void plan_next_run(coordi_http_server *server)
{
    MHD_UNSIGNED_LONG_LONG wait_ms;
    if (MHD_get_timeout(server->daemon, &wait_ms) != MHD_YES) {
        return;
    }
    if (wait_ms == 0) {
        coordi_server_run_soon(server);
        return;
    }
    const int64_t at_ms = coordi_real_now() + (int64_t)wait_ms;
    if (!coordi_timer_is_set(&server->daemon_timer) ||
        at_ms < server->daemon_timer.at_ms) {
        coordi_heap_set(&server->loop->timers, &server->daemon_timer, at_ms);
    }
}

static void take_down(coordi_http_server *server);

static void run(coordi_http_server *server)
{
    server->running = true;
    (void)MHD_run(server->daemon);
    server->running = false;
    if (!server->closing) {
        plan_next_run(server);
    }
}

static void run_job_run(coordi_job *job)
{
    coordi_http_server *server = COORDI_ITEM(job, coordi_http_server, run_job);
    if (server->closing) {
        take_down(server);
    } else {
        run(server);
    }
}

static void daemon_ready(coordi_watch *watch, uint32_t events)
{
    (void)events;
    run(COORDI_ITEM(watch, coordi_http_server, daemon_watch));
}

static void daemon_due(coordi_timer *timer)
{
    run(COORDI_ITEM(timer, coordi_http_server, daemon_timer));
}

/* ---- accepting ---- */

static bool is_full(const coordi_http_server *server)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info != NULL && info->num_connections >= server->max_connections;
}

/* Half of the descriptors at most: whoever connects a thousand times leaves us enough for
 * our own requests. */
static unsigned connections_allowed(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 >= CONNECTION_LIMIT) {
        return CONNECTION_LIMIT;
    }
    return limit.rlim_cur < 16 ? 8 : (unsigned)(limit.rlim_cur / 2);
}

static void pause_accepting(coordi_http_server *server, const char *why)
{
    COORDI_LOG(&server->loop->base.log, COORD_LOG_WARN,
               "accepting paused: port=%u pause_ms=%d why=\"%s\"", (unsigned)server->port,
               ACCEPT_PAUSE_MS, why);
    coordi_real_unwatch(server->loop, server->listen_fd, &server->listen_watch);
    coordi_heap_set(&server->loop->timers, &server->accept_timer,
                    coordi_real_now() + ACCEPT_PAUSE_MS);
}

static bool is_out_of_resources(int os_errno)
{
    return os_errno == EMFILE || os_errno == ENFILE || os_errno == ENOBUFS ||
           os_errno == ENOMEM;
}

static void listen_ready(coordi_watch *watch, uint32_t events)
{
    (void)events;
    coordi_http_server *server = COORDI_ITEM(watch, coordi_http_server, listen_watch);
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        if (is_full(server)) {
            pause_accepting(server, "too many connections");
            break;
        }
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        int fd = accept4(server->listen_fd, (struct sockaddr *)&from, &len,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            const int os_errno = errno;
            if (is_out_of_resources(os_errno)) {
                char words[128] = "";
                pause_accepting(server, strerror_r(os_errno, words, sizeof words));
            } else if (os_errno == ECONNABORTED || os_errno == EINTR) {
                continue; /* that one gave up; the next may be there */
            }
            break;
        }
        /* Takes the descriptor over, and closes it when it fails. */
        (void)MHD_add_connection(server->daemon, fd, (struct sockaddr *)&from, len);
    }
    plan_next_run(server);
}

static void accept_again(coordi_timer *timer)
{
    coordi_http_server *server = COORDI_ITEM(timer, coordi_http_server, accept_timer);
    if (coordi_real_watch(server->loop, server->listen_fd, EPOLLIN,
                          &server->listen_watch) != 0) {
        coordi_heap_set(&server->loop->timers, timer,
                        coordi_real_now() + ACCEPT_PAUSE_MS);
    }
}

/* ---- admission ---- */

static bool fits(const coordi_http_server *server, const coordi_call *call)
{
    return call->charge <= SMALL_BODY || server->inflight == 0 ||
           (server->inflight < server->max_inflight_bytes &&
            call->charge <= server->max_inflight_bytes - server->inflight);
}

static void admit(coordi_http_server *server, coordi_call *call)
{
    server->inflight += call->charge;
    coordi_list_remove(&call->link);
    coordi_list_append(&server->calls, &call->link);
    call->stage = COORDI_CALL_READING;
}

static void enter(coordi_http_server *server, coordi_call *call)
{
    const bool behind = call->charge > SMALL_BODY && !coordi_list_empty(&server->queued);
    if (!behind && fits(server, call)) {
        admit(server, call);
        return;
    }
    call->stage = COORDI_CALL_QUEUED;
    call->was_queued = true;
    coordi_list_append(&server->queued, &call->link);
    coordi_call_suspend(call);
}

void coordi_server_release(coordi_call *call)
{
    coordi_http_server *server = call->server;
    if (server == NULL) {
        return;
    }
    if (call->stage == COORDI_CALL_QUEUED) {
        coordi_list_remove(&call->link); /* never admitted, so never charged */
    } else {
        server->inflight -= call->charge;
    }
    call->charge = 0;
    while (!server->closing && !coordi_list_empty(&server->queued)) {
        coordi_call *next = COORDI_ITEM(server->queued.next, coordi_call, link);
        if (!fits(server, next)) {
            break;
        }
        admit(server, next);
        coordi_call_resume(next);
    }
}

/* The body is in, and may be smaller than was feared. */
static void settle_charge(coordi_http_server *server, coordi_call *call)
{
    const size_t held = call->body_cap;
    if (held < call->charge) {
        server->inflight -= call->charge - held;
        call->charge = held;
    }
}

/* ---- what the daemon calls ---- */

static enum MHD_Result begin(coordi_http_server *server,
                             struct MHD_Connection *connection, const char *url,
                             const char *method, void **context)
{
    coordi_call *call = coordi_call_create(server, connection, method, url);
    if (call == NULL) {
        return MHD_NO;
    }
    *context = call;
    enter(server, call);
    return MHD_YES;
}

/* First with the head, then with each piece of the body, then once more; and again after
 * each time that the connection was suspended and resumed. MHD_NO closes it. */
static enum MHD_Result on_access(void *arg, struct MHD_Connection *connection,
                                 const char *url, const char *method, const char *version,
                                 const char *bytes, size_t *len, void **context)
{
    (void)version;
    coordi_http_server *server = arg;
    coordi_call *call = *context;
    if (server->closing) {
        return MHD_NO;
    }
    if (call == NULL) {
        return begin(server, connection, url, method, context);
    }
    if (call->was_queued) {
        call->was_queued = false;
        return MHD_YES; /* admitted: once more with the head */
    }
    if (*len > 0) {
        const bool added = coordi_call_add(call, bytes, *len);
        *len = 0;
        return added ? MHD_YES : MHD_NO;
    }
    if (call->stage != COORDI_CALL_READING) {
        return MHD_NO; /* answered, but the answer could not be queued */
    }
    settle_charge(server, call);
    coordi_call_hand_over(call);
    return MHD_YES;
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    (void)arg;
    (void)connection;
    (void)code;
    coordi_call *call = *context;
    *context = NULL;
    if (call != NULL) {
        coordi_call_lost(call);
    }
}

/* ---- life ---- */

static coord_status start_daemon(coordi_http_server *server, coord_error *err)
{
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL,
        NULL, on_access, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_LIMIT, server->max_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_TIMEOUT_S, MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        server->daemon == NULL
            ? NULL
            : MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL || info->epoll_fd < 0) {
        return coordi_fail(err, COORD_ERR_IO,
                           "http server: libmicrohttpd would not start (descriptors or "
                           "memory are out)");
    }
    server->daemon_fd = info->epoll_fd;
    int os_errno = coordi_real_watch(server->loop, server->daemon_fd, EPOLLIN,
                                     &server->daemon_watch);
    if (os_errno == 0) {
        os_errno = coordi_real_watch(server->loop, server->listen_fd, EPOLLIN,
                                     &server->listen_watch);
    }
    return os_errno == 0 ? COORD_OK
                         : coordi_fail_errno(err, os_errno, "http server: epoll_ctl");
}

coord_status coordi_real_server_create(coord_loop *loop,
                                       const coordi_http_server_spec *spec,
                                       coordi_http_server **ret, coord_error *err)
{
    coordi_http_server *server = coordi_zalloc(sizeof *server);
    if (server == NULL) {
        return coordi_fail_nomem(err, "http server");
    }
    server->loop = coordi_real(loop);
    server->listen_fd = -1;
    server->daemon_fd = -1;
    server->listen_watch.ready = listen_ready;
    server->daemon_watch.ready = daemon_ready;
    server->accept_timer.fire = accept_again;
    server->daemon_timer.fire = daemon_due;
    server->run_job.run = run_job_run;
    server->max_connections = connections_allowed();
    server->max_body_bytes =
        spec->max_body_bytes == 0 ? DEFAULT_BODY_MAX : spec->max_body_bytes;
    server->max_inflight_bytes =
        spec->max_inflight_bytes == 0 ? SIZE_MAX : spec->max_inflight_bytes;
    server->on_call = spec->on_call;
    server->arg = spec->arg;
    coordi_list_init(&server->calls);
    coordi_list_init(&server->queued);
    coord_status rc =
        coordi_listen(spec->host, spec->port, &server->listen_fd, &server->port, err);
    if (rc == COORD_OK) {
        rc = start_daemon(server, err);
    }
    if (rc != COORD_OK) {
        coordi_real_server_destroy(server);
        return rc;
    }
    *ret = server;
    return COORD_OK;
}

uint16_t coordi_real_server_port(const coordi_http_server *server)
{
    return server->port;
}

/* Resumed connections meet `closing` and are closed; answers that are queued go out, as
 * far as the sockets take them at once. */
static void resume_all(coordi_link *calls)
{
    for (coordi_link *at = calls->next; at != calls; at = at->next) {
        coordi_call_resume(COORDI_ITEM(at, coordi_call, link));
    }
}

/* Open calls stay with their owners, without a server. */
static void disown_all(coordi_link *calls)
{
    for (coordi_link *link = coordi_list_pop(calls); link != NULL;
         link = coordi_list_pop(calls)) {
        COORDI_ITEM(link, coordi_call, link)->server = NULL;
    }
}

static void take_down(coordi_http_server *server)
{
    if (server->daemon != NULL) {
        resume_all(&server->queued);
        resume_all(&server->calls);
        run(server);
        MHD_stop_daemon(server->daemon);
    }
    coordi_list_remove(&server->run_job.link);
    disown_all(&server->calls);
    coordi_free(server);
}

void coordi_real_server_destroy(coordi_http_server *server)
{
    if (server == NULL || server->closing) {
        return;
    }
    server->closing = true;
    coordi_heap_cancel(&server->loop->timers, &server->accept_timer);
    coordi_heap_cancel(&server->loop->timers, &server->daemon_timer);
    if (server->listen_fd >= 0) {
        coordi_real_unwatch(server->loop, server->listen_fd, &server->listen_watch);
        (void)close(server->listen_fd);
        server->listen_fd = -1;
    }
    if (server->daemon_fd >= 0) {
        coordi_real_unwatch(server->loop, server->daemon_fd, &server->daemon_watch);
    }
    if (server->running) {
        coordi_server_run_soon(server); /* which takes it down */
    } else {
        take_down(server);
    }
}
