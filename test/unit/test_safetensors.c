#include "base/alloc.h"
#include "codec/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

/* A file of this header and `data_len` bytes 0, 1, 2, ..., in memory of its own, so that
 * a sanitizer sees a byte too many. Yours to free. */
static unsigned char *file_of(const char *header, size_t data_len, size_t *len)
{
    size_t size = strlen(header);
    *len = 8 + size + data_len;
    unsigned char *bytes = malloc(*len);
    assert_non_null(bytes);
    for (size_t i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)((uint64_t)size >> (8 * i) & 0xff);
    }
    for (size_t i = 0; i < size; i++) {
        bytes[8 + i] = (unsigned char)header[i];
    }
    for (size_t i = 0; i < data_len; i++) {
        bytes[8 + size + i] = (unsigned char)i;
    }
    return bytes;
}

static coord_status try_header(const char *header, size_t data_len,
                               const coord_safetensors_limits *limits, coord_error *err)
{
    size_t len;
    coord_safetensors *tensors = NULL;
    unsigned char *bytes = file_of(header, data_len, &len);
    coord_status rc = coord_safetensors_parse(bytes, len, limits, &tensors, err);
    assert_true((rc == COORD_OK) == (tensors != NULL));
    coord_safetensors_destroy(tensors);
    free(bytes);
    return rc;
}

/* ---- reading ---- */

