/* layout.c - convolutions and pools work on channels-last tensors, and what lies between them follows.
 *
 * Convolution is fast where the channels of a position lie side by side, and so is what surrounds it: scales and biases
 * are vectors along the fastest axis, a convolution of 1 x 1 is a plain product. Models say [N, C, spatial..]. So each
 * value of the old graph is represented here by a value of the new one and a permutation: axis i of the new value is
 * axis perm[i] of the old one. Convolutions and pools yield channels-last values; elementwise ops, reductions and
 * movements take a permuted operand as it is and pass the permutation on, renaming their axes; a transpose in the model
 * only changes the permutation. All other ops get their operands in the order that they were written for. So a
 * transposition is left at the borders alone: where a batch comes in, where a plane is flattened for a product.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/ops/expect.h"
#include "compiler/ops/op.h"
#include "compiler/ops/sliding.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/turns.h"

#include <stdlib.h>
#include <string.h>

#define LAYOUT_MIN_CHANNELS 4 /* a pool over fewer has nothing to gain */

typedef struct layout_perm {
    int64_t axis[TY_MAX_RANK]; /* entries from the rank on are the identity's */
} layout_perm;

typedef struct layout_pass {
    ty_clone clone;
    layout_perm *perm; /* by value of the old graph: how clone.map's value relates to it */
    bool has_conv;
    const uint8_t *turn; /* by node: the transposes that it takes out, and no more (turns.h); NULL: it makes its own */
    bool gpu;            /* weights are channels-last too, and gradients of weights have the type of what they are of */
    bool float32;        /* on a GPU: convolutions of float32 too */
} layout_pass;

/* ---- permutations ---- */

static layout_perm layout_identity(void)
{
    layout_perm p;
    for (int i = 0; i < TY_MAX_RANK; i++)
        p.axis[i] = i;
    return p;
}

static bool layout_equal(const layout_perm *a, const layout_perm *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* [N, spatial.., C] of [N, C, spatial..] */
static layout_perm layout_last(int rank)
{
    layout_perm p = layout_identity();
    for (int i = 1; i + 1 < rank; i++)
        p.axis[i] = i + 1;
    p.axis[rank - 1] = 1;
    return p;
}

static layout_perm layout_inverse(const layout_perm *p)
{
    layout_perm inverse = layout_identity();
    for (int i = 0; i < TY_MAX_RANK; i++)
        inverse.axis[p->axis[i]] = i;
    return inverse;
}

static bool layout_is_moved(const layout_pass *p, ty_val old)
{
    layout_perm identity = layout_identity();
    return old != TY_NONE && !layout_equal(&p->perm[old], &identity);
}

static const ty_type *layout_old_type(const layout_pass *p, ty_val old)
{
    return ty_graph_type(p->clone.from, old);
}

/* The dims of an old type in another order. */
static ty_type layout_permuted(const ty_type *t, const layout_perm *perm)
{
    ty_type to = *t;
    for (int i = 0; i < t->rank; i++)
        to.dim[i] = t->dim[perm->axis[i]];
    return to;
}

static void layout_permute_list(int64_t *list, int rank, const layout_perm *perm)
{
    int64_t old[TY_MAX_RANK];
    memcpy(old, list, sizeof old);
    for (int i = 0; i < rank; i++)
        list[i] = old[perm->axis[i]];
}

static uint32_t layout_permute_axes(uint32_t axes, int rank, const layout_perm *perm)
{
    uint32_t to = 0;
    for (int i = 0; i < rank; i++)
        to |= (axes >> perm->axis[i] & 1) << i;
    return to;
}

static int64_t layout_axis(int64_t old_axis, const layout_perm *perm)
{
    return layout_inverse(perm).axis[old_axis];
}

/* ---- values ---- */

/* An old value with its axes in the order `want`. What is stretched is permuted before, so that a scale stays a vector
 * and a number a number. */
static ty_val layout_get(layout_pass *p, ty_val old, const layout_perm *want)
{
    if (old == TY_NONE)
        return TY_NONE;
    const ty_graph *from = p->clone.from;
    const layout_perm *have = &p->perm[old];
    if (layout_equal(have, want))
        return p->clone.map[old];
    if (ty_graph_op(from, ty_val_node(old)) == TY_OP_BROADCAST) {
        ty_type to = layout_permuted(ty_graph_type(from, old), want);
        ty_val narrow = layout_get(p, ty_graph_in(from, ty_val_node(old), 0), want);
        return ty_b_broadcast(p->clone.to, narrow, to.rank, to.dim);
    }
    layout_perm at = layout_inverse(have), move = layout_identity();
    for (int i = 0; i < TY_MAX_RANK; i++)
        move.axis[i] = at.axis[want->axis[i]];
    return ty_b_transpose(p->clone.to, p->clone.map[old], move.axis);
}

static ty_val layout_plain(layout_pass *p, ty_val old)
{
    layout_perm identity = layout_identity();
    return layout_get(p, old, &identity);
}

/* True if the axes longer than 1 are in the old order: dims of 1 can stand anywhere. */
static bool layout_is_in_order(const ty_type *t, const layout_perm *perm)
{
    int64_t before = -1;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[perm->axis[i]] == 1)
            continue;
        if (perm->axis[i] < before)
            return false;
        before = perm->axis[i];
    }
    return true;
}

