/* A growing text. Failure is sticky: add at will, look at `failed` once at the end. */
#ifndef COORDI_BASE_BUF_H
#define COORDI_BASE_BUF_H

#include "coord/api.h"

typedef struct coordi_buf {
    char *ptr; /* owned; NULL while empty */
    size_t len;
    size_t cap;
    bool failed; /* memory ran out; what was added since is lost */
} coordi_buf;

void coordi_buf_done(coordi_buf *buf);
void coordi_buf_add(coordi_buf *buf, const char *bytes, size_t len);
void coordi_buf_adds(coordi_buf *buf, const char *string);
void coordi_buf_addt(coordi_buf *buf, coord_text text);
void coordi_buf_addf(coordi_buf *buf, const char *format, ...) COORD_PRINTF(2, 3);

/* Adds a JSON string, quotes included. Bytes over 0x7f pass as they are. */
void coordi_buf_add_json(coordi_buf *buf, const char *bytes, size_t len);

/* Makes room for `more` bytes; false when memory is out. */
bool coordi_buf_reserve(coordi_buf *buf, size_t more);

/* Hands the text over, closed by a NUL, and leaves the buffer empty. NULL when adding
 * failed (everything is freed then). */
char *coordi_buf_take(coordi_buf *buf, size_t *len);

#endif
