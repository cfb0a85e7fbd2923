/* attach.c - what follows a convolution on a GPU is done by cuDNN while it writes the result (conv_bias in ops.def).
 *
 * A bias and a ReLU behind a convolution cost a kernel that reads and writes all of its result once more, and so do the
 * scale and shift of a batch norm that is applied (in inference, in evaluation), and a residual sum. cuDNN has one form
 * for all of them: the convolution, a tensor, a vector by channels, a ReLU, in this order and in one type. So a result
 * is traced back from its ReLU, or its last sum, to the convolution; scales on the way go into the weights, shifts into
 * the bias. The weights are scaled before they are rounded, in the kernel that rounds and turns them; in float32, where
 * there is no such kernel, it is not done if they are larger than what it saves. Convolutions of one element, which are
 * products by now (layout.c), become convolutions again.
 *
 * Taken is only what is rounded to the convolution's type anyway: in 16 bits all who read the result read it in 16, be
 * it behind a maximum over windows, which then works in 16 bits too; and what is added lies there in 16 bits already. A
 * ReLU is taken if a call reads it, a result without one if calls alone do: else a kernel passes over it anyway. Kinds
 * that cuDNN was asked for and has no engine for stay apart (compiler/apart.h). */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/op.h"
#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/readers.h"

enum { MOST_STEPS = 8, MOST_TURNS = 4 };

typedef struct attach {
    const ty_graph *g;
    ty_readers readers;
    ty_apart apart; /* not to be put together */
    bool tf32;
} attach;

/* ---- who reads what ---- */

static bool is_op(const attach *p, uint32_t node, ty_op op)
{
    return node != TY_NONE && ty_graph_op(p->g, node) == op;
}

static const ty_type *type_of(const attach *p, ty_val v)
{
    return ty_graph_type(p->g, v);
}

static bool is_cast_to(const attach *p, uint32_t node, ty_dtype dtype)
{
    return is_op(p, node, TY_OP_CAST) && type_of(p, ty_val_make(node, 0))->dtype == dtype;
}

/* A comparison with 0, which rounding leaves as it is: the mask of a gradient. */
static bool is_mask_of(const attach *p, uint32_t node, ty_val v)
{
    return is_op(p, node, TY_OP_LE) && ty_graph_in(p->g, node, 0) == v &&
           ty_graph_is_zero(p->g, ty_graph_in(p->g, node, 1));
}

/* All readers of v read it rounded to `dtype`. */
static bool is_rounded(const attach *p, ty_val v, ty_dtype dtype)
{
    for (uint32_t i = 0; i < ty_readers_of(&p->readers, v) && dtype != TY_F32; i++) {
        uint32_t node = ty_reader(&p->readers, v, i);
        bool passed_on = is_op(p, node, TY_OP_RESHAPE) || is_op(p, node, TY_OP_POOL_MAX);
        if (!is_cast_to(p, node, dtype) && !is_mask_of(p, node, v) &&
            !(passed_on && is_rounded(p, ty_val_make(node, 0), dtype)))
            return false;
    }
    return true;
}

/* Readers, behind casts and reshapes, that are calls: at least one, or all but masks of gradients. */
static bool feeds_calls(const attach *p, ty_val v, bool all)
{
    bool some = false, every = true;
    for (uint32_t i = 0; i < ty_readers_of(&p->readers, v); i++) {
        uint32_t node = ty_reader(&p->readers, v, i);
        bool on_the_way = is_op(p, node, TY_OP_CAST) || is_op(p, node, TY_OP_RESHAPE);
        bool call = node != TY_NONE && (on_the_way ? feeds_calls(p, ty_val_make(node, 0), all)
                                                   : ty_op_row_of(ty_graph_op(p->g, node))->class_ == TY_CLASS_LIBRARY);
        some |= call;
        every &= call || (node != TY_NONE && is_mask_of(p, node, v));
    }
    return some && (every || !all);
}

/* ---- from a result back to its convolution ---- */

