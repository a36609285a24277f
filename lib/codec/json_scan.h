/* Walks over JSON text token by token: checks what it passes, keeps nothing. For
 * lib/codec itself; everybody else uses codec/json.h. */
#ifndef COORDI_CODEC_JSON_SCAN_H
#define COORDI_CODEC_JSON_SCAN_H

#include "codec/json.h"

typedef struct coordi_scan {
    const char *begin;
    const char *at; /* the next byte; after a failure, the one that is wrong */
    const char *end;
    const char *expected; /* after a failure, what should have been there */
    unsigned depth;       /* arrays and objects that are open */
    bool between;         /* an element was read: a comma or the closing mark follows */
    /* One bit for each open level, set when it is an object. Left as it is at the start:
     * only bits below `depth` are ever read. */
    uint64_t nest[COORDI_JSON_MAX_DEPTH / 64];
} coordi_scan;

typedef enum coordi_step {
    COORDI_STEP_ITEM, /* here is one */
    COORDI_STEP_END,  /* the array or object is closed */
    COORDI_STEP_BAD   /* malformed: see coordi_scan_fail */
} coordi_step;

void coordi_scan_begin(coordi_scan *s, coord_text text);

/* Passes blanks and one value; false when it is malformed. */
bool coordi_scan_value(coordi_scan *s);

/* Passes blanks up to the end of the text; false when something else is there. */
bool coordi_scan_end(coordi_scan *s);

/* Passes blanks and `mark`, '[' or '{'; false, without a complaint, when another byte is
 * there. Then ask for the elements one by one. */
bool coordi_scan_open(coordi_scan *s, char mark);
coordi_step coordi_scan_item(coordi_scan *s, coord_text *item);

/* For those who go into the value themselves: up to the value, blanks included, and past
 * it. */
coordi_step coordi_scan_element(coordi_scan *s);
coordi_step coordi_scan_key(coordi_scan *s, coord_text *key);
bool coordi_scan_member_value(coordi_scan *s, coord_text *value);
coordi_step coordi_scan_member(coordi_scan *s, coord_text *key, coord_text *value);

/* "JSON, byte 7: expected a value, got '}'" */
coord_status coordi_scan_fail(const coordi_scan *s, coord_error *err);

/* The text without blanks around it, never with a NULL pointer. */
coord_text coordi_scan_trim(coord_text text);

/* Is the trimmed text one number, one string? */
bool coordi_scan_is_number(coord_text trimmed);
bool coordi_scan_is_string(coord_text trimmed);

/* Is a raw string, its quotes around it, this text? Escapes are undone. */
bool coordi_scan_key_is(coord_text raw, const char *text, size_t len);

#endif
