/* distribution.h - which hosts train together, and who of them leads.
 *
 * Derived from resources and reserved hyperparameters alone, by the toolkit's rules, so that every host computes the
 * same answer from the same files. How ranks are started and talk is not decided here.
 */
#ifndef TY_CONTAINER_CONFIG_DISTRIBUTION_H
#define TY_CONTAINER_CONFIG_DISTRIBUTION_H

#include "container/config/resources.h"

typedef struct ty_distribution {
    const char *const *groups; /* [n_groups]: names of the groups that take part; none without a distribution flag */
    size_t n_groups;
    const char *const
        *hosts; /* [n_hosts]: theirs, in the order of the file; all hosts where the file lists no groups */
    size_t n_hosts;
    const char *master; /* the first of them; the first host of all if there are none */
    bool is_master;
    bool takes_part; /* our own group is among groups: only then a launcher applies */
    const char
        *corrected_flag; /* a flag that was sent as a raw "False" and was taken as off; NULL if none. For the log */
} ty_distribution;

/* framework: ty_hyperparameters.framework. TY_E_TYPE if sagemaker_distribution_instance_groups is no list of strings.
 */
int ty_distribution_init(ty_distribution *d, ty_arena *a, const ty_resources *r, const ty_value *framework,
                         ty_error *err);

#endif
