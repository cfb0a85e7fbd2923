/* onnx_tensor.c - from TensorProto to bytes.
 *
 * A tensor holds its elements in one of seven ways: raw bytes (used as they lie), one of five typed lists (converted
 * into the arena unless the layout is already ours), or a range of another file. The element count must be what the
 * shape says.
 */
#include "compiler/import/onnx_import.h"

#include <string.h>

typedef enum storage { IN_FLOAT, IN_DOUBLE, IN_INT32, IN_INT64, IN_UINT64 } storage;

/* Rows: TensorProto.DataType numbers. TY_N_DTYPES: known to ONNX, not to us. */
static const struct {
    uint8_t dtype;
    uint8_t list; /* which typed list holds it */
    const char *text;
} data_types[] = {
    [0] = {TY_N_DTYPES, IN_INT32, "undefined"},
    [1] = {TY_F32, IN_FLOAT, "float32"},
    [2] = {TY_U8, IN_INT32, "uint8"},
    [3] = {TY_I8, IN_INT32, "int8"},
    [4] = {TY_U16, IN_INT32, "uint16"},
    [5] = {TY_I16, IN_INT32, "int16"},
    [6] = {TY_I32, IN_INT32, "int32"},
    [7] = {TY_I64, IN_INT64, "int64"},
    [8] = {TY_N_DTYPES, IN_INT32, "string"},
    [9] = {TY_BOOL, IN_INT32, "bool"},
    [10] = {TY_F16, IN_INT32, "float16"},
    [11] = {TY_F64, IN_DOUBLE, "float64"},
    [12] = {TY_U32, IN_UINT64, "uint32"},
    [13] = {TY_U64, IN_UINT64, "uint64"},
    [14] = {TY_N_DTYPES, IN_FLOAT, "complex64"},
    [15] = {TY_N_DTYPES, IN_DOUBLE, "complex128"},
    [16] = {TY_BF16, IN_INT32, "bfloat16"},
    [17] = {TY_N_DTYPES, IN_INT32, "float8e4m3fn"},
    [18] = {TY_N_DTYPES, IN_INT32, "float8e4m3fnuz"},
    [19] = {TY_N_DTYPES, IN_INT32, "float8e5m2"},
    [20] = {TY_N_DTYPES, IN_INT32, "float8e5m2fnuz"},
    [21] = {TY_N_DTYPES, IN_INT32, "uint4"},
    [22] = {TY_N_DTYPES, IN_INT32, "int4"},
    [23] = {TY_N_DTYPES, IN_INT32, "float4e2m1"},
    [24] = {TY_N_DTYPES, IN_INT32, "float8e8m0"},
    [25] = {TY_N_DTYPES, IN_INT32, "uint2"},
    [26] = {TY_N_DTYPES, IN_INT32, "int2"},
};
enum { N_DATA_TYPES = sizeof data_types / sizeof data_types[0] };

ty_dtype onnx_dtype(int64_t data_type)
{
    return data_type < 0 || data_type >= N_DATA_TYPES ? TY_N_DTYPES : (ty_dtype)data_types[data_type].dtype;
}

int64_t onnx_data_type(ty_dtype dtype)
{
    for (int i = 0; i < N_DATA_TYPES; i++)
        if (data_types[i].dtype == dtype)
            return i;
    return 0;
}

const char *onnx_data_type_text(int64_t data_type)
{
    return data_type < 0 || data_type >= N_DATA_TYPES ? "an unknown type" : data_types[data_type].text;
}

