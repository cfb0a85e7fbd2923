/* onnx_ops_pad.c - Pad in its four modes; ReverseSequence, which also walks positions. */
#include "compiler/import/onnx_import.h"

typedef struct pad_args {
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK]; /* negative: cut off */
} pad_args;

static bool pad_read(onnx_ctx *c, int rank, pad_args *p)
{
    const int64_t *pads, *axes = NULL;
    int64_t n, n_axes = rank;
    if (!onnx_ints_either(c, c->opset < 2 ? "paddings" : "pads", c->opset < 11 ? 99 : 1, &pads, &n))
        return false;
    if (onnx_has(c, 3) && !onnx_const_ints(c, 3, &axes, &n_axes))
        return false;
    if (n != 2 * n_axes) {
        onnx_fail(c, TY_E_SHAPE, "Pad: %lld paddings for %lld axes", (long long)n, (long long)n_axes);
        return false;
    }
    for (int i = 0; i < rank; i++)
        p->lo[i] = p->hi[i] = 0;
    for (int64_t i = 0; i < n_axes; i++) {
        int axis;
        if (!onnx_axis(c, axes ? axes[i] : i, rank, &axis))
            return false;
        p->lo[axis] = pads[i];
        p->hi[axis] = pads[i + n_axes];
    }
    return true;
}

/* Cuts off what is padded by a negative number, and checks the result. */
static ty_val pad_cut(onnx_ctx *c, ty_val x, pad_args *p)
{
    int rank = onnx_rank(c, x);
    int64_t lo[TY_MAX_RANK], hi[TY_MAX_RANK], out[TY_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int64_t dim = onnx_dim(c, x, i);
        lo[i] = p->lo[i] < 0 ? (p->lo[i] < -dim ? dim : -p->lo[i]) : 0;
        hi[i] = dim - (p->hi[i] < 0 ? (p->hi[i] < -dim ? dim : -p->hi[i]) : 0);
        p->lo[i] = p->lo[i] < 0 ? 0 : p->lo[i];
        p->hi[i] = p->hi[i] < 0 ? 0 : p->hi[i];
        if (hi[i] < lo[i] || __builtin_add_overflow(hi[i] - lo[i], p->lo[i], &out[i]) ||
            __builtin_add_overflow(out[i], p->hi[i], &out[i]))
            out[i] = -1;
    }
    return onnx_shape_ok(c, rank, out) ? ty_b_slice(c->g, x, lo, hi, NULL) : TY_NONE;
}

/* Which element of an axis of n entries stands at position i (from -lo to n + hi - 1). */
static int64_t pad_source(int mode, int64_t i, int64_t n)
{
    if (mode == 3)
        return ((i % n) + n) % n;
    if (mode == 2)
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    int64_t period = n > 1 ? 2 * (n - 1) : 1;
    i = ((i % period) + period) % period;
    return i < n ? i : period - i;
}

static ty_val pad_axis(onnx_ctx *c, ty_val x, int axis, int mode, int64_t lo, int64_t hi)
{
    int64_t n = onnx_dim(c, x, axis), n_out = n + lo + hi;
    if (n == 0) {
        onnx_fail(c, TY_E_SHAPE, "Pad: axis %d is empty, there is nothing to repeat", axis);
        return TY_NONE;
    }
    if (n_out > 1 << 24) {
        onnx_fail(c, TY_E_SHAPE, "Pad: axis %d would have %lld entries", axis, (long long)n_out);
        return TY_NONE;
    }
    int64_t *index = onnx_alloc(c, (size_t)n_out, sizeof *index);
    for (int64_t i = 0; i < n_out; i++)
        index[i] = pad_source(mode, i - lo, n);
    return ty_b_gather(c->g, x, onnx_ints_const(c, index, n_out), axis);
}

