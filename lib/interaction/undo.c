#include "interaction/undo.h"

#include "base/alloc.h"
#include "base/error.h"
#include "wire/wire.h"

#include <stdio.h>

struct coordi_undo {
    coord_loop *loop;
    coordi_http_peer *peer;
    coordi_undo_fn *done;
    void *arg;
};

coord_status coordi_peer_create(coord_loop *loop, const coordi_address *address,
                                int32_t channel, const char *token,
                                coordi_http_peer **ret, coord_error *err)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%ld", (long)channel);
    coordi_http_header headers[] = {{"Channel", number}, {"Token", token}};
    return loop->env->peer_create(loop, address, headers, 2, ret, err);
}

static coordi_undone read_reply(const coordi_http_reply *reply)
{
    coordi_answer answer;
    if (reply->status != COORD_OK) {
        return COORDI_UNDONE_UNKNOWN;
    }
    coord_status rc = coordi_wire_read_answer(reply->http_status, reply->body,
                                              "undo of a connection", &answer, NULL);
    return rc == COORD_OK ? COORDI_UNDONE_YES
           : rc == COORD_ERR_REFUSED && answer.code == COORDI_CODE_WRONG_MASTER_TOKEN
               ? COORDI_UNDONE_NO
               : COORDI_UNDONE_UNKNOWN;
}

static void on_reply(const coordi_http_reply *reply, void *arg)
{
    coordi_undo *undo = arg;
    coordi_undo_fn *done = undo->done;
    void *done_arg = undo->arg;
    coordi_undone how = read_reply(reply);
    coordi_undo_cancel(undo);
    done(how, done_arg);
}

coord_status coordi_undo_start(coord_loop *loop, const coordi_address *address,
                               int32_t channel, const char *token, int64_t timeout_ms,
                               coordi_undo_fn *done, void *arg, coordi_undo **ret,
                               coord_error *err)
{
    coordi_undo *undo = coordi_zalloc(sizeof *undo);
    coordi_http_spec spec = {
        .method = "DELETE",
        .path = "/disconnect",
        .timeout_ms = timeout_ms,
        .fresh = true,
        .done = on_reply,
        .arg = undo,
    };
    spec.body = coordi_wire_disconnect((coord_text){NULL, 0}, &spec.body_len);
    if (undo == NULL || spec.body == NULL) {
        coordi_free(undo);
        coordi_free(spec.body);
        return coordi_fail_nomem(err, "undo of a connection");
    }
    undo->loop = loop;
    undo->done = done;
    undo->arg = arg;
    coordi_http_request *request;
    coord_status rc = coordi_peer_create(loop, address, channel, token, &undo->peer, err);
    if (rc == COORD_OK) {
        rc = loop->env->http_send(undo->peer, &spec, &request, err);
    } else {
        coordi_free(spec.body);
    }
    if (rc != COORD_OK) {
        coordi_undo_cancel(undo);
        return rc;
    }
    *ret = undo;
    return COORD_OK;
}

void coordi_undo_cancel(coordi_undo *undo)
{
    if (undo == NULL) {
        return;
    }
    if (undo->peer != NULL) {
        undo->loop->env->peer_destroy(undo->peer);
    }
    coordi_free(undo);
}
