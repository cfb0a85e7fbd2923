/* tf_config.h - the TF_CONFIG variable that tells TensorFlow programs their cluster.
 *
 * Python's json.dumps spelling with sorted keys inside, as the SageMaker images write it:
 *     {"cluster": {"worker": ["algo-1:8890", "algo-2:8890"]}, "environment": "cloud", "task": {"index": 1, "type":
 * "worker"}}
 */
#ifndef TY_CONTAINER_CONFIG_TF_CONFIG_H
#define TY_CONTAINER_CONFIG_TF_CONFIG_H

#include "base/arena.h"

#include <stdbool.h>
#include <stddef.h>

/* hosts: the distribution hosts, in the order of the file; index: ours among them. Both return a string in the arena.
 */

/* Multi-worker mirrored strategy: every host is a worker on port 8890, one host as well. */
const char *ty_tf_config_mirrored(ty_arena *a, const char *const *hosts, size_t n_hosts, size_t index);

/* Parameter servers: the first host is the master (2222), the others are workers (2222), and each host runs a server
 * too (2223). is_server: for that second process. NULL for a single host, which runs without a cluster. */
const char *ty_tf_config_parameter_server(ty_arena *a, const char *const *hosts, size_t n_hosts, size_t index,
                                          bool is_server);

#endif
