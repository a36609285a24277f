/* What the two servers, master's and slave's, have in common: routes, tokens, answers. */
#ifndef COORDI_INTERACTION_ENDPOINT_H
#define COORDI_INTERACTION_ENDPOINT_H

#include "env/env.h"
#include "wire/wire.h"

/* One row an endpoint. */
typedef struct coordi_route {
    const char *method;
    const char *path;
    void (*handle)(coordi_http_call *call, void *owner);
} coordi_route;

/* Hands the call to its route, or answers that there is none. HEAD is answered as GET. */
void coordi_endpoint_dispatch(coord_loop *loop, const coordi_route *routes, size_t count,
                              coordi_http_call *call, void *owner);

/* Answers. `message` NULL: the recorded one; `data` empty: null. */
void coordi_endpoint_answer(coord_loop *loop, coordi_http_call *call, coordi_say say,
                            const char *message, coord_text data);

/* 64 random hex characters. */
void coordi_endpoint_new_token(coord_loop *loop, char out[COORDI_TOKEN_SIZE]);

/* Compares without telling by its time how much is right. */
bool coordi_endpoint_token_is(const char *given, const char *own);

/* Refuses what is no host, and to listen beyond loopback unless the host wants to be
 * insecure. */
coord_status coordi_endpoint_check_host(const char *host, bool insecure, const char *what,
                                        coord_error *err);

#endif
