/* npy.c - see npy.h. */
#include "container/input/npy.h"

#include "base/file.h"
#include "container/input/bytes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NPY_MAGIC       "\x93NUMPY"
#define NPY_MAGIC_BYTES 6
#define NPY_ALIGN       64
/* NumPy itself refuses headers over 10,000 characters; structured types may be longer, and are refused anyway. */
#define NPY_MAX_HEADER 65536
/* NumPy leaves room to grow the first dimension in place (GROWTH_AXIS_MAX_DIGITS in numpy/lib/format.py). */
#define NPY_GROWTH_DIGITS 21

/* The header's dict literal, read by a cursor. */
typedef struct npy_cursor {
    const char *start, *at, *end;
    size_t offset; /* of `start` in the file */
    ty_error *err;
} npy_cursor;

typedef struct npy_dict {
    bool has_descr, has_order, has_shape;
    char descr[16];
} npy_dict;

static int npy_refuse(npy_cursor *c, const char *expected)
{
    char found[24] = "the end";
    if (c->at < c->end) {
        size_t n = (size_t)(c->end - c->at) < 16 ? (size_t)(c->end - c->at) : 16;
        memcpy(found, c->at, n);
        found[n] = 0;
    }
    return ty_error_set(c->err, TY_E_DATA, "npy header, byte %zu: expected %s, found \"%s\"",
                        c->offset + (size_t)(c->at - c->start), expected, found);
}

static void npy_skip_space(npy_cursor *c)
{
    while (c->at < c->end && isspace((unsigned char)*c->at))
        c->at++;
}

static bool npy_take(npy_cursor *c, char wanted)
{
    npy_skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* A quoted word without escapes; longer ones than fit are refused. */
static int npy_take_string(npy_cursor *c, char *out, size_t cap)
{
    npy_skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return npy_refuse(c, "a quoted string");
    char quote = *c->at;
    const char *text = c->at + 1;
    size_t n = 0;
    while (text + n < c->end && text[n] != quote && text[n] != '\\')
        n++;
    if (text + n == c->end || text[n] == '\\' || n >= cap)
        return npy_refuse(c, "a short string");
    memcpy(out, text, n);
    out[n] = 0;
    c->at = text + n + 1;
    return 0;
}

static int npy_take_bool(npy_cursor *c, bool *out)
{
    npy_skip_space(c);
    *out = c->end - c->at >= 4 && memcmp(c->at, "True", 4) == 0;
    if (!*out && !(c->end - c->at >= 5 && memcmp(c->at, "False", 5) == 0))
        return npy_refuse(c, "True or False");
    c->at += *out ? 4 : 5;
    return 0;
}

/* A size, with the L of Python 2 behind it or not. */
static int npy_take_size(npy_cursor *c, int64_t *out)
{
    npy_skip_space(c);
    if (c->at == c->end || !isdigit((unsigned char)*c->at))
        return npy_refuse(c, "a size");
    int64_t v = 0;
    for (; c->at < c->end && isdigit((unsigned char)*c->at); c->at++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->at - '0', &v))
            return npy_refuse(c, "a size below 2^63");
    if (c->at < c->end && *c->at == 'L')
        c->at++;
    *out = v;
    return 0;
}

static int npy_take_shape(npy_cursor *c, ty_array *out)
{
    if (!npy_take(c, '('))
        return npy_refuse(c, "a shape such as (3, 4)");
    for (;;) {
        if (npy_take(c, ')'))
            return 0;
        if (out->rank == TY_MAX_RANK)
            return ty_error_set(c->err, TY_E_DATA, "npy header: the array has more than %d dimensions", TY_MAX_RANK);
        if (npy_take_size(c, &out->dim[out->rank++]) < 0)
            return -1;
        if (!npy_take(c, ','))
            return npy_take(c, ')') ? 0 : npy_refuse(c, "\",\" or \")\"");
    }
}

static int npy_take_descr(npy_cursor *c, npy_dict *dict)
{
    npy_skip_space(c);
    if (c->at < c->end && (*c->at == '[' || *c->at == '{' || *c->at == '(')) {
        ty_error_set(c->err, TY_E_DATA, "npy: the array is of a structured type, expected plain numbers");
        return ty_error_help(c->err, "save each column as an array of its own: np.save(\"x.npy\", table[\"x\"])");
    }
    return npy_take_string(c, dict->descr, sizeof dict->descr);
}

