/* Reading safetensors. The header comes from elsewhere and may lie in every number, so
 * each is checked before it is used; what it says is kept in four allocations whose sizes
 * a first pass over the header counts. Names are sorted, not hashed: no header is slow to
 * read. */
#include "codec/safetensors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/options.h"
#include "codec/json.h"
#include "codec/safetensors_dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct coord_safetensors {
    coord_tensor *tensors; /* owned, in the order of the header */
    size_t count;
    const coord_tensor **sorted;  /* owned; by name, in the end */
    coord_safetensors_meta *meta; /* owned, in the order of the header */
    size_t meta_count;
    int64_t *dims; /* owned: the shapes, one after another */
    char *strings; /* owned: names, keys and values, one after another */
    char *bytes;   /* owned by an object that was read from a file, else NULL */
};

/* One parse. */
typedef struct reader {
    coord_safetensors *to;
    coord_safetensors_limits limits;
    coord_text header;
    const char *data;
    size_t data_len;
    size_t dim_count; /* in the first pass: needed; in the second: used */
    size_t string_at; /* used bytes of `strings` */
    coord_error *err;
} reader;

static const coord_safetensors_limits DEFAULTS = {
    .size = sizeof(coord_safetensors_limits),
    .max_header_bytes = 16U << 20,
    .max_tensors = 65536,
    .max_rank = 64,
    .max_total_bytes = (uint64_t)4 << 30,
};

static const char META_KEY[] = "__metadata__";

void coord_safetensors_limits_init(coord_safetensors_limits *limits, size_t size)
{
    coordi_options_init(limits, size, &DEFAULTS, sizeof DEFAULTS);
}

static coord_status adopt_limits(coord_safetensors_limits *ours,
                                 const coord_safetensors_limits *theirs, coord_error *err)
{
    *ours = DEFAULTS;
    return theirs == NULL ? COORD_OK
                          : coordi_options_adopt(ours, sizeof *ours, theirs,
                                                 "coord_safetensors_limits", err);
}

static bool over(uint64_t limit, uint64_t value)
{
    return limit != 0 && value > limit;
}

/* ---- frame: the length, the header, the data ---- */

static coord_status check_total(const coord_safetensors_limits *limits, uint64_t total,
                                coord_error *err)
{
    if (over(limits->max_total_bytes, total)) {
        return coordi_fail(
            err, COORD_ERR_TOO_BIG, "safetensors: %llu bytes, the limit is %llu",
            (unsigned long long)total, (unsigned long long)limits->max_total_bytes);
    }
    return COORD_OK;
}

static coord_status read_frame(reader *r, const char *bytes, size_t len)
{
    coord_error cause;
    uint64_t size = 0;

    coord_status rc = check_total(&r->limits, len, r->err);
    if (rc != COORD_OK) {
        return rc;
    }
    if (len < 8) {
        return coordi_fail(r->err, COORD_ERR_FORMAT,
                           "safetensors: expected 8 bytes of header length, got %zu",
                           len);
    }
    for (size_t i = 8; i-- > 0;) {
        size = size << 8 | (unsigned char)bytes[i];
    }
    if (over(r->limits.max_header_bytes, size)) {
        return coordi_fail(r->err, COORD_ERR_TOO_BIG,
                           "safetensors: a header of %llu bytes, the limit is %llu",
                           (unsigned long long)size,
                           (unsigned long long)r->limits.max_header_bytes);
    }
    if (size > len - 8) {
        return coordi_fail(r->err, COORD_ERR_FORMAT,
                           "safetensors: a header of %llu bytes, but only %zu follow",
                           (unsigned long long)size, len - 8);
    }
    r->header = (coord_text){bytes + 8, (size_t)size};
    r->data = bytes + 8 + size;
    r->data_len = len - 8 - (size_t)size;
    if (size == 0 || bytes[8] != '{') {
        return coordi_fail(r->err, COORD_ERR_FORMAT,
                           "safetensors: expected '{' at the beginning of the header");
    }
    if (coordi_json_check(r->header, &cause) != COORD_OK) {
        return coordi_fail_because(r->err, COORD_ERR_FORMAT, &cause,
                                   "safetensors: header");
    }
    return COORD_OK;
}

