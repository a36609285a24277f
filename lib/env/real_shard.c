#include "env/real_client.h"

#include "base/alloc.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Vocabulary
 *   shard  a libcurl multi handle with at most SHARD_PEERS peers: removing a transfer
 *          costs libcurl a walk over all connections of the multi handle
 *   slot   a libcurl easy handle, kept for the next request with all options that never
 *          change; it carries one request at a time
 *
 * libcurl never calls us back with a result: results are collected after it has returned
 * (harvest), so that a done function may do what it likes, even destroy its peer.
 *
 * Good manners that libcurl has to be asked for: CURLOPT_NOSIGNAL on every handle from
 * the start, or it swaps the process's SIGPIPE disposition on each call; the multi handle
 * is made by the first transfer, because one that never had any does the same when it
 * goes; SOCK_CLOEXEC comes from a socket function of our own. */

enum {
    SHARD_PEERS = 64,
    SHARD_CONNECTIONS =
        128, /* kept open; libcurl's own limit grows and shrinks with use */
    IDLE_SLOTS = 64,
    MAX_HEADER_BYTES = 65536,
    REPLY_STEP = 16384,
};

struct coordi_shard {
    coordi_link link; /* in loop->shards */
    coordi_real_loop *loop;
    CURLM *multi; /* NULL until the first transfer */
    coordi_timer timer;
    size_t peers;
    coordi_link idle; /* slots */
    size_t idle_count;
    int busy; /* harvests on the stack: they free it when it is empty */
};

struct coordi_slot {
    coordi_link link; /* in shard->idle */
    coordi_shard *shard;
    CURL *easy;
    coordi_http_request *request; /* NULL while idle */
    char words[CURL_ERROR_SIZE];
};

/* ---- libcurl's callbacks about a transfer ---- */

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    coordi_http_request *request = ((coordi_slot *)arg)->request;
    const size_t len = size * count;
    if (len > request->max_reply_bytes - request->reply.len) {
        request->too_big = true;
        return 0;
    }
    coordi_buf_add(&request->reply, bytes, len);
    return request->reply.failed ? 0 : len;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *arg)
{
    static const char MARK[] = COORDI_HTTP_MARK ":";
    coordi_http_request *request = ((coordi_slot *)arg)->request;
    const size_t len = size * count;
    request->header_bytes += len;
    if (request->header_bytes > MAX_HEADER_BYTES) {
        request->flooded = true;
        return 0;
    }
    if (len > 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        request->marked = false; /* a new head, after "100 Continue" or a second try */
        request->headed = false;
    } else if (bytes[0] == '\r' || bytes[0] == '\n') {
        request->headed = true;
    } else if (len >= sizeof MARK && strncasecmp(bytes, MARK, sizeof MARK - 1) == 0) {
        request->marked = true;
    }
    return len;
}

/* A connection is there, and the request will now go out. */
static int on_begin(void *arg, char *to, char *from, int to_port, int from_port)
{
    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    ((coordi_slot *)arg)->request->begun = true;
    return CURL_PREREQFUNC_OK;
}

/* ---- libcurl's callbacks about sockets and time ---- */

static void harvest(coordi_shard *shard);

static void on_line(int fd, int what, void *arg)
{
    coordi_shard *shard = arg;
    int running = 0;
    (void)curl_multi_socket_action(shard->multi, fd, what, &running);
    harvest(shard);
}

static curl_socket_t on_open(void *arg, curlsocktype purpose,
                             struct curl_sockaddr *address)
{
    (void)purpose;
    coordi_slot *slot = arg;
    int fd = coordi_line_open(slot->shard->loop, address, on_line, slot->shard,
                              &slot->request->open_errno);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int on_close(void *arg, curl_socket_t fd)
{
    coordi_shard *shard = arg;
    coordi_line_close(shard->loop, fd);
    return 0;
}

/* What goes wrong in here must not be told to libcurl: it would give up the whole multi
 * handle. A transfer whose socket can't be watched ends by its timeout. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
    (void)easy;
    (void)socket_arg;
    coordi_shard *shard = arg;
    uint32_t events = 0;
    if (what != CURL_POLL_REMOVE) {
        events |= (what & CURL_POLL_IN) != 0 ? EPOLLIN : 0;
        events |= (what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0;
    }
    coordi_line_want(shard->loop, fd, events);
    return 0;
}

static void timer_fire(coordi_timer *timer)
{
    coordi_shard *shard = COORDI_ITEM(timer, coordi_shard, timer);
    int running = 0;
    (void)curl_multi_socket_action(shard->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    harvest(shard);
}

static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
    (void)multi;
    coordi_shard *shard = arg;
    if (timeout_ms < 0) {
        coordi_heap_cancel(&shard->loop->timers, &shard->timer);
    } else {
        coordi_heap_set(&shard->loop->timers, &shard->timer,
                        coordi_real_now() + timeout_ms);
    }
    return 0;
}

/* ---- slots ---- */

static void slot_destroy(coordi_slot *slot)
{
    if (slot->easy != NULL) {
        curl_easy_cleanup(slot->easy);
    }
    coordi_free(slot);
}

static bool set_flags(CURL *easy)
{
    return curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "libcoord/" COORD_VERSION) ==
               CURLE_OK;
}

