/* front.c - see front.h. Nothing of the file is parsed into a tree and encoded again: its fields are passed on as they
 * lie, nodes come first, and of replaced inputs the declaration changes. */
#define _GNU_SOURCE /* memmem */
#include "compiler/export/front.h"

#include "compiler/export/proto.h"
#include "compiler/import/onnx_tree.h"

#include "base/file.h"

#include <limits.h>
#include <string.h>

enum { MODEL_GRAPH = 7, MODEL_OPSET = 8, OPSET_DOMAIN = 1, OPSET_VERSION };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11 };
enum { NODE_INPUT = 1, NODE_OUTPUT, NODE_NAME, NODE_OP_TYPE, NODE_ATTRIBUTE, NODE_DOMAIN = 7 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE, TENSOR_NAME = 8, TENSOR_RAW };
enum { INFO_NAME = 1, INFO_TYPE, TYPE_TENSOR = 1, TYPE_ELEM = 1, TYPE_SHAPE, SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM };
enum { ATTR_NAME = 1, ATTR_INT = 3, ATTR_INTS = 8, ATTR_STRINGS = 9, ATTR_TYPE = 20 };
enum { ATTR_IS_INT = 2, ATTR_IS_INTS = 7, ATTR_IS_STRINGS = 8, DATA_STRING = 8, COUNTED = 2 };
enum { FRONT_ML_VERSION = 2, FRONT_MAX_BYTES = 1 << 30 };

typedef struct front_file {
    const ty_onnx *m;
    const ty_onnx_front *fronts;
    int n;
    ty_arena *a;
    ty_buf nodes, initializers, before; /* before: what the model's own fields are to be followed by */
    ty_buf *info;                       /* [n]: the raw inputs' declarations */
    ty_file_writer *w;                  /* NULL: only count */
    uint64_t n_bytes;
    ty_error *err;
} front_file;

/* The input that is being made. */
typedef struct front_maker {
    front_file *file;
    const ty_onnx_front *f;
    const char *raw; /* its name, which those of all values here begin with */
    const char *at;  /* the value so far */
    int rank;        /* of it, with the batch */
    int n_values;
    ty_buf attrs; /* of the next node */
} front_maker;

/* ---- constants, nodes -------------------------------------------------------------------------------------------- */

static const char *front_name(front_maker *k, const char *what)
{
    return ty_arena_printf(k->file->a, "%s/%s_%d", k->raw, what, k->n_values++);
}

/* n < 0: a scalar. */
static const char *front_const(front_maker *k, ty_dtype dtype, const void *data, int64_t n)
{
    const char *name = front_name(k, "constant");
    ty_buf tensor;
    ty_buf_init(&tensor, FRONT_MAX_BYTES);
    if (n >= 0)
        ty_proto_int(&tensor, TENSOR_DIMS, n);
    ty_proto_int(&tensor, TENSOR_TYPE, onnx_data_type(dtype));
    ty_proto_text(&tensor, TENSOR_NAME, name);
    ty_proto_bytes(&tensor, TENSOR_RAW, data, (size_t)(n < 0 ? 1 : n) * ty_dtype_bytes(dtype));
    ty_proto_message(&k->file->initializers, GRAPH_INITIALIZER, &tensor);
    ty_buf_fini(&tensor);
    return name;
}

static const char *front_number(front_maker *k, double v)
{
    return front_const(k, TY_F64, &v, -1);
}

static const char *front_int(front_maker *k, int64_t v)
{
    return front_const(k, TY_I64, &v, -1);
}

/* One number as a scalar, so that it fits all values of a sample. */
static const char *front_numbers(front_maker *k, const double *v, int64_t n)
{
    return front_const(k, TY_F64, v, n == 1 ? -1 : n);
}

static void front_attr(front_maker *k, const ty_buf *attr)
{
    ty_proto_message(&k->attrs, NODE_ATTRIBUTE, attr);
}

