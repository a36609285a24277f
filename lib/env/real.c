#include "env/real.h"

#include "env/real_files.h"
#include "env/real_http.h"
#include "env/real_process.h"
#include "env/real_records.h"

#include <curl/curl.h>
#include <sodium.h>
#include <time.h>
#include <unistd.h>

/* The real world's table, and the entries that are too small for a file of their own. */

static pthread_once_t libraries_once = PTHREAD_ONCE_INIT;
static bool libraries_ready;

/* libcurl and libsodium have state of the whole process. Both can be initialised again by
 * the host without harm, and neither is ever taken down: others may be using it. */
static void init_libraries(void)
{
    libraries_ready =
        sodium_init() >= 0 && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

bool coordi_real_libraries(void)
{
    (void)pthread_once(&libraries_once, init_libraries);
    return libraries_ready;
}

static int64_t now_ms(coord_loop *loop)
{
    (void)loop;
    return coordi_real_now();
}

static int64_t wall_ms(coord_loop *loop)
{
    (void)loop;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void random_bytes(coord_loop *loop, void *bytes, size_t len)
{
    (void)loop;
    randombytes_buf(bytes, len);
}

static const char *const *environment(coord_loop *loop)
{
    (void)loop;
    return (const char *const *)environ;
}

const coordi_env coordi_env_real = {
    .name = "real",
    .now_ms = now_ms,
    .wall_ms = wall_ms,
    .random = random_bytes,
    .post = coordi_real_post,
    .inside = coordi_real_inside,
    .step = coordi_real_step,
    .fd = coordi_real_fd,
    .free = coordi_real_free,
    .timer_set = coordi_real_timer_set,
    .timer_cancel = coordi_real_timer_cancel,
    .thread_start = coordi_real_thread_start,
    .thread_join = coordi_real_thread_join,
    .event_create = coordi_real_event_create,
    .event_set = coordi_real_event_set,
    .event_wait = coordi_real_event_wait,
    .event_destroy = coordi_real_event_destroy,
    .peer_create = coordi_real_peer_create,
    .peer_destroy = coordi_real_peer_destroy,
    .peer_path = coordi_real_peer_path,
    .http_send = coordi_real_http_send,
    .http_cancel = coordi_real_http_cancel,
    .server_create = coordi_real_server_create,
    .server_port = coordi_real_server_port,
    .server_destroy = coordi_real_server_destroy,
    .call_header = coordi_real_call_header,
    .http_answer = coordi_real_http_answer,
    .process_start = coordi_real_process_start,
    .process_id = coordi_real_process_id,
    .process_signal = coordi_real_process_signal,
    .process_pause = coordi_real_process_pause,
    .process_destroy = coordi_real_process_destroy,
    .file_read = coordi_real_file_read,
    .file_replace = coordi_real_file_replace,
    .records_open = coordi_real_records_open,
    .records_read = coordi_real_records_read,
    .records_write = coordi_real_records_write,
    .records_close = coordi_real_records_close,
    .environment = environment,
};