/* Scale, shift: by a vector of a number a channel. */
typedef struct step {
    ty_op op; /* ADD, SUB, MUL */
    ty_val vector;
} step;

typedef struct chain {
    const ty_type *y; /* the result's, all along */
    int axis;         /* of its channels */
    uint32_t base;    /* conv, or the dot that one has become */
    ty_dtype dtype;   /* of the convolution */
    step step[MOST_STEPS];
    int n;
    bool scales;
    ty_val sum; /* a tensor like y that is added behind all scales, or TY_NONE */
} chain;

/* v is a number a channel, stretched to y: then *vector is what was stretched. */
static bool is_vector(const attach *p, const chain *c, ty_val v, ty_val *vector)
{
    uint32_t node = ty_val_node(v);
    if (!is_op(p, node, TY_OP_BROADCAST))
        return false;
    *vector = ty_graph_in(p->g, node, 0);
    const ty_type *t = type_of(p, *vector);
    int axis = c->axis - (c->y->rank - t->rank);
    return axis >= 0 && t->dim[axis] == c->y->dim[c->axis] && ty_type_elems(t) == t->dim[axis];
}

static bool add_step(chain *c, ty_op op, ty_val vector)
{
    if (c->n == MOST_STEPS)
        return false;
    c->step[c->n++] = (step){op, vector};
    c->scales |= op == TY_OP_MUL;
    return true;
}

static bool base_is_conv(const attach *p, uint32_t node, chain *c)
{
    const ty_attr *attr = ty_graph_attr(p->g, node);
    c->base = node;
    c->dtype = (ty_dtype)type_of(p, ty_val_make(node, 0))->dtype;
    return c->axis == (attr->flags & TY_SLIDING_LAST ? c->y->rank - 1 : 1);
}

/* x w^T of [positions, C] and [O, C], seen as [N, spatial.., O]. */
static bool base_is_product(const attach *p, uint32_t node, chain *c)
{
    const ty_type *x = type_of(p, ty_graph_in(p->g, node, 0)), *y = type_of(p, ty_val_make(node, 0));
    c->base = node;
    c->dtype = (ty_dtype)y->dtype;
    return ty_graph_node(p->g, node)->n_in == 2 && ty_graph_attr(p->g, node)->flags == TY_DOT_TRANS_B && x->rank == 2 &&
           y->rank == 2 && x->dtype == y->dtype && y->dim[1] == c->y->dim[c->axis] && c->axis == c->y->rank - 1 &&
           c->y->rank >= 4 && c->y->rank <= 2 + TY_SLIDING_AXES && (p->tf32 || c->dtype != TY_F32);
}

static bool trace(const attach *p, ty_val v, chain *c);

static bool trace_sum(const attach *p, uint32_t add, chain *c)
{
    ty_val vector;
    for (int k = 0; k < 2; k++)
        if (is_vector(p, c, ty_graph_in(p->g, add, k), &vector))
            return add_step(c, TY_OP_ADD, vector) && trace(p, ty_graph_in(p->g, add, 1 - k), c);
    for (int k = 0; k < 2 && c->sum == TY_NONE && !c->scales; k++) {
        chain tried = *c;
        tried.sum = ty_graph_in(p->g, add, 1 - k);
        if (trace(p, ty_graph_in(p->g, add, k), &tried)) {
            *c = tried;
            return true;
        }
    }
    return false;
}

