/* write_elementwise.c - leaves and what goes element by element. Operands are stretched by ONNX as NumPy does it. */
#include "compiler/export/writer.h"
#include "compiler/ops/op.h"

#include <string.h>

static ty_dtype elementwise_dtype(const export_ctx *c, const export_plan *p)
{
    return (ty_dtype)export_type(c, p->in[0])->dtype;
}

void export_write_none(export_ctx *c, const export_plan *p)
{
    const char *op = ty_op_row_of(ty_graph_op(c->g, p->id))->text;
    export_refuse(c, TY_E_UNSUPPORTED, "ONNX has no operator for \"%s\" of a model that is applied", op);
    ty_error_help(&c->err, "write the model in the format that it has, or keep what uses it out of the model");
}

/* Inputs and weights have their values from the beginning. */
void export_write_leaf(export_ctx *c, const export_plan *p)
{
    if (ty_graph_op(c->g, p->id) == TY_OP_CONST)
        export_give(c, p, 0, export_constant_node(c, p->id));
}

void export_write_plain(export_ctx *c, const export_plan *p)
{
    export_begin(c, p->op);
    for (int k = 0; k < p->n_in; k++)
        export_use(c, export_operand(c, p, k));
    export_give(c, p, 0, export_end(c));
}

static export_value *elementwise_one(export_ctx *c, const export_plan *p)
{
    return export_number(c, elementwise_dtype(c, p), 1);
}

void export_write_rsqrt(export_ctx *c, const export_plan *p)
{
    export_value *root = export_apply(c, "Sqrt", export_of(c, p->in[0]), NULL, NULL);
    export_give(c, p, 0, export_apply(c, "Reciprocal", root, NULL, NULL));
}

void export_write_expm1(export_ctx *c, const export_plan *p)
{
    export_value *power = export_apply(c, "Exp", export_of(c, p->in[0]), NULL, NULL);
    export_give(c, p, 0, export_apply(c, "Sub", power, elementwise_one(c, p), NULL));
}

void export_write_log1p(export_ctx *c, const export_plan *p)
{
    export_value *sum = export_apply(c, "Add", export_of(c, p->in[0]), elementwise_one(c, p), NULL);
    export_give(c, p, 0, export_apply(c, "Log", sum, NULL, NULL));
}

/* Where, but of bools: runtimes choose between numbers alone. */
void export_write_select(export_ctx *c, const export_plan *p)
{
    if (export_result_type(c, p)->dtype != TY_BOOL) {
        export_write_plain(c, p);
        return;
    }
    export_value *choice = export_operand(c, p, 0), *other = export_apply(c, "Not", choice, NULL, NULL);
    export_value *x = export_apply(c, "And", choice, export_operand(c, p, 1), NULL);
    export_value *y = export_apply(c, "And", other, export_operand(c, p, 2), NULL);
    export_give(c, p, 0, export_apply(c, "Or", x, y, NULL));
}

/* ONNX has these of bools, and from opset 18 on others of integers. */
void export_write_bits(export_ctx *c, const export_plan *p)
{
    export_plan bitwise = *p;
    if (elementwise_dtype(c, p) == TY_BOOL) {
        export_write_plain(c, p);
        return;
    }
    if (c->opset < 18)
        export_refuse(c, TY_E_UNSUPPORTED, "%s of integers came with opset 18", p->op);
    bitwise.op = ty_arena_printf(c->a, "Bitwise%s", p->op);
    export_write_plain(c, &bitwise);
}

void export_write_shift(export_ctx *c, const export_plan *p)
{
    ty_dtype dtype = elementwise_dtype(c, p);
    if (ty_dtype_is_signed(dtype))
        export_refuse(c, TY_E_UNSUPPORTED, "BitShift shifts unsigned integers, not %s", ty_dtype_text(dtype));
    export_begin(c, "BitShift");
    export_use(c, export_operand(c, p, 0));
    export_use(c, export_operand(c, p, 1));
    export_attr_text(c, "direction", ty_graph_op(c->g, p->id) == TY_OP_SHL ? "LEFT" : "RIGHT");
    export_give(c, p, 0, export_end(c));
}

void export_write_cast(export_ctx *c, const export_plan *p)
{
    export_give(c, p, 0, export_cast(c, export_of(c, p->in[0]), (ty_dtype)export_result_type(c, p)->dtype));
}

/* The sign of the dividend: what C does. */
void export_write_rem(export_ctx *c, const export_plan *p)
{
    export_begin(c, "Mod");
    export_use(c, export_operand(c, p, 0));
    export_use(c, export_operand(c, p, 1));
    export_attr_int(c, "fmod", 1);
    export_give(c, p, 0, export_end(c));
}

/* Of bools the greater is one or the other, the smaller both. */
void export_write_extremum(export_ctx *c, const export_plan *p)
{
    export_plan other = *p;
    if (elementwise_dtype(c, p) == TY_BOOL)
        other.op = ty_graph_op(c->g, p->id) == TY_OP_MAX ? "Or" : "And";
    export_write_plain(c, &other);
}

/* Less and LessOrEqual take no bools. */
void export_write_compare(export_ctx *c, const export_plan *p)
{
    bool casts = elementwise_dtype(c, p) == TY_BOOL && ty_graph_op(c->g, p->id) != TY_OP_EQ;
    export_value *in[2];
    for (int k = 0; k < 2; k++) {
        in[k] = export_operand(c, p, k);
        if (casts)
            in[k] = export_cast(c, in[k], TY_I32);
    }
    export_give(c, p, 0, export_apply(c, p->op, in[0], in[1], NULL));
}
