/* What real_server.c (connections, admission), real_call.c (one request and its answer)
 * and real_listen.c share. */
#ifndef COORDI_ENV_REAL_SERVER_H
#define COORDI_ENV_REAL_SERVER_H

#include "env/real.h"
#include "env/real_http.h"

#include <microhttpd.h>

typedef enum coordi_call_stage {
    COORDI_CALL_QUEUED,  /* not admitted: suspended, its body unread */
    COORDI_CALL_READING, /* the body comes in */
    COORDI_CALL_OPEN,    /* its owner has it */
    COORDI_CALL_ANSWERED
} coordi_call_stage;

typedef struct coordi_call {
    coordi_http_call base;
    coordi_http_server *server;        /* NULL: gone */
    struct MHD_Connection *connection; /* NULL: gone */
    coordi_link link;                  /* in server->calls or server->queued */
    coordi_call_stage stage;
    bool suspended;
    bool was_queued;   /* and the daemon has not come back with it since */
    bool handing_over; /* on_call is on the stack */

    char *body;
    size_t body_len;
    size_t body_cap;
    size_t body_max;  /* bytes to keep; what comes after is dropped */
    uint64_t to_come; /* of what was announced; 0 also when nothing was */
    size_t charge;    /* bytes of the server's budget */

    char *joined;        /* a header that came several times, as call_header() gave it */
    const char *headers; /* name, value, name, value, ..., each closed by a NUL */
    size_t header_count;
} coordi_call;

struct coordi_http_server {
    coordi_real_loop *loop;
    struct MHD_Daemon *daemon;
    int listen_fd; /* -1: closed */
    int daemon_fd; /* its epoll set; belongs to the daemon */
    uint16_t port;
    coordi_watch listen_watch;
    coordi_watch daemon_watch;
    coordi_timer accept_timer; /* accepting is paused until then */
    coordi_timer daemon_timer; /* the daemon has a connection that times out */
    coordi_job run_job;        /* deferred: the daemon has something to do */
    unsigned max_connections;
    size_t max_body_bytes;
    size_t max_inflight_bytes;
    size_t inflight; /* sum of the charges of admitted calls */
    coordi_http_call_fn *on_call;
    void *arg;
    coordi_link calls;  /* admitted */
    coordi_link queued; /* not admitted, first come first served */
    bool running;       /* the daemon is on the stack */
    bool closing;       /* destroyed: no call is handed over any more */
};

/* A socket that listens; IPv6 and IPv4 when `host` is "". */
coord_status coordi_listen(const char *host, uint16_t port, int *ret_fd,
                           uint16_t *ret_port, coord_error *err);

/* ---- real_server.c for real_call.c ---- */

/* Makes the daemon look at its connections at the end of this turn. */
void coordi_server_run_soon(coordi_http_server *server);

/* Gives a call's charge back, and admits those that it kept out. */
void coordi_server_release(coordi_call *call);

/* ---- real_call.c for real_server.c ---- */

/* NULL: out of memory. */
coordi_call *coordi_call_create(coordi_http_server *server,
                                struct MHD_Connection *connection, const char *method,
                                const char *path);

/* More of the body. False: out of memory, or it will never be whole, and the connection
 * must be closed. */
bool coordi_call_add(coordi_call *call, const char *bytes, size_t len);

/* The body is in: hands the call to its owner. */
void coordi_call_hand_over(coordi_call *call);

/* The connection is done with this request, answered or not. */
void coordi_call_lost(coordi_call *call);

void coordi_call_suspend(coordi_call *call);
void coordi_call_resume(coordi_call *call);

#endif
