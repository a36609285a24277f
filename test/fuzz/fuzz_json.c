/* Any bytes as JSON: every reader has to be harmless, and they have to agree. */
#include "base/buf.h"
#include "codec/json.h"
#include "coord/json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void try_value(coord_text in)
{
    char out[32];
    double real;
    int64_t integer;
    bool truth;
    coordi_buf buf = {0};
    if (coordi_json_int(in, &integer)) {
        must(coordi_json_double(in, &real));
    }
    (void)coordi_json_bool(in, &truth);
    (void)coordi_json_truth(in);
    if (coordi_json_string(in, out, sizeof out) == COORD_OK) {
        must(coordi_json_string_is(in, out));
        must(coordi_json_string_add(in, &buf) == COORD_OK);
        must(buf.len == strlen(out) &&
             (buf.len == 0 || memcmp(buf.ptr, out, buf.len) == 0));
    }
    (void)coordi_json_string_add_any(in, &buf);
    coordi_buf_done(&buf);
}

static void try_walks(coord_text in)
{
    size_t at = 0;
    coord_text key;
    coord_text value;
    while (coordi_json_each(in, &at, &value)) {
        must(value.ptr > in.ptr && value.ptr + value.len <= in.ptr + in.len);
        try_value(value);
    }
    at = 0;
    while (coordi_json_each_member(in, &at, &key, &value)) {
        must(value.ptr + value.len <= in.ptr + in.len);
        try_value(key);
        try_value(value);
    }
    (void)coordi_json_prefix_get(in, "task.id", &value);
}

static void try_members(coord_text in, bool good)
{
    coordi_json_member member[] = {{.key = "id"}, {.key = "task"}};
    coordi_buf buf = {0};
    coord_text value;
    coord_status rc = coordi_json_get_many(in, member, 2, NULL);
    must(good == (rc != COORD_ERR_FORMAT));
    const coordi_json_member spliced[] = {{"id", {"[1]", 3}, true}, {.key = "task"}};
    must(coordi_json_splice(&buf, in, spliced, 2, NULL) == rc);
    if (rc == COORD_OK) {
        coord_text made = {buf.ptr, buf.len};
        must(coordi_json_get(made, "id", &value, NULL) == COORD_OK && value.len == 3);
        must(coordi_json_get(made, "task", &value, NULL) == COORD_ERR_NOT_FOUND);
    }
    coordi_buf_done(&buf);
}

/* A tree, its text, the tree of that and its text. (json_equal() stumbles over NUL bytes
 * in keys.) */
static void try_tree(coord_text in)
{
    json_t *json = NULL;
    json_t *again = NULL;
    char *out = NULL;
    char *out_again = NULL;
    size_t len = 0;
    size_t len_again = 0;
    if (coord_json_parse(in, &json, NULL) != COORD_OK) {
        return; /* too deep */
    }
    must(coord_json_text(json, &out, &len, NULL) == COORD_OK);
    must(coord_json_parse((coord_text){out, len}, &again, NULL) == COORD_OK);
    must(coord_json_text(again, &out_again, &len_again, NULL) == COORD_OK);
    must(len == len_again && memcmp(out, out_again, len) == 0);
    json_decref(json);
    json_decref(again);
    coord_free(out);
    coord_free(out_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    coord_text in = {(const char *)data, size};
    coord_error err;
    bool good = coordi_json_check(in, &err) == COORD_OK;
    try_value(in);
    try_walks(in);
    try_members(in, good);
    if (good) {
        try_tree(in);
    }
    return 0;
}
