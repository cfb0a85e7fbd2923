/* align.c - 16-bit products on a GPU whose rows begin anywhere become products whose rows begin at multiples of 16
 * bytes.
 *
 * A vocabulary of 50,257 words makes rows of logits of 100,514 bytes. The instructions that feed tensor cores read 16
 * bytes at a multiple of 16, so that cuBLASLt is left with kernels that read element by element, for the largest
 * product of the network and both of its gradients. Zeros behind the last word cost a thousandth of the work: the
 * weights get them from the kernel that rounds them, the gradient of the logits from the one that computes it, and the
 * result is sliced, which its readers do on the way.
 *
 * What is added up piece by piece (dot's third operand) stays padded from the first piece to the last.
 *
 * So with convolutions whose positions are not whole groups of 16 bytes, first of all those of pictures of three
 * channels: the kernel that rounds the picture, and that of the weights, write eight. Where such a convolution goes two
 * positions at a time, these kernels write 2 x 2 positions as one of four times as many channels, which it goes through
 * one by one: ResNet-50's first layer, 7 x 7 over 3 of 8 channels, becomes 4 x 4 over 12 of 16. On an H200, with 256
 * pictures in bfloat16 and asked through PyTorch, cuDNN takes .65 ms for it in place of 1.73, and .47 for the gradient
 * of its weights in place of .90. */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN_ELEMENTS 8    /* of 2 bytes, in 16 */
#define ALIGN_TO       64   /* a whole tile in the smallest direction that kernels have */
#define ALIGN_MIN      1024 /* below that the product is small anyway */
#define ALIGN_MAX_IN   4    /* operands of a convolution with what follows it */
#define ALIGN_FOLDED   16   /* most channels of 2 x 2 positions: one product of the tensor cores goes through as many */

typedef struct align_pass {
    ty_val *made; /* padded products of the new graph: zeros behind what is meant */
    int n_made;
} align_pass;

/* Sizes of a product: result [m, n], sums over k. */
typedef struct align_sizes {
    int64_t m, n, k;
} align_sizes;

static int64_t align_up(int64_t n, bool counts)
{
    bool odd = counts && n % ALIGN_ELEMENTS != 0 && n >= ALIGN_MIN;
    return odd ? (n + ALIGN_TO - 1) / ALIGN_TO * ALIGN_TO : n;
}

/* What counts is which sizes are those of rows in memory. */
static align_sizes align_wanted(const align_sizes *s, uint32_t flags)
{
    bool trans_a = flags & TY_DOT_TRANS_A, trans_b = flags & TY_DOT_TRANS_B;
    return (align_sizes){align_up(s->m, trans_a), align_up(s->n, true), align_up(s->k, !trans_a || trans_b)};
}

/* v, a matrix, with zeros up to rows x columns. */
static ty_val align_pad(const align_pass *p, ty_graph *g, ty_val v, int64_t rows, int64_t columns)
{
    int64_t have[2] = {ty_b_dim(g, v, 0), ty_b_dim(g, v, 1)}, none[TY_MAX_RANK] = {0};
    int64_t more[TY_MAX_RANK] = {rows - have[0], columns - have[1]};
    ty_val whole = ty_graph_op(g, ty_val_node(v)) == TY_OP_SLICE ? ty_graph_in(g, ty_val_node(v), 0) : TY_NONE;
    for (int i = 0; i < p->n_made && whole != TY_NONE; i++)
        if (p->made[i] == whole && ty_b_dim(g, whole, 0) == rows && ty_b_dim(g, whole, 1) == columns)
            return whole;
    return more[0] == 0 && more[1] == 0 ? v : ty_b_pad(g, v, none, more, 0);
}

static bool align_is_short(const ty_type *t)
{
    return ty_dtype_bytes((ty_dtype)t->dtype) == 2 && ty_dtype_is_float((ty_dtype)t->dtype);
}

