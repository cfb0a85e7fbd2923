/* raise_mask.c - masks that hide the future, however they were written.
 *
 * Exporters make them of counted rows and columns, Trilu, Where, comparisons, additions, or as a table. What all have
 * in common is that an element depends only on which side of a diagonal it is: (t, s) has one number where s <= t + at
 * and another where not. A comparison of counts makes such a step, elementwise ops on steps of one diagonal give
 * another step, whose two numbers are worked out with the reference functions. So a mask of any size costs two
 * evaluations.
 */
#include "compiler/ops/op.h"
#include "compiler/ops/ref.h"
#include "compiler/passes/raise.h"

#define MASK_MAX_DEPTH 12
#define MASK_MAX_ELEMS (1 << 24) /* of a table */

/* A value that is t or s plus a number. */
typedef struct mask_count {
    bool last; /* s, the last axis; else t, the one before */
    int64_t offset;
} mask_count;

/* v without reshapes and stretching that leave the last two dims alone. */
static ty_val mask_plane(const ty_raise *r, ty_val v)
{
    while (ty_raise_is(r, v, TY_OP_RESHAPE) || ty_raise_is(r, v, TY_OP_BROADCAST)) {
        const ty_type *out = ty_graph_type(r->g, v), *in = ty_graph_type(r->g, ty_raise_in(r, v, 0));
        if (in->rank < 2 || out->rank < 2 || in->dim[in->rank - 1] != out->dim[out->rank - 1] ||
            in->dim[in->rank - 2] != out->dim[out->rank - 2])
            break;
        v = ty_raise_in(r, v, 0);
    }
    return v;
}

static bool mask_is_count(const ty_raise *r, ty_val v, mask_count *c)
{
    double s;
    *c = (mask_count){0};
    for (int depth = 0; depth < MASK_MAX_DEPTH; depth++) {
        v = mask_plane(r, v);
        bool plus = ty_raise_is(r, v, TY_OP_ADD);
        if (!plus && !ty_raise_is(r, v, TY_OP_SUB))
            break;
        if (!ty_graph_splat_value(r->g, ty_raise_in(r, v, 1), &s) || s != (double)(int32_t)s)
            return false;
        c->offset += plus ? (int64_t)s : -(int64_t)s;
        v = ty_raise_in(r, v, 0);
    }
    if (!ty_raise_is(r, v, TY_OP_IOTA))
        return false;
    int64_t from_end = ty_graph_type(r->g, v)->rank - ty_graph_attr(r->g, ty_val_node(v))->axis;
    c->last = from_end == 1;
    return from_end <= 2;
}

/* s + x <= t + y, t + x <= s + y, or the same with <. */
static bool mask_compare(const ty_raise *r, ty_val v, ty_raise_step *out)
{
    mask_count a, b;
    bool less = ty_raise_is(r, v, TY_OP_LT);
    if ((!less && !ty_raise_is(r, v, TY_OP_LE)) || !mask_is_count(r, ty_raise_in(r, v, 0), &a) ||
        !mask_is_count(r, ty_raise_in(r, v, 1), &b) || a.last == b.last)
        return false;
    if (a.last)
        *out = (ty_raise_step){true, b.offset - a.offset - less, {1, 0}};
    else
        *out = (ty_raise_step){true, a.offset - b.offset - !less, {0, 1}};
    return true;
}

static double mask_element(const ty_ref *r, int64_t at)
{
    return r->f ? r->f[at] : (double)r->i[at];
}

