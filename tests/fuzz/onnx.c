/* Fuzz: the protobuf reader, the importer and the writer, on any bytes.
 *
 * What is read must be importable or refused; what is written from it must be read again and have the same weights.
 */
#include "base/buf.h"
#include "compiler/import/onnx.h"
#include "compiler/ir/build.h"
#include "compiler/ir/verify.h"

#include <stdlib.h>
#include <string.h>

static int sink_add(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    (void)err;
    return ty_buf_add(ctx, bytes, n);
}

/* Free dims become 2, unknown shapes a vector of 2. */
static ty_type bound_type(const ty_onnx_value *v)
{
    int64_t dim[TY_MAX_RANK] = {2};
    for (int i = 0; i < v->rank; i++)
        dim[i] = v->dim[i] < 0 ? 2 : v->dim[i];
    return ty_type_make(v->dtype == TY_N_DTYPES ? TY_F32 : v->dtype, v->rank < 0 ? 1 : v->rank, dim);
}

/* Small integer inputs become constants of small numbers taken from the file, so that shapes and axes are explored. */
static ty_val bind_input(const ty_onnx *m, ty_graph *g, int i, const uint8_t *data, size_t n)
{
    ty_type type = bound_type(ty_onnx_input(m, i));
    int64_t elems = ty_dims_elems_checked(type.rank, type.dim, 8), v[64];
    if (elems < 0)
        return TY_NONE;
    if (type.dtype != TY_I64 || elems > 64)
        return ty_b_input(g, ty_graph_add_input(g, ty_onnx_input(m, i)->name, type));
    for (int64_t k = 0; k < elems; k++)
        v[k] = (data[(size_t)(7 * i + k) % n] & 7) - 2;
    return ty_b_const(g, type, v);
}

static void import_as(const ty_onnx *m, ty_onnx_mode mode, const uint8_t *data, size_t n_bytes)
{
    ty_graph *g = ty_graph_new();
    int n = ty_onnx_n_inputs(m);
    ty_val *in = calloc((size_t)n + 1, sizeof *in);
    for (int i = 0; i < n; i++)
        in[i] = bind_input(m, g, i, data, n_bytes);
    ty_onnx_binding b = {
        .mode = mode, .inputs = in, .seed = ty_b_scalar(g, TY_I64, 1), .step = ty_b_scalar(g, TY_I64, 2)};
    ty_onnx_values values;
    ty_error err = {0};
    if (ty_onnx_import(m, g, &b, &values, &err) == 0 && !ty_graph_failed(g, &err)) {
        for (int i = 0; i < ty_onnx_n_outputs(m); i++)
            ty_graph_add_output(g, "y", values.outputs[i], TY_TAPE_EVAL);
        if (!ty_graph_failed(g, NULL) && ty_graph_verify(g, &err) < 0)
            abort();
    } else if (!err.message[0] && !ty_graph_failed(g, NULL))
        abort();
    ty_graph_free(g);
    free(in);
}

static void write_again(const ty_onnx *m)
{
    ty_buf out;
    ty_buf_init(&out, 1 << 26);
    if (ty_onnx_write(m, NULL, 0, sink_add, &out, NULL) == 0) {
        ty_onnx *again;
        if (ty_onnx_open_memory("again", out.data, out.len, &again, NULL) < 0)
            abort();
        if (ty_onnx_n_initializers(again) != ty_onnx_n_initializers(m))
            abort();
        ty_onnx_free(again);
    }
    ty_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    ty_onnx *m;
    ty_error err = {0}, faults[4];
    ty_arena arena;
    ty_tensor tensor;
    ty_arena_init(&arena);
    ty_onnx_read_tensor(data, n, &arena, &tensor, NULL);
    ty_arena_fini(&arena);
    if (ty_onnx_open_memory("fuzz", data, n, &m, &err) < 0)
        return 0;
    ty_onnx_check(m, faults, 4);
    import_as(m, TY_ONNX_TRAIN, data, n);
    import_as(m, TY_ONNX_AS_WRITTEN, data, n);
    write_again(m);
    ty_onnx_free(m);
    return 0;
}