static void layout_set(layout_pass *p, ty_val old, ty_val fresh, const layout_perm *perm)
{
    const ty_type *t = layout_old_type(p, old);
    bool settled = layout_is_in_order(t, perm);
    p->clone.map[old] = settled ? ty_b_reshape(p->clone.to, fresh, t->rank, t->dim) : fresh;
    p->perm[old] = settled ? layout_identity() : *perm;
}

/* ---- the ops: true if the node was carried over ---- */

typedef bool layout_fn(layout_pass *p, uint32_t id);

static ty_val layout_in(const layout_pass *p, uint32_t id, int i)
{
    return ty_graph_in(p->clone.from, id, i);
}

/* The order of the first permuted input; false if there is none. */
static bool layout_lead(const layout_pass *p, uint32_t id, layout_perm *perm)
{
    for (uint32_t i = 0; i < ty_graph_node(p->clone.from, id)->n_in; i++)
        if (layout_is_moved(p, layout_in(p, id, (int)i))) {
            *perm = p->perm[layout_in(p, id, (int)i)];
            return true;
        }
    return false;
}

/* Emits the op on all inputs in one order; the result has that order too. */
static void layout_emit(layout_pass *p, uint32_t id, const ty_attr *attr, const layout_perm *perm)
{
    ty_graph *g = p->clone.to;
    uint32_t n = ty_graph_node(p->clone.from, id)->n_in;
    ty_val *in = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, n);
    for (uint32_t i = 0; i < n; i++)
        in[i] = layout_get(p, layout_in(p, id, (int)i), perm);
    ty_op op = ty_graph_op(p->clone.from, id);
    layout_set(p, ty_val_make(id, 0), ty_graph_emit(g, op, attr, in, (int)n), perm);
}

static bool layout_elementwise(layout_pass *p, uint32_t id)
{
    layout_perm perm;
    if (!layout_lead(p, id, &perm))
        return false;
    layout_emit(p, id, ty_graph_attr(p->clone.from, id), &perm);
    return true;
}

/* Broadcast, slice, pad, reverse, concat, softmax: attributes by axis. */
static bool layout_by_axis(layout_pass *p, uint32_t id)
{
    layout_perm perm;
    if (!layout_lead(p, id, &perm))
        return false;
    ty_attr attr = *ty_graph_attr(p->clone.from, id);
    int rank = layout_old_type(p, ty_val_make(id, 0))->rank;
    switch (ty_graph_op(p->clone.from, id)) {
    case TY_OP_BROADCAST:
        attr.type = layout_permuted(&attr.type, &perm);
        break;
    case TY_OP_CONCAT:
    case TY_OP_SOFTMAX:
        attr.axis = layout_axis(attr.axis, &perm);
        break;
    case TY_OP_REVERSE:
        attr.axes = layout_permute_axes(attr.axes, rank, &perm);
        break;
    default:
        layout_permute_list(attr.lo, rank, &perm);
        layout_permute_list(attr.hi, rank, &perm);
        layout_permute_list(attr.step, rank, &perm);
    }
    layout_emit(p, id, &attr, &perm);
    return true;
}

