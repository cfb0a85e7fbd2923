/* onnx_read.c - the field tables of onnx.proto and the opening of a model.
 *
 * Field numbers: onnx/onnx.proto of ONNX 1.22. Only what the importer needs is in the tables; the rest is skipped.
 */
#include "base/ahead.h"
#include "compiler/import/names.h"
#include "compiler/import/onnx_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONNX_HIDDEN (-1e9f) /* what is added to a score that shall not count */

/* Memory for the parsed tree; weights are not part of it. */
enum { MAX_TREE_BYTES = 1 << 30 };

#define FIELD(number, KIND, STRUCT, member)                                \
    {                                                                      \
        number, TY_WIRE_##KIND, offsetof(STRUCT, member), #member, NULL, 0 \
    }
#define SUB(number, KIND, STRUCT, member, msg)                             \
    {                                                                      \
        number, TY_WIRE_##KIND, offsetof(STRUCT, member), #member, &msg, 0 \
    }
#define SEEN(number, KIND, STRUCT, member, seen)                                                \
    {                                                                                           \
        number, TY_WIRE_##KIND, offsetof(STRUCT, member), #member, NULL, offsetof(STRUCT, seen) \
    }
#define SUBSEEN(number, KIND, STRUCT, member, msg, seen)                                        \
    {                                                                                           \
        number, TY_WIRE_##KIND, offsetof(STRUCT, member), #member, &msg, offsetof(STRUCT, seen) \
    }
#define MESSAGE(text, STRUCT, fields)                                       \
    {                                                                       \
        text, sizeof(STRUCT), fields, TY_WIRE_COUNT(fields), TY_WIRE_NO_RAW \
    }

static const ty_wire_field pair_fields[] = {
    FIELD(1, TEXT, onnx_pair, key),
    FIELD(2, TEXT, onnx_pair, value),
};
static const ty_wire_message pair_message = MESSAGE("StringStringEntryProto", onnx_pair, pair_fields);

static const ty_wire_field tensor_fields[] = {
    FIELD(1, INTS, onnx_tensor, dims),
    FIELD(2, INT, onnx_tensor, data_type),
    FIELD(4, FIXED32S, onnx_tensor, float_data),
    FIELD(5, INTS, onnx_tensor, int32_data),
    FIELD(6, BYTESES, onnx_tensor, string_data),
    FIELD(7, INTS, onnx_tensor, int64_data),
    FIELD(8, TEXT, onnx_tensor, name),
    SEEN(9, BYTES, onnx_tensor, raw, has_raw),
    FIELD(10, FIXED64S, onnx_tensor, double_data),
    FIELD(11, INTS, onnx_tensor, uint64_data),
    SUB(13, SUBS, onnx_tensor, external, pair_message),
    FIELD(14, INT, onnx_tensor, location),
};
const ty_wire_message onnx_tensor_message = MESSAGE("TensorProto", onnx_tensor, tensor_fields);

static const ty_wire_message graph_message;

static const ty_wire_field attr_fields[] = {
    FIELD(1, TEXT, onnx_attr, name),
    SEEN(2, FLOAT, onnx_attr, f, has_f),
    SEEN(3, INT, onnx_attr, i, has_i),
    SEEN(4, BYTES, onnx_attr, s, has_s),
    SUB(5, SUB, onnx_attr, t, onnx_tensor_message),
    SUB(6, SUB, onnx_attr, g, graph_message),
    FIELD(7, FIXED32S, onnx_attr, floats),
    FIELD(8, INTS, onnx_attr, ints),
    FIELD(9, BYTESES, onnx_attr, strings),
    FIELD(20, INT, onnx_attr, type),
    FIELD(21, TEXT, onnx_attr, ref),
};
static const ty_wire_message attr_message = MESSAGE("AttributeProto", onnx_attr, attr_fields);

