/* tf_ops_const.c - constants of the file. */
#include "compiler/import/tensorflow/tf_ops.h"

/* The bytes stay where they lie in the file. Text is kept as something that nobody can compute with. */
void tf_op_const(tf_ctx *c)
{
    const tf_attr_value *value = tf_find_attr(c->node, "value");
    ty_type type;
    const void *data;
    if (c->node->constant >= 0) {
        int v = c->node->constant;
        tf_set_item(c, 0, &(tf_item){.kind = TF_TENSOR, .val = tf_present(c->imp, v), .variable = v});
        return;
    }
    if (!value || !value->tensor) {
        tf_fail_attr(c, "value", "is missing");
        return;
    }
    const void *part[2];
    int is_complex = tf_tensor_parts(value->tensor, ty_graph_arena(c->g), &type, part, &c->err);
    if (is_complex > 0)
        tf_set_parts(c, 0, ty_b_const(c->g, type, part[0]), ty_b_const(c->g, type, part[1]));
    c->failed |= is_complex < 0;
    if (is_complex != 0)
        return;
    if (tf_tensor_value(value->tensor, ty_graph_arena(c->g), &type, &data, &c->err) < 0) {
        c->failed = true;
        return;
    }
    if (type.dtype >= TY_N_DTYPES || !data) {
        tf_set_other(c, 0);
        return;
    }
    bool aligned = (uintptr_t)data % ty_dtype_bytes((ty_dtype)type.dtype) == 0;
    tf_set(c, 0, aligned ? ty_b_const(c->g, type, data) : ty_b_const_copy(c->g, type, data));
}
