/* keras_ops_linear.c - products: matmul, dot, tensordot, einsum, outer; attention. */
#include "compiler/import/einsum.h"
#include "compiler/import/keras/keras_attend.h"
#include "compiler/import/keras/keras_ops.h"

#include <math.h>
#include <string.h>

/* Both operands, computed with in floats; *dtype is the result's. */
static bool product_pair(keras_call *c, ty_val *a, ty_val *b, ty_dtype *dtype)
{
    if (!keras_op_pair(c, false, a, b))
        return false;
    *dtype = ty_b_dtype(c->g, *a);
    if (!ty_dtype_is_float(*dtype)) {
        *a = ty_b_cast(c->g, *a, TY_F64);
        *b = ty_b_cast(c->g, *b, TY_F64);
    }
    return true;
}

static void set_product(keras_call *c, ty_val y, ty_dtype dtype)
{
    keras_set(c, 0, y == TY_NONE ? y : ty_b_cast(c->g, y, dtype));
}

void keras_op_matmul(keras_call *c)
{
    ty_val a, b;
    ty_dtype dtype;
    if (!product_pair(c, &a, &b, &dtype))
        return;
    if (ty_b_rank(c->g, a) < 1 || ty_b_rank(c->g, b) < 1)
        keras_fail(c, TY_E_SHAPE, "Matmul: expected at least one dimension on both sides");
    else
        set_product(c, ty_b_matmul(c->g, a, b), dtype);
}

/* a and b summed over the axes listed: the other axes of a, then those of b. */
static ty_val contracted(keras_call *c, ty_val a, ty_val b, const int *of_a, const int *of_b, int n)
{
    ty_graph *g = c->g;
    const ty_type ta = *ty_graph_type(g, a), tb = *ty_graph_type(g, b);
    int64_t perm_a[TY_MAX_RANK], perm_b[TY_MAX_RANK], dim[2 * TY_MAX_RANK], flat_a[] = {1, 1}, flat_b[] = {1, 1};
    int rank = 0, at_a = 0, at_b = n;
    uint32_t in_a = 0, in_b = 0;
    for (int i = 0; i < n; i++) {
        in_a |= 1u << of_a[i];
        in_b |= 1u << of_b[i];
        if (ta.dim[of_a[i]] != tb.dim[of_b[i]])
            return ty_graph_fail(g, TY_E_SHAPE, "%s: axes of %lld and %lld elements are summed together",
                                 c->layer->class_name, (long long)ta.dim[of_a[i]], (long long)tb.dim[of_b[i]]);
    }
    if (__builtin_popcount(in_a) != n || __builtin_popcount(in_b) != n || ta.rank + tb.rank - 2 * n > TY_MAX_RANK)
        return ty_graph_fail(g, TY_E_SHAPE, "%s: expected different axes and a result of at most %d",
                             c->layer->class_name, TY_MAX_RANK);
    for (int i = 0; i < ta.rank; i++)
        if (!(in_a >> i & 1)) {
            perm_a[at_a++] = i;
            flat_a[0] *= dim[rank++] = ta.dim[i];
        }
    for (int i = 0; i < n; i++) {
        perm_a[at_a++] = of_a[i];
        perm_b[i] = of_b[i];
        flat_a[1] *= ta.dim[of_a[i]];
    }
    for (int i = 0; i < tb.rank; i++)
        if (!(in_b >> i & 1)) {
            perm_b[at_b++] = i;
            flat_b[1] *= dim[rank++] = tb.dim[i];
        }
    flat_b[0] = flat_a[1];
    a = ty_b_reshape(g, ty_b_transpose(g, a, perm_a), 2, flat_a);
    b = ty_b_reshape(g, ty_b_transpose(g, b, perm_b), 2, flat_b);
    return ty_b_reshape(g, ty_b_dot(g, a, b, false, false), rank, dim);
}

/* NumPy's dot, and (arg 1) inner. */
void keras_op_dot(keras_call *c)
{
    ty_val a, b;
    ty_dtype dtype;
    if (!product_pair(c, &a, &b, &dtype))
        return;
    int rank_a = ty_b_rank(c->g, a), rank_b = ty_b_rank(c->g, b);
    int of_a = rank_a - 1, of_b = rank_b == 1 || c->layer->op->arg ? rank_b - 1 : rank_b - 2;
    if (rank_a == 0 || rank_b == 0)
        set_product(c, ty_b_mul(c->g, a, b), dtype);
    else
        set_product(c, contracted(c, a, b, &of_a, &of_b, 1), dtype);
}

void keras_op_vdot(keras_call *c)
{
    ty_val a, b;
    ty_dtype dtype;
    int zero = 0;
    if (product_pair(c, &a, &b, &dtype))
        set_product(c, contracted(c, ty_b_flatten(c->g, a), ty_b_flatten(c->g, b), &zero, &zero, 1), dtype);
}

void keras_op_outer(keras_call *c)
{
    ty_val a, b;
    if (keras_op_pair(c, false, &a, &b))
        keras_set(c, 0,
                  ty_b_mul(c->g, ty_b_unsqueeze(c->g, ty_b_flatten(c->g, a), 1),
                           ty_b_unsqueeze(c->g, ty_b_flatten(c->g, b), 0)));
}

