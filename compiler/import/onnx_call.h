/* onnx_call.h - one operator of onnx_ops.def on values of a graph, without a file. Private to compiler/import. */
#ifndef TY_COMPILER_IMPORT_ONNX_CALL_H
#define TY_COMPILER_IMPORT_ONNX_CALL_H

#include "compiler/import/onnx_import.h"

enum { ONNX_CALL_OPSET = 23, ONNX_CALL_MAX_RESULTS = 64 };

typedef struct onnx_call {
    const char *domain, *op_type; /* "" and "LSTM", "com.microsoft" and "FastGelu"; as of opset 23, and 1 */
    const char *where;            /* goes in front of the operator in the origin of what it becomes */
    const ty_val *in;             /* TY_NONE: left out */
    int n_in, n_out;              /* n_out: 1 to 64 */
    ty_wire_list attrs;           /* onnx_attr; one that the operator never asks for is refused */
    ty_val seed, step;            /* as in ty_onnx_binding */
    int64_t stream;
} onnx_call;

/* Adds the operator to g; out[k]: result k, TY_NONE if it is left out. On failure *err names the operator, and what was
 * wrong with which input or attribute; it has no place. */
int onnx_call_emit(const onnx_call *call, ty_graph *g, ty_val *out, ty_error *err);

#endif
