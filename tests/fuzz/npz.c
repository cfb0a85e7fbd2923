/* The zip reader under npz: every member of whatever is accepted is unpacked, and read as npy. */
#include "container/input/npy.h"
#include "base/zip.h"

#include <stdlib.h>

enum { MAX_MEMBER_BYTES = 1 << 20, MAX_MEMBERS = 64 };

static void read_member(const ty_zip *z, const ty_zip_entry *e)
{
    const uint8_t *content;
    uint8_t *owned;
    ty_array a;
    ty_error err = {0};
    if (ty_zip_read(z, e, MAX_MEMBER_BYTES, &content, &owned, &err) < 0) {
        if (err.code == TY_E_NONE || !err.message[0])
            abort();
        return;
    }
    unsigned sum = 0;
    for (uint64_t i = 0; i < e->plain_bytes; i++)
        sum += content[i];
    if (sum == 0xffffffffu)
        abort(); /* never: keeps the loop */
    ty_npy_parse(content, (size_t)e->plain_bytes, &a, &err);
    free(owned);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ty_zip z;
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    ty_error err = {0};
    if (ty_zip_open(data, size, &z, &err) < 0)
        return 0;
    for (int i = 0; i < MAX_MEMBERS && ty_zip_next(&z, &walk, &e, &err) == 1; i++)
        read_member(&z, &e);
    return 0;
}
