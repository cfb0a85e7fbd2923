/* native_rows.c - sorting numbers and adding up their rows: hand-written code against the reference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/native_case.h"

static const struct {
    int64_t n, table, width;
} sizes[] = {
    {1, 1, 1},      {5, 100, 3},     {200, 7, 33},        {9000, 3000, 2},
    {20000, 17, 1}, {9000, 2047, 5}, {9000, 5000000, 17}, {30000, 2049, 0},
};

static void numbers_are_sorted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int wide = 0; wide < 2; wide++) {
            ty_type index = ty_type_make(wide ? TY_I64 : TY_I32, DIMS(sizes[i].n));
            native_buffers b;
            ty_attr attr = {.index = sizes[i].table};
            uint32_t seed = 3;
            native_make(&b, TY_OP_FIND_ROWS, &attr, &index, 1, NATIVE_NOISE, 0);
            for (int64_t k = 0; k < sizes[i].n; k++) {
                int64_t row = (int64_t)(native_random(&seed) % sizes[i].table);
                row = k % 5 == 1 ? sizes[i].table / 2 : row; /* one comes often */
                if (wide)
                    memcpy((char *)b.in[0] + 8 * k, &row, 8);
                else
                    ((int32_t *)b.in[0])[k] = (int32_t)row;
            }
            native_call(&b, TY_OP_FIND_ROWS, &attr, NULL, 1);
            native_buffers want = b;
            native_check(&b, TY_OP_FIND_ROWS, &attr, want.out, 0);
            native_free_results(&want);
            native_free_operands(&b);
        }
}

/* Fills order and start of b by the reference of find_rows. */
static void sort_into(native_buffers *b, int64_t n, int64_t table)
{
    native_buffers f;
    ty_attr attr = {.index = table};
    ty_type index = ty_type_make(TY_I64, DIMS(n));
    uint32_t seed = 5;
    native_make(&f, TY_OP_FIND_ROWS, &attr, &index, 1, NATIVE_NOISE, 0);
    for (int64_t k = 0; k < n; k++) {
        int64_t row = k % 3 == 1 ? table / 3 : (int64_t)(native_random(&seed) % table);
        memcpy((char *)f.in[0] + 8 * k, &row, 8);
    }
    native_call(&f, TY_OP_FIND_ROWS, &attr, NULL, 1);
    memcpy(b->in[1], f.out[1], ty_type_bytes(&b->in_type[1]));
    memcpy(b->in[2], f.out[2], ty_type_bytes(&b->in_type[2]));
    native_free_results(&f);
    native_free_operands(&f);
}

static void rows_are_added_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t n = sizes[i].n, k = n < sizes[i].table ? n : sizes[i].table, starts = k + 1;
        native_buffers b;
        ty_attr attr = {0};
        if (sizes[i].width == 0) /* nothing to add: the library leaves it to the reference */
            continue;
        native_make(&b, TY_OP_SUM_ROWS, &attr,
                    TYPES(TYPE(TY_F32, DIMS(n, sizes[i].width)), TYPE(TY_I64, DIMS(n)), TYPE(TY_I64, DIMS(starts))),
                    NATIVE_NOISE, 0);
        sort_into(&b, n, sizes[i].table);
        native_call(&b, TY_OP_SUM_ROWS, &attr, NULL, 1);
        native_buffers want = b;
        native_check(&b, TY_OP_SUM_ROWS, &attr, want.out, 1e-3);
        native_free_results(&want);
        native_free_operands(&b);
    }
}

/* What no check of the data has refused writes nothing, here as in a scatter. */
static void numbers_outside_go_nowhere(void **state)
{
    (void)state;
    native_buffers b;
    ty_attr attr = {.index = 3};
    ty_type index = ty_type_make(TY_I64, DIMS(5));
    static const int64_t numbers[5] = {-1, 2, 3, 0, 2};
    static const int64_t rows[3] = {0, 2, -1}, start[4] = {0, 1, 3, 3};
    native_make(&b, TY_OP_FIND_ROWS, &attr, &index, 1, NATIVE_NOISE, 0);
    memcpy(b.in[0], numbers, sizeof numbers);
    native_call(&b, TY_OP_FIND_ROWS, &attr, ty_native_prepare_find_rows, 2);
    assert_memory_equal(b.out[0], rows, sizeof rows);
    assert_memory_equal(b.out[2], start, sizeof start);
    native_free_results(&b);
    native_free_operands(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_sorted),
        cmocka_unit_test(rows_are_added_up),
        cmocka_unit_test(numbers_outside_go_nowhere),
    };
    return cmocka_run_group_tests_name("native_rows", tests, NULL, NULL);
}
