#include "env/real_claim.h"

#include "base/alloc.h"
#include "base/error.h"
#include "env/real.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Vocabulary
 *   registry  all claims of this process; after a fork the child makes its own, and keeps
 *             its parent's to look into
 *   identity  what tells files apart, whatever their paths
 *
 * Locks of fcntl() belong to the process: a second one of the same process is granted,
 * and closing any descriptor of the lock file gives it up. So the registry is asked
 * first, and a lock file of this process is never opened again.
 *
 * `lock` guards the list and is held while a claim is being taken or given back, but for
 * the waits. */

enum { LOOK_AGAIN_MS = 10 /* nothing tells that another process has let go */ };

static const char LOCK_SUFFIX[] = "-lock";

typedef struct identity {
    dev_t device;
    ino_t inode;
} identity;

struct coordi_claim {
    coordi_link link; /* in the registry */
    identity file;
    identity lock;
    int fd; /* of the lock file */
    char *path;
    char *lock_path;
};

typedef struct registry {
    int64_t pid;
    struct registry *parents; /* of the process that this one was forked from */
    pthread_mutex_t lock;
    pthread_cond_t freed;
    coordi_link claims;
} registry;

static _Atomic(registry *) registries;

/* ---- the registry ---- */

static void registry_free(registry *made)
{
    (void)pthread_cond_destroy(&made->freed);
    (void)pthread_mutex_destroy(&made->lock);
    coordi_free(made);
}

static registry *registry_make(registry *parents)
{
    registry *made = coordi_zalloc(sizeof *made);
    if (made == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&made->lock, NULL) != 0) {
        coordi_free(made);
        return NULL;
    }
    if (!coordi_real_cond_init(&made->freed)) {
        (void)pthread_mutex_destroy(&made->lock);
        coordi_free(made);
        return NULL;
    }
    made->pid = coordi_process_id();
    made->parents = parents;
    coordi_list_init(&made->claims);
    return made;
}

/* This process's; NULL: out of memory. Stays for good. */
static registry *registry_here(void)
{
    registry *found = atomic_load(&registries);
    while (found == NULL || found->pid != coordi_process_id()) {
        registry *made = registry_make(found);
        if (made == NULL) {
            return NULL;
        }
        if (atomic_compare_exchange_strong(&registries, &found, made)) {
            return made;
        }
        registry_free(made);
    }
    return found;
}

static bool is_same(const identity *a, const identity *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static bool has_file(const registry *where, const identity *file)
{
    for (const coordi_link *at = where->claims.next; at != &where->claims;
         at = at->next) {
        if (is_same(&COORDI_ITEM(at, coordi_claim, link)->file, file)) {
            return true;
        }
    }
    return false;
}

static bool has_lock(const registry *where, const identity *lock)
{
    for (const coordi_link *at = where->claims.next; at != &where->claims;
         at = at->next) {
        if (is_same(&COORDI_ITEM(at, coordi_claim, link)->lock, lock)) {
            return true;
        }
    }
    return false;
}

/* SQLite keeps what it knows about open files, locks included, across a fork. */
static bool is_inherited(const registry *here, const identity *file)
{
    for (const registry *at = here->parents; at != NULL; at = at->parents) {
        if (has_file(at, file)) {
            return true;
        }
    }
    return false;
}

/* ---- the file ---- */

static coord_status create_file(const char *what, const char *path, coord_error *err)
{
    /* Not with O_EXCL: a link may lead to where it is to be. */
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0) {
        return coordi_fail_errno(err, errno, "%s '%.140s': %s", what, path,
                                 errno == ENOENT ? "its folder is not there"
                                                 : "create the file");
    }
    (void)close(fd);
    return COORD_OK;
}

static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "folder";
    case S_IFIFO:
        return "pipe";
    case S_IFSOCK:
        return "socket";
    default:
        return "device";
    }
}

static coord_status find_file(const char *what, const char *path, struct stat *about,
                              coord_error *err)
{
    int os_errno = stat(path, about) == 0 ? 0 : errno;
    if (os_errno == ENOENT) {
        const coord_status rc = create_file(what, path, err);
        if (rc != COORD_OK) {
            return rc;
        }
        os_errno = stat(path, about) == 0 ? 0 : errno;
    }
    if (os_errno != 0) {
        return coordi_fail_errno(err, os_errno, "%s '%.140s': look for the file", what,
                                 path);
    }
    if (!S_ISREG(about->st_mode)) {
        const coord_status rc =
            coordi_fail(err, COORD_ERR_IO, "%s '%.140s' is a %s, expected a file", what,
                        path, kind_of(about->st_mode));
        if (err != NULL && S_ISDIR(about->st_mode)) {
            err->os_errno = EISDIR;
        }
        return rc;
    }
    return COORD_OK;
}

static coord_status name_file(coordi_claim *claim, const char *what, const char *path,
                              coord_error *err)
{
    char real[PATH_MAX];
    if (realpath(path, real) == NULL) {
        return coordi_fail_errno(err, errno, "%s '%.140s': find its real path", what,
                                 path);
    }
    const size_t size = strlen(real) + sizeof LOCK_SUFFIX;
    coordi_free(claim->path); /* of an earlier try */
    coordi_free(claim->lock_path);
    claim->path = coordi_strdup(real);
    claim->lock_path = coordi_alloc(size);
    if (claim->path == NULL || claim->lock_path == NULL) {
        return coordi_fail_nomem(err, what);
    }
    (void)snprintf(claim->lock_path, size, "%s%s", real, LOCK_SUFFIX);
    return COORD_OK;
}

