/* keras_layers_merge.c - layers that take several tensors. Source: keras/src/layers/merging. */
#include "compiler/import/keras/keras.h"

enum { MERGE_ADD, MERGE_AVERAGE, MERGE_MULTIPLY, MERGE_SUBTRACT, MERGE_MAXIMUM, MERGE_MINIMUM };

/* ---- masks --------------------------------------------------------------------------------------------------------
 */

static bool merge_all_masked(const keras_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->mask[i] == TY_NONE)
            return false;
    return c->n_in > 0;
}

/* The mask of the result: true where one of them is; none if an input has none. */
static void merge_masks(keras_call *c)
{
    if (!merge_all_masked(c))
        return;
    ty_val mask = c->mask[0];
    for (int i = 1; i < c->n_in; i++)
        mask = ty_b_binary(c->g, TY_OP_OR, mask, c->mask[i]);
    keras_set_mask(c, 0, mask);
}

/* ---- elementwise --------------------------------------------------------------------------------------------------
 */

/* Inputs of fewer axes get 1s behind the batch. */
static ty_val merge_input(keras_call *c, int i, int rank)
{
    ty_val x = keras_float(c, c->in[i]);
    while (ty_b_rank(c->g, x) < rank && x != TY_NONE)
        x = ty_b_unsqueeze(c->g, x, 1);
    return x;
}

/* Of equals the first one counts, and takes the gradient. */
static ty_val merge_choose(ty_graph *g, ty_val a, ty_val b, bool maximum)
{
    return ty_b_select(g, maximum ? ty_b_lt(g, a, b) : ty_b_lt(g, b, a), b, a);
}

static ty_val merge_two(keras_call *c, ty_val a, ty_val b)
{
    switch (c->layer->row->arg) {
    case MERGE_MULTIPLY:
        return ty_b_mul(c->g, a, b);
    case MERGE_SUBTRACT:
        return ty_b_sub(c->g, a, b);
    case MERGE_MAXIMUM:
    case MERGE_MINIMUM:
        return merge_choose(c->g, a, b, c->layer->row->arg == MERGE_MAXIMUM);
    default:
        return ty_b_add(c->g, a, b);
    }
}

/* Masked elements of Multiply, Maximum and Minimum leave the other side as it is. */
static ty_val merge_masked(keras_call *c, ty_val a, ty_val a_mask, ty_val b, ty_val b_mask)
{
    ty_graph *g = c->g;
    bool chooses = c->layer->row->arg == MERGE_MAXIMUM || c->layer->row->arg == MERGE_MINIMUM;
    int rank = ty_b_rank(g, b);
    if (!chooses)
        return merge_two(c, a, b);
    if (b_mask != TY_NONE)
        b = ty_b_select(g, keras_mask_to(c, b_mask, rank), b, a);
    if (a_mask != TY_NONE)
        a = ty_b_select(g, keras_mask_to(c, a_mask, rank), a, b);
    return merge_two(c, a, b);
}

void keras_call_merge(keras_call *c)
{
    int kind = c->layer->row->arg, rank = 0;
    if (c->n_in < 1 || (kind == MERGE_SUBTRACT && c->n_in != 2)) {
        keras_fail(c, TY_E_MODEL_FILE, "takes %s, found %d", kind == MERGE_SUBTRACT ? "2 tensors" : "a list of tensors",
                   c->n_in);
        return;
    }
    for (int i = 0; i < c->n_in; i++)
        rank = ty_b_rank(c->g, c->in[i]) > rank ? ty_b_rank(c->g, c->in[i]) : rank;
    ty_val out = merge_input(c, 0, rank), mask = c->mask[0];
    for (int i = 1; i < c->n_in; i++) {
        out = merge_masked(c, out, mask, merge_input(c, i, rank), c->mask[i]);
        mask = mask != TY_NONE && c->mask[i] != TY_NONE ? ty_b_binary(c->g, TY_OP_OR, mask, c->mask[i]) : TY_NONE;
    }
    keras_set(c, 0, kind == MERGE_AVERAGE ? ty_b_mul_s(c->g, out, 1.0 / c->n_in) : out);
    merge_masks(c);
}

/* ---- Concatenate --------------------------------------------------------------------------------------------------
 */

/* Masks are laid side by side like the inputs, each stretched to its input; one that is missing is true. A place counts
 * where any element along the last axis does. */
