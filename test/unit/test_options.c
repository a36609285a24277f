#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* This build's struct, and those of an older and of a newer header. */
typedef struct options {
    size_t size;
    int64_t a;
    int64_t b;
} options;

typedef struct old_options {
    size_t size;
    int64_t a;
} old_options;

typedef struct new_options {
    size_t size;
    int64_t a;
    int64_t b;
    int64_t c;
} new_options;

static const options DEFAULTS = {sizeof(options), 10, 20};

static coord_status adopt(options *ours, const void *theirs, coord_error *err)
{
    *ours = DEFAULTS;
    return coordi_options_adopt(ours, sizeof *ours, theirs, "thing", err);
}

static void init_writes_the_defaults_and_the_size(void **state)
{
    (void)state;
    options o;
    memset(&o, 0xff, sizeof o);
    coordi_options_init(&o, sizeof o, &DEFAULTS, sizeof DEFAULTS);
    assert_memory_equal(&o, &DEFAULTS, sizeof o);
}

static void init_keeps_to_the_size_that_the_host_knows(void **state)
{
    (void)state;
    struct {
        old_options o;
        int64_t behind;
    } old = {.behind = 77};
    coordi_options_init(&old.o, sizeof old.o, &DEFAULTS, sizeof DEFAULTS);
    assert_int_equal(old.o.size, sizeof old.o);
    assert_int_equal(old.o.a, 10);
    assert_int_equal(old.behind, 77);

    new_options new;
    memset(&new, 0xff, sizeof new);
    coordi_options_init(&new, sizeof new, &DEFAULTS, sizeof DEFAULTS);
    assert_int_equal(new.size, sizeof new);
    assert_int_equal(new.b, 20);
    assert_int_equal(new.c, 0);
}

static void init_survives_nonsense(void **state)
{
    (void)state;
    options o = {1, 2, 3};
    coordi_options_init(NULL, sizeof o, &DEFAULTS, sizeof DEFAULTS);
    coordi_options_init(&o, 0, &DEFAULTS, sizeof DEFAULTS);
    coordi_options_init(&o, sizeof(size_t) - 1, &DEFAULTS, sizeof DEFAULTS);
    assert_int_equal(o.size, 1);
}

static void the_same_size_is_taken_over(void **state)
{
    (void)state;
    options ours;
    options theirs = {sizeof theirs, 1, 2};
    assert_int_equal(adopt(&ours, &theirs, NULL), COORD_OK);
    assert_memory_equal(&ours, &theirs, sizeof ours);
}

static void what_an_older_host_does_not_know_keeps_its_default(void **state)
{
    (void)state;
    options ours;
    old_options theirs = {sizeof theirs, 1};
    assert_int_equal(adopt(&ours, &theirs, NULL), COORD_OK);
    assert_int_equal(ours.size, sizeof ours);
    assert_int_equal(ours.a, 1);
    assert_int_equal(ours.b, 20);

    size_t only_size = sizeof only_size;
    assert_int_equal(adopt(&ours, &only_size, NULL), COORD_OK);
    assert_memory_equal(&ours, &DEFAULTS, sizeof ours);
}

static void what_a_newer_host_left_zero_is_fine(void **state)
{
    (void)state;
    options ours;
    new_options theirs = {sizeof theirs, 1, 2, 0};
    assert_int_equal(adopt(&ours, &theirs, NULL), COORD_OK);
    assert_int_equal(ours.size, sizeof ours);
    assert_int_equal(ours.b, 2);
}

static void what_a_newer_host_set_is_never_ignored_in_silence(void **state)
{
    (void)state;
    options ours;
    coord_error err;
    new_options theirs = {sizeof theirs, 1, 2, (int64_t)1 << 56};
    assert_int_equal(adopt(&ours, &theirs, &err), COORD_ERR_ABI);
    assert_string_equal(err.text,
                        "thing: the field at byte 31 is newer than this libcoord "
                        "(" COORD_VERSION ")");
    assert_memory_equal(&ours, &DEFAULTS, sizeof ours);
}

static void uninitialised_ones_are_refused(void **state)
{
    (void)state;
    static const size_t SIZE[] = {0, 1, sizeof(size_t) - 1, 65537, SIZE_MAX};
    for (size_t i = 0; i < sizeof SIZE / sizeof SIZE[0]; i++) {
        options ours;
        coord_error err;
        options theirs = {SIZE[i], 1, 2};
        assert_int_equal(adopt(&ours, &theirs, &err), COORD_ERR_ABI);
        assert_non_null(strstr(err.text, "call its _init() function first"));
        assert_memory_equal(&ours, &DEFAULTS, sizeof ours);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_writes_the_defaults_and_the_size),
        cmocka_unit_test(init_keeps_to_the_size_that_the_host_knows),
        cmocka_unit_test(init_survives_nonsense),
        cmocka_unit_test(the_same_size_is_taken_over),
        cmocka_unit_test(what_an_older_host_does_not_know_keeps_its_default),
        cmocka_unit_test(what_a_newer_host_left_zero_is_fine),
        cmocka_unit_test(what_a_newer_host_set_is_never_ignored_in_silence),
        cmocka_unit_test(uninitialised_ones_are_refused),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
