/* Writing safetensors. The same tensors always give the same bytes, whatever their order.
 */
#include "codec/safetensors.h"

#include "base/alloc.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/safetensors_dtype.h"

#include <stdlib.h>
#include <string.h>

/* What readers of the format take at most. */
enum { HEADER_MAX = 100000000, LENGTH_BYTES = 8, ALIGN = 8 };

static coord_status check_tensor(const coord_tensor *t, size_t place, coord_error *err)
{
    size_t need = 0;
    if (t->name == NULL || strcmp(t->name, "__metadata__") == 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "safetensors: tensor %zu: expected a name, got %s", place,
                           t->name == NULL ? "NULL" : t->name);
    }
    if (coord_dtype_size(t->dtype) == 0) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "safetensors: tensor '%.80s': expected a dtype, got %d",
                           t->name, (int)t->dtype);
    }
    if (t->rank > 0 && t->shape == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "safetensors: tensor '%.80s': expected a shape, got NULL",
                           t->name);
    }
    for (size_t i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "safetensors: tensor '%.80s': shape[%zu] is %lld", t->name,
                               i, (long long)t->shape[i]);
        }
    }
    if (!coordi_tensor_bytes(t, &need) || need != t->bytes) {
        return coordi_fail(
            err, COORD_ERR_ARG,
            "safetensors: tensor '%.80s': its shape takes %zu bytes, got %zu", t->name,
            need, t->bytes);
    }
    if (t->bytes > 0 && t->data == NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "safetensors: tensor '%.80s': expected data, got NULL",
                           t->name);
    }
    return COORD_OK;
}

static coord_status check_meta(const coord_safetensors_meta *meta, size_t count,
                               coord_error *err)
{
    const char *twice;
    for (size_t i = 0; i < count; i++) {
        if (meta[i].key == NULL || meta[i].value == NULL) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "safetensors: metadata %zu: key and value are required",
                               i);
        }
    }
    if (!coordi_meta_unique(meta, count, &twice)) {
        return coordi_fail_nomem(err, "safetensors");
    }
    if (twice != NULL) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "safetensors: metadata: the key '%.80s' comes twice", twice);
    }
    return COORD_OK;
}

/* Wide types first, so that all data is aligned when its beginning is. */
static int compare_order(const void *left, const void *right)
{
    const coord_tensor *a = *(const coord_tensor *const *)left;
    const coord_tensor *b = *(const coord_tensor *const *)right;
    int x = coordi_dtype_order(a->dtype);
    int y = coordi_dtype_order(b->dtype);
    return x != y ? (x < y) - (x > y) : strcmp(a->name, b->name);
}

static coord_status sort(const coord_tensor **order, size_t count, coord_error *err)
{
    qsort(order, count, sizeof(const coord_tensor *), coordi_tensor_compare_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(order[i - 1]->name, order[i]->name) == 0) {
            return coordi_fail(err, COORD_ERR_ARG,
                               "safetensors: tensor '%.80s': the name comes twice",
                               order[i]->name);
        }
    }
    qsort(order, count, sizeof(const coord_tensor *), compare_order);
    return COORD_OK;
}

static void add_string(coordi_buf *head, const char *text)
{
    coordi_buf_add_json(head, text, strlen(text));
}

static void add_meta(coordi_buf *head, const coord_safetensors_meta *meta, size_t count)
{
    coordi_buf_adds(head, "\"__metadata__\":{");
    for (size_t i = 0; i < count; i++) {
        coordi_buf_adds(head, i == 0 ? "" : ",");
        add_string(head, meta[i].key);
        coordi_buf_adds(head, ":");
        add_string(head, meta[i].value);
    }
    coordi_buf_adds(head, "}");
}

static void add_tensor(coordi_buf *head, const coord_tensor *t, size_t begin)
{
    add_string(head, t->name);
    coordi_buf_addf(head, ":{\"dtype\":\"%s\",\"shape\":[", coord_dtype_str(t->dtype));
    for (size_t i = 0; i < t->rank; i++) {
        coordi_buf_addf(head, "%s%lld", i == 0 ? "" : ",", (long long)t->shape[i]);
    }
    coordi_buf_addf(head, "],\"data_offsets\":[%zu,%zu]}", begin, begin + t->bytes);
}

/* The data of all of them has to fit in memory, and in the numbers of the format. */
static bool total_fits(const coord_tensor *tensors, size_t count)
{
    const size_t limit = (SIZE_MAX >> 1) - HEADER_MAX - LENGTH_BYTES;
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (tensors[i].bytes > limit - total) {
            return false;
        }
        total += tensors[i].bytes;
    }
    return true;
}