static bool align_dot(align_pass *p, ty_clone *c, uint32_t id)
{
    const ty_graph *from = c->from;
    const ty_type *y = ty_graph_type(from, ty_val_make(id, 0));
    if (y->rank != 2)
        return false;
    const ty_attr attr = *ty_graph_attr(from, id);
    const ty_type *a = ty_graph_type(from, ty_graph_in(from, id, 0));
    bool trans_a = attr.flags & TY_DOT_TRANS_A, trans_b = attr.flags & TY_DOT_TRANS_B;
    const align_sizes s = {y->dim[0], y->dim[1], a->dim[trans_a ? 0 : 1]}, to = align_wanted(&s, attr.flags);
    if (!align_is_short(a) || (to.m == s.m && to.n == s.n && to.k == s.k))
        return false;
    ty_val in[3] = {TY_NONE, TY_NONE, TY_NONE};
    int n_in = (int)ty_graph_node(from, id)->n_in;
    ty_clone_inputs(c, id, in);
    ty_graph_origin(c->to, ty_graph_origin_of(from, id));
    in[0] = align_pad(p, c->to, in[0], trans_a ? to.k : to.m, trans_a ? to.m : to.k);
    in[1] = align_pad(p, c->to, in[1], trans_b ? to.n : to.k, trans_b ? to.k : to.n);
    if (n_in > 2)
        in[2] = align_pad(p, c->to, in[2], to.m, to.n);
    ty_val whole = ty_graph_emit(c->to, TY_OP_DOT, &attr, in, n_in);
    p->made[p->n_made++] = whole;
    c->map[ty_val_make(id, 0)] = ty_b_slice(c->to, whole, (int64_t[TY_MAX_RANK]){0}, y->dim, NULL);
    return true;
}

/* Zeros in the last axis of x: channels, up to `channels`. */
static ty_val align_channels(ty_graph *g, ty_val x, int64_t channels)
{
    int rank = ty_b_rank(g, x);
    int64_t none[TY_MAX_RANK] = {0}, more[TY_MAX_RANK] = {0};
    more[rank - 1] = channels - ty_b_dim(g, x, rank - 1);
    return ty_b_pad(g, x, none, more, 0);
}

/* ---- 2 x 2 positions as one ---- */

/* What a window of `size` positions is in positions of two: one more in front where the padding is odd. */
typedef struct align_fold {
    int64_t shift[2], size[2], lo[2], hi[2];
} align_fold;

/* x [N, h, w, C], w [O, size.., C], y [N, h/2, w/2, O]. */
static bool align_folds(const ty_attr *attr, const ty_type *x, const ty_type *w, const ty_type *y, align_fold *f)
{
    bool may = attr->n == 2 && x->dim[3] * 4 <= ALIGN_FOLDED;
    for (int i = 0; i < 2 && may; i++) {
        f->shift[i] = attr->lo[i] % 2;
        f->lo[i] = (attr->lo[i] + 1) / 2;
        f->size[i] = (w->dim[1 + i] + f->shift[i] + 1) / 2;
        f->hi[i] = y->dim[1 + i] - x->dim[1 + i] / 2 - f->lo[i] + f->size[i] - 1;
        may = attr->step[i] == 2 && attr->dil[i] == 1 && x->dim[1 + i] % 2 == 0 && w->dim[1 + i] > 1 && f->hi[i] >= 0;
    }
    return may;
}

/* [n, 2 h, 2 w, C] -> [n, h, w, 4 C], and back. */
static ty_val align_fold_positions(ty_graph *g, ty_val v)
{
    int64_t n = ty_b_dim(g, v, 0), h = ty_b_dim(g, v, 1) / 2, w = ty_b_dim(g, v, 2) / 2, c = ty_b_dim(g, v, 3);
    v = ty_b_reshape(g, v, 6, (int64_t[]){n, h, 2, w, 2, c});
    v = ty_b_transpose(g, v, (int64_t[]){0, 1, 3, 2, 4, 5});
    return ty_b_reshape(g, v, 4, (int64_t[]){n, h, w, 4 * c});
}

static ty_val align_unfold_positions(ty_graph *g, ty_val v)
{
    int64_t n = ty_b_dim(g, v, 0), h = ty_b_dim(g, v, 1), w = ty_b_dim(g, v, 2), c = ty_b_dim(g, v, 3) / 4;
    v = ty_b_reshape(g, v, 6, (int64_t[]){n, h, w, 2, 2, c});
    v = ty_b_transpose(g, v, (int64_t[]){0, 1, 3, 2, 4, 5});
    return ty_b_reshape(g, v, 4, (int64_t[]){n, 2 * h, 2 * w, c});
}

static ty_val align_fold_weights(ty_graph *g, ty_val w, const align_fold *f)
{
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK] = {0};
    for (int i = 0; i < 2; i++)
        lo[1 + i] = f->shift[i], hi[1 + i] = 2 * f->size[i] - ty_b_dim(g, w, 1 + i) - f->shift[i];
    return align_fold_positions(g, ty_b_pad(g, w, lo, hi, 0));
}