/* The node makes its value of a convolution by what a chain can hold. */
static bool trace_node(const attach *p, uint32_t node, chain *c)
{
    ty_op op = ty_graph_op(p->g, node);
    ty_val in = ty_graph_node(p->g, node)->n_in > 0 ? ty_graph_in(p->g, node, 0) : TY_NONE, vector;
    switch (op) {
    case TY_OP_CONV:
        return base_is_conv(p, node, c);
    case TY_OP_DOT:
        return base_is_product(p, node, c);
    case TY_OP_CAST:
        return type_of(p, ty_val_make(node, 0))->dtype == TY_F32 && trace(p, in, c);
    case TY_OP_RESHAPE:
        return is_op(p, ty_val_node(in), TY_OP_DOT) && trace(p, in, c);
    case TY_OP_ADD:
        return trace_sum(p, node, c);
    case TY_OP_SUB:
    case TY_OP_MUL:
        for (int k = 0; k < (op == TY_OP_MUL ? 2 : 1); k++)
            if (is_vector(p, c, ty_graph_in(p->g, node, 1 - k), &vector))
                return add_step(c, op, vector) && trace(p, ty_graph_in(p->g, node, k), c);
        return false;
    default:
        return false;
    }
}

/* So is v, and nobody else reads it. */
static bool trace(const attach *p, ty_val v, chain *c)
{
    return ty_readers_of(&p->readers, v) == 1 && trace_node(p, ty_val_node(v), c);
}

/* The chain that ends in s; channels lie last or behind the batch. */
static bool chain_of(const attach *p, ty_val s, chain *out)
{
    const ty_type *y = type_of(p, s);
    uint32_t node = ty_val_node(s);
    for (int last = 0; last < 2 && y->rank >= 3; last++) {
        *out = (chain){.y = y, .axis = last ? y->rank - 1 : 1, .sum = TY_NONE};
        if (!trace_node(p, node, out))
            continue;
        ty_val w = ty_graph_in(p->g, out->base, 1);
        return ty_wide_dtype(out->dtype) == TY_F32 && ty_type_elems(y) > 0 && ty_type_elems(type_of(p, w)) > 0 &&
               (!out->scales || out->dtype != TY_F32 || ty_type_elems(type_of(p, w)) <= ty_type_elems(y));
    }
    return false;
}

/* ---- the new graph ---- */

/* What a vector was, as [channels] in float32. */
static ty_val vector_of(ty_clone *c, ty_val vector)
{
    return ty_b_cast(c->to, ty_b_flatten(c->to, c->map[vector]), TY_F32);
}

typedef struct affine {
    ty_val scale, shift; /* [channels] in float32, or TY_NONE */
} affine;

/* All steps as one, from the convolution on. */
static affine affine_of(ty_clone *c, const chain *ch)
{
    affine a = {TY_NONE, TY_NONE};
    for (int i = ch->n - 1; i >= 0; i--) {
        ty_val v = vector_of(c, ch->step[i].vector);
        if (ch->step[i].op == TY_OP_MUL) {
            a.scale = a.scale == TY_NONE ? v : ty_b_mul(c->to, a.scale, v);
            a.shift = a.shift == TY_NONE ? TY_NONE : ty_b_mul(c->to, a.shift, v);
        } else if (ch->step[i].op == TY_OP_SUB) {
            a.shift = a.shift == TY_NONE ? ty_b_neg(c->to, v) : ty_b_sub(c->to, a.shift, v);
        } else {
            a.shift = a.shift == TY_NONE ? v : ty_b_add(c->to, a.shift, v);
        }
    }
    return a;
}

/* The weights as they were before they were rounded, turned as they are: through transposes and reshapes. */
static ty_val unrounded(ty_clone *c, ty_val w, int turns)
{
    uint32_t node = ty_val_node(w);
    const ty_type *t = ty_graph_type(c->from, w);
    ty_val in = ty_graph_node(c->from, node)->n_in > 0 ? ty_graph_in(c->from, node, 0) : TY_NONE;
    ty_op op = ty_graph_op(c->from, node);
    if (turns < MOST_TURNS && op == TY_OP_TRANSPOSE) {
        ty_val turned = unrounded(c, in, turns + 1);
        return ty_graph_emit(c->to, op, ty_graph_attr(c->from, node), &turned, 1);
    }
    if (turns < MOST_TURNS && op == TY_OP_RESHAPE)
        return ty_b_reshape(c->to, unrounded(c, in, turns + 1), t->rank, t->dim);
    if (op == TY_OP_CAST && ty_graph_type(c->from, in)->dtype == TY_F32)
        return c->map[in];
    return ty_b_cast(c->to, c->map[w], TY_F32);
}

