/* cluster.h - who trains: hosts, how many ranks each, what each is for. One map, from which all else is made.
 *
 * The platform says which hosts there are (resourceconfig.json) and, by reserved hyperparameters, how a job is spread
 * over them; a recipe may say so as well. Where both do they must agree: neither is silently dropped. Every host makes
 * the same map out of the same files. Ranks are numbered host by host in the order of the map: rank 0 is the first of
 * the first host.
 *
 *     ty_cluster_make(&c, &arena, &config, &hardware, recipe, err)
 *     c.host[c.self].first_rank ... + ranks - 1      are ours
 *     c.host[c.self].servers                         the last so many of them are parameter servers, the others workers
 *     c.starts_ranks                                 whether an agent starts them (dist/agent/agent.h)
 *     c.tf_config                                    what TensorFlow programs are told
 *
 * What TF_CONFIG is made of are the hosts of this map too (container/config/tf_config.h); what a rank finds in its
 * environment is the agent's table, made of the same numbers.
 */
#ifndef TY_ENTRYPOINT_CLUSTER_H
#define TY_ENTRYPOINT_CLUSTER_H

#include "container/config/container_config.h"
#include "container/config/hardware.h"
#include "entrypoint/recipe.h"

enum { TY_CLUSTER_MAX_RANKS = 4096 };

typedef struct ty_cluster_host {
    const char *name;
    const char *role; /* "worker"; of parameter servers "master" for the first host */
    const char *instance_type;
    int ranks, first_rank;
    int room;                  /* for ranks: more than it has where the job named a number of all ranks */
    int servers, first_worker; /* of the ranks, the last are servers; number of the host's first worker among all */
} ty_cluster_host;

typedef struct ty_cluster {
    ty_strategy strategy;    /* never AUTO */
    const char *strategy_at; /* what said so: "train.yaml:4", "hyperparameter \"sagemaker_mpi_enabled\"", "the job" */
    const ty_cluster_host *host; /* [n_hosts] that train together; ours alone if it takes no part */
    int n_hosts, self;
    int n_ranks;                /* of all hosts */
    int n_workers, n_servers;   /* of these: with parameter servers both, else all are workers */
    bool starts_ranks;          /* several ranks, or a program that is to be a rank */
    const char *mpi_options;    /* more words for mpirun; NULL: none. Then mpirun starts the ranks of a program */
    bool data_parallel_library; /* asked for as SageMaker's own: its mpirun line and its smddprun, if it is here */
    const char *instance_type;  /* of the job: hyperparameter "sagemaker_instance_type", else that of this host */
    const char *tf_config;      /* NULL: none is set */
} ty_cluster;

/* recipe: what is to be trained; NULL: a user's program, which decides by itself what its ranks do.
 *
 * Errors: TY_E_CONFIG where recipe and hyperparameters, or strategy and hosts, contradict each other: the message has
 * both places. TY_E_TYPE, TY_E_RANGE: a hyperparameter that is no number of ranks. */
int ty_cluster_make(ty_cluster *c, ty_arena *a, const ty_container_config *config, const ty_hardware *hardware,
                    const ty_recipe *recipe, ty_error *err);

/* "algo-1:2 algo-2:2", with parameter servers "algo-1:1+1 algo-2:1+1": for logs, and for hosts to compare. */
const char *ty_cluster_text(const ty_cluster *c, ty_arena *a);

#endif
