/* The checks on archives, and the writer: what is accepted is written again, member by member, and must then hold the
 * same. */
#include "base/zip.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20 };

static int sink(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    return ty_buf_add(ctx, bytes, n) < 0 ? ty_error_set(err, TY_E_LIMIT, "full") : 0;
}

static void copy_all(const ty_zip *z, ty_buf *out)
{
    ty_zip_writer w;
    ty_zip_walk walk = {0};
    ty_zip_entry e;
    ty_zip_writer_init(&w, sink, out);
    while (ty_zip_next(z, &walk, &e, NULL) == 1)
        if (ty_zip_writer_copy(&w, z, &e, NULL) < 0)
            abort();
    if (ty_zip_writer_finish(&w, NULL) < 0)
        abort();
    ty_zip_writer_fini(&w);
}

/* Both or neither can be read, and then they are equal. */
static void compare(const ty_zip *a, const ty_zip *b)
{
    ty_zip_walk at_a = {0}, at_b = {0};
    ty_zip_entry x, y;
    while (ty_zip_next(a, &at_a, &x, NULL) == 1) {
        const uint8_t *p = NULL, *q = NULL;
        uint8_t *own_p, *own_q;
        if (ty_zip_next(b, &at_b, &y, NULL) != 1 || x.plain_bytes != y.plain_bytes || x.name_bytes != y.name_bytes ||
            memcmp(x.name, y.name, x.name_bytes) != 0)
            abort();
        int read = ty_zip_read(a, &x, MAX_BYTES, &p, &own_p, NULL);
        if (ty_zip_read(b, &y, MAX_BYTES, &q, &own_q, NULL) != read)
            abort();
        if (read == 0 && x.plain_bytes && memcmp(p, q, (size_t)x.plain_bytes) != 0)
            abort();
        free(own_p), free(own_q);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ty_zip_limits limits = {
        .max_entries = 64, .max_total_bytes = MAX_BYTES, .free_bytes = 1 << 16, .max_ratio = 100};
    ty_zip z, again;
    ty_error err = {0};
    ty_buf out;
    if (ty_zip_open(data, size, &z, &err) < 0 || ty_zip_check(&z, &limits, &err) < 0) {
        if (err.code == TY_E_NONE || !err.message[0])
            abort();
        return 0;
    }
    ty_buf_init(&out, 4 * size + 4096);
    copy_all(&z, &out);
    if (ty_zip_open((const uint8_t *)out.data, out.len, &again, NULL) < 0 || ty_zip_check(&again, &limits, NULL) < 0)
        abort();
    compare(&z, &again);
    ty_buf_fini(&out);
    return 0;
}
