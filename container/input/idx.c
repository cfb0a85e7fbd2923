/* idx.c - see idx.h. Source: the description on Yann LeCun's MNIST page. */
#include "container/input/idx.h"

static const struct {
    uint8_t code;
    ty_dtype dtype;
} idx_types[] = {{0x08, TY_U8}, {0x09, TY_I8}, {0x0b, TY_I16}, {0x0c, TY_I32}, {0x0d, TY_F32}, {0x0e, TY_F64}};

static int idx_type(uint8_t code, ty_dtype *out, ty_error *err)
{
    for (size_t i = 0; i < sizeof idx_types / sizeof idx_types[0]; i++)
        if (idx_types[i].code == code) {
            *out = idx_types[i].dtype;
            return 0;
        }
    return ty_error_set(err, TY_E_DATA, "unknown IDX element type 0x%02x at byte 2, expected 08, 09, 0b, 0c, 0d or 0e",
                        code);
}

int ty_idx_parse(const uint8_t *b, size_t n, ty_array *out, ty_error *err)
{
    if (n < 4 || b[0] != 0 || b[1] != 0) {
        ty_error_set(err, TY_E_DATA, "not an IDX file: expected 00 00, a type and a rank in the first 4 bytes");
        return ty_error_help(err, "the file has %zu bytes and starts with %02x %02x", n, n > 0 ? b[0] : 0,
                             n > 1 ? b[1] : 0);
    }
    *out = (ty_array){.big_endian = true, .rank = b[3]};
    if (idx_type(b[2], &out->dtype, err) < 0)
        return -1;
    if (out->rank < 1 || out->rank > TY_MAX_RANK)
        return ty_error_set(err, TY_E_DATA, "IDX rank %d at byte 3, expected 1 to %d", out->rank, TY_MAX_RANK);
    size_t header = 4 + 4 * (size_t)out->rank;
    if (n < header)
        return ty_error_set(err, TY_E_DATA, "the IDX header needs %zu bytes for its %d sizes, the file has %zu", header,
                            out->rank, n);
    for (int k = 0; k < out->rank; k++) {
        const uint8_t *p = b + 4 + 4 * k;
        out->dim[k] = (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | p[3];
    }
    size_t size = ty_dtype_bytes(out->dtype);
    int64_t elems = ty_dims_elems_checked(out->rank, out->dim, size);
    if (elems < 0)
        return ty_error_set(err, TY_E_DATA,
                            "the IDX header promises more elements than memory has addresses, the file has "
                            "%zu bytes of data",
                            n - header);
    if ((uint64_t)elems * size != n - header) {
        ty_error_set(err, TY_E_DATA,
                     "the IDX header promises %lld elements of %zu bytes, the file has %zu bytes of data",
                     (long long)elems, size, n - header);
        return ty_error_help(err, "the file may be cut short; fetch it again");
    }
    out->data = b + header;
    out->n_bytes = n - header;
    return 0;
}
