/**
 * @file error.h
 * How calls fail: a must-use status, and an optional detail that the caller owns.
 */
#ifndef COORD_ERROR_H
#define COORD_ERROR_H

#include "coord/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Every way a call can end. Numbers are only ever added, never changed. */
typedef enum coord_status {
    COORD_OK = 0,
    COORD_AGAIN = 1,            /**< not an error: nothing there yet, ask again */
    COORD_ERR_ARG = 2,          /**< an argument is wrong */
    COORD_ERR_STATE = 3,        /**< not now, or not from this thread */
    COORD_ERR_NOMEM = 4,        /**< out of memory */
    COORD_ERR_ABI = 5,          /**< a struct of another libcoord, or not initialised */
    COORD_ERR_TIMEOUT = 6,      /**< a deadline passed */
    COORD_ERR_LOST = 7,         /**< the peer is gone: refused, reset or silent */
    COORD_ERR_REFUSED = 8,      /**< the peer understood, and said no */
    COORD_ERR_BUSY = 9,         /**< no room: peer, queue or budget is full */
    COORD_ERR_EXISTS = 10,      /**< the id is in use */
    COORD_ERR_NOT_FOUND = 11,   /**< no such thing */
    COORD_ERR_TOO_BIG = 12,     /**< over a size limit */
    COORD_ERR_UNSUPPORTED = 13, /**< not built into this release */
    COORD_ERR_CONFIG = 14,      /**< the configuration is wrong; text names the path */
    COORD_ERR_NETWORK = 15,     /**< this machine's side of the network failed */
    COORD_ERR_PROTOCOL = 16,    /**< the peer's answer makes no sense */
    COORD_ERR_TASK = 17,        /**< the worker reported that the task failed */
    COORD_ERR_CANCELED = 18,    /**< ended by cancel */
    COORD_ERR_CLOSED = 19,      /**< ended by close */
    COORD_ERR_FORKED = 20,      /**< called in a child process after fork; see loop.h */
    COORD_ERR_IO = 21,          /**< a file, process or other system call failed */
    COORD_ERR_FORMAT = 22,      /**< malformed JSON, safetensors or other data */
    COORD_ERR_CALLBACK = 23     /**< a host callback answered with a failure */
} coord_status;

/** Detail of a failure. Fixed size, no destructor: put it on the stack. */
typedef struct coord_error {
    coord_status status; /**< same as the call returned */
    int os_errno;        /**< errno of the system call that failed, else 0 */
    int http_status;     /**< HTTP status of the peer's answer, else 0 */
    int peer_code;       /**< `code` of the peer's answer, else 0 */
    char text[256];      /**< what failed, with names and values; always closed */
    char cause[512];     /**< why, as a chain "a: b: c"; may be empty */
    const char *reason;  /**< why, in the one word that comm_coordinator_why() has for it,
                          * such as "silent"; NULL: none. Static */
    uint64_t reserved[7];
} coord_error;

/** Short name of a status, such as "timed out"; never NULL. @thread any */
COORD_API const char *coord_status_str(coord_status status);

#ifdef __cplusplus
}
#endif
#endif
