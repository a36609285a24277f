/* Names to numeric addresses, on threads of their own: getaddrinfo() can block for as
 * long as it likes, whatever deadline its caller has. */
#ifndef COORDI_ENV_REAL_RESOLVE_H
#define COORDI_ENV_REAL_RESOLVE_H

#include "env/real.h"

enum { COORDI_NUMERIC_SIZE = 64, COORDI_ADDRESSES = 8 };

typedef struct coordi_addresses {
    size_t count;
    char text[COORDI_ADDRESSES]
             [COORDI_NUMERIC_SIZE]; /* such as "10.0.0.7", "fe80::1%eth0" */
} coordi_addresses;

typedef struct coordi_question coordi_question;

/* Called once on the loop thread, never from within ask. Either found is not empty, or
 * error says why not. Both are borrowed. */
typedef void coordi_answer_fn(const coordi_addresses *found, const coord_error *error,
                              void *arg);

coord_status coordi_real_ask(coordi_real_loop *loop, const char *host,
                             coordi_answer_fn *answer, void *arg, coordi_question **ret,
                             coord_error *err);

/* Its answer function won't run. The thread may go on for a while, on its own. */
void coordi_real_forget(coordi_question *question);

/* True when `host` is an address already; then *ret holds just that. Never blocks. */
bool coordi_real_is_numeric(const char *host, coordi_addresses *ret);

#endif
