/* ops_index.c - gather, take, scatter, put and sort: values, refusals, gradients. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/ops_case.h"
#include "tests/unit/ops_gradient.h"

static void gather_takes_rows(void **state)
{
    (void)state;
    case_expect(TY_OP_GATHER, (ty_attr){.axis = 0}, IN(F64(DIMS(3, 2), 1, 2, 3, 4, 5, 6), INT(TY_I64, DIMS(2), 2, 0)),
                OUT(F64(DIMS(2, 2), 5, 6, 1, 2)));
    case_expect(TY_OP_GATHER, (ty_attr){.axis = 1},
                IN(F64(DIMS(2, 3), 1, 2, 3, 4, 5, 6), INT(TY_I32, DIMS(1, 2), 2, 2)),
                OUT(F64(DIMS(2, 1, 2), 3, 3, 6, 6)));
    /* a scalar index removes the axis; integers and bool are gathered too */
    case_expect(TY_OP_GATHER, (ty_attr){.axis = 0}, IN(INT(TY_U8, DIMS(2, 2), 7, 8, 9, 250), INT(TY_I64, SCALAR, 1)),
                OUT(INT(TY_U8, DIMS(2), 9, 250)));
    case_expect(TY_OP_GATHER, (ty_attr){.axis = 1},
                IN(F64(DIMS(2, 2, 2), 1, 2, 3, 4, 5, 6, 7, 8), INT(TY_I64, DIMS(1), 1)),
                OUT(F64(DIMS(2, 1, 2), 3, 4, 7, 8)));
}

static void gather_refuses(void **state)
{
    (void)state;
    case_refused(TY_OP_GATHER, (ty_attr){.axis = 2}, IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_I64, DIMS(2))),
                 "axis: expected 0 to 1 for f32[2,3], found 2");
    case_refused(TY_OP_GATHER, (ty_attr){.axis = 0}, IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_F32, DIMS(2))),
                 "index: expected i32 or i64, found f32");
    case_refused(TY_OP_GATHER, (ty_attr){.axis = 0},
                 IN(TYPE(TY_F32, DIMS(2, 1, 1, 1, 1, 1)), TYPE(TY_I64, DIMS(1, 1, 1, 1))), "rank 0 to 8, found 9");
    case_no_value(TY_OP_GATHER, (ty_attr){.axis = 0}, IN(F64(DIMS(2), 1, 2), INT(TY_I64, DIMS(2), 0, 2)),
                  "index: expected 0 to 1, found 2 at element 1");
    case_no_value(TY_OP_GATHER, (ty_attr){.axis = 0}, IN(F64(DIMS(2), 1, 2), INT(TY_I64, DIMS(1), -1)), "found -1");
}

static void take_takes_elements(void **state)
{
    (void)state;
    case_expect(TY_OP_TAKE, (ty_attr){.axis = 1},
                IN(F64(DIMS(2, 3), 1, 2, 3, 4, 5, 6), INT(TY_I64, DIMS(2, 2), 2, 0, 1, 1)),
                OUT(F64(DIMS(2, 2), 3, 1, 5, 5)));
    case_expect(TY_OP_TAKE, (ty_attr){.axis = 0},
                IN(F64(DIMS(2, 3), 1, 2, 3, 4, 5, 6), INT(TY_I64, DIMS(1, 3), 1, 0, 1)), OUT(F64(DIMS(1, 3), 4, 2, 6)));
    case_refused(TY_OP_TAKE, (ty_attr){.axis = 1}, IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_I64, DIMS(3, 2))),
                 "index: expected i64[2,2], found i64[3,2]");
    case_refused(TY_OP_TAKE, (ty_attr){.axis = 1}, IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_I64, DIMS(2))),
                 "index: expected i64[2,3], found i64[2]");
    case_no_value(TY_OP_TAKE, (ty_attr){.axis = 0}, IN(F64(DIMS(2), 1, 2), INT(TY_I64, DIMS(1), 5)), "found 5");
}

