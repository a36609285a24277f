/* Ids of a coordinator's requests. Each names its task, attempt and place in it, and is
 * sealed with a key, so that a coordinator that was restarted with the same key knows its
 * own requests again without having written down a single one of them.
 *
 * The text is a UUID of version 8 (RFC 9562): 36 bits task, 12 attempt, 2 kind,
 * 34 sequence, 38 seal. */
#ifndef COORDI_WIRE_TICKET_H
#define COORDI_WIRE_TICKET_H

#include "base/uuid.h"

/* What a request asks for. */
typedef enum coordi_ticket_kind {
    COORDI_TICKET_START,
    COORDI_TICKET_ASK, /* data, get_data */
    COORDI_TICKET_LEARN,
    COORDI_TICKET_CLOSE
} coordi_ticket_kind;

/* Numbers that need more bits than there are lose the upper ones. */
typedef struct coordi_ticket {
    uint64_t task;
    uint32_t attempt;
    uint64_t sequence;
    coordi_ticket_kind kind;
} coordi_ticket;

typedef struct coordi_ticket_key {
    unsigned char bytes[16];
} coordi_ticket_key;

void coordi_ticket_print(const coordi_ticket_key *key, const coordi_ticket *ticket,
                         char out[COORDI_UUID_SIZE]);

/* False: this key did not seal it. `id` is canonical (coordi_uuid_read). */
bool coordi_ticket_read(const coordi_ticket_key *key, const char *id, coordi_ticket *ret);

/* As many bits of it as a ticket has room for: what a number read from one equals. */
uint32_t coordi_ticket_attempt(uint32_t attempt);
uint64_t coordi_ticket_sequence(uint64_t sequence);

#endif
