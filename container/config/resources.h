/* resources.h - resourceconfig.json: who we are among which hosts.
 *
 * A host's rank is its index in `hosts`, in the order of the file (algo-1, algo-10, algo-2: all hosts read the same
 * file and must agree). Groups matter for jobs with several kinds of instances; their host lists need not be sorted.
 * Old and local files have neither groups nor an instance type. Host names are never taken from the system.
 */
#ifndef TY_CONTAINER_CONFIG_RESOURCES_H
#define TY_CONTAINER_CONFIG_RESOURCES_H

#include "container/config/value.h"

typedef struct ty_instance_group {
    const char *name;
    const char *instance_type; /* "" if not given */
    const char *const *hosts;  /* [n_hosts], in the order of the file */
    size_t n_hosts;
} ty_instance_group;

typedef struct ty_resources {
    const char *current_host;
    size_t host_index;        /* of current_host in hosts */
    const char *const *hosts; /* [n_hosts], at least one, no name twice */
    size_t n_hosts;
    const char *instance_type;       /* "local" where the file has none */
    const char *current_group;       /* "homogeneousCluster" where the file has none */
    const char *network_interface;   /* "eth0" where the file has none */
    const ty_instance_group *groups; /* [n_groups]; none in local mode */
    size_t n_groups;
    ty_value groups_raw; /* list: the group objects as they stand in the file */
    ty_value topology;   /* as in the file; an empty list if it has none */
    ty_value whole;      /* the file, as SM_RESOURCE_CONFIG shows it */
} ty_resources;

/* doc: the parsed file. NULL means that there is none: one host called "localhost", so that a container started by hand
 * needs no name service. Errors: TY_E_MISSING_KEY (hosts, current_host, a group's name), TY_E_TYPE, TY_E_RANGE (no
 * hosts, an empty name, a host or group twice), TY_E_CONFIG (current_host is not among hosts). */
int ty_resources_init(ty_resources *r, ty_arena *a, const ty_doc *doc, ty_error *err);
/* The group of that name, or NULL. */
const ty_instance_group *ty_resources_group(const ty_resources *r, const char *name);

#endif