static const ty_wire_field node_fields[] = {
    FIELD(1, TEXTS, onnx_node, inputs),
    FIELD(2, TEXTS, onnx_node, outputs),
    FIELD(3, TEXT, onnx_node, name),
    FIELD(4, TEXT, onnx_node, op_type),
    SUB(5, SUBS, onnx_node, attrs, attr_message),
    FIELD(7, TEXT, onnx_node, domain),
    FIELD(8, TEXT, onnx_node, overload),
    SUB(9, SUBS, onnx_node, metadata, pair_message),
};
static const ty_wire_message node_message = MESSAGE("NodeProto", onnx_node, node_fields);

static const ty_wire_field dim_fields[] = {
    SEEN(1, INT, onnx_shape_dim, value, has_value),
    FIELD(2, TEXT, onnx_shape_dim, param),
};
static const ty_wire_message dim_message = MESSAGE("Dimension", onnx_shape_dim, dim_fields);

static const ty_wire_field shape_fields[] = {SUB(1, SUBS, onnx_shape, dims, dim_message)};
static const ty_wire_message shape_message = MESSAGE("TensorShapeProto", onnx_shape, shape_fields);

static const ty_wire_field tensor_type_fields[] = {
    FIELD(1, INT, onnx_tensor_type, elem_type),
    SUB(2, SUB, onnx_tensor_type, shape, shape_message),
};
static const ty_wire_message tensor_type_message = MESSAGE("TypeProto.Tensor", onnx_tensor_type, tensor_type_fields);

static const ty_wire_field type_fields[] = {SUB(1, SUB, onnx_type, tensor, tensor_type_message)};
static const ty_wire_message type_message = MESSAGE("TypeProto", onnx_type, type_fields);

static const ty_wire_field value_info_fields[] = {
    FIELD(1, TEXT, onnx_value_info, name),
    SUB(2, SUB, onnx_value_info, type, type_message),
    SUB(4, SUBS, onnx_value_info, metadata, pair_message),
};
static const ty_wire_message value_info_message = MESSAGE("ValueInfoProto", onnx_value_info, value_info_fields);

static const ty_wire_field graph_fields[] = {
    SUB(1, SUBS, onnx_graph, nodes, node_message),
    FIELD(2, TEXT, onnx_graph, name),
    SUB(5, SUBS, onnx_graph, initializers, onnx_tensor_message),
    SUB(11, SUBS, onnx_graph, inputs, value_info_message),
    SUB(12, SUBS, onnx_graph, outputs, value_info_message),
    SUB(13, SUBS, onnx_graph, values, value_info_message),
    FIELD(15, BYTESES, onnx_graph, sparse),
};
static const ty_wire_message graph_message = MESSAGE("GraphProto", onnx_graph, graph_fields);

static const ty_wire_field opset_fields[] = {
    FIELD(1, TEXT, onnx_opset, domain),
    FIELD(2, INT, onnx_opset, version),
};
static const ty_wire_message opset_message = MESSAGE("OperatorSetIdProto", onnx_opset, opset_fields);

static const ty_wire_field function_fields[] = {
    FIELD(1, TEXT, onnx_function, name),
    FIELD(4, TEXTS, onnx_function, inputs),
    FIELD(5, TEXTS, onnx_function, outputs),
    FIELD(6, TEXTS, onnx_function, attr_names),
    SUB(7, SUBS, onnx_function, nodes, node_message),
    SUB(9, SUBS, onnx_function, opsets, opset_message),
    FIELD(10, TEXT, onnx_function, domain),
    SUB(11, SUBS, onnx_function, attr_defaults, attr_message),
    FIELD(13, TEXT, onnx_function, overload),
};
static const ty_wire_message function_message = MESSAGE("FunctionProto", onnx_function, function_fields);

static const ty_wire_field model_fields[] = {
    FIELD(1, INT, onnx_model, ir_version),           FIELD(2, TEXT, onnx_model, producer),
    FIELD(3, TEXT, onnx_model, producer_version),    SUB(7, SUB, onnx_model, graph, graph_message),
    SUB(8, SUBS, onnx_model, opsets, opset_message), SUB(25, SUBS, onnx_model, functions, function_message),
};
const ty_wire_message onnx_model_message = MESSAGE("ModelProto", onnx_model, model_fields);

