#include "base/address.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void every_form_of_an_address_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *host;
        unsigned port;
        const char *prefix;
        bool https;
    } CASE[] = {
        {"10.1.2.3:7235", "10.1.2.3", 7235, "", false},
        {"http://10.1.2.3:7235", "10.1.2.3", 7235, "", false},
        {"http://10.1.2.3:7235/", "10.1.2.3", 7235, "", false},
        {"http://10.1.2.3:7235///", "10.1.2.3", 7235, "", false},
        {"http://a:1/pre", "a", 1, "/pre", false},
        {"http://a:1/pre/fix/", "a", 1, "/pre/fix", false},
        {"a/pre", "a", 80, "/pre", false},
        {"localhost", "localhost", 80, "", false},
        {"http://collector-0.ns.svc.cluster.local", "collector-0.ns.svc.cluster.local",
         80, "", false},
        {"https://a", "a", 443, "", true},
        {"https://a:80", "a", 80, "", true},
        {"HTTP://a:1", "a", 1, "", false},
        {"HttpS://a", "a", 443, "", true},
        {"http", "http", 80, "", false},
        {"a:0", "a", 0, "", false},
        {"a:65535", "a", 65535, "", false},
        {"a:00080", "a", 80, "", false},
        {"[::1]", "::1", 80, "", false},
        {"[::1]:22270", "::1", 22270, "", false},
        {"http://[2001:db8::7]:9/p", "2001:db8::7", 9, "/p", false},
        {"https://[::]", "::", 443, "", true},
        {"[::ffff:10.0.0.1]:1", "::ffff:10.0.0.1", 1, "", false},
        {"[fe80::1%eth0]:5", "fe80::1%eth0", 5, "", false},
        {"\xc3\xa4.example:1", "\xc3\xa4.example", 1, "", false},
        {"host_with_underscores:1", "host_with_underscores", 1, "", false},
    };
    for (size_t i = 0; i < COUNT(CASE); i++) {
        coordi_address got;
        coord_error err = {.status = COORD_OK};
        if (coordi_address_read(CASE[i].text, strlen(CASE[i].text), &got, &err) !=
            COORD_OK) {
            fail_msg("<%s>: %s", CASE[i].text, err.text);
        }
        assert_string_equal(got.host, CASE[i].host);
        assert_int_equal(got.port, CASE[i].port);
        assert_string_equal(got.prefix, CASE[i].prefix);
        assert_int_equal(got.https, CASE[i].https);
    }
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",
                                      ":",
                                      ":80",
                                      "http://",
                                      "http:///p",
                                      "https://:1",
                                      "a:",
                                      "a:/p",
                                      "a:-1",
                                      "a:+1",
                                      "a:65536",
                                      "a:99999",
                                      "a:000080",
                                      "a:1.0",
                                      "a:0x50",
                                      "a: 80",
                                      "a:80 ",
                                      "a:80a",
                                      "a:1:2",
                                      "a b",
                                      " a",
                                      "a ",
                                      "a\t:1",
                                      "a\n",
                                      "a\r\n:1",
                                      "\x01/",
                                      "a\x7f",
                                      "u@h",
                                      "http://u:p@h",
                                      "h?q",
                                      "h#f",
                                      "h\\x",
                                      "a\"b",
                                      "<a>",
                                      "::1",
                                      "2001:db8::7",
                                      "::1:80",
                                      "[]",
                                      "[]:80",
                                      "[::1",
                                      "::1]",
                                      "[::1]80",
                                      "[::1]:",
                                      "[::1]x:1",
                                      "[a]:1",
                                      "[10.0.0.1]",
                                      "[a:b]",
                                      "[:::]",
                                      "[::1]]:1",
                                      "[[::1]]:1",
                                      "[1:2]:3",
                                      "a]:1",
                                      "ftp://a",
                                      "http://a/ b",
                                      "http://a/\n",
                                      "http:/a",
                                      "http://a/\xc3\xa4",
                                      "127.0.0.1:1:1"};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        coordi_address got = {.port = 9};
        coord_error err;
        if (coordi_address_read(BAD[i], strlen(BAD[i]), &got, &err) != COORD_ERR_ARG) {
            fail_msg("<%s> became <%s> %u", BAD[i], got.host, (unsigned)got.port);
        }
        assert_int_equal(got.port, 9);
        assert_non_null(strstr(err.text, "address must be [http://]host[:port][/path]"));
    }
}

static void a_nul_inside_is_refused(void **state)
{
    (void)state;
    coordi_address got;
    assert_int_equal(coordi_address_read("a\0b:1", 5, &got, NULL), COORD_ERR_ARG);
    assert_int_equal(coordi_address_read("a:1/\0", 5, &got, NULL), COORD_ERR_ARG);
    assert_int_equal(coordi_address_read("a:1\0", 4, &got, NULL), COORD_ERR_ARG);
}

static void only_so_many_bytes_are_looked_at(void **state)
{
    (void)state;
    coordi_address got;
    assert_int_equal(coordi_address_read("abc:123", 5, &got, NULL), COORD_OK);
    assert_string_equal(got.host, "abc");
    assert_int_equal(got.port, 1);
}

