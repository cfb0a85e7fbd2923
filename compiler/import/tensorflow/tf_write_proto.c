/* tf_write_proto.c - a graph with other constants.
 *
 * The messages around a Const node's value (file, graph, node, attribute, tensor) get new lengths; everything else is
 * passed on as it lies. Each message is walked once without a sink to learn its length.
 */
#include "compiler/import/tensorflow/tf_write.h"

#include <string.h>

enum { COUNTED = 2 };
enum { MODEL_META = 2, META_GRAPH = 2, GRAPH_NODE = 1, NODE_NAME = 1, NODE_ATTR = 5 };
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2, VALUE_TENSOR = 8, TENSOR_DTYPE = 1, TENSOR_SHAPE = 2, TENSOR_CONTENT = 4 };

typedef struct writer {
    const tf_file *f;
    const void *const *value;
    ty_file_writer *sink; /* NULL: only count */
    uint64_t n;
    const tf_variable *v; /* of the node that is being written */
    const void *data;
    ty_error *err;
} writer;

static int put(writer *w, const void *bytes, size_t n)
{
    w->n += n;
    return w->sink && n ? ty_file_writer_add(w->sink, bytes, n, w->err) : 0;
}

typedef int put_body(writer *w, ty_bytes body);

/* A message of a changed length. */
static int put_message(writer *w, uint32_t number, put_body *fn, ty_bytes body)
{
    uint8_t head[TY_WIRE_HEAD_BYTES];
    writer counting = *w;
    counting.sink = NULL;
    counting.n = 0;
    if (fn(&counting, body) < 0)
        return -1;
    return put(w, head, ty_wire_put_head(head, number, counting.n)) < 0 ? -1 : fn(w, body);
}

/* Type and shape stay; the elements become bytes. */
static int put_tensor(writer *w, ty_bytes body)
{
    uint8_t head[TY_WIRE_HEAD_BYTES];
    ty_wire_item item;
    size_t n = ty_type_bytes(&w->v->type);
    while (ty_wire_next(&body, &item, NULL) > 0)
        if ((item.number == TENSOR_DTYPE || item.number == TENSOR_SHAPE || item.number == 3) &&
            put(w, item.whole.data, item.whole.n) < 0)
            return -1;
    return put(w, head, ty_wire_put_head(head, TENSOR_CONTENT, n)) < 0 ? -1 : put(w, w->data, n);
}

/* All fields of a message as they are, but one that is a message to change. */
static int put_changed(writer *w, ty_bytes body, uint32_t number, put_body *fn)
{
    ty_wire_item item;
    while (ty_wire_next(&body, &item, NULL) > 0)
        if ((item.number == number && item.type == COUNTED ? put_message(w, number, fn, item.body)
                                                           : put(w, item.whole.data, item.whole.n)) < 0)
            return -1;
    return 0;
}

static int put_value(writer *w, ty_bytes body)
{
    return put_changed(w, body, VALUE_TENSOR, put_tensor);
}

static bool field_is(ty_bytes body, uint32_t number, const char *text)
{
    ty_wire_item item;
    while (ty_wire_next(&body, &item, NULL) > 0)
        if (item.number == number && item.type == COUNTED)
            return item.body.n == strlen(text) && memcmp(item.body.data, text, item.body.n) == 0;
    return false;
}

static int put_attr(writer *w, ty_bytes body)
{
    return put_changed(w, body, ENTRY_VALUE, put_value);
}

static int put_const(writer *w, ty_bytes body)
{
    ty_wire_item item;
    while (ty_wire_next(&body, &item, NULL) > 0) {
        bool is_value = item.number == NODE_ATTR && item.type == COUNTED && field_is(item.body, ENTRY_KEY, "value");
        if ((is_value ? put_message(w, NODE_ATTR, put_attr, item.body) : put(w, item.whole.data, item.whole.n)) < 0)
            return -1;
    }
    return 0;
}

static int put_node(writer *w, const tf_raw *raw, const ty_wire_item *item)
{
    if (raw->node.whole.data != item->body.data)
        return ty_error_set(w->err, TY_E_UNSUPPORTED, "a graph that stands in several pieces cannot be written");
    int v = raw->variable;
    if (v < 0 || !w->value[v] || !w->f->variable[v].is_const)
        return put(w, item->whole.data, item->whole.n);
    w->v = &w->f->variable[v];
    w->data = w->value[v];
    return put_message(w, GRAPH_NODE, put_const, item->body);
}

static int put_graph(writer *w, ty_bytes body)
{
    const tf_body *b = w->f->body;
    ty_wire_item item;
    int i = 0;
    while (ty_wire_next(&body, &item, NULL) > 0) {
        bool is_node = item.number == GRAPH_NODE && item.type == COUNTED && i < b->n;
        if ((is_node ? put_node(w, &b->raw[i++], &item) : put(w, item.whole.data, item.whole.n)) < 0)
            return -1;
    }
    return 0;
}

static int put_meta(writer *w, ty_bytes body)
{
    return put_changed(w, body, META_GRAPH, put_graph);
}

static int put_model(writer *w, ty_bytes body)
{
    ty_wire_item item;
    int meta = 0;
    while (ty_wire_next(&body, &item, NULL) > 0) {
        bool is_ours = item.number == MODEL_META && item.type == COUNTED && meta++ == w->f->meta_index;
        if ((is_ours ? put_message(w, MODEL_META, put_meta, item.body) : put(w, item.whole.data, item.whole.n)) < 0)
            return -1;
    }
    return 0;
}

int tf_write_proto(const tf_file *f, const void *const *value, ty_file_writer *sink, ty_error *err)
{
    writer w = {.f = f, .value = value, .err = err};
    put_body *fn = f->kind == TF_SAVED_MODEL ? put_model : f->kind == TF_META_GRAPH ? put_meta : put_graph;
    if (fn(&w, f->bytes) < 0)
        return -1;
    if (w.n > INT32_MAX)
        return ty_error_set(err, TY_E_LIMIT, "the graph would have %llu bytes; a protobuf file ends at 2 GiB",
                            (unsigned long long)w.n);
    w.n = 0;
    w.sink = sink;
    return fn(&w, f->bytes);
}
