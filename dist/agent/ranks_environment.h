/* ranks_environment.h - what a rank is told: one table from the map to environment variables.
 *
 * Three kinds of variables. Who a rank is (RANK, OMPI_COMM_WORLD_SIZE, TF_CONFIG ...) follows from the map alone and
 * replaces whatever was inherited. How libraries are to behave (OMP_NUM_THREADS, OMPI_MCA_*, NCCL_SOCKET_IFNAME ...) is
 * our proposal: a variable that the user has set stays as it is. The third kind is removed: marks of another launcher,
 * which would make Open MPI believe that it runs there.
 */
#ifndef TY_DIST_AGENT_RANKS_ENVIRONMENT_H
#define TY_DIST_AGENT_RANKS_ENVIRONMENT_H

#include "base/arena.h"
#include "dist/agent/ranks.h"

/* Of each rank: the addresses of all hosts by their number, separated by commas. */
#define TY_RANK_ADDRESSES_VARIABLE "TRAINYARD_RANK_ADDRESSES"

/* What this host adds to the map. */
typedef struct ty_ranks_place {
    const char *session_folder; /* of PMIx and Open MPI */
    const char *shared_folder;  /* files that are memory shared by the ranks of this host */
    int cores;                  /* that this host's ranks share */
    bool copies_allowed;        /* process_vm_readv works between ranks (ranks_probe.h) */
} ty_ranks_place;

/* Number of the first rank of a host, or of all ranks for host n_hosts. */
int ty_ranks_first(const ty_ranks_host *hosts, int host);

/* The complete environment of rank `local` of the options' own host, NULL-terminated, in the arena. `inherited`: what
 * it is built upon. `more`: variables that replace all others (from PMIx), NULL-terminated, or NULL. */
char **ty_ranks_environment(ty_arena *a, const ty_ranks_options *o, const ty_ranks_place *place,
                            const char *const *inherited, char *const *more, int local);

#endif
