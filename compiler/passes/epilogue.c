/* epilogue.c - what follows a product on a GPU is done by cuBLASLt while it writes the result (compiler/ops/linear.h).
 *
 * A bias with a GELU or ReLU behind it costs a kernel that reads the product and writes what the next product takes;
 * its gradient reads the argument and the next product's gradient, writes its own and adds up a bias's. As epilogues
 * they read and write nothing of their own. Taken is only what is rounded to the product's type anyway: the next reader
 * of the result is a call, through casts to that type. A bias in front of a sum or of a transpose is not taken, since a
 * kernel that exists in any case adds it on its way. A bias's gradient whose operand is a call's result is added up by
 * the product that reads it too, the gradient of the weight (SUM_A, SUM_B), so that no kernel reads it once more.
 *
 * Of the exact GELU there is no epilogue. In 16 bits a bias is rounded before it is added, the argument that is kept
 * for the gradient is rounded, and so is the gradient of the bias: as a network computed in 16 bits has it everywhere.
 *
 * Where it is a sum of two products in float32 that calls read, the second one is added to the first.
 *
 * Kinds of epilogues that cuBLASLt was asked for and refused stay apart (compiler/apart.h). */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/linear.h"
#include "compiler/ops/op.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/readers.h"

#include <stdlib.h>

#define GELU_TANH 1u

typedef struct epilogue {
    const ty_graph *g;
    ty_readers readers;
    ty_apart apart; /* not to be put together */
    ty_val *kept;   /* by argument of a GELU and comparison of a ReLU: what the new graph keeps, or TY_NONE */
} epilogue;

/* ---- who reads what ---- */

static uint32_t n_readers(const epilogue *p, ty_val v)
{
    return ty_readers_of(&p->readers, v);
}

static uint32_t reader_of(const epilogue *p, ty_val v, uint32_t i)
{
    return ty_reader(&p->readers, v, i);
}

static bool is_op(const epilogue *p, uint32_t node, ty_op op)
{
    return node != TY_NONE && ty_graph_op(p->g, node) == op;
}

/* A cast to the type of products, or a reshape: the same numbers as a call will have them. */
static bool is_on_the_way(const epilogue *p, uint32_t node, ty_dtype dtype)
{
    return is_op(p, node, TY_OP_RESHAPE) ||
           (is_op(p, node, TY_OP_CAST) && ty_graph_type(p->g, ty_val_make(node, 0))->dtype == dtype);
}

/* All readers, behind casts and reshapes, are calls; any: at least one of them is. */
static bool feeds_calls(const epilogue *p, ty_val v, ty_dtype dtype, bool any)
{
    bool some = false, all = true;
    for (uint32_t i = 0; i < n_readers(p, v); i++) {
        uint32_t node = reader_of(p, v, i);
        bool call = node != TY_NONE &&
                    (is_on_the_way(p, node, dtype) ? feeds_calls(p, ty_val_make(node, 0), dtype, any)
                                                   : ty_op_row_of(ty_graph_op(p->g, node))->class_ == TY_CLASS_LIBRARY);
        some |= call;
        all &= call;
    }
    return some && (any || all);
}

/* Sums over all axes but the last: the gradient of a bias. */
static bool is_bias_sum(const epilogue *p, uint32_t node)
{
    if (!is_op(p, node, TY_OP_REDUCE) || ty_graph_attr(p->g, node)->mode != TY_SUM)
        return false;
    int rank = ty_graph_type(p->g, ty_graph_in(p->g, node, 0))->rank;
    return rank > 1 && ty_graph_attr(p->g, node)->axes == (1u << (rank - 1)) - 1;
}

/* Nobody reads v but in the products' type; a sum may, if `sums`. */
static bool is_rounded(const epilogue *p, ty_val v, ty_dtype dtype, bool sums)
{
    for (uint32_t i = 0; i < n_readers(p, v) && dtype != TY_F32; i++) {
        uint32_t node = reader_of(p, v, i);
        bool cast = is_op(p, node, TY_OP_CAST) && ty_graph_type(p->g, ty_val_make(node, 0))->dtype == dtype;
        if (!cast && !(sums && is_bias_sum(p, node)))
            return false;
    }
    return true;
}

/* ---- products ---- */

typedef struct product {
    uint32_t dot;
    ty_dtype dtype;
    int64_t m, n;
} product;

