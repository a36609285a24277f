/* The processes that the driver starts: this program again, in its other roles. */
#ifndef SOAK_CHILDREN_H
#define SOAK_CHILDREN_H

#include "soak.h"

typedef struct soak_child {
    char name[16]; /* "host", "c3", "l0" */
    pid_t pid;     /* 0: does not run */
    int pid_fd;
    int64_t since_ms; /* of this state */
    int64_t again_ms; /* when it is to be started again; 0: not */
    int64_t go_on_ms; /* when its SIGCONT is due; 0: it is not stopped */
    int kills;
    int starts;
    bool spared; /* is never killed */
} soak_child;

/* What a process has of the machine. */
typedef struct soak_size {
    long rss_kb;
    long fds;
    long threads;
} soak_size;

/* Runs this program with these arguments; its output goes to the end of FOLDER/LOG. */
bool soak_spawn(soak_child *child, const char *folder, const char *log,
                char *const *argv);
/* SIGKILL, and waits for the end. */
void soak_kill(soak_child *child);
/* Waits for its end. The exit status, 128 + the signal that ended it, or -1: it runs. */
int soak_await(soak_child *child, int64_t limit_ms);
bool soak_measure(const soak_child *child, soak_size *ret);
/* A port of 127.0.0.1, below those that the kernel gives to anybody, that is free now. */
int soak_find_port(int from);

#endif
