/* distribution.c - contract, section 5.3. */
#include "container/config/distribution.h"

#include "container/config/reserved.h"

#include <string.h>

/* Any of these puts our own group into distribution. */
static const char *const distribution_flags[] = {
    "sagemaker_mpi_enabled",
    "sagemaker_parameter_server_enabled",
    "sagemaker_distributed_dataparallel_enabled",
    "sagemaker_pytorch_ddp_enabled",
    "sagemaker_pytorch_xla_multi_worker_enabled",
    "sagemaker_multi_worker_mirrored_strategy_enabled",
    "sagemaker_torch_distributed_enabled",
};

static bool distribution_has(const ty_distribution *d, const char *group)
{
    for (size_t i = 0; i < d->n_groups; i++)
        if (strcmp(d->groups[i], group) == 0)
            return true;
    return false;
}

static int distribution_given_groups(ty_distribution *d, ty_arena *a, const ty_value *given, ty_error *err)
{
    static const char key[] = "sagemaker_distribution_instance_groups";

    if (given->kind != TY_VALUE_LIST)
        return ty_error_set(err, TY_E_TYPE, "hyperparameter \"%s\": expected a list of group names, found %s", key,
                            ty_value_kind_name(given->kind));

    const char **groups = TY_NEW_ARRAY(a, const char *, given->n);

    for (size_t i = 0; i < given->n; i++) {
        groups[i] = ty_value_text(&given->items[i]);
        if (groups[i] == NULL)
            return ty_error_set(err, TY_E_TYPE, "hyperparameter \"%s\": expected group names, found %s at index %zu",
                                key, ty_value_kind_name(given->items[i].kind), i);
    }
    d->groups = groups;
    d->n_groups = given->n;
    return 0;
}

static void distribution_flagged_groups(ty_distribution *d, ty_arena *a, const ty_resources *r,
                                        const ty_value *framework)
{
    bool on = false;

    for (size_t i = 0; i < sizeof distribution_flags / sizeof distribution_flags[0]; i++) {
        bool corrected;
        on |= ty_reserved_flag(ty_value_get(framework, distribution_flags[i]), &corrected);
        if (corrected)
            d->corrected_flag = distribution_flags[i];
    }
    if (!on)
        return;
    d->groups = ty_arena_copy(a, &r->current_group, sizeof r->current_group);
    d->n_groups = 1;
}

static void distribution_hosts(ty_distribution *d, ty_arena *a, const ty_resources *r)
{
    size_t n = 0;

    if (r->n_groups == 0) {
        d->hosts = r->hosts;
        d->n_hosts = r->n_hosts;
        return;
    }
    for (size_t i = 0; i < r->n_groups; i++)
        n += r->groups[i].n_hosts;

    const char **hosts = TY_NEW_ARRAY(a, const char *, n);

    d->hosts = hosts;
    for (size_t i = 0; i < r->n_groups; i++)
        if (distribution_has(d, r->groups[i].name))
            for (size_t k = 0; k < r->groups[i].n_hosts; k++)
                hosts[d->n_hosts++] = r->groups[i].hosts[k];
}

int ty_distribution_init(ty_distribution *d, ty_arena *a, const ty_resources *r, const ty_value *framework,
                         ty_error *err)
{
    const ty_value *given = ty_value_get(framework, "sagemaker_distribution_instance_groups");

    *d = (ty_distribution){0};
    if (given == NULL)
        distribution_flagged_groups(d, a, r, framework);
    else if (distribution_given_groups(d, a, given, err) < 0)
        return -1;
    distribution_hosts(d, a, r);
    d->master = d->n_hosts > 0 ? d->hosts[0] : r->hosts[0];
    d->is_master = strcmp(d->master, r->current_host) == 0;
    d->takes_part = distribution_has(d, r->current_group);
    return 0;
}
