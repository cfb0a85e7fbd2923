/* unmerged.c - see unmerged.h. */
#include "compiler/passes/unmerged.h"

#include "compiler/ir/build.h"
#include "compiler/passes/across.h"
#include "compiler/passes/clip.h"
#include "compiler/passes/optimizer.h"
#include "compiler/passes/precision.h"
#include "compiler/passes/tables.h"

static bool rows_is_asked(const ty_train_spec *spec)
{
    bool clips = spec->clip == TY_CLIP_VALUE || spec->clip == TY_CLIP_NORM || spec->clip == TY_CLIP_KERAS_GLOBAL_NORM;
    return spec->unmerged_rows && spec->accumulate <= 1 && spec->update_every <= 1 &&
           (clips || ty_optimizer_reads(&spec->optimizer) != TY_OPT_READS_NOTHING);
}

int ty_unmerged_check(const ty_train_spec *spec, ty_error *err)
{
    if (!rows_is_asked(spec) || !spec->optimizer_sharding || ty_across_replicas(spec) == 1)
        return 0;
    ty_error_set(err, TY_E_UNSUPPORTED,
                 "unmerged_rows: with optimizer_sharding no replica has a table's whole squares");
    return ty_error_help(err, "leave one of them out: unmerged_rows: false adds the rows of a table up first");
}

void ty_unmerged_find(ty_param_set *set, const ty_graph *g, ty_val loss, const ty_train_spec *spec)
{
    if (!rows_is_asked(spec))
        return;
    uint8_t *live = TY_NEW_ARRAY(set->arena, uint8_t, ty_graph_n_nodes(g) + 1);
    ty_params_mark(g, loss, live);
    for (int i = 0; i < set->n_params; i++) {
        ty_param *p = &set->param[i];
        if (p->trained && p->same_as == i && p->n_gathers == 0)
            ty_table_lookups(g, live, set->arena, p->leaf, &p->lookup, &p->n_lookups);
    }
}

/* ---- gradients ---- */

static int64_t rows_width(const ty_param *p)
{
    return p->type.dim[0] ? ty_type_elems(&p->type) / p->type.dim[0] : 0;
}

/* Rows added up where they belong, flat. */
static ty_val rows_merged(const ty_param *p, ty_graph *g, ty_val rows)
{
    int64_t dim[2] = {p->type.dim[0], rows_width(p)};
    return ty_b_flatten(g, ty_b_scatter(g, ty_b_full(g, TY_F32, 2, dim, 0), p->row_index, rows, 0, TY_SUM));
}

ty_val ty_unmerged_gradient(const ty_param_set *set, ty_param *p, ty_graph *g, const ty_val *dres)
{
    ty_val *index = TY_NEW_ARRAY(set->arena, ty_val, p->n_lookups),
           *part = TY_NEW_ARRAY(set->arena, ty_val, p->n_lookups);
    for (int k = 0; k < p->n_lookups; k++) {
        ty_val i = ty_graph_in(g, ty_val_node(p->lookup[k]), 1);
        int64_t dim[2] = {ty_type_elems(ty_graph_type(g, i)), rows_width(p)};
        index[k] = ty_b_cast(g, ty_b_flatten(g, i), TY_I64);
        part[k] = ty_b_reshape(g, ty_precision_widen(g, dres[k]), 2, dim);
    }
    p->row_index = p->n_lookups == 1 ? index[0] : ty_b_concat(g, index, p->n_lookups, 0);
    p->row_grad = p->n_lookups == 1 ? part[0] : ty_b_concat(g, part, p->n_lookups, 0);
    return ty_b_reshape(g, rows_merged(p, g, p->row_grad), p->type.rank, p->type.dim);
}

void ty_unmerged_unscale(ty_param_set *set, ty_graph *g, const ty_loss_scale *scale)
{
    for (int i = 0; i < set->n_params && scale->on; i++)
        if (set->param[i].n_lookups)
            set->param[i].row_grad = ty_b_mul(g, set->param[i].row_grad, ty_b_reciprocal(g, scale->scale));
}

/* ---- what is not linear ---- */

static bool rows_has_some(const ty_param_set *set, const ty_param_group *group)
{
    for (int i = 0; i < group->n_members; i++)
        if (set->param[group->member[i]].n_lookups)
            return true;
    return false;
}

