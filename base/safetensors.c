/* safetensors.c - the reader of safetensors.h: bounded and strict.
 *
 * The JSON names byte ranges. They are checked one by one against the shape, then sorted and checked to cover the data
 * exactly: then no hole, overlap or tail can hide anything, and no small file can unfold into many views.
 */
#include "base/safetensors.h"

#include "base/file.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, JSON_DEPTH = 4 };

static const struct dtype {
    const char *text;
    unsigned bits;
    ty_dtype dtype;
} dtypes[] = {
#define SAFETENSORS_DTYPE(text, bits, dtype) {text, bits, dtype},
#include "base/safetensors_dtypes.def"
#undef SAFETENSORS_DTYPE
};

/* What one parse carries around. */
struct parse {
    const char *path;
    const unsigned char *data; /* where offsets count from */
    uint64_t data_bytes;
    ty_safetensors *out;
    ty_safetensors_entry *entries;
    struct range *ranges;
};

struct range {
    uint64_t begin, end;
    const char *name;
};

static const struct dtype *dtype_find(const char *text)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].text, text) == 0)
            return &dtypes[i];
    return NULL;
}

static int read_whole(const ty_doc *d, uint64_t *out, ty_error *err)
{
    int64_t v = 0;
    if (ty_doc_int(d, &v, err) < 0)
        return -1;
    if (v < 0)
        return ty_doc_error(d, err, TY_E_MODEL_FILE, NULL, "expected a whole number from 0, found %" PRId64, v);
    *out = (uint64_t)v;
    return 0;
}

/* Fills the type, and the number of bits that the shape needs. */
static int read_shape(const ty_doc *shape, const struct dtype *dtype, ty_type *type, uint64_t *bits, ty_error *err)
{
    if (ty_doc_expect(shape, TY_DOC_LIST, err) < 0)
        return -1;
    if (ty_doc_len(shape) > TY_MAX_RANK)
        return ty_doc_error(shape, err, TY_E_UNSUPPORTED, NULL, "expected at most %d dimensions, found %zu",
                            TY_MAX_RANK, ty_doc_len(shape));
    *type = (ty_type){.dtype = (uint8_t)dtype->dtype, .rank = (uint8_t)ty_doc_len(shape)};
    *bits = dtype->bits;
    for (size_t i = 0; i < ty_doc_len(shape); i++) {
        uint64_t dim = 0;
        if (read_whole(ty_doc_at(shape, i), &dim, err) < 0)
            return -1;
        if (__builtin_mul_overflow(*bits, dim, bits))
            return ty_doc_error(shape, err, TY_E_MODEL_FILE, NULL, "the shape's product is past 64 bits");
        type->dim[i] = (int64_t)dim;
    }
    return 0;
}

static int read_range(const ty_doc *offsets, const struct parse *p, struct range *out, ty_error *err)
{
    if (ty_doc_expect(offsets, TY_DOC_LIST, err) < 0)
        return -1;
    if (ty_doc_len(offsets) != 2)
        return ty_doc_error(offsets, err, TY_E_MODEL_FILE, NULL, "expected [begin, end], found %zu numbers",
                            ty_doc_len(offsets));
    if (read_whole(ty_doc_at(offsets, 0), &out->begin, err) < 0 ||
        read_whole(ty_doc_at(offsets, 1), &out->end, err) < 0)
        return -1;
    if (out->begin > out->end || out->end > p->data_bytes)
        return ty_doc_error(offsets, err, TY_E_MODEL_FILE, NULL,
                            "expected begin <= end <= %" PRIu64 " (bytes of data), found [%" PRIu64 ", %" PRIu64 "]",
                            p->data_bytes, out->begin, out->end);
    return 0;
}

static const ty_doc *need(const ty_doc *map, const char *key, ty_error *err)
{
    const ty_doc *d = ty_doc_find(map, key);
    if (!d)
        ty_doc_error(map, err, TY_E_MODEL_FILE, NULL, "expected a key \"%s\", found none", key);
    return d;
}