/* ---- names and versions -------------------------------------------------------------------------------------------
 */

bool onnx_domain_same(const char *a, const char *b)
{
    a = strcmp(a, "ai.onnx") == 0 ? "" : a;
    b = strcmp(b, "ai.onnx") == 0 ? "" : b;
    return strcmp(a, b) == 0;
}

bool onnx_is_op(const onnx_node *node, const char *op)
{
    return onnx_domain_same(node->domain, "") && strcmp(node->op_type, op) == 0;
}

int64_t onnx_opset_of(const ty_wire_list *opsets, const char *domain)
{
    for (size_t i = 0; i < opsets->n; i++)
        if (onnx_domain_same(ONNX_AT(*opsets, onnx_opset, i)->domain, domain))
            return ONNX_AT(*opsets, onnx_opset, i)->version;
    return -1;
}

const char *onnx_short(const char *name, char *out)
{
    enum { SHOWN = 120, HALF = (SHOWN - 3) / 2 };
    size_t n = strlen(name);
    if (n <= SHOWN)
        memcpy(out, name, n + 1);
    else {
        memcpy(out, name, HALF);
        memcpy(out + HALF, "...", 3);
        memcpy(out + HALF + 3, name + n - HALF, HALF + 1);
    }
    return out;
}

const char *onnx_value_text(const ty_onnx_value *v, char *out, size_t n)
{
    size_t len = (size_t)snprintf(out, n, "%s", onnx_data_type_text(onnx_data_type(v->dtype)));
    if (v->rank < 0)
        return out;
    for (int i = 0; i < v->rank && len < n; i++) {
        const char *comma = i ? ", " : " [";
        if (v->dim[i] >= 0)
            len += (size_t)snprintf(out + len, n - len, "%s%lld", comma, (long long)v->dim[i]);
        else
            len += (size_t)snprintf(out + len, n - len, "%s%.20s", comma, v->dim_name[i] ? v->dim_name[i] : "?");
    }
    if (len < n)
        snprintf(out + len, n - len, "%s", v->rank ? "]" : " []");
    return out;
}

/* ---- listing ------------------------------------------------------------------------------------------------------
 */

static int list_shape(ty_onnx *m, const onnx_shape *shape, ty_onnx_value *v, ty_error *err)
{
    char name[128];
    if (shape->dims.n > TY_MAX_RANK)
        return ty_error_set(err, TY_E_UNSUPPORTED, "\"%s\" has %zu dimensions; at most %d are possible",
                            onnx_short(v->name, name), shape->dims.n, TY_MAX_RANK),
               ty_error_at(err, "%s", m->name);
    v->rank = (int)shape->dims.n;
    for (int i = 0; i < v->rank; i++) {
        const onnx_shape_dim *d = ONNX_AT(shape->dims, onnx_shape_dim, i);
        v->dim[i] = d->has_value && d->value >= 0 ? d->value : -1;
        v->dim_name[i] = v->dim[i] < 0 && d->param[0] ? d->param : NULL;
    }
    return 0;
}

static int list_value(ty_onnx *m, const onnx_value_info *info, ty_onnx_value *v, ty_error *err)
{
    *v = (ty_onnx_value){.name = info->name, .dtype = TY_N_DTYPES, .rank = -1};
    if (!info->type || !info->type->tensor)
        return 0;
    v->dtype = onnx_dtype(info->type->tensor->elem_type);
    return info->type->tensor->shape ? list_shape(m, info->type->tensor->shape, v, err) : 0;
}

