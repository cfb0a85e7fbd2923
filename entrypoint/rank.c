/* rank.c - see rank.h. */
#include "entrypoint/rank.h"

#include "entrypoint/company.h"
#include "entrypoint/doing.h"
#include "entrypoint/rank_served.h"
#include "entrypoint/stop.h"

#include <limits.h>
#include <stdio.h>

static const ty_wire rank_wires[] = {[TY_RECIPE_WIRE_NONE] = TY_WIRE_AS_IS,
                                     [TY_RECIPE_WIRE_FLOAT16] = TY_WIRE_F16,
                                     [TY_RECIPE_WIRE_BFLOAT16] = TY_WIRE_BF16};

static int rank_find_company(const ty_job *job, const ty_recipe *recipe, ty_company **out, ty_error *err)
{
    ty_comm *comm;
    char timeline[PATH_MAX];
    snprintf(timeline, sizeof timeline, "%s/timeline", job->output_folder);
    ty_comm_options options = {.rank_order = recipe->deterministic_strict,
                               .hierarchical = recipe->distributed.hierarchical,
                               .page = ty_doing_page(),
                               .timeline = recipe->distributed.timeline ? timeline : NULL,
                               .threads = (int)recipe->threads};
    if (ty_comm_open(&options, &comm, err) < 0)
        return -1;
    return ty_company_of(comm, rank_wires[recipe->distributed.wire], out, err);
}

static int rank_train(ty_job *job, const ty_recipe *recipe, ty_company **company, ty_job_end *end,
                      ty_job_progress *progress, ty_error *err)
{
    if (rank_find_company(job, recipe, company, err) < 0)
        return -1;
    job->company = *company;
    return ty_job_train(job, end, progress, err);
}

int ty_rank_train(ty_job *job, const ty_recipe *recipe, const ty_cluster *cluster, ty_job_end *end,
                  ty_job_progress *progress, ty_error *err)
{
    ty_company *company = NULL;
    ty_stop_ends_after(0);
    ty_doing_open();
    ty_stop_ends_if(ty_doing_is_over);
    int rc = cluster->n_servers > 0 ? ty_rank_with_servers(job, recipe, cluster, end, progress, err)
                                    : rank_train(job, recipe, &company, end, progress, err);
    if (rc < 0)
        ty_doing_failed(err->message);
    else
        ty_doing_now(TY_DOING_FINISHED);
    ty_company_free(company, rc == 0);
    ty_stop_ends_if(NULL);
    ty_doing_close();
    return rc;
}
