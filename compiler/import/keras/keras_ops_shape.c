/* keras_ops_shape.c - operations that move values: shapes, joining and cutting, padding, repetition, triangles. */
#include "compiler/import/keras/keras_ops.h"

#include <string.h>

/* ---- shapes
 * ---------------------------------------------------------------------------------------------------------- */

/* The list under a key with null as -1; -1: failed. */
static int shape_read(keras_call *c, const char *key, int64_t *dim)
{
    const ty_doc *d = keras_config(c, key);
    int n = d && d->kind == TY_DOC_LIST ? (int)d->n_items : d && d->kind == TY_DOC_INT ? 1 : -1;
    if (n < 0 || n > TY_MAX_RANK) {
        keras_fail_key(c, key, "must be a list of at most %d numbers", TY_MAX_RANK);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        const ty_doc *item = d->kind == TY_DOC_LIST ? ty_doc_at(d, (size_t)i) : d;
        dim[i] = -1;
        if (item->kind != TY_DOC_NULL && (item->kind != TY_DOC_INT || item->integer < -1)) {
            keras_fail_key(c, key, "must have whole numbers of at least -1");
            return -1;
        }
        if (item->kind == TY_DOC_INT)
            dim[i] = item->integer;
    }
    return n;
}

void keras_op_reshape(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t dim[TY_MAX_RANK], known = 1;
    int free = -1, n = x == TY_NONE ? -1 : shape_read(c, "newshape", dim);
    if (n < 0)
        return;
    int64_t elems = ty_type_elems(ty_graph_type(c->g, x));
    for (int i = 0; i < n; i++) {
        if (dim[i] < 0 && free >= 0) {
            keras_fail_key(c, "newshape", "must leave at most one number open");
            return;
        }
        if (dim[i] < 0)
            free = i;
        else if (__builtin_mul_overflow(known, dim[i], &known))
            known = 0;
    }
    if (free >= 0)
        dim[free] = known > 0 ? elems / known : 0;
    if (ty_dims_elems_checked(n, dim, 1) != elems) {
        keras_fail_key(c, "newshape", "does not fit %lld elements", (long long)elems);
        return;
    }
    keras_set(c, 0, ty_b_reshape(c->g, x, n, dim));
}

/* Open numbers take the dims of x, counted from the end. */
void keras_op_broadcast_to(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t dim[TY_MAX_RANK];
    int n = x == TY_NONE ? -1 : shape_read(c, "shape", dim), rank = ty_b_rank(c->g, x);
    for (int i = 0; i < n; i++)
        if (dim[i] < 0)
            dim[i] = i >= n - rank ? ty_b_dim(c->g, x, i - (n - rank)) : 1;
    if (n >= 0)
        keras_set(c, 0, ty_b_broadcast(c->g, x, n, dim));
}

void keras_op_expand_dims(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t axes[TY_MAX_RANK];
    int n = keras_list(c, "axis", TY_MAX_RANK, axes), rank = ty_b_rank(c->g, x) + n, axis;
    uint32_t fresh = 0;
    if (x == TY_NONE || c->failed)
        return;
    if (n < 1 || rank > TY_MAX_RANK) {
        keras_fail_key(c, "axis", "must give a result of at most %d axes", TY_MAX_RANK);
        return;
    }
    for (int i = 0; i < n; i++)
        if (keras_axis(c, axes[i], rank, &axis))
            fresh |= 1u << axis;
    for (int i = 0; i < rank && !c->failed; i++)
        x = fresh >> i & 1 ? ty_b_unsqueeze(c->g, x, i) : x;
    keras_set(c, 0, x);
}

void keras_op_squeeze(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int rank = ty_b_rank(c->g, x);
    uint32_t axes;
    if (x == TY_NONE || !keras_op_axes(c, "axis", rank, &axes))
        return;
    for (int i = rank - 1; i >= 0; i--) {
        bool thin = ty_b_dim(c->g, x, i) == 1, named = keras_config(c, "axis") != NULL;
        if ((axes >> i & 1) && !thin && named) {
            keras_fail_key(c, "axis", "must name axes of one element; axis %d has %lld", i,
                           (long long)ty_b_dim(c->g, x, i));
            return;
        }
        if ((axes >> i & 1) && thin)
            x = ty_b_squeeze(c->g, x, i);
    }
    keras_set(c, 0, x);
}

