/* The IDX reader: what is accepted fills the input exactly and can be copied. */
#include "container/input/idx.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_array a;
    ty_error err = {0};
    if (ty_idx_parse(data, size, &a, &err) < 0) {
        if (err.code == TY_E_NONE || !err.message[0])
            abort();
        return 0;
    }
    if (a.data < data || a.data + a.n_bytes != data + size)
        abort();
    void *native = malloc(a.n_bytes > 0 ? a.n_bytes : 1);
    ty_array_copy_native(&a, native);
    free(native);
    return 0;
}
