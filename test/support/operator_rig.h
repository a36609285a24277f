/* The operator server's client and a fake of its server, in a simulated world. */
#ifndef TEST_SUPPORT_OPERATOR_RIG_H
#define TEST_SUPPORT_OPERATOR_RIG_H

#include "coord/operator_server.h"
#include "coord/testing.h"
#include "support/fake_operator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_MS = 60000 };

typedef struct operator_rig {
    coord_sim *sim;
    coord_loop *far; /* the operator's */
    coord_loop *near;
    fake_operator *fake;
    coord_operator_server_options options;
    char address[64];
    coord_operator_server *server;
    coord_operator_answer *answer; /* of the last call */
    coord_error err;
} operator_rig;

/* A world with both, whose client is still to be created with r->options. `spec` may be
 * NULL. */
void operator_open_at(operator_rig *r, const fake_operator_spec *spec);
void operator_create(operator_rig *r);
void operator_open(operator_rig *r, int api); /* both */
void operator_close(operator_rig *r);

/* Calls, whose answer is r->answer until the next. */
coord_status operator_get(operator_rig *r, int64_t wait_ms);
coord_status operator_post(operator_rig *r, int collectors, int learners, int nodes);
coord_status operator_delete(operator_rig *r, int collectors, int learners, int nodes);
coord_status operator_report(operator_rig *r, const char *const *names, size_t count);
coord_operator_request operator_request_of(int collectors, int learners, int nodes);

size_t operator_requests(operator_rig *r, fake_kind kind);
/* Is it among the collectors? */
bool operator_lists(const coord_operator_answer *answer, const char *id);

#define expect(r, call, expected)                                                        \
    do {                                                                                 \
        const coord_status got_ = (call);                                                \
        if (got_ != (expected)) {                                                        \
            fail_msg("%s: %d: %s: %s", #call, (int)got_, (r)->err.text, (r)->err.cause); \
        }                                                                                \
    } while (0)

#define assert_says(text, words)                                                         \
    do {                                                                                 \
        if (strstr((text), (words)) == NULL) {                                           \
            fail_msg("\"%s\" is not in \"%s\"", (words), (text));                        \
        }                                                                                \
    } while (0)

#endif
