/* native_order.c - argreduce, scan and sort by hand-written code against the reference. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/native_case.h"

typedef struct shape {
    int rank;
    int64_t dim[4];
} shape;

static const shape shapes[] = {
    {1, {1}},       {1, {15}},       {1, {16}},       {1, {33}},         {1, {20000}},      {2, {5, 7}},
    {2, {300, 70}}, {2, {130, 129}}, {3, {2, 9, 65}}, {3, {30, 40, 20}}, {4, {3, 1, 4, 2}},
};
static const ty_dtype dtypes[] = {TY_F32, TY_F64, TY_I32, TY_I64};

#define FOR_SHAPES(s)  for (const shape *s = shapes; s < shapes + sizeof shapes / sizeof *shapes; s++)
#define FOR_DTYPES(d)  for (int d = 0; d < (int)(sizeof dtypes / sizeof *dtypes); d++)
#define FOR_AXES(a, s) for (int a = 0; a < (s)->rank; a++)

static void argreduce_agrees(void **state)
{
    (void)state;
    FOR_SHAPES(s)
    FOR_DTYPES(d)
    FOR_AXES(axis, s)
    for (uint32_t k = 0; k < 12; k++) {
        ty_attr attr = {.axis = axis, .mode = k & 1 ? TY_MAX : TY_MIN, .flags = k >> 1 & 1};
        native_agrees(TY_OP_ARGREDUCE, attr, TYPES(ty_type_make(dtypes[d], s->rank, s->dim)), (native_fill)(k >> 2), 0);
    }
}

static void scan_agrees(void **state)
{
    (void)state;
    FOR_SHAPES(s)
    FOR_DTYPES(d)
    FOR_AXES(axis, s)
    for (uint32_t mode = TY_SUM; mode <= TY_PROD; mode++)
        for (uint32_t flags = 0; flags < 4; flags++) {
            ty_attr attr = {.axis = axis, .mode = mode, .flags = flags};
            native_agrees(TY_OP_SCAN, attr, TYPES(ty_type_make(dtypes[d], s->rank, s->dim)),
                          mode == TY_MAX || mode == TY_MIN ? NATIVE_TIES : NATIVE_NOISE, 0);
        }
}

static void sort_agrees(void **state)
{
    (void)state;
    FOR_SHAPES(s)
    FOR_DTYPES(d)
    FOR_AXES(axis, s)
    for (uint32_t k = 0; k < 4; k++) {
        ty_attr attr = {.axis = axis, .flags = k & 1};
        native_agrees(TY_OP_SORT, attr, TYPES(ty_type_make(dtypes[d], s->rank, s->dim)), (native_fill)(k >> 1), 0);
    }
}

/* Keys at the ends of their range. */
static void sort_knows_extremes(void **state)
{
    (void)state;
    const int64_t x[6] = {INT64_MAX, 0, INT64_MIN, -1, 1, INT64_MIN}, want[6] = {2, 5, 3, 1, 4, 0};
    int64_t values[6], places[6], scratch[64];
    ty_attr attr = {.axis = 0};
    ty_type t = TYPE(TY_I64, DIMS(6)), res[2] = {t, t};
    ty_library_shape shape = {&attr, &t, 1, res, 2, 1, true};
    ty_library_call call;
    assert_int_equal(ty_native_prepare_sort(&shape, &call, NULL), 0);
    assert_true(call.scratch_bytes <= sizeof scratch);
    call.run(call.prepared, (const void *const[]){x}, (void *const[]){values, places}, scratch);
    call.release(call.prepared);
    assert_memory_equal(places, want, sizeof want);
    for (int k = 0; k < 6; k++)
        assert_int_equal(values[k], x[want[k]]);
}

static void other_dtypes_are_refused(void **state)
{
    (void)state;
    ty_attr attr = {.axis = 0, .mode = TY_MAX};
    ty_type t = TYPE(TY_F16, DIMS(6));
    ty_library_shape shape = {&attr, &t, 1, &t, 1, 1, true};
    ty_library_prepare_fn *const prepare[] = {ty_native_prepare_sort, ty_native_prepare_scan,
                                              ty_native_prepare_argreduce};
    for (int i = 0; i < 3; i++) {
        ty_library_call call;
        ty_error err = {0};
        assert_int_equal(prepare[i](&shape, &call, &err), -1);
        assert_int_equal(err.code, TY_E_UNSUPPORTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(argreduce_agrees),
        cmocka_unit_test(scan_agrees),
        cmocka_unit_test(sort_agrees),
        cmocka_unit_test(sort_knows_extremes),
        cmocka_unit_test(other_dtypes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
