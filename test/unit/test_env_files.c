/* Reading and replacing files in the real world. */
#include "base/alloc.h"
#include "env/env.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int open_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/coord-files-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *about, int type,
                      struct FTW *at)
{
    (void)about;
    (void)type;
    (void)at;
    return remove(path);
}

static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *path_of(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static coord_status replace(const char *name, const char *text, coord_error *err)
{
    return coordi_env_real.file_replace(NULL, path_of(name), text, strlen(text), err);
}

static void assert_holds(const char *name, const char *text)
{
    coordi_buf got = {0};
    coord_error err;
    assert_int_equal(coordi_env_real.file_read(NULL, path_of(name), 1000, &got, &err),
                     COORD_OK);
    assert_int_equal(got.len, strlen(text));
    assert_int_equal(memcmp(got.ptr == NULL ? "" : got.ptr, text, got.len), 0);
    coordi_buf_done(&got);
}

static size_t files_in_folder(void)
{
    size_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *at = readdir(dir); at != NULL; at = readdir(dir)) {
        count += at->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count;
}

static void a_file_is_written_and_read_back(void **state)
{
    (void)state;
    assert_int_equal(replace("a", "one", NULL), COORD_OK);
    assert_holds("a", "one");
    assert_int_equal(replace("a", "", NULL), COORD_OK);
    assert_holds("a", "");
    assert_int_equal(replace("a", "two", NULL), COORD_OK);
    assert_holds("a", "two");
    assert_int_equal(files_in_folder(), 1); /* nothing is left beside it */
}

static void a_large_file_comes_whole(void **state)
{
    (void)state;
    enum { LEN = 1000000 };
    char *bytes = malloc(LEN);
    for (int i = 0; i < LEN; i++) {
        bytes[i] = (char)(i * 7);
    }
    coordi_buf got = {0};
    assert_int_equal(coordi_env_real.file_replace(NULL, path_of("big"), bytes, LEN, NULL),
                     COORD_OK);
    assert_int_equal(coordi_env_real.file_read(NULL, path_of("big"), LEN, &got, NULL),
                     COORD_OK);
    assert_int_equal(got.len, LEN);
    assert_memory_equal(got.ptr, bytes, LEN);
    coordi_buf_done(&got);
    free(bytes);
}

static void a_replaced_file_keeps_its_permissions(void **state)
{
    (void)state;
    struct stat about;
    assert_int_equal(replace("mode", "1", NULL), COORD_OK);
    assert_int_equal(chmod(path_of("mode"), 0640), 0);
    assert_int_equal(replace("mode", "2", NULL), COORD_OK);
    assert_int_equal(stat(path_of("mode"), &about), 0);
    assert_int_equal(about.st_mode & 07777, 0640);
}

static void a_relative_path_is_taken_from_the_current_folder(void **state)
{
    (void)state;
    char before[1024];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(coordi_env_real.file_replace(NULL, "plain", "x", 1, NULL), COORD_OK);
    assert_int_equal(chdir(before), 0);
    assert_holds("plain", "x");
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    coordi_buf got = {0};
    coord_error err;
    assert_int_equal(coordi_env_real.file_read(NULL, path_of("none"), 10, &got, &err),
                     COORD_ERR_NOT_FOUND);
    assert_int_equal(err.status, COORD_ERR_NOT_FOUND);
    assert_int_equal(err.os_errno, ENOENT);
    assert_non_null(strstr(err.text, path_of("none")));
    assert_int_equal(replace("none/below", "x", &err), COORD_ERR_IO);
    assert_non_null(strstr(err.text, "none/below"));
    assert_null(got.ptr);
}

static void a_file_over_the_limit_is_not_read(void **state)
{
    (void)state;
    coordi_buf got = {0};
    coord_error err;
    assert_int_equal(replace("limit", "12345", NULL), COORD_OK);
    assert_int_equal(coordi_env_real.file_read(NULL, path_of("limit"), 4, &got, &err),
                     COORD_ERR_TOO_BIG);
    assert_non_null(strstr(err.text, "5 bytes"));
    assert_int_equal(coordi_env_real.file_read(NULL, path_of("limit"), 5, &got, &err),
                     COORD_OK);
    coordi_buf_done(&got);
}

static void folders_and_pipes_are_not_read(void **state)
{
    (void)state;
    coordi_buf got = {0};
    coord_error err;
    assert_int_equal(mkdir(path_of("sub"), 0700), 0);
    assert_int_equal(mkfifo(path_of("pipe"), 0600), 0);
    assert_int_equal(coordi_env_real.file_read(NULL, path_of("sub"), 10, &got, &err),
                     COORD_ERR_IO);
    assert_non_null(strstr(err.text, "regular"));
    assert_int_equal(coordi_env_real.file_read(NULL, path_of("pipe"), 10, &got, &err),
                     COORD_ERR_IO);
    assert_null(got.ptr);
}

static void a_failed_replacement_leaves_the_old_file_alone(void **state)
{
    (void)state;
    coord_error err;
    assert_int_equal(mkdir(path_of("dir"), 0700), 0);
    assert_int_equal(mkdir(path_of("dir/inner"), 0700), 0);
    assert_int_equal(replace("dir", "x", &err),
                     COORD_ERR_IO); /* a folder is in its place */
    assert_int_equal(files_in_folder(), 1);
}

static bool countdown(void *user)
{
    return (*(int *)user)-- == 0;
}

static void files_survive_every_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(replace("mem", "old", NULL), COORD_OK);
    for (int n = 0, ok = 0; !ok; n++) {
        int left = n;
        coordi_buf got = {0};
        coordi_alloc_set_fault(countdown, &left);
        coord_status wrote = replace("mem", "new", NULL);
        coord_status was_read =
            coordi_env_real.file_read(NULL, path_of("mem"), 10, &got, NULL);
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(wrote == COORD_OK || wrote == COORD_ERR_NOMEM);
        assert_true(was_read == COORD_OK || was_read == COORD_ERR_NOMEM);
        ok = wrote == COORD_OK && was_read == COORD_OK;
        coordi_buf_done(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, open_folder, remove_folder)
        IN_FOLDER(a_file_is_written_and_read_back),
        IN_FOLDER(a_large_file_comes_whole),
        IN_FOLDER(a_replaced_file_keeps_its_permissions),
        IN_FOLDER(a_relative_path_is_taken_from_the_current_folder),
        IN_FOLDER(a_file_that_is_not_there_is_named),
        IN_FOLDER(a_file_over_the_limit_is_not_read),
        IN_FOLDER(folders_and_pipes_are_not_read),
        IN_FOLDER(a_failed_replacement_leaves_the_old_file_alone),
        IN_FOLDER(files_survive_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("env_files", tests, NULL, NULL);
}
