/* The reference's HTTP, by hand and on plain sockets: servers that behave as the
 * Werkzeugs in the field do, and requests as its Python client makes them. */
#ifndef TEST_SUPPORT_WERKZEUG_H
#define TEST_SUPPORT_WERKZEUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum werkzeug_kind {
    WERKZEUG_2_0, /* HTTP/1.0, one request a connection */
    WERKZEUG_2_1, /* HTTP/1.1, kept alive; nobody reads the body of a GET, which is taken
                   * for the start of the connection's next request */
    WERKZEUG_2_2  /* HTTP/1.1, Connection: close */
} werkzeug_kind;
enum { WERKZEUG_KINDS = 3 };

typedef struct werkzeug werkzeug;

/* A request as the application sees it. */
typedef struct werkzeug_request {
    const char *method;
    const char *path;
    const char *channel; /* "": absent */
    const char *token;   /* "": absent */
    const char *body;    /* closed by a NUL; "" for a GET, which nobody reads */
    size_t body_len;
} werkzeug_request;

/* What it answers. */
typedef struct werkzeug_answer {
    int status;
    const char *body; /* NULL: the connection is closed without a word */
    bool html;
    const char *more; /* further header lines, or NULL */
    bool half;        /* closes after half of the body */
    bool endless;     /* no Content-Length: the end of the connection is the body's */
} werkzeug_answer;

#define WERKZEUG_YES                                                                     \
    "{\"code\":0,\"data\":null,\"message\":\"Well done.\",\"success\":true}\n"
#define WERKZEUG_BUSY                                                                    \
    "{\"code\":601,\"data\":null,\"message\":\"Already has a "                           \
    "task.\",\"success\":false}\n"
#define WERKZEUG_PAGE                                                                    \
    "<!doctype html>\n<html lang=en>\n<title>500 Internal Server Error</title>\n"        \
    "<h1>Internal Server Error</h1>\n<p>The server encountered an internal error and "   \
    "was unable to complete your request.</p>\n"

/* Decides about one request, on the server's thread; `answer` holds a yes. */
typedef void werkzeug_fn(werkzeug *w, const werkzeug_request *request,
                         werkzeug_answer *answer, void *user);

/* Listens on 127.0.0.1; `serve` NULL: says yes to everything. Asserts, as all do. */
werkzeug *werkzeug_start(werkzeug_kind kind, werkzeug_fn *serve, void *user);
/* The same, but nobody listens on its port before werkzeug_listen(). */
werkzeug *werkzeug_start_deaf(werkzeug_kind kind, werkzeug_fn *serve, void *user);
void werkzeug_listen(werkzeug *w);
void werkzeug_deafen(werkzeug *w); /* connecting is refused from now on */
void werkzeug_stop(werkzeug *w);   /* takes NULL */
uint16_t werkzeug_port(const werkzeug *w);

/* Requests of that path that came so far; NULL: all. */
size_t werkzeug_count(werkzeug *w, const char *path);
/* Waits until so many have come. */
void werkzeug_await(werkzeug *w, const char *path, size_t count);
size_t werkzeug_connections(werkzeug *w);
/* Requests that began with what was left of another. */
size_t werkzeug_confused(werkzeug *w);

/* Head and body of the n-th request of that path (NULL: of all) as they came; waits for
 * them. Lives until stop. `len` may be NULL. */
const char *werkzeug_raw(werkzeug *w, const char *path, size_t n, size_t *len);

/* Asks as the Python client does: no Content-Type, the body in a segment of its own.
 * Gives the status; 0: no answer. `token` NULL: none. `out` may be NULL. */
int werkzeug_ask(uint16_t port, const char *method, const char *path, int channel,
                 const char *token, const char *body, size_t body_len, char *out,
                 size_t size);

#endif