static void a_host_and_a_prefix_have_at_most_255_bytes(void **state)
{
    (void)state;
    static char text[100000];
    coordi_address got;
    memset(text, 'h', sizeof text);
    assert_int_equal(coordi_address_read(text, 255, &got, NULL), COORD_OK);
    assert_int_equal(strlen(got.host), 255);
    assert_int_equal(coordi_address_read(text, 256, &got, NULL), COORD_ERR_ARG);
    text[1] = '/';
    assert_int_equal(coordi_address_read(text, 256, &got, NULL), COORD_OK);
    assert_int_equal(strlen(got.prefix), 255);
    assert_int_equal(coordi_address_read(text, 257, &got, NULL), COORD_ERR_ARG);
    coord_error err;
    assert_int_equal(coordi_address_read(text, sizeof text, &got, &err), COORD_ERR_ARG);
    assert_true(strlen(err.text) < 200); /* names only the first part of it */
}

static void v6_is_printed_in_brackets(void **state)
{
    (void)state;
    char out[COORDI_HOST_PORT_SIZE];
    coordi_address_print("10.0.0.1", 0, out);
    assert_string_equal(out, "10.0.0.1:0");
    coordi_address_print("name", 65535, out);
    assert_string_equal(out, "name:65535");
    coordi_address_print("::1", 22270, out);
    assert_string_equal(out, "[::1]:22270");
}

static void what_is_printed_reads_back(void **state)
{
    (void)state;
    char host[COORDI_HOST_SIZE] = "";
    char out[COORDI_HOST_PORT_SIZE];
    coordi_address got;
    memset(host, 'h', sizeof host - 1);
    const char *hosts[] = {host, "::1", "fe80::1%eth0", "10.0.0.1"};
    for (size_t i = 0; i < COUNT(hosts); i++) {
        coordi_address_print(hosts[i], 65535, out);
        assert_int_equal(coordi_address_read(out, strlen(out), &got, NULL), COORD_OK);
        assert_string_equal(got.host, hosts[i]);
        assert_int_equal(got.port, 65535);
    }
}

static void printing_never_writes_past_the_end(void **state)
{
    (void)state;
    static char host[1000];
    char out[COORDI_HOST_PORT_SIZE];
    memset(host, ':', sizeof host - 1);
    coordi_address_print(host, 65535, out);
    assert_int_equal(strlen(out), 255 + strlen("[]:65535"));
}

static void a_host_has_neither_port_nor_brackets(void **state)
{
    (void)state;
    static const char *const GOOD[] = {
        "a", "a.b-c_d", "10.0.0.1", "::", "::1", "1.2.3", "fe80::1%eth0", "\xc3\xa4"};
    static const char *const BAD[] = {
        "",    "a:1", "10.0.0.1:80", "[::1]",  "a/b",
        "a b", "a\n", "\x7f",        "u@h",    ":",
        ":::", "1:2", "::g",         "%eth0:", "1:2:3:4:5:6:7:8:9"};
    for (size_t i = 0; i < COUNT(GOOD); i++) {
        if (!coordi_address_is_host(GOOD[i])) {
            fail_msg("<%s> is no host", GOOD[i]);
        }
    }
    for (size_t i = 0; i < COUNT(BAD); i++) {
        if (coordi_address_is_host(BAD[i])) {
            fail_msg("<%s> is a host", BAD[i]);
        }
    }
    char host[COORDI_HOST_SIZE + 1] = "";
    memset(host, 'h', COORDI_HOST_SIZE);
    assert_false(coordi_address_is_host(host));
    host[255] = '\0';
    assert_true(coordi_address_is_host(host));
}

static void loopback_is_told_from_names_that_look_like_it(void **state)
{
    (void)state;
    static const char *const LOOPBACK[] = {
        "127.0.0.1", "127.0.0.2",       "127.1.2.3", "127.255.255.255",
        "::1",       "0:0:0:0:0:0:0:1", "localhost"};
    static const char *const BEYOND[] = {"",
                                         "127.evil.com",
                                         "127.0.0.1.evil.com",
                                         "127",
                                         "127.",
                                         "127.1",
                                         "127.0.0.0.1",
                                         "127.0.0.256",
                                         "127..0.1",
                                         "1270.0.0.1",
                                         "128.0.0.1",
                                         "126.0.0.1",
                                         "0.0.0.0",
                                         "10.0.0.1",
                                         "::",
                                         "::2",
                                         "::ffff:0:1",
                                         "fe80::1",
                                         "localhost.evil.com",
                                         "localhos",
                                         "notlocalhost",
                                         "[::1]",
                                         "127.0.0.1 ",
                                         " 127.0.0.1",
                                         "localhost:1",
                                         "::1.evil.com"};
    for (size_t i = 0; i < COUNT(LOOPBACK); i++) {
        if (!coordi_address_is_loopback(LOOPBACK[i])) {
            fail_msg("<%s> is beyond loopback", LOOPBACK[i]);
        }
    }
    for (size_t i = 0; i < COUNT(BEYOND); i++) {
        if (coordi_address_is_loopback(BEYOND[i])) {
            fail_msg("<%s> is loopback", BEYOND[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_an_address_is_read),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(a_nul_inside_is_refused),
        cmocka_unit_test(only_so_many_bytes_are_looked_at),
        cmocka_unit_test(a_host_and_a_prefix_have_at_most_255_bytes),
        cmocka_unit_test(v6_is_printed_in_brackets),
        cmocka_unit_test(what_is_printed_reads_back),
        cmocka_unit_test(printing_never_writes_past_the_end),
        cmocka_unit_test(a_host_has_neither_port_nor_brackets),
        cmocka_unit_test(loopback_is_told_from_names_that_look_like_it),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