static void scatter_combines_rows(void **state)
{
    static const struct {
        ty_combine mode;
        double want[6];
    } row[] = {
        {TY_SUM, {1, 2, 3 + 10 + 30, 4 + 20 + 40, 5, 6}},
        {TY_SET, {1, 2, 30, 40, 5, 6}},
        {TY_MAX, {1, 2, 30, 40, 5, 6}},
        {TY_MIN, {1, 2, 3, 4, 5, 6}},
        {TY_PROD, {1, 2, 900, 3200, 5, 6}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++)
        case_expect(TY_OP_SCATTER, (ty_attr){.axis = 0, .mode = row[k].mode},
                    IN(F64(DIMS(3, 2), 1, 2, 3, 4, 5, 6), INT(TY_I64, DIMS(2), 1, 1), F64(DIMS(2, 2), 10, 20, 30, 40)),
                    OUT(case_f(TY_F64, DIMS(3, 2), row[k].want, 6)));
    case_expect(TY_OP_SCATTER, (ty_attr){.axis = 1, .mode = TY_SUM},
                IN(INT(TY_I8, DIMS(2, 2), 100, 1, 2, 3), INT(TY_I32, DIMS(1), 0), INT(TY_I8, DIMS(2, 1), 100, 5)),
                OUT(INT(TY_I8, DIMS(2, 2), -56, 1, 7, 3))); /* wraps as i8 does */
}

static void put_combines_elements(void **state)
{
    (void)state;
    case_expect(TY_OP_PUT, (ty_attr){.axis = 1, .mode = TY_SUM},
                IN(F64(DIMS(2, 3), 0, 0, 0, 1, 1, 1), INT(TY_I64, DIMS(2, 2), 2, 2, 0, 1), F64(DIMS(2, 2), 5, 6, 7, 8)),
                OUT(F64(DIMS(2, 3), 0, 0, 11, 8, 9, 1)));
    case_expect(TY_OP_PUT, (ty_attr){.axis = 0, .mode = TY_SET},
                IN(F64(DIMS(2, 3), 0, 0, 0, 1, 1, 1), INT(TY_I64, DIMS(2, 3), 1, 0, 1, 1, 1, 0),
                   F64(DIMS(2, 3), 2, 3, 4, 5, 6, 7)),
                OUT(F64(DIMS(2, 3), 0, 3, 7, 5, 6, 4)));
    case_refused(TY_OP_PUT, (ty_attr){.axis = 1},
                 IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_I64, DIMS(2, 1)), TYPE(TY_F32, DIMS(2, 3))),
                 "update: expected f32[2,1], found f32[2,3]");
    case_refused(TY_OP_SCATTER, (ty_attr){.axis = 0},
                 IN(TYPE(TY_F32, DIMS(2, 3)), TYPE(TY_I64, DIMS(4)), TYPE(TY_F64, DIMS(4, 3))),
                 "update: expected f32[4,3], found f64[4,3]");
    case_refused(TY_OP_SCATTER, (ty_attr){.axis = 0, .mode = TY_SUM},
                 IN(TYPE(TY_BOOL, DIMS(2)), TYPE(TY_I64, DIMS(1)), TYPE(TY_BOOL, DIMS(1))),
                 "mode: expected one of max, min, set, found sum");
    case_refused(TY_OP_SCATTER, (ty_attr){.axis = 0, .mode = 9},
                 IN(TYPE(TY_F32, DIMS(2)), TYPE(TY_I64, DIMS(1)), TYPE(TY_F32, DIMS(1))), "found ? (9)");
    case_no_value(TY_OP_SCATTER, (ty_attr){.axis = 0}, IN(F64(DIMS(1), 1), INT(TY_I64, DIMS(1), 3), F64(DIMS(1), 1)),
                  "index: expected 0 to 0, found 3");
}

