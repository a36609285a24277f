/* Simulated HTTP, at the level of whole messages; for sim_client.c, sim_call.c and
 * sim_server.c.
 *
 * Vocabulary
 *   request  what a client asked; shared by its owner and by the calls that carry it
 *   call     one copy of a request in the world: on its way, at the server, or, carrying
 *            the outcome, on its way back. A duplicated request has two.
 *   outcome  what a call tells the client in the end
 *
 * Invariants
 *   All memory that a call needs is had before it leaves: nothing can fail on the way.
 *   A request is live until its done function begins or its owner drops it; a call that
 *   comes back to one that is not is dropped.
 *   A call is freed when it is neither in the world's hands nor in the server's owner's.
 */
#ifndef COORDI_ENV_SIM_HTTP_H
#define COORDI_ENV_SIM_HTTP_H

#include "env/sim.h"

typedef struct coordi_sim_call coordi_sim_call;

typedef struct coordi_sim_headers {
    size_t refs;
    size_t count;
    coordi_http_header items[]; /* names differ; strings follow in the same memory */
} coordi_sim_headers;

struct coordi_http_peer {
    coordi_link link; /* in loop->peers */
    coordi_sim_loop *loop;
    coordi_address address;
    coordi_sim_headers *headers;
    coordi_link requests; /* live ones */
    coordi_link paths;
    uint64_t kept; /* number of the server that a connection is open to; 0: none */
};

struct coordi_http_request {
    coordi_link link; /* in peer->requests while live */
    size_t refs;      /* one while live, and one for each call */
    coord_sim *sim;
    coordi_http_peer *peer; /* NULL: not live any more */
    coordi_sim_host *from;
    coordi_sim_target to;
    uint16_t port;
    coordi_link calls;
    coordi_sim_actor deadline;
    coordi_sim_headers *headers;
    const char *method;
    char *url;        /* for errors and the trace */
    const char *path; /* within url: prefix and path */
    char *body;
    size_t body_len;
    size_t max_reply_bytes;
    int64_t timeout_ms;
    int64_t connect_ms; /* 0: no limit of its own */
    bool fresh;
    bool marked;
    bool on_kept; /* goes over a kept connection */
    bool
        unconnected; /* no connection could be made: nothing will come but the deadline */
    bool cut_off;    /* its process died */
    coordi_http_done_fn *done;
    void *arg;
};

typedef struct coordi_sim_outcome {
    coord_status status;
    const char *why; /* literal; for the error text */
    int os_errno;
    bool undelivered;
    bool local; /* found out by the client's own machine: no cut keeps it away */
    bool marked;
    int http_status;
    char *body; /* owned by the call */
    size_t body_len;
    uint64_t server; /* number of the one that answered */
} coordi_sim_outcome;

struct coordi_sim_call {
    coordi_http_call face; /* what the server's owner sees; first */
    coordi_link link;      /* in sim->calls */
    coordi_link sibling;   /* in request->calls */
    coordi_link place;     /* in the server's open or waiting */
    coordi_sim_actor actor;
    coordi_http_request *request;
    coordi_http_server
        *server;       /* where it is; NULL: on its way, or the server has gone */
    size_t held_bytes; /* that count against the server's budget */
    bool with_owner;   /* shown to the server's owner, not answered yet */
    bool travels;
    bool is_back; /* travels, or has travelled, towards the client */
    coordi_sim_outcome outcome;
    char path[]; /* decoded */
};

struct coordi_http_server {
    coordi_link link;      /* in loop->servers */
    coordi_link port_link; /* in host->servers; in no list: its process died */
    coordi_sim_loop *loop;
    coordi_sim_host *host;
    uint64_t number;
    uint16_t port;
    bool on_loopback;
    bool on_address;
    size_t max_body_bytes;
    size_t max_inflight_bytes;
    size_t inflight_bytes;
    coordi_link open;    /* calls with the owner */
    coordi_link waiting; /* calls that would pass the budget */
    coordi_http_call_fn *on_call;
    void *arg;
};

/* ---- sim_client.c ---- */

coord_status coordi_sim_peer_create(coord_loop *loop, const coordi_address *address,
                                    const coordi_http_header *headers,
                                    size_t header_count, coordi_http_peer **ret,
                                    coord_error *err);
void coordi_sim_peer_destroy(coordi_http_peer *peer);
coord_status coordi_sim_peer_path(coordi_http_peer *peer, int64_t timeout_ms,
                                  coordi_http_path_fn *done, void *arg, coord_error *err);
coord_status coordi_sim_http_send(coordi_http_peer *peer, const coordi_http_spec *spec,
                                  coordi_http_request **ret, coord_error *err);
void coordi_sim_http_cancel(coordi_http_request *request);

/* Ends a live request and tells its owner. Gives the lock up meanwhile. */
void coordi_sim_request_done(coordi_http_request *request,
                             const coordi_sim_outcome *outcome);
void coordi_sim_request_unref(coordi_http_request *request);
/* The process crashes: nothing comes for its requests but a failure, when it is awake. */
void coordi_sim_requests_die(coordi_sim_loop *loop);

/* ---- sim_call.c ---- */

/* NULL: out of memory. */
coordi_sim_call *coordi_sim_call_create(coordi_http_request *request);
/* Takes it out of the world's hands. */
void coordi_sim_call_forget(coordi_sim_call *call);
void coordi_sim_call_send(coordi_sim_call *call);
/* Sets out for the client, with its outcome, to arrive at `at_ms`. */
void coordi_sim_call_return(coordi_sim_call *call, int64_t at_ms,
                            const coordi_sim_outcome *outcome);
/* The connection broke under a call that was on its way or at a server. */
void coordi_sim_call_reset(coordi_sim_call *call);
void coordi_sim_call_leave_server(coordi_sim_call *call);
void coordi_sim_calls_done(coord_sim *sim);

const char *coordi_sim_call_header(coordi_http_call *call, const char *name);
void coordi_sim_http_answer(coordi_http_call *call, int http_status, char *body,
                            size_t len);

/* ---- sim_server.c ---- */

coord_status coordi_sim_server_create(coord_loop *loop,
                                      const coordi_http_server_spec *spec,
                                      coordi_http_server **ret, coord_error *err);
uint16_t coordi_sim_server_port(const coordi_http_server *server);
void coordi_sim_server_destroy(coordi_http_server *server);

/* Who listens there, or NULL. */
coordi_http_server *coordi_sim_server_at(const coordi_sim_target *target, uint16_t port);
/* The process crashes: its ports close. */
void coordi_sim_servers_die(coordi_sim_loop *loop);
/* Room has come free: calls that waited try again. */
void coordi_sim_server_room(coordi_http_server *server);

#endif
