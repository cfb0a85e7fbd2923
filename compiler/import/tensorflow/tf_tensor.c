/* tf_tensor.c - element types, and from TensorProto to bytes.
 *
 * A tensor holds its elements as raw bytes (used as they lie) or in a typed list, where a list that is shorter than the
 * shape says goes on with its last element, and an empty one stands for zeros.
 */
#include "compiler/import/tensorflow/tf_proto.h"

#include <inttypes.h>
#include <string.h>

/* What a list with fewer elements than the shape may grow to: constants of one number, not weights. So much for one of
 * them, and from so much in the arena on only small ones. */
#define MAX_SPREAD_BYTES ((int64_t)1 << 28)
#define MAX_SPREAD_ARENA ((size_t)1 << 30)
#define SMALL_SPREAD     (1 << 12)

typedef enum storage { IN_NONE, IN_FLOAT, IN_DOUBLE, IN_INT, IN_INT64, IN_BOOL, IN_HALF, IN_UINT32, IN_UINT64 } storage;

/* Rows: DataType numbers of types.proto. TY_N_DTYPES: known to TensorFlow, not to us. */
static const struct {
    uint8_t dtype, list;
    const char *text;
} data_types[] = {
    [0] = {TY_N_DTYPES, IN_NONE, "invalid"},
    [1] = {TY_F32, IN_FLOAT, "float32"},
    [2] = {TY_F64, IN_DOUBLE, "float64"},
    [3] = {TY_I32, IN_INT, "int32"},
    [4] = {TY_U8, IN_INT, "uint8"},
    [5] = {TY_I16, IN_INT, "int16"},
    [6] = {TY_I8, IN_INT, "int8"},
    [7] = {TY_N_DTYPES, IN_NONE, "string"},
    [8] = {TY_N_DTYPES, IN_NONE, "complex64"},
    [9] = {TY_I64, IN_INT64, "int64"},
    [10] = {TY_BOOL, IN_BOOL, "bool"},
    [11] = {TY_N_DTYPES, IN_NONE, "qint8"},
    [12] = {TY_N_DTYPES, IN_NONE, "quint8"},
    [13] = {TY_N_DTYPES, IN_NONE, "qint32"},
    [14] = {TY_BF16, IN_HALF, "bfloat16"},
    [15] = {TY_N_DTYPES, IN_NONE, "qint16"},
    [16] = {TY_N_DTYPES, IN_NONE, "quint16"},
    [17] = {TY_U16, IN_INT, "uint16"},
    [18] = {TY_N_DTYPES, IN_NONE, "complex128"},
    [19] = {TY_F16, IN_HALF, "float16"},
    [20] = {TY_N_DTYPES, IN_NONE, "resource"},
    [21] = {TY_N_DTYPES, IN_NONE, "variant"},
    [22] = {TY_U32, IN_UINT32, "uint32"},
    [23] = {TY_U64, IN_UINT64, "uint64"},
    [24] = {TY_N_DTYPES, IN_NONE, "float8_e5m2"},
    [25] = {TY_N_DTYPES, IN_NONE, "float8_e4m3fn"},
    [26] = {TY_N_DTYPES, IN_NONE, "float8_e4m3fnuz"},
    [27] = {TY_N_DTYPES, IN_NONE, "float8_e4m3b11fnuz"},
    [28] = {TY_N_DTYPES, IN_NONE, "float8_e5m2fnuz"},
    [29] = {TY_N_DTYPES, IN_NONE, "int4"},
    [30] = {TY_N_DTYPES, IN_NONE, "uint4"},
};
enum { N_DATA_TYPES = sizeof data_types / sizeof data_types[0] };

static int64_t plain(int64_t data_type)
{
    return data_type >= TF_REF ? data_type - TF_REF : data_type;
}

ty_dtype tf_dtype(int64_t data_type)
{
    int64_t t = plain(data_type);
    return t < 0 || t >= N_DATA_TYPES ? TY_N_DTYPES : (ty_dtype)data_types[t].dtype;
}

int64_t tf_data_type(ty_dtype dtype)
{
    for (int i = 0; i < N_DATA_TYPES; i++)
        if (data_types[i].dtype == dtype && dtype != TY_N_DTYPES)
            return i;
    return 0;
}

const char *tf_data_type_text(int64_t data_type)
{
    int64_t t = plain(data_type);
    return t < 0 || t >= N_DATA_TYPES ? "an unknown type" : data_types[t].text;
}

int64_t tf_tensor_data_type(const tf_tensor *t)
{
    return t->data_type;
}

const ty_wire_list *tf_tensor_strings(const tf_tensor *t)
{
    return &t->string_val;
}

static const ty_wire_list *typed_list(const tf_tensor *t, storage where)
{
    switch (where) {
    case IN_FLOAT:
        return &t->float_val;
    case IN_DOUBLE:
        return &t->double_val;
    case IN_INT64:
        return &t->int64_val;
    case IN_BOOL:
        return &t->bool_val;
    case IN_HALF:
        return &t->half_val;
    case IN_UINT32:
        return &t->uint32_val;
    case IN_UINT64:
        return &t->uint64_val;
    default:
        return &t->int_val;
    }
}

/* Element i of a list as elem_bytes bytes; numbers keep their low bytes: what a two's complement cast does. */
static void put_element(storage where, const ty_wire_list *list, size_t i, size_t elem_bytes, uint8_t *out)
{
    const uint8_t *at = list->data;
    if (where == IN_FLOAT || where == IN_DOUBLE) {
        memcpy(out, at + i * elem_bytes, elem_bytes);
        return;
    }
    int64_t v;
    memcpy(&v, at + i * sizeof v, sizeof v);
    if (where == IN_BOOL)
        v = v != 0;
    memcpy(out, &v, elem_bytes);
}