static void tensors_are_found_with_all_that_belongs_to_them(void **state)
{
    (void)state;
    static const char HEADER[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"it\\u0065r\":\"7\"},"
        "\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]},"
        "\"b\" : {\"data_offsets\":[0,8],\"shape\":[],\"dtype\":\"I64\",\"more\":[NaN]},"
        "\"e\":{\"dtype\":\"BOOL\",\"shape\":[0,4],\"data_offsets\":[8,8]}}   ";
    size_t len;
    unsigned char *bytes = file_of(HEADER, 32, &len);
    coord_safetensors *st = NULL;
    assert_int_equal(coord_safetensors_parse(bytes, len, NULL, &st, NULL), COORD_OK);

    assert_int_equal(coord_safetensors_count(st), 3);
    const coord_tensor *w = coord_safetensors_find(st, "w");
    assert_ptr_equal(w, coord_safetensors_at(st, 0));
    assert_string_equal(w->name, "w");
    assert_int_equal(w->dtype, COORD_DTYPE_F32);
    assert_int_equal(w->rank, 2);
    assert_int_equal(w->shape[0], 2);
    assert_int_equal(w->shape[1], 3);
    assert_int_equal(w->bytes, 24);
    assert_ptr_equal(w->data, bytes + len - 24); /* borrowed from the bytes */
    const coord_tensor *b = coord_safetensors_find(st, "b");
    assert_int_equal(b->rank, 0);
    assert_int_equal(b->bytes, 8);
    const coord_tensor *e = coord_safetensors_find(st, "e");
    assert_int_equal(e->rank, 2);
    assert_int_equal(e->bytes, 0);

    assert_null(coord_safetensors_find(st, "x"));
    assert_null(coord_safetensors_find(st, "__metadata__"));
    assert_null(coord_safetensors_find(st, NULL));
    assert_null(coord_safetensors_at(st, 3));
    assert_string_equal(coord_safetensors_metadata(st, "format"), "pt");
    assert_string_equal(coord_safetensors_metadata(st, "iter"), "7");
    assert_null(coord_safetensors_metadata(st, "none"));
    assert_string_equal(coord_safetensors_metadata_at(st, 1)->key, "iter");
    assert_null(coord_safetensors_metadata_at(st, 2));
    coord_safetensors_destroy(st);
    free(bytes);
}

static void a_file_without_tensors_is_fine(void **state)
{
    (void)state;
    assert_int_equal(try_header("{}", 0, NULL, NULL), COORD_OK);
    assert_int_equal(try_header("{\"__metadata__\":{}}", 0, NULL, NULL), COORD_OK);
    coord_safetensors_destroy(NULL);
    assert_int_equal(coord_safetensors_count(NULL), 0);
    assert_null(coord_safetensors_find(NULL, "a"));
    assert_null(coord_safetensors_metadata(NULL, "a"));
}

#define ONE(name, dtype, shape, offsets)                                                 \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape                             \
    ",\"data_offsets\":" offsets "}"

static const struct {
    const char *header;
    size_t data_len;
    const char *said;
} LIE[] = {
    {"", 8, "expected '{' at the beginning"},
    {" {}", 0, "expected '{' at the beginning"},
    {"[]", 0, "expected '{' at the beginning"},
    {"{", 0, "safetensors: header"},
    {"{} x", 0, "safetensors: header"},
    {"{\"a\":\"\xff\"}", 0, "safetensors: header"},
    {"{\"a\":1}", 0, "tensor 'a': entry: expected an object, got 1"},
    {"{\"a\":{}}", 0, "entry: expected dtype, shape and data_offsets, got {}"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0, "data_offsets, got"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"
     "}",
     1, "tensor 'a': dtype: expected it once"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "tensor 'a': shape: expected it once"},
    {"{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "tensor 'a': dtype: expected a string, got 1"},
    {"{" ONE("a", "U8", "3", "[0,3]") "}", 3, "shape: expected an array, got 3"},
    {"{" ONE("a", "U8", "[-1]", "[0,1]") "}", 1, "shape: expected integers from 0"},
    {"{" ONE("a", "U8", "[1.0]", "[0,1]") "}", 1, "shape: expected integers from 0"},
    {"{" ONE("a", "U8", "[\"1\"]", "[0,1]") "}", 1, "shape: expected integers from 0"},
    {"{" ONE("a", "U8", "[9223372036854775808]", "[0,1]") "}", 1,
     "shape: expected integers from 0"},
    {"{" ONE("a", "U8", "[4294967296,4294967296]", "[0,1]") "}", 1,
     "shape: expected a size that fits in memory"},
    {"{" ONE("a", "U8", "[4294967296,4294967296,0]", "[0,0]") "}", 0,
     "shape: expected a size that fits in memory"},
    {"{" ONE("a", "F64", "[2305843009213693952]", "[0,0]") "}", 0,
     "shape: expected a size that fits in memory"},
    {"{" ONE("a", "U8", "[4]", "[0,3]") "}", 4, "takes 4 bytes, its data_offsets 3"},
    {"{" ONE("a", "F32", "[1]", "[0,1]") "}", 1, "takes 4 bytes, its data_offsets 1"},
    {"{" ONE("a", "U8", "[]", "[0,0]") "}", 0, "takes 1 bytes, its data_offsets 0"},
    {"{" ONE("a", "U8", "[1]", "[0]") "}", 1, "data_offsets: expected [begin, end]"},
    {"{" ONE("a", "U8", "[1]", "[0,1,1]") "}", 1, "data_offsets: expected [begin, end]"},
    {"{" ONE("a", "U8", "[1]", "{}") "}", 1, "data_offsets: expected [begin, end]"},
    {"{" ONE("a", "U8", "[1]", "[0.0,1]") "}", 1, "data_offsets: expected [begin, end]"},
    {"{" ONE("a", "U8", "[1]", "[-1,0]") "}", 1, "data_offsets: expected [begin, end]"},
    {"{" ONE("a", "U8", "[1]", "[1,0]") "}", 1, "data_offsets: expected [begin, end]"},
    {"{" ONE("a", "U8", "[2]", "[0,2]") "}", 1, "expected offsets up to 1, got [0,2]"},
    {"{" ONE("a", "U8", "[1]", "[9223372036854775806,9223372036854775807]") "}", 1,
     "expected offsets up to 1"},
    {"{" ONE("a", "U8", "[1]", "[0,18446744073709551617]") "}", 1, "[begin, end]"},
    {"{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("b", "U8", "[2]", "[1,3]") "}", 3,
     "tensor 'b': an overlap, its data begins at 1 instead of 2"},
    {"{" ONE("a", "U8", "[2]", "[0,2]") "," ONE("b", "U8", "[2]", "[0,2]") "}", 2,
     "an overlap"},
    {"{" ONE("a", "U8", "[1]", "[0,1]") "," ONE("b", "U8", "[1]", "[2,3]") "}", 3,
     "tensor 'b': a hole before it, its data begins at 2 instead of 1"},
    {"{" ONE("a", "U8", "[1]", "[1,2]") "}", 2, "tensor 'a': a hole before it"},
    {"{" ONE("a", "U8", "[0]", "[1,1]") "," ONE("b", "U8", "[2]", "[0,2]") "}", 2,
     "tensor 'a': an overlap"},
    {"{" ONE("a", "U8", "[1]", "[0,1]") "}", 2, "2 bytes of data, the tensors take 1"},
    {"{}", 1, "1 bytes of data, the tensors take 0"},
    {"{" ONE("a", "U8", "[1]", "[0,1]") "," ONE("a", "U8", "[1]", "[1,2]") "}", 2,
     "tensor 'a': the name comes twice"},
    {"{" ONE("a", "U8", "[1]", "[0,1]") "," ONE("\\u0061", "U8", "[0]", "[1,1]") "}", 1,
     "tensor 'a': the name comes twice"},
    {"{" ONE("a\\u0000", "U8", "[1]", "[0,1]") "}", 1, "name of a tensor: expected"},
    {"{" ONE("a\\ud800", "U8", "[1]", "[0,1]") "}", 1, "name of a tensor: expected"},
    {"{\"__metadata__\":1}", 0, "__metadata__: expected an object of strings, got 1"},
    {"{\"__metadata__\":null}", 0, "__metadata__: expected an object of strings"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__: expected a string"},
    {"{\"__metadata__\":{\"a\":\"\\u0000\"}}", 0, "__metadata__: expected a string"},
    {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"1\"}}", 0, "the key 'a' comes twice"},
    {"{\"__metadata__\":{},\"__metadat\\u0061__\":{}}", 0, "two __metadata__"}};

static void every_lie_of_a_header_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(LIE); i++) {
        coord_error err = {0};
        coord_status rc = try_header(LIE[i].header, LIE[i].data_len, NULL, &err);
        if (rc != COORD_ERR_FORMAT || strstr(err.text, LIE[i].said) == NULL) {
            fail_msg("%s: expected %s; got %d, %s", LIE[i].header, LIE[i].said, rc,
                     err.text);
        }
        assert_int_equal(try_header(LIE[i].header, LIE[i].data_len, NULL, NULL),
                         COORD_ERR_FORMAT);
    }
}

