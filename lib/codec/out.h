/* The inside of a coord_out: lives on the stack of whoever runs the callback. */
#ifndef COORDI_CODEC_OUT_H
#define COORDI_CODEC_OUT_H

#include "base/buf.h"
#include "coord/out.h"

/* All zero is an empty one. */
struct coord_out {
    coordi_buf json; /* well-formed, but only when `set` */
    bool set;        /* the callback put something in */
    bool lines;      /* takes lines of text instead, whatever they say */
};

void coordi_out_done(coord_out *out);

/* What was put in, borrowed until the next call; no text when nothing was. */
coord_text coordi_out_text(const coord_out *out);

/* Hands the text over, closed by a NUL, and leaves `out` empty. NULL when nothing was put
 * in. Never allocates. */
char *coordi_out_take(coord_out *out, size_t *len);

#endif
