/* write_movement.c - reshapes, transposes, slices and the like. Sizes that follow the batch are written so. */
#include "compiler/export/writer.h"

#include <string.h>

static int movement_rank(const export_ctx *c, ty_val v)
{
    return export_type(c, v)->rank;
}

void export_write_reshape(export_ctx *c, const export_plan *p)
{
    ty_val x = p->in[0], y = ty_val_make(p->id, 0);
    export_dim from[TY_MAX_RANK], to[TY_MAX_RANK];
    export_dims_of(c, x, from);
    export_dims_of(c, y, to);
    export_give(c, p, 0, export_reshape(c, export_of(c, x), movement_rank(c, x), from, movement_rank(c, y), to));
}

void export_write_transpose(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    export_give(c, p, 0, export_permute(c, export_of(c, p->in[0]), attr->lo, (int)attr->n));
}

/* Expand leaves a dim where the shape says 1. */
void export_write_broadcast(export_ctx *c, const export_plan *p)
{
    const ty_type *from = export_type(c, p->in[0]), *to = export_result_type(c, p);
    export_dim dim[TY_MAX_RANK];
    export_dims_of(c, ty_val_make(p->id, 0), dim);
    for (int i = 0; i < to->rank; i++)
        if (from->dim[i] == to->dim[i])
            dim[i] = (export_dim){0, 1};
    export_value *shape = export_shape(c, dim, to->rank);
    export_give(c, p, 0, export_apply(c, "Expand", export_of(c, p->in[0]), shape, NULL));
}

/* starts or ends of the axes listed, at both batches. */
static export_value *movement_bounds(export_ctx *c, const int64_t *a, const int64_t *b, const bool *to_end,
                                     const int *axis, int n)
{
    export_dim dim[TY_MAX_RANK];
    for (int i = 0; i < n; i++)
        dim[i] = to_end && to_end[i] ? (export_dim){0, INT64_MAX} : export_dim_from(c, a[axis[i]], b[axis[i]]);
    return export_shape(c, dim, n);
}

void export_write_slice(export_ctx *c, const export_plan *p)
{
    const ty_attr *a = export_attr(c, p), *b = ty_graph_attr(export_twin_graph(c), export_twin(c, p->id));
    const ty_type *x = export_type(c, p->in[0]);
    uint32_t twin = ty_val_node(ty_graph_in(export_twin_graph(c), export_twin(c, p->id), 0));
    const ty_type *u = ty_graph_type(export_twin_graph(c), ty_val_make(twin, ty_val_result(p->in[0])));
    int axis[TY_MAX_RANK], n = 0;
    int64_t step[TY_MAX_RANK], axes[TY_MAX_RANK];
    bool to_end[TY_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        if (a->lo[i] == 0 && a->hi[i] == x->dim[i] && a->step[i] == 1)
            continue;
        to_end[n] = a->hi[i] == x->dim[i] && b->hi[i] == u->dim[i];
        step[n] = a->step[i];
        axes[n] = i;
        axis[n++] = i;
    }
    export_value *starts = movement_bounds(c, a->lo, b->lo, NULL, axis, n);
    export_value *ends = movement_bounds(c, a->hi, b->hi, to_end, axis, n);
    export_begin(c, "Slice");
    export_use(c, export_of(c, p->in[0]));
    export_use(c, starts);
    export_use(c, ends);
    export_use(c, export_ints(c, axes, n));
    export_use(c, export_ints(c, step, n));
    export_give(c, p, 0, export_end(c));
}

void export_write_pad(export_ctx *c, const export_plan *p)
{
    const ty_attr *a = export_attr(c, p), *b = ty_graph_attr(export_twin_graph(c), export_twin(c, p->id));
    export_dim pads[2 * TY_MAX_RANK];
    int rank = (int)a->n;
    int64_t known[2 * TY_MAX_RANK];
    bool follows = false;
    for (int i = 0; i < rank; i++) {
        pads[i] = export_dim_from(c, a->lo[i], b->lo[i]);
        pads[rank + i] = export_dim_from(c, a->hi[i], b->hi[i]);
    }
    for (int i = 0; i < 2 * rank; i++) {
        follows |= pads[i].per != 0;
        known[i] = pads[i].plus;
    }
    if (follows)
        export_cannot_follow(c, "padding that depends on the batch");
    export_value *amounts = export_ints(c, known, 2 * rank);
    export_value *value = export_number(c, (ty_dtype)export_result_type(c, p)->dtype, a->value);
    export_give(c, p, 0, export_apply(c, "Pad", export_of(c, p->in[0]), amounts, value));
}

void export_write_concat(export_ctx *c, const export_plan *p)
{
    export_begin(c, "Concat");
    for (int k = 0; k < p->n_in; k++)
        export_use(c, export_of(c, p->in[k]));
    export_attr_int(c, "axis", export_attr(c, p)->axis);
    export_give(c, p, 0, export_end(c));
}

/* From the last element to the first. */
void export_write_reverse(export_ctx *c, const export_plan *p)
{
    int64_t start[TY_MAX_RANK], end[TY_MAX_RANK], axes[TY_MAX_RANK], step[TY_MAX_RANK];
    int n = 0;
    for (int i = 0; i < movement_rank(c, p->in[0]); i++)
        if (export_attr(c, p)->axes >> i & 1) {
            start[n] = -1;
            end[n] = INT64_MIN + 1;
            step[n] = -1;
            axes[n++] = i;
        }
    export_begin(c, "Slice");
    export_use(c, export_of(c, p->in[0]));
    export_use(c, export_ints(c, start, n));
    export_use(c, export_ints(c, end, n));
    export_use(c, export_ints(c, axes, n));
    export_use(c, export_ints(c, step, n));
    export_give(c, p, 0, export_end(c));
}

static bool movement_range_has(ty_dtype d)
{
    return d == TY_F32 || d == TY_F64 || d == TY_I16 || d == TY_I32 || d == TY_I64;
}

/* 0, 1, 2 .. along one axis, the same along all others. */
void export_write_iota(export_ctx *c, const export_plan *p)
{
    const ty_type *t = export_result_type(c, p);
    ty_dtype dtype = movement_range_has((ty_dtype)t->dtype) ? (ty_dtype)t->dtype : TY_I64;
    int axis = (int)export_attr(c, p)->axis;
    export_dim dim[TY_MAX_RANK], along[TY_MAX_RANK];
    export_dims_of(c, ty_val_make(p->id, 0), dim);
    export_value *limit = export_int(c, dim[axis].plus);
    if (dim[axis].per != 0)
        limit = export_apply(c, "Reshape", export_shape(c, &dim[axis], 1), export_ints(c, NULL, 0), NULL);
    if (dtype != TY_I64)
        limit = export_cast(c, limit, dtype);
    export_value *v = export_apply(c, "Range", export_number(c, dtype, 0), limit, export_number(c, dtype, 1));
    if (dtype != t->dtype)
        v = export_cast(c, v, (ty_dtype)t->dtype);
    for (int i = 0; i < t->rank; i++)
        along[i] = i == axis ? dim[i] : (export_dim){0, 1};
    if (t->rank > 1)
        v = export_reshape(c, v, 1, &dim[axis], t->rank, along);
    bool stretches = false;
    for (int i = 0; i < t->rank; i++) {
        stretches |= i != axis && t->dim[i] != 1;
        along[i] = i == axis ? (export_dim){0, 1} : dim[i];
    }
    if (stretches)
        v = export_apply(c, "Expand", v, export_shape(c, along, t->rank), NULL);
    export_give(c, p, 0, v);
}
