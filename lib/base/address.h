/* Where a peer listens: [http://]host[:port][/prefix], IPv6 in brackets. */
#ifndef COORDI_BASE_ADDRESS_H
#define COORDI_BASE_ADDRESS_H

#include "coord/error.h"

enum { COORDI_HOST_SIZE = 256, COORDI_PREFIX_SIZE = 256 };

typedef struct coordi_address {
    char host[COORDI_HOST_SIZE];     /* without brackets */
    char prefix[COORDI_PREFIX_SIZE]; /* "" or "/some/path", no slash at the end */
    uint16_t port;
    bool https;
} coordi_address;

/* Reads an address; without a port it is 80, or 443 with https. */
coord_status coordi_address_read(const char *text, size_t len, coordi_address *ret,
                                 coord_error *err);

/* "host:port", with brackets around IPv6; `out` is always closed. */
enum { COORDI_HOST_PORT_SIZE = COORDI_HOST_SIZE + 10 };
void coordi_address_print(const char *host, uint16_t port,
                          char out[COORDI_HOST_PORT_SIZE]);

/* Could this be a host? A name, an IPv4 or an IPv6 address, without port and brackets. */
bool coordi_address_is_host(const char *host);

/* True for 127.0.0.0/8, ::1 and "localhost". */
bool coordi_address_is_loopback(const char *host);

#endif
