/* nodes.c - the file as it grows: values, nodes, encoded attributes, constants. See writer.h. */
#include "compiler/export/proto.h"
#include "compiler/export/writer.h"
#include "compiler/import/onnx_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_KEEP_BYTES = 4096 }; /* constants up to here exist once, and are copied */

/* ---- faults ------------------------------------------------------------------------------------------------------ */

void export_refuse(export_ctx *c, ty_code code, const char *fmt, ...)
{
    char text[400];
    va_list args;
    if (c->failed)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->failed = true;
    ty_error_set(&c->err, code, "%s", text);
    if (c->layer && c->layer[0])
        ty_error_at(&c->err, "%.200s", ty_graph_origin_of(c->g, c->node));
}

void export_cannot_follow(export_ctx *c, const char *fmt, ...)
{
    char text[200];
    va_list args;
    if (c->failed)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    c->failed = c->is_static = true;
    c->why_static =
        c->layer && c->layer[0] ? ty_arena_printf(c->a, "%.100s: %s", c->layer, text) : ty_arena_strdup(c->a, text);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

export_value *export_of(export_ctx *c, ty_val v)
{
    static export_value nothing = {.name = ""};
    if (c->value[v])
        return c->value[v];
    export_refuse(c, TY_E_INTERNAL, "a value is used before it is written");
    return &nothing;
}

export_value *export_operand(export_ctx *c, const export_plan *p, int k)
{
    double number = 0;
    if (!(p->splat >> k & 1))
        return export_of(c, p->in[k]);
    ty_graph_splat_value(c->g, p->in[k], &number);
    return export_number(c, (ty_dtype)export_type(c, p->in[k])->dtype, number);
}

void export_give(export_ctx *c, const export_plan *p, uint32_t result, export_value *v)
{
    c->value[ty_val_make(p->id, result)] = v;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

void export_begin(export_ctx *c, const char *op_type)
{
    c->draft = (export_node){.op_type = op_type, .layer = c->layer ? c->layer : "", .attrs_at = c->attrs.len};
    c->draft_room = 0;
}

void export_use(export_ctx *c, export_value *v)
{
    export_node *n = &c->draft;
    if (n->n_in == c->draft_room) {
        c->draft_room = c->draft_room ? 2 * c->draft_room : 4;
        export_value **in = TY_NEW_ARRAY(c->a, export_value *, c->draft_room);
        if (n->n_in)
            memcpy(in, n->in, sizeof *in * (size_t)n->n_in);
        n->in = in;
    }
    n->in[n->n_in++] = v;
}

/* Trailing inputs that are absent are left out: that is how ONNX says so. */
void export_end_many(export_ctx *c, export_value **out, int n_out)
{
    export_node *n = &c->draft;
    while (n->n_in > 0 && !n->in[n->n_in - 1])
        n->n_in--;
    n->attrs_bytes = c->attrs.len - n->attrs_at;
    n->n_out = n_out;
    n->out = TY_NEW_ARRAY(c->a, export_value *, n_out);
    for (int i = 0; i < n_out; i++) {
        out[i] = n->out[i] = TY_NEW(c->a, export_value);
        out[i]->is_result = true;
    }
    if (c->n_nodes == c->nodes_room) {
        c->nodes_room = c->nodes_room ? 2 * c->nodes_room : 256;
        export_node *nodes = TY_NEW_ARRAY(c->a, export_node, c->nodes_room);
        if (c->n_nodes)
            memcpy(nodes, c->nodes, sizeof *nodes * (size_t)c->n_nodes);
        c->nodes = nodes;
    }
    c->nodes[c->n_nodes++] = *n;
}

export_value *export_end(export_ctx *c)
{
    export_value *out;
    export_end_many(c, &out, 1);
    return out;
}

export_value *export_apply(export_ctx *c, const char *op_type, export_value *x, export_value *y, export_value *z)
{
    export_begin(c, op_type);
    export_use(c, x);
    export_use(c, y);
    export_use(c, z);
    return export_end(c);
}

export_value *export_cast(export_ctx *c, export_value *x, ty_dtype dtype)
{
    export_begin(c, "Cast");
    export_use(c, x);
    export_attr_int(c, "to", onnx_data_type(dtype));
    return export_end(c);
}

export_value *export_permute(export_ctx *c, export_value *x, const int64_t *perm, int n)
{
    export_begin(c, "Transpose");
    export_use(c, x);
    export_attr_ints(c, "perm", perm, n);
    return export_end(c);
}

/* ---- attributes: AttributeProto, field 5 of NodeProto -------------------------------------------------------------
 */

enum { NODE_ATTRIBUTE = 5, ATTR_NAME = 1, ATTR_F, ATTR_I, ATTR_S, ATTR_INTS = 8, ATTR_STRINGS = 9, ATTR_TYPE = 20 };

/* A body that is ready becomes an attribute of the node being built. */
static void nodes_put_attr(export_ctx *c, ty_buf *body, onnx_attr_type type)
{
    ty_proto_int(body, ATTR_TYPE, type);
    ty_proto_message(&c->attrs, NODE_ATTRIBUTE, body);
    ty_buf_fini(body);
}

static ty_buf nodes_begin_attr(const char *name)
{
    ty_buf body;
    ty_buf_init(&body, 1 << 20);
    ty_proto_text(&body, ATTR_NAME, name);
    return body;
}

void export_attr_int(export_ctx *c, const char *name, int64_t v)
{
    ty_buf body = nodes_begin_attr(name);
    ty_proto_int(&body, ATTR_I, v);
    nodes_put_attr(c, &body, ONNX_ATTR_INT);
}

void export_attr_float(export_ctx *c, const char *name, double v)
{
    ty_buf body = nodes_begin_attr(name);
    ty_proto_float(&body, ATTR_F, (float)v);
    nodes_put_attr(c, &body, ONNX_ATTR_FLOAT);
}

void export_attr_text(export_ctx *c, const char *name, const char *v)
{
    ty_buf body = nodes_begin_attr(name);
    ty_proto_text(&body, ATTR_S, v);
    nodes_put_attr(c, &body, ONNX_ATTR_STRING);
}

void export_attr_ints(export_ctx *c, const char *name, const int64_t *v, int n)
{
    ty_buf body = nodes_begin_attr(name);
    for (int i = 0; i < n; i++)
        ty_proto_int(&body, ATTR_INTS, v[i]);
    nodes_put_attr(c, &body, ONNX_ATTR_INTS);
}

void export_attr_texts(export_ctx *c, const char *name, const char *const *v, int n)
{
    ty_buf body = nodes_begin_attr(name);
    for (int i = 0; i < n; i++)
        ty_proto_text(&body, ATTR_STRINGS, v[i]);
    nodes_put_attr(c, &body, ONNX_ATTR_STRINGS);
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

static export_value *nodes_add_initializer(export_ctx *c, const ty_type *type, const void *data, int weight)
{
    if (c->n_initializers == c->initializers_room) {
        c->initializers_room = c->initializers_room ? 2 * c->initializers_room : 64;
        export_initializer *list = TY_NEW_ARRAY(c->a, export_initializer, c->initializers_room);
        if (c->n_initializers)
            memcpy(list, c->initializers, sizeof *list * (size_t)c->n_initializers);
        c->initializers = list;
    }
    export_value *v = TY_NEW(c->a, export_value);
    c->initializers[c->n_initializers++] = (export_initializer){v, *type, data, weight};
    return v;
}

/* Type and bytes in base 16: constants that are the same have the same key. */
static const char *nodes_key(export_ctx *c, const ty_type *type, const void *data)
{
    static const char digits[] = "0123456789abcdef";
    char text[160];
    const uint8_t *bytes = data;
    size_t n = ty_type_bytes(type), len = strlen(ty_type_text(type, text, sizeof text));
    char *key = ty_arena_alloc(c->a, len + 2 * n + 1);
    memcpy(key, text, len);
    for (size_t i = 0; i < n; i++) {
        key[len + 2 * i] = digits[bytes[i] >> 4];
        key[len + 2 * i + 1] = digits[bytes[i] & 15];
    }
    return key;
}

/* An integer or frozen weight that was taken as a constant keeps its name. */
static int nodes_weight_of(const export_ctx *c, const ty_type *type, const void *data)
{
    size_t n = ty_type_bytes(type);
    for (int i = 0; i < ty_model_n_weights(c->m); i++) {
        const ty_model_value *w = ty_model_weight(c->m, i);
        if (!w->data || w->dtype != type->dtype || w->rank != type->rank ||
            memcmp(w->dim, type->dim, sizeof *w->dim * (size_t)w->rank) != 0)
            continue;
        if (w->data == data || (n <= NODES_KEEP_BYTES && n > 0 && memcmp(w->data, data, n) == 0))
            return i;
    }
    return -1;
}

static int nodes_find_weight(const export_ctx *c, int weight)
{
    for (int i = 0; i < c->n_initializers && weight >= 0; i++)
        if (c->initializers[i].weight == weight)
            return i;
    return -1;
}

export_value *export_const(export_ctx *c, const ty_type *type, const void *data)
{
    size_t n = ty_type_bytes(type);
    const char *key = n <= NODES_KEEP_BYTES ? nodes_key(c, type, data) : NULL;
    int at = key ? ty_names_find(&c->by_content, key) : -1;
    if (at < 0 && !key) /* by address */
        for (int i = 0; i < c->n_initializers && at < 0; i++)
            if (c->initializers[i].data == data && ty_type_same(&c->initializers[i].type, type))
                at = i;
    if (at >= 0)
        return c->initializers[at].value;
    export_value *v = nodes_add_initializer(c, type, key ? ty_arena_copy(c->a, data, n) : data, -1);
    if (key)
        ty_names_put(&c->by_content, key, c->n_initializers - 1);
    return v;
}

export_value *export_weight(export_ctx *c, int weight, const ty_type *type)
{
    const ty_model_value *w = ty_model_weight(c->m, weight);
    int at = nodes_find_weight(c, weight);
    if (at >= 0)
        return c->initializers[at].value;
    if (!w->data)
        export_refuse(c, TY_E_CONFIG, "weight \"%s\" has no values yet", w->name);
    export_value *v = nodes_add_initializer(c, type, w->data, weight);
    v->name = w->name;
    return v;
}

/* Of a const node: a weight's bytes or a constant. */
export_value *export_const_or_weight(export_ctx *c, const ty_type *type, const void *data)
{
    int weight = nodes_weight_of(c, type, data);
    return weight >= 0 ? export_weight(c, weight, type) : export_const(c, type, data);
}

export_value *export_ints(export_ctx *c, const int64_t *v, int n)
{
    ty_type type = ty_type_make(TY_I64, 1, (int64_t[]){n});
    return export_const(c, &type, v);
}

export_value *export_int(export_ctx *c, int64_t v)
{
    ty_type type = ty_type_scalar(TY_I64);
    return export_const(c, &type, &v);
}

/* One element of a dtype. */
static size_t nodes_encode(ty_dtype dtype, double v, uint8_t *out)
{
    int64_t i = dtype == TY_BOOL ? v != 0 : ty_dtype_is_float(dtype) ? 0 : (int64_t)v;
    float f = (float)v;
    uint16_t half = dtype == TY_F16 ? ty_f64_to_f16(v) : ty_f32_to_bf16(f);
    const void *from = &i;
    if (dtype == TY_F64)
        from = &v;
    else if (dtype == TY_F32)
        from = &f;
    else if (ty_dtype_is_float(dtype))
        from = &half;
    memcpy(out, from, ty_dtype_bytes(dtype)); /* little-endian */
    return ty_dtype_bytes(dtype);
}

export_value *export_number(export_ctx *c, ty_dtype dtype, double v)
{
    uint8_t bytes[8];
    ty_type type = ty_type_scalar(dtype);
    nodes_encode(dtype, v, bytes);
    return export_const(c, &type, bytes);
}

export_value *export_fill(export_ctx *c, ty_dtype dtype, int rank, const int64_t *dim, double v)
{
    uint8_t bytes[8];
    ty_type type = ty_type_make(dtype, rank, dim);
    size_t each = nodes_encode(dtype, v, bytes), n = ty_type_bytes(&type);
    uint8_t *data = ty_arena_alloc(c->a, n + 1);
    for (size_t at = 0; at < n; at += each)
        memcpy(data + at, bytes, each);
    return export_const(c, &type, data);
}