static int check_keys(const ty_doc *map, ty_error *err)
{
    for (size_t i = 0; i < ty_doc_len(map); i++) {
        const ty_doc *d = ty_doc_at(map, i);
        if (strcmp(d->key, "dtype") != 0 && strcmp(d->key, "shape") != 0 && strcmp(d->key, "data_offsets") != 0)
            return ty_doc_error_key(d, err, TY_E_MODEL_FILE, NULL,
                                    "expected dtype, shape and data_offsets, found \"%s\"", d->key);
    }
    return 0;
}

static int read_tensor(struct parse *p, const ty_doc *tensor, ty_safetensors_entry *e, struct range *range,
                       ty_error *err)
{
    const ty_doc *dtype_doc, *shape, *offsets;
    if (ty_doc_expect(tensor, TY_DOC_MAP, err) < 0 || check_keys(tensor, err) < 0 ||
        !(dtype_doc = need(tensor, "dtype", err)) || !(shape = need(tensor, "shape", err)) ||
        !(offsets = need(tensor, "data_offsets", err)) || ty_doc_string(dtype_doc, &e->dtype_text, err) < 0)
        return -1;
    const struct dtype *dtype = dtype_find(e->dtype_text);
    if (!dtype)
        return ty_doc_error(dtype_doc, err, TY_E_MODEL_FILE, NULL, "unknown dtype \"%s\"", e->dtype_text);
    uint64_t bits = 0;
    if (read_shape(shape, dtype, &e->type, &bits, err) < 0 || read_range(offsets, p, range, err) < 0)
        return -1;
    uint64_t n_bytes = range->end - range->begin;
    if (bits % 8 != 0 || bits / 8 != n_bytes)
        return ty_doc_error(offsets, err, TY_E_MODEL_FILE, NULL,
                            "shape and dtype need %" PRIu64 " bits, the offsets hold %" PRIu64 " bytes", bits, n_bytes);
    e->data = p->data + range->begin;
    e->n_bytes = (size_t)n_bytes;
    return 0;
}