static bool layout_transpose(layout_pass *p, uint32_t id)
{
    ty_val x = layout_in(p, id, 0);
    int rank = layout_old_type(p, x)->rank;
    if (!layout_is_moved(p, x) && !(p->turn && p->turn[id]))
        return false;
    layout_perm by = layout_identity(), to = layout_identity();
    for (int i = 0; i < rank; i++)
        by.axis[i] = ty_graph_attr(p->clone.from, id)->lo[i];
    by = layout_inverse(&by);
    for (int i = 0; i < TY_MAX_RANK; i++)
        to.axis[i] = by.axis[p->perm[x].axis[i]];
    layout_set(p, ty_val_make(id, 0), p->clone.map[x], &to);
    return true;
}

static bool layout_reduce(layout_pass *p, uint32_t id)
{
    ty_val x = layout_in(p, id, 0);
    if (!layout_is_moved(p, x))
        return false;
    ty_attr attr = *ty_graph_attr(p->clone.from, id);
    layout_perm perm = p->perm[x], kept = layout_identity();
    int rank = layout_old_type(p, x)->rank, n = 0;
    for (int i = 0; i < rank; i++)
        if (!(attr.axes >> perm.axis[i] & 1)) /* its number among the axes that stay */
            kept.axis[n++] =
                perm.axis[i] - __builtin_popcount(attr.axes & ((1u << perm.axis[i]) - 1)); /* those removed in front */
    attr.axes = layout_permute_axes(attr.axes, rank, &perm);
    ty_val y = ty_graph_emit(p->clone.to, TY_OP_REDUCE, &attr, &p->clone.map[x], 1);
    layout_set(p, ty_val_make(id, 0), y, &kept);
    return true;
}

/* A reshape splits and joins groups of neighbouring axes: source axes [from, from + n_from), dims of 1 left out, become
 * [to, to + n_to). */
typedef struct layout_group {
    int from, n_from, to, n_to;
} layout_group;

/* The axes of t that are longer than 1. */
static int layout_long_axes(const ty_type *t, int *axis)
{
    int n = 0;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != 1)
            axis[n++] = i;
    return n;
}

/* The groups of a reshape in order; -1 if there are empty dims. */
static int layout_groups(const ty_type *x, const int *from, int n_from, const ty_type *y, const int *to, int n_to,
                         layout_group *group)
{
    int n = 0;
    if (ty_type_elems(x) == 0)
        return -1;
    for (int i = 0, k = 0; i < n_from; n++) {
        group[n] = (layout_group){i, 1, k, 1};
        int64_t a = x->dim[from[i++]], b = y->dim[to[k++]];
        while (a != b) {
            if (a < b)
                a *= x->dim[from[i++]], group[n].n_from++;
            else
                b *= y->dim[to[k++]], group[n].n_to++;
        }
    }
    (void)n_to;
    return n;
}

/* Takes the groups in the order in which the permuted operand has them; false if one is torn. The result's order: long
 * axes as they come, then dims of 1. */
static bool layout_regroup(const layout_perm *have, const ty_type *x, const ty_type *y, layout_perm *perm)
{
    int from[TY_MAX_RANK], to[TY_MAX_RANK], n = 0;
    layout_group group[TY_MAX_RANK];
    int n_from = layout_long_axes(x, from), n_to = layout_long_axes(y, to);
    int n_groups = layout_groups(x, from, n_from, y, to, n_to, group);
    if (n_groups < 0)
        return false;
    int place[TY_MAX_RANK], at = 0; /* of each old axis among the long ones, and how many were seen */
    for (int i = 0; i < n_from; i++)
        place[from[i]] = i;
    for (int i = 0; i < x->rank;) {
        if (x->dim[have->axis[i]] == 1) {
            i++;
            continue;
        }
        int g = 0;
        while (g < n_groups && group[g].from != place[have->axis[i]])
            g++;
        if (g == n_groups)
            return false;
        for (int k = 0; k < group[g].n_from; i++) {
            if (i == x->rank)
                return false;
            if (x->dim[have->axis[i]] != 1 && place[have->axis[i]] != group[g].from + k++)
                return false;
        }
        for (int k = 0; k < group[g].n_to; k++)
            perm->axis[n++] = to[group[g].to + k];
        at += group[g].n_from;
    }
    for (int i = 0; i < y->rank; i++)
        if (y->dim[i] == 1)
            perm->axis[n++] = i;
    return at == n_from;
}