/* cuBLASLt's fast kernels, and rows of what is kept, take groups of 16 bytes. */
static bool product_is_aligned(const ty_graph *g, uint32_t dot, ty_dtype dtype)
{
    int64_t group = 16 / (int64_t)ty_dtype_bytes(dtype);
    const ty_type *a = ty_graph_type(g, ty_graph_in(g, dot, 0)), *b = ty_graph_type(g, ty_graph_in(g, dot, 1));
    const ty_type *y = ty_graph_type(g, ty_val_make(dot, 0));
    return ty_type_elems(y) > 0 && ty_type_elems(a) > 0 && a->dim[1] % group == 0 && b->dim[1] % group == 0 &&
           y->dim[1] % 8 == 0;
}

static bool product_is_plain(const ty_graph *g, uint32_t node, product *out)
{
    const ty_type *y = ty_graph_type(g, ty_val_make(node, 0));
    ty_dtype dtype = (ty_dtype)ty_graph_type(g, ty_graph_in(g, node, 0))->dtype;
    *out = (product){node, dtype, y->dim[0], y->dim[1]};
    return ty_graph_node(g, node)->n_in == 2 && y->rank == 2 && y->dtype == dtype && ty_wide_dtype(dtype) == TY_F32 &&
           product_is_aligned(g, node, dtype);
}

/* v is a product that nobody else reads, behind reshapes that leave its rows whole and the cast to float32. */
static bool product_of(const epilogue *p, ty_val v, product *out)
{
    const ty_type *t = ty_graph_type(p->g, v);
    int64_t n = t->rank > 0 ? t->dim[t->rank - 1] : 0;
    for (;;) {
        uint32_t node = ty_val_node(v);
        if (n_readers(p, v) != 1)
            return false;
        if (is_op(p, node, TY_OP_DOT))
            return product_is_plain(p->g, node, out) && out->n == n;
        if (!is_op(p, node, TY_OP_RESHAPE) && !is_op(p, node, TY_OP_CAST))
            return false;
        v = ty_graph_in(p->g, node, 0);
    }
}

/* product + bias */
typedef struct biased {
    product product;
    ty_val bias; /* n numbers */
} biased;

static bool biased_of(const epilogue *p, ty_val s, biased *out)
{
    uint32_t add = ty_val_node(s);
    if (!is_op(p, add, TY_OP_ADD))
        return false;
    for (int k = 0; k < 2; k++) {
        ty_val stretched = ty_graph_in(p->g, add, k);
        if (!is_op(p, ty_val_node(stretched), TY_OP_BROADCAST) ||
            !product_of(p, ty_graph_in(p->g, add, 1 - k), &out->product))
            continue;
        out->bias = ty_graph_in(p->g, ty_val_node(stretched), 0);
        const ty_type *t = ty_graph_type(p->g, out->bias);
        return t->rank > 0 && t->dim[t->rank - 1] == out->product.n && ty_type_elems(t) == out->product.n;
    }
    return false;
}

/* ---- the new graph ---- */

/* A new value as the old one was: its shape, in float32. */
static ty_val as_old(ty_clone *c, ty_val fresh, ty_val old)
{
    const ty_type *t = ty_graph_type(c->from, old);
    return ty_b_cast(c->to, ty_b_reshape(c->to, fresh, t->rank, t->dim), (ty_dtype)t->dtype);
}

static bool stays_apart(const epilogue *p, ty_linear_kind kind, ty_dtype dtype)
{
    return p->apart & ty_apart_linear(kind, dtype);
}

/* The product with its epilogue; false if it cannot be made, or is not to be. */
static bool emit(const epilogue *p, ty_clone *c, const product *dot, ty_linear_kind kind, ty_val x, ty_val *y,
                 ty_val *second)
{
    ty_val in[3] = {TY_NONE, TY_NONE, x};
    const ty_attr attr = {.flags = ty_graph_attr(c->from, dot->dot)->flags, .index = kind};
    if (stays_apart(p, kind, dot->dtype))
        return false;
    for (int i = 0; i < 2; i++)
        in[i] = c->map[ty_graph_in(c->from, dot->dot, i)];
    *y = ty_graph_emit(c->to, TY_OP_LINEAR, &attr, in, x == TY_NONE ? 2 : 3);
    *second = *y == TY_NONE ? TY_NONE : ty_val_make(ty_val_node(*y), 1);
    return *y != TY_NONE;
}

static bool emit_biased(const epilogue *p, ty_clone *c, const biased *b, ty_linear_kind kind, ty_val *y, ty_val *second)
{
    ty_val bias = ty_b_cast(c->to, ty_b_flatten(c->to, c->map[b->bias]), b->product.dtype);
    return emit(p, c, &b->product, kind, bias, y, second);
}

/* ---- forward ---- */

