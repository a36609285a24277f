#include "buffer.h"
#include "report.h"

#include "coord/json.h"

#include <unistd.h>

static void remove_file(const buffer *b, const chunk_entry *entry)
{
    char path[PATH_SIZE];
    coord_error err;
    if (path_of_chunk(path, b->folder, entry->name, &err) == COORD_OK) {
        (void)unlink(path); /* what can't be removed now is looked at in the end */
    }
}

static void remove_oldest(buffer *b)
{
    b->ready_count--;
    memmove(b->ready, b->ready + 1, b->ready_count * sizeof *b->ready);
}

void buffer_add(buffer *b, const chunk_entry *entry)
{
    if (b->ready_count == BUFFER_MAX) {
        remove_file(b, &b->ready[0]);
        remove_oldest(b);
    }
    b->ready[b->ready_count++] = *entry;
}

void buffer_drop_old(buffer *b, int64_t version)
{
    size_t kept = 0;
    for (size_t i = 0; i < b->ready_count; i++) {
        if (b->ready[i].version < version) {
            remove_file(b, &b->ready[i]);
        } else {
            b->ready[kept++] = b->ready[i];
        }
    }
    b->ready_count = kept;
}

void buffer_return(buffer *b)
{
    for (size_t i = 0; i < b->taken_count; i++) {
        remove_file(b, &b->taken[i]);
    }
    b->taken_count = 0;
}

bool buffer_take(buffer *b, size_t count)
{
    if (count > b->ready_count) {
        return false;
    }
    buffer_return(b);
    for (; b->taken_count < count; b->taken_count++) {
        b->taken[b->taken_count] = b->ready[0];
        remove_oldest(b);
    }
    return true;
}

coord_status buffer_tell(const buffer *b, coord_out *out, coord_error *err)
{
    char *text = NULL;
    json_t *list = json_array();
    int failed = list == NULL;
    for (size_t i = 0; i < b->taken_count; i++) {
        failed |= json_array_append_new(
            list, json_pack("{s:s, s:I}", "file", b->taken[i].name, "policy_version",
                            (json_int_t)b->taken[i].version));
    }
    coord_status rc = failed != 0 ? report(err, COORD_ERR_NOMEM, "buffer: out of memory")
                                  : coord_json_text(list, &text, NULL, err);
    if (rc == COORD_OK) {
        rc = coord_out_json(out, coord_text_of(text), err);
    }
    coord_free(text);
    json_decref(list);
    return rc;
}
