/* What real_shard.c (libcurl) and real_client.c (peers and their requests) share. */
#ifndef COORDI_ENV_REAL_CLIENT_H
#define COORDI_ENV_REAL_CLIENT_H

#include "env/real_http.h"
#include "env/real_resolve.h"

#include <curl/curl.h>

typedef struct coordi_shard coordi_shard;
typedef struct coordi_slot coordi_slot;

struct coordi_http_peer {
    coordi_real_loop *loop;
    coordi_shard *shard;
    coordi_address address;
    struct curl_slist *headers;
    coordi_link waiting; /* requests: for the name */
    coordi_link flying;  /* requests: libcurl has them */
    coordi_link paths;   /* path questions */
    coordi_addresses known;
    size_t good;            /* index of the address that worked last */
    int64_t known_until_ms; /* INT64_MAX for a numeric address */
    coordi_question *asking;
    bool *gone; /* set while a function must know whether the peer was destroyed */
};

struct coordi_http_request {
    coordi_link link; /* in peer->waiting or peer->flying */
    coordi_http_peer *peer;
    coordi_slot *slot;  /* while flying */
    coordi_timer timer; /* the deadline, while waiting */
    const char *method;
    char *path;
    char *body;
    size_t body_len;
    int64_t deadline_ms;
    int64_t connect_ms; /* 0: no limit of its own */
    bool fresh;
    size_t max_reply_bytes;
    coordi_http_done_fn *done;
    void *arg;
    size_t tried; /* addresses that refused */

    /* written by libcurl's callbacks */
    coordi_buf reply;
    size_t header_bytes;
    bool begun; /* a connection is there: what comes now may reach the peer */
    bool marked;
    bool headed; /* the answer's head is whole; libcurl takes half a head for an answer */
    bool too_big;
    bool flooded;   /* headers without end */
    int open_errno; /* no socket could be had */
};

/* ---- real_line.c ---- */

/* Something that libcurl waits for has happened: CURL_CSELECT_ bits. */
typedef void coordi_line_fn(int fd, int what, void *arg);

/* A socket, or -1 and an errno. `arg` must live until it is closed. */
int coordi_line_open(coordi_real_loop *loop, const struct curl_sockaddr *address,
                     coordi_line_fn *happened, void *arg, int *ret_errno);
/* What to listen for from now on, as epoll events; 0: nothing. */
void coordi_line_want(coordi_real_loop *loop, int fd, uint32_t events);
void coordi_line_close(coordi_real_loop *loop, int fd);
void coordi_lines_end(coordi_real_loop *loop);

/* ---- real_seal.c ---- */

/* A multi handle whose own descriptors are not inherited by other programs. */
CURLM *coordi_multi_init(void);

/* ---- real_shard.c ---- */

/* A place for one more peer. NULL: out of memory. */
coordi_shard *coordi_shard_join(coordi_real_loop *loop);
void coordi_shard_leave(coordi_shard *shard);

/* Hands the request to libcurl, to be sent to one numeric address. */
coord_status coordi_shard_send(coordi_http_request *request, const char *numeric,
                               int64_t timeout_ms, int64_t connect_timeout_ms,
                               coord_error *err);

/* Takes it back, whatever it is doing. */
void coordi_shard_recall(coordi_http_request *request);

/* ---- real_client.c, called by real_shard.c ---- */

/* libcurl is done with the request, which is recalled. `words` is libcurl's story. */
void coordi_client_landed(coordi_http_request *request, CURLcode code, int http_status,
                          int os_errno, const char *words);

/* ---- names: real_client.c and real_path.c ---- */

bool coordi_client_is_known(const coordi_http_peer *peer);
/* Asks for the peer's name, unless that is under way. */
coord_status coordi_client_ask(coordi_http_peer *peer, coord_error *err);

/* The peer's name has been resolved, or not: answers all path questions. peer->gone must
 * be set. */
void coordi_client_tell_paths(coordi_http_peer *peer, const coord_error *error);
void coordi_client_drop_paths(coordi_http_peer *peer);

#endif
