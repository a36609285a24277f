/**
 * @file operator_server.h
 * Client of the server of DI-orchestrator, which starts, lists, ends and replaces the
 * pods of a training job in Kubernetes.
 *
 * Two of its APIs are spoken. v1alpha1 (DI-orchestrator up to 0.2.2) knows the collectors
 * and learners of a coordinator's pod. v2alpha1 (from 1.0 on) knows the nodes of a job,
 * by rank and without roles, and cannot replace single pods.
 *
 * What the server lists is what it believes: an answer may lag behind by seconds, and a
 * listed pod may not have started yet, or be broken. Order means nothing. Answers that
 * make no sense as a whole are refused (COORD_ERR_PROTOCOL); of single entries that make
 * no sense the answer says that it is not `complete`. So nobody has to take garbage for
 * the end of all workers.
 *
 * Creating and deleting are not idempotent, and a request that may have reached the
 * server is never simply sent again: the list is fetched until it stands still, compared
 * with that from before, and with v1alpha1 only the difference is asked for.
 */
#ifndef COORD_OPERATOR_SERVER_H
#define COORD_OPERATOR_SERVER_H

#include "coord/api.h"
#include "coord/error.h"
#include "coord/log.h"
#include "coord/loop.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct coord_operator_server coord_operator_server;

/** Where the server is and who asks. What is NULL comes from the environment variable
 *  named; an empty variable counts as none. All strings are copied. */
typedef struct coord_operator_server_options {
    size_t size; /**< written by coord_operator_server_options_init() */
    /** [http://]host[:port][/path]; port 8080 if none is given. KUBERNETES_SERVER_URL,
     * then DI_SERVER_URL (the other way round with api_version "v2alpha1"). */
    const char *system_addr;
    /** "v1alpha1", "v2alpha1", or "auto": found out by asking; slashes around it are
     * fine. KUBERNETES_SERVER_API_VERSION, else "auto". */
    const char *api_version;
    const char
        *name_space;    /**< v1alpha1: of the pod that asks; KUBERNETES_POD_NAMESPACE */
    const char *name;   /**< v1alpha1: of the pod that asks; KUBERNETES_POD_NAME */
    const char *job_id; /**< v2alpha1: "namespace.name", or with a slash; DI_JOB_ID */
    bool aggregator;    /**< v1alpha1: the pod that asks is an aggregator, which can get
                         *   and report; default: a coordinator */
    int64_t connect_timeout_ms; /**< default 3000 */
    int64_t
        request_timeout_ms; /**< for one attempt, connecting included; default 10000 */
    int64_t retry_wait_ms;  /**< before the second attempt, then doubled up to ten times
                             *   as much; default 500 */
    int64_t settle_ms;      /**< between the lists that are compared after a request whose
                             *   outcome is unknown: longer than the server's lists lag
                             *   behind; default 2000 */
    size_t max_answer_bytes; /**< default 1 MiB */
    size_t max_replicas;     /**< in one answer; default 4096 */
    coord_loop *loop;        /**< default NULL: a loop of its own */
    coord_log_level log_level;
    coord_log_fn *log; /**< optional */
    void *user;        /**< passed to log */
} coord_operator_server_options;

/** Fills in this build's defaults. @thread any */
COORD_API void coord_operator_server_options_init(coord_operator_server_options *options,
                                                  size_t size);

/**
 * Creates a client. Sends nothing yet. Proxy variables are ignored.
 *
 * @param options   Optional; copied.
 * @param[out] ret  Yours: free with coord_operator_server_destroy().
 * @retval COORD_ERR_ARG          An option is wrong or missing; the text names it, and
 * the environment variable that it came from.
 * @retval COORD_ERR_UNSUPPORTED  https://
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status
coord_operator_server_create(const coord_operator_server_options *options,
                             coord_operator_server **ret, coord_error *err);

/** One pod. Never grows. */
typedef struct coord_operator_replica {
    const char *id; /**< as the server listed it: "job-collector-x7b2q.default:22270" */
    const char
        *name; /**< of the pod: "job-collector-x7b2q"; the host if that is numeric */
    const char *host; /**< to connect to, IPv6 without brackets */
    uint16_t port; /**< 1 to 65535; if the server named none: 22270, of learners 22271 */
    int32_t rank;  /**< v2alpha1; else -1 */
    uint64_t reserved[2];
} coord_operator_replica;

