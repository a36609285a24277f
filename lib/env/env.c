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

/* ---- the process ---- */

/* What lies in a page that the kernel clears in a forked child. The pid is asked for at
 * every public call, and as a system call it would cost more than most of them. A mutex
 * that is all zero is an unlocked one. */
typedef struct process {
    _Atomic int64_t pid;
    pthread_mutex_t lock;
} process;

static process *cleared; /* NULL: no such page, and then the pid is asked for */
static process plain = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t process_once = PTHREAD_ONCE_INIT;

static void make_process(void)
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
    cleared = page;
}

int64_t coordi_process_id(void)
{
    (void)pthread_once(&process_once, make_process);
    int64_t pid = cleared == NULL ? 0 : atomic_load(&cleared->pid);
    if (pid == 0) {
        pid = getpid();
        if (cleared != NULL) {
            atomic_store(&cleared->pid, pid);
        }
    }
    return pid;
}

static pthread_mutex_t *process_mutex(void)
{
    (void)pthread_once(&process_once, make_process);
    return cleared == NULL ? &plain.lock : &cleared->lock;
}

void coordi_process_lock(void)
{
    (void)pthread_mutex_lock(process_mutex());
}

void coordi_process_unlock(void)
{
    (void)pthread_mutex_unlock(process_mutex());
}

/* ---- forked children ---- */

coord_status coordi_check_process(int64_t pid, const char *what, coord_error *err)
{
    int64_t here = coordi_process_id();
    if (here == pid) {
        return COORD_OK;
    }
    return coordi_fail(
        err, COORD_ERR_FORKED,
        "%s: belongs to process %lld, called in its forked child %lld: only "
        "destroy works there",
        what, (long long)pid, (long long)here);
}

coord_status coordi_check_fork(const coord_loop *loop, const char *what, coord_error *err)
{
    return coordi_check_process(loop->pid, what, err);
}

static coordi_link *_Atomic left_behind; /* a stack through `next` */

void coordi_leave_behind(coordi_link *link)
{
    link->next = atomic_load(&left_behind);
    while (!atomic_compare_exchange_weak(&left_behind, &link->next, link)) {
    }
}

bool coordi_stays_behind(const coord_loop *loop, coordi_link *link)
{
    if (coordi_process_id() == loop->pid) {
        return false;
    }
    coordi_leave_behind(link);
    return true;
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