static void a_malformed_header_says_where(void **state)
{
    (void)state;
    coord_error err;
    assert_int_equal(try_header("{\"a\":}", 0, NULL, &err), COORD_ERR_FORMAT);
    assert_string_equal(err.text, "safetensors: header");
    assert_string_equal(err.cause, "JSON, byte 5: expected a value, got '}'");
}

static void empty_tensors_may_stand_anywhere(void **state)
{
    (void)state;
    assert_int_equal(
        try_header(
            "{" ONE("b", "U8", "[2]", "[0,2]") "," ONE("a", "U8", "[0]", "[0,0]") "," ONE(
                "c", "U8", "[0]", "[2,2]") "," ONE("d", "U8", "[0]", "[2,2]") "}",
            2, NULL, NULL),
        COORD_OK);
}

static void an_unknown_type_is_not_supported(void **state)
{
    (void)state;
    coord_error err;
    assert_int_equal(try_header("{" ONE("a", "F4", "[2]", "[0,1]") "}", 1, NULL, &err),
                     COORD_ERR_UNSUPPORTED);
    assert_string_equal(
        err.text, "safetensors: tensor 'a': dtype: expected a known type, got \"F4\"");
    assert_int_equal(
        try_header("{" ONE("a", "a very long name of a type", "[2]", "[0,1]") "}", 1,
                   NULL, &err),
        COORD_ERR_UNSUPPORTED);
    assert_int_equal(try_header("{" ONE("a", "f32", "[1]", "[0,4]") "}", 4, NULL, &err),
                     COORD_ERR_UNSUPPORTED);
    assert_int_equal(try_header("{" ONE("a", "", "[1]", "[0,4]") "}", 4, NULL, &err),
                     COORD_ERR_UNSUPPORTED);
}