static int list_inputs(ty_onnx *m, ty_error *err)
{
    const onnx_graph *graph = m->tree.graph;
    m->inputs = TY_NEW_ARRAY(&m->arena, ty_onnx_value, graph->inputs.n);
    m->input_at = TY_NEW_ARRAY(&m->arena, int, graph->inputs.n);
    for (size_t i = 0; i < graph->inputs.n; i++) {
        const onnx_value_info *info = ONNX_AT(graph->inputs, onnx_value_info, i);
        if (ty_names_find(&m->by_name, info->name) >= 0)
            continue;
        m->input_at[m->n_inputs] = (int)i;
        if (list_value(m, info, &m->inputs[m->n_inputs++], err) < 0)
            return -1;
    }
    m->outputs = TY_NEW_ARRAY(&m->arena, ty_onnx_value, graph->outputs.n);
    for (size_t i = 0; i < graph->outputs.n; i++)
        if (list_value(m, ONNX_AT(graph->outputs, onnx_value_info, i), &m->outputs[m->n_outputs++], err) < 0)
            return -1;
    return 0;
}

static int list_initializers(ty_onnx *m, ty_error *err)
{
    const onnx_graph *graph = m->tree.graph;
    m->n_initializers = (int)graph->initializers.n;
    m->initializers = TY_NEW_ARRAY(&m->arena, ty_onnx_initializer, m->n_initializers);
    for (int i = 0; i < m->n_initializers; i++) {
        const onnx_tensor *t = ONNX_AT(graph->initializers, onnx_tensor, i);
        ty_onnx_initializer *init = &m->initializers[i];
        char name[128];
        init->name = t->name;
        if (onnx_tensor_value(m, &m->arena, t, &init->type, &init->data, err) < 0)
            return ty_error_at(err, "%s: graph \"%s\", initializer #%d \"%s\"", m->name, graph->name, i,
                               onnx_short(t->name, name));
        if (ty_names_find(&m->by_name, t->name) >= 0)
            return ty_error_set(err, TY_E_MODEL_FILE, "two initializers are called \"%s\"", onnx_short(t->name, name)),
                   ty_error_at(err, "%s", m->name);
        ty_names_put(&m->by_name, t->name, i);
    }
    return 0;
}

/* Some exporters say what an initializer is: TY_ONNX_KIND_KEY. */
static void mark_initializers(ty_onnx *m)
{
    const onnx_graph *graph = m->tree.graph;
    for (size_t i = 0; i < graph->values.n; i++) {
        const onnx_value_info *info = ONNX_AT(graph->values, onnx_value_info, i);
        int at = ty_names_find(&m->by_name, info->name);
        for (size_t k = 0; at >= 0 && k < info->metadata.n; k++) {
            const onnx_pair *pair = ONNX_AT(info->metadata, onnx_pair, k);
            if (strcmp(pair->key, TY_ONNX_KIND_KEY) != 0)
                continue;
            if (strcmp(pair->value, "PARAMETER") == 0)
                m->initializers[at].mark = TY_ONNX_PARAMETER;
            else if (strcmp(pair->value, "USER_INPUT") != 0)
                m->initializers[at].mark = TY_ONNX_BUFFER;
        }
    }
}

/* A table that hides scores: 0, or so low that nothing is left of what it is added to. Weights differ within the first
 * elements. */
static bool mark_is_mask(const ty_onnx_initializer *w)
{
    int64_t n = ty_type_elems(&w->type);
    bool hides = false;
    for (int64_t i = 0; w->data && i < n; i++) {
        float v;
        memcpy(&v, (const char *)w->data + (size_t)i * sizeof v, sizeof v);
        if (v != 0 && !(v <= ONNX_HIDDEN))
            return false;
        hides = hides || v != 0;
    }
    return hides;
}

/* Where the exporter says of parameters that they are, single numbers and masks of which it says nothing are constants
 * that it made itself. (Not so larger tables: a weight that it transposed loses its mark.) */
static void mark_constants(ty_onnx *m)
{
    bool says = false;
    for (int i = 0; i < m->n_initializers && !says; i++)
        says = m->initializers[i].mark == TY_ONNX_PARAMETER;
    for (int i = 0; i < m->n_initializers && says; i++) {
        ty_onnx_initializer *w = &m->initializers[i];
        if (w->mark == TY_ONNX_UNMARKED && (w->type.rank == 0 || (w->type.dtype == TY_F32 && mark_is_mask(w))))
            w->mark = TY_ONNX_BUFFER;
    }
}

