/* follow.c - what the batch changes: dims and constants of the graph at two batch sizes, told apart.
 *
 * The same model at two sizes gives two graphs of the same nodes, if nothing in it depends on the batch but shapes. A
 * number that is a in one and b in the other is (b - a) / (B - A) times the batch, plus a rest: exact, since all sizes
 * are sums and products of what the file says. The sizes are primes, so that a dim of the model is none of them by
 * chance; a model where that or a limit makes the graphs differ is tried with other sizes (onnx.c).
 */
#include "compiler/export/writer.h"
#include "compiler/ops/op.h"

#include <inttypes.h>
#include <string.h>

/* ---- dims -------------------------------------------------------------------------------------------------------- */

uint32_t export_twin(const export_ctx *c, uint32_t id)
{
    return c->other ? c->twin[id] : id;
}

export_dim export_dim_from(export_ctx *c, int64_t first, int64_t second)
{
    int64_t step = c->batch[1] - c->batch[0];
    if (first == second)
        return (export_dim){0, first};
    if ((second - first) % step != 0)
        export_cannot_follow(c, "a size of %" PRId64 " with a batch of %" PRId64 " is %" PRId64 " with one of %" PRId64,
                             first, c->batch[0], second, c->batch[1]);
    int64_t per = (second - first) / step;
    return (export_dim){per, first - per * c->batch[0]};
}

export_dim export_dim_of(export_ctx *c, ty_val v, int axis)
{
    ty_val twin = ty_val_make(export_twin(c, ty_val_node(v)), ty_val_result(v));
    return export_dim_from(c, ty_graph_type(c->g, v)->dim[axis], ty_graph_type(export_twin_graph(c), twin)->dim[axis]);
}

void export_dims_of(export_ctx *c, ty_val v, export_dim *dim)
{
    for (int i = 0; i < ty_graph_type(c->g, v)->rank; i++)
        dim[i] = export_dim_of(c, v, i);
}

static bool follow_same(export_dim a, export_dim b)
{
    return a.per == b.per && a.plus == b.plus;
}

/* i64[1]: the batch, as the input's shape has it. */
static export_value *follow_rows(export_ctx *c)
{
    if (c->rows)
        return c->rows;
    const char *layer = c->layer;
    c->layer = "";
    export_begin(c, "Shape");
    export_use(c, c->batch_value);
    export_attr_int(c, "start", c->batch_axis);
    export_attr_int(c, "end", c->batch_axis + 1);
    c->rows = export_end(c);
    c->layer = layer;
    return c->rows;
}

static export_value *follow_size(export_ctx *c, export_dim d)
{
    export_value *v = follow_rows(c);
    if (d.per != 1)
        v = export_apply(c, "Mul", v, export_ints(c, &d.per, 1), NULL);
    if (d.plus != 0)
        v = export_apply(c, "Add", v, export_ints(c, &d.plus, 1), NULL);
    return v;
}

/* Runs of sizes that are known are one constant. */
export_value *export_shape(export_ctx *c, const export_dim *dim, int n)
{
    export_value *piece[TY_MAX_RANK];
    int n_pieces = 0;
    for (int i = 0; i < n;) {
        int64_t known[TY_MAX_RANK];
        int k = 0;
        for (; i < n && dim[i].per == 0; i++)
            known[k++] = dim[i].plus;
        if (k > 0)
            piece[n_pieces++] = export_ints(c, known, k);
        if (i < n)
            piece[n_pieces++] = follow_size(c, dim[i++]);
    }
    if (n_pieces == 0)
        return export_ints(c, NULL, 0);
    if (n_pieces == 1)
        return piece[0];
    export_begin(c, "Concat");
    for (int i = 0; i < n_pieces; i++)
        export_use(c, piece[i]);
    export_attr_int(c, "axis", 0);
    return export_end(c);
}

/* Of sizes that follow the batch one may be -1: what is left over; those that stay where they are may be 0. */
static bool follow_without_shape(int x_rank, const export_dim *x_dim, int rank, const export_dim *dim, int64_t *out)
{
    int n_free = 0;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        out[i] = dim[i].per == 0 ? dim[i].plus : -1;
        empty |= out[i] == 0;
        n_free += out[i] < 0;
    }
    for (int i = 0; i < rank && n_free > 1; i++)
        if (out[i] < 0 && i < x_rank && follow_same(dim[i], x_dim[i])) {
            out[i] = 0;
            n_free--;
        }
    return n_free == 0 || (n_free == 1 && !empty);
}