/* ---- first pass: how much there is ---- */

static size_t count_members(coord_text object)
{
    size_t count = 0;
    size_t at = 0;
    coord_text key;
    coord_text value;
    while (coordi_json_each_member(object, &at, &key, &value)) {
        count++;
    }
    return count;
}

static size_t count_items(coord_text array)
{
    size_t count = 0;
    size_t at = 0;
    coord_text item;
    while (coordi_json_each(array, &at, &item)) {
        count++;
    }
    return count;
}

/* Room for every "shape" that is an array, wherever it stands: enough, and at most a few
 * too many when an entry has two, which is refused later. */
static size_t count_dims(coord_text entry)
{
    size_t count = 0;
    size_t at = 0;
    coord_text key;
    coord_text value;
    while (coordi_json_each_member(entry, &at, &key, &value)) {
        count += coordi_json_string_is(key, "shape") ? count_items(value) : 0;
    }
    return count;
}

static void *alloc_array(size_t count, size_t size)
{
    return count > SIZE_MAX / size ? NULL : coordi_zalloc(count * size);
}

/* Counts, checks the number of tensors, and makes room for all of it. */
static coord_status make_room(reader *r)
{
    coord_safetensors *to = r->to;
    size_t tensors = 0;
    size_t lines = 0;
    size_t at = 0;
    coord_text key;
    coord_text value;
    while (coordi_json_each_member(r->header, &at, &key, &value)) {
        if (coordi_json_string_is(key, META_KEY)) {
            lines += count_members(value);
        } else {
            tensors++;
            r->dim_count += count_dims(value);
        }
    }
    if (over(r->limits.max_tensors, tensors)) {
        return coordi_fail(r->err, COORD_ERR_TOO_BIG,
                           "safetensors: %zu tensors, the limit is %llu", tensors,
                           (unsigned long long)r->limits.max_tensors);
    }
    to->tensors = alloc_array(tensors, sizeof *to->tensors);
    to->sorted = alloc_array(tensors, sizeof(const coord_tensor *));
    to->meta = alloc_array(lines, sizeof *to->meta);
    to->dims = alloc_array(r->dim_count, sizeof *to->dims);
    /* Each string loses two quotes and gains a NUL. */
    to->strings = coordi_alloc(r->header.len);
    r->dim_count = 0;
    if (to->tensors == NULL || to->sorted == NULL || to->meta == NULL ||
        to->dims == NULL || to->strings == NULL) {
        return coordi_fail_nomem(r->err, "safetensors");
    }
    return COORD_OK;
}

/* ---- second pass: what it says ---- */

/* Copies a string; NULL, with the error filled in, when C can't hold it. */
static const char *keep_string(reader *r, coord_text raw, const char *what)
{
    char *out = r->to->strings + r->string_at;
    if (coordi_json_string(raw, out, r->header.len - r->string_at) != COORD_OK) {
        (void)coordi_json_fail(r->err, COORD_ERR_FORMAT, what,
                               "a string without NUL or lone surrogate", raw);
        return NULL;
    }
    r->string_at += strlen(out) + 1;
    return out;
}

static coord_status read_metadata(reader *r, coord_text value)
{
    size_t at = 0;
    coord_text key;
    coord_text text;
    if (coordi_json_type_of(value) != COORDI_JSON_OBJECT) {
        return coordi_json_fail(r->err, COORD_ERR_FORMAT, "safetensors: __metadata__",
                                "an object of strings", value);
    }
    while (coordi_json_each_member(value, &at, &key, &text)) {
        coord_safetensors_meta *line = &r->to->meta[r->to->meta_count];
        line->key = keep_string(r, key, "safetensors: __metadata__");
        if (line->key == NULL) {
            return COORD_ERR_FORMAT;
        }
        line->value = keep_string(r, text, "safetensors: __metadata__");
        if (line->value == NULL) {
            return COORD_ERR_FORMAT;
        }
        r->to->meta_count++;
    }
    return COORD_OK;
}

