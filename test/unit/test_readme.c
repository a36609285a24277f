/* What README says of the configuration is what the table of keys says. */
#include "base/alloc.h"
#include "coordinator/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_readme_lists_every_key_as_the_table_of_keys_does(void **state)
{
    (void)state;
    FILE *f = fopen("README", "re"); /* tests run in the top folder */
    assert_non_null(f);
    static char text[1 << 17];
    size_t len = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[len] = '\0';
    char *help = coordi_config_help();
    assert_non_null(help);
    assert_non_null(strstr(text, help));
    coordi_free(help);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_readme_lists_every_key_as_the_table_of_keys_does),
    };
    return cmocka_run_group_tests_name("readme", tests, NULL, NULL);
}
