/* Parquet: what is read has as many rows as its row group, whose values lie in what was decoded; a row that is packed
 * is the same when it is unpacked.
 */
#include "container/input/parquet/packing.h"
#include "tests/fuzz/columns.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 1 << 16, MAX_GROUPS = 64, MAX_COLUMNS = 256, PACKED_ROWS = 50 };

static void check_alike(const parquet_values *v, int64_t from, const parquet_values *row)
{
    size_t each = parquet_form_bytes(v->form);
    for (int64_t i = 0; i < row->n; i++) {
        if ((v->null && v->null[from + i]) != (row->null && row->null[i]))
            abort();
        const char *a = (const char *)v->v + (size_t)(from + i) * each, *b = (const char *)row->v + (size_t)i * each;
        const parquet_span *s = (const void *)a, *t = (const void *)b;
        if (v->form == PARQUET_AS_BYTES
                ? s->n != t->n || (s->n > 0 && memcmp(v->bytes + s->at, row->bytes + t->at, s->n))
                : memcmp(a, b, each) != 0)
            abort();
    }
}

static void check_packed(const parquet_column *column, const parquet_values *v, ty_arena *a)
{
    static const size_t at = 0;
    parquet_form form = v->form;
    parquet_packing p;
    parquet_unpacked u = {0};
    ty_error err = {0};
    parquet_packing_init(
        &p, &(parquet_rows){.path = &(const char *){""}, .column = &column, .n_columns = 1, .form = &form}, a);
    for (int64_t i = 0; i < v->n_rows && i < PACKED_ROWS; i++) {
        int64_t from = v->first ? v->first[i] : i, n = v->first ? v->first[i + 1] - from : 1;
        size_t bytes = parquet_packed_bytes(&p, v, i);
        uint8_t *packed = malloc(bytes);
        uint64_t told;
        parquet_pack_rows(&p, v, i, 1, &at, packed);
        memcpy(&told, packed, sizeof told);
        if (parquet_unpack_row(&p, &u, packed + PARQUET_PACKED_HEAD, bytes - PARQUET_PACKED_HEAD, &err) < 0)
            abort();
        if (told + PARQUET_PACKED_HEAD != bytes || bytes % 8 != 0 || u.v->n != n)
            abort();
        check_alike(v, from, u.v);
        free(packed);
    }
    parquet_unpacked_fini(&u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static parquet_room room; /* as from column to column */
    static parquet_values v;
    ty_arena a;
    parquet_file f;
    ty_error err = {0};
    ty_arena_init(&a);
    if (parquet_open(data, size, &a, &f, &err) < 0)
        check_error(&err);
    for (int g = 0; err.code == TY_E_NONE && g < f.n_groups && g < MAX_GROUPS; g++)
        for (int c = 0; c < f.n_columns && c < MAX_COLUMNS; c++) {
            ty_error one = {0};
            if (f.group[g].n_rows > MAX_ROWS || f.group[g].chunk[c].n_values > MAX_ROWS)
                continue;
            if (parquet_read(&f, g, c, 0, &room, &v, &one) < 0) {
                check_error(&one);
                continue;
            }
            check_values(&v, f.group[g].n_rows);
            check_packed(&f.column[c], &v, &a);
        }
    ty_arena_fini(&a);
    return 0;
}