static int read_meta(ty_safetensors *out, const ty_doc *meta, ty_error *err)
{
    if (ty_doc_expect(meta, TY_DOC_MAP, err) < 0)
        return -1;
    out->n_meta = ty_doc_len(meta);
    ty_safetensors_meta *list = TY_NEW_ARRAY(&out->arena, ty_safetensors_meta, out->n_meta);
    for (size_t i = 0; i < out->n_meta; i++) {
        const ty_doc *value = ty_doc_at(meta, i);
        list[i].key = value->key;
        if (ty_doc_expect(value, TY_DOC_STRING, err) < 0 || ty_doc_string(value, &list[i].value, err) < 0)
            return -1;
    }
    out->meta = list;
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int check_coverage(struct parse *p, ty_error *err)
{
    size_t n = p->out->n_entries;
    uint64_t at = 0;
    if (n)
        qsort(p->ranges, n, sizeof *p->ranges, by_place);
    for (size_t i = 0; i < n; at = p->ranges[i++].end)
        if (p->ranges[i].begin != at)
            return ty_error_set(err, TY_E_MODEL_FILE,
                                "tensor \"%s\": expected data at offset %" PRIu64
                                " (no holes, no overlaps), found %" PRIu64,
                                p->ranges[i].name, at, p->ranges[i].begin);
    if (at != p->data_bytes)
        return ty_error_set(err, TY_E_MODEL_FILE, "the tensors take %" PRIu64 " bytes, the file has %" PRIu64, at,
                            p->data_bytes);
    return 0;
}

static int read_header(struct parse *p, const ty_doc *root, ty_error *err)
{
    if (ty_doc_expect(root, TY_DOC_MAP, err) < 0)
        return -1;
    size_t n = ty_doc_len(root);
    p->entries = TY_NEW_ARRAY(&p->out->arena, ty_safetensors_entry, n);
    p->ranges = TY_NEW_ARRAY(&p->out->arena, struct range, n);
    p->out->entries = p->entries;
    for (size_t i = 0; i < n; i++) {
        const ty_doc *d = ty_doc_at(root, i);
        if (strcmp(d->key, "__metadata__") == 0) {
            if (read_meta(p->out, d, err) < 0)
                return ty_error_wrap(err, "__metadata__");
            continue;
        }
        size_t at = p->out->n_entries;
        p->entries[at].name = p->ranges[at].name = d->key;
        if (read_tensor(p, d, &p->entries[at], &p->ranges[at], err) < 0)
            return ty_error_wrap(err, "tensor \"%s\"", d->key);
        p->out->n_entries++;
    }
    return check_coverage(p, err);
}

static int check_length(const unsigned char *bytes, size_t n_bytes, uint64_t *header_bytes, ty_error *err)
{
    if (n_bytes < LENGTH_BYTES)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected at least %d bytes, found %zu", LENGTH_BYTES, n_bytes);
    memcpy(header_bytes, bytes, LENGTH_BYTES);
    if (*header_bytes > TY_SAFETENSORS_HEADER_MAX_BYTES)
        return ty_error_set(err, TY_E_MODEL_FILE, "header: expected at most %u bytes, found a length of %" PRIu64,
                            TY_SAFETENSORS_HEADER_MAX_BYTES, *header_bytes);
    if (*header_bytes > n_bytes - LENGTH_BYTES)
        return ty_error_set(err, TY_E_MODEL_FILE, "header of %" PRIu64 " bytes is cut short: the file has %zu bytes",
                            *header_bytes, n_bytes);
    if (*header_bytes == 0 || bytes[LENGTH_BYTES] != '{')
        return ty_error_set(err, TY_E_MODEL_FILE, "header: expected '{' as its first byte");
    return 0;
}

static int parse_bytes(const unsigned char *bytes, size_t n_bytes, const char *path, ty_safetensors *out, ty_error *err)
{
    static const ty_doc_limits limits = {.max_bytes = TY_SAFETENSORS_HEADER_MAX_BYTES, .max_depth = JSON_DEPTH};
    uint64_t header_bytes = 0;
    if (check_length(bytes, n_bytes, &header_bytes, err) < 0)
        return -1;
    ty_doc *root;
    const char *header = (const char *)bytes + LENGTH_BYTES;
    if (ty_json_parse(&out->arena, path, header, (size_t)header_bytes, &limits, &root, err) < 0)
        return ty_error_wrap(err, "header");
    struct parse p = {.path = path,
                      .out = out,
                      .data = bytes + LENGTH_BYTES + header_bytes,
                      .data_bytes = n_bytes - LENGTH_BYTES - header_bytes};
    return read_header(&p, root, err);
}

int ty_safetensors_parse(const void *bytes, size_t n_bytes, const char *path, ty_safetensors *out, ty_error *err)
{
    memset(out, 0, sizeof *out);
    ty_arena_init(&out->arena);
    if (parse_bytes(bytes, n_bytes, path, out, err) == 0)
        return 0;
    ty_error_at(err, "%s", path);
    ty_arena_fini(&out->arena);
    memset(out, 0, sizeof *out);
    return ty_error_wrap(err, "safetensors");
}

int ty_safetensors_open(const char *path, ty_safetensors *out, ty_error *err)
{
    ty_file_view view;
    memset(out, 0, sizeof *out);
    if (ty_file_map(path, &view, err) < 0)
        return ty_error_wrap(err, "safetensors");
    if (ty_safetensors_parse(view.bytes, view.n_bytes, path, out, err) < 0) {
        ty_file_unmap(&view);
        return -1;
    }
    out->view = view;
    return 0;
}

void ty_safetensors_close(ty_safetensors *s)
{
    if (s->view.bytes)
        ty_file_unmap(&s->view);
    ty_arena_fini(&s->arena);
    memset(s, 0, sizeof *s);
}

const ty_safetensors_entry *ty_safetensors_find(const ty_safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->n_entries; i++)
        if (strcmp(s->entries[i].name, name) == 0)
            return &s->entries[i];
    return NULL;
}