static int npy_take_entry(npy_cursor *c, npy_dict *dict, ty_array *out)
{
    char key[24];
    const char *key_at = c->at;
    if (npy_take_string(c, key, sizeof key) < 0)
        return -1;
    if (!npy_take(c, ':'))
        return npy_refuse(c, "\":\"");
    bool *seen = strcmp(key, "descr") == 0           ? &dict->has_descr
                 : strcmp(key, "fortran_order") == 0 ? &dict->has_order
                 : strcmp(key, "shape") == 0         ? &dict->has_shape
                                                     : NULL;
    if (seen == NULL || *seen) {
        c->at = key_at;
        return npy_refuse(c, "the keys descr, fortran_order and shape, once each");
    }
    *seen = true;
    if (seen == &dict->has_descr)
        return npy_take_descr(c, dict);
    return seen == &dict->has_order ? npy_take_bool(c, &out->fortran) : npy_take_shape(c, out);
}

static int npy_take_dict(npy_cursor *c, npy_dict *dict, ty_array *out)
{
    if (!npy_take(c, '{'))
        return npy_refuse(c, "\"{\"");
    while (!npy_take(c, '}')) {
        if (npy_take_entry(c, dict, out) < 0)
            return -1;
        if (!npy_take(c, ',')) {
            if (npy_take(c, '}'))
                break;
            return npy_refuse(c, "\",\" or \"}\"");
        }
    }
    npy_skip_space(c);
    if (c->at != c->end)
        return npy_refuse(c, "nothing more");
    if (!dict->has_descr || !dict->has_order || !dict->has_shape)
        return ty_error_set(c->err, TY_E_DATA, "npy header: \"%s\" is missing",
                            !dict->has_descr   ? "descr"
                            : !dict->has_order ? "fortran_order"
                                               : "shape");
    return 0;
}

/* "<f4" and its like; the kind and size are looked up in the table of element types. */
static int npy_descr_type(const char *descr, ty_array *out, ty_error *err)
{
    const char *name = descr;
    char order = '<';
    if (*name == '<' || *name == '>' || *name == '|' || *name == '=')
        order = *name++;
    out->big_endian = order == '>';
    for (int d = 0; d < TY_N_DTYPES && *name != 0; d++) {
        const char *own = ty_dtype_descr((ty_dtype)d);
        if (strcmp(d == TY_BF16 ? "V2" : own[0] != 0 ? own + 1 : own, name) == 0) {
            out->dtype = (ty_dtype)d;
            return 0;
        }
    }
    if (name[0] == 'O') {
        ty_error_set(err, TY_E_DATA, "npy: the array holds Python objects (descr \"%s\"), which are pickles", descr);
        return ty_error_help(err, "convert it first: np.save(path, np.stack(list(array)).astype(\"float32\"))");
    }
    if (name[0] == 'U' || name[0] == 'S') {
        ty_error_set(err, TY_E_DATA, "npy: the array holds texts (descr \"%s\"), and only numbers are read", descr);
        return ty_error_help(err, "write texts as CSV, JSON Lines or TFRecord, where a vocabulary, classes, a hash or "
                                  "a tokenizer make numbers of them");
    }
    ty_error_set(err, TY_E_DATA, "npy: element type \"%s\" is not known", descr);
    return ty_error_help(err, "known are b1, i1 i2 i4 i8, u1 u2 u4 u8, f2 f4 f8; convert with array.astype(...)");
}

/* Length of everything before the header text, and of the text. */
static int npy_prefix(const uint8_t *b, size_t n, size_t *prefix, size_t *header, ty_error *err)
{
    if (n < NPY_MAGIC_BYTES + 4 || memcmp(b, NPY_MAGIC, NPY_MAGIC_BYTES) != 0)
        return ty_error_set(err, TY_E_DATA, "not an npy file: expected the bytes 93 4e 55 4d 50 59 at the start");
    int major = b[6];
    if (major < 1 || major > 3)
        return ty_error_set(err, TY_E_DATA, "npy version %d.%d at byte 6, expected 1, 2 or 3", major, b[7]);
    *prefix = major == 1 ? 10 : 12;
    if (n < *prefix)
        return ty_error_set(err, TY_E_DATA, "npy: the file ends inside its header, at byte %zu", n);
    *header = (size_t)b[8] | (size_t)b[9] << 8;
    if (major > 1)
        *header |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    if (*header > NPY_MAX_HEADER)
        return ty_error_set(err, TY_E_DATA, "npy header of %zu bytes, at most %d are read", *header, NPY_MAX_HEADER);
    if (*header > n - *prefix)
        return ty_error_set(err, TY_E_DATA, "npy header of %zu bytes at byte %zu, but the file has %zu bytes", *header,
                            *prefix, n);
    return 0;
}

