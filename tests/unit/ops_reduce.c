/* ops_reduce.c - reduce, argreduce and scan: values, refusals, gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/ops/combine.h"
#include "tests/unit/ops_case.h"
#include "tests/unit/ops_gradient.h"

static void reduce_combines(void **state)
{
    (void)state;
    ty_ref x = F64(DIMS(2, 3), 1, -2, 3, 4, 5, 0.5);
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 1}, IN(x), OUT(F64(DIMS(3), 5, 3, 3.5)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 2}, IN(x), OUT(F64(DIMS(2), 2, 9.5)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 3}, IN(x), OUT(F64(SCALAR, 11.5)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 0}, IN(x), OUT(x));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MAX, .axes = 2}, IN(x), OUT(F64(DIMS(2), 3, 5)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MIN, .axes = 1}, IN(x), OUT(F64(DIMS(3), 1, -2, 0.5)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_PROD, .axes = 2}, IN(x), OUT(F64(DIMS(2), -6, 10)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 5}, IN(F64(DIMS(2, 2, 2), 1, 2, 3, 4, 5, 6, 7, 8)),
                OUT(F64(DIMS(2), 14, 22)));
}

static void reduce_special_values(void **state)
{
    (void)state;
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MAX, .axes = 1}, IN(F64(DIMS(3), 1, NAN, 2)), OUT(F64(SCALAR, NAN)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MIN, .axes = 1}, IN(F64(DIMS(3), NAN, 0, 2)), OUT(F64(SCALAR, NAN)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 1}, IN(INT(TY_U8, DIMS(2), 200, 100)),
                OUT(INT(TY_U8, SCALAR, 44)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MAX, .axes = 1}, IN(INT(TY_U64, DIMS(2), -1, 3)),
                OUT(INT(TY_U64, SCALAR, -1)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MAX, .axes = 2}, IN(INT(TY_BOOL, DIMS(2, 2), 0, 1, 0, 0)),
                OUT(INT(TY_BOOL, DIMS(2), 1, 0)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MIN, .axes = 2}, IN(INT(TY_BOOL, DIMS(2, 2), 0, 1, 1, 1)),
                OUT(INT(TY_BOOL, DIMS(2), 0, 1)));
    /* nothing to combine: the identity */
    ty_ref none = case_noise(DIMS(1, 0), 1), none_i = {.type = ty_type_make(TY_I16, DIMS(1, 0))};
    none_i.i = ty_arena_alloc(&case_arena, 0);
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 2}, IN(none), OUT(F64(DIMS(1), 0)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_PROD, .axes = 2}, IN(none), OUT(F64(DIMS(1), 1)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MAX, .axes = 2}, IN(none), OUT(F64(DIMS(1), -INFINITY)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MIN, .axes = 2}, IN(none_i), OUT(INT(TY_I16, DIMS(1), 32767)));
    case_expect(TY_OP_REDUCE, (ty_attr){.mode = TY_MAX, .axes = 2}, IN(none_i), OUT(INT(TY_I16, DIMS(1), -32768)));
}

static void reduce_refuses(void **state)
{
    (void)state;
    case_refused(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 4}, IN(TYPE(TY_F32, DIMS(2, 3))), "axes: expected");
    case_refused(TY_OP_REDUCE, (ty_attr){.mode = TY_SET, .axes = 1}, IN(TYPE(TY_F32, DIMS(2))), "found set");
    case_refused(TY_OP_REDUCE, (ty_attr){.mode = TY_SUM, .axes = 1}, IN(TYPE(TY_BOOL, DIMS(2))), "max, min, found sum");
}