/* The argument is read by the GELU and its gradients alone. */
static bool gelu_argument(const epilogue *p, ty_val s, bool *keeps)
{
    int n_gelu = 0;
    *keeps = false;
    for (uint32_t i = 0; i < n_readers(p, s); i++) {
        uint32_t node = reader_of(p, s, i);
        bool gradient = is_op(p, node, TY_OP_GELU_GRAD);
        if ((!gradient && !is_op(p, node, TY_OP_GELU)) || !(ty_graph_attr(p->g, node)->flags & GELU_TANH) ||
            (gradient && ty_graph_in(p->g, node, 1) == s))
            return false;
        n_gelu += !gradient;
        *keeps |= gradient;
    }
    return n_gelu == 1;
}

static bool take_gelu(epilogue *p, ty_clone *c, uint32_t id)
{
    ty_val s = ty_graph_in(p->g, id, 0), v = ty_val_make(id, 0), y, second;
    biased b;
    bool keeps;
    if (!gelu_argument(p, s, &keeps) || !biased_of(p, s, &b) || !is_rounded(p, v, b.product.dtype, false) ||
        !feeds_calls(p, v, b.product.dtype, true) ||
        !emit_biased(p, c, &b, keeps ? TY_LINEAR_GELU_KEEP : TY_LINEAR_GELU, &y, &second))
        return false;
    c->map[v] = as_old(c, y, v);
    if (keeps) {
        c->map[s] = as_old(c, second, s);
        p->kept[s] = second;
    }
    return true;
}

/* The gradient of an activation, of dy, that can be an epilogue of the product that makes dy. */
static bool gradient_of(const epilogue *p, uint32_t id, ty_val dy, product *out)
{
    ty_val v = ty_val_make(id, 0);
    return product_of(p, dy, out) && is_rounded(p, v, out->dtype, true) && feeds_calls(p, v, out->dtype, true);
}

/* The gradient v of an activation, with the sums for a bias if they are wanted and may come along. */
static ty_linear_kind gradient_kind(const epilogue *p, ty_val v, bool gelu, ty_dtype dtype)
{
    ty_linear_kind alone = gelu ? TY_LINEAR_GELU_GRAD : TY_LINEAR_RELU_GRAD;
    ty_linear_kind with_sum = gelu ? TY_LINEAR_GELU_GRAD_SUM : TY_LINEAR_RELU_GRAD_SUM;
    bool sums = false;
    for (uint32_t i = 0; i < n_readers(p, v); i++)
        sums |= is_bias_sum(p, reader_of(p, v, i));
    return sums && !stays_apart(p, with_sum, dtype) ? with_sum : alone;
}

/* All gradients of a ReLU can be epilogues: then bits are kept for them. */
static bool relu_keeps(const epilogue *p, uint32_t le, uint32_t relu, ty_dtype dtype)
{
    ty_val cond = ty_val_make(le, 0);
    bool some = false;
    if (stays_apart(p, TY_LINEAR_RELU_KEEP, dtype))
        return false;
    for (uint32_t i = 0; i < n_readers(p, cond); i++) {
        uint32_t node = reader_of(p, cond, i);
        product dy;
        if (node == relu)
            continue;
        if (!is_op(p, node, TY_OP_SELECT) || ty_graph_in(p->g, node, 0) != cond ||
            !ty_graph_is_zero(p->g, ty_graph_in(p->g, node, 1)) ||
            !gradient_of(p, node, ty_graph_in(p->g, node, 2), &dy) || dy.dtype != dtype ||
            stays_apart(p, gradient_kind(p, ty_val_make(node, 0), false, dtype), dtype))
            return false;
        some = true;
    }
    return some;
}

static bool take_relu(epilogue *p, ty_clone *c, uint32_t id)
{
    uint32_t le = ty_mask_of_relu(p->g, id);
    ty_val s = ty_graph_in(p->g, id, 2), v = ty_val_make(id, 0), y, second;
    biased b;
    if (le == TY_NONE || n_readers(p, s) != 2 || !biased_of(p, s, &b) || !is_rounded(p, v, b.product.dtype, false) ||
        !feeds_calls(p, v, b.product.dtype, true))
        return false;
    bool keeps = relu_keeps(p, le, id, b.product.dtype);
    if (!emit_biased(p, c, &b, keeps ? TY_LINEAR_RELU_KEEP : TY_LINEAR_RELU, &y, &second))
        return false;
    c->map[v] = as_old(c, y, v);
    c->map[ty_val_make(le, 0)] = ty_b_le(c->to, c->map[v], ty_b_full_like(c->to, c->map[v], 0));
    if (keeps)
        p->kept[ty_val_make(le, 0)] = second;
    return true;
}