int ty_npy_parse(const uint8_t *bytes, size_t n, ty_array *out, ty_error *err)
{
    size_t prefix = 0, header = 0;
    npy_dict dict = {0};
    *out = (ty_array){0};
    if (npy_prefix(bytes, n, &prefix, &header, err) < 0)
        return -1;
    const char *text = (const char *)bytes + prefix;
    npy_cursor c = {.start = text, .at = text, .end = text + header, .offset = prefix, .err = err};
    if (npy_take_dict(&c, &dict, out) < 0 || npy_descr_type(dict.descr, out, err) < 0)
        return -1;
    size_t size = ty_dtype_bytes(out->dtype), have = n - prefix - header;
    int64_t elems = ty_dims_elems_checked(out->rank, out->dim, size);
    if (elems < 0)
        return ty_error_set(err, TY_E_DATA, "npy: the shape has more elements than memory has addresses");
    if ((uint64_t)elems * size > have) {
        ty_error_set(err, TY_E_DATA, "npy: the shape needs %llu bytes of data from byte %zu on, the file has %zu",
                     (unsigned long long)elems * size, prefix + header, have);
        return ty_error_help(err, "the file may be cut short; write or fetch it again");
    }
    out->data = bytes + prefix + header;
    out->n_bytes = (size_t)elems * size;
    return 0;
}

int ty_npy_header(const ty_type *type, ty_buf *out, ty_error *err)
{
    char text[512], descr[8];
    memcpy(descr, "<V2", 4);
    if (type->dtype != TY_BF16)
        snprintf(descr, sizeof descr, "%s", ty_dtype_descr((ty_dtype)type->dtype));
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int k = 0; k < type->rank; k++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", k > 0 ? ", " : "", (long long)type->dim[k]);
    n += snprintf(text + n, sizeof text - (size_t)n, "%s), }", type->rank == 1 ? "," : "");
    int pad = type->rank > 0 ? NPY_GROWTH_DIGITS - snprintf(NULL, 0, "%lld", (long long)type->dim[0]) : 0;
    int used = 10 + n + pad + 1;
    pad += NPY_ALIGN - used % NPY_ALIGN;
    int header = n + pad + 1;
    ty_buf_add(out, NPY_MAGIC "\x01", NPY_MAGIC_BYTES + 2);
    ty_buf_addc(out, (char)(header & 255));
    ty_buf_addc(out, (char)(header >> 8));
    ty_buf_add(out, text, (size_t)n);
    ty_buf_addf(out, "%*s\n", pad, "");
    return out->failed ? ty_error_set(err, TY_E_LIMIT, "no room for an npy header of %d bytes", 10 + header) : 0;
}

int ty_npy_read(const char *path, ty_tensor *out, ty_error *err)
{
    ty_bytes bytes;
    ty_array a;
    if (ty_bytes_open(path, NULL, &bytes, err) < 0)
        return -1;
    int rc = ty_npy_parse(bytes.data, bytes.n, &a, err);
    if (rc == 0) {
        size_t room = (a.n_bytes + 63) / 64 * 64;
        void *data = aligned_alloc(64, room > 0 ? room : 64);
        if (data == NULL) {
            rc = ty_error_set(err, TY_E_LIMIT, "no memory for an array of %zu bytes", a.n_bytes);
        } else {
            ty_array_copy_native(&a, data);
            *out = (ty_tensor){.type = ty_type_make(a.dtype, a.rank, a.dim), .data = data};
        }
    }
    ty_bytes_close(&bytes);
    return rc < 0 ? ty_error_at(err, "%s", path) : 0;
}

int ty_npy_write(const char *path, const ty_tensor *t, ty_error *err)
{
    ty_buf header;
    ty_file_writer w;
    ty_buf_init(&header, 1024);
    if (ty_npy_header(&t->type, &header, err) < 0 || ty_file_writer_open(&w, path, 0644, err) < 0) {
        ty_buf_fini(&header);
        return -1;
    }
    int rc = ty_file_writer_add(&w, header.data, header.len, err);
    if (rc == 0)
        rc = ty_file_writer_add(&w, t->data, ty_type_bytes(&t->type), err);
    ty_buf_fini(&header);
    if (rc < 0) {
        ty_file_writer_abandon(&w);
        return -1;
    }
    return ty_file_writer_commit(&w, err);
}