static coord_status add_head(coordi_buf *head, const coord_tensor *const *order,
                             size_t count, const coord_safetensors_meta *meta,
                             size_t meta_count, coord_error *err)
{
    static const char ZEROS[LENGTH_BYTES] = {0};
    size_t begin = 0;
    coordi_buf_add(head, ZEROS, sizeof ZEROS);
    coordi_buf_adds(head, "{");
    if (meta_count > 0) {
        add_meta(head, meta, meta_count);
    }
    for (size_t i = 0; i < count; i++) {
        coordi_buf_adds(head, i == 0 && meta_count == 0 ? "" : ",");
        add_tensor(head, order[i], begin);
        begin += order[i]->bytes;
    }
    coordi_buf_adds(head, "}");
    while (!head->failed && head->len % ALIGN != 0) {
        coordi_buf_adds(head, " ");
    }
    if (head->failed) {
        return coordi_fail_nomem(err, "safetensors");
    }
    const size_t len = head->len - LENGTH_BYTES;
    if (len > HEADER_MAX) {
        return coordi_fail(err, COORD_ERR_TOO_BIG,
                           "safetensors: a header of %zu bytes, the limit is %d", len,
                           (int)HEADER_MAX);
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        head->ptr[i] = (char)(unsigned char)((uint64_t)len >> (8 * i) & 0xff);
    }
    coord_error cause;
    if (coordi_json_check((coord_text){head->ptr + LENGTH_BYTES, len}, &cause) !=
        COORD_OK) {
        return coordi_fail_because(err, COORD_ERR_ARG, &cause,
                                   "safetensors: a name or metadata is not UTF-8");
    }
    return COORD_OK;
}

static coord_status check_all(const coord_tensor *tensors, size_t count,
                              const coord_safetensors_meta *meta, size_t meta_count,
                              coord_error *err)
{
    if (!coordi_little_endian()) {
        return coordi_fail(err, COORD_ERR_UNSUPPORTED,
                           "safetensors: not supported on a big-endian machine");
    }
    if ((tensors == NULL && count > 0) || (meta == NULL && meta_count > 0)) {
        return coordi_fail(err, COORD_ERR_ARG,
                           "safetensors: tensors and meta are required");
    }
    for (size_t i = 0; i < count; i++) {
        coord_status rc = check_tensor(&tensors[i], i, err);
        if (rc != COORD_OK) {
            return rc;
        }
    }
    if (!total_fits(tensors, count)) {
        return coordi_fail(err, COORD_ERR_TOO_BIG,
                           "safetensors: %zu tensors do not fit in memory together",
                           count);
    }
    return check_meta(meta, meta_count, err);
}

coord_status coordi_safetensors_plan(const coord_tensor *tensors, size_t count,
                                     const coord_safetensors_meta *meta,
                                     size_t meta_count, coordi_buf *head,
                                     const coord_tensor ***order, coord_error *err)
{
    coord_status rc = check_all(tensors, count, meta, meta_count, err);
    if (rc != COORD_OK) {
        return rc;
    }
    const coord_tensor **sorted =
        count > SIZE_MAX / sizeof(const coord_tensor *)
            ? NULL
            : coordi_alloc(count * sizeof(const coord_tensor *));
    if (sorted == NULL) {
        return coordi_fail_nomem(err, "safetensors");
    }
    for (size_t i = 0; i < count; i++) {
        sorted[i] = &tensors[i];
    }
    rc = sort(sorted, count, err);
    if (rc == COORD_OK) {
        rc = add_head(head, sorted, count, meta, meta_count, err);
    }
    if (rc != COORD_OK) {
        coordi_buf_done(head);
        coordi_free(sorted);
        return rc;
    }
    *order = sorted;
    return COORD_OK;
}

coord_status coord_safetensors_write(const coord_tensor *tensors, size_t count,
                                     const coord_safetensors_meta *meta,
                                     size_t meta_count, char **ret, size_t *len,
                                     coord_error *err)
{
    coordi_buf out = {0};
    const coord_tensor **order = NULL;
    size_t size = 0;
    if (ret == NULL || len == NULL) {
        return coordi_fail(err, COORD_ERR_ARG, "safetensors: ret and len are required");
    }
    coord_status rc =
        coordi_safetensors_plan(tensors, count, meta, meta_count, &out, &order, err);
    if (rc != COORD_OK || order == NULL) {
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        size += order[i]->bytes;
    }
    (void)coordi_buf_reserve(&out, size); /* grow once */
    for (size_t i = 0; i < count; i++) {
        coordi_buf_add(&out, order[i]->data, order[i]->bytes);
    }
    coordi_free(order);
    char *bytes = coordi_buf_take(&out, &size);
    if (bytes == NULL) {
        return coordi_fail_nomem(err, "safetensors");
    }
    *ret = bytes;
    *len = size;
    return COORD_OK;
}
