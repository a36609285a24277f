/* Peers of bad manners, on plain sockets: a server whose every connection follows a step
 * of a script, and requests that stop in the middle. Good manners where nothing is
 * scripted: a yes as the reference says it, then the connection is closed. Asserts
 * nothing; ends the test program when the machine fails it. */
#ifndef TEST_SUPPORT_HOSTILE_H
#define TEST_SUPPORT_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOSTILE_ALL SIZE_MAX

/* What becomes of one connection. */
typedef struct hostile_step {
    size_t take; /* so many bytes of the request are read, or HOSTILE_ALL; if that is
                  * not all of it, nothing is answered */
    const char *answer; /* NULL: nothing */
    size_t give;        /* so many bytes of the answer, or HOSTILE_ALL */
    enum {
        HOSTILE_CLOSE,
        HOSTILE_RESET,
        HOSTILE_SILENT,  /* stays, and says no more, until the other end hangs up */
        HOSTILE_LATE,    /* answers when the other end has hung up */
        HOSTILE_DRIP,    /* answers in segments of one byte, then closes */
        HOSTILE_ENDLESS, /* sends header lines until the other end hangs up */
    } how;
} hostile_step;

#define HOSTILE_YES                                                                      \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 55\r\n"        \
    "Connection: close\r\n\r\n"                                                          \
    "{\"code\":0,\"data\":null,\"message\":\"Yes.\",\"success\":true}\n"

typedef struct hostile hostile;

hostile *hostile_start(void); /* listens on 127.0.0.1 */
void hostile_stop(hostile *h);
uint16_t hostile_port(const hostile *h);

/* The next connection that has no step yet follows this one; `answer` is borrowed. */
void hostile_add(hostile *h, hostile_step step);
/* Forgets the requests that came and the steps that are left. */
void hostile_forget(hostile *h);
/* The first request of that path since then, whole, closed by a NUL; waits for it, 10 s
 * at most, then "". */
void hostile_read(hostile *h, const char *path, char *out, size_t size);
size_t hostile_count(hostile *h); /* connections since then */

/* ---- requests by hand ---- */

/* Prints a request; `token` may be NULL. */
void hostile_print(char *out, size_t size, const char *method, const char *path,
                   const char *token, const char *body);
/* Sends so many bytes of a text, reads so many of the answer, and hangs up: with a reset
 * if it read any, or if `reset`. */
void hostile_stop_short(uint16_t port, const char *text, size_t send, size_t read,
                        bool reset);
/* Sends a text, and gives the answer's code; -1: it has none, or there is no answer.
 * `out` gets the whole answer; optional. */
int hostile_ask(uint16_t port, const char *text, char *out, size_t size);
/* The same with segments of one byte. */
int hostile_ask_slowly(uint16_t port, const char *text);
/* Sends a text and no more; false: the other end does not hang up for that. */
bool hostile_send_off(uint16_t port, const char *text);
/* Sends a text and stays; gives the socket, to be closed. */
int hostile_hold(uint16_t port, const char *text);
/* Sends header lines until the other end has enough; false: it has not after 64 MiB. */
bool hostile_tire(uint16_t port, const char *path);
/* Asks again and again, and hangs up at every byte of the request, or of the answer,
 * which has to be the same each time. */
void hostile_cut_request(uint16_t port, const char *text);
void hostile_cut_answer(uint16_t port, const char *text);

/* Sends what is no request; false: the other end did not hang up where it should. Some of
 * it stays open, as if more were to come: sockets to be closed. */
enum { HOSTILE_HELD = 5 };
bool hostile_pester(uint16_t port, const char *path, int open[HOSTILE_HELD]);

/* ---- kinds of answers ---- */

typedef struct hostile_kind {
    const char *name;
    hostile_step step;
    bool good;   /* it is a yes, after all */
    bool silent; /* as far as the other end can tell, nothing came */
} hostile_kind;

enum { HOSTILE_KINDS = 17 };
extern const hostile_kind hostile_kinds[HOSTILE_KINDS];

/* ---- what is left ---- */

typedef struct hostile_census {
    int fds;
    int threads;
} hostile_census;

int64_t hostile_now_ms(void);
hostile_census hostile_count_all(void);
/* Waits a little for what is about to go; prints what is left. */
bool hostile_nothing_left(const hostile_census *before);

#endif