static void set_permuted(keras_call *c, ty_val x, const int64_t *perm)
{
    uint32_t seen = 0;
    int rank = ty_b_rank(c->g, x);
    for (int i = 0; i < rank; i++)
        seen |= 1u << perm[i];
    if (seen == (1u << rank) - 1)
        keras_set(c, 0, ty_b_transpose(c->g, x, perm));
    else
        keras_fail(c, TY_E_ATTRIBUTE, "%s: the axes are not an order of %d axes", c->layer->class_name, rank);
}

void keras_op_transpose(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t perm[TY_MAX_RANK];
    int n = keras_list(c, "axes", TY_MAX_RANK, perm), rank = ty_b_rank(c->g, x), axis;
    if (x == TY_NONE || c->failed)
        return;
    if (n >= 0 && n != rank) {
        keras_fail_key(c, "axes", "must have %d numbers", rank);
        return;
    }
    for (int i = 0; i < rank && !c->failed; i++) {
        if (n >= 0 && keras_axis(c, perm[i], rank, &axis))
            perm[i] = axis;
        else if (n < 0)
            perm[i] = rank - 1 - i;
    }
    if (!c->failed)
        set_permuted(c, x, perm);
}

void keras_op_swapaxes(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t perm[TY_MAX_RANK];
    int a, b, rank = ty_b_rank(c->g, x);
    if (x == TY_NONE || !keras_axis(c, keras_int(c, "axis1", 0), rank, &a) ||
        !keras_axis(c, keras_int(c, "axis2", 1), rank, &b))
        return;
    for (int i = 0; i < rank; i++)
        perm[i] = i == a ? b : i == b ? a : i;
    set_permuted(c, x, perm);
}

void keras_op_moveaxis(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t from[TY_MAX_RANK], to[TY_MAX_RANK], perm[TY_MAX_RANK];
    int n = keras_list(c, "source", TY_MAX_RANK, from), rank = ty_b_rank(c->g, x), a, b;
    uint32_t taken = 0, placed = 0;
    if (x == TY_NONE || n < 0 || keras_list(c, "destination", TY_MAX_RANK, to) != n) {
        if (!c->failed)
            keras_fail_key(c, "destination", "must have as many axes as the source");
        return;
    }
    for (int i = 0; i < n; i++) {
        if (!keras_axis(c, from[i], rank, &a) || !keras_axis(c, to[i], rank, &b))
            return;
        perm[b] = a;
        taken |= 1u << a;
        placed |= 1u << b;
    }
    for (int i = 0, next = 0; i < rank; i++) {
        if (placed >> i & 1)
            continue;
        while (taken >> next & 1)
            next++;
        perm[i] = next < rank ? next++ : 0;
    }
    set_permuted(c, x, perm);
}

void keras_op_ravel(keras_call *c)
{
    keras_set(c, 0, ty_b_flatten(c->g, keras_op_in(c, 0, "x")));
}

/* ---- joining, cutting
 * ------------------------------------------------------------------------------------------------ */

void keras_op_concatenate(keras_call *c)
{
    ty_val *x;
    int axis, n = keras_op_list(c, keras_argument(c, 0, "xs"), &x);
    if (n > 0 && keras_axis(c, keras_int(c, "axis", 0), ty_b_rank(c->g, x[0]), &axis))
        keras_set(c, 0, ty_b_concat_many(c->g, x, n, axis));
}

void keras_op_append(keras_call *c)
{
    ty_val a, b;
    int axis;
    if (!keras_op_pair(c, false, &a, &b) || !keras_op_axis(c, "axis", 0, ty_b_rank(c->g, a), &axis))
        return;
    if (axis < 0) {
        a = ty_b_flatten(c->g, a);
        b = ty_b_flatten(c->g, b);
        axis = 0;
    }
    keras_set(c, 0, ty_b_concat(c->g, (ty_val[]){a, b}, 2, axis));
}