/* `type`: of the weights. */
static ty_val align_unfold_weights(ty_graph *g, ty_val w, const align_fold *f, const ty_type *type)
{
    int64_t none[TY_MAX_RANK] = {0}, lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK];
    int64_t folded[] = {type->dim[0], f->size[0], f->size[1], 4 * type->dim[3]};
    w = align_unfold_positions(g, ty_b_slice(g, w, none, folded, NULL));
    memcpy(hi, type->dim, sizeof hi);
    for (int i = 0; i < 2; i++)
        lo[1 + i] = f->shift[i], hi[1 + i] += f->shift[i];
    return ty_b_slice(g, w, lo, hi, NULL);
}

static bool align_folded(ty_clone *c, uint32_t id, const align_fold *f)
{
    const ty_graph *from = c->from;
    bool of_weights = ty_graph_op(from, id) == TY_OP_CONV_DW;
    const ty_type *res = ty_graph_type(from, ty_val_make(id, 0));
    ty_attr attr = *ty_graph_attr(from, id);
    ty_val in[ALIGN_MAX_IN];
    ty_clone_inputs(c, id, in);
    ty_graph_origin(c->to, ty_graph_origin_of(from, id));
    in[0] = align_channels(c->to, align_fold_positions(c->to, in[0]), ALIGN_FOLDED);
    if (!of_weights)
        in[1] = align_channels(c->to, align_fold_weights(c->to, in[1], f), ALIGN_FOLDED);
    for (int i = 0; i < 2; i++) {
        attr.step[i] = 1, attr.lo[i] = f->lo[i], attr.hi[i] = f->hi[i];
        if (of_weights)
            attr.type.dim[1 + i] = f->size[i];
    }
    if (of_weights)
        attr.type.dim[3] = ALIGN_FOLDED;
    ty_val y = ty_graph_emit(c->to, ty_graph_op(from, id), &attr, in, (int)ty_graph_node(from, id)->n_in);
    c->map[ty_val_make(id, 0)] = of_weights ? align_unfold_weights(c->to, y, f, res) : y;
    return true;
}

/* A convolution, or its gradient for the weights, of x with an odd number of channels. */
static bool align_conv(ty_clone *c, uint32_t id)
{
    const ty_graph *from = c->from;
    align_fold fold;
    const ty_type *x = ty_graph_type(from, ty_graph_in(from, id, 0)), *res = ty_graph_type(from, ty_val_make(id, 0));
    const uint32_t last = TY_SLIDING_LAST | TY_SLIDING_WEIGHTS_LAST;
    bool of_weights = ty_graph_op(from, id) == TY_OP_CONV_DW;
    ty_attr attr = *ty_graph_attr(from, id);
    int64_t have = x->dim[x->rank - 1], channels = (have + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
    if (!align_is_short(x) || (attr.flags & last) != last || attr.groups > 1 || have == channels)
        return false;
    const ty_type *other = ty_graph_type(from, ty_graph_in(from, id, 1));
    if (align_folds(&attr, x, of_weights ? res : other, of_weights ? other : res, &fold))
        return align_folded(c, id, &fold);
    ty_val in[ALIGN_MAX_IN];
    ty_clone_inputs(c, id, in);
    ty_graph_origin(c->to, ty_graph_origin_of(from, id));
    in[0] = align_channels(c->to, in[0], channels);
    if (of_weights)
        attr.type.dim[attr.type.rank - 1] = channels;
    else
        in[1] = align_channels(c->to, in[1], channels);
    ty_val y = ty_graph_emit(c->to, ty_graph_op(from, id), &attr, in, (int)ty_graph_node(from, id)->n_in);
    c->map[ty_val_make(id, 0)] = of_weights ? ty_b_slice(c->to, y, (int64_t[TY_MAX_RANK]){0}, res->dim, NULL) : y;
    return true;
}

static bool align_node(ty_clone *c, uint32_t id, void *ctx)
{
    if (ty_graph_failed(c->to, NULL))
        return false;
    switch (ty_graph_op(c->from, id)) {
    case TY_OP_DOT:
        return align_dot(ctx, c, id);
    case TY_OP_CONV:
    case TY_OP_CONV_BIAS:
    case TY_OP_CONV_DW:
        return align_conv(c, id);
    default:
        return false;
    }
}

int ty_pass_align(const ty_graph *in, ty_graph **out, ty_error *err)
{
    align_pass p = {.made = malloc(((size_t)ty_graph_n_nodes(in) + 1) * sizeof *p.made)};
    *out = NULL;
    if (!p.made)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", ty_graph_n_nodes(in));
    int rc = ty_clone_rewrite(in, align_node, &p, out, err);
    free(p.made);
    return rc;
}