static void every_type_is_known_by_name_and_size(void **state)
{
    (void)state;
    static const struct {
        coord_dtype dtype;
        const char *name;
        size_t size;
    } TYPE[] = {{COORD_DTYPE_BOOL, "BOOL", 1},       {COORD_DTYPE_U8, "U8", 1},
                {COORD_DTYPE_I8, "I8", 1},           {COORD_DTYPE_F8_E5M2, "F8_E5M2", 1},
                {COORD_DTYPE_F8_E4M3, "F8_E4M3", 1}, {COORD_DTYPE_F8_E8M0, "F8_E8M0", 1},
                {COORD_DTYPE_I16, "I16", 2},         {COORD_DTYPE_U16, "U16", 2},
                {COORD_DTYPE_F16, "F16", 2},         {COORD_DTYPE_BF16, "BF16", 2},
                {COORD_DTYPE_I32, "I32", 4},         {COORD_DTYPE_U32, "U32", 4},
                {COORD_DTYPE_F32, "F32", 4},         {COORD_DTYPE_C64, "C64", 8},
                {COORD_DTYPE_F64, "F64", 8},         {COORD_DTYPE_I64, "I64", 8},
                {COORD_DTYPE_U64, "U64", 8}};
    for (size_t i = 0; i < COUNT(TYPE); i++) {
        char header[128];
        coord_error err;
        assert_int_equal(coord_dtype_size(TYPE[i].dtype), TYPE[i].size);
        assert_string_equal(coord_dtype_str(TYPE[i].dtype), TYPE[i].name);
        (void)snprintf(
            header, sizeof header,
            "{\"a\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%zu]}}",
            TYPE[i].name, 3 * TYPE[i].size);
        if (try_header(header, 3 * TYPE[i].size, NULL, &err) != COORD_OK) {
            fail_msg("%s: %s", TYPE[i].name, err.text);
        }
    }
    assert_int_equal(coord_dtype_size((coord_dtype)0), 0);
    assert_string_equal(coord_dtype_str((coord_dtype)99), "?");
}

static void the_length_of_the_header_may_lie(void **state)
{
    (void)state;
    coord_error err;
    coord_safetensors *st = NULL;
    size_t len;
    unsigned char *bytes = file_of("{}", 0, &len);
    for (size_t cut = 0; cut < len; cut++) {
        coord_status rc = coord_safetensors_parse(bytes, cut, NULL, &st, &err);
        assert_int_equal(rc, COORD_ERR_FORMAT);
    }
    assert_string_equal(err.text, "safetensors: a header of 2 bytes, but only 1 follow");
    memset(bytes, 0xff, 8);
    assert_int_equal(coord_safetensors_parse(bytes, len, NULL, &st, &err),
                     COORD_ERR_TOO_BIG);
    coord_safetensors_limits none;
    coord_safetensors_limits_init(&none, sizeof none);
    none.max_header_bytes = 0;
    assert_int_equal(coord_safetensors_parse(bytes, len, &none, &st, &err),
                     COORD_ERR_FORMAT);
    assert_int_equal(coord_safetensors_parse(NULL, 0, NULL, &st, &err), COORD_ERR_FORMAT);
    assert_int_equal(coord_safetensors_parse(NULL, 1, NULL, &st, &err), COORD_ERR_ARG);
    assert_int_equal(coord_safetensors_parse(bytes, len, NULL, NULL, &err),
                     COORD_ERR_ARG);
    assert_null(st);
    free(bytes);
}

