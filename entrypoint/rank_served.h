/* rank_served.h - a rank of a job with parameter servers: one of its workers, or one of its servers.
 *
 * Which it is follows from its number among the ranks of its host (cluster.h); where servers are, from the addresses
 * that the agent has found and the recipe's port: the server of a host listens there, and where several hosts have one
 * address, as in tests, on the ports behind it.
 */
#ifndef TY_ENTRYPOINT_RANK_SERVED_H
#define TY_ENTRYPOINT_RANK_SERVED_H

#include "entrypoint/cluster.h"
#include "entrypoint/job.h"

/* Trains or serves, to the end. A server ends when all workers have left. */
int ty_rank_with_servers(ty_job *job, const ty_recipe *recipe, const ty_cluster *cluster, ty_job_end *end,
                         ty_job_progress *progress, ty_error *err);

#endif
