/* array.c - byte order and axis order made native. */
#include "container/input/array.h"

#include <string.h>

bool ty_array_is_native(const ty_array *a)
{
    int long_axes = 0;
    for (int k = 0; k < a->rank; k++)
        long_axes += a->dim[k] != 1;
    bool order_matters = a->fortran && long_axes > 1;
    return !order_matters && (!a->big_endian || ty_dtype_bytes(a->dtype) == 1);
}

static void array_swap_bytes(uint8_t *p, size_t n_elems, size_t size)
{
    for (size_t i = 0; i < n_elems; i++, p += size)
        for (size_t lo = 0, hi = size - 1; lo < hi; lo++, hi--) {
            uint8_t byte = p[lo];
            p[lo] = p[hi];
            p[hi] = byte;
        }
}

/* Walks the result in C order, the source by strides: an odometer over the indices. */
static void array_transpose(const ty_array *a, uint8_t *out, size_t size)
{
    int64_t stride[TY_MAX_RANK], index[TY_MAX_RANK] = {0};
    int64_t step = (int64_t)size, at = 0;
    for (int k = 0; k < a->rank; k++) {
        stride[k] = step;
        step *= a->dim[k];
    }
    for (size_t done = 0; done < a->n_bytes; done += size) {
        memcpy(out + done, a->data + at, size);
        for (int k = a->rank - 1; k >= 0; k--) {
            at += stride[k];
            if (++index[k] < a->dim[k])
                break;
            at -= stride[k] * a->dim[k];
            index[k] = 0;
        }
    }
}

void ty_array_copy_native(const ty_array *a, void *out)
{
    size_t size = ty_dtype_bytes(a->dtype);
    if (a->n_bytes == 0)
        return;
    if (a->fortran && a->rank > 1)
        array_transpose(a, out, size);
    else
        memcpy(out, a->data, a->n_bytes);
    if (a->big_endian && size > 1)
        array_swap_bytes(out, a->n_bytes / size, size);
}