static bool layout_reshape(layout_pass *p, uint32_t id)
{
    ty_val x = layout_in(p, id, 0);
    const ty_type *y = layout_old_type(p, ty_val_make(id, 0));
    layout_perm perm = layout_identity();
    if (!layout_is_moved(p, x) || !layout_regroup(&p->perm[x], layout_old_type(p, x), y, &perm))
        return false;
    ty_type to = layout_permuted(y, &perm);
    layout_set(p, ty_val_make(id, 0), ty_b_reshape(p->clone.to, p->clone.map[x], to.rank, to.dim), &perm);
    return true;
}

/* gather(x, i) and scatter(x, i, u) by a list of indices: one axis in, one out. */
static bool layout_index(layout_pass *p, uint32_t id)
{
    const ty_graph *from = p->clone.from;
    ty_val index = layout_in(p, id, 1), in[3];
    int n_in = (int)ty_graph_node(from, id)->n_in;
    layout_perm perm;
    if (layout_old_type(p, index)->rank != 1 || !layout_lead(p, id, &perm))
        return false;
    ty_attr attr = *ty_graph_attr(from, id);
    attr.axis = layout_axis(attr.axis, &perm);
    for (int i = 0; i < n_in; i++)
        in[i] = i == 1 ? layout_plain(p, index) : layout_get(p, layout_in(p, id, i), &perm);
    layout_set(p, ty_val_make(id, 0), ty_graph_emit(p->clone.to, ty_graph_op(from, id), &attr, in, n_in), &perm);
    return true;
}

/* ---- windows ---- */

static bool layout_takes_window(const layout_pass *p, uint32_t id)
{
    const ty_type *t = layout_old_type(p, layout_in(p, id, 0));
    return p->has_conv && !p->turn && ty_wide_dtype((ty_dtype)t->dtype) == TY_F32 &&
           !(ty_graph_attr(p->clone.from, id)->flags & TY_SLIDING_LAST);
}

/* On a GPU tensor cores want channels-last; without them, in float32, cuDNN has kernels for channels-first alone, and
 * would turn both ways. */
static bool layout_takes_conv(const layout_pass *p, uint32_t id)
{
    const ty_type *t = ty_graph_type(p->clone.from, ty_graph_in(p->clone.from, id, 0));
    return !p->gpu || p->float32 || t->dtype != TY_F32;
}

static bool layout_pool(layout_pass *p, uint32_t id)
{
    const ty_graph *from = p->clone.from;
    const ty_node *node = ty_graph_node(from, id);
    ty_op op = (ty_op)node->op;
    const ty_type *t = layout_old_type(p, layout_in(p, id, 0));
    if (!layout_takes_window(p, id) || t->dim[1] < LAYOUT_MIN_CHANNELS)
        return false;
    ty_attr attr = *ty_graph_attr(from, id);
    ty_val in[2] = {TY_NONE, TY_NONE};
    layout_perm last = layout_last(t->rank);
    int n_in = (int)node->n_in, n_res = node->n_res;
    attr.flags |= TY_SLIDING_LAST;
    if (op == TY_OP_POOL_MAX_GRAD || op == TY_OP_POOL_SUM_GRAD)
        attr.type = layout_permuted(&attr.type, &last);
    for (int i = 0; i < n_in; i++)
        in[i] = layout_get(p, layout_in(p, id, i), &last);
    ty_val y = ty_graph_emit(p->clone.to, op, &attr, in, n_in);
    for (int r = 0; r < n_res && y != TY_NONE; r++)
        layout_set(p, ty_val_make(id, (uint32_t)r), ty_val_make(ty_val_node(y), (uint32_t)r), &last);
    return true;
}

/* The old types of x, w and y of a convolution or one of its gradients. */
typedef struct layout_conv_types {
    const ty_type *x, *w, *y;
} layout_conv_types;