/* The initializer that a value is, or that was cast to it; -1: none. */
static int mark_source(const ty_onnx *m, const char *name)
{
    const onnx_graph *graph = m->tree.graph;
    int at = ty_names_find(&m->by_name, name);
    for (size_t i = 0; at < 0 && i < graph->nodes.n; i++) {
        const onnx_node *node = ONNX_AT(graph->nodes, onnx_node, i);
        if (strcmp(node->op_type, "Cast") == 0 && node->inputs.n == 1 && node->outputs.n == 1 &&
            strcmp(ONNX_TEXT(node->outputs, 0), name) == 0)
            at = ty_names_find(&m->by_name, ONNX_TEXT(node->inputs, 0));
    }
    return at;
}

/* The window of a spectrum is no weight, though the tracing exporter writes it as one. */
static void mark_windows(ty_onnx *m)
{
    const onnx_graph *graph = m->tree.graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const onnx_node *node = ONNX_AT(graph->nodes, onnx_node, i);
        if (strcmp(node->op_type, "STFT") != 0 || node->inputs.n < 3)
            continue;
        int at = mark_source(m, ONNX_TEXT(node->inputs, 2));
        if (at >= 0 && m->initializers[at].mark == TY_ONNX_UNMARKED)
            m->initializers[at].mark = TY_ONNX_BUFFER;
    }
}

static void mark_running(ty_onnx *m)
{
    const onnx_graph *graph = m->tree.graph;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const onnx_node *node = ONNX_AT(graph->nodes, onnx_node, i);
        if (strcmp(node->op_type, "BatchNormalization") != 0)
            continue;
        for (size_t k = 3; k < 5 && k < node->inputs.n; k++) {
            int at = ty_names_find(&m->by_name, ONNX_TEXT(node->inputs, k));
            if (at >= 0)
                m->initializers[at].is_running = true;
        }
    }
}

static int list_model(ty_onnx *m, ty_error *err)
{
    char name[128];
    if (!m->tree.graph)
        return ty_error_set(err, TY_E_MODEL_FILE, "this is no ONNX model: it has no graph"),
               ty_error_at(err, "%s", m->name);
    if (m->tree.opsets.n == 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "the model does not say which operator set it uses"),
               ty_error_at(err, "%s", m->name);
    if (m->tree.graph->sparse.n > 0)
        return ty_error_set(err, TY_E_UNSUPPORTED, "graph \"%s\" has sparse initializers; dense ones are needed",
                            onnx_short(m->tree.graph->name, name)),
               ty_error_at(err, "%s", m->name);
    ty_names_init(&m->by_name, &m->arena);
    if (list_initializers(m, err) < 0)
        return -1;
    onnx_part_merged(m);
    if (list_inputs(m, err) < 0)
        return -1;
    mark_initializers(m);
    mark_windows(m);
    mark_constants(m);
    mark_running(m);
    return 0;
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

static int map_file(const char *path, onnx_file *map, ty_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        return ty_error_errno(err, TY_E_NONE, saved, "cannot open model %s", path);
    }
    int rc = 0;
    if (!S_ISREG(st.st_mode))
        rc = ty_error_set(err, TY_E_MODEL_FILE, "%s is not a regular file", path);
    else if (st.st_size == 0)
        rc = ty_error_set(err, TY_E_MODEL_FILE, "%s is empty", path);
    else if (st.st_size > INT32_MAX)
        rc = ty_error_set(err, TY_E_MODEL_FILE, "%s has %lld bytes; an ONNX model file ends at 2 GiB", path,
                          (long long)st.st_size);
    else {
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            rc = ty_error_errno(err, TY_E_NONE, errno, "cannot map model %s", path);
        else
            *map = (onnx_file){data, (size_t)st.st_size, true};
        ty_ahead_read(fd, (size_t)st.st_size); /* the walk over its messages touches a page here and there */
    }
    close(fd);
    return rc;
}

static int open_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(folder);
    return fd;
}

