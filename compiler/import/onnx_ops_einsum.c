/* onnx_ops_einsum.c - Einsum. */
#include "compiler/import/einsum.h"
#include "compiler/import/onnx_import.h"

void onnx_op_einsum(onnx_ctx *c)
{
    ty_val in[TY_EINSUM_MAX_INPUTS];
    const char *why;
    if (c->n_in > TY_EINSUM_MAX_INPUTS || c->n_in < 1) {
        onnx_fail(c, TY_E_UNSUPPORTED, "Einsum: %d inputs; at most %d are possible", c->n_in, TY_EINSUM_MAX_INPUTS);
        return;
    }
    for (int k = 0; k < c->n_in; k++)
        in[k] = onnx_in(c, k);
    ty_val y = ty_einsum(c->g, onnx_attr_text(c, "equation", ""), in, c->n_in, &why);
    if (why)
        onnx_fail_attr(c, "equation", "%s", why);
    else
        onnx_set(c, 0, y);
}