/* Over all replicas. */
static ty_val rows_square_sum(const ty_param_set *set, const ty_param *p, ty_graph *g)
{
    ty_val all = ty_b_sum(g, ty_b_square(g, p->row_grad), 3, false);
    return ty_b_all_reduce(g, all, set->replicas);
}

const ty_val *ty_unmerged_square_sums(const ty_param_set *set, const ty_param_group *group, ty_graph *g)
{
    if (!rows_has_some(set, group))
        return NULL;
    ty_val *sums = TY_NEW_ARRAY(set->arena, ty_val, group->n_members);
    for (int i = 0; i < group->n_members; i++) {
        const ty_param *p = &set->param[group->member[i]];
        sums[i] = p->n_lookups ? rows_square_sum(set, p, g) : TY_NONE;
    }
    return sums;
}

/* A group's vector: the old one's parts, and for tables what `make` makes of their rows. */
typedef struct rows_make {
    const ty_param_set *set;
    ty_graph *g;
    const ty_train_spec *spec;
    double max;
} rows_make;
typedef ty_val rows_fn(const rows_make *m, const ty_param *p);
typedef ty_val rows_part_fn(ty_graph *g, ty_val part);

static ty_val rows_rebuild(const rows_make *m, const ty_param_group *group, ty_val old, rows_part_fn *dense,
                           rows_fn *make)
{
    ty_val *part = TY_NEW_ARRAY(m->set->arena, ty_val, group->n_members);
    int64_t at = 0;
    for (int i = 0; i < group->n_members; at += group->member_elems[i++]) {
        const ty_param *p = &m->set->param[group->member[i]];
        if (p->n_lookups)
            part[i] = ty_b_all_reduce(m->g, make(m, p), m->set->replicas);
        else
            part[i] = dense(m->g, ty_b_slice_axis(m->g, old, 0, at, at + group->member_elems[i]));
    }
    return group->n_members == 1 ? part[0] : ty_b_concat(m->g, part, group->n_members, 0);
}

static ty_val rows_as_it_is(ty_graph *g, ty_val part)
{
    (void)g;
    return part;
}

static ty_val rows_size(ty_graph *g, ty_val part)
{
    return ty_b_unary(g, TY_OP_ABS, part);
}

static ty_val rows_clipped(const rows_make *m, const ty_param *p)
{
    return rows_merged(p, m->g, ty_clip_to(m->g, p->row_grad, m->max));
}

ty_val ty_unmerged_clip(const ty_param_set *set, const ty_param_group *group, ty_graph *g, double max, ty_val grad)
{
    const rows_make m = {set, g, NULL, max};
    return rows_has_some(set, group) ? rows_rebuild(&m, group, grad, rows_as_it_is, rows_clipped) : grad;
}

/* The rows as they are clipped. */
static ty_val rows_after_clip(const rows_make *m, const ty_param *p)
{
    if (m->spec->clip == TY_CLIP_VALUE)
        return ty_clip_to(m->g, p->row_grad, m->max);
    if (m->spec->clip == TY_CLIP_NORM) {
        ty_val norm = ty_b_unary(m->g, TY_OP_SQRT, rows_square_sum(m->set, p, m->g));
        return ty_b_mul(m->g, p->row_grad, ty_clip_factor(m->g, norm, m->max));
    }
    return p->row_grad;
}

static ty_val rows_squares_of(const rows_make *m, const ty_param *p)
{
    return rows_merged(p, m->g, ty_b_square(m->g, rows_after_clip(m, p)));
}

static ty_val rows_sizes_of(const rows_make *m, const ty_param *p)
{
    return rows_merged(p, m->g, rows_size(m->g, rows_after_clip(m, p)));
}

ty_val ty_unmerged_squares(const ty_param_set *set, const ty_param_group *group, ty_graph *g, const ty_train_spec *spec,
                           ty_val grad)
{
    const rows_make m = {set, g, spec, spec->clip_max};
    ty_opt_reads reads = ty_optimizer_reads(&spec->optimizer);
    bool global = spec->clip == TY_CLIP_GLOBAL_NORM || spec->clip == TY_CLIP_KERAS_GLOBAL_NORM;
    if (!rows_has_some(set, group) || global || reads == TY_OPT_READS_NOTHING)
        return TY_NONE;
    if (reads == TY_OPT_READS_SIZES)
        return rows_rebuild(&m, group, grad, rows_size, rows_sizes_of);
    return rows_rebuild(&m, group, grad, ty_b_square, rows_squares_of);
}
