#include "base/address.h"

#include "base/error.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool begins(const char *text, size_t len, const char *word)
{
    size_t n = strlen(word);
    return len >= n && strncasecmp(text, word, n) == 0;
}

static bool read_port(const char *text, size_t len, uint16_t *ret)
{
    unsigned value = 0;
    if (len == 0 || len > 5) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    if (value > 65535) {
        return false;
    }
    *ret = (uint16_t)value;
    return true;
}

/* fe80::1%eth0: the zone is the system's business. */
static bool is_v6(const char *host)
{
    char plain[INET6_ADDRSTRLEN];
    unsigned char bytes[16];
    size_t len = strcspn(host, "%");
    if (len >= sizeof plain) {
        return false;
    }
    memcpy(plain, host, len);
    plain[len] = '\0';
    return inet_pton(AF_INET6, plain, bytes) == 1;
}

bool coordi_address_is_host(const char *host)
{
    for (const char *at = host; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || strchr("/@?#\\\"<>[]\x7f", *at) != NULL) {
            return false;
        }
    }
    return host[0] != '\0' && strlen(host) < COORDI_HOST_SIZE &&
           (strchr(host, ':') == NULL || is_v6(host));
}

/* Splits "host", "host:port", "[v6]", "[v6]:port". */
static bool split(const char *text, size_t len, coordi_address *ret)
{
    const char *host = text;
    size_t host_len;
    const char *rest;
    if (len > 0 && text[0] == '[') {
        const char *close = memchr(text, ']', len);
        if (close == NULL) {
            return false;
        }
        host = text + 1;
        host_len = (size_t)(close - host);
        rest = close + 1;
    } else {
        const char *colon = memchr(text, ':', len);
        host_len = colon == NULL ? len : (size_t)(colon - text);
        rest = text + host_len;
    }
    if (host_len == 0 || host_len >= sizeof ret->host ||
        memchr(host, '\0', host_len) != NULL) {
        return false;
    }
    memcpy(ret->host, host, host_len);
    ret->host[host_len] = '\0';
    bool bracketed = host > text;
    if (!coordi_address_is_host(ret->host) ||
        bracketed != (strchr(ret->host, ':') != NULL)) {
        return false;
    }
    size_t rest_len = len - (size_t)(rest - text);
    return rest_len == 0 ||
           (rest[0] == ':' && read_port(rest + 1, rest_len - 1, &ret->port));
}

coord_status coordi_address_read(const char *text, size_t len, coordi_address *ret,
                                 coord_error *err)
{
    coordi_address got = {.port = 80};
    const char *at = text;
    size_t left = len;
    if (begins(at, left, "https://")) {
        got.https = true;
        got.port = 443;
        at += 8;
    } else if (begins(at, left, "http://")) {
        at += 7;
    }
    left -= (size_t)(at - text);
    const char *slash = memchr(at, '/', left);
    size_t host_len = slash == NULL ? left : (size_t)(slash - at);
    size_t prefix_len = left - host_len;
    while (prefix_len > 0 && slash[prefix_len - 1] == '/') {
        prefix_len--;
    }
    bool clean = prefix_len < sizeof got.prefix && split(at, host_len, &got);
    for (size_t i = 0; clean && i < prefix_len; i++) {
        clean = (unsigned char)slash[i] > ' ' && (unsigned char)slash[i] < 0x7f;
    }
    if (!clean) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "address must be [http://]host[:port][/path], got \"%.*s\"",
                           (int)(len > 100 ? 100 : len), text);
    }
    if (prefix_len > 0) {
        memcpy(got.prefix, slash, prefix_len);
    }
    *ret = got;
    return COORD_OK;
}

void coordi_address_print(const char *host, uint16_t port,
                          char out[COORDI_HOST_PORT_SIZE])
{
    bool v6 = strchr(host, ':') != NULL;
    (void)snprintf(out, COORDI_HOST_PORT_SIZE, "%s%.255s%s:%u", v6 ? "[" : "", host,
                   v6 ? "]" : "", (unsigned)port);
}

bool coordi_address_is_loopback(const char *host)
{
    static const unsigned char ONE[16] = {[15] = 1};
    unsigned char v4[4];
    unsigned char v6[16];
    return strcmp(host, "localhost") == 0 ||
           (inet_pton(AF_INET, host, v4) == 1 && v4[0] == 127) ||
           (inet_pton(AF_INET6, host, v6) == 1 && memcmp(v6, ONE, sizeof v6) == 0);
}