static layout_conv_types layout_types_of(const layout_pass *p, uint32_t id)
{
    const ty_type *a = layout_old_type(p, layout_in(p, id, 0)), *b = layout_old_type(p, layout_in(p, id, 1));
    const ty_type *res = layout_old_type(p, ty_val_make(id, 0));
    switch (ty_graph_op(p->clone.from, id)) {
    case TY_OP_CONV:
        return (layout_conv_types){a, b, res};
    case TY_OP_CONV_DX:
        return (layout_conv_types){res, b, a};
    default:
        return (layout_conv_types){a, res, b};
    }
}

/* Windows of one element: a product of [positions, C] with the weights [O, C]. */
static bool layout_is_product(const ty_attr *attr, const ty_type *w)
{
    bool product = attr->groups == 1;
    for (uint32_t i = 0; i < attr->n; i++)
        product &= w->dim[2 + i] == 1 && attr->lo[i] == 0 && attr->hi[i] == 0;
    return product;
}

static bool layout_is_strided(const ty_attr *attr)
{
    bool strided = false;
    for (uint32_t i = 0; i < attr->n; i++)
        strided |= attr->step[i] != 1;
    return strided;
}

/* x or y as a matrix [positions, channels]. */
static ty_val layout_matrix(layout_pass *p, ty_val old)
{
    const ty_type *t = layout_old_type(p, old);
    layout_perm last = layout_last(t->rank);
    int64_t dim[2] = {ty_type_elems(t) / t->dim[1], t->dim[1]};
    return ty_b_reshape(p->clone.to, layout_get(p, old, &last), 2, dim);
}

/* x as a matrix of the positions that windows read. */
static ty_val layout_read_matrix(layout_pass *p, ty_val old, const ty_attr *attr, const ty_type *y)
{
    const ty_type *t = layout_old_type(p, old);
    int64_t lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK], step[TY_MAX_RANK];
    int64_t dim[2] = {ty_type_elems(y) / y->dim[1], t->dim[1]};
    if (!layout_is_strided(attr))
        return layout_matrix(p, old);
    layout_perm last = layout_last(t->rank);
    ty_type x = layout_permuted(t, &last);
    for (int i = 0; i < x.rank; i++) {
        hi[i] = x.dim[i];
        step[i] = i > 0 && i + 1 < x.rank ? attr->step[i - 1] : 1;
    }
    return ty_b_reshape(p->clone.to, ty_b_slice(p->clone.to, layout_get(p, old, &last), lo, hi, step), 2, dim);
}

/* The other way: [positions, C] spread over x [N, spatial.., C], zeros between them. Each spatial axis a of n positions
 * becomes [n, step], of which the first is set, and is then cut to x's size, which is never more. */
static ty_val layout_spread(layout_pass *p, ty_val matrix, const ty_attr *attr, const ty_type *y, const ty_type *x)
{
    ty_graph *g = p->clone.to;
    int64_t apart[TY_MAX_RANK], joined[TY_MAX_RANK], zero[TY_MAX_RANK] = {0}, more[TY_MAX_RANK] = {0};
    int n = 0;
    for (int i = 0; i < x->rank; i++) {
        bool spatial = i > 0 && i + 1 < x->rank;
        int64_t step = spatial ? attr->step[i - 1] : 1, count = spatial ? y->dim[i + 1] : x->dim[i];
        apart[n++] = count;
        if (step > 1) {
            more[n] = step - 1;
            apart[n++] = 1;
        }
        joined[i] = count * step;
    }
    ty_val spread = ty_b_pad(g, ty_b_reshape(g, matrix, n, apart), zero, more, 0);
    return ty_b_slice(g, ty_b_reshape(g, spread, x->rank, joined), zero, x->dim, NULL);
}

static ty_val layout_product(layout_pass *p, uint32_t id, const layout_conv_types *t, const ty_type *to)
{
    ty_graph *g = p->clone.to;
    const ty_attr *attr = ty_graph_attr(p->clone.from, id);
    ty_val a = layout_in(p, id, 0), b = layout_in(p, id, 1), y;
    switch (ty_graph_op(p->clone.from, id)) {
    case TY_OP_CONV:
        y = ty_b_reshape(g, layout_plain(p, b), 2, t->w->dim);
        y = ty_b_dot(g, layout_read_matrix(p, a, attr, t->y), y, false, true);
        break;
    case TY_OP_CONV_DX:
        y = ty_b_dot(g, layout_matrix(p, a), ty_b_reshape(g, layout_plain(p, b), 2, t->w->dim), false, false);
        if (layout_is_strided(attr))
            y = layout_spread(p, y, attr, t->y, to);
        break;
    default:
        y = (to->dtype == t->y->dtype ? ty_b_dot : ty_b_dot_wide)(g, layout_matrix(p, b),
                                                                  layout_read_matrix(p, a, attr, t->y), true, false);
    }
    return ty_b_reshape(g, y, to->rank, to->dim);
}

