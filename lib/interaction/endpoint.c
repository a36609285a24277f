#include "interaction/endpoint.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

static bool method_fits(const char *asked, const char *routed)
{
    return strcmp(asked, routed) == 0 ||
           (strcmp(asked, "HEAD") == 0 && strcmp(routed, "GET") == 0);
}

void coordi_endpoint_dispatch(coord_loop *loop, const coordi_route *routes, size_t count,
                              coordi_http_call *call, void *owner)
{
    coordi_say say = COORDI_SAY_NO_ENDPOINT;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(call->path, routes[i].path) != 0) {
            continue;
        }
        if (method_fits(call->method, routes[i].method)) {
            routes[i].handle(call, owner);
            return;
        }
        say = COORDI_SAY_NO_METHOD;
    }
    coordi_endpoint_answer(loop, call, say, NULL, (coord_text){NULL, 0});
}

void coordi_endpoint_answer(coord_loop *loop, coordi_http_call *call, coordi_say say,
                            const char *message, coord_text data)
{
    size_t len = 0;
    char *body = coordi_wire_answer(say, message, data, &len);
    loop->env->http_answer(call, coordi_wire_status(say), body, len);
}

void coordi_endpoint_new_token(coord_loop *loop, char out[COORDI_TOKEN_SIZE])
{
    static const char HEX[] = "0123456789abcdef";
    unsigned char bytes[(COORDI_TOKEN_SIZE - 1) / 2];

    loop->env->random(loop, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[2 * i] = HEX[bytes[i] >> 4];
        out[2 * i + 1] = HEX[bytes[i] & 15];
    }
    out[COORDI_TOKEN_SIZE - 1] = '\0';
}

bool coordi_endpoint_token_is(const char *given, const char *own)
{
    size_t len = strlen(own);
    if (strlen(given) != len) {
        return false;
    }
    unsigned char differ = 0;
    for (size_t i = 0; i < len; i++) {
        differ = (unsigned char)(differ | (given[i] ^ own[i]));
    }
    return differ == 0;
}

coord_status coordi_endpoint_check_host(const char *host, bool insecure, const char *what,
                                        coord_error *err)
{
    if (!coordi_address_is_host(host)) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "%s: host must be a host's name or address, without port and "
                           "brackets, got \"%.100s\"",
                           what, host);
    }
    if (insecure || coordi_address_is_loopback(host)) {
        return COORD_OK;
    }
    return coordi_fail(
        err, COORD_ERR_ARG,
        "%s: host \"%s\" is beyond loopback, where anybody could talk to it; "
        "set insecure to true if its network is closed",
        what, host);
}
