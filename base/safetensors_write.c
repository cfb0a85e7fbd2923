/* safetensors_write.c - the writer of safetensors.h.
 *
 * The header is known before any data is touched: lay the tensors out, write their places as JSON, then stream.
 */
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_BYTES = 8, HEADER_ALIGN = 8 };

static const struct dtype {
    const char *text;
    ty_dtype dtype;
} dtypes[] = {
#define SAFETENSORS_DTYPE(text, bits, dtype) {text, dtype},
#include "base/safetensors_dtypes.def"
#undef SAFETENSORS_DTYPE
};

struct placed {
    const ty_named_tensor *tensor;
    int dtype_row;
};

static int dtype_row(const ty_type *t)
{
    for (int i = 0; i < (int)(sizeof dtypes / sizeof *dtypes); i++)
        if (dtypes[i].dtype == (ty_dtype)t->dtype && t->dtype < TY_N_DTYPES)
            return i;
    return -1;
}

static int by_alignment_and_name(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->dtype_row != y->dtype_row)
        return y->dtype_row - x->dtype_row;
    return strcmp(x->tensor->name, y->tensor->name);
}

static int by_name(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return strcmp(x->tensor->name, y->tensor->name);
}

static int check_names(struct placed *order, size_t n, ty_error *err)
{
    qsort(order, n, sizeof *order, by_name);
    for (size_t i = 0; i < n; i++) {
        const char *name = order[i].tensor->name;
        if (strcmp(name, "__metadata__") == 0)
            return ty_error_set(err, TY_E_CONFIG,
                                "a tensor cannot be called \"__metadata__\": the format keeps that name");
        if (i > 0 && strcmp(order[i - 1].tensor->name, name) == 0)
            return ty_error_set(err, TY_E_DUPLICATE, "two tensors are called \"%s\"", name);
    }
    return 0;
}

static int place(const ty_named_tensor *tensors, size_t n, struct placed *order, ty_error *err)
{
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct placed){&tensors[i], dtype_row(&tensors[i].type)};
        if (order[i].dtype_row < 0)
            return ty_error_set(err, TY_E_INTERNAL, "tensor \"%s\" has no element type that the format knows",
                                tensors[i].name);
    }
    if (check_names(order, n, err) < 0)
        return -1;
    qsort(order, n, sizeof *order, by_alignment_and_name);
    return 0;
}

static void add_meta(ty_buf *out, const ty_safetensors_meta *meta, size_t n)
{
    ty_buf_adds(out, "\"__metadata__\":{");
    for (size_t i = 0; i < n; i++) {
        ty_buf_adds(out, i ? "," : "");
        ty_json_add_string(out, meta[i].key, TY_JSON_COMPACT);
        ty_buf_addc(out, ':');
        ty_json_add_string(out, meta[i].value, TY_JSON_COMPACT);
    }
    ty_buf_addc(out, '}');
}

static void add_tensor(ty_buf *out, const struct placed *p, uint64_t begin)
{
    const ty_type *t = &p->tensor->type;
    ty_json_add_string(out, p->tensor->name, TY_JSON_COMPACT);
    ty_buf_addf(out, ":{\"dtype\":\"%s\",\"shape\":[", dtypes[p->dtype_row].text);
    for (int i = 0; i < t->rank; i++)
        ty_buf_addf(out, "%s%" PRId64, i ? "," : "", t->dim[i]);
    ty_buf_addf(out, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, begin + ty_type_bytes(t));
}

static int add_header(ty_buf *out, const struct placed *order, size_t n, const ty_safetensors_meta *meta, size_t n_meta,
                      ty_error *err)
{
    uint64_t begin = 0;
    ty_buf_add(out, "\0\0\0\0\0\0\0\0", LENGTH_BYTES);
    ty_buf_addc(out, '{');
    if (n_meta)
        add_meta(out, meta, n_meta);
    for (size_t i = 0; i < n; i++) {
        ty_buf_adds(out, i || n_meta ? "," : "");
        add_tensor(out, &order[i], begin);
        begin += ty_type_bytes(&order[i].tensor->type);
    }
    ty_buf_addc(out, '}');
    while ((out->len - LENGTH_BYTES) % HEADER_ALIGN != 0 && !out->failed)
        ty_buf_addc(out, ' ');
    if (out->failed)
        return ty_error_set(err, TY_E_LIMIT, "header of %zu tensors: expected at most %zu bytes, found more", n,
                            (size_t)TY_SAFETENSORS_HEADER_MAX_BYTES);
    uint64_t length = out->len - LENGTH_BYTES;
    memcpy(out->data, &length, sizeof length); /* little-endian, as all our targets are */
    return 0;
}

static int stream(const char *path, const ty_buf *header, const struct placed *order, size_t n, ty_error *err)
{
    ty_file_writer w;
    if (ty_file_writer_open(&w, path, 0644, err) < 0)
        return -1;
    int rc = ty_file_writer_add(&w, header->data, header->len, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = ty_file_writer_add(&w, order[i].tensor->data, ty_type_bytes(&order[i].tensor->type), err);
    if (rc == 0)
        return ty_file_writer_commit(&w, err);
    ty_file_writer_abandon(&w);
    return -1;
}

int ty_safetensors_write(const char *path, const ty_named_tensor *tensors, size_t n_tensors,
                         const ty_safetensors_meta *meta, size_t n_meta, ty_error *err)
{
    struct placed *order = calloc(n_tensors + 1, sizeof *order);
    if (!order)
        return ty_error_set(err, TY_E_LIMIT, "out of memory to write %s", path);
    ty_buf header;
    ty_buf_init(&header, LENGTH_BYTES + TY_SAFETENSORS_HEADER_MAX_BYTES);
    int rc = place(tensors, n_tensors, order, err);
    if (rc == 0)
        rc = add_header(&header, order, n_tensors, meta, n_meta, err);
    if (rc < 0)
        ty_error_at(err, "%s", path);
    else
        rc = stream(path, &header, order, n_tensors, err);
    ty_buf_fini(&header);
    free(order);
    return rc < 0 ? ty_error_wrap(err, "safetensors") : 0;
}
