/* The npy reader: what is accepted lies inside the input, and reads back as itself from what we write. */
#include "container/input/npy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_array a, again;
    ty_error err = {0};
    if (ty_npy_parse(data, size, &a, &err) < 0) {
        if (err.code == TY_E_NONE || !err.message[0])
            abort();
        return 0;
    }
    if (a.data < data || a.n_bytes > size || a.data + a.n_bytes > data + size)
        abort();
    ty_type type = ty_type_make(a.dtype, a.rank, a.dim);
    ty_buf file;
    ty_buf_init(&file, size + 4096);
    if (ty_npy_header(&type, &file, &err) < 0)
        abort();
    char *room = ty_buf_reserve(&file, a.n_bytes);
    if (room == NULL)
        abort();
    ty_array_copy_native(&a, room);
    file.len += a.n_bytes;
    if (ty_npy_parse((const uint8_t *)file.data, file.len, &again, &err) < 0)
        abort();
    ty_type type_again = ty_type_make(again.dtype, again.rank, again.dim);
    if (!ty_type_same(&type, &type_again) || !ty_array_is_native(&again) || again.n_bytes != a.n_bytes)
        abort();
    ty_buf_fini(&file);
    return 0;
}
