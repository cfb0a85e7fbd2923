/* record.c - see record.h. */
#include "container/input/record.h"

#include "container/input/protobuf.h"

#include <stdio.h>
#include <string.h>

enum { RECORD_FEATURES = 1, RECORD_LABEL = 2, VALUE_F32 = 2, VALUE_F64 = 3, VALUE_I32 = 7, VALUE_BYTES = 9 };
enum { TENSOR_VALUES = 1, TENSOR_KEYS = 2, TENSOR_SHAPE = 3 };

static int record_malformed(const char *what, ty_error *err)
{
    ty_error_set(err, TY_E_DATA_VALUE, "the record is no SageMaker Record: %s", what);
    return ty_error_help(err, "say what format the records are in, or make the file anew");
}

/* ---- maps ---- */

typedef struct record_entry {
    uint32_t map; /* RECORD_FEATURES or RECORD_LABEL */
    const uint8_t *key, *value;
    size_t n_key, n_value;
} record_entry;

static bool record_read_entry(const ty_proto_field *map, record_entry *out)
{
    ty_proto_bytes in = {map->bytes, map->bytes + map->n};
    ty_proto_field v;
    *out = (record_entry){.map = map->field, .key = map->bytes, .value = map->bytes};
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &v))
            return false;
        if (v.type == TY_PROTO_BYTES && v.field == 1)
            out->key = v.bytes, out->n_key = v.n;
        if (v.type == TY_PROTO_BYTES && v.field == 2)
            out->value = v.bytes, out->n_value = v.n;
    }
    return true;
}

/* The next entry of either map; 1, 0 at the end, -1 malformed. */
static int record_next(ty_proto_bytes *in, record_entry *out)
{
    ty_proto_field v;
    while (in->p < in->end) {
        if (!ty_proto_next(in, &v))
            return -1;
        if (v.type == TY_PROTO_BYTES && (v.field == RECORD_FEATURES || v.field == RECORD_LABEL))
            return record_read_entry(&v, out) ? 1 : -1;
    }
    return 0;
}

static bool record_is(const record_entry *e, const char *name)
{
    static const struct {
        const char *name;
        uint32_t map;
    } maps[] = {{"features", RECORD_FEATURES}, {"label", RECORD_LABEL}};
    const char *key = name;
    uint32_t map = RECORD_FEATURES;
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(maps[i].name);
        if (strncmp(name, maps[i].name, n) != 0 || (name[n] != 0 && name[n] != '.'))
            continue;
        map = maps[i].map;
        key = name[n] ? name + n + 1 : "values";
    }
    return e->map == map && strlen(key) == e->n_key && memcmp(key, e->key, e->n_key) == 0;
}

/* ---- tensors ---- */

/* How many numbers a field of a tensor holds; -1: malformed. Packed, or one a field. */
static int64_t tensor_count(const ty_proto_field *v, ty_dtype dtype)
{
    size_t each = dtype == TY_F32 ? 4 : 8;
    if (dtype != TY_I64)
        return (v->type == TY_PROTO_BYTES || v->type == (each == 4 ? 5 : 1)) && v->n % each == 0
                   ? (int64_t)(v->n / each)
                   : -1;
    if (v->type == 0)
        return 1;
    if (v->type != TY_PROTO_BYTES || (v->n > 0 && v->bytes[v->n - 1] >= 0x80))
        return -1;
    int64_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += v->bytes[i] < 0x80;
    return n;
}

/* Numbers of one field of the tensor, `field` being VALUES, KEYS or SHAPE, into out[0..max-1]. Returns how many there
 * are; -1: malformed. */
static int64_t tensor_integers(const ty_record_tensor *t, uint32_t field, int64_t *out, int64_t max)
{
    return ty_proto_integers(t->message, t->n_message, field, out, max);
}

static int64_t tensor_values(const ty_record_tensor *t)
{
    ty_proto_bytes in = {t->message, t->message + t->n_message};
    ty_proto_field v;
    int64_t n = 0;
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &v))
            return -1;
        int64_t more = v.field == TENSOR_VALUES ? tensor_count(&v, t->dtype) : 0;
        if (more < 0)
            return -1;
        n += more;
    }
    return n;
}

enum { TENSOR_MAX_RANK = 64 };

/* The shape's product; -1: none, -2: malformed or too large. */
static int64_t tensor_width(const ty_record_tensor *t)
{
    int64_t shape[TENSOR_MAX_RANK], width = 1;
    int64_t rank = tensor_integers(t, TENSOR_SHAPE, shape, TENSOR_MAX_RANK);
    if (rank <= 0)
        return rank < 0 ? -2 : -1;
    for (int64_t i = 0; i < rank && i < TENSOR_MAX_RANK; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(width, shape[i], &width) || width > (int64_t)1 << 40)
            return -2;
    return rank <= TENSOR_MAX_RANK ? width : -2;
}

static bool tensor_keys_fit(const ty_record_tensor *t)
{
    ty_proto_bytes in = {t->message, t->message + t->n_message};
    ty_proto_field v;
    uint64_t key;
    while (in.p < in.end && ty_proto_next(&in, &v)) {
        if (v.field != TENSOR_KEYS)
            continue;
        if (v.type == TY_PROTO_NUMBER) {
            if (v.number >= (uint64_t)t->width)
                return false;
            continue;
        }
        for (ty_proto_bytes list = {v.bytes, v.bytes + v.n}; list.p < list.end;)
            if (!ty_proto_varint(&list, &key) || key >= (uint64_t)t->width)
                return false;
    }
    return true;
}

