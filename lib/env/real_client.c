#include "env/real.h"
#include "env/real_http.h"
#include "env/real_process.h"
#include "env/real_files.h"
#include "base/error.h"
#include "base/alloc.h"
/* placeholder */
void coordi_real_client_end(coordi_real_loop *loop) { (void)loop; }
void coordi_real_process_end(coordi_real_loop *loop) { (void)loop; }
void coordi_real_resolver_end(coordi_real_loop *loop) { (void)loop; }
#define NO return coordi_fail(err, COORD_ERR_UNSUPPORTED, "not built yet")
coord_status coordi_real_peer_create(coord_loop *loop, const coordi_address *address,
                                     const coordi_http_header *headers, size_t header_count,
                                     coordi_http_peer **ret, coord_error *err)
{ (void)loop; (void)address; (void)headers; (void)header_count; (void)ret; NO; }
void coordi_real_peer_destroy(coordi_http_peer *peer) { (void)peer; }
coord_status coordi_real_peer_path(coordi_http_peer *peer, int64_t timeout_ms,
                                   coordi_http_path_fn *done, void *arg, coord_error *err)
{ (void)peer; (void)timeout_ms; (void)done; (void)arg; NO; }
coord_status coordi_real_http_send(coordi_http_peer *peer, const coordi_http_spec *spec,
                                   coordi_http_request **ret, coord_error *err)
{ (void)peer; (void)spec; (void)ret; NO; }
void coordi_real_http_cancel(coordi_http_request *request) { (void)request; }
coord_status coordi_real_server_create(coord_loop *loop, const coordi_http_server_spec *spec,
                                       coordi_http_server **ret, coord_error *err)
{ (void)loop; (void)spec; (void)ret; NO; }
uint16_t coordi_real_server_port(const coordi_http_server *server) { (void)server; return 0; }
void coordi_real_server_destroy(coordi_http_server *server) { (void)server; }
const char *coordi_real_call_header(coordi_http_call *call, const char *name) { (void)call; (void)name; return NULL; }
void coordi_real_http_answer(coordi_http_call *call, int http_status, char *body, size_t len) { (void)call; (void)http_status; (void)body; (void)len; }
coord_status coordi_real_process_start(coord_loop *loop, const coordi_process_spec *spec,
                                       coordi_process **ret, coord_error *err)
{ (void)loop; (void)spec; (void)ret; NO; }
int64_t coordi_real_process_id(const coordi_process *process) { (void)process; return 0; }
void coordi_real_process_signal(coordi_process *process, int signal_number) { (void)process; (void)signal_number; }
void coordi_real_process_destroy(coordi_process *process) { (void)process; }
coord_status coordi_real_file_read(coord_loop *loop, const char *path, size_t max_bytes,
                                   coordi_buf *ret, coord_error *err)
{ (void)loop; (void)path; (void)max_bytes; (void)ret; NO; }
coord_status coordi_real_file_replace(coord_loop *loop, const char *path, const void *bytes,
                                      size_t len, coord_error *err)
{ (void)loop; (void)path; (void)bytes; (void)len; NO; }