void keras_op_stack(keras_call *c)
{
    ty_val *x;
    int axis, n = keras_op_list(c, keras_argument(c, 0, "x"), &x);
    if (n < 1 || !keras_axis(c, keras_int(c, "axis", 0), ty_b_rank(c->g, x[0]) + 1, &axis))
        return;
    for (int i = 0; i < n; i++)
        x[i] = ty_b_unsqueeze(c->g, x[i], axis);
    keras_set(c, 0, ty_b_concat_many(c->g, x, n, axis));
}

/* Hstack, Vstack, Dstack; arg: the axis, to which values get enough axes. */
void keras_op_stack_along(keras_call *c)
{
    ty_val *x;
    int axis = c->layer->op->arg, n = keras_op_list(c, keras_argument(c, 0, "xs"), &x);
    for (int i = 0; i < n; i++) {
        if (ty_b_rank(c->g, x[i]) < 1)
            x[i] = ty_b_flatten(c->g, x[i]);
        if (axis != 1 && ty_b_rank(c->g, x[i]) < 2)
            x[i] = ty_b_unsqueeze(c->g, x[i], 0);
        if (axis == 2 && ty_b_rank(c->g, x[i]) < 3)
            x[i] = ty_b_unsqueeze(c->g, x[i], 2);
    }
    if (n > 0)
        keras_set(c, 0, ty_b_concat_many(c->g, x, n, axis == 1 && ty_b_rank(c->g, x[0]) == 1 ? 0 : axis));
}

static void set_parts(keras_call *c, ty_val x, int axis, const int64_t *at, int n)
{
    int64_t len = ty_b_dim(c->g, x, axis);
    for (int i = 0; i <= n; i++) {
        int64_t lo = i == 0 ? 0 : at[i - 1], hi = i == n ? len : at[i];
        lo = lo < 0 ? lo + len : lo > len ? len : lo;
        hi = hi < 0 ? hi + len : hi > len ? len : hi;
        keras_set(c, i, ty_b_slice_axis(c->g, x, axis, lo < 0 ? 0 : lo, hi < lo ? lo : hi));
    }
}

void keras_op_split(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t at[KERAS_MAX_OUTPUTS];
    const ty_doc *given = keras_config(c, "indices_or_sections");
    int axis, n = keras_list(c, "indices_or_sections", KERAS_MAX_OUTPUTS - 1, at);
    if (x == TY_NONE || n < 0 || !keras_axis(c, keras_int(c, "axis", 0), ty_b_rank(c->g, x), &axis))
        return;
    if (given->kind == TY_DOC_INT) {
        int64_t parts = at[0], len = ty_b_dim(c->g, x, axis);
        if (parts < 1 || parts > KERAS_MAX_OUTPUTS || len % parts) {
            keras_fail_key(c, "indices_or_sections", "must divide the %lld elements of the axis", (long long)len);
            return;
        }
        n = (int)parts - 1;
        for (int i = 0; i < n; i++)
            at[i] = (i + 1) * (len / parts);
    }
    set_parts(c, x, axis, at, n);
}

