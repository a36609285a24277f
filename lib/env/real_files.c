#include "env/real_files.h"

#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_STEP = 65536, SUFFIX_SIZE = 32, TRIES = 16 };

/* ---- reading ---- */

static coord_status read_all(int fd, const char *path, size_t max_bytes, coordi_buf *got,
                             coord_error *err)
{
    for (;;) {
        if (!coordi_buf_reserve(got, READ_STEP)) {
            return coordi_fail(err, COORD_ERR_NOMEM, "read '%.200s': out of memory",
                               path);
        }
        const ssize_t len = read(fd, got->ptr + got->len, READ_STEP);
        if (len < 0 && errno == EINTR) {
            continue;
        }
        if (len < 0) {
            return coordi_fail_errno(err, errno, "read '%.200s'", path);
        }
        if (len == 0) {
            return COORD_OK;
        }
        got->len += (size_t)len;
        if (got->len > max_bytes) { /* it grew since it was looked at */
            return coordi_fail(err, COORD_ERR_TOO_BIG, "'%.200s' is over %zu bytes", path,
                               max_bytes);
        }
    }
}

static coord_status read_open(int fd, const char *path, size_t max_bytes, coordi_buf *got,
                              coord_error *err)
{
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return coordi_fail_errno(err, errno, "read '%.200s'", path);
    }
    if (!S_ISREG(about.st_mode)) {
        return coordi_fail(err, COORD_ERR_IO, "read '%.200s': not a regular file", path);
    }
    if ((uintmax_t)about.st_size > max_bytes) {
        return coordi_fail(err, COORD_ERR_TOO_BIG, "'%.200s' has %jd bytes, over %zu",
                           path, (intmax_t)about.st_size, max_bytes);
    }
    return read_all(fd, path, max_bytes, got, err);
}

coord_status coordi_real_file_read(coord_loop *loop, const char *path, size_t max_bytes,
                                   coordi_buf *ret, coord_error *err)
{
    (void)loop;
    /* O_NONBLOCK: opening a pipe must not wait for somebody who writes to it. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        const int os_errno = errno;
        coord_status rc = coordi_fail_errno(err, os_errno, "open '%.200s'", path);
        if (os_errno == ENOENT) {
            rc = COORD_ERR_NOT_FOUND;
            if (err != NULL) {
                err->status = rc;
            }
        }
        return rc;
    }
    coordi_buf got = {0};
    coord_status rc = read_open(fd, path, max_bytes, &got, err);
    (void)close(fd);
    if (rc != COORD_OK) {
        coordi_buf_done(&got);
        return rc;
    }
    coordi_buf_done(ret);
    *ret = got;
    return COORD_OK;
}

/* ---- replacing ---- */

static int write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t wrote = write(fd, bytes, len);
        if (wrote < 0 && errno != EINTR) {
            return -1;
        }
        if (wrote > 0) {
            bytes += wrote;
            len -= (size_t)wrote;
        }
    }
    return 0;
}

/* A new file beside `path`; its name is left in `name`, which has room for a suffix. */
static int create_beside(const char *path, char *name, size_t size)
{
    for (int i = 0; i < TRIES; i++) {
        (void)snprintf(name, size, "%s.%08x.tmp", path, (unsigned)randombytes_random());
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0 || errno != EEXIST) {
            return fd;
        }
    }
    return -1;
}

/* The rename itself must survive a crash too. */
static int sync_folder(const char *path, char *scratch)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    if (slash == NULL) {
        scratch[0] = '.';
        scratch[1] = '\0';
    } else {
        len = len == 0 ? 1 : len; /* "/" */
        memcpy(scratch, path, len);
        scratch[len] = '\0';
    }
    int fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    int rc = fsync(fd);
    if (rc != 0 && errno == EINVAL) { /* a file system that has no such thing */
        rc = 0;
    }
    const int os_errno = errno;
    (void)close(fd);
    errno = os_errno;
    return rc;
}

static coord_status replace(const char *path, const void *bytes, size_t len,
                            char *scratch, size_t size, coord_error *err)
{
    struct stat old;
    const bool keep_mode = stat(path, &old) == 0 && S_ISREG(old.st_mode);
    int fd = create_beside(path, scratch, size);
    if (fd < 0) {
        return coordi_fail_errno(err, errno, "create a file beside '%.200s'", path);
    }
    bool written = write_all(fd, bytes, len) == 0 &&
                   (!keep_mode || fchmod(fd, old.st_mode & 07777) == 0) && fsync(fd) == 0;
    int os_errno = errno;
    if (close(fd) != 0 && written) {
        written = false;
        os_errno = errno;
    }
    if (written && rename(scratch, path) != 0) {
        written = false;
        os_errno = errno;
    }
    if (!written) {
        (void)unlink(scratch);
        return coordi_fail_errno(err, os_errno, "write '%.200s' (%zu bytes)", path, len);
    }
    if (sync_folder(path, scratch) != 0) {
        return coordi_fail_errno(err, errno, "sync the folder of '%.200s'", path);
    }
    return COORD_OK;
}

coord_status coordi_real_file_replace(coord_loop *loop, const char *path,
                                      const void *bytes, size_t len, coord_error *err)
{
    (void)loop;
    const size_t size = strlen(path) + SUFFIX_SIZE;
    char *scratch = coordi_alloc(size);
    if (scratch == NULL) {
        return coordi_fail(err, COORD_ERR_NOMEM, "write '%.200s': out of memory", path);
    }
    coord_status rc = replace(path, bytes, len, scratch, size, err);
    coordi_free(scratch);
    return rc;
}
