/* Safetensors from and to files. */
#include "coord/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void tensors_go_to_a_file_and_come_back(void **state)
{
    (void)state;
    char path[512];
    const char *folder = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%s/coord_test.%ld.safetensors",
                   folder == NULL ? "/tmp" : folder, (long)getpid());
    const float data[] = {1.5F, -2.0F, 3.25F};
    const int64_t shape[] = {3};
    const coord_tensor tensor = {"w", COORD_DTYPE_F32, 1, shape, data, sizeof data};
    const coord_safetensors_meta meta = {"version", "7"};
    coord_error err;
    assert_int_equal(coord_safetensors_write_file(path, &tensor, 1, &meta, 1, &err),
                     COORD_OK);
    coord_safetensors *read = NULL;
    assert_int_equal(coord_safetensors_read_file(path, NULL, &read, &err), COORD_OK);
    float back[3];
    assert_int_equal(coord_tensor_copy(coord_safetensors_find(read, "w"), COORD_DTYPE_F32,
                                       back, 3, NULL),
                     COORD_OK);
    assert_memory_equal(back, data, sizeof data);
    assert_string_equal(coord_safetensors_metadata(read, "version"), "7");
    coord_safetensors_destroy(read);

    coord_safetensors_limits limits;
    coord_safetensors_limits_init(&limits, sizeof limits);
    limits.max_total_bytes = 10;
    assert_int_equal(coord_safetensors_read_file(path, &limits, &read, &err),
                     COORD_ERR_TOO_BIG);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(coord_safetensors_read_file(path, NULL, &read, &err),
                     COORD_ERR_NOT_FOUND);
    assert_int_equal(coord_safetensors_read_file("/dev/null", NULL, &read, &err),
                     COORD_ERR_IO);
    assert_int_equal(coord_safetensors_read_file("/etc/passwd", NULL, &read, &err),
                     COORD_ERR_TOO_BIG); /* its first bytes are no length */
    assert_non_null(strstr(err.text, "/etc/passwd"));
    assert_int_equal(
        coord_safetensors_write_file("/no/such/folder/x", &tensor, 1, NULL, 0, &err),
        COORD_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_go_to_a_file_and_come_back),
    };
    return cmocka_run_group_tests_name("safetensors files", tests, NULL, NULL);
}