static void sort_is_stable(void **state)
{
    (void)state;
    case_expect(TY_OP_SORT, (ty_attr){.axis = 0}, IN(F64(DIMS(5), 3, 1, 2, 1, -4)),
                OUT(F64(DIMS(5), -4, 1, 1, 2, 3), INT(TY_I64, DIMS(5), 4, 1, 3, 2, 0)));
    case_expect(TY_OP_SORT, (ty_attr){.axis = 0, .flags = 1}, IN(F64(DIMS(5), 3, 1, 2, 1, -4)),
                OUT(F64(DIMS(5), 3, 2, 1, 1, -4), INT(TY_I64, DIMS(5), 0, 2, 1, 3, 4)));
    case_expect(TY_OP_SORT, (ty_attr){.axis = 0}, IN(F64(DIMS(5), NAN, 0.0, -0.0, INFINITY, -INFINITY)),
                OUT(F64(DIMS(5), -INFINITY, 0, 0, INFINITY, NAN), INT(TY_I64, DIMS(5), 4, 1, 2, 3, 0)));
    case_expect(TY_OP_SORT, (ty_attr){.axis = 0, .flags = 1}, IN(F64(DIMS(3), 1, NAN, 2)),
                OUT(F64(DIMS(3), NAN, 2, 1), INT(TY_I64, DIMS(3), 1, 2, 0)));
    case_expect(TY_OP_SORT, (ty_attr){.axis = 0}, IN(INT(TY_I64, DIMS(2, 2), 5, -1, -5, 3)),
                OUT(INT(TY_I64, DIMS(2, 2), -5, -1, 5, 3), INT(TY_I64, DIMS(2, 2), 1, 0, 0, 1)));
    case_expect(TY_OP_SORT, (ty_attr){.axis = 0}, IN(INT(TY_U64, DIMS(2), -1, 1)), /* -1: 2^64 - 1 */
                OUT(INT(TY_U64, DIMS(2), 1, -1), INT(TY_I64, DIMS(2), 1, 0)));
    case_refused(TY_OP_SORT, (ty_attr){.axis = 0}, IN(TYPE(TY_F32, SCALAR)), "axis");
    case_refused(TY_OP_SORT, (ty_attr){.axis = 0, .flags = 2}, IN(TYPE(TY_F32, DIMS(2))), "flags");
}

static void gather_gradients(void **state)
{
    (void)state;
    GRADCHECK_NODE("gather rows", TY_OP_GATHER, .n_in = 2, .attr = {.axis = 0}, FIXED_I64(1, DIMS(4), 2, 0, 2, 1),
                   .check = {.n_in = 1, .in = {GRAD_IN(3, 2)}});
    GRADCHECK_NODE("gather columns", TY_OP_GATHER, .n_in = 2, .attr = {.axis = 1}, FIXED_I64(1, DIMS(2, 2), 2, 0, 2, 2),
                   .check = {.n_in = 1, .in = {GRAD_IN(2, 3, 2)}});
    GRADCHECK_NODE("gather one", TY_OP_GATHER, .n_in = 2, .attr = {.axis = 2}, FIXED_I64(1, SCALAR, 1),
                   .check = {.n_in = 1, .in = {GRAD_IN(2, 3, 2)}});
    GRADCHECK_NODE("take", TY_OP_TAKE, .n_in = 2, .attr = {.axis = 1}, FIXED_I64(1, DIMS(2, 2), 2, 2, 0, 1),
                   .check = {.n_in = 1, .in = {GRAD_IN(2, 3)}});
    GRADCHECK_NODE("take first axis", TY_OP_TAKE, .n_in = 2, .attr = {.axis = 0},
                   FIXED_I64(1, DIMS(3, 2), 1, 0, 1, 1, 0, 0), .check = {.n_in = 1, .in = {GRAD_IN(2, 2)}});
}