static void merge_concatenate_masks(keras_call *c, int axis)
{
    ty_graph *g = c->g;
    bool any = false;
    ty_val *list = keras_alloc(c, (size_t)c->n_in, sizeof *list);
    for (int i = 0; i < c->n_in; i++) {
        const ty_type *t = ty_graph_type(g, c->in[i]);
        any = any || c->mask[i] != TY_NONE;
        list[i] = c->mask[i] == TY_NONE ? ty_b_full(g, TY_BOOL, t->rank, t->dim, 1)
                                        : ty_b_broadcast(g, keras_mask_to(c, c->mask[i], t->rank), t->rank, t->dim);
    }
    if (!any)
        return;
    ty_val all = ty_b_concat_many(g, list, c->n_in, axis);
    if (all == TY_NONE)
        return;
    ty_val count = ty_b_reduce(g, ty_b_cast(g, all, TY_I32), TY_MAX, 1u << (ty_b_rank(g, all) - 1), false);
    keras_set_mask(c, 0, ty_b_cast(g, count, TY_BOOL));
}

void keras_call_concatenate(keras_call *c)
{
    int rank = c->n_in ? ty_b_rank(c->g, c->in[0]) : 0, axis;
    if (rank == 0) {
        keras_fail(c, TY_E_MODEL_FILE, "takes a list of tensors");
        return;
    }
    if (!keras_axis(c, keras_int(c, "axis", -1), rank, &axis))
        return;
    ty_val *list = keras_alloc(c, (size_t)c->n_in, sizeof *list);
    ty_dtype dtype = ty_b_dtype(c->g, c->in[0]);
    for (int i = 1; i < c->n_in; i++)
        dtype = ty_b_dtype(c->g, c->in[i]) == dtype ? dtype : TY_F32;
    for (int i = 0; i < c->n_in; i++)
        list[i] = ty_b_cast(c->g, c->in[i], dtype);
    keras_set(c, 0, ty_b_concat_many(c->g, list, c->n_in, axis));
    merge_concatenate_masks(c, axis);
}

/* ---- Dot ----------------------------------------------------------------------------------------------------------
 */

static ty_val merge_unit(ty_graph *g, ty_val x, int axis)
{
    ty_val squares = ty_b_sum(g, ty_b_square(g, x), 1u << axis, true);
    return ty_b_mul(g, x, ty_b_unary(g, TY_OP_RSQRT, ty_b_max(g, squares, ty_b_full_like(g, squares, 1e-14))));
}

/* x as [batch, rest, summed] or, for the second one, [batch, summed, rest]; `rest` gets the dims that stay. */
static ty_val merge_matrix(ty_graph *g, ty_val x, int axis, bool second, int64_t *rest, int *n_rest)
{
    const ty_type t = *ty_graph_type(g, x);
    int64_t perm[TY_MAX_RANK] = {0}, dim[3] = {t.dim[0], 1, 1};
    int n = 1;
    if (second)
        perm[n++] = axis;
    for (int i = 1; i < t.rank; i++)
        if (i != axis) {
            perm[n++] = i;
            rest[(*n_rest)++] = t.dim[i];
            dim[second ? 2 : 1] *= t.dim[i];
        }
    if (!second)
        perm[n++] = axis;
    dim[second ? 1 : 2] = t.dim[axis];
    return ty_b_reshape(g, ty_b_transpose(g, x, perm), 3, dim);
}

void keras_call_dot(keras_call *c)
{
    ty_graph *g = c->g;
    int64_t axes[2], rest[2 * TY_MAX_RANK];
    int a, b, n = 1;
    if (c->n_in != 2 || !keras_ints(c, "axes", 2, -1, axes)) {
        keras_fail(c, TY_E_MODEL_FILE, "takes 2 tensors, found %d", c->n_in);
        return;
    }
    ty_val x = keras_float(c, c->in[0]), y = keras_float(c, c->in[1]);
    if (!keras_axis(c, axes[0], ty_b_rank(g, x), &a) || !keras_axis(c, axes[1], ty_b_rank(g, y), &b))
        return;
    if (a == 0 || b == 0 || ty_b_dim(g, x, a) != ty_b_dim(g, y, b) ||
        ty_b_rank(g, x) + ty_b_rank(g, y) > TY_MAX_RANK + 2) {
        keras_fail_key(c, "axes", "axes behind the batch, of one size");
        return;
    }
    if (keras_flag(c, "normalize", false)) {
        x = merge_unit(g, x, a);
        y = merge_unit(g, y, b);
    }
    if (x == TY_NONE || y == TY_NONE)
        return;
    rest[0] = ty_b_dim(g, x, 0);
    x = merge_matrix(g, x, a, false, rest, &n);
    y = merge_matrix(g, y, b, true, rest, &n);
    if (n == 1)
        rest[n++] = 1;
    keras_set(c, 0, ty_b_reshape(g, ty_b_matmul(g, x, y), n, rest));
}