static int typed_value(const tf_tensor *t, ty_arena *arena, storage where, size_t elem_bytes, int64_t n,
                       const void **data, ty_error *err)
{
    const ty_wire_list *list = typed_list(t, where);
    if ((int64_t)list->n > n)
        return ty_error_set(err, TY_E_MODEL_FILE, "it holds %zu elements where its shape has %" PRId64, list->n, n);
    int64_t most = arena->used_bytes < MAX_SPREAD_ARENA ? MAX_SPREAD_BYTES : SMALL_SPREAD;
    if ((int64_t)list->n < n && n > most / (int64_t)elem_bytes)
        return ty_error_set(err, TY_E_LIMIT, "it holds %zu elements for a shape of %" PRId64, list->n, n);
    uint8_t *out = ty_arena_alloc(arena, (size_t)n * elem_bytes);
    for (size_t i = 0; i < list->n; i++)
        put_element(where, list, i, elem_bytes, out + i * elem_bytes);
    if (list->n > 0)
        for (size_t i = list->n; i < (size_t)n; i++)
            memcpy(out + i * elem_bytes, out + (list->n - 1) * elem_bytes, elem_bytes);
    *data = out;
    return 0;
}

/* Bytes above 1 in raw bools would break code that counts on 0 and 1. */
static const void *clean_bools(ty_arena *arena, ty_bytes b)
{
    uint8_t *out = ty_arena_alloc(arena, b.n);
    for (size_t i = 0; i < b.n; i++)
        out[i] = b.data[i] != 0;
    return out;
}

int tf_tensor_value(const tf_tensor *t, ty_arena *arena, ty_type *type, const void **data, ty_error *err)
{
    int rank;
    int64_t dim[TY_MAX_RANK];
    *data = NULL;
    *type = (ty_type){.dtype = TY_N_DTYPES};
    if (t->data_type <= 0 || t->data_type >= N_DATA_TYPES)
        return ty_error_set(err, TY_E_MODEL_FILE, "its element type has the unknown number %" PRId64, t->data_type);
    if (!tf_read_shape(t->shape, &rank, dim) || rank < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "its shape is unknown, or has more than %d dimensions", TY_MAX_RANK);
    ty_dtype dtype = tf_dtype(t->data_type);
    if (dtype == TY_N_DTYPES)
        return 0;
    size_t elem_bytes = ty_dtype_bytes(dtype);
    int64_t n = ty_dims_elems_checked(rank, dim, elem_bytes);
    if (n < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "its dimensions are negative or too large");
    *type = ty_type_make(dtype, rank, dim);
    if (!t->has_content || t->content.n == 0)
        return typed_value(t, arena, (storage)data_types[t->data_type].list, elem_bytes, n, data, err);
    if (t->content.n != (size_t)n * elem_bytes)
        return ty_error_set(err, TY_E_MODEL_FILE, "it holds %zu bytes where its shape needs %zu", t->content.n,
                            (size_t)n * elem_bytes);
    *data = dtype == TY_BOOL ? clean_bools(arena, t->content) : t->content.data;
    return 0;
}

ty_dtype tf_complex_dtype(int64_t data_type)
{
    enum { COMPLEX64 = 8, COMPLEX128 = 18 };
    int64_t t = plain(data_type);
    return t == COMPLEX64 ? TY_F32 : t == COMPLEX128 ? TY_F64 : TY_N_DTYPES;
}

/* Number i of n pairs, of which the last that is there stands for those that are not. */
static void put_pair(const uint8_t *from, size_t n_there, size_t i, float *const out[2])
{
    float pair[2] = {0};
    if (n_there > 0)
        memcpy(pair, from + (i < n_there ? i : n_there - 1) * sizeof pair, sizeof pair);
    out[0][i] = pair[0];
    out[1][i] = pair[1];
}

int tf_tensor_parts(const tf_tensor *t, ty_arena *arena, ty_type *type, const void *part[2], ty_error *err)
{
    enum { PAIR_BYTES = 8 };
    int rank;
    int64_t dim[TY_MAX_RANK];
    if (tf_complex_dtype(t->data_type) != TY_F32)
        return 0;
    if (!tf_read_shape(t->shape, &rank, dim) || rank < 0)
        return ty_error_set(err, TY_E_MODEL_FILE, "its shape is unknown, or has more than %d dimensions", TY_MAX_RANK);
    int64_t n = ty_dims_elems_checked(rank, dim, PAIR_BYTES);
    bool is_raw = t->has_content && t->content.n > 0;
    size_t there = is_raw ? t->content.n / PAIR_BYTES : t->scomplex_val.n / 2;
    bool is_odd = is_raw ? t->content.n % PAIR_BYTES != 0 : t->scomplex_val.n % 2 != 0;
    if (n < 0 || is_odd || (int64_t)there > n || (is_raw && (int64_t)there != n))
        return ty_error_set(err, TY_E_MODEL_FILE, "it holds %zu complex numbers where its shape has %" PRId64, there,
                            n);
    int64_t most = arena->used_bytes < MAX_SPREAD_ARENA ? MAX_SPREAD_BYTES : SMALL_SPREAD;
    if ((int64_t)there < n && n > most / PAIR_BYTES)
        return ty_error_set(err, TY_E_LIMIT, "it holds %zu elements for a shape of %" PRId64, there, n);
    float *out[2];
    for (int p = 0; p < 2; p++)
        part[p] = out[p] = ty_arena_alloc(arena, (size_t)n * sizeof **out);
    for (int64_t i = 0; i < n; i++)
        put_pair(is_raw ? t->content.data : t->scomplex_val.data, there, (size_t)i, out);
    *type = ty_type_make(TY_F32, rank, dim);
    return 1;
}
