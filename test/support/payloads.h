/* Payloads that are hard to pass on unchanged, and notes of what arrived. */
#ifndef TEST_SUPPORT_PAYLOADS_H
#define TEST_SUPPORT_PAYLOADS_H

#include "coord/api.h"

#include <pthread.h>

/* Whatever Python's json writes: small ones first, then two that are 1000 levels deep,
 * then one of 10 MB (of 1 MB for ThreadSanitizer). Made by a group's setup. */
enum { PAYLOADS = 27 };
extern char *payloads[PAYLOADS];
int payloads_make(void **state);
int payloads_free(void **state);

/* A text that printf makes: free it. */
char *text_print(const char *format, ...) COORD_PRINTF(1, 2);

/* Fails unless `got` is `want`, byte for byte. Frees `want`. */
void assert_text(const char *what, coord_text got, char *want);

/* What callbacks were told: the last text of each name. */
enum { NOTES_MAX = 16 };
typedef struct notes {
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t news;
    const char *name[NOTES_MAX];
    char *text[NOTES_MAX];
    size_t len[NOTES_MAX];
    int count;
} notes;
#define NOTES_INIT                                                                       \
    {                                                                                    \
        .lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER              \
    }

/* `name` is a literal. */
void notes_add(notes *n, const char *name, coord_text text);
/* Borrowed until the next note of that name; empty when there was none. */
coord_text notes_get(notes *n, const char *name);
/* The same, but waits for the first. */
coord_text notes_await(notes *n, const char *name);
void notes_forget(notes *n);

#endif