/** What the server said. The library makes it; fields are only ever appended. */
typedef struct coord_operator_answer {
    const coord_operator_replica *collectors;
    size_t collector_count;
    const coord_operator_replica *learners;
    size_t learner_count;
    const coord_operator_replica *nodes; /**< v2alpha1: all there is */
    size_t node_count;
    size_t pending; /**< v2alpha1: ranks that have no address yet */
    bool complete;  /**< false: part of the list is not to be had, and who is
                     *   absent may well be there. So it is when entries made
                     *   no sense, and with v2alpha1 when no rank has an address */
    bool inferred;  /**< not said by the server: it is the difference of lists */
    size_t skipped; /**< entries that made no sense, or came twice */
    const char *skipped_text; /**< the first of them and why; "": none */
    size_t unknown;           /**< of failed(): pods that the server did not know */
    const char *api_version;  /**< "v1alpha1" or "v2alpha1" */
    int http_status;
    const char *message; /**< the server's words, cut at 255 bytes; may be "" */
} coord_operator_answer;

/** Frees an answer; takes NULL. @thread any */
COORD_API void coord_operator_answer_destroy(coord_operator_answer *answer);

/** How many to create or delete. Resources are Kubernetes quantities ("2", "500m",
 *  "200Mi"); NULL leaves them to the job's template. */
typedef struct coord_operator_request {
    size_t size;        /**< written by coord_operator_request_init() */
    int32_t collectors; /**< v1alpha1: 0 to 10000 */
    int32_t learners;   /**< likewise */
    int32_t nodes;      /**< v2alpha1: likewise */
    const char *collector_cpus;
    const char *collector_gpus;
    const char *collector_memory;
    const char *learner_cpus;
    const char *learner_gpus;
    const char *learner_memory;
} coord_operator_request;

/** Fills in this build's defaults: nothing. @thread any */
COORD_API void coord_operator_request_init(coord_operator_request *request, size_t size);

/* The calls below take at most `wait_ms` milliseconds, more than 0. Until then they try
 * again, with growing pauses, what is known not to have had an effect and may pass: no
 * connection, a pod that the server does not know yet (404), a failure of the server
 * (5xx) that changed nothing. The text of an error names server and request and what was
 * expected; its http_status and cause have the server's words. All answer
 *
 *   COORD_ERR_REFUSED      the server said no. *ret is then set if it told what it did
 *                          before that: some pods of a create, say, which do exist.
 *   COORD_ERR_NOT_FOUND    the server does not know the pod that asks, or the job.
 *   COORD_ERR_PROTOCOL     its answer makes no sense, or neither API is there
 *   COORD_ERR_LOST         it can't be reached, or broke the connection
 *   COORD_ERR_TIMEOUT      the time is over
 *   COORD_ERR_TOO_BIG      the answer passes a limit
 *   COORD_ERR_UNSUPPORTED  the API that the server speaks can't do that
 *   COORD_ERR_STATE        called on the loop thread
 *   COORD_ERR_CLOSED       destroyed meanwhile
 *
 * *ret is yours: free it with coord_operator_answer_destroy(). It is NULL where there is
 * none. Several threads may call at once; what changes something goes one after the
 * other.
 */

/** Fetches the list of those that belong to the pod or job that asks. @thread any */
COORD_API COORD_MUST_USE coord_status
coord_operator_server_get(coord_operator_server *server, int64_t wait_ms,
                          coord_operator_answer **ret, coord_error *err);

/**
 * Creates so many more.
 *
 * @param[out] ret  Those created. With v2alpha1 none: the server only takes note.
 * @retval COORD_ERR_TIMEOUT  Also: whether it was carried out is still unknown, which the
 *                            text says then. With v2alpha1 that is not found out in every
 *                            case, as the list tells of a change late.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_operator_server_post(
    coord_operator_server *server, const coord_operator_request *request, int64_t wait_ms,
    coord_operator_answer **ret, coord_error *err);

/** Deletes so many, or all if there are fewer; the server chooses which. Resources are
 *  ignored. @param[out] ret  Those deleted; otherwise as with post. @thread any */
COORD_API COORD_MUST_USE coord_status coord_operator_server_delete(
    coord_operator_server *server, const coord_operator_request *request, int64_t wait_ms,
    coord_operator_answer **ret, coord_error *err);

/**
 * Reports failed pods: the server deletes each and starts another of the same kind under
 * a new name. A pod is reported once, however often this is called, until a list has come
 * without it. One that the server does not know counts as gone.
 *
 * @param names     Names of pods, or ids as the server lists them.
 * @param[out] ret  The new ones; with an error: those that were replaced before it.
 * @retval COORD_ERR_UNSUPPORTED  The server speaks v2alpha1.
 * @thread any
 */
COORD_API COORD_MUST_USE coord_status coord_operator_server_failed(
    coord_operator_server *server, const char *const *names, size_t count,
    int64_t wait_ms, coord_operator_answer **ret, coord_error *err);

/** Gives the client back; calls that wait answer COORD_ERR_CLOSED. Takes NULL. @thread
 * any
 */
COORD_API void coord_operator_server_destroy(coord_operator_server *server);

#ifdef __cplusplus
}
#endif
#endif
