/* write_index.c - look-ups, scatters, sorting and reductions. */
#include "compiler/export/writer.h"

#include <string.h>

static export_value *index_i64(export_ctx *c, ty_val v)
{
    export_value *x = export_of(c, v);
    return export_type(c, v)->dtype == TY_I64 ? x : export_cast(c, x, TY_I64);
}

/* gather and take: rows of a number, and elements of numbers. */
void export_write_gather(export_ctx *c, const export_plan *p)
{
    export_begin(c, p->op);
    export_use(c, export_of(c, p->in[0]));
    export_use(c, export_of(c, p->in[1]));
    export_attr_int(c, "axis", export_attr(c, p)->axis);
    export_give(c, p, 0, export_end(c));
}

/* How a scatter combines, as ONNX calls it; max and min came with opset 18. */
static const char *index_reduction(export_ctx *c, uint32_t mode)
{
    static const char *const names[] = {
        [TY_SUM] = "add", [TY_MAX] = "max", [TY_MIN] = "min", [TY_PROD] = "mul", [TY_SET] = "none"};
    if ((mode == TY_MAX || mode == TY_MIN) && c->opset < 18)
        export_refuse(c, TY_E_UNSUPPORTED, "scatters that take the %s came with opset 18", names[mode]);
    return names[mode];
}

/* Axis `axis` first, or back where it was. */
static void index_perm(int64_t *perm, int rank, int axis, bool back)
{
    int64_t first[TY_MAX_RANK];
    first[0] = axis;
    for (int i = 0, k = 1; i < rank; i++)
        if (i != axis)
            first[k++] = i;
    for (int i = 0; i < rank; i++)
        perm[back ? first[i] : i] = back ? i : first[i];
}

/* ScatterND takes whole rows of axis 0: other axes are moved there. u has i's axes in the place of x's one. */
void export_write_scatter(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    const ty_type *t = export_type(c, p->in[1]);
    int rank = export_type(c, p->in[0])->rank, axis = (int)attr->axis;
    int64_t perm[TY_MAX_RANK];
    export_dim from[TY_MAX_RANK], to[TY_MAX_RANK];
    export_dims_of(c, p->in[1], from);
    if (axis > 0 && t->rank != 1) {
        export_refuse(c, TY_E_UNSUPPORTED, "a scatter of %d axes of numbers along axis %d", t->rank, axis);
        return;
    }
    memcpy(to, from, sizeof to);
    to[t->rank] = (export_dim){0, 1};
    export_value *index = export_reshape(c, index_i64(c, p->in[1]), t->rank, from, t->rank + 1, to);
    export_value *x = export_of(c, p->in[0]), *u = export_of(c, p->in[2]);
    index_perm(perm, rank, axis, false);
    if (axis > 0) {
        x = export_permute(c, x, perm, rank);
        u = export_permute(c, u, perm, rank);
    }
    export_begin(c, "ScatterND");
    export_use(c, x);
    export_use(c, index);
    export_use(c, u);
    export_attr_text(c, "reduction", index_reduction(c, attr->mode));
    export_value *y = export_end(c);
    index_perm(perm, rank, axis, true);
    export_give(c, p, 0, axis > 0 ? export_permute(c, y, perm, rank) : y);
}

void export_write_put(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    export_begin(c, "ScatterElements");
    for (int k = 0; k < 3; k++)
        export_use(c, export_of(c, p->in[k]));
    export_attr_int(c, "axis", attr->axis);
    export_attr_text(c, "reduction", index_reduction(c, attr->mode));
    export_give(c, p, 0, export_end(c));
}

/* All of an axis in order; of equals the first one first, as ONNX has it too. */
void export_write_sort(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    export_dim n = export_dim_of(c, p->in[0], (int)attr->axis);
    export_value *k = export_shape(c, &n, 1), *out[2];
    export_begin(c, "TopK");
    export_use(c, export_of(c, p->in[0]));
    export_use(c, k);
    export_attr_int(c, "axis", attr->axis);
    export_attr_int(c, "largest", attr->flags & 1);
    export_attr_int(c, "sorted", 1);
    export_end_many(c, out, 2);
    export_give(c, p, 0, out[0]);
    export_give(c, p, 1, out[1]);
}

/* Axes are an input of sums from opset 13 on, of the others from 18 on. */
static export_value *index_reduce(export_ctx *c, const char *op, export_value *x, uint32_t mask, bool keep_dims)
{
    int64_t axes[TY_MAX_RANK];
    int n = 0;
    for (int i = 0; i < TY_MAX_RANK; i++)
        if (mask >> i & 1)
            axes[n++] = i;
    bool by_input = c->opset >= 18 || strcmp(op, "ReduceSum") == 0;
    export_value *list = by_input ? export_ints(c, axes, n) : NULL;
    export_begin(c, op);
    export_use(c, x);
    export_use(c, list);
    if (!by_input)
        export_attr_ints(c, "axes", axes, n);
    export_attr_int(c, "keepdims", keep_dims);
    return export_end(c);
}

void export_write_reduce(export_ctx *c, const export_plan *p)
{
    static const char *const names[] = {
        [TY_SUM] = "ReduceSum", [TY_MAX] = "ReduceMax", [TY_MIN] = "ReduceMin", [TY_PROD] = "ReduceProd"};
    const ty_attr *attr = export_attr(c, p);
    ty_dtype dtype = (ty_dtype)export_type(c, p->in[0])->dtype;
    bool narrow = ty_dtype_bytes(dtype) < 4 && !ty_dtype_is_float(dtype); /* bool too */
    export_value *x = export_of(c, p->in[0]);
    if (narrow)
        x = export_cast(c, x, TY_I32);
    export_value *y = index_reduce(c, names[attr->mode], x, attr->axes, false);
    export_give(c, p, 0, narrow ? export_cast(c, y, dtype) : y);
}

void export_write_mean(export_ctx *c, const export_plan *p)
{
    export_give(c, p, 0, index_reduce(c, "ReduceMean", export_of(c, p->in[0]), (uint32_t)p->dim[0], p->keep_dims));
}

void export_write_argreduce(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    export_begin(c, attr->mode == TY_MIN ? "ArgMin" : "ArgMax");
    export_use(c, export_of(c, p->in[0]));
    export_attr_int(c, "axis", attr->axis);
    export_attr_int(c, "keepdims", 0);
    export_attr_int(c, "select_last_index", attr->flags & 1);
    export_give(c, p, 0, export_end(c));
}

void export_write_scan(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    if (attr->mode != TY_SUM)
        export_refuse(c, TY_E_UNSUPPORTED, "ONNX has running sums, and no running products, maxima or minima");
    export_value *axis = export_int(c, attr->axis);
    export_begin(c, "CumSum");
    export_use(c, export_of(c, p->in[0]));
    export_use(c, axis);
    export_attr_int(c, "exclusive", attr->flags & 1);
    export_attr_int(c, "reverse", attr->flags >> 1 & 1);
    export_give(c, p, 0, export_end(c));
}
