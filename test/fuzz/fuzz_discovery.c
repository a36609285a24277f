/* Any bytes as what discovery answers: either a list whose workers are all sound, or an
 * error in one line; without memory, too. A list is no other for a newline more. */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/map.h"
#include "codec/json.h"
#include "service/discovery_list.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool truth)
{
    if (!truth) {
        abort();
    }
}

static bool countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static void must_be_text(const char *text)
{
    coordi_buf buf = {0};
    must(text[strcspn(text, "\r\n")] == '\0');
    coordi_buf_add_json(&buf, text, strlen(text));
    must(coordi_json_check((coord_text){buf.ptr, buf.len}, NULL) == COORD_OK);
    coordi_buf_done(&buf);
}

static size_t must_be_sound(coord_text list)
{
    coordi_map ids[2] = {{0}, {0}};
    coordi_discovery_worker w;
    size_t count = 0;
    size_t at = 0;
    while (coordi_discovery_list_next(list, &at, &w)) {
        must(w.role == COORD_COLLECTOR || w.role == COORD_LEARNER);
        must(coordi_address_is_host(w.host) && w.port > 0);
        must(w.id[0] != '\0' && w.id[0] != '#' && strpbrk(w.id, " \t") == NULL);
        must_be_text(w.id);
        must(coordi_map_get(&ids[w.role], w.id) == NULL);
        must(coordi_map_put(&ids[w.role], w.id, ids));
        count++;
    }
    must(at == list.len && count <= COORDI_DISCOVERY_MAX_WORKERS);
    coordi_map_done(&ids[0]);
    coordi_map_done(&ids[1]);
    return count;
}

static void must_be_the_same_with_a_newline_more(coord_text list, size_t count)
{
    coordi_buf longer = {0};
    coordi_buf_addt(&longer, list);
    coordi_buf_adds(&longer, "\n");
    coord_text again = {longer.ptr, longer.len};
    must(coordi_discovery_list_check(again, NULL) == COORD_OK);
    must(must_be_sound(again) == count);
    coordi_buf_done(&longer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const coord_text list = {(const char *)data, size};
    coord_error err = {.status = COORD_OK};
    coord_status rc = coordi_discovery_list_check(list, &err);
    if (rc == COORD_OK) {
        size_t count = must_be_sound(list);
        if (size < COORDI_DISCOVERY_MAX_BYTES) {
            must_be_the_same_with_a_newline_more(list, count);
        }
    } else {
        must(rc == COORD_ERR_FORMAT || rc == COORD_ERR_TOO_BIG);
        must(err.status == rc && err.text[0] != '\0');
        must_be_text(err.text);
    }
    int left = (int)(size % 5);
    coordi_alloc_set_fault(countdown, &left);
    coord_status poor = coordi_discovery_list_check(list, NULL);
    coordi_alloc_set_fault(NULL, NULL);
    must(poor == rc || poor == COORD_ERR_NOMEM);
    return 0;
}