static void front_attr_int(front_maker *k, const char *name, int64_t v)
{
    ty_buf attr;
    ty_buf_init(&attr, 1 << 10);
    ty_proto_text(&attr, ATTR_NAME, name);
    ty_proto_int(&attr, ATTR_INT, v);
    ty_proto_int(&attr, ATTR_TYPE, ATTR_IS_INT);
    front_attr(k, &attr);
    ty_buf_fini(&attr);
}

/* A node of the standard's operators with up to three inputs; the others NULL. out: NULL: a name of its own. */
static const char *front_node(front_maker *k, const char *domain, const char *op, const char *const in[3],
                              const char *out)
{
    ty_buf node;
    out = out ? out : front_name(k, op);
    ty_buf_init(&node, FRONT_MAX_BYTES);
    for (int i = 0; i < 3 && in[i]; i++)
        ty_proto_text(&node, NODE_INPUT, in[i]);
    ty_proto_text(&node, NODE_OUTPUT, out);
    ty_proto_text(&node, NODE_NAME, ty_arena_printf(k->file->a, "%s:%s", out, op));
    ty_proto_text(&node, NODE_OP_TYPE, op);
    ty_buf_add(&node, k->attrs.data, k->attrs.len);
    node.failed |= k->attrs.failed;
    if (*domain)
        ty_proto_text(&node, NODE_DOMAIN, domain);
    ty_proto_message(&k->file->nodes, GRAPH_NODE, &node);
    ty_buf_fini(&node);
    ty_buf_clear(&k->attrs);
    return out;
}

static const char *front_apply(front_maker *k, const char *op, const char *x, const char *y, const char *z)
{
    return front_node(k, "", op, (const char *const[3]){x, y, z}, NULL);
}

