/* onnx_model.h - builds small ONNX files in memory for tests.
 *
 *     model_text m;  model_begin(&m, 18);
 *     model_input(&m, "x", 1, SHAPE(2, 3));
 *     model_node(&m, "Relu", "x", "y", "");
 *     model_output(&m, "y", 1);
 *     ty_onnx *o = model_open(&m);
 */
#ifndef TY_TESTS_ONNX_MODEL_H
#define TY_TESTS_ONNX_MODEL_H

#include "base/buf.h"
#include "compiler/import/onnx.h"
#include "compiler/import/wire.h"

#include "tests/unit/evaluate.h"

typedef struct model_text {
    ty_buf graph, file, attrs; /* attrs: of the next node, with its metadata */
    int64_t opset;
} model_text;

static inline void put_bytes(ty_buf *b, uint32_t number, const void *bytes, size_t n)
{
    uint8_t head[TY_WIRE_HEAD_BYTES];
    ty_buf_add(b, head, ty_wire_put_head(head, number, n));
    ty_buf_add(b, bytes, n);
}

static inline void put_text(ty_buf *b, uint32_t number, const char *text)
{
    put_bytes(b, number, text, strlen(text));
}

static inline void put_int(ty_buf *b, uint32_t number, int64_t v)
{
    uint8_t out[TY_WIRE_HEAD_BYTES];
    size_t n = ty_wire_put_varint(out, number << 3);
    ty_buf_add(b, out, n + ty_wire_put_varint(out + n, (uint64_t)v));
}

static inline void put_float(ty_buf *b, uint32_t number, float v)
{
    ty_buf_addc(b, (char)(number << 3 | 5));
    ty_buf_add(b, &v, 4);
}

/* Appends a message built in `sub` and frees it. */
static inline void put_sub(ty_buf *b, uint32_t number, ty_buf *sub)
{
    put_bytes(b, number, sub->data, sub->len);
    ty_buf_fini(sub);
}

static inline void model_begin(model_text *m, int64_t opset)
{
    m->opset = opset;
    ty_buf_init(&m->graph, 1 << 24);
    ty_buf_init(&m->file, 1 << 24);
    ty_buf_init(&m->attrs, 1 << 16);
    put_text(&m->graph, 2, "main");
}

/* dim -1: free, called "N". */
static inline void model_value(model_text *m, uint32_t field, const char *name, int type, int rank, const int64_t *dim)
{
    ty_buf shape, tensor, typ, info;
    ty_buf_init(&shape, 4096);
    ty_buf_init(&tensor, 4096);
    ty_buf_init(&typ, 4096);
    ty_buf_init(&info, 4096);
    for (int i = 0; i < rank; i++) {
        ty_buf d;
        ty_buf_init(&d, 64);
        if (dim[i] < 0)
            put_text(&d, 2, "N");
        else
            put_int(&d, 1, dim[i]);
        put_sub(&shape, 1, &d);
    }
    put_int(&tensor, 1, type);
    put_sub(&tensor, 2, &shape);
    put_sub(&typ, 1, &tensor);
    put_text(&info, 1, name);
    put_sub(&info, 2, &typ);
    put_sub(&m->graph, field, &info);
}

static inline void model_input(model_text *m, const char *name, int type, int rank, const int64_t *dim)
{
    model_value(m, 11, name, type, rank, dim);
}

static inline void model_output(model_text *m, const char *name, int type)
{
    model_value(m, 12, name, type, 0, NULL);
}

/* A TensorProto with raw data of n_bytes. */
static inline void tensor_raw(ty_buf *t, const char *name, int type, int rank, const int64_t *dim, const void *data,
                              size_t n_bytes)
{
    for (int i = 0; i < rank; i++)
        put_int(t, 1, dim[i]);
    put_int(t, 2, type);
    put_text(t, 8, name);
    put_bytes(t, 9, data, n_bytes);
}

static inline void model_raw(model_text *m, const char *name, int type, int rank, const int64_t *dim, const void *data,
                             size_t n_bytes)
{
    ty_buf t;
    ty_buf_init(&t, 1 << 22);
    tensor_raw(&t, name, type, rank, dim, data, n_bytes);
    put_sub(&m->graph, 5, &t);
}