static bool take_bias(epilogue *p, ty_clone *c, uint32_t id)
{
    ty_val v = ty_val_make(id, 0), y, second;
    biased b;
    if (!biased_of(p, v, &b) || !is_rounded(p, v, b.product.dtype, false) ||
        !feeds_calls(p, v, b.product.dtype, false) || !emit_biased(p, c, &b, TY_LINEAR_BIAS, &y, &second))
        return false;
    c->map[v] = as_old(c, y, v);
    return true;
}

/* a b + other, in float32, where a kernel would do nothing else. */
static bool take_sum(epilogue *p, ty_clone *c, uint32_t id)
{
    ty_val v = ty_val_make(id, 0);
    product one;
    if (!feeds_calls(p, v, TY_F32, false))
        return false;
    for (int k = 0; k < 2; k++) {
        ty_val other = ty_graph_in(p->g, id, 1 - k);
        if (!product_of(p, ty_graph_in(p->g, id, k), &one) || one.dtype != TY_F32 ||
            is_op(p, ty_val_node(other), TY_OP_BROADCAST))
            continue;
        uint32_t flags = ty_graph_attr(p->g, one.dot)->flags;
        ty_val c_in = ty_b_reshape(c->to, c->map[other], 2, (int64_t[]){one.m, one.n});
        ty_val y = ty_b_dot_add(c->to, c->map[ty_graph_in(p->g, one.dot, 0)], c->map[ty_graph_in(p->g, one.dot, 1)],
                                c_in, flags & TY_DOT_TRANS_A, flags & TY_DOT_TRANS_B);
        c->map[v] = as_old(c, y, v);
        return true;
    }
    return false;
}

/* ---- backward ---- */

/* The old sum over rows is the new one, which has the products' type. */
static void map_sum(ty_clone *c, uint32_t reduce, ty_val sum)
{
    ty_val v = ty_val_make(reduce, 0);
    c->map[v] = as_old(c, sum, v);
}

/* The gradient of an activation whose `kept` is known. */
static bool take_gradient(epilogue *p, ty_clone *c, uint32_t id, ty_val dy, ty_val kept, bool gelu)
{
    ty_val v = ty_val_make(id, 0), y, second;
    product dot;
    if (!gradient_of(p, id, dy, &dot) || (gelu && ty_b_dtype(c->to, kept) != dot.dtype))
        return false;
    ty_linear_kind kind = gradient_kind(p, v, gelu, dot.dtype);
    if (!emit(p, c, &dot, kind, kept, &y, &second))
        return false;
    c->map[v] = as_old(c, y, v);
    for (uint32_t i = 0; ty_linear_result(kind) == TY_LINEAR_COLUMNS && i < n_readers(p, v); i++)
        if (is_bias_sum(p, reader_of(p, v, i)))
            map_sum(c, reader_of(p, v, i), second);
    return true;
}

/* The product among the readers of v, through reshapes, that adds up over the rows of v, the gradient of a weight. */
static bool weight_product(const epilogue *p, ty_val v, int64_t n, ty_linear_kind *kind, product *dot)
{
    for (uint32_t i = 0; i < n_readers(p, v); i++) {
        uint32_t node = reader_of(p, v, i);
        if (is_op(p, node, TY_OP_RESHAPE) && weight_product(p, ty_val_make(node, 0), n, kind, dot))
            return true;
        if (!is_op(p, node, TY_OP_DOT) || !product_is_plain(p->g, node, dot))
            continue;
        uint32_t flags = ty_graph_attr(p->g, node)->flags;
        ty_val a = ty_graph_in(p->g, node, 0), b = ty_graph_in(p->g, node, 1);
        *kind = a == v ? TY_LINEAR_SUM_A : TY_LINEAR_SUM_B;
        if (a != b && (a == v ? flags & TY_DOT_TRANS_A && dot->m == n : !(flags & TY_DOT_TRANS_B) && dot->n == n))
            return true;
    }
    return false;
}