static void limits_are_kept(void **state)
{
    (void)state;
    static const char TWO[] =
        "{" ONE("a", "U8", "[1,1,1]", "[0,1]") "," ONE("b", "U8", "[]", "[1,2]") "}";
    coord_error err;
    coord_safetensors_limits limits;
    coord_safetensors_limits_init(&limits, sizeof limits);
    assert_int_equal(limits.max_header_bytes, 16 << 20);
    limits.max_tensors = 2;
    limits.max_rank = 3;
    limits.max_header_bytes = sizeof TWO - 1;
    limits.max_total_bytes = 8 + sizeof TWO - 1 + 2;
    assert_int_equal(try_header(TWO, 2, &limits, &err), COORD_OK);

    limits.max_tensors = 1;
    assert_int_equal(try_header(TWO, 2, &limits, &err), COORD_ERR_TOO_BIG);
    assert_string_equal(err.text, "safetensors: 2 tensors, the limit is 1");
    limits.max_tensors = 0;
    limits.max_rank = 2;
    assert_int_equal(try_header(TWO, 2, &limits, &err), COORD_ERR_TOO_BIG);
    assert_string_equal(err.text, "safetensors: tensor 'a': a rank over the limit of 2");
    limits.max_rank = 0;
    limits.max_header_bytes--;
    assert_int_equal(try_header(TWO, 2, &limits, &err), COORD_ERR_TOO_BIG);
    limits.max_header_bytes = 0;
    limits.max_total_bytes--;
    assert_int_equal(try_header(TWO, 2, &limits, &err), COORD_ERR_TOO_BIG);
    limits.max_total_bytes = 0;
    assert_int_equal(try_header(TWO, 2, &limits, &err), COORD_OK);
    limits.size = 0;
    assert_int_equal(try_header(TWO, 2, &limits, &err), COORD_ERR_ABI);
}

static void reading_survives_any_failed_allocation(void **state)
{
    (void)state;
    static const char HEADER[] = "{\"__metadata__\":{\"x\":\"1\",\"y\":\"2\"}," ONE(
        "a", "U8", "[1,2]", "[0,2]") "," ONE("b", "U8", "[]", "[2,3]") "}";
    size_t len;
    unsigned char *bytes = file_of(HEADER, 3, &len);
    coord_safetensors *st = NULL;
    coord_status rc = COORD_ERR_NOMEM;
    int limit = 0;
    for (; rc == COORD_ERR_NOMEM; limit++) {
        int left = limit;
        assert_null(st);
        coordi_alloc_set_fault(countdown, &left);
        rc = coord_safetensors_parse(bytes, len, NULL, &st, NULL);
        coordi_alloc_set_fault(NULL, NULL);
    }
    assert_int_equal(rc, COORD_OK);
    assert_true(limit > 6);
    coord_safetensors_destroy(st);
    free(bytes);
}

static void adopted_bytes_are_freed_with_the_object(void **state)
{
    (void)state;
    size_t len;
    unsigned char *bytes = file_of("{" ONE("a", "U8", "[1]", "[0,1]") "}", 1, &len);
    char *own = coordi_memdup((const char *)bytes, len);
    free(bytes);
    coord_safetensors *st = NULL;
    assert_int_equal(coordi_safetensors_adopt(own, len - 1, NULL, &st, NULL),
                     COORD_ERR_FORMAT); /* still ours */
    assert_int_equal(coordi_safetensors_adopt(own, len, NULL, &st, NULL), COORD_OK);
    assert_int_equal(*(const char *)coord_safetensors_at(st, 0)->data, 0);
    coord_safetensors_destroy(st);
}

/* ---- one tensor ---- */

static void elements_are_copied_whatever_their_alignment(void **state)
{
    (void)state;
    float store[4] = {0};
    const float values[2] = {1.5F, -2.0F};
    float out[2] = {0};
    const int64_t shape[] = {2};
    coord_error err;
    char *odd = (char *)store + 1;
    memcpy(odd, values, sizeof values);
    coord_tensor t = {"w", COORD_DTYPE_F32, 1, shape, odd, sizeof values};
    assert_false(coord_tensor_aligned(&t));
    assert_int_equal(coord_tensor_copy(&t, COORD_DTYPE_F32, out, 2, &err), COORD_OK);
    assert_memory_equal(out, values, sizeof values);
    t.data = store;
    assert_true(coord_tensor_aligned(&t));

    out[0] = 9;
    assert_int_equal(coord_tensor_copy(&t, COORD_DTYPE_I32, out, 2, &err),
                     COORD_ERR_FORMAT);
    assert_string_equal(err.text, "tensor 'w': expected 2 of I32, got 2 of F32");
    assert_int_equal(coord_tensor_copy(&t, COORD_DTYPE_F32, out, 1, &err),
                     COORD_ERR_FORMAT);
    assert_string_equal(err.text, "tensor 'w': expected 1 of F32, got 2 of F32");
    assert_true(out[0] == 9);
    assert_int_equal(coord_tensor_copy(&t, COORD_DTYPE_F32, NULL, 2, &err),
                     COORD_ERR_ARG);
    assert_int_equal(coord_tensor_copy(NULL, COORD_DTYPE_F32, out, 2, &err),
                     COORD_ERR_ARG);
    t.bytes = 0;
    t.data = NULL;
    assert_int_equal(coord_tensor_copy(&t, COORD_DTYPE_F32, NULL, 0, &err), COORD_OK);
}