export_value *export_reshape(export_ctx *c, export_value *x, int x_rank, const export_dim *x_dim, int rank,
                             const export_dim *dim)
{
    int64_t known[TY_MAX_RANK];
    bool simple = follow_without_shape(x_rank, x_dim, rank, dim, known), zero = false;
    for (int i = 0; i < rank; i++)
        zero |= simple && known[i] == 0 && dim[i].per == 0;
    export_value *shape = simple ? export_ints(c, known, rank) : export_shape(c, dim, rank);
    export_begin(c, "Reshape");
    export_use(c, x);
    export_use(c, shape);
    if (zero)
        export_attr_int(c, "allowzero", 1);
    return export_end(c);
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static double follow_number(const ty_type *t, const void *data, int64_t i)
{
    double f64;
    float f32;
    if (t->dtype == TY_F64) {
        memcpy(&f64, (const char *)data + 8 * i, sizeof f64);
        return f64;
    }
    memcpy(&f32, (const char *)data + 4 * i, sizeof f32);
    return f32;
}

static int64_t follow_integer(const ty_type *t, const void *data, int64_t i)
{
    int64_t i64;
    int32_t i32;
    if (t->dtype == TY_I64) {
        memcpy(&i64, (const char *)data + 8 * i, sizeof i64);
        return i64;
    }
    memcpy(&i32, (const char *)data + 4 * i, sizeof i32);
    return i32;
}

/* Integers of one shape: each is so many times the batch, plus a rest. */
static export_value *follow_integers(export_ctx *c, const ty_type *t, const void *a, const void *b)
{
    int64_t n = ty_type_elems(t);
    ty_type wide = *t;
    wide.dtype = TY_I64;
    int64_t *per = TY_NEW_ARRAY(c->a, int64_t, n + 1), *plus = TY_NEW_ARRAY(c->a, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++) {
        export_dim d = export_dim_from(c, follow_integer(t, a, i), follow_integer(t, b, i));
        per[i] = d.per;
        plus[i] = d.plus;
    }
    export_value *rows = follow_rows(c);
    if (t->rank == 0)
        rows = export_apply(c, "Reshape", rows, export_ints(c, NULL, 0), NULL);
    export_value *v = export_apply(c, "Mul", rows, export_const(c, &wide, per), NULL);
    v = export_apply(c, "Add", v, export_const(c, &wide, plus), NULL);
    return t->dtype == TY_I64 ? v : export_cast(c, v, (ty_dtype)t->dtype);
}

/* Floats of one shape that are all a multiple of the batch, or of one divided by it: what is left of means. */
static export_value *follow_floats(export_ctx *c, const ty_type *t, const void *a, const void *b)
{
    int64_t n = ty_type_elems(t);
    double ratio = (double)c->batch[1] / (double)c->batch[0], eps = t->dtype == TY_F64 ? 1e-14 : 1e-6;
    bool times = true, over = true;
    double *unit = TY_NEW_ARRAY(c->a, double, n + 1);
    for (int64_t i = 0; i < n; i++) {
        double x = follow_number(t, a, i), y = follow_number(t, b, i), limit = eps * (x < 0 ? -x : x);
        double of_times = y - x * ratio, of_over = y - x / ratio;
        times &= of_times <= limit * ratio && -of_times <= limit * ratio;
        over &= of_over <= limit && -of_over <= limit;
    }
    if (times == over) {
        export_cannot_follow(c, "a constant depends on the batch in a way that no formula was found for");
        return export_number(c, TY_F32, 0);
    }
    for (int64_t i = 0; i < n; i++)
        unit[i] = times ? follow_number(t, a, i) / (double)c->batch[0] : follow_number(t, a, i) * (double)c->batch[0];
    float *narrow = TY_NEW_ARRAY(c->a, float, n + 1);
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (float)unit[i];
    export_value *k = export_const(c, t, t->dtype == TY_F64 ? (const void *)unit : narrow), *rows = follow_rows(c);
    if (t->rank == 0)
        rows = export_apply(c, "Reshape", rows, export_ints(c, NULL, 0), NULL);
    return export_apply(c, times ? "Mul" : "Div", k, export_cast(c, rows, (ty_dtype)t->dtype), NULL);
}

/* One row, stretched: for a constant that says the same for each row of the batch. -1: there is no such axis. */
static int follow_repeated_axis(const ty_type *a, const ty_type *b)
{
    int found = -1;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] == b->dim[i])
            continue;
        if (found >= 0)
            return -1;
        found = i;
    }
    return found;
}

