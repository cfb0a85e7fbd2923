/* fold.c - computes nodes whose inputs are constants, with the reference functions, rounded to the dtype.
 *
 * A splat (one number stretched to a shape) stays broadcast(const): kernels want the number, not a tensor full of it.
 * It counts as a constant input nevertheless and is stretched on the fly. Large weights are never copied: a reshape of
 * one shares its data, anything else leaves it alone. Random numbers are never folded.
 */
#include "compiler/ir/build.h"
#include "compiler/ir/storage.h"
#include "compiler/ops/ref.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOLD_FLOAT_ELEMS     65536 /* results above these sizes stay nodes */
#define FOLD_INT_ELEMS       (1 << 20)
#define FOLD_BROADCAST_ELEMS 4096      /* integers only: shapes and indices that importers look at */
#define FOLD_INPUT_ELEMS     (1 << 22) /* inputs above this are not read */
#define FOLD_MAX_INPUTS      4096
#define FOLD_STEPS           (1 << 22) /* of all nodes of a graph, see fold_steps: some hundredths of a second */
#define FOLD_SPLAT_ELEMS     65536     /* larger constants are not searched for being one number */

static bool fold_is_float(const ty_type *t)
{
    return ty_dtype_is_float((ty_dtype)t->dtype);
}

/* The const behind v, looking through one broadcast; TY_NONE if there is none. */
static ty_val fold_source(const ty_graph *g, ty_val v)
{
    if (v == TY_NONE)
        return TY_NONE;
    if (ty_graph_op(g, ty_val_node(v)) == TY_OP_BROADCAST)
        v = ty_graph_in(g, ty_val_node(v), 0);
    return ty_graph_op(g, ty_val_node(v)) == TY_OP_CONST ? v : TY_NONE;
}

/* Elements that a node reads and writes, and what products, windows and attention do beyond that: multiplications, or
 * an upper bound. Elementwise nodes and those that move elements do not count: their size is bounded by their result's.
 */
static double fold_steps(const ty_graph *g, const graph_draft *d)
{
    ty_op_class class_ = ty_op_row_of(d->op)->class_;
    double res = (double)ty_type_elems(&d->res[0]), all = res, each[2] = {1, 1}, windows = 1;
    if (class_ == TY_CLASS_ELEMENTWISE || class_ == TY_CLASS_LOOP)
        return 0;
    for (int i = 0; i < d->n_in; i++) {
        double elems = d->in[i] == TY_NONE ? 0 : (double)ty_type_elems(ty_graph_type(g, d->in[i]));
        all += elems;
        if (i < 2)
            each[i] = elems;
    }
    if (d->op == TY_OP_DOT) /* M N K = sqrt(M K * K N * M N) */
        return all + sqrt(each[0] * each[1] * res);
    if (d->op == TY_OP_CONV || d->op == TY_OP_CONV_DX || d->op == TY_OP_CONV_DW || d->op == TY_OP_ATTENTION)
        return all + res * each[1];
    for (uint32_t i = 0; i < d->attr.n && i < TY_MAX_RANK; i++)
        windows *= d->attr.size[i] > 1 ? (double)d->attr.size[i] : 1;
    return all + res * windows;
}

static bool fold_wanted(const ty_graph *g, const graph_draft *d)
{
    const ty_op_row *row = ty_op_row_of(d->op);
    if (d->n_in == 0 || d->n_in > FOLD_MAX_INPUTS || row->n_res != 1 || !row->ref || d->op == TY_OP_RNG)
        return false;
    int64_t limit = fold_is_float(&d->res[0]) ? FOLD_FLOAT_ELEMS : FOLD_INT_ELEMS;
    if (d->op == TY_OP_BROADCAST)
        limit = fold_is_float(&d->res[0]) ? 1 : FOLD_BROADCAST_ELEMS;
    if (ty_type_elems(&d->res[0]) > limit)
        return false;
    int64_t total = 0;
    for (int i = 0; i < d->n_in; i++) {
        if (d->in[i] != TY_NONE && fold_source(g, d->in[i]) == TY_NONE)
            return false;
        if (d->in[i] != TY_NONE)
            total += ty_type_elems(ty_graph_type(g, d->in[i]));
        if (total > FOLD_INPUT_ELEMS)
            return false;
    }
    return true;
}

static void fold_fill(ty_ref *r, const ty_ref *one)
{
    int64_t n = ty_type_elems(&r->type);
    for (int64_t k = 0; k < n && r->f; k++)
        r->f[k] = one->f[0];
    for (int64_t k = 0; k < n && r->i; k++)
        r->i[k] = one->i[0];
}

