/* Both ends of HTTP by hand, on plain sockets, so that tests can send and answer what no
 * well-behaved library would. */
#ifndef TEST_SUPPORT_RAW_HTTP_H
#define TEST_SUPPORT_RAW_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the server does with one request, after it has read all of it. */
typedef struct raw_step {
    const char *send; /* NULL: nothing */
    size_t len;       /* 0: strlen(send) */
    enum {
        RAW_KEEP,   /* wait for the next request on this connection */
        RAW_CLOSE,  /* close it */
        RAW_RESET,  /* close it with a reset */
        RAW_SILENT, /* keep it open, and never look at it again */
        RAW_DROP, /* answer, then close as soon as the connection is idle for a moment */
    } then;
} raw_step;

typedef struct raw_server raw_server;

/* Listens on 127.0.0.1 and answers the n-th request with the n-th step; after the last
 * one it answers 200 with "{}" and keeps the connection. Ends the test program when it
 * can't. */
raw_server *raw_server_start(const raw_step *steps, size_t count);
uint16_t raw_server_port(const raw_server *server);
void raw_server_stop(raw_server *server);

/* A port of 127.0.0.1 where nobody listens. */
uint16_t raw_free_port(void);

/* So far. */
size_t raw_server_requests(raw_server *server);
size_t raw_server_connections(raw_server *server);
/* Head and body of the n-th request, as they came; lives until stop. NULL: not yet. */
const char *raw_server_request(raw_server *server, size_t n);

/* A client: connects to 127.0.0.1 and sends; waits 20 s at most for anything. */
int raw_connect(uint16_t port);
void raw_send(int fd, const void *bytes, size_t len);
void raw_sends(int fd, const char *text);
/* Reads one whole answer (by Content-Length), closed by a NUL. False: the connection
 * ended or nothing came. */
bool raw_read_answer(int fd, char *out, size_t size, bool head_only);
/* True when the other end closes within the time. */
bool raw_sees_end(int fd);
void raw_reset(int fd); /* closes it with a reset */

#endif