/* The constant to pad with: an attribute up to opset 10, an input later. Any value of x's type does. */
static void pad_constant(onnx_ctx *c, ty_val x, const pad_args *p)
{
    double value = 0;
    bool given = c->opset < 11 ? onnx_find_attr(c, "value") != NULL : onnx_has(c, 2);
    if (c->opset < 11)
        value = given ? onnx_attr_float(c, "value", 0) : 0;
    else if (given && !onnx_const_float(c, 2, 0, &value))
        return;
    onnx_set(c, 0, ty_b_pad(c->g, x, p->lo, p->hi, value));
}

void onnx_op_pad(onnx_ctx *c)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap", NULL};
    int mode = onnx_attr_choice(c, "mode", "constant", modes);
    ty_val x = onnx_in(c, 0);
    pad_args p;
    if (c->failed || !pad_read(c, onnx_rank(c, x), &p))
        return;
    x = pad_cut(c, x, &p);
    if (x == TY_NONE)
        return;
    if (mode == 0) {
        pad_constant(c, x, &p);
        return;
    }
    for (int i = 0, rank = onnx_rank(c, x); i < rank && x != TY_NONE; i++)
        if (p.lo[i] || p.hi[i])
            x = pad_axis(c, x, i, mode, p.lo[i], p.hi[i]);
    onnx_set(c, 0, x);
}

/* Cuts or pads the axes to the sizes wanted, around the middle; the odd element comes behind when padding, goes in
 * front when cutting. */
void onnx_op_center_crop_pad(onnx_ctx *c)
{
    ty_val x = onnx_in(c, 0);
    const int64_t *size, *axes = NULL;
    int rank = onnx_rank(c, x), axis;
    int64_t n, n_axes = rank, lo[TY_MAX_RANK] = {0}, hi[TY_MAX_RANK], before[TY_MAX_RANK] = {0},
               after[TY_MAX_RANK] = {0};
    if (!onnx_const_ints(c, 1, &size, &n))
        return;
    onnx_attr_ints(c, "axes", &axes, &n_axes);
    if (n != n_axes || n > rank) {
        onnx_fail_input(c, 1, TY_E_SHAPE, "must have %lld entries", (long long)n_axes);
        return;
    }
    for (int i = 0; i < rank; i++)
        hi[i] = onnx_dim(c, x, i);
    for (int64_t i = 0; i < n; i++) {
        if (!onnx_axis(c, axes ? axes[i] : i, rank, &axis) || !onnx_shape_ok(c, 1, &size[i]))
            return;
        int64_t more = size[i] - hi[axis];
        lo[axis] = more < 0 ? -more / 2 : 0;
        hi[axis] = more < 0 ? lo[axis] + size[i] : hi[axis];
        before[axis] = more > 0 ? more / 2 : 0;
        after[axis] = more > 0 ? more - more / 2 : 0;
    }
    onnx_set(c, 0, ty_b_pad(c->g, ty_b_slice(c->g, x, lo, hi, NULL), before, after, 0));
}

/* Position t of row b holds x[len - 1 - t] while t < len, else x[t]. */
void onnx_op_reverse_sequence(onnx_ctx *c)
{
    ty_graph *g = c->g;
    ty_val x = onnx_in(c, 0), len = onnx_in(c, 1);
    int rank = onnx_rank(c, x), batch, time;
    if (rank < 2 || onnx_rank(c, len) != 1) {
        onnx_fail(c, TY_E_SHAPE, "ReverseSequence: needs at least 2 dimensions and a list of lengths");
        return;
    }
    if (!onnx_axis(c, onnx_attr_int(c, "batch_axis", 1), rank, &batch) ||
        !onnx_axis(c, onnx_attr_int(c, "time_axis", 0), rank, &time))
        return;
    int64_t dim[TY_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = i == batch ? onnx_dim(c, x, i) : 1;
    ty_type type = *onnx_type_of(c, x);
    type.dtype = TY_I64;
    ty_val t = ty_b_iota(g, type, time);
    len = ty_b_reshape(g, ty_b_cast(g, len, TY_I64), rank, dim);
    ty_val mirrored = ty_b_sub(g, ty_b_add_s(g, len, -1), t);
    ty_val index = ty_b_select(g, ty_b_lt(g, t, len), mirrored, t);
    onnx_set(c, 0, ty_b_take(g, x, index, time));
}
