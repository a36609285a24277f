/* For fake_operator*.c: what the server knows, apart from how it is reached. */
#ifndef TEST_SUPPORT_FAKE_OPERATOR_INSIDE_H
#define TEST_SUPPORT_FAKE_OPERATOR_INSIDE_H

#include "base/buf.h"
#include "support/fake_operator.h"

#include <pthread.h>

enum { FAKE_FAULTS = 4096, FAKE_ID = FAKE_ID_SIZE, FAKE_ALIVE = -1 };

typedef struct fake_pod {
    fake_list list;
    char id[FAKE_ID];
    int64_t born_ms;
    int64_t gone_ms; /* FAKE_ALIVE */
} fake_pod;

/* What a request is answered with. */
typedef struct fake_reply {
    int status;
    const char *type;
    const char *location; /* NULL: no such header */
    coordi_buf body;
    bool silent; /* none comes */
    bool broken; /* the connection ends instead */
    int64_t delay_ms;
} fake_reply;

struct fake_operator {
    pthread_mutex_t lock; /* guards all that follows but the fronts */
    int api;
    char name_space[FAKE_ID];
    char name[FAKE_ID];
    char job_id[FAKE_ID];
    fake_pod **pods; /* each in a block of its own: it never moves */
    size_t pod_count;
    size_t pod_room;
    unsigned made;        /* names so far */
    fake_namer_fn *namer; /* NULL: ids are made up */
    void *namer_arg;
    bool known;
    bool null_lists;
    bool dicts;
    bool preemptible;
    int64_t lag_ms;
    int64_t delay_ms;
    char *garbage;
    fake_fault faults[FAKE_KINDS][FAKE_FAULTS];
    size_t fault_at[FAKE_KINDS];
    size_t fault_end[FAKE_KINDS];
    size_t requests[FAKE_KINDS];
    char *bodies[FAKE_KINDS];
    size_t created;
    size_t deleted;

    struct fake_front *front; /* how it is reached */
};

/* A way to reach it. */
typedef struct fake_front {
    int64_t (*now_ms)(struct fake_front *front);
    void (*listen)(struct fake_front *front, bool listening);
    uint16_t (*port)(struct fake_front *front);
    void (*stop)(struct fake_front *front);
} fake_front;

fake_operator *fake_operator_new(const fake_operator_spec *spec);

/* Answers; `target` is the path with its query. The reply's body is to be freed. */
void fake_operator_answer(fake_operator *f, const char *method, const char *target,
                          coord_text body, fake_reply *ret);

void fake_must(bool good, const char *what);

/* Under the lock. */
void fake_pod_make(fake_operator *f, fake_list list, char id[FAKE_ID]);
void fake_pod_end(fake_operator *f, fake_pod *pod);

#endif