/* ---- the lock ---- */

/* 0, or an errno: EAGAIN when another process has it. */
static int set_lock(int fd)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &all) == 0) {
        return 0;
    }
    return errno == EACCES ? EAGAIN : errno;
}

static coord_status tell_holder(const char *what, const char *path, int fd,
                                coord_error *err)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const bool known =
        fcntl(fd, F_GETLK, &all) == 0 && all.l_type != F_UNLCK && all.l_pid > 0;
    return known ? coordi_fail(err, COORD_ERR_BUSY, "%s '%.140s' is in use by process %d",
                               what, path, (int)all.l_pid)
                 : coordi_fail(err, COORD_ERR_BUSY,
                               "%s '%.140s' is in use by another process", what, path);
}

static bool identify(const char *path, identity *ret)
{
    struct stat about;
    if (stat(path, &about) != 0) {
        return false;
    }
    *ret = (identity){about.st_dev, about.st_ino};
    return true;
}

/* Whoever lets go of a lock removes its file first. So a lock counts only when its file
 * is still the one that is found there. */
static bool is_there(const coordi_claim *claim, int fd, identity *ret)
{
    struct stat about;
    identity named;
    if (fstat(fd, &about) != 0 || !identify(claim->lock_path, &named)) {
        return false;
    }
    *ret = (identity){about.st_dev, about.st_ino};
    return is_same(ret, &named);
}

static coord_status lock_file(coordi_claim *claim, const char *what, const char *path,
                              coord_error *err)
{
    for (;;) {
        int fd = open(claim->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            return coordi_fail_errno(err, errno, "%s '%.140s': open its lock file \"%s\"",
                                     what, path, claim->lock_path);
        }
        coord_status rc = COORD_OK;
        const int os_errno = set_lock(fd);
        if (os_errno == 0 && is_there(claim, fd, &claim->lock)) {
            claim->fd = fd;
            return COORD_OK;
        }
        if (os_errno == EAGAIN) {
            rc = tell_holder(what, path, fd, err);
        } else if (os_errno != 0) {
            rc = coordi_fail_errno(err, os_errno, "%s '%.140s': lock it", what, path);
        }
        (void)close(fd);
        if (rc != COORD_OK) {
            return rc;
        }
    }
}

/* ---- taking and giving back ---- */

static coord_status try_locked(const registry *here, coordi_claim *claim,
                               const char *what, const char *path, coord_error *err)
{
    struct stat about;
    coord_status rc = find_file(what, path, &about, err);
    if (rc == COORD_OK) {
        rc = name_file(claim, what, path, err);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    claim->file = (identity){about.st_dev, about.st_ino};
    if (is_inherited(here, &claim->file)) {
        return coordi_fail(err, COORD_ERR_FORKED,
                           "%s '%.140s' was open when this process was forked: expected "
                           "a program that is started anew",
                           what, path);
    }
    identity lock;
    if (has_file(here, &claim->file) ||
        (identify(claim->lock_path, &lock) && has_lock(here, &lock))) {
        return coordi_fail(err, COORD_ERR_BUSY, "%s '%.140s' is in use by this process",
                           what, path);
    }
    if (about.st_nlink > 1) { /* each name would have a WAL of its own */
        return coordi_fail(err, COORD_ERR_IO,
                           "%s '%.140s' is a file with %ju names (hard links), expected "
                           "one",
                           what, path, (uintmax_t)about.st_nlink);
    }
    return lock_file(claim, what, path, err);
}

static void claim_free(coordi_claim *claim)
{
    coordi_free(claim->path);
    coordi_free(claim->lock_path);
    coordi_free(claim);
}

coord_status coordi_claim_take(const char *what, const char *path, int64_t deadline_ms,
                               coordi_claim **ret, coord_error *err)
{
    registry *here = registry_here();
    coordi_claim *claim = here == NULL ? NULL : coordi_zalloc(sizeof *claim);
    if (claim == NULL) {
        return coordi_fail_nomem(err, what);
    }
    coord_status rc;
    (void)pthread_mutex_lock(&here->lock);
    for (;;) {
        rc = try_locked(here, claim, what, path, err);
        const int64_t now = coordi_real_now();
        if (rc != COORD_ERR_BUSY || now >= deadline_ms) {
            break;
        }
        const int64_t next = now + LOOK_AGAIN_MS;
        (void)coordi_real_cond_wait(&here->freed, &here->lock,
                                    next < deadline_ms ? next : deadline_ms);
    }
    if (rc == COORD_OK) {
        coordi_list_append(&here->claims, &claim->link);
    }
    (void)pthread_mutex_unlock(&here->lock);
    if (rc != COORD_OK) {
        claim_free(claim);
        return rc;
    }
    *ret = claim;
    return COORD_OK;
}

const char *coordi_claim_path(const coordi_claim *claim)
{
    return claim->path;
}

void coordi_claim_release(coordi_claim *claim)
{
    if (claim == NULL) {
        return;
    }
    registry *here = registry_here(); /* was made when it was taken */
    (void)pthread_mutex_lock(&here->lock);
    coordi_list_remove(&claim->link);
    (void)unlink(claim->lock_path);
    (void)close(claim->fd);
    (void)pthread_cond_broadcast(&here->freed);
    (void)pthread_mutex_unlock(&here->lock);
    claim_free(claim);
}

void coordi_claim_disown(coordi_claim *claim)
{
    if (claim != NULL) {
        (void)close(claim->fd);
        claim->fd = -1;
    }
}
