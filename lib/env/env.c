#include "env/env.h"

#include "base/error.h"
#include "base/uuid.h"

#include <pthread.h>
#include <sys/mman.h>
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

/* The pid is asked for at every public call, and as a system call it would cost more than
 * most of them. It is kept in a page that the kernel clears in a forked child. */
static _Atomic int64_t *pid_page; /* NULL: no such page, and then it is asked for */
static pthread_once_t pid_once = PTHREAD_ONCE_INIT;

static void make_pid_page(void)
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return;
    }
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, size);
        return;
    }
    pid_page = page;
}

int64_t coordi_process_id(void)
{
    (void)pthread_once(&pid_once, make_pid_page);
    int64_t pid = pid_page == NULL ? 0 : atomic_load(pid_page);
    if (pid == 0) {
        pid = getpid();
        if (pid_page != NULL) {
            atomic_store(pid_page, pid);
        }
    }
    return pid;
}

coord_status coordi_check_fork(const coord_loop *loop, const char *what, coord_error *err)
{
    int64_t here = coordi_process_id();
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