/* The constant v in reference arithmetic, stretched if it is a splat. */
static int fold_load(const ty_graph *g, ty_val v, ty_ref *r, ty_error *err)
{
    ty_val source = fold_source(g, v);
    if (ty_ref_init(r, ty_graph_type(g, source), err) < 0)
        return -1;
    ty_ref_load(r, ty_graph_const_data(g, source));
    if (source == v)
        return 0;
    ty_ref narrow = *r;
    int rc = ty_ref_init(r, ty_graph_type(g, v), err);
    if (rc == 0 && ty_type_elems(&narrow.type) == 1)
        fold_fill(r, &narrow);
    else if (rc == 0)
        rc = ty_op_row_of(TY_OP_BROADCAST)->ref(ty_graph_attr(g, ty_val_node(v)), &narrow, 1, r, err);
    ty_ref_fini(&narrow);
    return rc;
}

static ty_val fold_store(ty_graph *g, const ty_ref *r)
{
    void *data = ty_arena_alloc(&g->arena, ty_type_bytes(&r->type));
    ty_ref_store(r, data);
    return ty_graph_const(g, &r->type, data, true);
}

/* Runs the row's reference function. Whatever it refuses (a division by zero, say) is not folded: TY_NONE. */
static ty_val fold_run(ty_graph *g, const graph_draft *d)
{
    ty_ref *in = calloc((size_t)d->n_in + 1, sizeof *in), res = {0};
    ty_val v = TY_NONE;
    if (!in)
        return v;
    int rc = ty_ref_init(&res, &d->res[0], NULL);
    for (int i = 0; i < d->n_in && rc == 0; i++)
        if (d->in[i] != TY_NONE)
            rc = fold_load(g, d->in[i], &in[i], NULL);
    if (rc == 0 && ty_op_row_of(d->op)->ref(&d->attr, in, d->n_in, &res, NULL) == 0)
        v = fold_store(g, &res);
    for (int i = 0; i < d->n_in; i++)
        ty_ref_fini(&in[i]);
    ty_ref_fini(&res);
    free(in);
    return v;
}

ty_val ty_graph_fold(ty_graph *g, const graph_draft *d)
{
    if (d->op == TY_OP_RESHAPE && ty_graph_op(g, ty_val_node(d->in[0])) == TY_OP_CONST) {
        const ty_attr *attr = ty_graph_attr(g, ty_val_node(d->in[0]));
        graph_const *c = &((graph_const *)g->constant.data)[attr->index];
        return ty_graph_const(g, &d->res[0], c->data, c->owned);
    }
    double steps = fold_wanted(g, d) ? fold_steps(g, d) : INFINITY;
    if (g->folded + steps > FOLD_STEPS)
        return TY_NONE;
    g->folded += steps;
    return fold_run(g, d);
}

/* All elements of a const of n > 0 elements are the same bytes. */
static bool fold_uniform(const char *data, int64_t n, size_t elem_bytes)
{
    return n == 1 || memcmp(data, data + elem_bytes, (size_t)(n - 1) * elem_bytes) == 0;
}

bool ty_graph_splat_value(const ty_graph *g, ty_val v, double *out)
{
    static const uint8_t sees_through[TY_N_OPS] = {
        [TY_OP_BROADCAST] = 1, [TY_OP_RESHAPE] = 1, [TY_OP_TRANSPOSE] = 1, [TY_OP_REVERSE] = 1, [TY_OP_SLICE] = 1};
    if (v == TY_NONE)
        return false;
    while (sees_through[ty_graph_op(g, ty_val_node(v))])
        v = ty_graph_in(g, ty_val_node(v), 0);
    const ty_type *type = ty_graph_type(g, v);
    const char *data = ty_graph_const_data(g, v);
    size_t elem_bytes = ty_dtype_bytes((ty_dtype)type->dtype);
    if (!data || ty_type_elems(type) < 1 || ty_type_elems(type) > FOLD_SPLAT_ELEMS ||
        !fold_uniform(data, ty_type_elems(type), elem_bytes))
        return false;
    double f = 0;
    int64_t i = 0;
    ty_type scalar = ty_type_scalar((ty_dtype)type->dtype);
    ty_ref one = {.type = scalar, .f = fold_is_float(type) ? &f : NULL, .i = fold_is_float(type) ? NULL : &i};
    ty_ref_load(&one, data);
    *out = one.f ? f : (double)i;
    return one.f || (i >= -(INT64_C(1) << 53) && i <= INT64_C(1) << 53 && !(type->dtype == TY_U64 && i < 0));
}

bool ty_graph_is_zero(const ty_graph *g, ty_val v)
{
    double value;
    return ty_graph_splat_value(g, v, &value) && value == 0;
}
