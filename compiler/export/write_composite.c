/* write_composite.c - composites that ONNX has operators for; the rest is taken apart before (onnx.c). */
#include "compiler/export/writer.h"

#include <string.h>

void export_write_softmax(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    export_begin(c, attr->flags & 1 ? "LogSoftmax" : "Softmax");
    export_use(c, export_of(c, p->in[0]));
    export_attr_int(c, "axis", attr->axis);
    export_give(c, p, 0, export_end(c));
}

/* LayerNormalization needs a scale; ones stand for none. */
void export_write_norm(export_ctx *c, const export_plan *p)
{
    const ty_attr *attr = export_attr(c, p);
    const ty_type *x = export_type(c, p->in[0]);
    bool rms = attr->flags & 1;
    int n = (int)attr->n;
    export_value *scale = p->n_in > 1 && p->in[1] != TY_NONE
                              ? export_of(c, p->in[1])
                              : export_fill(c, (ty_dtype)x->dtype, n, x->dim + x->rank - n, 1);
    export_value *bias = p->n_in > 2 && p->in[2] != TY_NONE ? export_of(c, p->in[2]) : NULL;
    export_begin(c, rms ? "RMSNormalization" : "LayerNormalization");
    export_use(c, export_of(c, p->in[0]));
    export_use(c, scale);
    export_use(c, rms ? NULL : bias);
    export_attr_int(c, "axis", -n);
    export_attr_float(c, "epsilon", attr->value);
    export_value *y = export_end(c);
    export_give(c, p, 0, rms && bias ? export_apply(c, "Add", y, bias, NULL) : y);
}

void export_write_gelu(export_ctx *c, const export_plan *p)
{
    export_begin(c, "Gelu");
    export_use(c, export_of(c, p->in[0]));
    export_attr_text(c, "approximate", export_attr(c, p)->flags & 1 ? "tanh" : "none");
    export_give(c, p, 0, export_end(c));
}

void export_write_silu(export_ctx *c, const export_plan *p)
{
    export_value *x = export_of(c, p->in[0]);
    export_give(c, p, 0, export_apply(c, "Mul", x, export_apply(c, "Sigmoid", x, NULL, NULL), NULL));
}

/* By running statistics: x, bias, mean, variance, scale. ONNX's channels are axis 1. */
void export_write_batch_norm(export_ctx *c, const export_plan *p)
{
    int rank = export_type(c, p->in[0])->rank, axis = (int)p->dim[0];
    int64_t perm[TY_MAX_RANK];
    const ty_type *t = export_type(c, p->in[1]);
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[1] = axis;
    perm[axis] = 1;
    export_value *x = export_of(c, p->in[0]);
    if (axis != 1)
        x = export_permute(c, x, perm, rank);
    export_value *scale = p->n_in > 4 ? export_of(c, p->in[4]) : export_fill(c, (ty_dtype)t->dtype, 1, t->dim, 1);
    export_begin(c, "BatchNormalization");
    export_use(c, x);
    export_use(c, scale);
    for (int k = 1; k < 4; k++)
        export_use(c, export_of(c, p->in[k]));
    export_attr_float(c, "epsilon", p->number);
    export_value *y = export_end(c);
    export_give(c, p, 0, axis != 1 ? export_permute(c, y, perm, rank) : y);
}