static int tensor_check(ty_record_tensor *t, const char *name, ty_error *err)
{
    t->n = tensor_values(t);
    t->width = tensor_width(t);
    int64_t keys = tensor_integers(t, TENSOR_KEYS, NULL, 0);
    if (t->n < 0 || t->width == -2 || keys < 0)
        return record_malformed("a tensor is malformed", err);
    t->is_sparse = keys > 0 || (t->n == 0 && t->width > 0);
    if (!t->is_sparse && t->width >= 0 && t->width != t->n)
        return ty_error_set(err, TY_E_DATA_VALUE, "\"%s\": its shape holds %lld values, found %lld", name,
                            (long long)t->width, (long long)t->n);
    if (!t->is_sparse)
        return 0;
    if (keys != t->n)
        return ty_error_set(err, TY_E_DATA_VALUE, "\"%s\": %lld keys for %lld values", name, (long long)keys,
                            (long long)t->n);
    if (t->width < 0)
        return ty_error_set(err, TY_E_DATA_VALUE, "\"%s\": a sparse tensor without a shape: its width is not known",
                            name);
    if (!tensor_keys_fit(t))
        return ty_error_set(err, TY_E_DATA_VALUE, "\"%s\": a key is not below the width of %lld", name,
                            (long long)t->width);
    return 0;
}

/* Byte strings of a Bytes message. */
static bool record_strings(const ty_proto_field *message, ty_record_tensor *out)
{
    ty_proto_bytes in = {message->bytes, message->bytes + message->n};
    ty_proto_field v;
    out->n_pieces = 0;
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &v))
            return false;
        if (v.type != TY_PROTO_BYTES || v.field != 1)
            continue;
        if (out->n_pieces++ == 0)
            out->bytes = v.bytes, out->n_bytes = v.n;
    }
    return true;
}

/* The last of a Value's tensors. */
static int record_tensor(const record_entry *e, const char *name, ty_record_tensor *out, ty_error *err)
{
    ty_proto_bytes in = {e->value, e->value + e->n_value};
    ty_proto_field v;
    *out = (ty_record_tensor){.width = -1};
    while (in.p < in.end) {
        if (!ty_proto_next(&in, &v))
            return record_malformed("a value is malformed", err);
        if (v.type == TY_PROTO_BYTES && v.field == VALUE_BYTES && !record_strings(&v, out))
            return record_malformed("a value of bytes is malformed", err);
        if (v.type != TY_PROTO_BYTES || (v.field != VALUE_F32 && v.field != VALUE_F64 && v.field != VALUE_I32))
            continue;
        out->is_there = true;
        out->dtype = v.field == VALUE_F32 ? TY_F32 : v.field == VALUE_F64 ? TY_F64 : TY_I64;
        out->message = v.bytes;
        out->n_message = v.n;
    }
    return out->is_there ? tensor_check(out, name, err) : 0;
}

int ty_record_find(const uint8_t *record, size_t n, const char *name, ty_record_tensor *out, ty_error *err)
{
    ty_proto_bytes in = {record, record + n};
    record_entry e;
    int more;
    *out = (ty_record_tensor){.width = -1};
    while ((more = record_next(&in, &e)) == 1)
        if (record_is(&e, name) && record_tensor(&e, name, out, err) < 0)
            return -1;
    return more < 0 ? record_malformed("a map is malformed", err) : 0;
}

int64_t ty_record_elems(const ty_record_tensor *t)
{
    return t->is_sparse ? t->width : t->n;
}

/* Values one behind the other. */
static void tensor_put(const ty_record_tensor *t, const uint8_t *from, int64_t n, char *out, int64_t *at)
{
    size_t each = ty_dtype_bytes(t->dtype);
    memcpy(out + (size_t)*at * each, from, (size_t)n * each);
    *at += n;
}

static void tensor_dense(const ty_record_tensor *t, void *out)
{
    ty_proto_bytes in = {t->message, t->message + t->n_message};
    ty_proto_field v;
    int64_t at = 0;
    if (t->dtype == TY_I64) {
        tensor_integers(t, TENSOR_VALUES, out, t->n);
        return;
    }
    while (in.p < in.end && ty_proto_next(&in, &v))
        if (v.field == TENSOR_VALUES)
            tensor_put(t, v.bytes, tensor_count(&v, t->dtype), out, &at);
}

static void tensor_spread(const ty_record_tensor *t, char *out, const char *values, const int64_t *key)
{
    size_t each = ty_dtype_bytes(t->dtype);
    memset(out, 0, (size_t)t->width * each);
    for (int64_t i = 0; i < t->n; i++)
        memcpy(out + (size_t)key[i] * each, values + (size_t)i * each, each);
}

void ty_record_decode(const ty_record_tensor *t, void *out, void *scratch)
{
    if (!t->is_sparse) {
        tensor_dense(t, out);
        return;
    }
    int64_t *key = scratch;
    tensor_integers(t, TENSOR_KEYS, key, t->n);
    tensor_dense(t, key + t->n);
    tensor_spread(t, out, (const char *)(key + t->n), key);
}

int ty_record_walk(const uint8_t *record, size_t n, ty_record_visit *visit, void *ctx, ty_error *err)
{
    ty_proto_bytes in = {record, record + n};
    record_entry e;
    char name[256];
    int more;
    while ((more = record_next(&in, &e)) == 1) {
        const char *map = e.map == RECORD_LABEL ? "label" : "features";
        bool usual = e.n_key == 6 && memcmp(e.key, "values", 6) == 0;
        if (e.n_key > 200)
            continue;
        snprintf(name, sizeof name, usual ? "%s" : "%s.%.*s", map, (int)e.n_key, (const char *)e.key);
        if (visit(ctx, name, err) < 0)
            return -1;
    }
    return more < 0 ? record_malformed("a map is malformed", err) : 0;
}
