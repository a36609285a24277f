#include "wire/ticket.h"

#include <sodium.h>
#include <string.h>

enum {
    TASK_BITS = 36,
    ATTEMPT_BITS = 12,
    KIND_BITS = 2,
    SEQUENCE_BITS = 34,
    SEQUENCE_HIGH = 10, /* bits of the sequence in the first half */
    SEQUENCE_LOW = SEQUENCE_BITS - SEQUENCE_HIGH,
    SEAL_BITS = 38
};

_Static_assert(TASK_BITS + ATTEMPT_BITS + KIND_BITS + SEQUENCE_HIGH == 60,
               "the first half has room for 60 bits beside the version");
_Static_assert(SEQUENCE_LOW + SEAL_BITS == 62,
               "the second half has room for 62 bits beside the variant");
_Static_assert(sizeof(coordi_ticket_key) == crypto_shorthash_KEYBYTES,
               "the key is one of SipHash");

static uint64_t low_bits(uint64_t value, int bits)
{
    return value & ((UINT64_C(1) << bits) - 1);
}

static void put_64(unsigned char *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (unsigned char)(value >> (56 - 8 * i));
    }
}

static uint64_t get_64(const unsigned char *from)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | from[i];
    }
    return value;
}

/* SipHash-2-4, cut short. */
static uint64_t seal(const coordi_ticket_key *key, uint64_t first, uint64_t sequence_low)
{
    unsigned char text[16];
    unsigned char hash[crypto_shorthash_BYTES];
    put_64(text, first);
    put_64(text + 8, sequence_low);
    (void)crypto_shorthash(hash, text, sizeof text, key->bytes);
    return low_bits(get_64(hash), SEAL_BITS);
}

void coordi_ticket_print(const coordi_ticket_key *key, const coordi_ticket *ticket,
                         char out[COORDI_UUID_SIZE])
{
    uint64_t sequence = coordi_ticket_sequence(ticket->sequence);
    uint64_t sequence_low = low_bits(sequence, SEQUENCE_LOW);
    uint64_t first = low_bits(ticket->task, TASK_BITS);
    first = first << ATTEMPT_BITS | coordi_ticket_attempt(ticket->attempt);
    first = first << KIND_BITS | (uint64_t)ticket->kind;
    first = first << SEQUENCE_HIGH | sequence >> SEQUENCE_LOW;
    uint64_t second = sequence_low << SEAL_BITS | seal(key, first, sequence_low);

    unsigned char bytes[16];
    put_64(bytes, (first >> 12) << 16 | UINT64_C(8) << 12 | low_bits(first, 12));
    put_64(bytes + 8, UINT64_C(2) << 62 | second);
    coordi_uuid_print(bytes, out);
}

bool coordi_ticket_read(const coordi_ticket_key *key, const char *id, coordi_ticket *ret)
{
    unsigned char bytes[16];
    size_t len = 0;
    if (sodium_hex2bin(bytes, sizeof bytes, id, strlen(id), "-", &len, NULL) != 0 ||
        len != sizeof bytes) {
        return false;
    }
    uint64_t halves[2] = {get_64(bytes), get_64(bytes + 8)};
    if (low_bits(halves[0] >> 12, 4) != 8 || halves[1] >> 62 != 2) {
        return false;
    }
    uint64_t first = (halves[0] >> 16) << 12 | low_bits(halves[0], 12);
    uint64_t sequence_low = low_bits(halves[1] >> SEAL_BITS, SEQUENCE_LOW);
    if (low_bits(halves[1], SEAL_BITS) != seal(key, first, sequence_low)) {
        return false;
    }
    ret->sequence = low_bits(first, SEQUENCE_HIGH) << SEQUENCE_LOW | sequence_low;
    first >>= SEQUENCE_HIGH;
    ret->kind = (coordi_ticket_kind)low_bits(first, KIND_BITS);
    first >>= KIND_BITS;
    ret->attempt = (uint32_t)low_bits(first, ATTEMPT_BITS);
    ret->task = first >> ATTEMPT_BITS;
    return true;
}

uint32_t coordi_ticket_attempt(uint32_t attempt)
{
    return (uint32_t)low_bits(attempt, ATTEMPT_BITS);
}

uint64_t coordi_ticket_sequence(uint64_t sequence)
{
    return low_bits(sequence, SEQUENCE_BITS);
}
