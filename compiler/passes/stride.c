/* stride.c - on a GPU, float32 gradients for x of convolutions that go several positions at a time become those of
 * convolutions that go one by one, through positions that lie side by side as channels. So do transposed convolutions,
 * which are such gradients.
 *
 * Where tensor cores must not multiply, cuDNN 9 has no good kernels for them: on an H200 that of a convolution of 1 x 1
 * from 256 to 512 channels of 256 pictures of 56 x 56, two positions at a time, takes 13.6 ms, where those that go one
 * by one compute as much in 1.1. (Convolutions themselves and gradients for the weights go by steps as quickly.)
 *
 * By steps of s, position s * i + j becomes channel j of position i; a window of k positions becomes one of k / s,
 * rounded up with zeros: 16/9 of the work for 3 x 3 by two, the same work where s divides k. Of a window smaller than
 * the step only the positions that it meets are computed. What lies around x is computed too and cut off, so that the
 * new convolution has no padding. */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"

enum { AXES = 2 }; /* at most: of three nothing is known */

/* Along each axis of x: `at` positions, of `phases` of `step` old ones each, the first of which lies `lo` before x;
 * windows of `taps` of them. */
typedef struct stride_fold {
    int n;
    int64_t step[AXES], phases[AXES], taps[AXES], at[AXES], lo[AXES];
} stride_fold;

/* dx [N, C, in..], the result, and w [O, C, window..], dy [N, O, out..]. */
static bool stride_folds(const ty_graph *g, uint32_t id, stride_fold *f)
{
    const ty_attr *attr = ty_graph_attr(g, id);
    const ty_type *dy = ty_graph_type(g, ty_graph_in(g, id, 0)), *w = ty_graph_type(g, ty_graph_in(g, id, 1));
    bool strided = false;
    if (dy->dtype != TY_F32 || attr->n > AXES || attr->flags != 0 || attr->groups != 1)
        return false;
    f->n = (int)attr->n;
    for (int i = 0; i < f->n; i++) {
        int64_t step = attr->step[i], window = w->dim[2 + i];
        f->step[i] = step;
        f->phases[i] = window < step ? window : step;
        f->taps[i] = (window + step - 1) / step;
        f->at[i] = dy->dim[2 + i] + f->taps[i] - 1;
        f->lo[i] = attr->lo[i];
        if (attr->dil[i] != 1 || f->lo[i] >= f->at[i] * step) /* in the end no window reaches x */
            return false;
        strided = strided || step > 1;
    }
    return strided;
}

/* Along the spatial axes elements lo .. lo + n - 1 of x, zeros behind those that it has. */
static ty_val stride_cut(ty_graph *g, ty_val x, const int64_t *lo, const int64_t *n)
{
    int64_t first[TY_MAX_RANK] = {0}, end[TY_MAX_RANK], none[TY_MAX_RANK] = {0}, behind[TY_MAX_RANK] = {0};
    int rank = ty_b_rank(g, x);
    for (int i = 0; i < rank; i++) {
        int64_t have = ty_b_dim(g, x, i), last = i < 2 ? have : lo[i - 2] + n[i - 2];
        first[i] = i < 2 ? 0 : lo[i - 2];
        end[i] = last < have ? last : have;
        behind[i] = last - end[i];
    }
    return ty_b_pad(g, ty_b_slice(g, x, first, end, NULL), none, behind, 0);
}

/* The product of phases, by which there are more channels. */
static int64_t stride_channels(const stride_fold *f)
{
    int64_t n = 1;
    for (int i = 0; i < f->n; i++)
        n *= f->phases[i];
    return n;
}

/* [O, C, window..] -> [O, phases.. * C, taps..] */
static ty_val stride_fold_weights(ty_graph *g, ty_val w, const stride_fold *f)
{
    int64_t o = ty_b_dim(g, w, 0), c = ty_b_dim(g, w, 1), none[AXES] = {0}, whole[AXES];
    int64_t apart[2 + 2 * AXES] = {o, c}, perm[2 + 2 * AXES] = {0}, folded[2 + AXES] = {o, stride_channels(f) * c};
    perm[1 + f->n] = 1;
    for (int i = 0; i < f->n; i++) {
        whole[i] = f->taps[i] * f->phases[i];
        apart[2 + 2 * i] = folded[2 + i] = f->taps[i];
        apart[3 + 2 * i] = f->phases[i];
        perm[1 + i] = 3 + 2 * i;
        perm[2 + f->n + i] = 2 + 2 * i;
    }
    w = ty_b_reshape(g, stride_cut(g, w, none, whole), 2 + 2 * f->n, apart);
    return ty_b_reshape(g, ty_b_transpose(g, w, perm), 2 + f->n, folded);
}

/* [N, phases.. * C, at..] -> [N, C, at * step..]; zeros where there was no phase. */
static ty_val stride_unfold(ty_graph *g, ty_val v, const stride_fold *f)
{
    int64_t n = ty_b_dim(g, v, 0), c = ty_b_dim(g, v, 1) / stride_channels(f), none[TY_MAX_RANK] = {0};
    int64_t apart[2 + 2 * AXES] = {n}, perm[2 + 2 * AXES] = {0, 1 + f->n}, whole[2 + AXES] = {n, c};
    int64_t more[TY_MAX_RANK] = {0};
    apart[1 + f->n] = c;
    for (int i = 0; i < f->n; i++) {
        apart[1 + i] = f->phases[i];
        apart[2 + f->n + i] = f->at[i];
        perm[2 + 2 * i] = 2 + f->n + i;
        perm[3 + 2 * i] = 1 + i;
        more[3 + 2 * i] = f->step[i] - f->phases[i];
        whole[2 + i] = f->at[i] * f->step[i];
    }
    v = ty_b_transpose(g, ty_b_reshape(g, v, 2 + 2 * f->n, apart), perm);
    return ty_b_reshape(g, ty_b_pad(g, v, none, more, 0), 2 + f->n, whole);
}

static void stride_gradient(ty_clone *c, uint32_t id, const stride_fold *f)
{
    ty_graph *g = c->to;
    ty_attr attr = *ty_graph_attr(c->from, id);
    const ty_type x = attr.type;
    ty_val in[2];
    ty_clone_inputs(c, id, in);
    ty_graph_origin(g, ty_graph_origin_of(c->from, id));
    in[1] = stride_fold_weights(g, in[1], f);
    for (int i = 0; i < f->n; i++) {
        attr.step[i] = 1, attr.lo[i] = attr.hi[i] = 0;
        attr.type.dim[2 + i] = f->at[i];
    }
    attr.type.dim[1] *= stride_channels(f);
    ty_val folded = ty_graph_emit(g, TY_OP_CONV_DX, &attr, in, 2);
    c->map[ty_val_make(id, 0)] = stride_cut(g, stride_unfold(g, folded, f), f->lo, &x.dim[2]);
}

static bool stride_node(ty_clone *c, uint32_t id, void *ctx)
{
    stride_fold fold;
    (void)ctx;
    if (ty_graph_failed(c->to, NULL) || ty_graph_op(c->from, id) != TY_OP_CONV_DX || !stride_folds(c->from, id, &fold))
        return false;
    stride_gradient(c, id, &fold);
    return true;
}

int ty_pass_stride(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return ty_clone_rewrite(in, stride_node, NULL, out, err);
}