/* The bias's gradient of what a call has made, which only this sum would read again. */
static bool take_bias_sum(epilogue *p, ty_clone *c, uint32_t id)
{
    ty_val v = ty_graph_in(p->g, id, 0), y, second;
    const ty_type *t = ty_graph_type(p->g, v);
    int64_t n = t->dim[t->rank - 1];
    while (is_op(p, ty_val_node(v), TY_OP_RESHAPE) || is_op(p, ty_val_node(v), TY_OP_CAST))
        v = ty_graph_in(p->g, ty_val_node(v), 0);
    ty_linear_kind kind;
    product dot;
    if (ty_op_row_of(ty_graph_op(p->g, ty_val_node(v)))->class_ != TY_CLASS_LIBRARY ||
        !weight_product(p, v, n, &kind, &dot) || c->map[ty_val_make(dot.dot, 0)] != TY_NONE)
        return false;
    for (int i = 0; i < 2; i++) {
        ty_val in = ty_graph_in(p->g, dot.dot, i);
        const ty_type *shape = ty_graph_type(p->g, in);
        if (c->map[in] == TY_NONE && i == (kind == TY_LINEAR_SUM_B))
            c->map[in] = ty_b_reshape(c->to, c->map[v], shape->rank, shape->dim);
        if (c->map[in] == TY_NONE)
            return false;
    }
    if (!emit(p, c, &dot, kind, TY_NONE, &y, &second))
        return false;
    c->map[ty_val_make(dot.dot, 0)] = y;
    map_sum(c, id, second);
    return true;
}

/* The sum over rows that reads v, through reshapes and casts, or TY_NONE. */
static uint32_t bias_sum_of(const epilogue *p, ty_val v)
{
    for (uint32_t i = 0; i < n_readers(p, v); i++) {
        uint32_t node = reader_of(p, v, i), found = TY_NONE;
        if (is_bias_sum(p, node))
            return node;
        if (is_op(p, node, TY_OP_RESHAPE) || is_op(p, node, TY_OP_CAST))
            found = bias_sum_of(p, ty_val_make(node, 0));
        if (found != TY_NONE)
            return found;
    }
    return TY_NONE;
}

/* The product of such a sum may come before it. */
static bool take_summed(epilogue *p, ty_clone *c, uint32_t dot)
{
    for (int i = 0; i < 2; i++) {
        ty_val v = ty_graph_in(p->g, dot, i);
        while (is_op(p, ty_val_node(v), TY_OP_RESHAPE))
            v = ty_graph_in(p->g, ty_val_node(v), 0);
        bool call = ty_op_row_of(ty_graph_op(p->g, ty_val_node(v)))->class_ == TY_CLASS_LIBRARY;
        uint32_t sum = call ? bias_sum_of(p, v) : TY_NONE;
        if (sum != TY_NONE && c->map[ty_val_make(sum, 0)] == TY_NONE && take_bias_sum(p, c, sum) &&
            c->map[ty_val_make(dot, 0)] != TY_NONE)
            return true;
    }
    return false;
}

/* ---- the pass ---- */

static bool epilogue_rewrite(ty_clone *c, uint32_t id, void *ctx)
{
    epilogue *p = ctx;
    const ty_graph *g = p->g;
    if (ty_graph_failed(c->to, NULL))
        return false;
    if (c->map[ty_val_make(id, 0)] != TY_NONE) /* made together with something before it */
        return true;
    ty_graph_origin(c->to, ty_graph_origin_of(g, id));
    ty_val kept;
    switch (ty_graph_op(g, id)) {
    case TY_OP_GELU:
        return take_gelu(p, c, id);
    case TY_OP_GELU_GRAD:
        kept = p->kept[ty_graph_in(g, id, 0)];
        return kept != TY_NONE && take_gradient(p, c, id, ty_graph_in(g, id, 1), kept, true);
    case TY_OP_SELECT:
        kept = p->kept[ty_graph_in(g, id, 0)];
        return kept != TY_NONE ? take_gradient(p, c, id, ty_graph_in(g, id, 2), kept, false) : take_relu(p, c, id);
    case TY_OP_ADD:
        return take_bias(p, c, id) || take_sum(p, c, id);
    case TY_OP_DOT:
        return take_summed(p, c, id);
    case TY_OP_REDUCE:
        return is_bias_sum(p, id) && take_bias_sum(p, c, id);
    default:
        return false;
    }
}

int ty_pass_epilogue(const ty_graph *in, ty_apart apart, ty_graph **out, ty_error *err)
{
    uint32_t n_nodes = ty_graph_n_nodes(in);
    size_t n = (size_t)n_nodes * TY_MAX_RESULTS;
    epilogue p = {.g = in, .apart = apart, .kept = malloc((n + 1) * sizeof *p.kept)};
    *out = NULL;
    for (size_t v = 0; v < n && p.kept; v++)
        p.kept[v] = TY_NONE;
    int rc = p.kept ? ty_readers_find(&p.readers, in, err)
                    : ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n_nodes);
    if (rc == 0)
        rc = ty_clone_rewrite(in, epilogue_rewrite, &p, out, err);
    free(p.kept);
    ty_readers_free(&p.readers);
    return rc;
}
