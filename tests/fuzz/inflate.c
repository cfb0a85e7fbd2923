/* Compressed bytes: the first byte says in which pieces they are fed; the result must be that of one piece. */
#include "container/input/bytes.h"
#include "container/input/inflate.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 16 };

static int in_pieces(ty_packing packing, const uint8_t *data, size_t size, size_t piece, uint8_t *out, size_t *n_out)
{
    ty_inflate z;
    size_t at = 0, n = 0;
    ty_error err = {0};
    if (ty_inflate_init(&z, packing, MAX_BYTES, NULL) < 0)
        return -1;
    int rc;
    for (*n_out = 0; (rc = ty_inflate_take(&z, out + *n_out, piece, &n, &err)) == 0;) {
        *n_out += n;
        if (n == piece)
            continue;
        if (at == size)
            break;
        size_t fed = piece < size - at ? piece : size - at;
        ty_inflate_feed(&z, data + at, fed);
        at += fed;
    }
    rc = rc == 0 ? ty_inflate_end(&z, &err) : rc;
    if (rc < 0 && !err.message[0])
        abort();
    ty_inflate_fini(&z);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t piece = (size_t)data[0] + 1, n = 0, n_whole = 0;
    ty_packing packing = ty_packing_of(data + 1, size - 1);
    if (packing == TY_PACKING_NONE)
        return 0;
    uint8_t *out = malloc(MAX_BYTES + 512), *whole = NULL;
    int rc = in_pieces(packing, data + 1, size - 1, piece, out, &n);
    int rc_whole = ty_inflate_all(packing, data + 1, size - 1, MAX_BYTES, &whole, &n_whole, NULL);
    if (rc == 0 && (rc_whole < 0 || n != n_whole || (n > 0 && memcmp(out, whole, n) != 0)))
        abort();
    if (rc_whole == 0)
        free(whole);
    free(out);
    return 0;
}
