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
 * channels: the kernel that rounds the picture, and that of the weights, write eight. */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"

#include <stdlib.h>

#define ALIGN_ELEMENTS 8    /* of 2 bytes, in 16 */
#define ALIGN_TO       64   /* a whole tile in the smallest direction that kernels have */
#define ALIGN_MIN      1024 /* below that the product is small anyway */
#define ALIGN_MAX_IN   4    /* operands of a convolution with what follows it */

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

/* A convolution, or its gradient for the weights, of x with an odd number of channels. */
static bool align_conv(ty_clone *c, uint32_t id)
{
    const ty_graph *from = c->from;
    const ty_type *x = ty_graph_type(from, ty_graph_in(from, id, 0)), *res = ty_graph_type(from, ty_val_make(id, 0));
    const uint32_t last = TY_SLIDING_LAST | TY_SLIDING_WEIGHTS_LAST;
    bool of_weights = ty_graph_op(from, id) == TY_OP_CONV_DW;
    ty_attr attr = *ty_graph_attr(from, id);
    int64_t have = x->dim[x->rank - 1], channels = (have + ALIGN_ELEMENTS - 1) / ALIGN_ELEMENTS * ALIGN_ELEMENTS;
    if (!align_is_short(x) || (attr.flags & last) != last || attr.groups > 1 || have == channels)
        return false;
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