static bool set_callbacks(CURL *easy, coordi_slot *slot)
{
    return curl_easy_setopt(easy, CURLOPT_PRIVATE, (char *)slot) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->words) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, slot) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, slot) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_begin) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PREREQDATA, slot) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, slot) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, slot->shard) == CURLE_OK;
}

static coordi_slot *slot_create(coordi_shard *shard)
{
    coordi_slot *slot = coordi_zalloc(sizeof *slot);
    if (slot == NULL) {
        return NULL;
    }
    slot->shard = shard;
    slot->easy = curl_easy_init();
    if (slot->easy == NULL || !set_flags(slot->easy) ||
        !set_callbacks(slot->easy, slot)) {
        slot_destroy(slot);
        return NULL;
    }
    return slot;
}

static coordi_slot *slot_take(coordi_shard *shard)
{
    coordi_link *link = coordi_list_pop(&shard->idle);
    if (link == NULL) {
        return slot_create(shard);
    }
    shard->idle_count--;
    return COORDI_ITEM(link, coordi_slot, link);
}

static void slot_give_back(coordi_slot *slot)
{
    coordi_shard *shard = slot->shard;
    slot->request = NULL;
    if (shard->idle_count < IDLE_SLOTS) {
        coordi_list_prepend(&shard->idle, &slot->link);
        shard->idle_count++;
        return;
    }
    slot_destroy(slot);
}

static bool set_request(coordi_slot *slot, const coordi_http_request *request,
                        const char *url, int64_t timeout_ms, int64_t connect_timeout_ms)
{
    CURL *easy = slot->easy;
    const long once = request->fresh ? 1L : 0L;
    const char *body = request->body == NULL ? "" : request->body;
    slot->words[0] = '\0';
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
           /* POSTFIELDS for all: UPLOAD would wait for "100 Continue" */
           curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                            (curl_off_t)request->body_len) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->peer->headers) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)connect_timeout_ms) ==
               CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE,
                            (curl_off_t)request->max_reply_bytes) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, once) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, once) == CURLE_OK;
}

/* ---- shards ---- */

coordi_shard *coordi_shard_join(coordi_real_loop *loop)
{
    for (coordi_link *at = loop->shards.next; at != &loop->shards; at = at->next) {
        coordi_shard *shard = COORDI_ITEM(at, coordi_shard, link);
        if (shard->peers < SHARD_PEERS) {
            shard->peers++;
            return shard;
        }
    }
    coordi_shard *shard = coordi_zalloc(sizeof *shard);
    if (shard == NULL) {
        return NULL;
    }
    shard->loop = loop;
    shard->timer.fire = timer_fire;
    shard->peers = 1;
    coordi_list_init(&shard->idle);
    coordi_list_append(&loop->shards, &shard->link);
    return shard;
}

static bool multi_open(coordi_shard *shard)
{
    if (shard->multi != NULL) {
        return true;
    }
    CURLM *multi = coordi_multi_init();
    if (multi == NULL) {
        return false;
    }
    if (curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, shard) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_TIMERDATA, shard) != CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) !=
            CURLM_OK ||
        curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)SHARD_CONNECTIONS) !=
            CURLM_OK) {
        (void)curl_multi_cleanup(multi);
        return false;
    }
    shard->multi = multi;
    return true;
}