/* Filters, of which each has its scale. */
static ty_val scaled(ty_clone *c, ty_val w, ty_val scale, ty_dtype dtype)
{
    const ty_type *t = ty_graph_type(c->from, w);
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dim[i] = i == 0 ? t->dim[0] : 1;
    ty_val by = ty_b_broadcast(c->to, ty_b_reshape(c->to, scale, t->rank, dim), t->rank, t->dim);
    return ty_b_cast(c->to, ty_b_mul(c->to, unrounded(c, w, 0), by), dtype);
}

/* A product as the convolution of one element that it was: its attributes, and x and w with axes for the positions. */
static void as_conv(ty_clone *c, const chain *ch, ty_attr *attr, ty_val *x, ty_val *w)
{
    const ty_type *wt = ty_graph_type(c->from, ty_graph_in(c->from, ch->base, 1));
    int rank = ch->y->rank;
    int64_t x_dim[TY_MAX_RANK], w_dim[TY_MAX_RANK];
    *attr = (ty_attr){.flags = TY_SLIDING_LAST | TY_SLIDING_WEIGHTS_LAST, .n = (uint32_t)rank - 2, .groups = 1};
    for (int i = 0; i < rank; i++) {
        x_dim[i] = i == rank - 1 ? wt->dim[1] : ch->y->dim[i];
        w_dim[i] = i == 0 ? wt->dim[0] : i == rank - 1 ? wt->dim[1] : 1;
    }
    for (int i = 0; i < rank - 2; i++)
        attr->step[i] = attr->dil[i] = 1;
    *x = ty_b_reshape(c->to, *x, rank, x_dim);
    *w = ty_b_reshape(c->to, *w, rank, w_dim);
}

/* A new value in the products' type that an old one in float32 is made of; TY_NONE if there is none. */
static ty_val narrow_of(ty_clone *c, ty_val fresh, ty_dtype dtype)
{
    uint32_t node = ty_val_node(fresh);
    if (ty_b_dtype(c->to, fresh) == dtype)
        return fresh;
    if (ty_graph_op(c->to, node) != TY_OP_CAST || ty_b_dtype(c->to, ty_graph_in(c->to, node, 0)) != dtype)
        return TY_NONE;
    return ty_graph_in(c->to, node, 0);
}

static bool stays_apart(const attach *p, const chain *ch, bool relu)
{
    bool grouped = is_op(p, ch->base, TY_OP_CONV) && ty_graph_attr(p->g, ch->base)->groups > 1;
    return p->apart & ty_apart_conv(ch->sum != TY_NONE, relu, grouped, ch->dtype);
}

/* The call, as the old value has it: float32. A sum that only this call reads, and that is a convolution's with its
 * scale and shift (a shortcut), becomes a call of its own first. */
static bool emit(const attach *p, ty_clone *c, const chain *ch, bool relu, ty_val old)
{
    ty_attr attr = *ty_graph_attr(c->from, ch->base);
    ty_val w_old = ty_graph_in(c->from, ch->base, 1), sum = TY_NONE;
    chain other;
    if (stays_apart(p, ch, relu))
        return false;
    if (ch->sum != TY_NONE && ty_readers_of(&p->readers, ch->sum) == 1 && chain_of(p, ch->sum, &other) &&
        other.dtype == ch->dtype && other.n > 0)
        emit(p, c, &other, false, ch->sum);
    if (ch->sum != TY_NONE && (sum = narrow_of(c, c->map[ch->sum], ch->dtype)) == TY_NONE)
        return false;
    affine a = affine_of(c, ch);
    ty_val x = c->map[ty_graph_in(c->from, ch->base, 0)];
    ty_val w = a.scale == TY_NONE ? c->map[w_old] : scaled(c, w_old, a.scale, ch->dtype);
    int64_t channels = ch->y->dim[ch->axis];
    ty_val bias =
        a.shift == TY_NONE ? ty_b_full(c->to, ch->dtype, 1, &channels, 0) : ty_b_cast(c->to, a.shift, ch->dtype);
    if (ty_graph_op(c->from, ch->base) == TY_OP_DOT)
        as_conv(c, ch, &attr, &x, &w);
    attr.index = relu;
    ty_val in[4] = {x, w, bias, sum};
    ty_val y = ty_graph_emit(c->to, TY_OP_CONV_BIAS, &attr, in, sum == TY_NONE ? 3 : 4);
    c->map[old] = ty_b_cast(c->to, y, (ty_dtype)ty_graph_type(c->from, old)->dtype);
    return y != TY_NONE;
}

