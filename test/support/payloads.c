#include "support/payloads.h"
#include "support/sanitized.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { BIG = SANITIZED(10, 10, 1) << 20, DEPTH = 1000, PATIENCE_S = 60 };

/* ---- payloads ---- */

static const char *const SMALL[PAYLOADS - 3] = {
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "[NaN,-Infinity , Infinity,\t-1E+999]",
    "1234567890123456789012345678901234567890",
    "-1234567890123456789012345678901234567890",
    "[0.1, 0.10000000000000001, 1.0, 1.00, 1, -0.0, 1e-400, 1E5, 1e+05]",
    "[9223372036854775807, 9223372036854775808, 18446744073709551616]",
    "\"\\ud800\"",
    "[\"\\udfff\\ud800\", {\"\\udc00\": \"\\uD83D\\uDE00\"}]",
    "\"a\\u0000b\"",
    "{\"\\u0000\": {\"a\\u0000\": \"\\u0000\"}}",
    "{\"a\": 1, \"a\": {\"a\": 2}, \"\\u0061\": 3, \"a\": 1}",
    "{\"\": 0, \" \": \"\"}",
    "{ \"a\"\t:\r\n[ 1 ,\n2\t] , \"b\" : { } }",
    "[[], {}, [ ], { }, [\n], [[[]]], null, true, false, \"\"]",
    "\"\\/ / \\b\\f\\n\\r\\t \\\" \\\\ \\u00fc \xc3\xbc \xf0\x9f\x98\x80 \x7f\"",
    "\"]}\\\\\\\"{[,: \"",
    "[{\"task\": {\"id\": 1}, \"data\": 2, \"result\": 3, \"name\": \"x\"}]",
    "{\"success\": false, \"code\": 601, \"message\": \"no\", \"data\": null}",
    "true",
    "1",
    "\"x\"",
};
enum { SMALL_COUNT = PAYLOADS - 3 };

char *payloads[PAYLOADS];

/* So many arrays, or objects, in each other. */
static char *nest(const char *open, const char *inside, const char *close)
{
    char *text = calloc(1, DEPTH * (strlen(open) + strlen(close)) + strlen(inside) + 1);
    assert_non_null(text);
    char *at = text;
    for (int i = 0; i < DEPTH; i++) {
        at = stpcpy(at, open);
    }
    at = stpcpy(at, inside);
    for (int i = 0; i < DEPTH; i++) {
        at = stpcpy(at, close);
    }
    return text;
}

/* A string of letters, in which nothing may be lost or moved. */
static char *long_string(void)
{
    char *text = malloc(BIG + 1);
    assert_non_null(text);
    for (int i = 0; i < BIG; i++) {
        text[i] = (char)('a' + (i * 7 + i / 1000) % 26);
    }
    text[0] = '"';
    text[BIG - 1] = '"';
    text[BIG] = '\0';
    return text;
}

int payloads_make(void **state)
{
    (void)state;
    for (size_t i = 0; i < SMALL_COUNT; i++) {
        payloads[i] = strdup(SMALL[i]);
    }
    payloads[SMALL_COUNT] = nest("[", "-Infinity", "]");
    payloads[SMALL_COUNT + 1] = nest("{\"a\" : ", "NaN", " }");
    payloads[SMALL_COUNT + 2] = long_string();
    return 0;
}

int payloads_free(void **state)
{
    (void)state;
    for (size_t i = 0; i < PAYLOADS; i++) {
        free(payloads[i]);
    }
    return 0;
}

/* ---- texts ---- */

char *text_print(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    assert_true(len >= 0);
    return text;
}

void assert_text(const char *what, coord_text got, char *want)
{
    size_t len = strlen(want);
    if (got.len != len || memcmp(got.ptr, want, len) != 0) {
        fail_msg("%s: expected %zu bytes: %.300s\ngot %zu bytes: %.*s", what, len, want,
                 got.len, (int)(got.len < 300 ? got.len : 300),
                 got.len == 0 ? "" : got.ptr);
    }
    free(want);
}

/* Under the lock; -1: none. */
static int find(const notes *n, const char *name)
{
    for (int i = 0; i < n->count; i++) {
        if (strcmp(n->name[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

void notes_add(notes *n, const char *name, coord_text text)
{
    (void)pthread_mutex_lock(&n->lock);
    int i = find(n, name);
    if (i < 0) {
        assert_true(n->count < NOTES_MAX);
        i = n->count++;
        n->name[i] = name;
    }
    free(n->text[i]);
    n->text[i] = malloc(text.len + 1);
    n->len[i] = text.len;
    if (text.len > 0) {
        memcpy(n->text[i], text.ptr, text.len);
    }
    (void)pthread_cond_broadcast(&n->news);
    (void)pthread_mutex_unlock(&n->lock);
}

static coord_text look(notes *n, const char *name, bool wait)
{
    struct timespec until;
    coord_text text = {NULL, 0};
    int why = wait ? 0 : ETIMEDOUT;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    (void)pthread_mutex_lock(&n->lock);
    int at = find(n, name);
    while (at < 0 && why != ETIMEDOUT) {
        why = pthread_cond_timedwait(&n->news, &n->lock, &until);
        at = find(n, name);
    }
    if (at >= 0) {
        text = (coord_text){n->text[at], n->len[at]};
    }
    (void)pthread_mutex_unlock(&n->lock);
    return text;
}

coord_text notes_get(notes *n, const char *name)
{
    return look(n, name, false);
}

coord_text notes_await(notes *n, const char *name)
{
    return look(n, name, true);
}

void notes_forget(notes *n)
{
    for (int i = 0; i < n->count; i++) {
        free(n->text[i]);
    }
    n->count = 0;
}