static const char *front_cast(front_maker *k, const char *x, ty_dtype dtype, const char *out)
{
    front_attr_int(k, "to", onnx_data_type(dtype));
    return front_node(k, "", "Cast", (const char *const[3]){x}, out);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void front_scale(front_maker *k)
{
    const ty_onnx_front *f = k->f;
    if (f->fill) {
        const char *is_missing = front_apply(k, "IsNaN", k->at, NULL, NULL);
        k->at = front_apply(k, "Where", is_missing, front_numbers(k, f->fill, f->n_fill), k->at);
    }
    if (f->scale != 1 || f->offset != 0) {
        k->at = front_apply(k, "Mul", k->at, front_number(k, f->scale), NULL);
        k->at = front_apply(k, "Add", k->at, front_number(k, f->offset), NULL);
    }
    if (f->is_clipped)
        k->at = front_apply(k, "Clip", k->at, front_number(k, f->low), front_number(k, f->high));
    if (f->log1p)
        k->at = front_apply(k, "Log", front_apply(k, "Add", k->at, front_number(k, 1), NULL), NULL, NULL);
    if (f->shift) {
        k->at = front_apply(k, "Sub", k->at, front_numbers(k, f->shift, f->n_stats), NULL);
        k->at = front_apply(k, "Div", k->at, front_numbers(k, f->divisor, f->n_stats), NULL);
    }
}

/* How many boundaries are at most v. NaN is below none of them. */
static void front_bucket(front_maker *k)
{
    const int64_t last = -1;
    const char *v = k->at, *axis = front_const(k, TY_I64, &last, 1);
    const char *wide = front_apply(k, "Unsqueeze", v, axis, NULL);
    const char *bounds = front_const(k, TY_F64, k->f->boundary, k->f->n_boundaries);
    const char *above = front_cast(k, front_apply(k, "GreaterOrEqual", wide, bounds, NULL), TY_I64, NULL);
    front_attr_int(k, "keepdims", 0);
    k->at = front_apply(k, "ReduceSum", above, axis, NULL);
    if (!k->f->fill)
        k->at = front_apply(k, "Where", front_apply(k, "IsNaN", v, NULL, NULL), front_int(k, k->f->n_boundaries + 1),
                            k->at);
}

static int64_t front_word_id(const ty_onnx_front *f, const char *word)
{
    for (int64_t i = 0; word && i < f->n_words; i++)
        if (strcmp(f->word[i], word) == 0)
            return f->first_id + i;
    return word && f->has_other ? 0 : f->first_id + f->n_words;
}

static void front_words(front_maker *k)
{
    const ty_onnx_front *f = k->f;
    ty_buf keys, values;
    bool has_empty = false;
    ty_buf_init(&keys, FRONT_MAX_BYTES);
    ty_buf_init(&values, FRONT_MAX_BYTES);
    ty_proto_text(&keys, ATTR_NAME, "keys_strings");
    ty_proto_text(&values, ATTR_NAME, "values_int64s");
    for (int64_t i = 0; i < f->n_words; i++) {
        has_empty |= !*f->word[i];
        ty_proto_text(&keys, ATTR_STRINGS, f->word[i]);
        ty_proto_int(&values, ATTR_INTS, f->first_id + i);
    }
    if (!has_empty) {
        ty_proto_text(&keys, ATTR_STRINGS, "");
        ty_proto_int(&values, ATTR_INTS, front_word_id(f, f->fill_text));
    }
    ty_proto_int(&keys, ATTR_TYPE, ATTR_IS_STRINGS);
    ty_proto_int(&values, ATTR_TYPE, ATTR_IS_INTS);
    front_attr(k, &keys);
    front_attr(k, &values);
    front_attr_int(k, "default_int64", f->has_other ? 0 : f->first_id + f->n_words);
    k->at = front_node(k, "ai.onnx.ml", "LabelEncoder", (const char *const[3]){k->at}, NULL);
    ty_buf_fini(&keys);
    ty_buf_fini(&values);
}

static void front_one_hot(front_maker *k)
{
    static const float off_on[] = {0, 1};
    if (!k->f->is_text && !k->f->has_buckets)
        k->at = front_cast(k, k->at, TY_I64, NULL);
    k->at = front_apply(k, "OneHot", k->at, front_int(k, k->f->one_hot), front_const(k, TY_F32, off_on, 2));
}

/* The last node, whose result has the model input's name. */
static void front_finish(front_maker *k, ty_dtype dtype)
{
    const ty_onnx_front *f = k->f;
    int64_t dim[TY_MAX_RANK + 1] = {-1};
    bool same = f->one_hot == 0 && f->row.rank == f->raw_rank;
    for (int i = 0; i < f->row.rank; i++) {
        dim[i + 1] = f->row.dim[i];
        same = same && f->row.dim[i] == f->raw_dim[i];
    }
    if (!same)
        k->at = front_apply(k, "Reshape", k->at, front_const(k, TY_I64, dim, f->row.rank + 1), NULL);
    front_cast(k, k->at, dtype, f->input);
}

/* ---- the raw input ----------------------------------------------------------------------------------------------- */

static bool front_has(ty_bytes graph, const char *text)
{
    return memmem(graph.data, graph.n, text, strlen(text)) != NULL;
}

/* A name that occurs nowhere in the graph, not even as a part of another. */
static const char *front_raw_name(front_file *file, ty_bytes graph, const char *input)
{
    const char *name = ty_arena_printf(file->a, "%s_raw", input);
    while (front_has(graph, name))
        name = ty_arena_printf(file->a, "%s_", name);
    return name;
}

static void front_dim(ty_buf *shape, int64_t size, const char *name)
{
    ty_buf dim;
    ty_buf_init(&dim, 1 << 12);
    if (size >= 0)
        ty_proto_int(&dim, DIM_VALUE, size);
    else
        ty_proto_text(&dim, DIM_PARAM, name ? name : "batch");
    ty_proto_message(shape, SHAPE_DIM, &dim);
    ty_buf_fini(&dim);
}

static void front_declare(const front_maker *k, const ty_onnx_value *v, ty_buf *out)
{
    ty_buf shape, tensor, type, info;
    ty_buf_init(&shape, 1 << 16);
    ty_buf_init(&tensor, 1 << 16);
    ty_buf_init(&type, 1 << 16);
    ty_buf_init(&info, 1 << 17);
    front_dim(&shape, v->rank > 0 ? v->dim[0] : -1, v->rank > 0 ? v->dim_name[0] : NULL);
    for (int i = 0; i < k->f->raw_rank; i++)
        front_dim(&shape, k->f->raw_dim[i], NULL);
    ty_proto_int(&tensor, TYPE_ELEM, k->f->is_text ? DATA_STRING : onnx_data_type(TY_F64));
    ty_proto_message(&tensor, TYPE_SHAPE, &shape);
    ty_proto_message(&type, TYPE_TENSOR, &tensor);
    ty_proto_text(&info, INFO_NAME, k->raw);
    ty_proto_message(&info, INFO_TYPE, &type);
    ty_buf_init(out, 1 << 18);
    ty_proto_message(out, GRAPH_INPUT, &info);
    ty_buf_fini(&info);
    ty_buf_fini(&type);
    ty_buf_fini(&tensor);
    ty_buf_fini(&shape);
}

static const ty_onnx_value *front_find_input(const ty_onnx *m, const char *name)
{
    for (int i = 0; i < m->n_inputs; i++)
        if (strcmp(m->inputs[i].name, name) == 0)
            return &m->inputs[i];
    return NULL;
}

static int front_make(front_file *file, ty_bytes graph, int i)
{
    const ty_onnx_front *f = &file->fronts[i];
    const ty_onnx_value *v = front_find_input(file->m, f->input);
    if (!v || v->dtype == TY_N_DTYPES)
        return ty_error_set(file->err, TY_E_CONFIG, "%s has no input \"%s\" of numbers", file->m->name, f->input);
    front_maker k = {.file = file, .f = f, .raw = front_raw_name(file, graph, f->input)};
    ty_buf_init(&k.attrs, FRONT_MAX_BYTES);
    front_declare(&k, v, &file->info[i]);
    k.at = k.raw;
    if (f->is_text)
        front_words(&k);
    else
        front_scale(&k);
    if (f->has_buckets)
        front_bucket(&k);
    if (f->one_hot > 0)
        front_one_hot(&k);
    front_finish(&k, v->dtype);
    ty_buf_fini(&k.attrs);
    return 0;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int front_put(front_file *file, const void *bytes, size_t n)
{
    file->n_bytes += n;
    return file->w ? ty_file_writer_add(file->w, bytes, n, file->err) : 0;
}

static bool front_is_text(ty_bytes bytes, const char *text)
{
    return bytes.n == strlen(text) && memcmp(bytes.data, text, bytes.n) == 0;
}

/* Field `number` of a message, which is text. */
static bool front_names(ty_bytes message, uint32_t number, const char *text)
{
    ty_wire_item item;
    bool same = false;
    while (ty_wire_next(&message, &item, NULL) > 0)
        if (item.number == number && item.type == COUNTED)
            same = front_is_text(item.body, text);
    return same;
}

static int front_put_graph(front_file *file, ty_bytes graph)
{
    ty_wire_item item;
    int rc = front_put(file, file->nodes.data, file->nodes.len);
    while (rc == 0 && ty_wire_next(&graph, &item, NULL) > 0) {
        const ty_buf *info = NULL;
        for (int i = 0; i < file->n && item.number == GRAPH_INPUT && item.type == COUNTED; i++)
            if (front_names(item.body, INFO_NAME, file->fronts[i].input))
                info = &file->info[i];
        rc = info ? front_put(file, info->data, info->len) : front_put(file, item.whole.data, item.whole.n);
    }
    return rc < 0 ? -1 : front_put(file, file->initializers.data, file->initializers.len);
}

static int front_put_model(front_file *file)
{
    ty_wire_item item;
    uint8_t head[TY_WIRE_HEAD_BYTES];
    int rc = 0;
    for (ty_bytes in = file->m->bytes; rc == 0 && ty_wire_next(&in, &item, NULL) > 0;) {
        if (item.number != MODEL_GRAPH || item.type != COUNTED) {
            rc = front_put(file, item.whole.data, item.whole.n);
            continue;
        }
        front_file counting = *file;
        counting.w = NULL;
        counting.n_bytes = 0;
        front_put_graph(&counting, item.body);
        rc = front_put(file, head, ty_wire_put_head(head, MODEL_GRAPH, counting.n_bytes));
        rc = rc < 0 ? -1 : front_put_graph(file, item.body);
    }
    return rc < 0 ? -1 : front_put(file, file->before.data, file->before.len);
}

/* The graph's bytes; and whether the operators are those of the nodes to come. */
static int front_look(front_file *file, ty_bytes *graph)
{
    ty_wire_item item;
    bool has_ml = false, has_words = false;
    int n = 0;
    for (ty_bytes in = file->m->bytes; ty_wire_next(&in, &item, NULL) > 0;)
        if (item.number == MODEL_GRAPH && item.type == COUNTED) {
            *graph = item.body;
            n++;
        } else if (item.number == MODEL_OPSET && item.type == COUNTED)
            has_ml |= front_names(item.body, OPSET_DOMAIN, "ai.onnx.ml");
    if (n != 1)
        return ty_error_set(file->err, TY_E_UNSUPPORTED, "%s has %d graphs", file->m->name, n);
    if (ty_onnx_opset(file->m) < TY_ONNX_FRONT_MIN_OPSET)
        return ty_error_set(file->err, TY_E_UNSUPPORTED,
                            "%s has operator set %lld, and preprocessing in front of it takes %d or later",
                            file->m->name, (long long)ty_onnx_opset(file->m), TY_ONNX_FRONT_MIN_OPSET);
    for (int i = 0; i < file->n; i++)
        has_words |= file->fronts[i].is_text;
    if (!has_words || has_ml)
        return 0;
    ty_buf opset;
    ty_buf_init(&opset, 1 << 8);
    ty_proto_text(&opset, OPSET_DOMAIN, "ai.onnx.ml");
    ty_proto_int(&opset, OPSET_VERSION, FRONT_ML_VERSION);
    ty_proto_message(&file->before, MODEL_OPSET, &opset);
    ty_buf_fini(&opset);
    return 0;
}

static int front_make_all(front_file *file)
{
    ty_bytes graph = {0};
    if (front_look(file, &graph) < 0)
        return -1;
    bool failed = false;
    for (int i = 0; i < file->n; i++) {
        if (front_make(file, graph, i) < 0)
            return -1;
        failed |= file->info[i].failed;
    }
    front_file counting = *file;
    front_put_model(&counting);
    if (failed || file->nodes.failed || file->initializers.failed || counting.n_bytes > INT_MAX)
        return ty_error_set(file->err, TY_E_LIMIT, "the model with its preprocessing would pass 2 GiB");
    return 0;
}

static int front_write(front_file *file, const char *path)
{
    ty_file_writer w;
    if (ty_file_writer_open(&w, path, 0644, file->err) < 0)
        return -1;
    file->w = &w;
    if (front_put_model(file) < 0) {
        ty_file_writer_abandon(&w);
        return -1;
    }
    return ty_file_writer_commit(&w, file->err);
}

int ty_onnx_write_front(const char *model, const char *path, const ty_onnx_front *fronts, int n, ty_arena *a,
                        ty_error *err)
{
    ty_onnx *m;
    if (ty_onnx_open(model, &m, err) < 0)
        return -1;
    front_file file = {.m = m, .fronts = fronts, .n = n, .a = a, .err = err, .info = TY_NEW_ARRAY(a, ty_buf, n + 1)};
    ty_buf_init(&file.nodes, FRONT_MAX_BYTES);
    ty_buf_init(&file.initializers, FRONT_MAX_BYTES);
    ty_buf_init(&file.before, 1 << 10);
    int rc = front_make_all(&file);
    if (rc == 0)
        rc = front_write(&file, path);
    for (int i = 0; i < n; i++)
        if (file.info[i].data)
            ty_buf_fini(&file.info[i]);
    ty_buf_fini(&file.nodes);
    ty_buf_fini(&file.initializers);
    ty_buf_fini(&file.before);
    ty_onnx_free(m);
    return rc < 0 ? ty_error_at(err, "%s", path) : 0;
}
