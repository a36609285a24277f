/* Any bytes as what a peer sends: a body in either direction, a header, an id, an
 * address. Every reader has to be harmless, what it hands out lies within what it was
 * given, and what it says about it is one line of UTF-8. */
#include "base/address.h"
#include "base/alloc.h"
#include "codec/json.h"
#include "wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ID "12345678-1234-5678-1234-567812345678"

static void must(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void must_lie_within(coord_text slice, coord_text in)
{
    must(slice.len == 0 || (slice.ptr >= in.ptr && slice.len <= in.len &&
                            slice.ptr - in.ptr <= (ptrdiff_t)(in.len - slice.len)));
    must(slice.len == 0 || coordi_json_check(slice, NULL) == COORD_OK);
}

static void must_be_a_line(const char *text)
{
    coordi_buf buf = {0};
    must(text[0] != '\0' && text[strcspn(text, "\r\n")] == '\0');
    coordi_buf_add_json(&buf, text, strlen(text));
    must(coordi_json_check((coord_text){buf.ptr, buf.len}, NULL) == COORD_OK);
    coordi_buf_done(&buf);
}

static void must_be_canonical(const char id[COORDI_UUID_SIZE])
{
    char again[COORDI_UUID_SIZE];
    must(strlen(id) == COORDI_UUID_SIZE - 1);
    must(coordi_uuid_read(id, strlen(id), again) && strcmp(id, again) == 0);
}

typedef coordi_say reader(coord_text body, coordi_message *ret, char *why,
                          size_t why_size);

static coordi_say read_result(coord_text body, coordi_message *ret, char *why,
                              size_t why_size)
{
    char id[COORDI_UUID_SIZE] = "";
    coordi_say say = coordi_wire_read_result(body, ret, id, why, why_size);
    if (say == COORDI_SAY_NOTHING) {
        must_be_canonical(id);
    }
    return say;
}

static coordi_say read_cancel(coord_text body, coordi_message *ret, char *why,
                              size_t why_size)
{
    char id[COORDI_UUID_SIZE] = "";
    coordi_say say = coordi_wire_read_cancel(body, ret, id, why, why_size);
    if (say == COORDI_SAY_NOTHING) {
        must_be_canonical(id);
    }
    return say;
}

static void try_readers(coord_text in, bool good)
{
    static reader *const READ[] = {coordi_wire_read_connect, coordi_wire_read_disconnect,
                                   coordi_wire_read_new_task, read_result, read_cancel};
    for (size_t i = 0; i < 5; i++) {
        coordi_message got;
        char why[256] = "";
        coordi_say say = READ[i](in, &got, why, sizeof why);
        must(say < COORDI_SAY_COUNT && got.malformed == !good);
        must_lie_within(got.master, in);
        must_lie_within(got.id, in);
        must_lie_within(got.data, in);
        must_lie_within(got.result, in);
        if (say == COORDI_SAY_NOTHING) {
            must((i == 3 ? got.result : i == 4 ? got.id : got.data).len > 0);
        } else if (say != COORDI_SAY_NO_TASK && say != COORDI_SAY_NO_TASK_ID) {
            must_be_a_line(why);
        }
    }
    char id[COORDI_UUID_SIZE];
    if (coordi_wire_prefix_id(in, id)) {
        must_be_canonical(id);
    }
}

static void try_answer(coord_text in)
{
    static const int HTTP[] = {200, 302, 400, 500};
    for (size_t i = 0; i < 4; i++) {
        coordi_answer got;
        coord_error err;
        coord_status rc = coordi_wire_read_answer(HTTP[i], in, "x", &got, &err);
        must(rc == COORD_OK || rc == COORD_ERR_REFUSED || rc == COORD_ERR_PROTOCOL);
        must(rc != COORD_OK || (got.success && HTTP[i] < 400));
        must_lie_within(got.message, in);
        must_lie_within(got.data, in);
        if (rc != COORD_OK) {
            must(err.status == rc && err.http_status == HTTP[i]);
            must_be_a_line(err.text);
        }
    }
}

/* What we send with such data is read back. */
static void try_builders(coord_text in)
{
    coordi_message got;
    char why[256];
    size_t len = 0;
    char *body = coordi_wire_new_task(ID, in, &len);
    must(coordi_wire_read_new_task((coord_text){body, len}, &got, why, sizeof why) ==
         COORDI_SAY_NOTHING);
    must(coordi_json_truth(got.data) == coordi_json_truth(in));
    coordi_free(body);
    body = coordi_wire_result(ID, in, &len);
    must(read_result((coord_text){body, len}, &got, why, sizeof why) ==
         COORDI_SAY_NOTHING);
    must(coordi_json_truth(got.result) == coordi_json_truth(in));
    coordi_free(body);
    body = coordi_wire_answer(COORDI_SAY_TASK_REFUSED, NULL, in, &len);
    coordi_answer answer;
    must(coordi_wire_read_answer(403, (coord_text){body, len}, "x", &answer, NULL) ==
         COORD_ERR_REFUSED);
    must(answer.code == COORDI_CODE_TASK_REFUSED);
    coordi_free(body);
}

static void try_words(coord_text in)
{
    char id[COORDI_UUID_SIZE];
    char place[COORDI_HOST_PORT_SIZE];
    coordi_address address;
    coordi_address again;
    coord_error err;
    if (coordi_uuid_read(in.ptr, in.len, id)) {
        must_be_canonical(id);
    }
    if (coordi_address_read(in.ptr, in.len, &address, &err) == COORD_OK) {
        must(coordi_address_is_host(address.host));
        coordi_address_print(address.host, address.port, place);
        must(coordi_address_read(place, strlen(place), &again, NULL) == COORD_OK);
        must(strcmp(address.host, again.host) == 0 && address.port == again.port);
    } else {
        must_be_a_line(err.text);
    }
    char *header = coordi_memdup(in.ptr, in.len);
    if (coordi_wire_check_channel(header, 7) == COORDI_SAY_NOTHING) {
        must(strchr(header, '7') != NULL);
    }
    (void)coordi_wire_seen_body(header, in);
    coordi_free(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const coord_text in = {size == 0 ? "" : (const char *)data, size};
    const bool good = coordi_json_check(in, NULL) == COORD_OK;
    try_readers(in, good);
    try_answer(in);
    try_words(in);
    if (good) {
        try_builders(in);
    }
    return 0;
}
