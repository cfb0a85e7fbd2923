/* rank.h - one rank of a training: what `trainyard rank` is, which an agent starts on each host as often as the
 * cluster's map says (launch.h). */
#ifndef TY_ENTRYPOINT_RANK_H
#define TY_ENTRYPOINT_RANK_H

#include "entrypoint/job.h"
#include "entrypoint/cluster.h"

/* Finds the other ranks by the environment and trains with them, or serves them if it is a parameter server. A stop
 * before the first step ends the process at once: nothing is lost then, and no rank waits for one that is gone. After a
 * failure the rank's page tells it. */
int ty_rank_train(ty_job *job, const ty_recipe *recipe, const ty_cluster *cluster, ty_job_end *end,
                  ty_job_progress *progress, ty_error *err);

#endif
