/* ours_input.c - see ours_input.h. */
#include "bench/ours_input.h"

#include "container/input/npy.h"

#include <stdlib.h>
#include <string.h>

int ours_input_open(ours_input *in, const char *name, const char *path, ty_error *err)
{
    ty_array a;
    in->name = name;
    if (ty_file_map(path, &in->view, err) < 0)
        return -1;
    if (ty_npy_parse(in->view.bytes, in->view.n_bytes, &a, err) < 0)
        return ty_error_at(err, "%s", path);
    if (!ty_array_is_native(&a) || a.rank < 2 || a.dim[0] < 1) {
        ty_error_set(err, TY_E_DATA, "expected a little-endian array [batches, B, ...] in C order, found rank %d",
                     a.rank);
        return ty_error_at(err, "%s", path);
    }
    in->data = a.data;
    in->type = ty_type_make(a.dtype, a.rank - 1, a.dim + 1);
    in->batches = a.dim[0];
    in->batch_bytes = ty_type_bytes(&in->type);
    in->aligned = aligned_alloc(64, (in->batch_bytes + 63) / 64 * 64);
    return in->aligned ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a batch of %zu bytes", in->batch_bytes);
}

int ours_input_resize(ours_input *in, int64_t rows, ty_error *err)
{
    size_t row_bytes = in->batch_bytes / (size_t)in->type.dim[0], bytes = row_bytes * (size_t)rows;
    void *all = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!all)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a batch of %zu bytes", bytes);
    for (int64_t i = 0; i < rows; i++)
        memcpy((char *)all + (size_t)i * row_bytes, in->data + (size_t)(i % in->type.dim[0]) * row_bytes, row_bytes);
    free(in->aligned);
    in->aligned = all;
    in->data = all;
    in->batches = 1;
    in->type.dim[0] = rows;
    in->batch_bytes = bytes;
    return 0;
}

void ours_input_close(ours_input *in)
{
    free(in->aligned);
    if (in->view.bytes)
        ty_file_unmap(&in->view);
}

const void *ours_input_batch(const ours_input *in, int step)
{
    const uint8_t *at = in->data + (size_t)(step % in->batches) * in->batch_bytes;
    return (uintptr_t)at % 64 == 0 ? at : memcpy(in->aligned, at, in->batch_bytes);
}