/* axes: n, the last n of the one with the first n of the other; or a list (or number) of axes for each. */
static int tensordot_axes(keras_call *c, int rank_a, int rank_b, int *of_a, int *of_b)
{
    const ty_doc *d = keras_config(c, "axes"), *list[] = {ty_doc_at(d, 0), ty_doc_at(d, 1)};
    int n = -1, rank[] = {rank_a, rank_b}, *out[] = {of_a, of_b};
    if (!d || d->kind == TY_DOC_INT) {
        n = d ? (int)(d->integer < 0 || d->integer > TY_MAX_RANK ? -1 : d->integer) : 2;
        for (int i = 0; i < n && n <= rank_a && n <= rank_b; i++) {
            of_a[i] = rank_a - n + i;
            of_b[i] = i;
        }
        return n <= rank_a && n <= rank_b ? n : -1;
    }
    for (int k = 0; k < 2; k++) {
        int len = list[k] && list[k]->kind == TY_DOC_LIST ? (int)list[k]->n_items : 1;
        if (!list[k] || len > TY_MAX_RANK || (k == 1 && len != n))
            return -1;
        n = len;
        for (int i = 0; i < n; i++) {
            const ty_doc *axis = list[k]->kind == TY_DOC_LIST ? ty_doc_at(list[k], (size_t)i) : list[k];
            if (axis->kind != TY_DOC_INT || !keras_axis(c, axis->integer, rank[k], &out[k][i]))
                return -1;
        }
    }
    return n;
}

void keras_op_tensordot(keras_call *c)
{
    ty_val a, b;
    ty_dtype dtype;
    int of_a[TY_MAX_RANK], of_b[TY_MAX_RANK];
    if (!product_pair(c, &a, &b, &dtype))
        return;
    int n = tensordot_axes(c, ty_b_rank(c->g, a), ty_b_rank(c->g, b), of_a, of_b);
    if (n >= 0)
        set_product(c, contracted(c, a, b, of_a, of_b, n), dtype);
    else if (!c->failed)
        keras_fail_key(c, "axes", "must be a number of axes, or two lists of as many axes");
}

void keras_op_einsum(keras_call *c)
{
    const keras_arg operands = {.kind = KERAS_LIST, .item = c->args->item, .n_items = c->args->n_items};
    const char *why, *text = keras_text(c, "subscripts", "");
    ty_val *in;
    int n = keras_op_list(c, &operands, &in);
    if (n < 1 || c->failed)
        return;
    ty_dtype dtype = ty_b_dtype(c->g, in[0]);
    for (int i = 0; i < n && !ty_dtype_is_float(dtype); i++)
        in[i] = ty_b_cast(c->g, in[i], TY_F64);
    ty_val y = ty_einsum(c->g, text, in, n, &why);
    if (why)
        keras_fail_key(c, "subscripts", "%s", why);
    else
        set_product(c, y, dtype);
}

/* query [B, T, N, H], key [B, S, G, H], value [B, S, G, E]. */
void keras_op_attention(keras_call *c)
{
    ty_graph *g = c->g;
    const keras_arg *scale = keras_argument(c, 5, "scale");
    keras_attend a = {.q = keras_op_in(c, 0, "query"),
                      .k = keras_op_in(c, 1, "key"),
                      .v = keras_op_in(c, 2, "value"),
                      .bias = keras_op_optional(c, 3, "bias"),
                      .mask = keras_op_optional(c, 4, "mask"),
                      .hidden = KERAS_HIDDEN};
    if (a.q == TY_NONE || a.k == TY_NONE || a.v == TY_NONE || c->failed)
        return;
    if (ty_b_rank(g, a.q) != 4 || ty_b_rank(g, a.k) != 4 || ty_b_rank(g, a.v) != 4 || ty_b_dim(g, a.k, 2) < 1 ||
        ty_b_dim(g, a.q, 2) % ty_b_dim(g, a.k, 2)) {
        keras_fail(c, TY_E_SHAPE,
                   "DotProductAttention: expected query, key and value of 4 dimensions, and heads that divide");
        return;
    }
    int64_t size = ty_b_dim(g, a.k, 3);
    a.scale = scale && scale->kind == KERAS_FLOAT ? scale->number : 1 / sqrt(size > 0 ? (double)size : 1);
    a.cap = keras_number(c, "attn_logits_soft_cap", 0);
    if (a.cap != 0 && !c->failed)
        keras_fail_key(c, "attn_logits_soft_cap", "must be null, as Keras on TensorFlow leaves it out");
    if (a.mask != TY_NONE)
        a.mask = ty_b_cast(g, a.mask, TY_BOOL);
    if (keras_flag(c, "is_causal", false))
        a.mask = keras_and(g, a.mask, keras_causal(g, ty_b_dim(g, a.q, 1), ty_b_dim(g, a.k, 1), true, 0));
    a.mask = keras_mask_to_scores(g, a.mask);
    if (a.bias != TY_NONE)
        a.bias = ty_b_cast(g, a.bias, ty_b_dtype(g, a.q));
    if (c->failed)
        return;
    keras_attend_emit(c, &a);
    keras_set(c, 0, a.y);
}