static int read_model(ty_onnx *m, ty_error *err)
{
    if (ty_wire_read(&onnx_model_message, m->bytes, &m->arena, MAX_TREE_BYTES, &m->tree, err) < 0) {
        if (err && err->place[0]) {
            char where[TY_ERROR_PLACE_BYTES];
            memcpy(where, err->place, sizeof where);
            err->place[0] = 0;
            ty_error_at(err, "%s: %.200s", m->name, where);
        } else
            ty_error_at(err, "%s", m->name);
        return ty_error_help(err, "the file is damaged or not an ONNX model; export it again");
    }
    return list_model(m, err);
}

static ty_onnx *new_model(const char *name)
{
    ty_onnx *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    ty_arena_init(&m->arena);
    m->folder = -1;
    m->name = ty_arena_strdup(&m->arena, name);
    onnx_copies_new(m);
    return m;
}

int ty_onnx_open(const char *path, ty_onnx **out, ty_error *err)
{
    ty_onnx *m = new_model(path);
    if (!m)
        return ty_error_set(err, TY_E_LIMIT, "out of memory while opening %s", path);
    int rc = map_file(path, &m->map, err);
    if (rc == 0) {
        m->bytes = (ty_bytes){m->map.data, m->map.n};
        m->folder = open_folder(path);
        rc = read_model(m, err);
    }
    if (m->folder >= 0)
        close(m->folder);
    m->folder = -1;
    if (rc < 0)
        ty_onnx_free(m);
    else
        *out = m;
    return rc;
}

int ty_onnx_open_memory(const char *name, const void *bytes, size_t n, ty_onnx **out, ty_error *err)
{
    ty_onnx *m = new_model(name);
    if (!m)
        return ty_error_set(err, TY_E_LIMIT, "out of memory while opening %s", name);
    m->bytes = (ty_bytes){bytes, n};
    int rc = read_model(m, err);
    if (rc < 0)
        ty_onnx_free(m);
    else
        *out = m;
    return rc;
}

static void drop_pages(const onnx_file *file)
{
    if (file->is_mapped)
        madvise((void *)(uintptr_t)file->data, file->n, MADV_DONTNEED);
}

void ty_onnx_drop_pages(const ty_onnx *m)
{
    drop_pages(&m->map);
    for (int i = 0; i < m->n_externals; i++)
        drop_pages(&m->externals[i]);
}

void ty_onnx_free(ty_onnx *m)
{
    if (!m)
        return;
    onnx_external_close(m);
    onnx_copies_free(m);
    if (m->map.is_mapped)
        munmap((void *)(uintptr_t)m->map.data, m->map.n);
    ty_arena_fini(&m->arena);
    free(m);
}

/* ---- what is in it ------------------------------------------------------------------------------------------------
 */

int64_t ty_onnx_opset(const ty_onnx *m)
{
    return onnx_opset_of(&m->tree.opsets, "");
}

int64_t ty_onnx_ir_version(const ty_onnx *m)
{
    return m->tree.ir_version;
}

const char *ty_onnx_producer(const ty_onnx *m)
{
    return m->tree.producer;
}

int64_t ty_onnx_n_nodes(const ty_onnx *m)
{
    return (int64_t)m->tree.graph->nodes.n;
}

int ty_onnx_n_inputs(const ty_onnx *m)
{
    return m->n_inputs;
}

const ty_onnx_value *ty_onnx_input(const ty_onnx *m, int i)
{
    return &m->inputs[i];
}

int ty_onnx_n_outputs(const ty_onnx *m)
{
    return m->n_outputs;
}

const ty_onnx_value *ty_onnx_output(const ty_onnx *m, int i)
{
    return &m->outputs[i];
}

int ty_onnx_n_initializers(const ty_onnx *m)
{
    return m->n_initializers;
}

int ty_onnx_n_merged(const ty_onnx *m)
{
    return m->n_parted;
}

const ty_onnx_initializer *ty_onnx_initializer_at(const ty_onnx *m, int i)
{
    return &m->initializers[i];
}

int ty_onnx_find_initializer(const ty_onnx *m, const char *name)
{
    return ty_names_find(&m->by_name, name);
}