static inline void model_floats(model_text *m, const char *name, int rank, const int64_t *dim, const float *data)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= (size_t)dim[i];
    model_raw(m, name, 1, rank, dim, data, 4 * n);
}

static inline void model_ints(model_text *m, const char *name, int64_t n, const int64_t *data)
{
    model_raw(m, name, 7, 1, &n, data, 8 * (size_t)n);
}

/* Attributes of the node that is added next. */
static inline void attr_begin(ty_buf *a, const char *name, int type)
{
    ty_buf_init(a, 1 << 16);
    put_text(a, 1, name);
    put_int(a, 20, type);
}

static inline void attr_int(model_text *m, const char *name, int64_t v)
{
    ty_buf a;
    attr_begin(&a, name, 2);
    put_int(&a, 3, v);
    put_sub(&m->attrs, 5, &a);
}

static inline void attr_float(model_text *m, const char *name, float v)
{
    ty_buf a;
    attr_begin(&a, name, 1);
    put_float(&a, 2, v);
    put_sub(&m->attrs, 5, &a);
}

static inline void attr_text(model_text *m, const char *name, const char *v)
{
    ty_buf a;
    attr_begin(&a, name, 3);
    put_text(&a, 4, v);
    put_sub(&m->attrs, 5, &a);
}

static inline void attr_ints(model_text *m, const char *name, int n, const int64_t *v)
{
    ty_buf a;
    attr_begin(&a, name, 7);
    for (int i = 0; i < n; i++)
        put_int(&a, 8, v[i]);
    put_sub(&m->attrs, 5, &a);
}

/* Metadata of the node that is added next. */
static inline void node_metadata(model_text *m, const char *key, const char *value)
{
    ty_buf pair;
    ty_buf_init(&pair, 4096);
    put_text(&pair, 1, key);
    put_text(&pair, 2, value);
    put_sub(&m->attrs, 9, &pair);
}

/* What PyTorch's dynamo exporter says of an initializer: "PARAMETER", "BUFFER". */
static inline void model_kind(model_text *m, const char *name, const char *kind)
{
    ty_buf pair, info;
    ty_buf_init(&pair, 4096);
    ty_buf_init(&info, 4096);
    put_text(&pair, 1, "pkg.torch.export.graph_signature.InputSpec.kind");
    put_text(&pair, 2, kind);
    put_text(&info, 1, name);
    put_sub(&info, 4, &pair);
    put_sub(&m->graph, 13, &info);
}

/* Inputs and outputs are lists of names with commas between. */
static inline void put_names(ty_buf *b, uint32_t field, const char *names)
{
    while (*names) {
        size_t n = strcspn(names, ",");
        put_bytes(b, field, names, n);
        names += n + (names[n] == ',');
    }
}

static inline void model_node_in(model_text *m, const char *domain, const char *op, const char *in, const char *out,
                                 const char *name)
{
    ty_buf node;
    ty_buf_init(&node, 1 << 20);
    put_names(&node, 1, in);
    put_names(&node, 2, out);
    put_text(&node, 3, name);
    put_text(&node, 4, op);
    ty_buf_add(&node, m->attrs.data, m->attrs.len);
    put_text(&node, 7, domain);
    ty_buf_clear(&m->attrs);
    put_sub(&m->graph, 1, &node);
}

static inline void model_node(model_text *m, const char *op, const char *in, const char *out, const char *name)
{
    model_node_in(m, "", op, in, out, name);
}

static inline void model_end(model_text *m)
{
    ty_buf opset;
    ty_buf_init(&opset, 64);
    put_text(&opset, 1, "");
    put_int(&opset, 2, m->opset);
    put_int(&m->file, 1, 8);
    put_sub(&m->file, 8, &opset);
    put_sub(&m->file, 7, &m->graph);
    ty_buf_fini(&m->attrs);
}

/* Ends the text and opens it; m->file must be freed after the model. */
static inline ty_onnx *model_open(model_text *m)
{
    ty_onnx *o = NULL;
    ty_error err = {0};
    model_end(m);
    if (ty_onnx_open_memory("model.onnx", m->file.data, m->file.len, &o, &err) < 0)
        fail_msg("%s: %s", err.place, err.message);
    return o;
}

#endif