/* ---- writing ---- */

static const int64_t SHAPE2[] = {2};
static const int64_t SHAPE12[] = {1, 2};
static const float FLOATS[] = {1, 2};
static const unsigned char SMALL[] = {5, 6};
static const int64_t LONGS[] = {7, 8};
static const coord_tensor TENSORS[] = {
    {"z\"", COORD_DTYPE_F32, 2, SHAPE12, FLOATS, sizeof FLOATS},
    {"m", COORD_DTYPE_U8, 1, SHAPE2, SMALL, sizeof SMALL},
    {"a", COORD_DTYPE_F32, 0, NULL, FLOATS, 4},
    {"k", COORD_DTYPE_I64, 1, SHAPE2, LONGS, sizeof LONGS}};
static const coord_safetensors_meta META[] = {{"z", "last"}, {"a", "\n\xc3\xa9"}};

static void the_order_is_that_of_the_usual_writers(void **state)
{
    (void)state;
    static const char EXPECTED[] =
        "{\"__metadata__\":{\"z\":\"last\",\"a\":\"\\u000a\xc3\xa9\"},"
        "\"k\":{\"dtype\":\"I64\",\"shape\":[2],\"data_offsets\":[0,16]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[16,20]},"
        "\"z\\\"\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[20,28]},"
        "\"m\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[28,30]}}";
    char *bytes = NULL;
    size_t len = 0;
    assert_int_equal(coord_safetensors_write(TENSORS, 4, META, 2, &bytes, &len, NULL),
                     COORD_OK);
    size_t head = len - 30;
    assert_int_equal(head % 8, 0);
    assert_true(head - 8 >= sizeof EXPECTED - 1 && head - 8 < sizeof EXPECTED - 1 + 8);
    assert_int_equal((unsigned char)bytes[0] | (unsigned char)bytes[1] << 8, head - 8);
    assert_memory_equal(bytes + 8, EXPECTED, sizeof EXPECTED - 1);
    for (size_t i = 8 + sizeof EXPECTED - 1; i < head; i++) {
        assert_int_equal(bytes[i], ' ');
    }
    assert_memory_equal(bytes + head, LONGS, 16);
    assert_memory_equal(bytes + head + 28, SMALL, 2);

    /* The same tensors in another order give the same bytes. */
    const coord_tensor turned[] = {TENSORS[3], TENSORS[2], TENSORS[1], TENSORS[0]};
    char *again = NULL;
    size_t again_len = 0;
    assert_int_equal(
        coord_safetensors_write(turned, 4, META, 2, &again, &again_len, NULL), COORD_OK);
    assert_int_equal(again_len, len);
    assert_memory_equal(again, bytes, len);
    coord_free(again);
    coord_free(bytes);
}

static void what_was_written_is_read_back(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t len = 0;
    coord_safetensors *st = NULL;
    float out[2];
    assert_int_equal(coord_safetensors_write(TENSORS, 4, META, 2, &bytes, &len, NULL),
                     COORD_OK);
    assert_int_equal(coord_safetensors_parse(bytes, len, NULL, &st, NULL), COORD_OK);
    assert_int_equal(coord_safetensors_count(st), 4);
    const coord_tensor *z = coord_safetensors_find(st, "z\"");
    assert_int_equal(coord_tensor_copy(z, COORD_DTYPE_F32, out, 2, NULL), COORD_OK);
    assert_memory_equal(out, FLOATS, sizeof out);
    assert_string_equal(coord_safetensors_metadata(st, "a"), "\n\xc3\xa9");
    for (size_t i = 0; i < 4; i++) {
        assert_true(coord_tensor_aligned(coord_safetensors_at(st, i)));
    }
    coord_safetensors_destroy(st);
    coord_free(bytes);
}

