/* managed_recipe.c - from a job file to the recipe beside it, and to definitions of the metrics that it prints. */
#include "entrypoint/managed_recipe.h"

#include "container/config/hyperparameters.h"
#include "entrypoint/definition.h"
#include "entrypoint/overrides.h"
#include "entrypoint/report_names.h"
#include "estimator_spec/request.h"
#include "estimator_spec/tree.h"

#include <string.h>

/* The container gets the request's hyperparameters as hyperparameters.json. */
int ty_managed_recipe_find(const ty_jobspec *job, ty_arena *a, ty_managed_recipe *out, ty_error *err)
{
    ty_doc body;
    ty_hyperparameters h;
    *out = (ty_managed_recipe){.path = ty_jobspec_recipe_path(job, a)};
    if (!out->path)
        return 0;
    if (ty_jobspec_request(job, a, &body, err) < 0 ||
        ty_hyperparameters_init(&h, a, ty_doc_find(&body, "HyperParameters"), err) < 0)
        return -1;
    ty_recipe_override *list = TY_NEW_ARRAY(a, ty_recipe_override, h.n_items + 1);
    out->n_overrides = ty_overrides_of_hyperparameters(&h, a, list);
    out->overrides = list;
    return 0;
}

/* ---- metric definitions ---- */

typedef struct definer {
    ty_arena *a;
    ty_doc map;
    int n_left_out;
    ty_error *err;
} definer;

static int define(definer *d, bool validation, const char *name)
{
    return ty_definition_add(&d->map, validation, name, &d->n_left_out, d->a, d->err);
}

/* In the order of session_calls.c: what call_report prints, then what an evaluation does. */
static int define_all(definer *d, const ty_recipe *recipe, bool waits)
{
    for (int i = 0; i < TY_N_REPORTS; i++) {
        bool printed = i == TY_REPORT_LOSS_SCALE ? recipe->precision == TY_PRECISION_FLOAT16
                       : i == TY_REPORT_COMM_MS  ? waits
                       : i == TY_REPORT_BAD      ? recipe->train.skip_bad
                                                 : true;
        if (printed && define(d, false, ty_report_name((ty_report)i)) < 0)
            return -1;
    }
    if (!recipe->validation.given)
        return 0;
    if (define(d, true, "loss") < 0)
        return -1;
    for (int i = 0; i < recipe->n_metrics; i++)
        if (define(d, true, recipe->metrics[i].name) < 0)
            return -1;
    return 0;
}

/* Whether ranks will wait for each other, of several hosts or of one. */
static bool has_company(const ty_jobspec *job, const ty_recipe *recipe)
{
    bool by_mpi = ty_jobspec_has(job, TY_FIELD_MPI) && job->value[TY_FIELD_MPI_PROCESSES].integer > 1;
    return job->value[TY_FIELD_INSTANCE_COUNT].integer > 1 || job->n_groups > 1 ||
           (job->n_groups == 1 && job->groups[0].value[TY_FIELD_GROUP_COUNT].integer > 1) || by_mpi ||
           recipe->processes_per_host > 1;
}

static int define_metrics(ty_jobspec *job, const ty_recipe *recipe, ty_arena *a, ty_error *err)
{
    definer d = {.a = a, .map = ty_tree_map(), .err = err};
    if (define_all(&d, recipe, has_company(job, recipe)) < 0)
        return -1;
    if (d.n_left_out > 0)
        ty_jobspec_warn(job, ty_arena_printf(a,
                                             "the service takes no more metric definitions: the recipe's last %d "
                                             "metrics are printed and kept in metrics.jsonl, but not followed",
                                             d.n_left_out));
    ty_jobspec_derive_node(job, TY_FIELD_METRICS, ty_arena_copy(a, &d.map, sizeof d.map), "derived from source.recipe");
    return 0;
}

int ty_managed_recipe_check(ty_jobspec *job, ty_arena *a, ty_error *err)
{
    ty_managed_recipe along;
    ty_recipe recipe;
    if (ty_managed_recipe_find(job, a, &along, err) < 0)
        return -1;
    if (!along.path)
        return 0;
    if (ty_recipe_load(along.path, along.overrides, along.n_overrides, a, &recipe, err) < 0)
        return ty_error_wrap(err, "source.recipe");
    if (job->value[TY_FIELD_METRICS].at || strcmp(job->value[TY_FIELD_FRAMEWORK_NAME].text, "trainyard") != 0)
        return 0;
    return define_metrics(job, &recipe, a, err);
}
