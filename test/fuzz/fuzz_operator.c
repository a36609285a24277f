/* Any bytes as an operator server's answer: either lists that hold what they promise, or
 * an error in one line; never an empty list out of garbage; without memory, too. The
 * first byte chooses how it is read. */
#include "base/address.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "codec/json.h"
#include "service/operator_answer.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_REPLICAS = 64 };

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

static void must_be_a_line(const char *text)
{
    coordi_buf buf = {0};
    must(text[strcspn(text, "\r\n")] == '\0');
    coordi_buf_add_json(&buf, text, strlen(text));
    must(coordi_json_check((coord_text){buf.ptr, buf.len}, NULL) == COORD_OK);
    coordi_buf_done(&buf);
}

static void must_be_sound(const coord_operator_answer *answer)
{
    size_t sum = 0;
    for (int list = 0; list < COORDI_OPERATOR_LISTS; list++) {
        size_t count;
        const coord_operator_replica *items =
            coordi_operator_answer_list(answer, (coordi_operator_list)list, &count);
        sum += count;
        for (size_t i = 0; i < count; i++) {
            char name[COORD_ID_SIZE];
            must(items[i].port > 0 && coordi_address_is_host(items[i].host));
            must(items[i].id[0] != '\0' && strlen(items[i].id) < COORD_ID_SIZE);
            must(coordi_operator_pod_name(items[i].id, "default", name));
            must(strcmp(name, items[i].name) == 0 && name[0] != '\0');
            must((items[i].rank >= 0) == (list == COORDI_OPERATOR_NODES));
            for (size_t k = 0; k < i; k++) {
                must(strcmp(items[k].id, items[i].id) != 0);
            }
        }
    }
    must(sum + answer->pending + answer->skipped <= MAX_REPLICAS);
    must((answer->skipped > 0) == (answer->skipped_text[0] != '\0'));
    must_be_a_line(answer->skipped_text);
    must_be_a_line(answer->message);
}

static void must_be_read_well(coord_status rc, const coordi_operator_verdict *said,
                              const coordi_operator_reading *how, coord_text body,
                              const coord_error *err)
{
    const bool no = rc == COORD_ERR_REFUSED || rc == COORD_ERR_NOT_FOUND;
    must(rc == COORD_OK || no || rc == COORD_ERR_PROTOCOL || rc == COORD_ERR_TOO_BIG);
    must((said->answer != NULL) == (rc == COORD_OK || no));
    if (rc != COORD_OK) {
        must(err->status == rc && err->text[0] != '\0');
        must_be_a_line(err->text);
        must_be_a_line(err->cause);
    }
    if (said->answer != NULL) {
        must(coordi_json_check(body, NULL) == COORD_OK && !said->no_route);
        must_be_sound(said->answer);
    }
    /* A list that was asked for is never taken for granted. */
    must(rc != COORD_OK || !how->must_list || said->told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int STATUS[] = {200, 404, 500, 301};
    const unsigned choice = size == 0 ? 0 : data[0];
    const coord_text body = {size == 0 ? "" : (const char *)data + 1,
                             size == 0 ? 0 : size - 1};
    const int http_status = STATUS[(choice >> 2) & 3];
    const coordi_operator_reading how = {
        .api = (choice & 1) != 0 ? COORDI_OPERATOR_V2 : COORDI_OPERATOR_V1,
        .must_list = (choice & 2) == 0,
        .name_space = "default",
        .name = "job-coordinator",
        .max_replicas = MAX_REPLICAS,
        .what = "answer",
    };
    coordi_operator_verdict said;
    coord_error err = {.status = COORD_OK};
    const coord_status rc = coordi_operator_read(&how, http_status, body, &said, &err);
    must_be_read_well(rc, &said, &how, body, &err);
    coord_operator_answer_destroy(said.answer);
    int left = (int)(size % 5);
    coordi_alloc_set_fault(countdown, &left);
    const coord_status poor = coordi_operator_read(&how, http_status, body, &said, &err);
    coordi_alloc_set_fault(NULL, NULL);
    must(poor == rc || poor == COORD_ERR_NOMEM);
    coord_operator_answer_destroy(said.answer);
    return 0;
}
