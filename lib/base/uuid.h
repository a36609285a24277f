/* Task ids: UUID-shaped text. */
#ifndef COORDI_BASE_UUID_H
#define COORDI_BASE_UUID_H

#include "coord/api.h"

enum { COORDI_UUID_SIZE = 37 }; /* 36 characters and the NUL */

/* Writes 16 bytes as lower-case canonical text. */
void coordi_uuid_print(const unsigned char bytes[16], char out[COORDI_UUID_SIZE]);

/* Marks 16 random bytes as version 4, RFC 4122 section 4.4. */
void coordi_uuid_mark_v4(unsigned char bytes[16]);

/* Reads every spelling that Python's uuid.UUID takes: any case, hyphens anywhere or none,
 * braces around, "urn:" and "uuid:"; writes the canonical form. False when it is none, is
 * longer than 128 bytes, or has what only slips through int(x, 16): blanks, a sign, "0x",
 * underscores, digits beyond ASCII. */
bool coordi_uuid_read(const char *text, size_t len, char out[COORDI_UUID_SIZE]);

#endif
