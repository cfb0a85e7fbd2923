/* tables.c - see tables.h. */
#include "compiler/passes/tables.h"

#include "compiler/ir/build.h"
#include "compiler/model.h"
#include "compiler/ops/op.h"
#include "compiler/passes/optimizer.h"
#include "compiler/passes/precision.h"

#include <inttypes.h>

/* ---- what goes with it ---- */

static int tables_check_spec(const ty_train_spec *spec, ty_error *err)
{
    const char *why = spec->row_lists ? NULL : ty_optimizer_refuses_rows(&spec->optimizer);
    if (why)
        return ty_error_set(err, TY_E_CONFIG, "sparse_rows: %s %s", ty_optimizer_text(spec->optimizer.kind), why);
    if (spec->accumulate > 1) {
        ty_error_set(err, TY_E_CONFIG, "sparse_rows: with accumulate %d gradients would be kept for whole tables",
                     spec->accumulate);
        return ty_error_help(err, "use larger batches in place of accumulate");
    }
    if (spec->update_every > 1)
        return ty_error_set(err, TY_E_CONFIG, "sparse_rows: with update_every %d gradients are kept for whole tables",
                            spec->update_every);
    if (spec->ema_decay != 0)
        return ty_error_set(err, TY_E_CONFIG, "sparse_rows: averages (ema) change every row of a table at every step");
    return 0;
}

static int tables_check_decay(const ty_param *p, const ty_train_spec *spec, ty_error *err)
{
    if (p->weight->constraint.kind != TY_CONSTRAINT_NONE)
        return ty_error_set(err, TY_E_CONFIG, "sparse_rows: the constraint of \"%s\" reads every row at every step",
                            p->weight->name);
    if (spec->optimizer.weight_decay == 0 || !p->decays)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "sparse_rows: weight decay changes every row of \"%s\" at every step",
                 p->weight->name);
    return ty_error_help(err, "name it under no_decay");
}

/* ---- which weights ---- */

/* How the loss reads the weights. */
typedef struct table_uses {
    const ty_graph *g;
    const uint8_t *live; /* by node */
    ty_arena *arena;
} table_uses;

static bool table_is_gather(const ty_graph *g, uint32_t id, ty_val leaf)
{
    return ty_graph_op(g, id) == TY_OP_GATHER && ty_graph_attr(g, id)->axis == 0 && ty_graph_in(g, id, 0) == leaf &&
           ty_graph_in(g, id, 1) != leaf;
}

uint32_t ty_table_lookups(const ty_graph *g, const uint8_t *live, ty_arena *a, ty_val leaf, ty_val **gather, int *n)
{
    *gather = TY_NEW_ARRAY(a, ty_val, ty_graph_n_nodes(g));
    *n = 0;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        bool reads = false;
        for (uint32_t k = 0; live[id] && k < ty_graph_node(g, id)->n_in; k++)
            reads |= ty_graph_in(g, id, (int)k) == leaf;
        if (reads && !table_is_gather(g, id, leaf)) {
            *n = 0;
            return id;
        }
        if (reads)
            (*gather)[(*n)++] = ty_val_make(id, 0);
    }
    return TY_NONE;
}

static int table_refuse(const ty_graph *g, const ty_param *p, uint32_t reader, ty_error *err)
{
    ty_error_set(err, TY_E_CONFIG, "sparse_rows: \"%s\" is read whole by %s (%s), not only by gathering its rows",
                 p->weight->name, ty_graph_origin_of(g, reader), ty_op_row_of(ty_graph_op(g, reader))->text);
    return ty_error_help(err, "sparse_rows: true takes the tables that can be updated by rows");
}

static int tables_mark(ty_param_set *set, const table_uses *uses, const ty_train_spec *spec, int *n, ty_error *err)
{
    for (int i = 0; i < set->n_params; i++) {
        ty_param *p = &set->param[i];
        bool named = ty_params_in_list(p->weight->name, spec->sparse_rows, spec->n_sparse_rows);
        if (!p->trained || p->same_as != i || !(spec->sparse_all || named))
            continue;
        uint32_t reader = ty_table_lookups(uses->g, uses->live, uses->arena, p->leaf, &p->gather, &p->n_gathers);
        if (reader != TY_NONE && !spec->sparse_all)
            return table_refuse(uses->g, p, reader, err);
        if (p->n_gathers && tables_check_decay(p, spec, err) < 0)
            return -1;
        *n += p->n_gathers > 0;
    }
    return 0;
}

int ty_tables_find(ty_param_set *set, const ty_model *m, const ty_graph *g, ty_val loss, const ty_train_spec *spec,
                   ty_error *err)
{
    if (!spec->sparse_all && spec->n_sparse_rows == 0)
        return 0;
    if (tables_check_spec(spec, err) < 0 ||
        ty_params_check_names(m, "sparse_rows", spec->sparse_rows, spec->n_sparse_rows, err) < 0)
        return -1;
    uint8_t *live = TY_NEW_ARRAY(set->arena, uint8_t, ty_graph_n_nodes(g) + 1);
    ty_params_mark(g, loss, live);
    int n = 0;
    if (tables_mark(set, &(table_uses){g, live, set->arena}, spec, &n, err) < 0)
        return -1;
    if (n > TY_PARAM_MAX_TABLES)
        return ty_error_set(err, TY_E_LIMIT, "sparse_rows: at most %d tables can be updated by rows, found %d",
                            TY_PARAM_MAX_TABLES, n);
    if (n == 0)
        return ty_error_set(err, TY_E_CONFIG, "sparse_rows: the model has no trained table that it only gathers from");
    return 0;
}

