/* definition.c - names and expressions, both container/output/metrics.h's. */
#include "entrypoint/definition.h"

#include "container/output/metrics.h"
#include "estimator_spec/tree.h"

int ty_definition_add(ty_doc *map, bool validation, const char *name, int *n_left_out, ty_arena *a, ty_error *err)
{
    ty_buf regex;
    ty_metric_definition definition = {validation ? TY_SPLIT_VALIDATION : TY_SPLIT_TRAIN, name};
    if (map->n_items == TY_METRIC_DEFINITIONS_MAX) {
        (*n_left_out)++;
        return 0;
    }
    ty_buf_init(&regex, TY_METRIC_REGEX_BYTES);
    int rc = ty_metrics_regex(&regex, &definition, err);
    if (rc == 0)
        ty_tree_put_key(a, map, ty_arena_printf(a, "%s:%s", ty_metrics_split_text(definition.split), name),
                        ty_tree_string(a, regex.data));
    ty_buf_fini(&regex);
    return rc;
}
