/* write_contract.c - products, convolutions and pools.
 *
 * Windows lie channels-first in ONNX; what is channels-last here is turned before and after.
 */
#include "compiler/export/writer.h"
#include "compiler/ops/sliding.h"

#include <string.h>

/* ---- products ---------------------------------------------------------------------------------------------------- */

static bool contract_gemm_has(ty_dtype d)
{
    return ty_dtype_is_float(d) || d == TY_I32 || d == TY_I64;
}

/* The last two axes swapped. */
static export_value *contract_swapped(export_ctx *c, export_value *x, int rank)
{
    int64_t perm[TY_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return export_permute(c, x, perm, rank);
}

static export_value *contract_gemm(export_ctx *c, export_value *a, export_value *b, export_value *add, uint32_t flags)
{
    export_begin(c, "Gemm");
    export_use(c, a);
    export_use(c, b);
    export_use(c, add);
    export_attr_int(c, "transA", flags & TY_DOT_TRANS_A ? 1 : 0);
    export_attr_int(c, "transB", flags & TY_DOT_TRANS_B ? 1 : 0);
    return export_end(c);
}

void export_write_dot(export_ctx *c, const export_plan *p)
{
    uint32_t flags = export_attr(c, p)->flags;
    int rank = export_type(c, p->in[0])->rank;
    ty_dtype dtype = (ty_dtype)export_result_type(c, p)->dtype;
    export_value *in[3] = {NULL, NULL, NULL};
    for (int k = 0; k < p->n_in; k++) {
        in[k] = export_of(c, p->in[k]);
        if (export_type(c, p->in[k])->dtype != dtype) /* products of 16-bit floats that are not rounded */
            in[k] = export_cast(c, in[k], dtype);
    }
    if (rank == 2 && contract_gemm_has(dtype) && (in[2] || flags & (TY_DOT_TRANS_A | TY_DOT_TRANS_B))) {
        export_give(c, p, 0, contract_gemm(c, in[0], in[1], in[2], flags));
        return;
    }
    if (flags & TY_DOT_TRANS_A)
        in[0] = contract_swapped(c, in[0], rank);
    if (flags & TY_DOT_TRANS_B)
        in[1] = contract_swapped(c, in[1], rank);
    export_value *y = export_apply(c, "MatMul", in[0], in[1], NULL);
    export_give(c, p, 0, in[2] ? export_apply(c, "Add", y, in[2], NULL) : y);
}

/* With a bias of a number a column. */
void export_write_gemm(export_ctx *c, const export_plan *p)
{
    export_give(c, p, 0,
                contract_gemm(c, export_of(c, p->in[0]), export_of(c, p->in[1]), export_of(c, p->in[2]),
                              export_attr(c, p)->flags));
}

void export_write_matmul(export_ctx *c, const export_plan *p)
{
    export_value *w = export_of(c, p->in[1]);
    if (p->dim[0])
        w = contract_swapped(c, w, 2);
    export_give(c, p, 0, export_apply(c, "MatMul", export_of(c, p->in[0]), w, NULL));
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* x with channels behind the batch, if it is not so yet; or the way back. */
static export_value *contract_turned(export_ctx *c, export_value *x, int n_axes, bool last, bool back)
{
    int64_t perm[TY_MAX_RANK] = {0};
    if (!last)
        return x;
    for (int i = 0; i < n_axes; i++)
        perm[back ? 1 + i : 2 + i] = back ? 2 + i : 1 + i;
    perm[back ? n_axes + 1 : 1] = back ? 1 : n_axes + 1;
    return export_permute(c, x, perm, n_axes + 2);
}

static void contract_windows(export_ctx *c, const ty_attr *attr, const int64_t *size, const int64_t *lo,
                             const int64_t *hi, bool dilated)
{
    int64_t pads[2 * TY_SLIDING_AXES];
    int n = (int)attr->n;
    for (int i = 0; i < n; i++) {
        pads[i] = lo[i];
        pads[n + i] = hi[i];
        dilated |= attr->dil[i] != 1;
    }
    export_attr_ints(c, "kernel_shape", size, n);
    export_attr_ints(c, "strides", attr->step, n);
    export_attr_ints(c, "pads", pads, 2 * n);
    if (dilated)
        export_attr_ints(c, "dilations", attr->dil, n);
}

/* Sizes of the window of a weight [O, C, window..] or [O, window.., C]. */
static const int64_t *contract_size(const export_ctx *c, const ty_attr *attr, ty_val w)
{
    return export_type(c, w)->dim + (attr->flags & TY_SLIDING_WEIGHTS_LAST ? 1 : 2);
}

void export_write_conv(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    bool last = attr->flags & TY_SLIDING_LAST;
    int n = (int)attr->n;
    export_value *x = contract_turned(c, export_of(c, p->in[0]), n, last, false);
    export_value *w = contract_turned(c, export_of(c, p->in[1]), n, attr->flags & TY_SLIDING_WEIGHTS_LAST, false);
    export_begin(c, "Conv");
    export_use(c, x);
    export_use(c, w);
    export_use(c, p->n_in > 2 ? export_of(c, p->in[2]) : NULL);
    contract_windows(c, attr, contract_size(c, attr, p->in[1]), attr->lo, attr->hi, true);
    export_attr_int(c, "group", attr->groups);
    export_give(c, p, 0, contract_turned(c, export_end(c), n, last, true));
}

/* The gradient of a convolution to its input is ConvTranspose; what strides leave over at the end is output_padding. */
void export_write_conv_dx(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    bool last = attr->flags & TY_SLIDING_LAST;
    int n = (int)attr->n, first = last ? 1 : 2;
    const int64_t *size = contract_size(c, attr, p->in[1]);
    const ty_type *y = export_type(c, p->in[0]), *x = export_result_type(c, p);
    int64_t over[TY_SLIDING_AXES];
    for (int i = 0; i < n; i++)
        over[i] = x->dim[first + i] - ((y->dim[first + i] - 1) * attr->step[i] + (size[i] - 1) * attr->dil[i] + 1 -
                                       attr->lo[i] - attr->hi[i]);
    export_value *dy = contract_turned(c, export_of(c, p->in[0]), n, last, false);
    export_value *w = contract_turned(c, export_of(c, p->in[1]), n, attr->flags & TY_SLIDING_WEIGHTS_LAST, false);
    export_begin(c, "ConvTranspose");
    export_use(c, dy);
    export_use(c, w);
    contract_windows(c, attr, size, attr->lo, attr->hi, true);
    export_attr_ints(c, "output_padding", over, n);
    export_attr_int(c, "group", attr->groups);
    export_give(c, p, 0, contract_turned(c, export_end(c), n, last, true));
}

/* Runtimes refuse windows that may lie outside altogether: such padding is a node of its own. */
static export_value *contract_padded(export_ctx *c, export_value *x, const ty_attr *attr, ty_dtype dtype, double value,
                                     bool *done)
{
    int n = (int)attr->n;
    int64_t pads[2 * (TY_SLIDING_AXES + 2)] = {0};
    *done = false;
    for (int i = 0; i < n; i++) {
        *done |= attr->lo[i] >= attr->size[i] || attr->hi[i] >= attr->size[i];
        pads[2 + i] = attr->lo[i];
        pads[n + 4 + i] = attr->hi[i];
    }
    return *done ? export_apply(c, "Pad", x, export_ints(c, pads, 2 * (n + 2)), export_number(c, dtype, value)) : x;
}

/* Positions count from the beginning of the whole tensor in ONNX, from that of the plane here. */
static export_value *contract_plane(export_ctx *c, const export_plan *p, export_value *index)
{
    const ty_attr *attr = export_attr(c, p);
    const ty_type *x = export_type(c, p->in[0]);
    int64_t plane = 1, first = attr->flags & TY_SLIDING_LAST ? 1 : 2;
    for (uint32_t i = 0; i < attr->n; i++)
        plane *= x->dim[first + i];
    return export_cast(c, export_apply(c, "Mod", index, export_int(c, plane), NULL), TY_I32);
}

static bool contract_is_used(const export_ctx *c, const export_plan *p, uint32_t result)
{
    ty_val v = ty_val_make(p->id, result);
    for (uint32_t id = p->id + 1; id < ty_graph_n_nodes(c->g); id++)
        for (int k = 0; c->plan[id] && k < c->plan[id]->n_in; k++)
            if (c->plan[id]->in[k] == v)
                return true;
    for (int i = 0; i < ty_graph_n_outputs(c->g); i++)
        if (ty_graph_output(c->g, i)->val == v)
            return true;
    return false;
}

void export_write_pool_max(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    static const int64_t none[TY_SLIDING_AXES];
    int n = (int)attr->n, n_out = contract_is_used(c, p, 1) ? 2 : 1;
    bool last = attr->flags & TY_SLIDING_LAST, padded;
    export_value *x = contract_turned(c, export_of(c, p->in[0]), n, last, false), *out[2];
    x = contract_padded(c, x, attr, (ty_dtype)export_result_type(c, p)->dtype, -3.4028234663852886e38, &padded);
    if (padded && n_out > 1)
        export_refuse(c, TY_E_UNSUPPORTED, "positions of maxima with padding as wide as the window");
    export_begin(c, "MaxPool");
    export_use(c, x);
    contract_windows(c, attr, attr->size, padded ? none : attr->lo, padded ? none : attr->hi, false);
    export_end_many(c, out, n_out);
    export_give(c, p, 0, contract_turned(c, out[0], n, last, true));
    if (n_out > 1)
        export_give(c, p, 1, contract_turned(c, contract_plane(c, p, out[1]), n, last, true));
}

static export_value *contract_average(export_ctx *c, const ty_attr *attr, ty_val of)
{
    static const int64_t none[TY_SLIDING_AXES];
    bool last = attr->flags & TY_SLIDING_LAST, padded;
    int n = (int)attr->n;
    export_value *x = contract_turned(c, export_of(c, of), n, last, false);
    for (int i = 0; i < n; i++)
        if (attr->dil[i] != 1 && c->opset < 19)
            export_refuse(c, TY_E_UNSUPPORTED, "average pools with dilation came with opset 19");
    x = contract_padded(c, x, attr, (ty_dtype)export_type(c, of)->dtype, 0, &padded);
    export_begin(c, "AveragePool");
    export_use(c, x);
    contract_windows(c, attr, attr->size, padded ? none : attr->lo, padded ? none : attr->hi, false);
    export_attr_int(c, "count_include_pad", 1);
    return contract_turned(c, export_end(c), n, last, true);
}

/* A sum is the mean times the size of the window. */
void export_write_pool_sum(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    double n = 1;
    for (uint32_t i = 0; i < attr->n; i++)
        n *= (double)attr->size[i];
    export_value *y = contract_average(c, attr, p->in[0]);
    export_value *factor = export_number(c, (ty_dtype)export_result_type(c, p)->dtype, n);
    export_give(c, p, 0, export_apply(c, "Mul", y, factor, NULL));
}

void export_write_average_pool(export_ctx *c, const export_plan *p)
{
    export_give(c, p, 0, contract_average(c, export_attr(c, p), p->in[0]));
}