/* ---- rows ---- */

static int64_t table_rows(const ty_param_group *group)
{
    return group->table.dim[0];
}

/* Where replicas together ask for so many rows that these are more bytes than the table's gradient, which is moved
 * twice to be added up, once for its parts and once for their sums. */
static bool table_travels_whole(const ty_param_set *set, const ty_param_group *group, int64_t asked)
{
    return set->replicas > 1 && asked > 2 * table_rows(group) / set->replicas;
}

static ty_val table_add_up(ty_graph *g, ty_val own, const int64_t *dim, int replicas)
{
    const ty_attr attr = {.replicas = replicas, .flags = TY_OF_GRADIENTS};
    ty_val flat = ty_b_flatten(g, own);
    return ty_b_reshape(g, ty_graph_emit(g, TY_OP_ALL_REDUCE, &attr, &flat, 1), 2, dim);
}

ty_val ty_table_gradient(const ty_param_set *set, ty_param_group *group, ty_graph *g, const ty_val *dres)
{
    const ty_param *p = &set->param[group->member[0]];
    ty_val *index = TY_NEW_ARRAY(set->arena, ty_val, p->n_gathers),
           *part = TY_NEW_ARRAY(set->arena, ty_val, p->n_gathers);
    int64_t width = table_rows(group) ? group->elems / table_rows(group) : 0;
    for (int k = 0; k < p->n_gathers; k++) {
        ty_val i = ty_graph_in(g, ty_val_node(p->gather[k]), 1);
        int64_t dim[2] = {ty_type_elems(ty_graph_type(g, i)), width};
        index[k] = ty_b_cast(g, ty_b_flatten(g, i), TY_I64);
        part[k] = ty_b_reshape(g, ty_precision_widen(g, dres[k]), 2, dim);
    }
    ty_val all = p->n_gathers == 1 ? index[0] : ty_b_concat(g, index, p->n_gathers, 0), order, start;
    ty_val update = p->n_gathers == 1 ? part[0] : ty_b_concat(g, part, p->n_gathers, 0);
    if (ty_graph_failed(g, NULL))
        return TY_NONE;
    int64_t asked = ty_b_dim(g, all, 0), dim[2] = {table_rows(group), width};
    bool whole = table_travels_whole(set, group, asked);
    ty_val own = whole ? ty_b_scatter(g, ty_b_full(g, TY_F32, 2, dim, 0), all, update, 0, TY_SUM) : TY_NONE;
    all = ty_b_all_gather(g, all, set->replicas);
    group->rows = ty_b_find_rows(g, all, table_rows(group), &order, &start);
    ty_val sums = whole ? ty_b_get_rows(g, table_add_up(g, own, dim, set->replicas), group->rows)
                        : ty_b_sum_rows(g, ty_b_all_gather_gradients(g, update, set->replicas), order, start);
    sums = ty_b_flatten(g, sums);
    group->grad_elems = ty_graph_failed(g, NULL) ? 0 : ty_b_dim(g, sums, 0);
    return sums;
}

void ty_tables_tell(const ty_param_set *set, const ty_train_spec *spec, ty_graph *g)
{
    for (int k = 0; spec->row_lists && k < set->n_groups; k++) {
        const ty_param_group *group = &set->group[k];
        const char *name = set->param[group->member[0]].weight->name;
        if (group->by_rows)
            ty_graph_add_output(g, ty_arena_printf(set->arena, "rows.%s", name), group->rows, TY_TAPE_ROWS);
    }
}

/* A state as [rows, width]. */
static ty_val table_state(const ty_param_group *group, ty_graph *g, int state)
{
    int64_t dim[2] = {table_rows(group), table_rows(group) ? group->elems / table_rows(group) : 0};
    return ty_b_reshape(g, ty_b_state(g, state), 2, dim);
}

ty_val ty_table_read(const ty_param_group *group, ty_graph *g, int state)
{
    return ty_b_flatten(g, ty_b_get_rows(g, table_state(group, g, state), group->rows));
}

ty_val ty_table_write(const ty_param_group *group, ty_graph *g, int state, ty_val rows)
{
    ty_val table = table_state(group, g, state), now = ty_b_get_rows(g, table, group->rows);
    if (ty_graph_failed(g, NULL))
        return TY_NONE;
    ty_type shape = *ty_graph_type(g, now);
    return ty_b_flatten(g, ty_b_set_rows(g, table, group->rows, ty_b_reshape(g, rows, shape.rank, shape.dim)));
}
