#ifndef ELASTIC_CLUSTER_H
#define ELASTIC_CLUSTER_H

#include "support/fake_operator.h"

/* What a cluster does with pods, on one machine: for each pod of the operator's server
 * there is a process, a worker with an address of its own out of 127.0.0.0/8. It begins
 * when the server creates the pod, and is ended when the pod is deleted. */
typedef struct cluster cluster;

/* `worker` is the path of examples/worker. From here on the server's pods have addresses
 * that can be reached. NULL: stderr has been told why. */
cluster *cluster_create(fake_operator *server, const char *worker);

/* The process of a pod dies, as in a crash. The pod stays in the server's list: that is
 * how Kubernetes does it, too. */
bool cluster_crash(cluster *k, const char *id);

/* How many processes run. */
size_t cluster_count(const cluster *k);

/* Ends all processes, and returns when they have gone. Takes NULL. */
void cluster_destroy(cluster *k);

#endif