static ty_val layout_window(layout_pass *p, uint32_t id, const ty_type *to)
{
    ty_op op = ty_graph_op(p->clone.from, id);
    ty_attr attr = *ty_graph_attr(p->clone.from, id);
    layout_perm last = layout_last(to->rank);
    ty_val a = layout_in(p, id, 0), b = layout_in(p, id, 1);
    attr.flags |= TY_SLIDING_LAST;
    if (op != TY_OP_CONV)
        attr.type = *to;
    if (!p->gpu) {
        ty_val in[2] = {layout_get(p, a, &last), op == TY_OP_CONV_DW ? layout_get(p, b, &last) : layout_plain(p, b)};
        return ty_graph_emit(p->clone.to, op, &attr, in, 2);
    }
    attr.flags |= TY_SLIDING_WEIGHTS_LAST;
    ty_val in[2] = {layout_get(p, a, &last), layout_get(p, b, &last)};
    if (op == TY_OP_CONV_DW) /* cuDNN does not write it wider than what it reads */
        attr.type.dtype = layout_old_type(p, a)->dtype;
    return ty_b_cast(p->clone.to, ty_graph_emit(p->clone.to, op, &attr, in, 2), (ty_dtype)to->dtype);
}

static bool layout_conv(layout_pass *p, uint32_t id)
{
    if (!layout_takes_window(p, id) || !layout_takes_conv(p, id))
        return false;
    layout_conv_types t = layout_types_of(p, id);
    const ty_type *res = layout_old_type(p, ty_val_make(id, 0));
    bool weights = ty_graph_op(p->clone.from, id) == TY_OP_CONV_DW;
    const ty_attr *attr = ty_graph_attr(p->clone.from, id);
    bool empty = ty_type_elems(t.x) == 0 || ty_type_elems(t.y) == 0;
    bool spread = ty_graph_op(p->clone.from, id) == TY_OP_CONV_DX; /* next to its reader, zeros cost nothing */
    bool product = layout_is_product(attr, t.w) && !empty && !(p->gpu && layout_is_strided(attr) && !spread);
    layout_perm perm = weights && (product || !p->gpu) ? layout_identity() : layout_last(res->rank);
    ty_type to = layout_permuted(res, &perm);
    ty_val y;
    if (product)
        y = layout_product(p, id, &t, &to);
    else
        y = layout_window(p, id, &to);
    layout_set(p, ty_val_make(id, 0), y, &perm);
    return true;
}

/* ---- the pass ---- */

/* What an op does with permuted operands; NULL: elementwise ones follow the first, others get them as they were
 * written.
 */
static layout_fn *const layout_ops[TY_N_OPS] = {
    [TY_OP_BROADCAST] = layout_by_axis,   [TY_OP_SLICE] = layout_by_axis,         [TY_OP_PAD] = layout_by_axis,
    [TY_OP_CONCAT] = layout_by_axis,      [TY_OP_REVERSE] = layout_by_axis,       [TY_OP_SOFTMAX] = layout_by_axis,
    [TY_OP_GELU] = layout_elementwise,    [TY_OP_GELU_GRAD] = layout_elementwise, [TY_OP_SILU] = layout_elementwise,
    [TY_OP_TRANSPOSE] = layout_transpose, [TY_OP_RESHAPE] = layout_reshape,       [TY_OP_REDUCE] = layout_reduce,
    [TY_OP_GATHER] = layout_index,        [TY_OP_SCATTER] = layout_index,         [TY_OP_CONV] = layout_conv,
    [TY_OP_CONV_DX] = layout_conv,        [TY_OP_CONV_DW] = layout_conv,          [TY_OP_POOL_MAX] = layout_pool,
    [TY_OP_POOL_MAX_GRAD] = layout_pool,  [TY_OP_POOL_SUM] = layout_pool,         [TY_OP_POOL_SUM_GRAD] = layout_pool,
};

