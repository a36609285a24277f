#include "env/env.h"

#include "base/error.h"
#include "base/uuid.h"

#include <unistd.h>

coord_loop *coordi_loop_ref(coord_loop *loop)
{
    (void)atomic_fetch_add_explicit(&loop->refs, 1, memory_order_relaxed);
    return loop;
}

void coordi_loop_unref(coord_loop *loop)
{
    /* Release, then acquire by the last one: whatever was done under any reference has
     * been done before the loop goes. */
    if (atomic_fetch_sub_explicit(&loop->refs, 1, memory_order_acq_rel) == 1) {
        loop->env->free(loop);
    }
}

void coordi_random_uuid(coord_loop *loop, char out[37])
{
    unsigned char bytes[16];
    loop->env->random(loop, bytes, sizeof bytes);
    coordi_uuid_mark_v4(bytes);
    coordi_uuid_print(bytes, out);
}

coord_status coordi_check_fork(const coord_loop *loop, const char *what, coord_error *err)
{
    int64_t here = getpid();
    if (here == loop->pid) {
        return COORD_OK;
    }
    return coordi_fail(
        err, COORD_ERR_FORKED,
        "%s: belongs to process %lld, called in its forked child %lld: only "
        "destroy works there",
        what, (long long)loop->pid, (long long)here);
}

/* ---- callbacks on the stack ---- */

static _Thread_local coordi_frame *frames; /* innermost first */

void coordi_frame_enter(coordi_frame *frame, const void *owner)
{
    frame->owner = owner;
    frame->outer = frames;
    frames = frame;
}

void coordi_frame_leave(coordi_frame *frame)
{
    frames = frame->outer;
}

bool coordi_frame_has(const void *owner)
{
    for (const coordi_frame *frame = frames; frame != NULL; frame = frame->outer) {
        if (frame->owner == owner) {
            return true;
        }
    }
    return false;
}

bool coordi_frame_any(void)
{
    return frames != NULL;
}