static void nothing_can_be_written_too(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t len = 0;
    coord_safetensors *st = NULL;
    assert_int_equal(coord_safetensors_write(NULL, 0, NULL, 0, &bytes, &len, NULL),
                     COORD_OK);
    assert_int_equal(len, 16);
    assert_memory_equal(bytes, "\x08\0\0\0\0\0\0\0{}      ", 16);
    assert_int_equal(coord_safetensors_parse(bytes, len, NULL, &st, NULL), COORD_OK);
    coord_safetensors_destroy(st);
    coord_free(bytes);
}

static void assert_refused(const coord_tensor *tensors, size_t count, coord_status status,
                           const char *said)
{
    coord_error err = {0};
    char *bytes = NULL;
    size_t len = 0;
    coord_status rc =
        coord_safetensors_write(tensors, count, NULL, 0, &bytes, &len, &err);
    if (rc != status || strstr(err.text, said) == NULL || bytes != NULL) {
        fail_msg("expected %d, %s; got %d, %s", status, said, rc, err.text);
    }
}

static void tensors_that_make_no_sense_are_not_written(void **state)
{
    (void)state;
    static const int64_t NEGATIVE[] = {2, -2};
    static const int64_t HUGE_DIMS[] = {INT64_MAX, INT64_MAX};
    coord_tensor t = TENSORS[1];
    t.name = NULL;
    assert_refused(&t, 1, COORD_ERR_ARG, "tensor 0: expected a name, got NULL");
    t.name = "__metadata__";
    assert_refused(&t, 1, COORD_ERR_ARG, "expected a name, got __metadata__");
    t.name = "\xff";
    assert_refused(&t, 1, COORD_ERR_ARG, "is not UTF-8");
    t = TENSORS[1];
    t.dtype = (coord_dtype)0;
    assert_refused(&t, 1, COORD_ERR_ARG, "tensor 'm': expected a dtype, got 0");
    t = TENSORS[1];
    t.shape = NULL;
    assert_refused(&t, 1, COORD_ERR_ARG, "expected a shape, got NULL");
    t = TENSORS[1];
    t.data = NULL;
    assert_refused(&t, 1, COORD_ERR_ARG, "expected data, got NULL");
    t = TENSORS[1];
    t.bytes = 3;
    assert_refused(&t, 1, COORD_ERR_ARG, "its shape takes 2 bytes, got 3");
    t.rank = 2;
    t.shape = NEGATIVE;
    assert_refused(&t, 1, COORD_ERR_ARG, "shape[1] is -2");
    t.shape = HUGE_DIMS;
    assert_refused(&t, 1, COORD_ERR_ARG, "tensor 'm': its shape takes");

    const coord_tensor twice[] = {TENSORS[0], TENSORS[1], TENSORS[0]};
    assert_refused(twice, 3, COORD_ERR_ARG, "tensor 'z\"': the name comes twice");
    assert_refused(NULL, 1, COORD_ERR_ARG, "required");

    static const int64_t HALF[] = {INT64_MAX};
    const coord_tensor large[] = {{"a", COORD_DTYPE_U8, 1, HALF, SMALL, INT64_MAX},
                                  {"b", COORD_DTYPE_U8, 1, HALF, SMALL, INT64_MAX}};
    assert_refused(large, 2, COORD_ERR_TOO_BIG,
                   "2 tensors do not fit in memory together");
}