/* As it was, on operands in the order that it was written for. */
static void layout_keep(layout_pass *p, uint32_t id)
{
    layout_perm identity = layout_identity(), lead;
    if (!layout_lead(p, id, &lead)) {
        ty_clone_node(&p->clone, id);
        return;
    }
    layout_emit(p, id, ty_graph_attr(p->clone.from, id), &identity);
    ty_val y = p->clone.map[ty_val_make(id, 0)];
    for (uint32_t r = 1; r < ty_graph_node(p->clone.from, id)->n_res && y != TY_NONE; r++)
        p->clone.map[ty_val_make(id, r)] = ty_val_make(ty_val_node(y), r);
}

static void layout_node(layout_pass *p, uint32_t id)
{
    ty_op op = ty_graph_op(p->clone.from, id);
    if (ty_graph_failed(p->clone.to, NULL) || op == TY_OP_ASSIGN)
        return;
    ty_graph_origin(p->clone.to, ty_graph_origin_of(p->clone.from, id));
    layout_fn *fn = layout_ops[op] ? layout_ops[op] : ty_op_is_elementwise(op) ? layout_elementwise : NULL;
    if (!fn || !fn(p, id))
        layout_keep(p, id);
}

/* Outputs and assigned values leave in their own order. */
static void layout_leave(layout_pass *p)
{
    const ty_graph *from = p->clone.from;
    layout_perm identity = layout_identity();
    for (int i = 0; i < ty_graph_n_outputs(from); i++) {
        ty_val v = ty_graph_output(from, i)->val;
        layout_set(p, v, layout_plain(p, v), &identity);
    }
    for (int i = 0; i < ty_graph_n_effects(from); i++) {
        ty_val v = ty_graph_in(from, ty_graph_effect(from, i)->node, 0);
        layout_set(p, v, layout_plain(p, v), &identity);
    }
}

static bool layout_has_conv(const layout_pass *p, const uint8_t *live)
{
    const ty_graph *g = p->clone.from;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++)
        if (live[id] && ty_graph_op(g, id) == TY_OP_CONV && layout_takes_conv(p, id))
            return true;
    return false;
}

static int layout_run(const ty_graph *in, layout_pass p, ty_graph **out, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(in);
    size_t n_vals = (size_t)n * TY_MAX_RESULTS;
    p.perm = malloc((n_vals + 1) * sizeof *p.perm);
    uint8_t *live = calloc((size_t)n + 1, 1);
    if (!p.perm || !live) {
        free(p.perm);
        free(live);
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", n);
    }
    for (size_t v = 0; v < n_vals; v++)
        p.perm[v] = layout_identity();
    ty_graph_mark_live(in, TY_TAPE_ALL, live);
    ty_clone_begin(&p.clone, in);
    p.has_conv = layout_has_conv(&p, live);
    for (uint32_t id = 0; id < n; id++)
        if (live[id])
            layout_node(&p, id);
    layout_leave(&p);
    free(live);
    free(p.perm);
    return ty_clone_finish(&p.clone, out, err);
}

int ty_pass_layout(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return layout_run(in, (layout_pass){0}, out, err);
}

int ty_pass_layout_gpu(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return layout_run(in, (layout_pass){.gpu = true}, out, err);
}

int ty_pass_layout_gpu_tf32(const ty_graph *in, ty_graph **out, ty_error *err)
{
    return layout_run(in, (layout_pass){.gpu = true, .float32 = true}, out, err);
}

int ty_pass_straighten(const ty_graph *in, ty_graph **out, ty_error *err)
{
    uint8_t *turn = calloc((size_t)ty_graph_n_nodes(in) + 1, 1);
    *out = NULL;
    if (!turn)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a pass over %u nodes", ty_graph_n_nodes(in));
    int found = ty_find_turns(in, turn, err);
    int rc = found > 0 ? layout_run(in, (layout_pass){.turn = turn}, out, err) : found;
    free(turn);
    return rc;
}