static int tensor_type(const onnx_tensor *t, ty_type *type, int64_t *n_elems, ty_error *err)
{
    *type = (ty_type){0};
    if (t->data_type <= 0 || t->data_type >= N_DATA_TYPES)
        return ty_error_set(err, TY_E_MODEL_FILE, "its element type has the unknown number %lld",
                            (long long)t->data_type);
    if (t->dims.n > TY_MAX_RANK)
        return ty_error_set(err, TY_E_UNSUPPORTED, "it has %zu dimensions; at most %d are possible", t->dims.n,
                            TY_MAX_RANK);
    int64_t dim[TY_MAX_RANK];
    for (size_t i = 0; i < t->dims.n; i++)
        dim[i] = ((const int64_t *)t->dims.data)[i];
    ty_dtype dtype = onnx_dtype(t->data_type);
    size_t elem_bytes = dtype == TY_N_DTYPES ? 1 : ty_dtype_bytes(dtype);
    *n_elems = ty_dims_elems_checked((int)t->dims.n, dim, elem_bytes);
    if (*n_elems < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "its dimensions are negative or too large");
    if (dtype == TY_N_DTYPES)
        type->dtype = TY_N_DTYPES;
    else
        *type = ty_type_make(dtype, (int)t->dims.n, dim);
    return 0;
}

/* Keeps the low bytes of each number: what a two's complement cast does. */
static const void *narrow_ints(ty_arena *arena, const ty_wire_list *list, size_t elem_bytes, bool is_bool)
{
    uint8_t *out = ty_arena_alloc(arena, list->n * elem_bytes);
    const int64_t *v = list->data;
    for (size_t i = 0; i < list->n; i++) {
        int64_t one = is_bool ? v[i] != 0 : v[i];
        memcpy(out + i * elem_bytes, &one, elem_bytes);
    }
    return out;
}

static const ty_wire_list *typed_list(const onnx_tensor *t, storage where)
{
    switch (where) {
    case IN_FLOAT:
        return &t->float_data;
    case IN_DOUBLE:
        return &t->double_data;
    case IN_INT64:
        return &t->int64_data;
    case IN_UINT64:
        return &t->uint64_data;
    default:
        return &t->int32_data;
    }
}

static int typed_value(ty_arena *arena, const onnx_tensor *t, const ty_type *type, int64_t n_elems, const void **data,
                       ty_error *err)
{
    storage where = (storage)data_types[t->data_type].list;
    const ty_wire_list *list = typed_list(t, where);
    if ((int64_t)list->n != n_elems)
        return ty_error_set(err, TY_E_MODEL_FILE, "it holds %zu elements where its shape has %lld", list->n,
                            (long long)n_elems);
    if (where == IN_FLOAT || where == IN_DOUBLE || where == IN_INT64 || type->dtype == TY_U64)
        *data = n_elems ? list->data : ty_arena_alloc(arena, 8);
    else
        *data = narrow_ints(arena, list, ty_dtype_bytes(type->dtype), type->dtype == TY_BOOL);
    return 0;
}

/* Bytes above 1 in raw bools would break code that counts on 0 and 1. */
static const void *clean_bools(ty_arena *arena, const uint8_t *data, size_t n)
{
    size_t i = 0;
    while (i < n && data[i] <= 1)
        i++;
    if (i == n)
        return data;
    uint8_t *out = ty_arena_alloc(arena, n);
    for (i = 0; i < n; i++)
        out[i] = data[i] != 0;
    return out;
}

int onnx_tensor_value(ty_onnx *m, ty_arena *arena, const onnx_tensor *t, ty_type *type, const void **data,
                      ty_error *err)
{
    int64_t n_elems = 0;
    *data = NULL;
    if (tensor_type(t, type, &n_elems, err) < 0)
        return -1;
    if (type->dtype == TY_N_DTYPES)
        return 0;
    size_t n_bytes = ty_type_bytes(type);
    if (t->location == 1) {
        if (onnx_external_value(m, t, n_bytes, data, err) < 0)
            return -1;
    } else if (t->has_raw) {
        if (t->raw.n != n_bytes)
            return ty_error_set(err, TY_E_MODEL_FILE, "it holds %zu bytes where its shape needs %zu", t->raw.n,
                                n_bytes);
        *data = t->raw.data;
    } else
        return typed_value(arena, t, type, n_elems, data, err);
    if (type->dtype == TY_BOOL)
        *data = clean_bools(arena, *data, n_bytes);
    return 0;
}