/* No peer is left, so no request either. */
static void shard_destroy(coordi_shard *shard)
{
    if (shard->multi != NULL) {
        (void)curl_multi_cleanup(shard->multi); /* closes, by on_close */
    }
    coordi_heap_cancel(&shard->loop->timers, &shard->timer);
    for (coordi_link *link = coordi_list_pop(&shard->idle); link != NULL;
         link = coordi_list_pop(&shard->idle)) {
        slot_destroy(COORDI_ITEM(link, coordi_slot, link));
    }
    coordi_list_remove(&shard->link);
    coordi_free(shard);
}

void coordi_shard_leave(coordi_shard *shard)
{
    if (--shard->peers == 0 && shard->busy == 0) {
        shard_destroy(shard);
    }
}

/* Tells the finished transfers to their owners. */
static void harvest(coordi_shard *shard)
{
    shard->busy++;
    int left = 0;
    /* Every round asks anew: what an owner does may take other messages back. */
    for (CURLMsg *msg = curl_multi_info_read(shard->multi, &left); msg != NULL;
         msg = curl_multi_info_read(shard->multi, &left)) {
        if (msg->msg != CURLMSG_DONE) {
            continue;
        }
        const CURLcode code = msg->data.result;
        coordi_slot *slot = NULL;
        long http_status = 0;
        long os_errno = 0;
        (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&slot);
        (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_RESPONSE_CODE, &http_status);
        if (code == CURLE_COULDNT_CONNECT || code == CURLE_SEND_ERROR ||
            code == CURLE_RECV_ERROR) { /* with others it is an earlier transfer's */
            (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_OS_ERRNO, &os_errno);
        }
        char words[CURL_ERROR_SIZE];
        (void)snprintf(words, sizeof words, "%s",
                       slot->words[0] != '\0' ? slot->words : curl_easy_strerror(code));
        coordi_http_request *request = slot->request;
        coordi_shard_recall(request);
        coordi_client_landed(request, code, (int)http_status, (int)os_errno, words);
    }
    if (--shard->busy == 0 && shard->peers == 0) {
        shard_destroy(shard);
    }
}

/* ---- requests ---- */

/* IPv6 in brackets, the zone's % escaped, and the path as it is. */
static bool url_print(const coordi_http_request *request, const char *numeric,
                      coordi_buf *url)
{
    const coordi_address *to = &request->peer->address;
    const char *zone = strchr(numeric, '%');
    if (strchr(numeric, ':') == NULL) {
        coordi_buf_addf(url, "http://%s:%u", numeric, (unsigned)to->port);
    } else if (zone == NULL) {
        coordi_buf_addf(url, "http://[%s]:%u", numeric, (unsigned)to->port);
    } else {
        coordi_buf_addf(url, "http://[%.*s%%25%s]:%u", (int)(zone - numeric), numeric,
                        zone + 1, (unsigned)to->port);
    }
    coordi_buf_adds(url, to->prefix);
    coordi_buf_add(url, request->path, strlen(request->path) + 1);
    return !url->failed;
}

coord_status coordi_shard_send(coordi_http_request *request, const char *numeric,
                               int64_t timeout_ms, int64_t connect_timeout_ms,
                               coord_error *err)
{
    coordi_shard *shard = request->peer->shard;
    coordi_buf url = {0};
    coordi_slot *slot = multi_open(shard) ? slot_take(shard) : NULL;
    if (slot == NULL) {
        return coordi_fail_nomem(err, "http request");
    }
    slot->request = request;
    bool sent = url_print(request, numeric, &url) &&
                set_request(slot, request, url.ptr, timeout_ms, connect_timeout_ms) &&
                curl_multi_add_handle(shard->multi, slot->easy) == CURLM_OK;
    coordi_buf_done(&url);
    if (!sent) {
        slot_give_back(slot);
        return coordi_fail_nomem(err, "http request");
    }
    request->slot = slot;
    return COORD_OK;
}

void coordi_shard_recall(coordi_http_request *request)
{
    coordi_slot *slot = request->slot;
    if (slot != NULL) {
        request->slot = NULL;
        (void)curl_multi_remove_handle(slot->shard->multi, slot->easy);
        slot_give_back(slot);
    }
}

/* Peers that are still there when the loop goes were forgotten by their owners. */
void coordi_real_client_end(coordi_real_loop *loop)
{
    while (!coordi_list_empty(&loop->shards)) {
        shard_destroy(COORDI_ITEM(loop->shards.next, coordi_shard, link));
    }
    coordi_lines_end(loop);
}