/* ---- the pass ---- */

static bool take_relu(const attach *p, ty_clone *c, uint32_t id)
{
    uint32_t le = ty_mask_of_relu(p->g, id);
    ty_val s = ty_graph_in(p->g, id, 2), v = ty_val_make(id, 0);
    chain ch;
    if (le == TY_NONE || ty_readers_of(&p->readers, s) != 2 || !chain_of(p, s, &ch) || !is_rounded(p, v, ch.dtype) ||
        !feeds_calls(p, v, false) || !emit(p, c, &ch, true, v))
        return false;
    c->map[ty_val_make(le, 0)] = ty_b_le(c->to, c->map[v], ty_b_full_like(c->to, c->map[v], 0));
    return true;
}

static bool take_sum(const attach *p, ty_clone *c, uint32_t id)
{
    ty_val v = ty_val_make(id, 0);
    chain ch;
    return feeds_calls(p, v, true) && chain_of(p, v, &ch) && is_rounded(p, v, ch.dtype) && emit(p, c, &ch, false, v);
}

/* The maximum over windows of what was attached, if it is rounded to 16 bits by all who read it. */
static bool take_pool(const attach *p, ty_clone *c, uint32_t id)
{
    ty_val x = c->map[ty_graph_in(p->g, id, 0)], y = ty_val_make(id, 0);
    ty_val narrow = ty_graph_op(c->to, ty_val_node(x)) == TY_OP_CAST ? ty_graph_in(c->to, ty_val_node(x), 0) : TY_NONE;
    if (narrow == TY_NONE || ty_graph_op(c->to, ty_val_node(narrow)) != TY_OP_CONV_BIAS ||
        !is_rounded(p, y, ty_b_dtype(c->to, narrow)))
        return false;
    ty_val pooled = ty_graph_emit(c->to, TY_OP_POOL_MAX, ty_graph_attr(p->g, id), &narrow, 1);
    if (pooled == TY_NONE)
        return false;
    c->map[y] = ty_b_cast(c->to, pooled, (ty_dtype)type_of(p, y)->dtype);
    c->map[ty_val_make(id, 1)] = ty_val_make(ty_val_node(pooled), 1);
    return true;
}

static bool attach_rewrite(ty_clone *c, uint32_t id, void *ctx)
{
    const attach *p = ctx;
    if (ty_graph_failed(c->to, NULL))
        return false;
    ty_graph_origin(c->to, ty_graph_origin_of(p->g, id));
    switch (ty_graph_op(p->g, id)) {
    case TY_OP_SELECT:
        return take_relu(p, c, id);
    case TY_OP_ADD:
        return take_sum(p, c, id);
    case TY_OP_POOL_MAX:
        return take_pool(p, c, id);
    default:
        return false;
    }
}

int ty_pass_attach(const ty_graph *in, ty_apart apart, bool tf32, ty_graph **out, ty_error *err)
{
    attach p = {.g = in, .apart = apart, .tf32 = tf32};
    *out = NULL;
    int rc = ty_readers_find(&p.readers, in, err);
    if (rc == 0)
        rc = ty_clone_rewrite(in, attach_rewrite, &p, out, err);
    ty_readers_free(&p.readers);
    return rc;
}