static void metadata_that_makes_no_sense_is_not_written(void **state)
{
    (void)state;
    coord_error err;
    char *bytes = NULL;
    size_t len = 0;
    const coord_safetensors_meta none[] = {{"a", NULL}};
    const coord_safetensors_meta twice[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
    const coord_safetensors_meta odd[] = {{"a", "\xc3"}};
    assert_int_equal(coord_safetensors_write(NULL, 0, none, 1, &bytes, &len, &err),
                     COORD_ERR_ARG);
    assert_int_equal(coord_safetensors_write(NULL, 0, twice, 3, &bytes, &len, &err),
                     COORD_ERR_ARG);
    assert_string_equal(err.text, "safetensors: metadata: the key 'a' comes twice");
    assert_int_equal(coord_safetensors_write(NULL, 0, odd, 1, &bytes, &len, &err),
                     COORD_ERR_ARG);
    assert_int_equal(coord_safetensors_write(NULL, 0, NULL, 1, &bytes, &len, &err),
                     COORD_ERR_ARG);
    assert_int_equal(coord_safetensors_write(NULL, 0, NULL, 0, NULL, &len, &err),
                     COORD_ERR_ARG);
    assert_null(bytes);
}

static void writing_survives_any_failed_allocation(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t len = 0;
    coord_status rc = COORD_ERR_NOMEM;
    int limit = 0;
    for (; rc == COORD_ERR_NOMEM; limit++) {
        int left = limit;
        coordi_alloc_set_fault(countdown, &left);
        rc = coord_safetensors_write(TENSORS, 4, META, 2, &bytes, &len, NULL);
        coordi_alloc_set_fault(NULL, NULL);
        assert_true(rc == COORD_OK || bytes == NULL);
    }
    assert_int_equal(rc, COORD_OK);
    assert_true(limit > 3);
    coord_free(bytes);
}

/* ---- anything goes in, nothing breaks ---- */

static void random_changes_never_break_anything(void **state)
{
    (void)state;
    char *bytes = NULL;
    size_t len = 0;
    uint32_t seed = 11;
    size_t good = 0;
    assert_int_equal(coord_safetensors_write(TENSORS, 4, META, 2, &bytes, &len, NULL),
                     COORD_OK);
    for (int round = 0; round < 20000; round++) {
        char *copy = coordi_memdup(bytes, len);
        assert_non_null(copy);
        for (int i = 0; i < 1 + round % 3; i++) {
            seed = seed * 1664525U + 1013904223U;
            copy[(seed >> 8) % len] = "0123456789{}[],:\"aU "[(seed >> 4) % 20];
        }
        coord_safetensors *st = NULL;
        if (coord_safetensors_parse(copy, len, NULL, &st, NULL) == COORD_OK) {
            size_t sum = 0;
            for (size_t i = 0; i < coord_safetensors_count(st); i++) {
                const coord_tensor *t = coord_safetensors_at(st, i);
                assert_ptr_equal(coord_safetensors_find(st, t->name), t);
                sum += t->bytes;
            }
            assert_int_equal(sum, 30);
            good++;
        }
        coord_safetensors_destroy(st);
        coordi_free(copy);
    }
    assert_true(good > 0);
    coord_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found_with_all_that_belongs_to_them),
        cmocka_unit_test(a_file_without_tensors_is_fine),
        cmocka_unit_test(every_lie_of_a_header_is_named),
        cmocka_unit_test(a_malformed_header_says_where),
        cmocka_unit_test(empty_tensors_may_stand_anywhere),
        cmocka_unit_test(an_unknown_type_is_not_supported),
        cmocka_unit_test(every_type_is_known_by_name_and_size),
        cmocka_unit_test(the_length_of_the_header_may_lie),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(reading_survives_any_failed_allocation),
        cmocka_unit_test(adopted_bytes_are_freed_with_the_object),
        cmocka_unit_test(elements_are_copied_whatever_their_alignment),
        cmocka_unit_test(the_order_is_that_of_the_usual_writers),
        cmocka_unit_test(what_was_written_is_read_back),
        cmocka_unit_test(nothing_can_be_written_too),
        cmocka_unit_test(tensors_that_make_no_sense_are_not_written),
        cmocka_unit_test(metadata_that_makes_no_sense_is_not_written),
        cmocka_unit_test(writing_survives_any_failed_allocation),
        cmocka_unit_test(random_changes_never_break_anything),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