void keras_op_unstack(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int axis;
    if (x == TY_NONE || !keras_axis(c, keras_int(c, "axis", 0), ty_b_rank(c->g, x), &axis))
        return;
    int64_t n = ty_b_dim(c->g, x, axis);
    if (n > KERAS_MAX_OUTPUTS || n < 1) {
        keras_fail(c, TY_E_LIMIT, "Unstack: an axis of %lld; 1 to %d are possible", (long long)n, KERAS_MAX_OUTPUTS);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        keras_set(c, (int)i, ty_b_squeeze(c->g, ty_b_slice_axis(c->g, x, axis, i, i + 1), axis));
}

/* ---- repetition
 * ------------------------------------------------------------------------------------------------------- */

/* Axis `axis` n times in a row: whole (tile) or element by element. */
static ty_val repeated(ty_graph *g, ty_val x, int axis, int64_t n, bool elements)
{
    const ty_type t = *ty_graph_type(g, x);
    int64_t dim[TY_MAX_RANK + 1], fresh = axis + (elements ? 1 : 0), out[TY_MAX_RANK];
    if (n == 1)
        return x;
    if (t.rank == TY_MAX_RANK)
        return ty_graph_fail(g, TY_E_LIMIT, "repetition of a value of %d axes", TY_MAX_RANK);
    memcpy(out, t.dim, sizeof out);
    if (__builtin_mul_overflow(out[axis], n, &out[axis]))
        return ty_graph_fail(g, TY_E_LIMIT, "%lld repetitions", (long long)n);
    for (int i = 0, k = 0; i <= t.rank; i++)
        dim[i] = i == fresh ? n : t.dim[k++];
    x = ty_b_broadcast(g, ty_b_unsqueeze(g, x, (int)fresh), t.rank + 1, dim);
    return ty_b_reshape(g, x, t.rank, out);
}

void keras_op_tile(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t times[TY_MAX_RANK];
    int n = keras_list(c, "repeats", TY_MAX_RANK, times);
    if (x == TY_NONE || n < 0)
        return;
    while (ty_b_rank(c->g, x) < n)
        x = ty_b_unsqueeze(c->g, x, 0);
    int rank = ty_b_rank(c->g, x);
    for (int i = 0; i < n && x != TY_NONE; i++) {
        if (times[i] < 0) {
            keras_fail_key(c, "repeats", "must not be negative");
            return;
        }
        x = repeated(c->g, x, rank - n + i, times[i], false);
    }
    keras_set(c, 0, x);
}

void keras_op_repeat(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t n = keras_int(c, "repeats", 1);
    int axis;
    if (x == TY_NONE || c->failed || !keras_op_axis(c, "axis", 0, ty_b_rank(c->g, x), &axis))
        return;
    if (n < 0) {
        keras_fail_key(c, "repeats", "must not be negative");
        return;
    }
    if (axis < 0)
        x = ty_b_flatten(c->g, x);
    keras_set(c, 0, repeated(c->g, x, axis < 0 ? 0 : axis, n, true));
}

static ty_val rolled(ty_graph *g, ty_val x, int axis, int64_t shift)
{
    int64_t len = ty_b_dim(g, x, axis), at = len ? ((-shift) % len + len) % len : 0;
    if (at == 0)
        return x;
    ty_val part[] = {ty_b_slice_axis(g, x, axis, at, len), ty_b_slice_axis(g, x, axis, 0, at)};
    return ty_b_concat(g, part, 2, axis);
}

void keras_op_roll(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    int64_t shift[TY_MAX_RANK], axes[TY_MAX_RANK];
    int n = keras_list(c, "shift", TY_MAX_RANK, shift), m = keras_list(c, "axis", TY_MAX_RANK, axes), axis;
    if (x == TY_NONE || c->failed || n < 1)
        return;
    if (m < 0) {
        const ty_type t = *ty_graph_type(c->g, x);
        keras_set(c, 0, ty_b_reshape(c->g, rolled(c->g, ty_b_flatten(c->g, x), 0, shift[0]), t.rank, t.dim));
        return;
    }
    for (int i = 0; i < m; i++)
        if (keras_axis(c, axes[i], ty_b_rank(c->g, x), &axis))
            x = rolled(c->g, x, axis, shift[n == m ? i : 0]);
    keras_set(c, 0, x);
}

/* arg: -1: axes of the configuration; else that axis. */
void keras_op_flip(keras_call *c)
{
    ty_val x = keras_op_in(c, 0, "x");
    uint32_t axes = 1u << (c->layer->op->arg < 0 ? 0 : c->layer->op->arg);
    if (x != TY_NONE && (c->layer->op->arg >= 0 || keras_op_axes(c, "axis", ty_b_rank(c->g, x), &axes)))
        keras_set(c, 0, ty_b_reverse(c->g, x, axes));
}

/* ---- padding
 * --------------------------------------------------------------------------------------------------------- */

/* pad_width: n, [n, m], or a pair for every axis. */
static bool pad_read(keras_call *c, int rank, int64_t *lo, int64_t *hi)
{
    const ty_doc *d = keras_config(c, "pad_width");
    for (int i = 0; i < rank; i++) {
        const ty_doc *first = ty_doc_at(d, 0),
                     *pair = first && first->kind == TY_DOC_LIST ? ty_doc_at(d, ty_doc_len(d) == 1 ? 0 : (size_t)i) : d;
        const ty_doc *a = pair && pair->kind == TY_DOC_LIST ? ty_doc_at(pair, 0) : pair;
        const ty_doc *b = ty_doc_len(pair) > 1 ? ty_doc_at(pair, 1) : a;
        if (!a || !b || a->kind != TY_DOC_INT || b->kind != TY_DOC_INT || a->integer < 0 || b->integer < 0) {
            keras_fail_key(c, "pad_width", "must be numbers of at least 0, a pair for each of %d axes", rank);
            return false;
        }
        lo[i] = a->integer;
        hi[i] = b->integer;
    }
    return true;
}

/* The mirror image in front of and behind an axis; with the edge in it (symmetric) or not (reflect). */
static ty_val mirrored(ty_graph *g, ty_val x, int axis, int64_t lo, int64_t hi, bool edge)
{
    int64_t len = ty_b_dim(g, x, axis), skip = edge ? 0 : 1;
    ty_val part[3];
    int n = 0;
    if (lo > len - skip || hi > len - skip)
        return ty_graph_fail(g, TY_E_SHAPE, "padding of %lld and %lld mirrors more than an axis of %lld", (long long)lo,
                             (long long)hi, (long long)len);
    if (lo > 0)
        part[n++] = ty_b_reverse(g, ty_b_slice_axis(g, x, axis, skip, lo + skip), 1u << axis);
    part[n++] = x;
    if (hi > 0)
        part[n++] = ty_b_reverse(g, ty_b_slice_axis(g, x, axis, len - hi - skip, len - skip), 1u << axis);
    return ty_b_concat_many(g, part, n, axis);
}

void keras_op_pad(keras_call *c)
{
    static const char *const modes[] = {"constant", "reflect", "symmetric", NULL};
    ty_val x = keras_op_in(c, 0, "x");
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK];
    int rank = ty_b_rank(c->g, x), mode = keras_choice(c, "mode", "constant", modes);
    if (x == TY_NONE || c->failed || !pad_read(c, rank, lo, hi))
        return;
    const keras_arg *value = keras_argument(c, 1, "constant_values");
    double fill = value && value->kind == KERAS_FLOAT ? value->number : 0;
    if (value && value->kind == KERAS_INT)
        fill = (double)value->integer;
    if (value && value->kind != KERAS_INT && value->kind != KERAS_FLOAT)
        keras_fail(c, TY_E_UNSUPPORTED, "Pad: constant_values must be a number");
    else if (mode == 0)
        keras_set(c, 0, ty_b_pad(c->g, x, lo, hi, fill));
    for (int i = 0; i < rank && mode != 0 && x != TY_NONE; i++)
        x = lo[i] + hi[i] ? mirrored(c->g, x, i, lo[i], hi[i], mode == 2) : x;
    if (mode != 0)
        keras_set(c, 0, x);
}

/* ---- triangles
 * --------------------------------------------------------------------------------------------------------- */

/* arg 1: above the diagonal k, with it; 0: below. */
void keras_op_triangle(keras_call *c)
{
    ty_graph *g = c->g;
    ty_val x = keras_op_in(c, 0, "x");
    int rank = ty_b_rank(g, x);
    if (x == TY_NONE)
        return;
    if (rank < 2) {
        keras_fail(c, TY_E_SHAPE, "%s: expected at least 2 dimensions", c->layer->class_name);
        return;
    }
    int64_t dim[] = {ty_b_dim(g, x, rank - 2), ty_b_dim(g, x, rank - 1)};
    ty_type plane = ty_type_make(TY_I64, 2, dim);
    ty_val j = ty_b_iota(g, plane, 1), i = ty_b_add_s(g, ty_b_iota(g, plane, 0), (double)keras_int(c, "k", 0));
    ty_val inside = c->layer->op->arg ? ty_b_le(g, i, j) : ty_b_le(g, j, i);
    keras_set(c, 0, ty_b_select(g, inside, x, ty_b_full_like(g, x, 0)));
}
