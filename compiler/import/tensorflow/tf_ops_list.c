/* tf_ops_list.c - lists of tensors. They exist while importing only: Keras' recurrent layers write their steps to one
 * in an unrolled loop, so every index is known.
 */
#include "compiler/import/tensorflow/tf_ops.h"

#include <string.h>

enum { MAX_LENGTH = 1 << 16 };

static tf_list *list_new(tf_ctx *c, int n, ty_dtype dtype, ty_val **val)
{
    tf_list *list = tf_alloc(c, 1, sizeof *list);
    *val = tf_alloc(c, (size_t)n, sizeof **val);
    *list = (tf_list){.n = n, .dtype = dtype, .rank = -1, .val = *val, .whole = TY_NONE};
    for (int i = 0; i < n; i++)
        (*val)[i] = TY_NONE;
    return list;
}

/* Another list with the same elements, and room for n. */
static tf_list *list_copy(tf_ctx *c, const tf_list *from, int n, ty_val **val)
{
    tf_list *list = list_new(c, n, from->dtype, val);
    list->rank = from->rank;
    memcpy(list->dim, from->dim, sizeof list->dim);
    for (int i = 0; i < n && i < from->n; i++)
        (*val)[i] = from->val[i];
    return list;
}

/* A shape from input i, if it tells one: -1 alone means that it is not known. */
static void take_shape(tf_ctx *c, int i, tf_list *list)
{
    const int64_t *v;
    int64_t n;
    if (!tf_has(c, i) || !tf_val_ints(c, tf_in(c, i), &v, &n) || n > TY_MAX_RANK || tf_rank(c, tf_in(c, i)) != 1)
        return;
    list->rank = (int)n;
    memcpy(list->dim, v, (size_t)n * sizeof *v);
}

static bool length_ok(tf_ctx *c, int64_t n)
{
    if (n < 0 || n > MAX_LENGTH)
        tf_fail(c, TY_E_LIMIT, "a list of %lld tensors", (long long)n);
    return !c->failed;
}

/* Zeros for what was not set, where another element or the list tells the shape. */
static ty_val list_zeros(tf_ctx *c, const tf_list *list)
{
    for (int k = 0; k < list->n; k++)
        if (list->val[k] != TY_NONE)
            return ty_b_full_like(c->g, list->val[k], 0);
    for (int k = 0; k < list->rank; k++)
        if (list->dim[k] < 0)
            return TY_NONE;
    if (list->rank < 0 || list->dtype == TY_N_DTYPES || !tf_shape_ok(c, list->rank, list->dim))
        return TY_NONE;
    return ty_b_full(c->g, list->dtype, list->rank, list->dim, 0);
}

/* Element i. */
static ty_val list_get(tf_ctx *c, const tf_list *list, int64_t i)
{
    if (i < 0 || i >= list->n) {
        tf_fail(c, TY_E_SHAPE, "element %lld of a list of %d", (long long)i, list->n);
        return TY_NONE;
    }
    return list->val[i] != TY_NONE ? list->val[i] : list_zeros(c, list);
}

/* element shape, number of elements (EmptyTensorList, arg 1: none yet) */
void tf_op_list_reserve(tf_ctx *c)
{
    int64_t n = 0;
    ty_val *val;
    if (!c->row->arg && (!tf_const_int(c, 1, &n) || !length_ok(c, n)))
        return;
    tf_list *list = list_new(c, (int)n, tf_dtype(tf_attr_type(c->node, "element_dtype", TF_FLOAT)), &val);
    take_shape(c, 0, list);
    tf_set_list(c, 0, list);
}

void tf_op_list_from_tensor(tf_ctx *c)
{
    ty_val x = tf_in(c, 0), *val;
    if (tf_rank(c, x) < 1) {
        tf_fail_input(c, 0, TY_E_SHAPE, "must have a dimension");
        return;
    }
    int64_t n = tf_dim(c, x, 0);
    if (!length_ok(c, n))
        return;
    tf_list *list = list_new(c, (int)n, tf_dtype_of(c, x), &val);
    for (int64_t i = 0; i < n; i++)
        val[i] = ty_b_squeeze(c->g, ty_b_slice_axis(c->g, x, 0, i, i + 1), 0);
    list->rank = tf_rank(c, x) - 1;
    for (int i = 0; i < list->rank; i++)
        list->dim[i] = tf_dim(c, x, i + 1);
    list->whole = x;
    tf_set_list(c, 0, list);
}

void tf_op_list_get(tf_ctx *c)
{
    const tf_list *list = tf_in_list(c, 0);
    int64_t i;
    if (!list || !tf_const_int(c, 1, &i))
        return;
    tf_list told = *list;
    take_shape(c, 2, &told);
    tf_set(c, 0, list_get(c, &told, i));
}

void tf_op_list_set(tf_ctx *c)
{
    const tf_list *list = tf_in_list(c, 0);
    int64_t i;
    ty_val *val;
    if (!list || !tf_const_int(c, 1, &i))
        return;
    bool grows = tf_attr_bool(c->node, "resize_if_index_out_of_bounds", false);
    if (i < 0 || (i >= list->n && !grows) || i >= MAX_LENGTH) {
        tf_fail(c, TY_E_SHAPE, "element %lld of a list of %d", (long long)i, list->n);
        return;
    }
    tf_list *next = list_copy(c, list, i < list->n ? list->n : (int)i + 1, &val);
    val[i] = tf_in(c, 2);
    tf_set_list(c, 0, next);
}

