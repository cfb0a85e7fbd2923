/* Arrow: what is read has as many rows as its record batch, whose values lie in what was read. */
#include "container/input/arrow/arrow.h"
#include "tests/fuzz/columns.h"

#include <stdlib.h>

enum { MAX_ROWS = 1 << 16, MAX_GROUPS = 64, MAX_COLUMNS = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static parquet_values v; /* memory goes from column to column */
    arrow_bytes bytes = {.fd = -1, .data = data ? data : (const uint8_t *)"", .n = (int64_t)size};
    ty_arena a;
    parquet_file f;
    arrow_file *file;
    ty_error err = {0};
    ty_arena_init(&a);
    if (arrow_open(bytes, &a, &f, &file, &err) < 0)
        check_error(&err);
    for (int g = 0; err.code == TY_E_NONE && g < f.n_groups && g < MAX_GROUPS; g++)
        for (int c = 0; c < f.n_columns && c < MAX_COLUMNS; c++) {
            ty_error one = {0};
            if (f.column[c].odd || f.group[g].n_rows > MAX_ROWS || f.group[g].chunk[c].n_values > MAX_ROWS)
                continue;
            if (arrow_read(file, bytes, g, c, &v, &one) < 0)
                check_error(&one);
            else
                check_values(&v, f.group[g].n_rows);
        }
    ty_arena_fini(&a);
    return 0;
}