/* All modes but PROD, with repeated indices, on the first and the last axis. */
static void scatter_gradients(void **state)
{
    (void)state;
    for (uint32_t mode = TY_SUM; mode <= TY_SET; mode++) {
        if (mode == TY_PROD)
            continue;
        GRADCHECK_NODE("scatter rows", TY_OP_SCATTER, .n_in = 3, .attr = {.axis = 0, .mode = mode},
                       FIXED_I64(1, DIMS(3), 1, 0, 1),
                       .check = {.n_in = 2, .gap = 0.1, .in = {GRAD_IN(3, 2), GRAD_IN(3, 2)}});
        GRADCHECK_NODE("scatter columns", TY_OP_SCATTER, .n_in = 3, .attr = {.axis = 1, .mode = mode},
                       FIXED_I64(1, DIMS(2, 2), 3, 3, 0, 3),
                       .check = {.n_in = 2, .gap = 0.1, .in = {GRAD_IN(2, 4, 2), GRAD_IN(2, 2, 2, 2)}});
        GRADCHECK_NODE("scatter a row of indices", TY_OP_SCATTER, .n_in = 3, .attr = {.axis = 0, .mode = mode},
                       FIXED_I64(1, DIMS(3, 2), 1, 0, 1, 1, 0, 1),
                       .check = {.n_in = 2, .gap = 0.1, .in = {GRAD_IN(2, 2), GRAD_IN(3, 2, 2)}});
        GRADCHECK_NODE("scatter one", TY_OP_SCATTER, .n_in = 3, .attr = {.axis = 1, .mode = mode},
                       FIXED_I64(1, SCALAR, 2), .check = {.n_in = 2, .gap = 0.1, .in = {GRAD_IN(2, 3), GRAD_IN(2)}});
        GRADCHECK_NODE("put", TY_OP_PUT, .n_in = 3, .attr = {.axis = 1, .mode = mode},
                       FIXED_I64(1, DIMS(2, 3), 2, 2, 0, 1, 1, 1),
                       .check = {.n_in = 2, .gap = 0.1, .in = {GRAD_IN(2, 4), GRAD_IN(2, 3)}});
        GRADCHECK_NODE("put first axis", TY_OP_PUT, .n_in = 3, .attr = {.axis = 0, .mode = mode},
                       FIXED_I64(1, DIMS(3, 2), 0, 1, 0, 0, 0, 1),
                       .check = {.n_in = 2, .gap = 0.1, .in = {GRAD_IN(2, 2), GRAD_IN(3, 2)}});
    }
    node_no_gradient(TY_OP_SCATTER, (ty_attr){.axis = 0, .mode = TY_PROD},
                     IN(TYPE(TY_F64, DIMS(2)), TYPE(TY_I64, DIMS(1)), TYPE(TY_F64, DIMS(1))), "found prod");
}

/* Three meet in one place with equal values: a third of the gradient each. */
static void scatter_shares_ties(void **state)
{
    (void)state;
    node_gradient_is(TY_OP_SCATTER, (ty_attr){.axis = 0, .mode = TY_MAX},
                     IN(F64(DIMS(2), 5, 1), INT(TY_I64, DIMS(3), 0, 0, 1), F64(DIMS(3), 5, 5, 0)), (double[]){6, 8},
                     OUT(F64(DIMS(2), 2, 8)));
}

static void sort_gradients(void **state)
{
    (void)state;
    GRADCHECK_NODE("sort", TY_OP_SORT, .attr = {.axis = 1}, .check = {.n_in = 1, .gap = 0.1, .in = {GRAD_IN(3, 5)}});
    GRADCHECK_NODE("sort down", TY_OP_SORT, .attr = {.axis = 0, .flags = 1},
                   .check = {.n_in = 1, .gap = 0.1, .in = {GRAD_IN(4, 3)}});
    GRADCHECK_NODE("sort middle", TY_OP_SORT, .attr = {.axis = 1},
                   .check = {.n_in = 1, .gap = 0.1, .in = {GRAD_IN(2, 4, 2)}});
    node_gradient_is(TY_OP_SORT, (ty_attr){.axis = 0}, IN(F64(DIMS(3), 5, 1, 3)), (double[]){-1, 20, -300},
                     OUT(F64(DIMS(3), -300, -1, 20)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather_gradients),      cmocka_unit_test(scatter_gradients),
        cmocka_unit_test(scatter_shares_ties),   cmocka_unit_test(sort_gradients),
        cmocka_unit_test(gather_takes_rows),     cmocka_unit_test(gather_refuses),
        cmocka_unit_test(take_takes_elements),   cmocka_unit_test(scatter_combines_rows),
        cmocka_unit_test(put_combines_elements), cmocka_unit_test(sort_is_stable),
    };
    return cmocka_run_group_tests_name("ops_index", tests, case_setup, case_teardown);
}
