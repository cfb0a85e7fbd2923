/* native_scatter.c - writing rows and elements by number: hand-written code against the reference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/native_case.h"

typedef struct shape {
    int rank, index_rank, axis;
    int64_t x[4], index[4];
} shape;

static const shape scatter_shapes[] = {
    {1, 1, 0, {5}, {9}},
    {2, 1, 0, {7, 3}, {20}},
    {2, 2, 0, {300, 33}, {8, 50}}, /* many short rows: dealt by row */
    {2, 1, 0, {40, 1000}, {30}},   /* long rows: dealt by piece */
    {2, 1, 1, {50, 400}, {70}},    /* slabs */
    {3, 1, 1, {2, 90, 100}, {200}},
    {3, 0, 2, {3, 4, 5}, {0}}, /* one number */
    {3, 1, 1, {2, 5, 3}, {7}},
};

static const shape put_shapes[] = {
    {1, 1, 0, {5}, {9}},
    {2, 2, 0, {7, 3}, {20, 3}},
    {2, 2, 1, {3, 7}, {3, 20}},
    {2, 2, 0, {300, 70}, {90, 70}},
    {3, 3, 1, {50, 6, 70}, {50, 9, 70}},
    {2, 2, 1, {100, 200}, {100, 30}},
};

/* x.shape[:axis] + index.shape + x.shape[axis + 1:], or the index's for put */
static ty_type update_type(const shape *s, ty_dtype dtype, bool is_put)
{
    int64_t dim[8];
    int rank = 0;
    if (is_put)
        return ty_type_make(dtype, s->index_rank, s->index);
    for (int i = 0; i < s->axis; i++)
        dim[rank++] = s->x[i];
    for (int i = 0; i < s->index_rank; i++)
        dim[rank++] = s->index[i];
    for (int i = s->axis + 1; i < s->rank; i++)
        dim[rank++] = s->x[i];
    return ty_type_make(dtype, rank, dim);
}

static void agree_all(const shape *s, bool is_put)
{
    static const ty_dtype data[] = {TY_F32, TY_F64, TY_I32, TY_I64}, number[] = {TY_I32, TY_I64};
    for (uint32_t mode = TY_SUM; mode <= TY_SET; mode++)
        for (int d = 0; d < 4; d++)
            for (int i = 0; i < 2; i++) {
                ty_attr attr = {.axis = s->axis, .mode = mode};
                native_agrees_below(is_put ? TY_OP_PUT : TY_OP_SCATTER, attr,
                                    TYPES(ty_type_make(data[d], s->rank, s->x),
                                          ty_type_make(number[i], s->index_rank, s->index),
                                          update_type(s, data[d], is_put)),
                                    mode == TY_SUM || mode == TY_PROD ? NATIVE_NOISE : NATIVE_TIES,
                                    mode == TY_SET ? 0 : 2e-5, s->x[s->axis]);
            }
}

static void scatter_agrees(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof scatter_shapes / sizeof *scatter_shapes; k++)
        agree_all(&scatter_shapes[k], false);
}

static void put_agrees(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof put_shapes / sizeof *put_shapes; k++)
        agree_all(&put_shapes[k], true);
}

/* Of 60 numbers all but one are outside: nothing else is written, whatever way rows are dealt out. */
static void wild(ty_op op, int64_t rows, int64_t wide)
{
    static const int64_t far[] = {-1, INT64_MIN, INT64_MAX, INT64_C(1) << 32, INT64_C(1) << 60};
    native_buffers b;
    ty_attr attr = {.axis = 0, .mode = TY_SUM};
    ty_type x = TYPE(TY_F32, DIMS(rows, wide)), update = TYPE(TY_F32, DIMS(60, wide));
    ty_type index = op == TY_OP_PUT ? TYPE(TY_I64, DIMS(60, wide)) : TYPE(TY_I64, DIMS(60));
    native_make(&b, op, &attr, TYPES(x, index, update), NATIVE_NOISE, 1);
    int64_t n = ty_type_elems(&index), each = n / 60;
    float *want = malloc(ty_type_bytes(&x));
    memcpy(want, b.in[0], ty_type_bytes(&x));
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k / each == 31 ? rows - 1 : k % 6 == 5 ? rows : far[k % 6];
        memcpy((char *)b.in[1] + k * 8, &at, 8);
    }
    for (int64_t i = 0; i < wide; i++)
        want[(rows - 1) * wide + i] += ((const float *)b.in[2])[31 * wide + i];
    native_check(&b, op, &attr, (void *const[]){want}, 0);
    free(want);
    native_free_operands(&b);
}

static void wild_index_writes_nothing(void **state)
{
    (void)state;
    wild(TY_OP_SCATTER, 4, 3);
    wild(TY_OP_SCATTER, 2000, 16);
    wild(TY_OP_SCATTER, 30, 2000);
    wild(TY_OP_PUT, 4, 3);
    wild(TY_OP_PUT, 200, 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scatter_agrees),
        cmocka_unit_test(put_agrees),
        cmocka_unit_test(wild_index_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
