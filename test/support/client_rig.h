/* A peer of the real http client, and the server by script that it talks to. */
#ifndef TEST_SUPPORT_CLIENT_RIG_H
#define TEST_SUPPORT_CLIENT_RIG_H

#include "support/env_rig.h"
#include "support/raw_http.h"

/* What came of the last request. */
typedef struct client_got {
    coord_status status;
    bool undelivered;
    bool marked;
    int http_status;
    char body[4096];
    coord_error error;
    int times;
} client_got;

typedef struct client_rig {
    env_rig env;
    raw_server *server; /* NULL: none of ours */
    coordi_http_peer *peer;
    coordi_address address;
    coordi_http_spec spec; /* for the next request */
    const char *body;      /* of the next request; copied */
    coord_status sent;
    coord_error send_error;
    client_got got;
    coordi_http_request *request;
    coordi_http_request *other; /* for the test */
} client_rig;

void client_rig_open(client_rig *r, const raw_step *steps, size_t count);
void client_rig_open_at(client_rig *r, const char *host, uint16_t port);
void client_rig_close(client_rig *r);

/* Sends, and waits for the outcome. */
client_got *client_request(client_rig *r);

/* For the loop thread; `arg` is the rig. */
void client_create_peer(void *arg);
void client_destroy_peer(void *arg);
void client_send(void *arg);
void client_done(const coordi_http_reply *reply, void *arg);

#endif
