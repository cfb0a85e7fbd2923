/* constrain.c - see constrain.h; formulas: ty_constraint in train_spec.h. */
#include "compiler/passes/constrain.h"

#include "compiler/ir/build.h"

#define CONSTRAIN_EPSILON 1e-7 /* keras.config.epsilon() */

static ty_val constrain_between(ty_graph *g, ty_val n, double lo, double hi)
{
    return ty_b_min(g, ty_b_max(g, n, ty_b_full_like(g, n, lo)), ty_b_full_like(g, n, hi));
}

/* The norm that is asked for in the place of n. */
static ty_val constrain_norm(ty_graph *g, const ty_constraint *c, ty_val n)
{
    if (c->kind == TY_CONSTRAINT_UNIT_NORM)
        return ty_b_full_like(g, n, 1);
    if (c->kind == TY_CONSTRAINT_MAX_NORM)
        return ty_b_min(g, n, ty_b_full_like(g, n, c->max));
    ty_val inside = ty_b_mul_s(g, constrain_between(g, n, c->min, c->max), c->rate);
    return ty_b_add(g, inside, ty_b_mul_s(g, n, 1 - c->rate));
}

ty_val ty_constrain(ty_graph *g, const ty_constraint *c, ty_val w)
{
    if (c->kind == TY_CONSTRAINT_NONE || w == TY_NONE)
        return w;
    if (c->kind == TY_CONSTRAINT_NON_NEG)
        return ty_b_max(g, w, ty_b_full_like(g, w, 0));
    ty_val n = ty_b_unary(g, TY_OP_SQRT, ty_b_sum(g, ty_b_square(g, w), c->axes, true));
    ty_val factor = ty_b_div(g, constrain_norm(g, c, n), ty_b_add_s(g, n, CONSTRAIN_EPSILON));
    return ty_b_mul(g, w, factor);
}

bool ty_constrain_has_some(const ty_param_set *set, const ty_param_group *group)
{
    for (int i = 0; i < group->n_members; i++)
        if (set->param[group->member[i]].weight->constraint.kind != TY_CONSTRAINT_NONE)
            return true;
    return false;
}

ty_val ty_constrain_group(const ty_param_set *set, const ty_param_group *group, ty_graph *g, ty_val flat)
{
    if (!ty_constrain_has_some(set, group))
        return flat;
    ty_val *part = TY_NEW_ARRAY(set->arena, ty_val, group->n_members);
    int64_t at = 0;
    for (int i = 0; i < group->n_members; at += group->member_elems[i++]) {
        const ty_param *p = &set->param[group->member[i]];
        part[i] = ty_b_slice_axis(g, flat, 0, at, at + group->member_elems[i]);
        if (p->weight->constraint.kind == TY_CONSTRAINT_NONE)
            continue;
        ty_val w = ty_b_reshape(g, part[i], p->type.rank, p->type.dim);
        part[i] = ty_b_flatten(g, ty_constrain(g, &p->weight->constraint, w));
    }
    return group->n_members == 1 ? part[0] : ty_b_concat(g, part, group->n_members, 0);
}