static void argreduce_finds(void **state)
{
    (void)state;
    ty_ref x = F64(DIMS(2, 4), 1, 3, 3, 0, -1, -2, -2, 5);
    case_expect(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MAX, .axis = 1}, IN(x), OUT(INT(TY_I64, DIMS(2), 1, 3)));
    case_expect(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MAX, .axis = 1, .flags = 1}, IN(x),
                OUT(INT(TY_I64, DIMS(2), 2, 3)));
    case_expect(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MIN, .axis = 1}, IN(x), OUT(INT(TY_I64, DIMS(2), 3, 1)));
    case_expect(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MIN, .axis = 1, .flags = 1}, IN(x),
                OUT(INT(TY_I64, DIMS(2), 3, 2)));
    case_expect(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MAX, .axis = 0}, IN(x), OUT(INT(TY_I64, DIMS(4), 0, 0, 0, 1)));
    case_expect(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MIN, .axis = 0}, IN(F64(DIMS(4), 1, NAN, 0, NAN)),
                OUT(INT(TY_I64, SCALAR, 1)));
    case_expect(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MAX, .axis = 0}, IN(INT(TY_U64, DIMS(2), 1, -1)),
                OUT(INT(TY_I64, SCALAR, 1)));
    case_refused(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_SUM, .axis = 0}, IN(TYPE(TY_F32, DIMS(2))),
                 "max, min, found sum");
    case_refused(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MAX, .axis = 1}, IN(TYPE(TY_F32, DIMS(2, 0))), "at least one");
    case_refused(TY_OP_ARGREDUCE, (ty_attr){.mode = TY_MAX, .axis = -1}, IN(TYPE(TY_F32, DIMS(2))), "found -1");
}