/* "tensor 'w', shape: expected ..., got ..." */
static coord_status lies(reader *r, const coord_tensor *t, const char *part,
                         const char *expected, coord_text got)
{
    char what[128];
    coordi_tensor_label(t->name, part, what, sizeof what);
    return coordi_json_fail(r->err, COORD_ERR_FORMAT, what, expected, got);
}

static coord_status read_dtype(reader *r, coord_tensor *t, coord_text value)
{
    char name[16];
    if (coordi_json_type_of(value) != COORDI_JSON_STRING) {
        return lies(r, t, "dtype", "a string", value);
    }
    if (coordi_json_string(value, name, sizeof name) == COORD_OK) {
        t->dtype = coordi_dtype_of(name);
    }
    if (coord_dtype_size(t->dtype) == 0) {
        char what[128];
        coordi_tensor_label(t->name, "dtype", what, sizeof what);
        return coordi_json_fail(r->err, COORD_ERR_UNSUPPORTED, what, "a known type",
                                value);
    }
    return COORD_OK;
}

static coord_status read_shape(reader *r, coord_tensor *t, coord_text value)
{
    size_t at = 0;
    coord_text item;
    int64_t *dims = r->to->dims + r->dim_count;
    if (coordi_json_type_of(value) != COORDI_JSON_ARRAY) {
        return lies(r, t, "shape", "an array", value);
    }
    while (coordi_json_each(value, &at, &item)) {
        if (over(r->limits.max_rank, t->rank + 1)) {
            return coordi_fail(
                r->err, COORD_ERR_TOO_BIG,
                "safetensors: tensor '%.80s': a rank over the limit of %llu", t->name,
                (unsigned long long)r->limits.max_rank);
        }
        if (!coordi_json_int(item, &dims[t->rank]) || dims[t->rank] < 0) {
            return lies(r, t, "shape", "integers from 0 to 9223372036854775807", item);
        }
        t->rank++;
    }
    r->dim_count += t->rank;
    t->shape = dims;
    return COORD_OK;
}

static coord_status read_offsets(reader *r, coord_tensor *t, coord_text value)
{
    size_t at = 0;
    coord_text item[3];
    int64_t offset[2];
    size_t count = 0;
    while (count < 3 && coordi_json_each(value, &at, &item[count])) {
        count++;
    }
    if (count != 2 || !coordi_json_int(item[0], &offset[0]) ||
        !coordi_json_int(item[1], &offset[1]) || offset[0] < 0 || offset[1] < offset[0]) {
        return lies(r, t, "data_offsets", "[begin, end]", value);
    }
    if ((uint64_t)offset[1] > r->data_len) {
        char expected[64];
        (void)snprintf(expected, sizeof expected, "offsets up to %zu", r->data_len);
        return lies(r, t, "data_offsets", expected, value);
    }
    t->data = r->data + offset[0];
    t->bytes = (size_t)(offset[1] - offset[0]);
    return COORD_OK;
}

/* Finds the three members of an entry; each must be there once. */
static coord_status find_parts(reader *r, const coord_tensor *t, coord_text entry,
                               coord_text part[3])
{
    static const char *const NAME[3] = {"dtype", "shape", "data_offsets"};
    size_t at = 0;
    coord_text key;
    coord_text value;
    if (coordi_json_type_of(entry) != COORDI_JSON_OBJECT) {
        return lies(r, t, "entry", "an object", entry);
    }
    while (coordi_json_each_member(entry, &at, &key, &value)) {
        for (size_t i = 0; i < 3; i++) {
            if (!coordi_json_string_is(key, NAME[i])) {
                continue;
            }
            if (part[i].ptr != NULL) {
                return lies(r, t, NAME[i], "it once", entry);
            }
            part[i] = value;
        }
    }
    for (size_t i = 0; i < 3; i++) {
        if (part[i].ptr == NULL) {
            return lies(r, t, "entry", "dtype, shape and data_offsets", entry);
        }
    }
    return COORD_OK;
}