static ty_val stack(tf_ctx *c, const tf_list *list, const int64_t *which, int64_t n)
{
    ty_val *part = tf_alloc(c, (size_t)n, sizeof *part), zeros = TY_NONE;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = which ? which[i] : i;
        bool is_unset = at >= 0 && at < list->n && list->val[at] == TY_NONE;
        if (is_unset && zeros == TY_NONE)
            zeros = list_zeros(c, list);
        ty_val v = is_unset ? zeros : list_get(c, list, at);
        if (v == TY_NONE)
            return TY_NONE;
        part[i] = ty_b_unsqueeze(c->g, v, 0);
    }
    if (n == 0) {
        tf_fail(c, TY_E_SHAPE, "the list has no elements");
        return TY_NONE;
    }
    return n == 1 ? part[0] : ty_b_concat_many(c->g, part, (int)n, 0);
}

ty_val tf_list_whole(tf_ctx *c, const tf_list *list)
{
    return list->whole != TY_NONE ? list->whole : stack(c, list, NULL, list->n);
}

void tf_op_list_stack(tf_ctx *c)
{
    const tf_list *list = tf_in_list(c, 0);
    if (!list)
        return;
    tf_list told = *list;
    take_shape(c, 1, &told);
    tf_set(c, 0, tf_list_whole(c, &told));
}

void tf_op_list_gather(tf_ctx *c)
{
    const tf_list *list = tf_in_list(c, 0);
    const int64_t *which;
    int64_t n;
    if (!list || !tf_const_ints(c, 1, &which, &n))
        return;
    tf_list told = *list;
    take_shape(c, 2, &told);
    tf_set(c, 0, stack(c, &told, which, n));
}

void tf_op_list_push(tf_ctx *c)
{
    const tf_list *list = tf_in_list(c, 0);
    ty_val *val;
    if (!list || !length_ok(c, (int64_t)list->n + 1))
        return;
    tf_list *next = list_copy(c, list, list->n + 1, &val);
    val[list->n] = tf_in(c, 1);
    tf_set_list(c, 0, next);
}

void tf_op_list_pop(tf_ctx *c)
{
    const tf_list *list = tf_in_list(c, 0);
    ty_val *val;
    if (!list)
        return;
    tf_list told = *list;
    take_shape(c, 1, &told);
    tf_set(c, 1, list_get(c, &told, list->n - 1));
    if (list->n > 0)
        tf_set_list(c, 0, list_copy(c, list, list->n - 1, &val));
}

void tf_op_list_length(tf_ctx *c)
{
    const tf_list *list = tf_in_list(c, 0);
    if (list)
        tf_set(c, 0, ty_b_scalar(c->g, TY_I32, list->n));
}

/* The shape of an element. */
void tf_op_list_shape(tf_ctx *c)
{
    const tf_list *list = tf_in_list(c, 0);
    if (!list)
        return;
    ty_val first = list->n ? list_get(c, list, 0) : TY_NONE;
    const int64_t *dim = first == TY_NONE ? list->dim : tf_type(c, first)->dim;
    int rank = first == TY_NONE ? list->rank : tf_rank(c, first);
    if (rank < 0)
        tf_fail_input(c, 0, TY_E_UNSUPPORTED, "does not tell the shape of its elements");
    else
        tf_set(c, 0, tf_ints(c, tf_attr_dtype(c, "shape_type", TY_I32), dim, rank));
}

/* ---- gradients of loops: lists take the place of tensors -----------------------------------------------------------
 */

void tf_add_lists(tf_ctx *c)
{
    const tf_list *sum = tf_in_list(c, 0), *list;
    ty_val *val;
    for (int i = 1; i < c->n_in && sum; i++) {
        if (!(list = tf_in_list(c, i)))
            return;
        if (list->n != sum->n) {
            tf_fail_input(c, i, TY_E_SHAPE, "has %d elements, not %d", list->n, sum->n);
            return;
        }
        sum = list_copy(c, sum, sum->n, &val);
        for (int k = 0; k < list->n; k++)
            if (val[k] == TY_NONE || list->val[k] == TY_NONE)
                val[k] = val[k] == TY_NONE ? list->val[k] : val[k];
            else
                val[k] = ty_b_add(c->g, val[k], list->val[k]);
    }
    if (sum)
        tf_set_list(c, 0, sum);
}

/* Of a list: one as long, with zeros for the elements that are set. */
void tf_op_zeros_like(tf_ctx *c)
{
    ty_val *val, x = tf_in(c, 0);
    if (x != TY_NONE) {
        tf_set(c, 0, ty_b_full_like(c->g, x, 0));
        return;
    }
    const tf_list *list = tf_in_list(c, 0);
    if (!list)
        return;
    tf_list *zeros = list_copy(c, list, list->n, &val);
    for (int i = 0; i < list->n; i++)
        if (val[i] != TY_NONE)
            val[i] = ty_b_full_like(c->g, val[i], 0);
    tf_set_list(c, 0, zeros);
}