/* True if all slices of t along the axis are `row`, which holds the first of `like`. */
static bool follow_is_repeated(const ty_type *t, const char *data, int axis, const char *row)
{
    size_t inner = ty_dtype_bytes((ty_dtype)t->dtype);
    int64_t outer = 1;
    for (int i = 0; i < axis; i++)
        outer *= t->dim[i];
    for (int i = axis + 1; i < t->rank; i++)
        inner *= (size_t)t->dim[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < t->dim[axis]; k++)
            if (memcmp(data + ((size_t)(o * t->dim[axis] + k)) * inner, row + (size_t)o * inner, inner) != 0)
                return false;
    return true;
}

/* Element i as a number; false for types that nobody counts in. */
static bool follow_element(const ty_type *t, const void *data, int64_t i, double *out)
{
    if (t->dtype == TY_F64 || t->dtype == TY_F32)
        *out = follow_number(t, data, i);
    else if (t->dtype == TY_I64 || t->dtype == TY_I32)
        *out = (double)follow_integer(t, data, i);
    else
        return false;
    return true;
}

/* first + i * step for each i, at both batches. */
static bool follow_is_counted(const ty_type *t, const void *data, double first, double step)
{
    double x;
    for (int64_t i = 0; i < ty_type_elems(t); i++)
        if (!follow_element(t, data, i, &x) || x != first + (double)i * step)
            return false;
    return true;
}

/* The numbers of rows, 0, 1, 2 .. or steps of another size, folded while the model was imported. NULL: it is not that.
 */
static export_value *follow_counted(export_ctx *c, uint32_t id, int axis, const ty_type *t, const void *a,
                                    const ty_type *u, const void *b)
{
    double first, second;
    export_dim dim[TY_MAX_RANK];
    if (ty_type_elems(t) != t->dim[axis] || t->dim[axis] < 2 || !follow_element(t, a, 0, &first) ||
        !follow_element(t, a, 1, &second) || !follow_is_counted(t, a, first, second - first) ||
        !follow_is_counted(u, b, first, second - first))
        return NULL;
    ty_dtype dtype = (ty_dtype)t->dtype;
    export_dims_of(c, ty_val_make(id, 0), dim);
    export_value *n = export_apply(c, "Reshape", export_shape(c, &dim[axis], 1), export_ints(c, NULL, 0), NULL);
    export_value *v = export_apply(c, "Range", export_int(c, 0), n, export_int(c, 1));
    if (dtype != TY_I64)
        v = export_cast(c, v, dtype);
    if (second - first != 1)
        v = export_apply(c, "Mul", v, export_number(c, dtype, second - first), NULL);
    if (first != 0)
        v = export_apply(c, "Add", v, export_number(c, dtype, first), NULL);
    return t->rank == 1 ? v : export_reshape(c, v, 1, &dim[axis], t->rank, dim);
}

/* The first slice of t along the axis. */
static char *follow_first(export_ctx *c, const ty_type *t, const char *data, int axis)
{
    size_t n = ty_type_bytes(t) / (size_t)t->dim[axis], inner = ty_dtype_bytes((ty_dtype)t->dtype);
    for (int i = axis + 1; i < t->rank; i++)
        inner *= (size_t)t->dim[i];
    char *row = ty_arena_alloc(c->a, n + 1);
    for (size_t at = 0, o = 0; at < n; at += inner, o++)
        memcpy(row + at, data + o * (size_t)t->dim[axis] * inner, inner);
    return row;
}

/* One slice, repeated for each row of the batch. Integers in it may count the batch, as an index from the end does. */
static export_value *follow_stretched(export_ctx *c, uint32_t id, const ty_type *t, const void *a, const ty_type *u,
                                      const void *b)
{
    int axis = follow_repeated_axis(t, u);
    export_dim dim[TY_MAX_RANK];
    export_value *counted = axis >= 0 ? follow_counted(c, id, axis, t, a, u, b) : NULL;
    if (counted)
        return counted;
    if (axis >= 0 && t->dim[axis] > 0 && u->dim[axis] > 0) {
        ty_type one = *t;
        one.dim[axis] = 1;
        char *row = follow_first(c, t, a, axis), *twin = follow_first(c, u, b, axis);
        bool same = memcmp(row, twin, ty_type_bytes(&one)) == 0, counts = t->dtype == TY_I64 || t->dtype == TY_I32;
        if ((same || counts) && follow_is_repeated(t, a, axis, row) && follow_is_repeated(u, b, axis, twin)) {
            for (int i = 0; i < t->rank; i++)
                dim[i] = i == axis ? export_dim_of(c, ty_val_make(id, 0), i) : (export_dim){0, 1};
            export_value *slice = same ? export_const(c, &one, row) : follow_integers(c, &one, row, twin);
            return export_apply(c, "Expand", slice, export_shape(c, dim, t->rank), NULL);
        }
    }
    export_cannot_follow(c, "a constant has rows of its own for each row of the batch");
    return export_number(c, TY_F32, 0);
}

