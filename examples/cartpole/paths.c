#include "paths.h"
#include "report.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

coord_status path_make(char ret[PATH_SIZE], coord_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(ret, PATH_SIZE, format, args);
    va_end(args);
    if (len < 0 || len >= PATH_SIZE) {
        return report(err, COORD_ERR_TOO_BIG, "the path '%.80s...' is too long", ret);
    }
    return COORD_OK;
}

coord_status path_of_policy(char ret[PATH_SIZE], const char *folder, int64_t version,
                            coord_error *err)
{
    return path_make(ret, err, "%s/policy-%" PRId64 ".safetensors", folder, version);
}

coord_status path_of_learner(char ret[PATH_SIZE], const char *folder, int64_t version,
                             coord_error *err)
{
    return path_make(ret, err, "%s/learner-%" PRId64 ".safetensors", folder, version);
}

coord_status path_of_chunk(char ret[PATH_SIZE], const char *folder, const char *name,
                           coord_error *err)
{
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL) {
        return report(err, COORD_ERR_FORMAT, "\"%.100s\" is not the name of a chunk",
                      name);
    }
    return path_make(ret, err, "%s/" CHUNKS_NAME "/%s", folder, name);
}

static bool write_all(int fd, coord_text content)
{
    while (content.len > 0) {
        ssize_t wrote = write(fd, content.ptr, content.len);
        if (wrote < 0) {
            return false;
        }
        content.ptr += wrote;
        content.len -= (size_t)wrote;
    }
    return fsync(fd) == 0;
}

coord_status path_replace(const char *path, coord_text content, coord_error *err)
{
    char beside[PATH_SIZE];
    coord_status rc = path_make(beside, err, "%s.tmp", path);
    if (rc != COORD_OK) {
        return rc;
    }
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return report_errno(err, "create", beside);
    }
    bool written = write_all(fd, content);
    if (!written) {
        rc = report_errno(err, "write", beside);
    }
    if (close(fd) != 0 && written) {
        rc = report_errno(err, "write", beside);
    }
    if (rc == COORD_OK && rename(beside, path) != 0) {
        rc = report_errno(err, "rename to", path);
    }
    if (rc != COORD_OK) {
        (void)unlink(beside);
    }
    return rc;
}
