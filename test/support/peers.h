/* A scripted peer in a simulated world: speaks raw HTTP through the environment's own
 * functions, so that it can answer late, never, twice, out of order or with nonsense. It
 * plays a slave (a master connects to it), a master (it sends requests itself), or both.
 *
 * What nobody scripted is answered as a friendly peer would: yes. */
#ifndef TEST_SUPPORT_PEERS_H
#define TEST_SUPPORT_PEERS_H

#include "coord/testing.h"
#include "env/env.h"
#include "wire/wire.h"

enum { PEER_REQUESTS_MAX = 512, PEER_RULES_MAX = 32, PEER_REPLIES_MAX = 64 };

/* One request that came in. */
typedef struct peer_request {
    char method[8];
    char path[32];
    char token[COORDI_TOKEN_SIZE];
    char channel[16];
    char body[1024];
    bool marked;
    int64_t at_ms;
    coordi_http_call *call; /* held; NULL: answered */
} peer_request;

/* What happens to the next requests of one path. */
typedef struct peer_rule {
    const char *path;
    int times;  /* left; -1: always */
    int status; /* 0: hold the call for peer_answer() */
    const char *body;
} peer_rule;

/* One answer to a request of ours. */
typedef struct peer_reply {
    bool done;
    coord_status status; /* COORD_OK: an HTTP answer came */
    int http_status;
    int code; /* of the four-key body; -1: there is none */
    bool success;
    char body[1024];
    int64_t at_ms;
} peer_reply;

typedef struct peer {
    coord_sim *sim;
    coord_loop *loop;
    coordi_http_server *server;
    char host[32];
    uint16_t port;
    coordi_http_peer *out[PEER_REPLIES_MAX]; /* one a request that we sent */
    peer_reply replies[PEER_REPLIES_MAX];
    int reply_count;
    peer_request requests[PEER_REQUESTS_MAX];
    int request_count;
    peer_rule rules[PEER_RULES_MAX];
    int rule_count;
} peer;

#define PEER_YES "{\"success\":true,\"code\":0,\"message\":\"ok\",\"data\":null}\n"
#define PEER_BUSY                                                                        \
    "{\"success\":false,\"code\":601,\"message\":\"Already has a "                       \
    "task.\",\"data\":null}\n"
#define PEER_HTML "<!DOCTYPE HTML><title>500 Internal Server Error</title>"

/* Listens on `host`, a machine of this world. `foreign`: it is no libcoord. Asserts. */
void peer_open(peer *p, coord_sim *sim, const char *host, bool foreign);
/* Answers what it holds, and goes. */
void peer_close(peer *p);

/* The next `times` requests of that path (-1: all) are answered so; status 0: held. Rules
 * of one path apply one after the other. */
void peer_script(peer *p, const char *path, int times, int status, const char *body);
/* A failure with this code and these data, as text for peer_script(). Static buffer ring.
 */
const char *peer_no(int code, const char *data);

int peer_count(const peer *p, const char *path);
/* The n-th request of that path, from 0; the last one: -1. Fails if there is none. */
peer_request *peer_get(peer *p, const char *path, int n);
/* Runs until so many came; false when limit_ms pass first. */
bool peer_await(peer *p, const char *path, int count, int64_t limit_ms);
/* Answers a held request. */
void peer_answer(peer *p, peer_request *request, int status, const char *body);

/* Sends a request; the result is its index in replies. `token`, `channel` and `body` may
 * be NULL: absent. */
int peer_send(peer *p, const char *host, uint16_t port, const char *method,
              const char *path, const char *token, const char *channel, const char *body);
/* ... and runs until it is answered; at most a minute. */
const peer_reply *peer_ask(peer *p, const char *host, uint16_t port, const char *method,
                           const char *path, const char *token, const char *channel,
                           const char *body);
const peer_reply *peer_await_reply(peer *p, int index, int64_t limit_ms);

/* As a slave: reads master and token from the last /connect, and the id from the n-th
 * /task/new. */
void peer_task_id(peer *p, int n, char id[COORDI_UUID_SIZE]);
int peer_beat(peer *p);
int peer_report(peer *p, const char *task_id, bool complete, const char *result);

/* As a master: connects to a slave at host:port with this token, as
 * "http://<own>:<port>". */
const peer_reply *peer_connect(peer *p, const char *host, uint16_t port,
                               const char *token);
const peer_reply *peer_new_task(peer *p, const char *host, uint16_t port,
                                const char *token, const char *id, const char *data);

#endif