int ty_onnx_read_tensor(const void *bytes, size_t n, ty_arena *arena, ty_tensor *tensor, ty_error *err)
{
    onnx_tensor *t = TY_NEW(arena, onnx_tensor);
    const void *data;
    if (ty_wire_read(&onnx_tensor_message, (ty_bytes){bytes, n}, arena, (size_t)1 << 30, t, err) < 0 ||
        onnx_tensor_value(NULL, arena, t, &tensor->type, &data, err) < 0)
        return -1;
    if (tensor->type.dtype == TY_N_DTYPES)
        return ty_error_set(err, TY_E_UNSUPPORTED, "a tensor of %s", onnx_data_type_text(t->data_type));
    tensor->data = (void *)(uintptr_t)data;
    return 0;
}

/* ---- constants for graphs -------------------------------------------------------------------------------------------
 */

/* Graphs know a large constant by its address. So what must be copied (unaligned integers, or converted) is copied
 * once, and the second import of the same model finds the same bytes. Floats stay in the mapped file at any address. */
struct onnx_copies {
    ty_arena arena;
    struct {
        const void *key;
        const void *data;
    } * entries;
    size_t n, room;
};

void onnx_copies_new(ty_onnx *m)
{
    m->copies = TY_NEW(&m->arena, struct onnx_copies);
    ty_arena_init(&m->copies->arena);
}

void onnx_copies_free(ty_onnx *m)
{
    ty_arena_fini(&m->copies->arena);
}

static const void *copies_find(const struct onnx_copies *c, const void *key)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->entries[i].key == key)
            return c->entries[i].data;
    return NULL;
}

static const void *copies_add(struct onnx_copies *c, const void *key, const void *data)
{
    if (c->n == c->room) {
        c->room = c->room ? 2 * c->room : 32;
        void *bigger = ty_arena_alloc(&c->arena, c->room * sizeof c->entries[0]);
        if (c->n)
            memcpy(bigger, c->entries, c->n * sizeof c->entries[0]);
        c->entries = bigger;
    }
    c->entries[c->n].key = key;
    c->entries[c->n++].data = data;
    return data;
}

const void *onnx_aligned(const ty_onnx *m, const void *key, const void *data, size_t n_bytes, size_t align)
{
    if ((uintptr_t)data % align == 0)
        return data;
    const void *known = copies_find(m->copies, key);
    return known ? known : copies_add(m->copies, key, ty_arena_copy(&m->copies->arena, data, n_bytes));
}

ty_val onnx_model_const(const ty_onnx *m, ty_graph *g, const void *key, ty_type type, const void *data)
{
    enum { COPIED_BYTES = 4096 }; /* what ty_b_const copies anyway */
    size_t n_bytes = ty_type_bytes(&type);
    if (n_bytes > COPIED_BYTES) {
        size_t align = ty_dtype_is_float((ty_dtype)type.dtype) ? 1 : ty_dtype_bytes((ty_dtype)type.dtype);
        return ty_b_const(g, type, onnx_aligned(m, key, data, n_bytes, align));
    }
    uint64_t aligned[COPIED_BYTES / 8] = {0};
    if (n_bytes)
        memcpy(aligned, data, n_bytes);
    return ty_b_const(g, type, aligned);
}

bool onnx_tensor_const(const ty_onnx *m, ty_graph *g, const onnx_tensor *t, ty_val *v, ty_error *err)
{
    ty_type type;
    const void *data = NULL;
    if (t->location == 1)
        return ty_error_set(err, TY_E_UNSUPPORTED, "a constant inside a node lies in an external file"), false;
    ty_arena *arena = &m->copies->arena;
    if (onnx_tensor_value(NULL, arena, t, &type, &data, err) < 0)
        return false;
    if (type.dtype == TY_N_DTYPES)
        return ty_error_set(err, TY_E_UNSUPPORTED, "a constant of %s", onnx_data_type_text(t->data_type)), false;
    if (!t->has_raw && ty_type_bytes(&type) > 4096) {
        const void *known = copies_find(m->copies, t);
        data = known ? known : copies_add(m->copies, t, data);
    }
    *v = onnx_model_const(m, g, t, type, data);
    return true;
}