static coord_status read_tensor(reader *r, coord_text key, coord_text entry)
{
    coord_text part[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    size_t need;
    coord_tensor *t = &r->to->tensors[r->to->count];
    t->name = keep_string(r, key, "safetensors: name of a tensor");
    if (t->name == NULL) {
        return COORD_ERR_FORMAT;
    }
    coord_status rc = find_parts(r, t, entry, part);
    if (rc == COORD_OK) {
        rc = read_dtype(r, t, part[0]);
    }
    if (rc == COORD_OK) {
        rc = read_shape(r, t, part[1]);
    }
    if (rc == COORD_OK) {
        rc = read_offsets(r, t, part[2]);
    }
    if (rc != COORD_OK) {
        return rc;
    }
    if (!coordi_tensor_bytes(t, &need)) {
        return lies(r, t, "shape", "a size that fits in memory", part[1]);
    }
    if (need != t->bytes) {
        return coordi_fail(r->err, COORD_ERR_FORMAT,
                           "safetensors: tensor '%.80s': its shape takes %zu bytes, its "
                           "data_offsets %zu",
                           t->name, need, t->bytes);
    }
    r->to->sorted[r->to->count++] = t;
    return COORD_OK;
}

static coord_status read_header(reader *r)
{
    size_t at = 0;
    coord_text key;
    coord_text value;
    bool meta_seen = false;
    while (coordi_json_each_member(r->header, &at, &key, &value)) {
        coord_status rc;
        if (!coordi_json_string_is(key, META_KEY)) {
            rc = read_tensor(r, key, value);
        } else if (meta_seen) {
            rc = coordi_fail(r->err, COORD_ERR_FORMAT, "safetensors: two __metadata__");
        } else {
            meta_seen = true;
            rc = read_metadata(r, value);
        }
        if (rc != COORD_OK) {
            return rc;
        }
    }
    return COORD_OK;
}

/* ---- the whole ---- */

/* By where the data begins; empty ones before what begins in the same place. */
static int compare_place(const void *left, const void *right)
{
    const coord_tensor *a = *(const coord_tensor *const *)left;
    const coord_tensor *b = *(const coord_tensor *const *)right;
    uintptr_t x = (uintptr_t)a->data;
    uintptr_t y = (uintptr_t)b->data;
    return x != y ? (x > y) - (x < y) : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static coord_status check_data(reader *r)
{
    coord_safetensors *to = r->to;
    const char *next = r->data;
    qsort(to->sorted, to->count, sizeof(const coord_tensor *), compare_place);
    for (size_t i = 0; i < to->count; i++) {
        const coord_tensor *t = to->sorted[i];
        const char *begin = t->data;
        if (begin != next) {
            return coordi_fail(
                r->err, COORD_ERR_FORMAT,
                "safetensors: tensor '%.80s': %s, its data begins at %zu instead of %zu",
                t->name, begin < next ? "an overlap" : "a hole before it",
                (size_t)(begin - r->data), (size_t)(next - r->data));
        }
        next += t->bytes;
    }
    size_t used = (size_t)(next - r->data);
    if (used != r->data_len) {
        return coordi_fail(r->err, COORD_ERR_FORMAT,
                           "safetensors: %zu bytes of data, the tensors take %zu",
                           r->data_len, used);
    }
    return COORD_OK;
}

static coord_status check_names(reader *r)
{
    coord_safetensors *to = r->to;
    qsort(to->sorted, to->count, sizeof(const coord_tensor *),
          coordi_tensor_compare_names);
    for (size_t i = 1; i < to->count; i++) {
        if (strcmp(to->sorted[i - 1]->name, to->sorted[i]->name) == 0) {
            return coordi_fail(r->err, COORD_ERR_FORMAT,
                               "safetensors: tensor '%.80s': the name comes twice",
                               to->sorted[i]->name);
        }
    }
    const char *twice;
    if (!coordi_meta_unique(to->meta, to->meta_count, &twice)) {
        return coordi_fail_nomem(r->err, "safetensors");
    }
    if (twice != NULL) {
        return coordi_fail(r->err, COORD_ERR_FORMAT,
                           "safetensors: __metadata__: the key '%.80s' comes twice",
                           twice);
    }
    return COORD_OK;
}

static coord_status parse(reader *r, const char *bytes, size_t len)
{
    coord_status rc = read_frame(r, bytes, len);
    if (rc == COORD_OK) {
        rc = make_room(r);
    }
    if (rc == COORD_OK) {
        rc = read_header(r);
    }
    if (rc == COORD_OK) {
        rc = check_data(r);
    }
    return rc == COORD_OK ? check_names(r) : rc;
}

coord_status coord_safetensors_parse(const void *bytes, size_t len,
                                     const coord_safetensors_limits *limits,
                                     coord_safetensors **ret, coord_error *err)
{
    if (ret == NULL || (bytes == NULL && len > 0)) {
        return coordi_fail(err, COORD_ERR_ARG, "safetensors: bytes and ret are required");
    }
    if (!coordi_little_endian()) {
        return coordi_fail(err, COORD_ERR_UNSUPPORTED,
                           "safetensors: not supported on a big-endian machine");
    }
    reader r = {.err = err};
    coord_status rc = adopt_limits(&r.limits, limits, err);
    if (rc != COORD_OK) {
        return rc;
    }
    r.to = coordi_zalloc(sizeof *r.to);
    if (r.to == NULL) {
        return coordi_fail_nomem(err, "safetensors");
    }
    rc = parse(&r, bytes, len);
    if (rc != COORD_OK) {
        coord_safetensors_destroy(r.to);
        return rc;
    }
    *ret = r.to;
    return COORD_OK;
}

coord_status coordi_safetensors_adopt(char *bytes, size_t len,
                                      const coord_safetensors_limits *limits,
                                      coord_safetensors **ret, coord_error *err)
{
    coord_status rc = coord_safetensors_parse(bytes, len, limits, ret, err);
    if (rc == COORD_OK) {
        (*ret)->bytes = bytes;
    }
    return rc;
}

void coord_safetensors_destroy(coord_safetensors *tensors)
{
    if (tensors == NULL) {
        return;
    }
    coordi_free(tensors->tensors);
    coordi_free(tensors->sorted);
    coordi_free(tensors->meta);
    coordi_free(tensors->dims);
    coordi_free(tensors->strings);
    coordi_free(tensors->bytes);
    coordi_free(tensors);
}

/* ---- getters ---- */

size_t coord_safetensors_count(const coord_safetensors *tensors)
{
    return tensors == NULL ? 0 : tensors->count;
}

const coord_tensor *coord_safetensors_at(const coord_safetensors *tensors, size_t at)
{
    return at < coord_safetensors_count(tensors) ? &tensors->tensors[at] : NULL;
}

const coord_tensor *coord_safetensors_find(const coord_safetensors *tensors,
                                           const char *name)
{
    if (tensors == NULL || name == NULL) {
        return NULL;
    }
    const coord_tensor wanted = {.name = name};
    const coord_tensor *key = &wanted;
    const coord_tensor **found =
        bsearch(&key, tensors->sorted, tensors->count, sizeof(const coord_tensor *),
                coordi_tensor_compare_names);
    return found == NULL ? NULL : *found;
}

const coord_safetensors_meta *
coord_safetensors_metadata_at(const coord_safetensors *tensors, size_t at)
{
    return tensors != NULL && at < tensors->meta_count ? &tensors->meta[at] : NULL;
}

const char *coord_safetensors_metadata(const coord_safetensors *tensors, const char *key)
{
    const coord_safetensors_meta *line;
    for (size_t i = 0; (line = coord_safetensors_metadata_at(tensors, i)) != NULL; i++) {
        if (key != NULL && strcmp(line->key, key) == 0) {
            return line->value;
        }
    }
    return NULL;
}
