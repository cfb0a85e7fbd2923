/* clip.c - as PyTorch's clip_grad_norm_ and clip_grad_value_, and Keras' clipnorm. */
#include "compiler/passes/clip.h"

#include "compiler/ir/build.h"

ty_val ty_clip_squares(ty_graph *g, const ty_val *grad, int n)
{
    ty_val sum = ty_b_scalar(g, TY_F32, 0);
    for (int i = 0; i < n; i++) {
        ty_val squares = ty_b_sum(g, ty_b_square(g, grad[i]), 1, false);
        sum = i == 0 ? squares : ty_b_add(g, sum, squares);
    }
    return sum;
}

ty_val ty_clip_norm(ty_graph *g, const ty_val *grad, int n_groups)
{
    return ty_b_unary(g, TY_OP_SQRT, ty_clip_squares(g, grad, n_groups));
}

ty_val ty_clip_to(ty_graph *g, ty_val grad, double max)
{
    return ty_b_max(g, ty_b_min(g, grad, ty_b_full_like(g, grad, max)), ty_b_full_like(g, grad, -max));
}

ty_val ty_clip_factor(ty_graph *g, ty_val norm, double max)
{
    ty_val limit = ty_b_full_like(g, norm, max);
    return ty_b_div(g, limit, ty_b_max(g, norm, limit));
}

static ty_val clip_value(ty_graph *g, ty_val grad, double max, ty_val norm, const ty_segments *segments)
{
    (void)norm;
    (void)segments;
    return ty_clip_to(g, grad, max);
}

/* Times min(1, max / (norm + 1e-6)). */
static ty_val clip_global_norm(ty_graph *g, ty_val grad, double max, ty_val norm, const ty_segments *segments)
{
    (void)segments;
    ty_val limit = ty_b_div(g, ty_b_full_like(g, norm, max), ty_b_add_s(g, norm, 1e-6));
    return ty_b_mul(g, grad, ty_b_min(g, limit, ty_b_full_like(g, norm, 1)));
}

/* Times min(1, max / norm). */
static ty_val clip_keras_global_norm(ty_graph *g, ty_val grad, double max, ty_val norm, const ty_segments *segments)
{
    (void)segments;
    return ty_b_mul(g, grad, ty_clip_factor(g, norm, max));
}

/* Each tensor times max / max(its norm, max). */
static ty_val clip_norm(ty_graph *g, ty_val grad, double max, ty_val norm, const ty_segments *segments)
{
    ty_val *factor = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, segments->n);
    (void)norm;
    ty_segment_norms(g, grad, segments, factor);
    for (int i = 0; i < segments->n; i++)
        factor[i] = ty_clip_factor(g, factor[i], max);
    return ty_b_mul(g, grad, ty_segment_spread(g, factor, segments));
}

void ty_clip_apply(ty_graph *g, ty_clip_kind kind, double max, ty_val norm, ty_val *grad, const ty_segments *segments,
                   int n_groups)
{
    static ty_val (*const clips[])(ty_graph *, ty_val, double, ty_val,
                                   const ty_segments *) = {[TY_CLIP_NONE] = NULL,
                                                           [TY_CLIP_VALUE] = clip_value,
                                                           [TY_CLIP_GLOBAL_NORM] = clip_global_norm,
                                                           [TY_CLIP_NORM] = clip_norm,
                                                           [TY_CLIP_KERAS_GLOBAL_NORM] = clip_keras_global_norm};
    if ((unsigned)kind >= sizeof clips / sizeof *clips || !clips[kind])
        return;
    for (int i = 0; i < n_groups; i++)
        grad[i] = clips[kind](g, grad[i], max, norm, &segments[i]);
}
