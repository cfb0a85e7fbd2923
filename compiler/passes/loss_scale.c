/* loss_scale.c - see loss_scale.h. */
#include "compiler/passes/loss_scale.h"

#include "compiler/ir/build.h"

#include <float.h>
#include <math.h>

void ty_loss_scale_begin(ty_graph *g, ty_loss_scale *s)
{
    static const float start = TY_LOSS_SCALE_START;
    *s = (ty_loss_scale){.on = true, .finite = TY_NONE};
    s->scale_state = ty_graph_add_counter(g, "loss_scale", ty_type_scalar(TY_F32), &start);
    s->good_state = ty_graph_add_counter(g, "loss_scale.good", ty_type_scalar(TY_I64), NULL);
    s->updates_state = ty_graph_add_counter(g, "loss_scale.updates", ty_type_scalar(TY_I64), NULL);
    s->scale = ty_b_state(g, s->scale_state);
    s->updates = ty_b_state(g, s->updates_state);
}

ty_val ty_loss_scale_loss(ty_graph *g, const ty_loss_scale *s, ty_val loss)
{
    return s->on ? ty_b_mul(g, loss, s->scale) : loss;
}

/* The scale is a power of two, so that dividing by it rounds nothing. */
/* The most of one's own, or infinity if that of any replica is not finite. */
static ty_val loss_scale_across(ty_graph *g, ty_val most, int replicas)
{
    ty_val zero = ty_b_scalar(g, TY_F32, 0), bad = ty_b_scalar(g, TY_F32, 1);
    bad = ty_b_select(g, ty_b_le(g, most, ty_b_scalar(g, TY_F32, FLT_MAX)), zero, bad);
    bad = ty_b_all_reduce(g, bad, replicas);
    return ty_b_select(g, ty_b_le(g, bad, zero), zero, ty_b_scalar(g, TY_F32, INFINITY));
}

void ty_loss_scale_unscale(ty_graph *g, ty_loss_scale *s, ty_val *grad, int n, int n_own, int replicas)
{
    if (!s->on)
        return;
    ty_val inverse = ty_b_reciprocal(g, s->scale), most = ty_b_scalar(g, TY_F32, 0);
    for (int i = 0; i < n; i++) {
        most = ty_b_max(g, most, ty_b_reduce(g, ty_b_unary(g, TY_OP_ABS, grad[i]), TY_MAX, 1, false));
        grad[i] = ty_b_mul(g, grad[i], inverse);
        if (i + 1 == n_own)
            most = loss_scale_across(g, most, replicas);
    }
    s->finite = ty_b_le(g, most, ty_b_scalar(g, TY_F32, FLT_MAX)); /* false for NaN, which max hands on */
}

ty_val ty_loss_scale_guard(ty_graph *g, const ty_loss_scale *s, ty_val old, ty_val new_value)
{
    return s->on ? ty_b_select(g, s->finite, new_value, old) : new_value;
}

void ty_loss_scale_end(ty_graph *g, const ty_loss_scale *s)
{
    if (!s->on)
        return;
    ty_val zero = ty_b_scalar(g, TY_I64, 0), good = ty_b_add_s(g, ty_b_state(g, s->good_state), 1);
    ty_val grows = ty_b_le(g, ty_b_scalar(g, TY_I64, TY_LOSS_SCALE_INTERVAL), good);
    ty_val larger = ty_b_min(g, ty_b_mul_s(g, s->scale, 2), ty_b_scalar(g, TY_F32, TY_LOSS_SCALE_MOST));
    ty_val kept = ty_b_select(g, grows, larger, s->scale);
    ty_val next = ty_b_select(g, s->finite, kept, ty_b_mul_s(g, s->scale, 0.5));
    ty_graph_add_assign(g, s->scale_state, next, TY_TAPE_LAST);
    ty_graph_add_assign(g, s->good_state, ty_b_select(g, s->finite, ty_b_select(g, grows, zero, good), zero),
                        TY_TAPE_LAST);
    ty_graph_add_assign(g, s->updates_state, ty_b_select(g, s->finite, ty_b_add_s(g, s->updates, 1), s->updates),
                        TY_TAPE_LAST);
    ty_graph_add_output(g, "loss_scale", next, TY_TAPE_LAST);
}
