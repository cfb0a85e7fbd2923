/* input_lengths.c - how long samples are: rows of every type, filled up at either end, on any number of threads; and
 * what is left of rows that are cut.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/lengths.h"

#include <string.h>

enum { COLUMNS = 6, INNER = 2, SAMPLES = 1000 };

/* A data set whose sample i has (i * 7) % (COLUMNS + 1) columns that are not filling. */
typedef struct rows {
    ty_dataset ds;
    ty_field_info field[2];
    double fill;
    bool left;
    int64_t fails_at; /* this sample cannot be read; -1: all can */
} rows;

static int64_t length_of(int64_t sample)
{
    return sample * 7 % (COLUMNS + 1);
}

static void put(ty_dtype dtype, double v, uint8_t *out)
{
    int64_t whole = v < 0x1p63 ? (int64_t)v : (int64_t)(uint64_t)v;
    float single = (float)v;
    if (dtype == TY_F64)
        memcpy(out, &v, sizeof v);
    else if (dtype == TY_F32)
        memcpy(out, &single, sizeof single);
    else
        memcpy(out, &whole, ty_dtype_bytes(dtype));
}

static int read_rows(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    const rows *r = ds->impl;
    const ty_type *t = &ds->field[field].type;
    size_t bytes = ty_dtype_bytes((ty_dtype)t->dtype);
    int64_t inner = t->rank == 2 ? INNER : 1;
    uint8_t *at = out;
    for (int64_t i = 0; i < n; i++) {
        if (samples[i] == r->fails_at)
            return ty_error_set(err, TY_E_DATA_VALUE, "sample %d is bad", (int)samples[i]);
        int64_t length = field == 0 ? length_of(samples[i]) : samples[i] == 3 ? COLUMNS : 0;
        for (int64_t k = 0; k < COLUMNS * inner; k++, at += bytes) {
            int64_t column = r->left ? COLUMNS - 1 - k / inner : k / inner;
            /* Filling stands within rows too, and in a part of a last column. */
            bool is_filling = column >= length || (column + 1 < length && column % 2) ||
                              (inner > 1 && column + 1 == length && k % inner == 0);
            put((ty_dtype)t->dtype, is_filling ? r->fill : 1 + (double)(k % 5), at);
        }
    }
    return 0;
}

static const ty_dataset_ops ops = {.read = read_rows};

static void open_rows(rows *r, ty_dtype dtype, int rank, double fill, bool left)
{
    *r = (rows){.fill = fill, .left = left, .fails_at = -1};
    const int64_t dims[] = {COLUMNS, INNER};
    for (int i = 0; i < 2; i++) {
        r->field[i] = (ty_field_info){.name = "x", .type = ty_type_make(dtype, rank, dims)};
        r->field[i].row_bytes = ty_type_bytes(&r->field[i].type);
    }
    r->ds = (ty_dataset){.ops = &ops, .n_samples = SAMPLES, .n_fields = 2, .field = r->field, .impl = r};
}

static void rows_end_where_they_are_filled_up(void **state)
{
    (void)state;
    static const struct {
        ty_dtype dtype;
        double fill;
    } kinds[] = {{TY_I64, 0},     {TY_I64, -100}, {TY_I32, -1}, {TY_I16, 7},    {TY_I8, -128}, {TY_U8, 255},
                 {TY_U16, 65535}, {TY_U32, 0},    {TY_F32, 0},  {TY_F32, -0.1}, {TY_F64, -0.1}};
    static uint32_t length[SAMPLES];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (int rank = 1; rank <= 2; rank++)
            for (int left = 0; left < 2; left++)
                for (int threads = 1; threads <= 3; threads++) {
                    rows r;
                    ty_error err = {0};
                    open_rows(&r, kinds[i].dtype, rank, kinds[i].fill, left);
                    const ty_filled f = {.field = 0, .fill = kinds[i].fill, .left = left};
                    if (ty_lengths_measure(&r.ds, &f, 1, threads, r.ds.n_samples, length, &err) < 0)
                        fail_msg("%s", err.message);
                    for (int64_t s = 0; s < SAMPLES; s++)
                        assert_int_equal(length[s], length_of(s));
                }
}

/* A value that the type has not fills nothing up: rows are whole. */
static void what_cannot_be_there_fills_nothing_up(void **state)
{
    (void)state;
    static const struct {
        ty_dtype dtype;
        double fill;
    } kinds[] = {{TY_U8, -1}, {TY_U8, 256}, {TY_I8, 128}, {TY_I64, 0.5}, {TY_I64, 1e300}};
    static uint32_t length[SAMPLES];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        rows r;
        open_rows(&r, kinds[i].dtype, 1, 0, false);
        const ty_filled f = {.field = 0, .fill = kinds[i].fill};
        assert_int_equal(ty_lengths_measure(&r.ds, &f, 1, 1, r.ds.n_samples, length, NULL), 0);
        for (int64_t s = 0; s < SAMPLES; s++)
            assert_int_equal(length[s], COLUMNS);
    }
}

static void a_sample_is_as_long_as_its_longest_row(void **state)
{
    (void)state;
    static uint32_t length[SAMPLES];
    rows r;
    open_rows(&r, TY_I64, 1, 0, false);
    const ty_filled both[] = {{.field = 1}, {.field = 0}};
    assert_int_equal(ty_lengths_measure(&r.ds, both, 2, 2, r.ds.n_samples, length, NULL), 0);
    for (int64_t s = 0; s < SAMPLES; s++)
        assert_int_equal(length[s], s == 3 ? COLUMNS : length_of(s));
}

static void a_sample_that_cannot_be_read_is_told(void **state)
{
    (void)state;
    static uint32_t length[SAMPLES];
    rows r;
    ty_error err = {0};
    open_rows(&r, TY_I64, 1, 0, false);
    r.fails_at = 700;
    assert_int_equal(ty_lengths_measure(&r.ds, &(ty_filled){.field = 0}, 1, 3, r.ds.n_samples, length, &err), -1);
    assert_string_equal(err.message, "sample 700 is bad");
}

static void rows_are_cut_where_they_are_filled_up(void **state)
{
    (void)state;
    const int32_t from[2][COLUMNS][INNER] = {{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}},
                                             {{21, 22}, {23, 24}, {25, 26}, {27, 28}, {29, 30}, {31, 32}}};
    const int32_t first[] = {1, 2, 3, 4, 21, 22, 23, 24}, last[] = {9, 10, 11, 12, 29, 30, 31, 32};
    int32_t to[8];
    ty_filled_cut(&(ty_filled){.left = false}, from, 2, COLUMNS, 2, sizeof from[0][0], to);
    assert_memory_equal(to, first, sizeof to);
    ty_filled_cut(&(ty_filled){.left = true}, from, 2, COLUMNS, 2, sizeof from[0][0], to);
    assert_memory_equal(to, last, sizeof to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_end_where_they_are_filled_up),
        cmocka_unit_test(what_cannot_be_there_fills_nothing_up),
        cmocka_unit_test(a_sample_is_as_long_as_its_longest_row),
        cmocka_unit_test(a_sample_that_cannot_be_read_is_told),
        cmocka_unit_test(rows_are_cut_where_they_are_filled_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