static void scan_runs(void **state)
{
    static const struct {
        ty_combine mode;
        uint32_t flags;
        double want[4];
    } row[] = {
        {TY_SUM, 0, {2, 1, 4, 8}},       {TY_SUM, 1, {0, 2, 1, 4}},         {TY_SUM, 2, {8, 6, 7, 4}},
        {TY_SUM, 3, {6, 7, 4, 0}},       {TY_PROD, 0, {2, -2, -6, -24}},    {TY_PROD, 1, {1, 2, -2, -6}},
        {TY_PROD, 2, {-24, -12, 12, 4}}, {TY_MAX, 0, {2, 2, 3, 4}},         {TY_MAX, 1, {-INFINITY, 2, 2, 3}},
        {TY_MIN, 2, {-1, -1, 3, 4}},     {TY_MIN, 3, {-1, 3, 4, INFINITY}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++)
        case_expect(TY_OP_SCAN, (ty_attr){.mode = row[k].mode, .flags = row[k].flags, .axis = 0},
                    IN(F64(DIMS(4), 2, -1, 3, 4)), OUT(case_f(TY_F64, DIMS(4), row[k].want, 4)));
    case_expect(TY_OP_SCAN, (ty_attr){.mode = TY_SUM, .axis = 0}, IN(F64(DIMS(2, 2), 1, 2, 3, 4)),
                OUT(F64(DIMS(2, 2), 1, 2, 4, 6)));
    case_expect(TY_OP_SCAN, (ty_attr){.mode = TY_SUM, .axis = 1}, IN(INT(TY_I8, DIMS(1, 3), 100, 100, 1)),
                OUT(INT(TY_I8, DIMS(1, 3), 100, -56, -55)));
    case_refused(TY_OP_SCAN, (ty_attr){.mode = TY_SUM, .axis = 0}, IN(TYPE(TY_BOOL, DIMS(2))),
                 "number type, found bool");
    case_refused(TY_OP_SCAN, (ty_attr){.mode = TY_SUM, .axis = 0, .flags = 4}, IN(TYPE(TY_F32, DIMS(2))), "flags");
    case_refused(TY_OP_SCAN, (ty_attr){.mode = TY_SET, .axis = 0}, IN(TYPE(TY_F32, DIMS(2))), "found set");
}

static void reduce_gradients(void **state)
{
    (void)state;
    for (uint32_t mode = TY_SUM; mode <= TY_PROD; mode++)
        for (uint32_t axes = 0; axes < 8; axes++)
            GRADCHECK_NODE(ty_combine_name(mode), TY_OP_REDUCE, .attr = {.mode = mode, .axes = axes},
                           .check = {.n_in = 1, .gap = 0.1, .in = {GRAD_IN(2, 3, 2)}});
    GRADCHECK_NODE("sum of a scalar", TY_OP_REDUCE, .attr = {.mode = TY_SUM},
                   .check = {.n_in = 1, .in = {GRAD_SCALAR}});
}

static void reduce_gradients_at_ties_and_zeros(void **state)
{
    (void)state;
    ty_ref x = F64(DIMS(2, 4), 2, 2, 1, 2, 0, -1, -1, 3);
    node_gradient_is(TY_OP_REDUCE, (ty_attr){.mode = TY_MAX, .axes = 2}, IN(x), (double[]){6, 5},
                     OUT(F64(DIMS(2, 4), 2, 2, 0, 2, 0, 0, 0, 5)));
    node_gradient_is(TY_OP_REDUCE, (ty_attr){.mode = TY_MIN, .axes = 2}, IN(x), (double[]){6, 5},
                     OUT(F64(DIMS(2, 4), 0, 0, 6, 0, 0, 2.5, 2.5, 0)));
    node_gradient_is(TY_OP_REDUCE, (ty_attr){.mode = TY_PROD, .axes = 2}, IN(x), (double[]){1, 2},
                     OUT(F64(DIMS(2, 4), 4, 4, 8, 4, 6, 0, 0, 0)));
    node_gradient_is(TY_OP_REDUCE, (ty_attr){.mode = TY_PROD, .axes = 1}, IN(F64(DIMS(3), 0, 5, 0)), (double[]){1},
                     OUT(F64(DIMS(3), 0, 0, 0)));
    node_gradient_is(TY_OP_SCAN, (ty_attr){.mode = TY_PROD, .axis = 0}, IN(F64(DIMS(3), 2, 0, 3)),
                     (double[]){1, 10, 100}, OUT(F64(DIMS(3), 1, 20 + 600, 0)));
    node_gradient_is(TY_OP_SCAN, (ty_attr){.mode = TY_MAX, .axis = 0}, IN(F64(DIMS(4), -INFINITY, 3, 3, 4)),
                     (double[]){1, 10, 100, 1000}, OUT(F64(DIMS(4), 1, 110, 0, 1000)));
}

static void scan_gradients(void **state)
{
    (void)state;
    for (uint32_t mode = TY_SUM; mode <= TY_PROD; mode++)
        for (uint32_t flags = 0; flags < 4; flags++) {
            /* an exclusive extremum starts at infinity, which the loss cannot hold */
            if ((mode == TY_MAX || mode == TY_MIN) && (flags & 1))
                continue;
            GRADCHECK_NODE(ty_combine_name(mode), TY_OP_SCAN, .attr = {.mode = mode, .flags = flags, .axis = 1},
                           .check = {.n_in = 1, .gap = 0.1, .in = {GRAD_IN(2, 4, 2)}});
            GRADCHECK_NODE(ty_combine_name(mode), TY_OP_SCAN, .attr = {.mode = mode, .flags = flags, .axis = 0},
                           .check = {.n_in = 1, .gap = 0.1, .in = {GRAD_IN(5)}});
        }
    node_no_gradient(TY_OP_SCAN, (ty_attr){.mode = TY_PROD, .axis = 0}, IN(TYPE(TY_F64, DIMS(1, 1, 1, 1, 1, 1, 1, 1))),
                     "rank 8");
}

/* What comes out of an exclusive running maximum after the first element. */
static ty_val build_exclusive(ty_graph *g, const ty_val *x, const void *ctx)
{
    bool from_end = *(const bool *)ctx;
    int64_t n = ty_b_dim(g, x[0], 0);
    ty_val y = ty_b_scan(g, x[0], TY_MAX, 0, true, from_end);
    return ty_b_slice_axis(g, y, 0, from_end ? 0 : 1, from_end ? n - 1 : n);
}

static void scan_exclusive_extremum_gradients(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        bool from_end = k;
        gradcheck(&(gradcheck_case){.name = "exclusive",
                                    .build = build_exclusive,
                                    .ctx = &from_end,
                                    .n_in = 1,
                                    .gap = 0.1,
                                    .in = {GRAD_IN(6, 2)}});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduce_gradients), cmocka_unit_test(reduce_gradients_at_ties_and_zeros),
        cmocka_unit_test(scan_gradients),   cmocka_unit_test(scan_exclusive_extremum_gradients),
        cmocka_unit_test(reduce_combines),  cmocka_unit_test(reduce_special_values),
        cmocka_unit_test(reduce_refuses),   cmocka_unit_test(argreduce_finds),
        cmocka_unit_test(scan_runs),
    };
    return cmocka_run_group_tests_name("ops_reduce", tests, case_setup, case_teardown);
}