export_value *export_constant_node(export_ctx *c, uint32_t id)
{
    ty_val v = ty_val_make(id, 0), w = ty_val_make(export_twin(c, id), 0);
    const ty_type *t = ty_graph_type(c->g, v), *u = ty_graph_type(export_twin_graph(c), w);
    const void *a = ty_graph_const_data(c->g, v), *b = ty_graph_const_data(export_twin_graph(c), w);
    size_t n = ty_type_bytes(t);
    if (!ty_type_same(t, u))
        return follow_stretched(c, id, t, a, u, b);
    if (a == b || n == 0 || memcmp(a, b, n) == 0)
        return export_const_or_weight(c, t, a);
    if (t->dtype == TY_I64 || t->dtype == TY_I32)
        return follow_integers(c, t, a, b);
    if (t->dtype == TY_F64 || t->dtype == TY_F32)
        return follow_floats(c, t, a, b);
    export_cannot_follow(c, "a constant of type %s depends on the batch", ty_dtype_text((ty_dtype)t->dtype));
    return export_number(c, TY_F32, 0);
}

/* ---- the two graphs ---------------------------------------------------------------------------------------------- */

/* What may differ between the batches lies in types, or is looked at by the op's writer. */
static bool follow_attrs_agree(const export_ctx *c, uint32_t a, uint32_t b)
{
    ty_op op = ty_graph_op(c->g, a);
    ty_attr x = *ty_graph_attr(c->g, a), y = *ty_graph_attr(c->other, b);
    if (op == TY_OP_CONST)
        return true;
    memset(&x.type, 0, sizeof x.type);
    memset(&y.type, 0, sizeof y.type);
    if (op == TY_OP_SLICE || op == TY_OP_PAD) {
        memset(x.lo, 0, sizeof x.lo);
        memset(y.lo, 0, sizeof y.lo);
        memset(x.hi, 0, sizeof x.hi);
        memset(y.hi, 0, sizeof y.hi);
    }
    return memcmp(&x, &y, sizeof x) == 0;
}

static bool follow_pairs(export_ctx *c, uint32_t a, uint32_t b, const uint32_t *twin)
{
    const ty_node *x = ty_graph_node(c->g, a), *y = ty_graph_node(c->other, b);
    if (x->op != y->op || x->n_in != y->n_in || !follow_attrs_agree(c, a, b))
        return false;
    for (uint32_t k = 0; k < x->n_in; k++) {
        ty_val v = ty_graph_in(c->g, a, (int)k), w = ty_graph_in(c->other, b, (int)k);
        if ((v == TY_NONE) != (w == TY_NONE))
            return false;
        if (v != TY_NONE && (twin[ty_val_node(v)] != ty_val_node(w) || ty_val_result(v) != ty_val_result(w)))
            return false;
    }
    for (uint32_t r = 0; r < x->n_res; r++) {
        const ty_type *t = ty_graph_type(c->g, ty_val_make(a, r)), *u = ty_graph_type(c->other, ty_val_make(b, r));
        if (t->dtype != u->dtype || t->rank != u->rank)
            return false;
    }
    return true;
}

bool export_pair_up(export_ctx *c)
{
    uint32_t n = ty_graph_n_nodes(c->g), m = ty_graph_n_nodes(c->other), b = 0;
    uint32_t *twin = TY_NEW_ARRAY(c->a, uint32_t, n + 1);
    uint8_t *live = TY_NEW_ARRAY(c->a, uint8_t, n + 1), *other = TY_NEW_ARRAY(c->a, uint8_t, m + 1);
    ty_graph_mark_live(c->g, TY_TAPE_ALL, live);
    ty_graph_mark_live(c->other, TY_TAPE_ALL, other);
    for (uint32_t a = 0; a < n; a++) {
        if (!live[a])
            continue;
        while (b < m && !other[b])
            b++;
        if (b == m || !follow_pairs(c, a, b, twin)) {
            c->node = a;
            c->layer = ty_layer_of_origin(c->a, ty_graph_origin_of(c->g, a));
            export_cannot_follow(c, "a batch of %" PRId64 " is computed in other steps than one of %" PRId64,
                                 c->batch[0], c->batch[1]);
            return false;
        }
        twin[a] = b++;
    }
    c->twin = twin;
    return true;
}
