/* Table entries of real_client.c and real_server.c. */
#ifndef COORDI_ENV_REAL_HTTP_H
#define COORDI_ENV_REAL_HTTP_H

#include "env/env.h"

coord_status coordi_real_peer_create(coord_loop *loop, const coordi_address *address,
                                     const coordi_http_header *headers,
                                     size_t header_count, coordi_http_peer **ret,
                                     coord_error *err);
void coordi_real_peer_destroy(coordi_http_peer *peer);
coord_status coordi_real_peer_path(coordi_http_peer *peer, int64_t timeout_ms,
                                   coordi_http_path_fn *done, void *arg,
                                   coord_error *err);
coord_status coordi_real_http_send(coordi_http_peer *peer, const coordi_http_spec *spec,
                                   coordi_http_request **ret, coord_error *err);
void coordi_real_http_cancel(coordi_http_request *request);

coord_status coordi_real_server_create(coord_loop *loop,
                                       const coordi_http_server_spec *spec,
                                       coordi_http_server **ret, coord_error *err);
uint16_t coordi_real_server_port(const coordi_http_server *server);
void coordi_real_server_destroy(coordi_http_server *server);
const char *coordi_real_call_header(coordi_http_call *call, const char *name);
void coordi_real_http_answer(coordi_http_call *call, int http_status, char *body,
                             size_t len);

#endif