/* A table, the same for every entry of the leading dims: the diagonal is where its first row changes. */
static bool mask_table(const ty_ref *r, ty_raise_step *out)
{
    int rank = r->type.rank;
    int64_t n_s = r->type.dim[rank - 1], n_t = r->type.dim[rank - 2], rows = ty_type_elems(&r->type) / n_s, at = 0;
    while (at + 1 < n_s && mask_element(r, at + 1) == mask_element(r, 0))
        at++;
    if (at + 1 == n_s)
        return false;
    *out = (ty_raise_step){true, at, {mask_element(r, 0), mask_element(r, at + 1)}};
    for (int64_t row = 0; row < rows; row++)
        for (int64_t s = 0; s < n_s; s++)
            if (mask_element(r, row * n_s + s) != out->value[s > row % n_t + at])
                return false;
    return true;
}

static bool mask_const(const ty_raise *r, ty_val v, ty_raise_step *out)
{
    const ty_type *t = ty_graph_type(r->g, v);
    const void *data = ty_graph_const_data(r->g, v);
    int64_t n = ty_type_elems(t);
    ty_ref ref;
    ty_error err;
    if (!data || t->rank < 2 || n < 1 || n > MASK_MAX_ELEMS || ty_ref_init(&ref, t, &err) < 0)
        return false;
    ty_ref_load(&ref, data);
    bool found = mask_table(&ref, out);
    ty_ref_fini(&ref);
    return found;
}

/* The op on the numbers of one side. */
static bool mask_apply(const ty_raise *r, ty_val v, const ty_raise_step *in, int n_in, int side, double *out)
{
    double f[4];
    int64_t i[4];
    ty_ref operand[3], res;
    for (int k = 0; k <= n_in; k++) {
        ty_dtype dtype = (ty_dtype)ty_graph_type(r->g, k < n_in ? ty_raise_in(r, v, k) : v)->dtype;
        bool is_float = ty_dtype_is_float(dtype);
        f[k] = k < n_in ? in[k].value[side] : 0;
        i[k] = is_float ? 0 : (int64_t)f[k];
        ty_ref one = {ty_type_scalar(dtype), is_float ? &f[k] : NULL, is_float ? NULL : &i[k]};
        *(k < n_in ? &operand[k] : &res) = one;
    }
    ty_error err;
    uint32_t node = ty_val_node(v);
    if (ty_op_row_of(ty_graph_op(r->g, node))->ref(ty_graph_attr(r->g, node), operand, n_in, &res, &err) < 0)
        return false;
    *out = mask_element(&res, 0);
    return true;
}

static bool mask_step(const ty_raise *r, ty_val v, int depth, ty_raise_step *out);

static bool mask_elementwise(const ty_raise *r, ty_val v, int depth, ty_raise_step *out)
{
    ty_op op = ty_graph_op(r->g, ty_val_node(v));
    int n_in = (int)ty_graph_node(r->g, ty_val_node(v))->n_in;
    ty_raise_step in[3];
    if (!ty_op_is_elementwise(op) || op == TY_OP_BITCAST)
        return false;
    *out = (ty_raise_step){0};
    for (int k = 0; k < n_in; k++) {
        if (!mask_step(r, ty_raise_in(r, v, k), depth - 1, &in[k]) ||
            (in[k].is_step && out->is_step && in[k].at != out->at))
            return false;
        if (in[k].is_step)
            *out = in[k];
    }
    ty_raise_step of = *out;
    bool done = mask_apply(r, v, in, n_in, 0, &of.value[0]) && mask_apply(r, v, in, n_in, 1, &of.value[1]);
    *out = of;
    return done;
}

static bool mask_step(const ty_raise *r, ty_val v, int depth, ty_raise_step *out)
{
    double s;
    if (depth == 0)
        return false;
    if (ty_graph_splat_value(r->g, v, &s)) {
        *out = (ty_raise_step){false, 0, {s, s}};
        return true;
    }
    v = mask_plane(r, v);
    return mask_compare(r, v, out) || mask_const(r, v, out) || mask_elementwise(r, v, depth, out);
}

bool ty_raise_find_step(const ty_raise *r, ty_val v, ty_raise_step *out)
{
    return mask_step(r, v, MASK_MAX_DEPTH, out) && out->is_step;
}
